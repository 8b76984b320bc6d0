"""Two hosts: BlueZ's own test programs reach each other over every kind of link, and the air does what it is told."""

import time

import one_host
from holdfast_peer.checks import expect, expect_equal

LATER_MILLISECONDS = 50
# By how much the quickest ping may have been slower before, on a busy machine.
SLACK_MILLISECONDS = 25
LOST = 2


def observe(lab):
    begin = time.monotonic()
    with lab.two_hosts("two_hosts") as hosts:
        peer = hosts.verifier.wait("address").split()[1]
        hosts.verifier.wait("listening")
        hosts.prover.wait("address")
        hosts.prover.tell(peer)
        hosts.prover.wait("l2ping")
        print(f"two hosts reach each other {time.monotonic() - begin:.1f} s after they were begun", flush=True)
        seen = hosts.prover.seen
        hosts.prover.wait("quiet")
        hosts.air.delay(LATER_MILLISECONDS)
        hosts.prover.tell("late")
        hosts.prover.wait("late")
        hosts.air.delay(0)
        hosts.air.drop("verifier", LOST)
        hosts.prover.tell("lost")
        hosts.prover.wait("lost")
        hosts.prover.tell("go on")
        hosts.prover.wait("le-secured")
        for name in ("l2cap", "rfcomm", "rfcomm-secured", "le", "le-secured"):
            hosts.verifier.tell(name)
            seen[f"{name}-received"] = [hosts.verifier.wait(f"{name}-received")]
        hosts.air.cut()
        hosts.prover.tell("cut")
        hosts.verifier.tell("over")
        hosts.verifier.end()
        return hosts.prover.end()


def milliseconds(seen, name):
    return [float(word) for word in seen[name][0].split()]


def rises(seen):
    """two hosts: what the air delays both ways is twice as late in a round trip"""
    quiet, late = (min(milliseconds(seen, name)) for name in ("quiet", "late"))
    print(f"l2ping between two hosts: {quiet} ms, {LATER_MILLISECONDS} ms later each way: {late} ms", flush=True)
    expect(
        2 * LATER_MILLISECONDS - SLACK_MILLISECONDS <= late - quiet < 3 * LATER_MILLISECONDS,
        f"{quiet} ms, then {late} ms",
    )


def loses(seen):
    """two hosts: of five pings, those are lost that the air loses"""
    expect_equal(len(milliseconds(seen, "lost")), 5 - LOST, "answered pings")


def cuts(seen):
    """two hosts: once the link is cut, nothing is answered"""
    expect_equal(milliseconds(seen, "cut"), [], "answers")


def between(check):
    def checked(seen):
        check(seen)

    checked.__doc__ = check.__doc__.replace("one host", "two hosts")
    return checked


CHECKS = [*map(between, one_host.CHECKS), rises, loses, cuts]
