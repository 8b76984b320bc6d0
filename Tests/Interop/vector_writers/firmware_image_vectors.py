"""firmware_image_test.json: images of a microcontroller's flash, with a provision and a journal."""

import itertools

from holdfast_peer import flash, provision, session
from holdfast_peer.audit import START
from holdfast_peer.cbor import Encoded, encode

from . import firmware_home_vectors
from . import firmware_image_cases as cases
from .firmware_image_cases import (
    ALICE,
    BOB,
    CHECKS,
    CODE,
    CODES,
    COMMANDS,
    FIRST,
    FLOOR,
    KID,
    LIMITS,
    LOG,
    NONCE,
    NOW,
    OUTCOME,
    OWNER,
    POLICY,
    REQUEST,
    STATE,
    TOKEN,
    TOTP,
    UNLOCK,
    USES,
    entry,
    log,
    owner,
)
from .notes import NOTES
from .token_cases import DEVICE, DEVICE_ID, ISSUER, LARGEST, MAC_KEY, OTHER_DEVICE, STRANGER
from .vector_file import VectorFile, pin


def image_file():
    file = VectorFile(
        "HoldfastFirmwareImage",
        "firmware_image_schema_v1.json",
        [
            "FirmwareImage: an image of 131072 bytes, as runs of bytes at offsets; every other byte is 0xff.",
            "Valid tests give what the owner's commands show of it.",
        ],
        NOTES,
    )
    group = file.group("FirmwareImage", CHECKS["FirmwareImage"])
    for write in (_provisions, _journals, _items, _bad_provisions, _bad_slots, _bad_items, firmware_home_vectors.add):
        write(group)
    return file


def _provisions(group):
    def valid(comment, index, value, flags=("Normal",)):
        cases.valid(group, comment, flash.image(owner(index, value), FIRST), flags)

    cases.valid(group, "a new device", flash.image(owner(), FIRST))
    other = provision.pages(encode([pin("image/other", 16), OTHER_DEVICE.scalar, OTHER_DEVICE.point, [], POLICY]))
    cases.valid(group, "another device, which trusts nobody", flash.image(other, FIRST))
    valid("an issuer with a MAC key", 3, [[KID, MAC_KEY]])
    valid("an issuer of each kind", 3, [[STRANGER.kid, STRANGER.point], [KID, MAC_KEY]])
    valid("8 issuers", 3, cases.many_issuers(8), ("Boundary",))
    valid("a policy that names no command", 4, cases.policy(commands=[]))
    valid("a policy that takes unsigned tokens and MACs", 4, cases.policy(unsigned=1, mac=1))
    valid(
        "the least numbers", 4, cases.policy(advance=0, codes=[1, 1, 1], commands=[["", 0, LIMITS, 0]]), ("Boundary",)
    )
    most = [LARGEST, [LARGEST] * 3, LARGEST]
    large = cases.policy(
        advance=36500 * 86400, limits=most, codes=[100, 600, 64], commands=[["\u00fc" * 16, 15, most, 1]]
    )
    valid("the greatest numbers", 4, large, ("Boundary",))
    valid("16 commands", 4, cases.policy(commands=cases.many_commands(16)), ("Boundary",))
    for size in range(1, 5):
        valid(f"a command of {size} bytes", 4, cases.policy(commands=[["c" * size, 3, LIMITS, 0]]))


