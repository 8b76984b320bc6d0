"""audit_test.json: entries of a device's audit log, and files of entries with their hash chain."""

import json

from holdfast_peer import audit, cbor, session
from holdfast_peer.cbor import Encoded, Tag, encode, head

from .notes import NOTES
from .token_cases import DEVICE_ID, ISSUER, LARGEST
from .vector_file import VectorFile, pin

NOW = 1790000100
TOKEN, DIGEST = pin("audit/token", 16), pin("audit/digest", 32)
ROUND = [session.STATUS["accepted"], "unlock", ISSUER.kid, TOKEN, "app", 0]
# One entry of each kind: number, elements that follow.
ENTRIES = {
    "created": (2, [DEVICE_ID]),
    "issuer trusted": (5, [ISSUER.kid]),
    "policy seen": (7, [DIGEST]),
    "started": (3, [1]),
    "code issued": (11, [1, "alice"]),
    "activated": (12, ["alice"]),
    "round": (0, ROUND),
    "parameter by digest": (19, [7, 0, DIGEST]),
    "round with a user": (16, [*ROUND, "alice"]),
    "command failed": (20, [9, 0, "the bolt is stuck"]),
    "event of the actuator": (23, [9, "door open"]),
    "denied": (17, [session.STATUS["tokenExpired"], ISSUER.kid, TOKEN, 3]),
    "unproved": (1, [[[1, 2], [6, 1]]]),
    "clock floor moved": (8, [NOW, NOW + 5]),
    "generation floor moved": (9, [ISSUER.kid, 1, 2]),
    "added": (13, ["bob"]),
    "unlocked": (14, ["alice"]),
    "locked": (21, ["bob", NOW + 60]),
    "removed": (15, ["bob"]),
    "log cut": (18, [3, DIGEST]),
    "key for policies": (22, [ISSUER.kid]),
    "bulletin taken": (24, [ISSUER.kid, DEVICE_ID, 1000 * NOW]),
    "issuer removed": (6, [ISSUER.kid]),
    "round with transport and version": (0, [*ROUND, 5, [1, 2, 3]]),
    "round with a user, and a version": (16, [*ROUND, "alice", None, [0, 0, 0]]),
    "receipt refused": (25, [ISSUER.kid, 9]),
    "entries lost": (26, [12]),
    "stopped": (4, []),
    "reset": (10, [pin("audit/reset", 16)]),
}


def audit_file():
    file = VectorFile(
        "HoldfastAudit",
        "audit_schema_v1.json",
        [
            "AuditEntry: the bytes of one entry of an audit log.",
            "AuditFile: a file of entries as `device audit --to` writes it; its chain must lead from the first head to the last.",
        ],
        NOTES,
    )
    for (kind, check), write in zip(CHECKS.items(), (_entries, _files), strict=True):
        write(file.group(kind, check))
    return file


CHECKS = {
    "AuditEntry": lambda entry: audit.parse_entry(entry),
    "AuditFile": lambda file: audit.verify_file(file),
}


def _entries(group):
    def valid(comment, items, flags=("Normal",)):
        group.valid(comment, flags, entry=encode(items))

    for name, (kind, details) in ENTRIES.items():
        valid(name, [7, NOW, kind, *details])
    for comment, kind, details in (
        ("round of an unsigned token", 0, [0, "unlock", None, TOKEN, "app", 0]),
        ("compatibility round", 0, [0, "unlock", ISSUER.kid, TOKEN, "app", 1]),
        ("unlock code issued", 11, [2, "alice"]),
        ("policy that cannot be used", 7, [None]),
        ("no key for policies", 22, [None]),
        ("denied, by status only", 17, [2, None, None, 1]),
        ("denied, an unsigned token", 17, [2, None, TOKEN, 1]),
        ("parameter as text", 19, [7, 7, "2026-11-21"]),
        ("refused by the user", 20, [7, 7, ""]),
    ):
        valid(comment, [7, NOW, kind, *details])
    for comment, items in (
        ("sequence and time of 0", [0, 0, 4]),
        ("sequence and time of 2^53 - 1", [LARGEST, LARGEST, 4]),
        ("no totals", [7, NOW, 1, []]),
        ("totals of each status", [7, NOW, 1, [[status, 2**32 - 1] for status in range(18)]]),
        ("user of 32 bytes", [7, NOW, 12, "\u00fc" * 16]),
        ("subject of 64 bytes", [7, NOW, 0, 0, "c" * 32, ISSUER.kid, TOKEN, "s" * 64, 0]),
        ("words of 64 bytes", [7, NOW, 20, 1, 6, "w" * 64]),
        ("event of 1 byte", [7, NOW, 23, 1, "e"]),
        ("event of 64 bytes", [7, NOW, 23, 1, "e" * 64]),
    ):
        valid(comment, items, ("Boundary",))
    _bad_entries(group)


