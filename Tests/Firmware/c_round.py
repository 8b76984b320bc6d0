"""The same steps in C on the same board: what it answers is the device's, byte for byte, and what both took is compared."""

import struct

from board import INSTRUCTIONS_A_TICK, Board
from device import BUILD
from holdfast_peer import session
from holdfast_peer.checks import expect_equal
from holdfast_peer.prover import Attempt

FLASH = 128 * 1024


class CDevice(Board):
    """The image in C, over the flash image in a folder."""

    def __init__(self, folder):
        super().__init__(folder, "--still", firmware=BUILD / "c-round.elf")

    def answer(self, m1, m2):
        """M3, the instructions that it took, and those of the curve among them."""
        self.socket.sendall(b"".join(struct.pack(">H", len(message)) + message for message in (m1, m2)))
        ticks, curve_ticks, count = struct.unpack(">IIH", self.receive(10))
        return self.receive(count), ticks * INSTRUCTIONS_A_TICK, curve_ticks * INSTRUCTIONS_A_TICK


def flash(board):
    return board.image.read_bytes()[:FLASH]


class Pair:
    """A device, and the one in C that begins with a copy of its flash; both are asked the same."""

    def __init__(self, world, device):
        self.device = device
        folder = world.folder / "c"
        folder.mkdir()
        (folder / "image").write_bytes(device.image.read_bytes())
        self.c_device = CDevice(folder)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.c_device.cut_power()

    def answer(self, m1, m2, what):
        """What the device took, what the one in C took, and what of both is the curve's; the rest has to be the same."""
        m3 = self.device.exchange(m2)
        c_m3, c_taken, curve = self.c_device.answer(m1, m2)
        expect_equal(c_m3, m3, f"{what}: M3 in C")
        expect_equal(flash(self.c_device) == flash(self.device), True, f"{what}: whether C leaves the same flash")
        return self.device.instructions(), c_taken, curve

    def share(self, grant, what, **how):
        """Swift's instructions outside the curve, by those of C."""
        m1 = self.device.m1
        taken, c_taken, curve = self.answer(m1, Attempt(m1, grant, **how).message(), what)
        return (taken - curve) / (c_taken - curve)

    def expect_the_same_numbers(self, grant):
        """What becomes of request numbers: new ones, repetitions, those in the window and below it."""
        for command, parameters, number in (
                ("unlock", None, 1000), ("unlock", None, 1000), ("lock", None, 1000), ("unlock", ["x"], 1000), ("status", None, 990),
                ("status", None, 990), ("unlock", None, 936), ("unlock", None, 935), ("lock", [], 1064), ("lock", None, 1064),
                ("unlock", None, 1000), ("lock", ["a", "b"], 1200), ("unlock", None, 0), ("unlock", None, 2**53 - 1),
                ("unlock", None, 2**53 - 1), ("no such command", None, 2**53 - 2), ("unlock", None, 2**53 - 2)):
            m1 = self.device.m1
            request = session.request(command, parameters, number=number)
            self.answer(m1, Attempt(m1, grant, by_reference=True, request=request).message(), f"number {number} of {command}")

    def expect_the_same_refusals(self, grant, stranger):
        """What is wrong with a round is seen by both."""
        wrong = bytes(32)
        for what, token, how in (
                ("an unknown reference", stranger, {"by_reference": True}), ("a stranger's token", stranger, {}),
                ("a wrong device proof", grant, {"by_reference": True, "dmp": wrong}),
                ("a wrong integrity proof", grant, {"by_reference": True, "imp": wrong}),
                ("no integrity proof", grant, {"by_reference": True, "imp": None}),
                ("an unknown command", grant, {"by_reference": True, "command": "no such command"}),
                ("a code that nobody needs", grant, {
                    "by_reference": True, "request": session.request("status", ["a", "b"], otp=("alice", "0"))})):
            m1 = self.device.m1
            self.answer(m1, Attempt(m1, token, **how).message(), what)


def shares(world):
    """Swift's share of a first token and of a round with a remembered one, each a multiple of C's."""
    grant, stranger = world.signed(session.COSE), world.strangers()
    with world.device("beside C") as device, Pair(world, device) as pair:
        first = pair.share(grant, "a first token")
        numbered = session.request("unlock", number=1_790_000_100_000_000)
        remembered = pair.share(grant, "a remembered token", by_reference=True, request=numbered)
        by_mac = pair.share(world.authenticated(), "a token under a MAC")
        pair.expect_the_same_refusals(grant, stranger)
        other = world.signed(session.COSE)
        pair.share(other, "another first token")
        pair.expect_the_same_numbers(other)
    return {"a first token": first, "a token under a MAC": by_mac, "a remembered token": remembered}
