"""Tokens under a key that an issuer shares with the device: this peer as issuer and prover, and the program's own issuer."""

import json
import secrets

import pytest
from devices import expect_status
from holdfast_peer import base64strict, cose
from holdfast_peer.command_line import read_descriptor, spellings
from holdfast_peer.keys import PrivateKey, mac_jwk, mac_key_id
from holdfast_peer.primitives import hkdf_sha256
from holdfast_peer.session import COSE
from shared_keys import POLICY, SharedKey

TRUSTED, DENIED, MALFORMED, USAGE, NO_PERMISSION = 0, 1, 2, 64, 77

own_policy = pytest.mark.only_on("linux", "bridge", because="an image gets its policy when it is made")
owners = pytest.mark.only_on("linux", because="it is about the owner's command line, which is the same for an image")


@pytest.fixture
def board_policy():
    return POLICY


@pytest.fixture(scope="module")
def shared_keys():
    return {}


@pytest.fixture
def shared(device, device_kind, shared_keys):
    """A key that is shared with the device."""
    if device not in shared_keys:
        shared_keys[device] = SharedKey(device)
        shared_keys[device].prepare(has_policy=device_kind == "board")
    return shared_keys[device]


def test_a_token_under_the_shared_key_is_accepted_in_full_and_by_reference_beside_signed_ones(device, shared):
    grant = shared.grant()
    expect_status(shared.status(grant), "accepted", "in full")
    expect_status(shared.status(grant, by_reference=True), "accepted", "by reference")
    expect_status(shared.status(device.grant(COSE)), "accepted", "signed")


def test_a_token_with_every_optional_claim_is_accepted(shared):
    grant = shared.grant(maximumUses=1, commands=["unlock"], version=[1, 2, 3], user="alice")
    expect_status(shared.status(grant), "accepted")
    expect_status(shared.status(grant), "usesExhausted", "a second time")


def test_what_is_not_under_the_shared_key_is_refused_whatever_it_says_of_itself(device, shared):
    kid, other = mac_key_id(shared.key), secrets.token_bytes(32)
    protected = cose.mac_protected(kid)
    signer = device.issuer.key
    for name, plaintext in (
        ("another device's key", lambda p: cose.authenticate(p, other)),
        ("another device's key in this one's name", lambda p: cose.authenticate(p, other, protected=protected)),
        ("an empty key", lambda p: cose.authenticate(p, b"", protected=protected)),
        (
            "a tag of 8 bytes",
            lambda p: cose.authenticate(
                p, shared.key, code=cose.hmac_sha256(shared.key, cose.mac_input(protected, p))[:8]
            ),
        ),
        (
            "the context of COSE_Mac",
            lambda p: cose.authenticate(
                p, shared.key, code=cose.hmac_sha256(shared.key, cose.mac_input(protected, p, "MAC"))
            ),
        ),
        (
            "the issuer's point as the key",
            lambda p: cose.authenticate(p, signer.point, protected=cose.mac_protected(signer.kid)),
        ),
        ("COSE_Sign1's tag", lambda p: cose.authenticate(p, shared.key, tag=cose.SIGN1)),
        ("a signature in the MAC key's name", lambda p: cose.sign(p, signer, protected=cose.sign_protected(kid))),
        (
            "a stranger's signature in the MAC key's name",
            lambda p: cose.sign(p, PrivateKey(), protected=cose.sign_protected(kid)),
        ),
    ):
        expect_status(shared.status(shared.grant(plaintext=plaintext)), "tokenInvalid", name)


@own_policy
def test_the_policys_switch_holds_from_the_next_round_on_also_for_a_token_that_is_remembered(device, shared):
    grant = shared.grant()
    expect_status(shared.status(grant), "accepted")
    try:
        for off in (None, {}, {"mac": False}):
            shared.switch(off)
            expect_status(shared.status(grant), "tokenInvalid", f"in full, {off}")
            expect_status(shared.status(grant, by_reference=True), "tokenInvalid", f"by reference, {off}")
            expect_status(shared.status(device.grant(COSE)), "accepted", f"signed, {off}")
    finally:
        shared.switch({"mac": True})
    expect_status(shared.status(grant, by_reference=True), "accepted", "switched on again")


