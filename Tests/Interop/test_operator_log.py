"""What an operator reads: the log of `device serve`, and `device audit`, with peers that want them to lie."""

import datetime
import json
import os
import pathlib
import re
import secrets
import shutil
import subprocess
import sys
import tempfile
import time

import pytest
from devices import LinuxDevice, wait_for
from holdfast_peer.command_line import stop
from holdfast_peer.session import COSE, NAMES, REFERENCE

USAGE = 64
# What a token's holder can call a command, and how the audit log and the log of a server have to show it.
SPOOFS = {
    "a  subject=boss  user=alice": '"a  subject=boss  user=alice"',
    'a"  subject="boss': r'"a\"  subject=\"boss"',
    "a\\": r'"a\\"',
    "unlock\u200b": r'"unlock\u{200b}"',
    "unlock\u061c": r'"unlock\u{61c}"',
    "unlock\ufeff": r'"unlock\u{feff}"',
    "unlock\u00ad": r'"unlock\u{ad}"',
    "unlock\U000e0041": r'"unlock\u{e0041}"',
    "unlock\ufe0f": r'"unlock\u{fe0f}"',
    "unlock\u202e": r'"unlock\u{202e}"',
    "unlock\u3000": r'"unlock\u{3000}"',
    "unlock\n1  accepted": r'"unlock\u{a}1  accepted"',
    "unlock\x1b[2J": r'"unlock\u{1b}[2J"',
    "unlock\\u{1b}[2J": r'"unlock\\u{1b}[2J"',
    "открыть": '"открыть"',
}
TIME = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ"
FIELD = re.compile(r'  ([a-z_A-Z]+)=("(?:[^"\\]|\\.)*"|\S+)')


class LoggingDevice(LinuxDevice):
    """A device whose log is kept."""

    log = None

    def serve(self, *more, json_lines=False):
        """Serves at the usual socket, with more options, once each endpoint is listened at."""
        self.log = self.folder / f"log-{secrets.token_hex(4)}"
        pathlib.Path(self.socket).unlink(missing_ok=True)
        arguments = ("device", "serve", "--dir", self.device_folder, "--listen", self.endpoint, *more)
        with self.log.open("wb") as target:
            self.process = subprocess.Popen(
                [self.command_line.path, *map(str, arguments), *(["--json"] if json_lines else [])],
                env=self.command_line.environment,
                stdin=subprocess.DEVNULL,
                stdout=target if json_lines else subprocess.DEVNULL,
                stderr=subprocess.PIPE if json_lines else target,
            )
        count = 1 + more.count("--listen")
        self.wait(lambda lines: sum("listening" in line for line in lines) == count)

    def lines(self):
        return self.log.read_text().splitlines()

    def wait(self, condition):
        wait_for(lambda: condition(self.lines()), "the log has not the lines that are waited for")
        return self.lines()

    def end(self):
        """Ends the device; its whole log."""
        assert stop(self.process) == 0, "exit status after SIGTERM"
        return self.lines()


@pytest.fixture(scope="module")
def prepared(holdfast, folder):
    device = LoggingDevice(holdfast, folder)
    device.prepare()
    return device


@pytest.fixture
def device(prepared):
    """The module's device, which each test serves as it needs it."""
    yield prepared
    prepared.close()


def status_of(outcome):
    return NAMES[outcome.status]


def fields(line):
    return dict(FIELD.findall(line))


def garbage(device, count, connections=1):
    for _ in range(connections):
        prover = device.connect()
        grant = device.grant(COSE)
        with prover.connection:
            for _ in range(count):
                prover.ask(grant, encoding=REFERENCE, token=secrets.token_bytes(16))


