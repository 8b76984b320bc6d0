"""This peer as the device: what a device can bring about at `holdfast enroll` and `holdfast prove`, each test a check of one rule.

Each test begins with a fresh enrollment, with a token in each format where that matters. Exit statuses: 0 accepted, 1 denied,
2 malformed, 3 the device did not prove who it is, 69 not available.
"""

import json
import pathlib
import secrets
import time

import pytest
from holdfast_peer import cose, jose, measurement, session
from holdfast_peer.command_line import CommandLine, descriptor_json, spellings
from holdfast_peer.device import Device
from holdfast_peer.keys import PrivateKey, point_of_jwk
from holdfast_peer.primitives import sha256
from holdfast_peer.scripted_device import MOST_ROUNDS, ScriptedDevice
from holdfast_peer.session import STATUS
from holdfast_peer.state import enrolment

FORMATS = ("cose", "jose")
ACCEPTED, DENIED, MALFORMED, IMPOSTOR, INTERNAL, UNAVAILABLE = 0, 1, 2, 3, 70, 69


class ProverHost:
    """A device of ours, a service, and a fresh enrollment for each test."""

    def __init__(self, path, folder):
        self.folder = pathlib.Path(folder)
        self.command_line = CommandLine(path, folder)
        self.socket = str(self.folder / "device.socket")
        self.service = self.folder / "service"
        self.descriptor = self.folder / "device.json"
        self.key, self.device_id = PrivateKey(), secrets.token_bytes(16)
        self.issuer_point = self.device = self.state = self.format = None
        self.enrollments = 0

    def prepare(self):
        self.descriptor.write_text(json.dumps(descriptor_json(self.key, self.device_id)))
        self.command_line.succeed("service", "init", "--dir", self.service)
        self.command_line.succeed("service", "device", "add", "--dir", self.service, self.descriptor)
        shown = self.command_line.read_json("service", "show", "--dir", self.service)
        self.issuer_point = point_of_jwk(shown["issuer"])
        self.device = Device(self.key, self.device_id, [self.issuer_point])

    def enroll(self, token_format):
        """A new state folder, in `state`."""
        self.enrollments += 1
        self.state, self.format = self.folder / f"state-{self.enrollments}", token_format
        more = () if token_format == "cose" else ("--format", token_format)
        self.command_line.succeed(
            "enroll", "--device", self.descriptor, "--service", self.service, "--state", self.state, *more
        )
        return self.state

    def prove(self, script=None, *, command="unlock", more=(), seconds=60):
        """Runs `prove` against a device that acts as `script` says: the finished process, and the device with its record."""
        device = ScriptedDevice(self.device, self.socket, script)
        with device:
            done = self.command_line.run(
                "prove",
                "--connect",
                f"unix:{self.socket}",
                "--state",
                self.state,
                "--command",
                command,
                "--timeout",
                seconds,
                *more,
                timeout=120,
            )
        assert device.fault is None, f"the prover's message was refused: {device.fault!r}"
        return done, device

    def snapshot(self):
        """Every file of the state folder with its content and mode, but for the number of the prover's own last request."""
        return {
            str(p.relative_to(self.state)): (p.stat().st_mode, p.read_bytes() if p.is_file() else None)
            for p in sorted(self.state.rglob("*"))
            if p.name != "request_number"
        }


@pytest.fixture(scope="module")
def host(holdfast, folder):
    host = ProverHost(holdfast, folder)
    host.prepare()
    return host


def pytest_generate_tests(metafunc):
    formats = ("cose",) if metafunc.definition.get_closest_marker("cose_only") else FORMATS
    metafunc.parametrize("token_format", formats)


@pytest.fixture
def enrolled(host, token_format):
    """The prover's host, just after a fresh enrollment."""
    host.enroll(token_format)
    return host


cose_only = pytest.mark.cose_only


def expect_exit(done, allowed, what="exit status"):
    allowed = (allowed,) if isinstance(allowed, int) else allowed
    assert done.returncode in allowed, (
        f"{what}: expected {' or '.join(map(str, allowed))}, saw {done.returncode}: {done.stderr.decode(errors='replace')[-200:]}"
    )


def accept(peer):
    """A script: an honest device, for as long as the prover likes."""
    for _ in range(MOST_ROUNDS):
        peer.honest()


def unsealed(status):
    """A script: the same status without a sealed part in every round."""

    def script(peer):
        for _ in range(MOST_ROUNDS):
            peer.send(peer.model.message_1())
            peer.receive()
            peer.send(session.message_3(status, None))

    return script


