"""Reads what `btmon -w` has recorded: which packets an L2CAP channel carried, and when the link was encrypted."""

import struct

HEADER = b"btsnoop\0"
# Of a record's flags: what it is; the adapter's number is above.
EVENT, SENT, RECEIVED = 3, 4, 5
ENCRYPTION_CHANGE = (0x08, 0x59)
SIGNALLING, CONNECTION_REQUEST, CONNECTION_RESPONSE, SUCCESS = 1, 2, 3, 0


def timed_records(recorded):
    """Each record as (what it is, bytes, microseconds since some moment)."""
    assert recorded.startswith(HEADER)
    offset = 16
    while offset + 24 <= len(recorded):
        _, length, flags, _, microseconds = struct.unpack_from(">IIIIq", recorded, offset)
        yield flags & 0xFFFF, recorded[offset + 24 : offset + 24 + length], microseconds
        offset += 24 + length


def records(recorded):
    """Each record as (what it is, bytes)."""
    return ((kind, packet) for kind, packet, _ in timed_records(recorded))


def frames(recorded):
    """What was said, in order: `("encrypted", None)`, and each L2CAP frame as (direction, (channel, payload))."""
    parts = {SENT: b"", RECEIVED: b""}
    for kind, packet in records(recorded):
        if kind == EVENT and packet[0] in ENCRYPTION_CHANGE and packet[2] == 0 and packet[5] != 0:
            yield "encrypted", None
        if kind in parts:
            (handle_and_flags,) = struct.unpack_from("<H", packet)
            is_continued = handle_and_flags >> 12 & 3 == 1
            parts[kind] = parts[kind] + packet[4:] if is_continued else packet[4:]
            length, channel = struct.unpack_from("<HH", parts[kind])
            if len(parts[kind]) == 4 + length:
                yield kind, (channel, parts[kind][4:])


def conversation(recorded, psm):
    """What was said about the channel to that PSM, which this end asked for: "encrypted", and each packet of it as (direction, bytes)."""
    said, ours, theirs = [], None, None
    for kind, frame in frames(recorded):
        if kind == "encrypted":
            said.append(kind)
            continue
        channel, payload = frame
        if (
            channel == SIGNALLING
            and payload[0] == CONNECTION_REQUEST
            and kind == SENT
            and struct.unpack_from("<H", payload, 4)[0] == psm
        ):
            (ours,) = struct.unpack_from("<H", payload, 6)
        elif channel == SIGNALLING and payload[0] == CONNECTION_RESPONSE and kind == RECEIVED:
            destination, source, result = struct.unpack_from("<HHH", payload, 4)
            if source == ours and result == SUCCESS:
                theirs = destination
        elif (kind, channel) in ((SENT, theirs), (RECEIVED, ours)):
            said.append(("sent" if kind == SENT else "received", payload))
    return said
