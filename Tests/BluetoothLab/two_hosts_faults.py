"""Two hosts: the air between holdfast's ends is late, loses packets, or is cut, and the prover's host freezes."""

import contextlib
import math
import time

from holdfast_peer.checks import expect, expect_equal
from meeting import Meeting

LATER_MILLISECONDS = 200
# Rounds that are ended on purpose last as long. They have to begin, too, on an emulated processor with others at work.
TIMEOUT_SECONDS = 6
# For what a prover does before it connects and after it gives up.
SLACK_SECONDS = 60
# A radio calls for 5.12 seconds before it says that nobody answers. An attempt that ended earlier may have met the end of a link.
CALL_SECONDS = 4
LOCAL = "unix:/tmp/lock.sock"


def observe(lab):
    with lab.led_hosts("two_hosts_faults") as hosts:
        meeting = Meeting(hosts)
        meeting.meet()
        enroll_neighbour(meeting)
        meeting.serve(LOCAL)
        seen = {"before": meeting.prove("l2cap", "lock", "--json")[0], "descriptors": descriptors(meeting)}
        seen["late"] = late(meeting, hosts.air)
        seen["lost"] = {to: lose(meeting, hosts.air, to) for to in ("verifier", "prover")}
        seen["frozen"] = freeze(meeting, hosts.prover)
        seen["thawed"] = meeting.prove("l2cap", "lock")[0]
        seen["unconnectable"] = {transport: be_unconnectable(meeting, transport) for transport in ("l2cap", "rfcomm")}
        hosts.air.call_for(CALL_SECONDS)
        seen["unconnectable"]["slow"] = be_unconnectable(meeting, "l2cap", calls=2)
        hosts.air.call_for(0)
        seen["clean"] = meeting.run(
            "verifier", f"patiently has_at_most {seen['descriptors']} && ls -l /proc/$server/fd"
        )
        return seen | cut(meeting, hosts.air)


def enroll_neighbour(meeting):
    """A prover on the device's own host, which needs no radio."""
    meeting.do("verifier", "holdfast service init --dir service")
    meeting.do(
        "verifier", "holdfast service show --dir service --json >own.json && holdfast device trust --dir lock own.json"
    )
    meeting.do("verifier", "holdfast service device add --dir service lock.json")
    meeting.do("verifier", "holdfast enroll --device lock.json --service service --state neighbour")


def neighbour(meeting):
    return meeting.run("verifier", f"holdfast prove --connect {LOCAL} --state neighbour --command unlock --timeout 60")


def descriptors(meeting):
    """How many the device has when no prover is connected."""
    return int(meeting.do("verifier", "ls /proc/$server/fd | wc -l").text)


def late(meeting, air):
    air.delay(LATER_MILLISECONDS)
    said, _ = meeting.prove("l2cap", "unlock", "--json")
    air.delay(0)
    return said


def lose(meeting, air, to):
    """How rounds ended amid which the air began to lose all packets to one end, how long after, and a proof over the next link."""
    name = f"lost-{to}"
    meeting.begin_rounds(name, "l2cap", TIMEOUT_SECONDS)
    with lasting() as seconds:
        air.drop(to, math.inf)
        ended = meeting.hosts["prover"].said(name)
    air.drop(to, 0)
    # A controller that hears nothing gives the link up.
    meeting.drop_link()
    return ended, seconds[0], meeting.prove("l2cap", "lock")[0]


def freeze(meeting, host):
    """What others see while the prover's host is frozen amid rounds. They are ended when it comes back."""
    meeting.begin_rounds("frozen", "l2cap")
    host.guest.freeze()
    seen = [neighbour(meeting), neighbour(meeting)]
    host.guest.thaw()
    host.run("killall holdfast")
    host.said("frozen")
    return seen


