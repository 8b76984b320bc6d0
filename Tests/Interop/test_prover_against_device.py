"""The situations that a prover can bring about at a device, each a check of one rule.

A situation gets the device, a connected prover and, where the token matters, its encoding. The default policy is
assumed: `lock` and `unlock` need integrity and device, `status` needs device.
"""

import enum
import json
import os
import secrets
import termios
import time

import pytest
from devices import expect_status
from holdfast_peer import base64strict, cose, jose, session, transport
from holdfast_peer.command_line import read_descriptor, stop
from holdfast_peer.issuer import Grant, encrypted, fresh_claims
from holdfast_peer.keys import PrivateKey
from holdfast_peer.session import COSE, JOSE, STATUS

one_line = pytest.mark.only_on("linux", because="a line has one prover at a time")
process_on_linux = pytest.mark.only_on("linux", because="it is about the process that serves the device")
has_connections = pytest.mark.only_on("linux", "bridge", because="a line has no connections that end")


def expect_closed(prover, what="the connection"):
    """The device has closed: no M1 follows."""
    try:
        prover.connection.receive()
    except transport.Closed:
        return
    raise AssertionError(f"{what} stayed open")


def expect_malformed(prover, message):
    """`message` in place of M2 is answered with status 13 and the end of the connection."""
    m3 = session.parse_message_3(prover.exchange(message))
    assert (m3["status"], m3["sealed"]) == (STATUS["malformed"], None), "status and sealed part"
    expect_closed(prover)


def test_the_device_answers_and_is_the_one_that_its_owner_is_shown(device):
    shown = read_descriptor(json.loads(device.owner("show", "--json").stdout))
    with (prover := device.connect()).connection:
        first = session.parse_message_1(prover.next_m1())
    assert (first["deviceId"], first["kid"]) == (shown.device_id, shown.kid), "device and key ids"


# Tokens and references


def test_a_token_in_full_is_accepted(device, prover, encoding):
    outcome = prover.ask(device.grant(encoding))
    expect_status(outcome, "accepted")
    assert outcome.result["result"], "the result is empty"


def test_a_reference_is_accepted_after_its_token_on_the_same_connection_and_on_another(device, prover, encoding):
    grant = device.grant(encoding)
    expect_status(prover.ask(grant), "accepted", "in full")
    expect_status(prover.ask(grant, by_reference=True), "accepted", "by reference")
    other = device.connect()
    with other.connection:
        expect_status(other.ask(grant, by_reference=True), "accepted", "by reference, another connection")


def test_a_reference_to_a_token_never_sent_is_unknown_and_the_token_in_full_is_then_accepted(device, prover, encoding):
    grant = device.grant(encoding)
    expect_status(prover.ask(grant, by_reference=True), "tokenUnknown")
    expect_status(prover.ask(grant), "accepted", "in full afterwards")


def test_a_token_is_not_remembered_before_its_holder_has_proved_the_device(device, prover, encoding):
    grant = device.grant(encoding)
    expect_status(prover.ask(grant, dmp=secrets.token_bytes(32)), "deviceMismatch")
    expect_status(prover.ask(grant, by_reference=True), "tokenUnknown")


def test_a_random_reference_is_unknown(device, prover):
    grant = device.grant(COSE)
    expect_status(prover.ask(grant, encoding=session.REFERENCE, token=secrets.token_bytes(16)), "tokenUnknown")


def test_ten_rounds_on_one_connection(device, prover, encoding):
    grant = device.grant(encoding)
    for number in range(10):
        command = ("unlock", "lock", "status")[number % 3]
        expect_status(prover.ask(grant, command, by_reference=number > 0), "accepted", f"round {number}")


def test_a_token_with_every_optional_claim_is_accepted(device, prover, encoding):
    grant = device.grant(encoding, maximumUses=5, commands=["lock", "unlock"], version=[1, 2, 3], user="alice")
    expect_status(prover.ask(grant), "accepted")


