"""What a device says of the test vectors: all that it judges, asked of the board that runs the image for them."""

import json
import tempfile

import pytest
from board import ROOT, Board
from holdfast_peer import claims, session
from holdfast_peer.session import COSE, JOSE, REFERENCE

FIRMWARE = ROOT / "firmware-sim" / ".build" / "vector-test.elf"

DEVICE, OPEN, REMEMBER, ANSWER = range(4)
VALUES, REQUEST, VERDICT, PROOF = range(16, 20)
M1_AGAIN, M2_AGAIN, M3_AGAIN, REQUEST_AGAIN = range(32, 36)
HOTP, TOTP, OCRA, SUITE = range(48, 52)

ACCEPTED = session.STATUS["accepted"]


def data(value):
    return bytes.fromhex(value)


def number(value):
    return value.to_bytes(8, "big")


class VectorBoard(Board):
    """The board, and how many rounds of vectors its device answered with the very M3."""

    def __init__(self, folder):
        super().__init__(folder, firmware=FIRMWARE)
        self.equal_verdicts, self.group = 0, None

    def become(self, group):
        """Gives the board the device of a group, where it has one."""
        if group is self.group:
            return
        self.group = group
        if "devicePrivateKey" in group:
            keys = ("devicePrivateKey", "devicePublicKey", "deviceKid", "deviceId", "issuerPublicKey", "issuerKid")
            shared = [data(group.get(name, "")) for name in ("macKey", "macKid")]
            made = self.ask(DEVICE, *(data(group[name]) for name in keys), *shared)
            assert made is not None, "keys and ids do not belong together"


def judge(test, answer, wanted):
    """`answer` is None for what was refused; `wanted` is what a valid test has to give."""
    if test["result"] == "valid":
        assert answer is not None, "refused"
        assert answer == wanted, "answer"
    else:
        assert answer is None or test["result"] == "acceptable", "accepted"


def token(encoding):
    def replay(board, group, test):
        switches = group["acceptUnsigned"] | group.get("acceptMac", False) << 1
        wanted = claims.to_cbor(read_claims(test["claims"])) if test["result"] == "valid" else None
        judge(test, board.ask(OPEN, bytes([encoding]), bytes([switches]), data(test["token"])), wanted)

    return replay


def read_claims(written):
    """Claims as a vector writes them, as this peer does. A version of 0.0.0 is as good as none, and read as that."""
    binary = {"audience", "tokenId", "integrity", "device", "proofKey"}
    return {
        name: data(value) if name in binary else value
        for name, value in written.items()
        if (name, value) != ("version", [0, 0, 0])
    }


def again(operation):
    def replay(board, _, test):
        message = data(test["message"])
        judge(test, board.ask(operation, message), message)

    return replay


def proof(board, _, test):
    made = board.ask(PROOF, data(test["mpk"]), data(test["nonce"]), data(test["measurement"]))
    if made != data(test["proof"]):
        made = None
    judge(test, made, data(test["proof"]))


def round_of_three(board, group, test):
    """A round as its test says: every value of a valid one is right, and one of an invalid one is not."""
    if test["result"] == "valid":
        check_round(board, group, test)
        return
    try:
        check_round(board, group, test)
    except AssertionError:
        return
    pytest.fail("the round is taken for a right one")


def check_round(board, _, test):
    """Every value of a round; then the device answers it."""
    m1, m2, m3, head = (data(test[name]) for name in ("m1", "m2", "m3", "head"))
    secrets = (data(test["mpk"]), data(test["device"]))
    names = ("th", "nonce", "kProverToDevice", "kDeviceToProver")
    assert board.ask(M1_AGAIN, m1) == m1, "M1"
    assert board.ask(VALUES, m1, head, *secrets) == b"".join(data(test[name]) for name in names), " ".join(names)
    for name, measurement in (("imp", "integrity"), ("dmp", "device")):
        if test[name] is not None:
            made = board.ask(PROOF, data(test["mpk"]), data(test["nonce"]), data(test[measurement]))
            assert made == data(test[name]), name
    assert board.ask(REQUEST, m1, head, *secrets, m2) == data(test["request"]), "request"
    if test["m3Plaintext"] is None:
        assert board.ask(M3_AGAIN, m3) == m3, "M3"
    else:
        made = board.ask(VERDICT, m1, head, *secrets, bytes([test["status"]]), data(test["m3Plaintext"]))
        assert made == m3, "M3"
    whole, encoding = whole_token(test)
    reference = board.ask(REMEMBER, bytes([encoding]), whole)
    if test["encoding"] == REFERENCE:
        assert reference == data(test["token"]), "reference"
    assert reference is not None, "the token is refused"
    answer_by_device(board, test, m1, m2, m3)


