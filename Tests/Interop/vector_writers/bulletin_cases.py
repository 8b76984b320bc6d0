"""Cases of bulletins: their claims and envelopes, each different from a good one in one place."""

from holdfast_peer import bulletins, cbor, cose
from holdfast_peer.cbor import Encoded, Tag, encode, head
from holdfast_peer.keys import ORDER, PrivateKey, mac_key_id

from . import token_cases as cases
from .token_cases import DEVICE, DEVICE_ID, ISSUER, LARGEST, MAC_KEY, OTHER_DEVICE, OTHER_DEVICE_ID, STRANGER
from .vector_file import pin

GROUPS = ["north", "doors"]
GROUP_ID = bulletins.group_id(GROUPS[0])
TIME = 1790000000
CLAIMS = {"number": 1000 * TIME + 7, "predecessor": 0, "issuedAt": TIME, "audience": DEVICE_ID}
TOKENS = sorted(pin(f"bulletin/token {i}", 16) for i in range(200))
KEYS = sorted(PrivateKey(pin(f"bulletin/key {i}", 32)).point[1:] for i in range(5))
KIDS = sorted(pin(f"bulletin/kid {i}", 8) for i in range(17))


class Writer:
    """Makes bulletins that differ from a good one in one place."""

    def __init__(self, group):
        self.group = group

    def sealed(self, label, plaintext, **changes):
        ephemeral, vector = cases.ephemeral(f"bulletin/{label}"), cases.initialization_vector(f"bulletin/{label}")
        return cose.encrypt(plaintext, DEVICE.point, ephemeral, vector, **changes)

    def valid(self, comment, flags=("Normal",), is_sealed=False, **changes):
        claims = {**CLAIMS, **changes}
        signed = bulletins.sign(claims, ISSUER)
        bulletin = self.sealed(comment, signed) if is_sealed else signed
        self.group.valid(comment, flags, bulletin=bulletin, claims=claims)

    def bulletin(self, comment, flag, bulletin):
        self.group.invalid(comment, flag, bulletin=bulletin)

    def payload(self, comment, flag, payload, is_sealed=False):
        """Claims that are properly signed."""
        signed = bulletins.sign(payload, ISSUER)
        self.bulletin(comment, flag, self.sealed(comment, signed) if is_sealed else signed)

    def claims(self, comment, flag, is_sealed=False, **changes):
        """Claims, with values as given. None leaves a claim out."""
        values = {name: value for name, value in {**CLAIMS, **changes}.items() if value is not None}
        self.payload(comment, flag, bulletins.to_cbor(values), is_sealed)


def write_bulletins(writer):
    _valid(writer)
    _numbers(writer)
    _entries(writer)
    _users(writer)
    _encoding(writer)
    _signed(writer)
    _sealed(writer)


def _key(index, start=TIME, end=TIME + 1000):
    return [KEYS[index][:32], KEYS[index][32:], start, end]


EVERYTHING = {
    "revoked": [[TOKENS[0], TIME + 1], [TOKENS[1], LARGEST]],
    "generation": 3,
    "versions": [["app", 1, 2, 3], ["app.more", 0, 0, 1]],
    "introduced": [_key(0)],
    "ended": KIDS[:2],
}


