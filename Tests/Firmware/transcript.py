"""What was said along a line, for the Linux device to answer the same."""

import shutil
import subprocess

from holdfast_peer import cbor
from holdfast_peer.checks import Failed, expect_equal
from holdfast_peer.refusal import Refused

SECONDS = 60
ACTIVATION = range(21, 27)


class Transcript:
    """Every round from the first start of a board on, until something happens that no message tells of.

    That is work of the owner, a program at the line, or an activation: the device's part of it is random.
    """

    def __init__(self, folder):
        self.image, self.ledger = folder / "first.img", folder / "twin.sqlite"
        self.lines, self.verdicts = [], []
        self.challenge = self.answer = None
        self.is_open = True

    def switch_on(self, image):
        if not self.is_open:
            return
        if self.image.exists():
            self.lines.append("restart")
        else:
            shutil.copyfile(image, self.image)
            self.image.chmod(0o600)

    def end(self):
        self.is_open = self.is_open and not self.image.exists()

    def hear(self, message, is_answer):
        """Takes a message of the line: an answer is the prover's."""
        if is_answer:
            if kind(message) in ACTIVATION:
                self.end()
            self.answer = message
        elif kind(message) == 1:
            # What was too long for a message has no verdict.
            self.challenge, self.answer = message, None
        elif self.answer is not None and self.is_open:
            self.lines.append(f"{self.challenge.hex()} {self.answer.hex()}")
            self.verdicts.append(message.hex())
            self.answer = None

    def compare(self, twin):
        """Lets the Linux device answer the same, and compares. How many verdicts there were."""
        if not self.verdicts:
            return 0
        done = subprocess.run([twin, self.image, self.ledger], input="\n".join(self.lines) + "\n", text=True, timeout=SECONDS,
                              capture_output=True, check=False)
        if done.returncode != 0:
            raise Failed(f"the twin ended with {done.returncode}: {done.stderr[-300:]}")
        theirs = done.stdout.split()
        expect_equal(len(theirs), len(self.verdicts), "answers of the Linux device")
        for number, (ours, other) in enumerate(zip(self.verdicts, theirs)):
            expect_equal(ours, other, f"M3 number {number + 1} of the board, beside the Linux device's")
        return len(theirs)


def kind(message):
    """The type that a message begins with; None for what is no array."""
    try:
        fields = cbor.decode(message)
    except Refused:
        return None
    return fields[0] if isinstance(fields, list) and fields else None
