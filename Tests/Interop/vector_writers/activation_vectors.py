"""activation_test.json: the exchanges of a user with a device, and the results of a device's commands of users."""

from holdfast_peer import activation, cbor, oath, session
from holdfast_peer.activation import (
    ACTIVATE,
    ACTIVATED,
    ALPHABET,
    CONFIRM,
    FROM_DEVICE,
    FROM_USER,
    GRANT,
    HOST_SUITE,
    UNLOCK,
    UNLOCKED,
)
from holdfast_peer.cbor import Encoded, Tag, encode
from holdfast_peer.keys import PRIME, PrivateKey
from holdfast_peer.refusal import require

from .notes import NOTES
from .session_vectors import Messages
from .token_cases import DEVICE, DEVICE_ID, LARGEST
from .vector_file import VectorFile, pin

NOW, USER = 1790000100, "alice"
HOTP, TOTP, SEAL = [1, 1, 6], [2, 2, 8, 30], [3, "OCRA-1:HOTP-SHA256-8:QH64-T1M"]
BOTH = [[1, HOTP], [2, SEAL]]
CLIENT, FRESH = PrivateKey(pin("activation client", 32)), PrivateKey(pin("activation fresh", 32))


def activation_file():
    file = VectorFile(
        "HoldfastActivation",
        "activation_schema_v1.json",
        [
            "OneUseCode: a code as a person types it. ActivationMessage, ActivationReply, ActivationGrant: one message.",
            "Activation, Unlocking: what a user sends and concludes. ActivationAtDevice, UnlockingAtDevice: what a device does.",
            "UserSyncResult, UserStateResult, HostCodeResult: results of a device's commands of users.",
        ],
        NOTES,
    )
    for (kind, check), write in zip(CHECKS.items(), WRITERS, strict=True):
        write(file.group(kind, check))
    return file


# Codes


def code_of(label):
    """A code as it is printed, whose check character is one of the 32."""
    for attempt in range(64):
        data = pin(f"code/{label}/{attempt}", 20)
        text = "".join(ALPHABET[byte & 31] for byte in data)
        number = 0
        for character in text:
            number = number * 32 + ALPHABET.index(character)
        if number % 37 < 32:
            return "-".join([*(text[i : i + 4] for i in range(0, 20, 4)), ALPHABET[number % 37]])
    raise AssertionError(label)


def _check_code(*, code, activationKey=None, unlockKey=None):
    made = [activation.code_key(code, purpose) for purpose in ("activation", "unlock")]
    assert activationKey is None or made == [activationKey, unlockKey]


def _codes(group):
    def valid(comment, code, flags=("Normal",)):
        activation_key, unlock_key = (activation.code_key(code, purpose) for purpose in ("activation", "unlock"))
        group.valid(comment, flags, code=code, activationKey=activation_key, unlockKey=unlock_key)

    for number in range(4):
        valid(f"pseudo-random {number}", code_of(number))
    good = code_of("code")
    bare = good.replace("-", "")
    valid("lower case", good.lower(), ("Representation",))
    valid("without hyphens", bare, ("Representation",))
    valid("spaces in place of hyphens", good.replace("-", " "), ("Representation",))
    valid("spaces around it", f"  {good} ", ("Representation",))
    valid("a hyphen behind each character", "".join(f"{c}-" for c in bare), ("Representation",))
    confusing = next(c for c in map(code_of, range(500)) if "0" in c[:24] and "1" in c[:24])
    valid("O in place of 0, I in place of 1", confusing.replace("0", "O").replace("1", "I"), ("Representation",))
    valid("o in place of 0, l in place of 1", confusing.replace("0", "o").replace("1", "l"), ("Representation",))
    valid("all zeros", "0000-0000-0000-0000-0000-0", ("Boundary",))

    def invalid(comment, code):
        group.invalid(comment, "Code", code=code)

    invalid("empty", "")
    invalid("hyphens only", "-----")
    invalid("the check character is missing", good[:-2])
    invalid("another check character", good[:-1] + ALPHABET[(ALPHABET.index(good[-1]) + 1) % 32])
    invalid("a character too many", good + "0")
    invalid("the code twice", good + good)
    for index in (0, 10, 19):
        other = ALPHABET[(ALPHABET.index(bare[index]) + 1) % 32]
        invalid(f"character {index} changed", bare[:index] + other + bare[index + 1 :])
    first, second = next((i, i + 1) for i in range(19) if bare[i] != bare[i + 1])
    invalid("two neighbours exchanged", bare[:first] + bare[second] + bare[first] + bare[second + 1 :])
    for name, character in (("U", "U"), ("u", "u"), ("an asterisk", "*"), ("a full stop", "."), ("a tab", "\t")):
        invalid(f"{name} in it", character + bare[1:])
    invalid("a line end behind it", good + "\n")
    invalid("a zero byte behind it", good + "\0")
    invalid("a letter that is not ASCII", "\u00d6" + bare[1:])
    invalid("a digit of another script", "\u0661" + bare[1:])


