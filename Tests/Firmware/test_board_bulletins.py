"""Bulletins at a board: taken, refused, kept through power cuts, and what taking one costs.

Tests/Couriers/ tries the rules themselves at a device on Linux; these are about a board's flash, its line and its limits.
Source: docs/couriers.md.
"""

import contextlib
import json
import pathlib
import secrets
import tempfile
import time

import pytest
import script
from board_device import BoardDevice
from couriers import GROUPS, Courier, Press, ask_status, compatibility_status, revocation
from device import Device
from devices import wait_for
from holdfast_peer import bulletins, pages, session
from holdfast_peer.command_line import stop
from holdfast_peer.issuer import Issuer
from holdfast_peer.session import COSE
from provisioned import USERS_POLICY

LARGEST, YEAR, MOST_REVOKED, MOST_MESSAGES = 2**53 - 1, 365 * 86400, 64, 8
# A check of a signature hashes what is signed, and verifies the digest, in instructions. The latter differs by 1 % from one to the next.
HASH_OF_A_BYTE, VERIFICATION = 37, 1_313_000
# An emulated processor takes its time for a signature.
COURIER = ("--courier", "20000")


class VisitedBoard(BoardDevice):
    """A board in two groups, whose tokens have the right time."""

    def grant(self, encoding, issuer=None, **claims):
        return super().grant(encoding, issuer, **{"issuedAt": int(time.time()), **claims})

    @property
    def audiences(self):
        return [self.descriptor.device_id, *map(bulletins.group_id, GROUPS)]

    def audit(self):
        return json.loads(self.owner("audit", "--json").stdout)["entries"]


class LineCourier(Courier):
    """A courier at a serial line, where another M1 ends a connection."""

    def expect_another_m1(self):
        message = self.prover.connection.receive()
        assert session.parse_message_1(message) and message != self.prover.m1, "the open round went on"
        self.prover.m1 = message


@pytest.fixture
def board(images_are_built, holdfast):
    with tempfile.TemporaryDirectory(prefix="hf", ignore_cleanup_errors=True) as name:
        policy = pathlib.Path(name) / "policy.json"
        rules = json.loads(json.dumps(USERS_POLICY))
        rules["commands"]["unlock"]["compatibility"] = True
        policy.write_text(json.dumps(rules))
        groups = [word for group in GROUPS for word in ("--group", group)]
        with VisitedBoard(holdfast, name, "--policy", policy, *groups).prepared() as board:
            yield board


@pytest.fixture
def press(board):
    return Press(board)


def courier_at(board):
    return LineCourier(board)


@contextlib.contextmanager
def bridge(board):
    """A bridge before the board's line; its endpoint."""
    socket, log = board.folder / "bridge.socket", board.folder / "bridge.log"
    with log.open("wb") as file:
        process = board.command_line.start(
            "device", "bridge", "--listen", f"unix:{socket}", "--to", board.endpoint, stderr=file
        )
    try:
        wait_for(lambda: b"listening" in log.read_bytes(), "the bridge does not listen")
        yield f"unix:{socket}"
    finally:
        stop(process)


def test_a_revoked_token_is_refused_in_every_form_and_after_a_reset(board, press):
    victim = board.grant(COSE)
    assert ask_status(board, victim) == "accepted"
    assert ask_status(board, victim, by_reference=True) == "accepted"
    courier = courier_at(board)
    courier.publish(press, revoked=[revocation(victim)])
    for _ in range(2):
        assert ask_status(board, victim) == "tokenRevoked"
        assert compatibility_status(board, victim) == "tokenRevoked"
        board.restart()
    courier = courier_at(board)
    assert courier.round().result["bulletins"] == press.state
    assert ask_status(board, victim) == "tokenRevoked"
    taken = [each for each in board.audit() if each["event"] == "bulletin"]
    assert [each["number"] for each in taken] == [press.numbers[board.descriptor.device_id]]
    assert board.owner("audit", "--verify").returncode == 0


