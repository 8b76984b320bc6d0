"""`device serve` and `device bridge` under a service manager: sockets that it passes, and the states that it is told.

The manager is in Python; make test-packages does the same with systemd.
"""

import contextlib
import os
import pathlib
import socket

import pytest
from devices import LinuxDevice
from holdfast_peer import transport
from holdfast_peer.command_line import stop
from service_manager import Manager


@pytest.fixture(scope="module")
def device(holdfast, folder):
    device = LinuxDevice(holdfast, folder)
    device.prepare()
    return device


@pytest.fixture
def manager(tmp_path):
    with contextlib.closing(Manager(tmp_path)) as manager:
        yield manager


@pytest.fixture
def place(folder, tmp_path):
    """The short path of a socket, for this test only."""
    path = folder / tmp_path.name[-30:]
    yield path
    path.unlink(missing_ok=True)


def listening(path, kind=socket.SOCK_SEQPACKET):
    handle = socket.socket(socket.AF_UNIX, kind)
    handle.bind(str(path))
    if kind != socket.SOCK_DGRAM:
        handle.listen()
    return handle


def serve(device, *endpoints):
    words = [word for endpoint in endpoints for word in ("--listen", endpoint)]
    return [device.command_line.path, "device", "serve", "--dir", device.device_folder, *words]


def first_message(path):
    with transport.connect(str(path), timeout=30) as connection:
        return connection.receive()


def test_a_prover_that_waits_at_the_passed_socket_is_served_by_each_process_in_turn(device, manager, place):
    """Whoever connects before the process is there is served by it, and the socket outlives it."""
    with listening(place) as passed:
        for _ in range(2):
            with transport.connect(str(place), timeout=30) as waiting:
                process = manager.start(serve(device, f"unix:{place}"), [passed])
                assert waiting.receive()[0] == 0x87, "no M1"
                assert manager.hear() == "READY=1"
            assert stop(process) == 0, process.stderr.read()
            assert manager.hear() == "STOPPING=1"
            assert place.is_socket(), "the name of the passed socket was removed"


def test_other_endpoints_are_served_next_to_the_passed_socket(device, manager, place):
    other = pathlib.Path(f"{place}o")
    with listening(place) as passed:
        process = manager.start(serve(device, f"unix:{other}", f"unix:{place}"), [passed])
        assert manager.hear() == "READY=1"
        assert first_message(place)[0] == first_message(other)[0] == 0x87
        assert stop(process) == 0
        assert place.exists() and not other.exists(), "only the process's own socket file goes with it"


def test_the_passed_socket_reaches_no_actuator(device, manager, place, tmp_path):
    """A program that the device starts has the three standard descriptors only, and no variable of the manager."""
    actuator = tmp_path / "actuator"
    actuator.write_text(
        "#!/bin/sh\nread -r start\n"
        f"{{ ls /proc/self/fd | tr '\\n' ' '; env; }} >{tmp_path}/seen.new; mv {tmp_path}/seen.new {tmp_path}/seen\n"
        """echo '{"commands":["unlock","lock","status","configure","open-safe"]}'\nread -r rest\n"""
    )
    actuator.chmod(0o700)
    with listening(place) as passed:
        command = [*serve(device, f"unix:{place}"), "--actuator", f"lines:{actuator}"]
        process = manager.start(command, [passed])
        assert manager.hear() == "READY=1"
        assert stop(process) == 0
    seen = (tmp_path / "seen").read_text()
    assert seen.startswith("0 1 2 3 \n"[:6]) and "4" not in seen.splitlines()[0].split(" ")[4:], seen
    assert "LISTEN" not in seen and "NOTIFY" not in seen, seen


def refusals(place):
    """What a manager may pass by mistake: name, sockets, the endpoint, variables, and what is said."""
    return {
        "bytes": (lambda: [listening(place, socket.SOCK_STREAM)], f"unix:{place}", {}, "socket of another type"),
        "datagrams": (lambda: [listening(place, socket.SOCK_DGRAM)], f"unix:{place}", {}, "socket of datagrams"),
        "abstract": (lambda: [listening(f"\0{place}")], f"unix:{place}", {}, "not a listening socket"),
        "file": (lambda: [open("/dev/null")], f"unix:{place}", {}, "not a listening socket"),
        "internet": (lambda: [socket.create_server(("127.0.0.1", 0))], f"unix:{place}", {}, "not a listening socket"),
        "connected": (lambda: list(socket.socketpair()[:1]), f"unix:{place}", {}, "not a listening socket"),
        "unnamed": (lambda: [listening(place)], f"unix:{place}x", {}, "which no --listen names"),
        "twice": (
            lambda: [listening(place), listening(f"{place}2")],
            f"unix:{place}",
            {},
            "which no --listen names",
        ),
        "mode": (lambda: [listening(place)], f"unix:{place},mode=660", {}, "determines who may connect"),
        "missing": (lambda: [listening(place)], f"unix:{place}", {"LISTEN_FDS": "2"}, "LISTEN_FDS does not count"),
        "negative": (lambda: [listening(place)], f"unix:{place}", {"LISTEN_FDS": "-1"}, "LISTEN_FDS does not count"),
        "text": (lambda: [listening(place)], f"unix:{place}", {"LISTEN_FDS": "one"}, "LISTEN_FDS does not count"),
        "many": (
            lambda: [listening(place)],
            f"unix:{place}",
            {"LISTEN_FDS": "2147483647"},
            "LISTEN_FDS does not count",
        ),
    }


