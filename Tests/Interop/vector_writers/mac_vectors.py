"""The groups of type MeasurementTokenCOSE whose device shares a key with an issuer: COSE_Mac0."""

from holdfast_peer import cbor, cose
from holdfast_peer import claims as claim_rules
from holdfast_peer.cbor import encode
from holdfast_peer.keys import mac_key_id
from holdfast_peer.primitives import hmac_sha256

from . import token_cases as cases
from .cose_vectors import Writer
from .token_cases import CLAIMS, DEVICE, ISSUER, MAC_KEY, OTHER_MAC_KEY
from .vector_file import pin

PAYLOAD = claim_rules.to_cbor(CLAIMS)
KID = mac_key_id(MAC_KEY)
PROTECTED = cose.mac_protected(KID)
GOOD = hmac_sha256(MAC_KEY, cose.mac_input(PROTECTED, PAYLOAD))


def add(file):
    writer = _writer(file, True)
    for comment, flags, changes in cases.VALID:
        _valid(writer, comment, flags, {**CLAIMS, **changes})
    writer.valid("a signature beside the MAC key", ("Normal",), CLAIMS)
    for comment, flag, changes in cases.INVALID:
        if flag in ("WrongAudience", "IssuedAtNotBeforeExpiry", "TextTooLong"):
            writer.outer(comment, flag, cose.authenticate(claim_rules.to_cbor({**CLAIMS, **changes}), MAC_KEY))
    _code(writer)
    _header(writer)
    _layer(writer)
    _switched_off(file)


def _writer(file, accept_mac):
    check = cases.checker("COSE", False, mac_keys=[MAC_KEY], accept_mac=accept_mac)
    return Writer(
        file.group("MeasurementTokenCOSE", check, **cases.group_inputs(False), **cases.mac_inputs(accept_mac))
    )


def _valid(writer, comment, flags, claims):
    token = writer.seal("mac " + comment, cose.authenticate(claim_rules.to_cbor(claims), MAC_KEY))
    writer.group.valid(comment, flags, token=token, claims=claims)


def _code(writer):
    def code(comment, flag, value):
        writer.outer(comment, flag, cose.authenticate(PAYLOAD, MAC_KEY, code=value))

    for index in (0, 7, 8, 31):
        code(
            f"tag: lowest bit of byte {index} flipped",
            "Mac",
            GOOD[:index] + bytes([GOOD[index] ^ 1]) + GOOD[index + 1 :],
        )
    code("tag of zeros", "Mac", bytes(32))
    for size in (0, 1, 8, 16, 31):
        code(f"tag cut to {size} bytes", "MacSize", GOOD[:size])
    code("tag with a byte behind it", "MacSize", GOOD + b"\x00")
    code("tag null", "WrongType", cbor.Encoded(b"\xf6"))
    code("tag as text", "WrongType", "x" * 32)
    for comment, structure in (
        ("with the context of COSE_Mac", ["MAC", PROTECTED, b"", PAYLOAD]),
        ("with the context of COSE_Sign1", ["Signature1", PROTECTED, b"", PAYLOAD]),
        ("with external data", ["MAC0", PROTECTED, b"x", PAYLOAD]),
        ("without the external data's place", ["MAC0", PROTECTED, PAYLOAD]),
        ("over other claims", ["MAC0", PROTECTED, b"", claim_rules.to_cbor({**CLAIMS, "generation": 2})]),
        ("over another header", ["MAC0", b"", b"", PAYLOAD]),
    ):
        code(f"tag {comment}", "Mac", hmac_sha256(MAC_KEY, encode(structure)))
    code("tag over the payload alone", "Mac", hmac_sha256(MAC_KEY, PAYLOAD))
    code(
        "tag under another device's key, in this one's name",
        "Mac",
        hmac_sha256(OTHER_MAC_KEY, cose.mac_input(PROTECTED, PAYLOAD)),
    )
    code("tag under an empty key", "Mac", hmac_sha256(b"", cose.mac_input(PROTECTED, PAYLOAD)))
    writer.outer("another device's key, in its own name", "WrongKeyId", cose.authenticate(PAYLOAD, OTHER_MAC_KEY))


