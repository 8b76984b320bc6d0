"""audit_page_test.json: sealed pages of audit logs, receipts of their home, and the messages that carry them."""

import collections
import functools
import itertools

from holdfast_peer import audit, cbor, cose, pages
from holdfast_peer.cbor import Encoded, Tag, encode
from holdfast_peer.keys import ORDER, PrivateKey
from holdfast_peer.primitives import gcm_seal

from .audit_vectors import ENTRIES, NOW
from .notes import NOTES
from .token_cases import DEVICE, DEVICE_ID, ISSUER, LARGEST, OTHER_DEVICE, OTHER_DEVICE_ID, STRANGER
from .vector_file import VectorFile, pin, plain

AGREEMENT = PrivateKey(pin("audit page/agreement", 32))
SHARED = AGREEMENT.exchange(DEVICE.point)
Device = collections.namedtuple("Device", "point device_id")


def page_file():
    file = VectorFile(
        "HoldfastAuditPage",
        "audit_page_schema_v1.json",
        [
            "AuditPage: a page that a device sealed for the home of its log, at the home, which knows nothing of the log yet.",
            "AuditReceipt: a receipt at the device; whether its log has such an entry is not looked at.",
            "AuditMail: one message to a device that asks for a page or delivers a receipt. AuditPageAnswer: one answer.",
        ],
        NOTES,
    )
    home = {"deviceId": DEVICE_ID, "homePublicKey": ISSUER.point, "homeKid": ISSUER.kid}
    keys = {"agreementPrivateKey": AGREEMENT.scalar, "devicePublicKey": DEVICE.point, **home}
    _pages(file.group("AuditPage", lambda **test: check_page(**keys, **test), **keys))
    _receipts(file.group("AuditReceipt", lambda **test: check_receipt(**home, **test), **home))
    _mail(file.group("AuditMail", CHECKS["AuditMail"]))
    _answers(file.group("AuditPageAnswer", CHECKS["AuditPageAnswer"]))
    return file


def check_page(*, agreementPrivateKey, devicePublicKey, deviceId, homePublicKey, homeKid, sealed, page=None):
    found = pages.open_page(sealed, PrivateKey(agreementPrivateKey), Device(devicePublicKey, deviceId), homeKid)
    pages.follow(found)
    assert page is None or plain(found) == plain(page)


def check_receipt(*, deviceId, homePublicKey, homeKid, receipt, count=None, head=None):
    found = pages.open_receipt(receipt, deviceId, homePublicKey)
    assert count is None or found == (count, head)


CHECKS = {
    "AuditPage": check_page,
    "AuditReceipt": check_receipt,
    "AuditMail": lambda message: pages.parse_request(message),
    "AuditPageAnswer": lambda message: pages.parse_page(message),
}


# Pages


def _log(count, after=0):
    entries = itertools.islice(itertools.cycle(ENTRIES.values()), count)
    return [encode([after + number, NOW + number, kind, *details]) for number, (kind, details) in enumerate(entries, 1)]


def _page(count=3, after=0, cut=0, more=0, head=None):
    """A page of entries behind `after`, of a log with `more` entries behind the page."""
    head = head or (audit.START if after == 0 else pin(f"audit page/head {after}", 32))
    entries = _log(count, after)
    last = functools.reduce(audit.chained, entries, head)
    return {
        "cut": cut,
        "after": after,
        "head": head,
        "entries": entries,
        "count": after + count + more,
        "last": pin("audit page/last", 32) if more else last,
    }


def _body(page):
    return [page[name] for name in ("cut", "after", "head", "entries", "count", "last")]


def _seal(label, text, shared=SHARED, device_id=DEVICE_ID, kid=ISSUER.kid):
    return pages.seal_text(text, shared, device_id, kid, pin(f"audit page/random {label}", 16))