def whole_token(test):
    """The token in full, and its encoding."""
    if test["encoding"] != REFERENCE:
        return data(test["token"]), test["encoding"]
    whole = data(test["rememberedToken"])
    return whole, COSE if whole[0] == 0xD8 else JOSE


def answer_by_device(board, test, m1, m2, m3):
    """The device's own M3, where its state says nothing in it."""
    if test["status"] != ACCEPTED:
        return
    said = session.parse_result(data(test["m3Plaintext"]))
    if list(said) != ["result"]:
        return
    answer = board.ask(ANSWER, m1, m2, said["result"])
    assert answer is not None, "the device does not answer"
    # The decisions of rules depend on state that a vector does not describe.
    if answer[0] not in session.BY_RULES:
        assert (answer[0], answer[1:]) == (ACCEPTED, m3), "the device's status and M3"
        board.equal_verdicts += 1


def code(board, operation, test, *moment):
    made = board.ask(operation, data(test["secret"]), test["algorithm"].encode(), number(test["digits"]), *moment)
    judge_code(test, made, test["digits"] == 0)


def judge_code(test, made, is_whole):
    """An invalid test is a code that is another, or inputs that give none."""
    if made is not None and (made.hex() if is_whole else made.decode()) != test["code"]:
        made = None
    judge(test, made, made)


def hotp(board, _, test):
    code(board, HOTP, test, data(test["counter"]))


def totp(board, _, test):
    code(board, TOTP, test, number(test["time"]), number(test["period"]))


def ocra(board, _, test):
    names = ("counter", "pin", "session", "timeStep")
    given = sum(1 << bit for bit, name in enumerate(names) if name in test)
    made = board.ask(
        OCRA,
        data(test["secret"]),
        test["suite"].encode(),
        test["question"].encode(),
        bytes([given]),
        *(data(test.get(name, "")) for name in names),
    )
    judge_code(test, made, "-0:" in test["suite"])


def suite(board, _, test):
    judge(test, board.ask(SUITE, test["suite"].encode()), b"")


