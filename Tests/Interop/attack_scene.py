"""A device of this peer, a prover that a service enrolled for it, and `holdfast attack` between them."""

import json
import secrets

from holdfast_peer.command_line import CommandLine, descriptor_json
from holdfast_peer.keys import PrivateKey, point_of_jwk

SOUND, DENIED, UNSOUND, IMPOSTOR, USAGE, UNAVAILABLE = 0, 1, 2, 3, 64, 69
# They take half a minute and four seconds, and have separate tests.
PATIENT = ("--skip", "late-answer", "--skip", "expired-by-reference")


class Scene:
    """A device of this peer, and a prover that a service enrolled for it."""

    def __init__(self, holdfast, folder):
        self.folder, self.command_line = folder, CommandLine(holdfast, folder)
        # With an odd one, a device that does not look whether a point is on the curve gives that away.
        self.key = next(key for key in iter(PrivateKey, None) if key.scalar[-1] & 1)
        self.device_id = secrets.token_bytes(16)
        self.socket, self.state, self.service = (folder / name for name in ("socket", "state", "service"))
        run, descriptor = self.command_line, folder / "device.json"
        descriptor.write_text(json.dumps(descriptor_json(self.key, self.device_id)))
        run.succeed("service", "init", "--dir", self.service)
        run.succeed("service", "device", "add", "--dir", self.service, descriptor)
        self.issuer = point_of_jwk(run.read_json("service", "show", "--dir", self.service)["issuer"])
        run.succeed("enroll", "--device", descriptor, "--service", self.service, "--state", self.state)

    def model(self, kind):
        return kind(self.key, self.device_id, [self.issuer])

    def attack(self, *more, timeout=300, endpoint=None):
        """The finished process, and its report if it has one."""
        endpoint = endpoint or f"unix:{self.socket}"
        done = self.command_line.run("attack", endpoint, "--state", self.state, "--json", *more, timeout=timeout)
        return done, json.loads(done.stdout)


def judged(report, judgement):
    return {each["id"] for each in report["attacks"] if each["judgement"] == judgement}


def expect_sound(done, report):
    found = [(each["id"], each["observed"]) for each in report["attacks"] if each["judgement"] == "unsound"]
    assert (done.returncode, found) == (SOUND, []), done.stderr.decode()
