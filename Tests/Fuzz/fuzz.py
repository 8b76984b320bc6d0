#!/usr/bin/env python3
"""Fuzzes the readers of bytes from outside with libFuzzer and AddressSanitizer.

usage: fuzz.py run [--seconds N] [--jobs N] [TARGET ...]
       fuzz.py keep [TARGET ...]
       fuzz.py verdicts [TARGET ...]
       fuzz.py coverage [--missing] [TARGET ...]

run       compares verdicts, fuzzes for the rest of that many seconds, at least one for each target, and stops at the first finding
keep      replaces the corpora by the fewest inputs that reach the same code as they, the inputs that were found, and the seeds
verdicts  keeps what becomes of the inputs in the corpora now, where it has changed and is right
coverage  replays the corpora, and prints how many lines of the core and of all readers they reach, and which they do not

Without TARGET, all targets of Tests/Fuzz/Targets. The inputs that reach new code stay in .build-fuzz/corpus.
"""

import argparse
import concurrent.futures
import hashlib
import itertools
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import threading
import time

import verdicts as verdicts_of_inputs
from dictionaries import dictionary_of
from fuzz_targets import BUILD, ROOT, SOURCES, build, targets

COVERAGE = ROOT / ".build-fuzz-coverage"
# By file, the declarations that read nothing from outside, each with a reason: they are not counted.
NO_READERS = ROOT / "Tests/Fuzz/no-readers.json"

# How many inputs of a corpus the reader should take, if there are as many among the seeds.
TAKEN = 8

# Fuzzing


class Run:
    """Targets that have the same time. The first finding ends the others."""

    def __init__(self, program, chosen, share, jobs):
        self.program, self.chosen, self.share, self.jobs = program, chosen, share, jobs
        self.running, self.lock, self.finding = {}, threading.Lock(), None

    def options(self, target):
        dictionary = BUILD / f"{target.name}.dict"
        dictionary.write_text(dictionary_of(target))
        target.found.mkdir(parents=True, exist_ok=True)
        target.corpus.mkdir(parents=True, exist_ok=True)
        return [
            f"-max_total_time={self.share}",
            f"-max_len={target.byte_limit}",
            "-timeout=10",
            "-rss_limit_mb=2048",
            f"-dict={dictionary}",
            f"-artifact_prefix={BUILD}/finding-{target.name}-",
            "-print_final_stats=1",
            target.found,
            target.corpus,
        ]

    def fuzz(self, target):
        """Fuzzes one target; returns the number of inputs."""
        with target.log.open("w") as log:
            with self.lock:
                if self.finding:
                    return 0
                command = target.command(self.program, *self.options(target))
                # Most counters of the program belong to others, and would take most of the time.
                if any(target.corpus.iterdir()):
                    command["env"]["HOLDFAST_FUZZ_CORPUS"] = str(target.corpus)
                process = subprocess.Popen(**command, stdout=log, stderr=log)
                self.running[target.name] = process
            status = process.wait()
        count = re.search(r"stat::number_of_executed_units: *(\d+)", target.log.read_text(errors="replace"))
        inputs = int(count[1]) if count else 0
        with self.lock:
            del self.running[target.name]
            if self.finding:
                return inputs
            if status == 0:
                print(f"{target.name:20}{inputs:>12} inputs", flush=True)
                return inputs
            self.end(target)
        return inputs

    def end(self, target):
        """Ends the others, because this target found something."""
        self.finding = target
        for other in self.running.values():
            other.terminate()

    def all(self):
        with concurrent.futures.ThreadPoolExecutor(self.jobs) as pool:
            return sum(pool.map(self.fuzz, self.chosen))


def compare(program, chosen, jobs):
    """Tells of which kept inputs, or variants of them, something else becomes than before, and returns whether there are any."""

    def names(target):
        try:
            return verdicts_of_inputs.changed(program, target)
        except verdicts_of_inputs.Trap as trap:
            return [str(trap)]

    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        found = {target.name: places for target, places in zip(chosen, pool.map(names, chosen)) if places}
    for name, places in found.items():
        print(f"\n{name}: FOUND\nSomething else than before becomes of kept inputs, or of variants of them:")
        print("\n".join(f"  {place}" for place in places[:10]))
    if found:
        print(f"If that is meant, and no rule is broken, `Tests/Fuzz/fuzz.py verdicts {' '.join(found)}` keeps it.")
    return bool(found)


