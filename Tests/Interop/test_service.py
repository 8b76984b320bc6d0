"""`holdfast-service`: provers and operators over HTTPS, with one instance and with several over one database."""

import base64
import concurrent.futures
import contextlib
import datetime
import hashlib
import http.client
import ipaddress
import json
import os
import pathlib
import shutil
import signal
import socket
import ssl
import subprocess
import tempfile
import time
import urllib.parse

import postgresql
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from holdfast_peer import transport
from holdfast_peer.command_line import CommandLine, stop
from service_manager import Manager


def make_certificate(folder, days=(-1, 1)):
    """Writes a certificate for 127.0.0.1 that signs itself, with its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "holdfast-service")])
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now + datetime.timedelta(days=days[0]))
        .not_valid_after(now + datetime.timedelta(days=days[1]))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    (folder / "certificate.pem").write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    (folder / "key.pem").write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    os.chmod(folder / "key.pem", 0o600)


class Instance:
    """A server of the service, and a client of it."""

    def __init__(self, service, within=(), **settings):
        """`within` is a command that runs the server."""
        self.service = service
        folder = service.folder
        configuration = {
            "listen": "127.0.0.1:0",
            "certificate": str(folder / "certificate.pem"),
            "key": str(folder / "key.pem"),
            "requests_per_minute": 100_000,
            "database": service.database,
            **settings,
        }
        path = folder / f"config-{os.urandom(4).hex()}.json"
        path.write_text(json.dumps({name: value for name, value in configuration.items() if value is not None}))
        self.log = folder / f"{path.stem}.log"
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [*within, service.program, "serve", "--dir", folder / "service", "--config", path],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
            )
        line = self.process.stdout.readline().decode()
        assert line.startswith("serving http"), (line, self.log.read_text()[-500:])
        self.is_secure = line.startswith("serving https")
        self.port = int(line.rsplit(":", 1)[1])

    def context(self):
        return ssl.create_default_context(cafile=self.service.folder / "certificate.pem")

    def connect(self, timeout=60):
        if not self.is_secure:
            return http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)
        return http.client.HTTPSConnection("127.0.0.1", self.port, timeout=timeout, context=self.context())

    def ask(self, method, path, body=None, token=None, headers=()):
        """Returns status, headers and the JSON of an answer."""
        with contextlib.closing(self.connect()) as connection:
            sent = {"Content-Type": "application/json"} if body is not None else {}
            if token:
                sent["Authorization"] = f"Bearer {token}"
            sent.update(headers)
            data = body if isinstance(body, bytes) else json.dumps(body).encode() if body is not None else None
            connection.request(method, path, data, sent)
            answer = connection.getresponse()
            text = answer.read()
            kind = answer.getheader("Content-Type", "")
            return answer.status, answer.headers, json.loads(text) if text and "json" in kind else text.decode()

    def stop(self, number=signal.SIGTERM):
        self.process.send_signal(number)
        return self.process.wait(60)


class Service:
    """A service with a registered device and this program as its approved app."""

    def __init__(self, program, command_line, folder, database=None):
        self.program, self.command_line, self.folder, self.database = program, command_line, folder, database
        make_certificate(folder)
        command_line.succeed("device", "init", "--dir", folder / "device")
        self.descriptor = command_line.read_json("device", "show", "--dir", folder / "device")
        (folder / "device.json").write_text(json.dumps(self.descriptor))
        self.verb("init")
        self.verb("device", "add", folder / "device.json", "--label", "lock-7")
        self.verb("image", "approve", command_line.path, "--subject", "holdfast", "--version", "0.0.0")

    def verb(self, *arguments, status=0):
        done = self.run(*arguments)
        assert done.returncode == status, (arguments, done.returncode, done.stderr.decode()[-300:])
        return done.stdout.decode()

    def run(self, *arguments, **options):
        """The finished process of a verb."""
        words = [self.program, *arguments, "--dir", self.folder / "service"]
        if self.database:
            words += ["--database", self.database]
        options = {"stdin": subprocess.DEVNULL, "capture_output": True, "timeout": 60, "check": False, **options}
        return subprocess.run(words, **options)

    def json(self, *arguments):
        return json.loads(self.verb(*arguments, "--json"))

    def operator(self, name, scopes):
        return self.json("operator", "add", name, "--scopes", scopes)["token"]

    def evidence(self, name):
        """Measures the program, and returns the evidence and the state folder."""
        state = self.folder / name
        self.command_line.succeed("measure", "--state", state, "--out", self.folder / f"{name}.cbor")
        return base64.b64encode((self.folder / f"{name}.cbor").read_bytes()).decode(), state

    def attest(self, instance, evidence):
        status, _, answer = instance.ask("POST", "/v1/attest", {"device": self.descriptor, "evidence": evidence})
        assert status == 200, answer
        return answer

    def ask_for_token(self, instance, attestation, **more):
        body = {"attestation": attestation["attestation"], "device": self.descriptor, **more}
        return instance.ask("POST", "/v1/tokens", body)


@contextlib.contextmanager
def postgres():
    """A server of PostgreSQL; the test is skipped where there is none."""
    with tempfile.TemporaryDirectory(prefix="hf") as folder:
        os.chmod(folder, 0o711)
        try:
            server = postgresql.Server(folder, "s")
        except postgresql.Absent as reason:
            pytest.skip(str(reason))
        server.create()
        try:
            yield server
        finally:
            server.kill()


@pytest.fixture(scope="session")
def server():
    """A server of PostgreSQL that the tests share."""
    with postgres() as server:
        yield server


def new_database(server):
    """The URL of an empty database."""
    name = f"t{os.urandom(4).hex()}"
    server.sql(f"CREATE DATABASE {name} OWNER {postgresql.ROLE}", database="postgres")
    return postgresql.url(server, database=name)


def new_service(request, folder, database=None):
    path = request.config.getoption("holdfast").resolve()
    program = path.parent / "holdfast-service"
    if not program.exists():
        pytest.fail(f"{program} is not built: make service")
    return Service(program, CommandLine(path, folder), folder, database)


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def service(request, tmp_path_factory):
    """Every test runs with each database."""
    database = None if request.param == "sqlite" else new_database(request.getfixturevalue("server"))
    return new_service(request, tmp_path_factory.mktemp("service"), database)


@pytest.fixture(scope="module")
def instance(service):
    instance = Instance(service)
    yield instance
    assert instance.stop() == 0, "exit status"


def code_of(service, **permission):
    options = []
    for name, value in permission.items():
        options += [f"--{name}", value]
    return service.json("invite", "--device", "lock-7", "--valid-for", "90d", *options)["code"]


def test_a_prover_enrols_by_invitation_and_its_device_accepts_it(service, instance):
    """The token of the service, stored by `accept`, opens the device that trusts the service's key."""
    evidence, state = service.evidence("phone")
    code = code_of(service, commands="unlock,lock", uses="5")
    attestation = service.attest(instance, evidence)
    status, _, answer = service.ask_for_token(instance, attestation, invitation=code.lower())
    assert status == 201, answer
    assert answer["claims"]["commands"] == ["unlock", "lock"] and answer["claims"]["maximum_uses"] == 5
    again = service.ask_for_token(instance, service.attest(instance, evidence), invitation=code)
    assert again[0] == 201 and again[2] == answer, "the same request got another token"
    (service.folder / "token").write_bytes(base64.b64decode(answer["token"]))
    line = service.command_line
    line.succeed("accept", "--state", state, "--device", service.folder / "device.json", service.folder / "token")
    _, headers, keys = instance.ask("GET", "/.well-known/jwks.json")
    assert "max-age" in headers["Cache-Control"] and len(keys["keys"]) == 1
    key = {name: keys["keys"][0][name] for name in ("kty", "crv", "x", "y")}
    (service.folder / "issuer.jwk").write_text(json.dumps(key))
    line.succeed("device", "trust", "--dir", service.folder / "device", service.folder / "issuer.jwk")
    device = line.start("device", "serve", "--dir", service.folder / "device", "--listen", f"unix:{service.folder}/s")
    try:
        transport.connect_when_ready(f"{service.folder}/s").close()
        words = ("--connect", f"unix:{service.folder}/s", "--state", state, "--command", "unlock")
        line.succeed("prove", *words, "--timeout", "60")
    finally:
        stop(device)


