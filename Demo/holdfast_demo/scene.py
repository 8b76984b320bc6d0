"""A service, a device and provers, in one folder: what the situations are brought about with, at either target."""

import contextlib
import json
import pathlib
import types

from holdfast_peer import session
from holdfast_peer.checks import Failed
from holdfast_peer.command_line import CommandLine, read_descriptor
from holdfast_peer.issuer import Issuer, fresh_claims
from holdfast_peer.keys import jwk

from .users import Person

SECONDS = 120
NAMES = {number: name for name, number in session.STATUS.items()}


class Ending:
    """The end of a command, and the object that it printed."""

    def __init__(self, done):
        self.exit = "killed" if done.returncode < 0 else f"exit {done.returncode}"
        self.output = done.stdout.decode(errors="replace")
        self.errors = done.stderr.decode(errors="replace")
        self.value = json.loads(self.output) if self.output.startswith("{") else {}
        # Where there is no verdict, the exit status says what came instead.
        self.status = self.value.get("status", self.exit)
        self.result = self.value.get("result", "")

    @property
    def answer(self):
        """The status, and what the device did if it did something."""
        return f"{self.status}, {self.result}" if self.result else self.status


class Scene:
    """The part that both targets share. `noun` is the word for the device, and `address` where provers find it."""

    noun = address = None
    # What the owner's verbs are told of the device.
    owner_arguments = ()

    def __init__(self, holdfast, folder, processes):
        self.folder, self.processes = pathlib.Path(folder), processes
        self.command_line = CommandLine(holdfast, folder)
        self.descriptor = None
        # The owner trusts these in addition to the service. Their tokens, unlike the service's, can be attacked: they are
        # made in Python, which shares no code with the device.
        self.issuer, self.newer_issuer = Issuer(), Issuer()
        self.alice, self.bob = Person("alice", self), Person("bob", self)
        # What a situation leaves for later ones.
        self.kept = types.SimpleNamespace()

    def path(self, name):
        return self.folder / name

    def write(self, name, text):
        self.path(name).write_text(text)
        return self.path(name)

    # Commands

    def run(self, *arguments, program=None, environment=None):
        """Runs a verb with --json, and returns its end."""
        words = [program or self.command_line.path, *arguments, "--json"]
        return Ending(
            self.processes.run(words, cwd=self.folder, env={**self.command_line.environment, **(environment or {})})
        )

    def succeed(self, *arguments, **how):
        """Runs a verb that must succeed, and returns its end."""
        ending = self.run(*arguments, **how)
        if ending.exit != "exit 0":
            raise Failed(f"holdfast {arguments[0]} {arguments[1]}: {ending.exit}: {ending.errors[-300:]}")
        return ending

    def own(self, *arguments):
        """Runs one of the owner's verbs at the device, and returns the object that it prints."""
        return self.succeed("device", *arguments, *self.owner_arguments).value

    # The service

    def make_service(self):
        """Makes the service, and returns the warnings of this build."""
        made = self.succeed("service", "init", "--dir", self.path("service"))
        self.write("service.json", self.succeed("service", "show", "--dir", self.path("service")).output)
        self.write("issuer.jwk", json.dumps(jwk(self.issuer.key.point)))
        self.write("newer.jwk", json.dumps(jwk(self.newer_issuer.key.point)))
        return [line for line in made.errors.splitlines() if line.startswith("holdfast: warning: ")]

    def describe(self, shown):
        """Keeps the descriptor of the scene's device."""
        self.write("device.json", json.dumps(shown))
        self.descriptor = read_descriptor(shown)

    def register(self, descriptor):
        self.succeed("service", "device", "add", "--dir", self.path("service"), descriptor)

    def enroll(self, state, *options, descriptor=None):
        descriptor = descriptor or self.path("device.json")
        self.register(descriptor)
        self.succeed(
            "enroll", "--device", descriptor, "--service", self.path("service"), "--state", self.path(state), *options
        )

    # Provers

    def prove_arguments(self, command, *options, state="prover", at=None):
        return ("prove", "--connect", at or self.address, "--state", self.path(state), "--command", command, *options)

    def prove(self, command="unlock", *options, state="prover", at=None, **how):
        """Runs `holdfast prove`, and returns its end."""
        return self.ask(*self.prove_arguments(command, *options, state=state, at=at), **how)

    def ask(self, *arguments, **how):
        """Runs a verb that asks the device."""
        return self.run(*arguments, **how)

    def connect(self):
        """Returns the independent prover, with a connection to the device."""
        raise NotImplementedError

    @contextlib.contextmanager
    def connected(self):
        """The independent prover, for as long as the block takes."""
        with (prover := self.connect()).connection:
            yield prover

    def grant(self, issuer=None, point=None, **claims):
        """Makes a token of an issuer that the device trusts, unless told otherwise, and what its holder has to prove."""
        claims = fresh_claims(self.descriptor.device_id, **claims)
        return (issuer or self.issuer).grant(point or self.descriptor.point, claims, session.COSE)

    def status(self, grant, **changes):
        """Presents a token on a connection of its own, with right proofs unless told otherwise, and returns the status."""
        with self.connected() as prover:
            return NAMES[prover.ask(grant, **changes).status]


def name_in(verdict):
    """Returns the status in M3 by name; what is sealed in it does not matter."""
    return NAMES[session.parse_message_3(verdict)["status"]]
