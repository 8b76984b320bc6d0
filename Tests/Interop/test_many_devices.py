"""One state folder, two real devices that are served at once: enrolling, choosing, mixing up, replacing, and being killed."""

import contextlib
import json
import os
import pathlib
import shutil
import subprocess
import time

import pytest
from holdfast_peer import transport
from holdfast_peer.command_line import CommandLine, stop
from holdfast_peer.state import enrolment, make_old
from sandbox import judge

ACCEPTED, DENIED, MALFORMED, USAGE, NOT_AVAILABLE = 0, 1, 2, 64, 69


class Household:
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
            self.servers.append(
                self.run.start("device", "serve", "--dir", name, "--listen", self.endpoint(name), "--quiet")
            )
            transport.connect_when_ready(f"{self.folder}/{name}.sock", 60).close()

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
        return self.run.run(
            "enroll",
            *(word for name in names for word in ("--device", f"{name}.json")),
            "--service",
            "service",
            "--state",
            state,
            *more,
        )

    def enrolled(self, *names, more=()):
        state = self.state()
        done = self.enroll(state, *names, more=more)
        assert done.returncode == 0, f"enroll ended with {done.returncode}: {done.stderr[-300:]}"
        return state

    def prove(self, state, name, *more, command="status"):
        words = ("--connect", self.endpoint(name), "--state", state, "--command", command, "--timeout", "60")
        return self.run.run("prove", *words, "--json", *more)

    def accepted(self, state, name, *more):
        done = self.prove(state, name, *more)
        judge(done, {ACCEPTED}, is_json=True)
        said = json.loads(done.stdout)
        assert said["device_id"] == self.ids[name], "the device that was proved to"
        return said

    def status(self, state, *more):
        return self.run.run("status", "--state", state, "--json", *more)

    def states(self, state):
        done = self.status(state)
        judge(done, {ACCEPTED, MALFORMED}, is_json=True)
        return {device["device_id"]: device for device in json.loads(done.stdout)["devices"]}

    def snapshot(self, state):
        return {str(path.relative_to(state)): path.read_bytes() for path in sorted(state.rglob("*")) if path.is_file()}


@pytest.fixture(scope="module")
def household(holdfast, folder):
    household = Household(holdfast, folder)
    try:
        household.build()
        yield household
    finally:
        household.close()


# Several devices in one folder.


def test_two_devices_are_enrolled_at_once_and_prove_finds_the_enrolment_of_the_one_that_answers(household):
    state = household.enrolled("front", "back")
    assert sorted(os.listdir(state / "devices")) == sorted([household.ids["front"], household.ids["back"]]), (
        "the folders"
    )
    for path in state.rglob("*"):
        assert path.stat().st_mode & 0o777 == (0o700 if path.is_dir() else 0o600), f"mode of {path}"
    for name in ("front", "back", "back", "front"):
        household.accepted(state, name)
    assert all(entry["remembered"] for entry in household.states(state).values()), "a token is not remembered"


def test_each_device_has_its_own_baseline(household):
    state = household.enrolled("front", "back")
    salts = {(path / "measurement_config.bin").read_bytes()[8:40] for path in (state / "devices").iterdir()}
    assert len(salts) == 2, "different salts"


def test_a_second_device_is_enrolled_into_the_same_folder_later_and_the_first_one_stays_as_it_is(household):
    state = household.enrolled("front")
    before = household.snapshot(state)
    assert household.enroll(state, "back").returncode == 0, "exit status"
    after = household.snapshot(state)
    assert before.items() <= after.items(), "the first enrolment changed"
    household.accepted(state, "front")
    household.accepted(state, "back")


def test_a_device_that_fails_is_named_and_the_others_are_enrolled(household):
    state = household.enrolled("front")
    done = household.enroll(state, "front", "back", "spare", more=("--json",))
    judge(done, {MALFORMED}, mentions=[household.ids["front"], "--replace"], hint=True, is_json=True)
    told = {device["device_id"]: device for device in json.loads(done.stdout)["devices"]}
    assert {id: device["enrolled"] for id, device in told.items()} == {
        household.ids["front"]: False,
        household.ids["back"]: True,
        household.ids["spare"]: True,
    }, "what was enrolled"
    assert told[household.ids["front"]]["exit"] == MALFORMED, "its exit status"
    household.accepted(state, "back")


