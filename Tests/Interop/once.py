#!/usr/bin/env python3
"""A command is carried out once: somebody in the middle between the real `prove` and the real `device serve`, and provers that
share, copy or lose their state folder.

usage: once.py --holdfast PATH

One line for each check that failed, then the totals. Exit status 1 when a check failed.
"""

import argparse
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile
import threading

from holdfast_peer import session, transport
from holdfast_peer.checks import Checks, expect, expect_equal
from holdfast_peer.prover import Attempt
from holdfast_peer.session import COSE, STATUS
from prover_against_device import World

ACCEPTED, DENIED, MALFORMED = 0, 1, 2
LARGEST = 2**53 - 1
TOKEN_UNKNOWN = session.message_3(STATUS["tokenUnknown"], None)
SITUATIONS = []


def situation(body):
    SITUATIONS.append((body.__doc__, body))
    return body


class MiddleMan(threading.Thread):
    """Relays one connection, message by message. `suppress` of the first verdicts are kept, and tokenUnknown is said instead.

    `between` is called after a verdict was kept, before the prover hears anything.
    """

    def __init__(self, world, suppress=1, between=lambda: None):
        super().__init__(daemon=True)
        self.path, self.world, self.suppress, self.between = str(world.folder / "middle.socket"), world, suppress, between
        self.listener = transport.Listener(self.path, timeout=30)
        self.fault, self.kept, self.passed = None, [], []

    def run(self):
        try:
            with self.listener.accept() as prover:
                device = transport.connect(self.world.socket, 30)
                try:
                    prover.send(device.receive(30))
                    while True:
                        device.send(prover.receive(30))
                        verdict = device.receive(30)
                        if len(self.kept) < self.suppress:
                            self.kept.append(verdict)
                            self.between()
                            # The connection may have ended with the device.
                            device = self._again(device)
                            prover.send(TOKEN_UNKNOWN)
                        else:
                            self.passed.append(verdict)
                            prover.send(verdict)
                        prover.send(device.receive(30))
                finally:
                    device.close()
        except transport.Closed:
            pass
        except Exception as error:  # shown by the check
            self.fault = error
        finally:
            self.listener.close()

    def _again(self, device):
        if self.world.process is not self.world.first_process:
            device.close()
            self.world.first_process = self.world.process
            return transport.connect(self.world.socket, 30)
        return device


class OnceWorld(World):
    """A device that trusts the program's own service, too, and provers that it enrolled."""

    def __init__(self, path, folder):
        super().__init__(path, folder)
        self.service, self.count, self.first_process = self.folder / "service", 0, None

    def prepare(self):
        super().prepare()
        run = self.command_line
        (self.folder / "device.json").write_bytes(run.succeed("device", "show", *self.device_arguments, "--json"))
        run.succeed("service", "init", "--dir", self.service)
        run.succeed("service", "device", "add", "--dir", self.service, self.folder / "device.json")
        shown = run.read_json("service", "show", "--dir", self.service)
        (self.folder / "service.jwk").write_text(json.dumps(shown["issuer"]))
        run.succeed("device", "trust", *self.device_arguments, self.folder / "service.jwk")
        self.start()
        self.first_process = self.process

    def enroll(self):
        """A fresh state folder, whose token the device remembers."""
        self.count += 1
        state = self.folder / f"state-{self.count}"
        self.command_line.succeed("enroll", "--device", self.folder / "device.json", "--service", self.service, "--state", state)
        self.prove(state, "lock")
        return state

    def arguments(self, state, command, endpoint=None):
        return ("prove", "--json", "--connect", endpoint or self.endpoint, "--state", state, "--command", command, "--timeout", "60")

    def prove(self, state, command, endpoint=None, exit_status=ACCEPTED):
        """What `prove --json` says."""
        done = self.command_line.run(*self.arguments(state, command, endpoint), timeout=120)
        expect_equal(done.returncode, exit_status, f"exit status, with {done.stderr[-300:]!r}")
        return json.loads(done.stdout) if done.stdout else None

    def audit(self):
        """Command and status of each round that the audit log has."""
        done = self.command_line.succeed("device", "audit", "--json", *self.device_arguments)
        entries = [json.loads(line) for line in done.splitlines() if line.strip()]
        if len(entries) == 1 and "entries" in entries[0]:
            entries = entries[0]["entries"]
        return [(entry["command"], entry["status"]) for entry in entries if "command" in entry and "status" in entry]

    def count_accepted(self, command):
        return self.audit().count((command, "accepted"))


