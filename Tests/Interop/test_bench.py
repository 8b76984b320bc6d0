"""`holdfast bench`: what its results have, what it refuses before it begins, and what a comparison says."""

import contextlib
import json
import os
import pty
import re
import subprocess

import pytest
from devices import LinuxDevice, served

ACCEPTED, DENIED, MALFORMED, USAGE = 0, 1, 2, 64
PROVING = ["latency", "rounds", "measure", "board"]
PERCENTILES = ["min", "p50", "p90", "p99", "p99_9", "max"]


@pytest.fixture(scope="module")
def lock(holdfast, folder):
    """A device that is served, and a prover that its service enrolled."""
    with served(LinuxDevice(holdfast, folder)) as device:
        service, _ = device.service()
        device.command_line.succeed(
            *("enroll", "--device", folder / "device.json", "--service", service, "--state", folder / "phone")
        )
        yield device


def arguments(device, verb, *more):
    """The arguments of a benchmark of the device, or of none. A busy machine is no reason for a failure."""
    place = [] if verb in ("measure", "otp") else ["--connect", device.endpoint, "--state", device.folder / "phone"]
    patience = ["--budget-ms", "3600000"] if verb == "latency" else []
    return ["bench", verb, *place, *patience, *more]


@pytest.fixture(scope="module")
def results(lock):
    """The JSON of each benchmark."""
    return {
        verb: lock.command_line.read_json(*arguments(lock, verb, *([] if verb == "otp" else ["--rounds", "20"])))
        for verb in (*PROVING, "otp")
    }


def series(result):
    """The times of a result by name."""
    times = result["microseconds"]
    return {"total": times} if "histogram" in times else times


@pytest.mark.parametrize("verb", PROVING)
def test_a_result_has_percentiles_histogram_rate_version_host_and_bytes(results, verb):
    result = results[verb]
    assert (result["benchmark"], result["format"], result["rounds"]) == (verb, 1, 20)
    assert result["version"] and result["host"]["processors"] >= 1
    assert result["host"]["system"].startswith("Linux ") and result["host"]["processor"]
    assert result["bytes_hashed"] > 1_000_000 and result["rate_per_second"] >= 1 and result["elapsed_microseconds"] > 0
    for name, times in series(result).items():
        assert [times[one] for one in PERCENTILES] == sorted(times[one] for one in PERCENTILES), name
        values = [value for value, _ in times["histogram"]]
        assert values == sorted(set(values)), name
        expected = {"first": 1, "later": 19}.get(name, 20) if verb == "measure" and "." not in name else None
        count = sum(count for _, count in times["histogram"])
        assert count == (expected or (19 if verb == "measure" else 20)), name


def test_passwords_a_second_have_the_same_members_and_the_times_of_ten_thousand(results):
    result = results["otp"]
    assert (result["benchmark"], result["format"]) == ("otp", 1)
    assert result["version"] and result["host"] == results["latency"]["host"] and "bytes_hashed" not in result
    times = result["microseconds"]
    assert [times[one] for one in PERCENTILES] == sorted(times[one] for one in PERCENTILES)
    assert result["codes"] == 10_000 * sum(count for _, count in times["histogram"])
    rate = result["codes"] * 1e6 / result["elapsed_microseconds"]
    assert abs(result["rate_per_second"] - rate) <= 0.05 * rate
    # The rate is that of a clock, which goes on while a busy machine does other work: most batches are faster.
    assert result["rate_per_second"] <= result["codes_per_second"] + 1
    assert 0 < times["p50"] * result["codes_per_second"] / 1e6 / 10_000 <= 1.5


def test_the_parts_of_a_result_are_named(results):
    assert list(results["latency"]["microseconds"]) == ["total", "measure", "connect", "round", "device"]
    assert list(results["rounds"]["parts"]) == ["challenge", "answer", "verdict"]
    assert list(results["measure"]["microseconds"])[:2] == ["first", "later"]
    assert "app.image" in results["measure"]["microseconds"]
    assert list(results["board"]["parts"]) == [
        f"{kind}: {part}" for kind in ("first", "remembered") for part in ("host", "line and device")
    ]