def _valid(writer):
    writer.valid("required claims only")
    for name, value in EVERYTHING.items():
        writer.valid(name, ("OptionalClaim",), **{name: value})
    writer.valid("every claim but users", ("OptionalClaim",), **EVERYTHING)
    writer.valid("for a group", audience=GROUP_ID, revoked=EVERYTHING["revoked"])
    writer.valid("for the other group", audience=bulletins.group_id(GROUPS[1]))
    writer.valid("sealed", is_sealed=True, **EVERYTHING)
    writer.valid("sealed, for a group", is_sealed=True, audience=GROUP_ID)
    users = [["alice", TIME + 60], ["bob", None]]
    writer.valid("users", ("OptionalClaim",), True, users=users)
    writer.valid("every claim", ("OptionalClaim",), True, **EVERYTHING, users=users)
    for comment, changes in (
        ("number 1", {"number": 1, "issuedAt": 0}),
        ("number of a whole second", {"number": 1000 * TIME}),
        ("largest number", {"number": LARGEST}),
        ("largest number and predecessor", {"number": LARGEST, "predecessor": LARGEST - 1}),
        ("largest time", {"number": LARGEST, "issuedAt": LARGEST // 1000}),
        ("predecessor just before", {"predecessor": CLAIMS["number"] - 1}),
        ("110 tokens", {"revoked": [[token, TIME] for token in TOKENS[:110]]}),
        ("120 tokens", {"revoked": [[token, 23] for token in TOKENS[:120]]}),
        ("a token until 0", {"revoked": [[TOKENS[0], 0]]}),
        ("generation 0", {"generation": 0}),
        ("largest generation", {"generation": LARGEST}),
        ("16 subjects", {"versions": [[f"app {i:02}", i, 0, 0] for i in range(16)]}),
        ("a subject of 64 bytes", {"versions": [["\u00fc" * 32, LARGEST, LARGEST, LARGEST]]}),
        ("a subject that another one continues", {"versions": [["a", 1, 0, 0], ["ab", 1, 0, 0], ["b", 1, 0, 0]]}),
        ("a short subject after a longer one", {"versions": [["aa", 1, 0, 0], ["b", 1, 0, 0]]}),
        ("4 keys", {"introduced": [_key(i) for i in range(4)]}),
        ("a key for a second", {"introduced": [_key(0, 5, 6)]}),
        ("keys that differ in y only", {"introduced": [[bytes(32), bytes([i]) * 32, 0, 1] for i in range(2)]}),
        ("a point that is not on the curve", {"introduced": [[bytes(32), bytes(32), 0, LARGEST]]}),
        ("16 ended keys", {"ended": KIDS[:16]}),
    ):
        writer.valid(comment, ("Boundary",), **changes)
    for comment, users in (
        ("32 users", [[f"user {i:02}", None] for i in range(32)]),
        ("a user of 32 bytes", [["\U0001f512" * 8, LARGEST]]),
        ("a user locked until 0", [["alice", 0]]),
    ):
        writer.valid(comment, ("Boundary",), True, users=users)


def _numbers(writer):
    claims = writer.claims
    for name in ("number", "predecessor", "issuedAt", "audience"):
        claims(f"without {name}", "MissingClaim", **{name: None})
    for name in ("number", "predecessor", "issuedAt", "generation"):
        for comment, flag, value in (
            ("negative", "WrongType", -1),
            ("as text", "WrongType", "1"),
            ("as bytes", "WrongType", b"\x01"),
            ("true", "WrongType", True),
            ("null", "WrongType", Encoded(b"\xf6")),
            ("2^53", "IntegerTooLarge", 2**53),
            ("as a float", "Float", Encoded(bytes.fromhex("fb41daac5264000000"))),
        ):
            claims(f"{name} {comment}", flag, **{name: value})
    claims("number 0", "Predecessor", number=0, issuedAt=0)
    claims("predecessor that is the number", "Predecessor", predecessor=CLAIMS["number"])
    claims("predecessor above the number", "Predecessor", predecessor=CLAIMS["number"] + 1)
    claims("number just below the time", "NumberBelowTime", number=1000 * TIME - 1)
    claims("number in seconds", "NumberBelowTime", number=TIME)
    claims("time above any number", "NumberBelowTime", number=LARGEST, issuedAt=LARGEST // 1000 + 1)
    claims("largest time and number", "NumberBelowTime", number=LARGEST, issuedAt=LARGEST)
    for size in (0, 8, 15, 17):
        claims(f"audience of {size} bytes", "WrongSize", audience=(DEVICE_ID * 2)[:size])
    claims("audience as text", "WrongType", audience=DEVICE_ID.hex()[:16])
    claims("another device", "WrongAudience", audience=OTHER_DEVICE_ID)
    claims("another group", "WrongAudience", audience=bulletins.group_id("south"))
    claims("audience with a bit changed", "WrongAudience", audience=DEVICE_ID[:15] + bytes([DEVICE_ID[15] ^ 1]))


# By claim: a good entry, a later one, and faults of an entry with their flags.
ENTRIES = {
    "revoked": (
        [TOKENS[0], TIME],
        [TOKENS[1], TIME],
        (
            ("with an id of 15 bytes", "WrongSize", [TOKENS[0][:15], TIME]),
            ("with an id as text", "WrongType", [TOKENS[0].hex()[:16], TIME]),
            ("with a negative time", "WrongType", [TOKENS[0], -1]),
            ("with null as the time", "WrongType", [TOKENS[0], None]),
            ("with the time 2^53", "IntegerTooLarge", [TOKENS[0], 2**53]),
            ("without a time", "WrongCount", [TOKENS[0]]),
            ("with three elements", "WrongCount", [TOKENS[0], TIME, 0]),
        ),
    ),
    "versions": (
        ["app", 1, 2, 3],
        ["app.more", 1, 2, 3],
        (
            ("with an empty subject", "TextLength", ["", 1, 2, 3]),
            ("with a subject of 65 bytes", "TextLength", ["a" * 65, 1, 2, 3]),
            ("with a subject of 33 characters in 66 bytes", "TextLength", ["\u00fc" * 33, 1, 2, 3]),
            ("with a subject as bytes", "WrongType", [b"app", 1, 2, 3]),
            ("with a subject that is not UTF-8", "NotUtf8", [Encoded(b"\x62\xc3\x28"), 1, 2, 3]),
            ("with two numbers", "WrongCount", ["app", 1, 2]),
            ("with four numbers", "WrongCount", ["app", 1, 2, 3, 4]),
            ("with a negative number", "WrongType", ["app", 1, -2, 3]),
            ("with a version as text", "WrongType", ["app", 1, 2, "3"]),
        ),
    ),
    "introduced": (
        _key(0),
        _key(1),
        (
            ("with x of 31 bytes", "WrongSize", [KEYS[0][:31], *_key(0)[1:]]),
            ("with y of 33 bytes", "WrongSize", [KEYS[0][:32], KEYS[0][31:], TIME, TIME + 1]),
            ("as a point of 65 bytes", "WrongCount", [b"\x04" + KEYS[0], TIME, TIME + 1]),
            ("without an end", "WrongCount", _key(0)[:3]),
            ("with null as its end", "WrongType", [*_key(0)[:3], None]),
            ("that ends when it begins", "KeyTimes", _key(0, TIME, TIME)),
            ("that ends before it begins", "KeyTimes", _key(0, TIME, TIME - 1)),
        ),
    ),
    "ended": (
        KIDS[0],
        KIDS[1],
        (
            ("with 7 bytes", "WrongSize", KIDS[0][:7]),
            ("with 9 bytes", "WrongSize", KIDS[0] + b"\x00"),
            ("as text", "WrongType", "12345678"),
            ("in an array", "WrongType", [KIDS[0]]),
        ),
    ),
    "users": (
        ["alice", TIME],
        ["bob", None],
        (
            ("with an empty name", "TextLength", ["", None]),
            ("with a name of 33 bytes", "TextLength", ["u" * 33, None]),
            ("with a name as bytes", "WrongType", [b"alice", None]),
            ("with a negative time", "WrongType", ["alice", -1]),
            ("with a time as text", "WrongType", ["alice", "now"]),
            ("with false as the time", "WrongType", ["alice", False]),
            ("without a time", "WrongCount", ["alice"]),
            ("with three elements", "WrongCount", ["alice", TIME, TIME]),
        ),
    ),
}


def _entries(writer):
    for name, (first, second, faults) in ENTRIES.items():
        is_sealed = name == "users"

        def claims(comment, flag, value, name=name, is_sealed=is_sealed):
            writer.claims(f"{name} {comment}", flag, is_sealed, **{name: value})

        claims("empty", "WrongCount", [])
        claims("as a map", "WrongType", {})
        claims("as bytes", "WrongType", b"")
        claims("null", "WrongType", Encoded(b"\xf6"))
        claims("in descending order", "UnsortedEntries", [second, first])
        claims("with an entry twice", "DuplicateEntry", [first, first])
        claims("with a number as an entry", "WrongType", [7])
        for comment, flag, entry in faults:
            claims(f"{comment}", flag, [entry])
        comment, flag, entry = faults[0]
        claims(f"{comment}, behind a good one", flag, [first, entry])
    claims = writer.claims
    claims("121 tokens", "WrongCount", revoked=[[token, 23] for token in TOKENS[:121]])
    claims("17 subjects", "WrongCount", versions=[[f"{i:02}", 0, 0, 1] for i in range(17)])
    claims("5 keys", "WrongCount", introduced=[_key(i) for i in range(5)])
    claims("17 ended keys", "WrongCount", ended=KIDS)
    claims("33 users", "WrongCount", True, users=[[f"{i:02}", None] for i in range(33)])
    claims("a token twice, with other times", "DuplicateEntry", revoked=[[TOKENS[0], 1], [TOKENS[0], 2]])
    claims("a subject twice, with other versions", "DuplicateEntry", versions=[["a", 0, 0, 1], ["a", 0, 0, 2]])
    claims("a key twice, with other times", "DuplicateEntry", introduced=[_key(0, 1, 2), _key(0, 2, 3)])
    claims("a user twice, locked and removed", "DuplicateEntry", True, users=[["a", 1], ["a", None]])
    claims("subjects by length", "UnsortedEntries", versions=[["b", 0, 0, 1], ["aa", 0, 0, 1]])
    claims("a subject before its beginning", "UnsortedEntries", versions=[["ab", 0, 0, 1], ["a", 0, 0, 1]])
    claims("users by length", "UnsortedEntries", True, users=[["b", None], ["aa", None]])


def _users(writer):
    users = [["alice", TIME]]
    writer.claims("users, only signed", "UsersUnsealed", users=users)
    writer.claims("users of a group, only signed", "UsersUnsealed", audience=GROUP_ID, users=users)
    writer.claims("users of a group", "UsersOfGroup", True, audience=GROUP_ID, users=users)
    writer.claims("users of another device", "WrongAudience", True, audience=OTHER_DEVICE_ID, users=users)


def _encoding(writer):
    fields = bulletins.to_map(CLAIMS)
    good, pairs = encode(fields), [encode(k) + encode(v) for k, v in fields.items()]
    payload = writer.payload
    for label in (0, 11, 255, -1, LARGEST):
        payload(f"unknown claim {label}", "UnknownClaim", encode({**fields, label: 0}))
    payload("a text as a label", "UnknownClaim", encode({**fields, "number": 1}))
    payload("bytes as a label", "UnknownClaim", encode({**fields, b"\x05": 1}))
    payload("null as a label", "WrongType", b"\xa5" + b"".join(pairs) + b"\xf6\x00")
    payload("empty payload", "Truncated", b"")
    payload("payload cut short", "Truncated", good[:-1])
    payload("a byte behind the claims", "TrailingBytes", good + b"\x00")
    payload("the claims twice", "TrailingBytes", good * 2)
    payload("claims of indefinite length", "IndefiniteLength", b"\xbf" + b"".join(pairs) + b"\xff")
    payload("number of claims in two bytes", "NonMinimalInteger", head(cbor.MAP, 4, 1) + b"".join(pairs))
    payload("a label in two bytes", "NonMinimalInteger", b"\xa4\x18\x01" + b"".join(pairs)[1:])
    payload("claims in another order", "UnsortedKeys", b"\xa4" + b"".join([pairs[1], pairs[0], *pairs[2:]]))
    payload("a claim twice", "DuplicateKey", b"\xa5" + b"".join([*pairs, pairs[3]]))
    payload("more claims than their number", "TrailingBytes", b"\xa4" + b"".join(pairs) + encode(6) + encode(1))
    payload("fewer claims than their number", "Truncated", b"\xa5" + b"".join(pairs))
    payload("a list of claims", "WrongType", encode(list(fields.values())))
    payload("claims in a byte string", "WrongType", encode(good))
    payload("tagged claims", "UnknownTag", encode(Tag(24, fields)))
    revoked = encode({**fields, 5: [[TOKENS[0], TIME]]})
    payload(
        "tokens of indefinite length", "IndefiniteLength", revoked.replace(b"\x05\x81\x82", b"\x05\x9f\x82") + b"\xff"
    )
    payload("number of tokens in two bytes", "NonMinimalInteger", revoked.replace(b"\x05\x81\x82", b"\x05\x98\x01\x82"))
    payload("a tagged entry", "UnknownTag", encode({**fields, 5: [Tag(24, [TOKENS[0], TIME])]}))


def _signed(writer):
    bulletin, payload, kid = writer.bulletin, bulletins.to_cbor(CLAIMS), ISSUER.kid
    good = bulletins.sign(payload, ISSUER)

    def changed(comment, flag, **changes):
        bulletin(comment, flag, bulletins.sign(payload, ISSUER, **changes))

    def header(comment, flag, **fields):
        labels = {1: -7, 4: kid, 16: "holdfast-bulletin"} | {int(k[1:]): v for k, v in fields.items()}
        labels = {k: v for k, v in labels.items() if v is not ...}
        changed(comment, flag, protected=encode(labels))

    bulletin("empty", "Truncated", b"")
    bulletin("cut in the middle", "Truncated", good[: len(good) // 2])
    bulletin("without its last byte", "Truncated", good[:-1])
    bulletin("a byte behind it", "TrailingBytes", good + b"\x00")
    bulletin("3073 bytes", "TooLarge", good + bytes(3073 - len(good)))
    bulletin("the claims only", "UnknownTag", payload)
    bulletin("a byte string", "UnknownTag", encode(good))
    changed("without a tag", "UnknownTag", tag=None)
    changed("with the tag of COSE_Mac0", "UnknownTag", tag=cose.MAC0)
    changed("with an unprotected header", "HeaderLabels", unprotected=encode({4: kid}))
    changed("with an unprotected list", "HeaderLabels", unprotected=encode([]))
    header("the type of a token", "WrongTyp", l16="holdfast-mt")
    header("the type in capitals", "WrongTyp", l16="Holdfast-Bulletin")
    header("the type as a number", "WrongTyp", l16=1)
    header("without a type", "HeaderLabels", l16=...)
    header("without a key id", "HeaderLabels", l4=...)
    header("without an algorithm", "HeaderLabels", l1=...)
    header("with a content type", "HeaderLabels", l3=0)
    header("with critical labels", "HeaderLabels", l2=[4])
    for name, value in (("EdDSA", -8), ("ES384", -35), ("HMAC", 5), ("none", 0)):
        header(f"the algorithm {name}", "WrongAlgorithm", l1=value)
    for size in (0, 7, 9):
        header(f"a key id of {size} bytes", "WrongSize", l4=(kid * 2)[:size])
    header("a key id as text", "WrongType", l4="12345678")
    header("the id of a key that is not trusted", "WrongKeyId", l4=STRANGER.kid)
    header("the id of the device's key", "WrongKeyId", l4=DEVICE.kid)
    header("the id of a MAC key", "WrongKeyId", l4=mac_key_id(MAC_KEY))
    changed("the header's labels in another order", "UnsortedKeys", protected=_unsorted(kid))
    changed("an empty header", "Truncated", protected=b"")
    changed("a byte behind the header", "TrailingBytes", protected=bulletins.protected(kid) + b"\x00")
    bulletin("signed by another key", "WrongKeyId", bulletins.sign(payload, STRANGER))
    _signatures(writer, good, payload, kid)


def _unsorted(kid):
    pairs = [encode(k) + encode(v) for k, v in ((4, kid), (1, -7), (16, "holdfast-bulletin"))]
    return head(cbor.MAP, 3) + b"".join(pairs)


def _signatures(writer, good, payload, kid):
    bulletin, header = writer.bulletin, bulletins.protected(kid)

    def signature(comment, flag, value):
        bulletin(comment, flag, bulletins.sign(payload, ISSUER, signature=value))

    right, zero = good[-64:], bytes(32)
    bulletin(
        "signed by another key, in this one's name", "Signature", bulletins.sign(payload, STRANGER, protected=header)
    )
    signature("of other claims", "Signature", ISSUER.sign(cose.signature_input(header, payload + b"\x00")))
    signature("of a token's header", "Signature", ISSUER.sign(cose.signature_input(cose.sign_protected(kid), payload)))
    signature("of the payload only", "Signature", ISSUER.sign(payload))
    signature("as a MAC", "Signature", ISSUER.sign(cose.mac_input(header, payload)))
    signature("with a bit of r changed", "Signature", bytes([right[0] ^ 1]) + right[1:])
    signature("with a bit of s changed", "Signature", right[:-1] + bytes([right[-1] ^ 1]))
    signature("with r and s exchanged", "Signature", right[32:] + right[:32])
    signature("r 0", "SignatureForm", zero + right[32:])
    signature("s 0", "SignatureForm", right[:32] + zero)
    signature("all zeros", "SignatureForm", bytes(64))
    signature("r the order", "SignatureForm", ORDER.to_bytes(32, "big") + right[32:])
    signature("s the order", "SignatureForm", right[:32] + ORDER.to_bytes(32, "big"))
    for size in (0, 63, 65):
        signature(f"{size} bytes", "WrongSize", (right + b"\x00")[:size])
    signature("as text", "WrongType", "0" * 64)
    claims = bulletins.to_cbor({**CLAIMS, "generation": 9})
    body = [header, Encoded(b"\xa0"), claims, right]
    bulletin("claims exchanged", "Signature", encode(Tag(cose.SIGN1, body)))
    bulletin("claims as a map", "WrongType", encode(Tag(cose.SIGN1, [header, Encoded(b"\xa0"), CLAIMS_MAP, right])))
    bulletin("claims detached", "WrongType", encode(Tag(cose.SIGN1, [header, Encoded(b"\xa0"), None, right])))
    for count in (3, 5):
        bulletin(f"{count} elements", "WrongCount", encode(Tag(cose.SIGN1, [*body, b""][:count])))


CLAIMS_MAP = bulletins.to_map(CLAIMS)


def _sealed(writer):
    signed = bulletins.sign(CLAIMS, ISSUER)

    def sealed(comment, flag, plaintext=signed, **changes):
        writer.bulletin(f"sealed, {comment}", flag, writer.sealed(comment, plaintext, **changes))

    good = writer.sealed("good", signed)
    writer.bulletin("sealed, cut short", "Truncated", good[:-1])
    writer.bulletin("sealed, a byte behind it", "TrailingBytes", good + b"\x00")
    other = cose.encrypt(
        signed, OTHER_DEVICE.point, cases.ephemeral("bulletin"), cases.initialization_vector("bulletin")
    )
    writer.bulletin("sealed, to another device", "WrongKeyId", other)
    named = cose.encrypt(
        signed,
        OTHER_DEVICE.point,
        cases.ephemeral("bulletin"),
        cases.initialization_vector("bulletin"),
        recipient=cose.recipient_protected(DEVICE.kid),
    )
    writer.bulletin("sealed, to another device in this one's name", "Decryption", named)
    changed = bytearray(good)
    changed[len(cbor.head(cbor.TAG, cose.ENCRYPT)) + 40] ^= 1
    writer.bulletin("sealed, a bit of the ciphertext changed", "Decryption", bytes(changed))
    sealed("with A128GCM", "WrongAlgorithm", protected=encode({1: 1}))
    sealed("with a ciphertext for the recipient", "RecipientCiphertext", recipient_ciphertext=b"\x00")
    sealed("sealed twice", "UnknownTag", writer.sealed("inner", signed))
    sealed("the claims only", "UnknownTag", bulletins.to_cbor(CLAIMS))
    sealed("nothing", "Truncated", b"")
    sealed("a byte behind the signed one", "TrailingBytes", signed + b"\x00")
    sealed("a forged one", "Signature", signed[:-1] + bytes([signed[-1] ^ 1]))
    sealed("one of a key that is not trusted", "WrongKeyId", bulletins.sign(CLAIMS, STRANGER))
    token = cose.sign(cose.claim_rules.to_cbor(cases.CLAIMS), ISSUER)
    sealed("a token", "WrongTyp", token)
