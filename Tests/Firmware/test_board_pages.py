"""A board's audit log goes home: pages, receipts, a full log, and power cuts around a receipt.

Tests/Couriers/test_pages.py tries the same rules at a device on Linux; these are about a board's flash, its line and its limits.
Source: docs/couriers.md, The audit log goes home.
"""

import contextlib
import json
import pathlib
import secrets
import tempfile
import time

import pytest
from board_device import BoardDevice
from couriers import MALFORMED_ABOUT_PAGES, expect_pages_once_each
from holdfast_peer import audit, cbor, pages, session
from holdfast_peer.issuer import Issuer
from holdfast_peer.keys import PrivateKey, jwk
from provisioned import USERS_POLICY
from test_board_bulletins import COURIER, LineCourier, bridge

LARGEST, MOST_TEXT, MOST_ENTRIES = 2**53 - 1, 1024, 23
# More rounds than the journal keeps entries of.
MANY_ROUNDS = 500


class HomedBoard(BoardDevice):
    """A board whose log has a home, which the test plays. Its tokens have the right time."""

    def __init__(self, holdfast, folder, **rules):
        super().__init__(holdfast, folder)
        self.agreement = PrivateKey()
        policy = {**USERS_POLICY, "audit": {"home": self.issuer.key.kid.hex(), **rules}}
        (self.folder / "policy.json").write_text(json.dumps(policy))
        self.init_arguments = ("--policy", self.folder / "policy.json")

    def prepare(self):
        super().prepare()
        announced = self.folder / "home.json"
        point = self.issuer.key.point
        announced.write_text(json.dumps({"issuer": jwk(point), "agreement": jwk(self.agreement.point)}))
        assert self.owner("trust", announced).returncode == 0
        self.home = pages.Home(self.agreement, self.descriptor, self.issuer.key)

    def grant(self, encoding, issuer=None, **claims):
        return super().grant(encoding, issuer, **{"issuedAt": int(time.time()), **claims})

    def log(self):
        """The entries that the image has, oldest first."""
        return json.loads(self.owner("audit", "--json").stdout)["entries"]


class Carrier(LineCourier):
    def round_by_reference(self, command="status"):
        return self.round(command=command, by_reference=True)


@contextlib.contextmanager
def homed_board(holdfast, **rules):
    with (
        tempfile.TemporaryDirectory(prefix="hf", ignore_cleanup_errors=True) as name,
        HomedBoard(holdfast, name, **rules).prepared() as board,
    ):
        yield board


@pytest.fixture
def board(images_are_built, holdfast):
    with homed_board(holdfast) as board:
        yield board


def carry_home(board, carrier, most=200):
    """Fetches pages until the home has everything that the last one knew; how many."""
    for count in range(1, most):
        carrier.accepted()
        page = board.home.take(carrier.page())
        assert page["cut"] == 0
        if page["after"] + len(page["entries"]) == page["count"]:
            assert board.home.through == page["count"], "entries are missing"
            return count
    raise AssertionError("the log does not end")


def test_the_whole_log_of_a_board_comes_home_in_pages(board):
    carrier = Carrier(board)
    for _ in range(40):
        carrier.accepted()
    count = carry_home(board, carrier)
    assert count > 2
    home = board.home
    for number, entry in home.entries.items():
        assert audit.parse_entry(entry)[0] == number
    log = board.log()
    assert [each["sequence"] for each in log][: home.through] == sorted(home.entries)
    assert board.owner("audit", "--verify").returncode == 0
    carrier = Carrier(board)
    carrier.accepted()
    page = pages.open_page(carrier.page(1), board.agreement, board.descriptor, board.issuer.key.kid)
    assert len(pages.padded(list(page.values()))) <= MOST_TEXT
    assert len(page["entries"]) <= MOST_ENTRIES


def test_pages_are_for_those_who_were_accepted_once_each_and_leave_the_challenge_as_it_was(board):
    expect_pages_once_each(lambda: Carrier(board), board.home)


@pytest.mark.parametrize("message", MALFORMED_ABOUT_PAGES, ids=repr)
def test_a_malformed_message_ends_the_connection(board, message):
    carrier = Carrier(board)
    carrier.accepted()
    carrier.expect_malformed(cbor.encode(message))


def test_receipts_that_are_forged_foreign_wrong_or_old_acknowledge_nothing(board):
    carrier = Carrier(board)
    carry_home(board, carrier)
    device, home = board.descriptor.device_id, board.home
    through, head, key = home.through, home.heads[home.through], board.issuer.key
    good = home.receipt()
    for receipt, expected in (
        (b"", "refused"),
        (pages.receipt(device, through, head, Issuer().key), "refused"),
        (pages.receipt(secrets.token_bytes(16), through, head, key), "notAddressed"),
        (pages.receipt(device, through, bytes(32), key), "refused"),
        (pages.receipt(device, LARGEST, head, key), "refused"),
    ):
        assert carrier.accepted().hand_over(receipt) == expected
    carrier.accepted()
    assert carrier.hand_over(good[:-1] + bytes([good[-1] ^ 1])) == "refused"
    carrier.expect_another_m1()
    carrier.expect_malformed(pages.ask())
    carrier = Carrier(board)
    # Nothing is acknowledged yet.
    assert board.home.take(carrier.accepted().page())["after"] == 0
    assert carrier.accepted().hand_over(good) == "taken"
    assert carrier.hand_over(good) == "known"
    assert carrier.hand_over(pages.receipt(device, LARGEST, head, key)) == "busy"
    assert carrier.accepted().hand_over(pages.receipt(device, through - 1, home.heads[through - 1], key)) == "known"
    refused = [each["count"] for each in board.log() if each["event"] == "receipt-refused"]
    assert refused == [through, LARGEST]
    carrier = Carrier(board)
    assert board.home.take(carrier.accepted().page())["after"] == through, "it stays acknowledged after a start"