def test_the_same_device_twice_or_standard_input_twice_is_a_usage_error_before_anything_is_done(household):
    state = household.state()
    judge(household.enroll(state, "front", "front"), {USAGE})
    done = household.run.run("enroll", "--device", "-", "--device", "-", "--service", "service", "--state", state)
    judge(done, {USAGE})
    done = household.run.run(
        "enroll", "--device", "front.json", "--device", "nothing.json", "--service", "service", "--state", state
    )
    judge(done, {MALFORMED}, mentions=["nothing.json"])
    assert not state.exists(), "a folder was made"


# Mixed up.


def test_a_lock_that_is_not_enrolled_gets_nothing_exit_2_and_both_ids_are_named(household):
    state = household.enrolled("front")
    done = household.prove(state, "back", command="unlock")
    judge(done, {MALFORMED}, mentions=[household.ids["front"], household.ids["back"]], hint=True, is_json=True)
    state = household.enrolled("front", "spare")
    done = household.prove(state, "back", command="unlock")
    judge(
        done, {MALFORMED}, mentions=[household.ids["front"], household.ids["spare"], household.ids["back"]], hint=True
    )


def test_prove_device_insists_on_one_by_its_id_or_its_descriptor(household):
    state = household.enrolled("front", "back")
    for word in (household.ids["back"], household.ids["back"].upper(), "back.json"):
        household.accepted(state, "back", "--device", word)
        judge(
            household.prove(state, "front", "--device", word),
            {MALFORMED},
            mentions=[household.ids["front"], household.ids["back"]],
            hint=True,
            is_json=True,
        )
    judge(
        household.prove(state, "front", "--device", household.ids["spare"]),
        {MALFORMED},
        mentions=[household.ids["spare"]],
        hint=True,
    )
    for word, statuses in (
        ("", {USAGE}),
        ("nothing", {MALFORMED}),
        ("f" * 31, {MALFORMED}),
        ("service.json", {MALFORMED}),
    ):
        judge(household.prove(state, "front", "--device", word), statuses)


def test_a_device_with_another_key_than_the_enrolled_one_gets_nothing_exit_2(household):
    state = household.enrolled("front", "spare")
    # As if the device had had another key when it was enrolled.
    shown = json.loads((household.folder / "front.json").read_text())
    manifest = state / "devices" / household.ids["front"] / "enrolment.json"
    value = json.loads(manifest.read_text())
    value["device"] = {**json.loads((household.folder / "back.json").read_text()), "device_id": household.ids["front"]}
    manifest.write_text(json.dumps(value, indent=2) + "\n")
    done = household.prove(state, "front")
    judge(done, {MALFORMED}, mentions=[household.ids["front"], shown["kid"], value["device"]["kid"]], hint=True)


# Replacing.


def test_nothing_is_overwritten_without_replace_and_with_it_the_device_takes_the_new_token(household):
    state = household.enrolled("front")
    before = household.snapshot(state)
    judge(household.enroll(state, "front"), {MALFORMED}, mentions=[household.ids["front"], "--replace"], hint=True)
    assert household.snapshot(state) == before, "something changed"
    assert household.enroll(state, "front", more=("--replace",)).returncode == 0, "exit status"
    assert household.snapshot(state) != before, "nothing changed"
    assert os.listdir(state / "devices") == [household.ids["front"]], "what is left"
    household.accepted(state, "front")


def test_an_enrolment_that_cannot_be_made_leaves_the_old_one_as_it_is(household):
    state = household.enrolled("front")
    before = household.snapshot(state)
    for more in (("--service", "nothing"), ("--valid-for", "0")):
        done = household.enroll(state, "front", more=("--replace", *more))
        assert done.returncode != 0, f"{more} was no fault"
        assert household.snapshot(state) == before, f"{more} changed something"


