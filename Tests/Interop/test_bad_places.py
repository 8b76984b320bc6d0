"""A hostile place to run: folders, sockets, closed streams, signals, a full disk, a read-only one."""

import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import time

import pytest
from bad_files import DENIED, FAULT, MALFORMED, NO_PERMISSION, OK, UNAVAILABLE
from cases import Case, each_case, side_by_side, split
from holdfast_peer.state import enrolment
from sandbox import TIMEOUT, fill, judge, names_in

PROVE = ("prove", "--connect")


def show(folder):
    return ("device", "show", "--dir", folder)


# Folders.


def init_on(sandbox, verb, prepare, statuses):
    """`init` on a folder that `prepare` left: refused, and nothing in it changes."""
    case = sandbox.case()
    folder = case / "there"
    prepare(sandbox, folder)
    sandbox.own(case)
    prepare_mode(folder, prepare)
    before = names_in(case)
    done = sandbox.run(verb, "init", "--dir", folder, "--json")
    folder.exists() and not folder.is_symlink() and folder.is_dir() and folder.chmod(0o700)
    judge(done, statuses, mentions=["there"] if done.returncode else [], hint=done.returncode != 0, is_json=True)
    if done.returncode:
        left = [name for name in names_in(case) if name not in before]
        assert set(left) <= {"there/lock"}, f"left in the folder: {left}"


def prepare_mode(folder, prepare):
    if prepare is read_only:
        folder.chmod(0o500)
    if prepare is open_to_others:
        folder.chmod(0o755)


def device(sandbox, folder):
    shutil.copytree(sandbox.base / "D", folder)


def service(sandbox, folder):
    shutil.copytree(sandbox.base / "S", folder)


def other_files(_, folder):
    folder.mkdir(mode=0o700)
    (folder / "holiday.txt").write_text("photographs")


def empty(_, folder):
    folder.mkdir(mode=0o700)


def read_only(_, folder):
    folder.mkdir(mode=0o700)


def open_to_others(_, folder):
    folder.mkdir(mode=0o755)


def file(_, folder):
    folder.write_text("text")


def link_to_folder(_, folder):
    (folder.parent / "real").mkdir(mode=0o700)
    folder.symlink_to("real")


def missing_parent(sandbox, verb):
    case = sandbox.case()
    done = sandbox.run(verb, "init", "--dir", case / "no" / "there", "--json")
    judge(done, {MALFORMED}, mentions=["no"], hint=True, is_json=True)
    assert "no" not in names_in(case), "a parent folder was made"


def unwritable_parent(sandbox, verb):
    case = sandbox.case()
    case.chmod(0o500)
    judge(sandbox.run(verb, "init", "--dir", case / "there"), {NO_PERMISSION}, mentions=["there"], hint=True)
    case.chmod(0o700)


def folder_mode(sandbox, name, mode, words, statuses):
    case = sandbox.case("D", "S", "P")
    (case / name).chmod(mode)
    words = fill(words, {"base": sandbox.base, "socket": sandbox.socket})
    done = sandbox.run(*[str(case / word) if word in ("D", "S", "P") else word for word in words], "--json")
    (case / name).chmod(0o700)
    judge(
        done, statuses, mentions=[str(case / name)] if done.returncode else [], hint=done.returncode != 0, is_json=True
    )


def relative_and_spaces(sandbox):
    case = sandbox.case()
    (case / "a folder").mkdir()
    sandbox.own(case)
    run = lambda *words, **more: sandbox.succeed(*words, cwd=case, **more)
    run("device", "init", "--dir", "a folder/my device")
    run("service", "init", "--dir", "./a folder/my service/")
    (case / "a folder" / "d.json").write_bytes(run("device", "show", "--json", "--dir", "a folder/my device/"))
    issuer = run("service", "show", "--json", "--dir", "a folder/../a folder/my service")
    run("device", "trust", "--dir", "a folder/my device", "-", stdin=issuer)
    run("service", "device", "add", "--dir", "a folder/my service", "a folder/d.json")
    run("enroll", "--device", "a folder/d.json", "--service", "a folder/my service", "--state", "my state")
    run("explain", "--state", "my state")
    done = sandbox.serve_briefly(
        "device", "serve", "--dir", f"{case}/a folder/my device", "--listen", f"unix:{case}/a folder/my socket"
    )
    judge(done, {OK})


