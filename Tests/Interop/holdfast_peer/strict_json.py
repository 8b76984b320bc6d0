"""JSON (RFC 8259) read strictly: UTF-8 without a byte order mark, no duplicate members, integers as digits only."""

import re

from .refusal import Refused, require

LARGEST_INTEGER = 2**53 - 1
DEEPEST_NESTING = 8
_SPACE = " \t\n\r"
_ESCAPES = {'"': '"', "\\": "\\", "/": "/", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}


def parse_object(data):
    """The JSON object that is all of `data` (bytes)."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        raise Refused("NotUtf8") from None
    require(not text.startswith("\ufeff"), "ByteOrderMark")
    reader = _Reader(text)
    value = reader.value(0)
    reader.space()
    require(reader.offset == len(text), "TrailingBytes")
    require(isinstance(value, dict), "WrongType")
    return value


class _Reader:
    def __init__(self, text):
        self.text, self.offset = text, 0

    def space(self):
        while self.offset < len(self.text) and self.text[self.offset] in _SPACE:
            self.offset += 1

    def peek(self):
        require(self.offset < len(self.text), "JsonSyntax")
        return self.text[self.offset]

    def expect(self, token):
        require(self.text.startswith(token, self.offset), "JsonSyntax")
        self.offset += len(token)

    def value(self, depth):
        require(depth <= DEEPEST_NESTING, "NestingTooDeep")
        self.space()
        first = self.peek()
        if first == "{":
            return self.object(depth)
        if first == "[":
            return self.array(depth)
        if first == '"':
            return self.string()
        for token, value in (("true", True), ("false", False), ("null", None)):
            if first == token[0]:
                self.expect(token)
                return value
        return self.number()

    def object(self, depth):
        self.expect("{")
        result = {}
        self.space()
        if self.peek() == "}":
            self.offset += 1
            return result
        while True:
            self.space()
            name = self.string()
            require(name not in result, "DuplicateMember")
            self.space()
            self.expect(":")
            result[name] = self.value(depth + 1)
            self.space()
            if self.peek() == "}":
                self.offset += 1
                return result
            self.expect(",")

    def array(self, depth):
        self.expect("[")
        result = []
        self.space()
        if self.peek() == "]":
            self.offset += 1
            return result
        while True:
            result.append(self.value(depth + 1))
            self.space()
            if self.peek() == "]":
                self.offset += 1
                return result
            self.expect(",")

    def string(self):
        self.expect('"')
        units = []
        while True:
            character = self.peek()
            self.offset += 1
            if character == '"':
                break
            require(character >= " ", "JsonSyntax")
            units.append(self.escape() if character == "\\" else character)
        try:
            return "".join(units).encode("utf-16", "surrogatepass").decode("utf-16")
        except UnicodeDecodeError:
            raise Refused("JsonSyntax", "unpaired surrogate") from None

    def escape(self):
        character = self.peek()
        self.offset += 1
        if character != "u":
            require(character in _ESCAPES, "JsonSyntax")
            return _ESCAPES[character]
        digits = self.text[self.offset : self.offset + 4]
        require(re.fullmatch(r"[0-9A-Fa-f]{4}", digits), "JsonSyntax")
        self.offset += 4
        return chr(int(digits, 16))

    def number(self):
        match = re.compile(r"-?[0-9][0-9.eE+-]*").match(self.text, self.offset)
        require(match, "JsonSyntax")
        digits = match.group()
        require(re.fullmatch(r"0|[1-9][0-9]*", digits), "NumberForm")
        require(int(digits) <= LARGEST_INTEGER, "IntegerTooLarge")
        self.offset = match.end()
        return int(digits)