def test_enroll_replace_that_is_killed_at_any_moment_leaves_the_old_enrolment_or_the_new_one_and_the_next_one_cleans_up(
    household,
):
    state = household.enrolled("front")
    whole = 0
    for delay in range(40):
        process = household.run.start(
            "enroll", "--device", "front.json", "--service", "service", "--state", state, "--replace"
        )
        deadline = time.monotonic() + 30
        staging = state / "devices" / f".new-{household.ids['front']}"
        # From the moment at which the new folder appears, a little later each time.
        while not staging.exists() and process.poll() is None and time.monotonic() < deadline:
            pass
        time.sleep(delay * 0.0004)
        process.kill()
        process.wait(30)
        entry = household.states(state)[household.ids["front"]]
        assert entry["state"] == "valid", f"the state after a kill, try {delay}"
        whole += process.returncode == 0
    assert whole < 40, "no enrolment was ever cut short"
    household.accepted(state, "front")
    assert household.enroll(state, "front", more=("--replace",)).returncode == 0, "exit status"
    assert os.listdir(state / "devices") == [household.ids["front"]], "what is left"
    household.accepted(state, "front")


def test_a_first_enrolment_that_was_killed_is_no_enrolment_and_the_same_command_finishes_it(household):
    state = household.state()
    (state / "devices" / f".new-{household.ids['front']}").mkdir(parents=True)
    (state / "devices" / f".new-{household.ids['front']}" / "measurement_config.bin").write_bytes(b"half")
    for folder in (state, state / "devices", state / "devices" / f".new-{household.ids['front']}"):
        folder.chmod(0o700)
    judge(household.status(state), {MALFORMED}, mentions=["no device is enrolled"], hint=True)
    assert household.enroll(state, "front").returncode == 0, "exit status"
    assert os.listdir(state / "devices") == [household.ids["front"]], "what is left"
    # A folder that lost its enrolment.json is not whole either.
    (enrolment(state) / "enrolment.json").unlink()
    judge(household.prove(state, "front"), {MALFORMED}, mentions=["enrolment.json"], hint=True)
    assert household.enroll(state, "front").returncode == 0, "exit status"
    household.accepted(state, "front")


def test_processes_that_enrol_at_the_same_time_take_turns(household):
    state = household.state()
    names = ("front", "back", "spare")
    processes = [
        household.run.start("enroll", "--device", f"{name}.json", "--service", "service", "--state", state)
        for name in names
    ]
    assert [process.wait(60) for process in processes] == [0, 0, 0], "exit statuses"
    assert {id: entry["state"] for id, entry in household.states(state).items()} == {
        household.ids[name]: "valid" for name in names
    }, "the enrolments"


def test_prove_succeeds_while_another_process_replaces_the_enrolment_again_and_again(household):
    state = household.enrolled("front")
    enough, replaced = household.folder / "enough", household.folder / "replaced"
    replaced.touch()
    loop = subprocess.Popen(
        [
            "/bin/sh",
            "-c",
            (
                f'until [ -e enough ]; do "{household.run.path}" enroll --device front.json --service service'
                f' --state "{state}" --replace >/dev/null 2>&1 || exit 1; echo >>replaced; done'
            ),
        ],
        env=household.run.environment,
        cwd=household.folder,
    )
    proofs = 0
    try:
        while loop.poll() is None and (proofs < 3 or replaced.stat().st_size < 6):
            assert proofs < 600, "the replacements do not go on"
            household.accepted(state, "front")
            proofs += 1
    finally:
        enough.touch()
    assert loop.wait(120) == 0, "the replacements"


# The separate steps.


def test_measure_attest_and_issue_make_an_enrolment_for_a_device_that_was_named_or_not(household):
    state = household.state()
    for name, more in (("front", ("--device", "front.json")), ("back", ())):
        household.run.succeed("measure", "--state", state, "--out", "evidence", *more)
        judge(
            household.run.run("measure", "--state", state, "--out", "other", *more),
            {MALFORMED},
            mentions=["--replace"],
            hint=True,
        )
        household.run.succeed("measure", "--state", state, "--out", "evidence", "--replace", *more)
        household.run.succeed(
            "attest", "--service", "service", "--device", f"{name}.json", "--evidence", "evidence", "--out", "attested"
        )
        issue = (
            "issue",
            "--service",
            "service",
            "--device",
            f"{name}.json",
            "--attestation",
            "attested",
            "--state",
            state,
        )
        said = household.run.read_json(*issue)
        assert said["token"]["expires"] > time.time(), "no expiry was reported"
        assert not (state / "pending").exists(), "the baseline waits still"
        judge(household.run.run(*issue), {MALFORMED}, mentions=["--replace"], hint=True)
        judge(household.run.run(*issue, "--replace"), {MALFORMED}, mentions=["measure"], hint=True)
        household.accepted(state, name)


