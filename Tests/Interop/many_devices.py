#!/usr/bin/env python3
"""One state folder, two real devices that are served at once: enrolling, choosing, mixing up, replacing, and being killed.

usage: many_devices.py --holdfast PATH [--only TEXT]

One line for each check that failed, then the totals. Exit status 1 when a check failed.
"""

import argparse
import contextlib
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

from bad_world import judge
from holdfast_peer.checks import Checks, expect, expect_equal
from holdfast_peer.command_line import CommandLine, stop
from holdfast_peer.state import enrolment, make_old

ACCEPTED, DENIED, MALFORMED, USAGE, NOT_AVAILABLE = 0, 1, 2, 64, 69
CHECKS = []


def check(name):
    def register(body):
        CHECKS.append((name, body))
        return body
    return register


class World:
    """A service, two devices that are served, and a third one that nobody serves."""

    def __init__(self, program, folder):
        self.folder = pathlib.Path(folder)
        self.run = CommandLine(program, folder)
        self.ids, self.servers, self.made = {}, [], 0

    def build(self):
        self.run.succeed("service", "init", "--dir", "service")
        (self.folder / "service.json").write_bytes(self.run.succeed("service", "show", "--dir", "service", "--json"))
        for name in ("front", "back", "spare"):
            self.make_device(name)
        for name in ("front", "back"):
            self.servers.append(self.run.start("device", "serve", "--dir", name, "--listen", self.endpoint(name), "--quiet"))
            for _ in range(1000):
                if (self.folder / f"{name}.sock").exists():
                    break
                time.sleep(0.01)

    def make_device(self, name):
        self.run.succeed("device", "init", "--dir", name)
        shown = self.run.succeed("device", "show", "--dir", name, "--json")
        (self.folder / f"{name}.json").write_bytes(shown)
        self.ids[name] = json.loads(shown)["device_id"]
        self.run.succeed("device", "trust", "--dir", name, "service.json")
        # Where the service knows its devices, it is told of this one.
        self.run.run("service", "device", "add", "--dir", "service", f"{name}.json")

    def close(self):
        for server in self.servers:
            stop(server)

    def endpoint(self, name):
        return f"unix:{self.folder}/{name}.sock"

    def state(self):
        """A new name."""
        self.made += 1
        return self.folder / f"state-{self.made}"

    def enroll(self, state, *names, more=()):
        return self.run.run("enroll", *(word for name in names for word in ("--device", f"{name}.json")),
                            "--service", "service", "--state", state, *more)

    def enrolled(self, *names, more=()):
        state = self.state()
        done = self.enroll(state, *names, more=more)
        expect(done.returncode == 0, f"enroll ended with {done.returncode}: {done.stderr[-300:]}")
        return state

    def prove(self, state, name, *more, command="status"):
        return self.run.run("prove", "--connect", self.endpoint(name), "--state", state, "--command", command, "--json", *more)

    def accepted(self, state, name, *more):
        done = self.prove(state, name, *more)
        judge(done, {ACCEPTED}, is_json=True)
        said = json.loads(done.stdout)
        expect_equal(said["device_id"], self.ids[name], "the device that was proved to")
        return said

    def status(self, state, *more):
        return self.run.run("status", "--state", state, "--json", *more)

    def states(self, state):
        done = self.status(state)
        judge(done, {ACCEPTED, MALFORMED}, is_json=True)
        return {device["device_id"]: device for device in json.loads(done.stdout)["devices"]}

    def snapshot(self, state):
        return {str(path.relative_to(state)): path.read_bytes() for path in sorted(state.rglob("*")) if path.is_file()}


# Several devices in one folder.

@check("two devices are enrolled at once, and prove finds the enrolment of the one that answers")
def _(world):
    state = world.enrolled("front", "back")
    expect_equal(sorted(os.listdir(state / "devices")), sorted([world.ids["front"], world.ids["back"]]), "the folders")
    for path in state.rglob("*"):
        expect_equal(path.stat().st_mode & 0o777, 0o700 if path.is_dir() else 0o600, f"mode of {path}")
    for name in ("front", "back", "back", "front"):
        world.accepted(state, name)
    expect(all(entry["remembered"] for entry in world.states(state).values()), "a token is not remembered")