def _pages(group):
    def valid(comment, page, flags=("Normal",)):
        group.valid(comment, flags, sealed=_seal(comment, pages.padded(_body(page))), page=page)

    def text(comment, flag, data):
        group.invalid(comment, flag, sealed=_seal(comment, data))

    def body(comment, flag, items):
        text(comment, flag, pages.padded(items))

    def changed(comment, flag, **changes):
        body(comment, flag, _body({**_page(), **changes}))

    valid("three entries", _page())
    valid("one entry of each kind", _page(len(ENTRIES)))
    valid("behind other entries", _page(3, 40))
    valid("with more entries behind it", _page(3, 40, more=100))
    valid("of a log that was cut", _page(3, 40, 25))
    valid("no entry yet", _page(0), ("Boundary",))
    valid("no entry behind the last one", _page(0, 40), ("Boundary",))
    valid("no entry, of a log that was cut up to its end", _page(0, 40, 40), ("Boundary",))
    valid("no entry, and more behind it", _page(0, 40, more=1), ("Boundary",))
    valid("largest numbers", {**_page(1, LARGEST - 1, LARGEST - 1)}, ("Boundary",))
    for length in (254, 255, 256, 257, 258, 511, 512, 513):
        fitting = _sized(length)
        valid(f"a text of {length} bytes before its padding", fitting, ("Boundary",))
    valid("a text of 3840 bytes", _sized(3840), ("Boundary",))
    whole = _page()
    good = _seal("good", pages.padded(_body(whole)))
    _bad_seals(group, good, whole)
    _bad_texts(text, body, changed, whole)


def _sized(length):
    """A page whose text has this many bytes before its padding: entries with 64 bytes of words, and two that fit."""
    for count, last, other in itertools.product(range(2, 60), range(65), (64, 63)):
        sizes = [64] * (count - 2) + [other, last]
        entries = [encode([number, NOW, 20, 9, 0, "w" * size]) for number, size in enumerate(sizes, 1)]
        head = functools.reduce(audit.chained, entries, audit.START)
        page = {**_page(0), "entries": entries, "count": count, "last": head}
        if len(encode(_body(page))) == length:
            return page
    raise AssertionError(f"no page of {length} bytes")


def _bad_seals(group, good, page):
    def invalid(comment, flag, sealed):
        group.invalid(comment, flag, sealed=sealed)

    def flipped(position):
        return good[:position] + bytes([good[position] ^ 1]) + good[position + 1 :]

    data = pages.padded(_body(page))
    for comment, position in (
        ("salt", 0),
        ("last byte of the salt", 15),
        ("first byte of the text", 16),
        ("last byte of the text", len(good) - 17),
        ("tag", len(good) - 16),
        ("last byte of the tag", len(good) - 1),
    ):
        invalid(f"a bit changed: {comment}", "Decryption", flipped(position))
    for comment, sealed in (
        ("empty", b""),
        ("a salt only", good[:16]),
        ("a salt and a tag", good[:16] + good[-16:]),
        ("a byte less", good[:-1]),
        ("a byte more", good + b"\x00"),
        ("256 bytes more than the most", _seal("long", bytes(4096))),
    ):
        invalid(comment, "WrongSize", sealed)
    invalid("256 bytes cut off", "Decryption", _seal("two", data + bytes(256))[:-256])
    invalid("256 bytes of zeros before the tag", "Decryption", good[:-16] + bytes(256) + good[-16:])
    invalid("salts exchanged", "Decryption", _seal("another", data)[:16] + good[16:])
    for comment, shared, device_id, kid in (
        ("by another device", AGREEMENT.exchange(OTHER_DEVICE.point), DEVICE_ID, ISSUER.kid),
        ("for another device id", SHARED, OTHER_DEVICE_ID, ISSUER.kid),
        ("for another home", SHARED, DEVICE_ID, STRANGER.kid),
        ("for another key for agreement", STRANGER.exchange(DEVICE.point), DEVICE_ID, ISSUER.kid),
        ("for the key that signs receipts", ISSUER.exchange(DEVICE.point), DEVICE_ID, ISSUER.kid),
        ("under a secret of zeros", bytes(32), DEVICE_ID, ISSUER.kid),
    ):
        invalid(comment, "Decryption", _seal(comment, data, shared, device_id, kid))
    salt = good[:16]
    key = pages.key(SHARED, salt, DEVICE_ID, ISSUER.kid)
    invalid("a nonce that is not zero", "Decryption", salt + gcm_seal(key, bytes(11) + b"\x01", data, b""))
    invalid("additional data", "Decryption", salt + gcm_seal(key, bytes(12), data, DEVICE_ID))
    invalid("the secret itself as the key", "Decryption", salt + gcm_seal(SHARED, bytes(12), data, b""))


