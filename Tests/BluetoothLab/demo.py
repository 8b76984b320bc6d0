#!/usr/bin/python3
"""Two virtual Linux hosts with a kernel each, and Bluetooth between them: enrol, let a user in, prove over each transport, and measure.

usage: demo.py --holdfast PATH

Exit status: 0 if everything came out as it must, 1 if not, 69 where no guest can be had.
"""

import argparse
import pathlib
import signal
import sys
import tempfile
import time

TESTS = pathlib.Path(__file__).resolve().parent.parent
sys.path[1:1] = [str(TESTS / "Guest"), str(TESTS / "Interop")]

import guest
import latency
import users
from bluetooth_lab import BluetoothLab
from holdfast_peer.checks import Failed
from meeting import PORTS, Meeting, verdict_of

NAMES = {"l2cap": "L2CAP", "rfcomm": "RFCOMM", "le": "LE"}
# Command, and the device's verdict.
COMMANDS = [("unlock", "accepted"), ("open-all", "commandRefused")]
UNAVAILABLE, INTERRUPTED = 69, 130
MOST_LINES = 6
# How many rounds and pings are measured, by the milliseconds that the air takes each way: none, as the emulator has it, and about what
# a radio takes (RFCOMM answers in 10 to 50 ms, LE commonly in 60 to 100).
AIRS = {0: (100, 100), 20: (50, 40)}
# What l2ping goes over.
PINGED = ("l2cap", "rfcomm")


