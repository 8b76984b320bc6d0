#!/usr/bin/python3
"""What the firmware takes, against what it may take.

usage: report.py --holdfast PATH [--check | --keep]

Builds the images, lets a device in QEMU live through all that it can do, twice, and prints a table. Fails where the second
life is not the first again: answers, instructions and stack. With --check it also fails where a figure is worse than the one
in reached.json, by more than chance; --keep writes that file anew.
"""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent / "Interop"))

import images
import script
from device import BUILD
from holdfast_peer.checks import Checks, expect, expect_equal

REACHED = pathlib.Path(__file__).resolve().parent / "reached.json"

# Keys are new each time, and a comparison of public bytes ends where they differ: that many instructions more are no change.
# Sizes are the same each time, except with another patch level of a compiler: a four-hundredth.
INSTRUCTIONS_OF_CHANCE, PART_OF_CHANCE = 400, 400
SIZES = {"text of the image", "static RAM, with the handlers' stack", "stack"}

# Name, limit, and what would be better still. Sizes are in bytes, the rest in instructions.
LIMITS = [
    ("text of the image", 114_688, None),
    ("static RAM, with the handlers' stack", 24_576, None),
    ("stack", 8_192, None),
    ("first token, COSE_Sign1", 14_000_000, 10_000_000),
    ("first token, COSE_Mac0", 8_500_000, None),
    ("a round with a remembered token", 160_000, 140_000),
]


def sizes():
    """The image's, by the linker's sections: all code memory, and all RAM but the main stack."""
    listing = subprocess.run(["arm-none-eabi-size", "-A", "-d", BUILD / "firmware.elf"], capture_output=True, text=True,
                             check=True).stdout
    size = {fields[0]: int(fields[1]) for fields in map(str.split, listing.splitlines()) if len(fields) == 3 and fields[1].isdigit()}
    return {"text of the image": size[".text"] + size[".data"],
            "static RAM, with the handlers' stack": size[".data"] + size[".bss"]}


def lived(world):
    """What each part of a device's life took, and the stack that all of it needed; a second life has to be the same."""
    with world.device("first") as device:
        took = script.run(world, device)
        exchanges, answers = device.exchanges, device.answers()
    with world.device("second") as device:
        device.repeat(exchanges)
        expect_equal(device.answers(), answers, "what the answers took the second time")
    return {**took, "stack": max(stack for _, _, stack in answers)}


def measured(holdfast):
    """Every figure by name."""
    with tempfile.TemporaryDirectory() as folder:
        world = script.World(holdfast, pathlib.Path(folder))
        return {**sizes(), **lived(world)}


def verdict(figure, limit, better):
    if figure > limit:
        return f"over by {figure - limit:,}"
    return "met" if better is None else f"met; {better:,} {'met too' if figure <= better else 'not yet'}"


def show(figures):
    limits = {name: (limit, better) for name, limit, better in LIMITS}
    print(f"{'':40}{'may be':>12}{'is':>12}")
    for name in [*limits, *(name for name in figures if name not in limits)]:
        limit, better = limits.get(name, (None, None))
        bound, end = ("", "") if limit is None else (f"{limit:,}", f"  {verdict(figures[name], limit, better)}")
        print(f"{name:40}{bound:>12}{figures[name]:>12,}{end}")


def chance(name, figure):
    return figure // PART_OF_CHANCE if name in SIZES else INSTRUCTIONS_OF_CHANCE


def compare(figures):
    """Nothing is worse than what was reached."""
    reached = json.loads(REACHED.read_text())
    checks = Checks()
    checks.run("the figures are those that were reached", lambda: expect_equal(set(figures), set(reached), "figures"))
    for name in sorted(set(figures) & set(reached)):
        checks.run(name, expect, figures[name] <= reached[name] + chance(name, reached[name]),
                   f"{figures[name]:,}, and {reached[name]:,} was reached")
    return checks.finish()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--holdfast", required=True, help="the command line that provisions the device")
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--check", action="store_true", help="fail where a figure is worse than the one that was reached")
    what.add_argument("--keep", action="store_true", help="write down what is reached now")
    options = parser.parse_args()
    if not images.built():
        return 0
    figures = measured(options.holdfast)
    show(figures)
    if options.keep:
        REACHED.write_text(json.dumps(figures, indent=2) + "\n")
    return compare(figures) if options.check else 0


if __name__ == "__main__":
    sys.exit(main())