def test_a_baseline_that_waits_keeps_no_enrolment_from_proving(household):
    state = household.enrolled("front")
    household.run.succeed("measure", "--state", state, "--out", "evidence")
    household.accepted(state, "front")
    household.run.succeed("measure", "--state", state, "--out", "evidence", "--replace")


# status and explain.


def test_status_shows_each_enrolment_as_the_issuer_reported_it_dates_for_people_and_seconds_for_programs(household):
    state = household.enrolled(
        "front",
        "back",
        more=(
            "--valid-for",
            "86400",
            "--allow",
            "status",
            "--allow",
            "unlock",
            "--user",
            "alice",
            "--maximum-uses",
            "7",
        ),
    )
    now = time.time()
    for entry in household.states(state).values():
        assert entry["state"] == "valid", "the state"
        assert abs(entry["issued"] - now) < 120 and entry["expires"] == entry["issued"] + 86400, "the times"
        assert 86400 - 120 <= entry["seconds_left"] <= 86400, "the seconds left"
        assert (entry["commands"], entry["user"], entry["maximum_uses"]) == (["status", "unlock"], "alice", 7), (
            "the claims"
        )
        assert entry["issuer"], "no issuer"
    done = household.run.run("status", "--state", state)
    judge(done, {ACCEPTED})
    year = time.strftime("%Y-")
    for text in (household.ids["front"], household.ids["back"], "unlock", "alice", "7", year, "Z\n"):
        assert text in done.stdout.decode(), f"{text} is not shown"
    one = json.loads(household.run.succeed("status", "--state", state, "--device", "back.json", "--json"))["devices"]
    assert [entry["device_id"] for entry in one] == [household.ids["back"]], "the device that was asked for"
    judge(
        household.status(state, "--device", household.ids["spare"]),
        {MALFORMED},
        mentions=[household.ids["spare"]],
        hint=True,
    )


def test_an_expired_token_is_shown_as_expired_exit_0_and_the_doctor_says_so(household):
    state = household.enrolled("front", more=("--valid-for", "1"))
    time.sleep(1.2)
    entry = household.states(state)[household.ids["front"]]
    assert (entry["state"], entry["seconds_left"]) == ("expired", 0), "the state"
    assert household.status(state).returncode == ACCEPTED, "exit status"
    done = household.run.run("doctor", "--state", state, "--json")
    judge(done, {NOT_AVAILABLE}, is_json=True)
    token = [entry for entry in json.loads(done.stdout)["checks"] if entry["check"] == "token"]
    assert [entry["state"] for entry in token] == ["missing"], "what the doctor says"


def test_a_damaged_enrolment_is_shown_exit_2_and_does_not_keep_the_other_one_from_proving(household):
    state = household.enrolled("front", "back")
    damaged = state / "devices" / household.ids["front"]
    for name, data in (
        ("enrolment.json", b"{}"),
        ("measurement_token.cose", b"x"),
        ("fingerprints.cbor", b""),
        ("measurement_config.bin", b"\xa0"),
    ):
        good = (damaged / name).read_bytes()
        (damaged / name).write_bytes(data)
        done = household.status(state)
        judge(done, {MALFORMED}, mentions=[name], hint=True, is_json=True)
        told = {entry["device_id"]: entry["state"] for entry in json.loads(done.stdout)["devices"]}
        assert told == {household.ids["front"]: "damaged", household.ids["back"]: "valid"}, (
            f"the states with {name} damaged"
        )
        household.accepted(state, "back")
        done = household.prove(state, "front")
        assert done.returncode in (DENIED, MALFORMED), f"{name}: exit status {done.returncode}"
        (damaged / name).write_bytes(good)
    household.accepted(state, "front")


