#!/usr/bin/env python3
"""The service and the backend, attacked by anyone who may enrol or owns one device, and asked by their owner.

usage: online_half.py --holdfast PATH

One line for each check that failed, then the totals. Exit status 1 when a check failed.
"""

import argparse
import json
import pathlib
import secrets
import sys
import tempfile
import time

from holdfast_peer import cose, measurement, session, transport
from holdfast_peer.checks import Checks, expect, expect_equal
from holdfast_peer.command_line import CommandLine, descriptor_json, read_descriptor, stop
from holdfast_peer.issuer import Grant
from holdfast_peer.keys import PrivateKey, point_of_jwk
from holdfast_peer.primitives import sha256
from holdfast_peer.prover import Prover
from holdfast_peer.state import enrolment

OK, DENIED, MALFORMED, USAGE = 0, 1, 2, 64
APP = ["app.debug", "app.image", "app.injected", "app.text", "os.release"]
DEVICE = ["device.cpu", "device.machine", "device.secret"]
# The root that everybody knows.
DEVELOPMENT_ROOT = sha256(b"holdfast development measurement proof key")[:16]
CHECKS = []


def check(name, *arguments):
    def register(body):
        CHECKS.append((name, body, arguments))
        return body
    return register


class World:
    """A service, and a lock that trusts it and is registered there."""

    def __init__(self, path, folder):
        self.folder = pathlib.Path(folder)
        self.line = CommandLine(path, folder)
        self.service, self.lock, self.socket = self.folder / "service", self.folder / "lock", self.folder / "lock.sock"
        self.lock_file = self.folder / "lock.json"
        self.count = 0
        self.lock_process = self.issuer = self.descriptor = None

    def prepare(self):
        run = self.line
        run.succeed("service", "init", "--dir", self.service)
        shown = self.write("service.json", run.succeed("service", "show", "--dir", self.service, "--json"))
        run.succeed("device", "init", "--dir", self.lock)
        run.succeed("device", "trust", "--dir", self.lock, shown)
        self.write("lock.json", run.succeed("device", "show", "--dir", self.lock, "--json"))
        run.succeed("service", "device", "add", "--dir", self.service, self.lock_file)
        self.issuer = point_of_jwk(json.loads(shown.read_bytes())["issuer"])
        self.descriptor = read_descriptor(json.loads(self.lock_file.read_bytes()))
        self.lock_process = run.start("device", "serve", "--dir", self.lock, "--listen", f"unix:{self.socket}")
        transport.connect_when_ready(str(self.socket)).close()

    def name(self, stem):
        self.count += 1
        return self.folder / f"{stem}-{self.count}"

    def write(self, name, data):
        path = self.folder / name
        path.write_bytes(data if isinstance(data, bytes) else json.dumps(data).encode())
        path.chmod(0o600)
        return path

    def own(self, *words):
        """One of the service's owner's verbs."""
        return self.line.run("service", *words, "--dir", self.service)

    def policy(self):
        return json.loads((self.service / "policy.json").read_bytes())

    def change_policy(self, **changes):
        """Changes members of the policy; None removes one."""
        members = {k: v for k, v in {**self.policy(), **changes}.items() if v is not None}
        (self.service / "policy.json").write_text(json.dumps(members))

    def enroll(self, descriptor, state=None, *more):
        return self.line.run("enroll", "--device", descriptor, "--service", self.service, "--state", state or self.name("state"), *more)

    def fake(self):
        """A device that does not exist: its key, its id and its descriptor's file."""
        key, device_id = PrivateKey(), secrets.token_bytes(16)
        return key, device_id, self.write(self.name("fake").name, descriptor_json(key, device_id))

    def attest(self, evidence, descriptor):
        out = self.name("attestation")
        done = self.line.run("attest", "--service", self.service, "--device", descriptor, "--evidence", evidence, "--out", out)
        return done, out


def status_is(done, status, *words):
    said = done.stderr.decode()
    expect_equal(done.returncode, status, f"exit status ({said.strip()[-300:]})")
    for word in words:
        expect(word in said, f"'{word}' is not in: {said}")


