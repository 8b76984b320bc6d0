"""The groups of type MeasurementTokenJOSE."""

import hmac
import json
import zlib

from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.keywrap import aes_key_wrap
from holdfast_peer import claims as claim_rules
from holdfast_peer import cose, jose
from holdfast_peer.base64strict import url_encode
from holdfast_peer.claims import NAMES
from holdfast_peer.jose import DIRECT, WRAPPED, dump
from holdfast_peer.keys import ORDER, PRIME, jwk
from holdfast_peer.primitives import concat_kdf_sha256

from . import token_cases as cases
from .cose_vectors import der
from .token_cases import CLAIMS, DEVICE, ISSUER, OTHER_DEVICE, STRANGER
from .vector_file import pin

ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"


def add(file):
    writer = Writer(file.group("MeasurementTokenJOSE", cases.checker("JOSE", False), **cases.group_inputs(False)))
    for comment, flags, changes in cases.VALID:
        writer.valid(comment, flags, claims={**CLAIMS, **changes})
    _representations(writer)
    _key_management(writer)
    for comment, flag, changes in cases.INVALID:
        writer.payload(comment, flag, dump(_members(changes)))
    _claims(writer)
    _json(writer)
    _signed_header(writer)
    _signature(writer)
    _encrypted_header(writer)
    _ephemeral_key(writer)
    _encrypted_key(writer)
    _compact_form(writer)
    _tampered(writer)
    writer.outer("bare claims, not signed", "PartCount", dump(claim_rules.to_members(CLAIMS)))
    _accept_unsigned(file)


def _members(changes):
    """The claims as JSON members, with values as given, of the right type or not."""
    values = claim_rules.to_members(CLAIMS)
    for name, value in changes.items():
        kind = next(row[3] for row in claim_rules.TABLE if row[0] == name)
        values[NAMES[name]] = kind.to_json(value) if isinstance(value, bytes) else value
    return values


def next_character(text):
    """`text` with its last character replaced by the next of the alphabet: the same bytes, other spare bits."""
    return text[:-1] + ALPHABET[ALPHABET.index(text[-1]) + 1]


class Writer:
    """Makes tokens that differ from a good one in one place."""

    def __init__(self, group):
        self.group = group

    def encrypt(self, label, plaintext, **changes):
        return jose.encrypt(
            plaintext, DEVICE.point, cases.ephemeral("j " + label), cases.initialization_vector("j " + label), **changes
        )

    def valid(self, comment, flags, *, claims=CLAIMS, payload=None, signed_header=None, **changes):
        payload = dump(claim_rules.to_members(claims)) if payload is None else payload
        token = self.encrypt(comment, jose.sign(payload, ISSUER, header=signed_header), **changes)
        self.group.valid(comment, flags, token=token, claims=claims)

    def token(self, comment, flag, token):
        self.group.invalid(comment, flag, token=token)

    def outer(self, comment, flag, plaintext=None, **changes):
        """A token whose outer layer is changed, or whose plaintext is given."""
        self.token(comment, flag, self.encrypt(comment, good_signed() if plaintext is None else plaintext, **changes))

    def signed(self, comment, flag, issuer=ISSUER, payload=None, **changes):
        """A token whose signed layer is changed."""
        payload = dump(claim_rules.to_members(CLAIMS)) if payload is None else payload
        self.outer(comment, flag, jose.sign(payload, issuer, **changes))

    def payload(self, comment, flag, payload):
        """A token with a payload that is properly signed and encrypted."""
        self.signed(comment, flag, payload=payload)

    def header(self, comment, flag, changes=None, without=(), raw=None, **other):
        """A token with another encrypted header."""
        members = {**encrypted_members(comment), **(changes or {})}
        members = {k: v for k, v in members.items() if k not in without}
        self.outer(comment, flag, header=dump(members) if raw is None else raw, **other)


def good_signed():
    return jose.sign(dump(claim_rules.to_members(CLAIMS)), ISSUER)


def encrypted_members(label, algorithm=DIRECT):
    """The members of the encrypted header that Writer.encrypt would make for `label`."""
    return json.loads(jose.encrypted_header(DEVICE.kid, cases.ephemeral("j " + label).point, algorithm))


SIGNED_MEMBERS = json.loads(jose.signed_header(ISSUER.kid))


def _representations(writer):
    members = claim_rules.to_members(CLAIMS)
    kind = ("Representation",)
    writer.valid("claims in another order", kind, payload=dump(dict(reversed(members.items()))))
    writer.valid(
        "claims with white space", kind, payload=json.dumps(members, indent="\t").replace("\n", "\r\n").encode()
    )
    escaped = "".join(f"\\u{ord(c):04x}" for c in "issuer.example")
    writer.valid("issuer in escapes", kind, payload=dump(members).replace(b'"issuer.example"', f'"{escaped}"'.encode()))
    writer.valid(
        "claim names in escapes",
        kind,
        payload=dump(members).replace(b'"iss"', b'"\\u0069ss"').replace(b'"gen"', b'"g\\u0065n"'),
    )
    slashes = {**CLAIMS, "integrity": b"\xff" * 32, "device": bytes.fromhex("fbefbe") * 10 + b"\xff\xff"}
    payload = dump(claim_rules.to_members(slashes))
    assert payload.count(b"/") > 10 and payload.count(b"+") > 10
    writer.valid("base64 with plus and escaped slash", kind, claims=slashes, payload=payload.replace(b"/", b"\\/"))
    writer.valid("base64 with plus in escapes", kind, claims=slashes, payload=payload.replace(b"+", b"\\u002B"))
    accents = {**CLAIMS, "issuer": "caf\u00e9 \U0001f512"}
    writer.valid("issuer with characters beyond ASCII", kind, claims=accents)
    writer.valid(
        "issuer with a surrogate pair in escapes",
        kind,
        claims=accents,
        payload=json.dumps(claim_rules.to_members(accents)).encode(),
    )
    quoted = {**CLAIMS, "subject": 'a"b\\c/d'}
    writer.valid("subject with quote and backslash", kind, claims=quoted)
    long = {**CLAIMS, "issuer": "i" * 64}
    writer.valid(
        "issuer of 64 bytes, each in an escape",
        kind,
        claims=long,
        payload=dump(claim_rules.to_members(long)).replace(b"i" * 64, b"\\u0069" * 64),
    )
    writer.valid("signed header in another order", kind, signed_header=dump(dict(reversed(SIGNED_MEMBERS.items()))))
    writer.valid("signed header with white space", kind, signed_header=json.dumps(SIGNED_MEMBERS, indent=1).encode())
    writer.valid(
        "signed header with escapes",
        kind,
        signed_header=dump(SIGNED_MEMBERS).replace(b'"alg"', b'"\\u0061lg"').replace(b"ES256", b"ES\\u003256"),
    )
    for comment, change in (
        ("in another order", lambda m: dump(dict(reversed(m.items())))),
        ("with white space", lambda m: json.dumps(m, indent=2).encode()),
        ("with escapes", lambda m: dump(m).replace(b'"epk"', b'"\\u0065pk"').replace(b"A256GCM", b"A256\\u0047CM")),
    ):
        comment = "encrypted header " + comment
        writer.valid(comment, kind, header=change(encrypted_members(comment)))


