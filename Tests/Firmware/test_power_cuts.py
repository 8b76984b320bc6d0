"""Power that fails while a board runs the firmware, after a given number of words of flash.

A life of a device is lived once, step by step. Then it is lived again from before each step, with power for a few words
only; the device starts once more, and what it holds, tells and accepts is compared with what it had promised. The store's
own tests cut the power at every word; these are a sample, on the board.
"""

import contextlib
import dataclasses
import itertools
import json
import re
import struct
import threading
import time

import pytest
from board import Gone
from cases import side_by_side
from holdfast_peer import cbor, measurement, oath, session
from holdfast_peer.activation import Activation, Unlocking, seal_question
from holdfast_peer.issuer import Issuer, fresh_claims
from holdfast_peer.keys import jwk
from holdfast_peer.transport import Closed
from provisioned import FUSE, NAMES, SECOND_SLOT, fused, running

PLENTY = 1_000_000
BLOWN = 0xFFFFFFFF
BOARDS = 2
STEPS = (
    "a round",
    "one use",
    "another use",
    "a nonce",
    "a password",
    "a seal",
    "a higher generation",
    "a revoked token",
    "an activation",
    "the password of who was activated",
    "a wrong password",
    "three more",
    "the fifth wrong password",
    "the owner's code",
    "a password after it",
    "a third use",
    "another nonce",
)
SECRET, SEAL_SECRET = bytes(range(20)), bytes(range(32, 64))
SEAL_SUITE = "OCRA-1:HOTP-SHA256-8:C-QH64"
COUNTED_USES = 6
# Words of a change of slots that are but erased: they are cut at few places.
SLOT_WORDS = 14 * 1024
POLICY = """{"version": 1, "commands": {
  "unlock": {"factors": ["integrity", "device"], "compatibility": true},
  "configure": {"factors": ["integrity", "device", "otp"]},
  "open-safe": {"factors": ["integrity", "device", "seal"]},
  "user-sync": {"factors": ["device"]}}}"""


class Device:
    """A board that has power for a given number of words. Once that is used up, it is switched off."""

    def __init__(self, lock):
        self.lock = lock
        self.watch = threading.Thread(target=self._watch, daemon=True)
        self.watch.start()

    def words_left(self):
        with open(self.lock.image, "rb") as image:
            image.seek(FUSE)
            return struct.unpack("<I", image.read(4))[0]

    def _watch(self):
        while self.lock.process.poll() is None:
            if self.words_left() == BLOWN:
                # What it had sent before is read all the same.
                self.lock.process.kill()
            time.sleep(0.005)


@contextlib.contextmanager
def powered(data, descriptor, word_count):
    with running(fused(data, word_count), descriptor) as lock:
        device = Device(lock)
        try:
            yield device
        finally:
            lock.cut_power()
            device.watch.join()


class Memory:
    """What others remember of a device's life so far."""

    def __init__(self):
        # What was accepted once: the name, and a way to try it again that says how it was answered.
        self.spent = []
        self.used, self.otp, self.locked = 0, None, False

    def but(self, spent=None, **changes):
        other = Memory()
        other.__dict__.update(self.__dict__, **changes)
        other.spent = self.spent + ([spent] if spent else [])
        return other


def accepted(message):
    """Whether it is no refusal; what is refused is one for a code."""
    if cbor.decode(message)[0] != 3:
        return True
    assert NAMES[session.parse_message_3(message)["status"]] == "otpRejected", "status"
    return False