def forged(world, key, **claims):
    """Evidence of an app that never ran, with the approved image's public digest; what its holder would have to prove."""
    image = bytes.fromhex(next(iter(world.policy()["images"])))
    app = [(name, image if name == "app.image" else secrets.token_bytes(32)) for name in APP]
    device = [(name, secrets.token_bytes(32)) for name in DEVICE]
    salt = secrets.token_bytes(32)
    _, proof_key = measurement.release_keys(DEVELOPMENT_ROOT)
    configuration = measurement.configuration(salt, measurement.proof_key_id(proof_key), APP, DEVICE, int(time.time()))
    evidence = measurement.evidence(key, configuration, app, device, **claims)
    proved = {"integrity": measurement.integrity_measurement(salt, configuration, app, device),
              "device": measurement.device_measurement(salt, configuration, device), "proofKey": proof_key}
    return world.write(world.name("evidence").name, evidence), proved


def key_from_a_token(world, key, device_id, descriptor):
    """The measurement proof key, read from a token for a device whose key the attacker has."""
    state = world.name("state")
    done = world.enroll(descriptor, state)
    status_is(done, OK)
    claims, _ = cose.open_token((enrolment(state) / "measurement_token.cose").read_bytes(), key, [world.issuer], device_id)
    return claims["proofKey"]


# The attacks of those who may enrol, or own one device.

def forge(world, admission):
    world.change_policy(devices=admission)
    key, device_id, descriptor = world.fake()
    if admission == "listed":
        status_is(world.enroll(descriptor), DENIED, "not registered", "service device add")
        # The attacker owns a device, which the service's owner has registered.
        status_is(world.own("device", "add", descriptor), OK)
    proof_key = key_from_a_token(world, key, device_id, descriptor)
    expect_equal(proof_key, measurement.release_keys(DEVELOPMENT_ROOT)[1], "the key in the token")
    evidence_key, derived = measurement.release_keys(proof_key)
    for what, forgery in (("the key of the token", proof_key), ("it twice", proof_key * 2), ("it, padded", proof_key + bytes(16)),
                          ("a key derived from it", evidence_key), ("another key derived from it", derived)):
        evidence, _ = forged(world, forgery)
        done, out = world.attest(evidence, world.lock_file)
        status_is(done, DENIED, "evidence key")
        expect(not out.exists(), f"with {what}, there is an attestation token")
    world.change_policy(devices="listed")


for _admission in ("listed", "first-come"):
    check(f"the key in a token forges no evidence, with devices {_admission}", _admission)(forge)


@check("the same forgery with the evidence key itself goes through, so that the others fail for their key alone")
def _(world):
    evidence, proved = forged(world, measurement.release_keys(DEVELOPMENT_ROOT)[0])
    done, out = world.attest(evidence, world.lock_file)
    status_is(done, OK)
    state = world.name("state")
    world.line.succeed("measure", "--state", state, "--out", world.name("evidence"))
    done = world.line.run("issue", "--service", world.service, "--device", world.lock_file, "--attestation", out, "--state", state)
    status_is(done, OK)
    prover = Prover(transport.connect(str(world.socket)), world.descriptor)
    outcome = prover.ask(Grant((enrolment(state) / "measurement_token.cose").read_bytes(), session.COSE, proved))
    expect_equal(outcome.status, 0, "status at the lock")


@check("no token holds the evidence key, and the service's files hold the root nowhere")
def _(world):
    key, device_id, descriptor = world.fake()
    status_is(world.own("device", "add", descriptor), OK)
    state = world.name("state")
    status_is(world.enroll(descriptor, state), OK)
    token = (enrolment(state) / "measurement_token.cose").read_bytes()
    evidence_key, proof_key = measurement.release_keys(DEVELOPMENT_ROOT)
    plaintext = repr(cose.open_token(token, key, [world.issuer], device_id))
    expect(repr(proof_key) in plaintext and repr(evidence_key)[2:-1] not in plaintext, "the token's claims")
    for file in world.service.iterdir():
        expect(DEVELOPMENT_ROOT not in file.read_bytes(), f"{file.name} holds the root")


