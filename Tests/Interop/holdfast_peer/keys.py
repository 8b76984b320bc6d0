"""P-256 keys: key ids, JWK, ECDH, and ECDSA with deterministic nonces (RFC 6979), so that vectors repeat."""

import secrets

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, utils

from . import base64strict
from .primitives import hmac_sha256, sha256
from .refusal import Refused, require

ORDER = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
PRIME = 0xFFFFFFFF00000001000000000000000000000000FFFFFFFFFFFFFFFFFFFFFFFF


def key_id(point):
    """The first 8 bytes of SHA-256 of the uncompressed SEC1 point."""
    return sha256(point)[:8]


def mac_key_id(key):
    """The first 8 bytes of a hash of a MAC key that no other hash of it equals."""
    return sha256(b"holdfast/1 mac kid\0" + key)[:8]


def mac_jwk(key):
    """The JWK of a MAC key as `service mac-key` writes it."""
    return {"kty": "oct", "k": base64strict.url_encode(key), "alg": "HS256", "use": "sig"}


def load_point(point):
    """The public key of 65 SEC1 bytes; a point off the curve is refused."""
    require(len(point) == 65 and point[0] == 4, "Point")
    try:
        return ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), point)
    except ValueError:
        raise Refused("Point") from None


def verify(point, message, signature):
    """Refuses unless `signature` (r and s, 32 bytes each) is the key's over `message`."""
    require(len(signature) == 64, "SignatureForm")
    r, s = int.from_bytes(signature[:32], "big"), int.from_bytes(signature[32:], "big")
    require(0 < r < ORDER and 0 < s < ORDER, "SignatureForm")
    try:
        load_point(point).verify(utils.encode_dss_signature(r, s), message, ec.ECDSA(hashes.SHA256()))
    except InvalidSignature:
        raise Refused("Signature") from None


def jwk(point):
    """The public JWK (RFC 7517) of an uncompressed point."""
    return {
        "kty": "EC",
        "crv": "P-256",
        "x": base64strict.url_encode(point[1:33]),
        "y": base64strict.url_encode(point[33:]),
    }


def point_of_jwk(key):
    """The uncompressed point of a public P-256 JWK."""
    require(key.get("kty") == "EC" and key.get("crv") == "P-256", "Point")
    require(isinstance(key.get("x"), str) and isinstance(key.get("y"), str), "Point")
    x, y = base64strict.url_decode(key["x"]), base64strict.url_decode(key["y"])
    require(len(x) == 32 and len(y) == 32, "Point")
    load_point(b"\x04" + x + y)
    return b"\x04" + x + y


class PrivateKey:
    """A P-256 private key: a device's, an issuer's, or an ephemeral one."""

    def __init__(self, scalar=None):
        scalar = secrets.randbelow(ORDER - 1) + 1 if scalar is None else int.from_bytes(scalar, "big")
        self.scalar = scalar.to_bytes(32, "big")
        self._key = ec.derive_private_key(scalar, ec.SECP256R1())
        self.point = self._key.public_key().public_bytes(
            serialization.Encoding.X962, serialization.PublicFormat.UncompressedPoint
        )
        self.kid = key_id(self.point)

    def exchange(self, point):
        """The x coordinate of the shared point, 32 bytes."""
        return self._key.exchange(ec.ECDH(), load_point(point))

    def sign(self, message):
        """An ES256 signature, r and s in 64 bytes, the same for the same message."""
        digest = int.from_bytes(sha256(message), "big")
        d = int.from_bytes(self.scalar, "big")
        for k in _nonces(self.scalar, (digest % ORDER).to_bytes(32, "big")):
            r = ec.derive_private_key(k, ec.SECP256R1()).public_key().public_numbers().x % ORDER
            s = pow(k, -1, ORDER) * (digest + r * d) % ORDER
            if r and s:
                return r.to_bytes(32, "big") + s.to_bytes(32, "big")


def _nonces(scalar, digest):
    """The candidates of RFC 6979 section 3.2, HMAC-SHA-256."""
    v, k = b"\x01" * 32, bytes(32)
    for separator in (b"\x00", b"\x01"):
        k = hmac_sha256(k, v + separator + scalar + digest)
        v = hmac_sha256(k, v)
    while True:
        v = hmac_sha256(k, v)
        if 0 < int.from_bytes(v, "big") < ORDER:
            yield int.from_bytes(v, "big")
        k = hmac_sha256(k, v + b"\x00")
        v = hmac_sha256(k, v)
