"""First inputs of bulletins, of messages about them, and of rounds between which they are delivered."""

import types

from holdfast_peer import bulletins, cbor, claims, cose, keys, pages, session
from holdfast_peer.refusal import Refused

from .shared import SIGNER, TEST_TIME, ZEROS, framed, groups
from .vectors import credulous_cose

# The audiences of the fuzzed device.
DEVICE, GROUP = bytes(16), b"\x01" * 16


def add_bulletins(seeds):
    for kind, group, tests in groups("bulletin"):
        for test in tests:
            if "message" in test:
                seeds.add("bulletin", bytes.fromhex(test["message"]))
            if "list" in test:
                seeds.add("bulletin", b"\x83\x08\x00" + bytes.fromhex(test["list"]))
            if kind == "Bulletin":
                add_bulletin(
                    seeds, bytes.fromhex(test["bulletin"]), keys.PrivateKey(bytes.fromhex(group["devicePrivateKey"]))
                )
    good = {"number": 1000 * TEST_TIME, "predecessor": 0, "issuedAt": TEST_TIME, "audience": DEVICE}
    for changes in (
        {},
        {"predecessor": 5},
        {"predecessor": 6},
        {"number": 5, "issuedAt": 0},
        {"audience": GROUP},
        {"generation": 1},
    ):
        seeds.add("bulletin", signed({**good, **changes}), sealed(signed({**good, **changes})))
    seeds.add("bulletin", sealed(signed({**good, "users": [["ann", None]]})))
    add_deliveries(seeds, signed(good))


def add_bulletin(seeds, bulletin, device):
    """The bulletin, its claims, and the same ones for the fuzzed device."""
    seeds.add("bulletin", bulletin)
    try:
        plaintext = bulletin
        if bulletins.is_sealed(bulletin):
            bulletin, plaintext = credulous_cose(bulletin, device)
        payload = cbor.decode(plaintext, tags=(cose.SIGN1,)).value[2]
        fields = cbor.decode(payload)
    except (Refused, ValueError, TypeError, IndexError, AttributeError):
        return
    if isinstance(payload, bytes) and isinstance(fields, dict):
        own = signed(cbor.encode({**fields, 4: DEVICE}))
        seeds.add("bulletin", payload, own, sealed(own))


def add_pages(seeds):
    """Pages of the audit log, receipts, and the messages about them."""
    for kind, group, tests in groups("audit_page_test"):
        for test in tests:
            for name in ("message", "receipt"):
                if name in test:
                    seeds.add("bulletin", bytes.fromhex(test[name]))
            if kind != "AuditPage":
                continue
            device = types.SimpleNamespace(
                point=bytes.fromhex(group["devicePublicKey"]), device_id=bytes.fromhex(group["deviceId"])
            )
            agreement = keys.PrivateKey(bytes.fromhex(group["agreementPrivateKey"]))
            try:
                text = pages.open_text(
                    bytes.fromhex(test["sealed"]), agreement, device, bytes.fromhex(group["homeKid"])
                )
                seeds.add("bulletin", text)
            except (Refused, ValueError):
                pass
    for count in (0, 255, 256, 3840, 3841):
        seeds.add("bulletin", cbor.encode([pages.PAGE, bytes(32 + count)]))
    seeds.add("bulletin", receipt(), receipt(0), receipt(2**53), receipt(device=GROUP), receipt() + bytes(200))


def receipt(count=5, device=DEVICE):
    """A receipt of the home with the key id zero, with a signature of zeros."""
    payload = cbor.encode({1: device, 2: count, 3: ZEROS})
    return cose.sign(payload, None, protected=pages.receipt_protected(bytes(8)), signature=bytes(64))


def signed(contents):
    """A bulletin under the key id zero, with a signature of zeros."""
    payload = contents if isinstance(contents, bytes) else bulletins.to_cbor(contents)
    return cose.sign(payload, None, protected=bulletins.protected(bytes(8)), signature=bytes(64))


def sealed(plaintext):
    """A COSE_Encrypt to the key id zero whose ciphertext is its plaintext."""
    recipient = [cose.recipient_protected(bytes(8)), cbor.Encoded(cose.ephemeral_header(SIGNER.point)), b""]
    body = [cose.CONTENT_PROTECTED, cbor.Encoded(cbor.encode({5: bytes(12)})), plaintext + bytes(16), [recipient]]
    return cbor.encode(cbor.Tag(cose.ENCRYPT, body))


def add_deliveries(seeds, bulletin):
    """Rounds of a device, and mail between them."""
    token_claims = {
        "issuer": "peer.example", "subject": "app", "audience": DEVICE, "issuedAt": TEST_TIME - 60, "expires": TEST_TIME + 3600,
        "tokenId": bytes(16), "integrity": ZEROS, "device": ZEROS, "proofKey": bytes(16), "generation": 1,
    }  # fmt: skip
    token = sealed(
        cose.sign(claims.to_cbor(token_claims), None, protected=cose.sign_protected(bytes(8)), signature=bytes(64))
    )
    rounds = [
        session.message_2(
            session.message_2_head(bytes(16), 1, token),
            ZEROS,
            ZEROS,
            session.request("status", number=number) + bytes(16),
        )
        for number in (7, 7, 8)
    ]
    mail = [
        bulletins.deliver(bulletin),
        bulletins.deliver(bulletin[:-1]),
        bulletins.deliver(sealed(bulletin)),
        bulletins.ASK,
    ]
    for kind in (b"\x00", b"\x40"):
        seeds.add(
            "session-device",
            kind + framed(rounds[0], *mail),
            kind + framed(*mail),
            kind + framed(rounds[0], *mail[:2] * 5),
        )
        seeds.add("session-device", kind + framed(rounds[0], mail[2], rounds[1], mail[0], rounds[2], mail[0], mail[3]))
        letters = [
            pages.ask(),
            pages.ask(7),
            *(pages.acknowledge(data) for data in (receipt(), receipt(device=GROUP), b"x")),
        ]
        for letter in letters:
            seeds.add("session-device", kind + framed(rounds[0], letter, letter), kind + framed(letter))
        seeds.add(
            "session-device",
            kind + framed(rounds[0], *letters * 2, *letters),
            kind + framed(rounds[0], b"\x82\x0b\xf6"),
        )
