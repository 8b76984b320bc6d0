"""Bulletins, which provers carry from an issuer to devices: their claims, signed and sealed, lists, states and messages.

Source: docs/couriers.md.
"""

import secrets

from . import cbor, cose
from .keys import PrivateKey, key_id, verify
from .primitives import sha256
from .refusal import require, require_list, require_uint

LARGEST_BULLETIN = 3072
DELIVER, RESULT = 7, 8
RESULTS = ("taken", "known", "notAddressed", "missed", "full", "refused", "busy")
MOST_GROUPS = 8


def group_id(name):
    """The audience of a group with a name of 1 to 32 bytes."""
    require(1 <= len(name.encode()) <= 32, "GroupName")
    return sha256(b"holdfast/1 group\x00" + name.encode())[:16]


# Claims


def _bytes(value, size):
    require(isinstance(value, bytes), "WrongType")
    require(len(value) == size, "WrongSize")
    return value


def _text(value, most):
    require(isinstance(value, str), "WrongType")
    require(1 <= len(value.encode()) <= most, "TextLength")
    return value


def _revoked(entry):
    token, until = require_list(entry, 2)
    return [_bytes(token, 16), require_uint(until)]


def _version(entry):
    subject, *version = require_list(entry, 4)
    return [_text(subject, 64), *map(require_uint, version)]


def _introduced(entry):
    x, y, start, end = require_list(entry, 4)
    require(require_uint(start) < require_uint(end), "KeyTimes")
    return [_bytes(x, 32), _bytes(y, 32), start, end]


def _ended(entry):
    return _bytes(entry, 8)


def _user(entry):
    user, until = require_list(entry, 2)
    return [_text(user, 32), None if until is None else require_uint(until)]


# By label: the name, the most entries, the reader of an entry, and what entries are sorted by.
LISTS = {
    5: ("revoked", 120, _revoked, lambda entry: entry[0]),
    7: ("versions", 16, _version, lambda entry: entry[0].encode()),
    8: ("introduced", 4, _introduced, lambda entry: entry[0] + entry[1]),
    9: ("ended", 16, _ended, lambda entry: entry),
    10: ("users", 32, _user, lambda entry: entry[0].encode()),
}
NUMBERS = {1: "number", 2: "predecessor", 3: "issuedAt"}
LABELS = {
    **{name: label for label, name in NUMBERS.items()},
    "audience": 4,
    "generation": 6,
    **{row[0]: label for label, row in LISTS.items()},
}


def to_map(claims):
    """The claims as a map by label, not yet encoded. Entries stay in the order in which they are given."""
    return {LABELS[name]: value for name, value in claims.items()}


def to_cbor(claims):
    return cbor.encode(to_map(claims))


def from_cbor(data, is_sealed=False):
    """The claims of a deterministic CBOR map, each rule checked that needs nothing but the claims."""
    fields = cbor.decode(data)
    require(isinstance(fields, dict), "WrongType")
    require(not fields.keys() - set(LABELS.values()), "UnknownClaim")
    require(not {1, 2, 3, 4} - fields.keys(), "MissingClaim")
    claims = {name: require_uint(fields[label]) for label, name in NUMBERS.items()}
    claims["audience"] = _bytes(fields[4], 16)
    require(claims["number"] > claims["predecessor"], "Predecessor")
    require(claims["number"] >= 1000 * claims["issuedAt"], "NumberBelowTime")
    if 6 in fields:
        claims["generation"] = require_uint(fields[6])
    for label, (name, most, read, order) in LISTS.items():
        if label in fields:
            claims[name] = _entries(fields[label], most, read, order)
    require(is_sealed or "users" not in claims, "UsersUnsealed")
    return dict(sorted(claims.items(), key=lambda claim: LABELS[claim[0]]))


def _entries(value, most, read, order):
    require(isinstance(value, list), "WrongType")
    require(1 <= len(value) <= most, "WrongCount")
    entries = [read(entry) for entry in value]
    keys = [order(entry) for entry in entries]
    require(len(set(keys)) == len(keys), "DuplicateEntry")
    require(keys == sorted(keys), "UnsortedEntries")
    return entries


