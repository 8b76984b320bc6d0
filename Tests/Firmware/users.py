#!/usr/bin/python3
"""Users, their codes and their owner, of a board that runs the firmware, as far as they are a board's own matter.

usage: users.py --holdfast PATH [--only TEXT]

The checks of Interop/users_against_device.py are attacks.py's; these are about power, a line, a device without a clock, and what
people do with the command line. One line for each check that failed, then the totals. Exit status 1 when a check failed.
"""

import contextlib
import json
import re
import secrets
import subprocess
import sys
import tempfile
import time

from provisioned import Lock, Owner, main
from holdfast_peer import cbor, oath, session
from holdfast_peer.activation import Activation
from holdfast_peer.checks import expect, expect_equal
from holdfast_peer.command_line import CommandLine
from line import DENIED
from users_against_device import NAMES, User, UsersWorld, accepted, expect_refused

PERIOD = 30
# In bytes.
MOST_STACK = 8192
POLICY = """{"version": 1, "commands": {
  "unlock": {"factors": ["integrity", "device"]}, "status": {"factors": ["device"]},
  "configure": {"factors": ["integrity", "device", "otp"]}, "open-safe": {"factors": ["integrity", "device", "seal"]},
  "lock": {"factors": ["integrity", "device", "otp", "seal"]},
  "host-code": {"factors": ["device"]}, "user-sync": {"factors": ["device"]}}}"""


class OwnersLine(CommandLine):
    """The command line, for which the board is switched off while its owner has the flash."""

    world = None

    def run(self, *arguments, **options):
        arguments = list(arguments)
        if "--dir" not in arguments or arguments[arguments.index("--dir") + 1] != self.world.device_folder:
            return super().run(*arguments, **options)
        at = arguments.index("--dir")
        arguments[at:at + 2] = ["--firmware", self.world.lock.image]
        with self.world.switched_off():
            return super().run(*arguments, **options)


class BoardWorld(UsersWorld):
    """A board in place of `device serve`."""

    def __init__(self, owner, data, descriptor, folder):
        super().__init__(owner.command_line.path, folder)
        self.command_line = OwnersLine(owner.command_line.path, folder)
        self.command_line.world = self
        self.issuer, self.descriptor = owner.issuer, descriptor
        self.place = self.folder / "board"
        self.place.mkdir()
        self.lock = Lock(self.place, data, descriptor)

    @property
    def process(self):
        return self.lock.process

    @process.setter
    def process(self, _):
        pass

    @contextlib.contextmanager
    def switched_off(self):
        self.lock.cut_power()
        try:
            yield
        finally:
            self.start()

    def start(self):
        self.lock.cut_power()
        self.lock = Lock(self.place, self.lock.flash(), self.descriptor)

    def connect(self):
        prover = self.lock.prover()
        # The line stays when a prover goes.
        prover.connection = Kept(self.lock.line)
        return prover

    def grant(self, encoding, issuer=None, **claims):
        """A board has no clock but its tokens': this one's is right."""
        return super().grant(encoding, issuer, **{"issuedAt": int(time.time()), **claims})

    def run(self, *arguments, line="", status=0):
        """A command of the user's or prover's, at the board's line, which this peer leaves to it."""
        self.lock.socket.close()
        try:
            done = subprocess.run([self.command_line.path, *map(str, arguments)], input=line.encode(), cwd=self.folder, timeout=60,
                                  env=self.command_line.environment, capture_output=True, check=False)
        finally:
            self.lock.reconnect()
        expect_equal(done.returncode, status, f"exit status of {arguments[:2]} ({done.stderr.decode()[-200:]})")
        return done.stdout.decode()


class Kept:
    """A line that does not end."""

    def __init__(self, line):
        self.send, self.receive, self.handle = line.send, line.receive, line.handle

    def close(self):
        pass


# What belongs to a line.

