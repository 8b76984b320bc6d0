"""The images that run on the board, built where they can be."""

import pathlib
import shutil
import subprocess

from holdfast_peer.checks import Failed
from holdfast_peer.turns import turn

FOLDER = pathlib.Path(__file__).resolve().parent.parent.parent / "firmware-sim"
# A program or file → the Debian package that it comes from.
NEEDED = {
    "qemu-system-arm": "qemu-system-arm",
    "arm-none-eabi-gcc": "gcc-arm-none-eabi",
    "/usr/lib/picolibc/arm-none-eabi/include/stdio.h": "picolibc-arm-none-eabi",
}

FETCH_SECONDS, BUILD_SECONDS = 600, 1200


class Unavailable(Exception):
    """No image can be built or run here; the message says why, `hint` what to do."""

    def __init__(self, reason, hint):
        super().__init__(reason)
        self.hint = hint


def prepare():
    """Sees to it that the images can be built and run, or raises `Unavailable`."""
    for name, package in NEEDED.items():
        if shutil.which(name) is None and not pathlib.Path(name).is_file():
            raise Unavailable(f"there is no {name}", f"apt-get install {package}")
    with turn(FOLDER / "fetch-bearssl"):
        fetched = subprocess.run(
            [FOLDER / "fetch-bearssl"],
            stdin=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            timeout=FETCH_SECONDS,
        )
    if fetched.returncode == 69:
        reason, hint = fetched.stderr.splitlines()[-2:]
        raise Unavailable(reason.removeprefix("holdfast: "), hint.removeprefix("hint: "))


def build(*targets):
    """Builds the images, or other targets, one caller at a time. `make` ends what it has begun when it is told to end."""
    with turn(FOLDER / "Makefile"):
        making = subprocess.Popen(["make", "--no-print-directory", "-C", FOLDER, *targets], stdin=subprocess.DEVNULL)
        try:
            if making.wait(BUILD_SECONDS) != 0:
                raise Failed("the firmware does not build")
        finally:
            making.terminate()
            making.wait()
