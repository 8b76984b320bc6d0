"""A user's end of an activation or an unlocking: what the owner's code and a device make of each other."""

from . import cbor, oath
from .keys import PrivateKey
from .primitives import gcm_open, hkdf_sha256, hmac_sha256, sha256
from .refusal import require

ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
ACTIVATE, GRANT, CONFIRM, ACTIVATED, UNLOCK, UNLOCKED = range(21, 27)
HASHES = {1: "SHA1", 2: "SHA256", 3: "SHA512"}


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
        kind, point, sealed = cbor.decode(message)
        require(kind == GRANT and len(point) == 65, "WrongMessage")
        self.transcript = sha256(self.opening_hash + point)
        keys = hkdf_sha256(
            self.key.exchange(point) + self.code_key, self.transcript, b"holdfast/1 activation keys", 192
        )
        grant, self.client, self.device, self.otp, self.seal, self.host = (keys[i : i + 32] for i in range(0, 192, 32))
        fields = cbor.decode(gcm_open(grant, bytes(12), sealed, self.transcript))
        require(set(fields) == {1, 2, 3, 4}, "WrongMessage")
        return {"user": fields[1], "time": fields[2], "methods": dict(fields[3]), "length": fields[4]}

    def confirmation(self):
        return cbor.encode([CONFIRM, hmac_sha256(self.client, self.transcript)])

    def finish(self, message):
        require(cbor.decode(message) == [ACTIVATED, hmac_sha256(self.device, self.transcript)], "Impostor")


class Unlocking:
    """One exchange, after `m1`."""

    def __init__(self, m1, code):
        self.code_key = code_key(code, "unlock")
        self.hash = sha256(framed(b"holdfast/1 unlock", m1))

    def message(self):
        return cbor.encode([UNLOCK, hmac_sha256(self.code_key, self.hash)])

    def finish(self, message):
        require(cbor.decode(message) == [UNLOCKED, hmac_sha256(self.code_key, b"\x01" + self.hash)], "Impostor")


def seal_question(command, parameters):
    """What a seal is made over, in hexadecimal."""
    return sha256(b"holdfast/1 seal\x00" + cbor.encode([command, list(parameters)])).hex()


def password_question(suite, challenge):
    """The question of a one-time password over a device's challenge of 16 hexadecimal digits."""
    parts = oath.parse_suite(suite)
    return str(int(challenge, 16))[-parts["length"] :] if parts["format"] == "N" else challenge
