"""Bulletins of `holdfast-service`: how provers fetch them, carry them to a device without a network, and what operators see."""

import base64
import contextlib
import http.server
import json
import os
import threading
import time

import pytest
from couriers import VisitedDevice
from device_users import Users
from devices import served
from holdfast_peer import transport
from holdfast_peer.command_line import stop
from test_service import Instance, code_of, new_database, new_service
from test_service import server as server  # noqa: PLC0414

OK, DENIED, MALFORMED, USAGE, UNAVAILABLE = 0, 1, 2, 64, 69
WAIVED = ("/bin/sh", "-c", 'exec "$@" --receipts-without-standby', "sh")


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def service(request, tmp_path_factory):
    database = None if request.param == "sqlite" else new_database(request.getfixturevalue("server"))
    return new_service(request, tmp_path_factory.mktemp("bulletins"), database)


@pytest.fixture(scope="module")
def instance(service):
    instance = Instance(service)
    yield instance
    assert instance.stop() == 0, "exit status"


@pytest.fixture(scope="module")
def device(service):
    return service.descriptor["device_id"]


@pytest.fixture(scope="module")
def lock(request, service, instance):
    """Another device of the service, which has users and is in the group north there. It serves provers."""
    folder = service.folder / "lock-8"
    folder.mkdir()
    with served(VisitedDevice(request.config.getoption("holdfast").resolve(), folder)) as lock:
        trust(service, instance, lock.device_folder)
        (folder / "device.json").write_bytes(lock.owner("show", "--json").stdout)
        service.verb("device", "add", folder / "device.json", "--label", "lock-8", "--group", "north")
        yield lock


def trust(service, instance, device=None):
    """Makes a device trust the service's key."""
    (key,) = instance.ask("GET", "/.well-known/jwks.json")[2]["keys"]
    key = {name: key[name] for name in ("kty", "crv", "x", "y")}
    (service.folder / "issuer.jwk").write_text(json.dumps(key))
    device = device or service.folder / "device"
    service.command_line.succeed("device", "trust", "--dir", device, service.folder / "issuer.jwk")


def enroll(service, instance, state, lock=None):
    """Enrols at the service for its first device, or for another. Returns the id of the token and what the command said."""
    before = {token["id"] for token in service.json("list", "tokens")["items"]}
    code = service.folder / f"code-{os.urandom(4).hex()}"
    code.write_text(service.json("invite", "--device", "lock-8")["code"] if lock else code_of(service))
    code.chmod(0o600)
    descriptor = (lock or service).folder / "device.json"
    done = service.command_line.run(
        *("enroll", "--device", descriptor, "--state", state, "--invitation", code),
        *("--service", f"https://127.0.0.1:{instance.port}", "--ca", service.folder / "certificate.pem"),
    )
    assert done.returncode == OK, done.stderr.decode()[-300:]
    (token,) = {token["id"] for token in service.json("list", "tokens")["items"]} - before
    return token, done.stderr.decode()


def prove(service, state, lock=None):
    endpoint = lock.endpoint if lock else f"unix:{service.folder}/s"
    return service.command_line.run(
        *("prove", "--connect", endpoint, "--state", state, "--command", "unlock", "--json"),
        *("--courier", "10000", "--timeout", "60"),
    )


def delivered(done):
    assert done.returncode == OK, done.stderr.decode()[-300:]
    return json.loads(done.stdout).get("bulletins_delivered", 0)


def synchronised(service, state, *more):
    return service.command_line.read_json("sync", "--state", state, *more)["devices"][0]["bulletins"]


