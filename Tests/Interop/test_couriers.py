"""Bulletins at a served device: this peer writes them, and carries them there; and what an attacker who carries them can bring about.

Source: docs/couriers.md.
"""

import json
import os
import random
import secrets
import time

import pytest
from couriers import GROUPS, MOST_MESSAGES, Courier, Press, VisitedDevice, ask_status, compatibility_status
from device_users import Users
from devices import served
from holdfast_peer import bulletins, cbor, cose, session, transport
from holdfast_peer.issuer import Issuer
from holdfast_peer.keys import PrivateKey, jwk, key_id, mac_jwk, point_of_jwk
from holdfast_peer.refusal import Refused
from holdfast_peer.session import COSE, JOSE

DAY, LARGEST = 86400, 2**53 - 1
DENIED, MALFORMED, USAGE = 1, 2, 64
# More of them take longer: an hour is a million.
ATTEMPTS = int(os.environ.get("HOLDFAST_ATTEMPTS", "800"))


@pytest.fixture
def lock(holdfast, tmp_path):
    with served(VisitedDevice(holdfast, tmp_path)) as device:
        yield device


@pytest.fixture
def press(lock):
    return Press(lock)


@pytest.fixture
def courier(lock):
    courier = Courier(lock)
    yield courier
    courier.close()


def revocation(grant, until=None):
    return [grant.claims["tokenId"], until or grant.claims["expires"]]


# Deliveries


def test_a_bulletin_is_taken_after_a_round_and_label_7_then_says_so(lock, press, courier):
    assert courier.round().result["bulletins"] == press.state, "the state of an empty list"
    claims = press.claims(generation=1)
    assert courier.deliver(press.sign(claims)) == "taken"
    press.note(claims)
    assert courier.round().result["bulletins"] == press.state, "the state with the bulletin"
    assert courier.deliver(press.sign(claims)) == "known", "the same one again"
    taken = [each for each in lock.audit() if each["event"] == "bulletin"]
    assert [(each["issuer"], each["audience"], each["number"]) for each in taken] == [
        (press.issuer.key.kid.hex(), claims["audience"].hex(), claims["number"])
    ], "the audit log"


def test_label_7_is_in_accepted_rounds_with_a_number_only_and_is_that_of_the_tokens_key(lock, press, courier):
    courier.publish(press)
    assert courier.round().result["bulletins"] == press.state
    assert "bulletins" not in courier.prover.ask(courier.grant).result, "a round without a number"
    assert "bulletins" not in courier.round(command="open-nothing").result, "a round that is denied"
    other = Press(lock, lock.raised[COSE])
    assert courier.round(lock.grant(JOSE, other.issuer)).result["bulletins"] == other.state, "another key"
    # A repetition.
    request = session.request("lock", number=next(Courier.numbers))
    assert "bulletins" in courier.prover.ask(courier.grant, "lock", request=request).result
    again = courier.prover.ask(courier.grant, "lock", request=request).result
    assert "highest" in again and "bulletins" not in again, "a repetition"


def test_the_list_has_the_device_and_every_group_and_is_that_of_the_tokens_key(lock, press, courier):
    assert courier.accepted().ask() == press.list, "an empty list"
    courier.publish(press, bulletins.group_id(GROUPS[0]))
    courier.publish(press)
    assert courier.ask() == press.list
    assert sorted(number > 0 for _, number in press.list) == [False, True, True]
    other = Courier(lock, lock.raised[COSE])
    assert other.accepted().ask() == Press(lock, lock.raised[COSE]).list, "the list of another key"
    other.close()


def test_bulletins_for_a_group_reach_its_devices_and_no_others(lock, press, courier):
    victim = lock.grant(COSE)
    for name in GROUPS:
        courier.publish(press, bulletins.group_id(name), revoked=[revocation(victim)])
    for audience in (bulletins.group_id("south"), secrets.token_bytes(16)):
        assert courier.accepted().deliver(press.sign(press.claims(audience))) == "notAddressed"
    assert courier.round().result["bulletins"] == press.state
    assert ask_status(lock, victim) == "tokenRevoked"


def test_every_prover_delivers_and_the_numbers_of_audiences_are_independent(lock, press, courier):
    later = press.claims(issuedAt=int(time.time()), number=LARGEST - 5)
    courier.take(press, press.sign(later), later)
    other = Courier(lock)
    other.publish(press, bulletins.group_id(GROUPS[1]))
    other.close()
    assert courier.round().result["bulletins"] == press.state


# Revoked tokens


def test_a_revoked_token_is_refused_from_then_on_in_full_by_reference_in_compatibility_rounds_and_after_sigkill(
    lock, press, courier
):
    victim, bystander = lock.grant(COSE), lock.grant(JOSE)
    unseen = lock.grant(JOSE)
    namesake = lock.grant(COSE, lock.raised[COSE], tokenId=victim.claims["tokenId"])
    connected = Courier(lock)
    for grant in (victim, bystander):
        assert session.NAMES[connected.round(grant).status] == "accepted", "before"
    courier.publish(press, revoked=sorted([revocation(victim), revocation(unseen)]))

    def judged():
        assert ask_status(lock, victim) == "tokenRevoked", "in full"
        assert ask_status(lock, victim, by_reference=True) == "tokenRevoked", "by reference"
        assert compatibility_status(lock, victim) == "tokenRevoked", "in a compatibility round"
        assert ask_status(lock, unseen) == "tokenRevoked", "one that the device had not seen"
        assert ask_status(lock, bystander) == "accepted", "another token of the key"
        assert compatibility_status(lock, bystander) == "accepted"
        assert ask_status(lock, namesake) == "accepted", "the same id under another key"

    assert session.NAMES[connected.round(victim, by_reference=True).status] == "tokenRevoked", "a connected prover"
    connected.close()
    judged()
    lock.restart()
    # The device remembers no token, but what was revoked.
    judged()
    assert lock.owner("audit", "--verify").returncode == 0


