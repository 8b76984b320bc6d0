"""Devices that are unsound on purpose, each in one way, for the adversary to find."""

import contextlib
import secrets
import threading
import time

from holdfast_peer import cbor, cose, session, transport
from holdfast_peer.device import Device
from holdfast_peer.refusal import Refused
from holdfast_peer.session import STATUS


class Served:
    """A device that serves each connection in a thread, at a socket."""

    def __init__(self, model, path):
        self.model, self.path = model, path
        self.ending, self.threads = threading.Event(), []

    def __enter__(self):
        self.listener = transport.Listener(self.path, timeout=35)
        self.acceptor = threading.Thread(target=self._accept, daemon=True)
        self.acceptor.start()
        return self

    def __exit__(self, *_):
        self.ending.set()
        self.acceptor.join(10)
        self.listener.close()

    def _accept(self):
        while not self.ending.is_set() and not self.model.has_crashed:
            with contextlib.suppress(TimeoutError):
                connection = self.listener.accept(0.05)
                thread = threading.Thread(target=self._serve, args=(connection,), daemon=True)
                thread.start()
                if self.model.serves_one:
                    thread.join()
        if self.model.has_crashed:
            self.listener.close()

    def _serve(self, connection):
        with connection, contextlib.suppress(transport.Closed, TimeoutError, OSError):
            if not self.model.has_crashed:
                self.model.serve(connection)


class SoundDevice(Device):
    """The independent device without a flaw."""

    serves_one = has_crashed = False


class ReplayedProofs(SoundDevice):
    """A proof is good for every challenge that was ever sent."""

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.challenges = []

    def answer(self, m1, message):
        self.challenges.append(m1)
        answers = [super(ReplayedProofs, self).answer(each, message) for each in reversed(self.challenges[-20:])]
        return next((each for each in answers if each[0] != STATUS["deviceMismatch"]), answers[0])


class UncheckedIntegrity(SoundDevice):
    """The integrity proof is not compared."""

    def decide(self, second, request):
        second.fields = {**second.fields, "imp": second.made.prove(second.claims["integrity"])}
        return super().decide(second, request)


class NeedlessIntegrity(SoundDevice):
    """No command needs the integrity proof."""

    def decide(self, second, request):
        if second.fields["imp"] is None:
            second.fields = {**second.fields, "imp": second.made.prove(second.claims["integrity"])}
        return super().decide(second, request)


class RepeatedRequests(SoundDevice):
    """A request is carried out as often as it comes."""

    def repetition(self, use, request):
        return None


class AnyReference(SoundDevice):
    """Any reference stands for the last token."""

    def open(self, fields):
        if fields["encoding"] == session.REFERENCE and self.remembered:
            return list(self.remembered.values())[-1]
        return super().open(fields)


class Unsigned(SoundDevice):
    """Claims without a signature are believed."""

    def open(self, fields):
        if fields["encoding"] != session.COSE:
            return super().open(fields)
        claims, signer = cose.open_token(fields["token"], self.key, self.issuers, self.device_id, accept_unsigned=True)
        return claims, signer or b""


class TrustedHeader(SoundDevice):
    """The header of a token says which kind of key its issuer's point is."""

    def open(self, fields):
        if fields["encoding"] != session.COSE:
            return super().open(fields)
        with contextlib.suppress(Refused):
            return super().open(fields)
        plaintext = cose.decrypt(fields["token"], self.key)
        item = cbor.decode(plaintext, tags=(cose.SIGN1, cose.MAC0))
        if not isinstance(item, cbor.Tag):
            raise Refused("Unsigned")
        protected, _, payload, code = item.value
        if code != cose.hmac_sha256(self.issuers[0], cose.mac_input(protected, payload)):
            raise Refused("Mac")
        return cose.claim_rules.from_cbor(payload), self.issuers[0]


class AnyAudience(SoundDevice):
    """A token for another device is taken."""

    def open(self, fields):
        if fields["encoding"] != session.COSE:
            return super().open(fields)
        plaintext = cose.decrypt(fields["token"], self.key)
        payload, signer = cose._verified_payload(plaintext, self.issuers, (), False)
        return cose.claim_rules.from_cbor(payload), signer


class Claims(SoundDevice):
    """One claim of a token does not count."""

    ignored, value = "", None

    def decide(self, second, request):
        second.claims = {**second.claims, self.ignored: self.value}
        if self.value is None:
            del second.claims[self.ignored]
        return super().decide(second, request)


class AnyAge(Claims):
    """An expired token is taken."""

    ignored, value = "expires", 2**40


class AnyUses(Claims):
    """A token for one use is good for many."""

    ignored, value = "maximumUses", 1000


class AnyCommand(Claims):
    """The list of commands in a token is not looked at."""

    ignored, value = "commands", ["status", "lock", "unlock"]


class UnsealedDenials(SoundDevice):
    """A wrong integrity proof is answered without a seal."""

    def answer(self, m1, message):
        status, m3 = super().answer(m1, message)
        return status, session.message_3(status, None) if status == STATUS["integrityMismatch"] else m3


class TalkativeRefusals(SoundDevice):
    """Whether a signature or a decryption failed is told to strangers."""

    def answer(self, m1, message):
        status, m3 = super().answer(m1, message)
        if status == STATUS["tokenInvalid"]:
            with contextlib.suppress(Exception):
                cose.decrypt(session.parse_message_2(message)["token"], self.key)
                return STATUS["tokenRevoked"], session.message_3(STATUS["tokenRevoked"], None)
        return status, m3


