"""The JSON schemas of the vector files."""

import json

from holdfast_peer import session

from .notes import LAYERS

UINT = {"type": "integer", "minimum": 0, "maximum": 2**53 - 1}
TEXT = {"type": "string"}
BOOLEAN = {"type": "boolean"}
TEXTS = {"type": "array", "items": TEXT}
HEX = {"type": "string", "pattern": "^([0-9a-f]{2})*$"}


def hex_of(size):
    return {"type": "string", "pattern": f"^[0-9a-f]{{{2 * size}}}$"}


def nullable(schema):
    return {"oneOf": [schema, {"type": "null"}]}


def closed(properties, optional=()):
    return {
        "type": "object",
        "properties": properties,
        "additionalProperties": False,
        "required": [name for name in properties if name not in optional],
    }


COMPONENTS = {"type": "array", "items": {"type": "array", "items": [TEXT, hex_of(32)], "minItems": 2, "maxItems": 2}}
TOKEN_KEYS = {
    "devicePrivateKey": hex_of(32),
    "devicePublicKey": hex_of(65),
    "deviceKid": hex_of(8),
    "deviceId": hex_of(16),
    "issuerPublicKey": hex_of(65),
    "issuerKid": hex_of(8),
}
TOKEN = {**TOKEN_KEYS, "acceptUnsigned": BOOLEAN}
MAC = {"macKey": hex_of(32), "macKid": hex_of(8), "acceptMac": BOOLEAN}
CLAIMS = closed(
    {
        "issuer": TEXT,
        "subject": TEXT,
        "audience": hex_of(16),
        "expires": UINT,
        "issuedAt": UINT,
        "tokenId": hex_of(16),
        "integrity": hex_of(32),
        "device": hex_of(32),
        "proofKey": hex_of(16),
        "generation": UINT,
        "maximumUses": UINT,
        "commands": {"type": "array", "items": TEXT, "maxItems": 16},
        "version": {"type": "array", "items": UINT, "minItems": 3, "maxItems": 3},
        "user": TEXT,
    },
    optional=("maximumUses", "commands", "version", "user"),
)
ROUND = {
    "m1": HEX,
    "proverRandom": hex_of(16),
    "encoding": {"enum": [0, 1, 2]},
    "token": HEX,
    "rememberedToken": HEX,
    "mpk": hex_of(16),
    "integrity": hex_of(32),
    "device": hex_of(32),
    "head": HEX,
    "th": hex_of(32),
    "nonce": hex_of(16),
    "kProverToDevice": hex_of(32),
    "kDeviceToProver": hex_of(32),
    "imp": nullable(hex_of(32)),
    "dmp": hex_of(32),
    "request": HEX,
    "m2": HEX,
    "m3Plaintext": nullable(HEX),
    "m3": HEX,
    "status": {"type": "integer", "minimum": 0, "maximum": max(session.STATUS.values())},
}
CODE = {"algorithm": TEXT, "digits": UINT, "code": TEXT}
MESSAGE = ({}, {"message": HEX}, ())
HOME = {"deviceId": hex_of(16), "homePublicKey": hex_of(65), "homeKid": hex_of(8)}
PAGE = closed(
    {
        "cut": UINT,
        "after": UINT,
        "head": hex_of(32),
        "entries": {"type": "array", "items": HEX},
        "count": UINT,
        "last": hex_of(32),
    }
)
OWNERS_CODE = {
    "code": TEXT,
    "purpose": {"enum": ["activation", "unlock"]},
    "time": UINT,
    "expires": UINT,
}

# the statements of evidence since version 2
STATEMENTS = {
    "appProperties": {"type": "array", "items": TEXT},
    "systemId": nullable(TEXT),
    "systemVersion": nullable(TEXT),
    "userProperty": nullable(TEXT),
}

# what a valid activation gives in addition
EXCHANGED = {
    "activate": HEX,
    "th": hex_of(32),
    "grant": HEX,
    "confirm": HEX,
    "otpSecret": hex_of(32),
    "sealSecret": hex_of(32),
    "hostSecret": hex_of(32),
}

PORTS = {
    "type": "array",
    "items": {"type": "array", "items": [{"enum": ["l2cap", "rfcomm"]}, UINT], "minItems": 2, "maxItems": 2},
    "minItems": 1,
}