def _key_management(writer):
    for comment, key in (("A256KW", pin("content key", 32)), ("A256KW, content key of zeros", bytes(32))):
        writer.valid(comment, ("KeyWrap",), algorithm=WRAPPED, content_key=key)
    full = {**CLAIMS, "maximumUses": 3, "commands": ["lock"], "version": [1, 2, 3], "user": "alice"}
    writer.valid(
        "A256KW, every optional claim",
        ("KeyWrap",),
        claims=full,
        algorithm=WRAPPED,
        content_key=pin("content key 2", 32),
    )
    for comment, apu, apv in (
        ("apu", b"Alice", None),
        ("apv", None, b"Bob"),
        ("apu and apv", b"Alice", b"Bob"),
        ("long apu and apv", pin("apu", 64), pin("apv", 64)),
    ):
        _with_parties(writer, comment, apu, apv)
    _with_parties(
        writer, "A256KW with apu and apv", b"Alice", b"Bob", algorithm=WRAPPED, content_key=pin("content key 3", 32)
    )


def _party_members(apu, apv):
    return {name: url_encode(value) for name, value in (("apu", apu), ("apv", apv)) if value is not None}


def _with_parties(writer, comment, apu, apv, algorithm=DIRECT, **changes):
    header = {**encrypted_members(comment, algorithm), **_party_members(apu, apv)}
    writer.valid(
        comment, ("PartyInfo",), header=dump(header), apu=apu or b"", apv=apv or b"", algorithm=algorithm, **changes
    )


def _claims(writer):
    members = claim_rules.to_members(CLAIMS)
    for name in cases.REQUIRED:
        writer.payload(
            f"{name} is missing", "MissingClaim", dump({k: v for k, v in members.items() if k != NAMES[name]})
        )
    writer.payload("no claim at all", "MissingClaim", b"{}")
    for name, value in (
        ("nbf", 1790000000),
        ("ISS", "issuer.example"),
        ("", 1),
        ("1", "issuer.example"),
        ("-75009", 1),
        ("cnf", {}),
        ("iss\u0000", "x"),
        ("scope", "unlock"),
    ):
        writer.payload(f"unknown claim {name!r}", "UnknownClaim", dump({**members, name: value}))

    def changed(comment, flag, name, value):
        writer.payload(comment, flag, dump({**members, name: value}))

    for comment, name, value in (
        ("token id as a number", "jti", 1),
        ("token id as null", "jti", None),
        ("integrity as a list", "imh", [0] * 32),
        ("device as a number", "dmh", 0),
        ("proof key as null", "mpk", None),
        ("audience as a list", "aud", [members["aud"]]),
        ("audience as a number", "aud", 1),
        ("user as a list", "usr", ["alice"]),
        ("issuer as a map", "iss", {}),
    ):
        changed(comment, "WrongType", name, value)
    text = members["aud"]
    for comment, value in (
        ("padded", text + "=="),
        ("in the standard alphabet", text.replace("-", "+").replace("_", "/")),
        ("with non-zero trailing bits", next_character(text)),
        ("of 21 characters", text[:21]),
        ("with a space", text[:11] + " " + text[11:]),
        ("with a line break", text + "\n"),
    ):
        changed(f"audience {comment}", "Base64", "aud", value)
    token = url_encode(b"\xfb" + CLAIMS["tokenId"][1:])
    changed("token id padded", "Base64", "jti", token + "==")
    changed("token id in the standard alphabet", "Base64", "jti", token.replace("-", "+"))
    changed("token id with non-zero trailing bits", "Base64", "jti", next_character(token))
    value = claim_rules.base64strict.encode(bytes.fromhex("fbefff") * 10 + b"\x01\x02")
    assert "+" in value and "/" in value
    for name, claim in (("imh", "integrity"), ("dmh", "device")):
        changed(f"{claim} without padding", "Base64", name, value.rstrip("="))
        changed(f"{claim} in the url alphabet", "Base64", name, value.replace("+", "-").replace("/", "_"))
        changed(f"{claim} with non-zero trailing bits", "Base64", name, value[:-2] + "J=")
        changed(f"{claim} with a line break", "Base64", name, value[:20] + "\n" + value[20:])
        changed(f"{claim} with too much padding", "Base64", name, value + "=")
        changed(f"{claim} in hexadecimal", "WrongSize", name, CLAIMS[claim].hex())
    short = members["mpk"]
    changed("proof key without padding", "Base64", "mpk", short.rstrip("="))
    changed("proof key with one padding character", "Base64", "mpk", short[:-1])


