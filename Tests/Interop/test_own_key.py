"""Apps in other packages with their own keys: how they are built, enrolled, updated and patched, and what a person's app does."""

import json
import os
import pathlib
import secrets
import shutil
import subprocess

import examples
import pytest
from examples import BUILD, ROOT, SCRATCH
from holdfast_peer import measurement, transport
from holdfast_peer.command_line import CommandLine, stop

SOURCE = "Sources/FieldApp/FieldApp.swift"
OK, DENIED = 0, 1


class Package:
    """A copy of Examples/FieldApp, which depends on this Holdfast."""

    def __init__(self, folder):
        self.folder = folder
        shutil.copytree(
            ROOT / "Examples/FieldApp", folder, ignore=shutil.ignore_patterns(".build", "mpk.key", "Package.resolved")
        )
        self.manifest = (folder / "Package.swift").read_text().replace("../..", str(ROOT))
        self.key_file = folder / "mpk.key"
        self.permission = folder / "Sources/FieldApp/allow-default-proof-key"
        self.source = (folder / SOURCE).read_text()

    def write_keys(self, *roots):
        self.key_file.write_text("".join(root.hex() + "\n" for root in roots))

    def build(self, *, replanned=True, **environment):
        """The finished build. With a new manifest, the plugin is asked again."""
        if replanned:
            (self.folder / "Package.swift").write_text(self.manifest)
        inherited = {k: v for k, v in os.environ.items() if k != "HOLDFAST_MPK_KEY"}
        return subprocess.run(
            BUILD,
            cwd=self.folder,
            env=inherited | environment,
            capture_output=True,
            text=True,
            timeout=3000,
            check=False,
        )

    def program(self, copy, *mentions, **environment):
        """A copy of the program that was built; the build says each of `mentions`."""
        done = self.build(**environment)
        said = done.stdout + done.stderr
        assert done.returncode == 0, said[-2000:]
        for mention in mentions:
            assert mention in said, f"'{mention}' is not in: {said[-2000:]}"
        shutil.copyfile(SCRATCH / "debug/FieldApp", copy)
        copy.chmod(0o755)
        return copy

    def is_refused(self, *mentions, **more):
        done = self.build(**more)
        said = done.stdout + done.stderr
        assert done.returncode != 0, "it was built"
        for mention in mentions:
            assert mention in said, f"'{mention}' is not in: {said[-2000:]}"


@pytest.fixture(scope="module")
def package(folder):
    return Package(folder / "app")


class Field:
    """A service, a lock that it knows, and an app in the field."""

    def __init__(self, holdfast, folder):
        self.folder = folder
        self.line = CommandLine(holdfast, folder)
        self.socket = folder / "lock.sock"
        run = self.line
        run.succeed("service", "init", "--dir", "service")
        (folder / "service.json").write_bytes(run.succeed("service", "show", "--dir", "service", "--json"))
        run.succeed("device", "init", "--dir", "lock")
        run.succeed("device", "trust", "--dir", "lock", "service.json")
        (folder / "lock.json").write_bytes(run.succeed("device", "show", "--dir", "lock", "--json"))
        run.succeed("service", "device", "add", "--dir", "service", "lock.json")
        self.process = run.start("device", "serve", "--dir", "lock", "--listen", f"unix:{self.socket}")
        transport.connect_when_ready(str(self.socket)).close()

    def app(self, program, *words):
        return subprocess.run(
            [program, *words],
            cwd=self.folder,
            env=self.line.environment,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
            umask=0o077,
        )

    def approve(self, program, version, *keys):
        return self.line.run(
            "service", "approve", "--dir", "service", program, "--subject", "field-app", "--version", version, *keys
        )

    def attest(self, program):
        """Takes a baseline with the app, and sends its evidence to the service."""
        measured = self.app(program, "measure", "evidence.cbor")
        assert measured.returncode == 0, measured.stderr
        return self.line.run(
            "attest", "--service", "service", "--device", "lock.json", "--evidence", "evidence.cbor",
            "--delete-evidence", "--out", "attestation.jwt",
        )  # fmt: skip

    def enroll(self, program):
        done = self.attest(program)
        assert done.returncode == OK, done.stderr.decode()
        self.line.succeed(
            "issue", "--service", "service", "--device", "lock.json", "--attestation", "attestation.jwt", "--state",
            "phone", "--replace",
        )  # fmt: skip

    def press(self, program, command):
        """The status of the lock's answer."""
        done = self.app(program, "press", command, f"unix:{self.socket}")
        assert done.returncode == 0, done.stderr
        return done.stdout.split()[0]