def test_an_invitation_has_a_qr_code_that_enroll_takes(service, instance):
    """The drawing is that of qrencode for the text, and the text is what `enroll --invitation` reads."""
    public = f"https://127.0.0.1:{instance.port}"
    (service.folder / "public.json").write_text(json.dumps({"public_url": public}))
    words = ("invite", "--device", "lock-7", "--qr")
    for options, form in [
        ((), "{}"),
        (("--config", service.folder / "public.json"), "holdfast-invitation:1?code={}&{}"),
    ]:
        lines = service.verb(*words, *options).splitlines()
        code = next(line.split()[1] for line in lines if line.startswith("code "))
        text = form.format(code, "service=" + urllib.parse.quote(public, safe=""))
        picture = subprocess.run(["qrencode", "-8", "-l", "M", "-t", "ASCII", text], capture_output=True, check=True)
        # The quiet zone is 4 modules, and an odd last row has a light lower half. qrencode draws a module as two characters.
        rows = [line[::2].rstrip() for line in picture.stdout.decode().splitlines()]
        halves = [line for line in lines if set(line) <= set(" █▀▄")]
        drawn = ["".join("#" if c in upper else " " for c in line) for line in halves for upper in ("█▀", "█▄")]
        assert [row.rstrip() for row in drawn[: len(rows)]] == rows, lines
        (service.folder / "invitation").write_text(text)
        done = service.command_line.run(
            *("enroll", "--device", service.folder / "device.json", "--service", public, "--state"),
            *(service.folder / f"enrolled-{len(text)}", "--ca", service.folder / "certificate.pem"),
            *("--invitation", service.folder / "invitation"),
        )
        assert done.returncode == 0, done.stderr
    assert "█" not in service.verb(*words[:-1]), "a pipe got a picture"
    (service.folder / "public.json").write_text(json.dumps({"public_url": "http://a.example/x"}))
    assert service.verb("invite", "--device", "lock-7", "--config", service.folder / "public.json", status=2) == ""


