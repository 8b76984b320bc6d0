"""A device's audit log: its entries, read strictly, their hash chain, and the file of entries."""

import json
import re

from . import cbor, session
from .primitives import sha256
from .refusal import Refused, require, require_uint

START = bytes(32)


def _below(limit, least=0):
    def check(value):
        require_uint(value)
        require(least <= value < limit, "OutOfRange")

    return check


def _text(most, least=0):
    def check(value):
        require(isinstance(value, str), "WrongType")
        require(len(value.encode()) >= least, "EmptyText")
        require(len(value.encode()) <= most, "TextTooLong")

    return check


def _bytes(size):
    def check(value):
        require(isinstance(value, bytes), "WrongType")
        require(len(value) == size, "WrongSize")

    return check


def _or_null(check):
    return lambda value: None if value is None else check(value)


def _digest_or_text(value):
    (_bytes(32) if isinstance(value, bytes) else _text(64))(value)


def _version(value):
    require(isinstance(value, list), "WrongType")
    require(len(value) == 3, "WrongCount")
    for number in value:
        require_uint(number)


def _totals(value):
    require(isinstance(value, list) and all(isinstance(pair, list) for pair in value), "WrongType")
    last = -1
    for pair in value:
        require(len(pair) == 2, "WrongCount")
        _status(pair[0])
        require(pair[0] > last, "UnsortedTotals")
        last = pair[0]
        _below(2**32, 1)(pair[1])


_status = _below(len(session.TABLE))
_kid, _id, _digest, _user = _bytes(8), _bytes(16), _bytes(32), _text(32)
_ROUND = (_status, _text(32), _or_null(_kid), _id, _text(64), _below(2))
# By number: the checks of what follows sequence, time and kind.
KINDS = {
    0: _ROUND,
    1: (_totals,),
    2: (_id,),
    3: (require_uint,),
    4: (),
    5: (_kid,),
    6: (_kid,),
    7: (_or_null(_digest),),
    8: (require_uint, require_uint),
    9: (_kid, require_uint, require_uint),
    10: (_id,),
    11: (_below(3, 1), _user),
    12: (_user,),
    13: (_user,),
    14: (_user,),
    15: (_user,),
    16: (*_ROUND, _user),
    17: (_below(len(session.TABLE), 1), _or_null(_kid), _or_null(_id), _below(2**53, 1)),
    18: (require_uint, _digest),
    19: (require_uint, _below(8), _digest_or_text),
    20: (require_uint, _below(8), _text(64)),
    21: (_user, require_uint),
    22: (_or_null(_kid),),
    23: (require_uint, _text(64, 1)),
    24: (_kid, _id, require_uint),
    25: (_kid, require_uint),
    26: (require_uint,),
}
# The kinds of rounds, which end with these since the log names transport and version.
ROUNDS = (0, 16)
ORIGIN = (_or_null(_below(6, 1)), _version)


def parse_entry(data):
    """The elements of an entry."""
    fields = cbor.decode(data)
    require(isinstance(fields, list), "WrongType")
    require(len(fields) >= 3, "WrongCount")
    for number in fields[:3]:
        require_uint(number)
    require(fields[2] in KINDS, "UnknownKind")
    checks = KINDS[fields[2]]
    if fields[2] in ROUNDS and len(fields) == 3 + len(checks) + len(ORIGIN):
        checks = (*checks, *ORIGIN)
    require(len(fields) == 3 + len(checks), "WrongCount")
    for check, value in zip(checks, fields[3:], strict=True):
        check(value)
    require(fields[2] != 17 or fields[5] is not None or fields[4] is None, "KeyWithoutToken")
    return fields


def chained(head, entry):
    """The hash of an entry after the one with `head`."""
    return sha256(b"holdfast/1 audit\x00" + head + entry)


def file(device_id, entries, after=0, head=START):
    """The bytes of a file of entries that lead on from entry `after` with its hash `head`."""
    lines = [{"holdfast_audit": 1, "device_id": device_id.hex(), "after": after, "head": head.hex()}]
    for entry in entries:
        lines.append({"entry": entry.hex()})
        head = chained(head, entry)
    return write([*lines, {"through": after + len(entries), "head": head.hex()}])


def write(lines):
    return b"".join(json.dumps(line, separators=(",", ":")).encode() + b"\n" for line in lines)


def _strict(pairs):
    require(len({name for name, _ in pairs}) == len(pairs), "DuplicateMember")
    return dict(pairs)


def _no(_):
    raise Refused("NumberForm")


def _object(line, *names):
    try:
        value = json.loads(line.decode(), object_pairs_hook=_strict, parse_float=_no, parse_constant=_no)
    except UnicodeDecodeError:
        raise Refused("NotUtf8") from None
    except ValueError:
        raise Refused("JsonSyntax") from None
    require(isinstance(value, dict), "WrongType")
    require(set(names) <= value.keys(), "MissingMember")
    require(value.keys() <= set(names), "UnknownMember")
    return value


def _hexadecimal(text, size=None):
    require(isinstance(text, str), "WrongType")
    require(re.fullmatch("([0-9a-f]{2})*", text), "Hexadecimal")
    require(size is None or len(text) == 2 * size, "WrongSize")
    return bytes.fromhex(text)


def verify_file(data):
    """The entries of a file whose chain leads from the first head to the last."""
    require(data.endswith(b"\n"), "Truncated")
    lines = data[:-1].split(b"\n")
    require(len(lines) >= 2, "Truncated")
    first = _object(lines[0], "holdfast_audit", "device_id", "after", "head")
    require(first["holdfast_audit"] == 1 and not isinstance(first["holdfast_audit"], bool), "WrongVersion")
    last = _object(lines[-1], "through", "head")
    _hexadecimal(first["device_id"], 16)
    number, head = first["after"], _hexadecimal(first["head"], 32)
    for value in (number, last["through"]):
        require_uint(value)
    entries = [_hexadecimal(_object(line, "entry")["entry"]) for line in lines[1:-1]]
    end = _hexadecimal(last["head"], 32)
    for entry in entries:
        number, head = number + 1, chained(head, entry)
        require(parse_entry(entry)[0] == number, "Sequence")
    require((number, head) == (last["through"], end), "Chain")
    return entries
