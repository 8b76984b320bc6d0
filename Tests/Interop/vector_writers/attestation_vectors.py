"""attestation_token_test.json: attestation tokens that a backend opens for a device, or refuses."""

from holdfast_peer import attestation, base64strict, jose
from holdfast_peer.keys import ORDER, PrivateKey, jwk

from . import token_cases as cases
from .notes import NOTES
from .token_cases import DEVICE, DEVICE_ID, LARGEST, OTHER_DEVICE, STRANGER
from .vector_file import VectorFile, pin

BACKEND, SERVICE = PrivateKey(pin("attestation backend", 32)), PrivateKey(pin("attestation service", 32))
SECRET = pin("attestation secret", 64)
NOW = 1790000100
CLAIMS = {
    "iss": "attestation.example",
    "iat": NOW - 100,
    "exp": NOW + 200,
    "aud": "api.example",
    "did": base64strict.encode(pin("attestation host", 16)),
    "arc": "K7QX2M",
    "pay": base64strict.encode(attestation.binding(DEVICE_ID, DEVICE.point)),
    "sub": "com.example.lock",
    "ver": [1, 2, 3],
    "imh": base64strict.encode(pin("attestation integrity", 32)),
    "dmh": base64strict.encode(pin("attestation device", 32)),
    "mpk": base64strict.encode(pin("attestation proof key", 16)),
}


def attestation_file():
    file = VectorFile(
        "HoldfastAttestationToken",
        "attestation_token_schema_v1.json",
        ["AttestationToken: a compact JWS in a compact JWE, which a backend opens for one device at one time."],
        NOTES,
    )
    for algorithm, key in (("ES256", SERVICE), ("HS256", SECRET)):
        inputs = {
            "backendPrivateKey": BACKEND.scalar,
            "signatureAlgorithm": algorithm,
            "signatureKey": key if isinstance(key, bytes) else key.point,
            "issuer": CLAIMS["iss"],
            "audience": CLAIMS["aud"],
            "deviceId": DEVICE_ID,
            "devicePublicKey": DEVICE.point,
            "now": NOW,
        }
        group = file.group("AttestationToken", lambda inputs=inputs, **test: check(**inputs, **test), **inputs)
        _tokens(Writer(group, algorithm, key))
    return file


def check(
    *,
    backendPrivateKey,
    signatureAlgorithm,
    signatureKey,
    issuer,
    audience,
    deviceId,
    devicePublicKey,
    now,
    token,
    **expected,
):
    found = attestation.open_token(
        token,
        PrivateKey(backendPrivateKey),
        signatureAlgorithm,
        signatureKey,
        issuer=issuer,
        audience=audience,
        device_id=deviceId,
        point=devicePublicKey,
        now=now,
    )
    names = {"subject": "sub", "version": "ver", "integrity": "imh", "device": "dmh", "proofKey": "mpk"}
    made = {name: found.get(claim) for name, claim in names.items()}
    assert not expected or made == {**expected, "version": expected["version"]}, expected


CHECKS = {"AttestationToken": check}


class Writer:
    """Makes tokens that differ from a good one in one place."""

    def __init__(self, group, algorithm, key):
        self.group, self.algorithm, self.key = group, algorithm, key

    def encrypt(self, label, signed, header=None, **changes):
        ephemeral = cases.ephemeral(f"attestation {label}")
        members = {"alg": "ECDH-ES", "enc": "A256GCM", "cty": "JWT", "kid": "backend", "epk": jwk(ephemeral.point)}
        members = {k: v for k, v in {**members, **(header or {})}.items() if v is not ...}
        changes = {"header": jose.dump(members), **changes}
        return jose.encrypt(
            signed, changes.pop("to", BACKEND).point, ephemeral, cases.initialization_vector(label), **changes
        )

    def signed(self, claims=CLAIMS, payload=None, key=None, algorithm=None, **header):
        payload = jose.dump(claims) if payload is None else payload
        return attestation.sign(payload, algorithm or self.algorithm, key or self.key, **header)

    def valid(self, comment, flags=("Normal",), header=None, signed_header=None, **changes):
        claims = {k: v for k, v in {**CLAIMS, **changes}.items() if v is not ...}
        token = self.encrypt(comment, self.signed(claims, **(signed_header or {})), header)
        secrets = {
            name: base64strict.decode(claims[claim])
            for name, claim in (("integrity", "imh"), ("device", "dmh"), ("proofKey", "mpk"))
        }
        self.group.valid(comment, flags, token=token, subject=claims["sub"], version=claims.get("ver"), **secrets)

    def token(self, comment, flag, token):
        self.group.invalid(comment, flag, token=token)

    def outer(self, comment, flag, header=None, **changes):
        self.token(comment, flag, self.encrypt(comment, self.signed(), header, **changes))

    def inner(self, comment, flag, signed):
        self.token(comment, flag, self.encrypt(comment, signed))

    def claim(self, comment, flag, **changes):
        self.inner(comment, flag, self.signed({k: v for k, v in {**CLAIMS, **changes}.items() if v is not ...}))

    def payload(self, comment, flag, payload):
        self.inner(comment, flag, self.signed(payload=payload))


