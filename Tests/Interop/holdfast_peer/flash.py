"""The flash of a microcontroller: the provision of its owner, and a journal in two slots. They are written, and read strictly.

Source: docs/provisioning.md, The format.
"""

import zlib

from . import bulletins, cbor, provision, session
from .activation import check_method
from .audit import START, chained, parse_entry
from .provision import padded, word
from .refusal import (
    require,
    require_bytes,
    require_list,
    require_range,
    require_text,
    require_uint,
    unless_null,
)

PAGE = 4096
SIZE = 32 * PAGE
SLOTS, SLOT_SIZE = (4 * PAGE, 18 * PAGE), 14 * PAGE
SLOT_MAGIC = b"HfJ1"
BLANK_WORD, ZERO_WORD = b"\xff" * 4, bytes(4)
USERS, CODES, FLOORS, KEPT, REQUESTS, REVOKED = 16, 16, 16, 64, 64, 64
# The bytes of a revoked token: its id, the id of its key, and a time.
REVOKED_SIZE = 16 + 8 + 8


# Writing


def checksum(data):
    value = zlib.crc32(data)
    return word(0 if value == 0xFFFFFFFF else value)


def transaction(sequence, data):
    """A transaction of a slot with this sequence."""
    counted = word((~len(data) & 0xFFFF) << 16 | len(data)) + padded(data, b"\0")
    return counted + checksum(word(sequence) + counted)


def transaction_size(item):
    """The bytes that an item takes as a transaction."""
    return len(transaction(0, cbor.encode(item)))


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
    while written := flash[position:].lstrip(b"\xff"):
        position = len(flash) - len(written)
        end = flash.find(b"\xff" * 32, position)
        end = len(flash) if end < 0 else end
        found.append([position, flash[position:end]])
        position = end
    return [run for run in found if run[0] >= SLOTS[0]] + [run for run in found if run[0] < SLOTS[0]]


# Reading


def read(flash):
    """What an owner's commands show of an image, by the names of the vectors' members."""
    owner = provision.read(flash)
    journal = _Journal()
    for data in transactions_in_force(flash):
        for item in cbor.decode_sequence(data):
            journal.take(item)
    return {
        "deviceId": owner["device_id"],
        "publicKey": owner["point"],
        "groups": owner["groups"],
        "home": owner["home"],
        "issuers": [[kid.hex(), key.hex()] for kid, key in owner["issuers"]],
        "policy": cbor.encode(owner["policy"]),
        **journal.contents(),
    }


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
        # The number of the last entry that is at home, and the bytes of those after it.
        self.acknowledged = self.waiting = 0
        self.floors, self.kept, self.users, self.secrets, self.codes = {}, {}, {}, {}, {}

    def take(self, item):
        require(isinstance(item, list), "WrongType")
        require(item, "WrongCount")
        kind = require_uint(item[0])
        require(kind in _ITEMS, "UnknownKind")
        count, handle = _ITEMS[kind]
        handle(self, *require_list(item, count)[1:])

    def state(self, clock_floor, starts, next_user, next_code):
        self.clock_floor, self.starts = require_uint(clock_floor), require_uint(starts)
        require_uint(next_user)
        require_uint(next_code)

    def audit_base(self, count, head):
        self.audit_count, self.audit_head = require_uint(count), require_bytes(head, 32)

    def audit_entry(self, entry):
        require(isinstance(entry, bytes), "WrongType")
        require(parse_entry(entry)[0] == self.audit_count + 1, "Sequence")
        self.audit_count, self.audit_head = self.audit_count + 1, chained(self.audit_head, entry)
        self.entries.append(entry)
        if self.audit_count > self.acknowledged:
            self.waiting += transaction_size([3, entry])

    def receipt(self, count, waiting):
        self.acknowledged, self.waiting = require_uint(count), require_range(waiting, 0, SLOT_SIZE)

    def generation(self, kid, floor):
        self.floors[require_bytes(kid, 8)] = require_uint(floor)
        require(len(self.floors) <= FLOORS, "NoRoom")

    def bulletins_taken(self, kid, floor, numbers):
        self.generation(kid, floor)
        bulletins.check_list(numbers)

    def revoked(self, entries):
        require_bytes(entries, *range(0, REVOKED * REVOKED_SIZE + 1, REVOKED_SIZE))

    def uses(self, kid, token, expires, count):
        require_uint(count)
        self._keep(kid, token, expires, None)

    def nonce(self, kid, token, expires, nonce):
        self._keep(kid, token, expires, require_bytes(nonce, 16))

    def _keep(self, kid, token, expires, nonce):
        """Keeps a use or a nonce, and drops those that can never count again."""
        unless_null(kid, lambda kid: require_bytes(kid, 8))
        require_bytes(token, 16)
        require_uint(expires)
        self.kept = {record: end for record, end in self.kept.items() if end > self.clock_floor}
        self.kept[kid, token, nonce] = expires
        require(len(self.kept) <= KEPT, "NoRoom")

    def user(self, user_id, name, failures, factors, locked_until, offset, last, challenge, *accounts):
        require_text(name, 32)
        for number in (user_id, failures, locked_until, last):
            require_uint(number)
        require_range(factors, 0, 255)
        require(isinstance(offset, int) and not isinstance(offset, bool), "WrongType")
        if challenge is not None:
            require_bytes(require_list(challenge, 2)[0], 8)
            require_uint(challenge[1])
        for account in accounts:
            if account is not None:
                check_method(require_list(account, 3)[0])
                require_uint(account[1])
                unless_null(account[2], require_uint)
        fields = [user_id, name, failures, factors, locked_until, offset, last, challenge, *accounts]
        self.users[user_id] = cbor.encode([7, *fields]), name
        require(len(self.users) <= USERS, "NoRoom")

    def secret(self, user_id, purpose, secret):
        require(require_uint(user_id) in self.users, "Dangling")
        require_range(purpose, 1, 3)
        require_bytes(secret, *range(65))
        self.secrets[user_id, purpose] = secret

    def user_removed(self, user_id):
        require(require_uint(user_id) in self.users, "Dangling")
        del self.users[user_id]
        self.secrets = {key: secret for key, secret in self.secrets.items() if key[0] != user_id}

    def code(self, code_id, purpose, key, user, expires, *methods):
        require_uint(code_id)
        require_range(purpose, 1, 2)
        require_bytes(key, 32)
        require_text(user, 32)
        require_uint(expires)
        for method in methods:
            unless_null(method, check_method)
        self.codes[code_id] = cbor.encode([10, code_id, purpose, key, user, expires, *methods])
        require(len(self.codes) <= CODES, "NoRoom")

    def code_removed(self, code_id):
        require(require_uint(code_id) in self.codes, "Dangling")
        del self.codes[code_id]

    def request(self, token, place, kid, expires, highest, window, digest):
        require_bytes(token, 16)
        require_range(place, 0, REQUESTS - 1)
        unless_null(kid, lambda kid: require_bytes(kid, 8))
        require_uint(expires)
        require_uint(highest)
        require_bytes(window, 8)
        require_bytes(digest, 16)

    def outcome(self, place, outcome):
        require_range(place, 0, REQUESTS - 1)
        require(require_uint(outcome) in (session.STATUS["accepted"], session.STATUS["internal"]), "OutOfRange")

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
            "acknowledged": self.acknowledged,
            "unacknowledgedBytes": self.waiting,
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
    14: (4, _Journal.bulletins_taken),
    15: (2, _Journal.revoked),
    16: (3, _Journal.receipt),
}
