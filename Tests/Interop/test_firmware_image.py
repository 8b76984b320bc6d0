"""The image of a microcontroller's flash, from outside: made, read, changed by its owner, spoiled in every way."""

import datetime
import hashlib
import json
import math
import os
import pathlib
import random
import signal
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from holdfast_peer import cbor
from holdfast_peer.command_line import CommandLine, read_descriptor, spellings
from holdfast_peer.keys import PrivateKey

OK, DENIED, MALFORMED, USAGE, UNAVAILABLE, FAULT, NO_PERMISSION = 0, 1, 2, 64, 69, 70, 77
FLASH = 128 * 1024
PAGE = 4096
LONGEST = 16 * 1024 * 1024
SECRET = bytes.fromhex("5be1029d774cb03af81688d5216e9ac30f72e4bd")


class Workshop:
    """A service, an issuer's key and users' secrets in a folder; images are made next to them."""

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
        done = subprocess.run(
            [*before, self.line.path, *map(str, arguments)],
            env=self.line.environment,
            cwd=self.path,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
            timeout=60,
        )
        said = done.stderr.decode()
        assert done.returncode == status, f"{' '.join(map(str, arguments))} ({said.strip()})"
        for secret in self.secrets:
            for spelling in spellings(secret):
                assert spelling not in done.stdout + done.stderr, "a secret is shown"
        if status:
            assert said.startswith("holdfast: ") and ("hint: " in said) == hint, f"no message with a hint: {said!r}"
        return done

    def refuse(self, path, status, *words, before=()):
        """All that needs an image refuses this one, says why, and leaves it alone."""
        held = path.read_bytes() if path.is_file() else None
        for verb in (
            ("show",),
            ("show", "--json"),
            ("user", "list"),
            ("audit", "--verify"),
            ("policy",),
            ("user", "add", "--otp-secret", "secret", "--seal", "none", "ann"),
            ("trust", "issuer.json"),
        ):
            done = self.run(status, "device", *verb, "--firmware", path, before=before)
            for word in (path.name, *words):
                assert word in done.stderr.decode(), f"{verb}: no {word!r} in {done.stderr.decode()!r}"
        assert held is None or path.read_bytes() == held, "the image has changed"

    def json(self, *arguments):
        return json.loads(self.run(OK, *arguments, "--json").stdout)


@pytest.fixture(scope="module")
def workshop(holdfast, folder):
    return Workshop(holdfast, folder)


def provision(data):
    """What the owner gave the device: `[device id, scalar, point, issuers, policy]`."""
    assert data[:8] == b"HfFw" + (1).to_bytes(4, "little"), "magic and version"
    byte_count = int.from_bytes(data[8:12], "little")
    end = 12 + (byte_count + 3) // 4 * 4
    assert data[end : end + 32] == hashlib.sha256(data[:end]).digest(), "the digest"
    return cbor.decode(data[12 : 12 + byte_count])


def lines(done):
    return done.stdout.decode().splitlines()


# What an owner does.


def test_an_image_holds_what_init_prints(workshop):
    descriptor = read_descriptor(workshop.json("device", "show", "--firmware", workshop.image))
    device_id, scalar, point, issuers, _ = provision(workshop.good)
    assert len(workshop.good) == FLASH, "bytes"
    assert workshop.image.stat().st_mode & 0o7777 == 0o600, "mode"
    assert descriptor.device_id == device_id, "device id"
    key = PrivateKey(scalar)
    assert (point, descriptor.point) == (key.point, key.point), "the public half"
    assert len(issuers) == 1, "issuers"
    path = workshop.name()
    printed = workshop.json("device", "init", "--firmware", path)
    assert printed == workshop.json("device", "show", "--firmware", path), "what init prints"
    assert read_descriptor(printed).device_id != device_id, "two devices have one id"


def test_an_image_is_shown(workshop):
    text = workshop.run(OK, "device", "show", "--firmware", workshop.image).stdout.decode()
    for part in (
        "device id    ",
        "key id       ",
        "clock floor  ",
        "starts       0\n",
        "audit        3 entries, head ",
        "kept         0 ",
        "flash        slot 1 in force, ",
        "open-safe",
        "users        none\n",
        "issuers      1\n",
    ):
        assert part in text, f"no {part!r}"
    floor = datetime.datetime.strptime(text.split("clock floor")[1].split()[0], "%Y-%m-%dT%H:%M:%S%z")
    assert abs(floor.timestamp() - time.time()) < 600, "the clock floor is not the real clock"