def test_provers_fetch_a_revocation_and_carry_it_to_a_device(service, instance, device):
    """One prover fetches by sync and another by enroll; the lost phone is refused once one of them was at the device."""
    trust(service, instance)
    line = service.command_line
    lost, courier = (service.folder / name for name in ("lost", "courier"))
    token, _ = enroll(service, instance, lost)
    enroll(service, instance, courier)
    lock = line.start("device", "serve", "--dir", service.folder / "device", "--listen", f"unix:{service.folder}/s")
    try:
        transport.connect_when_ready(f"{service.folder}/s").close()
        assert delivered(prove(service, lost)) == 0 and delivered(prove(service, courier)) == 0
        assert synchronised(service, courier) == 0
        service.verb("revoke", "token", token, "--reason", "lost")
        assert synchronised(service, courier) == 1
        # Not even a courier that fetched it tells the lost phone from others; the device has to be visited.
        assert prove(service, lost).returncode == OK
        for number in range(5):
            late = service.folder / f"late-{number}"
            _, said = enroll(service, instance, late)
            # It has five seconds for that, which may be over on a busy machine.
            if "not all mail was exchanged" not in said:
                break
        assert delivered(prove(service, late)) == 1
        refused = prove(service, lost)
        assert refused.returncode == DENIED and b"revoked" in refused.stdout + refused.stderr, refused
        assert delivered(prove(service, courier)) == 0
        assert synchronised(service, courier) == 0
    finally:
        stop(lock)
    check_what_operators_see(service, instance, device, token)


def check_what_operators_see(service, instance, device, token):
    """Which bulletins carry the revocation, and what the device's audit log says it has taken."""
    (bulletin,) = service.json("list", "bulletins", "--token", token)["items"]
    assert bulletin["revocations"] == 1 and bulletin["audience"] == device and bulletin["for"] == "lock-7"
    prover = service.json("show", "tokens", token)["prover"]
    assert service.json("list", "bulletins", "--prover", prover)["items"] == [bulletin]
    assert service.json("list", "bulletins", "--device", device)["items"] == [bulletin]
    (row,) = service.json("list", "deliveries")["items"]
    assert row["newest"]["device"].startswith(f"{bulletin['number']}, 20") and row["taken"] == {"device": "not known"}
    log = service.folder / "audit"
    service.command_line.succeed("device", "audit", "--dir", service.folder / "device", "--to", log)
    service.verb("audit", "receive", log)
    (row,) = service.json("list", "deliveries")["items"]
    assert row["taken"] == {"device": f"{bulletin['number']}, the newest"}
    status, _, answer = instance.ask("GET", f"/v1/bulletins?device={device}")
    (found,) = answer["bulletins"]
    assert status == 200 and {name: found[name] for name in ("audience", "number", "predecessor")} == {
        "audience": device,
        "number": bulletin["number"],
        "predecessor": 0,
    }
    text = base64.b64decode(found["bulletin"])
    assert b"holdfast-bulletin" in text and bytes.fromhex(token) in text and bytes.fromhex(prover) not in text
    assert instance.ask("GET", f"/v1/bulletins?device={device}&have={bulletin['number']}")[2] == {"bulletins": []}


def test_a_device_that_does_not_exist_is_like_one_without_news(instance):
    status, headers, answer = instance.ask("GET", f"/v1/bulletins?device={'ab' * 16}&have=12")
    assert status == 200 and answer == {"bulletins": []} and headers["Content-Type"] == "application/json"


@pytest.mark.parametrize(
    "query",
    [
        "",
        "have=0",
        "device=",
        f"device={'AB' * 16}",
        f"device={'ab' * 15}",
        f"device={'ab' * 16}&have=-1",
        f"device={'ab' * 16}&have=01",
        f"device={'ab' * 16}&have=9007199254740992",
        f"device={'ab' * 16}&device={'ab' * 16}",
        f"device={'ab' * 16}&more=1",
    ],
)
def test_bad_parameters_are_a_problem(instance, query):
    status, headers, problem = instance.ask("GET", f"/v1/bulletins?{query}")
    assert status == 400 and headers["Content-Type"] == "application/problem+json", problem


