"""actuator_test.json: messages between a device and an external actuator."""

import json

from holdfast_peer import actuator, base64strict, cbor
from holdfast_peer.cbor import Encoded, Tag, encode, head
from holdfast_peer.refusal import require

from .notes import NOTES
from .token_cases import LARGEST
from .vector_file import VectorFile, pin


def actuator_file():
    file = VectorFile(
        "HoldfastActuator",
        "actuator_schema_v1.json",
        [
            "ActuatorCommandsCBOR, ActuatorCommandsJSON: an actuator's first message. ActuatorAnswerCBOR, ActuatorAnswerJSON: its answers.",
            "ActuatorCommand: a command on its way to an actuator, as a device writes it.",
        ],
        NOTES,
    )
    writers = (_commands_cbor, _commands_json, _answers_cbor, _answers_json, _written)
    for (kind, check), write in zip(CHECKS.items(), writers, strict=True):
        write(file.group(kind, check))
    return file


def check_written(*, sequence, command, parameters, user, subject, cbor, json):
    command = (sequence, command, parameters, user, subject)
    require(actuator.read_command_cbor(cbor) == command, "WrongCommand")
    require(actuator.read_command_json(json) == command, "WrongCommand")
    require(cbor == actuator.command_cbor(*command) and json == _json(_members(*command)), "OtherForm")


CHECKS = {
    "ActuatorCommandsCBOR": lambda message: actuator.commands_cbor(message),
    "ActuatorCommandsJSON": lambda message: actuator.commands_json(message),
    "ActuatorAnswerCBOR": lambda message: actuator.answer_cbor(message),
    "ActuatorAnswerJSON": lambda message: actuator.answer_json(message),
    "ActuatorCommand": check_written,
}


def _json(value):
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


# Commands

LISTS = {
    "one command": ["unlock"],
    "three commands": ["lock", "unlock", "status"],
    "32 commands": [f"c{number}" for number in range(32)],
    "a command of 32 bytes": ["\u00fc" * 16],
}
BAD_LISTS = (
    ("no command", "WrongCount", []),
    ("33 commands", "WrongCount", [f"c{number}" for number in range(33)]),
    ("a command twice", "DuplicateCommand", ["lock", "unlock", "lock"]),
    ("an empty command", "WrongSize", [""]),
    ("a command of 33 bytes", "TextTooLong", ["c" * 33]),
    ("a number among them", "WrongType", ["lock", 1]),
    ("null among them", "WrongType", [None]),
    ("a list among them", "WrongType", [["lock"]]),
    ("text in place of the list", "WrongType", "lock"),
    ("null in place of the list", "WrongType", None),
)


def _commands_cbor(group):
    for comment, names in LISTS.items():
        group.valid(comment, message=encode([2, names]))
    for comment, flag, names in BAD_LISTS:
        group.invalid(comment, flag, message=encode([2, names]))
    for kind in (0, 1, 3):
        group.invalid(f"message {kind}", "WrongMessage", message=encode([kind, ["lock"]]))
    group.invalid("the device's own start", "WrongCount", message=encode([2]))
    group.invalid("a third element", "WrongCount", message=encode([2, ["lock"], 0]))
    _encodings(group, [2, ["lock"]])


def _commands_json(group):
    for comment, names in LISTS.items():
        group.valid(comment, message=_json({"commands": names}))
    group.valid("spaces", ("Representation",), message=b' { "commands" : [ "lock" ] } ')
    group.valid("escapes", ("Representation",), message=b'{"commands":["l\\u006fck"]}')
    for comment, flag, names in BAD_LISTS:
        group.invalid(comment, flag, message=_json({"commands": names}))
    group.invalid("a command twice, once escaped", "DuplicateCommand", message=b'{"commands":["lock","l\\u006fck"]}')
    group.invalid("another member", "UnknownMember", message=_json({"commands": ["lock"], "version": 1}))
    group.invalid("no member", "MissingMember", message=b"{}")
    group.invalid("the device's own start", "MissingMember", message=b'{"start":1}')
    _syntax(group, {"commands": ["lock"]})


