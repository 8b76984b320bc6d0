#!/usr/bin/env python3
"""The image of a microcontroller's flash, from outside: made, read, changed by its owner, spoiled in every way.

usage: firmware_image.py --holdfast PATH [--interruptions N]

One line for each check that failed, then the totals. Exit status 1 when a check failed.
"""

import argparse
import datetime
import hashlib
import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor

from holdfast_peer import cbor
from holdfast_peer.checks import Checks, expect, expect_equal
from holdfast_peer.command_line import CommandLine, read_descriptor, spellings
from holdfast_peer.keys import PrivateKey

OK, DENIED, MALFORMED, USAGE, UNAVAILABLE, FAULT, NO_PERMISSION = 0, 1, 2, 64, 69, 70, 77
FLASH = 128 * 1024
PAGE = 4096
LONGEST = 16 * 1024 * 1024
SECRET = bytes.fromhex("5be1029d774cb03af81688d5216e9ac30f72e4bd")


class World:
    """A service, an issuer's key and users' secrets in a folder; images are made beside them."""

    def __init__(self, holdfast, folder):
        self.path = pathlib.Path(folder)
        self.line = CommandLine(holdfast, folder)
        self.secrets = {SECRET}
        self.count = 0
        (self.path / "secret").write_text(SECRET.hex())
        self.line.succeed("service", "init", "--dir", "service")
        self.issuer = self.path / "issuer.json"
        self.issuer.write_bytes(self.line.succeed("service", "show", "--dir", "service", "--json"))
        self.image = self.make("--trust", "issuer.json")
        self.good = self.image.read_bytes()

    def name(self):
        self.count += 1
        return self.path / f"{self.count}.img"

    def make(self, *more):
        path = self.name()
        self.run(OK, "device", "init", "--firmware", path, *more)
        self.secrets.add(provision(path.read_bytes())[1])
        return path

    def copy(self, data=None, mode=0o600):
        path = self.name()
        path.write_bytes(self.good if data is None else data)
        path.chmod(mode)
        return path

    def run(self, status, *arguments, before=(), hint=True):
        """A run that ends with this status, of which the output shows no secret, and which says what to do."""
        done = subprocess.run([*before, self.line.path, *map(str, arguments)], env=self.line.environment, cwd=self.path,
                              stdin=subprocess.DEVNULL, capture_output=True, check=False, timeout=60)
        said = done.stderr.decode()
        expect_equal(done.returncode, status, f"{' '.join(map(str, arguments))} ({said.strip()})")
        for secret in self.secrets:
            for spelling in spellings(secret):
                expect(spelling not in done.stdout + done.stderr, "a secret is shown")
        if status:
            expect(said.startswith("holdfast: ") and ("hint: " in said) == hint, f"no message with a hint: {said!r}")
        return done

    def refuse(self, path, status, *words, before=()):
        """All that needs an image refuses this one, says why, and leaves it alone."""
        held = path.read_bytes() if path.is_file() else None
        for verb in (("show",), ("show", "--json"), ("user", "list"), ("audit", "--verify"), ("policy",),
                     ("user", "add", "--otp-secret", "secret", "--seal", "none", "ann"), ("trust", "issuer.json")):
            done = self.run(status, "device", *verb, "--firmware", path, before=before)
            for word in (path.name, *words):
                expect(word in done.stderr.decode(), f"{verb}: no {word!r} in {done.stderr.decode()!r}")
        expect(held is None or path.read_bytes() == held, "the image has changed")

    def json(self, *arguments):
        return json.loads(self.run(OK, *arguments, "--json").stdout)


def provision(data):
    """What the owner gave the device: `[device id, scalar, point, issuers, policy]`."""
    expect_equal(data[:8], b"HfFw" + (1).to_bytes(4, "little"), "magic and version")
    byte_count = int.from_bytes(data[8:12], "little")
    end = 12 + (byte_count + 3) // 4 * 4
    expect_equal(data[end:end + 32], hashlib.sha256(data[:end]).digest(), "the digest")
    return cbor.decode(data[12:12 + byte_count])


