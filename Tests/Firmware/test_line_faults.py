"""Bytes that are no messages, on the way in of a board that runs the firmware.

After each of them the device answers an honest prover, has reported no fault, and has accepted nothing else.
"""

import random
import time

import pytest
from cases import side_by_side
from holdfast_peer import session
from holdfast_peer.refusal import Refused
from line import EMPTY, PATIENCE_SECONDS, frame
from provisioned import NAMES, running

MALFORMED, EXPIRED = (session.message_3(session.STATUS[name], None) for name in ("malformed", "challengeExpired"))
LARGEST = 4096


class Stand:
    """A device, what its issuer made for it, and an honest prover."""

    def __init__(self, owner):
        self.owner = owner
        image, self.descriptor = owner.provision("flash.img")
        self.data = image.read_bytes()
        self.grant = owner.grant(self.descriptor)

    def running(self, *options):
        return running(self.data, self.descriptor, *options)

    def expect_honest(self, lock):
        """An honest round is accepted, and nothing else was."""
        for _ in range(5):
            outcome = self.attempt_honest(lock)
            if outcome and NAMES[outcome.status] not in ("challengeExpired", "deviceMismatch"):
                break
        assert outcome, "no honest prover is answered"
        assert NAMES[outcome.status] == "accepted", "an honest prover's status"
        lock.honest += 1
        lock.wait_for(lambda: lock.statuses()[-1:] == ["accepted"], "word of it on the console")
        assert lock.statuses().count("accepted") == lock.honest, "rounds that were accepted"
        lock.expect_well()

    def attempt_honest(self, lock):
        """None where what came was no answer: after a flood a stale M1, or one too old, looks like a fresh one."""
        try:
            return lock.prover().ask(self.grant, by_reference=lock.honest > 0)
        except Refused:
            return None

    def honest_message(self, lock):
        return lock.prover().attempt(self.grant).message()


def messages_until(line, wanted, seconds=PATIENCE_SECONDS):
    """Every message up to one that is `wanted`."""
    seen, deadline = [], time.monotonic() + seconds
    while not seen or not wanted(seen[-1]):
        assert time.monotonic() < deadline, f"after {len(seen)} messages none is as expected"
        seen.append(line.receive())
    return seen


def is_challenge(message):
    return message[:3] == b"\x87\x01\x01"


def expect_next_challenge(lock, *before):
    """A fresh M1 comes, and nothing but `before` in front of it."""
    seen = messages_until(lock.line, is_challenge)
    assert tuple(seen[:-1]) == before, "what came before the next M1"


# What is sent at once.


def zeros(stand, lock):
    """Each two of them are an empty frame, and answered."""
    for _ in range(64):
        lock.line.handle.sendall(bytes(64))
        for _ in range(32):
            messages_until(lock.line, lambda message: message == b"")
            assert is_challenge(lock.line.receive()), "no M1 behind an empty frame"


def ones(stand, lock):
    lock.line.raw(b"\xff" * 65536)


def garbage(stand, lock):
    dice = random.Random(1)
    for _ in range(4):
        lock.line.raw(dice.randbytes(dice.randrange(1, 8192)))
        stand.expect_honest(lock)


def oversized(stand, lock):
    """A length above the limit: all is dropped until the line is silent, a good message too."""
    for length in LARGEST + 1, 0x8000, 0xFFFF:
        good = frame(stand.honest_message(lock))
        lock.line.raw(length.to_bytes(2, "big") + good)
        expect_next_challenge(lock)


def longest(stand, lock):
    """The longest message that there is is one, and malformed."""
    for message in bytes(LARGEST), b"\x85" * LARGEST, b"\xff":
        lock.prover()
        lock.line.send(message)
        expect_next_challenge(lock, MALFORMED)


