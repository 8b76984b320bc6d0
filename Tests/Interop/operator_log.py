#!/usr/bin/env python3
"""What an operator reads: the log of `device serve`, and `device audit`, with peers that want them to lie.

usage: operator_log.py --holdfast PATH

One line for each check that failed, then the totals. Exit status 1 when a check failed.
"""

import argparse
import datetime
import json
import os
import pathlib
import re
import secrets
import shutil
import subprocess
import sys
import tempfile
import time

from holdfast_peer.checks import Checks, expect, expect_equal
from holdfast_peer.command_line import stop
from holdfast_peer.session import COSE, REFERENCE, STATUS
from prover_against_device import World

USAGE = 64
# What a token's holder can call a command, and how the audit log and the log of a server have to show it.
SPOOFS = {
    "a  subject=boss  user=alice": '"a  subject=boss  user=alice"',
    'a"  subject="boss': r'"a\"  subject=\"boss"',
    "a\\": r'"a\\"',
    "unlock\u200b": r'"unlock\u{200b}"',
    "unlock\u061c": r'"unlock\u{61c}"',
    "unlock\ufeff": r'"unlock\u{feff}"',
    "unlock\u00ad": r'"unlock\u{ad}"',
    "unlock\U000e0041": r'"unlock\u{e0041}"',
    "unlock\ufe0f": r'"unlock\u{fe0f}"',
    "unlock\u202e": r'"unlock\u{202e}"',
    "unlock\u3000": r'"unlock\u{3000}"',
    "unlock\n1  accepted": r'"unlock\u{a}1  accepted"',
    "unlock\x1b[2J": r'"unlock\u{1b}[2J"',
    "unlock\\u{1b}[2J": r'"unlock\\u{1b}[2J"',
    "открыть": '"открыть"',
}
TIME = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ"
FIELD = re.compile(r'  ([a-z_A-Z]+)=("(?:[^"\\]|\\.)*"|\S+)')


class LoggingWorld(World):
    """A device whose log is kept."""

    log = None

    def __init__(self, path, folder):
        super().__init__(path, folder)
        # A copy that everybody can run.
        place = pathlib.Path(folder).parent / f"{pathlib.Path(folder).name}-program"
        place.mkdir(mode=0o755)
        self.program = str(shutil.copy(path, place / "holdfast"))

    def clean(self):
        shutil.rmtree(pathlib.Path(self.program).parent)

    def serve(self, *more, json_lines=False):
        self.log = self.folder / f"log-{secrets.token_hex(4)}"
        target = self.log.open("wb")
        pathlib.Path(self.socket).unlink(missing_ok=True)
        arguments = [self.command_line.path, "device", "serve", "--dir", self.device_folder, "--listen", f"unix:{self.socket}", *more]
        self.process = subprocess.Popen(
            [*map(str, arguments), *(["--json"] if json_lines else [])], env=self.command_line.environment, stdin=subprocess.DEVNULL,
            stdout=target if json_lines else subprocess.DEVNULL, stderr=subprocess.PIPE if json_lines else target)
        target.close()
        self.wait(lambda lines: len([line for line in lines if "listening" in line]) == 1 + more.count("--listen") and any("listening" in line for line in lines))

    def lines(self):
        return self.log.read_text().splitlines()

    def wait(self, condition):
        end = time.monotonic() + 20
        while not condition(self.lines()):
            expect(time.monotonic() < end, f"the log has only {self.lines()[-5:]}")
            time.sleep(0.01)
        return self.lines()

    def end(self):
        """Ends the device; its whole log."""
        expect_equal(stop(self.process), 0, "exit status after SIGTERM")
        return self.lines()


def status_of(outcome):
    return next(name for name, number in STATUS.items() if number == outcome.status)


def fields(line):
    return dict(FIELD.findall(line))


def garbage(world, count, connections=1):
    for _ in range(connections):
        prover = world.connect()
        grant = world.grant(COSE)
        with prover.connection:
            for _ in range(count):
                prover.ask(grant, encoding=REFERENCE, token=secrets.token_bytes(16))


def tells_each_round(world):
    """Time, connection, status, command, subject, peer and device; by the process that connected."""
    world.serve()
    with (prover := world.connect()).connection:
        expect_equal(status_of(prover.ask(world.grant(COSE, subject="the app"), "unlock")), "accepted", "status")
        line = world.wait(lambda lines: any("accepted" in line for line in lines))[-1]
    expect(re.match(rf"holdfast: {TIME} connection \d+: accepted  ", line), f"not a line of the log: {line}")
    seen = fields(line)
    expect_equal(seen, {"command": '"unlock"', "subject": '"the app"', "peer": f'"uid {os.getuid()}, pid {os.getpid()}"',
                        "device": world.descriptor.device_id.hex()[:8]}, "the fields")
    stamp = datetime.datetime.strptime(line.split()[1], "%Y-%m-%dT%H:%M:%S%z").timestamp()
    expect(abs(stamp - time.time()) < 60, f"another time: {line}")
    lines = world.end()
    expect(re.fullmatch(rf"holdfast: {TIME} ended", lines[-1]), f"the last line: {lines[-1]}")