def test_a_remembered_token_is_refused_at_once(board, press):
    courier = courier_at(board)
    courier.accepted()
    claims = press.claims(revoked=[revocation(courier.grant)])
    assert courier.deliver(press.sign(claims)) == "taken"
    outcome = courier.round(by_reference=True)
    assert session.NAMES[outcome.status] == "tokenRevoked"


def test_the_65th_theft_reaches_a_board_too(board, press):
    tokens = sorted(secrets.token_bytes(16) for _ in range(MOST_REVOKED))
    courier = courier_at(board)
    for half in (tokens[:32], tokens[32:]):
        courier.publish(press, revoked=[[token, LARGEST] for token in half])
    victim = board.grant(COSE)
    full = press.claims(revoked=[revocation(victim)])
    assert courier.accepted().deliver(press.sign(full)) == "full"
    assert courier.round().result["bulletins"] == press.state
    assert ask_status(board, victim) == "accepted"
    courier = courier_at(board)
    courier.publish(press, generation=9)
    assert ask_status(board, victim) == "tokenRevoked"
    newer = LineCourier(board, generation=9)
    assert newer.round().result["bulletins"] == press.state
    for token in (tokens[0], tokens[-1]):
        assert ask_status(board, board.grant(COSE, tokenId=token, generation=9)) == "tokenRevoked"


def test_groups_of_the_image_are_audiences(board, press):
    victim = board.grant(COSE)
    courier = courier_at(board)
    for group in GROUPS:
        courier.publish(press, bulletins.group_id(group))
    courier.publish(press, bulletins.group_id(GROUPS[0]), revoked=[revocation(victim)])
    courier.accepted()
    assert courier.ask() == press.list
    assert courier.deliver(press.sign(press.claims(bulletins.group_id("south")))) == "notAddressed"
    assert courier.round().result["bulletins"] == press.state
    assert ask_status(board, victim) == "tokenRevoked"


def test_forged_older_foreign_and_cut_ones_are_refused_and_change_nothing(board, press):
    courier = courier_at(board)
    first = courier.publish(press)
    second = courier.publish(press, generation=1)
    good = press.sign(press.claims(generation=5))
    for old in (first, second):
        assert courier.accepted().deliver(press.sign(old)) == "known"
    gap = press.claims(number=press.claims()["number"] + 2, predecessor=press.claims()["number"] + 1)
    assert courier.accepted().deliver(press.sign(gap)) == "missed"
    assert courier.accepted().deliver(press.sign(press.claims(secrets.token_bytes(16)))) == "notAddressed"
    assert courier.accepted().deliver(Press(board, Issuer()).sign(press.claims())) == "refused"
    for length in range(0, len(good), 16):
        courier.accepted()
        assert courier.deliver(good[:length]) == "refused", f"{length} bytes"
    named = bulletins.protected(press.issuer.key.kid)
    for forgery in (
        good[:-1] + bytes([good[-1] ^ 1]),
        bulletins.sign(press.claims(), Issuer().key, protected=named),
        bulletins.sign(press.claims(), press.issuer.key, signature=bytes(64)),
    ):
        courier = courier_at(board).accepted()
        assert courier.deliver(forgery) == "refused"
        courier.expect_another_m1()
        # The permission ended with the connection.
        courier.expect_malformed(bulletins.deliver(good))
    courier = courier_at(board)
    fields = bulletins.to_map(press.claims())
    for wrong in ({**fields, 11: 0}, {**fields, 0: 0}, {k: v for k, v in fields.items() if k != 4}, {**fields, 5: []}):
        bulletin = bulletins.sign(bulletins.cbor.encode(wrong), press.issuer.key)
        assert courier.accepted().deliver(bulletin) == "refused"
    assert courier.round().result["bulletins"] == press.state
    assert len([each for each in board.audit() if each["event"] == "bulletin"]) == 2