def _header(writer):
    labels = {1: 5, 4: KID, 16: "holdfast-mt"}
    parts = [encode(k) + encode(v) for k, v in labels.items()]

    def header(comment, flag, changes=None, without=(), raw=None, key=MAC_KEY):
        kept = {k: v for k, v in {**labels, **(changes or {})}.items() if k not in without}
        writer.outer(comment, flag, cose.authenticate(PAYLOAD, key, protected=encode(kept) if raw is None else raw))

    for name, number in (
        ("ES256", -7),
        ("HMAC 256/64", 4),
        ("HMAC 384/384", 6),
        ("HMAC 512/512", 7),
        ("AES-MAC 256/128", 26),
        ("0", 0),
    ):
        header(f"algorithm {name}", "WrongAlgorithm", {1: number})
    header("algorithm as text", "WrongType", {1: "HS256"})
    header("the signing key's id", "WrongKeyKind", {4: ISSUER.kid})
    header("the signing key's id, keyed by its point", "WrongKeyKind", {4: ISSUER.kid}, key=ISSUER.point)
    header("the device's key id", "WrongKeyId", {4: DEVICE.kid})
    header("key id with a bit flipped", "WrongKeyId", {4: bytes([KID[0] ^ 1]) + KID[1:]})
    header("key id of 7 bytes", "WrongKeyId", {4: KID[:7]})
    header("key id of 9 bytes", "WrongKeyId", {4: KID + b"\x00"})
    header("key id as text", "WrongType", {4: KID.hex()})
    for label, name in ((1, "algorithm"), (4, "key id"), (16, "typ")):
        header(f"{name} missing", "HeaderLabels", without=(label,))
    header("typ 'holdfast-at'", "WrongTyp", {16: "holdfast-at"})
    header("critical headers", "HeaderLabels", {2: [1]})
    header("unknown label", "HeaderLabels", {99: 1})
    header("header empty", "Truncated", raw=b"")
    header("header unsorted", "UnsortedKeys", raw=b"\xa3" + parts[1] + parts[0] + parts[2])
    header("algorithm twice", "DuplicateKey", raw=b"\xa4" + parts[0] + parts[0] + parts[1] + parts[2])
    header("algorithm in two bytes", "NonMinimalInteger", raw=b"\xa3\x01\x18\x05" + parts[1] + parts[2])
    header("byte after the header", "TrailingBytes", raw=PROTECTED + b"\x00")

    def outside(comment, flag, unprotected, protected=None):
        writer.outer(
            comment, flag, cose.authenticate(PAYLOAD, MAC_KEY, protected=protected, unprotected=encode(unprotected))
        )

    outside("key id in both headers", "HeaderLabels", {4: KID})
    outside("key id outside the protected header", "HeaderLabels", {4: KID}, encode({1: 5, 16: "holdfast-mt"}))
    outside("algorithm outside the protected header", "HeaderLabels", {1: 5}, encode({4: KID, 16: "holdfast-mt"}))
    outside("unprotected header null", "WrongType", None)


def _layer(writer):
    def layer(comment, flag, items, tag=cose.MAC0):
        writer.outer(comment, flag, encode(cbor.Tag(tag, items)))

    body = [PROTECTED, {}, PAYLOAD, GOOD]
    layer("COSE_Sign1's tag around a MAC", "WrongAlgorithm", body, tag=18)
    signature = pin("signature of 64 bytes", 64)
    layer(
        "COSE_Sign1 that names the MAC key", "WrongKeyKind", [cose.sign_protected(KID), {}, PAYLOAD, signature], tag=18
    )
    writer.signed("a signature in the MAC key's name", "WrongKeyKind", protected=cose.sign_protected(KID))
    layer("COSE_Mac's tag", "UnknownTag", body, tag=97)
    layer("COSE_Mac with recipients", "WrongCount", [*body, []])
    layer("layer of three elements", "WrongCount", body[:3])
    layer("payload detached", "WrongType", [*body[:2], None, GOOD])
    good = encode(cbor.Tag(cose.MAC0, body))
    writer.outer("layer without tag", "UnknownTag", encode(body))
    writer.outer("layer in the tag of a CWT", "UnknownTag", encode(cbor.Tag(61, cbor.Encoded(good))))
    writer.outer("byte after the layer", "TrailingBytes", good + b"\x00")
    writer.outer("layer cut short", "Truncated", good[:-1])
    writer.outer("tag of the layer in two bytes", "NonMinimalInteger", b"\xd8\x11" + good[1:])
    writer.outer("bare claims", "Unsigned", PAYLOAD)
    sealed = writer.seal("mac tampered", good)
    writer.token("a bit of the encrypted tag flipped", "Decryption", _flipped(sealed, sealed.rindex(b"\x81\x83") - 20))


def _flipped(data, index):
    return data[:index] + bytes([data[index] ^ 1]) + data[index + 1 :]


def _switched_off(file):
    writer = _writer(file, False)
    writer.outer("a MAC under a key that is trusted", "MacNotAccepted", cose.authenticate(PAYLOAD, MAC_KEY))
    writer.valid("a signature", ("Normal",), CLAIMS)
