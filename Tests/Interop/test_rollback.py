"""Puts old copies of a device's folder back, whose counter is in a TPM (swtpm).

An old copy is refused whole, whatever happened to TPM, counter or device in between; a device that was killed at any moment
starts again and has forgotten nothing.
"""

import json
import pathlib
import random
import shutil
import socket
import tempfile
import threading
import time

import pytest
from devices import LinuxDevice
from holdfast_peer import base64strict, session
from holdfast_peer.command_line import read_descriptor
from holdfast_peer.issuer import Issuer
from holdfast_peer.keys import jwk
from holdfast_peer.primitives import hkdf_sha256
from holdfast_peer.session import STATUS
from holdfast_peer.software_tpm import SoftwareTPM
from load import Load, check_uses, kill_once, use_up

MALFORMED, USAGE, UNAVAILABLE = 2, 64, 69


class AnchoredDevice(LinuxDevice):
    """A device whose counter is in a TPM."""

    def __init__(self, holdfast, folder, tpm):
        super().__init__(holdfast, folder, "--tpm", tpm.path)
        self.tpm = tpm

    @property
    def description(self):
        return json.loads((self.device_folder / "device.json").read_text())

    @property
    def index(self):
        return self.description["counter"]["index"]

    def authorization(self):
        scalar = base64strict.url_decode(json.loads((self.device_folder / "device.key").read_text())["d"])
        return hkdf_sha256(scalar, b"", b"holdfast/1 counter authorization", 32)

    def copy(self, name):
        shutil.copytree(self.device_folder, self.folder / name)

    def restore(self, name):
        shutil.rmtree(self.device_folder)
        shutil.copytree(self.folder / name, self.device_folder)

    def use_file(self, name, change):
        path = self.device_folder / name
        path.write_text(change(path.read_text()))

    def expect_refused(self, status, text):
        """Serving, and whatever else looks into the ledger, ends with `status` and says `text`."""
        for verb in (
            ["serve", "--listen", f"unix:{self.socket}"],
            ["show"],
            ["audit"],
            ["floor", "--clock", "now"],
            ["trust", self.folder / "issuer-0.jwk"],
        ):
            done = self.command_line.run("device", verb[0], "--dir", self.device_folder, *verb[1:])
            assert (verb[0], done.returncode) == (verb[0], status), "exit status"
            assert text in done.stderr.decode(), f"device {verb[0]} does not say so: {done.stderr.decode()}"


@pytest.fixture(scope="module")
def device(holdfast):
    """A device that a TPM of its own anchors: a test begins with what the one before left."""
    with tempfile.TemporaryDirectory(prefix="hf") as name:
        tpm = SoftwareTPM(pathlib.Path(name) / "tpm")
        tpm.start()
        yield from anchored(AnchoredDevice(holdfast, name, tpm))


def anchored(device):
    try:
        device.prepare()
        yield device
        if device.process is not None and device.process.poll() is None:
            device.process.kill()
            device.process.wait()
    finally:
        device.tpm.stop()


@pytest.fixture(scope="module")
def moments():
    """At which something is killed: the same in each run."""
    return random.Random(1)


def test_the_device_says_what_anchors_it(device):
    is_anchored(device)


def is_anchored(device):
    shown = device.command_line.succeed("device", "show", "--dir", device.device_folder).decode()
    assert f"counter {device.index:#x} of the TPM at {device.tpm.path}" in shown, (
        "device show does not name the counter"
    )
    assert 0x01800000 <= device.index <= 0x01BFFFFF, "the index is not of the owner's range"


def test_old_copies_are_refused_and_the_newest_one_has_forgotten_nothing(device):
    grant = device.grant(session.COSE, maximumUses=3)
    removed = device.grant(session.COSE, device.raised[1])
    device.start()
    assert device.connect().ask(grant).status == 0, "status"
    assert device.connect().ask(removed).status == 0, "status"
    device.stop()
    device.copy("old")
    device.start()
    device.copy("while serving")
    for expected in (0, 0, STATUS["usesExhausted"]):
        assert device.connect().ask(grant).status == expected, "status"
    device.command_line.succeed(
        "device", "trust", "--dir", device.device_folder, "--remove", device.folder / "issuer-1.jwk"
    )
    device.stop()
    device.copy("newest")
    for name in ("old", "while serving"):
        device.restore(name)
        device.expect_refused(MALFORMED, "not the newest copy")
    device.restore("newest")
    device.start()
    assert device.connect().ask(grant).status == STATUS["usesExhausted"], "status of the used token"
    assert device.connect().ask(removed).status == STATUS["tokenInvalid"], "status of the removed issuer's token"
    device.stop()


