"""The rounds of session_test.json: each with every value that either end computes."""

import functools

from holdfast_peer import cose, jose, session
from holdfast_peer.keys import PrivateKey, key_id
from holdfast_peer.refusal import require
from holdfast_peer.session import STATUS

from . import token_cases as cases
from . import wrong_rounds
from .rounds import round_fields
from .token_cases import CLAIMS, DEVICE, DEVICE_ID, ISSUER
from .vector_file import pin

LARGEST = 2**53 - 1


def check_round(
    *,
    devicePrivateKey,
    devicePublicKey,
    deviceKid,
    deviceId,
    issuerPublicKey,
    issuerKid,
    m1,
    proverRandom,
    encoding,
    token,
    mpk,
    integrity,
    device,
    head,
    th,
    nonce,
    kProverToDevice,
    kDeviceToProver,
    imp,
    dmp,
    request,
    m2,
    m3Plaintext,
    m3,
    status,
    rememberedToken=None,
):
    """Refuses a round of which a value is not what follows from the others, or that has a message which is to be refused."""
    key = PrivateKey(devicePrivateKey)
    assert (key.point, key.kid, key_id(issuerPublicKey)) == (devicePublicKey, deviceKid, issuerKid)
    whole = token if rememberedToken is None else rememberedToken
    claims, _ = (cose if whole[0] == 0xD8 else jose).open_token(whole, key, [issuerPublicKey], deviceId)
    require((claims["proofKey"], claims["integrity"], claims["device"]) == (mpk, integrity, device), "OtherSecrets")
    require(encoding or token == session.token_reference(whole), "WrongReference")
    challenge = session.parse_message_1(m1)
    require((challenge["deviceId"], challenge["kid"]) == (deviceId, deviceKid), "AnotherDevice")
    assert head == session.message_2_head(proverRandom, encoding, token)
    made = session.Round(m1, head, mpk, device)
    require(th == made.transcript, "WrongTranscript")
    require(nonce == made.nonce and len(nonce) == 16 and nonce[0] & 0x80, "WrongNonce")
    require((kProverToDevice, kDeviceToProver) == (made.prover_to_device, made.device_to_prover), "WrongSessionKey")
    second = session.parse_message_2(m2)
    require(second["head"] == head, "WrongHead")
    require(imp is None or imp == made.prove(integrity), "WrongProof")
    require(dmp == made.prove(device) and (second["imp"], second["dmp"]) == (imp, dmp), "WrongProof")
    require(made.open_request(second["sealed"]) == request, "WrongContents")
    session.parse_request(request)
    third = session.parse_message_3(m3)
    require(third["status"] == status, "WrongStatus")
    require((third["sealed"] is None) == (m3Plaintext is None), "WrongContents")
    if m3Plaintext is not None:
        require(made.open_result(status, third["sealed"]) == m3Plaintext, "WrongContents")
        session.parse_result(m3Plaintext)


DEVICE_OF_ROUNDS = {
    "devicePrivateKey": DEVICE.scalar,
    "devicePublicKey": DEVICE.point,
    "deviceKid": DEVICE.kid,
    "deviceId": DEVICE_ID,
    "issuerPublicKey": ISSUER.point,
    "issuerKid": ISSUER.kid,
}


