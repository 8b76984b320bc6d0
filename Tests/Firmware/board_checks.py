"""The board itself: its flash, its stack, its clock, its faults, its entropy, and what starts it."""

import contextlib
import pathlib
import re
import socket
import struct
import subprocess
import tempfile
import time

from board import (
    AGREE_BY_KEY, BYTES, ENTROPY, ENTROPY_AGAIN, ERASE, FAULT, FIRMWARE, LAYOUTS, MILLISECONDS, NOTHING, PROGRAM, RANDOM, RUN,
    STACK, WORD, Board, Gone, number)
from holdfast_peer.checks import Failed, expect, expect_equal
from published import POINT_R, SCALAR_I

PAGE, SIZE, FUSE = 4096, 32 * 4096, 0x100000
ERASED = number(0xFFFFFFFF)


def file_word(board, offset):
    """The word in the image's file, as the host sees it."""
    return board.image.read_bytes()[offset:offset + 4][::-1]


def set_fuse(board, words):
    with open(board.image, "r+b") as image:
        image.seek(FUSE)
        image.write(struct.pack("<I", words))


def check_flash(board):
    ask = board.ask
    expect_equal(ask(ERASE, number(0)), b"", "erased")
    expect_equal(board.image.read_bytes()[:PAGE], b"\xff" * PAGE, "the page in the file")
    expect_equal(board.image.read_bytes()[PAGE:PAGE + 4], bytes(4), "the next page")
    expect_equal(ask(PROGRAM, number(8), number(0x12345678)), b"", "programmed")
    expect_equal(ask(WORD, number(8)), number(0x12345678), "read")
    expect_equal(file_word(board, 8), number(0x12345678), "in the file at once")
    expect_equal(ask(BYTES, number(7), number(6)), b"\xff\x78\x56\x34\x12\xff", "bytes, little-endian")
    expect_equal(ask(PROGRAM, number(8), number(0x12345679)), None, "a bit from 0 to 1")
    expect_equal(ask(WORD, number(8)), number(0x12345678), "unchanged by it")
    expect_equal(ask(PROGRAM, number(8), number(0x02040608 & 0x12345678)), b"", "more bits to 0")
    expect_equal(ask(ERASE, number(0)), b"", "erased again")
    expect_equal(ask(WORD, number(8)), ERASED, "and read")
    for offset in 1, 2, 3, SIZE, SIZE + 4, 0xFFFFFFFC, FUSE:
        expect_equal(ask(PROGRAM, number(offset), number(0)), None, f"programmed at {offset}")
    for offset in 4, 2048, SIZE, 0xFFFFF000:
        expect_equal(ask(ERASE, number(offset)), None, f"erased at {offset}")
    expect_equal(ask(ERASE, number(SIZE - PAGE)), b"", "the last page")
    expect_equal(ask(PROGRAM, number(SIZE - 4), number(0)), b"", "the last word")


def check_layouts(board):
    sizes = struct.unpack(">10I", board.ask(LAYOUTS))
    expect_equal(sizes[0::2], sizes[1::2], "sizes by clang and by gcc")


def check_stack(board):
    used, size = struct.unpack(">II", board.ask(STACK))
    expect_equal(size, 8192, "the stack")
    expect(256 < used < size, f"{used} bytes of stack were used")
    board.ask(AGREE_BY_KEY, SCALAR_I, POINT_R)
    expect(struct.unpack(">II", board.ask(STACK))[0] >= used, "the mark went back")


def check_clock(board):
    first, begun = struct.unpack(">I", board.ask(MILLISECONDS))[0], time.monotonic()
    time.sleep(0.5)
    passed = struct.unpack(">I", board.ask(MILLISECONDS))[0] - first
    expect(100 < passed < 1000 * (time.monotonic() - begun) + 100, f"half a second took {passed} ms")


def check_entropy(board):
    entropy = board.ask(ENTROPY)
    expect(len(set(entropy)) > 16, "64 bytes of the host's")
    expect_equal(board.ask(ENTROPY_AGAIN), bytes(64), "taken a second time")
    expect("entropy: simulated" in board.console(), "the console does not say that it is simulated")
    expect("entropy: none" in board.console(), "the console does not say when there is none")


def check_random(board):
    def draw(entropy=bytes(64), secret=b"s" * 32, start=1, count=32, times=1):
        return board.ask(RANDOM, entropy, secret, number(start), number(count), number(times))

    drawn = [draw(), draw(start=2), draw(secret=b"t" * 32), draw(entropy=b"e" + bytes(63)), draw(times=2), draw(times=3)]
    expect_equal(len(set(drawn)), len(drawn), "different seeds and draws")
    expect_equal(draw(), drawn[0], "the same seed again")
    expect(draw(count=1000)[-32:] != bytes(32), "zeros")
    expect_equal(len({draw(count=1000)[at:at + 16] for at in range(0, 992, 16)}), 62, "blocks in a long draw")