def test_an_old_ledger_under_newer_files_is_refused(device):
    device.start()
    prover, grant = device.connect(), device.grant(session.COSE)
    assert prover.ask(grant, "lock").status == 0, "status"
    old = {file.name: file.read_bytes() for file in device.device_folder.glob("ledger.sqlite*")}
    device.copy("before replacing")
    assert prover.ask(grant, "lock").status == 0, "status"
    device.stop()
    device.copy("served last")
    for name, content in old.items():
        (device.device_folder / name).write_bytes(content)
    device.expect_refused(MALFORMED, "not the newest copy")
    device.restore("served last")


def test_without_the_tpm_nothing_starts(device):
    device.tpm.stop()
    try:
        device.expect_refused(UNAVAILABLE, "the TPM that anchors the device cannot be found")
    finally:
        device.tpm.start()
    device.start()
    device.stop()


def test_with_another_path_nothing_starts(device):
    device.copy("right path")
    device.use_file("device.json", lambda text: text.replace(device.tpm.path, device.tpm.path + "x"))
    device.expect_refused(UNAVAILABLE, "the TPM that anchors the device cannot be found")
    device.restore("right path")
    done = device.command_line.run("device", "init", "--dir", device.folder / "other", "--tpm", "socket")
    assert done.returncode == USAGE, "exit status for a path that is not absolute"


@pytest.mark.parametrize(
    "answer",
    [None, b"", b"\xff" * 64, b"\x80\x02"],
    ids=["answers nothing", "hangs up", "answers garbage", "answers too little"],
)
def test_with_a_false_tpm_nothing_starts(device, answer):
    path = str(device.folder / "false")
    pathlib.Path(path).unlink(missing_ok=True)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen(16)

        def serve():
            while True:
                try:
                    connection = listener.accept()[0]
                except OSError:
                    return
                connection.recv(4096)
                if answer is None:
                    kept.append(connection)
                else:
                    connection.sendall(answer)
                    connection.close()

        kept = []
        threading.Thread(target=serve, daemon=True).start()
        device.copy("true tpm")
        device.use_file("device.json", lambda text: text.replace(device.tpm.path, path))
        done = device.command_line.run(
            "device", "serve", "--dir", device.device_folder, "--listen", f"unix:{device.socket}"
        )
        listener.shutdown(socket.SHUT_RDWR)
        device.restore("true tpm")
        shutil.rmtree(device.folder / "true tpm")
    assert done.returncode == UNAVAILABLE, "exit status"
    assert done.seconds < 60, f"it took {done.seconds} s"


def test_a_tpm_that_is_away_while_serving_means_internal_and_then_it_goes_on(device):
    device.start()
    prover, grant = device.connect(), device.grant(session.COSE, maximumUses=2)
    assert prover.ask(grant, "lock").status == 0, "status"
    device.tpm.stop()
    try:
        for _ in range(3):
            assert prover.ask(grant, "unlock").status == STATUS["internal"], "status without the TPM"
        state = (device.device_folder / "actuator.state").read_text()
        assert state.startswith("locked "), "the lock moved"
    finally:
        device.tpm.start()
    statuses = [prover.ask(grant, "unlock").status for _ in range(2)]
    # Nothing was written without the TPM: the read before a write failed.
    assert statuses == [0, STATUS["usesExhausted"]], "statuses once the TPM is back"
    device.stop()


def test_the_owner_of_the_tpm_does_not_count_for_the_device(device):
    """Only a party that knows the authorization value of a counter raises it, not the TPM's owner."""
    for authorization in (b"", b"somebody"):
        assert device.tpm.increment(device.index, authorization) != 0, "the counter was raised"
    before = device.tpm.read(device.index, device.authorization())
    assert before[0] == 0, "response code of the device's own reading"
    device.start()
    device.stop()


def test_the_owner_trusts_while_rounds_go_on(device):
    device.start()
    tally = []
    loads = [Load(device, device.grant(session.COSE), tally) for _ in range(4)]
    for load in loads:
        load.start()
    file = device.folder / "visitor.jwk"
    file.write_text(json.dumps(jwk(Issuer().key.point)))

    def owner():
        for _ in range(15):
            for remove in ([], ["--remove"]):
                done = device.command_line.run("device", "trust", "--dir", device.device_folder, *remove, file)
                results.append(done.returncode)

    results = []
    # Once, and again where the provers have had few rounds meanwhile, as on a busy machine.
    for _ in range(20):
        owner()
        if len(tally) > 100:
            break
    device.process.kill()
    device.process.wait()
    for load in loads:
        load.join(60)
    assert results == [0] * len(results), "exit statuses of device trust"
    assert len(tally) > 100 and set(tally) == {0}, f"{len(tally)} rounds, statuses {set(tally)}"
    device.command_line.succeed("device", "audit", "--verify", "--dir", device.device_folder)
    device.start()
    device.stop()