def hear_states(manager, wanted):
    """Waits until the manager is told a state. Until then, it is told that the service is alive, every 100 ms."""
    for _ in range(600):
        told = manager.hear()
        if told == wanted:
            return
        assert told == "WATCHDOG=1", told
    pytest.fail(f"the manager was not told {wanted}")


def test_a_service_manager_that_reads_nothing_keeps_no_service_waiting(service, tmp_path):
    """Ten notices, which is all that its socket holds, come within some milliseconds."""
    certificate, key = (str(service.folder / name) for name in ("certificate.pem", "key.pem"))
    settings = {"listen": "127.0.0.1:0", "certificate": certificate, "key": key, "database": service.database}
    configuration = tmp_path / "config.json"
    configuration.write_text(json.dumps(settings))
    command = [service.program, "serve", "--dir", service.folder / "service", "--config", configuration]
    with contextlib.closing(Manager(tmp_path)) as manager:
        process = manager.start(command, WATCHDOG_USEC="2000")
        line = process.stdout.readline().decode()
        assert line.startswith("serving https://"), (line, process.stderr.read()[-500:])
        time.sleep(0.5)
        assert stop(process, 60) == 0


def test_a_service_manager_passes_the_keys_and_is_told_the_states(service, tmp_path):
    """All keys are credentials, as systemd makes them: readable through a group's permissions. The service's own key is not used."""
    credentials = tmp_path / "credentials"
    credentials.mkdir()
    for name, source in (
        ("service.key", service.folder / "service/service.key"),
        ("chain", service.folder / "certificate.pem"),
        ("private", service.folder / "key.pem"),
    ):
        shutil.copy(source, credentials / name)
        (credentials / name).chmod(0o440)
    configuration = tmp_path / "config.json"
    settings = {"listen": "127.0.0.1:0", "certificate": "chain", "key": "private", "database": service.database}
    configuration.write_text(json.dumps(settings))
    command = [service.program, "serve", "--dir", service.folder / "service", "--config", configuration]
    own = service.folder / "service/service.key"
    hidden = own.rename(tmp_path / "hidden")
    try:
        with contextlib.closing(Manager(tmp_path)) as manager:
            variables = {"CREDENTIALS_DIRECTORY": str(credentials), "WATCHDOG_USEC": "200000"}
            process = manager.start(command, **variables)
            line = process.stdout.readline().decode()
            assert line.startswith("serving https://"), (line, process.stderr.read()[-500:])
            hear_states(manager, "READY=1")
            process.terminate()
            hear_states(manager, "STOPPING=1")
            assert process.wait(60) == 0
            (credentials / "service.key").unlink()
            process = manager.start(command, **variables)
            assert process.wait(30) == 2, "the service started without its key"
    finally:
        hidden.rename(own)


