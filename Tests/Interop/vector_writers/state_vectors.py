"""state_test.json: what a person's authenticator writes: state strings, an app's own store, undo codes and copies."""

from holdfast_peer import authenticator_state as state
from holdfast_peer.cbor import Encoded, Tag, encode, head
from holdfast_peer.primitives import sha256

from .notes import NOTES
from .token_cases import DEVICE_ID, LARGEST
from .vector_file import VectorFile, pin

PASSPHRASE = "correct horse battery staple"
COST = (4, 8, 1)
SALT, NONCE, ID = pin("state/salt", 16), pin("state/nonce", 12), pin("state/id", 16)
HOTP, TOTP, SEAL = [1, 1, 6], [2, 2, 8, 30], [3, "OCRA-1:HOTP-SHA256-8:QH64-T1M"]
HOST = [3, "OCRA-1:HOTP-SHA256-8:QH16"]
NOW = 1790000100
BY_PIN = [1, pin("state/pin", 16), 15, 8, 1]
FIELDS = (
    *("user", "index", "purpose", "issuer", "device", "method", "counter", "acknowledged", "offset", "step"),
    *("synchronised", "window", "limit", "group", "confirmed", "protection", "secret", "change", "undo"),
    *("challenge", "position"),
)
BASE = dict(
    zip(
        FIELDS,
        ["alice", 1, 1, "", DEVICE_ID, HOTP, 7, 5, -3, None, NOW, 10, None, 1, 1, BY_PIN, pin("state/secret", 32), 0]
        + [None, None, None],
        strict=True,
    )
)


def record(*demand, **changes):
    return [*{**BASE, **changes}.values(), *demand]


def state_file():
    file = VectorFile(
        "HoldfastAuthenticatorState",
        "state_schema_v1.json",
        [
            "StateString: a line of `otp state export`. StateRecords: the plaintext of one. StoreState: the bytes of an app's store.",
            "UndoCode: a code as a person types it. UndoCopy: a secret from before a change of PIN, under such a code.",
        ],
        NOTES,
    )
    writers = (_strings, _records, _stores, _undo_codes, _undo_copies)
    for (kind, check), write in zip(CHECKS.items(), writers, strict=True):
        write(file.group(kind, check))
    return file


def check_string(*, passphrase, line, plaintext=None):
    made = state.open_line(line, passphrase.encode())
    assert plaintext in (None, made)


def check_undo_code(*, code, secret=None):
    made = state.undo_code(code)
    assert secret in (None, made)


def check_undo_copy(*, code, record, copy, contents=None):
    made = state.open_undo_copy(copy, state.undo_code(code), state.cbor.decode(record))
    assert contents in (None, made)


CHECKS = {
    "StateString": check_string,
    "StateRecords": lambda plaintext: state.parse_records(plaintext),
    "StoreState": lambda store: state.parse_store(store),
    "UndoCode": check_undo_code,
    "UndoCopy": check_undo_copy,
}


# State strings


