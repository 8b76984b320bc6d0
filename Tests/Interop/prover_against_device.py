#!/usr/bin/env python3
"""This peer as issuer and prover against `holdfast device serve`.

usage: prover_against_device.py --holdfast PATH

One line for each check that failed, then the totals. Exit status 1 when a check failed.
"""

import argparse
import enum
import json
import os
import pathlib
import sys
import tempfile
import termios
import time

from holdfast_peer import transport
from holdfast_peer.checks import Checks, expect_equal
from holdfast_peer.command_line import CommandLine, read_descriptor, stop
from holdfast_peer.issuer import Issuer, fresh_claims
from holdfast_peer.keys import jwk
from holdfast_peer.prover import Prover
from device_situations import BOTH, SITUATIONS


class World:
    """A device under test, served on a socket, that trusts some issuers of ours."""

    init_arguments = ()
    # By how many days an `iat` may be ahead of the device's time and still be one of an unlikely future.
    days_ahead = (2, 399, 401, 4000)

    def __init__(self, path, folder):
        self.folder = pathlib.Path(folder)
        self.command_line = CommandLine(path, folder)
        self.socket = str(self.folder / "device.socket")
        self.device_folder = self.folder / "device"
        # What the owner's verbs are told of the device.
        self.device_arguments = ("--dir", self.device_folder)
        self.issuer, self.stranger = Issuer(), Issuer()
        # Generation floors are kept by issuer: those of these two are raised, one for each encoding.
        self.raised = {1: Issuer(), 2: Issuer()}
        self.process = self.descriptor = None

    def prepare(self):
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

    def now(self):
        """The device's time."""
        return int(time.time())

    def start(self):
        pathlib.Path(self.socket).unlink(missing_ok=True)
        self.process = self.command_line.start("device", "serve", "--dir", self.device_folder, "--listen", f"unix:{self.socket}")
        transport.connect_when_ready(self.socket).close()

    def restart(self):
        """SIGKILL, and a new start."""
        self.process.kill()
        self.process.wait(10)
        self.start()

    def stop(self):
        """Ends the device by SIGTERM; its exit status."""
        return stop(self.process)

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


def run_situation(world, body, encoding):
    prover = world.connect()
    try:
        if encoding is None:
            body(world, prover)
        else:
            body(world, prover, encoding)
    finally:
        prover.connection.close()


class Log(enum.Enum):
    """What becomes of the device's log."""

    FULL_PIPE = enum.auto()
    CLOSED_PIPE = enum.auto()
    FULL_TERMINAL = enum.auto()
    STOPPED_TERMINAL = enum.auto()


def serve_without_reader(world, log, garbage_count):
    """Nobody reads the device's log, and strangers fill it: it answers and ends all the same."""
    reader, writer = os.pipe() if log in (Log.FULL_PIPE, Log.CLOSED_PIPE) else os.openpty()
    device = world.command_line.start("device", "serve", "--verbose", "--dir", world.device_folder, "--listen",
                                      f"unix:{world.socket}", stderr=writer)
    try:
        transport.connect_when_ready(world.socket).close()
        if log is Log.CLOSED_PIPE:
            os.close(reader)
            os.close(writer)
        if log is Log.STOPPED_TERMINAL:
            termios.tcflow(writer, termios.TCOOFF)
        for _ in range(garbage_count):
            with transport.connect(world.socket) as connection:
                connection.receive()
                connection.send(b"\x00")
                connection.receive()
        expect_equal(world.connect().ask(world.grant(1)).status, 0, "status")
    finally:
        status = stop(device)
        if log is not Log.CLOSED_PIPE:
            os.close(reader)
            os.close(writer)
    expect_equal(status, 0, "exit status after SIGTERM")


def end_device(world):
    expect_equal(world.stop(), 0, "exit status after SIGTERM")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--holdfast", required=True, help="the command line under test")
    parser.add_argument("--only", help="run only the situations whose name has this text")
    options = parser.parse_args()
    checks = Checks()
    with tempfile.TemporaryDirectory(prefix="hf") as folder:
        world = World(options.holdfast, folder)
        checks.run("the device is made, shown and told whom to trust", world.prepare)
        if not checks.failed:
            checks.run("the device answers on its socket", world.start)
        if not checks.failed:
            for name, body, encodings in SITUATIONS:
                if options.only and options.only not in name:
                    continue
                for encoding in encodings:
                    suffix = {None: "", **BOTH}[encoding]
                    checks.run(name + suffix, run_situation, world, body, encoding)
            checks.run("SIGTERM ends the device with status 0", end_device, world)
            checks.run("a log whose reader is gone ends nothing", serve_without_reader, world, Log.CLOSED_PIPE, 20)
            for log in (Log.FULL_PIPE, Log.FULL_TERMINAL, Log.STOPPED_TERMINAL):
                name = log.name.lower().replace("_", " ")
                checks.run(f"a log that is a {name} holds nothing up", serve_without_reader, world, log, 10_000)
        if world.process is not None:
            world.stop()
    return checks.finish()


if __name__ == "__main__":
    sys.exit(main())