def pairs(first, second):
    return {"type": "array", "items": {"type": "array", "items": [first, second], "minItems": 2, "maxItems": 2}}


# what an owner's commands show of a valid image of a microcontroller's flash
SHOWN = {
    "deviceId": hex_of(16),
    "publicKey": hex_of(65),
    "groups": TEXTS,
    "home": nullable(
        {
            "type": "array",
            "items": [hex_of(8), BOOLEAN, nullable(hex_of(65))],
            "minItems": 3,
            "maxItems": 3,
        }
    ),
    "issuers": pairs(hex_of(8), HEX),
    "policy": HEX,
    "clockFloor": UINT,
    "starts": UINT,
    "kept": UINT,
    "floors": pairs(hex_of(8), UINT),
    "users": {"type": "array", "items": {"type": "array", "items": HEX, "minItems": 4, "maxItems": 4}},
    "codes": {"type": "array", "items": HEX},
    "entries": {"type": "array", "items": HEX},
    "auditCount": UINT,
    "auditHead": hex_of(32),
    "acknowledged": UINT,
    "unacknowledgedBytes": UINT,
}

# what a valid request for a seal contains
ASKED = {
    "device": hex_of(16),
    "user": TEXT,
    "command": TEXT,
    "parameters": TEXTS,
    "challenge": TEXT,
    "expires": nullable(UINT),
    "text": nullable(TEXT),
}
# the claims of a bulletin
BULLETIN_CLAIMS = closed(
    {
        "number": UINT,
        "predecessor": UINT,
        "issuedAt": UINT,
        "audience": hex_of(16),
        "revoked": pairs(hex_of(16), UINT),
        "generation": UINT,
        "versions": {"type": "array", "items": {"type": "array", "items": [TEXT, UINT, UINT, UINT]}},
        "introduced": {"type": "array", "items": {"type": "array", "items": [hex_of(32), hex_of(32), UINT, UINT]}},
        "ended": {"type": "array", "items": hex_of(8)},
        "users": pairs(TEXT, nullable(UINT)),
    },
    optional=("revoked", "generation", "versions", "introduced", "ended", "users"),
)

