"""`holdfast device bridge` between provers and a device behind a line."""

import json
import os
import pathlib
import signal
import socket
import subprocess
import time

import pytest
from devices import BUSY, BridgedDevice, Terminal, served, wait_for
from holdfast_peer import session, transport
from holdfast_peer.command_line import stop

USAGE, UNAVAILABLE = 64, 69
MALFORMED, INTERNAL = (session.message_3(session.STATUS[name], None) for name in ("malformed", "internal"))


class EnrolledBridge(BridgedDevice):
    """A device behind a bridge, and a prover of the program's that it knows."""

    def prepare(self):
        super().prepare()
        service, descriptor = self.service()
        self.state = self.folder / "state"
        self.command_line.succeed("enroll", "--device", descriptor, "--service", service, "--state", self.state)

    def prove(self, endpoint, *more):
        return self.command_line.run(
            "prove", "--connect", endpoint, "--state", self.state, "--command", "unlock", *more
        )

    def expect_accepted(self, endpoint, *more):
        done = self.prove(endpoint, *more)
        assert done.returncode == 0, f"prove: {done.stderr.decode()[-200:]}"

    def expect_accepted_soon(self, reason):
        wait_for(lambda: self.prove(f"unix:{self.socket}").returncode == 0, reason)

    def refusal(self, wanted, attempts=100):
        """Connects until the bridge answers `wanted`, and nothing else but busy."""
        for _ in range(attempts):
            with transport.connect(self.socket) as connection:
                message = connection.receive()
                if message == wanted:
                    return
                assert message == BUSY, "refusal"
            time.sleep(0.05)
        raise AssertionError("never refused as it has to be")


@pytest.fixture(scope="module")
def device(holdfast, folder):
    with served(EnrolledBridge(holdfast, folder)) as device:
        yield device


def test_prove_is_accepted_over_packets_and_over_bytes_again_and_again(device):
    for endpoint in (f"unix:{device.socket}", f"unix-stream:{device.stream}") * 2:
        device.expect_accepted(endpoint)


@pytest.mark.parametrize("way", ["packets", "frames"])
def test_the_independent_prover_is_accepted(device, way):
    connect = getattr(device, way)
    for encoding in (session.COSE, session.JOSE):
        grant = device.grant(encoding)
        prover = connect()
        with prover.connection:
            for number in range(4):
                outcome = prover.ask(grant, by_reference=number > 0)
                assert outcome.status == 0, "status"


def test_a_second_prover_is_told_busy(device):
    first = device.packets()
    with first.connection:
        # One that has proved nothing for two seconds gives its place to a newcomer.
        assert first.ask(device.grant(session.COSE)).status == 0, "the first prover's status"
        for _ in range(3):
            with transport.connect(device.socket) as other:
                assert other.receive() == BUSY, "the second prover's answer"
            with transport.connect_stream(device.stream) as other:
                assert other.receive() == BUSY, "the second prover's answer"
        assert first.ask(device.grant(session.COSE)).status == 0, "the first prover's status afterwards"


def test_provers_that_leave_in_the_middle_hold_nothing_up(device):
    for number in range(10):
        prover = device.frames() if number % 2 else device.packets()
        attempt = prover.attempt(device.grant(session.COSE))
        if number % 3 == 0:
            prover.connection.send(attempt.message())
        elif number % 2:
            prover.connection.handle.sendall(b"\x01\x00\x85")
        prover.connection.close()
    device.expect_accepted_soon("no prover is accepted any more")


def test_hostile_provers_are_told_malformed(device):
    for data in (b"\xff\xff", b"\x10\x01" + bytes(5000), b"\x00\x40\x85\x02"):
        prover = device.frames()
        with prover.connection as connection:
            connection.handle.sendall(data)
            connection.handle.shutdown(socket.SHUT_WR)
            assert connection.receive() == MALFORMED, "answer to garbage"
    prover = device.packets()
    with prover.connection as connection:
        connection.send(b"\x85garbage")
        assert connection.receive() == MALFORMED, "the device's answer to garbage"
    device.expect_accepted_soon("no prover is accepted any more")


def test_the_device_goes_and_comes_back(device):
    stop(device.process)
    device.refusal(INTERNAL)
    used, begun = processor_seconds(device.bridge.pid), time.monotonic()
    time.sleep(2)
    share = (processor_seconds(device.bridge.pid) - used) / (time.monotonic() - begun)
    assert share < 0.1, "the bridge spins"
    device.start_device()
    wait_for(
        lambda: b"open again" in device.bridge_log.read_bytes().rsplit(b"there is nothing at", 1)[-1],
        "the line is not opened again",
    )
    device.expect_accepted_soon("no prover is accepted any more")


