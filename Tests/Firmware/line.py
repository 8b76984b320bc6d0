"""A board's way in, as a prover sees it: messages in frames, and a way to begin anew."""

import contextlib
import re
import time

from holdfast_peer import session
from holdfast_peer.transport import Closed, StreamConnection

EMPTY = b"\x00\x00"
DENIED = session.message_3(session.STATUS["internal"], None)
# From its first byte on a message has 10 s, and a byte after the one before a second.
SILENCE_SECONDS = 1
QUIET_SECONDS = 0.1
# The board counts time itself, but the host may be late: a flood of 64 KiB takes some seconds to arrive, and several times that while
# other work keeps the processors busy.
PATIENCE_SECONDS = 60


def frame(message):
    return len(message).to_bytes(2, "big") + message


class Line(StreamConnection):
    """A connected socket of bytes; of what the device repeats, only the first is seen."""

    def __init__(self, handle, timeout=PATIENCE_SECONDS):
        super().__init__(handle, timeout)
        self.timeout, self.last = timeout, None

    def raw(self, data):
        """Sends bytes as they are; what comes meanwhile is dropped, since a device that cannot speak does not listen either."""
        rest = memoryview(data)
        deadline = time.monotonic() + self.timeout
        self.handle.setblocking(False)
        try:
            while rest:
                with contextlib.suppress(BlockingIOError):
                    rest = rest[self.handle.send(rest) :]
                with contextlib.suppress(BlockingIOError):
                    self.handle.recv(65536)
                if time.monotonic() > deadline:
                    raise TimeoutError("the device takes nothing")
        finally:
            self.handle.settimeout(self.timeout)

    def receive(self, timeout=None):
        message = super().receive(timeout)
        if message == self.last:
            return self.receive(timeout)
        self.last = message
        return message

    def begin(self, descriptor):
        """The device's answer to an empty frame, M1 or its refusal of everything, whatever lay on the line before."""
        expected = b"\x00\x00(..)(\x87\x01\x01\x50" + re.escape(descriptor.device_id) + b"|" + re.escape(DENIED) + b")"
        seen, sent, deadline = b"", 0, time.monotonic() + self.timeout
        while time.monotonic() < deadline:
            self.handle.sendall(EMPTY)
            sent += 1
            # Half a message on the line swallows an empty frame, until a second of silence has ended it.
            until = time.monotonic() + 2 * SILENCE_SECONDS
            while time.monotonic() < until:
                seen += self._piece(QUIET_SECONDS)
                answers = list(re.finditer(expected, seen, re.DOTALL))
                if not answers or len(seen) - answers[-1].start(2) != int.from_bytes(answers[-1][1], "big"):
                    continue
                # A slow device may still have to answer an empty frame, and would begin anew after the next message.
                if len(answers) < sent and (piece := self._piece(SILENCE_SECONDS)):
                    seen += piece
                    continue
                self.last = seen[answers[-1].start(2) :]
                return self.last
        raise TimeoutError("no answer to an empty frame")

    def _piece(self, seconds):
        self.handle.settimeout(seconds)
        try:
            piece = self.handle.recv(65536)
        except TimeoutError:
            return b""
        finally:
            self.handle.settimeout(self.timeout)
        if not piece:
            raise Closed
        return piece
