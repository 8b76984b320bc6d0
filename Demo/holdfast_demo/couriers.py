"""Two locks without a network, and three phones that visit them: one phone is stolen, and the others carry the news, and the logs home."""

import base64
import json

from holdfast_peer.checks import Failed

from .linux import LinuxScene
from .story import situation, step

LOCKS = ("front", "back")
ANNA, BEN, CARL = PHONES = ("anna", "ben", "carl")
# A machine that has more to do delivers later.
PATIENCE = ("--courier", 20_000)
SIGNATURE_BYTES = 64


class CouriersScene(LinuxScene):
    """The two locks, each served by a process of its own. Each phone has its own state folder, and is enrolled at both."""

    noun = "lock"

    def make_locks(self):
        for lock in LOCKS:
            self.write(f"{lock}.json", json.dumps(self.make_device(lock)))
            self.succeed("device", "trust", "--dir", self.path(lock), self.path("service.json"))
            self.succeed("service", "device", "add", "--dir", self.path("service"), self.path(f"{lock}.json"))
            self.name_home(lock)
            self.serve(lock)

    def name_home(self, lock):
        """The policy of a lock names the service as the home of its audit log."""
        policy = self.path(lock) / "policy.json"
        home = json.loads(self.path("service.json").read_text())["kid"]
        policy.write_text(json.dumps({**json.loads(policy.read_text()), "audit": {"home": home}}))

    def enrol(self, phone):
        for lock in LOCKS:
            self.enroll(phone, descriptor=self.path(f"{lock}.json"))

    def visit(self, phone, lock, *options):
        """Asks the lock to open, and returns the end of that."""
        return self.prove("unlock", *options, state=phone, at=f"unix:{self.path(lock)}.sock")

    def mail(self, phone, lock):
        """The file with the mail of a phone for a lock."""
        device = json.loads(self.path(f"{lock}.json").read_text())["device_id"]
        return self.path(phone) / "devices" / device / "mail.json"

    def token(self, phone, lock):
        """The id of the token of a phone for a lock, which only the service and the lock know."""
        listed = self.succeed("service", "tokens", "--dir", self.path("service"), "--device", self.path(f"{lock}.json"))
        # They are listed in the order in which the phones enrolled.
        return listed.value["tokens"][PHONES.index(phone)]["id"]

    def knows(self, lock):
        """Whether the audit log of a lock says that it has taken the bulletin that was signed for it."""
        ending = self.run("device", "audit", "--dir", self.path(lock))
        entries = ending.value.get("entries") or [json.loads(line) for line in ending.output.splitlines()]
        numbers = [entry["number"] for entry in entries if entry.get("event") == "bulletin"]
        return self.kept.numbers[lock] in numbers

    def who_knows(self):
        """The locks that know, in words."""
        return ", ".join(lock for lock in LOCKS if self.knows(lock)) or "no lock"

    def at_home(self, lock):
        """The audit log of a lock as the service has it."""
        return self.run("service", "audit", "--dir", self.path("service"), "--device", self.path(f"{lock}.json")).value

    def sync(self, phone):
        return self.succeed("sync", "--state", self.path(phone), "--service", self.path("service")).value


# Once, while there is a network


@step("two locks, front and back, trust the service")
def make_locks(scene):
    scene.make_locks()
    return "neither has a network"


@step("the phones of anna, ben and carl are enrolled at both")
def enrol(scene):
    for phone in PHONES:
        scene.enrol(phone)
    return "a token for each phone and lock"


# The theft


def visits(phone, lock, text, expected):
    """A situation: a phone asks a lock to open."""
    return situation(text, expected)(lambda scene: scene.visit(phone, lock, *PATIENCE).status)


@step("the service revokes it: a bulletin for each lock")
def revoke(scene):
    scene.kept.numbers = {}
    scene.kept.stolen = {lock: scene.token(CARL, lock) for lock in LOCKS}
    for lock in LOCKS:
        words = ("bulletin", "--dir", scene.path("service"), "--device", scene.path(f"{lock}.json"))
        made = scene.succeed("service", *words, "--revoke", scene.kept.stolen[lock])
        scene.kept.numbers[lock] = made.value["number"]
    return f"{made.value['bytes']} bytes"