def add(file):
    group = file.group("SessionRound", functools.partial(check_round, **DEVICE_OF_ROUNDS), **DEVICE_OF_ROUNDS)
    full = {**CLAIMS, "maximumUses": 3, "commands": ["lock", "unlock", "status"], "version": [1, 2, 3], "user": "alice"}
    tokens = {
        "COSE": (
            session.COSE,
            cose.seal(CLAIMS, ISSUER, DEVICE.point, cases.ephemeral("round cose"), pin("round cose", 12)),
        ),
        "JOSE": (
            session.JOSE,
            jose.seal(CLAIMS, ISSUER, DEVICE.point, cases.ephemeral("round jose"), pin("round jose", 12)),
        ),
        "COSE, every claim": (
            session.COSE,
            cose.seal(full, ISSUER, DEVICE.point, cases.ephemeral("round full"), pin("round full", 12)),
        ),
    }
    wrapped = jose.encrypt(
        jose.sign(jose.dump(jose.claim_rules.to_members(CLAIMS)), ISSUER),
        DEVICE.point,
        cases.ephemeral("round wrapped"),
        pin("round wrapped", 12),
        algorithm=jose.WRAPPED,
        content_key=pin("round content key", 32),
    )
    tokens["JOSE with A256KW"] = (session.JOSE, wrapped)
    for name, (encoding, token) in tokens.items():
        _round(group, f"{name}, in full", encoding, token)
        _round(group, f"{name}, by reference", session.REFERENCE, session.token_reference(token), remembered=token)
    encoding, token = tokens["COSE"]

    def cose_round(comment, **changes):
        _round(group, comment, encoding, token, **changes)

    reference = session.token_reference(token)
    for bit in (0, 1):
        _round(
            group, f"transcript hash with top bit {bit}", session.REFERENCE, reference, remembered=token, top_bit=bit
        )
    for clock in (None, 0, 23, 24, 2**32, LARGEST):
        cose_round(f"device clock {clock}", clock=clock, flags=("Boundary",))
    for required in (0, 1, 3, 7, 15):
        cose_round(f"required {required}", required=required)
    cose_round("integrity left out", imp=False, request=session.request("status"))
    for comment, request in (
        ("command of 32 bytes", session.request("c" * 32)),
        ("one parameter", session.request("open", ["7"])),
        ("8 parameters of 64 bytes", session.request("open-safe", ["p" * 64] * 8)),
        ("parameter beyond ASCII", session.request("open-safe", ["\u00fc\u20ac\U0001f512"])),
        ("one-time code", session.request("unlock", otp=["alice", "123456"])),
        ("seal", session.request("open-safe", ["7", "2026-11-21"], seal=["alice", "87654321"])),
        ("parameters, code and seal", session.request("open-safe", ["7"], ["alice", "123456"], ["alice", "87654321"])),
        ("request number", session.request("unlock", number=1790000100123456)),
        ("request number 0", session.request("unlock", number=0)),
        ("request number 2^53 - 1", session.request("unlock", number=LARGEST)),
        (
            "parameters, code, seal and request number",
            session.request("open-safe", ["7"], ["alice", "123456"], ["alice", "87654321"], 1790000100123456),
        ),
    ):
        cose_round(comment, request=request)
    for comment, plaintext in (
        ("result empty", session.result(b"")),
        ("result of 1024 bytes", session.result(pin("result", 1024))),
        ("result with clock", session.result(b"unlocked", clock=1790000100)),
        ("result with clock and generation floor", session.result(b"unlocked", clock=1790000100, floor=2)),
    ):
        cose_round(comment, plaintext=plaintext)
    for name in ("accepted", "busy", "commandRefused", "internal"):
        cose_round(
            f"repetition, {name}",
            request=session.request("unlock", number=1790000100123456),
            status=STATUS[name],
            plaintext=session.result(b"", highest=1790000100123456 + (name == "internal")),
        )
    denials = {"tokenRevoked": {"floor": 2}, "lockedOut": {"retry_after": 30}, "factorMissing": {"missing": 12}}
    for name, status in STATUS.items():
        if name == "accepted":
            continue
        sealed = status in session.AUTHENTICATED
        _round(
            group,
            f"{name}, {'sealed' if sealed else 'without sealed part'}",
            session.REFERENCE,
            reference,
            remembered=token,
            status=status,
            plaintext=session.result(b"", **denials.get(name, {})) if sealed else None,
        )
    wrong_rounds.add(group, tokens)


def _round(group, comment, *parts, flags=("Normal",), **changes):
    group.valid(comment, flags, **round_fields(comment, *parts, **changes))
