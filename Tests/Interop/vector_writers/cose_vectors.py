"""The groups of type MeasurementTokenCOSE."""

from holdfast_peer import cbor, cose, jose
from holdfast_peer import claims as claim_rules
from holdfast_peer.cbor import Encoded, encode, head
from holdfast_peer.claims import LABELS
from holdfast_peer.keys import ORDER, PRIME

from . import token_cases as cases
from .token_cases import CLAIMS, DEVICE, ISSUER, OTHER_DEVICE, STRANGER
from .vector_file import pin


def add(file):
    signed = file.group("MeasurementTokenCOSE", cases.checker("COSE", False), **cases.group_inputs(False))
    writer = Writer(signed)
    for comment, flags, changes in cases.VALID:
        writer.valid(comment, flags, {**CLAIMS, **changes})
    for comment, flag, changes in cases.INVALID:
        writer.payload(comment, flag, encode(_claims_map(changes)))
    _claims(writer)
    _claims_encoding(writer)
    _signature(writer)
    _content(writer)
    _recipient(writer)
    _ephemeral_key(writer)
    _tampered(writer)
    writer.outer("bare claims, not signed", "Unsigned", claim_rules.to_cbor(CLAIMS))
    _unsigned(file)


def _claims_map(changes):
    """The claims by label, with values as given, of the right type or not."""
    values = dict(claim_rules.to_map(CLAIMS))
    for name, value in changes.items():
        text = name == "audience" and isinstance(value, bytes)
        values[LABELS[name]] = jose.url_encode(value) if text else value
    return values


class Writer:
    """Makes tokens that differ from a good one in one place."""

    def __init__(self, group):
        self.group = group

    def seal(self, label, plaintext, **changes):
        return cose.encrypt(
            plaintext, DEVICE.point, cases.ephemeral(label), cases.initialization_vector(label), **changes
        )

    def valid(self, comment, flags, claims):
        token = self.seal(comment, cose.sign(claim_rules.to_cbor(claims), ISSUER))
        self.group.valid(comment, flags, token=token, claims=claims)

    def token(self, comment, flag, token, rule=None):
        self.group.invalid(comment, flag, rule=rule, token=token)

    def outer(self, comment, flag, plaintext=None, **changes):
        """A token whose outer layer is changed, or whose plaintext is given."""
        plaintext = cose.sign(claim_rules.to_cbor(CLAIMS), ISSUER) if plaintext is None else plaintext
        self.token(comment, flag, self.seal(comment, plaintext, **changes))

    def signed(self, comment, flag, issuer=ISSUER, payload=None, **changes):
        """A token whose signed layer is changed."""
        payload = claim_rules.to_cbor(CLAIMS) if payload is None else payload
        self.outer(comment, flag, cose.sign(payload, issuer, **changes))

    def payload(self, comment, flag, payload):
        """A token with a payload that is properly signed and encrypted."""
        self.signed(comment, flag, payload=payload)


def _claims(writer):
    base = claim_rules.to_map(CLAIMS)
    for name in cases.REQUIRED:
        without = {k: v for k, v in base.items() if k != LABELS[name]}
        writer.payload(f"{name} is missing", "MissingClaim", encode(without))
    writer.payload("no claim at all", "MissingClaim", encode({}))
    for comment, label, value in (
        ("not before", 5, 1790000000),
        ("label 0", 0, 1),
        ("label -75000", -75000, 1),
        ("label -75009", -75009, 1),
        ("confirmation key", 8, {}),
        ("label 38", 38, 1),
        ("a text label", "iss", "issuer.example"),
        ("an empty text label", "", 1),
    ):
        writer.payload(f"unknown claim: {comment}", "UnknownClaim", encode({**base, label: value}))
    for comment, name, value in (
        ("issuer as bytes", "issuer", b"issuer.example"),
        ("subject as bytes", "subject", b"app"),
        ("expires negative", "expires", -1),
        ("issued at negative", "issuedAt", -1),
        ("generation negative", "generation", -1),
        ("maximum uses negative", "maximumUses", -5),
        ("version with a negative number", "version", [1, -2, 3]),
        ("generation as bytes", "generation", b"\x01"),
        ("token id as base64url text", "tokenId", jose.url_encode(CLAIMS["tokenId"])),
        ("integrity as text", "integrity", "0" * 32),
        ("device as null", "device", None),
        ("device as a list", "device", [CLAIMS["device"]]),
        ("proof key as a number", "proofKey", 1),
        ("user as bytes", "user", b"alice"),
        ("a command as bytes", "commands", [b"unlock"]),
    ):
        writer.payload(comment, "WrongType", encode(_claims_map({name: value})))
    writer.payload("audience as bytes", "WrongType", encode({**base, 3: cases.DEVICE_ID}))
    text = jose.url_encode(cases.DEVICE_ID)
    last = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    trailing = text[:-1] + last[last.index(text[-1]) + 1]
    for comment, value in (
        ("padded", text + "=="),
        ("in the standard alphabet", text.replace("-", "+").replace("_", "/")),
        ("with non-zero trailing bits", trailing),
        ("with a line break", text + "\n"),
        ("of 21 characters", text[:21]),
        ("with a space", text[:11] + " " + text[11:]),
    ):
        writer.payload(f"audience {comment}", "Base64", encode({**base, 3: value}))
    writer.payload("audience as a list", "WrongType", encode({**base, 3: [text]}))
    writer.payload("claims as a list", "WrongType", encode(list(base.values())))
    writer.payload("claims in a byte string", "WrongType", encode(claim_rules.to_cbor(CLAIMS)))


