"""`vectors replay --target`: what a device judges is sent to devices, sound ones and others, and their answers are compared."""

import contextlib
import json
import pathlib
import re
import socket
import tempfile
import threading

import pytest
from devices import BUSY, BridgedDevice, Line, LinuxDevice, served
from holdfast_peer import session, transport
from holdfast_peer.command_line import read_descriptor
from holdfast_peer.device import Device, Second
from holdfast_peer.keys import PrivateKey
from holdfast_peer.scripted_device import ScriptedDevice
from vector_files import SESSION, VECTORS, excerpt

FILES = sorted(VECTORS.glob("*.json"))
TOKENS = VECTORS / "measurement_token_test.json"
OTHER_KEY = "the device does not have the key of the vectors"


class VectorsDevice(LinuxDevice):
    """A device with the published key of the vectors, which accepts signed tokens and others."""

    accepts = "signed"

    def prepare(self):
        file = TOKENS if self.accepts == "mac" else SESSION
        self.command_line.succeed("vectors", "device", file, *self.device_arguments, "--accepts", self.accepts)
        self.descriptor = read_descriptor(self.command_line.read_json("device", "show", *self.device_arguments))


class BridgedVectorsDevice(BridgedDevice):
    """The same behind a bridge."""

    accepts = "signed"
    prepare = VectorsDevice.prepare


class VectorsDeviceAtALine(VectorsDevice):
    """The same at one end of a serial line."""

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.line = Line()

    def start(self):
        self.serve(f"tty:{self.line.names[0]}", f"unix:{self.socket}")
        transport.connect_when_ready(self.socket).close()

    def close(self):
        super().close()
        self.line.close()

    @property
    def endpoint(self):
        return f"tty:{self.line.names[1]}"


@pytest.fixture
def place(folder):
    """A folder of each test's own, whose path is short enough for a socket."""
    with tempfile.TemporaryDirectory(dir=folder) as name:
        yield pathlib.Path(name)


def replay(run, endpoint, *files, timeout=10, accepts="signed"):
    """The finished replay, and the numbers of tests that passed, failed and were skipped."""
    done = run.run(
        "vectors", "replay", *files, "--target", endpoint, "--timeout", timeout, "--accepts", accepts, timeout=900
    )
    counts = re.search(rb"(\d+) passed, (\d+) failed, (\d+) skipped", done.stdout)
    return done, [int(count) for count in counts.groups()] if counts else None


def test_a_device_with_the_key_of_the_vectors_judges_them_as_they_say(holdfast, place):
    with served(VectorsDevice(holdfast, place)) as device:
        done, (passed, failed, _) = replay(device.command_line, device.endpoint, *FILES)
        assert (done.returncode, failed) == (0, 0), done.stdout
        assert passed > 1800 and OTHER_KEY.encode() not in done.stdout
        # Each test that is not sent has its reason, which depends on its type or on its contents.
        reasons = skipped(done)
        for kind in ("RequestNumber", "SessionRound", "BulletinMessage", "AuditMail", "Frames"):
            assert not any(reason.startswith(f"{kind}:") for reason in reasons), kind
        assert sum(reasons.values()) == counted(FILES) - passed
        assert device.stop() == 0


def skipped(done):
    """The numbers of tests that were skipped, by reason."""
    reasons = {}
    for count, reason in re.findall(rb"^skipped (\d+) of [^:]+: (.+)$", done.stdout, re.MULTILINE):
        reasons[reason.decode()] = reasons.get(reason.decode(), 0) + int(count)
    return reasons


def counted(files):
    return sum(json.loads(file.read_text())["numberOfTests"] for file in files)


@pytest.mark.parametrize("accepts", ["unsigned", "mac"])
def test_tokens_of_another_policy_are_judged_by_a_device_with_it(holdfast, place, accepts):
    device = VectorsDevice(holdfast, place)
    device.accepts = accepts
    groups = json.loads(TOKENS.read_text())["testGroups"]
    wanted = [
        group
        for group in groups
        if (group["acceptUnsigned"], group.get("acceptMac", False)) == (accepts == "unsigned", accepts == "mac")
    ]
    with served(device):
        done, (passed, failed, _) = replay(device.command_line, device.endpoint, TOKENS, accepts=accepts)
        assert (done.returncode, failed) == (0, 0), done.stdout
        reasons = skipped(done)
        future = sum(count for reason, count in reasons.items() if "issued in the future" in reason)
        assert passed + future == sum(len(group["tests"]) for group in wanted)
        # The policy decides: under another one, valid tokens are refused.
        other = "mac" if accepts == "unsigned" else "unsigned"
        done, (_, failed, _) = replay(device.command_line, device.endpoint, TOKENS, accepts=other)
        assert done.returncode == 2 and failed > 0, done.stdout


def test_a_device_behind_a_bridge_judges_the_same(holdfast, place):
    with served(BridgedVectorsDevice(holdfast, place)) as device:
        files = [
            excerpt(place, SESSION, 40),
            excerpt(place, TOKENS, 60),
            excerpt(place, VECTORS / "bulletin.json", 60),
        ]
        done, (passed, failed, _) = replay(device.command_line, device.endpoint, *files)
        assert (done.returncode, failed) == (0, 0), done.stdout
        assert passed > 35 and OTHER_KEY.encode() not in done.stdout
        frames = excerpt(place, VECTORS / "frames_test.json", 4)
        done, (passed, failed, _) = replay(device.command_line, f"unix-stream:{device.stream}", frames)
        assert (done.returncode, failed) == (0, 0), done.stdout
        assert passed > 5


