"""session_test.json: whole rounds, and single messages that a strict reader accepts or refuses."""

from holdfast_peer import cbor, session
from holdfast_peer.cbor import Encoded, Tag, encode, head
from holdfast_peer.session import STATUS

from . import round_vectors
from .notes import NOTES
from .token_cases import DEVICE, DEVICE_ID, ISSUER
from .vector_file import VectorFile, pin

LARGEST = 2**53 - 1


def session_file():
    file = VectorFile(
        "HoldfastSession",
        "session_schema_v1.json",
        [
            "SessionRound: one round with every intermediate value. SessionM1, SessionM2, SessionM3, SessionRequest and SessionReply: one message.",
            "SessionCompatibility: the M2 of a compatibility round.",
            "RequestNumber: whether a number is new to a device that accepted others with the same token, one after the other.",
            "SessionM2 covers the head within the message; SessionRequest is the plaintext of its sealed part, SessionReply that of M3's.",
        ],
        NOTES,
    )
    round_vectors.add(file)
    for kind, parse, write in (
        ("SessionM1", session.parse_message_1, _message_1),
        ("SessionM2", session.parse_message_2, _message_2),
        ("SessionM3", session.parse_message_3, _message_3),
        ("SessionRequest", session.parse_request, _request),
        ("SessionReply", session.parse_result, _reply),
        ("SessionCompatibility", session.parse_compatibility, _compatibility),
    ):
        write(Messages(file.group(kind, lambda message, parse=parse: parse(message))))
    keys = {**round_vectors.DEVICE_OF_ROUNDS, "issuerPrivateKey": ISSUER.scalar}
    _request_numbers(file.group("RequestNumber", check_request_number, **keys))
    return file


def check_request_number(*, accepted, number, expires, clockFloor):
    for index, earlier in enumerate(accepted):
        session.check_number(earlier, accepted[:index], expires, 0)
    session.check_number(number, accepted, expires, clockFloor)


