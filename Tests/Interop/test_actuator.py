"""External actuators, of every temper: programs in Python and sh that `device serve --actuator` starts, and a peer at a socket.

The independent prover asks for commands. Each actuator keeps a journal of what reached it, so that the tests see that nothing
is carried out twice, that a denied round reaches no actuator, and that an accepted one is never answered as a denial.
"""

import contextlib
import json
import os
import pathlib
import signal
import sqlite3
import sys
import threading
import time

import pytest
from devices import LinuxDevice, suspend, wait_for
from holdfast_peer import cbor, session, transport
from holdfast_peer.prover import Prover
from holdfast_peer.session import COSE, NAMES

MALFORMED, USAGE = 2, 64
COMMANDS = ["lock", "unlock", "status", "configure", "open-safe"]
# How long an actuator has for an answer, in milliseconds: as long as possible, and less where it never answers.
LONGEST, SHORTER = 8000, 3000
LIBRARY = pathlib.Path(__file__).parent
# What an actuator does next, and once: the files `start` and `next` in its folder, which it removes.
PRELUDE = f"""#!{sys.executable}
import json, os, pathlib, signal, sys, time
sys.path.insert(0, {str(LIBRARY)!r})
from holdfast_peer import cbor
folder = pathlib.Path(__file__).parent
source, target = sys.stdin.buffer, sys.stdout.buffer
signal.signal(signal.SIGTERM, signal.SIG_DFL)
def once(name):
    try:
        word = (folder / name).read_text()
    except FileNotFoundError:
        return ""
    (folder / name).unlink()
    return word
def note(*words):
    with (folder / "journal").open("a") as journal:
        print(*words, file=journal)
def receive():
    head = source.read(2)
    if len(head) < 2:
        sys.exit(0)
    return source.read(int.from_bytes(head, "big"))
def raw(data):
    target.write(data)
    target.flush()
def frame(message):
    raw(len(message).to_bytes(2, "big") + message)
def send(item):
    frame(cbor.encode(item))
def die():
    os.kill(os.getpid(), signal.SIGKILL)
"""
USUAL = """
start = once("start")
if start == "die before": die()
assert receive() == b"\\x81\\x02"
if start == "die received": die()
if start == "silent": time.sleep(3600)
if start == "malformed": raw(b"\\x00\\x02\\x82\\x02")
if start == "too many": send([2, [f"c{i}" for i in range(33)]])
if start == "flood": raw(b"\\xff" * 1_000_000)
if start == "early": frame(cbor.encode([2, COMMANDS]) ); frame(cbor.encode([0, b"early"]))
if start == "": send([2, COMMANDS])
if start == "die after": send([2, COMMANDS]); die()
(folder / "pid").write_text(str(os.getpid()))
last = 0
while True:
    kind, sequence, command, parameters, user, subject = cbor.decode(receive())
    note(sequence, command, *parameters)
    result = f"{command} {sequence}".encode()
    what = once("next")
    if what == "die": die()
    elif what == "hang": time.sleep(3600)
    elif what == "flood": raw(b"\\x04\\x00" * 500_000)
    elif what == "half": raw(b"\\x00\\x10\\x82"); time.sleep(3600)
    elif what == "garbage": frame(b"\\xffunlocked")
    elif what == "indefinite": frame(b"\\x9f\\x00\\x41a\\xff")
    elif what == "not shortest": frame(b"\\x82\\x18\\x00\\x41a")
    elif what == "too long": frame(cbor.encode([0, b"a" * 1025]))
    elif what == "another type": frame(cbor.encode([0, "text"]))
    elif what == "report": send([0, result, sequence, "held open"])
    elif what == "refuse and report": send([1, "stuck", sequence, "the motor is hot"])
    elif what == "report late": send([0, b"old", last, "late"]); send([0, result, sequence])
    elif what == "report a line": send([0, result, sequence, "held\\nopen"])
    elif what == "refuse": send([1, "the bolt is stuck"])
    elif what == "looks like a denial": send([1, "notInPolicy"])
    elif what == "twice": send([0, result]); send([0, b"twice"])
    elif what == "twice, numbered": send([0, result, sequence]); send([0, b"twice", sequence])
    elif what == "old": send([0, b"old", last]); send([1, "old", last]); send([0, result, sequence])
    elif what == "old only": [send([0, b"old", last]) for _ in range(40)]
    elif what == "answer and die": send([0, result]); die()
    elif what == "largest": send([0, b"x" * 1024])
    elif what == "describe":
        descriptors = sorted(int(n) for n in os.listdir("/proc/self/fd"))
        group = os.getpgid(0) == os.getpid()
        names = sorted(os.environ)
        (folder / "self").write_text(json.dumps([descriptors, group, names, user, subject]))
        send([0, result])
    else: send([0, result])
    last = sequence
""".replace("COMMANDS", repr(COMMANDS))
SHELL = """#!/bin/sh
cd "$(dirname "$0")"
once() { cat "$1" 2>/dev/null; rm -f "$1"; }
start=$(once start)
[ "$start" = before ] && kill -9 $$
read -r line
[ "$line" = '{"start":1}' ] || exit 1
[ "$start" = received ] && kill -9 $$
echo '{"commands":["lock","unlock","status","configure","open-safe"]}'
[ "$start" = after ] && kill -9 $$
while read -r line; do
  sequence=${line#*:} sequence=${sequence%%,*}
  command=${line#*command\\":\\"} command=${command%%\\"*}
  what=$(once next)
  [ "$what" = "on receipt" ] && kill -9 $$
  echo "$sequence $command" >>journal
  [ "$what" = "before the answer" ] && kill -9 $$
  echo "{\\"sequence\\":$sequence,\\"result\\":\\"$command $sequence\\"}"
  [ "$what" = "after the answer" ] && kill -9 $$
done
exit 0
"""