def test_a_whole_token_is_sent_in_each_first_round_of_a_board_and_a_reference_in_the_others(results):
    board = results["board"]
    assert list(board["microseconds"]) == ["first", "remembered"]
    assert board["bytes"]["first"] > board["bytes"]["remembered"] + 300
    assert "instructions" not in board


@pytest.mark.parametrize("option", ["--megahertz", "--bits-per-second"])
def test_without_a_console_a_board_has_its_measured_times_and_one_line_says_why(lock, option):
    """A real board has no counts of instructions."""
    done = lock.command_line.run(*arguments(lock, "board", "--rounds", "3", option, "640"))
    assert done.returncode == ACCEPTED
    # The default key for proofs has its warning.
    [line] = [line for line in done.stderr.decode().splitlines() if "warning" not in line]
    assert line.startswith(f"holdfast: the times are measured: {option} needs --console, with the instructions that ")
    names = [line[:19].rstrip() for line in done.stdout.decode().splitlines()]
    assert names[2:] == ["first", "  host", "  line and device", "remembered", "  host", "  line and device"], (
        done.stdout
    )


def test_the_console_of_a_board_tells_the_instructions_of_the_answers(lock, tmp_path):
    """The device is on Linux: the lines of a console come from here, as many as the rounds have answers, and one too few."""
    console = tmp_path / "console"
    console.write_text("holdfast: start 1\nholdfast: status 0, ticks 9, stack 1\n")
    words = arguments(lock, "board", "--rounds", "3", "--console", console, "--json")
    done = lock.command_line.run(*words)
    assert done.returncode == MALFORMED and json.loads(done.stdout)["error"].endswith("not those of these rounds")
    missing = lock.command_line.run(*arguments(lock, "board", "--console", tmp_path / "none"))
    assert missing.returncode == MALFORMED


@pytest.mark.parametrize("verb", PROVING)
def test_a_picture_that_cannot_be_written_is_refused_before_the_benchmark(lock, tmp_path, verb):
    # More than can be done in a minute.
    rounds = "100000" if verb == "board" else "1000000"
    for svg, word in ((tmp_path, "folder"), (tmp_path / "none" / "x.svg", "does not exist"), ("", "--svg")):
        done = lock.command_line.run(*arguments(lock, verb, "--rounds", rounds, "--svg", svg), timeout=120)
        assert done.returncode in (MALFORMED, USAGE) and word in done.stderr.decode(), (svg, done.stderr)
        assert not done.stdout and done.seconds < 60
    picture = tmp_path / "x.svg"
    lock.command_line.succeed(*arguments(lock, verb, "--rounds", "3", "--svg", picture))
    text = picture.read_text()
    assert text.startswith("<svg ") and 'role="img"' in text and "p99.9" in text
    assert f">budget {'3.6 M' if verb == 'latency' else '100'} ms<" in text


def test_the_picture_of_a_board_has_first_and_remembered_tokens_each_with_budget_percentiles_and_parts(lock, tmp_path):
    picture = tmp_path / "x.svg"
    lock.command_line.succeed(*arguments(lock, "board", "--rounds", "5", "--budget-ms", "7", "--svg", picture))
    text = picture.read_text()
    assert re.search(r">First tokens, answers of \d{3,} bytes<", text)
    assert re.search(r">Remembered tokens, answers of \d{2,3} bytes<", text)
    for once_each in (">budget 7 ms<", ">host<", ">line and device<", ">p99.9 "):
        assert text.count(once_each) == 2, once_each


@pytest.mark.parametrize(
    "words",
    [
        ["measure", "--rounds", "1"],
        ["measure", "--rounds", "0"],
        ["board", "--connect", "unix:x", "--state", "x", "--megahertz", "0"],
        ["board", "--connect", "unix:x", "--state", "x", "--console", "x", "--megahertz", "0"],
        ["board", "--connect", "unix:x", "--state", "x", "--bits-per-second", "0"],
        ["rounds", "--connect", "unix:x", "--state", "x", "--budget-ms", "0"],
        ["measure", "--budget-ms", "0"],
        ["otp", "--seconds", "0"],
        ["board", "--connect", "unix:x", "--state", "x", "--rounds", "0"],
        ["compare", "-", "-"],
        ["compare", "x"],
    ],
    ids=" ".join,
)
def test_wrong_arguments_are_refused(lock, words):
    assert lock.command_line.run("bench", *words).returncode == USAGE


