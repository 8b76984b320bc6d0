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

from bad_world import TIMEOUT, judge
from hardening_checks import can_mount
from holdfast_peer.checks import expect, expect_equal
from holdfast_peer.state import enrolment

COMPONENTS = ["app.debug", "app.image", "app.injected", "app.text", "os.release", "device.cpu", "device.machine", "device.secret"]
SECRETIVE = re.compile(rb"[0-9a-fA-F]{16}|[A-Za-z0-9+_-]{30}")
DENIED = 1
MALFORMED = 2


def run(world, command, data, **more):
    environment = {**world.environment, "XDG_DATA_HOME": str(data), **more.pop("environment", {})}
    return subprocess.run(command, env=environment, capture_output=True, timeout=TIMEOUT, check=False, cwd=world.folder, **more)


def explain(world, *options, program=None, data=None, before=(), **more):
    command = world.command(["explain", "--state", world.base / "P", *options])
    command[command.index(world.program)] = str(program or world.program)
    done = run(world, [*map(str, before), *command], data or world.base / "data", **more)
    said = done.stdout
    for known in (str(world.base), "/tmp", enrolment(world.base / "P").name):
        said = said.replace(known.encode(), b"")
    expect(not SECRETIVE.search(said), f"this may be a digest: {SECRETIVE.search(said)}")
    return done


def situation(world, expected, findings=(), status=DENIED, **more):
    """Explains once as JSON and once in words; `expected` has causes and advice of each component that changed."""
    done = explain(world, "--json", **more)
    judge(done, {status}, is_json=True)
    value = json.loads(done.stdout)
    expect_equal([entry["id"] for entry in value["components"]], COMPONENTS, "the components")
    expect_equal([entry["scope"] for entry in value["components"]], ["app"] * 5 + ["device"] * 3, "their scopes")
    expect_equal(value["changed"], [id for id in COMPONENTS if id in expected], "what changed")
    for entry in value["components"]:
        if entry["id"] in expected:
            causes, advice = expected[entry["id"]]
            expect_equal((entry["state"], entry["causes"], entry["advice"]), ("changed", causes, advice), entry["id"])
        else:
            expect_equal(entry["state"], "unchanged", entry["id"])
            expect("causes" not in entry and "advice" not in entry, f"{entry['id']} has causes and did not change")
    expect_equal(value["findings"], list(findings), "what is found now")
    done = explain(world, **more)
    judge(done, {status}, hint=status == DENIED)
    said = done.stdout.decode().splitlines()
    states = [line for line in said if re.match(r"(app|os|device)\.\w+: (un)?changed$", line)]
    expect_equal(states, [f"{id}: {'changed' if id in expected else 'unchanged'}" for id in COMPONENTS], "the states")
    expect_equal(sum(line.startswith("now: ") for line in said), len(findings), "how many findings are told")
    expect_equal(sum(line.startswith("  possible cause: ") for line in said), sum(len(causes) for causes, _ in expected.values()), "how many causes are told")
    advices = [line for line in said if line.startswith("  ") and not line.startswith("  possible cause: ")]
    expect_equal(len(advices), len(expected), "how many pieces of advice are told")
    expect(all("stop using this host" in line for line in advices), f"advice without its other half: {advices}")
    expect_equal("nothing changed since the baseline" in said, status == 0, "whether nothing changed")


def updated_app(world):
    program = world.case() / "updated"
    shutil.copyfile(world.program, program)
    with open(program, "ab") as out:
        out.write(b"x")
    program.chmod(0o755)
    situation(world, {"app.image": (["app-update", "app-tampered"], "enrol-again")}, program=program)


def mounted(world, place, text, expected, **more):
    """One of the system's files is another, in a mount namespace."""
    fake = world.case() / "fake"
    fake.write_text(text)
    fake.chmod(0o644)
    before = ["unshare", "-m", "bash", "-c", f'mount --bind "$0" {place} && exec "$@"', fake]
    situation(world, expected, before=before, **more)


