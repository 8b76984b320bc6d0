"""Files of test vectors that are broken: each is named, the exit status is 2, and everything else is replayed."""

import copy
import json
import pathlib
import subprocess

import pytest

VECTORS = pathlib.Path(__file__).resolve().parents[2] / "vectors"

# RFC 4231, test case 2.
TEST = {
    "tcId": 7,
    "comment": "",
    "key": "4a656665",
    "msg": "7768617420646f2079612077616e7420666f72206e6f7468696e673f",
    "tag": "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843",
    "result": "valid",
}


def file(*tests, schema="mac_test_schema_v1.json", count=None):
    group = {"type": "MacTest", "keySize": 32, "tagSize": 256, "tests": list(tests)}
    count = len(tests) if count is None else count
    return {"algorithm": "HMACSHA256", "schema": schema, "numberOfTests": count, "testGroups": [group]}


def replay(holdfast, *paths):
    return subprocess.run([holdfast, "vectors", "replay", *paths], capture_output=True, text=True)


BROKEN = {
    "not-json": (b"{", "it is not strict JSON"),
    "not-utf-8": (b'{"schema":"\xff"}', "it is not strict JSON"),
    "empty": (b"", "it is not strict JSON"),
    "no-schema": (json.dumps({"testGroups": []}).encode(), "schema: it is missing"),
    "unknown-schema": (json.dumps(file(TEST, schema="x_schema_v1.json")).encode(), "schema: it is neither"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_file_is_named_and_the_others_are_replayed(holdfast, tmp_path, name):
    content, reason = BROKEN[name]
    bad, good = tmp_path / f"{name}.json", tmp_path / "good.json"
    bad.write_bytes(content)
    good.write_text(json.dumps(file(TEST)))
    for order in (bad, good), (good, bad):
        done = replay(holdfast, *order)
        assert done.returncode == 2
        assert done.stderr.count(bad.name) == 1 and reason in done.stderr
        assert "1 passed, 1 failed, 0 skipped" in done.stdout


def test_each_of_several_broken_files_is_named_once(holdfast, tmp_path):
    paths = [tmp_path / f"{name}.json" for name in BROKEN]
    for path in paths:
        path.write_bytes(BROKEN[path.stem][0])
    done = replay(holdfast, *paths)
    assert done.returncode == 2 and f"{len(BROKEN)} files could not be replayed" in done.stderr
    assert all(done.stderr.count(path.name) == 1 for path in paths), done.stderr


def test_what_a_device_accepts_needs_a_device(holdfast, tmp_path):
    (tmp_path / "good.json").write_text(json.dumps(file(TEST)))
    done = replay(holdfast, tmp_path / "good.json", "--accepts", "mac")
    assert done.returncode == 64 and "--target" in done.stderr and not done.stdout


def test_a_file_of_a_hundred_megabytes_is_refused_unread(holdfast, tmp_path):
    bad, good = tmp_path / "large.json", tmp_path / "good.json"
    with bad.open("wb") as output:
        output.truncate(100_000_000)
    good.write_text(json.dumps(file(TEST)))
    done = replay(holdfast, bad, good)
    assert done.returncode == 2 and bad.name in done.stderr
    assert "1 passed, 1 failed, 0 skipped" in done.stdout


@pytest.mark.parametrize("change", [{"key": "0"}, {"tag": "zz"}, {"msg": None}, {"key": "4a 65"}])
def test_a_broken_test_is_named_and_the_others_of_its_file_are_replayed(holdfast, tmp_path, change):
    path = tmp_path / "tests.json"
    path.write_text(json.dumps(file({**TEST, "tcId": 1}, {**TEST, **change}, {**TEST, "tcId": 9})))
    done = replay(holdfast, path)
    assert done.returncode == 2
    assert f"{path.name}, tcId 7, testGroups[0].tests[1].{next(iter(change))}: " in done.stderr
    assert "2 passed, 1 failed, 0 skipped" in done.stdout


@pytest.mark.parametrize(
    "change, member",
    [({"result": "maybe"}, "result"), ({"result": None}, "result"), ({"flags": [1]}, "flags[0]")],
)
def test_a_test_with_a_broken_frame_is_named_and_the_others_are_replayed(holdfast, tmp_path, change, member):
    path = tmp_path / "tests.json"
    path.write_text(json.dumps(file({**TEST, "tcId": 1}, {**TEST, **change}, {**TEST, "tcId": 9})))
    done = replay(holdfast, path)
    assert done.returncode == 2
    assert f"{path.name}, tcId 7, testGroups[0].tests[1].{member}: " in done.stderr
    assert "2 passed, 1 failed, 0 skipped" in done.stdout


def test_a_test_without_a_number_is_told_by_its_place(holdfast, tmp_path):
    path = tmp_path / "tests.json"
    nameless = {name: value for name, value in TEST.items() if name != "tcId"}
    path.write_text(json.dumps(file({**TEST, "tcId": 1}, nameless, {**TEST, "tcId": 9}, {**TEST, "tcId": 9})))
    done = replay(holdfast, path)
    assert done.returncode == 2
    assert f"{path.name}, testGroups[0].tests[1].tcId: it is missing" in done.stderr
    assert f"{path.name}, tcId 9, testGroups[0].tests[3]: tcId 9 occurs twice" in done.stderr
    assert "2 passed, 2 failed, 0 skipped" in done.stdout


@pytest.mark.parametrize("name", ["token", "session"])
def test_bad_digits_that_a_group_shares_name_its_tests_and_the_other_groups_are_replayed(holdfast, tmp_path, name):
    source = VECTORS / {"token": "measurement_token_test.json", "session": "session_test.json"}[name]
    document = json.loads(source.read_text())
    broken = next(group for group in document["testGroups"] if "devicePrivateKey" in group)
    broken["devicePrivateKey"] = "zz" + broken["devicePrivateKey"][2:]
    path = tmp_path / source.name
    path.write_text(json.dumps(document))
    done = replay(holdfast, path)
    first, last = (broken["tests"][index]["tcId"] for index in (0, -1))
    assert done.returncode == 2
    assert f"{path.name}, tcId {first} to {last}, testGroups[0].devicePrivateKey: it is not" in done.stderr
    count = len(broken["tests"])
    assert f"{document['numberOfTests'] - count} passed, {count} failed, 0 skipped" in done.stdout


def test_a_group_that_is_none_leaves_the_others(holdfast, tmp_path):
    document = json.loads((VECTORS / "oath-ocra.json").read_text())
    unknown, *others = document["testGroups"]
    unknown["type"] = "OCRB"
    path = tmp_path / "tests.json"
    path.write_text(json.dumps(document))
    done = replay(holdfast, path)
    assert done.returncode == 2
    count = len(unknown["tests"])
    assert f"tcId 1 to {count}, testGroups[0].type: the schema has no such type of group" in done.stderr
    assert f"{sum(len(group['tests']) for group in others)} passed, {count} failed, 0 skipped" in done.stdout


@pytest.mark.parametrize("count", [1, 3, "2", None, -1])
def test_a_wrong_number_of_tests_is_reported_and_the_tests_are_replayed(holdfast, tmp_path, count):
    path = tmp_path / "tests.json"
    document = file(TEST, {**TEST, "tcId": 8})
    document["numberOfTests"] = count
    path.write_text(json.dumps(document))
    done = replay(holdfast, path)
    assert done.returncode == 2
    assert f"{path.name}, numberOfTests: " in done.stderr
    assert "2 passed, 1 failed, 0 skipped" in done.stdout


def test_a_report_in_json_lists_the_faults(holdfast, tmp_path):
    path = tmp_path / "tests.json"
    document = file(TEST, {**TEST, "tcId": 8, "result": "maybe"})
    shared = copy.deepcopy(document["testGroups"][0])
    shared.update(tagSize="many", tests=[{**TEST, "tcId": 10}, {**TEST, "tcId": 12}])
    document.update(numberOfTests=4, testGroups=[*document["testGroups"], shared])
    path.write_text(json.dumps(document))
    done = replay(holdfast, path, "--json")
    report = json.loads(done.stdout)
    assert (done.returncode, report["passed"], report["failed"]) == (2, 1, 3)
    assert [(fault["location"], fault["tcIds"]) for fault in report["faults"]] == [
        ("testGroups[0].tests[1].result", [8]),
        ("testGroups[1].tagSize", [10, 12]),
    ]
