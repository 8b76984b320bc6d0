"""A board with a flash of its own, in QEMU. Power comes and goes; the flash stays."""

import pathlib
import subprocess
import time

import images
from holdfast_peer.checks import Failed

RUN = images.FOLDER / "run"
SECONDS = 60


class Hardware:
    """Runs the device on a flash image; its way in is the Unix socket `line`. Use it in a `with` statement."""

    def __init__(self, folder, image, *options):
        self.image, self.line, self.console = image, pathlib.Path(folder) / "line", pathlib.Path(folder) / "console"
        self.options = options
        self.process = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.cut_power()

    def power_on(self, *options):
        """Returns what the board says first: which start it is, or why it denies everything."""
        # QEMU adds to the file.
        self.console.write_bytes(b"")
        # The kernel kills QEMU when its parent is gone, however that ends.
        self.process = self.start(
            [
                "setpriv",
                "--pdeathsig",
                "KILL",
                RUN,
                "--image",
                self.image,
                "--socket",
                self.line,
                "--console",
                self.console,
                *self.options,
                *options,
            ],
        )
        deadline = time.monotonic() + SECONDS
        while not (said := self.said()):
            if time.monotonic() > deadline or self.process.poll() is not None:
                raise Failed(f"the board did not start: {self.console.read_text()!r}")
            time.sleep(0.01)
        return said[0]

    def start(self, words):
        return subprocess.Popen(words, stdin=subprocess.DEVNULL)

    def cut_power(self):
        """At once: nothing is told, nothing is written any more."""
        if self.process is not None:
            self.process.kill()
            self.process.wait(SECONDS)
            self.process = None

    def said(self):
        """The device's whole lines on its console since it has power."""
        lines = self.console.read_text().splitlines(keepends=True)
        return [
            line.removeprefix("holdfast: ").rstrip()
            for line in lines
            if line.startswith("holdfast: ") and line.endswith("\n")
        ]
