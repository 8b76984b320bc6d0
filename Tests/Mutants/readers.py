#!/usr/bin/python3
"""Breaks lines of the readers of outside bytes, and lists the breaks that no verdict of the fuzzer's corpora notices.

It measures what `make fuzz` finds before it fuzzes: the inputs in Tests/Fuzz/Corpora, and their variants, are judged by a build in which
each break has a switch, and by the same build without one. docs/testing.md says how to read the result.
"""

import argparse
import collections
import concurrent.futures
import json
import os
import pathlib
import sys
import tempfile
import time

import places
from copies import ROOT, Copy, say

sys.path.insert(0, str(ROOT / "Tests/Fuzz"))
import fuzz
import verdicts
from fuzz_targets import BUILD, build, targets

# The seconds that the further targets of one mutant may take, and those after which a target hangs, in addition to three times its own.
(BUDGET, HANGS) = (60, 10)


def breaks(chosen):
    """The mutants in the files of these targets, without the declarations that read nothing from outside."""
    left_out = json.loads(fuzz.NO_READERS.read_text())
    found = []
    for path in sorted({source for target in chosen for source in target.sources}):
        skipped = fuzz.lines_of(path, left_out.get(str(path.relative_to(ROOT / "Sources")), {}))
        mutants = places.find(str(path.relative_to(ROOT)), path.read_text("latin-1"))
        found += [mutant for mutant in mutants if mutant.line not in skipped]
    return found


class Corpora:
    """The targets, what becomes of their inputs without a mutant, the mutants that these reach, and the seconds that it takes."""

    def __init__(self, program, chosen):
        self.program = program
        self.kept = {target: verdicts.Kept(target) for target in chosen}
        self.before, self.reached, self.seconds = {}, {}, {}

    def judged(self, target, seconds, **environment):
        kept = self.kept[target]
        return verdicts.judged(self.program, target, kept.limits, kept.taken, seconds, **environment)

    def explore(self, target):
        with tempfile.NamedTemporaryFile("r") as log:
            started = time.monotonic()
            self.before[target] = self.judged(target, verdicts.SECONDS, HOLDFAST_MUTANT_LOG=log.name)
            self.seconds[target] = time.monotonic() - started
            self.reached[target] = {int(word) for word in log.read().split()}

    def notices(self, target, mutant):
        try:
            seconds = HANGS + 3 * self.seconds[target]
            return self.judged(target, seconds, HOLDFAST_MUTANT=str(mutant.number)) != self.before[target]
        except verdicts.Trap:
            return True

    def judge(self, mutant):
        """What became of a mutant, and the target that noticed it. First come those whose reader it is, and those that are fast."""
        reaching = [target for target, numbers in self.reached.items() if mutant.number in numbers]
        reaching.sort(key=lambda target: (ROOT / mutant.file not in target.sources, self.seconds[target]))
        left = BUDGET
        for target in reaching:
            if target != reaching[0] and self.seconds[target] > left:
                continue
            left -= self.seconds[target]
            if self.notices(target, mutant):
                return "noticed", target.name
        return ("not noticed" if reaching else "not reached"), ""


def run(corpora, mutants, jobs):
    """The results of the mutants; after Ctrl-C, of those that were tried."""
    results, started = [], time.monotonic()
    pool = concurrent.futures.ThreadPoolExecutor(jobs)
    try:
        list(pool.map(corpora.explore, corpora.kept))
        say(f"all targets in {sum(corpora.seconds.values()):.0f} s of one processor; running {len(mutants)} mutants")
        for mutant, (outcome, by) in zip(mutants, pool.map(corpora.judge, mutants)):
            result = {"file": mutant.file, "line": mutant.line, "change": mutant.change, "outcome": outcome, "by": by}
            results.append(result)
            if outcome != "noticed":
                print(f"{outcome}: {mutant.file}:{mutant.line}: {mutant.change}", flush=True)
            if len(results) % 50 == 0:
                say(f"{len(results)} of {len(mutants)}, {time.monotonic() - started:.0f} s")
    except KeyboardInterrupt:
        say(f"interrupted: {len(results)} of {len(mutants)} were tried")
    finally:
        pool.shutdown(cancel_futures=True)
    return results


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("targets", nargs="*", metavar="TARGET", help="the targets whose readers are broken (all)")
    parser.add_argument("--count", type=int, default=0, help="how many mutants are chosen at random (all)")
    parser.add_argument("--seed", type=int, default=1, help="what chooses them (1)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="how many targets run at a time")
    parser.add_argument(
        "--folder", type=pathlib.Path, default=ROOT / ".build-reader-mutants", help="where everything is built"
    )
    options = parser.parse_args()
    program = build(BUILD)
    mutants = places.sample(breaks(targets(program, options.targets)), options.count, options.seed)
    os.environ["HOLDFAST_FUZZ"] = "1"
    modules = sorted({mutant.file.split("/")[1] for mutant in mutants})
    needed = ["Fuzzer", "VersionPlugin"]
    copy = Copy(options.folder, mutants, modules, needed, "--sanitize=fuzzer", "-Xswiftc", "-sanitize=fuzzer")
    say(f"{len(mutants)} mutants; building")
    copy.compile("--product", "Fuzzer")
    numbers = {number for spans in copy.spans.values() for number in spans}
    corpora = Corpora(copy.folder / "build/release/Fuzzer", targets(program, []))
    results = run(corpora, [mutant for mutant in mutants if mutant.number in numbers], options.jobs)
    if results:
        (options.folder / "results.json").write_text(json.dumps(results, indent=1))
    counts = collections.Counter(each["outcome"] for each in results)
    print(f"{len(results)} mutants: " + ", ".join(f"{count} {outcome}" for outcome, count in counts.most_common()))


if __name__ == "__main__":
    main()
