"""The hash, MAC, key derivation and cipher calls, by the names that the protocol uses."""

import hashlib
import hmac as _hmac

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from .refusal import Refused


def sha256(data):
    return hashlib.sha256(data).digest()


def hmac_sha256(key, data):
    return _hmac.new(key, data, hashlib.sha256).digest()


def hkdf_sha256(key_material, salt, info, byte_count):
    """HKDF (RFC 5869). An empty `salt` is 32 zero bytes."""
    key = hmac_sha256(salt or bytes(32), key_material)
    output, block, counter = b"", b"", 1
    while len(output) < byte_count:
        block = hmac_sha256(key, block + info + bytes([counter]))
        output, counter = output + block, counter + 1
    return output[:byte_count]


def concat_kdf_sha256(secret, other_info):
    """One 32-byte block of the single-step KDF (NIST SP 800-56A section 5.8.1)."""
    return sha256((1).to_bytes(4, "big") + secret + other_info)


def gcm_seal(key, nonce, plaintext, associated_data):
    """AES-256-GCM; the 16-byte tag follows the ciphertext."""
    return AESGCM(key).encrypt(nonce, plaintext, associated_data)


def gcm_open(key, nonce, sealed, associated_data):
    """The plaintext of `sealed`, or a refusal."""
    if len(sealed) < 16:
        raise Refused("Decryption")
    try:
        return AESGCM(key).decrypt(nonce, sealed, associated_data)
    except InvalidTag:
        raise Refused("Decryption") from None
