"""The attestation token: a compact JWS inside a compact JWE, from an attestation service to a backend."""

import hmac as _hmac

from . import base64strict, jose, strict_json
from .keys import key_id, point_of_jwk, verify
from .primitives import gcm_open, hmac_sha256, sha256
from .refusal import require

LARGEST_TOKEN, SKEW = 8192, 30
REFUSED_MEMBERS = {"zip", "crit", "jku", "jwk", "x5u", "x5c", "x5t", "x5t#S256", "b64"}
TEXTS = {"iss": 64, "aud": 255, "arc": 16, "sub": 64}
BINARY = {"did": 16, "pay": 32, "imh": 32, "dmh": 32, "mpk": 16}
REQUIRED = {"iss", "aud", "arc", "iat", "exp", *BINARY}


def binding(device_id, point):
    """The device and its key."""
    return sha256(device_id + point)


def sign(payload, algorithm, key, **header):
    """A JWS under an ES256 key or an HS256 secret."""
    members = {"alg": algorithm, "typ": "holdfast-at+jwt", **header}
    text = f"{jose.url_encode(jose.dump(members))}.{jose.url_encode(payload)}".encode()
    signature = hmac_sha256(key, text) if isinstance(key, bytes) else key.sign(text)
    return text + b"." + jose.url_encode(signature).encode()


def _header(part, **required):
    require(len(part) <= (jose.LARGEST_HEADER * 4 + 2) // 3, "HeaderTooLarge")
    data = base64strict.url_decode(part)
    require(len(data) <= jose.LARGEST_HEADER, "HeaderTooLarge")
    members = strict_json.parse_object(data)
    require(not members.keys() & REFUSED_MEMBERS, "HeaderMember")
    for name, value in required.items():
        require(name in members, "MissingMember")
        require(members[name] == value, "WrongTyp" if name == "typ" else "WrongAlgorithm")
    return members


def _decrypt(token, backend):
    require(len(token) <= LARGEST_TOKEN, "TooLarge")
    encoded, wrapped, iv, ciphertext, tag = jose.split_parts(token, 5)
    header = _header(encoded, alg="ECDH-ES", enc="A256GCM")
    require(header.get("cty", "JWT") == "JWT", "WrongTyp")
    require(header.get("kid", "backend") == "backend", "WrongKeyId")
    require("epk" in header, "MissingMember")
    wrapped, iv, ciphertext, tag = map(base64strict.url_decode, (wrapped, iv, ciphertext, tag))
    require(len(iv) == 12 and len(tag) == 16, "WrongSize")
    require(not wrapped, "EncryptedKey")
    require(isinstance(header["epk"], dict), "WrongType")
    require("d" not in header["epk"], "HeaderMember")
    party = [base64strict.url_decode(header.get(name, "")) for name in ("apu", "apv")]
    key = jose.agreed_key(backend.exchange(point_of_jwk(header["epk"])), "ECDH-ES", *party)
    return gcm_open(key, iv, ciphertext + tag, encoded.encode())


def _payload(signed, algorithm, key):
    encoded, payload, signature = jose.split_parts(signed, 3)
    header = _header(encoded, alg=algorithm, typ="holdfast-at+jwt")
    data, signature = base64strict.url_decode(payload), base64strict.url_decode(signature)
    text = f"{encoded}.{payload}".encode()
    if algorithm == "HS256":
        require(len(signature) == 32, "MacSize")
        require(_hmac.compare_digest(signature, hmac_sha256(key, text)), "Signature")
    else:
        require(header.get("kid", jose.url_encode(key_id(key))) == jose.url_encode(key_id(key)), "WrongKeyId")
        verify(key, text, signature)
    return data


def claims(data):
    """The claims of an attestation with measurements; unknown ones are passed over."""
    members = strict_json.parse_object(data)
    for name, most in TEXTS.items():
        if name in members:
            require(isinstance(members[name], str), "WrongType")
            require(len(members[name].encode()) <= most, "TextTooLong")
    for name in ("iat", "exp"):
        if name in members:
            require(isinstance(members[name], int) and not isinstance(members[name], bool), "WrongType")
    for name, size in BINARY.items():
        if name in members:
            require(isinstance(members[name], str), "WrongType")
            members[name] = base64strict.decode(members[name])
            require(len(members[name]) == size, "WrongSize")
    if "ver" in members:
        version = members["ver"]
        require(isinstance(version, list), "WrongType")
        require(all(isinstance(n, int) and not isinstance(n, bool) for n in version), "WrongType")
        require(len(version) == 3, "WrongCount")
    require(not REQUIRED - members.keys(), "MissingClaim")
    return members


def open_token(token, backend, algorithm, key, *, issuer, audience, device_id, point, now):
    """The claims of a token for a device, or the first reason for refusal."""
    found = claims(_payload(_decrypt(token, backend), algorithm, key))
    require(found["iss"] == issuer, "WrongIssuer")
    require(found["aud"] == audience, "WrongAudience")
    require(found["iat"] < found["exp"] and found["iat"] <= now + SKEW, "NotYetValid")
    require(found["exp"] + SKEW > now, "Expired")
    require(found["pay"] == binding(device_id, point), "AnotherDevice")
    require("sub" in found, "MissingClaim")
    return found
