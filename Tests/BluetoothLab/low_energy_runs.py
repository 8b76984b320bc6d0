#!/usr/bin/python3
"""The story of Low Energy again and again, each time with hosts that have just booted, while other work keeps the processors busy.

usage: low_energy_runs.py --holdfast PATH [--runs 20] [--turns 8] [--busy 2]

Prints for each run how many proofs there were, and how long the device was not connectable after the end of a link. Exit status: 0 if
all went as it must, 1 as soon as something did not, 69 where no guest can be had.
"""

import argparse
import contextlib
import multiprocessing
import pathlib
import sys
import tempfile
import time

TESTS = pathlib.Path(__file__).resolve().parent.parent
sys.path[1:1] = [str(TESTS / "Guest"), str(TESTS / "Interop")]

import guest
import low_energy
from bluetooth_lab import BluetoothLab
from holdfast_peer.checks import Failed

UNAVAILABLE = 69


class Runs(BluetoothLab):
    LOGS = "low-energy-logs"
    DEADLINE_SECONDS = 900


def spin():
    while True:
        pass


@contextlib.contextmanager
def busy(count):
    """So many processes that never wait."""
    workers = [multiprocessing.Process(target=spin, daemon=True) for _ in range(count)]
    for worker in workers:
        worker.start()
    try:
        yield
    finally:
        for worker in workers:
            worker.kill()
            worker.join()


def run(holdfast, turns):
    with tempfile.TemporaryDirectory(prefix="hf") as folder:
        seen = low_energy.observe(Runs(holdfast, pathlib.Path(folder)), turns)
    for check in low_energy.CHECKS:
        check(seen)
    return seen


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--holdfast", required=True, type=pathlib.Path, help="the command line under test")
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--turns", type=int, default=8)
    parser.add_argument("--busy", type=int, default=multiprocessing.cpu_count(), help="processes that never wait")
    options = parser.parse_args()
    gaps, proofs = [], 0
    try:
        guest.prepare()
        with busy(options.busy):
            for number in range(1, options.runs + 1):
                begin = time.monotonic()
                seen = run(options.holdfast.resolve(), options.turns)
                gaps += seen.gaps
                proofs += len(seen.proofs) + 1
                print(f"run {number}: {len(seen.proofs) + 1} proofs, {time.monotonic() - begin:.0f} s", flush=True)
    except guest.Unavailable as reason:
        print(f"no Linux guest: {reason}", file=sys.stderr)
        return UNAVAILABLE
    except Failed as reason:
        print(f"run {number} failed: {reason}", flush=True)
        return 1
    print(
        f"{options.runs} runs, {proofs} proofs, {len(gaps)} ends of links, none failed; connectable again: {low_energy.figures(gaps)}"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
