"""One-time passwords: HOTP (RFC 4226), TOTP (RFC 6238) and OCRA (RFC 6287)."""

import hashlib
import hmac
import re

from .refusal import Refused, require

HASHES = {"SHA1": 20, "SHA256": 32, "SHA512": 64}

SUITE = re.compile(
    r"OCRA-1:HOTP-(?P<hash>SHA1|SHA256|SHA512)-(?P<digits>0|[4-9]|10):(?P<counter>C-)?"
    r"Q(?P<format>[ANH])(?P<length>[0-9]{2})(?:-P(?P<pin>SHA1|SHA256|SHA512))?(?:-S(?P<session>[0-9]{3}))?"
    r"(?:-T(?P<time>[1-9][0-9]?)(?P<unit>[SMH]))?"
)
UNITS = {"S": (1, 59), "M": (60, 59), "H": (3600, 48)}


def truncate(whole, digits):
    """RFC 4226 §5.3; the whole HMAC in hexadecimal where `digits` is 0."""
    if digits == 0:
        return whole.hex()
    if not 4 <= digits <= 10:
        raise Refused("Digits")
    offset = whole[-1] & 0x0F
    number = int.from_bytes(whole[offset : offset + 4], "big") & 0x7FFFFFFF
    return f"{number:010}"[-digits:]


def hmac_of(key, message, algorithm):
    require(algorithm in HASHES, "Algorithm")
    return hmac.new(key, message, algorithm.lower()).digest()


def hotp(key, counter, digits=6, algorithm="SHA1"):
    return truncate(hmac_of(key, counter.to_bytes(8, "big"), algorithm), digits)


def totp(key, time, digits=6, algorithm="SHA1", period=30):
    require(1 <= period <= 86400, "Period")
    return hotp(key, time // period, digits, algorithm)


def parse_suite(text):
    """The parts of a suite (RFC 6287 §6)."""
    match = SUITE.fullmatch(text)
    if not match:
        raise Refused("Suite")
    session = int(match["session"]) if match["session"] else None
    if not 4 <= int(match["length"]) <= 64 or session is not None and not 1 <= session <= 512:
        raise Refused("Suite")
    step = None
    if match["time"]:
        seconds, most = UNITS[match["unit"]]
        if int(match["time"]) > most:
            raise Refused("Suite")
        step = int(match["time"]) * seconds
    return {
        "hash": match["hash"],
        "digits": int(match["digits"]),
        "counter": bool(match["counter"]),
        "format": match["format"],
        "length": int(match["length"]),
        "pin": match["pin"],
        "session": session,
        "step": step,
    }


def question_bytes(question, form, length):
    """The 128 bytes of a question, or of two of them one after the other (RFC 6287 §5.1, §7.2)."""
    alphabet = {"A": r"[ -~]+", "N": r"[0-9]+", "H": r"[0-9A-Fa-f]+"}[form]
    if not re.fullmatch(alphabet, question) or len(question) > 2 * length:
        raise Refused("Question")
    digits = {"A": lambda: question.encode().hex(), "N": lambda: f"{int(question):x}", "H": lambda: question}[form]()
    return bytes.fromhex(digits.ljust(256, "0"))


def ocra(suite, key, question, counter=None, pin=None, session=None, time=None):
    """The answer; `pin` as bytes, `time` in steps. The whole HMAC in hexadecimal where the suite ends in `-0`."""
    parts = parse_suite(suite)
    given = {
        "counter": counter is not None,
        "pin": pin is not None,
        "session": session is not None,
        "step": time is not None,
    }
    if any(given[name] != bool(parts[name]) for name in given):
        raise Refused("Inputs")
    message = suite.encode() + b"\0"
    if counter is not None:
        message += counter.to_bytes(8, "big")
    message += question_bytes(question, parts["format"], parts["length"])
    if pin is not None:
        message += hashlib.new(parts["pin"].lower(), pin).digest()
    if session is not None:
        if len(session) > parts["session"]:
            raise Refused("Session")
        message += session.rjust(parts["session"], b"\0")
    if time is not None:
        message += time.to_bytes(8, "big")
    return truncate(hmac_of(key, message, parts["hash"]), parts["digits"])
