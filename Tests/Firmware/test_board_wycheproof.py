"""Project Wycheproof's cases, asked of the board, from the folder that HOLDFAST_WYCHEPROOF names."""

import hashlib
import json
import os
import pathlib

import pytest
from board import AGREE, HKDF, HMAC_SHA1, HMAC_SHA256, HMAC_SHA512, OPEN, SEAL, UNWRAP, VERIFY, number
from cryptography.hazmat.primitives.asymmetric import utils
from holdfast_peer import base64strict
from published import unhex

pytestmark = pytest.mark.skipif("HOLDFAST_WYCHEPROOF" not in os.environ, reason="HOLDFAST_WYCHEPROOF names no folder")


def cases(name, count):
    """Every case of a file and its group; the file must hold as many as it says, and `count` at least."""
    file = json.loads((pathlib.Path(os.environ["HOLDFAST_WYCHEPROOF"]) / name).read_text())
    found = [(group, case) for group in file["testGroups"] for case in group["tests"]]
    assert len(found) == file["numberOfTests"], "cases"
    assert len(found) >= count, "too few cases"
    return found


def expected(case, field):
    return unhex(case[field]) if case["result"] == "valid" else None


# A key of P-256 as SubjectPublicKeyInfo has this before its 65 bytes. Source: RFC 5480, section 2.
SPKI_HEAD = unhex("3059301306072a8648ce3d020106082a8648ce3d030107034200")


def shared_by(board, scalar, point):
    return board.ask(AGREE, int.from_bytes(scalar).to_bytes(32, "big"), point)


def test_wycheproof_ecdh(curve_board):
    for _, case in cases("ecdh_secp256r1_ecpoint_test.json", 350):
        point = unhex(case["public"])
        # A compressed point is right, and nothing that Holdfast takes.
        shared = unhex(case["shared"]) if case["result"] != "invalid" and len(point) == 65 else None
        assert shared_by(curve_board, unhex(case["private"]), point) == shared, f"case {case['tcId']}"


def test_wycheproof_ecdh_in_subject_public_key_info(curve_board):
    """Points in the one form in which a host hands them to a board; others it refuses before."""
    asked = 0
    for _, case in cases("ecdh_secp256r1_test.json", 600):
        head, point = unhex(case["public"])[: len(SPKI_HEAD)], unhex(case["public"])[len(SPKI_HEAD) :]
        if head == SPKI_HEAD and len(point) == 65:
            asked += 1
            shared = shared_by(curve_board, unhex(case["private"]), point)
            # A case that a verifier may take or refuse is taken rightly, if it is.
            assert shared == expected(case, "shared") or case["result"] == "acceptable", f"case {case['tcId']}"
            assert shared in (None, unhex(case["shared"])), f"case {case['tcId']}"
    assert asked >= 300, "too few points"


def test_wycheproof_ecdh_in_jwks(curve_board):
    asked = 0
    for _, case in cases("ecdh_secp256r1_webcrypto_test.json", 300):
        try:
            x, y, d = (base64strict.url_decode(key[name]) for key, name in jwk_members(case))
        except (KeyError, ValueError):
            continue
        if len(x) == len(y) == 32 and case["public"]["crv"] == "P-256":
            asked += 1
            assert shared_by(curve_board, d, b"\4" + x + y) == expected(case, "shared"), f"case {case['tcId']}"
    assert asked >= 250, "too few points"


def jwk_members(case):
    return ((case["public"], "x"), (case["public"], "y"), (case["private"], "d"))


# The digests of P-256's cases; of a longer one, the first 32 bytes count. Source: FIPS 186-5, section 6.4.1.
DIGESTS = {
    "sha256": lambda message: hashlib.sha256(message).digest(),
    "sha512": lambda message: hashlib.sha512(message).digest()[:32],
    "sha3_256": lambda message: hashlib.sha3_256(message).digest(),
    "sha3_512": lambda message: hashlib.sha3_512(message).digest()[:32],
    "shake128": lambda message: hashlib.shake_128(message).digest(32),
}


def verified_by(board, group, case, digest, signature):
    return board.ask(VERIFY, unhex(group["publicKey"]["uncompressed"]), DIGESTS[digest](unhex(case["msg"])), signature)


@pytest.mark.parametrize(("digest", "count"), [("sha256", 250), ("sha512", 300), ("shake128", 250)])
def test_wycheproof_ecdsa(curve_board, digest, count):
    for group, case in cases(f"ecdsa_secp256r1_{digest}_p1363_test.json", count):
        verified = verified_by(curve_board, group, case, digest, unhex(case["sig"]))
        assert verified == (b"" if case["result"] == "valid" else None), f"case {case['tcId']}"


@pytest.mark.parametrize("digest", DIGESTS)
def test_wycheproof_ecdsa_in_der(curve_board, digest):
    """Signatures whose DER is right, as the two numbers that a board takes. A number that is too long for that is wrong."""
    asked = 0
    for group, case in cases(f"ecdsa_secp256r1_{digest}_test.json", 250):
        try:
            numbers = utils.decode_dss_signature(unhex(case["sig"]))
            if utils.encode_dss_signature(*numbers) != unhex(case["sig"]):
                raise ValueError
            signature = b"".join(each.to_bytes(32, "big") for each in numbers)
        except (ValueError, OverflowError):
            assert case["result"] == "invalid", f"case {case['tcId']}"
            continue
        asked += 1
        verified = verified_by(curve_board, group, case, digest, signature)
        assert verified == (b"" if case["result"] == "valid" else None), f"case {case['tcId']}"
    assert asked >= 150, "too few signatures"


def test_wycheproof_aes_256_gcm(board):
    for group, case in cases("aes_gcm_test.json", 300):
        if group["keySize"] != 256 or group["ivSize"] != 96:
            continue
        key, nonce, data, message, tag = (unhex(case[name]) for name in ("key", "iv", "aad", "msg", "tag"))
        opened = board.ask(OPEN, key, nonce, data, unhex(case["ct"]), tag)
        assert opened == expected(case, "msg"), f"case {case['tcId']}"
        if case["result"] == "valid":
            assert board.ask(SEAL, key, nonce, data, message) == unhex(case["ct"]) + tag, f"case {case['tcId']}"


def test_wycheproof_key_unwrap(board):
    for group, case in cases("aes_wrap_test.json", 100):
        if group["keySize"] == 256 and len(unhex(case["msg"])) == 32:
            unwrapped = board.ask(UNWRAP, unhex(case["key"]), unhex(case["ct"]))
            assert unwrapped == expected(case, "msg"), f"case {case['tcId']}"


def test_wycheproof_hkdf(board):
    for _, case in cases("hkdf_sha256_test.json", 80):
        if case["size"] <= 1024:
            fields = [unhex(case[name]) for name in ("ikm", "salt", "info")]
            derived = board.ask(HKDF, *fields, number(case["size"]))
            assert derived == expected(case, "okm"), f"case {case['tcId']}"


def test_wycheproof_hmac(board):
    for operation, name in (HMAC_SHA1, "sha1"), (HMAC_SHA256, "sha256"), (HMAC_SHA512, "sha512"):
        for group, case in cases(f"hmac_{name}_test.json", 100):
            seen = board.ask(operation, unhex(case["key"]), unhex(case["msg"]))[: group["tagSize"] // 8]
            assert (seen == unhex(case["tag"])) == (case["result"] == "valid"), f"{name}, case {case['tcId']}"
