"""What a board that runs the firmware still has in its memory when it has answered: no secret of the round.

The memory is the emulator's, read from outside. A remembered token's secrets and the device's key are there once, and show
that the search finds what is there.
"""

import json
import secrets

import pytest
from device_users import accepted
from holdfast_peer import cbor, cose, jose, oath, session
from holdfast_peer import claims as claim_rules
from holdfast_peer.activation import Activation
from holdfast_peer.issuer import Grant, fresh_claims
from holdfast_peer.keys import PrivateKey, key_id
from provisioned import NAMES, USERS_POLICY, running

# The board's RAM has 4 MiB. What is larger is the emulator's own, or the flash.
LARGEST_MAPPING = 16 << 20
GENERATION = -75004


def memory(process):
    """What the emulator has in memory that is no file's."""
    pieces = []
    with open(f"/proc/{process.pid}/maps") as maps, open(f"/proc/{process.pid}/mem", "rb", buffering=0) as whole:
        for line in maps:
            addresses, access, _, _, inode, *_ = line.split()
            start, end = (int(address, 16) for address in addresses.split("-"))
            if access.startswith("rw") and inode == "0" and end - start <= LARGEST_MAPPING:
                whole.seek(start)
                pieces.append(whole.read(end - start))
    return pieces


def expect_counts(lock, count, what):
    """Each of these secrets is in memory that many times."""
    pieces = memory(lock.process)
    for name, secret in what.items():
        assert len(secret) >= 16, f"{name} is too short to be told from chance"
        assert sum(piece.count(secret) for piece in pieces) == count, f"how often {name} is in memory"


def baseline(claims):
    return {name: claims[name] for name in ("integrity", "device", "proofKey")}


def session_keys(attempt):
    return {
        "the key to the device": attempt.round.prover_to_device,
        "the key to the prover": attempt.round.device_to_prover,
    }


class Token:
    """A token, and all that goes into it."""

    def __init__(self, owner, descriptor, encoding, without=None):
        claims = fresh_claims(descriptor.device_id)
        ephemeral, iv = PrivateKey(), secrets.token_bytes(12)
        self.secrets = {"what was agreed upon": ephemeral.exchange(descriptor.point)}
        if encoding == session.COSE:
            labelled = {label: value for label, value in claim_rules.to_map(claims).items() if label != without}
            signed, encrypt = cose.sign(cbor.encode(labelled), owner.issuer.key), cose.encrypt
            protected = cose.recipient_protected(key_id(descriptor.point))
            self.secrets["the key of the token"] = cose.content_key(self.secrets["what was agreed upon"], protected)
        else:
            signed, encrypt = jose.sign(jose.dump(claim_rules.to_members(claims)), owner.issuer.key), jose.encrypt
        text = signed if isinstance(signed, bytes) else signed.encode()
        self.secrets["the middle of the token"] = text[len(text) // 2 :][:32]
        self.grant = Grant(encrypt(signed, descriptor.point, ephemeral, iv), encoding, claims)


def padded(name, key):
    """A key, and what HMAC makes of it."""
    return {
        name: key,
        f"{name}, inner": bytes(byte ^ 0x36 for byte in key),
        f"{name}, outer": bytes(byte ^ 0x5C for byte in key),
    }


def provisioned(owner):
    policy = owner.folder / "policy.json"
    policy.write_text(json.dumps(USERS_POLICY))
    return owner.provision(f"flash {secrets.token_hex(4)}", "--policy", policy)


def test_a_remembered_token_is_there_once_and_nothing_else_of_its_round(owner, encoding):
    image, descriptor = provisioned(owner)
    with running(image.read_bytes(), descriptor) as lock:
        prover, token = lock.prover(), Token(owner, descriptor, encoding)
        for by_reference in (False, True):
            attempt = prover.attempt(token.grant, by_reference=by_reference)
            assert NAMES[prover.send(attempt).status] == "accepted", "status"
            expect_counts(lock, 1, baseline(token.grant.claims))
            expect_counts(lock, 0, {**token.secrets, **session_keys(attempt)})


@pytest.mark.parametrize("encoding, without", [(session.COSE, None), (session.JOSE, None), (session.COSE, GENERATION)])
def test_a_token_whose_holder_proves_nothing_or_that_lacks_a_claim_leaves_nothing(owner, encoding, without):
    image, descriptor = provisioned(owner)
    with running(image.read_bytes(), descriptor) as lock:
        prover, token = lock.prover(), Token(owner, descriptor, encoding, without)
        attempt = prover.attempt(token.grant, dmp=bytes(32))
        assert NAMES[prover.send(attempt).status] == ("tokenInvalid" if without else "deviceMismatch"), "status"
        expect_counts(lock, 0, {**baseline(token.grant.claims), **token.secrets, **session_keys(attempt)})


def test_a_password_leaves_neither_the_users_secret_nor_what_it_came_in(owner):
    """A password that was compared leaves neither the user's secret nor what it came in."""
    image, descriptor = provisioned(owner)
    secret = secrets.token_bytes(32)
    file = owner.folder / "secret"
    file.write_text(secret.hex())
    owner.command_line.succeed(
        "device", "user", "add", "--firmware", image, "bob", "--otp", "hotp", "--otp-secret", file, "--seal", "none"
    )
    with running(image.read_bytes(), descriptor) as lock:
        prover, token = lock.prover(), Token(owner, descriptor, session.COSE)
        request = session.request("configure", ["parameter " + secrets.token_hex(8)], ("bob", oath.hotp(secret, 0)))
        attempt = prover.attempt(token.grant, "configure", request=request)
        assert NAMES[prover.send(attempt).status] == "accepted", "status"
        expect_counts(lock, 1, baseline(token.grant.claims))
        expect_counts(lock, 0, {**padded("the user's secret", secret), "the request": request, **session_keys(attempt)})


def test_an_activation_leaves_the_users_secrets_in_the_flash_only(owner):
    """A user's secrets are there once until they are confirmed; then they are in the flash, and nowhere else."""
    image, descriptor = provisioned(owner)
    code = owner.command_line.read_json("device", "user", "add", "--firmware", image, "alice")["code"]
    with running(image.read_bytes(), descriptor) as lock:
        prover = lock.prover()
        user = Activation(prover.next_m1(), code)
        user.take(accepted(prover.exchange(user.opening())))
        granted = {name: getattr(user, name) for name in ("otp", "seal", "host")}
        expect_counts(lock, 1, {**granted, "client": user.client, "device": user.device})
        expect_counts(lock, 0, padded("the code's key", user.code_key))
        prover.connection.send(user.confirmation())
        user.finish(accepted(prover.connection.receive()))
        for name, secret in granted.items():
            assert secret in lock.flash(), f"{name} is not in the flash"
        expect_counts(
            lock,
            0,
            {**granted, **padded("the code's key", user.code_key), "client": user.client, "device": user.device},
        )


def test_the_devices_key_is_there_once(owner):
    """The device's key is there once: where it is used."""
    image, descriptor = provisioned(owner)
    head = cbor.encode([descriptor.device_id])[1:] + b"\x58\x20"
    scalar = image.read_bytes().split(head)[1][:32]
    assert PrivateKey(scalar).point == descriptor.point, "the point of the key in the flash"
    with running(image.read_bytes(), descriptor) as lock:
        lock.prover()
        expect_counts(lock, 1, {"the device's key": scalar})
        expect_counts(lock, 0, {"the device's key, little-endian": scalar[::-1]})