def _bad_texts(text, body, changed, page):
    items = _body(page)
    data = encode(items)
    text("not padded to 256 bytes, but to more", "Padding", data + bytes(-len(data) % 256 + 256))
    text("padding that is not zero", "Padding", data + bytes(-len(data) % 256 - 1) + b"\x01")
    text("null in the padding", "Padding", data + bytes(-len(data) % 256 - 1) + b"\xf6")
    text("only zeros", "WrongType", bytes(256))
    text("padding before the text", "Padding", bytes(-len(data) % 256) + data)
    body("an element too few", "WrongCount", items[:-1])
    body("an element too many", "WrongCount", [*items, 0])
    body("a map", "WrongType", dict(enumerate(items)))
    changed("more cut than kept before", "OutOfRange", cut=1)
    changed("a count below its entries", "OutOfRange", count=2)
    changed("a count below the first number", "OutOfRange", after=4, count=3, entries=[])
    changed("cut negative", "WrongType", cut=-1)
    changed("number negative", "WrongType", after=-1)
    changed("count null", "WrongType", count=None)
    changed("count 2^53", "IntegerTooLarge", count=2**53)
    changed("first hash of 31 bytes", "WrongSize", head=bytes(31))
    changed("first hash as text", "WrongType", head="0" * 32)
    changed("last hash of 33 bytes", "WrongSize", last=bytes(33))
    changed("entries as one byte string", "WrongType", entries=b"".join(page["entries"]))
    changed("entries that are not wrapped", "WrongType", entries=[Encoded(entry) for entry in page["entries"]])
    first, second, third = page["entries"]
    changed("an entry that is none", "UnknownKind", entries=[first, encode([2, NOW, 99]), third])
    changed("an entry cut short", "Truncated", entries=[first, second[:-1], third])
    changed("an empty entry", "Truncated", entries=[first, b"", third])
    changed("an entry missing", "Sequence", entries=[first, third])
    changed("an entry twice", "Sequence", entries=[first, first, second])
    changed("two entries exchanged", "Sequence", entries=[second, first, third])
    changed("entries of other numbers", "Sequence", entries=_log(3, 1))
    flipped = bytearray(third)
    flipped[-1] ^= 1
    changed("the last entry changed", "Chain", entries=[first, second, bytes(flipped)])
    changed("another last hash", "Chain", last=pin("audit page/last", 32))
    changed("another first hash", "Chain", head=pin("audit page/last", 32))
    changed("no entry, and another hash at the end", "Chain", entries=[], count=0)
    text("of indefinite length", "IndefiniteLength", b"\x9f" + data[1:] + b"\xff" + bytes((-len(data) - 1) % 256))
    long = b"\x98\x06" + data[1:]
    text("length in two bytes", "NonMinimalInteger", long + bytes(-len(long) % 256))


# Receipts


