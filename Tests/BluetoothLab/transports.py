"""One device at every transport at once: provers are accepted and denied, and one round is watched on the air."""

import base64

import btsnoop
import served
from holdfast_peer.checks import expect, expect_equal
from served import KINDS, Tried, expect_accepted

PSM = 0x1001
# L2CAP's own MTU, where nothing else is agreed.
USUAL_MTU = 672
PARAMETERS = 8 * 64


def observe(lab):
    return served.run(lab, "transports.sh")


def refuses(seen):
    """over each transport, a command that policy does not name is refused: commandRefused, exit status 1"""
    for kind in KINDS:
        Tried(seen, f"{kind}-refused").expect(1, "open: denied, commandRefused")


def counts_uses(seen):
    """a token for one use is used up over LE after a round over RFCOMM: usesExhausted, exit status 1"""
    expect_accepted(seen, "once")
    Tried(seen, "twice").expect(1, "status: denied, usesExhausted")


def carries_long_messages(seen):
    """over each transport, a token and eight parameters of 64 bytes, together longer than the usual MTU and the packets of the air, are carried"""
    expect(int(seen["token"][0]) + PARAMETERS > 1000 > USUAL_MTU, f"the token has {seen['token'][0]} bytes")
    expect_accepted(seen, *(f"{kind}-accepted" for kind in KINDS))


def knows_random_addresses(seen):
    """over LE, a device whose adapter has chosen its own address is reached by type=random"""
    expect_accepted(seen, "le-random")


def takes_three_packets(seen):
    """a round with a remembered token is three packets of at most 672 bytes: from the device, to it, from it"""
    packets = [what for what in conversation(seen) if what != "encrypted"]
    # The device may begin the next round before the prover, which has what it wants, has closed the channel.
    of_round, rest = packets[:3], packets[3:]
    expect_equal([direction for direction, _ in of_round], ["received", "sent", "received"], "packets")
    expect(all(packet[1][:3] == of_round[0][1][:3] for packet in rest) and len(rest) <= 1, f"after the round: {rest}")
    sizes = [len(payload) for _, payload in of_round]
    print(f"a round on the air: packets of {sizes} bytes", flush=True)
    expect(max(sizes) <= USUAL_MTU, f"{sizes} bytes")


def encrypts_first(seen):
    """the link is encrypted before the device says its first word"""
    expect_equal(conversation(seen)[:1], ["encrypted"], "what came first")


def conversation(seen):
    return btsnoop.conversation(base64.b64decode(seen["air"][0]), PSM)


def is_not_misled(seen):
    """what l2test and rctest send is malformed, and the device goes on"""
    expect_equal(seen["l2test"], ["0"], "exit status of l2test")
    expect_equal(seen["malformed"], ["2"], "answers that were malformed")
    expect_accepted(seen, "le-accepted")


CHECKS = [
    refuses,
    counts_uses,
    carries_long_messages,
    knows_random_addresses,
    takes_three_packets,
    encrypts_first,
    is_not_misled,
]
