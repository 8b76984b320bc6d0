"""Images of a microcontroller's flash: their parts, each of which a case may change in one place."""

from holdfast_peer import flash, provision, session
from holdfast_peer.cbor import encode

from .token_cases import DEVICE, DEVICE_ID, ISSUER
from .vector_file import pin, plain

NOW = 1790000100
KID = ISSUER.kid
TOKEN = pin("image/token", 16)
LIMITS = [0, [0, 0, 0], None]
CODES = [10, 60, 16]
COMMANDS = [["unlock", 3, LIMITS, 1], ["open-safe", 15, [3, [1, 2, 3], 86400], 0]]
POLICY = [0, 0, 86400, LIMITS, CODES, COMMANDS]
OWNER = [DEVICE_ID, DEVICE.scalar, DEVICE.point, [[KID, ISSUER.point]], POLICY]

HOTP, TOTP, OCRA = [1, 1, 6], [2, 1, 6, 30], [3, "OCRA-1:HOTP-SHA256-8:QH64-T1M"]
STATE = [1, NOW, 3, 1, 1]
ALICE = [7, 1, "alice", 0, 0, 0, 0, NOW, None, [TOTP, 59666670, None], [OCRA, 29833335, None]]
BOB = [7, 2, "bob", 3, 4, NOW + 60, -30, NOW, [pin("image/challenge", 8), NOW + 300], [HOTP, 7, 9], None]
CODE = [10, 1, 1, pin("image/code", 32), "carol", NOW + 600, TOTP, None]
UNLOCK = [10, 2, 2, pin("image/unlock", 32), "bob", NOW + 600, None, None]
USES = [5, KID, TOKEN, NOW + 3600, 2]
NONCE = [6, None, TOKEN, NOW + 3600, pin("image/nonce", 16)]
REQUEST = [12, TOKEN, 63, KID, NOW + 3600, 9, bytes(7) + b"\5", pin("image/digest", 16)]
OUTCOME = [13, 63, session.STATUS["accepted"]]
FLOOR = [4, KID, 2]


def check(*, image, **shown):
    data = bytearray(b"\xff" * flash.SIZE)
    for offset, part in image:
        part = bytes.fromhex(part) if isinstance(part, str) else part
        data[offset : offset + len(part)] = part
    made = flash.read(bytes(data))
    assert not shown or plain(made) == plain(shown), "another content"


CHECKS = {"FirmwareImage": check}


def owner(index=None, value=None, **form):
    """The owner's pages; one element of the array may be another."""
    fields = [value if index == place else field for place, field in enumerate(OWNER)]
    return provision.pages(encode(fields), **form)


def entry(number, kind, *details):
    return [3, encode([number, NOW + number, kind, *details])]


def log(count, start=1):
    """Audit items with these numbers, as a device's starts make them."""
    return [entry(number, 3, number) for number in range(start, start + count)]


LOG = [[STATE], [entry(1, 2, DEVICE_ID)], [entry(2, 5, KID)]]
FIRST = flash.slot(1, LOG)


def valid(group, comment, image, flags=("Normal",)):
    group.valid(comment, flags, image=flash.runs(image), **flash.read(image))


def invalid(group, comment, flag, image):
    group.invalid(comment, flag, image=flash.runs(image))


def policy(**changes):
    names = ("unsigned", "mac", "advance", "limits", "codes", "commands")
    return [changes.get(name, value) for name, value in zip(names, POLICY, strict=True)]


def many_commands(count):
    return [[f"command-{number:02}", 3, LIMITS, 0] for number in range(count)]


def many_issuers(count):
    return [[pin(f"image/issuer {number}", 8), pin(f"image/key {number}", 32)] for number in range(count)]
