#!/usr/bin/env python3
"""This peer as owner, user and prover against `holdfast device user` and `holdfast device serve`.

usage: users_against_device.py --holdfast PATH [--only TEXT]

One line for each check that failed, then the totals. Exit status 1 when a check failed.
"""

import argparse
import json
import secrets
import subprocess
import sys
import tempfile
import threading
import time

from holdfast_peer import cbor, oath, session, transport
from holdfast_peer.activation import Activation, Unlocking, seal_question
from holdfast_peer.checks import Checks, Failed, expect, expect_equal
from holdfast_peer.refusal import Refused
from holdfast_peer.session import COSE, STATUS
from prover_against_device import World

COUNTER_SUITE = "OCRA-1:HOTP-SHA256-8:C-QH64"
TIME_SUITE = "OCRA-1:HOTP-SHA256-8:QH64-T1M"
CHALLENGE_SUITE = "OCRA-1:HOTP-SHA256-8:QH64"
HOST_SUITE = "OCRA-1:HOTP-SHA256-8:QH16"
NAMES = {number: name for name, number in STATUS.items()}
CHECKS = []


def check(name):
    def register(body):
        CHECKS.append((name, body))
        return body
    return register


class User:
    """A user of the device, and what makes their codes."""

    def __init__(self, world, name, otp=None, seal=None, host=None):
        self.world, self.name = world, name
        self.otp_secret, self.seal_secret, self.host_secret = otp, seal, host
        self.counter = self.seal_counter = 0

    def hotp(self, counter=None):
        if counter is None:
            counter, self.counter = self.counter, self.counter + 1
        return oath.hotp(self.otp_secret, counter)

    def totp(self, steps_ahead=1):
        """Of the next step: whether or not this one ends meanwhile, the device looks there."""
        return oath.totp(self.otp_secret, int(time.time()) + 30 * steps_ahead)

    def seal(self, command, *parameters, counter=None):
        if counter is None:
            counter, self.seal_counter = self.seal_counter, self.seal_counter + 1
        return oath.ocra(COUNTER_SUITE, self.seal_secret, seal_question(command, parameters), counter=counter)

    def ask(self, command, *parameters, otp=None, seal=None, prover=None, grant=None, name=None):
        """The outcome of one round with these codes."""
        name = name or self.name
        request = session.request(command, parameters or None, otp and (name, otp), seal and (name, seal))
        own = prover or self.world.connect()
        try:
            return own.ask(grant or self.world.grant(COSE), command, request=request)
        finally:
            if prover is None:
                own.connection.close()

    def expect(self, status, command, *parameters, **codes):
        outcome = self.ask(command, *parameters, **codes)
        expect_equal(NAMES[outcome.status], status, f"status of {command}")
        return outcome


class UsersWorld(World):
    numbers = iter(range(1, 1000))

    def owned(self, *arguments):
        """What one of the owner's verbs about users prints."""
        done = self.owner("user", *arguments, "--json")
        expect_equal(done.returncode, 0, f"exit status of user {arguments[0]} ({done.stderr.decode()[-300:]})")
        return json.loads(done.stdout)

    def provision(self, *options, otp=True, seal=True):
        """A user whose secrets were made here."""
        name = f"user {next(self.numbers)}"
        files = []
        user = User(self, name, secrets.token_bytes(20) if otp else None, secrets.token_bytes(32) if seal else None)
        for option, secret in (("--otp-secret", user.otp_secret), ("--seal-secret", user.seal_secret)):
            if secret:
                file = self.folder / f"{name}{option}"
                file.write_text(secret.hex() + "\n")
                files += [option, file]
        expect_equal(self.owned("add", name, *files, *options), {"user": name, "state": "added"}, "what add prints")
        return user

    def hotp_user(self):
        return self.provision("--otp", "hotp", "--seal", COUNTER_SUITE)

    def code(self, verb, name, *options):
        printed = self.owned(verb, name, *options)
        expect_equal(sorted(printed), ["code", "seconds_remaining", "user"], "members")
        expect_equal((printed["user"], printed["seconds_remaining"]), (name, 600), "user and seconds")
        return printed["code"]

    def activate(self, code, prover=None):
        """Goes through an activation: the exchange, and what was granted."""
        own = prover or self.connect()
        activation = Activation(own.next_m1(), code)
        grant = activation.take(accepted(own.exchange(activation.opening())))
        own.connection.send(activation.confirmation())
        activation.finish(accepted(own.connection.receive()))
        return activation, grant

    def unlock(self, code):
        prover = self.connect()
        unlocking = Unlocking(prover.next_m1(), code)
        unlocking.finish(accepted(prover.exchange(unlocking.message())))

    def state(self, user):
        return next(each for each in self.owned("list")["users"] if each["user"] == user.name)


