"""What the primitives cost on the board, in instructions, and how much stack they use."""

import re
import struct
import subprocess
import tempfile

from board import (
    AGREE,
    HKDF,
    HMAC_SHA1,
    HMAC_SHA256,
    NOTHING,
    PUBLIC_POINT,
    RANDOM,
    ROOT,
    SEAL,
    SHA256,
    STACK,
    UNWRAP,
    VERIFY,
    Board,
    number,
)
from published import POINT_I, POINT_R, SAMPLE, SCALAR_I, SIGNATURE, SIGNER, WRAPPED, WRAPPING_KEY

KEY, ZERO, NONCE = bytes(range(32)), bytes(12), bytes(range(12))

# Name, the most instructions it may cost, question.
PRIMITIVES = [
    ("SHA-256, 32 bytes", 3_200, (SHA256, KEY)),
    ("SHA-256, 1,024 bytes", 39_500, (SHA256, bytes(1024))),
    ("HMAC-SHA-256, 48 bytes", 11_400, (HMAC_SHA256, KEY[:16], bytes(48))),
    ("HMAC-SHA-1, 8 bytes", 9_700, (HMAC_SHA1, KEY[:20], bytes(8))),
    ("HKDF, session keys", 29_700, (HKDF, bytes(48), KEY, b"holdfast/1 session keys", number(64))),
    ("AES-256-GCM, a session's, 30 bytes", 25_500, (SEAL, KEY, ZERO, KEY, bytes(30))),
    ("AES-256-GCM, a token's, 300 bytes", 102_500, (SEAL, KEY, NONCE, KEY, bytes(300))),
    ("AES key unwrap", 232_000, (UNWRAP, WRAPPING_KEY, WRAPPED)),
    ("32 random bytes", 5_200, (RANDOM, bytes(64), KEY, number(1), number(32), number(2))),
    ("P-256 public point", 1_430_000, (PUBLIC_POINT, SCALAR_I)),
    ("P-256 ECDH", 1_310_000, (AGREE, SCALAR_I, POINT_R)),
    ("P-256 ECDSA verify", 1_350_000, (VERIFY, SIGNER, SAMPLE, SIGNATURE)),
]


def measured():
    """Each primitive's name, limit, instructions and bytes of stack, each on a board that was just started."""
    for name, limit, question in PRIMITIVES:
        with tempfile.TemporaryDirectory() as folder, Board(folder, "--count") as board:
            board.ask(NOTHING)
            instructions = board.instructions(*question)
            yield name, limit, instructions, struct.unpack(">II", board.ask(STACK))[0]


def test_what_the_primitives_may_cost(request, capsys):
    """Prints the figures of docs/performance.md, too, where `--measure` asks for them."""
    for name, limit, instructions, stack in measured():
        if request.config.getoption("measure"):
            with capsys.disabled():
                print(f"{name:36}{instructions:>14,} instructions{stack:>8,} bytes of stack")
        assert 0 < instructions <= limit, f"{name} costs {instructions}, and may cost {limit}"
        assert stack < 4096, f"{name} uses {stack} bytes of stack"


def test_counts_repeat():
    counts = []
    for _ in range(2):
        with tempfile.TemporaryDirectory() as folder, Board(folder, "--count") as board:
            counts.append(board.instructions(AGREE, SCALAR_I, POINT_R))
    assert abs(counts[0] - counts[1]) <= 200, f"the same work costs {counts}"


def test_secrets_do_not_show_in_counts():
    """What a scalar is does not show in what its product costs, beyond the interrupts that come between."""
    with tempfile.TemporaryDirectory() as folder, Board(folder, "--count") as board:
        scalars = [SCALAR_I, bytes(31) + b"\1", b"\x7f" * 32, bytes(16) + b"\xff" * 16, b"\x80" + bytes(31)]
        for operation, rest in (AGREE, [POINT_I]), (PUBLIC_POINT, []):
            counts = [board.instructions(operation, scalar, *rest) for scalar in scalars]
            assert max(counts) - min(counts) <= 200, f"scalars cost {counts}"
        for question in [(SEAL, None, ZERO, KEY, bytes(64)), (HMAC_SHA256, None, bytes(48))]:
            keys = [KEY, bytes(32), b"\xff" * 32, bytes(31) + b"\1"]
            counts = [board.instructions(question[0], key, *question[2:]) for key in keys]
            assert max(counts) - min(counts) <= 120, f"keys cost {counts}"


def test_nothing_divides():
    """A division's time depends on its operands: where secrets are there is none."""
    build = ROOT / "firmware-sim" / ".build"
    files = [
        build / "libbearssl.a",
        *build.glob("curve/*.o"),
        *build.glob("armv7em-none-none-eabi/release/CBearSSL.build/*.o"),
    ]
    listing = subprocess.run(["arm-none-eabi-objdump", "-d", *files], capture_output=True, text=True, check=True).stdout
    assert "umlal" in listing and "umaal" in listing, "no code was listed"
    assert "div\t" not in listing, "a division"


def test_codes_are_cut_out_by_masks():
    """Codes are cut out of a MAC by masks. Of what a compiler makes a condition, another one makes a branch."""
    elf = ROOT / "firmware-sim" / ".build" / "firmware.elf"
    symbols = subprocess.run(
        ["arm-none-eabi-nm", "-S", elf], capture_output=True, text=True, check=True
    ).stdout.splitlines()
    places = [symbol.split()[:2] for symbol in symbols if "10TruncationO6number" in symbol]
    assert len(places) == 1, "functions of that name"
    start, size = (int(field, 16) for field in places[0])
    listing = subprocess.run(
        [
            "arm-none-eabi-objdump",
            "-d",
            "-M",
            "force-thumb",
            f"--start-address={start & ~1}",
            f"--stop-address={(start & ~1) + size}",
            elf,
        ],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert "sbc" in listing, "no code was listed"
    assert re.search(r"\tit[te]*\t", listing) is None, "a condition"
