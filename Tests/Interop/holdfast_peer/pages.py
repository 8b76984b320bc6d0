"""Pages of audit logs, sealed for their home, and the home's receipts for devices.

Source: docs/couriers.md, The audit log goes home.
"""

from . import audit, cbor, cose
from .keys import key_id, verify
from .primitives import gcm_open, gcm_seal, hkdf_sha256, hmac_sha256
from .refusal import require, require_list, require_uint

ASK, PAGE, ACKNOWLEDGE = 9, 10, 11
UNIT, MOST_TEXT = 256, 3840
SALT, TAG = 16, 16
LARGEST_RECEIPT = 256


def ask(start=0):
    """The message that asks for a page; 0 lets the device choose."""
    return cbor.encode([ASK, start])


def parse_page(message):
    """The sealed page in an answer; None if there is none."""
    kind, sealed = require_list(cbor.decode(message), 2)
    require(kind == PAGE, "WrongMessage")
    require(sealed is None or isinstance(sealed, bytes), "WrongType")
    require(sealed is None or is_length(len(sealed)), "WrongSize")
    return sealed


def parse_request(message):
    """Checks a message that asks for a page or delivers a receipt."""
    kind, value = require_list(cbor.decode(message), 2)
    require(kind in (ASK, ACKNOWLEDGE), "WrongMessage")
    if kind == ASK:
        require_uint(value)
    else:
        require(isinstance(value, bytes), "WrongType")
        require(len(value) <= LARGEST_RECEIPT, "TooLarge")


def is_length(count):
    """Whether a sealed page can have this number of bytes."""
    return 0 < count - SALT - TAG <= MOST_TEXT and (count - SALT - TAG) % UNIT == 0


def key(shared, salt, device_id, kid):
    return hkdf_sha256(shared, salt, b"holdfast/1 audit page\x00" + device_id + kid, 32)


def open_page(sealed, agreement, device, kid):
    """The page of a device, by the home's key for agreement."""
    return parse_text(open_text(sealed, agreement, device, kid))


def open_text(sealed, agreement, device, kid):
    """The text of a page, whatever it is."""
    require(is_length(len(sealed)), "WrongSize")
    secret = key(agreement.exchange(device.point), sealed[:SALT], device.device_id, kid)
    return gcm_open(secret, bytes(12), sealed[SALT:], b"")


def seal_text(text, shared, device_id, kid, random):
    """A text of any form, sealed as a device seals a page: for the vectors."""
    salt = hmac_sha256(shared, b"holdfast/1 audit page salt\x00" + random + text)[:SALT]
    return salt + gcm_seal(key(shared, salt, device_id, kid), bytes(12), text, b"")


def padded(body):
    """The text of a page: its CBOR, and zeros."""
    data = cbor.encode(body)
    return data + bytes(-len(data) % UNIT)


def parse_text(text):
    """cut, after, head, entries, count and last."""
    body, *padding = cbor.decode_sequence(text)
    require(all(type(item) is int and item == 0 for item in padding), "Padding")
    require(len(text) == -(-len(cbor.encode(body)) // UNIT) * UNIT, "Padding")
    cut, after, head, entries, count, last = require_list(body, 6)
    for number in (cut, after, count):
        require_uint(number)
    require(cut <= after <= count, "OutOfRange")
    for hash_ in (head, last):
        require(isinstance(hash_, bytes), "WrongType")
        require(len(hash_) == 32, "WrongSize")
    require(isinstance(entries, list) and all(isinstance(entry, bytes) for entry in entries), "WrongType")
    require(len(entries) <= count - after, "OutOfRange")
    for number, entry in enumerate(entries, after + 1):
        require(audit.parse_entry(entry)[0] == number, "Sequence")
    return {"cut": cut, "after": after, "head": head, "entries": entries, "count": count, "last": last}


def follow(page):
    """The hash after each entry of a page, by number. A page that reaches the end of the log leads to its hash."""
    number, head = page["after"], page["head"]
    heads = {number: head}
    for entry in page["entries"]:
        number, head = number + 1, audit.chained(head, entry)
        heads[number] = head
    require(number < page["count"] or head == page["last"], "Chain")
    return heads


def receipt(device_id, count, head, issuer, **changes):
    """A receipt; `changes` are those of `cose.sign`."""
    payload = cbor.encode({1: device_id, 2: count, 3: head})
    return cose.sign(payload, issuer, **{"protected": receipt_protected(issuer.kid), **changes})


def receipt_protected(kid):
    return cbor.encode({1: -7, 4: kid, 16: "holdfast-receipt"})


def open_receipt(data, device_id, home):
    """The count and the hash of a receipt for a device, by the point of its log's home."""
    require(len(data) <= LARGEST_RECEIPT, "TooLarge")
    claims, kid, signed, signature = read_receipt(data)
    require(kid == key_id(home), "WrongKeyId")
    require(claims[1] == device_id, "WrongAudience")
    verify(home, signed, signature)
    return claims[2], claims[3]


def read_receipt(data):
    """The claims of a receipt, the id of its key, and what its key signed and how. The signature is not checked."""
    payload, kid, signed, signature = cose.read_signed(data, "holdfast-receipt")
    claims = cbor.decode(payload)
    require(isinstance(claims, dict), "WrongType")
    require(not claims.keys() - {1, 2, 3}, "UnknownClaim")
    require(claims.keys() == {1, 2, 3}, "MissingClaim")
    for label, size in ((1, 16), (3, 32)):
        require(isinstance(claims[label], bytes), "WrongType")
        require(len(claims[label]) == size, "WrongSize")
    require(require_uint(claims[2]) > 0, "OutOfRange")
    return claims, kid, signed, signature


def acknowledge(data):
    """The message that delivers a receipt. Its answer is that to a bulletin."""
    return cbor.encode([ACKNOWLEDGE, data])


class Home:
    """The home of one device's log, which knows what pages said."""

    def __init__(self, agreement, device, signing):
        self.agreement, self.device, self.signing = agreement, device, signing
        self.heads, self.entries, self.cut, self.count = {0: audit.START}, {}, 0, 0

    def take(self, sealed):
        """Takes a page in any order. An entry that is known must have the same hash."""
        page = open_page(sealed, self.agreement, self.device, self.signing.kid)
        for number, head in follow(page).items():
            require(self.heads.setdefault(number, head) == head, "Fork")
        self.entries |= dict(enumerate(page["entries"], page["after"] + 1))
        self.cut, self.count = max(self.cut, page["cut"]), max(self.count, page["count"])
        return page

    @property
    def through(self):
        """The number of the last entry before which none is missing."""
        number = self.cut
        while number + 1 in self.entries:
            number += 1
        return number

    def receipt(self):
        return receipt(self.device.device_id, self.through, self.heads[self.through], self.signing)
