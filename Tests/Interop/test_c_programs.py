"""Programs over the C interface, built as a stranger builds them: against the command line, and against the independent peer.

`lock` is Examples/c-lock, `prover` is Tests/C/prover.c, and the bench is Examples/python-bench.
"""

import json
import os
import pathlib
import re
import secrets
import shutil
import subprocess
import sys

import pytest
from c_library import HEADER, ROOT, STRICT, declarations, run, running
from devices import LinuxDevice
from holdfast_peer import measurement, session, transport
from holdfast_peer.command_line import CommandLine, descriptor_json, stop
from holdfast_peer.device import Device
from holdfast_peer.issuer import Issuer, fresh_claims
from holdfast_peer.keys import PrivateKey
from holdfast_peer.primitives import sha256
from holdfast_peer.scripted_device import MOST_ROUNDS, ScriptedDevice
from holdfast_peer.session import COSE, JOSE, STATUS

DEFAULT_ROOT = sha256(b"holdfast development measurement proof key")[:16]
# Swift's runtime keeps pointers into the middle of its tables, which valgrind calls possibly lost.
LEAKS = "--show-leak-kinds=definite,indirect", "--errors-for-leak-kinds=definite,indirect"
VALGRIND = ("valgrind", "--quiet", "--error-exitcode=99", "--leak-check=full", *LEAKS)
FAILED = 100


@pytest.fixture(scope="module")
def programs(c_library, folder):
    """A folder with the programs, built with pkg-config only."""
    example = folder / "c-lock"
    shutil.copytree(ROOT / "Examples/c-lock", example)
    run("make", "-C", example, env=c_library.environment)
    c_library.compile(folder / "prover", ROOT / "Tests/C/prover.c")
    shutil.copy(example / "lock", folder / "lock")
    return folder


class Prover:
    """The program `prover`, with an empty state folder."""

    def __init__(self, programs, library, tmp_path, *before, root=DEFAULT_ROOT):
        self.words, self.state = [*before, programs / "prover"], tmp_path / "state"
        self.evidence_key, self.proof_key = measurement.release_keys(root)
        self.environment = library.environment | {"XDG_DATA_HOME": str(tmp_path / "data")}

    def run(self, verb, *words, **environment):
        words = [*self.words, verb, self.state, *words]
        environment = self.environment | environment
        return subprocess.run(list(map(str, words)), env=environment, capture_output=True, timeout=300)

    def enroll(self, issuer, point, descriptor, tmp_path, encoding=COSE, properties=()):
        """Enrols by the evidence: its token is made here. `properties` is what the measurement finds; None for anything."""
        done = self.run("begin")
        assert done.returncode == 0, done.stderr
        evidence = measurement.parse_evidence(done.stdout, self.evidence_key)
        assert properties is None or evidence["properties"] == list(properties), "what the measurement found"
        configuration = evidence["configuration"]
        salt = measurement.parse_configuration(configuration)["salt"]
        claims = fresh_claims(
            bytes.fromhex(descriptor["device_id"]),
            integrity=measurement.integrity_measurement(salt, configuration, evidence["app"], evidence["device"]),
            device=measurement.device_measurement(salt, configuration, evidence["device"]),
            proofKey=self.proof_key,
        )
        files = tmp_path / "descriptor.json", tmp_path / "token"
        files[0].write_text(json.dumps(descriptor))
        files[1].write_bytes(issuer.grant(point, claims, encoding).token)
        done = self.run("accept", *files)
        assert done.returncode == 0, done.stderr


@pytest.fixture
def peer_device():
    """The independent device, its descriptor and its issuer."""
    key, device_id, issuer = PrivateKey(), secrets.token_bytes(16), Issuer()
    return Device(key, device_id, [issuer.key.point]), descriptor_json(key, device_id), issuer


def accept(peer):
    for _ in range(MOST_ROUNDS):
        peer.honest()