def truncated(stand, lock):
    """The beginnings of a good message, each in a frame of its own."""
    message = stand.honest_message(lock)
    for count in [*range(1, 60), *range(60, len(message), 7), len(message) - 1]:
        lock.line.send(message[:count])
        expect_next_challenge(lock, MALFORMED)


def longer(stand, lock):
    for tail in b"\x00", b"\xf6", bytes(32):
        lock.line.send(stand.honest_message(lock) + tail)
        expect_next_challenge(lock, MALFORMED)


def nested(stand, lock):
    """A message in the middle of another, and what is left of both."""
    good = frame(stand.honest_message(lock))
    lock.line.raw(good[: len(good) // 2] + good + good[len(good) // 2 :])
    seen = messages_until(lock.line, is_challenge)
    assert seen[0] == MALFORMED, "the answer to both"


def twice(stand, lock):
    """The same M2 two times: its challenge is good once."""
    good = frame(stand.honest_message(lock))
    before = len(lock.statuses())
    lock.line.handle.sendall(good + good)
    lock.wait_for(lambda: len(lock.statuses()) == before + 2, "two answers")
    assert lock.statuses()[before:] == ["accepted", "deviceMismatch"], "answers"
    lock.honest += 1


def abandoned(stand, lock):
    """An M2 whose round was ended by an empty frame."""
    message = stand.honest_message(lock)
    lock.prover()
    lock.line.send(message)
    answer = messages_until(lock.line, is_challenge)
    assert answer[:-1] == [session.message_3(session.STATUS["deviceMismatch"], None)], "answers"


def empty_frames(stand, lock):
    lock.line.begin(stand.descriptor)
    challenges = set()
    for _ in range(50):
        lock.line.handle.sendall(EMPTY)
        assert lock.line.receive() == b"", "the answer to an empty frame"
        message = lock.line.receive()
        assert is_challenge(message), "no M1 behind an empty frame"
        challenges.add(message)
    assert len(challenges) == 50, "challenges"


def other_kinds(stand, lock):
    """Messages that are none of a prover's, or come where they have no place."""
    dice = random.Random(2)
    samples = [
        lock.prover().m1,
        MALFORMED,
        b"\x80",
        b"\xa0",
        b"\xf6",
        b"\x9f\xff",
        b"\x85\x02" + b"\x40" * 4,
        b"\x9b" + b"\xff" * 8,
        b"\x5a\xff\xff\xff\xff",
        *(dice.randbytes(n) for n in range(1, 200)),
    ]
    for sample in samples:
        lock.line.send(sample)
        expect_next_challenge(lock, MALFORMED)


def confirmations(stand, lock):
    """What confirms an activation that nobody began, or begins one by no code of the owner's."""
    for message, status in [
        (b"\x82\x17\x58\x20" + bytes(32), "challengeExpired"),
        (b"\x83\x15\x58\x41\x04" + bytes(64) + b"\x58\x20" + bytes(32), "otpRejected"),
        (b"\x82\x18\x19\x58\x20" + bytes(32), "otpRejected"),
    ]:
        lock.prover()
        lock.line.send(message)
        expect_next_challenge(lock, session.message_3(session.STATUS[status], None))


def thousands(stand, lock):
    """Thousands of messages, one behind the other, with honest rounds between them."""
    dice = random.Random(3)
    for _ in range(12):
        lock.prover()
        lock.line.handle.sendall(b"".join(frame(dice.randbytes(dice.randrange(1, 40))) for _ in range(200)))
        for _ in range(200):
            expect_next_challenge(lock, MALFORMED)
        stand.expect_honest(lock)


def comes_and_goes(stand, lock):
    """Peers that leave in the middle, at every place of a message."""
    message = frame(stand.honest_message(lock))
    for count in range(1, len(message), 23):
        lock.line.handle.sendall(message[:count])
        lock.reconnect()


AT_ONCE = [
    ("zeros", zeros),
    ("ones", ones),
    ("garbage", garbage),
    ("lengths above the limit", oversized),
    ("messages of the greatest length", longest),
    ("messages cut short", truncated),
    ("messages with a tail", longer),
    ("a message in the middle of another", nested),
    ("a message sent twice", twice),
    ("a message of an abandoned round", abandoned),
    ("empty frames", empty_frames),
    ("messages that are none", other_kinds),
    ("activations that nobody granted", confirmations),
    ("thousands of messages", thousands),
    ("peers that come and go", comes_and_goes),
]


# What takes the board's time.


def half_message(stand, lock):
    """A second of silence within a message ends it; the next byte begins a frame."""
    message = frame(stand.honest_message(lock))
    for count in 1, 2, 3, len(message) // 2, len(message) - 1:
        lock.line.raw(message[:count])
        expect_next_challenge(lock)
    assert lock.statuses() == [], "answers"


def silent(stand, lock):
    """Who says nothing hears M1 again, then that it has expired, and so on."""
    lock.line.begin(stand.descriptor)
    for _ in range(3):
        expect_next_challenge(lock, EXPIRED)


def late(stand, lock):
    """An M2 to a challenge that has expired."""
    message = stand.honest_message(lock)
    expect_next_challenge(lock, EXPIRED)
    lock.line.send(message)
    expect_next_challenge(lock, session.message_3(session.STATUS["deviceMismatch"], None))


# What takes the host's too: the board must not run ahead of the bytes.


def slow(stand, lock):
    """A message that comes byte by byte has 10 s."""
    for seconds in 10.2, 13, 17, 22:
        message = frame(stand.honest_message(lock))
        begun = time.monotonic()
        while time.monotonic() < begun + seconds:
            lock.line.handle.sendall(message[:1])
            message = message[1:]
            time.sleep(0.05)
        assert message, "the message was too short to be slow"
        answer = messages_until(lock.line, is_challenge)[:-1]
        if answer == [MALFORMED]:
            return
        # On a host that has much else to do the board's clock falls behind: its 10 s were not over.
        assert answer == [], "what came before the next M1"
    raise AssertionError("it was never told that it was too slow")


def deaf(stand, lock):
    """A peer that reads nothing is waited for 10 s, once, and heard again when it listens."""
    lock.prover()
    begun, before = time.monotonic(), len(lock.statuses())
    lock.line.handle.sendall(frame(b"\x00") * 400)
    lock.wait_for(lambda: len(lock.statuses()) == before + 400, "an answer to each message", 300)
    assert time.monotonic() - begun > 9, "it was not waited for"
    assert set(lock.statuses()[before:]) == {"malformed"}, "answers"


IN_TIME = [
    ("half a message, then silence", half_message, ()),
    ("a message that comes too slowly", slow, ("--count",)),
    ("a peer that reads nothing", deaf, ()),
    ("silence", silent, ("--hurry",)),
    ("an answer that comes too late", late, ("--hurry",)),
]


@pytest.fixture(scope="module")
def stand(owner):
    return Stand(owner)


@pytest.fixture(scope="module")
def begun(request, stand):
    """What takes time, each on a board of its own, is begun before the rest."""

    def run(case):
        body, options = case
        with stand.running(*options) as lock:
            body(stand, lock)
            stand.expect_honest(lock)

    with side_by_side(request, run, len(IN_TIME)) as begun:
        yield begun


@pytest.fixture(scope="module")
def lock(stand):
    with stand.running() as lock:
        yield lock


@pytest.mark.parametrize("body", [body for _, body in AT_ONCE], ids=[name for name, _ in AT_ONCE])
def test_what_is_sent_at_once_is_survived(stand, begun, lock, body):
    body(stand, lock)
    stand.expect_honest(lock)


@pytest.mark.parametrize("case", [row[1:] for row in IN_TIME], ids=[row[0] for row in IN_TIME])
def test_what_takes_time_is_survived(begun, case):
    begun[case].result()
