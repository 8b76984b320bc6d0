"""A board's serial line, and somebody with a probe there, past the bridge."""

import contextlib
import secrets
import time

from holdfast_peer import session, transport
from holdfast_peer.checks import expect

from .scene import SECONDS, name_in
from .story import Situation, situation

EMPTY = b""
GARBAGE = 50
# On a busy machine, a board pauses amid a frame. It is less than the two seconds after which it repeats its challenge.
SILENCE_SECONDS = 1


class Line:
    """Frames from and to the board (docs/protocol.md, "A device behind a serial line")."""

    def __init__(self, board):
        self.connection = transport.connect_stream(str(board.line), timeout=SECONDS)
        self.last_challenge = None
        self._fall_silent()
        self.connection.send(EMPTY)
        self._frame_but(lambda frame: frame != EMPTY, "the empty frame is not answered")

    def _fall_silent(self):
        """Drops what comes: nobody who comes in the middle of a frame can tell where the next one begins."""
        handle = self.connection.handle
        handle.settimeout(SILENCE_SECONDS)
        deadline = time.monotonic() + SECONDS
        with contextlib.suppress(TimeoutError):
            while handle.recv(session.LARGEST_MESSAGE):
                expect(time.monotonic() < deadline, "the line does not fall silent")
        handle.settimeout(SECONDS)

    def _frame_but(self, is_dropped, message):
        """Returns the first frame that is not to be dropped."""
        deadline = time.monotonic() + SECONDS
        while is_dropped(frame := self.connection.receive()):
            expect(time.monotonic() < deadline, message)
        return frame

    def challenge(self):
        """Returns the next challenge; repetitions are dropped."""
        self.last_challenge = self._frame_but(lambda frame: frame == self.last_challenge, "no challenge is new")
        session.parse_message_1(self.last_challenge)
        return self.last_challenge

    def write(self, data):
        self.connection.handle.sendall(data)


@situation(f"{GARBAGE} frames of garbage", "malformed")
def send_garbage(scene):
    line = scene.kept.line = Line(scene.board)
    line.challenge()
    return ", ".join(sorted({_garbage(line) for _ in range(GARBAGE)}))


def _garbage(line):
    line.connection.send(secrets.token_bytes(1 + secrets.randbelow(session.LARGEST_MESSAGE)))
    verdict = name_in(line.connection.receive())
    line.challenge()
    return verdict


def _dropped(text, data):
    def send(scene):
        scene.kept.line.write(data)
        return "dropped" if scene.kept.line.challenge() else ""

    return Situation(text, "dropped", send)


send_long_frame = _dropped("a frame that is too long, and 64 KiB of it", b"\xff\xff" + bytes(65536))
send_cut_frame = _dropped("a frame that is cut short", (300).to_bytes(2, "big") + secrets.token_bytes(299))
send_half_length = _dropped("half a length", b"\x01")


@situation("unlock, by a prover at the line itself", "accepted")
def prove(scene):
    scene.kept.line.connection.close()
    return scene.prove(at=f"unix-stream:{scene.board.line}").status