@pytest.mark.parametrize("carrier", ["prove", "over"])
def test_the_prover_in_c_proves_to_the_independent_device(
    programs, c_library, tmp_path, peer_device, encoding, carrier
):
    model, descriptor, issuer = peer_device
    prover = Prover(programs, c_library, tmp_path)
    prover.enroll(issuer, model.key.point, descriptor, tmp_path, encoding)
    path = str(tmp_path / "s")

    def prove(script):
        with ScriptedDevice(model, path, script) as device:
            words = ("prove", "unlock") if carrier == "prove" else ("over", path, "unlock")
            done = prover.run(*words, HF_ENDPOINT=f"unix:{path}")
        assert device.fault is None, repr(device.fault)
        return done

    for _ in range(2):
        done = prove(accept)
        assert (done.returncode, done.stdout) == (0, b"accepted, 1: unlocked\n"), done.stderr

    def impostor(peer):
        peer.send(peer.model.message_1())
        peer.receive()
        peer.send(session.message_3(STATUS["accepted"], None))

    assert prove(impostor).returncode == FAILED + 20, "an acceptance that is not authenticated"
    assert prove(lambda peer: peer.send(b"\x00")).returncode == FAILED + 19, "what is no message"
    assert prove(lambda peer: (peer.send(peer.model.message_1()), peer.receive())).returncode == FAILED + 17
    other = lambda peer: peer.send(peer.model.message_1(device_id=bytes(16)))
    assert prove(other).returncode == FAILED + 13, "a device that is not enrolled"


def test_a_prover_in_c_has_its_own_key(c_library, holdfast, tmp_path, peer_device):
    """`proof-keys --c` writes the keys of mpk.key; no warning of a default key follows, and an older program is refused."""
    model, descriptor, issuer = peer_device
    root = secrets.token_bytes(16)
    (tmp_path / "mpk.key").write_text(root.hex() + "\n")
    (tmp_path / "mpk.key").chmod(0o600)
    source = CommandLine(holdfast, tmp_path).succeed("proof-keys", "--c", tmp_path / "mpk.key")
    assert root not in source and root.hex().encode() not in source
    (tmp_path / "keys.c").write_bytes(source)
    c_library.compile(tmp_path / "prover", "-DOWN_KEYS", ROOT / "Tests/C/prover.c", tmp_path / "keys.c")
    prover = Prover(tmp_path, c_library, tmp_path, root=root)
    prover.enroll(issuer, model.key.point, descriptor, tmp_path)
    with ScriptedDevice(model, str(tmp_path / "s"), accept) as device:
        done = prover.run("prove", "unlock", HF_ENDPOINT=f"unix:{tmp_path}/s")
    assert device.fault is None and done.returncode == 0, done.stderr
    assert b"default key" not in done.stderr
    c_library.compile(tmp_path / "prover", ROOT / "Tests/C/prover.c")
    done = prover.run("prove", "unlock", HF_ENDPOINT=f"unix:{tmp_path}/s")
    assert done.returncode in (FAILED + 16, FAILED + 17), (
        "a program with the default key has not the key of the enrolment"
    )
    assert prover.run("begin").stderr.count(b"default key") == 1


@pytest.fixture
def lock(programs, c_library, holdfast, tmp_path):
    """The lock in C, served; it says what it does in `log`."""
    device = LinuxDevice(holdfast, tmp_path)
    device.prepare()
    with open(tmp_path / "log", "wb") as log:
        words = [programs / "lock", device.device_folder, f"unix:{device.socket}"]
        process = subprocess.Popen(words, env=c_library.environment, cwd=tmp_path, stdout=log, stderr=log)
        with running(process):
            transport.connect_when_ready(device.socket).close()
            yield device, process


def test_the_lock_in_c_is_moved_by_the_independent_prover(lock, tmp_path, encoding):
    device, process = lock
    with (prover := device.connect()).connection:
        grant = device.grant(encoding)
        outcome = prover.ask(grant)
        assert (outcome.status, outcome.result["result"]) == (STATUS["accepted"], b"unlocked")
        assert (tmp_path / "bolt").read_text() == "unlocked\n"
        assert prover.ask(grant, dmp=bytes(32)).status == STATUS["deviceMismatch"]
        assert prover.ask(grant, imp=bytes(32)).status == STATUS["integrityMismatch"]
        assert (tmp_path / "log").read_text().count("unlocked") == 1, "a denied command was carried out"
        (tmp_path / "bolt").unlink()
        (tmp_path / "bolt").mkdir()
        assert prover.ask(grant, "lock").status == STATUS["internal"], "a machine that fails"
    assert stop(process) == 0


def test_the_lock_in_c_is_moved_by_the_command_line(lock, tmp_path):
    device, process = lock
    service, descriptor = device.service()
    run = device.command_line
    run.succeed("enroll", "--device", descriptor, "--service", service, "--state", tmp_path / "phone")
    where = ("--connect", device.endpoint, "--state", tmp_path / "phone", "--timeout", "60")
    assert run.succeed("prove", *where, "--command", "unlock") == b"unlock: accepted, unlocked\n"
    assert run.run("prove", *where, "--command", "nothing").returncode == 1
    assert stop(process) == 0


