"""Vault, agent, wipe and unenroll from outside: the files made again in Python, cut files, processes at once, and prompts."""

import json
import os
import pty
import re
import select
import signal
import socket
import subprocess
import termios
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from holdfast_peer import vault as peer

PAGE = Path(__file__).resolve().parents[2] / "docs/vault.md"
CHUNK = 65_536


class Desk:
    """The program, and the files of a user."""

    def __init__(self, holdfast, path):
        self.holdfast, self.path = str(holdfast), path
        self.environment = {**os.environ, "XDG_DATA_HOME": str(path / "data")}
        (path / "data").mkdir(mode=0o700)
        for name, text in (("right", b"correct horse\n"), ("wrong", b"wrong horse\n")):
            (path / name).write_bytes(text)

    def call(self, *arguments, stdin=b""):
        return subprocess.run(
            [self.holdfast, *arguments], input=stdin, capture_output=True, timeout=60, cwd=self.path,
            env=self.environment,
        )  # fmt: skip

    def run(self, *arguments, status=0, stdin=b""):
        done = self.call(*arguments, stdin=stdin)
        assert done.returncode == status, f"{' '.join(arguments)}: {done.returncode}, {done.stderr.decode()}"
        assert b"horse" not in done.stderr
        return done.stdout

    def json(self, *arguments, status=0):
        return json.loads(self.run(*arguments, "--json", status=status))

    def init(self, *more):
        self.run("vault", "init", "--vault", "v", "--passcode-file", "right", "--key-file", "key", *more)

    def unlock(self, passcode, status=0):
        return self.run("vault", "unlock", "--vault", "v", "--passcode-file", passcode, status=status)

    def encrypt(self, plain):
        return self.run("vault", "encrypt", "--vault", "v", "--key-file", "key", stdin=plain)

    def decrypt(self, sealed, status=0):
        return self.run("vault", "decrypt", "--vault", "v", "--key-file", "key", stdin=sealed, status=status)

    @property
    def key(self):
        host = (self.path / "data/holdfast/device.secret").read_bytes()
        return peer.key_of((self.path / "v/vault.key").read_bytes(), host, key_file=(self.path / "key").read_bytes())


@pytest.fixture
def desk(holdfast, tmp_path):
    return Desk(holdfast, tmp_path)


@pytest.fixture
def agent(desk):
    """A running agent at `agent.sock`, which is ended."""
    command = [desk.holdfast, "agent", "--socket", "agent.sock", "--json"]
    with subprocess.Popen(command, cwd=desk.path, env=desk.environment, stdout=subprocess.PIPE) as process:
        assert json.loads(process.stdout.readline()) == {"event": "ready", "socket": "agent.sock"}
        yield process
        if process.poll() is None:
            process.terminate()
        assert process.wait(60) == 0


def test_the_vector_of_the_page_is_what_its_text_says():
    blocks = [bytes.fromhex(block) for block in re.findall(r"```\n([0-9a-f\n]+)```", PAGE.read_text())]
    host, identity, key = bytes(range(32)), bytes(range(16)), bytes(range(32, 64))
    slot = bytes([10, 4, 8, 1]) + bytes(range(64, 96))
    record = peer.record(
        identity, key, host, passcode=b"correct horse", slot=slot, key_file=bytes(range(96, 128)),
        salt=bytes(range(128, 160)),
    )  # fmt: skip
    sealed = peer.encrypt(b"hello", identity, key, bytes(range(160, 192)), b"greeting")
    assert blocks == [record, peer.attempts(identity, host, 0, 3), sealed]


def test_an_independent_reader_and_writer_agree_with_the_program(desk):
    desk.init()
    host = (desk.path / "data/holdfast/device.secret").read_bytes()
    record = (desk.path / "v/vault.key").read_bytes()
    identity, key = desk.key
    assert peer.key_of(record, host, passcode=b"correct horse") == (identity, key)
    assert record == (desk.path / "v/vault.copy").read_bytes()
    assert (desk.path / "v/attempts").read_bytes() == peer.attempts(identity, host, 0, 0)
    for size in (0, 1, CHUNK - 1, CHUNK, CHUNK + 1, 2 * CHUNK, 150_000):
        plain = os.urandom(size)
        assert peer.decrypt(desk.encrypt(plain), identity, key) == plain
        assert desk.decrypt(peer.encrypt(plain, identity, key, os.urandom(32))) == plain


