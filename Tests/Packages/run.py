#!/usr/bin/python3
"""Checks the Debian packages: with lintian, by their units' exposure, and in a clean Debian that systemd boots in a virtual machine.

usage: run.py --packages FOLDER

The packages are upgraded from the same ones with a lower version. The virtual machine has a fresh Debian 12 with the packages' dependencies, and no
network; story.sh, which runs in it, is what is checked. The console stays in .guest/packages.log.
"""

import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path += [str(HERE.parent / "Guest"), str(HERE.parent / "Interop")]

import guest
from holdfast_peer.checks import Checks, expect, expect_equal

# The largest exposure of a unit that `systemd-analyze security` may find, in tenths.
EXPOSURE = "20"
SUITE = "bookworm"
OLDER = "0+a"
# What story.sh needs in addition to the packages' dependencies.
MORE = ["systemd-sysv", "curl"]
STORY_SECONDS = 900
UNIT = """[Unit]
Description=The story of the packages
[Service]
ExecStart=/bin/bash /packages/story.sh
StandardOutput=journal+console
StandardError=journal+console
[Install]
WantedBy=multi-user.target
"""


def run(*command, **options):
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, **options)
    expect_equal(done.returncode, 0, f"exit status of {command[0]}: {(done.stdout + done.stderr)[-2000:]}")
    return done.stdout


def debs(folder):
    found = sorted(folder.glob("*.deb"))
    expect_equal(len(found), 5, f"packages in {folder}")
    return found


def field(deb, name):
    return run("dpkg-deb", "--field", deb, name).strip()


def lintian_is_silent(folder):
    """lintian has no errors and no warnings"""
    (changes,) = folder.glob("*.changes")
    said = run("lintian", "--fail-on", "error,warning", "--allow-root", changes)
    expect(not re.search(r"^[EW]:", said, re.MULTILINE), said)


def units_are_confined(folder):
    """systemd-analyze finds an exposure of at most 2.0 for each unit"""
    with tempfile.TemporaryDirectory() as root:
        for deb in debs(folder):
            run("dpkg-deb", "--extract", deb, root)
        units = sorted(pathlib.Path(root, "lib/systemd/system").glob("*.service"))
        expect_equal(len(units), 2, "units")
        for unit in units:
            run("systemd-analyze", "security", "--offline=true", f"--threshold={EXPOSURE}", unit)


def sources():
    """Debian's package sources, as this machine's apt has them."""
    targets = run(
        *("apt-get", "indextargets", "--format", "$(ORIGIN)|deb $(REPO_URI) $(CODENAME) $(COMPONENT)"),
        "Created-By: Packages",
    )
    lines = {line.removeprefix("Debian|") for line in targets.splitlines() if line.startswith("Debian|")}
    lines = sorted(line for line in lines if f" {SUITE}" in line)
    if not lines:
        raise guest.Unavailable(f"apt has no sources of Debian's {SUITE} here")
    return "".join(f"{line}\n" for line in lines)


def dependencies(packages):
    """The packages on which these depend, without themselves."""
    own = {field(deb, "Package") for deb in packages}
    depends = ", ".join(field(deb, name) for deb in packages for name in ("Depends", "Pre-Depends"))
    names = {re.split(r"[\s(|:]", item.strip())[0] for item in depends.split(",") if item.strip()}
    return sorted(names - own)


def repack(packages, folder, version=None):
    """The same packages without compression, which takes minutes in an emulator, and as another version."""
    folder.mkdir()
    for deb in debs(packages):
        root = folder / "root"
        run("dpkg-deb", "--raw-extract", deb, root)
        control = root / "DEBIAN/control"
        own = field(deb, "Version")
        control.write_text(control.read_text().replace(own, version or own))
        run("dpkg-deb", "--root-owner-group", "-Znone", "--build", root, folder / deb.name)
        shutil.rmtree(root)


def make_system(folder, packages):
    """A disk with a clean Debian, the packages, and the story as a unit of it."""
    root = folder / "system"
    listed = folder / "sources.list"
    listed.write_text(sources())
    wanted = ",".join([*MORE, *dependencies(debs(packages))])
    run("mmdebstrap", "--quiet", "--variant=minbase", f"--include={wanted}", SUITE, root, listed)
    place = root / "packages"
    place.mkdir()
    repack(packages, place / "older", OLDER)
    repack(packages, place / "newer")
    (place / "version").write_text(field(debs(packages)[0], "Version"))
    shutil.copy(HERE / "story.sh", place)
    run(
        *("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "7"),
        *("-subj", "/CN=holdfast-service", "-addext", "subjectAltName=IP:127.0.0.1"),
        *("-keyout", place / "key.pem", "-out", place / "certificate.pem"),
    )
    system = root / "etc/systemd/system"
    (system / "story.service").write_text(UNIT)
    wants = system / "multi-user.target.wants"
    wants.mkdir(exist_ok=True)
    (wants / "story.service").symlink_to("../story.service")
    # Nobody logs in.
    (system / "getty.target").symlink_to("/dev/null")
    (root / "etc/fstab").write_text("")
    return guest.make_disk(folder / "system.disk", 1536, "-d", root)


def tell(folder, packages, checks):
    """Boots the system and counts the checks of the story."""
    image = guest.Image(folder, guest.DISK_MODULES, [])
    console = guest.FOLDER.parent / "packages.log"
    disk = make_system(folder, packages)
    with guest.Guest(image, console, "system", disks=[disk], seconds=STORY_SECONDS) as booted:
        for verdict, sentence in booted.reports():
            checks.run(sentence, lambda verdict=verdict, sentence=sentence: expect(verdict == "passed", sentence))
        checks.run("the story came to its end", lambda: expect_equal(booted.ended, 0, f"exit status, see {console}"))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--packages", required=True, type=pathlib.Path)
    options = parser.parse_args()
    checks = Checks()
    for check in (lintian_is_silent, units_are_confined):
        checks.run(check.__doc__, check, options.packages)
    try:
        if os.geteuid() != 0:
            raise guest.Unavailable("a system can be made by root only")
        guest.prepare()
        with tempfile.TemporaryDirectory(prefix="hf") as folder:
            tell(pathlib.Path(folder), options.packages, checks)
    except guest.Unavailable as reason:
        checks.skip(1, f"no clean Debian: {reason}")
    return checks.finish()


if __name__ == "__main__":
    sys.exit(main())
