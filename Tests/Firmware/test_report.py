"""What the firmware takes, against what it may take, and against what was reached.

Lets a device in QEMU live through all that it can do, twice. Fails where the second life is not the first again: answers,
instructions and stack; and where a figure is worse than the one in reached.json, by more than chance. `--measure` prints a
table, and `--keep` writes that file anew.
"""

import json
import pathlib

import images
import pytest
import script
from device import BUILD

FILE = pathlib.Path(__file__).resolve().parent / "reached.json"
REACHED = json.loads(FILE.read_text())

# Keys are new each time, and a comparison of public bytes ends where they differ: that many instructions more are no change.
# Sizes are the same each time, except with another patch level of a compiler: a four-hundredth.
INSTRUCTIONS_OF_CHANCE, PART_OF_CHANCE = 400, 400
# The digits of a signature's two scalars, which are new each time, decide how many points its verification adds: 1.5 more or
# fewer of each are usual, at 4,000 to 5,500 instructions.
INSTRUCTIONS_OF_A_SIGNATURE = 80_000
SIGNED = {
    "first token, COSE_Sign1",
    "first token, JOSE",
    "first token, JOSE with a wrapped key",
    "a compatibility round",
}
SIZES = set(images.LIMITS)

# Name, limit, and what would be better still. Sizes are in bytes, the rest in instructions.
LIMITS = [*((name, limit, None) for name, limit in images.LIMITS.items()), *script.LIMITS]


def lived(provisioned):
    """What each part of a device's life took, and the stack that all of it needed; a second life has to be the same."""
    with provisioned.device("first") as device:
        took = script.run(provisioned, device)
        exchanges, answers = device.exchanges, device.answers()
    with provisioned.device("second") as device:
        device.repeat(exchanges)
        assert device.answers() == answers, "what the answers took the second time"
    return {**took, "stack": max(stack for _, _, stack in answers)}


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
    if name in SIZES:
        return figure // PART_OF_CHANCE
    return INSTRUCTIONS_OF_A_SIGNATURE if name in SIGNED else INSTRUCTIONS_OF_CHANCE


@pytest.fixture(scope="module")
def figures(request, holdfast, folder):
    """Every figure by name."""
    figures = {**images.sizes(BUILD / "firmware.elf"), **lived(script.Provisioned(holdfast, folder))}
    if request.config.getoption("measure"):
        with request.config.pluginmanager.getplugin("capturemanager").global_and_fixture_disabled():
            show(figures)
    if request.config.getoption("keep"):
        FILE.write_text(json.dumps(figures, indent=2) + "\n")
    return figures


def test_the_figures_are_those_that_were_reached(figures):
    assert set(figures) == set(REACHED)


@pytest.mark.parametrize("name", REACHED)
def test_a_figure_is_not_worse_than_the_one_that_was_reached(figures, name):
    most = REACHED[name] + chance(name, REACHED[name])
    assert figures[name] <= most, f"{figures[name]:,}, and {REACHED[name]:,} was reached"


@pytest.mark.parametrize("name, limit", [(name, limit) for name, limit, _ in LIMITS])
def test_a_figure_is_within_its_limit(figures, name, limit):
    assert figures[name] <= limit
