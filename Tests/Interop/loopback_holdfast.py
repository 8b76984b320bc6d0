#!/usr/bin/env python3
"""A stand-in for the command line, made of this package alone, by which the interoperability scripts test themselves.

It has the verbs that the scripts use: device init|show|trust|serve, service init|show|device add, enroll, prove.
"""

import argparse
import json
import os
import pathlib
import secrets
import shutil
import signal
import sys
import threading
import time

from holdfast_peer import measurement, session, transport
from holdfast_peer.command_line import descriptor_json, read_descriptor
from holdfast_peer.device import Device, Ledger
from holdfast_peer.issuer import Grant, Issuer, fresh_claims
from holdfast_peer.keys import PrivateKey, jwk, point_of_jwk
from holdfast_peer.primitives import sha256
from holdfast_peer.prover import Attempt
from holdfast_peer.refusal import Refused
from holdfast_peer.state import enrolment

DENIED, MALFORMED, IMPOSTOR, UNAVAILABLE = 1, 2, 3, 69
PROOF_KEY = sha256(b"loopback development key")[:16]
FORMATS = {"cose": session.COSE, "jose": session.JOSE}


def endpoint(text):
    kind, _, path = text.partition(":")
    assert kind == "unix", text
    return path


def read(path):
    return json.loads(pathlib.Path(path).read_text())


def write(path, value):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value))
    path.chmod(0o600)


# device

def device(options):
    keys = options.dir / "key.json"
    if options.verb == "init":
        write(keys, {"key": PrivateKey().scalar.hex(), "id": secrets.token_hex(16), "issuers": []})
        return 0
    state = read(keys)
    key, device_id = PrivateKey(bytes.fromhex(state["key"])), bytes.fromhex(state["id"])
    if options.verb == "show":
        print(json.dumps(descriptor_json(key, device_id)))
    elif options.verb == "trust":
        state["issuers"].append(point_of_jwk(read(options.file)).hex())
        write(keys, state)
    else:
        issuers = [bytes.fromhex(point) for point in state["issuers"]]
        serve(Device(key, device_id, issuers, Ledger(str(options.dir / "ledger.json"))), endpoint(options.listen))
    return 0


def serve(model, path):
    def terminate(*_):
        os._exit(0)

    def one(connection):
        with connection:
            try:
                model.serve(connection)
            except (transport.Closed, TimeoutError):
                pass

    signal.signal(signal.SIGTERM, terminate)
    listener = transport.Listener(path)
    while True:
        try:
            connection = listener.accept(3600)
        except TimeoutError:
            continue
        threading.Thread(target=one, args=(connection,), daemon=True).start()


# service and enrollment

def service(options):
    path = options.dir / "service.json"
    if options.verb == "device":
        # Its list is not kept: the scripts register every device that they enrol for.
        read_descriptor(read(options.descriptor))
    elif options.verb == "init":
        write(path, {"key": PrivateKey().scalar.hex()})
    else:
        print(json.dumps({"issuer": jwk(PrivateKey(bytes.fromhex(read(path)["key"])).point)}))
    return 0


def components():
    """The components of the app and of the device, as they are now."""
    secret = pathlib.Path(os.environ["XDG_DATA_HOME"]) / "holdfast" / "device.secret"
    if not secret.exists():
        write(secret, secrets.token_hex(32))
    app = {name: sha256(b"") for name in ("app.debug", "app.injected", "app.text")}
    app["app.image"] = sha256(pathlib.Path(__file__).read_bytes())
    app["os.release"] = sha256(pathlib.Path("/etc/os-release").read_bytes())
    device_ids = {name: sha256(name.encode()) for name in ("device.cpu", "device.machine")}
    device_ids["device.secret"] = sha256(secret.read_bytes())
    return list(app.items()), list(device_ids.items())


def measure(configuration):
    app, device_components = components()
    salt = measurement.parse_configuration(configuration)["salt"]
    return {"integrity": measurement.integrity_measurement(salt, configuration, app, device_components),
            "device": measurement.device_measurement(salt, configuration, device_components), "proofKey": PROOF_KEY}


def enroll(options):
    descriptor = read_descriptor(read(options.device))
    issuer = Issuer(PrivateKey(bytes.fromhex(read(options.service / "service.json")["key"])))
    app, device_components = components()
    configuration = measurement.configuration(secrets.token_bytes(32), measurement.proof_key_id(PROOF_KEY),
                                              dict(app), dict(device_components), int(time.time()))
    claims = fresh_claims(descriptor.device_id, **measure(configuration))
    grant = issuer.grant(descriptor.point, claims, FORMATS[options.format])
    devices = options.state / "devices"
    place, new = devices / descriptor.device_id.hex(), devices / f".new-{descriptor.device_id.hex()}"
    if place.exists() and not options.replace:
        return MALFORMED
    for left in new.iterdir() if new.exists() else ():
        left.unlink()
    new.mkdir(parents=True, exist_ok=True)
    (new / "measurement_config.bin").write_bytes(configuration)
    (new / f"measurement_token.{options.format}").write_bytes(grant.token)
    write(new / "prover.json", {"device": read(options.device), "remembered": False, "format": options.format})
    if place.exists():
        shutil.rmtree(place)
    new.rename(place)
    return 0