def _json(writer):
    members = claim_rules.to_members(CLAIMS)
    good = dump(members)

    def raw(comment, flag, old, new):
        assert good.count(old) == 1, old
        writer.payload(comment, flag, good.replace(old, new))

    exp, gen = b'"exp":1790003600', b'"gen":1'
    for comment, digits in (
        ("with a fraction of zero", b"1790003600.0"),
        ("with a fraction", b"1790003600.5"),
        ("with an exponent", b"17900036e2"),
        ("with an upper-case exponent", b"1790003600E0"),
        ("with a leading zero", b"01790003600"),
        ("negative", b"-1790003600"),
        ("minus zero", b"-0"),
        ("with a sign and exponent", b"179000360e+1"),
    ):
        raw(f"expires {comment}", "NumberForm", exp, b'"exp":' + digits)
    for comment, digits in (
        ("00", b"00"),
        ("1.", b"1."),
        ("1e0", b"1e0"),
        ("-1", b"-1"),
        ("1.0", b"1.0"),
        ("01", b"01"),
    ):
        raw(f"generation {comment}", "NumberForm", gen, b'"gen":' + digits)
    for comment, digits in (
        ("with a plus", b"+1"),
        ("with a point first", b".1"),
        ("NaN", b"NaN"),
        ("Infinity", b"Infinity"),
        ("hexadecimal", b"0x1"),
        ("with an underscore", b"1_0"),
        ("in Arabic digits", "\u0661".encode()),
        ("left out", b""),
        ("undefined", b"undefined"),
        ("True", b"True"),
    ):
        raw(f"generation {comment}", "JsonSyntax", gen, b'"gen":' + digits)
    for comment, digits in (
        ("2^53, as digits", str(2**53)),
        ("2^64", str(2**64)),
        ("of 40 digits", "9" * 40),
        ("2^64 + 1, which wraps to 1", str(2**64 + 1)),
    ):
        raw(f"generation {comment}", "IntegerTooLarge", gen, b'"gen":' + digits.encode())

    raw("issuer twice", "DuplicateMember", b'"iss":', b'"iss":"x","iss":')
    raw("generation twice, equal", "DuplicateMember", gen, b'"gen":1,"gen":1')
    raw("expires twice, once in escapes", "DuplicateMember", exp, exp + b',"\\u0065xp":1999999999')
    raw("integrity twice, once in escapes", "DuplicateMember", b'"imh":', b'"im\\u0068":"AA==","imh":')
    raw("an unknown claim twice", "DuplicateMember", gen, gen + b',"x":1,"x":2')

    for comment, payload, flag in (
        ("byte after the claims", good + b"x", "TrailingBytes"),
        ("zero byte after the claims", good + b"\x00", "TrailingBytes"),
        ("claims twice", good + good, "TrailingBytes"),
        ("brace after the claims", good + b"}", "TrailingBytes"),
        ("comment after the claims", good + b"//", "TrailingBytes"),
        ("byte order mark", b"\xef\xbb\xbf" + good, "ByteOrderMark"),
        ("UTF-16 with a byte order mark", b"\xff\xfe" + good.decode().encode("utf-16-le"), "NotUtf8"),
        ("UTF-16 without one", good.decode().encode("utf-16-le"), "JsonSyntax"),
        ("claims as a list", b"[" + good + b"]", "WrongType"),
        ("claims as text", dump("claims"), "WrongType"),
        ("claims null", b"null", "WrongType"),
        ("claims a number", b"1", "WrongType"),
        ("payload empty", b"", "JsonSyntax"),
        ("payload white space", b" ", "JsonSyntax"),
        ("closing brace missing", good[:-1], "JsonSyntax"),
        ("opening brace missing", good[1:], "TrailingBytes"),
        ("comma before the closing brace", good[:-1] + b",}", "JsonSyntax"),
        ("comma first", b"{," + good[1:], "JsonSyntax"),
        ("two commas", good.replace(gen, b"," + gen), "JsonSyntax"),
        ("comma missing", good.replace(b"," + gen, gen), "JsonSyntax"),
        ("colon missing", good.replace(gen, b'"gen"1'), "JsonSyntax"),
        ("single quotes", good.replace(b'"', b"'"), "JsonSyntax"),
        ("name without quotes", good.replace(gen, b"gen:1"), "JsonSyntax"),
        ("comment within the claims", good.replace(gen, b"/* */" + gen), "JsonSyntax"),
        ("a claim nested a hundred deep", good[:-1] + b',"x":' + b"[" * 100 + b"]" * 100 + b"}", "NestingTooDeep"),
        ("claims in CBOR", claim_rules.to_cbor(CLAIMS), "NotUtf8"),
    ):
        writer.payload(comment, flag, payload)
    for comment, value, flag in (
        ("with a bare line break", b'"a\nb"', "JsonSyntax"),
        ("with a bare zero byte", b'"a\x00b"', "JsonSyntax"),
        ("with a bare tab", b'"a\tb"', "JsonSyntax"),
        ("with an unknown escape", b'"a\\xb"', "JsonSyntax"),
        ("with an escape cut short", b'"\\u006"', "JsonSyntax"),
        ("with an escape of other letters", b'"\\u00zz"', "JsonSyntax"),
        ("with an upper-case U escape", b'"\\U0061"', "JsonSyntax"),
        ("not UTF-8", b'"\xc3\x28"', "NotUtf8"),
        ("in Latin-1", b'"caf\xe9"', "NotUtf8"),
        ("with an overlong character", b'"\xc0\x80"', "NotUtf8"),
        ("with an encoded surrogate", b'"\xed\xa0\x80"', "NotUtf8"),
        ("above U+10FFFF", b'"\xf4\x90\x80\x80"', "NotUtf8"),
        ("not closed", b'"', "JsonSyntax"),
    ):
        raw(f"issuer {comment}", flag, b'"issuer.example"', value)
    raw("issuer of 65 bytes in escapes", "TextTooLong", b'"issuer.example"', b'"' + b"\\u0069" * 65 + b'"')
    raw(
        "issuer of 22 three-byte characters in escapes",
        "TextTooLong",
        b'"issuer.example"',
        b'"' + b"\\u20ac" * 22 + b'"',
    )