def test_groups_are_set_by_verb_and_over_http(service, instance, device):
    admin = service.operator(f"admin-{os.urandom(2).hex()}", "admin")
    reader = service.operator(f"reader-{os.urandom(2).hex()}", "read")
    record = service.json("device", "groups", device, "north", "doors", "--revocation-capacity", "64")
    assert record["groups"] == ["north", "doors"] and record["revocation_capacity"] == 64
    path = f"/v1/admin/devices/{device}/groups"
    for body in ({"groups": [""]}, {"groups": [str(name) for name in range(9)]}):
        assert instance.ask("POST", path, body, token=admin)[0] == 400, body
    assert instance.ask("POST", path, {"revocation_capacity": 100_001}, token=admin)[0] == 400
    assert instance.ask("POST", path, {"groups": ["\N{LOCK}" * 9]}, token=admin)[0] == 409
    assert instance.ask("POST", path, {"groups": []}, token=reader)[0] == 403
    status, _, record = instance.ask("POST", path, {"groups": ["a", "a"]}, token=admin)
    assert status == 200 and record["groups"] == ["a"], "a name that is given twice counts once"
    status, _, record = instance.ask("POST", path, {"groups": []}, token=admin)
    assert status == 200 and record["groups"] == [] and record["revocation_capacity"] == 64
    assert service.run("device", "groups", device).returncode == USAGE
    assert service.run("device", "groups", "00" * 16, "--none").returncode not in (OK, USAGE)
    service.verb("device", "groups", device, "--none", "--revocation-capacity", "100000")
    service.verb("device", "add", service.folder / "device.json", "--group", "south")
    assert service.json("show", "devices", device)["groups"] == ["south"]
    service.verb("device", "groups", device, "--none")


def fetched(instance, lock, audience=None):
    """The bulletins for a device, or only those of one audience."""
    _, _, answer = instance.ask("GET", f"/v1/bulletins?device={lock.descriptor.device_id.hex()}")
    return [each for each in answer["bulletins"] if audience in (None, bytes.fromhex(each["audience"]))]


def test_a_minimum_version_reaches_a_group_whose_device_then_refuses_older_apps(service, instance, lock):
    old, new = (service.folder / name for name in ("old", "new"))
    enroll(service, instance, old, lock)
    assert prove(service, old, lock).returncode == OK
    refused = service.run("minimum-version", "holdfast", "1.0.0", "--group", "north")
    assert refused.returncode == DENIED and b"image approve" in refused.stderr, "it would exclude every app"
    service.verb("image", "approve", service.command_line.path, "--subject", "holdfast", "--version", "1.0.0")
    done = service.run("minimum-version", "holdfast", "1.0.0", "--group", "north")
    assert done.returncode == OK and b"1.0.0" in done.stdout and b"microcontrollers" in done.stderr, done
    (bulletin,) = fetched(instance, lock)
    assert bytes.fromhex(bulletin["audience"]) == lock.audiences[1], "the group"
    assert lock.hand_in(base64.b64decode(bulletin["bulletin"])) == (OK, {"result": "taken"})
    refused = prove(service, old, lock)
    assert refused.returncode == DENIED and b"versionTooOld" in refused.stdout, refused
    enroll(service, instance, new, lock)
    assert delivered(prove(service, new, lock)) == 0
    (record,) = service.json("list", "minimum-versions", "--device", lock.descriptor.device_id.hex())["items"]
    assert (record["for"], record["app"], record["version"]) == ("north", "holdfast", [1, 0, 0])
    assert record["bulletin"] == bulletin["number"]
    assert service.json("list", "minimum-versions", "--device", "00" * 16)["items"] == []
    changes = service.json("list", "changes", "--limit", "10")["items"]
    assert ("group.minimum-version", "north", "holdfast 1.0.0") in [
        (each["action"], each["object"], each["detail"]) for each in changes
    ]


