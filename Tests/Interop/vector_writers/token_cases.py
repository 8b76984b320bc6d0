"""Keys and claims that the token vectors share, and the cases that both encodings have in common."""

from holdfast_peer import cose, jose
from holdfast_peer.keys import PrivateKey, mac_key_id

from .notes import NOTES
from .vector_file import VectorFile, pin

MAC_KEY, OTHER_MAC_KEY = pin("mac key", 32), pin("other mac key", 32)
ISSUER, STRANGER = PrivateKey(pin("issuer", 32)), PrivateKey(pin("stranger", 32))
DEVICE, OTHER_DEVICE = PrivateKey(pin("device", 32)), PrivateKey(pin("other device", 32))
# An id whose base64url form has a '-' and a '_', so that the standard alphabet shows.
DEVICE_ID = bytes.fromhex("fbefbeff") + pin("device id", 12)
OTHER_DEVICE_ID = pin("other device id", 16)
LARGEST = 2**53 - 1

CLAIMS = {
    "issuer": "issuer.example",
    "subject": "app",
    "audience": DEVICE_ID,
    "expires": 1790003600,
    "issuedAt": 1790000000,
    "tokenId": pin("token id", 16),
    "integrity": pin("integrity", 32),
    "device": pin("device measurement", 32),
    "proofKey": pin("proof key", 16),
    "generation": 1,
}

# comment, flags, changes: valid in both encodings
VALID = (
    ("required claims only", ("Normal",), {}),
    ("maximum uses", ("OptionalClaim",), {"maximumUses": 5}),
    ("one command", ("OptionalClaim",), {"commands": ["unlock"]}),
    ("no command at all", ("OptionalClaim",), {"commands": []}),
    ("version", ("OptionalClaim",), {"version": [1, 2, 3]}),
    ("version 0.0.0", ("OptionalClaim",), {"version": [0, 0, 0]}),
    ("user", ("OptionalClaim",), {"user": "alice"}),
    (
        "every optional claim",
        ("OptionalClaim",),
        {"maximumUses": 1, "commands": ["lock", "unlock"], "version": [10, 0, 1], "user": "alice"},
    ),
    ("issuer of 64 bytes", ("Boundary",), {"issuer": "i" * 64}),
    ("issuer of 64 bytes that are not ASCII", ("Boundary",), {"issuer": "\u00fc" * 32}),
    ("subject of 64 bytes", ("Boundary",), {"subject": "s" * 64}),
    ("user of 32 bytes", ("Boundary",), {"user": "u" * 32}),
    ("user of 32 bytes in four-byte characters", ("Boundary",), {"user": "\U0001f512" * 8}),
    ("16 commands of 32 bytes", ("Boundary",), {"commands": [f"{i:02}" + "c" * 30 for i in range(16)]}),
    ("16 short commands", ("Boundary",), {"commands": [f"c{i}" for i in range(16)]}),
    (
        "largest integers",
        ("Boundary",),
        {
            "expires": LARGEST,
            "issuedAt": LARGEST - 1,
            "generation": LARGEST,
            "maximumUses": LARGEST,
            "version": [LARGEST] * 3,
        },
    ),
    ("smallest times and generation", ("Boundary",), {"issuedAt": 0, "expires": 1, "generation": 0}),
    ("expires one second after issue", ("Boundary",), {"expires": CLAIMS["issuedAt"] + 1}),
    ("times below 2^32", ("Boundary",), {"issuedAt": 2**32 - 2, "expires": 2**32 - 1}),
    ("times from 2^32", ("Boundary",), {"issuedAt": 2**32, "expires": 2**32 + 1}),
    ("generation 23", ("Boundary",), {"generation": 23}),
    ("generation 24", ("Boundary",), {"generation": 24}),
    ("generation 256", ("Boundary",), {"generation": 256}),
    (
        "measurements and proof key of zeros",
        ("Boundary",),
        {"integrity": bytes(32), "device": bytes(32), "proofKey": bytes(16), "tokenId": bytes(16)},
    ),
    (
        "measurements and proof key of ones",
        ("Boundary",),
        {"integrity": b"\xff" * 32, "device": b"\xff" * 32, "proofKey": b"\xff" * 16, "tokenId": b"\xff" * 16},
    ),
)

