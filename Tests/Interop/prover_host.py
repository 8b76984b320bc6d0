#!/usr/bin/env python3
"""The host of a prover: what keeps others from its secrets, and what `explain` says of it.

usage: prover_host.py --holdfast PATH [--only TEXT]

One line for each check that failed, then the totals. Exit status 1 when a check failed.
"""

import argparse
import sys

import explain_checks
import hardening_checks
from bad_world import worlds
from holdfast_peer.checks import Checks


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--holdfast", required=True, help="the command line under test")
    parser.add_argument("--only", default="", help="run only the checks whose name has this text")
    options = parser.parse_args()
    checks, skipped = Checks(), []
    with worlds(options.holdfast) as (world, nobody):
        for each in {world, nobody}:
            checks.run("a world is made", each.build)
        if not checks.failed:
            for suite in (hardening_checks.checks(world, nobody, skipped), explain_checks.checks(world, skipped)):
                for name, body, arguments in suite:
                    if options.only in name:
                        checks.run(name, body, *arguments)
    for reason in skipped:
        print(f"skipped: {reason}")
    return checks.finish()


if __name__ == "__main__":
    sys.exit(main())