def test_a_folder_and_an_image_say_the_same(workshop):
    workshop.run(OK, "device", "init", "--dir", "folder", "--trust", "issuer.json")
    of_folder, of_image = (
        lines(workshop.run(OK, "device", "policy", *where))
        for where in (("--dir", "folder"), ("--firmware", workshop.image))
    )
    assert of_image == of_folder, "the policy"
    image = workshop.copy()
    script = [
        ("trust", "issuer.json"),
        ("user", "add", "--otp", "hotp", "--otp-secret", "secret", "--seal", "none", "--counter", "7", "ann"),
        ("user", "list"),
        ("user", "list", "--json"),
        ("user", "remove", "ann"),
        ("trust", "issuer.json", "--remove"),
        ("trust", "issuer.json", "--json"),
    ]
    for words in script:
        of_folder, of_image = (
            workshop.run(OK, "device", *words, *where).stdout for where in (("--dir", "folder"), ("--firmware", image))
        )
        assert of_image == of_folder, " ".join(words)
    for where in (("--dir", "folder"), ("--firmware", image)):
        workshop.run(MALFORMED, "device", "user", "remove", "ann", *where)
    events = [
        [entry["event"] for entry in workshop.json("device", "audit", *where)["entries"]]
        for where in (("--dir", "folder"), ("--firmware", image))
    ]
    assert [event for event in events[1] if event != "policy"] == events[0], "the audit log"


def test_a_prover_is_enrolled_at_an_image(workshop):
    path = workshop.path / "descriptor.json"
    path.write_bytes(workshop.run(OK, "device", "show", "--firmware", workshop.image, "--json").stdout)
    workshop.run(OK, "service", "device", "add", "--dir", "service", path)
    workshop.run(OK, "enroll", "--device", path, "--service", "service", "--state", "state")
    workshop.run(OK, "explain", "--state", "state")


def test_an_owner_trusts_adds_users_and_reads_the_log(workshop):
    image = workshop.make()
    at = ("--firmware", image)
    assert workshop.json("device", "trust", *at, "issuer.json")["state"] == "trusted", "trust"
    assert workshop.json("device", "trust", *at, "issuer.json")["state"] == "trusted already", "trust"
    code = workshop.json("device", "user", "add", *at, "Zoë Müller")
    assert (code["user"], len(code["code"]), code["seconds_remaining"]) == ("Zoë Müller", 26, 600), "the code"
    workshop.run(OK, "device", "user", "add", *at, "--otp-secret", "secret", "--seal", "none", "Łucja")
    workshop.run(DENIED, "device", "user", "add", *at, "--otp-secret", "secret", "--seal", "none", "Łucja")
    users = lines(workshop.run(OK, "device", "user", "list", *at))
    assert (
        users[0] == "Łucja  TOTP-SHA1-6-30s" and users[1].startswith("Zoë Müller  can activate") and len(users) == 2
    ), f"{users}"
    workshop.run(OK, "device", "user", "unlock", *at, "Łucja")
    workshop.run(DENIED, "device", "user", "unlock", *at, "nobody")
    events = workshop.json("device", "audit", *at)["entries"]
    assert [event["sequence"] for event in events] == list(range(1, 7)), "the sequence"
    assert [event["event"] for event in events] == [
        "created",
        "policy",
        "issuer-trusted",
        "code-issued",
        "user-added",
        "code-issued",
    ], "the events"
    assert [event.get("user") for event in events[3:]] == ["Zoë Müller", "Łucja", "Łucja"], "the names"
    assert '  user="Łucja"' in lines(workshop.run(OK, "device", "audit", *at, "--last", "1"))[0], (
        "a name is not readable"
    )
    for options, expected in (
        (("--after", "4"), [5, 6]),
        (("--user", "Łucja"), [5, 6]),
        (("--after", "3", "--last", "1"), [6]),
        (("--since", "0"), [1, 2, 3, 4, 5, 6]),
    ):
        chosen = workshop.json("device", "audit", *at, *options)["entries"]
        assert [event["sequence"] for event in chosen] == expected, f"what {options} selects"
    report = workshop.json("device", "audit", *at, "--verify")
    assert (report["entries"], report["whole"]) == (6, True), "the check"
    assert report["head"] in workshop.run(OK, "device", "show", *at).stdout.decode(), "another head"
    assert SECRET in image.read_bytes(), "the user's secret is not there"


