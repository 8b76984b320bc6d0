"""Tokens that a device opens which believes every tag, signature and key: a ciphertext is its plaintext, and every hash is zero."""

import base64

from holdfast_peer import cbor, claims, cose, issuer, jose

from .shared import PUBLIC, SIGNER, TEST_TIME, ZEROS, text, url

# The device trusts every issuer: one whose id begins with an odd byte by its signature, the others by their MAC.
SIGNING, AUTHENTICATING = bytes([1]) * 8, bytes([2]) * 8
DEVICE = bytes(8)
# The lengths of an attestation token's texts and bytes.
TEXTS = {"iss": 64, "aud": 255, "arc": 16, "sub": 64}
BYTES = {"did": 16, "pay": 32, "imh": 32, "dmh": 32, "mpk": 16}
CLAIMS = {
    **issuer.fresh_claims(bytes(16), issuedAt=TEST_TIME, expires=TEST_TIME + 3600),
    "tokenId": bytes(range(16)),
    "integrity": bytes(range(32)),
    "device": bytes(range(32, 64)),
    "proofKey": bytes(range(64, 80)),
}
CHANGES = (
    {}, {"maximumUses": 3}, {"commands": ["unlock", "lock"]}, {"commands": [f"command-{n}" for n in range(16)]},
    {"version": [1, 2, 3]}, {"user": "ann"}, {"generation": 2**53 - 1},
    {"issuer": "i" * 64, "subject": "s" * 64, "user": "u" * 32},
    {"maximumUses": 0, "commands": [], "version": [2**53 - 1, 0, 7], "user": "u", "generation": 0},
)  # fmt: skip


def add_opened_tokens(seeds):
    for changes in CHANGES:
        payload = claims.to_cbor({**CLAIMS, **changes})
        signed = cbor.Tag(18, [cose.sign_protected(SIGNING), {}, payload, bytes(64)])
        authenticated = cbor.Tag(17, [cose.mac_protected(AUTHENTICATING), {}, payload, ZEROS])
        for content in (cbor.encode(signed), cbor.encode(authenticated), payload):
            seeds.add_at_limit("cose", in_cose(content))
        seeds.add_at_limit("claims-cbor", payload)
        members = text(claims.to_members({**CLAIMS, **changes})).encode()
        seeds.add_at_limit("claims-json", members)
        seeds.add_at_limit("jose", in_jose(signed_jose(members)))
    add_headers(seeds, text(claims.to_members(CLAIMS)).encode())
    add_attestations(seeds)


def add_headers(seeds, payload):
    """Both headers of a token in JOSE, with members that are read, ignored and refused."""
    signed = signed_jose(payload)
    party = {"apu": url(b"u"), "apv": url(b"v")}
    refused = "b64", "zip", "crit", "jku", "jwk", "x5u", "x5c", "x5t", "x5t#S256"
    encrypted_headers = (
        party, {"apu": ""}, {"x": {"y": [1, None]}}, {"alg": "ES256"}, {"enc": "A128GCM"}, {"cty": "JOSE"}, {"kid": "AQ"},
        *({name: url(bytes(count))} for name in party for count in (1, 255, 256, 257)),
        *({name: "x"} for name in refused),
        *({"epk": {**PUBLIC, name: "x"}} for name in ("d", "use", "kty", "crv")),
        *({"epk": {key: value for key, value in PUBLIC.items() if key != name}} for name in PUBLIC),
    )  # fmt: skip
    for members in encrypted_headers:
        seeds.add_at_limit("jose", in_jose(signed, **members))
    for count in (0, 39, 40, 41):
        seeds.add_at_limit("jose", in_jose(signed, bytes(count), alg=jose.WRAPPED), in_jose(signed, bytes(count)))
    signed_headers = (
        {"alg": "HS256"}, {"alg": "ECDH-ES"}, {"typ": "JWT"}, {"kid": url(AUTHENTICATING)}, {"kid": "AQ"}, {"x": 1},
        *({name: "x"} for name in refused),
    )  # fmt: skip
    for members in signed_headers:
        seeds.add_at_limit("jose", in_jose(signed_jose(payload, **members)))
    for count in (63, 65):
        seeds.add_at_limit("jose", in_jose(signed_jose(payload, bytes(count))))


def in_cose(content):
    """A COSE_Encrypt whose ciphertext is `content`."""
    header = cbor.Encoded(cose.ephemeral_header(SIGNER.point))
    recipient = [cose.recipient_protected(DEVICE), header, b""]
    body = [cose.CONTENT_PROTECTED, {5: bytes(12)}, content + bytes(16), [recipient]]
    return cbor.encode(cbor.Tag(cose.ENCRYPT, body))


def in_jose(content, encrypted_key=b"", **members):
    """A compact JWE whose ciphertext is `content`."""
    header = {"alg": jose.DIRECT, "enc": "A256GCM", "cty": "JWT", "kid": url(DEVICE), "epk": PUBLIC, **members}
    parts = text(header).encode(), encrypted_key, bytes(12), content, bytes(16)
    return ".".join(map(url, parts))


def signed_jose(payload, signature=bytes(64), **members):
    """A compact JWS."""
    header = {"alg": "ES256", "kid": url(SIGNING), "typ": "holdfast-mt+jwt", **members}
    return ".".join(map(url, (text(header).encode(), payload, signature))).encode()


def add_attestations(seeds):
    """Claims of an attestation token, with each text at its limit."""
    base = {
        "iss": "a", "aud": "u", "iat": 1, "exp": 2, "arc": "0123456789", "did": standard(bytes(range(16))),
        "pay": standard(bytes(range(32))), "imh": standard(bytes(range(1, 33))), "dmh": standard(bytes(range(2, 34))),
        "mpk": standard(bytes(range(3, 19))),
    }  # fmt: skip
    changes = [{}, {"sub": "app", "ver": [1, 2, 3]}, {"other": {"x": [1]}}, {"exp": 2**53 - 1}, {"exp": 2**53}]
    changes += [{name: "x" * count} for name, limit in TEXTS.items() for count in (0, limit, limit + 1)]
    changes += [{"ver": numbers} for numbers in ([], [1, 2], [1, 2, 3, 4], [0, 0, 2**53 - 1])]
    changes += [{name: standard(bytes(count))} for name, size in BYTES.items() for count in (size - 1, size + 1)]
    for change in changes:
        seeds.add_at_limit("attestation", text({**base, **change}))
    for name in base:
        seeds.add_at_limit("attestation", text({key: value for key, value in base.items() if key != name}))


def standard(data):
    """Padded base64."""
    return base64.b64encode(data).decode()
