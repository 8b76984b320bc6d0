#!/usr/bin/env python3
"""Kills `holdfast device serve` (SIGKILL) again and again while provers use up counted tokens.

usage: kill_under_load.py --holdfast PATH [--kills N]

After each kill the device must start again, its audit chain must be whole, and what it acted upon must be remembered: no
token is ever accepted more often than its `max` says, and one that is used up stays so.
"""

import argparse
import random
import sys
import tempfile
import threading
import time

from holdfast_peer import session, transport
from holdfast_peer.checks import Checks, expect, expect_equal
from holdfast_peer.session import STATUS
from prover_against_device import World

MAXIMUM_USES = 60


class Load(threading.Thread):
    """One prover that asks as fast as it can, until its device is gone."""

    def __init__(self, world, grant, tally):
        super().__init__(daemon=True)
        self.world, self.grant, self.tally = world, grant, tally

    def run(self):
        try:
            prover = self.world.connect()
            while True:
                self.tally.append(prover.ask(self.grant).status)
        except (OSError, transport.Closed):
            pass  # killed in the middle of anything


def kill_once(world, grants, tallies, pause):
    loads = [Load(world, grant, tally) for grant, tally in zip(grants, tallies) for _ in range(2)]
    for load in loads:
        load.start()
    time.sleep(pause)
    world.process.kill()
    world.process.wait()
    for load in loads:
        load.join(10)
        expect(not load.is_alive(), "a prover hangs on a device that is dead")
    world.command_line.succeed("device", "audit", "--verify", "--dir", world.device_folder)
    world.start()


def check_uses(tallies):
    for tally in tallies:
        accepted = tally.count(STATUS["accepted"])
        expect(accepted <= MAXIMUM_USES, f"accepted {accepted} times in place of {MAXIMUM_USES}")


def use_up(world, grant, tally):
    """What is left is accepted, and then nothing any more, also after one more restart."""
    prover = world.connect()
    for _ in range(MAXIMUM_USES + 1):
        tally.append(prover.ask(grant).status)
    expect_equal(tally[-1], STATUS["usesExhausted"], "status when used up")
    check_uses([tally])
    world.stop()
    world.start()
    expect_equal(world.connect().ask(grant).status, STATUS["usesExhausted"], "status after a restart")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--holdfast", required=True, help="the command line under test")
    parser.add_argument("--kills", type=int, default=15)
    parser.add_argument("--seed", type=int, default=1, help="of the moments at which the device is killed")
    options = parser.parse_args()
    moments = random.Random(options.seed)
    checks = Checks()
    with tempfile.TemporaryDirectory(prefix="hf") as folder:
        world = World(options.holdfast, folder)
        world.prepare()
        world.start()
        grants = [world.grant(session.COSE, maximumUses=MAXIMUM_USES) for _ in range(3)]
        tallies = [[] for _ in grants]
        for number in range(options.kills):
            checks.run(f"kill {number + 1} forgets nothing", kill_once, world, grants, tallies, moments.uniform(0, 0.03))
        used = sum(tally.count(STATUS["accepted"]) for tally in tallies)
        checks.run("the kills came while tokens were being used", expect, used > 0, "no round was accepted before a kill")
        checks.run("no token was accepted more often than it may be", check_uses, tallies)
        for grant, tally in zip(grants, tallies):
            checks.run("a token that is used up stays so", use_up, world, grant, tally)
        world.stop()
    return checks.finish()


if __name__ == "__main__":
    sys.exit(main())