@check("each device has its own baseline")
def _(world):
    state = world.enrolled("front", "back")
    salts = {(path / "measurement_config.bin").read_bytes()[8:40] for path in (state / "devices").iterdir()}
    expect_equal(len(salts), 2, "different salts")


@check("a second device is enrolled into the same folder later, and the first one stays as it is")
def _(world):
    state = world.enrolled("front")
    before = world.snapshot(state)
    expect_equal(world.enroll(state, "back").returncode, 0, "exit status")
    after = world.snapshot(state)
    expect(before.items() <= after.items(), "the first enrolment changed")
    world.accepted(state, "front")
    world.accepted(state, "back")


@check("a device that fails is named, and the others are enrolled")
def _(world):
    state = world.enrolled("front")
    done = world.enroll(state, "front", "back", "spare", more=("--json",))
    judge(done, {MALFORMED}, mentions=[world.ids["front"], "--replace"], hint=True, is_json=True)
    told = {device["device_id"]: device for device in json.loads(done.stdout)["devices"]}
    expect_equal({id: device["enrolled"] for id, device in told.items()},
                 {world.ids["front"]: False, world.ids["back"]: True, world.ids["spare"]: True}, "what was enrolled")
    expect_equal(told[world.ids["front"]]["exit"], MALFORMED, "its exit status")
    world.accepted(state, "back")


@check("the same device twice, or standard input twice, is a usage error before anything is done")
def _(world):
    state = world.state()
    judge(world.enroll(state, "front", "front"), {USAGE})
    done = world.run.run("enroll", "--device", "-", "--device", "-", "--service", "service", "--state", state)
    judge(done, {USAGE})
    done = world.run.run("enroll", "--device", "front.json", "--device", "nothing.json", "--service", "service", "--state", state)
    judge(done, {MALFORMED}, mentions=["nothing.json"])
    expect(not state.exists(), "a folder was made")


# Mixed up.

@check("a lock that is not enrolled gets nothing: exit 2, and both ids are named")
def _(world):
    state = world.enrolled("front")
    done = world.prove(state, "back", command="unlock")
    judge(done, {MALFORMED}, mentions=[world.ids["front"], world.ids["back"]], hint=True, is_json=True)
    state = world.enrolled("front", "spare")
    done = world.prove(state, "back", command="unlock")
    judge(done, {MALFORMED}, mentions=[world.ids["front"], world.ids["spare"], world.ids["back"]], hint=True)


@check("prove --device insists on one, by its id or its descriptor")
def _(world):
    state = world.enrolled("front", "back")
    for word in (world.ids["back"], world.ids["back"].upper(), "back.json"):
        world.accepted(state, "back", "--device", word)
        judge(world.prove(state, "front", "--device", word), {MALFORMED},
              mentions=[world.ids["front"], world.ids["back"]], hint=True, is_json=True)
    judge(world.prove(state, "front", "--device", world.ids["spare"]), {MALFORMED}, mentions=[world.ids["spare"]], hint=True)
    for word, statuses in (("", {USAGE}), ("nothing", {MALFORMED}), ("f" * 31, {MALFORMED}), ("service.json", {MALFORMED})):
        judge(world.prove(state, "front", "--device", word), statuses)


@check("a device with another key than the enrolled one gets nothing: exit 2")
def _(world):
    state = world.enrolled("front", "spare")
    # As if the device had had another key when it was enrolled.
    shown = json.loads((world.folder / "front.json").read_text())
    manifest = state / "devices" / world.ids["front"] / "enrolment.json"
    value = json.loads(manifest.read_text())
    value["device"] = {**json.loads((world.folder / "back.json").read_text()), "device_id": world.ids["front"]}
    manifest.write_text(json.dumps(value, indent=2) + "\n")
    done = world.prove(state, "front")
    judge(done, {MALFORMED}, mentions=[world.ids["front"], shown["kid"], value["device"]["kid"]], hint=True)


# Replacing.

@check("nothing is overwritten without --replace, and with it the device takes the new token")
def _(world):
    state = world.enrolled("front")
    before = world.snapshot(state)
    judge(world.enroll(state, "front"), {MALFORMED}, mentions=[world.ids["front"], "--replace"], hint=True)
    expect(world.snapshot(state) == before, "something changed")
    expect_equal(world.enroll(state, "front", more=("--replace",)).returncode, 0, "exit status")
    expect(world.snapshot(state) != before, "nothing changed")
    expect_equal(os.listdir(state / "devices"), [world.ids["front"]], "what is left")
    world.accepted(state, "front")


