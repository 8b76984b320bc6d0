#!/usr/bin/python3
"""Every situation, user and attack that the Linux device's suites have, tried on the firmware by its serial line.

usage: attacks.py --holdfast PATH [--twin PATH] [--only TEXT]

With --twin, the program DeviceTwin answers on Linux what the board was asked: each M3 has to be the same, byte for byte.
One line for each check that failed, then what cannot be asked of a board and why, and the totals.
"""

import argparse
import pathlib
import sys
import tempfile
from functools import partial

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent / "Interop"))

import images
import line_situations
import mac_tokens
import prover_against_device
import users_against_device
from device_situations import BOTH, SITUATIONS
from firmware_world import FirmwareWorld
from holdfast_peer.checks import Checks, expect
from line_situations import INSTEAD, NOT_ON_A_BOARD
from random_rounds import RandomWorld, rounds


class ProverWorld(FirmwareWorld, prover_against_device.World):
    pass


class UsersWorld(FirmwareWorld, users_against_device.UsersWorld):
    pass


class SharingWorld(FirmwareWorld, mac_tokens.SharingWorld):
    @property
    def init_arguments(self):
        return ("--policy", self.write("policy.json", line_situations.POLICY_WITH_MAC))

    def allow(self):
        """The policy was given with the image."""


class Suite:
    """Runs checks on boards of their own, and remembers what was not run."""

    def __init__(self, holdfast, twin, only):
        self.holdfast, self.twin, self.only, self.checks = holdfast, twin, only, Checks()
        self.names, self.left, self.same = set(), {}, 0

    def run(self, kind, name, body, suffix=""):
        """One check on a new device, switched on for the first time."""
        self.names.add(name)
        if self.only not in name:
            return
        if name in NOT_ON_A_BOARD:
            reason = NOT_ON_A_BOARD[name]
            self.left[reason] = self.left.get(reason, 0) + 1
            return
        self.checks.run(name + suffix, self.on_a_board, kind, body)

    def on_a_board(self, kind, body):
        with tempfile.TemporaryDirectory(prefix="hf") as folder:
            world = kind(self.holdfast, folder)
            try:
                world.prepare()
                body(world)
            finally:
                world.cut_power()
            if self.twin:
                self.same += world.transcript.compare(self.twin)

    def finish(self):
        if not self.only:
            self.checks.run("what is done otherwise on a board has a name that a suite knows", expect,
                            {*NOT_ON_A_BOARD, *INSTEAD} <= self.names, {*NOT_ON_A_BOARD, *INSTEAD} - self.names)
            if self.twin:
                self.checks.run("answers are compared", expect, self.same > 0, "there were none")
        if self.twin:
            print(f"{self.same} answers of the board are those of the Linux device to the same challenges, byte for byte")
        for reason, count in self.left.items():
            print(f"{count} not on a board: {reason}")
        return self.checks.finish()


def in_situation(body, arguments, world):
    body(world, world.connect(), *arguments)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--holdfast", required=True, help="the command line that provisions the boards")
    parser.add_argument("--twin", help="the program DeviceTwin")
    parser.add_argument("--only", default="", help="run only the checks whose name has this text")
    options = parser.parse_args()
    if not images.built():
        return 0
    suite = Suite(options.holdfast, options.twin, options.only)
    for name, body, encodings in SITUATIONS:
        for encoding in encodings:
            arguments = () if encoding is None else (encoding,)
            suite.run(ProverWorld, name, partial(in_situation, INSTEAD.get(name, body), arguments),
                      {None: "", **BOTH}[encoding])
    for kind, checks in ((UsersWorld, users_against_device.CHECKS), (SharingWorld, mac_tokens.CHECKS)):
        for name, body in checks:
            suite.run(kind, name, INSTEAD.get(name, body))
    if options.twin:
        suite.run(RandomWorld, "rounds of every kind in any order", rounds)
    return suite.finish()


if __name__ == "__main__":
    sys.exit(main())