def _encodings(group, items):
    """What can be wrong with the encoding of a message in CBOR."""
    for comment, flag, message in _bad_cbor(items):
        group.invalid(comment, flag, message=message)


def _bad_cbor(items):
    good, body = encode(items), b"".join(map(encode, items))
    return (
        ("empty", "Truncated", b""),
        ("cut short", "Truncated", good[:-1]),
        ("a byte behind it", "TrailingBytes", good + b"\0"),
        ("twice", "TrailingBytes", good * 2),
        ("a map", "WrongType", encode(dict(enumerate(items)))),
        ("in a byte string", "WrongType", encode(good)),
        ("of indefinite length", "IndefiniteLength", b"\x9f" + body + b"\xff"),
        ("length in two bytes", "NonMinimalInteger", head(cbor.ARRAY, len(items), 1) + body),
        ("tagged", "UnknownTag", encode(Tag(24, items))),
        ("number in two bytes", "NonMinimalInteger", encode([Encoded(head(0, items[0], 1)), *items[1:]])),
        ("number negative", "WrongType", encode([-1, *items[1:]])),
        ("number true", "WrongType", encode([True, *items[1:]])),
    )


def _syntax(group, value):
    """What can be wrong with a message in JSON."""
    for comment, flag, message in _bad_json(value):
        group.invalid(comment, flag, message=message)


def _bad_json(value):
    good = _json(value)
    return (
        ("empty", "JsonSyntax", b""),
        ("cut short", "JsonSyntax", good[:-1]),
        ("a second object behind it", "TrailingBytes", good + good),
        ("a comma behind the last member", "JsonSyntax", good[:-1] + b",}"),
        ("single quotes", "JsonSyntax", good.replace(b'"', b"'")),
        ("a list", "WrongType", b"[" + good + b"]"),
        ("null", "WrongType", b"null"),
        ("a byte order mark", "ByteOrderMark", b"\xef\xbb\xbf" + good),
        ("not UTF-8", "NotUtf8", good.replace(b'":', b'\xff":', 1)),
        ("a member twice", "DuplicateMember", good[:-1] + b"," + good[1:]),
        ("more than 16 KiB", "TooLarge", good + b" " * (16 * 1024 + 1 - len(good))),
    )


# Answers


def _answers_cbor(group):
    for comment, items in (
        ("done", [0, b"unlocked"]),
        ("done, without a result", [0, b""]),
        ("done, with its number", [0, b"unlocked", 7]),
        ("done, with an event", [0, b"unlocked", 7, "door open"]),
        ("failed", [1, "the bolt is stuck"]),
        ("failed, without words", [1, "", 7]),
        ("failed, with an event", [1, "the bolt is stuck", 7, "T\u00fcr offen"]),
    ):
        group.valid(comment, message=encode(items))
    for comment, items in (
        ("a result of 1024 bytes", [0, pin("actuator/result", 1024), LARGEST]),
        ("words of 64 bytes", [1, "w" * 64]),
        ("an event of 64 bytes", [0, b"", 0, "\u00fc" * 32]),
    ):
        group.valid(comment, ("Boundary",), message=encode(items))
    for comment, flag, items in (
        ("no outcome", "WrongCount", [0]),
        ("five elements", "WrongCount", [0, b"", 7, "open", 0]),
        ("outcome 2", "WrongMessage", [2, b""]),
        ("outcome 256", "WrongMessage", [256, b""]),
        ("a result as text", "WrongType", [0, "unlocked"]),
        ("a result null", "WrongType", [0, None]),
        ("a result of 1025 bytes", "TooLarge", [0, pin("actuator/result", 1025)]),
        ("words as bytes", "WrongType", [1, b"stuck"]),
        ("words of 65 bytes", "TextTooLong", [1, "w" * 65]),
        ("number negative in third place", "WrongType", [0, b"", -7]),
        ("number null in third place", "WrongType", [0, b"", None]),
        ("number 2^53", "IntegerTooLarge", [0, b"", 2**53]),
        ("an event without a number", "WrongType", [0, b"", "open"]),
        ("an event empty", "WrongSize", [0, b"", 7, ""]),
        ("an event of 65 bytes", "TextTooLong", [0, b"", 7, "e" * 65]),
        ("an event as bytes", "WrongType", [0, b"", 7, b"open"]),
        ("an event null", "WrongType", [0, b"", 7, None]),
        ("an event with a line end", "ControlCharacter", [0, b"", 7, "door\nopen"]),
        ("an event with an escape", "ControlCharacter", [0, b"", 7, "door\x1b[2J"]),
        ("an event with an override of direction", "ControlCharacter", [0, b"", 7, "door\u202eopen"]),
    ):
        group.invalid(comment, flag, message=encode(items))
    group.invalid("words not UTF-8", "NotUtf8", message=encode([1, Encoded(b"\x62\xc3\x28")]))
    _encodings(group, [0, b"unlocked", 7])


