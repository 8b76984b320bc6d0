"""Examples/audit-sender: a device's log goes to the online service by a timer, each entry once."""

import fcntl
import os
import pathlib
import subprocess

import pytest
from test_service import Instance, new_service

EXAMPLE = pathlib.Path(__file__).resolve().parents[2] / "Examples" / "audit-sender" / "send-audit"


class Sender:
    """A device, the service, and the script between them."""

    def __init__(self, service, instance):
        self.service, self.instance = service, instance
        self.device, self.spool, self.token = (service.folder / name for name in ("device", "spool", "token"))
        self.token.write_text(service.operator("lock-7", "report") + "\n")

    def write(self, count):
        """Adds entries to the device's log."""
        for second in range(count):
            self.service.command_line.succeed(
                "device", "floor", "--dir", self.device, "--clock", str(1_700_000_000 + second)
            )

    def run(self, status=0, port=None, path=None, **changed):
        words = {
            "device": self.device,
            "spool": self.spool,
            "url": f"https://127.0.0.1:{port or self.instance.port}",
            "token": self.token,
            "certificates": self.service.folder / "certificate.pem",
            **changed,
        }
        path = path or f"{pathlib.Path(self.service.command_line.path).parent}:{os.environ['PATH']}"
        done = subprocess.run(
            [EXAMPLE, *words.values()],
            env={**os.environ, "PATH": path},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == status, (done.returncode, done.stderr)
        assert self.token.read_text().strip() not in done.stderr, "the token is shown"
        return done.stderr

    def arrived(self, *words):
        return [entry["sequence"] for entry in self.service.json("list", "audits", *words)["items"]][::-1]

    def waiting(self):
        return sorted(file.name for file in self.spool.iterdir())


@pytest.fixture
def sender(request, tmp_path):
    service = new_service(request, tmp_path)
    instance = Instance(service)
    yield Sender(service, instance)
    assert instance.stop() == 0, "exit status"


def test_what_is_new_arrives_once_and_leaves_the_spool(sender):
    sender.write(3)
    sender.run()
    first = sender.arrived()
    assert len(first) >= 3 and first == list(range(1, len(first) + 1)) and sender.waiting() == []
    sender.write(2)
    sender.run()
    second = sender.arrived()
    assert len(second) >= len(first) + 2 and second == list(range(1, len(second) + 1)) and sender.waiting() == []
    verified = sender.service.command_line.succeed("device", "audit", "--dir", sender.device, "--verify")
    sender.run()
    again = sender.service.command_line.succeed("device", "audit", "--dir", sender.device, "--verify")
    assert again == verified, "a run without news changes the device's log"
    moved = sender.arrived("--event", "clock-floor-moved", "--since", "2026-01-01T00:00:00Z")
    assert moved and not sender.arrived("--event", "clock-floor-moved", "--until", "2026-01-01T00:00:00Z")


def test_what_could_not_be_sent_waits_and_may_be_sent_twice(sender):
    sender.write(3)
    assert "cannot be reached" in sender.run(69, port=1)
    (name,) = sender.waiting()
    content = (sender.spool / name).read_bytes()
    sender.write(2)
    sender.run()
    arrived = sender.arrived()
    assert arrived == list(range(1, len(arrived) + 1)) and sender.waiting() == []
    # As after a power cut between the answer and the removal.
    (sender.spool / name).write_bytes(content)
    sender.run()
    again = sender.arrived()
    assert again == list(range(1, len(again) + 1)) and sender.waiting() == []


def test_what_is_refused_stays_until_somebody_has_looked(sender):
    sender.write(2)
    reader = sender.service.folder / "reader"
    reader.write_text(sender.service.operator("rita", "read"))
    assert "refused" in sender.run(1, token=reader)
    (name,) = sender.waiting()
    file = sender.spool / name
    content = file.read_text()
    lines = content.splitlines()
    for changed in (lines[1].replace("84", "85", 1), "{}", "["):
        file.write_text("\n".join([lines[0], changed, *lines[2:]]))
        sender.run(1)
        assert sender.waiting() == [name] and sender.arrived() == []
    file.write_text(content)
    assert "is not the service" in sender.run(1, certificates="/etc/ssl/certs/ca-certificates.crt")
    assert sender.waiting() == [name]
    sender.run()
    assert sender.arrived()[0] == 1 and sender.waiting() == []


def test_wrong_calls_and_a_second_one_at_work_change_nothing(sender):
    sender.write(1)
    sender.run(64, url="http://127.0.0.1")
    sender.run(1, token=sender.service.folder / "none")
    sender.run(1, device=sender.service.folder / "none")
    assert "cannot be started" in sender.run(1, path="/usr/bin")
    sender.spool.mkdir(exist_ok=True)
    folder = os.open(sender.spool, os.O_RDONLY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        assert "at work" in sender.run(69)
    finally:
        os.close(folder)
    assert sender.waiting() == [] and sender.arrived() == []


def test_the_token_hands_in_logs_and_does_nothing_else(sender):
    token = sender.token.read_text().strip()
    for method, path, body in (
        ("GET", "/v1/admin/devices", None),
        ("GET", "/v1/admin/audits", None),
        ("POST", "/v1/admin/invitations", {"device": "0" * 32, "valid_seconds": 60}),
        ("POST", f"/v1/admin/devices/{sender.service.descriptor['device_id']}/block", {}),
        ("PUT", "/v1/admin/policy", {"policy": {}}),
    ):
        assert sender.instance.ask(method, path, body, token=token)[0] == 403, path