# Kills

KILLS = 20


@pytest.fixture(scope="module")
def grants(device):
    device.start()
    return [device.grant(session.COSE, maximumUses=60) for _ in range(3)]


@pytest.fixture(scope="module")
def tallies():
    """The statuses that each token has got so far."""
    return [[] for _ in range(3)]


@pytest.mark.parametrize("number", range(1, KILLS + 1))
class TestKills:
    def test_a_kill_makes_the_device_forget_nothing(self, device, grants, tallies, moments, number):
        kill_once(device, grants, tallies, moments.uniform(0, 0.03), in_use=number % 2 == 0)

    def test_a_kill_of_the_owners_verb_leaves_the_device_serving(self, device, grants, moments, number):
        process = device.command_line.start(
            "device", "trust", "--dir", device.device_folder, device.folder / "issuer-0.jwk"
        )
        time.sleep(moments.uniform(0, 0.03))
        process.kill()
        process.wait()
        assert device.connect().ask(device.grant(session.COSE)).status == 0, "status"


def test_the_kills_came_while_tokens_were_being_used(tallies):
    assert sum(map(len, tallies)) > 0, "no round before a kill"


def test_no_token_was_accepted_more_often_than_it_may_be(tallies):
    check_uses(tallies)


@pytest.mark.parametrize("token", range(3))
def test_a_token_that_is_used_up_stays_so(device, grants, tallies, token):
    use_up(device, grants[token], tallies[token])


# Resets, and what else may become of the counter


def test_a_reset_device_has_another_counter_and_its_old_self_is_gone(device):
    device.stop()
    device.copy("before reset")
    old = device.index
    authorization = device.authorization()
    device.command_line.succeed("device", "reset", "--yes", "--dir", device.device_folder)
    assert device.index != old, "the index is the same"
    assert device.tpm.read(old, authorization)[0] != 0, "the old counter is still there"
    is_anchored(device)
    device.copy("after reset")
    device.restore("before reset")
    device.expect_refused(MALFORMED, "the TPM has no counter for this device")
    device.restore("after reset")


def test_a_reset_that_is_killed_can_be_repeated(device, moments):
    """SIGKILL at any moment of a reset: what is there is the old device, the new one, or one to be reset again."""
    device.copy("before killing")
    device_id = device.description["device_id"]
    for _ in range(KILLS):
        process = device.command_line.start("device", "reset", "--yes", "--dir", device.device_folder)
        time.sleep(moments.uniform(0.005, 0.05))
        process.kill()
        process.wait()
    device.command_line.succeed("device", "reset", "--yes", "--dir", device.device_folder)
    is_anchored(device)
    assert device.description["device_id"] != device_id, "it is the old device"
    device.copy("after killing")
    device.restore("before killing")
    device.expect_refused(MALFORMED, "the TPM has no counter for this device")
    device.restore("after killing")


def test_a_counter_that_was_removed_is_missed(device):
    assert device.tpm.undefine(device.index) == 0, "response code"
    device.expect_refused(MALFORMED, "the TPM has no counter for this device")


def test_a_counter_that_somebody_else_defined_anew_is_refused(device):
    assert device.tpm.define(device.index, b"somebody") == 0, "response code"
    device.expect_refused(MALFORMED, "something else in place")
    assert device.tpm.increment(device.index, b"somebody") == 0, "response code"
    device.expect_refused(MALFORMED, "something else in place")
    assert device.tpm.undefine(device.index) == 0, "response code"


def test_a_counter_that_was_defined_anew_with_the_devices_key_is_refused(device):
    """Who has a copy of the device's key too gains nothing: the counter goes on above where it was."""
    assert device.tpm.define(device.index, device.authorization()) == 0, "response code"
    device.expect_refused(MALFORMED, "something else in place")
    assert device.tpm.increment(device.index, device.authorization()) == 0, "response code"
    device.expect_refused(MALFORMED, "not the newest copy")