@pytest.mark.only_on("board", because="a board has forgotten its tokens when it is switched on again")
def test_trust_in_a_shared_key_ends_like_any_and_begins_again_with_the_power(device, shared):
    grant = shared.grant()
    expect_status(shared.status(grant), "accepted")
    for how in (mac_key_id(shared.key).hex(), device.folder / "mac.jwk"):
        assert shared.trust("--remove", how).returncode == 0, "exit status of --remove"
        expect_status(shared.status(grant), "tokenInvalid", "in full")
        assert shared.trust("--remove", how).returncode == 1, "exit status of a second --remove"
        assert shared.trust(device.folder / "mac.jwk").returncode == 0, "exit status of trust"
        expect_status(shared.status(grant), "accepted", "trusted again")


@own_policy
def test_trust_in_a_shared_key_ends_like_any_and_begins_again(device, shared):
    grant = shared.grant()
    expect_status(shared.status(grant), "accepted")
    kid = mac_key_id(shared.key).hex()
    for how in (kid, device.folder / "mac.jwk"):
        assert shared.trust("--remove", how).returncode == TRUSTED, "exit status of --remove"
        expect_status(shared.status(grant), "tokenInvalid", "in full")
        expect_status(shared.status(grant, by_reference=True), "tokenInvalid", "by reference")
        assert shared.trust("--remove", how).returncode == DENIED, "exit status of a second --remove"
        done = shared.trust(device.folder / "mac.jwk")
        assert done.stdout.decode() == f"issuer {kid} (MAC): trusted\n", "what trust says"
        expect_status(shared.status(grant), "accepted", "trusted again")


@owners
def test_neither_trust_nor_show_nor_the_audit_log_prints_a_key(device, shared):
    kid = mac_key_id(shared.key).hex()
    shown = device.owner("show").stdout
    assert f"  {kid} (MAC)\n".encode() in shown, "device show does not list the key by its id and kind"
    printed = shown + device.owner("audit").stdout
    for arguments in ((), ("--json",)):
        done = shared.trust(device.folder / "mac.jwk", *arguments)
        printed += done.stdout + done.stderr
    assert not any(text in printed for text in spellings(shared.key)), "the key is printed"


@owners
def test_a_file_that_others_may_read_and_one_that_holds_another_key_are_not_trusted(shared):
    good = mac_jwk(secrets.token_bytes(32))
    for mode in (0o640, 0o604, 0o660):
        done = shared.trust(shared.write("open.jwk", good, mode))
        assert done.returncode == NO_PERMISSION, f"exit status for mode {mode:o}"
    short = base64strict.url_encode(bytes(31))
    for change in (
        {"alg": "HS512"},
        {"alg": "ES256"},
        {"use": "enc"},
        {"k": short},
        {"k": ""},
        {"k": good["k"] + "="},
        {"k": None},
        {"kid": "a"},
        {"key_ops": ["verify"]},
        {"kty": "OCT"},
    ):
        done = shared.trust(shared.write("other.jwk", {**good, **change}))
        assert done.returncode == MALFORMED, f"exit status for {change}"
        assert good["k"].encode() not in done.stderr, "the key is in the error"
    for name in good:
        done = shared.trust(shared.write("other.jwk", {k: v for k, v in good.items() if k != name}))
        assert done.returncode == MALFORMED, f"exit status without {name}"