@pytest.fixture(scope="module")
def field(holdfast, folder):
    field = Field(holdfast, folder)
    try:
        yield field
    finally:
        stop(field.process)


def test_without_a_key_an_app_is_not_built_and_the_build_says_what_to_do(package):
    package.is_refused("FieldApp has no key of its own", str(package.key_file), "openssl rand -hex 16")


def test_a_key_file_that_is_none_is_refused_by_its_line(package):
    root = secrets.token_bytes(16).hex()
    for text, mention in (
        ("0123\n", "mpk.key:1: a key is 32 hexadecimal digits"),
        (f"# ours\n{root}\n{root.upper()}\n", "mpk.key:3: this key occurs twice"),
        ("# none\n", "mpk.key: the file has no key"),
        ("".join(f"{number:032x}\n" for number in range(1, 66)), "mpk.key: the file has more than 64 keys"),
    ):
        package.key_file.write_text(text)
        package.is_refused(mention)
    package.key_file.unlink()


def test_the_default_key_must_be_asked_for_and_the_program_says_that_it_has_it(package, folder):
    package.permission.touch()
    program = package.program(folder / "default", "default key, which everybody knows")
    home = folder / "default-home"
    home.mkdir()
    done = subprocess.run(
        [program, "measure", "evidence.cbor"],
        cwd=home, env={"HOME": str(home)}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stderr.count("has the default key, which everybody knows") == 1, done.stderr
    # The build was planned without a key: one that appears is not ignored, and the build can be planned again.
    package.write_keys(secrets.token_bytes(16))
    package.is_refused("mpk.key is new", "touch Package.swift", replanned=False)
    package.permission.unlink()
    package.key_file.unlink()


def test_a_named_key_file_comes_first_and_must_exist(package, folder):
    for path in (folder / "none", pathlib.Path("mpk.key"), pathlib.Path("")):
        package.is_refused("HOLDFAST_MPK_KEY must be the absolute path", HOLDFAST_MPK_KEY=str(path))
    package.write_keys(secrets.token_bytes(16))
    elsewhere = folder / "elsewhere.key"
    elsewhere.write_text(secrets.token_bytes(16).hex())
    package.program(folder / "named", f"the keys of elsewhere.key in {folder.name}", HOLDFAST_MPK_KEY=str(elsewhere))


def test_an_app_with_its_own_key_is_enrolled_updated_and_if_patched_denied(package, field, folder):
    first, second, others = (secrets.token_bytes(16) for _ in range(3))
    package.write_keys(first)
    old = package.program(folder / "old", "the keys of mpk.key in app")
    contents = old.read_bytes()
    for key in (first, *measurement.release_keys(first)):
        for part in (key[:8], key[-8:], key[::-1][:8], key.hex()[:16].encode()):
            assert part not in contents, "a key in one piece"

    # Enrolled: only as the release whose keys it has.
    other_file = folder / "other.key"
    other_file.write_text(others.hex())
    for file in (package.key_file, other_file):
        file.chmod(0o600)
    mine, another = ("--proof-keys", package.key_file), ("--proof-keys", other_file)
    for keys, answer in (
        ((), "not registered"),
        (another, "not registered"),
        (mine, None),
        (another, "in another one"),
    ):
        assert field.approve(old, "1.0.0", *keys).returncode == OK
        done = field.attest(old)
        assert done.returncode == (DENIED if answer else OK), done.stderr.decode()
        assert answer is None or answer in done.stderr.decode(), done.stderr.decode()
    assert field.approve(old, "1.0.0", *mine).returncode == OK
    field.enroll(old)
    done = field.app(old, "press", "unlock", f"unix:{field.socket}")
    assert (done.stdout.split()[0], done.stderr) == ("accepted", ""), done.stderr

    # Updated: until it is enrolled again, the new app proves only that it runs on the same host.
    package.write_keys(second, first)
    (package.folder / SOURCE).write_text(package.source.replace("usage: FieldApp", "usage: FieldApp 2"))
    new = package.program(folder / "new")
    assert field.press(new, "status") == "accepted", "DM"
    assert field.press(new, "unlock") == "integrityMismatch"
    assert set(field.app(new, "explain").stdout.split()) == {"app.image", "app.text"}
    assert b"not registered" in field.attest(new).stderr
    package.key_file.chmod(0o600)
    assert field.approve(new, "2.0.0", "--proof-keys", package.key_file).returncode == OK
    field.enroll(new)
    assert field.press(new, "unlock") == "accepted"
    assert field.app(new, "explain").stdout == ""

    # Patched: denied, and the component is named.
    patched = folder / "patched"
    changed = bytearray(new.read_bytes())
    changed[changed.index(b"usage: FieldApp 2")] ^= 0x20
    patched.write_bytes(changed)
    patched.chmod(0o755)
    assert field.press(patched, "unlock") == "integrityMismatch"
    assert field.app(patched, "explain").stdout.split() == ["app.image"]
    done = field.attest(patched)
    assert (done.returncode, b"does not contain this app's image" in done.stderr) == (DENIED, True), done.stderr


def test_a_person_s_app_joins_makes_passwords_and_seals_answers_requests_imports_exports_and_changes_the_pin(
    field, folder
):
    """Examples/KeyRing, from the owner's code to a changed PIN, against a served lock."""
    key = folder / "key-ring.key"
    key.write_text(secrets.token_hex(16) + "\n")
    key.chmod(0o600)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOLDFAST_MPK_KEY", str(key))
        app = shutil.copy(examples.built("KeyRing", folder / "key-ring") / "KeyRing", folder / "KeyRing")
    lock, run = f"unix:{field.socket}", field.line

    def ring(*words, given="", of=folder):
        done = subprocess.run(
            [app, *words], input=given, cwd=of, env=run.environment, capture_output=True, text=True, timeout=60,
            check=False, umask=0o077,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout.strip()

    def owners_code(*words):
        return run.read_json("device", "user", *words, "ann", "--dir", "lock")["code"]

    # The command line, which the lock knows as another app, proves with what the person's app made.
    run.succeed("enroll", "--device", "lock.json", "--service", "service", "--state", "other")

    def prove(kind, code, command, *words):
        (folder / "code").write_text(code + "\n")
        prove = ("prove", "--connect", lock, "--state", "other", "--command", command, *words, "--user", "ann")
        return run.run(*prove, kind, "code", "--timeout", "60").returncode

    code = owners_code("add", "--otp", "hotp", "--seal", "OCRA-1:HOTP-SHA256-8:C-QH64")
    assert "mistyped" in ring("join", lock, given=code[:-3] + "\n482915\n")
    assert "another PIN" in ring("join", lock, given=code + "\n1234\n")
    assert ring("join", lock, given=code + "\n482915\n") == "joined as ann"
    listed = ring("list").splitlines()
    assert listed == [
        "ann, with 1 devices:", "  1 otp, needs a PIN, confirmed", "  2 seal, needs a PIN, confirmed",
        "  3 host, needs no PIN, confirmed",
    ]  # fmt: skip
    assert prove("--otp", ring("password", given="482915\n"), "configure") == OK
    assert prove("--otp", ring("password", given="482916\n"), "configure") == DENIED
    seal = ring("seal", "open-safe", "7", given="482915\n")
    assert prove("--seal", seal, "open-safe", "--parameter", "8") == DENIED
    assert prove("--seal", ring("seal", "open-safe", "8", given="482915\n"), "open-safe", "--parameter", "8") == OK

    # Checking and synchronising need an enrolment of the app itself.
    ring("measure", "evidence.cbor")
    assert field.approve(app, "1.0.0", "--proof-keys", key).returncode == OK
    common = ("--service", "service", "--device", "lock.json")
    run.succeed("attest", *common, "--evidence", "evidence.cbor", "--delete-evidence", "--out", "ring.jwt")
    run.succeed("issue", *common, "--attestation", "ring.jwt", "--state", "phone", "--replace")
    assert ring("check", lock) == "this is the device"
    assert ring("synchronise", lock).startswith("ann: the clock is ")
    for _ in range(5):
        prove("--otp", "000000", "configure")
    assert prove("--otp", ring("password", given="482915\n"), "configure") == DENIED, "locked out"
    assert ring("unlock", lock, given=owners_code("unlock") + "\n") == "unlocked"

    # The lock asks another person, who answers no, rejects, and approves.
    bea = folder / "bea"
    bea.mkdir(mode=0o700)
    code = run.read_json("device", "user", "add", "--seal", "OCRA-1:HOTP-SHA256-8:C-QH64", "bea", "--dir", "lock")[
        "code"
    ]
    assert ring("join", lock, given=code + "\n736205\n", of=bea) == "joined as bea"
    policy_file = folder / "lock" / "policy.json"
    policy = json.loads(policy_file.read_text())
    policy["commands"]["seal-request"] = {"factors": ["device"]}
    policy["commands"]["open-safe"]["text"] = "Open safe {1}"
    policy_file.write_text(json.dumps(policy))
    common = ("prove", "--connect", lock, "--timeout", "60", "--state", "other")
    asking = (*common, "--command", "open-safe", "--parameter", "9")
    asked = run.read_json(*asking, "--user", "bea", "--seal-request")["request"]
    shown = "bea, the device asks: Open safe 9 (open-safe 9)"
    assert ring("answer", given=f"{asked}\nno\n736205\n", of=bea).splitlines() == [shown, "nothing was made"]
    changed = asked[:-1] + ("1" if asked.endswith("0") else "0")
    assert ring("answer", given=f"{changed}\nyes\n736205\n", of=bea) == "refused: notAuthentic"

    def answered(word, parameter):
        first, answer = ring("answer", given=f"{asked}\n{word}\n736205\n", of=bea).splitlines()
        assert first == shown
        (folder / "answer").write_text(answer + "\n")
        done = run.run(*asking[:-1], parameter, "--user", "bea", "--seal", "answer", "--json")
        return done.returncode, json.loads(done.stdout).get("refusal_recorded", False)

    assert answered("reject", "9") == (DENIED, True)
    assert answered("yes", "8") == (DENIED, False)
    assert answered("yes", "9") == (OK, False)

    undo = ring("change", given="482915\n736204\n")
    assert len(undo) == 34
    assert prove("--otp", ring("password", given="482915\n"), "configure") == DENIED
    assert prove("--otp", ring("password", given="736204\n"), "configure") == OK

    # An account of another service comes and goes.
    uri = "otpauth://hotp/shop:eve?secret=GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ&issuer=shop&counter=0"
    assert ring("import", given=f"{uri}\n736205\n") == "imported eve"
    assert ring("import", given="otpauth://hotp/eve?secret=1\n736205\n") == "that is no account"
    assert ring("password", "eve", given="736205\n") == "755224", "RFC 4226, appendix D"
    exported = ring("export", "eve", given="736205\n")
    assert "secret=GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ&" in exported and exported.endswith("counter=1")
    assert "secret=GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ&" not in ring("export", "eve", given="736206\n")