def _bad_entries(group):
    def raw(comment, flag, data):
        group.invalid(comment, flag, entry=data)

    def invalid(comment, flag, kind, *details):
        raw(comment, flag, encode([7, NOW, kind, *details]))

    for name, (kind, details) in ENTRIES.items():
        invalid(f"{name}, an element too many", "WrongCount", kind, *details, 0)
        if details:
            invalid(f"{name}, an element too few", "WrongCount", kind, *details[:-1])
    for kind in (27, 28, 255, 256, 65536):
        invalid(f"kind {kind}", "UnknownKind", kind)
    raw("kind negative", "WrongType", encode([7, NOW, -1]))
    raw("kind as text", "WrongType", encode([7, NOW, "4"]))
    raw("sequence null", "WrongType", encode([None, NOW, 4]))
    raw("sequence negative", "WrongType", encode([-1, NOW, 4]))
    raw("sequence 2^53", "IntegerTooLarge", encode([2**53, NOW, 4]))
    raw("time as a float", "Float", encode([7, Encoded(bytes.fromhex("fb41daac5264000000")), 4]))
    raw("no kind", "WrongCount", encode([7, NOW]))
    status, command, kid, token, subject, form = ROUND

    def bad_round(comment, flag, **changes):
        values = {"status": status, "command": command, "kid": kid, "token": token, "subject": subject, "form": form}
        invalid(f"round: {comment}", flag, 0, *{**values, **changes}.values())

    bad_round("status 18", "OutOfRange", status=18)
    bad_round("status 256", "OutOfRange", status=256)
    bad_round("status negative", "WrongType", status=-1)
    bad_round("command of 33 bytes", "TextTooLong", command="c" * 33)
    bad_round("command as bytes", "WrongType", command=b"unlock")
    for size in (0, 7, 9):
        bad_round(f"key id of {size} bytes", "WrongSize", kid=(kid * 2)[:size])
    bad_round("token id of 15 bytes", "WrongSize", token=token[:15])
    bad_round("token id null", "WrongType", token=None)
    bad_round("subject of 65 bytes", "TextTooLong", subject="s" * 65)
    bad_round("form 2", "OutOfRange", form=2)
    bad_round("form true", "WrongType", form=True)
    for comment, flag, transport, version in (
        ("transport 0", "OutOfRange", 0, [1, 2, 3]),
        ("transport 6", "OutOfRange", 6, [1, 2, 3]),
        ("transport 257", "OutOfRange", 257, [1, 2, 3]),
        ("transport as text", "WrongType", "le", [1, 2, 3]),
        ("version of two numbers", "WrongCount", 1, [1, 2]),
        ("version with a negative number", "WrongType", 1, [1, 2, -3]),
        ("version null", "WrongType", 1, None),
    ):
        invalid(f"round: {comment}", flag, 0, *ROUND, transport, version)
    for comment, flag, kind, details in (
        ("receipt refused of no key", "WrongType", 25, [None, 9]),
        ("receipt refused up to a negative number", "WrongType", 25, [ISSUER.kid, -9]),
        ("entries lost as text", "WrongType", 26, ["12"]),
        ("user of 33 bytes", "TextTooLong", 12, ["u" * 33]),
        ("user null", "WrongType", 12, [None]),
        ("code issued for purpose 0", "OutOfRange", 11, [0, "alice"]),
        ("code issued for purpose 3", "OutOfRange", 11, [3, "alice"]),
        ("code issued for purpose 257", "OutOfRange", 11, [257, "alice"]),
        ("policy with a digest of 31 bytes", "WrongSize", 7, [DIGEST[:31]]),
        ("device id of 17 bytes", "WrongSize", 2, [DEVICE_ID + b"\0"]),
        ("boot count null", "WrongType", 3, [None]),
        ("clock floor moved to a negative time", "WrongType", 8, [NOW, -1]),
        ("denied, but accepted", "OutOfRange", 17, [0, ISSUER.kid, TOKEN, 1]),
        ("denied no times", "OutOfRange", 17, [2, ISSUER.kid, TOKEN, 0]),
        ("denied with a key and no token", "KeyWithoutToken", 17, [2, ISSUER.kid, None, 1]),
        ("totals out of order", "UnsortedTotals", 1, [[[6, 1], [1, 2]]]),
        ("totals with a status twice", "UnsortedTotals", 1, [[[6, 1], [6, 2]]]),
        ("totals with a count of 0", "OutOfRange", 1, [[[6, 0]]]),
        ("totals with a count of 2^32", "OutOfRange", 1, [[[6, 2**32]]]),
        ("totals with an unknown status", "OutOfRange", 1, [[[18, 1]]]),
        ("totals with three elements", "WrongCount", 1, [[[6, 1, 1]]]),
        ("totals as a map", "WrongType", 1, [{6: 1}]),
        ("log cut with a head of 31 bytes", "WrongSize", 18, [3, DIGEST[:31]]),
        ("parameter 8", "OutOfRange", 19, [7, 8, DIGEST]),
        ("parameter 256", "OutOfRange", 19, [7, 256, DIGEST]),
        ("parameter with a digest of 31 bytes", "WrongSize", 19, [7, 0, DIGEST[:31]]),
        ("parameter of 65 bytes", "TextTooLong", 19, [7, 0, "p" * 65]),
        ("parameter null", "WrongType", 19, [7, 0, None]),
        ("failed for reason 8", "OutOfRange", 20, [7, 8, ""]),
        ("words of 65 bytes", "TextTooLong", 20, [7, 0, "w" * 65]),
        ("event of 65 bytes", "TextTooLong", 23, [7, "e" * 65]),
        ("event of no bytes", "EmptyText", 23, [7, ""]),
        ("event as bytes", "WrongType", 23, [7, b"open"]),
        ("bulletin for an audience of 15 bytes", "WrongSize", 24, [ISSUER.kid, DEVICE_ID[:15], 1]),
        ("bulletin of no key", "WrongType", 24, [None, DEVICE_ID, 1]),
        ("bulletin with a negative number", "WrongType", 24, [ISSUER.kid, DEVICE_ID, -1]),
    ):
        invalid(comment, flag, kind, *details)
    items = [7, NOW, 5, ISSUER.kid]
    good, body = encode(items), b"".join(map(encode, items))
    raw("empty", "Truncated", b"")
    raw("cut short", "Truncated", good[:-1])
    raw("a byte behind it", "TrailingBytes", good + b"\0")
    raw("twice", "TrailingBytes", good * 2)
    raw("a map", "WrongType", encode(dict(enumerate(items))))
    raw("in a byte string", "WrongType", encode(good))
    raw("of indefinite length", "IndefiniteLength", b"\x9f" + body + b"\xff")
    raw("length in two bytes", "NonMinimalInteger", head(cbor.ARRAY, 4, 1) + body)
    raw("sequence in two bytes", "NonMinimalInteger", encode([Encoded(b"\x18\x07"), *items[1:]]))
    raw("tagged", "UnknownTag", encode(Tag(24, items)))
    raw("kind undefined", "SimpleValue", encode([7, NOW, Encoded(b"\xf7")]))
    raw("user not UTF-8", "NotUtf8", encode([7, NOW, 12, Encoded(b"\x62\xc3\x28")]))


