"""What goes wrong around `holdfast-service`: peers that do not speak HTTP, databases that fail, exports that are cut, signals."""

import concurrent.futures
import contextlib
import json
import os
import re
import shutil
import signal
import socket
import sqlite3
import ssl
import subprocess
import time

import pytest
from holdfast_peer.checks import Failed
from test_service import (  # noqa: F401
    Instance,
    Service,
    code_of,
    make_certificate,
    new_database,
    new_service,
    postgres,
    server,
    service,
)

SECONDS = 60


@pytest.fixture(scope="module")
def plain(service):  # noqa: F811
    """An instance without TLS, for peers that do not speak HTTP."""
    instance = Instance(service, certificate=None, key=None, idle_seconds=30)
    yield instance
    assert instance.stop() == 0, "exit status"


def answer_to(instance, data):
    """What the server answers to bytes until it closes the connection: the status, the header and the body."""
    with socket.create_connection(("127.0.0.1", instance.port), SECONDS) as peer:
        peer.sendall(data)
        received = b""
        while part := peer.recv(65536):
            received += part
    head, _, body = received.partition(b"\r\n\r\n")
    return int(head.split()[1]), head.decode(), body


@pytest.mark.parametrize(
    ("data", "status"),
    [
        (b"GARBAGE\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost: x\r\nno colon\r\n\r\n", 400),
        (b"POST /v1/attest HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabc", 400),
        (b"POST /v1/attest HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost: x\r\nX: " + b"a" * 10_000 + b"\r\n\r\n", 431),
        (b"GET / HTTP/1.1\r\nHost: x\r\n" + b"".join(b"X-%d: y\r\n" % n for n in range(200)) + b"\r\n", 431),
    ],
)
def test_what_is_not_http_is_answered_with_a_problem_document(plain, data, status):
    found, head, body = answer_to(plain, data)
    assert found == status and "application/problem+json" in head, (head, body)
    problem = json.loads(body)
    assert problem["status"] == status and problem["request_id"] in head, problem
    assert plain.ask("GET", "/healthz")[0] == 200


def test_a_client_may_name_its_request_and_no_name_gets_into_the_log_unchecked(plain):
    _, headers, _ = plain.ask("GET", "/healthz", headers={"X-Request-ID": "from-the-proxy.7"})
    assert headers["X-Request-ID"] == "from-the-proxy.7" and "from-the-proxy.7" in plain.log.read_text()
    for name in ("a b", "x" * 65, '"}', "\u00fc"):
        _, headers, _ = plain.ask("GET", "/healthz", headers={"X-Request-ID": name.encode("latin-1")})
        assert re.fullmatch(r"[A-Za-z0-9-]{1,64}", headers["X-Request-ID"]), headers["X-Request-ID"]
    _, headers, problem = plain.ask("GET", "/nothing", headers={"X-Request-ID": "q1"})
    assert headers["X-Request-ID"] == problem["request_id"] == "q1"


def test_peers_that_never_finish_the_handshake_are_cut_off(service):  # noqa: F811
    """Whoever connects and says nothing must not fill the places of others."""
    quick = Instance(service, idle_seconds=5, maximum_connections=60)
    try:
        peers = [socket.create_connection(("127.0.0.1", quick.port), SECONDS) for _ in range(40)]
        for peer in peers[:20]:
            peer.sendall(b"\x16\x03\x01\x02\x00\x01")
        assert quick.ask("GET", "/healthz")[0] == 200
        for peer in peers:
            with contextlib.suppress(ConnectionError):
                while peer.recv(4096):
                    pass
        assert quick.ask("GET", "/healthz")[0] == 200
    finally:
        assert quick.stop() == 0, "exit status"


def test_the_second_signal_ends_it_at_once(service):  # noqa: F811
    """The first one lets a request finish whose body has not arrived yet."""
    for signals, status in [(1, 0), (2, -signal.SIGTERM)]:
        instance = Instance(service, certificate=None, key=None, body_seconds=600, idle_seconds=600)
        with socket.create_connection(("127.0.0.1", instance.port), SECONDS) as peer:
            begun = b"POST /v1/attest HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
            begun += b"Connection: close\r\nContent-Length: 2\r\n\r\n{"
            # Once the request in front is answered, the server has begun with this one.
            peer.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n" + begun)
            assert b" 200 " in peer.recv(4096).split(b"\r\n")[0]
            instance.process.send_signal(signal.SIGTERM)
            deadline = time.monotonic() + SECONDS
            while time.monotonic() < deadline:
                try:
                    socket.create_connection(("127.0.0.1", instance.port), 1).close()
                except OSError:
                    break
                time.sleep(0.01)
            assert instance.process.poll() is None, "it did not wait for the request"
            if signals == 2:
                instance.process.send_signal(signal.SIGTERM)
            else:
                peer.sendall(b"}")
                received = b""
                while part := peer.recv(4096):
                    received += part
                assert b"application/problem+json" in received, received
            assert instance.process.wait(SECONDS) == status


