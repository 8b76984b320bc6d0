"""The demonstration, where it does not run to its end, and where it must not end well."""

import json
import os
import pathlib
import signal
import subprocess
import tempfile
import time

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
DEMO = ROOT / "Demo" / "holdfast-demo"
from holdfast_demo import couriers, daily, impostors, online, power, provers, script, serial_line, tokens, users, wire
from holdfast_demo.board import BoardScene
from holdfast_demo.linux import LinuxScene
from holdfast_demo.processes import Processes
from holdfast_demo.story import Situation
from holdfast_peer.checks import expect, expect_equal

OK, WRONG, USAGE, UNAVAILABLE, FAULT, SIGNALLED = 0, 1, 64, 69, 70, 128
# Many times what a demonstration takes, for machines that have more to do.
SECONDS = 600
BUDGET = "a whole proof within the budget of 100 ms"
# A device whose policy asks for no integrity, whatever its owner wrote; a copy of this program is no copy of holdfast.
DECEIVER = """#!/usr/bin/python3
# Offline hardware attestation
import json, os, pathlib, subprocess, sys

words = [{holdfast!r}, *sys.argv[1:]]
if sys.argv[1:3] != ["device", "init"]:
    os.execv(words[0], words)
status = subprocess.run(words).returncode
policy = pathlib.Path(sys.argv[sys.argv.index("--dir") + 1]) / "policy.json"
rules = json.loads(policy.read_text())
for rule in rules["commands"].values():
    rule["factors"] = ["device"]
policy.write_text(json.dumps(rules))
sys.exit(status)
"""
# Lines that hold only because the device asks for integrity, a password or a seal.
DECEIVED = {
    "a prover with an LD_PRELOADed library",
    "a prover with a debugger attached",
    "a prover whose executable is a patched copy",
    "configure, by the proof alone",
    "… by the same one again",
    "open-safe 8, by that seal",
}