class Life:
    """A device's life: each step is a start, and something that is asked of it."""

    def __init__(self, owner):
        self.owner, self.second = owner, Issuer()
        for name, text in (
            ("otp", SECRET.hex()),
            ("seal", SEAL_SECRET.hex()),
            ("policy.json", POLICY),
            ("second.jwk", json.dumps(jwk(self.second.key.point))),
        ):
            (owner.folder / name).write_text(text)
        image, self.descriptor = owner.provision("flash.img", "--trust", "second.jwk", "--policy", "policy.json")
        self.user(
            "add", image, "--otp", "hotp", "--otp-secret", "otp", "--seal", SEAL_SUITE, "--seal-secret", "seal", "bob"
        )
        self.activation = self.user("add", image, "--otp", "hotp", "--seal", "none", "ann")["code"]
        self.unlocking = self.user("unlock", image, "bob")["code"]
        self.lasting, self.counted = (
            owner.grant(self.descriptor),
            owner.grant(self.descriptor, maximumUses=COUNTED_USES),
        )
        later = int(time.time()) + 100
        self.newer = self.second_grant(generation=5, issuedAt=later, expires=later + 3600)
        self.stale = self.second_grant(generation=4)
        self.image = self.filled(image.read_bytes())

    def second_grant(self, **claims):
        return self.second.grant(self.descriptor.point, fresh_claims(self.descriptor.device_id, **claims), session.COSE)

    def user(self, verb, image, *options):
        return self.owner.command_line.read_json("device", "user", verb, "--firmware", image, *options)

    def filled(self, data):
        """Rounds, until the journal has little room before it moves."""
        with running(data, self.descriptor, "--count") as lock:
            prover = lock.prover()
            for number in range(2000):
                assert prover.ask(self.lasting, by_reference=number > 0).status == 0, "status"
                if number % 8 == 0 and SECOND_SLOT - len(lock.flash()[:SECOND_SLOT].rstrip(b"\xff")) < 4096 + 1000:
                    return lock.flash()
        raise AssertionError("the journal has room without end")

    # What may be asked.

    def ask(self, prover, command, grant=None, otp=None, seal=None, parameters=None):
        request = session.request(command, parameters, otp and ("bob", otp), seal and ("bob", seal))
        return NAMES[prover.ask(grant or self.lasting, command, request=request).status]

    def round(self, status, grant=None):
        def step(prover, memory):
            assert self.ask(prover, "unlock", grant) == status, "status"
            return memory

        return step

    def use(self, prover, memory):
        assert self.ask(prover, "unlock", self.counted) == "accepted", "status"
        return memory.but(used=memory.used + 1)

    def nonce(self, byte):
        def answer(prover):
            nonce = bytes([byte] * 16)
            imp, dmp = (
                measurement.proof(self.lasting.proof_key, nonce, self.lasting.claims[name])
                for name in ("integrity", "device")
            )
            m2 = cbor.encode([12, nonce, session.COSE, self.lasting.token, imp, dmp, "unlock"])
            return NAMES[session.parse_message_3(prover.exchange(m2))["status"]]

        def step(prover, memory):
            assert answer(prover) == "accepted", "status"
            return memory.but(spent=(f"nonce {byte}", answer))

        return step

    def password(self, counter):
        def answer(prover):
            return self.ask(prover, "configure", otp=oath.hotp(SECRET, counter))

        def step(prover, memory):
            assert answer(prover) == "accepted", "status"
            return memory.but(spent=(f"password {counter}", answer))

        return step

    def sealed(self, counter):
        def answer(prover):
            seal = oath.ocra(SEAL_SUITE, SEAL_SECRET, seal_question("open-safe", ["7"]), counter=counter)
            return self.ask(prover, "open-safe", seal=seal, parameters=["7"])

        def step(prover, memory):
            assert answer(prover) == "accepted", "status"
            return memory.but(spent=(f"seal {counter}", answer))

        return step

    def activate(self, prover, memory):
        def answer(prover):
            opening = Activation(prover.next_m1(), self.activation).opening()
            return "accepted" if accepted(prover.exchange(opening)) else "otpRejected"

        activation = Activation(prover.next_m1(), self.activation)
        activation.take(prover.exchange(activation.opening()))
        prover.connection.send(activation.confirmation())
        activation.finish(prover.connection.receive())
        return memory.but(spent=("activation", answer), otp=activation.otp)

    def own_password(self, prover, memory):
        """Of the user who was activated."""

        def answer(prover):
            request = session.request("configure", otp=("ann", oath.hotp(memory.otp, 0)))
            return NAMES[prover.ask(self.lasting, request=request).status]

        assert answer(prover) == "accepted", "status"
        return memory.but(spent=("ann's password", answer))

    def wrong(self, prover, memory):
        assert self.ask(prover, "configure", otp="000000") == "otpRejected", "status"
        return memory

    def three_wrong(self, prover, memory):
        for _ in range(3):
            self.wrong(prover, memory)
        return memory

    def fifth_wrong(self, prover, memory):
        return self.wrong(prover, memory).but(locked=True)

    def let_in(self, prover, memory):
        def answer(prover):
            unlocking = Unlocking(prover.next_m1(), self.unlocking)
            return "accepted" if accepted(prover.exchange(unlocking.message())) else "otpRejected"

        unlocking = Unlocking(prover.next_m1(), self.unlocking)
        unlocking.finish(prover.exchange(unlocking.message()))
        return memory.but(spent=("unlocking", answer), locked=False)

    def steps(self):
        return [
            ("a round", self.round("accepted")),
            ("one use", self.use),
            ("another use", self.use),
            ("a nonce", self.nonce(1)),
            ("a password", self.password(0)),
            ("a seal", self.sealed(0)),
            ("a higher generation", self.round("accepted", self.newer)),
            ("a revoked token", self.round("tokenRevoked", self.stale)),
            ("an activation", self.activate),
            ("the password of who was activated", self.own_password),
            ("a wrong password", self.wrong),
            ("three more", self.three_wrong),
            ("the fifth wrong password", self.fifth_wrong),
            ("the owner's code", self.let_in),
            ("a password after it", self.password(3)),
            ("a third use", self.use),
            ("another nonce", self.nonce(2)),
        ]

    def contents(self, data):
        """What the flash holds, as the command line reads it."""
        run = self.owner.command_line
        with self.owner.image(data) as image:
            assert run.read_json("device", "audit", "--verify", "--firmware", image)["whole"], "the audit log is broken"
            shown = run.succeed("device", "show", "--firmware", image).decode()
            floors = run.read_json("device", "floor", "--firmware", image)
            users = run.read_json("device", "user", "list", "--firmware", image)["users"]
        return Contents(
            floor=floors["clock_floor"],
            generations={each["kid"]: each["generation_floor"] for each in floors["issuers"]},
            kept=int(re.search(r"^kept +(\d+)", shown, re.MULTILINE)[1]),
            starts=int(re.search(r"^starts +(\d+)", shown, re.MULTILINE)[1]),
            entries=int(re.search(r"^audit +(\d+)", shown, re.MULTILINE)[1]),
            slot=int(re.search(r"slot (\d) in force", shown)[1]),
            users={each["user"]: (each["failures"], each["locked_seconds"] > 0) for each in users},
        )