def lines(done):
    return done.stdout.decode().splitlines()


# What an owner does.

def made(world):
    descriptor = read_descriptor(world.json("device", "show", "--firmware", world.image))
    device_id, scalar, point, issuers, _ = provision(world.good)
    expect_equal(len(world.good), FLASH, "bytes")
    expect_equal(world.image.stat().st_mode & 0o7777, 0o600, "mode")
    expect_equal(descriptor.device_id, device_id, "device id")
    key = PrivateKey(scalar)
    expect_equal((point, descriptor.point), (key.point, key.point), "the public half")
    expect_equal(len(issuers), 1, "issuers")
    path = world.name()
    printed = world.json("device", "init", "--firmware", path)
    expect_equal(printed, world.json("device", "show", "--firmware", path), "what init prints")
    expect(read_descriptor(printed).device_id != device_id, "two devices have one id")


def shown(world):
    text = world.run(OK, "device", "show", "--firmware", world.image).stdout.decode()
    for part in ("device id    ", "key id       ", "clock floor  ", "starts       0\n", "audit        3 entries, head ",
                 "kept         0 ", "flash        slot 1 in force, ", "open-safe", "users        none\n", "issuers      1\n"):
        expect(part in text, f"no {part!r}")
    floor = datetime.datetime.strptime(text.split("clock floor")[1].split()[0], "%Y-%m-%dT%H:%M:%S%z")
    expect(abs(floor.timestamp() - time.time()) < 600, "the clock floor is not the real clock")


def same_as_folder(world):
    world.run(OK, "device", "init", "--dir", "folder", "--trust", "issuer.json")
    of_folder, of_image = (lines(world.run(OK, "device", "policy", *where))
                           for where in (("--dir", "folder"), ("--firmware", world.image)))
    expect_equal(of_image, of_folder, "the policy")
    image = world.copy()
    script = [("trust", "issuer.json"), ("user", "add", "--otp", "hotp", "--otp-secret", "secret", "--seal", "none", "--counter", "7", "ann"),
              ("user", "list"), ("user", "list", "--json"), ("user", "remove", "ann"), ("trust", "issuer.json", "--remove"),
              ("trust", "issuer.json", "--json")]
    for words in script:
        of_folder, of_image = (world.run(OK, "device", *words, *where).stdout for where in (("--dir", "folder"), ("--firmware", image)))
        expect_equal(of_image, of_folder, " ".join(words))
    for where in (("--dir", "folder"), ("--firmware", image)):
        world.run(MALFORMED, "device", "user", "remove", "ann", *where)
    events = [[entry["event"] for entry in world.json("device", "audit", *where)["entries"]] for where in
              (("--dir", "folder"), ("--firmware", image))]
    expect_equal([event for event in events[1] if event != "policy"], events[0], "the audit log")


def enrolled(world):
    path = world.path / "descriptor.json"
    path.write_bytes(world.run(OK, "device", "show", "--firmware", world.image, "--json").stdout)
    world.run(OK, "service", "device", "add", "--dir", "service", path)
    world.run(OK, "enroll", "--device", path, "--service", "service", "--state", "state")
    world.run(OK, "explain", "--state", "state")


