#!/usr/bin/env python3
"""The command line with bad input: every file that a verb reads spoiled in every way, wrong arguments, and a hostile place to run.

usage: bad_input.py --holdfast PATH [--only TEXT]

One line for each check that failed, then the totals. Exit status 1 when a check failed.
"""

import argparse
import os
import pathlib
import shutil
import sys
from concurrent.futures import ThreadPoolExecutor

import bad_arguments
import bad_places
from bad_files import DAMAGES, NO_PERMISSION, TARGETS
from bad_world import fill, judge, names_in, worlds
from holdfast_peer.base64strict import encode, url_encode
from holdfast_peer.checks import Checks, expect

NAMES = ("D", "S", "P", "oldP", "PJ", "begun", "d.json", "issuer2.jwk", "mac.jwk", "evidence", "attestation", "vectors.json", "data")
LEFT_BY_SQLITE = ("-wal", "-shm", "-journal")


def spoil(world, target, damage, verb):
    """One check: the verb on a copy with one file spoiled."""
    used = {name for name in NAMES for part in verb if f"{{{name}}}" in part} | {target.folder}
    case = world.case(*used)
    path = found(case / target.folder, target.file)
    damage.apply(path, found(world.base / (target.other or target.folder), target.file))
    if not damage.name.startswith("mode"):
        world.own(case)
    places = {name: case / name for name in used}
    arguments = fill(verb, {"case": case, "socket": world.socket, **places})
    environment = {"XDG_DATA_HOME": str(case / "data")} if target.folder == "data" else {}
    before = names_in(case)
    serves = verb[:2] == ["device", "serve"]
    done = (world.serve_briefly if serves else world.run)(*arguments, environment=environment)
    original = found(world.base / target.folder, target.file)
    secret = spellings(original.read_bytes()) if target.holds_secret else ()
    name = pathlib.PurePath(target.file or target.folder).name
    judge(done, target.allowed(damage), mentions=[target.mention or name] if done.returncode not in (0, 1, 3) else [],
          secrets=secret, hint=done.returncode in (2, NO_PERMISSION) and target.file != "",
          is_json="--json" in arguments)
    if done.returncode not in (0, 1, 3):
        # What the verb makes anew of its own, whole or not at all.
        made = [n for n in names_in(case) if n not in before and not n.endswith(LEFT_BY_SQLITE)]
        expect(set(made) <= {"D/lock"}, f"these files are left: {made}")
    leftovers = [n for n in names_in(case) if ".tmp" in n or n.endswith("served.sock")]
    expect(not leftovers, f"half-written or forgotten files: {leftovers}")
    shutil.rmtree(case, ignore_errors=True)


def found(folder, file):
    """The path of a file of a folder; an asterisk in it stands for the one name that is there."""
    return next(folder.glob(file)) if "*" in file else folder / file if file else folder


def spellings(secret):
    """The ways in which the start of a secret could stand in a text."""
    start = secret[:12]
    return {start, start.hex().encode(), encode(start).encode(), url_encode(start).encode()}


def file_checks(world, nobody):
    for target in TARGETS:
        for damage in DAMAGES:
            for verb in target.verbs:
                words = " ".join(word for word in verb[:2] if not word.startswith("-"))
                where = nobody if damage.as_other_user else world
                yield f"{words}: {target.name} {damage.name}", spoil, (where, target, damage, verb)


class Run:
    """Checks side by side, each in a folder of its own."""

    def __init__(self, only):
        self.checks, self.only, self.skipped = Checks(), only, []

    def side_by_side(self, checks):
        with ThreadPoolExecutor(max_workers=4 * (os.cpu_count() or 2)) as pool:
            for name, body, arguments in checks:
                if not self.only or self.only in name:
                    pool.submit(self.checks.run, name, body, *arguments)

    def one_by_one(self, checks):
        for name, body, arguments in checks:
            if not self.only or self.only in name:
                self.checks.run(name, body, *arguments)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--holdfast", required=True, help="the command line under test")
    parser.add_argument("--only", help="run only the checks whose name has this text")
    options = parser.parse_args()
    run = Run(options.only)
    with worlds(options.holdfast) as (world, nobody):
        for each in {world, nobody}:
            run.checks.run("a world is made", each.build)
        if not run.checks.failed:
            run.side_by_side(file_checks(world, nobody))
            run.side_by_side(bad_arguments.checks(world))
            run.side_by_side(bad_places.checks(world, nobody))
            run.one_by_one(bad_places.checks_alone(world, run.skipped))
    for reason in run.skipped:
        print(f"skipped: {reason}")
    return run.checks.finish()


if __name__ == "__main__":
    sys.exit(main())