def test_floors_only_rise(workshop):
    at = ("--firmware", workshop.copy())
    workshop.run(DENIED, "device", "floor", *at, "--clock", "1700000000")
    assert workshop.json("device", "floor", *at, "--clock", "2000000000")["clock_floor"] == 2000000000, (
        "the clock floor"
    )
    workshop.run(DENIED, "device", "floor", *at, "--clock", "now")
    kid = workshop.json("device", "floor", *at)["issuers"][0]["kid"]
    workshop.run(OK, "device", "floor", *at, "--issuer", kid, "--generation", "4")
    workshop.run(DENIED, "device", "floor", *at, "--issuer", kid, "--generation", "3")
    assert workshop.json("device", "floor", *at)["issuers"] == [{"kid": kid, "generation_floor": 4}], (
        "the generation floor"
    )


def test_used_codes_stay_used(workshop):
    def add(counter):
        workshop.run(
            OK,
            "device",
            "user",
            "add",
            *at,
            "--otp",
            "hotp",
            "--otp-secret",
            "secret",
            "--seal",
            "none",
            "--counter",
            counter,
            "--replace",
            "ann",
        )
        return image.read_bytes().count(counter.to_bytes(2, "big"))

    image = workshop.copy()
    at = ("--firmware", image)
    first = add(0x7B7B)
    assert first >= 1, "the counter is not in the image"
    add(3)
    # The new record has the old counter again.
    assert image.read_bytes().count((0x7B7B).to_bytes(2, "big")) > first, "the counter has gone back"


def test_an_image_has_limits(workshop):
    rule = {"factors": ["device"]}
    policy = {"version": 1, "commands": {f"command-{number}": rule for number in range(17)}}
    (workshop.path / "policy.json").write_text(json.dumps(policy))
    path = workshop.name()
    done = workshop.run(MALFORMED, "device", "init", "--firmware", path, "--policy", "policy.json")
    assert b"more than 16 commands" in done.stderr, done.stderr.decode()
    del policy["commands"]["command-16"]
    (workshop.path / "policy.json").write_text(json.dumps(policy))
    issuers = []
    for number in range(9):
        workshop.line.succeed("service", "init", "--dir", f"service{number}")
        (workshop.path / f"issuer{number}.json").write_bytes(
            workshop.line.succeed("service", "show", "--dir", f"service{number}", "--json")
        )
        issuers += ["--trust", f"issuer{number}.json"]
    done = workshop.run(DENIED, "device", "init", "--firmware", path, *issuers)
    assert b"the maximum number of issuers" in done.stderr, done.stderr.decode()
    assert not path.exists(), "an image was left"
    workshop.run(OK, "device", "init", "--firmware", path, "--policy", "policy.json", *issuers[:16])
    shown = json.loads(workshop.run(OK, "device", "policy", "--firmware", path).stdout)
    assert set(shown["commands"]) == set(policy["commands"]), "the commands"
    workshop.run(DENIED, "device", "trust", "--firmware", path, "issuer8.json")


def test_short_time_steps_are_refused(workshop):
    """Codes that a microcontroller would look for too long are refused, where a folder takes them."""
    image = workshop.copy()
    held = image.read_bytes()
    add = ("device", "user", "add", "--firmware", image)
    for words in (
        ("--period", "9", "--seal", "none"),
        ("--otp", "none", "--seal", "OCRA-1:HOTP-SHA256-8:QH64-T9S"),
        ("--period", "9", "--otp-secret", "secret", "--seal", "none"),
    ):
        done = workshop.run(USAGE, *add, *words, "ann")
        assert b"too long to search for" in done.stderr, done.stderr.decode()
    assert image.read_bytes() == held, "the image"
    workshop.run(OK, *add, "--period", "10", "--seal", "OCRA-1:HOTP-SHA256-8:QH64-T10S", "ann")


def test_nothing_is_overwritten(workshop):
    held = workshop.image.read_bytes()
    done = workshop.run(MALFORMED, "device", "init", "--firmware", workshop.image)
    assert b"nothing was overwritten" in done.stderr, done.stderr.decode()
    assert workshop.image.read_bytes() == held, "the image"
    path = workshop.name()
    (workshop.path / "bad.json").write_text("{}")
    workshop.run(MALFORMED, "device", "init", "--firmware", path, "--policy", "bad.json")
    workshop.run(MALFORMED, "device", "init", "--firmware", path, "--policy", "absent.json")
    workshop.run(MALFORMED, "device", "init", "--firmware", path, "--trust", "bad.json")
    workshop.run(MALFORMED, "device", "init", "--firmware", workshop.path / "absent" / "x.img")
    path.symlink_to("elsewhere")
    workshop.run(MALFORMED, "device", "init", "--firmware", path)
    assert not (workshop.path / "elsewhere").exists(), "a link was followed"


