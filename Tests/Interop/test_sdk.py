"""HoldfastSDK end to end: Examples/Courier with the real carrier, the real service, its own backend and a real locker."""

import base64
import hmac
import json
import os
import secrets
import shutil
import signal
import subprocess
import sys

import examples
import pytest
from holdfast_peer import transport
from holdfast_peer.command_line import CommandLine, stop

API, SECONDS = "api.example.com", 60


class Account:
    """A service with an API domain and a locker, and the courier's app, which it approved."""

    def __init__(self, holdfast, folder):
        self.folder = folder
        self.line = CommandLine(holdfast, folder)
        self.service = CommandLine(holdfast.parent / "holdfast-service", folder)
        (folder / "mpk.key").write_text(secrets.token_hex(16) + "\n")
        os.chmod(folder / "mpk.key", 0o600)
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("HOLDFAST_MPK_KEY", str(folder / "mpk.key"))
            built = examples.built("Courier", folder / "source")
        (folder / "app").mkdir()
        self.app = shutil.copy(built / "Courier", folder / "app" / "Courier")
        shutil.copy(holdfast.parent / "holdfast-carrier", folder / "app")
        self.verb("init")
        self.server = self.serve()
        self.verb("domain", "add", API, "--algorithm", "HS256", "--measurement")
        self.verb("domain", "secret", API, "--out", folder / "api.key")
        policy = json.loads(self.verb("policy", "show", "--json"))
        features = dict.fromkeys(("secure_strings", "custom_tokens", "message_signing"), True)
        (folder / "policy.json").write_text(json.dumps(policy | features))
        self.verb("policy", "set", folder / "policy.json")
        (folder / "text").write_text("s3cret")
        self.verb("string", "set", "map-key", "--from", folder / "text")
        self.verb("configuration", "--service", self.url, "--out", folder / "account.txt")

    def verb(self, *words):
        return self.service.succeed(*words, "--dir", "service")

    def approve(self, program):
        self.verb("image", "approve", program, "--subject", "courier", "--version", "1.0.0", "--proof-keys", "mpk.key")

    def serve(self, port=0):
        (self.folder / "config.json").write_text(
            json.dumps({"listen": f"127.0.0.1:{port}", "requests_per_minute": 100_000})
        )
        server = subprocess.Popen(
            [self.service.path, "serve", "--dir", "service", "--config", "config.json"],
            cwd=self.folder,
            env=self.service.environment,
            stdout=subprocess.PIPE,
            stderr=(self.folder / "service.log").open("ab"),
        )
        self.url = server.stdout.readline().decode().split()[1]
        return server

    def courier(self, *words, status=0, before=(), program=None):
        """What the app prints. `before` are words before the program, which run it."""
        done = subprocess.run(
            [*before, program or self.app, *map(str, words)],
            cwd=self.folder,
            env=self.line.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
            umask=0o077,
        )
        assert done.returncode == status, done.stdout + done.stderr
        return done.stdout.strip() if status == 0 else done.stderr

    def backend(self, *words, given):
        return subprocess.run(
            [sys.executable, examples.ROOT / "Examples/Courier/backend.py", *map(str, words)],
            cwd=self.folder,
            input=given,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )

    def check(self, token, *words):
        return self.backend("check", "api.key", API, *words, given=token)


@pytest.fixture(scope="module")
def account(holdfast, folder):
    account = Account(holdfast, folder)
    yield account
    stop(account.server)


def test_an_app_that_is_not_approved_gets_nothing_but_reasons_and_a_code(account):
    assert "not accepted: unknownProofKey" in account.courier("token", API, status=1)
    assert "not accepted" in account.courier("text", "map-key", status=1)
    # From now on the service knows the release's keys, but not this build.
    other = account.folder / "other"
    other.write_bytes(account.app.read_bytes() + b"\0")
    account.approve(other)
    said = account.courier("token", API, status=1)
    code = said.rsplit("code ", 1)[1].strip()
    assert code in account.verb("arc", code).decode()
    assert "unknownImage" in account.verb("list", "refusals", "--code", code).decode()
    account.approve(account.app)
    account.courier("token", API)


def test_with_the_development_key_a_build_passes_that_is_not_approved(account):
    other = account.folder / "app" / "development"
    other.write_bytes(account.app.read_bytes() + b"more")
    other.chmod(0o755)
    assert "unknownImage" in account.courier("token", API, status=1, program=other)
    file = account.folder / "development.key"
    file.write_text(json.loads(account.verb("development-key", "new", "--json"))["development_key"] + "\n")
    try:
        claims = json.loads(account.check(account.courier("token", API, program=other)).stdout)
        assert (claims["dev"], claims["sub"], claims["ver"]) == (True, "development", [0, 0, 0])
        account.verb("development-key", "remove")
        assert "developmentKey" in account.courier("token", API, status=1, program=other)
    finally:
        file.unlink()


def test_a_token_is_bound_to_data_and_the_backend_checks_it(account):
    token = account.courier("token", API, "alice")
    done = account.check(token, "alice")
    assert done.returncode == 0, done.stderr
    claims = json.loads(done.stdout)
    assert (claims["sub"], claims["ver"], claims["aud"]) == ("courier", [1, 0, 0], API)
    assert account.courier("start").split()[0] == claims["did"]
    assert account.check(token, "bob").returncode != 0
    header, payload, signature = token.split(".")
    assert account.check(f"{header}.{payload}.{'A' * len(signature)}").returncode != 0
    assert "unknownURL" in account.courier("token", "other.example.com", status=1)


