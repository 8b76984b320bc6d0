"""The three messages of a round, its transcript, keys, proofs and sealed parts."""

from . import cbor
from .measurement import proof
from .primitives import gcm_open, gcm_seal, hkdf_sha256, sha256
from .refusal import require, require_text

LARGEST_MESSAGE, LARGEST_TOKEN = 4096, 3072
REFERENCE, COSE, JOSE = range(3)
INTEGRITY, DEVICE, OTP, SEAL = 1, 2, 4, 8
# By number: the name, whether M3 is always sealed, whether each such round slows the connection, and whether the status comes
# from a rule over claims, the command and the device's state.
TABLE = (
    ("accepted", True, False, False),
    ("tokenInvalid", False, True, False),
    ("tokenExpired", True, False, True),
    ("tokenRevoked", True, False, True),
    ("tokenUnknown", False, False, False),
    ("integrityMismatch", True, True, False),
    ("deviceMismatch", False, True, False),
    ("factorMissing", True, False, True),
    ("otpRejected", True, False, False),
    ("sealRejected", True, False, False),
    ("lockedOut", True, False, False),
    ("commandRefused", True, False, True),
    ("challengeExpired", False, False, False),
    ("malformed", False, False, False),
    ("busy", False, False, False),
    ("usesExhausted", True, False, True),
    ("versionTooOld", True, False, True),
    ("internal", False, False, False),
)
STATUS = {row[0]: number for number, row in enumerate(TABLE)}
NAMES = {number: name for name, number in STATUS.items()}
AUTHENTICATED, SLOWED_BY, BY_RULES = ({STATUS[row[0]] for row in TABLE if row[column]} for column in (1, 2, 3))


def _uint(value, most=None):
    require(isinstance(value, int) and not isinstance(value, bool) and value >= 0, "WrongType")
    require(most is None or value <= most, "UnknownValue")
    return value


def _bytes(value, size=None, most=None):
    require(isinstance(value, bytes), "WrongType")
    require(size is None or len(value) == size, "WrongSize")
    require(most is None or len(value) <= most, "TooLarge")
    return value


def _array(value, count):
    require(isinstance(value, list), "WrongType")
    require(len(value) == count, "WrongCount")
    return value


def _message(data, count, kind):
    require(len(data) <= LARGEST_MESSAGE, "TooLarge")
    fields = _array(cbor.decode(data), count)
    require(_uint(fields[0]) == kind, "WrongMessage")
    return fields


# M1


def message_1(device_id, challenge, kid, required, clock):
    return cbor.encode([1, 1, device_id, challenge, kid, required, clock])


def parse_message_1(data):
    _, version, device_id, challenge, kid, required, clock = _message(data, 7, 1)
    require(_uint(version) == 1, "WrongVersion")
    return {
        "deviceId": _bytes(device_id, 16),
        "challenge": _bytes(challenge, 16),
        "kid": _bytes(kid, 8),
        "required": _uint(required, INTEGRITY | DEVICE | OTP | SEAL),
        "clock": None if clock is None else _uint(clock),
    }


# M2


def token_reference(token):
    return sha256(token)[:16]


def message_2_head(prover_random, encoding, token):
    return cbor.encode([prover_random, encoding, token])


def parse_head(data):
    prover_random, encoding, token = _array(cbor.decode(data), 3)
    _bytes(prover_random, 16)
    require(_uint(encoding) in (REFERENCE, COSE, JOSE), "WrongEncoding")
    _bytes(token, 16) if encoding == REFERENCE else _bytes(token, most=LARGEST_TOKEN)
    return {"proverRandom": prover_random, "encoding": encoding, "token": token}


def message_2(head, imp, dmp, sealed):
    return cbor.encode([2, head, imp, dmp, sealed])


def parse_message_2(data):
    _, head, imp, dmp, sealed = _message(data, 5, 2)
    fields = parse_head(_bytes(head))
    return {
        **fields,
        "head": head,
        "imp": None if imp is None else _bytes(imp, 32),
        "dmp": None if dmp is None else _bytes(dmp, 32),
        "sealed": _bytes(sealed),
    }


def parse_compatibility(data):
    """The fields of the M2 of a compatibility round."""
    _, nonce, encoding, token, imp, dmp, command = _message(data, 7, 12)
    require(not _bytes(nonce, 16)[0] & 0x80, "SessionNonce")
    require(_uint(encoding) in (REFERENCE, COSE, JOSE), "WrongEncoding")
    _bytes(token, 16) if encoding == REFERENCE else _bytes(token, most=LARGEST_TOKEN)
    proofs = [None if value is None else _bytes(value, 32) for value in (imp, dmp)]
    return {
        "nonce": nonce,
        "encoding": encoding,
        "token": token,
        "proofs": proofs,
        "command": require_text(command, 32),
    }


