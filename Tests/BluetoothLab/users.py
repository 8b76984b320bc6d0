"""Two hosts whose clocks differ: a user is let in over the air, and a one-time password and a seal count beside the proof, once each."""

import re

from holdfast_peer.checks import expect, expect_equal
from meeting import TIMEOUT_SECONDS, Meeting, verdict_of

USER, PIN = "alice", "3917"
SAFE, OTHER_SAFE = "7", "8"
# By how much the prover's clock is behind the device's: more than a code is ever looked for.
BEHIND_SECONDS = 5400
CODE = re.compile(r"^(?:[0-9A-Z]{4}-)+[0-9A-Z]+$", re.MULTILINE)


def set_clock_back(meeting):
    meeting.do("prover", f"date -s @$(($(date +%s) - {BEHIND_SECONDS}))")


def activate(meeting, transport):
    """The device's owner lets the user in, who activates an authenticator over the air; returns how that went."""
    code = CODE.search(meeting.do("verifier", f"holdfast device user add --dir lock {USER}").text).group()
    meeting.hosts["prover"].do(f"echo {PIN} >pin && echo {code} >code")
    return meeting.run(
        "prover",
        f"holdfast otp activate --connect {meeting.endpoints[transport]} --code code --authenticator otp "
        f"--new-pin-file pin --timeout {TIMEOUT_SECONDS}",
    )


def make_password(meeting):
    meeting.do("prover", "holdfast otp --authenticator otp --pin-file pin | tee password")


def make_seal(meeting):
    meeting.do(
        "prover", f"holdfast seal --authenticator otp --pin-file pin --command open-safe --parameter {SAFE} | tee seal"
    )


def configure(meeting, transport, *options):
    return meeting.prove(transport, "configure", *options)


def with_password(meeting, transport):
    return configure(meeting, transport, "--user", USER, "--otp", "password")


def open_safe(meeting, transport, safe):
    return meeting.prove(transport, "open-safe", "--parameter", safe, "--user", USER, "--seal", "seal")


def observe(lab):
    with lab.led_hosts("users") as hosts:
        meeting = Meeting(hosts)
        meeting.meet()
        meeting.serve()
        set_clock_back(meeting)
        seen = {"activated": activate(meeting, "rfcomm"), "without": configure(meeting, "rfcomm")}
        make_password(meeting)
        seen |= {name: with_password(meeting, "rfcomm") for name in ("password", "password again")}
        make_seal(meeting)
        return seen | {
            name: open_safe(meeting, "rfcomm", safe)
            for name, safe in (("elsewhere", OTHER_SAFE), ("seal", SAFE), ("seal again", SAFE))
        }


def agree(proof, status, verdict):
    """Both ends say the same."""
    said, logged = proof
    expect_equal(said.status, status, f"exit status of {said.text}")
    expect_equal([verdict_of(line) for line in logged][-1:], [verdict], "the device's log")


def activates(seen):
    """two hosts: a user activates an authenticator over RFCOMM by the owner's code, though the hosts' clocks are 90 minutes apart"""
    expect_equal(seen["activated"].status, 0, seen["activated"].text)
    expect(f"{USER}: activated" in seen["activated"].text, seen["activated"].text)


def takes_a_password(seen):
    """two hosts: a one-time password is accepted beside the proof over RFCOMM, once, and the proof alone is not"""
    agree(seen["without"], 1, "factorMissing")
    agree(seen["password"], 0, "accepted")
    agree(seen["password again"], 1, "otpRejected")


def takes_a_seal(seen):
    """two hosts: a seal is accepted for its command's parameter over RFCOMM, once, and not for another"""
    agree(seen["elsewhere"], 1, "sealRejected")
    agree(seen["seal"], 0, "accepted")
    agree(seen["seal again"], 1, "sealRejected")


CHECKS = [activates, takes_a_password, takes_a_seal]