@check("an enrolment that cannot be made leaves the old one as it is")
def _(world):
    state = world.enrolled("front")
    before = world.snapshot(state)
    for more in (("--service", "nothing"), ("--valid-for", "0")):
        done = world.enroll(state, "front", more=("--replace", *more))
        expect(done.returncode != 0, f"{more} was no fault")
        expect(world.snapshot(state) == before, f"{more} changed something")


@check("enroll --replace that is killed at any moment leaves the old enrolment or the new one, and the next one cleans up")
def _(world):
    state = world.enrolled("front")
    whole = 0
    for delay in range(40):
        process = world.run.start("enroll", "--device", "front.json", "--service", "service", "--state", state, "--replace")
        deadline = time.monotonic() + 30
        staging = state / "devices" / f".new-{world.ids['front']}"
        # From the moment at which the new folder appears, a little later each time.
        while not staging.exists() and process.poll() is None and time.monotonic() < deadline:
            pass
        time.sleep(delay * 0.0004)
        process.kill()
        process.wait(30)
        entry = world.states(state)[world.ids["front"]]
        expect_equal(entry["state"], "valid", f"the state after a kill, try {delay}")
        whole += process.returncode == 0
    expect(whole < 40, "no enrolment was ever cut short")
    world.accepted(state, "front")
    expect_equal(world.enroll(state, "front", more=("--replace",)).returncode, 0, "exit status")
    expect_equal(os.listdir(state / "devices"), [world.ids["front"]], "what is left")
    world.accepted(state, "front")


@check("a first enrolment that was killed is no enrolment, and the same command finishes it")
def _(world):
    state = world.state()
    (state / "devices" / f".new-{world.ids['front']}").mkdir(parents=True)
    (state / "devices" / f".new-{world.ids['front']}" / "measurement_config.bin").write_bytes(b"half")
    for folder in (state, state / "devices", state / "devices" / f".new-{world.ids['front']}"):
        folder.chmod(0o700)
    judge(world.status(state), {MALFORMED}, mentions=["no device is enrolled"], hint=True)
    expect_equal(world.enroll(state, "front").returncode, 0, "exit status")
    expect_equal(os.listdir(state / "devices"), [world.ids["front"]], "what is left")
    # A folder that lost its enrolment.json is not whole either.
    (enrolment(state) / "enrolment.json").unlink()
    judge(world.prove(state, "front"), {MALFORMED}, mentions=["enrolment.json"], hint=True)
    expect_equal(world.enroll(state, "front").returncode, 0, "exit status")
    world.accepted(state, "front")


@check("processes that enrol at the same time take turns")
def _(world):
    state = world.state()
    names = ("front", "back", "spare")
    processes = [world.run.start("enroll", "--device", f"{name}.json", "--service", "service", "--state", state)
                 for name in names]
    expect_equal([process.wait(60) for process in processes], [0, 0, 0], "exit statuses")
    expect_equal({id: entry["state"] for id, entry in world.states(state).items()},
                 {world.ids[name]: "valid" for name in names}, "the enrolments")


@check("prove succeeds while another process replaces the enrolment again and again")
def _(world):
    state = world.enrolled("front")
    loop = subprocess.Popen(
        ["/bin/sh", "-c", f'for i in 1 2 3 4 5 6; do "{world.run.path}" enroll --device front.json --service service'
         f' --state "{state}" --replace >/dev/null 2>&1 || exit 1; done'],
        env=world.run.environment, cwd=world.folder)
    proofs = 0
    while loop.poll() is None and proofs < 60:
        world.accepted(state, "front")
        proofs += 1
    expect_equal(loop.wait(120), 0, "the replacements")
    expect(proofs > 2, "there were no proofs meanwhile")


# The separate steps.

