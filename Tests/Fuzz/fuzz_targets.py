"""The targets of Tests/Fuzz/Targets, and the program that fuzzes them."""

import dataclasses
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = ROOT / ".build-fuzz"
CORPORA = ROOT / "Tests/Fuzz/Corpora"
SOURCES = ROOT / "Sources"
# A crash would otherwise wait for a debugger, caches that live as long as the program count as leaks, and each allocation would keep the
# calls that led to it.
ENVIRONMENT = {
    **os.environ,
    "SWIFT_BACKTRACE": "enable=no",
    "ASAN_OPTIONS": "detect_leaks=0:malloc_context_size=1",
    "LLVM_PROFILE_FILE": "/dev/null",
}


# Compared by identity, so that a target can be the key of a dictionary.
@dataclasses.dataclass(eq=False)
class Target:
    name: str
    byte_limit: int
    sources: list

    def command(self, program, *options):
        environment = {**ENVIRONMENT, "HOLDFAST_FUZZ_TARGET": self.name}
        return {"args": [str(program), *map(str, options)], "env": environment, "cwd": ROOT}

    @property
    def corpus(self):
        return CORPORA / self.name

    @property
    def found(self):
        return BUILD / "corpus" / self.name

    @property
    def log(self):
        return BUILD / f"{self.name}.log"


def build(folder, *options):
    """Builds the fuzzer in a folder, and returns its path."""
    command = ["swift", "build", "--quiet", "--configuration", "release", "--product", "Fuzzer"]
    # Of several sanitizers, the compiler takes only the last option, without which nothing guides the fuzzer.
    command += ["--scratch-path", str(folder), "--sanitize=fuzzer", "--sanitize=address"]
    command += ["-Xswiftc", "-sanitize=fuzzer,address", *options]
    if subprocess.run(command, env={**os.environ, "HOLDFAST_FUZZ": "1"}, cwd=ROOT).returncode != 0:
        sys.exit("the fuzzer could not be built")
    return folder / "release/Fuzzer"


def targets(program, names):
    """The targets of these names, or all."""
    table = subprocess.run([program], env=ENVIRONMENT, capture_output=True, text=True, check=True).stdout
    rows = [line.split() for line in table.splitlines()]
    known = [Target(name, int(limit), [SOURCES / source for source in sources]) for name, limit, *sources in rows]
    for name in set(names) - {target.name for target in known}:
        sys.exit(f"there is no target {name}; the targets are: {' '.join(target.name for target in known)}")
    return [target for target in known if not names or target.name in names]
