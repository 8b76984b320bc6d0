"""The options of the tests in Python, and which tests they choose. pytest reads options here only, before it looks for tests."""

import pathlib
import signal

ROOT = pathlib.Path(__file__).resolve().parent
KINDS = ("linux", "bridge", "board")


def pytest_addoption(parser):
    group = parser.getgroup("holdfast")
    group.addoption(
        "--holdfast", type=pathlib.Path, default=ROOT / ".build/release/holdfast", help="the command line under test"
    )
    group.addoption(
        "--library",
        type=pathlib.Path,
        default=ROOT / ".build/library",
        help="the C library under test, with its header",
    )
    group.addoption("--twin", type=pathlib.Path, help="DeviceTwin, which answers on Linux what a board was asked")
    group.addoption("--schemathesis", type=pathlib.Path, help="the folder in which pip installed Schemathesis")
    group.addoption("--measure", action="store_true", help="print the figures of docs/performance.md as well")
    group.addoption("--keep", action="store_true", help="write reached.json and instructions.json anew")
    group.addoption(
        "--benchmark",
        type=pathlib.Path,
        default=ROOT / ".build-tests/release/Benchmark",
        help="the works whose instructions are counted",
    )
    group.addoption(
        "--constant-time",
        type=pathlib.Path,
        default=ROOT / ".build-tests/release/ConstantTime",
        help="the works whose secrets are marked",
    )
    group.addoption(
        "--device", default="linux,bridge", help=f"the devices that each attack is run at: {', '.join(KINDS)}"
    )


def pytest_configure(config):
    # What tests have begun is ended as after Ctrl-C.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    config.addinivalue_line("markers", "only_on(*kinds, because): the devices at which a test can be run, and why")
    config.addinivalue_line("markers", "figure: measures for docs/performance.md, with --measure only")
    config.addinivalue_line("markers", "cose_only: a test for which one format of tokens is enough")


def pytest_generate_tests(metafunc):
    if "device_kind" in metafunc.fixturenames:
        metafunc.parametrize("device_kind", metafunc.config.getoption("device").split(","), scope="module")


def pytest_collection_modifyitems(config, items):
    """Leaves out the tests that cannot be run at their kind of device or at those that were asked for, and figures."""
    asked = config.getoption("device").split(",")
    kept, left = [], []
    for item in items:
        marker, case = item.get_closest_marker("only_on"), getattr(item, "callspec", None)
        if item.get_closest_marker("figure") and not config.getoption("measure"):
            left.append(item)
            continue
        kinds = [case.params["device_kind"]] if case and "device_kind" in case.params else asked
        (kept if marker is None or set(kinds) & set(marker.args) else left).append(item)
    if left:
        config.hook.pytest_deselected(items=left)
        items[:] = kept