# Messages


def _messages(group):
    messages = Messages(group)
    mac, point = pin("activation mac", 32), CLIENT.point
    for name, items in (("activate", [ACTIVATE, point, mac]), ("confirm", [CONFIRM, mac]), ("unlock", [UNLOCK, mac])):
        messages.valid(name, encode(items))
    messages.valid("activate with a point off the curve", encode([ACTIVATE, b"\4" + bytes(64), mac]))
    items = [ACTIVATE, point, mac]
    messages.array_faults(items)
    messages.byte_string(items, 1, "point", (0, 33, 64, 66))
    messages.byte_string(items, 2, "mac", (0, 16, 31, 33))
    for name, kind in (("confirm", CONFIRM), ("unlock", UNLOCK)):
        messages.byte_string([kind, mac], 1, f"{name}: mac", (0, 16, 31, 33))
        messages.invalid(f"{name} with a point", "WrongCount", encode([kind, point, mac]))
        messages.invalid(f"{name}, byte behind it", "TrailingBytes", encode([kind, mac]) + b"\0")
    for kind in FROM_DEVICE:
        messages.invalid(f"message {kind} of a device", "WrongMessage", encode([kind, mac]))
    for kind in (20, 27):
        messages.invalid(f"message {kind}", "WrongMessage", encode([kind, mac]))


def _replies(group):
    messages = Messages(group)
    mac, point, sealed = pin("activation mac", 32), FRESH.point, pin("activation sealed", 77)
    items = [GRANT, point, sealed]
    messages.valid("granted", encode(items))
    messages.valid("activated", encode([ACTIVATED, mac]))
    messages.valid("unlocked", encode([UNLOCKED, mac]))
    messages.valid("granted with nothing sealed", encode([GRANT, point, b""]), ("Boundary",))
    messages.array_faults(items)
    messages.byte_string(items, 1, "point", (0, 33, 64, 66))
    messages.byte_string(items, 2, "sealed", ())
    for name, kind in (("activated", ACTIVATED), ("unlocked", UNLOCKED)):
        messages.byte_string([kind, mac], 1, f"{name}: mac", (0, 16, 31, 33))
        messages.invalid(f"{name} with a point", "WrongCount", encode([kind, point, mac]))
    for kind in FROM_USER:
        messages.invalid(f"message {kind} of a user", "WrongMessage", encode([kind, mac]))


