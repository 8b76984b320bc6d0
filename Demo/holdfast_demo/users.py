"""The right person: users with one-time passwords and seals, and those who guess, steal or reuse them.

Passwords and seals come from counters, so that no line depends on the time, or waits for it. They have eight digits: in one
run of a million, a wrong one happens to be right.
"""

import shutil

from .story import preparation, situation, step

PIN, OTHER_PINS = "3917", ("2840", "7053", "9164")
METHODS = ("--otp", "hotp", "--digits", "8", "--seal", "OCRA-1:HOTP-SHA256-8:C-QH64")
SAFE, OTHER_SAFE = "7", "8"
GUESSES = 5


class Person:
    """A user, with an authenticator."""

    def __init__(self, name, scene):
        self.name, self.scene = name, scene
        self.authenticator = scene.path(f"authenticator-{name}")
        # The owner's code, and codes that were made and may have been used.
        self.code = self.last_password = self.last_seal = None

    def be_added(self):
        """The owner lets the user in."""
        self.code = self.scene.own("user", "add", *METHODS, self.name)["code"]

    def be_unlocked(self):
        """The owner lets the user try again."""
        self.code = self.scene.own("user", "unlock", self.name)["code"]

    def activate(self, authenticator=None):
        return self._ask(
            "otp",
            "activate",
            "--code",
            self._file("code", self.code),
            "--new-pin-file",
            self._file("pin", PIN),
            "--authenticator",
            authenticator or self.authenticator,
        )

    def unlock(self):
        return self._ask("otp", "unlock", "--code", self._file("code", self.code))

    def check_host(self):
        return self._ask(
            "otp", "check-host", "--state", self.scene.path("prover"), "--authenticator", self.authenticator
        )

    def synchronise(self):
        return self._ask("otp", "sync", "--state", self.scene.path("prover"), "--authenticator", self.authenticator)

    def password(self, pin=PIN):
        """Makes the next one-time password."""
        self.last_password = self._make("code", "otp", "code", "--pin-file", self._file("pin", pin))
        return self.last_password

    def seal(self, command, parameter):
        """Makes a seal over a command and its parameter."""
        self.last_seal = self._make(
            "seal", "seal", "--command", command, "--parameter", parameter, "--pin-file", self._file("pin", PIN)
        )
        return self.last_seal

    def configure(self, password):
        """Makes a proof with a one-time password, and returns its end."""
        return self.scene.prove("configure", "--user", self.name, "--otp", self._file("password", password))

    def open_safe(self, safe, seal):
        """Makes a proof with a seal, and returns its end."""
        return self.scene.prove(
            "open-safe", "--parameter", safe, "--user", self.name, "--seal", self._file("seal", seal)
        )

    def _ask(self, *arguments):
        return self.scene.ask(*arguments, "--connect", self.scene.address)

    def _make(self, member, *arguments):
        return self.scene.succeed(*arguments, "--authenticator", self.authenticator).value[member]

    def _file(self, name, line):
        return self.scene.write(name, f"{line}\n")


# Activation


@step("the owner lets alice in")
def let_alice_in(scene):
    scene.alice.be_added()
    return "an activation code, good for ten minutes and one use"


@step("the owner lets alice and bob in")
def let_both_in(scene):
    for person in (scene.alice, scene.bob):
        person.be_added()
    return "an activation code for each"


@preparation
def let_bob_in(scene):
    scene.bob.be_added()


@situation("alice activates her authenticator by it", "exit 0")
def activate(scene):
    return scene.alice.activate().exit


@situation("… and somebody else by the same", "exit 1")
def activate_again(scene):
    return scene.alice.activate(scene.path("late")).exit


@situation("bob is let in too, and activates", "exit 0")
def activate_bob(scene):
    return scene.bob.activate().exit


@situation("the {device} proves itself to alice", "exit 0")
def check_host(scene):
    return scene.alice.check_host().exit


# One-time passwords


@situation("configure, by the proof alone", "factorMissing")
def configure_without(scene):
    return scene.prove("configure").status


@situation("configure, by proof and one-time password", "accepted, configured")
def configure(scene):
    return scene.alice.configure(scene.alice.password()).answer


@situation("… by the same one again", "otpRejected")
def configure_again(scene):
    return scene.alice.configure(scene.alice.last_password).status


@situation("… by one that was made under another PIN", "otpRejected")
def configure_under_other_pin(scene):
    return scene.alice.configure(scene.alice.password(OTHER_PINS[0])).status


@situation("alice's authenticator takes over the board's counters", "exit 0")
def synchronise(scene):
    return scene.alice.synchronise().exit


# Seals


@situation(f"open-safe {OTHER_SAFE}, by that seal", "sealRejected")
def open_other_safe(scene):
    return scene.alice.open_safe(OTHER_SAFE, scene.alice.seal("open-safe", SAFE)).answer


@situation(f"open-safe {SAFE}, by that seal", "accepted, safe opened")
def open_safe(scene):
    return scene.alice.open_safe(SAFE, scene.alice.last_seal).answer


@situation("… by the same one again", "sealRejected")
def open_safe_again(scene):
    return scene.alice.open_safe(SAFE, scene.alice.last_seal).status


# Guesses


@situation("five guesses of bob's password", "otpRejected")
def guess(scene):
    right = scene.bob.password()
    guesses = [f"{(int(right) + difference) % 10**8:08}" for difference in range(1, GUESSES + 1)]
    return ", ".join(sorted({scene.bob.configure(guess).status for guess in guesses}))


@situation("… and then the right one", "lockedOut")
def configure_when_locked(scene):
    return scene.bob.configure(scene.bob.last_password).status


@situation("alice is not locked out for that", "accepted, configured")
def configure_meanwhile(scene):
    return scene.alice.configure(scene.alice.password()).answer


@preparation
def issue_unlock(scene):
    scene.bob.be_unlocked()


@situation("bob takes the owner's unlock code to the {device}", "exit 0")
def unlock(scene):
    return scene.bob.unlock().exit


@situation("… and his password counts again", "accepted, configured")
def configure_when_unlocked(scene):
    return scene.bob.configure(scene.bob.last_password).answer


# A thief of the authenticator


@situation("a stolen authenticator, tried with four PINs", "four codes")
def steal(scene):
    loot = [_try(scene, pin) for pin in (PIN, *OTHER_PINS)]
    scene.kept.clues = {clue for _, clue in loot}
    codes = {code for code, _ in loot if len(code) == 8 and code.isdecimal()}
    return "four codes" if len(codes) == len(loot) else "other than codes"


@situation("… and what tells which of them is right", "nothing")
def compare_loot(scene):
    return "nothing" if len(scene.kept.clues) == 1 else "what it says or writes down"


def _try(scene, pin):
    """What a thief learns from a copy of alice's authenticator by a PIN: the code, and everything else that is said or stored."""
    copy = scene.path("stolen")
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(scene.alice.authenticator, copy)
    ending = scene.run("otp", "code", "--authenticator", copy, "--pin-file", scene.write("pin", f"{pin}\n"))
    code = ending.value.get("code", "")
    records = scene.run("otp", "list", "--authenticator", copy)
    said = ending.output.replace(code, "") if code else ending.output
    return code, (said, ending.errors, ending.exit, records.output)