def _claims_encoding(writer):
    base = claim_rules.to_map(CLAIMS)
    pairs = [encode(k) + encode(v) for k, v in base.items()]
    good = encode(base)

    def map_of(*parts):
        return head(cbor.MAP, len(parts)) + b"".join(parts)

    def changed(comment, flag, name, raw):
        writer.payload(comment, flag, encode({**base, LABELS[name]: Encoded(raw)}))

    writer.payload("payload empty", "Truncated", b"")
    writer.payload("payload cut short", "Truncated", good[:-1])
    writer.payload("byte after the claims", "TrailingBytes", good + b"\x00")
    writer.payload("claims twice", "TrailingBytes", good + good)
    writer.payload("first two claims exchanged", "UnsortedKeys", map_of(pairs[1], pairs[0], *pairs[2:]))
    writer.payload("integrity and device exchanged", "UnsortedKeys", map_of(*pairs[:6], pairs[7], pairs[6], *pairs[8:]))
    writer.payload("private claims first", "UnsortedKeys", map_of(*pairs[6:], *pairs[:6]))
    writer.payload("last two claims exchanged", "UnsortedKeys", map_of(*pairs[:8], pairs[9], pairs[8]))
    for index, name in ((0, "issuer"), (2, "audience"), (3, "expires"), (6, "integrity"), (9, "generation")):
        writer.payload(f"{name} twice", "DuplicateKey", map_of(*pairs[: index + 1], *pairs[index:]))
    writer.payload(
        "expires twice, the second later",
        "DuplicateKey",
        map_of(*pairs[:4], encode(4) + encode(LARGEST_SHOWN), *pairs[4:]),
    )
    writer.payload("claims of indefinite length", "IndefiniteLength", b"\xbf" + b"".join(pairs) + b"\xff")
    changed("issuer in chunks", "IndefiniteLength", "issuer", b"\x7f\x66issuer\x68.example\xff")
    changed("token id in chunks", "IndefiniteLength", "tokenId", b"\x5f" + encode(CLAIMS["tokenId"]) + b"\xff")
    changed("commands of indefinite length", "IndefiniteLength", "commands", b"\x9f\x66unlock\xff")
    writer.payload("map length in two bytes", "NonMinimalInteger", head(cbor.MAP, 10, 1) + good[1:])
    writer.payload("label 1 in two bytes", "NonMinimalInteger", map_of(b"\x18\x01" + pairs[0][1:], *pairs[1:]))
    label = head(cbor.NEGATIVE, 75003, 8)
    writer.payload("label -75004 in nine bytes", "NonMinimalInteger", map_of(*pairs[:9], label + b"\x01"))
    changed("generation in two bytes", "NonMinimalInteger", "generation", b"\x18\x01")
    changed("expires in nine bytes", "NonMinimalInteger", "expires", head(cbor.UNSIGNED, CLAIMS["expires"], 8))
    changed("issuer with a length of two bytes", "NonMinimalInteger", "issuer", b"\x78\x0eissuer.example")
    changed(
        "integrity with a length of three bytes",
        "NonMinimalInteger",
        "integrity",
        head(cbor.BYTES, 32, 2) + CLAIMS["integrity"],
    )
    changed("commands with a length of two bytes", "NonMinimalInteger", "commands", b"\x98\x00")
    changed("expires as a double", "Float", "expires", bytes.fromhex("fb41daac5264000000"))
    changed("generation as a half float", "Float", "generation", bytes.fromhex("f93c00"))
    changed("generation as a single float", "Float", "generation", bytes.fromhex("fa3f800000"))
    changed("maximum uses not a number", "Float", "maximumUses", bytes.fromhex("f97e00"))
    changed("expires as a tagged time", "UnknownTag", "expires", encode(cbor.Tag(1, CLAIMS["expires"])))
    changed("generation as a big number", "UnknownTag", "generation", b"\xc2\x41\x01")
    changed("token id as a tagged UUID", "UnknownTag", "tokenId", encode(cbor.Tag(37, CLAIMS["tokenId"])))
    changed("issuer not UTF-8", "NotUtf8", "issuer", b"\x62\xc3\x28")
    changed("issuer with an overlong character", "NotUtf8", "issuer", b"\x62\xc0\x80")
    changed("issuer with a surrogate", "NotUtf8", "issuer", b"\x63\xed\xa0\x80")
    changed("generation undefined", "SimpleValue", "generation", b"\xf7")
    changed("generation as simple value 32", "SimpleValue", "generation", b"\xf8\x20")
    changed("generation with additional information 28", "ReservedInformation", "generation", b"\x1c")
    changed("integrity longer than the token", "Truncated", "integrity", b"\x5b\x00\x1f\xff\xff\xff\xff\xff\xff")
    changed("commands longer than the token", "Truncated", "commands", b"\x9a\xff\xff\xff\xff")
    writer.payload("claims in the tag of a CWT", "UnknownTag", encode(cbor.Tag(61, Encoded(good))))


