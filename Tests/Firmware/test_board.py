"""The board itself: its flash, its stack, its clock, its faults, its entropy, and what starts it."""

import contextlib
import pathlib
import re
import socket
import struct
import subprocess
import tempfile
import time

import pytest
from board import (
    AGREE_BY_KEY,
    BYTES,
    ENTROPY,
    ENTROPY_AGAIN,
    ERASE,
    FAULT,
    FIRMWARE,
    LAYOUTS,
    MILLISECONDS,
    NOTHING,
    PROGRAM,
    RANDOM,
    RUN,
    STACK,
    WORD,
    Board,
    Gone,
    number,
)
from published import POINT_R, SCALAR_I

PAGE, SIZE, FUSE = 4096, 32 * 4096, 0x100000
ERASED = number(0xFFFFFFFF)


def file_word(board, offset):
    """The word in the image's file, as the host sees it."""
    return board.image.read_bytes()[offset : offset + 4][::-1]


def set_fuse(board, words):
    with open(board.image, "r+b") as image:
        image.seek(FUSE)
        image.write(struct.pack("<I", words))


def test_flash_bits_to_0_pages_to_1(board):
    ask = board.ask
    assert ask(ERASE, number(0)) == b"", "erased"
    assert board.image.read_bytes()[:PAGE] == b"\xff" * PAGE, "the page in the file"
    assert board.image.read_bytes()[PAGE : PAGE + 4] == bytes(4), "the next page"
    assert ask(PROGRAM, number(8), number(0x12345678)) == b"", "programmed"
    assert ask(WORD, number(8)) == number(0x12345678), "read"
    assert file_word(board, 8) == number(0x12345678), "in the file at once"
    assert ask(BYTES, number(7), number(6)) == b"\xff\x78\x56\x34\x12\xff", "bytes, little-endian"
    assert ask(PROGRAM, number(8), number(0x12345679)) is None, "a bit from 0 to 1"
    assert ask(WORD, number(8)) == number(0x12345678), "unchanged by it"
    assert ask(PROGRAM, number(8), number(0x02040608 & 0x12345678)) == b"", "more bits to 0"
    assert ask(ERASE, number(0)) == b"", "erased again"
    assert ask(WORD, number(8)) == ERASED, "and read"
    for offset in 1, 2, 3, SIZE, SIZE + 4, 0xFFFFFFFC, FUSE:
        assert ask(PROGRAM, number(offset), number(0)) is None, f"programmed at {offset}"
    for offset in 4, 2048, SIZE, 0xFFFFF000:
        assert ask(ERASE, number(offset)) is None, f"erased at {offset}"
    assert ask(ERASE, number(SIZE - PAGE)) == b"", "the last page"
    assert ask(PROGRAM, number(SIZE - 4), number(0)) == b"", "the last word"


def test_clang_and_gcc_agree_on_layouts(board):
    sizes = struct.unpack(">10I", board.ask(LAYOUTS))
    assert sizes[0::2] == sizes[1::2], "sizes by clang and by gcc"


def test_the_stack_is_painted(board):
    used, size = struct.unpack(">II", board.ask(STACK))
    assert size == 8192, "the stack"
    assert 256 < used < size, f"{used} bytes of stack were used"
    board.ask(AGREE_BY_KEY, SCALAR_I, POINT_R)
    assert struct.unpack(">II", board.ask(STACK))[0] >= used, "the mark went back"


def test_the_clock(board):
    begun = time.monotonic()
    first, passed = struct.unpack(">I", board.ask(MILLISECONDS))[0], 0
    # QEMU drops ticks while the host is busy.
    while passed <= 100:
        assert time.monotonic() < begun + 60, f"a minute took {passed} ms"
        time.sleep(0.5)
        passed = struct.unpack(">I", board.ask(MILLISECONDS))[0] - first
    elapsed = 1000 * (time.monotonic() - begun)
    assert passed < elapsed + 100, f"{elapsed:.0f} ms took {passed} ms"


def test_entropy_is_simulated_and_taken_once(board):
    entropy = board.ask(ENTROPY)
    assert len(set(entropy)) > 16, "64 bytes of the host's"
    assert board.ask(ENTROPY_AGAIN) == bytes(64), "taken a second time"
    assert "entropy: simulated" in board.console(), "the console does not say that it is simulated"
    assert "entropy: none" in board.console(), "the console does not say when there is none"


def test_random_bytes(board):
    def draw(entropy=bytes(64), secret=b"s" * 32, start=1, count=32, times=1):
        return board.ask(RANDOM, entropy, secret, number(start), number(count), number(times))

    drawn = [
        draw(),
        draw(start=2),
        draw(secret=b"t" * 32),
        draw(entropy=b"e" + bytes(63)),
        draw(times=2),
        draw(times=3),
    ]
    assert len(set(drawn)) == len(drawn), "different seeds and draws"
    assert draw() == drawn[0], "the same seed again"
    assert draw(count=1000)[-32:] != bytes(32), "zeros"
    assert len({draw(count=1000)[at : at + 16] for at in range(0, 992, 16)}) == 62, "blocks in a long draw"


