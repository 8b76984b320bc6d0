"""seal_test.json: what seals and refusals are made over, the codes themselves, and a device's requests for them."""

import unicodedata

from holdfast_peer import activation, oath, seal_requests
from holdfast_peer.refusal import require

from .notes import NOTES
from .token_cases import DEVICE_ID, LARGEST
from .vector_file import VectorFile, pin

SUITE = "OCRA-1:HOTP-SHA256-8:QH64-T1M"
NOW = 1790000100


def seal_file():
    file = VectorFile(
        "HoldfastSeal",
        "seal_schema_v1.json",
        [
            "SealFields: the form in which an authenticator seals texts. SealQuestion: what a seal and a refusal cover.",
            "Seal: a code over a command. SealRequest: a device's request for a seal, as text.",
        ],
        NOTES,
    )
    for (kind, check), write in zip(CHECKS.items(), (_fields, _questions, _seals, _requests), strict=True):
        write(file.group(kind, check))
    return file


# The texts

# Default_Ignorable_Code_Point of Unicode 15: DerivedCoreProperties.txt.
_INVISIBLE = (
    *((0xAD, 0xAD), (0x34F, 0x34F), (0x61C, 0x61C), (0x115F, 0x1160), (0x17B4, 0x17B5), (0x180B, 0x180F)),
    *((0x200B, 0x200F), (0x202A, 0x202E), (0x2060, 0x206F), (0x3164, 0x3164), (0xFE00, 0xFE0F), (0xFEFF, 0xFEFF)),
    *((0xFFA0, 0xFFA0), (0xFFF0, 0xFFF8), (0x1BCA0, 0x1BCA3), (0x1D173, 0x1D17A), (0xE0000, 0xE0FFF)),
)


def _field(text, most):
    text = unicodedata.normalize("NFC", text)
    require(text, "WrongSize")
    for character in text:
        is_invisible = any(first <= ord(character) <= last for first, last in _INVISIBLE)
        require(unicodedata.category(character) != "Cc" and not is_invisible, "ControlCharacter")
    require(len(text.encode()) <= most, "TextTooLong")
    return text


def check_fields(*, command, parameters, fieldByteLimit, sealed=None):
    made = [_field(command, 32)]
    require(len(parameters) <= 8, "WrongCount")
    for parameter in parameters:
        made.append(_field(parameter, min(fieldByteLimit or 64, 64)))
        require(fieldByteLimit is not None or len(made[-1]) <= 16, "TextTooLong")
    assert sealed in (None, made)


def _fields(group):
    def valid(comment, sealed, limit=None, given=None, flags=("Normal",)):
        command, *parameters = given or sealed
        group.valid(comment, flags, command=command, parameters=parameters, fieldByteLimit=limit, sealed=sealed)

    valid("command only", ["lock"])
    valid("two parameters", ["open-safe", "7", "2026-11-21"])
    valid("a letter and its mark become one character", ["open", "\u00fc"], given=["open", "u\u0308"])
    valid("a singleton becomes its letter", ["open", "\u03a9"], given=["open", "\u2126"])
    valid("marks in canonical order", ["open", "q\u0323\u0307"], given=["open", "q\u0307\u0323"])
    valid("Hangul is composed", ["open", "\ud55c"], given=["open", "\u1112\u1161\u11ab"])
    valid("a composition exclusion is decomposed", ["open", "\u0915\u093c"], given=["open", "\u0958"])
    valid("a ligature stays", ["open", "\ufb01"])
    valid("16 characters of four bytes", ["open", "\U0001f512" * 16], flags=("Boundary",))
    valid("16 characters", ["open", "p" * 16], flags=("Boundary",))
    valid("64 bytes under a limit of 64", ["open", "p" * 64], 64, flags=("Boundary",))
    valid("8 parameters", ["open", *"12345678"], flags=("Boundary",))
    valid("command of 32 bytes", ["c" * 32], flags=("Boundary",))
    valid("8 bytes under a limit of 8", ["open", "\u00fc" * 4], 8, flags=("Boundary",))

    def invalid(comment, flag, command, *parameters, limit=None):
        group.invalid(comment, flag, command=command, parameters=list(parameters), fieldByteLimit=limit)

    invalid("command empty", "WrongSize", "")
    invalid("parameter empty", "WrongSize", "open", "7", "")
    invalid("command of 33 bytes", "TextTooLong", "c" * 33)
    invalid("17 characters", "TextTooLong", "open", "p" * 17)
    invalid("65 bytes under a limit of 64", "TextTooLong", "open", "p" * 65, limit=64)
    invalid("9 bytes under a limit of 8", "TextTooLong", "open", "p" * 9, limit=8)
    invalid("9 parameters", "WrongCount", "open", *"123456789")
    for name, character in (
        ("a zero byte", "\0"),
        ("a line end", "\n"),
        ("an escape", "\x1b"),
        ("DEL", "\x7f"),
        ("a C1 control", "\x9b"),
        ("a soft hyphen", "\u00ad"),
        ("a zero width space", "\u200b"),
        ("a zero width joiner", "\u200d"),
        ("a right-to-left override", "\u202e"),
        ("a left-to-right isolate", "\u2066"),
        ("a byte order mark", "\ufeff"),
        ("a variation selector", "\ufe0f"),
        ("a tag character", "\U000e0041"),
        ("a Hangul filler", "\u3164"),
    ):
        invalid(f"{name} in the command", "ControlCharacter", f"lo{character}ck")
        invalid(f"{name} in a parameter", "ControlCharacter", "open", f"7{character}")


