"""The service and the backend, attacked by anyone who may enrol or owns one device, and asked by their owner."""

import json
import pathlib
import re
import secrets
import subprocess
import sys
import time

import pytest
from holdfast_peer import cose, measurement, session, transport
from holdfast_peer.command_line import CommandLine, descriptor_json, read_descriptor, stop
from holdfast_peer.issuer import Grant
from holdfast_peer.keys import PrivateKey, point_of_jwk
from holdfast_peer.primitives import sha256
from holdfast_peer.prover import Prover
from holdfast_peer.state import enrolment
from makers import signature_by

OK, DENIED, MALFORMED, USAGE = 0, 1, 2, 64
APP = ["app.debug", "app.image", "app.injected", "app.text", "os.release"]
DEVICE = ["device.cpu", "device.machine", "device.secret"]
# The root that everybody knows.
DEFAULT_ROOT = sha256(b"holdfast development measurement proof key")[:16]


class Backend:
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
        return self.line.run(
            "enroll", "--device", descriptor, "--service", self.service, "--state", state or self.name("state"), *more
        )

    def fake(self):
        """A device that does not exist: its key, its id and its descriptor's file."""
        key, device_id = PrivateKey(), secrets.token_bytes(16)
        return key, device_id, self.write(self.name("fake").name, descriptor_json(key, device_id))

    def attest(self, evidence, descriptor):
        out = self.name("attestation")
        done = self.line.run(
            "attest", "--service", self.service, "--device", descriptor, "--evidence", evidence, "--out", out
        )
        return done, out


@pytest.fixture(scope="module")
def backend(holdfast, folder):
    backend = Backend(holdfast, folder)
    try:
        backend.prepare()
        yield backend
    finally:
        if backend.lock_process:
            stop(backend.lock_process)


def status_is(done, status, *words):
    said = done.stderr.decode()
    assert done.returncode == status, f"exit status ({said.strip()[-300:]})"
    for word in words:
        assert word in said, f"'{word}' is not in: {said}"


def forged(backend, key, root=DEFAULT_ROOT, image=None, **claims):
    """Evidence of an app that never ran, with an approved image's public digest; what its holder would have to prove."""
    image = image or bytes.fromhex(next(iter(backend.policy()["images"])))
    app = [(name, image if name == "app.image" else secrets.token_bytes(32)) for name in APP]
    device = [(name, secrets.token_bytes(32)) for name in DEVICE]
    salt = secrets.token_bytes(32)
    _, proof_key = measurement.release_keys(root)
    configuration = measurement.configuration(salt, measurement.proof_key_id(proof_key), APP, DEVICE, int(time.time()))
    evidence = measurement.evidence(key, configuration, app, device, **claims)
    proved = {
        "integrity": measurement.integrity_measurement(salt, configuration, app, device),
        "device": measurement.device_measurement(salt, configuration, device),
        "proofKey": proof_key,
    }
    return backend.write(backend.name("evidence").name, evidence), proved


def key_from_a_token(backend, key, device_id, descriptor):
    """The measurement proof key, read from a token for a device whose key the attacker has."""
    state = backend.name("state")
    done = backend.enroll(descriptor, state)
    status_is(done, OK)
    claims, _ = cose.open_token(
        (enrolment(state) / "measurement_token.cose").read_bytes(), key, [backend.issuer], device_id
    )
    return claims["proofKey"]


# The attacks of those who may enrol, or own one device.


@pytest.mark.parametrize("admission", ["listed", "first-come"])
def test_the_key_in_a_token_forges_no_evidence(backend, admission):
    backend.change_policy(devices=admission)
    key, device_id, descriptor = backend.fake()
    if admission == "listed":
        status_is(backend.enroll(descriptor), DENIED, "not registered", "service device add")
        # The attacker owns a device, which the service's owner has registered.
        status_is(backend.own("device", "add", descriptor), OK)
    proof_key = key_from_a_token(backend, key, device_id, descriptor)
    assert proof_key == measurement.release_keys(DEFAULT_ROOT)[1], "the key in the token"
    evidence_key, derived = measurement.release_keys(proof_key)
    for what, forgery in (
        ("the key of the token", proof_key),
        ("it twice", proof_key * 2),
        ("it, padded", proof_key + bytes(16)),
        ("a key derived from it", evidence_key),
        ("another key derived from it", derived),
    ):
        evidence, _ = forged(backend, forgery)
        done, out = backend.attest(evidence, backend.lock_file)
        status_is(done, DENIED, "evidence key")
        assert not out.exists(), f"with {what}, there is an attestation token"
    backend.change_policy(devices="listed")


