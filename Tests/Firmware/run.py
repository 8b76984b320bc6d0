#!/usr/bin/python3
"""Runs the board's test image in QEMU, and asks it for everything that it can do.

usage: run.py [--counts]

With --counts it prints what the primitives cost, in instructions.
"""

import pathlib
import sys
import tempfile

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent / "Interop"))

import published
from board import Board
from holdfast_peer.checks import Checks


def main():
    checks = Checks()
    with tempfile.TemporaryDirectory() as folder, Board(folder) as board:
        for name, body in published.CHECKS:
            checks.run(name, body, board)
    return checks.finish()


if __name__ == "__main__":
    sys.exit(main())