def be_unconnectable(meeting, transport, calls=3):
    """A proof that was tried so often while the device's adapter did not answer, as at the end of a link."""
    meeting.drop_link()
    meeting.do("verifier", "hciconfig hci0 noscan")
    name = f"unconnectable-{transport}-{calls}"
    before = meeting.do("prover", "commands").text.strip()
    meeting.hosts["prover"].begin(name, meeting.proof(transport, "lock", state="phone"))
    seen = meeting.run("prover", f"calls {name} {before} {calls}")
    meeting.do("verifier", "hciconfig hci0 piscan")
    return seen, meeting.hosts["prover"].said(name)


def cut(meeting, air):
    """The link is cut amid rounds and stays so."""
    meeting.begin_rounds("cut", "rfcomm", TIMEOUT_SECONDS)
    with lasting() as amid:
        air.cut()
        ended = meeting.hosts["prover"].said("cut")
    with lasting() as connecting:
        unreachable = meeting.run(
            "prover",
            f"holdfast prove --connect {meeting.endpoints['l2cap']} --state phone --command lock --timeout {TIMEOUT_SECONDS}",
        )
    return {"cut": (ended, amid[0]), "connecting": (unreachable, connecting[0]), "beside": neighbour(meeting)}


@contextlib.contextmanager
def lasting():
    """Gives a list that has the seconds in it at the end."""
    seconds, begin = [], time.monotonic()
    yield seconds
    seconds.append(time.monotonic() - begin)


def in_time(ended, seconds):
    expect_equal(ended.status, 69, f"exit status of {ended.text}")
    expect(seconds <= TIMEOUT_SECONDS + SLACK_SECONDS, f"{seconds:.1f} s, and --timeout was {TIMEOUT_SECONDS}")


def comes_late(seen):
    """two hosts: a proof over a slow air is accepted, as much later as the air takes there and back"""
    before, late = seen["before"], seen["late"]
    expect_equal((before.json["status"], late.json["status"]), ("accepted", "accepted"), "verdicts")
    expect(late.json["microseconds"]["device"] >= 2 * LATER_MILLISECONDS * 1000, late.text)


def gives_up(seen):
    """two hosts: when an answer, or a verdict, is lost on the air, the prover ends with 69 within its timeout"""
    for ended, seconds, _ in seen["lost"].values():
        in_time(ended, seconds)


def goes_on(seen):
    """two hosts: after packets were lost the next proof is accepted, over a new link"""
    for to, (_, _, proof) in seen["lost"].items():
        expect_equal(proof.status, 0, f"exit status after loss to the {to}: {proof.text}")


def serves_beside_the_frozen(seen):
    """two hosts: while a prover's host is frozen amid a round, the device serves others"""
    expect_equal([said.status for said in seen["frozen"]], [0, 0], "exit status")


def is_clean(seen):
    """two hosts: when the frozen host is back its prover is accepted, and the device has no descriptor more than before"""
    expect_equal(seen["thawed"].status, 0, f"exit status: {seen['thawed'].text}")
    expect_equal(seen["clean"].status, 0, f"descriptors, {seen['descriptors']} before: {seen['clean'].text}")


def tries_again(seen):
    """two hosts: a proof whose first attempts to connect fail, at once or after four seconds, is accepted once the device's adapter answers"""
    for transport, (calls, proof) in seen["unconnectable"].items():
        expect_equal(calls.status, 0, f"{transport}: {calls.text}; then {proof.status}, {proof.text}")
        expect_equal(proof.status, 0, f"exit status over {transport}: {proof.text}")


def is_cut(seen):
    """two hosts: when the link is cut for good, rounds end with 69 within their timeout, and so does connecting anew"""
    in_time(*seen["cut"])
    in_time(*seen["connecting"])


def serves_beside_the_cut(seen):
    """two hosts: when the link is cut for good, the device serves at its other endpoint"""
    expect_equal(seen["beside"].status, 0, f"exit status: {seen['beside'].text}")


CHECKS = [
    comes_late,
    gives_up,
    goes_on,
    serves_beside_the_frozen,
    is_clean,
    tries_again,
    is_cut,
    serves_beside_the_cut,
]
