"""Keys of `holdfast-service` that bulletins introduce to a device, and end there: verbs, HTTP, the log, and a device that is visited."""

import base64
import json
import time

import pytest
from couriers import VisitedDevice
from devices import served
from test_service import Instance, new_database, new_service
from test_service import server as server  # noqa: PLC0414
from test_service_bulletins import DENIED, MALFORMED, OK, USAGE, delivered, enroll, fetched, prove, synchronised, trust

DAY = 86400


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def service(request, tmp_path_factory):
    database = None if request.param == "sqlite" else new_database(request.getfixturevalue("server"))
    return new_service(request, tmp_path_factory.mktemp("keys"), database)


@pytest.fixture(scope="module")
def instance(service):
    instance = Instance(service)
    yield instance
    assert instance.stop() == 0, "exit status"


@pytest.fixture(scope="module")
def old(service):
    """The first key of the service."""
    return service.json("list", "keys")["items"][0]["id"]


@pytest.fixture(scope="module")
def lock(request, service, instance, old):
    """A device of the service in the group north, whose policy lets the first key introduce others. It serves provers."""
    folder = service.folder / "lock-8"
    folder.mkdir()
    with served(VisitedDevice(request.config.getoption("holdfast").resolve(), folder)) as lock:
        trust(service, instance, lock.device_folder)
        policy = lock.device_folder / "policy.json"
        rules = {**json.loads(policy.read_text()), "introducers": [old]}
        policy.write_text(json.dumps(rules))
        lock.restart()
        (folder / "device.json").write_bytes(lock.owner("show", "--json").stdout)
        service.verb("device", "add", folder / "device.json", "--label", "lock-8", "--group", "north")
        yield lock


def trusted(service, lock):
    """The keys of the service that a device trusts, with the times from which it does not."""
    keys = {each["id"] for each in service.json("list", "keys")["items"]}
    return {kid: each.get("until") for kid, each in lock.trusted().items() if kid in keys}


def test_a_device_without_a_network_follows_a_rotation_of_the_key(service, instance, lock, old):
    """Provers bring it the introduction of the new key, and the end of the old one."""
    phone, courier, late = (service.folder / name for name in ("phone", "courier", "late"))
    for state in (phone, courier):
        enroll(service, instance, state, lock)
    new = service.json("rotate-key", "--after", "1s")["id"]
    refused = service.run("end-key", old, "--group", "north")
    assert refused.returncode == DENIED and b"introduce-key" in refused.stderr, refused
    done = service.run("introduce-key", new, "--group", "north", "--by", old, "--days", "30")
    assert done.returncode == OK and old.encode() in done.stderr and b"microcontrollers" in done.stderr, done
    assert b"north" in done.stdout and new.encode() in done.stdout, done
    assert synchronised(service, phone) == 1
    assert delivered(prove(service, phone, lock)) == 1
    assert set(trusted(service, lock)) == {old, new}
    time.sleep(1.5)
    enroll(service, instance, late, lock)
    assert service.json("list", "tokens", "--limit", "1000")["items"], "tokens"
    assert prove(service, late, lock).returncode == OK, "a token of the new key"
    done = service.run("end-key", old, "--device", "lock-8")
    assert done.returncode == OK and b"enroll" in done.stderr, done
    assert synchronised(service, courier) == 1
    assert delivered(prove(service, courier, lock)) == 1
    assert set(trusted(service, lock)) == {new}
    for state in (phone, courier):
        refused = prove(service, state, lock)
        assert refused.returncode == DENIED and b"tokenInvalid" in refused.stdout, refused
    assert prove(service, late, lock).returncode == OK
    lock.restart()
    assert prove(service, late, lock).returncode == OK and prove(service, phone, lock).returncode == DENIED
    check_what_operators_see(service, instance, lock, old, new)


def check_what_operators_see(service, instance, lock, old, new):
    device = lock.descriptor.device_id.hex()
    orders = service.json("list", "key-orders", "--device", device)["items"]
    (ended,) = (each for each in orders if each["ended"])
    (introduced,) = (each for each in orders if each["introduced"])
    assert (ended["for"], ended["key"], ended["introducer"], ended["until"]) == ("lock-8", old, None, None)
    assert (introduced["for"], introduced["key"], introduced["introducer"]) == ("north", new, old)
    assert introduced["until"] - introduced["from"] == 30 * DAY
    (bulletin,) = fetched(instance, lock)
    assert bulletin["number"] == ended["bulletin"] and bulletin["predecessor"] == 0
    assert lock.hand_in(base64.b64decode(bulletin["bulletin"]))[0] == MALFORMED, "its key ended"
    (listed,) = (each for each in service.json("list", "bulletins")["items"] if each["number"] == bulletin["number"])
    assert (listed["introduced_keys"], listed["ended_keys"], listed["signer"]) == (1, 1, old)
    assert service.json("list", "key-orders", "--device", "00" * 16)["items"] == []
    events = {each["event"] for each in service.json("list", "timeline", "--device", device)["items"]}
    assert "device.end-key" in events
    changes = [(each["action"], each["object"]) for each in service.json("list", "changes", "--limit", "20")["items"]]
    assert ("group.introduce-key", "north") in changes and ("device.end-key", device) in changes


