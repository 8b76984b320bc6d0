"""What `explain` says when something is changed for real."""

import ctypes
import json
import os
import pathlib
import re
import shutil
import signal
import struct
import subprocess

from holdfast_peer.state import enrolment
from sandbox import TIMEOUT, judge
from test_hardening import mounts

COMPONENTS = [
    "app.debug",
    "app.image",
    "app.injected",
    "app.text",
    "os.release",
    "device.cpu",
    "device.machine",
    "device.secret",
]
SECRETIVE = re.compile(rb"[0-9a-fA-F]{16}|[A-Za-z0-9+_-]{30}")
DENIED = 1
MALFORMED = 2


def run(sandbox, command, data, **more):
    environment = {**sandbox.environment, "XDG_DATA_HOME": str(data), **more.pop("environment", {})}
    return subprocess.run(
        command, env=environment, capture_output=True, timeout=TIMEOUT, check=False, cwd=sandbox.folder, **more
    )


def explain(sandbox, *options, program=None, data=None, before=(), **more):
    command = sandbox.command(["explain", "--state", sandbox.base / "P", *options])
    command[command.index(sandbox.program)] = str(program or sandbox.program)
    done = run(sandbox, [*map(str, before), *command], data or sandbox.base / "data", **more)
    said = done.stdout
    for known in (str(sandbox.base), "/tmp", enrolment(sandbox.base / "P").name):
        said = said.replace(known.encode(), b"")
    assert not SECRETIVE.search(said), f"this may be a digest: {SECRETIVE.search(said)}"
    return done


def situation(sandbox, expected, findings=(), status=DENIED, **more):
    """Explains once as JSON and once in words; `expected` has causes and advice of each component that changed."""
    done = explain(sandbox, "--json", **more)
    judge(done, {status}, is_json=True)
    value = json.loads(done.stdout)
    assert [entry["id"] for entry in value["components"]] == COMPONENTS, "the components"
    assert [entry["scope"] for entry in value["components"]] == ["app"] * 5 + ["device"] * 3, "their scopes"
    assert value["changed"] == [id for id in COMPONENTS if id in expected], "what changed"
    for entry in value["components"]:
        if entry["id"] in expected:
            causes, advice = expected[entry["id"]]
            assert (entry["state"], entry["causes"], entry["advice"]) == ("changed", causes, advice), entry["id"]
        else:
            assert entry["state"] == "unchanged", entry["id"]
            assert "causes" not in entry and "advice" not in entry, f"{entry['id']} has causes and did not change"
    assert value["findings"] == list(findings), "what is found now"
    done = explain(sandbox, **more)
    judge(done, {status}, hint=status == DENIED)
    said = done.stdout.decode().splitlines()
    states = [line for line in said if re.match(r"(app|os|device)\.\w+: (un)?changed$", line)]
    assert states == [f"{id}: {'changed' if id in expected else 'unchanged'}" for id in COMPONENTS], "the states"
    assert sum(line.startswith("now: ") for line in said) == len(findings), "how many findings are told"
    assert sum(line.startswith("  possible cause: ") for line in said) == sum(
        len(causes) for causes, _ in expected.values()
    ), "how many causes are told"
    advices = [line for line in said if line.startswith("  ") and not line.startswith("  possible cause: ")]
    assert len(advices) == len(expected), "how many pieces of advice are told"
    assert all("stop using this host" in line for line in advices), f"advice without its other half: {advices}"
    assert ("nothing changed since the baseline" in said) == (status == 0), "whether nothing changed"


def test_an_updated_app_is_named(sandbox):
    program = sandbox.case() / "updated"
    shutil.copyfile(sandbox.program, program)
    with open(program, "ab") as out:
        out.write(b"x")
    program.chmod(0o755)
    situation(sandbox, {"app.image": (["app-update", "app-tampered"], "enrol-again")}, program=program)


def mounted(sandbox, place, text, expected, **more):
    """One of the system's files is another, in a mount namespace."""
    fake = sandbox.case() / "fake"
    fake.write_text(text)
    fake.chmod(0o644)
    before = ["unshare", "-m", "bash", "-c", f'mount --bind "$0" {place} && exec "$@"', fake]
    situation(sandbox, expected, before=before, **more)