def _grants(group):
    messages = Messages(group)
    good = {1: USER, 2: NOW, 3: BOTH, 4: 16}

    def valid(comment, flags=("Normal",), **changes):
        messages.valid(comment, encode({**good, **{int(k[1:]): v for k, v in changes.items()}}), flags)

    valid("both accounts")
    valid("no account", _3=[])
    valid("one-time passwords only", _3=[[1, TOTP]])
    valid("seals only", _3=[[2, SEAL]])
    valid("passwords over a challenge", _3=[[1, [3, "OCRA-1:HOTP-SHA256-8:QH64"]]])
    valid("a PIN of 6 digits and a key are demanded", _5=[6, 1])
    valid("a key is demanded", _5=[0, 1])
    for pin_length in (4, 64):
        valid(f"a PIN of {pin_length} digits is demanded", ("Boundary",), _5=[pin_length, 0])
    valid("user of 32 bytes", ("Boundary",), _1="\u00fc" * 16)
    valid("user of one byte", ("Boundary",), _1="a")
    for time in (0, LARGEST):
        valid(f"time {time}", ("Boundary",), _2=time)
    for length in (1, 64):
        valid(f"parameters of {length} characters", ("Boundary",), _4=length)
    for digits in (4, 10):
        valid(f"{digits} digits", ("Boundary",), _3=[[1, [1, 3, digits]]])
    for period in (1, 86400):
        valid(f"a period of {period} s", ("Boundary",), _3=[[1, [2, 1, 6, period]]])

    def invalid(comment, flag, key, value):
        messages.invalid(comment, flag, encode({**good, key: value}))

    for key in good:
        messages.invalid(f"key {key} is missing", "MissingKey", encode({k: v for k, v in good.items() if k != key}))
    for key in (0, 6, -1, "1"):
        invalid(f"unknown key {key!r}", "UnknownKey", key, 1)
    for comment, value in (("as bytes", b"alice"), ("null", None), ("a number", 1)):
        invalid(f"user {comment}", "WrongType", 1, value)
    invalid("user of 33 bytes", "TextTooLong", 1, "u" * 33)
    invalid("user of 17 characters in 34 bytes", "TextTooLong", 1, "\u00fc" * 17)
    invalid("user empty", "WrongSize", 1, "")
    invalid("time negative", "WrongType", 2, -1)
    invalid("time 2^53", "IntegerTooLarge", 2, 2**53)
    invalid("time null", "WrongType", 2, None)
    invalid("time as a float", "Float", 2, Encoded(bytes.fromhex("fb41daac5264000000")))
    invalid("accounts null", "WrongType", 3, None)
    invalid("accounts as a map", "WrongType", 3, {1: HOTP})
    for number in (0, 3, 257):
        invalid(f"an account with index {number}", "Account", 3, [[number, HOTP]])
    invalid("accounts falling", "UnsortedAccounts", 3, BOTH[::-1])
    invalid("an account twice", "UnsortedAccounts", 3, [BOTH[0], BOTH[0]])
    invalid("an account of three elements", "WrongCount", 3, [[1, HOTP, 0]])
    invalid("an account without a method", "WrongCount", 3, [[1]])
    for method, comment, flag in (
        ([], "an empty method", "WrongCount"),
        ([0, 1, 6], "method 0", "Method"),
        ([4, 1, 6], "method 4", "Method"),
        ([1, 1], "HOTP without digits", "WrongCount"),
        ([1, 1, 6, 30], "HOTP with a period", "WrongCount"),
        ([2, 1, 6], "TOTP without a period", "WrongCount"),
        ([1, 0, 6], "hash 0", "Algorithm"),
        ([1, 4, 6], "hash 4", "Algorithm"),
        ([1, 257, 6], "hash 257", "Algorithm"),
        ([1, 1, 3], "3 digits", "Digits"),
        ([1, 1, 11], "11 digits", "Digits"),
        ([1, 1, 0], "no digits", "Digits"),
        ([2, 1, 6, 0], "a period of 0 s", "Period"),
        ([2, 1, 6, 86401], "a period of 86401 s", "Period"),
        ([3, "OCRA-1:HOTP-SHA256-8:QH65"], "a question of 65 digits", "Suite"),
        ([3, "OCRA-2:HOTP-SHA256-8:QH64"], "OCRA-2", "Suite"),
        ([3, ""], "an empty suite", "Suite"),
        ([3, b"OCRA-1:HOTP-SHA256-8:QH64"], "a suite as bytes", "WrongType"),
        ([3, "OCRA-1:HOTP-SHA256-8:QH64", 6], "OCRA with digits", "WrongCount"),
    ):
        invalid(comment, flag, 3, [[1, method]])
    for length in (0, 65, LARGEST):
        invalid(f"parameters of {length} characters", "OutOfRange", 4, length)
    invalid("length of parameters negative", "WrongType", 4, -1)
    for demand in ([0, 0], [3, 0], [65, 0], [6, 2], [320, 0]):
        invalid(f"demand {demand}", "Demand", 5, demand)
    for demand in ([6], [6, 1, 0], []):
        invalid(f"demand {demand}", "WrongCount", 5, demand)
    for comment, demand in (("null", None), ("a number", 6), ("with a negative number", [-6, 0])):
        invalid(f"demand {comment}", "WrongType", 5, demand)
    whole = encode(good)
    pairs = [encode(key) + encode(value) for key, value in good.items()]
    messages.invalid("empty", "Truncated", b"")
    messages.invalid("cut short", "Truncated", whole[:-1])
    messages.invalid("byte behind it", "TrailingBytes", whole + b"\0")
    messages.invalid("an array", "WrongType", encode(list(good.values())))
    messages.invalid("user behind time", "UnsortedKeys", b"\xa4" + pairs[1] + pairs[0] + pairs[2] + pairs[3])
    messages.invalid("time twice", "DuplicateKey", b"\xa5" + pairs[0] + pairs[1] * 2 + pairs[2] + pairs[3])
    messages.invalid("map of indefinite length", "IndefiniteLength", b"\xbf" + b"".join(pairs) + b"\xff")
    messages.invalid("map length in two bytes", "NonMinimalInteger", b"\xb8\x04" + b"".join(pairs))
    messages.invalid("tagged", "UnknownTag", encode(Tag(24, good)))
    messages.invalid("user not UTF-8", "NotUtf8", encode({**good, 1: Encoded(b"\x62\xc3\x28")}))