def hint_can_be_pasted(sandbox):
    """A command in a hint, with a path that has a space, works in a shell as it stands."""
    case = sandbox.case()
    done = sandbox.run("device", "show", "--dir", "a device", cwd=case)
    hint = next(line for line in done.stderr.decode().splitlines() if line.startswith("hint: ")).split("holdfast", 1)[1]
    pasted = subprocess.run(
        ["sh", "-c", f"'{sandbox.program}' {hint}"],
        cwd=case,
        env=sandbox.environment,
        capture_output=True,
        timeout=TIMEOUT,
        check=False,
    )
    assert (case / "a device" / "device.json").exists(), f"the hint makes no such device: {hint} {pasted.stderr}"


def weak_policy(sandbox, member, quiet):
    """What weakens a device is said at every start, whatever else is kept quiet."""
    case = sandbox.case("D")
    policy = case / "D" / "policy.json"
    written = policy.read_text()
    assert f'"{member}": false' in written, f"{member} is not false at first"
    policy.write_text(written.replace(f'"{member}": false', f'"{member}": true', 1))
    for _ in range(2):
        done = sandbox.serve_briefly("device", "serve", "--dir", case / "D", "--listen", f"unix:{case}/s", *quiet)
        judge(done, {OK})
        said = [line for line in done.stderr.decode().splitlines() if "WARNING" in line]
        word = "unsigned tokens" if member == "accept_unsigned" else "compatibility rounds"
        assert len(said) == 1 and word in said[0], f"warnings: {said}"


def before_trust(sandbox):
    case = sandbox.case()
    listen = f"unix:{case}/s"
    sandbox.succeed("device", "init", "--dir", case / "D")
    (case / "d.json").write_bytes(sandbox.succeed("device", "show", "--json", "--dir", case / "D"))
    sandbox.succeed("service", "device", "add", "--dir", sandbox.base / "S", case / "d.json")
    sandbox.succeed("enroll", "--device", case / "d.json", "--service", sandbox.base / "S", "--state", case / "P")
    with Served(sandbox, case / "D", listen):
        judge(
            sandbox.run(*PROVE, listen, "--state", case / "P", "--command", "status", "--timeout", "60", "--json"),
            {DENIED},
            mentions=["token"],
            hint=True,
            is_json=True,
        )


def vector_comment(sandbox):
    """A failing vector's comment is shown without its control characters."""
    case = sandbox.case("vectors.json")
    value = json.loads((case / "vectors.json").read_text())
    for group in value["testGroups"]:
        for test in group["tests"]:
            test["comment"] = "\x1b[31mred\x07\nholdfast: all passed"
            test["result"] = "invalid" if test["result"] == "valid" else "valid"
    (case / "vectors.json").write_text(json.dumps(value))
    for more in ([], ["--json"]):
        done = sandbox.run("vectors", "replay", case / "vectors.json", *more)
        judge(done, {MALFORMED}, is_json=bool(more))
        assert b"\nholdfast: all passed" not in done.stdout, "a comment breaks a line"


def standard_input(sandbox, text, statuses):
    """`text` is bytes, or the files whose bytes it is."""
    if not isinstance(text, bytes):
        text = b"".join((sandbox.base / name).read_bytes() for name in ([text] if isinstance(text, str) else text))
    case = sandbox.case("D")
    judge(sandbox.run("device", "trust", "--dir", case / "D", "-", "--json", stdin=text), statuses, is_json=True)


# Sockets.


