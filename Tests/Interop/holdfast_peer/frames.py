"""Frames on a stream of bytes: `u16(length)` and a message of 1 to 4096 bytes; on a line, a length of 0 is an empty frame."""

from .refusal import require

LARGEST = 4096


def frame(message, length=None):
    return (len(message) if length is None else length).to_bytes(2, "big") + message


def messages(stream, is_line):
    """The messages of a stream that ends, in order; an empty one for each empty frame."""
    found = []
    while stream:
        require(len(stream) >= 2, "Truncated")
        length = int.from_bytes(stream[:2], "big")
        require(length <= LARGEST, "TooLarge")
        require(length or is_line, "EmptyFrame")
        require(len(stream) >= 2 + length, "Truncated")
        found.append(stream[2 : 2 + length])
        stream = stream[2 + length :]
    return found
