"""The copies that docs/operating-service.md describes, each taken while provers enrol, restored, and enrolled with."""

import pathlib
import shutil
import subprocess
import tempfile

import postgresql
import pytest
from online_fleet import Fleet, Host


@pytest.fixture
def folder():
    with tempfile.TemporaryDirectory(prefix="hf", dir="/tmp", ignore_cleanup_errors=True) as name:
        # Another user runs the database.
        pathlib.Path(name).chmod(0o711)
        yield pathlib.Path(name)


@pytest.fixture
def server(folder):
    try:
        server = postgresql.Server(folder, "a")
    except postgresql.Absent as reason:
        pytest.skip(str(reason))
    server.create(postgresql.WITHOUT_DISK)
    yield server
    server.kill()


@pytest.fixture
def open_fleet(request, folder):
    """Makes a fleet over a database and serves it; a copy of another fleet has its keys and its app."""
    program = request.config.getoption("holdfast").resolve().parent / "holdfast-service"
    made = []

    def open_fleet(database, copy_of=None):
        fleet = Fleet(program, folder, database)
        made.append(fleet)
        if copy_of:
            fleet.root, fleet.image, fleet.operator = copy_of.root, copy_of.image, copy_of.operator
        else:
            fleet.create()
        fleet.serve(1)
        if not copy_of:
            fleet.approve_app()
        return fleet

    yield open_fleet
    for fleet in made:
        fleet.close()


class Enrolment:
    """A prover that enrols by an invitation, and can ask for the same token again."""

    def __init__(self, fleet, device):
        self.device, self.evidence = device, Host(fleet).evidence()
        invitation = {"device": device["device_id"], "valid_seconds": 3600}
        self.code = fleet.administer("POST", "/invitations", invitation)["code"]
        self.token = self.ask(fleet)

    def ask(self, fleet):
        port = fleet.instances[0].port
        status, answer = fleet.ask(port, "POST", "/v1/attest", {"device": self.device, "evidence": self.evidence})
        assert status == 200, answer
        body = {"device": self.device, "attestation": answer["attestation"], "invitation": self.code}
        status, answer = fleet.ask(port, "POST", "/v1/tokens", body)
        assert status == 201, answer
        return answer["token"]


def restored_is_the_same(open_fleet, fleet, copy, restore):
    """Takes a copy of a service, goes on with it, restores the copy, and compares."""
    device = fleet.add_device("lock-7")
    before = Enrolment(fleet, device)
    copy()
    Enrolment(fleet, fleet.add_device("lock-8"))
    fleet.close()
    database = restore()
    again = open_fleet(database, copy_of=fleet)
    assert before.ask(again) == before.token, "the same request got another token"
    assert Enrolment(again, device).token != before.token
    labels = [item["label"] for item in again.administer("GET", "/devices")["items"]]
    assert labels == ["lock-7"], "the copy has what came after it"
    actions = [item["action"] for item in again.administer("GET", "/changes")["items"]]
    assert "service.create" in actions and "device.add" in actions, actions


def run(*words):
    done = subprocess.run(list(map(str, words)), capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr[-300:]


def test_a_copy_of_sqlite(open_fleet, folder):
    if not shutil.which("sqlite3"):
        pytest.skip("sqlite3 is not installed")
    fleet = open_fleet(None)
    database = fleet.service / "service.sqlite"

    def restore():
        for name in ("", "-wal", "-shm"):
            pathlib.Path(f"{database}{name}").unlink(missing_ok=True)
        # The service refuses a database that others may read.
        run("install", "-m", "600", folder / "copy.sqlite", database)

    restored_is_the_same(
        open_fleet, fleet, lambda: run("sqlite3", database, f".backup '{folder / 'copy.sqlite'}'"), restore
    )


def test_a_dump_of_postgresql(open_fleet, server):
    dump, restored = server.folder / "dump", postgresql.url(server, database="restored")

    def restore():
        server.sql(f"CREATE DATABASE restored OWNER {postgresql.ROLE}")
        server.run("pg_restore", "--exit-on-error", "--no-owner", f"--dbname={restored}", dump)
        return restored

    restored_is_the_same(
        open_fleet,
        open_fleet(postgresql.url(server)),
        lambda: server.run("pg_dump", "--format=custom", f"--file={dump}", postgresql.url(server)),
        restore,
    )


def test_a_copy_of_a_whole_server(open_fleet, folder, server):
    other = postgresql.Server(folder, "copy")

    def copy():
        source = f"host={server.folder} port={server.port} user=postgres"
        server_copy = ("--checkpoint=fast", "-d", source, "-D", other.data)
        other.run("pg_basebackup", *server_copy)

    def restore():
        server.kill()
        other.configure()
        other.start()
        return postgresql.url(other)

    try:
        restored_is_the_same(open_fleet, open_fleet(postgresql.url(server)), copy, restore)
    finally:
        other.kill()
