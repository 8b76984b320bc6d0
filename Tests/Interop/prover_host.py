#!/usr/bin/env python3
"""The host of a prover: what keeps others from its secrets, and what `explain` says of it.

usage: prover_host.py --holdfast PATH [--only TEXT]

One line for each check that failed, then the totals. Exit status 1 when a check failed.
"""

import argparse
import os
import pathlib
import shutil
import sys
import tempfile

import explain_checks
import hardening_checks
from bad_world import NOBODY, World
from holdfast_peer.checks import Checks


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--holdfast", required=True, help="the command line under test")
    parser.add_argument("--only", default="", help="run only the checks whose name has this text")
    options = parser.parse_args()
    checks, skipped = Checks(), []
    with tempfile.TemporaryDirectory(prefix="hf", ignore_cleanup_errors=True) as name:
        folder = pathlib.Path(name)
        folder.chmod(0o755)
        program = folder / "holdfast"
        shutil.copyfile(options.holdfast, program)
        program.chmod(0o755)
        world = World(program, folder / "w")
        nobody = World(program, folder / "n", NOBODY) if os.geteuid() == 0 else world
        try:
            for each in {world, nobody}:
                checks.run("a world is made", each.build)
            if not checks.failed:
                for suite in (hardening_checks.checks(world, nobody, skipped), explain_checks.checks(world, skipped)):
                    for name, body, arguments in suite:
                        if options.only in name:
                            checks.run(name, body, *arguments)
        finally:
            for each in {world, nobody}:
                each.close()
    for reason in skipped:
        print(f"skipped: {reason}")
    return checks.finish()


if __name__ == "__main__":
    sys.exit(main())