def _journals(group):
    def valid(comment, first=b"", second=b"", flags=("Normal",)):
        cases.valid(group, comment, flash.image(owner(), first, second), flags)

    old, new = LOG, [[[1, NOW + 9, 4, 1, 1]], *LOG[1:], *([item] for item in log(2, 3))]
    valid("the second slot, the first blank", second=flash.slot(1, old))
    valid("the second slot, the first superseded", flash.slot(1, old, superseded=True), flash.slot(2, new))
    valid("the first slot, the second superseded", flash.slot(3, new), flash.slot(2, old, superseded=True))
    valid("power cut before the older slot was superseded", flash.slot(1, old), flash.slot(2, new))
    valid("power cut before the new slot was complete", flash.slot(1, old), flash.slot(2, new, complete=False))
    valid("power cut within the head of the new slot", flash.slot(1, old), flash.slot_head(2)[:8])
    half_erased = b"\xff" * 12 + flash.slot(1, old, superseded=True)[12:]
    valid("power cut while the superseded slot was erased", half_erased, flash.slot(2, new))
    torn = flash.transaction(1, encode(entry(3, 4)))
    for cut in (4, 8, len(torn) - 4):
        valid(f"power cut {cut} bytes into a transaction", FIRST + torn[:cut])
    more = flash.transaction(1, encode(entry(3, 3, 4)))
    valid("a transaction behind one that never happened", FIRST + torn[:-4] + b"\xff" * 4 + more)
    valid("all items in one transaction", flash.slot(1, [list(itertools.chain(*new))]))
    valid("a transaction of no bytes", flash.slot(1, [*LOG, []]), flags=("Boundary",))
    valid("many transactions", flash.slot(1, [*LOG, *([entry(number, 12, "a" * 32)] for number in range(3, 60))]))
    for sequence in (2**32 - 2, 2**32 - 1):
        valid(f"sequence {sequence}", flash.slot(sequence, old), flags=("Boundary",))


def _items(group):
    def valid(comment, *items, flags=("Normal",)):
        cases.valid(group, comment, flash.image(owner(), flash.slot(1, [*LOG, *([item] for item in items)])), flags)

    secrets = [[8, 1, 1, pin("image/otp", 20)], [8, 1, 2, pin("image/seal", 32)], [8, 1, 3, pin("image/host", 32)]]
    valid("a user with every secret", ALICE, *secrets)
    valid("a user of passwords, locked, with a challenge", BOB, [8, 2, 1, pin("image/bob", 64)])
    valid("two users", BOB, ALICE, *secrets)
    valid("a user who changed", ALICE, *secrets, [*ALICE[:3], 2, 1, *ALICE[5:9], [TOTP, 59666671, None], ALICE[10]])
    valid("a secret that was replaced", ALICE, *secrets, [8, 1, 1, pin("image/new", 20)])
    valid("a user who was removed", ALICE, *secrets, BOB, [9, 1])
    valid("a user who was removed and came back", ALICE, *secrets, [9, 1], [7, 3, *ALICE[2:]], [8, 3, 1, b"12345678"])
    valid("a name of 32 bytes", [7, 1, "\u00fc" * 16, *ALICE[3:]], flags=("Boundary",))
    valid("16 users", *([7, number, f"user-{number:02}", *ALICE[3:]] for number in range(1, 17)), flags=("Boundary",))
    valid("an activation code", CODE)
    valid("two codes of the owner", CODE, UNLOCK)
    valid("a code that was used", CODE, UNLOCK, [11, 1])
    valid("16 codes", *([10, number, *CODE[2:]] for number in range(1, 17)), flags=("Boundary",))
    valid("a clock floor that moved", [1, NOW + 500, 3, 1, 1], entry(3, 8, NOW, NOW + 500))
    valid("the greatest floor", [1, LARGEST, LARGEST, LARGEST, LARGEST], flags=("Boundary",))
    valid("a generation floor", FLOOR)
    valid("a generation floor that moved", FLOOR, [4, KID, 5])
    valid("16 generation floors", *([4, pin(f"image/kid {n}", 8), n] for n in range(1, 17)), flags=("Boundary",))
    valid("uses of a token, counted twice", USES, [*USES[:4], 3])
    valid("a nonce of an unsigned token", NONCE)
    kept = [[6, KID, TOKEN, NOW + 3600, pin(f"image/nonce {number}", 16)] for number in range(63)]
    valid("64 uses and nonces", USES, *kept, flags=("Boundary",))
    valid("a request and its outcome", REQUEST, OUTCOME)
    valid(
        "requests of two tokens",
        REQUEST,
        [12, pin("image/second", 16), 0, None, *REQUEST[4:]],
        [13, 0, session.STATUS["internal"]],
    )
    head = pin("image/head", 32)
    base = flash.slot(4, [[STATE], [[2, 41, head]], *([item] for item in log(3, 42))])
    cases.valid(group, "the audit log behind a base", flash.image(owner(), base))