def number_file(state):
    """Where the last request number of the only enrolment in a state folder is."""
    files = list(state.rglob("request_number"))
    expect_equal(len(files), 1, "files with a request number")
    return files[0]


def last_number(state):
    return int(number_file(state).read_text())


def set_number(state, number):
    file = number_file(state)
    file.write_text(f"{number}\n")
    file.chmod(0o600)


@situation
def a_verdict_held_back(world):
    """a verdict that is held back, with tokenUnknown in its place, gets a command carried out once, and prove says so"""
    state = world.enroll()
    before = world.count_accepted("unlock")
    middle = MiddleMan(world)
    middle.start()
    said = world.prove(state, "unlock", f"unix:{middle.path}")
    middle.join(30)
    expect(middle.fault is None, f"in the middle: {middle.fault!r}")
    expect_equal((len(middle.kept), len(middle.passed)), (1, 1), "verdicts that were kept and passed on")
    expect_equal(world.count_accepted("unlock"), before + 1, "how often it was carried out")
    expect_equal((said["status"], said["repeated"]), ("accepted", True), "what prove says")
    expect_equal(said["highest_request_number"], last_number(state), "the highest number")
    honest = world.prove(state, "lock")
    expect_equal((honest["repeated"], "highest_request_number" in honest), (False, False), "an honest round's")


@situation
def what_a_person_reads(world):
    """a person reads that the command was not repeated"""
    state = world.enroll()
    middle = MiddleMan(world)
    middle.start()
    arguments = [a for a in world.arguments(state, "unlock", f"unix:{middle.path}") if a != "--json"]
    done = world.command_line.run(*arguments, timeout=120)
    middle.join(30)
    expect_equal(done.returncode, ACCEPTED, "exit status")
    expect(b"already carried out by an earlier attempt (the command was not repeated)" in done.stdout, f"it says {done.stdout!r}")


@situation
def killed_in_between(world):
    """the same with the device killed after it has acted: no second time, and an outcome that was written is known"""
    state = world.enroll()
    before = world.count_accepted("unlock")
    middle = MiddleMan(world, between=world.restart)
    middle.start()
    said = world.prove(state, "unlock", f"unix:{middle.path}")
    middle.join(30)
    expect(middle.fault is None, f"in the middle: {middle.fault!r}")
    expect_equal((said["status"], said["repeated"]), ("accepted", True), "what prove says")
    expect_equal(world.count_accepted("unlock"), before + 1, "how often it was carried out")


@situation
def others_in_between(world):
    """the same while another process of the same state folder is served: its number is the highest, and nothing is known"""
    state = world.enroll()
    before = world.count_accepted("unlock"), world.count_accepted("lock")
    middle = MiddleMan(world, between=lambda: world.prove(state, "lock"))
    middle.start()
    said = world.prove(state, "unlock", f"unix:{middle.path}", DENIED)
    middle.join(30)
    expect_equal((said["status"], said["repeated"]), ("internal", True), "what prove says")
    expect_equal((world.count_accepted("unlock"), world.count_accepted("lock")), (before[0] + 1, before[1] + 1), "rounds")


@situation
def two_processes(world):
    """eight processes with one state folder never use one number twice"""
    state = world.enroll()
    set_number(state, last_number(state) + 10**12)
    first = last_number(state)
    run = world.command_line
    running = [subprocess.Popen([run.path, *map(str, world.arguments(state, "status"))], env=run.environment, cwd=run.folder,
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE) for _ in range(8)]
    for process in running:
        output, complaint = process.communicate(timeout=120)
        expect_equal(process.returncode, ACCEPTED, f"exit status, with {complaint[-200:]!r}")
        expect_equal(json.loads(output)["repeated"], False, "repeated")
    expect_equal(last_number(state), first + 8, "the last number")


@situation
def a_clock_that_went_back(world):
    """a prover whose clock went back goes on from its last number, one by one"""
    state = world.enroll()
    ahead = last_number(state) + 86_400_000_000
    set_number(state, ahead)
    for count in (1, 2, 3):
        expect_equal(world.prove(state, "lock")["repeated"], False, "repeated")
        expect_equal(last_number(state), ahead + count, "the number")


