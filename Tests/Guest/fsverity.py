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


def levels(data):
    """The levels of the tree, from the hashes of the data's blocks to the one hash at the top."""
    hashes = level(data)
    yield hashes
    while len(hashes) > 32:
        hashes = level(hashes)
        yield hashes


def root_hash(data):
    """The hash of the one block at the top of the tree; 32 zero bytes for an empty file."""
    return list(levels(data))[-1] if data else bytes(32)


def tree(data):
    """The tree as file systems keep it: each level but the top, from above to below, in whole blocks."""
    return b"".join(padded(hashes, BLOCK) for hashes in reversed(list(levels(data))[:-1]))


def padded(data, unit):
    return data.ljust(-(-len(data) // unit) * unit, b"\0")


def descriptor(data):
    """struct fsverity_descriptor: version 1, algorithm, log2 of the block size, salt size, a reserved word, size of the data, 64 bytes for
    the root hash, 32 for the salt, 144 reserved."""
    described = struct.pack("<BBBBIQ64s32s144x", 1, SHA256, LOG2_BLOCK, 0, 0, len(data), root_hash(data), b"")
    assert len(described) == 256
    return described


def digest(data):
    """SHA-256 of the descriptor."""
    return hashlib.sha256(descriptor(data)).digest()
