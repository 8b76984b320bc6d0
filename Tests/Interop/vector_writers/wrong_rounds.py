"""Rounds in which one end derives a value wrong, or one of the messages is to be refused."""

from holdfast_peer import cbor, cose, session
from holdfast_peer.primitives import gcm_seal, hmac_sha256, sha256
from holdfast_peer.session import STATUS

from . import token_cases as cases
from .rounds import derived_fields, round_fields
from .token_cases import CLAIMS, DEVICE, DEVICE_ID, ISSUER, OTHER_DEVICE, OTHER_DEVICE_ID, STRANGER
from .vector_file import pin

LABEL = b"holdfast/1 transcript\x00"
REQUEST, REPLY = session.request("unlock"), session.result(b"unlocked")


def add(group, tokens):
    good = round_fields("wrong rounds", *tokens["COSE"], top_bit=0)
    other = round_fields("another round", *tokens["COSE"])
    for write in (_transcripts, _nonces, _keys, _proofs, _requests, _second, _third, _first):
        write(group, good, other)
    _tokens(group, good, tokens)


def _length(data, size=2):
    return len(data).to_bytes(size, "big") + data


def _flipped(data, index):
    """The bytes with a bit of one changed."""
    changed = bytearray(data)
    changed[index] ^= 1
    return bytes(changed)


def _derived(good, **wrong):
    """The fields of a round in which both ends derive a value wrong, and go on with it."""
    made = session.Round(good["m1"], good["head"], good["mpk"], good["device"], **wrong)
    return {**good, **derived_fields(made, good["head"], request=REQUEST, plaintext=REPLY, status=0)}


def _right(good):
    return session.Round(good["m1"], good["head"], good["mpk"], good["device"])


def _transcripts(group, good, other):
    m1, head = good["m1"], good["head"]
    for comment, hashed in (
        ("without its label", _length(m1) + _length(head)),
        ("with a label without its zero byte", LABEL[:-1] + _length(m1) + _length(head)),
        ("with the label of version 2", b"holdfast/2 transcript\x00" + _length(m1) + _length(head)),
        ("without lengths", LABEL + m1 + head),
        ("with lengths of four bytes", LABEL + _length(m1, 4) + _length(head, 4)),
        ("of the head before M1", LABEL + _length(head) + _length(m1)),
        ("of M1 only", LABEL + _length(m1)),
        ("of the head only", LABEL + _length(head)),
        ("of the challenge in place of M1", LABEL + _length(session.parse_message_1(m1)["challenge"]) + _length(head)),
        ("of the token in place of the head", LABEL + _length(m1) + _length(good["token"])),
        ("of another challenge", LABEL + _length(other["m1"]) + _length(head)),
        ("of another head", LABEL + _length(m1) + _length(other["head"])),
        ("of the head as a byte string", LABEL + _length(m1) + _length(cbor.encode(head))),
    ):
        group.invalid(f"transcript hash {comment}", "WrongTranscript", **_derived(good, transcript=sha256(hashed)))
    group.invalid(
        "transcript hash with its first bit set, as in the nonce",
        "WrongTranscript",
        **_derived(good, transcript=bytes([good["th"][0] | 0x80]) + good["th"][1:]),
    )


def _nonces(group, good, _):
    for comment, nonce in (
        ("with the first bit of the hash", good["th"][:16]),
        ("of the last 16 bytes of the hash", bytes([good["th"][16] | 0x80]) + good["th"][17:]),
        ("with the last bit set", good["th"][:15] + bytes([good["th"][15] | 1])),
        ("with the first byte 0x80", b"\x80" + good["th"][1:16]),
        ("that is the challenge", session.parse_message_1(good["m1"])["challenge"]),
        ("that is the prover's random bytes", good["proverRandom"]),
        ("of the hash of the hash", bytes([sha256(good["th"])[0] | 0x80]) + sha256(good["th"])[1:16]),
    ):
        group.invalid(f"nonce {comment}", "WrongNonce", **_derived(good, nonce=nonce))


def _keys(group, good, _):
    mpk, device, th = good["mpk"], good["device"], good["th"]
    right = session.session_keys(mpk + device, th)
    for comment, keys in (
        ("exchanged", right[32:] + right[:32]),
        ("without the device measurement", session.session_keys(mpk, th)),
        ("without the proof key", session.session_keys(device, th)),
        ("of the device measurement before the proof key", session.session_keys(device + mpk, th)),
        ("of the integrity measurement", session.session_keys(mpk + good["integrity"], th)),
        ("of an empty salt", session.session_keys(mpk + device, b"")),
        ("of the nonce as salt", session.session_keys(mpk + device, good["nonce"])),
        ("of hash and secrets exchanged", session.session_keys(th, mpk + device)),
        ("with the label of version 2", session.session_keys(mpk + device, th, b"holdfast/2 session keys")),
        ("of one and the same block", right[:32] * 2),
    ):
        group.invalid(f"session keys {comment}", "WrongSessionKey", **_derived(good, keys=keys))