@pytest.mark.parametrize("words", [["nosuch"], ["device", "nosuch"], ["device", "add", "nosuch"]])
def test_help_about_a_verb_that_does_not_exist_is_refused(service, words):
    done = subprocess.run([service.program, "help", *words], capture_output=True, timeout=60, check=False)
    assert done.returncode == 64 and b"there is no verb 'nosuch'" in done.stderr, done
    done = subprocess.run([service.program, "help", *words[:-1]], capture_output=True, timeout=60, check=False)
    assert done.returncode == 0 and b"USAGE" in done.stdout, done


def test_creating_a_service_that_exists_changes_nothing(service):
    before = (service.folder / "service/service.key").read_bytes()
    service.verb("init", status=2)
    service.verb("init", "--if-missing")
    assert (service.folder / "service/service.key").read_bytes() == before


def test_an_operator_decides_about_a_request_without_an_invitation(service, instance):
    token = service.operator("olga", "read,approve")
    evidence, _ = service.evidence("waiting")
    status, headers, answer = service.ask_for_token(instance, service.attest(instance, evidence), user="bob")
    assert status == 202 and headers["Location"] == f"/v1/requests/{answer['request']}", answer
    assert int(headers["Retry-After"]) > 0
    waiting = instance.ask("GET", "/v1/admin/requests?status=waiting", token=token)[2]["items"]
    assert [item["id"] for item in waiting] == [answer["request"]]
    assert waiting[0]["user"] == "bob" and waiting[0]["device_label"] == "lock-7"
    assert waiting[0]["subject"] == "holdfast" and waiting[0]["version"] == "0.0.0"
    path = f"/v1/admin/requests/{answer['request']}/approve"
    assert instance.ask("POST", path, {"user": "bob"}, token=token)[0] == 200
    status, _, problem = instance.ask("POST", path, {"user": "eve"}, token=token)
    assert status == 409 and problem["reasons"] == ["decidedRequest"], problem
    assert instance.ask("GET", headers["Location"])[2]["status"] == "approved"
    status, _, issued = service.ask_for_token(instance, service.attest(instance, evidence))
    assert status == 201 and issued["claims"]["user"] == "bob", issued
    assert instance.ask("GET", headers["Location"])[2]["status"] == "collected"


def test_a_refusal_is_a_problem_document_with_all_reasons_and_the_response_code(service, instance):
    evidence, _ = service.evidence("refused")
    attestation = service.attest(instance, evidence)
    status, headers, problem = service.ask_for_token(instance, attestation, invitation="AAAAA-AAAAA-AAAAA-AAAAA")
    assert status == 403 and headers["Content-Type"] == "application/problem+json"
    assert problem["reasons"] == ["unknownInvitation"] and problem["arc"] == attestation["arc"], problem
    assert set(problem) == {"type", "title", "status", "detail", "reasons", "arc", "request_id"}
    assert problem["status"] == 403 and headers["X-Request-ID"] == problem["request_id"]
    assert problem["request_id"] in instance.log.read_text(), "the log does not have the request's id"
    assert service.json("arc", attestation["arc"])["code"] == attestation["arc"]
    service.verb("image", "withdraw", hashlib.sha256(pathlib.Path(service.command_line.path).read_bytes()).hexdigest())
    try:
        other, _ = service.evidence("withdrawn")
        status, _, problem = instance.ask("POST", "/v1/attest", {"device": service.descriptor, "evidence": other})
        assert status == 403 and problem["reasons"] == ["unknownImage"] and len(problem["arc"]) == 10, problem
    finally:
        service.verb("image", "approve", service.command_line.path, "--subject", "holdfast", "--version", "0.0.0")


