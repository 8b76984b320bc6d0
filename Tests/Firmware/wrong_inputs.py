"""What must be refused, and what the edges of valid input give: against Python's cryptography where that has an answer."""

import hashlib
import hmac
import os
import random

from cryptography.hazmat.primitives import hashes, keywrap
from cryptography.hazmat.primitives.asymmetric import ec, utils
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.hkdf import HKDF as PythonHKDF
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from board import (
    AGREE, AGREE_BY_KEY, HKDF, HMAC_SHA1, HMAC_SHA256, HMAC_SHA512, OPEN, PUBLIC_POINT, SEAL, SHA1, SHA256, SHA512, UNWRAP,
    VERIFY, number)
from holdfast_peer.checks import expect_equal
from published import (
    GCMS, ORDER, POINT_I, POINT_R, SAMPLE, SCALAR_I, SHARED, SIGNATURE, SIGNER, UNWRAPPED, WRAPPED, WRAPPING_KEY, unhex)

PRIME = 0xFFFFFFFF00000001000000000000000000000000FFFFFFFFFFFFFFFFFFFFFFFF
HASHES = [(SHA1, HMAC_SHA1, "sha1"), (SHA256, HMAC_SHA256, "sha256"), (SHA512, HMAC_SHA512, "sha512")]


def flips(value):
    """`value` with one bit changed, for bits all over it."""
    for position in sorted({0, 7, 8 * len(value) // 2, 8 * len(value) - 1}):
        changed = bytearray(value)
        changed[position // 8] ^= 1 << position % 8
        yield bytes(changed)


def bytes_of(value):
    return value.to_bytes(32, "big")


def check_forged_gcm(board):
    for case in GCMS:
        key, nonce, data, message, ciphertext, tag = map(unhex, case)
        for forged in flips(tag):
            expect_equal(board.ask(OPEN, key, nonce, data, ciphertext, forged), None, "a wrong tag")
        expect_equal(board.ask(OPEN, key, nonce, data + b"\0", ciphertext, tag), None, "longer data")
        for forged in flips(ciphertext) if ciphertext else ():
            expect_equal(board.ask(OPEN, key, nonce, data, forged, tag), None, "a wrong ciphertext")
        for forged in flips(nonce):
            expect_equal(board.ask(OPEN, key, forged, data, ciphertext, tag), None, "a wrong nonce")
    for count in 0, 11, 13, 16:
        expect_equal(board.ask(SEAL, bytes(32), bytes(count), b"", b"message"), None, f"a nonce of {count} bytes")


def check_forged_key_wrap(board):
    for forged in flips(WRAPPED):
        expect_equal(board.ask(UNWRAP, WRAPPING_KEY, forged), None, "a changed key")
    for count in 0, 24, 32, 39, 41, 48:
        expect_equal(board.ask(UNWRAP, WRAPPING_KEY, bytes(count)), None, f"{count} bytes")


def check_hkdf_limit(board):
    expect_equal(board.ask(HKDF, b"k", b"", b"", number(0)), b"", "nothing derived")


def check_scalars(board):
    for scalar in 0, ORDER, ORDER + 1, 2**256 - 1:
        for operation in PUBLIC_POINT, AGREE, AGREE_BY_KEY:
            expect_equal(board.ask(operation, bytes_of(scalar), POINT_I), None, f"the scalar {scalar:x}")
    for scalar in 1, 2, 15, 16, ORDER - 2, ORDER - 1, 2**255, 2**224, (1 << 128) - 1:
        key = ec.derive_private_key(scalar, ec.SECP256R1())
        point = key.public_key().public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)
        expect_equal(board.ask(PUBLIC_POINT, bytes_of(scalar)), point, f"the point of {scalar:x}")
        shared = key.exchange(ec.ECDH(), ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), POINT_R))
        expect_equal(board.ask(AGREE, bytes_of(scalar), POINT_R), shared, f"agreed by {scalar:x}")
    expect_equal(board.ask(AGREE_BY_KEY, SCALAR_I, POINT_R), SHARED, "agreed by a key")


def check_points(board):
    x, y = POINT_R[1:33], POINT_R[33:]
    shifted_y = int.from_bytes(y, "big") + PRIME
    invalid = {
        "off the curve": bytes([4]) + x + next(flips(y)),
        "zero": bytes([4]) + bytes(64),
        "infinity as zeros": bytes(65),
        "x as y": bytes([4]) + y + x,
        "compressed": bytes([2 + y[31] % 2]) + x + y,
        "hybrid": bytes([6 + y[31] % 2]) + x + y,
        "x not below the prime": bytes([4]) + bytes_of(PRIME) + y,
        "all ones": bytes([4]) + b"\xff" * 64,
        "on the curve of another b": bytes([4]) + bytes_of(0) + bytes_of(1),
    }
    if shifted_y < 2**256:
        invalid["y not below the prime"] = bytes([4]) + x + bytes_of(shifted_y)
    for name, point in invalid.items():
        expect_equal(board.ask(AGREE, SCALAR_I, point), None, name)
        expect_equal(board.ask(VERIFY, point, SAMPLE, SIGNATURE), None, name)
    for count in 0, 1, 33, 64, 66:
        expect_equal(board.ask(AGREE, SCALAR_I, POINT_R[:count] + bytes(max(0, count - 65))), None, f"{count} bytes")


