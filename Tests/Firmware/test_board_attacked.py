"""`holdfast attack` finds nothing at a board, which serves one peer at a time and slows its answers after ten failures."""

import contextlib
import json

from board_device import BoardDevice
from device_users import Users
from devices import Terminal

# These are about texts, which the board reads with the same code as a device on Linux. Each of their tokens costs a second.
TEXTS = (
    *("another-signature-algorithm", "another-signature-form", "compressed-token", "ignored-parties", "key-in-header"),
    "public-key-as-mac-jose",
    *("another-alphabet", "another-encryption", "another-key-management", "another-type-of-claim", "bytes-after-json"),
    *("critical-header", "duplicate-member", "missing-parameter", "no-algorithm", "padded-part", "trailing-bits"),
)
USER_ATTACKS = (
    *("no-password", "password-of-another-user", "password-of-another-user-jose", "password-twice", "lockout"),
    *("lockout-by-token", "lockout-by-user-token", "lockout-by-case", "uses", "uses-in-both-encodings", "future-token"),
)


@contextlib.contextmanager
def enrolled(holdfast, folder):
    """A board, and a prover that its service enrolled."""
    device = BoardDevice(holdfast, folder)
    try:
        device.prepare()
        service, descriptor = device.service()
        device.command_line.succeed("enroll", "--device", descriptor, "--service", service, "--state", folder / "phone")
        yield device, service
    finally:
        device.close()


def attack(device, endpoint, service, *more):
    """The finished process, and what was judged, by id."""
    done = device.command_line.run(
        *("attack", endpoint, "--state", device.folder / "phone", "--service", service, "--json", *more), timeout=3000
    )
    attacks = {each["id"]: each for each in json.loads(done.stdout)["attacks"]}
    found = [(name, each["observed"]) for name, each in attacks.items() if each["judgement"] == "unsound"]
    assert (done.returncode, found) == (0, []), done.stderr.decode()
    return attacks


def test_a_board_withstands_every_attack_that_a_line_permits(holdfast, folder):
    with enrolled(holdfast, folder) as (device, service):
        # The emulator's clock is slow on a busy machine: there, a message of 20 seconds can take fewer than ten.
        skipped = (word for each in ("late-answer", "dripped-message", *TEXTS) for word in ("--skip", each))
        attacks = attack(device, device.endpoint, service, *skipped)
        assert sum(each["judgement"] == "sound" for each in attacks.values()) > 100
        assert attacks["point-off-the-curve-jose"]["judgement"] == "sound"
        assert attacks["flood"]["reason"] == "a line serves one peer at a time"


def test_a_board_at_a_terminal_withstands_guesses_used_passwords_and_tokens_of_the_future(holdfast, tmp_path):
    with enrolled(holdfast, tmp_path) as (device, service):
        user = Users(device).provision("--otp", "hotp", seal=False)
        code = tmp_path / "code"
        code.write_text(user.hotp())
        device.leave_line()
        chosen = (word for each in USER_ATTACKS for word in ("--only", each))
        with Terminal(device.socket) as line:
            attacks = attack(
                device, f"tty:{line.name}", service, "--user", user.name, "--otp", code, "--destructive", *chosen
            )
        assert {each["judgement"] for each in attacks.values()} == {"sound"}, attacks
