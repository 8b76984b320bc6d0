#!/usr/bin/env python3
"""Writes first inputs for the fuzzer: of the vectors, of the Python peer, and of texts in tests and documents.

usage: seeds.py FOLDER     (one folder for each target is made in it)

It needs python3-yaml. The corpora in Tests/Fuzz/Corpora are what the fuzzer kept of these and found from them. Random parts differ from run to run.
"""

import base64
import hashlib
import hmac
import json
import pathlib
import re
import struct
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "Tests/Interop"))

import yaml
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, rsa, utils
from cryptography.hazmat.primitives.asymmetric.padding import MGF1, OAEP
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.ciphers.algorithms import AES
from cryptography.hazmat.primitives.ciphers.modes import CBC
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from cryptography.hazmat.primitives.keywrap import aes_key_wrap
from holdfast_peer import base64strict, cbor, claims, cose, issuer, jose, keys, session, vault
from holdfast_peer.refusal import Refused

TEST_TIME = 1_750_000_000
SIGNER = keys.PrivateKey((1).to_bytes(32, "big"))
ZEROS = bytes(32)
RSA_KEY = rsa.generate_private_key(65537, 2048)


class Seeds:
    """The inputs by target, none twice."""

    def __init__(self):
        self.inputs = {}

    def add(self, target, *inputs):
        kept = self.inputs.setdefault(target, set())
        kept.update(item.encode() if isinstance(item, str) else bytes(item) for item in inputs)

    def write(self, folder):
        for target, inputs in sorted(self.inputs.items()):
            place = folder / target
            place.mkdir(parents=True, exist_ok=True)
            for number, item in enumerate(sorted(inputs)):
                (place / f"seed-{number:04}").write_bytes(item[:16384])
            print(f"{target}: {len(inputs)}")


def framed(*messages):
    """Messages as a session target reads them."""
    return b"".join(struct.pack(">H", len(message)) + message for message in messages)


def groups(name):
    for group in json.loads((ROOT / f"vectors/{name}.json").read_bytes())["testGroups"]:
        yield group["type"], group, group["tests"]


# Vectors. A ciphertext becomes its plaintext, because the fuzzed device believes that every decryption succeeds.


def credulous_cose(token, device):
    """A COSE_Encrypt whose ciphertext is its plaintext, and that plaintext."""
    plaintext = cose._decrypt(token, device)
    protected, header, _, recipients = cbor.decode(token, tags=(cose.ENCRYPT,)).value
    return cbor.encode(cbor.Tag(cose.ENCRYPT, [protected, header, plaintext + bytes(16), recipients])), plaintext


def credulous_jose(token, device):
    header, key, iv, _, tag = token.decode().split(".")
    plaintext = jose._decrypt(token, device)
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
                    seeds.add("claims-cbor", cbor.decode(plaintext, tags=(cose.SIGN1, cose.MAC0)).value[2])
                else:
                    seeds.add("claims-json", base64strict.url_decode(plaintext.decode().split(".")[1]))
            except (Refused, ValueError, TypeError, IndexError, AttributeError):
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


# Sessions with a device that believes everything: every id and every hash is zero.


def add_sessions(seeds):
    token_claims = {
        **issuer.fresh_claims(bytes(16), issuedAt=TEST_TIME, expires=TEST_TIME + 3600),
        "tokenId": bytes(16),
        "integrity": ZEROS,
        "device": ZEROS,
        "proofKey": bytes(16),
    }
    tokens = []
    for changes in ({}, {"maximumUses": 1}, {"commands": ["unlock"]}, {"version": [1, 2, 3]}, {"user": "ann"}):
        payload = claims.to_cbor({**token_claims, **changes})
        signed = cbor.Tag(18, [cose.sign_protected(bytes(8)), {}, payload, bytes(64)])
        tagged = cbor.Tag(17, [cose.mac_protected(bytes([1]) * 8), {}, payload, ZEROS])
        for content in (cbor.encode(signed), cbor.encode(tagged), payload):
            header = cbor.Encoded(cose.ephemeral_header(SIGNER.point))
            recipient = [cose.recipient_protected(bytes(8)), header, b""]
            body = [cose.CONTENT_PROTECTED, {5: bytes(12)}, content + bytes(16), [recipient]]
            tokens.append(cbor.encode(cbor.Tag(cose.ENCRYPT, body)))
    rounds = []
    requests = [session.request(name) for name in ("unlock", "lock", "status", "configure", "open-safe", "other")]
    requests += [
        session.request("unlock", number=7),
        session.request("unlock", ["a", "b"], number=8),
        session.request("configure", otp=("ann", "000000")),
        session.request("open-safe", otp=("ann", "000000"), seal=("ann", "00000000")),
        session.request("user-sync", ["ann"]),
        session.request("host-code", ["ann", "0123456789abcdef"]),
        session.request("user-sync", ["nobody"]),
    ]
    for number, token in enumerate(tokens):
        for index, plain in enumerate(requests):
            if number and index not in (0, 8, 9):
                continue
            head = session.message_2_head(bytes(16), session.COSE, token)
            rounds.append(session.message_2(head, ZEROS, ZEROS, plain + bytes(16)))
    reference = session.message_2_head(bytes(16), 0, bytes(16))
    rounds.append(session.message_2(reference, ZEROS, ZEROS, requests[0] + bytes(16)))
    rounds.append(session.message_2(reference, None, ZEROS, requests[2] + bytes(16)))
    rounds.append(session.message_2(reference, None, None, requests[2] + bytes(16)))
    compatible = cbor.encode([12, bytes(16), 1, tokens[0], ZEROS, ZEROS, "open-safe"])
    users = [
        cbor.encode([21, SIGNER.point, ZEROS]),
        cbor.encode([23, ZEROS]),
        cbor.encode([25, ZEROS]),
    ]
    user_commands = [
        session.request("user-state", ["ann"]), session.request("user-state"), session.request("user-state", ["nobody"]),
        session.request("seal-request", ["ann", "open-safe"]), session.request("seal-request", ["ann"]),
        session.request("open-safe", otp=("ann", "111111"), seal=("ann", "11111111")),
        session.request("configure", otp=("bob", "000000")),
    ]  # fmt: skip
    head = session.message_2_head(bytes(16), session.COSE, tokens[0])
    for kind in (0, 4, 8, 12, 64):
        commands = [session.message_2(head, ZEROS, ZEROS, plain + bytes(16)) for plain in user_commands]
        seeds.add("session-device", *(bytes([kind]) + framed(message) for message in commands))
        seeds.add("session-device", bytes([kind]) + framed(*commands[:5], *[commands[5]] * 8))
    many = [cbor.encode([12, bytes([n] * 16), 1, tokens[0], ZEROS, ZEROS, "user-sync"]) for n in range(10)]
    seeds.add("session-device", b"\x00" + framed(*many), b"\x00" + framed(many[0], many[0]))
    for kind in range(0, 256, 5):
        for number, message in enumerate(rounds + [compatible]):
            if (number + kind) % 7 == 0:
                seeds.add("session-device", bytes([kind]) + framed(message))
        seeds.add("session-device", bytes([kind]) + framed(users[0], users[1]), bytes([kind]) + framed(users[2]))
        seeds.add("session-device", bytes([kind]) + framed(rounds[0], rounds[-3], rounds[6], rounds[6], rounds[-1]))
        seeds.add("session-device", bytes([kind]) + framed(rounds[11], rounds[8], rounds[8], rounds[9], rounds[9]))

    challenge = session.message_1(bytes(16), b"\x80" * 16, bytes(8), 0, TEST_TIME)
    replies = [
        session.message_3(0, session.result(b"unlocked") + bytes(16)),
        session.message_3(5, session.result() + bytes(16)),
        session.message_3(7, session.result(missing=4) + bytes(16)),
        session.message_3(11, session.result(b"notInPolicy") + bytes(16)),
        session.message_3(0, session.result(b"x", 1, 2, 3, 4, 5, {9: [1, {2: b"x"}]}) + bytes(16)),
        session.message_3(4, None),
        session.message_3(14, None),
    ]
    for first in (b"\x00", b"\x01"):
        seeds.add("session-prover", *(first + framed(challenge, reply) for reply in replies))
        seeds.add("session-prover", first + framed(challenge, replies[5], challenge, replies[1], challenge, replies[2]))
        seeds.add("session-prover", first + framed(replies[6]), first + framed(replies[0]))
    grants = [
        cbor.encode({1: "ann", 2: TEST_TIME, 3: [[1, [1, 1, 6]], [2, [3, "OCRA-1:HOTP-SHA256-8:QH64-T1M"]]], 4: 16}),
        cbor.encode({1: "ann", 2: TEST_TIME, 3: [[1, [2, 1, 6, 30]]], 4: 64, 5: [6, 1]}),
    ]
    seeds.add(
        "messages", *users, *grants, *replies, challenge, session.result(b"x", 1, 2, 3, 4, 5, {9: [1, {2: b"x"}]})
    )
    for grant in grants:
        answer = cbor.encode([22, SIGNER.point, grant + bytes(16)])
        seeds.add("session-user", b"\x00" + framed(challenge, answer, cbor.encode([24, ZEROS])))
    seeds.add(
        "session-user", b"\x01" + framed(challenge, cbor.encode([26, ZEROS])), b"\x00" + framed(challenge, replies[6])
    )
    add_audit_entries(seeds)
    add_codes(seeds)
    seeds.add("messages", "lock", "unlock", "status", "configure", "open-safe", "fly")