def test_the_same_forgery_with_the_evidence_key_itself_goes_through_so_that_the_others_fail_for_their_key_alone(
    backend,
):
    evidence, proved = forged(backend, measurement.release_keys(DEFAULT_ROOT)[0])
    done, out = backend.attest(evidence, backend.lock_file)
    status_is(done, OK)
    state = backend.name("state")
    backend.line.succeed("measure", "--state", state, "--out", backend.name("evidence"))
    done = backend.line.run(
        "issue", "--service", backend.service, "--device", backend.lock_file, "--attestation", out, "--state", state
    )
    status_is(done, OK)
    prover = Prover(transport.connect(str(backend.socket)), backend.descriptor)
    outcome = prover.ask(Grant((enrolment(state) / "measurement_token.cose").read_bytes(), session.COSE, proved))
    assert outcome.status == 0, "status at the lock"


def test_no_token_holds_the_evidence_key_and_the_services_files_hold_the_root_nowhere(backend):
    key, device_id, descriptor = backend.fake()
    status_is(backend.own("device", "add", descriptor), OK)
    state = backend.name("state")
    status_is(backend.enroll(descriptor, state), OK)
    token = (enrolment(state) / "measurement_token.cose").read_bytes()
    evidence_key, proof_key = measurement.release_keys(DEFAULT_ROOT)
    plaintext = repr(cose.open_token(token, key, [backend.issuer], device_id))
    assert repr(proof_key) in plaintext and repr(evidence_key)[2:-1] not in plaintext, "the token's claims"
    for file in backend.service.iterdir():
        assert DEFAULT_ROOT not in file.read_bytes(), f"{file.name} holds the root"


def test_a_devices_id_cannot_be_taken_by_who_enrols_first_the_owners_word_counts_and_revokes(backend):
    backend.change_policy(devices="first-come")
    key, device_id = PrivateKey(), secrets.token_bytes(16)
    true = backend.write(backend.name("true").name, descriptor_json(key, device_id))
    squatter = backend.write(backend.name("squatter").name, descriptor_json(PrivateKey(), device_id))
    status_is(backend.enroll(squatter), OK)
    status_is(backend.enroll(true), DENIED, "another key")
    done = backend.own("device", "add", true)
    status_is(done, OK, "revoked")
    status_is(backend.enroll(squatter), DENIED, "another key")
    state = backend.name("state")
    status_is(backend.enroll(true, state), OK)
    claims, _ = cose.open_token(
        (enrolment(state) / "measurement_token.cose").read_bytes(), key, [backend.issuer], device_id
    )
    assert claims["generation"] == 2, "generation"
    backend.change_policy(devices="listed")


def test_an_apps_version_and_name_are_the_policys_whatever_the_app_says(backend):
    for more, word in ((("--app-version", "9.9.9"), "9.9.9"), (("--subject", "the-ceo's app"), "the-ceo's app")):
        status_is(backend.enroll(backend.lock_file, None, *more), DENIED, word, "policy", "service approve")
    status_is(backend.enroll(backend.lock_file, None, "--subject", "holdfast", "--app-version", "0.0.0"), OK)
    for bad in ("1.2", "1.2.3.4", "a.b.c", "-1.2.3", "+1.2.3", "1..3", "9007199254740992.0.0", ""):
        status_is(backend.enroll(backend.lock_file, None, f"--app-version={bad}"), USAGE)
    for bad in ("", "x" * 65):
        status_is(backend.enroll(backend.lock_file, None, f"--subject={bad}"), USAGE)


# The registry of devices.


def listed(backend):
    return {
        entry["device_id"]: entry for entry in json.loads(backend.own("device", "list", "--json").stdout)["devices"]
    }


def test_a_device_is_added_blocked_unblocked_and_removed_and_each_command_may_be_repeated(backend):
    _, device_id, descriptor = backend.fake()
    name = device_id.hex()
    add, others = ("device", "add", descriptor), lambda verb: ("device", verb, name)
    status_is(backend.enroll(descriptor), DENIED, "not registered")
    for label in ((), (), ("--label", "front door"), ("--label", "front door"), ()):
        status_is(backend.own(*add, *label), OK)
    assert (listed(backend)[name]["label"], listed(backend)[name]["listed"], listed(backend)[name]["blocked"]) == (
        "front door",
        True,
        False,
    ), "the entry"
    status_is(backend.enroll(descriptor), OK)
    for _ in range(2):
        status_is(backend.own(*others("block")), OK, "revoke")
        status_is(backend.enroll(descriptor), DENIED, "blocked", "service device unblock")
    assert listed(backend)[name]["blocked"], "the entry is not blocked"
    # A block outlives the entry, and a new one.
    status_is(backend.own(*others("remove")), OK)
    status_is(backend.own(*add), OK)
    status_is(backend.enroll(descriptor), DENIED, "blocked")
    for _ in range(2):
        status_is(backend.own(*others("unblock")), OK)
    status_is(backend.enroll(descriptor), OK)
    for _ in range(2):
        status_is(backend.own(*others("remove")), OK)
    assert name not in listed(backend), "the entry is still there"
    status_is(backend.enroll(descriptor), DENIED, "not registered")