def _bad_provisions(group):
    def raw(comment, flag, pages, journal=FIRST):
        cases.invalid(group, comment, flag, flash.image(pages, journal))

    def invalid(comment, flag, index, value):
        raw(comment, flag, owner(index, value))

    def bad_policy(comment, flag, **changes):
        invalid(f"policy: {comment}", flag, 4, cases.policy(**changes))

    good = owner()
    raw("blank", "Unprovisioned", b"", b"")
    raw("a journal without a provision", "Unprovisioned", b"")
    raw("another magic", "Prefix", provision.signed(b"HfFx" + good[4:-32]))
    raw("the magic in the other order", "Prefix", provision.signed(good[3::-1] + good[4:-32]))
    for version in (0, 2, 256, 2**32 - 1):
        raw(f"version {version}", "WrongVersion", owner(version=version))
    raw("a length of 4097 bytes", "TooLarge", owner(length=4097))
    raw("a length of 2^32 - 1 bytes", "TooLarge", owner(length=2**32 - 1))
    raw("a length of one word more", "Checksum", good[:8] + provision.word(len(good)) + good[12:])
    for cut in (12, 60, len(good) - 33, len(good) - 1):
        raw(f"cut to {cut} bytes", "Checksum", good[:cut])
    for place in (12, 100, len(good) - 33, len(good) - 1):
        raw(f"a bit changed at {place}", "Checksum", good[:place] + bytes([good[place] ^ 1]) + good[place + 1 :])
    body = encode(OWNER)
    raw("a byte behind the array", "TrailingBytes", provision.pages(body + b"\0"))
    raw("the array cut short", "Truncated", provision.pages(body[:-1]))
    raw("a map", "WrongType", provision.pages(encode(dict(enumerate(OWNER)))))
    raw("four elements", "WrongCount", provision.pages(encode(OWNER[:4])))
    raw("six elements", "WrongCount", provision.pages(encode([*OWNER, 0])))
    raw("of indefinite length", "IndefiniteLength", provision.pages(b"\x9f" + body[1:] + b"\xff"))
    invalid("device id of 15 bytes", "WrongSize", 0, DEVICE_ID[:15])
    invalid("device id of 17 bytes", "WrongSize", 0, DEVICE_ID + b"\0")
    invalid("device id as text", "WrongType", 0, "d" * 16)
    invalid("private key of 31 bytes", "WrongSize", 1, DEVICE.scalar[:31])
    invalid("private key null", "WrongType", 1, None)
    invalid("another private key", "KeyPair", 1, OTHER_DEVICE.scalar)
    invalid("another public key", "KeyPair", 2, OTHER_DEVICE.point)
    invalid("public key of 33 bytes", "WrongSize", 2, b"\2" + DEVICE.point[1:33])
    invalid("issuers null", "WrongType", 3, None)
    invalid("9 issuers", "NoRoom", 3, cases.many_issuers(9))
    invalid("an issuer twice", "DuplicateIssuer", 3, [[KID, ISSUER.point]] * 2)
    invalid("two issuers with one id", "DuplicateIssuer", 3, [[KID, ISSUER.point], [KID, MAC_KEY]])
    invalid("an issuer without a key", "WrongCount", 3, [[KID]])
    invalid("an issuer with an id of 7 bytes", "WrongSize", 3, [[KID[:7], ISSUER.point]])
    for size in (0, 31, 33, 64, 66):
        key = (ISSUER.point * 2)[:size]
        invalid(f"an issuer with a key of {size} bytes", "WrongSize", 3, [[KID, key]])
    invalid("policy null", "WrongType", 4, None)
    invalid("policy of five elements", "WrongCount", 4, POLICY[:5])
    bad_policy("unsigned 2", "OutOfRange", unsigned=2)
    bad_policy("MAC true", "WrongType", mac=True)
    bad_policy("an advance of an hour", "OutOfRange", advance=3600)
    bad_policy("an advance of more than 36,500 days", "OutOfRange", advance=36501 * 86400)
    bad_policy("an advance of a negative time", "WrongType", advance=-86400)
    bad_policy("limits of two elements", "WrongCount", limits=LIMITS[:2])
    bad_policy("a version of two numbers", "WrongCount", limits=[0, [0, 0], None])
    bad_policy("an age as text", "WrongType", limits=[0, [0, 0, 0], "1"])
    bad_policy("a generation of 2^53", "IntegerTooLarge", limits=[2**53, [0, 0, 0], None])
    for name, place, values in (("look-ahead", 0, (0, 101)), ("tolerance", 1, (0, 601)), ("length", 2, (0, 65))):
        for value in values:
            bad_policy(f"{name} {value}", "OutOfRange", codes=[*CODES[:place], value, *CODES[place + 1 :]])
    bad_policy("17 commands", "NoRoom", commands=cases.many_commands(17))
    bad_policy("a command twice", "DuplicateCommand", commands=[COMMANDS[0]] * 2)
    bad_policy("a command of 33 bytes", "TextTooLong", commands=[["c" * 33, 3, LIMITS, 0]])
    bad_policy("a command as bytes", "WrongType", commands=[[b"unlock", 3, LIMITS, 0]])
    bad_policy("a command that is not UTF-8", "NotUtf8", commands=[[Encoded(b"\x62\xc3\x28"), 3, LIMITS, 0]])
    bad_policy("factors 16", "OutOfRange", commands=[["unlock", 16, LIMITS, 0]])
    bad_policy("factors 256", "OutOfRange", commands=[["unlock", 256, LIMITS, 0]])
    bad_policy("a compatibility of 2", "OutOfRange", commands=[["unlock", 3, LIMITS, 2]])
    bad_policy("a command of three elements", "WrongCount", commands=[["unlock", 3, LIMITS]])