LARGEST_SHOWN = 2**40


def _signature(writer):
    payload = claim_rules.to_cbor(CLAIMS)
    protected = cose.sign_protected(ISSUER.kid)
    good = ISSUER.sign(cose.signature_input(protected, payload))
    labels = {1: -7, 4: ISSUER.kid, 16: "holdfast-mt"}
    signed = writer.signed

    def header(comment, flag, changes=None, without=(), raw=None):
        kept = {k: v for k, v in {**labels, **(changes or {})}.items() if k not in without}
        signed(comment, flag, protected=encode(kept) if raw is None else raw)

    signed("signed by a stranger in the issuer's name", "Signature", STRANGER, protected=protected)
    signed("signed by a stranger in his own name", "WrongKeyId", STRANGER)
    signed("signed by the device in the issuer's name", "Signature", DEVICE, protected=protected)
    header("issuer's key id with a bit flipped", "WrongKeyId", {4: bytes([ISSUER.kid[0] ^ 1]) + ISSUER.kid[1:]})
    header("issuer's key id of 7 bytes", "WrongKeyId", {4: ISSUER.kid[:7]})
    header("issuer's key id of 9 bytes", "WrongKeyId", {4: ISSUER.kid + b"\x00"})
    header("issuer's key id empty", "WrongKeyId", {4: b""})
    header("issuer's key id as text", "WrongType", {4: ISSUER.kid.hex()})
    header("issuer's key id is the device's", "WrongKeyId", {4: DEVICE.kid})
    for name, number in (
        ("ES384", -35),
        ("EdDSA", -8),
        ("HS256", 5),
        ("ES256K", -47),
        ("PS256", -37),
        ("RS256", -257),
        ("0", 0),
        ("A256GCM", 3),
    ):
        header(f"signature algorithm {name}", "WrongAlgorithm", {1: number})
    header("signature algorithm as text", "WrongType", {1: "ES256"})
    header("signature algorithm missing", "HeaderLabels", without=(1,))
    header("issuer's key id missing", "HeaderLabels", without=(4,))
    header("typ missing", "HeaderLabels", without=(16,))
    for value in ("holdfast-at", "holdfast-mt+jwt", "", "holdfast-mt\u0000", "HOLDFAST-MT", "holdfast-m"):
        header(f"typ {value!r}", "WrongTyp", {16: value})
    header("typ as a number", "WrongType", {16: 61})
    header("typ as bytes", "WrongType", {16: b"holdfast-mt"})
    header("content type in the signed header", "HeaderLabels", {3: "application/cwt"})
    header("critical headers in the signed header", "HeaderLabels", {2: [1]})
    header("certificate chain in the signed header", "HeaderLabels", {33: b""})
    header("unknown label in the signed header", "HeaderLabels", {99: 1})
    header("claims in the signed header", "HeaderLabels", {15: {1: "issuer.example"}})
    header("signed header empty", "Truncated", raw=b"")
    header("signed header an empty map", "HeaderLabels", raw=b"\xa0")
    header("byte after the signed header", "TrailingBytes", raw=protected + b"\x00")
    parts = [encode(k) + encode(v) for k, v in labels.items()]
    header("signed header unsorted", "UnsortedKeys", raw=b"\xa3" + parts[1] + parts[0] + parts[2])
    header("typ twice", "DuplicateKey", raw=b"\xa4" + parts[0] + parts[1] + parts[2] + parts[2])
    header("algorithm twice", "DuplicateKey", raw=b"\xa4" + parts[0] + b"\x01\x26" + parts[1] + parts[2])
    header("signed header of indefinite length", "IndefiniteLength", raw=b"\xbf" + b"".join(parts) + b"\xff")
    header("algorithm in two bytes", "NonMinimalInteger", raw=b"\xa3\x01\x38\x06" + parts[1] + parts[2])
    header("signed header an array", "WrongType", raw=encode([1, -7]))

    signed(
        "key id outside the protected header",
        "HeaderLabels",
        protected=encode({1: -7, 16: "holdfast-mt"}),
        unprotected=encode({4: ISSUER.kid}),
    )
    signed("key id in both headers", "HeaderLabels", unprotected=encode({4: ISSUER.kid}))
    signed(
        "algorithm outside the protected header",
        "HeaderLabels",
        protected=encode({4: ISSUER.kid, 16: "holdfast-mt"}),
        unprotected=encode({1: -7}),
    )
    signed("countersignature outside the protected header", "HeaderLabels", unprotected=encode({11: b""}))
    signed("unprotected header null", "WrongType", unprotected=encode(None))
    signed("unprotected header an array", "WrongType", unprotected=encode([]))
    signed("unprotected header encoded in a byte string", "WrongType", unprotected=encode(b"\xa0"))

    def signature(comment, flag, value):
        signed(comment, flag, signature=value)

    r, s = good[:32], good[32:]
    order = ORDER.to_bytes(32, "big")
    signature("signature of 63 bytes", "SignatureForm", good[:63])
    signature("signature of 65 bytes", "SignatureForm", good + b"\x00")
    signature("signature with a zero byte before it", "SignatureForm", b"\x00" + good)
    signature("signature empty", "SignatureForm", b"")
    signature("signature null", "WrongType", Encoded(b"\xf6"))
    signature("signature in DER", "SignatureForm", der(good))
    for comment, value in (
        ("r is 0", bytes(32) + s),
        ("s is 0", r + bytes(32)),
        ("r and s are 0", bytes(64)),
        ("r is the order", order + s),
        ("s is the order", r + order),
        ("r and s are the order", order + order),
        ("r and s of ones", b"\xff" * 64),
    ):
        signature(f"signature: {comment}", "SignatureForm", value)
    signature("signature: r and s exchanged", "Signature", s + r)
    signature("signature: r and s are 1", "Signature", ((1).to_bytes(32, "big")) * 2)
    for index in (0, 31, 32, 63):
        signature(
            f"signature: lowest bit of byte {index} flipped",
            "Signature",
            good[:index] + bytes([good[index] ^ 1]) + good[index + 1 :],
        )
    signature("signature over the payload alone", "Signature", ISSUER.sign(payload))
    signature(
        "signature with the context of COSE_Sign",
        "Signature",
        ISSUER.sign(encode(["Signature", protected, b"", payload])),
    )
    signature(
        "signature with external data", "Signature", ISSUER.sign(encode(["Signature1", protected, b"x", payload]))
    )
    signature(
        "signature without the external data's place",
        "Signature",
        ISSUER.sign(encode(["Signature1", protected, payload])),
    )
    signature(
        "signature over other claims",
        "Signature",
        ISSUER.sign(cose.signature_input(protected, claim_rules.to_cbor({**CLAIMS, "generation": 2}))),
    )

    one = cose.sign(payload, ISSUER, tag=None)
    for comment, plaintext in (
        ("signed layer without tag", one),
        ("signed layer tagged COSE_Sign", encode(cbor.Tag(98, Encoded(one)))),
        ("signed layer in the tag of a CWT", encode(cbor.Tag(61, cbor.Tag(18, Encoded(one))))),
        ("signed layer tagged twice", encode(cbor.Tag(18, cbor.Tag(18, Encoded(one))))),
    ):
        writer.outer(comment, "WrongType" if "twice" in comment else "UnknownTag", plaintext)
    body = [protected, {}, payload, good]

    def layer(comment, flag, items):
        writer.outer(comment, flag, encode(cbor.Tag(18, items)))

    layer("signed layer of three elements", "WrongCount", body[:3])
    layer("signed layer of five elements", "WrongCount", [*body, b""])
    layer("signed layer as a map", "WrongType", dict(enumerate(body)))
    layer("signed header not in a byte string", "WrongType", [labels, *body[1:]])
    layer("payload detached", "WrongType", [*body[:2], None, good])
    layer("payload not in a byte string", "WrongType", [*body[:2], Encoded(payload), good])
    writer.outer("byte after the signed layer", "TrailingBytes", cose.sign(payload, ISSUER) + b"\x00")
    writer.outer("signed layer cut short", "Truncated", cose.sign(payload, ISSUER)[:-1])
    writer.outer(
        "signed layer of indefinite length", "IndefiniteLength", b"\xd2\x9f" + b"".join(map(encode, body)) + b"\xff"
    )
    writer.outer("tag of the signed layer in two bytes", "NonMinimalInteger", b"\xd8\x12" + one)
    writer.outer("length of the signed layer in two bytes", "NonMinimalInteger", b"\xd2\x98\x04" + one[1:])
    writer.outer("plaintext empty", "Truncated", b"")
    writer.outer(
        "COSE_Mac0 keyed by the issuer's public key",
        "WrongKeyKind",
        cose.authenticate(payload, ISSUER.point, protected=cose.mac_protected(ISSUER.kid)),
    )


