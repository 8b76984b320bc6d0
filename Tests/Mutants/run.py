#!/usr/bin/python3
"""Breaks lines of the product one at a time, and lists the breaks that no unit test notices.

All breaks are compiled into one build of a copy of the sources, each behind a switch that an environment variable sets. Each suite runs
once to learn the lines that it reaches; then each mutant runs against the suites that reach it, until a test fails. A test that
crashes or hangs has noticed the mutant, too. docs/testing.md says how to read the result.
"""

import argparse
import json
import os
import pathlib
import sys

import places
import suites
from copies import HERE, ROOT, Copy, say

MODULES = [
    "HoldfastCore",
    "HoldfastFirmware",
    "HoldfastIssuer",
    "HoldfastAuthenticator",
    "HoldfastDevice",
    "HoldfastService",
]
# Further tests of a module, in addition to its own.
FURTHER = {
    "HoldfastCore": ["HoldfastVectorsTests", "HoldfastFormatsTests", "HoldfastDeviceTests", "HoldfastFirmwareTests"],
    "HoldfastFirmware": ["HoldfastDeviceTests"],
    "HoldfastIssuer": ["HoldfastVectorsTests", "HoldfastServiceTests"],
    "HoldfastAuthenticator": ["HoldfastVectorsTests"],
}
# What the run lists, and fails for.
LEFT = ("survived", "not reached")
# What an interrupted run has left, and `--again` tries too.
UNTRIED = "not tried"
OUTCOMES = ["killed", "survived", "explained", "not reached", "not compiled", UNTRIED]


def chosen(only, count, seed, results):
    """The mutants of these paths that no test noticed in earlier results, or `count` of them at random, numbered."""
    found = []
    for module in MODULES:
        for path in sorted((ROOT / "Sources" / module).rglob("*.swift")):
            name = str(path.relative_to(ROOT))
            if not only or any(name.startswith(prefix) for prefix in only):
                found += places.find(name, path.read_text("latin-1"))
    if results:
        left = {
            f"{each['file']}: {each['change']}"
            for each in json.loads(results.read_text())
            if each["outcome"] in (*LEFT, UNTRIED)
        }
        found = [each for each in found if each.key in left]
    return places.sample(found, count, seed)


def explained():
    """The survivors that are known, with the reason why no test can notice them."""
    return {
        f"{each['file']}: {each['change']}": each["reason"]
        for each in json.loads((HERE / "explained.json").read_text())
    }


def table(results):
    """The counts of each module."""
    lines = [f"{'module':24}{'mutants':>9}" + "".join(f"{outcome:>14}" for outcome in OUTCOMES)]
    modules = sorted({each["file"].split("/")[1] for each in results}, key=MODULES.index)
    for module in [*modules, "all"]:
        own = [each for each in results if module in ("all", each["file"].split("/")[1])]
        counts = "".join(f"{sum(each['outcome'] == outcome for each in own):14}" for outcome in OUTCOMES)
        lines.append(f"{module:24}{len(own):9}{counts}")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument(
        "--only",
        nargs="*",
        default=[],
        help="paths that are broken, from the root (Sources/HoldfastCore/Token)",
    )
    parser.add_argument("--count", type=int, default=0, help="how many mutants are chosen at random (all)")
    parser.add_argument("--seed", type=int, default=1, help="what chooses them (1)")
    parser.add_argument(
        "--jobs", type=int, default=os.cpu_count(), help="how many tests run at a time (one for each processor)"
    )
    parser.add_argument("--json", action="store_true", help="print the results as JSON")
    parser.add_argument(
        "--folder", type=pathlib.Path, default=ROOT / ".build-mutants", help="where everything is built"
    )
    parser.add_argument(
        "--again",
        type=pathlib.Path,
        help="run only the mutants of these results (JSON) that were not killed or not tried",
    )
    options = parser.parse_args()
    mutants = chosen(options.only, options.count, options.seed, options.again)
    if not mutants:
        sys.exit("mutants: these paths have nothing to break")
    modules = [module for module in MODULES if any(each.file.split("/")[1] == module for each in mutants)]
    needed = [name for module in modules for name in (f"{module}Tests", *FURTHER.get(module, []))]
    copy = Copy(options.folder, mutants, modules, needed, "-Xswiftc", "-Onone")
    say(f"{len(mutants)} mutants; building")
    copy.compile("--build-tests")
    reasons, results = explained(), []
    tested = suites.Suites(copy.source, copy.folder, say)
    numbers = {number for spans in copy.spans.values() for number in spans}
    outcomes = tested.judge([each for each in mutants if each.number in numbers], options.jobs)
    for mutant in mutants:
        outcome, by = outcomes.get(mutant.number, (UNTRIED if mutant.number in numbers else "not compiled", ""))
        if outcome in LEFT and mutant.key in reasons:
            outcome = "explained"
        results.append(
            {"file": mutant.file, "line": mutant.line, "change": mutant.change, "outcome": outcome, "by": by}
        )
    (options.folder / "results.json").write_text(json.dumps(results, indent=1))
    left = [each for each in results if each["outcome"] in LEFT]
    if options.json:
        print(json.dumps(results, indent=1))
    else:
        for each in left:
            print(f"{each['outcome']}: {each['file']}:{each['line']}: {each['change']}")
        print(table(results))
    sys.exit(1 if left or any(each["outcome"] == UNTRIED for each in results) else 0)


if __name__ == "__main__":
    main()
