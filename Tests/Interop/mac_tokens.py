#!/usr/bin/env python3
"""Tokens under a key that an issuer shares with the device: this peer as issuer and prover, and the program's own issuer.

usage: mac_tokens.py --holdfast PATH

One line for each check that failed, then the totals. Exit status 1 when a check failed.
"""

import argparse
import json
import secrets
import sys
import tempfile

from device_situations import expect_status
from holdfast_peer import base64strict, claims as claim_rules, cose
from holdfast_peer.checks import Checks, expect, expect_equal
from holdfast_peer.command_line import read_descriptor, spellings
from holdfast_peer.issuer import encrypted, fresh_claims
from holdfast_peer.keys import PrivateKey, mac_jwk, mac_key_id
from holdfast_peer.primitives import hkdf_sha256
from holdfast_peer.session import COSE
from prover_against_device import World

TRUSTED, DENIED, MALFORMED, USAGE, NO_PERMISSION = 0, 1, 2, 64, 77


class SharingWorld(World):
    """A device under test that trusts a key of ours besides, and a service of the program's."""

    def __init__(self, path, folder):
        super().__init__(path, folder)
        self.key = secrets.token_bytes(32)
        self.service = self.folder / "service"
        self.descriptor_file = self.folder / "device.json"

    def prepare(self):
        super().prepare()
        run = self.command_line
        self.descriptor_file.write_bytes(run.succeed("device", "show", *self.device_arguments, "--json"))
        run.succeed("service", "init", "--dir", self.service)
        run.succeed("service", "device", "add", "--dir", self.service, self.descriptor_file)
        expect_equal(self.trust(self.write("mac.jwk", mac_jwk(self.key))).returncode, TRUSTED, "exit status")
        self.allow()

    def allow(self):
        """Lets the policy take tokens under a MAC."""
        policy = json.loads((self.device_folder / "policy.json").read_text())
        expect("issuer" not in policy, "device init says something of MACs")
        self.switch({"mac": True})

    def write(self, name, value, mode=0o600):
        path = self.folder / name
        path.write_text(json.dumps(value))
        path.chmod(mode)
        return path

    def trust(self, *arguments):
        return self.owner("trust", *arguments)

    def switch(self, issuer):
        """Gives the policy's member `issuer` this value; None takes it away."""
        file = self.device_folder / "policy.json"
        policy = json.loads(file.read_text())
        policy.pop("issuer", None)
        if issuer is not None:
            policy["issuer"] = issuer
        file.write_text(json.dumps(policy))

    def mac_grant(self, key=None, plaintext=None, **claims):
        """A grant under a key, with a fresh baseline; `plaintext` makes the inner layer of the payload otherwise."""
        claims = fresh_claims(self.descriptor.device_id, **claims)
        payload = claim_rules.to_cbor(claims)
        inner = plaintext(payload) if plaintext else cose.authenticate(payload, key or self.key)
        return encrypted(inner, self.descriptor.point, claims, COSE)

    def status(self, grant, **how):
        prover = self.connect()
        with prover.connection:
            return prover.ask(grant, **how)

    def mac_key(self, descriptor, name):
        """What `service mac-key` writes for a device."""
        file = self.folder / name
        self.command_line.succeed("service", "mac-key", "--dir", self.service, "--device", descriptor, file)
        return file


CHECKS = []


def check(name):
    def register(body):
        CHECKS.append((name, body))
        return body
    return register


@check("a token under the shared key is accepted, in full and by reference, beside signed ones")
def _(world):
    grant = world.mac_grant()
    expect_status(world.status(grant), "accepted", "in full")
    expect_status(world.status(grant, by_reference=True), "accepted", "by reference")
    expect_status(world.status(world.grant(COSE)), "accepted", "signed")


@check("a token with every optional claim is accepted")
def _(world):
    grant = world.mac_grant(maximumUses=1, commands=["unlock"], version=[1, 2, 3], user="alice")
    expect_status(world.status(grant), "accepted")
    expect_status(world.status(grant), "usesExhausted", "a second time")


