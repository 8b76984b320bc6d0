"""`holdfast proof` and `holdfast prove --compatibility`: a team tries a verifier of its own, and a device that allows such rounds."""

import base64
import hmac
import json
import secrets

import pytest
from devices import LinuxDevice, served
from holdfast_peer import cbor, cose, jose, session
from holdfast_peer.command_line import CommandLine, descriptor_json
from holdfast_peer.keys import PrivateKey, point_of_jwk
from holdfast_peer.scripted_device import ScriptedDevice
from holdfast_peer.session import STATUS

ACCEPTED, DENIED, MALFORMED, USAGE = 0, 1, 2, 64
NONCE = "00112233445566778899aabbccddeeff"


class Verifier:
    """A verifier of our own with its key, for which a prover is enrolled."""

    def __init__(self, holdfast, folder, token_format):
        self.run = CommandLine(holdfast, folder)
        self.key, self.device_id = PrivateKey(), secrets.token_bytes(16)
        self.descriptor, self.service, self.state = (folder / name for name in ("own.json", "service", "phone"))
        self.socket = str(folder / "own.socket")
        self.descriptor.write_text(json.dumps(descriptor_json(self.key, self.device_id)))
        self.run.succeed("service", "init", "--dir", self.service)
        self.run.succeed("service", "device", "add", "--dir", self.service, self.descriptor)
        self.enroll(self.descriptor, token_format)
        self.token_format = token_format
        shown = self.run.read_json("service", "show", "--dir", self.service)
        self.issuers = [point_of_jwk(shown["issuer"])]

    def enroll(self, descriptor, token_format="cose"):
        more = () if token_format == "cose" else ("--format", token_format)
        self.run.succeed("enroll", "--device", descriptor, "--service", self.service, "--state", self.state, *more)

    def proof(self, nonce, *more):
        return self.run.run("proof", "--state", self.state, "--nonce", nonce, *more)

    def prove(self, script, *more):
        with ScriptedDevice(self, self.socket, script) as device:
            words = ("--connect", f"unix:{self.socket}", "--state", self.state, "--command", "unlock")
            done = self.run.run("prove", *words, "--timeout", "60", "--compatibility", *more)
        assert device.fault is None, f"{device.fault!r}"
        self.received = device.received
        return done

    def message_1(self):
        return session.message_1(self.device_id, secrets.token_bytes(16), self.key.kid, session.DEVICE, None)

    def claims(self, token):
        if self.token_format == "cose":
            return cose.open_token(token, self.key, self.issuers, self.device_id)[0]
        return jose.open_token(token, self.key, self.issuers, self.device_id)[0]

    def check(self, nonce, token, integrity, device):
        """Whether both proofs are those of the token's measurements."""
        claims = self.claims(token)
        wanted = [hmac.digest(claims["proofKey"], nonce + claims[name], "sha256") for name in ("integrity", "device")]
        return [integrity, device] == wanted


@pytest.fixture(params=["cose", "jose"])
def verifier(holdfast, tmp_path, request):
    return Verifier(holdfast, tmp_path, request.param)


def token_of(shown):
    text = shown["token"]
    return text.encode() if shown["encoding"] == "jose" else base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def test_a_verifier_of_ones_own_accepts_the_printed_proofs(verifier):
    done = verifier.proof(NONCE, "--json")
    assert done.returncode == ACCEPTED, done.stderr
    shown = json.loads(done.stdout)
    assert set(shown) == {"device_id", "nonce", "integrity_proof", "device_proof", "encoding", "token"}
    assert (shown["device_id"], shown["nonce"]) == (verifier.device_id.hex(), NONCE)
    proofs = [bytes.fromhex(shown[name]) for name in ("integrity_proof", "device_proof")]
    assert verifier.check(bytes.fromhex(NONCE), token_of(shown), *proofs)
    assert not verifier.check(bytes.fromhex(NONCE[:-1] + "0"), token_of(shown), *proofs)
    lines = dict(line.split(": ") for line in verifier.proof(NONCE.upper()).stdout.decode().splitlines())
    assert lines == shown


@pytest.mark.parametrize(
    ("nonce", "word"),
    [("80" + NONCE[2:], "must be 0 to 7"), (NONCE[2:], "32 hexadecimal"), (NONCE + "00", "32 hexadecimal"), ("", "32")],
)
def test_no_proof_is_printed_for_another_nonce(verifier, nonce, word):
    done = verifier.proof(nonce)
    assert (done.returncode, done.stdout) == (USAGE, b"")
    assert word in done.stderr.decode()