def _strings(group):
    plaintext = encode([1, [record()]])

    def valid(comment, line, flags=("Normal",), passphrase=PASSPHRASE, plain=plaintext):
        group.valid(comment, flags, passphrase=passphrase, line=line, plaintext=plain)

    def sealed(plain=plaintext, passphrase=PASSPHRASE, cost=COST, salt=SALT, nonce=NONCE):
        return state.seal_line(plain, passphrase.encode(), cost, salt, nonce)

    good = sealed()
    valid("one record", good)
    valid("another cost", sealed(cost=(6, 1, 4)))
    valid("a passphrase beyond ASCII", sealed(passphrase="\u00fcber alle Berge"), passphrase="\u00fcber alle Berge")
    valid(
        "white space in it", b" " + good[:20] + b"\n" + good[20:60] + b"\r\n\t" + good[60:] + b"\n", ("Representation",)
    )
    valid("plaintext of one byte", sealed(b"\x80"), ("Boundary",), plain=b"\x80")
    valid("no plaintext", sealed(b""), ("Boundary",), plain=b"")
    for length in (44, 45, 46, 47, 48):
        valid(f"plaintext of {length} bytes", sealed(bytes(length)), ("Boundary",), plain=bytes(length))

    def invalid(comment, flag, line, passphrase=PASSPHRASE):
        group.invalid(comment, flag, passphrase=passphrase, line=line)

    invalid("another passphrase", "Decryption", good, "correct horse battery stapler")
    invalid("another case of the passphrase", "Decryption", good, PASSPHRASE.upper())
    body = bytearray(state.base64strict.url_decode(good[8:].decode())[:-4])
    for name, position in (("salt", 3), ("nonce", 19), ("ciphertext", 31), ("tag", len(body) - 1)):
        changed = bytearray(body)
        changed[position] ^= 1
        invalid(f"the {name} changed, and the check bytes made again", "Decryption", state.checked_line(bytes(changed)))
        index = 8 + position * 8 // 6
        typed = b"B" if good[index : index + 1] == b"A" else b"A"
        invalid(f"a typing error in the {name}", "Checksum", good[:index] + typed + good[index + 1 :])
    plain_cost = bytes([5, 8, 1])
    invalid("another cost in the header", "Decryption", state.checked_line(plain_cost + bytes(body[3:])))
    unbound = state.gcm_seal(state.derived_key(PASSPHRASE.encode(), COST, SALT), NONCE, plaintext, bytes(body[:31]))
    invalid("the header without its name authenticated", "Decryption", state.checked_line(bytes(body[:31]) + unbound))
    for cost in ((0, 8, 1), (21, 8, 1), (15, 0, 1), (15, 9, 1), (15, 8, 0), (15, 8, 5), (19, 8, 1), (255, 255, 255)):
        invalid(f"cost {cost}", "Cost", state.checked_line(bytes(cost) + bytes(body[3:])))
    invalid("empty", "Prefix", b"")
    invalid("the name only", "Truncated", b"hfstate1")
    invalid("another version in the name", "Prefix", b"hfstate2" + good[8:])
    invalid("the name in capitals", "Prefix", b"HFSTATE1" + good[8:])
    invalid("without the name", "Prefix", good[8:])
    invalid("padded", "Base64", good + b"=")
    invalid("in the standard alphabet", "Base64", good[:-1] + b"+")
    invalid("a full stop behind it", "Base64", good + b".")
    invalid("a zero byte behind it", "Base64", good + b"\0")
    invalid("a character beyond ASCII", "Base64", good + "\u00fc".encode())
    invalid("the last byte missing", "Checksum", state.LINE + _encoded(bytes(body) + _check(body)[:3]))
    invalid("a byte too many", "Checksum", state.LINE + _encoded(bytes(body) + _check(body) + b"\0"))
    invalid("50 bytes", "Truncated", state.checked_line(bytes(46)))
    invalid(
        "the check bytes of the label of a store", "Checksum", state.LINE + _encoded(bytes(body) + _other_check(body))
    )


def _encoded(data):
    return state.base64strict.url_encode(data).encode()


def _check(body):
    return sha256(b"holdfast/1 state string\x00" + bytes(body))[:4]


def _other_check(body):
    return sha256(b"holdfast/1 authenticator state\x00" + bytes(body))[:4]


# Records