# Questions and codes


def check_question(*, command, parameters, question, refusalQuestion):
    require(question.hex() == activation.seal_question(command, parameters), "WrongQuestion")
    require(refusalQuestion.hex() == activation.refusal_question(command, parameters), "WrongQuestion")


def _questions(group):
    def made(command, *parameters):
        return {
            "command": command,
            "parameters": list(parameters),
            "question": bytes.fromhex(activation.seal_question(command, parameters)),
            "refusalQuestion": bytes.fromhex(activation.refusal_question(command, parameters)),
        }

    group.valid("the protocol's example", **made("open-safe", "7", "2026-11-21"))
    group.valid("no parameter", **made("lock"))
    group.valid("an empty parameter", **made("open", ""))
    group.valid("not in NFC: the bytes count", **made("open", "u\u0308"))
    group.valid("8 parameters of 64 bytes", ("Boundary",), **made("open", *["p" * 64] * 8))
    group.valid("command of 32 bytes", ("Boundary",), **made("c" * 32))
    good = made("open-safe", "7", "2026-11-21")

    def invalid(comment, other, names=("question", "refusalQuestion")):
        group.invalid(comment, "WrongQuestion", **{**good, **{name: other[name] for name in names}})

    invalid("of another command", made("open-safd", "7", "2026-11-21"))
    invalid("of another parameter", made("open-safe", "8", "2026-11-21"))
    invalid("parameters exchanged", made("open-safe", "2026-11-21", "7"))
    invalid("parameters joined", made("open-safe", "72026-11-21"))
    invalid("a parameter too few", made("open-safe", "7"))
    invalid("an empty parameter too many", made("open-safe", "7", "2026-11-21", ""))
    invalid("the command among the parameters", made("", "open-safe", "7", "2026-11-21"))
    exchanged = {"question": good["refusalQuestion"], "refusalQuestion": good["question"]}
    invalid("seal and refusal exchanged", exchanged)
    invalid("the refusal is the seal", {**good, "refusalQuestion": good["question"]})
    changed = good["question"][:-1] + bytes([good["question"][-1] ^ 1])
    invalid("the last digit changed", {**good, "question": changed})


def check_seal(*, suite, secret, command, parameters, seal, challenge="", counter=None, timeStep=None):
    parts = oath.parse_suite(suite)
    fits = parts["format"] == "H" and parts["length"] == 64 and parts["digits"] and not parts["pin"]
    require(fits and not parts["session"] and not (parts["counter"] and parts["step"]), "UnfitSuite")
    needs_challenge = not parts["counter"] and not parts["step"]
    require(needs_challenge == bool(challenge), "Inputs")
    question = challenge + activation.seal_question(command, parameters)
    numbers = [None if value is None else int(value.hex(), 16) for value in (counter, timeStep)]
    made = oath.ocra(suite, secret, question, counter=numbers[0], time=numbers[1])
    require(made == seal, "WrongCode")