@check("a device's id cannot be taken by who enrols first: the owner's word counts, and revokes")
def _(world):
    world.change_policy(devices="first-come")
    key, device_id = PrivateKey(), secrets.token_bytes(16)
    true = world.write(world.name("true").name, descriptor_json(key, device_id))
    squatter = world.write(world.name("squatter").name, descriptor_json(PrivateKey(), device_id))
    status_is(world.enroll(squatter), OK)
    status_is(world.enroll(true), DENIED, "another key")
    done = world.own("device", "add", true)
    status_is(done, OK, "revoked")
    status_is(world.enroll(squatter), DENIED, "another key")
    state = world.name("state")
    status_is(world.enroll(true, state), OK)
    claims, _ = cose.open_token((enrolment(state) / "measurement_token.cose").read_bytes(), key, [world.issuer], device_id)
    expect_equal(claims["generation"], 2, "generation")
    world.change_policy(devices="listed")


@check("an app's version and name are the policy's, whatever the app says")
def _(world):
    for more, word in ((("--app-version", "9.9.9"), "9.9.9"), (("--subject", "the-ceo's app"), "the-ceo's app")):
        status_is(world.enroll(world.lock_file, None, *more), DENIED, word, "policy", "service approve")
    status_is(world.enroll(world.lock_file, None, "--subject", "holdfast", "--app-version", "0.0.0"), OK)
    for bad in ("1.2", "1.2.3.4", "a.b.c", "-1.2.3", "+1.2.3", "1..3", "9007199254740992.0.0", ""):
        status_is(world.enroll(world.lock_file, None, f"--app-version={bad}"), USAGE)
    for bad in ("", "x" * 65):
        status_is(world.enroll(world.lock_file, None, f"--subject={bad}"), USAGE)


# The registry of devices.

def listed(world):
    return {entry["device_id"]: entry for entry in json.loads(world.own("device", "list", "--json").stdout)["devices"]}


@check("a device is added, blocked, unblocked and removed, and each command may be repeated")
def _(world):
    _, device_id, descriptor = world.fake()
    name = device_id.hex()
    add, others = ("device", "add", descriptor), lambda verb: ("device", verb, name)
    status_is(world.enroll(descriptor), DENIED, "not registered")
    for label in ((), (), ("--label", "front door"), ("--label", "front door"), ()):
        status_is(world.own(*add, *label), OK)
    expect_equal((listed(world)[name]["label"], listed(world)[name]["listed"], listed(world)[name]["blocked"]),
                 ("front door", True, False), "the entry")
    status_is(world.enroll(descriptor), OK)
    for _ in range(2):
        status_is(world.own(*others("block")), OK, "revoke")
        status_is(world.enroll(descriptor), DENIED, "blocked", "service device unblock")
    expect(listed(world)[name]["blocked"], "the entry is not blocked")
    # A block outlives the entry, and a new one.
    status_is(world.own(*others("remove")), OK)
    status_is(world.own(*add), OK)
    status_is(world.enroll(descriptor), DENIED, "blocked")
    for _ in range(2):
        status_is(world.own(*others("unblock")), OK)
    status_is(world.enroll(descriptor), OK)
    for _ in range(2):
        status_is(world.own(*others("remove")), OK)
    expect(name not in listed(world), "the entry is still there")
    status_is(world.enroll(descriptor), DENIED, "not registered")


@check("with first-come, a device that is blocked gets no token, registered or not")
def _(world):
    world.change_policy(devices="first-come")
    _, device_id, descriptor = world.fake()
    status_is(world.enroll(descriptor), OK)
    status_is(world.own("device", "block", descriptor), OK)
    status_is(world.enroll(descriptor), DENIED, "blocked")
    status_is(world.own("device", "unblock", device_id.hex()), OK)
    status_is(world.enroll(descriptor), OK)
    world.change_policy(devices="listed")


@check("a second key for a registered id is refused until the owner removes the first")
def _(world):
    device_id = secrets.token_bytes(16)
    first, second = (world.write(world.name("key").name, descriptor_json(PrivateKey(), device_id)) for _ in range(2))
    status_is(world.own("device", "add", first), OK)
    status_is(world.own("device", "add", second), DENIED, "another key", "service device remove")
    status_is(world.enroll(second), DENIED, "another key")
    status_is(world.own("device", "remove", device_id.hex()), OK)
    status_is(world.own("device", "add", second), OK)
    status_is(world.enroll(second), OK)


