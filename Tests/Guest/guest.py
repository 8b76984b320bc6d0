"""Boots a Linux guest under QEMU, only by software emulation, and reads what the script that runs in it reports.

The kernel and the guest's programs are Debian's, in .guest/, where Tests/Guest/fetch puts them. `Image` is the initramfs that
guests boot from; `Guest` is one boot. A guest's first process is Tests/Guest/init.
"""

import lzma
import pathlib
import platform
import re
import shutil
import signal
import string
import struct
import subprocess
import threading

from holdfast_peer.turns import turn
from programs import FOLDER, SYSTEM_PATH, copy, copy_program

HERE = pathlib.Path(__file__).resolve().parent
QEMU = "qemu-system-x86_64"
NEEDED = {
    QEMU: "qemu-system-x86",
    "mkfs.ext4": "e2fsprogs",
    "cpio": "cpio",
    "depmod": "kmod",
    "ldd": "libc-bin",
    "setpriv": "util-linux",
}
FETCH_SECONDS = "300"
# The program that unpacks a kernel, by the bytes that its payload begins with.
UNPACKERS = {b"\xfd7zXZ\0": "xz", b"\x28\xb5\x2f\xfd": "zstd"}
# Computations of a kernel's start that no story needs, each of which takes tenths of a second under emulation: tests of ciphers and of
# key derivation, the quality of the processor's jitter, the distribution's certificates.
SPARED = "cryptomgr.notests initcall_blacklist=crypto_kdf108_init,jent_mod_init,load_system_certificate_list"
DISK_MODULES = ("virtio_pci", "virtio_blk", "ext4")


class Unavailable(Exception):
    """No guest can be had on this machine; the message says why."""


def prepare():
    """Sees to it that guests can be booted, or raises `Unavailable`."""
    if platform.machine() != "x86_64":
        raise Unavailable(f"it is x86-64, and this machine is {platform.machine()}")
    for program, package in NEEDED.items():
        if shutil.which(program, path=SYSTEM_PATH) is None:
            raise Unavailable(f"{program} is not there (Debian: {package})")
    if fetch() != 0:
        raise Unavailable("Debian's kernel and the guest's programs could not be fetched")


def fetch():
    """Returns the exit status. `timeout` has a process group of its own, and ends all of it when it is told to end."""
    with turn(HERE / "fetch"):
        fetching = subprocess.Popen(
            ["timeout", FETCH_SECONDS, HERE / "fetch"], stdin=subprocess.DEVNULL, stderr=subprocess.STDOUT
        )
        try:
            return fetching.wait()
        finally:
            fetching.terminate()
            fetching.wait()


# What makes a file system: of ext4, without blocks reserved for root.
MAKERS = {"ext4": ("mkfs.ext4", "-q", "-m", "0"), "f2fs": ("mkfs.f2fs", "-q")}


def make_disk(path, mebibytes, *options, system="ext4"):
    """An empty file system in a file."""
    if shutil.which(MAKERS[system][0], path=SYSTEM_PATH) is None:
        raise Unavailable(f"{MAKERS[system][0]} is not there")
    with open(path, "wb") as file:
        file.truncate(mebibytes << 20)
    subprocess.run([*MAKERS[system], *options, path], env={"PATH": SYSTEM_PATH}, check=True)
    return path


def unpacked(kernel):
    """The kernel without its decompressor, where the host can do that: the guest's processor is emulated.

    Source: Linux, Documentation/arch/x86/boot.rst: `setup_sects`, `payload_offset`, `payload_length`. The payload ends with four bytes that
    only the decompressor reads.
    """
    packed = kernel.read_bytes()
    offset, length = struct.unpack_from("<II", packed, 0x248)
    begin = (packed[0x1F1] + 1) * 512 + offset
    payload = packed[begin : begin + length - 4]
    program = next((name for magic, name in UNPACKERS.items() if payload.startswith(magic)), None)
    if program is None or shutil.which(program, path=SYSTEM_PATH) is None:
        return kernel
    plain = kernel.with_name("vmlinux")
    with turn(HERE / "fetch"):
        if not plain.exists():
            partial = kernel.with_name("vmlinux.partial")
            with open(partial, "wb") as out:
                subprocess.run([program, "-dc"], env={"PATH": SYSTEM_PATH}, input=payload, stdout=out, check=True)
            partial.rename(plain)
    return plain


