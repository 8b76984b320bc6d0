#!/usr/bin/env python3
"""`holdfast device bridge` between provers and a device behind a line.

usage: bridge.py --holdfast PATH

One line for each check that failed, then the totals. Exit status 1 when a check failed.
"""

import argparse
import json
import os
import pathlib
import pty
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import tty

from holdfast_peer import session, transport
from holdfast_peer.checks import Checks, expect, expect_equal
from holdfast_peer.command_line import stop
from holdfast_peer.prover import Prover
from prover_against_device import World

USAGE, UNAVAILABLE = 64, 69
BUSY, MALFORMED, INTERNAL = (session.message_3(session.STATUS[name], None) for name in ("busy", "malformed", "internal"))


class BridgeWorld(World):
    """A device served at a socket of bytes, a bridge before it, and a prover that it knows."""

    def __init__(self, path, folder):
        super().__init__(path, folder)
        self.line, self.front, self.stream = (str(self.folder / name) for name in ("line", "front", "stream"))
        self.state, self.bridge, self.log = self.folder / "state", None, self.folder / "bridge.log"

    def prepare(self):
        super().prepare()
        run, service = self.command_line, self.folder / "service"
        (self.folder / "device.json").write_bytes(run.succeed("device", "show", "--dir", self.device_folder, "--json"))
        run.succeed("service", "init", "--dir", service)
        shown = run.read_json("service", "show", "--dir", service)
        file = self.folder / "service.jwk"
        file.write_text(json.dumps(shown["issuer"]))
        run.succeed("device", "trust", "--dir", self.device_folder, file)
        run.succeed("service", "device", "add", "--dir", service, self.folder / "device.json")
        run.succeed("enroll", "--device", self.folder / "device.json", "--service", service, "--state", self.state)
        self.start_device()
        self.start_bridge()

    def start_device(self):
        self.process = self.command_line.start(
            "device", "serve", "--dir", self.device_folder, "--listen", f"unix-stream:{self.line}", "--listen",
            f"unix:{self.socket}")
        transport.connect_when_ready(self.socket).close()

    def start_bridge(self, *arguments):
        self.bridge = self.command_line.start("device", "bridge", *(arguments or (
            "--listen", f"unix:{self.front}", "--listen", f"unix-stream:{self.stream}", "--to",
            f"unix-stream:{self.line}")), stderr=self.log.open("wb"))
        wait_for(lambda: b"listening" in self.log.read_bytes(), "the bridge does not listen")

    def prove(self, endpoint, *more):
        return self.command_line.run("prove", "--connect", endpoint, "--state", self.state, "--command", "unlock", *more)

    def expect_accepted(self, endpoint, *more):
        done = self.prove(endpoint, *more)
        expect_equal(done.returncode, 0, f"prove: {done.stderr.decode()[-200:]}")

    def when_free(self, connect):
        """A prover that the bridge has a place for: the one before may have left a moment ago."""
        for _ in range(200):
            prover = Prover(connect(), self.descriptor)
            prover.m1 = prover.connection.receive(timeout=8)
            if prover.m1 != BUSY:
                session.parse_message_1(prover.m1)
                return prover
            prover.connection.close()
            time.sleep(0.02)
        raise AssertionError("the bridge stays busy")

    def packets(self):
        return self.when_free(lambda: transport.connect(self.front))

    def frames(self):
        return self.when_free(lambda: transport.connect_stream(self.stream))

    def refusal(self, wanted, attempts=100):
        """Connects until the bridge answers `wanted`, and nothing else but busy."""
        for _ in range(attempts):
            with transport.connect(self.front) as connection:
                message = connection.receive(timeout=8)
                if message == wanted:
                    return
                expect_equal(message, BUSY, "refusal")
            time.sleep(0.05)
        raise AssertionError("never refused as it has to be")


def wait_for(condition, message, seconds=10):
    end = time.monotonic() + seconds
    while not condition():
        expect(time.monotonic() < end, message)
        time.sleep(0.02)


def same_prover(world):
    for endpoint in (f"unix:{world.front}", f"unix-stream:{world.stream}") * 2:
        world.expect_accepted(endpoint)


def independent_prover(world, connect):
    for encoding in (session.COSE, session.JOSE):
        grant = world.grant(encoding)
        prover = connect()
        with prover.connection:
            for number in range(4):
                outcome = prover.ask(grant, by_reference=number > 0)
                expect_equal(outcome.status, 0, "status")


