"""Low Energy with room for one link or for several: strangers without keys keep no prover out."""

import base64
import collections
import re

import connectable
import low_energy
import served
from holdfast_peer.checks import expect, expect_equal
from served import Tried, expect_accepted

STRANGERS = ("without-channel", "silent", "talking")
# Two seconds for a channel and two for a proof, and what pairing and looking take on emulated processors.
MOST_SECONDS = 40
ROUNDS = 10


def observe(lab):
    return {"one": served.run(lab, "strangers.sh"), "several": served.run(lab, "together.sh")}


def lets_provers_in(seen):
    """Low Energy, one link: an honest prover is accepted while a stranger without a channel, a silent one and a talking one come first"""
    expect_accepted(seen["one"], *(f"{name}-honest" for name in STRANGERS))


def ends_strangers(seen):
    """Low Energy, one link: each of these strangers has its link ended by the device after two seconds, which its log says"""
    for name in STRANGERS:
        (held,) = map(float, seen["one"][f"{name}-held"])
        print(f"a stranger, {name}: held the only link for {held:.1f} s", flush=True)
        expect(1 <= held <= MOST_SECONDS, f"{name}: {held} s")
        expect(int(seen["one"][f"{name}-said"][0]) >= 1, f"{name}: the log does not say it")


def keeps_the_accepted(seen):
    """Low Energy, one link: a prover whose rounds are accepted keeps its link, and the next one gets in when it goes"""
    expect_equal(
        (seen["one"]["rounds"], seen["one"]["rounds-ended"]), (["0"], ["0"]), "exit status, links ended meanwhile"
    )
    Tried(seen["one"], "next").expect(0, "status: accepted")


def comes_back(seen):
    """Low Energy, one link: after each link's end the device is connectable within 200 ms, or says that it is not"""
    gaps = connectable.gaps(base64.b64decode(seen["one"]["air"][0]))
    expect(len(gaps) > len(STRANGERS) and None not in gaps, f"milliseconds: {gaps}")
    print(f"one link, connectable again after {len(gaps)} links' ends: {low_energy.figures(gaps)}", flush=True)
    late = [gap for gap in gaps if gap > low_energy.MOST_MILLISECONDS]
    expect(not late or int(seen["one"]["said"][0]), f"{late} ms, and the device's log says nothing of it")


def serves_several(seen):
    """Low Energy, several links: three provers have their rounds at the same time"""
    expect_accepted(seen["several"], "paired")
    # SIGTERM ended each: none had ended before.
    expect_equal(seen["several"]["ended"], ["143"] * 3, "exit statuses")
    order = re.findall(r"\d+", seen["several"]["order"][0])
    together = order[: min(len(order) - order[::-1].index(prover) for prover in set(order))]
    rounds = collections.Counter(together)
    expect(len(rounds) == 3 and min(rounds.values()) >= ROUNDS, f"rounds while all three were there: {dict(rounds)}")


CHECKS = [lets_provers_in, ends_strangers, keeps_the_accepted, comes_back, serves_several]
