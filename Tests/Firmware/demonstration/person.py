"""A user of the lock, with an authenticator. Passwords and seals come from counters: the board has no calendar."""

PIN = "3917"
METHODS = ("--otp", "hotp", "--digits", "8", "--seal", "OCRA-1:HOTP-SHA256-8:C-QH64")


class Person:
    def __init__(self, name, scene):
        self.name, self.scene = name, scene
        self.authenticator = scene.path(f"authenticator-{name}")
        # The owner's code.
        self.code = None

    def be_added(self):
        """The owner lets the user in, while the board has no power."""
        self.code = self.scene.own("user", "add", *METHODS, self.name)["code"]

    def be_unlocked(self):
        self.code = self.scene.own("user", "unlock", self.name)["code"]

    def connecting(self, *arguments):
        """A command that asks the lock; how it ended."""
        return self.scene.patiently(lambda: self.scene.run(*arguments, "--connect", f"unix:{self.scene.front}"))

    def activate(self, authenticator=None):
        pin = self.scene.write("pin", PIN + "\n")
        return self.connecting("otp", "activate", "--code", self.scene.write("code", self.code + "\n"), "--new-pin-file", pin, "--authenticator",
                               authenticator or self.authenticator)

    def unlock(self):
        return self.connecting("otp", "unlock", "--code", self.scene.write("code", self.code + "\n"))

    def check_host(self):
        return self.connecting("otp", "check-host", "--state", self.scene.path("phone"), "--authenticator", self.authenticator)

    def synchronise(self):
        return self.connecting("otp", "sync", "--state", self.scene.path("phone"), "--authenticator", self.authenticator)

    def password(self, pin=PIN):
        """The next one."""
        return self.made("code", "otp", "code", "--pin-file", self.scene.write("pin", pin + "\n"))

    def seal(self, command, parameter):
        return self.made("seal", "seal", "--command", command, "--parameter", parameter, "--pin-file",
                         self.scene.write("pin", PIN + "\n"))

    def made(self, member, *arguments):
        return self.scene.command_line.read_json(*arguments, "--authenticator", self.authenticator)[member]

    def configure(self, password):
        """A proof with a one-time password; how it ended."""
        return self.scene.prove("configure", "--user", self.name, "--otp", self.scene.write("password", password + "\n"))

    def open_safe(self, safe, seal):
        return self.scene.prove("open-safe", "--parameter", safe, "--user", self.name, "--seal",
                                self.scene.write("seal", seal + "\n"))
