"""Project Wycheproof's cases, asked of the board, from the folder that HOLDFAST_WYCHEPROOF names."""

import hashlib
import json
import os
import pathlib

import pytest
from board import AGREE, HKDF, HMAC_SHA1, HMAC_SHA256, HMAC_SHA512, OPEN, SEAL, UNWRAP, VERIFY, number
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


def test_wycheproof_ecdh(curve_board):
    for _, case in cases("ecdh_secp256r1_ecpoint_test.json", 100):
        point, scalar = unhex(case["public"]), int(case["private"], 16).to_bytes(32, "big")
        # A compressed point is right, and nothing that Holdfast takes.
        shared = unhex(case["shared"]) if case["result"] != "invalid" and len(point) == 65 else None
        assert curve_board.ask(AGREE, scalar, point) == shared, f"case {case['tcId']}"


def test_wycheproof_ecdsa(curve_board):
    for group, case in cases("ecdsa_secp256r1_sha256_p1363_test.json", 200):
        key, digest = unhex(group["publicKey"]["uncompressed"]), hashlib.sha256(unhex(case["msg"])).digest()
        verified = b"" if case["result"] == "valid" else None
        assert curve_board.ask(VERIFY, key, digest, unhex(case["sig"])) == verified, f"case {case['tcId']}"


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
