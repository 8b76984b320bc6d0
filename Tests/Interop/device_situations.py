"""The situations that a prover can bring about at a device, each a check of one rule.

A situation gets the world, a connected prover and, where the token matters, its encoding. The default policy is
assumed: `lock` and `unlock` need integrity and device, `status` needs device.
"""

import secrets
import time

from holdfast_peer import base64strict, cose, jose, session, transport
from holdfast_peer.checks import Failed, expect, expect_equal
from holdfast_peer.issuer import encrypted, fresh_claims, Grant
from holdfast_peer.keys import PrivateKey
from holdfast_peer.session import COSE, JOSE, STATUS

BOTH = {COSE: " (COSE)", JOSE: " (JOSE)"}
SITUATIONS = []


def situation(name, encodings=tuple(BOTH)):
    """Registers a check. `encodings` (None,) is for those that need no token, or bring their own."""
    def register(body):
        SITUATIONS.append((name, body, encodings))
        return body
    return register


def expect_status(outcome, name, what="status"):
    names = {number: name for name, number in STATUS.items()}
    expect_equal(names[outcome.status], name, what)


def expect_closed(prover, what="the connection"):
    """The device has closed: no M1 follows."""
    try:
        prover.connection.receive()
    except transport.Closed:
        return
    raise Failed(f"{what} stayed open")


def expect_malformed(prover, message):
    """`message` in place of M2 is answered with status 13 and the end of the connection."""
    m3 = session.parse_message_3(prover.exchange(message))
    expect_equal((m3["status"], m3["sealed"]), (STATUS["malformed"], None), "status and sealed part")
    expect_closed(prover)


# Tokens and references

@situation("a token in full is accepted")
def _(world, prover, encoding):
    outcome = prover.ask(world.grant(encoding))
    expect_status(outcome, "accepted")
    expect(outcome.result["result"], "the result is empty")


@situation("a reference is accepted after its token, on the same connection and on another")
def _(world, prover, encoding):
    grant = world.grant(encoding)
    expect_status(prover.ask(grant), "accepted", "in full")
    expect_status(prover.ask(grant, by_reference=True), "accepted", "by reference")
    other = world.connect()
    with other.connection:
        expect_status(other.ask(grant, by_reference=True), "accepted", "by reference, another connection")


@situation("a reference to a token never sent is unknown, and the token in full is then accepted")
def _(world, prover, encoding):
    grant = world.grant(encoding)
    expect_status(prover.ask(grant, by_reference=True), "tokenUnknown")
    expect_status(prover.ask(grant), "accepted", "in full afterwards")


@situation("a token is not remembered before its holder has proved the device")
def _(world, prover, encoding):
    grant = world.grant(encoding)
    expect_status(prover.ask(grant, dmp=secrets.token_bytes(32)), "deviceMismatch")
    expect_status(prover.ask(grant, by_reference=True), "tokenUnknown")


@situation("a random reference is unknown", (None,))
def _(world, prover):
    grant = world.grant(COSE)
    expect_status(prover.ask(grant, encoding=session.REFERENCE, token=secrets.token_bytes(16)), "tokenUnknown")


@situation("ten rounds on one connection")
def _(world, prover, encoding):
    grant = world.grant(encoding)
    for number in range(10):
        command = ("unlock", "lock", "status")[number % 3]
        expect_status(prover.ask(grant, command, by_reference=number > 0), "accepted", f"round {number}")


@situation("a token with every optional claim is accepted")
def _(world, prover, encoding):
    grant = world.grant(encoding, maximumUses=5, commands=["lock", "unlock"], version=[1, 2, 3], user="alice")
    expect_status(prover.ask(grant), "accepted")


@situation("versions are no obstacle where the policy asks for none")
def _(world, prover, encoding):
    for version in ([0, 0, 0], [0, 0, 1], [1, 2, 3], [2**53 - 1] * 3):
        expect_status(prover.ask(world.grant(encoding, version=version)), "accepted", f"version {version}")