def test_the_device_must_be_named_if_several_are_enrolled(verifier, tmp_path):
    other = tmp_path / "other.json"
    other.write_text(json.dumps(descriptor_json(PrivateKey(), secrets.token_bytes(16))))
    verifier.run.succeed("service", "device", "add", "--dir", verifier.service, other)
    verifier.enroll(other)
    done = verifier.proof(NONCE)
    assert (done.returncode, done.stdout) == (MALFORMED, b"")
    assert "--device" in done.stderr.decode()
    shown = json.loads(verifier.proof(NONCE, "--json", "--device", verifier.device_id.hex()).stdout)
    assert verifier.claims(token_of(shown))


def test_without_an_enrolment_nothing_is_printed(verifier, tmp_path):
    done = verifier.run.run("proof", "--state", tmp_path / "nobody", "--nonce", NONCE)
    assert (done.returncode, done.stdout) == (MALFORMED, b"")


def test_with_a_damaged_configuration_nothing_is_printed(verifier):
    configuration = next(verifier.state.rglob("measurement_config.bin"))
    content = bytearray(configuration.read_bytes())
    content[-1] ^= 1
    configuration.write_bytes(content)
    done = verifier.proof(NONCE)
    assert (done.returncode, done.stdout) == (MALFORMED, b"")
    assert "is damaged" in done.stderr.decode()


def test_the_round_has_a_fresh_nonce_and_both_proofs_and_no_answer_counts_as_authenticated(verifier):
    nonces = set()

    def accept(peer):
        peer.send(verifier.message_1())
        kind, nonce, encoding, token, integrity, device, command = cbor.decode(peer.receive())
        assert (kind, command) == (12, "unlock")
        assert encoding == (session.COSE if verifier.token_format == "cose" else session.JOSE)
        assert nonce[0] < 0x80
        assert verifier.check(nonce, token, integrity, device)
        nonces.add(nonce)
        peer.send(session.message_3(STATUS["accepted"], None))

    for _ in range(3):
        done = verifier.prove(accept, "--json")
        assert done.returncode == ACCEPTED, done.stderr
        shown = json.loads(done.stdout)
        assert (shown["status"], shown["accepted"], shown["authenticated"]) == ("accepted", True, False)
        assert b"nothing authenticates" in done.stderr
    assert len(nonces) == 3


@pytest.mark.parametrize(
    ("answer", "status"),
    [
        (session.message_3(STATUS["deviceMismatch"], None), DENIED),
        (session.message_3(STATUS["accepted"], b"sealed with no key"), MALFORMED),
        (b"\x00", MALFORMED),
    ],
)
def test_another_answer_is_no_success(verifier, answer, status):
    def script(peer):
        peer.send(verifier.message_1())
        peer.receive()
        peer.send(answer)

    assert verifier.prove(script).returncode == status


def test_nothing_is_sent_to_another_device(verifier):
    def script(peer):
        stranger = secrets.token_bytes(16)
        peer.send(session.message_1(stranger, secrets.token_bytes(16), verifier.key.kid, session.DEVICE, None))
        peer.receive()

    assert verifier.prove(script).returncode == MALFORMED
    assert verifier.received == []


@pytest.mark.parametrize("more", [("--parameter", "7"), ("--user", "alice", "--otp", "code")])
def test_parameters_and_codes_are_refused(verifier, more, tmp_path):
    (tmp_path / "code").write_text("123456\n")
    words = (
        "--connect",
        f"unix:{verifier.socket}",
        "--state",
        verifier.state,
        "--command",
        "unlock",
        "--compatibility",
    )
    done = verifier.run.run("prove", *words, *more)
    assert done.returncode == USAGE
    assert "compatibility" in done.stderr.decode()


@pytest.fixture
def lock(holdfast, tmp_path):
    with served(LinuxDevice(holdfast, tmp_path)) as device:
        yield device


def test_a_device_carries_out_only_what_its_policy_allows_in_such_rounds(lock, tmp_path):
    service, descriptor = lock.service()
    run, state = lock.command_line, tmp_path / "phone"
    run.succeed("enroll", "--device", descriptor, "--service", service, "--state", state)

    def prove(*more):
        words = ("--connect", lock.endpoint, "--state", state, "--command", "unlock", "--timeout", "60")
        return run.run("prove", *words, *more)

    assert prove("--compatibility").returncode == DENIED
    assert prove().returncode == ACCEPTED
    policy = lock.device_folder / "policy.json"
    rules = json.loads(policy.read_text())
    rules["commands"]["unlock"]["compatibility"] = True
    policy.write_text(json.dumps(rules))
    done = prove("--compatibility")
    assert (done.returncode, done.stdout) == (ACCEPTED, b"unlock: accepted\n")
    assert "compatibility-round" in lock.owner("audit").stdout.decode()