@situation
def a_restored_folder(world):
    """a prover whose folder is restored from an older copy, or that lost its number, goes on by the clock"""
    state = world.enroll()
    copy = world.folder / "older"
    shutil.copytree(state, copy)
    for _ in range(3):
        world.prove(state, "lock")
    newest = last_number(state)
    shutil.rmtree(state)
    shutil.copytree(copy, state)
    shutil.rmtree(copy)
    expect_equal(world.prove(state, "unlock")["repeated"], False, "repeated")
    expect(last_number(state) > newest, "the number is not above those before")
    number_file(state).unlink()
    expect_equal(world.prove(state, "lock")["repeated"], False, "repeated, without the file")


@situation
def a_copy_that_is_ahead(world):
    """a prover that a copy of its folder has overtaken is carried out once, under a number above the copy's"""
    state = world.enroll()
    copy = world.folder / f"{state.name}-copy"
    shutil.copytree(state, copy)
    set_number(copy, last_number(copy) + 10**13)
    world.prove(copy, "lock")
    before = world.count_accepted("unlock")
    said = world.prove(state, "unlock")
    expect_equal((said["status"], said["repeated"]), ("accepted", False), "what prove says")
    expect_equal(world.count_accepted("unlock"), before + 1, "how often it was carried out")
    expect_equal(last_number(state), last_number(copy) + 1, "the number")


@situation
def copies_at_once(world):
    """eight processes with a copy of the folder each are all served, whichever number comes first"""
    state = world.enroll()
    copies = [world.folder / f"{state.name}-copy-{count}" for count in range(8)]
    for copy in copies:
        shutil.copytree(state, copy)
    before = world.count_accepted("unlock")
    run = world.command_line
    running = [subprocess.Popen([run.path, *map(str, world.arguments(copy, "unlock"))], env=run.environment, cwd=run.folder,
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE) for copy in copies]
    for process in running:
        output, complaint = process.communicate(timeout=120)
        expect_equal(process.returncode, ACCEPTED, f"exit status, with {complaint[-200:]!r}")
    expect_equal(world.count_accepted("unlock"), before + 8, "how often it was carried out")


@situation
def a_number_used_for_two_commands(world):
    """a copy that uses the same number for another command is refused, and nothing is carried out"""
    state = world.enroll()
    copy = world.folder / f"{state.name}-copy"
    shutil.copytree(state, copy)
    ahead = last_number(state) + 10**13
    set_number(state, ahead)
    set_number(copy, ahead)
    world.prove(state, "unlock")
    before = world.count_accepted("lock")
    said = world.prove(copy, "lock", exit_status=DENIED)
    expect_equal((said["status"], said["repeated"]), ("commandRefused", True), "what prove says")
    expect_equal(world.count_accepted("lock"), before, "how often it was carried out")


@situation
def damaged_files(world):
    """a damaged number is replaced with a warning, a file of the wrong kind is refused, and the largest number is the last"""
    state = world.enroll()
    for content in (b"", b"\n", b"x\n", b"12", b"007\n", b"-1\n", b" 1\n", b"9007199254740992\n", b"1" * 100_000, b"\x00" * 17):
        number_file(state).write_bytes(content)
        done = world.command_line.run(*world.arguments(state, "lock"))
        expect_equal(done.returncode, ACCEPTED, f"exit status with {content[:20]!r} and {done.stderr[-200:]!r}")
        expect(not content or b"damaged" in done.stderr, f"no warning of {content[:20]!r}: {done.stderr!r}")
    file = number_file(state)
    set_number(state, LARGEST - 1)
    expect_equal(world.prove(state, "lock")["repeated"], False, "repeated")
    expect_equal(last_number(state), LARGEST, "the last number there is")
    world.prove(state, "lock", exit_status=MALFORMED)
    file.chmod(0o644)
    expect(world.command_line.run(*world.arguments(state, "lock")).returncode != ACCEPTED, "a file open to others is taken")
    file.unlink()
    file.mkdir()
    expect(world.command_line.run(*world.arguments(state, "lock")).returncode != ACCEPTED, "a folder is taken for the file")
    file.rmdir()
    file.symlink_to(world.folder / "elsewhere")
    expect(world.command_line.run(*world.arguments(state, "lock")).returncode != ACCEPTED, "a link is followed")
    expect(not (world.folder / "elsewhere").exists(), "a link is followed")


