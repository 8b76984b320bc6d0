"""The situations that a device can bring about at `holdfast enroll` and `holdfast prove`, each a check of one rule.

A situation gets the world just after a fresh enrollment. Exit statuses: 0 accepted, 1 denied, 2 malformed, 3 the device did
not prove who it is, 69 not available.
"""

import json
import pathlib
import secrets
import time

from holdfast_peer import cose, jose, measurement, session
from holdfast_peer.checks import expect, expect_equal
from holdfast_peer.command_line import spellings
from holdfast_peer.primitives import sha256
from holdfast_peer.scripted_device import MOST_ROUNDS
from holdfast_peer.session import STATUS
from holdfast_peer.state import enrolment

FORMATS, COSE_ONLY = ("cose", "jose"), ("cose",)
ACCEPTED, DENIED, MALFORMED, IMPOSTOR, INTERNAL, UNAVAILABLE = 0, 1, 2, 3, 70, 69
SITUATIONS = []


def situation(name, formats=FORMATS):
    def register(body):
        SITUATIONS.append((name, body, formats))
        return body
    return register


def expect_exit(done, allowed, what="exit status"):
    allowed = (allowed,) if isinstance(allowed, int) else allowed
    expect(done.returncode in allowed,
           f"{what}: expected {' or '.join(map(str, allowed))}, saw {done.returncode}: {done.stderr.decode(errors='replace')[-200:]}")


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


def token_of(world):
    """The enrolled token's bytes and its claims, opened and verified here."""
    token = (enrolment(world.state) / f"measurement_token.{world.format}").read_bytes()
    module, token = (cose, token) if world.format == "cose" else (jose, token.strip())
    claims, signer = module.open_token(token, world.key, [world.issuer_point], world.device_id)
    expect_equal(signer, world.issuer_point, "verifying key")
    return token, claims


# Enrollment

@situation("enrollment writes a token that opens, and a configuration that fits it")
def _(world):
    now = time.time()
    token, claims = token_of(world)
    expect(claims["issuedAt"] <= now + 5 and now < claims["expires"], "the token is not valid now")
    expect(now - claims["issuedAt"] < 300, "the token was not issued now")
    configuration = measurement.parse_configuration((enrolment(world.state) / "measurement_config.bin").read_bytes())
    expect_equal(configuration["mpkId"], measurement.proof_key_id(claims["proofKey"]), "proof key id")
    expect(abs(configuration["created"] - now) < 300, "the configuration was not made now")
    missing = {"app.image", "app.text", "app.injected", "app.debug", "os.release"} - set(configuration["app"])
    missing |= {"device.machine", "device.cpu", "device.secret"} - set(configuration["device"])
    expect(not missing, f"missing components: {sorted(missing)}")
    if world.format == "cose":
        expect(len(token) <= 450, f"the token has {len(token)} bytes")


@situation("every enrollment has a fresh baseline")
def _(world):
    def baseline():
        _, claims = token_of(world)
        configuration = measurement.parse_configuration((enrolment(world.state) / "measurement_config.bin").read_bytes())
        return configuration["salt"], claims["tokenId"], claims["integrity"], claims["device"]

    first = baseline()
    world.enroll(world.format)
    for name, one, other in zip(("salt", "token id", "integrity", "device"), first, baseline()):
        expect(one != other, f"the same {name} twice")


@situation("neither measurements nor digests are in the state folder")
def _(world):
    secrets_of = dict(zip(("IM", "DM"), (token_of(world)[1][name] for name in ("integrity", "device"))))
    secrets_of["digest of os.release"] = sha256(pathlib.Path("/etc/os-release").read_bytes())
    secrets_of["digest of the executable"] = sha256(pathlib.Path(world.command_line.path).read_bytes())

    def search(when):
        for path in world.state.rglob("*"):
            content = path.read_bytes() if path.is_file() else b""
            for name, value in secrets_of.items():
                expect(not any(s in content for s in spellings(value)), f"{name} is in {path.name} {when}")

    search("after enrollment")
    world.prove(accept)
    search("after a proof")


# An honest device

@situation("the first proof sends the token in full, the second a reference")
def _(world):
    token, _ = token_of(world)
    done, record = world.prove(accept)
    expect_exit(done, ACCEPTED)
    [second] = seconds_of(record)
    expect_equal(second["encoding"], {"cose": session.COSE, "jose": session.JOSE}[world.format], "encoding")
    expect_equal(second["token"], token, "token")
    if world.format == "cose":
        expect(len(record.received[0]) <= 672, f"M2 has {len(record.received[0])} bytes")
    done, record = world.prove(accept)
    expect_exit(done, ACCEPTED, "second exit status")
    [again] = seconds_of(record)
    expect_equal((again["encoding"], again["token"]), (session.REFERENCE, session.token_reference(token)), "second M2")
    expect(again["proverRandom"] != second["proverRandom"], "the same random twice")


