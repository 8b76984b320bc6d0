"""Both ends of an activation or an unlocking: what the owner's code and a device make of each other."""

import re

from . import cbor, oath, session
from .keys import PrivateKey
from .primitives import gcm_open, gcm_seal, hkdf_sha256, hmac_sha256, sha256
from .refusal import require, require_list, require_uint

ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
ACTIVATE, GRANT, CONFIRM, ACTIVATED, UNLOCK, UNLOCKED = range(21, 27)
HASHES = {1: "SHA1", 2: "SHA256", 3: "SHA512"}
COUNTS = {ACTIVATE: 3, GRANT: 3, CONFIRM: 2, ACTIVATED: 2, UNLOCK: 2, UNLOCKED: 2}
FROM_USER, FROM_DEVICE = (ACTIVATE, CONFIRM, UNLOCK), (GRANT, ACTIVATED, UNLOCKED)
HOST_SUITE = "OCRA-1:HOTP-SHA256-8:QH16"


def characters(code):
    """The 20 characters of a code as it is printed; its check character has to be right."""
    text = code.replace("-", "").replace(" ", "").upper().translate(str.maketrans("OIL", "011"))
    require(len(text) == 21 and all(character in ALPHABET for character in text), "Code")
    number = 0
    for character in text[:20]:
        number = number * 32 + ALPHABET.index(character)
    require(number % 37 == ALPHABET.index(text[20]), "Code")
    return text[:20].encode()


def code_key(code, purpose):
    return hkdf_sha256(characters(code), b"", f"holdfast/1 {purpose} code".encode(), 32)


def framed(label, m1):
    return label + b"\x00" + len(m1).to_bytes(2, "big") + m1


# Messages


def parse_message(data, kinds):
    """The elements of a message of one of `kinds`, read strictly."""
    require(len(data) <= session.LARGEST_MESSAGE, "TooLarge")
    fields = cbor.decode(data)
    require(isinstance(fields, list), "WrongType")
    # A byte string in the first place is the next element: the number is missing.
    require(len(fields) in (2, 3) and not isinstance(fields[0], bytes), "WrongCount")
    require(require_uint(fields[0]) in kinds, "WrongMessage")
    require(len(fields) == COUNTS[fields[0]], "WrongCount")
    sizes = {ACTIVATE: (65, 32), GRANT: (65, None)}.get(fields[0], (32,))
    for value, size in zip(fields[1:], sizes, strict=True):
        require(isinstance(value, bytes), "WrongType")
        require(size in (None, len(value)), "WrongSize")
    return fields


def grant(user, time, methods, length=16, demand=None):
    """The plaintext of a grant; `methods` is a list of [purpose, method]."""
    return cbor.encode({1: user, 2: time, 3: methods, 4: length, **({} if demand is None else {5: demand})})


def parse_grant(data):
    """The fields of a grant, read strictly."""
    fields = cbor.decode(data)
    require(isinstance(fields, dict), "WrongType")
    require(not {1, 2, 3, 4} - fields.keys(), "MissingKey")
    require(not fields.keys() - {1, 2, 3, 4, 5}, "UnknownKey")
    require(isinstance(fields[1], str), "WrongType")
    require(len(fields[1].encode()) <= 32, "TextTooLong")
    require(fields[1], "WrongSize")
    require_uint(fields[2])
    require(isinstance(fields[3], list), "WrongType")
    last = 0
    for account in fields[3]:
        index, method = require_list(account, 2)
        require(require_uint(index) in (1, 2), "Account")
        require(index > last, "UnsortedAccounts")
        last = index
        check_method(method)
    require(1 <= require_uint(fields[4]) <= 64, "OutOfRange")
    if 5 in fields:
        pin, key = map(require_uint, require_list(fields[5], 2))
        require((pin == 0 or 4 <= pin <= 64) and key <= 1 and (pin or key), "Demand")
    return {"user": fields[1], "time": fields[2], "methods": dict(fields[3]), "length": fields[4]}


def check_method(method):
    require(isinstance(method, list), "WrongType")
    require(method, "WrongCount")
    require(require_uint(method[0]) in (1, 2, 3), "Method")
    require_list(method, {1: 3, 2: 4, 3: 2}[method[0]])
    if method[0] == 3:
        require(isinstance(method[1], str), "WrongType")
        oath.parse_suite(method[1])
        return
    require(require_uint(method[1]) in HASHES, "Algorithm")
    require(4 <= require_uint(method[2]) <= 10, "Digits")
    if method[0] == 2:
        require(1 <= require_uint(method[3]) <= 86400, "Period")


# The results of a device's commands of users