def busy(world):
    first = world.packets()
    with first.connection:
        for _ in range(3):
            with transport.connect(world.front) as other:
                expect_equal(other.receive(), BUSY, "the second prover's answer")
            with transport.connect_stream(world.stream) as other:
                expect_equal(other.receive(), BUSY, "the second prover's answer")
        expect_equal(first.ask(world.grant(session.COSE)).status, 0, "the first prover's status")


def leaves(world):
    for number in range(10):
        prover = world.frames() if number % 2 else world.packets()
        attempt = prover.attempt(world.grant(session.COSE))
        if number % 3 == 0:
            prover.connection.send(attempt.message())
        elif number % 2:
            prover.connection.handle.sendall(b"\x01\x00\x85")
        prover.connection.close()
    wait_for(lambda: world.prove(f"unix:{world.front}").returncode == 0, "no prover is accepted any more")


def hostile(world):
    for data in (b"\xff\xff", b"\x10\x01" + bytes(5000), b"\x00\x40\x85\x02"):
        prover = world.frames()
        with prover.connection as connection:
            connection.handle.sendall(data)
            connection.handle.shutdown(socket.SHUT_WR)
            expect_equal(connection.receive(), MALFORMED, "answer to garbage")
    prover = world.packets()
    with prover.connection as connection:
        connection.send(b"\x85garbage")
        expect_equal(connection.receive(), MALFORMED, "the device's answer to garbage")
    wait_for(lambda: world.prove(f"unix:{world.front}").returncode == 0, "no prover is accepted any more")


def gone_and_back(world):
    stop(world.process)
    world.refusal(INTERNAL)
    used = processor_seconds(world.bridge.pid)
    time.sleep(2)
    expect(processor_seconds(world.bridge.pid) - used < 0.2, "the bridge spins")
    world.start_device()
    wait_for(lambda: b"open again" in world.log.read_bytes().rsplit(b"there is nothing at", 1)[-1], "the line is not opened again")
    wait_for(lambda: world.prove(f"unix:{world.front}").returncode == 0, "no prover is accepted any more")


