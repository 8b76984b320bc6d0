"""What was said along a line, for the Linux device to answer the same."""

import shutil
import subprocess

from holdfast_peer import cbor, session
from holdfast_peer.refusal import Refused

SECONDS = 60
ACTIVATION = range(21, 27)
RESTART = "restart"
# Rounds before one that differs that may be the cause.
MOST_TRIED = 16


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
            self.lines.append(RESTART)
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
            self.lines.append((self.challenge, self.answer))
            self.verdicts.append(message.hex())
            self.answer = None

    def compare(self, twin):
        """Lets the Linux device answer the same, and compares. How many verdicts there were.

        In which second the board answered is told by no message where the next challenge has a later time: both are tried.
        """
        if not self.verdicts:
            return 0
        late, equal = set(), self.count_equal(twin, set())
        candidates = self.maybe_late()
        while equal < len(self.verdicts):
            # A later second shows at once, or when a lockout that began with it ends.
            for number in [number for number in reversed(candidates) if number <= equal and number not in late][
                :MOST_TRIED
            ]:
                further = self.count_equal(twin, late | {number})
                if further > equal:
                    late, equal = late | {number}, further
                    break
            else:
                raise AssertionError(
                    f"M3 number {equal + 1} of the board is not the Linux device's: {self.verdicts[equal]}"
                )
        return len(self.verdicts)

    def maybe_late(self):
        """The numbers of the rounds during which the board's time went on."""
        times = [session.parse_message_1(line[0])["clock"] for line in self.lines if line != RESTART]
        return [
            number
            for number, (time, next_time) in enumerate(zip(times, [*times[1:], times[-1] + 1]))
            if next_time > time
        ]

    def count_equal(self, twin, late):
        """How many verdicts are the Linux device's before one is not, if the rounds of these numbers were answered a second late."""
        lines, number = [], 0
        for line in self.lines:
            if line != RESTART:
                line, number = f"{line[0].hex()} {line[1].hex()} {int(number in late)}", number + 1
            lines.append(line)
        for path in self.ledger.parent.glob(f"{self.ledger.name}*"):
            path.unlink()
        done = subprocess.run(
            [twin, self.image, self.ledger],
            input="\n".join(lines) + "\n",
            text=True,
            timeout=SECONDS,
            capture_output=True,
            check=False,
        )
        if done.returncode != 0:
            raise AssertionError(f"the twin ended with {done.returncode}: {done.stderr[-300:]}")
        theirs = done.stdout.split()
        assert len(theirs) == len(self.verdicts), "answers of the Linux device"
        equal = [ours == other for ours, other in zip(self.verdicts, theirs)]
        return [*equal, False].index(False)


def kind(message):
    """The type that a message begins with; None for what is no array."""
    try:
        fields = cbor.decode(message)
    except Refused:
        return None
    return fields[0] if isinstance(fields, list) and fields else None