def sealed(status, **result):
    """A script: the same status in every round, sealed as it should be."""

    def script(peer):
        for _ in range(MOST_ROUNDS):
            peer.send(peer.second().reply(status, **result))

    return script


def answered(make):
    """A script: M3 is what `make(second)` gives."""

    def script(peer):
        for _ in range(MOST_ROUNDS):
            peer.send(make(peer.second()))

    return script


def seconds_of(device):
    return [session.parse_message_2(message) for message in device.received]


def token_of(enrolled):
    """The enrolled token's bytes and its claims, opened and verified here."""
    token = (enrolment(enrolled.state) / f"measurement_token.{enrolled.format}").read_bytes()
    module, token = (cose, token) if enrolled.format == "cose" else (jose, token.strip())
    claims, signer = module.open_token(token, enrolled.key, [enrolled.issuer_point], enrolled.device_id)
    assert signer == enrolled.issuer_point, "verifying key"
    return token, claims


# Enrollment


def test_enrollment_writes_a_token_that_opens_and_a_configuration_that_fits_it(enrolled):
    now = time.time()
    token, claims = token_of(enrolled)
    assert claims["issuedAt"] <= now + 5 and now < claims["expires"], "the token is not valid now"
    assert now - claims["issuedAt"] < 300, "the token was not issued now"
    configuration = measurement.parse_configuration((enrolment(enrolled.state) / "measurement_config.bin").read_bytes())
    assert configuration["mpkId"] == measurement.proof_key_id(claims["proofKey"]), "proof key id"
    assert abs(configuration["created"] - now) < 300, "the configuration was not made now"
    missing = {"app.image", "app.text", "app.injected", "app.debug", "os.release"} - set(configuration["app"])
    missing |= {"device.machine", "device.cpu", "device.secret"} - set(configuration["device"])
    assert not missing, f"missing components: {sorted(missing)}"
    if enrolled.format == "cose":
        assert len(token) <= 450, f"the token has {len(token)} bytes"


def test_every_enrollment_has_a_fresh_baseline(enrolled):
    def baseline():
        _, claims = token_of(enrolled)
        configuration = measurement.parse_configuration(
            (enrolment(enrolled.state) / "measurement_config.bin").read_bytes()
        )
        return configuration["salt"], claims["tokenId"], claims["integrity"], claims["device"]

    first = baseline()
    enrolled.enroll(enrolled.format)
    for name, one, other in zip(("salt", "token id", "integrity", "device"), first, baseline()):
        assert one != other, f"the same {name} twice"


def test_neither_measurements_nor_digests_are_in_the_state_folder(enrolled):
    secrets_of = dict(zip(("IM", "DM"), (token_of(enrolled)[1][name] for name in ("integrity", "device"))))
    secrets_of["digest of os.release"] = sha256(pathlib.Path("/etc/os-release").read_bytes())
    secrets_of["digest of the executable"] = sha256(pathlib.Path(enrolled.command_line.path).read_bytes())

    def search(when):
        for path in enrolled.state.rglob("*"):
            content = path.read_bytes() if path.is_file() else b""
            for name, value in secrets_of.items():
                assert not any(s in content for s in spellings(value)), f"{name} is in {path.name} {when}"

    search("after enrollment")
    enrolled.prove(accept)
    search("after a proof")


# An honest device


def test_the_first_proof_sends_the_token_in_full_the_second_a_reference(enrolled):
    token, _ = token_of(enrolled)
    done, record = enrolled.prove(accept)
    expect_exit(done, ACCEPTED)
    [second] = seconds_of(record)
    assert second["encoding"] == {"cose": session.COSE, "jose": session.JOSE}[enrolled.format], "encoding"
    assert second["token"] == token, "token"
    if enrolled.format == "cose":
        assert len(record.received[0]) <= 672, f"M2 has {len(record.received[0])} bytes"
    done, record = enrolled.prove(accept)
    expect_exit(done, ACCEPTED, "second exit status")
    [again] = seconds_of(record)
    assert (again["encoding"], again["token"]) == (session.REFERENCE, session.token_reference(token)), "second M2"
    assert again["proverRandom"] != second["proverRandom"], "the same random twice"


def test_a_device_that_forgot_the_token_gets_it_in_full_on_the_same_connection(enrolled):
    token, _ = token_of(enrolled)
    expect_exit(enrolled.prove(accept)[0], ACCEPTED, "first exit status")
    enrolled.device.remembered.clear()
    done, record = enrolled.prove(accept)
    expect_exit(done, ACCEPTED)
    by_reference, in_full = seconds_of(record)
    assert by_reference["encoding"] == session.REFERENCE, "first encoding"
    assert in_full["token"] == token, "token"
    assert record.connections == 1, "connections"
    assert by_reference["proverRandom"] != in_full["proverRandom"], "the same random twice"