@check("a device that the service knows nothing of, and what is no device, is refused by name")
def _(world):
    unknown = secrets.token_bytes(16).hex()
    for verb in ("unblock", "remove"):
        status_is(world.own("device", verb, unknown), MALFORMED, unknown, "service device list")
        status_is(world.own("device", verb, world.name("none")), MALFORMED)
    # A device may be blocked before it has come for its first token.
    status_is(world.own("device", "block", world.name("none")), MALFORMED)
    status_is(world.own("device", "block", unknown), OK)
    status_is(world.own("device", "unblock", unknown), OK)
    good = json.loads(world.lock_file.read_bytes())
    for what, value in (("empty", b""), ("no JSON", b"{"), ("a list", []), ("huge", b"{" + b" " * 70_000 + b"}"),
                        ("twice", world.lock_file.read_bytes().replace(b'{"kid"', b'{"kid"', 1).rstrip()[:-1] + b',"kid":"00"}'),
                        ("a member too many", {**good, "more": 1}), ("no key", {k: v for k, v in good.items() if k != "public_key"}),
                        ("an id too short", {**good, "device_id": "00"}), ("an id that is a number", {**good, "device_id": 0}),
                        ("another key id", {**good, "kid": "0" * 16})):
        done = world.own("device", "add", world.write(world.name("bad").name, value))
        expect_equal(done.returncode, MALFORMED, f"exit status of a descriptor that is {what}")
    for label in ("", "x" * 65):
        status_is(world.own("device", "add", world.lock_file, f"--label={label}"), USAGE)
    status_is(world.own("device", "add", world.lock_file, "--label", "a", "--json"), OK)


# The list of images.

@check("an image is approved under a name and a version, listed, and taken back, and each command may be repeated")
def _(world):
    image, digest = "/bin/ls", sha256(pathlib.Path("/bin/ls").read_bytes()).hex()
    approve = ("approve", image, "--subject", "files", "--version")
    for version in ("1.2.3", "1.2.3", "1.2.4"):
        status_is(world.own(*approve, version), OK)
    images = {entry["image"]: entry for entry in json.loads(world.own("images", "--json").stdout)["images"]}
    expect_equal(images[digest], {"image": digest, "subject": "files", "version": [1, 2, 4]}, "the entry")
    expect(len(images) == 2, f"{len(images)} images")
    for name in (image, digest):
        status_is(world.own("unapprove", name), OK)
        expect(digest not in world.policy()["images"], "still approved")
    own = next(iter(world.policy()["images"]))
    status_is(world.own("unapprove", world.line.path), OK)
    status_is(world.enroll(world.lock_file), DENIED, "image", "service approve")
    status_is(world.own("approve"), OK)
    expect(own in world.policy()["images"], "the program's own image is not approved")
    status_is(world.enroll(world.lock_file), OK)


@check("what is no program, or has no name or version, is not approved")
def _(world):
    before = world.policy()
    named = ("--subject", "a", "--version", "1.2.3")
    cut = world.write("cut", pathlib.Path("/bin/ls").read_bytes()[:40])
    library = world.write("text", b"\x7fELF" + bytes(60))
    for image in ("/etc/passwd", cut, library, world.write("empty", b""), "/dev/null"):
        status_is(world.own("approve", image, *named), MALFORMED)
    status_is(world.own("approve", "/etc/passwd", *named), MALFORMED, "not an executable program")
    for image in (world.name("none"), world.folder):
        status_is(world.own("approve", image, *named), MALFORMED)
    for words in ((), ("--subject", "a"), ("--version", "1.2.3"), ("--subject", "", "--version", "1.2.3"),
                  ("--subject", "a", "--version", "1.2"), ("--subject", "x" * 65, "--version", "1.2.3")):
        status_is(world.own("approve", "/bin/ls", *words), USAGE)
    expect_equal(world.policy(), before, "the policy")


