"""The messages that a session permits between rounds, and their senders.

Source: docs/couriers.md.
"""

import secrets

import pytest
from couriers import GROUPS, MOST_MESSAGES, Courier, ask_status
from holdfast_peer import bulletins, cbor, session, transport
from holdfast_peer.session import COSE

LARGEST = 2**53 - 1


def test_nothing_is_delivered_before_a_round_was_accepted_or_after_one_that_was_not(lock, press):
    mail = (bulletins.deliver(press.sign(press.claims())), bulletins.ASK)
    for message in mail:
        Courier(lock).expect_malformed(message)
        other = Courier(lock)
        other.accepted()
        assert compatibility_refused(other) == "deviceMismatch"
        other.expect_malformed(message)
    denied = Courier(lock)
    assert session.NAMES[denied.accepted().round(command="open-nothing").status] == "commandRefused"
    assert denied.ask() == press.list, "it has proved DM"
    assert denied.deliver(press.sign(press.claims())) == "busy", "but no check is left"
    courier = Courier(lock)
    assert courier.round().result["bulletins"] == press.state, "the device took one"
    courier.close()


def compatibility_refused(courier):
    """A compatibility round with wrong proofs on the courier's connection."""
    nonce = b"\x00" + secrets.token_bytes(15)
    message = cbor.encode([12, nonce, COSE, courier.grant.token, bytes(32), bytes(32), "unlock"])
    return session.NAMES[session.parse_message_3(courier.prover.exchange(message))["status"]]


def test_after_an_accepted_compatibility_round_nothing_is_delivered(lock, press, courier):
    courier.accepted()
    nonce, grant = b"\x01" + secrets.token_bytes(15), courier.grant
    proofs = [session.proof(grant.proof_key, nonce, grant.claims[name]) for name in ("integrity", "device")]
    m3 = courier.prover.exchange(cbor.encode([12, nonce, COSE, grant.token, *proofs, "unlock"]))
    assert session.parse_message_3(m3)["status"] == 0
    courier.expect_malformed(bulletins.deliver(press.sign(press.claims())))


def test_one_signature_is_checked_for_each_accepted_round_and_a_repetition_buys_none(lock, press, courier):
    first, second = press.claims(), press.claims(bulletins.group_id(GROUPS[0]))
    courier.take(press, press.sign(first), first)
    assert courier.deliver(press.sign(second)) == "busy"
    assert courier.deliver(press.sign(first)) == "known", "a known one costs nothing"
    assert courier.deliver(press.sign(press.claims(predecessor=LARGEST - 1, number=LARGEST))) == "missed"
    request = session.request("lock", number=next(Courier.numbers))
    assert courier.prover.ask(courier.grant, "lock", request=request).status == 0
    assert courier.deliver(press.sign(second)) == "taken"
    press.note(second)
    again = courier.prover.ask(courier.grant, "lock", request=request)
    assert again.status == 0 and "highest" in again.result, "a repetition"
    assert courier.deliver(press.sign(press.claims())) == "busy"


def test_eight_messages_are_answered_after_each_accepted_round_and_no_ninth(lock, press, courier):
    claims = press.claims()
    courier.take(press, press.sign(claims), claims)
    for _ in range(MOST_MESSAGES - 1):
        assert courier.deliver(press.sign(claims)) == "known"
    courier.accepted()
    for _ in range(MOST_MESSAGES):
        assert courier.ask() == press.list
    courier.expect_malformed(bulletins.ASK)
    assert ask_status(lock, lock.grant(COSE)) == "accepted"


def test_mail_leaves_the_open_challenge_as_it_was(lock, press, courier):
    courier.accepted()
    attempt = courier.prover.attempt(courier.grant)
    assert courier.deliver(press.sign(press.claims())) == "taken"
    assert courier.ask()
    assert courier.prover.send(attempt).status == 0, "the answer to the challenge from before"


@pytest.mark.parametrize(
    "message",
    [
        cbor.encode([7]),
        cbor.encode([7, None, None]),
        cbor.encode([7, b"", None]),
        cbor.encode([7, "text"]),
        cbor.encode([7, 0]),
        cbor.encode([7, []]),
        cbor.encode([7, True]),
        cbor.encode([7, None]) + b"\x00",
        cbor.encode([7, b"bulletin"])[:-1],
        bytes.fromhex("820741"),
        bytes.fromhex("9f07f6ff"),
        bytes.fromhex("82075f4101ff"),
        bytes.fromhex("82075800"),
        cbor.encode([7, bytes(3073)]),
        cbor.encode([7, bytes(4000)]),
        cbor.encode([8, 0]),
        cbor.encode([8, 0, [[bytes(16), 1]]]),
        bytes.fromhex("821807f6"),
    ],
    ids=lambda message: message[:8].hex(),
)
def test_a_message_that_is_no_mail_is_malformed_and_ends_the_connection(lock, press, courier, message):
    courier.accepted()
    courier.expect_malformed(message)
    assert ask_status(lock, lock.grant(COSE)) == "accepted"


def test_a_flood_of_messages_ends_the_connection_and_writes_nothing(lock, press, courier):
    claims = press.claims()
    courier.take(press, press.sign(claims), claims)
    entries, again = len(lock.audit()), bulletins.deliver(press.sign(claims))
    for _ in range(20):
        flood = Courier(lock)
        flood.accepted()
        flood.prover.next_m1()
        answers = 0
        try:
            for _ in range(200):
                flood.prover.connection.send(again)
            while True:
                answer = flood.prover.connection.receive()
                answers += cbor.decode(answer)[0] == bulletins.RESULT
        except (transport.Closed, TimeoutError):
            pass
        flood.close()
        assert answers <= MOST_MESSAGES
    assert ask_status(lock, lock.grant(COSE)) == "accepted"
    rounds = [each for each in lock.audit()[entries:] if each["event"] not in ("round", "unproved")]
    assert rounds == [], "what the flood wrote"
    assert courier.round().result["bulletins"] == press.state