def run(arguments):
    program = build(BUILD)
    chosen = targets(program, arguments.targets)
    for old in BUILD.glob("finding-*"):
        old.unlink()
    end = time.monotonic() + arguments.seconds
    jobs = min(arguments.jobs, len(chosen))
    if compare(program, chosen, jobs):
        return 1
    share = max(1, int(end - time.monotonic()) * jobs // len(chosen))
    print(f"{len(chosen)} targets, {jobs} at once, {share} s each", flush=True)
    whole = Run(program, chosen, share, jobs)
    total = whole.all()
    target = whole.finding
    if target is None:
        print(f"nothing found in {total} inputs")
        return 0
    kept = sorted(BUILD.glob(f"finding-{target.name}-*"))
    print(f"\n{target.name}: {'FOUND' if kept else 'the fuzzer did not run to its end'}")
    reasons = re.findall(
        r"^.*(?:Fatal error|ERROR: |SUMMARY: ).*$", target.log.read_text(errors="replace"), re.MULTILINE
    )
    print("\n".join(reasons))
    for path in kept:
        print(f"The input is kept in {path.relative_to(ROOT)}. This repeats it:")
        command = f"{program.relative_to(ROOT)} {path.relative_to(ROOT)}"
        print(f"  HOLDFAST_FUZZ_TARGET={target.name} SWIFT_BACKTRACE=enable=no {command}")
    print(f"The whole output is in {target.log.relative_to(ROOT)}.")
    return 1


# Corpora


def keep(arguments):
    program = build(BUILD)
    seeds = BUILD / "seeds"
    shutil.rmtree(seeds, ignore_errors=True)
    subprocess.run([sys.executable, ROOT / "Tests/Fuzz/seeds.py", seeds], check=True, stdout=subprocess.DEVNULL)
    for target in targets(program, arguments.targets):
        kept = BUILD / "kept" / target.name
        shutil.rmtree(kept, ignore_errors=True)
        kept.mkdir(parents=True)
        sources = [folder for folder in (target.corpus, target.found, seeds / target.name) if folder.is_dir()]
        # Of inputs that differ only in how often they pass a line, one is enough.
        options = [
            "-set_cover_merge=1",
            "-use_counters=0",
            f"-max_len={target.byte_limit}",
            "-timeout=10",
            kept,
            *sources,
        ]
        with target.log.open("w") as log:
            subprocess.run(**target.command(program, *options), stdout=log, stderr=log, check=True)
        for source in sorted((seeds / target.name).glob("limit-*")):
            shutil.copy(source, kept / source.name.removeprefix("limit-"))
        shutil.rmtree(target.corpus, ignore_errors=True)
        shutil.copytree(kept, target.corpus)
        keep_taken_seeds(program, target, seeds / target.name)
        verdicts_of_inputs.keep(program, target, renewing_limits=True)
        sizes = [file.stat().st_size for file in target.corpus.iterdir()]
        print(f"{target.name:20}{len(sizes):>6} inputs{sum(sizes):>9} bytes", flush=True)
    return 0


def keep_taken_seeds(program, target, seeds):
    """Adds seeds to a corpus of which the reader takes few inputs, because only these have variants at limits."""
    corpus = verdicts_of_inputs.plain(program, target, target.corpus)
    missing = TAKEN - sum(verdict.startswith("+") for verdict in corpus.values())
    known = set(corpus.values())
    found = verdicts_of_inputs.plain(program, target, seeds) if missing > 0 and seeds.is_dir() else {}
    for name, verdict in sorted(found.items()):
        if missing > 0 and verdict.startswith("+") and verdict not in known:
            contents = (seeds / name).read_bytes()
            (target.corpus / hashlib.sha1(contents).hexdigest()).write_bytes(contents)
            known.add(verdict)
            missing -= 1


# Verdicts


def verdicts(arguments):
    program = build(BUILD)
    chosen = targets(program, arguments.targets)

    def keep_or_tell(target):
        try:
            return len(verdicts_of_inputs.keep(program, target, renewing_limits=False)), None
        except verdicts_of_inputs.Trap as trap:
            return 0, str(trap)

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        results = list(zip(chosen, pool.map(keep_or_tell, chosen)))
    for target, (count, trap) in results:
        if count or trap:
            print(f"{target.name:20}{trap or f'{count:>6} changed'}")
    return int(any(trap for _, (_, trap) in results))


# Coverage


def coverage(arguments):
    program = build(COVERAGE, "-Xswiftc", "-profile-generate", "-Xswiftc", "-profile-coverage-mapping")
    chosen = targets(program, arguments.targets)
    profiles = COVERAGE / "profiles"
    shutil.rmtree(profiles, ignore_errors=True)
    profiles.mkdir()
    for target in chosen:
        command = target.command(program, "-runs=0", target.corpus)
        command["env"]["LLVM_PROFILE_FILE"] = str(profiles / f"{target.name}.profraw")
        subprocess.run(**command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    tools = pathlib.Path(shutil.which("swift")).resolve().parent
    merged = profiles / "all.profdata"
    subprocess.run([tools / "llvm-profdata", "merge", "-sparse", "-o", merged, *profiles.glob("*.profraw")], check=True)
    exported = subprocess.run(
        [tools / "llvm-cov", "export", "-format=lcov", f"-instr-profile={merged}", program],
        check=True,
        capture_output=True,
        text=True,
    )
    counts = line_counts(exported.stdout)
    left_out = json.loads(NO_READERS.read_text())
    readers = {source for target in chosen for source in target.sources}
    files = sorted(readers | set((SOURCES / "HoldfastCore").rglob("*.swift")))
    for name in set(left_out) - {str(file.relative_to(SOURCES)) for file in files}:
        sys.exit(f"{NO_READERS.name} names {name}, which is no file of a reader")
    total = [0, 0]
    for module, group in itertools.groupby(files, lambda file: file.relative_to(SOURCES).parts[0]):
        sums = [0, 0]
        for file in group:
            skipped = lines_of(file, left_out.get(str(file.relative_to(SOURCES)), {}))
            lines = {line: count for line, count in counts.get(str(file), {}).items() if line not in skipped}
            missing = [line for line, count in lines.items() if count == 0]
            sums = [sums[0] + len(lines) - len(missing), sums[1] + len(lines)]
            print(row(f"  {file.relative_to(SOURCES / module)}", len(lines) - len(missing), len(lines)))
            if arguments.missing and missing:
                print(f"    {' '.join(map(str, missing))}")
        print(row(module, *sums))
        total = [total[0] + sums[0], total[1] + sums[1]]
    print(row("core and readers", *total))
    return 0


def line_counts(trace):
    """How often each line of each file was passed, of a trace in lcov's format."""
    counts = {}
    for record in trace.splitlines():
        if record.startswith("SF:"):
            lines = counts.setdefault(record[3:], {})
        elif record.startswith("DA:"):
            line, count = record[3:].split(",")[:2]
            lines[int(line)] = int(count)
    return counts


def lines_of(file, declarations):
    """The lines of declarations and closures in a file, each of which is named by text in its first line."""
    lines = file.read_text().splitlines()
    found = set()
    for declaration in declarations:
        starts = [index for index, line in enumerate(lines) if declaration in line]
        if not starts:
            sys.exit(f"{NO_READERS.name}: {file.relative_to(SOURCES)} has no {declaration!r}")
        for start in starts:
            found.update(range(start + 1, end_of(lines, start) + 2))
    return found


def end_of(lines, start):
    """The index of the last line of a declaration or closure. The formatter puts its last brace below its first word."""
    depth = lambda line: len(line) - len(line.lstrip())
    if lines[start].endswith("}"):
        return start
    # The parameters of a closure have a line of their own if the call before them is long.
    is_inside = lines[start].lstrip()[0] == "("
    for index in range(start + 1, len(lines)):
        line = lines[index]
        if line.strip() and depth(line) < depth(lines[start]) + (not is_inside):
            if line.lstrip()[0] == "}":
                return index
            if line.lstrip()[0] not in ")]{":
                break
    return start


def row(name, covered, count):
    return f"{name:60}{covered:>7} of {count:>6}  {100 * covered / count if count else 100:5.1f} %"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    for command in (run, keep, verdicts, coverage):
        sub = commands.add_parser(command.__name__)
        sub.set_defaults(command=command)
        sub.add_argument("targets", nargs="*", metavar="TARGET")
        if command is run:
            sub.add_argument("--seconds", type=int, default=300)
            sub.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
        if command is coverage:
            sub.add_argument("--missing", action="store_true")
    arguments = parser.parse_args()
    try:
        return arguments.command(arguments)
    except verdicts_of_inputs.Trap as trap:
        sys.exit(str(trap))
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())