def _tokens(writer):
    writer.valid("usual token")
    writer.valid("without a version", ver=...)
    writer.valid("with a claim that is not known", jti="7", nested={"a": [1, None]})
    writer.valid("without kid and cty", header={"kid": ..., "cty": ...})
    writer.valid("with header members that are not known", header={"more": 1}, signed_header={"more": [True]})
    writer.valid("with parties", header={"apu": "", "apv": ""})
    writer.valid("name of 64 bytes", ("Boundary",), sub="\u00fc" * 32)
    writer.valid("in the last second", ("Boundary",), exp=NOW - 29)
    writer.valid("in the first second", ("Boundary",), iat=NOW + 30)
    writer.valid("largest integers", ("Boundary",), exp=LARGEST, ver=[LARGEST] * 3)
    _claims(writer)
    _signatures(writer)
    _encryption(writer)


def _claims(writer):
    claim = writer.claim
    for name in sorted(attestation.REQUIRED | {"sub"}):
        claim(f"{name} is missing", "MissingClaim", **{name: ...})
    claim("another service", "WrongIssuer", iss="attestation.example.org")
    claim("the service in capitals", "WrongIssuer", iss="ATTESTATION.EXAMPLE")
    claim("another backend", "WrongAudience", aud="api.example.org")
    claim("a list of backends", "WrongType", aud=["api.example"])
    claim("expired 30 s ago", "Expired", exp=NOW - 30)
    claim("expired long ago", "Expired", iat=0, exp=1)
    claim("issued in 31 s", "NotYetValid", iat=NOW + 31)
    claim("issued when it expires", "NotYetValid", iat=NOW, exp=NOW)
    claim("issued after it expires", "NotYetValid", iat=NOW, exp=NOW - 1)
    other = {
        "another device": attestation.binding(cases.OTHER_DEVICE_ID, DEVICE.point),
        "the device with another key": attestation.binding(DEVICE_ID, OTHER_DEVICE.point),
        "the key before the id": attestation.sha256(DEVICE.point + DEVICE_ID),
        "with the hash of data": attestation.sha256(
            b"holdfast/1 binding\0" + attestation.binding(DEVICE_ID, DEVICE.point) + bytes(32)
        ),
    }
    for comment, value in other.items():
        claim(f"for {comment}", "AnotherDevice", pay=base64strict.encode(value))
    for name, size in attestation.BINARY.items():
        value = base64strict.decode(CLAIMS[name])
        claim(f"{name} of {size - 1} bytes", "WrongSize", **{name: base64strict.encode(value[:-1])})
        claim(f"{name} of {size + 1} bytes", "WrongSize", **{name: base64strict.encode(value + b"\0")})
        claim(f"{name} without padding", "Base64", **{name: CLAIMS[name].rstrip("=")})
        claim(f"{name} as a number", "WrongType", **{name: 1})
    for name, most in attestation.TEXTS.items():
        claim(f"{name} of {most + 1} bytes", "TextTooLong", **{name: "x" * (most + 1)})
        claim(f"{name} null", "WrongType", **{name: None})
    for name in ("iat", "exp"):
        claim(f"{name} as text", "WrongType", **{name: str(CLAIMS[name])})
    claim("a version of two numbers", "WrongCount", ver=[1, 2])
    claim("a version of four numbers", "WrongCount", ver=[1, 2, 3, 4])
    claim("a version as text", "WrongType", ver="1.2.3")
    good = jose.dump(CLAIMS)
    writer.payload("no JSON", "JsonSyntax", b"{")
    writer.payload("a list", "WrongType", b"[" + good + b"]")
    writer.payload("bytes behind the claims", "TrailingBytes", good + b"{}")
    writer.payload("a claim twice", "DuplicateMember", good[:-1] + b',"aud":"api.example"}')
    writer.payload("a claim twice, once escaped", "DuplicateMember", good[:-1] + b',"\\u0061ud":"api.example"}')
    writer.payload("a fraction", "NumberForm", good.replace(b'"iat":1790000000', b'"iat":1790000000.0'))
    writer.payload("a negative time", "NumberForm", good.replace(b'"iat":1790000000', b'"iat":-1'))
    writer.payload("not UTF-8", "NotUtf8", good.replace(b"K7QX2M", b"\xff"))


