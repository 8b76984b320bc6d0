"""Responses of a TPM."""

import struct

from .shared import framed

RETRIES = (0x908, 0x90A, 0x920, 0x922)
FAILURES = (0x18B, 0x14C, 0x14B, 0x8E, 0x9A2, 0x82, 0x12F, 0x146, 0x149, 0x14A, 0x101)
DEFINE, READ, INCREMENT, UNDEFINE, MAKE, AGREE, REMOVE = range(7)


def success(parameters=b"", handle=b""):
    body = handle + struct.pack(">I", len(parameters)) + parameters + b"\0\0\1\0\0"
    return struct.pack(">HII", 0x8002, 10 + len(body), 0) + body


def failure(code):
    return struct.pack(">HII", 0x8001, 10, code)


def add_responses(seeds):
    """Responses by themselves, and those to the commands about a counter and about a key."""
    count = struct.pack(">HQ", 8, 5)
    seeds.add("tpm", success(count), success(), *(failure(code) for code in (*RETRIES, *FAILURES)))
    seeds.add("tpm", bytes.fromhex("80020000001b000000000000000801020304050607080000010000"))
    add = lambda kind, *responses: seeds.add("tpm", bytes([0xFF, kind]) + framed(*responses))
    nothing, read = success(), success(count)
    add(DEFINE, nothing, nothing, read)
    add(DEFINE, nothing, failure(0x149), nothing)
    add(READ, success(struct.pack(">HQ", 9, 5)))
    add(READ, success(b"\0" * 8))
    add(READ, read)
    for kind in (READ, INCREMENT, UNDEFINE, REMOVE):
        add(kind, nothing)
        add(kind, failure(0x922), failure(0x908), read if kind == READ else nothing)
        for code in FAILURES:
            add(kind, failure(code))
        # Too short, too long, cut off, with a wrong length, and no response at all.
        for wrong in (b"\x80", read[:9], read[:-1], read + b"x", struct.pack(">HII", 0x8002, 5, 0), b"\xff" * 20):
            add(kind, wrong)
        add(kind, struct.pack(">HII", 0x8002, 2000, 0))
        add(kind)
    point = b"\0\x20" + bytes(range(32)) + b"\0\x20" + bytes(range(32))
    short = b"\0\x1f" + bytes(31) + b"\0\x20" + bytes(32)
    template = b"\0\x23" + bytes(18)
    handle = struct.pack(">I", 0x80000000)
    for coordinates in (point, short, point[:40], b"\0\x21" + point[2:], b"\0\0" + point[2:], point[:20], b""):
        body = template + coordinates
        made = success(struct.pack(">H", len(body)) + body + bytes(20), handle)
        add(MAKE, made, nothing, failure(0))
        add(MAKE, made, success(b"x"), nothing)
        add(MAKE, made, failure(0x14C), nothing)
        add(MAKE, made)
        add(AGREE, success(struct.pack(">H", len(coordinates)) + coordinates))
        add(AGREE, success(struct.pack(">H", len(coordinates) + 1) + coordinates))
        add(AGREE, success(struct.pack(">H", len(coordinates) + 1) + coordinates + b"x"))
    # Coordinates without their leading zeros.
    for x, y in ((1, 32), (31, 32), (32, 1), (32, 31)):
        coordinates = struct.pack(">H", x) + bytes(range(1, x + 1)) + struct.pack(">H", y) + bytes(range(1, y + 1))
        answer = success(struct.pack(">H", len(coordinates)) + coordinates)
        seeds.add_at_limit("tpm", bytes([0xFF, AGREE]) + framed(answer))
    add(MAKE, success(struct.pack(">H", 500) + template, handle))
    add(MAKE, success(b"\0\x23" + bytes(60), handle))
    add(MAKE, failure(0x922), failure(0x8E))
    add(AGREE, failure(0x8E))
    add(REMOVE, success(b"x"))
