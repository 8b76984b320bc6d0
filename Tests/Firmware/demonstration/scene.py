"""A lock on a board, the bridge before it, its owner's files, and provers, all in one folder."""

import json
import pathlib
import subprocess
import time

from hardware import Hardware
from holdfast_peer import session, transport
from holdfast_peer.checks import Failed, expect
from holdfast_peer.command_line import CommandLine, read_descriptor, stop
from holdfast_peer.issuer import Issuer, fresh_claims
from holdfast_peer.keys import jwk
from holdfast_peer.prover import Prover

# What the bridge says while another prover has the place, or it has no line.
NOT_YET = [session.message_3(session.STATUS[name], None) for name in ("busy", "internal")]
SECONDS = 20
INSTRUCTIONS_A_TICK = 40


class Ending:
    """How a command ended, and the object that it printed."""

    def __init__(self, done):
        self.exit = f"exit {done.returncode}"
        self.value = json.loads(done.stdout) if done.stdout.startswith(b"{") else {}
        # Where there is no verdict, the exit status says what came instead.
        self.status = self.value.get("status", self.exit)
        self.result = self.value.get("result", "")


class Scene:
    """Use it in a `with` statement: at its end board and bridge are gone."""

    def __init__(self, holdfast, folder):
        self.folder = pathlib.Path(folder)
        self.command_line = CommandLine(holdfast, folder)
        self.image, self.front, self.bridge_log = self.path("lock.img"), str(self.path("front")), self.path("bridge.log")
        # Instructions are counted: that tells a token that is remembered from one that is opened.
        self.board = Hardware(folder, self.image, "--count")
        self.bridge = self.descriptor = None
        # Issuers beside the service, in Python, so that what they issue can be attacked; the owner trusts them too.
        self.issuer, self.newer_issuer = Issuer(), Issuer()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.board.cut_power()
        if self.bridge is not None:
            stop(self.bridge)

    def path(self, name):
        return self.folder / name

    def write(self, name, text):
        self.path(name).write_text(text)
        return self.path(name)

    # The owner

    def own(self, *arguments):
        """One of the owner's verbs on the flash image, while the board has no power; the object that it prints."""
        return self.command_line.read_json("device", *arguments, "--firmware", self.image)

    def provision(self):
        """A service, and a flash that trusts it."""
        run = self.command_line
        run.succeed("service", "init", "--dir", self.path("service"))
        self.path("service.json").write_bytes(run.succeed("service", "show", "--dir", self.path("service"), "--json"))
        trusted = [self.path("service.json")]
        for name, issuer in (("issuer.jwk", self.issuer), ("newer.jwk", self.newer_issuer)):
            trusted.append(self.write(name, json.dumps(jwk(issuer.key.point))))
        shown = self.own("init", *(word for file in trusted for word in ("--trust", file)))
        self.write("lock.json", json.dumps(shown))
        self.descriptor = read_descriptor(shown)

    def enroll(self, state, *options, device=None):
        descriptor = device or self.path("lock.json")
        self.command_line.succeed("service", "device", "add", "--dir", self.path("service"), descriptor)
        self.command_line.succeed("enroll", "--device", descriptor, "--service", self.path("service"),
                                  "--state", self.path(state), *options)

    # The hardware

    def power_on(self):
        """Returns what the board says first. The bridge, where there is one, has the line again."""
        said = self.board.power_on()
        if self.bridge is not None:
            self.connect().connection.close()
        return said

    def start_bridge(self):
        # The kernel ends it when its parent is gone, however that ends.
        self.bridge = subprocess.Popen(
            ["setpriv", "--pdeathsig", "KILL", self.command_line.path, "device", "bridge", "--listen", f"unix:{self.front}", "--to",
             f"unix-stream:{self.board.line}"], env=self.command_line.environment, stdin=subprocess.DEVNULL,
            stderr=self.bridge_log.open("wb"))
        self.wait_for(lambda: "listening" in self.bridge_log.read_text(), "the bridge does not listen")

    def stop_bridge(self):
        """Its exit status."""
        bridge, self.bridge = self.bridge, None
        return stop(bridge)

    def instructions(self):
        """How many the board's last answer took."""
        return int(self.board.said()[-1].partition("ticks ")[2].split(",")[0]) * INSTRUCTIONS_A_TICK

    @staticmethod
    def wait_for(condition, message):
        deadline = time.monotonic() + SECONDS
        while not condition():
            expect(time.monotonic() < deadline, message)
            time.sleep(0.01)

    # Provers

    def run(self, *arguments, program=None, environment=None):
        """A command of a prover's or a user's; how it ended."""
        done = subprocess.run([program or self.command_line.path, *map(str, arguments), "--json"], cwd=self.folder, timeout=60,
                              env={**self.command_line.environment, **(environment or {})}, stdin=subprocess.DEVNULL,
                              capture_output=True, check=False)
        return Ending(done)

    def prove_arguments(self, command, *options, state="phone", at=None):
        return ("prove", "--connect", at or f"unix:{self.front}", "--state", self.path(state), "--command", command, *options)

    def prove(self, command="unlock", *options, state="phone", at=None, **how):
        """The place at the bridge may not be free yet for a moment after another prover has left."""
        return self.patiently(lambda: self.run(*self.prove_arguments(command, *options, state=state, at=at), **how))

    def patiently(self, run):
        """Runs it again while the bridge says that another prover has the place."""
        deadline = time.monotonic() + SECONDS
        while (ending := run()).status == "busy" and time.monotonic() < deadline:
            time.sleep(0.02)
        return ending

    def connect(self):
        """The independent prover, through the bridge, with a challenge at hand."""
        deadline = time.monotonic() + SECONDS
        while time.monotonic() < deadline:
            prover = Prover(transport.connect(self.front, timeout=SECONDS), self.descriptor)
            first = prover.connection.receive()
            if first not in NOT_YET:
                session.parse_message_1(first)
                prover.m1 = first
                return prover
            prover.connection.close()
            time.sleep(0.02)
        raise Failed("the bridge has no place or no line")

    def grant(self, issuer=None, point=None, **claims):
        """A token of an issuer that the lock trusts, unless told otherwise, and what its holder has to prove."""
        claims = fresh_claims(self.descriptor.device_id, **claims)
        return (issuer or self.issuer).grant(point or self.descriptor.point, claims, session.COSE)
