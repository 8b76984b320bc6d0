"""The authenticator from outside: its codes and seals, its file and its state string made again in Python, its prompts on a
terminal, and bad input."""

import base64
import hashlib
import json
import os
import pathlib
import pty
import random
import select
import signal
import sqlite3
import subprocess
import termios
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from holdfast_peer import cbor, oath

SECRET = bytes.fromhex("5be1029d774cb03af81688d5216e9ac30f72e4bd")
SEAL_SECRET = bytes.fromhex("00c1fe5e4fd1a3c8fdd27b8f2a6b49ee0d8a8b30e7a4f3527b1a36f0f7c8d9e2")
SUITE = "OCRA-1:HOTP-SHA256-8:QH64-T1M"


class Desk:
    """The program, and the files and authenticators of a user."""

    def __init__(self, holdfast, folder):
        self.holdfast, self.path, self.count = str(holdfast), folder, 0

    def file(self, name, content):
        path = self.path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return str(path)

    def folder(self):
        self.count += 1
        return str(self.path / f"a{self.count}")

    def run(self, *arguments, status=0, stdin=b""):
        environment = dict(os.environ, XDG_DATA_HOME=str(self.path / self.host))
        done = subprocess.run(
            [self.holdfast, *arguments],
            input=stdin,
            capture_output=True,
            timeout=60,
            pass_fds=self.fds,
            env=environment,
        )
        assert done.returncode == status, f"{' '.join(arguments)} ({done.stderr.decode().strip()})"
        for digits in (b"1357", b"2468"):
            assert digits not in done.stderr, "a PIN in what is said"
        return done.stdout.decode().strip()

    fds = ()
    # The host, by the folder of its device.secret.
    host = "host"

    def account(self, secret=SECRET, pin="1357", method=("--method", "hotp"), folder=None, user="alice"):
        folder = folder or self.folder()
        protection = ("--new-pin-file", self.file("pin", pin)) if pin else ("--no-pin",)
        self.run(
            "otp",
            "import",
            self.file("secret", secret.hex()),
            "--format",
            "hex",
            "--user",
            user,
            *method,
            *protection,
            "--authenticator",
            folder,
        )
        return folder


@pytest.fixture(scope="module")
def desk(holdfast, folder):
    return Desk(holdfast, folder)


def test_codes_by_counter_are_the_peers(desk):
    folder = desk.account()
    pin = desk.file("pin", "1357\n")
    for counter in range(3):
        assert desk.run("otp", "--authenticator", folder, "--pin-file", pin) == oath.hotp(SECRET, counter), "code"
    wrong = desk.run("otp", "--authenticator", folder, "--pin-file", desk.file("wrong", "1358"))
    assert len(wrong) == 6 and wrong.isdigit() and wrong != oath.hotp(SECRET, 3), "a wrong PIN makes a wrong code"
    answer = json.loads(
        desk.run("otp", "code", "--authenticator", folder, "--pin-file", "-", "--json", stdin=b"1357\n")
    )
    assert answer == {"code": oath.hotp(SECRET, 4), "seconds_remaining": None, "user": "alice", "index": 1}, "--json"
    pair = desk.run("otp", "code", "--authenticator", folder, "--pin-file", pin, "--pair").split()
    assert pair == [oath.hotp(SECRET, 5), oath.hotp(SECRET, 6)], "--pair"


def test_codes_by_time_are_the_peers(desk):
    folder = desk.account(method=("--method", "totp", "--digits", "8", "--algorithm", "SHA256"))
    before = int(time.time())
    answer = json.loads(desk.run("otp", "--authenticator", folder, "--pin-file", desk.file("pin", "1357"), "--json"))
    allowed = {oath.totp(SECRET, moment, 8, "SHA256") for moment in (before, int(time.time()))}
    assert answer["code"] in allowed, "the code of the time"
    assert 1 <= answer["seconds_remaining"] <= 30, "seconds that remain"