HOST_RECORD = {"index": 3, "purpose": 3, "method": HOST, "protection": [0]}
SEAL_RECORD = {"index": 2, "purpose": 2, "method": SEAL, "limit": 64}
VALID_RECORDS = {
    "HOTP under a PIN": record(),
    "TOTP without protection": record(method=TOTP, protection=[0], offset=5, step=59666670),
    "seals": record(**SEAL_RECORD),
    "host codes": record(**HOST_RECORD, challenge=b"0123456789abcdef"),
    "passwords over a challenge": record(method=[3, "OCRA-1:HOTP-SHA256-8:QH64"]),
    "under a key": record(protection=[2, pin("state/key", 16)]),
    "bound to a host": record(protection=[4, pin("state/host", 16), pin("state/check", 8)]),
    "under all three": record(
        protection=[7, *BY_PIN[1:], pin("state/key", 16), pin("state/host", 16), pin("state/check", 8)]
    ),
    "of no device": record(device=None, issuer="Example \u00fc", window=None, synchronised=None),
    "not confirmed": record(confirmed=0),
    "with an open change": record(change=3, undo=pin("state/undo", 90), position=7),
    "erased by a change": record(change=2, secret=None, protection=[0], undo=pin("state/undo", 90)),
    "erased by an import": record(change=4, secret=None, protection=[0]),
    "with a demand of 6 digits": record(6),
    "with a demand of 6 digits and a key": record(134),
}
BOUNDARIES = {
    "user of 32 bytes": record(user="\u00fc" * 16),
    "issuer of 64 bytes": record(issuer="i" * 64),
    "index 8": record(index=8),
    "largest counters": record(counter=LARGEST, acknowledged=LARGEST),
    "clock 2^32 - 1 ahead": record(offset=2**32 - 1),
    "clock 2^32 - 1 behind": record(offset=1 - 2**32),
    "secret of one byte": record(secret=b"\1"),
    "secret of 128 bytes": record(secret=pin("state/long", 128)),
    "undo copy of 512 bytes": record(change=3, undo=pin("state/undo/long", 512)),
    "demand of 4 digits": record(4),
    "demand of 64 digits": record(64),
    "demand of a key": record(128),
    "the largest cost": record(protection=[1, BY_PIN[1], 18, 8, 4]),
}


