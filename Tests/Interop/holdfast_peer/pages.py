"""Pages of audit logs, sealed for their home, and the home's receipts for devices.

Source: docs/couriers.md, The audit log goes home.
"""

from . import audit, cbor, cose
from .primitives import gcm_open, hkdf_sha256
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
    require(kind == PAGE, "WrongType")
    require(sealed is None or isinstance(sealed, bytes), "WrongType")
    require(len(message) <= 4096, "TooLarge")
    return sealed


def key(shared, salt, device_id, kid):
    return hkdf_sha256(shared, salt, b"holdfast/1 audit page\x00" + device_id + kid, 32)


def open_page(sealed, agreement, device, kid):
    """The page of a device, by the home's key for agreement."""
    require((len(sealed) - SALT - TAG) % UNIT == 0 and len(sealed) <= SALT + MOST_TEXT + TAG, "WrongSize")
    secret = key(agreement.exchange(device.point), sealed[:SALT], device.device_id, kid)
    return parse_text(gcm_open(secret, bytes(12), sealed[SALT:], b""))


def parse_text(text):
    """cut, after, head, entries, count and last."""
    body, *padding = cbor.decode_sequence(text)
    require(not any(padding), "Padding")
    require(len(text) == -(-len(cbor.encode(body)) // UNIT) * UNIT, "Padding")
    cut, after, head, entries, count, last = require_list(body, 6)
    for number in (cut, after, count):
        require_uint(number)
    require(cut <= after <= count, "OutOfRange")
    for hash_ in (head, last):
        require(isinstance(hash_, bytes) and len(hash_) == 32, "WrongSize")
    for number, entry in enumerate(entries, after + 1):
        require(audit.parse_entry(entry)[0] == number <= count, "Sequence")
    return {"cut": cut, "after": after, "head": head, "entries": entries, "count": count, "last": last}


def receipt(device_id, count, head, issuer, **changes):
    """A receipt; `changes` are those of `cose.sign`."""
    payload = cbor.encode({1: device_id, 2: count, 3: head})
    protected = cbor.encode({1: -7, 4: issuer.kid, 16: "holdfast-receipt"})
    return cose.sign(payload, issuer, **{"protected": protected, **changes})


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
        number, head = page["after"], page["head"]
        require(self.heads.setdefault(number, head) == head, "Fork")
        for entry in page["entries"]:
            number, head = number + 1, audit.chained(head, entry)
            require(self.heads.setdefault(number, head) == head, "Fork")
            self.entries[number] = entry
        require(number < page["count"] or head == page["last"], "Chain")
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
