"""What attested apps get from `holdfast-service`, by an app in Python: tokens, the configuration, strings and keys."""

import base64
import hashlib
import hmac
import json
import pathlib
import re
import stat
import subprocess

import pytest
from holdfast_peer import keys
from makers import signature_by
from test_service import Instance, new_service

PINS = [f"sha256//{base64.b64encode(bytes([number]) * 32).decode()}" for number in range(3)]


@pytest.fixture(scope="module")
def service(request, tmp_path_factory):
    service = new_service(request, tmp_path_factory.mktemp("apps"))
    service.verb("domain", "add", "api.example.com", "--audience", "backend", "--lifetime", "10m")
    service.verb("domain", "add", "shared.example", "--algorithm", "HS256", "--measurement")
    service.verb("domain", "add", "pinned.example", "--unprotected")
    policy = service.json("policy", "show")
    features = {"secure_strings": True, "custom_tokens": True, "message_signing": True}
    (service.folder / "policy.json").write_text(json.dumps({**policy, **features}))
    service.verb("policy", "set", service.folder / "policy.json")
    return service


@pytest.fixture(scope="module")
def instance(service):
    instance = Instance(service, public_url="https://a.example,https://b.example:8443")
    yield instance
    assert instance.stop() == 0, "exit status"


@pytest.fixture(scope="module")
def evidence(service):
    return service.evidence("app")[0]


def decoded(part):
    return base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))


def opened(token, kind, key):
    """The claims of a compact JWS, checked with the bytes of a key or with the only key of a JWK Set."""
    head, payload, signature = token.split(".")
    header = json.loads(decoded(head))
    assert header["typ"] == kind
    message = f"{head}.{payload}".encode()
    if isinstance(key, bytes):
        assert header == {"alg": "HS256", "typ": kind}
        assert decoded(signature) == hmac.digest(key, message, "sha256")
    else:
        (jwk,) = [found for found in key["keys"] if found["kid"] == header["kid"]]
        assert header == {"alg": "ES256", "kid": jwk["kid"], "typ": kind}
        keys.verify(b"\x04" + decoded(jwk["x"]) + decoded(jwk["y"]), message, decoded(signature))
    return json.loads(decoded(payload))


def published(instance):
    status, _, answer = instance.ask("GET", "/.well-known/app-tokens.json")
    assert status == 200
    return answer


def fetch(instance, evidence, **more):
    status, _, answer = instance.ask("POST", "/v1/fetch", {"evidence": evidence, **more})
    return status, answer