# Files


def _log(count=None, after=0):
    kinds = list(ENTRIES.values())[:count]
    return [encode([after + number, NOW + number, kind, *details]) for number, (kind, details) in enumerate(kinds, 1)]


def _files(group):
    def valid(comment, data, flags=("Normal",)):
        group.valid(comment, flags, file=data)

    valid("one entry of each kind", audit.file(DEVICE_ID, _log()))
    valid("one entry", audit.file(DEVICE_ID, _log(1)))
    valid("no entry", audit.file(DEVICE_ID, []), ("Boundary",))
    valid("behind a cut", audit.file(DEVICE_ID, _log(4, 99), 99, pin("audit/cut", 32)))
    valid("no entry behind a cut", audit.file(DEVICE_ID, [], 99, pin("audit/cut", 32)), ("Boundary",))
    spaced = b"\n".join(b" " + line + b" " for line in audit.file(DEVICE_ID, _log(2)).split(b"\n")[:-1]) + b"\n"
    valid("spaces around the objects", spaced, ("Representation",))
    _bad_files(group)


def _bad_files(group):
    entries = _log(5)
    good = audit.file(DEVICE_ID, entries)
    lines = [json.loads(line) for line in good.splitlines()]

    def raw(comment, flag, data):
        group.invalid(comment, flag, file=data)

    def changed(comment, flag, index, **changes):
        line = {k: v for k, v in {**lines[index], **changes}.items() if v is not ...}
        position = index % len(lines)
        raw(comment, flag, audit.write([*lines[:position], line, *lines[position + 1 :]]))

    def replaced(comment, flag, index, line):
        text = good.split(b"\n")
        text[index] = line
        raw(comment, flag, b"\n".join(text))

    flipped = bytearray(entries[2])
    flipped[-1] ^= 1
    changed("a bit of an entry changed", "Chain", 3, entry=bytes(flipped).hex())
    moved = encode([3, NOW + 4, *cbor.decode(entries[2])[2:]])
    changed("the time of an entry changed", "Chain", 3, entry=moved.hex())
    for comment, other in (
        ("an entry removed", [*entries[:2], *entries[3:]]),
        ("an entry twice", [*entries[:3], *entries[2:]]),
        ("two entries exchanged", [entries[0], entries[2], entries[1], *entries[3:]]),
        ("an entry of another number", [encode([2, *cbor.decode(entries[0])[1:]]), *entries[1:]]),
    ):
        raw(f"{comment}, and the chain made again", "Sequence", audit.file(DEVICE_ID, other))
    raw("the first entry removed", "Sequence", audit.write([lines[0], *lines[2:]]))
    raw("the last entry removed", "Chain", audit.write([*lines[:-2], lines[-1]]))
    raw(
        "the last entry removed, and the count made right",
        "Chain",
        audit.write([*lines[:-2], {**lines[-1], "through": 4}]),
    )
    other_start = audit.chained(audit.START, b"")
    changed("another first head", "Chain", 0, head=other_start.hex())
    changed("another last head", "Chain", -1, head=other_start.hex())
    changed("the first head as the last", "Chain", -1, head=audit.START.hex())
    changed("a larger last number", "Chain", -1, through=6)
    changed("a smaller last number", "Chain", -1, through=4)
    changed("a larger first number", "Sequence", 0, after=1)
    unlabelled = audit.START
    for entry in entries:
        unlabelled = audit.sha256(unlabelled + entry)
    changed("a chain without its label", "Chain", -1, head=unlabelled.hex())
    changed("an entry that is none, and a chain over it", "UnknownKind", 3, entry=encode([3, NOW, 99]).hex())
    changed("an entry cut short", "Truncated", 3, entry=entries[2][:-1].hex())
    changed("an entry empty", "Truncated", 3, entry="")
    changed("version 0", "WrongVersion", 0, holdfast_audit=0)
    changed("version 2", "WrongVersion", 0, holdfast_audit=2)
    changed("version as text", "WrongVersion", 0, holdfast_audit="1")
    changed("device id of 15 bytes", "WrongSize", 0, device_id=DEVICE_ID[:15].hex())
    changed("device id missing", "MissingMember", 0, device_id=...)
    changed("first head of 31 bytes", "WrongSize", 0, head=audit.START[:31].hex())
    changed("last head of 33 bytes", "WrongSize", -1, head=lines[-1]["head"] + "00")
    changed("a head with other letters", "Hexadecimal", -1, head="g" + lines[-1]["head"][1:])
    changed("an entry with a digit too many", "Hexadecimal", 3, entry=entries[2].hex() + "0")
    changed("a member too many in the first line", "UnknownMember", 0, more=1)
    changed("a member too many in an entry", "UnknownMember", 3, time=NOW)
    changed("a member too many in the last line", "UnknownMember", -1, more=1)
    changed("first number negative", "WrongType", 0, after=-1)
    changed("first number as text", "WrongType", 0, after="0")
    changed("last number null", "WrongType", -1, through=None)
    changed("an entry as a list", "WrongType", 3, entry=[3])
    raw("empty", "Truncated", b"")
    raw("a line end only", "Truncated", b"\n")
    raw("the first line only", "Truncated", audit.write(lines[:1]))
    raw("without the last line", "MissingMember", audit.write(lines[:-1]))
    raw("without the first line", "MissingMember", audit.write(lines[1:]))
    raw("without the last line end", "Truncated", good[:-1])
    raw("cut within a line", "Truncated", good[:-20])
    raw("an empty line behind it", "JsonSyntax", good + b"\n")
    raw("a second file behind it", "MissingMember", good + good)
    replaced("an empty line within it", "JsonSyntax", 3, b"")
    replaced("a line that is not JSON", "JsonSyntax", 3, b"{")
    replaced("a line that is a list", "WrongType", 3, b"[]")
    replaced("a line with two objects", "JsonSyntax", 3, b"{}{}")
    replaced("a line that is not UTF-8", "NotUtf8", 3, b'{"entry":"\xff"}')
    twice = b'{"entry":"' + entries[2].hex().encode() + b'",'
    replaced("an entry's member twice", "DuplicateMember", 3, twice + twice[1:-1] + b"}")
    replaced("a fraction in a number", "NumberForm", 6, good.split(b"\n")[6].replace(b'"through":5', b'"through":5.0'))