def test_every_bad_report_of_the_issuers_in_enrolment_json_is_refused(household):
    state = household.enrolled("front")
    file = enrolment(state) / "enrolment.json"
    good = json.loads(file.read_text())

    def without(name):
        return {key: value for key, value in good["issued"].items() if key != name}

    bad = [without(name) for name in good["issued"]]
    bad += [
        {**good["issued"], name: value}
        for name, value in (
            ("issuer", 1),
            ("issuer", "i" * 65),
            ("version", [1, 2]),
            ("version", ["1", "2", "3"]),
            ("generation", -1),
            ("issued", "now"),
            ("expires", good["issued"]["issued"]),
            ("expires", 2**60),
            ("maximum_uses", "7"),
            ("commands", "unlock"),
            ("commands", ["c"] * 17),
            ("commands", [7]),
            ("commands", [""]),
            ("user", 7),
            ("user", ""),
            ("user", "u" * 33),
            ("more", 1),
        )
    ]
    bad += [None, 7, []]
    for report in bad:
        file.write_text(json.dumps({**good, "issued": report}))
        judge(household.status(state), {MALFORMED}, mentions=["enrolment.json"], hint=True, is_json=True)
    file.write_text(json.dumps(good)[:-1] + ', "version": 3}')
    judge(household.status(state), {MALFORMED}, mentions=["enrolment.json"], hint=True)
    file.write_text(json.dumps({**good, "version": 5}))
    judge(household.status(state), {MALFORMED}, mentions=["another version"], hint=True)
    file.write_text(json.dumps(good))
    household.accepted(state, "front")


def test_explain_compares_with_each_baseline_or_with_that_of_one_device(household):
    state = household.enrolled("front", "back")
    said = household.run.read_json("explain", "--state", state)
    assert [entry["device_id"] for entry in said["devices"]] == sorted(
        [household.ids["front"], household.ids["back"]]
    ), "the devices"
    assert said["changed"] == [], "what changed"
    one = household.run.read_json("explain", "--state", state, "--device", household.ids["back"])
    assert (one["device_id"], one["changed"]) == (household.ids["back"], []), "one device"
    other = household.folder / "elsewhere"
    other.mkdir(mode=0o700, exist_ok=True)
    # Another host's secret, for both baselines.
    household.run.environment["XDG_DATA_HOME"], home = str(other), household.run.environment["XDG_DATA_HOME"]
    try:
        household.run.succeed("measure", "--state", household.state(), "--out", "elsewhere.evidence")
        done = household.run.run("explain", "--state", state, "--json")
        proof = household.prove(state, "front")
    finally:
        household.run.environment["XDG_DATA_HOME"] = home
    judge(done, {DENIED}, hint=True, is_json=True)
    assert json.loads(done.stdout)["changed"] == ["device.secret"], "what changed"
    judge(proof, {DENIED}, mentions=["host", "holdfast explain"], hint=True, is_json=True)


# The layout of older versions, and folders that cannot be written.


def test_the_old_layout_is_read_extended_and_replaced(household):
    state = make_old(household.enrolled("front"), household.state())
    household.accepted(state, "front")
    household.accepted(state, "front", "--device", household.ids["front"])
    assert (state / "remembered").exists(), "the token is not remembered"
    entry = household.states(state)[household.ids["front"]]
    assert (entry["state"], entry["expires"], entry["old_layout"]) == ("unknown", None, True), "what status shows"
    household.run.succeed("explain", "--state", state)
    judge(household.enroll(state, "front"), {MALFORMED}, mentions=["--replace"], hint=True)
    judge(household.prove(state, "back"), {MALFORMED}, mentions=[household.ids["front"], household.ids["back"]])
    assert household.enroll(state, "back").returncode == 0, "exit status"
    for name in ("front", "back"):
        household.accepted(state, name)
    assert household.enroll(state, "front", more=("--replace",)).returncode == 0, "exit status"
    assert os.listdir(state) == ["devices"], "what is left of the old layout"
    for name in ("front", "back"):
        household.accepted(state, name)