def test_a_file_that_was_cut_gets_no_name_and_standard_output_gets_whole_chunks_only(desk):
    desk.init()
    plain = os.urandom(CHUNK + 100)
    sealed = desk.encrypt(plain)
    first = 96 + CHUNK + 16
    for length in (0, 1, 50, 95, 96, 111, 112, 5000, first - 1, first, first + 1, len(sealed) - 1):
        (desk.path / "cut").write_bytes(sealed[:length])
        desk.run("vault", "decrypt", "--vault", "v", "--key-file", "key", "--in", "cut", "--out", "out", status=2)
        assert sorted(path.name for path in desk.path.iterdir()) == ["cut", "data", "key", "right", "v", "wrong"]
        assert desk.decrypt(sealed[:length], status=2) == (plain[:CHUNK] if length > first else b"")
    assert desk.decrypt(sealed + b"\x00", status=2) == plain[:CHUNK]
    (desk.path / "sealed").write_bytes(sealed)
    done = desk.json("vault", "decrypt", "--vault", "v", "--key-file", "key", "--in", "sealed", "--out", "out")
    assert done == {"file": "out", "bytes": len(plain)} and (desk.path / "out").read_bytes() == plain
    # A file is never overwritten.
    desk.run("vault", "decrypt", "--vault", "v", "--key-file", "key", "--in", "sealed", "--out", "out", status=2)


def test_a_context_belongs_to_the_contents(desk):
    desk.init()
    sealed = desk.run("vault", "encrypt", "--vault", "v", "--key-file", "key", "--context", "notes", stdin=b"text")
    assert desk.decrypt(sealed, status=2) == b""
    again = desk.run("vault", "decrypt", "--vault", "v", "--key-file", "key", "--context", "notes", stdin=sealed)
    assert again == b"text"


def test_processes_that_guess_at_once_get_no_more_attempts_than_one_and_the_last_wipes(desk):
    desk.init("--attempts", "5")

    def guess(_):
        """Tries a wrong passcode, again if other processes had the vault for the ten seconds that one waits for its turn."""
        for _ in range(10):
            done = desk.call("vault", "unlock", "--vault", "v", "--passcode-file", "wrong")
            if done.returncode != 69:
                break
        return done

    with ThreadPoolExecutor(8) as pool:
        done = list(pool.map(guess, range(8)))
    assert [found.returncode for found in done] == [1] * 8
    assert sum(b"the passcode is wrong" in found.stderr for found in done) == 4
    assert [path.name for path in (desk.path / "v").iterdir()] == ["attempts"]
    desk.unlock("right", status=1)
    desk.run("vault", "unlock", "--vault", "v", "--key-file", "key", status=1)
    desk.run("vault", "init", "--vault", "v", "--passcode-file", "right")
    desk.unlock("right")


def test_a_damaged_counter_refuses_passcodes_until_the_key_file_restores_it(desk):
    desk.init("--attempts", "3")
    for counter in (b"", b"x" * 66, b"holdfast-tries/1" + bytes(50)):
        (desk.path / "v/attempts").write_bytes(counter)
        for _ in range(4):
            desk.unlock("wrong", status=1)
        desk.unlock("right", status=1)
        assert (desk.path / "v/attempts").read_bytes() == counter
        assert desk.json("vault", "show", "--vault", "v")["attempts_left"] is None
        desk.run("vault", "unlock", "--vault", "v", "--reset", "--key-file", "key")
        desk.unlock("right")


def test_a_waiting_reset_that_is_killed_has_tried_nothing(desk):
    desk.init()
    (desk.path / "v/attempts").write_bytes(b"")
    command = [desk.holdfast, "vault", "unlock", "--vault", "v", "--reset", "--passcode-file", "right"]
    with subprocess.Popen(command, cwd=desk.path, env=desk.environment, stderr=subprocess.PIPE) as process:
        assert b"ten minutes" in process.stderr.readline()
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0.5)
        process.kill()
    assert (desk.path / "v/attempts").read_bytes() == b""
    desk.unlock("right", status=1)


def test_passcode_and_key_file_are_changed(desk):
    desk.init()
    sealed = desk.encrypt(b"text")
    desk.run("vault", "passwd", "--vault", "v", "--passcode-file", "right", "--new-passcode-file", "wrong")
    desk.unlock("right", status=1)
    desk.unlock("wrong")
    desk.run("vault", "passwd", "--vault", "v", "--passcode-file", "wrong", "--new-key-file", "other")
    desk.run("vault", "unlock", "--vault", "v", "--key-file", "key", status=1)
    arguments = ["vault", "decrypt", "--vault", "v", "--key-file", "other"]
    assert desk.run(*arguments, stdin=sealed) == b"text"
    desk.run("vault", "passwd", "--vault", "v", "--key-file", "other", "--no-passcode")
    desk.unlock("wrong", status=1)
    desk.run("vault", "passwd", "--vault", "v", "--key-file", "other", "--no-key-file", status=64)
    assert desk.run(*arguments, stdin=sealed) == b"text"