def test_apps_of_two_groups_have_two_ids_and_those_of_one_share_theirs(account):
    file = account.folder / "group.txt"

    def id_of(group):
        file.write_text(group + "\n")
        return json.loads(account.check(account.courier("token", API)).stdout)["did"]

    alone = json.loads(account.check(account.courier("token", API)).stdout)["did"]
    try:
        ids = [id_of(group) for group in ("com.example.locks", "com.example.pumps", "com.example.locks")]
        assert ids[0] == ids[2] and len({alone, *ids}) == 3
        file.write_text("no/name")
        assert "no name" in account.courier("token", API, status=1)
    finally:
        file.unlink()
    assert json.loads(account.check(account.courier("token", API)).stdout)["did"] == alone


def test_texts_claims_and_signatures_are_given(account):
    assert account.courier("text", "map-key") == "s3cret"
    assert account.courier("text", "mine", "own") == "own"
    assert "unknownKey" in account.courier("text", "none", status=1)
    assert account.courier("claims", '{"tour": 7}').count(".") == 2
    token, signature = account.courier("sign", "hello", API).split()
    account.verb("message-key", "secret", "--out", account.folder / "message.key")
    key = (account.folder / "message.key").read_bytes()
    assert base64.b64decode(signature) == hmac.digest(key, f"{token}hello".encode(), "sha256")
    files = [file for file in (account.folder / "courier-state").rglob("*") if file.is_file()]
    assert len(files) >= 5
    assert not any(b"s3cret" in file.read_bytes() for file in files)


def test_pins_reach_the_app_with_the_next_fetch(account):
    pin = "sha256//" + "A" * 43 + "="
    account.verb("pin", "add", API, pin)
    account.courier("token", API)
    assert json.loads(account.courier("start").split(" ", 1)[1]) == {API: ["A" * 43 + "="]}


def test_a_traced_app_gets_nothing(account):
    if shutil.which("strace") is None:
        pytest.skip("there is no strace")
    said = account.courier("token", API, status=1, before=("strace", "-f", "-o", "/dev/null"))
    assert "not accepted" in said
    account.courier("token", API)


def test_the_app_measures_for_a_locker_and_opens_it_without_a_network(account):
    run = account.line
    keys = json.loads(subprocess.run(
        ["curl", "-sf", f"{account.url}/.well-known/jwks.json"], capture_output=True, timeout=SECONDS, check=True
    ).stdout)  # fmt: skip
    (account.folder / "issuer.json").write_text(json.dumps(keys["keys"][0]))
    run.succeed("device", "init", "--dir", "locker")
    run.succeed("device", "trust", "--dir", "locker", "issuer.json")
    (account.folder / "locker.json").write_bytes(run.succeed("device", "show", "--dir", "locker", "--json"))
    account.verb("device", "add", "locker.json", "--label", "locker-7")
    account.courier("measure", API, "locker.json", "attestation.jwt")
    code = json.loads(account.verb("invite", "--device", "locker-7", "--json"))["code"]
    done = account.backend("issue", account.url, "locker.json", "attestation.jwt", "token.cose", given=code)
    assert done.returncode == 0, done.stderr
    account.courier("accept", "locker.json", "token.cose")
    socket = account.folder / "locker.sock"
    served = run.start("device", "serve", "--dir", "locker", "--listen", f"unix:{socket}")
    try:
        transport.connect_when_ready(str(socket)).close()
        account.server.send_signal(signal.SIGSTOP)
        assert account.courier("open", "unlock", f"unix:{socket}").startswith("accepted")
        first, second = account.courier("prove", "00" * 16).split()
        assert len(first) == len(second) == 64
        assert account.courier("prove", "00" * 16).split() == [first, second]
        assert "reservedNonce" in account.courier("prove", "80" + "00" * 15, status=1)
    finally:
        account.server.send_signal(signal.SIGCONT)
        stop(served)
    # Nothing has changed, so that the report names no component.
    code = json.loads(account.check(account.courier("report", API)).stdout)["arc"]
    assert json.loads(account.verb("arc", code, "--json"))["user_property"] == "$error"


def test_the_app_asks_whether_its_token_is_still_good_gets_new_settings_and_gives_it_back(account):
    locker = ("locker.json", account.url)
    assert account.courier("ask", *locker) == "valid no settings"
    (account.folder / "settings").write_text("volume=3")
    account.verb("settings", "set", account.folder / "settings", "--kind", "text", "--app", "courier")
    for _ in range(2):
        assert account.courier("ask", *locker) == "valid volume=3"
    (token,) = json.loads(account.verb("list", "tokens", "--json"))["items"]
    assert account.courier("leave", *locker) == "left"
    assert json.loads(account.verb("show", "tokens", token["id"], "--json"))["reason"] == "left"
    assert "nothingEnrolled" in account.courier("ask", *locker, status=1)


def test_without_a_service_the_texts_are_there_and_tokens_are_not(account):
    assert account.courier("text", "map-key") == "s3cret"
    port = int(account.url.rsplit(":", 1)[1])
    stop(account.server)
    assert account.courier("text", "map-key") == "s3cret"
    assert "try again later: noService" in account.courier("token", API, status=1)
    account.server = account.serve(port)
    account.courier("token", API)
