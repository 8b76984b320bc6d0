"""Deterministic CBOR (RFC 8949 section 4.2.1), the strict subset that the wire uses.

Integers, byte and text strings, arrays, maps, tags and null. Everything a deterministic encoder never writes is refused.
"""

from .refusal import Refused, require

LARGEST_INTEGER = 2**53 - 1
DEEPEST_NESTING = 8

UNSIGNED, NEGATIVE, BYTES, TEXT, ARRAY, MAP, TAG, SIMPLE = range(8)


class Tag:
    """A tagged item (major type 6)."""

    def __init__(self, number, value):
        self.number, self.value = number, value


class Encoded:
    """Bytes that are an encoded item already and are written as they are."""

    def __init__(self, data):
        self.data = data


def head(major, argument, width=None):
    """The initial byte and its argument. `width` (1, 2, 4 or 8 bytes) forces a longer form than needed."""
    if width is None:
        if argument < 24:
            return bytes([major << 5 | argument])
        width = next(w for w in (1, 2, 4, 8) if argument < 1 << 8 * w)
    return bytes([major << 5 | {1: 24, 2: 25, 4: 26, 8: 27}[width]]) + argument.to_bytes(width, "big")


def encode(item):
    """The deterministic encoding of `item`."""
    if isinstance(item, Encoded):
        return item.data
    if item is None:
        return b"\xf6"
    if isinstance(item, bool):
        return b"\xf5" if item else b"\xf4"
    if isinstance(item, int):
        return head(UNSIGNED, item) if item >= 0 else head(NEGATIVE, -1 - item)
    if isinstance(item, (bytes, bytearray)):
        return head(BYTES, len(item)) + bytes(item)
    if isinstance(item, str):
        data = item.encode()
        return head(TEXT, len(data)) + data
    if isinstance(item, (list, tuple)):
        return head(ARRAY, len(item)) + b"".join(map(encode, item))
    if isinstance(item, dict):
        pairs = sorted((encode(key), encode(value)) for key, value in item.items())
        return head(MAP, len(pairs)) + b"".join(key + value for key, value in pairs)
    if isinstance(item, Tag):
        return head(TAG, item.number) + encode(item.value)
    raise TypeError(f"no CBOR form of {type(item).__name__}")


def decode(data, tags=()):
    """The one item in `data`. Only tags in `tags` are known; anything not deterministic is refused."""
    reader = _Reader(bytes(data), tags)
    item = reader.item(0)
    require(reader.offset == len(reader.data), "TrailingBytes")
    return item


def decode_sequence(data):
    """The items in `data`, one after another (RFC 8742)."""
    reader, items = _Reader(bytes(data), ()), []
    while reader.offset < len(reader.data):
        items.append(reader.item(0))
    return items


class _Reader:
    def __init__(self, data, tags):
        self.data, self.tags, self.offset = data, tags, 0

    def take(self, count):
        require(count <= len(self.data) - self.offset, "Truncated")
        start, self.offset = self.offset, self.offset + count
        return self.data[start : self.offset]

    def argument(self, information):
        if information < 24:
            return information
        require(information != 31, "IndefiniteLength")
        require(information < 28, "ReservedInformation")
        width = 1 << information - 24
        value = int.from_bytes(self.take(width), "big")
        require(value >= (24, 1 << 8, 1 << 16, 1 << 32)[information - 24], "NonMinimalInteger")
        return value

    def item(self, depth):
        require(depth <= DEEPEST_NESTING, "NestingTooDeep")
        initial = self.take(1)[0]
        major, information = initial >> 5, initial & 31
        if major == SIMPLE:
            return self.simple(information)
        argument = self.argument(information)
        if major in (UNSIGNED, NEGATIVE):
            require(argument <= LARGEST_INTEGER, "IntegerTooLarge")
            return argument if major == UNSIGNED else -1 - argument
        if major == BYTES:
            return self.take(argument)
        if major == TEXT:
            try:
                return self.take(argument).decode("utf-8")
            except UnicodeDecodeError:
                raise Refused("NotUtf8") from None
        require(major == TAG or argument <= len(self.data) - self.offset, "Truncated")
        if major == ARRAY:
            return [self.item(depth + 1) for _ in range(argument)]
        if major == MAP:
            return self.map(argument, depth)
        require(argument in self.tags, "UnknownTag")
        return Tag(argument, self.item(depth + 1))

    def map(self, count, depth):
        result, last = {}, None
        for _ in range(count):
            start = self.offset
            key = self.item(depth + 1)
            encoded = self.data[start : self.offset]
            require(encoded != last, "DuplicateKey")
            require(last is None or encoded > last, "UnsortedKeys")
            require(isinstance(key, (int, str, bytes)) and not isinstance(key, bool), "WrongType")
            last = encoded
            result[key] = self.item(depth + 1)
        return result

    def simple(self, information):
        require(information not in (25, 26, 27), "Float")
        require(information != 31, "IndefiniteLength")
        values = {20: False, 21: True, 22: None}
        require(information in values, "SimpleValue")
        return values[information]