def test_on_another_host_the_folder_is_useless(desk):
    desk.init()
    desk.environment["XDG_DATA_HOME"] = str(desk.path / "elsewhere")
    desk.unlock("right", status=2)
    (desk.path / "elsewhere").mkdir(mode=0o700)
    (desk.path / "elsewhere/holdfast").mkdir(mode=0o700)
    secret = desk.path / "elsewhere/holdfast/device.secret"
    secret.write_bytes(os.urandom(32))
    secret.chmod(0o600)
    desk.unlock("right", status=2)


def typed(desk, arguments, *answers, hidden=True):
    """The exit status of the program on a terminal, where the answers are typed at its questions."""
    child, terminal = pty.fork()
    if child == 0:
        os.chdir(desk.path)
        os.execve(desk.holdfast, [desk.holdfast, *arguments], desk.environment)
    shown, answers, end = b"", list(answers), time.monotonic() + 120
    try:
        while time.monotonic() < end:
            if select.select([terminal], [], [], 0.05)[0]:
                try:
                    shown += os.read(terminal, 4096)
                except OSError:
                    break
            # What is typed before the echo is off is discarded.
            is_ready = not hidden or not termios.tcgetattr(terminal)[3] & termios.ECHO
            if answers and shown.endswith(b": ") and is_ready:
                os.write(terminal, answers.pop(0) + b"\n")
                shown += b"\n"
    finally:
        os.close(terminal)
        if time.monotonic() >= end:
            os.kill(child, signal.SIGKILL)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert b"horse" not in shown, "a passcode is shown"
    return status


def test_passcodes_are_asked_for_and_a_new_one_twice(desk):
    arguments = ["vault", "init", "--vault", "v"]
    assert typed(desk, arguments, b"correct horse", b"another horse") == 2
    assert not (desk.path / "v").exists()
    assert typed(desk, arguments, b"correct horse", b"correct horse") == 0
    assert typed(desk, ["vault", "unlock", "--vault", "v"], b"correct horse") == 0
    assert typed(desk, ["vault", "unlock", "--vault", "v"], b"wrong horse") == 1
    assert typed(desk, ["wipe", "--vault", "v"], b"no", hidden=False) == 1
    assert (desk.path / "v/vault.key").exists()
    assert typed(desk, ["wipe", "--vault", "v"], b"wipe", hidden=False) == 0
    assert not (desk.path / "v").exists()


def test_an_agent_lets_programs_do_without_the_passcode_until_it_forgets(desk, agent):
    desk.init()
    sealed = desk.encrypt(b"text")
    decrypt = ["vault", "decrypt", "--vault", "v", "--agent", "agent.sock"]
    desk.run("vault", "unlock", "--vault", "v", "--agent", "agent.sock", "--passcode-file", "right")
    assert desk.run(*decrypt, stdin=sealed) == b"text"
    identity, key = desk.key
    assert desk.run("agent", "--socket", "agent.sock", "--give", f"vault:{identity.hex()}") == key
    desk.run("vault", "lock", "--vault", "v", "--agent", "agent.sock")
    # Without the agent's key and without a terminal there is nothing to unlock it with.
    done = subprocess.run(
        [desk.holdfast, *decrypt], input=sealed, capture_output=True, timeout=60, cwd=desk.path, env=desk.environment,
        start_new_session=True,
    )  # fmt: skip
    assert done.returncode == 64 and done.stdout == b""
    (desk.path / "pin").write_bytes(b"135790\n")
    hold = ["agent", "--socket", "agent.sock", "--hold", "pin", "--secret-file", "pin"]
    give = ["agent", "--socket", "agent.sock", "--give", "pin"]
    for forget in ("lock", "signal"):
        desk.run(*hold)
        assert desk.run(*give) == b"135790"
        if forget == "lock":
            desk.run("agent", "--socket", "agent.sock", "--lock")
        else:
            agent.send_signal(signal.SIGHUP)
            deadline = time.monotonic() + 20
            while desk.call(*give).returncode == 0 and time.monotonic() < deadline:
                pass
        desk.run(*give, status=1)
    assert desk.json("agent", "--socket", "agent.sock", "--list") == {"names": []}


