"""The board's cryptography: published values, what must be refused, and edges of valid input compared with Python's cryptography."""

import hashlib
import hmac
import os
import random

from board import (
    AGREE,
    AGREE_BY_KEY,
    FIELD,
    HKDF,
    HMAC_SHA1,
    HMAC_SHA256,
    HMAC_SHA512,
    OPEN,
    PUBLIC_POINT,
    SEAL,
    SHA1,
    SHA256,
    SHA512,
    UNWRAP,
    VERIFY,
    number,
)
from cryptography.hazmat.primitives import hashes, keywrap
from cryptography.hazmat.primitives.asymmetric import ec, utils
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.hkdf import HKDF as PythonHKDF
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from published import (
    GCMS,
    HKDFS,
    MACS,
    ORDER,
    POINT_I,
    POINT_R,
    SAMPLE,
    SCALAR_I,
    SCALAR_R,
    SHARED,
    SIGNATURE,
    SIGNER,
    UNWRAPPED,
    WRAPPED,
    WRAPPING_KEY,
    unhex,
)
from published import HASHES as PUBLISHED_HASHES

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


# Published values, at every alignment


def at_every_alignment(board, operation, *fields):
    results = [board.ask(operation, *fields, shift=shift) for shift in range(4)]
    assert results == results[:1] * 4, "the answers at four alignments"
    return results[0]


def test_fips_180_4_hashes(board):
    for operation, message, expected in PUBLISHED_HASHES:
        assert at_every_alignment(board, operation, message) == unhex(expected), f"operation {operation}"


def test_rfc_2202_and_rfc_4231_hmac(board):
    for operation, key, message, expected in MACS:
        assert at_every_alignment(board, operation, key, message) == unhex(expected), f"operation {operation}"


def test_rfc_5869_hkdf(board):
    for input_key, salt, info, expected in HKDFS:
        output = unhex(expected)
        assert at_every_alignment(board, HKDF, input_key, salt, info, number(len(output))) == output, "HKDF"


def test_gcms_own_test_cases(board):
    for case in GCMS:
        key, nonce, data, message, ciphertext, tag = map(unhex, case)
        assert at_every_alignment(board, SEAL, key, nonce, data, message) == ciphertext + tag, "sealed"
        assert at_every_alignment(board, OPEN, key, nonce, data, ciphertext, tag) == message, "opened"


def test_rfc_3394_key_unwrap(board):
    assert at_every_alignment(board, UNWRAP, WRAPPING_KEY, WRAPPED) == UNWRAPPED, "unwrapped"


def test_rfc_5903_and_rfc_6979_the_curve(curve_board):
    for scalar, point, peer in (SCALAR_I, POINT_I, POINT_R), (SCALAR_R, POINT_R, POINT_I):
        assert curve_board.ask(PUBLIC_POINT, scalar) == point, "public point"
        assert at_every_alignment(curve_board, AGREE, scalar, peer) == SHARED, "agreed"
    assert at_every_alignment(curve_board, VERIFY, SIGNER, SAMPLE, SIGNATURE) == b"", "verified"


# What must be refused, and edges


def test_gcm_refuses_what_was_changed(board):
    for case in GCMS:
        key, nonce, data, _message, ciphertext, tag = map(unhex, case)
        for forged in flips(tag):
            assert board.ask(OPEN, key, nonce, data, ciphertext, forged) is None, "a wrong tag"
        assert board.ask(OPEN, key, nonce, data + b"\0", ciphertext, tag) is None, "longer data"
        for forged in flips(ciphertext) if ciphertext else ():
            assert board.ask(OPEN, key, nonce, data, forged, tag) is None, "a wrong ciphertext"
        for forged in flips(nonce):
            assert board.ask(OPEN, key, forged, data, ciphertext, tag) is None, "a wrong nonce"
    for count in 0, 11, 13, 16:
        assert board.ask(SEAL, bytes(32), bytes(count), b"", b"message") is None, f"a nonce of {count} bytes"


