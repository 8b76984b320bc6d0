"""What the tests share: the program under test, folders, devices of each kind, and provers connected to them."""

import json
import pathlib
import signal
import tempfile

import images
import pytest
from board_device import BoardDevice
from c_library import Library
from devices import BridgedDevice, LinuxDevice, served
from holdfast_peer.session import COSE, JOSE
from sandbox import sandboxes

# A shell that starts tests in the background has them ignore Ctrl-C, and what they start would ignore it too.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def holdfast(request):
    """The path of the program under test."""
    path = request.config.getoption("holdfast").absolute()
    assert path.is_file(), f"there is no {path}: run `make build`, or name another with --holdfast"
    return path


@pytest.fixture(scope="session")
def c_library(request):
    """The C library under test, as `make library` installs it."""
    library = Library(request.config.getoption("library"))
    assert library.file.is_file(), f"there is no {library.file}: run `make library`, or name another with --library"
    return library


@pytest.fixture(scope="session")
def twin(request):
    path = request.config.getoption("twin")
    return path and path.absolute()


@pytest.fixture(scope="module")
def folder():
    """A folder for the module, with a name that is short enough for sockets in it."""
    with tempfile.TemporaryDirectory(prefix="hf", ignore_cleanup_errors=True) as name:
        yield pathlib.Path(name)


# Devices


@pytest.fixture(scope="module")
def linux_device(holdfast, folder):
    """The module's device, which is served until its tests are done."""
    with served(LinuxDevice(holdfast, folder)) as device:
        yield device


@pytest.fixture(scope="module")
def device_for_a_bridge(holdfast):
    with tempfile.TemporaryDirectory(prefix="hf") as name:
        device = BridgedDevice(holdfast, name)
        device.prepare()
        yield device


@pytest.fixture
def bridged_device(device_for_a_bridge):
    """Started for each test: a line is one peer, and would be slowed for the failed proofs of the tests before."""
    try:
        device_for_a_bridge.start()
        yield device_for_a_bridge
    finally:
        device_for_a_bridge.close()


@pytest.fixture(scope="session")
def board_images():
    """Builds the images for boards; where that cannot be, skips all that needs one."""
    try:
        images.prepare()
    except images.Unavailable as reason:
        pytest.skip(str(reason))
    images.build()


@pytest.fixture
def board_device(board_images, holdfast, twin, board_policy, same_answers):
    """A board that was just made. What it answers is compared with what the twin answers, at the end."""
    with tempfile.TemporaryDirectory(prefix="hf", ignore_cleanup_errors=True) as name:
        policy = pathlib.Path(name) / "policy.json"
        if board_policy is not None:
            policy.write_text(json.dumps(board_policy))
        device = BoardDevice(holdfast, name, *(() if board_policy is None else ("--policy", policy)))
        try:
            device.prepare()
            yield device
        finally:
            device.close()
        if twin:
            same_answers.append(device.transcript.compare(twin))


@pytest.fixture(scope="session")
def same_answers():
    """How many answers of each board so far were the twin's."""
    return []


@pytest.fixture
def board_policy():
    """The policy that a board's image is made with; None for the usual one."""
    return


@pytest.fixture
def device(request, device_kind):
    """The device that a test is about: on Linux, behind a bridge, or on a board that was just made."""
    return request.getfixturevalue(
        {"linux": "linux_device", "bridge": "bridged_device", "board": "board_device"}[device_kind]
    )


@pytest.fixture
def prover(device):
    """A prover that is connected to the device."""
    prover = device.connect()
    yield prover
    prover.connection.close()


@pytest.fixture(params=[COSE, JOSE], ids=["COSE", "JOSE"])
def encoding(request):
    return request.param


# The command line


@pytest.fixture(scope="session")
def both_sandboxes(holdfast):
    with sandboxes(holdfast) as both:
        yield both


@pytest.fixture(scope="session")
def sandbox(both_sandboxes):
    """Folders that the program made, and runs of the program on copies of them."""
    return both_sandboxes[0]


@pytest.fixture(scope="session")
def nobody(both_sandboxes):
    """The same for a user without rights."""
    return both_sandboxes[1]