@pytest.mark.parametrize(
    ("body", "headers", "status"),
    [
        (b"", {}, 400),
        (b"{", {}, 400),
        (b"[]", {}, 400),
        (b'{"device": 1, "device": 2}', {}, 400),
        (b'{"evidence": "AAAA", "device": {}, "more": 1}', {}, 400),
        (b"\xff\xfe", {}, 400),
        (b"[" * 10_000, {}, 400),
        (b'{"evidence": 1e400}', {}, 400),
        (b"{}", {"Content-Type": "text/plain"}, 415),
        (b"{}", {"Content-Type": ""}, 415),
        (b" " * 200_000, {}, 413),
    ],
)
def test_a_bad_body_is_refused_with_a_problem_document(instance, body, headers, status):
    for path in ("/v1/attest", "/v1/tokens"):
        found, answered, problem = instance.ask("POST", path, body, headers=headers)
        assert found == status and answered["Content-Type"] == "application/problem+json", (path, found, problem)


def test_bad_members_are_named(service, instance):
    evidence = base64.b64encode(b"\x01\x02").decode()
    for change, word in [
        ({"evidence": "A"}, "evidence must be base64"),
        ({"evidence": 7}, "evidence must be base64"),
        ({"device": {**service.descriptor, "more": 1}}, "device.more is not a known member"),
        ({"device": {**service.descriptor, "kid": "0" * 15}}, "device.kid must have 16 hexadecimal digits"),
    ]:
        body = {"device": service.descriptor, "evidence": evidence, **change}
        status, _, problem = instance.ask("POST", "/v1/attest", body)
        assert status == 400 and word in problem["detail"], problem


def test_values_of_the_right_form_that_cannot_count_are_refused_with_reasons(service, instance):
    """400 is for requests that openapi.yaml does not permit, and only for them."""
    evidence = base64.b64encode(b"\x01\x02").decode()
    other = {**service.descriptor, "kid": "0" * 16}
    for change, status, reason in [
        ({}, 403, "notEvidence"),
        ({"device": other}, 409, "invalidKey"),
    ]:
        body = {"device": service.descriptor, "evidence": evidence, **change}
        found, _, problem = instance.ask("POST", "/v1/attest", body)
        assert (found, problem["reasons"]) == (status, [reason]), problem
    body = {"device": service.descriptor, "attestation": "a.b.c", "user": "\N{LOCK}" * 9}
    found, _, problem = instance.ask("POST", "/v1/tokens", body)
    assert (found, problem["reasons"]) == (409, ["tooLong"]), problem


def test_another_method_is_told_which_there_are(service, instance):
    for method, path, allowed in [
        ("DELETE", "/v1/attest", "POST"),
        ("QUERY", "/v1/admin/policy", "GET, HEAD, PUT"),
        ("POST", "/readyz", "GET, HEAD"),
    ]:
        status, headers, problem = instance.ask(method, path)
        assert (status, headers["Allow"]) == (405, allowed), problem
    status, headers, body = instance.ask("HEAD", "/readyz")
    assert status == 200 and not body


def test_operators_have_only_the_permissions_of_their_tokens(service, instance):
    reader = service.operator("rita", "read")
    identifier = service.descriptor["device_id"]
    assert instance.ask("GET", f"/v1/admin/devices/{identifier}", token=reader)[2]["label"] == "lock-7"
    for token in (None, "", "x", reader + "0", reader[:-1] + ("0" if reader[-1] != "0" else "1")):
        status, headers, problem = instance.ask("GET", "/v1/admin/devices", token=token)
        assert status == 401 and headers["WWW-Authenticate"] == "Bearer", (token, problem)
    for method, path, body in [
        ("POST", f"/v1/admin/devices/{identifier}/block", {}),
        ("POST", "/v1/admin/invitations", {"device": identifier, "valid_seconds": 60}),
        ("POST", "/v1/admin/operators", {"name": "x", "scopes": ["admin"]}),
        ("GET", "/v1/admin/operators", None),
        ("PUT", "/v1/admin/policy", {"policy": {}}),
    ]:
        assert instance.ask(method, path, body, token=reader)[0] == 403, path
    service.verb("operator", "remove", "rita")
    assert instance.ask("GET", "/v1/admin/devices", token=reader)[0] == 401
    assert reader not in instance.log.read_text(), "a token is in the log"


