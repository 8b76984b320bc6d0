"""Messages over a Unix socket, one a packet or in frames; every operation has a timeout."""

import contextlib
import os
import socket
import time

LARGEST_MESSAGE = 4096
# The time that the other end has unless told otherwise: much on a busy machine, and less than the 30 s that a device waits for an
# answer, so that nobody who is held up by another peer is overlooked.
SECONDS = 25.0


class Closed(Exception):
    """The other end closed the connection."""


class Connection:
    """A connected socket that carries whole messages."""

    def __init__(self, handle, timeout=SECONDS):
        self.handle = handle
        handle.settimeout(timeout)

    def send(self, message):
        try:
            self.handle.sendall(message)
        except (BrokenPipeError, ConnectionError) as error:
            raise Closed from error

    def receive(self, timeout=None):
        """The next message. Raises Closed at the end, TimeoutError (an OSError) when nothing comes."""
        previous = self.handle.gettimeout()
        if timeout is not None:
            self.handle.settimeout(timeout)
        try:
            message = self.handle.recv(LARGEST_MESSAGE + 1)
        except ConnectionError as error:
            raise Closed from error
        finally:
            self.handle.settimeout(previous)
        if not message:
            raise Closed
        return message

    def close(self):
        self.handle.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


class StreamConnection(Connection):
    """A connected socket of bytes: u16 length, then the message. Of empty frames it knows nothing."""

    def send(self, message):
        super().send(len(message).to_bytes(2, "big") + message)

    def receive(self, timeout=None):
        length = int.from_bytes(self._exactly(2, timeout), "big")
        return self._exactly(length, timeout)

    def _exactly(self, count, timeout):
        data = b""
        self.handle.settimeout(timeout or self.handle.gettimeout())
        while len(data) < count:
            try:
                part = self.handle.recv(count - len(data))
            except ConnectionError as error:
                raise Closed from error
            if not part:
                raise Closed
            data += part
        return data


def connect_stream(path, timeout=SECONDS):
    handle = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    handle.settimeout(timeout)
    handle.connect(path)
    return StreamConnection(handle, timeout)


def connect(path, timeout=SECONDS):
    handle = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    try:
        handle.settimeout(timeout)
        handle.connect(path)
    except OSError:
        handle.close()
        raise
    return Connection(handle, timeout)


def connect_when_ready(path, deadline=SECONDS):
    """Connects as soon as somebody listens at `path`."""
    end = time.monotonic() + deadline
    while True:
        try:
            return connect(path)
        except OSError:
            if time.monotonic() > end:
                raise
            time.sleep(0.02)


class Listener:
    """A listening socket at `path`."""

    def __init__(self, path, timeout=SECONDS):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)
        self.path, self.timeout = path, timeout
        self.handle = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.handle.bind(path)
        self.handle.listen(16)
        self.handle.settimeout(timeout)

    def accept(self, timeout=None):
        self.handle.settimeout(self.timeout if timeout is None else timeout)
        return Connection(self.handle.accept()[0], self.timeout)

    def close(self):
        self.handle.close()
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.path)