def _request_numbers(group):
    base = 1790000100000000

    def numbers(accepted, number, expires=1790003600, floor=1790000000):
        return {"accepted": list(accepted), "number": number, "expires": expires, "clockFloor": floor}

    def valid(comment, accepted, number, flags=("Normal",), **changes):
        group.valid(comment, flags, **numbers(accepted, number, **changes))

    def invalid(comment, flag, accepted, number, **changes):
        group.invalid(comment, flag, **numbers(accepted, number, **changes))

    rising = list(range(base, base + 65))
    gaps = [base, base + 2, base + 64]
    valid("the first", [], base)
    valid("the first, 0", [], 0, ("Boundary",))
    valid("the next", [base], base + 1)
    valid("a much higher one", [base], LARGEST, ("Boundary",))
    for below in (1, 2, 63, 64):
        valid(f"{below} below the only one", [base], base - below, ("Boundary",))
    valid("in a gap", gaps, base + 1)
    valid("the lowest of the window", [base + 1, base + 64], base, ("Boundary",))
    valid("below, after one that came late", [base + 10, base + 5], base + 4)
    valid("above all 65", rising, base + 65)
    for step in (1, 63, 64, 65, 128):
        valid(f"just below the highest, after a step of {step}", [base, base + step, base + step + 2], base + step + 1)
    valid("a used one, after the token's end", [base], base, expires=1790003600, floor=1790003600)
    valid("one below the window, after the token's end", [base], 0, expires=5, floor=6)
    valid("64 below 2^53 - 1", [LARGEST], LARGEST - 64, ("Boundary",))
    invalid("the only one again", "Repetition", [base], base)
    invalid("0 again", "Repetition", [0], 0)
    invalid("2^53 - 1 again", "Repetition", [LARGEST], LARGEST)
    for below in (65, 66, 128, 1000, base):
        invalid(f"{below} below the only one", "BelowWindow", [base], base - below)
    for accepted, name in ((gaps, "with gaps"), (rising, "without gaps")):
        for index in {0, 1, len(accepted) // 2, len(accepted) - 1}:
            invalid(f"number {index} of {len(accepted)} {name} again", "Repetition", accepted, accepted[index])
    invalid("below 65 without gaps", "BelowWindow", rising, base - 1)
    invalid("one that came late again", "Repetition", [base + 10, base + 5], base + 5)
    invalid("the highest again, after one that came late", "Repetition", [base + 10, base + 5], base + 10)
    for step in (1, 2, 63, 64):
        invalid(f"the first again, after a step of {step}", "Repetition", [base, base + step], base)
    for step in (65, 66, 127, 128, 129, 2**32):
        invalid(f"the first again, after a step of {step}", "BelowWindow", [base, base + step], base)
    for step in (65, 128):
        invalid(
            f"64 below, used before a step of {step}",
            "Repetition",
            [base, base + step - 64, base + step],
            base + step - 64,
        )
    invalid("the only one again, a second before the token's end", "Repetition", [base], base, floor=1790003599)


# Single messages


class Messages:
    def __init__(self, group):
        self.group = group

    def valid(self, comment, message, flags=("Normal",)):
        self.group.valid(comment, flags, message=message)

    def invalid(self, comment, flag, message):
        self.group.invalid(comment, flag, message=message)

    def array_faults(self, items):
        """What can be wrong with the encoding of any of the three messages."""
        good = encode(items)
        body = b"".join(map(encode, items))
        self.invalid("empty message", "Truncated", b"")
        self.invalid("empty array", "WrongCount", encode([]))
        self.invalid("an element too few", "WrongCount", encode(items[:-1]))
        self.invalid("first element left out", "WrongCount", encode(items[1:]))
        self.invalid("an element too many", "WrongCount", encode([*items, None]))
        self.invalid("an array within an array", "WrongCount", encode([items]))
        self.invalid("a map", "WrongType", encode(dict(enumerate(items))))
        self.invalid("a byte string", "WrongType", encode(good))
        self.invalid("null", "WrongType", encode(None))
        self.invalid("a number", "WrongType", encode(items[0]))
        self.invalid("text", "WrongType", encode("message"))
        self.invalid("byte after the message", "TrailingBytes", good + b"\x00")
        self.invalid("message twice", "TrailingBytes", good + good)
        for cut in (1, 2, len(good) // 2, len(good) - 1):
            self.invalid(f"cut to {cut} bytes", "Truncated", good[:cut])
        self.invalid("array of indefinite length", "IndefiniteLength", b"\x9f" + body + b"\xff")
        self.invalid("array length in two bytes", "NonMinimalInteger", head(cbor.ARRAY, len(items), 1) + body)
        self.invalid(
            "message number in two bytes",
            "NonMinimalInteger",
            encode([Encoded(head(cbor.UNSIGNED, items[0], 1)), *items[1:]]),
        )
        self.invalid(
            "message number in nine bytes",
            "NonMinimalInteger",
            encode([Encoded(head(cbor.UNSIGNED, items[0], 8)), *items[1:]]),
        )
        for number in (0, 4, 11, 256, 1 + items[0] % 3):
            self.invalid(f"message number {number}", "WrongMessage", encode([number, *items[1:]]))
        self.invalid("message number negative", "WrongType", encode([-items[0], *items[1:]]))
        self.invalid("message number as text", "WrongType", encode([str(items[0]), *items[1:]]))
        self.invalid("message number null", "WrongType", encode([None, *items[1:]]))
        self.invalid("message number true", "WrongType", encode([True, *items[1:]]))
        self.invalid("message number as a float", "Float", encode([Encoded(b"\xf9\x3c\x00"), *items[1:]]))
        self.invalid("self-described CBOR", "UnknownTag", encode(Tag(55799, items)))
        self.invalid("tag 0 around the message", "UnknownTag", encode(Tag(0, items)))
        self.invalid("4097 bytes", "TooLarge", good + bytes(4097 - len(good)))
        self.invalid("reserved additional information in the array's length", "ReservedInformation", b"\x9c" + body)
        self.invalid("array longer than the message", "Truncated", b"\x9b\x00\x00\x00\x01\x00\x00\x00\x00" + body)

    def changed(self, items, index, comment, flag, value):
        self.invalid(comment, flag, encode([*items[:index], value, *items[index + 1 :]]))

    def byte_string(self, items, index, name, sizes, nullable=False):
        """What can be wrong with a byte string of a fixed length."""
        good = items[index]
        for size in sizes:
            self.changed(items, index, f"{name} of {size} bytes", "WrongSize", (good * 3)[:size])
        self.changed(items, index, f"{name} as text", "WrongType", "t" * len(good))
        self.changed(items, index, f"{name} as a number", "WrongType", 1)
        self.changed(items, index, f"{name} as an array", "WrongType", [good])
        if not nullable:
            self.changed(items, index, f"{name} null", "WrongType", None)
        self.changed(items, index, f"{name} undefined", "SimpleValue", Encoded(b"\xf7"))
        self.changed(items, index, f"{name} in chunks", "IndefiniteLength", Encoded(b"\x5f" + encode(good) + b"\xff"))
        width = 1 if len(good) < 24 else 2 if len(good) < 256 else 4
        self.changed(
            items,
            index,
            f"{name} with a longer length than needed",
            "NonMinimalInteger",
            Encoded(head(cbor.BYTES, len(good), width) + good),
        )
        self.changed(items, index, f"{name} tagged", "UnknownTag", Tag(24, good))

    def number(self, items, index, name, nullable=False):
        """What can be wrong with an unsigned integer."""
        for comment, flag, value in (
            ("negative", "WrongType", -1),
            ("as text", "WrongType", "1"),
            ("as bytes", "WrongType", b"\x01"),
            ("true", "WrongType", True),
            ("as an array", "WrongType", [1]),
            ("2^53", "IntegerTooLarge", 2**53),
            ("2^64 - 1", "IntegerTooLarge", 2**64 - 1),
            ("as a float", "Float", Encoded(bytes.fromhex("fb4000000000000000"))),
            ("as a half float", "Float", Encoded(bytes.fromhex("f94000"))),
            ("as a big number", "UnknownTag", Tag(2, b"\x02")),
            ("in two bytes", "NonMinimalInteger", Encoded(b"\x18\x02")),
            ("in three bytes", "NonMinimalInteger", Encoded(b"\x19\x00\x02")),
            ("in five bytes", "NonMinimalInteger", Encoded(b"\x1a\x00\x00\x00\x02")),
            ("undefined", "SimpleValue", Encoded(b"\xf7")),
        ):
            self.changed(items, index, f"{name} {comment}", flag, value)
        if not nullable:
            self.changed(items, index, f"{name} null", "WrongType", None)


def _message_1(messages):
    items = [1, 1, DEVICE_ID, pin("m1 challenge", 16), DEVICE.kid, 2, 1790000100]
    messages.valid("usual message", encode(items))
    for required in (0, 1, 3, 15):
        messages.valid(f"required {required}", encode([*items[:5], required, items[6]]))
    for clock in (None, 0, 23, 24, 255, 256, 65535, 65536, 2**32 - 1, 2**32, LARGEST):
        messages.valid(f"clock {clock}", encode([*items[:6], clock]), ("Boundary",))
    messages.valid("ids and challenge of zeros", encode([1, 1, bytes(16), bytes(16), bytes(8), 2, 0]), ("Boundary",))
    messages.valid(
        "ids and challenge of ones", encode([1, 1, b"\xff" * 16, b"\xff" * 16, b"\xff" * 8, 2, 0]), ("Boundary",)
    )
    messages.array_faults(items)
    for version in (0, 2, 3, 255):
        messages.changed(items, 1, f"version {version}", "WrongVersion", version)
    messages.changed(items, 1, "version null", "WrongType", None)
    messages.changed(items, 1, "version as text", "WrongType", "1")
    messages.changed(items, 1, "version -2", "WrongType", -2)
    messages.changed(items, 1, "version in two bytes", "NonMinimalInteger", Encoded(b"\x18\x01"))
    messages.byte_string(items, 2, "device id", (0, 15, 17, 32))
    messages.byte_string(items, 3, "challenge", (0, 15, 17, 32))
    messages.byte_string(items, 4, "key id", (0, 7, 9, 16))
    messages.number(items, 5, "required")
    messages.changed(items, 5, "required 16", "UnknownValue", 16)
    messages.number(items, 6, "clock", nullable=True)
    messages.invalid(
        "device id and key id exchanged", "WrongSize", encode([1, 1, items[4], items[3], items[2], 2, None])
    )


def _message_2(messages):
    random, token = pin("m2 random", 16), pin("m2 token", 16)
    head_bytes = session.message_2_head(random, session.REFERENCE, token)
    imp, dmp, sealed = pin("m2 imp", 32), pin("m2 dmp", 32), pin("m2 sealed", 25)
    items = [2, head_bytes, imp, dmp, sealed]
    messages.valid("reference", encode(items))
    messages.valid("no integrity proof", encode([2, head_bytes, None, dmp, sealed]))
    messages.valid("no proof", encode([2, head_bytes, None, None, sealed]))
    for encoding, name in ((session.COSE, "COSE"), (session.JOSE, "JOSE")):
        for size in (16, 440, 3072):
            message = [2, session.message_2_head(random, encoding, pin("m2 token", size)), imp, dmp, sealed]
            messages.valid(
                f"{name} token of {size} bytes", encode(message), ("Boundary",) if size == 3072 else ("Normal",)
            )
    messages.valid("proofs of zeros", encode([2, head_bytes, bytes(32), bytes(32), sealed]), ("Boundary",))
    messages.array_faults(items)
    messages.byte_string(items, 2, "integrity proof", (0, 16, 31, 33, 64), nullable=True)
    messages.byte_string(items, 3, "device proof", (0, 16, 31, 33, 64), nullable=True)
    messages.byte_string(items, 4, "sealed", ())
    messages.byte_string(items, 1, "head", ())
    messages.changed(items, 1, "head as an array, not encoded in a byte string", "WrongType", [random, 0, token])

    def with_head(comment, flag, data):
        messages.changed(items, 1, f"head: {comment}", flag, data)

    parts = [random, session.REFERENCE, token]
    body = b"".join(map(encode, parts))
    for comment, flag, value in (
        ("empty", "Truncated", b""),
        ("empty array", "WrongCount", encode([])),
        ("two elements", "WrongCount", encode(parts[:2])),
        ("four elements", "WrongCount", encode([*parts, None])),
        ("a map", "WrongType", encode(dict(enumerate(parts)))),
        ("null", "WrongType", encode(None)),
        ("byte after it", "TrailingBytes", encode(parts) + b"\x00"),
        ("cut short", "Truncated", encode(parts)[:-1]),
        ("of indefinite length", "IndefiniteLength", b"\x9f" + body + b"\xff"),
        ("length in two bytes", "NonMinimalInteger", b"\x98\x03" + body),
        ("tagged", "UnknownTag", encode(Tag(24, parts))),
        ("encoded twice", "WrongType", encode(encode(parts))),
    ):
        with_head(comment, flag, value)
    for size in (0, 15, 17, 32):
        with_head(f"prover's random of {size} bytes", "WrongSize", encode([(random * 2)[:size], 0, token]))
    with_head("prover's random null", "WrongType", encode([None, 0, token]))
    with_head("prover's random as text", "WrongType", encode(["r" * 16, 0, token]))
    with_head(
        "prover's random in chunks", "IndefiniteLength", encode([Encoded(b"\x5f" + encode(random) + b"\xff"), 0, token])
    )
    for encoding in (3, 4, 255, LARGEST):
        with_head(f"encoding {encoding}", "WrongEncoding", encode([random, encoding, token]))
    for comment, flag, value in (
        ("negative", "WrongType", -1),
        ("null", "WrongType", None),
        ("as text", "WrongType", "1"),
        ("true", "WrongType", True),
        ("false", "WrongType", False),
        ("in two bytes", "NonMinimalInteger", Encoded(b"\x18\x01")),
        ("as a float", "Float", Encoded(b"\xf9\x3c\x00")),
        ("2^53", "IntegerTooLarge", 2**53),
    ):
        with_head(f"encoding {comment}", flag, encode([random, value, token]))
    for encoding, name in ((session.COSE, "COSE"), (session.JOSE, "JOSE")):
        with_head(
            f"{name} token of 3073 bytes", "TooLarge", session.message_2_head(random, encoding, pin("m2 token", 3073))
        )
        with_head(f"{name} token as text", "WrongType", encode([random, encoding, "token"]))
        with_head(f"{name} token null", "WrongType", encode([random, encoding, None]))
    with_head("token as an array", "WrongType", encode([random, 1, [token]]))
    with_head(
        "token with a longer length than needed",
        "NonMinimalInteger",
        encode([random, 1, Encoded(head(cbor.BYTES, 16, 1) + token)]),
    )


def _compatibility(messages):
    nonce, token = b"\x7f" + pin("compatibility nonce", 15), pin("compatibility token", 16)
    imp, dmp = pin("compatibility imp", 32), pin("compatibility dmp", 32)
    items = [12, nonce, session.REFERENCE, token, imp, dmp, "unlock"]

    def valid(comment, index, value, flags=("Normal",)):
        messages.valid(comment, encode([*items[:index], value, *items[index + 1 :]]), flags)

    messages.valid("usual message", encode(items))
    valid("without IMP", 4, None)
    valid("without DMP", 5, None)
    messages.valid("without either proof", encode([*items[:4], None, None, "unlock"]))
    valid("nonce of zeros", 1, bytes(16), ("Boundary",))
    valid("nonce with every bit but the first", 1, b"\x7f" + b"\xff" * 15, ("Boundary",))
    valid("command empty", 6, "", ("Boundary",))
    valid("command of 32 bytes", 6, "\u00fc" * 16, ("Boundary",))
    for encoding, name in ((session.COSE, "COSE"), (session.JOSE, "JOSE")):
        for size in (0, 3072):
            whole = [12, nonce, encoding, pin("compatibility token", size), imp, dmp, "unlock"]
            messages.valid(f"{name} token of {size} bytes", encode(whole), ("Boundary",))
    messages.array_faults(items)
    messages.byte_string(items, 1, "nonce", (0, 15, 17, 32))
    for first in (0x80, 0xFF):
        messages.changed(items, 1, f"nonce whose first byte is {first}", "SessionNonce", bytes([first]) + nonce[1:])
    messages.number(items, 2, "encoding")
    for encoding in (3, 255, LARGEST):
        messages.changed(items, 2, f"encoding {encoding}", "WrongEncoding", encoding)
    messages.byte_string(items, 3, "token", (0, 15, 17))
    for encoding, name in ((session.COSE, "COSE"), (session.JOSE, "JOSE")):
        long = [12, nonce, encoding, pin("compatibility token", 3073), imp, dmp, "unlock"]
        messages.invalid(f"{name} token of 3073 bytes", "TooLarge", encode(long))
    messages.byte_string(items, 4, "IMP", (0, 31, 33), nullable=True)
    messages.byte_string(items, 5, "DMP", (0, 31, 33), nullable=True)
    messages.changed(items, 6, "command of 33 bytes", "TextTooLong", "c" * 33)
    for comment, value in (("as bytes", b"unlock"), ("null", None), ("as a request", {1: "unlock"})):
        messages.changed(items, 6, f"command {comment}", "WrongType", value)
    messages.changed(items, 6, "command not UTF-8", "NotUtf8", Encoded(b"\x62\xc3\x28"))
    messages.invalid("a sealed request behind it", "WrongCount", encode([*items, pin("m2 sealed", 27)]))
    session_nonce = session.proof_nonce(pin("compatibility transcript", 32))
    messages.changed(items, 1, "nonce of a session", "SessionNonce", session_nonce)


def _message_3(messages):
    sealed = pin("m3 sealed", 27)
    items = [3, 0, sealed]
    messages.valid("accepted", encode(items))
    for name, status in STATUS.items():
        if status in session.AUTHENTICATED:
            messages.valid(f"{name}, sealed", encode([3, status, sealed]))
        messages.valid(f"{name}, without sealed part", encode([3, status, None]))
    messages.valid("sealed of 1067 bytes", encode([3, 0, pin("m3 sealed", 1067)]), ("Boundary",))
    messages.array_faults(items)
    messages.number(items, 1, "status")
    messages.changed(items, 1, f"status {len(STATUS)}", "UnknownValue", len(STATUS))
    messages.byte_string(items, 2, "sealed", (), nullable=True)


def _request(messages):
    unlock = {1: "unlock"}
    full = {1: "open-safe", 2: ["7", "2026-11-21"], 3: ["alice", "123456"], 4: ["alice", "87654321"]}
    for comment, fields, flags in (
        ("command only", unlock, "Normal"),
        ("everything", full, "Normal"),
        ("one parameter", {1: "open", 2: ["7"]}, "Normal"),
        ("one-time code", {1: "unlock", 3: ["alice", "123456"]}, "Normal"),
        ("seal", {1: "unlock", 4: ["alice", "123456"]}, "Normal"),
        ("command of 32 bytes", {1: "c" * 32}, "Boundary"),
        ("command of 32 bytes beyond ASCII", {1: "\u00fc" * 16}, "Boundary"),
        ("8 parameters of 64 bytes", {1: "open", 2: ["p" * 64] * 8}, "Boundary"),
        ("parameter of 64 bytes beyond ASCII", {1: "open", 2: ["\U0001f512" * 16]}, "Boundary"),
        ("parameter empty", {1: "open", 2: [""]}, "Boundary"),
        ("user of 32 bytes, code of 16", {1: "unlock", 3: ["u" * 32, "1" * 16], 4: ["u" * 32, "1" * 16]}, "Boundary"),
    ):
        messages.valid(comment, encode(fields), (flags,))

    def invalid(comment, flag, fields):
        messages.invalid(comment, flag, encode(fields))

    invalid("empty map", "MissingKey", {})
    invalid("command missing", "MissingKey", {k: v for k, v in full.items() if k != 1})
    for key in (0, 6, -1, 255, "1", "command", b"\x01"):
        invalid(f"unknown key {key!r}", "UnknownKey", {**unlock, key: "x"})
    _numbers(messages)
    for comment, value in (
        ("as bytes", b"unlock"),
        ("as a number", 1),
        ("null", None),
        ("as an array", ["unlock"]),
        ("true", True),
    ):
        invalid(f"command {comment}", "WrongType", {1: value})
    invalid("command of 33 bytes", "TextTooLong", {1: "c" * 33})
    invalid("command of 17 characters in 33 bytes", "TextTooLong", {1: "c" + "\u00fc" * 16})
    for comment, value in (
        ("as text", "7"),
        ("null", None),
        ("as a map", {}),
        ("as bytes", b"7"),
        ("with a number", [7]),
        ("with bytes", [b"7"]),
        ("with null", [None]),
        ("with an array", [["7"]]),
    ):
        invalid(f"parameters {comment}", "WrongType", {1: "open", 2: value})
    invalid("9 parameters", "WrongCount", {1: "open", 2: ["p"] * 9})
    invalid("9 empty parameters", "WrongCount", {1: "open", 2: [""] * 9})
    invalid("parameter of 65 bytes", "TextTooLong", {1: "open", 2: ["p" * 65]})
    invalid("eighth parameter of 65 bytes", "TextTooLong", {1: "open", 2: ["p"] * 7 + ["p" * 65]})
    invalid("parameter of 64 characters in 65 bytes", "TextTooLong", {1: "open", 2: ["p" * 63 + "\u00fc"]})
    for key, name in ((3, "one-time code"), (4, "seal")):

        def code(comment, flag, value, key=key, name=name):
            invalid(f"{name}: {comment}", flag, {1: "unlock", key: value})

        code("null", "WrongType", None)
        code("text alone", "WrongType", "123456")
        code("a map", "WrongType", {1: "alice", 2: "123456"})
        code("empty array", "WrongCount", [])
        code("user alone", "WrongCount", ["alice"])
        code("three elements", "WrongCount", ["alice", "123456", "x"])
        code("user as bytes", "WrongType", [b"alice", "123456"])
        code("user null", "WrongType", [None, "123456"])
        code("code as a number", "WrongType", ["alice", 123456])
        code("code as bytes", "WrongType", ["alice", b"123456"])
        code("user of 33 bytes", "TextTooLong", ["u" * 33, "123456"])
        code("user of 17 characters in 34 bytes", "TextTooLong", ["\u00fc" * 17, "123456"])
        code("code of 17 bytes", "TextTooLong", ["alice", "1" * 17])
    _request_encodings(messages, full)


def _numbers(messages):
    """What can be right and wrong with a request's number."""
    for number in (0, 23, 24, 255, 256, 65535, 65536, 2**32 - 1, 2**32, 1790000100123456, LARGEST):
        messages.valid(f"number {number}", encode({1: "unlock", 5: number}), ("Boundary",))
    messages.valid(
        "everything and a number", encode({1: "open-safe", 2: ["7"], 3: ["alice", "1"], 4: ["alice", "2"], 5: 1})
    )
    for comment, flag, value in (
        ("negative", "WrongType", -1),
        ("as text", "WrongType", "1"),
        ("as bytes", "WrongType", bytes(8)),
        ("null", "WrongType", None),
        ("true", "WrongType", True),
        ("as an array", "WrongType", [1]),
        ("2^53", "IntegerTooLarge", 2**53),
        ("2^64 - 1", "IntegerTooLarge", 2**64 - 1),
        ("as a float", "Float", Encoded(bytes.fromhex("fb4000000000000000"))),
        ("as a big number", "UnknownTag", Tag(2, b"\x02")),
        ("in two bytes", "NonMinimalInteger", Encoded(b"\x18\x02")),
        ("in nine bytes", "NonMinimalInteger", Encoded(b"\x1b\x00\x00\x00\x00\xff\xff\xff\xff")),
    ):
        messages.invalid(f"number {comment}", flag, encode({1: "unlock", 5: value}))
    command, seal = encode(1) + encode("unlock"), encode(4) + encode(["alice", "1"])
    number = encode(5) + encode(7)
    messages.invalid("number before the command", "UnsortedKeys", b"\xa2" + number + command)
    messages.invalid("number before the seal", "UnsortedKeys", b"\xa3" + command + number + seal)
    messages.invalid("number twice", "DuplicateKey", b"\xa3" + command + number + number)
    messages.invalid("number twice, another", "DuplicateKey", b"\xa3" + command + number + encode(5) + encode(8))
    messages.invalid("number only", "MissingKey", encode({5: 7}))
    messages.invalid("number cut short", "Truncated", encode({1: "unlock", 5: LARGEST})[:-1])


def _reply(messages):
    """What a prover makes of a reply: labels above 7 are a later version's, and are read over, and so is label 7 unless it is 8 bytes."""
    full = {1: b"unlocked", 2: 1790000100, 3: 2, 4: 30, 5: 12, 6: 1790000100123456, 7: pin("state of bulletins", 8)}
    for comment, fields in (
        ("result only", {1: b"unlocked"}),
        ("result empty", {1: b""}),
        ("everything", full),
        ("highest number", {1: b"", 6: 1790000100123456}),
        ("state of the bulletins", {1: b"", 7: pin("state of bulletins", 8)}),
    ):
        messages.valid(comment, encode(fields))
    for comment, fields in (
        ("result of 1024 bytes", {1: pin("reply", 1024)}),
        ("highest number 0", {1: b"", 6: 0}),
        ("highest number 2^53 - 1", {1: b"", 6: LARGEST}),
        ("no missing factor", {1: b"", 5: 0}),
    ):
        messages.valid(comment, encode(fields), ("Boundary",))
    deep = 7
    for _ in range(7):
        deep = [deep]
    for comment, value in (
        ("a number", 7),
        ("a negative number", -7),
        ("bytes", b"7"),
        ("text", "7"),
        ("null", None),
        ("true", True),
        ("false", False),
        ("an array", [1, "2", [b"3"]]),
        ("an empty map", {}),
        ("a map", {1: 2, -1: "x", b"k": None, "k": [1]}),
        ("arrays eight deep", deep),
    ):
        messages.valid(f"label 7 of a later version: {comment}", encode({1: b"", 7: value}))
        messages.valid(f"unknown label 8: {comment}", encode({1: b"", 8: value}))
    for size in (0, 7, 9):
        messages.valid(f"label 7 of a later version: {size} bytes", encode({1: b"", 7: bytes(size)}))
    messages.valid("everything and unknown labels", encode({**full, 8: "x", 255: None, 65536: {1: 2}}))
    messages.valid("unknown label 2^53 - 1", encode({1: b"", LARGEST: 0}), ("Boundary",))

    def invalid(comment, flag, fields):
        messages.invalid(comment, flag, encode(fields))

    invalid("empty map", "MissingKey", {})
    invalid("no result", "MissingKey", {6: 1})
    for key in (0, -1, "1", b"\x01"):
        invalid(f"unknown key {key!r}", "UnknownKey", {1: b"", key: 1})
    for comment, value in (("as text", "x"), ("null", None), ("a number", 1)):
        invalid(f"result {comment}", "WrongType", {1: value})
    invalid("result of 1025 bytes", "TooLarge", {1: pin("reply", 1025)})
    for label, name in (
        (2, "clock"),
        (3, "generation floor"),
        (4, "retry after"),
        (5, "missing factors"),
        (6, "highest number"),
    ):
        for comment, flag, value in (
            ("negative", "WrongType", -1),
            ("as text", "WrongType", "1"),
            ("null", "WrongType", None),
            ("2^53", "IntegerTooLarge", 2**53),
        ):
            invalid(f"{name} {comment}", flag, {1: b"", label: value})
    invalid("missing factors 256", "WrongType", {1: b"", 5: 256})
    for comment, flag, value in (
        ("of indefinite length", "IndefiniteLength", Encoded(b"\x9f\xff")),
        ("cut short", "Truncated", Encoded(b"\x42\x00")),
        ("tagged", "UnknownTag", Tag(1, 0)),
        ("tagged within an array", "UnknownTag", [Tag(1, 0)]),
        ("a float", "Float", Encoded(bytes.fromhex("f94000"))),
        ("undefined", "SimpleValue", Encoded(b"\xf7")),
        ("in two bytes", "NonMinimalInteger", Encoded(b"\x18\x02")),
        ("2^53", "IntegerTooLarge", 2**53),
        ("text that is not UTF-8", "NotUtf8", Encoded(b"\x61\xff")),
        ("arrays nine deep", "NestingTooDeep", [deep]),
        ("a map with unsorted keys", "UnsortedKeys", Encoded(b"\xa2\x02\x00\x01\x00")),
        ("a map with a key twice", "DuplicateKey", Encoded(b"\xa2\x01\x00\x01\x00")),
        ("a map with null as a key", "WrongType", Encoded(b"\xa1\xf6\x00")),
    ):
        invalid(f"label 7: {comment}", flag, {1: b"", 7: value})
        invalid(f"unknown label 8: {comment}", flag, {1: b"", 8: value})
    first, later = encode(1) + encode(b""), encode(8) + encode(0)
    messages.invalid("unknown label before label 7", "UnsortedKeys", b"\xa3" + first + later + encode(7) + encode(0))
    messages.invalid("unknown label twice", "DuplicateKey", b"\xa3" + first + later + later)
    messages.invalid("byte after the map", "TrailingBytes", encode(full) + b"\x00")


def _request_encodings(messages, full):
    invalid = messages.invalid
    good = encode(full)
    pairs = [encode(k) + encode(v) for k, v in full.items()]
    invalid("empty", "Truncated", b"")
    invalid("cut short", "Truncated", good[:-1])
    invalid("byte after the map", "TrailingBytes", good + b"\x00")
    invalid("an array", "WrongType", encode(["unlock"]))
    invalid("text", "WrongType", encode("unlock"))
    invalid("null", "WrongType", encode(None))
    invalid("keys 1 and 2 exchanged", "UnsortedKeys", b"\xa4" + pairs[1] + pairs[0] + pairs[2] + pairs[3])
    invalid("keys 3 and 4 exchanged", "UnsortedKeys", b"\xa4" + pairs[0] + pairs[1] + pairs[3] + pairs[2])
    invalid("command twice", "DuplicateKey", b"\xa2" + encode(1) + encode("lock") + encode(1) + encode("unlock"))
    invalid("command twice, equal", "DuplicateKey", b"\xa2" + pairs[0] + pairs[0])
    invalid("parameters twice", "DuplicateKey", b"\xa3" + pairs[0] + pairs[1] + pairs[1])
    invalid("map of indefinite length", "IndefiniteLength", b"\xbf" + pairs[0] + b"\xff")
    invalid("command in chunks", "IndefiniteLength", b"\xa1\x01\x7f\x66unlock\xff")
    invalid("parameters of indefinite length", "IndefiniteLength", b"\xa2\x01\x64open\x02\x9f\x617\xff")
    invalid("map length in two bytes", "NonMinimalInteger", b"\xb8\x01" + encode(1) + encode("unlock"))
    invalid("key in two bytes", "NonMinimalInteger", b"\xa1\x18\x01\x66unlock")
    invalid("command with a longer length than needed", "NonMinimalInteger", b"\xa1\x01\x78\x06unlock")
    invalid("parameters with a longer length than needed", "NonMinimalInteger", b"\xa2\x01\x64open\x02\x98\x01\x617")
    invalid("command not UTF-8", "NotUtf8", b"\xa1\x01\x62\xc3\x28")
    invalid("parameter not UTF-8", "NotUtf8", b"\xa2\x01\x64open\x02\x81\x61\xff")
    invalid("command tagged", "UnknownTag", encode({1: Tag(32, "unlock")}))
    invalid("map tagged", "UnknownTag", encode(Tag(61, full)))
    invalid("command undefined", "SimpleValue", b"\xa1\x01\xf7")
    invalid("command as a float", "Float", b"\xa1\x01\xf9\x3c\x00")
    invalid("map longer than the input", "Truncated", b"\xbb\x00\x00\x00\x01\x00\x00\x00\x00" + pairs[0])
