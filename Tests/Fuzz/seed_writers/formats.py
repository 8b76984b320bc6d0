"""Formats that have no vectors."""

import base64
import hashlib
import hmac
import re

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric.padding import MGF1, OAEP
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.keywrap import aes_key_wrap
from holdfast_peer import cbor, jose

from .shared import DESCRIPTOR, PUBLIC, ROOT, RSA_KEY, SIGNER, TEST_TIME, ZEROS, jws, private_keys, text, url


def add_formats(seeds):
    private = {**PUBLIC, "d": url((1).to_bytes(32, "big"))}
    octets = {"kty": "oct", "k": url(bytes(range(32))), "alg": "HS256", "use": "sig"}
    seeds.add("jwk", *map(text, (PUBLIC, private, octets, {**private, "alg": "ECDH-ES", "enc": "A256GCM", "kid": "k"})))
    seeds.add("jwk", *map(text, private_keys()))
    seeds.add("device-key", text(private) + "\n")
    seeds.add(
        "device-key",
        text({"tpm": "/dev/tpmrm0", "handle": 0x8140_0001, "authorization": url(ZEROS), "check": url(ZEROS)}),
    )
    seeds.add("public-key", text(DESCRIPTOR), text(PUBLIC))
    der = bytes.fromhex("3059301306072a8648ce3d020106082a8648ce3d030107034200") + SIGNER.point
    pem = base64.b64encode(der).decode()
    seeds.add("public-key", der, f"-----BEGIN PUBLIC KEY-----\n{pem[:64]}\n{pem[64:]}\n-----END PUBLIC KEY-----\n")
    seeds.add("maker-signature", bytes.fromhex("3044") + 2 * (b"\x02\x20" + b"\x11" * 32))
    seeds.add("maker-signature", bytes.fromhex("3045022100") + b"\xff" * 32 + b"\x02\x20" + b"\x11" * 32)
    seeds.add("release-keys", "# keys\n" + "00112233445566778899aabbccddeeff\n\n" + "ff" * 16 + " # old\n")
    seeds.add("release-keys", bytes(48), bytes(range(96)), "00" * 16 + "\n" + "00" * 16, "\n", ("01" * 16 + "\n") * 65)
    terms = {
        "iss": "issuer", "jti": url(bytes(16)), "tok": url(ZEROS), "iat": TEST_TIME, "sub": "app", "ver": [1, 2, 3],
        "key": PUBLIC,
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
    signed = jws("holdfast-at+jwt", attestation)
    unsigned = signed.rpartition(".")[0]
    seeds.add("jws", signed, *(f"{unsigned}.{url(data)}" for data in (ZEROS + ZEROS, bytes(5))))


def add_jwe(seeds):
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
    rsa_key = text(next(private_keys())).encode() + b"\n"
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
    token(4, {"alg": "ECDH-ES", "enc": "A256GCM", "epk": PUBLIC, **parties}, b"", derived)
    derived = jose.agreed_key(secret, "ECDH-ES+A256KW")
    token(5, {"alg": "ECDH-ES+A256KW", "enc": "A256GCM", "epk": PUBLIC}, aes_key_wrap(derived, ZEROS), ZEROS)
    seeds.add(
        "jwe",
        bytes([1])
        + f"{url(text({'alg': 'dir', 'enc': 'A128CBC-HS256'}).encode())}..{url(bytes(16))}.{url(bytes(16))}.{url(bytes(16))}".encode(),
    )
