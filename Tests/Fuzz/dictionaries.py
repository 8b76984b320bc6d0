"""The dictionary of a target: what the files of its reader compare with, as it is in inputs."""

import re

from verdicts import numbers

# Names of members, commands and options.
WORD = re.compile(r'"([\w./+:#=<>@ -]{2,40})"', re.ASCII)
# The major types of CBOR (RFC 8949 §3.1), and the least value of an argument of each width in bytes.
MAJOR_TYPES, WIDTHS = range(7), {1: 24, 2: 1 << 8, 4: 1 << 16, 8: 1 << 32}


def dictionary_of(target):
    """The words of a target's sources, and their numbers as bytes in either order and as heads of CBOR, in libFuzzer's format."""
    words = {word.encode() for source in target.sources for word in WORD.findall(source.read_text())}
    for value in numbers(target):
        width = max(width for width, least in WIDTHS.items() if width == 1 or value >= least)
        argument = value.to_bytes(width, "big")
        words |= {argument, argument[::-1], str(value).encode()}
        words |= {head(major, value, width) for major in MAJOR_TYPES}
    assert words, f"{target.name} has no dictionary"
    return "".join(f'"{quoted(word)}"\n' for word in sorted(words))


def head(major, value, width):
    """The head of an item of CBOR."""
    if value < 24:
        return bytes([major << 5 | value])
    return bytes([major << 5 | 23 + width.bit_length()]) + value.to_bytes(width, "big")


def quoted(word):
    return "".join(chr(byte) if 32 <= byte < 127 and byte not in b'"\\' else f"\\x{byte:02x}" for byte in word)
