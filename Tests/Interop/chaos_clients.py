"""The provers and operators of `chaos_service`, and the journal of what they were told and when."""

import base64
import dataclasses
import hashlib
import random
import threading
import time

from online_fleet import LOST, Host

# With every server up again, a request that is tried for so long must have got its answer.
PATIENCE_SECONDS = 90
POLLS = 20


@dataclasses.dataclass
class Given:
    """A token that a prover got: when the request that was answered began and ended, and what it was for."""

    began: float
    ended: float
    baseline: str
    device: str
    code: str | None
    user: str | None
    token: bytes

    @property
    def digest(self):
        """SHA-256 of the token, by which its prover names it: it does not know the id."""
        return hashlib.sha256(self.token).hexdigest()


@dataclasses.dataclass
class Revoked:
    """A revocation: it counts from `acknowledged` on; before `began`, nobody had asked for it."""

    kind: str
    key: str
    began: float
    acknowledged: float | None = None
    # A device may be unblocked again: that was asked for at this time.
    lifted: float | None = None


@dataclasses.dataclass
class Refused:
    """A refusal, with its reasons, of a request for a baseline."""

    began: float
    ended: float
    baseline: str
    reasons: list


class Journal:
    """Everything that was observed. Lists only grow, so that threads share them."""

    def __init__(self):
        self.given, self.revoked, self.refused = [], [], []
        self.faults = []
        self.counts = {}
        self._lock = threading.Lock()

    def count(self, name):
        with self._lock:
            self.counts[name] = self.counts.get(name, 0) + 1


class GivesUp(Exception):
    """No server answered, although all should be up."""


class Crowd:
    """Provers and operators at the instances of one fleet, until they are told that it is over."""

    # The most provers that try to use one invitation.
    TAKERS = 4

    def __init__(self, fleet, devices, seed, provers, token_id):
        """`token_id` returns the id of a token with this digest, or None while the database does not answer."""
        self.fleet, self.devices, self.seed, self.token_id = fleet, devices, seed, token_id
        self.journal, self.is_over = Journal(), threading.Event()
        self.parties = [Prover(self, number) for number in range(provers)]
        self.parties += [Approver(self, "approver"), Revoker(self, "revoker"), Revoker(self, "another revoker")]
        self._shared, self._claimed, self._lock = (None, None, None, 0), set(), threading.Lock()

    def start(self):
        for party in self.parties:
            party.start()

    def finish(self, tend=lambda: None):
        """Waits until each has the answer to its last request. All servers must be up; `tend` is called meanwhile."""
        self.is_over.set()
        deadline = time.monotonic() + PATIENCE_SECONDS + 90
        for party in self.parties:
            while party.is_alive() and time.monotonic() < deadline:
                tend()
                party.join(0.1)
        if any(party.is_alive() for party in self.parties):
            self.journal.faults.append("some requests never got an answer")

    def claim(self, device):
        """Whether a revoker may block the device: no other one has it."""
        with self._lock:
            is_free = device not in self._claimed
            self._claimed.add(device)
            return is_free

    def release(self, device):
        with self._lock:
            self._claimed.discard(device)

    def shared_invitation(self, prover):
        """An invitation that several provers get: its code, user and device."""
        with self._lock:
            code, user, device, takers = self._shared
            if code and takers < self.TAKERS:
                self._shared = (code, user, device, takers + 1)
                return code, user, device
        device = prover.random.choice(self.devices)
        code, user = prover.invitation(device)
        with self._lock:
            self._shared = (code, user, device, 1)
        return code, user, device


class Party(threading.Thread):
    """A thread that asks the service, at any instance, until it has an answer."""

    def __init__(self, crowd, name):
        super().__init__(name=name, daemon=True)
        self.fleet, self.journal, self.crowd = crowd.fleet, crowd.journal, crowd
        self.random = random.Random(f"{crowd.seed} {name}")

    def run(self):
        while not self.crowd.is_over.is_set() and self.guarded(self.step):
            pass

    def guarded(self, body, *arguments):
        """Runs a body, and returns whether it ended well."""
        try:
            body(*arguments)
        except Exception as fault:
            self.journal.faults.append(f"{self.name}: {fault!r}")
            return False
        return True

    def persist(self, method, path, body=None, token=None):
        """Asks until there is an answer that is final: when its request began, its status, and its JSON."""
        deadline, self.tries = None, 0
        while True:
            self.tries += 1
            port = self.random.choice(self.fleet.instances).port
            began = time.monotonic()
            try:
                status, answer = self.fleet.ask(port, method, path, body, token)
            except LOST:
                status, answer = None, None
            if status is not None and status < 500 and status not in (408, 425, 429):
                return began, status, answer
            self.journal.count("requests without an answer" if status is None else f"answers {status}")
            if status == 500:
                self.journal.faults.append(f"{method} {path}: 500 {answer}")
            if self.crowd.is_over.is_set():
                deadline = deadline or time.monotonic() + PATIENCE_SECONDS
                if time.monotonic() > deadline:
                    raise GivesUp(f"{method} {path}: {status}")
            time.sleep(self.random.uniform(0.02, 0.4))

    def administer(self, method, path, body=None):
        return self.persist(method, f"/v1/admin{path}", body, self.fleet.operator)


