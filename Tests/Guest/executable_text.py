"""`app.text`, computed only from the files: nothing in memory is changed, so each executable segment is what its file has there.

Source: docs/measurement.md; for the program headers, the System V ABI's ELF-64 object file format.
"""

import hashlib
import struct

from holdfast_peer import measurement

PAGE = 4096
LOADABLE, EXECUTABLE = 1, 1


def segments(file):
    """(file offset, bytes) of each executable segment, in whole pages as they are mapped."""
    (start,) = struct.unpack_from("<Q", file, 32)
    size, count = struct.unpack_from("<HH", file, 54)
    for number in range(count):
        kind, flags, offset, _, _, length = struct.unpack_from("<IIQQQQ", file, start + number * size)
        if kind == LOADABLE and flags & EXECUTABLE:
            first, end = offset // PAGE * PAGE, -(-(offset + length) // PAGE) * PAGE
            yield first, file[first:end].ljust(end - first, b"\0")


def digest(executable, libraries, verity=None, beginning=b"", represented=bytes):
    """SHA-256 over offset, length and bytes of the segments: the executable's, then those of `libraries`, path → bytes, by path."""
    text = hashlib.sha256(beginning)
    if verity:
        for offset, segment in segments(executable):
            text.update(b"\xff" * 8 + b"sha256\0" + verity + struct.pack(">QQ", offset, len(segment)))
    for file in [*([] if verity else [executable]), *(libraries[path] for path in sorted(libraries))]:
        for offset, segment in segments(file):
            text.update(struct.pack(">QQ", offset, len(segment)) + represented(segment))
    return text.digest()


def tree_digest(executable, libraries, verity=None):
    """The same with the root of each segment's tree in place of its bytes."""
    return digest(executable, libraries, verity, b"holdfast/1 text\0", measurement.tree_digest)
