"""A kernel whose random source is stuck: each getrandom(2) of a process leaves the buffer as it was, and reports success.

A seccomp filter hands the call to this process, which answers it. Unlike a debugger, this also works for a process that has
made itself undumpable. Source: seccomp(2), seccomp_unotify(2).
"""

import ctypes
import fcntl
import os
import platform
import select
import socket
import struct
import threading

from holdfast_peer.checks import Failed

from .processes import libc

# Numbers of system calls (seccomp, getrandom, mmap) by machine.
CALLS = {"x86_64": (317, 318, 9), "aarch64": (277, 278, 222)}
NO_NEW_PRIVILEGES, SET_FILTER, NEW_LISTENER = 38, 1, 8
LOAD, JUMP_IF_EQUAL, AND, RETURN = 0x20, 0x15, 0x54, 0x06
ALLOW, ASK, FAIL = 0x7FFF0000, 0x7FC00000, 0x00050000
OUT_OF_MEMORY = 12
# Places in struct seccomp_data: the call's number, and the low half of the fourth argument (on a little-endian machine).
NUMBER, FOURTH_ARGUMENT = 0, 16 + 3 * 8
# Newer C libraries make random bytes themselves, in memory mapped like this; where they cannot have it, they ask the kernel.
KIND_OF_MAPPING, DROPPABLE = 0x0F, 0x08
RECEIVE, SEND = 0xC0502100, 0xC0182101
NOTIFICATION = struct.Struct("=QIIiIQ6Q")
ANSWER = struct.Struct("=Qqii")
SECONDS = 0.1


class StuckRandom:
    """Give `install` to a process as its preparation, and use this object in a `with` statement while the process runs."""

    def __init__(self):
        if platform.machine() not in CALLS:
            raise Failed(f"no random source can be made to stick on {platform.machine()}")
        self.call, self.random, self.map = CALLS[platform.machine()]
        self.here, self.there = socket.socketpair()
        self.is_over = threading.Event()
        self.thread = threading.Thread(target=self._serve, daemon=True)

    def install(self):
        """Puts the filter in place in the calling process, and hands its listener over."""
        steps = [
            (LOAD, 0, 0, NUMBER),
            (JUMP_IF_EQUAL, 5, 0, self.random),
            (JUMP_IF_EQUAL, 0, 3, self.map),
            (LOAD, 0, 0, FOURTH_ARGUMENT),
            (AND, 0, 0, KIND_OF_MAPPING),
            (JUMP_IF_EQUAL, 2, 0, DROPPABLE),
            (RETURN, 0, 0, ALLOW),
            (RETURN, 0, 0, ASK),
            (RETURN, 0, 0, FAIL | OUT_OF_MEMORY),
        ]
        code = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *step) for step in steps))
        program = ctypes.create_string_buffer(struct.pack("@HP", len(steps), ctypes.addressof(code)))
        libc.prctl(NO_NEW_PRIVILEGES, 1, 0, 0, 0)
        listener = libc.syscall(
            ctypes.c_long(self.call), ctypes.c_ulong(SET_FILTER), ctypes.c_ulong(NEW_LISTENER), program
        )
        if listener < 0:
            raise OSError(ctypes.get_errno(), "seccomp")
        socket.send_fds(self.there, [b"\x00"], [listener])

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.is_over.set()
        self.there.close()
        self.thread.join()
        self.here.close()

    def _serve(self):
        self.here.settimeout(SECONDS)
        while not self.is_over.is_set():
            try:
                listeners = socket.recv_fds(self.here, 1, 1)[1]
            except TimeoutError:
                continue
            for listener in listeners:
                self._answer(listener)
                os.close(listener)
            return

    def _answer(self, listener):
        poll = select.poll()
        poll.register(listener, select.POLLIN)
        while not self.is_over.is_set():
            for _, event in poll.poll(SECONDS * 1000):
                if not event & select.POLLIN:
                    return
                notification = bytearray(NOTIFICATION.size)
                try:
                    fcntl.ioctl(listener, RECEIVE, notification)
                    identifier, *_, count = NOTIFICATION.unpack(notification)[:8]
                    fcntl.ioctl(listener, SEND, bytearray(ANSWER.pack(identifier, count, 0, 0)))
                except OSError:
                    # The process has ended meanwhile, or a signal of its own has ended the call.
                    continue