def changed_or_replayed(world):
    """An activation that is changed, replayed or left in the middle makes nobody a user."""
    code = world.code("add", "max")
    prover = world.connect()
    opening = Activation(prover.next_m1(), code).opening()
    expect_refused("otpRejected", lambda: accepted(prover.exchange(opening[:-1] + bytes([opening[-1] ^ 1]))))
    expect_refused("otpRejected", lambda: accepted(prover.exchange(opening)))
    again = Activation(prover.next_m1(), code)
    again.take(accepted(prover.exchange(again.opening())))
    # An empty frame ends it.
    expect_refused("challengeExpired", lambda: accepted(world.connect().exchange(again.confirmation())))
    last = Activation(world.connect().next_m1(), code)
    line = world.lock.line
    line.send(last.opening())
    last.take(accepted(line.receive()))
    line.send(cbor.encode([23, secrets.token_bytes(32)]))
    expect_refused("otpRejected", lambda: accepted(line.receive()))
    expect("max" not in [each["user"] for each in world.owned("list")["users"]], "max is a user")
    world.activate(code)


def both_codes(world):
    """A command that needs a password and a seal: one wrong, and the other is used up too."""
    user = world.hotp_user()
    user.expect("factorMissing", "lock", otp=user.hotp())
    user.expect("otpRejected", "lock", otp="000000", seal=user.seal("lock"))
    user.expect("sealRejected", "lock", otp=user.hotp(), seal="00000000")
    user.expect("accepted", "lock", otp=user.hotp(), seal=user.seal("lock"))


def lockout_survives(world):
    """A lockout outlives starts, and is lifted by the owner's code alone."""
    user = world.hotp_user()
    for _ in range(5):
        user.expect("otpRejected", "configure", otp="0")
    for _ in range(3):
        world.start()
        user.expect("lockedOut", "configure", otp=user.hotp(0))
    world.unlock(world.code("unlock", user.name))
    user.expect("accepted", "configure", otp=user.hotp(0))


def enroll(world):
    owner = world.command_line
    owner.succeed("service", "init", "--dir", "service")
    (world.folder / "service.json").write_bytes(owner.succeed("service", "show", "--dir", "service", "--json"))
    owner.succeed("device", "trust", "--dir", world.device_folder, "service.json")
    (world.folder / "lock.json").write_bytes(owner.succeed("device", "show", "--dir", world.device_folder, "--json"))
    owner.succeed("service", "device", "add", "--dir", "service", "lock.json")
    owner.succeed("enroll", "--device", "lock.json", "--service", "service", "--state", "phone")


def by_command_line(world):
    """Enrol, activate, a password, a seal, the host's code, counters, a lockout: what the README tells people to do."""
    run, at = world.run, ("--connect", f"unix-stream:{world.place / 'socket'}")
    enroll(world)
    state, keys = ("--state", "phone"), ("--authenticator", "keys")

    def prove(command, *options, line="", status=0):
        return run("prove", *at, *state, "--command", command, *options, line=line, status=status)

    def password():
        return json.loads(run("otp", *keys, "--json"))["code"]

    prove("unlock")
    prove("configure", status=1)
    code = world.code("add", "alice", "--otp", "hotp", "--seal", "OCRA-1:HOTP-SHA256-8:C-QH64")
    run("otp", "activate", *at, "--code", "-", "--no-pin", *keys, line=code)
    run("otp", "activate", *at, "--code", "-", "--no-pin", *keys, "--replace", line=code, status=1)
    first = password()
    prove("configure", "--user", "alice", "--otp", "-", line=first)
    prove("configure", "--user", "alice", "--otp", "-", line=first, status=1)
    seal = json.loads(run("seal", *keys, "--command", "open-safe", "--parameter", "7", "--json"))["seal"]
    prove("open-safe", "--parameter", "8", "--user", "alice", "--seal", "-", line=seal, status=1)
    prove("open-safe", "--parameter", "7", "--user", "alice", "--seal", "-", line=seal)
    prove("open-safe", "--parameter", "7", "--user", "alice", "--seal", "-", line=seal, status=1)
    run("otp", "check-host", *at, *state, *keys)
    # Passwords that went nowhere.
    for _ in range(3):
        password()
    run("otp", "sync", *at, *state, *keys)
    prove("configure", "--user", "alice", "--otp", "-", line=password())
    for _ in range(5):
        prove("configure", "--user", "alice", "--otp", "-", line="000000", status=1)
    prove("configure", "--user", "alice", "--otp", "-", line=password(), status=1)
    code = world.code("unlock", "alice")
    run("otp", "unlock", *at, "--code", "-", line=code)
    run("otp", "unlock", *at, "--code", "-", line=code, status=1)
    prove("configure", "--user", "alice", "--otp", "-", line=password())
    world.command_line.succeed("device", "audit", "--verify", "--dir", world.device_folder)