def test_the_lock_refuses_a_folder_that_is_none(programs, c_library, tmp_path):
    words = [programs / "lock", tmp_path / "none", f"unix:{tmp_path}/s"]
    done = subprocess.run(words, env=c_library.environment, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (70, "lock: the folder or a file in it is missing\n")


def test_valgrind_finds_nothing_lost_or_wrong_in_the_lock(programs, c_library, holdfast, tmp_path):
    device = LinuxDevice(holdfast, tmp_path)
    device.prepare()
    words = [*VALGRIND, programs / "lock", device.device_folder, f"unix:{device.socket}"]
    with open(tmp_path / "log", "wb") as log:
        process = subprocess.Popen(words, env=c_library.environment, cwd=tmp_path, stdout=log, stderr=log)
        with running(process):
            transport.connect_when_ready(device.socket, 60).close()
            with (prover := device.connect()).connection:
                grant = device.grant(COSE)
                assert prover.ask(grant).status == STATUS["accepted"]
                assert prover.ask(grant, imp=bytes(32)).status == STATUS["integrityMismatch"]
                assert prover.ask(device.grant(JOSE), "lock").status == STATUS["accepted"]
            status = stop(process, 60)
    assert status == 0, (tmp_path / "log").read_text()[-3000:]


def test_valgrind_finds_nothing_lost_or_wrong_in_the_prover(programs, c_library, tmp_path, peer_device):
    """It enrols, proves both ways, and fails: none of that loses anything.

    The code that valgrind makes counts as injected, and is not the same in each run: such a proof is refused, and tried again.
    """
    model, descriptor, issuer = peer_device
    run("gcc", *STRICT[:3], "-shared", "-fPIC", "-o", tmp_path / "openat2.so", ROOT / "Tests/C/openat2.c")
    prover = Prover(programs, c_library, tmp_path, *VALGRIND)
    prover.environment |= {"LD_PRELOAD": str(tmp_path / "openat2.so")}
    path = str(tmp_path / "s")

    def proves():
        prover.enroll(issuer, model.key.point, descriptor, tmp_path, properties=None)
        for words in (("prove", "unlock"), ("over", path, "unlock")):
            # Under valgrind, measuring takes seconds.
            with ScriptedDevice(model, path, accept, timeout=60) as device:
                done = prover.run(*words, HF_ENDPOINT=f"unix:{path}")
            if repr(device.fault) == "Refused('WrongProof')":
                assert done.returncode == FAILED + 17, done.stderr.decode()
                return False
            assert device.fault is None, repr(device.fault)
            assert (done.returncode, done.stdout) == (0, b"accepted, 1: unlocked\n"), done.stderr.decode()
        return True

    assert any(proves() for _ in range(12)), "two proofs right after an enrolment, twelve times"
    for verb, words in (("prove", ["unlock"]), ("over", [tmp_path / "none", "unlock"]), ("accept", ["none", "none"])):
        done = prover.run(verb, *words, HF_ENDPOINT=f"unix:{tmp_path}/none")
        assert done.returncode > FAILED, done.stderr.decode()


def test_the_bench_in_python_proves_to_its_device(c_library, holdfast, tmp_path):
    run_ = CommandLine(holdfast, tmp_path)
    device = LinuxDevice(holdfast, tmp_path)
    device.prepare()
    service, _ = device.service()
    run_.succeed(
        "service",
        "approve",
        pathlib.Path(sys.executable).resolve(),
        "--dir",
        service,
        "--subject",
        "bench",
        "--version",
        "1.0.0",
    )
    example = tmp_path / "python-bench"
    shutil.copytree(ROOT / "Examples/python-bench", example)
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "holdfast").symlink_to(holdfast)
    environment = c_library.environment | run_.environment | {"PATH": f"{programs}:{os.environ['PATH']}"}
    words = [sys.executable, example / "bench.py", device.device_folder, tmp_path / "state", service, "5"]
    done = subprocess.run(list(map(str, words)), env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0 and done.stdout.startswith("5 proofs: accepted; 5 commands;"), done.stdout + done.stderr


PERSON = """
import json, sys, holdfast
sys.path.insert(0, sys.argv[1])
import bench
folder, state, service, endpoint, descriptor = sys.argv[2:]
def code_of_the_owner(*words):
    print(json.dumps(words), flush=True)
    return sys.stdin.readline().strip()
descriptor, old, new = json.loads(descriptor), holdfast.protection(b"482915"), holdfast.protection(b"736204")
with holdfast.Authenticator(folder, create=True) as keys, holdfast.Prover(state) as prover:
    user, device = keys.activate(endpoint, code_of_the_owner("add", "ann", "--otp", "hotp").lower(), old)
    assert (user, device.hex()) == ("ann", descriptor["device_id"])
    sys.argv[2] = state
    bench.enroll(prover, descriptor, service)
    record = keys.records("ann")[0]
    assert (record["purpose"], record["requires"], record["confirmed"]) == ("otp", ["pin"], True), record
    assert len(keys.records()) == 3 and keys.records("bob") == []
    ask = lambda pin: prover.prove(endpoint, "configure", user=user, otp=keys.password(secret=pin)).status
    assert ask(b"482915") == 0 and ask(b"482916") == 8
    said = keys.synchronise(prover, endpoint)
    assert said.device_id == device and said.otp_next == 1 and abs(said.clock_offset_seconds) < 60, said
    challenge = keys.check_host(prover, endpoint, "ann")
    assert len(challenge) == 16 and int(challenge, 16) >= 0
    for _ in range(5):
        prover.prove(endpoint, "configure", user=user, otp="000000")
    assert ask(b"482915") == 10
    holdfast.unlock(endpoint, code_of_the_owner("unlock", "ann"))
    assert ask(b"482915") == 0
    more = code_of_the_owner("add", "ann", "--replace")
    try:
        keys.activate(endpoint, more)
        raise SystemExit("records were replaced")
    except holdfast.Error as error:
        assert error.code == -26, error
    assert keys.activate(endpoint, more, old, replace=True)[0] == "ann" and ask(b"482915") == 0
    # A callback is code that is made at run time: from here on, this process proves nothing.
    def refused(code, call, *words, **more):
        try:
            call(*words, **more)
        except holdfast.Error as error:
            assert error.code == code, error
        else:
            raise SystemExit("not refused")
    shown = []
    refused(-5, keys.change, lambda code: False, old=old, new=new)
    refused(-29, keys.change, lambda code: True, old=old, new=holdfast.protection(b"1234"))
    keys.change(lambda code: shown.append(code) or True, old=old, new=new)
    refused(-30, keys.change, lambda code: True, old=new, new=old)
    # Another check character: of other characters, one change in 1,024 would be a well-formed code.
    refused(-1, keys.undo, "ann", shown[0][:-1] + ("1" if shown[0][-1] == "0" else "0"))
    assert len(shown) == 1 and keys.records()[0]["change_open"]
    keys.undo("ann", shown[0])
    refused(-30, keys.undo, "ann", shown[0])
    keys.change(lambda code: True, old=old, new=new)
    keys.confirm("ann", 1)
    refused(-30, keys.confirm, "ann")
    assert len(keys.password(secret=b"736204")) == 6
"""


def test_a_person_is_activated_unlocked_synchronised_and_changes_the_pin_through_c(c_library, holdfast, tmp_path):
    device = LinuxDevice(holdfast, tmp_path)
    device.prepare()
    service, descriptor = device.service()
    line = device.command_line
    python = pathlib.Path(sys.executable).resolve()
    line.succeed("service", "approve", python, "--dir", service, "--subject", "bench", "--version", "1.0.0")
    tools = tmp_path / "bin"
    tools.mkdir()
    (tools / "holdfast").symlink_to(holdfast)
    environment = c_library.environment | line.environment | {"PATH": f"{tools}:{os.environ['PATH']}"}
    owned = lambda *words: json.loads(device.owner("user", *words, "--json").stdout)["code"]
    device.start()
    with running(device.process):
        words = [tmp_path / "keys", tmp_path / "state", service, device.endpoint, descriptor.read_text()]
        words = [sys.executable, "-c", PERSON, ROOT / "Examples/python-bench", *words]
        person = subprocess.Popen(
            list(map(str, words)), env=environment, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )  # fmt: skip
        with running(person):
            for request in person.stdout:
                person.stdin.write(owned(*json.loads(request)) + "\n")
                person.stdin.flush()
            said = person.stderr.read()
            assert person.wait(60) == 0, said
    shown = line.read_json("otp", "list", "--authenticator", tmp_path / "keys")["records"]
    assert len(shown) == 3 and not any(record["change_open"] for record in shown)


@pytest.mark.parametrize("package", ["holdfast", "holdfast-static"])
def test_an_app_in_c_keeps_its_authenticator_itself_and_carries_its_messages(c_library, holdfast, tmp_path, package):
    c_library.compile(tmp_path / "person", ROOT / "Tests/C/person.c", package=package)
    needed = run("readelf", "--dynamic", "--wide", tmp_path / "person")
    assert ("libholdfast" in needed) == (package == "holdfast")
    device = LinuxDevice(holdfast, tmp_path)
    device.prepare()

    def person(*words, given="", before=()):
        words = [*before, tmp_path / "person", tmp_path / "file", *words]
        done = subprocess.run(
            list(map(str, words)), input=given, env=c_library.environment, capture_output=True, text=True, timeout=120
        )
        assert done.returncode in (0, *range(100, 131)), done.stdout + done.stderr
        return done.stdout if done.returncode == 0 else 100 - done.returncode

    device.start()
    with running(device.process):
        code = json.loads(device.owner("user", "add", "ann", "--otp", "hotp", "--json").stdout)["code"]
        mistyped = ("1" if code[0] == "0" else "0") + code[1:]
        assert person("activate", device.socket, given=mistyped + "\n482915\n") == -1, "a mistyped code"
        assert person("activate", device.socket, given=code + "\n1234\n") == -29, "a weak PIN, and the code stays good"
        assert person("activate", device.socket, given=code + "\n482915\n") == "ann, stored 3 times\n"
        assert person("activate", device.socket, given=code + "\n482915\n") == -25, "a used code"
    assert len(json.loads(person("records"))["records"]) == 3
    before = (tmp_path / "file").read_bytes()
    checked = VALGRIND if package == "holdfast" else ()
    first = person("password", given="482915\n", before=checked)
    assert re.fullmatch(r"[0-9]{6}, stored 1 times\n", first) and person("password", given="482915\n") != first
    assert person("password", given="48291\n") != first
    assert person("stamp") == "6 changes\n"
    (tmp_path / "file").write_bytes(before[:-1])
    assert person("records") == -9
    (tmp_path / "file").write_bytes(b"SQLite format 3")
    assert person("records") == -7


def test_a_static_program_gets_nothing_from_the_archive_but_the_header_s_functions(c_library):
    listed = run("nm", "--defined-only", "--extern-only", c_library.archive).splitlines()
    names = {line.split()[-1] for line in listed if len(line.split()) == 3}
    assert names == set(declarations(HEADER.read_text()))


def test_the_programs_of_the_document_are_a_device_and_a_prover(c_library, holdfast, tmp_path):
    """docs/c-interface.md, from its programs to the last of its commands."""
    page = (ROOT / "docs/c-interface.md").read_text()
    where = f"unix:{tmp_path}/s"
    device, prover = (
        text.replace("unix:/tmp/lock.sock", where) for text in re.findall(r"```c\n(.*?)```", page, re.DOTALL)
    )
    (tmp_path / "device.c").write_text(device)
    (tmp_path / "app.c").write_text(prover)
    command_line = CommandLine(holdfast, tmp_path)
    command_line.succeed("device", "init", "--dir", tmp_path / "device")
    command_line.succeed("service", "init", "--dir", tmp_path / "service")
    for name, folder in (("lock", "device"), ("service", "service")):
        text = command_line.succeed(folder, "show", "--dir", tmp_path / folder, "--json")
        (tmp_path / f"{name}.json").write_bytes(text)
    command_line.succeed("device", "trust", "--dir", tmp_path / "device", tmp_path / "service.json")
    command_line.succeed("service", "device", "add", "--dir", tmp_path / "service", tmp_path / "lock.json")
    c_library.compile(tmp_path / "serve", tmp_path / "device.c")
    tools = tmp_path / "bin"
    tools.mkdir()
    (tools / "holdfast").symlink_to(holdfast)
    environment = c_library.environment | command_line.environment | {"PATH": f"{tools}:{os.environ['PATH']}"}
    commands = re.search(r"(?m)^(    holdfast proof-keys --new .*\n(?:    .*\n)*)", page).group(1)
    log = tmp_path / "log"
    with open(log, "wb") as output:
        words = ["stdbuf", "-oL", tmp_path / "serve"]
        process = subprocess.Popen(words, env=environment, cwd=tmp_path, stdout=output, stderr=subprocess.DEVNULL)
    with running(process):
        transport.connect_when_ready(str(tmp_path / "s")).close()
        shell = ["sh", "-ec", commands]
        done = subprocess.run(shell, env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0 and done.stderr.endswith("accepted\n"), done.stdout + done.stderr
        assert "default key" not in done.stderr
        assert log.read_text() == "unlock\n"


def test_examples_are_short():
    """A person reads each in a few minutes."""
    code = re.sub(r"/\*.*?\*/", "", (ROOT / "Examples/c-lock/lock.c").read_text(), flags=re.DOTALL)
    assert sum(bool(line.strip()) for line in code.splitlines()) <= 80
    assert len((ROOT / "Tools/python/holdfast.py").read_text().splitlines()) <= 280
