"""The flash of a microcontroller: the provision of its owner, and a journal in two slots. They are written, and read strictly."""

import zlib

from . import cbor, session
from .activation import check_method
from .audit import START, chained, parse_entry
from .keys import PrivateKey
from .primitives import sha256
from .refusal import require, require_list, require_uint

PAGE = 4096
SIZE = 32 * PAGE
SLOTS, SLOT_SIZE = (4 * PAGE, 18 * PAGE), 14 * PAGE
PROVISION_MAGIC, SLOT_MAGIC = b"HfFw", b"HfJ1"
BLANK_WORD, ZERO_WORD = b"\xff" * 4, bytes(4)
LONGEST_PROVISION = 4096
COMMANDS, ISSUERS, USERS, CODES, FLOORS, KEPT, REQUESTS = 16, 8, 16, 16, 16, 64, 64


def word(number):
    return number.to_bytes(4, "little")


def padded(data, filler):
    return data + filler * (-len(data) % 4)


# Writing


def provision(body, version=1, length=None):
    """The owner's pages up to their digest; `body` is the encoded array."""
    head = PROVISION_MAGIC + word(version) + word(len(body) if length is None else length)
    return signed(head + padded(body, b"\xff"))


def signed(data):
    return data + sha256(data)


def checksum(data):
    value = zlib.crc32(data)
    return word(0 if value == 0xFFFFFFFF else value)


def transaction(sequence, data):
    """A transaction of a slot with this sequence."""
    counted = word((~len(data) & 0xFFFF) << 16 | len(data)) + padded(data, b"\0")
    return counted + checksum(word(sequence) + counted)


def slot_head(sequence, complete=True, superseded=False):
    start = SLOT_MAGIC + word(sequence)
    marks = (ZERO_WORD if mark else BLANK_WORD for mark in (complete, superseded))
    return start + word(zlib.crc32(start)) + b"".join(marks) + BLANK_WORD * 3


def slot(sequence, transactions, complete=True, superseded=False):
    """A slot with these transactions; each is a list of items."""
    log = (transaction(sequence, b"".join(map(cbor.encode, items))) for items in transactions)
    return slot_head(sequence, complete, superseded) + b"".join(log)


def image(owner, first=b"", second=b""):
    """The whole flash, of which these parts are written."""
    flash = bytearray(b"\xff" * SIZE)
    for offset, part in zip((0, *SLOTS), (owner, first, second), strict=True):
        flash[offset : offset + len(part)] = part
    return bytes(flash)


def runs(flash):
    """`[offset, bytes]` of what is written, the provision last: parts with at least 32 blank bytes between them."""
    found, position = [], 0
    while position < len(flash):
        if flash[position] == 0xFF:
            position += 1
            continue
        end = flash.find(b"\xff" * 32, position)
        end = len(flash) if end < 0 else end
        found.append([position, flash[position:end]])
        position = end
    return [run for run in found if run[0] >= SLOTS[0]] + [run for run in found if run[0] < SLOTS[0]]


# Reading


def _uint(value, least=0, most=cbor.LARGEST_INTEGER):
    require_uint(value)
    require(least <= value <= most, "OutOfRange")
    return value


def _bytes(value, *sizes):
    require(isinstance(value, bytes), "WrongType")
    require(len(value) in sizes, "WrongSize")
    return value


def _text(value):
    require(isinstance(value, str), "WrongType")
    require(len(value.encode()) <= 32, "TextTooLong")
    return value


def _or_null(value, check):
    return None if value is None else check(value)


def read(flash):
    """What an owner's commands show of an image, by the names of the vectors' members."""
    device_id, scalar, point, issuers, policy = read_provision(flash)
    require(PrivateKey(scalar).point == point, "KeyPair")
    journal = _Journal()
    for data in transactions_in_force(flash):
        for item in cbor.decode_sequence(data):
            journal.take(item)
    return {
        "deviceId": device_id,
        "publicKey": point,
        "issuers": [[kid.hex(), key.hex()] for kid, key in issuers],
        "policy": cbor.encode(policy),
        **journal.contents(),
    }


