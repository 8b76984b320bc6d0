"""The benchmark itself: its figures, its table, its progress, its peers, and that a wrong result ends it."""

import io
import json
import shutil
import subprocess

import counted
import document
import growth
import images
import peers
import pytest
import spread
from progress import Progress
from rows import Peer, Row
from run import Timed

ANSWERING = "for line in iter(input, ''): print(2000 * int(line), 1000 * int(line), flush=True)"


def timed(ours, theirs, most):
    row = Timed(Row("a work", None, [Peer("a peer", None, most)]))
    row.samples = {None: ours, "a peer": theirs}
    return row


def test_a_ratio_is_that_of_samples_of_the_same_round():
    # Other work slowed the second round of both.
    found = spread.ratio([10, 1000, 12], [10, 1000, 10])
    assert (found.low, found.middle, found.high) == (1, 1, 1.1)


def test_a_row_has_the_ratio_with_its_quartiles_and_says_whether_it_is_within_the_target():
    lines = list(document.table([timed([1000, 1000, 1000], [2000, 2000, 1000], 0.5)]))
    assert lines == ["| a work | 1 µs | a peer | 2 µs | 0.50 (0.50 to 0.75) | 0.50, met |"]
    assert "not met" in next(document.table([timed([1000, 1000], [1000, 1000], 0.5)]))


def test_every_row_with_a_peer_is_a_bar_and_the_board_is_one_beside_its_limit():
    slow = Timed(Row("without a peer", None, [], most=5000))
    slow.samples = {None: [6000, 6000]}
    counts = [counted.Count("a token", 2_000_000, 1_600_000), counted.Count("a round", 9, absent="there is no board")]
    rows = [timed([1000, 1000], [4000, 4000], 0.5), timed([3000, 3000], [1000, 1000], None), slow]
    chart = document.bars(rows, counts)
    assert chart["log"] is True
    assert [(bar["name"], bar["value"], bar["limit"]) for bar in chart["bars"]] == [
        ("a work, to a peer", 0.25, 0.5),
        ("a work, to a peer", 3, None),
        ("without a peer, to its limit", 1.2, 1),
        ("on the board: a token, to its limit", 0.8, 1),
    ]
    assert all(bar["low"] <= bar["value"] <= bar["high"] for bar in chart["bars"])


def test_a_row_of_the_board_has_its_instructions_their_time_and_whether_they_are_within_the_target():
    lines = list(document.board([counted.Count("a token", 2_000_000, 1_600_000), counted.Count("a round", 9, 10)]))
    assert lines == [
        "| on the board: a token | 1,600,000 instructions (counted), 25 ms at 64 MHz | | | | 2,000,000, met |",
        "| on the board: a round | 10 instructions (counted), 0.000156 ms at 64 MHz | | | | 9, not met |",
    ]


def test_without_the_firmware_each_row_of_the_board_says_why_it_is_skipped(monkeypatch, tmp_path):
    def prepare():
        raise images.Unavailable("there is no qemu-system-arm", "apt-get install qemu-system-arm")

    monkeypatch.setattr(images, "prepare", prepare)
    lines = list(document.board(counted.measure("/no/holdfast", tmp_path)))
    assert lines[0] == "| on the board: first token, COSE_Sign1 | skipped: there is no qemu-system-arm | | | |  |"
    assert len(lines) == 3


@pytest.mark.parametrize("kind", ["entries", "requests", "nonces", "users", "adding"])
def test_what_a_ledger_keeps_grows_by_powers_of_ten_to_ten_million(kind):
    assert growth.sizes(kind, quick=False) == [100, 1000, 10_000, 100_000, 1_000_000, 10_000_000]
    assert growth.sizes(kind, quick=True) == [100, 1000]


class Clock:
    """A clock that a test sets."""

    seconds = 0.0

    def __call__(self):
        return self.seconds


def run_rows(names, file, seconds):
    """What a run says whose rows take that long."""
    clock, out = Clock(), io.StringIO()
    progress = Progress(names, file, clock, out)
    for name, taken in zip(names, seconds, strict=True):
        with progress.row(name):
            clock.seconds += taken
    return out.getvalue().splitlines()


def test_each_row_is_announced_with_its_number_and_an_estimate_of_the_rest(tmp_path):
    names, file = ["one", "two", "three"], tmp_path / "seconds.json"
    assert run_rows(names, file, [10, 20, 60]) == [
        "row 1 of 3: one",
        "row 2 of 3, about 20 s left: two",
        "row 3 of 3, about 15 s left: three",
    ]
    # The next run knows that the last row takes longest, and this machine is half as fast today; a row is new.
    assert run_rows([*names, "four"], file, [20, 40, 120, 1]) == [
        "row 1 of 4: one",
        "row 2 of 4, about 220 s left: two",
        "row 3 of 4, about 180 s left: three",
        "row 4 of 4, about 60 s left: four",
    ]
    # Nothing is new the next time.
    assert run_rows(["one", "four"], file, [20, 1])[0] == "row 1 of 2, about 21 s left: one"