def script(folder, text, name="actuator"):
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_text(text)
    path.chmod(0o755)
    return path


class ActingDevice(LinuxDevice):
    """A device with an external actuator, whose log is kept."""

    def __init__(self, holdfast, folder):
        super().__init__(holdfast, folder)
        self.place = self.folder / "actuator"
        self.address, self.timeout, self.log = None, LONGEST, self.folder / "log"

    def serve(self, *endpoints):
        with self.log.open("ab") as log:
            self.process = self.command_line.start(*self.arguments(*endpoints), stderr=log)

    def arguments(self, *endpoints, address=None, timeout=None):
        return (
            *("device", "serve", "--dir", self.device_folder),
            *(word for endpoint in endpoints for word in ("--listen", endpoint)),
            *("--actuator", address or self.address, "--actuator-timeout", timeout or self.timeout),
        )

    def refused(self, **changes):
        """A run that must not begin to serve: its exit status and message."""
        done = self.command_line.run(*self.arguments(f"unix:{self.socket}", **changes))
        return done.returncode, done.stderr.decode()

    def set(self, name, word):
        (self.place / name).write_text(word)

    def journal(self):
        """Sequence, command and parameters of each command that reached the actuator."""
        try:
            lines = (self.place / "journal").read_text().splitlines()
        except FileNotFoundError:
            return []
        return [(int(words[0]), *words[1:]) for words in map(str.split, lines)]

    def pid(self):
        return int((self.place / "pid").read_text())

    def audit(self):
        done = self.command_line.succeed("device", "audit", "--json", *self.device_arguments)
        return json.loads(done)["entries"]

    def lines(self, text):
        return [line for line in self.log.read_text().splitlines() if text in line]

    def policy(self, change):
        path = self.device_folder / "policy.json"
        policy = json.loads(path.read_text())
        change(policy)
        path.write_text(json.dumps(policy))

    def connect(self):
        return Prover(transport.connect(self.socket, 30), self.descriptor)

    def ask(self, command="unlock", grant=None, **changes):
        """One round on a fresh connection: the status and the result."""
        with (prover := self.connect()).connection:
            outcome = prover.ask(grant or self.grant(COSE), command, **changes)
            return NAMES[outcome.status], outcome.result["result"] if outcome.result else None

    def ask_when_ready(self, command="unlock"):
        """The same, as soon as the actuator has a place."""
        end = time.monotonic() + 20
        while True:
            status, result = self.ask(command)
            if status != "busy":
                return status, result
            assert time.monotonic() < end, "the actuator stays busy"
            time.sleep(0.05)

    def round_entry(self):
        """The audit entry of the last round, and those about it."""
        entries = self.audit()
        rounds = [e for e in entries if e["event"] == "round"]
        about = [e for e in entries if e.get("round") == rounds[-1]["sequence"]]
        return rounds[-1], about