# prove

class Ended(Exception):
    """The proof ended with an exit status, and a device's status where there is one."""

    def __init__(self, code, status=None):
        super().__init__()
        self.code, self.status = code, status


class State:
    """The prover's state folder."""

    def __init__(self, folder):
        self.path = folder / "prover.json"
        self.notes = read(self.path)
        self.descriptor = read_descriptor(self.notes["device"])
        token = (folder / f"measurement_token.{self.notes['format']}").read_bytes()
        configuration = (folder / "measurement_config.bin").read_bytes()
        self.grant = Grant(token, FORMATS[self.notes["format"]], measure(configuration))

    def remember(self, known):
        if self.notes["remembered"] != known:
            self.notes["remembered"] = known
            write(self.path, self.notes)


def prove(options):
    state = State(enrolment(options.state))
    status = None
    try:
        with transport.connect(endpoint(options.connect), options.timeout) as connection:
            prove_over(connection, state, options.command)
    except Ended as end:
        code, status = end.code, end.status
    except (transport.Closed, OSError):
        code = UNAVAILABLE
    names = {number: name for name, number in session.STATUS.items()}
    if options.json and status is not None:
        print(json.dumps({"status": names.get(status, status)}))
    return code


def prove_over(connection, state, command):
    by_reference = state.notes["remembered"]
    for _ in range(2):
        attempt = Attempt(expected_m1(connection, state.descriptor), state.grant, command, by_reference=by_reference)
        connection.send(attempt.message())
        status = verified_status(attempt, connection.receive())
        if status == session.STATUS["tokenUnknown"] and by_reference:
            by_reference = False
            continue
        if status == 0:
            state.remember(True)
            raise Ended(0, status)
        break
    raise Ended(DENIED, status)


def expected_m1(connection, descriptor):
    m1 = connection.receive()
    try:
        fields = session.parse_message_1(m1)
    except Refused:
        raise Ended(MALFORMED) from None
    if (fields["deviceId"], fields["kid"]) != (descriptor.device_id, descriptor.kid):
        raise Ended(MALFORMED)
    return m1


def verified_status(attempt, m3):
    try:
        fields = session.parse_message_3(m3)
    except Refused:
        raise Ended(MALFORMED) from None
    status, sealed = fields["status"], fields["sealed"]
    if status in session.AUTHENTICATED:
        try:
            session.parse_result(attempt.round.open_result(status, sealed or b""))
        except Refused:
            raise Ended(IMPOSTOR) from None
    return status


def main():
    parser = argparse.ArgumentParser()
    nouns = parser.add_subparsers(required=True)
    for name, run, verbs in (("device", device, ["init", "show", "trust", "serve"]), ("service", service, ["init", "show", "device"])):
        subparsers = nouns.add_parser(name).add_subparsers(required=True, dest="verb")
        for verb in verbs:
            noun = subparsers.add_parser(verb)
            noun.add_argument("--dir", type=pathlib.Path, required=True)
            noun.add_argument("--json", action="store_true")
            noun.set_defaults(run=run)
            if verb == "device":
                noun.add_argument("action", choices=["add"])
                noun.add_argument("descriptor", type=pathlib.Path)
            if verb == "trust":
                noun.add_argument("file")
            if verb == "serve":
                noun.add_argument("--listen", required=True)
    noun = nouns.add_parser("enroll")
    for name in ("--device", "--service", "--state"):
        noun.add_argument(name, type=pathlib.Path, required=True)
    noun.add_argument("--format", choices=FORMATS, default="cose")
    noun.add_argument("--replace", action="store_true")
    noun.set_defaults(run=enroll)
    noun = nouns.add_parser("prove")
    noun.add_argument("--connect", required=True)
    noun.add_argument("--state", type=pathlib.Path, required=True)
    noun.add_argument("--command", required=True)
    noun.add_argument("--timeout", type=float, default=5)
    noun.set_defaults(run=prove)
    for name in ("enroll", "prove"):
        nouns.choices[name].add_argument("--json", action="store_true")
    options = parser.parse_args()
    return options.run(options)


if __name__ == "__main__":
    sys.exit(main())
