"""Users, their codes and their owner, of a board that runs the firmware, as far as they are a board's own matter.

Interop/test_users_against_device.py tries all else at boards too; these are about power, a line, a device without a clock, and
what people do with the command line.
"""

import json
import pathlib
import re
import secrets
import subprocess
import tempfile
import time

import pytest
from board_device import BoardDevice
from device_users import User, Users, accepted, expect_refused
from holdfast_peer import cbor, session
from holdfast_peer.activation import Activation
from provisioned import USERS_POLICY

PERIOD = 30
# In bytes.
MOST_STACK = 8192


class TimelyBoard(BoardDevice):
    """A board whose tokens, its only clock, have the right time; and programs at its line."""

    def grant(self, encoding, issuer=None, **claims):
        return super().grant(encoding, issuer, **{"issuedAt": int(time.time()), **claims})

    def run(self, *arguments, line="", status=0):
        """A command of the user's or prover's, while no other prover is at the line; what it prints."""
        self.leave_line()
        done = subprocess.run(
            [self.command_line.path, *map(str, arguments)],
            input=line.encode(),
            cwd=self.folder,
            timeout=300,
            env=self.command_line.environment,
            capture_output=True,
            check=False,
        )
        assert done.returncode == status, f"exit status of {arguments[:2]} ({done.stderr.decode()[-200:]})"
        return done.stdout.decode()

    def expect_well(self):
        """No fault was reported, and it still runs."""
        said = self.console.read_text()
        assert "fault" not in said, f"the console says {said[-300:]!r}"
        assert self.process is None or self.process.poll() is None, "the board has ended"


@pytest.fixture
def device(images_are_built, holdfast):
    with tempfile.TemporaryDirectory(prefix="hf", ignore_cleanup_errors=True) as name:
        policy = pathlib.Path(name) / "policy.json"
        policy.write_text(json.dumps(USERS_POLICY))
        device = TimelyBoard(holdfast, name, "--policy", policy)
        try:
            device.prepare()
            yield device
            device.expect_well()
        finally:
            device.close()


@pytest.fixture
def users(device):
    return Users(device)


# What belongs to a line.


def test_an_activation_that_is_changed_replayed_or_left_in_the_middle_makes_nobody_a_user(device, users):
    code = users.code("add", "max")
    prover = device.connect()
    opening = Activation(prover.next_m1(), code).opening()
    expect_refused("otpRejected", lambda: accepted(prover.exchange(opening[:-1] + bytes([opening[-1] ^ 1]))))
    expect_refused("otpRejected", lambda: accepted(prover.exchange(opening)))
    again = Activation(prover.next_m1(), code)
    again.take(accepted(prover.exchange(again.opening())))
    # An empty frame ends it.
    expect_refused("challengeExpired", lambda: accepted(device.connect().exchange(again.confirmation())))
    line = device.connect()
    last = Activation(line.next_m1(), code)
    line = line.connection
    line.send(last.opening())
    last.take(accepted(line.receive()))
    line.send(cbor.encode([23, secrets.token_bytes(32)]))
    expect_refused("otpRejected", lambda: accepted(line.receive()))
    assert "max" not in [each["user"] for each in users.owned("list")["users"]], "max is a user"
    users.activate(code)


def test_a_command_that_needs_a_password_and_a_seal_uses_up_both(device, users):
    user = users.hotp_user()
    user.expect("factorMissing", "lock", otp=user.hotp())
    user.expect("otpRejected", "lock", otp="000000", seal=user.seal("lock"))
    user.expect("sealRejected", "lock", otp=user.hotp(), seal="00000000")
    user.expect("accepted", "lock", otp=user.hotp(), seal=user.seal("lock"))


def test_a_lockout_outlives_starts_and_is_lifted_by_the_owners_code_only(device, users):
    user = users.hotp_user()
    for _ in range(5):
        user.expect("otpRejected", "configure", otp="0")
    for _ in range(3):
        device.restart()
        user.expect("lockedOut", "configure", otp=user.hotp(0))
    users.unlock(users.code("unlock", user.name))
    user.expect("accepted", "configure", otp=user.hotp(0))