@pytest.fixture
def device(holdfast, folder, request):
    """A device for each test, which is not served yet."""
    place = folder / f"d{abs(hash(request.node.name)) % 10**8}"
    place.mkdir()
    device = ActingDevice(holdfast, place)
    try:
        device.prepare()
        yield device
    finally:
        device.close()


def started(device, timeout=LONGEST):
    """The device with the usual program in CBOR, served."""
    device.address, device.timeout = f"exec:{script(device.place, PRELUDE + USUAL)}", timeout
    device.start()
    return device


@pytest.fixture
def acting(device):
    return started(device)


@pytest.fixture
def shell(device):
    """A device with the usual shell script."""
    device.address = f"lines:{script(device.place, SHELL)}"
    device.start()
    return device


def is_alive(pid):
    try:
        state = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"


# What works


def test_a_command_reaches_the_program_with_its_sequence_and_parameters_and_its_result_the_prover(acting):
    status, result = acting.ask(request=session.request("open-safe", ["7"]))
    assert status == "factorMissing" and acting.journal() == [], "a denied round reaches no actuator"
    status, result = acting.ask(request=session.request("unlock", ["7", "ä b"]))
    entry, about = acting.round_entry()
    assert (status, result) == ("accepted", f"unlock {entry['sequence']}".encode()), "the answer"
    assert acting.journal() == [(entry["sequence"], "unlock", "7", "ä", "b")], "what reached it"
    assert [e["event"] for e in about] == ["parameter", "parameter"], "the entries about the round"
    digest = "7902699be42c8a8e46fbbb4501726517e86b22c56a189f7625a6da49081b2451"
    assert about[0]["sha256"] == digest, "SHA-256 of the parameter"
    acting.command_line.succeed("device", "audit", "--verify", *acting.device_arguments)


def test_an_event_of_the_actuator_gets_one_entry_of_its_own_kind(acting):
    acting.set("next", "report")
    assert acting.ask()[0] == "accepted"
    _, about = acting.round_entry()
    assert [(e["event"], e["text"]) for e in about] == [("actuator-event", "held open")]
    acting.set("next", "refuse and report")
    assert acting.ask() == ("internal", b"stuck")
    _, about = acting.round_entry()
    events = [(e["event"], e["text"]) for e in about]
    assert events == [("actuator-event", "the motor is hot"), ("not-carried-out", "stuck")]
    acting.set("next", "report late")
    assert acting.ask()[0] == "accepted"
    assert acting.round_entry()[1] == [], "an event with the answer to another command"
    acting.set("next", "report a line")
    assert acting.ask() == ("internal", b"the actuator's answer was not as documented")
    assert [e["event"] for e in acting.round_entry()[1]] == ["not-carried-out"], "an event that is no line"
    acting.command_line.succeed("device", "audit", "--verify", *acting.device_arguments)


def test_policy_has_parameters_audited_as_text(acting):
    acting.policy(lambda policy: policy["commands"]["unlock"].update(audit="text"))
    assert acting.ask(request=session.request("unlock", ["door 7"]))[0] == "accepted"
    _, about = acting.round_entry()
    assert [(e["index"], e["text"]) for e in about] == [(0, "door 7")], "the parameters"


def test_the_program_has_no_descriptors_but_three_its_own_group_and_a_clean_environment(acting):
    acting.set("next", "describe")
    assert acting.ask()[0] == "accepted"
    descriptors, is_group, names, user, subject = json.loads((acting.place / "self").read_text())
    # The fourth is the folder that it lists.
    assert descriptors == [0, 1, 2, 3], "its descriptors"
    assert is_group, "its process group"
    assert set(names) <= {"PATH", "LANG", "LC_CTYPE"}, f"its environment {names}"
    assert (user, subject) == (None, "interop"), "user and subject"


def test_a_result_of_1024_bytes_arrives(acting):
    acting.set("next", "largest")
    assert acting.ask() == ("accepted", b"x" * 1024)


def test_a_shell_script_speaks_json(shell):
    status, result = shell.ask(request=session.request("unlock", ['a"b\\', "ä"]))
    entry, _ = shell.round_entry()
    assert (status, result) == ("accepted", f"unlock {entry['sequence']}".encode())