@check("what is not under the shared key is refused, whatever it says of itself")
def _(world):
    kid, other = mac_key_id(world.key), secrets.token_bytes(32)
    protected = cose.mac_protected(kid)
    signer = world.issuer.key
    for name, plaintext in (
            ("another device's key", lambda p: cose.authenticate(p, other)),
            ("another device's key in this one's name", lambda p: cose.authenticate(p, other, protected=protected)),
            ("an empty key", lambda p: cose.authenticate(p, b"", protected=protected)),
            ("a tag of 8 bytes", lambda p: cose.authenticate(
                p, world.key, code=cose.hmac_sha256(world.key, cose.mac_input(protected, p))[:8])),
            ("the context of COSE_Mac", lambda p: cose.authenticate(
                p, world.key, code=cose.hmac_sha256(world.key, cose.mac_input(protected, p, "MAC")))),
            ("the issuer's point as the key", lambda p: cose.authenticate(
                p, signer.point, protected=cose.mac_protected(signer.kid))),
            ("COSE_Sign1's tag", lambda p: cose.authenticate(p, world.key, tag=cose.SIGN1)),
            ("a signature in the MAC key's name", lambda p: cose.sign(p, signer, protected=cose.sign_protected(kid))),
            ("a stranger's signature in the MAC key's name",
             lambda p: cose.sign(p, PrivateKey(), protected=cose.sign_protected(kid)))):
        expect_status(world.status(world.mac_grant(plaintext=plaintext)), "tokenInvalid", name)


@check("the policy's switch holds from the next round on, also for a token that is remembered")
def _(world):
    grant = world.mac_grant()
    expect_status(world.status(grant), "accepted")
    try:
        for off in (None, {}, {"mac": False}):
            world.switch(off)
            expect_status(world.status(grant), "tokenInvalid", f"in full, {off}")
            expect_status(world.status(grant, by_reference=True), "tokenInvalid", f"by reference, {off}")
            expect_status(world.status(world.grant(COSE)), "accepted", f"signed, {off}")
    finally:
        world.switch({"mac": True})
    expect_status(world.status(grant, by_reference=True), "accepted", "switched on again")


@check("trust in a shared key ends like any, and begins again")
def _(world):
    grant = world.mac_grant()
    expect_status(world.status(grant), "accepted")
    kid = mac_key_id(world.key).hex()
    for how in (kid, world.folder / "mac.jwk"):
        expect_equal(world.trust("--remove", how).returncode, TRUSTED, "exit status of --remove")
        expect_status(world.status(grant), "tokenInvalid", "in full")
        expect_status(world.status(grant, by_reference=True), "tokenInvalid", "by reference")
        expect_equal(world.trust("--remove", how).returncode, DENIED, "exit status of a second --remove")
        done = world.trust(world.folder / "mac.jwk")
        expect_equal(done.stdout.decode(), f"issuer {kid} (MAC): trusted\n", "what trust says")
        expect_status(world.status(grant), "accepted", "trusted again")


@check("neither trust nor show nor the audit log prints a key")
def _(world):
    kid = mac_key_id(world.key).hex()
    shown = world.owner("show").stdout
    expect(f"  {kid} (MAC)\n".encode() in shown, "device show does not list the key by its id and kind")
    printed = shown + world.owner("audit").stdout
    for arguments in ((), ("--json",)):
        done = world.trust(world.folder / "mac.jwk", *arguments)
        printed += done.stdout + done.stderr
    expect(not any(text in printed for text in spellings(world.key)), "the key is printed")


@check("a file that others may read, and one that holds another key, are not trusted")
def _(world):
    good = mac_jwk(secrets.token_bytes(32))
    for mode in (0o640, 0o604, 0o660):
        done = world.trust(world.write("open.jwk", good, mode))
        expect_equal(done.returncode, NO_PERMISSION, f"exit status for mode {mode:o}")
    short = base64strict.url_encode(bytes(31))
    for change in ({"alg": "HS512"}, {"alg": "ES256"}, {"use": "enc"}, {"k": short}, {"k": ""}, {"k": good["k"] + "="},
                   {"k": None}, {"kid": "a"}, {"key_ops": ["verify"]}, {"kty": "OCT"}):
        done = world.trust(world.write("other.jwk", {**good, **change}))
        expect_equal(done.returncode, MALFORMED, f"exit status for {change}")
        expect(good["k"].encode() not in done.stderr, "the key is in the error")
    for name in good:
        done = world.trust(world.write("other.jwk", {k: v for k, v in good.items() if k != name}))
        expect_equal(done.returncode, MALFORMED, f"exit status without {name}")