REPLAYS = {
    "MeasurementTokenCOSE": token(COSE),
    "MeasurementTokenJOSE": token(JOSE),
    "Proof": proof,
    "SessionRound": round_of_three,
    "SessionM1": again(M1_AGAIN),
    "SessionM2": again(M2_AGAIN),
    "SessionCompatibility": again(M2_AGAIN),
    "SessionM3": again(M3_AGAIN),
    "SessionRequest": again(REQUEST_AGAIN),
    "HOTP": hotp,
    "TOTP": totp,
    "OCRA": ocra,
    "OCRASuite": suite,
}
# What no device does, and why.
NOT_A_DEVICES = {
    "Measurement": "a prover measures, a device never sees components",
    "MeasurementConfiguration": "a prover keeps it, a device never sees it",
    "ReleaseKeys": "app and service have a release's keys, a device has none",
    "Evidence": "a prover makes it for the service, a device never sees it",
    "SessionReply": "a device writes it, a prover reads it",
    "OneUseCode": "the owner's program makes it, a person types it",
    "ActivationReply": "a device writes it, a user reads it",
    "ActivationGrant": "a device writes it, a user reads it",
    "Activation": "the user's end",
    "Unlocking": "the user's end",
    "UserSyncResult": "a device writes it, a user reads it",
    "UserStateResult": "a device writes it, a user reads it",
    "HostCodeResult": "a device writes it, a user reads it",
    "SealFields": "an authenticator brings texts into that form",
    "SealRequest": "a board makes none",
    "BulletinAnswer": "a device writes it, a prover reads it",
    "AuditPage": "a device writes it, the home of its log reads it",
    "AuditPageAnswer": "a device writes it, a prover reads it",
    "AuditEntry": "a device writes it, its owner reads it",
    "AuditFile": "a board writes no files",
    "FirmwareImage": "its owner reads it",
    "ServiceRecord": "a board has no Bluetooth",
    "ServiceAnswer": "a prover reads it",
    "AttestationToken": "a backend opens it",
    "ActuatorCommandsCBOR": "a board has no external actuator",
    "ActuatorCommandsJSON": "a board has no external actuator",
    "ActuatorAnswerCBOR": "a board has no external actuator",
    "ActuatorAnswerJSON": "a board has no external actuator",
    "ActuatorCommand": "a board has no external actuator",
    "StateString": "an authenticator writes it",
    "StateRecords": "an authenticator writes it",
    "StoreState": "an authenticator writes it",
    "UndoCode": "an authenticator makes it",
    "UndoCopy": "an authenticator writes it",
}
# What a device does only in its whole program, which this image is not, and where it is tested at the board.
AT_ITS_LINE = "`holdfast vectors replay --target` sends it to the firmware: test_vectors_at_board.py"
NOT_ASKED_HERE = {
    "Frames": AT_ITS_LINE,
    "RequestNumber": AT_ITS_LINE,
    "ActivationMessage": AT_ITS_LINE,
    "BulletinMessage": AT_ITS_LINE,
    "AuditMail": AT_ITS_LINE,
    "Bulletin": "an invalid one, as above; the others: test_board_bulletins.py",
    "BulletinState": "test_board_bulletins.py reads it in the firmware's M3",
    "BulletinGroup": "test_board_bulletins.py delivers bulletins to groups of the firmware",
    "AuditReceipt": "test_board_pages.py delivers receipts to the firmware",
    "ActivationAtDevice": "test_board_users.py activates users of the firmware, whose challenge and fresh key cannot be set",
    "UnlockingAtDevice": "test_board_users.py unlocks users of the firmware, whose challenge cannot be set",
    "SealQuestion": "test_board_users.py gives seals to the firmware",
    "Seal": "test_board_users.py gives seals to the firmware, whose time cannot be set",
}
# An invalid round whose fault is in a message that a device writes, and never reads.
NOT_READ = {"AnotherDevice"}
FILES = {path.name: json.loads(path.read_text()) for path in sorted((ROOT / "vectors").glob("*.json"))}
GROUPS = {
    f"{name} group {number} ({group['type']})": group
    for name, file in FILES.items()
    for number, group in enumerate(file["testGroups"], 1)
    if group["type"] not in NOT_A_DEVICES.keys() | NOT_ASKED_HERE.keys()
}
VECTORS = {
    f"{name} test {test['tcId']}": (group, test)
    for name, group in GROUPS.items()
    for test in group["tests"]
    if group["type"] != "SessionRound" or not NOT_READ & set(test["flags"])
}


@pytest.fixture(scope="module")
def vector_board(images_are_built):
    with tempfile.TemporaryDirectory(prefix="hf") as folder, VectorBoard(folder) as board:
        yield board


@pytest.mark.parametrize("name", FILES)
def test_no_vector_is_left_out(name):
    groups = FILES[name]["testGroups"]
    unknown = {group["type"] for group in groups} - REPLAYS.keys() - NOT_A_DEVICES.keys() - NOT_ASKED_HERE.keys()
    assert not unknown, "nobody knows how to replay this kind on a board"
    assert sum(len(group["tests"]) for group in groups) == FILES[name]["numberOfTests"], "tests in all groups"


@pytest.mark.parametrize("group", GROUPS.values(), ids=list(GROUPS))
def test_the_board_becomes_the_device_of_a_group(vector_board, group):
    vector_board.become(group)


@pytest.mark.parametrize("group, test", VECTORS.values(), ids=list(VECTORS))
def test_the_board_judges_a_vector_as_linux_does(vector_board, group, test):
    vector_board.become(group)
    REPLAYS[group["type"]](vector_board, group, test)


def test_rounds_end_in_the_m3_of_their_vector(vector_board):
    assert vector_board.equal_verdicts > 0, "none did"