def test_what_is_no_verb_of_an_image_is_a_usage_error(workshop):
    folder, image = ("--dir", "folder"), ("--firmware", workshop.image)
    for words in (
        ("show",),
        ("audit",),
        ("policy",),
        ("user", "list"),
        ("trust", "issuer.json"),
        ("floor",),
        ("init",),
    ):
        workshop.run(USAGE, "device", *words)
        workshop.run(USAGE, "device", *words, *folder, *image)
    for words in (("serve", "--listen", "unix:s"), ("reset", "--yes"), ("init", "--tpm", "/dev/tpmrm0")):
        done = workshop.run(USAGE, "device", *words, *image)
        assert b"--firmware" in done.stderr, done.stderr.decode()
    for command in ("host-code", "user-sync"):
        done = workshop.run(USAGE, "prove", "--connect", "unix:absent", "--state", "absent", "--command", command)
        assert b"the user" in done.stderr, done.stderr.decode()


# Images that are none.


def test_spoiled_images_are_refused(workshop):
    workshop.refuse(workshop.copy(b""), MALFORMED, "too short")
    for page in (1, 2, 4, 5, 18, 31):
        workshop.refuse(workshop.copy(workshop.good[: page * PAGE]), MALFORMED, "too short")
    workshop.refuse(workshop.copy(workshop.good[:-1]), MALFORMED, "too short")
    workshop.refuse(workshop.copy(random.Random(6).randbytes(FLASH)), MALFORMED, "not the image")
    workshop.refuse(workshop.copy(b"\xff" * FLASH), MALFORMED, "blank")
    workshop.refuse(workshop.copy(workshop.good[:4] + b"\2" + workshop.good[5:]), MALFORMED, "later version")
    for cut in range(16, 800, 97):
        workshop.refuse(
            workshop.copy(workshop.good[:cut] + b"\xff" * (FLASH - cut)),
            MALFORMED,
            "partly provisioned" if cut < 600 else "",
        )
    workshop.refuse(workshop.copy(workshop.good[: 4 * PAGE] + b"\xff" * (28 * PAGE)), MALFORMED, "partly provisioned")
    journal = 4 * PAGE + 60
    workshop.refuse(workshop.copy(workshop.good[:journal] + b"\0" + workshop.good[journal + 1 :]), MALFORMED, "damaged")
    workshop.refuse(workshop.copy(workshop.good + bytes(LONGEST)), MALFORMED, "too large")


def test_what_lies_behind_the_flash_is_kept(workshop):
    rest = random.Random(7).randbytes(3 * PAGE + 5)
    image = workshop.copy(workshop.good + rest)
    workshop.run(OK, "device", "user", "add", "--firmware", image, "--otp-secret", "secret", "--seal", "none", "ann")
    assert image.read_bytes()[FLASH:] == rest, "what lies behind"
    assert image.read_bytes()[:FLASH] != workshop.good, "nothing was written"


def test_an_image_in_a_wrong_place_is_refused(workshop):
    for mode in (0o644, 0o660, 0o604):
        workshop.refuse(workshop.copy(mode=mode), NO_PERMISSION, "mode")
    folder, pipe, link = workshop.name(), workshop.name(), workshop.name()
    folder.mkdir(mode=0o700)
    os.mkfifo(pipe, 0o600)
    link.symlink_to(workshop.image.name)
    workshop.refuse(folder, MALFORMED, "folder")
    workshop.refuse(pipe, MALFORMED, "regular")
    workshop.refuse(link, MALFORMED, "link")
    workshop.refuse(workshop.name(), MALFORMED, "does not exist")
    if os.geteuid() == 0:
        foreign = workshop.copy()
        os.chown(foreign, 12345, -1)
        workshop.refuse(foreign, NO_PERMISSION, "another user")


def test_an_image_in_use_is_refused(workshop):
    image = workshop.copy()
    workshop.refuse(image, UNAVAILABLE, "in use", before=("flock", image))
    workshop.run(OK, "device", "show", "--firmware", image)
    # Another command, which waits for a secret.
    process = subprocess.Popen(
        [
            workshop.line.path,
            "device",
            "user",
            "add",
            "--firmware",
            image,
            "--otp-secret",
            "-",
            "--seal",
            "none",
            "ann",
        ],
        env=workshop.line.environment,
        cwd=workshop.path,
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
    )
    deadline = time.monotonic() + 120
    while f":{image.stat().st_ino} " not in pathlib.Path("/proc/locks").read_text():
        assert time.monotonic() < deadline, "the command does not lock the image"
    workshop.refuse(image, UNAVAILABLE, "in use")
    process.communicate(SECRET.hex().encode(), timeout=120)
    assert process.returncode == OK, "the command that waited"
    assert len(workshop.json("device", "user", "list", "--firmware", image)["users"]) == 1, "users"