def cannot_be_spoofed(world):
    """Each command in the log, in the audit log and in both as JSON."""
    world.serve()
    for command in SPOOFS:
        with (prover := world.connect()).connection:
            expect_equal(status_of(prover.ask(world.grant(COSE), command)), "commandRefused", "status")
    # Each of another token: denied rounds of one would be counted.
    logged = [line for line in world.end() if "commandRefused" in line]
    expect_equal([fields(line)["command"] for line in logged], list(SPOOFS.values()), "the commands in the log")
    expect_equal([set(fields(line)) for line in logged], [{"command", "subject", "peer", "device"}] * len(SPOOFS), "the fields")


def tells_as_json(world):
    """--json: each line one object, on standard output, with times in seconds; nothing on standard error."""
    world.serve(json_lines=True)
    for command in SPOOFS:
        with (prover := world.connect()).connection:
            prover.ask(world.grant(COSE), command)
    with (prover := world.connect()).connection:
        grant = world.grant(COSE)
        expect_equal(status_of(prover.ask(grant, by_reference=True)), "tokenUnknown", "by reference")
        expect_equal(status_of(prover.ask(grant)), "accepted", "whole")
    garbage(world, 1)
    raw = world.end()
    expect_equal(world.process.stderr.read(), b"", "standard error")
    world.process.stderr.close()
    lines = [json.loads(line) for line in raw]
    expect_equal({type(line["time"]) for line in lines}, {int}, "the type of the times")
    expect(all(abs(line["time"] - time.time()) < 60 for line in lines), "another time")
    expect_equal([lines[0]["event"], lines[0]["endpoint"], lines[1]["event"], lines[-1]["event"]],
                 ["listening", f"unix:{world.socket}", "policy", "ended"], "the events")
    rounds = [line for line in lines if line["event"] == "round"]
    expect_equal([line["command"] for line in rounds], [*SPOOFS, "unlock"], "the commands")
    last = rounds[-1]
    expect_equal((last["status"], last["subject"], last["uid"], last["pid"], last["device_id"], last["token"], last["asked_for_whole_token"]),
                 ("accepted", "interop", os.getuid(), os.getpid(), world.descriptor.device_id.hex(), grant.claims["tokenId"].hex(), True),
                 "the accepted round")
    strangers = [line for line in lines if line["event"] == "unproved"]
    expect_equal([(line["tokenUnknown"], line["connections"]) for line in strangers], [(1, 1)], "the stranger")


def restart_is_no_attack(world):
    """After a restart the device asks for the whole token: one line, which says so, and none of a stranger."""
    grant = world.grant(COSE)
    world.serve()
    with (prover := world.connect()).connection:
        expect_equal(status_of(prover.ask(grant)), "accepted", "before")
    world.end()
    world.serve()
    with (prover := world.connect()).connection:
        expect_equal(status_of(prover.ask(grant, by_reference=True)), "tokenUnknown", "by reference")
        expect_equal(status_of(prover.ask(grant)), "accepted", "whole")
    lines = world.end()
    expect_equal(len([line for line in lines if "tokenUnknown" in line or "without proof" in line]), 0, "lines of a stranger")
    expect_equal(len([line for line in lines if "accepted, after the whole token was asked for  command=" in line]), 1, "lines of the round")


def strangers_are_counted(world):
    """Thousands of strangers' messages are two lines; none is lost."""
    world.serve()
    garbage(world, 5, connections=200)
    lines = [line for line in world.end() if "without proof: " in line]
    expect(len(lines) == 2, f"{len(lines)} lines, such as {lines[:4]}")
    count = sum(int(re.search(r"(\d+) tokenUnknown", line)[1]) for line in lines)
    expect_equal(count, 1000, "how many are told of")
    connections = [int((re.search(r"on (\d+) connections", line) or (0, 1))[1]) for line in lines]
    expect(sum(connections) in (200, 201), f"on {connections} connections")