def read_provision(flash):
    require(flash[:4] != BLANK_WORD, "Unprovisioned")
    require(flash[:4] == PROVISION_MAGIC, "Prefix")
    require(flash[4:8] == word(1), "WrongVersion")
    length = int.from_bytes(flash[8:12], "little")
    require(length <= LONGEST_PROVISION, "TooLarge")
    end = 12 + (length + 3) // 4 * 4
    require(flash[end : end + 32] == sha256(flash[:end]), "Checksum")
    fields = require_list(cbor.decode(flash[12 : 12 + length]), 5)
    _bytes(fields[0], 16)
    _bytes(fields[1], 32)
    _bytes(fields[2], 65)
    require(isinstance(fields[3], list), "WrongType")
    require(len(fields[3]) <= ISSUERS, "NoRoom")
    for issuer in fields[3]:
        _bytes(require_list(issuer, 2)[0], 8)
        _bytes(issuer[1], 32, 65)
    require(len({issuer[0] for issuer in fields[3]}) == len(fields[3]), "DuplicateIssuer")
    _check_policy(fields[4])
    return fields


def _check_policy(policy):
    unsigned, mac, advance, limits, codes, commands = require_list(policy, 6)
    _uint(unsigned, 0, 1)
    _uint(mac, 0, 1)
    require(_uint(advance, 0, 36500 * 86400) % 86400 == 0, "OutOfRange")
    _check_limits(limits)
    for value, most in zip(require_list(codes, 3), (100, 600, 64), strict=True):
        _uint(value, 1, most)
    require(isinstance(commands, list), "WrongType")
    require(len(commands) <= COMMANDS, "NoRoom")
    for command in commands:
        name, factors, limits, compatibility = require_list(command, 4)
        _text(name)
        _uint(factors, 0, 15)
        _check_limits(limits)
        _uint(compatibility, 0, 1)
    require(len({command[0] for command in commands}) == len(commands), "DuplicateCommand")


def _check_limits(limits):
    generation, version, age = require_list(limits, 3)
    _uint(generation)
    for number in require_list(version, 3):
        _uint(number)
    _or_null(age, _uint)


def _slot_state(head):
    complete, superseded = head[12:16], head[16:20]
    if complete == superseded == BLANK_WORD:
        return "unfinished"
    if superseded == ZERO_WORD:
        return "superseded"
    is_whole = head[:4] == SLOT_MAGIC and head[8:12] == word(zlib.crc32(head[:8]))
    require(is_whole and complete == ZERO_WORD and superseded == BLANK_WORD, "Slots")
    return "current"


def transactions_in_force(flash):
    """The bytes of each transaction that counts, in the slot in force."""
    slots = [flash[offset : offset + SLOT_SIZE] for offset in SLOTS]
    states = [_slot_state(slot) for slot in slots]
    require("current" in states, "Slots")
    sequences = [int.from_bytes(slot[4:8], "little") for slot in slots]
    if states == ["current"] * 2:
        require(sequences[0] != sequences[1], "Slots")
        number = sequences.index(max(sequences))
    else:
        number = states.index("current")
    log, position, found = slots[number], 32, []
    while len(log) - position >= 8 and log[position : position + 4] != BLANK_WORD:
        head = int.from_bytes(log[position : position + 4], "little")
        length = head & 0xFFFF
        end = position + 8 + (length + 3) // 4 * 4
        require(head >> 16 == ~length & 0xFFFF and end <= len(log), "Transaction")
        written = log[end - 4 : end]
        if written != BLANK_WORD:
            require(written == checksum(word(sequences[number]) + log[position : end - 4]), "Checksum")
            found.append(log[position + 4 : position + 4 + length])
        position = end
    require(not log[position:].strip(b"\xff"), "Transaction")
    require(found, "Slots")
    return found