def test_versions_are_no_obstacle_where_the_policy_asks_for_none(device, prover, encoding):
    for version in ([0, 0, 0], [0, 0, 1], [1, 2, 3], [2**53 - 1] * 3):
        expect_status(prover.ask(device.grant(encoding, version=version)), "accepted", f"version {version}")


def test_ecdh_es_a256kw_is_accepted(device, prover):
    claims = fresh_claims(device.descriptor.device_id)
    token = jose.encrypt(
        device.issuer.signed(claims, JOSE),
        device.descriptor.point,
        PrivateKey(),
        secrets.token_bytes(12),
        algorithm=jose.WRAPPED,
        content_key=secrets.token_bytes(32),
    )
    expect_status(prover.ask(Grant(token, JOSE, claims)), "accepted")


def test_apu_and_apv_are_honoured(device, prover):
    claims, ephemeral = fresh_claims(device.descriptor.device_id), PrivateKey()
    header = jose.encrypted_header(
        device.descriptor.kid, ephemeral.point, apu=jose.url_encode(b"Alice"), apv=jose.url_encode(b"Bob")
    )
    token = jose.encrypt(
        device.issuer.signed(claims, JOSE),
        device.descriptor.point,
        ephemeral,
        secrets.token_bytes(12),
        header=header,
        apu=b"Alice",
        apv=b"Bob",
    )
    expect_status(prover.ask(Grant(token, JOSE, claims)), "accepted")


# Tokens that are not for this device


def refused_token(device, prover, grant):
    expect_status(prover.ask(grant), "tokenInvalid")
    expect_status(prover.ask(device.grant(COSE)), "accepted", "a good token afterwards")


def test_a_token_whose_audience_is_another_device_is_invalid(device, prover, encoding):
    refused_token(device, prover, device.grant(encoding, audience=secrets.token_bytes(16)))


def test_a_token_encrypted_to_another_device_is_invalid(device, prover, encoding):
    claims = fresh_claims(device.descriptor.device_id)
    refused_token(device, prover, device.issuer.grant(PrivateKey().point, claims, encoding))


def test_an_unsigned_token_is_invalid(device, prover):
    claims = fresh_claims(device.descriptor.device_id)
    refused_token(device, prover, encrypted(cose.claim_rules.to_cbor(claims), device.descriptor.point, claims, COSE))


def test_bare_json_claims_are_invalid(device, prover):
    claims = fresh_claims(device.descriptor.device_id)
    bare = jose.dump(jose.claim_rules.to_members(claims))
    refused_token(device, prover, encrypted(bare, device.descriptor.point, claims, JOSE))


def test_a_strangers_token_is_invalid(device, prover, encoding):
    refused_token(device, prover, device.grant(encoding, issuer=device.stranger))


def test_a_strangers_token_under_the_issuers_key_id_is_invalid(device, prover, encoding):
    claims = fresh_claims(device.descriptor.device_id)
    if encoding == COSE:
        signed = cose.sign(
            cose.claim_rules.to_cbor(claims), device.stranger.key, protected=cose.sign_protected(device.issuer.key.kid)
        )
    else:
        signed = jose.sign(
            jose.dump(jose.claim_rules.to_members(claims)),
            device.stranger.key,
            header=jose.signed_header(device.issuer.key.kid),
        )
    refused_token(device, prover, encrypted(signed, device.descriptor.point, claims, encoding))