def _receipts(group):
    head = pin("audit page/receipt", 32)

    def valid(comment, count, flags=("Normal",)):
        group.valid(comment, flags, receipt=pages.receipt(DEVICE_ID, count, head, ISSUER), count=count, head=head)

    def invalid(comment, flag, receipt):
        group.invalid(comment, flag, receipt=receipt)

    def signed(comment, flag, payload, **changes):
        protected = encode({1: -7, 4: ISSUER.kid, 16: "holdfast-receipt"})
        data = payload if isinstance(payload, bytes) else encode(payload)
        invalid(comment, flag, cose.sign(data, ISSUER, **{"protected": protected, **changes}))

    valid("a receipt", 41)
    valid("of one entry", 1, ("Boundary",))
    valid("of the largest number", LARGEST, ("Boundary",))
    claims = {1: DEVICE_ID, 2: 41, 3: head}
    good = pages.receipt(DEVICE_ID, 41, head, ISSUER)
    signed("for another device", "WrongAudience", {**claims, 1: OTHER_DEVICE_ID})
    signed("of no entry", "OutOfRange", {**claims, 2: 0})
    signed("of a negative number", "WrongType", {**claims, 2: -1})
    signed("of 2^53 entries", "IntegerTooLarge", {**claims, 2: 2**53})
    signed("of a number as text", "WrongType", {**claims, 2: "41"})
    signed("a hash of 31 bytes", "WrongSize", {**claims, 3: head[:31]})
    signed("a hash of 33 bytes", "WrongSize", {**claims, 3: head + b"\x00"})
    signed("a device id of 15 bytes", "WrongSize", {**claims, 1: DEVICE_ID[:15]})
    signed("a device id as text", "WrongType", {**claims, 1: DEVICE_ID.hex()[:16]})
    for label, name in ((1, "device"), (2, "count"), (3, "hash")):
        signed(f"without its {name}", "MissingClaim", {key: value for key, value in claims.items() if key != label})
    signed("another claim", "UnknownClaim", {**claims, 4: 0})
    signed("a list of claims", "WrongType", list(claims.values()))
    signed(
        "claims in another order", "UnsortedKeys", b"\xa3" + b"".join(encode(k) + encode(claims[k]) for k in (2, 1, 3))
    )
    signed("a claim twice", "DuplicateKey", b"\xa4" + encode(claims)[1:] + encode(3) + encode(head))
    signed("a byte behind the claims", "TrailingBytes", encode(claims) + b"\x00")
    signed("no claims", "Truncated", b"")
    signed("unprotected headers", "HeaderLabels", claims, unprotected=encode({4: ISSUER.kid}))
    for comment, flag, header in (
        ("the typ of a bulletin", "WrongTyp", {1: -7, 4: ISSUER.kid, 16: "holdfast-bulletin"}),
        ("the typ of a token", "WrongTyp", {1: -7, 4: ISSUER.kid, 16: "holdfast-mt"}),
        ("no typ", "HeaderLabels", {1: -7, 4: ISSUER.kid}),
        ("no key id", "HeaderLabels", {1: -7, 16: "holdfast-receipt"}),
        ("another header", "HeaderLabels", {1: -7, 4: ISSUER.kid, 16: "holdfast-receipt", 17: 0}),
        ("ES384", "WrongAlgorithm", {1: -35, 4: ISSUER.kid, 16: "holdfast-receipt"}),
        ("HMAC", "WrongAlgorithm", {1: 5, 4: ISSUER.kid, 16: "holdfast-receipt"}),
        ("another key id", "WrongKeyId", {1: -7, 4: STRANGER.kid, 16: "holdfast-receipt"}),
        ("a key id of 7 bytes", "WrongSize", {1: -7, 4: ISSUER.kid[:7], 16: "holdfast-receipt"}),
    ):
        signed(comment, flag, claims, protected=encode(header))
    signature = cbor.decode(good, tags=(cose.SIGN1,)).value[3]
    signed("a signature of zeros", "SignatureForm", claims, signature=bytes(64))
    signed(
        "a signature with s of the order", "SignatureForm", claims, signature=signature[:32] + ORDER.to_bytes(32, "big")
    )
    signed("a bit of the signature changed", "Signature", claims, signature=bytes([signature[0] ^ 1]) + signature[1:])
    signed("a signature of 63 bytes", "WrongSize", claims, signature=signature[:63])
    signed("the tag of a MAC", "UnknownTag", claims, tag=cose.MAC0)
    signed("no tag", "UnknownTag", claims, tag=None)
    invalid(
        "by another key with this id", "Signature", pages.receipt(DEVICE_ID, 41, head, _Named(STRANGER, ISSUER.kid))
    )
    invalid("by another key", "WrongKeyId", pages.receipt(DEVICE_ID, 41, head, STRANGER))
    invalid("cut short", "Truncated", good[:-1])
    invalid("empty", "Truncated", b"")
    invalid("a byte behind it", "TrailingBytes", good + b"\x00")
    invalid("257 bytes", "TooLarge", good + bytes(257 - len(good)))
    invalid("in a byte string", "UnknownTag", encode(good))


