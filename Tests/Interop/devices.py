"""Devices under test, which the owner's verbs made and which provers of this peer connect to: on Linux, and behind a bridge."""

import contextlib
import json
import os
import pathlib
import pty
import signal
import socket
import threading
import time
import tty

from holdfast_peer import session, transport
from holdfast_peer.command_line import CommandLine, read_descriptor, stop
from holdfast_peer.issuer import Issuer, fresh_claims
from holdfast_peer.keys import jwk
from holdfast_peer.prover import Prover

BUSY = session.message_3(session.STATUS["busy"], None)
# What a bridge answers while another prover has its place, or while it has no line.
NOT_YET = (BUSY, session.message_3(session.STATUS["internal"], None))


@contextlib.contextmanager
def served(device):
    """A device that is made and started, and closed at the end."""
    try:
        device.prepare()
        device.start()
        yield device
    finally:
        device.close()


class LinuxDevice:
    """A device that `device serve` serves at a socket, and that trusts some issuers of ours."""

    # By how many days an `iat` may be ahead of the device's time and still be one of an unlikely future.
    days_ahead = (2, 399, 401, 4000)

    def __init__(self, holdfast, folder, *init_arguments):
        self.folder, self.init_arguments = pathlib.Path(folder), init_arguments
        self.command_line = CommandLine(holdfast, folder)
        self.socket = str(self.folder / "device.socket")
        self.device_folder = self.folder / "device"
        # What the owner's verbs are told of the device.
        self.device_arguments = ("--dir", self.device_folder)
        self.issuer, self.stranger = Issuer(), Issuer()
        # Generation floors are kept by issuer: those of these two are raised, one for each encoding.
        self.raised = {session.COSE: Issuer(), session.JOSE: Issuer()}
        self.process = self.descriptor = None

    def prepare(self):
        """Makes the device and tells it whom to trust."""
        run = self.command_line
        run.succeed("device", "init", *self.device_arguments, *self.init_arguments)
        self.descriptor = read_descriptor(run.read_json("device", "show", *self.device_arguments))
        for number, issuer in enumerate((self.issuer, *self.raised.values())):
            file = self.folder / f"issuer-{number}.jwk"
            file.write_text(json.dumps(jwk(issuer.key.point)))
            run.succeed("device", "trust", *self.device_arguments, file)

    def owner(self, *arguments):
        """Runs one of the owner's verbs on the device."""
        return self.command_line.run("device", *arguments, *self.device_arguments)

    def service(self, name="service"):
        """A service that the device trusts and that knows the device: its folder, and the device's descriptor."""
        run, service, descriptor = self.command_line, self.folder / name, self.folder / "device.json"
        descriptor.write_bytes(self.owner("show", "--json").stdout)
        run.succeed("service", "init", "--dir", service)
        run.succeed("service", "device", "add", "--dir", service, descriptor)
        issuer = self.folder / f"{name}.jwk"
        issuer.write_text(json.dumps(run.read_json("service", "show", "--dir", service)["issuer"]))
        assert self.owner("trust", issuer).returncode == 0, "the device does not trust the service"
        return service, descriptor

    def now(self):
        """The device's time."""
        return int(time.time())

    def serve(self, *endpoints):
        self.process = self.command_line.start(
            "device",
            "serve",
            "--dir",
            self.device_folder,
            *(word for endpoint in endpoints for word in ("--listen", endpoint)),
        )

    def start(self):
        pathlib.Path(self.socket).unlink(missing_ok=True)
        self.serve(f"unix:{self.socket}")
        transport.connect_when_ready(self.socket).close()

    def restart(self):
        """SIGKILL, and a new start."""
        self.process.kill()
        self.process.wait(60)
        self.start()

    def stop(self):
        """Ends the device by SIGTERM; its exit status."""
        return stop(self.process)

    def close(self):
        """Ends everything that was started."""
        if self.process is not None:
            stop(self.process)

    @property
    def endpoint(self):
        """What a program is told to connect to, now."""
        return f"unix:{self.socket}"

    def connect(self):
        return Prover(transport.connect(self.socket), self.descriptor)

    def grant(self, encoding, issuer=None, **claims):
        """A grant with a fresh baseline."""
        claims = fresh_claims(self.descriptor.device_id, **claims)
        return (issuer or self.issuer).grant(self.descriptor.point, claims, encoding)