def _signatures(writer):
    is_mac = writer.algorithm == "HS256"
    other = pin("attestation other secret", 64) if is_mac else STRANGER
    inner, good = writer.inner, writer.signed()
    inner("under another key", "Signature", writer.signed(key=other))
    text, signature = good.rsplit(b".", 1)
    signature = base64strict.url_decode(signature.decode())

    def with_signature(comment, flag, value):
        inner(comment, flag, text + b"." + jose.url_encode(value).encode())

    form = "MacSize" if is_mac else "SignatureForm"
    with_signature("no signature", form, b"")
    with_signature("a signature that is too short", form, signature[:-1])
    with_signature("a signature that is too long", form, signature + b"\0")
    with_signature("the first byte of the signature changed", "Signature", bytes([signature[0] ^ 1]) + signature[1:])
    with_signature("the last byte of the signature changed", "Signature", signature[:-1] + bytes([signature[-1] ^ 1]))
    if not is_mac:
        with_signature("r and s are 0", form, bytes(64))
        with_signature("s is the order", form, signature[:32] + ORDER.to_bytes(32, "big"))
    changed = jose.dump({**CLAIMS, "sub": "com.example.door"})
    parts = good.split(b".")
    inner(
        "other claims under the signature",
        "Signature",
        b".".join((parts[0], jose.url_encode(changed).encode(), parts[2])),
    )
    for name in ("none", "HS256" if not is_mac else "ES256", "HS384", "hs256"):
        inner(f"algorithm {name}", "WrongAlgorithm", writer.signed(algorithm=name))
    if not is_mac:
        inner("a MAC under the public key", "WrongAlgorithm", writer.signed(algorithm="HS256", key=SERVICE.point))
        inner("another key id", "WrongKeyId", writer.signed(kid=jose.url_encode(STRANGER.kid)))
    for name in ("holdfast-mt+jwt", "JWT", "holdfast-terms+jwt", ""):
        inner(f"typ {name!r}", "WrongTyp", writer.signed(typ=name))
    header = jose.dump({"alg": writer.algorithm})
    inner("no typ", "MissingMember", _resigned(writer, header))
    for name, value in (("crit", ["exp"]), ("b64", False), ("jku", "https://x"), ("x5c", []), ("zip", "DEF")):
        inner(f"signed header with {name}", "HeaderMember", writer.signed(**{name: value}))
    inner("signed header over 1024 bytes", "HeaderTooLarge", writer.signed(more="x" * 1024))
    inner("signed layer of two parts", "PartCount", b".".join(parts[:2]))
    inner("signed layer of four parts", "PartCount", good + b".")
    inner("padded", "Base64", good + b"=")
    inner("claims that nobody signed", "PartCount", jose.dump(CLAIMS))


def _resigned(writer, header):
    text = f"{jose.url_encode(header)}.{jose.url_encode(jose.dump(CLAIMS))}".encode()
    signature = attestation.hmac_sha256(writer.key, text) if isinstance(writer.key, bytes) else writer.key.sign(text)
    return text + b"." + jose.url_encode(signature).encode()


def _encryption(writer):
    outer = writer.outer
    outer("for another backend", "Decryption", to=STRANGER)
    good = writer.encrypt("good", writer.signed())
    parts = good.split(b".")

    def with_part(comment, flag, index, value):
        writer.token(comment, flag, b".".join((*parts[:index], value, *parts[index + 1 :])))

    for index, name in ((2, "IV"), (3, "ciphertext"), (4, "tag")):
        data = bytearray(base64strict.url_decode(parts[index].decode()))
        data[0] ^= 1
        with_part(f"{name} changed", "Decryption", index, jose.url_encode(bytes(data)).encode())
        with_part(f"{name} padded", "Base64", index, parts[index] + b"=")
    with_part("tag of 15 bytes", "WrongSize", 4, jose.url_encode(bytes(15)).encode())
    with_part("no tag", "WrongSize", 4, b"")
    with_part("IV of 16 bytes", "WrongSize", 2, jose.url_encode(bytes(16)).encode())
    with_part("an encrypted key", "EncryptedKey", 1, jose.url_encode(bytes(40)).encode())
    for name, value in (
        ("alg", "ECDH-ES+A256KW"),
        ("alg", "RSA1_5"),
        ("alg", "dir"),
        ("alg", "PBES2-HS256+A128KW"),
        ("enc", "A128GCM"),
        ("enc", "A256CBC-HS512"),
    ):
        outer(f"{name} {value}", "WrongAlgorithm", {name: value})
    for name in ("alg", "enc", "epk"):
        outer(f"{name} is missing", "MissingMember", {name: ...})
    outer("cty of something else", "WrongTyp", {"cty": "text/plain"})
    outer("kid of another key", "WrongKeyId", {"kid": "other"})
    for name, value in (("zip", "DEF"), ("crit", ["exp"]), ("jwk", {}), ("x5u", "https://x"), ("x5t#S256", "")):
        outer(f"header with {name}", "HeaderMember", {name: value})
    off = jwk(cases.ephemeral("attestation off").point)
    outer("an ephemeral key off the curve", "Point", {"epk": {**off, "y": jose.url_encode(bytes(31) + b"\1")}})
    outer("an ephemeral key of another curve", "Point", {"epk": {**off, "crv": "P-384"}})
    outer("an ephemeral key as text", "WrongType", {"epk": "key"})
    outer("a header over 1024 bytes", "HeaderTooLarge", {"more": "x" * 1024})
    writer.token("empty", "PartCount", b"")
    writer.token("four parts", "PartCount", b".".join(parts[:4]))
    writer.token("six parts", "PartCount", good + b".")
    writer.token("a line end behind it", "Base64", good + b"\n")
    writer.token("over 8192 bytes", "TooLarge", writer.encrypt("long", writer.signed({**CLAIMS, "more": "x" * 5000})))
    writer.token("signed but not encrypted", "PartCount", writer.signed())
