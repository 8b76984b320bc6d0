"""The scene on Linux: `holdfast device serve` in a separate process, at a Unix socket."""

import contextlib
import json
import shutil

from holdfast_peer import session, transport
from holdfast_peer.checks import Failed
from holdfast_peer.prover import Prover

from .scene import SECONDS, Scene
from .stuck_random import StuckRandom


class LinuxScene(Scene):
    noun = "device"

    def __init__(self, holdfast, folder, processes):
        super().__init__(holdfast, folder, processes)
        self.socket = self.path("device.sock")
        self.address = f"unix:{self.socket}"
        self.owner_arguments = ("--dir", self.path("device"))

    def provision(self):
        """Makes the device, which trusts the issuers, and serves it."""
        self.describe(self.make_device("device"))
        for issuer in ("service.json", "issuer.jwk", "newer.jwk"):
            self.own("trust", self.path(issuer))
        self.serve("device")

    def make_device(self, name):
        """Makes a device, and returns its descriptor as JSON."""
        self.succeed("device", "init", "--dir", self.path(name))
        return self.succeed("device", "show", "--dir", self.path(name)).value

    def serve(self, name, **options):
        """Starts a device, waits until it listens, and returns the process and its address."""
        address, log = f"unix:{self.path(name)}.sock", self.path(f"{name}.log")
        with log.open("wb") as file:
            process = self.processes.start(
                [self.command_line.path, "device", "serve", "--dir", self.path(name), "--listen", address],
                cwd=self.folder,
                env=self.command_line.environment,
                stderr=file,
                **options,
            )
        try:
            transport.connect_when_ready(f"{self.path(name)}.sock", SECONDS).close()
        except OSError as fault:
            raise Failed(f"the device did not start: {log.read_text()[-300:]}") from fault
        return process, address

    def connect(self):
        return Prover(transport.connect(str(self.socket), timeout=SECONDS), self.descriptor)

    @contextlib.contextmanager
    def device_without_policy(self):
        """The address of another device, which allows nothing, and the state folder of a prover that is enrolled with it."""
        descriptor = self.other_device()
        self.succeed("device", "trust", "--dir", self.path("other"), self.path("service.json"))
        self.enroll("visitor", descriptor=descriptor)
        self.path("other/policy.json").unlink()
        process, address = self.serve("other")
        yield address, "visitor"
        self.processes.end(process)

    def other_device(self):
        """Makes the other device unless it is there, and returns the path of its descriptor."""
        if not self.path("other").exists():
            self.write("other.json", json.dumps(self.make_device("other")))
        return self.path("other.json")

    def start_with_stuck_random(self):
        """Returns the challenges of two starts of a device, and of the first start of a copy, all with the same random numbers."""
        self.make_device("booted")
        shutil.copytree(self.path("booted"), self.path("copied-device"))
        return [self._first_challenge(name) for name in ("booted", "booted", "copied-device")]

    def _first_challenge(self, name):
        with StuckRandom() as random:
            process, _ = self.serve(name, prepare=random.install)
            with transport.connect(f"{self.path(name)}.sock", timeout=SECONDS) as connection:
                challenge = session.parse_message_1(connection.receive())["challenge"]
            self.processes.end(process)
        return challenge

    def latency(self, rounds):
        """Returns the percentiles of whole proofs and of their parts, in microseconds."""
        ending = self.run(
            "bench", "latency", "--connect", self.address, "--state", self.path("prover"), "--rounds", rounds
        )
        if not ending.value:
            raise Failed(f"holdfast bench latency: {ending.exit}: {ending.errors[-300:]}")
        return ending.value["microseconds"]