def _bad_records():
    """Comment, flag and record."""

    def bad(comment, flag, *demand, **changes):
        return comment, flag, record(*demand, **changes)

    yield "a field too few", "WrongCount", record()[:20]
    yield "two fields too many", "WrongCount", record(6, 0)
    yield "a map", "WrongType", dict(enumerate(record()))
    yield bad("user empty", "TextTooLong", user="")
    yield bad("user of 33 bytes", "TextTooLong", user="u" * 33)
    yield bad("user as bytes", "WrongType", user=b"alice")
    for name, character in (("a line end", "\n"), ("a C1 control", "\x9b"), ("an override of direction", "\u202e")):
        yield bad(f"{name} in the user", "ControlCharacter", user=f"al{character}ice")
    for index in (0, 9, 257):
        yield bad(f"index {index}", "OutOfRange", index=index)
    for purpose in (0, 4, 257):
        yield bad(f"purpose {purpose}", "OutOfRange", purpose=purpose)
    yield bad("issuer of 65 bytes", "TextTooLong", issuer="i" * 65)
    yield bad("issuer null", "WrongType", issuer=None)
    yield bad("device of 15 bytes", "WrongSize", device=DEVICE_ID[:15])
    yield bad("method 4", "Method", method=[4, 1, 6])
    yield bad("method with 3 digits", "Digits", method=[1, 1, 3])
    yield bad("seals by HOTP", "UnfitSuite", purpose=2)
    yield bad(
        "seals with a question of 63 digits", "UnfitSuite", purpose=2, method=[3, "OCRA-1:HOTP-SHA256-8:QH63-T1M"]
    )
    yield bad("host codes with a counter", "UnfitSuite", purpose=3, method=[3, "OCRA-1:HOTP-SHA256-8:C-QH16"])
    yield bad(
        "host codes with a question of 15 digits", "UnfitSuite", purpose=3, method=[3, "OCRA-1:HOTP-SHA256-8:QH15"]
    )
    yield bad("a suite with the hash of a PIN", "UnfitSuite", method=[3, "OCRA-1:HOTP-SHA256-8:QH64-PSHA1"])
    yield bad("a suite without digits", "UnfitSuite", method=[3, "OCRA-1:HOTP-SHA256-0:QH64"])
    yield bad("counter negative", "WrongType", counter=-1)
    yield bad("counter null", "WrongType", counter=None)
    yield bad("counter 2^53", "IntegerTooLarge", counter=2**53)
    yield bad("clock 2^32 ahead", "OutOfRange", offset=2**32)
    yield bad("clock 2^32 behind", "OutOfRange", offset=-(2**32))
    yield bad("offset null", "WrongType", offset=None)
    yield bad("time step negative", "WrongType", step=-1)
    yield bad("window as text", "WrongType", window="10")
    for limit in (0, 65):
        yield bad(f"limit {limit}", "OutOfRange", limit=limit)
    yield bad("confirmed 2", "OutOfRange", confirmed=2)
    yield bad("confirmed true", "WrongType", confirmed=True)
    for comment, flag, protection in (
        ("an empty array", "WrongCount", []),
        ("an unknown input", "OutOfRange", [8]),
        ("input 256", "OutOfRange", [256]),
        ("a PIN without its values", "WrongCount", [1]),
        ("no input with a salt", "WrongCount", [0, BY_PIN[1]]),
        ("a salt of 15 bytes", "WrongSize", [1, BY_PIN[1][:15], 15, 8, 1]),
        ("N of 1", "Cost", [1, BY_PIN[1], 0, 8, 1]),
        ("N of 2^21", "Cost", [1, BY_PIN[1], 21, 8, 1]),
        ("1 GiB", "Cost", [1, BY_PIN[1], 20, 8, 1]),
        ("r of 9", "Cost", [1, BY_PIN[1], 15, 9, 1]),
        ("p of 0", "Cost", [1, BY_PIN[1], 15, 8, 0]),
        ("a key without a salt", "WrongSize", [2, b""]),
        ("a host without a check value", "WrongCount", [4, BY_PIN[1]]),
        ("a check value of 7 bytes", "WrongSize", [4, BY_PIN[1], bytes(7)]),
        ("null", "WrongType", None),
    ):
        yield bad(f"protection: {comment}", flag, protection=protection)
    yield bad("secret empty", "WrongSize", secret=b"")
    yield bad("secret of 129 bytes", "WrongSize", secret=pin("state/long", 129))
    yield bad("secret null, not erased", "MissingSecret", secret=None)
    yield bad("secret null with an open change", "MissingSecret", secret=None, change=3)
    yield bad("change 5", "OutOfRange", change=5)
    yield bad("change 256", "OutOfRange", change=256)
    yield bad("undo copy of 513 bytes", "WrongSize", undo=pin("state/undo/long", 513))
    yield bad("challenge of 15 digits", "Digits16", **HOST_RECORD, challenge=b"0123456789abcde")
    yield bad("challenge with another letter", "Digits16", **HOST_RECORD, challenge=b"0123456789abcdeg")
    yield bad("challenge empty", "Digits16", **HOST_RECORD, challenge=b"")
    yield bad("challenge as text", "WrongType", **HOST_RECORD, challenge="0123456789abcdef")
    yield bad("position negative", "WrongType", position=-1)
    for demand in (0, 3, 65, 131, 256):
        yield bad(f"demand {demand}", "Demand", demand)
    yield bad("demand null", "WrongType", None)


def _records(group):
    def valid(comment, flags, *records):
        group.valid(comment, flags, plaintext=encode([1, list(records)]))

    for comment, one in VALID_RECORDS.items():
        valid(comment, ("Normal",), one)
    for comment, one in BOUNDARIES.items():
        valid(comment, ("Boundary",), one)
    valid("three records of a user", ("Normal",), record(), record(**SEAL_RECORD), record(**HOST_RECORD))

    def raw(comment, flag, plaintext):
        group.invalid(comment, flag, plaintext=plaintext)

    for comment, flag, one in _bad_records():
        raw(comment, flag, encode([1, [one]]))
    good = encode([1, [record()]])
    raw("no record", "WrongCount", encode([1, []]))
    for version in (0, 2):
        raw(f"version {version}", "WrongVersion", encode([version, [record()]]))
    raw("no version", "WrongCount", encode([[record()]]))
    raw("a third element", "WrongCount", encode([1, [record()], None]))
    raw("empty", "Truncated", b"")
    raw("cut short", "Truncated", good[:-1])
    raw("a byte behind it", "TrailingBytes", good + b"\0")
    raw("of indefinite length", "IndefiniteLength", b"\x9f" + good[1:] + b"\xff")
    raw("version in two bytes", "NonMinimalInteger", encode([Encoded(b"\x18\x01"), [record()]]))
    raw("tagged", "UnknownTag", encode(Tag(24, [1, [record()]])))
    raw("8193 records in the head", "Truncated", b"\x82\x01" + head(4, 8193))
    raw("user not UTF-8", "NotUtf8", encode([1, [record(user=Encoded(b"\x62\xc3\x28"))]]))
    raw("user in chunks", "IndefiniteLength", encode([1, [record(user=Encoded(b"\x7f\x65alice\xff"))]]))