def accepted(message):
    """`message`, unless it is a refusal."""
    if cbor.decode(message)[0] == 3:
        raise Refused(NAMES[session.parse_message_3(message)["status"]])
    return message


def expect_refused(status, body, *arguments):
    try:
        body(*arguments)
    except Refused as refused:
        expect_equal(str(refused).split(":")[0], status, "refusal")
        return
    raise Failed("it was not refused")


# One-time passwords

@check("a password from a counter is accepted once, in its window, and none before it")
def _(world):
    user = world.hotp_user()
    user.expect("otpRejected", "configure", otp=user.hotp(10))
    user.expect("accepted", "configure", otp=user.hotp(9))
    for counter in (9, 0, 8):
        user.expect("otpRejected", "configure", otp=user.hotp(counter))
    user.expect("accepted", "configure", otp=user.hotp(10))


@check("a password from the time is accepted once")
def _(world):
    user = world.provision()
    code = user.totp()
    user.expect("accepted", "configure", otp=code)
    user.expect("otpRejected", "configure", otp=code)
    user.expect("otpRejected", "configure", otp=user.totp(0))
    user.expect("otpRejected", "configure", otp=user.totp(-4))


@check("two passwords in a row resynchronise a counter, and the pair is good once")
def _(world):
    user = world.hotp_user()
    user.expect("otpRejected", "configure", otp=user.hotp(60))
    user.expect("otpRejected", "configure", otp=user.hotp(60))
    user.expect("accepted", "configure", otp=user.hotp(61))
    user.expect("otpRejected", "configure", otp=user.hotp(60))
    user.expect("otpRejected", "configure", otp=user.hotp(61))
    user.expect("accepted", "configure", otp=user.hotp(62))


@check("a code that is missing, another user's, or nobody's")
def _(world):
    user, other = world.hotp_user(), world.hotp_user()
    expect_equal(user.expect("factorMissing", "configure").result.get("missing"), session.OTP, "missing factors")
    user.expect("factorMissing", "configure", seal=user.seal("configure"))
    user.expect("otpRejected", "configure", otp=other.hotp(0))
    user.expect("otpRejected", "configure", otp=user.hotp(0), name="nobody at all")
    user.expect("commandRefused", "configure", otp=user.hotp(0), grant=world.grant(COSE, user=other.name))
    user.expect("accepted", "configure", otp=user.hotp(0), grant=world.grant(COSE, user=user.name))
    user.expect("accepted", "unlock", otp="000000", seal="0", name="nobody at all")


@check("five wrong passwords lock a user out, for all commands with codes, until the owner's code")
def _(world):
    user = world.hotp_user()
    for count in range(1, 6):
        outcome = user.expect("otpRejected", "configure", otp="0000000000")
        expect_equal(world.state(user)["failures"], count, "failures")
    expect_equal(outcome.result.get("retryAfter"), 30, "seconds to wait")
    waiting = user.expect("lockedOut", "configure", otp=user.hotp(0)).result["retryAfter"]
    expect(0 < waiting <= 30, f"{waiting} s to wait")
    user.expect("lockedOut", "open-safe", seal=user.seal("open-safe"))
    user.expect("accepted", "unlock")
    code = world.code("unlock", user.name)
    expect_refused("otpRejected", world.activate, code)
    world.unlock(code)
    user.expect("accepted", "configure", otp=user.hotp(0))
    expect_refused("otpRejected", world.unlock, code)
    expect_equal(world.state(user)["failures"], 0, "failures")


