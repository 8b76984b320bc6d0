"""A disk that is full: the device refuses, and what it had accepted stays counted."""

from guest import make_disk
from holdfast_peer.checks import expect, expect_equal

ACCEPTED = '0 {"status":"accepted",'


def observe(lab):
    # Blocks as large as a page: with smaller ones, which mkfs takes for small disks, SQLite's shared memory can have holes, and a full
    # disk then ends the device by SIGBUS. It starts again when there is room, and has lost nothing.
    return lab.run("full_disk.sh", disks=[make_disk(lab.folder / "small.disk", 16, "-b", "4096")])


def room_is_used(seen):
    """with room, before and after, rounds are accepted"""
    expect_equal(len(accepted(seen["room"])), 3, f"accepted of {seen['room']}")


def full_is_refused(seen):
    """on a full disk a round is refused (internal, exit status 1), or accepted where the ledger's own log made room for it"""
    expect_equal(len(seen["full"]), 4, "rounds")
    refused = [said for said in seen["full"] if said.startswith('1 {"status":"internal",')]
    # The log makes room after the first refusal; the last round comes when the disk has just been filled again.
    expect_equal(len(accepted(seen["full"])) + len(refused), 4, f"refused or accepted of {seen['full']}")
    expect(seen["full"][0] in refused and seen["full"][-1] in refused, seen["full"])


def accepted(rounds):
    return [said for said in rounds if said.startswith(ACCEPTED)]


def start_is_orderly(seen):
    """on a full disk the device starts where its log has room in itself, or says that it cannot: exit status 70"""
    # A device that serves is ended after its time, and `timeout` then says 124.
    expect(seen["start"][0].startswith(("124 holdfast: listening", "70 holdfast: ")), seen["start"][0])


def nothing_is_lost(seen):
    """the audit chain is whole afterwards, and has each accepted round and no other"""
    expect(seen["audit"][0].startswith("0 ") and '"whole":true' in seen["audit"][0], seen["audit"][0])
    expect_equal(
        seen["accepted"], [str(len(accepted(seen["room"] + seen["full"])))], "accepted rounds in the audit log"
    )


CHECKS = [room_is_used, full_is_refused, start_is_orderly, nothing_is_lost]