@situation("a device that forgot the token gets it in full on the same connection")
def _(world):
    token, _ = token_of(world)
    expect_exit(world.prove(accept)[0], ACCEPTED, "first exit status")
    world.device.remembered.clear()
    done, record = world.prove(accept)
    expect_exit(done, ACCEPTED)
    by_reference, in_full = seconds_of(record)
    expect_equal(by_reference["encoding"], session.REFERENCE, "first encoding")
    expect_equal(in_full["token"], token, "token")
    expect_equal(record.connections, 1, "connections")
    expect(by_reference["proverRandom"] != in_full["proverRandom"], "the same random twice")


@situation("the request says the command and nothing more")
def _(world):
    requests = []

    def script(peer):
        second = peer.second()
        requests.append(second.request())
        peer.send(second.reply(0, b"locked"))

    for command in ("unlock", "lock"):
        expect_exit(world.prove(script, command=command)[0], ACCEPTED)
    expect_equal([r["command"] for r in requests], ["unlock", "lock"], "commands")
    expect(all(not r.get("parameters") and "otp" not in r and "seal" not in r for r in requests), "more than a command")


@situation("everything that M3 may hold is taken")
def _(world):
    script = answered(lambda second: second.reply(0, secrets.token_bytes(1024), clock=2**53 - 1, floor=3, retry_after=1, missing=0))
    expect_exit(world.prove(script)[0], ACCEPTED)
    expect_exit(world.prove(answered(lambda second: second.reply(0, b"")))[0], ACCEPTED, "with an empty result")


@situation("a device without a clock, and any hint, is answered")
def _(world):
    for changes in ({"clock": None}, {"clock": 0}, {"required": 0}, {"required": 3}):
        def script(peer, changes=changes):
            peer.send(peer.second(**changes).reply(0, b"unlocked"))
        expect_exit(world.prove(script)[0], ACCEPTED, f"{changes}")


@situation("--json prints one object with a status, accepted or denied")
def _(world):
    for script, code in ((accept, ACCEPTED), (sealed(STATUS["commandRefused"]), DENIED)):
        done, _ = world.prove(script, more=("--json",))
        expect_exit(done, code)
        value = json.loads(done.stdout)
        expect(isinstance(value, dict) and "status" in value, "no object with a status")


# Denials

SEALED_DENIALS = {name: {} for name in ("tokenRevoked", "tokenExpired", "versionTooOld", "usesExhausted", "integrityMismatch",
                                        "commandRefused", "otpRejected", "sealRejected")}
SEALED_DENIALS |= {"tokenRevoked": {"floor": 2}, "lockedOut": {"retry_after": 30}, "factorMissing": {"missing": session.OTP}}


@situation("every authenticated denial ends with status 1")
def _(world):
    for name, result in SEALED_DENIALS.items():
        done, record = world.prove(sealed(STATUS[name], **result))
        expect_exit(done, DENIED, name)
        expect(len(record.received) <= 4, f"{name}: {len(record.received)} messages")


@situation("an unauthenticated denial ends with another status than 0, and the state folder stays as it was")
def _(world):
    others = {"challengeExpired": (DENIED, IMPOSTOR, UNAVAILABLE), "malformed": (DENIED, MALFORMED), "busy": (DENIED, UNAVAILABLE),
              "internal": (DENIED, INTERNAL)}
    for known in (False, True):
        if known:
            expect_exit(world.prove(accept)[0], ACCEPTED, "a first proof")
        before = world.snapshot()
        for name in ("tokenInvalid", "deviceMismatch", "tokenUnknown", *others):
            done, record = world.prove(unsealed(STATUS[name]))
            expect_exit(done, others.get(name, DENIED), name)
            expect(len(record.received) <= 4, f"{name}: {len(record.received)} messages")
            expect(world.snapshot() == before, f"{name} changed the state folder")


@situation("a device that never knows the token is asked no more than twice")
def _(world):
    expect_exit(world.prove(accept)[0], ACCEPTED, "a first proof")
    done, record = world.prove(unsealed(STATUS["tokenUnknown"]))
    expect_exit(done, DENIED)
    expect_equal([s["encoding"] != session.REFERENCE for s in seconds_of(record)], [False, True], "token in full")


