"""What a line and a board without a clock do otherwise than the Linux device, check by check, and what they cannot do."""

from device_situations import expect_status
from holdfast_peer import session
from holdfast_peer.checks import expect, expect_equal
from holdfast_peer.keys import mac_key_id
from holdfast_peer.session import COSE, STATUS

ONE_LINE = "a line has one prover at a time"
GIVEN_POLICY = "an image gets its policy when it is made"
OWNER = "it is about the owner's command line, which is the same for an image"

NOT_ON_A_BOARD = {
    "two connections with rounds between each other's": ONE_LINE,
    "a silent connection does not hold the device": ONE_LINE,
    "of twenty connections with one password, exactly one is accepted": ONE_LINE,
    "of twenty connections with one activation code, exactly one is activated": ONE_LINE,
    "the policy's switch holds from the next round on, also for a token that is remembered": GIVEN_POLICY,
    "holdfast prove gives a password from standard input and a seal from a file": GIVEN_POLICY,
    "neither trust nor show nor the audit log prints a key": OWNER,
    "a file that others may read, and one that holds another key, are not trusted": OWNER,
    "a key goes into a new file and nowhere else": OWNER,
    "--mac goes with COSE alone": OWNER,
    "secrets of files are refused where they are none, and nothing is changed": OWNER,
}
INSTEAD = {}

POLICY_WITH_MAC = {
    "version": 1, "issuer": {"mac": True},
    "commands": {"lock": {"factors": ["integrity", "device"]}, "unlock": {"factors": ["integrity", "device"]},
                 "status": {"factors": ["device"]}}}


def instead(name):
    """Registers what a board is asked in the place of a check."""
    def register(body):
        INSTEAD[name] = body
        return body
    return register


@instead("a message of 4097 bytes is malformed and ends the connection")
def _(world, prover):
    # Bytes are dropped until the line was silent for a second; then there is a fresh challenge.
    message = prover.attempt(world.grant(COSE)).message()
    before = prover.next_m1()
    prover.connection.send(message + bytes(4097 - len(message)))
    prover.m1 = None
    expect(prover.next_m1() != before, "the challenge is still open")
    expect_status(prover.ask(world.grant(COSE)), "accepted", "a good round afterwards")


@instead("an M2 made for another connection is a device mismatch there")
def _(world, prover, encoding):
    attempt = prover.attempt(world.grant(encoding))
    other = world.connect()
    with other.connection:
        m3 = session.parse_message_3(other.exchange(attempt.message()))
        expect_equal((m3["status"], m3["sealed"]), (STATUS["deviceMismatch"], None), "on the next connection")


@instead("trust in a shared key ends like any, and begins again")
def _(world):
    # The board has forgotten its tokens when it is switched on again.
    grant = world.mac_grant()
    expect_status(world.status(grant), "accepted")
    for how in (mac_key_id(world.key).hex(), world.folder / "mac.jwk"):
        expect_equal(world.trust("--remove", how).returncode, 0, "exit status of --remove")
        expect_status(world.status(grant), "tokenInvalid", "in full")
        expect_equal(world.trust("--remove", how).returncode, 1, "exit status of a second --remove")
        expect_equal(world.trust(world.folder / "mac.jwk").returncode, 0, "exit status of trust")
        expect_status(world.status(grant), "accepted", "trusted again")
