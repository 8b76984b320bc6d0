"""First inputs of the vectors. A ciphertext becomes its plaintext, because the fuzzed device believes that every decryption succeeds."""

import json

from holdfast_peer import base64strict, cbor, cose, jose, keys
from holdfast_peer.refusal import Refused

from .shared import ROOT, ZEROS, groups


def credulous_cose(token, device):
    """A COSE_Encrypt whose ciphertext is its plaintext, and that plaintext."""
    plaintext = cose.decrypt(token, device)
    protected, header, _, recipients = cbor.decode(token, tags=(cose.ENCRYPT,)).value
    return cbor.encode(cbor.Tag(cose.ENCRYPT, [protected, header, plaintext + bytes(16), recipients])), plaintext


def credulous_jose(token, device):
    header, key, iv, _, tag = token.decode().split(".")
    plaintext = jose.decrypt(token, device)
    return ".".join((header, key, iv, jose.url_encode(plaintext), tag)).encode(), plaintext


def add_tokens(seeds):
    for kind, group, tests in groups("measurement_token_test"):
        device = keys.PrivateKey(bytes.fromhex(group["devicePrivateKey"]))
        for test in tests:
            token = bytes.fromhex(test["token"])
            is_cose = kind == "MeasurementTokenCOSE"
            try:
                token, plaintext = (credulous_cose if is_cose else credulous_jose)(token, device)
                if is_cose and plaintext[:1] and plaintext[0] >> 5 == cbor.MAP:
                    seeds.add("claims-cbor", plaintext)
                elif is_cose:
                    sealed = cbor.decode(plaintext, tags=(cose.SIGN1, cose.MAC0))
                    if isinstance(sealed, cbor.Tag):
                        seeds.add("claims-cbor", sealed.value[2])
                else:
                    seeds.add("claims-json", base64strict.url_decode(plaintext.decode().split(".")[1]))
            except (Refused, ValueError, TypeError, IndexError):
                pass
            seeds.add("cose" if is_cose else "jose", token)


def add_messages(seeds):
    for kind, _, tests in groups("session_test"):
        for test in tests:
            if kind == "SessionRound":
                names = ("m1", "m2", "m3", "request", "m3Plaintext")
                seeds.add("messages", *(bytes.fromhex(test[name]) for name in names if test.get(name)))
            elif "message" in test:
                seeds.add("messages", bytes.fromhex(test["message"]))
    for kind, _, tests in groups("measurement_test"):
        for test in tests:
            if "configuration" in test:
                seeds.add("configuration", bytes.fromhex(test["configuration"]))
            if kind == "Evidence":
                evidence = bytes.fromhex(test["evidence"])
                # Every MAC is zero.
                seeds.add("evidence", evidence, evidence[:-32] + ZEROS)
    for kind, _, tests in groups("oath-ocra"):
        for test in tests:
            seeds.add("ocra", f"{test['suite']}\n{test.get('question', '')}")
    seeds.add("vectors", *small_vectors())
    foreign = (
        {"kty": "oct", "k": "AA"}, {"sign": {"title": "t"}, "encrypt": {"fail": True}}, {"sign": {}, "encrypt": {"fail": 1}},
        {"input": {}, "output": {"cbor": "00"}}, {"input": {}, "output": {"compact": "x"}}, {"input": {}, "output": "00"},
        {"algorithm": "KDA", "testGroups": [{"tests": [{"tcId": 1}, {"tcId": 2, "testPassed": False}]}]},
        {"algorithm": "KDA", "testGroups": [{"tests": [{"tcId": 1, "testPassed": 1}]}]}, {"algorithm": "KDA", "testGroups": []},
    )  # fmt: skip
    seeds.add("vectors", *map(json.dumps, foreign))


def small_vectors():
    """Each group of vectors with its first test."""
    for file in sorted((ROOT / "vectors").glob("*.json")):
        whole = json.loads(file.read_bytes())
        for group in whole["testGroups"]:
            for test in group["tests"][:1]:
                one = {**whole, "numberOfTests": 1, "testGroups": [{**group, "tests": [test]}]}
                for name in ("header", "notes", "algorithm", "generatorVersion"):
                    one.pop(name, None)
                yield json.dumps(one, separators=(",", ":"))