# Exchanges


def m1_of(label, clock=NOW):
    return session.message_1(DEVICE_ID, pin(f"activation/{label}/challenge", 16), DEVICE.kid, 2, clock)


def check_activation(*, code, m1, clientPrivateKey, granted, activated, **expected):
    """The user's end: what it sends, and that it takes both answers."""
    session.parse_message_1(m1)
    user = activation.Activation(m1, code, PrivateKey(clientPrivateKey))
    assert not expected or user.opening() == expected["activate"]
    user.take(granted)
    if expected:
        made = (user.transcript, user.confirmation(), user.otp, user.seal, user.host)
        assert made == tuple(expected[name] for name in ("th", "confirm", "otpSecret", "sealSecret", "hostSecret"))
    user.finish(activated)


class Exchange:
    """An honest activation, with all that both ends make."""

    def __init__(self, label, plaintext=None, code=None, m1=None, client=CLIENT, fresh=FRESH):
        self.code, self.m1 = code or code_of(label), m1 or m1_of(label)
        self.client, self.fresh = client, fresh
        self.plaintext = activation.grant(USER, NOW, BOTH) if plaintext is None else plaintext
        self.user = activation.Activation(self.m1, self.code, client)
        self.activate = self.user.opening()
        self.device = activation.ActivationAtDevice(self.m1, self.code, fresh, self.activate)
        self.granted = self.device.granted(self.plaintext)
        self.user.derive(fresh.point, client.exchange(fresh.point))
        self.confirm = self.user.confirmation()
        self.activated = self.device.activated(self.confirm)

    def for_user(self, **changes):
        return {
            "code": self.code,
            "m1": self.m1,
            "clientPrivateKey": self.client.scalar,
            "granted": self.granted,
            "activated": self.activated,
            **changes,
        }

    def outputs(self):
        return {
            "activate": self.activate,
            "th": self.user.transcript,
            "grant": self.plaintext,
            "confirm": self.confirm,
            "otpSecret": self.user.otp,
            "sealSecret": self.user.seal,
            "hostSecret": self.user.host,
        }


def _activations(group):
    def valid(comment, flags=("Normal",), **parts):
        made = Exchange(comment, **parts)
        group.valid(comment, flags, **made.for_user(**made.outputs()))

    for number in range(4):
        valid(f"pseudo-random {number}")
    valid("other keys", client=PrivateKey(pin("client 2", 32)), fresh=PrivateKey(pin("fresh 2", 32)))
    valid("a demand", plaintext=activation.grant(USER, NOW, BOTH, demand=[6, 1]))
    valid("no account", plaintext=activation.grant(USER, NOW, []))
    valid("passwords by time", plaintext=activation.grant("bob", NOW, [[1, TOTP]], 64))
    valid("M1 without a clock", m1=m1_of("no clock", None))
    longest = [[1, [3, "OCRA-1:HOTP-SHA512-10:QA64-T59M"]], [2, [3, "OCRA-1:HOTP-SHA512-10:QH64-T59M"]]]
    valid("the longest grant", ("Boundary",), plaintext=activation.grant("u" * 32, LARGEST, longest, 64, [64, 1]))
    _false_answers(group)