def shown_on(near, far):
    """What was written to a terminal, both ends of which are closed. A read need not return all that is there."""
    os.close(far)
    shown = b""
    with contextlib.suppress(OSError):
        while part := os.read(near, 1 << 16):
            shown += part
    os.close(near)
    return shown.decode()


def test_passwords_have_progress_and_a_histogram_on_a_terminal_only(lock):
    words = [lock.command_line.path, "bench", "otp", "--seconds", "3"]
    near, far = pty.openpty()
    subprocess.run(words, env=lock.command_line.environment, stdout=far, stderr=far, check=True)
    shown = shown_on(near, far).splitlines()
    assert any(re.fullmatch(r"holdfast: [12] of 3 seconds, about \d s left", line) for line in shown), shown
    assert len([line for line in shown if re.fullmatch(r" *[0-9.]+  #* \d+", line)]) == 12, shown
    quiet = subprocess.run(words, env=lock.command_line.environment, capture_output=True, check=True)
    assert not quiet.stderr
    rate, names, times = quiet.stdout.decode().splitlines()
    assert re.fullmatch(r"\d+ codes per second, \d+ ns each", rate) and names.split() == [
        "ms",
        "p50",
        "p90",
        "p99",
        "p99.9",
        "max",
    ]
    assert times.startswith("10,000 codes  ")


def test_progress_with_an_estimate_is_shown_on_a_terminal_only(lock):
    words = [lock.command_line.path, *map(str, arguments(lock, "measure", "--rounds", "400"))]
    near, far = pty.openpty()
    subprocess.run(words, env=lock.command_line.environment, stdout=subprocess.PIPE, stderr=far, check=True)
    shown = shown_on(near, far)
    assert re.search(r"holdfast: \d+ of 400 measurements, about \d+ s left", shown), shown
    quiet = subprocess.run(words, env=lock.command_line.environment, capture_output=True, check=True)
    assert b"left" not in quiet.stderr


# bench compare


@pytest.fixture
def compare(lock, tmp_path):
    """Compares two results; a text stands for a file as it is."""

    def run(before, after, *more):
        paths = [tmp_path / "before.json", tmp_path / "after.json"]
        for path, value in zip(paths, (before, after)):
            path.write_text(value if isinstance(value, str) else json.dumps(value))
        return lock.command_line.run("bench", "compare", *paths, *more)

    return run