def der(signature):
    def integer(data):
        data = data.lstrip(b"\x00")
        data = b"\x00" + data if data[0] & 0x80 else data
        return b"\x02" + bytes([len(data)]) + data

    body = integer(signature[:32]) + integer(signature[32:])
    return b"\x30" + bytes([len(body)]) + body


def _content(writer):
    outer = writer.outer
    good = writer.seal("good", cose.sign(claim_rules.to_cbor(CLAIMS), ISSUER))
    body = cbor.decode(good, tags=(96,)).value
    for name, number in (("A128GCM", 1), ("A192GCM", 2), ("ChaCha20/Poly1305", 24), ("HS256", 5), ("-7", -7)):
        outer(f"content algorithm {name}", "WrongAlgorithm", protected=encode({1: number}))
    outer("content algorithm as text", "WrongType", protected=encode({1: "A256GCM"}))
    outer("content header empty", "Truncated", protected=b"")
    outer("content header an empty map", "HeaderLabels", protected=b"\xa0")
    outer("key id in the content header", "HeaderLabels", protected=encode({1: 3, 4: DEVICE.kid}))
    outer("critical headers in the content header", "HeaderLabels", protected=encode({1: 3, 2: [1]}))
    outer("typ in the content header", "HeaderLabels", protected=encode({1: 3, 16: "holdfast-mt"}))
    outer("algorithm twice in the content header", "DuplicateKey", protected=b"\xa2\x01\x03\x01\x03")
    outer("algorithm in two bytes in the content header", "NonMinimalInteger", protected=b"\xa1\x01\x18\x03")
    outer("content header of indefinite length", "IndefiniteLength", protected=b"\xbf\x01\x03\xff")
    outer("byte after the content header", "TrailingBytes", protected=b"\xa1\x01\x03\x00")
    iv = cases.initialization_vector("unprotected")
    for comment, flag, value in (
        ("IV missing", "HeaderLabels", {}),
        ("partial IV", "HeaderLabels", {6: iv}),
        ("IV and partial IV", "HeaderLabels", {5: iv, 6: b"\x01"}),
        ("algorithm outside", "HeaderLabels", {1: 3, 5: iv}),
        ("key id outside", "HeaderLabels", {4: DEVICE.kid, 5: iv}),
        ("IV as text", "WrongType", {5: "iv"}),
        ("IV null", "WrongType", {5: None}),
        ("header null", "WrongType", None),
        ("header an array", "WrongType", [iv]),
    ):
        outer(f"content, unprotected: {comment}", flag, unprotected=encode(value))
    outer("IV in the protected header", "HeaderLabels", protected=encode({1: 3, 5: iv}), unprotected=b"\xa0")
    plaintext = cose.sign(claim_rules.to_cbor(CLAIMS), ISSUER)
    for size in (8, 11, 13, 16):
        writer.token(
            f"IV of {size} bytes",
            "WrongSize",
            cose.encrypt(plaintext, DEVICE.point, cases.ephemeral(f"iv {size}"), pin("long iv", size)),
        )
    writer.token("IV empty", "WrongSize", encode(cbor.Tag(96, [body[0], {5: b""}, *body[2:]])))

    untagged = encode(body)
    for comment, number in (("COSE_Encrypt0", 16), ("COSE_Sign1", 18), ("tag 97", 97), ("self-described CBOR", 55799)):
        writer.token(f"outer layer tagged {comment}", "UnknownTag", encode(cbor.Tag(number, Encoded(untagged))))
    writer.token("outer layer without tag", "UnknownTag", untagged)
    writer.token("outer layer in the tag of a CWT", "UnknownTag", encode(cbor.Tag(61, Encoded(good))))
    writer.token("outer layer tagged twice", "WrongType", encode(cbor.Tag(96, Encoded(good))))
    tagged = lambda items: encode(cbor.Tag(96, items))
    writer.token("outer layer of three elements", "WrongCount", tagged(body[:3]))
    writer.token("outer layer of five elements", "WrongCount", tagged([*body, b""]))
    writer.token("outer layer as a map", "WrongType", tagged(dict(enumerate(body))))
    writer.token("content header not in a byte string", "WrongType", tagged([{1: 3}, *body[1:]]))
    writer.token("ciphertext detached", "WrongType", tagged([*body[:2], None, body[3]]))
    writer.token("ciphertext as text", "WrongType", tagged([*body[:2], "x" * len(body[2]), body[3]]))
    writer.token("recipients null", "WrongType", tagged([*body[:3], None]))
    writer.token(
        "outer layer of indefinite length", "IndefiniteLength", b"\xd8\x60\x9f" + b"".join(map(encode, body)) + b"\xff"
    )
    writer.token(
        "ciphertext in chunks",
        "IndefiniteLength",
        tagged([*body[:2], Encoded(b"\x5f" + encode(body[2]) + b"\xff"), body[3]]),
    )
    writer.token("tag in three bytes", "NonMinimalInteger", b"\xd9\x00\x60" + untagged)
    writer.token(
        "ciphertext's length in five bytes",
        "NonMinimalInteger",
        tagged([*body[:2], Encoded(head(cbor.BYTES, len(body[2]), 4) + body[2]), body[3]]),
    )
    writer.token("length of the outer layer in two bytes", "NonMinimalInteger", b"\xd8\x60\x98\x04" + untagged[1:])
    writer.token("byte after the token", "TrailingBytes", good + b"\x00")
    writer.token("token twice", "TrailingBytes", good + good)
    writer.token("token over 3072 bytes", "TooLarge", good + bytes(3073 - len(good)))
    for cut in (0, 1, 2, 3, len(good) // 2, len(good) - 1):
        writer.token(f"token cut to {cut} bytes", "Truncated", good[:cut])
    writer.token("a JOSE token", "TrailingBytes", jose.seal(CLAIMS, ISSUER, DEVICE.point, cases.ephemeral("jose"), iv))


def _recipient(writer):
    outer = writer.outer
    labels = {1: -25, 4: DEVICE.kid}
    good = cbor.decode(writer.seal("good", cose.sign(claim_rules.to_cbor(CLAIMS), ISSUER)), tags=(96,)).value
    recipient = good[3][0]

    def listed(comment, flag, recipients):
        writer.token(comment, flag, encode(cbor.Tag(96, [*good[:3], recipients])))

    listed("no recipient", "RecipientCount", [])
    listed("the same recipient twice", "RecipientCount", [recipient, recipient])
    other = [cose.recipient_protected(OTHER_DEVICE.kid), *recipient[1:]]
    listed("a second recipient", "RecipientCount", [recipient, other])
    listed("a first recipient of another device", "RecipientCount", [other, recipient])
    listed("recipient not in a list", "RecipientCount", recipient)
    listed("recipient null", "WrongType", [None])
    listed("recipient of two elements", "WrongCount", [recipient[:2]])
    listed("recipient with recipients of its own", "WrongCount", [[*recipient, []]])
    listed(
        "recipient of indefinite length",
        "IndefiniteLength",
        [Encoded(b"\x9f" + b"".join(map(encode, recipient)) + b"\xff")],
    )
    listed("recipient's ciphertext null", "WrongType", [[*recipient[:2], None]])
    listed("recipient's header not in a byte string", "WrongType", [[labels, *recipient[1:]]])
    outer("recipient's ciphertext of one byte", "RecipientCiphertext", recipient_ciphertext=b"\x00")
    outer("recipient's ciphertext of a wrapped key's length", "RecipientCiphertext", recipient_ciphertext=pin("w", 40))

    def header(comment, flag, changes=None, without=(), raw=None):
        kept = {k: v for k, v in {**labels, **(changes or {})}.items() if k not in without}
        outer(comment, flag, recipient=encode(kept) if raw is None else raw)

    for name, number in (
        ("ECDH-ES + HKDF-512", -26),
        ("ECDH-SS + HKDF-256", -27),
        ("ECDH-ES + A128KW", -29),
        ("ECDH-ES + A256KW", -31),
        ("direct", -6),
        ("direct + HKDF-SHA-256", -10),
        ("A256KW", -5),
    ):
        header(f"recipient algorithm {name}", "WrongAlgorithm", {1: number})
    header("recipient algorithm as text", "WrongType", {1: "ECDH-ES"})
    header("recipient algorithm missing", "HeaderLabels", without=(1,))
    header("device's key id missing", "HeaderLabels", without=(4,))
    header("device's key id with a bit flipped", "WrongKeyId", {4: DEVICE.kid[:7] + bytes([DEVICE.kid[7] ^ 1])})
    header("device's key id of 7 bytes", "WrongKeyId", {4: DEVICE.kid[:7]})
    header("device's key id of 9 bytes", "WrongKeyId", {4: DEVICE.kid + b"\x00"})
    header("device's key id empty", "WrongKeyId", {4: b""})
    header("device's key id as text", "WrongType", {4: DEVICE.kid.hex()})
    header("another device's key id", "WrongKeyId", {4: OTHER_DEVICE.kid})
    header("salt in the recipient's protected header", "HeaderLabels", {-20: bytes(32)})
    header("party in the recipient's protected header", "HeaderLabels", {-21: b"u"})
    header("critical headers in the recipient's protected header", "HeaderLabels", {2: [1]})
    header("recipient's header empty", "Truncated", raw=b"")
    header("byte after the recipient's header", "TrailingBytes", raw=encode(labels) + b"\x00")
    header("recipient's header unsorted", "UnsortedKeys", raw=b"\xa2\x04" + encode(DEVICE.kid) + b"\x01\x38\x18")
    header(
        "recipient's header with a label twice",
        "DuplicateKey",
        raw=b"\xa3\x01\x38\x18\x01" + b"\x38\x18\x04" + encode(DEVICE.kid),
    )
    header(
        "recipient's algorithm in three bytes",
        "NonMinimalInteger",
        raw=b"\xa2\x01\x39\x00\x18\x04" + encode(DEVICE.kid),
    )
    ephemeral = cases.ephemeral("key id outside the recipient's protected header")
    point = cbor.decode(cose.ephemeral_header(ephemeral.point))
    outer(
        "key id outside the recipient's protected header",
        "HeaderLabels",
        recipient=encode({1: -25}),
        recipient_unprotected=encode({4: DEVICE.kid, **point}),
    )

    token = cose.encrypt(
        cose.sign(claim_rules.to_cbor(CLAIMS), ISSUER),
        OTHER_DEVICE.point,
        ephemeral,
        cases.initialization_vector("other device"),
        recipient=cose.recipient_protected(DEVICE.kid),
    )
    writer.token("encrypted to another device in this one's name", "Decryption", token)
    token = cose.encrypt(
        cose.sign(claim_rules.to_cbor(CLAIMS), ISSUER),
        OTHER_DEVICE.point,
        ephemeral,
        cases.initialization_vector("other device"),
    )
    writer.token("encrypted to another device", "WrongKeyId", token)

    protected = encode(labels)
    nobody = [None] * 3
    for comment, context in (
        ("algorithm of the recipient", [-25, nobody, nobody, [256, protected]]),
        ("algorithm A128GCM", [1, nobody, nobody, [256, protected]]),
        ("128 bits", [3, nobody, nobody, [128, protected]]),
        ("32 in place of 256", [3, nobody, nobody, [32, protected]]),
        ("empty parties", [3, [], [], [256, protected]]),
        ("parties of empty byte strings", [3, [b""] * 3, [b""] * 3, [256, protected]]),
        ("a named party", [3, [b"issuer", None, None], nobody, [256, protected]]),
        ("protected header left empty", [3, nobody, nobody, [256, b""]]),
        ("protected header not in a byte string", [3, nobody, nobody, [256, labels]]),
        ("public information added", [3, nobody, nobody, [256, protected, b"holdfast"]]),
        ("private information added", [3, nobody, nobody, [256, protected], b"secret"]),
    ):
        outer(f"key derivation: {comment}", "Decryption", context=encode(context))


def _ephemeral_key(writer):
    def key(comment, flag, changes=None, without=(), rest=None, label=-1):
        point = cases.ephemeral(comment).point
        fields = {1: 2, -1: 1, -2: point[1:33], -3: point[33:]}
        kept = {k: v for k, v in {**fields, **(changes or {})}.items() if k not in without}
        writer.outer(comment, flag, recipient_unprotected=encode({label: kept, **(rest or {})}))

    key("ephemeral key type OKP", "WrongCurve", {1: 1})
    key("ephemeral key type symmetric", "WrongCurve", {1: 4})
    key("ephemeral key type as text", "WrongType", {1: "EC"})
    key("ephemeral key on P-384", "WrongCurve", {-1: 2})
    key("ephemeral key on P-521", "WrongCurve", {-1: 3})
    key("ephemeral key on secp256k1", "WrongCurve", {-1: 8})
    key("ephemeral curve as text", "WrongType", {-1: "P-256"})
    for label, name in ((1, "key type"), (-1, "curve"), (-2, "x"), (-3, "y")):
        key(f"ephemeral key without {name}", "HeaderLabels", without=(label,))
    for name, label in (("x", -2), ("y", -3)):
        coordinate = pin(f"coordinate {name}", 64)
        for size in (0, 31, 33, 64):
            key(f"{name} of {size} bytes", "CoordinateSize", {label: coordinate[:size]})
        key(f"{name} with a zero byte before it", "CoordinateSize", {label: b"\x00" + coordinate[:32]})
        key(f"{name} as text", "WrongType", {label: "x" * 32})
        key(f"{name} null", "WrongType", {label: None})
        key(f"{name} is 0", "Point", {label: bytes(32)})
        key(f"{name} is the prime", "Point", {label: PRIME.to_bytes(32, "big")})
        key(f"{name} of ones", "Point", {label: b"\xff" * 32})
    key("compressed point: y as a sign", "WrongType", {-3: True})
    key("point of zeros", "Point", {-2: bytes(32), -3: bytes(32)})
    point = cases.ephemeral("off the curve").point
    key("point off the curve", "Point", {-2: point[1:33], -3: point[33:64] + bytes([point[64] ^ 1])})
    key("x and y exchanged", "Point", {-2: point[33:], -3: point[1:33]})
    key("ephemeral key with an algorithm", "HeaderLabels", {3: -25})
    key("ephemeral key with a key id", "HeaderLabels", {2: b"e"})
    key("ephemeral key with its private part", "HeaderLabels", {-4: cases.ephemeral("private").scalar})
    key("static key in place of the ephemeral one", "HeaderLabels", label=-2)
    key("salt", "HeaderLabels", rest={-20: bytes(32)})
    key("party U nonce", "HeaderLabels", rest={-22: bytes(16)})
    key("key id beside the ephemeral key", "HeaderLabels", rest={4: DEVICE.kid})
    for comment, flag, value in (
        ("ephemeral key null", "WrongType", encode({-1: None})),
        ("ephemeral key as a SEC1 point", "WrongType", encode({-1: point})),
        ("ephemeral key missing", "HeaderLabels", b"\xa0"),
        ("recipient's unprotected header null", "WrongType", encode(None)),
        (
            "ephemeral key of indefinite length",
            "IndefiniteLength",
            b"\xa1\x20\xbf" + b"\x01\x02\x20\x01\x21" + encode(point[1:33]) + b"\x22" + encode(point[33:]) + b"\xff",
        ),
        (
            "ephemeral key unsorted",
            "UnsortedKeys",
            b"\xa1\x20\xa4\x20\x01\x01\x02\x21" + encode(point[1:33]) + b"\x22" + encode(point[33:]),
        ),
        (
            "ephemeral key with x twice",
            "DuplicateKey",
            b"\xa1\x20\xa5\x01\x02\x20\x01\x21"
            + encode(point[1:33])
            + b"\x21"
            + encode(point[1:33])
            + b"\x22"
            + encode(point[33:]),
        ),
        (
            "key type in two bytes",
            "NonMinimalInteger",
            b"\xa1\x20\xa4\x01\x18\x02\x20\x01\x21" + encode(point[1:33]) + b"\x22" + encode(point[33:]),
        ),
    ):
        writer.outer(comment, flag, recipient_unprotected=value)
    other = cases.ephemeral("not used")
    writer.outer(
        "another ephemeral key than the one used",
        "Decryption",
        recipient_unprotected=cose.ephemeral_header(other.point),
    )
    writer.outer(
        "the device's own key as the ephemeral one",
        "Decryption",
        recipient_unprotected=cose.ephemeral_header(DEVICE.point),
    )


def _tampered(writer):
    plaintext = cose.sign(claim_rules.to_cbor(CLAIMS), ISSUER)
    protected, unprotected, sealed, recipients = cbor.decode(writer.seal("tampered", plaintext), tags=(96,)).value

    def changed(comment, sealed=sealed, unprotected=unprotected):
        writer.token(comment, "Decryption", encode(cbor.Tag(96, [protected, unprotected, sealed, recipients])))

    def flipped(data, index):
        return data[:index] + bytes([data[index] ^ 1]) + data[index + 1 :]

    changed("first bit of the ciphertext flipped", flipped(sealed, 0))
    changed("a bit in the middle of the ciphertext flipped", flipped(sealed, len(sealed) // 2))
    changed("first byte of the authentication tag changed", flipped(sealed, len(sealed) - 16))
    changed("last byte of the authentication tag changed", flipped(sealed, len(sealed) - 1))
    changed("a bit of the IV flipped", unprotected={5: flipped(unprotected[5], 11)})
    changed("authentication tag removed", sealed[:-16])
    changed("authentication tag of 12 bytes", sealed[:-4])
    changed("authentication tag of zeros", sealed[:-16] + bytes(16))
    changed("authentication tag in front", sealed[-16:] + sealed[:-16])
    changed("ciphertext of 15 bytes", sealed[:15])
    changed("ciphertext empty", b"")
    changed("a byte appended to the ciphertext", sealed + b"\x00")
    context = encode(["Encrypt0", protected, b""])
    for comment, data in (
        ("context of COSE_Encrypt0", context),
        ("external data", encode(["Encrypt", protected, b"x"])),
        ("no associated data", b""),
        ("protected header alone", protected),
    ):
        ephemeral, iv = cases.ephemeral(comment), cases.initialization_vector(comment)
        recipient = cose.recipient_protected(DEVICE.kid)
        key = cose.content_key(ephemeral.exchange(DEVICE.point), recipient)
        sealed_otherwise = cose.gcm_seal(key, iv, plaintext, data)
        header = Encoded(cose.ephemeral_header(ephemeral.point))
        writer.token(
            f"associated data: {comment}",
            "Decryption",
            encode(cbor.Tag(96, [protected, {5: iv}, sealed_otherwise, [[recipient, header, b""]]])),
        )


def _unsigned(file):
    group = file.group("MeasurementTokenCOSE", cases.checker("COSE", True), **cases.group_inputs(True))
    writer = Writer(group)

    def bare(comment, claims, flags=("AcceptUnsigned",)):
        group.valid(
            comment, flags, token=writer.seal("unsigned " + comment, claim_rules.to_cbor(claims)), claims=claims
        )

    bare("bare claims", CLAIMS)
    bare(
        "bare claims, every optional one",
        {**CLAIMS, "maximumUses": 1, "commands": ["unlock"], "version": [1, 0, 0], "user": "alice"},
    )
    writer.valid("a signed token is accepted too", ("Normal",), CLAIMS)
    good = claim_rules.to_cbor(CLAIMS)
    base = claim_rules.to_map(CLAIMS)
    one = cose.sign(good, ISSUER, tag=None)
    writer.signed("signed by a stranger in his own name", "WrongKeyId", STRANGER)
    writer.signed(
        "signed by a stranger in the issuer's name", "Signature", STRANGER, protected=cose.sign_protected(ISSUER.kid)
    )
    writer.signed("signature of zeros", "SignatureForm", signature=bytes(64))
    writer.outer("signed layer without tag", "UnknownTag", one)
    writer.outer("bare claims in the tag of a CWT", "UnknownTag", encode(cbor.Tag(61, Encoded(good))))
    writer.outer("bare claims tagged COSE_Sign1", "WrongType", encode(cbor.Tag(18, Encoded(good))))
    writer.outer("bare claims in a byte string", "UnknownTag", encode(good))
    writer.outer("bare claims with a byte after them", "TrailingBytes", good + b"\x00")
    writer.outer(
        "bare claims for another device", "WrongAudience", encode(_claims_map({"audience": cases.OTHER_DEVICE_ID}))
    )
    writer.outer(
        "bare claims without generation",
        "MissingClaim",
        encode({k: v for k, v in base.items() if k != LABELS["generation"]}),
    )
    writer.outer("bare claims with an unknown one", "UnknownClaim", encode({**base, 5: 0}))
    writer.outer(
        "bare claims issued after expiry",
        "IssuedAtNotBeforeExpiry",
        encode(_claims_map({"issuedAt": CLAIMS["expires"]})),
    )
    writer.outer(
        "bare claims unsorted",
        "UnsortedKeys",
        head(cbor.MAP, 10) + b"".join(encode(k) + encode(v) for k, v in reversed(base.items())),
    )
    writer.outer(
        "bare claims of indefinite length",
        "IndefiniteLength",
        b"\xbf" + b"".join(encode(k) + encode(v) for k, v in base.items()) + b"\xff",
    )
    ephemeral = cases.ephemeral("unsigned tampered")
    token = cose.encrypt(good, DEVICE.point, ephemeral, cases.initialization_vector("unsigned tampered"))
    at = token.index(encode(DEVICE.kid)) - 30
    writer.token("bare claims, ciphertext changed", "Decryption", token[:at] + bytes([token[at] ^ 1]) + token[at + 1 :])