class BridgedDevice(LinuxDevice):
    """A device at a line, a Unix socket of bytes, and a bridge before it, to which provers connect.

    The line has one prover: a prover that connects here ends the connection of the one before.
    """

    def __init__(self, holdfast, folder, *init_arguments):
        super().__init__(holdfast, folder, *init_arguments)
        self.line, self.stream = (str(self.folder / name) for name in ("line", "stream"))
        self.bridge, self.bridge_log, self.last = None, self.folder / "bridge.log", None

    def start(self):
        self.start_device()
        self.start_bridge()

    def start_device(self):
        ready = str(self.folder / "ready")
        self.serve(f"unix-stream:{self.line}", f"unix:{ready}")
        transport.connect_when_ready(ready).close()

    def start_bridge(self, *arguments):
        """Starts the bridge, unless told otherwise from packets and bytes to the line."""
        usual = (
            *("--listen", f"unix:{self.socket}"),
            *("--listen", f"unix-stream:{self.stream}"),
            *("--to", f"unix-stream:{self.line}"),
        )
        with self.bridge_log.open("wb") as log:
            self.bridge = self.command_line.start("device", "bridge", *(arguments or usual), stderr=log)
        wait_for(lambda: b"listening" in self.bridge_log.read_bytes(), "the bridge does not listen")

    def restart(self):
        self.process.kill()
        self.process.wait(60)
        self.start_device()

    def close(self):
        if self.bridge is not None:
            stop(self.bridge)
        super().close()

    @property
    def endpoint(self):
        """The bridge, once it has a place for a program."""
        self.connect()
        self._hang_up()
        return f"unix:{self.socket}"

    def connect(self, reach=None):
        """A prover that the bridge has a place for: the one before may have left a moment ago."""
        self._hang_up()
        for _ in range(200):
            prover = Prover((reach or (lambda: transport.connect(self.socket)))(), self.descriptor)
            prover.m1 = prover.connection.receive()
            if prover.m1 not in NOT_YET:
                session.parse_message_1(prover.m1)
                self.last = prover.connection
                return prover
            prover.connection.close()
            time.sleep(0.02)
        raise AssertionError("the bridge stays busy")

    def _hang_up(self):
        if self.last is not None:
            self.last.close()
        self.last = None

    def packets(self):
        return self.connect()

    def frames(self):
        return self.connect(lambda: transport.connect_stream(self.stream))


class Terminal:
    """A pseudo-terminal whose far end is joined to a socket of bytes."""

    def __init__(self, path):
        self.far, self.near = pty.openpty()
        tty.setraw(self.near)
        self.name = os.ttyname(self.near)
        self.handle = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.handle.connect(path)
        for source, target in (
            (lambda: os.read(self.far, 4096), self.handle.sendall),
            (lambda: self.handle.recv(4096), lambda data: os.write(self.far, data)),
        ):
            threading.Thread(target=self._copy, args=(source, target), daemon=True).start()

    def __enter__(self):
        return self

    @staticmethod
    def _copy(source, target):
        try:
            while data := source():
                target(data)
        except OSError:
            pass

    def __exit__(self, *_):
        self.handle.shutdown(socket.SHUT_RDWR)
        for end in (self.near, self.far):
            os.close(end)


class Line:
    """A serial line: two pseudo-terminals, whose far ends are joined. A device has one end of it, and a program the other."""

    def __init__(self):
        self.ends, self.names = [], []
        for _ in range(2):
            far, near = pty.openpty()
            tty.setraw(near)
            self.ends.append((far, near))
            self.names.append(os.ttyname(near))
        for (source, _), (target, _) in (self.ends, self.ends[::-1]):
            threading.Thread(target=self._copy, args=(source, target), daemon=True).start()

    @staticmethod
    def _copy(source, target):
        with contextlib.suppress(OSError):
            while data := os.read(source, 4096):
                while data:
                    data = data[os.write(target, data) :]

    def close(self):
        for end in (end for ends in self.ends for end in ends):
            os.close(end)


def expect_status(outcome, name, what="status"):
    assert session.NAMES[outcome.status] == name, what


def suspend(process):
    """Stops a child. None of its threads runs any more on return; the signal alone stops them one after the other."""
    process.send_signal(signal.SIGSTOP)
    os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)


def wait_for(condition, message, seconds=60):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, message
        time.sleep(0.02)
