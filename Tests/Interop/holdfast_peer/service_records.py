"""SDP records of Holdfast devices (Bluetooth Core, volume 3 part B): written, and found in an SDP server's answer."""

from .refusal import Refused, require

UUID = bytes.fromhex("afabfa4128614abba8a7b91b79a75ecf")
BASE = bytes.fromhex("00001000800000805f9b34fb")
UNSIGNED, IDENTIFIER, TEXT, SEQUENCE = 1, 3, 4, 6


def unsigned(value, size=2):
    return bytes([UNSIGNED << 3 | size.bit_length() - 1]) + value.to_bytes(size, "big")


def identifier(data):
    return bytes([IDENTIFIER << 3 | len(data).bit_length() - 1]) + data


def sequence(*elements, width=1):
    body = b"".join(elements)
    return bytes([SEQUENCE << 3 | {1: 5, 2: 6, 4: 7}[width]]) + len(body).to_bytes(width, "big") + body


def text(value):
    data = value.encode()
    return bytes([TEXT << 3 | 5, len(data)]) + data


def protocols(port):
    """The protocols of a port: ("l2cap", psm) or ("rfcomm", channel)."""
    kind, number = port
    if kind == "l2cap":
        return sequence(sequence(identifier(b"\1\0"), unsigned(number)))
    return sequence(sequence(identifier(b"\1\0")), sequence(identifier(b"\0\3"), unsigned(number, 1)))


def record(port, name):
    """The record as a device registers it."""
    languages = sequence(unsigned(0x656E), unsigned(106), unsigned(0x0100))
    profiles = sequence(sequence(identifier(UUID), unsigned(0x0100)))
    return sequence(
        *(unsigned(1), sequence(identifier(UUID)), unsigned(4), protocols(port)),
        *(unsigned(5), sequence(identifier(b"\x10\2")), unsigned(6), languages),
        *(unsigned(9), profiles, unsigned(0x0100), text(name)),
    )


def attributes(port, service=UUID):
    """What a server answers of one record."""
    return sequence(unsigned(1), sequence(identifier(service)), unsigned(4), protocols(port))


# Reading


def _element(data):
    """The kind, the value and the rest behind an element."""
    require(data, "Truncated")
    kind, size = data[0] >> 3, data[0] & 7
    start = 1
    if size < 5:
        length = 0 if data[0] == 0 else 1 << size
    else:
        start += 1 << size - 5
        require(len(data) >= start, "Truncated")
        length = int.from_bytes(data[1:start], "big")
    require(len(data) >= start + length, "Truncated")
    return kind, data[start : start + length], data[start + length :]


def elements(data):
    """The elements in the value of a sequence."""
    found = []
    while data:
        kind, value, data = _element(data)
        found.append((kind, value))
    return found


def _inner(element):
    """The elements of a sequence; None for anything else, which a record of another service may have."""
    try:
        return elements(element[1]) if element[0] == SEQUENCE else None
    except Refused:
        return None


def _is(element, short):
    return element[0] == IDENTIFIER and element[1] in (short, b"\0\0" + short, b"\0\0" + short + BASE)


def _port(element):
    items = _inner(element) or []
    layers = [_inner(item) or [] for item in items]
    if not layers or not layers[0] or not _is(layers[0][0], b"\1\0"):
        return None
    if len(layers) == 1 and len(layers[0]) == 2 and layers[0][1][0] == UNSIGNED and len(layers[0][1][1]) == 2:
        psm = int.from_bytes(layers[0][1][1], "big")
        return ("l2cap", psm) if psm >= 0x1001 and psm & 0x0101 == 1 else None
    if len(layers) == 2 and len(layers[1]) == 2 and _is(layers[1][0], b"\0\3"):
        kind, value = layers[1][1]
        return ("rfcomm", value[0]) if kind == UNSIGNED and len(value) == 1 and 1 <= value[0] <= 30 else None
    return None


def ports(data):
    """The ports of the Holdfast records in an answer. Records of others are passed over."""
    kind, body, rest = _element(data)
    require(kind == SEQUENCE, "WrongType")
    require(not rest, "TrailingBytes")
    found = []
    for record_kind, value in elements(body):
        require(record_kind == SEQUENCE, "WrongType")
        items = elements(value)
        require(len(items) % 2 == 0, "WrongCount")
        named = {
            int.from_bytes(number, "big"): item
            for (kind, number), item in zip(items[::2], items[1::2], strict=True)
            if kind == UNSIGNED and len(number) == 2
        }
        classes = _inner(named.get(1, (0, b""))) or []
        port = _port(named[4]) if 4 in named else None
        if (IDENTIFIER, UUID) in classes and port and port not in found:
            found.append(port)
    return found
