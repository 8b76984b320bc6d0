"""A device on one host and its prover on the other. What they have to know of each other is carried over as they need it."""

import base64
import re

from holdfast_peer.checks import Failed, expect_equal

PORTS = {"l2cap": "psm=0x1001", "rfcomm": "channel=5", "le": "psm=0x80"}
LOG = "device.log"
# For a prover: processors are emulated, and other work may keep them busy.
TIMEOUT_SECONDS = 60


def verdict_of(line):
    """The status in a line of the device's log; the whole line where it has none."""
    found = re.search(r" connection \d+: (\w+)", line)
    return found[1] if found else line


def agree(proof, status, *verdicts):
    """Both ends say the same of a round: the prover's exit status, and the verdicts in the device's log."""
    said, logged = proof
    expect_equal(said.status, status, f"exit status of {said.text}")
    expect_equal([verdict_of(line) for line in logged], list(verdicts), "the device's log")


class Meeting:
    """The ends of two hosts whose scripts follow: the device `lock` on the verifier's, the state `phone` on the prover's.

    `tell(role, command)` is called before each command that a person would have typed, `tell(role, said)` with what it said.
    """

    def __init__(self, hosts, tell=lambda role, said: None):
        self.hosts = {"verifier": hosts.verifier, "prover": hosts.prover}
        self.tell = tell
        self.address = hosts.verifier.wait("address").split()[1]
        self.prover_address = hosts.prover.wait("address").split()[1]
        self.endpoints = {transport: f"{transport}:{self.address},{port}" for transport, port in PORTS.items()}
        self.lines_read = 0

    def run(self, role, command):
        self.tell(role, f"$ {command}")
        said = self.hosts[role].run(command)
        self.tell(role, said.text)
        return said

    def do(self, role, command):
        said = self.run(role, command)
        if said.status != 0:
            raise Failed(f"exit status {said.status} of {command}: {said.text}")
        return said

    def carry(self, path, source, target):
        """Brings a file from one host to the other."""
        text = self.hosts[source].do(f"base64 -w 0 {path}")
        self.hosts[target].do(f"echo {text} | base64 -d >{path}")
        self.tell(target, f"({path}, {len(base64.b64decode(text))} bytes, has come from the {source})")

    def meet(self):
        """Takes the device and the service that the lab has made, and enrols the prover."""
        self.do("verifier", "cp -a /met/lock /met/lock.json .")
        self.do("prover", "cp -a /met/service /met/lock.json .")
        self.do("prover", "holdfast enroll --device lock.json --service service --state phone")

    def enroll(self):
        """Makes a device and a service, lets them know each other, and enrols the prover, each as a person would."""
        self.do("verifier", "holdfast device init --dir lock")
        self.do("verifier", "holdfast device show --dir lock --json >lock.json")
        self.carry("lock.json", "verifier", "prover")
        self.do("prover", "holdfast service init --dir service")
        self.do("prover", "holdfast service show --dir service --json >service.json")
        self.carry("service.json", "prover", "verifier")
        self.do("verifier", "holdfast device trust --dir lock service.json")
        self.do("prover", "holdfast service device add --dir service lock.json")
        self.do("prover", "holdfast enroll --device lock.json --service service --state phone")

    def serve(self, *more):
        """Begins to serve at all transports at once, and at more endpoints."""
        listen = " ".join(f"--listen {endpoint}" for endpoint in (*self.endpoints.values(), *more))
        # The device appends: what it said before it was killed stays.
        self.do("verifier", f"holdfast device serve --verbose --dir lock {listen} >>{LOG} 2>&1 & server=$!")
        self.hosts["verifier"].do(f"patiently serving {LOG}")
        self.read_log()

    def proof(self, transport, command, *options, state):
        """The command line of a proof at the endpoint of a transport."""
        place = f"--connect {self.endpoints[transport]} --state {state} --timeout {TIMEOUT_SECONDS}"
        return " ".join(["holdfast prove", place, "--command", command, *options])

    def prove(self, transport, command, *options, state="phone"):
        """One round; returns how that went, and what the device said of it."""
        said = self.run(
            "prover",
            self.proof(transport, command, *options, state=state),
        )
        return said, self.read_log()

    def begin_rounds(self, name, transport, timeout=TIMEOUT_SECONDS):
        """Rounds without end in the background, of which the first has been accepted; `prover.said(name)` waits until they have ended."""
        self.read_log()
        self.hosts["prover"].begin(
            name,
            f"holdfast bench rounds --connect {self.endpoints[transport]} --state phone --rounds 1000000 --timeout {timeout} --json",
        )
        self.hosts["verifier"].do(f"patiently longer {LOG} {self.lines_read}")

    def drop_link(self):
        """Ends the link between the hosts, and waits until both know."""
        self.do("verifier", f"hcitool dc {self.prover_address}")
        for host in self.hosts.values():
            host.do("patiently has_no_link")

    def read_log(self):
        """The lines that the device has logged since the last time."""
        lines = []
        for counted in self.hosts["verifier"].do(f"tail -n +{self.lines_read + 1} {LOG} | uniq -c").splitlines():
            count, _, line = counted.strip().partition(" ")
            self.tell("verifier", line + (f" ({count} times)" if count != "1" else ""))
            lines += [line] * int(count)
        self.lines_read += len(lines)
        return lines