# Bulletins


def protected(kid):
    return cbor.encode({1: -7, 4: kid, 16: "holdfast-bulletin"})


def sign(claims, issuer, **changes):
    """A signed bulletin. `claims` may be encoded already; `changes` are those of `cose.sign`."""
    payload = claims if isinstance(claims, bytes) else to_cbor(claims)
    return cose.sign(payload, issuer, **{"protected": protected(issuer.kid), **changes})


def seal(signed, device_point, ephemeral=None, iv=None):
    """A bulletin that only one device can read."""
    return cose.encrypt(signed, device_point, ephemeral or PrivateKey(), iv or secrets.token_bytes(12))


def read_signed(data, is_sealed=False):
    """The claims of a signed bulletin, the id of its key, and what its key signed and how. The signature is not checked."""
    require(len(data) <= LARGEST_BULLETIN, "TooLarge")
    payload, kid, signed, signature = cose.read_signed(data, "holdfast-bulletin")
    return from_cbor(payload, is_sealed), kid, signed, signature


def is_sealed(data):
    return data[:2] == cbor.head(cbor.TAG, cose.ENCRYPT)


def open_bulletin(data, device, issuers, audiences):
    """The claims of a valid bulletin and the id of its key, or a refusal. Numbers and times are not looked at.

    `device` is the device's PrivateKey, `issuers` the trusted uncompressed points, `audiences` those that the device belongs to.
    """
    require(len(data) <= LARGEST_BULLETIN, "TooLarge")
    sealed = is_sealed(data)
    claims, kid, signed, signature = read_signed(cose.decrypt(data, device) if sealed else data, sealed)
    points = {key_id(point): point for point in issuers}
    require(kid in points, "WrongKeyId")
    require(claims["audience"] in audiences, "WrongAudience")
    require("users" not in claims or claims["audience"] == audiences[0], "UsersOfGroup")
    verify(points[kid], signed, signature)
    return claims, kid


# Numbers


def list_of(audiences, numbers):
    """The list of a device with these audiences and the numbers that it has of some."""
    return [[audience, numbers.get(audience, 0)] for audience in sorted(audiences)]


def state_of(rows):
    return sha256(b"holdfast/1 bulletins\x00" + cbor.encode(rows))[:8]


def check_list(rows):
    """The rows of a list, each rule checked."""
    require(isinstance(rows, list), "WrongType")
    require(1 <= len(rows) <= 1 + MOST_GROUPS, "WrongCount")
    for row in rows:
        audience, number = require_list(row, 2)
        _bytes(audience, 16)
        require_uint(number)
    audiences = [row[0] for row in rows]
    require(len(set(audiences)) == len(audiences), "DuplicateEntry")
    require(audiences == sorted(audiences), "UnsortedEntries")
    return rows


# Messages


def deliver(bulletin):
    return cbor.encode([DELIVER, bulletin])


ASK = deliver(None)


def parse_mail(data):
    """The bulletin in a message to a device; None if the message asks for the list."""
    kind, bulletin = require_list(cbor.decode(data), 2)
    require(require_uint(kind) == DELIVER, "WrongMessage")
    if bulletin is None:
        return None
    require(isinstance(bulletin, bytes), "WrongType")
    require(len(bulletin) <= LARGEST_BULLETIN, "TooLarge")
    return bulletin


def parse_answer(data):
    """The result in a device's answer, by name, and the list (None where there is none)."""
    fields = cbor.decode(data)
    require(isinstance(fields, list), "WrongType")
    require(len(fields) in (2, 3), "WrongCount")
    require(require_uint(fields[0]) == RESULT, "WrongMessage")
    require(require_uint(fields[1]) < len(RESULTS), "UnknownResult")
    require(len(fields) == 2 or fields[1] == 0, "ListWithResult")
    return RESULTS[fields[1]], check_list(fields[2]) if len(fields) == 3 else None