# Impostors

@situation("an acceptance that is not sealed is an impostor's")
def _(world):
    before = world.snapshot()
    expect_exit(world.prove(unsealed(STATUS["accepted"]))[0], IMPOSTOR)
    expect(world.snapshot() == before, "the state folder changed")


@situation("a denial from tokenRevoked on that is not sealed is an impostor's")
def _(world):
    before = world.snapshot()
    for name in SEALED_DENIALS:
        expect_exit(world.prove(unsealed(STATUS[name]))[0], IMPOSTOR, name)
        expect(world.snapshot() == before, f"{name} changed the state folder")


@situation("a sealed part under another key, direction or round is an impostor's")
def _(world):
    plaintext = session.result(b"unlocked")

    def reflected(second):
        return session.message_3(0, session.gcm_seal(
            second.made.prover_to_device, bytes(12), plaintext, second.made.transcript + b"\x00"))

    def random_key(second):
        return session.message_3(0, session.gcm_seal(
            secrets.token_bytes(32), bytes(12), plaintext, second.made.transcript + b"\x00"))

    def no_status(second):
        return session.message_3(0, session.gcm_seal(second.made.device_to_prover, bytes(12), plaintext, second.made.transcript))

    def flipped(second):
        m3 = second.reply(0, b"unlocked")
        return m3[:-1] + bytes([m3[-1] ^ 1])

    before = world.snapshot()
    for make in (reflected, random_key, no_status, flipped, lambda second: session.message_3(0, b""),
                 lambda second: session.message_3(0, bytes(16)), lambda second: session.message_3(0, second.fields["sealed"])):
        expect_exit(world.prove(answered(make))[0], IMPOSTOR, make.__name__)
        expect(world.snapshot() == before, f"{make.__name__} changed the state folder")


@situation("an M3 of an earlier round is an impostor's")
def _(world):
    earlier = []

    def first(peer):
        earlier.append(peer.second().reply(0, b"unlocked"))
        peer.send(earlier[0])

    expect_exit(world.prove(first)[0], ACCEPTED, "the earlier round")
    expect_exit(world.prove(unsealed_bytes(earlier))[0], IMPOSTOR)


def unsealed_bytes(messages):
    """A script: the first of `messages` as M3, whatever the M2."""
    def script(peer):
        for _ in range(MOST_ROUNDS):
            peer.send(peer.model.message_1())
            peer.receive()
            peer.send(messages[0])
    return script


@situation("an M3 whose status was changed is an impostor's")
def _(world):
    for made, shown in ((STATUS["commandRefused"], 0), (0, STATUS["commandRefused"]), (STATUS["tokenExpired"], STATUS["tokenRevoked"]),
                        (STATUS["tokenInvalid"], 0)):
        def change(second, made=made, shown=shown):
            return session.message_3(shown, second.made.seal_result(made, session.result(b"")))
        expect_exit(world.prove(answered(change))[0], IMPOSTOR, f"{made} shown as {shown}")


@situation("another device id, key id or version in M1 is answered with nothing")
def _(world):
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
            ("version", version, MALFORMED)):
        done, record = world.prove(first(message))
        expect_exit(done, allowed, what)
        expect_equal(record.received, [], f"{what}: messages sent")


# Bad peers

def sends(message):
    """A script: `message` in place of M1."""
    def script(peer):
        peer.send(message(peer.model) if callable(message) else message)
        peer.receive()
    return script


@situation("garbage in place of M1 is answered with nothing", COSE_ONLY)
def _(world):
    for what, message in (
            ("a zero byte", b"\x00"), ("random bytes", secrets.token_bytes(100)), ("text", b"HTTP/1.1 200 OK\r\n\r\n"),
            ("an empty array", b"\x80"), ("deep nesting", b"\x81" * 4096), ("a huge length", b"\x9b" + b"\xff" * 8),
            ("M1 and a byte", lambda model: model.message_1() + b"\x00"), ("M1 cut short", lambda model: model.message_1()[:-1]),
            ("M1 of indefinite length", lambda model: b"\x9f" + model.message_1()[1:] + b"\xff"),
            ("M1 with a longer integer than needed", lambda model: b"\x87\x18\x01" + model.message_1()[2:]),
            ("M3 in its place", session.message_3(0, None)),
            ("4096 bytes", lambda model: model.message_1() + bytes(4096 - len(model.message_1()))),
            ("4097 bytes", lambda model: model.message_1() + bytes(4097 - len(model.message_1()))),
            ("65000 bytes", lambda model: model.message_1() + bytes(65000 - len(model.message_1())))):
        done, record = world.prove(sends(message))
        expect_exit(done, (MALFORMED, IMPOSTOR), what)
        expect_equal(record.received, [], f"{what}: messages sent")