def owned(world):
    image = world.make()
    at = ("--firmware", image)
    expect_equal(world.json("device", "trust", *at, "issuer.json")["state"], "trusted", "trust")
    expect_equal(world.json("device", "trust", *at, "issuer.json")["state"], "trusted already", "trust")
    code = world.json("device", "user", "add", *at, "Zoë Müller")
    expect_equal((code["user"], len(code["code"]), code["seconds_remaining"]), ("Zoë Müller", 26, 600), "the code")
    world.run(OK, "device", "user", "add", *at, "--otp-secret", "secret", "--seal", "none", "Łucja")
    world.run(DENIED, "device", "user", "add", *at, "--otp-secret", "secret", "--seal", "none", "Łucja")
    users = lines(world.run(OK, "device", "user", "list", *at))
    expect(users[0] == "Łucja  TOTP-SHA1-6-30s" and users[1].startswith("Zoë Müller  is to activate") and len(users) == 2, f"{users}")
    world.run(OK, "device", "user", "unlock", *at, "Łucja")
    world.run(DENIED, "device", "user", "unlock", *at, "nobody")
    events = world.json("device", "audit", *at)["entries"]
    expect_equal([event["sequence"] for event in events], list(range(1, 7)), "the sequence")
    expect_equal([event["event"] for event in events],
                 ["created", "policy", "issuer-trusted", "code-issued", "user-added", "code-issued"], "the events")
    expect_equal([event.get("user") for event in events[3:]], ["Zoë Müller", "Łucja", "Łucja"], "the names")
    expect('  user="Łucja"' in lines(world.run(OK, "device", "audit", *at, "--last", "1"))[0], "a name is not readable")
    for options, expected in ((("--after", "4"), [5, 6]), (("--user", "Łucja"), [5, 6]), (("--after", "3", "--last", "1"), [6]), (("--since", "0"), [1, 2, 3, 4, 5, 6])):
        chosen = world.json("device", "audit", *at, *options)["entries"]
        expect_equal([event["sequence"] for event in chosen], expected, f"what {options} selects")
    report = world.json("device", "audit", *at, "--verify")
    expect_equal((report["entries"], report["whole"]), (6, True), "the check")
    expect(report["head"] in world.run(OK, "device", "show", *at).stdout.decode(), "another head")
    expect(SECRET in image.read_bytes(), "the user's secret is not there")


def floors(world):
    at = ("--firmware", world.copy())
    world.run(DENIED, "device", "floor", *at, "--clock", "1700000000")
    expect_equal(world.json("device", "floor", *at, "--clock", "2000000000")["clock_floor"], 2000000000, "the clock floor")
    world.run(DENIED, "device", "floor", *at, "--clock", "now")
    kid = world.json("device", "floor", *at)["issuers"][0]["kid"]
    world.run(OK, "device", "floor", *at, "--issuer", kid, "--generation", "4")
    world.run(DENIED, "device", "floor", *at, "--issuer", kid, "--generation", "3")
    expect_equal(world.json("device", "floor", *at)["issuers"], [{"kid": kid, "generation_floor": 4}], "the generation floor")


def used_codes_stay_used(world):
    def add(counter):
        world.run(OK, "device", "user", "add", *at, "--otp", "hotp", "--otp-secret", "secret", "--seal", "none", "--counter", counter,
                  "--replace", "ann")
        return image.read_bytes().count(counter.to_bytes(2, "big"))
    image = world.copy()
    at = ("--firmware", image)
    first = add(0x7b7b)
    expect(first >= 1, "the counter is not in the image")
    add(3)
    # The new record has the old counter again.
    expect(image.read_bytes().count((0x7b7b).to_bytes(2, "big")) > first, "the counter has gone back")


def limits(world):
    rule = {"factors": ["device"]}
    policy = {"version": 1, "commands": {f"command-{number}": rule for number in range(17)}}
    (world.path / "policy.json").write_text(json.dumps(policy))
    path = world.name()
    done = world.run(MALFORMED, "device", "init", "--firmware", path, "--policy", "policy.json")
    expect(b"more than 16 commands" in done.stderr, done.stderr.decode())
    del policy["commands"]["command-16"]
    (world.path / "policy.json").write_text(json.dumps(policy))
    issuers = []
    for number in range(9):
        world.line.succeed("service", "init", "--dir", f"service{number}")
        (world.path / f"issuer{number}.json").write_bytes(world.line.succeed("service", "show", "--dir", f"service{number}", "--json"))
        issuers += ["--trust", f"issuer{number}.json"]
    done = world.run(DENIED, "device", "init", "--firmware", path, *issuers)
    expect(b"the maximum number of issuers" in done.stderr, done.stderr.decode())
    expect(not path.exists(), "an image was left")
    world.run(OK, "device", "init", "--firmware", path, "--policy", "policy.json", *issuers[:16])
    shown = json.loads(world.run(OK, "device", "policy", "--firmware", path).stdout)
    expect_equal(set(shown["commands"]), set(policy["commands"]), "the commands")
    world.run(DENIED, "device", "trust", "--firmware", path, "issuer8.json")


