"""A model of the device: the order of the statuses, generations, uses and references. State may live in a JSON file."""

import json
import os
import secrets
import threading
import time

from . import cose, jose, session
from .refusal import Refused
from .session import DEVICE, INTEGRITY, STATUS

SLOW_FROM, DAY = 10, 86400
POLICY = {"lock": INTEGRITY | DEVICE, "unlock": INTEGRITY | DEVICE, "status": DEVICE}
RESULTS = {"lock": b"locked", "unlock": b"unlocked", "status": b"locked"}


WINDOW = 64


class Ledger:
    """Generation floors by verifying key; uses and the numbers of accepted requests by verifying key and token id."""

    def __init__(self, path=None):
        self.path = path
        self.floors, self.uses, self.numbers = {}, {}, {}
        if path and os.path.exists(path):
            with open(path, encoding="utf-8") as file:
                self.floors, self.uses, self.numbers = json.load(file)

    def save(self):
        if self.path:
            with open(self.path + ".new", "w", encoding="utf-8") as file:
                json.dump([self.floors, self.uses, self.numbers], file)
            os.replace(self.path + ".new", self.path)


class Second:
    """What the device makes of an M2: the token's claims, the round's keys, the proofs and the request."""

    def __init__(self, fields, claims, signer, made):
        self.fields, self.claims, self.signer, self.made = fields, claims, signer, made
        self.encoding = fields["encoding"]

    @property
    def proves_device(self):
        return self.fields["dmp"] == self.made.prove(self.claims["device"])

    @property
    def proves_integrity(self):
        return self.fields["imp"] == self.made.prove(self.claims["integrity"])

    def request(self):
        return session.parse_request(self.made.open_request(self.fields["sealed"]))

    def reply(self, status, plaintext=b"", **more):
        """M3 with a sealed part."""
        return session.message_3(status, self.made.seal_result(status, session.result(plaintext, **more)))


class Device:
    """A device that trusts `issuers` (uncompressed points)."""

    def __init__(self, key, device_id, issuers, ledger=None):
        self.key, self.device_id, self.issuers = key, device_id, issuers
        self.ledger = ledger or Ledger()
        self.remembered = {}
        self.lock = threading.Lock()

    def message_1(self, **changes):
        fields = {
            "device_id": self.device_id,
            "challenge": secrets.token_bytes(16),
            "kid": self.key.kid,
            "required": DEVICE,
            "clock": int(time.time()),
            **changes,
        }
        return session.message_1(*fields.values())

    def open(self, fields):
        """The claims and the verifying key of the token in M2; None for a reference that is not known."""
        if fields["encoding"] == session.REFERENCE:
            return self.remembered.get(fields["token"])
        module = cose if fields["encoding"] == session.COSE else jose
        return module.open_token(fields["token"], self.key, self.issuers, self.device_id)

    def second(self, m1, message):
        """What is in M2, or a refusal; None for an unknown reference."""
        fields = session.parse_message_2(message)
        known = self.open(fields)
        if known is None:
            return None
        return Second(fields, *known, session.Round(m1, fields["head"], known[0]["proofKey"], known[0]["device"]))

    def remember(self, second):
        if second.encoding != session.REFERENCE:
            self.remembered[session.token_reference(second.fields["token"])] = second.claims, second.signer

    def answer(self, m1, message):
        """The status of M2 and M3."""
        unsealed = lambda name: (STATUS[name], session.message_3(STATUS[name], None))
        try:
            session.parse_message_2(message)
        except Refused:
            return unsealed("malformed")
        try:
            second = self.second(m1, message)
        except Refused:
            return unsealed("tokenInvalid")
        if second is None:
            return unsealed("tokenUnknown")
        if second.claims["issuedAt"] > time.time() + DAY:
            return unsealed("tokenInvalid")
        if not second.proves_device:
            return unsealed("deviceMismatch")
        try:
            request = second.request()
        except Refused:
            return unsealed("malformed")
        with self.lock:
            self.remember(second)
            name, result, more = self.decide(second, request)
        return STATUS[name], second.reply(STATUS[name], result, **more)

    def decide(self, second, request):
        """The status from the point where DM is proved: its name, the result and what else M3 says."""
        claims, signer, command = second.claims, second.signer.hex(), request["command"]
        floor, use = self.ledger.floors.get(signer, 0), signer + claims["tokenId"].hex()
        if claims["generation"] < floor:
            return "tokenRevoked", b"", {"floor": floor}
        if claims["expires"] <= time.time():
            return "tokenExpired", b"", {}
        repetition = self.repetition(use, request)
        if repetition is not None:
            return repetition
        if "maximumUses" in claims and self.ledger.uses.get(use, 0) >= claims["maximumUses"]:
            return "usesExhausted", b"", {}
        if second.fields["imp"] is not None and not second.proves_integrity:
            return "integrityMismatch", b"", {}
        if command not in POLICY or command not in claims.get("commands", POLICY):
            return "commandRefused", b"", {}
        if POLICY[command] & INTEGRITY and second.fields["imp"] is None:
            return "factorMissing", b"", {"missing": INTEGRITY}
        self.ledger.floors[signer] = max(floor, claims["generation"])
        self.ledger.uses[use] = self.ledger.uses.get(use, 0) + 1
        if "number" in request:
            # The list of all that were accepted, where a real device has a window.
            self.ledger.numbers.setdefault(use, []).append([request["number"], command, request.get("parameters", [])])
        self.ledger.save()
        return "accepted", RESULTS[command], {"clock": int(time.time())}

    def repetition(self, use, request):
        """What is answered to a request whose number was accepted with this token, or is too low to tell."""
        accepted = self.ledger.numbers.get(use)
        number = request.get("number")
        if number is None or not accepted:
            return None
        highest = max(accepted)
        if number + WINDOW >= highest[0] and all(number != other[0] for other in accepted):
            return None
        if number != highest[0]:
            name = "internal"
        else:
            name = (
                "accepted" if highest[1:] == [request["command"], request.get("parameters", [])] else "commandRefused"
            )
        return name, b"", {"highest": highest[0]}

    def next_message(self, connection, status):
        """The answer to a challenge, after a round with this status (None: the first one); None to end the connection."""
        return connection.receive(timeout=30)

    def serve(self, connection):
        """Rounds until the connection ends."""
        failures, status = 0, None
        while True:
            m1 = self.message_1()
            connection.send(m1)
            message = self.next_message(connection, status)
            if message is None:
                return
            status, m3 = self.answer(m1, message)
            failures += status in session.SLOWED_BY
            if failures >= SLOW_FROM:
                time.sleep(1)
            connection.send(m3)
            if status == STATUS["malformed"]:
                return
