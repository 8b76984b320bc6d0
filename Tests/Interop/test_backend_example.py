"""Examples/Backend, built as a stranger's package: it takes evidence, and a device accepts what it issues."""

import concurrent.futures
import json
import os
import secrets
import shutil
import signal
import subprocess
import time

import examples
import pytest
from holdfast_peer import transport
from holdfast_peer.command_line import CommandLine
from holdfast_peer.primitives import sha256

# The root that everybody knows.
DEFAULT_ROOT = sha256(b"holdfast development measurement proof key")[:16]


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    return examples.built("Backend", tmp_path_factory.mktemp("examples")) / "backend"


class Backend:
    """The example with a folder of its own, a device that trusts it and is registered there, and an approved prover."""

    def __init__(self, program, holdfast, folder):
        self.program, self.holdfast, self.folder = program, holdfast, folder
        self.line = CommandLine(holdfast, folder)
        self.store, self.lock, self.device = folder / "backend", folder / "lock", folder / "lock.json"
        self.count = 0

    def prepare(self):
        for name in ("images", "devices", "issued"):
            (self.store / name).mkdir(parents=True)
        (self.store / "issuer.key").write_bytes(secrets.token_bytes(32))
        key = self.folder / "issuer.jwk"
        key.write_bytes(self.run("key").stdout)
        self.line.succeed("device", "init", "--dir", self.lock)
        self.line.succeed("device", "trust", "--dir", self.lock, key)
        self.device.write_bytes(self.line.succeed("device", "show", "--dir", self.lock, "--json"))
        self.register(self.device)
        self.image = self.store / "images" / sha256(self.holdfast.read_bytes()).hex()
        self.approve()

    def register(self, descriptor):
        name = json.loads(descriptor.read_bytes())["device_id"]
        shutil.copyfile(descriptor, self.store / "devices" / f"{name}.json")

    def approve(self, root=DEFAULT_ROOT, subject="terminal"):
        self.image.mkdir(exist_ok=True)
        (self.image / "app.json").write_text(json.dumps({"subject": subject, "major": 1, "minor": 2, "patch": 3}))
        (self.image / "mpk.key").write_text(root.hex() + "\n")

    def run(self, device, evidence=b"", **options):
        return subprocess.run(
            [self.program, self.store, device], input=evidence, capture_output=True, timeout=60, check=False, **options
        )

    def measure(self):
        """A new prover: its state folder, and its evidence."""
        self.count += 1
        state, evidence = self.folder / f"phone-{self.count}", self.folder / f"evidence-{self.count}"
        self.line.succeed("measure", "--state", state, "--device", self.device, "--out", evidence)
        return state, evidence.read_bytes()

    def issued(self):
        return sorted(path.name for path in (self.store / "issued").iterdir())

    def refuses(self, evidence, reason, device=None, **options):
        done = self.run(device or self.device, evidence, **options)
        assert done.returncode == 1 and done.stdout == b"", done
        assert reason in done.stderr.decode(), done.stderr


@pytest.fixture
def backend(program, holdfast, tmp_path):
    backend = Backend(program, holdfast, tmp_path)
    backend.prepare()
    return backend


def test_a_device_accepts_a_prover_that_the_example_enrolled(backend):
    state, evidence = backend.measure()
    done = backend.run(backend.device, evidence)
    assert done.returncode == 0, done.stderr
    token = backend.folder / "token"
    token.write_bytes(done.stdout)
    backend.line.succeed("accept", "--state", state, "--device", backend.device, token)
    socket = f"unix:{backend.folder}/lock.sock"
    served = backend.line.start("device", "serve", "--dir", backend.lock, "--listen", socket)
    try:
        transport.connect_when_ready(f"{backend.folder}/lock.sock").close()
        said = json.loads(
            backend.line.succeed(
                "prove", "--state", state, "--connect", socket, "--command", "unlock", "--timeout", "60", "--json"
            )
        )
        assert said["status"] == "accepted", said
    finally:
        served.terminate()
        served.wait(60)
    assert len(backend.issued()) == 1


