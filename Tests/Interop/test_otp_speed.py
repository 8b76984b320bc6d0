"""Codes per second of processor time: `holdfast bench otp` against liboath and pyotp, taken in turns.

All three compute HOTP by HMAC-SHA-1 with six digits in one thread, are handed the key anew for each code, and compare each
code with RFC 4226's. liboath is called from C, compiled with -O2. Fails below 1.5 times liboath's or 20 times pyotp's median,
three times in a row: time that others take is not counted, but what they do to the caches is felt. The goal is 25 times pyotp's.
Seen were 22 to 33: two thirds of a code's time are libcrypto's four SHA-1 blocks, and processors differ in how fast they are at
these and at Python.
"""

import json
import pathlib
import resource
import shutil
import statistics
import subprocess
import time

import pyotp
import pytest

HERE = pathlib.Path(__file__).resolve().parent
# Swift brings clang.
COMPILER = shutil.which("cc") or "clang"
EXPECTED = ["755224", "287082", "359152", "969429", "338314", "254676", "287922", "162583", "399871", "520489"]
REQUIRED = {"liboath": 1.5, "pyotp": 20}
REPETITIONS, TURNS, SECONDS = 3, 5, 1


def compiled(folder):
    program = pathlib.Path(folder) / "liboath_speed"
    subprocess.run(
        [
            COMPILER,
            "-std=gnu11",
            "-O2",
            "-Wall",
            "-Wextra",
            "-Werror",
            "-o",
            program,
            HERE / "liboath_speed.c",
            "-loath",
        ],
        check=True,
    )
    return program


def holdfast_speed(holdfast, seconds):
    """Its start is counted too."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        [holdfast, "bench", "otp", "--seconds", str(seconds), "--json"], check=True, capture_output=True
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return json.loads(done.stdout)["codes"] / (after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime)


def liboath_speed(program, seconds):
    return float(subprocess.run([program, str(seconds)], check=True, capture_output=True).stdout)


def pyotp_speed(seconds):
    generator = pyotp.HOTP("GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ")
    count, start = 0, time.process_time()
    while True:
        for _ in range(100):
            for counter, expected in enumerate(EXPECTED):
                if generator.at(counter) != expected:
                    raise AssertionError("pyotp computes another code")
        count += 1000
        elapsed = time.process_time() - start
        if elapsed >= seconds:
            return count / elapsed


def ratios(holdfast, liboath, turns, seconds):
    """How many times the median speed of each other one `holdfast` has."""
    speeds = {"holdfast": [], "liboath": [], "pyotp": []}
    for _ in range(turns):
        speeds["holdfast"].append(holdfast_speed(holdfast, seconds))
        speeds["liboath"].append(liboath_speed(liboath, seconds))
        speeds["pyotp"].append(pyotp_speed(seconds))
    medians = {name: statistics.median(values) for name, values in speeds.items()}
    for name, median in medians.items():
        print(f"{name}: {median:,.0f} codes a second")
    return {name: medians["holdfast"] / medians[name] for name in REQUIRED}


@pytest.fixture(scope="module")
def best(holdfast, folder):
    """The best ratio of three measurements."""
    best = dict.fromkeys(REQUIRED, 0)
    program = compiled(folder)
    for _ in range(REPETITIONS):
        for name, ratio in ratios(holdfast, program, TURNS, SECONDS).items():
            best[name] = max(best[name], ratio)
        if all(best[name] >= required for name, required in REQUIRED.items()):
            break
    return best


@pytest.mark.parametrize("name", REQUIRED)
def test_codes_per_second_are_that_many_times_those_of(best, capsys, name):
    with capsys.disabled():
        print(f"holdfast / {name}: {best[name]:.2f}, at least {REQUIRED[name]}")
    assert best[name] >= REQUIRED[name], f"{best[name]:.2f} times, not {REQUIRED[name]}"
