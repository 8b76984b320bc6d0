"""Images of a device with groups, of one whose audit log has a home, and of one that has taken bulletins and receipts."""

import functools

from holdfast_peer import bulletins, flash, provision
from holdfast_peer.cbor import Encoded, Tag, encode, head
from holdfast_peer.keys import PrivateKey

from . import firmware_image_cases as cases
from .firmware_image_cases import FIRST, FLOOR, KID, LOG, NOW, OWNER, STATE, TOKEN, entry, log
from .token_cases import DEVICE, DEVICE_ID, LARGEST, OTHER_DEVICE_ID, STRANGER
from .vector_file import pin

AGREEMENT = PrivateKey(pin("image/agreement", 32)).point
DROPS = provision.home(KID, False, AGREEMENT)
REFUSES = provision.home(KID, True, AGREEMENT)
NAMES = ["north", "doors"]
GROUPS = provision.groups(DEVICE_ID, NAMES)
LIST = bulletins.list_of([DEVICE_ID], {DEVICE_ID: 1000 * NOW + 7})
TAKEN = [14, KID, 2, LIST]
HEAD = pin("image/head", 32)
BASE = [2, 41, HEAD]
REVOKED = TOKEN + KID + (NOW + 3600).to_bytes(8, "big")


def owner(*more, **form):
    """The owner's pages, with these elements before the issuers."""
    return provision.pages(encode([*OWNER[:3], *more, *OWNER[3:]]), **form)


def add(group):
    _groups(group)
    _homes(group)
    _receipts(group)
    _bulletins(group)
    _bad_groups(group)
    _bad_homes(group)
    _bad_items(group)


# Valid


def _groups(group):
    def valid(comment, names, flags=("Normal",)):
        groups = provision.groups(DEVICE_ID, names)
        cases.valid(group, comment, flash.image(owner(groups), FIRST), flags)

    valid("a group", ["north"])
    valid("two groups", NAMES)
    valid("groups whose names are not in order", ["south", "north"])
    valid("8 groups", [f"group {number}" for number in range(8)], ("Boundary",))
    valid("groups with names of 1 and 32 bytes", ["g", "\u00fc" * 16], ("Boundary",))


def _homes(group):
    def valid(comment, *more, flags=("Normal",), first=FIRST):
        cases.valid(group, comment, flash.image(owner(*more), first), flags)

    valid("a home, and a log that drops entries", None, DROPS)
    valid("a home, and a log that refuses commands", None, REFUSES)
    valid("a home without a key for agreement", None, provision.home(KID, False))
    valid("a home without a key for agreement, and a log that refuses commands", None, provision.home(KID, True))
    valid("a home and groups", GROUPS, DROPS)
    valid("a home that the device does not trust", None, provision.home(STRANGER.kid, False))
    valid("a home whose id is zeros", None, provision.home(bytes(8), False, AGREEMENT), flags=("Boundary",))


def _receipts(group):
    valid = functools.partial(_valid_log, group)
    both = flash.transaction_size(LOG[1][0]) + flash.transaction_size(LOG[2][0])
    second = flash.transaction_size(LOG[2][0])
    valid("no receipt")
    valid("a receipt for the first entry", [16, 1, second])
    valid("a receipt for the whole log", [16, 2, 0], flags=("Boundary",))
    valid("a receipt for no entry", [16, 0, both], flags=("Boundary",))
    valid("entries after a receipt", [16, 1, second], *log(3, 3))
    valid("two receipts", [16, 1, second], entry(3, 3, 4), [16, 3, 0], entry(4, 4))
    valid("a receipt for a log that refuses commands", [16, 2, 0], *log(2, 3), home=REFUSES)
    valid("a receipt for a home without a key for agreement", [16, 2, 0], home=provision.home(KID, False))
    valid("a receipt that was refused", entry(3, 25, KID, 2))
    valid("entries whose items are one byte apart", *(entry(n, 13, "u" * n) for n in range(3, 12)))
    valid("a receipt that goes back", [16, 2, 0], [16, 1, second], entry(3, 4))
    valid("a receipt beyond the end of the log", [16, 3, 0], *log(3, 3), flags=("Boundary",))
    valid("the greatest receipt", [16, LARGEST, 0], entry(3, 4), flags=("Boundary",))
    valid("a receipt with the bytes of a slot", [16, 1, flash.SLOT_SIZE], entry(3, 4), flags=("Boundary",))
    _valid_log(group, "a receipt for a log without a home", [16, 1, second], entry(3, 4), home=None)
    # The journal moves: the state and the receipt come first, then the base, and all entries that are kept.
    moved = [[STATE, [16, 45, 0]], [BASE], *([item] for item in log(4, 42))]
    _valid_slot(group, "a log that moved, with acknowledged entries", moved)
    _valid_slot(group, "a log that moved, and waits for its home", [*moved, *([item] for item in log(3, 46))])
    _valid_slot(group, "a log that moved, all of it acknowledged", [[STATE, [16, 41, 0]], [BASE]])
    lost = [[STATE], [BASE], *([item] for item in log(3, 42)), [entry(45, 26, 30)]]
    _valid_slot(group, "a log that moved and lost entries", lost)
    again = [[STATE, [16, 20, 0]], *lost[1:], *([item] for item in log(2, 46)), [[16, 46, 28]], [entry(48, 26, 1)]]
    _valid_slot(group, "a log that lost entries behind those that were acknowledged", again)
    _valid_slot(group, "a log that lost all it could", [[STATE], [BASE], [entry(42, 26, LARGEST)]], ("Boundary",))


