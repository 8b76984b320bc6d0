"""A prover at the serial line of a device, which sees no connection begin or end."""

import re
import time

from . import bulletins, pages, session, transport

EMPTY_FRAME = b"\x00\x00"
MALFORMED = session.message_3(session.STATUS["malformed"], None)
# How long the device has for the answer to an empty frame before it is asked once more, in seconds.
ANSWER_SECONDS = 3
MOST_QUESTIONS = 20


class LineConnection(transport.StreamConnection):
    """From the answer to an empty frame on. Repetitions are dropped.

    A malformed message ends no line: what comes then is a challenge for whoever is next, and this connection is over.
    """

    def __init__(self, handle, device_id, timeout=20.0, heard=None):
        """`heard` is called with each message, and whether this end sent it."""
        super().__init__(handle, timeout)
        self.device_id, self.last, self.is_over = device_id, None, False
        self.heard = heard or (lambda *_: None)
        self.waiting = b""
        self._begin()

    def _begin(self):
        """Drops what was meant for others: everything up to an empty frame that has a challenge of the device behind it."""
        answer = re.compile(re.escape(EMPTY_FRAME) + rb"..\x87\x01\x01\x50" + re.escape(self.device_id), re.DOTALL)
        heard, answers, timeout = b"", [], self.handle.gettimeout()
        for asked in range(1, MOST_QUESTIONS + 1):
            self.handle.sendall(EMPTY_FRAME)
            deadline = time.monotonic() + ANSWER_SECONDS
            # A slow device that was asked again may answer each time, and begins anew with the last answer.
            while len(answers) < asked and (left := deadline - time.monotonic()) > 0:
                self.handle.settimeout(left)
                try:
                    part = self.handle.recv(4096)
                except TimeoutError:
                    break
                if not part:
                    raise transport.Closed
                heard += part
                answers = list(answer.finditer(heard))
            if answers:
                self.waiting = heard[answers[-1].start() + len(EMPTY_FRAME) :]
                self.handle.settimeout(timeout)
                return
        raise transport.Closed

    def _exactly(self, count, timeout):
        data, self.waiting = self.waiting[:count], self.waiting[count:]
        return data + super()._exactly(count - len(data), timeout)

    def send(self, message):
        self.heard(message, True)
        super().send(message)

    def receive(self, timeout=None):
        message = super().receive(timeout)
        # Answers to mail are not repeated, but may be the same.
        while message == self.last and message[1] not in (bulletins.RESULT, pages.PAGE):
            message = super().receive(timeout)
        self.last = message
        self.heard(message, False)
        if self.is_over:
            session.parse_message_1(message)
            raise transport.Closed
        self.is_over = message == MALFORMED
        return message