def test_the_request_says_the_command_and_nothing_more(enrolled):
    requests = []

    def script(peer):
        second = peer.second()
        requests.append(second.request())
        peer.send(second.reply(0, b"locked"))

    for command in ("unlock", "lock"):
        expect_exit(enrolled.prove(script, command=command)[0], ACCEPTED)
    assert [r["command"] for r in requests] == ["unlock", "lock"], "commands"
    assert all(not r.get("parameters") and "otp" not in r and "seal" not in r for r in requests), "more than a command"


def test_everything_that_m3_may_hold_is_taken(enrolled):
    script = answered(
        lambda second: second.reply(0, secrets.token_bytes(1024), clock=2**53 - 1, floor=3, retry_after=1, missing=0)
    )
    expect_exit(enrolled.prove(script)[0], ACCEPTED)
    expect_exit(enrolled.prove(answered(lambda second: second.reply(0, b"")))[0], ACCEPTED, "with an empty result")


def test_a_device_without_a_clock_and_any_hint_is_answered(enrolled):
    for changes in ({"clock": None}, {"clock": 0}, {"required": 0}, {"required": 3}):

        def script(peer, changes=changes):
            peer.send(peer.second(**changes).reply(0, b"unlocked"))

        expect_exit(enrolled.prove(script)[0], ACCEPTED, f"{changes}")


def test_json_prints_one_object_with_a_status_accepted_or_denied(enrolled):
    for script, code in ((accept, ACCEPTED), (sealed(STATUS["commandRefused"]), DENIED)):
        done, _ = enrolled.prove(script, more=("--json",))
        expect_exit(done, code)
        value = json.loads(done.stdout)
        assert isinstance(value, dict) and "status" in value, "no object with a status"


# Denials

SEALED_DENIALS = {name: {} for name, number in STATUS.items() if number in session.AUTHENTICATED and name != "accepted"}
SEALED_DENIALS |= {
    "tokenRevoked": {"floor": 2},
    "lockedOut": {"retry_after": 30},
    "factorMissing": {"missing": session.OTP},
}


def test_every_authenticated_denial_ends_with_status_1(enrolled):
    for name, result in SEALED_DENIALS.items():
        done, record = enrolled.prove(sealed(STATUS[name], **result))
        expect_exit(done, DENIED, name)
        assert len(record.received) <= 4, f"{name}: {len(record.received)} messages"


def test_an_unauthenticated_denial_ends_with_another_status_than_0_and_the_state_folder_stays_as_it_was(enrolled):
    others = {
        "challengeExpired": (DENIED, IMPOSTOR, UNAVAILABLE),
        "malformed": (DENIED, MALFORMED),
        "busy": (DENIED, UNAVAILABLE),
        "internal": (DENIED, INTERNAL),
    }
    for known in (False, True):
        if known:
            expect_exit(enrolled.prove(accept)[0], ACCEPTED, "a first proof")
        before = enrolled.snapshot()
        for name in ("tokenInvalid", "deviceMismatch", "tokenUnknown", *others):
            done, record = enrolled.prove(unsealed(STATUS[name]))
            expect_exit(done, others.get(name, DENIED), name)
            assert len(record.received) <= 4, f"{name}: {len(record.received)} messages"
            assert enrolled.snapshot() == before, f"{name} changed the state folder"


def test_a_device_that_never_knows_the_token_is_asked_no_more_than_twice(enrolled):
    expect_exit(enrolled.prove(accept)[0], ACCEPTED, "a first proof")
    done, record = enrolled.prove(unsealed(STATUS["tokenUnknown"]))
    expect_exit(done, DENIED)
    assert [s["encoding"] != session.REFERENCE for s in seconds_of(record)] == [False, True], "token in full"


# Impostors


def test_an_acceptance_that_is_not_sealed_is_an_impostors(enrolled):
    before = enrolled.snapshot()
    expect_exit(enrolled.prove(unsealed(STATUS["accepted"]))[0], IMPOSTOR)
    assert enrolled.snapshot() == before, "the state folder changed"


def test_a_denial_from_tokenrevoked_on_that_is_not_sealed_is_an_impostors(enrolled):
    before = enrolled.snapshot()
    for name in SEALED_DENIALS:
        expect_exit(enrolled.prove(unsealed(STATUS[name]))[0], IMPOSTOR, name)
        assert enrolled.snapshot() == before, f"{name} changed the state folder"


