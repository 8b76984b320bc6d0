"""frames_test.json: streams of bytes, and the messages in them."""

from holdfast_peer import frames, session
from holdfast_peer.frames import frame

from .notes import NOTES
from .token_cases import DEVICE, DEVICE_ID
from .vector_file import VectorFile, pin

EMPTY = frame(b"")


def frames_file():
    file = VectorFile(
        "HoldfastFrames",
        "frames_schema_v1.json",
        ["Frames: the bytes of a stream that then ends, and the messages in it. An empty frame is an empty message."],
        NOTES,
    )
    for is_line in (True, False):
        group = file.group("Frames", lambda is_line=is_line, **test: check(isLine=is_line, **test), isLine=is_line)
        _streams(group, is_line)
    return file


def check(*, isLine, stream, messages=None):
    made = frames.messages(stream, isLine)
    assert messages in (None, made, [message.hex() for message in made])


CHECKS = {"Frames": check}


def _streams(group, is_line):
    def valid(comment, stream, flags=("Normal",)):
        group.valid(comment, flags, stream=stream, messages=frames.messages(stream, is_line))

    m1 = session.message_1(DEVICE_ID, pin("frames/challenge", 16), DEVICE.kid, 2, 1790000100)
    m3 = session.message_3(0, pin("frames/sealed", 27))
    largest = pin("frames/largest", 4096)
    valid("nothing", b"", ("Boundary",))
    valid("M1", frame(m1))
    valid("three messages", frame(m1) + frame(m3) + frame(m1))
    valid("a message that looks like a frame", frame(frame(m1)))
    valid("a message of zeros", frame(bytes(6)))
    for size in (1, 255, 256, 257, 4095, 4096):
        valid(f"a message of {size} bytes", frame(largest[:size]), ("Boundary",))
    valid("two messages of 4096 bytes", frame(largest) * 2, ("Boundary",))
    if is_line:
        valid("an empty frame", EMPTY)
        valid("an empty frame and M1", EMPTY + frame(m1))
        valid("three empty frames", EMPTY * 3)
        valid("M1, an empty frame, and M1 anew", frame(m1) + EMPTY + frame(m1))
        valid("an empty frame behind a message", frame(m3) + EMPTY)

    def invalid(comment, flag, stream):
        group.invalid(comment, flag, stream=stream)

    for size in (4097, 8192, 0x8000, 0xFFFF):
        invalid(f"a length of {size}", "TooLarge", frame(largest, size))
        invalid(f"a length of {size} behind a message", "TooLarge", frame(m1) + frame(m1, size))
    invalid("a length above the limit and nothing behind it", "TooLarge", b"\xff\xff")
    invalid("a length in the other order", "TooLarge", len(m1).to_bytes(2, "little") + m1)
    invalid("a message without its length", "TooLarge", m1)
    for name, stream in (("a message", frame(m1)), ("a second message", frame(m3) + frame(m1))):
        start = len(stream) - len(frame(m1))
        for cut in (1, 2, 3, len(m1) + 1):
            invalid(f"{name} cut to {cut} bytes", "Truncated", stream[: start + cut])
    invalid("a length of one byte too many", "Truncated", frame(m1, len(m1) + 1))
    invalid("a length of 4096 over a short message", "Truncated", frame(m1, 4096))
    invalid("a byte behind a message", "Truncated", frame(m1) + b"\x07")
    if is_line:
        invalid("half an empty frame", "Truncated", b"\0")
        invalid("an empty frame and a half", "Truncated", EMPTY + b"\0")
        invalid("a length above the limit behind an empty frame", "TooLarge", EMPTY + b"\xff\xff")
    else:
        invalid("an empty frame", "EmptyFrame", EMPTY)
        invalid("an empty frame before M1", "EmptyFrame", EMPTY + frame(m1))
        invalid("an empty frame behind M1", "EmptyFrame", frame(m1) + EMPTY)
