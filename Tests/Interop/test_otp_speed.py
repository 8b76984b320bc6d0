"""Codes per second of processor time: `holdfast bench otp` against liboath and pyotp, in turns.

All compute HOTP by HMAC-SHA-1 with six digits in one thread, are handed the key anew for each code, and compare each code with RFC
4226's. The peers are those of `make bench`: liboath called from C, and pyotp from PyPI. A ratio is the median of those of all turns:
other work takes no processor time of theirs, but what it does to the caches and to a processor that is shared meets all in a turn.
Fails below 1.5 times liboath's rate or 25 times pyotp's, three times in a row.
"""

import json
import statistics
import subprocess

import peers
import pytest

REQUIRED = {"liboath": 1.5, "pyotp": 25}
REPETITIONS, TURNS, SECONDS = 3, 5, 1


def holdfast_nanoseconds(holdfast):
    """Of the processor, for each code. Its start is counted, too, so it runs for longer where it gets little of the processor."""
    for seconds in (SECONDS, 4 * SECONDS, 16 * SECONDS):
        before = peers.processor_nanoseconds()
        words = [holdfast, "bench", "otp", "--seconds", str(seconds), "--json"]
        done = subprocess.run(words, check=True, capture_output=True)
        spent = peers.processor_nanoseconds() - before
        if spent > SECONDS * 1e9 / 2:
            break
    return spent / json.loads(done.stdout)["codes"]


def median_ratios(holdfast, workers):
    """How many times the rate of each other one `holdfast` has."""
    ratios = {name: [] for name in workers}
    for _ in range(TURNS):
        ours = holdfast_nanoseconds(holdfast)
        for name, worker in workers.items():
            ratios[name].append(worker.sample() / ours)
    return {name: statistics.median(values) for name, values in ratios.items()}


@pytest.fixture(scope="module")
def absent():
    """The peers that cannot be had here, and why."""
    return {}


@pytest.fixture(scope="module")
def best(holdfast, folder, absent):
    """The best ratio of three measurements."""
    makers = {
        "liboath": lambda: peers.Worker([peers.compiled("liboath"), "hotp", folder]),
        "pyotp": lambda: peers.python_peer("pyotp", "hotp", folder),
    }
    best, workers = dict.fromkeys(REQUIRED, 0), {}
    try:
        for name, make in makers.items():
            try:
                worker = make()
                worker.start(SECONDS * 1e9 / 2)
                workers[name] = worker
            except peers.Unavailable as reason:
                absent[name] = str(reason)
        for _ in range(REPETITIONS):
            for name, ratio in median_ratios(holdfast, workers).items():
                best[name] = max(best[name], ratio)
            if all(best[name] >= REQUIRED[name] for name in workers):
                break
    finally:
        for worker in workers.values():
            worker.close()
    return best


@pytest.mark.parametrize("name", REQUIRED)
def test_codes_per_second_are_that_many_times_those_of(best, absent, capsys, name):
    if name in absent:
        pytest.skip(absent[name])
    with capsys.disabled():
        print(f"holdfast / {name}: {best[name]:.2f}, at least {REQUIRED[name]}")
    assert best[name] >= REQUIRED[name], f"{best[name]:.2f} times, not {REQUIRED[name]}"