# file: {group type: (group inputs, test fields, those of both that are optional)}
FILES = {
    "measurement": {
        "Measurement": (
            {},
            {
                "mpk": HEX,
                "appComponents": pairs(TEXT, HEX),
                "deviceComponents": pairs(TEXT, HEX),
                "salt": HEX,
                "created": UINT,
                "configuration": HEX,
                "integrity": HEX,
                "device": HEX,
                "mpkId": hex_of(8),
            },
            (),
        ),
        "MeasurementConfiguration": ({}, {"configuration": HEX}, ()),
        "ReleaseKeys": ({}, {"root": HEX, "evidenceKey": HEX, "mpk": HEX, "mpkId": HEX}, ()),
        "Evidence": (
            {},
            {
                "evidenceKey": HEX,
                "evidence": HEX,
                "configuration": HEX,
                "appComponents": COMPONENTS,
                "deviceComponents": COMPONENTS,
                "subject": nullable(TEXT),
                "version": nullable({"type": "array", "items": UINT, "minItems": 3, "maxItems": 3}),
                "properties": {"type": "array", "items": TEXT},
                **STATEMENTS,
            },
            ("configuration", "appComponents", "deviceComponents", "subject", "version", "properties", *STATEMENTS),
        ),
    },
    "proof": {"Proof": ({}, {"mpk": HEX, "nonce": HEX, "measurement": HEX, "proof": HEX}, ())},
    "measurement_token": {
        "MeasurementTokenCOSE": ({**TOKEN, **MAC}, {"token": HEX, "claims": CLAIMS}, ("claims", *MAC)),
        "MeasurementTokenJOSE": (TOKEN, {"token": HEX, "claims": CLAIMS}, ("claims",)),
    },
    "oath_hotp": {"HOTP": ({}, {"secret": HEX, "counter": hex_of(8), **CODE}, ())},
    "oath_totp": {"TOTP": ({}, {"secret": HEX, "time": UINT, "period": UINT, **CODE}, ())},
    "oath_ocra": {
        "OCRA": (
            {},
            {
                "suite": TEXT,
                "secret": HEX,
                "question": TEXT,
                "counter": hex_of(8),
                "pin": HEX,
                "session": HEX,
                "timeStep": hex_of(8),
                "code": TEXT,
            },
            ("counter", "pin", "session", "timeStep"),
        ),
        "OCRASuite": ({}, {"suite": TEXT}, ()),
    },
    "session": {
        "SessionRound": (TOKEN_KEYS, ROUND, ("rememberedToken",)),
        "SessionM1": MESSAGE,
        "SessionM2": MESSAGE,
        "SessionM3": MESSAGE,
        "SessionRequest": MESSAGE,
        "SessionReply": MESSAGE,
        "SessionCompatibility": MESSAGE,
        "RequestNumber": (
            {**TOKEN_KEYS, "issuerPrivateKey": hex_of(32)},
            {"accepted": {"type": "array", "items": UINT}, "number": UINT, "expires": UINT, "clockFloor": UINT},
            (),
        ),
    },
    "state": {
        "StateString": ({}, {"passphrase": TEXT, "line": HEX, "plaintext": HEX}, ("plaintext",)),
        "StateRecords": ({}, {"plaintext": HEX}, ()),
        "StoreState": ({}, {"store": HEX}, ()),
        "UndoCode": ({}, {"code": TEXT, "secret": hex_of(16)}, ("secret",)),
        "UndoCopy": ({}, {"code": TEXT, "record": HEX, "copy": HEX, "contents": HEX}, ("contents",)),
    },
    "actuator": {
        "ActuatorCommandsCBOR": MESSAGE,
        "ActuatorCommandsJSON": MESSAGE,
        "ActuatorAnswerCBOR": MESSAGE,
        "ActuatorAnswerJSON": MESSAGE,
        "ActuatorCommand": (
            {},
            {
                "sequence": UINT,
                "command": TEXT,
                "parameters": TEXTS,
                "user": nullable(TEXT),
                "subject": TEXT,
                "cbor": HEX,
                "json": HEX,
            },
            (),
        ),
    },
    "attestation_token": {
        "AttestationToken": (
            {
                "backendPrivateKey": hex_of(32),
                "signatureAlgorithm": {"enum": ["ES256", "HS256"]},
                "signatureKey": HEX,
                "issuer": TEXT,
                "audience": TEXT,
                "deviceId": hex_of(16),
                "devicePublicKey": hex_of(65),
                "now": UINT,
            },
            {
                "token": HEX,
                "subject": TEXT,
                "version": nullable({"type": "array", "items": UINT, "minItems": 3, "maxItems": 3}),
                "integrity": hex_of(32),
                "device": hex_of(32),
                "proofKey": hex_of(16),
            },
            ("subject", "version", "integrity", "device", "proofKey"),
        )
    },
    "service_discovery": {
        "ServiceRecord": (
            {},
            {"transport": {"enum": ["l2cap", "rfcomm"]}, "number": UINT, "name": TEXT, "record": HEX},
            (),
        ),
        "ServiceAnswer": ({}, {"answer": HEX, "ports": PORTS}, ("ports",)),
    },
    "frames": {
        "Frames": (
            {"isLine": BOOLEAN},
            {"stream": HEX, "messages": {"type": "array", "items": HEX}},
            ("messages",),
        )
    },
    "firmware_image": {"FirmwareImage": ({}, {"image": pairs(UINT, HEX), **SHOWN}, tuple(SHOWN))},
    "bulletin": {
        "Bulletin": ({**TOKEN_KEYS, "groups": TEXTS}, {"bulletin": HEX, "claims": BULLETIN_CLAIMS}, ("claims",)),
        "BulletinMessage": MESSAGE,
        "BulletinAnswer": MESSAGE,
        "BulletinState": ({}, {"list": HEX, "state": hex_of(8)}, ()),
        "BulletinGroup": ({}, {"name": TEXT, "audience": hex_of(16)}, ()),
    },
    "audit_page": {
        "AuditPage": (
            {**HOME, "agreementPrivateKey": hex_of(32), "devicePublicKey": hex_of(65)},
            {"sealed": HEX, "page": PAGE},
            ("page",),
        ),
        "AuditReceipt": (HOME, {"receipt": HEX, "count": UINT, "head": hex_of(32)}, ("count", "head")),
        "AuditMail": MESSAGE,
        "AuditPageAnswer": MESSAGE,
    },
    "audit": {"AuditEntry": ({}, {"entry": HEX}, ()), "AuditFile": ({}, {"file": HEX}, ())},
    "seal": {
        "SealFields": (
            {},
            {"command": TEXT, "parameters": TEXTS, "fieldByteLimit": nullable(UINT), "sealed": TEXTS},
            ("sealed",),
        ),
        "SealQuestion": (
            {},
            {"command": TEXT, "parameters": TEXTS, "question": hex_of(32), "refusalQuestion": hex_of(32)},
            (),
        ),
        "Seal": (
            {},
            {
                "suite": TEXT,
                "secret": HEX,
                "command": TEXT,
                "parameters": TEXTS,
                "challenge": TEXT,
                "counter": hex_of(8),
                "timeStep": hex_of(8),
                "seal": TEXT,
            },
            ("challenge", "counter", "timeStep"),
        ),
        "SealRequest": ({}, {"secret": HEX, "request": HEX, **ASKED}, tuple(ASKED)),
    },
    "activation": {
        "OneUseCode": (
            {},
            {"code": TEXT, "activationKey": hex_of(32), "unlockKey": hex_of(32)},
            ("activationKey", "unlockKey"),
        ),
        "ActivationMessage": MESSAGE,
        "ActivationReply": MESSAGE,
        "ActivationGrant": MESSAGE,
        "Activation": (
            {},
            {
                "code": TEXT,
                "m1": HEX,
                "clientPrivateKey": hex_of(32),
                "granted": HEX,
                "activated": HEX,
                **EXCHANGED,
            },
            tuple(EXCHANGED),
        ),
        "ActivationAtDevice": (
            {},
            {
                **OWNERS_CODE,
                "user": TEXT,
                "methods": HEX,
                "m1": HEX,
                "freshPrivateKey": hex_of(32),
                "activate": HEX,
                "confirm": HEX,
                "granted": HEX,
                "activated": HEX,
            },
            ("granted", "activated"),
        ),
        "Unlocking": ({}, {"code": TEXT, "m1": HEX, "unlock": HEX, "unlocked": HEX}, ("unlock",)),
        "UnlockingAtDevice": ({}, {**OWNERS_CODE, "m1": HEX, "unlock": HEX, "unlocked": HEX}, ("unlocked",)),
        "UserSyncResult": MESSAGE,
        "UserStateResult": MESSAGE,
        "HostCodeResult": (
            {},
            {"secret": hex_of(32), "challenge": TEXT, "answer": HEX, "deviceChallenge": TEXT},
            ("deviceChallenge",),
        ),
    },
}


