"""Bulletins of `holdfast-service`: how provers fetch them, carry them to a device without a network, and what operators see."""

import base64
import contextlib
import http.server
import json
import os
import threading
import time

import pytest
from holdfast_peer.command_line import stop
from test_service import Instance, code_of, new_database, new_service
from test_service import server as server  # noqa: PLC0414

OK, DENIED, USAGE, UNAVAILABLE = 0, 1, 64, 69


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


def trust(service, instance):
    """Makes the device trust the service's key."""
    (key,) = instance.ask("GET", "/.well-known/jwks.json")[2]["keys"]
    key = {name: key[name] for name in ("kty", "crv", "x", "y")}
    (service.folder / "issuer.jwk").write_text(json.dumps(key))
    service.command_line.succeed("device", "trust", "--dir", service.folder / "device", service.folder / "issuer.jwk")


def enroll(service, instance, state):
    """Enrols at the service, and returns the id of the token and what the command said."""
    before = {token["id"] for token in service.json("list", "tokens")["items"]}
    code = service.folder / f"code-{os.urandom(4).hex()}"
    code.write_text(code_of(service))
    code.chmod(0o600)
    done = service.command_line.run(
        *("enroll", "--device", service.folder / "device.json", "--state", state, "--invitation", code),
        *("--service", f"https://127.0.0.1:{instance.port}", "--ca", service.folder / "certificate.pem"),
    )
    assert done.returncode == OK, done.stderr.decode()[-300:]
    (token,) = {token["id"] for token in service.json("list", "tokens")["items"]} - before
    return token, done.stderr.decode()


def prove(service, state):
    return service.command_line.run(
        *("prove", "--connect", f"unix:{service.folder}/s", "--state", state, "--command", "unlock", "--json"),
        *("--courier", "10000"),
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
    lost, courier, late = (service.folder / name for name in ("lost", "courier", "late"))
    token, said = enroll(service, instance, lost)
    assert "bulletins" not in said, said
    enroll(service, instance, courier)
    lock = line.start("device", "serve", "--dir", service.folder / "device", "--listen", f"unix:{service.folder}/s")
    try:
        for _ in range(100):
            done = prove(service, lost)
            if done.returncode != UNAVAILABLE:
                break
            time.sleep(0.05)
        assert delivered(done) == 0 and delivered(prove(service, courier)) == 0
        assert synchronised(service, courier) == 0
        service.verb("revoke", "token", token, "--reason", "lost")
        assert synchronised(service, courier) == 1
        # Not even a courier that fetched it tells the lost phone from others; the device has to be visited.
        assert prove(service, lost).returncode == OK
        enroll(service, instance, late)
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
        outer = self
        self.answer = b""

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(outer.answer)))
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