def test_an_address_that_is_none_and_a_method_that_is_none_are_problems(instance):
    for method, path in [("GET", "/"), ("GET", "/v1/attest"), ("DELETE", "/v1/tokens"), ("GET", "/v1/requests/xyz")]:
        status, headers, _ = instance.ask(method, path)
        assert status in (404, 405) and headers["Content-Type"] == "application/problem+json", (method, path, status)


def test_probes_and_metrics_answer(service, instance):
    assert instance.ask("GET", "/healthz")[0] == 200 and instance.ask("GET", "/readyz")[0] == 200
    text = instance.ask("GET", "/metrics")[2]
    assert 'holdfast_requests_total{route="/healthz",status="200"} 1\n' in text, text[:500]
    assert "holdfast_request_seconds_bucket" in text


def test_only_tls_1_3_is_spoken(instance):
    old = instance.context()
    old.maximum_version = ssl.TLSVersion.TLSv1_2
    with pytest.raises(ssl.SSLError), socket.create_connection(("127.0.0.1", instance.port), 30) as plain:
        old.wrap_socket(plain, server_hostname="127.0.0.1")
    with socket.create_connection(("127.0.0.1", instance.port), 30) as plain:
        context = instance.context()
        context.set_alpn_protocols(["h2", "http/1.1"])
        with context.wrap_socket(plain, server_hostname="127.0.0.1") as secure:
            assert secure.version() == "TLSv1.3" and secure.selected_alpn_protocol() == "h2"


def test_http_2_is_spoken_with_the_same_problems(service, instance, tmp_path):
    if not shutil.which("curl"):
        pytest.skip("there is no curl")
    curl = [
        "curl",
        "--http2",
        "-s",
        "--cacert",
        service.folder / "certificate.pem",
        "-w",
        "\n%{http_version} %{http_code}",
    ]

    def ask(path, *options):
        address = f"https://127.0.0.1:{instance.port}{path}"
        done = subprocess.run([*curl, *options, address], capture_output=True, timeout=60, check=False)
        body, _, numbers = done.stdout.decode().rpartition("\n")
        assert done.returncode == 0 and numbers.startswith("2 "), done
        return int(numbers.split()[1]), json.loads(body)

    assert ask("/healthz") == (200, {"status": "ok"})
    evidence, _ = service.evidence("http2")
    request = tmp_path / "request.json"
    request.write_text(json.dumps({"device": service.descriptor, "evidence": evidence}))
    large = tmp_path / "large.json"
    large.write_bytes(b" " * 300_000)
    kind = ["-H", "Content-Type: application/json"]
    assert ask("/v1/attest", *kind, "--data-binary", f"@{request}")[0] == 200
    for status, options in [
        (400, [*kind, "--data-binary", "{"]),
        (400, [*kind, "--data-binary", "[" * 1000]),
        (413, [*kind, "--data-binary", f"@{large}"]),
        (415, ["-H", "Content-Type: text/plain", "--data-binary", "{}"]),
        (405, ["-X", "DELETE"]),
    ]:
        found, problem = ask("/v1/attest", *options)
        assert (found, problem["status"]) == (status, status) and problem["request_id"], problem