@check("a lockout, a failure and a used password survive SIGKILL")
def _(world):
    user, other = world.hotp_user(), world.hotp_user()
    for _ in range(5):
        user.expect("otpRejected", "configure", otp="0")
    other.expect("accepted", "configure", otp=other.hotp(0))
    other.expect("otpRejected", "configure", otp="0")
    world.restart()
    user.expect("lockedOut", "configure", otp=user.hotp(0))
    other.expect("otpRejected", "configure", otp=other.hotp(0))
    expect_equal(world.state(other)["failures"], 2, "failures")
    expect_equal(world.owner("audit", "--verify").returncode, 0, "exit status of audit --verify")


@check("of twenty connections with one password, exactly one is accepted")
def _(world):
    for make in (lambda user: user.hotp(0), lambda user: user.totp()):
        user = world.hotp_user() if make(User(world, "", b"0")) == oath.hotp(b"0", 0) else world.provision()
        code, grant, statuses = make(user), world.grant(COSE), []
        provers = [world.connect() for _ in range(20)]
        for prover in provers:
            prover.next_m1()
        threads = [threading.Thread(target=lambda each: statuses.append(user.ask("configure", otp=code, prover=each,
                                                                                 grant=grant).status), args=(prover,))
                   for prover in provers]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
        for prover in provers:
            prover.connection.close()
        names = sorted(NAMES[status] for status in statuses)
        expect_equal((len(names), names.count("accepted")), (20, 1), f"answers {names}")
        expect(set(names) <= {"accepted", "otpRejected", "lockedOut"}, f"answers {names}")


# Seals

@check("a seal is good once, over exactly the command and its parameters")
def _(world):
    user = world.hotp_user()
    seal = user.seal("open-safe", "7", "now", counter=0)
    for parameters in (("7",), ("now", "7"), ("7", "now", ""), ("7now",), ("8", "now"), ()):
        user.expect("sealRejected", "open-safe", *parameters, seal=seal)
        world.unlock(world.code("unlock", user.name))
    user.expect("sealRejected", "open-safe", "7", "now", seal=user.seal("unlock", "7", "now", counter=0))
    user.expect("accepted", "open-safe", "7", "now", seal=seal)
    user.expect("sealRejected", "open-safe", "7", "now", seal=seal)
    user.expect("accepted", "open-safe", seal=user.seal("open-safe", counter=1))