class Image:
    """The initramfs: busybox, modules with what they depend upon, programs with their libraries, and the scripts."""

    def __init__(self, folder, modules, programs=(), code=None, scripts=(), met=None):
        """`code` is a disk that has the programs instead (code_disk.py); `scripts` are folders next to Tests/Guest whose scripts the guest has
        too; `met` is a folder that the guest has as /met."""
        self.code = code
        self.path = folder / "initramfs"
        kernel = next((FOLDER / "boot").glob("vmlinuz-*"))
        self.kernel, self.version = unpacked(kernel), kernel.name.removeprefix("vmlinuz-")
        self.root = folder / "root"
        # The places of each program's libraries, below the root.
        self.libraries = {}
        for name in ("code", "dev", "proc", "sys", "disk", "root", "modules", "scripts"):
            (self.root / name).mkdir(parents=True)
        (self.root / "tmp").mkdir(mode=0o777)
        self.add_busybox()
        self.add(HERE / "init", "init")
        for script in (path for place in (HERE, *scripts) for path in place.glob("*.sh")):
            self.add(script, f"scripts/{script.name}")
        for path in ("/etc/os-release", "/etc/passwd"):
            self.add(path, path[1:])
        for module in modules:
            self.add_module(module)
        for program in programs:
            self.libraries[program] = copy_program(program, self.root)
        if code:
            for name in ("usr", "lib", "lib64"):
                (self.root / name).symlink_to(f"code/{name}")
        if met:
            shutil.copytree(met, self.root / "met")
        names = subprocess.run(["find", "."], cwd=self.root, stdout=subprocess.PIPE, check=True).stdout
        with open(self.path, "wb") as out:
            subprocess.run(
                ["cpio", "-o", "-H", "newc", "-R", "0:0", "--quiet"], cwd=self.root, input=names, stdout=out, check=True
            )

    def add(self, source, place):
        copy(source, self.root / place)

    def add_busybox(self):
        """With a link for each of its programs, which the guest would make slowly."""
        self.add(FOLDER / "bin/busybox", "bin/busybox")
        listed = subprocess.run([self.root / "bin/busybox", "--list"], stdout=subprocess.PIPE, text=True, check=True)
        for name in set(listed.stdout.split()) - {"busybox"}:
            (self.root / "bin" / name).symlink_to("busybox")

    def add_module(self, name):
        shown = subprocess.run(
            ["modprobe", "-d", FOLDER, "-S", self.version, "--show-depends", name],
            env={"PATH": SYSTEM_PATH},
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        ).stdout
        order = self.root / "modules/order"
        for path in re.findall(r"^insmod (\S+)", shown, re.MULTILINE):
            packed = pathlib.Path(path)
            target = self.root / "modules" / packed.name.removesuffix(".xz")
            if not target.exists():
                # The guest's insmod takes only plain modules.
                target.write_bytes(
                    lzma.decompress(packed.read_bytes()) if packed.suffix == ".xz" else packed.read_bytes()
                )
                with open(order, "a", encoding="ascii") as out:
                    out.write(f"{target.name}\n")


class Guest:
    """One boot. Use it in a `with` statement: at its end QEMU is dead, and nothing that it had not flushed is on its disks."""

    def __init__(self, image, console, script, *arguments, disks=(), seconds=120, options=()):
        """Boots. `script` is one of the image's; `seconds` is the time until QEMU is killed; `options` are more of QEMU's."""
        self.console = console
        self.ended = None
        # Set once the guest reads its port: what comes before that is lost.
        self.begun = threading.Event()
        drives = [f"file={disk},format=raw,if=virtio,cache=writeback" for disk in disks]
        variables = ""
        if image.code:
            drives.append(f"file={image.code},format=raw,if=virtio,readonly=on")
            variables = f"code=/dev/vd{string.ascii_lowercase[len(disks)]}"
        # The console goes to a file. The second serial port is what the script reports.
        # A processor without the instructions, and a kernel without the detours, that an emulator is slowest at. On a busy machine, the
        # kernel would take the emulated timer for broken, and panic.
        command = [
            QEMU,
            "-accel",
            "tcg",
            "-cpu",
            "qemu64",
            "-m",
            "512",
            "-nodefaults",
            "-display",
            "none",
            "-no-reboot",
            "-kernel",
            image.kernel,
            "-initrd",
            image.path,
            "-append",
            " ".join(
                [
                    f"console=ttyS0 quiet panic=-1 mitigations=off no_timer_check {SPARED} {variables} --",
                    script,
                    *arguments,
                ]
            ),
            "-serial",
            f"file:{console}",
            "-serial",
            "stdio",
            *(word for drive in drives for word in ("-drive", drive)),
            *options,
        ]
        # The kernel kills QEMU when the test is gone, however it ends.
        self.process = subprocess.Popen(
            ["setpriv", "--pdeathsig", "KILL", *command],
            env={"PATH": SYSTEM_PATH},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            bufsize=1,
        )
        self.timer = threading.Timer(seconds, self.process.kill)
        self.timer.daemon = True
        self.timer.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.cut()
        self.timer.cancel()

    def cut(self):
        """Cuts the power."""
        self.process.kill()
        self.process.wait()

    def freeze(self):
        """Stops the processor, and lets nothing in or out, until `thaw`."""
        self.process.send_signal(signal.SIGSTOP)

    def thaw(self):
        self.process.send_signal(signal.SIGCONT)

    def tell(self, line):
        """Says a line to the script, which reads it by `hear`. Somebody has to be reading the reports."""
        self.begun.wait()
        self.process.stdin.write(f"{line}\n")

    def reports(self):
        """Each report as (name, value), as it comes. `ended` is set to the script's exit status once it has ended."""
        for line in self.process.stdout:
            self.begun.set()
            name, _, value = line.strip().partition(" ")
            if name == "end":
                self.ended = int(value)
                return
            if name != "begin":
                yield name, value
        self.begun.set()