@pytest.mark.parametrize("name", refusals(""))
def test_anything_else_that_is_passed_is_refused(device, manager, place, name):
    make, endpoint, variables, said = refusals(place)[name]
    handles = make()
    try:
        process = manager.start(serve(device, endpoint), handles, **variables)
        error = process.communicate(timeout=60)[1].decode()
        assert process.returncode == 64, error
        assert said in error and "hint: " in error and error.count("\n") == 2, error
        assert manager.has_heard_nothing()
    finally:
        for handle in handles:
            handle.close()
        pathlib.Path(f"{place}2").unlink(missing_ok=True)


def test_sockets_of_another_process_are_left_alone(device, manager, place):
    """The variables count only for the process that they name: here, the device makes a socket of its own."""
    with listening(pathlib.Path(f"{place}o")) as passed:
        process = manager.start(serve(device, f"unix:{place}"), [passed], LISTEN_PID="1")
        assert manager.hear() == "READY=1"
        assert first_message(place)[0] == 0x87
        assert stop(process) == 0
        assert not place.exists()
    os.unlink(f"{place}o")


def test_a_socket_that_every_user_may_use_is_warned_of(device, manager, place):
    with listening(place) as passed:
        place.chmod(0o666)
        process = manager.start(serve(device, f"unix:{place}"), [passed])
        assert manager.hear() == "READY=1"
        assert stop(process) == 0
        assert b"every user of this host may connect" in process.stderr.read()


def test_a_bridge_takes_a_passed_socket_and_tells_its_states(device, tmp_path, place):
    line = pathlib.Path(f"{place}l")
    with (
        contextlib.closing(Manager(tmp_path, abstract=True)) as manager,
        listening(line, socket.SOCK_STREAM) as board,
        listening(place) as passed,
    ):
        bridge = [device.command_line.path, "device", "bridge", "--to", f"unix-stream:{line}"]
        process = manager.start([*bridge, "--listen", f"unix:{place}"], [passed])
        board.settimeout(30)
        with board.accept()[0]:
            assert manager.hear() == "READY=1"
            with transport.connect(str(place), timeout=30):
                pass
            assert stop(process) == 0
        assert manager.hear() == "STOPPING=1"
        assert place.exists()
    line.unlink()


@pytest.mark.parametrize("name", ["/nowhere/at/all", "/" + "x" * 300, "", "@", "vsock:2:1234", "relative"])
def test_a_manager_that_does_not_listen_is_no_obstacle(device, manager, place, name):
    process = manager.start(serve(device, f"unix:{place}"), NOTIFY_SOCKET=name)
    connection = transport.connect_when_ready(str(place))
    assert connection.receive()[0] == 0x87
    connection.close()
    assert stop(process) == 0


def test_a_device_that_cannot_start_is_never_ready(device, manager, place):
    process = manager.start(serve(device, f"unix:{place}/no/folder"))
    process.communicate(timeout=60)
    assert process.returncode == 69
    assert manager.has_heard_nothing()


def test_the_journal_is_told_how_important_each_line_is(device, manager, place):
    """A priority precedes each line where standard error is the journal's stream, and only there."""
    command = serve(device, f"unix:{place},mode=666")
    for journal in (True, False):
        process = manager.start_into_journal(command, journal)
        told = manager.hear()
        assert (told, stop(process), manager.hear()) == ("READY=1", 0, "STOPPING=1")
        with process.stderr as stream:
            lines = stream.read().decode().splitlines()
        plain = [line.split(">", 1)[1] if journal else line for line in lines]
        assert all(line.startswith("holdfast: ") for line in plain), lines
        warned = [line for line in lines if "warning: " in line and "every user of this host" in line]
        assert [line[:3] for line in warned] == ["<4>" if journal else "hol"], "the priority of a warning"
        assert journal == all(line[:3] in ("<4>", "<6>") for line in lines), "the priorities of all lines"


def test_a_failure_is_an_error_in_the_journal(device, manager, place):
    process = manager.start_into_journal(serve(device, f"unix:{place}", "unix:"), True)
    with process.stderr as stream:
        lines = stream.read().decode().splitlines()
    assert process.wait(timeout=60) == 64
    assert lines[0].startswith("<3>holdfast: "), lines