def test_seals_are_the_peers(desk):
    folder = desk.account(SEAL_SECRET, method=("--method", "ocra", "--suite", SUITE, "--purpose", "seal"))
    pin = desk.file("pin", "1357")
    for parameters in ([], ["volume", "e\u0301 7"]):
        before = int(time.time()) // 60
        options = [part for parameter in parameters for part in ("--parameter", parameter)]
        seal = desk.run("seal", "--authenticator", folder, "--command", "configure", *options, "--pin-file", pin)
        normalised = [parameter.replace("e\u0301", "\u00e9") for parameter in parameters]
        question = hashlib.sha256(b"holdfast/1 seal\0" + cbor.encode(["configure", normalised])).hexdigest()
        allowed = {oath.ocra(SUITE, SEAL_SECRET, question, time=step) for step in (before, int(time.time()) // 60)}
        assert seal in allowed, f"a seal over {parameters}"
    for bad in ([""], ["a\x1bb"], ["a\u202eb"], ["x" * 17], ["x"] * 9):
        options = [part for parameter in bad for part in ("--parameter", parameter)]
        desk.run("seal", "--authenticator", folder, "--command", "configure", *options, "--pin-file", pin, status=2)
    desk.run("seal", "--authenticator", folder, "--command", "", "--pin-file", pin, status=2)


def rows(folder):
    with sqlite3.connect(f"file:{folder}/authenticator.sqlite?mode=ro", uri=True) as database:
        database.row_factory = sqlite3.Row
        return [dict(row) for row in database.execute("SELECT * FROM records ORDER BY user, number")]


def test_the_file_holds_what_the_specification_says(desk):
    folder = desk.account()
    row = rows(folder)[0]
    kind, salt, logarithm, block, parallel = cbor.decode(row["protection"])
    assert (kind, len(salt), logarithm, block, parallel) == (1, 16, 15, 8, 1), "the protection"
    mask = hashlib.scrypt(b"1357", salt=salt, n=1 << 15, r=8, p=1, dklen=20, maxmem=1 << 26)
    assert bytes(a ^ b for a, b in zip(mask, row["secret"])) == SECRET, "the secret under its mask"
    everything = b"".join(path.read_bytes() for path in pathlib.Path(folder).iterdir())
    assert SECRET not in everything and SECRET[:8] not in everything, "the secret stands in a file"
    modes = {oct(path.stat().st_mode & 0o777) for path in pathlib.Path(folder).iterdir()}
    assert (modes, oct(os.stat(folder).st_mode & 0o777)) == ({"0o600"}, "0o700"), "modes"
    key = bytes(range(32))
    folder = desk.folder()
    desk.run(
        "otp",
        "import",
        desk.file("secret", SECRET.hex()),
        "--format",
        "hex",
        "--user",
        "bob",
        "--method",
        "hotp",
        "--new-key-file",
        desk.file("key", key),
        "--authenticator",
        folder,
    )
    row = rows(folder)[0]
    kind, salt = cbor.decode(row["protection"])
    mask = HKDF(SHA256(), 20, salt, b"holdfast/1 authenticator mask\0").derive(key)
    assert bytes(a ^ b for a, b in zip(mask, row["secret"])) == SECRET, "the secret under a key's mask"
    reading, writing = os.pipe()
    os.write(writing, key)
    os.close(writing)
    desk.fds = (reading,)
    assert desk.run("otp", "--authenticator", folder, "--key-fd", str(reading)) == oath.hotp(SECRET, 0), "--key-fd"
    desk.fds = ()
    os.close(reading)
    desk.run("otp", "--authenticator", folder, "--key-file", desk.file("key", key[:15]), status=2)


def test_a_key_and_the_host_are_needed_in_addition_to_the_pin(desk):
    folder, key, pin = desk.account(), bytes(range(32)), desk.file("pin", "1357")
    common, key_file = ("--authenticator", folder), desk.file("key", key)
    desk.run("otp", "protect", *common, "--add-key-file", key_file, "--bind-host")
    row = rows(folder)[0]
    kind, pin_salt, logarithm, block, parallel, key_salt, host_salt, check = cbor.decode(row["protection"])
    assert (kind, logarithm, block, parallel) == (7, 15, 8, 1), "the protection"
    host = (desk.path / desk.host / "holdfast/device.secret").read_bytes()
    masks = [
        hashlib.scrypt(b"1357", salt=pin_salt, n=1 << 15, r=8, p=1, dklen=20, maxmem=1 << 26),
        HKDF(SHA256(), 20, key_salt, b"holdfast/1 authenticator mask\0").derive(key),
        HKDF(SHA256(), 20, host_salt, b"holdfast/1 authenticator host mask\0").derive(host),
    ]
    assert bytes(a ^ b ^ c ^ d for a, b, c, d in zip(*masks, row["secret"])) == SECRET, "the secret under three masks"
    assert check == HKDF(SHA256(), 8, host_salt, b"holdfast/1 authenticator host check\0").derive(host), "the check"
    record = json.loads(desk.run("otp", "list", *common, "--json"))["records"][0]
    assert (record["protection"], record["requires"]) == ("pin+key+host", ["pin", "key", "host"])
    desk.run("otp", *common, "--pin-file", pin, status=64)
    unlocking = ("--pin-file", pin, "--key-file", key_file)
    assert desk.run("otp", *common, *unlocking) == oath.hotp(SECRET, 0), "the code of all three"
    desk.host = "another"
    desk.run("otp", *common, *unlocking, status=1)
    bound = desk.file("other", "1357")
    desk.run("otp", "protect", "--authenticator", desk.account(), "--bind-host", "--new-pin-file", bound, status=64)
    other = desk.account(SEAL_SECRET)
    desk.run("otp", "protect", "--authenticator", other, "--bind-host")
    desk.run("otp", *common, *unlocking, status=1)
    desk.host = "host"
    desk.run("otp", "protect", *common, "--confirm")
    desk.run("otp", "protect", *common, "--add-key-file", key_file, status=64)
    desk.run("otp", "protect", *common, "--new-key-file", key_file, *unlocking, status=64)
    desk.run("otp", "protect", *common, "--remove-keys", status=64)
    # Another PIN needs the key as well, and leaves both masks in place.
    new = desk.file("new", "2468")
    desk.run("otp", "protect", *common, "--new-pin-file", new, "--pin-file", pin, status=64)
    desk.run("otp", "protect", *common, "--new-pin-file", new, *unlocking)
    unlocking = ("--pin-file", new, "--key-file", key_file)
    assert desk.run("otp", *common, *unlocking) == oath.hotp(SECRET, 1), "the code of the new PIN"
    desk.run("otp", "protect", *common, "--confirm")
    desk.run("otp", "protect", *common, "--remove-keys", "--key-file", key_file, "--unbind-host")
    assert desk.run("otp", *common, "--pin-file", new) == oath.hotp(SECRET, 2), "the code of the PIN alone"
    desk.run("otp", "protect", *common, "--confirm")
    desk.run("otp", "protect", *common, "--remove-keys", "--key-file", key_file, status=64)


def test_the_state_string_is_what_the_specification_says(desk):
    folder = desk.account()
    passphrase = desk.file("passphrase", "correct horse battery\n")
    line = desk.run("otp", "state", "export", "--authenticator", folder, "--passphrase-file", passphrase)
    assert line.startswith("hfstate1") and "\n" not in line, "one line"
    body = line.removeprefix("hfstate1")
    body = base64.urlsafe_b64decode(body + "=" * (-len(body) % 4))
    header, sealed, check = body[:31], body[31:-4], body[-4:]
    assert check == hashlib.sha256(b"holdfast/1 state string\0" + body[:-4]).digest()[:4], "the check"
    assert header[:3] == bytes([17, 8, 1]), "the cost"
    key = hashlib.scrypt(b"correct horse battery", salt=header[3:19], n=1 << 17, r=8, p=1, dklen=32, maxmem=1 << 28)
    version, records = cbor.decode(AESGCM(key).decrypt(header[19:], sealed, b"hfstate1" + header))
    assert (version, len(records), len(records[0]), records[0][0]) == (1, 1, 21, "alice"), "the state"
    wrapped = "\n".join(line[start : start + 64] for start in range(0, len(line), 64))
    other = desk.folder()
    state = desk.file("state", wrapped)
    desk.run("otp", "state", "import", state, "--authenticator", other, "--passphrase-file", passphrase)
    pin = desk.file("pin", "1357")
    assert desk.run("otp", "--authenticator", other, "--pin-file", pin) == oath.hotp(SECRET, 0), "the code there"
    desk.run("otp", "state", "import", state, "--authenticator", other, "--passphrase-file", passphrase, status=1)
    desk.run("otp", "state", "import", state, "--authenticator", other, "--passphrase-file", passphrase, "--replace")
    assert desk.run("otp", "--authenticator", other, "--pin-file", pin) == oath.hotp(SECRET, 1), "the counter went back"
    mistyped = desk.file("state", line[:40] + ("A" if line[40] != "A" else "B") + line[41:])
    desk.run(
        "otp", "state", "import", mistyped, "--authenticator", desk.folder(), "--passphrase-file", passphrase, status=2
    )
    for weak in ("1357", "123456789", "short"):
        desk.run(
            "otp", "state", "export", "--authenticator", folder, "--passphrase-file", desk.file("weak", weak), status=2
        )


def test_a_change_of_the_pin_can_be_undone(desk):
    folder = desk.account()
    old, new = desk.file("old", "1357"), desk.file("new", "2468")
    common = ("--authenticator", folder)
    shown = desk.run("otp", "protect", *common, "--pin-file", desk.file("typo", "1353"), "--new-pin-file", new)
    code = shown.removeprefix("undo code: ")
    assert desk.run("otp", *common, "--pin-file", new) != oath.hotp(SECRET, 0), "a mistyped PIN is not noticed"
    desk.run("otp", "protect", *common, "--pin-file", old, "--new-pin-file", new, status=1)
    desk.run("otp", "protect", *common, "--undo-code-file", "-", stdin=code.lower().replace("-", " ").encode() + b"\n")
    assert desk.run("otp", *common, "--pin-file", old) == oath.hotp(SECRET, 1), "undone"
    answer = json.loads(desk.run("otp", "protect", *common, "--pin-file", old, "--new-pin-file", new, "--json"))
    assert desk.run("otp", *common, "--pin-file", new) == oath.hotp(SECRET, 2), "the new PIN"
    desk.run("otp", "protect", *common, "--confirm")
    desk.run("otp", "protect", *common, "--undo-code-file", desk.file("undo", answer["undo_code"]), status=1)
    protect = [desk.holdfast, "otp", "protect", *common, "--pin-file", new, "--new-pin-file", old]
    with open("/dev/full", "wb") as output:
        full = subprocess.run(protect, stdout=output, stderr=subprocess.DEVNULL, timeout=60)
    assert full.returncode != 0, "an undo code that nobody can see"
    assert desk.run("otp", *common, "--pin-file", new) == oath.hotp(SECRET, 3), "the PIN stays"


def test_bad_input_is_refused_and_changes_nothing(desk):
    folder = desk.account()
    pin = desk.file("pin", "1357")
    for bad in ("", "123", "1234567", "12a4", "１２３４", "13 57", "1357\n1357\n\n"):
        desk.run("otp", "--authenticator", folder, "--pin-file", desk.file("bad", bad), status=2)
    for weak in ("1234", "9876", "1111", "1212", "123123", "1985", "198507", "072031"):
        desk.run(
            "otp",
            "protect",
            "--authenticator",
            folder,
            "--pin-file",
            pin,
            "--new-pin-file",
            desk.file("bad", weak),
            status=2,
        )
    assert rows(folder)[0]["next_counter"] == 0, "the counter moved"
    desk.run("otp", "--authenticator", folder, "--user", "bob", "--pin-file", pin, status=1)
    desk.run("otp", "--authenticator", folder + "-none", "--pin-file", pin, status=2)
    for content, form in (("", "base32"), ("1", "base32"), ("xy", "hex"), ("abc", "hex"), ("", "raw"), ("<x>", "pskc")):
        desk.run(
            "otp",
            "import",
            desk.file("bad", content),
            "--format",
            form,
            "--user",
            "bob",
            "--no-pin",
            "--authenticator",
            folder,
            status=2,
        )
    assert len(rows(folder)) == 1, "records"
    for name in ("user_version = 99", "application_id = 7"):
        copy = desk.account()
        with sqlite3.connect(f"{copy}/authenticator.sqlite") as database:
            database.execute(f"PRAGMA {name}")
        desk.run("otp", "list", "--authenticator", copy, status=2)
    damaged = desk.account()
    path = pathlib.Path(damaged, "authenticator.sqlite")
    path.write_bytes(path.read_bytes()[:4096] + b"\xa5" * 8192)
    desk.run("otp", "list", "--authenticator", damaged, status=2)
    opened = desk.account()
    os.chmod(opened, 0o755)
    desk.run("otp", "list", "--authenticator", opened, status=77)


def test_processes_at_once_never_show_one_code_twice(desk):
    """Processes that take codes at once, some of them killed."""
    folder = desk.account(pin=None)
    command = [desk.holdfast, "otp", "--authenticator", folder]

    def take(_):
        """Takes a code, again if other processes had the counter for the five seconds that one waits for its turn."""
        for _ in range(10):
            begun = time.monotonic()
            done = subprocess.run(command, capture_output=True, timeout=60)
            if done.returncode != 69 or time.monotonic() - begun < 5:
                break
        return done

    with ThreadPoolExecutor(8) as pool:
        shown = list(pool.map(take, range(40)))
    assert all(done.returncode == 0 for done in shown), "a process that has to wait fails"
    codes = [done.stdout.decode().strip() for done in shown]
    assert sorted(codes) == sorted(oath.hotp(SECRET, counter) for counter in range(40)), "each code once"


def test_a_counter_outlives_kills(desk, kills=60):
    folder = desk.account(pin=None)
    command = [desk.holdfast, "otp", "--authenticator", folder]
    codes, lots = [], random.Random(4)
    for _ in range(kills):
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        time.sleep(lots.uniform(0, 0.04))
        process.kill()
        codes += process.communicate()[0].decode().split()
    codes.append(desk.run("otp", "--authenticator", folder))
    # Two counters may have one code: each that was shown has to be that of some counter after the one before.
    later = iter([oath.hotp(SECRET, counter) for counter in range(kills + 2)])
    assert all(code in later for code in codes), f"a counter came back: {codes}"


class Terminal:
    """A command with a terminal of its own."""

    def __init__(self, *command):
        self.child, self.master = pty.fork()
        if self.child == 0:
            os.execv(command[0], command)
        self.seen = b""

    def await_text(self, text, seconds=60):
        end = time.monotonic() + seconds
        while text not in self.seen:
            assert time.monotonic() < end, f"the terminal does not show {text!r}: {self.seen[-200:]!r}"
            if select.select([self.master], [], [], 0.2)[0]:
                try:
                    self.seen += os.read(self.master, 4096)
                except OSError:
                    assert text in self.seen, f"the program ended without {text!r}: {self.seen[-200:]!r}"
        self.seen = self.seen[self.seen.index(text) + len(text) :]

    def type(self, text):
        end = time.monotonic() + 60
        while self.echoes():
            assert time.monotonic() < end, "the terminal shows what is typed"
        os.write(self.master, text.encode() + b"\n")

    def echoes(self):
        return bool(termios.tcgetattr(self.master)[3] & termios.ECHO)

    def wait(self):
        status = os.waitpid(self.child, 0)[1]
        return os.waitstatus_to_exitcode(status)


def test_prompts_ask_again_and_show_no_pin(desk):
    folder = desk.folder()
    secret = desk.file("secret", SECRET.hex())
    importing = (
        desk.holdfast,
        "otp",
        "import",
        secret,
        "--format",
        "hex",
        "--user",
        "alice",
        "--method",
        "hotp",
        "--authenticator",
        folder,
    )
    terminal = Terminal(*importing)
    terminal.await_text(b"new PIN: ")
    terminal.type("1357")
    terminal.await_text(b"new PIN again: ")
    terminal.type("1358")
    terminal.await_text(b"differ")
    # It asks again, and goes on asking after a PIN that is guessed first, but not for ever.
    terminal.await_text(b"new PIN: ")
    terminal.type("1234")
    for _ in range(3):
        terminal.await_text(b"is guessed first")
        terminal.await_text(b"new PIN: ")
        terminal.type("1234")
    terminal.await_text(b"no PIN was chosen")
    assert terminal.wait() == 2, "five bad PINs"
    terminal = Terminal(*importing)
    terminal.await_text(b"new PIN: ")
    terminal.type("1111")
    for question in (b"new PIN: ", b"new PIN again: "):
        terminal.await_text(question)
        terminal.type("1357")
    terminal.await_text(b"alice 1")
    assert terminal.wait() == 0, "import"
    terminal = Terminal(desk.holdfast, "otp", "--authenticator", folder)
    terminal.await_text(b"PIN: ")
    terminal.type("1357")
    terminal.await_text(oath.hotp(SECRET, 0).encode())
    assert b"1357" not in terminal.seen and terminal.wait() == 0, "the PIN is shown"


def test_a_prompt_that_is_broken_off_leaves_the_terminal_as_it_was(desk):
    folder = desk.account()
    for number, key in ((signal.SIGINT, b"\x03"), (signal.SIGTERM, None)):
        terminal = Terminal(desk.holdfast, "otp", "--authenticator", folder)
        terminal.await_text(b"PIN: ")
        while terminal.echoes():
            pass
        os.write(terminal.master, key) if key else os.kill(terminal.child, number)
        assert terminal.wait() == -number, "ended by its signal"
        assert terminal.echoes(), "the terminal does not show any more what is typed"
    assert rows(folder)[0]["next_counter"] == 0, "the counter moved"


def test_a_code_counts_down_until_it_has_expired(desk):
    folder = desk.account(pin=None, method=("--method", "totp", "--period", "2"))
    terminal = Terminal(desk.holdfast, "otp", "--authenticator", folder)
    terminal.await_text(b"valid for ")
    terminal.await_text(b"expired")
    assert terminal.wait() == 0, "counted down"