def knowing(text, expected):
    """A situation: which locks have taken their bulletin, as their audit logs say."""
    return situation(text, expected)(lambda scene: scene.who_knows())


# Couriers


@step("anna's phone fetches the mail for both locks")
def fetch(scene):
    counts = [each["bulletins"] for each in scene.sync(ANNA)["devices"]]
    return f"{sum(counts)} bulletins, which it cannot change"


@situation("anna opens the front door, and her phone delivers", "accepted, 1 bulletin")
def deliver(scene):
    ending = scene.visit(ANNA, "front", *PATIENCE)
    return f"{ending.status}, {ending.value.get('bulletins_delivered', 0)} bulletin"


@situation("ben opens the back door with a forged bulletin", "accepted, 0 bulletins")
def lie(scene):
    scene.sync(BEN)
    file = scene.mail(BEN, "back")
    mail = json.loads(file.read_text())
    if len(mail["bulletins"]) != 1:
        raise Failed(f"ben carries {len(mail['bulletins'])} bulletins for the back door")
    genuine = base64.b64decode(mail["bulletins"][0]["bulletin"])
    forged = genuine[:-SIGNATURE_BYTES] + bytes([genuine[-SIGNATURE_BYTES] ^ 1]) + genuine[1 - SIGNATURE_BYTES :]
    mail["bulletins"][0]["bulletin"] = base64.b64encode(forged).decode()
    file.write_text(json.dumps(mail))
    ending = scene.visit(BEN, "back", *PATIENCE)
    return f"{ending.status}, {ending.value.get('bulletins_delivered', 0)} bulletins"


@situation("… and with what he has fetched anew", "accepted, 1 bulletin")
def deliver_honestly(scene):
    scene.sync(BEN)
    ending = scene.visit(BEN, "back", *PATIENCE)
    return f"{ending.status}, {ending.value.get('bulletins_delivered', 0)} bulletin"


@situation("the front door's bulletin again, on a USB stick", "known")
def bring_again(scene):
    file = scene.mail(ANNA, "front")
    scene.sync(BEN)
    mail = json.loads(scene.mail(BEN, "front").read_text())
    bulletin = next(each["bulletin"] for each in mail["bulletins"])
    stick = scene.path("bulletin.cose")
    stick.write_bytes(base64.b64decode(bulletin))
    if not file.exists():
        raise Failed("anna's phone has forgotten what it delivered")
    return scene.succeed("device", "bulletin", "--dir", scene.path("front"), stick).value["result"]


# The logs, read at home


@situation("the thief's visits, in the log that is at home", "none")
def read_too_early(scene):
    return count_visits(scene, "front")


@step("anna and ben hand in the pages that they carried")
def hand_in(scene):
    pages = [device["pages_handed_in"] for phone in (ANNA, BEN) for device in scene.sync(phone)["devices"]]
    return f"{sum(pages)} pages, which they cannot read"


@situation("the thief's visits now, at the front door", "2")
def read_front(scene):
    return count_visits(scene, "front")


@situation("and at the back door", "1")
def read_back(scene):
    return count_visits(scene, "back")


@situation("entries of the logs that are missing", "none")
def missing(scene):
    numbers = {lock: scene.at_home(lock)["missing"] for lock in LOCKS}
    return ", ".join(f"{lock}: {number}" for lock, number in numbers.items() if number) or "none"


def count_visits(scene, lock):
    """The rounds of the stolen phone that the lock accepted, as the service knows."""
    token = scene.kept.stolen[lock]
    entries = [entry for entry in scene.at_home(lock)["entries"] if entry["event"] == "round"]
    found = [entry for entry in entries if entry["token"] == token and entry["status"] == "accepted"]
    return str(len(found) or "none")
