"""Instructions of one repetition of a work, by function, as valgrind's callgrind counts them.

The counts repeat from run to run and from machine to machine:

- libcrypto and the C library choose their code by the processor, and are told to use the same everywhere.
- Program and files are in the working directory, so that no path has another length elsewhere: that would be 58 instructions a byte.
- The environment is the same, and Swift's hashes have no random seed.
"""

import dataclasses
import os
import pathlib
import re
import shutil
import subprocess

# Code for SSE2 to SSSE3, which every processor has for which Debian is made; no AES, no SHA, no AVX. Source: OPENSSL_ia32cap(3).
ENVIRONMENT = {
    "PATH": os.environ["PATH"],
    "SWIFT_DETERMINISTIC_HASHING": "1",
    "OPENSSL_ia32cap": "0x0000020107800000:0x0",
    "GLIBC_TUNABLES": "glibc.cpu.hwcaps=-AVX,-AVX2,-AVX512F,-ERMS,-FSRM,-SSE4_1,-SSE4_2,-BMI1,-BMI2,-LZCNT,-MOVBE,-POPCNT",
}
SECONDS = 600
# The object of code that belongs to no function: a library's jumps to functions that may be in another one.
JUMPS = "???"


@dataclasses.dataclass
class Counts:
    """Instructions of one repetition: of libcrypto, of everything else, and of the functions that take a thousandth of that.

    Most functions of libcrypto have no names. Counted are therefore the calls that reach it, with all that they take.
    """

    libcrypto: int
    others: int
    functions: dict[str, int]
    calls: dict[str, int]


def count(work, folder, repetitions):
    """Runs Benchmark, which is in the folder with its inputs, under callgrind, which counts the repetitions after the first only."""
    out = f"callgrind.{work}"
    words = ["valgrind", "--tool=callgrind", "--vgdb=no", "--collect-atstart=no", "--toggle-collect=*repeatMeasured*"]
    words += [f"--callgrind-out-file={out}", "./Benchmark", work, "."]
    done = subprocess.run(
        words,
        input=f"{repetitions}\n",
        cwd=folder,
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        timeout=SECONDS,
    )
    if done.returncode != 0 or len(done.stdout.split()) != 2:
        raise RuntimeError(f"{work}: {done.stdout} {done.stderr[-500:]}")
    return counts(Profile((pathlib.Path(folder) / out).read_text()), repetitions)


def counts(profile, repetitions):
    """The counts of one of the repetitions in a profile."""
    libcrypto = sum(cost for (object, _), cost in profile.costs.items() if is_libcrypto(object))
    others = sum(profile.costs.values()) - libcrypto
    names = readable({name for _, name in profile.costs} | {name for call in profile.calls for _, name in call})
    functions, calls = {}, {}
    for (object, name), cost in profile.costs.items():
        if not is_libcrypto(object):
            add(functions, "jumps to other libraries" if object == JUMPS else names[name], cost)
    for (caller, callee), cost in profile.calls.items():
        if is_libcrypto(callee[0]) and not is_libcrypto(caller[0]) and caller[0] != JUMPS:
            add(calls, f"{names[callee[1]]}, called by {names[caller[1]]}", cost)

    def large(costs, least):
        most_first = sorted((name for name in costs if costs[name] >= least), key=lambda name: (-costs[name], name))
        return {name: costs[name] // repetitions for name in most_first}

    return Counts(
        libcrypto // repetitions,
        others // repetitions,
        large(functions, others / 1000),
        large(calls, libcrypto / 1000),
    )


def is_libcrypto(object):
    return object.startswith("libcrypto")


class Profile:
    """The cost of each function itself, by object and name, and that of all calls from one function to another.

    Source: valgrind's manual, "Callgrind Format Specification".
    """

    def __init__(self, text):
        self.costs, self.calls, self.names = {}, {}, {}
        object = function = callee_object = callee = ""
        is_call = False
        for line in text.splitlines():
            if found := re.match(r"(c?ob|c?fn)=\((\d+)\)(?: (.*))?", line):
                kind, name = found.group(1), self.name(*found.groups())
                if kind == "ob":
                    object = callee_object = pathlib.Path(name).name
                elif kind == "fn":
                    function = name
                elif kind == "cob":
                    callee_object = pathlib.Path(name).name
                else:
                    callee = name
            elif line.startswith("calls="):
                is_call = True
            elif found := re.match(r"[+\-*\d]\S* (\d+)$", line):
                # The line after a call has what the callee took.
                if is_call:
                    add(self.calls, ((object, function), (callee_object, callee)), int(found.group(1)))
                else:
                    add(self.costs, (object, function), int(found.group(1)))
                # Without another line, a callee is in the caller's object.
                callee_object, is_call = object, False

    def name(self, kind, number, name):
        """The name behind a number, which is spelt out where it comes first."""
        key = (kind[-2:], number)
        if name is not None:
            self.names[key] = name
        return self.names[key]


def add(costs, key, cost):
    costs[key] = costs.get(key, 0) + cost


def readable(names):
    """Swift's names as they are written in the source."""
    names, swift = sorted(names), shutil.which("swift")
    words = [swift, "demangle", "--simplified", "--compact"]
    done = subprocess.run(words, input="\n".join(names), capture_output=True, text=True, check=True, timeout=SECONDS)
    return dict(zip(names, done.stdout.splitlines(), strict=True))


def libcrypto_version():
    return subprocess.run(["openssl", "version"], capture_output=True, text=True, check=True).stdout.split()[1]