def test_where_both_layouts_have_a_device_devices_counts(household):
    state = household.enrolled("front")
    old = make_old(household.enrolled("front"), household.state())
    for path in old.iterdir():
        shutil.copyfile(path, state / path.name)
    (state / "measurement_token.cose").write_bytes(b"not a token")
    household.accepted(state, "front")
    assert household.states(state)[household.ids["front"]]["old_layout"] is False, "the layout"


def test_a_state_folder_that_cannot_be_written_still_proves(household):
    if os.geteuid() == 0 and not shutil.which("setpriv"):
        pytest.skip("there is no setpriv")
    state = household.enrolled("front", "back")
    with read_only(state):
        for _ in range(2):
            household.accepted(state, "front")
        assert {entry["state"] for entry in household.states(state).values()} == {"valid"}, "the states"
        done = household.enroll(state, "front", more=("--replace",))
        assert done.returncode != 0, "a folder that cannot be written was changed"


@contextlib.contextmanager
def read_only(state):
    """Mounted read-only where that may be done; otherwise without the right to write."""
    mounted = (
        os.geteuid() == 0
        and subprocess.run(["mount", "--bind", state, state], capture_output=True, check=False).returncode == 0
    )
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


def test_things_in_the_place_of_folders_are_refused_and_what_is_no_devices_folder_is_left_alone(household):
    state = household.enrolled("front")
    for name in ("notes.txt", "FF" * 16, "0" * 31):
        (state / "devices" / name).write_bytes(b"mine")
    household.accepted(state, "front")
    assert list(household.states(state)) == [household.ids["front"]], "the devices"
    target = state / "devices" / household.ids["back"]
    target.write_bytes(b"a file")
    judge(household.prove(state, "back"), {MALFORMED}, mentions=[household.ids["back"]])
    household.accepted(state, "front")
    target.unlink()
    target.symlink_to(state / "devices" / household.ids["front"])
    judge(household.prove(state, "back"), {MALFORMED}, mentions=[household.ids["back"]])
    target.unlink()
    broken = household.state()
    broken.mkdir(mode=0o700)
    (broken / "devices").write_bytes(b"a file")
    for words in (
        ("status", "--state", broken),
        ("explain", "--state", broken),
        ("prove", "--connect", household.endpoint("front"), "--state", broken, "--command", "status"),
    ):
        judge(household.run.run(*words), {MALFORMED}, mentions=["devices"])
    assert household.enroll(broken, "front").returncode == MALFORMED, "a file in the place of devices was no fault"
    assert (broken / "devices").read_bytes() == b"a file", "the file"


def test_the_doctor_looks_at_a_state_folder_the_device_that_answers_and_a_devices_folder(household):
    state = household.enrolled("front")
    said = household.run.read_json("doctor", "--state", state)["checks"]
    assert {"ok", "note"} >= {entry["state"] for entry in said}, f"something is wrong: {said}"
    assert {"state-folder", "enrolment", "token", "measurement"} <= {entry["check"] for entry in said}, (
        "a check is missing"
    )
    more = ("--state", state, "--timeout", "60")
    household.run.succeed("doctor", household.endpoint("front"), *more)
    done = household.run.run("doctor", household.endpoint("back"), *more, "--json")
    judge(done, {NOT_AVAILABLE}, is_json=True)
    worst = [entry for entry in json.loads(done.stdout)["checks"] if entry["state"] == "missing"]
    assert [entry["check"] for entry in worst] == ["answering-device"], "what is missing"
    judge(household.run.run("doctor", "--state", household.folder / "nothing", "--json"), {NOT_AVAILABLE}, is_json=True)
    household.run.succeed("doctor", "--dir", "front")
    household.run.succeed("device", "init", "--dir", "fresh")
    done = household.run.run("doctor", "--dir", "fresh", "--json")
    judge(done, {NOT_AVAILABLE}, is_json=True)
    assert [entry["check"] for entry in json.loads(done.stdout)["checks"] if entry["state"] == "missing"] == [
        "issuers"
    ], "what a fresh device lacks"
