"""Somebody with a probe at the board's serial line itself, past the bridge."""

import contextlib
import secrets
import time

from holdfast_peer import session, transport
from holdfast_peer.checks import expect

from .verdicts import name_in

EMPTY = b""
GARBAGE = 50
SECONDS, SILENCE_SECONDS = 20, 0.2


class Line:
    """Frames from and to the board (docs/protocol.md, "A device behind a serial line")."""

    def __init__(self, board):
        self.connection = transport.connect_stream(str(board.line), timeout=SECONDS)
        self.last_challenge = None
        self.fall_silent()
        self.connection.send(EMPTY)
        self.frame_but(lambda frame: frame != EMPTY, "the empty frame is not answered")

    def fall_silent(self):
        """Whoever comes in the middle of a frame could not tell where the next one begins."""
        handle = self.connection.handle
        handle.settimeout(SILENCE_SECONDS)
        deadline = time.monotonic() + SECONDS
        with contextlib.suppress(TimeoutError):
            while handle.recv(session.LARGEST_MESSAGE):
                expect(time.monotonic() < deadline, "the line does not fall silent")
        handle.settimeout(SECONDS)

    def frame_but(self, is_dropped, message):
        """The first frame that is not to be dropped."""
        deadline = time.monotonic() + SECONDS
        while is_dropped(frame := self.connection.receive()):
            expect(time.monotonic() < deadline, message)
        return frame

    def challenge(self):
        """The next one; repetitions are dropped."""
        self.last_challenge = self.frame_but(lambda frame: frame == self.last_challenge, "no challenge is new")
        session.parse_message_1(self.last_challenge)
        return self.last_challenge

    def write(self, data):
        self.connection.handle.sendall(data)


def attack(scene, story):
    line = Line(scene.board)
    line.challenge()
    with line.connection:
        story.expect(f"{GARBAGE} frames of garbage", "malformed", ", ".join(sorted({garbage(line) for _ in range(GARBAGE)})))
        for text, data in [
            ("a frame that is too long, and 64 KiB of it", b"\xff\xff" + bytes(65536)),
            ("a frame that is cut short", (300).to_bytes(2, "big") + secrets.token_bytes(299)),
            ("half a length", b"\x01"),
        ]:
            line.write(data)
            story.expect(text, "dropped", "dropped" if line.challenge() else "")
    ending = scene.prove(at=f"unix-stream:{scene.board.line}")
    story.expect("unlock, by a prover at the line itself", "accepted", ending.status)


def garbage(line):
    line.connection.send(secrets.token_bytes(1 + secrets.randbelow(session.LARGEST_MESSAGE)))
    verdict = name_in(line.connection.receive())
    line.challenge()
    return verdict