def test_with_first_come_a_device_that_is_blocked_gets_no_token_registered_or_not(backend):
    backend.change_policy(devices="first-come")
    _, device_id, descriptor = backend.fake()
    status_is(backend.enroll(descriptor), OK)
    status_is(backend.own("device", "block", descriptor), OK)
    status_is(backend.enroll(descriptor), DENIED, "blocked")
    status_is(backend.own("device", "unblock", device_id.hex()), OK)
    status_is(backend.enroll(descriptor), OK)
    backend.change_policy(devices="listed")


def test_a_second_key_for_a_registered_id_is_refused_until_the_owner_removes_the_first(backend):
    device_id = secrets.token_bytes(16)
    first, second = (
        backend.write(backend.name("key").name, descriptor_json(PrivateKey(), device_id)) for _ in range(2)
    )
    status_is(backend.own("device", "add", first), OK)
    status_is(backend.own("device", "add", second), DENIED, "another key", "service device remove")
    status_is(backend.enroll(second), DENIED, "another key")
    status_is(backend.own("device", "remove", device_id.hex()), OK)
    status_is(backend.own("device", "add", second), OK)
    status_is(backend.enroll(second), OK)


def test_a_device_that_the_service_knows_nothing_of_and_what_is_no_device_is_refused_by_name(backend):
    unknown = secrets.token_bytes(16).hex()
    for verb in ("unblock", "remove"):
        status_is(backend.own("device", verb, unknown), MALFORMED, unknown, "service device list")
        status_is(backend.own("device", verb, backend.name("none")), MALFORMED)
    # A device may be blocked before it has come for its first token.
    status_is(backend.own("device", "block", backend.name("none")), MALFORMED)
    status_is(backend.own("device", "block", unknown), OK)
    status_is(backend.own("device", "unblock", unknown), OK)
    good = json.loads(backend.lock_file.read_bytes())
    for what, value in (
        ("empty", b""),
        ("no JSON", b"{"),
        ("a list", []),
        ("huge", b"{" + b" " * 70_000 + b"}"),
        ("twice", backend.lock_file.read_bytes().replace(b'{"kid"', b'{"kid"', 1).rstrip()[:-1] + b',"kid":"00"}'),
        ("a member too many", {**good, "more": 1}),
        ("no key", {k: v for k, v in good.items() if k != "public_key"}),
        ("an id too short", {**good, "device_id": "00"}),
        ("an id that is a number", {**good, "device_id": 0}),
        ("another key id", {**good, "kid": "0" * 16}),
    ):
        done = backend.own("device", "add", backend.write(backend.name("bad").name, value))
        assert done.returncode == MALFORMED, f"exit status of a descriptor that is {what}"
    for label in ("", "x" * 65):
        status_is(backend.own("device", "add", backend.lock_file, f"--label={label}"), USAGE)
    status_is(backend.own("device", "add", backend.lock_file, "--label", "a", "--json"), OK)


# The list of images.


def test_an_image_is_approved_under_a_name_and_a_version_listed_and_taken_back_and_each_command_may_be_repeated(
    backend,
):
    image, digest = "/bin/ls", sha256(pathlib.Path("/bin/ls").read_bytes()).hex()
    approve = ("approve", image, "--subject", "files", "--version")
    for version in ("1.2.3", "1.2.3", "1.2.4"):
        status_is(backend.own(*approve, version), OK)
    images = {entry["image"]: entry for entry in json.loads(backend.own("images", "--json").stdout)["images"]}
    tree = measurement.tree_digest(pathlib.Path(image).read_bytes()).hex()
    entry = {"image": digest, "subject": "files", "version": [1, 2, 4], "tree_digest": tree}
    assert images[digest] == entry, "the entry"
    assert len(images) == 2, f"{len(images)} images"
    for name in (image, digest):
        status_is(backend.own("unapprove", name), OK)
        assert digest not in backend.policy()["images"], "still approved"
    own = next(iter(backend.policy()["images"]))
    status_is(backend.own("unapprove", backend.line.path), OK)
    status_is(backend.enroll(backend.lock_file), DENIED, "image", "service approve")
    status_is(backend.own("approve"), OK)
    assert own in backend.policy()["images"], "the program's own image is not approved"
    status_is(backend.enroll(backend.lock_file), OK)