def test_an_app_gets_tokens_that_the_backend_checks_with_the_published_key_or_its_own(service, instance, evidence):
    digest = hashlib.sha256(b"transfer 5").digest()
    status, answer = fetch(
        instance, evidence, domain="api.example.com", hash=base64.b64encode(digest).decode(), payload={"role": "kiosk"}
    )
    assert status == 200, answer
    claims = opened(answer["token"], "holdfast-app+jwt", published(instance))
    assert (claims["aud"], claims["sub"], claims["exp"] - claims["iat"]) == ("backend", "holdfast", 600)
    assert base64.b64decode(claims["pay"]) == digest and claims["did"] == answer["did"] and "dev" not in claims
    custom = opened(answer["custom"], "holdfast-custom+jwt", published(instance))
    assert custom["role"] == "kiosk" and custom["arc"] == answer["arc"]
    path = service.folder / "shared.key"
    service.verb("domain", "secret", "shared.example", "--out", path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600 and len(path.read_bytes()) == 32
    status, answer = fetch(instance, evidence, domain="shared.example")
    assert opened(answer["token"], "holdfast-app+jwt", path.read_bytes())["aud"] == "shared.example"
    service.verb("message-key", "secret", "--out", service.folder / "message.key")
    assert base64.b64decode(answer["message_key"]) == (service.folder / "message.key").read_bytes()
    service.verb("message-key", "secret", "--out", service.folder / "message.key", status=2)


@pytest.mark.parametrize(
    ("wish", "expected", "reason"),
    [
        ({"domain": "other.example"}, 404, "unknownDomain"),
        ({"domain": "API.example.com"}, 404, "unknownDomain"),
        ({"domain": "pinned.example"}, 409, "unprotectedDomain"),
        ({"domain": ""}, 400, None),
        ({"hash": base64.b64encode(bytes(31)).decode()}, 400, None),
        ({"hash": base64.b64encode(bytes(33)).decode()}, 400, None),
        ({"payload": {"role": "x", "exp": 1}}, 400, None),
        ({"payload": []}, 400, None),
        ({"payload": {"x": -1}}, 400, None),
        ({"payload": {"x": "y" * 5000}}, 409, "tooLong"),
        ({"development": base64.b64encode(bytes(32)).decode()}, 403, "developmentKey"),
        ({"strings": 1}, 400, None),
        ({"other": 1}, 400, None),
    ],
)
def test_what_is_wrong_with_a_fetch_is_said(instance, evidence, wish, expected, reason):
    status, answer = fetch(instance, evidence, **wish)
    assert status == expected and answer["reasons"] == ([reason] if reason else []), answer


def test_a_deeply_nested_payload_is_refused(instance, evidence):
    payload = "[" * 2000 + "]" * 2000
    body = f'{{"evidence": "{evidence}", "payload": {{"x": {payload}}}}}'.encode()
    assert instance.ask("POST", "/v1/fetch", body)[0] == 400


def test_the_configuration_is_signed_with_the_key_in_the_text_that_apps_are_built_with(service, instance):
    service.verb("pin", "add", "*", PINS[0])
    service.verb("pin", "add", "api.example.com", PINS[1])
    status, headers, token = instance.ask("GET", "/v1/configuration")
    assert status == 200 and headers["Content-Type"] == "application/jwt"
    claims = opened(token, "holdfast-configuration+jwt", published(instance))
    assert claims["services"] == ["https://a.example", "https://b.example:8443"]
    assert claims["pins"] == {"*": [PINS[0]], "api.example.com": [PINS[1]]}
    assert claims["domains"]["shared.example"] == {"protected": True, "measurement": True}
    assert claims["domains"]["pinned.example"] == {"protected": False, "measurement": False}
    forced = service.json("pin", "force")["force_pins"]
    later = opened(instance.ask("GET", "/v1/configuration")[2], "holdfast-configuration+jwt", published(instance))
    assert claims["revision"] < later["revision"] == later["force_pins"] == forced
    text = service.verb("configuration", "--service", "https://a.example,https://b.example:8443", "--pin", PINS[2])
    (jwk,) = published(instance)["keys"]
    point = base64.urlsafe_b64encode(b"\x04" + decoded(jwk["x"]) + decoded(jwk["y"])).rstrip(b"=").decode()
    pin = PINS[2].replace("/", "%2F").replace("+", "%2B").replace("=", "%3D")
    services = "https%3A%2F%2Fa.example%2Chttps%3A%2F%2Fb.example%3A8443"
    assert text == f"holdfast-configuration:1?key={point}&service={services}&pin={pin}\n"
    service.verb("configuration", status=2)
    for wrong in (["--pin", "sha256//AA"], ["--service", "ftp://a.example"]):
        service.verb("configuration", "--service", "https://a.example", *wrong, status=64)


def test_secure_strings_come_from_files_or_standard_input_and_nothing_shows_them(service, instance, evidence):
    (service.folder / "value").write_text("s3cret-value\n")
    service.verb("string", "set", "payment", "--from", service.folder / "value")
    done = subprocess.run(
        [service.program, "string", "set", "map", "--dir", service.folder / "service"],
        input=b"other-s3cret",
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0 and b"s3cret" not in done.stdout + done.stderr
    assert fetch(instance, evidence, strings=True)[1]["strings"] == {"map": "other-s3cret", "payment": "s3cret-value"}
    for name, value in (("x" * 65, b"a"), ("a\nb", b"a"), ("a", b""), ("a", b"x" * 4097), ("a", b"\xff")):
        (service.folder / "value").write_bytes(value)
        assert service.run("string", "set", name, "--from", service.folder / "value").returncode in (2, 64)
    shown = service.verb("list", "strings", "--json") + service.verb("list", "changes", "--json")
    log = instance.log.read_text()
    assert "payment" in shown and "s3cret" not in shown + log
    assert b"s3cret" not in b"".join(path.read_bytes() for path in pathlib.Path(service.folder / "service").iterdir())


def test_with_the_development_key_a_program_that_is_not_approved_is_the_app_development(service, instance, evidence):
    digest = hashlib.sha256(pathlib.Path(service.command_line.path).read_bytes()).hexdigest()
    service.verb("image", "withdraw", digest)
    try:
        text = service.json("development-key", "new")["development_key"]
        key = base64.b32decode(text + "======")
        raw = base64.b64decode(evidence)
        code = hmac.digest(key, b"holdfast/1 development\0" + hashlib.sha256(raw).digest(), "sha256")
        status, answer = fetch(instance, evidence, domain="api.example.com")
        assert status == 403 and answer["reasons"] == ["unknownImage"]
        development = base64.b64encode(code).decode()
        status, answer = fetch(instance, evidence, domain="api.example.com", development=development)
        assert status == 200, answer
        claims = opened(answer["token"], "holdfast-app+jwt", published(instance))
        assert (claims["sub"], claims["ver"], claims["dev"]) == ("development", [0, 0, 0], True)
        service.verb("development-key", "new")
        assert fetch(instance, evidence, development=development)[1]["reasons"] == ["unknownImage", "developmentKey"]
        service.verb("development-key", "remove")
        assert "added" in service.json("development-key", "show")
        assert text not in service.verb("list", "changes", "--json") + instance.log.read_text()
    finally:
        service.verb("image", "approve", service.command_line.path, "--subject", "holdfast", "--version", "0.0.0")
    done = service.run("image", "approve", service.command_line.path, "--subject", "development", "--version", "0.0.0")
    assert done.returncode == 64


def enrolled(service, instance, name):
    """Enrols the program with a user for the service's device, and returns the words that name the state folder and the service."""
    code = service.json("invite", "--device", "lock-7", "--user", name)["code"]
    (service.folder / f"{name}.code").write_text(code)
    public = f"https://127.0.0.1:{instance.port}"
    reach = ("--service", public, "--ca", service.folder / "certificate.pem")
    state = ("--state", service.folder / name)
    device = ("--device", service.folder / "device.json")
    service.command_line.succeed("enroll", *device, *state, *reach, "--invitation", service.folder / f"{name}.code")
    return state, device, reach


def token_of(service, name):
    """The id of the token that `enrolled` got, which only operators and the device know."""
    (token,) = service.json("list", "tokens", "--user", name)["items"]
    return token["id"]


def test_a_prover_asks_what_became_of_its_token_gets_new_settings_and_leaves(service, instance):
    state, device, reach = enrolled(service, instance, "asking")
    run = service.command_line
    (service.folder / "settings.json").write_text('{"volume":3}')
    service.verb("settings", "set", service.folder / "settings.json", "--app", "holdfast")
    shown = json.loads(run.succeed("status", *state, *reach, "--json"))["devices"][0]
    assert shown["service"] == {"status": "valid", "settings_changed": True}
    assert run.succeed("settings", *state, *device).decode().strip() == '{"volume":3}'
    again = json.loads(run.succeed("status", *state, *reach, "--json"))["devices"][0]
    assert again["service"] == {"status": "valid", "settings_changed": False}
    assert "token_id" not in again
    token = token_of(service, "asking")
    # A service that cannot be reached changes nothing.
    nowhere = ("--service", "https://127.0.0.1:1", "--timeout", "1")
    assert run.run("status", *state, *nowhere).returncode == 69
    # The service, its certificate and the address are known since the enrolment.
    kept = json.loads(run.succeed("status", *state, "--service", "--json"))["devices"][0]
    assert kept["service"]["status"] == "valid" and kept["service_address"] == reach[1]
    left = json.loads(run.succeed("unenroll", *state, *device, "--yes", "--json", "--service"))
    assert left["reported"] is True and left["failure"] is None
    record = service.json("show", "tokens", token)
    assert record["reason"] == "left" and record["revoked"]
    service.verb("settings", "remove", "--app", "holdfast")


def test_leaving_that_cannot_be_reported_is_a_warning_with_its_code(service, instance):
    state, device, _ = enrolled(service, instance, "unheard")
    nowhere = ("--service", "https://127.0.0.1:1", "--timeout", "1")
    done = service.command_line.run("unenroll", *state, *device, *nowhere, "--yes", "--json")
    assert done.returncode == 0 and b"could not be reported" in done.stderr
    left = json.loads(done.stdout)
    assert left["removed"] is True and left["reported"] is False and left["failure"]["code"] in done.stderr.decode()
    assert service.command_line.run("status", *state).returncode == 2


def test_a_revoked_token_is_shown_as_such(service, instance):
    state, _, reach = enrolled(service, instance, "revoked")
    service.verb("revoke", "token", token_of(service, "revoked"), "--reason", "lost")
    done = service.command_line.run("status", *state, *reach, "--json")
    assert done.returncode == 1 and json.loads(done.stdout)["devices"][0]["service"]["status"] == "revoked"


def test_a_refused_token_does_not_keep_the_others_from_being_asked_about(service, instance):
    state, _, reach = enrolled(service, instance, "several")
    folder = pathlib.Path(state[1])
    first = next((folder / "devices").iterdir())
    # The same enrolment under a smaller id is damaged, and one of another service is asked there.
    (folder / "devices" / ("0" * 32)).mkdir(mode=0o700)
    (folder / "devices" / ("0" * 32) / "enrolment.json").write_bytes((first / "enrolment.json").read_bytes())
    (folder / "devices" / ("0" * 32) / "enrolment.json").chmod(0o600)
    service.verb("revoke", "token", token_of(service, "several"), "--reason", "lost")
    done = service.command_line.run("status", *state, *reach, "--json")
    devices = json.loads(done.stdout)["devices"]
    assert [each["state"] for each in devices] == ["damaged", "valid"]
    assert devices[1]["service"]["status"] == "revoked" and done.returncode == 2
    # One that cannot be asked is reported too, and its exit status is higher.
    nowhere = ("--service", "https://127.0.0.1:1", "--timeout", "1")
    done = service.command_line.run("status", *state, *nowhere, "--json")
    answer = json.loads(done.stdout)["devices"][1]["service"]
    assert done.returncode == 69 and answer["status"] is None and answer["code"] == "service-unreachable"


def test_posture_rules_are_fetched_and_their_number_never_goes_back(service, instance):
    state, _, reach = enrolled(service, instance, "posture")
    jwk = instance.ask("GET", "/.well-known/jwks.json")[2]["keys"][0]
    assert instance.ask("GET", "/v1/posture-rules")[0] == 404
    rules = {"number": 4, "default": "ignore", "unknown": "ignore", "rules": {"root": "warn"}}
    (service.folder / "rules.json").write_text(json.dumps(rules))
    assert service.json("posture-rules", "set", service.folder / "rules.json")["number"] == 4
    service.verb("posture-rules", "set", service.folder / "rules.json", status=1)
    fetch = ("posture", *state, "--rules-from", reach[1], *reach[2:], "--json")
    (service.folder / "issuer.jwk").write_text(json.dumps({name: jwk[name] for name in ("kty", "crv", "x", "y")}))
    shown = json.loads(service.command_line.succeed(*fetch, "--issuer", service.folder / "issuer.jwk"))
    assert shown["rules"]["number"] == 4
    (service.folder / "rules.json").write_text(json.dumps({**rules, "number": 5}))
    service.verb("posture-rules", "set", service.folder / "rules.json")
    assert json.loads(service.command_line.succeed(*fetch))["rules"]["number"] == 5
    kept = service.command_line.succeed("posture", *state, "--json", "--rules-from")
    assert json.loads(kept)["rules"]["number"] == 5
    assert service.command_line.run("posture", *state, "--ca", "x").returncode == 64


def test_keys_for_apps_are_rotated_and_the_backend_knows_them_before(service, instance):
    evidence = service.evidence("rotated")[0]
    service.verb("app-key", "rotate", "--after", "0s")
    assert len(published(instance)["keys"]) == 2 == len(service.json("app-key", "list")["items"])
    status, answer = fetch(instance, evidence, domain="api.example.com")
    assert status == 200
    opened(answer["token"], "holdfast-app+jwt", published(instance))
    service.verb("domain", "secret", "shared.example", "--next", "--out", service.folder / "next.key")
    service.verb("domain", "rotate", "shared.example")
    status, answer = fetch(instance, evidence, domain="shared.example")
    head, payload, signature = answer["token"].split(".")
    assert json.loads(decoded(head)) == {"alg": "HS256", "kid": "2", "typ": "holdfast-app+jwt"}
    code = hmac.digest((service.folder / "next.key").read_bytes(), f"{head}.{payload}".encode(), "sha256")
    assert decoded(signature) == code


def test_an_image_that_its_maker_signed_has_the_makers_name(service):
    digest = hashlib.sha256(pathlib.Path(service.command_line.path).read_bytes()).hexdigest()
    manifest = {"maker": "Door team", "app": "holdfast", "images": {digest: [0, 0, 0]}}
    (service.folder / "release.json").write_text(json.dumps(manifest))
    files = {name: service.folder / name for name in ("maker.key", "maker.pem", "release.json", "release.sig")}
    for words in (
        ["ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", files["maker.key"]],
        ["ec", "-in", files["maker.key"], "-pubout", "-out", files["maker.pem"]],
        ["dgst", "-sha256", "-sign", files["maker.key"], "-out", files["release.sig"], files["release.json"]],
    ):
        subprocess.run(["openssl", *words], check=True, capture_output=True)
    approve = ("image", "approve", service.command_line.path, "--subject", "holdfast", "--version", "0.0.0")
    signed = ("--manifest", files["release.json"], "--signature", files["release.sig"], "--maker", files["maker.pem"])
    assert service.json(*approve, *signed)["maker"] == "Door team"
    files["release.json"].write_text(json.dumps({**manifest, "maker": "Other team"}))
    service.verb(*approve, *signed, status=2)
    assert service.json("show", "images", digest)["maker"] == "Door team"
    service.verb(*approve, *signed[:2], status=64)


def test_an_app_with_an_older_library_is_approved_with_a_notice(service):
    own = pathlib.Path(service.command_line.path).read_bytes()
    text = re.search(rb"holdfast library version ([0-9]+)\.([0-9.]+);", own)
    for major, is_older in ((int(text[1]) - 1, True), (int(text[1]), False)):
        copy = service.folder / f"app-{major}"
        copy.write_bytes(own.replace(text[0], b"holdfast library version %d.%s;" % (major, text[2])))
        done = service.run("image", "approve", copy, "--subject", f"app-{major}", "--version", "1.2.3")
        assert done.returncode == 0, done.stderr.decode()
        assert (f"version {major}.{text[2].decode()} of Holdfast's library" in done.stderr.decode()) == is_older


def test_a_policy_with_makers_registers_only_devices_that_one_of_them_signed(service):
    maker, stranger, device = (service.folder / name for name in ("device-maker.key", "stranger.key", "signed.json"))
    device.write_text(json.dumps({**service.descriptor, "device_id": "7" * 32}))
    public, signature = signature_by(maker, device)
    _, by_stranger = signature_by(stranger, device)
    policy = service.json("policy", "show")
    (service.folder / "policy.json").write_text(json.dumps({**policy, "device_makers": [public]}))
    service.verb("policy", "set", service.folder / "policy.json")
    try:
        for more in ((), ("--signature", by_stranger)):
            service.verb("device", "add", device, *more, status=1)
        signed = ("--signature", signature)
        device.write_text(device.read_text() + "\n")
        service.verb("device", "add", device, *signed, status=1)
        device.write_text(device.read_text()[:-1])
        service.verb("device", "add", device, *signed)
        assert service.json("show", "devices", "7" * 32)["id"] == "7" * 32
    finally:
        (service.folder / "policy.json").write_text(json.dumps(policy))
        service.verb("policy", "set", service.folder / "policy.json")


def test_a_refusal_says_whom_to_ask(service):
    instance = Instance(service, help="Ask the front desk, ext. 12")
    try:
        _, _, answer = instance.ask("POST", "/v1/fetch", {"evidence": "AAAA"})
        assert answer["help"] == "Ask the front desk, ext. 12"
        public = f"https://127.0.0.1:{instance.port}"
        reach = ("--service", public, "--ca", service.folder / "certificate.pem")
        (service.folder / "wrong.code").write_text("AAAAA-AAAAA-AAAAA-AAAAA")
        done = service.command_line.run(
            *("enroll", "--device", service.folder / "device.json", "--state", service.folder / "helpless", *reach),
            *("--invitation", service.folder / "wrong.code"),
        )
        assert done.returncode == 1 and b"hint: Ask the front desk, ext. 12; " in done.stderr, done.stderr
    finally:
        assert instance.stop() == 0
