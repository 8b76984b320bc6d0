"""Secrets show neither in the branches nor in the addresses of the device's cryptography.

A plugin of QEMU's (`trace.c`) follows a function: each instruction, and each address that is read or written. For every secret, the
trace has to be the same. Of more secrets than `TRACED`, another one (`count.c`) counts the instructions.
"""

import random

import pytest
from board import AGREE, CURVES, HKDF, OPEN, PUBLIC_POINT, SEAL, UNWRAP, VERIFY, number
from cryptography.hazmat.primitives import hashes, keywrap
from cryptography.hazmat.primitives.asymmetric import ec, utils
from published import ORDER, POINT_I, POINT_R
from traces import COUNT, assert_alike, counts, traces

DICE = random.Random(20)

# Scalars whose digits, windows, signs or last additions are special: the smallest and the largest, those whose last step meets
# the same point twice (2, 6, … 30), runs of bits, and random ones.
SCALARS = [
    *range(1, 34),
    *(ORDER - less for less in range(1, 34)),
    *(1 << bit for bit in (31, 32, 127, 128, 252, 253, 254, 255)),
    *((1 << bit) - 1 for bit in (32, 64, 128, 192, 224, 255)),
    *(DICE.randrange(1, ORDER) for _ in range(COUNT)),
]
KEYS = [bytes(32), b"\xff" * 32, bytes(31) + b"\1", b"\x80" + bytes(31), *(DICE.randbytes(32) for _ in range(COUNT))]


def scalar_bytes(scalar):
    return scalar.to_bytes(32, "big")


QUESTIONS = {
    "holdfast_p256_agree": [(AGREE, scalar_bytes(scalar), POINT_R) for scalar in SCALARS],
    "holdfast_p256_public_point": [(PUBLIC_POINT, scalar_bytes(scalar)) for scalar in SCALARS],
    "holdfast_gcm_seal": [(SEAL, key, bytes(range(12)), b"data", key * 2) for key in KEYS],
    "holdfast_gcm_open": [(OPEN, key, bytes(range(12)), b"data", key, key[:16]) for key in KEYS],
    "holdfast_key_unwrap": [(UNWRAP, key, keywrap.aes_key_wrap(key, key)) for key in KEYS],
    "holdfast_hkdf": [(HKDF, key, b"salt", b"info", number(64)) for key in KEYS],
}


# What does not use the curve is the same code with either.
CASES = [(function, curve) for function in QUESTIONS for curve in CURVES if curve == "own" or "p256" in function]


@pytest.mark.parametrize(("function", "curve"), CASES)
def test_a_secret_shows_in_no_branch_and_no_address(plugins, function, curve):
    # No tag is right, so that no message is opened.
    is_refused = function == "holdfast_gcm_open"
    assert_alike(plugins, CURVES[curve], function, QUESTIONS[function], is_refused=is_refused)


def test_traces_and_counts_show_what_depends_on_data(plugins):
    """The verification of signatures, which are public, takes branches: the plugins see them."""
    key = ec.derive_private_key(7, ec.SECP256R1())
    digests = [DICE.randbytes(32) for _ in range(4)]
    questions = []
    for digest in digests:
        numbers = utils.decode_dss_signature(key.sign(digest, ec.ECDSA(utils.Prehashed(hashes.SHA256()))))
        point = key.public_key().public_numbers()
        public = b"\4" + scalar_bytes(point.x) + scalar_bytes(point.y)
        questions.append((VERIFY, public, digest, b"".join(map(scalar_bytes, numbers))))
    found = traces(plugins, CURVES["own"], "holdfast_p256_verify", questions)
    assert len(set(found)) == len(digests)
    numbers = [number for number, _ in found]
    assert counts(plugins, CURVES["own"], "holdfast_p256_verify", questions) == numbers, "the plugins disagree"
    assert len(set(numbers)) > 1, "all signatures take as many instructions"


def test_traces_repeat(plugins):
    again = [(AGREE, scalar_bytes(12345), POINT_I)] * 3
    assert len(set(traces(plugins, CURVES["own"], "holdfast_p256_agree", again))) == 1
