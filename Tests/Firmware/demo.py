#!/usr/bin/python3
"""A lock on a Cortex-M4 in QEMU, behind a bridge: enrol, prove, let users in, cut the power, and try every attack.

usage: demo.py --holdfast PATH

Exit status: 0 if everything came out as it must, 1 if not, 69 where the firmware cannot be built or run.
"""

import argparse
import pathlib
import signal
import sys
import tempfile
import time

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent / "Interop"))

import images
from demonstration import bridge_attacks, daily, flash_attacks, line_attacks, prover_attacks, token_attacks, wire_attacks
from demonstration.person import Person
from demonstration.scene import Scene
from demonstration.story import Story
from holdfast_peer.checks import Failed
from holdfast_peer.transport import Closed

UNAVAILABLE, INTERRUPTED = 69, 130
# The names of sockets are short.
LONGEST_FOLDER = 64
# What `holdfast demo` tries beside all this, and why no board could have a part in it.
ELSEWHERE = [
    ("a baseline for a second device", "the backend refuses it: no token comes of it"),
    ("a stolen authenticator, tried with four PINs", "it is about the authenticator's file alone"),
]


class Demo:
    def __init__(self, scene, story):
        self.scene, self.story = scene, story
        self.alice, self.bob = Person("alice", scene), Person("bob", scene)

    def run(self):
        self.prepare()
        right, known, last_entry = self.live()
        self.story.heading("Attacks at the serial line, by somebody with a probe there")
        self.probe()
        self.story.heading("Attacks on what is said, each tried for real")
        bridge_attacks.attack(self.scene, self.story)
        wire_attacks.attack(self.scene, self.story)
        daily.lose_power_midway(self.scene, self.story)
        self.story.heading("Attacks by tokens")
        token_attacks.attack(self.scene, self.story)
        self.story.heading("Attacks by provers")
        prover_attacks.attack(self.scene, self.story)
        self.visit(right, known)
        self.finish(last_entry)

    def prepare(self):
        scene, story = self.scene, self.story
        story.heading("Once, while there is a network")
        scene.provision()
        story.step("a flash is provisioned", "a key, an id, the issuers it trusts, a policy")
        scene.enroll("phone")
        scene.enroll("limited", "--allow", "status")
        story.step("the app is measured, attested and enrolled", "a token, encrypted to that key")
        for person in (self.alice, self.bob):
            person.be_added()
        story.step("the owner lets alice and bob in", "an activation code for each")
        story.expect("the board has power", "start 1", scene.power_on())
        scene.start_bridge()

    def live(self):
        """Returns a password of bob's that is right, a token that is known, and the audit log's last entry before the power failed."""
        scene, story = self.scene, self.story
        daily.prove(scene, story)
        password = daily.prove_the_person(story, self.alice)
        seal = daily.prove_the_command(story, self.alice)
        right = daily.guess(scene, story, self.bob)
        story.expect("alice is not locked out for that", "accepted", self.alice.configure(self.alice.password()).status)
        last_entry = daily.lose_power(scene, story, (password, seal, right), self.alice, self.bob)
        known = scene.grant()
        with (prover := scene.connect()).connection:
            prover.ask(known)
        return right, known, last_entry

    def probe(self):
        self.end_bridge()
        line_attacks.attack(self.scene, self.story)
        self.scene.start_bridge()

    def end_bridge(self):
        self.story.expect("the bridge ends in order", "exit 0", f"exit {self.scene.stop_bridge()}")

    def visit(self, right, known):
        """The owner takes the flash out, and puts it back."""
        scene, story = self.scene, self.story
        scene.board.cut_power()
        story.heading("The owner has the flash on the bench: spoiled copies of it, and what owners do")
        flash_attacks.attack(scene, story)
        flash_attacks.allow_nothing(scene, story)
        flash_attacks.repeat_the_noise(scene, story)
        self.bob.be_unlocked()
        scene.own("trust", "--remove", scene.path("issuer.jwk"))
        story.expect("the board has power again", "start 4", scene.power_on())
        story.expect("bob takes the owner's unlock code to the board", "exit 0", self.bob.unlock().exit)
        story.expect("… and his password counts again", "accepted", self.bob.configure(right).status)
        token_attacks.remove_the_issuer(scene, story, known)
        story.expect("the prover of an issuer that was kept", "accepted", scene.prove().status)

    def finish(self, last_entry):
        scene, story = self.scene, self.story
        faults = [line for line in scene.board.said() if not line.startswith(("start ", "status "))]
        story.heading("What the board wrote down")
        story.expect("faults on its console", "none", "; ".join(faults) or "none")
        self.end_bridge()
        scene.board.cut_power()
        daily.audit(scene, story)
        story.expect("… after the entry before the power failed", "started", daily.follower(scene, last_entry))
        story.heading("Attacks of `holdfast demo` that have no board in them")
        for attack, reason in ELSEWHERE:
            story.step(attack, reason)


def folder():
    place = tempfile.gettempdir()
    return tempfile.TemporaryDirectory(prefix="holdfast-firmware-", dir=place if len(place) <= LONGEST_FOLDER else "/tmp")


def tell(holdfast):
    begin, story = time.monotonic(), Story()
    with folder() as place, Scene(holdfast, place) as scene:
        Demo(scene, story).run()
    seconds = time.monotonic() - begin
    print(f"\n{'✗ not as it must be: ' + '; '.join(story.wrong) if story.wrong else '✓ all as it must be'} ({seconds:.0f} s)", flush=True)
    print(f"{story.count - len(story.wrong)} passed, {len(story.wrong)} failed")
    return 1 if story.wrong else 0


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--holdfast", required=True, type=pathlib.Path, help="the command line to show")
    options = parser.parse_args()
    # As Ctrl-C: what is under way is cleaned up.
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.default_int_handler)
    try:
        print("Holdfast: a lock on a microcontroller, and an app that proves itself to it.", flush=True)
        images.prepare()
        print("The firmware is being built; the first time that takes some minutes.", flush=True)
        images.build()
        return tell(options.holdfast.resolve())
    except images.Unavailable as reason:
        print(f"holdfast: no firmware: {reason}\nhint: {reason.hint}", file=sys.stderr)
        return UNAVAILABLE
    except (Failed, Closed, OSError) as reason:
        print(f"\n✗ not as it must be: {reason!r}", flush=True)
        return 1
    except KeyboardInterrupt:
        print("\nholdfast: interrupted", file=sys.stderr)
        return INTERRUPTED


if __name__ == "__main__":
    sys.exit(main())
