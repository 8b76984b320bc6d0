"""Provers that use up counted tokens as fast as they can, and a device that is killed (SIGKILL) meanwhile."""

import threading
import time

from holdfast_peer import transport
from holdfast_peer.session import STATUS

MAXIMUM_USES = 60
SECONDS = 10


class Load(threading.Thread):
    """One prover that asks as fast as it can, until its device is gone."""

    def __init__(self, device, grant, tally):
        super().__init__(daemon=True)
        self.device, self.grant, self.tally = device, grant, tally

    def run(self):
        try:
            prover = self.device.connect()
            while True:
                self.tally.append(prover.ask(self.grant).status)
        except (OSError, transport.Closed):
            pass  # killed in the middle of anything


def kill_once(device, grants, tallies, pause, *, in_use):
    """Kills the device `pause` seconds after the provers have begun; if `in_use`, after the first verdict."""
    before = verdict_count(tallies)
    loads = [Load(device, grant, tally) for grant, tally in zip(grants, tallies) for _ in range(2)]
    for load in loads:
        load.start()
    deadline = time.monotonic() + SECONDS
    while in_use and verdict_count(tallies) == before and time.monotonic() < deadline:
        time.sleep(0.001)
    time.sleep(pause)
    device.process.kill()
    device.process.wait()
    for load in loads:
        load.join(SECONDS)
        assert not load.is_alive(), "a prover hangs on a device that is dead"
    device.command_line.succeed("device", "audit", "--verify", "--dir", device.device_folder)
    device.start()


def verdict_count(tallies):
    return sum(map(len, tallies))


def check_uses(tallies):
    for tally in tallies:
        accepted = tally.count(STATUS["accepted"])
        assert accepted <= MAXIMUM_USES, f"accepted {accepted} times in place of {MAXIMUM_USES}"


def use_up(device, grant, tally):
    """What is left is accepted, and then nothing any more, also after one more restart."""
    prover = device.connect()
    for _ in range(MAXIMUM_USES + 1):
        tally.append(prover.ask(grant).status)
    assert tally[-1] == STATUS["usesExhausted"], "status when used up"
    check_uses([tally])
    device.stop()
    device.start()
    assert device.connect().ask(grant).status == STATUS["usesExhausted"], "status after a restart"
