"""Devices that are unsound on purpose, each in one way, for the adversary to find."""

import contextlib
import secrets
import threading
import time

from holdfast_peer import bulletins, cbor, cose, pages, session, transport
from holdfast_peer.device import DAY, Device
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
        self.acceptor.join(60)
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
    # Whether only an attack that may use something up finds it.
    needs_destruction = False


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


class LastNumberOnly(SoundDevice):
    """Of a token's request numbers, only the highest counts as used."""

    def repetition(self, use, request):
        accepted = self.ledger.numbers.get(use)
        if accepted and request.get("number") != max(accepted)[0]:
            return None
        return super().repetition(use, request)


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

    verdict = "accepted"

    def answer(self, m1, message):
        with contextlib.suppress(Refused, ValueError, IndexError, TypeError):
            fields = cbor.decode(message)
            if fields[0] == 12 and len(fields) == 7 and not fields[1][0] & 0x80:
                claims, _ = self.open({"encoding": fields[2], "token": fields[3]})
                proof = session.proof(claims["proofKey"], fields[1], claims["device"])
                status = STATUS[self.verdict if proof == fields[5] else "deviceMismatch"]
                return status, session.message_3(status, None)
        return super().answer(m1, message)


class UnusedNonces(Compatibility):
    """A compatibility round that is refused does not use up its nonce."""

    verdict = "commandRefused"


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

    needs_destruction = True

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


class InOrder(Forgiving):
    """Two passwords count once each, and the first one not after the second: no flaw."""

    passwords, last = ("271828", "314159"), -1

    def decide(self, second, request):
        if request["command"] != "configure" or "otp" not in request:
            return super().decide(second, request)
        name, code = request["otp"]
        if name != "alice" or code not in self.passwords or self.is_used(self.passwords.index(code)):
            return "otpRejected", b"", {}
        self.last = self.passwords.index(code)
        return "accepted", b"", {}

    def is_used(self, position):
        return position <= self.last


class LastCodeOnly(InOrder):
    """Only the password that was accepted last counts as used."""

    def is_used(self, position):
        return position == self.last


class PartOfACode(Forgiving):
    """A password is compared as far as the given one reaches."""

    def decide(self, second, request):
        name, given = request.get("otp", ("", ""))
        if name == "alice" and "271828".startswith(given):
            request = {**request, "otp": ["alice", "271828"]}
        return super().decide(second, request)


class UncheckedByReference(SoundDevice):
    """A remembered token needs no right integrity proof."""

    def decide(self, second, request):
        if second.encoding == session.REFERENCE and second.fields["imp"] is not None:
            second.fields = {**second.fields, "imp": second.made.prove(second.claims["integrity"])}
        return super().decide(second, request)


class HalfReferences(SoundDevice):
    """References are compared in their first half."""

    def open(self, fields):
        if fields["encoding"] == session.REFERENCE:
            return next((known for key, known in self.remembered.items() if key[:8] == fields["token"][:8]), None)
        return super().open(fields)


class RememberedUnproven(SoundDevice):
    """A token is remembered before its holder has proved anything."""

    def second(self, m1, message):
        second = super().second(m1, message)
        if second:
            self.remember(second)
        return second


class ProvenOnce(SoundDevice):
    """A connection on which a round was accepted needs no further device proofs."""

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.connection = threading.local()

    def second(self, m1, message):
        second = super().second(m1, message)
        if second and getattr(self.connection, "is_proven", False):
            second.fields = {**second.fields, "dmp": second.made.prove(second.claims["device"])}
        return second

    def answer(self, m1, message):
        status, answer = super().answer(m1, message)
        if status == STATUS["accepted"]:
            self.connection.is_proven = True
        return status, answer


class WithoutLimitsByReference(SoundDevice):
    """A remembered token is good without some of its claims."""

    forgotten = "maximumUses"

    def decide(self, second, request):
        if second.encoding == session.REFERENCE:
            second.claims = {name: value for name, value in second.claims.items() if name != self.forgotten}
            second.claims.setdefault("expires", time.time() + DAY)
        return super().decide(second, request)


class EndlessByReference(WithoutLimitsByReference):
    """A remembered token never expires."""

    forgotten = "expires"


class AllPlacesForOne(SoundDevice):
    """Of 64 places, one token may keep all."""

    place_count = 64

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.kept = 0

    def next_message(self, connection, status):
        if status is None and self.kept >= self.place_count:
            connection.send(session.message_3(STATUS["busy"], None))
            return None
        if status != STATUS["accepted"]:
            return super().next_message(connection, status)
        self.keep(1)
        try:
            return super().next_message(connection, status)
        finally:
            self.keep(-1)

    def keep(self, change):
        with self.lock:
            self.kept += change