def without_a_clock(world):
    """Passwords of the time: a board's time is that of its tokens, and an authenticator follows it by user-sync."""
    run, at = world.run, ("--connect", f"unix-stream:{world.place / 'socket'}")
    enroll(world)
    user = User(world, "tim")
    user.expect("accepted", "unlock")
    run("otp", "activate", *at, "--code", "-", "--no-pin", "--authenticator", "keys", line=world.code("add", "tim"))

    def password():
        return json.loads(run("otp", "--authenticator", "keys", "--json"))["code"]

    user.expect("accepted", "configure", otp=password())
    now = int(time.time())
    ahead = world.grant(session.COSE, issuedAt=now + 600, expires=now + 3600)
    expect_equal(user.ask("unlock", grant=ahead).status, 0, "status of a token from ten minutes ahead")
    user.expect("otpRejected", "configure", otp=password())
    run("otp", "sync", *at, "--state", "phone", "--authenticator", "keys")
    user.expect("accepted", "configure", otp=password())
    told = cbor.decode(user.expect("accepted", "user-sync", "tim").result["result"])[0]
    # What it expects of the user's clock: less by as much as put that into the step of the password.
    expect(told > now + 600 - PERIOD, f"the device's time went back by {now + 600 - told} s")


def end_of_time(world):
    """A challenge and a lockout that would outlast the largest number are written so that they can be read again."""
    user, last = world.hotp_user(), (1 << 53) - 1
    world.command_line.succeed("device", "floor", "--dir", world.device_folder, "--clock", str(last - 20))
    grant = world.grant(session.COSE, issuedAt=last - 20, expires=last)

    def expect_status(status, command, *parameters, **codes):
        expect_equal(NAMES[user.ask(command, *parameters, grant=grant, **codes).status], status, f"status of {command}")

    expect_status("accepted", "host-code", user.name, "0123456789abcdef")
    for _ in range(5):
        expect_status("otpRejected", "configure", otp="0")
    expect_status("lockedOut", "configure", otp=user.hotp(0))
    world.start()
    expect_status("lockedOut", "configure", otp=user.hotp(0))


def longest_codes(world):
    """A password and a seal by the longest hash, over the longest request, fit the stack."""
    suite = "OCRA-1:HOTP-SHA512-10:C-QH64"
    user = world.provision("--otp", "hotp", "--algorithm", "SHA512", "--digits", "10", "--seal", suite)
    user.expect("otpRejected", "lock", *["x" * 16] * 8, otp="0" * 10, seal="0" * 10, grant=world.grant(session.JOSE))
    used = max(map(int, re.findall(r"stack ([0-9]+)", world.lock.console())))
    expect(used <= MOST_STACK, f"{used} bytes of stack were used")


OWN = [changed_or_replayed, both_codes, lockout_survives, by_command_line, without_a_clock, end_of_time, longest_codes]


def suite(owner, checks, only):
    (owner.folder / "policy.json").write_text(POLICY)
    image, descriptor = owner.provision("flash.img", "--policy", "policy.json")

    def run(body):
        with tempfile.TemporaryDirectory(prefix="hf") as folder:
            world = BoardWorld(owner, image.read_bytes(), descriptor, folder)
            try:
                body(world)
                world.lock.expect_well()
            finally:
                world.lock.cut_power()

    for body in OWN:
        name = body.__doc__.split("\n")[0].rstrip(".")
        if only in name:
            checks.run(name, run, body)


if __name__ == "__main__":
    sys.exit(main(suite))
