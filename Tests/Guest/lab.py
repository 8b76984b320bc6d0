"""What the stories of one run share: an image, a folder for disks, consoles, and the time at which everything is over."""

import hashlib
import json
import pathlib
import shutil
import subprocess
import time

import code_disk
import fsverity
import guest
from holdfast_peer.checks import expect, expect_equal
from holdfast_peer.command_line import CommandLine


def write_reports(log, seen):
    """Adds what a script has reported to its console."""
    with open(log, "a", encoding="utf-8") as file:
        file.write("".join(f"reported: {name} {value}\n" for name, values in seen.items() for value in values))


def introduce(holdfast, folder):
    """Makes a device `lock` and an issuer `service` in the folder, which know each other, with the description of each."""
    folder.mkdir()
    (folder / "home").mkdir()
    owner = CommandLine(holdfast, folder / "home")
    lock, service = folder / "lock", folder / "service"
    owner.succeed("device", "init", "--dir", lock)
    owner.succeed("service", "init", "--dir", service)
    for kind, made in (("device", lock), ("service", service)):
        made.with_suffix(".json").write_bytes(owner.succeed(kind, "show", "--dir", made, "--json"))
    owner.succeed("device", "trust", "--dir", lock, service.with_suffix(".json"))
    owner.succeed("service", "device", "add", "--dir", service, lock.with_suffix(".json"))
    approve_sealed(holdfast, service / "policy.json")
    shutil.rmtree(folder / "home")
    return folder


def approve_sealed(holdfast, policy):
    """A service approves the program that makes it. Approves the same file with fs-verity, too, as the guests have it."""
    text = json.loads(policy.read_text())
    (approved,) = text["images"].values()
    sealed = hashlib.sha256(b"sha256\0" + fsverity.digest(holdfast.read_bytes())).hexdigest()
    policy.write_text(json.dumps(text | {"images": text["images"] | {sealed: approved}}))


# Swift brings clang.
COMPILER = (shutil.which("cc") or "clang", "-std=gnu11", "-O1", "-Wall", "-Wextra", "-Werror")


class Lab:
    SOURCES = pathlib.Path(__file__).resolve().parent
    LOGS = "logs"
    DEADLINE_SECONDS = 1800

    def __init__(self, holdfast, folder):
        self.holdfast, self.folder = holdfast, folder
        self.end = time.monotonic() + self.DEADLINE_SECONDS
        self.logs = guest.FOLDER.parent / self.LOGS
        shutil.rmtree(self.logs, ignore_errors=True)
        self.logs.mkdir()
        # Guests compute slowly: what is not observed is made here.
        self.met = introduce(holdfast, folder / "met")
        self.image = self.make_image()

    def make_image(self):
        code = code_disk.make(self.folder, [self.holdfast])
        return guest.Image(self.folder, guest.DISK_MODULES, code=code, met=self.met)

    def compile(self, name, source, *options):
        """Compiles a program for the guest. Returns its path."""
        program = self.folder / name
        subprocess.run([*COMPILER, "-o", program, self.SOURCES / source, *options], check=True)
        return program

    def run(self, script, *arguments, image=None, disks=(), watch=None):
        """Runs a script in a guest, of the lab's image or another one, and returns its reports, name → values.

        `watch(guest, reports)` is called after each report, and may cut the power; without it the script has to end well.
        """
        log, seen = self.logs / f"{script}-{len(self.consoles(script)) + 1}.log", {}
        with guest.Guest(
            image or self.image, log, script, *arguments, disks=disks, seconds=self.end - time.monotonic()
        ) as booted:
            for name, value in booted.reports():
                seen.setdefault(name, []).append(value)
                if watch:
                    watch(booted, seen)
        write_reports(log, seen)
        expect("failed" not in seen, f"{script}: {seen.get('failed')}")
        if not watch:
            expect_equal(booted.ended, 0, f"exit status of {script}")
        return seen

    def consoles(self, name):
        return sorted(self.logs.glob(f"{name}*.log"))

    def show(self, name, lines=20):
        """Prints the ends of a story's consoles."""
        for log in self.consoles(name):
            text = log.read_text(encoding="utf-8", errors="replace").replace("\r", "").splitlines()
            print(f"--- {log}", *text[-lines:], sep="\n", flush=True)