def test_a_peer_at_a_socket_is_an_actuator_and_a_hanging_one_gets_a_new_connection(device):
    device.place.mkdir()
    path, seen = str(device.place / "socket"), []
    listener = transport.Listener(path, timeout=30)
    device.address, device.timeout = f"unix:{path}", SHORTER

    def serve():
        for answers in (True, False, True):
            with listener.accept() as peer:
                assert peer.receive(30) == b"\x81\x02"
                peer.send(cbor.encode([2, COMMANDS]))
                try:
                    while True:
                        message = cbor.decode(peer.receive(30))
                        seen.append(message[2])
                        if answers and message[2] != "lock":
                            peer.send(cbor.encode([0, b"done", message[1]]))
                except transport.Closed:
                    pass

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    device.start()
    assert device.ask("unlock") == ("accepted", b"done")
    assert device.ask("lock") == ("internal", b"the actuator did not answer in time")
    assert device.ask_when_ready("unlock")[0] == "internal", "the second connection answers nothing"
    assert device.ask_when_ready("unlock") == ("accepted", b"done")
    assert seen == ["unlock", "lock", "unlock", "unlock"], "each command once"
    device.stop()
    thread.join(10)
    listener.close()


def test_a_second_answer_that_waits_at_a_socket_is_not_that_of_the_next_command(device):
    device.place.mkdir(exist_ok=True)
    path, seen = str(device.place / "socket"), []
    listener = transport.Listener(path, timeout=30)
    device.address = f"unix:{path}"

    def is_waiting():
        """Whether the next command has its place: its round is in the audit log, which the program would read too slowly."""
        with contextlib.closing(
            sqlite3.connect(f"file:{device.device_folder}/ledger.sqlite?mode=ro", uri=True)
        ) as ledger:
            entries = ledger.execute("SELECT entry FROM audit").fetchall()
        return any(cbor.encode("lock") in entry for (entry,) in entries)

    def serve():
        for _ in range(2):
            with listener.accept() as peer:
                assert peer.receive(30) == b"\x81\x02"
                peer.send(cbor.encode([2, COMMANDS]))
                try:
                    while True:
                        message = cbor.decode(peer.receive(30))
                        seen.append(message[2])
                        if message[2] == "unlock":
                            wait_for(is_waiting, "the next command does not get a place")
                            # The device finds both answers at once.
                            suspend(device.process)
                            peer.send(cbor.encode([0, b"unlocked"]))
                            peer.send(cbor.encode([0, b"unlocked"]))
                            device.process.send_signal(signal.SIGCONT)
                        else:
                            peer.send(cbor.encode([1, "jammed"]))
                except transport.Closed:
                    pass

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    device.start()
    first = []
    asking = threading.Thread(target=lambda: first.append(device.ask("unlock")))
    asking.start()
    wait_for(lambda: seen == ["unlock"], "the command does not reach the socket")
    status, text = device.ask("lock")
    asking.join(30)
    assert first == [("accepted", b"unlocked")]
    assert (status, text) in [("internal", b"actuator not available"), ("internal", b"jammed")], "never unlocked"
    assert device.ask_when_ready("lock") == ("internal", b"jammed"), "the next connection"
    device.stop()
    thread.join(10)
    assert not thread.is_alive(), "a connection more, or one less"
    listener.close()


# What fails

FAILURES = {
    "refuse": ("failed", b"the bolt is stuck"),
    "looks like a denial": ("failed", b"notInPolicy"),
    "hang": ("timed-out", b"the actuator did not answer in time"),
    "half": ("timed-out", b"the actuator did not answer in time"),
    "old only": ("bad-answer", b"the actuator's answer was not as documented"),
    "die": ("ended", b"the actuator ended before it answered"),
} | {
    word: ("bad-answer", b"the actuator's answer was not as documented")
    for word in ("flood", "garbage", "indefinite", "not shortest", "too long", "another type")
}