def test_a_token_with_one_bit_flipped_is_invalid(device, prover, encoding):
    grant = device.grant(encoding)
    for place in (len(grant.token) // 3, len(grant.token) // 2):
        changed = grant.token[:place] + bytes([grant.token[place] ^ 1]) + grant.token[place + 1 :]
        expect_status(prover.ask(grant, token=changed), "tokenInvalid", f"byte {place}")
    expect_status(prover.ask(grant), "accepted", "unchanged")


def test_a_token_announced_as_the_other_encoding_is_invalid(device, prover, encoding):
    grant = device.grant(encoding)
    expect_status(prover.ask(grant, encoding=COSE + JOSE - encoding), "tokenInvalid")


def test_a_token_whose_header_is_nested_deep_is_invalid_at_once(device, prover):
    header = "1"
    for _ in range(8):
        header = '{"":' + header + "".join(f',"{chr(97 + n)}":1' for n in range(17)) + "}"
    token = (base64strict.url_encode(header.encode()) + "...." + "A" * 22).encode()
    attempt = prover.attempt(device.grant(session.JOSE), token=token)
    expect_status(prover.send(attempt), "tokenInvalid")


def test_a_token_with_an_unknown_claim_is_invalid(device, prover):
    claims = fresh_claims(device.descriptor.device_id)
    payload = cose.cbor.encode({**cose.claim_rules.to_map(claims), 5: 0})
    refused_token(
        device, prover, encrypted(cose.sign(payload, device.issuer.key), device.descriptor.point, claims, COSE)
    )


# Time


def test_an_expired_token_is_refused_and_the_refusal_is_sealed(device, prover, encoding):
    now = device.now()
    expect_status(prover.ask(device.grant(encoding, issuedAt=now - 100, expires=now - 10)), "tokenExpired")


def test_a_token_issued_in_the_far_future_is_invalid_and_moves_nothing(device, prover, encoding):
    now, day = device.now(), 86400
    for days in device.days_ahead:
        grant = device.grant(encoding, issuedAt=now + days * day, expires=now + days * day + 3600)
        expect_status(prover.ask(grant), "tokenInvalid", f"{days} days ahead")
    expect_status(prover.ask(device.grant(encoding)), "accepted", "a present token afterwards")


def test_a_token_issued_at_its_expiry_is_invalid(device, prover, encoding):
    now = int(time.time())
    expect_status(prover.ask(device.grant(encoding, issuedAt=now + 60, expires=now + 60)), "tokenInvalid")


# Generations and uses


def test_a_generation_below_the_highest_accepted_is_revoked_in_full_and_by_reference(device, prover, encoding):
    issuer = device.raised[encoding]
    old, new = device.grant(encoding, issuer, generation=1), device.grant(encoding, issuer, generation=2)
    expect_status(prover.ask(old), "accepted", "generation 1 before")
    expect_status(prover.ask(new), "accepted", "generation 2")
    expect_status(prover.ask(old), "tokenRevoked", "generation 1 in full")
    expect_status(prover.ask(old, by_reference=True), "tokenRevoked", "generation 1 by reference")
    expect_status(prover.ask(new, by_reference=True), "accepted", "generation 2 again")
    now = int(time.time())
    expired = device.grant(encoding, issuer, generation=1, issuedAt=now - 100, expires=now - 10)
    expect_status(prover.ask(expired), "tokenRevoked", "expired as well")
    expect_status(prover.ask(device.grant(encoding)), "accepted", "another issuer's generation 1")


def test_a_denied_token_raises_no_generation_floor(device, prover, encoding):
    high = device.grant(encoding, generation=1000)
    expect_status(prover.ask(high, imp=secrets.token_bytes(32)), "integrityMismatch")
    expect_status(prover.ask(device.grant(encoding, generation=1)), "accepted")


def test_uses_are_counted_only_accepted_ones_and_across_encodings_of_the_same_token(device, prover, encoding):
    grant = device.grant(encoding, maximumUses=2)
    expect_status(prover.ask(grant), "accepted", "first use")
    expect_status(prover.ask(grant, imp=secrets.token_bytes(32)), "integrityMismatch")
    expect_status(prover.ask(grant, "no such command"), "commandRefused")
    expect_status(prover.ask(grant, by_reference=True), "accepted", "second use")
    expect_status(prover.ask(grant, by_reference=True), "usesExhausted", "third use by reference")
    expect_status(prover.ask(grant), "usesExhausted", "third use in full")
    again = encrypted(device.issuer.signed(grant.claims, encoding), device.descriptor.point, grant.claims, encoding)
    expect_status(prover.ask(again), "usesExhausted", "encrypted anew")
    other = device.issuer.grant(device.descriptor.point, grant.claims, COSE + JOSE - encoding)
    expect_status(prover.ask(other), "usesExhausted", "in the other encoding")
    expect_status(prover.ask(grant, imp=secrets.token_bytes(32)), "usesExhausted", "with a wrong proof as well")


def test_uses_and_generation_floors_outlive_a_restart_of_the_device(device, prover):
    grant = device.grant(COSE, maximumUses=1)
    expect_status(prover.ask(grant), "accepted", "before")
    issuer = device.raised[COSE]
    expect_status(prover.ask(device.grant(COSE, issuer, generation=7)), "accepted", "generation 7")
    prover.connection.close()
    device.restart()
    again = device.connect()
    with again.connection:
        expect_status(again.ask(grant), "usesExhausted", "after")
        expect_status(again.ask(device.grant(COSE, issuer, generation=6)), "tokenRevoked", "generation 6 after")


# Proofs


def test_a_replayed_m2_ends_as_a_device_mismatch(device, prover, encoding):
    outcome = prover.ask(device.grant(encoding))
    expect_status(outcome, "accepted")
    for what in ("the next round", "the one after"):
        m3 = session.parse_message_3(prover.exchange(outcome.m2))
        assert (m3["status"], m3["sealed"]) == (STATUS["deviceMismatch"], None), what
    other = device.connect()
    with other.connection:
        m3 = session.parse_message_3(other.exchange(outcome.m2))
        assert (m3["status"], m3["sealed"]) == (STATUS["deviceMismatch"], None), "another connection"


def test_an_m2_made_for_another_connection_is_a_device_mismatch_there(device, prover, encoding):
    attempt = prover.attempt(device.grant(encoding))
    other = device.connect()
    with other.connection:
        m3 = session.parse_message_3(other.exchange(attempt.message()))
        assert (m3["status"], m3["sealed"]) == (STATUS["deviceMismatch"], None), "on the other connection"


@one_line
def test_an_m2_that_failed_on_another_connection_is_accepted_on_its_own(device, prover, encoding):
    attempt = prover.attempt(device.grant(encoding))
    other = device.connect()
    with other.connection:
        m3 = session.parse_message_3(other.exchange(attempt.message()))
        assert m3["status"] == STATUS["deviceMismatch"], "on the other connection"
    expect_status(prover.send(attempt), "accepted", "on its own")


def test_a_wrong_integrity_proof_is_refused_and_the_refusal_is_sealed(device, prover, encoding):
    grant = device.grant(encoding)
    expect_status(prover.ask(grant, imp=secrets.token_bytes(32)), "integrityMismatch")
    expect_status(prover.ask(grant, imp=bytes(32)), "integrityMismatch", "of zeros")
    attempt = prover.attempt(grant)
    attempt.imp = attempt.dmp
    expect_status(prover.send(attempt), "integrityMismatch", "the device proof in its place")


def test_a_wrong_device_proof_is_refused_without_a_sealed_part(device, prover, encoding):
    grant = device.grant(encoding)
    expect_status(prover.ask(grant, dmp=secrets.token_bytes(32)), "deviceMismatch")
    attempt = prover.attempt(grant)
    attempt.imp, attempt.dmp = attempt.dmp, attempt.imp
    expect_status(prover.send(attempt), "deviceMismatch", "proofs exchanged")
    attempt = prover.attempt(grant)
    attempt.dmp = attempt.dmp[:31] + bytes([attempt.dmp[31] ^ 1])
    expect_status(prover.send(attempt), "deviceMismatch", "last bit flipped")


def test_without_a_device_proof_nothing_is_accepted(device, prover, encoding):
    for command in ("unlock", "status"):
        m3 = session.parse_message_3(
            prover.exchange(prover.attempt(device.grant(encoding), command, dmp=None).message())
        )
        assert m3["status"] != STATUS["accepted"] and m3["sealed"] is None, f"{command}: status {m3['status']}"


def test_a_wrong_proof_key_or_device_measurement_is_a_device_mismatch(device, prover, encoding):
    grant = device.grant(encoding)
    for name, size in (("proofKey", 16), ("device", 32)):
        other = Grant(grant.token, encoding, {**grant.claims, name: secrets.token_bytes(size)})
        expect_status(prover.ask(other), "deviceMismatch", name)


def test_status_is_answered_without_an_integrity_proof(device, prover, encoding):
    expect_status(prover.ask(device.grant(encoding), "status", imp=None), "accepted")


def test_unlock_without_an_integrity_proof_lacks_a_factor(device, prover, encoding):
    outcome = prover.ask(device.grant(encoding), imp=None)
    expect_status(outcome, "factorMissing")
    assert outcome.result.get("missing") == session.INTEGRITY, "missing factors"


def test_failed_proofs_are_slowed_from_the_tenth_on_and_lock_nobody_out(device, prover):
    grant = device.grant(COSE)
    # Remembered, so that a slow device takes its time for nothing else.
    expect_status(prover.ask(grant), "accepted", "a right proof before")
    waited = []
    for _ in range(11):
        attempt = prover.attempt(grant, by_reference=True, dmp=secrets.token_bytes(32))
        started = time.monotonic()
        expect_status(prover.send(attempt), "deviceMismatch")
        waited.append(time.monotonic() - started)
    # A busy machine may be late with some of them, but not with each.
    assert min(waited[4:8]) < 0.8, f"the first failures are slow already: {waited[:8]}"
    assert waited[-1] > 0.8, f"the eleventh failure was answered after {waited[-1]:.2f} s"
    expect_status(prover.ask(grant), "accepted", "a right proof afterwards")


# Requests


def test_a_changed_sealed_part_is_malformed_and_ends_the_connection(device, prover, encoding):
    attempt = prover.attempt(device.grant(encoding))
    attempt.sealed = bytes([attempt.sealed[0] ^ 1]) + attempt.sealed[1:]
    expect_malformed(prover, attempt.message())


def test_a_sealed_part_of_an_earlier_round_is_malformed(device, prover, encoding):
    grant = device.grant(encoding)
    earlier = prover.attempt(grant, "lock")
    expect_status(prover.send(earlier), "accepted")
    attempt = prover.attempt(grant, "unlock")
    attempt.sealed = earlier.sealed
    expect_malformed(prover, attempt.message())


def test_a_sealed_part_without_its_tag_is_malformed(device, prover, encoding):
    attempt = prover.attempt(device.grant(encoding))
    attempt.sealed = attempt.sealed[:-16]
    expect_malformed(prover, attempt.message())


def test_a_command_outside_cmd_is_refused_one_inside_is_accepted(device, prover, encoding):
    grant = device.grant(encoding, commands=["lock"])
    expect_status(prover.ask(grant, "unlock"), "commandRefused")
    expect_status(prover.ask(grant, "lock"), "accepted")
    expect_status(prover.ask(grant, "unlock", imp=None), "commandRefused", "without integrity as well")


def test_an_empty_cmd_allows_nothing(device, prover, encoding):
    grant = device.grant(encoding, commands=[])
    for command in ("status", "lock", "unlock"):
        expect_status(prover.ask(grant, command), "commandRefused", command)


def test_an_unknown_command_is_refused_even_where_cmd_names_it(device, prover, encoding):
    expect_status(prover.ask(device.grant(encoding), "self-destruct"), "commandRefused")
    expect_status(
        prover.ask(device.grant(encoding, commands=["self-destruct"]), "self-destruct"), "commandRefused", "named"
    )
    grant = device.grant(encoding)
    expect_status(
        prover.ask(grant, "self-destruct", imp=secrets.token_bytes(32)), "integrityMismatch", "with a wrong proof"
    )


def test_eight_parameters_of_64_characters_are_accepted(device, prover, encoding):
    request = session.request("unlock", ["p" * 64] * 8)
    expect_status(prover.ask(device.grant(encoding), request=request), "accepted")


def test_nine_parameters_or_one_of_65_characters_are_malformed(device, prover):
    for parameters in (["p"] * 9, ["p" * 65]):
        fresh = device.connect()
        with fresh.connection:
            attempt = fresh.attempt(device.grant(COSE), request=session.request("unlock", parameters))
            m3 = session.parse_message_3(fresh.exchange(attempt.message()))
            assert m3["status"] == STATUS["malformed"], "status"
            expect_closed(fresh)


def test_codes_that_the_command_does_not_require_are_ignored(device, prover, encoding):
    request = session.request("unlock", otp=["alice", "000000"], seal=["alice", "000000"])
    expect_status(prover.ask(device.grant(encoding), request=request), "accepted")


# Messages


@has_connections
def test_a_message_of_4097_bytes_is_malformed_and_ends_the_connection(device, prover):
    message = prover.attempt(device.grant(COSE)).message()
    expect_malformed(prover, message + bytes(4097 - len(message)))


@pytest.mark.only_on("board", because="a bridge and a Unix socket know where a message ends")
def test_a_message_of_4097_bytes_is_dropped_until_the_line_is_silent(device, prover):
    message = prover.attempt(device.grant(COSE)).message()
    before = prover.next_m1()
    prover.connection.send(message + bytes(4097 - len(message)))
    prover.m1 = None
    assert prover.next_m1() != before, "the challenge is still open"
    expect_status(prover.ask(device.grant(COSE)), "accepted", "a good round afterwards")


def test_garbage_is_malformed_and_ends_the_connection(device, prover):
    good = prover.attempt(device.grant(COSE)).message()
    for message in (
        b"\x00",
        b"\xff" * 100,
        secrets.token_bytes(4096),
        b"GET / HTTP/1.1\r\n\r\n",
        good[:-1],
        good + b"\x00",
        b"\x80",
        b"\xf6",
        b"\x85\x02",
        session.message_3(0, None),
        b"\x9b" + b"\xff" * 8,
        b"\x81" * 4096,
    ):
        fresh = device.connect()
        with fresh.connection:
            expect_malformed(fresh, message)
    m1 = device.connect()
    with m1.connection:
        expect_malformed(m1, m1.next_m1())


def test_an_m2_that_is_not_deterministic_is_malformed(device, prover, encoding):
    good = prover.attempt(device.grant(encoding)).message()
    assert good[:2] == b"\x85\x02"
    for message in (
        b"\x98\x05" + good[1:],
        b"\x9f" + good[1:] + b"\xff",
        b"\x85\x18\x02" + good[2:],
        b"\xd9\xd9\xf7" + good,
    ):
        fresh = device.connect()
        with fresh.connection:
            expect_malformed(fresh, message)


def test_proofs_of_other_lengths_are_malformed(device, prover, encoding):
    for name in ("imp", "dmp"):
        for size in (0, 31, 33):
            fresh = device.connect()
            with fresh.connection:
                expect_malformed(fresh, fresh.attempt(device.grant(encoding), **{name: bytes(size)}).message())


def refused_somehow(device, grant, **changes):
    """Refused before anything is proved: as malformed or as an invalid token."""
    fresh = device.connect()
    with fresh.connection:
        m3 = session.parse_message_3(fresh.exchange(fresh.attempt(grant, **changes).message()))
        assert m3["status"] in (STATUS["malformed"], STATUS["tokenInvalid"]), f"status {m3['status']}"
        assert m3["sealed"] is None, "sealed part"


def test_encodings_that_are_not_defined_are_refused(device, prover):
    for encoding in (3, 4, 255, 2**32):
        refused_somehow(device, device.grant(COSE), encoding=encoding)


def test_a_token_of_3073_bytes_is_refused(device, prover, encoding):
    grant = device.grant(encoding)
    filler = b"\x00" if encoding == COSE else b"A"
    refused_somehow(device, grant, token=grant.token + filler * (3073 - len(grant.token)))


def test_an_empty_token_is_refused(device, prover, encoding):
    refused_somehow(device, device.grant(encoding), token=b"")


def test_a_compatibility_round_is_not_accepted_under_the_default_policy(device, prover):
    grant, nonce = device.grant(COSE), bytes([secrets.randbelow(128)]) + secrets.token_bytes(15)
    proofs = [session.proof(grant.proof_key, nonce, grant.claims[name]) for name in ("integrity", "device")]
    message = session.cbor.encode([12, nonce, COSE, grant.token, *proofs, "unlock"])
    m3 = session.parse_message_3(prover.exchange(message))
    assert m3["status"] != STATUS["accepted"], "accepted"
    assert m3["sealed"] is None, "sealed part"


# Connections


def test_m1_is_fresh_for_this_device_and_says_what_every_command_needs(device, prover):
    challenges = set()
    for _ in range(20):
        fresh = device.connect()
        with fresh.connection:
            fields = session.parse_message_1(fresh.next_m1())
            challenges.add(fields["challenge"])
            assert fields["required"] == session.DEVICE, "required"
            assert fields["clock"] is None or abs(fields["clock"] - time.time()) < 86400, f"clock {fields['clock']}"
    grant, last = device.grant(COSE), device.connect()
    with last.connection:
        for _ in range(5):
            challenges.add(session.parse_message_1(last.next_m1())["challenge"])
            expect_status(last.ask(grant), "accepted")
    assert len(challenges) == 25, "different challenges"


@one_line
def test_two_connections_with_rounds_between_each_other_s(device, prover, encoding):
    other = device.connect()
    with other.connection:
        mine, theirs = device.grant(encoding), device.grant(encoding)
        first, second = prover.attempt(mine), other.attempt(theirs, "lock")
        expect_status(other.send(second), "accepted", "the second, first")
        expect_status(prover.send(first), "accepted", "the first, second")
        first, second = prover.attempt(theirs, by_reference=True), other.attempt(mine, by_reference=True)
        expect_status(prover.send(first), "accepted", "references exchanged, first")
        expect_status(other.send(second), "accepted", "references exchanged, second")


@one_line
def test_a_silent_connection_does_not_hold_the_device(device, prover):
    silent = [device.connect() for _ in range(8)]
    try:
        expect_status(prover.ask(device.grant(COSE)), "accepted")
    finally:
        for each in silent:
            each.connection.close()
    expect_status(prover.ask(device.grant(COSE)), "accepted", "after they left")


# The device's process


@process_on_linux
def test_sigterm_ends_the_device_with_status_0(linux_device):
    assert linux_device.stop() == 0, "exit status after SIGTERM"


class Log(enum.Enum):
    """What becomes of the device's log."""

    FULL_PIPE = enum.auto()
    CLOSED_PIPE = enum.auto()
    FULL_TERMINAL = enum.auto()
    STOPPED_TERMINAL = enum.auto()


@process_on_linux
@pytest.mark.parametrize("log", Log, ids=lambda log: log.name.lower())
def test_a_log_that_nobody_reads_holds_nothing_up_while_strangers_fill_it(linux_device, log):
    linux_device.close()
    reader, writer = os.pipe() if log in (Log.FULL_PIPE, Log.CLOSED_PIPE) else os.openpty()
    served = linux_device.command_line.start(
        "device",
        "serve",
        "--verbose",
        "--dir",
        linux_device.device_folder,
        "--listen",
        linux_device.endpoint,
        stderr=writer,
    )
    try:
        transport.connect_when_ready(linux_device.socket).close()
        if log is Log.CLOSED_PIPE:
            os.close(reader)
            os.close(writer)
        if log is Log.STOPPED_TERMINAL:
            termios.tcflow(writer, termios.TCOOFF)
        for _ in range(20 if log is Log.CLOSED_PIPE else 10_000):
            with transport.connect(linux_device.socket) as connection:
                connection.receive()
                connection.send(b"\x00")
                connection.receive()
        expect_status(linux_device.connect().ask(linux_device.grant(COSE)), "accepted")
    finally:
        status = stop(served)
        if log is not Log.CLOSED_PIPE:
            os.close(reader)
            os.close(writer)
    assert status == 0, "exit status after SIGTERM"