def _seals(group):
    secret = pin("seal/secret", 32)

    def made(suite, command="open-safe", parameters=("7", "2026-11-21"), key=secret, refusal=False, **inputs):
        over = (activation.refusal_question if refusal else activation.seal_question)(command, parameters)
        counter, step = inputs.get("counter"), inputs.get("timeStep")
        code = oath.ocra(suite, key, inputs.get("challenge", "") + over, counter=counter, time=step)
        given = {k: v.to_bytes(8, "big") if k != "challenge" else v for k, v in inputs.items()}
        return {
            "suite": suite,
            "secret": key,
            "command": command,
            "parameters": list(parameters),
            **given,
            "seal": code,
        }

    step = NOW // 60
    for hashed in oath.HASHES:
        for digits in (4, 6, 8, 10):
            suite = f"OCRA-1:HOTP-{hashed}-{digits}:QH64-T1M"
            group.valid(f"by time, {hashed}, {digits} digits", **made(suite, timeStep=step))
    counted, challenged = "OCRA-1:HOTP-SHA256-8:C-QH64", "OCRA-1:HOTP-SHA256-8:QH64"
    for counter in (0, 1, 2**53, 2**64 - 1):
        group.valid(f"by counter {counter}", ("Boundary",), **made(counted, counter=counter))
    challenge = pin("seal/challenge", 8).hex()
    group.valid("over a challenge", **made(challenged, challenge=challenge))
    group.valid("over a challenge of zeros", ("Boundary",), **made(challenged, challenge="0" * 16))
    group.valid("no parameter", **made(SUITE, "lock", (), timeStep=step))
    group.valid("8 parameters beyond ASCII", **made(SUITE, "open", ["\u00fc\u20ac"] * 8, timeStep=step))
    group.valid("a secret of one byte", ("Boundary",), **made(SUITE, key=b"\1", timeStep=step))
    group.valid("a secret of 64 bytes", ("Boundary",), **made(SUITE, key=pin("seal/long", 64), timeStep=step))
    good = made(SUITE, timeStep=step)

    def invalid(comment, flag="WrongCode", base=good, **changes):
        group.invalid(comment, flag, **{**base, **changes})

    invalid("of another command", command="open-safd")
    invalid("of another parameter", parameters=["8", "2026-11-21"])
    invalid("of parameters in another order", parameters=["2026-11-21", "7"])
    invalid("of one parameter more", parameters=["7", "2026-11-21", ""])
    invalid("of the next time step", timeStep=(step + 1).to_bytes(8, "big"))
    invalid("under another secret", secret=pin("seal/other", 32))
    invalid("a refusal in its place", seal=made(SUITE, refusal=True, timeStep=step)["seal"])
    invalid("a digit too few", seal=good["seal"][:-1])
    invalid("a digit too many", seal=good["seal"] + "0")
    invalid("the last digit changed", seal=good["seal"][:-1] + str((int(good["seal"][-1]) + 1) % 10))
    invalid("no code", seal="")
    by_counter, over = made(counted, counter=7), made(challenged, challenge=challenge)
    invalid("of the next counter", base=by_counter, counter=(8).to_bytes(8, "big"))
    invalid("over another challenge", base=over, challenge=pin("seal/another", 8).hex())
    invalid("without the challenge that the suite needs", "Inputs", base=over, challenge="")
    invalid("with a challenge that the suite does not need", "Inputs", challenge=challenge)
    for suite in (
        "OCRA-1:HOTP-SHA256-8:QH63-T1M",
        "OCRA-1:HOTP-SHA256-8:QN64-T1M",
        "OCRA-1:HOTP-SHA256-8:QA64-T1M",
        "OCRA-1:HOTP-SHA256-0:QH64-T1M",
        "OCRA-1:HOTP-SHA256-8:QH64-PSHA1-T1M",
        "OCRA-1:HOTP-SHA256-8:QH64-S064-T1M",
        "OCRA-1:HOTP-SHA256-8:C-QH64-T1M",
        "OCRA-1:HOTP-SHA256-8:QH16",
    ):
        invalid(f"suite {suite}", "UnfitSuite", suite=suite)
    for suite in ("OCRA-1:HOTP-SHA256-3:QH64-T1M", "OCRA-1:HOTP-SHA384-8:QH64-T1M", "HOTP-SHA256-8:QH64-T1M", ""):
        invalid(f"suite {suite!r}", "Suite", suite=suite)


# Requests


def check_request(*, secret, request, **expected):
    fields = seal_requests.check(request, secret)
    assert not expected or fields == expected, expected