def test_a_sealed_part_under_another_key_direction_or_round_is_an_impostors(enrolled):
    plaintext = session.result(b"unlocked")

    def reflected(second):
        return session.message_3(
            0, session.gcm_seal(second.made.prover_to_device, bytes(12), plaintext, second.made.transcript + b"\x00")
        )

    def random_key(second):
        return session.message_3(
            0, session.gcm_seal(secrets.token_bytes(32), bytes(12), plaintext, second.made.transcript + b"\x00")
        )

    def no_status(second):
        return session.message_3(
            0, session.gcm_seal(second.made.device_to_prover, bytes(12), plaintext, second.made.transcript)
        )

    def flipped(second):
        m3 = second.reply(0, b"unlocked")
        return m3[:-1] + bytes([m3[-1] ^ 1])

    before = enrolled.snapshot()
    for make in (
        reflected,
        random_key,
        no_status,
        flipped,
        lambda second: session.message_3(0, b""),
        lambda second: session.message_3(0, bytes(16)),
        lambda second: session.message_3(0, second.fields["sealed"]),
    ):
        expect_exit(enrolled.prove(answered(make))[0], IMPOSTOR, make.__name__)
        assert enrolled.snapshot() == before, f"{make.__name__} changed the state folder"


def test_an_m3_of_an_earlier_round_is_an_impostors(enrolled):
    earlier = []

    def first(peer):
        earlier.append(peer.second().reply(0, b"unlocked"))
        peer.send(earlier[0])

    expect_exit(enrolled.prove(first)[0], ACCEPTED, "the earlier round")
    expect_exit(enrolled.prove(unsealed_bytes(earlier))[0], IMPOSTOR)


def unsealed_bytes(messages):
    """A script: the first of `messages` as M3, whatever the M2."""

    def script(peer):
        for _ in range(MOST_ROUNDS):
            peer.send(peer.model.message_1())
            peer.receive()
            peer.send(messages[0])

    return script


def test_an_m3_whose_status_was_changed_is_an_impostors(enrolled):
    for made, shown in (
        (STATUS["commandRefused"], 0),
        (0, STATUS["commandRefused"]),
        (STATUS["tokenExpired"], STATUS["tokenRevoked"]),
        (STATUS["tokenInvalid"], 0),
    ):

        def change(second, made=made, shown=shown):
            return session.message_3(shown, second.made.seal_result(made, session.result(b"")))

        expect_exit(enrolled.prove(answered(change))[0], IMPOSTOR, f"{made} shown as {shown}")


def test_another_device_id_key_id_or_version_in_m1_is_answered_with_nothing(enrolled):
    def first(message):
        def script(peer):
            peer.send(message(peer.model))
            peer.receive()

        return script

    def version(model):
        m1 = model.message_1()
        assert m1[:3] == b"\x87\x01\x01"
        return m1[:2] + b"\x02" + m1[3:]

    for what, message, allowed in (
        ("device id", lambda model: model.message_1(device_id=secrets.token_bytes(16)), MALFORMED),
        ("key id", lambda model: model.message_1(kid=secrets.token_bytes(8)), MALFORMED),
        ("version", version, MALFORMED),
    ):
        done, record = enrolled.prove(first(message))
        expect_exit(done, allowed, what)
        assert record.received == [], f"{what}: messages sent"


# Bad peers


def sends(message):
    """A script: `message` in place of M1."""

    def script(peer):
        peer.send(message(peer.model) if callable(message) else message)
        peer.receive()

    return script


@cose_only
def test_garbage_in_place_of_m1_is_answered_with_nothing(enrolled):
    for what, message in (
        ("a zero byte", b"\x00"),
        ("random bytes", secrets.token_bytes(100)),
        ("text", b"HTTP/1.1 200 OK\r\n\r\n"),
        ("an empty array", b"\x80"),
        ("deep nesting", b"\x81" * 4096),
        ("a huge length", b"\x9b" + b"\xff" * 8),
        ("M1 and a byte", lambda model: model.message_1() + b"\x00"),
        ("M1 cut short", lambda model: model.message_1()[:-1]),
        ("M1 of indefinite length", lambda model: b"\x9f" + model.message_1()[1:] + b"\xff"),
        ("M1 with a longer integer than needed", lambda model: b"\x87\x18\x01" + model.message_1()[2:]),
        ("M3 in its place", session.message_3(0, None)),
        ("4096 bytes", lambda model: model.message_1() + bytes(4096 - len(model.message_1()))),
        ("4097 bytes", lambda model: model.message_1() + bytes(4097 - len(model.message_1()))),
        ("65000 bytes", lambda model: model.message_1() + bytes(65000 - len(model.message_1()))),
    ):
        done, record = enrolled.prove(sends(message))
        expect_exit(done, (MALFORMED, IMPOSTOR), what)
        assert record.received == [], f"{what}: messages sent"


