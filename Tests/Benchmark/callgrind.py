"""Instructions of one repetition of a work, by function, as valgrind's callgrind counts them.

The counts repeat from run to run and from machine to machine: libcrypto and the C library choose their code by the processor, and
are told to use the same everywhere.
"""

import dataclasses
import os
import pathlib
import re
import shutil
import subprocess

# SSE2 to SSSE3, which every processor has for which Debian is made; no AES, no SHA, no AVX. Source: OPENSSL_ia32cap(3).
PROCESSOR = {
    "OPENSSL_ia32cap": "0x0000020107800000:0x0",
    "GLIBC_TUNABLES": "glibc.cpu.hwcaps=-AVX,-AVX2,-AVX512F,-ERMS,-FSRM,-SSE4_1,-SSE4_2,-BMI1,-BMI2,-LZCNT,-MOVBE,-POPCNT",
}
SECONDS = 120


@dataclasses.dataclass
class Counts:
    """Instructions of one repetition: of libcrypto, of everything else, and of the functions that take a thousandth of that."""

    libcrypto: int
    others: int
    functions: dict[str, int]


def count(program, work, folder, repetitions):
    """Runs the work under callgrind, which counts the repetitions after the first only."""
    out = pathlib.Path(folder) / f"callgrind.{work}"
    words = ["valgrind", "--tool=callgrind", "--collect-atstart=no", "--toggle-collect=*repeatMeasured*"]
    words += [f"--callgrind-out-file={out}", program, work, folder]
    done = subprocess.run(
        words, input=f"{repetitions}\n", env=os.environ | PROCESSOR, capture_output=True, text=True, timeout=SECONDS
    )
    if done.returncode != 0 or len(done.stdout.split()) != 2:
        raise RuntimeError(f"{work}: {done.stdout} {done.stderr[-500:]}")
    costs = exclusive(out.read_text())
    libcrypto = sum(cost for (object, _), cost in costs.items() if object.startswith("libcrypto"))
    others = sum(costs.values()) - libcrypto
    names = readable({name for _, name in costs})
    functions = {}
    for (object, name), cost in costs.items():
        if not object.startswith("libcrypto"):
            functions[names[name]] = functions.get(names[name], 0) + cost
    large = sorted((name for name in functions if functions[name] >= others / 1000), key=functions.get, reverse=True)
    return Counts(
        libcrypto // repetitions, others // repetitions, {name: functions[name] // repetitions for name in large}
    )


def exclusive(text):
    """The cost of each function itself, by object and name. Source: valgrind's manual, "Callgrind Format Specification"."""
    costs, names, object, function, is_call = {}, {}, "", "", False
    for line in text.splitlines():
        if found := re.match(r"(c?ob|c?fn)=\((\d+)\)(?: (.*))?", line):
            kind, number, name = found.groups()
            key = (kind[-2:], number)
            if name is not None:
                names[key] = name
            if kind == "ob":
                object = pathlib.Path(names[key]).name
            elif kind == "fn":
                function = names[key]
        elif line.startswith("calls="):
            is_call = True
        elif found := re.match(r"[+\-*\d]\S* (\d+)$", line):
            # The line after a call has what the callee took.
            if not is_call:
                costs[object, function] = costs.get((object, function), 0) + int(found.group(1))
            is_call = False
    return costs


def readable(names):
    """Swift's names as they are written in the source."""
    names, swift = sorted(names), shutil.which("swift")
    words = [swift, "demangle", "--simplified", "--compact"]
    done = subprocess.run(words, input="\n".join(names), capture_output=True, text=True, check=True, timeout=SECONDS)
    return dict(zip(names, done.stdout.splitlines(), strict=True))


def libcrypto_version():
    return subprocess.run(["openssl", "version"], capture_output=True, text=True, check=True).stdout.split()[1]