def add_codes(seeds):
    """Rounds with real codes: what is asked, which codes are given, their distance from the next ones, and a pause."""
    right = 1 | 1 << 2
    for kind in (0, 1, 2, 4, 5, 8, 0x80):
        for command in range(16):
            seeds.add("codes", bytes([kind, command, right, 0, 0]))
        for command in (0, 1, 2, 3):
            given = lambda codes, distance=0, pause=0, bits=0, command=command: bytes(
                [command | bits, codes, distance & 0xFF, pause]
            )
            challenge = bytes([8, 0, 0, 0])
            # Each code twice, a used one, an old one, refusals, repeated numbers, and a lockout with its end.
            rounds = [given(right), given(right, -1), given(right), given(right, -2), given(right, 2), given(right, -9)]
            seeds.add("codes", bytes([kind]) + challenge + b"".join(rounds))
            for distance in range(-4, 5):
                seeds.add("codes", bytes([kind]) + given(right) + given(right, distance, 60))
            refusals = [given(2 << 2 | 1), given(2 << 2 | 1, 0, 31), given(2 << 2 | 1, -1), given(right | 0x60)]
            seeds.add("codes", bytes([kind]) + challenge + b"".join(refusals))
            numbered = [
                given(codes | 0x20 | number << 6) for number in (2, 2, 1, 3, 0) for codes in (right, 2 << 2 | 1)
            ]
            seeds.add("codes", bytes([kind]) + challenge + b"".join(numbered))
            wrong = given(3 | 3 << 2)
            seeds.add(
                "codes", bytes([kind]) + challenge + wrong + given(2 << 2 | 1, 0, 200) + given(2 << 2 | 1, 0, 200)
            )
            seeds.add("codes", bytes([kind]) + challenge + given(right, 0, 60, 0x80), bytes([kind]) + 2 * challenge)
            seeds.add(
                "codes", bytes([kind]) + given(right, 40) + given(right, 41), bytes([kind]) + given(right, 5, 0, 0x60)
            )
            other = bytes([(command + 1) % 4, right | 0x20 | 2 << 6, 1, 0])
            seeds.add("codes", bytes([kind]) + given(right | 0x20 | 2 << 6) + other)
            later = given(right, 0, 0, 0x60) + given(right, 1) + given(right, 1, 255, 0xE0)
            seeds.add("codes", bytes([kind]) + later, bytes([kind]) + given(right, 0, 255, 0x80) * 8)
            seeds.add("codes", bytes([kind]) + wrong * 8 + given(right, 0, 200) + given(right, 0, 200, 0x80))
            seeds.add("codes", bytes([kind]) + given(right, 40) + given(right, 40) + given(right, 60, 0, 0x80))
            for bits in (0x10, 0x20, 0x30, 0x40, 0x50, 0x60, 0x70):
                seeds.add(
                    "codes", bytes([kind]) + given(right, 0, 0, bits) + given(right | 0x10, 0, 255, bits | 0x80) * 9
                )


