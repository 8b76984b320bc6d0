#!/usr/bin/python3
"""Power that fails while a board runs the firmware, after so many words of flash.

usage: power_cuts.py --holdfast PATH [--only TEXT]

A life of a device is lived once, step by step. Then it is lived again from before each step, with power for a few words
alone; the device starts once more, and what it holds, tells and accepts is compared with what it had promised. The store's
own tests cut the power at every word; these are a sample, on the board. One line for each check that failed, then the
totals. Exit status 1 when a check failed.
"""

import contextlib
import dataclasses
import json
import re
import struct
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

from provisioned import FUSE, NAMES, SECOND_SLOT, fused, main, running
from board import Gone
from holdfast_peer import cbor, measurement, oath, session
from holdfast_peer.activation import Activation, Unlocking, seal_question
from holdfast_peer.checks import Failed, expect, expect_equal
from holdfast_peer.issuer import Issuer, fresh_claims
from holdfast_peer.keys import jwk
from holdfast_peer.transport import Closed

PLENTY = 1_000_000
BLOWN = 0xFFFFFFFF
BOARDS = 2
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
    """A board that has power for so many words. Once that is used up, it is switched off."""

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
    expect_equal(NAMES[session.parse_message_3(message)["status"]], "otpRejected", "status")
    return False


class Life:
    """A device's life: each step is a start, and something that is asked of it."""

    def __init__(self, owner):
        self.owner, self.second = owner, Issuer()
        for name, text in (("otp", SECRET.hex()), ("seal", SEAL_SECRET.hex()), ("policy.json", POLICY),
                           ("second.jwk", json.dumps(jwk(self.second.key.point)))):
            (owner.folder / name).write_text(text)
        image, self.descriptor = owner.provision("flash.img", "--trust", "second.jwk", "--policy", "policy.json")
        self.user("add", image, "--otp", "hotp", "--otp-secret", "otp", "--seal", SEAL_SUITE, "--seal-secret", "seal", "bob")
        self.activation = self.user("add", image, "--otp", "hotp", "--seal", "none", "ann")["code"]
        self.unlocking = self.user("unlock", image, "bob")["code"]
        self.lasting, self.counted = owner.grant(self.descriptor), owner.grant(self.descriptor, maximumUses=COUNTED_USES)
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
                expect_equal(prover.ask(self.lasting, by_reference=number > 0).status, 0, "status")
                if number % 8 == 0 and SECOND_SLOT - len(lock.flash()[:SECOND_SLOT].rstrip(b"\xff")) < 4096 + 1000:
                    return lock.flash()
        raise Failed("the journal has room without end")

    # What may be asked.

    def ask(self, prover, command, grant=None, otp=None, seal=None, parameters=None):
        request = session.request(command, parameters, otp and ("bob", otp), seal and ("bob", seal))
        return NAMES[prover.ask(grant or self.lasting, command, request=request).status]

    def round(self, status, grant=None):
        def step(prover, memory):
            expect_equal(self.ask(prover, "unlock", grant), status, "status")
            return memory
        return step

    def use(self, prover, memory):
        expect_equal(self.ask(prover, "unlock", self.counted), "accepted", "status")
        return memory.but(used=memory.used + 1)

    def nonce(self, byte):
        def answer(prover):
            nonce = bytes([byte] * 16)
            imp, dmp = (measurement.proof(self.lasting.proof_key, nonce, self.lasting.claims[name]) for name in ("integrity", "device"))
            m2 = cbor.encode([12, nonce, session.COSE, self.lasting.token, imp, dmp, "unlock"])
            return NAMES[session.parse_message_3(prover.exchange(m2))["status"]]

        def step(prover, memory):
            expect_equal(answer(prover), "accepted", "status")
            return memory.but(spent=(f"nonce {byte}", answer))
        return step

    def password(self, counter):
        def answer(prover):
            return self.ask(prover, "configure", otp=oath.hotp(SECRET, counter))

        def step(prover, memory):
            expect_equal(answer(prover), "accepted", "status")
            return memory.but(spent=(f"password {counter}", answer))
        return step

    def sealed(self, counter):
        def answer(prover):
            seal = oath.ocra(SEAL_SUITE, SEAL_SECRET, seal_question("open-safe", ["7"]), counter=counter)
            return self.ask(prover, "open-safe", seal=seal, parameters=["7"])

        def step(prover, memory):
            expect_equal(answer(prover), "accepted", "status")
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
        expect_equal(answer(prover), "accepted", "status")
        return memory.but(spent=("ann's password", answer))

    def wrong(self, prover, memory):
        expect_equal(self.ask(prover, "configure", otp="000000"), "otpRejected", "status")
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
            ("a round", self.round("accepted")), ("one use", self.use), ("another use", self.use), ("a nonce", self.nonce(1)),
            ("a password", self.password(0)), ("a seal", self.sealed(0)), ("a higher generation", self.round("accepted", self.newer)),
            ("a revoked token", self.round("tokenRevoked", self.stale)), ("an activation", self.activate),
            ("the password of who was activated", self.own_password), ("a wrong password", self.wrong), ("three more", self.three_wrong), ("the fifth wrong password", self.fifth_wrong), ("the owner's code", self.let_in), ("a password after it", self.password(3)),
            ("a third use", self.use), ("another nonce", self.nonce(2)),
        ]

    def contents(self, data):
        """What the flash holds, as the command line reads it."""
        run = self.owner.command_line
        with self.owner.image(data) as image:
            expect(run.read_json("device", "audit", "--verify", "--firmware", image)["whole"], "the audit log is broken")
            shown = run.succeed("device", "show", "--firmware", image).decode()
            floors = run.read_json("device", "floor", "--firmware", image)
            users = run.read_json("device", "user", "list", "--firmware", image)["users"]
        return Contents(
            floor=floors["clock_floor"], generations={each["kid"]: each["generation_floor"] for each in floors["issuers"]},
            kept=int(re.search(r"^kept +(\d+)", shown, re.MULTILINE)[1]),
            starts=int(re.search(r"^starts +(\d+)", shown, re.MULTILINE)[1]),
            entries=int(re.search(r"^audit +(\d+)", shown, re.MULTILINE)[1]),
            slot=int(re.search(r"slot (\d) in force", shown)[1]),
            users={each["user"]: (each["failures"], each["locked_seconds"] > 0) for each in users})


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
        expect(self.floor in (before.floor, after.floor), f"clock floor {self.floor}")
        expect(self.generations in (before.generations, after.generations), f"generation floors {self.generations}")
        expect(self.kept in (before.kept, after.kept), f"{self.kept} uses and nonces")
        expect(self.users.keys() in (before.users.keys(), after.users.keys()), f"users {list(self.users)}")
        for name, (failures, is_locked) in self.users.items():
            known = [contents.users[name] for contents in (before, after) if name in contents.users]
            counted = [(count, count >= 5) for count in range(known[0][0], known[-1][0] + 2)]
            expect((failures, is_locked) in known + counted, f"{name}: {failures} failures")
        expect(before.starts <= self.starts <= after.starts, f"{self.starts} starts")
        expect(before.entries <= self.entries <= after.entries, f"{self.entries} entries")


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


