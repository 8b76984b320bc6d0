"""Flash that is not what the owner made, or allows nothing, and a board whose noise is none."""

import json
import secrets

from hardware import Hardware

from .line_attacks import Line

FLASH = 128 * 1024
NO_COMMAND = {"version": 1, "commands": {}}
# Somewhere in the device's id.
SPOILED_BYTE = 20


def attack(scene, story):
    """The board has no power: its flash is read, and copies of it are spoiled."""
    flash = scene.image.read_bytes()[:FLASH]
    spoiled = bytearray(flash)
    spoiled[SPOILED_BYTE] ^= 1
    for text, data, what in [
        ("a blank flash", b"\xff" * FLASH, "the flash is blank; everything is denied"),
        ("a flash full of random bytes", secrets.token_bytes(FLASH), "the flash is not a device's; everything is denied"),
        ("a bit flipped in what the owner wrote", bytes(spoiled), "the provisioned data is damaged; everything is denied"),
    ]:
        with other_board(scene, data) as board:
            story.expect(text, what, board.power_on())
            ending = scene.prove(at=f"unix-stream:{board.line}")
            story.expect("… unlock", "internal", ending.status)


def allow_nothing(scene, story):
    """A board of its own, whose policy names no command; a prover is enrolled with it."""
    with other_board(scene, b"") as board:
        board.image.unlink()
        shown = scene.command_line.succeed("device", "init", "--firmware", board.image, "--trust", scene.path("service.json"),
                                           "--policy", scene.write("policy.json", json.dumps(NO_COMMAND)), "--json")
        scene.enroll("visitor", device=scene.write("other.json", shown.decode()))
        board.power_on()
        ending = scene.prove(state="visitor", at=f"unix-stream:{board.line}")
        story.expect("unlock, at a board whose policy names no command", "commandRefused", ending.status)


def repeat_the_noise(scene, story):
    """Starts with the same entropy, each with a challenge; copies of one flash tell that it is the same indeed."""
    flash = scene.image.read_bytes()[:FLASH]
    scene.path("noise").write_bytes(bytes(range(64)))
    noise = ("--entropy", scene.path("noise"))
    with other_board(scene, flash) as board:
        first, second = challenge(board, noise), challenge(board, noise)
    with other_board(scene, flash) as board:
        copied = challenge(board, noise)
    story.expect("two starts with the same random numbers", "another challenge",
                 "the same challenge" if first == second else "another challenge")
    story.expect("… the first of them, in a copy of the flash", "the first challenge",
                 "the first challenge" if first == copied else "another challenge")


def challenge(board, noise):
    board.power_on(*noise)
    with (line := Line(board)).connection:
        first = line.challenge()
    board.cut_power()
    return first


def other_board(scene, flash):
    folder = scene.path("other")
    folder.mkdir(exist_ok=True)
    (folder / "flash").write_bytes(flash)
    (folder / "flash").chmod(0o600)
    return Hardware(folder, folder / "flash", "--count")
