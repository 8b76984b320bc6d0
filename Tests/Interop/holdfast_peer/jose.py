"""The measurement token as JOSE: a compact JWS (RFC 7515) inside a compact JWE (RFC 7516).

As in `cose`, the layers take overrides for the vectors.
"""

import json

from cryptography.hazmat.primitives.keywrap import InvalidUnwrap, aes_key_unwrap, aes_key_wrap

from . import base64strict, strict_json
from . import claims as claim_rules
from .base64strict import url_encode
from .keys import jwk, key_id, point_of_jwk, verify
from .primitives import concat_kdf_sha256, gcm_open, gcm_seal
from .refusal import Refused, require

DIRECT, WRAPPED = "ECDH-ES", "ECDH-ES+A256KW"
LARGEST_TOKEN, LARGEST_HEADER = 3072, 1024
SIGNED_MEMBERS = {"alg", "kid", "typ"}
ENCRYPTED_MEMBERS = {"alg", "enc", "cty", "kid", "epk"}
OPTIONAL_MEMBERS = {"apu", "apv"}


def dump(members):
    return json.dumps(members, separators=(",", ":"), ensure_ascii=False).encode()


def other_info(algorithm, apu=b"", apv=b""):
    """OtherInfo of RFC 7518 section 4.6.2 for 256 bits."""
    parts = ("A256GCM" if algorithm == DIRECT else algorithm).encode(), apu, apv
    return b"".join(len(p).to_bytes(4, "big") + p for p in parts) + (256).to_bytes(4, "big")


def agreed_key(secret, algorithm, apu=b"", apv=b""):
    return concat_kdf_sha256(secret, other_info(algorithm, apu, apv))


def signed_header(kid, **members):
    return dump({"alg": "ES256", "kid": url_encode(kid), "typ": "holdfast-mt+jwt", **members})


def sign(payload, issuer, *, header=None, signature=None):
    """A compact JWS of `payload` (bytes); `header` is the bytes of the protected header."""
    header = signed_header(issuer.kid) if header is None else header
    signing_input = f"{url_encode(header)}.{url_encode(payload)}".encode()
    signature = issuer.sign(signing_input) if signature is None else signature
    return signing_input + b"." + url_encode(signature).encode()


def encrypted_header(kid, ephemeral_point, algorithm=DIRECT, **members):
    return dump(
        {
            "alg": algorithm,
            "enc": "A256GCM",
            "cty": "JWT",
            "kid": url_encode(kid),
            "epk": jwk(ephemeral_point),
            **members,
        }
    )


def encrypt(
    plaintext,
    device_point,
    ephemeral,
    iv,
    *,
    algorithm=DIRECT,
    header=None,
    encoded_header=None,
    encrypted_key=None,
    content_key=None,
    apu=b"",
    apv=b"",
):
    """A compact JWE. `content_key` is wrapped, with ECDH-ES+A256KW; `apu` and `apv` go into the key derivation only."""
    header = encrypted_header(key_id(device_point), ephemeral.point, algorithm) if header is None else header
    encoded_header = url_encode(header) if encoded_header is None else encoded_header
    key = agreed_key(ephemeral.exchange(device_point), algorithm, apu, apv)
    wrapped = b""
    if algorithm == WRAPPED:
        wrapped, key = aes_key_wrap(key, content_key), content_key
    wrapped = wrapped if encrypted_key is None else encrypted_key
    sealed = gcm_seal(key, iv, plaintext, encoded_header.encode())
    parts = (url_encode(wrapped), url_encode(iv), url_encode(sealed[:-16]), url_encode(sealed[-16:]))
    return ".".join((encoded_header, *parts)).encode()


def seal(claims, issuer, device_point, ephemeral, iv):
    """A measurement token: `claims` signed by `issuer`, encrypted to the device."""
    payload = dump(claim_rules.to_members(claims))
    return encrypt(sign(payload, issuer), device_point, ephemeral, iv)


def split_parts(data, count):
    try:
        parts = data.decode("ascii").split(".")
    except UnicodeDecodeError:
        raise Refused("Base64") from None
    require(len(parts) == count, "PartCount")
    return parts


def _header(part, required, optional):
    require(len(part) <= LARGEST_HEADER, "HeaderTooLarge")
    members = strict_json.parse_object(base64strict.url_decode(part))
    require(not members.keys() - required - optional, "HeaderMember")
    require(not required - members.keys(), "MissingMember")
    for name, value in members.items():
        require(isinstance(value, dict if name == "epk" else str), "WrongType")
    return members


def open_token(token, device, issuers, device_id):
    """The claims of a valid token and the point of its verifying key, or a refusal. Time is not looked at."""
    require(len(token) <= LARGEST_TOKEN, "TooLarge")
    payload, signer = _verified_payload(decrypt(token, device), issuers)
    claims = claim_rules.from_json(payload)
    require(claims["audience"] == device_id, "WrongAudience")
    return claims, signer


def decrypt(token, device):
    """The plaintext of a JWE to the device, or a refusal."""
    encoded_header, encrypted_key, iv, ciphertext, tag = split_parts(token, 5)
    header = _header(encoded_header, ENCRYPTED_MEMBERS, OPTIONAL_MEMBERS)
    require(header["alg"] in (DIRECT, WRAPPED) and header["enc"] == "A256GCM", "WrongAlgorithm")
    require(header["cty"] == "JWT", "WrongTyp")
    require(base64strict.url_decode(header["kid"]) == device.kid, "WrongKeyId")
    ephemeral = header["epk"]
    require(not ephemeral.keys() - {"kty", "crv", "x", "y"}, "HeaderMember")
    encrypted_key, iv, ciphertext, tag = map(base64strict.url_decode, (encrypted_key, iv, ciphertext, tag))
    require(len(iv) == 12 and len(tag) == 16, "WrongSize")
    party = [base64strict.url_decode(header.get(name, "")) for name in ("apu", "apv")]
    key = agreed_key(device.exchange(point_of_jwk(ephemeral)), header["alg"], *party)
    if header["alg"] == DIRECT:
        require(encrypted_key == b"", "EncryptedKey")
    else:
        require(len(encrypted_key) == 40, "EncryptedKey")
        try:
            key = aes_key_unwrap(key, encrypted_key)
        except InvalidUnwrap:
            raise Refused("Decryption") from None
    return gcm_open(key, iv, ciphertext + tag, encoded_header.encode())


def _verified_payload(plaintext, issuers):
    encoded_header, payload, signature = split_parts(plaintext, 3)
    header = _header(encoded_header, SIGNED_MEMBERS, set())
    require(header["alg"] == "ES256", "WrongAlgorithm")
    require(header["typ"] == "holdfast-mt+jwt", "WrongTyp")
    kid = base64strict.url_decode(header["kid"])
    signer = next((p for p in issuers if key_id(p) == kid), None)
    require(signer is not None, "WrongKeyId")
    verify(signer, f"{encoded_header}.{payload}".encode(), base64strict.url_decode(signature))
    return base64strict.url_decode(payload), signer
