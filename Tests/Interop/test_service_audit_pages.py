"""Audit logs that go home to `holdfast-service`: a device seals pages, provers carry them, and receipts come back."""

import base64
import concurrent.futures
import contextlib
import json
import os
import tempfile
import time

import postgresql
import pytest
from holdfast_peer import transport
from holdfast_peer.command_line import stop
from test_service import Instance, new_service
from test_service_bulletins import OK, UNAVAILABLE, WAIVED, Stranger, enroll


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def pair(request):
    """A primary of PostgreSQL with a synchronous standby; None for SQLite, whose operator does without a standby."""
    if request.param == "sqlite":
        yield None
        return
    with tempfile.TemporaryDirectory(prefix="hf") as folder:
        os.chmod(folder, 0o711)
        try:
            pair = postgresql.Pair(folder)
        except postgresql.Absent as reason:
            pytest.skip(str(reason))
        pair.create()
        # Otherwise the service sees no standby, and signs nothing.
        pair.primary.sql(f"GRANT pg_read_all_stats TO {postgresql.ROLE}")
        try:
            yield pair
        finally:
            pair.kill()


@pytest.fixture(scope="module")
def service(request, tmp_path_factory, pair):
    return new_service(request, tmp_path_factory.mktemp("audit-pages"), pair and pair.url)


@pytest.fixture(scope="module")
def instance(service, pair):
    instance = Instance(service, within=() if pair else WAIVED)
    yield instance
    assert instance.stop() == 0, "exit status"


@pytest.fixture(scope="module")
def device(service):
    return service.descriptor["device_id"]


def state_of(service, device):
    (state,) = [log for log in service.json("list", "audit-logs")["items"] if log["device"] == device]
    return state


def prove(service, state):
    """The device may be starting."""
    transport.connect_when_ready(f"{service.folder}/s").close()
    words = ("--connect", f"unix:{service.folder}/s", "--state", state, "--command", "unlock")
    return service.command_line.read_json("prove", *words, "--courier", "10000", "--timeout", "60")


def test_a_log_goes_home_and_its_receipt_comes_back(service, instance, device, pair):
    """The device names the service as the home of its log; one prover carries pages there and the receipt back."""
    keys = instance.ask("GET", "/.well-known/jwks.json")[2]
    (service.folder / "keys.json").write_text(json.dumps(keys))
    line, folder = service.command_line, service.folder / "device"
    line.succeed("device", "trust", "--dir", folder, service.folder / "keys.json")
    policy = json.loads((folder / "policy.json").read_text())
    padded = keys["keys"][0]["kid"] + "="
    policy["audit"] = {"home": base64.urlsafe_b64decode(padded).hex()}
    (folder / "policy.json").write_text(json.dumps(policy))
    assert len(service.json("list", "devices", "--silent-days", "1")["items"]) == 1
    phone = service.folder / "phone"
    enroll(service, instance, phone)
    lock = line.start("device", "serve", "--dir", folder, "--listen", f"unix:{service.folder}/s")
    try:
        for _ in range(3):
            prove(service, phone)
        said = line.read_json("sync", "--state", phone)["devices"][0]
        assert said["pages_handed_in"] >= 1, said
        state = state_of(service, device)
        assert state["pages_taken"] >= 1 and state["forked"] is None, state
        assert state["missing"] == 0 and state["acknowledged"] == state["complete_through"] > 0, state
        assert service.json("list", "devices", "--silent-days", "1")["items"] == []
        prove(service, phone)
        # The next pages begin behind what the receipt acknowledged.
        prove(service, phone)
        line.read_json("sync", "--state", phone)
        later = state_of(service, device)
        assert later["complete_through"] > state["complete_through"] and later["missing"] == 0, later
        check_that_pages_are_kept_for_a_service_that_takes_them(service, phone)
        check_the_path_of_a_stolen_phone(service, instance, phone)
        if pair:
            check_that_a_receipt_needs_the_standby(service, phone, device, pair)
    finally:
        stop(lock)
    events = {entry["event"] for entry in service.json("list", "audits", "--device", device)["items"]}
    assert "started" in events, events
    actions = [change["action"] for change in service.json("list", "changes", "--limit", "1000")["items"]]
    assert "audit.page" in actions and "audit.receipt" in actions
    events = [event["event"] for event in service.json("list", "timeline", "--device", device)["items"]]
    assert {"device.add", "audit.page", "audit.receipt", "bulletin.issued", "bulletin.taken"} <= set(events), events


