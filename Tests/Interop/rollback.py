#!/usr/bin/env python3
"""Puts old copies of a device's folder back, whose counter is in a TPM (swtpm).

usage: rollback.py --holdfast PATH [--kills N] [--measure]

An old copy is refused whole, whatever happened to TPM, counter or device in between; a device that was killed at any moment
starts again and has forgotten nothing.
"""

import argparse
import json
import pathlib
import random
import shutil
import socket
import sys
import tempfile
import threading
import time

from holdfast_peer import base64strict, session, transport
from holdfast_peer.checks import Checks, expect, expect_equal
from holdfast_peer.command_line import read_descriptor
from holdfast_peer.issuer import Issuer
from holdfast_peer.keys import jwk
from holdfast_peer.primitives import hkdf_sha256
from holdfast_peer.session import STATUS
from holdfast_peer.software_tpm import SoftwareTPM
from kill_under_load import Load, check_uses, kill_once, use_up
from prover_against_device import World

MALFORMED, USAGE, UNAVAILABLE = 2, 64, 69


class AnchoredWorld(World):
    """A device whose counter is in a TPM."""

    def __init__(self, path, folder, tpm):
        pathlib.Path(folder).mkdir()
        super().__init__(path, folder)
        self.tpm = tpm
        self.init_arguments = ("--tpm", tpm.path)

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
        for verb in (["serve", "--listen", f"unix:{self.socket}"], ["show"], ["audit"], ["floor", "--clock", "now"],
                     ["trust", self.folder / "issuer-0.jwk"]):
            done = self.command_line.run("device", verb[0], "--dir", self.device_folder, *verb[1:])
            expect_equal((verb[0], done.returncode), (verb[0], status), "exit status")
            expect(text in done.stderr.decode(), f"device {verb[0]} does not say so: {done.stderr.decode()}")


def is_anchored(world):
    shown = world.command_line.succeed("device", "show", "--dir", world.device_folder).decode()
    expect(f"counter {world.index:#x} of the TPM at {world.tpm.path}" in shown, "device show does not name the counter")
    expect(0x01800000 <= world.index <= 0x01BFFFFF, "the index is not of the owner's range")


def old_copies_are_refused(world):
    grant = world.grant(session.COSE, maximumUses=3)
    removed = world.grant(session.COSE, world.raised[1])
    world.start()
    expect_equal(world.connect().ask(grant).status, 0, "status")
    expect_equal(world.connect().ask(removed).status, 0, "status")
    world.stop()
    world.copy("old")
    world.start()
    world.copy("while serving")
    for expected in (0, 0, STATUS["usesExhausted"]):
        expect_equal(world.connect().ask(grant).status, expected, "status")
    world.command_line.succeed("device", "trust", "--dir", world.device_folder, "--remove", world.folder / "issuer-1.jwk")
    world.stop()
    world.copy("newest")
    for name in ("old", "while serving"):
        world.restore(name)
        world.expect_refused(MALFORMED, "not the newest copy")
    world.restore("newest")
    world.start()
    expect_equal(world.connect().ask(grant).status, STATUS["usesExhausted"], "status of the used token")
    expect_equal(world.connect().ask(removed).status, STATUS["tokenInvalid"], "status of the removed issuer's token")
    world.stop()


def ledger_replaced_while_served(world):
    world.start()
    prover, grant = world.connect(), world.grant(session.COSE)
    expect_equal(prover.ask(grant, "lock").status, 0, "status")
    old = {file.name: file.read_bytes() for file in world.device_folder.glob("ledger.sqlite*")}
    world.copy("before replacing")
    expect_equal(prover.ask(grant, "lock").status, 0, "status")
    world.stop()
    world.copy("served last")
    for name, content in old.items():
        (world.device_folder / name).write_bytes(content)
    world.expect_refused(MALFORMED, "not the newest copy")
    world.restore("served last")


def without_the_tpm(world):
    world.tpm.stop()
    try:
        world.expect_refused(UNAVAILABLE, "the TPM that anchors the device cannot be found")
    finally:
        world.tpm.start()
    world.start()
    world.stop()


def another_path(world):
    world.copy("right path")
    world.use_file("device.json", lambda text: text.replace(world.tpm.path, world.tpm.path + "x"))
    world.expect_refused(UNAVAILABLE, "the TPM that anchors the device cannot be found")
    world.restore("right path")
    done = world.command_line.run("device", "init", "--dir", world.folder / "other", "--tpm", "socket")
    expect_equal(done.returncode, USAGE, "exit status for a path that is not absolute")


