"""The issuer's terms at the command line: the offline limit, rules about versions, and settings."""

import base64
import json
import time

import pytest
from holdfast_peer import transport
from holdfast_peer.command_line import CommandLine, stop

OK, DENIED, MALFORMED = 0, 1, 2


class Home:
    """A service in a folder, a lock that is served, and a prover."""

    def __init__(self, program, folder):
        self.folder, self.line = folder, CommandLine(program, folder)
        run = self.line
        run.succeed("service", "init", "--dir", "service")
        (folder / "service.json").write_bytes(run.succeed("service", "show", "--dir", "service", "--json"))
        run.succeed("device", "init", "--dir", "lock")
        run.succeed("device", "trust", "--dir", "lock", "service.json")
        (folder / "lock.json").write_bytes(run.succeed("device", "show", "--dir", "lock", "--json"))
        run.succeed("service", "device", "add", "--dir", "service", "lock.json")
        self.server = run.start("device", "serve", "--dir", "lock", "--listen", f"unix:{folder}/lock.sock", "--quiet")
        transport.connect_when_ready(str(folder / "lock.sock")).close()

    def set_terms(self, **members):
        path = self.folder / "service" / "policy.json"
        policy = json.loads(path.read_bytes())
        for name in ("offline_seconds", "settings", "compliance"):
            policy.pop(name, None)
        path.write_text(json.dumps({**policy, **members}))

    def enroll(self, state):
        return self.line.run(
            "enroll", "--device", "lock.json", "--service", "service", "--state", state, "--replace", "--json"
        )

    def prove(self, state):
        return self.line.run(
            *("prove", "--connect", f"unix:{self.folder}/lock.sock", "--state", state, "--command", "unlock", "--json"),
            *("--timeout", "60"),
        )


@pytest.fixture(scope="module")
def home(holdfast, tmp_path_factory):
    home = Home(holdfast, tmp_path_factory.mktemp("terms"))
    try:
        yield home
    finally:
        stop(home.server)


def test_prove_refuses_once_the_offline_limit_is_reached_until_enroll_succeeds(home):
    home.set_terms(offline_seconds=1)
    assert home.enroll("limited").returncode == OK
    time.sleep(1.2)
    done = home.prove("limited")
    assert done.returncode == DENIED
    assert json.loads(done.stdout)["error"].startswith("offlineLimit: ")
    status = home.line.read_json("status", "--state", "limited")["devices"][0]
    assert status["state"] == "offlineLimit"
    assert status["offline"]["seconds"] == 1 and status["offline"]["seconds_left"] == 0
    home.set_terms(offline_seconds=86_400)
    assert home.enroll("limited").returncode == OK
    assert home.prove("limited").returncode == OK
    status = home.line.read_json("status", "--state", "limited")["devices"][0]
    assert status["state"] == "valid" and 86_000 < status["offline"]["seconds_left"] <= 86_400
    assert b"  offline " in home.line.succeed("status", "--state", "limited")


def test_settings_reach_the_app_byte_for_byte_and_change_with_the_next_enrolment(home):
    hostile = b"\x1b]0;title\x07lights=on\n"
    home.set_terms(settings={"type": "text", "value": base64.b64encode(hostile).decode()})
    assert home.enroll("set").returncode == OK
    shown = home.line.succeed("settings", "--state", "set")
    assert b"lights=on" in shown and b"\x1b" not in shown and b"\x07" not in shown
    home.line.succeed("settings", "--state", "set", "--out", "settings.txt")
    assert (home.folder / "settings.txt").read_bytes() == hostile
    value = home.line.read_json("settings", "--state", "set")
    assert value["type"] == "text" and base64.b64decode(value["base64"]) == hostile
    home.set_terms()
    assert home.enroll("set").returncode == OK
    assert home.line.succeed("settings", "--state", "set") == b""
    assert home.line.run("settings", "--state", "set", "--out", "none").returncode == MALFORMED


def test_an_operating_system_that_does_not_comply_is_not_enrolled(home):
    home.set_terms()
    assert home.enroll("old").returncode == OK
    home.set_terms(compliance=[{"subject": "os", "operator": ">", "versions": ["100000"], "action": "block"}])
    done = home.enroll("old")
    assert done.returncode == DENIED and b"notCompliant" in done.stdout + done.stderr
    assert home.prove("old").returncode == OK


def test_a_policy_with_a_mistake_in_its_terms_issues_nothing(home):
    for members, word in (
        ({"offline_seconds": 0}, "offline_seconds"),
        ({"settings": {"type": "json", "value": "e30"}}, "settings"),
        ({"settings": {"type": "bytes", "value": base64.b64encode(bytes(16_385)).decode()}}, "settings"),
        ({"compliance": [{"subject": "app", "operator": "<", "versions": ["x"], "action": "warn"}]}, "compliance"),
    ):
        home.set_terms(**members)
        done = home.enroll("mistaken")
        assert done.returncode == MALFORMED and word in done.stdout.decode(), done