class World:
    """Demonstrations of `holdfast` in a folder that only they have, so that what they leave is seen."""

    def __init__(self, holdfast, folder):
        self.holdfast, self.folder = str(pathlib.Path(holdfast).resolve()), pathlib.Path(folder)
        self.mark = f"DEMO_FAULTS={os.urandom(8).hex()}"
        self.environment = {**os.environ, "TMPDIR": str(folder), **dict([self.mark.split("=")])}

    def start(self, *options, holdfast=None, **changes):
        return subprocess.Popen(
            [DEMO, "--holdfast", holdfast or self.holdfast, *options],
            env={**self.environment, **changes},
            text=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )

    def run(self, *options, **how):
        """Returns the exit status, the output and the errors of a demonstration, and sees to it that nothing is left of it."""
        return self.finish(self.start(*options, **how))

    def finish(self, demo):
        try:
            said, errors = demo.communicate(timeout=SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(demo.pid, signal.SIGKILL)
            raise
        self.expect_nothing_left()
        return demo.returncode, said, errors

    def expect_nothing_left(self, folders=0):
        deadline = time.monotonic() + 20
        while (left := self.processes()) and time.monotonic() < deadline:
            time.sleep(0.02)
        for number in left:
            os.kill(number, signal.SIGKILL)
        expect(not left, f"{len(left)} processes are left")
        expect_equal(len(list(self.folder.glob("holdfast-*"))), folders, "folders that are left")

    def processes(self):
        """The processes that have this world's mark in their environment."""
        found = []
        for environment in pathlib.Path("/proc").glob("[0-9]*/environ"):
            try:
                if self.mark.encode() in environment.read_bytes().split(b"\0"):
                    found.append(int(environment.parent.name))
            except OSError:
                continue
        return found

    def wait_for(self, demo, stage):
        """Waits until a demonstration has made the file `stage` in its folder."""
        deadline = time.monotonic() + SECONDS
        while not list(self.folder.glob(f"holdfast-*/{stage}")):
            expect(demo.poll() is None, f"it ended before there was {stage}: {demo.returncode}")
            expect(time.monotonic() < deadline, f"there was never {stage}")
            time.sleep(0.002)


def interrupted(world, number, stage, is_group, *options):
    demo = world.start(*options)
    world.wait_for(demo, stage)
    (os.killpg if is_group else os.kill)(demo.pid, number)
    status, _, errors = world.finish(demo)
    expect_equal(status, SIGNALLED + number, "exit status")
    expect("holdfast-demo: interrupted\n" in errors, f"it says {errors[-200:]!r}")


def interrupted_often(world):
    """Each signal after the first changes nothing."""
    demo = world.start()
    world.wait_for(demo, "device.sock")
    for _ in range(20):
        os.killpg(demo.pid, signal.SIGINT)
        time.sleep(0.005)
    status, _, errors = world.finish(demo)
    expect_equal(status, SIGNALLED + signal.SIGINT, "exit status")
    expect("Traceback" not in errors, errors[-400:])


def killed(world, stage="device.sock", *options):
    """What it started ends with it, even where it cannot clean up."""
    demo = world.start(*options)
    world.wait_for(demo, stage)
    demo.kill()
    demo.communicate(timeout=SECONDS)
    left = list(world.folder.glob("holdfast-*"))
    world.expect_nothing_left(folders=1)
    subprocess.run(["rm", "-rf", *left], check=True)


def twice_at_once(world):
    """Also compares the two forms of the transcript. The time that a proof takes is not judged here: the host is busy."""
    first, second = world.start(), world.start("--json")
    # The folder of the one that is still running is not left behind.
    said = first.communicate(timeout=SECONDS)[0].splitlines()
    wrong = [line for line in said if line.startswith("✗ ") and BUDGET not in line]
    expect(not wrong, f"wrong at the same time: {wrong}")
    transcript = json.loads(world.finish(second)[1])
    lines = [line for line in transcript["lines"] if "holds" in line]
    wrong = [line for line in lines if not line["holds"] and line["line"] != BUDGET]
    expect(not wrong, f"wrong at the same time, with --json: {wrong}")
    expect_equal(transcript["holds"], all(line["holds"] for line in lines), "holds")
    marked = [line[2:] for line in said if line.startswith(("✓ ", "✗ "))]
    expect_equal(len(marked), len(lines), "lines in both forms")
    for one, other in zip(marked, lines):
        expect(one.startswith(other["line"]) and other["expected"] in one, f"{one!r} is {other}")


def deceived(world):
    """A device that asks for too little is found out, line by line."""
    program = world.folder / "deceiver"
    program.write_text(DECEIVER.format(holdfast=world.holdfast))
    program.chmod(0o700)
    status, said, errors = world.run(holdfast=str(program))
    expect_equal(status, WRONG, f"exit status: {errors[-300:]}")
    wrong = {line.removeprefix("✗ ")[:54].rstrip() for line in said.splitlines() if line.startswith("✗ ")}
    expect(DECEIVED <= wrong, f"not found out: {sorted(DECEIVED - wrong)}")
    expect("✓ the token of another device" in said, "the other lines are not shown")
    for line in DECEIVED:
        expect(f"did not come out as it must: {line}\n" in errors, f"{line!r} is not named at the end")


def broken(world):
    """A program that fails at once is no device."""
    status, _, errors = world.run(holdfast="/bin/false")
    expect_equal(status, WRONG, "exit status")
    expect("not as it must be" in errors and "Traceback" not in errors, errors[-300:])


def refused(world, options, expected, *mentions, **changes):
    status, said, errors = world.run(*options, **changes)
    expect_equal((status, said), (expected, ""), "exit status and output")
    for text in mentions:
        expect(text in errors, f"{text!r} is not in {errors!r}")
    expect("Traceback" not in errors, errors[-300:])


def no_place(world, place):
    status, _, errors = world.run(TMPDIR=place)
    expect_equal(status, FAULT, "exit status")
    expect(f"no temporary folder can be made in {place}" in errors and "hint: set TMPDIR" in errors, errors)


def long_place(world):
    """Sockets would have paths that are too long: the folder is in /tmp."""
    place = world.folder / ("p" * 80)
    place.mkdir()
    demo = world.start(TMPDIR=str(place))
    for _ in range(3):
        said = demo.stdout.readline()
        while said.strip() and "offline: " not in said:
            said = demo.stdout.readline()
    demo.send_signal(signal.SIGTERM)
    world.finish(demo)
    expect("unix:/tmp/holdfast-" in said, f"it says {said!r}")
    folder = pathlib.Path(said.split("unix:")[1].split(",")[0]).parent
    expect(not folder.exists(), f"{folder} is left")
    place.rmdir()


def nobody_reads(world):
    demo = world.start()
    demo.stdout.readline()
    demo.stdout.close()
    errors = demo.stderr.read()
    expect_equal(demo.wait(SECONDS), FAULT, "exit status")
    expect("Traceback" not in errors and "BrokenPipeError" not in errors, errors[-300:])
    world.expect_nothing_left()


def every_situation_is_shown(_):
    """Each situation is in the script of at least one target."""
    with tempfile.TemporaryDirectory(prefix="hf") as folder:
        acts = [
            act
            for kind, acts in (
                (LinuxScene, script.linux),
                (BoardScene, script.board),
                (LinuxScene, script.online),
                (couriers.CouriersScene, script.couriers),
            )
            for act in acts(kind("/bin/false", folder, Processes()))
        ]
    entries = {
        getattr(entry, "body", None) or getattr(getattr(entry, "__self__", None), "body", None)
        for _, list_ in acts
        for entry in list_
    }
    for module in (couriers, daily, impostors, online, power, provers, serial_line, tokens, users, wire):
        for name, value in vars(module).items():
            if isinstance(value, Situation):
                expect(value.body in entries, f"{module.__name__}.{name} is in no script")


ONLINE = ("--target", "online")


def without_service(world):
    refused(world, ONLINE, UNAVAILABLE, "holdfast-service", "hint: make build service", holdfast="/bin/true")


def checks():
    yield "every situation is in a script", every_situation_is_shown
    yield "no arguments", refused, ("--target",), USAGE, "--target"
    yield "an unknown target", refused, ("--target", "moon"), USAGE, "moon"
    yield "an unknown option", refused, ("--frobnicate",), USAGE, "--frobnicate"
    yield "one word too many", refused, ("word",), USAGE, "word"
    for name, path in (
        ("a program that is not there", "/nowhere/holdfast"),
        ("a folder", "/tmp"),
        ("a file that cannot be run", "/etc/passwd"),
    ):
        yield name, lambda world, path=path: refused(world, (), UNAVAILABLE, path, "hint: ", holdfast=path)
    yield "a program that only fails", broken
    for place in ("/nowhere", "/proc", "/dev/null"):
        yield f"TMPDIR {place}", no_place, place
    yield "a TMPDIR that is too long for sockets", long_place
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        yield f"{number.name} at the start", interrupted, number, "xdg_data_home", False
    # As Ctrl-C, and only to the demonstration; the last two while a program runs under a debugger and under a filter.
    for stage, is_group in (("device.sock", False), ("device.sock", True), ("traced", True), ("booted.sock", False)):
        yield f"SIGINT{' to the group' if is_group else ''}, at {stage}", interrupted, signal.SIGINT, stage, is_group
    yield "SIGINT, again and again", interrupted_often
    yield "SIGKILL", killed
    # While the standby copies the primary, while instances serve, and while the primary is away.
    for stage in ("b/data", "instance-0.json", "carol"):
        yield f"the online service: SIGINT at {stage}", interrupted, signal.SIGINT, stage, stage == "carol", *ONLINE
    yield "the online service: SIGKILL", killed, "instance-0.json", *ONLINE
    yield "the online service: not built", without_service
    yield "nobody reads the transcript", nobody_reads
    yield "two at once", twice_at_once
    yield "a device that asks for too little", deceived


@pytest.fixture(scope="module")
def world(holdfast):
    with tempfile.TemporaryDirectory(prefix="hf") as folder:
        # Another user runs the database of the online service.
        pathlib.Path(folder).chmod(0o711)
        yield World(holdfast, folder)


CHECKS = {name: (body, arguments) for name, body, *arguments in checks()}


@pytest.mark.parametrize("name", CHECKS)
def test_the_demo_ends_as_it_must_and_leaves_nothing(world, name):
    body, arguments = CHECKS[name]
    body(world, *arguments)