class _Named:
    """A key that gives another one's id for its own."""

    def __init__(self, key, kid):
        self.sign, self.kid = key.sign, kid


# Messages


def _mail(group):
    def valid(comment, message, flags=("Normal",)):
        group.valid(comment, flags, message=encode(message))

    def invalid(comment, flag, message):
        group.invalid(comment, flag, message=message if isinstance(message, bytes) else encode(message))

    receipt = pages.receipt(DEVICE_ID, 41, bytes(32), ISSUER)
    valid("a question for any page", [9, 0])
    valid("a question for the page from an entry on", [9, 41])
    valid("a question for the page from the largest number on", [9, LARGEST], ("Boundary",))
    valid("a receipt", [11, receipt])
    valid("a receipt of 256 bytes", [11, pin("audit page/long", 256)], ("Boundary",))
    valid("a receipt of one byte", [11, b"\xff"], ("Boundary",))
    invalid("a question from 2^53 on", "IntegerTooLarge", [9, 2**53])
    for comment, value in (("null", None), ("-1", -1), ("text", "0"), ("a list", [0]), ("bytes", b"\x00")):
        invalid(f"a question from {comment} on", "WrongType", [9, value])
    for comment, value in (("null", None), ("0", 0), ("text", "x"), ("a list", [receipt])):
        invalid(f"{comment} as a receipt", "WrongType", [11, value])
    invalid("a receipt that is not wrapped", "UnknownTag", [11, Encoded(receipt)])
    invalid("a receipt of 257 bytes", "TooLarge", [11, pin("audit page/long", 257)])
    for kind in (9, 11):
        invalid(f"message {kind} alone", "WrongCount", [kind])
        invalid(f"message {kind} with three elements", "WrongCount", [kind, receipt if kind == 11 else 0, None])
        invalid(f"message {kind} of indefinite length", "IndefiniteLength", b"\x9f" + encode(kind) + b"\x00\xff")
    invalid("an answer", "WrongMessage", [10, None])
    invalid("message 12", "WrongMessage", [12, 0])
    invalid("a byte behind it", "TrailingBytes", encode([9, 0]) + b"\x00")
    invalid("cut short", "Truncated", encode([11, receipt])[:-1])
    invalid("the number in two bytes", "NonMinimalInteger", b"\x82\x18\x09\x00")
    invalid("tagged", "UnknownTag", Tag(24, [9, 0]))


def _answers(group):
    def valid(comment, sealed, flags=("Normal",)):
        group.valid(comment, flags, message=encode([10, sealed]))

    def invalid(comment, flag, message):
        group.invalid(comment, flag, message=message if isinstance(message, bytes) else encode(message))

    valid("a page", _seal("answer", pages.padded(_body(_page()))))
    valid("no page", None)
    valid("the shortest page", pin("audit page/bytes", 288), ("Boundary",))
    valid("the longest page", pin("audit page/bytes", 3872), ("Boundary",))
    for count in (0, 1, 32, 287, 289, 3871, 3873, 4064):
        invalid(f"a page of {count} bytes", "WrongSize", [10, pin("audit page/bytes", count)])
    for comment, value in (("a number", 0), ("text", "x"), ("a list", [])):
        invalid(f"{comment} as a page", "WrongType", [10, value])
    invalid("one element", "WrongCount", [10])
    invalid("three elements", "WrongCount", [10, None, None])
    invalid("a question", "WrongMessage", [9, None])
    invalid("an answer to a bulletin", "WrongMessage", [8, None])
    invalid("a byte behind it", "TrailingBytes", encode([10, None]) + b"\x00")
    invalid("cut short", "Truncated", encode([10, pin("audit page/bytes", 288)])[:-1])
    invalid("of indefinite length", "IndefiniteLength", b"\x9f\x0a\xf6\xff")
    invalid("the number in two bytes", "NonMinimalInteger", b"\x82\x18\x0a\xf6")