def _bad_slots(group):
    def invalid(comment, flag, first=b"", second=b""):
        cases.invalid(group, comment, flag, flash.image(owner(), first, second))

    def changed(place, data=FIRST):
        return data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :]

    new = flash.slot(2, LOG)
    invalid("no journal", "Slots")
    invalid("a slot without a transaction", "Slots", flash.slot_head(1))
    invalid("a slot that is not complete", "Slots", flash.slot(1, LOG, complete=False))
    invalid("two slots that are not complete", "Slots", *(flash.slot(n, LOG, complete=False) for n in (1, 2)))
    invalid("two slots that are superseded", "Slots", *(flash.slot(n, LOG, superseded=True) for n in (1, 2)))
    invalid("two slots with one sequence", "Slots", FIRST, FIRST)
    for name, place in (("magic", 0), ("sequence", 4), ("checksum", 8)):
        invalid(f"a bit of the {name} of a slot changed", "Slots", changed(place))
        invalid(f"a bit of the {name} of the newer slot changed", "Slots", FIRST, changed(place, new))
    for name, place in (("complete", 12), ("superseded", 16)):
        for value in (1, 0xFFFFFF00, 0x80000000):
            spoiled = FIRST[:place] + provision.word(value) + FIRST[place + 4 :]
            invalid(f"{value:#010x} where the slot says {name}", "Slots", spoiled)
    end = len(FIRST)
    first_end = 32 + len(flash.transaction(1, encode(STATE)))
    for place in (36, first_end - 1, first_end + 8, end - 1):
        invalid(f"a bit at {place} of a transaction changed", "Checksum", changed(place))
    invalid("the first transaction removed", "Sequence", flash.slot(1, [[STATE], LOG[2]]))
    invalid("the transactions of another slot's sequence", "Checksum", flash.slot_head(1) + new[32:])
    head = flash.transaction(1, b"")[:4]
    for comment, bad in (
        ("with another complement", changed(2, head)),
        ("of zeros", bytes(4)),
        ("that reaches beyond the slot", provision.word((~0xF000 & 0xFFFF) << 16 | 0xF000)),
    ):
        invalid(f"a head {comment}", "Transaction", FIRST + bad)
    invalid("bytes behind the last transaction", "Transaction", FIRST + b"\xff" * 4 + b"\0")
    gap = b"\xff" * (flash.SLOT_SIZE - len(FIRST) - 1)
    invalid("the last byte of the slot written", "Transaction", FIRST + gap + b"\0")
    more = flash.transaction(1, encode(entry(3, 4)))
    invalid("a transaction behind a blank word", "Transaction", FIRST + b"\xff" * 4 + more)
    invalid("a checksum of zeros", "Checksum", FIRST + more[:-4] + bytes(4))
    padding = flash.transaction(1, encode(entry(3, 4)) + b"\xf6")
    invalid("padding that is not zero", "Checksum", FIRST + padding[:-5] + b"\1" + padding[-4:])


