"""A service manager for one process, in place of systemd: it passes sockets and hears what it is told."""

import os
import socket
import subprocess
import sys

# Moves descriptors to 3, 4, … and becomes the program, as sd_listen_fds(3) describes.
START = """
import fcntl, os, sys
high = [fcntl.fcntl(int(number), fcntl.F_DUPFD, 100) for number in sys.argv[1].split(",") if number]
for place, number in enumerate(high, 3):
    os.dup2(number, place)
for number in high:
    os.close(number)
os.environ.setdefault("LISTEN_PID", str(os.getpid()))
os.environ.setdefault("LISTEN_FDS", str(len(high)))
os.execv(sys.argv[2], sys.argv[2:])
"""


class Manager:
    def __init__(self, folder, abstract=False):
        self.told = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        name = os.urandom(6).hex()
        self.name = f"@holdfast-{name}" if abstract else f"{folder}/{name}"
        self.told.bind(self.name.replace("@", "\0", 1) if abstract else self.name)
        self.told.settimeout(30)

    def start(self, command, sockets=(), **variables):
        """Starts a program with sockets that are passed. `variables` replace those of the protocol."""
        numbers = [handle.fileno() for handle in sockets]
        return subprocess.Popen(
            [sys.executable, "-c", START, ",".join(map(str, numbers)), *map(str, command)],
            env={**os.environ, "NOTIFY_SOCKET": self.name, **variables},
            pass_fds=numbers,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    def start_into_journal(self, command, is_journal):
        """Starts a program whose standard error is the stream that `JOURNAL_STREAM` names, or another one."""
        reading, writing = os.pipe()
        status = os.fstat(writing)
        inode = status.st_ino if is_journal else status.st_ino + 1
        process = subprocess.Popen(
            [*map(str, command)],
            env={**os.environ, "NOTIFY_SOCKET": self.name, "JOURNAL_STREAM": f"{status.st_dev}:{inode}"},
            stdin=subprocess.DEVNULL,
            stderr=writing,
        )
        os.close(writing)
        process.stderr = os.fdopen(reading, "rb")
        return process

    def hear(self):
        """The next state that the program tells."""
        return self.told.recv(4096).decode()

    def has_heard_nothing(self):
        self.told.settimeout(0)
        try:
            return not self.told.recv(4096)
        except BlockingIOError:
            return True
        finally:
            self.told.settimeout(30)

    def close(self):
        self.told.close()
