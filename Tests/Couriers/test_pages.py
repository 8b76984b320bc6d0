"""Pages of the audit log, which provers carry home, and the home's receipts.

Source: docs/couriers.md, The audit log goes home.
"""

import json
import random

import pytest
from couriers import MALFORMED_ABOUT_PAGES, Courier, compatibility_status, expect_pages_once_each
from holdfast_peer import audit, cbor, pages, session
from holdfast_peer.issuer import Issuer
from holdfast_peer.keys import PrivateKey, jwk
from holdfast_peer.refusal import Refused
from holdfast_peer.session import COSE

LARGEST = 2**53 - 1
VISITS, COURIERS, LIARS = 1000, 5, 2


class Homed:
    """A device whose log has a home, which the test plays."""

    def __init__(self, lock, **rules):
        self.lock, self.agreement = lock, PrivateKey()
        announced = lock.folder / "home.json"
        point = lock.issuer.key.point
        announced.write_text(json.dumps({"issuer": jwk(point), "agreement": jwk(self.agreement.point)}))
        assert lock.owner("trust", announced).returncode == 0
        self.set_rules(**rules)
        self.home = pages.Home(self.agreement, lock.descriptor, lock.issuer.key)

    def set_rules(self, **rules):
        policy = self.lock.device_folder / "policy.json"
        text = json.loads(policy.read_text())
        text["audit"] = {"home": self.lock.issuer.key.kid.hex(), **rules}
        policy.write_text(json.dumps(text))

    def log(self):
        """The entries in the ledger, by number."""
        file = self.lock.folder / "copy.jsonl"
        file.unlink(missing_ok=True)
        assert self.lock.owner("audit", "--to", file).returncode == 0
        entries = audit.verify_file(file.read_bytes())
        return {cbor.decode(entry)[0]: entry for entry in entries}

    def acknowledged(self):
        return json.loads(self.lock.owner("show", "--all", "--json").stdout)["audit_acknowledged"]


@pytest.fixture
def homed(lock):
    return Homed(lock)


@pytest.fixture
def carrier(lock):
    carrier = Courier(lock)
    yield carrier
    carrier.close()


def test_a_thousand_visits_of_five_couriers_of_whom_two_lie_bring_the_whole_log_home(lock, homed):
    """The liars drop pages, hand in their own inventions and pages of others twice, and keep receipts to themselves."""
    luck = random.Random(22)
    carriers = [Courier(lock) for _ in range(COURIERS)]
    bags, receipts = [[] for _ in carriers], [None for _ in carriers]
    old = []
    for visit in range(VISITS):
        number = luck.randrange(COURIERS)
        carrier, is_liar = carriers[number], number < LIARS
        carrier.accepted()
        sealed = carrier.page(luck.choice((0, 0, 0, LARGEST, 1 + luck.randrange(1000))))
        if receipts[number] and not is_liar:
            assert carrier.hand_over(receipts[number]) in ("taken", "known")
        elif is_liar:
            forged = pages.receipt(lock.descriptor.device_id, LARGEST, bytes(32), Issuer().key)
            assert carrier.hand_over(forged) == "refused"
        if sealed:
            bags[number].append(sealed)
        if visit % 7 == number:
            if is_liar:
                for page in bags[number]:
                    with pytest.raises(Refused):
                        homed.home.take(page[:-1] + bytes([page[-1] ^ 1]))
                bags[number] = luck.sample(old, min(3, len(old)))
            luck.shuffle(bags[number])
            for page in bags[number]:
                homed.home.take(page)
            old += bags[number]
            bags[number] = []
            if homed.home.through:
                receipts[number] = homed.home.receipt()
    for _ in range(200):
        if homed.home.through == homed.home.count:
            break
        carriers[-1].accepted()
        homed.home.take(carriers[-1].page(homed.home.through + 1))
    log = homed.log()
    assert homed.home.through >= VISITS
    assert {number: log[number] for number in homed.home.entries} == homed.home.entries
    assert 0 < homed.acknowledged() <= homed.home.through
    last = carriers[-1].accepted()
    assert last.hand_over(homed.home.receipt()) == "taken"
    assert homed.acknowledged() == homed.home.through
    for carrier in carriers:
        carrier.close()


def test_pages_are_for_those_who_were_accepted_once_each_and_leave_the_challenge_as_it_was(lock, homed):
    expect_pages_once_each(lambda: Courier(lock), homed.home)


@pytest.mark.parametrize("message", MALFORMED_ABOUT_PAGES, ids=repr)
def test_a_malformed_message_ends_the_connection(lock, homed, carrier, message):
    carrier.accepted()
    carrier.expect_malformed(cbor.encode(message))


def test_a_receipt_for_what_the_device_does_not_have_drops_nothing_and_is_in_the_log(lock, homed, carrier):
    device_id, key = lock.descriptor.device_id, lock.issuer.key
    for count, head in ((2, bytes(32)), (LARGEST, bytes(32))):
        carrier.accepted()
        assert carrier.hand_over(pages.receipt(device_id, count, head, key)) == "refused"
        assert homed.acknowledged() == 0
        (refused,) = [each for each in lock.audit() if each["event"] == "receipt-refused" and each["count"] == count]
        assert refused["home"] == key.kid.hex()
    head = audit.chained(audit.START, homed.log()[1])
    carrier.accepted()
    for receipt, result in [
        (pages.receipt(bytes(16), 1, head, key), "notAddressed"),
        (pages.receipt(device_id, 1, head, lock.raised[COSE].key), "refused"),
        (pages.receipt(device_id, 0, bytes(32), key), "refused"),
        (pages.receipt(device_id, 1, head, key)[:-1], "refused"),
        (
            pages.receipt(device_id, 1, head, key, protected=cbor.encode({1: -7, 4: key.kid, 16: "holdfast-bulletin"})),
            "refused",
        ),
        (pages.receipt(device_id, 1, head, key), "taken"),
        (pages.receipt(device_id, 1, head, key), "known"),
    ]:
        assert carrier.hand_over(receipt) == result
    carrier.accepted()
    forged = pages.receipt(device_id, 2, head, key, signature=bytes([1]) * 64)
    assert carrier.hand_over(forged) == "refused"
    carrier.expect_closed()
    lock.restart()
    assert homed.acknowledged() == 1


