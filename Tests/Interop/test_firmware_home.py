"""The home of a board's audit log in the image of its flash: written by Holdfast and read in Python, and the other way round.

Source: docs/provisioning.md, The format; docs/couriers.md, A full log.
"""

import json

import pytest
from holdfast_peer import audit, cbor, flash, provision
from holdfast_peer.keys import PrivateKey, point_of_jwk
from test_firmware_image import MALFORMED, OK, Workshop

POLICY = {"version": 1, "commands": {"unlock": {"factors": ["integrity", "device"]}}}
# The newest entries that are kept in any case, and the bytes of others that wait for their home.
KEPT, MOST_BYTES = 16, 20_480
# The journal moves before a transaction if it has less room.
LEAST_ROOM = 1024
ENTRIES_LOST = 26


class HomeWorkshop(Workshop):
    """A workshop whose service is the home of its devices' logs."""

    def __init__(self, holdfast, folder):
        super().__init__(holdfast, folder)
        announced = json.loads(self.issuer.read_bytes())
        self.kid = bytes.fromhex(announced["kid"])
        self.agreement = point_of_jwk(announced["agreement"])

    def homed(self, *more, **rules):
        """An image of a device whose log has a home."""
        policy = self.path / "policy.json"
        policy.write_text(json.dumps({**POLICY, "audit": {"home": self.kid.hex(), **rules}}))
        return self.make("--policy", policy, *more)

    def summary(self, image):
        return json.loads(self.run(OK, "device", "show", "--firmware", image, "--all", "--json").stdout)


@pytest.fixture(scope="module")
def workshop(holdfast, folder):
    return HomeWorkshop(holdfast, folder)


def read(image):
    return flash.read(image.read_bytes())


def body(image):
    """The elements of an image's provision."""
    data = image.read_bytes()
    return cbor.decode(data[12 : 12 + int.from_bytes(data[8:12], "little")])


def with_items(image, *items):
    """An image with these items behind its own, each in a separate transaction."""
    log = flash.transactions_in_force(image)
    written = b"".join(flash.transaction(7, data) for data in [*log, *map(cbor.encode, items)])
    return flash.image(image[: flash.SLOTS[0]].rstrip(b"\xff"), flash.slot_head(7) + written)


def size(entry):
    return flash.transaction_size([3, entry])


# The provision


@pytest.mark.parametrize(
    "rules", [{}, {"entries": 1000, "when_full": "drop"}, {"entries": 1000, "when_full": "refuse"}]
)
@pytest.mark.parametrize("names", [[], ["north"], ["south", "doors"]])
def test_an_image_names_its_home_and_its_groups(workshop, rules, names):
    image = workshop.homed("--trust", "issuer.json", *(word for name in names for word in ("--group", name)), **rules)
    found, summary = read(image), workshop.summary(image)
    refuses = rules.get("when_full") == "refuse"
    assert found["home"] == [workshop.kid, refuses, workshop.agreement]
    assert found["groups"] == names
    assert (found["auditCount"], found["auditHead"].hex()) == (summary["audit_entries"], summary["audit_head"])
    assert found["unacknowledgedBytes"] == sum(map(size, found["entries"]))
    # What Python writes is the same, byte by byte.
    device_id, scalar, *_, issuers, policy = body(image)
    groups = provision.groups(device_id, names) if names else None
    home = provision.home(workshop.kid, refuses, workshop.agreement)
    made = provision.fields(device_id, PrivateKey(scalar), issuers, policy, groups, home)
    pages = provision.pages(cbor.encode(made))
    assert image.read_bytes()[: len(pages)] == pages


def test_a_home_keeps_its_place_without_trust_and_gets_its_key_with_it(workshop):
    image = workshop.homed()
    assert read(image)["home"] == [workshop.kid, False, None]
    workshop.run(OK, "device", "trust", "--firmware", image, "issuer.json")
    assert read(image)["home"] == [workshop.kid, False, workshop.agreement]
    workshop.run(OK, "device", "trust", "--firmware", image, "--remove", workshop.kid.hex())
    assert read(image)["home"] == [workshop.kid, False, None]
    workshop.run(OK, "device", "trust", "--firmware", image, "issuer.json")
    assert read(image)["home"] == [workshop.kid, False, workshop.agreement]


def test_a_home_that_is_spoiled_is_refused(workshop):
    image = workshop.homed("--trust", "issuer.json")
    data, fields = image.read_bytes(), body(image)
    kid, refuses, point = fields[4]
    for home in (
        None,
        [kid, refuses],
        [kid, 2, point],
        [kid, refuses == 1, point],
        [kid[:7], refuses, point],
        [kid, refuses, point[:64]],
        [kid, refuses, b"\2" + point[1:]],
    ):
        pages = provision.pages(cbor.encode([*fields[:4], home, *fields[5:]]))
        spoiled = workshop.copy(pages + data[len(pages) :])
        workshop.refuse(spoiled, MALFORMED, "damaged")


