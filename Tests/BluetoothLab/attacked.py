"""`holdfast attack` at a device on Linux, over each transport of Bluetooth."""

import re

import served
from holdfast_peer.checks import expect
from served import KINDS, Tried


def observe(lab):
    return served.run(lab, "attacked.sh")


def finds_nothing(seen):
    """over each transport, the adversary finds a sound device sound"""
    for kind in KINDS:
        Tried(seen, kind).expect(0, "attacks: [0-9]+ sound, 0 unsound")


def tries_what_a_transport_permits(seen):
    """RFCOMM has one connection between two adapters, so attacks with several at once are not tried there"""
    tried = {kind: int(re.search("attacks: ([0-9]+) sound", Tried(seen, kind).text)[1]) for kind in KINDS}
    print(f"attacks that were tried: {tried}", flush=True)
    expect(min(tried.values()) > 90 and tried["rfcomm"] < tried["l2cap"], f"{tried}")


CHECKS = [finds_nothing, tries_what_a_transport_permits]