def test_key_unwrap_refuses_what_was_changed(board):
    for forged in flips(WRAPPED):
        assert board.ask(UNWRAP, WRAPPING_KEY, forged) is None, "a changed key"
    for count in 0, 24, 32, 39, 41, 48:
        assert board.ask(UNWRAP, WRAPPING_KEY, bytes(count)) is None, f"{count} bytes"


def test_hkdf_of_nothing_is_nothing(board):
    assert board.ask(HKDF, b"k", b"", b"", number(0)) == b"", "nothing derived"


def test_scalars_at_their_edges(curve_board):
    for scalar in 0, ORDER, ORDER + 1, 2**256 - 1:
        for operation in PUBLIC_POINT, AGREE, AGREE_BY_KEY:
            assert curve_board.ask(operation, bytes_of(scalar), POINT_I) is None, f"the scalar {scalar:x}"
    for scalar in 1, 2, 15, 16, ORDER - 2, ORDER - 1, 2**255, 2**224, (1 << 128) - 1:
        key = ec.derive_private_key(scalar, ec.SECP256R1())
        point = key.public_key().public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)
        assert curve_board.ask(PUBLIC_POINT, bytes_of(scalar)) == point, f"the point of {scalar:x}"
        shared = key.exchange(ec.ECDH(), ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), POINT_R))
        assert curve_board.ask(AGREE, bytes_of(scalar), POINT_R) == shared, f"agreed by {scalar:x}"
    assert curve_board.ask(AGREE_BY_KEY, SCALAR_I, POINT_R) == SHARED, "agreed by a key"


def test_points_that_are_none(curve_board):
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
        assert curve_board.ask(AGREE, SCALAR_I, point) is None, name
        assert curve_board.ask(VERIFY, point, SAMPLE, SIGNATURE) is None, name
    for count in 0, 1, 33, 64, 66:
        assert curve_board.ask(AGREE, SCALAR_I, POINT_R[:count] + bytes(max(0, count - 65))) is None, f"{count} bytes"


def test_signatures_that_are_none(curve_board):
    r, s = (int.from_bytes(part, "big") for part in (SIGNATURE[:32], SIGNATURE[32:]))
    assert curve_board.ask(VERIFY, SIGNER, SAMPLE, bytes_of(r) + bytes_of(ORDER - s)) == b"", (
        "the twin, which ECDSA has"
    )
    forged = {
        "swapped": (s, r),
        "minus r": (ORDER - r, s),
        "r zero": (0, s),
        "s zero": (r, 0),
        "both zero": (0, 0),
        "both one": (1, 1),
        "r the order": (ORDER, s),
        "s the order": (r, ORDER),
        "all ones": (2**256 - 1,) * 2,
    }
    if r + ORDER < 2**256:
        forged["r past the order"] = (r + ORDER, s)
    for name, (wrong_r, wrong_s) in forged.items():
        assert curve_board.ask(VERIFY, SIGNER, SAMPLE, bytes_of(wrong_r) + bytes_of(wrong_s)) is None, name
    for wrong in flips(SIGNATURE):
        assert curve_board.ask(VERIFY, SIGNER, SAMPLE, wrong) is None, "a changed signature"
    for wrong in flips(SAMPLE):
        assert curve_board.ask(VERIFY, SIGNER, wrong, SIGNATURE) is None, "another digest"
    assert curve_board.ask(VERIFY, POINT_I, SAMPLE, SIGNATURE) is None, "another's key"