def _answers_json(group):
    good = {"sequence": 7, "result": "unlocked"}
    for comment, value in (
        ("done", good),
        ("done, without a result", {"sequence": 7, "result": ""}),
        ("done, with bytes", {"sequence": 7, "result_base64url": base64strict.url_encode(bytes(range(250, 256)))}),
        ("done, with an event", {**good, "event": "door open"}),
        ("failed", {"sequence": 7, "error": "the bolt is stuck"}),
        ("failed, with an event", {"event": "T\u00fcr offen", "error": "", "sequence": 7}),
    ):
        group.valid(comment, message=_json(value))
    for comment, value in (
        ("a result of 1024 bytes", {"sequence": LARGEST, "result": "r" * 1024}),
        ("1024 bytes", {"sequence": 0, "result_base64url": base64strict.url_encode(pin("actuator/result", 1024))}),
        ("words of 64 bytes", {"sequence": 0, "error": "w" * 64}),
        ("an event of 64 bytes", {**good, "event": "\u00fc" * 32}),
    ):
        group.valid(comment, ("Boundary",), message=_json(value))
    for comment, flag, value in (
        ("no number", "MissingMember", {"result": "unlocked"}),
        ("no outcome", "MissingMember", {"sequence": 7}),
        ("an event and no outcome", "MissingMember", {"sequence": 7, "event": "open"}),
        ("result and error", "UnknownMember", {**good, "error": "stuck"}),
        ("result in both forms", "UnknownMember", {**good, "result_base64url": ""}),
        ("another member", "UnknownMember", {**good, "time": 1}),
        ("number as text", "WrongType", {"sequence": "7", "result": ""}),
        ("number null", "WrongType", {"sequence": None, "result": ""}),
        ("result as a number", "WrongType", {"sequence": 7, "result": 1}),
        ("result null", "WrongType", {"sequence": 7, "result": None}),
        ("result of 1025 bytes", "TooLarge", {"sequence": 7, "result": "r" * 1025}),
        ("1025 bytes", "TooLarge", {"sequence": 7, "result_base64url": base64strict.url_encode(bytes(1025))}),
        ("base64url with padding", "Base64", {"sequence": 7, "result_base64url": "AA=="}),
        ("base64url with non-zero trailing bits", "Base64", {"sequence": 7, "result_base64url": "AB"}),
        ("base64 in the standard alphabet", "Base64", {"sequence": 7, "result_base64url": "+/+/"}),
        ("words of 65 bytes", "TextTooLong", {"sequence": 7, "error": "w" * 65}),
        ("error as true", "WrongType", {"sequence": 7, "error": True}),
        ("an event empty", "WrongSize", {**good, "event": ""}),
        ("an event of 65 bytes", "TextTooLong", {**good, "event": "e" * 65}),
        ("an event null", "WrongType", {**good, "event": None}),
        ("an event with a line end", "ControlCharacter", {**good, "event": "door\nopen"}),
    ):
        group.invalid(comment, flag, message=_json(value))
    for comment, number in (
        ("negative", b"-7"),
        ("with a fraction", b"7.0"),
        ("with an exponent", b"7e0"),
        ("with a leading zero", b"07"),
    ):
        message = b'{"sequence":' + number + b',"result":""}'
        group.invalid(f"number {comment}", "NumberForm", message=message)
    _syntax(group, good)


