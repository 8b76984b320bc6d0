#!/usr/bin/python3
"""Runs the board's test image in QEMU, and asks it for everything that it can do.

usage: run.py [--counts]

With --counts it prints instead what the primitives cost, in instructions, and how much stack they used.
Project Wycheproof's cases are asked as well where HOLDFAST_WYCHEPROOF names the folder that they are in.
"""

import os
import pathlib
import sys
import tempfile

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent / "Interop"))

import board_checks
import costs
import images
import published
import wrong_inputs
import wycheproof
from board import Board
from holdfast_peer.checks import Checks


def main():
    if not images.built():
        return 0
    if sys.argv[1:] == ["--counts"]:
        costs.show()
        return 0
    asked = published.CHECKS + wrong_inputs.CHECKS + board_checks.CHECKS + costs.CHECKS
    if "HOLDFAST_WYCHEPROOF" in os.environ:
        asked += wycheproof.CHECKS
    checks = Checks()
    with tempfile.TemporaryDirectory() as folder, Board(folder) as board:
        for name, body in asked:
            checks.run(name, body, board)
    return checks.finish()


if __name__ == "__main__":
    sys.exit(main())
