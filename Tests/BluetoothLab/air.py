"""The air between two hosts: joins the prover's host to the controller that the verifier's guest emulates for it.

It passes whole packets: the emulator loses its place when a read ends inside a packet's header. On command of a test it drops, delays, or
goes silent. What goes "to the verifier" has left the prover's host, what goes "to the prover" comes from its controller.
"""

import collections
import heapq
import itertools
import pathlib
import selectors
import socket
import tempfile
import threading
import time

import h4

OTHER = {"verifier": "prover", "prover": "verifier"}


class Air:
    """Listens for both guests' QEMU from the beginning. Use it in a `with` statement."""

    def __init__(self, folder):
        self.folder = tempfile.TemporaryDirectory(dir=folder)
        self.paths = {end: pathlib.Path(self.folder.name) / end for end in OTHER}
        self.listeners = {end: listener(path) for end, path in self.paths.items()}
        self.ends = {}
        self.lock = threading.Lock()
        self.to_drop = collections.Counter()
        self.delay_seconds = collections.Counter()
        self.call_seconds = 0
        self.silent = False
        # Packets of the prover's host whose completion was reported before they were sent on.
        self.completed_early = 0
        # ACL packets that went to each end.
        self.passed = collections.Counter()
        self.order, self.waiting = itertools.count(), []
        self.last_due = collections.Counter()
        self.stop, self.stopped = socket.socketpair()
        self.thread = threading.Thread(target=self.relay, daemon=True)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.stop.close()
        self.thread.join()
        for end in (*self.listeners.values(), *self.ends.values(), self.stopped):
            end.close()
        self.folder.cleanup()

    def drop(self, to, packets=1):
        """The next ACL packets to an end are lost; their sender is told that they were sent."""
        with self.lock:
            self.to_drop[to] = packets

    def delay(self, milliseconds, to=tuple(OTHER)):
        """ACL packets to an end, or to both, come so much later from now on. Hosts and their controllers speak to each other at once."""
        with self.lock:
            for end in [to] if isinstance(to, str) else to:
                self.delay_seconds[end] = milliseconds / 1000

    def call_for(self, seconds):
        """The prover's controller says so much later that a call was in vain, as a real one, which calls until its page timeout."""
        with self.lock:
            self.call_seconds = seconds

    def cut(self):
        """Nothing passes any more, in either direction: to the verifier, the prover has gone without a word."""
        with self.lock:
            self.silent = True

    def relay(self):
        with selectors.DefaultSelector() as selector:
            selector.register(self.stopped, selectors.EVENT_READ)
            for end, opened in self.listeners.items():
                selector.register(opened, selectors.EVENT_READ, end)
            buffers = {end: bytearray() for end in OTHER}
            while True:
                for key, _ in selector.select(self.send_due()):
                    if key.fileobj is self.stopped:
                        return
                    if key.fileobj is self.listeners[key.data]:
                        selector.unregister(key.fileobj)
                        self.ends[key.data], _ = key.fileobj.accept()
                        selector.register(self.ends[key.data], selectors.EVENT_READ, key.data)
                    elif not self.read(key.data, buffers[key.data]):
                        selector.unregister(key.fileobj)

    def read(self, source, buffer):
        """Takes in what an end has sent; false when it has gone."""
        try:
            data = self.ends[source].recv(65536)
        except ConnectionError:
            return False
        buffer += data
        with self.lock:
            for packet in h4.take_packets(buffer):
                self.take(packet, OTHER[source])
        return bool(data)

    def take(self, packet, to):
        if self.silent:
            return
        if packet[0] == h4.ACL and self.to_drop[to] > 0:
            self.to_drop[to] -= 1
            # A real controller goes on although the air has lost a packet.
            if to == "verifier":
                self.queue(h4.completion(packet), "prover")
            return
        self.passed[to] += packet[0] == h4.ACL
        if packet[0] == h4.ACL and to == "verifier" and self.delay_seconds[to]:
            # A real controller has room for the next packet long before the air has carried this one.
            self.queue(h4.completion(packet), "prover")
            self.completed_early += 1
        if to == "prover" and self.completed_early and h4.is_completion(packet):
            self.completed_early -= 1
            return
        self.queue(packet, to)

    def queue(self, packet, to):
        is_on_air, is_vain_call = packet[0] == h4.ACL, h4.is_vain_call(packet)
        # What is delayed less does not overtake what was delayed more.
        way = to, is_on_air, is_vain_call
        delay = self.delay_seconds[to] if is_on_air else self.call_seconds if is_vain_call else 0
        self.last_due[way] = max(self.last_due[way], time.monotonic() + delay)
        heapq.heappush(self.waiting, (self.last_due[way], next(self.order), packet, to))

    def send_due(self):
        """Sends what is due; returns the seconds until more will be, None if nothing waits."""
        while self.waiting:
            due, _, packet, to = self.waiting[0]
            if (left := due - time.monotonic()) > 0:
                return left
            heapq.heappop(self.waiting)
            if not self.silent:
                self.send(packet, to)
        return None

    def send(self, packet, to):
        try:
            self.ends[to].sendall(packet)
        except (ConnectionError, KeyError):
            pass  # That guest has ended, or QEMU has not begun.


def listener(path):
    opened = socket.socket(socket.AF_UNIX)
    opened.bind(str(path))
    opened.listen(1)
    return opened