def test_a_later_bulletin_that_says_nothing_or_an_earlier_time_revokes_no_less(lock, press, courier):
    victim = lock.grant(COSE)
    courier.publish(press, revoked=[revocation(victim)])
    courier.publish(press)
    courier.publish(press, revoked=[revocation(victim, until=int(time.time()) - 1000)])
    courier.publish(press, predecessor=0, revoked=[[secrets.token_bytes(16), LARGEST]])
    assert ask_status(lock, victim) == "tokenRevoked"


def test_a_prover_that_was_revoked_itself_can_still_be_told_and_delivers_no_more(lock, press, courier):
    claims = press.claims(revoked=[revocation(courier.grant)])
    courier.take(press, press.sign(claims), claims)
    assert session.NAMES[courier.round().status] == "tokenRevoked"
    assert courier.deliver(press.sign(press.claims())) == "busy"


# Versions, generations, time


def test_minimum_versions_only_rise_and_are_those_of_a_key_and_a_subject(lock, press, courier):
    def status(*version, issuer=None, **changes):
        return ask_status(lock, lock.grant(COSE, issuer, **({"version": list(version)} if version else {}), **changes))

    courier.publish(press, versions=[["interop", 1, 2, 3], ["other", 2, 0, 0]])
    courier.grant = lock.grant(COSE, version=[9, 0, 0])
    for least in ([1, 2, 3], [1, 2, 2], [0, 9, 9]):
        courier.publish(press, versions=[["interop", *least]])
        assert (status(1, 2, 2), status(1, 2, 3), status(1, 3, 0)) == ("versionTooOld", "accepted", "accepted"), least
    assert status() == "versionTooOld", "a token without a version"
    assert status(1, 0, 0, subject="another app") == "accepted"
    assert status(1, 0, 0, subject="Interop") == "accepted", "a subject is bytes"
    assert status(1, 0, 0, issuer=lock.raised[COSE]) == "accepted", "another key"
    assert compatibility_status(lock, lock.grant(COSE, version=[1, 2, 2])) == "versionTooOld"
    courier.publish(press, versions=[["interop", 2, 0, 0]])
    lock.restart()
    assert (status(1, 9, 9), status(2, 0, 0)) == ("versionTooOld", "accepted")


def test_a_generation_rises_and_is_that_of_a_key(lock, press, courier):
    courier.grant = lock.grant(COSE, generation=9)
    for generation in (5, 4, 0):
        courier.publish(press, generation=generation)
        with (prover := lock.connect()).connection:
            outcome = prover.ask(lock.grant(COSE, generation=4))
            assert (session.NAMES[outcome.status], outcome.result["floor"]) == ("tokenRevoked", 9)
    other = Courier(lock, lock.raised[COSE], generation=7)
    other.publish(Press(lock, lock.raised[COSE]), generation=6)
    with (prover := lock.connect()).connection:
        outcome = prover.ask(lock.grant(COSE, lock.raised[COSE], generation=6))
        assert outcome.result["floor"] == 7, "the token's generation is the higher one"
    other.publish(Press(lock, lock.raised[COSE]), number=LARGEST, generation=8)
    assert session.NAMES[other.round().status] == "tokenRevoked"
    other.close()


def test_a_bulletin_raises_the_clock_floor_and_an_older_one_does_not_lower_it(lock, press, courier):
    ahead = int(time.time()) + DAY - 60
    courier.grant = lock.grant(COSE, expires=ahead + 1000)
    brief = lock.grant(COSE)
    courier.publish(press, issuedAt=ahead, number=1000 * ahead)
    assert lock.floor()["clock_floor"] == ahead
    assert ask_status(lock, brief) == "tokenExpired"
    courier.publish(press, issuedAt=ahead - 5000)
    courier.publish(press, issuedAt=0)
    assert lock.floor()["clock_floor"] == ahead
    lock.restart()
    assert ask_status(lock, brief) == "tokenExpired"