def test_an_idle_board_sleeps(board):
    def processor_seconds():
        fields = pathlib.Path(f"/proc/{board.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / 100

    board.ask(NOTHING)
    used, begun = processor_seconds(), time.monotonic()
    time.sleep(1)
    used = processor_seconds() - used
    assert used < 0.3 * (time.monotonic() - begun), "an idle board keeps the host busy"


def test_slow_bytes(board):
    """What is thrown at the way in while it answers, a piece at a time, is all taken."""
    for piece in struct.pack(">BHH", NOTHING, 2, 0):
        board.socket.sendall(bytes([piece]))
        time.sleep(0.02)
    assert board.receive(7)[0] == 1, "a question that comes slowly"


@pytest.mark.parametrize(
    "way, expected",
    [
        pytest.param(0, ("exception 4", "address 0x10000000", "pc 0x"), id="a read of nothing"),
        pytest.param(1, ("exception 6", "pc 0x"), id="an unknown instruction"),
        pytest.param(2, ("stack overflow",), id="the stack's end"),
        pytest.param(3, ("exception 6", "pc 0x"), id="a broken precondition"),
        pytest.param(4, ("exception 4", "address 0x00000100"), id="code is written"),
        pytest.param(5, ("exception 4",), id="memory is run"),
    ],
)
def test_a_fault_is_reported_and_ends_everything(way, expected):
    with tempfile.TemporaryDirectory() as folder, Board(folder) as board:
        board.send(FAULT, number(way))
        board.wait_for(lambda: re.search("fault: .*\n", board.console()), "report of a fault")
        for text in expected:
            assert text in board.console(), f"{board.console().splitlines()[-1]!r} lacks {text!r}"
        board.socket.settimeout(0.3)
        try:
            board.ask(NOTHING)
        except Gone:
            return
        raise AssertionError("it went on after a fault")


def test_the_fuse():
    """Power that fails after n words leaves exactly n words; the next start finds them."""
    with tempfile.TemporaryDirectory() as folder:
        for words in 1, 5, 1024, 1027:
            with Board(folder) as board:
                set_fuse(board, 0)
                board.ask(ERASE, number(0))
                board.ask(ERASE, number(PAGE))
                set_fuse(board, words)
                for programmed in range(words - 1):
                    assert board.ask(PROGRAM, number(4 * programmed), number(0)) == b"", "programmed"
                board.send(PROGRAM, number(4 * (words - 1)), number(0))
                board.wait_for(lambda board=board: file_word(board, FUSE) == ERASED, "power cut")
                board.socket.settimeout(1)
                with pytest.raises(Gone):
                    board.receive(1)
            flash = board.image.read_bytes()
            assert flash[: 4 * words + 4] == bytes(4 * words) + b"\xff" * 4, f"{words} words"
            with Board(folder) as board:
                assert board.ask(WORD, number(4 * words - 4)) == bytes(4), "the last word after a start"
        with Board(folder) as board:
            set_fuse(board, 3)
            board.send(ERASE, number(0))
            board.wait_for(lambda: file_word(board, FUSE) == ERASED, "power cut")
            assert board.image.read_bytes()[:20] == b"\xff" * 12 + bytes(8), "a page erased half"


def test_runs_messages():
    def run(*arguments):
        return subprocess.run([RUN, *arguments], capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL)

    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        image, path = folder / "image, with a comma", folder / "socket"
        usual = ["--firmware", FIRMWARE, "--console", "/dev/null"]
        for status, arguments in {64: ["--image", image], 2: ["--image", image, "--socket", path, *usual]}.items():
            assert run(*arguments).returncode == status, f"{arguments}"
        image.touch()
        seen = run("--image", image, "--socket", path, "--firmware", folder / "none")
        assert (seen.returncode, "no firmware" in seen.stderr) == (2, True), "without firmware"
        seen = run("--image", image, "--socket", image, *usual)
        assert (seen.returncode, "not a socket" in seen.stderr) == (2, True), "a file for a socket"
        (folder / "short").write_bytes(bytes(63))
        for entropy in folder / "short", folder / "none":
            seen = run("--image", image, "--socket", path, *usual, "--entropy", entropy)
            assert (seen.returncode, "64 bytes" in seen.stderr) == (2, True), f"entropy from {entropy.name}"
        process = subprocess.Popen([RUN, "--image", image, "--socket", path, *usual], stdin=subprocess.DEVNULL)
        try:
            peer = socket.socket(socket.AF_UNIX)
            while peer.connect_ex(str(path)) != 0:
                assert process.poll() is None, "it ended"
                time.sleep(0.01)
            seen = run("--image", image, "--socket", folder / "other", *usual)
            assert (seen.returncode, "another board" in seen.stderr) == (69, True), "a second board"
            seen = run("--image", image, "--socket", path, *usual)
            assert (seen.returncode, "listens" in seen.stderr) == (69, True), "a second socket"
            assert image.stat().st_size == 1 << 24, "the image's bytes"
        finally:
            process.terminate()
            process.wait(120)
        # Reset where QEMU had not taken the connection yet.
        with contextlib.suppress(ConnectionResetError):
            assert peer.recv(1) == b"", "the board after its end"