class Prover(Party):
    """A prover that enrols again and again, each time with a fresh baseline."""

    def __init__(self, crowd, number):
        super().__init__(crowd, f"prover {number}")
        self.number, self.enrolments = number, 0
        self.host, self.held = Host(crowd.fleet), []

    def step(self):
        self.enrolments += 1
        chosen = self.random.random()
        device = self.random.choice(self.crowd.devices)
        evidence = self.host.evidence()
        if chosen < 0.05:
            self.race(evidence, device)
        elif chosen < 0.15:
            self.enrol(evidence, device, None)
        elif chosen < 0.4:
            code, user, device = self.crowd.shared_invitation(self)
            if code:
                self.enrol(evidence, device, code, user)
        else:
            code, user = self.invitation(device)
            if code:
                given = self.enrol(evidence, device, code, user)
                if given and chosen < 0.6:
                    self.enrol(evidence, device, code, user)
                if given and chosen > 0.9:
                    # The baseline has its device.
                    other = next(each for each in self.crowd.devices if each is not device)
                    self.enrol(evidence, other, code, user)
        if self.held and self.random.random() < 0.2:
            self.enrol(*self.random.choice(self.held))

    def invitation(self, device):
        """A new invitation for a device: its code and user, or (None, None) if it is refused."""
        user = f"u{self.number}-{self.enrolments // 8}" if self.random.random() < 0.6 else None
        body = {"device": device["device_id"], "valid_seconds": 3600} | ({"user": user} if user else {})
        _, status, answer = self.administer("POST", "/invitations", body)
        return (answer["code"], user) if status == 200 else (None, None)

    def race(self, evidence, device):
        """Asks with one baseline for two devices, at the same time and with an invitation for each."""
        other = next(each for each in self.random.sample(self.crowd.devices, 2) if each is not device)
        asked = [(evidence, each, *self.invitation(each)) for each in (device, other)]
        if all(code for _, _, code, _ in asked):
            self.journal.count("baselines for two devices at once")
            rival = threading.Thread(target=self.guarded, args=(self.enrol, *asked.pop()), daemon=True)
            rival.start()
            self.enrol(*asked.pop())
            rival.join()

    def enrol(self, evidence, device, code, user=None):
        """Gets a token, and returns whether there is one."""
        for _ in range(POLLS):
            began, status, answer = self.persist("POST", "/v1/attest", {"device": device, "evidence": evidence})
            if status != 200:
                return self.note_refusal(began, evidence, status, answer)
            body = {"device": device, "attestation": answer["attestation"]} | ({"invitation": code} if code else {})
            began, status, answer = self.persist("POST", "/v1/tokens", body)
            ended = time.monotonic()
            if status == 201:
                token, claims = base64.b64decode(answer["token"]), answer["claims"]
                given = Given(
                    *(began, ended, evidence, device["device_id"], code),
                    *(claims.get("user") or None, token),
                )
                self.journal.given.append(given)
                self.held = [*self.held[-19:], (evidence, device, code, user)]
                return True
            if status != 202:
                return self.note_refusal(began, evidence, status, answer)
            if self.crowd.is_over.is_set():
                break
            time.sleep(self.random.uniform(0.1, 0.5))
        return False

    def note_refusal(self, began, evidence, status, answer):
        reasons = answer.get("reasons", [])
        self.journal.refused.append(Refused(began, time.monotonic(), evidence, reasons))
        for reason in reasons or [f"status {status}"]:
            self.journal.count(f"refused: {reason}")
        if status not in (403, 409):
            self.journal.faults.append(f"{self.name}: {status} {answer}")
        if "revokedProver" in reasons and self.random.random() < 0.5:
            self.host = Host(self.fleet)
        return False


class Approver(Party):
    """An operator who approves every request that waits."""

    def step(self):
        _, status, answer = self.administer("GET", "/requests?status=waiting")
        for item in answer["items"] if status == 200 else []:
            self.administer("POST", f"/requests/{item['id']}/approve", {})
        time.sleep(0.2)


class Revoker(Party):
    """An operator who revokes tokens that were just given, provers, users and devices, and unblocks the devices again."""

    def __init__(self, crowd, name):
        super().__init__(crowd, name)
        self.blocked = []

    def step(self):
        time.sleep(self.random.uniform(0.02, 0.3))
        if self.blocked and (len(self.blocked) > 2 or self.random.random() < 0.2):
            self.unblock(self.blocked.pop(0))
        # One of the last, so that others may still ask for it; and none for a device that is not the crowd's.
        devices = {device["device_id"] for device in self.crowd.devices}
        recent = [given for given in self.journal.given[-40:] if given.device in devices]
        if not recent:
            return
        given = self.random.choice(recent)
        kind = self.random.choices(["token", "prover", "user", "device"], [6, 2, 2, 1])[0]
        token_id = self.crowd.token_id(given.digest) if kind in ("token", "prover") else None
        if kind == "token" and token_id:
            self.revoke("token", "tokens", token_id)
        elif kind == "prover" and token_id:
            _, status, token = self.administer("GET", f"/tokens/{token_id}")
            if status == 200:
                self.revoke("prover", "provers", token["prover"])
            else:
                self.journal.faults.append(f"a token that was given is not there: {status} {token}")
        elif kind == "user" and given.user:
            self.revoke("user", "users", given.user)
        elif kind == "device" and self.crowd.claim(given.device):
            self.blocked.append(self.revoke("device", "devices", given.device))

    def revoke(self, kind, plural, key):
        revoked = Revoked(kind, key, time.monotonic())
        self.journal.revoked.append(revoked)
        _, status, answer = self.administer("POST", f"/{plural}/{key}/revoke", {"reason": "chaos"})
        if status == 200:
            revoked.acknowledged = time.monotonic()
        else:
            self.journal.faults.append(f"revoking a {kind}: {status} {answer}")
        return revoked

    def unblock(self, revoked):
        revoked.lifted = time.monotonic()
        self.administer("POST", f"/devices/{revoked.key}/unblock", {})
        # A request that got no answer may take effect later, and must not lift another revocation then.
        if self.tries == 1:
            self.crowd.release(revoked.key)