@situation("ECDH-ES+A256KW is accepted", (None,))
def _(world, prover):
    claims = fresh_claims(world.descriptor.device_id)
    token = jose.encrypt(world.issuer.signed(claims, JOSE), world.descriptor.point, PrivateKey(), secrets.token_bytes(12),
                         algorithm=jose.WRAPPED, content_key=secrets.token_bytes(32))
    expect_status(prover.ask(Grant(token, JOSE, claims)), "accepted")


@situation("apu and apv are honoured", (None,))
def _(world, prover):
    claims, ephemeral = fresh_claims(world.descriptor.device_id), PrivateKey()
    header = jose.encrypted_header(world.descriptor.kid, ephemeral.point, apu=jose.url_encode(b"Alice"), apv=jose.url_encode(b"Bob"))
    token = jose.encrypt(world.issuer.signed(claims, JOSE), world.descriptor.point, ephemeral, secrets.token_bytes(12),
                         header=header, apu=b"Alice", apv=b"Bob")
    expect_status(prover.ask(Grant(token, JOSE, claims)), "accepted")


# Tokens that are not for this device

def refused_token(world, prover, grant):
    expect_status(prover.ask(grant), "tokenInvalid")
    expect_status(prover.ask(world.grant(COSE)), "accepted", "a good token afterwards")


@situation("a token whose audience is another device is invalid")
def _(world, prover, encoding):
    refused_token(world, prover, world.grant(encoding, audience=secrets.token_bytes(16)))


@situation("a token encrypted to another device is invalid")
def _(world, prover, encoding):
    claims = fresh_claims(world.descriptor.device_id)
    refused_token(world, prover, world.issuer.grant(PrivateKey().point, claims, encoding))


@situation("an unsigned token is invalid", (None,))
def _(world, prover):
    claims = fresh_claims(world.descriptor.device_id)
    refused_token(world, prover, encrypted(cose.claim_rules.to_cbor(claims), world.descriptor.point, claims, COSE))


@situation("bare JSON claims are invalid", (None,))
def _(world, prover):
    claims = fresh_claims(world.descriptor.device_id)
    bare = jose.dump(jose.claim_rules.to_members(claims))
    refused_token(world, prover, encrypted(bare, world.descriptor.point, claims, JOSE))


@situation("a stranger's token is invalid")
def _(world, prover, encoding):
    refused_token(world, prover, world.grant(encoding, issuer=world.stranger))


@situation("a stranger's token under the issuer's key id is invalid")
def _(world, prover, encoding):
    claims = fresh_claims(world.descriptor.device_id)
    if encoding == COSE:
        signed = cose.sign(cose.claim_rules.to_cbor(claims), world.stranger.key, protected=cose.sign_protected(world.issuer.key.kid))
    else:
        signed = jose.sign(jose.dump(jose.claim_rules.to_members(claims)), world.stranger.key,
                           header=jose.signed_header(world.issuer.key.kid))
    refused_token(world, prover, encrypted(signed, world.descriptor.point, claims, encoding))


