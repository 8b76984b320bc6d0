#!/usr/bin/env python3
"""This peer as the device against `holdfast enroll` and `holdfast prove`.

usage: device_against_prover.py --holdfast PATH

One line for each check that failed, then the totals. Exit status 1 when a check failed.
"""

import argparse
import json
import pathlib
import secrets
import sys
import tempfile

from holdfast_peer.checks import Checks, expect
from holdfast_peer.command_line import CommandLine, descriptor_json
from holdfast_peer.device import Device
from holdfast_peer.keys import PrivateKey, point_of_jwk
from holdfast_peer.scripted_device import ScriptedDevice
from prover_situations import FORMATS, SITUATIONS


class World:
    """A device of ours, a service, and a fresh enrollment for each situation."""

    def __init__(self, path, folder):
        self.folder = pathlib.Path(folder)
        self.command_line = CommandLine(path, folder)
        self.socket = str(self.folder / "device.socket")
        self.service = self.folder / "service"
        self.descriptor = self.folder / "device.json"
        self.key, self.device_id = PrivateKey(), secrets.token_bytes(16)
        self.issuer_point = self.device = self.state = self.format = None
        self.enrollments = 0

    def prepare(self):
        self.descriptor.write_text(json.dumps(descriptor_json(self.key, self.device_id)))
        self.command_line.succeed("service", "init", "--dir", self.service)
        self.command_line.succeed("service", "device", "add", "--dir", self.service, self.descriptor)
        shown = self.command_line.read_json("service", "show", "--dir", self.service)
        self.issuer_point = point_of_jwk(shown["issuer"])
        self.device = Device(self.key, self.device_id, [self.issuer_point])

    def enroll(self, token_format):
        """A new state folder, in `state`."""
        self.enrollments += 1
        self.state, self.format = self.folder / f"state-{self.enrollments}", token_format
        more = () if token_format == "cose" else ("--format", token_format)
        self.command_line.succeed("enroll", "--device", self.descriptor, "--service", self.service, "--state", self.state, *more)
        return self.state

    def prove(self, script=None, *, command="unlock", more=(), timeout=40):
        """Runs `prove` against a device that acts as `script` says: the finished process, and the device with its record."""
        device = ScriptedDevice(self.device, self.socket, script)
        with device:
            done = self.command_line.run("prove", "--connect", f"unix:{self.socket}", "--state", self.state,
                                         "--command", command, *more, timeout=timeout)
        expect(device.fault is None, f"the prover's message was refused: {device.fault!r}")
        return done, device

    def snapshot(self):
        """Every file of the state folder with its content and mode, but for the number of the prover's own last request."""
        return {str(p.relative_to(self.state)): (p.stat().st_mode, p.read_bytes() if p.is_file() else None)
                for p in sorted(self.state.rglob("*")) if p.name != "request_number"}


def run_situation(world, body, token_format):
    world.enroll(token_format)
    body(world)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--holdfast", required=True, help="the command line under test")
    parser.add_argument("--only", help="run only the situations whose name has this text")
    options = parser.parse_args()
    checks = Checks()
    with tempfile.TemporaryDirectory(prefix="hf") as folder:
        world = World(options.holdfast, folder)
        checks.run("the service is made and shows its issuer key", world.prepare)
        if not checks.failed:
            for name, body, formats in SITUATIONS:
                if options.only and options.only not in name:
                    continue
                for token_format in formats:
                    suffix = f" ({token_format.upper()})" if formats == FORMATS else ""
                    checks.run(name + suffix, run_situation, world, body, token_format)
    return checks.finish()


if __name__ == "__main__":
    sys.exit(main())
