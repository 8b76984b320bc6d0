"""Examples/Charger: a verifier with its own actuator and its own transport, in another package."""

import json
import signal
import socket
import subprocess

import examples
import pytest
from holdfast_peer.command_line import CommandLine

OK, DENIED = 0, 1


class Charger:
    """A charging point that serves, and an app that is enrolled for it."""

    def __init__(self, holdfast, folder):
        self.folder, self.path = folder, folder / "charger.sock"
        self.programs = examples.built("Charger", folder / "source")
        run = self.line = CommandLine(holdfast, folder)
        run.succeed("service", "init", "--dir", "service")
        (folder / "service.json").write_bytes(run.succeed("service", "show", "--dir", "service", "--json"))
        run.succeed("device", "init", "--dir", "charger")
        run.succeed("device", "trust", "--dir", "charger", "service.json")
        self.allow("charge", "stop", "status")
        (folder / "charger.json").write_bytes(run.succeed("device", "show", "--dir", "charger", "--json"))
        run.succeed("service", "device", "add", "--dir", "service", "charger.json")
        run.succeed("enroll", "--service", "service", "--device", "charger.json", "--state", "phone")
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.listener.bind(str(self.path))
        self.listener.listen(8)
        self.process = self.start()

    def start(self):
        number = self.listener.fileno()
        # The socket is descriptor 3, as systemd passes it.
        script = f'exec "$0" charger 3<&{number}'
        return subprocess.Popen(
            ["bash", "-c", script, self.programs / "Charger"],
            cwd=self.folder,
            stdout=subprocess.PIPE,
            pass_fds=[number],
        )

    def allow(self, *commands):
        path = self.folder / "charger" / "policy.json"
        policy = json.loads(path.read_text())
        policy["commands"] = {each: {"factors": ["integrity", "device"], "compatibility": False} for each in commands}
        path.write_text(json.dumps(policy))

    def prove(self, command, *parameters):
        words = [word for each in parameters for word in ("--parameter", each)]
        where = ("--connect", f"unix:{self.path}", "--state", "phone", "--timeout", "60")
        done = self.line.run("prove", *where, "--command", command, *words, "--json")
        answer = json.loads(done.stdout)
        return done.returncode, answer["status"], answer.get("result")

    def stop(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()


@pytest.fixture(scope="module")
def charger(holdfast, tmp_path_factory):
    charger = Charger(holdfast, tmp_path_factory.mktemp("charger"))
    yield charger
    charger.stop()


def test_commands_reach_the_machine(charger):
    assert charger.prove("charge", "16") == (OK, "accepted", "16 A")
    assert charger.prove("status") == (OK, "accepted", "16 A")
    assert charger.prove("stop") == (OK, "accepted", "0 A")


@pytest.mark.parametrize("parameters", [("5",), ("33",), ("many",), (), ("16", "16")])
def test_a_command_that_fails_is_no_denial(charger, parameters):
    code, status, text = charger.prove("charge", *parameters)
    assert (code != OK, status, text) == (True, "internal", "6 to 32 amperes")
    assert charger.prove("status") == (OK, "accepted", "0 A")


def test_a_command_that_no_machine_carries_out_is_refused(charger):
    charger.allow("charge", "stop", "status", "explode")
    assert charger.prove("explode")[1] == "commandRefused"
    charger.allow("charge", "stop", "status")


def test_a_peer_that_ends_in_the_middle_holds_up_nobody(charger):
    for message in (b"", b"\xff", bytes(4096), bytes(4097)):
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as peer:
            peer.connect(str(charger.path))
            peer.recv(4096)
            if message:
                peer.send(message)
    assert charger.prove("stop") == (OK, "accepted", "0 A")


def test_killed_it_serves_again_and_numbers_go_on(charger):
    assert charger.prove("charge", "10") == (OK, "accepted", "10 A")
    charger.stop()
    charger.process = charger.start()
    assert charger.prove("status") == (OK, "accepted", "0 A")


def test_a_second_one_does_not_open_the_folder(charger):
    second = charger.start()
    assert second.wait(timeout=60) != 0
    assert charger.prove("stop") == (OK, "accepted", "0 A")


def test_without_a_folder_or_arguments_it_says_so(charger):
    for words in ((), ("none",), ("charger", "more")):
        done = subprocess.run(
            [charger.programs / "Charger", *words], cwd=charger.folder, capture_output=True, timeout=60, check=False
        )
        assert done.returncode != 0 and done.stderr
