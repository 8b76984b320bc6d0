"""A device that acts by a script, to see how a prover takes it. It serves each connection in a thread."""

import threading

from . import session, transport
from .refusal import Refused

MOST_ROUNDS = 20


class Peer:
    """The device's end of one connection."""

    def __init__(self, model, connection, record):
        self.model, self.connection, self.record = model, connection, record

    def send(self, message):
        self.connection.send(message)

    def receive(self):
        """The next message, recorded."""
        message = self.connection.receive()
        self.record.append(message)
        return message

    def second(self, **m1_changes):
        """Sends M1 and reads the M2 that answers it; its token is remembered. None for a reference that is not known."""
        m1 = self.model.message_1(**m1_changes)
        self.send(m1)
        second = self.model.second(m1, self.receive())
        if second is not None:
            if not second.proves_device:
                raise Refused("WrongProof")
            second.request()
            self.model.remember(second)
        return second

    def honest(self):
        """A round in which every part of M2 has to be right; the M2, or None after tokenUnknown."""
        second = self.second()
        if second is None:
            self.send(session.message_3(session.STATUS["tokenUnknown"], None))
            return None
        if not second.proves_integrity:
            raise Refused("WrongProof")
        self.send(second.reply(0, b"unlocked", clock=0))
        return second


class ScriptedDevice:
    """Listens at `path` and runs `script(peer)` for each connection. With None nobody listens. `timeout` is the limit of each wait, in seconds.

    `received` are the messages that came; `fault` is the first error of the script, None where the peer only left.
    """

    def __init__(self, model, path, script, timeout=20.0):
        self.model, self.path, self.script, self.timeout = model, path, script, timeout
        self.received, self.connections, self.fault = [], 0, None
        self.listener, self.threads, self.ending = None, [], threading.Event()

    def __enter__(self):
        if self.script is not None:
            self.listener = transport.Listener(self.path, self.timeout)
            self._start(self._accept)
        return self

    def __exit__(self, *_):
        self.ending.set()
        for thread in self.threads:
            thread.join(60)
        if self.listener is not None:
            self.listener.close()

    def _start(self, body, *arguments):
        thread = threading.Thread(target=body, args=arguments, daemon=True)
        self.threads.append(thread)
        thread.start()

    def _accept(self):
        while not self.ending.is_set():
            try:
                connection = self.listener.accept(0.1)
            except TimeoutError:
                continue
            self.connections += 1
            self._start(self._serve, connection)

    def _serve(self, connection):
        with connection:
            try:
                self.script(Peer(self.model, connection, self.received))
            except (transport.Closed, TimeoutError):
                pass
            except Exception as error:  # shown by the check that ran the script
                self.fault = self.fault or error
