"""Many peers at one device: foreign ones that mean no good while an honest prover's rounds go on, and seven honest provers at once."""

import collections
import itertools

import served
from holdfast_peer.checks import expect, expect_equal
from served import KINDS, expect_accepted

# M1 begins with [1, 1, device id of 16 bytes; M3 is [3, 13, null]: malformed.
CHALLENGE, MALFORMED = "87010150", "83030df6"
LENGTH_OF_MALFORMED = "0004"
ENDED_BY_SCRIPT = "143"
PROVERS, ROUNDS_AT_ONCE, ROUNDS_BESIDE = 7, 50, 20
OVERSIZED = {"l2cap": ("4097", "5000", "65531"), "le": ("4097", "5000", "65535")}


def observe(lab):
    return served.run(lab, "peers.sh")


def expect_malformed(seen, *names):
    """The peer has read a challenge, malformed as the answer, and the end of the connection."""
    for name in names:
        status, challenge, *answer = seen[name][0].split()
        frame = LENGTH_OF_MALFORMED if name.startswith("rfcomm") else ""
        expect(CHALLENGE in challenge, f"{name}: no challenge: {seen[name][0]}")
        expect_equal((status, answer), ("0", [frame + MALFORMED, "closed"]), name)


def answers_garbage(seen):
    """over each transport, garbage and CBOR that is no answer are malformed, and the connection is closed"""
    expect_malformed(seen, *(f"{kind}-{what}" for kind in KINDS for what in ("garbage", "map")))


def answers_oversized(seen):
    """over L2CAP and LE, packets of 4097 bytes to the longest that Linux takes are malformed, an empty one over L2CAP too"""
    expect_malformed(
        seen,
        "l2cap-length-0",
        *(f"{kind}-length-{length}" for kind, lengths in OVERSIZED.items() for length in lengths),
    )


def answers_lengths(seen):
    """over RFCOMM, a frame of 0 or more than 4096 bytes is malformed by its length alone, and half a frame after ten seconds"""
    expect_malformed(seen, *(f"rfcomm-{what}" for what in ("length-0000", "length-1001", "length-ffff", "half")))


def outlives_the_vanished(seen):
    """peers that vanish after the challenge or in the middle of a message leave nothing behind"""
    for name in ("l2cap-gone", "rfcomm-gone", "le-gone", "rfcomm-cut"):
        expect_equal(len(seen[name][0].split()), 2, f"{name}: {seen[name][0]}: exit status and a challenge")


def recovers(seen):
    """after all that, silent and deaf peers and a flood, the device has as many descriptors and threads as before"""
    for kind in KINDS:
        expect_equal(seen[f"{kind}-settled"], seen["settled"], f"{kind}: descriptors and threads")


def accepts_amid_floods(seen):
    """an honest prover is accepted while every place of the device is taken, and after floods over RFCOMM and LE"""
    expect_equal([seen[f"{kind}-flood"] for kind in KINDS], [["62"], ["20"], ["50"]], "peers that were challenged")
    expect_accepted(seen, *(f"{kind}-honest" for kind in KINDS))


def disturbs_nobody(seen):
    """meanwhile each round of another prover was accepted, to the end"""
    expect_equal(seen["honest"][0].split()[0], ENDED_BY_SCRIPT, f"exit status: {seen['honest'][0]}")
    accepted, denied = map(int, seen["rounds"][0].split())
    expect(accepted >= ROUNDS_BESIDE and denied == 0, f"{accepted} accepted, {denied} denied")


def seven_at_once(seen):
    """seven provers in one piconet have 50 rounds and more accepted at the same time, over L2CAP and over RFCOMM"""
    for kind in ("l2cap", "rfcomm"):
        # SIGTERM ended each: none had ended before.
        expect_equal(seen[f"{kind}-status"], ["143"] * PROVERS, f"{kind}: exit statuses")
        expect_equal(seen[f"{kind}-denied"], ["0"], f"{kind}: rounds that were denied")
        # Until the first of them was ended.
        order = seen[f"{kind}-order"][0]
        together = order[: min(order.rindex(prover) for prover in set(order)) + 1]
        rounds = collections.Counter(together)
        expect(
            len(rounds) == PROVERS and min(rounds.values()) >= ROUNDS_AT_ONCE,
            f"{kind}: rounds while all seven were there: {dict(rounds)}",
        )
        changes = sum(first != second for first, second in itertools.pairwise(together))
        print(
            f"seven provers over {kind}: {len(together)} rounds, the next one another prover's {changes} times",
            flush=True,
        )
        expect(changes > len(together) / 2, f"{kind}: only {changes} changes of the prover in {len(together)} rounds")


CHECKS = [
    answers_garbage,
    answers_oversized,
    answers_lengths,
    outlives_the_vanished,
    recovers,
    accepts_amid_floods,
    disturbs_nobody,
    seven_at_once,
]