@check("measure, attest and issue make an enrolment, for a device that was named or not")
def _(world):
    state = world.state()
    for name, more in (("front", ("--device", "front.json")), ("back", ())):
        world.run.succeed("measure", "--state", state, "--out", "evidence", *more)
        judge(world.run.run("measure", "--state", state, "--out", "other", *more), {MALFORMED}, mentions=["--replace"], hint=True)
        world.run.succeed("measure", "--state", state, "--out", "evidence", "--replace", *more)
        world.run.succeed("attest", "--service", "service", "--device", f"{name}.json", "--evidence", "evidence", "--out", "attested")
        issue = ("issue", "--service", "service", "--device", f"{name}.json", "--attestation", "attested", "--state", state)
        said = world.run.read_json(*issue)
        expect(said["token"]["expires"] > time.time(), "no expiry was reported")
        expect(not (state / "pending").exists(), "the baseline waits still")
        judge(world.run.run(*issue), {MALFORMED}, mentions=["--replace"], hint=True)
        judge(world.run.run(*issue, "--replace"), {MALFORMED}, mentions=["measure"], hint=True)
        world.accepted(state, name)


@check("a baseline that waits keeps no enrolment from proving")
def _(world):
    state = world.enrolled("front")
    world.run.succeed("measure", "--state", state, "--out", "evidence")
    world.accepted(state, "front")
    world.run.succeed("measure", "--state", state, "--out", "evidence", "--replace")


# status and explain.

@check("status shows each enrolment as the issuer reported it, dates for people and seconds for programs")
def _(world):
    state = world.enrolled("front", "back", more=("--valid-for", "86400", "--allow", "status", "--allow", "unlock", "--user", "alice",
                                                 "--maximum-uses", "7"))
    now = time.time()
    for entry in world.states(state).values():
        expect_equal(entry["state"], "valid", "the state")
        expect(abs(entry["issued"] - now) < 120 and entry["expires"] == entry["issued"] + 86400, "the times")
        expect(86400 - 120 <= entry["seconds_left"] <= 86400, "the seconds left")
        expect_equal((entry["commands"], entry["user"], entry["maximum_uses"]), (["status", "unlock"], "alice", 7), "the claims")
        expect(entry["issuer"], "no issuer")
    done = world.run.run("status", "--state", state)
    judge(done, {ACCEPTED})
    year = time.strftime("%Y-")
    for text in (world.ids["front"], world.ids["back"], "unlock", "alice", "7", year, "Z\n"):
        expect(text in done.stdout.decode(), f"{text} is not shown")
    one = json.loads(world.run.succeed("status", "--state", state, "--device", "back.json", "--json"))["devices"]
    expect_equal([entry["device_id"] for entry in one], [world.ids["back"]], "the device that was asked for")
    judge(world.status(state, "--device", world.ids["spare"]), {MALFORMED}, mentions=[world.ids["spare"]], hint=True)


@check("an expired token is shown as expired, exit 0, and the doctor says so")
def _(world):
    state = world.enrolled("front", more=("--valid-for", "1"))
    time.sleep(1.2)
    entry = world.states(state)[world.ids["front"]]
    expect_equal((entry["state"], entry["seconds_left"]), ("expired", 0), "the state")
    expect_equal(world.status(state).returncode, ACCEPTED, "exit status")
    done = world.run.run("doctor", "--state", state, "--json")
    judge(done, {NOT_AVAILABLE}, is_json=True)
    token = [entry for entry in json.loads(done.stdout)["checks"] if entry["check"] == "token"]
    expect_equal([entry["state"] for entry in token], ["missing"], "what the doctor says")


@check("a damaged enrolment is shown, exit 2, and does not keep the other one from proving")
def _(world):
    state = world.enrolled("front", "back")
    damaged = state / "devices" / world.ids["front"]
    for name, data in (("enrolment.json", b"{}"), ("measurement_token.cose", b"x"), ("fingerprints.cbor", b""),
                       ("measurement_config.bin", b"\xa0")):
        good = (damaged / name).read_bytes()
        (damaged / name).write_bytes(data)
        done = world.status(state)
        judge(done, {MALFORMED}, mentions=[name], hint=True, is_json=True)
        told = {entry["device_id"]: entry["state"] for entry in json.loads(done.stdout)["devices"]}
        expect_equal(told, {world.ids["front"]: "damaged", world.ids["back"]: "valid"}, f"the states with {name} damaged")
        world.accepted(state, "back")
        done = world.prove(state, "front")
        expect(done.returncode in (DENIED, MALFORMED), f"{name}: exit status {done.returncode}")
        (damaged / name).write_bytes(good)
    world.accepted(state, "front")


