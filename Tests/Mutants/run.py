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
import random
import subprocess
import sys

import places
import suites

ROOT = pathlib.Path(__file__).resolve().parents[2]
HERE = pathlib.Path(__file__).resolve().parent
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
# How often a module may fail to compile before all mutants on the lines of its errors are dropped, and before giving up.
(PATIENT_BUILDS, BUILDS) = (3, 25)


class Copy:
    """The copy of the sources, with the switches of the mutants that compile."""

    def __init__(self, folder, mutants):
        self.folder, self.source, self.mutants = folder, folder / "source", mutants
        self.spans, self.refused = {}, set()
        self.known = folder / "refused.json"
        if self.known.exists():
            self.refused = set(json.loads(self.known.read_text()))

    def modules(self):
        return [
            module for module in MODULES if any(each.file.startswith(f"Sources/{module}/") for each in self.mutants)
        ]

    def compiled(self):
        return [each for each in self.mutants if each.key not in self.refused]

    def write(self):
        """Writes the files that differ, so that nothing else is compiled again, and removes those that are gone."""
        names = subprocess.run(
            ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
            cwd=ROOT,
            capture_output=True,
            check=True,
        ).stdout
        broken = {}
        for mutant in self.compiled():
            broken.setdefault(mutant.file, []).append(mutant)
        self.spans, written = {}, set()
        for name in names.decode().split("\0"):
            path = ROOT / name
            if not name or not path.is_file():
                continue
            contents = path.read_bytes()
            if name == "Package.swift":
                contents = self.package(contents.decode()).encode()
            elif name in broken:
                text, self.spans[name] = places.written(contents.decode("latin-1"), broken[name])
                contents = text.encode("latin-1")
            put(self.source / name, contents, path.stat().st_mode)
            written.add(self.source / name)
        for path in self.source.rglob("*"):
            if path.is_file() and path not in written:
                path.unlink()

    def package(self, text):
        """The package, reduced to the broken modules with their tests. Warnings about switches are no errors."""
        listed = json.loads(
            subprocess.run(["swift", "package", "dump-package"], cwd=ROOT, capture_output=True, check=True).stdout
        )
        targets = {each["name"]: each for each in listed["targets"]}
        kept, waiting = set(), ["CMutant"]
        for module in self.modules():
            waiting += [f"{module}Tests", *FURTHER.get(module, [])]
        while waiting:
            name = waiting.pop()
            if name in targets and name not in kept:
                waiting += [each["byName"][0] for each in targets[name]["dependencies"] if "byName" in each]
            kept.add(name)
        text = text.replace("  .treatAllWarnings(as: .error),\n", "")
        end = (HERE / "package.swift").read_text()
        return f"{text}\n" + end.replace("MUTATED", json.dumps(self.modules())).replace(
            "KEPT", json.dumps(sorted(kept))
        )

    def build(self, *words):
        command = [
            "swift",
            "build",
            "--configuration",
            "release",
            "-Xswiftc",
            "-Onone",
            "--scratch-path",
            self.folder / "build",
            *words,
        ]
        done = subprocess.run(command, cwd=self.source, capture_output=True, text=True, errors="replace", check=False)
        return done.returncode == 0, done.stdout + done.stderr

    def compile(self):
        """Builds the copy, and drops the mutants that do not compile."""
        self.write()
        for module in self.modules():
            for attempt in range(BUILDS):
                built, output = self.build("--target", module)
                if built:
                    break
                dropped = self.drop(output, attempt >= PATIENT_BUILDS)
                say(f"{module}: {dropped} mutants do not compile")
                if not dropped:
                    sys.exit(f"{output[-3000:]}\nmutants: {module} does not compile, and no mutant is the reason")
                self.write()
            else:
                sys.exit(f"mutants: {module} does not compile")
        built, output = self.build("--build-tests")
        if not built:
            sys.exit(f"{output[-3000:]}\nmutants: the tests do not compile")

    def drop(self, output, whole_line):
        """Drops the innermost mutant at each error, or all mutants of its line, and returns how many these are."""
        numbers = {each.number: each for each in self.mutants}
        before = len(self.refused)
        for file, line, column in suites.errors(output, self.source):
            spans = self.spans.get(file, {})
            if not spans:
                continue
            text = (self.source / file).read_text("latin-1")
            begin = 0
            for _ in range(line - 1):
                begin = text.index("\n", begin) + 1
            end, at = text.find("\n", begin), begin + column - 1
            inside = [number for number, (start, stop) in spans.items() if start <= at < stop]
            if inside and not whole_line:
                inside = [min(inside, key=lambda number: spans[number][1] - spans[number][0])]
            else:
                inside = [number for number, (start, stop) in spans.items() if start < end and stop > begin]
            if not inside:
                # A value or a return is missing at the end of a function: the reason is above.
                inside = [number for number, (_, stop) in spans.items() if stop <= at]
                inside = [max(inside, key=lambda number: spans[number])] if inside else []
                # Or the cases of a switch are no longer all there: the reason is below.
                below = [number for number, (start, _) in spans.items() if start > at] if whole_line else []
                inside += [min(below, key=lambda number: spans[number])] if below else []
            self.refused |= {numbers[number].key for number in inside}
        self.known.write_text(json.dumps(sorted(self.refused)))
        return len(self.refused) - before


def put(path, contents, mode):
    if path.exists() and path.read_bytes() == contents:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(contents)
    path.chmod(mode & 0o777)


def say(text):
    print(text, file=sys.stderr, flush=True)


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
    if count and count < len(found):
        picked = set(random.Random(seed).sample(range(len(found)), count))
        found = [each for index, each in enumerate(found) if index in picked]
    for number, mutant in enumerate(found):
        mutant.number = number
    return found


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
    options.folder.mkdir(parents=True, exist_ok=True)
    copy = Copy(options.folder, mutants)
    say(f"{len(mutants)} mutants; building")
    copy.compile()
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
