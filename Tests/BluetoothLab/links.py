"""How secure a link has to be, and links that fail: what the prover says, when, and that the device goes on."""

import served
from holdfast_peer.checks import expect, expect_equal
from served import KINDS, Tried, expect_accepted

# The longest time limit of a prover that waits in vain, in seconds. The others have a minute.
TIMEOUT_SECONDS = 8
# Starting and measuring under emulation, with others at work.
SLACK_SECONDS = 30


def observe(lab):
    return served.run(lab, "links.sh")


def expect_unavailable(seen, pattern, *names):
    """Exit status 69 with a hint, in time."""
    for name in names:
        tried = Tried(seen, name)
        tried.expect(69, f"{pattern}.* hint: ")
        expect(tried.seconds < TIMEOUT_SECONDS + SLACK_SECONDS, f"{name} took {tried.seconds} s")


def refuses_unencrypted(seen):
    """medium, the default, refuses a peer whose link cannot be encrypted: nothing is said to it, exit status 69"""
    expect_unavailable(seen, "", "l2cap-unencrypted", "rfcomm-unencrypted")
    status, *said = seen["foreign"][0].split()
    expect(status != "0" and not any(word.startswith("87") for word in said), f"the foreign peer: {seen['foreign'][0]}")
    expect_equal(seen["unencrypted-answers"], ["0"], "answers of the device")


def allows_unencrypted(seen):
    """security=low accepts that peer, and the device warns when it begins"""
    expect_accepted(seen, "l2cap-low", "rfcomm-low")
    for endpoint in ("psm=0x1005,security=low", "channel=7,security=low"):
        expect(f"{endpoint}: links may be unencrypted" in seen["warned"][0], f"warned of: {seen['warned'][0]}")
    expect_equal(seen["warned"][0].count("unencrypted"), 2, "endpoints warned of")


def accepts_just_works(seen):
    """medium accepts a peer that has paired without anybody looking, over BR/EDR and LE"""
    expect_accepted(seen, "l2cap-medium", "le-medium")


def refuses_just_works(seen):
    """high refuses that peer: exit status 69, and the device answers nothing"""
    expect_unavailable(seen, "", "l2cap-high")
    expect_equal(seen["high-answers"], ["0"], "answers of the device")


def asks_over_low_energy(seen):
    """over LE, medium refuses a peer whose host has nobody to confirm pairing"""
    expect_unavailable(seen, "", "le-unconfirmed")
    expect_equal(seen["unconfirmed-answers"], ["0"], "answers of the device")


def names_adapters(seen):
    """an adapter that there is not, that is down, and an address of no adapter: exit status 69 and a hint, at both ends"""
    expect_unavailable(seen, "there is no such Bluetooth adapter", "no-adapter", "serve-no-adapter", "serve-not-ours")
    expect_unavailable(seen, "the Bluetooth adapter is down", "adapter-down", "serve-down")


def names_absent_hosts(seen):
    """an address that nobody has: exit status 69 and a hint, in time"""
    expect_unavailable(seen, "does not answer by radio", "l2cap-nobody", "rfcomm-nobody")
    expect_unavailable(seen, "did not answer in time", "le-nobody")


def names_absent_listeners(seen):
    """a PSM or channel where nobody listens: exit status 69 and a hint"""
    expect_unavailable(seen, "nothing is listening at", *(f"{kind}-no-listener" for kind in KINDS))


def notices_lost_links(seen):
    """a link that goes down, and either adapter that is powered off, in mid-round: exit status 69 and a hint, in time"""
    for name in ("l2cap-lost", "rfcomm-lost", "prover-off", "device-off"):
        Tried(seen, name).expect(69, "closed the connection|the radio link was lost.* hint: ")
        seconds = float(seen[f"{name}-ended"][0])
        expect(seconds < TIMEOUT_SECONDS + SLACK_SECONDS, f"{name}: {seconds} s after the break")


def goes_on(seen):
    """after each of these the device serves as before"""
    expect_accepted(seen, "l2cap-after", "rfcomm-after", "prover-on", "device-on", "last")


CHECKS = [
    refuses_unencrypted,
    allows_unencrypted,
    accepts_just_works,
    refuses_just_works,
    asks_over_low_energy,
    names_adapters,
    names_absent_hosts,
    names_absent_listeners,
    notices_lost_links,
    goes_on,
]