# The journal


def test_a_receipt_is_shown(workshop):
    image = workshop.homed("--trust", "issuer.json")
    second = size(read(image)["entries"][2])
    image = workshop.copy(with_items(image.read_bytes(), [16, 2, second]))
    assert workshop.summary(image)["audit_acknowledged"] == 2
    shown = workshop.run(OK, "device", "show", "--firmware", image, "--all").stdout.decode()
    assert "at home      entries up to 2\n" in shown
    workshop.run(OK, "device", "trust", "--firmware", image, "issuer.json", "--remove")
    found = read(image)
    assert found["acknowledged"] == 2
    assert found["unacknowledgedBytes"] == sum(map(size, found["entries"][2:]))
    workshop.run(OK, "device", "audit", "--firmware", image, "--verify")


@pytest.mark.parametrize("item", [[16, "2", 0], [16, 2], [16, 2, 0, 0], [16, -1, 0], [16, 2, None], [16, 2**53, 0]])
def test_a_receipt_that_is_spoiled_is_refused(workshop, item):
    image = workshop.homed("--trust", "issuer.json")
    workshop.refuse(workshop.copy(with_items(image.read_bytes(), item)), MALFORMED, "damaged")


def full(workshop, image, waiting):
    """The image with so many entries that the next one moves the journal. All but the newest `waiting` are at home; none if it is None."""
    found = read(image)
    number, time, items = found["auditCount"], found["clockFloor"], []
    transactions = flash.transactions_in_force(image.read_bytes())
    room = flash.SLOT_SIZE - len(flash.slot_head(1)) - sum(len(flash.transaction(1, data)) for data in transactions)
    while True:
        # Entries of different lengths.
        item = [3, cbor.encode([number + 1, time, 13, "u" * (number % 33)])]
        room -= flash.transaction_size(item)
        if room < LEAST_ROOM - 100:
            break
        items.append(item)
        number += 1
    if waiting is not None:
        rest = sum(size(entry) for _, entry in items[len(items) - waiting :])
        items.append([16, number - waiting, rest])
    return workshop.copy(with_items(image.read_bytes(), *items))


def moved(workshop, image):
    """What is in the image after a change that moves the journal."""
    workshop.run(OK, "device", "trust", "--firmware", image, "--remove", workshop.kid.hex())
    workshop.run(OK, "device", "audit", "--firmware", image, "--verify")
    return read(image)


@pytest.mark.parametrize("waiting", [0, 1, 15, 16, 17, 100, 250])
def test_when_the_journal_moves_what_is_not_at_home_stays(workshop, waiting):
    image = full(workshop, workshop.homed("--trust", "issuer.json"), waiting)
    before = read(image)
    assert before["unacknowledgedBytes"] == sum(map(size, before["entries"][-waiting:] if waiting else []))
    after = moved(workshop, image)
    assert after["acknowledged"] == before["auditCount"] - waiting
    kept = max(waiting, KEPT)
    assert after["entries"][:-1] == before["entries"][-kept:]
    assert after["auditCount"] == before["auditCount"] + 1
    assert after["unacknowledgedBytes"] == sum(map(size, after["entries"][-waiting - 1 :]))


def test_without_a_home_the_newest_entries_stay(workshop):
    image = full(workshop, workshop.make("--trust", "issuer.json"), None)
    before, after = read(image), moved(workshop, image)
    assert after["entries"][:-1] == before["entries"][-KEPT:]
    assert after["acknowledged"] == 0


@pytest.mark.parametrize("waiting", [None, 600])
def test_a_log_without_room_for_all_drops_the_oldest_and_counts_them(workshop, waiting):
    image = full(workshop, workshop.homed("--trust", "issuer.json"), waiting)
    before, after = read(image), moved(workshop, image)
    # The entry that counts, and that of the change.
    *kept, counting, _ = after["entries"]
    number, _, kind, lost = audit.parse_entry(counting)
    assert (number, kind) == (before["auditCount"] + 1, ENTRIES_LOST)
    assert kept == before["entries"][-len(kept) :]
    assert lost == audit.parse_entry(kept[0])[0] - 1 - before["acknowledged"]
    last_lost = before["entries"][-len(kept) - 1]
    assert sum(map(size, kept)) <= MOST_BYTES < sum(map(size, kept)) + size(last_lost)
    assert after["unacknowledgedBytes"] == sum(map(size, after["entries"]))
    assert after["acknowledged"] == before["acknowledged"]