@check("a seal by the time is good once, and parameters under a seal have sixteen characters")
def _(world):
    user = world.provision(otp=False)
    def seal(*parameters):
        return oath.ocra(TIME_SUITE, user.seal_secret, seal_question("open-safe", parameters), time=int(time.time()) // 60)
    user.expect("commandRefused", "open-safe", "12345678901234567", seal=seal("12345678901234567"))
    first = seal("ä" * 16)
    user.expect("accepted", "open-safe", "ä" * 16, seal=first)
    user.expect("sealRejected", "open-safe", "ä" * 16, seal=first)
    user.expect("otpRejected", "configure", otp="000000")


@check("a seal over the device's challenge, and the host code that came with it")
def _(world):
    code = world.code("add", "ann", "--otp", "none", "--seal", CHALLENGE_SUITE)
    activation, grant = world.activate(code)
    expect_equal(grant["methods"], {2: [3, CHALLENGE_SUITE]}, "methods")
    user = User(world, "ann", seal=activation.seal, host=activation.host)
    def challenge():
        ours = secrets.token_hex(8)
        theirs, host_code = user.expect("accepted", "host-code", "ann", ours).result["result"].decode().split(" ")
        expect_equal(host_code, oath.ocra(HOST_SUITE, user.host_secret, ours + theirs), "host code")
        return theirs
    def seal(theirs):
        return oath.ocra(CHALLENGE_SUITE, user.seal_secret, theirs + seal_question("open-safe", ("7",)))
    user.expect("sealRejected", "open-safe", "7", seal=seal("0" * 16))
    first = seal(challenge())
    user.expect("accepted", "open-safe", "7", seal=first)
    user.expect("sealRejected", "open-safe", "7", seal=first)
    pending = challenge()
    refused = user.expect("busy", "host-code", "ann", secrets.token_hex(8))
    expect_equal(refused.result["result"], b"challengePending", "why")
    user.expect("accepted", "open-safe", "7", seal=seal(pending))
    pending = challenge()
    user.expect("sealRejected", "open-safe", "8", seal=seal(pending))
    user.expect("sealRejected", "open-safe", "7", seal=seal(pending))
    user.expect("accepted", "open-safe", "7", seal=seal(challenge()))
    for wrong in ("", "0" * 15, "g" * 16, "0" * 17):
        user.expect("internal", "host-code", "ann", wrong)
    expect_equal(user.expect("accepted", "host-code", "nobody", "0" * 16).result["result"], b"", "answer for nobody")


# Activation

@check("an activation gives both ends the same secrets")
def _(world):
    code = world.code("add", "kim", "--otp", "hotp", "--algorithm", "SHA512", "--digits", "8", "--seal", COUNTER_SUITE)
    activation, grant = world.activate(code)
    expect_equal((grant["user"], grant["length"]), ("kim", 16), "user and length")
    expect_equal(grant["methods"], {1: [1, 3, 8], 2: [3, COUNTER_SUITE]}, "methods")
    expect(abs(grant["time"] - time.time()) < 100, "the device's time is wrong")
    user = User(world, "kim", activation.otp, activation.seal, activation.host)
    user.expect("accepted", "configure", otp=oath.hotp(activation.otp, 0, 8, "SHA512"))
    user.expect("accepted", "open-safe", "1", seal=user.seal("open-safe", "1"))
    expect_refused("otpRejected", world.activate, code)


@check("an activation by lower case and look-alike letters; a code of the user before is void")
def _(world):
    first = world.code("add", "lou")
    second = world.code("add", "lou")
    expect_refused("otpRejected", world.activate, first)
    world.activate(second.lower().replace("0", "o").replace("1", "l").replace("-", " "))
    expect_equal(world.owner("user", "add", "lou").returncode, 1, "exit status of adding one who is there")
    third = world.code("add", "lou", "--replace")
    world.activate(third)


@check("an activation that is changed, out of order or replayed makes nobody a user")
def _(world):
    code, stale = world.code("add", "max"), prover_round(world)
    prover = world.connect()
    activation = Activation(prover.next_m1(), code)
    opening = activation.opening()
    expect_refused("otpRejected", lambda: accepted(prover.exchange(opening[:-1] + bytes([opening[-1] ^ 1]))))
    prover.next_m1()
    expect_refused("otpRejected", lambda: accepted(prover.exchange(opening)))
    again = Activation(prover.next_m1(), code)
    again.take(accepted(prover.exchange(again.opening())))
    prover.connection.send(stale)
    expect_refused("challengeExpired", lambda: accepted(prover.connection.receive()))
    prover.next_m1()
    expect_refused("challengeExpired", lambda: accepted(prover.exchange(again.confirmation())))
    last = Activation(prover.next_m1(), code)
    last.take(accepted(prover.exchange(last.opening())))
    wrong = cbor.encode([23, secrets.token_bytes(32)])
    prover.connection.send(wrong)
    expect_refused("otpRejected", lambda: accepted(prover.connection.receive()))
    expect("max" not in [each["user"] for each in world.owned("list")["users"]], "max is a user")
    world.activate(code)


def prover_round(world):
    """An M2 to some other M1."""
    other = world.connect()
    with other.connection:
        return other.attempt(world.grant(COSE)).message()


@check("of twenty connections with one activation code, exactly one is activated")
def _(world):
    code, outcomes = world.code("add", "noa", "--otp", "hotp"), []
    def run():
        try:
            outcomes.append(world.activate(code)[0].otp)
        except Refused as refused:
            outcomes.append(str(refused))
    threads = [threading.Thread(target=run) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    winners = [each for each in outcomes if isinstance(each, bytes)]
    expect_equal((len(outcomes), len(winners)), (20, 1), f"outcomes {outcomes}")
    User(world, "noa", winners[0]).expect("accepted", "configure", otp=oath.hotp(winners[0], 0))


@check("a user who is removed has no codes any more, nor has a code that waits")
def _(world):
    user = world.hotp_user()
    user.expect("accepted", "configure", otp=user.hotp())
    waiting = world.code("add", user.name, "--replace")
    world.owned("remove", user.name)
    user.expect("otpRejected", "configure", otp=user.hotp())
    expect_refused("otpRejected", world.activate, waiting)
    expect_equal(world.owner("user", "unlock", user.name).returncode, 1, "exit status of unlocking nobody")


@check("a prover bound to another user cannot lock a user out through right seals, or watch that user")
def _(world):
    """The attack: before each of bob's seals, mallory asks for a new challenge in bob's name."""
    activation, _ = world.activate(world.code("add", "bob", "--otp", "none", "--seal", CHALLENGE_SUITE))
    bob, mallory = User(world, "bob", seal=activation.seal, host=activation.host), User(world, "mallory")
    bound = world.grant(COSE, user="mallory", commands=["host-code", "user-sync"])
    shared = world.grant(COSE, commands=["host-code"])
    for number in range(8):
        answer = bob.expect("accepted", "host-code", "bob", secrets.token_hex(8)).result["result"].decode()
        for command, *parameters in (("host-code", "bob", secrets.token_hex(8)), ("user-sync", "bob")):
            refused = mallory.expect("commandRefused", command, *parameters, grant=bound)
            expect_equal(refused.result["result"], b"anotherUser", "why")
        # A shared terminal's token may name bob, and still does not replace what he is about to answer.
        late = mallory.expect("busy", "host-code", "bob", secrets.token_hex(8), grant=shared)
        expect_equal(late.result["result"], b"challengePending", "why")
        seal = oath.ocra(CHALLENGE_SUITE, bob.seal_secret, answer.split(" ")[0] + seal_question("open-safe", (str(number),)))
        bob.expect("accepted", "open-safe", str(number), seal=seal)
    mallory.expect("accepted", "host-code", "mallory", secrets.token_hex(8), grant=bound)
    entries = json.loads(world.owner("audit", "--json", "--last", "40").stdout)["entries"]
    named = [entry.get("user") for entry in entries if entry.get("command") == "host-code"]
    expect_equal(named[-9:], ["bob"] * 8 + ["mallory"], "the users whom the audit log names")


# Synchronising, and the prover

@check("user-sync tells where a counter and a clock are")
def _(world):
    user = world.hotp_user()
    user.expect("accepted", "configure", otp=user.hotp(4))
    user.expect("accepted", "open-safe", seal=user.seal("open-safe", counter=2))
    now, otp, seal = cbor.decode(user.expect("accepted", "user-sync", user.name).result["result"])
    expect_equal((otp, seal), (5, 3), "next positions")
    expect(abs(now - time.time()) < 100, "the device's time is wrong")
    expect_equal(user.expect("accepted", "user-sync", "nobody").result["result"], b"", "answer for nobody")
    user.expect("internal", "user-sync")


@check("holdfast prove gives a password from standard input and a seal from a file")
def _(world):
    run = world.command_line
    user = world.hotp_user()
    service, state = world.folder / "service", world.folder / "state"
    run.succeed("service", "init", "--dir", service)
    issuer = world.folder / "service.jwk"
    issuer.write_text(json.dumps(run.read_json("service", "show", "--dir", service)["issuer"]))
    expect_equal(world.owner("trust", issuer).returncode, 0, "exit status of trust")
    descriptor = world.folder / "descriptor.json"
    descriptor.write_bytes(world.owner("show", "--json").stdout)
    run.succeed("service", "device", "add", "--dir", service, descriptor)
    run.succeed("enroll", "--device", descriptor, "--service", service, "--state", state)

    def prove(command, *options, line=""):
        return subprocess.run([run.path, "prove", "--connect", world.endpoint, "--state", str(state), "--command",
                               command, *options], input=line.encode(), env=run.environment, cwd=world.folder, timeout=60,
                              capture_output=True, check=False)

    policy = json.loads((world.device_folder / "policy.json").read_text())
    policy["commands"]["configure"]["factors"] = ["integrity", "device", "otp", "seal"]
    (world.device_folder / "policy.json").write_text(json.dumps(policy))
    try:
        code, seal = user.hotp(), user.seal("configure", "a", "b")
        file = world.folder / "seal"
        file.write_text(f"{seal[:4]} {seal[4:]}\n")
        arguments = ["--user", user.name, "--otp", "-", "--seal", str(file), "--parameter", "a", "--parameter", "b"]
        done = prove("configure", *arguments, line=f"{code[:3]} {code[3:]}\n")
        expect_equal(done.returncode, 0, f"exit status ({done.stderr.decode()[-200:]})")
        done = prove("configure", *arguments, line=f"{code}\n")
        expect_equal(done.returncode, 1, "exit status of the same codes again")
        expect(b"code" in done.stderr and code.encode() not in done.stdout + done.stderr, "what is said of it")
        for line, status in (("", 2), ("12a456\n", 2), ("12345678901234567\n", 2)):
            expect_equal(prove("configure", *arguments, line=line).returncode, status, f"exit status for {line!r}")
        expect_equal(prove("configure", "--otp", "-", line="1\n").returncode, 64, "exit status without a user")
        expect_equal(prove("configure", "--user", "x").returncode, 64, "exit status without a code")
        expect_equal(world.state(user)["failures"], 1, "failures")
    finally:
        policy["commands"]["configure"]["factors"] = ["integrity", "device", "otp"]
        (world.device_folder / "policy.json").write_text(json.dumps(policy))


@check("holdfast otp activate leaves records that are there alone, and the code good")
def _(world):
    run = world.command_line
    folder = world.folder / "keys"

    def activate(code, *options):
        return subprocess.run([run.path, "otp", "activate", "--connect", world.endpoint, "--code", "-", "--no-pin",
                               "--authenticator", folder, *options], input=code.encode() + b"\n", env=run.environment,
                              cwd=world.folder, timeout=60, capture_output=True, check=False)

    expect_equal(activate(world.code("add", "yves")).returncode, 0, "exit status")
    code = world.code("add", "yves", "--replace")
    done = activate(code)
    expect_equal(done.returncode, 1, "exit status beside records of the same user")
    expect(b"--replace" in done.stderr and code.encode() not in done.stderr, "what is said of it")
    expect_equal(activate(code, "--replace").returncode, 0, "exit status with --replace")
    world.owner("user", "remove", "yves")


@check("secrets of files are refused where they are none, and nothing is changed")
def _(world):
    def users():
        # A lockout runs on meanwhile.
        return [{**user, "locked_seconds": 0} for user in world.owned("list")["users"]]

    before = users()
    file = world.folder / "secret"
    for text, options in (("", ()), ("zz", ()), ("1", ()), ("00" * 65, ()), ("MZXW6", ("--format", "base32", "--digits", "3")),
                          ("MZXW1", ("--format", "base32"))):
        file.write_text(text + "\n")
        done = world.owner("user", "add", "zoe", "--otp-secret", file, *options)
        expect(done.returncode in (2, 64), f"exit status {done.returncode} for {text[:8]!r} {options}")
        expect(len(text) < 5 or text.encode() not in done.stdout + done.stderr, "the secret is shown")
    file.write_text("00" * 20)
    for options in (("--otp", "none"), ("--seal", "none", "--seal-secret", file)):
        done = world.owner("user", "add", "zoe", "--otp-secret", file, *options)
        expect(done.returncode == 64, f"exit status {done.returncode} for a secret that {options} leaves without use")
    for options in (("--counter", "1"), ("--otp", "totp", "--counter", "0"), ("--seal-secret", "-", "--otp-secret", "-")):
        done = world.owner("user", "add", "zoe", "--otp-secret", file, *options)
        expect_equal(done.returncode, 64, f"exit status for {options}")
    expect_equal(world.owner("user", "add", "zoe", "--counter", "1").returncode, 64, "exit status for a counter without a secret")
    for name in ("", "x" * 33, "a\nb", "a\u202eb", "a\u009bb"):
        expect_equal(world.owner("user", "add", name, "--otp-secret", file).returncode, 64, f"exit status for the name {name!r}")
    expect_equal(users(), before, "users")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--holdfast", required=True, help="the command line under test")
    parser.add_argument("--only", default="", help="run only the checks whose name has this text")
    options = parser.parse_args()
    checks = Checks()
    with tempfile.TemporaryDirectory(prefix="hf") as folder:
        world = UsersWorld(options.holdfast, folder)
        checks.run("the device is made, shown and told whom to trust", world.prepare)
        if not checks.failed:
            checks.run("the device answers on its socket", world.start)
        if not checks.failed:
            for name, body in CHECKS:
                if options.only in name:
                    checks.run(name, body, world)
        if world.process is not None:
            world.stop()
    return checks.finish()


if __name__ == "__main__":
    sys.exit(main())
