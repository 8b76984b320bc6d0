"""How long rounds take, next to l2ping between the same two hosts in the same run.

A round moves its answer one way, and its verdict with the next challenge the other way: one pair of messages, as a ping is. The kernel
refuses signalling packets of BR/EDR that are longer than 48 bytes (Bluetooth Core 5.4, volume 3 part A, section 4, MTUsig), so that a
ping can carry 44 bytes each way, fewer than a round.
"""

import math
import re
import typing

from meeting import TIMEOUT_SECONDS

PING_BYTES = 44
# What a round may take at most, in pings of the median.
AIM = 1.5


class Times(typing.NamedTuple):
    minimum: float
    median: float
    p99: float


class Latency(typing.NamedTuple):
    """Milliseconds, bytes of a round each way, and the device's log of the rounds."""

    rounds: Times
    pings: Times
    there: int
    back: int
    logged: list

    @property
    def ratio(self):
        return self.rounds.median / self.pings.median


def measure(meeting, transport, rounds=200, pings=200):
    """Rounds on one connection, with half of the pings before them and half after."""
    times = ping(meeting, pings // 2)
    place = f"--connect {meeting.endpoints[transport]} --state phone --timeout {TIMEOUT_SECONDS}"
    measured = meeting.do("prover", f"holdfast bench rounds {place} --rounds {rounds} --json").json
    logged = meeting.read_log()
    times += ping(meeting, pings // 2)
    sizes, microseconds = measured["bytes"], measured["microseconds"]
    return Latency(
        Times(*(microseconds[name] / 1000 for name in ("min", "p50", "p99"))),
        Times(min(times), percentile(times, 50), percentile(times, 99)),
        sizes["answer"],
        sizes["verdict"] + sizes["challenge"],
        logged,
    )


def ping(meeting, count):
    """Milliseconds of each."""
    said = meeting.do("prover", f"l2ping -c {count} -d 0 -s {PING_BYTES} {meeting.address}")
    return [float(text) for text in re.findall(r" time ([0-9.]+)ms", said.text)]


def percentile(times, percent):
    return sorted(times)[math.ceil(len(times) * percent / 100) - 1]