def slowed(result, percent):
    """The same result with times that are longer by so much."""
    changed = json.loads(json.dumps(result))
    for times in series(changed).values():
        times["histogram"] = sorted([value * (100 + percent) // 100, count] for value, count in times["histogram"])
    return changed


@pytest.fixture
def spread(results):
    """A result with many values, so that a small change is significant."""
    changed = json.loads(json.dumps(results["rounds"]))
    changed["microseconds"]["histogram"] = [[1000 + 2 * step, 10] for step in range(100)]
    return changed


def details(result):
    """The parts and the instructions of a result by name."""
    instructions = {f"{name}: instructions": counts for name, counts in result.get("instructions", {}).items()}
    return result.get("parts", {}) | instructions


@pytest.mark.parametrize("verb", [*PROVING, "otp"])
def test_a_result_does_not_differ_from_itself(compare, results, verb):
    done = compare(results[verb], results[verb])
    lines = done.stdout.decode().splitlines()
    assert done.returncode == ACCEPTED and not done.stderr
    names = [*series(results[verb]), *details(results[verb])]
    assert [line.split("  ")[0] for line in lines] == names
    assert all(line.endswith("p = 1: no significant difference") for line in lines), lines


def test_longer_times_are_slower_and_shorter_ones_faster_with_ratio_and_probability(compare, spread):
    slow = slowed(spread, 10)
    line = compare(spread, slow).stdout.decode().splitlines()[0]
    assert re.fullmatch(r"total +1\.1 times \(1\.0\d+ to 1\.1\d+\), p < 0\.0001: slower", line)
    assert compare(slow, spread).stdout.decode().splitlines()[0].endswith(": faster")
    told = json.loads(compare(spread, slow, "--json").stdout)
    assert told["slower"] is True and told["benchmark"] == "rounds"
    one, *parts = told["series"]
    assert (one["name"], one["verdict"]) == ("total", "slower")
    assert [(part["name"], part["verdict"]) for part in parts] == [
        (name, "unchanged") for name in ("challenge", "answer", "verdict")
    ]
    assert one["low_thousandths"] <= one["ratio_thousandths"] <= one["high_thousandths"]
    assert 1090 <= one["ratio_thousandths"] <= 1110 and one["p_millionths"] == 0
    assert json.loads(compare(spread, spread, "--json").stdout)["slower"] is False


@pytest.mark.parametrize("name", ["challenge", "verdict"])
def test_the_part_of_a_round_that_became_slower_is_named(compare, spread, name):
    parts = {part: {"histogram": [[100, 400], [101, 400]]} for part in ("challenge", "answer", "verdict")}
    before = {**spread, "parts": parts}
    after = {**spread, "parts": {**parts, name: {"histogram": [[120, 400], [121, 400]]}}}
    told = json.loads(compare(before, after, "--json").stdout)
    assert told["slower"] and [one["name"] for one in told["series"] if one["verdict"] == "slower"] == [name]
    # A file without parts, as earlier versions wrote them, is compared as far as it goes.
    old = {member: value for member, value in before.items() if member != "parts"}
    assert [one["name"] for one in json.loads(compare(old, after, "--json").stdout)["series"]] == ["total"]


def test_the_instructions_of_a_board_are_compared_where_both_files_have_them(compare, results):
    counted = {kind: {"histogram": [[number, 20]]} for kind, number in (("first", 2_800_000), ("remembered", 133_000))}
    before = {**results["board"], "instructions": counted}
    after = {**before, "instructions": {**counted, "remembered": {"histogram": [[134_000, 20]]}}}
    told = {one["name"]: one["verdict"] for one in json.loads(compare(before, after, "--json").stdout)["series"]}
    assert told["first: instructions"] == "unchanged" and told["remembered: instructions"] == "slower"
    assert list(told)[:2] == ["first", "remembered"]
    for pair in ((before, results["board"]), (results["board"], after)):
        names = [one["name"] for one in json.loads(compare(*pair, "--json").stdout)["series"]]
        assert not [name for name in names if "instructions" in name] and names[:2] == ["first", "remembered"]


def test_another_host_is_told(compare, spread):
    other = {**spread, "host": {**spread["host"], "processor": "another"}}
    done = compare(spread, other)
    assert done.returncode == ACCEPTED and b"different hosts" in done.stderr


def test_files_that_are_no_results_or_of_different_benchmarks_are_refused(compare, results, spread):
    bad = {
        "another benchmark": results["latency"],
        "another version": {**spread, "format": 2},
        "no version": {name: value for name, value in spread.items() if name != "format"},
        "a benchmark that there is not": {**spread, "benchmark": "nothing"},
        "no times": {**spread, "microseconds": {}},
        "an empty histogram": {**spread, "microseconds": {**spread["microseconds"], "histogram": []}},
        "falling values": {**spread, "microseconds": {"histogram": [[5, 1], [4, 1]]}},
        "a value twice": {**spread, "microseconds": {"histogram": [[5, 1], [5, 1]]}},
        "a count of 0": {**spread, "microseconds": {"histogram": [[5, 0]]}},
        "a count without a value": {**spread, "microseconds": {"histogram": [[5]]}},
        "a value that is no number": {**spread, "microseconds": {"histogram": [["5", 1]]}},
        "parts that are none": {**spread, "parts": []},
        "a part without values": {**spread, "parts": {"answer": {"histogram": []}}},
        "instructions without values": {**spread, "instructions": {"first": {}}},
        "a cut file": json.dumps(spread)[:-20],
        "an empty file": "",
        "an array": "[]",
        "a failure": '{"error": "x", "exit": 1, "code": "x", "number": 1}',
    }
    for name, value in bad.items():
        for pair in ((spread, value), (value, spread)):
            done = compare(*pair)
            assert done.returncode == MALFORMED and not done.stdout, (name, done)
            assert done.stderr.startswith(b"holdfast: "), name