def _proofs(group, good, other):
    right, imp, dmp = _right(good), good["imp"], good["dmp"]
    challenge = session.parse_message_1(good["m1"])["challenge"]

    def invalid(comment, integrity, device):
        m2 = session.message_2(good["head"], integrity, device, right.seal_request(REQUEST))
        group.invalid(comment, "WrongProof", **{**good, "imp": integrity, "dmp": device, "m2": m2})

    for index in (0, 31):
        invalid(f"integrity proof with byte {index} changed", _flipped(imp, index), dmp)
        invalid(f"device proof with byte {index} changed", imp, _flipped(dmp, index))
    invalid("proofs exchanged", dmp, imp)
    invalid("the device proof in place of the integrity proof", dmp, dmp)
    invalid("the integrity proof in place of the device proof", imp, imp)
    invalid("integrity proof of another round", other["imp"], dmp)
    invalid("device proof of another round", imp, other["dmp"])
    for comment, nonce in (("the challenge", challenge), ("the hash", good["th"]), ("nothing", b"")):
        integrity, device = (hmac_sha256(good["mpk"], nonce + good[name]) for name in ("integrity", "device"))
        invalid(f"integrity proof under {comment} in place of the nonce", integrity, dmp)
        invalid(f"device proof under {comment} in place of the nonce", imp, device)
    invalid("device proof under another proof key", imp, hmac_sha256(bytes(16), good["nonce"] + good["device"]))
    invalid("integrity measurement itself as its proof", good["integrity"], dmp)
    # The reader of M2 refuses these, where the other values of the round are right.
    for comment, flag, integrity, device in (
        ("M2 with an integrity proof of 31 bytes", "WrongSize", imp[:31], dmp),
        ("M2 with a device proof of 33 bytes", "WrongSize", imp, dmp + b"\0"),
        ("M2 without the device proof", "WrongProof", imp, None),
        ("M2 with a proof as text", "WrongType", imp, "p" * 32),
    ):
        m2 = session.message_2(good["head"], integrity, device, right.seal_request(REQUEST))
        group.invalid(comment, flag, **{**good, "m2": m2})


def _sealings(good, other, key, wrong_key, associated, plaintext, right, foreign):
    """What can be wrong with a sealed part."""
    last = len(plaintext) - 1
    yield from (
        ("the first byte of its ciphertext changed", _flipped(right, 0)),
        ("the last byte of its ciphertext changed", _flipped(right, last)),
        ("the first byte of its tag changed", _flipped(right, last + 1)),
        ("the last byte of its tag changed", _flipped(right, -1)),
        ("a tag of 15 bytes", right[:-1]),
        ("a byte after its tag", right + b"\0"),
        ("nothing in it", b""),
        ("its tag only", right[last + 1 :]),
        ("the key of the other direction", gcm_seal(wrong_key, bytes(12), plaintext, associated)),
        ("the nonce 1", gcm_seal(key, bytes(11) + b"\1", plaintext, associated)),
        ("no associated data", gcm_seal(key, bytes(12), plaintext, b"")),
        ("M1 as associated data", gcm_seal(key, bytes(12), plaintext, good["m1"])),
        ("the hash of another round as associated data", gcm_seal(key, bytes(12), plaintext, other["th"])),
        ("that of another round", foreign),
    )


def _requests(group, good, other):
    right, parts = _right(good), (good["head"], good["imp"], good["dmp"])
    keys = (right.prover_to_device, right.device_to_prover)
    sealed, foreign = right.seal_request(REQUEST), session.parse_message_2(other["m2"])["sealed"]
    for comment, changed in _sealings(good, other, *keys, right.transcript, REQUEST, sealed, foreign):
        m2 = session.message_2(*parts, changed)
        group.invalid(f"sealed part of M2: {comment}", "Decryption", **{**good, "m2": m2})
    m2 = session.message_2(*parts, right.seal_request(session.request("open")))
    group.invalid("M2 with another request", "WrongContents", **{**good, "m2": m2})
    for comment, flag, request in (
        ("without a command", "MissingKey", cbor.encode({2: []})),
        ("with a byte after it", "TrailingBytes", REQUEST + b"\0"),
        ("with a command of 33 bytes", "TextTooLong", session.request("c" * 33)),
        ("that is empty", "Truncated", b""),
    ):
        m2 = session.message_2(*parts, right.seal_request(request))
        group.invalid(f"request {comment}", flag, **{**good, "request": request, "m2": m2})