def check_signatures(board):
    r, s = (int.from_bytes(part, "big") for part in (SIGNATURE[:32], SIGNATURE[32:]))
    expect_equal(board.ask(VERIFY, SIGNER, SAMPLE, bytes_of(r) + bytes_of(ORDER - s)), b"", "the twin, which ECDSA has")
    forged = {"swapped": (s, r), "minus r": (ORDER - r, s), "r zero": (0, s), "s zero": (r, 0), "both zero": (0, 0),
              "both one": (1, 1), "r the order": (ORDER, s), "s the order": (r, ORDER), "all ones": (2**256 - 1,) * 2}
    if r + ORDER < 2**256:
        forged["r past the order"] = (r + ORDER, s)
    for name, (wrong_r, wrong_s) in forged.items():
        expect_equal(board.ask(VERIFY, SIGNER, SAMPLE, bytes_of(wrong_r) + bytes_of(wrong_s)), None, name)
    for wrong in flips(SIGNATURE):
        expect_equal(board.ask(VERIFY, SIGNER, SAMPLE, wrong), None, "a changed signature")
    for wrong in flips(SAMPLE):
        expect_equal(board.ask(VERIFY, SIGNER, wrong, SIGNATURE), None, "another digest")
    expect_equal(board.ask(VERIFY, POINT_I, SAMPLE, SIGNATURE), None, "another's key")


def check_random_symmetric(board):
    """Pieces, lengths about each block's end, and alignments, beside Python's own."""
    dice = random.Random(1)
    for count in [*range(0, 70), 111, 112, 119, 120, 127, 128, 129, 255, 256, 257, 1000]:
        message, key, shift = dice.randbytes(count), dice.randbytes(dice.randrange(0, 140)), dice.randrange(4)
        cut = dice.randrange(count + 1)
        for hash_operation, mac_operation, name in HASHES:
            expected = hashlib.new(name, message).digest()
            expect_equal(board.ask(hash_operation, message[:cut], message[cut:], shift=shift), expected, f"{name}, {count}")
            expected = hmac.new(key, message, name).digest()
            expect_equal(board.ask(mac_operation, key, message[:cut], message[cut:], shift=shift), expected, f"HMAC {name}")
        aes_key, data = dice.randbytes(32), dice.randbytes(dice.randrange(0, 100))
        nonce = bytes(12) if count % 2 else dice.randbytes(12)
        sealed = AESGCM(aes_key).encrypt(nonce, message, data)
        expect_equal(board.ask(SEAL, aes_key, nonce, data, message, shift=shift), sealed, f"GCM, {count}")
        opened = board.ask(OPEN, aes_key, nonce, data, sealed[:-16], sealed[-16:], shift=shift)
        expect_equal(opened, message, f"GCM opened, {count}")
        derived = PythonHKDF(hashes.SHA256(), max(count, 1), data, message).derive(key)
        expect_equal(board.ask(HKDF, key, data, message, number(max(count, 1)), shift=shift), derived, f"HKDF, {count}")
        wrapped = keywrap.aes_key_wrap(aes_key, UNWRAPPED)
        expect_equal(board.ask(UNWRAP, aes_key, wrapped, shift=shift), UNWRAPPED, "unwrapped")


def check_random_curve(board):
    for _ in range(20):
        key, peer = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
        scalar = bytes_of(key.private_numbers().private_value)
        point, peer_point = (
            each.public_key().public_bytes(Encoding.X962, PublicFormat.UncompressedPoint) for each in (key, peer))
        expect_equal(board.ask(PUBLIC_POINT, scalar), point, "public point")
        expect_equal(board.ask(AGREE, scalar, peer_point), key.exchange(ec.ECDH(), peer.public_key()), "agreed")
        digest = os.urandom(32)
        signed = utils.decode_dss_signature(key.sign(digest, ec.ECDSA(utils.Prehashed(hashes.SHA256()))))
        signature = b"".join(map(bytes_of, signed))
        expect_equal(board.ask(VERIFY, point, digest, signature), b"", "verified")
        expect_equal(board.ask(VERIFY, peer_point, digest, signature), None, "verified by another's key")


CHECKS = [
    ("GCM refuses what was changed", check_forged_gcm),
    ("key unwrap refuses what was changed", check_forged_key_wrap),
    ("HKDF of nothing is nothing", check_hkdf_limit),
    ("scalars at their edges", check_scalars),
    ("points that are none", check_points),
    ("signatures that are none", check_signatures),
    ("symmetric operations, beside Python's", check_random_symmetric),
    ("the curve, beside Python's", check_random_curve),
]