def test_each_round_has_a_line_with_time_connection_status_command_subject_peer_and_device(device):
    """Time, connection, status, command, subject, peer and device; by the process that connected."""
    device.serve()
    with (prover := device.connect()).connection:
        assert status_of(prover.ask(device.grant(COSE, subject="the app"), "unlock")) == "accepted", "status"
        line = device.wait(lambda lines: any("accepted" in line for line in lines))[-1]
    assert re.match(rf"holdfast: {TIME} connection \d+: accepted  ", line), f"not a line of the log: {line}"
    seen = fields(line)
    assert seen == {
        "command": '"unlock"',
        "subject": '"the app"',
        "peer": f'"uid {os.getuid()}, pid {os.getpid()}"',
        "device": device.descriptor.device_id.hex()[:8],
    }, "the fields"
    stamp = datetime.datetime.strptime(line.split()[1], "%Y-%m-%dT%H:%M:%S%z").timestamp()
    assert abs(stamp - time.time()) < 60, f"another time: {line}"
    lines = device.end()
    assert re.fullmatch(rf"holdfast: {TIME} ended", lines[-1]), f"the last line: {lines[-1]}"


def test_a_command_cannot_spoof_the_log(device):
    """Each command in the log, in the audit log and in both as JSON."""
    device.serve()
    for command in SPOOFS:
        with (prover := device.connect()).connection:
            assert status_of(prover.ask(device.grant(COSE), command)) == "commandRefused", "status"
    # Each of another token: denied rounds of one would be counted.
    logged = [line for line in device.end() if "commandRefused" in line]
    assert [fields(line)["command"] for line in logged] == list(SPOOFS.values()), "the commands in the log"
    assert [set(fields(line)) for line in logged] == [{"command", "subject", "peer", "device"}] * len(SPOOFS), (
        "the fields"
    )


def test_with_json_each_line_is_one_object_on_standard_output(device):
    """--json: each line one object, on standard output, with times in seconds; nothing on standard error."""
    device.serve(json_lines=True)
    for command in SPOOFS:
        with (prover := device.connect()).connection:
            prover.ask(device.grant(COSE), command)
    with (prover := device.connect()).connection:
        grant = device.grant(COSE)
        assert status_of(prover.ask(grant, by_reference=True)) == "tokenUnknown", "by reference"
        assert status_of(prover.ask(grant)) == "accepted", "whole"
    garbage(device, 1)
    raw = device.end()
    assert device.process.stderr.read() == b"", "standard error"
    device.process.stderr.close()
    lines = [json.loads(line) for line in raw]
    assert {type(line["time"]) for line in lines} == {int}, "the type of the times"
    assert all(abs(line["time"] - time.time()) < 60 for line in lines), "another time"
    assert lines[0]["device_id"] == device.descriptor.device_id.hex(), "the device of the first line"
    version = json.loads(device.command_line.run("--version", "--json").stdout)["version"]
    assert lines[0]["version"] == version, "the version of the first line"
    assert [
        lines[0]["event"],
        *(lines[1][name] for name in ("event", "endpoint")),
        lines[2]["event"],
        lines[-1]["event"],
    ] == [
        "started",
        "listening",
        f"unix:{device.socket}",
        "policy",
        "ended",
    ], "the events"
    rounds = [line for line in lines if line["event"] == "round"]
    assert [line["command"] for line in rounds] == [*SPOOFS, "unlock"], "the commands"
    last = rounds[-1]
    assert (
        last["status"],
        last["subject"],
        last["uid"],
        last["pid"],
        last["device_id"],
        last["token"],
        last["asked_for_whole_token"],
    ) == (
        "accepted",
        "interop",
        os.getuid(),
        os.getpid(),
        device.descriptor.device_id.hex(),
        grant.claims["tokenId"].hex(),
        True,
    ), "the accepted round"
    strangers = [line for line in lines if line["event"] == "unproved"]
    assert [(line["tokenUnknown"], line["connections"]) for line in strangers] == [(1, 1)], "the stranger"


def test_a_restart_is_not_told_as_an_attack(device):
    """After a restart the device asks for the whole token: one line, which says so, and none of a stranger."""
    grant = device.grant(COSE)
    device.serve()
    with (prover := device.connect()).connection:
        assert status_of(prover.ask(grant)) == "accepted", "before"
    device.end()
    device.serve()
    with (prover := device.connect()).connection:
        assert status_of(prover.ask(grant, by_reference=True)) == "tokenUnknown", "by reference"
        assert status_of(prover.ask(grant)) == "accepted", "whole"
    lines = device.end()
    assert len([line for line in lines if "tokenUnknown" in line or "without proof" in line]) == 0, (
        "lines of a stranger"
    )
    assert len([line for line in lines if "accepted, after the whole token was asked for  command=" in line]) == 1, (
        "lines of the round"
    )