@pytest.mark.parametrize("what", FAILURES)
def test_a_failure_is_internal_with_a_text_and_has_an_audit_entry_and_a_line_and_the_next_command_works(device, what):
    reason, text = FAILURES[what]
    acting = started(device, SHORTER if reason == "timed-out" else LONGEST)
    acting.ask()
    acting.set("next", what)
    number = 77
    grant = acting.grant(COSE)
    request = session.request("unlock", number=number)
    assert acting.ask(grant=grant, request=request) == ("internal", text), "the answer"
    entry, about = acting.round_entry()
    assert entry["status"] == "accepted", "the round was accepted"
    assert [(e["event"], e["reason"], e["text"].encode()) for e in about] == [("not-carried-out", reason, text)]
    assert len(acting.lines(reason)) >= 1, "a line in the log"
    # The same request again is a repetition, and reaches no actuator.
    count = len(acting.journal())
    assert acting.ask(grant=grant, request=request) == ("internal", b""), "the repetition"
    status, result = acting.ask_when_ready("lock")
    entry, _ = acting.round_entry()
    assert (status, result) == ("accepted", f"lock {entry['sequence']}".encode()), "the next command"
    assert len(acting.journal()) == count + 1, "what reached the actuator"


def test_a_program_that_is_lost_is_killed_with_its_group(device):
    acting = started(device, SHORTER)
    acting.ask()
    before = acting.pid()
    acting.set("next", "hang")
    assert acting.ask()[0] == "internal"
    wait_for(lambda: not is_alive(before), "the old program lives")
    assert acting.ask_when_ready()[0] == "accepted"
    assert acting.pid() != before, "another program"


@pytest.mark.parametrize("what", ["twice", "twice, numbered", "answer and die"])
def test_what_comes_after_an_answer_is_never_another_commands_answer(acting, what):
    for count in range(1, 6):
        acting.set("next", what)
        status, result = acting.ask_when_ready("unlock")
        entry, _ = acting.round_entry()
        assert (status, result) == ("accepted", f"unlock {entry['sequence']}".encode()), "its own answer"
        if what == "twice":
            # An answer without a number cannot be told from the next command's until it is read.
            wait_for(lambda count=count: len(acting.lines("bad-answer")) == count, "the second answer is not seen")
        status, result = acting.ask_when_ready("lock")
        entry, _ = acting.round_entry()
        # A program that has just died may take the next command with it, never its outcome.
        expected = [("accepted", f"lock {entry['sequence']}".encode())]
        if what == "answer and die":
            expected.append(("internal", b"the actuator ended before it answered"))
        assert (status, result) in expected, "the next answer"


def test_old_answers_are_discarded(acting):
    acting.ask()
    acting.set("next", "old")
    status, result = acting.ask("unlock")
    entry, _ = acting.round_entry()
    assert (status, result) == ("accepted", f"unlock {entry['sequence']}".encode())
    assert len(acting.lines("discarded")) == 2, "lines about old answers"


def test_an_answer_before_any_command_restarts_the_program(device):
    device.address = f"exec:{script(device.place, PRELUDE + USUAL)}"
    device.set("start", "early")
    device.start()
    wait_for(lambda: device.lines("bad-answer"), "it is not seen")
    status, result = device.ask_when_ready("lock")
    entry, _ = device.round_entry()
    assert (status, result) == ("accepted", f"lock {entry['sequence']}".encode())


# Starting

BAD_STARTS = {
    "die before": "ended",
    "die received": "ended",
    "malformed": "not as documented",
    "too many": "1 to 32",
    "flood": "too long",
}


@pytest.mark.parametrize("what", BAD_STARTS)
def test_a_program_that_does_not_say_its_commands_is_refused(device, what):
    device.address = f"exec:{script(device.place, PRELUDE + USUAL)}"
    device.set("start", what)
    status, message = device.refused()
    assert status == MALFORMED and BAD_STARTS[what] in message, message


def test_what_cannot_be_executed_is_refused(device):
    device.place.mkdir()
    (folder := device.place / "folder").mkdir()
    plain = script(device.place, "echo", "plain")
    plain.chmod(0o644)
    formless = script(device.place, "\x01\x02", "formless")
    for path, text in (
        (folder, "is a folder"),
        (plain, "may not be executed"),
        (device.place / "absent", "does not exist"),
        (formless, "is not a program"),
        (plain / "below", "does not exist"),
    ):
        for form in ("exec", "lines"):
            status, message = device.refused(address=f"{form}:{path}")
            assert status == MALFORMED and text in message, f"{path}: {status} {message}"
    status, message = device.refused(address=f"unix:{device.place / 'absent'}")
    assert status == MALFORMED and "absent" in message, message