def check_idle(board):
    def processor_seconds():
        fields = pathlib.Path(f"/proc/{board.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / 100

    board.ask(NOTHING)
    begun = processor_seconds()
    time.sleep(1)
    expect(processor_seconds() - begun < 0.3, "an idle board keeps the host busy")


def check_garbage(board):
    """What is thrown at the way in while it answers, a piece at a time, is all taken."""
    for piece in struct.pack(">BHH", NOTHING, 2, 0):
        board.socket.sendall(bytes([piece]))
        time.sleep(0.02)
    expect_equal(board.receive(7)[0], 1, "a question that comes slowly")


def check_fault(way, *expected):
    with tempfile.TemporaryDirectory() as folder, Board(folder) as board:
        board.send(FAULT, number(way))
        board.wait_for(lambda: re.search("fault: .*\n", board.console()), "report of a fault")
        for text in expected:
            expect(text in board.console(), f"{board.console().splitlines()[-1]!r} lacks {text!r}")
        board.socket.settimeout(0.3)
        try:
            board.ask(NOTHING)
        except Gone:
            return
        raise Failed("it went on after a fault")


def check_fuse(_):
    """Power that fails after n words leaves exactly n words; the next start finds them."""
    with tempfile.TemporaryDirectory() as folder:
        for words in 1, 5, 1024, 1027:
            with Board(folder) as board:
                set_fuse(board, 0)
                board.ask(ERASE, number(0))
                board.ask(ERASE, number(PAGE))
                set_fuse(board, words)
                board.socket.settimeout(1)
                programmed = 0
                try:
                    for programmed in range(words + 1):
                        board.ask(PROGRAM, number(4 * programmed), number(0))
                    raise Failed("the power did not fail")
                except Gone:
                    pass
                expect_equal(file_word(board, FUSE), ERASED, "the fuse")
            flash = board.image.read_bytes()
            expect_equal(flash[:4 * words + 4], bytes(4 * words) + b"\xff" * 4, f"{words} words")
            with Board(folder) as board:
                expect_equal(board.ask(WORD, number(4 * words - 4)), bytes(4), "the last word after a start")
        with Board(folder) as board:
            set_fuse(board, 3)
            board.send(ERASE, number(0))
            board.wait_for(lambda: file_word(board, FUSE) == ERASED, "power cut")
            expect_equal(board.image.read_bytes()[:20], b"\xff" * 12 + bytes(8), "a page erased half")


def check_run(_):
    def run(*arguments):
        return subprocess.run([RUN, *arguments], capture_output=True, text=True, timeout=20, stdin=subprocess.DEVNULL)

    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        image, path = folder / "image, with a comma", folder / "socket"
        usual = ["--firmware", FIRMWARE, "--console", "/dev/null"]
        for status, arguments in {
            64: ["--image", image], 2: ["--image", image, "--socket", path, *usual],
        }.items():
            expect_equal(run(*arguments).returncode, status, f"{arguments}")
        image.touch()
        seen = run("--image", image, "--socket", path, "--firmware", folder / "none")
        expect_equal((seen.returncode, "no firmware" in seen.stderr), (2, True), "without firmware")
        seen = run("--image", image, "--socket", image, *usual)
        expect_equal((seen.returncode, "not a socket" in seen.stderr), (2, True), "a file for a socket")
        (folder / "short").write_bytes(bytes(63))
        for entropy in folder / "short", folder / "none":
            seen = run("--image", image, "--socket", path, *usual, "--entropy", entropy)
            expect_equal((seen.returncode, "64 bytes" in seen.stderr), (2, True), f"entropy from {entropy.name}")
        process = subprocess.Popen([RUN, "--image", image, "--socket", path, *usual], stdin=subprocess.DEVNULL)
        try:
            peer = socket.socket(socket.AF_UNIX)
            while peer.connect_ex(str(path)) != 0:
                expect(process.poll() is None, "it ended")
                time.sleep(0.01)
            seen = run("--image", image, "--socket", folder / "other", *usual)
            expect_equal((seen.returncode, "another board" in seen.stderr), (69, True), "a second board")
            seen = run("--image", image, "--socket", path, *usual)
            expect_equal((seen.returncode, "listens" in seen.stderr), (69, True), "a second socket")
            expect_equal(image.stat().st_size, 1 << 24, "the image's bytes")
        finally:
            process.terminate()
            process.wait(20)
        # Reset where QEMU had not taken the connection yet.
        with contextlib.suppress(ConnectionResetError):
            expect_equal(peer.recv(1), b"", "the board after its end")


CHECKS = [
    ("flash: bits to 0, pages to 1", check_flash),
    ("clang and gcc agree on layouts", check_layouts),
    ("the stack is painted", check_stack),
    ("the clock", check_clock),
    ("entropy is simulated, and taken once", check_entropy),
    ("random bytes", check_random),
    ("an idle board sleeps", check_idle),
    ("slow bytes", check_garbage),
    ("the fuse", check_fuse),
    ("run's messages", check_run),
    ("a read of nothing faults", lambda _: check_fault(0, "exception 4", "address 0x10000000", "pc 0x")),
    ("an unknown instruction faults", lambda _: check_fault(1, "exception 6", "pc 0x")),
    ("the stack's end faults", lambda _: check_fault(2, "stack overflow")),
    ("a broken precondition faults", lambda _: check_fault(3, "exception 6", "pc 0x")),
    ("code cannot be written", lambda _: check_fault(4, "exception 4", "address 0x00000100")),
    ("memory cannot be run", lambda _: check_fault(5, "exception 4")),
]