class Served:
    """A device that serves for as long as this is open."""

    def __init__(self, sandbox, folder, listen):
        self.process = sandbox.start("device", "serve", "--dir", folder, "--listen", listen, stdout=subprocess.DEVNULL)
        for line in self.process.stderr:
            if b"listening at" in line:
                break

    def __enter__(self):
        return self.process

    def __exit__(self, *_):
        self.process.terminate()
        self.process.communicate(timeout=TIMEOUT)


def socket_path(sandbox, prepare, statuses, serving):
    case = sandbox.case("D")
    path = case / "s"
    held = prepare(sandbox, case, path)
    sandbox.own(case)
    before = names_in(case)
    endpoint = f"unix:{held if isinstance(held, pathlib.Path) else path}"
    try:
        if serving:
            done = sandbox.serve_briefly("device", "serve", "--dir", case / "D", "--listen", endpoint)
        else:
            done = sandbox.run(
                *PROVE, endpoint, "--state", sandbox.base / "P", "--command", "status", "--timeout", "2", "--json"
            )
    finally:
        case.chmod(0o700)
        if isinstance(held, (socket.socket, Served)):
            held.close() if isinstance(held, socket.socket) else held.__exit__()
    judge(
        done,
        statuses,
        mentions=[endpoint] if done.returncode and not isinstance(held, socket.socket) else [],
        is_json=not serving,
    )
    if done.returncode and not isinstance(held, Served):
        left = [name for name in names_in(case) if name not in before and name != "D/lock"]
        assert not left, f"left behind: {left}"
        assert set(before) <= set(names_in(case)), "something that was there is gone"


def other_socket(sandbox):
    """The hint at a socket of bytes is the transport that it needs."""
    case = sandbox.case()
    with stream_peer(sandbox, case, case / "s"):
        done = sandbox.run(*PROVE, f"unix:{case}/s", "--state", sandbox.base / "P", "--command", "status", "--json")
    judge(done, {UNAVAILABLE}, mentions=[f"unix-stream:{case}/s"], hint=True, is_json=True)


def nothing(_, __, path):
    return None


def no_folder(_, case, __):
    return case / "no" / "s"


def occupied(_, __, path):
    path.write_text("text")


def occupied_by_folder(_, __, path):
    path.mkdir()


def occupied_by_fifo(_, __, path):
    os.mkfifo(path)


def dangling(_, __, path):
    path.symlink_to("nowhere")


def stale(_, __, path):
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as left:
        left.bind(str(path))


def silent_peer(_, __, path):
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    listening.bind(str(path))
    path.chmod(0o777)
    listening.listen()
    return listening


def stream_peer(_, __, path):
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listening.bind(str(path))
    path.chmod(0o777)
    listening.listen()
    return listening


def live(sandbox, case, path):
    shutil.copytree(sandbox.base / "D", case / "live")
    sandbox.own(case)
    return Served(sandbox, case / "live", f"unix:{path}")


def in_use(sandbox, way="{served}"):
    """The folder of a device that runs is not served twice, by whatever path; changing who is trusted is allowed."""
    case = sandbox.case()
    (case / "above").symlink_to(sandbox.base)
    (case / "mounted").mkdir()
    path = way.format(
        served=sandbox.base / "served", case=case, relative=os.path.relpath(sandbox.base / "served", sandbox.folder)
    )
    listen = case / "twice"
    if "mounted" in way:
        subprocess.run(["mount", "--bind", sandbox.base / "served", path], check=True)
    try:
        judge(
            sandbox.serve_briefly("device", "serve", "--dir", path, "--listen", f"unix:{listen}"),
            {UNAVAILABLE},
            mentions=[path],
            hint=True,
        )
    finally:
        if "mounted" in way:
            subprocess.run(["umount", path], check=True)
    assert not listen.exists(), "a socket is left"


def not_writable(sandbox, serving):
    case = sandbox.case("D")
    (case / "closed").mkdir(mode=0o500)
    sandbox.own(case)
    endpoint = f"unix:{case}/closed/s"
    judge(
        sandbox.serve_briefly("device", "serve", "--dir", case / "D", "--listen", endpoint),
        {NO_PERMISSION},
        mentions=[endpoint],
        hint=True,
    )