def test_strangers_are_counted(device):
    """Thousands of strangers' messages are two lines, and one more for each minute that it takes; none is lost."""
    begun = time.monotonic()
    device.serve()
    garbage(device, 5, connections=200)
    lines = [line for line in device.end() if "without proof: " in line]
    assert 2 <= len(lines) <= 2 + (time.monotonic() - begun) // 60, f"{len(lines)} lines, such as {lines[:4]}"
    count = sum(int(re.search(r"(\d+) tokenUnknown", line)[1]) for line in lines)
    assert count == 1000, "how many are told of"
    connections = [int((re.search(r"on (\d+) connections", line) or (0, 1))[1]) for line in lines]
    # One that was open when a line was written is in the next one as well.
    assert 200 <= sum(connections) < 200 + len(lines), f"on {connections} connections"


def test_denied_rounds_of_one_token_are_counted(device):
    """A token's holder who is often denied is two lines, and one more for each minute; accepted rounds are one each."""
    begun = time.monotonic()
    device.serve()
    grant = device.grant(COSE, commands=["unlock"])
    with (prover := device.connect()).connection:
        for _ in range(300):
            assert status_of(prover.ask(grant, "lock")) == "commandRefused", "status"
        for _ in range(20):
            assert status_of(prover.ask(grant, "unlock")) == "accepted", "status"
    lines = device.end()
    denied = [line for line in lines if "commandRefused" in line]
    most = 2 + (time.monotonic() - begun) // 60
    assert 2 <= len(denied) <= most, f"lines of denied rounds, such as {denied[:3]}"
    counts = [int((re.search(r"commandRefused, (\d+) times  ", line) or (0, 1))[1]) for line in denied]
    assert sum(counts) == 300, f"how many are told of: {counts}"
    assert len([line for line in lines if ": accepted  " in line]) == 20, "lines of accepted rounds"


def test_a_quiet_device_tells_no_round(device):
    device.serve("--quiet", "--verbose")
    with (prover := device.connect()).connection:
        assert status_of(prover.ask(device.grant(COSE))) == "accepted", "status"
    garbage(device, 3)
    lines = device.end()
    assert not any("connection" in line or "without proof" in line for line in lines), f"it says {lines}"


def test_a_verbose_device_tells_of_every_stranger(device):
    device.serve("--verbose")
    garbage(device, 30)
    lines = [line for line in device.end() if ": tokenUnknown" in line]
    assert len(lines) == 30, "lines of a stranger"
    assert fields(lines[0]) == {
        "peer": f'"uid {os.getuid()}, pid {os.getpid()}"',
        "device": device.descriptor.device_id.hex()[:8],
    }, "the fields"


def test_the_audit_log_quotes_each_command(device):
    """The text of `device audit`, after all of the above."""
    text = device.owner("audit")
    assert text.returncode == 0, "exit status"
    lines = [line for line in text.stdout.decode().splitlines() if "  round  " in line or "denied" in line]
    entries = json.loads(device.owner("audit", "--json").stdout)["entries"]
    commands = [entry["command"] for entry in entries if "command" in entry]
    shown = [fields(line)["command"] for line in lines if "command=" in line]
    assert len(shown) == len(commands), "how many commands are shown"
    known = {**SPOOFS, "unlock": '"unlock"', "lock": '"lock"'}
    assert shown == [known[command] for command in commands], "the commands"
    for line in text.stdout.decode().splitlines():
        assert re.match(rf"\d+  {TIME}  [a-z-]+(  |$)", line), f"not an entry: {line}"
        assert line == "".join(each for each in line if each.isprintable()), f"something unseen in {line!r}"


CONNECT = """
import socket, sys
peer = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
try:
    peer.connect(sys.argv[1])
except PermissionError:
    sys.exit(77)
sys.exit(0 if peer.recv(4096) else 1)
"""