CONFUSING_MEMBERS = (
    ("zip", "DEF"),
    ("crit", ["exp"]),
    ("crit", []),
    ("crit", ["b64"]),
    ("jku", "https://issuer.example/keys"),
    ("x5u", "https://issuer.example/certificate"),
    ("x5c", ["AAAA"]),
    ("x5t", "AAAA"),
    ("x5t#S256", "AAAA"),
    ("b64", False),
    ("b64", True),
)


def _member_comment(name, value):
    return f"{name} {json.dumps(value)}"


def _signed_header(writer):
    def header(comment, flag, changes=None, without=(), raw=None, issuer=ISSUER, **other):
        members = {k: v for k, v in {**SIGNED_MEMBERS, **(changes or {})}.items() if k not in without}
        writer.signed(f"signed header: {comment}", flag, issuer, header=dump(members) if raw is None else raw, **other)

    writer.signed("signed by a stranger in the issuer's name", "Signature", STRANGER, header=dump(SIGNED_MEMBERS))
    writer.signed("signed by a stranger in his own name", "WrongKeyId", STRANGER)
    writer.signed("signed by the device in the issuer's name", "Signature", DEVICE, header=dump(SIGNED_MEMBERS))
    for name in (
        "none",
        "None",
        "NONE",
        "",
        "HS256",
        "HS512",
        "RS256",
        "PS256",
        "ES384",
        "ES512",
        "ES256K",
        "EdDSA",
        "es256",
        "ES256 ",
    ):
        header(f"alg {name!r}", "WrongAlgorithm", {"alg": name})
    header("alg none without signature", "WrongAlgorithm", {"alg": "none"}, signature=b"")
    hs256 = dump({**SIGNED_MEMBERS, "alg": "HS256"})
    signing_input = f"{url_encode(hs256)}.{url_encode(dump(claim_rules.to_members(CLAIMS)))}".encode()
    public_jwk = dump(jwk(ISSUER.point))
    for comment, key in (
        ("point", ISSUER.point),
        ("x coordinate", ISSUER.point[1:33]),
        ("JWK", public_jwk),
        ("nothing", b""),
    ):
        header(
            f"HS256 keyed by the issuer's {comment}" if key else "HS256 keyed by nothing",
            "WrongAlgorithm",
            raw=hs256,
            signature=hmac.new(key, signing_input, "sha256").digest(),
        )
    header("alg null", "WrongType", {"alg": None})
    header("alg a list", "WrongType", {"alg": ["ES256"]})
    header("alg a number", "WrongType", {"alg": 7})
    for name in SIGNED_MEMBERS:
        header(f"{name} missing", "MissingMember", without=(name,))
    header("empty object", "MissingMember", raw=b"{}")
    for value in ("JWT", "holdfast-at+jwt", "holdfast-mt", "", "holdfast-mt+jwt ", "at+jwt"):
        header(f"typ {value!r}", "WrongTyp", {"typ": value})
    header("typ null", "WrongType", {"typ": None})
    kid = SIGNED_MEMBERS["kid"]
    header("kid with a bit flipped", "WrongKeyId", {"kid": url_encode(bytes([ISSUER.kid[0] ^ 1]) + ISSUER.kid[1:])})
    header("kid of 7 bytes", "WrongKeyId", {"kid": url_encode(ISSUER.kid[:7])})
    header("kid of 9 bytes", "WrongKeyId", {"kid": url_encode(ISSUER.kid + b"\x00")})
    header("kid empty", "WrongKeyId", {"kid": ""})
    header("kid in hexadecimal", "WrongKeyId", {"kid": ISSUER.kid.hex()})
    header("kid is the device's", "WrongKeyId", {"kid": url_encode(DEVICE.kid)})
    header("kid padded", "Base64", {"kid": kid + "="})
    header("kid with non-zero trailing bits", "Base64", {"kid": next_character(kid)})
    header("kid null", "WrongType", {"kid": None})
    for name, value in CONFUSING_MEMBERS:
        header(_member_comment(name, value), "HeaderMember", {name: value})
    header("b64 false, as crit says", "HeaderMember", {"b64": False, "crit": ["b64"]})
    header("jwk of a stranger who signed", "HeaderMember", {"jwk": jwk(STRANGER.point)}, issuer=STRANGER)
    header("jwk of the issuer", "HeaderMember", {"jwk": jwk(ISSUER.point)})
    good = dump(SIGNED_MEMBERS)
    for comment, flag, raw in (
        ("alg twice", "DuplicateMember", good.replace(b'"alg":', b'"alg":"none","alg":')),
        ("alg twice, once in escapes", "DuplicateMember", good[:-1] + b',"\\u0061lg":"none"}'),
        ("alg in escapes first", "DuplicateMember", b'{"\\u0061\\u006c\\u0067":"none",' + good[1:]),
        ("kid twice", "DuplicateMember", good[:-1] + b',"kid":"AAAAAAAAAAA"}'),
        ("crit in escapes", "HeaderMember", good[:-1] + b',"cr\\u0069t":["exp"]}'),
        ("jku in escapes", "HeaderMember", good[:-1] + b',"\\u006aku":"https://issuer.example"}'),
        ("trailing byte", "TrailingBytes", good + b"x"),
        ("twice", "TrailingBytes", good + good),
        ("byte order mark", "ByteOrderMark", b"\xef\xbb\xbf" + good),
        ("not UTF-8", "NotUtf8", good.replace(b"ES256", b"ES\xff")),
        ("trailing comma", "JsonSyntax", good[:-1] + b",}"),
        ("cut short", "JsonSyntax", good[:-1]),
        ("empty", "JsonSyntax", b""),
        ("a list", "WrongType", b"[" + good + b"]"),
        ("null", "WrongType", b"null"),
        ("over 1024 bytes", "HeaderTooLarge", good[:-1] + b" " * 1100 + b"}"),
    ):
        header(comment, flag, raw=raw)