class Demo:
    def __init__(self):
        self.begin = time.monotonic()
        self.wrong = []

    def say(self, text):
        print(f"\n[{time.monotonic() - self.begin:4.1f} s] {text}", flush=True)

    def tell(self, role, said):
        """Prints what one of the hosts' consoles shows, without the middle of what is long."""
        lines = said.splitlines()
        if len(lines) > MOST_LINES:
            lines[2:-1] = [f"… {len(lines) - 3} more lines"]
        for line in lines:
            print(f"{role:8} | {line}", flush=True)

    def judge(self, is_right, what):
        print(f"{'✓' if is_right else '✗'} {what}", flush=True)
        if not is_right:
            self.wrong.append(what)

    def run(self, holdfast):
        self.say("Seeing to Debian's kernel and BlueZ in .guest/; the first time some 100 MB are fetched")
        guest.prepare()
        with tempfile.TemporaryDirectory(prefix="hf") as folder:
            lab = BluetoothLab(holdfast, pathlib.Path(folder))
            self.say("Booting two hosts under QEMU, without KVM; the emulated radio is in the verifier's")
            with lab.led_hosts("demo") as hosts:
                meeting = Meeting(hosts, self.tell)
                self.say("Both hosts are up. The device makes its key, the prover measures itself and is enrolled")
                meeting.enroll()
                self.say("One device, three transports")
                meeting.serve()
                self.let_in(meeting)
                measured = {transport: self.prove(meeting, hosts.air, transport) for transport in PORTS}
                self.say("Round trips in milliseconds, measured by turns between the same two hosts")
                for milliseconds in AIRS:
                    self.show(milliseconds, {transport: seen[milliseconds] for transport, seen in measured.items()})
                self.explain()
        return self.finish()

    def let_in(self, meeting):
        """The story of a user. A host with only an LE link would be refused RFCOMM: this comes before."""
        self.say("A user: the device's owner lets alice in, whose host has a clock that is an hour and a half behind")
        users.set_clock_back(meeting)
        said = users.activate(meeting, "rfcomm")
        self.judge(
            said.status == 0,
            "RFCOMM: alice activates by the owner's code, and her authenticator takes over the device's time",
        )
        self.say("The right person: a one-time password beside the proof")
        self.judge_proof(users.configure(meeting, "rfcomm"), "factorMissing", "RFCOMM: configure by the proof alone")
        users.make_password(meeting)
        self.judge_proof(
            users.with_password(meeting, "rfcomm"), "accepted", "RFCOMM: configure with the one-time password"
        )
        self.judge_proof(
            users.with_password(meeting, "rfcomm"), "otpRejected", "RFCOMM: configure with the same one again"
        )
        self.say(f"Exactly this command: a seal over open-safe {users.SAFE}")
        users.make_seal(meeting)
        self.judge_proof(
            users.open_safe(meeting, "l2cap", users.OTHER_SAFE),
            "sealRejected",
            f"L2CAP: open-safe {users.OTHER_SAFE} by that seal",
        )
        self.judge_proof(
            users.open_safe(meeting, "l2cap", users.SAFE), "accepted", f"L2CAP: open-safe {users.SAFE} by that seal"
        )

    def judge_proof(self, proof, verdict, what):
        """Both ends must say that verdict, and the exit status with it."""
        said, logged = proof
        is_accepted = verdict == "accepted"
        is_right = (said.status == 0) == is_accepted and [verdict_of(line) for line in logged[-1:]] == [verdict]
        self.judge(
            is_right, f"{what} is {'accepted' if is_accepted else f'denied, {verdict}'}, exit status {said.status}"
        )

    def prove(self, meeting, air, transport):
        """The story of one transport; returns what was measured, by the time that the air took."""
        self.say(f"{NAMES[transport]}: {meeting.endpoints[transport]}")
        for command, verdict in COMMANDS:
            self.judge_proof(meeting.prove(transport, command), verdict, f"{NAMES[transport]}: {command}")
        measured = {}
        for milliseconds, (rounds, pings) in AIRS.items():
            if milliseconds:
                self.say(f"{NAMES[transport]}, on an air that takes {milliseconds} ms each way")
            air.delay(milliseconds)
            measured[milliseconds] = latency.measure(meeting, transport, rounds, pings)
        air.delay(0)
        return measured

    def show(self, milliseconds, measured):
        print(f"{f'the air takes {milliseconds} ms each way' if milliseconds else 'the air takes no time'}:")
        print(f"{'':8}{'a round of holdfast':>32}{'l2ping':>28}{'round / ping':>16}")
        print(
            f"{'':8}{'bytes':>8}"
            + f"{'min':>8}{'median':>8}{'p99':>8}"
            + f"{'bytes':>8}"
            + f"{'min':>8}{'median':>8}{'p99':>8}"
            + f"{'median':>12}"
        )
        for transport, seen in measured.items():
            print(
                f"{NAMES[transport]:8}{f'{seen.there}+{seen.back}':>8}"
                + "".join(f"{time:8.1f}" for time in seen.rounds)
                + f"{f'{latency.PING_BYTES}+{latency.PING_BYTES}':>8}"
                + "".join(f"{time:8.1f}" for time in seen.pings)
                + f"{seen.ratio:12.1f}"
            )
        # Where nothing but computing takes time, the ratio says how slow the emulated processors are.
        for transport in PINGED if milliseconds else ():
            seen = measured[transport]
            self.judge(
                seen.ratio <= latency.AIM,
                f"{NAMES[transport]}: a round takes at most {latency.AIM} pings: {seen.ratio:.2f}",
            )

    def explain(self):
        print(
            f"\nA round is its answer one way, its verdict and the next challenge the other; app and host were measured before.\n"
            f"The kernel takes no pings of more than {latency.PING_BYTES} bytes (MTUsig), and answers them itself, on BR/EDR, also beside LE. Both hosts' processors\n"
            "are emulated, some twenty times slower than real ones: without an air that takes its time, that is all that is compared."
        )

    def finish(self):
        seconds = time.monotonic() - self.begin
        print(
            f"\n{'✗ not as it must be: ' + '; '.join(self.wrong) if self.wrong else '✓ all as it must be'} ({seconds:.0f} s)",
            flush=True,
        )
        return 1 if self.wrong else 0


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--holdfast", required=True, type=pathlib.Path, help="the command line to show")
    options = parser.parse_args()
    # As Ctrl-C: what is under way is cleaned up.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        return Demo().run(options.holdfast.resolve())
    except guest.Unavailable as reason:
        print(f"demo-bluetooth: no Linux guest: {reason}", file=sys.stderr)
        return UNAVAILABLE
    except Failed as reason:
        print(f"\n✗ not as it must be: {reason}", flush=True)
        return 1
    except KeyboardInterrupt:
        print("\ndemo-bluetooth: interrupted", file=sys.stderr)
        return INTERRUPTED


if __name__ == "__main__":
    sys.exit(main())
