"""Holdfast for Python: prover, authenticator and device over libholdfast.so.1, with the standard library only.

The functions of holdfast.h are methods here; its comments say what each does. A call that does not do its work raises `Error`,
whose `code` is a number of `hf_error`. HOLDFAST_LIBRARY names another file of the library. Objects are context managers.

A prover needs a process without a `Device`: Python makes code at run time for each callback, which a measurement shows as
injected code. There is no `hf_prover_prove_over` for the same reason.
"""

import contextlib
import ctypes
import json
import os
from collections import namedtuple

_c = ctypes
_library = _c.CDLL(os.environ.get("HOLDFAST_LIBRARY", "libholdfast.so.1"))
_library.hf_text.restype = _c.c_char_p
_bytes, _text, _handle, _size = _c.POINTER(_c.c_uint8), _c.c_char_p, _c.c_void_p, _c.POINTER(_c.c_size_t)

ACCEPTED, COMMAND_REFUSED, REPLACE, KNOWN_CODE, TREE_DIGESTS = 0, 11, 1, 2, 4
_EVIDENCE, _CODE, _RESULT, _CHALLENGE, _VERDICT, _PROOF, _USER, _BUFFER = 4096, 17, 1024, 64, 1152, 32, 33, -2


class Error(Exception):
    def __init__(self, code):
        super().__init__(_library.hf_text(code).decode())
        self.code = code


def _structure(**fields):
    return type("Structure", (_c.Structure,), {"_fields_": list(fields.items())})


_names_type, _number = _c.POINTER(_text), _c.c_uint32
_codes = dict.fromkeys(("user", "otp", "seal"), _text)
_Request = _structure(command=_text, parameters=_names_type, parameter_count=_c.c_size_t, **_codes)
_Options = _structure(device_id=_text, timeout_milliseconds=_number)
_flags = dict.fromkeys(("is_authenticated", "is_repetition", "missing_factors", "retry_after_seconds"), _number)
_times = dict.fromkeys(("measure", "connect", "round", "device"), _c.c_uint64)
_Outcome = _structure(device_id=_c.c_uint8 * 16, **_flags, **_times)
_Record = _structure(user=_text, index=_number, secret=_text, secret_length=_c.c_size_t)
_Connection = _structure(endpoint=_text, channel=_handle, device_id=_text, timeout_milliseconds=_number)
_input = {"pin": _text, "pin_length": _c.c_size_t, "key": _text, "key_length": _c.c_size_t}
_Protection = _structure(**_input, binds_host=_number)
_has = dict.fromkeys(("has_otp", "has_seal"), _number)
_nexts = dict.fromkeys(("otp_next", "seal_next"), _c.c_uint64)
_Synchronised = _structure(device_id=_c.c_uint8 * 16, **_has, **_nexts, clock_offset_seconds=_c.c_int64)
_Show = _c.CFUNCTYPE(_c.c_int, _handle, _text)
_origin = {"user": _text, "subject": _text, "sequence": _c.c_uint64}
_Command = _structure(name=_text, parameters=_text * 8, parameter_count=_c.c_size_t, **_origin)
_Perform = _c.CFUNCTYPE(_c.c_int, _handle, _c.POINTER(_Command), _bytes, _size)
_Actuator = _structure(perform=_Perform, context=_handle, commands=_names_type, command_count=_c.c_size_t)
_Round = _structure(authenticated=_number, delay_milliseconds=_number, closes=_number, awaits_confirmation=_number)

Proof = namedtuple("Proof", "status text result device_id authenticated repetition missing_factors retry_after_seconds")
Command = namedtuple("Command", "name parameters user subject sequence")
Synchronised = namedtuple("Synchronised", "device_id otp_next seal_next clock_offset_seconds")
Verdict = namedtuple("Verdict", "status message delay_milliseconds closes awaits_confirmation")


def _call(name, *arguments):
    result = getattr(_library, name)(*arguments)
    if result < 0:
        raise Error(result)
    return result


def _filled(name, size, *arguments, after=()):
    """Calls a function with a buffer, and returns its result and the bytes. If the buffer is too small, calls it again."""
    buffer, length = _c.create_string_buffer(max(size, 1)), _c.c_size_t(size)
    result = getattr(_library, name)(*arguments, buffer, _c.byref(length), *after)
    if result == _BUFFER and length.value > size:
        return _filled(name, length.value, *arguments, after=after)
    if result < 0:
        raise Error(result)
    return result, buffer.raw[: length.value]