def test_what_a_board_has_no_room_for_is_full_and_changes_nothing(board, press):
    courier = courier_at(board)
    point = Issuer().key.point
    now = int(time.time())
    for contents in (
        {"versions": [["app", 1, 0, 0]]},
        {"introduced": [[point[1:33], point[33:], now, now + 1000]]},
        {"ended": [press.issuer.key.kid]},
        {"revoked": sorted([secrets.token_bytes(16), LARGEST] for _ in range(65))},
        {"revoked": [revocation(courier.grant)], "versions": [["app", 1, 0, 0]]},
    ):
        assert courier.accepted().deliver(press.sign(press.claims(**contents))) == "full", contents
    assert courier.accepted().deliver(press.seal(press.claims(generation=9))) == "refused", "a sealed one"
    assert courier.round().result["bulletins"] == press.state


def test_one_check_a_round_and_eight_messages(board, press):
    courier = courier_at(board)
    courier.accepted()
    claims = press.claims()
    assert courier.deliver(press.sign(claims)) == "taken"
    press.note(claims)
    assert courier.deliver(press.sign(press.claims())) == "busy"
    for _ in range(MOST_MESSAGES - 2):
        assert courier.ask() == press.list
    courier.expect_malformed(bulletins.ASK)
    # Without a home of the audit log, there is no page, and no receipt counts.
    courier = courier_at(board).accepted()
    assert pages.parse_page(courier.send(pages.ask())) is None
    assert bulletins.parse_answer(courier.send(pages.acknowledge(b"")))[0] == "refused"
    # A message of another peer comes on another connection.
    courier_at(board).accepted()
    stranger = courier_at(board)
    stranger.expect_malformed(bulletins.deliver(press.sign(press.claims())))
    assert courier_at(board).round().result["bulletins"] == press.state


@pytest.mark.parametrize("bridged", [False, True], ids=["line", "bridge"])
def test_a_stolen_phone_is_refused_once_another_one_has_been_at_the_board(board, bridged):
    run, phones = board.command_line, [board.folder / name for name in ("phone", "stolen")]
    service, descriptor = board.service()
    for phone in phones:
        run.succeed("enroll", "--device", descriptor, "--service", service, "--state", phone)
    with bridge(board) if bridged else contextlib.nullcontext(board.endpoint) as endpoint:

        def prove(phone):
            words = ("--connect", endpoint, "--state", phone, "--command", "status", *COURIER, "--timeout", "60")
            return json.loads(run.run("prove", *words, "--json").stdout)

        assert [prove(phone)["status"] for phone in phones] == ["accepted", "accepted"]
        stolen = run.read_json("service", "tokens", "--dir", service)["tokens"][-1]["id"]
        for token in (stolen, "00" * 16):
            run.succeed("service", "bulletin", "--dir", service, "--device", descriptor, "--revoke", token)
            run.succeed("sync", "--state", phones[0], "--service", service)
            assert prove(phones[0])["bulletins_delivered"] == 1
            assert prove(phones[1])["status"] == "tokenRevoked"
        assert "bulletins_delivered" not in prove(phones[0])


def test_what_taking_a_bulletin_costs(images_are_built, holdfast, folder):
    """At most 1.1 times the check of its signature, also if it fills the list."""
    provisioned = script.Provisioned(holdfast, folder)
    with provisioned.device("bulletins") as device:
        assert isinstance(device, Device)
        grant = provisioned.signed(COSE)
        script.ask(device, grant)
        for number, count in enumerate((0, 1, 8, 55), start=1):
            script.remembered(device, grant)
            now = int(time.time())
            claims = {
                "number": 1000 * now + number,
                "predecessor": 0,
                "issuedAt": now,
                "audience": provisioned.descriptor.device_id,
            }
            if count:
                claims["revoked"] = sorted([secrets.token_bytes(16), now + YEAR] for _ in range(count))
            bulletin = bulletins.sign(claims, provisioned.issuer.key)
            message = bulletins.deliver(bulletin)
            assert bulletins.parse_answer(device.exchange(message, opens_round=False)) == ("taken", None)
            took = device.instructions()
            check = HASH_OF_A_BYTE * len(bulletin) + VERIFICATION
            print(f"a bulletin with {count} revoked tokens: {took:,} instructions, {took / check:.3f} checks")
            assert took <= 1.1 * check, f"{took:,} instructions for {count} revoked tokens"
        assert max(stack for _, _, stack in device.answers()) <= 8192
