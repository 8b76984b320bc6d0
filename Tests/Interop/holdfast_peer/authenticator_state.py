"""An authenticator's state: the line that `otp state export` writes, the bytes of an app's own store, and undo copies."""

import hashlib
import re

from . import activation, base64strict, cbor, oath
from .primitives import gcm_open, gcm_seal, hkdf_sha256, sha256
from .refusal import require, require_uint

LINE, STORE = b"hfstate1", b"hfauth01"
LARGEST_LINE, LARGEST_STORE, MOST_RECORDS = 1 << 20, 1 << 22, 8192
PIN, KEY, HOST = 1, 2, 4


def derived_key(passphrase, cost, salt):
    """The key of a state string; `cost` is log2 of N, r and p."""
    logarithm, r, p = cost
    return hashlib.scrypt(passphrase, salt=salt, n=1 << logarithm, r=r, p=p, maxmem=1 << 30, dklen=32)


def check_cost(cost):
    logarithm, r, p = cost
    require(1 <= logarithm <= 20 and 1 <= r <= 8 and 1 <= p <= 4 and 128 * r << logarithm <= 1 << 28, "Cost")


def seal_line(plaintext, passphrase, cost, salt, nonce):
    header = bytes(cost) + salt + nonce
    body = header + gcm_seal(derived_key(passphrase, cost, salt), nonce, plaintext, LINE + header)
    return checked_line(body)


def checked_line(body):
    """The line of a body, with the bytes that reveal typing errors."""
    return LINE + base64strict.url_encode(body + sha256(b"holdfast/1 state string\x00" + body)[:4]).encode()


def open_line(text, passphrase):
    """The plaintext of a line."""
    line = bytes(byte for byte in text if byte not in b" \t\n\r")
    require(len(line) <= LARGEST_LINE, "TooLarge")
    require(line.startswith(LINE), "Prefix")
    require(line.isascii(), "Base64")
    data = base64strict.url_decode(line[len(LINE) :].decode())
    require(len(data) >= 31 + 16 + 4, "Truncated")
    body, check = data[:-4], data[-4:]
    require(sha256(b"holdfast/1 state string\x00" + body)[:4] == check, "Checksum")
    check_cost(body[:3])
    key = derived_key(passphrase, body[:3], body[3:19])
    return gcm_open(key, body[19:31], body[31:], LINE + body[:31])


# Records


def _optional(value):
    return value if value is None else require_uint(value)


def _bytes(value, sizes):
    require(isinstance(value, bytes), "WrongType")
    require(len(value) in sizes, "WrongSize")


def _text(value, sizes):
    require(isinstance(value, str), "WrongType")
    require(len(value.encode()) in sizes, "TextTooLong")


def _is_control(character):
    code = ord(character)
    ranges = ((0, 0x1F), (0x7F, 0x9F), (0x200E, 0x200F), (0x2028, 0x202E), (0x2066, 0x2069))
    return any(first <= code <= last for first, last in ranges)


def _suits(purpose, method):
    if method[0] != 3:
        return purpose == 1
    suite = oath.parse_suite(method[1])
    if not suite["digits"] or suite["pin"] or suite["session"]:
        return False
    if purpose == 1:
        return True
    length = suite["length"] == 64 if purpose == 2 else suite["length"] >= 16
    return suite["format"] == "H" and length and (purpose == 2 or not suite["counter"] and not suite["step"])


def check_protection(items):
    require(isinstance(items, list), "WrongType")
    require(items, "WrongCount")
    inputs = require_uint(items[0])
    require(inputs <= PIN | KEY | HOST, "OutOfRange")
    count = 1 + (4 if inputs & PIN else 0) + (1 if inputs & KEY else 0) + (2 if inputs & HOST else 0)
    require(len(items) == count, "WrongCount")
    rest = list(items[1:])
    if inputs & PIN:
        _bytes(rest.pop(0), (16,))
        check_cost([require_uint(rest.pop(0)) for _ in range(3)])
    if inputs & KEY:
        _bytes(rest.pop(0), (16,))
    if inputs & HOST:
        _bytes(rest.pop(0), (16,))
        _bytes(rest.pop(0), (8,))


