"""The C library under test: its files, programs that are built with it, and what its header declares."""

import contextlib
import os
import pathlib
import re
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
HEADER = ROOT / "Sources/CHoldfast/holdfast.h"
BASELINE = ROOT / "Tests/C/libholdfast.abi"
STRICT = ("-Wall", "-Wextra", "-Werror", "-pedantic", "-D_POSIX_C_SOURCE=200809L")


def run(*words, **options):
    """A finished process that had to succeed."""
    done = subprocess.run(list(map(str, words)), capture_output=True, text=True, timeout=300, **options)
    assert done.returncode == 0, f"{words[0]} ended with {done.returncode}: {done.stdout[-1500:]}{done.stderr[-1500:]}"
    return done.stdout


class Library:
    """What `make library` built: include, lib and share below `folder`."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder).absolute()
        self.file = self.folder / "lib/libholdfast.so.1"
        self.archive = self.folder / "lib/libholdfast.a"
        self.python = self.folder / "share/holdfast/python"
        config = {"PKG_CONFIG_PATH": str(self.folder / "lib/pkgconfig"), "PKG_CONFIG_SYSROOT_DIR": str(self.folder)}
        self.environment = os.environ | config | {"LD_LIBRARY_PATH": str(self.file.parent)}
        self.environment |= {"HOLDFAST_LIBRARY": str(self.file), "PYTHONPATH": str(self.python)}

    def compile(self, program, *sources, package="holdfast"):
        flags = run("pkg-config", "--cflags", "--libs", package, env=self.environment).split()
        run("gcc", "-std=c99", *STRICT, "-g", "-o", program, *sources, *flags)


def declarations(header):
    """The declarations of functions in a header, each in one line without its semicolon."""
    text = re.sub(r"/\*.*?\*/", "", header, flags=re.DOTALL)
    text = re.sub(r"^#.*$", "", text, flags=re.MULTILINE)
    text = re.sub(r"typedef (struct|enum) \w+ \{.*?\} \w+;", "", text, flags=re.DOTALL)
    found = re.findall(r"^((?:const )?\w+ \*?(hf_\w+)\([^;]*\));", text, re.MULTILINE)
    return {name: " ".join(declaration.split()) for declaration, name in found}


def stand_in(header):
    """C source of a library with the header's functions, types and constants, and nothing in them."""
    text = HEADER.read_text() if header is None else header
    constants = re.findall(r"^#define (HF_\w+) (\d+)u?$", text, re.MULTILINE)
    enums = re.findall(r"^typedef enum \w+ \{.*?\} (\w+);", text, re.MULTILINE | re.DOTALL)
    lines = ['#include "holdfast.h"', "#include <stdlib.h>"]
    lines += [f"{declaration} {{ abort(); }}" for declaration in declarations(text).values()]
    lines += [f"{name} value_of_{name};" for name in enums]
    # A size is a part of the interface: the array's length records it.
    lines += [f"char size_{name}[{number}];" for name, number in constants]
    return "\n".join(lines) + "\n"


def abi(header, folder):
    """Writes the description of the interface that a header's text declares, and returns its file."""
    folder.mkdir(exist_ok=True)
    (folder / "holdfast.h").write_text(header)
    (folder / "interface.c").write_text(stand_in(header))
    shared = folder / "libholdfast.so"
    run("gcc", "-std=c99", "-g", "-shared", "-fPIC", "-Wno-unused-parameter", "-o", shared, "interface.c", cwd=folder)
    description = folder / "libholdfast.abi"
    words = ("--no-corpus-path", "--no-show-locs", "--no-comp-dir-path", "--no-elf-needed")
    run("abidw", *words, "--out-file", description, shared)
    return description


def difference(one, other):
    """What abidiff reports; empty if programs built with `one` work with `other`."""
    done = subprocess.run(["abidiff", one, other], capture_output=True, text=True, timeout=60)
    return done.stdout + done.stderr if done.returncode else ""


@contextlib.contextmanager
def running(process):
    """Ends the process in the end."""
    try:
        yield process
    finally:
        if process.poll() is None:
            process.terminate()
        process.wait(60)