class LaxMessages(SoundDevice):
    """Bytes after a message are ignored."""

    def answer(self, m1, message):
        for count in range(min(len(message), 64)):
            with contextlib.suppress(Refused):
                session.parse_message_2(message[: len(message) - count])
                return super().answer(m1, message[: len(message) - count])
        return super().answer(m1, message)


class Compatibility(SoundDevice):
    """Any command is carried out in a compatibility round."""

    def answer(self, m1, message):
        with contextlib.suppress(Refused, ValueError, IndexError, TypeError):
            fields = cbor.decode(message)
            if fields[0] == 12 and len(fields) == 7 and not fields[1][0] & 0x80:
                claims, _ = self.open({"encoding": fields[2], "token": fields[3]})
                proof = session.proof(claims["proofKey"], fields[1], claims["device"])
                status = STATUS["accepted" if proof == fields[5] else "deviceMismatch"]
                return status, session.message_3(status, None)
        return super().answer(m1, message)


class CountedChallenges(SoundDevice):
    """Challenges are consecutive numbers."""

    count = 0

    def message_1(self, **changes):
        self.count += 1
        return super().message_1(challenge=self.count.to_bytes(16, "big"), **changes)


class OnePlace(SoundDevice):
    """A silent peer keeps all others out."""

    serves_one = True


class Crashes(SoundDevice):
    """A message that nests deep ends the device."""

    def answer(self, m1, message):
        if message[:8] == b"\x81" * 8:
            self.has_crashed = True
            raise transport.Closed
        return super().answer(m1, message)


class Hangs(SoundDevice):
    """A message of one byte is never answered."""

    def answer(self, m1, message):
        status, m3 = super().answer(m1, message)
        if len(message) == 1:
            time.sleep(20)
        return status, m3


class Garbage(SoundDevice):
    """A message that is not one is answered with memory."""

    def answer(self, m1, message):
        status, m3 = super().answer(m1, message)
        return status, secrets.token_bytes(64) if status == STATUS["malformed"] else m3


class Hurries(SoundDevice):
    """Failed proofs slow nobody down."""

    def serve(self, connection):
        while True:
            m1 = self.message_1()
            connection.send(m1)
            status, m3 = self.answer(m1, connection.receive(timeout=30))
            connection.send(m3)
            if status == STATUS["malformed"]:
                return


class AnyCode(SoundDevice):
    """Any code of the owner unlocks users."""

    def answer(self, m1, message):
        if message[:2] == b"\x82\x18" and message[2] == 25:
            return STATUS["accepted"], cbor.encode([26, bytes(32)])
        return super().answer(m1, message)


class ShortComparison(SoundDevice):
    """Only the first half of the integrity proof is compared."""

    def decide(self, second, request):
        right, given = second.made.prove(second.claims["integrity"]), second.fields["imp"]
        if given is not None and given[:16] == right[:16]:
            second.fields = {**second.fields, "imp": right}
        return super().decide(second, request)


class Patient(SoundDevice):
    """A challenge is good for a minute."""

    def serve(self, connection):
        connection.handle.settimeout(60)
        connection.receive, receive = lambda timeout: receive(60), connection.receive
        super().serve(connection)


class Persistent(SoundDevice):
    """A connection goes on after a message that is not one."""

    def serve(self, connection):
        with contextlib.suppress(AttributeError):
            while True:
                super().serve(connection)


class Forgiving(SoundDevice):
    """Nobody is locked out: a password may be guessed as often as one likes."""

    used = False

    def decide(self, second, request):
        if request["command"] != "configure":
            return super().decide(second, request)
        if "otp" not in request:
            return "factorMissing", b"", {"missing": session.OTP}
        if request["otp"] != ["alice", "271828"] or self.used:
            return "otpRejected", b"", {}
        self.used = True
        return "accepted", b"", {}


class Reusable(Forgiving):
    """A password is good any number of times."""

    def decide(self, second, request):
        self.used = False
        return super().decide(second, request)


# By device, the attacks of which at least one must find it.
FLAWS = {
    ReplayedProofs: {"replay"},
    UncheckedIntegrity: {"flip-integrity-proof"},
    NeedlessIntegrity: {"no-integrity-proof"},
    RepeatedRequests: {"suppressed-verdict"},
    AnyReference: {"guessed-reference"},
    Unsigned: {"unsigned-token"},
    TrustedHeader: {"public-key-as-mac"},
    AnyAudience: {"token-of-another-device"},
    AnyAge: {"expired-token"},
    AnyUses: {"uses"},
    AnyCommand: {"no-commands"},
    UnsealedDenials: {"flip-integrity-proof"},
    TalkativeRefusals: {"foreign-issuer"},
    LaxMessages: {"extend"},
    Compatibility: {"downgrade"},
    CountedChallenges: {"challenge"},
    OnePlace: {"silent-peers"},
    Crashes: {"deep-nesting"},
    Hangs: {"truncate-first"},
    Garbage: {"garbage"},
    Hurries: {"failures"},
    AnyCode: {"guessed-unlocking"},
    ShortComparison: {"flip-integrity-proof"},
    Persistent: {"after-malformed"},
    Forgiving: {"lockout"},
    Reusable: {"password-twice"},
}