def cuts(moment):
    """After how many words the power fails: a sample over all of a step's, few of them where pages are but erased."""
    count = moment.word_count
    if count < SLOT_WORDS:
        return sorted({1, count // 3, 2 * count // 3, count - 1})
    copied = count - SLOT_WORDS
    return sorted({1, copied // 2, copied, count // 2, *(count - copied * part // 8 for part in range(1, 8)), count - 1})


def cut(life, moment, word_count):
    """What is wrong once the power has failed in a step."""
    memory, is_answered = moment.memory, False
    with powered(moment.image, life.descriptor, word_count) as device:
        with contextlib.suppress(Closed, ConnectionError, Gone):
            memory = moment.step(device.lock.prover(), memory)
            is_answered = True
            device.lock.prover()
            raise Failed("the power did not fail")
        device.watch.join(60)
        expect_equal(device.words_left(), BLOWN, "the fuse")
        flash = device.lock.flash()
    found = life.contents(flash)
    found.expect_between(moment.before, moment.after)
    if is_answered:
        expect_equal(found.promised(), moment.after.promised(), "what it holds after an answer")
    with running(flash, life.descriptor) as lock:
        go_on(life, moment, memory, is_answered, lock)


def go_on(life, moment, memory, is_answered, lock):
    """It starts, serves, and has forgotten nothing that it had answered."""
    prover = lock.prover()
    expect_equal(life.ask(prover, "unlock"), "accepted", "status of an honest round")
    if memory.locked and moment.step != life.let_in:
        expect_equal(life.ask(prover, "configure", otp=oath.hotp(SECRET, 4)), "lockedOut", "status of a user who is locked out")
    for name, answer in memory.spent:
        expect(answer(prover) != "accepted", f"{name} is accepted again")
    left = COUNTED_USES - memory.used
    statuses = [life.ask(prover, "unlock", life.counted) for _ in range(left + 1)]
    # The use of a round that was not answered may have been counted.
    allowed = (left,) if is_answered or moment.step != life.use else (left, left - 1)
    expect(statuses.count("accepted") in allowed, f"{statuses.count('accepted')} uses are left of {left}")
    expect_equal(statuses[-1], "usesExhausted", "status of a token that is used up")
    lock.expect_well()


def suite(owner, checks, only):
    life = Life(owner)
    moments = []
    checks.run("a life with plenty of power", lambda: moments.extend(recorded(life)))
    if not moments:
        return
    checks.run("the journal moves in it", lambda: expect(moments[0].before.slot != moments[-1].after.slot, "it does not"))
    points = [(moment, count) for moment in moments for count in cuts(moment)]
    checks.run("a sample of its words", lambda: expect(60 <= len(points) <= 120, f"{len(points)} points"))
    with ThreadPoolExecutor(BOARDS) as pool:
        results = [(f"{moment.name}, cut after {count} of {moment.word_count} words", pool.submit(cut, life, moment, count))
                   for moment, count in points if only in moment.name]
        for name, result in results:
            checks.run(name, result.result)


if __name__ == "__main__":
    sys.exit(main(suite))