def processor_seconds(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@pytest.mark.parametrize("with_prover", [False, True])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=lambda number: number.name)
def test_a_signal_ends_the_bridge(device, number, with_prover):
    prover = device.packets() if with_prover else None
    device.bridge.send_signal(number)
    # Sooner than a prover's time for its answer is over.
    assert device.bridge.wait(20) == 0, "exit status"
    if prover:
        prover.connection.close()
    assert not os.path.exists(device.socket), "the socket is left behind"
    assert b"ended" in device.bridge_log.read_bytes(), "it does not say that it ended"
    device.start_bridge()
    device.expect_accepted_soon("no prover is accepted any more")


def test_a_flood_of_provers_does_not_fill_the_log(device):
    """Provers that come and go by the hundred are few lines, and a count of the others; as JSON, each line is an object."""
    assert stop(device.bridge) == 0, "exit status"
    begun = time.monotonic()
    with (device.folder / "lines").open("wb") as lines:
        device.bridge = subprocess.Popen(
            [
                device.command_line.path,
                "device",
                "bridge",
                "--json",
                "--listen",
                f"unix:{device.socket}",
                "--to",
                f"unix-stream:{device.line}",
            ],
            env=device.command_line.environment,
            stdin=subprocess.DEVNULL,
            stdout=lines,
            stderr=subprocess.DEVNULL,
        )
    transport.connect_when_ready(device.socket).close()
    for _ in range(300):
        transport.connect_when_ready(device.socket).close()
    # A prover that gets a challenge is served after all others, none of which waits any more when the bridge ends.
    count = 301
    for _ in range(1000):
        count += 1
        with transport.connect_when_ready(device.socket) as connection:
            if connection.receive()[1] == 1:
                break
    assert stop(device.bridge) == 0, "exit status"
    elapsed = time.monotonic() - begun
    said = [json.loads(line) for line in (device.folder / "lines").read_text().splitlines()]
    assert all(isinstance(line["time"], int) and abs(line["time"] - time.time()) < 60 + elapsed for line in said), (
        "a line has another time"
    )
    counts = {
        event: len([line for line in said if line["event"] == event])
        for event in ("busy", "disconnected", "refused", "displaced")
    }
    assert max(counts.values()) <= 30 * (1 + elapsed // 60), f"too many lines: {counts}"
    left_out = sum(line["lines"] for line in said if line["event"] == "left-out")
    assert counts["busy"] + counts["disconnected"] + counts["displaced"] + left_out == count, (
        f"provers that are told of, in {counts}"
    )
    device.start_bridge()


def test_a_terminal_may_be_between_bridge_and_device(device):
    """Device, terminal, bridge, prover."""
    stop(device.bridge)
    with Terminal(device.line) as terminal:
        device.start_bridge("--listen", f"unix:{device.socket}", "--to", f"tty:{terminal.name}")
        for _ in range(3):
            device.expect_accepted_soon("no prover is accepted over a terminal")
        stop(device.bridge)
    device.start_bridge()


def test_a_prover_at_a_terminal_finds_its_challenge(device):
    """A prover on a terminal finds its challenge, also after one that left without an answer."""
    with Terminal(device.line) as terminal:
        for _ in range(3):
            device.expect_accepted(f"tty:{terminal.name}")
        os.write(terminal.near, b"\x00\x00")
        device.expect_accepted(f"tty:{terminal.name}")


def test_wrong_arguments_are_refused(device):
    line = f"unix-stream:{device.line}"
    for arguments, status in [
        (("--listen", f"unix:{device.folder}/x"), USAGE),
        (("--to", line), USAGE),
        (("--listen", f"unix:{device.folder}/x", "--to", "unix:" + device.line), USAGE),
        (("--listen", f"unix:{device.folder}/x", "--to", "rfcomm:00:11:22:33:44:55,channel=5"), USAGE),
        (("--listen", line, "--to", line), USAGE),
        (("--listen", "nonsense", "--to", line), USAGE),
        (("--listen", f"unix:{device.folder}/x", "--to", "tty:"), USAGE),
        (("--listen", f"unix:{device.folder}/x", "--to", f"tty:{device.folder}/none"), UNAVAILABLE),
        (("--listen", f"unix:{device.folder}/x", "--to", f"unix-stream:{device.folder}/none"), UNAVAILABLE),
        (("--listen", f"unix:{device.folder}/x", "--to", "tty:/dev/null"), UNAVAILABLE),
        (("--listen", f"unix:{device.folder}/none/x", "--to", line), UNAVAILABLE),
        (("--listen", "rfcomm:00:00:00:00:00:00,hci=hci7", "--to", line), UNAVAILABLE),
        (("--listen", f"unix:{device.socket}", "--to", line), UNAVAILABLE),
    ]:
        done = device.command_line.run("device", "bridge", *arguments)
        assert done.returncode == status, f"{arguments}: {done.stderr.decode()[-200:]}"
        assert done.seconds < 40, f"{arguments} took {done.seconds} s"
        assert b"hint:" in done.stderr or b"holdfast:" in done.stderr or b"Usage" in done.stderr, (
            f"{arguments} says nothing"
        )
    done = device.command_line.run("device", "bridge", "--json", "--listen", "nonsense", "--to", line)
    assert json.loads(done.stdout)["exit"] == USAGE, "exit of the JSON object"
