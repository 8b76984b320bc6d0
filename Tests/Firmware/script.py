"""What a device does in its life, once each: what is counted, and what the stack has to hold."""

import itertools
import json
import secrets
import shutil

from device import Device
from holdfast_peer import cbor, cose, jose, oath, session
from holdfast_peer import claims as claim_rules
from holdfast_peer.activation import Activation, seal_question
from holdfast_peer.command_line import CommandLine, read_descriptor
from holdfast_peer.issuer import Grant, Issuer, encrypted, fresh_claims
from holdfast_peer.keys import PrivateKey, jwk, mac_jwk
from holdfast_peer.measurement import proof
from holdfast_peer.prover import Attempt

SUITE = "OCRA-1:HOTP-SHA256-8:C-QH64"
# Of codes, those by the longest hash need the most stack.
LONG_SUITE = "OCRA-1:HOTP-SHA512-10:C-QH64"
HOST_SUITE = "OCRA-1:HOTP-SHA256-8:QH16"
SECOND_SLOT = 18 * 4096
MOST_ROUNDS = 2000
# The figures that have a limit: name, limit in instructions, and a better value for which there is no limit yet.
LIMITS = [
    ("first token, COSE_Sign1", 5_000_000, 3_000_000),
    ("first token, COSE_Mac0", 2_500_000, None),
    ("a round with a remembered token", 135_000, None),
]
POLICY = {
    "version": 1,
    "issuer": {"mac": True},
    "commands": {
        "lock": {"factors": ["integrity", "device"], "compatibility": True},
        "unlock": {"factors": ["integrity", "device"]},
        "status": {"factors": ["device"]},
        "configure": {"factors": ["integrity", "device", "otp"]},
        "open-safe": {"factors": ["integrity", "device", "seal"]},
        "host-code": {"factors": ["device"]},
    },
}


class Provisioned:
    """An image of a device, provisioned by `holdfast`, and the issuer and the users that it knows."""

    def __init__(self, holdfast, folder):
        self.folder = folder
        self.line = CommandLine(holdfast, folder)
        self.issuer, self.mac_key = Issuer(), secrets.token_bytes(32)
        self.otp_secret, self.seal_secret = secrets.token_bytes(20), secrets.token_bytes(64)
        self.image = folder / "device.img"
        at = ("--firmware", self.image)
        self.line.succeed(
            "device",
            "init",
            *at,
            "--policy",
            self.write("policy.json", json.dumps(POLICY)),
            "--trust",
            self.write("issuer.jwk", json.dumps(jwk(self.issuer.key.point))),
        )
        self.line.succeed("device", "trust", *at, self.write("mac.jwk", json.dumps(mac_jwk(self.mac_key))))
        seal = self.write("seal", self.seal_secret.hex())
        self.line.succeed(
            "device",
            "user",
            "add",
            *at,
            "--otp",
            "hotp",
            "--otp-secret",
            self.write("otp", self.otp_secret.hex()),
            "--seal",
            SUITE,
            "--seal-secret",
            seal,
            "alice",
        )
        self.line.succeed(
            "device", "user", "add", *at, "--otp", "none", "--seal", LONG_SUITE, "--seal-secret", seal, "carol"
        )
        self.code = self.line.read_json("device", "user", "add", *at, "bob")["code"]
        self.descriptor = read_descriptor(self.line.read_json("device", "show", *at))
        self.entropy = folder / "entropy"
        self.entropy.write_bytes(secrets.token_bytes(64))

    def write(self, name, text):
        path = self.folder / name
        path.write_text(text)
        path.chmod(0o600)
        return path

    def device(self, name, **options):
        """A board with a copy of the image, in a folder of that name."""
        folder = self.folder / name
        folder.mkdir()
        shutil.copy(self.image, folder / "image")
        return Device(folder, self.entropy, **options)

    def claims(self, **changes):
        return fresh_claims(self.descriptor.device_id, **changes)

    def signed(self, encoding, **claims):
        return self.issuer.grant(self.descriptor.point, self.claims(**claims), encoding)

    def authenticated(self):
        claims = self.claims()
        return encrypted(
            cose.authenticate(claim_rules.to_cbor(claims), self.mac_key), self.descriptor.point, claims, session.COSE
        )

    def wrapped(self):
        claims = self.claims()
        token = jose.encrypt(
            self.issuer.signed(claims, session.JOSE),
            self.descriptor.point,
            PrivateKey(),
            secrets.token_bytes(12),
            algorithm=jose.WRAPPED,
            content_key=secrets.token_bytes(32),
        )
        return Grant(token, session.JOSE, claims)