def test_a_group_may_connect_and_others_may_not(device):
    """mode=660,group=…: who is of the group connects, somebody else does not; a mode for everybody is warned of."""
    if os.geteuid() != 0:
        pytest.skip("only root can connect as another user")
    # A copy of the program that everybody can run.
    program = shutil.copy(device.command_line.path, device.folder / "holdfast")
    device.folder.chmod(0o755)
    folder = pathlib.Path(tempfile.mkdtemp(prefix="hf"))
    folder.chmod(0o711)
    device.socket, before = str(folder / "s"), device.socket
    try:
        for option, group, expected, warns in (
            (",mode=660,group=54321", 54321, 0, False),
            (",group=54321", 54321, 0, False),
            (",mode=660,group=54321", 54322, 77, False),
            ("", 54321, 77, False),
            (",mode=666", 54322, 0, True),
        ):
            device.serve("--listen", f"unix:{folder}/other{option}")
            done = subprocess.run(
                [
                    "setpriv",
                    "--reuid=65534",
                    f"--regid={group}",
                    "--clear-groups",
                    sys.executable,
                    "-c",
                    CONNECT,
                    f"{folder}/other",
                ],
                capture_output=True,
                timeout=60,
                check=False,
            )
            assert done.returncode == expected, (
                f"how a peer of group {group} fares with {option!r}: {done.stderr.decode()}"
            )
            if done.returncode == 77:
                refused = subprocess.run(
                    [
                        "setpriv",
                        "--reuid=65534",
                        f"--regid={group}",
                        "--clear-groups",
                        sys.executable,
                        "-c",
                        "import os, sys; os.execv(sys.argv[1], sys.argv[1:])",
                        program,
                        "doctor",
                        f"unix:{folder}/other",
                    ],
                    capture_output=True,
                    timeout=60,
                    check=False,
                )
                assert b"mode=660,group=" in refused.stdout + refused.stderr, (
                    f"no hint: {refused.stdout + refused.stderr}"
                )
            lines = device.end()
            assert any("every user of this host may connect" in line for line in lines) == warns, (
                f"whether {option!r} is warned of"
            )
            assert not (folder / "other").exists(), "the socket's file is still there"
        done = device.owner("serve", "--listen", f"unix:{folder}/other,group=no-such-group")
        assert done.returncode == 2, "exit status for a group that is not there"
        assert b'there is no group "no-such-group"' in done.stderr and b"hint: " in done.stderr, (
            f"it says {done.stderr}"
        )
        assert not (folder / "other").exists(), "there is a file"
    finally:
        device.socket = before
        for path in folder.iterdir():
            path.unlink()
        folder.rmdir()


def selected(device, *options):
    return json.loads(device.owner("audit", "--json", *options).stdout)["entries"]


