"""Processes of an ordinary user that hold secrets, and another process of the same user that wants them."""

import json
import os
import pathlib
import resource
import signal
import socket
import subprocess
import sys
import time

import pytest
from sandbox import TIMEOUT

# What the other process runs: it tries each way to the memory of a process, and prints those that were open to it.
INTRUDER = """
import ctypes, errno, os, sys
libc = ctypes.CDLL(None, use_errno=True)
libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
pid = int(sys.argv[1])
for name in ("mem", "environ", "pagemap", "auxv"):
    try:
        os.close(os.open(f"/proc/{pid}/{name}", os.O_RDONLY))
        print(name)
    except PermissionError:
        pass
byte = ctypes.create_string_buffer(1)
class Span(ctypes.Structure):
    _fields_ = [("base", ctypes.c_void_p), ("length", ctypes.c_size_t)]
mine, theirs = Span(ctypes.addressof(byte), 1), Span(4096, 1)
# Nothing is mapped there, which only those learn who may read.
if libc.process_vm_readv(pid, ctypes.byref(mine), 1, ctypes.byref(theirs), 1, 0) == 1 or ctypes.get_errno() != errno.EPERM:
    print("process_vm_readv")
for name, request in (("PTRACE_SEIZE", 0x4206), ("PTRACE_ATTACH", 16)):
    if libc.ptrace(request, pid, None, None) == 0:
        print(name)
        os.kill(pid, 18)
        break
"""


def intrude(sandbox, pid):
    """The ways that are open to another process of the same user."""
    prefix = sandbox.command([])[:-1]
    done = subprocess.run(
        [*prefix, sys.executable, "-c", INTRUDER, str(pid)], capture_output=True, timeout=TIMEOUT, check=True
    )
    return done.stdout.decode().split()


class Waiting:
    """A prover that has measured, and waits for a device that says nothing."""

    def __init__(self, sandbox, environment=(), **more):
        self.case = sandbox.case("P")
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.listener.bind(str(self.case / "silent"))
        self.listener.listen(1)
        sandbox.own(self.case)
        self.process = sandbox.start(
            "prove",
            "--connect",
            f"unix:{self.case}/silent",
            "--state",
            self.case / "P",
            "--command",
            "status",
            "--timeout",
            "600",
            environment={"XDG_DATA_HOME": str(sandbox.base / "data"), **dict(environment)},
            **more,
        )

    def __enter__(self):
        self.listener.settimeout(TIMEOUT)
        self.connection, _ = self.listener.accept()
        return self.process.pid

    def __exit__(self, *_):
        self.process.kill()
        self.process.communicate()
        self.connection.close()
        self.listener.close()


# Starts a program whose wish not to be dumpable succeeds without effect, by a seccomp filter; with "always", its state is lied about too.
LIAR = """
import ctypes, os, struct, sys
libc = ctypes.CDLL(None, use_errno=True)
LOAD, EQUAL, RETURN = 0x20, 0x15, 0x06
prctl = {"x86_64": 157, "aarch64": 167}[os.uname().machine]
second = 3 if sys.argv[1] == "always" else 4
program = b"".join(struct.pack("HBBI", *step) for step in (
    (LOAD, 0, 0, 0), (EQUAL, 0, 4, prctl), (LOAD, 0, 0, 16), (EQUAL, 1, 0, 4), (EQUAL, 0, 1, second), (RETURN, 0, 0, 0x50000), (RETURN, 0, 0, 0x7fff0000)))
buffer = ctypes.create_string_buffer(program)
filter = ctypes.create_string_buffer(struct.pack("HxxxxxxP", len(program) // 8, ctypes.addressof(buffer)))
if libc.prctl(38, 1, 0, 0, 0) or libc.prctl(22, 2, filter, 0, 0):
    sys.exit(99)
os.execv(sys.argv[2], sys.argv[2:])
"""


def lied_to(sandbox, always, *arguments):
    command = sandbox.command(arguments)
    place = command.index(sandbox.program)
    started = [*command[:place], sys.executable, "-c", LIAR, "always" if always else "once", *command[place:]]
    return subprocess.run(
        started,
        env={**sandbox.environment, "XDG_DATA_HOME": str(sandbox.base / "data")},
        capture_output=True,
        timeout=TIMEOUT,
        check=False,
    )