def parse_sync(data):
    """The result of `user-sync`: time, and the positions of both accounts or None."""
    time, *positions = require_list(cbor.decode(data), 3)
    return [require_uint(time), *(position if position is None else require_uint(position) for position in positions)]


def parse_state(data):
    """The result of `user-state`: failures and seconds."""
    return [require_uint(value) for value in require_list(cbor.decode(data), 2)]


def check_host_code(data, secret, challenge):
    """The device's challenge in the result of `host-code`, which answers the user's `challenge`."""
    parts = re.fullmatch(rb"([0-9a-f]{16}) ([0-9]{8})", data)
    require(parts, "HostCode")
    own = parts[1].decode()
    require(oath.ocra(HOST_SUITE, secret, challenge + own) == parts[2].decode(), "WrongCode")
    return own


# Exchanges


class Activation:
    """One exchange, after `m1`; every secret of it is to be seen."""

    def __init__(self, m1, code, key=None):
        self.key = key or PrivateKey()
        self.code_key = code_key(code, "activation")
        self.opening_hash = sha256(framed(b"holdfast/1 activation", m1) + self.key.point)

    def opening(self):
        return cbor.encode([ACTIVATE, self.key.point, hmac_sha256(self.code_key, self.opening_hash)])

    def take(self, message):
        """The grant under seal in the device's answer: user, time, methods by purpose, and the length of parameters."""
        _, point, sealed = parse_message(message, (GRANT,))
        self.derive(point, self.key.exchange(point))
        return parse_grant(gcm_open(self.grant_key, bytes(12), sealed, self.transcript))

    def derive(self, fresh_point, shared):
        self.transcript = sha256(self.opening_hash + fresh_point)
        keys = hkdf_sha256(shared + self.code_key, self.transcript, b"holdfast/1 activation keys", 192)
        self.grant_key, self.client, self.device, self.otp, self.seal, self.host = (
            keys[i : i + 32] for i in range(0, 192, 32)
        )

    def confirmation(self):
        return cbor.encode([CONFIRM, hmac_sha256(self.client, self.transcript)])

    def finish(self, message):
        require(parse_message(message, (ACTIVATED,))[1] == hmac_sha256(self.device, self.transcript), "Impostor")


class ActivationAtDevice(Activation):
    """The device's end of an exchange, with its fresh key."""

    def __init__(self, m1, code, fresh, message):
        self.code_key, self.fresh = code_key(code, "activation"), fresh
        _, client_point, mac = parse_message(message, (ACTIVATE,))
        self.opening_hash = sha256(framed(b"holdfast/1 activation", m1) + client_point)
        require(mac == hmac_sha256(self.code_key, self.opening_hash), "Impostor")
        self.derive(fresh.point, fresh.exchange(client_point))

    def granted(self, plaintext):
        return cbor.encode([GRANT, self.fresh.point, gcm_seal(self.grant_key, bytes(12), plaintext, self.transcript)])

    def activated(self, message):
        require(parse_message(message, (CONFIRM,))[1] == hmac_sha256(self.client, self.transcript), "Impostor")
        return cbor.encode([ACTIVATED, hmac_sha256(self.device, self.transcript)])


class Unlocking:
    """One exchange, after `m1`."""

    def __init__(self, m1, code):
        self.code_key = code_key(code, "unlock")
        self.hash = sha256(framed(b"holdfast/1 unlock", m1))

    def message(self):
        return cbor.encode([UNLOCK, hmac_sha256(self.code_key, self.hash)])

    def answer(self, message):
        """The device's answer."""
        require(parse_message(message, (UNLOCK,))[1] == hmac_sha256(self.code_key, self.hash), "Impostor")
        return cbor.encode([UNLOCKED, hmac_sha256(self.code_key, b"\x01" + self.hash)])

    def finish(self, message):
        expected = hmac_sha256(self.code_key, b"\x01" + self.hash)
        require(parse_message(message, (UNLOCKED,))[1] == expected, "Impostor")


def seal_question(command, parameters):
    """What a seal is made over, in hexadecimal."""
    return sha256(b"holdfast/1 seal\x00" + cbor.encode([command, list(parameters)])).hex()


def password_question(suite, challenge):
    """The question of a one-time password over a device's challenge of 16 hexadecimal digits."""
    parts = oath.parse_suite(suite)
    return str(int(challenge, 16))[-parts["length"] :] if parts["format"] == "N" else challenge


def refusal_question(command, parameters):
    """What the refusal of a seal is made over, in hexadecimal."""
    return sha256(b"holdfast/1 seal refusal\x00" + cbor.encode([command, list(parameters)])).hex()