class Terminal(io.StringIO):
    """A terminal that keeps what it gets."""

    def isatty(self):
        return True


def test_a_row_tells_a_terminal_how_long_it_has_taken_and_what_is_left(tmp_path):
    clock, out = Clock(), Terminal()
    progress = Progress(["one", "two"], tmp_path / "seconds.json", clock, out)
    with progress.row("one"):
        clock.seconds += 3
        progress.tick()
        clock.seconds += 7
    with progress.row("two"):
        for seconds in (4, 50):
            clock.seconds += seconds
            progress.tick()
    clear = "\r\033[K"
    assert out.getvalue() == (
        f"row 1 of 2: one\n\r  3 s\033[K{clear}"
        f"row 2 of 2, about 10 s left: two\n\r  4 s, about 6 s left\033[K\r  54 s, about 1 s left\033[K{clear}"
    )


def test_a_row_that_fails_leaves_no_line_below_and_no_time(tmp_path):
    out = Terminal()
    progress = Progress(["one"], tmp_path / "seconds.json", Clock(), out)
    with pytest.raises(ZeroDivisionError), progress.row("one"):
        progress.tick()
        raise ZeroDivisionError
    assert out.getvalue().endswith("\r  0 s\033[K\r\033[K") and not (tmp_path / "seconds.json").exists()


@pytest.mark.parametrize("text", ["", "[]", '{"one": "x"}', '{"one": null}', '{"one": 0}', '{"one": -1}'])
def test_a_file_of_times_that_is_none_is_ignored(tmp_path, text):
    file = tmp_path / "seconds.json"
    file.write_text(text)
    assert run_rows(["one", "two"], file, [4, 1])[1] == "row 2 of 2, about 4 s left: two"
    assert json.loads(file.read_text()) == {"one": 4, "two": 1}


def test_the_peers_of_python_have_an_environment_without_debians_packages(tmp_path):
    python = peers.virtual_environment(tmp_path / "environment")
    shown = "import sys, importlib.util as u; print(*sys.path, u.find_spec('pytest'), sep='\\n')"
    done = subprocess.run([python, "-I", "-c", shown], capture_output=True, text=True, check=True)
    *paths, pytest_there = done.stdout.splitlines()
    assert pytest_there == "None" and not [path for path in paths if "dist-packages" in path]
    # Another environment variable does not lead elsewhere: -I.
    worker = peers.Worker([python, "-I", "-c", ANSWERING], PYTHONPATH=str(tmp_path))
    worker.start(1_000_000)
    worker.close()


def test_an_environment_is_made_once_and_anew_if_it_has_no_python(monkeypatch, tmp_path):
    made = []

    def make(folder):
        made.append(folder)
        (folder / "bin").mkdir(parents=True)
        (folder / "bin/python").write_text("#!/bin/sh\n")
        (folder / "bin/python").chmod(0o755)
        return folder / "bin/python"

    monkeypatch.setattr(peers, "BUILD", tmp_path)
    monkeypatch.setattr(peers, "virtual_environment", make)
    for _ in range(2):
        assert peers.python_peers() == tmp_path / "python/bin/python"
    assert len(made) == 1
    shutil.rmtree(tmp_path / "python/bin")
    assert peers.python_peers().exists() and len(made) == 2


def test_a_worker_is_asked_for_repetitions_and_its_time_is_that_of_one():
    worker = peers.Worker([peers.PYTHON, "-c", ANSWERING])
    worker.start(1_000_000)
    try:
        assert worker.count == 500
        assert worker.sample() == 1000
    finally:
        worker.process.kill()
        worker.close()


@pytest.mark.parametrize("program", ["print('error results are wrong')", "raise SystemExit"])
def test_a_worker_with_a_wrong_result_ends_the_row(program):
    worker = peers.Worker([peers.PYTHON, "-c", f"input(); {program}"])
    with pytest.raises(peers.Wrong):
        worker.start(1_000_000)
    worker.close()


def test_a_command_with_a_wrong_output_ends_the_row():
    with pytest.raises(peers.Wrong):
        peers.Command(["echo", "755225"], check=lambda output: output == b"755224\n").sample()


@pytest.mark.parametrize("size, text", [(1, "1 ns"), (1500, "1.5 µs"), (2_345_678, "2.35 ms"), (3e9, "3 s")])
def test_a_duration_has_three_digits(size, text):
    assert document.duration(size) == text