def _second(group, good, other):
    parts = (good["imp"], good["dmp"], _right(good).seal_request(REQUEST))
    for comment, flag, m2 in (
        ("M2 with the head of another round", "WrongHead", session.message_2(other["head"], *parts)),
        ("M2 with its head as an array", "WrongType", cbor.encode([2, cbor.Encoded(good["head"]), *parts])),
        ("M2 without its sealed part", "WrongCount", cbor.encode([2, good["head"], *parts[:2]])),
        ("M2 with a byte after it", "TrailingBytes", good["m2"] + b"\0"),
        ("M3 in place of M2", "WrongCount", good["m3"]),
        ("M2 of another round", "WrongHead", other["m2"]),
    ):
        group.invalid(comment, flag, **{**good, "m2": m2})


def _third(group, good, other):
    right = _right(good)
    keys = (right.device_to_prover, right.prover_to_device)
    sealed, foreign = right.seal_result(0, REPLY), session.parse_message_3(other["m3"])["sealed"]
    for comment, changed in _sealings(good, other, *keys, right.transcript + b"\0", REPLY, sealed, foreign):
        group.invalid(f"sealed part of M3: {comment}", "Decryption", **{**good, "m3": session.message_3(0, changed)})
    without = gcm_seal(right.device_to_prover, bytes(12), REPLY, right.transcript)
    group.invalid("sealed part of M3: no status", "Decryption", **{**good, "m3": session.message_3(0, without)})
    for name in ("commandRefused", "tokenExpired"):
        changed = session.message_3(STATUS[name], sealed)
        group.invalid(f"status changed to {name}", "Decryption", **{**good, "m3": changed, "status": STATUS[name]})
    changed = session.message_3(0, right.seal_result(11, session.result(b"")))
    group.invalid(
        "commandRefused turned to accepted", "Decryption", **{**good, "m3": changed, "m3Plaintext": session.result(b"")}
    )
    for comment, flag, m3 in (
        ("M3 with another status", "WrongStatus", session.message_3(11, right.seal_result(11, REPLY))),
        ("M3 with a status that is not defined", "UnknownValue", session.message_3(18, right.seal_result(18, REPLY))),
        ("M3 without its sealed part", "WrongContents", session.message_3(0, None)),
        ("M3 with another reply", "WrongContents", session.message_3(0, right.seal_result(0, session.result(b"")))),
        ("M3 with a byte after it", "TrailingBytes", good["m3"] + b"\0"),
        ("M3 of another round", "Decryption", other["m3"]),
    ):
        group.invalid(comment, flag, **{**good, "m3": m3})


def _first(group, good, _):
    challenge = session.parse_message_1(good["m1"])["challenge"]
    for comment, flag, parts in (
        ("of another device", "AnotherDevice", (OTHER_DEVICE_ID, challenge, DEVICE.kid, 2, 1790000100)),
        ("with the key of another device", "AnotherDevice", (DEVICE_ID, challenge, OTHER_DEVICE.kid, 2, 1790000100)),
        ("with a challenge of 15 bytes", "WrongSize", (DEVICE_ID, challenge[:15], DEVICE.kid, 2, 1790000100)),
        ("that requires factor 16", "UnknownValue", (DEVICE_ID, challenge, DEVICE.kid, 16, 1790000100)),
        ("with a negative clock", "WrongType", (DEVICE_ID, challenge, DEVICE.kid, 2, -1)),
    ):
        group.invalid(f"M1 {comment}", flag, **_derived({**good, "m1": session.message_1(*parts)}))


def _tokens(group, good, tokens):
    def sealed(label, claims=CLAIMS, issuer=ISSUER, device=DEVICE):
        return cose.seal(claims, issuer, device.point, cases.ephemeral(f"wrong {label}"), pin(f"wrong {label}", 12))

    for comment, flag, token in (
        ("for another device's id", "WrongAudience", sealed("audience", {**CLAIMS, "audience": OTHER_DEVICE_ID})),
        ("encrypted to another device", "WrongKeyId", sealed("device", device=OTHER_DEVICE)),
        ("of an issuer that is not trusted", "WrongKeyId", sealed("issuer", issuer=STRANGER)),
        ("with a byte of its ciphertext changed", "Decryption", _flipped(sealed("bit"), 120)),
        ("with another proof key", "OtherSecrets", sealed("key", {**CLAIMS, "proofKey": pin("other mpk", 16)})),
        ("with another integrity", "OtherSecrets", sealed("im", {**CLAIMS, "integrity": pin("other im", 32)})),
        ("with another device measurement", "OtherSecrets", sealed("dm", {**CLAIMS, "device": pin("other dm", 32)})),
    ):
        group.invalid(f"token {comment}", flag, **round_fields(f"wrong token {comment}", session.COSE, token))
    _, token = tokens["COSE"]
    _, another = tokens["JOSE"]
    for comment, reference in (
        ("to another token", session.token_reference(another)),
        ("of the last 16 bytes of the hash", sha256(token)[16:]),
        ("with a byte changed", _flipped(session.token_reference(token), 15)),
    ):
        fields = round_fields(f"wrong reference {comment}", session.REFERENCE, reference, remembered=token)
        group.invalid(f"reference {comment}", "WrongReference", **fields)