def test_arguments_out_of_range_are_refused(device):
    path = script(device.place, PRELUDE + USUAL)
    for timeout in ("99", "8001", "0", "x"):
        assert device.refused(address=f"exec:{path}", timeout=timeout)[0] == USAGE, timeout
    for address in ("exec:", "exec", "tcp:1", "", str(path)):
        assert device.refused(address=address or "''")[0] == USAGE, address
    run = device.command_line.run(
        "device", "serve", "--dir", device.device_folder, "--listen", device.endpoint, "--actuator-timeout", "500"
    )
    assert run.returncode == USAGE, "a time without an actuator"


def test_a_policy_with_a_command_that_nobody_carries_out_is_refused_at_the_start_and_the_command_while_serving(device):
    device.address = f"exec:{script(device.place, PRELUDE + USUAL)}"
    device.policy(lambda policy: policy["commands"].update({"self-destruct": {"factors": ["device"]}}))
    status, message = device.refused()
    assert status == MALFORMED and "self-destruct" in message, message
    # The simulated lock does not know it, either.
    done = device.command_line.run("device", "serve", "--dir", device.device_folder, "--listen", device.endpoint)
    assert done.returncode == MALFORMED and b"self-destruct" in done.stderr, done.stderr
    device.policy(lambda policy: policy["commands"].pop("self-destruct"))
    device.start()
    device.policy(lambda policy: policy["commands"].update({"self-destruct": {"factors": ["device"]}}))
    for _ in range(3):
        assert device.ask("self-destruct") == ("commandRefused", b"unknownToActuator")
    assert device.journal() == [], "what reached the actuator"
    wait_for(lambda: device.lines("does not know that command"), "no line about it")
    assert len(device.lines("does not know that command")) == 1, "lines about it"
    assert device.ask("unlock")[0] == "accepted", "others go on"


# Ends


@pytest.mark.parametrize("point", ["before", "received", "after"])
def test_a_shell_actuator_that_is_killed_while_it_starts_again_is_started_again(shell, point):
    shell.set("start", point)
    shell.set("next", "after the answer")
    assert shell.ask()[0] == "accepted"
    wait_for(lambda: not (shell.place / "start").exists(), "it is not started again")
    status, result = shell.ask_when_ready("lock")
    while status == "internal":
        # Killed after it had said its commands: what was recorded by then has failed, and says so.
        status, result = shell.ask_when_ready("lock")
    entry, _ = shell.round_entry()
    assert (status, result) == ("accepted", f"lock {entry['sequence']}".encode())
    assert len(shell.journal()) == len({line[0] for line in shell.journal()}), "a command was repeated"


@pytest.mark.parametrize("point", ["on receipt", "before the answer", "after the answer"])
def test_a_shell_actuator_that_is_killed_in_a_round_carries_out_nothing_twice(shell, point):
    for _ in range(3):
        shell.set("next", point)
        number = time.time_ns() // 1000
        grant = shell.grant(COSE)
        request = session.request("unlock", number=number)
        status, result = "busy", None
        while status == "busy":
            status, result = shell.ask(grant=grant, request=request)
        entry, about = shell.round_entry()
        carried_out = [line for line in shell.journal() if line[0] == entry["sequence"]]
        if point == "after the answer":
            assert (status, result, about) == ("accepted", f"unlock {entry['sequence']}".encode(), [])
        else:
            assert (status, result) == ("internal", b"the actuator ended before it answered")
            assert [e["reason"] for e in about] == ["ended"]
        assert len(carried_out) == (0 if point == "on receipt" else 1), "how often it was carried out"
        again = shell.ask(grant=grant, request=request)
        assert again[0] == status, "the repetition"
        assert [line for line in shell.journal() if line[0] == entry["sequence"]] == carried_out, "afterwards"
        assert shell.ask_when_ready("lock")[0] == "accepted", "the next command"