def _bad_items(group):
    def raw(comment, flag, data):
        image = flash.image(owner(), FIRST + flash.transaction(1, data))
        cases.invalid(group, f"item: {comment}", flag, image)

    def invalid(comment, flag, *items):
        raw(comment, flag, b"".join(map(encode, items)))

    for kind in (0, 17, 255, 256):
        invalid(f"kind {kind}", "UnknownKind", [kind])
    invalid("kind as text", "WrongType", ["1"])
    invalid("no kind", "WrongCount", [])
    invalid("a map", "WrongType", {1: 1})
    invalid("a number", "WrongType", 1)
    raw("cut short", "Truncated", encode(STATE)[:-1])
    raw("a byte string that reaches into the checksum", "Truncated", encode(entry(3, 4))[:-1] + b"\x42\0")
    raw("of indefinite length", "IndefiniteLength", b"\x9f" + encode(STATE)[1:] + b"\xff")
    for comment, flag, item in (
        ("state without codes", "WrongCount", STATE[:4]),
        ("state with an element too many", "WrongCount", [*STATE, 0]),
        ("audit base with an element too many", "WrongCount", [2, 2, START, 0]),
        ("an audit entry's item with an element too many", "WrongCount", [*entry(3, 4), 0]),
        ("a floor with an element too many", "WrongCount", [*FLOOR, 0]),
        ("clock floor null", "WrongType", [1, None, *STATE[2:]]),
        ("clock floor negative", "WrongType", [1, -1, *STATE[2:]]),
        ("clock floor 2^53", "IntegerTooLarge", [1, 2**53, *STATE[2:]]),
        ("audit base with a head of 31 bytes", "WrongSize", [2, 2, START[:31]]),
        ("audit entry as an array", "WrongType", [3, [3, NOW, 4]]),
        ("audit entry empty", "Truncated", [3, b""]),
        ("audit entry of an unknown kind", "UnknownKind", entry(3, 99)),
        ("audit entry with an element too many", "WrongCount", entry(3, 4, 0)),
        ("audit entry with a number before", "Sequence", entry(2, 4)),
        ("audit entry with a number too high", "Sequence", entry(4, 4)),
        ("floor of a key id of 7 bytes", "WrongSize", [4, KID[:7], 2]),
        ("floor null", "WrongType", [4, KID, None]),
        ("uses with a token id of 15 bytes", "WrongSize", [5, KID, TOKEN[:15], NOW + 9, 1]),
        ("uses null", "WrongType", [5, KID, TOKEN, NOW + 9, None]),
        ("a nonce of 15 bytes", "WrongSize", [*NONCE[:4], NONCE[4][:15]]),
        ("a nonce with an element too many", "WrongCount", [*NONCE, 0]),
        ("a user's name of 33 bytes", "TextTooLong", [7, 1, "u" * 33, *ALICE[3:]]),
        ("a user's name as bytes", "WrongType", [7, 1, b"alice", *ALICE[3:]]),
        ("a user's factors 256", "OutOfRange", [*ALICE[:4], 256, *ALICE[5:]]),
        ("a user's failures null", "WrongType", [*ALICE[:3], None, *ALICE[4:]]),
        ("a user's challenge of 7 bytes", "WrongSize", [*BOB[:8], [BOB[8][0][:7], NOW], *BOB[9:]]),
        ("a user without an account for seals", "WrongCount", ALICE[:10]),
        ("an account without a position", "WrongCount", [*ALICE[:9], [TOTP, 1], None]),
        ("an account of an unknown method", "Method", [*ALICE[:9], [[4, 1, 6], 1, None], None]),
        ("an account of 3 digits", "Digits", [*ALICE[:9], [[1, 1, 3], 1, None], None]),
        ("an account with a period of 0", "Period", [*ALICE[:9], [[2, 1, 6, 0], 1, None], None]),
        ("an account with another suite", "Suite", [*ALICE[:10], [[3, "OCRA-2:HOTP-SHA1-6:QN08"], 1, None]]),
        ("a secret of nobody", "Dangling", [8, 1, 1, b"12345678"]),
        ("the removal of nobody", "Dangling", [9, 1]),
        ("a code for purpose 0", "OutOfRange", [10, 1, 0, *CODE[3:]]),
        ("a code for purpose 3", "OutOfRange", [10, 1, 3, *CODE[3:]]),
        ("a code with a key of 31 bytes", "WrongSize", [*CODE[:3], CODE[3][:31], *CODE[4:]]),
        ("a code with a method as text", "WrongType", [*CODE[:6], "totp", None]),
        ("a code with an element too many", "WrongCount", [*CODE, None]),
        ("the removal of no code", "Dangling", [11, 1]),
        ("a request at place 64", "OutOfRange", [12, TOKEN, 64, *REQUEST[3:]]),
        ("a request with a token id of 15 bytes", "WrongSize", [12, TOKEN[:15], *REQUEST[2:]]),
        ("a request with an element too many", "WrongCount", [*REQUEST, 0]),
        ("an outcome with an element too many", "WrongCount", [*OUTCOME, 0]),
        ("an outcome at place 64", "OutOfRange", [13, 64, 0]),
        ("an outcome that is a denial", "OutOfRange", [13, 0, session.STATUS["tokenExpired"]]),
        ("an outcome null", "WrongType", [13, 0, None]),
    ):
        invalid(comment, flag, item)
    invalid("a secret for purpose 0", "OutOfRange", ALICE, [8, 1, 0, b"12345678"])
    invalid("a secret for purpose 4", "OutOfRange", ALICE, [8, 1, 4, b"12345678"])
    invalid("a secret of 65 bytes", "WrongSize", ALICE, [8, 1, 1, bytes(65)])
    invalid("a secret as text", "WrongType", ALICE, [8, 1, 1, "12345678"])
    invalid("a secret with an element too many", "WrongCount", ALICE, [8, 1, 1, b"12345678", 0])
    invalid("the removal of a user with an element too many", "WrongCount", ALICE, [9, 1, 0])
    invalid("the removal of a code with an element too many", "WrongCount", CODE, [11, 1, 0])
    invalid("a user removed twice", "Dangling", ALICE, [9, 1], [9, 1])
    invalid("a secret of a user who was removed", "Dangling", ALICE, [9, 1], [8, 1, 1, b"12345678"])
    invalid("17 users", "NoRoom", *([7, number, f"user-{number:02}", *ALICE[3:]] for number in range(1, 18)))
    invalid("17 codes", "NoRoom", *([10, number, *CODE[2:]] for number in range(1, 18)))
    invalid("17 generation floors", "NoRoom", *([4, pin(f"image/kid {n}", 8), n] for n in range(1, 18)))
    invalid("65 nonces", "NoRoom", *([6, KID, TOKEN, NOW + 9, pin(f"image/nonce {n}", 16)] for n in range(65)))