def _valid_log(group, comment, *items, home=DROPS, flags=("Normal",)):
    first = flash.slot(1, [*LOG, *([item] for item in items)])
    pages = owner(None, home) if home else owner()
    cases.valid(group, f"home: {comment}", flash.image(pages, first), flags)


def _valid_slot(group, comment, transactions, flags=("Normal",)):
    image = flash.image(owner(None, DROPS), b"", flash.slot(6, transactions))
    cases.valid(group, f"home: {comment}", image, flags)


def _bulletins(group):
    def valid(comment, *items, flags=("Normal",)):
        first = flash.slot(1, [*LOG, *([item] for item in items)])
        cases.valid(group, f"bulletins: {comment}", flash.image(owner(GROUPS), first), flags)

    three = bulletins.list_of([row[0] for row in GROUPS[0]], {DEVICE_ID: 1000 * NOW})
    valid("numbers of a key", [14, KID, 0, three])
    valid("numbers in place of a generation floor", FLOOR, [14, KID, 5, three])
    valid("a generation floor in place of numbers", TAKEN, [4, KID, 5])
    nine = [[pin(f"image/audience {number}", 16), number] for number in range(9)]
    valid("numbers of nine audiences", [14, KID, 0, sorted(nine)], flags=("Boundary",))
    keys = [pin(f"image/kid {number}", 8) for number in range(16)]
    valid("numbers of 16 keys", *([14, key, 1, LIST] for key in keys), flags=("Boundary",))
    valid("a revoked token", [15, REVOKED])
    valid("no revoked token", [15, b""], flags=("Boundary",))
    valid("64 revoked tokens", [15, b"".join(pin(f"image/revoked {n}", 32) for n in range(64))], flags=("Boundary",))
    taken = entry(3, 24, KID, DEVICE_ID, 1000 * NOW + 7)
    first = flash.slot(1, [*LOG, [[15, REVOKED], TAKEN, STATE, taken]])
    cases.valid(group, "bulletins: one transaction", flash.image(owner(), first))


# Invalid


def _bad_groups(group):
    def invalid(comment, flag, *more):
        cases.invalid(group, f"groups: {comment}", flag, flash.image(owner(*more), FIRST))

    rows, names = GROUPS
    invalid("null without a home", "WrongType", None)
    invalid("a map", "WrongType", {0: rows, 1: names})
    invalid("names only", "WrongCount", [names])
    invalid("three elements", "WrongCount", [rows, names, 0])
    invalid("no name", "WrongCount", [LIST, []])
    invalid("9 groups", "WrongCount", _groups_of([f"group {number}" for number in range(9)]))
    invalid("names null", "WrongType", [rows, None])
    invalid("a name as bytes", "WrongType", [rows, [b"north", "doors"]])
    invalid("a name without a byte", "GroupName", [rows, ["", "doors"]])
    invalid("a name of 33 bytes", "GroupName", [rows, ["n" * 33, "doors"]])
    invalid("a name that is not UTF-8", "NotUtf8", [rows, [Encoded(b"\x62\xc3\x28")]])
    invalid("a name twice", "DuplicateEntry", [rows, ["north", "north"]])
    invalid("a group without its audience", "Audiences", [rows[1:], names])
    invalid("an audience without its group", "Audiences", [rows, names[:1]])
    invalid("the audience of another group", "Audiences", [rows, ["north", "gates"]])
    other = provision.groups(OTHER_DEVICE_ID, names)
    invalid("the list of another device", "Audiences", other)
    invalid("a number that is not 0", "Audiences", [[[rows[0][0], 1], *rows[1:]], names])
    invalid("audiences in another order", "UnsortedEntries", [rows[::-1], names])
    invalid("an audience twice", "DuplicateEntry", [[rows[0], *rows], names])
    invalid("an audience of 15 bytes", "WrongSize", [[[rows[0][0][:15], 0], *rows[1:]], names])


