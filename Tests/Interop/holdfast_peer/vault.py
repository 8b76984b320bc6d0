"""A vault's files and what it encrypts, written only from docs/vault.md."""

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.scrypt import Scrypt

from .primitives import hkdf_sha256, hmac_sha256
from .refusal import require

CHUNK, TAG, HEADER = 65_536, 16, 96


def mac(data, identity, host):
    return hmac_sha256(hkdf_sha256(host, identity, b"holdfast/1 vault files", 32), data)


def passcode_key(passcode, slot, identity, host):
    """The key that wraps a vault's key; `slot` is limit ‖ cost ‖ salt, 36 bytes."""
    logarithm, block, parallel = slot[1:4]
    slow = Scrypt(salt=slot[4:36], length=32, n=1 << logarithm, r=block, p=parallel).derive(passcode)
    return hkdf_sha256(slow + host, slot[4:36], b"holdfast/1 vault passcode\x00" + identity + slot[:4], 32)


def file_key(key_file, salt, identity, host):
    return hkdf_sha256(key_file + host, salt, b"holdfast/1 vault key file\x00" + identity, 32)


def key_check(key, identity):
    return hkdf_sha256(key, identity, b"holdfast/1 vault key check", 32)


def wrap(key, wrapping):
    return AESGCM(wrapping).encrypt(bytes(12), key, b"")


def record(identity, key, host, revision=1, passcode=None, slot=None, key_file=None, salt=None):
    """A record whose key is wrapped by a passcode with its `slot`, and by a key file with its `salt`."""
    data = b"holdfast-vault/1" + identity + key_check(key, identity) + revision.to_bytes(4, "big")
    data += bytes([(passcode is not None) + 2 * (key_file is not None)])
    data += bytes(84) if passcode is None else slot + wrap(key, passcode_key(passcode, slot, identity, host))
    data += bytes(80) if key_file is None else salt + wrap(key, file_key(key_file, salt, identity, host))
    return data + mac(data, identity, host)


def key_of(data, host, passcode=None, key_file=None):
    """The id and the key of a record."""
    require(len(data) == 265 and data[:16] == b"holdfast-vault/1", "Record")
    identity = data[16:32]
    require(mac(data[:233], identity, host) == data[233:], "Record")
    if passcode is not None:
        wrapping, wrapped = passcode_key(passcode, data[69:105], identity, host), data[105:153]
    else:
        wrapping, wrapped = file_key(key_file, data[153:185], identity, host), data[185:233]
    try:
        key = AESGCM(wrapping).decrypt(bytes(12), wrapped, b"")
    except InvalidTag:
        require(False, "Key")
    require(key_check(key, identity) == data[32:64], "Key")
    return identity, key


def attempts(identity, host, state, count):
    data = b"holdfast-tries/1" + identity + bytes([state, count])
    return data + mac(data, identity, host)


def nonce(number, is_last):
    return number.to_bytes(11, "big") + bytes([is_last])


def encrypt(plain, identity, key, salt, context=b""):
    derived = hkdf_sha256(key, salt, b"holdfast/1 vault contents\x00" + identity + context, 64)
    header = b"holdfast-crypt/1" + identity + salt + derived[32:]
    chunks = [plain[start : start + CHUNK] for start in range(0, len(plain), CHUNK)] or [b""]
    cipher = AESGCM(derived[:32])
    return header + b"".join(
        cipher.encrypt(nonce(number, number == len(chunks) - 1), chunk, header) for number, chunk in enumerate(chunks)
    )


def decrypt(sealed, identity, key, context=b""):
    header, rest = sealed[:HEADER], sealed[HEADER:]
    require(len(header) == HEADER and header[:16] == b"holdfast-crypt/1" and header[16:32] == identity, "Header")
    derived = hkdf_sha256(key, header[32:64], b"holdfast/1 vault contents\x00" + identity + context, 64)
    require(derived[32:] == header[64:], "Commitment")
    chunks = [rest[start : start + CHUNK + TAG] for start in range(0, len(rest), CHUNK + TAG)]
    require(chunks and (len(chunks) == 1 or len(chunks[-1]) > TAG), "Chunk")
    cipher, plain = AESGCM(derived[:32]), b""
    for number, chunk in enumerate(chunks):
        try:
            plain += cipher.decrypt(nonce(number, number == len(chunks) - 1), chunk, header)
        except InvalidTag:
            require(False, "Chunk")
    return plain