def test_wrong_evidence_is_refused_and_nothing_recorded(backend):
    _, evidence = backend.measure()
    for wrong in (b"", b"\x80", evidence[:-1], evidence + b"\0", bytes(70_000)):
        backend.refuses(wrong, "malformed")
    backend.refuses(evidence[:-1] + bytes([evidence[-1] ^ 1]), "notAuthentic")
    assert backend.issued() == []


def test_an_unknown_image_another_release_and_a_spoiled_approval_are_refused(backend):
    _, evidence = backend.measure()
    backend.approve(root=secrets.token_bytes(16))
    backend.refuses(evidence, "anotherRelease")
    for name, spoiled in (("app.json", "{}"), ("mpk.key", "0123\n")):
        backend.approve()
        (backend.image / name).write_text(spoiled)
        backend.refuses(evidence, "store(")
    shutil.rmtree(backend.image)
    backend.refuses(evidence, "unknownImage")
    assert backend.issued() == []
    backend.approve()
    assert backend.run(backend.device, evidence).returncode == 0


def test_an_unknown_device_and_one_with_another_key_are_refused(backend):
    _, evidence = backend.measure()
    other = backend.folder / "other.json"
    backend.line.succeed("device", "init", "--dir", backend.folder / "other")
    other.write_bytes(backend.line.succeed("device", "show", "--dir", backend.folder / "other", "--json"))
    backend.refuses(evidence, "unknownDevice", other)
    # The other device's key under the registered device's id.
    impostor = json.loads(other.read_bytes()) | {"device_id": json.loads(backend.device.read_bytes())["device_id"]}
    file = backend.folder / "impostor.json"
    file.write_text(json.dumps(impostor))
    backend.refuses(evidence, "anotherKey", file)
    file.write_text("{}")
    backend.refuses(evidence, "unexpected", file)
    assert backend.issued() == []


def test_a_store_that_cannot_record_issues_nothing(backend):
    _, evidence = backend.measure()
    issued = backend.store / "issued"
    issued.rmdir()
    backend.refuses(evidence, "store(")
    issued.write_bytes(b"")
    backend.refuses(evidence, "store(")
    issued.unlink()
    issued.mkdir()
    assert backend.run(backend.device, evidence).returncode == 0
    backend.refuses(evidence, "repeated")


def test_a_backend_that_is_killed_gives_each_baseline_at_most_one_token(backend):
    """Killed at many points of the run: a token came out only where there is a record, and no second one ever."""
    started = time.monotonic()
    assert backend.run(backend.device, backend.measure()[1]).returncode == 0
    whole = time.monotonic() - started
    for step in range(12):
        _, evidence = backend.measure()
        before = len(backend.issued())
        process = subprocess.Popen(
            [backend.program, backend.store, backend.device],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        process.stdin.write(evidence)
        process.stdin.close()
        try:
            process.wait(whole * step / 12)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
        token, _ = process.stdout.read(), process.wait(60)
        process.stdout.close()
        process.stderr.close()
        recorded = len(backend.issued()) - before
        assert recorded <= 1 and (recorded == 1 or token == b"")
        again = backend.run(backend.device, evidence)
        assert (again.returncode == 0) == (recorded == 0), again.stderr


def test_of_many_at_once_with_one_baseline_exactly_one_gets_a_token(backend):
    _, evidence = backend.measure()
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        done = list(pool.map(lambda _: backend.run(backend.device, evidence), range(8)))
    assert sorted(each.returncode for each in done) == [0] + [1] * 7
    assert all(b"repeated" in each.stderr and each.stdout == b"" for each in done if each.returncode)
    assert len(backend.issued()) == 1


def test_a_key_that_is_missing_or_wrong_issues_nothing(backend):
    _, evidence = backend.measure()
    for scalar in (b"", bytes(31), bytes(32), b"\xff" * 32):
        (backend.store / "issuer.key").write_bytes(scalar)
        backend.refuses(evidence, "backend: ")
    os.unlink(backend.store / "issuer.key")
    backend.refuses(evidence, "backend: ")
    assert backend.issued() == []
