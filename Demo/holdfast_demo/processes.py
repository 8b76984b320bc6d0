"""Processes that end with the demonstration, whatever ends it."""

import contextlib
import ctypes
import os
import shutil
import signal
import subprocess

# At the end a server may wait for those that are ended after it, and its exit status does not matter.
TIMEOUT_SECONDS, GRACE_SECONDS, LAST_GRACE_SECONDS = 60, 20, 2
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
SET_DEATH_SIGNAL = 1
TRACE_ME, CONTINUE = 0, 7
libc = ctypes.CDLL(None, use_errno=True)
libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]


class Interrupted(KeyboardInterrupt):
    """A signal asked the demonstration to end."""

    def __init__(self, number):
        super().__init__()
        self.number = number


class Processes:
    """The child processes that were started and have not ended. The kernel kills them if this process is killed."""

    def __init__(self):
        self.running = []
        self._deferrals, self._waiting = 0, None

    def take_signals(self):
        """From here on, SIGINT, SIGTERM and SIGHUP raise `Interrupted`, as soon as they are not deferred."""
        for number in SIGNALS:
            signal.signal(number, self._take)

    def _take(self, number, _):
        if self._deferrals:
            self._waiting = number
        else:
            raise Interrupted(number)

    @contextlib.contextmanager
    def deferring(self):
        """Signals wait until the block has ended, so that nothing that it made is forgotten."""
        self._deferrals += 1
        try:
            yield
        finally:
            self._deferrals -= 1
        if self._waiting and not self._deferrals:
            number, self._waiting = self._waiting, None
            raise Interrupted(number)

    def start(self, words, prepare=None, **options):
        """Starts a program, without input unless told otherwise. `prepare` runs in the new process before the program does."""

        def in_child():
            libc.prctl(SET_DEATH_SIGNAL, signal.SIGKILL)
            if prepare is not None:
                prepare()

        with self.deferring():
            process = subprocess.Popen(
                [str(word) for word in words],
                preexec_fn=in_child,  # noqa: PLW1509 (other threads only wait for sockets)
                **{"stdin": subprocess.DEVNULL, **options},
            )
            self.running.append(process)
        return process

    def run(self, words, **options):
        """Runs a program to its end, and returns it completed, with its output."""
        process = self.start(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options)
        output, errors = process.communicate(timeout=TIMEOUT_SECONDS)
        self.running.remove(process)
        return subprocess.CompletedProcess(words, process.returncode, output, errors)

    def run_traced(self, words, output, **options):
        """Runs a program to its end with this process as its debugger from the first instruction on.

        Its standard output goes to the file `output`, and is read from there: the debugger has to wait for the program.
        """
        with output.open("wb") as file:
            process = self.start(
                words,
                prepare=lambda: libc.ptrace(TRACE_ME, 0, None, None),
                stdout=file,
                stderr=subprocess.DEVNULL,
                **options,
            )
        try:
            while os.WIFSTOPPED(status := os.waitpid(process.pid, 0)[1]):
                number = os.WSTOPSIG(status)
                libc.ptrace(CONTINUE, process.pid, None, 0 if number == signal.SIGTRAP else number)
        except BaseException:
            # Its other signals would wait for the debugger.
            self.kill(process)
            raise
        process.returncode = os.waitstatus_to_exitcode(status)
        self.running.remove(process)
        return subprocess.CompletedProcess(words, process.returncode, output.read_bytes(), b"")

    def end(self, process, seconds=GRACE_SECONDS):
        """Ends a process by SIGTERM, or by SIGKILL if that does not help in time; returns its exit status."""
        process.terminate()
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        self.running.remove(process)
        return process.returncode

    def kill(self, process):
        process.kill()
        process.wait()
        self.running.remove(process)

    def end_all(self, folder):
        """Ends every process, and removes the folder that they wrote to. From here on, signals are ignored."""
        for number in SIGNALS:
            signal.signal(number, signal.SIG_IGN)
        # The last one first: it may need the others.
        for process in list(reversed(self.running)):
            self.end(process, LAST_GRACE_SECONDS)
        for _ in range(10):
            if folder is None or not os.path.exists(folder):
                return
            shutil.rmtree(folder, ignore_errors=True)
