"""The command line as a newcomer meets it: what it refuses, what it suggests, and its help.

usage: command_line.py --holdfast PATH
"""

import argparse
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import tempfile

from holdfast_peer.checks import Checks, expect, expect_equal

OK, DENIED, MALFORMED, USAGE, UNAVAILABLE = 0, 1, 2, 64, 69
PROJECT = pathlib.Path(__file__).resolve().parents[2]
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


def check_typing_errors(world):
    """A typing error is named, and what was meant is suggested; --json holds for it, too."""
    for arguments, named, meant in (
        (("prov",), "'prov'", "holdfast prove"), (("device", "serv"), "'serv'", "holdfast device serve"),
        (("prove", "--conect", "x"), "'--conect'", "--connect"), (("version",), "'version'", "holdfast --version"),
        (("help", "prov"), "'prov'", "holdfast prove"), (("serve",), "'serve'", "holdfast device serve"),
    ):
        message, hint = world.refuse(USAGE, *arguments)
        expect(named in message and f"did you mean {meant}? see holdfast" in hint, f"{arguments}: {message} / {hint}")
        for words in ((*arguments, "--json"), ("--json", *arguments)):
            answer = json.loads(world.run(*words, status=USAGE).stdout)
            expect_equal(answer, {"error": message, "hint": hint, "exit": USAGE}, f"{words}")
    message, hint = world.refuse(USAGE, "device", "audit", "--dir", "lock", "--last", "-1")
    expect("--last=-1" in hint, hint)
    answer = json.loads(world.run("prove", "--state", "p", "--json", status=USAGE).stdout)
    expect("--connect" in answer["error"] and answer["exit"] == USAGE, f"{answer}")
    expect_equal(world.run("frobnicate", status=USAGE).stdout, b"", "the result without --json")
    shown = world.run("device", "show", "--json", "--dir", world.device()).stdout
    for words in (("--json", "device", "show"), ("device", "--json", "show")):
        expect_equal(world.run(*words, "--dir", "lock").stdout, shown, f"{words}")


def check_endpoints(world):
    prove = ("prove", "--state", "p", "--command", "c", "--connect")
    (world.path / "lock.sock").touch()
    for text, reason, wanted in (
        (str(world.path / "lock.sock"), "the name of a transport", f"did you mean unix:{world.path / 'lock.sock'}?"),
        ("./lock.sock", "the name of a transport", "did you mean unix:./lock.sock?"),
        ("l2cap:00:1A:7D:DA:71:13,psm=0x1000", "out of range: the PSM is odd, from 0x1001", "holdfast help endpoints"),
        ("l2cap:00:1A:7D:DA:71:13,psm=0x1002", "even: the PSM is odd", "holdfast help endpoints"),
        ("l2cap:00:1A:7D:DA:71:13,psm=0x1101", "odd upper byte", "holdfast help endpoints"),
        ("le:00:1A:7D:DA:71:13", "the psm is missing: the PSM is 0x80 to 0xff", "holdfast help endpoints"),
        ("le:00:1A:7D:DA:71:13,psm=x", "not a number", "holdfast help endpoints"),
    ):
        message, hint = world.refuse(USAGE, *prove, text)
        expect(reason in message and wanted in hint, f"{text}: {message} / {hint}")
    page = world.run("help", "endpoints").stdout.decode()
    for form in ("unix:PATH", "unix-stream:PATH", "tty:PATH", "l2cap:", "rfcomm:", "le:", "hci=hci0", "security="):
        expect(form in page, f"help endpoints lacks {form}")


def check_utf8(world):
    """An argument that is not UTF-8 is refused, wherever it is."""
    for arguments in (("device", "init", "--dir", b"q\xff"), ("device", "user", "add", "--dir", "lock", b"al\xffice"), (b"\xc3\x28",)):
        for options in ((), ("--json",)):
            done = world.run(*arguments, *options, status=USAGE)
            expect(b"not UTF-8" in done.stderr and bool(done.stdout) == bool(options), f"{arguments}: {done}")
    expect(not [name for name in os.listdir(os.fsencode(world.path)) if name.startswith(b"q")], "a folder was made")


def check_version(world):
    text = world.run("--version").stdout.decode()
    answer = json.loads(world.run("--version", "--json").stdout)
    expect_equal(text, f"holdfast {answer['version']}, protocol {answer['protocol']}\n", "--version")
    expect_equal(answer["protocol"], 1, "the protocol")
    expect(re.fullmatch(r"[A-Za-z0-9._+-]+", answer["version"]), f"{answer}")


def describe(package, place):
    """The version that a package's sources are built with."""
    out = place / "Version.swift"
    subprocess.run([PROJECT / "Plugins/VersionPlugin/describe", package, out], check=True, timeout=60)
    return re.fullmatch(r'let buildDescription = "(.*)"\n', out.read_text()).group(1), out.stat().st_mtime_ns