@check("a key file registers the keys of another build, and only those that it holds")
def _(world):
    root = secrets.token_bytes(16)
    named = ("approve", "/bin/ls", "--subject", "files", "--version", "1.2.3", "--mpk-key")
    before = (world.service / "release.keys").read_bytes()
    for text in (b"", b"# nothing\n", b"00\n", root.hex().encode() + b"\n" + root.hex().encode(), b"0" * 70_000):
        status_is(world.own(*named, world.write("mpk.key", text)), MALFORMED, "mpk.key")
    status_is(world.own(*named, world.name("none")), MALFORMED)
    open_file = world.write("mpk.key", root.hex().encode())
    open_file.chmod(0o644)
    status_is(world.own(*named, open_file), 77, "chmod")
    open_file.chmod(0o600)
    expect_equal((world.service / "release.keys").read_bytes(), before, "the keys")
    for _ in range(2):
        status_is(world.own(*named, open_file), OK)
    evidence_key, proof_key = measurement.release_keys(root)
    expect_equal((world.service / "release.keys").read_bytes(), before + proof_key + evidence_key, "the keys")
    status_is(world.own("unapprove", "/bin/ls"), OK)


@check("a policy of the earlier shape, and one that is wrong, is refused by the member's name")
def _(world):
    good = world.policy()
    digest = next(iter(good["images"]))
    for changes, word in (
            ({"images": None}, "images"), ({"images": []}, "images"), ({"images": {"AB": good["images"][digest]}}, "images.AB"),
            ({"images": {digest: {"subject": "a"}}}, f"images.{digest}.version"),
            ({"images": {digest: {"subject": 1, "version": [1, 2, 3]}}}, f"images.{digest}.subject"),
            ({"images": {digest: {"subject": "a", "version": "1.2.3"}}}, f"images.{digest}.version"),
            ({"images": {digest: {"subject": "a", "version": [1, 2, 3], "more": 1}}}, f"images.{digest}.more"),
            ({"devices": "all"}, "devices"), ({"devices": 1}, "devices"), ({"more": 1}, "more"),
            ({"images": None, "image_digests": [digest]}, "image_digests")):
        world.change_policy(**changes)
        status_is(world.enroll(world.lock_file), MALFORMED, word)
        (world.service / "policy.json").write_text(json.dumps(good))
    status_is(world.enroll(world.lock_file), OK)


# Folders: half-made, and of other kinds.

@check("a service that was killed while it was made is used by nothing, and made by the same command")
def _(world):
    whole = {"account.key", "attestation-encryption.jwk", "attestation.sqlite", "issuer.key", "issuer.sqlite", "lock", "policy.json",
             "release.keys"}
    for seconds in [0.002 * step for step in range(30)]:
        folder = world.name("killed")
        making = world.line.start("service", "init", "--dir", folder)
        time.sleep(seconds)
        making.kill()
        making.wait()
        if (folder / "half-made").exists():
            status_is(world.line.run("service", "show", "--dir", folder), MALFORMED, "interrupted", "service init")
            status_is(world.line.run("service", "approve", "--dir", folder), MALFORMED, "interrupted")
        done = world.line.run("service", "init", "--dir", folder)
        # It may have been done before the signal came.
        expect(done.returncode == OK or b"already" in done.stderr, done.stderr.decode())
        status_is(world.line.run("service", "show", "--dir", folder), OK)
        expect_equal({path.name for path in folder.iterdir()}, whole, "the files")


@check("a device that was killed while it was made is used by nothing, and made by the same command")
def _(world):
    for seconds in [0.002 * step for step in range(20)]:
        folder = world.name("killed")
        making = world.line.start("device", "init", "--dir", folder)
        time.sleep(seconds)
        making.kill()
        making.wait()
        if (folder / "half-made").exists():
            status_is(world.line.run("device", "show", "--dir", folder), MALFORMED, "interrupted", "device init")
        done = world.line.run("device", "init", "--dir", folder)
        expect(done.returncode == OK or b"already" in done.stderr, done.stderr.decode())
        status_is(world.line.run("device", "show", "--dir", folder), OK)
        expect(not list(folder.glob(".holdfast-*")), "what the first making left is still there")