@mounts
def test_another_release_and_other_code_are_named(sandbox):
    """The last byte of the executable's code, which nothing runs, is another, and so is the release."""
    program = sandbox.case() / "updated"
    elf = bytearray(pathlib.Path(sandbox.program).read_bytes())
    (table,) = struct.unpack_from("<Q", elf, 32)
    (count,) = struct.unpack_from("<H", elf, 56)
    headers = [struct.unpack_from("<IIQQQQ", elf, table + 56 * index) for index in range(count)]
    offset, size = next((header[2], header[5]) for header in headers if header[0] == 1 and header[1] & 1)
    elf[offset + size - 1] ^= 1
    program.write_bytes(elf)
    program.chmod(0o755)
    code = ["app-update", "system-update", "library-upgrade", "library-loaded", "memory-patched"]
    mounted(
        sandbox,
        "/etc/os-release",
        "ID=other\n",
        {
            "app.image": (["app-update", "app-tampered"], "enrol-again"),
            "app.text": (code, "enrol-again"),
            "os.release": (["system-update"], "enrol-again"),
        },
        program=program,
    )


def test_another_device_secret_is_named(sandbox):
    data = sandbox.case("data") / "data"
    secret = data / "holdfast" / "device.secret"
    secret.write_bytes(os.urandom(32))
    situation(
        sandbox,
        {"device.secret": (["restored-backup", "storage-replaced", "cloned-disk"], "restore-secret")},
        data=data,
    )


def test_a_lost_device_secret_is_said_with_all_the_others_and_is_no_success(sandbox):
    """What cannot be measured is said, with all the others, and is no success."""
    data = sandbox.case("data") / "data"
    (data / "holdfast" / "device.secret").unlink()
    done = explain(sandbox, "--json", data=data)
    judge(done, {MALFORMED}, hint=True, is_json=True)
    states = {entry["id"]: entry["state"] for entry in json.loads(done.stdout)["components"]}
    assert states == {**dict.fromkeys(COMPONENTS, "unchanged"), "device.secret": "unmeasured"}, "the states"
    said = explain(sandbox, data=data).stdout.decode()
    assert "device.secret: could not be measured, " in said, f"it does not say what could not be measured: {said}"
    assert "nothing changed since the baseline" not in said, "it says that nothing changed"


def test_a_tracer_is_found(sandbox):
    """Under a tracer, the parent."""
    libc = ctypes.CDLL(None)
    command = sandbox.command(["explain", "--state", sandbox.base / "P", "--json"])
    out = sandbox.case() / "out"
    with open(out, "wb") as output:
        pid = os.fork()
        if pid == 0:
            os.dup2(output.fileno(), 1)
            os.dup2(os.open("/dev/null", os.O_WRONLY), 2)
            libc.ptrace(0, 0, None, None)
            os.execvpe(command[0], command, {**sandbox.environment, "XDG_DATA_HOME": str(sandbox.base / "data")})
        while True:
            _, status = os.waitpid(pid, 0)
            if not os.WIFSTOPPED(status):
                break
            number = os.WSTOPSIG(status)
            libc.ptrace(7, pid, None, ctypes.c_void_p(0 if number == signal.SIGTRAP else number))
    assert os.waitstatus_to_exitcode(status) == DENIED, "the exit status"
    value = json.loads(pathlib.Path(out).read_bytes())
    assert (value["changed"], value["findings"]) == (["app.debug"], ["tracer"]), "what changed, and what is found"
    entry = value["components"][0]
    assert (entry["causes"], entry["advice"]) == (["debugger"], "end-and-restart"), "causes and advice"


def test_ld_preload_is_found(sandbox):
    code = (["preload", "library-upgrade", "library-loaded", "memory-patched"], "end-and-restart")
    situation(
        sandbox,
        {"app.injected": (["preload"], "end-and-restart"), "app.text": code},
        ("ld-preload",),
        environment={"LD_PRELOAD": "libc_malloc_debug.so.0"},
    )


def test_nothing_changed(sandbox):
    situation(sandbox, {}, status=0)


@mounts
def test_another_release_is_named(sandbox):
    mounted(sandbox, "/etc/os-release", "ID=other\n", {"os.release": (["system-update"], "enrol-again")})


@mounts
def test_another_machine_id_is_named(sandbox):
    causes = ["other-machine", "cloned-disk", "reinstalled"]
    mounted(sandbox, "/etc/machine-id", "0" * 31 + "1\n", {"device.machine": (causes, "check-machine")})


@mounts
def test_another_processor_is_named(sandbox):
    cpuinfo = pathlib.Path("/proc/cpuinfo").read_text().replace("model", "modell")
    causes = ["other-machine", "virtual-machine-moved", "cloned-disk"]
    mounted(sandbox, "/proc/cpuinfo", cpuinfo, {"device.cpu": (causes, "check-machine")})