@check("every bad report of the issuer's in enrolment.json is refused")
def _(world):
    state = world.enrolled("front")
    file = enrolment(state) / "enrolment.json"
    good = json.loads(file.read_text())

    def without(name):
        return {key: value for key, value in good["issued"].items() if key != name}

    bad = [without(name) for name in good["issued"]]
    bad += [{**good["issued"], name: value} for name, value in (
        ("issuer", 1), ("issuer", "i" * 65), ("version", [1, 2]), ("version", ["1", "2", "3"]), ("token_id", "00"),
        ("generation", -1), ("issued", "now"), ("expires", good["issued"]["issued"]), ("expires", 2**60), ("maximum_uses", "7"),
        ("commands", "unlock"), ("commands", ["c"] * 17), ("commands", [7]), ("commands", [""]), ("user", 7), ("user", ""),
        ("user", "u" * 33), ("more", 1))]
    bad += [None, 7, []]
    for report in bad:
        file.write_text(json.dumps({**good, "issued": report}))
        judge(world.status(state), {MALFORMED}, mentions=["enrolment.json"], hint=True, is_json=True)
    file.write_text(json.dumps(good)[:-1] + ', "version": 3}')
    judge(world.status(state), {MALFORMED}, mentions=["enrolment.json"], hint=True)
    file.write_text(json.dumps({**good, "version": 4}))
    judge(world.status(state), {MALFORMED}, mentions=["another version"], hint=True)
    file.write_text(json.dumps(good))
    world.accepted(state, "front")


@check("explain compares with each baseline, or with that of one device")
def _(world):
    state = world.enrolled("front", "back")
    said = world.run.read_json("explain", "--state", state)
    expect_equal([entry["device_id"] for entry in said["devices"]], sorted([world.ids["front"], world.ids["back"]]), "the devices")
    expect_equal(said["changed"], [], "what changed")
    one = world.run.read_json("explain", "--state", state, "--device", world.ids["back"])
    expect_equal((one["device_id"], one["changed"]), (world.ids["back"], []), "one device")
    other = world.folder / "elsewhere"
    other.mkdir(mode=0o700, exist_ok=True)
    # Another host's secret, for both baselines.
    world.run.environment["XDG_DATA_HOME"], home = str(other), world.run.environment["XDG_DATA_HOME"]
    try:
        world.run.succeed("measure", "--state", world.state(), "--out", "elsewhere.evidence")
        done = world.run.run("explain", "--state", state, "--json")
        proof = world.prove(state, "front")
    finally:
        world.run.environment["XDG_DATA_HOME"] = home
    judge(done, {DENIED}, hint=True, is_json=True)
    expect_equal(json.loads(done.stdout)["changed"], ["device.secret"], "what changed")
    judge(proof, {DENIED}, mentions=["host", "holdfast explain"], hint=True, is_json=True)


# The layout of older versions, and folders that cannot be written.

@check("the old layout is read, extended and replaced")
def _(world):
    state = make_old(world.enrolled("front"), world.state())
    world.accepted(state, "front")
    world.accepted(state, "front", "--device", world.ids["front"])
    expect((state / "remembered").exists(), "the token is not remembered")
    entry = world.states(state)[world.ids["front"]]
    expect_equal((entry["state"], entry["expires"], entry["old_layout"]), ("unknown", None, True), "what status shows")
    world.run.succeed("explain", "--state", state)
    judge(world.enroll(state, "front"), {MALFORMED}, mentions=["--replace"], hint=True)
    judge(world.prove(state, "back"), {MALFORMED}, mentions=[world.ids["front"], world.ids["back"]])
    expect_equal(world.enroll(state, "back").returncode, 0, "exit status")
    for name in ("front", "back"):
        world.accepted(state, name)
    expect_equal(world.enroll(state, "front", more=("--replace",)).returncode, 0, "exit status")
    expect_equal(os.listdir(state), ["devices"], "what is left of the old layout")
    for name in ("front", "back"):
        world.accepted(state, name)


@check("where both layouts have a device, devices/ counts")
def _(world):
    state = world.enrolled("front")
    old = make_old(world.enrolled("front"), world.state())
    for path in old.iterdir():
        shutil.copyfile(path, state / path.name)
    (state / "measurement_token.cose").write_bytes(b"not a token")
    world.accepted(state, "front")
    expect_equal(world.states(state)[world.ids["front"]]["old_layout"], False, "the layout")