def check_that_pages_are_kept_for_a_service_that_takes_them(service, phone):
    """A service of an earlier version has no operation for pages."""
    prove(service, phone)
    with contextlib.closing(Stranger()) as stranger:
        stranger.answer = b'{"bulletins": []}'
        done = service.command_line.run("sync", "--state", phone, "--service", stranger.url, "--json")
    assert done.returncode == OK and b"takes no audit log" in done.stderr, done
    assert json.loads(done.stdout)["devices"][0]["pages_handed_in"] == 0
    assert service.command_line.read_json("sync", "--state", phone)["devices"][0]["pages_handed_in"] >= 1


def check_the_path_of_a_stolen_phone(service, instance, phone):
    """It is revoked; another phone brings the bulletin to the device, and the device's log home."""
    token, _ = enroll(service, instance, service.folder / "stolen")
    prover = service.json("show", "tokens", token)["prover"]
    service.verb("revoke", "token", token, "--reason", "stolen")
    (path,) = service.json("list", "reach", "--prover", prover)["items"]
    assert path["token"] == token and path["revoked"] and path["bulletin"] is None and path["known"] is None, path
    assert service.command_line.read_json("sync", "--state", phone)["devices"][0]["bulletins"] == 1
    (path,) = service.json("list", "reach", "--token", token)["items"]
    assert path["bulletin"] and path["known"] is None, path
    for _ in range(3):
        prove(service, phone)
    service.command_line.read_json("sync", "--state", phone)
    (path,) = service.json("list", "reach", "--token", token)["items"]
    assert abs(path["known"] - time.time()) < 600, path


def check_that_a_receipt_needs_the_standby(service, phone, device, pair):
    """While the standby is down, nothing is acknowledged; afterwards, the same pages are."""
    before = state_of(service, device)["acknowledged"]
    prove(service, phone)
    pair.standby.kill()
    done = service.command_line.run("sync", "--state", phone, "--timeout", "3", "--json")
    assert done.returncode == UNAVAILABLE, done
    assert state_of(service, device)["acknowledged"] == before
    pair.standby.start()
    pair.wait_for_replication()
    service.command_line.read_json("sync", "--state", phone)
    assert state_of(service, device)["acknowledged"] > before


def text(count):
    return base64.b64encode(os.urandom(count)).decode()


def test_pages_of_strangers_get_no_receipt_and_are_counted(service, instance, device):
    nothing = {"receipt": None, "missing": None}
    for pages in ([text(288)], [text(3872)] * 4, [text(1), text(288)]):
        status, _, answer = instance.ask("POST", "/v1/audit", {"device": device, "pages": pages})
        assert status == 200 and answer == nothing
    time.sleep(1.1)
    assert instance.ask("POST", "/v1/audit", {"device": device, "pages": [text(288)]})[2] == nothing
    assert state_of(service, device)["pages_refused"] >= 8
    status, _, answer = instance.ask("POST", "/v1/audit", {"device": "ab" * 16, "pages": [text(288)]})
    assert status == 200 and answer == nothing


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"pages": [text(288)]},
        {"device": "ab" * 15, "pages": [text(288)]},
        {"device": "ab" * 16, "pages": []},
        {"device": "ab" * 16, "pages": [text(288)] * 5},
        {"device": "ab" * 16, "pages": [text(4097)]},
        {"device": "ab" * 16, "pages": ["*"]},
        {"device": "ab" * 16, "pages": [1]},
        {"device": "ab" * 16, "pages": [text(288)], "more": 1},
    ],
)
def test_bodies_of_another_form_are_a_problem(instance, body):
    status, headers, problem = instance.ask("POST", "/v1/audit", body)
    assert status == 400 and headers["Content-Type"] == "application/problem+json", problem


def test_a_flood_of_forged_pages_changes_nothing_but_a_count(service, instance, device):
    before = service.json("list", "audits", "--device", device)
    time.sleep(1.1)
    assert instance.ask("POST", "/v1/audit", {"device": device, "pages": [text(288)]})[0] == 200
    refused = state_of(service, device)["pages_refused"]
    body = {"device": device, "pages": [text(3872)] * 4}
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: instance.ask("POST", "/v1/audit", body)[0], range(100)))
    assert answers == [200] * 100
    time.sleep(1.1)
    # What is refused within a second is counted with the next page.
    assert instance.ask("POST", "/v1/audit", {"device": device, "pages": [text(288)]})[0] == 200
    assert state_of(service, device)["pages_refused"] == refused + 401
    assert service.json("list", "audits", "--device", device) == before
