"""Devices that slow peers, or several guessers at once, get the better of, for the adversary to find."""

import contextlib
import os
import socket
import threading
import time

from holdfast_peer import transport
from holdfast_peer.line import EMPTY_FRAME
from unsound_devices import Forgiving, Served, SoundDevice

# The lockout lasts for all attacks of a test, also on a busy machine.
MOST_FAILURES, LOCKOUT_SECONDS = 5, 300


class HeldByDrips(SoundDevice):
    """A peer keeps the only place for as long as it sends something, if only single bytes."""

    serves_one = True

    def next_message(self, connection, status):
        while True:
            message = connection.receive(timeout=10)
            if len(message) > 1:
                return message


class LineOfFrames(transport.StreamConnection):
    """The device's end of a connection with frames as on a line."""

    # The time for a whole message, and for each byte of it.
    message_seconds, byte_seconds = 10, 1

    def receive(self, timeout=None):
        while True:
            length = self._exactly(1, timeout)
            end = time.monotonic() + self.message_seconds
            length += self._exactly(1, self.byte_seconds)
            if length != EMPTY_FRAME:
                return self._whole(int.from_bytes(length, "big"), end)
            self.handle.sendall(EMPTY_FRAME)
            self.send(self.challenge)

    def send(self, message):
        if message[:2] == b"\x87\x01":
            self.challenge = message
        super().send(message)

    def _whole(self, count, end):
        data = b""
        while len(data) < count:
            data += self._exactly(1, self.byte_seconds)
            if time.monotonic() > end:
                raise transport.Closed
        return data


class EndlessMessages(LineOfFrames):
    """The same, but a message may take as long as it likes."""

    message_seconds, byte_seconds = 1000, 20


class ServedAsStream(Served):
    """A device that serves each connection in a thread, at a socket that carries a stream."""

    def __init__(self, model, path, kind):
        super().__init__(model, path)
        self.kind = kind

    def __enter__(self):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.path)
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        listener.bind(self.path)
        listener.listen(16)
        self.listener = self
        self.handle = listener
        self.acceptor = threading.Thread(target=self._accept, daemon=True)
        self.acceptor.start()
        return self

    def accept(self, seconds):
        self.handle.settimeout(seconds)
        return self.kind(self.handle.accept()[0], 35)

    def close(self):
        self.handle.close()


class Locking(Forgiving):
    """A device with a user, who is locked out after five failures."""

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.failures, self.until = {}, {}

    def guesser(self, second):
        """The one whose failures count together."""
        return "alice"

    def decide(self, second, request):
        if request["command"] != "configure" or "otp" not in request:
            return super().decide(second, request)
        if request["otp"][0] != "alice":
            return "otpRejected", b"", {}
        guesser = self.guesser(second)
        if self.until.get(guesser, 0) > time.monotonic():
            return "lockedOut", b"", {}
        self.pause()
        name, result, more = super().decide(second, request)
        if name == "otpRejected":
            self.failures[guesser] = self.failures.get(guesser, 0) + 1
            if self.failures[guesser] >= MOST_FAILURES:
                self.until[guesser] = time.monotonic() + LOCKOUT_SECONDS
        return name, result, more

    def pause(self):
        """Between the look at the lockout and the count of a failure."""


class EndingLockout(Locking):
    """The user is locked out from the start, until after the tenth guess."""

    LOCKED_GUESSES = 10

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.failures["alice"] = MOST_FAILURES
        self.left = self.LOCKED_GUESSES

    def decide(self, second, request):
        if request["command"] == "configure" and "otp" in request and self.left > 0:
            self.left -= 1
            return "lockedOut", b"", {"retry_after": 1}
        return super().decide(second, request)


class EndedLockout(EndingLockout):
    """A device whose user is locked out until before the tenth guess."""

    LOCKED_GUESSES = 9


class LockingEachSixth(Locking):
    """Only each sixth guess is refused as during a lockout."""

    guesses = 0

    def decide(self, second, request):
        if request["command"] != "configure" or "otp" not in request:
            return super().decide(second, request)
        self.guesses += 1
        return ("lockedOut", b"", {}) if self.guesses % 6 == 0 else Forgiving.decide(self, second, request)


class NeedingASeal(Locking):
    """The command needs a seal, too."""

    def decide(self, second, request):
        if request["command"] == "configure" and "otp" in request:
            return "factorMissing", b"", {"missing": 8}
        return super().decide(second, request)


class LockingEachConnection(Locking):
    """The failures of each connection are counted apart."""

    def guesser(self, second):
        return threading.current_thread().name


class LockingEachToken(Locking):
    """The failures with each token are counted apart."""

    def guesser(self, second):
        return second.claims["tokenId"]


class LateToCount(Locking):
    """A failure is counted only after others have passed."""

    def pause(self):
        self.lock.release()
        time.sleep(2)
        self.lock.acquire()


# By device, the attack that must find it.
LOCKOUT_FLAWS = {
    LockingEachConnection: "parallel-guesses",
    LateToCount: "parallel-guesses",
    LockingEachToken: "lockout-by-token",
    LockingEachSixth: "lockout",
}
