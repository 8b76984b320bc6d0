#!/usr/bin/env python3
"""Codes per second: `holdfast bench otp` against liboath and pyotp, taken in turns.

usage: otp_speed.py --holdfast PATH [--turns N] [--seconds N]

All three compute HOTP by HMAC-SHA-1 with six digits in one thread, are handed the key anew for each code, and compare each
code with RFC 4226's. liboath is called from C, compiled with -O2. Fails below 1.5 times liboath's or 25 times pyotp's median.
"""

import argparse
import json
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

import pyotp

from holdfast_peer.checks import Checks, expect

HERE = pathlib.Path(__file__).resolve().parent
# Swift brings clang.
COMPILER = shutil.which("cc") or "clang"
EXPECTED = ["755224", "287082", "359152", "969429", "338314", "254676", "287922", "162583", "399871", "520489"]
REQUIRED = {"liboath": 1.5, "pyotp": 25}


def compiled(folder):
    program = pathlib.Path(folder) / "liboath_speed"
    subprocess.run([COMPILER, "-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", "-o", program, HERE / "liboath_speed.c", "-loath"],
                   check=True)
    return program


def holdfast_speed(holdfast, seconds):
    done = subprocess.run([holdfast, "bench", "otp", "--seconds", str(seconds), "--json"], check=True, capture_output=True)
    return json.loads(done.stdout)["codes_per_second"]


def liboath_speed(program, seconds):
    return float(subprocess.run([program, str(seconds)], check=True, capture_output=True).stdout)


def pyotp_speed(seconds):
    generator = pyotp.HOTP("GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ")
    count, start = 0, time.perf_counter()
    while True:
        for _ in range(100):
            for counter, expected in enumerate(EXPECTED):
                if generator.at(counter) != expected:
                    raise AssertionError("pyotp computes another code")
        count += 1000
        elapsed = time.perf_counter() - start
        if elapsed >= seconds:
            return count / elapsed


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--holdfast", required=True)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=1)
    options = parser.parse_args()
    speeds = {"holdfast": [], "liboath": [], "pyotp": []}
    with tempfile.TemporaryDirectory() as folder:
        program = compiled(folder)
        for _ in range(options.turns):
            speeds["holdfast"].append(holdfast_speed(options.holdfast, options.seconds))
            speeds["liboath"].append(liboath_speed(program, options.seconds))
            speeds["pyotp"].append(pyotp_speed(options.seconds))
    medians = {name: statistics.median(values) for name, values in speeds.items()}
    for name, median in medians.items():
        print(f"{name}: {median:,.0f} codes a second")
    checks = Checks()
    for name, required in REQUIRED.items():
        ratio = medians["holdfast"] / medians[name]
        print(f"holdfast / {name}: {ratio:.2f}, at least {required}")
        checks.run(f"codes per second against {name}", expect, ratio >= required, f"{ratio:.2f} times, not {required}")
    return checks.finish()


if __name__ == "__main__":
    sys.exit(main())