def request(command, parameters=None, otp=None, seal=None, number=None):
    """The deterministic CBOR of a request; `otp` and `seal` are pairs of user and code."""
    fields = {1: command}
    for key, value in ((2, parameters), (3, otp), (4, seal)):
        if value is not None:
            fields[key] = list(value)
    if number is not None:
        fields[5] = number
    return cbor.encode(fields)


def parse_request(data):
    fields = cbor.decode(data)
    require(isinstance(fields, dict), "WrongType")
    require(not fields.keys() - {1, 2, 3, 4, 5}, "UnknownKey")
    require(1 in fields, "MissingKey")
    result = {"command": require_text(fields[1], 32)}
    if 2 in fields:
        require(isinstance(fields[2], list), "WrongType")
        require(len(fields[2]) <= 8, "WrongCount")
        result["parameters"] = [require_text(p, 64) for p in fields[2]]
    for key, name in ((3, "otp"), (4, "seal")):
        if key in fields:
            user, code = _array(fields[key], 2)
            result[name] = [require_text(user, 32), require_text(code, 16)]
    if 5 in fields:
        result["number"] = _uint(fields[5])
    return result


WINDOW = 64


def check_number(number, accepted, expires, floor):
    """Refuses a request's number that a device has accepted with the same token, or that is too low to tell. `accepted` are all
    that it accepted, in any order; nothing counts once the clock floor has reached the token's `exp`."""
    if not accepted or expires <= floor:
        return
    require(number + WINDOW >= max(accepted), "BelowWindow")
    require(number not in accepted, "Repetition")


# M3


def message_3(status, sealed):
    return cbor.encode([3, status, sealed])


def parse_message_3(data):
    _, status, sealed = _message(data, 3, 3)
    return {"status": _uint(status, len(TABLE) - 1), "sealed": None if sealed is None else _bytes(sealed)}


def result(data=b"", clock=None, floor=None, retry_after=None, missing=None, highest=None, later=None):
    """The deterministic CBOR of a reply; `later` has labels that only a later version of the protocol names."""
    fields = {1: data, 2: clock, 3: floor, 4: retry_after, 5: missing, 6: highest, **(later or {})}
    return cbor.encode({key: value for key, value in fields.items() if value is not None})


def parse_result(data):
    fields = cbor.decode(data)
    require(isinstance(fields, dict), "WrongType")
    require(not any(not isinstance(label, int) or label < 1 for label in fields), "UnknownKey")
    require(1 in fields, "MissingKey")
    names = {1: "result", 2: "clock", 3: "floor", 4: "retryAfter", 5: "missing", 6: "highest"}
    known = {names[k]: _bytes(v, most=1024) if k == 1 else _uint(v) for k, v in fields.items() if k in names}
    require(known.get("missing", 0) < 256, "WrongType")
    # Any other value of label 7 is that of a later version.
    if isinstance(fields.get(7), bytes) and len(fields[7]) == 8:
        known["bulletins"] = fields[7]
    return known


# Transcript and keys


def transcript_hash(m1, head):
    return sha256(b"holdfast/1 transcript\x00" + len(m1).to_bytes(2, "big") + m1 + len(head).to_bytes(2, "big") + head)


def proof_nonce(transcript):
    return bytes([transcript[0] | 0x80]) + transcript[1:16]


def session_keys(secrets, salt, info=b"holdfast/1 session keys"):
    """Both session keys, one after the other: prover to device, device to prover."""
    return hkdf_sha256(secrets, salt, info, 64)


class Round:
    """What both ends derive from M1, the head of M2 and the token's secrets.

    Each value that is given is taken instead, and the following ones are derived from it, as an end would that derives it wrong."""

    def __init__(self, m1, head, proof_key, device_measurement, *, transcript=None, nonce=None, keys=None):
        self.transcript = transcript or transcript_hash(m1, head)
        self.nonce = nonce or proof_nonce(self.transcript)
        keys = keys or session_keys(proof_key + device_measurement, self.transcript)
        self.prover_to_device, self.device_to_prover = keys[:32], keys[32:]
        self._proof_key = proof_key

    def prove(self, measurement):
        return proof(self._proof_key, self.nonce, measurement)

    def seal_request(self, plaintext):
        return gcm_seal(self.prover_to_device, bytes(12), plaintext, self.transcript)

    def open_request(self, sealed):
        return gcm_open(self.prover_to_device, bytes(12), sealed, self.transcript)

    def seal_result(self, status, plaintext):
        return gcm_seal(self.device_to_prover, bytes(12), plaintext, self.transcript + bytes([status]))

    def open_result(self, status, sealed):
        require(status < 256, "Decryption")
        return gcm_open(self.device_to_prover, bytes(12), sealed, self.transcript + bytes([status]))