# Streams.

RESULTS = {
    "device show": ["device", "show", "--dir", "{D}"],
    "device show --json": ["device", "show", "--dir", "{D}", "--json"],
    "device audit": ["device", "audit", "--dir", "{D}"],
    "device policy": ["device", "policy", "--dir", "{D}"],
    "service show": ["service", "show", "--dir", "{S}", "--json"],
    "explain": ["explain", "--state", "{base}/P"],
    "vectors replay": ["vectors", "replay", "{base}/vectors.json"],
}
ACTIONS = {
    "device init": ["device", "init", "--dir", "{case}/new"],
    "device trust": ["device", "trust", "--dir", "{D}", "{base}/issuer2.jwk"],
    "enroll": ["enroll", "--device", "{base}/d.json", "--service", "{S}", "--state", "{case}/new"],
    "prove": split("prove --connect unix:{socket} --state {base}/P --command status --timeout 60"),
    "service init": ["service", "init", "--dir", "{case}/new"],
}


def stream(sandbox, words, shell, statuses):
    """A verb whose standard streams are closed or full: no damage, no signal, an honest status."""
    case = sandbox.case("D", "S")
    places = {"base": sandbox.base, "socket": sandbox.socket, "case": case, "D": case / "D", "S": case / "S"}
    words = fill(words, places)
    script = f'"$@" {shell}; exit $?' if "|" not in shell else f'set -o pipefail; "$@" {shell}'
    done = subprocess.run(
        ["bash", "-c", script, "sh", *sandbox.command(words)],
        env=sandbox.environment,
        cwd=case,
        timeout=TIMEOUT,
        capture_output=True,
        check=False,
    )
    seen = done.returncode
    assert seen in statuses, f"exit status {seen}, not one of {sorted(statuses)}: {done.stderr[-200:]!r}"
    if seen and "2>&-" not in shell:
        assert b"holdfast: " in done.stderr, f"nothing is said: {done.stderr[-200:]!r}"
    # With a stream closed, a file that is opened could take its number, and be written into.
    for name in ("D", "S"):
        for path in sorted((case / name).iterdir()):
            head = path.read_bytes()
            assert (
                b"holdfast: " not in head
                and b"device id" not in head
                and b'"device_id"' not in head
                or path.name == "device.json"
            ), f"text was written into {path.name}"
    if "D" in words or str(case / "D") in words:
        judge(sandbox.run("device", "audit", "--dir", case / "D", "--verify"), {OK})


def limited(sandbox, words, limit, statuses):
    """Limits of the shell: no file descriptors, no file that may grow."""
    case = sandbox.case("D", "S")
    words = fill(words, {"base": sandbox.base, "case": case, "D": case / "D", "S": case / "S"})
    done = subprocess.run(
        ["bash", "-c", f'{limit}; exec "$@"', "sh", *sandbox.command(words)],
        env=sandbox.environment,
        cwd=case,
        timeout=TIMEOUT,
        capture_output=True,
        check=False,
    )
    judge(done, statuses)
    assert not [name for name in names_in(case) if ".tmp" in name], "half-written files"


def no_storage(sandbox, environment, statuses):
    """No place, or no good one, for the host's secret."""
    done = sandbox.run("explain", "--state", sandbox.base / "P", "--json", environment=environment)
    judge(done, statuses, mentions=["host's secret"], hint=True, is_json=True)


# Signals.


def interrupted_serve(sandbox, number):
    case = sandbox.case("D")
    process = sandbox.start("device", "serve", "--dir", case / "D", "--listen", f"unix:{case}/s")
    while b"listening at" not in process.stderr.readline():
        assert process.poll() is None, "it did not start"
    process.send_signal(number)
    process.communicate(timeout=TIMEOUT)
    assert process.returncode == OK, "exit status"
    assert not (case / "s").exists(), "the socket is left"
    judge(sandbox.run("device", "audit", "--dir", case / "D", "--verify"), {OK})