@situation("a token with one bit flipped is invalid")
def _(world, prover, encoding):
    grant = world.grant(encoding)
    for place in (len(grant.token) // 3, len(grant.token) // 2):
        changed = grant.token[:place] + bytes([grant.token[place] ^ 1]) + grant.token[place + 1:]
        expect_status(prover.ask(grant, token=changed), "tokenInvalid", f"byte {place}")
    expect_status(prover.ask(grant), "accepted", "unchanged")


@situation("a token announced as the other encoding is invalid")
def _(world, prover, encoding):
    grant = world.grant(encoding)
    expect_status(prover.ask(grant, encoding=COSE + JOSE - encoding), "tokenInvalid")


@situation("a token whose header is nested deep is invalid at once", (None,))
def _(world, prover):
    header = "1"
    for _ in range(8):
        header = '{"":' + header + "".join(f',"{chr(97 + n)}":1' for n in range(17)) + "}"
    token = (base64strict.url_encode(header.encode()) + "...." + "A" * 22).encode()
    attempt = prover.attempt(world.grant(session.JOSE), token=token)
    expect_status(prover.send(attempt), "tokenInvalid")


@situation("a token with an unknown claim is invalid", (None,))
def _(world, prover):
    claims = fresh_claims(world.descriptor.device_id)
    payload = cose.cbor.encode({**cose.claim_rules.to_map(claims), 5: 0})
    refused_token(world, prover, encrypted(cose.sign(payload, world.issuer.key), world.descriptor.point, claims, COSE))


# Time

@situation("an expired token is refused, and the refusal is sealed")
def _(world, prover, encoding):
    now = world.now()
    expect_status(prover.ask(world.grant(encoding, issuedAt=now - 100, expires=now - 10)), "tokenExpired")


@situation("a token issued in the far future is invalid and moves nothing")
def _(world, prover, encoding):
    now, day = world.now(), 86400
    for days in world.days_ahead:
        grant = world.grant(encoding, issuedAt=now + days * day, expires=now + days * day + 3600)
        expect_status(prover.ask(grant), "tokenInvalid", f"{days} days ahead")
    expect_status(prover.ask(world.grant(encoding)), "accepted", "a present token afterwards")


@situation("a token issued at its expiry is invalid")
def _(world, prover, encoding):
    now = int(time.time())
    expect_status(prover.ask(world.grant(encoding, issuedAt=now + 60, expires=now + 60)), "tokenInvalid")


# Generations and uses

@situation("a generation below the highest accepted is revoked, in full and by reference")
def _(world, prover, encoding):
    issuer = world.raised[encoding]
    old, new = world.grant(encoding, issuer, generation=1), world.grant(encoding, issuer, generation=2)
    expect_status(prover.ask(old), "accepted", "generation 1 before")
    expect_status(prover.ask(new), "accepted", "generation 2")
    expect_status(prover.ask(old), "tokenRevoked", "generation 1 in full")
    expect_status(prover.ask(old, by_reference=True), "tokenRevoked", "generation 1 by reference")
    expect_status(prover.ask(new, by_reference=True), "accepted", "generation 2 again")
    now = int(time.time())
    expired = world.grant(encoding, issuer, generation=1, issuedAt=now - 100, expires=now - 10)
    expect_status(prover.ask(expired), "tokenRevoked", "expired as well")
    expect_status(prover.ask(world.grant(encoding)), "accepted", "another issuer's generation 1")


@situation("a denied token raises no generation floor")
def _(world, prover, encoding):
    high = world.grant(encoding, generation=1000)
    expect_status(prover.ask(high, imp=secrets.token_bytes(32)), "integrityMismatch")
    expect_status(prover.ask(world.grant(encoding, generation=1)), "accepted")


@situation("uses are counted, only accepted ones, and across encodings of the same token")
def _(world, prover, encoding):
    grant = world.grant(encoding, maximumUses=2)
    expect_status(prover.ask(grant), "accepted", "first use")
    expect_status(prover.ask(grant, imp=secrets.token_bytes(32)), "integrityMismatch")
    expect_status(prover.ask(grant, "no such command"), "commandRefused")
    expect_status(prover.ask(grant, by_reference=True), "accepted", "second use")
    expect_status(prover.ask(grant, by_reference=True), "usesExhausted", "third use by reference")
    expect_status(prover.ask(grant), "usesExhausted", "third use in full")
    again = encrypted(world.issuer.signed(grant.claims, encoding), world.descriptor.point, grant.claims, encoding)
    expect_status(prover.ask(again), "usesExhausted", "encrypted anew")
    other = world.issuer.grant(world.descriptor.point, grant.claims, COSE + JOSE - encoding)
    expect_status(prover.ask(other), "usesExhausted", "in the other encoding")
    expect_status(prover.ask(grant, imp=secrets.token_bytes(32)), "usesExhausted", "with a wrong proof as well")


@situation("uses and generation floors outlive a restart of the device", (None,))
def _(world, prover):
    grant = world.grant(COSE, maximumUses=1)
    expect_status(prover.ask(grant), "accepted", "before")
    issuer = world.raised[COSE]
    expect_status(prover.ask(world.grant(COSE, issuer, generation=7)), "accepted", "generation 7")
    prover.connection.close()
    world.restart()
    again = world.connect()
    with again.connection:
        expect_status(again.ask(grant), "usesExhausted", "after")
        expect_status(again.ask(world.grant(COSE, issuer, generation=6)), "tokenRevoked", "generation 6 after")


# Proofs

@situation("a replayed M2 ends as a device mismatch")
def _(world, prover, encoding):
    outcome = prover.ask(world.grant(encoding))
    expect_status(outcome, "accepted")
    for what in ("the next round", "the one after"):
        m3 = session.parse_message_3(prover.exchange(outcome.m2))
        expect_equal((m3["status"], m3["sealed"]), (STATUS["deviceMismatch"], None), what)
    other = world.connect()
    with other.connection:
        m3 = session.parse_message_3(other.exchange(outcome.m2))
        expect_equal((m3["status"], m3["sealed"]), (STATUS["deviceMismatch"], None), "another connection")


@situation("an M2 made for another connection is a device mismatch there")
def _(world, prover, encoding):
    attempt = prover.attempt(world.grant(encoding))
    other = world.connect()
    with other.connection:
        m3 = session.parse_message_3(other.exchange(attempt.message()))
        expect_equal((m3["status"], m3["sealed"]), (STATUS["deviceMismatch"], None), "on the other connection")
    expect_status(prover.send(attempt), "accepted", "on its own")


@situation("a wrong integrity proof is refused, and the refusal is sealed")
def _(world, prover, encoding):
    grant = world.grant(encoding)
    expect_status(prover.ask(grant, imp=secrets.token_bytes(32)), "integrityMismatch")
    expect_status(prover.ask(grant, imp=bytes(32)), "integrityMismatch", "of zeros")
    attempt = prover.attempt(grant)
    attempt.imp = attempt.dmp
    expect_status(prover.send(attempt), "integrityMismatch", "the device proof in its place")


@situation("a wrong device proof is refused without a sealed part")
def _(world, prover, encoding):
    grant = world.grant(encoding)
    expect_status(prover.ask(grant, dmp=secrets.token_bytes(32)), "deviceMismatch")
    attempt = prover.attempt(grant)
    attempt.imp, attempt.dmp = attempt.dmp, attempt.imp
    expect_status(prover.send(attempt), "deviceMismatch", "proofs exchanged")
    attempt = prover.attempt(grant)
    attempt.dmp = attempt.dmp[:31] + bytes([attempt.dmp[31] ^ 1])
    expect_status(prover.send(attempt), "deviceMismatch", "last bit flipped")


@situation("without a device proof nothing is accepted")
def _(world, prover, encoding):
    for command in ("unlock", "status"):
        m3 = session.parse_message_3(prover.exchange(prover.attempt(world.grant(encoding), command, dmp=None).message()))
        expect(m3["status"] != STATUS["accepted"] and m3["sealed"] is None, f"{command}: status {m3['status']}")


@situation("a wrong proof key or device measurement is a device mismatch")
def _(world, prover, encoding):
    grant = world.grant(encoding)
    for name, size in (("proofKey", 16), ("device", 32)):
        other = Grant(grant.token, encoding, {**grant.claims, name: secrets.token_bytes(size)})
        expect_status(prover.ask(other), "deviceMismatch", name)


@situation("status is answered without an integrity proof")
def _(world, prover, encoding):
    expect_status(prover.ask(world.grant(encoding), "status", imp=None), "accepted")


@situation("unlock without an integrity proof lacks a factor")
def _(world, prover, encoding):
    outcome = prover.ask(world.grant(encoding), imp=None)
    expect_status(outcome, "factorMissing")
    expect_equal(outcome.result.get("missing"), session.INTEGRITY, "missing factors")


@situation("failed proofs are slowed from the tenth on, and lock nobody out", (None,))
def _(world, prover):
    grant = world.grant(COSE)
    # Remembered, so that a slow device takes its time for nothing else.
    expect_status(prover.ask(grant), "accepted", "a right proof before")
    started = time.monotonic()
    for _ in range(8):
        expect_status(prover.ask(grant, by_reference=True, dmp=secrets.token_bytes(32)), "deviceMismatch")
    expect(time.monotonic() - started < 4, "the first failures are slow already")
    for _ in range(3):
        attempt = prover.attempt(grant, by_reference=True, dmp=secrets.token_bytes(32))
        started = time.monotonic()
        expect_status(prover.send(attempt), "deviceMismatch")
        waited = time.monotonic() - started
    expect(waited > 0.8, f"the eleventh failure was answered after {waited:.2f} s")
    expect_status(prover.ask(grant), "accepted", "a right proof afterwards")


# Requests

@situation("a changed sealed part is malformed and ends the connection")
def _(world, prover, encoding):
    attempt = prover.attempt(world.grant(encoding))
    attempt.sealed = bytes([attempt.sealed[0] ^ 1]) + attempt.sealed[1:]
    expect_malformed(prover, attempt.message())


@situation("a sealed part of an earlier round is malformed")
def _(world, prover, encoding):
    grant = world.grant(encoding)
    earlier = prover.attempt(grant, "lock")
    expect_status(prover.send(earlier), "accepted")
    attempt = prover.attempt(grant, "unlock")
    attempt.sealed = earlier.sealed
    expect_malformed(prover, attempt.message())


@situation("a sealed part without its tag is malformed")
def _(world, prover, encoding):
    attempt = prover.attempt(world.grant(encoding))
    attempt.sealed = attempt.sealed[:-16]
    expect_malformed(prover, attempt.message())


@situation("a command outside `cmd` is refused, one inside is accepted")
def _(world, prover, encoding):
    grant = world.grant(encoding, commands=["lock"])
    expect_status(prover.ask(grant, "unlock"), "commandRefused")
    expect_status(prover.ask(grant, "lock"), "accepted")
    expect_status(prover.ask(grant, "unlock", imp=None), "commandRefused", "without integrity as well")


@situation("an empty `cmd` allows nothing")
def _(world, prover, encoding):
    grant = world.grant(encoding, commands=[])
    for command in ("status", "lock", "unlock"):
        expect_status(prover.ask(grant, command), "commandRefused", command)


@situation("an unknown command is refused, even where `cmd` names it")
def _(world, prover, encoding):
    expect_status(prover.ask(world.grant(encoding), "self-destruct"), "commandRefused")
    expect_status(prover.ask(world.grant(encoding, commands=["self-destruct"]), "self-destruct"), "commandRefused", "named")
    grant = world.grant(encoding)
    expect_status(prover.ask(grant, "self-destruct", imp=secrets.token_bytes(32)), "integrityMismatch", "with a wrong proof")


@situation("eight parameters of 64 characters are accepted")
def _(world, prover, encoding):
    request = session.request("unlock", ["p" * 64] * 8)
    expect_status(prover.ask(world.grant(encoding), request=request), "accepted")


@situation("nine parameters, or one of 65 characters, are malformed", (None,))
def _(world, prover):
    for parameters in (["p"] * 9, ["p" * 65]):
        fresh = world.connect()
        with fresh.connection:
            attempt = fresh.attempt(world.grant(COSE), request=session.request("unlock", parameters))
            m3 = session.parse_message_3(fresh.exchange(attempt.message()))
            expect_equal(m3["status"], STATUS["malformed"], "status")
            expect_closed(fresh)


@situation("codes that the command does not require are ignored")
def _(world, prover, encoding):
    request = session.request("unlock", otp=["alice", "000000"], seal=["alice", "000000"])
    expect_status(prover.ask(world.grant(encoding), request=request), "accepted")


# Messages

@situation("a message of 4097 bytes is malformed and ends the connection", (None,))
def _(world, prover):
    message = prover.attempt(world.grant(COSE)).message()
    expect_malformed(prover, message + bytes(4097 - len(message)))


@situation("garbage is malformed and ends the connection", (None,))
def _(world, prover):
    good = prover.attempt(world.grant(COSE)).message()
    for message in (b"\x00", b"\xff" * 100, secrets.token_bytes(4096), b"GET / HTTP/1.1\r\n\r\n", good[:-1], good + b"\x00",
                    b"\x80", b"\xf6", b"\x85\x02", session.message_3(0, None), b"\x9b" + b"\xff" * 8, b"\x81" * 4096):
        fresh = world.connect()
        with fresh.connection:
            expect_malformed(fresh, message)
    m1 = world.connect()
    with m1.connection:
        expect_malformed(m1, m1.next_m1())


@situation("an M2 that is not deterministic is malformed")
def _(world, prover, encoding):
    good = prover.attempt(world.grant(encoding)).message()
    assert good[:2] == b"\x85\x02"
    for message in (b"\x98\x05" + good[1:], b"\x9f" + good[1:] + b"\xff", b"\x85\x18\x02" + good[2:], b"\xd9\xd9\xf7" + good):
        fresh = world.connect()
        with fresh.connection:
            expect_malformed(fresh, message)


@situation("proofs of other lengths are malformed")
def _(world, prover, encoding):
    for name in ("imp", "dmp"):
        for size in (0, 31, 33):
            fresh = world.connect()
            with fresh.connection:
                expect_malformed(fresh, fresh.attempt(world.grant(encoding), **{name: bytes(size)}).message())


def refused_somehow(world, grant, **changes):
    """Refused before anything is proved: as malformed or as an invalid token."""
    fresh = world.connect()
    with fresh.connection:
        m3 = session.parse_message_3(fresh.exchange(fresh.attempt(grant, **changes).message()))
        expect(m3["status"] in (STATUS["malformed"], STATUS["tokenInvalid"]), f"status {m3['status']}")
        expect_equal(m3["sealed"], None, "sealed part")


@situation("encodings that are not defined are refused", (None,))
def _(world, prover):
    for encoding in (3, 4, 255, 2**32):
        refused_somehow(world, world.grant(COSE), encoding=encoding)


@situation("a token of 3073 bytes is refused")
def _(world, prover, encoding):
    grant = world.grant(encoding)
    filler = b"\x00" if encoding == COSE else b"A"
    refused_somehow(world, grant, token=grant.token + filler * (3073 - len(grant.token)))


@situation("an empty token is refused")
def _(world, prover, encoding):
    refused_somehow(world, world.grant(encoding), token=b"")


@situation("a compatibility round is not accepted under the default policy", (None,))
def _(world, prover):
    grant, nonce = world.grant(COSE), bytes([secrets.randbelow(128)]) + secrets.token_bytes(15)
    proofs = [session.proof(grant.proof_key, nonce, grant.claims[name]) for name in ("integrity", "device")]
    message = session.cbor.encode([12, nonce, COSE, grant.token, *proofs, "unlock"])
    m3 = session.parse_message_3(prover.exchange(message))
    expect(m3["status"] != STATUS["accepted"], "accepted")
    expect_equal(m3["sealed"], None, "sealed part")


# Connections

@situation("M1 is fresh, for this device, and says what every command needs", (None,))
def _(world, prover):
    challenges = set()
    for _ in range(20):
        fresh = world.connect()
        with fresh.connection:
            fields = session.parse_message_1(fresh.next_m1())
            challenges.add(fields["challenge"])
            expect_equal(fields["required"], session.DEVICE, "required")
            expect(fields["clock"] is None or abs(fields["clock"] - time.time()) < 86400, f"clock {fields['clock']}")
    grant, last = world.grant(COSE), world.connect()
    with last.connection:
        for _ in range(5):
            challenges.add(session.parse_message_1(last.next_m1())["challenge"])
            expect_status(last.ask(grant), "accepted")
    expect_equal(len(challenges), 25, "different challenges")


@situation("two connections with rounds between each other's")
def _(world, prover, encoding):
    other = world.connect()
    with other.connection:
        mine, theirs = world.grant(encoding), world.grant(encoding)
        first, second = prover.attempt(mine), other.attempt(theirs, "lock")
        expect_status(other.send(second), "accepted", "the second, first")
        expect_status(prover.send(first), "accepted", "the first, second")
        first, second = prover.attempt(theirs, by_reference=True), other.attempt(mine, by_reference=True)
        expect_status(prover.send(first), "accepted", "references exchanged, first")
        expect_status(other.send(second), "accepted", "references exchanged, second")


@situation("a silent connection does not hold the device", (None,))
def _(world, prover):
    silent = [world.connect() for _ in range(8)]
    try:
        expect_status(prover.ask(world.grant(COSE)), "accepted")
    finally:
        for each in silent:
            each.connection.close()
    expect_status(prover.ask(world.grant(COSE)), "accepted", "after they left")