def denials_are_counted(world):
    """A token's holder who is denied a thousand times is two lines; accepted rounds are one each."""
    world.serve()
    grant = world.grant(COSE, commands=["unlock"])
    with (prover := world.connect()).connection:
        for _ in range(300):
            expect_equal(status_of(prover.ask(grant, "lock")), "commandRefused", "status")
        for _ in range(20):
            expect_equal(status_of(prover.ask(grant, "unlock")), "accepted", "status")
    lines = world.end()
    denied = [line for line in lines if "commandRefused" in line]
    expect_equal(len(denied), 2, f"lines of denied rounds, such as {denied[:3]}")
    expect("commandRefused, 299 times  " in denied[1], denied[1])
    expect_equal(len([line for line in lines if ": accepted  " in line]), 20, "lines of accepted rounds")


def quiet_is_quiet(world):
    world.serve("--quiet", "--verbose")
    with (prover := world.connect()).connection:
        expect_equal(status_of(prover.ask(world.grant(COSE))), "accepted", "status")
    garbage(world, 3)
    lines = world.end()
    expect(not any("connection" in line or "without proof" in line for line in lines), f"it says {lines}")


def verbose_tells_all(world):
    world.serve("--verbose")
    garbage(world, 30)
    lines = [line for line in world.end() if ": tokenUnknown" in line]
    expect_equal(len(lines), 30, "lines of a stranger")
    expect_equal(fields(lines[0]), {"peer": f'"uid {os.getuid()}, pid {os.getpid()}"', "device": world.descriptor.device_id.hex()[:8]},
                 "the fields")


def audit_quotes(world):
    """The text of `device audit`, after all of the above."""
    text = world.owner("audit")
    expect_equal(text.returncode, 0, "exit status")
    lines = [line for line in text.stdout.decode().splitlines() if "  round  " in line or "denied" in line]
    entries = json.loads(world.owner("audit", "--json").stdout)["entries"]
    commands = [entry["command"] for entry in entries if "command" in entry]
    shown = [fields(line)["command"] for line in lines if "command=" in line]
    expect_equal(len(shown), len(commands), "how many commands are shown")
    known = {**SPOOFS, "unlock": '"unlock"', "lock": '"lock"'}
    expect_equal(shown, [known[command] for command in commands], "the commands")
    for line in text.stdout.decode().splitlines():
        expect(re.match(rf"\d+  {TIME}  [a-z-]+(  |$)", line), f"not an entry: {line}")
        expect(line == "".join(each for each in line if each.isprintable()), f"something unseen in {line!r}")


CONNECT = """
import socket, sys
peer = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
try:
    peer.connect(sys.argv[1])
except PermissionError:
    sys.exit(77)
sys.exit(0 if peer.recv(4096) else 1)
"""


def lets_a_group_in(world):
    """mode=660,group=…: who is of the group connects, somebody else does not; a mode for everybody is warned of."""
    if os.geteuid() != 0:
        return
    folder = pathlib.Path(tempfile.mkdtemp(prefix="hf"))
    folder.chmod(0o711)
    world.socket, before = str(folder / "s"), world.socket
    try:
        for option, group, expected, warns in ((",mode=660,group=54321", 54321, 0, False), (",group=54321", 54321, 0, False),
                                               (",mode=660,group=54321", 54322, 77, False), ("", 54321, 77, False), (",mode=666", 54322, 0, True)):
            world.serve("--listen", f"unix:{folder}/other{option}")
            done = subprocess.run(["setpriv", "--reuid=65534", f"--regid={group}", "--clear-groups", sys.executable, "-c", CONNECT, f"{folder}/other"],
                                  capture_output=True, timeout=20, check=False)
            expect_equal(done.returncode, expected, f"how a peer of group {group} fares with {option!r}: {done.stderr.decode()}")
            if done.returncode == 77:
                refused = subprocess.run(["setpriv", "--reuid=65534", f"--regid={group}", "--clear-groups", sys.executable, "-c",
                                          "import os, sys; os.execv(sys.argv[1], sys.argv[1:])", world.program, "doctor", f"unix:{folder}/other"],
                                         capture_output=True, timeout=20, check=False)
                expect(b"mode=660,group=" in refused.stdout + refused.stderr, f"no hint: {refused.stdout + refused.stderr}")
            lines = world.end()
            expect_equal(any("every user of this host may connect" in line for line in lines), warns, f"whether {option!r} is warned of")
            expect(not (folder / "other").exists(), "the socket's file is still there")
        done = world.owner("serve", "--listen", f"unix:{folder}/other,group=no-such-group")
        expect_equal(done.returncode, 2, "exit status for a group that is not there")
        expect(b'there is no group "no-such-group"' in done.stderr and b"hint: " in done.stderr, f"it says {done.stderr}")
        expect(not (folder / "other").exists(), "there is a file")
    finally:
        world.socket = before
        for path in folder.iterdir():
            path.unlink()
        folder.rmdir()


def selected(world, *options):
    return json.loads(world.owner("audit", "--json", *options).stdout)["entries"]


