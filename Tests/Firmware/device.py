"""A board that runs the device: messages to it and back, and what its console says that each answer took."""

import re

from board import INSTRUCTIONS_A_TICK, ROOT, SECONDS, Board, Gone
from holdfast_peer import transport

BUILD = ROOT / "firmware-sim" / ".build"
ANSWERED = re.compile(r"holdfast: status (\d+), ticks (\d+), stack (\d+)\n")

EMPTY_FRAME_AND_M1 = re.compile(rb"\x00\x00\x00.(\x87\x01\x01\x50)", re.DOTALL)
# That many bytes are a minute of M1 sent again and again.
MOST_BYTES_BEFORE = 4096


class Device:
    """The device on a board whose counts repeat, in a folder with its image. A new round is open."""

    def __init__(self, folder, entropy, firmware=BUILD / "firmware.elf"):
        self.board = Board(folder, "--still", "--entropy", entropy, firmware=firmware)
        self.line = transport.StreamConnection(self.board.socket, SECONDS)
        self.exchanges = []
        self.m1 = self.begin()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.board.cut_power()

    @property
    def image(self):
        return self.board.image

    def begin(self):
        """The M1 behind the empty frame that answers ours. What was sent before anybody listened may wait, whole or not."""
        self.line.send(b"")
        received = b""
        while (found := EMPTY_FRAME_AND_M1.search(received)) is None:
            assert len(received) < MOST_BYTES_BEFORE, "no answer to an empty frame"
            received += self.board.receive(1)
        return found[1] + self.board.receive(received[found.start(1) - 1] - len(found[1]))

    def receive(self):
        """The next message; an M1 that is repeated is none."""
        while True:
            message = self.line.receive()
            if message != self.m1:
                return message

    def exchange(self, message, opens_round=True):
        """The answer to a message, behind which another M1 comes unless the round goes on."""
        self.line.send(message)
        reply = self.receive()
        if opens_round:
            self.m1 = self.receive()
        self.exchanges.append((message, opens_round, reply, self.m1))
        return reply

    def answers(self):
        """Of each answer so far: the status, the instructions, and the most bytes of stack that were ever used."""
        console = self.board.console()
        if "fault" in console:
            raise Gone(console.splitlines()[-1])
        return [
            (int(status), int(ticks) * INSTRUCTIONS_A_TICK, int(stack))
            for status, ticks, stack in ANSWERED.findall(console)
        ]

    def instructions(self):
        """What the last answer took."""
        return self.answers()[-1][1]

    def repeat(self, exchanges):
        """Sends what was sent to a device before, of the same image and entropy: every answer has to be the same."""
        for number, (message, opens_round, reply, m1) in enumerate(exchanges):
            assert self.exchange(message, opens_round) == reply, f"answer {number} of the second run"
            assert self.m1 == m1, f"another challenge behind answer {number} of the second run"