def test_an_end_and_an_introduction_that_cannot_be_are_refused(service, lock, old):
    new = service.json("rotate-key", "--after", "30d")["id"]
    before = service.json("list", "key-orders")
    for words, status in [
        (("introduce-key", new), USAGE),
        (("introduce-key", new, "--group", "north", "--device", "lock-8"), USAGE),
        (("introduce-key", new, "--group", "south"), MALFORMED),
        (("introduce-key", new, "--device", "lock-9"), MALFORMED),
        (("introduce-key", "00" * 8, "--group", "north"), MALFORMED),
        (("introduce-key", "key", "--group", "north"), MALFORMED),
        (("introduce-key", new, "--group", "north", "--by", "key"), USAGE),
        (("introduce-key", new, "--group", "north", "--by", new), DENIED),
        (("introduce-key", new, "--device", "lock-8", "--by", old), DENIED),
        (("introduce-key", new, "--group", "north", "--days", "0"), USAGE),
        (("introduce-key", new, "--group", "north", "--days", "36501"), USAGE),
        (("introduce-key", new, "--group", "north", "--days", "29"), USAGE),
        (("introduce-key", new, "--group", "north", "--from", "some day"), USAGE),
        (("introduce-key", new, "--group", "north", "--from", "2020-01-01T00:00:00Z", "--days", "30"), USAGE),
        (("end-key", old), USAGE),
        (("end-key", "00" * 8, "--group", "north", "--without-successor"), MALFORMED),
        (("end-key", old, "--group", "south", "--without-successor"), MALFORMED),
        (("end-key", service.json("list", "key-orders")["items"][-1]["key"], "--device", "lock-7"), DENIED),
    ]:
        done = service.run(*words)
        assert done.returncode == status and done.stderr, (words, done)
    assert service.json("list", "key-orders") == before


def test_only_an_administrator_introduces_and_ends_keys(service, instance, lock):
    new = service.json("rotate-key", "--after", "1d")["id"]
    present = sorted(service.json("list", "keys")["items"], key=lambda each: each["active"])[1]["id"]
    until = int(time.time()) + 400 * DAY
    requests = [
        (f"/v1/admin/keys/{new}/introduce", {"group": "north", "until": until, "introducer": present}),
        (f"/v1/admin/keys/{new}/end", {"group": "north"}),
    ]
    tokens = {scope: service.operator(f"{scope}-keys", scope) for scope in ("read", "approve", "revoke", "admin")}
    for path, body in requests:
        for scope, token in tokens.items():
            assert instance.ask("POST", path, body, token=token)[0] == (200 if scope == "admin" else 403), (path, scope)
        assert instance.ask("POST", path, body)[0] == 401, path
    introduce, end = (path for path, _ in requests)
    for path, body, status, reasons in [
        (introduce, {"group": "north", "until": until}, 409, ["endedKey"]),
        (introduce, {"device": lock.descriptor.device_id.hex(), "until": until}, 409, ["endedKey"]),
        (introduce, {"group": "north"}, 400, []),
        (introduce, {"group": "north", "until": "2030"}, 400, []),
        (introduce, {"group": "north", "until": until, "introducer": "00"}, 400, []),
        (introduce, {"until": until}, 400, []),
        (end, {"group": "north", "without_successor": 1}, 400, []),
        (end, {"group": "south"}, 404, []),
        (f"/v1/admin/keys/{present}/end", {"group": "north"}, 409, ["noSuccessor"]),
        (f"/v1/admin/keys/{'00' * 8}/end", {"group": "north"}, 404, []),
    ]:
        code, _, problem = instance.ask("POST", path, body, token=tokens["admin"])
        assert code == status and (not reasons or problem["reasons"] == reasons), (path, body, problem)


def test_the_log_warns_before_devices_no_longer_trust_the_key_that_signs(service):
    """The introduction above is for 30 days."""
    warned = Instance(service)
    try:
        for _ in range(600):
            lines = [json.loads(line) for line in warned.log.read_text().splitlines() if "the trust in" in line]
            if lines:
                break
            time.sleep(0.1)
        (line,) = lines
        assert line["level"] == "warning" and "at north" in line["message"] and "introduce-key" in line["remedy"], line
    finally:
        assert warned.stop() == 0, "exit status"