def test_an_agent_locks_its_memory_and_keeps_its_socket_to_itself(desk, agent):
    path = desk.path / "agent.sock"
    assert path.stat().st_mode & 0o777 == 0o600
    locked = re.search(r"VmLck:\s+(\d+)", Path(f"/proc/{agent.pid}/status").read_text())
    assert int(locked[1]) >= 36
    desk.run("agent", "--socket", "agent.sock", status=69)
    # A client that says nothing holds nobody up.
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as silent:
        silent.connect(str(path))
        desk.run("agent", "--socket", "agent.sock", "--lock")
    agent.send_signal(signal.SIGTERM)
    assert agent.wait(60) == 0 and not path.exists()
    desk.run("agent", "--socket", "agent.sock", "--list", status=69)


@pytest.mark.skipif(os.getuid() != 0, reason="an ordinary user has the limit in any case")
def test_an_agent_locks_its_memory_under_the_limit_of_an_ordinary_user(desk):
    """Without the capability to lock any memory, and with the 8 MiB that users usually may lock."""
    limited = ["prlimit", "--memlock=8388608:8388608", "setpriv", "--bounding-set=-ipc_lock"]
    command = [*limited, desk.holdfast, "agent", "--socket", "agent.sock", "--json"]
    with subprocess.Popen(command, cwd=desk.path, env=desk.environment, stdout=subprocess.PIPE) as process:
        assert json.loads(process.stdout.readline())["event"] == "ready"
        locked = re.search(r"VmLck:\s+(\d+)", Path(f"/proc/{process.pid}/status").read_text())
        assert 36 <= int(locked[1]) <= 8192
        process.terminate()
        assert process.wait(60) == 0


def test_a_killed_agent_leaves_a_socket_that_the_next_one_replaces(desk, agent):
    agent.kill()
    agent.wait(60)
    assert (desk.path / "agent.sock").exists()
    command = [desk.holdfast, "agent", "--socket", "agent.sock", "--json"]
    with subprocess.Popen(command, cwd=desk.path, env=desk.environment, stdout=subprocess.PIPE) as process:
        assert json.loads(process.stdout.readline())["event"] == "ready"
        process.terminate()
        assert process.wait(60) == 0
    agent.returncode = 0


def enrolled(desk):
    """Makes a state folder with one enrolment and a vault."""
    desk.run("service", "init", "--dir", "service")
    desk.run("device", "init", "--dir", "lock")
    (desk.path / "lock.json").write_bytes(desk.run("device", "show", "--dir", "lock", "--json"))
    desk.run("service", "device", "add", "--dir", "service", "lock.json")
    desk.run("enroll", "--state", "phone", "--service", "service", "--device", "lock.json")
    desk.run("vault", "init", "--vault", "phone/vault", "--passcode-file", "right")


def test_unenroll_and_wipe_ask_first_and_leave_what_is_not_a_provers(desk):
    enrolled(desk)
    unenroll = ["unenroll", "--state", "phone", "--device", "lock.json"]
    assert typed(desk, unenroll, b"no", hidden=False) == 1
    desk.run("status", "--state", "phone")
    assert typed(desk, unenroll, b"unenroll", hidden=False) == 0
    desk.run(*unenroll, "--yes", status=2)
    desk.run("status", "--state", "phone", status=2)
    desk.run("enroll", "--state", "phone", "--service", "service", "--device", "lock.json")
    (desk.path / "phone/notes").write_bytes(b"mine")
    wiped = desk.json("wipe", "--state", "phone", "--yes")
    assert wiped == {"enrolments": 1, "vaults": 1, "host_secret": False, "left": ["notes"]}
    assert [path.name for path in (desk.path / "phone").iterdir()] == ["notes"]
    (desk.path / "phone/notes").unlink()
    desk.run("wipe", "--state", "phone", "--yes")
    assert not (desk.path / "phone").exists()
    secret = desk.path / "data/holdfast/device.secret"
    assert secret.exists()
    assert desk.run("wipe", "--host-secret", "--yes") == b"this host's secret is removed\n"
    assert not secret.exists()
    # The secret that is not there is not said to be removed.
    again = desk.call("wipe", "--host-secret", "--yes", "--json")
    answer = json.loads(again.stdout)
    assert again.returncode == 0 and answer["host_secret"] is False, again
    assert [warning["code"] for warning in answer["warnings"]] == ["nothing-to-wipe"]
    for folder in ("lock", "service"):
        desk.run("wipe", "--state", folder, "--yes", status=2)
        assert (desk.path / folder).is_dir() and len(list((desk.path / folder).iterdir())) > 2
