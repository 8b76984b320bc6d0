"""Secrets show neither in the branches nor in the addresses of what the device makes of them: proofs and their comparison, a whole
round, codes, and the opening of tokens.

As in `test_board_traces.py`, the trace of a function has to be the same for every secret, or, for most of many secrets, its number of
instructions. The image is that for vectors.
"""

import random
import secrets

import pytest
from holdfast_peer import claims, cose, issuer, jose, session
from holdfast_peer.issuer import Grant
from holdfast_peer.keys import PrivateKey, key_id, mac_key_id
from holdfast_peer.prover import Attempt
from test_vectors_on_board import ANSWER, DEVICE, FIRMWARE, HOTP, OCRA, OPEN, PROOF, REMEMBER, number
from traces import COUNT, assert_alike, traces

DICE = random.Random(21)
# The trace of a token takes as long as that of everything else together. Of the other tokens, instructions are counted.
TRACED_TOKENS = 8
VECTOR = bytes(range(1, 13))
DEVICE_ID = bytes(range(16))
M1 = session.message_1(DEVICE_ID, bytes(16), bytes(8), session.DEVICE, None)


class Parties:
    """A device, an issuer, and the key that they share."""

    def __init__(self):
        self.device, self.issuer, self.mac_key = PrivateKey(), issuer.Issuer(), secrets.token_bytes(32)

    def introduction(self):
        """The question that gives the board this device."""
        device, signer = self.device, self.issuer.key
        kids = key_id(device.point), DEVICE_ID, signer.point, key_id(signer.point)
        return DEVICE, device.scalar, device.point, *kids, self.mac_key, mac_key_id(self.mac_key)

    def grant(self, encoding):
        """A token with fresh secrets. Whether the public initialization vector begins with a zero shows in JOSE."""
        own_claims = self.claims()
        encrypt = cose.encrypt if encoding == session.COSE else jose.encrypt
        signed = self.issuer.signed(own_claims, encoding)
        return Grant(encrypt(signed, self.device.point, PrivateKey(), VECTOR), encoding, own_claims)

    def authenticated(self):
        """A token under the shared key."""
        payload = claims.to_cbor(self.claims())
        sealed = cose.authenticate(payload, self.mac_key)
        return cose.encrypt(sealed, self.device.point, PrivateKey(), VECTOR)

    def claims(self):
        return issuer.fresh_claims(DEVICE_ID)


@pytest.fixture(scope="module")
def parties():
    return Parties()


def keys(byte_count):
    special = bytes(byte_count), b"\xff" * byte_count, bytes(byte_count - 1) + b"\1"
    return [*special, *(DICE.randbytes(byte_count) for _ in range(COUNT))]


def test_a_key_and_a_measurement_do_not_show_in_a_proof(plugins):
    questions = [(PROOF, key, bytes(16), measurement) for key, measurement in zip(keys(16), keys(32), strict=True)]
    assert_alike(plugins, FIRMWARE, "VectorTest5proof", questions)


@pytest.mark.parametrize(("name", "byte_count"), [("SHA1", 20), ("SHA256", 32), ("SHA512", 64)])
def test_neither_a_secret_nor_the_code_shows_in_a_password(plugins, name, byte_count):
    questions = [(HOTP, key, name.encode(), number(6), number(7)) for key in keys(byte_count)]
    assert_alike(plugins, FIRMWARE, "VectorTest4hotp", questions)


@pytest.mark.parametrize(("suite", "given"), [("OCRA-1:HOTP-SHA256-8:C-QH64", 1), ("OCRA-1:HOTP-SHA256-8:QH64-T1M", 8)])
def test_neither_a_secret_nor_the_code_shows_in_a_seal(plugins, suite, given):
    rest = bytes([given]), number(5), b"", b"", number(6)
    questions = [(OCRA, key, suite.encode(), b"5a" * 32, *rest) for key in keys(32)]
    assert_alike(plugins, FIRMWARE, "VectorTest4ocra", questions)


def changed(proof):
    """A proof with one bit changed, anywhere."""
    place = DICE.randrange(256)
    return bytes(byte ^ (1 << place % 8 if index == place // 8 else 0) for index, byte in enumerate(proof))


def remembered(parties):
    """The questions that make a board remember a token, and the token's grant."""
    grant = parties.grant(session.COSE)
    return grant, [parties.introduction(), (REMEMBER, bytes([session.COSE]), grant.token)]


@pytest.mark.parametrize("wrong", [(), ("imp",), ("dmp",), ("imp", "dmp")], ids=lambda names: "+".join(names) or "none")
def test_neither_proofs_nor_the_place_of_a_difference_show_in_their_comparison(plugins, parties, wrong):
    grant, before = remembered(parties)
    questions = []
    for _ in range(COUNT):
        attempt = Attempt(M1, grant, by_reference=True)
        for name in wrong:
            setattr(attempt, name, changed(getattr(attempt, name)))
        questions.append((ANSWER, M1, attempt.message(), b""))
    assert_alike(plugins, FIRMWARE, "HoldfastCore13DeviceSessionV13compareProofs", questions, before)


def test_neither_proofs_nor_keys_nor_the_reply_show_in_a_round(plugins, parties):
    grant, before = remembered(parties)
    questions = [
        (ANSWER, M1, Attempt(M1, grant, by_reference=True).message(), DICE.randbytes(32)) for _ in range(COUNT)
    ]
    # The first round prepares what later ones find.
    assert_alike(plugins, FIRMWARE, "VectorTest15answerChallenge", questions, [*before, questions[0]])


def test_neither_shared_secret_nor_claims_show_in_the_opening_of_a_token_under_a_mac(plugins, parties):
    questions = [(OPEN, bytes([session.COSE]), b"\2", parties.authenticated()) for _ in range(COUNT)]
    assert_alike(plugins, FIRMWARE, "VectorTest9openToken", questions, [parties.introduction()], traced=TRACED_TOKENS)


@pytest.mark.parametrize(
    ("encoding", "function"),
    [
        (session.COSE, "HoldfastCore11TokenOpenerV11decryptCOSE"),
        (session.COSE, "HoldfastCore17MeasurementClaimsV6decode4cbor"),
        (session.JOSE, "HoldfastCore11TokenOpenerV11decryptJOSE"),
        (session.JOSE, "HoldfastCore17MeasurementClaimsV6decode4json"),
    ],
)
def test_neither_shared_secret_nor_claims_show_in_the_steps_of_opening_a_signed_token(
    plugins, parties, encoding, function
):
    """Between the two steps, the signature is verified, in a time that depends on it."""
    questions = [(OPEN, bytes([encoding]), b"\0", parties.grant(encoding).token) for _ in range(COUNT)]
    assert_alike(plugins, FIRMWARE, function, questions, [parties.introduction()], traced=TRACED_TOKENS)


def test_the_verification_of_a_signature_shows_in_the_opening_of_a_token(plugins, parties):
    """Signatures are public. Nothing else may show, but this has to, or the traces would show nothing."""
    questions = [(OPEN, bytes([session.COSE]), b"\0", parties.grant(session.COSE).token) for _ in range(4)]
    found = traces(plugins, FIRMWARE, "VectorTest9openToken", questions, [parties.introduction()])
    assert len(set(found)) == len(questions)