def test_a_device_at_a_terminal_judges_the_same(holdfast, place):
    with served(VectorsDeviceAtALine(holdfast, place)) as device:
        files = [excerpt(place, SESSION, 60), excerpt(place, VECTORS / "frames_test.json", 5)]
        done, (passed, failed, _) = replay(device.command_line, device.endpoint, *files)
        assert (done.returncode, failed) == (0, 0), done.stdout
        assert passed > 15 and "a serial line has empty frames" in skipped(done)


def test_a_device_at_a_stream_judges_each_frame_that_its_first_message_decides(holdfast, place):
    frames = excerpt(place, VECTORS / "frames_test.json", 2)
    device = VectorsDevice(holdfast, place)
    device.prepare()
    try:
        stream = device.folder / "stream"
        device.serve(f"unix-stream:{stream}", f"unix:{device.socket}")
        transport.connect_when_ready(device.socket).close()
        done, (passed, failed, _) = replay(device.command_line, f"unix-stream:{stream}", frames)
        assert (done.returncode, failed) == (0, 0), done.stdout
        assert passed > 10
        assert set(skipped(done)) == {
            "a stream may end with the first message that is malformed",
            "a serial line has empty frames",
        }
        done, _ = replay(device.command_line, device.endpoint, frames, excerpt(place, SESSION, 60))
        assert "the endpoint has packets, not a stream" in skipped(done)
    finally:
        device.close()


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


class Credulous(Device):
    """A device that skips one check."""

    def __init__(self, *arguments, **skips):
        super().__init__(*arguments)
        self.skips = skips

    def second(self, m1, message):
        second = super().second(m1, message)
        if second is not None:
            second.__class__ = type(
                "CredulousSecond", (Second,), {name: property(lambda _: True) for name in self.skips}
            )
        return second

    def repetition(self, use, request):
        return None if "repetition" in self.skips else super().repetition(use, request)


@pytest.mark.parametrize("skipped_check", ["proves_integrity", "proves_device", "repetition"])
def test_a_device_that_skips_a_check_is_found(holdfast, place, skipped_check):
    path = str(place / "credulous.socket")
    unsound = Unsound(lambda status, m3: m3)
    sound = unsound.model
    unsound.model = Credulous(sound.key, sound.device_id, sound.issuers, **{skipped_check: True})
    kind = "RequestNumber" if skipped_check == "repetition" else "SessionRound"
    file = excerpt(place, SESSION, kinds={"SessionRound", "RequestNumber"})
    run = LinuxDevice(holdfast, place).command_line
    with ScriptedDevice(unsound.model, path, unsound.serve):
        transport.connect_when_ready(path).close()
        done, (passed, failed, _) = replay(run, f"unix:{path}", file)
        assert done.returncode == 2 and failed > 0 and passed > 0, done.stdout
        found = {int(number) for number in re.findall(rb"FAILED \S+ tcId (\d+)", done.stdout)}
        groups = json.loads(file.read_text())["testGroups"]
        assert found <= {test["tcId"] for group in groups if group["type"] == kind for test in group["tests"]}


def test_a_device_that_accepts_wrong_rounds_without_a_seal_is_found(holdfast, place):
    path = str(place / "unsealed.socket")
    refused = {session.STATUS[name] for name in ("tokenInvalid", "deviceMismatch", "integrityMismatch")}
    unsound = Unsound(lambda status, m3: unsealed("accepted") if status in refused else m3)
    rounds = excerpt(place, SESSION, kinds={"SessionRound", "RequestNumber"})
    with ScriptedDevice(unsound.model, path, unsound.serve):
        transport.connect_when_ready(path).close()
        run = LinuxDevice(holdfast, place).command_line
        done, (passed, failed, _) = replay(run, f"unix:{path}", rounds)
        assert done.returncode == 2 and passed > 0 and failed > 0, done.stdout
        assert b"expected invalid, accepted" in done.stdout


class CarelessReader(threading.Thread):
    """A device at a stream of bytes that answers what it has read so far, after whatever it takes for a message."""

    def __init__(self, path, m1, is_whole, answer):
        super().__init__(daemon=True)
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(path)
        self.listener.listen()
        self.m1, self.is_whole, self.answer = m1, is_whole, len(answer).to_bytes(2, "big") + answer

    def run(self):
        while True:
            peer, _ = self.listener.accept()
            with peer, contextlib.suppress(OSError):
                peer.sendall(len(self.m1).to_bytes(2, "big") + self.m1)
                data = b""
                while not self.is_whole(data) and (more := peer.recv(8192)):
                    data += more
                peer.sendall(self.answer)


@pytest.mark.parametrize(
    "is_whole, answer, flag",
    [
        # What a single read gives is taken for a message.
        (lambda data: len(data) > 0, "malformed", "Truncated"),
        (lambda data: len(data) > 0, "tokenInvalid", "Truncated"),
        # A length above the limit is waited for.
        (lambda data: len(data) >= 2 and len(data) - 2 >= int.from_bytes(data[:2], "big"), "malformed", "TooLarge"),
    ],
)
def test_a_device_that_does_not_keep_to_frames_is_found(holdfast, place, is_whole, answer, flag):
    model, path = Unsound(lambda status, m3: m3).model, str(place / "careless")
    CarelessReader(path, model.message_1(), is_whole, unsealed(answer)).start()
    run = LinuxDevice(holdfast, place).command_line
    frames = excerpt(place, VECTORS / "frames_test.json", is_wanted=lambda test: flag in test["flags"])
    done, (_, failed, _) = replay(run, f"unix-stream:{path}", frames, timeout=1)
    assert done.returncode == 2 and failed > 0, done.stdout


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