def a_false_tpm(world, answer):
    """What listens in its place answers `answer`; None is never."""
    path = str(world.folder / "false")
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
        world.copy("true tpm")
        world.use_file("device.json", lambda text: text.replace(world.tpm.path, path))
        done = world.command_line.run("device", "serve", "--dir", world.device_folder, "--listen", f"unix:{world.socket}")
        listener.shutdown(socket.SHUT_RDWR)
        world.restore("true tpm")
        shutil.rmtree(world.folder / "true tpm")
    expect_equal(done.returncode, UNAVAILABLE, "exit status")
    expect(done.seconds < 15, f"it took {done.seconds} s")


def tpm_away_while_serving(world):
    world.start()
    prover, grant = world.connect(), world.grant(session.COSE, maximumUses=2)
    expect_equal(prover.ask(grant, "lock").status, 0, "status")
    world.tpm.stop()
    try:
        for _ in range(3):
            expect_equal(prover.ask(grant, "unlock").status, STATUS["internal"], "status without the TPM")
        state = (world.device_folder / "actuator.state").read_text()
        expect(state.startswith("locked "), "the lock moved")
    finally:
        world.tpm.start()
    statuses = [prover.ask(grant, "unlock").status for _ in range(2)]
    # Nothing was written without the TPM: the read before a write failed.
    expect_equal(statuses, [0, STATUS["usesExhausted"]], "statuses once the TPM is back")
    world.stop()


def counter_removed(world):
    expect_equal(world.tpm.undefine(world.index), 0, "response code")
    world.expect_refused(MALFORMED, "the TPM has no counter for this device")


def counter_defined_by_somebody(world):
    expect_equal(world.tpm.define(world.index, b"somebody"), 0, "response code")
    world.expect_refused(MALFORMED, "something else in place")
    expect_equal(world.tpm.increment(world.index, b"somebody"), 0, "response code")
    world.expect_refused(MALFORMED, "something else in place")
    expect_equal(world.tpm.undefine(world.index), 0, "response code")


def counter_defined_with_the_key(world):
    """Who has a copy of the device's key too gains nothing: the counter goes on above where it was."""
    expect_equal(world.tpm.define(world.index, world.authorization()), 0, "response code")
    world.expect_refused(MALFORMED, "something else in place")
    expect_equal(world.tpm.increment(world.index, world.authorization()), 0, "response code")
    world.expect_refused(MALFORMED, "not the newest copy")


def nobody_else_counts(world):
    """A counter is raised by who knows its authorization value alone, not by the TPM's owner."""
    for authorization in (b"", b"somebody"):
        expect(world.tpm.increment(world.index, authorization) != 0, "the counter was raised")
    before = world.tpm.read(world.index, world.authorization())
    expect_equal(before[0], 0, "response code of the device's own reading")
    world.start()
    world.stop()


def trust_while_serving(world):
    world.start()
    tally = []
    loads = [Load(world, world.grant(session.COSE), tally) for _ in range(4)]
    for load in loads:
        load.start()
    file = world.folder / "visitor.jwk"
    file.write_text(json.dumps(jwk(Issuer().key.point)))

    def owner():
        for _ in range(15):
            for remove in ([], ["--remove"]):
                done = world.command_line.run("device", "trust", "--dir", world.device_folder, *remove, file)
                results.append(done.returncode)

    results = []
    owner()
    world.process.kill()
    world.process.wait()
    for load in loads:
        load.join(10)
    expect_equal(results, [0] * 30, "exit statuses of device trust")
    expect(len(tally) > 100 and set(tally) == {0}, f"{len(tally)} rounds, statuses {set(tally)}")
    world.command_line.succeed("device", "audit", "--verify", "--dir", world.device_folder)
    world.start()
    world.stop()


def kill_owner_once(world, pause):
    """SIGKILL of `device trust` at any moment, while it is served."""
    process = world.command_line.start("device", "trust", "--dir", world.device_folder, world.folder / "issuer-0.jwk")
    time.sleep(pause)
    process.kill()
    process.wait()
    expect_equal(world.connect().ask(world.grant(session.COSE)).status, 0, "status")


def reset_device(world):
    world.copy("before reset")
    old = world.index
    authorization = world.authorization()
    world.command_line.succeed("device", "reset", "--yes", "--dir", world.device_folder)
    expect(world.index != old, "the index is the same")
    expect(world.tpm.read(old, authorization)[0] != 0, "the old counter is still there")
    is_anchored(world)
    world.copy("after reset")
    world.restore("before reset")
    world.expect_refused(MALFORMED, "the TPM has no counter for this device")
    world.restore("after reset")


