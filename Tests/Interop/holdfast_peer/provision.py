"""The provision of a microcontroller: the identity, groups, home of the audit log, issuers and policy that its owner gives it.

Source: docs/provisioning.md, The format.
"""

from . import bulletins, cbor
from .keys import ORDER, PrivateKey
from .primitives import sha256
from .refusal import require, require_bytes, require_list, require_range, require_text, require_uint, unless_null

MAGIC = b"HfFw"
LONGEST = 4096
COMMANDS, ISSUERS = 16, 8
POINT = 65
NO_POINT = bytes(POINT)


def word(number):
    return number.to_bytes(4, "little")


def padded(data, filler):
    return data + filler * (-len(data) % 4)


# Writing


def pages(body, version=1, length=None):
    """The owner's pages; `body` is the encoded array."""
    head = MAGIC + word(version) + word(len(body) if length is None else length)
    return signed(head + padded(body, b"\xff"))


def signed(data):
    return data + sha256(data)


def groups(device_id, names):
    """The element about the groups that a device belongs to."""
    return [bulletins.list_of([device_id, *map(bulletins.group_id, names)], {}), list(names)]


def home(kid, refuses, agreement=None):
    """The element about the home of the audit log; `agreement` is its point for agreement, if it has announced one."""
    return [kid, int(refuses), agreement or NO_POINT]


def fields(device_id, key, issuers, policy, groups=None, home=None):
    """The array. Without a home, there is no element for it, and without groups and a home none for the groups."""
    more = [groups, home] if home else [groups] if groups else []
    return [device_id, key.scalar, key.point, *more, issuers, policy]


# Reading


def read(flash):
    """The elements by name, each rule checked; `groups` is the names, and `home` is None or a list."""
    first = flash[:4]
    require(first != b"\xff" * 4, "Unprovisioned")
    require(first == MAGIC, "Prefix")
    require(flash[4:8] == word(1), "WrongVersion")
    length = int.from_bytes(flash[8:12], "little")
    require(length <= LONGEST, "TooLarge")
    end = 12 + (length + 3) // 4 * 4
    require(flash[end : end + 32] == sha256(flash[:end]), "Checksum")
    elements = cbor.decode(flash[12 : 12 + length])
    require(isinstance(elements, list), "WrongType")
    require(5 <= len(elements) <= 7, "WrongCount")
    device_id, scalar, point, *more, issuers, policy = elements
    _check_identity(device_id, scalar, point)
    # Null stands for no groups only where a home follows.
    has_groups = len(more) == 1 or (len(more) == 2 and more[0] is not None)
    found = {
        "device_id": device_id,
        "point": point,
        "groups": _groups(more[0], device_id) if has_groups else [],
        "home": _home(more[1]) if len(more) == 2 else None,
    }
    _check_issuers(issuers)
    _check_policy(policy)
    return {**found, "issuers": issuers, "policy": policy}


def _check_identity(device_id, scalar, point):
    require_bytes(device_id, 16)
    require_bytes(scalar, 32)
    require_bytes(point, POINT)
    require(0 < int.from_bytes(scalar, "big") < ORDER, "KeyPair")
    require(PrivateKey(scalar).point == point, "KeyPair")


def _groups(value, device_id):
    rows, names = require_list(value, 2)
    bulletins.check_list(rows)
    require(isinstance(names, list), "WrongType")
    require(1 <= len(names) <= bulletins.MOST_GROUPS, "WrongCount")
    for name in names:
        require(isinstance(name, str), "WrongType")
    require(len(set(names)) == len(names), "DuplicateEntry")
    require([rows, names] == groups(device_id, names), "Audiences")
    return names


def _home(value):
    kid, refuses, point = require_list(value, 3)
    require_bytes(kid, 8)
    require_range(refuses, 0, 1)
    require_bytes(point, POINT)
    require(point[0] == 4 or point == NO_POINT, "Point")
    return [kid, refuses == 1, None if point == NO_POINT else point]


def _check_issuers(issuers):
    require(isinstance(issuers, list), "WrongType")
    require(len(issuers) <= ISSUERS, "NoRoom")
    for issuer in issuers:
        kid, key = require_list(issuer, 2)
        require_bytes(kid, 8)
        require_bytes(key, 32, POINT)
    require(len({kid for kid, _ in issuers}) == len(issuers), "DuplicateIssuer")


def _check_policy(policy):
    unsigned, mac, advance, limits, codes, commands = require_list(policy, 6)
    require_range(unsigned, 0, 1)
    require_range(mac, 0, 1)
    require(require_range(advance, 0, 36500 * 86400) % 86400 == 0, "OutOfRange")
    _check_limits(limits)
    for value, most in zip(require_list(codes, 3), (100, 600, 64), strict=True):
        require_range(value, 1, most)
    require(isinstance(commands, list), "WrongType")
    require(len(commands) <= COMMANDS, "NoRoom")
    for command in commands:
        name, factors, limits, compatibility = require_list(command, 4)
        require_text(name, 32)
        require_range(factors, 0, 15)
        _check_limits(limits)
        require_range(compatibility, 0, 1)
    require(len({command[0] for command in commands}) == len(commands), "DuplicateCommand")


def _check_limits(limits):
    generation, version, age = require_list(limits, 3)
    require_uint(generation)
    for number in require_list(version, 3):
        require_uint(number)
    unless_null(age, require_uint)