@situation("garbage in place of M3 is malformed, or an impostor's", COSE_ONLY)
def _(world):
    before = world.snapshot()
    for what, make in (
            ("a zero byte", lambda second: b"\x00"), ("random bytes", lambda second: secrets.token_bytes(60)),
            ("M3 and a byte", lambda second: second.reply(0, b"unlocked") + b"\x00"),
            ("M3 cut short", lambda second: second.reply(0, b"unlocked")[:-1]),
            ("a longer integer than needed", lambda second: b"\x83\x18\x03" + second.reply(0, b"unlocked")[2:]),
            ("4097 bytes", lambda second: session.message_3(0, bytes(4090))),
            ("an element too many", lambda second: b"\x84" + second.reply(0, b"unlocked")[1:] + b"\xf6"),
            ("a result that is no map", lambda second: session.message_3(0, second.made.seal_result(0, b"\x80"))),
            ("a highest number that is no number", lambda second: session.message_3(0, second.made.seal_result(0, b"\xa2\x01\x40\x06\x40"))),
            ("a result unsorted", lambda second: session.message_3(0, second.made.seal_result(0, b"\xa2\x02\x00\x01\x40"))),
            ("a result of 1025 bytes", lambda second: second.reply(0, bytes(1025)))):
        done, _ = world.prove(answered(make))
        expect_exit(done, (MALFORMED, IMPOSTOR), what)
        expect(world.snapshot() == before, f"{what} changed the state folder")


@situation("labels that a later version may add to the sealed part are ignored", COSE_ONLY)
def _(world):
    later = b"\xa2\x01\x48unlocked\x07\x00"
    done, _ = world.prove(answered(lambda second: session.message_3(0, second.made.seal_result(0, later))))
    expect_exit(done, ACCEPTED)


@situation("an enrollment that fails over another leaves the other as it is", COSE_ONLY)
def _(world):
    blocked = world.state / "devices" / f".new-{enrolment(world.state).name}"
    (blocked / "folder").mkdir(parents=True)
    before = world.snapshot()
    shown = world.command_line.run("enroll", "--device", world.descriptor, "--service", world.service, "--state", world.state,
                                   "--format", "jose", "--replace")
    expect(shown.returncode != ACCEPTED, "a folder in the new one's place was no fault")
    expect(world.snapshot() == before, "the enrollment changed")
    expect_exit(world.prove(accept)[0], ACCEPTED)
    (blocked / "folder").rmdir()


@situation("a configuration of libcrypto that the environment names is not read", COSE_ONLY)
def _(world):
    file = world.folder / "openssl.cnf"
    file.write_text("openssl_conf = a\n[a]\nalg_section = b\n[b]\ndefault_properties = fips=yes\n")
    world.command_line.environment["OPENSSL_CONF"] = str(file)
    try:
        done, _ = world.prove(accept)
    finally:
        del world.command_line.environment["OPENSSL_CONF"]
    expect_exit(done, ACCEPTED)


@situation("nobody listening is not available", COSE_ONLY)
def _(world):
    before = world.snapshot()
    expect_exit(world.prove(None)[0], UNAVAILABLE)
    expect(world.snapshot() == before, "the state folder changed")


@situation("a device that closes at once is not available", COSE_ONLY)
def _(world):
    expect_exit(world.prove(lambda peer: None)[0], UNAVAILABLE)


@situation("a device that closes in place of M3 is not available", COSE_ONLY)
def _(world):
    before = world.snapshot()
    expect_exit(world.prove(lambda peer: peer.second())[0], UNAVAILABLE)
    expect(world.snapshot() == before, "the state folder changed")


@situation("a silent device is left in bounded time", COSE_ONLY)
def _(world):
    def before_m1(peer):
        peer.connection.receive(timeout=20)

    def before_m3(peer):
        peer.second()
        peer.connection.receive(timeout=20)

    for script in (before_m1, before_m3):
        done, _ = world.prove(script, more=("--timeout", "2"), timeout=30)
        expect_exit(done, (DENIED, IMPOSTOR, UNAVAILABLE), script.__name__)
        expect(1 < done.seconds < 12, f"{script.__name__}: it took {done.seconds:.1f} s")