def ask(device, grant, command="unlock", status="accepted", **how):
    """A round that ends so; what it took."""
    attempt = Attempt(device.m1, grant, command, **how)
    outcome = attempt.verify(device.exchange(attempt.message()))
    assert outcome.status == session.STATUS[status], f"status of {command}"
    return device.instructions()


# As `prove` makes them: as long as any will be until the year 2255.
NUMBERS = itertools.count(1_790_000_100_000_000)


def remembered(device, grant, number=None):
    """A round as `prove` has it: its request has a number, which is larger than all before."""
    return ask(device, grant, by_reference=True, request=session.request("unlock", number=number or next(NUMBERS)))


def unnumbered(device, grant):
    return ask(device, grant, by_reference=True)


def repeated(device, grant):
    """A request that comes again, and is not carried out."""
    number = next(NUMBERS)
    remembered(device, grant, number)
    return remembered(device, grant, number)


def counted(provisioned, device):
    """A round whose use is counted, of a token that is remembered."""
    grant = provisioned.signed(session.COSE, maximumUses=2)
    ask(device, grant)
    return remembered(device, grant)


def with_password(provisioned, device, grant):
    code = oath.hotp(provisioned.otp_secret, 0)
    return ask(device, grant, by_reference=True, request=session.request("configure", otp=("alice", code)))


def with_seal(provisioned, device, grant, user, suite):
    code = oath.ocra(suite, provisioned.seal_secret, seal_question("open-safe", ["1"]), counter=0)
    return ask(device, grant, by_reference=True, request=session.request("open-safe", ["1"], seal=(user, code)))


def activated(provisioned, device):
    """What an activation took, and the user's secrets."""
    activation = Activation(device.m1, provisioned.code)
    activation.take(device.exchange(activation.opening(), opens_round=False))
    taken = device.instructions()
    activation.finish(device.exchange(activation.confirmation()))
    return taken + device.instructions(), activation


def with_host_code(device, grant, user):
    ours = secrets.token_hex(8)
    attempt = Attempt(device.m1, grant, by_reference=True, request=session.request("host-code", ["bob", ours]))
    theirs, code = attempt.verify(device.exchange(attempt.message())).result["result"].decode().split(" ")
    assert code == oath.ocra(HOST_SUITE, user.host, ours + theirs), "host code"
    return device.instructions()


def compatible(device, grant):
    nonce = bytes([secrets.randbelow(128)]) + secrets.token_bytes(15)
    proofs = [proof(grant.proof_key, nonce, grant.claims[name]) for name in ("integrity", "device")]
    reply = device.exchange(cbor.encode([12, nonce, session.COSE, grant.token, *proofs, "lock"]))
    assert cbor.decode(reply) == [3, session.STATUS["accepted"], None], "the answer to a compatibility round"
    return device.instructions()


def is_second_slot_in_force(device):
    with device.image.open("rb") as image:
        image.seek(SECOND_SLOT + 12)
        return image.read(4) == bytes(4)


def until_the_other_slot(device, grant):
    """Rounds until the journal has moved, and two more; what the dearest took."""
    dearest = 0
    for _ in range(MOST_ROUNDS):
        dearest = max(dearest, remembered(device, grant))
        if is_second_slot_in_force(device):
            return max(dearest, remembered(device, grant), remembered(device, grant))
    assert False, f"the journal has not moved in {MOST_ROUNDS} rounds"


def run(provisioned, device):
    """The whole life of a device; what each part of it took, by name, in instructions."""
    grant = provisioned.signed(session.COSE)
    took = {"first token, COSE_Sign1": ask(device, grant)}
    # Both ends of the script are to be seen: a round costs more once the audit log's numbers are longer.
    first = remembered(device, grant)
    took["first token, COSE_Mac0"] = ask(device, provisioned.authenticated())
    took["first token, JOSE"] = ask(device, provisioned.signed(session.JOSE))
    took["first token, JOSE with a wrapped key"] = ask(device, provisioned.wrapped())
    took["a round without a number"] = unnumbered(device, grant)
    took["a repetition"] = repeated(device, grant)
    took["a round with a counted token"] = counted(provisioned, device)
    took["a round with a one-time password"] = with_password(provisioned, device, grant)
    took["a round with a seal"] = with_seal(provisioned, device, grant, "alice", SUITE)
    took["a round with a seal by SHA-512"] = with_seal(provisioned, device, grant, "carol", LONG_SUITE)
    took["an activation"], bob = activated(provisioned, device)
    took["a round for a host code"] = with_host_code(device, grant, bob)
    took["a compatibility round"] = compatible(device, grant)
    took["a round with a remembered token"] = max(first, until_the_other_slot(device, grant))
    return took