def _signature(writer):
    good = good_signed()
    signing_input, _, encoded = good.rpartition(b".")
    signature = ISSUER.sign(signing_input)
    r, s = signature[:32], signature[32:]
    order = ORDER.to_bytes(32, "big")
    for comment, flag, value in (
        ("of 63 bytes", "SignatureForm", signature[:63]),
        ("of 65 bytes", "SignatureForm", signature + b"\x00"),
        ("empty", "SignatureForm", b""),
        ("in DER", "SignatureForm", der(signature)),
        ("with r 0", "SignatureForm", bytes(32) + s),
        ("with s 0", "SignatureForm", r + bytes(32)),
        ("of zeros", "SignatureForm", bytes(64)),
        ("with r the order", "SignatureForm", order + s),
        ("with s the order", "SignatureForm", r + order),
        ("of ones", "SignatureForm", b"\xff" * 64),
        ("with r and s exchanged", "Signature", s + r),
        ("with r and s 1", "Signature", (1).to_bytes(32, "big") * 2),
        ("with a bit of r flipped", "Signature", signature[:31] + bytes([signature[31] ^ 1]) + s),
        ("with a bit of s flipped", "Signature", signature[:63] + bytes([signature[63] ^ 1])),
        ("over the payload alone", "Signature", ISSUER.sign(dump(claim_rules.to_members(CLAIMS)))),
        ("over the encoded payload alone", "Signature", ISSUER.sign(good.split(b".")[1])),
        (
            "over a COSE structure",
            "Signature",
            ISSUER.sign(cose.signature_input(cose.sign_protected(ISSUER.kid), dump(claim_rules.to_members(CLAIMS)))),
        ),
    ):
        writer.signed(f"signature {comment}", flag, signature=value)
    head, payload, last = (part.decode() for part in good.split(b"."))

    def jws(comment, flag, *parts):
        writer.outer(f"JWS: {comment}", flag, ".".join(parts).encode())

    jws("two parts", "PartCount", head, payload)
    jws("four parts", "PartCount", head, payload, last, "")
    jws("one part", "PartCount", payload)
    jws("signature padded", "Base64", head, payload, last + "==")
    jws("signature with non-zero trailing bits", "Base64", head, payload, next_character(last))
    jws("signature with a line break", "Base64", head, payload, last + "\n")
    jws("signature with a space before it", "Base64", head, payload, " " + last)
    jws("payload of other claims", "Signature", head, url_encode(dump(_members({"generation": 2}))), last)
    jws("payload empty", "Signature", head, "", last)
    jws("header empty", "JsonSyntax", "", payload, last)
    for pad in range(3):
        body = dump(_members({"issuer": "issuer" + "i" * pad}))
        if len(body) % 3 == 1:
            encoded = url_encode(body)
            for comment, changed in (
                ("padded", encoded + "=="),
                ("with non-zero trailing bits", next_character(encoded)),
            ):
                data = f"{head}.{changed}".encode()
                jws(f"payload {comment}", "Base64", head, changed, url_encode(ISSUER.sign(data)))
    jws("JSON serialisation", "PartCount", json.dumps({"protected": head, "payload": payload, "signature": last}))
    writer.outer("JWS: plaintext empty", "PartCount", b"")
    writer.outer("JWS: not ASCII", "Base64", good + "\u00e9".encode())
    writer.outer("COSE_Sign1 as plaintext", "Base64", cose.sign(claim_rules.to_cbor(CLAIMS), ISSUER))