# Stores


def _stores(group):
    def valid(comment, data, flags=("Normal",)):
        group.valid(comment, flags, store=data)

    both = [record(), record(**SEAL_RECORD)]
    valid("two records", state.store(ID, 3, both))
    valid("a record that replaces another", state.store(ID, 4, both, [record(counter=0, acknowledged=0)]))
    valid("no record", state.store(ID, 1, []), ("Boundary",))
    valid("the largest count of changes", state.store(ID, LARGEST, []), ("Boundary",))
    for comment, one in VALID_RECORDS.items():
        valid(f"record {comment}", state.store(ID, 3, [one]))
    good = state.store(ID, 3, both)

    def raw(comment, flag, data):
        group.invalid(comment, flag, store=data)

    def made(comment, flag, *elements):
        raw(comment, flag, state.checked_store(state.STORE + encode(list(elements))))

    for position in (8, len(good) // 2, len(good) - 9, len(good) - 1):
        flipped = bytearray(good)
        flipped[position] ^= 1
        raw(f"byte {position} changed", "Checksum", bytes(flipped))
    raw("empty", "Prefix", b"")
    raw("another name", "Prefix", b"hfautj01" + good[8:])
    raw("a state string", "Prefix", b"hfstate1" + good[8:])
    raw("version 00", "WrongVersion", state.checked_store(b"hfauth00" + good[8:-8]))
    raw("version 02", "WrongVersion", state.checked_store(b"hfauth02" + good[8:-8]))
    raw("version in letters", "WrongVersion", state.checked_store(b"hfauthxx" + good[8:-8]))
    raw("name and version only", "Truncated", b"hfauth01")
    raw("name, version and hash only", "Truncated", state.checked_store(b"hfauth01"))
    raw("cut by one byte", "Checksum", good[:-1])
    raw("a byte behind it", "Checksum", good + b"\0")
    raw("a byte behind the array", "TrailingBytes", state.checked_store(good[:-8] + b"\0"))
    raw(
        "the hash of the label of a state string",
        "Checksum",
        good[:-8] + sha256(b"holdfast/1 state string\x00" + good[:-8])[:8],
    )
    raw(
        "the last 8 bytes of the hash",
        "Checksum",
        good[:-8] + sha256(b"holdfast/1 authenticator state\x00" + good[:-8])[-8:],
    )
    made("no replacements", "WrongCount", ID, 3, both)
    made("a fifth element", "WrongCount", ID, 3, both, [], [])
    made("id of 15 bytes", "WrongSize", ID[:15], 3, both, [])
    made("id as text", "WrongType", "i" * 16, 3, both, [])
    made("no change", "OutOfRange", ID, 0, both, [])
    made("count of changes negative", "WrongType", ID, -1, both, [])
    made("count of changes 2^53", "IntegerTooLarge", ID, 2**53, both, [])
    made("records null", "WrongType", ID, 3, None, [])
    made("records out of order", "UnsortedRecords", ID, 3, both[::-1], [])
    made("a record twice", "UnsortedRecords", ID, 3, [both[0], both[0]], [])
    made("users out of order", "UnsortedRecords", ID, 3, [record(user="bob"), record()], [])
    made("replacements out of order", "UnsortedRecords", ID, 3, both, both[::-1])
    made("a bad replacement", "OutOfRange", ID, 3, both, [record(index=9)])
    for comment, flag, one in _bad_records():
        made(f"record: {comment}", flag, ID, 3, [one], [])


# Undo codes and copies


def _undo_codes(group):
    def valid(comment, secret, code=None, flags=("Normal",)):
        group.valid(comment, flags, code=code or state.undo_text(secret), secret=secret)

    for number in range(3):
        valid(f"pseudo-random {number}", pin(f"undo/{number}", 16))
    secret = pin("undo", 16)
    good = state.undo_text(secret)
    bare = good.replace("-", "")
    valid("lower case", secret, good.lower(), ("Representation",))
    valid("without hyphens", secret, bare, ("Representation",))
    valid("in two lines", secret, good[:19] + "\r\n" + good[20:], ("Representation",))
    valid("all bits zero", bytes(16), flags=("Boundary",))
    valid("all bits set", b"\xff" * 16, flags=("Boundary",))

    def invalid(comment, code):
        group.invalid(comment, "Code", code=code)

    alphabet = state.activation.ALPHABET
    for index in (0, 13, 24, 26, 27):
        other = alphabet[(alphabet.index(bare[index]) + 1) % 32]
        invalid(f"character {index} changed", bare[:index] + other + bare[index + 1 :])
    spare = alphabet[alphabet.index(bare[25]) | 1]
    invalid("the two spare bits not zero", bare[:25] + spare + bare[26:])
    first = next(i for i in range(25) if bare[i] != bare[i + 1])
    invalid("two neighbours exchanged", bare[:first] + bare[first + 1] + bare[first] + bare[first + 2 :])
    invalid("empty", "")
    invalid("a character too few", bare[:-1])
    invalid("a character too many", bare + "0")
    invalid("twice", good + good)
    for name, character in (
        ("U", "U"),
        ("an asterisk", "*"),
        ("an underscore", "_"),
        ("a letter beyond ASCII", "\u00d6"),
    ):
        invalid(f"{name} in it", character + bare[1:])


def _undo_copies(group):
    secret, nonce = pin("undo", 16), pin("undo/nonce", 12)
    one, contents = record(), encode([BY_PIN, BASE["secret"]])
    copy = state.undo_copy(secret, one, contents, nonce)

    def valid(comment, code=secret, of=one, holds=contents, flags=("Normal",)):
        made = state.undo_copy(code, of, holds, nonce)
        group.valid(comment, flags, code=state.undo_text(code), record=encode(of), copy=made, contents=holds)

    valid("a secret under a PIN")
    valid("of another record", of=record(**SEAL_RECORD))
    valid("without protection", holds=encode([[0], b"secret"]))
    valid("of a user beyond ASCII", of=record(user="\u00fc"))
    valid("a secret of 128 bytes", holds=encode([[0], pin("state/long", 128)]), flags=("Boundary",))

    def invalid(comment, flag, code=secret, of=one, data=copy):
        group.invalid(comment, flag, code=state.undo_text(code), record=encode(of), copy=data)

    invalid("another code", "Decryption", code=pin("undo/other", 16))
    invalid("of another user", "Decryption", of=record(user="alicf"))
    invalid("of another index", "Decryption", of=record(index=2))
    for name, position in (("nonce", 0), ("ciphertext", 12), ("tag", len(copy) - 1)):
        flipped = bytearray(copy)
        flipped[position] ^= 1
        invalid(f"{name} changed", "Decryption", data=bytes(flipped))
    invalid("empty", "Truncated", data=b"")
    invalid("nonce and tag only", "Truncated", data=copy[:12] + copy[-16:])
    invalid("without its tag", "Decryption", data=copy[:-16])
    invalid("a byte behind it", "Decryption", data=copy + b"\0")
    for comment, flag, holds in (
        ("nothing but a secret", "WrongType", encode(b"secret")),
        ("a third element", "WrongCount", encode([[0], b"secret", 0])),
        ("no secret", "WrongCount", encode([[0]])),
        ("a secret as text", "WrongType", encode([[0], "secret"])),
        ("an unknown protection", "OutOfRange", encode([[8], b"secret"])),
        ("a byte behind the array", "TrailingBytes", contents + b"\0"),
        ("an array of indefinite length", "IndefiniteLength", b"\x9f" + contents[1:] + b"\xff"),
    ):
        invalid(f"{comment} under the code", flag, data=state.undo_copy(secret, one, holds, nonce))
