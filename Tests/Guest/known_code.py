"""Known code on F2FS: what only root can change is known, and what a former owner still writes to is hashed."""

import json

import code_disk
from guest import DISK_MODULES, Image, make_disk
from holdfast_peer.checks import expect, expect_equal


def observe(lab):
    disk = make_disk(lab.folder / "known_code.disk", 128, system="f2fs")
    folder = lab.folder / "known_code"
    folder.mkdir()
    writer = lab.compile("former_owner", "former_owner.c")
    code = code_disk.make(folder, [lab.holdfast, writer])
    return lab.run("known_code.sh", image=Image(folder, (*DISK_MODULES, "f2fs"), code=code), disks=[disk])


def measured(seen, name):
    """The result of `holdfast bench measure`."""
    status, _, report = seen[name][0].partition(" ")
    expect_equal(status, "0", f"exit status: {report}")
    return json.loads(report)


def later_ones_are_known(seen):
    """on F2FS, code of root's is known from the second measurement on"""
    expect_equal(seen["system"], ["f2fs"], "file system")
    result = measured(seen, "plain")
    expect_equal(result["known"], result["rounds"] - 1, "known measurements")


def mapping_from_before_is_noticed(seen):
    """a library is hashed each time while a former owner writes to it, although its change time does not show that"""
    expect_equal(seen["writing"], ["yes"], "the former owner still writes")
    expect(int(seen["age"][0]) > 2, f"the change time followed the writes: {seen['age']}")
    expect_equal(measured(seen, "taken")["known"], 0, "known measurements")


CHECKS = [later_ones_are_known, mapping_from_before_is_noticed]