def audit_selects(world):
    """Each condition, and several at once, against the whole log; the text has the same entries."""
    world.serve()
    for user in ("alice", "bob", "alice"):
        secret = world.folder / "secret"
        secret.write_text("31323334353637383930313233343536373839")
        secret.chmod(0o600)
        expect_equal(world.owner("user", "add", "--otp-secret", secret, "--seal", "none", "--replace", user).returncode, 0, "user add")
    with (prover := world.connect()).connection:
        grant = world.grant(COSE)
        for command in ("unlock", "nothing", "status", "lock"):
            prover.ask(grant, command)
    garbage(world, 2)
    world.end()
    # An entry of later.
    expect_equal(world.owner("floor", "--clock", str(int(time.time()) + 5000)).returncode, 0, "floor")
    everything = selected(world)
    middle = everything[len(everything) // 2]
    late = [entry for entry in everything if entry["time"] >= everything[-1]["time"]]
    expect(0 < len(late) < len(everything), "no entry is later than the others")

    def status_of_entry(entry, name):
        return entry.get("status") == name or name in entry

    cases = {
        (): everything, ("--after", "0"): everything, ("--last", "3"): everything[-3:], ("--last", "0"): [],
        ("--after", str(middle["sequence"])): [entry for entry in everything if entry["sequence"] > middle["sequence"]],
        ("--after", str(everything[-1]["sequence"])): [], ("--after", "9007199254740991"): [],
        ("--since", str(everything[-1]["time"])): late, ("--since", "0"): everything, ("--since", "2100-01-01T00:00:00Z"): [],
        ("--user", "alice"): [entry for entry in everything if entry.get("user") == "alice"], ("--user", "al"): [],
        ("--status", "accepted"): [entry for entry in everything if status_of_entry(entry, "accepted")],
        ("--status", "tokenUnknown"): [entry for entry in everything if status_of_entry(entry, "tokenUnknown")],
        ("--user", "alice", "--last", "1"): [entry for entry in everything if entry.get("user") == "alice"][-1:],
        ("--status", "accepted", "--after", str(middle["sequence"]), "--last", "2"):
            [entry for entry in everything if status_of_entry(entry, "accepted") and entry["sequence"] > middle["sequence"]][-2:],
        ("--since", datetime.datetime.fromtimestamp(everything[-1]["time"], datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")): late,
        ("--since", datetime.datetime.fromtimestamp(everything[-1]["time"], datetime.timezone(datetime.timedelta(hours=-3)))
            .strftime("%Y-%m-%dT%H:%M:%S-03:00")): late,
    }
    expect(len(cases[("--user", "alice")]) == 2 and cases[("--status", "tokenUnknown")], "nothing to select")
    for options, expected in cases.items():
        expect_equal(selected(world, *options), expected, f"what {options} selects")
        text = world.owner("audit", *options).stdout.decode().splitlines()
        expect_equal([int(line.split()[0]) for line in text], [entry["sequence"] for entry in expected], f"the text of {options}")
    for options in (("--after", "x"), ("--after=-1",), ("--after", "9007199254740992"), ("--after", ""), ("--since", "yesterday"),
                    ("--since", "2026-02-30T00:00:00Z"), ("--since", "9007199254740992"), ("--since", "2026-11-22"), ("--user", ""),
                    ("--user", "u" * 33), ("--user", "a\u200b"), ("--status", "acepted"), ("--status", ""), ("--last=-1",), ("--last", "x"),
                    ("--verify", "--last", "1"), ("--verify", "--after", "1")):
        done = world.owner("audit", *options)
        expect_equal((done.returncode, done.stdout), (USAGE, b""), f"exit status and output of {options}")
        expect(b"hint: " in done.stderr or options[0].startswith(("--last", "--user")), f"{options} has no hint: {done.stderr}")


CHECKS = [tells_each_round, cannot_be_spoofed, tells_as_json, restart_is_no_attack, strangers_are_counted, denials_are_counted,
          quiet_is_quiet, verbose_tells_all, lets_a_group_in, audit_quotes, audit_selects]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--holdfast", required=True, help="the command line under test")
    parser.add_argument("--only", help="run only the checks whose name has this text")
    options = parser.parse_args()
    checks = Checks()
    with tempfile.TemporaryDirectory(prefix="hf") as folder:
        world = LoggingWorld(options.holdfast, folder)
        checks.run("the device is made", world.prepare)
        for check in CHECKS if not checks.failed else []:
            if options.only and options.only not in check.__name__:
                continue
            checks.run(check.__name__.replace("_", " "), check, world)
            if world.process is not None and world.process.poll() is None:
                stop(world.process)
        world.clean()
    return checks.finish()


if __name__ == "__main__":
    sys.exit(main())
