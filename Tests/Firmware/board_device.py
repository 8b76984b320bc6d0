"""The device under test as the firmware on a board in QEMU, which provers reach by its serial line."""

import contextlib
import pathlib
import socket
import subprocess
import time

from board import ROOT, RUN
from devices import LinuxDevice
from holdfast_peer import session
from holdfast_peer.line import LineConnection
from holdfast_peer.prover import Prover
from transcript import Transcript

FIRMWARE = ROOT / "firmware-sim" / ".build" / "firmware.elf"
SECONDS = 120


class BoardDevice(LinuxDevice):
    """A device with an image in the folder's place and a line in the socket's.

    The line has one prover: a prover that connects ends the connection before. The owner works on the image while the power
    is off; it is switched on again for the next prover.
    """

    # The board has no clock: what it knows of the time is in tokens.
    days_ahead = (401, 4000)

    def __init__(self, holdfast, folder, *init_arguments):
        super().__init__(holdfast, folder, *init_arguments)
        self.image, self.console = self.folder / "flash.img", self.folder / "console"
        self.device_arguments = ("--firmware", self.image)
        self.connection, self.time = None, 0
        self.transcript = Transcript(self.folder)

    @contextlib.contextmanager
    def prepared(self):
        """The device from its making to its end, without a fault on its console."""
        try:
            self.prepare()
            yield self
            assert "fault" not in self.console.read_text(), "the console reports a fault"
        finally:
            self.close()

    def owner(self, *arguments):
        self.cut_power()
        self.transcript.end()
        return super().owner(*arguments)

    def now(self):
        return self.time

    @property
    def endpoint(self):
        """The line, free for a program."""
        self.leave_line()
        return f"unix-stream:{self.socket}"

    def leave_line(self):
        """Has the power on, and no prover of this peer at the line."""
        self.start()
        self._hang_up()
        self.transcript.end()

    def start(self):
        if self.process is not None:
            return
        pathlib.Path(self.socket).unlink(missing_ok=True)
        self.transcript.switch_on(self.image)
        with self.console.open("ab") as console:
            self.process = subprocess.Popen(
                [
                    RUN,
                    "--image",
                    self.image,
                    "--socket",
                    self.socket,
                    "--firmware",
                    FIRMWARE,
                    "--console",
                    self.console,
                ],
                stdin=subprocess.DEVNULL,
                stderr=console,
            )
        # It answers: what follows does not wait for a board that is on its way.
        self.connect()

    def connect(self):
        self.start()
        self._hang_up()
        self.connection = LineConnection(self._reach(), self.descriptor.device_id, heard=self.transcript.hear)
        prover = Prover(self.connection, self.descriptor)
        self.time = session.parse_message_1(prover.next_m1())["clock"]
        return prover

    def _reach(self):
        """A connection to the line, once the emulator listens."""
        deadline = time.monotonic() + SECONDS
        while True:
            handle = socket.socket(socket.AF_UNIX)
            handle.settimeout(SECONDS)
            if handle.connect_ex(self.socket) == 0:
                return handle
            handle.close()
            if time.monotonic() > deadline or self.process.poll() is not None:
                raise AssertionError(f"no board: {self.console.read_text()[-300:]}")
            time.sleep(0.01)

    def _hang_up(self):
        if self.connection is not None:
            self.connection.close()
        self.connection = None

    def cut_power(self):
        self._hang_up()
        if self.process is not None:
            self.process.kill()
            self.process.wait(SECONDS)
        self.process = None

    def restart(self):
        self.cut_power()
        self.start()

    close = cut_power