def test_a_bulletin_from_the_future_is_refused_and_changes_nothing(lock, press, courier):
    courier.accepted()
    before = lock.floor()
    for days in (1.01, 399, 401, 4000):
        ahead = int(time.time() + days * DAY)
        claims = press.claims(issuedAt=ahead, number=1000 * ahead, revoked=[revocation(courier.grant)])
        assert courier.accepted().deliver(press.sign(claims)) == "refused", f"{days} days"
    claims = press.claims(issuedAt=LARGEST // 1000, number=LARGEST)
    assert courier.accepted().deliver(press.sign(claims)) == "refused"
    assert courier.round().result["bulletins"] == press.state
    assert lock.floor() == before


def test_the_highest_number_of_all_is_the_last_one(lock, press, courier):
    last = press.claims(number=LARGEST)
    courier.take(press, press.sign(last), last)
    for claims in (press.claims(number=LARGEST, predecessor=0), press.claims(number=LARGEST - 1, predecessor=0)):
        assert courier.accepted().deliver(press.sign(claims)) == "known"
    assert courier.round().result["bulletins"] == press.state


# Users


def test_users_are_locked_and_removed_by_a_sealed_bulletin_for_the_device(lock, press, courier):
    users = Users(lock)
    kept, locked, removed = users.hotp_user(), users.hotp_user(), users.hotp_user()
    changes = sorted([[locked.name, LARGEST], [removed.name, None], ["nobody", None]])
    claims = press.claims(users=changes)
    assert courier.accepted().deliver(press.sign(claims)) == "refused", "not sealed"
    group = press.claims(bulletins.group_id(GROUPS[0]), users=changes)
    assert courier.accepted().deliver(press.seal(group)) == "refused", "for a group"
    another = press.claims(secrets.token_bytes(16), users=changes)
    assert courier.accepted().deliver(press.seal(another)) == "refused", "for another device"
    for user in (kept, locked, removed):
        user.expect("accepted", "configure", otp=user.hotp())
    courier.take(press, press.seal(claims), claims)

    def judged():
        kept.expect("accepted", "configure", otp=kept.hotp())
        locked.expect("lockedOut", "configure", otp=locked.hotp(9))
        removed.expect("otpRejected", "configure", otp=removed.hotp(9))

    judged()
    names = {each["user"] for each in users.owned("list")["users"]}
    assert removed.name not in names and {kept.name, locked.name} <= names
    lock.restart()
    judged()
    assert {"user-locked", "user-removed"} <= {each["event"] for each in lock.audit()}


def test_a_sealed_bulletin_may_say_anything_and_to_read_one_costs_the_check(lock, press, courier):
    victim = lock.grant(COSE)
    claims = press.claims(revoked=[revocation(victim)])
    courier.take(press, press.seal(claims), claims)
    assert ask_status(lock, victim) == "tokenRevoked"
    assert courier.deliver(press.seal(claims)) == "busy", "no check is left to see that it is known"
    assert courier.accepted().deliver(press.seal(claims)) == "known"
    assert courier.deliver(press.seal(claims)) == "busy", "a known one has cost it, too"
    foreign = press.claims(secrets.token_bytes(16))
    assert courier.accepted().deliver(press.seal(foreign)) == "notAddressed"
    assert courier.accepted().deliver(press.seal(claims, PrivateKey().point)) == "refused", "sealed to another device"
    twice = bulletins.seal(press.seal(press.claims()), lock.descriptor.point)
    assert courier.accepted().deliver(twice) == "refused", "sealed twice"
    assert courier.round().result["bulletins"] == press.state


# Keys


def key(issuer, start=None, end=None):
    now, point = int(time.time()), issuer.key.point
    return [point[1:33], point[33:], start or now - 10, end or now + 3600]


def test_a_key_that_a_named_issuer_introduces_is_trusted_in_its_time_and_ends(lock, press, courier):
    successor, later, past = Issuer(), Issuer(), Issuer()
    now = int(time.time())
    keys = [key(successor), key(later, now + 1000, now + 2000), key(past, 1, now - 1)]
    courier.publish(press, introduced=sorted(keys))
    status = [ask_status(lock, lock.grant(COSE, each)) for each in (successor, later, past)]
    assert status == ["accepted", "tokenInvalid", "tokenInvalid"]
    shown = lock.trusted()[successor.key.kid.hex()]
    assert now - 20 <= shown["from"] <= now and now + 3590 <= shown["until"], "device show"
    # Its bulletins count, also about itself; it introduces nobody.
    other, heirs = Courier(lock, successor), Press(lock, successor)
    victim = lock.grant(COSE, successor)
    other.publish(heirs, revoked=[revocation(victim)])
    assert ask_status(lock, victim) == "tokenRevoked"
    assert other.accepted().deliver(heirs.sign(heirs.claims(introduced=[key(Issuer())]))) == "refused"
    assert other.accepted().deliver(heirs.sign(heirs.claims(ended=[press.issuer.key.kid]))) == "taken", "no effect"
    assert courier.round().status == 0, "the issuer that introduced it"
    lock.restart()
    assert ask_status(lock, lock.grant(COSE, successor)) == "accepted"
    courier = Courier(lock)
    courier.publish(press, ended=[successor.key.kid])
    assert ask_status(lock, lock.grant(COSE, successor)) == "tokenInvalid"
    courier.publish(press, introduced=[key(successor)])
    assert ask_status(lock, lock.grant(COSE, successor)) == "tokenInvalid", "introduced again"
    courier.close()


def test_a_remembered_token_of_a_key_that_ends_is_invalid_at_once_and_so_is_its_courier(lock, press, courier):
    other, heirs = Courier(lock, lock.raised[COSE]), Press(lock, lock.raised[COSE])
    other.publish(heirs, ended=[heirs.issuer.key.kid])
    assert session.NAMES[other.round(by_reference=True).status] == "tokenInvalid"
    other.expect_malformed(bulletins.ASK)
    assert courier.accepted().deliver(heirs.sign(heirs.claims())) == "refused", "a bulletin of a key that ended"
    assert courier.round().status == 0


def test_keys_end_only_by_themselves_or_by_the_key_that_introduced_them(lock, press, courier):
    owners = lock.raised[COSE]
    courier.publish(press, ended=sorted([owners.key.kid, Issuer().key.kid]))
    assert ask_status(lock, lock.grant(COSE, owners)) == "accepted"
    # The owner's key is not changed by an introduction, and cannot be ended through one.
    courier.publish(press, introduced=[key(owners, 1, 2)])
    courier.publish(press, ended=[owners.key.kid])
    assert ask_status(lock, lock.grant(COSE, owners)) == "accepted"


def test_a_key_that_the_owner_trusts_after_it_was_introduced_is_the_owners(lock, press, courier):
    successor = Issuer()
    courier.publish(press, introduced=[key(successor)])
    assert lock.trust(successor).returncode == 0
    courier.publish(press, ended=[successor.key.kid])
    assert ask_status(lock, lock.grant(COSE, successor)) == "accepted"


def test_an_issuer_that_the_policy_does_not_name_introduces_nobody(lock):
    other, heirs = Courier(lock, lock.raised[COSE]), Press(lock, lock.raised[COSE])
    assert other.accepted().deliver(heirs.sign(heirs.claims(introduced=[key(Issuer())]))) == "refused"
    assert other.accepted().deliver(heirs.sign(heirs.claims(introduced=[key(heirs.issuer)]))) == "refused"
    other.close()
    assert len(lock.trusted()) == 3


def test_a_point_that_is_no_key_is_introduced_without_harm(lock, press, courier):
    now = int(time.time())
    courier.publish(press, introduced=[[b"\x01" * 32, b"\x02" * 32, now - 5, now + 500]])
    lock.restart()
    assert ask_status(lock, lock.grant(COSE)) == "accepted"
    assert lock.owner("show").returncode == 0


# What a session permits


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


# Bulletins that are not to be taken


def test_a_forged_bulletin_ends_the_connection_and_changes_nothing(lock, press, courier):
    good = press.sign(press.claims(revoked=[revocation(courier.grant)]))
    forger = Press(lock, Issuer())
    named = bulletins.protected(press.issuer.key.kid)
    forgeries = [
        good[:-1] + bytes([good[-1] ^ 1]),
        bulletins.sign(press.claims(generation=9), forger.issuer.key, protected=named),
        bulletins.sign(press.claims(), press.issuer.key, signature=bytes(64)),
        bulletins.sign(press.claims(), press.issuer.key, signature=b"\xff" * 64),
    ]
    # A signature over the same claims as a token's, and a sealed forgery.
    payload = bulletins.to_cbor(press.claims())
    other = press.issuer.key.sign(cose.signature_input(cose.sign_protected(press.issuer.key.kid), payload))
    forgeries.append(bulletins.sign(payload, press.issuer.key, signature=other))
    forgeries.append(bulletins.seal(forgeries[1], lock.descriptor.point))
    for number, forgery in enumerate(forgeries):
        attacker = Courier(lock).accepted()
        assert attacker.deliver(forgery) == "refused", number
        attacker.expect_closed()
    assert courier.round().result["bulletins"] == press.state
    assert not [each for each in lock.audit() if each["event"] == "bulletin"]


def test_replayed_and_older_bulletins_are_known_also_after_sigkill_and_after_the_key_was_trusted_anew(
    lock, press, courier
):
    published = []
    for number in range(3):
        claims = press.claims(versions=[["another app", 0, 0, number]], predecessor=0)
        courier.take(press, press.sign(claims), claims)
        published.append(press.sign(claims))

    def replay():
        courier = Courier(lock)
        for bulletin in published:
            assert courier.accepted().deliver(bulletin) == "known"
        assert courier.round().result["bulletins"] == press.state
        courier.close()

    replay()
    lock.restart()
    replay()
    file = lock.folder / "issuer-0.jwk"
    assert lock.owner("trust", "--remove", file).returncode == 0
    assert lock.hand_in(published[0])[0] == MALFORMED, "a key that is not trusted"
    assert lock.owner("trust", file).returncode == 0
    replay()


def test_the_parts_of_a_set_are_taken_in_their_order_only(lock, press, courier):
    tokens = sorted(secrets.token_bytes(16) for _ in range(300))
    parts, last = [], 0
    for start in range(0, 300, 100):
        entries = [[token, LARGEST] for token in tokens[start : start + 100]]
        number = 1000 * int(time.time()) + start
        parts.append(press.claims(number=number, predecessor=last, revoked=entries))
        last = number
    for part in (parts[2], parts[1]):
        assert courier.accepted().deliver(press.sign(part)) == "missed"
    for part in (parts[0], parts[1]):
        courier.take(press, press.sign(part), part)
    assert courier.accepted().deliver(press.sign(parts[0])) == "known"
    courier.take(press, press.sign(parts[2]), parts[2])
    assert courier.round().result["bulletins"] == press.state
    for token in tokens[:: len(tokens) // 10]:
        assert ask_status(lock, lock.grant(COSE, tokenId=token)) == "tokenRevoked"


def test_a_bulletin_that_is_cut_anywhere_is_refused(lock, press, courier):
    signed = press.sign(press.claims(revoked=[revocation(courier.grant)], generation=9))
    sealed = press.seal(press.claims(generation=9))
    for length in range(len(signed)):
        if length % MOST_MESSAGES == 0:
            courier.accepted()
        assert courier.deliver(signed[:length]) == "refused", f"{length} bytes of a signed one"
    for length in range(0, len(sealed), 3):
        assert courier.accepted().deliver(sealed[:length]) == "refused", f"{length} bytes of a sealed one"
    for bulletin in (signed, sealed):
        assert courier.accepted().deliver(bulletin + b"\x00") == "refused", "a byte after it"
    assert courier.round().result["bulletins"] == press.state


def test_no_change_of_a_single_bit_is_taken(lock, press):
    for make in (press.sign, press.seal):
        bulletin = make(press.claims(generation=3))
        for index in range(0, len(bulletin), 2):
            changed = bytearray(bulletin)
            changed[index] ^= 1 << index % 8
            attacker = Courier(lock).accepted()
            assert attacker.deliver(bytes(changed)) not in ("taken", "full"), f"byte {index}"
            attacker.close()
    courier = Courier(lock)
    assert courier.round().result["bulletins"] == press.state
    courier.close()


def wrong_claims(press, victim):
    """Claims that break one rule each, by name. All are signed by the right key."""
    good, token = press.claims(), revocation(victim)
    fields = bulletins.to_map(good)
    other = [secrets.token_bytes(16), LARGEST]
    pair = sorted([token, other])
    entry = key(Issuer())
    return {
        "an unknown claim": {**fields, 11: 0},
        "an unknown claim before the others": {**fields, 0: 0},
        "a text as a label": {**fields, "x": 0},
        "a negative label": {**fields, -1: 0},
        "no number": {k: v for k, v in fields.items() if k != 1},
        "no predecessor": {k: v for k, v in fields.items() if k != 2},
        "no time": {k: v for k, v in fields.items() if k != 3},
        "no audience": {k: v for k, v in fields.items() if k != 4},
        "number 0": {**fields, 1: 0, 2: 0, 3: 0},
        "a number above 2^53 - 1": {**fields, 1: 2**53},
        "a number below the time": {**fields, 1: 1000 * good["issuedAt"] - 1},
        "a predecessor that is the number": {**fields, 2: good["number"]},
        "a negative predecessor": {**fields, 2: -1},
        "the audience in text": {**fields, 4: good["audience"].hex()},
        "an audience of 15 bytes": {**fields, 4: good["audience"][:15]},
        "an empty list of tokens": {**fields, 5: []},
        "121 tokens": {**fields, 5: sorted([secrets.token_bytes(16), 1] for _ in range(121))},
        "tokens in descending order": {**fields, 5: pair[::-1]},
        "a token twice": {**fields, 5: [token, token]},
        "a token twice, with other times": {**fields, 5: [token, [token[0], LARGEST]]},
        "a token id of 15 bytes": {**fields, 5: [[token[0][:15], 1]]},
        "a token without a time": {**fields, 5: [[token[0]]]},
        "a token that is no array": {**fields, 5: [token[0]]},
        "a negative generation": {**fields, 6: -1},
        "null as generation": {**fields, 6: None},
        "an empty subject": {**fields, 7: [["", 1, 0, 0]]},
        "a subject of 65 bytes": {**fields, 7: [["x" * 65, 1, 0, 0]]},
        "subjects in descending order": {**fields, 7: [["b", 1, 0, 0], ["a", 1, 0, 0]]},
        "a subject twice": {**fields, 7: [["a", 1, 0, 0], ["a", 2, 0, 0]]},
        "a version of two numbers": {**fields, 7: [["a", 1, 0]]},
        "17 versions": {**fields, 7: [[f"{i:02}", 1, 0, 0] for i in range(17)]},
        "a key whose times are the same": {**fields, 8: [[*entry[:2], 5, 5]]},
        "a key that ends before it begins": {**fields, 8: [[*entry[:2], 6, 5]]},
        "a coordinate of 31 bytes": {**fields, 8: [[entry[0][:31], *entry[1:]]]},
        "a key twice": {**fields, 8: [entry, entry]},
        "five keys": {**fields, 8: sorted(key(Issuer()) for _ in range(5))},
        "a key id of 7 bytes": {**fields, 9: [bytes(7)]},
        "ended keys in descending order": {**fields, 9: [b"\x02" * 8, b"\x01" * 8]},
        "an ended key twice": {**fields, 9: [bytes(8), bytes(8)]},
        "17 ended keys": {**fields, 9: [bytes([i]) * 8 for i in range(17)]},
        "users, not sealed": {**fields, 10: [["alice", None]]},
    }


def wrong_users(press):
    """Claims about users that break one rule each, by name. They come sealed."""
    fields = bulletins.to_map(press.claims())
    return {
        "an empty name": {**fields, 10: [["", None]]},
        "a name of 33 bytes": {**fields, 10: [["x" * 33, None]]},
        "no users": {**fields, 10: []},
        "a user twice": {**fields, 10: [["a", None], ["a", 1]]},
        "users in descending order": {**fields, 10: [["b", None], ["a", None]]},
        "33 users": {**fields, 10: [[f"{i:02}", None] for i in range(33)]},
        "a time below 0": {**fields, 10: [["a", -1]]},
    }


def test_claims_that_break_one_rule_are_refused_without_a_check_of_the_signature(lock, press, courier):
    for name, fields in wrong_claims(press, courier.grant).items():
        courier.accepted()
        assert courier.deliver(press.sign(cbor.encode(fields))) == "refused", name
        claims = press.claims()
        # The check is still there.
        assert courier.deliver(press.sign(claims)) == "taken", name
        press.note(claims)
    for name, fields in wrong_users(press).items():
        sealed = press.seal(cbor.encode(fields))
        assert courier.accepted().deliver(sealed) == "refused", name
    assert courier.round().result["bulletins"] == press.state


def test_other_envelopes_are_refused(lock, press, courier):
    claims, issuer = press.claims(generation=9), press.issuer.key
    payload, mac_key = bulletins.to_cbor(claims), secrets.token_bytes(32)
    file = lock.folder / "mac.jwk"
    file.write_text(json.dumps(mac_jwk(mac_key)))
    file.chmod(0o600)
    lock.owner("trust", file)
    kid = issuer.kid
    envelopes = {
        "a token's type": bulletins.sign(payload, issuer, protected=cose.sign_protected(kid)),
        "no type": bulletins.sign(payload, issuer, protected=cbor.encode({1: -7, 4: kid})),
        "another algorithm": bulletins.sign(
            payload, issuer, protected=cbor.encode({1: -8, 4: kid, 16: "holdfast-bulletin"})
        ),
        "a header more": bulletins.sign(
            payload, issuer, protected=cbor.encode({1: -7, 3: 0, 4: kid, 16: "holdfast-bulletin"})
        ),
        "a kid of 7 bytes": bulletins.sign(payload, issuer, protected=bulletins.protected(kid[:7])),
        "an unprotected header": bulletins.sign(payload, issuer, unprotected=cbor.encode({4: kid})),
        "no tag": bulletins.sign(payload, issuer, tag=None),
        "another tag": bulletins.sign(payload, issuer, tag=17),
        "a signature of 63 bytes": bulletins.sign(payload, issuer, signature=bytes(63)),
        "a key that nobody trusts": bulletins.sign(payload, PrivateKey()),
        "a MAC": cose.authenticate(payload, mac_key),
        "a MAC of this type": cose.authenticate(
            payload, mac_key, protected=cbor.encode({1: 5, 4: cose.mac_key_id(mac_key), 16: "holdfast-bulletin"})
        ),
        "a signature under the id of a MAC key": bulletins.sign(
            payload, issuer, protected=bulletins.protected(cose.mac_key_id(mac_key))
        ),
        "a measurement token": courier.grant.token,
        "the claims by themselves": payload,
        "nothing": b"",
        "an oversized one": press.sign(press.claims(revoked=sorted([secrets.token_bytes(16), 1] for _ in range(120))))[
            :-1
        ].ljust(bulletins.LARGEST_BULLETIN, b"\x00"),
    }
    for name, bulletin in envelopes.items():
        attacker = Courier(lock).accepted()
        assert attacker.deliver(bulletin) == "refused", name
        attacker.close()
    assert courier.round().result["bulletins"] == press.state


def test_the_longest_bulletin_is_taken(lock, press, courier):
    tokens = sorted([secrets.token_bytes(16), LARGEST] for _ in range(bulletins.LISTS[5][1] - 30))
    claims = press.claims(revoked=tokens)
    signed = press.sign(claims)
    assert len(signed) <= bulletins.LARGEST_BULLETIN
    courier.take(press, signed, claims)
    assert courier.round().result["bulletins"] == press.state


class Attacker:
    """A courier who was at the device before, and tries whatever it has seen, damaged or not, in any order."""

    def __init__(self, lock, press, random):
        self.lock, self.press, self.random = lock, press, random
        self.seen, self.issued = [], {}
        self.stranger = Press(lock, Issuer())
        self.courier = Courier(lock)

    def publish(self, audience):
        """A bulletin of the issuer that somebody else delivers, and that replaces the one before or comes after it."""
        entry = [self.random.randbytes(16), LARGEST]
        last = self.issued.get(audience, 0)
        claims = self.press.claims(audience, revoked=[entry], predecessor=self.random.choice((0, last)))
        claims["number"] = self.issued[audience] = max(claims["number"], last + 1)
        bulletin = self.random.choice((self.press.sign, self.press.seal))(claims)
        self.seen.append(bulletin)
        # Some of them the attacker keeps to itself, so that those after them may miss it.
        if self.random.random() < 0.5:
            courier = Courier(self.lock).accepted()
            result = courier.deliver(bulletin)
            courier.close()
            if result == "taken":
                self.press.note(claims)
                return entry[0]
            assert result == "missed"
        return None

    def damaged(self):
        bulletin = bytearray(self.random.choice(self.seen))
        for _ in range(self.random.randrange(1, 4)):
            bulletin[self.random.randrange(len(bulletin))] ^= 1 << self.random.randrange(8)
        return bytes(bulletin)

    def cut(self):
        bulletin = self.random.choice(self.seen)
        return bulletin[: self.random.randrange(len(bulletin))]

    def spliced(self):
        one, other = (self.random.choice(self.seen) for _ in range(2))
        at = self.random.randrange(min(len(one), len(other)))
        return one[:at] + other[at:]

    def forged(self):
        ahead = self.random.choice((0, 1000, 500 * DAY))
        claims = self.press.claims(
            issuedAt=int(time.time()) + ahead, number=LARGEST, introduced=[key(self.stranger.issuer)]
        )
        kid = self.random.choice((self.press.issuer, self.stranger.issuer)).key.kid
        forged = bulletins.sign(claims, self.stranger.issuer.key, protected=bulletins.protected(kid))
        return self.random.choice((forged, bulletins.seal(forged, self.lock.descriptor.point)))

    def old(self):
        return self.random.choice(self.seen)

    def attack(self):
        """One attempt: what was delivered, and the result."""
        if self.random.random() < 0.8:
            self.courier.round()
        bulletin = self.random.choice((self.damaged, self.cut, self.spliced, self.forged, self.old, self.old))()
        try:
            result = bulletins.parse_answer(self.courier.send(bulletins.deliver(bulletin)))[0]
        except (Refused, transport.Closed, TimeoutError):
            result = "closed"
        if result in ("closed", "refused"):
            self.courier.close()
            self.courier = Courier(self.lock)
        return bulletin, result


def test_an_attacker_who_tries_everything_in_any_order_makes_the_device_forget_nothing(lock, press):
    attacker = Attacker(lock, press, random.Random(7))
    revoked, results = [], set()
    floor, keys = lock.floor()["clock_floor"], lock.trusted().keys()
    for step in range(ATTEMPTS):
        if step % 40 == 0:
            tokens = [attacker.publish(lock.audiences[step // 40 % 3]) for _ in range(3)]
            revoked += filter(None, tokens)
        bulletin, result = attacker.attack()
        results.add(result)
        if result == "taken":
            assert bulletin in attacker.seen, "something that the issuer has not signed"
            # It was kept back until now, and nothing newer has come.
            taken = bulletins.check_list(Courier(lock).accepted().ask())
            assert all(now[1] >= before[1] for now, before in zip(taken, press.list, strict=True)), "an older one"
            press.numbers = dict(map(tuple, taken))
        if step % 100 == 99:
            lock.restart()
            attacker.courier.close()
            attacker.courier = Courier(lock)
            assert attacker.courier.round().result["bulletins"] == press.state, f"after attempt {step}"
            for token in attacker.random.sample(revoked, 20) if len(revoked) > 20 else revoked:
                assert ask_status(lock, lock.grant(COSE, tokenId=token)) == "tokenRevoked", f"after attempt {step}"
            assert lock.trusted().keys() == keys, "a key"
            assert lock.floor()["clock_floor"] >= floor, "the clock floor"
            floor = lock.floor()["clock_floor"]
    assert {"known", "refused", "missed", "busy", "closed"} <= results, results
    assert lock.owner("audit", "--verify").returncode == 0
    attacker.courier.close()


# Delivery by the owner


def test_the_owner_hands_in_a_bulletin_while_the_device_is_served_and_while_it_is_not(lock, press, courier):
    victim = lock.grant(COSE)
    assert session.NAMES[courier.round(victim).status] == "accepted"
    first = press.claims(revoked=[revocation(victim)])
    assert lock.hand_in(press.sign(first)) == (0, {"result": "taken"})
    press.note(first)
    assert session.NAMES[courier.round(victim, by_reference=True).status] == "tokenRevoked", "a remembered token"
    assert lock.hand_in(press.sign(first)) == (0, {"result": "known"})
    assert courier.round().result["bulletins"] == press.state
    lock.stop()
    second = press.claims(users=[["nobody", None]])
    for bulletin, status in [
        (press.seal(second), 0),
        (press.sign(press.claims(secrets.token_bytes(16))), DENIED),
        (press.sign(press.claims(predecessor=LARGEST - 1, number=LARGEST)), DENIED),
        (press.sign(press.claims())[:-1], MALFORMED),
        (bulletins.sign(press.claims(), PrivateKey()), MALFORMED),
        (bulletins.sign(press.claims(number=LARGEST), press.issuer.key, signature=bytes([1]) * 64), MALFORMED),
        (b"", MALFORMED),
        (bytes(3073), MALFORMED),
    ]:
        done = lock.hand_in(bulletin)
        assert done[0] == status, done
    press.note(second)
    lock.start()
    courier = Courier(lock)
    assert courier.round().result["bulletins"] == press.state
    courier.close()


# From a service to the device


def test_a_stolen_phone_is_refused_once_another_one_has_been_at_the_device(lock):
    run = lock.command_line
    service, descriptor = lock.service()
    phones = [lock.folder / name for name in ("phone", "stolen")]
    for phone in phones:
        run.succeed("enroll", "--device", descriptor, "--service", service, "--state", phone)

    def prove(phone, *more):
        return run.run("prove", "--connect", lock.endpoint, "--state", phone, "--command", "unlock", *more).returncode

    assert [prove(phone) for phone in phones] == [0, 0]
    token = [each for each in lock.audit() if each["event"] == "round"][-1]["token"]
    run.succeed("service", "bulletin", "--dir", service, "--device", descriptor, "--revoke", token)
    assert prove(phones[0]) == 0 and prove(phones[1]) == 0, "nobody has fetched it"
    run.succeed("sync", "--state", phones[0], "--service", service)
    assert prove(phones[1]) == 0, "nobody has delivered it"
    assert prove(phones[0], "--courier", "off") == 0 and prove(phones[1]) == 0, "a prover that delivers nothing"
    assert prove(phones[0]) == 0
    assert prove(phones[1]) == DENIED, "the stolen phone"
    lock.restart()
    assert [prove(phone) for phone in phones] == [0, DENIED]
    assert [each["event"] for each in lock.audit()].count("bulletin") == 1


def test_what_a_service_signs_is_what_the_device_does(lock):
    run, (service, descriptor), phone = lock.command_line, lock.service(), lock.folder / "phone"
    run.succeed("enroll", "--device", descriptor, "--service", service, "--state", phone)
    issuer = run.read_json("service", "show", "--dir", service)["issuer"]
    kid = key_id(point_of_jwk(issuer)).hex()
    policy = lock.device_folder / "policy.json"
    policy.write_text(policy.read_text().replace('"introducers": [', f'"introducers": ["{kid}", '))
    user, files = Users(lock).hotp_user(), iter(range(100))

    def bulletin(*words, group=None):
        """Signs one, and hands it in."""
        file = lock.folder / f"bulletin-{next(files)}"
        audience = ("--group", group) if group else ("--device", descriptor)
        signed = run.read_json("service", "bulletin", "--dir", service, *audience, *words, "--out", file)
        assert signed["bytes"] == file.stat().st_size
        return lock.hand_in(file.read_bytes())[1].get("result", "refused")

    def prove():
        return run.run("prove", "--connect", lock.endpoint, "--state", phone, "--command", "unlock").returncode

    assert prove() == 0
    successor = Issuer()
    file = lock.folder / "successor.jwk"
    file.write_text(json.dumps(jwk(successor.key.point)))
    assert bulletin("--introduce", file, "--introduce-until", "2099-01-01T00:00:00Z") == "taken"
    assert ask_status(lock, lock.grant(COSE, successor)) == "accepted"
    assert bulletin("--end", successor.key.kid.hex()) == "taken"
    assert ask_status(lock, lock.grant(COSE, successor)) == "tokenInvalid"
    user.expect("accepted", "configure", otp=user.hotp())
    assert bulletin("--lock-user", user.name) == "taken"
    user.expect("lockedOut", "configure", otp=user.hotp(9))
    assert bulletin("--remove-user", user.name) == "taken"
    user.expect("otpRejected", "configure", otp=user.hotp(9))
    assert bulletin("--minimum-version", "another-app=9.0.0", group=GROUPS[0]) == "taken"
    assert bulletin(group="south") == "refused"
    assert prove() == 0
    assert bulletin("--generation", "9", group=GROUPS[1]) == "taken"
    assert prove() == DENIED
    assert bulletin("--end", kid) == "taken"
    assert bulletin() == "refused", "of a key that has ended itself"


@pytest.mark.parametrize(
    "words",
    [
        (),
        ("--device", "00" * 16, "--group", "north"),
        ("--group", ""),
        ("--group", "g" * 33),
        ("--group", "north", "--revoke", "00" * 15),
        ("--group", "north", "--lock-user", "alice"),
        ("--group", "north", "--remove-user", "alice"),
        ("--group", "north", "--minimum-version", "app"),
        ("--group", "north", "--minimum-version", "=1.0.0"),
        ("--group", "north", "--minimum-version", "app=one"),
        ("--group", "north", "--end", "00" * 7),
        ("--group", "north", "--introduce-until", "2099-01-01T00:00:00Z"),
        ("--group", "north", "--until", "some day", "--revoke", "00" * 16),
    ],
    ids=" ".join,
)
def test_a_service_refuses_to_sign_what_is_no_bulletin(lock, words):
    service, _ = lock.service()
    done = lock.command_line.run("service", "bulletin", "--dir", service, *words)
    assert done.returncode == USAGE, done


def test_groups_that_are_none_make_no_device_and_open_none(holdfast, tmp_path):
    device = VisitedDevice(holdfast, tmp_path)
    bad = (("",), ("g" * 33,), ("north", "north"), tuple("abcdefghi"))
    for groups in bad:
        words = [word for name in groups for word in ("--group", name)]
        assert device.command_line.run("device", "init", *device.device_arguments, *words).returncode == USAGE, groups
    device.prepare()
    file = device.device_folder / "device.json"
    description = json.loads(file.read_text())
    assert description["groups"] == list(GROUPS)
    for groups in (*map(list, bad), "north", {"north": 1}, [1], [None]):
        file.write_text(json.dumps({**description, "groups": groups}))
        assert device.owner("show").returncode == MALFORMED, groups
    file.write_text(json.dumps({**description, "groups": list("abcdefgh")}))
    assert device.owner("show").returncode == 0, "eight groups"
