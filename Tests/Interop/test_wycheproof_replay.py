"""All of Project Wycheproof's files, from the folder that HOLDFAST_WYCHEPROOF names, replayed by the command line."""

import collections
import json
import os
import pathlib
import re
import subprocess

import pytest

pytestmark = pytest.mark.skipif("HOLDFAST_WYCHEPROOF" not in os.environ, reason="HOLDFAST_WYCHEPROOF names no folder")

# The whole reason of every test that is skipped in a file whose type is replayed.
PERMITTED = re.compile(
    r"type \w+ is not replayed|algorithm [\w/-]+|IV of \d+ bytes|key of \d+ bytes|tag of \d+ bits|compressed point"
    r"|alg RSA1_5|alg PBES2-[\w+-]+|a key for another alg in a valid test|the same message as in a valid test"
    r"|characters outside base64url in a valid test"
)

# The number of tests that pass, and the number that are skipped, in the files of the JOSE types.
JOSE = {
    "json_web_crypto_test.json": (83, 0),
    "json_web_encryption_test.json": (131, 8),
    "json_web_key_test.json": (26, 0),
    "json_web_signature_test.json": (395, 6),
}
REPLAYED = ["KeywrapTest", "RsaesOaepDecrypt", "EcdhTest", "EcdhEcpointTest", "EcdhWebcryptoTest"]
REPLAYED += ["EcdsaVerify", "EcdsaP1363Verify", "JsonWebEncryption", "JsonWebSignature", "JsonWebKey", "JsonWebCrypto"]


def files():
    """The path and the content of each file, without the few that are larger than a file of vectors may be."""
    for path in sorted(pathlib.Path(os.environ.get("HOLDFAST_WYCHEPROOF", "/nowhere")).glob("*.json")):
        yield path, json.loads(path.read_text())


def replay(holdfast, *paths):
    done = subprocess.run([holdfast, "vectors", "replay", *paths], capture_output=True, text=True)
    counts = re.search(r"^(\d+) passed, (\d+) failed, (\d+) skipped$", done.stdout, re.MULTILINE)
    skips = re.findall(r"^skipped (\d+) of .*?\.json: (.*)$", done.stdout, re.MULTILINE)
    assert counts, done.stderr
    return [int(count) for count in counts.groups()], skips, done


def test_no_test_of_a_replayed_type_fails_or_is_skipped_without_a_reason(holdfast):
    reasons = collections.Counter()
    for path, content in files():
        if not any(group["type"] in REPLAYED for group in content["testGroups"]):
            continue
        (passed, failed, skipped), skips, done = replay(holdfast, path)
        assert failed == 0, f"{path.name}: {done.stdout}"
        assert passed + skipped == content["numberOfTests"], path.name
        assert sum(int(count) for count, _ in skips) == skipped, path.name
        for count, reason in skips:
            assert PERMITTED.fullmatch(reason), f"{path.name}: {reason}"
            reasons[reason] += int(count)
    assert reasons["alg RSA1_5"] == 8, reasons


@pytest.mark.parametrize("name", JOSE)
def test_jose_counts(holdfast, name):
    path = pathlib.Path(os.environ["HOLDFAST_WYCHEPROOF"]) / name
    (passed, failed, skipped), _, _ = replay(holdfast, path)
    assert (passed, skipped) == JOSE[name] and failed == 0
