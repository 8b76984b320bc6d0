"""One host with two adapters: BlueZ's own test programs reach each other over every kind of link."""

from holdfast_peer.checks import expect_equal


def observe(lab):
    return lab.run("one_host.sh")


def pings(seen):
    """one host: l2ping is answered"""
    expect_equal(seen["l2ping"], ["0"], "exit status")


def l2cap(seen):
    """one host: L2CAP carries 600-byte packets, more than a packet of the air"""
    expect_equal((seen["l2cap"], seen["l2cap-received"]), (["0"], ["5 3000"]), "exit status and what was received")


def rfcomm(seen):
    """one host: RFCOMM carries a stream, with security and without"""
    for name in ("rfcomm", "rfcomm-secured"):
        messages_and_bytes = seen[f"{name}-received"][0].split()
        expect_equal((seen[name], messages_and_bytes[1]), (["0"], "500"), f"exit status and bytes of {name}")


def low_energy(seen):
    """one host: an LE channel carries 600-byte packets, with security and without"""
    for name in ("le", "le-secured"):
        expect_equal(
            (seen[name], seen[f"{name}-received"]), (["0"], ["5 3000"]), f"exit status and what was received of {name}"
        )


CHECKS = [pings, l2cap, rfcomm, low_energy]
