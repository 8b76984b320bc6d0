"""Power cuts: QEMU is killed, and what the guest had not flushed to its disks is lost.

The host counts a round as acknowledged when the guest has reported it, after `holdfast prove` has ended.
"""

import itertools
import time

from guest import make_disk
from holdfast_peer.checks import expect, expect_equal

MAXIMUM_USES = 8
# For each boot but the last: after how many acknowledged rounds the power is cut, and how many seconds later.
CUTS = [(1, 0), (2, 0.5), (2, 1.1)]


def observe(lab):
    disks = [make_disk(lab.folder / f"{name}.disk", 16) for name in ("lock", "phone")]
    return [
        lab.run("power_cut.sh", str(MAXIMUM_USES), disks=disks, watch=cutting(*cut) if cut else None)
        for cut in [*CUTS, None]
    ]


def cutting(rounds, pause):
    def watch(guest, seen):
        if acknowledged(seen) == rounds and guest.process.returncode is None:
            time.sleep(pause)
            guest.cut()

    return watch


def acknowledged(seen):
    return sum(said.startswith('0 {"status":"accepted",') for said in seen.get("round", []))


def cuts_came_between_rounds(boots):
    """each cut came after rounds were accepted"""
    for boot, (rounds, _) in zip(boots, CUTS):
        expect(acknowledged(boot) >= rounds, f"rounds: {boot.get('round')}")


def nothing_is_forgotten(boots):
    """every round that was acknowledged before a cut is in the audit log after it"""
    before = 0
    for boot, following in itertools.pairwise(boots):
        before += acknowledged(boot)
        expect(int(following["accepted"][0]) >= before, f"{following['accepted'][0]} of {before} rounds are left")


def chain_is_whole(boots):
    """the audit chain is whole after each cut"""
    for boot in boots:
        for said in boot["audit"]:
            expect(said.startswith("0 ") and '"whole":true' in said, said)


def uses_are_counted(boots):
    """a token is accepted exactly as often as it may be, over all the cuts"""
    expect(boots[-1]["round"][-1].startswith('1 {"status":"usesExhausted",'), boots[-1]["round"][-1])
    expect_equal(int(boots[-1]["accepted"][-1]), MAXIMUM_USES, "accepted rounds in the audit log")
    expect(sum(map(acknowledged, boots)) <= MAXIMUM_USES, "more rounds were acknowledged than the token allows")


CHECKS = [cuts_came_between_rounds, nothing_is_forgotten, chain_is_whole, uses_are_counted]
