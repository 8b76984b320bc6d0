"""Bulletins that a device does not take, and an attacker who tries everything in any order.

Source: docs/couriers.md.
"""

import itertools
import json
import os
import random
import secrets
import time

from couriers import (
    MOST_MESSAGES,
    Courier,
    Press,
    ask_status,
    introduction,
    revocation,
)
from holdfast_peer import bulletins, cbor, cose, transport
from holdfast_peer.issuer import Issuer
from holdfast_peer.keys import PrivateKey, mac_jwk
from holdfast_peer.refusal import Refused
from holdfast_peer.session import COSE

DAY, LARGEST = 86400, 2**53 - 1
MALFORMED = 2
# An attacker makes so many attempts, or attacks for so many seconds if that takes longer.
ATTEMPTS, SECONDS = 800, int(os.environ.get("HOLDFAST_ATTACK_SECONDS", "0"))


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
    entry = introduction(Issuer())
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
        "five keys": {**fields, 8: sorted(introduction(Issuer()) for _ in range(5))},
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
            issuedAt=int(time.time()) + ahead, number=LARGEST, introduced=[introduction(self.stranger.issuer)]
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
    end = time.monotonic() + SECONDS
    for step in itertools.takewhile(lambda step: step < ATTEMPTS or time.monotonic() < end, itertools.count()):
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
    print(f"{step + 1} attempts, {len(revoked)} tokens revoked")