def test_a_device_that_is_killed_between_record_and_answer_does_not_know_the_outcome_and_repeats_nothing(acting):
    acting.set("next", "hang")
    grant, request = acting.grant(COSE), session.request("unlock", number=5)
    prover = acting.connect()
    attempt = prover.attempt(grant, request=request)
    prover.connection.send(attempt.message())
    wait_for(lambda: len(acting.journal()) == 1, "the command does not reach the actuator")
    child = acting.pid()
    acting.restart()
    prover.connection.close()
    wait_for(lambda: not is_alive(child), "the program outlives its device")
    with (prover := acting.connect()).connection:
        outcome = prover.ask(grant, request=request)
        assert NAMES[outcome.status] == "internal", "the outcome is unknown"
        assert outcome.result["highest"] == 5, "it is a repetition"
    assert len(acting.journal()) == 1, "it was repeated"
    assert acting.ask_when_ready("lock")[0] == "accepted", "the next command"


def test_others_are_served_while_the_actuator_hangs_and_more_than_eight_commands_are_busy(device):
    started(device)
    device.ask()
    rounds = len([e for e in device.audit() if e["event"] == "round"])
    device.set("next", "hang")
    results = []
    grants = [device.grant(COSE) for _ in range(10)]
    threads = [threading.Thread(target=lambda g=g: results.append(device.ask("unlock", g))) for g in grants]
    for thread in threads:
        thread.start()
    wait_for(lambda: len(device.journal()) == 2, "the command does not reach the actuator")
    wait_for(lambda: len(results) == 2, "those without a place are not answered")
    assert results == [("busy", b"")] * 2, "those without a place"
    for _ in range(5):
        assert device.ask("reboot") == ("commandRefused", b"notInPolicy")
        assert device.ask(request=session.request("user-sync", ["alice"]))[0] == "accepted"
    assert len(results) == 2, "others are held up until it hangs no longer"
    os.kill(device.pid(), signal.SIGKILL)
    for thread in threads:
        thread.join(60)
    texts = sorted(result for status, result in results if status == "internal")
    assert texts == [b"actuator not available"] * 7 + [b"the actuator ended before it answered"], "the others"
    assert len(device.journal()) == 2, "no command that waited was handed over"
    accepted = [e for e in device.audit() if e["event"] == "round" and e["command"] == "unlock"]
    assert len(accepted) == rounds + 8, "busy rounds are not recorded"


def test_the_end_of_the_device_ends_the_program_even_one_that_ignores_sigterm(acting):
    acting.ask()
    child = acting.pid()
    assert acting.stop() == 0 and not is_alive(child), "after SIGTERM"
    script(acting.place, PRELUDE + USUAL.replace("last = 0", "signal.signal(signal.SIGTERM, signal.SIG_IGN)"))
    acting.start()
    acting.ask()
    child, begun = acting.pid(), time.monotonic()
    assert acting.stop() == 0 and not is_alive(child), "one that ignores SIGTERM"
    assert time.monotonic() - begun < 30, "the time that it took"


def test_two_devices_are_not_served_from_one_folder_with_two_actuators(acting):
    starts = acting.place / "pid"
    acting.ask()
    before = starts.read_text()
    status, _ = acting.refused()
    assert status != 0 and starts.read_text() == before, "a second program was started"


def test_a_prover_is_told_that_a_command_failed_and_not_that_it_was_denied(acting):
    service, descriptor = acting.service()
    run, state = acting.command_line, acting.folder / "state"
    run.succeed("enroll", "--device", descriptor, "--service", service, "--state", state)
    acting.set("next", "looks like a denial")
    words = ("prove", "--connect", acting.endpoint, "--state", state, "--command", "unlock")
    done = run.run(*words)
    assert done.returncode == 1 and done.stdout == b"unlock: failed, internal\n", done.stdout
    assert b"notInPolicy" in done.stderr and b"policy" not in done.stderr.replace(b"notInPolicy", b""), done.stderr
    acting.set("next", "refuse")
    done = run.run(*words, "--json")
    said = json.loads(done.stdout)
    assert (said["status"], said["result"], "refusal" in said) == ("internal", "the bolt is stuck", False)


def test_a_stop_signal_to_the_program_is_a_timeout(device):
    acting = started(device, SHORTER)
    acting.ask()
    child = acting.pid()
    os.kill(child, signal.SIGSTOP)
    assert acting.ask() == ("internal", b"the actuator did not answer in time")
    wait_for(lambda: not is_alive(child), "the stopped program lives")
    assert acting.ask_when_ready()[0] == "accepted"