@dataclasses.dataclass(frozen=True)
class Contents:
    floor: int
    generations: dict
    kept: int
    starts: int
    entries: int
    slot: int
    users: dict

    def promised(self):
        """What a peer was told of, or could be; the number of starts and of entries is the device's own."""
        return self.floor, self.generations, self.kept, self.users

    def expect_between(self, before, after):
        """Nothing of `before` is lost, and there is nothing that is not in `after`, but for a failure that is counted
        before the code is looked at."""
        assert self.floor in (before.floor, after.floor), f"clock floor {self.floor}"
        assert self.generations in (before.generations, after.generations), f"generation floors {self.generations}"
        assert self.kept in (before.kept, after.kept), f"{self.kept} uses and nonces"
        assert self.users.keys() in (before.users.keys(), after.users.keys()), f"users {list(self.users)}"
        for name, (failures, is_locked) in self.users.items():
            known = [contents.users[name] for contents in (before, after) if name in contents.users]
            counted = [(count, count >= 5) for count in range(known[0][0], known[-1][0] + 2)]
            assert (failures, is_locked) in known + counted, f"{name}: {failures} failures"
        assert before.starts <= self.starts <= after.starts, f"{self.starts} starts"
        assert before.entries <= self.entries <= after.entries, f"{self.entries} entries"


@dataclasses.dataclass(frozen=True)
class Moment:
    """A step, and what was before and after it."""

    name: str
    step: object
    image: bytes
    memory: Memory
    before: Contents
    after: Contents
    word_count: int


def recorded(life):
    """Every step, lived with plenty of power."""
    moments, image, memory = [], life.image, Memory()
    before = life.contents(image)
    for name, step in life.steps():
        with powered(image, life.descriptor, PLENTY) as device:
            next_memory = step(device.lock.prover(), memory)
            # Behind what the device does while nobody waits.
            device.lock.prover()
            word_count = PLENTY - device.words_left()
            device.lock.expect_well()
            lived = device.lock.flash()
        after = life.contents(lived)
        moments.append(Moment(name, step, image, memory, before, after, word_count))
        image, memory, before = lived, next_memory, after
    return moments


