"""What the Bluetooth stories share: an image with BlueZ in it, and hosts to boot from it."""

import pathlib
import time

import code_disk
import guest
from hosts import Host, TwoHosts
from lab import Lab

HERE = pathlib.Path(__file__).resolve().parent
# The emulated radio reaches ciphers through the kernel's sockets. Pairing needs random numbers, ECDH and CMAC in the kernel, where
# modules that are asked for later find no modprobe.
MODULES = (
    "af_alg",
    "algif_hash",
    "algif_skcipher",
    "cmac",
    "ecb",
    "ccm",
    "ctr",
    "sha512_generic",
    "drbg",
    "ecdh_generic",
    *guest.DISK_MODULES,
    "virtio_console",
    "hci_vhci",
    "hci_uart",
    "rfcomm",
)
TOOLS = (
    "bin/hciconfig",
    "usr/bin/hcitool",
    "usr/bin/btmgmt",
    "usr/bin/btmon",
    "usr/bin/btvirt",
    "usr/bin/btattach",
    "usr/bin/l2ping",
    "usr/bin/l2test",
    "usr/bin/rctest",
    "usr/bin/sdptool",
    "usr/bin/bluetoothctl",
    "usr/libexec/bluetooth/bluetoothd",
    "usr/bin/dbus-daemon",
    "usr/bin/socat",
)
# What is compiled for the guest: the program's name → its source's, and what it needs.
COMPILED = {
    "piconet.so": ("piconet.c", "-shared", "-fPIC"),
    "foreign_peer": ("foreign_peer.c", "-lbluetooth"),
    "manage_adapter": ("manage_adapter.c", "-lbluetooth"),
}


class BluetoothLab(Lab):
    SOURCES = HERE
    LOGS = "bluetooth-logs"
    # It takes some minutes by itself, and many times as long where other work keeps the processors busy.
    DEADLINE_SECONDS = 7200

    def make_image(self):
        compiled = [self.compile(name, *words) for name, words in COMPILED.items()]
        programs = [self.holdfast, *compiled, *(guest.FOLDER / tool for tool in TOOLS)]
        code = code_disk.make(self.folder, programs)
        return guest.Image(self.folder, MODULES, code=code, scripts=[HERE], met=self.met)

    def one_host(self, script, *arguments, options=(), log=None):
        """Boots one host, which runs the script. Its console is named after the script, or as `log` says."""
        name = log or script
        console = self.logs / f"{name}-{len(self.consoles(name)) + 1}.log"
        return Host(
            guest.Guest(self.image, console, script, *arguments, seconds=self.end - time.monotonic(), options=options)
        )

    def two_hosts(self, story, *arguments):
        """Boots two hosts, which run STORY_verifier.sh and STORY_prover.sh."""
        return TwoHosts(self, story, *arguments)

    def led_hosts(self, story, **options):
        """Boots two hosts that do what the story tells them, command by command (`Host.run`)."""
        return TwoHosts(self, "led", log=story, **options)