def download(instance, token=None, query=""):
    """Returns the status, the headers and the bytes of an export over HTTP."""
    with contextlib.closing(instance.connect()) as connection:
        connection.request(
            "GET", f"/v1/admin/export{query}", headers={"Authorization": f"Bearer {token}"} if token else {}
        )
        answer = connection.getresponse()
        return answer.status, answer.headers, answer.read()


def test_an_export_restores_into_either_database_and_a_damaged_one_into_none(service, server, tmp_path):  # noqa: F811
    evidence, _ = service.evidence("exported")
    with contextlib.ExitStack() as stack:
        instance = Instance(service)
        stack.callback(instance.stop)
        status, _, answer = service.ask_for_token(
            instance, service.attest(instance, evidence), invitation=code_of(service)
        )
        assert status == 201, answer
        status, headers, content = download(instance, service.operator("copier", "admin"))
        assert status == 200 and headers["Content-Type"] == "application/octet-stream", content[:300]
        assert headers["Cache-Control"] == "no-store"
        (tmp_path / "downloaded").write_bytes(content)
        assert download(instance)[0] == 401
        others = service.operator("no-copier", "read,approve,revoke")
        assert download(instance, others)[0] == 403
        assert download(instance, service.operator("asker", "admin"), "?all=1")[0] == 400
    assert [c["actor"] for c in service.json("list", "changes")["items"] if c["action"] == "service.export"] == [
        "copier"
    ]
    written = tmp_path / "backup"
    assert json.loads(service.verb("export", "--out", written, "--json"))["records"] > 0
    service.verb("export", "--out", written, status=2)
    assert written.stat().st_mode & 0o777 == 0o600
    assert answer["token"].encode() not in written.read_bytes()
    key = service.folder / "service" / "service.key"
    for number, (file, database) in enumerate([(written, None), (tmp_path / "downloaded", new_database(server))]):
        folder = tmp_path / f"restored{number}"
        (folder / "service").mkdir(mode=0o700, parents=True)
        other = Service.__new__(Service)
        other.program, other.command_line, other.database = service.program, service.command_line, database
        other.folder, other.descriptor = folder, service.descriptor
        for name in ("certificate.pem", "key.pem"):
            shutil.copy(service.folder / name, folder / name)
        assert b"service.key does not exist" in other.run("restore", file).stderr
        shutil.copy(key, folder / "service" / "service.key")
        damaged = tmp_path / f"damaged{number}"
        whole = file.read_bytes()
        for content, words in [
            (whole[:-1], b"was cut or changed"),
            (whole[: len(whole) // 2], b"was cut or changed"),
            (whole[:100], b"was cut or changed"),
            (whole[:-100] + bytes([whole[-100] ^ 1]) + whole[-99:], b"was cut or changed"),
            (b"", b"is no file that holdfast-service export wrote"),
            (b"{}", b"is no file that holdfast-service export wrote"),
        ]:
            damaged.write_bytes(content)
            done = other.run("restore", damaged)
            assert done.returncode == 2 and words in done.stderr, (len(content), done)
        assert other.run("list", "devices").returncode == 2
        other.verb("restore", file, "--nothing-lost")
        done = other.run("restore", file, "--nothing-lost")
        assert done.returncode == 2 and b"there is a service in this database already" in done.stderr, done
        for kind in ("devices", "tokens", "users", "invitations", "images"):
            assert other.json("list", kind) == service.json("list", kind), kind
        assert other.json("list", "changes")["items"][0]["action"] == "service.restore"
        with contextlib.ExitStack() as stack:
            instance = Instance(other)
            stack.callback(instance.stop)
            again = other.ask_for_token(instance, other.attest(instance, evidence))
            assert again[0] == 201 and again[2] == answer, "the token of before was not given again"


def test_a_full_disk_leaves_no_export(service, tmp_path):  # noqa: F811
    if os.geteuid() != 0:
        pytest.skip("only root can mount a small file system")
    script = f"mount -t tmpfs -o size=8k tmpfs {tmp_path} && head -c 8192 /dev/zero >{tmp_path}/full || exit 1\n"
    script += f'"$@"; code=$?; ls -A {tmp_path}; exit $code'
    command = [service.program, "export", "--out", tmp_path / "backup", "--dir", service.folder / "service"]
    if service.database:
        command += ["--database", service.database]
    done = subprocess.run(["unshare", "-m", "bash", "-c", script, "bash", *command], capture_output=True, check=False)
    assert done.returncode == 70 and b"the disk is full" in done.stderr and done.stdout == b"full\n", done


def test_a_full_disk_under_a_service_in_a_folder_is_503_and_loses_nothing(request, tmp_path_factory):
    if os.geteuid() != 0:
        pytest.skip("only root can mount a small file system")
    small = new_service(request, tmp_path_factory.mktemp("small"))
    admin = small.operator("anna", "approve,read")
    folder = small.folder / "service"
    script = f"cp -a {folder} {folder}.kept && mount -t tmpfs -o size=2m,mode=700 tmpfs {folder}"
    script += f' && cp -a {folder}.kept/. {folder} && exec "$@"'
    instance = Instance(small, within=["unshare", "-m", "bash", "-c", script, "bash"])
    inside = ["nsenter", "-m", "-t", str(instance.process.pid)]

    def invite():
        body = {"device": small.descriptor["device_id"], "valid_seconds": 3600}
        return instance.ask("POST", "/v1/admin/invitations", body, token=admin)

    try:
        subprocess.run([*inside, "dd", "if=/dev/zero", f"of={folder}/full", "bs=1k"], capture_output=True, check=False)
        identifiers = set()
        # The log of the database has some room left.
        for _ in range(2000):
            status, headers, answer = invite()
            if status != 200:
                break
            identifiers.add(answer["id"])
        assert (status, answer["type"]) == (503, "urn:holdfast:problem:unavailable"), answer
        assert int(headers["Retry-After"]) > 0 and "full" in instance.log.read_text()
        assert instance.ask("GET", "/healthz")[0] == 200
        subprocess.run([*inside, "rm", f"{folder}/full"], check=True)
        status, _, answer = invite()
        assert status == 200, answer
        identifiers.add(answer["id"])
        listed, after = set(), ""
        while after is not None:
            page = instance.ask(
                "GET", f"/v1/admin/invitations?after={after}" if after else "/v1/admin/invitations", token=admin
            )[2]
            assert not listed & {item["id"] for item in page["items"]}
            listed |= {item["id"] for item in page["items"]}
            after = page["next"]
        assert listed == identifiers
    finally:
        assert instance.stop() == 0, "exit status"


def test_a_database_of_a_newer_version_is_refused_with_a_hint(request, tmp_path_factory, server):  # noqa: F811
    for database in (None, new_database(server)):
        newer = new_service(request, tmp_path_factory.mktemp("newer"), database)
        if database:
            name = database.split("?")[0].rsplit("/", 1)[1]
            server.sql("UPDATE holdfast_schema SET version = 99", database=name)
        else:
            with contextlib.closing(sqlite3.connect(newer.folder / "service" / "service.sqlite")) as file:
                file.execute("PRAGMA user_version = 99")
                file.commit()
        for words in (["list", "devices"], ["serve"], ["export", "--out", newer.folder / "backup"]):
            done = newer.run(*words)
            assert done.returncode == 2 and b"a newer version of holdfast-service" in done.stderr, done


def test_a_database_that_fails_is_503_and_comes_back(request, tmp_path_factory, tmp_path):
    """PostgreSQL away, read-only and locked: a problem document within the limits, and everything works again afterwards."""
    with postgres() as own:
        broken = new_service(request, tmp_path_factory.mktemp("broken"), new_database(own))
        name = broken.database.split("?")[0].rsplit("/", 1)[1]
        instance = Instance(broken)
        evidence, _ = broken.evidence("broken")
        body = {"device": broken.descriptor, "evidence": evidence}

        def refused():
            status, headers, problem = instance.ask("POST", "/v1/attest", body)
            assert (status, problem["type"]) == (503, "urn:holdfast:problem:unavailable"), problem
            assert int(headers["Retry-After"]) > 0
            assert set(problem) == {"type", "title", "status", "detail", "reasons", "arc", "request_id"}

        try:
            assert instance.ask("POST", "/v1/attest", body)[0] == 200
            own.kill()
            refused()
            assert instance.ask("GET", "/readyz")[0] == 503 and instance.ask("GET", "/healthz")[0] == 200
            done = broken.run("list", "devices")
            assert done.returncode == 69 and b"the database does not answer" in done.stderr, done
            own.start()
            assert instance.ask("POST", "/v1/attest", body)[0] == 200
            own.sql(f"ALTER DATABASE {name} SET default_transaction_read_only = on")
            own.sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'holdfast%'")
            refused()
            own.sql(f"ALTER DATABASE {name} RESET default_transaction_read_only")
            own.sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'holdfast%'")
            assert instance.ask("POST", "/v1/attest", body)[0] == 200
            with concurrent.futures.ThreadPoolExecutor(1) as pool:
                held = pool.submit(own.sql, "BEGIN", "LOCK TABLE provers", "SELECT pg_sleep(60)", database=name)
                locks = "FROM pg_locks WHERE mode = 'AccessExclusiveLock' AND granted"
                held_at = time.monotonic()
                while own.sql(f"SELECT count(*) {locks}", database=name) == ["0"]:
                    assert time.monotonic() < held_at + SECONDS, "the table is not locked"
                    time.sleep(0.02)
                refused()
                own.sql(f"SELECT pg_terminate_backend(pid) {locks}", database=name)
                with pytest.raises(Failed):
                    held.result()
            assert instance.ask("POST", "/v1/attest", body)[0] == 200
            assert "hush" not in instance.log.read_text()
        finally:
            assert instance.stop() == 0, "exit status"


def test_three_instances_start_at_once_on_an_empty_schema_and_on_an_older_one(request, tmp_path_factory, server):  # noqa: F811
    service = new_service(request, tmp_path_factory.mktemp("three"), new_database(server))  # noqa: F811
    name = service.database.split("?")[0].rsplit("/", 1)[1]
    # As version 1 left it: without the tables of later scripts.
    server.sql(
        "DROP TABLE key_orders, bulletin_keys",
        "DROP TABLE minimum_versions, user_orders, bulletin_versions, bulletin_users",
        "DROP TABLE audit_heads, audit_logs, first_revocations",
        "DROP TABLE device_groups, group_devices, bulletin_audiences, bulletins, bulletin_entries",
        "DROP TABLE audits, audit_chains, sessions, domains, pins, strings, code_statements, domain_secrets, image_makers, image_trees",
        "DROP FUNCTION audits_append_only",
        "DROP INDEX devices_by_label, tokens_by_revocation, changes_by_object, revoked_tokens",
        "DELETE FROM keys WHERE purpose IN ('agreement', 'app-tokens')",
        "UPDATE holdfast_schema SET version = 1",
        database=name,
    )
    with concurrent.futures.ThreadPoolExecutor(3) as pool:
        instances = list(pool.map(lambda _: Instance(service), range(3)))
    try:
        assert [instance.ask("GET", "/readyz")[0] for instance in instances] == [200] * 3
        assert server.sql("SELECT version FROM holdfast_schema", database=name) != ["1"]
        assert server.sql("SELECT count(*) FROM audits", database=name) == ["0"]
        # Each kind of key that version 1 did not have was made once.
        for path, member in (("jwks.json", "agreement"), ("app-tokens.json", "keys")):
            made = [instance.ask("GET", f"/.well-known/{path}")[2][member] for instance in instances]
            assert made[0] and made == made[:1] * 3, path
    finally:
        assert [instance.stop() for instance in instances] == [0] * 3


def test_a_password_on_the_command_line_is_refused(service):  # noqa: F811
    for url in ("postgresql://u:hush@127.0.0.1/d", "postgresql:///d?password=hush&user=u"):
        words = [service.program, "list", "devices", "--dir", service.folder / "service", "--database", url]
        done = subprocess.run(words, capture_output=True, timeout=SECONDS, check=False)
        assert done.returncode == 64 and b"hush" not in done.stderr and b"hint: " in done.stderr, done
        (service.folder / "hush.json").write_text(json.dumps({"database": url}))
        words = [service.program, "serve", "--dir", service.folder / "service"]
        words += ["--config", service.folder / "hush.json", "--print-config"]
        done = subprocess.run(words, capture_output=True, timeout=SECONDS, check=False)
        assert done.returncode == 0 and b"hush" not in done.stdout + done.stderr, done


def test_an_expired_certificate_is_named_in_the_log_and_shown_by_the_metrics(request, tmp_path_factory):
    old = new_service(request, tmp_path_factory.mktemp("expired"))
    make_certificate(old.folder, days=(-3, -2))
    instance = Instance(old)
    try:
        assert "the certificate has expired" in instance.log.read_text()
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        with (
            socket.create_connection(("127.0.0.1", instance.port), SECONDS) as peer,
            context.wrap_socket(peer) as secure,
        ):
            secure.sendall(b"GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
            text = b"".join(iter(lambda: secure.recv(65536), b"")).decode()
        assert "holdfast_certificate_expires_unix_seconds " in text
    finally:
        assert instance.stop() == 0, "exit status"
