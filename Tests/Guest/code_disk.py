"""A disk of programs and their libraries, each with fs-verity, made on a host whose kernel need not have fs-verity.

In each proof, `holdfast` measures itself. Where its file has fs-verity, it asks the kernel for the digest; otherwise it would hash 20 MB
each time, which takes most of a proof's time on an emulated processor.

Source: Linux, Documentation/filesystems/ext4/verity.rst and fsverity.rst, "ext4".
"""

import os
import pathlib
import subprocess

import fsverity
from programs import SYSTEM_PATH, copy_program

# The tree begins at the next whole 64 KiB after the data.
ALIGNMENT = 65536
EXTENTS, VERITY = 0x80000, 0x100000
SLACK_MEBIBYTES = 8


def sealed(data):
    """A file with fs-verity, as ext4 keeps it: data, tree, descriptor, and in the last four bytes of a block the size of the descriptor."""
    described = fsverity.descriptor(data)
    whole = fsverity.padded(data, ALIGNMENT) + fsverity.tree(data) + described
    return fsverity.padded(whole + bytes(4), fsverity.BLOCK)[:-4] + len(described).to_bytes(4, "little")


def make(folder, programs):
    """An ext4 file system in a file, with the programs and their libraries. Returns its path."""
    root, disk = folder / "code", folder / "code.disk"
    for program in programs:
        copy_program(program, root)
    settings, size = [], 0
    for path in (pathlib.Path(place) / name for place, _, names in os.walk(root) for name in names):
        data = path.read_bytes()
        path.write_bytes(sealed(data))
        size += path.stat().st_size
        fields = {"size": len(data), "flags": EXTENTS | VERITY, "uid": 0, "gid": 0}
        settings += [f"set_inode_field /{path.relative_to(root)} {name} {value}" for name, value in fields.items()]
    with open(disk, "wb") as file:
        file.truncate(size + (SLACK_MEBIBYTES << 20))
    run = {"env": {"PATH": SYSTEM_PATH}, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "check": True}
    subprocess.run(["mkfs.ext4", "-b", str(fsverity.BLOCK), "-O", "verity,^has_journal", "-d", root, disk], **run)
    subprocess.run(["debugfs", "-w", "-f", "-", disk], input="\n".join(settings).encode(), **run)
    return disk