# Commands on their way


def _members(sequence, command, parameters, user, subject):
    return {"sequence": sequence, "command": command, "parameters": parameters, "user": user, "subject": subject}


def _written(group):
    def valid(comment, flags, *parts):
        fields = _members(*parts)
        group.valid(comment, flags, **fields, cbor=actuator.command_cbor(*parts), json=_json(fields))

    valid("without parameters", ("Normal",), 7, "unlock", [], None, "app")
    valid("with parameters and a user", ("Normal",), 8, "open-safe", ["7", "2026-11-21"], "alice", "app")
    valid("beyond ASCII", ("Normal",), 9, "\u00f6ffnen", ["\u20ac", "\U0001f512"], "\u00fc", "\u00e4pp")
    valid("8 parameters of 64 bytes", ("Boundary",), LARGEST, "c" * 32, ["p" * 64] * 8, "u" * 32, "s" * 64)
    _wrong_commands(group, 7, "open-safe", ["7", "2026-11-21"], "alice", "app")


def _wrong_commands(group, *parts):
    fields = _members(*parts)
    good = {**fields, "cbor": actuator.command_cbor(*parts), "json": _json(fields)}
    for comment, flag, name, value in (
        ("another number", "WrongCommand", "sequence", 8),
        ("another command", "WrongCommand", "command", "unlock"),
        ("parameters in another order", "WrongCommand", "parameters", ["2026-11-21", "7"]),
        ("no parameters", "WrongCommand", "parameters", []),
        ("another user", "WrongCommand", "user", "bob"),
        ("no user", "WrongCommand", "user", None),
        ("another subject", "WrongCommand", "subject", "App"),
        ("a number as text", "WrongType", "sequence", "7"),
        ("a command of 33 bytes", "TextTooLong", "command", "c" * 33),
        ("nine parameters", "WrongCount", "parameters", ["7"] * 9),
        ("a parameter of 65 bytes", "TextTooLong", "parameters", ["p" * 65]),
        ("a parameter as a number", "WrongType", "parameters", [7]),
        ("a user of 33 bytes", "TextTooLong", "user", "u" * 33),
        ("a subject null", "WrongType", "subject", None),
    ):
        changed = {**fields, name: value}
        group.invalid(f"{comment} in CBOR", flag, **{**good, "cbor": encode([1, *changed.values()])})
        group.invalid(f"{comment} in JSON", flag, **{**good, "json": _json(changed)})
    for comment, flag, message in (
        *_bad_cbor([1, *parts]),
        ("a message 2", "WrongMessage", encode([2, *parts])),
        ("an element too few", "WrongCount", encode([1, *parts[:-1]])),
        ("an element too many", "WrongCount", encode([1, *parts, None])),
    ):
        group.invalid(f"{comment}, in CBOR", flag, **{**good, "cbor": message})
    for comment, flag, message in (
        *_bad_json(fields),
        ("another member", "UnknownMember", _json({**fields, "time": 1})),
        ("a member too few", "MissingMember", _json({k: v for k, v in fields.items() if k != "user"})),
    ):
        group.invalid(f"{comment}, in JSON", flag, **{**good, "json": message})