def test_each_condition_of_audit_selects_its_entries(device):
    """Each condition, and several at once, against the whole log; the text has the same entries."""
    device.serve()
    for user in ("alice", "bob", "alice"):
        secret = device.folder / "secret"
        secret.write_text("31323334353637383930313233343536373839")
        secret.chmod(0o600)
        assert (
            device.owner("user", "add", "--otp-secret", secret, "--seal", "none", "--replace", user).returncode == 0
        ), "user add"
    with (prover := device.connect()).connection:
        grant = device.grant(COSE)
        for command in ("unlock", "nothing", "status", "lock"):
            prover.ask(grant, command)
    garbage(device, 2)
    device.end()
    # An entry of later.
    assert device.owner("floor", "--clock", str(int(time.time()) + 5000)).returncode == 0, "floor"
    everything = selected(device)
    middle = everything[len(everything) // 2]
    late = [entry for entry in everything if entry["time"] >= everything[-1]["time"]]
    assert 0 < len(late) < len(everything), "no entry is later than the others"

    def status_of_entry(entry, name):
        return entry.get("status") == name or name in entry

    cases = {
        (): everything,
        ("--after", "0"): everything,
        ("--last", "3"): everything[-3:],
        ("--last", "0"): [],
        ("--after", str(middle["sequence"])): [entry for entry in everything if entry["sequence"] > middle["sequence"]],
        ("--after", str(everything[-1]["sequence"])): [],
        ("--after", "9007199254740991"): [],
        ("--since", str(everything[-1]["time"])): late,
        ("--since", "0"): everything,
        ("--since", "2100-01-01T00:00:00Z"): [],
        ("--user", "alice"): [entry for entry in everything if entry.get("user") == "alice"],
        ("--user", "al"): [],
        ("--status", "accepted"): [entry for entry in everything if status_of_entry(entry, "accepted")],
        ("--status", "tokenUnknown"): [entry for entry in everything if status_of_entry(entry, "tokenUnknown")],
        ("--user", "alice", "--last", "1"): [entry for entry in everything if entry.get("user") == "alice"][-1:],
        ("--status", "accepted", "--after", str(middle["sequence"]), "--last", "2"): [
            entry
            for entry in everything
            if status_of_entry(entry, "accepted") and entry["sequence"] > middle["sequence"]
        ][-2:],
        (
            "--since",
            datetime.datetime.fromtimestamp(everything[-1]["time"], datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        ): late,
        (
            "--since",
            datetime.datetime.fromtimestamp(
                everything[-1]["time"], datetime.timezone(datetime.timedelta(hours=-3))
            ).strftime("%Y-%m-%dT%H:%M:%S-03:00"),
        ): late,
    }
    assert len(cases[("--user", "alice")]) == 2 and cases[("--status", "tokenUnknown")], "nothing to select"
    for options, expected in cases.items():
        assert selected(device, *options) == expected, f"what {options} selects"
        text = device.owner("audit", *options).stdout.decode().splitlines()
        assert [int(line.split()[0]) for line in text] == [entry["sequence"] for entry in expected], (
            f"the text of {options}"
        )
    for options in (
        ("--after", "x"),
        ("--after=-1",),
        ("--after", "9007199254740992"),
        ("--after", ""),
        ("--since", "yesterday"),
        ("--since", "2026-02-30T00:00:00Z"),
        ("--since", "9007199254740992"),
        ("--since", "2026-11-22"),
        ("--user", ""),
        ("--user", "u" * 33),
        ("--user", "a\u200b"),
        ("--status", "acepted"),
        ("--status", ""),
        ("--last=-1",),
        ("--last", "x"),
        ("--verify", "--last", "1"),
        ("--verify", "--after", "1"),
    ):
        done = device.owner("audit", *options)
        assert (done.returncode, done.stdout) == (USAGE, b""), f"exit status and output of {options}"
        assert b"hint: " in done.stderr or options[0].startswith(("--last", "--user")), (
            f"{options} has no hint: {done.stderr}"
        )


def test_entries_from_before_a_time_are_cut_into_a_file_named_after_them(device):
    """The first entry of that time stays, and everything before it is in the file; the last entry stays in any case."""
    everything = selected(device)
    late = next(entry for entry in everything if entry["time"] >= everything[-1]["time"])
    moment = datetime.datetime.fromtimestamp(late["time"], datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    folder = device.folder / "archive"
    folder.mkdir()
    cut = json.loads(device.owner("audit", "--json", "--cut-before", moment, "--to", folder).stdout)
    file = folder / f"audit-{everything[0]['sequence']}-{late['sequence'] - 1}.jsonl"
    assert (cut["through"], cut["file"]) == (late["sequence"] - 1, str(file)), "what was cut"
    assert selected(device)[0]["sequence"] == late["sequence"], "the first entry that stays"
    assert device.command_line.run("device", "audit", "--file", file, "--verify").returncode == 0, "the file"
    assert device.owner("audit", "--verify").returncode == 0, "the log"
    again = json.loads(device.owner("audit", "--json", "--cut-before", moment, "--to", folder).stdout)
    assert again == {"through": late["sequence"] - 1, "head": None, "file": None}, "once more"
    assert [path.name for path in folder.iterdir()] == [file.name], "the files"
    last = selected(device)[-1]["sequence"]
    assert device.owner("audit", "--cut-before", "2100-01-01T00:00:00Z", "--to", folder).returncode == 0, "all of it"
    assert selected(device)[0]["sequence"] == last, "the last entry stays"