def _groups_of(names):
    """The element, with names that a device cannot have."""
    return [bulletins.list_of([DEVICE_ID, *map(bulletins.group_id, names[:8])], {}), names]


def _bad_homes(group):
    def raw(comment, flag, pages):
        cases.invalid(group, f"home: {comment}", flag, flash.image(pages, FIRST))

    def invalid(comment, flag, home):
        raw(comment, flag, owner(None, home))

    kid, refuses, point = DROPS
    raw("without the groups or null", "WrongCount", owner(DROPS))
    raw("false in place of the groups", "WrongType", owner(False, DROPS))
    raw("undefined in place of the groups", "SimpleValue", owner(Encoded(b"\xf7"), DROPS))
    raw("before the groups", "WrongCount", owner(DROPS, GROUPS))
    raw("twice", "WrongCount", owner(DROPS, DROPS))
    raw("twice, behind null", "WrongCount", owner(None, DROPS, DROPS))
    raw("behind the issuers", "WrongCount", provision.pages(encode([*OWNER[:3], None, OWNER[3], DROPS, OWNER[4]])))
    raw("with a device id in place of a public key", "WrongSize", _pages([DEVICE_ID, DEVICE.scalar, DEVICE_ID]))
    raw("a byte behind the array", "TrailingBytes", provision.pages(_body() + b"\0"))
    raw("the array cut short", "Truncated", provision.pages(_body()[:-1]))
    raw("the head of a longer array", "Truncated", provision.pages(b"\x88" + _body()[1:]))
    raw("the head of a shorter array", "TrailingBytes", provision.pages(b"\x86" + _body()[1:]))
    raw("the length of the array in a byte", "NonMinimalInteger", provision.pages(b"\x98\7" + _body()[1:]))
    raw("an array of indefinite length", "IndefiniteLength", provision.pages(b"\x9f" + _body()[1:] + b"\xff"))
    invalid("null", "WrongType", None)
    invalid("a point", "WrongType", AGREEMENT)
    invalid("a map", "WrongType", {0: kid, 1: refuses, 2: point})
    invalid("tagged", "UnknownTag", Tag(24, DROPS))
    invalid("no element", "WrongCount", [])
    invalid("without a point", "WrongCount", DROPS[:2])
    invalid("without its switch", "WrongCount", [kid, point])
    invalid("an element too many", "WrongCount", [*DROPS, 0])
    invalid("of indefinite length", "IndefiniteLength", Encoded(b"\x9f" + encode(DROPS)[1:] + b"\xff"))
    invalid("the length of the array in two bytes", "NonMinimalInteger", Encoded(b"\x99\0\3" + encode(DROPS)[1:]))
    for size in (0, 7, 9, 16):
        invalid(f"an id of {size} bytes", "WrongSize", [(kid * 2)[:size], refuses, point])
    invalid("an id as text", "WrongType", ["k" * 8, refuses, point])
    invalid("an id null", "WrongType", [None, refuses, point])
    invalid("an id with its length in a byte", "NonMinimalInteger", [_long(kid), refuses, point])
    for value in (2, 255, LARGEST):
        invalid(f"a switch of {value}", "OutOfRange", [kid, value, point])
    invalid("a switch of 2^53", "IntegerTooLarge", [kid, 2**53, point])
    invalid("a switch of -1", "WrongType", [kid, -1, point])
    for name, value in (("true", True), ("false", False), ("null", None), ("a text", "1"), ("bytes", b"\1")):
        invalid(f"{name} as its switch", "WrongType", [kid, value, point])
    for value in (0, 1):
        invalid(f"a switch of {value} in a byte", "NonMinimalInteger", [kid, Encoded(head(0, value, 1)), point])
    invalid("1.0 as its switch", "Float", [kid, Encoded(b"\xf9\x3c\x00"), point])
    for size in (0, 32, 33, 64, 66):
        invalid(f"a point of {size} bytes", "WrongSize", [kid, refuses, (point * 2)[:size]])
    invalid("a compressed point", "WrongSize", [kid, refuses, b"\2" + point[1:33]])
    for first in (0, 1, 2, 3, 5, 6, 7, 255):
        invalid(f"a point that begins with {first}", "Point", [kid, refuses, bytes([first]) + point[1:]])
    invalid("a point of zeros but for its last byte", "Point", [kid, refuses, bytes(64) + b"\1"])
    invalid("a point null", "WrongType", [kid, refuses, None])
    invalid("a point as an array", "WrongType", [kid, refuses, [point[1:33], point[33:]]])
    invalid("a point with its length in two bytes", "NonMinimalInteger", [kid, refuses, _long(point, 2)])
    invalid(
        "a point of indefinite length", "IndefiniteLength", [kid, refuses, Encoded(b"\x5f\x58\x41" + point + b"\xff")]
    )
    invalid("a point that reaches beyond the array", "Truncated", [kid, refuses, Encoded(b"\x59\x10\0" + point)])


