"""What an external actuator and a device say to each other, in CBOR and in JSON, read strictly."""

from . import base64strict, cbor, strict_json
from .refusal import require, require_uint

LARGEST_JSON, LARGEST_RESULT = 16 * 1024, 1024


def _text(value, most):
    require(isinstance(value, str), "WrongType")
    require(len(value.encode()) <= most, "TextTooLong")
    return value


def _event(value):
    require(_text(value, 64), "WrongSize")
    require(value.isprintable(), "ControlCharacter")


def _commands(names):
    require(isinstance(names, list), "WrongType")
    for name in names:
        require(_text(name, 32), "WrongSize")
    require(1 <= len(names) <= 32, "WrongCount")
    require(len(set(names)) == len(names), "DuplicateCommand")


def commands_cbor(data):
    fields = cbor.decode(data)
    require(isinstance(fields, list), "WrongType")
    require(len(fields) == 2, "WrongCount")
    require(require_uint(fields[0]) == 2, "WrongMessage")
    _commands(fields[1])


def answer_cbor(data):
    fields = cbor.decode(data)
    require(isinstance(fields, list), "WrongType")
    require(2 <= len(fields) <= 4, "WrongCount")
    kind, outcome, *rest = fields
    require(require_uint(kind) in (0, 1), "WrongMessage")
    if kind == 0:
        require(isinstance(outcome, bytes), "WrongType")
        require(len(outcome) <= LARGEST_RESULT, "TooLarge")
    else:
        _text(outcome, 64)
    if rest:
        require_uint(rest[0])
    if rest[1:]:
        _event(rest[1])


def _object(data):
    require(len(data) <= LARGEST_JSON, "TooLarge")
    return strict_json.parse_object(data)


def commands_json(data):
    value = _object(data)
    require("commands" in value, "MissingMember")
    require(len(value) == 1, "UnknownMember")
    _commands(value["commands"])


def answer_json(data):
    value = _object(data)
    outcomes = value.keys() & {"result", "result_base64url", "error"}
    require("sequence" in value and outcomes, "MissingMember")
    require(len(outcomes) == 1 and value.keys() <= {"sequence", "event"} | outcomes, "UnknownMember")
    require_uint(value["sequence"])
    if "result" in value:
        require(len(_text(value["result"], 1 << 20).encode()) <= LARGEST_RESULT, "TooLarge")
    elif "result_base64url" in value:
        require(isinstance(value["result_base64url"], str), "WrongType")
        require(len(base64strict.url_decode(value["result_base64url"])) <= LARGEST_RESULT, "TooLarge")
    else:
        _text(value["error"], 64)
    if "event" in value:
        _event(value["event"])


def command_cbor(sequence, command, parameters, user, subject):
    return cbor.encode([1, sequence, command, list(parameters), user, subject])


def read_command_cbor(data):
    """Sequence, command, parameters, user and subject, as an actuator reads them."""
    fields = cbor.decode(data)
    require(isinstance(fields, list), "WrongType")
    require(len(fields) == 6, "WrongCount")
    require(require_uint(fields[0]) == 1, "WrongMessage")
    return _command(*fields[1:])


def read_command_json(data):
    """The same in JSON."""
    value = _object(data)
    names = ("sequence", "command", "parameters", "user", "subject")
    require(value.keys() >= set(names), "MissingMember")
    require(len(value) == len(names), "UnknownMember")
    return _command(*(value[name] for name in names))


def _command(sequence, command, parameters, user, subject):
    require_uint(sequence)
    _text(command, 32)
    require(isinstance(parameters, list), "WrongType")
    require(len(parameters) <= 8, "WrongCount")
    for parameter in parameters:
        _text(parameter, 64)
    if user is not None:
        _text(user, 32)
    _text(subject, 64)
    return sequence, command, parameters, user, subject
