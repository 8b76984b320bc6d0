"""Two hosts and Low Energy: proofs follow each other and all kinds of ends of a link, and the device is connectable again each time."""

import base64
import re
import statistics
import typing

import connectable
from holdfast_peer.checks import Failed, expect, expect_equal
from meeting import TIMEOUT_SECONDS, Meeting, verdict_of

TURNS = 5
MOST_MILLISECONDS = 200
PINGS = 20
# Seconds between the pings and the next proof: a link goes two seconds after its last channel.
PAUSES = (0, 2, 0, 3, 1)
NOT_CONNECTABLE, AGAIN = (
    "provers cannot connect by Low Energy",
    re.compile(r"can connect by Low Energy again, after (\d+) ms"),
)


class Seen(typing.NamedTuple):
    proofs: list
    denied: tuple
    pings: list
    # Milliseconds, None where it was not connectable at the end.
    gaps: list
    # What the device has said of that.
    said: list


def observe(lab, turns=TURNS):
    with lab.led_hosts("low_energy") as hosts:
        meeting = Meeting(hosts)
        meeting.meet()
        meeting.serve()
        meeting.do("verifier", "btmon -w air -i 0 >/tmp/recorded & recorder=$!; patiently [ -s air ]")
        ends = [leave, never_open, cut_off, vanish]
        proofs, pings, logged = [], [], []
        for turn in range(turns):
            proofs.append(prove(meeting, "unlock", logged))
            pings.append(ping(meeting))
            ends[turn % len(ends)](meeting)
            meeting.do("prover", f"sleep {PAUSES[turn % len(PAUSES)]}")
        denied = prove(meeting, "open-all", logged)
        proofs.append(prove(meeting, "lock", logged))
        return Seen(proofs, denied, pings, recorded_gaps(meeting), [*logged, *meeting.read_log()])


def prove(meeting, command, logged):
    """How it ended, and the device's verdicts."""
    said, lines = meeting.prove("le", command)
    logged += lines
    return said, [verdict_of(line) for line in lines if " connection " in line]


def ping(meeting):
    """How many of the pings over BR/EDR were answered."""
    return meeting.run("prover", f"l2ping -c {PINGS} -d 0 {meeting.address}").text.count(" time ")


def leave(meeting):
    """The prover's host ends its link, two seconds after its last channel."""
    meeting.do("prover", "within 60 has_no_low_energy_link")


def never_open(meeting):
    """A host connects, opens no channel and goes."""
    leave(meeting)
    meeting.do("prover", f"hcitool lecc {meeting.address} && end_low_energy_links")


def cut_off(meeting):
    """The device's host ends the link, if there still is one."""
    meeting.do("verifier", "end_low_energy_links")


def vanish(meeting):
    """A prover is killed amid its rounds."""
    meeting.do(
        "prover",
        f"holdfast bench rounds --connect {meeting.endpoints['le']} --state phone --rounds 1000000 --timeout {TIMEOUT_SECONDS} "
        ">/tmp/rounds 2>&1 & prover=$!",
    )
    waited = meeting.run("verifier", f"within {2 * TIMEOUT_SECONDS} longer device.log {meeting.lines_read + 3}")
    if waited.status != 0:
        raise Failed(f"no rounds: {waited.text}; the prover says: {meeting.run('prover', 'cat /tmp/rounds').text}")
    meeting.do("prover", "kill -KILL $prover; end_low_energy_links")


def recorded_gaps(meeting):
    # The last link's end belongs to it.
    leave(meeting)
    meeting.do("verifier", "within 60 has_no_low_energy_link; sleep 1; kill $recorder; wait $recorder; true")
    return connectable.gaps(base64.b64decode(meeting.hosts["verifier"].do("base64 -w 0 air")))


def accepts(seen):
    """Low Energy: proofs that follow each other, pings and ended links within seconds are all accepted"""
    for said, verdicts in seen.proofs:
        expect_equal(said.status, 0, f"exit status of {said.text}")
        expect_equal(verdicts[-1:], ["accepted"], "the device's log")
    said, verdicts = seen.denied
    expect_equal((said.status, verdicts[-1:]), (1, ["commandRefused"]), said.text)


def pings(seen):
    """Low Energy: meanwhile each ping over BR/EDR is answered"""
    expect_equal(set(seen.pings), {PINGS}, "answered pings")


def comes_back(seen):
    """Low Energy: after each link's end, whoever ends it, the device is connectable within 200 ms, or says that it is not"""
    expect(len(seen.gaps) > len(seen.proofs) / 2 and None not in seen.gaps, f"milliseconds: {seen.gaps}")
    said = [line for line in seen.said if NOT_CONNECTABLE in line or AGAIN.search(line)]
    late = [gap for gap in seen.gaps if gap > MOST_MILLISECONDS]
    print(
        f"connectable again after {len(seen.gaps)} links' ends: {figures(seen.gaps)}; said {len(said)} times",
        flush=True,
    )
    expect(not late or said, f"{late} ms, and the device's log says nothing of it")


def figures(milliseconds):
    return f"least {min(milliseconds):.1f} ms, median {statistics.median(milliseconds):.1f} ms, most {max(milliseconds):.1f} ms"


CHECKS = [accepts, pings, comes_back]
