"""fs-verity digests, computed only from the file's bytes.

Source: Linux, Documentation/filesystems/fsverity.rst, "Merkle tree" and "fs-verity descriptor". SHA-256, 4096-byte blocks, no salt.
"""

import hashlib
import struct

BLOCK = 4096
SHA256, LOG2_BLOCK = 1, 12


def level(data):
    """The digest of each block of `data`, the last one filled up with zeros."""
    blocks = (data[start : start + BLOCK].ljust(BLOCK, b"\0") for start in range(0, len(data), BLOCK))
    return b"".join(hashlib.sha256(block).digest() for block in blocks)


def root_hash(data):
    """The hash of the one block at the top of the tree; 32 zero bytes for an empty file."""
    if not data:
        return bytes(32)
    hashes = level(data)
    while len(hashes) > 32:
        hashes = level(hashes)
    return hashes


def digest(data):
    """SHA-256 of struct fsverity_descriptor: version 1, algorithm, log2 of the block size, salt size, a reserved word, size of the data,
    64 bytes for the root hash, 32 for the salt, 144 reserved."""
    descriptor = struct.pack("<BBBBIQ64s32s144x", 1, SHA256, LOG2_BLOCK, 0, 0, len(data), root_hash(data), b"")
    assert len(descriptor) == 256
    return hashlib.sha256(descriptor).digest()
