"""The benchmark itself: its figures, its table, and that a wrong result ends it."""

import counted
import document
import images
import peers
import pytest
import spread
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


def test_a_bar_is_a_part_of_its_target():
    bar = document.bars([timed([1000, 1000], [4000, 4000], 0.5)])["bars"]
    assert bar == [{"name": "a work, to a peer", "value": 0.5, "low": 0.5, "high": 0.5, "limit": 1}]


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
