"""Folders that the program made, and runs of the program on spoiled copies of them."""

import contextlib
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import tempfile
import threading

from bad_files import DOCUMENTED, MARKER, OK
from holdfast_peer import transport
from holdfast_peer.state import enrolment, make_old

# For a run: there are many side by side, and other work may keep the processors busy.
TIMEOUT = 120
CONTROL = re.compile(rb"[\x00-\x08\x0b-\x1f\x7f]|\xc2[\x80-\x9f]")
NOBODY = 65534


@contextlib.contextmanager
def sandboxes(holdfast):
    """A sandbox of this user's, and one of a user without rights (the same one, where this is not root)."""
    with tempfile.TemporaryDirectory(prefix="hf", ignore_cleanup_errors=True) as name:
        folder = pathlib.Path(name)
        folder.chmod(0o755)
        program = folder / "holdfast"
        shutil.copyfile(holdfast, program)
        program.chmod(0o755)
        sandbox = Sandbox(program, folder / "w")
        nobody = Sandbox(program, folder / "n", NOBODY) if os.geteuid() == 0 else sandbox
        try:
            for each in {sandbox, nobody}:
                each.build()
            yield sandbox, nobody
        finally:
            for each in {sandbox, nobody}:
                each.close()


class Sandbox:
    """The program, copied so that everybody can run it, and two devices, two services, and provers enrolled with them."""

    def __init__(self, program, folder, user=None):
        self.folder, self.user = pathlib.Path(folder), user
        self.folder.mkdir(mode=0o755)
        self.program = str(program)
        self.base = self.folder / "base"
        self.base.mkdir(mode=0o755)
        self.environment = {
            k: v
            for k, v in os.environ.items()
            if not k.startswith(("XDG_", "HOLDFAST_")) and k not in ("LD_PRELOAD", "LD_AUDIT")
        }
        self.environment.update(NO_COLOR="1", HOME=str(self.base), XDG_DATA_HOME=str(self.base / "data"))
        self.numbers = iter(range(1_000_000))
        self.lock, self.at_device = threading.Lock(), threading.Lock()
        self.socket = self.base / "socket"
        self.server = None
        self.own(self.folder)

    def own(self, path):
        """Gives `path` and all below it to the sandbox's user."""
        if self.user is None:
            return
        for found in [path, *path.rglob("*")] if path.is_dir() and not path.is_symlink() else [path]:
            os.lchown(found, self.user, self.user)

    def command(self, arguments):
        prefix = (
            [] if self.user is None else ["setpriv", f"--reuid={self.user}", f"--regid={self.user}", "--clear-groups"]
        )
        return [*prefix, self.program, *map(str, arguments)]

    def run(self, *arguments, stdin=b"", cwd=None, environment=(), close=(), **more):
        """The finished process. A hang fails the check."""

        def close_them():
            for number in close:
                os.close(number)

        # Copies of a prover share its token and its request numbers: at the device, they are one after the other.
        is_at_device = f"unix:{self.socket}" in map(str, arguments)
        try:
            with self.at_device if is_at_device else contextlib.nullcontext():
                return subprocess.run(
                    self.command(arguments),
                    input=stdin,
                    capture_output=True,
                    timeout=TIMEOUT,
                    check=False,
                    cwd=cwd or self.folder,
                    env={**self.environment, **dict(environment)},
                    preexec_fn=close_them if close else None,
                    **more,
                )
        except subprocess.TimeoutExpired as error:
            raise AssertionError(f"hung for {TIMEOUT} s: {' '.join(map(str, arguments[:2]))}") from error

    def start(self, *arguments, environment=(), **more):
        more = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "stdin": subprocess.DEVNULL, **more}
        return subprocess.Popen(
            self.command(arguments), cwd=self.folder, env={**self.environment, **dict(environment)}, **more
        )

    def succeed(self, *arguments, **more):
        done = self.run(*arguments, **more)
        assert done.returncode == 0, (
            f"{' '.join(map(str, arguments[:2]))} ended with {done.returncode}: {done.stderr[-300:]}"
        )
        return done.stdout

    def write(self, name, data):
        path = self.base / name
        path.write_bytes(data)
        path.chmod(0o600)
        self.own(path)

    def build(self):
        base = self.base
        for number, suffix in (("", "1"), ("2", "2")):
            device, service = base / f"D{number}", base / f"S{number}"
            self.succeed("device", "init", "--dir", device)
            self.succeed("service", "init", "--dir", service)
            self.write(f"d{number}.json", self.succeed("device", "show", "--dir", device, "--json"))
            self.succeed("service", "device", "add", "--dir", service, base / f"d{number}.json")
            shown = self.succeed("service", "show", "--dir", service, "--json")
            self.write(f"issuer{number}.jwk", json.dumps(json.loads(shown)["issuer"]).encode())
            data = {"XDG_DATA_HOME": str(base / f"data{number}")}
            for name, form in ((f"P{number}", "cose"), (f"PJ{number}", "jose")):
                self.succeed(
                    "enroll",
                    "--device",
                    base / f"d{number}.json",
                    "--service",
                    service,
                    "--state",
                    base / name,
                    "--format",
                    form,
                    environment=data,
                )
        self.succeed("device", "trust", "--dir", base / "D", base / "issuer.jwk")
        for number in ("", "2"):
            self.succeed(
                "service",
                "mac-key",
                "--dir",
                base / f"S{number}",
                "--device",
                base / f"d{number}.json",
                base / f"mac{number}.jwk",
            )
        self.succeed("measure", "--state", base / "begun2", "--out", base / "evidence2")
        self.succeed("measure", "--state", base / "begun", "--out", base / "evidence")
        spent = shutil.copytree(base / "S", base / "spent")
        self.own(spent)
        self.succeed(
            "attest",
            "--service",
            spent,
            "--device",
            base / "d.json",
            "--evidence",
            base / "evidence",
            "--out",
            base / "attestation",
        )
        vectors = pathlib.Path(__file__).resolve().parents[2] / "vectors" / "proof_test.json"
        self.write("vectors.json", vectors.read_bytes())
        self.own(shutil.copytree(base / "D", base / "served"))
        self.server = self.start(
            "device",
            "serve",
            "--dir",
            base / "served",
            "--listen",
            f"unix:{self.socket}",
            "--quiet",
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        transport.connect_when_ready(str(self.socket), 60).close()
        prove = ("prove", "--connect", f"unix:{self.socket}", "--command", "status", "--timeout", "60")
        self.succeed(*prove, "--state", base / "P")
        self.run(*prove, "--state", base / "P2")
        noted = enrolment(base / "P") / "remembered"
        assert noted.exists(), "the first proof left no note"
        shutil.copyfile(noted, enrolment(base / "P2") / "remembered")
        for name in ("P", "P2"):
            make_old(base / name, base / f"old{name}")
        self.own(base)

    def close(self):
        if self.server:
            self.server.terminate()
            self.server.wait(TIMEOUT)

    def case(self, *names):
        """A fresh folder with copies of these things of the base."""
        with self.lock:
            number = next(self.numbers)
        folder = self.folder / f"case-{number}"
        folder.mkdir(mode=0o700)
        for name in names:
            source = self.base / name
            if source.is_dir():
                shutil.copytree(source, folder / name, symlinks=True)
            else:
                shutil.copyfile(source, folder / name)
                (folder / name).chmod(0o600)
        self.own(folder)
        return folder

    def serve_briefly(self, *arguments, **more):
        """Runs a device; when it listens, it is ended in order. A finished process, as `run` gives it."""
        process = self.start(*arguments, **more)
        watchdog = threading.Timer(TIMEOUT, process.kill)
        watchdog.start()
        try:
            # The log is on standard output with --json, and standard error is then short.
            is_json = "--json" in arguments
            log, rest = (process.stdout, process.stderr) if is_json else (process.stderr, process.stdout)
            lines = []
            for line in log:
                lines.append(line)
                if b"listening" in line:
                    process.send_signal(signal.SIGTERM)
            others = rest.read()
            status = process.wait()
            out, err = (b"".join(lines), others) if is_json else (others, b"".join(lines))
        finally:
            watchdog.cancel()
            process.stdout.close()
            process.stderr.close()
        assert status != -signal.SIGKILL, f"hung for {TIMEOUT} s: device serve"
        return subprocess.CompletedProcess(process.args, status, out, err)


def judge(done, statuses, *, mentions=(), secrets=(), hint=False, is_json=False):
    """What holds for every run: status, texts, and no echo."""
    tail = done.stderr.decode(errors="replace")[-240:]
    assert done.returncode in DOCUMENTED, f"exit status {done.returncode}: {tail}"
    assert done.returncode in statuses, f"exit status {done.returncode}, not one of {sorted(statuses)}: {tail}"
    everything = done.stdout + done.stderr
    assert not CONTROL.search(everything), f"control characters in {everything[-200:]!r}"
    assert MARKER.encode() not in everything, f"contents are echoed: {tail}"
    for secret in secrets:
        assert secret not in everything, "a secret is echoed"
    try:
        done.stderr.decode()
    except UnicodeDecodeError as error:
        raise AssertionError(f"standard error is not UTF-8: {done.stderr[-200:]!r}") from error
    if is_json:
        judge_json(done)
    if done.returncode == OK:
        return
    said = [
        line for line in done.stderr.decode().splitlines() if line.startswith("holdfast: ") and " warning: " not in line
    ]
    assert said, f"no line begins with 'holdfast: ': {tail}"
    assert all(line.startswith(("holdfast: ", "hint: ", "usage: ")) for line in done.stderr.decode().splitlines()), (
        f"a line is neither 'holdfast:', 'hint:' nor 'usage:': {tail}"
    )
    for mention in mentions:
        assert mention in done.stderr.decode(), f"the error does not name {mention}: {tail}"
    assert not hint or "hint: " in done.stderr.decode(), f"there is no hint: {tail}"


def judge_json(done):
    text = done.stdout.decode()
    if not text:
        return
    # A log is an object on each line.
    if "serve" in map(str, done.args):
        for line in text.splitlines():
            assert isinstance(json.loads(line), dict), f"a line of the log is no JSON object: {line[:120]!r}"
        return
    try:
        value = json.loads(text)
    except json.JSONDecodeError as error:
        raise AssertionError(f"standard output is not one JSON object: {text[:120]!r}") from error
    assert isinstance(value, dict), "standard output is not an object"
    if "exit" in value:
        assert value["exit"] == done.returncode, f"the object says {value['exit']}, the status is {done.returncode}"


def names_in(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


def fill(words, places):
    """The words with every `{name}` replaced by its place."""
    for name, place in places.items():
        words = [word.replace(f"{{{name}}}", str(place)) for word in words]
    return words