def notices_lies(sandbox, always):
    """A parent that lies by a seccomp filter: denied, explained, and nothing is served."""
    done = lied_to(
        sandbox,
        always,
        "prove",
        "--connect",
        f"unix:{sandbox.socket}",
        "--state",
        str(sandbox.base / "P"),
        "--command",
        "unlock",
        "--timeout",
        "60",
    )
    assert done.returncode == 1, f"exit status of prove: {done.stderr.decode()}"
    assert b"integrityMismatch" in done.stdout + done.stderr, f"prove says {done.stdout + done.stderr}"
    done = lied_to(sandbox, always, "explain", "--state", str(sandbox.base / "P"), "--json")
    value = json.loads(done.stdout)
    assert (value["changed"], value["findings"]) == (["app.debug"], ["seccomp-filter", "dumpable"]), (
        "what explain finds"
    )
    assert value["components"][0]["causes"] == ["supervisor"], "the causes"
    done = lied_to(sandbox, always, "device", "show", "--dir", str(sandbox.base / "D"))
    assert done.returncode == 70, f"exit status of device show: {done.stderr.decode()}"
    proves(sandbox)


def unhardened_is_open(sandbox):
    """The intruder finds something where there is something to find."""
    prefix = sandbox.command([])[:-1]
    with subprocess.Popen([*prefix, "sleep", "600"]) as process:
        try:
            # Until then it is setpriv, or still this program.
            name, end = pathlib.Path(f"/proc/{process.pid}/comm"), time.monotonic() + TIMEOUT
            while name.read_text() != "sleep\n":
                assert time.monotonic() < end, "no program to intrude into"
                time.sleep(0.01)
            found = intrude(sandbox, process.pid)
        finally:
            process.kill()
    assert {"mem", "process_vm_readv", "PTRACE_SEIZE"} <= set(found), f"only {found} were open"


def proves(sandbox):
    sandbox.succeed(
        "prove",
        "--connect",
        f"unix:{sandbox.socket}",
        "--state",
        sandbox.base / "P",
        "--command",
        "unlock",
        "--timeout",
        "60",
        environment={"XDG_DATA_HOME": str(sandbox.base / "data")},
    )
    sandbox.succeed("explain", "--state", sandbox.base / "P", environment={"XDG_DATA_HOME": str(sandbox.base / "data")})


def allow_cores():
    resource.setrlimit(resource.RLIMIT_CORE, (resource.getrlimit(resource.RLIMIT_CORE)[1],) * 2)


def dumps_no_core(sandbox, number):
    """No core, and the limit that forbids one as well."""
    with Waiting(sandbox, preexec_fn=allow_cores) as pid:
        limits = pathlib.Path(f"/proc/{pid}/limits").read_text()
        line = next(line for line in limits.splitlines() if line.startswith("Max core file size"))
        assert line.split()[4:6] == ["0", "0"], "the limit of core files"
        os.kill(pid, number)
        _, status = os.waitpid(pid, 0)
    assert os.WTERMSIG(status) == number, "the signal that ended it"
    assert not os.WCOREDUMP(status), "it left a core"


def lends_nothing_to_backtraces(sandbox, number):
    """Swift's runtime can be told to start a program at a crash, and to lend it the memory."""
    case = sandbox.case()
    program = case / "backtrace"
    program.write_text(f"#!/bin/sh\ntouch {case}/started\n")
    program.chmod(0o755)
    sandbox.own(case)
    with Waiting(sandbox, environment={"SWIFT_BACKTRACE": f"enable=yes,swift-backtrace={program}"}) as pid:
        os.kill(pid, number)
        end = time.monotonic() + TIMEOUT
        while os.waitpid(pid, os.WNOHANG) == (0, 0):
            assert time.monotonic() < end, "it did not end"
            time.sleep(0.01)
    assert not (case / "started").exists(), "the program was started"


def locked_kib(pid):
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    return int(next(line for line in status.splitlines() if line.startswith("VmLck:")).split()[1])


def locks_memory(sandbox):
    with Waiting(sandbox) as pid:
        assert locked_kib(pid) > 0, "no memory is locked"
    assert locked_kib(sandbox.server.pid) > 0, "no memory of the device is locked"


def limit_locking():
    hard = resource.getrlimit(resource.RLIMIT_MEMLOCK)[1]
    limit = 1 << 30 if hard == resource.RLIM_INFINITY else hard
    resource.setrlimit(resource.RLIMIT_MEMLOCK, (limit, limit))


def lives_with_a_limit(sandbox):
    """Under a limit, even one that would do for now, nothing is locked, and nothing fails."""
    with Waiting(sandbox, preexec_fn=limit_locking) as pid:
        assert locked_kib(pid) == 0, "locked memory in kB"
    proves(sandbox)