@cose_only
def test_garbage_in_place_of_m3_is_malformed_or_an_impostors(enrolled):
    before = enrolled.snapshot()
    for what, make in (
        ("a zero byte", lambda second: b"\x00"),
        ("random bytes", lambda second: secrets.token_bytes(60)),
        ("M3 and a byte", lambda second: second.reply(0, b"unlocked") + b"\x00"),
        ("M3 cut short", lambda second: second.reply(0, b"unlocked")[:-1]),
        ("a longer integer than needed", lambda second: b"\x83\x18\x03" + second.reply(0, b"unlocked")[2:]),
        ("4097 bytes", lambda second: session.message_3(0, bytes(4090))),
        ("an element too many", lambda second: b"\x84" + second.reply(0, b"unlocked")[1:] + b"\xf6"),
        ("a result that is no map", lambda second: session.message_3(0, second.made.seal_result(0, b"\x80"))),
        (
            "a highest number that is no number",
            lambda second: session.message_3(0, second.made.seal_result(0, b"\xa2\x01\x40\x06\x40")),
        ),
        ("a result unsorted", lambda second: session.message_3(0, second.made.seal_result(0, b"\xa2\x02\x00\x01\x40"))),
        ("a result of 1025 bytes", lambda second: second.reply(0, bytes(1025))),
    ):
        done, _ = enrolled.prove(answered(make))
        expect_exit(done, (MALFORMED, IMPOSTOR), what)
        assert enrolled.snapshot() == before, f"{what} changed the state folder"


@cose_only
def test_labels_that_a_later_version_may_add_to_the_sealed_part_are_ignored(enrolled):
    later = b"\xa2\x01\x48unlocked\x07\x00"
    done, _ = enrolled.prove(answered(lambda second: session.message_3(0, second.made.seal_result(0, later))))
    expect_exit(done, ACCEPTED)


@cose_only
def test_an_enrollment_that_fails_over_another_leaves_the_other_as_it_is(enrolled):
    blocked = enrolled.state / "devices" / f".new-{enrolment(enrolled.state).name}"
    (blocked / "folder").mkdir(parents=True)
    before = enrolled.snapshot()
    shown = enrolled.command_line.run(
        "enroll",
        "--device",
        enrolled.descriptor,
        "--service",
        enrolled.service,
        "--state",
        enrolled.state,
        "--format",
        "jose",
        "--replace",
    )
    assert shown.returncode != ACCEPTED, "a folder in the new one's place was no fault"
    assert enrolled.snapshot() == before, "the enrollment changed"
    expect_exit(enrolled.prove(accept)[0], ACCEPTED)
    (blocked / "folder").rmdir()


@cose_only
def test_a_configuration_of_libcrypto_that_the_environment_names_is_not_read(enrolled):
    file = enrolled.folder / "openssl.cnf"
    file.write_text("openssl_conf = a\n[a]\nalg_section = b\n[b]\ndefault_properties = fips=yes\n")
    enrolled.command_line.environment["OPENSSL_CONF"] = str(file)
    try:
        done, _ = enrolled.prove(accept)
    finally:
        del enrolled.command_line.environment["OPENSSL_CONF"]
    expect_exit(done, ACCEPTED)


@cose_only
def test_nobody_listening_is_not_available(enrolled):
    before = enrolled.snapshot()
    expect_exit(enrolled.prove(None)[0], UNAVAILABLE)
    assert enrolled.snapshot() == before, "the state folder changed"


@cose_only
def test_a_device_that_closes_at_once_is_not_available(enrolled):
    expect_exit(enrolled.prove(lambda peer: None)[0], UNAVAILABLE)


@cose_only
def test_a_device_that_closes_in_place_of_m3_is_not_available(enrolled):
    before = enrolled.snapshot()
    expect_exit(enrolled.prove(lambda peer: peer.second())[0], UNAVAILABLE)
    assert enrolled.snapshot() == before, "the state folder changed"


@cose_only
def test_a_silent_device_is_left_in_bounded_time(enrolled):
    def before_m1(peer):
        peer.connection.receive(timeout=60)

    def before_m3(peer):
        peer.second()
        peer.connection.receive(timeout=60)

    for script in (before_m1, before_m3):
        done, _ = enrolled.prove(script, seconds=2)
        expect_exit(done, (DENIED, IMPOSTOR, UNAVAILABLE), script.__name__)
        assert 1 < done.seconds < 50, f"{script.__name__}: it took {done.seconds:.1f} s"
