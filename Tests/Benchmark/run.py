#!/usr/bin/python3
"""Measures Holdfast next to its peers, in one run, and writes the figures and pictures of docs/performance.md.

usage: run.py [--holdfast PROGRAM] [--program Benchmark] [--charts bench-charts] [--quick] [--only TEXT] [--write]

Each round times Holdfast and each peer of a row, one right after the other, so that other work meets all of them. A time is the
processor's, except that of rounds over a socket and of a whole proof, which is the clock's. Every result is checked while it is timed.
Of the board in QEMU, instructions are counted in the same run. Before each row, standard error has its number and an estimate of the
rest; a terminal has it each second.
"""

import argparse
import contextlib
import os
import pathlib
import shutil
import signal
import sys
import tempfile
import time

import counted
import document
import growth
import peers
import rows
from progress import Progress
from scene import Scene
from spread import ratio, spread

# Rounds, and the nanoseconds that one sample of a worker takes.
USUAL, QUICK = (15, 40_000_000), (3, 10_000_000)
# The name of the board's rows, which one life of a device gives all at once.
BOARD = "board"
PREPARATION = "preparation"


class Timed:
    """A row with its samples, by peer; Holdfast's are those of the name None."""

    def __init__(self, row):
        self.row, self.samples, self.absent = row, {}, []

    def measure(self, scene, rounds, nanoseconds):
        nanoseconds *= self.row.longer
        with contextlib.ExitStack() as stack:
            workers, each = {None: self.begin(stack, self.row.make, nanoseconds)}, {None: self.row.each}
            scene.measured = workers[None]
            for peer in self.row.peers:
                try:
                    workers[peer.name] = self.begin(stack, peer.make, nanoseconds)
                    each[peer.name] = peer.each
                except (peers.Unavailable, peers.Wrong) as reason:
                    self.absent.append((peer.name, str(reason)))
            self.samples = {name: [] for name in workers}
            for number in range(rounds):
                # Each is first and last equally often.
                order = list(workers.items())
                for name, worker in order if number % 2 == 0 else reversed(order):
                    self.samples[name].append(worker.sample() / each[name])

    @staticmethod
    def begin(stack, make, nanoseconds):
        worker = make()
        stack.callback(worker.close)
        worker.start(nanoseconds)
        return worker

    @property
    def ours(self):
        return spread(self.samples[None])

    def compared(self):
        """Each peer that was there, with its spread, and that of the ratio."""
        for peer in self.row.peers:
            if theirs := self.samples.get(peer.name):
                yield peer, spread(theirs), ratio(self.samples[None], theirs)


def main():
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("--holdfast", type=pathlib.Path, default=peers.ROOT / ".build/release/holdfast")
    parser.add_argument("--program", type=pathlib.Path, default=peers.ROOT / ".build-bench/release/Benchmark")
    parser.add_argument("--charts", type=pathlib.Path, default=peers.ROOT / ".build-bench/release/bench-charts")
    parser.add_argument("--quick", action="store_true", help="a fifth of the rounds, and smaller growth")
    parser.add_argument(
        "--only",
        default="",
        help="the rows whose names contain this text, `board` or `growth`; nothing is written then",
    )
    parser.add_argument("--write", action="store_true", help="write the figures and pictures into docs")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    peers.allow_many_files()
    peers.BUILD.mkdir(parents=True, exist_ok=True)
    # Not in memory: durable rounds need a disk.
    folder = tempfile.mkdtemp(prefix="b", dir=peers.BUILD)
    scene = Scene(options.holdfast.resolve(), options.program.resolve(), folder)
    began, load = time.monotonic(), os.getloadavg()[0]
    try:
        seconds = peers.BUILD / f"seconds{'-quick' if options.quick else ''}.json"
        with Progress([PREPARATION], seconds).row(PREPARATION):
            scene.prepare()
        has_board, has_growth = options.only in ("", BOARD), options.only in ("", "growth")
        chosen = [row for row in rows.rows(scene) if options.only in row.name]
        names = [*([BOARD] if has_board else []), *(row.name for row in chosen), *(growth.NAMES if has_growth else [])]
        progress = Progress(names, seconds)
        counts, timed, curves = [], [], []
        # First: the firmware is built before anything is timed.
        if has_board:
            with progress.row(BOARD):
                counts = counted.measure(scene.holdfast, scene.folder)
            document.show_board(counts)
        for row in chosen:
            timed.append(Timed(row))
            with progress.row(row.name):
                timed[-1].measure(scene, *(QUICK if options.quick else USUAL))
            document.show(timed[-1])
        if has_growth:
            curves = growth.measure(scene, options.quick, progress)
    finally:
        scene.close()
        shutil.rmtree(folder, ignore_errors=True)
    print(f"{time.monotonic() - began:.0f} s")
    if options.write and not options.only:
        document.write(timed, counts, curves, options.charts.resolve(), load)
    return 0


if __name__ == "__main__":
    sys.exit(main())
