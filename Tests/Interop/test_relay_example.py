"""Examples/relay-gpio: an actuator in sh, behind `device serve --actuator lines:`, with its stand-in for gpioset."""

import contextlib
import fcntl
import itertools
import os
import pathlib
import re
import signal
import subprocess

import pytest
from devices import wait_for
from holdfast_peer import session
from holdfast_peer.session import COSE
from test_actuator import MALFORMED, ActingDevice, is_alive

EXAMPLE = pathlib.Path(__file__).resolve().parents[2] / "Examples" / "relay-gpio"
RELAY = EXAMPLE / "relay"


def processes():
    """Id, parent and group of each process that lives."""
    for entry in pathlib.Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            state, parent, group = (entry / "stat").read_text().rsplit(")", 1)[1].split()[:3]
            if state != "Z":
                yield int(entry.name), int(parent), int(group)


class Relay(ActingDevice):
    """A device whose actuator is the relay of the example, and the record of its line."""

    def __init__(self, holdfast, folder):
        super().__init__(holdfast, folder)
        self.record, self.address = folder / "line", f"lines:{RELAY}"
        self.environment = self.command_line.environment
        self.environment |= {"HOLDFAST_RELAY_RECORD": str(self.record), "HOLDFAST_RELAY_PULSE_MS": "100"}
        self.environment["PATH"] = f"{EXAMPLE / 'stand-in'}:{self.environment['PATH']}"

    def allow(self, *commands):
        rule = {"factors": ["integrity", "device"], "compatibility": False}
        self.policy(lambda policy: policy.update(commands={each: rule for each in commands}))

    def changes(self):
        """The values that the line has had, each once."""
        values = [line.removeprefix("gpiochip0 17=") for line in self.record.read_text().splitlines()]
        return "".join(value for value, _ in itertools.groupby(values))

    def pid(self):
        """The process of the script: the device's child, not those that the script has started."""
        (child,) = [pid for pid, parent, _ in processes() if parent == self.process.pid]
        return child

    def group(self):
        """The script and the processes that it has started."""
        leader = self.pid()
        return [pid for pid, _, group in processes() if group == leader]

    def held(self):
        """Whether a process has the line."""
        with self.record.open("ab") as record:
            try:
                fcntl.flock(record, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return True
        return False


@pytest.fixture
def idle(holdfast, tmp_path_factory):
    """A device for each test, which is not served yet."""
    device = Relay(holdfast, tmp_path_factory.mktemp("relay"))
    try:
        device.prepare()
        device.allow("open", "close", "pulse")
        yield device
    finally:
        device.close()


@pytest.fixture
def relay(idle):
    idle.start()
    return idle


def test_commands_move_the_line(relay):
    assert relay.changes() == "0", "the line starts closed"
    for command, result, changes in (
        ("open", b"opened", "01"),
        ("open", b"opened", "01"),
        ("close", b"closed", "010"),
        ("pulse", b"pulsed", "01010"),
        ("open", b"opened", "010101"),
        ("pulse", b"pulsed", "0101010"),
    ):
        assert relay.ask(command) == ("accepted", result)
        assert relay.changes() == changes, command
        wait_for(relay.held, "nobody holds the line")
    relay.command_line.succeed("device", "audit", "--verify", *relay.device_arguments)


def test_what_policy_refuses_does_not_reach_the_line(relay):
    assert relay.ask("unlock")[0] == "commandRefused"
    assert relay.changes() == "0"


def test_a_policy_with_another_command_is_refused_at_the_start(idle):
    idle.allow("open", "explode")
    code, said = idle.refused()
    assert code == MALFORMED and "explode" in said


@pytest.mark.parametrize("parameters", [["now"], [""], ['"],"parameters":[']])
def test_a_command_with_a_parameter_is_an_error_and_moves_nothing(relay, parameters):
    request = session.request("open", parameters)
    assert relay.ask(request=request) == ("internal", b"the relay has no such command")
    assert relay.changes() == "0"
    assert relay.ask("open") == ("accepted", b"opened")


def test_if_the_tool_fails_the_prover_gets_its_text_and_not_a_denial(relay, tmp_path):
    assert relay.ask("close")[0] == "accepted"
    wait_for(relay.held, "nobody holds the line")
    kept = relay.record.rename(tmp_path / "kept")
    relay.record.mkdir()
    number = session.request("open", number=7)
    grant = relay.grant(COSE)
    assert relay.ask(grant=grant, request=number) == (
        "internal",
        b"error setting the GPIO line values: No such file or directory",
    )
    entry, about = relay.round_entry()
    assert (entry["status"], [each["reason"] for each in about]) == ("accepted", ["failed"])
    relay.record.rmdir()
    kept.rename(relay.record)
    assert relay.ask(grant=grant, request=number)[0] == "internal", "a repetition is not carried out"
    assert relay.changes() == "0"
    assert relay.ask("open") == ("accepted", b"opened")


def test_a_line_that_another_process_has_is_an_error(relay):
    assert relay.ask("open")[0] == "accepted"
    wait_for(relay.held, "nobody holds the line")
    relay.stop()
    wait_for(lambda: not relay.held(), "the line is still held")
    with relay.record.open("ab") as record:
        fcntl.flock(record, fcntl.LOCK_EX)
        code, said = relay.refused()
        assert code == MALFORMED and "Device or resource busy" in said


@pytest.mark.parametrize("command", ["open", "close", "pulse"])
def test_killed_between_commands_it_serves_again_with_the_line_closed(relay, command):
    assert relay.ask(command)[0] == "accepted"
    before = relay.pid()
    os.kill(before, signal.SIGKILL)
    wait_for(lambda: not is_alive(before), "it lives")
    status, _ = relay.ask_when_ready("close")
    while status == "internal":  # It was on its way to the one that ended.
        status, _ = relay.ask_when_ready("close")
    assert status == "accepted"
    assert relay.changes() == ("0" if command == "close" else "010")
    assert relay.pid() != before


def test_killed_in_a_command_it_serves_again_and_repeats_nothing(relay):
    relay.stop()
    relay.environment["HOLDFAST_RELAY_PULSE_MS"] = "5000"
    relay.start()
    grant, request = relay.grant(COSE), session.request("pulse", number=9)
    prover = relay.connect()
    prover.connection.send(prover.attempt(grant, request=request).message())
    wait_for(lambda: relay.changes().endswith("1"), "the pulse does not begin")
    os.kill(relay.pid(), signal.SIGKILL)
    prover.connection.close()
    status, _ = relay.ask_when_ready("close")
    while status == "internal":
        status, _ = relay.ask_when_ready("close")
    assert status == "accepted"
    assert relay.ask(grant=grant, request=request)[0] == "internal", "the outcome is unknown"
    assert relay.changes() == "010", "one pulse"
    assert "ended" in [each.get("reason") for each in relay.audit()]


def test_if_the_device_is_killed_nobody_holds_the_line(relay):
    assert relay.ask("open")[0] == "accepted"
    wait_for(relay.held, "nobody holds the line")
    processes = relay.group()
    assert len(processes) == 2, "the script and the holder"
    relay.process.kill()
    relay.process.wait(60)
    wait_for(lambda: not any(map(is_alive, processes)), "processes are left")
    assert not relay.held()


# The script by itself.


def carried_out(tmp_path, text, **changes):
    """What the script answers to `text`, its exit status, and what became of the line."""
    record = tmp_path / "line"
    path = f"{EXAMPLE / 'stand-in'}:{os.environ['PATH']}"
    environment = {"PATH": path, "HOLDFAST_RELAY_RECORD": str(record), "HOLDFAST_RELAY_PULSE_MS": "1"} | changes
    done = subprocess.run([RELAY], input=text, env=environment, capture_output=True, text=True, timeout=30, check=False)
    return done, record.read_text() if record.exists() else ""


START = '{"start":1}\n'
OPEN = '{"sequence":7,"command":"open","parameters":[],"user":null,"subject":"app"}\n'


def test_the_line_of_a_command_must_be_as_the_device_writes_it(tmp_path):
    done, record = carried_out(tmp_path, START + OPEN)
    assert '{"sequence":7,"result":"opened"}' in done.stdout and "17=1" in record
    for wrong in (
        "",
        "\n",
        "open\n",
        OPEN[:-1],
        OPEN[:50],
        " " + OPEN,
        OPEN.replace("open", "Open"),
        OPEN.replace("open", "open "),
        OPEN.replace("open", "op"),
        OPEN.replace("open", "*"),
        OPEN.replace("open", "$(gpioset gpiochip0 17=1)"),
        OPEN.replace("open", 'x","command":"open'),
        OPEN.replace("open", "x").replace("app", '\\"command\\":\\"open\\",\\"parameters\\":[],'),
        OPEN.replace("7", '7,"sequence":7'),
        OPEN.replace("7", "*"),
        OPEN.replace("7", '";gpioset gpiochip0 17=1;"'),
        OPEN.replace("[]", '["[]"]'),
    ):
        (tmp_path / "line").unlink()
        done, record = carried_out(tmp_path, START + wrong)
        assert "17=1" not in record and "result" not in done.stdout, wrong
        answers = done.stdout.splitlines()[1:]
        assert all(re.fullmatch(r'\{"sequence":7,"error":"[a-z ]+"\}', each) for each in answers), wrong


def test_without_the_first_message_or_with_wrong_settings_it_ends_and_leaves_the_line_alone(tmp_path):
    for text, changes in (
        (OPEN, {}),
        ("", {}),
        (START[:-1], {}),
        (START, {"HOLDFAST_RELAY_LINE": "17=1"}),
        (START, {"HOLDFAST_RELAY_LINE": "-1"}),
        (START, {"HOLDFAST_RELAY_PULSE_MS": "10000"}),
        (START, {"HOLDFAST_RELAY_PULSE_MS": "08"}),
    ):
        done, record = carried_out(tmp_path, text, **changes)
        assert done.returncode != 0 and done.stdout == "" and record == "", (text, changes)


def test_a_text_of_the_tool_that_is_long_or_has_quotes_does_not_break_the_answer(tmp_path):
    tools = tmp_path / "tools"
    tools.mkdir()
    tool = tools / "gpioset"
    tool.write_text(
        '#!/bin/sh\ncase "$*" in *=0) exit 0 ;; esac\nprintf \'gpioset: "a\\\\b"\\n\\001%080d\' 0 >&2; exit 1\n'
    )
    tool.chmod(0o755)
    done, _ = carried_out(tmp_path, START + OPEN, PATH=f"{tools}:{os.environ['PATH']}")
    assert done.stdout.splitlines()[1] == '{"sequence":7,"error":"ab ' + 61 * "0" + '"}'