def test_symmetric_operations_beside_pythons(board):
    """Pieces, lengths about each block's end, and alignments, compared with Python's own."""
    dice = random.Random(1)
    for count in [*range(70), 111, 112, 119, 120, 127, 128, 129, 255, 256, 257, 1000]:
        message, key, shift = dice.randbytes(count), dice.randbytes(dice.randrange(0, 140)), dice.randrange(4)
        cut = dice.randrange(count + 1)
        for hash_operation, mac_operation, name in HASHES:
            expected = hashlib.new(name, message).digest()
            assert board.ask(hash_operation, message[:cut], message[cut:], shift=shift) == expected, f"{name}, {count}"
            expected = hmac.new(key, message, name).digest()
            assert board.ask(mac_operation, key, message[:cut], message[cut:], shift=shift) == expected, f"HMAC {name}"
        aes_key, data = dice.randbytes(32), dice.randbytes(dice.randrange(0, 100))
        nonce = bytes(12) if count % 2 else dice.randbytes(12)
        sealed = AESGCM(aes_key).encrypt(nonce, message, data)
        assert board.ask(SEAL, aes_key, nonce, data, message, shift=shift) == sealed, f"GCM, {count}"
        opened = board.ask(OPEN, aes_key, nonce, data, sealed[:-16], sealed[-16:], shift=shift)
        assert opened == message, f"GCM opened, {count}"
        derived = PythonHKDF(hashes.SHA256(), max(count, 1), data, message).derive(key)
        assert board.ask(HKDF, key, data, message, number(max(count, 1)), shift=shift) == derived, f"HKDF, {count}"
        wrapped = keywrap.aes_key_wrap(aes_key, UNWRAPPED)
        assert board.ask(UNWRAP, aes_key, wrapped, shift=shift) == UNWRAPPED, "unwrapped"


def test_the_curve_beside_pythons(curve_board):
    for _ in range(100):
        key, peer = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
        scalar = bytes_of(key.private_numbers().private_value)
        point, peer_point = (
            each.public_key().public_bytes(Encoding.X962, PublicFormat.UncompressedPoint) for each in (key, peer)
        )
        assert curve_board.ask(PUBLIC_POINT, scalar) == point, "public point"
        assert curve_board.ask(AGREE, scalar, peer_point) == key.exchange(ec.ECDH(), peer.public_key()), "agreed"
        digest = os.urandom(32)
        signed = utils.decode_dss_signature(key.sign(digest, ec.ECDSA(utils.Prehashed(hashes.SHA256()))))
        signature = b"".join(map(bytes_of, signed))
        assert curve_board.ask(VERIFY, point, digest, signature) == b"", "verified"
        assert curve_board.ask(VERIFY, peer_point, digest, signature) is None, "verified by another's key"


# The field


def field_edges():
    """Elements about 0 and the prime, and those whose sums and products carry in every word."""
    powers = [1 << bit for bit in range(32, 256, 32)]
    about = [0, PRIME, *powers, *(PRIME - power for power in powers), 2**224 - 1, 2**256 // 3, (PRIME + 1) // 2]
    patterns = [int(word * 8, 16) for word in ("7fffffff", "80000000", "00000001", "fffffffe")]
    # In the product of these two, a sum passes 2^288 by very little.
    patterns += [PRIME - 2**96 + 2, 2**224 - 2]
    numbers = {value + offset for value in about for offset in (-1, 0, 1)} | set(patterns)
    return sorted(number for number in numbers if 0 <= number < PRIME)


def test_the_field_at_its_edges_and_at_random(board):
    """The same C as on the host, compiled for this processor: every pair of edges, and random elements."""
    edges, dice = field_edges(), random.Random(3)
    inverse = pow(2**256, -1, PRIME)
    for left in edges + [dice.randrange(PRIME) for _ in range(20)]:
        others = edges + [dice.randrange(PRIME) for _ in range(10)]
        for rights in (others[first : first + 32] for first in range(0, len(others), 32)):
            expected = [
                ((left + right) % PRIME, (left - right) % PRIME, left * right * inverse % PRIME, half(right))
                for right in rights
            ]
            found = board.ask(FIELD, bytes_of(left), b"".join(map(bytes_of, rights)))
            assert found == b"".join(bytes_of(result) for results in expected for result in results), f"{left:x}"


def half(number):
    return (number + number % 2 * PRIME) // 2


def test_what_is_no_element_is_not_read(board):
    for value in PRIME, PRIME + 1, 2**256 - 1:
        assert board.ask(FIELD, bytes_of(value), bytes(32)) is None, f"{value:x}"
        assert board.ask(FIELD, bytes(32), bytes_of(value)) is None, f"{value:x}"