def test_acknowledged_entries_go_first_and_a_full_log_counts_what_it_loses(board):
    carrier = Carrier(board)
    carry_home(board, carrier)
    assert carrier.accepted().hand_over(board.home.receipt()) == "taken"
    for _ in range(MANY_ROUNDS):
        assert session.NAMES[carrier.round_by_reference().status] == "accepted"
    log = board.log()
    assert board.owner("audit", "--verify").returncode == 0
    lost = [each["entries"] for each in log if each["event"] == "entries-lost"]
    assert lost and log[0]["sequence"] > board.home.through + sum(lost)
    carrier = Carrier(board)
    page = pages.open_page(carrier.accepted().page(), board.agreement, board.descriptor, board.issuer.key.kid)
    assert page["cut"] == page["after"] == log[0]["sequence"] - 1


def test_a_board_that_may_lose_nothing_refuses_until_its_log_is_home(images_are_built, holdfast):
    with homed_board(holdfast, entries=1000, when_full="refuse") as board:
        carrier = Carrier(board)
        carrier.accepted()
        for _ in range(MANY_ROUNDS):
            outcome = carrier.round_by_reference("unlock")
            if session.NAMES[outcome.status] != "accepted":
                break
        assert (session.NAMES[outcome.status], outcome.result["result"]) == ("commandRefused", b"auditLogFull")
        for _ in range(100):
            page = board.home.take(carrier.page())
            if board.home.through == page["count"]:
                break
            assert session.NAMES[carrier.round_by_reference("unlock").status] == "commandRefused"
        assert board.home.cut == 0 and board.home.through == page["count"]
        assert session.NAMES[carrier.round_by_reference("unlock").status] == "commandRefused"
        assert carrier.hand_over(board.home.receipt()) == "taken"
        assert session.NAMES[carrier.round_by_reference("unlock").status] == "accepted"
        assert not [each for each in board.log() if each["event"] == "entries-lost"]


def test_a_receipt_survives_a_power_cut_once_it_is_answered_and_is_whole_or_absent_before(board):
    """Tests/HoldfastFirmwareTests/PowerCut/ cuts the power at every word."""
    carrier = Carrier(board)
    carry_home(board, carrier)
    receipt, through = board.home.receipt(), board.home.through
    for pause in (0, 0.005, 0.02, 0.1):
        carrier.accepted()
        carrier.prover.next_m1()
        carrier.prover.connection.send(pages.acknowledge(receipt))
        time.sleep(pause)
        board.cut_power()
        carrier = Carrier(board)
        page = pages.open_page(carrier.accepted().page(), board.agreement, board.descriptor, board.issuer.key.kid)
        assert page["after"] in (0, through)
    assert carrier.accepted().hand_over(receipt) in ("taken", "known")
    board.cut_power()
    carrier = Carrier(board)
    page = pages.open_page(carrier.accepted().page(), board.agreement, board.descriptor, board.issuer.key.kid)
    assert page["after"] == through


@pytest.mark.parametrize("bridged", [False, True], ids=["line", "bridge"])
def test_a_prover_carries_the_log_of_a_board_to_its_service(images_are_built, holdfast, bridged):
    with tempfile.TemporaryDirectory(prefix="hf", ignore_cleanup_errors=True) as name:
        folder = pathlib.Path(name)
        board = BoardDevice(holdfast, name)
        run, service, phone, descriptor = board.command_line, folder / "service", folder / "phone", folder / "lock.json"
        run.succeed("service", "init", "--dir", service)
        shown = folder / "service.json"
        shown.write_text(json.dumps(run.read_json("service", "show", "--dir", service)))
        home = json.loads(shown.read_text())["kid"]
        policy = folder / "policy.json"
        policy.write_text(json.dumps({**USERS_POLICY, "audit": {"home": home}}))
        board.init_arguments = ("--policy", policy, "--trust", shown)
        try:
            board.prepare()
            descriptor.write_bytes(board.owner("show", "--json").stdout)
            run.succeed("service", "device", "add", "--dir", service, descriptor)
            run.succeed("enroll", "--device", descriptor, "--service", service, "--state", phone)
            with bridge(board) if bridged else contextlib.nullcontext(board.endpoint) as endpoint:

                def prove():
                    command = (
                        "prove",
                        "--connect",
                        endpoint,
                        "--state",
                        phone,
                        "--command",
                        "status",
                        *COURIER,
                        "--timeout",
                        "60",
                        "--json",
                    )
                    return json.loads(run.run(*command).stdout)

                taken = prove()
                assert taken["status"] == "accepted" and taken["audit_page_taken"] is True
                run.succeed("sync", "--state", phone, "--service", service)
                log = run.read_json("service", "audit", "--dir", service, "--device", descriptor)
                assert (log["missing"], log["forked"]) == (None, False) and log["count"] == len(log["entries"])
                run.succeed("sync", "--state", phone, "--service", service)
                assert prove()["status"] == "accepted"
                run.succeed("sync", "--state", phone, "--service", service)
                more = run.read_json("service", "audit", "--dir", service, "--device", descriptor)
                assert more["count"] > log["count"] and more["missing"] is None
            assert json.loads(board.owner("show", "--all", "--json").stdout)["audit_acknowledged"] >= log["count"]
        finally:
            board.close()
