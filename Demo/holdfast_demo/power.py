"""A board that loses its power, and flash that is not as its owner made it."""

import secrets

from . import daily
from .board import FLASH, MILLION
from .scene import name_in
from .story import Situation, preparation, situation
from .users import SAFE

# Somewhere in the device's id.
SPOILED_BYTE = 20


# Rounds, counted: the board counts its last answer, so that the prover asks for nothing after the verdict.


@situation("unlock, by the whole token", "accepted, unlocked")
def unlock(scene):
    ending = scene.prove("unlock", "--courier", "off")
    scene.kept.whole = scene.instructions()
    return ending.answer, f"{scene.kept.whole / MILLION:.2f} M instructions"


@situation("lock, by a reference to it", "accepted, locked")
def lock(scene):
    ending = scene.prove("lock", "--courier", "off")
    scene.kept.remembered = scene.instructions()
    return ending.answer, f"{scene.kept.remembered / MILLION:.2f} M instructions"


@situation("… which the board has remembered", "yes")
def remember(scene):
    return "yes" if scene.kept.remembered * 10 < scene.kept.whole else "no"


# The bridge and the power


def power_on(text, start):
    """A situation: the board gets power, and says which start it is."""
    return Situation(text, start, lambda scene: scene.power_on())


@preparation
def cut_power(scene):
    scene.board.cut_power()


@preparation
def start_bridge(scene):
    scene.start_bridge()


@situation("the bridge ends in order", "exit 0")
def stop_bridge(scene):
    return f"exit {scene.stop_bridge()}"


# What the board knows afterwards

nobody_there = daily.proof("a prover, while there is none", "unlock", "internal")
locked = daily.proof("status: without power, a lock locks", "status", "accepted, locked")


@situation("alice's used password", "otpRejected")
def used_password(scene):
    return scene.alice.configure(scene.kept.used_password).status


@situation("alice's used seal", "sealRejected")
def used_seal(scene):
    return scene.alice.open_safe(SAFE, scene.alice.last_seal).status


@preparation
def keep_password(scene):
    scene.kept.used_password = scene.alice.last_password


@preparation
def break_off(scene):
    """The power fails while the board is busy with an answer, most likely; what became of it does not matter later."""
    with scene.connected() as prover:
        scene.kept.answer = prover.attempt(scene.grant()).message()
        prover.connection.send(scene.kept.answer)
        scene.board.cut_power()


@situation("the answer is sent again", "deviceMismatch")
def send_again(scene):
    with scene.connected() as prover:
        return name_in(prover.exchange(scene.kept.answer))


@situation("the audit chain, read from the flash", "whole")
def audit(scene):
    return daily.audit.body(scene), f"{scene.kept.entry_count} entries"


@preparation
def keep_last_entry(scene):
    scene.kept.last_entry = scene.kept.entries[-1]


@situation("… after the entry before the power failed", "started")
def follow_last_entry(scene):
    entries, entry = scene.kept.entries, scene.kept.last_entry
    following = entries[entries.index(entry) + 1 :] if entry in entries else []
    return following[0]["event"] if following else "nothing"


@situation("faults on its console", "none")
def console_faults(scene):
    return "; ".join(line for line in scene.board.said() if not line.startswith(("start ", "status "))) or "none"


# Flash


def _spoiled(text, spoil, said):
    """Two situations: what a board says that has a spoiled copy of the flash, and that it does not unlock."""

    def start(scene):
        with scene.other_board(spoil(scene.image.read_bytes()[:FLASH])) as board:
            said = board.power_on()
            scene.kept.refusal = scene.prove(at=f"unix-stream:{board.line}").status
            return said

    return Situation(text, f"{said}; everything is denied", start), Situation(
        "… unlock", "internal", lambda scene: scene.kept.refusal
    )


blank_flash = _spoiled("a blank flash", lambda flash: b"\xff" * len(flash), "the flash is blank")
random_flash = _spoiled(
    "a flash full of random bytes", lambda flash: secrets.token_bytes(len(flash)), "the flash is not a device's"
)
damaged_flash = _spoiled(
    "a bit flipped in what the owner wrote",
    lambda flash: flash[:SPOILED_BYTE] + bytes([flash[SPOILED_BYTE] ^ 1]) + flash[SPOILED_BYTE + 1 :],
    "the provisioned data is damaged",
)