def check_description(world):
    """The version comes from git in a clone, from VERSION in an archive of it, and is unknown elsewhere."""
    clone, git = world.path / "clone", ("git", "-c", "user.name=n", "-c", "user.email=e", "-C")
    clone.mkdir()
    expect_equal(describe(clone, world.path)[0], "unknown", "without git")
    shutil.copy(PROJECT / "VERSION", clone)
    shutil.copy(PROJECT / ".gitattributes", clone)
    expect_equal(describe(clone, world.path)[0], "unknown", "in a copy without git, whose VERSION git archive has not filled in")
    for words in (("init", "-q"), ("add", "."), ("commit", "-q", "-m", "m")):
        subprocess.run([*git, clone, *words], check=True, timeout=60)
    commit = subprocess.run([*git, clone, "rev-parse", "HEAD"], check=True, capture_output=True, text=True).stdout[:12]
    first, again = describe(clone, world.path), describe(clone, world.path)
    expect_equal(first, again, "the file is written although nothing changed")
    expect_equal(first[0], commit, "the commit")
    archive = world.path / "archive"
    archive.mkdir()
    packed = subprocess.run([*git, clone, "archive", "HEAD"], check=True, capture_output=True).stdout
    subprocess.run(["tar", "-x", "-C", archive], input=packed, check=True)
    expect_equal(describe(archive, world.path)[0], commit, "an archive")
    subprocess.run([*git, clone, "tag", "-a", "1.2.3", "-m", "m"], check=True)
    expect_equal(describe(clone, world.path)[0], "1.2.3", "a tag")
    (clone / "VERSION").write_text("x\n")
    expect_equal(describe(clone, world.path)[0], "1.2.3-dirty", "a change")
    (archive / "VERSION").write_text('"; fatalError() //\n')
    expect_equal(describe(archive, world.path)[0], "unknown", "a version that is none")


def complete(world, script, *words):
    """What bash offers for the last word."""
    program = (f"source {shlex.quote(str(script))}\nCOMP_WORDS=({' '.join(map(shlex.quote, words))})\nCOMP_CWORD={len(words) - 1}\n"
               f"COMP_LINE={shlex.quote(' '.join(words))}\nCOMP_POINT=${{#COMP_LINE}}\n"
               f"_holdfast holdfast {shlex.quote(words[-1])} {shlex.quote(words[-2])}\nprintf '%s\\n' \"${{COMPREPLY[@]}}\"")
    done = subprocess.run(["bash", "--norc", "-c", program], capture_output=True, text=True, timeout=60, cwd=world.path)
    return set(done.stdout.split())


def check_completions(world):
    """Verbs, options and paths are completed by bash; the other shells' scripts name the options."""
    script = world.path / "completion.bash"
    script.write_bytes(world.run("--generate-completion-script", "bash").stdout)
    world.device()
    (world.path / "lock.json").touch()
    expect_equal(complete(world, script, "holdfast", "enro"), {"enroll"}, "a verb")
    expect("--connect" in complete(world, script, "holdfast", "prove", "--c"), "an option")
    expect("lock" in complete(world, script, "holdfast", "device", "show", "--dir", "lo"), "a folder")
    expect("lock.json" in complete(world, script, "holdfast", "enroll", "--device", "lo"), "a file")
    expect("lock.json" in complete(world, script, "holdfast", "vectors", "replay", "lo"), "an argument")
    for shell in ("zsh", "fish"):
        expect(b"new-pin-file" in world.run("--generate-completion-script", shell).stdout, f"{shell}: no option")


def check_manual(world):
    """There is a page for each verb, with its options, examples and exit statuses, and groff has nothing to say against them."""
    out = world.path / "man"
    subprocess.run([PROJECT / "Tools/manual-pages", "--holdfast", world.holdfast, "--out", out], check=True, timeout=120)
    root = json.loads(world.run("--experimental-dump-help").stdout)["command"]

    def verbs(command, path):
        yield path, command
        for verb in command.get("subcommands", []):
            if verb["commandName"] != "help":
                yield from verbs(verb, [*path, verb["commandName"]])

    pages = {page.name: page.read_text() for page in out.iterdir()}
    names = {"-".join(path): command for path, command in verbs(root, ["holdfast"])}
    expect_equal({page.rsplit(".", 1)[0] for page in pages}, set(names), "the pages")
    for page, text in pages.items():
        sections = re.findall(r"^\.SH (.*)$", text, re.MULTILINE)
        wanted = {"NAME", "DESCRIPTION", "EXAMPLES", "SEE ALSO"} | ({"SYNOPSIS", "EXIT STATUS", "ENVIRONMENT"} if page.endswith(".1") else set())
        expect(wanted <= set(sections), f"{page} lacks {wanted - set(sections)}")
        for argument in names[page.rsplit(".", 1)[0]].get("arguments", []):
            name = argument.get("preferredName", {}).get("name")
            if name and page.endswith(".1") and argument["shouldDisplay"]:
                expect("\\-\\-" + name.replace("-", "\\-") in text, f"{page} lacks --{name}")
        if shutil.which("groff"):
            done = subprocess.run(["groff", "-man", "-Tutf8", "-ww", "-z"], input=text.encode(), capture_output=True, timeout=60)
            expect_equal((done.returncode, done.stderr), (0, b""), page)


