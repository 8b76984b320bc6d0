"""`vectors replay --target`: what a device judges is sent to devices, sound ones and others, and their answers are compared."""

import json
import pathlib
import re
import tempfile

import pytest
from devices import BUSY, LinuxDevice, served
from holdfast_peer import session, transport
from holdfast_peer.device import Device
from holdfast_peer.keys import PrivateKey
from holdfast_peer.scripted_device import ScriptedDevice

VECTORS = pathlib.Path(__file__).resolve().parents[2] / "vectors"
FILES = sorted(VECTORS.glob("*.json"))
SESSION = VECTORS / "session_test.json"
OTHER_KEY = "the device does not have the key of the vectors"


class VectorsDevice(LinuxDevice):
    """A device with the published key of the vectors."""

    def prepare(self):
        self.command_line.succeed("vectors", "device", SESSION, *self.device_arguments)


@pytest.fixture
def place(folder):
    """A folder of each test's own, whose path is short enough for a socket."""
    with tempfile.TemporaryDirectory(dir=folder) as name:
        yield pathlib.Path(name)


def replay(run, endpoint, *files, timeout=10):
    """The finished replay, and the numbers of tests that passed, failed and were skipped."""
    done = run.run("vectors", "replay", *files, "--target", endpoint, "--timeout", timeout)
    counts = re.search(rb"(\d+) passed, (\d+) failed, (\d+) skipped", done.stdout)
    return done, [int(count) for count in counts.groups()] if counts else None


def test_a_device_with_the_key_of_the_vectors_judges_them_as_they_say(holdfast, place):
    with served(VectorsDevice(holdfast, place)) as device:
        done, (passed, failed, _) = replay(device.command_line, device.endpoint, *FILES)
        assert (done.returncode, failed) == (0, 0), done.stdout
        assert passed > 1300 and OTHER_KEY.encode() not in done.stdout
        assert device.stop() == 0


def test_any_other_device_is_sent_the_messages_only(holdfast, place):
    with served(LinuxDevice(holdfast, place)) as device:
        done, (passed, failed, _) = replay(device.command_line, device.endpoint, SESSION)
        assert (done.returncode, failed) == (0, 0), done.stdout
        assert passed > 100 and OTHER_KEY.encode() in done.stdout


def test_the_made_device_has_the_ids_of_the_vectors_and_is_not_made_twice(holdfast, place):
    device = VectorsDevice(holdfast, place)
    device.prepare()
    group = json.loads(SESSION.read_text())["testGroups"][0]
    shown = device.command_line.read_json("device", "show", *device.device_arguments)
    assert shown["device_id"] == group["deviceId"]
    again = device.command_line.run("vectors", "device", SESSION, *device.device_arguments)
    assert again.returncode != 0
    without = device.command_line.run("vectors", "device", VECTORS / "oath-hotp.json", "--dir", "other")
    assert without.returncode == 2 and b"has no key of a device" in without.stderr


class Unsound:
    """A device that differs from a sound one in its answers, by a function from the honest status and M3 to others."""

    def __init__(self, change):
        group = json.loads(SESSION.read_text())["testGroups"][0]
        key = PrivateKey(bytes.fromhex(group["devicePrivateKey"]))
        self.model = Device(key, bytes.fromhex(group["deviceId"]), [bytes.fromhex(group["issuerPublicKey"])])
        self.change = change

    def serve(self, peer):
        while True:
            m1 = self.model.message_1()
            peer.send(m1)
            message = peer.receive()
            answer = self.change(*self.model.answer(m1, message))
            if answer is None:
                return
            peer.send(answer)
            if answer == session.message_3(session.STATUS["malformed"], None):
                return


def unsealed(name):
    return session.message_3(session.STATUS[name], None)


UNSOUND = {
    "takes what is malformed": lambda status, m3: unsealed("tokenInvalid") if status == 13 else m3,
    "finds everything malformed": lambda status, m3: unsealed("malformed"),
    "never seals": lambda status, m3: session.message_3(status, None),
    "accepts everything": lambda status, m3: unsealed("accepted"),
    "answers with nonsense": lambda status, m3: b"nonsense",
    "answers with another challenge": lambda status, m3: session.message_1(bytes(16), bytes(16), bytes(8), 0, 0),
}


@pytest.mark.parametrize("name", UNSOUND)
def test_an_unsound_device_is_found(holdfast, place, name):
    path = str(place / "unsound.socket")
    unsound = Unsound(UNSOUND[name])
    with ScriptedDevice(unsound.model, path, unsound.serve):
        transport.connect_when_ready(path).close()
        run = LinuxDevice(holdfast, place).command_line
        done, (_, failed, _) = replay(run, f"unix:{path}", SESSION)
        assert done.returncode == 2 and failed > 0, done.stdout


def test_a_device_that_closes_instead_of_answering_ends_the_replay(holdfast, place):
    path = str(place / "silent.socket")
    unsound = Unsound(lambda status, m3: None)
    with ScriptedDevice(unsound.model, path, unsound.serve):
        transport.connect_when_ready(path).close()
        done, counts = replay(LinuxDevice(holdfast, place).command_line, f"unix:{path}", SESSION)
        assert done.returncode == 69 and counts is None, done.stdout


def test_a_device_without_room_is_asked_again(holdfast, place):
    path = str(place / "busy.socket")
    sound, turned_away = Unsound(lambda status, m3: m3), []

    def serve(peer):
        if len(turned_away) < 5:
            turned_away.append(peer)
            peer.send(BUSY)
        else:
            sound.serve(peer)

    with ScriptedDevice(sound.model, path, serve):
        done, counts = replay(LinuxDevice(holdfast, place).command_line, f"unix:{path}", SESSION)
        assert counts and counts[0] > 400, done.stdout + done.stderr
        # The model knows no compatibility rounds: it finds the valid ones malformed, too.
        failed = [line for line in done.stdout.splitlines() if line.startswith(b"FAILED")]
        assert len(failed) == counts[1] == len(valid_tests("SessionCompatibility"))


def valid_tests(kind):
    groups = json.loads(SESSION.read_text())["testGroups"]
    return [test for group in groups if group["type"] == kind for test in group["tests"] if test["result"] == "valid"]