def _encoded(text):
    text = None if text is None else os.fsencode(text)
    if b"\0" in (text or b""):
        raise Error(-1)  # C would read only the part before it.
    return text


def _names(names):
    return (_text * len(names))(*map(_encoded, names)) if names else None


def _request(command, parameters=(), user=None, otp=None, seal=None):
    return _Request(_encoded(command), _names(parameters), len(parameters), *map(_encoded, (user, otp, seal)))


def _connection(endpoint, device_id=None, timeout=30):
    return _c.byref(_Connection(_encoded(endpoint), None, device_id, int(timeout * 1000)))


def protection(pin=None, key=None, binds_host=False):
    """What a record's secret needs: a PIN and a key as bytes, and this host."""
    return _Protection(pin, len(pin or b""), key, len(key or b""), binds_host)


def unlock(endpoint, code, timeout=30):
    _call("hf_authenticator_unlock", _connection(endpoint, timeout=timeout), _encoded(code))


class Denied(Exception):
    """A device's denial of a question; `status` is its `hf_status`."""

    def __init__(self, status):
        super().__init__(_library.hf_text(status).decode())
        self.status = status


def _answered(result):
    if result > 0:
        raise Denied(result)


class _Object(contextlib.AbstractContextManager):
    def __init__(self, kind, *arguments, by="open"):
        self._kind, self._handle = kind, _handle()
        _call(f"hf_{kind}_{by}", *arguments, _c.byref(self._handle))

    def _json(self, name, *arguments):
        return json.loads(_filled(name, 4096, self._handle, *arguments)[1][:-1])

    def close(self):
        getattr(_library, f"hf_{self._kind}_close")(self._handle)
        self._handle = _handle()

    def __exit__(self, *_):
        self.close()


class Prover(_Object):
    def __init__(self, state):
        super().__init__("prover", _encoded(state), None)

    def begin(self, device_id=None, subject=None, version=None, replace=False, known_code=False, tree_digests=False):
        numbers = None if version is None else (_c.c_uint64 * 3)(*version)
        flags = REPLACE * bool(replace) | KNOWN_CODE * bool(known_code) | TREE_DIGESTS * bool(tree_digests)
        arguments = (self._handle, device_id, _encoded(subject), numbers, _c.c_uint32(flags))
        return _filled("hf_prover_begin", _EVIDENCE, *arguments)[1]

    def accept(self, descriptor, token, report=None, replace=False):
        texts = [t if t is None or isinstance(t, str) else json.dumps(t) for t in (descriptor, report)]
        arguments = (_encoded(texts[0]), bytes(token), _c.c_size_t(len(token)), _encoded(texts[1]))
        _call("hf_prover_accept", self._handle, *arguments, _c.c_uint32(replace))

    def prove(self, endpoint, command, *parameters, device_id=None, timeout=30, **codes):
        request, outcome = _request(command, parameters, **codes), _Outcome()
        options = _Options(device_id, int(timeout * 1000))
        arguments = (self._handle, _encoded(endpoint), _c.byref(request), _c.byref(options))
        status, result = _filled("hf_prover_prove", _RESULT, *arguments, after=(_c.byref(outcome),))
        values = [getattr(outcome, name) for name in _flags]
        return Proof(status, _library.hf_text(status).decode(), result, bytes(outcome.device_id), *values)

    def cancel(self):
        _call("hf_prover_cancel", self._handle)

    def nonce_proof(self, device_id, nonce, of="integrity"):
        return _filled(f"hf_prover_{of}_proof", _PROOF, self._handle, device_id, nonce, _c.c_size_t(len(nonce)))[1]

    def explain(self, device_id=None):
        return self._json("hf_prover_explain", device_id)

    def status(self, device_id=None):
        return self._json("hf_prover_status", device_id)