def children(marker):
    """The processes whose environment has the marker."""
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        try:
            if (
                entry.name.isdigit()
                and marker in (entry / "environ").read_bytes()
                and b"State:\tZ" not in (entry / "status").read_bytes()
            ):
                found.append(int(entry.name))
        except OSError:
            continue
    return found


def interrupted_playground(sandbox, words, number, stage):
    """Neither a folder nor a process is left when a signal comes once the folder has a file called `stage`."""
    # A folder of its own: in /tmp, others may be running one.
    place = sandbox.case()
    marker = f"BAD_INPUT={os.urandom(8).hex()}"
    process = sandbox.start(
        *words, environment={"TMPDIR": str(place), **dict([marker.split("=")])}, start_new_session=True
    )
    deadline = time.monotonic() + TIMEOUT
    while not list(place.glob(f"*/{stage}")):
        assert process.poll() is None, f"it ended before the signal: {process.returncode}"
        assert time.monotonic() < deadline, "it never came so far"
        time.sleep(0.002)
    process.send_signal(number)
    try:
        _, said = process.communicate(timeout=TIMEOUT)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        said = b"it did not end"
    time.sleep(0.05)
    processes = children(marker.encode())
    folders = list(place.iterdir())
    for left in processes:
        os.kill(left, signal.SIGKILL)
    assert not processes, f"{len(processes)} processes are left"
    assert not folders, f"these folders are left: {sorted(map(str, folders))}"
    assert process.returncode in {FAULT, UNAVAILABLE}, f"exit status {process.returncode}: {said[-200:]!r}"
    assert b"holdfast: " in said, "nothing is said"


# A full disk.


def full_disk(sandbox, disk, words, statuses, room):
    """The verb on a disk of `room` kB that has almost none left; nothing half-written stays."""
    case = sandbox.case("D", "S", "P")
    for name in ("D", "S", "P"):
        shutil.rmtree(disk / name, ignore_errors=True)
        shutil.copytree(case / name, disk / name)
    ballast = disk / "ballast"
    with open(ballast, "wb", buffering=0) as out:
        try:
            while True:
                out.write(bytes(4096))
        except OSError:
            pass
    os.truncate(ballast, max(0, ballast.stat().st_size - room * 1024))
    before = names_in(disk)
    words = fill(words, {"disk": disk, "base": sandbox.base, "socket": sandbox.socket, "S": case / "S", "case": case})
    try:
        serves = words[:2] == ["device", "serve"]
        done = (sandbox.serve_briefly if serves else sandbox.run)(*words)
        after = names_in(disk)
    finally:
        ballast.unlink()
    judge(
        done, statuses, mentions=["disk"] if done.returncode not in (OK, DENIED) else [], hint=done.returncode == FAULT
    )
    left = [name for name in after if name not in before and ".tmp" in name]
    assert not left, f"half-written files: {left}"
    return done


FULL = {
    "device init": (["device", "init", "--dir", "{disk}/new"], 0),
    "device init with little room": (["device", "init", "--dir", "{disk}/new"], 16),
    "service init": (["service", "init", "--dir", "{disk}/new"], 4),
    "device trust": (["device", "trust", "--dir", "{disk}/D", "{base}/issuer2.jwk"], 0),
    "device serve": (["device", "serve", "--dir", "{disk}/D", "--listen", "unix:{case}/s"], 0),
    "measure": (["measure", "--state", "{disk}/new", "--out", "{disk}/evidence"], 4),
    "enroll, state": (["enroll", "--device", "{base}/d.json", "--service", "{S}", "--state", "{disk}/new"], 4),
    "enroll, service": (["enroll", "--device", "{base}/d.json", "--service", "{disk}/S", "--state", "{case}/P2"], 0),
    "service approve": (
        ["service", "approve", "--dir", "{disk}/S", "--subject", "sh", "--version", "1.2.3", "/bin/sh"],
        0,
    ),
    "service device add": (["service", "device", "add", "--dir", "{disk}/S", "{base}/d2.json"], 0),
}