def test_what_is_no_program_or_has_no_name_or_version_is_not_approved(backend):
    before = backend.policy()
    named = ("--subject", "a", "--version", "1.2.3")
    cut = backend.write("cut", pathlib.Path("/bin/ls").read_bytes()[:40])
    library = backend.write("text", b"\x7fELF" + bytes(60))
    for image in ("/etc/passwd", cut, library, backend.write("empty", b""), "/dev/null"):
        status_is(backend.own("approve", image, *named), MALFORMED)
    status_is(backend.own("approve", "/etc/passwd", *named), MALFORMED, "not an executable program")
    for image in (backend.name("none"), backend.folder):
        status_is(backend.own("approve", image, *named), MALFORMED)
    for words in (
        (),
        ("--subject", "a"),
        ("--version", "1.2.3"),
        ("--subject", "", "--version", "1.2.3"),
        ("--subject", "a", "--version", "1.2"),
        ("--subject", "x" * 65, "--version", "1.2.3"),
    ):
        status_is(backend.own("approve", "/bin/ls", *words), USAGE)
    assert backend.policy() == before, "the policy"


def key_file(backend, *roots):
    return backend.write(backend.name("mpk.key").name, "".join(root.hex() + "\n" for root in roots).encode())


def test_a_key_file_registers_the_keys_of_another_build_and_only_those_that_it_holds(backend):
    root = secrets.token_bytes(16)
    named = ("approve", "/bin/ls", "--subject", "files", "--version", "1.2.3", "--proof-keys")
    before = (backend.service / "release.keys").read_bytes()
    many = "".join(f"{number:032x}\n" for number in range(1, 66)).encode()
    for text in (b"", b"# nothing\n", b"00\n", root.hex().encode() + b"\n" + root.hex().encode(), b"0" * 70_000, many):
        status_is(backend.own(*named, backend.write("mpk.key", text)), MALFORMED, "mpk.key")
    status_is(backend.own(*named, backend.name("none")), MALFORMED)
    open_file = backend.write("mpk.key", root.hex().encode())
    open_file.chmod(0o644)
    status_is(backend.own(*named, open_file), 77, "chmod")
    open_file.chmod(0o600)
    assert (backend.service / "release.keys").read_bytes() == before, "the keys"
    for _ in range(2):
        status_is(backend.own(*named, open_file), OK)
    evidence_key, proof_key = measurement.release_keys(root)
    assert (backend.service / "release.keys").read_bytes() == before + proof_key + evidence_key, "the keys"
    images = {entry["image"]: entry for entry in json.loads(backend.own("images", "--json").stdout)["images"]}
    digest = sha256(pathlib.Path("/bin/ls").read_bytes()).hex()
    assert images[digest]["proof_key"] == measurement.proof_key_id(proof_key).hex(), "the image's release"
    status_is(backend.own("unapprove", "/bin/ls"), OK)


def test_evidence_counts_only_for_the_images_of_the_release_whose_keys_it_has(backend):
    newer, older, others = (secrets.token_bytes(16) for _ in range(3))
    images = {name: sha256(pathlib.Path(f"/bin/{name}").read_bytes()) for name in ("ls", "cat", "cp")}
    own = bytes.fromhex(next(iter(backend.policy()["images"])))
    for name, *roots in (("ls", newer, older), ("cat", older), ("cp", others)):
        named = ("approve", f"/bin/{name}", "--subject", name, "--version", "1.2.3")
        status_is(backend.own(*named, "--proof-keys", key_file(backend, *roots)), OK)
    releases = {newer: images["ls"], older: images["cat"], others: images["cp"], DEFAULT_ROOT: own}
    for root, own_image in releases.items():
        for image in releases.values():
            evidence, _ = forged(backend, measurement.release_keys(root)[0], root, image)
            done, _ = backend.attest(evidence, backend.lock_file)
            if image == own_image:
                status_is(done, OK)
            else:
                status_is(done, DENIED, "in another one", "--proof-keys")
        # The key of another release does not authenticate evidence that names this one.
        stranger = next(other for other in releases if other != root)
        evidence, _ = forged(backend, measurement.release_keys(stranger)[0], root, own_image)
        status_is(backend.attest(evidence, backend.lock_file)[0], DENIED, "evidence key")
    for name in images:
        status_is(backend.own("unapprove", f"/bin/{name}"), OK)