def _false_answers(group):
    made = Exchange("good")

    def invalid(comment, flag, **changes):
        group.invalid(comment, flag, **made.for_user(**changes))

    def sealed_anew(comment, flag, plaintext):
        other = Exchange("good", plaintext=plaintext)
        invalid(comment, flag, granted=other.granted, activated=other.activated)

    _, point, sealed = cbor.decode(made.granted)
    for position in (0, len(sealed) // 2, len(sealed) - 1):
        flipped = bytearray(sealed)
        flipped[position] ^= 1
        invalid(
            f"byte {position} of the sealed grant changed", "Decryption", granted=encode([GRANT, point, bytes(flipped)])
        )
    invalid("sealed grant without its tag", "Decryption", granted=encode([GRANT, point, sealed[:-16]]))
    invalid("sealed grant empty", "Decryption", granted=encode([GRANT, point, b""]))
    invalid("another point in the grant", "Decryption", granted=encode([GRANT, CLIENT.point, sealed]))
    off = b"\4" + FRESH.point[1:33] + ((int.from_bytes(FRESH.point[33:], "big") + 1) % PRIME).to_bytes(32, "big")
    for comment, bad in (
        ("off the curve", off),
        ("of zeros", b"\4" + bytes(64)),
        ("with x as large as the prime", b"\4" + PRIME.to_bytes(32, "big") + FRESH.point[33:]),
        ("in compressed form, filled up", b"\2" + FRESH.point[1:33] + bytes(32)),
        ("in hybrid form", b"\6" + FRESH.point[1:]),
        ("at infinity, filled up", bytes(65)),
    ):
        invalid(f"a point {comment}", "Point", granted=encode([GRANT, bad, sealed]))
    other_code, other_m1 = Exchange("good", code=code_of("another")), Exchange("good", m1=m1_of("another"))
    other_key = Exchange("good", fresh=PrivateKey(pin("fresh 3", 32)))
    invalid("a device that knows another code", "Decryption", granted=_granted_blindly(made, code_of("another")))
    invalid("the grant of another challenge", "Decryption", granted=other_m1.granted)
    invalid("the end of another exchange", "Impostor", activated=other_key.activated)
    invalid("the end of an exchange with another code", "Impostor", activated=other_code.activated)
    mac = cbor.decode(made.activated)[1]
    invalid(
        "first byte of the last MAC changed", "Impostor", activated=encode([ACTIVATED, bytes([mac[0] ^ 1]) + mac[1:]])
    )
    invalid(
        "last byte of the last MAC changed",
        "Impostor",
        activated=encode([ACTIVATED, mac[:-1] + bytes([mac[-1] ^ 128])]),
    )
    invalid("the user's own MAC comes back", "Impostor", activated=encode([ACTIVATED, cbor.decode(made.confirm)[1]]))
    invalid(
        "the MAC of the opening comes back", "Impostor", activated=encode([ACTIVATED, cbor.decode(made.activate)[2]])
    )
    invalid("the last MAC of zeros", "Impostor", activated=encode([ACTIVATED, bytes(32)]))
    invalid("unlocked in place of activated", "WrongMessage", activated=encode([UNLOCKED, mac]))
    invalid("the grant in place of activated", "WrongMessage", activated=made.granted)
    invalid("activated in place of the grant", "WrongMessage", granted=made.activated)
    invalid("the user's opening in place of the grant", "WrongMessage", granted=made.activate)
    invalid("the last MAC of 31 bytes", "WrongSize", activated=encode([ACTIVATED, mac[:31]]))
    invalid("byte behind the grant", "TrailingBytes", granted=made.granted + b"\0")
    good = cbor.decode(made.plaintext)
    sealed_anew("an empty grant under seal", "Truncated", b"")
    sealed_anew("a grant without a user", "MissingKey", encode({k: v for k, v in good.items() if k != 1}))
    sealed_anew("a grant with a sixth key", "UnknownKey", encode({**good, 6: 1}))
    sealed_anew("a grant with a demand that asks for nothing", "Demand", encode({**good, 5: [0, 0]}))
    sealed_anew("a grant with an unknown method", "Method", encode({**good, 3: [[1, [4, 1, 6]]]}))
    sealed_anew("a grant with a byte behind it", "TrailingBytes", made.plaintext + b"\0")


def _granted_blindly(made, code):
    """The grant of a device that takes any opening, and has another code."""
    device = activation.ActivationAtDevice.__new__(activation.ActivationAtDevice)
    device.code_key, device.fresh = activation.code_key(code, "activation"), made.fresh
    device.opening_hash = made.user.opening_hash
    device.derive(made.fresh.point, made.fresh.exchange(made.client.point))
    return device.granted(made.plaintext)


def check_activation_at_device(
    *, code, purpose, time, expires, user, methods, m1, freshPrivateKey, activate, confirm, **expected
):
    """The device's end, which has one code of its owner."""
    require(purpose == "activation", "Impostor")
    plaintext = encode({1: user, 2: time, 3: Encoded(methods), 4: 16})
    fields = activation.parse_grant(plaintext)
    assert fields["user"] == user
    device = activation.ActivationAtDevice(m1, code, PrivateKey(freshPrivateKey), activate)
    require(time < expires, "ExpiredCode")
    granted = device.granted(plaintext)
    assert not expected or granted == expected["granted"]
    activated = device.activated(confirm)
    assert not expected or activated == expected["activated"]


def _activations_at_device(group):
    def fields(made, methods=BOTH, user=USER, **changes):
        return {
            "code": made.code,
            "purpose": "activation",
            "time": NOW,
            "expires": NOW + 600,
            "user": user,
            "methods": encode(methods),
            "m1": made.m1,
            "freshPrivateKey": made.fresh.scalar,
            "activate": made.activate,
            "confirm": made.confirm,
            **changes,
        }

    def valid(comment, flags=("Normal",), methods=BOTH, user=USER, time=NOW, **changes):
        made = Exchange(f"device/{comment}", plaintext=activation.grant(user, time, methods))
        parts = fields(made, methods, user, time=time, expires=time + 600)
        group.valid(comment, flags, **{**parts, **changes}, granted=made.granted, activated=made.activated)

    for number in range(3):
        valid(f"pseudo-random {number}")
    valid("no account", methods=[])
    valid("passwords by time", methods=[[1, TOTP]], user="bob")
    valid("in the last second of the code", ("Boundary",), expires=NOW + 1)
    valid("user of 32 bytes", ("Boundary",), user="\u00fc" * 16)
    made, other = Exchange("device"), Exchange("device", m1=m1_of("device, another"))

    def invalid(comment, flag, **changes):
        group.invalid(comment, flag, **fields(made, **changes))

    _, point, mac = cbor.decode(made.activate)
    _, confirming = cbor.decode(made.confirm)
    code_key = activation.code_key(made.code, "activation")

    def opened(point):
        digest = activation.sha256(activation.framed(b"holdfast/1 activation", made.m1) + point)
        return encode([ACTIVATE, point, activation.hmac_sha256(code_key, digest)])

    invalid("another code", "Impostor", activate=Exchange("device", code=code_of("guessed")).activate)
    invalid("the opening of another challenge", "Impostor", activate=other.activate)
    invalid("the owner's code is for unlocking", "Impostor", purpose="unlock")
    invalid("the code has expired", "ExpiredCode", expires=NOW)
    invalid("the code expired long ago", "ExpiredCode", expires=1)
    invalid("another point under the same MAC", "Impostor", activate=encode([ACTIVATE, FRESH.point, mac]))
    for position in (0, 31):
        flipped = bytearray(mac)
        flipped[position] ^= 1
        invalid(
            f"byte {position} of the first MAC changed", "Impostor", activate=encode([ACTIVATE, point, bytes(flipped)])
        )
    invalid("a first MAC of zeros", "Impostor", activate=encode([ACTIVATE, point, bytes(32)]))
    off = b"\4" + point[1:33] + ((int.from_bytes(point[33:], "big") + 1) % PRIME).to_bytes(32, "big")
    for comment, bad in (
        ("off the curve", off),
        ("of zeros", b"\4" + bytes(64)),
        ("in hybrid form", b"\6" + point[1:]),
    ):
        invalid(f"a point {comment} under the right MAC", "Point", activate=opened(bad))
    for position in (0, 31):
        flipped = bytearray(confirming)
        flipped[position] ^= 1
        invalid(f"byte {position} of the confirmation changed", "Impostor", confirm=encode([CONFIRM, bytes(flipped)]))
    invalid("the confirmation of another challenge", "Impostor", confirm=other.confirm)
    invalid("the MAC of the opening as the confirmation", "Impostor", confirm=encode([CONFIRM, mac]))
    invalid(
        "the device's last MAC as the confirmation",
        "Impostor",
        confirm=encode([CONFIRM, cbor.decode(made.activated)[1]]),
    )
    invalid("a confirmation of zeros", "Impostor", confirm=encode([CONFIRM, bytes(32)]))
    invalid("unlock in place of the confirmation", "WrongMessage", confirm=encode([UNLOCK, confirming]))
    invalid("the opening again in place of the confirmation", "WrongMessage", confirm=made.activate)
    invalid("a confirmation of 31 bytes", "WrongSize", confirm=encode([CONFIRM, confirming[:31]]))
    invalid("an opening with a byte behind it", "TrailingBytes", activate=made.activate + b"\0")


def check_unlocking(*, code, m1, unlocked, unlock=None):
    session.parse_message_1(m1)
    user = activation.Unlocking(m1, code)
    assert unlock in (None, user.message())
    user.finish(unlocked)


def _unlockings(group):
    def made(label):
        code, m1 = code_of(f"unlock/{label}"), m1_of(f"unlock/{label}")
        user = activation.Unlocking(m1, code)
        return {"code": code, "m1": m1, "unlock": user.message(), "unlocked": user.answer(user.message())}

    for number in range(4):
        group.valid(f"pseudo-random {number}", **made(number))
    good, other = made("good"), made("other")

    def invalid(comment, flag, unlocked):
        group.invalid(comment, flag, code=good["code"], m1=good["m1"], unlocked=unlocked)

    mac = cbor.decode(good["unlocked"])[1]
    for position in (0, 31):
        flipped = bytearray(mac)
        flipped[position] ^= 1
        invalid(f"byte {position} of the MAC changed", "Impostor", encode([UNLOCKED, bytes(flipped)]))
    invalid("the answer to another code and challenge", "Impostor", other["unlocked"])
    invalid("the user's own MAC comes back", "Impostor", encode([UNLOCKED, cbor.decode(good["unlock"])[1]]))
    invalid("a MAC of zeros", "Impostor", encode([UNLOCKED, bytes(32)]))
    invalid("activated in place of unlocked", "WrongMessage", encode([ACTIVATED, mac]))
    invalid("a MAC of 31 bytes", "WrongSize", encode([UNLOCKED, mac[:31]]))
    invalid("a byte behind it", "TrailingBytes", good["unlocked"] + b"\0")


def check_unlocking_at_device(*, code, purpose, time, expires, m1, unlock, unlocked=None):
    require(purpose == "unlock", "Impostor")
    answer = activation.Unlocking(m1, code).answer(unlock)
    require(time < expires, "ExpiredCode")
    assert unlocked in (None, answer)


def _unlockings_at_device(group):
    def fields(label, **changes):
        code, m1 = code_of(f"unlock/{label}"), m1_of(f"unlock/{label}")
        made = {"code": code, "purpose": "unlock", "time": NOW, "expires": NOW + 600, "m1": m1}
        return {**made, "unlock": activation.Unlocking(m1, code).message(), **changes}

    for number in range(3):
        made = fields(number)
        answer = activation.Unlocking(made["m1"], made["code"]).answer(made["unlock"])
        group.valid(f"pseudo-random {number}", **made, unlocked=answer)
    good = fields("good")
    mac = cbor.decode(good["unlock"])[1]

    def invalid(comment, flag, **changes):
        group.invalid(comment, flag, **{**good, **changes})

    for position in (0, 31):
        flipped = bytearray(mac)
        flipped[position] ^= 1
        invalid(f"byte {position} of the MAC changed", "Impostor", unlock=encode([UNLOCK, bytes(flipped)]))
    invalid("another code", "Impostor", unlock=activation.Unlocking(good["m1"], code_of("guessed")).message())
    invalid("of another challenge", "Impostor", unlock=activation.Unlocking(m1_of("other"), good["code"]).message())
    invalid("the owner's code is for an activation", "Impostor", purpose="activation")
    invalid("the code has expired", "ExpiredCode", expires=NOW)
    invalid("a MAC of zeros", "Impostor", unlock=encode([UNLOCK, bytes(32)]))
    key = activation.code_key(good["code"], "activation")
    digest = activation.sha256(activation.framed(b"holdfast/1 unlock", good["m1"]))
    invalid("under the key of an activation", "Impostor", unlock=encode([UNLOCK, activation.hmac_sha256(key, digest)]))


# Results


def _sync(group):
    messages = Messages(group)
    items = [NOW, 7, 29833335]
    for comment, value in (
        ("both accounts", items),
        ("no password", [NOW, None, 7]),
        ("no seal", [NOW, 7, None]),
        ("neither", [NOW, None, None]),
    ):
        messages.valid(comment, encode(value))
    for comment, value in (("all zero", [0, 0, 0]), ("all 2^53 - 1", [LARGEST] * 3)):
        messages.valid(comment, encode(value), ("Boundary",))
    _result_faults(messages, items)
    messages.changed(items, 0, "time null", "WrongType", None)
    for index, name in ((0, "time"), (1, "password"), (2, "seal")):
        messages.changed(items, index, f"{name} negative", "WrongType", -1)
        messages.changed(items, index, f"{name} as text", "WrongType", "7")
        messages.changed(items, index, f"{name} 2^53", "IntegerTooLarge", 2**53)


def _state(group):
    messages = Messages(group)
    for items in ([0, 0], [5, 30], [LARGEST, 86400]):
        messages.valid(f"{items[0]} failures, {items[1]} s", encode(items))
    _result_faults(messages, [5, 30])
    for index, name in ((0, "failures"), (1, "seconds")):
        messages.changed([5, 30], index, f"{name} null", "WrongType", None)
        messages.changed([5, 30], index, f"{name} negative", "WrongType", -1)


def _result_faults(messages, items):
    good = encode(items)
    messages.invalid("an element too few", "WrongCount", encode(items[:-1]))
    messages.invalid("an element too many", "WrongCount", encode([*items, None]))
    messages.invalid("an empty array", "WrongCount", encode([]))
    messages.invalid("a map", "WrongType", encode(dict(enumerate(items))))
    messages.invalid("text", "WrongType", encode("7"))
    messages.invalid("cut short", "Truncated", good[:-1])
    messages.invalid("byte behind it", "TrailingBytes", good + b"\0")
    messages.invalid("of indefinite length", "IndefiniteLength", b"\x9f" + good[1:] + b"\xff")
    messages.changed(items, 1, "second element as a float", "Float", Encoded(b"\xf9\x3c\x00"))
    messages.changed(items, 1, "second element undefined", "SimpleValue", Encoded(b"\xf7"))
    messages.changed(items, 1, "second element in two bytes", "NonMinimalInteger", Encoded(b"\x18\x02"))


def check_host_code(*, secret, challenge, answer, deviceChallenge=None):
    own = activation.check_host_code(answer, secret, challenge)
    assert deviceChallenge in (None, own)


def _host_codes(group):
    def made(label, secret, challenge):
        own = pin(f"host/{label}/device", 8).hex()
        return own, f"{own} {oath.ocra(HOST_SUITE, secret, challenge + own)}".encode()

    for number in range(4):
        secret, challenge = pin(f"host/{number}", 32), pin(f"host/{number}/user", 8).hex()
        own, result = made(number, secret, challenge)
        group.valid(f"pseudo-random {number}", secret=secret, challenge=challenge, answer=result, deviceChallenge=own)
    secret, challenge = pin("host/good", 32), pin("host/good/user", 8).hex()
    own, good = made("good", secret, challenge)

    def invalid(comment, flag, result, **changes):
        group.invalid(comment, flag, **{"secret": secret, "challenge": challenge, "answer": result, **changes})

    digit = str((int(chr(good[-1])) + 1) % 10).encode()
    invalid("last digit of the code changed", "WrongCode", good[:-1] + digit)
    invalid("the code to another challenge", "WrongCode", good, challenge=pin("host/other/user", 8).hex())
    invalid("the code under another secret", "WrongCode", good, secret=pin("host/other", 32))
    swapped = oath.ocra(HOST_SUITE, secret, own + challenge)
    invalid("both challenges exchanged", "WrongCode", f"{own} {swapped}".encode())
    invalid("the user's challenge comes back", "WrongCode", challenge.encode() + good[16:])
    for comment, result in (
        ("no result", b""),
        ("no code", good[:16]),
        ("a space and no code", good[:17]),
        ("a code of 7 digits", good[:-1]),
        ("a code of 9 digits", good + b"0"),
        ("two spaces", good.replace(b" ", b"  ")),
        ("a space in front", b" " + good),
        ("a space behind", good + b" "),
        ("a tab in place of the space", good.replace(b" ", b"\t")),
        ("a line end behind", good + b"\n"),
        ("a challenge of 15 digits", good[1:]),
        ("a challenge of 17 digits", b"0" + good),
        ("a challenge with another letter", b"g" + good[1:]),
        ("a code with a letter", good[:-1] + b"a"),
        ("three words", good + b" 1"),
    ):
        invalid(comment, "HostCode", result)


CHECKS = {
    "OneUseCode": _check_code,
    "ActivationMessage": lambda message: activation.parse_message(message, FROM_USER),
    "ActivationReply": lambda message: activation.parse_message(message, FROM_DEVICE),
    "ActivationGrant": lambda message: activation.parse_grant(message),
    "Activation": check_activation,
    "ActivationAtDevice": check_activation_at_device,
    "Unlocking": check_unlocking,
    "UnlockingAtDevice": check_unlocking_at_device,
    "UserSyncResult": lambda message: activation.parse_sync(message),
    "UserStateResult": lambda message: activation.parse_state(message),
    "HostCodeResult": check_host_code,
}
WRITERS = (
    _codes,
    _messages,
    _replies,
    _grants,
    _activations,
    _activations_at_device,
    _unlockings,
    _unlockings_at_device,
    _sync,
    _state,
    _host_codes,
)