def test_commands_side_by_side_lose_nothing(workshop, worker_count=4, change_count=8):
    """Commands at the same time: each is refused or done, and what is done is not lost."""
    image = workshop.copy()

    def change(worker):
        tries = done = 0
        while done < change_count and tries < 2000:
            tries += 1
            status = subprocess.run(
                [workshop.line.path, "device", "user", "add", "--firmware", image, "--replace", f"user-{worker}"],
                env=workshop.line.environment,
                cwd=workshop.path,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                check=False,
            ).returncode
            assert status in (OK, UNAVAILABLE), f"exit status {status}"
            done += status == OK
        return done

    with ThreadPoolExecutor(worker_count) as pool:
        done = sum(pool.map(change, range(worker_count)))
    assert done == worker_count * change_count, "changes"
    report = workshop.json("device", "audit", "--firmware", image, "--verify")
    assert (report["entries"], report["whole"]) == (3 + done, True), "entries"


def test_ctrl_c_leaves_the_old_image_or_the_new_one(workshop, count=25):
    """Ctrl-C at any moment: the image is the old one or the new one."""
    image = workshop.copy()
    words = (
        "device",
        "user",
        "add",
        "--firmware",
        image,
        "--otp-secret",
        "secret",
        "--seal",
        "none",
        "--replace",
        "ann",
    )
    # The quickest of three: a signal that comes late on a busy machine interrupts nothing.
    seconds = math.inf
    for _ in range(3):
        start = time.monotonic()
        workshop.run(OK, *words)
        seconds = min(seconds, time.monotonic() - start)
    chance, stopped = random.Random(8), 0
    for _ in range(count):
        entries = workshop.json("device", "audit", "--firmware", image, "--verify")["entries"]
        process = workshop.line.start(*words)
        time.sleep(chance.uniform(0, seconds))
        process.send_signal(signal.SIGINT)
        status = process.wait(120)
        stopped += status != OK
        after = workshop.json("device", "audit", "--firmware", image, "--verify")
        assert after["whole"], "the chain is broken"
        assert after["entries"] in ((entries + 1,) if status == OK else (entries, entries + 1)), "entries were lost"
    assert stopped > 0, "no run was interrupted"


# Disks.


@pytest.fixture(scope="module")
def mountable(workshop):
    """Skips where nothing can be mounted."""
    try:
        assert os.geteuid() == 0
        mounted(workshop, "size=8k", lambda place: None, lambda place: None)
    except (AssertionError, subprocess.CalledProcessError, OSError):
        pytest.skip("nothing can be mounted here")


def mounted(workshop, options, prepare, body):
    place = workshop.path / "mounted"
    place.mkdir(exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", place], check=True)
    try:
        prepare(place)
        body(place)
    finally:
        subprocess.run(["umount", place], check=True)


def image_in(workshop, place):
    image = place / "flash.img"
    image.write_bytes(workshop.good)
    image.chmod(0o600)
    return image


def test_a_read_only_file_system_is_named(workshop, mountable):
    def prepare(place):
        image_in(workshop, place)
        subprocess.run(["mount", "-o", "remount,ro", place], check=True)

    def body(place):
        image = place / "flash.img"
        workshop.run(OK, "device", "show", "--firmware", image)
        for words in (
            ("trust", "issuer.json", "--remove"),
            ("user", "add", "--otp-secret", "secret", "--seal", "none", "ann"),
        ):
            done = workshop.run(FAULT, "device", *words, "--firmware", image)
            assert b"read-only" in done.stderr and b"permission" not in done.stderr, done.stderr.decode()
        done = workshop.run(FAULT, "device", "init", "--firmware", place / "new.img")
        assert b"read-only" in done.stderr, done.stderr.decode()

    mounted(workshop, "size=1m,mode=700", prepare, body)


def test_a_full_disk_changes_nothing(workshop, mountable):
    def body(place):
        image = place / "flash.img"
        done = workshop.run(
            FAULT, "device", "user", "add", "--firmware", image, "--otp-secret", "secret", "--seal", "none", "ann"
        )
        assert b"disk is full" in done.stderr, done.stderr.decode()
        done = workshop.run(FAULT, "device", "init", "--firmware", place / "new.img")
        assert b"disk is full" in done.stderr, done.stderr.decode()
        assert image.read_bytes() == workshop.good, "the image"
        assert os.listdir(place) == ["flash.img"], "what is left"

    mounted(workshop, "size=200k,mode=700", lambda place: image_in(workshop, place), body)