@situation
def rounds_of_a_benchmark(world):
    """each round of a benchmark has a number of its own"""
    state = world.enroll()
    before = last_number(state)
    done = world.command_line.run("bench", "rounds", "--connect", world.endpoint, "--state", state, "--rounds", "30", timeout=120)
    expect_equal(done.returncode, ACCEPTED, f"exit status, with {done.stderr[-200:]!r}")
    expect(last_number(state) >= before + 31, "the number")


# Numbers as a peer of another make sends them.

def ask(world, grant, number, command="unlock", parameters=None, **changes):
    prover = world.connect()
    with prover.connection:
        outcome = prover.ask(grant, request=session.request(command, parameters, number=number), **changes)
    return outcome.status, (outcome.result or {}).get("highest")


@situation
def the_window(world):
    """numbers within 64 below the highest are accepted once each, and none below that; jumps, 0 and 2^53 - 1 count"""
    grant = world.grant(COSE)
    accepted, internal = STATUS["accepted"], STATUS["internal"]
    for number, expected in (
            (0, (accepted, None)), (0, (accepted, 0)), (100, (accepted, None)), (36, (accepted, None)), (35, (internal, 100)),
            (36, (internal, 100)), (99, (accepted, None)), (99, (internal, 100)), (100, (accepted, 100)), (1000, (accepted, None)),
            (936, (accepted, None)), (935, (internal, 1000)), (100, (internal, 1000)), (LARGEST, (accepted, None)),
            (LARGEST, (accepted, LARGEST)), (LARGEST - 64, (accepted, None)), (LARGEST - 65, (internal, LARGEST)),
            (None, (accepted, None))):
        expect_equal(ask(world, grant, number), expected, f"status and highest number after {number}")


@situation
def what_a_repetition_costs(world):
    """a repetition costs no use, and survives a kill; it is looked at after the version and before the uses"""
    grant = world.grant(COSE, maximumUses=1)
    accepted = STATUS["accepted"]
    expect_equal(ask(world, grant, 7), (accepted, None), "the first")
    entries = len(world.audit())
    for _ in range(3):
        expect_equal(ask(world, grant, 7), (accepted, 7), "a repetition")
    expect_equal(ask(world, grant, 7, imp=None), (accepted, 7), "without an integrity proof")
    expect_equal(len(world.audit()), entries, "entries of the audit log")
    expect_equal(ask(world, grant, 8), (STATUS["usesExhausted"], None), "the next")
    world.restart()
    expect_equal(ask(world, grant, 7), (accepted, 7), "after a kill")
    expect_equal(ask(world, grant, 7, "lock"), (STATUS["commandRefused"], 7), "another command")
    expect_equal(ask(world, grant, 7, parameters=["x"]), (STATUS["commandRefused"], 7), "other parameters")


@situation
def a_busy_device(world):
    """connections that send one request at once get it carried out once, and hear of its outcome or that it is under way"""
    grant = world.grant(COSE)
    ask(world, grant, 1, "status")
    before = world.count_accepted("unlock")
    provers = [world.connect() for _ in range(16)]
    attempts = [Attempt(prover.next_m1(), grant, request=session.request("unlock", number=2), by_reference=True) for prover in provers]
    for prover, attempt in zip(provers, attempts):
        prover.connection.send(attempt.message())
    outcomes = [attempt.verify(prover.connection.receive(30)) for prover, attempt in zip(provers, attempts)]
    for prover in provers:
        prover.connection.close()
    firsts = [o for o in outcomes if o.status == STATUS["accepted"] and "highest" not in o.result]
    expect_equal(len(firsts), 1, "rounds that were carried out")
    others = {o.status for o in outcomes if o is not firsts[0]}
    expect(others <= {STATUS["accepted"], STATUS["busy"]}, f"the others are told {others}")
    expect_equal(world.count_accepted("unlock"), before + 1, "how often it was carried out")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--holdfast", required=True, help="the command line under test")
    parser.add_argument("--only", help="run only the situations whose name has this text")
    options = parser.parse_args()
    checks = Checks()
    with tempfile.TemporaryDirectory(prefix="hf") as folder:
        world = OnceWorld(pathlib.Path(options.holdfast), folder)
        checks.run("the device and the service are made", world.prepare)
        try:
            for name, body in SITUATIONS:
                if options.only is None or options.only in name:
                    checks.run(name, body, world)
        finally:
            world.stop()
    return checks.finish()


if __name__ == "__main__":
    sys.exit(main())