class _Journal:
    """The state that items lead to."""

    def __init__(self):
        self.clock_floor = self.starts = 0
        self.audit_count, self.audit_head, self.entries = 0, START, []
        self.floors, self.kept, self.users, self.secrets, self.codes = {}, set(), {}, {}, {}

    def take(self, item):
        require(isinstance(item, list), "WrongType")
        require(item, "WrongCount")
        kind = _uint(item[0])
        require(kind in _ITEMS, "UnknownKind")
        count, handle = _ITEMS[kind]
        handle(self, *require_list(item, count)[1:])

    def state(self, clock_floor, starts, next_user, next_code):
        self.clock_floor, self.starts = _uint(clock_floor), _uint(starts)
        _uint(next_user)
        _uint(next_code)

    def audit_base(self, count, head):
        self.audit_count, self.audit_head = _uint(count), _bytes(head, 32)

    def audit_entry(self, entry):
        require(isinstance(entry, bytes), "WrongType")
        require(parse_entry(entry)[0] == self.audit_count + 1, "Sequence")
        self.audit_count, self.audit_head = self.audit_count + 1, chained(self.audit_head, entry)
        self.entries.append(entry)

    def generation(self, kid, floor):
        self.floors[_bytes(kid, 8)] = _uint(floor)
        require(len(self.floors) <= FLOORS, "NoRoom")

    def uses(self, kid, token, expires, count):
        _uint(count)
        self._keep(kid, token, expires, None)

    def nonce(self, kid, token, expires, nonce):
        self._keep(kid, token, expires, _bytes(nonce, 16))

    def _keep(self, kid, token, expires, nonce):
        _uint(expires)
        self.kept.add((_or_null(kid, lambda kid: _bytes(kid, 8)), _bytes(token, 16), nonce))
        require(len(self.kept) <= KEPT, "NoRoom")

    def user(self, user_id, name, failures, factors, locked_until, offset, last, challenge, *accounts):
        _text(name)
        for number in (user_id, failures, locked_until, last):
            _uint(number)
        _uint(factors, 0, 255)
        require(isinstance(offset, int) and not isinstance(offset, bool), "WrongType")
        if challenge is not None:
            _bytes(require_list(challenge, 2)[0], 8)
            _uint(challenge[1])
        for account in accounts:
            if account is not None:
                check_method(require_list(account, 3)[0])
                _uint(account[1])
                _or_null(account[2], _uint)
        fields = [user_id, name, failures, factors, locked_until, offset, last, challenge, *accounts]
        self.users[user_id] = cbor.encode([7, *fields]), name
        require(len(self.users) <= USERS, "NoRoom")

    def secret(self, user_id, purpose, secret):
        require(_uint(user_id) in self.users, "Dangling")
        _uint(purpose, 1, 3)
        _bytes(secret, *range(65))
        self.secrets[user_id, purpose] = secret

    def user_removed(self, user_id):
        require(_uint(user_id) in self.users, "Dangling")
        del self.users[user_id]
        self.secrets = {key: secret for key, secret in self.secrets.items() if key[0] != user_id}

    def code(self, code_id, purpose, key, user, expires, *methods):
        _uint(code_id)
        _uint(purpose, 1, 2)
        _bytes(key, 32)
        _text(user)
        _uint(expires)
        for method in methods:
            _or_null(method, check_method)
        self.codes[code_id] = cbor.encode([10, code_id, purpose, key, user, expires, *methods])
        require(len(self.codes) <= CODES, "NoRoom")

    def code_removed(self, code_id):
        require(_uint(code_id) in self.codes, "Dangling")
        del self.codes[code_id]

    def request(self, token, place, kid, expires, highest, window, digest):
        _bytes(token, 16)
        _uint(place, 0, REQUESTS - 1)
        _or_null(kid, lambda kid: _bytes(kid, 8))
        _uint(expires)
        _uint(highest)
        _bytes(window, 8)
        _bytes(digest, 16)

    def outcome(self, place, outcome):
        _uint(place, 0, REQUESTS - 1)
        require(_uint(outcome) in (session.STATUS["accepted"], session.STATUS["internal"]), "OutOfRange")

    def contents(self):
        def secrets(user_id):
            return [self.secrets.get((user_id, purpose), b"").hex() for purpose in (1, 2, 3)]

        users = sorted(self.users.items(), key=lambda user: user[1][1].encode())
        return {
            "clockFloor": self.clock_floor,
            "starts": self.starts,
            "kept": len(self.kept),
            "floors": [[kid.hex(), floor] for kid, floor in sorted(self.floors.items())],
            "users": [[item.hex(), *secrets(user_id)] for user_id, (item, _) in users],
            "codes": [self.codes[code_id] for code_id in sorted(self.codes)],
            "entries": self.entries,
            "auditCount": self.audit_count,
            "auditHead": self.audit_head,
        }


# By kind: the number of elements, and what they change.
_ITEMS = {
    1: (5, _Journal.state),
    2: (3, _Journal.audit_base),
    3: (2, _Journal.audit_entry),
    4: (3, _Journal.generation),
    5: (5, _Journal.uses),
    6: (5, _Journal.nonce),
    7: (11, _Journal.user),
    8: (4, _Journal.secret),
    9: (2, _Journal.user_removed),
    10: (8, _Journal.code),
    11: (2, _Journal.code_removed),
    12: (8, _Journal.request),
    13: (3, _Journal.outcome),
}