def test_the_programs_issuer_shares_a_key_with_each_device_and_its_tokens_are_proved(device, shared):
    run = device.command_line
    state = device.folder / "prover"
    enroll = ("enroll", "--device", shared.descriptor_file, "--service", shared.service, "--state", state)
    assert run.run(*enroll, "--mac").returncode == MALFORMED, "exit status of enroll before there is a key"
    file = shared.mac_key(shared.descriptor_file, "own.jwk")
    assert file.stat().st_mode & 0o777 == 0o600, "mode of the key's file"
    assert (shared.service / "mac.key").stat().st_mode & 0o777 == 0o600, "mode of the secret's file"
    run.succeed(*enroll, "--mac")

    def prove():
        words = ("--connect", device.endpoint, "--state", state, "--command", "unlock", "--timeout", "60")
        done = run.run("prove", *words, "--json")
        return json.loads(done.stdout)["status"]

    assert prove() == "tokenInvalid", "status before the device trusts the key"
    assert shared.trust(file).returncode == TRUSTED, "exit status of trust"
    for what in ("in full", "by reference"):
        assert prove() == "accepted", f"status {what}"
    kid = mac_key_id(base64strict.url_decode(json.loads(file.read_text())["k"])).hex()
    assert shared.trust("--remove", kid).returncode == TRUSTED, "exit status of --remove"
    assert prove() == "tokenInvalid", "status afterwards"


def test_a_devices_key_is_what_the_specification_derives_and_no_other_devices(device, shared):
    def key(file):
        return base64strict.url_decode(json.loads(file.read_text())["k"])

    first = shared.mac_key(shared.descriptor_file, "first.jwk")
    assert key(shared.mac_key(shared.descriptor_file, "again.jwk")) == key(first), "the key made again"
    assert json.loads(first.read_text()) == mac_jwk(key(first)), "the file"
    secret = (shared.service / "mac.key").read_bytes()
    descriptor = device.descriptor
    info = b"holdfast/1 mac key\0" + descriptor.device_id + descriptor.point
    assert key(first) == hkdf_sha256(secret, b"", info, 32), "the key"
    other = device.folder / "other"
    device.command_line.succeed("device", "init", "--dir", other)
    shown = shared.write("other.json", device.command_line.read_json("device", "show", "--dir", other))
    stolen = key(shared.mac_key(shown, "stolen.jwk"))
    impostor = shared.write("impostor.json", {**json.loads(shown.read_text()), "device_id": descriptor.device_id.hex()})
    named = key(shared.mac_key(impostor, "named.jwk"))
    assert len({key(first), stolen, named}) == 3, "number of different keys"
    assert shared.trust(first).returncode == TRUSTED, "exit status of trust"
    for name, bad in (("another device's", stolen), ("one for this device's id with another public key", named)):
        inner = lambda p, k=bad: cose.authenticate(p, k, protected=cose.mac_protected(mac_key_id(key(first))))
        expect_status(shared.status(shared.grant(plaintext=inner)), "tokenInvalid", name)
    read_descriptor(json.loads(shown.read_text()))


@owners
def test_a_key_goes_into_a_new_file_and_nowhere_else(device, shared):
    run = device.command_line
    mac_key = ("service", "mac-key", "--dir", shared.service, "--device", shared.descriptor_file)
    assert run.run(*mac_key, "-").returncode == USAGE, "exit status for standard output"
    there = shared.write("there", {})
    for place in (there, "/dev/stdout", "/dev/tty"):
        done = run.run(*mac_key, place)
        assert done.returncode not in (0, USAGE), f"{place} was written"
        assert b"oct" not in done.stdout + done.stderr, "a key is printed"
    assert there.read_text() == "{}", "the file that was there"


@owners
def test_mac_goes_with_cose_alone(device, shared):
    for form in ("jose", "jose-a256kw"):
        done = device.command_line.run(
            "enroll",
            "--device",
            shared.descriptor_file,
            "--service",
            shared.service,
            "--state",
            device.folder / "none",
            "--format",
            form,
            "--mac",
        )
        assert done.returncode == USAGE, f"exit status with {form}"
