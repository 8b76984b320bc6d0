"""`holdfast attack` finds nothing at a board, which serves one peer at a time and slows its answers after ten failures."""

import json

from board_device import BoardDevice


def test_a_board_withstands_every_attack_that_a_line_permits(holdfast, folder):
    device = BoardDevice(holdfast, folder)
    try:
        device.prepare()
        service, descriptor = device.service()
        run = device.command_line
        run.succeed("enroll", "--device", descriptor, "--service", service, "--state", folder / "phone")
        done = run.run(
            *("attack", device.endpoint, "--state", folder / "phone", "--service", service, "--json"),
            *("--skip", "late-answer"),
            timeout=400,
        )
        report = json.loads(done.stdout)
        found = [(each["id"], each["observed"]) for each in report["attacks"] if each["judgement"] == "unsound"]
        assert (done.returncode, found) == (0, []), done.stderr.decode()
        assert report["sound"] > 85
        flood = next(each for each in report["attacks"] if each["id"] == "flood")
        assert flood["reason"] == "a line serves one peer at a time"
    finally:
        device.close()