def kill_reset(world, moments, kills):
    """SIGKILL at any moment of a reset: what is there is the old device, the new one, or one to be reset again."""
    world.copy("before killing")
    device_id = world.description["device_id"]
    for _ in range(kills):
        process = world.command_line.start("device", "reset", "--yes", "--dir", world.device_folder)
        time.sleep(moments.uniform(0.005, 0.05))
        process.kill()
        process.wait()
    world.command_line.succeed("device", "reset", "--yes", "--dir", world.device_folder)
    is_anchored(world)
    expect(world.description["device_id"] != device_id, "it is the old device")
    world.copy("after killing")
    world.restore("before killing")
    world.expect_refused(MALFORMED, "the TPM has no counter for this device")
    world.restore("after killing")


def rounds_per_second(world, connections):
    """With `connections` provers at once, for two seconds."""
    tally, grant = [], world.grant(session.COSE)
    world.start()
    loads = [Load(world, grant, tally) for _ in range(connections)]
    for load in loads:
        load.start()
    time.sleep(0.5)
    count, started = len(tally), time.monotonic()
    time.sleep(2)
    rate = (len(tally) - count) / (time.monotonic() - started)
    world.process.kill()
    world.process.wait()
    for load in loads:
        load.join(10)
    return rate


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--holdfast", required=True, help="the command line under test")
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1, help="of the moments at which something is killed")
    parser.add_argument("--measure", action="store_true", help="say also how many rounds a second there are")
    options = parser.parse_args()
    moments = random.Random(options.seed)
    checks = Checks()
    with tempfile.TemporaryDirectory(prefix="hf") as folder:
        folder = pathlib.Path(folder)
        tpm = SoftwareTPM(folder / "tpm")
        tpm.start()
        world = AnchoredWorld(options.holdfast, folder / "one", tpm)
        try:
            checks.run("an anchored device is made", world.prepare)
            if not checks.failed:
                run_checks(checks, world, moments, options)
        finally:
            if world.process is not None and world.process.poll() is None:
                world.process.kill()
                world.process.wait()
            tpm.stop()
    return checks.finish()


def run_checks(checks, world, moments, options):
    checks.run("the device says what anchors it", is_anchored, world)
    checks.run("old copies are refused, and the newest one has forgotten nothing", old_copies_are_refused, world)
    checks.run("an old ledger under newer files is refused", ledger_replaced_while_served, world)
    checks.run("without the TPM nothing starts", without_the_tpm, world)
    checks.run("with another path nothing starts", another_path, world)
    for name, answer in (("answers nothing", None), ("hangs up", b""), ("answers garbage", b"\xff" * 64), ("answers too little", b"\x80\x02")):
        checks.run(f"with what {name} in place of the TPM nothing starts", a_false_tpm, world, answer)
    checks.run("a TPM that is away while serving means internal, and then it goes on", tpm_away_while_serving, world)
    checks.run("the owner of the TPM does not count for the device", nobody_else_counts, world)
    checks.run("device trust while rounds go on", trust_while_serving, world)
    grants = [world.grant(session.COSE, maximumUses=60) for _ in range(3)]
    tallies = [[] for _ in grants]
    checks.run("the device starts", world.start)
    for number in range(options.kills):
        checks.run(f"kill {number + 1} forgets nothing", kill_once, world, grants, tallies, moments.uniform(0, 0.03))
        checks.run(f"kill {number + 1} of the owner's verb", kill_owner_once, world, moments.uniform(0, 0.03))
    checks.run("the kills came while tokens were being used", expect, sum(map(len, tallies)) > 0, "no round before a kill")
    checks.run("no token was accepted more often than it may be", check_uses, tallies)
    for grant, tally in zip(grants, tallies):
        checks.run("a token that is used up stays so", use_up, world, grant, tally)
    world.stop()
    checks.run("a reset device has another counter, and its old self is gone", reset_device, world)
    checks.run("a reset that is killed", kill_reset, world, moments, options.kills)
    checks.run("a counter that was removed", counter_removed, world)
    checks.run("a counter that somebody else defined anew", counter_defined_by_somebody, world)
    checks.run("a counter that was defined anew with the device's key", counter_defined_with_the_key, world)
    if options.measure:
        measure(world, options.holdfast)


def measure(world, holdfast):
    (world.folder / "free").mkdir()
    free = World(holdfast, world.folder / "free")
    free.prepare()
    world.command_line.succeed("device", "reset", "--yes", "--dir", world.device_folder)
    world.descriptor = read_descriptor(world.command_line.read_json("device", "show", "--dir", world.device_folder))
    world.command_line.succeed("device", "trust", "--dir", world.device_folder, world.folder / "issuer-0.jwk")
    for connections in (1, 4):
        with_tpm, without = rounds_per_second(world, connections), rounds_per_second(free, connections)
        print(f"{connections} connections: {with_tpm:.0f} rounds/s with a TPM, {without:.0f} without")


if __name__ == "__main__":
    sys.exit(main())