def updated_system(world):
    """The last byte of the executable's code, which nothing runs, is another, and so is the release."""
    program = world.case() / "updated"
    elf = bytearray(pathlib.Path(world.program).read_bytes())
    table, = struct.unpack_from("<Q", elf, 32)
    count, = struct.unpack_from("<H", elf, 56)
    headers = [struct.unpack_from("<IIQQQQ", elf, table + 56 * index) for index in range(count)]
    offset, size = next((header[2], header[5]) for header in headers if header[0] == 1 and header[1] & 1)
    elf[offset + size - 1] ^= 1
    program.write_bytes(elf)
    program.chmod(0o755)
    code = ["app-update", "system-update", "library-upgrade", "library-loaded", "memory-patched"]
    mounted(world, "/etc/os-release", "ID=other\n", {
        "app.image": (["app-update", "app-tampered"], "enrol-again"), "app.text": (code, "enrol-again"),
        "os.release": (["system-update"], "enrol-again")}, program=program)


def other_secret(world):
    data = world.case("data") / "data"
    secret = data / "holdfast" / "device.secret"
    secret.write_bytes(os.urandom(32))
    situation(world, {"device.secret": (["restored-backup", "storage-replaced", "cloned-disk"], "restore-secret")}, data=data)


def lost_secret(world):
    """What cannot be measured is said, with all the others, and is no success."""
    data = world.case("data") / "data"
    (data / "holdfast" / "device.secret").unlink()
    done = explain(world, "--json", data=data)
    judge(done, {MALFORMED}, hint=True, is_json=True)
    states = {entry["id"]: entry["state"] for entry in json.loads(done.stdout)["components"]}
    expect_equal(states, {**dict.fromkeys(COMPONENTS, "unchanged"), "device.secret": "unmeasured"}, "the states")
    said = explain(world, data=data).stdout.decode()
    expect("device.secret: could not be measured, " in said, f"it does not say what could not be measured: {said}")
    expect("nothing changed since the baseline" not in said, "it says that nothing changed")


def traced(world):
    """Under a tracer, the parent."""
    libc = ctypes.CDLL(None)
    command = world.command(["explain", "--state", world.base / "P", "--json"])
    out = world.case() / "out"
    with open(out, "wb") as output:
        pid = os.fork()
        if pid == 0:
            os.dup2(output.fileno(), 1)
            os.dup2(os.open("/dev/null", os.O_WRONLY), 2)
            libc.ptrace(0, 0, None, None)
            os.execvpe(command[0], command, {**world.environment, "XDG_DATA_HOME": str(world.base / "data")})
        while True:
            _, status = os.waitpid(pid, 0)
            if not os.WIFSTOPPED(status):
                break
            number = os.WSTOPSIG(status)
            libc.ptrace(7, pid, None, ctypes.c_void_p(0 if number == signal.SIGTRAP else number))
    expect_equal(os.waitstatus_to_exitcode(status), DENIED, "the exit status")
    value = json.loads(pathlib.Path(out).read_bytes())
    expect_equal((value["changed"], value["findings"]), (["app.debug"], ["tracer"]), "what changed, and what is found")
    entry = value["components"][0]
    expect_equal((entry["causes"], entry["advice"]), (["debugger"], "end-and-restart"), "causes and advice")


def preloaded(world):
    code = (["preload", "library-upgrade", "library-loaded", "memory-patched"], "end-and-restart")
    situation(world, {"app.injected": (["preload"], "end-and-restart"), "app.text": code}, ("ld-preload",),
              environment={"LD_PRELOAD": "libc_malloc_debug.so.0"})


def checks(world, skipped):
    yield "explain: nothing changed", situation, (world, {}, (), 0)
    yield "explain: LD_PRELOAD", preloaded, (world,)
    yield "explain: an updated app", updated_app, (world,)
    yield "explain: another device secret", other_secret, (world,)
    yield "explain: a lost device secret", lost_secret, (world,)
    yield "explain: a tracer", traced, (world,)
    if can_mount():
        yield "explain: another release", mounted, (world, "/etc/os-release", "ID=other\n", {"os.release": (["system-update"], "enrol-again")})
        yield "explain: another release, and other code", updated_system, (world,)
        yield "explain: another machine id", mounted, (world, "/etc/machine-id", "0" * 31 + "1\n", {
            "device.machine": (["other-machine", "cloned-disk", "reinstalled"], "check-machine")})
        cpuinfo = pathlib.Path("/proc/cpuinfo").read_text().replace("model", "modell")
        yield "explain: another processor", mounted, (world, "/proc/cpuinfo", cpuinfo, {
            "device.cpu": (["other-machine", "virtual-machine-moved", "cloned-disk"], "check-machine")})
    else:
        skipped.append("4 checks of explain: nothing can be mounted here")