def check_policy(world):
    """A mistake in a policy is named by its member and line, where the policy is shown and where it is taken."""
    policy = world.path / world.device("strict") / "policy.json"
    good = policy.read_text()
    line = good[:good.index("integrity")].count("\n") + 1
    for right, wrong, wanted in (
        ("integrity", "integrety", f"line {line}: commands.configure.factors[0] must be one of integrity, device, otp, seal"),
        ('"factors"', '"facters"', "commands.configure.facters is not a known member: did you mean factors?"),
        ('"commands"', '"comands"', "comands is not a known member: did you mean commands?"),
        ('"version": 1', '"version": 1,\n  "version": 1', "line 3: version occurs twice"),
        ('"version": 1,', '"version": 1', "line 3: this is not JSON"),
        ('"accept_unsigned": false', '"accept_unsigned": "s3cret"', "line 3: accept_unsigned must be true or false"),
        (good, "", "this is not JSON"),
        (good, "[]", "line 1: it must be an object"),
    ):
        text = good.replace(right, wrong, 1)
        policy.write_text(text)
        message, _ = world.refuse(MALFORMED, "device", "policy", "--dir", "strict")
        expect(wanted in message and "s3cret" not in message, f"{wrong}: {message}")
        expect(wanted in world.run("device", "show", "--dir", "strict").stdout.decode(), f"{wrong}: device show")
        (world.path / "policy.json").write_text(text)
        message, _ = world.refuse(MALFORMED, "device", "init", "--dir", "none", "--policy", "policy.json")
        expect(wanted in message, f"{wrong}: {message}")
    policy.write_text(good)


def check_service_policy(world):
    """Likewise for the policy of a service."""
    world.run("service", "init", "--dir", "service")
    policy = world.path / "service" / "policy.json"
    good = policy.read_text()
    line = good[:good.index('"devices"')].count("\n") + 1
    for right, wrong, wanted in (
        ('"devices": "listed"', '"devices": "s3cret"', f"policy.json, line {line}: devices must be one of listed, first-come"),
        ('"devices"', '"device"', f"line {line}: device is not a known member: did you mean devices?"),
        ('"devices": "listed"', '"devices": "listed", "token_seconds": 0', "token_seconds "),
        (good, good[:-3], "this is not JSON"),
    ):
        policy.write_text(good.replace(right, wrong, 1))
        message, _ = world.refuse(MALFORMED, "service", "images", "--dir", "service")
        expect(wanted in message and "s3cret" not in message, f"{wrong}: {message}")
        expect("each once" not in message, f"no member is a list: {message}")


def check_users(world):
    """An activation that waits is shown, and may be removed; a name that there is not is said to be none."""
    where = ("--dir", world.device("users"))
    world.refuse(MALFORMED, "device", "user", "remove", *where, "alice")
    world.run("device", "user", "add", *where, "alice")
    listed = world.run("device", "user", "list", *where)
    expect(b"alice  is to activate" in listed.stdout, "the activation is not shown")
    expect(b"no users" not in listed.stderr, f"a user is on the way, but it says {listed.stderr}")
    codes = json.loads(world.run("device", "user", "list", *where, "--json").stdout)["codes"]
    expect_equal([(code["user"], code["for"]) for code in codes], [("alice", "activation")], "the codes")
    removed = json.loads(world.run("device", "user", "remove", *where, "alice", "--json").stdout)
    expect_equal(removed, {"user": "alice", "state": "activation-removed"}, "what was removed")
    expect_equal(json.loads(world.run("device", "user", "list", *where, "--json").stdout), {"users": [], "codes": []}, "the rest")
    expect(b"there are no users" in world.run("device", "user", "list", *where).stderr, "it does not say that there are none")
    world.refuse(MALFORMED, "device", "user", "remove", *where, "alice")


CHECKS = {
    "secrets are no arguments": check_no_secret_argument,
    "typing errors": check_typing_errors,
    "endpoints": check_endpoints,
    "arguments that are not UTF-8": check_utf8,
    "the version": check_version,
    "where the version comes from": check_description,
    "completions": check_completions,
    "manual pages": check_manual,
    "mistakes in a policy": check_policy,
    "mistakes in a service's policy": check_service_policy,
    "users": check_users,
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
