"""What is timed: programs that repeat a work on request and programs that are started anew each time; and where they come from."""

import os
import pathlib
import resource
import shutil
import subprocess
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
BUILD = ROOT / ".build/benchmark"
# pip installs these in a virtual environment below .build, with what they depend on.
PYTHON_PEERS = ["pyotp==2.12.1", "joserfc==1.8.0", "jwcrypto==1.6.1", "pycose==1.1.0", "cbor2==5.6.5"]
PYTHON = "/usr/bin/python3"
C_PEERS = {
    "reference": ["-lcrypto"],
    "tls": ["-lssl", "-lcrypto"],
    "liboath": ["-loath"],
    "libjose": ["-ljose", "-ljansson"],
    "sync": [],
    "empty": [],
}
SECONDS = 600


class Unavailable(Exception):
    """A peer that cannot be had here, and why."""


class Wrong(Exception):
    """A program gave no answer, or a wrong one."""


class Worker:
    """A program that does a work as often as a line says, and answers with the time (worker.h)."""

    def __init__(self, words, by_processor=True, **environment):
        self.words, self.by_processor, self.environment = words, by_processor, os.environ | environment
        self.process, self.count = None, 1

    def start(self, nanoseconds):
        """Starts the program, and finds the number of repetitions that take about that long."""
        self.process = subprocess.Popen(
            list(map(str, self.words)), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=self.environment
        )
        while (whole := self.repeat()) < nanoseconds / 4:
            self.count = min(self.count * 10, int(self.count * nanoseconds / whole) + 1)
        self.count = max(1, int(self.count * nanoseconds / whole))

    def repeat(self):
        self.process.stdin.write(f"{self.count}\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline().split()
        if len(answer) != 2 or not all(word.isdigit() for word in answer):
            raise Wrong(f"{self.words}: {' '.join(answer) or 'no answer'}")
        self.whole, self.processor = map(int, answer)
        return self.whole

    def sample(self):
        """The nanoseconds of one repetition."""
        self.repeat()
        return (self.processor if self.by_processor else self.whole) / self.count

    def close(self):
        if self.process:
            self.process.stdin.close()
            self.process.wait(SECONDS)
            self.process.stdout.close()


class Command:
    """Programs that are run one after the other, each from its start to its exit. `check` judges the output of the last one.

    The time is the processor's, except with `minus`: a part of the time of the clock, by the output, that does not count. With `said`,
    it is the time that the output names.
    """

    def __init__(self, *commands, check=lambda output: True, minus=None, said=None, repetitions=1, **options):
        self.commands, self.check, self.minus, self.said = commands, check, minus, said
        self.repetitions = repetitions
        self.options = options

    def start(self, nanoseconds):
        self.sample()

    def sample(self):
        """The nanoseconds of one run of all."""
        return sum(self.once() for _ in range(self.repetitions)) / self.repetitions

    def once(self):
        start, used = time.perf_counter_ns(), processor_nanoseconds()
        for words in self.commands:
            done = subprocess.run(list(map(str, words)), capture_output=True, **self.options)
            if done.returncode != 0:
                raise Wrong(f"{words}: {done.stderr.decode()[-300:]}")
        whole, processor = time.perf_counter_ns() - start, processor_nanoseconds() - used
        if not self.check(done.stdout):
            raise Wrong(f"{words}: {done.stdout.decode()[-300:]}")
        if self.said:
            return self.said(done.stdout)
        return processor if self.minus is None else whole - self.minus(done.stdout)

    def close(self):
        pass


def processor_nanoseconds():
    """The processor time of the programs that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return int((used.ru_utime + used.ru_stime) * 1e9)


def run(words):
    """Runs a program that must succeed."""
    done = subprocess.run(list(map(str, words)), capture_output=True, text=True, timeout=SECONDS)
    if done.returncode != 0:
        raise Wrong(f"{words[0]}: {done.stderr[-300:]}")


def compiled(name):
    """The peer in C of that name, compiled."""
    program = BUILD / name
    BUILD.mkdir(parents=True, exist_ok=True)
    compiler = shutil.which("cc") or "clang"
    source = HERE / "Peers" / f"{name}.c"
    words = [compiler, "-std=gnu11", "-O2", "-Wall", "-Wextra", "-Wno-unused-function", "-o", program, source]
    done = subprocess.run([*words, *C_PEERS[name]], capture_output=True, text=True, timeout=SECONDS)
    if done.returncode != 0:
        raise Unavailable(f"{name} cannot be compiled: {done.stderr.splitlines()[-1]}")
    return program


def library(name):
    """The library in C of that name, compiled."""
    path = BUILD / f"{name}.so"
    run([shutil.which("cc") or "clang", "-O2", "-shared", "-fPIC", "-o", path, HERE / "Peers" / f"{name}.c"])
    return path


def virtual_environment(folder):
    """Makes a virtual environment, in which Debian's packages are not visible, and returns its Python."""
    run([PYTHON, "-m", "venv", "--clear", folder])
    return folder / "bin/python"


def python_peers():
    """The Python of the virtual environment that has the peers."""
    folder = BUILD / "python"
    python, marker = folder / "bin/python", folder / "installed"
    # The folder of an earlier version has the same packages, but no Python.
    if not python.exists() or not marker.exists() or marker.read_text().split() != PYTHON_PEERS:
        try:
            python = virtual_environment(folder)
        except Wrong as reason:
            raise Unavailable(f"no virtual environment can be made (Debian: python3-venv): {reason}") from None
        words = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *PYTHON_PEERS]
        if subprocess.run(words, capture_output=True).returncode != 0:
            raise Unavailable(f"pip cannot install {', '.join(PYTHON_PEERS)}")
        marker.write_text("\n".join(PYTHON_PEERS))
    return python


def python_peer(library, work, folder):
    """A peer in Python, which no variable of the environment leads to packages elsewhere."""
    return Worker([python_peers(), "-I", HERE / "Peers/python_peer.py", library, work, folder])


def tool(name):
    """The path of a program that a Debian package brings."""
    path = shutil.which(name)
    if path is None:
        raise Unavailable(f"there is no {name}")
    return path


def allow_many_files():
    """As many open files as this user may have: 64 provers are 128 of them."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