def time_steps(world):
    """Codes that a microcontroller would look for too long are refused, where a folder takes them."""
    image = world.copy()
    held = image.read_bytes()
    add = ("device", "user", "add", "--firmware", image)
    for words in (("--period", "9", "--seal", "none"), ("--otp", "none", "--seal", "OCRA-1:HOTP-SHA256-8:QH64-T9S"),
                  ("--period", "9", "--otp-secret", "secret", "--seal", "none")):
        done = world.run(USAGE, *add, *words, "ann")
        expect(b"too long to search for" in done.stderr, done.stderr.decode())
    expect_equal(image.read_bytes(), held, "the image")
    world.run(OK, *add, "--period", "10", "--seal", "OCRA-1:HOTP-SHA256-8:QH64-T10S", "ann")


def bad_init(world):
    held = world.image.read_bytes()
    done = world.run(MALFORMED, "device", "init", "--firmware", world.image)
    expect(b"nothing was overwritten" in done.stderr, done.stderr.decode())
    expect_equal(world.image.read_bytes(), held, "the image")
    path = world.name()
    (world.path / "bad.json").write_text("{}")
    world.run(MALFORMED, "device", "init", "--firmware", path, "--policy", "bad.json")
    world.run(MALFORMED, "device", "init", "--firmware", path, "--policy", "absent.json")
    world.run(MALFORMED, "device", "init", "--firmware", path, "--trust", "bad.json")
    world.run(MALFORMED, "device", "init", "--firmware", world.path / "absent" / "x.img")
    path.symlink_to("elsewhere")
    world.run(MALFORMED, "device", "init", "--firmware", path)
    expect(not (world.path / "elsewhere").exists(), "a link was followed")


def usage(world):
    folder, image = ("--dir", "folder"), ("--firmware", world.image)
    for words in (("show",), ("audit",), ("policy",), ("user", "list"), ("trust", "issuer.json"), ("floor",), ("init",)):
        world.run(USAGE, "device", *words)
        world.run(USAGE, "device", *words, *folder, *image)
    for words in (("serve", "--listen", "unix:s"), ("reset", "--yes"), ("init", "--tpm", "/dev/tpmrm0")):
        done = world.run(USAGE, "device", *words, *image)
        expect(b"--firmware" in done.stderr, done.stderr.decode())
    for command in ("host-code", "user-sync"):
        done = world.run(USAGE, "prove", "--connect", "unix:absent", "--state", "absent", "--command", command)
        expect(b"the user" in done.stderr, done.stderr.decode())


# Images that are none.

def spoiled(world):
    world.refuse(world.copy(b""), MALFORMED, "too short")
    for page in (1, 2, 4, 5, 18, 31):
        world.refuse(world.copy(world.good[:page * PAGE]), MALFORMED, "too short")
    world.refuse(world.copy(world.good[:-1]), MALFORMED, "too short")
    world.refuse(world.copy(random.Random(6).randbytes(FLASH)), MALFORMED, "not the image")
    world.refuse(world.copy(b"\xff" * FLASH), MALFORMED, "blank")
    world.refuse(world.copy(world.good[:4] + b"\2" + world.good[5:]), MALFORMED, "later version")
    for cut in range(16, 800, 97):
        world.refuse(world.copy(world.good[:cut] + b"\xff" * (FLASH - cut)), MALFORMED, "partly provisioned" if cut < 600 else "")
    world.refuse(world.copy(world.good[:4 * PAGE] + b"\xff" * (28 * PAGE)), MALFORMED, "partly provisioned")
    journal = 4 * PAGE + 60
    world.refuse(world.copy(world.good[:journal] + b"\0" + world.good[journal + 1:]), MALFORMED, "damaged")
    world.refuse(world.copy(world.good + bytes(LONGEST)), MALFORMED, "too large")


