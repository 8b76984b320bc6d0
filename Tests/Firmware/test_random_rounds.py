"""Rounds of every kind in any order, under a policy that has every kind of rule, for two devices to agree on."""

import collections
import random
import secrets

import pytest
from device_users import TIME_SUITE, Users
from holdfast_peer import oath, session
from holdfast_peer.activation import seal_question
from holdfast_peer.session import COSE, JOSE, SLOWED_BY, STATUS
from shared_keys import SharedKey

DAY = 86400
# The tenth is answered late.
MOST_FAILURES = 8

PROVED = ["integrity", "device"]
POLICY = {
    "version": 1,
    "issuer": {"mac": True},
    "accept_unsigned": True,
    "generation_floor": 2,
    "minimum_version": [1, 2, 0],
    "maximum_age_seconds": 7200,
    "maximum_issue_advance_days": 30,
    "codes": {"counter_look_ahead": 5, "clock_tolerance_seconds": 60, "seal_parameter_length": 8},
    "commands": {
        "lock": {"factors": PROVED, "compatibility": True},
        "unlock": {"factors": PROVED},
        "status": {"factors": ["device"], "compatibility": True, "minimum_version": [0, 0, 0], "generation_floor": 0},
        "configure": {"factors": [*PROVED, "otp"], "maximum_age_seconds": 60},
        "open-safe": {"factors": [*PROVED, "seal"]},
        "both": {"factors": [*PROVED, "otp", "seal"]},
        "user-sync": {"factors": ["device"]},
    },
}
# What the script of rounds, which is always the same, brings about.
EXPECTED = {number for name, number in STATUS.items() if name not in ("challengeExpired", "internal")}


@pytest.fixture
def board_policy():
    return POLICY


