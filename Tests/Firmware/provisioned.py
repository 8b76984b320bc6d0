"""Devices in images of flash, and boards that run them."""

import contextlib
import json
import pathlib
import re
import socket
import struct
import tempfile

from board import FIRMWARE, SECONDS, Board
from holdfast_peer import session
from holdfast_peer.command_line import CommandLine, read_descriptor
from holdfast_peer.issuer import Issuer, fresh_claims
from holdfast_peer.keys import jwk
from holdfast_peer.prover import Prover
from line import DENIED, Line

FLASH, PAGE, FUSE = 128 * 1024, 4096, 0x100000
PROVISION, FIRST_SLOT, SECOND_SLOT = 0, 4 * PAGE, 18 * PAGE
NAMES = session.NAMES
# With a rule for each kind of code.
USERS_POLICY = {
    "version": 1,
    "commands": {
        "unlock": {"factors": ["integrity", "device"]},
        "status": {"factors": ["device"]},
        "configure": {"factors": ["integrity", "device", "otp"]},
        "open-safe": {"factors": ["integrity", "device", "seal"]},
        "lock": {"factors": ["integrity", "device", "otp", "seal"]},
        "host-code": {"factors": ["device"]},
        "user-sync": {"factors": ["device"]},
    },
}


class Owner:
    """Who provisions devices; their issuer too."""

    def __init__(self, holdfast, folder):
        self.folder = pathlib.Path(folder)
        self.command_line = CommandLine(holdfast, folder)
        self.issuer = Issuer()
        (self.folder / "issuer.jwk").write_text(json.dumps(jwk(self.issuer.key.point)))

    def provision(self, name, *options):
        """The image of a new device that trusts the issuer, and its descriptor."""
        image = self.folder / name
        self.command_line.succeed("device", "init", "--firmware", image, "--trust", "issuer.jwk", *options)
        return image, read_descriptor(self.command_line.read_json("device", "show", "--firmware", image))

    @contextlib.contextmanager
    def image(self, data):
        """A file with this flash, for the owner's commands."""
        with tempfile.NamedTemporaryFile(dir=self.folder) as file:
            file.write(data)
            file.flush()
            yield file.name

    def grant(self, descriptor, encoding=session.COSE, **claims):
        """A token with a fresh baseline."""
        return self.issuer.grant(descriptor.point, fresh_claims(descriptor.device_id, **claims), encoding)


class Lock(Board):
    """A board that runs the firmware, over the flash in `data`."""

    firmware = FIRMWARE.parent / "firmware.elf"

    def __init__(self, folder, data, descriptor, *options):
        self.descriptor = descriptor
        image = pathlib.Path(folder) / "image"
        image.write_bytes(data)
        image.chmod(0o600)
        super().__init__(folder, *options)
        self.line, self.honest = Line(self.socket), 0

    def reconnect(self):
        """Leaves, and comes again as another."""
        path = str(self.folder / "socket")
        self.socket.close()
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(SECONDS)
        # Until the board has seen that the one before left, there may be no room.
        self.wait_for(lambda: self.socket.connect_ex(path) == 0, "room for another peer")
        self.line = Line(self.socket)

    def prover(self):
        """A prover that begins anew."""
        prover = Prover(self.line, self.descriptor)
        message = self.line.begin(self.descriptor)
        assert message != DENIED, "the device denies everything"
        prover.m1 = message
        return prover

    def flash(self):
        with open(self.image, "rb") as image:
            return image.read(FLASH)

    def statuses(self):
        """What was answered since its start, so far."""
        return [NAMES[int(number)] for number in re.findall(r"status ([0-9]+),", self.console())]

    def expect_well(self):
        """No fault was reported, and it still runs."""
        assert "fault" not in self.console(), f"the console says {self.console()[-300:]!r}"
        assert self.process.poll() is None, "the board's exit status"


@contextlib.contextmanager
def running(data, descriptor, *options):
    """A lock for as long as it is looked at."""
    with tempfile.TemporaryDirectory(prefix="hf") as folder, Lock(folder, data, descriptor, *options) as lock:
        yield lock


def fused(data, word_count):
    """A flash whose power fails after that many words."""
    return data.ljust(FUSE, b"\xff") + struct.pack("<I", word_count)