def behind(world):
    rest = random.Random(7).randbytes(3 * PAGE + 5)
    image = world.copy(world.good + rest)
    world.run(OK, "device", "user", "add", "--firmware", image, "--otp-secret", "secret", "--seal", "none", "ann")
    expect_equal(image.read_bytes()[FLASH:], rest, "what lies behind")
    expect(image.read_bytes()[:FLASH] != world.good, "nothing was written")


def places(world):
    for mode in (0o644, 0o660, 0o604):
        world.refuse(world.copy(mode=mode), NO_PERMISSION, "mode")
    folder, pipe, link = world.name(), world.name(), world.name()
    folder.mkdir(mode=0o700)
    os.mkfifo(pipe, 0o600)
    link.symlink_to(world.image.name)
    world.refuse(folder, MALFORMED, "folder")
    world.refuse(pipe, MALFORMED, "regular")
    world.refuse(link, MALFORMED, "link")
    world.refuse(world.name(), MALFORMED, "does not exist")
    if os.geteuid() == 0:
        foreign = world.copy()
        os.chown(foreign, 12345, -1)
        world.refuse(foreign, NO_PERMISSION, "another user")


def locked(world):
    image = world.copy()
    world.refuse(image, UNAVAILABLE, "in use", before=("flock", image))
    world.run(OK, "device", "show", "--firmware", image)
    # Another command, which waits for a secret.
    process = subprocess.Popen([world.line.path, "device", "user", "add", "--firmware", image, "--otp-secret", "-", "--seal", "none", "ann"],
                               env=world.line.environment, cwd=world.path, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
    deadline = time.monotonic() + 20
    while f":{image.stat().st_ino} " not in pathlib.Path("/proc/locks").read_text():
        expect(time.monotonic() < deadline, "the command does not lock the image")
    world.refuse(image, UNAVAILABLE, "in use")
    process.communicate(SECRET.hex().encode(), timeout=20)
    expect_equal(process.returncode, OK, "the command that waited")
    expect_equal(len(world.json("device", "user", "list", "--firmware", image)["users"]), 1, "users")


def side_by_side(world, worker_count=4, change_count=8):
    """Commands at the same time: each is refused or done, and what is done is not lost."""
    image = world.copy()

    def change(worker):
        tries = done = 0
        while done < change_count and tries < 2000:
            tries += 1
            status = subprocess.run([world.line.path, "device", "user", "add", "--firmware", image, "--replace", f"user-{worker}"],
                                    env=world.line.environment, cwd=world.path, stdin=subprocess.DEVNULL, capture_output=True,
                                    check=False).returncode
            expect(status in (OK, UNAVAILABLE), f"exit status {status}")
            done += status == OK
        return done

    with ThreadPoolExecutor(worker_count) as pool:
        done = sum(pool.map(change, range(worker_count)))
    expect_equal(done, worker_count * change_count, "changes")
    report = world.json("device", "audit", "--firmware", image, "--verify")
    expect_equal((report["entries"], report["whole"]), (3 + done, True), "entries")


def interrupted(world, count):
    """Ctrl-C at any moment: the image is the old one or the new one."""
    image = world.copy()
    words = ("device", "user", "add", "--firmware", image, "--otp-secret", "secret", "--seal", "none", "--replace", "ann")
    start = time.monotonic()
    world.run(OK, *words)
    seconds = time.monotonic() - start
    chance, stopped = random.Random(8), 0
    for _ in range(count):
        entries = world.json("device", "audit", "--firmware", image, "--verify")["entries"]
        process = world.line.start(*words)
        time.sleep(chance.uniform(0, seconds))
        process.send_signal(signal.SIGINT)
        status = process.wait(20)
        stopped += status != OK
        after = world.json("device", "audit", "--firmware", image, "--verify")
        expect(after["whole"], "the chain is broken")
        expect(after["entries"] in ((entries + 1,) if status == OK else (entries, entries + 1)), "entries were lost")
    expect(stopped > 0, "no run was interrupted")


# Disks.

def mounted(world, options, prepare, body):
    place = world.path / "mounted"
    place.mkdir(exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", place], check=True)
    try:
        prepare(place)
        body(place)
    finally:
        subprocess.run(["umount", place], check=True)


def image_in(world, place):
    image = place / "flash.img"
    image.write_bytes(world.good)
    image.chmod(0o600)
    return image


def read_only(world):
    def prepare(place):
        image_in(world, place)
        subprocess.run(["mount", "-o", "remount,ro", place], check=True)

    def body(place):
        image = place / "flash.img"
        world.run(OK, "device", "show", "--firmware", image)
        for words in (("trust", "issuer.json", "--remove"), ("user", "add", "--otp-secret", "secret", "--seal", "none", "ann")):
            done = world.run(FAULT, "device", *words, "--firmware", image)
            expect(b"read-only" in done.stderr and b"permission" not in done.stderr, done.stderr.decode())
        done = world.run(FAULT, "device", "init", "--firmware", place / "new.img")
        expect(b"read-only" in done.stderr, done.stderr.decode())
    mounted(world, "size=1m,mode=700", prepare, body)


def full(world):
    def body(place):
        image = place / "flash.img"
        done = world.run(FAULT, "device", "user", "add", "--firmware", image, "--otp-secret", "secret", "--seal", "none", "ann")
        expect(b"disk is full" in done.stderr, done.stderr.decode())
        done = world.run(FAULT, "device", "init", "--firmware", place / "new.img")
        expect(b"disk is full" in done.stderr, done.stderr.decode())
        expect_equal(image.read_bytes(), world.good, "the image")
        expect_equal(os.listdir(place), ["flash.img"], "what is left")
    mounted(world, "size=200k,mode=700", lambda place: image_in(world, place), body)


def can_mount(world):
    try:
        mounted(world, "size=8k", lambda place: None, lambda place: None)
    except (subprocess.CalledProcessError, OSError):
        return False
    return True


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--holdfast", required=True)
    parser.add_argument("--interruptions", type=int, default=25)
    arguments = parser.parse_args()
    checks = Checks()
    with tempfile.TemporaryDirectory(prefix="holdfast-image-") as folder:
        world = World(arguments.holdfast, folder)
        for name, body in (("an image is made", made), ("an image is shown", shown), ("a prover is enrolled", enrolled),
                           ("a folder and an image say the same", same_as_folder), ("what an owner does", owned),
                           ("floors only rise", floors), ("used codes stay used", used_codes_stay_used), ("limits", limits),
                           ("short time steps", time_steps),
                           ("nothing is overwritten", bad_init), ("usage", usage), ("spoiled images", spoiled),
                           ("what lies behind is kept", behind), ("places", places), ("locks", locked),
                           ("commands side by side", side_by_side)):
            checks.run(name, body, world)
        checks.run("Ctrl-C", interrupted, world, arguments.interruptions)
        if os.geteuid() == 0 and can_mount(world):
            checks.run("a read-only file system", read_only, world)
            checks.run("a full disk", full, world)
        else:
            print("skipped: 2 checks of disks: nothing can be mounted here")
    return checks.finish()


if __name__ == "__main__":
    sys.exit(main())