def _encrypted_header(writer):
    header = writer.header
    for name in (
        "RSA-OAEP",
        "RSA-OAEP-256",
        "RSA1_5",
        "dir",
        "A256KW",
        "A128KW",
        "PBES2-HS256+A128KW",
        "ECDH-ES+A128KW",
        "ECDH-ES+A192KW",
        "ECDH-1PU",
        "none",
        "",
        "ecdh-es",
    ):
        header(f"alg {name!r} in the encrypted header", "WrongAlgorithm", {"alg": name})
    for name in ("A128GCM", "A192GCM", "A128CBC-HS256", "A256CBC-HS512", "none", "", "a256gcm"):
        header(f"enc {name!r}", "WrongAlgorithm", {"enc": name})
    _genuine_a128gcm(writer)
    for name in ("alg", "enc", "cty", "kid", "epk"):
        header(f"{name} missing in the encrypted header", "MissingMember", without=(name,))
        header(f"{name} null in the encrypted header", "WrongType", {name: None})
    header("encrypted header an empty object", "MissingMember", raw=b"{}")
    for value in ("", "holdfast-mt+jwt", "application/json", "JWE"):
        header(f"cty {value!r}", "WrongTyp", {"cty": value})
    kid = url_encode(DEVICE.kid)
    for comment, flag, value in (
        ("with a bit flipped", "WrongKeyId", url_encode(bytes([DEVICE.kid[0] ^ 1]) + DEVICE.kid[1:])),
        ("of 7 bytes", "WrongKeyId", url_encode(DEVICE.kid[:7])),
        ("of 9 bytes", "WrongKeyId", url_encode(DEVICE.kid + b"\x00")),
        ("empty", "WrongKeyId", ""),
        ("in hexadecimal", "WrongKeyId", DEVICE.kid.hex()),
        ("of another device", "WrongKeyId", url_encode(OTHER_DEVICE.kid)),
        ("padded", "Base64", kid + "="),
        ("with non-zero trailing bits", "Base64", next_character(kid)),
        ("a number", "WrongType", 1),
    ):
        header(f"device's kid {comment}", flag, {"kid": value})
    for name, value in CONFUSING_MEMBERS:
        header(_member_comment(name, value) + " in the encrypted header", "HeaderMember", {name: value})
    header("jwk in the encrypted header", "HeaderMember", {"jwk": jwk(DEVICE.point)})
    compressor = zlib.compressobj(wbits=-15)
    deflated = compressor.compress(good_signed()) + compressor.flush()
    comment = "zip with a compressed plaintext"
    writer.outer(comment, "HeaderMember", deflated, header=dump({**encrypted_members(comment), "zip": "DEF"}))

    def raw(comment, flag, change):
        comment = "encrypted header: " + comment
        writer.outer(comment, flag, header=change(dump(encrypted_members(comment))))

    raw("alg twice", "DuplicateMember", lambda h: h.replace(b'"alg":', b'"alg":"dir","alg":'))
    raw("alg twice, once in escapes", "DuplicateMember", lambda h: h[:-1] + b',"\\u0061lg":"dir"}')
    raw("enc twice, once in escapes", "DuplicateMember", lambda h: h[:-1] + b',"\\u0065nc":"A128GCM"}')
    raw("epk twice", "DuplicateMember", lambda h: h[:-1] + b',"epk":{}}')
    raw("x twice in epk", "DuplicateMember", lambda h: h.replace(b'"x":', b'"x":"AA","x":'))
    raw("x twice in epk, once in escapes", "DuplicateMember", lambda h: h.replace(b'"x":', b'"\\u0078":"AA","x":'))
    raw("zip in escapes", "HeaderMember", lambda h: h[:-1] + b',"\\u007aip":"DEF"}')
    raw("crit in escapes", "HeaderMember", lambda h: h[:-1] + b',"\\u0063rit":["exp"]}')
    raw("trailing byte", "TrailingBytes", lambda h: h + b"x")
    raw("twice", "TrailingBytes", lambda h: h + h)
    raw("byte order mark", "ByteOrderMark", lambda h: b"\xef\xbb\xbf" + h)
    raw("not UTF-8", "NotUtf8", lambda h: h.replace(b"A256GCM", b"A256GC\xff"))
    raw("trailing comma", "JsonSyntax", lambda h: h[:-1] + b",}")
    raw("cut short", "JsonSyntax", lambda h: h[:-1])
    raw("a list", "WrongType", lambda h: b"[" + h + b"]")
    raw("empty", "JsonSyntax", lambda h: b"")
    raw("over 1024 bytes", "HeaderTooLarge", lambda h: h[:-1] + b" " * 1000 + b"}")
    _header_base64(writer)
    for name, apu, apv in (("apu", b"Alice", None), ("apv", None, b"Bob")):
        header(f"{name} in the header but not in the key derivation", "Decryption", _party_members(apu, apv))
        writer.outer(f"{name} in the key derivation but not in the header", "Decryption", **{name: apu or apv})
        header(f"{name} a number", "WrongType", {name: 1})
        header(f"{name} padded", "Base64", {name: "QQ=="}, **{name: b"A"})
        header(f"{name} with non-zero trailing bits", "Base64", {name: "QR"}, **{name: b"A"})
        header(f"{name} in the standard alphabet", "Base64", {name: "+/+/"}, **{name: b"\xfb\xff\xbf"})
    header("apu and apv exchanged", "Decryption", _party_members(b"Alice", b"Bob"), apu=b"Bob", apv=b"Alice")
    header("apu taken as text", "Decryption", {"apu": "QWxpY2U"}, apu=b"QWxpY2U")


def _header_base64(writer):
    """The header is authenticated as it is written, so that only its decoding can refuse these."""
    for comment, change in (("non-zero trailing bits", next_character), ("padded", lambda text: text + "==")):
        comment = "encrypted header: " + comment
        members = encrypted_members(comment)
        bodies = (json.dumps(members, separators=("," + " " * pad, ":")).encode() for pad in range(3))
        body = next(b for b in bodies if len(b) % 3 == 1)
        writer.outer(comment, "Base64", encoded_header=change(url_encode(body)))


def _genuine_a128gcm(writer):
    comment = "A128GCM, properly made"
    ephemeral, iv = cases.ephemeral("j " + comment), cases.initialization_vector("j " + comment)
    header = url_encode(dump({**encrypted_members(comment), "enc": "A128GCM"}))
    info = b"".join(len(p).to_bytes(4, "big") + p for p in (b"A128GCM", b"", b"")) + (128).to_bytes(4, "big")
    key = concat_kdf_sha256(ephemeral.exchange(DEVICE.point), info)[:16]
    sealed = AESGCM(key).encrypt(iv, good_signed(), header.encode())
    parts = (header, "", url_encode(iv), url_encode(sealed[:-16]), url_encode(sealed[-16:]))
    writer.token(comment, "WrongAlgorithm", ".".join(parts).encode())


