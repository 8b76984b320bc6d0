"""The prover's end of a connection: one round at a time, and every M3 verified in full."""

import secrets

from . import session
from .refusal import require

TAKE_FROM_CLAIMS = object()


class Descriptor:
    """What a prover knows of a device."""

    def __init__(self, device_id, kid, point):
        self.device_id, self.kid, self.point = device_id, kid, point


class Outcome:
    """A verified M3: its status, and the sealed result (None where there is none)."""

    def __init__(self, status, result, m2):
        self.status, self.result, self.m2 = status, result, m2


class Attempt:
    """M2 for one M1, each part replaceable before it is sent."""

    def __init__(
        self,
        m1,
        grant,
        command="unlock",
        *,
        by_reference=False,
        request=None,
        imp=TAKE_FROM_CLAIMS,
        dmp=TAKE_FROM_CLAIMS,
        encoding=None,
        token=None,
    ):
        self.m1 = m1
        encoding = encoding if encoding is not None else session.REFERENCE if by_reference else grant.encoding
        token = token if token is not None else grant.reference if by_reference else grant.token
        self.head = session.message_2_head(secrets.token_bytes(16), encoding, token)
        self.round = session.Round(m1, self.head, grant.proof_key, grant.claims["device"])
        self.imp = self.round.prove(grant.claims["integrity"]) if imp is TAKE_FROM_CLAIMS else imp
        self.dmp = self.round.prove(grant.claims["device"]) if dmp is TAKE_FROM_CLAIMS else dmp
        self.sealed = self.round.seal_request(session.request(command) if request is None else request)

    def message(self):
        return session.message_2(self.head, self.imp, self.dmp, self.sealed)

    def verify(self, m3):
        """The outcome that `m3` states, after all that can be checked of it."""
        fields = session.parse_message_3(m3)
        status, sealed = fields["status"], fields["sealed"]
        require(status in session.STATUS.values(), "UnknownStatus")
        # A fault of the device's own, or a lack of room, is under seal once the peer has proved DM.
        either = session.STATUS["internal"], session.STATUS["busy"]
        if status in session.AUTHENTICATED or status in either and sealed is not None:
            require(sealed is not None, "NotAuthenticated", f"status {status}")
            result = session.parse_result(self.round.open_result(status, sealed))
            require(status or "result" in result, "MissingKey")
            return Outcome(status, result, self.message())
        require(sealed is None, "SealedTooEarly", f"status {status}")
        return Outcome(status, None, self.message())


class Prover:
    """A connection to a device. It starts by receiving the first M1."""

    def __init__(self, connection, descriptor):
        self.connection, self.descriptor = connection, descriptor
        self.m1 = None

    def next_m1(self):
        """The M1 that the next M2 answers."""
        if self.m1 is None:
            self.m1 = self.connection.receive()
            fields = session.parse_message_1(self.m1)
            require(fields["deviceId"] == self.descriptor.device_id, "WrongDevice")
            require(fields["kid"] == self.descriptor.kid, "WrongKeyId")
        return self.m1

    def attempt(self, grant, command="unlock", **changes):
        return Attempt(self.next_m1(), grant, command, **changes)

    def send(self, attempt):
        """Sends an attempt and returns the verified outcome."""
        return attempt.verify(self.exchange(attempt.message()))

    def exchange(self, message):
        """Sends any bytes as M2 and returns M3."""
        self.next_m1()
        self.connection.send(message)
        self.m1 = None
        return self.connection.receive()

    def ask(self, grant, command="unlock", **changes):
        return self.send(self.attempt(grant, command, **changes))