def test_slow_and_endless_peers_are_cut_off_and_others_are_served(service):
    """Heads and bodies that trickle, and bodies without an end, hold nobody up and end within the limits."""
    quick = Instance(service, idle_seconds=5, body_seconds=2)
    try:
        head = b"POST /v1/attest HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
        secure = []
        for begun in [head[:20]] * 10 + [head + b"Transfer-Encoding: chunked\r\n\r\n1\r\n{\r\n"] * 10:
            peer = socket.create_connection(("127.0.0.1", quick.port), 30)
            secure.append(quick.context().wrap_socket(peer, server_hostname="127.0.0.1"))
            secure[-1].sendall(begun)
        assert quick.ask("GET", "/healthz")[0] == 200
        start = time.monotonic()
        for peer in secure:
            received = b""
            with contextlib.suppress(OSError):
                while part := peer.recv(4096):
                    received += part
            assert received.startswith(b"HTTP/1.1 408 ") and b'"urn:holdfast:problem:too-slow"' in received, received
        assert time.monotonic() - start < 60, "slow peers were kept"
        with contextlib.closing(quick.connect()) as connection:
            connection.putrequest("POST", "/v1/attest")
            connection.putheader("Content-Type", "application/json")
            connection.putheader("Transfer-Encoding", "chunked")
            connection.endheaders()
            with contextlib.suppress(OSError):
                for _ in range(64):
                    connection.send(b"1000\r\n" + b" " * 4096 + b"\r\n")
            with contextlib.suppress(OSError, http.client.HTTPException):
                assert connection.getresponse().status in (408, 413)
        assert quick.ask("GET", "/healthz")[0] == 200
    finally:
        assert quick.stop() == 0, "exit status"


def test_an_address_that_asks_too_often_is_told_when_to_come_again(service):
    limited = Instance(service, requests_per_minute=5)
    try:
        begun, count = time.monotonic(), 0
        while (answer := limited.ask("GET", "/healthz"))[0] == 200:
            count += 1
            assert count <= 5 + (time.monotonic() - begun) * 5 / 60, "more than five a minute"
        assert count >= 5
        status, headers, problem = answer
        assert status == 429 and int(headers["Retry-After"]) > 0 and problem["type"].endswith("too-many-requests")
    finally:
        assert limited.stop() == 0, "exit status"


def test_a_graceful_stop_answers_the_requests_that_have_begun(service):
    stopping = Instance(service)
    evidence, _ = service.evidence("stopping")
    attestation = service.attest(stopping, evidence)
    code = code_of(service)
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        asked = [pool.submit(service.ask_for_token, stopping, attestation, invitation=code) for _ in range(8)]
        concurrent.futures.wait(asked[:1])
        assert stopping.stop() == 0, "exit status"
        tokens = [call.result()[2]["token"] for call in asked if call.exception() is None and call.result()[0] == 201]
    assert tokens and len(set(tokens)) == 1


def test_without_a_certificate_it_listens_only_on_loopback(service):
    plain = Instance(service, certificate=None, key=None)
    try:
        assert not plain.is_secure and plain.ask("GET", "/readyz")[0] == 200
    finally:
        assert plain.stop() == 0, "exit status"
    (service.folder / "open.json").write_text(json.dumps({"listen": "0.0.0.0:0"}))
    words = [service.program, "serve", "--dir", service.folder / "service", "--config", service.folder / "open.json"]
    done = subprocess.run(words, capture_output=True, timeout=60, check=False)
    assert done.returncode == 2 and b"certificate is missing" in done.stderr, done


def test_the_configuration_is_printed_without_a_password(service):
    (service.folder / "secret.json").write_text(json.dumps({"database": "postgresql://u:hush@h/d"}))
    words = [
        service.program,
        "serve",
        "--dir",
        service.folder / "service",
        "--config",
        service.folder / "secret.json",
        "--print-config",
    ]
    done = subprocess.run(words, capture_output=True, timeout=60, check=False)
    assert done.returncode == 0 and json.loads(done.stdout)["database"] == "postgresql://u:*@h/d", done
    assert b"hush" not in done.stdout + done.stderr


def test_bad_arguments_say_what_is_wrong(service):
    folder = service.folder
    for words, status in [
        (["list", "nothing"], 64),
        (["show", "devices", "00"], 2),
        (["invite", "--device", "nobody"], 2),
        (["invite", "--device", "lock-7", "--valid-for", "soon"], 64),
        (["revoke", "token", "0" * 32, "--reason", "x"], 2),
        (["operator", "add", "z", "--scopes", "root"], 64),
        (["device", "add", folder / "certificate.pem"], 2),
        (["policy", "set", folder / "certificate.pem"], 2),
        (["init"], 2),
    ]:
        service.verb(*words, status=status)
    done = subprocess.run(
        [service.program, "list", "devices", "--dir", folder / "elsewhere"],
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 2 and b"hint: holdfast-service init" in done.stderr, done