@check("a verb refuses a folder of another kind, names the kind, and writes nothing there")
def _(world):
    state, keys = world.name("state"), world.name("keys")
    status_is(world.enroll(world.lock_file, state), OK)
    secret = world.write("secret", b"ab" * 20 + b"\n")
    world.line.succeed("otp", "import", "--authenticator", keys, "--no-pin", "--format", "hex", "--user", "alice", secret)
    folders = {"a device's": world.lock, "a service's": world.service, "a prover's": state, "an authenticator's": keys}
    verbs = {
        "a device's": [["device", "init", "--dir"], ["device", "show", "--dir"], ["device", "reset", "--yes", "--dir"],
                       ["device", "policy", "--dir"], ["device", "serve", "--listen", f"unix:{world.folder}/other.sock", "--dir"]],
        "a service's": [["service", "init", "--dir"], ["service", "show", "--dir"], ["service", "images", "--dir"], ["service", "approve", "--dir"],
                        ["service", "device", "list", "--dir"], ["service", "revoke", "--device", world.lock_file, "--dir"],
                        ["enroll", "--device", world.lock_file, "--state", world.name("state"), "--service"]],
        "a prover's": [["enroll", "--device", world.lock_file, "--service", world.service, "--state"],
                       ["measure", "--out", world.name("evidence"), "--state"], ["explain", "--state"], ["status", "--state"],
                       ["prove", "--connect", f"unix:{world.socket}", "--command", "status", "--state"]],
        "an authenticator's": [["otp", "list", "--authenticator"], ["otp", "code", "--authenticator"],
                               ["otp", "import", "--no-pin", "--format", "hex", "--user", "bob", secret, "--authenticator"]],
    }
    for needed, lines in verbs.items():
        for kind, folder in folders.items():
            if kind == needed:
                continue
            before = {path: path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file() and path.suffix not in ("-shm", "-wal")}
            for line in lines:
                done = world.line.run(*line, folder, "--json")
                said = done.stderr.decode()
                expect(done.returncode == MALFORMED and kind in said and "hint:" in said,
                       f"{' '.join(map(str, line[:2]))} with {kind} folder ended with {done.returncode}: {said.strip()[-200:]}")
                expect(json.loads(done.stdout)["exit"] == MALFORMED, "the object of the error")
            after = {path: path.read_bytes() for path in before if path.exists()}
            changed = [path.name for path in before if before[path] != after.get(path) and not path.name.startswith("ledger.sqlite")]
            expect(not changed, f"{kind} folder: {changed} changed")


@check("evidence is deleted by attest where it is told to, and otherwise its reader is told to delete it")
def _(world):
    state, out = world.name("state"), world.name("attestation")
    for more, remains in ((("--delete-evidence",), False), ((), True)):
        evidence = world.name("evidence")
        status_is(world.line.run("measure", "--replace", "--state", state, "--out", evidence), OK, "delete")
        done = world.line.run("attest", "--service", world.service, "--device", world.lock_file, "--evidence", evidence, "--out", out, *more)
        status_is(done, OK, *(("delete",) if remains else ()))
        expect_equal(evidence.exists(), remains, "whether the evidence is there")
    # Evidence that was refused is kept, so that the step can be repeated.
    done = world.line.run("attest", "--service", world.service, "--device", world.lock_file, "--evidence", evidence, "--out", out,
                          "--delete-evidence")
    status_is(done, DENIED)
    expect(evidence.exists(), "refused evidence was deleted")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--holdfast", required=True, help="the command line under test")
    parser.add_argument("--only", default="", help="run only the checks whose name has this text")
    options = parser.parse_args()
    checks = Checks()
    with tempfile.TemporaryDirectory(prefix="hf") as folder:
        world = World(options.holdfast, folder)
        try:
            checks.run("service and lock are made, and the lock answers", world.prepare)
            for name, body, arguments in CHECKS if not checks.failed else ():
                if options.only in name:
                    checks.run(name, body, world, *arguments)
        finally:
            if world.lock_process:
                stop(world.lock_process)
    sys.exit(checks.finish())


if __name__ == "__main__":
    main()
