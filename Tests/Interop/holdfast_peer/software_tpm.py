"""A TPM of a test's own (swtpm), and what anybody with its owner's authorization can do to a counter in it."""

import pathlib
import socket
import struct
import subprocess
import time

from .checks import Failed

OWNER = 0x40000001
COUNTER = 0x02040014  # a counter; AUTHWRITE, AUTHREAD, NO_DA
UNDEFINE, DEFINE, INCREMENT, READ = 0x122, 0x12A, 0x134, 0x14E


class SoftwareTPM:
    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.folder.mkdir()
        self.path = str(self.folder / "socket")
        self.process = None

    def start(self):
        pathlib.Path(self.path).unlink(missing_ok=True)
        self.process = subprocess.Popen(
            [
                "swtpm",
                "socket",
                "--tpm2",
                "--tpmstate",
                f"dir={self.folder}",
                "--server",
                f"type=unixio,path={self.path}",
                "--flags",
                "not-need-init,startup-clear",
            ],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        end = time.monotonic() + 60
        while True:
            try:
                with socket.socket(socket.AF_UNIX) as connection:
                    return connection.connect(self.path)
            except OSError:
                if time.monotonic() > end:
                    raise Failed("swtpm did not start") from None
                time.sleep(0.01)

    def stop(self):
        self.process.kill()
        self.process.wait()

    def command(self, code, handles, authorization=b"", parameters=b""):
        """The response code and the parameters of the response."""
        session = struct.pack(">IHBH", 0x40000009, 0, 1, len(authorization)) + authorization
        body = (
            b"".join(struct.pack(">I", handle) for handle in handles)
            + struct.pack(">I", len(session))
            + session
            + parameters
        )
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(60)
            connection.connect(self.path)
            connection.sendall(struct.pack(">HII", 0x8002, 10 + len(body), code) + body)
            answer = connection.recv(4096)
        status = struct.unpack(">I", answer[6:10])[0]
        return status, answer[14:-5] if status == 0 else b""

    def define(self, index, authorization):
        public = struct.pack(">IHIHH", index, 0x000B, COUNTER, 0, 8)
        parameters = struct.pack(">H", len(authorization)) + authorization + struct.pack(">H", len(public)) + public
        return self.command(DEFINE, [OWNER], parameters=parameters)[0]

    def undefine(self, index):
        return self.command(UNDEFINE, [OWNER, index])[0]

    def increment(self, index, authorization):
        return self.command(INCREMENT, [index, index], authorization)[0]

    def read(self, index, authorization):
        status, parameters = self.command(READ, [index, index], authorization, struct.pack(">HH", 8, 0))
        return status, int.from_bytes(parameters[2:], "big")
