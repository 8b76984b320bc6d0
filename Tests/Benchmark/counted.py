"""The rows of the board in QEMU: instructions, which are counted and repeat, so that one life of a device is enough."""

import dataclasses
import sys

import peers

sys.path[:0] = [str(peers.ROOT / "Tests" / name) for name in ("Interop", "Firmware")]

import images
import script


@dataclasses.dataclass
class Count:
    """A row: the instructions that were taken, or why there are none, and the most that may be."""

    name: str
    most: int
    taken: int | None = None
    absent: str = ""


def measure(holdfast, folder):
    """Builds the firmware, and has a device live through all that it can do. Each of its verdicts is checked."""
    try:
        images.prepare()
    except images.Unavailable as reason:
        return [Count(name, most, absent=str(reason)) for name, most, _ in script.LIMITS]
    images.build(".build/firmware.elf")
    # The issuer and the keys have the same names as those of the other works.
    folder = folder / "board"
    folder.mkdir()
    provisioned = script.Provisioned(holdfast, folder)
    with provisioned.device("device") as device:
        took = script.run(provisioned, device)
    return [Count(name, most, took[name]) for name, most, _ in script.LIMITS]