@pytest.mark.parametrize("program, kind", [(sys.executable, "Python"), ("/bin/sh", "shell"), ("/bin/bash", "shell")])
def test_an_interpreter_can_be_approved_only_with_the_default_key(backend, program, kind):
    root = secrets.token_bytes(16)
    before = (backend.service / "release.keys").read_bytes()
    copy = backend.name("harmless")
    copy.write_bytes(pathlib.Path(program).read_bytes())
    for path in (program, copy):
        named = ("approve", path, "--subject", "script", "--version", "1.2.3")
        done = backend.own(*named, "--proof-keys", key_file(backend, root))
        status_is(done, MALFORMED, "interpreter", kind, "default key")
        assert (backend.service / "release.keys").read_bytes() == before, "the keys"
        status_is(backend.own(*named), OK)
    image = sha256(copy.read_bytes())
    assert "proof_key" not in backend.policy()["images"][image.hex()], "the image's release"
    evidence, _ = forged(backend, measurement.release_keys(DEFAULT_ROOT)[0], image=image)
    status_is(backend.attest(evidence, backend.lock_file)[0], OK)
    status_is(backend.own("unapprove", copy), OK)


def test_a_key_file_is_created_once_with_a_root_and_for_this_user_only(backend):
    files = [backend.name("mpk.key") for _ in range(2)]
    for file in files:
        status_is(backend.line.run("proof-keys", "--new", file), OK)
        assert re.fullmatch("[0-9a-f]{32}\n", file.read_text()), "the file"
        assert file.stat().st_mode & 0o777 == 0o600, "its mode"
    first = files[0].read_bytes()
    assert first != files[1].read_bytes(), "the roots"
    done = backend.line.run("proof-keys", "--new", files[0])
    status_is(done, MALFORMED, str(files[0]))
    assert files[0].read_bytes() == first, "the file was overwritten"
    for words in ((), ("--new", "-"), ("--new", backend.name("a"), "--c", files[0])):
        status_is(backend.line.run("proof-keys", *words), USAGE)


HEADER = """#include <stdint.h>
typedef struct hf_proof_keys {
  uint32_t count;
  uint32_t is_default;
  void (*measurement_proof_key)(uint32_t index, uint8_t out[16]);
  void (*evidence_key)(uint32_t index, uint8_t out[32]);
} hf_proof_keys_t;
"""
PROGRAM = """#include <stdio.h>
#include <holdfast.h>
extern const hf_proof_keys_t hf_proof_keys;
int main(void) {
  uint8_t key[32];
  printf("%u %u\\n", (unsigned)hf_proof_keys.count, (unsigned)hf_proof_keys.is_default);
  for (uint32_t index = 0; index < hf_proof_keys.count; index++) {
    hf_proof_keys.measurement_proof_key(index, key);
    for (int i = 0; i < 16; i++) printf("%02x", key[i]);
    hf_proof_keys.evidence_key(index, key);
    for (int i = 0; i < 32; i++) printf("%02x", key[i]);
    printf("\\n");
  }
  return 0;
}
"""


@pytest.mark.parametrize("count", [1, 64])
def test_a_c_program_has_the_keys_of_its_releases_and_none_in_one_piece(backend, count):
    folder = backend.name("c")
    folder.mkdir()
    (folder / "holdfast.h").write_text(HEADER)
    (folder / "main.c").write_text(PROGRAM)
    roots = [secrets.token_bytes(16) for _ in range(count)]
    source = backend.line.succeed("proof-keys", "--c", key_file(backend, *roots))
    assert (
        json.loads(backend.line.succeed("proof-keys", "--json", "--c", key_file(backend, *roots)))["c"].encode()
        == source
    )
    (folder / "keys.c").write_bytes(source)
    flags = ["-std=c99", "-O2", "-Wall", "-Wextra", "-Werror", "-pedantic", "-I", folder]
    compiled = subprocess.run(
        ["gcc", *flags, folder / "main.c", folder / "keys.c", "-o", folder / "program"],
        capture_output=True,
        check=False,
    )
    assert compiled.returncode == 0, compiled.stderr.decode()
    lines = subprocess.run([folder / "program"], capture_output=True, text=True, check=True).stdout.splitlines()
    assert lines[0] == f"{count} 0", "count"
    keys = [measurement.release_keys(root) for root in roots]
    assert lines[1:] == [proof_key.hex() + evidence_key.hex() for evidence_key, proof_key in keys], "the keys"
    program = (folder / "program").read_bytes()
    for root, pair in zip(roots, keys, strict=True):
        for secret in (root, *pair):
            for part in (secret[:8], secret[-8:]):
                assert part not in program and part[::-1] not in program, "a key in one piece"
            assert secret.hex()[:16].encode() not in source, "a key as text"