# comment, flag, changes: invalid in both encodings, though each layer is well made
INVALID = (
    ("issued at the second of expiry", "IssuedAtNotBeforeExpiry", {"issuedAt": CLAIMS["expires"]}),
    ("issued after expiry", "IssuedAtNotBeforeExpiry", {"issuedAt": CLAIMS["expires"] + 1}),
    ("expires at 0", "IssuedAtNotBeforeExpiry", {"expires": 0}),
    ("another device's audience", "WrongAudience", {"audience": OTHER_DEVICE_ID}),
    ("audience with one bit changed", "WrongAudience", {"audience": DEVICE_ID[:15] + bytes([DEVICE_ID[15] ^ 1])}),
    ("issuer of 65 bytes", "TextTooLong", {"issuer": "i" * 65}),
    ("issuer of 64 characters in 65 bytes", "TextTooLong", {"issuer": "i" * 63 + "\u00fc"}),
    ("issuer of 300 bytes", "TextTooLong", {"issuer": "i" * 300}),
    ("subject of 65 bytes", "TextTooLong", {"subject": "s" * 65}),
    ("a command of 33 bytes", "TextTooLong", {"commands": ["unlock", "c" * 33]}),
    ("user of 33 bytes", "TextTooLong", {"user": "u" * 33}),
    ("user of 17 characters in 34 bytes", "TextTooLong", {"user": "\u00fc" * 17}),
    ("17 commands", "WrongCount", {"commands": [f"c{i}" for i in range(17)]}),
    ("version of two numbers", "WrongCount", {"version": [1, 2]}),
    ("version of four numbers", "WrongCount", {"version": [1, 2, 3, 4]}),
    ("version without numbers", "WrongCount", {"version": []}),
    ("version as text", "WrongType", {"version": "1.2.3"}),
    ("version with a text", "WrongType", {"version": [1, 2, "3"]}),
    ("version with null", "WrongType", {"version": [1, 2, None]}),
    ("version with 2^53", "IntegerTooLarge", {"version": [1, 2**53, 3]}),
    ("commands as text", "WrongType", {"commands": "unlock"}),
    ("commands as null", "WrongType", {"commands": None}),
    ("commands as a map", "WrongType", {"commands": {}}),
    ("a command as a number", "WrongType", {"commands": [1]}),
    ("a command as null", "WrongType", {"commands": [None]}),
    ("a command as a list", "WrongType", {"commands": [["unlock"]]}),
    ("issuer as a number", "WrongType", {"issuer": 1}),
    ("issuer as null", "WrongType", {"issuer": None}),
    ("subject as a list", "WrongType", {"subject": ["app"]}),
    ("expires as text", "WrongType", {"expires": "1790003600"}),
    ("expires as null", "WrongType", {"expires": None}),
    ("issued at as text", "WrongType", {"issuedAt": "1790000000"}),
    ("issued at as true", "WrongType", {"issuedAt": True}),
    ("generation as text", "WrongType", {"generation": "1"}),
    ("generation as true", "WrongType", {"generation": True}),
    ("maximum uses as text", "WrongType", {"maximumUses": "5"}),
    ("maximum uses as null", "WrongType", {"maximumUses": None}),
    ("user as a number", "WrongType", {"user": 7}),
    ("user as null", "WrongType", {"user": None}),
    ("expires 2^53", "IntegerTooLarge", {"expires": 2**53}),
    ("expires 2^64 - 1", "IntegerTooLarge", {"expires": 2**64 - 1}),
    ("generation 2^53", "IntegerTooLarge", {"generation": 2**53}),
    ("maximum uses 2^53", "IntegerTooLarge", {"maximumUses": 2**53}),
    *(
        (f"{name} of {size} bytes", "WrongSize", {name: pin(f"{name} {size}", size)})
        for name, sizes in (
            ("tokenId", (0, 15, 17, 32)),
            ("integrity", (0, 31, 33)),
            ("device", (0, 31, 33)),
            ("proofKey", (0, 15, 17, 32)),
            ("audience", (0, 15, 17)),
        )
        for size in sizes
    ),
)
REQUIRED = tuple(CLAIMS)


def ephemeral(label):
    return PrivateKey(pin(f"ephemeral/{label}", 32))


def initialization_vector(label):
    return pin(f"iv/{label}", 12)


def file():
    return VectorFile(
        "HoldfastMeasurementToken",
        "measurement_token_schema_v1.json",
        [
            "Measurement tokens: signed or authenticated by an issuer, encrypted to a device. Time and generation floor are not part of the test.",
            "A group gives the device's key and id, the only trusted issuer, and in some groups a key that another issuer shares",
            "with the device. Valid tests give the claims.",
        ],
        NOTES,
    )


def group_inputs(accept_unsigned):
    return {
        "devicePrivateKey": DEVICE.scalar,
        "devicePublicKey": DEVICE.point,
        "deviceKid": DEVICE.kid,
        "deviceId": DEVICE_ID,
        "issuerPublicKey": ISSUER.point,
        "issuerKid": ISSUER.kid,
        "acceptUnsigned": accept_unsigned,
    }


def mac_inputs(accept_mac):
    """What a group says of the key that an issuer shares with the device."""
    return {"macKey": MAC_KEY, "macKid": mac_key_id(MAC_KEY), "acceptMac": accept_mac}


def checker(encoding, accept_unsigned, **mac):
    """A check that opens the token and compares its claims."""

    def check(*, token, claims=None):
        if encoding == "COSE":
            opened, _ = cose.open_token(token, DEVICE, [ISSUER.point], DEVICE_ID, accept_unsigned, **mac)
        else:
            opened, _ = jose.open_token(token, DEVICE, [ISSUER.point], DEVICE_ID)
        assert opened == claims

    return check