@check("a state folder that cannot be written still proves")
def _(world):
    if os.geteuid() == 0 and not shutil.which("setpriv"):
        return
    state = world.enrolled("front", "back")
    with read_only(state):
        for _ in range(2):
            world.accepted(state, "front")
        expect_equal({entry["state"] for entry in world.states(state).values()}, {"valid"}, "the states")
        done = world.enroll(state, "front", more=("--replace",))
        expect(done.returncode != 0, "a folder that cannot be written was changed")


@contextlib.contextmanager
def read_only(state):
    """Mounted read-only where that may be done; otherwise without the right to write."""
    mounted = os.geteuid() == 0 and subprocess.run(["mount", "--bind", state, state], capture_output=True, check=False).returncode == 0
    if mounted:
        subprocess.run(["mount", "-o", "remount,ro,bind", state], check=True)
    else:
        for path in [state, *state.rglob("*")]:
            path.chmod(0o500 if path.is_dir() else 0o400)
    try:
        yield
    finally:
        if mounted:
            subprocess.run(["umount", state], check=True)


@check("things in the place of folders are refused, and what is no device's folder is left alone")
def _(world):
    state = world.enrolled("front")
    for name in ("notes.txt", "FF" * 16, "0" * 31):
        (state / "devices" / name).write_bytes(b"mine")
    world.accepted(state, "front")
    expect_equal(list(world.states(state)), [world.ids["front"]], "the devices")
    target = state / "devices" / world.ids["back"]
    target.write_bytes(b"a file")
    judge(world.prove(state, "back"), {MALFORMED}, mentions=[world.ids["back"]])
    world.accepted(state, "front")
    target.unlink()
    target.symlink_to(state / "devices" / world.ids["front"])
    judge(world.prove(state, "back"), {MALFORMED}, mentions=[world.ids["back"]])
    target.unlink()
    broken = world.state()
    broken.mkdir(mode=0o700)
    (broken / "devices").write_bytes(b"a file")
    for words in (("status", "--state", broken), ("explain", "--state", broken),
                  ("prove", "--connect", world.endpoint("front"), "--state", broken, "--command", "status")):
        judge(world.run.run(*words), {MALFORMED}, mentions=["devices"])
    expect(world.enroll(broken, "front").returncode == MALFORMED, "a file in the place of devices was no fault")
    expect_equal((broken / "devices").read_bytes(), b"a file", "the file")


@check("the doctor looks at a state folder, the device that answers, and a device's folder")
def _(world):
    state = world.enrolled("front")
    said = world.run.read_json("doctor", "--state", state)["checks"]
    expect({"ok", "note"} >= {entry["state"] for entry in said}, f"something is wrong: {said}")
    expect({"state-folder", "enrolment", "token", "measurement"} <= {entry["check"] for entry in said}, "a check is missing")
    world.run.succeed("doctor", world.endpoint("front"), "--state", state)
    done = world.run.run("doctor", world.endpoint("back"), "--state", state, "--json")
    judge(done, {NOT_AVAILABLE}, is_json=True)
    worst = [entry for entry in json.loads(done.stdout)["checks"] if entry["state"] == "missing"]
    expect_equal([entry["check"] for entry in worst], ["answering-device"], "what is missing")
    judge(world.run.run("doctor", "--state", world.folder / "nothing", "--json"), {NOT_AVAILABLE}, is_json=True)
    world.run.succeed("doctor", "--dir", "front")
    world.run.succeed("device", "init", "--dir", "fresh")
    done = world.run.run("doctor", "--dir", "fresh", "--json")
    judge(done, {NOT_AVAILABLE}, is_json=True)
    expect_equal([entry["check"] for entry in json.loads(done.stdout)["checks"] if entry["state"] == "missing"], ["issuers"],
                 "what a fresh device lacks")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--holdfast", required=True, help="the command line under test")
    parser.add_argument("--only", default="", help="run only the checks whose name has this text")
    options = parser.parse_args()
    checks = Checks()
    with tempfile.TemporaryDirectory(prefix="hf") as folder:
        world = World(options.holdfast, folder)
        try:
            checks.run("a world is made", world.build)
            if not checks.failed:
                for name, body in CHECKS:
                    if options.only in name:
                        checks.run(name, body, world)
        finally:
            world.close()
    return checks.finish()


if __name__ == "__main__":
    sys.exit(main())