def test_a_policy_of_the_earlier_shape_and_one_that_is_wrong_is_refused_by_the_members_name(backend):
    good = backend.policy()
    digest = next(iter(good["images"]))
    for changes, word in (
        ({"images": None}, "images"),
        ({"images": []}, "images"),
        ({"images": {"AB": good["images"][digest]}}, "images.AB"),
        ({"images": {digest: {"subject": "a"}}}, f"images.{digest}.version"),
        ({"images": {digest: {"subject": 1, "version": [1, 2, 3]}}}, f"images.{digest}.subject"),
        ({"images": {digest: {"subject": "a", "version": "1.2.3"}}}, f"images.{digest}.version"),
        (
            {"images": {digest: {"subject": "a", "version": [1, 2, 3], "proof_key": "0A" * 8}}},
            f"images.{digest}.proof_key",
        ),
        ({"images": {digest: {"subject": "a", "version": [1, 2, 3], "more": 1}}}, f"images.{digest}.more"),
        ({"devices": "all"}, "devices"),
        ({"devices": 1}, "devices"),
        ({"more": 1}, "more"),
        ({"images": None, "image_digests": [digest]}, "image_digests"),
    ):
        backend.change_policy(**changes)
        status_is(backend.enroll(backend.lock_file), MALFORMED, word)
        (backend.service / "policy.json").write_text(json.dumps(good))
    status_is(backend.enroll(backend.lock_file), OK)


# Folders: half-made, and of other kinds.


def test_a_service_that_was_killed_while_it_was_made_is_used_by_nothing_and_made_by_the_same_command(backend):
    whole = {
        "account.key",
        "agreement.key",
        "attestation-encryption.jwk",
        "attestation.sqlite",
        "issuer.key",
        "issuer.sqlite",
        "lock",
        "policy.json",
        "release.keys",
    }
    for seconds in [0.002 * step for step in range(30)]:
        folder = backend.name("killed")
        making = backend.line.start("service", "init", "--dir", folder)
        time.sleep(seconds)
        making.kill()
        making.wait()
        if (folder / "half-made").exists():
            status_is(backend.line.run("service", "show", "--dir", folder), MALFORMED, "interrupted", "service init")
            status_is(backend.line.run("service", "approve", "--dir", folder), MALFORMED, "interrupted")
        done = backend.line.run("service", "init", "--dir", folder)
        # It may have been done before the signal came.
        assert done.returncode == OK or b"already" in done.stderr, done.stderr.decode()
        status_is(backend.line.run("service", "show", "--dir", folder), OK)
        assert {path.name for path in folder.iterdir()} == whole, "the files"


def test_a_device_that_was_killed_while_it_was_made_is_used_by_nothing_and_made_by_the_same_command(backend):
    for seconds in [0.002 * step for step in range(20)]:
        folder = backend.name("killed")
        making = backend.line.start("device", "init", "--dir", folder)
        time.sleep(seconds)
        making.kill()
        making.wait()
        if (folder / "half-made").exists():
            status_is(backend.line.run("device", "show", "--dir", folder), MALFORMED, "interrupted", "device init")
        done = backend.line.run("device", "init", "--dir", folder)
        assert done.returncode == OK or b"already" in done.stderr, done.stderr.decode()
        status_is(backend.line.run("device", "show", "--dir", folder), OK)
        assert not list(folder.glob(".holdfast-*")), "what the first making left is still there"