def enroll(device):
    """A prover of the program's, in the folder `phone`."""
    service, descriptor = device.service()
    device.command_line.succeed("enroll", "--device", descriptor, "--service", service, "--state", "phone")


def test_the_command_line_does_what_the_readme_tells_people_to_do(device, users):
    """Enrol, activate, a password, a seal, the host's code, counters, a lockout: what the README tells people to do."""
    run, at = device.run, ("--connect", device.endpoint, "--timeout", 60)
    enroll(device)
    state, keys = ("--state", "phone"), ("--authenticator", "keys")

    def prove(command, *options, line="", status=0):
        return run("prove", *at, *state, "--command", command, *options, line=line, status=status)

    def password():
        return json.loads(run("otp", *keys, "--json"))["code"]

    prove("unlock")
    prove("configure", status=1)
    code = users.code("add", "alice", "--otp", "hotp", "--seal", "OCRA-1:HOTP-SHA256-8:C-QH64")
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
    code = users.code("unlock", "alice")
    run("otp", "unlock", *at, "--code", "-", line=code)
    run("otp", "unlock", *at, "--code", "-", line=code, status=1)
    prove("configure", "--user", "alice", "--otp", "-", line=password())
    assert device.owner("audit", "--verify").returncode == 0, "exit status of audit --verify"


def test_an_authenticator_follows_a_board_without_a_clock(device, users):
    """Passwords of the time: a board's time is that of its tokens, and an authenticator follows it by user-sync."""
    run, at = device.run, ("--connect", device.endpoint, "--timeout", 60)
    enroll(device)
    user = User(device, "tim")
    user.expect("accepted", "unlock")
    run("otp", "activate", *at, "--code", "-", "--no-pin", "--authenticator", "keys", line=users.code("add", "tim"))

    def password():
        return json.loads(run("otp", "--authenticator", "keys", "--json"))["code"]

    user.expect("accepted", "configure", otp=password())
    now = int(time.time())
    ahead = device.grant(session.COSE, issuedAt=now + 600, expires=now + 3600)
    assert user.ask("unlock", grant=ahead).status == 0, "status of a token from ten minutes ahead"
    user.expect("otpRejected", "configure", otp=password())
    run("otp", "sync", *at, "--state", "phone", "--authenticator", "keys")
    user.expect("accepted", "configure", otp=password())
    told = cbor.decode(user.expect("accepted", "user-sync", "tim").result["result"])[0]
    # What it expects of the user's clock: less by as much as put that into the step of the password.
    assert told > now + 600 - PERIOD, f"the device's time went back by {now + 600 - told} s"


def test_a_challenge_and_a_lockout_that_outlast_the_largest_number_can_be_read_again(device, users):
    """A challenge and a lockout that would outlast the largest number are written so that they can be read again."""
    user, last = users.hotp_user(), (1 << 53) - 1
    assert device.owner("floor", "--clock", str(last - 20)).returncode == 0, "exit status of floor"
    grant = device.grant(session.COSE, issuedAt=last - 20, expires=last)

    def expect_status(status, command, *parameters, **codes):
        assert session.NAMES[user.ask(command, *parameters, grant=grant, **codes).status] == status, (
            f"status of {command}"
        )

    expect_status("accepted", "host-code", user.name, "0123456789abcdef")
    for _ in range(5):
        expect_status("otpRejected", "configure", otp="0")
    expect_status("lockedOut", "configure", otp=user.hotp(0))
    device.restart()
    expect_status("lockedOut", "configure", otp=user.hotp(0))


def test_a_password_and_a_seal_by_the_longest_hash_fit_the_stack(device, users):
    suite = "OCRA-1:HOTP-SHA512-10:C-QH64"
    user = users.provision("--otp", "hotp", "--algorithm", "SHA512", "--digits", "10", "--seal", suite)
    user.expect("otpRejected", "lock", *["x" * 16] * 8, otp="0" * 10, seal="0" * 10, grant=device.grant(session.JOSE))
    used = max(map(int, re.findall(r"stack ([0-9]+)", device.console.read_text())))
    assert used <= MOST_STACK, f"{used} bytes of stack were used"