class Mailbox(SoundDevice):
    """The device takes mail, without a flaw: eight messages and one page after each accepted round, and nothing that is forged."""

    def next_message(self, connection, status):
        allowance = {"messages": 8, "pages": 1} if status == STATUS["accepted"] else None
        while self.is_mail(message := super().next_message(connection, status)):
            answer, goes_on = self.mail(message, allowance)
            connection.send(answer)
            if not goes_on:
                return None
        return message

    @staticmethod
    def is_mail(message):
        return message[:1] == b"\x82" and message[1:2] in (b"\x07", b"\x09", b"\x0b")

    def mail(self, message, allowance):
        """The answer, and whether the connection goes on."""
        if not self.takes_mail(allowance):
            return session.message_3(STATUS["malformed"], None), False
        kind, value = cbor.decode(message)
        if kind == pages.ASK:
            return self.page(value, allowance), True
        if kind == bulletins.DELIVER and value is None:
            return cbor.encode([8, 0, bulletins.list_of([self.device_id], {})]), True
        rule = self.refusal(value) if kind == bulletins.DELIVER else self.receipt_refusal(value)
        result = "taken" if rule is None else "notAddressed" if rule == "WrongAudience" else "refused"
        return cbor.encode([8, bulletins.RESULTS.index(result)]), rule != "Signature"

    def takes_mail(self, allowance):
        if allowance is None or allowance["messages"] == 0:
            return False
        allowance["messages"] -= 1
        return True

    def page(self, start, allowance):
        allowance["pages"] -= 1
        there = allowance["pages"] >= 0 and start < 100
        return cbor.encode([pages.PAGE, secrets.token_bytes(288) if there else None])

    def refusal(self, bulletin):
        """The rule that a bulletin breaks; None for a good one."""
        try:
            claims, _ = bulletins.open_bulletin(bulletin, self.key, self.issuers, [self.device_id])
        except Refused as refused:
            return refused.rule
        return "Future" if claims["issuedAt"] > time.time() + DAY else None

    def receipt_refusal(self, receipt):
        try:
            pages.open_receipt(receipt, self.device_id, self.issuers[0])
        except Refused as refused:
            return refused.rule
        return "UnknownEntry"


class MailOfStrangers(Mailbox):
    """Mail is taken without a round before it."""

    def mail(self, message, allowance):
        return super().mail(message, allowance or {"messages": 8, "pages": 1})


class AnyBulletin(Mailbox):
    """Whatever is delivered as a bulletin is taken."""

    def refusal(self, bulletin):
        return None


class BulletinsByName(Mailbox):
    """Whether a bulletin is signed by the key that it names is not looked at."""

    def refusal(self, bulletin):
        rule = super().refusal(bulletin)
        return None if rule == "Signature" else rule


class SealedBulletinsByName(Mailbox):
    """Of a bulletin that is encrypted to the device, the signature is not looked at."""

    def refusal(self, bulletin):
        rule = super().refusal(bulletin)
        return None if rule == "Signature" and bulletin.startswith(b"\xd8\x60") else rule


class BulletinsForAll(Mailbox):
    """A bulletin for another device is taken."""

    def refusal(self, bulletin):
        rule = super().refusal(bulletin)
        return None if rule == "WrongAudience" else rule


class BulletinsOfTheFuture(Mailbox):
    """A bulletin may be of any time."""

    needs_destruction = True

    def refusal(self, bulletin):
        rule = super().refusal(bulletin)
        return None if rule == "Future" else rule


class AnyReceipt(Mailbox):
    """Whoever says so has the audit log."""

    def receipt_refusal(self, receipt):
        return None


class ReceiptsByName(Mailbox):
    """Whether a receipt is signed by the key that it names is not looked at."""

    def receipt_refusal(self, receipt):
        rule = super().receipt_refusal(receipt)
        return None if rule == "Signature" else rule


class ReceiptsForNothing(Mailbox):
    """A receipt acknowledges entries that there never were."""

    def receipt_refusal(self, receipt):
        rule = super().receipt_refusal(receipt)
        return None if rule == "UnknownEntry" else rule


class ManyPages(Mailbox):
    """One round is enough for the whole audit log."""

    def page(self, start, allowance):
        allowance["pages"] = 1
        return super().page(start, allowance)


class PagesOfNothing(Mailbox):
    """There is a page behind the end of the audit log."""

    def page(self, start, allowance):
        return super().page(0, allowance)


class EndlessMail(Mailbox):
    """One round is enough for any number of messages."""

    def takes_mail(self, allowance):
        return allowance is not None


class PatientWithForgers(Mailbox):
    """A connection goes on after a wrong signature."""

    def mail(self, message, allowance):
        answer, _ = super().mail(message, allowance)
        return answer, answer[:1] == b"\x82" and answer[1:2] == b"\x08"


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
    MailOfStrangers: {"mail-of-a-stranger"},
    AnyBulletin: {"bulletin-that-is-none"},
    BulletinsByName: {"forged-bulletin"},
    BulletinsForAll: {"bulletin-of-another-device"},
    BulletinsOfTheFuture: {"future-bulletin"},
    AnyReceipt: {"foreign-receipt"},
    ReceiptsByName: {"forged-receipt"},
    ReceiptsForNothing: {"receipt-for-nothing"},
    ManyPages: {"two-pages"},
    PagesOfNothing: {"page-beyond-the-end"},
    EndlessMail: {"flood-of-mail"},
    PatientWithForgers: {"mail-after-a-forgery"},
    PartOfACode: {"part-of-a-password"},
    UncheckedByReference: {"flip-integrity-proof-by-reference", "changed-app-by-reference"},
    HalfReferences: {"flip-reference"},
    ProvenOnce: {"wrong-proof-after-acceptance", "flip-device-proof-by-reference", "no-device-proof-by-reference"},
    WithoutLimitsByReference: {"uses-by-reference"},
    EndlessByReference: {"expired-by-reference"},
    AllPlacesForOne: {"places-of-one-token"},
    LastNumberOnly: {"number-before-the-last"},
    UnusedNonces: {"compatibility-twice"},
    RememberedUnproven: {"reference-without-a-proof"},
    SealedBulletinsByName: {"forged-sealed-bulletin"},
}
