"""`holdfast attack` at a device on Linux and, as an impostor, at a prover, over each transport of Bluetooth."""

import re

import served
from holdfast_peer.checks import expect, expect_equal
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


def deceives_nobody(seen):
    """over each transport, the impostor deceives nobody, comes to its end after a flood, and its provers say what it was"""
    for kind in KINDS:
        expect_equal(seen[f"{kind}-impostor"], ["0 4 connections, 0 of them unsound"], f"{kind}: the impostor")
        Tried(seen, f"{kind}-forged-seal").expect(3, "holdfast: ")
        for deception in ("unknown-token", "flood", "end"):
            status = Tried(seen, f"{kind}-{deception}").status
            expect(status in (1, 2, 69), f"{kind}: {deception}: exit status {status}")


CHECKS = [finds_nothing, tries_what_a_transport_permits, deceives_nobody]
