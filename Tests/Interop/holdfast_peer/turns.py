"""Turns of processes at something that only one of them may make at a time, such as a build or a download."""

import contextlib
import fcntl


@contextlib.contextmanager
def turn(path):
    """Waits until no other process holds the lock of the file at `path`, and holds it."""
    with open(path, "rb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