def test_a_full_log_refuses_commands_until_a_courier_has_carried_it_home(lock, homed, carrier):
    homed.set_rules(entries=1000, when_full="refuse")
    outcome = carrier.round()
    for _ in range(1100):
        if session.NAMES[outcome.status] != "accepted":
            break
        outcome = carrier.round()
    assert session.NAMES[outcome.status] == "commandRefused"
    assert outcome.result["result"] == b"auditLogFull"
    last = len(homed.log())
    while homed.home.through < last:
        assert session.NAMES[carrier.round().status] == "commandRefused"
        homed.home.take(carrier.page(homed.home.through + 1))
    assert carrier.hand_over(homed.home.receipt()) == "taken"
    carrier.accepted()
    assert min(homed.log()) == 1, "what is acknowledged is kept as long as there is room"


def test_a_prover_that_is_refused_pushes_nothing_out_of_a_full_log(lock, homed, carrier):
    """Each nonce of a compatibility round is kept, also if the round is refused."""
    homed.set_rules(entries=1000, when_full="refuse")
    while session.NAMES[carrier.round(command="unlock").status] == "accepted":
        pass
    before = homed.log()
    for _ in range(1000 // 16 + 10):
        assert compatibility_status(lock, carrier.grant) == "commandRefused"
    assert homed.log() == before


def test_provers_of_the_command_line_carry_the_log_home_to_a_service(lock):
    run = lock.command_line
    service, descriptor = lock.service()
    shown = run.read_json("service", "show", "--dir", service)
    announced = lock.folder / "announced.json"
    announced.write_text(json.dumps(shown))
    assert lock.owner("trust", announced).returncode == 0
    policy = lock.device_folder / "policy.json"
    policy.write_text(json.dumps({**json.loads(policy.read_text()), "audit": {"home": shown["kid"]}}))
    phones = [lock.folder / name for name in ("anna", "ben")]
    for phone in phones:
        run.succeed("enroll", "--device", descriptor, "--service", service, "--state", phone)

    def prove(phone, *more):
        words = ("prove", "--connect", lock.endpoint, "--state", phone, "--command", "unlock", "--json", *more)
        return json.loads(run.succeed(*words, "--timeout", "60"))

    def sync(phone):
        done = run.succeed("sync", "--state", phone, "--service", service, "--json")
        (device,) = json.loads(done)["devices"]
        return device["pages_handed_in"]

    def at_home():
        done = run.run("service", "audit", "--dir", service, "--device", descriptor, "--json")
        return done.returncode, json.loads(done.stdout)

    assert at_home() == (0, {**at_home()[1], "count": 0, "entries": []})
    assert "audit_page_taken" not in prove(phones[0], "--courier", "off")
    for _ in range(3):
        assert prove(phones[0], "--courier", "20000")["audit_page_taken"]
    # Each page has reached the end of the log, so that ben's begins anew: they overlap.
    assert prove(phones[1], "--courier", "20000")["audit_page_taken"]
    assert [sync(phone) for phone in reversed(phones)] == [1, 3]
    status, log = at_home()
    assert (status, log["missing"], log["forked"]) == (0, None, False)
    assert [entry["sequence"] for entry in log["entries"]] == list(range(1, log["count"] + 1))
    assert log["entries"][-1]["transport"] == "socket"
    assert sync(phones[0]) == 0, "pages are handed in once"
    prove(phones[0], "--courier", "20000")
    shown = json.loads(lock.owner("show", "--all", "--json").stdout)
    assert 0 < shown["audit_acknowledged"] <= log["count"]
    lock.stop()
    couriers = json.loads(lock.owner("couriers", "--json").stdout)["couriers"]
    assert sorted((each["pages"], each["receipts"]) for each in couriers) == [(1, 0), (4, 1)]
    lock.start()
    # A bulletin that the device refuses at each visit, because its policy names no introducers, keeps no receipt from it.
    sync(phones[0])
    introduced = lock.folder / "introduced.json"
    introduced.write_text(json.dumps(jwk(PrivateKey().point)))
    words = ("--introduce", introduced, "--introduce-until", "2099-01-01T00:00:00Z")
    run.succeed("service", "bulletin", "--dir", service, "--device", descriptor, *words)
    sync(phones[0])
    acknowledged = [json.loads(lock.owner("show", "--all", "--json").stdout)["audit_acknowledged"]]
    for _ in range(4):
        prove(phones[0], "--courier", "20000")
        acknowledged.append(json.loads(lock.owner("show", "--all", "--json").stdout)["audit_acknowledged"])
        sync(phones[0])
    assert len(set(acknowledged)) == 3, f"two of four visits begin with the receipt: {acknowledged}"