def _body():
    return encode([*OWNER[:3], None, DROPS, *OWNER[3:]])


def _pages(identity):
    return provision.pages(encode([*identity, None, DROPS, *OWNER[3:]]))


def _long(data, width=1):
    """A byte string whose length takes more bytes than it needs."""
    return Encoded(head(2, len(data), width) + data)


def _bad_items(group):
    def invalid(comment, flag, *items, home=DROPS):
        first = FIRST + flash.transaction(1, b"".join(map(encode, items)))
        cases.invalid(group, f"item: {comment}", flag, flash.image(owner(None, home), first))

    for name, item in (("numbers of bulletins", [14]), ("revoked tokens", [15]), ("a receipt", [16])):
        invalid(f"{name} without an element", "WrongCount", item)
    invalid("a receipt without its bytes", "WrongCount", [16, 2])
    invalid("a receipt with an element too many", "WrongCount", [16, 2, 0, 0])
    for name, item in (("number", [16, None, 0]), ("count of bytes", [16, 2, None])):
        place = item.index(None)
        for kind, value in (("null", None), ("a text", "2"), ("bytes", b"\2"), ("true", True), ("negative", -1)):
            invalid(f"a receipt whose {name} is {kind}", "WrongType", [*item[:place], value, *item[place + 1 :]])
        invalid(f"a receipt whose {name} is 2^53", "IntegerTooLarge", [*item[:place], 2**53, *item[place + 1 :]])
        long = Encoded(head(0, 2, 1))
        invalid(f"a receipt whose {name} is in a byte", "NonMinimalInteger", [*item[:place], long, *item[place + 1 :]])
    invalid("a receipt whose kind is in a byte", "NonMinimalInteger", [Encoded(head(0, 16, 1)), 2, 0])
    for value in (flash.SLOT_SIZE + 1, 2**31, LARGEST):
        invalid(f"a receipt with {value} bytes", "OutOfRange", [16, 1, value], entry(3, 4))
    invalid("a receipt of indefinite length", "IndefiniteLength", Encoded(b"\x9f\x10\2\0\xff"))
    invalid("a receipt with the hash of the entry", "WrongCount", [16, 2, HEAD, 0])
    invalid("a receipt with the hash as its number", "WrongType", [16, HEAD, 0])
    invalid("a receipt that is wrong, before one that is right", "WrongType", [16, "2", 0], [16, 2, 0])
    invalid("a receipt and an entry with another number", "Sequence", [16, 3, 0], entry(4, 4))
    invalid("lost entries, not counted", "WrongCount", entry(3, 26))
    invalid("lost entries, counted by a text", "WrongType", entry(3, 26, "30"))
    invalid("lost entries, with an element too many", "WrongCount", entry(3, 26, 30, 0))
    invalid("lost entries, with the number of the entry before", "Sequence", entry(2, 26, 30))
    invalid("a refused receipt of a key id of 7 bytes", "WrongSize", entry(3, 25, KID[:7], 2))
    invalid("a refused receipt without its number", "WrongCount", entry(3, 25, KID))
    invalid("numbers of a key id of 7 bytes", "WrongSize", [14, KID[:7], *TAKEN[2:]])
    invalid("numbers with a floor of null", "WrongType", [14, KID, None, LIST])
    invalid("numbers without a list", "WrongCount", TAKEN[:3])
    keys = [pin(f"image/kid {number}", 8) for number in range(17)]
    invalid("numbers and floors of 17 keys", "NoRoom", *([4, key, 1] for key in keys[:16]), [14, keys[16], 1, LIST])
    for size in (1, 31, 33, 64 * 32 - 1):
        invalid(f"revoked tokens of {size} bytes", "WrongSize", [15, (REVOKED * 64)[:size]])
    invalid("65 revoked tokens", "WrongSize", [15, REVOKED * 65])
    invalid("revoked tokens as an array", "WrongType", [15, [REVOKED]])
    invalid("revoked tokens null", "WrongType", [15, None])
    invalid("revoked tokens and a number", "WrongCount", [15, REVOKED, 1])
