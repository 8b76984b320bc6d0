"""Plugins of QEMU's that follow a function on the board. `trace.c` takes its trace, that is, each instruction and each address that is
read or written. `count.c` counts its instructions, in a small part of the time."""

import os
import subprocess
import tempfile

from board import ROOT, Board

HANDLERS = "count_millisecond", "wake"
# The number of random secrets of each kind, and the most questions whose traces are taken. Of the others, instructions are counted.
COUNT = int(os.environ.get("HOLDFAST_SECRETS", "40"))
TRACED = 120


class Plugins:
    """The plugins, compiled into a folder."""

    def __init__(self, folder):
        self.trace, self.count = (self.compiled(name, folder) for name in ("trace", "count"))

    def compiled(self, name, folder):
        path = folder / f"{name}.so"
        subprocess.run(
            ["cc", "-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-o", path]
            + [ROOT / "Tests" / "Firmware" / f"{name}.c"],
            check=True,
        )
        return path


def places(image):
    """The first and the last address of each function."""
    listing = subprocess.run(["arm-none-eabi-nm", "-S", image], capture_output=True, text=True, check=True).stdout
    lines = [line.split() for line in listing.splitlines()]
    return {
        fields[3]: (int(fields[0], 16) & ~1, (int(fields[0], 16) & ~1) + int(fields[1], 16) - 1)
        for fields in lines
        if len(fields) == 4
    }


def place_of(function, known):
    """The place of a function by its name, or by the beginning of the only name in Swift that has it."""
    if function in known:
        return known[function]
    names = [name for name in known if name.startswith("$e") and name[2:].lstrip("0123456789").startswith(function)]
    assert len(names) == 1, f"{len(names)} functions are called {function}"
    return known[names[0]]


def read(file):
    with open(file) as lines:
        return [tuple(line.split()) for line in lines]


def follow(plugin, image, function, questions, before, is_refused):
    """The plugin's line for each question's call of `function`, as words. The questions `before` are asked first. No question may be
    refused, or, if `is_refused`, all of `questions` must be."""
    known = places(image)
    skipped = ",".join("skip={:x}-{:x}".format(*known[handler]) for handler in HANDLERS)
    with tempfile.TemporaryDirectory(prefix="hf") as folder:
        file = f"{folder}/lines"
        spec = f"{plugin},out={file},entry={place_of(function, known)[0]:x},{skipped}"
        with Board(folder, "--count", "--plugin", spec, firmware=image) as board:
            for question in before:
                assert board.ask(*question) is not None, "refused"
            earlier = len(read(file)) if before else 0
            for question in questions:
                assert (board.ask(*question) is None) == is_refused, "refused" if not is_refused else "answered"
            found = read(file)[earlier:]
    assert len(found) == len(questions), "calls"
    return found


def traces(plugins, image, function, questions, before=(), is_refused=False):
    """The trace of each question's call of `function`: its number of instructions, and its digest."""
    return follow(plugins.trace, image, function, questions, before, is_refused)


def counts(plugins, image, function, questions, before=(), is_refused=False):
    """The number of instructions of each question's call of `function`."""
    return [number for (number,) in follow(plugins.count, image, function, questions, before, is_refused)]


def assert_alike(plugins, image, function, questions, before=(), is_refused=False, traced=TRACED):
    """The first `traced` questions have one trace, and all have one number of instructions."""
    found = set(traces(plugins, image, function, questions[:traced], before, is_refused))
    assert len(found) == 1, f"{len(found)} traces"
    if len(questions) > traced:
        numbers = set(counts(plugins, image, function, questions, before, is_refused))
        assert numbers == {number for number, _ in found}, f"{len(numbers)} numbers of instructions"
