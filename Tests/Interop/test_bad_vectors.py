"""Files of test vectors that are broken: each is named, the exit status is 2, and everything else is replayed."""

import json
import subprocess

import pytest

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
    "wrong-count": (json.dumps(file(TEST, count=2)).encode(), "numberOfTests is 2, but there are 1"),
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
        assert bad.name in done.stderr and reason in done.stderr
        assert "1 passed, 1 failed, 0 skipped" in done.stdout


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
