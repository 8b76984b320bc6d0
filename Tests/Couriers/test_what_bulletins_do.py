"""The effects of bulletins at a served device: tokens, versions, generations, time, users and keys.

Source: docs/couriers.md.
"""

import secrets
import time

from couriers import (
    GROUPS,
    Courier,
    Press,
    ask_status,
    compatibility_status,
    introduction,
    revocation,
)
from device_users import Users
from holdfast_peer import bulletins, session
from holdfast_peer.issuer import Issuer
from holdfast_peer.keys import PrivateKey
from holdfast_peer.session import COSE, JOSE

DAY, LARGEST = 86400, 2**53 - 1


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


def test_a_key_that_a_named_issuer_introduces_is_trusted_in_its_time_and_ends(lock, press, courier):
    successor, later, past = Issuer(), Issuer(), Issuer()
    now = int(time.time())
    keys = [introduction(successor), introduction(later, now + 1000, now + 2000), introduction(past, 1, now - 1)]
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
    assert other.accepted().deliver(heirs.sign(heirs.claims(introduced=[introduction(Issuer())]))) == "refused"
    assert other.accepted().deliver(heirs.sign(heirs.claims(ended=[press.issuer.key.kid]))) == "taken", "no effect"
    assert courier.round().status == 0, "the issuer that introduced it"
    lock.restart()
    assert ask_status(lock, lock.grant(COSE, successor)) == "accepted"
    courier = Courier(lock)
    courier.publish(press, ended=[successor.key.kid])
    assert ask_status(lock, lock.grant(COSE, successor)) == "tokenInvalid"
    courier.publish(press, introduced=[introduction(successor)])
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
    courier.publish(press, introduced=[introduction(owners, 1, 2)])
    courier.publish(press, ended=[owners.key.kid])
    assert ask_status(lock, lock.grant(COSE, owners)) == "accepted"


def test_a_key_that_the_owner_trusts_after_it_was_introduced_is_the_owners(lock, press, courier):
    successor = Issuer()
    courier.publish(press, introduced=[introduction(successor)])
    assert lock.trust(successor).returncode == 0
    courier.publish(press, ended=[successor.key.kid])
    assert ask_status(lock, lock.grant(COSE, successor)) == "accepted"


def test_an_issuer_that_the_policy_does_not_name_introduces_nobody(lock):
    other, heirs = Courier(lock, lock.raised[COSE]), Press(lock, lock.raised[COSE])
    assert other.accepted().deliver(heirs.sign(heirs.claims(introduced=[introduction(Issuer())]))) == "refused"
    assert other.accepted().deliver(heirs.sign(heirs.claims(introduced=[introduction(heirs.issuer)]))) == "refused"
    other.close()
    assert len(lock.trusted()) == 3


def test_a_point_that_is_no_key_is_introduced_without_harm(lock, press, courier):
    now = int(time.time())
    courier.publish(press, introduced=[[b"\x01" * 32, b"\x02" * 32, now - 5, now + 500]])
    lock.restart()
    assert ask_status(lock, lock.grant(COSE)) == "accepted"
    assert lock.owner("show").returncode == 0