def _ephemeral_key(writer):
    def key(comment, flag, changes=None, without=()):
        comment = "epk: " + comment
        members = encrypted_members(comment)
        own = {**members["epk"], **(changes or {})}
        writer.outer(comment, flag, header=dump({**members, "epk": {k: v for k, v in own.items() if k not in without}}))

    for comment, value in (("OKP", "OKP"), ("RSA", "RSA"), ("oct", "oct"), ("lower case", "ec")):
        key(f"kty {comment}", "Point", {"kty": value})
    for value in ("P-384", "P-521", "secp256k1", "X25519", "p-256", "prime256v1"):
        key(f"crv {value}", "Point", {"crv": value})
    for name in ("kty", "crv", "x", "y"):
        key(f"{name} missing", "Point", without=(name,))
        key(f"{name} null", "Point", {name: None})
        key(f"{name} a number", "Point", {name: 1})
    point = cases.ephemeral("j coordinates").point
    for name, value in (("x", point[1:33]), ("y", point[33:])):
        for size in (0, 31, 33):
            key(f"{name} of {size} bytes", "Point", {name: url_encode((value + b"\x00")[:size])})
        key(f"{name} with a zero byte before it", "Point", {name: url_encode(b"\x00" + value)})
        key(f"{name} is 0", "Point", {name: url_encode(bytes(32))})
        key(f"{name} is the prime", "Point", {name: url_encode(PRIME.to_bytes(32, "big"))})
        key(f"{name} of ones", "Point", {name: url_encode(b"\xff" * 32)})
        comment = f"epk: {name} padded"
        members = encrypted_members(comment)
        encoded = members["epk"][name]
        key(f"{name} padded", "Base64", {name: encoded + "="})
        comment = f"epk: {name} with non-zero trailing bits"
        encoded = encrypted_members(comment)["epk"][name]
        key(f"{name} with non-zero trailing bits", "Base64", {name: next_character(encoded)})
    key("point of zeros", "Point", {"x": url_encode(bytes(32)), "y": url_encode(bytes(32))})
    key(
        "point off the curve",
        "Point",
        {"x": url_encode(point[1:33]), "y": url_encode(point[33:64] + bytes([point[64] ^ 1]))},
    )
    key("x and y exchanged", "Point", {"x": url_encode(point[33:]), "y": url_encode(point[1:33])})
    key("compressed: y true", "Point", {"y": True})
    writer.header("epk text", "WrongType", {"epk": "P-256"})
    writer.header("epk a list", "WrongType", {"epk": [jwk(point)]})
    writer.header("epk empty", "Point", {"epk": {}})
    writer.header("another epk than the one used", "Decryption", {"epk": jwk(point)})
    writer.header("the device's own key as epk", "Decryption", {"epk": jwk(DEVICE.point)})


def _encrypted_key(writer):
    outer = writer.outer
    for comment, size in (("a byte", 1), ("16 bytes", 16), ("a wrapped key's length", 40)):
        outer(f"encrypted key of {comment} with ECDH-ES", "EncryptedKey", encrypted_key=pin("encrypted key", size))
    comment = "wrapped key with alg ECDH-ES"
    key = jose.agreed_key(cases.ephemeral("j " + comment).exchange(DEVICE.point), DIRECT)
    outer(comment, "EncryptedKey", encrypted_key=aes_key_wrap(key, key))
    content = pin("content key", 32)
    for size in (0, 8, 24, 32, 39, 41, 48):
        outer(
            f"A256KW with an encrypted key of {size} bytes",
            "EncryptedKey",
            algorithm=WRAPPED,
            content_key=content,
            encrypted_key=pin("encrypted key", size),
        )
    for size in (16, 24, 64):
        comment = f"A256KW of a content key of {size} bytes"
        key = jose.agreed_key(cases.ephemeral("j " + comment).exchange(DEVICE.point), WRAPPED)
        outer(
            comment,
            "EncryptedKey",
            algorithm=WRAPPED,
            content_key=content,
            encrypted_key=aes_key_wrap(key, pin("c", size)),
        )
    outer(
        "A256KW with a random encrypted key",
        "Decryption",
        algorithm=WRAPPED,
        content_key=content,
        encrypted_key=pin("encrypted key", 40),
    )
    comment = "A256KW with a bit of the encrypted key flipped"
    key = jose.agreed_key(cases.ephemeral("j " + comment).exchange(DEVICE.point), WRAPPED)
    wrapped = aes_key_wrap(key, content)
    outer(
        comment,
        "Decryption",
        algorithm=WRAPPED,
        content_key=content,
        encrypted_key=wrapped[:-1] + bytes([wrapped[-1] ^ 1]),
    )
    comment = "A256KW of another content key"
    key = jose.agreed_key(cases.ephemeral("j " + comment).exchange(DEVICE.point), WRAPPED)
    outer(comment, "Decryption", algorithm=WRAPPED, content_key=content, encrypted_key=aes_key_wrap(key, pin("c2", 32)))
    comment = "A256KW with the key derived for ECDH-ES"
    key = jose.agreed_key(cases.ephemeral("j " + comment).exchange(DEVICE.point), DIRECT)
    outer(comment, "Decryption", algorithm=WRAPPED, content_key=content, encrypted_key=aes_key_wrap(key, content))


def _compact_form(writer):
    good = writer.encrypt("compact", good_signed()).decode()
    parts = good.split(".")
    names = ("header", "encrypted key", "IV", "ciphertext", "authentication tag")

    def joined(comment, flag, *changed):
        writer.token(f"JWE: {comment}", flag, ".".join(changed).encode())

    joined("four parts", "PartCount", *parts[:4])
    joined("six parts", "PartCount", *parts, "")
    joined("six parts, one before", "PartCount", "", *parts)
    joined("three parts", "PartCount", *parts[2:])
    joined("empty", "PartCount", "")
    joined("only points", "JsonSyntax", "", "", "", "", "")
    for index in (0, 2, 3, 4):
        name = names[index]
        part = parts[index]
        if index:
            joined(f"{name} with a line break", "Base64", *parts[:index], part + "\n", *parts[index + 1 :])
            joined(
                f"{name} with padding that it does not need", "Base64", *parts[:index], part + "=", *parts[index + 1 :]
            )
            joined(f"{name} with a space before it", "Base64", *parts[:index], " " + part, *parts[index + 1 :])
            joined(
                f"{name} with a character of the standard alphabet",
                "Base64",
                *parts[:index],
                "+" + part[1:],
                *parts[index + 1 :],
            )
        joined(
            f"{name} with a stray character",
            "Base64",
            *parts[:index],
            part + "A" * (1 if len(part) % 4 == 0 else 5 - len(part) % 4),
            *parts[index + 1 :],
        )
    joined("authentication tag padded", "Base64", *parts[:4], parts[4] + "==")
    joined("authentication tag with non-zero trailing bits", "Base64", *parts[:4], next_character(parts[4]))
    joined("space before the token", "Base64", " " + parts[0], *parts[1:])
    joined("line break after the token", "Base64", *parts[:4], parts[4] + "\r\n")
    joined("zero byte after the token", "Base64", *parts[:4], parts[4] + "\x00")
    joined("not ASCII", "Base64", *parts[:4], parts[4] + "\u00e9")
    joined(
        "JSON serialisation",
        "PartCount",
        json.dumps(dict(zip(("protected", "encrypted_key", "iv", "ciphertext", "tag"), parts))),
    )
    joined("token over 3072 bytes", "TooLarge", *parts[:3], parts[3] + "A" * 2400, parts[4])
    writer.token("a JWS without encryption", "PartCount", good_signed())
    writer.token(
        "a COSE token",
        "Base64",
        cose.seal(CLAIMS, ISSUER, DEVICE.point, cases.ephemeral("cose"), cases.initialization_vector("cose")),
    )
    inner = writer.encrypt("nested", good_signed())
    writer.outer("encrypted twice", "PartCount", inner)
    comment = "encrypted to another device in this one's name"
    ephemeral, iv = cases.ephemeral("j " + comment), cases.initialization_vector("j " + comment)
    writer.token(
        comment,
        "Decryption",
        jose.encrypt(good_signed(), OTHER_DEVICE.point, ephemeral, iv, header=dump(encrypted_members(comment))),
    )
    writer.token(
        "encrypted to another device", "WrongKeyId", jose.encrypt(good_signed(), OTHER_DEVICE.point, ephemeral, iv)
    )