class Rounds:
    def __init__(self, device, seed):
        self.device, self.choose, self.shared_key = device, random.Random(seed), SharedKey(device)
        self.shared_key.prepare(has_policy=True)
        users = Users(device)
        self.users = [users.hotp_user(), users.hotp_user()]
        # Whose codes are made from the device's time.
        self.timed = users.provision()
        self.grants, self.statuses, self.failures, self.number = [], collections.Counter(), 0, 1000
        self.generation, self.prover = 2, device.connect()

    def now(self):
        """The device's time, by the challenge that is open."""
        return session.parse_message_1(self.prover.next_m1())["clock"]

    def run(self, count):
        for _ in range(count):
            self.one()
            if self.failures >= MOST_FAILURES or self.choose.random() < 0.02:
                self.device.restart()
                self.failures, self.prover = 0, self.device.connect()

    def good(self):
        """A token to which no rule objects."""
        now = self.now()
        return self.device.grant(COSE, generation=self.generation, version=[2, 0, 0], issuedAt=now, expires=now + 3600)

    def guess(self, count):
        """A user's codes are guessed until they are locked out, and more."""
        for _ in range(count):
            user, grant = self.users[0], self.good()
            request = session.request("configure", None, (user.name, "000000"))
            self.send(self.prover.attempt(grant, request=request).message())

    def fill(self, count):
        """Nonces that stay for an hour, more than a token may have, and more than there is room for."""
        for number in range(count):
            if number % 10 == 0:
                grant = self.good()
            self.send(self.compatible(grant, b"\x7f" + bytes(14) + bytes([number])))

    def one(self):
        self.send(self.compatible() if self.choose.random() < 0.2 else self.usual())

    def send(self, message):
        status = session.parse_message_3(self.prover.exchange(message))["status"]
        self.statuses[status] += 1
        self.failures += status in SLOWED_BY
        if status == STATUS["malformed"]:
            self.prover = self.device.connect()

    def grant(self):
        """A token, new or not."""
        if self.grants and self.choose.random() < 0.5:
            return self.choose.choice(self.grants)
        changes = self.claims()
        make = self.choose.choices((self.signed, self.shared, self.unsigned, self.strange), (6, 2, 1, 1))[0]
        self.grants = [*self.grants[-5:], make(changes)]
        return self.grants[-1]

    def signed(self, changes):
        issuer = self.choose.choice((self.device.issuer, self.device.raised[COSE]))
        return self.device.grant(self.choose.choice((COSE, JOSE)), issuer, **changes)

    def shared(self, changes):
        return self.shared_key.grant(**changes)

    def unsigned(self, changes):
        return self.shared_key.grant(plaintext=lambda payload: payload, **changes)

    def strange(self, changes):
        return self.device.grant(COSE, self.device.stranger, **changes)

    def claims(self):
        """What differs from the usual claims, which are good under the policy for most commands."""
        pick, now = self.choose.choice, self.now()
        self.generation += self.choose.random() < 0.03
        changes = {
            "generation": self.generation - (self.choose.random() < 0.1),
            "version": pick(([1, 1, 9], *[[1, 2, 0]] * 4, [2, 0, 0])),
        }
        changes["issuedAt"] = now + pick(
            (-9000, -100, 40, 29 * DAY, 31 * DAY) if self.choose.random() < 0.1 else (-30, -5, 0, 1, 20)
        )
        changes["expires"] = changes["issuedAt"] + pick((1, 40, 3600, 3600, 3600))
        optional = {
            "maximumUses": (0, 1, 2),
            "commands": ([], ["lock"], ["unlock", "configure", "open-safe"]),
            "user": [user.name for user in (*self.users, self.timed)] + ["nobody"],
        }
        for name, values in optional.items():
            if self.choose.random() < 0.15:
                changes[name] = pick(values)
        return changes

    def proof(self, right):
        return self.choose.choices((right, secrets.token_bytes(32), None), (15, 1, 1))[0]

    def usual(self):
        pick = self.choose.choice
        grant, user = self.grant(), pick((*self.users, self.timed))
        command = pick((*POLICY["commands"], "self-destruct"))
        parameters = pick((None, [], [user.name], ["7"], ["123456789"]))
        codes = (
            self.timed_codes(command, parameters)
            if user is self.timed
            else (self.code(user, user.hotp), self.seal(user, command, parameters))
        )
        request = session.request(command, parameters, *codes, number=self.next_number())
        attempt = self.prover.attempt(grant, request=request, by_reference=self.choose.random() < 0.2)
        attempt.imp, attempt.dmp = self.proof(attempt.imp), self.proof(attempt.dmp)
        if self.choose.random() < 0.03:
            attempt.sealed = attempt.sealed[:-1] + bytes([attempt.sealed[-1] ^ 1])
        return attempt.message()

    def next_number(self):
        """None, a higher one than any, or one of before: the last, in the window, below it."""
        if self.choose.random() < 0.6:
            return None
        number = self.number + self.choose.choice((1, 1, 1, 40, 0, 0, -3, -70))
        self.number = max(self.number, number)
        return number

    def code(self, user, make):
        """Codes in order, and others: earlier, further on, wrong, somebody's."""
        kind = self.choose.choices(("none", "next", "again", "ahead", "far", "wrong", "other"), (3, 8, 1, 1, 1, 1, 1))[
            0
        ]
        if kind == "none":
            return None
        if kind == "other":
            return ("nobody", "000000")
        counters = {"again": max(user.counter - 1, 0), "ahead": user.counter + 3, "far": user.counter + 20}
        return (user.name, "000000" if kind == "wrong" else make(counters.get(kind)))

    def timed_codes(self, command, parameters):
        """Of these minutes and others."""
        user, now = self.timed, self.now() + 30 * self.choose.randint(-3, 3)
        seal = oath.ocra(TIME_SUITE, user.seal_secret, seal_question(command, parameters or ()), time=now // 60)
        return (user.name, oath.totp(user.otp_secret, now)), (user.name, seal)

    def seal(self, user, command, parameters):
        made = self.code(user, lambda counter: user.seal(command, *(parameters or ()), counter=counter))
        return made and (made[0], made[1])

    def compatible(self, grant=None, nonce=None):
        """A round whose nonce the app chose; without one, sometimes a nonce of before, and proofs that are wrong."""
        pick, usual = self.choose.choice, grant is None
        if usual:
            grant, nonce = self.grant(), bytes([pick(range(128))]) + pick((secrets.token_bytes(15), bytes(15)))
            if self.choose.random() < 0.05:
                nonce = b"\x80" + nonce[1:]
        proofs = [session.proof(grant.proof_key, nonce, grant.claims[name]) for name in ("integrity", "device")]
        if usual:
            proofs = [self.proof(proof) for proof in proofs]
        return session.cbor.encode([12, nonce, grant.encoding, grant.token, *proofs, pick(("lock", "status"))])


def test_rounds_of_every_kind_in_any_order_are_answered_as_by_linux(board_device):
    script = Rounds(board_device, seed=6)
    script.run(150)
    script.guess(8)
    script.run(100)
    script.fill(40)
    script.run(100)
    assert EXPECTED <= set(script.statuses), f"never seen: {sorted(EXPECTED - set(script.statuses))}"


def test_answers_were_compared(twin, same_answers):
    if twin is None:
        pytest.skip("no --twin was given")
    count = sum(same_answers)
    print(f"{count} answers of the board are those of the Linux device to the same challenges, byte for byte")
    assert count > 0, "there were none"
