"""Bad input to the C interface, through ctypes: each call refuses what is wrong, and none ends the process."""

import ctypes
import importlib.util
import json
import os
import queue
import shutil
import subprocess
import threading
import time

import pytest
from c_library import HEADER, declarations
from devices import LinuxDevice
from holdfast_peer import activation, cbor, oath, transport
from holdfast_peer import session as messages
from holdfast_peer.prover import Prover as Peer
from holdfast_peer.session import COSE, STATUS

ARGUMENT, BUFFER, ORDER, BUSY, CANCELLED = -1, -2, -3, -4, -5
MISSING, KIND, VERSION, DAMAGED, PERMISSION, FULL, SYSTEM = range(-6, -13, -1)
NOT_ENROLLED, ENROLLED, NO_BASELINE = -13, -14, -15
CONNECTION, TIMEOUT, PROTOCOL, IMPOSTOR, RECORD, CODE = -17, -18, -19, -20, -21, -22
BUFFERS = {
    "begin": 4096, "result": 1024, "proof": 32, "code": 17, "challenge": 64, "verdict": 1152,
}  # fmt: skip


@pytest.fixture(scope="module")
def hf(c_library):
    """The Python module over the library under test."""
    os.environ["HOLDFAST_LIBRARY"] = str(c_library.file)
    spec = importlib.util.spec_from_file_location("holdfast", c_library.python / "holdfast.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def made(holdfast, folder):
    """A device with an issuer of ours, which nobody serves, and a service."""
    device = LinuxDevice(holdfast, folder)
    device.prepare()
    return device


def expect(code, function, *arguments, **options):
    with pytest.raises(Exception) as raised:
        function(*arguments, **options)
    assert getattr(raised.value, "code", None) == code, repr(raised.value)


class Line:
    """A connection to a session: what the peer sends is received, and what is answered is sent."""

    def __init__(self, session):
        self.session, self.answers = session, queue.Queue()

    def receive(self):
        return self.session.challenge() if self.answers.empty() else self.answers.get()

    def send(self, message):
        self.answers.put(self.session.receive(message).message)


def nothing(command):
    return b"done"


# NULL and lengths


def test_null_is_refused_by_every_function(hf):
    """Each function with NULL and 0 for everything; those that close do nothing."""
    library = hf._library
    for name, declaration in declarations(HEADER.read_text()).items():
        count = 0 if declaration.endswith("(void)") else declaration.count(",") + 1
        if name in ("hf_text", "hf_protect_process"):
            continue
        result = getattr(library, name)(*[None] * count)
        if not name.endswith("_close"):
            assert result == ARGUMENT, name


def test_every_pointer_in_turn_is_refused_if_it_is_null(hf, made, tmp_path):
    library, length = hf._library, ctypes.c_size_t(4096)
    memory, size = ctypes.create_string_buffer(4096), ctypes.byref(length)
    request = ctypes.byref(hf._request("unlock"))
    with hf.Prover(str(tmp_path / "state")) as prover:
        calls = {
            "hf_prover_prove": (prover._handle, b"unix:/none", request),
            "hf_prover_accept": (prover._handle, b"{}", memory),
            "hf_prover_prove_over": (prover._handle, memory, request),
        }
        for name, pointers in calls.items():
            for index in range(len(pointers)):
                arguments = [None if i == index else p for i, p in enumerate(pointers)]
                more = [1, None, 0] if name == "hf_prover_accept" else [None, None, None, None]
                assert getattr(library, name)(*arguments, *more) == ARGUMENT, (name, index)
        assert library.hf_prover_explain(prover._handle, None, None, size) == ARGUMENT
        assert library.hf_prover_explain(prover._handle, None, memory, None) == ARGUMENT


@pytest.mark.parametrize("known_code", [False, True])
@pytest.mark.parametrize("tree_digests", [False, True])
def test_a_baseline_has_the_way_of_measuring_that_the_flags_say(hf, tmp_path, known_code, tree_digests):
    with hf.Prover(str(tmp_path / "state")) as prover:
        evidence = prover.begin(known_code=known_code, tree_digests=tree_digests)
    (configuration,) = tmp_path.rglob("measurement_config.bin")
    written = configuration.read_bytes()
    assert written in evidence
    policy = known_code * 1 + tree_digests * 2
    if policy:
        assert written[:3] == b"\xa7\x01\x02" and cbor.decode(written)[7] == policy
    else:
        assert written[:3] == b"\xa6\x01\x01"


@pytest.mark.parametrize("short", [0, 1, "one too small"])
def test_a_small_buffer_gives_the_needed_length_and_nothing_happens(hf, made, tmp_path, short):
    library = hf._library

    def refused(needed, function, *arguments, after=()):
        length = ctypes.c_size_t(needed - 1 if isinstance(short, str) else short)
        memory = ctypes.create_string_buffer(max(length.value, 1)) if length.value else None
        result = function(*arguments, memory, ctypes.byref(length), *after)
        assert (result, length.value) == (BUFFER, needed), function.__name__

    state = tmp_path / "state"
    with hf.Prover(str(state)) as prover:
        refused(BUFFERS["begin"], library.hf_prover_begin, prover._handle, None, None, None, 0)
        assert not state.exists(), "a baseline was taken"
        request = ctypes.byref(hf._request("unlock"))
        if short:
            refused(
                BUFFERS["result"], library.hf_prover_prove, prover._handle, b"unix:/none", request, None, after=(None,)
            )
        proof = (prover._handle, bytes(16), bytes(16), ctypes.c_size_t(16))
        refused(BUFFERS["proof"], library.hf_prover_integrity_proof, *proof)
    with hf.Device(str(made.device_folder), nothing) as device:
        needed = len(json.dumps(device.descriptor(), separators=(",", ":"))) + 1
        refused(needed, library.hf_device_descriptor, device._handle)
        with device.session() as session:
            refused(BUFFERS["challenge"], library.hf_session_challenge, session._handle)
            session.challenge()
            message = (session._handle, b"1", ctypes.c_size_t(1), ctypes.c_uint64(0))
            round_ = ctypes.byref(hf._Round())
            refused(BUFFERS["verdict"], library.hf_session_receive, *message, after=(round_,))
            assert session.receive(b"1").status == STATUS["malformed"], "the message is still answered"


LONG = "x" * 65


@pytest.mark.parametrize(
    "command, parameters, codes",
    [
        ("", [], {}),
        ("x" * 33, [], {}),
        ("unlock", [LONG], {}),
        ("unlock", ["x"] * 9, {}),
        ("unlock", [], {"user": "alice"}),
        ("unlock", [], {"otp": "123456"}),
        ("unlock", [], {"user": "alice", "otp": "12345a"}),
        ("unlock", [], {"user": "alice", "otp": "1" * 17}),
        ("unlock", [], {"user": "alice", "seal": ""}),
        ("unlock", [], {"user": "x" * 33, "otp": "123456"}),
        ("un\udcfflock", [], {}),
        ("unlock", ["\udcff"], {}),
    ],
)
def test_a_request_that_is_none_is_refused(hf, tmp_path, command, parameters, codes):
    with hf.Prover(str(tmp_path)) as prover:
        expect(ARGUMENT, prover.prove, "unix:/none", command, *parameters, **codes)


@pytest.mark.parametrize("endpoint", ["", "unix", "unix:", "nothing:/x", "unix:" + "x" * 5000, "unix:/\udcff"])
def test_an_endpoint_that_is_none_is_refused(hf, made, tmp_path, endpoint):
    with hf.Prover(str(tmp_path)) as prover:
        expect(ARGUMENT, prover.prove, endpoint, "unlock")
    with hf.Device(str(made.device_folder), nothing) as device:
        expect(ARGUMENT, device.serve, endpoint)
        expect(ARGUMENT, device.serve)


def test_other_values_out_of_range_are_refused(hf, made, tmp_path):
    with hf.Prover(str(tmp_path / "state")) as prover:
        for subject, version in (("", None), (LONG, None), ("app", (0, 0, 2**53))):
            expect(ARGUMENT, prover.begin, subject=subject, version=version)
        expect(ARGUMENT, prover.prove, "unix:/none", "unlock", timeout=3601)
        for nonce in (b"", bytes(15), bytes(17), b"\x80" + bytes(15)):
            expect(ARGUMENT, prover.nonce_proof, bytes(16), nonce)
        descriptor = json.loads(made.owner("show", "--json").stdout)
        for other in ("", "{}", "[]", {**descriptor, "kid": "00" * 8}, {**descriptor, "more": 1}):
            expect(ARGUMENT, prover.accept, other, b"token")
        for token in (b"", bytes(3073)):
            expect(ARGUMENT, prover.accept, descriptor, token)
        expect(ARGUMENT, prover.accept, descriptor, b"token", report={"issuer": 1})
        library = hf._library
        assert (
            library.hf_prover_begin(prover._handle, None, None, None, 8, None, ctypes.byref(ctypes.c_size_t(0)))
            == ARGUMENT
        )
    expect(ARGUMENT, hf.Device, str(made.device_folder), nothing, [""])
    expect(ARGUMENT, hf.Device, str(made.device_folder), nothing, ["x" * 33])
    with hf.Device(str(made.device_folder), nothing) as device, device.session() as session:
        expect(ARGUMENT, session.refuse, STATUS["accepted"])
        expect(ARGUMENT, session.refuse, 99)


def test_keys_that_are_none_are_refused(hf):
    function = ctypes.CFUNCTYPE(None, ctypes.c_uint32, ctypes.c_void_p)
    kinds = {"count": ctypes.c_uint32, "is_default": ctypes.c_uint32, "proof_key": function, "evidence_key": function}
    structure = type("Keys", (ctypes.Structure,), {"_fields_": list(kinds.items())})
    some, none, handle = function(lambda index, out: None), function(), ctypes.c_void_p()
    for count, proof_key, evidence_key in ((0, some, some), (65, some, some), (1, none, some), (1, some, none)):
        keys = structure(count, 0, proof_key, evidence_key)
        assert hf._library.hf_prover_open(b"state", ctypes.byref(keys), ctypes.byref(handle)) == ARGUMENT
        assert not handle


# Order


def test_calls_out_of_order_are_refused(hf, made, folder):
    with hf.Device(str(made.device_folder), nothing) as device:
        with device.session() as session:
            expect(ORDER, session.receive, b"x")
            session.challenge()
            expect(ORDER, device.serve, f"unix:{folder}/order")
            assert session.receive(b"").closes
            expect(ORDER, session.receive, b"x")
            expect(ORDER, session.challenge)
        with device.session() as session:
            session.challenge()
            session.refuse(STATUS["challengeExpired"])
            expect(ORDER, session.receive, b"x")
            session.challenge()
        device.stop()
        device.serve(f"unix:{folder}/order")  # It was stopped before, and returns at once.
        expect(ORDER, device.session)
    with hf.Prover(str(folder / "order-state")) as prover:
        prover.begin()
        expect(ENROLLED, prover.begin)
        prover.begin(replace=True)
        expect(NOT_ENROLLED, prover.explain)
        expect(NOT_ENROLLED, prover.prove, "unix:/none", "unlock")
        expect(NOT_ENROLLED, prover.nonce_proof, bytes(16), bytes(16))


# What has a token's form: a tag of CBOR.
TOKEN = b"\xd8\x60token"


@pytest.mark.parametrize("token", [b"", b"token", b"eyJ.a.b.c", bytes(100), b"\xd8\x60" + bytes(3071)])
def test_what_is_no_token_is_refused_and_the_baseline_still_waits(hf, made, tmp_path, token):
    descriptor = json.loads(made.owner("show", "--json").stdout)
    with hf.Prover(str(tmp_path / "state")) as prover:
        prover.begin()
        expect(ARGUMENT, prover.accept, descriptor, token)
        prover.accept(descriptor, TOKEN)


def test_an_enrolment_needs_its_baseline(hf, made, tmp_path):
    descriptor = json.loads(made.owner("show", "--json").stdout)
    with hf.Prover(str(tmp_path / "state")) as prover:
        expect(NO_BASELINE, prover.accept, descriptor, TOKEN)
        prover.begin(bytes.fromhex(descriptor["device_id"]))
        prover.accept(descriptor, TOKEN)
        prover.accept(descriptor, TOKEN)  # The same token again ends a call that failed in its last step.
        prover.begin(replace=True)
        expect(ENROLLED, prover.accept, descriptor, TOKEN + b"2")
        assert [d["device_id"] for d in prover.status()["devices"]] == [descriptor["device_id"]]
        states = {c["state"] for c in prover.explain()["devices"][0]["components"]}
        assert states == {"unchanged"}
        proofs = [
            prover.nonce_proof(bytes.fromhex(descriptor["device_id"]), bytes(16), of) for of in ("integrity", "device")
        ]
        assert len(set(proofs)) == 2 and {len(p) for p in proofs} == {32}


# Folders


def test_folders_of_another_kind_or_state_are_told_apart(hf, made, tmp_path):
    device, none = str(made.device_folder), str(tmp_path / "none")
    expect(MISSING, hf.Device, none, nothing)
    expect(MISSING, hf.Authenticator, none)
    expect(KIND, hf.Authenticator, device)
    with hf.Prover(device) as prover:
        expect(KIND, prover.begin)
    with hf.Prover("/etc/hostname") as prover:
        expect(KIND, prover.begin)
    copy = tmp_path / "copy"
    shutil.copytree(device, copy)
    description = copy / "device.json"
    whole = json.loads(description.read_text())
    for change, code in (({"version": 99}, VERSION), ({"kid": "00" * 8}, DAMAGED)):
        description.write_text(json.dumps(whole | change))
        expect(code, hf.Device, str(copy), nothing)
    description.write_text("{")
    expect(DAMAGED, hf.Device, str(copy), nothing)
    description.write_text(json.dumps(whole))
    copy.chmod(0o755)
    expect(PERMISSION, hf.Device, str(copy), nothing)
    copy.chmod(0o700)
    (copy / "ledger.sqlite").write_bytes(b"not a database" * 100)
    expect(DAMAGED, hf.Device, str(copy), nothing)


def test_a_device_that_is_open_is_busy_for_others(hf, made):
    with hf.Device(str(made.device_folder), nothing) as device:
        expect(BUSY, hf.Device, str(made.device_folder), nothing)
        with device.session() as session:
            session.challenge()
    hf.Device(str(made.device_folder), nothing).close()


def test_a_session_keeps_its_device_open(hf, made):
    device = hf.Device(str(made.device_folder), nothing)
    session = device.session()
    device.close()
    session.challenge()
    expect(BUSY, hf.Device, str(made.device_folder), nothing)
    session.close()
    hf.Device(str(made.device_folder), nothing).close()


@pytest.fixture
def small_disk(tmp_path):
    disk = tmp_path / "disk"
    disk.mkdir()
    words = ["mount", "-t", "tmpfs", "-o", "size=400k,mode=700", "tmpfs", disk]
    if os.geteuid() != 0 or subprocess.run(words, capture_output=True).returncode != 0:
        pytest.skip("nothing can be mounted here")
    yield disk
    subprocess.run(["umount", disk], check=False)


def fill(disk):
    with open(disk / "ballast", "wb", buffering=0) as out:
        try:
            while True:
                out.write(bytes(4096))
        except OSError:
            return


def test_a_full_disk_is_reported_and_nothing_is_lost(hf, made, small_disk):
    shutil.copytree(made.device_folder, small_disk / "device")
    grant = made.grant(COSE)
    moved = []
    with hf.Device(str(small_disk / "device"), lambda c: moved.append(c) or b"") as device, device.session() as session:
        assert Peer(Line(session), made.descriptor).ask(grant).status == STATUS["accepted"]
        fill(small_disk)
        outcome = Peer(Line(session), made.descriptor).ask(grant)
        assert outcome.status == STATUS["internal"] and len(moved) == 1, "what cannot be recorded is not carried out"
        with hf.Prover(str(small_disk / "state")) as prover:
            expect(FULL, prover.begin)
        (small_disk / "ballast").unlink()
        assert Peer(Line(session), made.descriptor).ask(grant).status == STATUS["accepted"]
    assert len(moved) == 2


# Callbacks and threads


def test_a_callback_that_fails_ends_in_internal_and_one_that_knows_no_such_command_too(hf, made):
    def fail(command):
        raise ValueError if command.name == "lock" else LookupError

    with hf.Device(str(made.device_folder), fail) as device, device.session() as session:
        peer = Peer(Line(session), made.descriptor)
        for command in ("lock", "unlock"):
            assert peer.ask(made.grant(COSE), command).status == STATUS["internal"]


def test_a_result_that_is_too_long_is_not_sent(hf, made):
    with hf.Device(str(made.device_folder), lambda _: bytes(1025)) as device, device.session() as session:
        assert Peer(Line(session), made.descriptor).ask(made.grant(COSE)).status == STATUS["internal"]
    with hf.Device(str(made.device_folder), lambda _: bytes(1024)) as device, device.session() as session:
        outcome = Peer(Line(session), made.descriptor).ask(made.grant(COSE))
        assert (outcome.status, len(outcome.result["result"])) == (STATUS["accepted"], 1024)


def test_the_machine_gets_the_command_and_its_parameters_but_no_text_with_a_nul(hf, made):
    seen = []
    ask = lambda *parameters: peer.ask(grant, request=messages.request("unlock", list(parameters))).status
    device = hf.Device(str(made.device_folder), lambda c: seen.append(c) or b"", ["unlock"])
    with device, device.session() as session:
        peer, grant = Peer(Line(session), made.descriptor), made.grant(COSE)
        assert ask("7", "é" * 32, "") == STATUS["accepted"]
        assert ask("7\0 8") == STATUS["internal"]
        assert peer.ask(grant, "lock").status != STATUS["accepted"], "the machine does not carry it out"
    assert [(c.name, c.parameters) for c in seen] == [("unlock", ["7", "é" * 32, ""])]


def test_a_session_serves_one_call_at_a_time_and_a_slow_machine_one_command(hf, made):
    begun, go = threading.Event(), threading.Event()

    def slow(command):
        begun.set()
        assert go.wait(30)
        return b"slow"

    statuses = []
    with hf.Device(str(made.device_folder), slow) as device, device.session() as session, device.session() as other:
        peer = Peer(Line(session), made.descriptor)
        thread = threading.Thread(target=lambda: statuses.append(peer.ask(made.grant(COSE)).status))
        thread.start()
        assert begun.wait(30)
        expect(BUSY, session.challenge)
        expect(BUSY, session.refuse, STATUS["malformed"])
        stranger = Peer(Line(other), made.descriptor)
        denied = stranger.ask(made.grant(COSE), "configure")
        assert denied.status != STATUS["accepted"], "a denied round does not wait for the machine"
        go.set()
        thread.join(30)
    assert statuses == [STATUS["accepted"]]


def test_one_prover_serves_several_threads(hf, tmp_path):
    """Calls at once on one handle: each has its own result."""
    codes, lock = [], threading.Lock()
    with hf.Prover(str(tmp_path / "state")) as prover:

        def begin():
            try:
                result = len(prover.begin(replace=True)) > 300
            except hf.Error as error:
                result = error.code
            with lock:
                codes.append(result)

        threads = [threading.Thread(target=begin) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
    assert len(codes) == 6 and set(codes) <= {True, BUSY} and True in codes


def test_messages_of_any_length_are_malformed_and_one_that_comes_late_has_expired(hf, made):
    for length in (0, 1, 4095, 4096, 4097, 100_000):
        with hf.Device(str(made.device_folder), nothing) as device, device.session() as session:
            session.challenge()
            verdict = session.receive(bytes(length))
            assert (verdict.status, verdict.closes) == (STATUS["malformed"], True), length
            assert messages.parse_message_3(verdict.message)["sealed"] is None
    with hf.Device(str(made.device_folder), nothing) as device, device.session() as session:
        line = Line(session)
        line.send = lambda message: line.answers.put(session.receive(message, 30_001).message)
        assert Peer(line, made.descriptor).ask(made.grant(COSE)).status == STATUS["challengeExpired"]


def test_a_peer_that_ends_in_the_middle_leaves_the_device_whole(hf, made, folder):
    path = folder / "middle"
    with hf.Device(str(made.device_folder), nothing) as device:
        server = threading.Thread(target=device.serve, args=(f"unix:{path}",))
        server.start()
        connection = transport.connect_when_ready(str(path))
        connection.receive()
        connection.close()
        peer = Peer(transport.connect(str(path)), made.descriptor)
        assert peer.ask(made.grant(COSE)).status == STATUS["accepted"]
        device.stop()
        server.join(30)
        assert not server.is_alive()
        expect(ORDER, device.serve, f"unix:{path}")


def test_no_listener_is_a_lost_connection_and_silence_a_timeout(hf, made, tmp_path):
    descriptor = json.loads(made.owner("show", "--json").stdout)
    with hf.Prover(str(tmp_path / "state")) as prover:
        prover.begin()
        prover.accept(descriptor, TOKEN)
        expect(CONNECTION, prover.prove, f"unix:{tmp_path}/none", "unlock")
        listener = transport.Listener(str(tmp_path / "silent"))
        try:
            expect(TIMEOUT, prover.prove, f"unix:{tmp_path}/silent", "unlock", timeout=0.05)
            result = []
            thread = threading.Thread(
                target=lambda: result.append(pytest.raises(hf.Error, prover.prove, f"unix:{tmp_path}/silent", "unlock"))
            )
            thread.start()
            while thread.is_alive():
                prover.cancel()
                thread.join(0.01)
            assert result[0].value.code == CANCELLED
        finally:
            listener.close()


def test_texts_are_there_for_every_number(hf):
    texts = [hf._library.hf_text(number) for number in [*range(18), *range(-30, 0)]]
    assert all(texts) and len(set(texts)) == len(texts)
    assert hf._library.hf_text(18) == hf._library.hf_text(-(2**31)) == b"no such result"
    version, length = ctypes.create_string_buffer(128), ctypes.c_size_t(128)
    assert hf._library.hf_version(version, ctypes.byref(length)) == 0
    assert length.value == len(version.value) + 1 > 1


# The authenticator

SECRET, SEAL_SECRET, SEAL_SUITE = bytes(range(20)), bytes(range(32)), "OCRA-1:HOTP-SHA256-8:QH64-T1M"


@pytest.fixture
def person(made, tmp_path):
    """An authenticator with one account for passwords, and what imports others."""
    folder, files = tmp_path / "keys", tmp_path

    def account(user, *method, pin="1357", secret=SECRET):
        (files / "secret").write_text(secret.hex())
        (files / "pin").write_text(pin or "")
        protection = ("--new-pin-file", files / "pin") if pin else ("--no-pin",)
        words = ("--format", "hex", "--user", user, *method, *protection, "--authenticator", folder)
        made.command_line.succeed("otp", "import", files / "secret", *words)

    account("alice", "--method", "hotp")
    return str(folder), account


def test_passwords_and_seals_are_those_of_the_independent_peer(hf, person):
    folder, account = person
    account("bob", "--method", "ocra", "--suite", SEAL_SUITE, "--purpose", "seal", pin=None, secret=SEAL_SECRET)
    with hf.Authenticator(folder) as keys:
        codes = [keys.password(secret=b"1357") for _ in range(3)]
        assert codes == [oath.hotp(SECRET, counter) for counter in range(3)]
        assert keys.password("alice", 1, b"1358") != oath.hotp(SECRET, 3), "a wrong PIN makes a wrong code"
        question = activation.seal_question("open-safe", ["7"])
        before = int(time.time()) // 60
        seal = keys.seal("open-safe", "7", user="bob")
        moments = range(before, int(time.time()) // 60 + 1)
        assert seal in {oath.ocra(SEAL_SUITE, SEAL_SECRET, question, time=moment) for moment in moments}


def test_what_an_authenticator_cannot_do_uses_up_no_code(hf, person):
    folder, account = person
    library = hf._library
    with hf.Authenticator(folder) as keys:
        expect(RECORD, keys.password, "nobody", secret=b"1357")
        expect(RECORD, keys.password, "alice", 2, b"1357")
        expect(RECORD, keys.seal, "unlock")
        expect(CODE, keys.password)
        for pin in (b"1", b"1234567", b"12a4"):
            expect(ARGUMENT, keys.password, secret=pin)
        expect(ARGUMENT, keys.password, "x" * 33, secret=b"1357")
        expect(ARGUMENT, keys.password, "alice", 9, b"1357")
        expect(ARGUMENT, keys.password, secret=b"1357", question="12345678")
        record = ctypes.byref(hf._Record(b"alice", 1, b"1357", 4))
        for size in (0, 1, BUFFERS["code"] - 1):
            code, length = ctypes.create_string_buffer(max(size, 1)), ctypes.c_size_t(size)
            result = library.hf_authenticator_password(keys._handle, record, None, code, ctypes.byref(length), None)
            assert (result, length.value, code.raw) == (BUFFER, BUFFERS["code"], bytes(max(size, 1)))
        record = ctypes.byref(hf._Record(b"alice", 1, None, 4))
        assert (
            library.hf_authenticator_password(keys._handle, record, None, code, ctypes.byref(length), None) == ARGUMENT
        )
        assert keys.password(secret=b"1357") == oath.hotp(SECRET, 0), "a code was used up"
        account("bob", "--method", "hotp", secret=SECRET[::-1])
        expect(RECORD, keys.password, secret=b"1357")


def test_threads_at_one_authenticator_get_different_codes(hf, person):
    codes = []
    with hf.Authenticator(person[0]) as keys:
        threads = [threading.Thread(target=lambda: codes.append(keys.password(secret=b"1357"))) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
    assert sorted(codes) == sorted(oath.hotp(SECRET, counter) for counter in range(4))


CODE_OF_AN_OWNER = b"0000-0000-0000-0000-0000-0"


def test_connections_codes_and_protections_that_are_none_are_refused(hf, tmp_path):
    library, name = hf._library, ctypes.create_string_buffer(33)
    some, length = ctypes.cast(name, ctypes.c_void_p), ctypes.c_size_t(33)
    with hf.Authenticator(str(tmp_path / "keys"), create=True) as keys:

        def activated(connection, code=CODE_OF_AN_OWNER, needs=None, flags=0):
            pointers = [each and ctypes.byref(each) for each in (connection, needs)]
            words = (
                keys._handle,
                pointers[0],
                code,
                pointers[1],
                ctypes.c_uint32(flags),
                name,
                ctypes.byref(length),
                None,
            )
            return library.hf_authenticator_activate(*words)

        none = f"unix:{tmp_path}/none".encode()
        place = hf._Connection(none, None, None, 0)
        for connection in (
            hf._Connection(None, None, None, 0), hf._Connection(none, some, None, 0), hf._Connection(b"no", None, None, 0),
            hf._Connection(none, None, None, 3_600_001), hf._Connection(None, some, None, 0),
        ):  # fmt: skip
            assert activated(connection) == ARGUMENT
            assert library.hf_authenticator_unlock(ctypes.byref(connection), CODE_OF_AN_OWNER) == ARGUMENT
        for code in (b"", b"0000", b"1" + CODE_OF_AN_OWNER[1:], b"0" * 200, b"\xff" * 26):
            assert activated(place, code) == ARGUMENT, code
            assert library.hf_authenticator_unlock(ctypes.byref(place), code) == ARGUMENT
        for needs in (
            hf.protection(b"123"), hf.protection(b"1234567"), hf.protection(b"12a4"), hf.protection(key=bytes(15)),
            hf.protection(key=bytes(1025)), hf.protection(binds_host=2), hf._Protection(None, 4, None, 0, 0),
            hf._Protection(b"1357", 2**63, None, 0, 0),
        ):  # fmt: skip
            assert activated(place, needs=needs) == ARGUMENT
        assert activated(place, flags=2) == ARGUMENT
        length.value = 32
        assert (activated(place), length.value) == (BUFFER, 33)
        assert activated(place) == CONNECTION and keys.records() == []
        expect(RECORD, keys.change, lambda code: True)
        expect(ARGUMENT, keys.undo, "ann", "no undo code")
        expect(ARGUMENT, keys.confirm, "ann", 9)
        expect(RECORD, keys.confirm, "ann")
        with hf.Prover(str(tmp_path / "state")) as prover:
            expect(RECORD, keys.synchronise, prover, none.decode())
            expect(RECORD, keys.check_host, prover, none.decode())


def test_a_store_that_fails_is_reported_and_changes_nothing(hf):
    load_type = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.POINTER(ctypes.c_size_t))
    sizes = (ctypes.c_void_p, ctypes.c_size_t)
    replace_type = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, *sizes, *sizes)
    structure = type(
        "Store",
        (ctypes.Structure,),
        {"_fields_": [("load", load_type), ("replace", replace_type), ("context", ctypes.c_void_p)]},
    )
    contents, answer = [b""], [0]

    def load(_, state, length):
        assert length[0] == 1 << 22
        ctypes.memmove(state, contents[0], min(len(contents[0]), length[0]))
        length[0] = len(contents[0])
        return answer[0]

    calls = load_type(load), replace_type(lambda *_: SYSTEM)

    def opened(store, state_id=None, count=0):
        handle = ctypes.c_void_p()
        pointer = store and ctypes.byref(store)
        words = (pointer, state_id, ctypes.c_uint64(count), ctypes.byref(handle))
        result = hf._library.hf_authenticator_open_store(*words)
        hf._library.hf_authenticator_close(handle)
        return result

    store = structure(*calls, None)
    assert opened(store) == 0
    assert opened(None) == opened(structure(load_type(), calls[1], None)) == ARGUMENT
    assert opened(structure(calls[0], replace_type(), None)) == ARGUMENT
    assert opened(store, bytes(16)) == opened(store, None, 1) == ARGUMENT
    assert opened(store, bytes(16), 1) == DAMAGED, "nothing where there was something"
    for answer[0] in (BUSY, FULL, PERMISSION, DAMAGED, SYSTEM):
        assert opened(store) == answer[0]
    answer[0] = 1
    assert opened(store) == SYSTEM
    answer[0] = 0
    for contents[0], code in ((b"x", KIND), (b"hfauth01", DAMAGED), (b"hfauth99" + bytes(8), VERSION)):
        assert opened(store) == code
    contents[0] = bytes((1 << 22) + 1)
    assert opened(store) == DAMAGED
