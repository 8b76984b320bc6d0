"""A device's requests for seals, as text: made, and read strictly."""

import re

from . import base64strict, oath
from .primitives import sha256
from .refusal import Refused, require

SUITE = "OCRA-1:HOTP-SHA256-0:QH64"
LARGEST, LARGEST_TEXT, MOST_PARAMETERS = 700, 256, 6
UNRESERVED = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")


def escape(text):
    return "".join(chr(byte) if byte in UNRESERVED else f"%{byte:02X}" for byte in text.encode())


def unescape(text):
    def byte(match):
        require(match[1] is not None, "Percent")
        return bytes([int(match[1], 16)])

    data = re.sub(rb"%([0-9A-F]{2})?", byte, text)
    require(escape_bytes(data) == text, "Percent")
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise Refused("NotUtf8") from None


def escape_bytes(data):
    return b"".join(bytes([byte]) if byte in UNRESERVED else b"%%%02X" % byte for byte in data)


def body(device, user, command, parameters, challenge, expires=None, text=None):
    """The text of a request before its code."""
    fields = [("d", base64strict.url_encode(device)), ("u", user), ("c", command)]
    fields += [("p", parameter) for parameter in parameters]
    fields.append(("i", challenge))
    fields += [] if expires is None else [("e", str(expires))]
    fields += [] if text is None else [("t", text)]
    return ("holdfast-seal:1?" + "&".join(f"{name}={escape(value)}" for name, value in fields)).encode()


def code(before, secret):
    question = sha256(b"holdfast/1 seal request\x00" + before).hex()
    return oath.ocra(SUITE, secret, question)[:32]


def signed(before, secret):
    return before + b"&h=" + code(before, secret).encode()


def parse(data):
    """The fields of a request."""
    require(len(data) <= LARGEST, "TooLarge")
    require(data.startswith(b"holdfast-seal:"), "Scheme")
    version, mark, rest = data[len(b"holdfast-seal:") :].partition(b"?")
    require(mark and version == b"1", "WrongVersion")
    fields = [field.partition(b"=") for field in rest.split(b"&")]
    require(all(equals for _, equals, _ in fields), "Fields")
    names = b"".join(name if len(name) == 1 else b"?" for name, _, _ in fields)
    require(re.fullmatch(rb"duc(p*)ie?t?h", names), "Fields")
    values = [unescape(value) for _, _, value in fields]
    device, user, command, *others = values
    count = names.count(b"p")
    require(count <= MOST_PARAMETERS, "WrongCount")
    device = base64strict.url_decode(device)
    require(len(device) == 16, "WrongSize")
    parameters, (challenge, *optional, digits) = others[:count], others[count:]
    for value in (user, command):
        require(value, "WrongSize")
        require(len(value.encode()) <= 32, "TextTooLong")
    require(all(len(value.encode()) <= 64 for value in parameters), "TextTooLong")
    require(re.fullmatch("[0-9a-f]{16}", challenge), "Digits16")
    expires = text = None
    if b"e" in names[3:]:
        expires = optional.pop(0)
        require(re.fullmatch("0|[1-9][0-9]{0,15}", expires), "NumberForm")
        expires = int(expires)
        require(expires < 2**53, "IntegerTooLarge")
    if b"t" in names:
        text = optional.pop(0)
        require(text, "WrongSize")
        require(len(text.encode()) <= LARGEST_TEXT, "TextTooLong")
    require(re.fullmatch("[0-9a-f]{32}", digits), "CodeForm")
    return {
        "device": device,
        "user": user,
        "command": command,
        "parameters": parameters,
        "challenge": challenge,
        "expires": expires,
        "text": text,
    }


def check(data, secret):
    """The fields of a request whose code is that of `secret`."""
    fields = parse(data)
    require(code(body(**fields), secret) == data[-32:].decode(), "WrongCode")
    return fields