def read_only_disk(sandbox, disk, words):
    """The verb on a disk that is mounted read-only: it says so, and succeeds once the disk can be written."""
    case = sandbox.case("D", "S", "P")
    for name in ("D", "S", "P", "new", "evidence"):
        path = disk / name
        path.unlink() if path.is_file() else shutil.rmtree(path, ignore_errors=True)
    for name in ("D", "S", "P"):
        shutil.copytree(case / name, disk / name)
    before = names_in(disk)
    words = fill(words, {"disk": disk, "base": sandbox.base, "socket": sandbox.socket, "S": case / "S", "case": case})
    run = sandbox.serve_briefly if words[:2] == ["device", "serve"] else sandbox.run
    subprocess.run(["mount", "-o", "remount,ro", disk], check=True)
    try:
        done = run(*words)
        after = names_in(disk)
    finally:
        subprocess.run(["mount", "-o", "remount,rw", disk], check=True)
    judge(done, {FAULT}, mentions=["read-only"], hint=True)
    assert after == before
    judge(run(*words), {OK})


def again_with_room(sandbox, disk, kind, room):
    """What could not be made is made by the same command, once there is room."""
    folder = disk / "again"
    shutil.rmtree(folder, ignore_errors=True)
    full_disk(sandbox, disk, [kind, "init", "--dir", str(folder)], {FAULT}, room)
    judge(sandbox.run(kind, "init", "--dir", folder), {OK})
    judge(sandbox.run(kind, "show", "--dir", folder), {OK})
    shutil.rmtree(folder)


def accepted_on_full_disk(sandbox, disk, words):
    noted = enrolment(sandbox.base / "P") / "remembered"
    noted.rename(sandbox.base / "P-remembered")
    try:
        full_disk(sandbox, disk, words, {OK}, 0)
    finally:
        (sandbox.base / "P-remembered").rename(noted)


def others_folder(nobody, name, verb):
    case = nobody.case("D", "S", "P")
    for path in [case / name, *(case / name).rglob("*")]:
        os.chown(path, 0, 0)
    verb = fill(verb, {"socket": nobody.socket})
    done = nobody.run(*[str(case / word) if word in ("D", "S", "P") else word for word in verb])
    judge(done, {NO_PERMISSION}, mentions=[str(case / name)], hint=True)


