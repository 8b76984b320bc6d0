"""The command line as a newcomer meets it: what it refuses, what it suggests, and its help.

usage: command_line.py --holdfast PATH
"""

import argparse
import json
import os
import pathlib
import re
import subprocess
import tempfile

from holdfast_peer.checks import Checks, expect, expect_equal

OK, DENIED, MALFORMED, USAGE, UNAVAILABLE = 0, 1, 2, 64, 69
SECRET = "JBSWY3DPEHPK3PXP"


class World:
    def __init__(self, holdfast):
        self.holdfast = os.path.abspath(holdfast)
        self.place = tempfile.TemporaryDirectory(prefix="holdfast-command-line-")
        self.path = pathlib.Path(self.place.name)

    def run(self, *arguments, status=OK, stdin=b""):
        """Runs a command in the temporary folder; how it ended."""
        done = subprocess.run([self.holdfast, *arguments], input=stdin, capture_output=True, timeout=60, cwd=self.path,
                              start_new_session=True)
        said = done.stderr.decode().strip()
        expect_equal(done.returncode, status, f"{arguments} ({said})")
        return done

    def refuse(self, status, *arguments, stdin=b""):
        """What a command that must fail said: the message and its hint, without their labels."""
        lines = self.run(*arguments, status=status, stdin=stdin).stderr.decode().splitlines()
        message = [line.removeprefix("holdfast: ") for line in lines if line.startswith("holdfast: ")]
        hint = [line.removeprefix("hint: ") for line in lines if line.startswith("hint: ")]
        return message[-1], hint[-1] if hint else ""

    def device(self, name="lock"):
        if not (self.path / name).exists():
            self.run("device", "init", "--dir", name)
        return name


def check_no_secret_argument(world):
    """A code, a PIN or a key URI as an argument is refused with a hint, and not repeated."""
    code = world.run("device", "user", "add", "--dir", world.device(), "alice").stdout.decode().strip()
    activate = ("otp", "activate", "--connect", "unix:nowhere", "--authenticator", "keys", "--no-pin")
    prove = ("prove", "--connect", "unix:nowhere", "--state", "phone", "--command", "unlock", "--user", "alice")
    for status, secret, arguments in (
        (USAGE, code, (*activate, "--code", code)),
        (USAGE, code.lower(), (*activate, "--code", code.lower())),
        (USAGE, code.replace("-", ""), (*activate, "--code", code.replace("-", ""))),
        (USAGE, code, ("otp", "unlock", "--connect", "unix:nowhere", "--code", code)),
        # Mistyped: no file has that name either.
        (MALFORMED, code[:-1], (*activate, "--code", code[:-1])),
        (USAGE, "482913", (*prove, "--otp", "482913")),
        (USAGE, "482 913", (*prove, "--otp", "482 913")),
        (USAGE, "48291377", (*prove, "--seal", "48291377")),
        (MALFORMED, "48291x", (*prove, "--otp", "48291x")),
        (USAGE, SECRET, ("otp", "import", "--authenticator", "keys", "--no-pin", f"otpauth://totp/a?secret={SECRET}")),
        (USAGE, SECRET, ("otp", "import", "--authenticator", "keys", "--no-pin", f"OTPAUTH://totp/a?secret={SECRET}")),
        (USAGE, "data", ("otp", "import", "--authenticator", "keys", "--no-pin", "otpauth-migration://offline?data=AAAA")),
        (MALFORMED, SECRET, ("otp", "import", "--authenticator", "keys", "--no-pin", "--format", "base32", SECRET)),
        (MALFORMED, SECRET, ("device", "user", "add", "--dir", "lock", "--otp-secret", SECRET, "bob")),
    ):
        for options in ((), ("--json",)):
            done = world.run(*arguments, *options, status=status)
            expect(secret.encode() not in done.stderr + done.stdout, f"{arguments}: the secret is repeated")
            expect(b"hint: " in done.stderr, f"{arguments}: no hint")
            expect(b" - " in done.stderr or b"file" in done.stderr, f"{arguments}: the hint does not say how it is given")
    expect(not (world.path / "keys").exists(), "an authenticator was made")
    world.run("otp", "unlock", "--connect", "unix:nowhere", "--code", "-", status=UNAVAILABLE, stdin=code.encode())
    (world.path / "code").write_text(code + "\n")
    world.run("otp", "unlock", "--connect", "unix:nowhere", "--code", "code", status=UNAVAILABLE)
    # The parser takes the owner's hint as it is printed.
    said = world.run("device", "user", "unlock", "--dir", "lock", "nobody", status=DENIED)
    said = world.run("device", "user", "add", "--dir", "lock", "carol")
    hint = re.search(rb"holdfast (otp activate .*)", said.stderr).group(1).decode()
    arguments = hint.replace("ENDPOINT", "unix:nowhere").split()
    world.run(*arguments, "--no-pin", status=UNAVAILABLE, stdin=said.stdout)


CHECKS = {
    "secrets are no arguments": check_no_secret_argument,
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--holdfast", required=True)
    parser.add_argument("--only", help="the checks whose names contain this")
    options = parser.parse_args()
    world, checks = World(options.holdfast), Checks()
    for name, check in CHECKS.items():
        if options.only is None or options.only in name:
            checks.run(name, check, world)
    return checks.finish()


if __name__ == "__main__":
    raise SystemExit(main())