class Authenticator(_Object):
    def __init__(self, folder, create=False):
        super().__init__("authenticator", _encoded(folder), by="create" if create else "open")

    def records(self, user=None):
        return self._json("hf_authenticator_records", _encoded(user))["records"]

    def activate(self, endpoint, code, protection=None, replace=False, timeout=30):
        """Returns the user's name and the device's id."""
        device, needs = (_c.c_uint8 * 16)(), protection and _c.byref(protection)
        arguments = (self._handle, _connection(endpoint, timeout=timeout), _encoded(code), needs, _number(replace))
        name = _filled("hf_authenticator_activate", _USER, *arguments, after=(device,))[1]
        return name[:-1].decode(), bytes(device)

    def synchronise(self, prover, endpoint, user=None, **conditions):
        said = _Synchronised()
        arguments = (self._handle, prover._handle, _encoded(user), _connection(endpoint, **conditions))
        _answered(_call("hf_authenticator_synchronise", *arguments, _c.byref(said)))
        nexts = (said.otp_next if said.has_otp else None, said.seal_next if said.has_seal else None)
        return Synchronised(bytes(said.device_id), *nexts, said.clock_offset_seconds)

    def check_host(self, prover, endpoint, user=None, **conditions):
        """Returns the device's challenge, if the device has proved itself."""
        arguments = (self._handle, prover._handle, _encoded(user), _connection(endpoint, **conditions))
        result, challenge = _filled("hf_authenticator_check_host", _CODE, *arguments)
        _answered(result)
        return challenge[:-1].decode()

    def change(self, show, user=None, index=0, old=None, new=None):
        """`show(undo_code)` says whether the person has it. Prove in another process: a callback is code made at run time."""

        def shown(_, code):
            try:  # An exception must not leave a callback.
                return 0 if show(code.decode()) else 1
            except Exception:
                return -1

        record, pointers = _Record(_encoded(user), index, None, 0), [each and _c.byref(each) for each in (old, new)]
        _call("hf_authenticator_change", self._handle, _c.byref(record), *pointers, _Show(shown), None)

    def undo(self, user, undo_code):
        _call("hf_authenticator_undo", self._handle, _encoded(user), _encoded(undo_code))

    def confirm(self, user, index=0):
        _call("hf_authenticator_confirm", self._handle, _encoded(user), _number(index))

    def password(self, user=None, index=0, secret=None, question=None):
        return self._code("password", user, index, secret, _encoded(question))

    def seal(self, command, *parameters, user=None, index=0, secret=None, device_challenge=None):
        request = _request(command, parameters)
        return self._code("seal", user, index, secret, _c.byref(request), _encoded(device_challenge))

    def _code(self, kind, user, index, secret, *arguments):
        record = _c.byref(_Record(_encoded(user), index, secret, len(secret or b"")))
        arguments = (self._handle, record, *arguments)
        return _filled(f"hf_authenticator_{kind}", _CODE, *arguments, after=(None,))[1][:-1].decode()


class Device(_Object):
    """A device whose machine is `perform(command)`: it returns the answer as bytes, or raises; LookupError: unknown."""

    def __init__(self, folder, perform, commands=()):
        decoded = lambda text: None if text is None else text.decode()

        def carry_out(_, command, result, length):
            c = command.contents
            texts = [decoded(t) for t in (c.name, *c.parameters[: c.parameter_count], c.user, c.subject)]
            try:  # An exception must not leave a callback.
                answer = perform(Command(texts[0], texts[1:-2], *texts[-2:], c.sequence))
            except LookupError:
                return COMMAND_REFUSED
            except Exception:
                return -1
            length[0] = len(answer)
            _c.memmove(result, answer[:_RESULT], min(len(answer), _RESULT))
            return 0

        self._actuator = _Actuator(_Perform(carry_out), None, _names(commands), len(commands))
        super().__init__("device", _encoded(folder), _c.byref(self._actuator))

    def descriptor(self):
        return self._json("hf_device_descriptor")

    def serve(self, *endpoints):
        _call("hf_device_serve", self._handle, _names(endpoints), _c.c_size_t(len(endpoints)))

    def stop(self):
        _call("hf_device_stop", self._handle)

    def session(self):
        return Session("session", self._handle)


class Session(_Object):
    def challenge(self):
        return _filled("hf_session_challenge", _CHALLENGE, self._handle)[1]

    def receive(self, message, waited_milliseconds=0):
        made = _Round()
        message = (message, _c.c_size_t(len(message)), _c.c_uint64(waited_milliseconds))
        status, verdict = _filled("hf_session_receive", _VERDICT, self._handle, *message, after=(_c.byref(made),))
        return Verdict(status, verdict, made.delay_milliseconds, bool(made.closes), bool(made.awaits_confirmation))

    def refuse(self, status):
        return _filled("hf_session_refuse", _VERDICT, self._handle, _c.c_int(status))[1]