def cases():
    both = (("device", device), ("service", service))
    for verb, made in both:
        yield Case(f"{verb} init: there is one already", init_on, "sandbox", verb, made, {MALFORMED})
        yield Case(f"{verb} init: a folder with other files", init_on, "sandbox", verb, other_files, {OK, MALFORMED})
        yield Case(f"{verb} init: an empty folder", init_on, "sandbox", verb, empty, {OK})
        yield Case(f"{verb} init: a folder that is not writable", init_on, "nobody", verb, read_only, {NO_PERMISSION})
        yield Case(
            f"{verb} init: a folder that others may enter", init_on, "sandbox", verb, open_to_others, {NO_PERMISSION}
        )
        yield Case(f"{verb} init: a file", init_on, "sandbox", verb, file, {MALFORMED})
        yield Case(f"{verb} init: a link", init_on, "sandbox", verb, link_to_folder, {MALFORMED})
        yield Case(f"{verb} init: no parent", missing_parent, "sandbox", verb)
        yield Case(f"{verb} init: a parent that is not writable", unwritable_parent, "nobody", verb)
    words = split("prove --connect unix:{socket} --command status --timeout 60 --state P")
    for name, verb in (
        ("D", ["device", "show", "--dir", "D"]),
        ("S", ["service", "show", "--dir", "S"]),
        ("P", words),
        ("P", ["explain", "--state", "P"]),
    ):
        yield Case(
            f"{' '.join(verb[:2])}: a folder of mode 000", folder_mode, "nobody", name, 0o000, verb, {NO_PERMISSION}
        )
        yield Case(
            f"{' '.join(verb[:2])}: a folder of mode 0755",
            folder_mode,
            "sandbox",
            name,
            0o755,
            verb,
            {OK, NO_PERMISSION},
        )
        if os.geteuid() == 0:
            yield Case(f"{' '.join(verb[:2])}: another user's folder", others_folder, "nobody", name, verb)
    yield Case("paths with spaces, and relative ones", relative_and_spaces, "sandbox")
    yield Case("a hint with a path that has a space", hint_can_be_pasted, "sandbox")
    yield Case("prove to a device that trusts nobody", before_trust, "sandbox")
    yield Case("vectors replay: a comment with escapes", vector_comment, "sandbox")
    for name, text, statuses in (
        ("a key", "issuer2.jwk", {OK}),
        ("nothing", b"", {MALFORMED}),
        ("zeros", bytes(10_000_000), {MALFORMED}),
        ("random", os.urandom(5000), {MALFORMED}),
        ("a private key", "S/attestation-encryption.jwk", {MALFORMED}),
        ("two keys", ["issuer2.jwk"] * 2, {MALFORMED}),
    ):
        yield Case(f"device trust from standard input: {name}", standard_input, "sandbox", text, statuses)
    for prepare in (
        nothing,
        no_folder,
        occupied,
        occupied_by_folder,
        occupied_by_fifo,
        dangling,
        stale,
        silent_peer,
        stream_peer,
    ):
        name = prepare.__name__.replace("_", " ")
        yield Case(
            f"prove: socket, {name}",
            socket_path,
            "sandbox",
            prepare,
            {UNAVAILABLE, MALFORMED} - ({MALFORMED} if prepare is nothing else set()),
            False,
        )
    yield Case("prove: the hint at a socket of bytes", other_socket, "sandbox")
    for prepare, statuses in (
        (nothing, {OK}),
        (no_folder, {UNAVAILABLE, MALFORMED}),
        (occupied, {MALFORMED, UNAVAILABLE}),
        (occupied_by_folder, {MALFORMED, UNAVAILABLE}),
        (occupied_by_fifo, {MALFORMED, UNAVAILABLE}),
        (dangling, {MALFORMED, UNAVAILABLE}),
        (stale, {OK}),
        (silent_peer, {UNAVAILABLE}),
        (live, {UNAVAILABLE}),
    ):
        yield Case(
            f"device serve: socket, {prepare.__name__.replace('_', ' ')}",
            socket_path,
            "sandbox",
            prepare,
            statuses,
            True,
        )
    yield Case("device serve: a folder in use", in_use, "sandbox")
    yield Case("device serve: a folder in use, relative", in_use, "sandbox", "{relative}")
    yield Case("device serve: a folder in use, behind a symbolic link", in_use, "sandbox", "{case}/above/served")
    for member in ("accept_unsigned", "compatibility"):
        for quiet in ((), ("--quiet",)):
            yield Case(f"device serve: {member} in the policy {' '.join(quiet)}", weak_policy, "sandbox", member, quiet)
    yield Case("device serve: a socket folder that is not writable", not_writable, "nobody", True)
    for name, words in {**RESULTS, **ACTIONS}.items():
        # A result that cannot be written is a failure, except that `prove` reports what the device did.
        lost = {OK, FAULT} if name == "prove" else {FAULT}
        yield Case(f"{name}: standard output closed", stream, "sandbox", words, ">&-", lost)
        yield Case(f"{name}: standard output full", stream, "sandbox", words, ">/dev/full", lost)
        yield Case(f"{name}: standard input closed", stream, "sandbox", words, "<&-", {OK})
        yield Case(f"{name}: standard error closed", stream, "sandbox", words, "2>&-", {OK})
        yield Case(f"{name}: all streams closed", stream, "sandbox", words, "<&- >&- 2>&-", lost)
        yield Case(f"{name}: a reader that is gone", stream, "sandbox", words, "| true", {OK, FAULT})
    for name, words in {
        **RESULTS,
        **{name: ACTIONS[name] for name in ("device init", "device trust", "enroll", "service init")},
    }.items():
        yield Case(
            f"{name}: 6 file descriptors",
            limited,
            "sandbox",
            words,
            "ulimit -n 6",
            {OK, MALFORMED, FAULT, NO_PERMISSION},
        )
        yield Case(
            f"{name}: no file may grow", limited, "sandbox", words, "ulimit -f 0", {OK, MALFORMED, FAULT, NO_PERMISSION}
        )
    for name, environment, statuses in (
        ("no place", {"HOME": "", "XDG_DATA_HOME": ""}, {MALFORMED}),
        ("a relative one", {"HOME": "x", "XDG_DATA_HOME": "y"}, {MALFORMED}),
        ("not a folder", {"XDG_DATA_HOME": "/dev/null"}, {MALFORMED, NO_PERMISSION}),
        ("open to others", {"XDG_DATA_HOME": "/tmp"}, {MALFORMED, NO_PERMISSION}),
        ("a name of 5000 bytes", {"XDG_DATA_HOME": "/" + "p" * 5000}, {MALFORMED, FAULT}),
    ):
        yield Case(f"explain: storage, {name}", no_storage, "sandbox", environment, statuses)
    for number in (signal.SIGINT, signal.SIGTERM):
        yield Case(f"device serve: {number.name}", interrupted_serve, "sandbox", number)


