"""Writes jose.json next to itself: JWE and JWS tokens made by joserfc and jwcrypto, and the keys that open them.

pip install joserfc jwcrypto cryptography
"""

import base64
import json
import pathlib
import secrets

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicNumbers
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from joserfc import jwe as rfc_jwe
from joserfc import jws as rfc_jws
from joserfc.jwk import ECKey, OctKey, RSAKey
from jwcrypto import jwe as jc_jwe
from jwcrypto import jwk as jc_jwk
from jwcrypto import jws as jc_jws

ENCRYPTIONS = ["A128CBC-HS256", "A192CBC-HS384", "A256CBC-HS512", "A128GCM", "A192GCM", "A256GCM"]
KEY_BYTES = {"A128CBC-HS256": 32, "A192CBC-HS384": 48, "A256CBC-HS512": 64, "A128GCM": 16, "A192GCM": 24, "A256GCM": 32}
ALGORITHMS = [
    "RSA-OAEP",
    "RSA-OAEP-256",
    "A128KW",
    "A192KW",
    "A256KW",
    "dir",
    "ECDH-ES",
    "ECDH-ES+A128KW",
    "ECDH-ES+A192KW",
    "ECDH-ES+A256KW",
    "A128GCMKW",
    "A192GCMKW",
    "A256GCMKW",
]
CURVES = ["P-256", "P-384", "P-521"]
PARTIES = {"apu": "QWxpY2U", "apv": "Qm9i"}


def joserfc_jwe(header, key, plain):
    registry = rfc_jwe.JWERegistry(algorithms=ALGORITHMS + ENCRYPTIONS)
    kind = {"EC": ECKey, "RSA": RSAKey, "oct": OctKey}[key["kty"]]
    return rfc_jwe.encrypt_compact(header, plain, kind.import_key(key), registry=registry)


def jwcrypto_jwe(header, key, plain):
    token = jc_jwe.JWE(plain, json.dumps(header), algs=ALGORITHMS + ENCRYPTIONS)
    token.add_recipient(jc_jwk.JWK(**key))
    return token.serialize(compact=True)


def key_for(algorithm, encryption, curve, rsa, keys):
    if algorithm.startswith("RSA"):
        return rsa
    if algorithm.startswith("ECDH"):
        return keys.setdefault(curve, ECKey.generate_key(curve).as_dict(private=True))
    size = KEY_BYTES[encryption] if algorithm == "dir" else int(algorithm[1:4]) // 8
    return keys.setdefault(size, OctKey.generate_key(size * 8).as_dict(private=True))


def encrypted():
    rsa = RSAKey.generate_key(2048).as_dict(private=True)
    keys, cases, turn = {}, [], 0
    for algorithm in ALGORITHMS:
        every = algorithm in ("dir", "ECDH-ES")
        for curve in CURVES if algorithm.startswith("ECDH") else [None]:
            chosen = ENCRYPTIONS if every else [ENCRYPTIONS[turn % 6], ENCRYPTIONS[(turn + 3) % 6]]
            for encryption in chosen:
                key = key_for(algorithm, encryption, curve, rsa, keys)
                header = {"alg": algorithm, "enc": encryption, "cty": "JWT"}
                if curve and turn % 4 >= 2:
                    header.update(PARTIES)
                plain = f"{algorithm} {encryption} {curve}".encode()
                maker, make = [("joserfc", joserfc_jwe), ("jwcrypto", jwcrypto_jwe)][turn % 2]
                cases.append(
                    {
                        "maker": maker,
                        "alg": algorithm,
                        "enc": encryption,
                        "key": {k: v for k, v in key.items() if k != "kid"} | {"alg": algorithm, "enc": encryption},
                        "plaintext": plain.decode(),
                        "token": make(header, key, plain),
                    }
                )
                turn += 1
    return cases + by_hand(rsa)


def by_hand(rsa):
    """The algorithms that neither library has."""
    cases = []
    for algorithm, hash_ in (("RSA-OAEP-384", hashes.SHA384()), ("RSA-OAEP-512", hashes.SHA512())):
        header = {"alg": algorithm, "enc": "A256GCM", "cty": "JWT"}
        protected = base64url(json.dumps(header, separators=(",", ":")).encode())
        key, iv, plain = secrets.token_bytes(32), secrets.token_bytes(12), algorithm.encode()
        sealed = AESGCM(key).encrypt(iv, plain, protected)
        oaep = padding.OAEP(padding.MGF1(hash_), hash_, None)
        public = RSAPublicNumbers(number(rsa["e"]), number(rsa["n"])).public_key()
        parts = [public.encrypt(key, oaep), iv, sealed[:-16], sealed[-16:]]
        cases.append(
            {
                "maker": "cryptography",
                "alg": algorithm,
                "enc": "A256GCM",
                "key": {k: v for k, v in rsa.items() if k != "kid"} | {"alg": algorithm, "enc": "A256GCM"},
                "plaintext": plain.decode(),
                "token": b".".join([protected, *map(base64url, parts)]).decode(),
            }
        )
    return cases


def base64url(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=")


def number(text):
    return int.from_bytes(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)), "big")


def signed():
    cases = []
    for algorithm, key in [
        ("HS256", OctKey.generate_key(256).as_dict(private=True)),
        ("ES256", ECKey.generate_key("P-256").as_dict(private=True)),
    ]:
        plain = json.dumps({"iss": algorithm}).encode()
        header = {"alg": algorithm, "typ": "holdfast-at+jwt"}
        kind = {"EC": ECKey, "oct": OctKey}[key["kty"]]
        cases.append(
            {
                "maker": "joserfc",
                "alg": algorithm,
                "key": key,
                "plaintext": plain.decode(),
                "token": rfc_jws.serialize_compact(header, plain, kind.import_key(key), algorithms=[algorithm]),
            }
        )
        token = jc_jws.JWS(plain)
        token.add_signature(jc_jwk.JWK(**key), None, json.dumps(header))
        cases.append(
            {
                "maker": "jwcrypto",
                "alg": algorithm,
                "key": key,
                "plaintext": plain.decode(),
                "token": token.serialize(compact=True),
            }
        )
    return cases


if __name__ == "__main__":
    target = pathlib.Path(__file__).with_name("jose.json")
    target.write_text(json.dumps({"encrypted": encrypted(), "signed": signed()}, indent=1) + "\n")