def rounds_per_second(device, connections):
    """With `connections` provers at once, for two seconds."""
    tally, grant = [], device.grant(session.COSE)
    device.start()
    loads = [Load(device, grant, tally) for _ in range(connections)]
    for load in loads:
        load.start()
    time.sleep(0.5)
    count, started = len(tally), time.monotonic()
    time.sleep(2)
    rate = (len(tally) - count) / (time.monotonic() - started)
    device.process.kill()
    device.process.wait()
    for load in loads:
        load.join(60)
    return rate


@pytest.mark.figure
@pytest.mark.parametrize("connections", [1, 4])
def test_rounds_per_second_with_and_without_a_tpm(capsys, device, linux_device, connections):
    device.command_line.succeed("device", "reset", "--yes", "--dir", device.device_folder)
    device.descriptor = read_descriptor(device.command_line.read_json("device", "show", "--dir", device.device_folder))
    device.command_line.succeed("device", "trust", "--dir", device.device_folder, device.folder / "issuer-0.jwk")
    linux_device.stop()
    with_tpm, without = rounds_per_second(device, connections), rounds_per_second(linux_device, connections)
    with capsys.disabled():
        print(f"{connections} connections: {with_tpm:.0f} rounds/s with a TPM, {without:.0f} without")
    assert 0 < with_tpm < without, "a TPM costs nothing"


# The key in a TPM


class DeviceWithKeyInTPM(AnchoredDevice):
    """A device whose key is in a TPM, and which nothing anchors."""

    def __init__(self, holdfast, folder, tpm):
        LinuxDevice.__init__(self, holdfast, folder, "--tpm-key", tpm.path)
        self.tpm = tpm


@pytest.fixture(scope="module")
def keyed_device(holdfast):
    with tempfile.TemporaryDirectory(prefix="hf") as name:
        tpm = SoftwareTPM(pathlib.Path(name) / "tpm")
        tpm.start()
        yield from anchored(DeviceWithKeyInTPM(holdfast, name, tpm))


def test_a_device_whose_key_is_in_a_tpm_opens_tokens_and_a_copy_elsewhere_opens_none(keyed_device):
    device = keyed_device
    assert b'"d"' not in (device.device_folder / "device.key").read_bytes(), "the folder has the private key"
    device.start()
    assert device.connect().ask(device.grant(session.COSE)).status == 0, "status of a COSE token"
    assert device.connect().ask(device.grant(session.JOSE)).status == 0, "status of a JOSE token"
    device.stop()
    handle = json.loads((device.device_folder / "device.key").read_text())["handle"]
    shown = device.command_line.succeed("device", "show", "--dir", device.device_folder).decode()
    assert f"handle {handle:#x} of the TPM at {device.tpm.path}" in shown, "device show does not name the key"
    with tempfile.TemporaryDirectory(prefix="hf") as name:
        elsewhere = SoftwareTPM(pathlib.Path(name) / "tpm")
        elsewhere.start()
        try:
            device.copy("here")
            device.use_file("device.key", lambda text: text.replace(device.tpm.path, elsewhere.path))
            device.expect_refused(MALFORMED, "this TPM does not have the device's key")
            device.restore("here")
        finally:
            elsewhere.stop()
    device.tpm.stop()
    try:
        device.expect_refused(UNAVAILABLE, "the TPM for the device's key cannot be found")
    finally:
        device.tpm.start()
    device.start()
    device.stop()


def test_only_where_there_is_no_tpm_a_file_takes_its_place_if_that_is_allowed(keyed_device, tmp_path):
    command_line = keyed_device.command_line
    for options, status in (([], UNAVAILABLE), (["--or-key-file"], 0)):
        done = command_line.run("device", "init", "--dir", tmp_path / "lock", "--tpm-key", tmp_path / "none", *options)
        assert done.returncode == status, f"exit status: {done.stderr.decode()}"
    assert "there is no TPM: the device's key is in a file" in done.stderr.decode()
    assert "in a file" in command_line.succeed("device", "show", "--dir", tmp_path / "lock").decode()
    done = command_line.run("device", "init", "--dir", tmp_path / "other", "--or-key-file")
    assert done.returncode == USAGE, "exit status of --or-key-file without --tpm-key"


@pytest.mark.figure
def test_how_long_a_first_token_takes_with_the_key_in_a_tpm(capsys, keyed_device):
    device = keyed_device
    device.start()
    times = []
    for _ in range(50):
        prover, grant = device.connect(), device.grant(session.COSE)
        started = time.monotonic()
        assert prover.ask(grant).status == 0, "status"
        times.append(time.monotonic() - started)
    device.stop()
    with capsys.disabled():
        print(f"first round with a token, key in swtpm: median {sorted(times)[25] * 1000:.1f} ms")
