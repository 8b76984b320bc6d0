"""The claims of a measurement token: one table, two encodings (CWT, RFC 8392, and JWT, RFC 7519).

A claims set is a dict by the names of the vectors: `issuer`, `subject`, `audience` (16 bytes), `expires`, `issuedAt`, `tokenId`,
`integrity`, `device`, `proofKey`, `generation` and, where present, `maximumUses`, `commands`, `version`, `user`.
"""

from . import base64strict, cbor, strict_json
from .refusal import require


class _Text:
    """A text of at most `limit` bytes."""

    def __init__(self, limit):
        self.limit = limit

    def check(self, value):
        require(isinstance(value, str), "WrongType")
        require(len(value.encode()) <= self.limit, "TextTooLong")
        return value

    from_cbor = from_json = check

    def to_cbor(self, value):
        return value

    to_json = to_cbor


class _UInt:
    def check(self, value):
        require(isinstance(value, int) and not isinstance(value, bool) and value >= 0, "WrongType")
        require(value <= cbor.LARGEST_INTEGER, "IntegerTooLarge")
        return value

    from_cbor = from_json = check

    def to_cbor(self, value):
        return value

    to_json = to_cbor


class _Bytes:
    """Bytes of one length; in JSON they are text."""

    def __init__(self, size, encode, decode):
        self.size, self.encode, self.decode = size, encode, decode

    def from_cbor(self, value):
        require(isinstance(value, bytes), "WrongType")
        require(len(value) == self.size, "WrongSize")
        return value

    def from_json(self, value):
        require(isinstance(value, str), "WrongType")
        return self.from_cbor(self.decode(value))

    def to_cbor(self, value):
        return value

    def to_json(self, value):
        return self.encode(value)


class _DeviceId(_Bytes):
    """A device id is base64url text in both encodings."""

    def __init__(self):
        super().__init__(16, base64strict.url_encode, base64strict.url_decode)

    def from_json(self, value):
        require(isinstance(value, str), "WrongType")
        data = self.decode(value)
        require(len(data) == self.size, "WrongSize")
        return data

    from_cbor = from_json

    def to_cbor(self, value):
        return self.encode(value)


class _List:
    """An array of at least `least` and at most `most` elements of one kind."""

    def __init__(self, element, least, most):
        self.element, self.least, self.most = element, least, most

    def check(self, value):
        require(isinstance(value, list), "WrongType")
        require(self.least <= len(value) <= self.most, "WrongCount")
        return [self.element.check(v) for v in value]

    from_cbor = from_json = check

    def to_cbor(self, value):
        return list(value)

    to_json = to_cbor


def _standard(size):
    return _Bytes(size, base64strict.encode, base64strict.decode)


# name, JOSE name, COSE label, kind, required
TABLE = (
    ("issuer", "iss", 1, _Text(64), True),
    ("subject", "sub", 2, _Text(64), True),
    ("audience", "aud", 3, _DeviceId(), True),
    ("expires", "exp", 4, _UInt(), True),
    ("issuedAt", "iat", 6, _UInt(), True),
    ("tokenId", "jti", 7, _Bytes(16, base64strict.url_encode, base64strict.url_decode), True),
    ("integrity", "imh", -75001, _standard(32), True),
    ("device", "dmh", -75002, _standard(32), True),
    ("proofKey", "mpk", -75003, _standard(16), True),
    ("generation", "gen", -75004, _UInt(), True),
    ("maximumUses", "max", -75005, _UInt(), False),
    ("commands", "cmd", -75006, _List(_Text(32), 0, 16), False),
    ("version", "ver", -75007, _List(_UInt(), 3, 3), False),
    ("user", "usr", -75008, _Text(32), False),
)
LABELS = {row[0]: row[2] for row in TABLE}
NAMES = {row[0]: row[1] for row in TABLE}


def to_map(claims):
    """The claims as a map by COSE label, not yet encoded."""
    return {label: kind.to_cbor(claims[name]) for name, _, label, kind, _ in TABLE if name in claims}


def to_members(claims):
    """The claims as JSON members, not yet encoded."""
    return {jose: kind.to_json(claims[name]) for name, jose, _, kind, _ in TABLE if name in claims}


def to_cbor(claims):
    return cbor.encode(to_map(claims))


def from_cbor(data):
    """The claims of a deterministic CBOR map, each rule checked but the audience."""
    fields = cbor.decode(data)
    require(isinstance(fields, dict), "WrongType")
    return _read(fields, 2, "from_cbor")


def from_json(data):
    """The claims of a JSON object, each rule checked but the audience."""
    return _read(strict_json.parse_object(data), 1, "from_json")


def _read(fields, column, reader):
    require(not fields.keys() - {row[column] for row in TABLE}, "UnknownClaim")
    claims = {}
    for row in TABLE:
        if row[column] in fields:
            claims[row[0]] = getattr(row[3], reader)(fields[row[column]])
        else:
            require(not row[4], "MissingClaim")
    require(claims["issuedAt"] < claims["expires"], "IssuedAtNotBeforeExpiry")
    return claims