def test_a_verb_refuses_a_folder_of_another_kind_names_the_kind_and_writes_nothing_there(backend):
    state, keys = backend.name("state"), backend.name("keys")
    status_is(backend.enroll(backend.lock_file, state), OK)
    secret = backend.write("secret", b"ab" * 20 + b"\n")
    backend.line.succeed(
        "otp", "import", "--authenticator", keys, "--no-pin", "--format", "hex", "--user", "alice", secret
    )
    folders = {
        "a device's": backend.lock,
        "a service's": backend.service,
        "a prover's": state,
        "an authenticator's": keys,
    }
    verbs = {
        "a device's": [
            ["device", "init", "--dir"],
            ["device", "show", "--dir"],
            ["device", "reset", "--yes", "--dir"],
            ["device", "policy", "--dir"],
            ["device", "serve", "--listen", f"unix:{backend.folder}/other.sock", "--dir"],
        ],
        "a service's": [
            ["service", "init", "--dir"],
            ["service", "show", "--dir"],
            ["service", "images", "--dir"],
            ["service", "approve", "--dir"],
            ["service", "device", "list", "--dir"],
            ["service", "revoke", "--device", backend.lock_file, "--dir"],
            ["enroll", "--device", backend.lock_file, "--state", backend.name("state"), "--service"],
        ],
        "a prover's": [
            ["enroll", "--device", backend.lock_file, "--service", backend.service, "--state"],
            ["measure", "--out", backend.name("evidence"), "--state"],
            ["explain", "--state"],
            ["status", "--state"],
            ["prove", "--connect", f"unix:{backend.socket}", "--command", "status", "--state"],
        ],
        "an authenticator's": [
            ["otp", "list", "--authenticator"],
            ["otp", "code", "--authenticator"],
            ["otp", "import", "--no-pin", "--format", "hex", "--user", "bob", secret, "--authenticator"],
        ],
    }
    for needed, lines in verbs.items():
        for kind, folder in folders.items():
            if kind == needed:
                continue
            before = {
                path: path.read_bytes()
                for path in sorted(folder.rglob("*"))
                if path.is_file() and path.suffix not in ("-shm", "-wal")
            }
            for line in lines:
                done = backend.line.run(*line, folder, "--json")
                said = done.stderr.decode()
                assert done.returncode == MALFORMED and kind in said and "hint:" in said, (
                    f"{' '.join(map(str, line[:2]))} with {kind} folder ended with {done.returncode}: {said.strip()[-200:]}"
                )
                assert json.loads(done.stdout)["exit"] == MALFORMED, "the object of the error"
            after = {path: path.read_bytes() for path in before if path.exists()}
            changed = [
                path.name
                for path in before
                if before[path] != after.get(path) and not path.name.startswith("ledger.sqlite")
            ]
            assert not changed, f"{kind} folder: {changed} changed"


def test_evidence_is_deleted_by_attest_where_it_is_told_to_and_otherwise_its_reader_is_told_to_delete_it(backend):
    state, out = backend.name("state"), backend.name("attestation")
    for more, remains in ((("--delete-evidence",), False), ((), True)):
        evidence = backend.name("evidence")
        status_is(backend.line.run("measure", "--replace", "--state", state, "--out", evidence), OK, "delete")
        done = backend.line.run(
            "attest",
            "--service",
            backend.service,
            "--device",
            backend.lock_file,
            "--evidence",
            evidence,
            "--out",
            out,
            *more,
        )
        status_is(done, OK, *(("delete",) if remains else ()))
        assert evidence.exists() == remains, "whether the evidence is there"
    # Evidence that was refused is kept, so that the step can be repeated.
    done = backend.line.run(
        "attest",
        "--service",
        backend.service,
        "--device",
        backend.lock_file,
        "--evidence",
        evidence,
        "--out",
        out,
        "--delete-evidence",
    )
    status_is(done, DENIED)
    assert evidence.exists(), "refused evidence was deleted"


def test_a_policy_with_makers_registers_only_devices_that_one_of_them_signed(backend):
    maker, stranger = backend.name("maker.key"), backend.name("stranger.key")
    (_, _, first), (_, _, second) = backend.fake(), backend.fake()
    public, signature = signature_by(maker, first)
    _, by_stranger = signature_by(stranger, first)
    _, of_another = signature_by(maker, second)
    backend.change_policy(device_makers=[public])
    try:
        for more in ((), ("--signature", by_stranger), ("--signature", of_another)):
            status_is(backend.own("device", "add", first, *more), DENIED, "maker's signature", "--signature")
        assert backend.enroll(first).returncode == DENIED, "a device that was not registered"
        for broken in (b"", signature.read_bytes()[:-1], b"\x30" * 73):
            wrong = backend.write(backend.name("wrong.sig").name, broken)
            assert backend.own("device", "add", first, "--signature", wrong).returncode in (DENIED, MALFORMED), "broken"
        status_is(backend.own("device", "add", first, "--signature", backend.name("missing")), MALFORMED)
        status_is(backend.own("device", "add", first, "--signature", signature), OK)
        status_is(backend.enroll(first), OK)
        # One that was registered before keeps its registration, and may get a label.
        status_is(backend.own("device", "add", backend.lock_file, "--label", "front door"), OK)
        backend.change_policy(devices="first-come")
        status_is(backend.own("device", "list"), OK)
        status_is(
            backend.own("device", "add", second, "--signature", of_another), MALFORMED, "device_makers", "first-come"
        )
    finally:
        backend.change_policy(device_makers=None, devices="listed")


