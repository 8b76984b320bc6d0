"""Provers that are no longer what was enrolled, or no longer where it was."""

import shutil

from holdfast_peer.checks import expect
from holdfast_peer.state import enrolment

from .scene import Ending
from .story import situation

HELP_TEXT = b"Offline hardware attestation"
FLIPPED_BYTE = 20


@situation("a flipped byte in the measurement configuration", "deviceMismatch")
def flip(scene):
    shutil.copytree(scene.path("prover"), scene.path("flipped"))
    file = enrolment(scene.path("flipped")) / "measurement_config.bin"
    data = bytearray(file.read_bytes())
    data[FLIPPED_BYTE] ^= 1
    file.write_bytes(data)
    return scene.prove(state="flipped").status


@situation("a prover with an LD_PRELOADed library", "integrityMismatch")
def preload(scene):
    return scene.prove(environment={"LD_PRELOAD": "libc_malloc_debug.so.0"}).status


@situation("a prover with a debugger attached", "integrityMismatch")
def trace(scene):
    words = [scene.command_line.path, *scene.prove_arguments("unlock"), "--json"]
    return Ending(scene.processes.run_traced(words, scene.path("traced"), env=scene.command_line.environment)).status


@situation("a prover whose executable is a patched copy", "integrityMismatch")
def patch(scene):
    """Changes one letter of the help text."""
    program = scene.path("patched")
    data = bytearray(shutil.copy(scene.command_line.path, program).read_bytes())
    expect(HELP_TEXT in data, "there is nothing to patch")
    data[data.index(HELP_TEXT)] ^= 0x20
    program.write_bytes(data)
    return scene.prove(program=program).status


@situation("a copied state folder, another device secret", "deviceMismatch")
def copy(scene):
    """Moves the state folder to where the app has different local storage, as on any other machine."""
    shutil.copytree(scene.path("prover"), scene.path("copied"))
    elsewhere = {"XDG_DATA_HOME": str(scene.path("elsewhere"))}
    scene.path("elsewhere").mkdir(mode=0o700)
    scene.succeed(
        "measure",
        "--state",
        scene.path("elsewhere-state"),
        "--out",
        scene.path("elsewhere-evidence"),
        environment=elsewhere,
    )
    return scene.prove(state="copied", environment=elsewhere).status
