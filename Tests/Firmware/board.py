"""A board that runs the test image, and questions to it over its way in."""

import pathlib
import socket
import struct
import subprocess
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
RUN = ROOT / "firmware-sim" / "run"
FIRMWARE = ROOT / "firmware-sim" / ".build" / "board-test.elf"
# The test image with each of the two curves that the device can be built with.
CURVES = {"own": FIRMWARE, "BearSSL": FIRMWARE.with_name("board-test-bearssl.elf")}

SHA1, SHA256, SHA512, HMAC_SHA1, HMAC_SHA256, HMAC_SHA512, HKDF, SEAL, OPEN, UNWRAP = range(10)
PUBLIC_POINT, AGREE, VERIFY, AGREE_BY_KEY, RANDOM, FIELD = range(10, 16)
WORD, BYTES, PROGRAM, ERASE = range(32, 36)
MILLISECONDS, STACK, ENTROPY, ENTROPY_AGAIN, LAYOUTS, FAULT, NOTHING = range(48, 55)

INSTRUCTIONS_A_TICK = 40
SECONDS = 60


class Gone(Exception):
    """The board does not answer."""


def number(value):
    return struct.pack(">I", value)


class Board:
    """A board over the flash image in a folder, a blank one where there is none."""

    firmware = FIRMWARE

    def __init__(self, folder, *options, firmware=None):
        self.folder = pathlib.Path(folder)
        self.image, self.console_file = self.folder / "image", self.folder / "console"
        self.image.touch()
        self.console_file.write_bytes(b"")
        path = self.folder / "socket"
        self.process = subprocess.Popen(
            [
                RUN,
                "--image",
                self.image,
                "--socket",
                path,
                "--firmware",
                firmware or self.firmware,
                "--console",
                self.console_file,
                *options,
            ],
            stdin=subprocess.DEVNULL,
        )
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(SECONDS)
        self.wait_for(lambda: self.socket.connect_ex(str(path)) == 0, "the socket")
        self.ticks = 0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.cut_power()

    def cut_power(self):
        self.process.kill()
        self.process.wait(SECONDS)
        self.socket.close()

    def wait_for(self, condition, what, seconds=SECONDS):
        deadline = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > deadline or self.process.poll() is not None:
                raise Gone(f"no {what}")
            time.sleep(0.01)

    def console(self):
        return self.console_file.read_text()

    def send(self, operation, *fields, shift=0):
        padded = (bytes(shift), *fields)
        payload = b"".join(struct.pack(">H", len(field)) + field for field in padded)
        self.socket.sendall(struct.pack(">BH", operation, len(payload)) + payload)

    def receive(self, count):
        received = b""
        while len(received) < count:
            try:
                piece = self.socket.recv(count - len(received))
            except TimeoutError as error:
                raise Gone("no answer") from error
            if not piece:
                raise Gone("the board is gone")
            received += piece
        return received

    def ask(self, operation, *fields, shift=0):
        """The result, or None for what failed."""
        self.send(operation, *fields, shift=shift)
        is_success, self.ticks, count = struct.unpack(">BIH", self.receive(7))
        result = self.receive(count)
        return result if is_success else None

    def instructions(self, operation, *fields):
        self.ask(operation, *fields)
        return self.ticks * INSTRUCTIONS_A_TICK
