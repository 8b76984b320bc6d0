"""The folders of which a copy is of no use ask backup tools to leave them out."""

import array
import fcntl
import os
import pathlib
import tempfile

import pytest
from holdfast_peer.command_line import CommandLine

# ioctl_iflags(2), for processes of 64 bits.
FS_IOC_GETFLAGS, FS_IOC_SETFLAGS, FS_NODUMP_FL = 0x80086601, 0x40086602, 0x40


def attributes(path):
    """The attributes of a folder; None if the file system has none."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        value = array.array("i", [0])
        fcntl.ioctl(descriptor, FS_IOC_GETFLAGS, value)
        return value[0]
    except OSError:
        return None
    finally:
        os.close(descriptor)


def supports_the_attribute(folder):
    probe = folder / "probe"
    probe.mkdir()
    descriptor = os.open(probe, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.ioctl(descriptor, FS_IOC_SETFLAGS, array.array("i", [(attributes(probe) or 0) | FS_NODUMP_FL]))
        return True
    except OSError:
        return False
    finally:
        os.close(descriptor)


@pytest.mark.parametrize("place", ["/var/tmp", "/dev/shm"])
def test_folders_whose_copies_are_of_no_use_are_marked_and_a_service_is_not(holdfast, place):
    """Without the attribute, the same commands succeed all the same."""
    with tempfile.TemporaryDirectory(dir=place) as name:
        folder = pathlib.Path(name)
        run = CommandLine(holdfast, folder)
        run.succeed("service", "init", "--dir", "service")
        run.succeed("device", "init", "--dir", "lock")
        (folder / "service.json").write_bytes(run.succeed("service", "show", "--dir", "service", "--json"))
        run.succeed("device", "trust", "--dir", "lock", "service.json")
        (folder / "lock.json").write_bytes(run.succeed("device", "show", "--dir", "lock", "--json"))
        run.succeed("service", "device", "add", "--dir", "service", "lock.json")
        run.succeed("enroll", "--device", "lock.json", "--service", "service", "--state", "phone")
        (folder / "key").write_bytes(bytes(range(32)))
        (folder / "key").chmod(0o600)
        run.succeed("vault", "init", "--vault", "vault", "--key-file", "key", "--no-passcode")
        is_supported = supports_the_attribute(folder)
        for made, is_marked in (("lock", True), ("phone", True), ("vault", True), ("service", False)):
            has_mark = bool((attributes(folder / made) or 0) & FS_NODUMP_FL)
            assert has_mark == (is_marked and is_supported), f"{made} in {place}"