def test_an_app_with_an_older_library_is_approved_with_a_notice(backend):
    own = pathlib.Path(backend.line.path).read_bytes()
    text = re.search(rb"holdfast library version ([0-9]+)\.([0-9.]+);", own)
    major = int(text[1])
    for other, is_older in ((major - 1, True), (major, False), (major + 1, False)):
        copy = backend.name("app")
        copy.write_bytes(own.replace(text[0], b"holdfast library version %d.%s;" % (other, text[2])))
        done = backend.own("approve", copy, "--subject", "app", "--version", "1.2.3")
        status_is(done, OK)
        version = f"version {other}.{text[2].decode()} of Holdfast's library"
        assert (version in done.stderr.decode()) == is_older, done.stderr.decode()
        status_is(backend.own("unapprove", copy), OK)


def test_an_enrolment_with_tree_digests_needs_an_approval_with_one_and_proves(backend):
    status_is(backend.own("approve"), OK)
    program = pathlib.Path(backend.line.path).read_bytes()
    images = backend.policy()["images"]
    tree = images[sha256(program).hex()].pop("tree_digest")
    assert tree == measurement.tree_digest(program).hex()
    backend.change_policy(images=images)
    state = backend.name("state")
    status_is(backend.enroll(backend.lock_file, state, "--tree-digests"), DENIED, "does not contain this app's image")
    status_is(backend.enroll(backend.lock_file, state), OK)
    status_is(backend.own("approve"), OK)
    for policy, more in ((2, ["--tree-digests"]), (3, ["--tree-digests", "--known-code"])):
        state = backend.name("state")
        status_is(backend.enroll(backend.lock_file, state, *more), OK)
        (configuration,) = state.rglob("measurement_config.bin")
        assert measurement.parse_configuration(configuration.read_bytes())["policy"] == policy
        prove = ("prove", "--connect", f"unix:{backend.socket}", "--state", state, "--command", "unlock")
        status_is(backend.line.run(*prove, "--timeout", "60"), OK)


def test_the_lines_of_the_document_compute_the_tree_digest_that_is_approved(backend):
    text = (pathlib.Path(__file__).resolve().parents[2] / "docs/measurement.md").read_text()
    (lines,) = [block for block in re.findall(r"```python\n(.*?)```", text, re.DOTALL) if "def tree_digest" in block]
    assert len(lines.splitlines()) <= 12
    program = pathlib.Path(backend.line.path).read_bytes()
    for size in (0, 1, (1 << 17) - 1, 1 << 17, (1 << 17) + 1, 40 << 17):
        copy = backend.name("image")
        copy.write_bytes(program[:size])
        more = "import pathlib, sys\nprint(tree_digest(pathlib.Path(sys.argv[1]).read_bytes()).hex())"
        words = [sys.executable, "-c", lines + more, copy]
        computed = subprocess.run(words, capture_output=True, text=True, check=True).stdout.strip()
        assert computed == measurement.tree_digest(program[:size]).hex()
        # Less is no program.
        if size > 1:
            done = backend.own("approve", copy, "--subject", "app", "--version", "1.2.3", "--json")
            assert json.loads(done.stdout)["tree_digest"] == computed
            status_is(backend.own("unapprove", copy), OK)


def test_an_enrolment_that_permits_known_code_says_so_in_its_configuration_and_proves(backend):
    status_is(backend.own("approve"), OK)
    for more, beginning in (((), b"\xa6\x01\x01"), (("--known-code",), b"\xa7\x01\x02")):
        state = backend.name("state")
        status_is(backend.enroll(backend.lock_file, state, *more), OK)
        (configuration,) = state.rglob("measurement_config.bin")
        assert configuration.read_bytes()[:3] == beginning, (
            "a map of six members of version 1, or of seven of version 2"
        )
        prove = ("prove", "--connect", f"unix:{backend.socket}", "--state", state, "--command", "unlock")
        status_is(backend.line.run(*prove, "--timeout", "60"), OK)
    backend.change_policy(known_code=False)
    try:
        refused = backend.enroll(backend.lock_file, backend.name("state"), "--known-code")
        status_is(refused, DENIED, "permits known code", "enrol without --known-code")
        status_is(backend.enroll(backend.lock_file, backend.name("state")), OK)
    finally:
        backend.change_policy(known_code=None)