def _tampered(writer):
    comment = "tampered"
    ephemeral = cases.ephemeral("j " + comment)
    parts = writer.encrypt(comment, good_signed()).decode().split(".")
    iv, sealed, tag = (jose.base64strict.url_decode(p) for p in parts[2:])

    def changed(comment, flag="Decryption", iv=iv, sealed=sealed, tag=tag, header=parts[0]):
        writer.token(
            comment, flag, ".".join((header, "", url_encode(iv), url_encode(sealed), url_encode(tag))).encode()
        )

    def flipped(data, index):
        return data[:index] + bytes([data[index] ^ 1]) + data[index + 1 :]

    changed("first bit of the ciphertext flipped", sealed=flipped(sealed, 0))
    changed("a bit in the middle of the ciphertext flipped", sealed=flipped(sealed, len(sealed) // 2))
    changed("first byte of the authentication tag changed", tag=flipped(tag, 0))
    changed("last byte of the authentication tag changed", tag=flipped(tag, 15))
    changed("authentication tag of zeros", tag=bytes(16))
    changed("authentication tag of 12 bytes", "WrongSize", tag=tag[:12])
    changed("authentication tag of 15 bytes", "WrongSize", tag=tag[:15])
    changed("authentication tag of 17 bytes", "WrongSize", tag=tag + b"\x00")
    changed("authentication tag empty", "WrongSize", tag=b"")
    changed("ciphertext empty", sealed=b"")
    changed("ciphertext cut by a byte", sealed=sealed[:-1])
    changed("a bit of the IV flipped", iv=flipped(iv, 0))
    changed("IV empty", "WrongSize", iv=b"")
    changed("header rewritten, same members", header=url_encode(json.dumps(encrypted_members(comment)).encode()))
    changed("last byte of the ciphertext moved to the tag", "WrongSize", sealed=sealed[:-1], tag=sealed[-1:] + tag)
    for size in (8, 11, 13, 16):
        comment = f"IV of {size} bytes"
        writer.token(comment, "WrongSize", jose.encrypt(good_signed(), DEVICE.point, ephemeral, pin("long iv", size)))
    header = url_encode(jose.encrypted_header(DEVICE.kid, ephemeral.point))
    key = jose.agreed_key(ephemeral.exchange(DEVICE.point), DIRECT)
    for comment, data in (("decoded header", jose.encrypted_header(DEVICE.kid, ephemeral.point)), ("nothing", b"")):
        sealed_otherwise = jose.gcm_seal(key, iv, good_signed(), data)
        changed(f"associated data: {comment}", header=header, sealed=sealed_otherwise[:-16], tag=sealed_otherwise[-16:])
    for comment, info in (
        ("empty other info", b""),
        ("algorithm ECDH-ES", jose.other_info(WRAPPED).replace(b"\x0eECDH-ES+A256KW", b"\x07ECDH-ES")),
        ("algorithm of the key wrap", jose.other_info(WRAPPED)),
        ("32 in place of 256", jose.other_info(DIRECT)[:-4] + (32).to_bytes(4, "big")),
        ("lengths left out", b"A256GCM" + (256).to_bytes(4, "big")),
    ):
        sealed_otherwise = jose.gcm_seal(
            concat_kdf_sha256(ephemeral.exchange(DEVICE.point), info), iv, good_signed(), header.encode()
        )
        changed(f"key derivation: {comment}", header=header, sealed=sealed_otherwise[:-16], tag=sealed_otherwise[-16:])


def _accept_unsigned(file):
    """Unsigned tokens exist in COSE only."""
    writer = Writer(file.group("MeasurementTokenJOSE", cases.checker("JOSE", True), **cases.group_inputs(True)))
    writer.valid("a signed token is accepted", ("Normal",))
    writer.outer("bare claims are not", "PartCount", dump(claim_rules.to_members(CLAIMS)))
    writer.outer("bare claims in CBOR are not", "Base64", claim_rules.to_cbor(CLAIMS))
    writer.outer(
        "alg none is not",
        "WrongAlgorithm",
        jose.sign(
            dump(claim_rules.to_members(CLAIMS)), ISSUER, header=dump({**SIGNED_MEMBERS, "alg": "none"}), signature=b""
        ),
    )
    writer.signed("a stranger's signature is not", "WrongKeyId", STRANGER)