SWAPS = "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n"
AREA = "/swapfile                               file\t\t2097148\t\t0\t\t-2\n"


def warns_of_swap(sandbox, swaps, limit, expected):
    """`device serve` where the kernel's list of swap areas is this one, mounted over it, under a limit or none."""
    case = sandbox.case("D")
    fake = case / "swaps"
    fake.write_text(swaps)
    serve = sandbox.command(["device", "serve", "--dir", case / "D", "--listen", f"unix:{case}/s"])
    script = 'mount --bind "$0" /proc/swaps && exec prlimit --memlock="$1" "${@:2}"'
    command = ["unshare", "-m", "bash", "-c", script, str(fake), limit, *serve]
    with subprocess.Popen(command, stderr=subprocess.PIPE, env=sandbox.environment) as process:
        said = []
        for line in process.stderr:
            said.append(line.decode())
            if "listening at" in said[-1]:
                process.send_signal(signal.SIGTERM)
        status = process.wait(TIMEOUT)
    assert status == 0, f"the exit status, after {said}"
    assert any("warning" in line and "swap" in line for line in said) == expected, (
        f"whether it warns of swap, in {said}"
    )
    assert any(line.startswith("hint: ") and "LimitMEMLOCK" in line for line in said) == expected, (
        "whether there is a hint"
    )


def leaves_core():
    """Whether a process that nothing protects leaves a core here."""
    pid = os.fork()
    if pid == 0:
        allow_cores()
        os.chdir("/tmp")
        os.abort()
    _, status = os.waitpid(pid, 0)
    return os.WCOREDUMP(status)


def can_mount():
    done = subprocess.run(["unshare", "-m", "true"], capture_output=True, check=False)
    return os.geteuid() == 0 and done.returncode == 0


def holds_capability(number):
    status = pathlib.Path("/proc/self/status").read_text()
    line = next(line for line in status.splitlines() if line.startswith("CapEff:"))
    return int(line.split()[1], 16) >> number & 1 == 1


IPC_LOCK = 14
mounts = pytest.mark.skipif(not can_mount(), reason="nothing can be mounted here")


# The tests: an ordinary user is `nobody`, and `sandbox` is the user who runs them.


def test_an_ordinary_users_proof_is_accepted(nobody):
    proves(nobody)


@pytest.fixture(scope="module")
def intruder(nobody):
    """Skips where a plain process is closed as well, such as under Yama: what is refused there would show nothing."""
    try:
        unhardened_is_open(nobody)
    except Exception as error:
        pytest.skip(f"a plain process is closed as well, {error}")


def test_a_device_is_closed_to_its_own_user(nobody, intruder):
    assert intrude(nobody, nobody.server.pid) == [], "what is open to another process of the same user"


def test_a_prover_is_closed_to_its_own_user(nobody, intruder):
    with Waiting(nobody) as pid:
        assert intrude(nobody, pid) == [], "what is open to another process of the same user"


@pytest.mark.parametrize("always", [False, True], ids=["and asked about", "also where it is kept up"])
def test_a_lie_about_being_dumpable_is_noticed(nobody, always):
    notices_lies(nobody, always)


signals = pytest.mark.parametrize(
    "number", [signal.SIGABRT, signal.SIGQUIT, signal.SIGSEGV], ids=lambda number: number.name
)


@signals
def test_no_signal_leaves_a_core(nobody, number):
    dumps_no_core(nobody, number)


@signals
def test_no_signal_lends_memory_to_a_backtrace(nobody, number):
    lends_nothing_to_backtraces(nobody, number)


def test_an_ordinary_user_lives_with_a_limit_on_locked_memory(nobody):
    lives_with_a_limit(nobody)


def test_memory_is_locked_where_that_is_allowed(sandbox, nobody):
    if sandbox is nobody or not holds_capability(IPC_LOCK):
        pytest.skip("this user may not lock memory")
    locks_memory(sandbox)


@mounts
def test_swap_and_a_limit_are_warned_of(nobody):
    warns_of_swap(nobody, SWAPS + AREA, "1048576", True)


@mounts
def test_without_swap_there_is_no_warning(nobody):
    warns_of_swap(nobody, SWAPS, "1048576", False)


@mounts
def test_with_swap_and_locked_memory_there_is_no_warning(sandbox):
    if not holds_capability(IPC_LOCK):
        pytest.skip("this user may not lock memory")
    warns_of_swap(sandbox, SWAPS + AREA, "1048576", False)
