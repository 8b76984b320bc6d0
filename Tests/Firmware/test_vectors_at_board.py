"""`vectors replay --target` at a board with the key of the vectors: what its whole program judges, as a device on Linux does."""

import re
import tempfile

import pytest
from board_device import BoardDevice
from devices import Terminal
from holdfast_peer.command_line import read_descriptor
from vector_files import SESSION, VECTORS, excerpt


class VectorsBoard(BoardDevice):
    """A board with the published key of the vectors, and its owner's descriptor of it."""

    def prepare(self):
        self.command_line.succeed("vectors", "device", SESSION, *self.device_arguments)
        self.descriptor = read_descriptor(self.command_line.read_json("device", "show", *self.device_arguments))


@pytest.fixture(scope="module")
def board(holdfast, images_are_built):
    with tempfile.TemporaryDirectory(prefix="hf") as folder, VectorsBoard(holdfast, folder).prepared() as board:
        yield board


def few_rounds(test):
    """Whether a test needs less than five rounds, which each accepted number takes."""
    return len(test.get("accepted", [])) < 5


MESSAGES = {"SessionM2", "SessionCompatibility", "SessionRequest", "SessionRound", "RequestNumber"}


@pytest.mark.parametrize(
    "name, kinds, each",
    [
        ("session_test.json", MESSAGES, 12),
        ("activation_test.json", {"ActivationMessage"}, 20),
        ("measurement_token_test.json", None, 160),
        ("frames_test.json", None, 6),
        ("bulletin.json", {"BulletinMessage", "Bulletin"}, 60),
        ("audit_page_test.json", {"AuditMail"}, 15),
    ],
)
def test_the_firmware_judges_vectors_as_linux_does(board, tmp_path, name, kinds, each):
    files = [excerpt(tmp_path, VECTORS / name, each, kinds, few_rounds)]
    if name in ("bulletin.json", "audit_page_test.json"):
        # It has the issuer's private key.
        files.append(excerpt(tmp_path, SESSION, 60, {"RequestNumber"}, few_rounds))
    board.leave_line()
    with Terminal(board.socket) as terminal:
        done = board.command_line.run(
            "vectors", "replay", *files, "--target", f"tty:{terminal.name}", "--timeout", 60, timeout=1800
        )
    counts = re.search(rb"(\d+) passed, (\d+) failed, (\d+) skipped", done.stdout)
    assert done.returncode == 0 and counts, done.stdout + done.stderr
    passed, _, skipped = map(int, counts.groups())
    assert passed >= skipped, done.stdout