def add_audit_entries(seeds):
    kid, digest = bytes(8), ZEROS
    details = [
        [0, 0, "unlock", kid, bytes(16), "app", 0], [16, 0, "unlock", kid, bytes(16), "app", 0, "ann"],
        [1, [[1, 5], [13, 2]]], [2, bytes(16)], [3, 1], [4], [5, kid], [6, kid], [7, digest], [7, None], [8, 1, 2],
        [9, kid, 1, 2], [10, bytes(16)], [11, 1, "ann"], [11, 2, "ann"], [12, "ann"], [13, "ann"], [14, "ann"],
        [15, "ann"], [17, 2, None, None, 3], [17, 2, kid, bytes(16), 3], [18, 3, digest], [19, 1, 0, digest],
        [19, 1, 0, "text"], [20, 1, 0, "text"], [21, "ann", 3], [22, kid], [22, None], [23, 1, "text"],
    ]  # fmt: skip
    entries = [cbor.encode([1, TEST_TIME, *detail]) for detail in details]
    seeds.add("messages", *entries)
    lines = [{"holdfast_audit": 1, "device_id": "00" * 16, "after": 0, "head": "00" * 32}]
    lines += [{"entry": entry.hex()} for entry in entries]
    lines += [{"through": len(entries), "head": "00" * 32}]
    seeds.add("audit-archive", "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines))
    seeds.add("audit-archive", "".join(json.dumps(lines[i], separators=(",", ":")) + "\n" for i in (0, 1, -1)))


# Formats that have no vectors.


def add_formats(seeds):
    x, y = SIGNER.point[1:33], SIGNER.point[33:]
    url = lambda data: base64.urlsafe_b64encode(data).decode().rstrip("=")
    public = {"kty": "EC", "crv": "P-256", "x": url(x), "y": url(y)}
    private = {**public, "d": url((1).to_bytes(32, "big"))}
    octets = {"kty": "oct", "k": url(bytes(range(32))), "alg": "HS256", "use": "sig"}
    text = lambda value: json.dumps(value, separators=(",", ":"))
    seeds.add("jwk", *map(text, (public, private, octets, {**private, "alg": "ECDH-ES", "enc": "A256GCM", "kid": "k"})))
    seeds.add("jwk", *map(text, private_keys(url)))
    seeds.add("device-key", text(private) + "\n")
    seeds.add(
        "device-key",
        text({"tpm": "/dev/tpmrm0", "handle": 0x8140_0001, "authorization": url(ZEROS), "check": url(ZEROS)}),
    )
    descriptor = {"device_id": "00" * 16, "kid": SIGNER.kid.hex(), "public_key": public}
    seeds.add("public-key", text(descriptor), text(public))
    der = bytes.fromhex("3059301306072a8648ce3d020106082a8648ce3d030107034200") + SIGNER.point
    pem = base64.b64encode(der).decode()
    seeds.add("public-key", der, f"-----BEGIN PUBLIC KEY-----\n{pem[:64]}\n{pem[64:]}\n-----END PUBLIC KEY-----\n")
    seeds.add("maker-signature", bytes.fromhex("3044") + 2 * (b"\x02\x20" + b"\x11" * 32))
    seeds.add("maker-signature", bytes.fromhex("3045022100") + b"\xff" * 32 + b"\x02\x20" + b"\x11" * 32)
    seeds.add("release-keys", "# keys\n" + "00112233445566778899aabbccddeeff\n\n" + "ff" * 16 + " # old\n")
    seeds.add("release-keys", bytes(48), bytes(range(96)), "00" * 16 + "\n" + "00" * 16, "\n", ("01" * 16 + "\n") * 65)
    terms = {
        "iss": "issuer", "jti": url(bytes(16)), "tok": url(ZEROS), "iat": TEST_TIME, "sub": "app", "ver": [1, 2, 3],
        "key": public,
    }  # fmt: skip
    settings = {"type": "json", "value": base64.b64encode(b'{"a":[1,2.5,null]}').decode()}
    rules = [
        {"subject": "os", "os": "debian", "operator": ">=", "versions": ["12.4"], "action": "block"},
        {"subject": "app", "operator": "one of", "versions": ["1", "2.0"], "action": "warn"},
    ]
    operators = re.findall(
        r'case \w+ = "([^"]+)"', (ROOT / "Sources/HoldfastFormats/Terms/ComplianceRule.swift").read_text()
    )
    for operator in operators:
        for versions in (["1"], ["1", "2"], ["2", "1"], ["1.0", "1"]):
            rules.append({"subject": "os", "operator": operator, "versions": versions, "action": "warn"})
    seeds.add("terms", text(terms), text({**terms, "offline_seconds": 86400, "settings": settings}))
    seeds.add("terms", *(text({**terms, "compliance": [rule]}) for rule in rules))
    seeds.add("terms", *(text({**terms, "settings": {"type": kind, "value": "YWJj"}}) for kind in ("text", "bytes")))
    seeds.add(
        "seal-request",
        f"holdfast-seal:1?d={url(bytes(16))}&u=ann&c=open&p=a&p=%20%C3%A9&i={'0a' * 8}&e=175&t=Hi&h={'00' * 16}",
    )
    seeds.add("seal-request", f"holdfast-seal:1?d={url(bytes(16))}&u=ann&c=open&i={'0a' * 8}&h={'00' * 16}")
    seeds.add("timestamp", "2026-11-22T18:13:28Z", "1970-01-01t00:00:00+01:30", "2024-02-29 23:59:59-00:00")
    seeds.add("signed-json", text({"num": 1, "iat": 2}), "[1,2]")
    seeds.add("terminal-text", "plain", "\x1b[2J\u202e\u200b\\u{1b}", '"quoted" it\'s', "\u0301mark")
    seeds.add("qr", "otpauth://totp/a?secret=AAAA", b"x" * 2331, b"\x00")
    seeds.add(
        "cbor", *(cbor.encode(item) for item in (1, -1, b"a", "é", [1, [2]], {1: 2, -1: "a"}, None, [True, False]))
    )
    seeds.add("cbor", cbor.encode(cbor.Tag(96, [2**53 - 1, -(2**53) + 1, 24, 256, 65536])))
    seeds.add(
        "json",
        '{"a":[1,true,false,null,"\\u00e9\\ud83d\\ude00\\n"],"b":{}}',
        ' [ 9007199254740991 , "" ] ',
        "[[[[[[[[]]]]]]]]",
    )
    seeds.add("base64", "AAECAw", "AAECAw==", "-_-_", "+/+/", base64.b64encode(bytes(range(256))))
    seeds.add("base32", "GEZDGNBVGY3TQOJQ", "gezd gnbv-gy3t", "MY======", "00ffAB")
    one_use = "0000-0000-0000-0000-0000-0"
    seeds.add("one-use-code", one_use, "abcd efgh-jkmn pqrs tvwx y")
    seeds.add("fingerprints", cbor.encode([["app.debug", bytes(8)], ["app.image", bytes(8)]]))
    attestation = {
        "iss": "a", "aud": "u", "iat": 1, "exp": 2, "arc": "0123456789", "sub": "app", "ver": [1, 2, 3],
        "did": base64.b64encode(bytes(16)).decode(), "pay": base64.b64encode(ZEROS).decode(),
        "imh": base64.b64encode(ZEROS).decode(), "dmh": base64.b64encode(ZEROS).decode(),
        "mpk": base64.b64encode(bytes(16)).decode(), "other": {"x": [1]},
    }  # fmt: skip
    seeds.add("attestation", text(attestation))
    head = url(text({"alg": "HS256", "typ": "holdfast-at+jwt"}).encode())
    signed = f"{head}.{url(text(attestation).encode())}"
    seeds.add("jws", f"{signed}.{url(hmac.new(ZEROS, signed.encode(), hashlib.sha256).digest())}")
    signed = jws("holdfast-at+jwt", attestation, url, text)
    unsigned = signed.rpartition(".")[0]
    seeds.add("jws", signed, *(f"{unsigned}.{url(data)}" for data in (ZEROS + ZEROS, bytes(5))))
    add_jwe(seeds, url, text, public)
    add_online(seeds, text, descriptor)
    add_transport(seeds)
    add_authenticator(seeds, url)
    add_containers(seeds)
    add_host(seeds, text)
    add_policies(seeds, url, text, public, descriptor)


def private_keys(url):
    """Keys of RSA and of the larger curves."""
    number = lambda value: url(value.to_bytes((value.bit_length() + 7) // 8, "big"))
    key = RSA_KEY.private_numbers()
    public = key.public_numbers
    names = {"d": key.d, "p": key.p, "q": key.q, "dp": key.dmp1, "dq": key.dmq1, "qi": key.iqmp}
    rsa_key = {"kty": "RSA", "n": number(public.n), "e": number(public.e)}
    yield {**rsa_key, **{name: number(value) for name, value in names.items()}, "alg": "RSA-OAEP", "enc": "A128GCM"}
    yield rsa_key
    for curve, name in ((ec.SECP384R1(), "P-384"), (ec.SECP521R1(), "P-521")):
        key = ec.derive_private_key(2, curve).public_key().public_numbers()
        count = (curve.key_size + 7) // 8
        x, y = (url(value.to_bytes(count, "big")) for value in (key.x, key.y))
        yield {"kty": "EC", "crv": name, "x": x, "y": y, "d": url((2).to_bytes(count, "big"))}


def jws(kind, claims_, url, text):
    """A compact JWS by the signer."""
    head = url(text({"alg": "ES256", "kid": url(SIGNER.kid), "typ": kind}).encode())
    signed = f"{head}.{url(text(claims_).encode())}"
    signature = ec.derive_private_key(1, ec.SECP256R1()).sign(signed.encode(), ec.ECDSA(hashes.SHA256()))
    r, s = utils.decode_dss_signature(signature)
    return f"{signed}.{url(r.to_bytes(32, 'big') + s.to_bytes(32, 'big'))}"


def add_jwe(seeds, url, text, public):
    def token(kind, header, wrapped, key):
        protected = url(text({**header, "cty": "JWT"}).encode())
        sealed = AESGCM(key).encrypt(bytes(12), b"content", protected.encode())
        parts = (protected, url(wrapped), url(bytes(12)), url(sealed[:-16]), url(sealed[-16:]))
        seeds.add("jwe", bytes([kind]) + ".".join(parts).encode())

    token(0, {"alg": "dir", "enc": "A256GCM"}, b"", ZEROS)
    token(2, {"alg": "A256KW", "enc": "A256GCM"}, aes_key_wrap(ZEROS, ZEROS), ZEROS)
    wrapped = AESGCM(ZEROS).encrypt(bytes(12), ZEROS, b"")
    token(
        3, {"alg": "A256GCMKW", "enc": "A256GCM", "iv": url(bytes(12)), "tag": url(wrapped[-16:])}, wrapped[:-16], ZEROS
    )
    rsa_key = text(next(private_keys(url))).encode() + b"\n"
    padding = OAEP(MGF1(hashes.SHA1()), hashes.SHA1(), None)
    for content_key in (bytes(16), ZEROS):
        wrapped = RSA_KEY.public_key().encrypt(content_key, padding)
        for name in ("RSA-OAEP", "RSA-OAEP-256"):
            protected = url(text({"alg": name, "enc": "A128GCM", "cty": "JWT"}).encode())
            sealed = AESGCM(bytes(16)).encrypt(bytes(12), b"content", protected.encode())
            parts = (protected, url(wrapped), url(bytes(12)), url(sealed[:-16]), url(sealed[-16:]))
            seeds.add("jwe", b"\xff" + rsa_key + ".".join(parts).encode())
    secret = SIGNER.exchange(SIGNER.point)
    parties = {"apu": url(b"u"), "apv": url(b"v")}
    derived = jose.agreed_key(secret, "ECDH-ES", b"u", b"v")
    token(4, {"alg": "ECDH-ES", "enc": "A256GCM", "epk": public, **parties}, b"", derived)
    derived = jose.agreed_key(secret, "ECDH-ES+A256KW")
    token(5, {"alg": "ECDH-ES+A256KW", "enc": "A256GCM", "epk": public}, aes_key_wrap(derived, ZEROS), ZEROS)
    seeds.add(
        "jwe",
        bytes([1])
        + f"{url(text({'alg': 'dir', 'enc': 'A128CBC-HS256'}).encode())}..{url(bytes(16))}.{url(bytes(16))}.{url(bytes(16))}".encode(),
    )


def add_online(seeds, text, descriptor):
    pin = "sha256//" + base64.b64encode(ZEROS).decode()
    service = "https://fuzz.example"
    seeds.add(
        "service-address", service, "https://[::1]:8443/", "http://127.0.0.1:80", f"{service},https://b.example:1", pin
    )
    seeds.add(
        "service-address",
        "ABCDE-FGHJK-MNPQR-STUVW",
        f"holdfast-invitation:1?code=ABCDE-FGHJK-MNPQR-STUVW&service={service}",
    )
    seeds.add(
        "known-services",
        text({"version": 2, "pins": {service: [pin]}, "default": {"services": [service], "ca": "/ca"}}),
    )
    seeds.add("known-services", text({"version": 1, "pins": {}}))
    request = {"service": service, "request": "00" * 16}
    failure = {
        "result": "failure", "kind": "refused", "service": service, "status": 403, "title": "t", "detail": "d",
        "reasons": ["a.b"], "arc": None, "request_id": "r", "help": None,
    }  # fmt: skip
    token = {"token": "AAEC", "format": "cose", "claims": {"a": 1}, "terms": "x"}
    for report in (
        {"progress": "attesting", "service": service}, {"progress": "asking", "service": service},
        {"progress": "waiting", **request, "seconds": 5}, {"progress": "failed", "failure": failure},
        {"result": "token", "service": service, **token}, {"result": "waiting", **request}, failure,
        {"result": "answer", "service": service, "answer": {"x": [1]}},
    ):  # fmt: skip
        seeds.add("carrier-report", text(report))
    task = {"version": 1, "services": [{"url": service, "pins": [pin]}], "timeout": 60, "ca": "/ca", "system": True}
    work = {
        "evidence": "AAEC", "device": descriptor, "invitation": "x", "format": "cose", "user": "ann", "commands": ["a"],
        "request": {"id": "00" * 16, "service": service}, "retries": 3, "pause": 1,
    }  # fmt: skip
    seeds.add(
        "carrier-task", text({**task, **work}), text({**task, "operation": "fetch", "attempts": 2, "body": {"a": 1}})
    )
    seeds.add("carrier-task", text({**task, "operation": "configuration", "attempts": 1}))
    problem = {
        "type": "about:blank", "title": "t", "status": 403, "detail": "d", "reasons": ["a.b"], "arc": "x",
        "request_id": "r", "help": "h",
    }  # fmt: skip
    attested = {"attestation": "a.b.c.d.e", "arc": "x", "expires": 1}
    for status in range(5):
        for kind, body in ((0, token), (0, attested), (0, {"status": "waiting", "request": "00" * 16}), (1, problem)):
            seeds.add("service-answer", bytes([status << 2 | kind]) + text(body).encode())
    for state in ("waiting", "approved", "collected", "refused", "expired"):
        seeds.add("service-answer", b"\x00" + text({"request": "00" * 16, "status": state, "reason": "r"}).encode())
    seeds.add("service-answer", b"\x02abc")
    configuration = {
        "iss": "i", "iat": 1, "revision": 2, "force_pins": 0, "services": [service],
        "domains": {"api.example": {"protected": True, "measurement": False}}, "pins": {"api.example": [pin], "*": []},
        "features": {"secure_strings": True, "custom_tokens": False, "message_signing": True},
    }  # fmt: skip
    for domain in ("https://api.example/x?y", "https://a@b.example", "HTTPS://API.Example:1", "-a.example", "a..b"):
        rules = {domain: {"protected": True, "measurement": False}}
        seeds.add("app-configuration", text({**configuration, "domains": rules, "pins": {domain: [pin]}}))
    seeds.add("app-configuration", text({**configuration, "services": [service, service]}))
    for name in problem:
        body = text({**problem, name: "é" * 5000})
        seeds.add("service-answer", bytes([3 << 2 | 1]) + body.encode())
    point = base64.urlsafe_b64encode(SIGNER.point).decode().rstrip("=")
    seeds.add(
        "app-configuration", text(configuration), f"holdfast-configuration:1?key={point}&service={service}&pin={pin}"
    )


def add_transport(seeds):
    seeds.add("endpoint", "unix:/run/lock.sock", "stream:/run/lock,mode=660,group=users", "tty:/dev/ttyS0")
    seeds.add(
        "endpoint", "l2cap:00:11:22:33:44:55,psm=0x1001,hci=hci0,security=high", "rfcomm:00:11:22:33:44:55,channel=3"
    )
    seeds.add("endpoint", "le:00:11:22:33:44:55,psm=128,type=random,security=medium")
    uuid = b"\x1c" + bytes(range(16))
    sequence = lambda *parts: bytes([0x35, len(b"".join(parts))]) + b"".join(parts)
    for source in re.findall(
        r"0x[0-9a-f]{2}", (ROOT / "Sources/HoldfastTransport/Endpoint/BluetoothAddress.swift").read_text()
    ):
        seeds.add("sdp", bytes([int(source, 16)]))
    holdfast = uuid_bytes()
    if holdfast:
        uuid = b"\x1c" + holdfast
    l2cap = sequence(b"\x19\x01\x00", b"\x09\x10\x01")
    rfcomm = sequence(b"\x19\x01\x00"), sequence(b"\x19\x00\x03", b"\x08\x05")
    for protocols in (sequence(l2cap), sequence(*rfcomm)):
        record = sequence(b"\x09\x00\x01", sequence(uuid), b"\x09\x00\x04", protocols)
        seeds.add("sdp", sequence(record), sequence(record, record))
        whole = sequence(record)
        body = struct.pack(">H", len(whole)) + whole + b"\x00"
        seeds.add("sdp", b"\x07\x00\x00" + struct.pack(">H", len(body)) + body)
        packets = []
        for number, part in enumerate((whole[:10], whole[10:])):
            body = struct.pack(">H", len(part)) + part + (b"\x00" if number else b"\x01\x01")
            packets.append(struct.pack(">BHH", 7, number, len(body)) + body)
        seeds.add("sdp", b"\xff" + framed(*packets), b"\xff" + framed(*reversed(packets)), b"\xff" + framed(packets[0]))
        endless = [struct.pack(">BHH", 7, number, 5) + b"\x00\x01x\x01x" for number in range(16)]
        seeds.add("sdp", b"\xff" + framed(*endless), b"\xff" + framed(bytes(2000)))
    service = holdfast[::-1] if holdfast else bytes(16)
    structure = lambda kind, body: bytes([len(body) + 1, kind]) + body
    seeds.add(
        "advertising",
        structure(1, b"\x06") + structure(7, service) + structure(9, b"lock") + structure(0x21, service + b"\x80"),
    )
    seeds.add("advertising", structure(6, service + bytes(16)) + structure(8, b"lo") + b"\x00\x00")
    device = bytes(6) + b"\x01"
    events = {
        1: b"\x03\x00\x00abc", 2: b"\x03\x00\x05", 6: bytes(4), 0x0B: device + bytes(4) + b"\x02\x00ab",
        0x0C: device + b"\x00", 0x0F: device + b"\x01" + bytes(4), 0x12: device + b"\xc0" + bytes(4) + b"\x03\x00\x02\x01\x06",
        0x13: b"\x07\x01", 0x18: b"\x01" + bytes(6) + device + bytes(16), 0x24: b"\x01", 0x99: b"x",
    }  # fmt: skip
    for code, body in events.items():
        seeds.add("management", struct.pack("<HHH", code, 0, len(body)) + body)
    seeds.add("management", bytes(280))
    done = lambda code, status, result=b"", adapter=0: (
        struct.pack("<HHHHB", 1, adapter, 3 + len(result), code, status) + result
    )
    other = struct.pack("<HHHI", 6, 0, 4, 1)
    information = done(4, 0, bytes(280))
    for features in (
        bytes(4) + b"\x1f\x1f\x05\x01\x01", bytes(4) + b"\x1f\x1f\x00\x00", bytes(4) + b"\x1f\x1f\x01\x01\x01", b"x",
    ):  # fmt: skip
        seeds.add("management", b"\xff" + framed(other, information, done(0x3D, 0, features)))
    for status in (1, 3, 8, 10, 15, 17, 18, 20):
        seeds.add("management", b"\xff" + framed(done(4, 0, adapter=1), b"noise", done(4, status)))


def uuid_bytes():
    text = "".join(path.read_text() for path in (ROOT / "Sources/HoldfastTransport").rglob("*.swift"))
    found = re.search(r"static let uuid: \[UInt8\] = \[([^\]]*)\]", text)
    return (
        bytes(int(number, 0) for number in found[1].replace("\n", " ").split(",") if number.strip()) if found else None
    )


def add_authenticator(seeds, url):
    seeds.add(
        "otpauth",
        "otpauth://totp/Issuer:ann?secret=GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ&issuer=Issuer&algorithm=SHA256&digits=8&period=60",
    )
    seeds.add("otpauth", "otpauth://hotp/ann%20b?secret=GEZDGNBVGY3TQOJQ&counter=5\notpauth://totp/x?secret=MZXW6YTB\n")
    seeds.add("otpauth", "otpauth://ocra/ann?secret=GEZDGNBVGY3TQOJQ&ocrasuite=OCRA-1:HOTP-SHA256-8:QH64-T1M")

    def field(number, value):
        if isinstance(value, int):
            return bytes([number << 3]) + varint(value)
        return bytes([number << 3 | 2]) + varint(len(value)) + value

    def varint(value):
        data = b""
        while value > 127:
            data += bytes([value & 127 | 128])
            value >>= 7
        return data + bytes([value])

    totp = field(1, bytes(20)) + field(2, b"ann") + field(3, b"Issuer") + field(4, 1) + field(5, 1) + field(6, 2)
    hotp = field(1, bytes(20)) + field(2, b"Issuer:bob") + field(4, 2) + field(5, 2) + field(6, 1) + field(7, 300)
    for keys_, count, index in (([totp], 1, 0), ([totp, hotp], 1, 0)):
        payload = (
            b"".join(field(1, key) for key in keys_) + field(2, 1) + field(3, count) + field(4, index) + field(5, 1234)
        )
        data = base64.b64encode(payload).decode().replace("+", "%2B").replace("/", "%2F").replace("=", "%3D")
        seeds.add("migration", f"otpauth-migration://offline?data={data}")
    parts = []
    for index, key in enumerate((totp, hotp)):
        payload = field(1, key) + field(2, 1) + field(3, 2) + field(4, index) + field(5, 99)
        parts.append(
            "otpauth-migration://offline?data="
            + base64.b64encode(payload).decode().replace("+", "%2B").replace("=", "%3D")
        )
    seeds.add("migration", "\n".join(parts), "\n".join(reversed(parts)), parts[0])
    seeds.add(
        "typed", "1234", "135790", "012345", "0123456789abcdef", "Correct horse", "0000-0000-0000-0000-0000-0000-0000"
    )
    body = bytes([15, 8, 1]) + bytes(28) + b"ciphertext" + bytes(16)
    check = hashlib.sha256(b"holdfast/1 state string\x00" + body).digest()[:4]
    seeds.add("state-string", "hfstate1" + url(body + check), "hfstate1\n" + url(body + check))
    header = bytes([1, 1, 1]) + bytes(28)
    key = hashlib.scrypt(b"correct horse", salt=bytes(16), n=2, r=1, p=1, dklen=32)
    for name, state in ((key, b"state"), (ZEROS, b"state")):
        body = header + AESGCM(name).encrypt(bytes(12), state, b"hfstate1" + header)
        check = hashlib.sha256(b"holdfast/1 state string\x00" + body).digest()[:4]
        seeds.add("state-string", "hfstate1" + url(body + check))
    protections = (
        [0],
        [1, bytes(16), 15, 8, 1],
        [2, bytes(16)],
        [4, bytes(16), bytes(8)],
        [7, bytes(16), 14, 8, 1, bytes(16), bytes(16), bytes(8)],
    )
    # The undo code is 16 zeros.
    undo_key = HKDF(hashes.SHA256(), 32, b"", b"holdfast/1 undo key\x00").derive(bytes(16))
    binding = b"holdfast/1 undo copy\x00" + cbor.encode("ann") + cbor.encode(1)
    undo = bytes(12) + AESGCM(undo_key).encrypt(bytes(12), cbor.encode([[2, bytes(16)], bytes(20)]), binding)
    for protection in protections:
        for method in ([1, 1, 6], [2, 1, 6, 30], [3, "OCRA-1:HOTP-SHA256-8:QH64-T1M"]):
            record = [
                "ann",
                1,
                1,
                "Issuer",
                bytes(16),
                method,
                1,
                0,
                -5,
                3,
                4,
                None,
                16,
                0,
                1,
                protection,
                bytes(20),
                0,
                None,
                None,
                None,
            ]
            seeds.add("state-records", cbor.encode(record), cbor.encode(record + [134]))
            for copy in (undo, undo[:-1] + b"x", bytes(20)):
                seeds.add("state-records", cbor.encode([*record[:18], copy, *record[19:]]))
            record[2] = 2
            seeds.add("state-records", cbor.encode(record))


def add_containers(seeds):
    """Containers of RFC 6030 under the keys that the target tries: 16, 24 and 32 zeros, and the passphrase `qwerty`."""
    namespaces = (
        'xmlns="urn:ietf:params:xml:ns:keyprov:pskc" xmlns:ds="http://www.w3.org/2000/09/xmldsig#" '
        'xmlns:xenc="http://www.w3.org/2001/04/xmlenc#" xmlns:xenc11="http://www.w3.org/2009/xmlenc11#" '
        'xmlns:pkcs5="http://www.rsasecurity.com/rsalabs/pkcs/schemas/pkcs-5v2-0#"'
    )
    encode = lambda data: base64.b64encode(data).decode()
    xenc = "http://www.w3.org/2001/04/xmlenc#"
    names = {"sha1": "http://www.w3.org/2000/09/xmldsig#hmac-sha1"}
    names |= {f"sha{bits}": f"http://www.w3.org/2001/04/xmldsig-more#hmac-sha{bits}" for bits in (256, 384, 512)}

    def container(protection, data, algorithm="hotp", parameters="", policy="", device=""):
        seeds.add(
            "pskc",
            f'<?xml version="1.0"?><KeyContainer Version="1.0" {namespaces}>{protection}<KeyPackage><DeviceInfo>{device}'
            f'</DeviceInfo><Key Id="ann" Algorithm="urn:ietf:params:xml:ns:keyprov:pskc:{algorithm}"><Issuer>I</Issuer>'
            f"<AlgorithmParameters>{parameters}</AlgorithmParameters><Data>{data}</Data>{policy}</Key></KeyPackage>"
            "</KeyContainer>",
        )

    def cipher(name, value):
        return (
            f'<xenc:EncryptionMethod Algorithm="{xenc}{name}"/><xenc:CipherData><xenc:CipherValue>{encode(value)}'
            "</xenc:CipherValue></xenc:CipherData>"
        )

    def cbc(key, message):
        count = 16 - len(message) % 16
        encryptor = Cipher(AES(key), CBC(bytes(16))).encryptor()
        return bytes(16) + encryptor.update(message + bytes([count]) * count) + encryptor.finalize()

    def encrypted(name, method, value, mac=None):
        code = "" if mac is None else f"<ValueMAC>{encode(mac)}</ValueMAC>"
        return f"<{name}><EncryptedValue>{cipher(method, value)}</EncryptedValue>{code}</{name}>"

    plain = "<Secret><PlainValue>MTIzNDU2Nzg5MDEyMzQ1Njc4OTA=</PlainValue></Secret>"
    number = lambda name, value: f"<{name}><PlainValue>{value}</PlainValue></{name}>"
    response = '<ResponseFormat Length="8" Encoding="DECIMAL" CheckDigits="false"/>'
    container("", plain + number("Counter", 5), parameters=response)
    for suite in ("SHA1", "SHA256", "SHA512", "MD5"):
        parameters = f"<Suite>HMAC-{suite}</Suite>{response}"
        container("", plain + number("TimeInterval", 60) + number("Time", 0), "totp", parameters)
    container("", plain + number("Time", 9), "totp")
    container("", plain + number("Counter", "x"))
    container("", plain, "ocra", "<Suite>OCRA-1:HOTP-SHA256-8:QH64-T1M</Suite>" + response)
    container("", plain, "pin")
    container("", plain, parameters='<ResponseFormat Length="8" Encoding="ALPHANUMERIC"/>')
    container("", plain, parameters='<ResponseFormat Length="8" Encoding="DECIMAL" CheckDigits="true"/>')
    container(
        "", plain, policy="<Policy><KeyUsage>OTP</KeyUsage><NumberOfTransactions>3</NumberOfTransactions></Policy>"
    )
    container("", plain, policy="<UserId>u</UserId>", device="<DeviceBinding>x</DeviceBinding>")
    container("", plain, policy="<FriendlyName>f</FriendlyName><Policy><KeyUsage>Sign</KeyUsage></Policy>")

    named = "<EncryptionKey><ds:KeyName>k</ds:KeyName></EncryptionKey>"
    for count, name in ((16, "sha1"), (24, "sha256"), (32, "sha384"), (32, "sha512")):
        key, kind = bytes(count), f"aes{8 * count}-cbc"
        value, position = cbc(key, bytes(20)), cbc(key, b"\x01\x00")
        mac = lambda message, key=key, name=name: hmac.new(key, message, name).digest()
        method = f'<MACMethod Algorithm="{names[name]}"></MACMethod>'
        data = encrypted("Secret", kind, value, mac(value)) + encrypted("Counter", kind, position, mac(position))
        container(named + method, data)
        container(named + method, encrypted("Secret", kind, value, bytes(len(mac(value)))))
        container(named + method, encrypted("Secret", kind, value))
        container(named, encrypted("Secret", kind, value, mac(value)))
        container(named, encrypted("Secret", f"kw-aes{8 * count}", aes_key_wrap(key, bytes(24))))
    mac_key = bytes(range(20))
    value = cbc(bytes(16), bytes(20))
    method = f'<MACMethod Algorithm="{names["sha1"]}"><MACKey>{cipher("aes128-cbc", cbc(bytes(16), mac_key))}</MACKey></MACMethod>'
    container(named + method, encrypted("Secret", "aes128-cbc", value, hmac.new(mac_key, value, "sha1").digest()))
    container(named, encrypted("Secret", "tripledes-cbc", value))
    container("<EncryptionKey><ds:X509Data/></EncryptionKey>", plain)

    def derived(count, function, iterations=2, method="http://www.w3.org/2009/xmlenc11#pbkdf2"):
        return (
            f'<EncryptionKey><xenc11:DerivedKey><xenc11:KeyDerivationMethod Algorithm="{method}"><pkcs5:PBKDF2-params>'
            f"<Salt><Specified>{encode(bytes(8))}</Specified></Salt><IterationCount>{iterations}</IterationCount>"
            f"<KeyLength>{count}</KeyLength>{function}</pkcs5:PBKDF2-params></xenc11:KeyDerivationMethod>"
            "</xenc11:DerivedKey></EncryptionKey>"
        )

    for count, function, name in (
        (16, "<PRF/>", "sha1"),
        (32, f'<PRF Algorithm="{names["sha256"]}"/>', "sha256"),
    ):
        key = hashlib.pbkdf2_hmac(name, b"qwerty", bytes(8), 2, count)
        wrapped = encrypted("Secret", f"kw-aes{8 * count}", aes_key_wrap(key, bytes(24)))
        container(derived(count, function), wrapped)
        container(derived(count + 1, function), wrapped)
        container(derived(count, function, 99999999), wrapped)
        container(derived(count, function, method="other"), wrapped)


def add_host(seeds, text):
    seeds.add(
        "proc",
        "00400000-00452000 r-xp 00000000 08:02 173521      /usr/bin/dbus-daemon\n7f00-7f10 rw-p 00000000 00:00 0 \n",
    )
    seeds.add(
        "proc",
        "00400000-00452000 r-xp 00000000 08:02 1 /usr/bin/app\n00452000-00460000 r-xp 00052000 08:02 1 /usr/bin/app\n"
        "00500000-00501000 r-xp 00001000 08:02 2 /lib/a.so (deleted)\n00600000-00601000 r-xp 00000000 08:02 2 /lib/a.so\n"
        "7ffe-7fff r-xp 00000000 00:00 0 [vdso]\n",
        "   0: 0100007F:0016 00000000:0000 0A 00000000:00000000\n   1: 0100007F:0017 00000000:0000 01 0:0\n",
        "Name:\tapp\nTracerPid:\t0\nSeccomp:\t2\nSeccomp_filters:\t1\nVmLck:\t 12 kB\n",
        "Filename Type\n/dev/sda2 partition\n",
    )
    record = vault.record(bytes(16), ZEROS, ZEROS, 1, b"passcode", bytes([10, 4, 8, 1]) + ZEROS, ZEROS, ZEROS)
    seeds.add("vault-record", record, vault.record(bytes(16), ZEROS, ZEROS, 1, key_file=ZEROS, salt=ZEROS))
    message = lambda operation, name, secret=b"": bytes([operation, len(name)]) + name + secret
    messages = [
        message(1, b"a", b"secret"),
        message(2, b"a"),
        message(3, b""),
        message(4, b"a"),
        message(2, b"b"),
        message(5, b""),
    ]
    seeds.add(
        "vault-agent",
        b"".join(b"\x01" + framed(item) for item in messages),
        *(b"\x01" + framed(item) for item in messages),
    )
    seeds.add(
        "vault-agent",
        b"".join(b"\x00" + framed(message(1, b"n%d" % i, b"s" * 9)) for i in range(34)) + b"\x1f" + framed(messages[2]),
    )


def add_policies(seeds, url, text, public, descriptor):
    der = bytes.fromhex("3059301306072a8648ce3d020106082a8648ce3d030107034200") + SIGNER.point
    rule = {
        "factors": ["integrity", "device", "otp", "seal"], "generation_floor": 2, "minimum_version": [1, 2, 3],
        "maximum_age_seconds": 60, "compatibility": False, "audit": "text", "text": "Open {1} for {2}",
        "maximum_version": [9, 0, 0], "parameters": [{"one_of": ["a"]}, {"range": [1, 9]}, {"optional": True}],
        "step_up": [{"above": {"parameter": 2, "value": 5}, "factors": ["otp"]}],
    }  # fmt: skip
    policy = {
        "version": 1, "accept_unsigned": False, "accept_development": True, "issuer": {"mac": True}, "generation_floor": 1,
        "minimum_version": [1, 0, 0], "maximum_age_seconds": 100, "maximum_issue_advance_days": 3,
        "audit": {"entries": 1000}, "commands": {"open": rule, "status": {"factors": ["device"]}},
    }  # fmt: skip
    seeds.add("policy", text(policy), text({"version": 1, "commands": {}}))
    steps = [
        {"above": {"parameter": 1, "value": 5}}, {"outside_hours": ["08:00", "18:30"]}, {"first_use": True},
        {"outside_hours": ["22:00", "06:00"]}, {"token_older_than_seconds": 60},
    ]  # fmt: skip
    named = {"open": rule, "lock": {"factors": ["device", "seal"]}, "seal-request": {"factors": ["device"]}}
    for step in steps:
        named["pay"] = {"factors": ["device"], "step_up": [{**step, "factors": ["seal"]}]}
        seeds.add("policy", text({"version": 1, "commands": named}))
    for parameters in (
        [{"range": [0, 9]}, {"one_of": ["a"]}], [{}, {"optional": True}], [{"optional": True}, {}],
        [{"one_of": ["a", "a"]}], [{"one_of": ["x" * 65]}],
    ):  # fmt: skip
        seeds.add("policy", text({"version": 1, "commands": {"pay": {"factors": ["seal"], "parameters": parameters}}}))
    for hours in (["8:00", "18:00"], ["24:01", "18:00"], ["08:00", "08:00"], ["08:00"]):
        step = {"outside_hours": hours, "factors": ["seal"]}
        seeds.add("policy", text({"version": 1, "commands": {"pay": {"factors": ["device"], "step_up": [step]}}}))
    small = {"unlock": {"factors": ["device"]}, "lock": {"factors": ["integrity", "device", "otp", "seal"]}}
    seeds.add("policy", text({"version": 1, "commands": small}))
    claims_ = {"num": 1, "iat": 2, "policy": {"version": 1, "commands": {}}}
    seeds.add("signed-policy", text(claims_), text({**claims_, "policy": policy, "device": "d1" * 16}))
    service = {
        "issuer": "i", "attestation_issuer": "a", "audience": "u", "images": {"00" * 32: {"subject": "app", "version": [1, 2, 3]}},
        "devices": "listed", "device_makers": [base64.b64encode(der).decode()], "refused_properties": ["debugger"],
        "known_code": False, "subject": "s", "attestation_seconds": 60, "token_seconds": 60, "commands": ["a"],
        "maximum_uses": 3, "secure_strings": True, "custom_tokens": True, "message_signing": True, "decoy_tokens": True,
        "offline_seconds": 5, "settings": {"type": "text", "value": "YQ=="},
        "compliance": [{"subject": "os", "operator": ">=", "versions": ["12"], "action": "block"}],
    }  # fmt: skip
    seeds.add("service-policy", text(service))
    image = {"subject": "app", "version": [1, 2, 3], "proof_key": "00" * 8, "tree_digest": "11" * 32}
    settings = {"type": "json", "value": "e30="}
    scopes = [{"app": "app"}, {"app": "app", "version": [1, 2, 3]}, {"device": "d1" * 16}]
    scopes.append({**scopes[1], **scopes[2]})
    base = {"issuer": "i", "attestation_issuer": "a", "audience": "u", "images": {"00" * 32: image}}
    scoped = [{**scope, "settings": settings} for scope in scopes]
    seeds.add("service-policy", text({**base, "settings_for": scoped}))
    for wrong in (
        [{"settings": settings}], [scoped[0], scoped[0]], [{"app": "a"}], [{"version": [1, 2, 3], "settings": settings}],
        [{"device": "d1", "settings": settings}], [scoped[0]] * 33,
    ):  # fmt: skip
        seeds.add("service-policy", text({**base, "settings_for": wrong}))
    for changes in ({"proof_key": "0"}, {"tree_digest": "g" * 64}, {"subject": ""}):
        seeds.add("service-policy", text({**base, "images": {"00" * 32: {**image, **changes}}}))
    first_come = {"devices": "first-come", "device_makers": [base64.b64encode(der).decode()]}
    seeds.add("service-policy", text({**base, **first_come}), text({**base, "devices": "none"}))
    report = {
        "issuer": "i", "subject": "s", "version": [1, 2, 3], "token_id": "00" * 16, "generation": 1, "issued": 1,
        "expires": 2, "maximum_uses": None, "commands": ["a"], "user": None,
    }  # fmt: skip
    seeds.add(
        "token-answer", text({"token": "2IRD", "format": "cose", "claims": report, "terms": "a.b.c"}), b"\xd8\x60\x84"
    )
    rules = {
        "num": 1,
        "iat": 2,
        "until": 3,
        "default": "warn",
        "unknown": "refuse",
        "rules": {"disk-encryption": "ignore", "other-finding": "wipe"},
    }
    seeds.add("posture-rules", text(rules), text({**rules, "default": "ignore", "rules": {}}))
    finding = re.search(
        r'^  case \w+ = "([a-z-]+)"',
        (ROOT / "Sources/HoldfastMeasurement/Posture/Posture.swift").read_text(),
        re.MULTILINE,
    )
    for names in ([], ["other"], ["Other"], [finding[1]] if finding else []):
        written = {
            "number": 1,
            "until": 3,
            "default": "warn",
            "unknown": "refuse",
            "rules": dict.fromkeys(names, "wipe"),
        }
        seeds.add("posture-rules", text(written), text({**rules, "rules": dict.fromkeys(names, "wipe")}))
    boot = "01234567-89ab-cdef-0123-456789abcdef"
    latest = {"version": 1, "seconds": 5, "boot_id": boot, "boot_seconds": 6}
    seeds.add("prover-state", text(latest) + "\n", text({**latest, "boot_id": None, "boot_seconds": None}) + "\n")
    seeds.add(
        "prover-state",
        text({"version": 1, "wishes": {"format": "cose"}, "service": "https://a.example", "request": "00" * 16}),
    )
    sign = lambda kind, claims_: jws(kind, claims_, url, text)
    configuration = next(
        bytes.fromhex(test["configuration"])
        for _, _, tests in groups("measurement_test")
        for test in tests
        if "configuration" in test and test.get("result") == "valid"
    )
    fingerprints = cbor.encode([["app.debug", bytes(8)], ["app.image", bytes(8)]])
    token = b"token"
    terms = sign("holdfast-terms+jwt", {
        "iss": "i", "jti": url(bytes(16)), "tok": url(hashlib.sha256(token).digest()), "iat": 1, "sub": "app",
        "ver": [1, 2, 3], "key": public, "offline_seconds": 86400,
    })  # fmt: skip
    whole = {
        "version": 4, "device": descriptor, "token": "measurement_token.cose", "token_sha256": "right", "issued": report,
        "configuration_sha256": "right", "fingerprints_sha256": "right", "terms_sha256": "right", "issuer_key": public,
    }  # fmt: skip
    times = (text({**latest, "boot_id": None, "boot_seconds": None}) + "\n").encode(), b"x", b"y" * 500
    remembered = (hashlib.sha256(token).hexdigest() + "\n").encode()
    manifests = [
        whole, {**whole, "version": 3}, {**whole, "token_sha256": "00" * 32}, {**whole, "fingerprints_sha256": "00" * 32},
        {**whole, "terms_sha256": "00" * 32}, {**whole, "configuration_sha256": "00" * 32}, {},
    ]  # fmt: skip
    for manifest in manifests:
        for time in times:
            files = (configuration, token, fingerprints, terms.encode(), time, remembered, text(manifest).encode())
            seeds.add("prover-state", b"\xff" + framed(*files))
    for wrong in range(4):
        files = [configuration, token, fingerprints, terms.encode(), times[0], b"", text(whole).encode()]
        files[wrong] = b""
        seeds.add("prover-state", b"\xff" + framed(*files), b"\xff" + framed(*files[:wrong]))
    seeds.add("prover-state", 'ID=debian\nVERSION_ID="12"\n', "ID='a b'\nVERSION_ID=12.4\\ \n")
    enrolment = {
        "version": 2, "device": descriptor, "token": "token.cose", "token_sha256": "00" * 32,
        "configuration_sha256": "00" * 32, "fingerprints_sha256": "00" * 32,
    }  # fmt: skip
    for name in (
        "measurement_token.cbor",
        "measurement_token.jose",
        "token.cbor",
        "token.jwt",
        "measurement_token.jwt",
    ):
        seeds.add("prover-state", text({**enrolment, "token": name}))
        seeds.add(
            "prover-state",
            text({**enrolment, "token": name, "version": 3, "issued": report, "service": "https://a.example"}),
        )
        seeds.add(
            "prover-state",
            text(
                {
                    **enrolment,
                    "token": name,
                    "version": 4,
                    "issued": report,
                    "terms_sha256": "00" * 32,
                    "issuer_key": public,
                }
            ),
        )
    seeds.add(
        "release-manifest",
        text(
            {
                "maker": "m",
                "app": "a",
                "images": {"00" * 32: [1, 2, 3], "11" * 32: {"version": [1, 2, 3], "tree_digest": "22" * 32}},
            }
        ),
    )
    seeds.add("invitation-code", "ABCDE-FGHIJ-KLMNO-PQRST", "abcdefghijklmnopqrst")
    seeds.add("http-body", *(b"\xff" + body.encode() for body in request_bodies(text, descriptor)))
    for code in ("ABCDE-FGHIJ-KLMNO-PQRST", "ABCDE"):
        body = text({"attestation": "a", "device": descriptor, "invitation": code})
        seeds.add("http-body", b"\xff" + body.encode())
    for payload in ({"a": 1}, {"iss": 1}):
        seeds.add("http-body", b"\xff" + text({"evidence": "AAEC", "payload": payload}).encode())
    seeds.add(
        "actuator",
        b"\x02" + cbor.encode([2, ["lock", "unlock"]]),
        b"\x00" + framed(cbor.encode([0, b"done", 7, "event"]), cbor.encode([1, "text"])),
    )
    seeds.add(
        "actuator",
        b'\x01{"commands":["a"]}\n{"sequence":7,"result":"x","event":"e"}\n{"sequence":7,"result_base64url":"AA"}\n{"sequence":1,"error":"x"}\n',
    )
    for count in (1024, 1025):
        seeds.add("actuator", b"\x02" + cbor.encode([0, bytes(count)]))
        seeds.add("actuator", b'\x01{"sequence":7,"result":"' + b"x" * count + b'"}\n')
    seeds.add("addresses", "exec:/bin/x", "lines:/bin/x", "unix:/run/x", "Open {1} {7} {2}")
    success = bytes.fromhex("80020000001b000000000000000801020304050607080000010000")
    seeds.add(
        "tpm",
        success,
        *(bytes.fromhex(f"80010000000a{code:08x}") for code in (0x18B, 0x14C, 0x8E, 0x922, 0x149, 0x101)),
    )


def request_bodies(text, descriptor):
    """The smallest body of each operation of the service, the largest one, and wrong ones."""
    document = yaml.safe_load((ROOT / "docs/openapi.yaml").read_text())
    schemas = [
        operation["requestBody"]["content"]["application/json"]["schema"]
        for methods in document["paths"].values()
        for operation in methods.values()
        if "requestBody" in operation
    ]

    def example(schema, is_large):
        if "$ref" in schema:
            return example(document["components"]["schemas"][schema["$ref"].rsplit("/", 1)[1]], is_large)
        kind = schema.get("type", "object")
        kind = kind[0] if isinstance(kind, list) else kind
        if "enum" in schema:
            return schema["enum"][-1 if is_large else 0]
        if kind == "object":
            members = schema.get("properties", {})
            if "device_id" in members and "public_key" in members:
                return descriptor
            names = members if is_large else schema.get("required", [])
            return {name: example(members[name], is_large) for name in names}
        if kind == "array":
            count = max(schema.get("minItems", 0), 1 if is_large else 0)
            return [example(schema["items"], is_large) for _ in range(count)]
        if kind == "integer":
            return min(schema.get("maximum", 5), 2**53 - 1) if is_large else schema.get("minimum", 0)
        if kind == "boolean":
            return is_large
        if schema.get("contentEncoding") or "=" in schema.get("pattern", ""):
            count = schema.get("minLength", 4)
            return (
                base64.b64encode(bytes(count // 4 * 3))[:-1].decode() + "=" if count == 44 else "A" * (count // 4 * 4)
            )
        return "0" * max(schema.get("minLength", 1), 1)

    for schema in schemas:
        small, large = (example(schema, is_large) for is_large in (False, True))
        bodies = [small, large]
        for member, value in large.items():
            bodies += [{**large, member: wrong} for wrong in ("", 0, [], {}, ["x"], "\u0001", "g" * 9, "A" * 300)]
            if isinstance(value, list):
                bodies.append({**large, member: value * 70})
        yield from map(text, bodies)


# Texts that stand in tests and documents.

HARVEST = {
    "otpauth": (r"^otpauth://", ["Tests/HoldfastAuthenticatorTests"]),
    "migration": (r"^otpauth-migration", ["Tests/HoldfastAuthenticatorTests"]),
    "pskc": (r"<", ["Tests/HoldfastAuthenticatorTests/Formats/PSKC", "Tests/Interop"]),
    "policy": (r"^\s*\{", ["Tests/HoldfastDeviceTests/Policy", "docs"]),
    "service-policy": (r"^\s*\{", ["Tests/HoldfastIssuerTests", "docs"]),
    "http-body": (r"^\s*\{", ["Tests/HoldfastServiceTests", "docs", "Tests/Interop/test_service.py"]),
    "endpoint": (r"^[a-z0-9]+:", ["Tests/HoldfastTransportTests/EndpointTests.swift"]),
    "service-address": (r"://|^[A-Za-z0-9 -]{20,}", ["Tests/HoldfastOnlineTests"]),
    "known-services": (r"^\s*\{", ["Tests/HoldfastOnlineTests"]),
    "json": (r"[\[{\"]", ["Tests/HoldfastFormatsTests", "Tests/HoldfastCoreTests/Encoding"]),
    "actuator": (r"^\{", ["Tests/HoldfastDeviceTests/Actuator"]),
    "proc": (r"\d+-[0-9a-f]+ |Tracer", ["Tests/HoldfastMeasurementTests"]),
    "timestamp": (r"\d{4}-", ["Tests/HoldfastFormatsTests/TimestampTests.swift"]),
    "seal-request": (r"holdfast-seal", ["Tests", "docs"]),
    "carrier-report": (r"^\s*\{", ["Tests/HoldfastCarrierTests"]),
    "service-answer": (r"^\s*\{", ["Tests/HoldfastCarrierTests"]),
}
LITERAL = re.compile(r'#?"""\n(.*?)"""|#"(.*?)"#|"((?:[^"\\\n]|\\.)*)"', re.DOTALL)


def add_literals(seeds):
    for target, (pattern, places) in HARVEST.items():
        for place in places:
            path = ROOT / place
            for file in sorted(path.rglob("*") if path.is_dir() else [path]):
                if file.suffix not in (".swift", ".py", ".md"):
                    continue
                source = file.read_text(errors="ignore")
                texts = ["".join(found) for found in LITERAL.findall(source)]
                texts += re.findall(r"```json\n(.*?)```", source, re.DOTALL)
                for text in texts:
                    if re.search(pattern, text) and len(text) < 4096:
                        prefix = (
                            b"\x01"
                            if target == "actuator"
                            else b"\x00"
                            if target in ("http-body", "service-answer")
                            else b""
                        )
                        seeds.add(target, prefix + text.encode())


def main():
    seeds = Seeds()
    for add in (add_tokens, add_messages, add_sessions, add_formats, add_literals):
        add(seeds)
    for kind in range(1, 12):
        user = [kind, 1, "ann", 2, 12, 3, -4, 5, [bytes(8), 6], [[1, 1, 6], 7, None], [[2, 1, 6, 30], 8, 9]]
        uses = [kind, bytes(8), bytes(16), 1, 2]
        nonce = [kind, None, bytes(16), 1, bytes(16)]
        code = [kind, 1, 1, ZEROS, "ann", 2, [1, 1, 6], None]
        seeds.add("items", *map(cbor.encode, (user, uses, nonce, code)))
    for target in ("line", "flash"):
        seeds.add(target, *(bytes([number, 1, 2, 3, 4, 5, 6, 7] * 4) for number in range(16)))
    seeds.write(pathlib.Path(sys.argv[1]))


if __name__ == "__main__":
    main()
