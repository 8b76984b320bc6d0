"""Hosts that run a script each, step by step: one alone, or two with kernels of their own and the air between them."""

import base64
import contextlib
import json
import threading
import typing

from air import Air
from holdfast_peer.checks import Failed
from lab import write_reports

# The verifier's guest has the radio: what the prover's host says goes to the emulator through a port. The prover's host takes its port for
# the serial line of an adapter.
PORTS = {"verifier": "virtserialport", "prover": "virtconsole"}


class Said(typing.NamedTuple):
    """How a command ended, and all that it said."""

    status: int
    text: str

    @property
    def json(self):
        return next(json.loads(line) for line in self.text.splitlines() if line.startswith("{"))


class Host:
    """A guest and what its script has reported so far. Whatever waits ends with the guest, which has a deadline. Use it in a `with` statement."""

    def __init__(self, guest):
        self.guest = guest
        self.seen, self.ended = {}, False
        # Of a script that follows: how many commands are done, and what a person would have seen of them.
        self.done, self.transcript = 0, []
        self.changed = threading.Condition()
        self.thread = threading.Thread(target=self.listen, daemon=True)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.guest.__exit__()
        self.thread.join()
        if self.transcript:
            self.seen = {"": self.transcript}
        write_reports(self.guest.console, self.seen)

    def listen(self):
        for name, value in self.guest.reports():
            with self.changed:
                self.seen.setdefault(name, []).append(value)
                self.changed.notify_all()
        with self.changed:
            self.ended = True
            self.changed.notify_all()

    def tell(self, line):
        """Says a line to the script, which reads it by `hear`."""
        self.guest.tell(line)

    def wait(self, name, count=1):
        """Waits until the script has reported NAME so often, and returns the last value of these."""
        with self.changed:
            self.changed.wait_for(lambda: len(self.seen.get(name, ())) >= count or self.ended or "failed" in self.seen)
            if len(self.seen.get(name, ())) < count:
                raise Failed(f"no {name} of {self.guest.console.name}: {self.seen.get('failed', 'it has ended')}")
            return self.seen[name][count - 1]

    def run(self, command):
        """Lets a script that has come to `follow` do a command of the shell; returns how that went."""
        self.transcript.append(f"$ {command}")
        self.tell(command)
        self.done += 1
        return self.said("did", self.done)

    def do(self, command):
        """The same for what has to succeed; returns what it said."""
        status, text = self.run(command)
        if status != 0:
            raise Failed(f"exit status {status} of {command}: {text}")
        return text

    def begin(self, name, command):
        """The same in the background; `said(name)` waits for its end. A name is used once."""
        self.do(f"meanwhile {name} {command}")

    def said(self, name, count=1):
        status, _, text = self.wait(name, count).partition(" ")
        said = Said(int(status), base64.b64decode(text).decode(errors="replace"))
        self.transcript += [*said.text.splitlines(), f"{name} {status}"]
        return said

    def end(self):
        """Waits until the script has ended well, and returns all that it reported, name → values."""
        with self.changed:
            self.changed.wait_for(lambda: self.ended)
        if self.guest.ended != 0 or "failed" in self.seen:
            raise Failed(f"exit status {self.guest.ended} of {self.guest.console.name}: {self.seen.get('failed')}")
        return self.seen


class TwoHosts:
    """`verifier` and `prover`, which run STORY_verifier.sh and STORY_prover.sh, and the `air`. Use it in a `with` statement.

    The consoles are named after the story, or as `log` says. The verifier's host may have more of QEMU's options.
    """

    def __init__(self, lab, story, *arguments, log=None, verifier_options=()):
        self.lab, self.story, self.arguments, self.log = lab, story, arguments, log or story
        self.options = {"verifier": verifier_options}
        self.stack = contextlib.ExitStack()

    def __enter__(self):
        with contextlib.ExitStack() as stack:
            self.air = stack.enter_context(Air(self.lab.folder))
            self.verifier, self.prover = (stack.enter_context(self.boot(role)) for role in PORTS)
            # An adapter whose radio is not there yet would be given up.
            self.verifier.wait("air")
            self.prover.tell("air")
            self.stack = stack.pop_all()
        return self

    def __exit__(self, *error):
        return self.stack.__exit__(*error)

    def boot(self, role):
        port = (
            "-chardev",
            f"socket,id=air,path={self.air.paths[role]}",
            "-device",
            "virtio-serial-pci",
            "-device",
            f"{PORTS[role]},chardev=air",
        )
        options = (*port, *self.options.get(role, ()))
        return self.lab.one_host(f"{self.story}_{role}.sh", *self.arguments, options=options, log=f"{self.log}_{role}")