# Where in a step's words the power fails.
PLACES = {
    "after the first word": lambda count: 1,
    "after a third": lambda count: count // 3,
    "after two thirds": lambda count: 2 * count // 3,
    "before the last word": lambda count: count - 1,
}
# The same in the step that moves the journal, of whose words few are more than erased: the number of those is `copied`.
PLACES_OF_A_MOVE = {
    "in the middle of the copy": lambda count, copied: copied // 2,
    "at the end of the copy": lambda count, copied: copied,
    "in the middle": lambda count, copied: count // 2,
    **{
        f"{part} eighths of the copy before the end": lambda count, copied, part=part: count - copied * part // 8
        for part in range(1, 8)
    },
}


def cut(life, moment, word_count):
    """What is wrong once the power has failed in a step."""
    memory, is_answered = moment.memory, False
    with powered(moment.image, life.descriptor, word_count) as device:
        with contextlib.suppress(Closed, ConnectionError, Gone):
            memory = moment.step(device.lock.prover(), memory)
            is_answered = True
            device.lock.prover()
            raise AssertionError("the power did not fail")
        device.watch.join(60)
        assert device.words_left() == BLOWN, "the fuse"
        flash = device.lock.flash()
    found = life.contents(flash)
    found.expect_between(moment.before, moment.after)
    if is_answered:
        assert found.promised() == moment.after.promised(), "what it holds after an answer"
    with running(flash, life.descriptor) as lock:
        go_on(life, moment, memory, is_answered, lock)


def go_on(life, moment, memory, is_answered, lock):
    """It starts, serves, and has forgotten nothing that it had answered."""
    prover = lock.prover()
    assert life.ask(prover, "unlock") == "accepted", "status of an honest round"
    if memory.locked and moment.step != life.let_in:
        assert life.ask(prover, "configure", otp=oath.hotp(SECRET, 4)) == "lockedOut", (
            "status of a user who is locked out"
        )
    for name, answer in memory.spent:
        assert answer(prover) != "accepted", f"{name} is accepted again"
    left = COUNTED_USES - memory.used
    statuses = [life.ask(prover, "unlock", life.counted) for _ in range(left + 1)]
    # The use of a round that was not answered may have been counted.
    allowed = (left,) if is_answered or moment.step != life.use else (left, left - 1)
    assert statuses.count("accepted") in allowed, f"{statuses.count('accepted')} uses are left of {left}"
    assert statuses[-1] == "usesExhausted", "status of a token that is used up"
    lock.expect_well()


@pytest.fixture(scope="module")
def life(owner):
    return Life(owner)


@pytest.fixture(scope="module")
def moments(life):
    """Each step by its name."""
    return {moment.name: moment for moment in recorded(life)}


@pytest.fixture(scope="module")
def begun(request, life, moments):
    move = next(moment for moment in moments.values() if moment.word_count >= SLOT_WORDS)

    def run(case):
        step, place = case
        if step is None:
            cut(life, move, PLACES_OF_A_MOVE[place](move.word_count, move.word_count - SLOT_WORDS))
        else:
            cut(life, moments[step], PLACES[place](moments[step].word_count))

    with side_by_side(request, run, BOARDS) as begun:
        yield begun


def test_a_life_with_plenty_of_power_has_every_step(moments):
    assert list(moments) == list(STEPS)


def test_the_journal_moves_in_it(moments):
    assert moments[STEPS[0]].before.slot != moments[STEPS[-1]].after.slot, "it does not"
    assert sum(moment.word_count >= SLOT_WORDS for moment in moments.values()) == 1, "steps that move it"


@pytest.mark.parametrize("case", list(itertools.product(STEPS, PLACES)), ids=", cut ".join)
def test_nothing_is_forgotten_where_power_fails_in_a_step(begun, case):
    begun[case].result()


@pytest.mark.parametrize("case", [(None, place) for place in PLACES_OF_A_MOVE], ids=list(PLACES_OF_A_MOVE))
def test_nothing_is_forgotten_where_power_fails_while_the_journal_moves(begun, case):
    begun[case].result()