@pytest.mark.parametrize(
    ("words", "status"),
    [
        (("holdfast", "0.9.0", "--group", "north"), DENIED),
        (("holdfast", "1.0.1", "--group", "north"), DENIED),
        (("another", "1.0.0", "--group", "north"), DENIED),
        (("holdfast", "1.0.0", "--group", "south"), MALFORMED),
        (("holdfast", "1.0.0", "--device", "lock-9"), MALFORMED),
        (("holdfast", "1.0.0", "--device", "00" * 16), MALFORMED),
        (("holdfast", "1.0", "--group", "north"), USAGE),
        (("holdfast", "1.0.x.1", "--group", "north"), USAGE),
        (("holdfast", "1.0.+1", "--group", "north"), USAGE),
        (("holdfast", "one", "--group", "north"), USAGE),
        (("holdfast", "1.0.x", "--group", "north"), USAGE),
        (("holdfast", "1.0.9007199254740992", "--group", "north"), USAGE),
        (("holdfast", "1.0.0"), USAGE),
        (("holdfast", "1.0.0", "--group", "north", "--device", "lock-8"), USAGE),
        (("", "1.0.0", "--group", "north"), USAGE),
        (("holdfast", "1.0.0", "--group", "g" * 33), USAGE),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_a_minimum_version_that_cannot_be_is_refused(service, lock, words, status):
    """Lower than before, higher than any approved executable, for nobody, or no version."""
    before = service.json("list", "minimum-versions")
    done = service.run("minimum-version", *words)
    assert done.returncode == status and done.stderr, done
    assert service.json("list", "minimum-versions") == before


def test_an_operator_needs_the_right_scope_for_minimum_versions_and_users(service, instance, lock):
    device = lock.descriptor.device_id.hex()
    version = {"group": "north", "app": "holdfast", "version": [1, 0, 0]}
    users = f"/v1/admin/devices/{device}"
    requests = [
        ("/v1/admin/minimum-versions", version, "revoke"),
        (f"{users}/lock-user", {"user": "carol", "until": int(time.time()) + 3600}, "revoke"),
        (f"{users}/remove-user", {"user": "carol"}, "revoke"),
        (f"{users}/forget-user", {"user": "carol"}, "admin"),
    ]
    tokens = {
        scope: service.operator(f"{scope}-{os.urandom(2).hex()}", scope)
        for scope in ("read", "approve", "revoke", "admin")
    }
    for path, body, needed in requests:
        for scope, token in tokens.items():
            assert instance.ask("POST", path, body, token=token)[0] == (200 if scope == needed else 403), (path, scope)
        assert instance.ask("POST", path, body)[0] == 401, path
    for body, status, reasons in [
        ({**version, "version": [0, 9, 0]}, 409, ["lowerVersion"]),
        ({**version, "version": [2, 0, 0]}, 409, ["unapprovedVersion"]),
        ({**version, "group": "south"}, 404, []),
        ({**version, "device": device}, 400, []),
        ({**version, "version": [1, 0]}, 400, []),
        ({**version, "app": "a" * 65}, 400, []),
    ]:
        code, _, problem = instance.ask("POST", "/v1/admin/minimum-versions", body, token=tokens["revoke"])
        assert (code, problem["reasons"]) == (status, reasons), body
    for path, body, status in [
        (f"{users}/lock-user", {"user": "alice", "until": int(time.time()) - 10}, 409),
        (f"{users}/lock-user", {"user": ""}, 400),
        (f"{users}/lock-user", {}, 400),
        (f"{users}/remove-user", {"user": "u" * 33}, 400),
        (f"{users}/remove-user", {"user": "alice", "until": int(time.time()) + 10}, 400),
        ("/v1/admin/devices/" + "00" * 16 + "/lock-user", {"user": "alice"}, 404),
    ]:
        assert instance.ask("POST", path, body, token=tokens["revoke"])[0] == status, (path, body)
    assert instance.ask("POST", f"{users}/forget-user", {"user": "nobody"}, token=tokens["admin"])[0] == 404


def test_a_prover_brings_a_device_the_users_to_lock_and_to_remove(service, instance, lock):
    """Only the device can read who they are. A user that it does not have changes nothing."""
    phone, device = service.folder / "phone", lock.descriptor.device_id
    enroll(service, instance, phone, lock)
    locked, removed, kept = (Users(lock).hotp_user() for _ in range(3))
    for user in (locked, removed, kept):
        user.expect("accepted", "configure", otp=user.hotp())
    assert service.json("device", "user", "lock", "lock-8", locked.name)["action"] == "lock"
    service.verb("device", "user", "remove", "lock-8", removed.name)
    service.verb("device", "user", "remove", "lock-8", "nobody")
    assert (
        service.run("device", "user", "remove", "lock-8", "eve", "--until", "2099-01-01T00:00:00Z").returncode == USAGE
    )
    assert service.run("device", "user", "lock", "lock-9", "eve").returncode == MALFORMED
    assert service.run("device", "user", "lock", "lock-8", "eve", "--until", "some day").returncode == USAGE
    assert service.run("device", "user", "forget", "lock-8", "eve").returncode == MALFORMED
    assert synchronised(service, phone) == 2, "that of the group, and the device's own"
    (bulletin,) = fetched(instance, lock, device)
    text = base64.b64decode(bulletin["bulletin"])
    assert not any(user.name.encode() in text for user in (locked, removed))
    assert delivered(prove(service, phone, lock)) == 1
    locked.expect("lockedOut", "configure", otp=locked.hotp(9))
    removed.expect("otpRejected", "configure", otp=removed.hotp(9))
    kept.expect("accepted", "configure", otp=kept.hotp())
    assert lock.hand_in(text)[1]["result"] == "known"
    orders = {each["user"]: each for each in service.json("list", "user-orders")["items"]}
    assert set(orders) == {locked.name, removed.name, "nobody"}
    assert all(each["bulletin"] == bulletin["number"] for each in orders.values())
    service.verb("device", "user", "forget", "lock-8", locked.name)
    assert len(service.json("list", "user-orders", "--device", device.hex())["items"]) == 2
    locked.expect("lockedOut", "configure", otp=locked.hotp(9))


def receipt_lines(instance, least=1):
    """The lines of an instance's log about receipts, once there are some."""
    for _ in range(600):
        lines = [json.loads(line) for line in instance.log.read_text().splitlines() if "receipts for" in line]
        if len(lines) >= least:
            return lines
        time.sleep(0.1)
    raise AssertionError("nothing about receipts in the log")


def test_the_log_says_once_whether_receipts_are_signed_and_what_to_do(service, instance):
    (line,) = receipt_lines(instance)
    assert line["level"] == "warning" and line["message"].startswith("no receipts for audit logs are signed: ")
    assert ("on this host only" if service.database is None else "no synchronous standby") in line["message"]
    assert "serve --receipts-without-standby" in line["remedy"]
    waived = Instance(service, within=WAIVED)
    (line,) = receipt_lines(waived)
    assert line["message"].startswith("receipts for audit logs are signed, although") and line["remedy"]
    assert waived.stop() == 0, "exit status"


def test_sync_says_what_is_wrong(service, instance):
    line = service.command_line
    state = service.folder / "wrong"
    enroll(service, instance, state)
    for service_name, status, more in [
        ("https://127.0.0.1:1", UNAVAILABLE, ["--timeout", "2"]),
        (service.folder, USAGE, ["--ca", service.folder / "certificate.pem"]),
        ("ftp://127.0.0.1", USAGE, []),
    ]:
        done = line.run("sync", "--state", state, "--service", service_name, *more)
        assert done.returncode == status, (service_name, done.returncode, done.stderr.decode()[-300:])
    with contextlib.closing(Stranger()) as stranger:
        for answer in (b"{}", b'{"bulletins": 1}', b'{"bulletins": [{}]}', b"[]"):
            stranger.answer = answer
            done = line.run("sync", "--state", state, "--service", stranger.url)
            assert done.returncode not in (OK, USAGE) and b"answer" in done.stderr, (answer, done)


class Stranger:
    """A service without TLS that answers anything with one text."""

    def __init__(self):
        outer, self.answer = self, b""

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.end_headers()
                self.wfile.write(outer.answer)

            def do_POST(self):
                self.send_error(404)

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server.server_address[1]}"

    def close(self):
        self.server.shutdown()
        self.server.server_close()