def _requests(group):
    secret = pin("seal request/secret", 32)
    base = {
        "device": DEVICE_ID,
        "user": "alice",
        "command": "open-safe",
        "parameters": ["7", "2026-11-21"],
        "challenge": pin("seal request/challenge", 8).hex(),
        "expires": NOW + 300,
        "text": None,
    }

    def valid(comment, flags=("Normal",), key=secret, **changes):
        fields = {**base, **changes}
        text = seal_requests.signed(seal_requests.body(**fields), key)
        group.valid(comment, flags, secret=key, request=text, **fields)

    valid("two parameters")
    valid("no parameter", parameters=[])
    valid("no expiry", expires=None)
    valid("a text", text="Open safe 7 on 2026-11-21?")
    valid("a text beyond ASCII", text="\u00d6ffne Tresor 7 \u2013 100 %?")
    valid("neither expiry nor text", expires=None, parameters=[])
    valid("each unreserved character", user="AZaz09-._~")
    valid("each reserved character", parameters=[" !\"#$%&'()*+,/:;<=>?@[\\]^`{|}"])
    valid("a control character in a parameter", parameters=["\n\0\x7f"])
    valid("an empty parameter", ("Boundary",), parameters=[""])
    valid("user and command of 32 bytes", ("Boundary",), user="\u00fc" * 16, command="c" * 32)
    valid("6 parameters of 64 bytes", ("Boundary",), parameters=["p" * 64] * 6)
    valid("a text of 256 bytes", ("Boundary",), text="t" * 256)
    for expires in (0, LARGEST):
        valid(f"expiry {expires}", ("Boundary",), expires=expires)
    valid("700 bytes", ("Boundary",), parameters=["p" * 64] * 6, text="t" * _room(base, secret))
    valid("a secret of 20 bytes", key=pin("seal request/short", 20))
    _bad_requests(group, secret, base)


def _room(base, secret):
    """The length of a text that fills a request with 6 whole parameters."""
    fields = {**base, "parameters": ["p" * 64] * 6, "text": ""}
    return 700 - len(seal_requests.signed(seal_requests.body(**fields), secret))