def check_record(record):
    """Refuses a record that breaks a rule."""
    require(isinstance(record, list), "WrongType")
    require(len(record) in (21, 22), "WrongCount")
    user, index, purpose, issuer, device, method, counter, acknowledged, offset, *rest = record
    last_step, synchronised, window, limit, group, confirmed, protection, secret, change, undo, *rest = rest
    challenge, position, *demand = rest
    _text(user, range(1, 33))
    require(not any(map(_is_control, user)), "ControlCharacter")
    require(1 <= require_uint(index) <= 8 and 1 <= require_uint(purpose) <= 3, "OutOfRange")
    _text(issuer, range(65))
    if device is not None:
        _bytes(device, (16,))
    activation.check_method(method)
    require(_suits(purpose, method), "UnfitSuite")
    for value in (counter, acknowledged, group):
        require_uint(value)
    require(isinstance(offset, int) and not isinstance(offset, bool), "WrongType")
    require(abs(offset) < 1 << 32, "OutOfRange")
    for value in (last_step, synchronised, window, limit, position):
        _optional(value)
    require(limit is None or 1 <= limit <= 64, "OutOfRange")
    require(require_uint(confirmed) <= 1 and require_uint(change) <= 4, "OutOfRange")
    check_protection(protection)
    if secret is not None:
        _bytes(secret, range(1, 129))
    require(secret is not None or change in (2, 4), "MissingSecret")
    if undo is not None:
        _bytes(undo, range(513))
    if challenge is not None:
        require(isinstance(challenge, bytes), "WrongType")
        require(re.fullmatch(b"[0-9a-f]{16}", challenge), "Digits16")
    if demand:
        require(require_uint(demand[0]) & 127 in (0, *range(4, 65)) and 0 < demand[0] < 256, "Demand")


def _records(records, least):
    require(isinstance(records, list), "WrongType")
    require(least <= len(records) <= MOST_RECORDS, "WrongCount")
    for record in records:
        check_record(record)


def parse_records(plaintext):
    """The records in the plaintext of a state string."""
    state = cbor.decode(plaintext)
    require(isinstance(state, list), "WrongType")
    require(len(state) == 2, "WrongCount")
    require(require_uint(state[0]) == 1, "WrongVersion")
    _records(state[1], 1)
    return state[1]


def store(identifier, changes, records, replacements=()):
    """The bytes of an app's own store."""
    return checked_store(STORE + cbor.encode([identifier, changes, list(records), list(replacements)]))


def checked_store(body):
    return body + sha256(b"holdfast/1 authenticator state\x00" + body)[:8]


def parse_store(data):
    """The id, the count of changes, the records and the replacements in a store."""
    require(data.startswith(STORE[:6]), "Prefix")
    require(len(STORE) + 8 <= len(data), "Truncated")
    require(len(data) <= LARGEST_STORE, "TooLarge")
    require(data.startswith(STORE), "WrongVersion")
    require(checked_store(data[:-8]) == data, "Checksum")
    state = cbor.decode(data[len(STORE) : -8])
    require(isinstance(state, list), "WrongType")
    require(len(state) == 4, "WrongCount")
    identifier, changes, *lists = state
    _bytes(identifier, (16,))
    require(require_uint(changes) > 0, "OutOfRange")
    for records in lists:
        _records(records, 0)
        keys = [(record[0].encode(), record[1]) for record in records]
        require(keys == sorted(set(keys)), "UnsortedRecords")
    return state


# Undo


def undo_text(secret):
    """An undo code of 16 bytes as it is printed."""
    bits = "".join(f"{byte:08b}" for byte in secret).ljust(130, "0")
    values = [int(bits[i : i + 5], 2) for i in range(0, 130, 5)]
    check = sha256(b"holdfast/1 undo code\x00" + secret)
    characters = "".join(activation.ALPHABET[value] for value in (*values, check[0] & 31, check[1] & 31))
    return "-".join(characters[i : i + 4] for i in range(0, 28, 4))


def undo_code(text):
    """The 16 bytes of an undo code as a person types it."""
    characters = re.sub("[- \n\r\t]", "", text)
    require(characters.isascii(), "Code")
    characters = characters.upper().translate(str.maketrans("OIL", "011"))
    require(len(characters) == 28 and all(c in activation.ALPHABET for c in characters), "Code")
    bits = "".join(f"{activation.ALPHABET.index(c):05b}" for c in characters[:26])
    secret = int(bits[:128], 2).to_bytes(16, "big")
    require(undo_text(secret).replace("-", "") == characters, "Code")
    return secret


def _undo_keys(secret, record):
    key = hkdf_sha256(secret, b"", b"holdfast/1 undo key\x00", 32)
    return key, b"holdfast/1 undo copy\x00" + cbor.encode(record[0]) + cbor.encode(record[1])


def undo_copy(secret, record, contents, nonce):
    """The copy of a secret and its protection for a record."""
    key, binding = _undo_keys(secret, record)
    return nonce + gcm_seal(key, nonce, contents, binding)


def open_undo_copy(copy, secret, record):
    """The contents of a copy: `[protection, secret]` in CBOR."""
    require(len(copy) > 28, "Truncated")
    key, binding = _undo_keys(secret, record)
    contents = gcm_open(key, copy[:12], copy[12:], binding)
    items = cbor.decode(contents)
    require(isinstance(items, list), "WrongType")
    require(len(items) == 2, "WrongCount")
    check_protection(items[0])
    require(isinstance(items[1], bytes), "WrongType")
    return contents
