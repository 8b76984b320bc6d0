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

# The folder of the device's image with BearSSL's curve, and the image.
BEARSSL = ".build/bearssl-curve"
BEARSSL_FIRMWARE = FOLDER / BEARSSL / "firmware.elf"

# What the device may take, in bytes.
TEXT, RAM, STACK = "text of the image", "static RAM, with the handlers' stack", "stack"
LIMITS = {TEXT: 114_688, RAM: 24_576, STACK: 8_192}

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
    """Builds the images, or other targets with variables, one caller at a time. `make` ends what it has begun when it is told to end."""
    with turn(FOLDER / "Makefile"):
        making = subprocess.Popen(["make", "--no-print-directory", "-C", FOLDER, *targets], stdin=subprocess.DEVNULL)
        try:
            if making.wait(BUILD_SECONDS) != 0:
                raise Failed("the firmware does not build")
        finally:
            making.terminate()
            making.wait()


def build_with_bearssls_curve():
    """Builds the device with BearSSL's curve in a folder of its own, and leaves the other images as they are."""
    build("CURVE=bearssl", f"OUT={BEARSSL}", f"{BEARSSL}/firmware.elf")


def sizes(image):
    """An image's, by the linker's sections: all code memory, and all RAM but the main stack."""
    words = ["arm-none-eabi-size", "-A", "-d", image]
    listing = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    size = {
        fields[0]: int(fields[1])
        for fields in map(str.split, listing.splitlines())
        if len(fields) == 3 and fields[1].isdigit()
    }
    return {TEXT: size[".text"] + size[".data"], RAM: size[".data"] + size[".bss"]}
