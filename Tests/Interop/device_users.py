"""Users of a device under test, what their owner does for them, and what makes their codes."""

import itertools
import json
import secrets
import time

from devices import expect_status
from holdfast_peer import cbor, oath, session
from holdfast_peer.activation import Activation, Unlocking, seal_question
from holdfast_peer.refusal import Refused
from holdfast_peer.session import COSE

COUNTER_SUITE = "OCRA-1:HOTP-SHA256-8:C-QH64"
TIME_SUITE = "OCRA-1:HOTP-SHA256-8:QH64-T1M"
CHALLENGE_SUITE = "OCRA-1:HOTP-SHA256-8:QH64"
HOST_SUITE = "OCRA-1:HOTP-SHA256-8:QH16"


class User:
    """A user of the device, and what makes their codes."""

    def __init__(self, device, name, otp=None, seal=None, host=None):
        self.device, self.name = device, name
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
        own = prover or self.device.connect()
        try:
            return own.ask(grant or self.device.grant(COSE), command, request=request)
        finally:
            if prover is None:
                own.connection.close()

    def expect(self, status, command, *parameters, **codes):
        outcome = self.ask(command, *parameters, **codes)
        expect_status(outcome, status, f"status of {command}")
        return outcome


class Users:
    """What the owner of a device does about its users, and what they do at it."""

    numbers = itertools.count(1)

    def __init__(self, device):
        self.device = device

    def owned(self, *arguments):
        """What one of the owner's verbs about users prints."""
        done = self.device.owner("user", *arguments, "--json")
        assert done.returncode == 0, f"exit status of user {arguments[0]} ({done.stderr.decode()[-300:]})"
        return json.loads(done.stdout)

    def provision(self, *options, otp=True, seal=True):
        """A user whose secrets were made here."""
        name = f"user {next(self.numbers)}"
        files = []
        user = User(
            self.device, name, secrets.token_bytes(20) if otp else None, secrets.token_bytes(32) if seal else None
        )
        for option, secret in (("--otp-secret", user.otp_secret), ("--seal-secret", user.seal_secret)):
            if secret:
                file = self.device.folder / f"{name}{option}"
                file.write_text(secret.hex() + "\n")
                files += [option, file]
        assert self.owned("add", name, *files, *options) == {"user": name, "state": "added"}, "what add prints"
        return user

    def hotp_user(self):
        return self.provision("--otp", "hotp", "--seal", COUNTER_SUITE)

    def code(self, verb, name, *options):
        printed = self.owned(verb, name, *options)
        assert sorted(printed) == ["code", "seconds_remaining", "user"], "members"
        assert (printed["user"], printed["seconds_remaining"]) == (name, 600), "user and seconds"
        return printed["code"]

    def activate(self, code, prover=None):
        """Goes through an activation: the exchange, and what was granted."""
        own = prover or self.device.connect()
        activation = Activation(own.next_m1(), code)
        grant = activation.take(accepted(own.exchange(activation.opening())))
        own.connection.send(activation.confirmation())
        activation.finish(accepted(own.connection.receive()))
        return activation, grant

    def unlock(self, code):
        prover = self.device.connect()
        unlocking = Unlocking(prover.next_m1(), code)
        unlocking.finish(accepted(prover.exchange(unlocking.message())))

    def state(self, user):
        return next(each for each in self.owned("list")["users"] if each["user"] == user.name)


def accepted(message):
    """`message`, unless it is a refusal."""
    if cbor.decode(message)[0] == 3:
        raise Refused(session.NAMES[session.parse_message_3(message)["status"]])
    return message


def expect_refused(status, body, *arguments):
    try:
        body(*arguments)
    except Refused as refused:
        assert str(refused).split(":")[0] == status, "refusal"
        return
    raise AssertionError("it was not refused")