def _group(kind, inputs, fields, optional):
    test = closed(
        {
            "tcId": {"type": "integer", "minimum": 1},
            "comment": TEXT,
            "flags": {"type": "array", "items": TEXT, "minItems": 1},
            **fields,
            "result": {"enum": ["valid", "invalid"]},
            "layer": {"enum": list(LAYERS)},
        },
        (*optional, "layer"),
    )
    return closed(
        {
            "type": {"const": kind},
            "source": closed({"name": TEXT, "version": TEXT}),
            **inputs,
            "tests": {"type": "array", "items": test, "minItems": 1},
        },
        optional,
    )


def schema(name):
    groups = FILES[name]
    note = closed({"bugType": TEXT, "description": TEXT})
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": f"Holdfast test vectors: {name.replace('_', ' ')}",
        **closed(
            {
                "algorithm": TEXT,
                "schema": {"const": f"{name}_schema_v1.json"},
                "numberOfTests": {"type": "integer", "minimum": 1},
                "header": {"type": "array", "items": TEXT},
                "notes": {"type": "object", "additionalProperties": note},
                "testGroups": {
                    "type": "array",
                    "minItems": 1,
                    "items": {"oneOf": [{"$ref": f"#/definitions/{kind}"} for kind in groups]},
                },
            }
        ),
        "definitions": {kind: _group(kind, *parts) for kind, parts in groups.items()},
    }


def write(folder):
    for name in FILES:
        (folder / f"{name}_schema_v1.json").write_text(json.dumps(schema(name), indent=1) + "\n")