def processor_seconds(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def ends(world, number, with_prover):
    prover = world.packets() if with_prover else None
    started = time.monotonic()
    world.bridge.send_signal(number)
    expect_equal(world.bridge.wait(10), 0, "exit status")
    expect(time.monotonic() - started < 1, "it took more than a second")
    if prover:
        prover.connection.close()
    expect(not os.path.exists(world.front), "the socket is left behind")
    expect(b"ended" in world.log.read_bytes(), "it does not say that it ended")
    world.start_bridge()
    wait_for(lambda: world.prove(f"unix:{world.front}").returncode == 0, "no prover is accepted any more")


def flooded(world):
    """Provers that come and go by the hundred are few lines, and a count of the others; as JSON, each line is an object."""
    expect_equal(stop(world.bridge), 0, "exit status")
    with (world.folder / "lines").open("wb") as lines:
        world.bridge = subprocess.Popen(
            [world.command_line.path, "device", "bridge", "--json", "--listen", f"unix:{world.front}", "--to", f"unix-stream:{world.line}"],
            env=world.command_line.environment, stdin=subprocess.DEVNULL, stdout=lines, stderr=subprocess.DEVNULL)
    transport.connect_when_ready(world.front).close()
    for _ in range(300):
        transport.connect_when_ready(world.front).close()
    # Who comes last is answered last.
    with transport.connect_when_ready(world.front) as connection:
        connection.receive(timeout=8)
    expect_equal(stop(world.bridge), 0, "exit status")
    said = [json.loads(line) for line in (world.folder / "lines").read_text().splitlines()]
    expect(all(isinstance(line["time"], int) and abs(line["time"] - time.time()) < 60 for line in said), "a line has another time")
    counts = {event: len([line for line in said if line["event"] == event]) for event in ("busy", "disconnected", "refused", "displaced")}
    expect(max(counts.values()) <= 30, f"too many lines: {counts}")
    left_out = sum(line["lines"] for line in said if line["event"] == "left-out")
    expect_equal(counts["busy"] + counts["disconnected"] + counts["displaced"] + left_out, 302, f"provers that are told of, in {counts}")
    world.start_bridge()


class Terminal:
    """A pseudo-terminal whose far end is joined to a socket of bytes."""

    def __init__(self, path):
        self.far, self.near = pty.openpty()
        tty.setraw(self.near)
        self.name = os.ttyname(self.near)
        self.handle = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.handle.connect(path)
        for source, target in ((lambda: os.read(self.far, 4096), self.handle.sendall),
                               (lambda: self.handle.recv(4096), lambda data: os.write(self.far, data))):
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


def over_terminal(world):
    """Device, terminal, bridge, prover."""
    stop(world.bridge)
    with Terminal(world.line) as terminal:
        world.start_bridge("--listen", f"unix:{world.front}", "--to", f"tty:{terminal.name}")
        for _ in range(3):
            wait_for(lambda: world.prove(f"unix:{world.front}").returncode == 0, "no prover is accepted over a terminal")
        stop(world.bridge)
    world.start_bridge()


def prover_at_terminal(world):
    """A prover on a terminal finds its challenge, also after one that left without an answer."""
    with Terminal(world.line) as terminal:
        for _ in range(3):
            world.expect_accepted(f"tty:{terminal.name}")
        os.write(terminal.near, b"\x00\x00")
        world.expect_accepted(f"tty:{terminal.name}")


def bad_arguments(world):
    line = f"unix-stream:{world.line}"
    for arguments, status in [
        (("--listen", f"unix:{world.folder}/x"), USAGE),
        (("--to", line), USAGE),
        (("--listen", f"unix:{world.folder}/x", "--to", "unix:" + world.line), USAGE),
        (("--listen", f"unix:{world.folder}/x", "--to", "rfcomm:00:11:22:33:44:55,channel=5"), USAGE),
        (("--listen", line, "--to", line), USAGE),
        (("--listen", "nonsense", "--to", line), USAGE),
        (("--listen", f"unix:{world.folder}/x", "--to", "tty:"), USAGE),
        (("--listen", f"unix:{world.folder}/x", "--to", f"tty:{world.folder}/none"), UNAVAILABLE),
        (("--listen", f"unix:{world.folder}/x", "--to", f"unix-stream:{world.folder}/none"), UNAVAILABLE),
        (("--listen", f"unix:{world.folder}/x", "--to", "tty:/dev/null"), UNAVAILABLE),
        (("--listen", f"unix:{world.folder}/none/x", "--to", line), UNAVAILABLE),
        (("--listen", "rfcomm:00:00:00:00:00:00,hci=hci7", "--to", line), UNAVAILABLE),
        (("--listen", f"unix:{world.front}", "--to", line), UNAVAILABLE),
    ]:
        done = world.command_line.run("device", "bridge", *arguments)
        expect_equal(done.returncode, status, f"{arguments}: {done.stderr.decode()[-200:]}")
        expect(done.seconds < 5, f"{arguments} took {done.seconds} s")
        expect(b"hint:" in done.stderr or b"holdfast:" in done.stderr or b"Usage" in done.stderr, f"{arguments} says nothing")
    done = world.command_line.run("device", "bridge", "--json", "--listen", "nonsense", "--to", line)
    expect_equal(json.loads(done.stdout)["exit"], USAGE, "exit of the JSON object")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--holdfast", required=True, help="the command line under test")
    options = parser.parse_args()
    checks = Checks()
    with tempfile.TemporaryDirectory(prefix="hf") as folder:
        world = BridgeWorld(options.holdfast, folder)
        try:
            checks.run("a device, and a bridge to it", world.prepare)
            if not checks.failed:
                checks.run("prove over packets and over bytes, again and again", same_prover, world)
                checks.run("the independent prover over packets", independent_prover, world, world.packets)
                checks.run("the independent prover over bytes", independent_prover, world, world.frames)
                checks.run("a second prover is told busy", busy, world)
                checks.run("provers that leave in the middle", leaves, world)
                checks.run("hostile provers", hostile, world)
                checks.run("the device goes and comes back", gone_and_back, world)
                checks.run("a terminal between bridge and device", over_terminal, world)
                for number in (signal.SIGTERM, signal.SIGINT):
                    for with_prover in (False, True):
                        checks.run(f"{number.name} ends it, with a prover: {with_prover}", ends, world, number, with_prover)
                checks.run("a flood of provers does not fill the log", flooded, world)
                checks.run("a prover at a terminal", prover_at_terminal, world)
                checks.run("wrong arguments", bad_arguments, world)
        finally:
            for process in (world.bridge, world.process):
                if process is not None:
                    stop(process)
    return checks.finish()


if __name__ == "__main__":
    sys.exit(main())
