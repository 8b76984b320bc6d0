"""Two hosts: holdfast at both ends, over each transport; a thousand rounds; a device that is started anew."""

import latency
from holdfast_peer.checks import expect, expect_equal
from meeting import Meeting, agree, verdict_of

ROUNDS = 1000
# No aim: what is computed in a round takes as long as several pings where the processor is emulated. A wait in the protocol would show.
MOST_PINGS = 20
# Signal, and the exit status of the device that it ends.
ENDINGS = {"TERM": 0, "KILL": 137}


def observe(lab):
    with lab.led_hosts("two_hosts_proofs") as hosts:
        meeting = Meeting(hosts)
        meeting.enroll()
        enroll_elsewhere(meeting)
        meeting.serve()
        # BR/EDR first: where two hosts have only an LE link, an RFCOMM connection is reset.
        seen = {transport: prove(meeting, transport) for transport in ("l2cap", "rfcomm")}
        seen["latency"] = latency.measure(meeting, "rfcomm", ROUNDS)
        seen["restarted"] = {signal: restart(meeting, signal) for signal in ENDINGS}
        return seen | {"le": prove(meeting, "le")}


def enroll_elsewhere(meeting):
    """The state `elsewhere` is enrolled with another device, which trusts the same issuer."""
    meeting.do("verifier", "holdfast device init --dir another")
    meeting.do("verifier", "holdfast device show --dir another --json >another.json")
    meeting.carry("another.json", "verifier", "prover")
    meeting.do("prover", "holdfast service device add --dir service another.json")
    meeting.do("prover", "holdfast enroll --device another.json --service service --state elsewhere")


def prove(meeting, transport):
    rounds = {command: meeting.prove(transport, command) for command in ("unlock", "open-all")}
    return rounds | {"elsewhere": meeting.prove(transport, "unlock", state="elsewhere")}


def restart(meeting, signal):
    """How rounds ended whose device was ended, how the device ended, and a proof when it serves again."""
    meeting.begin_rounds(signal, "l2cap")
    ended = meeting.run("verifier", f"kill -{signal} $server; wait $server")
    rounds = meeting.hosts["prover"].said(signal)
    meeting.serve()
    return rounds.status, ended.status, meeting.prove("l2cap", "lock")


def accepts(seen):
    """two hosts: a proof is accepted over L2CAP, RFCOMM and LE, and the lock moves"""
    for transport in ("l2cap", "rfcomm", "le"):
        agree(seen[transport]["unlock"], 0, "accepted")
        expect("unlock: accepted, unlocked" in seen[transport]["unlock"][0].text, seen[transport]["unlock"][0].text)


def denies(seen):
    """two hosts: a command that the policy does not name is denied over L2CAP, RFCOMM and LE"""
    for transport in ("l2cap", "rfcomm", "le"):
        agree(seen[transport]["open-all"], 1, "commandRefused")


def keeps_to_its_device(seen):
    """two hosts: a prover that was enrolled with another device sends nothing, over L2CAP, RFCOMM and LE"""
    for transport in ("l2cap", "rfcomm", "le"):
        agree(seen[transport]["elsewhere"], 2)


def drops_none(seen):
    """two hosts: of a thousand rounds on one RFCOMM connection none is dropped"""
    # One more is not counted, in which the token may be sent whole.
    logged = seen["latency"].logged
    expect_equal((len(logged), {verdict_of(line) for line in logged}), (ROUNDS + 1, {"accepted"}), "the device's log")


def is_swift(seen):
    """two hosts: a round waits for nothing but the air and both ends' computing"""
    measured = seen["latency"]
    print(
        f"two hosts, RFCOMM: a round {measured.rounds.median:.1f} ms, l2ping {measured.pings.median:.1f} ms: {measured.ratio:.1f} pings a round; aim: {latency.AIM}",
        flush=True,
    )
    expect(measured.ratio <= MOST_PINGS, f"{measured}")


def comes_back(seen):
    """two hosts: rounds end with 69 when their device ends or is killed, and once it serves again the prover is accepted"""
    for signal, (rounds, device, proof) in seen["restarted"].items():
        expect_equal((rounds, device), (69, ENDINGS[signal]), f"exit status of rounds and device after SIG{signal}")
        # The device has forgotten the token, and gets it whole.
        agree(proof, 0, "tokenUnknown", "accepted")


CHECKS = [accepts, denies, keeps_to_its_device, drops_none, is_swift, comes_back]
