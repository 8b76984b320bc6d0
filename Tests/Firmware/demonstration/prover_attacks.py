"""Provers that are not what they were, or not where they were."""

import contextlib
import ctypes
import os
import shutil
import signal
import subprocess

from holdfast_peer.checks import expect

from .scene import Ending

HELP_TEXT = b"Offline hardware attestation"
TRACE_ME, CONTINUE = 0, 7
libc = ctypes.CDLL(None)
libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]


def attack(scene, story):
    story.expect("a flipped byte in the measurement configuration", "deviceMismatch", flipped(scene).status)
    ending = scene.prove(environment={"LD_PRELOAD": "libc_malloc_debug.so.0"})
    story.expect("a prover with an LD_PRELOADed library", "integrityMismatch", ending.status)
    story.expect("a prover with a debugger attached", "integrityMismatch", scene.patiently(lambda: traced(scene)).status)
    story.expect("a prover whose executable is a patched copy", "integrityMismatch", scene.prove(program=patched(scene)).status)
    story.expect("a copied state folder, another device secret", "deviceMismatch", copied(scene).status)
    story.expect("a command that the token does not allow", "commandRefused", scene.prove(state="limited").status)
    story.expect("the prover as it was enrolled", "accepted", scene.prove().status)


def flipped(scene):
    shutil.copytree(scene.path("phone"), scene.path("flipped"))
    path = next(scene.path("flipped").glob("devices/*/measurement_config.bin"))
    data = bytearray(path.read_bytes())
    data[20] ^= 1
    path.write_bytes(data)
    return scene.prove(state="flipped")


def traced(scene):
    """With this process as its debugger."""
    command = [scene.command_line.path, *map(str, scene.prove_arguments("unlock")), "--json"]
    with open(scene.path("traced"), "wb") as output:
        prover = subprocess.Popen(command, env=scene.command_line.environment, stdin=subprocess.DEVNULL, stdout=output,
                                  stderr=subprocess.DEVNULL, preexec_fn=lambda: libc.ptrace(TRACE_ME, 0, None, None))
    try:
        while os.WIFSTOPPED(status := os.waitpid(prover.pid, 0)[1]):
            number = os.WSTOPSIG(status)
            libc.ptrace(CONTINUE, prover.pid, None, 0 if number == signal.SIGTRAP else number)
    except BaseException:
        with contextlib.suppress(ProcessLookupError):
            os.kill(prover.pid, signal.SIGKILL)
        raise
    prover.returncode = os.waitstatus_to_exitcode(status)
    return Ending(subprocess.CompletedProcess(command, prover.returncode, scene.path("traced").read_bytes()))


def patched(scene):
    """A copy of the program with one letter of its help text changed."""
    path = scene.path("patched")
    data = bytearray(shutil.copy(scene.command_line.path, path).read_bytes())
    expect(HELP_TEXT in data, "there is nothing to patch")
    data[data.index(HELP_TEXT)] ^= 0x20
    path.write_bytes(data)
    return path


def copied(scene):
    """Where the app has its own storage, as it has on any other machine."""
    shutil.copytree(scene.path("phone"), scene.path("copied"))
    elsewhere = {"XDG_DATA_HOME": str(scene.path("elsewhere"))}
    scene.path("elsewhere").mkdir(mode=0o700)
    ending = scene.run("measure", "--state", scene.path("elsewhere-state"), "--out", scene.path("evidence"), environment=elsewhere)
    expect(ending.exit == "exit 0", "measuring failed")
    return scene.prove(state="copied", environment=elsewhere)