@check("the program's issuer shares a key with each device, and its tokens are proved")
def _(world):
    run = world.command_line
    state = world.folder / "prover"
    enroll = ("enroll", "--device", world.descriptor_file, "--service", world.service, "--state", state)
    expect_equal(run.run(*enroll, "--mac").returncode, MALFORMED, "exit status of enroll before there is a key")
    file = world.mac_key(world.descriptor_file, "own.jwk")
    expect_equal(file.stat().st_mode & 0o777, 0o600, "mode of the key's file")
    expect_equal((world.service / "mac.key").stat().st_mode & 0o777, 0o600, "mode of the secret's file")
    run.succeed(*enroll, "--mac")

    def prove():
        done = run.run("prove", "--connect", world.endpoint, "--state", state, "--command", "unlock", "--json")
        return json.loads(done.stdout)["status"]

    expect_equal(prove(), "tokenInvalid", "status before the device trusts the key")
    expect_equal(world.trust(file).returncode, TRUSTED, "exit status of trust")
    for what in ("in full", "by reference"):
        expect_equal(prove(), "accepted", f"status {what}")
    kid = mac_key_id(base64strict.url_decode(json.loads(file.read_text())["k"])).hex()
    expect_equal(world.trust("--remove", kid).returncode, TRUSTED, "exit status of --remove")
    expect_equal(prove(), "tokenInvalid", "status afterwards")


@check("a device's key is what the specification derives, and no other device's")
def _(world):
    def key(file):
        return base64strict.url_decode(json.loads(file.read_text())["k"])

    first = world.mac_key(world.descriptor_file, "first.jwk")
    expect_equal(key(world.mac_key(world.descriptor_file, "again.jwk")), key(first), "the key made again")
    expect_equal(json.loads(first.read_text()), mac_jwk(key(first)), "the file")
    secret = (world.service / "mac.key").read_bytes()
    device = world.descriptor
    info = b"holdfast/1 mac key\0" + device.device_id + device.point
    expect_equal(key(first), hkdf_sha256(secret, b"", info, 32), "the key")
    other = world.folder / "other"
    world.command_line.succeed("device", "init", "--dir", other)
    shown = world.write("other.json", world.command_line.read_json("device", "show", "--dir", other))
    stolen = key(world.mac_key(shown, "stolen.jwk"))
    impostor = world.write("impostor.json", {**json.loads(shown.read_text()), "device_id": device.device_id.hex()})
    named = key(world.mac_key(impostor, "named.jwk"))
    expect_equal(len({key(first), stolen, named}), 3, "number of different keys")
    expect_equal(world.trust(first).returncode, TRUSTED, "exit status of trust")
    for name, bad in (("another device's", stolen), ("one for this device's id with another public key", named)):
        inner = lambda p, k=bad: cose.authenticate(p, k, protected=cose.mac_protected(mac_key_id(key(first))))
        expect_status(world.status(world.mac_grant(plaintext=inner)), "tokenInvalid", name)
    read_descriptor(json.loads(shown.read_text()))


@check("a key goes into a new file and nowhere else")
def _(world):
    run = world.command_line
    mac_key = ("service", "mac-key", "--dir", world.service, "--device", world.descriptor_file)
    expect_equal(run.run(*mac_key, "-").returncode, USAGE, "exit status for standard output")
    there = world.write("there", {})
    for place in (there, "/dev/stdout", "/dev/tty"):
        done = run.run(*mac_key, place)
        expect(done.returncode not in (0, USAGE), f"{place} was written")
        expect(b"oct" not in done.stdout + done.stderr, "a key is printed")
    expect_equal(there.read_text(), "{}", "the file that was there")


@check("--mac goes with COSE alone")
def _(world):
    for form in ("jose", "jose-a256kw"):
        done = world.command_line.run("enroll", "--device", world.descriptor_file, "--service", world.service, "--state",
                                      world.folder / "none", "--format", form, "--mac")
        expect_equal(done.returncode, USAGE, f"exit status with {form}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--holdfast", required=True, help="the command line under test")
    options = parser.parse_args()
    checks = Checks()
    with tempfile.TemporaryDirectory(prefix="hf") as folder:
        world = SharingWorld(options.holdfast, folder)
        checks.run("device and service are made, and the device trusts a shared key", world.prepare)
        if not checks.failed:
            checks.run("the device answers on its socket", world.start)
        if not checks.failed:
            for name, body in CHECKS:
                checks.run(name, body, world)
        if world.process is not None:
            world.stop()
    return checks.finish()


if __name__ == "__main__":
    sys.exit(main())