def _bad_requests(group, secret, base):
    before = seal_requests.body(**base)
    good = seal_requests.signed(before, secret)

    def raw(comment, flag, text):
        group.invalid(comment, flag, secret=secret, request=text)

    def signed(comment, flag, text):
        raw(comment, flag, seal_requests.signed(text, secret))

    def made(comment, flag, **changes):
        signed(comment, flag, seal_requests.body(**{**base, **changes}))

    def replaced(comment, flag, old, new):
        assert old in before, old
        signed(comment, flag, before.replace(old, new, 1))

    raw("the last digit of the code changed", "WrongCode", good[:-1] + (b"0" if good[-1:] != b"0" else b"1"))
    raw(
        "the first digit of the code changed",
        "WrongCode",
        good[:-32] + (b"0" if good[-32:-31] != b"0" else b"1") + good[-31:],
    )
    raw("a code of zeros", "WrongCode", before + b"&h=" + b"0" * 32)
    for name, old, new in (
        ("user", b"u=alice", b"u=alicf"),
        ("command", b"c=open", b"c=opem"),
        ("first parameter", b"p=7", b"p=8"),
        ("expiry", b"e=179", b"e=189"),
    ):
        raw(f"{name} changed under the code", "WrongCode", good.replace(old, new, 1))
    raw("a parameter removed under the code", "WrongCode", good.replace(b"&p=7", b"", 1))
    raw("the expiry removed under the code", "WrongCode", good.replace(b"&e=1790000400", b"", 1))
    other = seal_requests.signed(before, pin("seal request/other", 32))
    raw("the code of another secret", "WrongCode", other)
    question = activation.sha256(b"holdfast/1 seal\x00" + before).hex()
    raw(
        "the code over the label of a seal",
        "WrongCode",
        before + b"&h=" + oath.ocra(seal_requests.SUITE, secret, question)[:32].encode(),
    )
    whole = oath.ocra(seal_requests.SUITE, secret, activation.sha256(b"holdfast/1 seal request\x00" + before).hex())
    raw("the last half of the response", "WrongCode", before + b"&h=" + whole[32:].encode())
    raw("the whole response", "CodeForm", before + b"&h=" + whole.encode())
    raw("a code of 31 digits", "CodeForm", good[:-1])
    raw("a code in capitals", "CodeForm", before + b"&h=" + good[-32:].upper())
    raw("no code", "Fields", before)
    raw("an empty code", "CodeForm", before + b"&h=")
    raw("a line end behind it", "Percent", good + b"\n")
    raw("a field behind the code", "Fields", good + b"&x=1")
    raw("empty", "Scheme", b"")
    raw("the scheme only", "WrongVersion", b"holdfast-seal:")
    raw("another scheme", "Scheme", b"holdfast-sea1" + good[13:])
    raw("scheme in capitals", "Scheme", b"HOLDFAST-SEAL:" + good[14:])
    raw("a space in front", "Scheme", b" " + good)
    for version in (b"0", b"2", b"01", b"", b"1.0"):
        signed(f"version {version.decode()!r}", "WrongVersion", before.replace(b":1?", b":" + version + b"?", 1))
    made("701 bytes", "TooLarge", parameters=["p" * 64] * 6, text="t" * (_room(base, secret) + 1))
    made("7 parameters", "WrongCount", parameters=list("1234567"))
    made("user of 33 bytes", "TextTooLong", user="u" * 33)
    made("user empty", "WrongSize", user="")
    made("command of 33 bytes", "TextTooLong", command="c" * 33)
    made("command empty", "WrongSize", command="")
    made("parameter of 65 bytes", "TextTooLong", parameters=["p" * 65])
    made("text of 257 bytes", "TextTooLong", text="t" * 257)
    made("text empty", "WrongSize", text="")
    made("device of 15 bytes", "WrongSize", device=DEVICE_ID[:15])
    made("device of 17 bytes", "WrongSize", device=DEVICE_ID + b"\0")
    made("expiry 2^53", "IntegerTooLarge", expires=2**53)
    made("expiry negative", "NumberForm", expires=-1)
    made("challenge of 15 digits", "Digits16", challenge=base["challenge"][1:])
    made("challenge of 17 digits", "Digits16", challenge="0" + base["challenge"])
    made("challenge in capitals", "Digits16", challenge="ABCDEF0123456789")
    made("challenge with another letter", "Digits16", challenge="g" + base["challenge"][1:])
    replaced("a zero before the expiry", "NumberForm", b"e=1", b"e=01")
    replaced("a plus before the expiry", "NumberForm", b"e=1", b"e=%2B1")
    replaced("expiry with a fraction", "NumberForm", b"e=1790000400", b"e=1790000400.0")
    replaced("expiry empty", "NumberForm", b"e=1790000400", b"e=")
    replaced("expiry twice", "Fields", b"&e=1790000400", b"&e=1790000400&e=1790000400")
    replaced("user twice", "Fields", b"&u=alice", b"&u=alice&u=alice")
    replaced("user missing", "Fields", b"&u=alice", b"")
    replaced("command missing", "Fields", b"&c=open-safe", b"")
    replaced("challenge missing", "Fields", b"&i=" + base["challenge"].encode(), b"")
    replaced("user behind the command", "Fields", b"u=alice&c=open-safe", b"c=open-safe&u=alice")
    replaced("a field that is not defined", "Fields", b"&c=", b"&x=1&c=")
    replaced("a field without a value", "Fields", b"&p=7", b"&p")
    replaced("an empty field", "Fields", b"&p=7", b"&&p=7")
    replaced("a name in capitals", "Fields", b"&u=", b"&U=")
    replaced("a semicolon in place of an ampersand", "Fields", b"&c=", b";c=")
    replaced("an unreserved character as an escape", "Percent", b"u=alice", b"u=%61lice")
    replaced("an escape in small letters", "Percent", b"p=7", b"p=%2f")
    replaced("half an escape", "Percent", b"p=7", b"p=%2")
    replaced("an escape of other characters", "Percent", b"p=7", b"p=%G0")
    replaced("a space that is not escaped", "Percent", b"p=7", b"p=7 8")
    replaced("a plus for a space", "Percent", b"p=7", b"p=7+8")
    replaced("a character beyond ASCII that is not escaped", "Percent", b"p=7", b"p=\xc3\xbc")
    replaced("an escape that is not UTF-8", "NotUtf8", b"p=7", b"p=%FF")
    replaced("half a character", "NotUtf8", b"p=7", b"p=%C3")
    replaced("an overlong character", "NotUtf8", b"p=7", b"p=%C0%80")
    last = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    device = before.split(b"d=")[1].split(b"&")[0]
    trailing = device[:-1] + last[last.index(chr(device[-1])) + 1].encode()
    replaced("device with non-zero trailing bits", "Base64", device, trailing)
    replaced("device in the standard alphabet", "Percent", device, device.replace(b"-", b"+").replace(b"_", b"/"))


CHECKS = {
    "SealFields": check_fields,
    "SealQuestion": check_question,
    "Seal": check_seal,
    "SealRequest": check_request,
}
