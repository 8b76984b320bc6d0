#!/usr/bin/python3
"""Replays the test vectors on the board: all that a device judges, with the answers of Linux.

usage: vectors.py [FILE...]

One line for each vector that failed, then how many were replayed, and the totals.
"""

import json
import pathlib
import sys
import tempfile

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent / "Interop"))

import images
from board import ROOT
from holdfast_peer.checks import Checks, expect, expect_equal
from vector_board import NOT_A_DEVICES, REPLAYS, VectorBoard


def replay(board, checks, file):
    """How many vectors of a file were asked about, and how many are of a kind that no device judges."""
    asked, left = 0, {}
    content = json.loads(file.read_text())
    for index, group in enumerate(content["testGroups"]):
        kind, tests = group["type"], group["tests"]
        if kind in NOT_A_DEVICES:
            left[kind] = left.get(kind, 0) + len(tests)
            continue
        name = f"{file.name} group {index + 1} ({kind})"
        if kind not in REPLAYS:
            checks.run(name, expect, False, "nobody knows how to replay this kind on a board")
            continue
        checks.run(f"{name}: the device", board.become, group)
        for test in tests:
            checks.run(f"{name} test {test['tcId']}", REPLAYS[kind], board, group, test)
        asked += len(tests)
    checks.run(f"{file.name}: none is left out", expect_equal, asked + sum(left.values()), content["numberOfTests"],
               "tests in all groups")
    return asked, left


def main():
    if not images.built():
        return 0
    files = [pathlib.Path(name) for name in sys.argv[1:]] or sorted((ROOT / "vectors").glob("*.json"))
    checks = Checks()
    asked, left = 0, {}
    with tempfile.TemporaryDirectory() as folder, VectorBoard(folder) as board:
        for file in files:
            more, others = replay(board, checks, file)
            asked, left = asked + more, {**left, **others}
        if len(sys.argv) == 1:
            checks.run("rounds end in the M3 of their vector", expect, board.equal_verdicts > 0, "none did")
        print(f"{asked} vectors replayed on the board; {board.equal_verdicts} rounds ended in the very M3 of their vector")
    for kind, count in left.items():
        print(f"{count} of {kind} are not a device's: {NOT_A_DEVICES[kind]}")
    return checks.finish()


if __name__ == "__main__":
    sys.exit(main())