@pytest.fixture(scope="module")
def begun(request, sandbox, nobody):
    with side_by_side(request, lambda case: case.run({"sandbox": sandbox, "nobody": nobody})) as begun:
        yield begun


@each_case(cases())
def test_a_hostile_place_is_reported_and_nothing_is_left(case, begun):
    begun[case].result()


# Tests that must not run at the same time as others


@pytest.mark.parametrize("stage", ["data", "device.sock", "prover/devices/*/enrolment.json"])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=lambda number: number.name)
def test_an_interrupted_benchmark_leaves_neither_a_folder_nor_a_process(sandbox, stage, number):
    interrupted_playground(sandbox, ["bench", "latency", "--rounds", "100000"], number, stage)


@pytest.fixture(scope="module")
def disk(sandbox):
    """A small disk; skips where nothing can be mounted."""
    disk = sandbox.folder / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=560k,mode=700", "tmpfs", disk]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True, check=False).returncode != 0:
        pytest.skip("nothing can be mounted here")
    yield disk
    subprocess.run(["umount", disk], check=False)


@pytest.mark.parametrize("name", FULL)
def test_a_full_disk_is_reported_and_leaves_nothing_half_written(sandbox, disk, name):
    words, room = FULL[name]
    full_disk(sandbox, disk, words, {FAULT}, room)


@pytest.mark.parametrize("name", FULL)
def test_a_read_only_disk_is_named_and_nothing_changes(sandbox, disk, name):
    read_only_disk(sandbox, disk, FULL[name][0])


@pytest.mark.parametrize("kind, room", [("service", 0), ("service", 4), ("service", 24), ("device", 4), ("device", 24)])
def test_what_a_full_disk_stopped_is_made_once_there_is_room(sandbox, disk, kind, room):
    again_with_room(sandbox, disk, kind, room)


def test_a_folder_in_use_is_known_where_it_is_mounted_elsewhere(sandbox, disk):
    in_use(sandbox, "{case}/mounted")


PROVE_FROM_DISK = split("prove --connect unix:{socket} --state {disk}/P --command status --timeout 60 --json")


def test_an_accepted_proof_on_a_full_disk_is_a_success(sandbox, disk):
    full_disk(sandbox, disk, PROVE_FROM_DISK, {OK}, 0)


def test_an_accepted_proof_that_cannot_be_noted_is_a_success(sandbox, disk):
    accepted_on_full_disk(sandbox, disk, PROVE_FROM_DISK)
