"""A device whose owner signs its policies: the signatures are made and checked here without any code of the project."""

import base64
import hashlib
import json
import subprocess
import threading

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, utils
from cryptography.hazmat.primitives.hashes import SHA256
from devices import LinuxDevice
from holdfast_peer.session import COSE, NAMES

OK, DENIED, MALFORMED, USAGE, UNAVAILABLE = 0, 1, 2, 64, 69


def text(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def decoded(part):
    return base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))


class Owner:
    """A person with a key for policies."""

    def __init__(self):
        self.key = ec.generate_private_key(ec.SECP256R1())

    def public(self):
        return self.key.public_key().public_bytes(
            serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
        )

    def kid(self):
        point = self.key.public_key().public_bytes(
            serialization.Encoding.X962, serialization.PublicFormat.UncompressedPoint
        )
        return text(hashlib.sha256(point).digest()[:8])

    def sign(self, number, *commands, kid=None, **claims):
        """A signed policy that allows these commands without a factor."""
        policy = {"version": 1, "commands": {command: {"factors": []} for command in commands}}
        header = {"alg": "ES256", "kid": kid or self.kid(), "typ": "holdfast-policy+jwt"}
        body = {"num": number, "iat": 1_795_000_000, "policy": policy, **claims}
        signed = f"{text(json.dumps(header).encode())}.{text(json.dumps(body).encode())}"
        r, s = utils.decode_dss_signature(self.key.sign(signed.encode(), ec.ECDSA(SHA256())))
        return f"{signed}.{text(r.to_bytes(32, 'big') + s.to_bytes(32, 'big'))}\n".encode()


@pytest.fixture
def owner():
    return Owner()


@pytest.fixture
def device(holdfast, tmp_path, owner):
    """A device that takes only policies of the owner; it is not served yet."""
    (tmp_path / "owner.pem").write_bytes(owner.public())
    (tmp_path / "first.jws").write_bytes(owner.sign(1, "status"))
    device = LinuxDevice(holdfast, tmp_path, "--policy-key", tmp_path / "owner.pem", "--policy", tmp_path / "first.jws")
    try:
        device.prepare()
        yield device
    finally:
        device.close()


def ask(device, command):
    with (prover := device.connect()).connection:
        return NAMES[prover.ask(device.grant(COSE), command).status]


def install(device, signed):
    file = device.folder / "next.jws"
    file.write_bytes(signed)
    return device.owner("policy", "--install", file, "--json")


def reasons(device):
    """The exit status of `device policy` and the code of its failure."""
    done = device.owner("policy", "--json")
    return done.returncode, json.loads(done.stdout).get("code") if done.returncode else None


def test_a_served_device_takes_newer_signed_policies_and_refuses_every_other_one(device, owner):
    device.start()
    assert (ask(device, "status"), ask(device, "unlock")) == ("accepted", "commandRefused")
    assert install(device, owner.sign(2, "unlock")).returncode == OK
    assert (ask(device, "status"), ask(device, "unlock")) == ("commandRefused", "accepted"), "the second policy"
    file = device.device_folder / "policy.jws"
    for bad, status, code in [
        (owner.sign(1, "status"), DENIED, "policy-outdated"),
        (owner.sign(2, "status"), DENIED, "policy-outdated"),
        (Owner().sign(3, "status"), DENIED, "policy-of-another-key"),
        (Owner().sign(3, "status", kid=owner.kid()), DENIED, "policy-not-authentic"),
        (owner.sign(3, "status", device="00" * 16), DENIED, "policy-for-another-device"),
        (b'{"version": 1, "commands": {"status": {"factors": []}}}', MALFORMED, "policy-not-signed"),
        (owner.sign(3, "status", extra=1), MALFORMED, "malformed"),
    ]:
        before = file.read_bytes()
        done = install(device, bad)
        assert (done.returncode, json.loads(done.stdout)["code"]) == (status, code), done
        assert file.read_bytes() == before, "a policy that was refused was written"
        assert ask(device, "unlock") == "accepted", f"{code}: the policy in force"
        # Somebody puts it there all the same.
        file.write_bytes(bad)
        assert {ask(device, command) for command in ("status", "unlock")} == {"commandRefused"}, code
        assert reasons(device) == (status, code)
        file.write_bytes(before)
        assert ask(device, "unlock") == "accepted", f"{code}: the policy that was put back"
    events = json.loads(device.owner("audit", "--json").stdout)["entries"]
    assert sum(e["event"] == "policy" and e["sha256"] == "none" for e in events) == 7, "the refusals in the log"
    assert [e["event"] for e in events].count("policy-key") == 1
    assert device.owner("audit", "--verify").returncode == OK
    assert device.owner("policy", "--remove-key").returncode == UNAVAILABLE, "a key is not changed while it is served"


def test_the_key_is_named_later_and_taken_back_and_an_unsigned_policy_counts_only_without_it(holdfast, tmp_path, owner):
    device = LinuxDevice(holdfast, tmp_path)
    device.prepare()
    (tmp_path / "owner.pem").write_bytes(owner.public())
    assert device.owner("policy", "--key", tmp_path / "owner.pem").returncode == OK
    assert device.owner("policy").returncode == MALFORMED, "there is no signed policy yet"
    assert install(device, owner.sign(5, "status")).returncode == OK
    shown = json.loads(device.owner("policy").stdout)
    assert list(shown["commands"]) == ["status"]
    assert b"number 5: status" in device.owner("show").stdout
    assert device.owner("policy", "--remove-key").returncode == OK
    assert "open-safe" in json.loads(device.owner("policy").stdout)["commands"]
    assert install(device, owner.sign(6, "status")).returncode == DENIED, "the device has no policy key"
    done = device.owner("policy", "--remove-key", "--install", "x")
    assert done.returncode == USAGE


def test_a_service_signs_a_policy_for_one_device_or_all(holdfast, tmp_path):
    device = LinuxDevice(holdfast, tmp_path)
    device.prepare()
    run = device.command_line
    run.succeed("service", "init", "--dir", tmp_path / "owner")
    (tmp_path / "owner.json").write_bytes(run.succeed("service", "show", "--dir", tmp_path / "owner", "--json"))
    (tmp_path / "lock.json").write_bytes(device.owner("show", "--json").stdout)
    (tmp_path / "policy.json").write_bytes(device.owner("policy").stdout)
    assert device.owner("policy", "--key", tmp_path / "owner.json").returncode == OK

    def sign(*options):
        return run.run("service", "device-policy", "--dir", tmp_path / "owner", tmp_path / "policy.json", *options)

    signed = sign("--number", 7, "--device", tmp_path / "lock.json").stdout
    header, payload, signature = signed.decode().strip().split(".")
    jwk = json.loads((tmp_path / "owner.json").read_bytes())["issuer"]
    x, y = (int.from_bytes(decoded(jwk[name])) for name in "xy")
    raw = decoded(signature)
    der = utils.encode_dss_signature(int.from_bytes(raw[:32]), int.from_bytes(raw[32:]))
    key = ec.EllipticCurvePublicNumbers(x, y, ec.SECP256R1()).public_key()
    key.verify(der, f"{header}.{payload}".encode(), ec.ECDSA(SHA256()))
    claims = json.loads(decoded(payload))
    assert claims["num"] == 7 and claims["policy"] == json.loads((tmp_path / "policy.json").read_text())
    assert claims["device"] == json.loads((tmp_path / "lock.json").read_text())["device_id"]
    assert install(device, signed).returncode == OK
    assert device.owner("policy").returncode == OK
    assert install(device, sign("--number", 8).stdout).returncode == OK, "one for all devices"
    assert install(device, sign("--number", 9, "--device", "00" * 16).stdout).returncode == DENIED
    assert sign("--number", 0).returncode == USAGE
    (tmp_path / "policy.json").write_text('{"version": 1, "commands": {"x": {"factor": []}}}')
    done = sign("--number", 10)
    assert done.returncode == MALFORMED and b"factor" in done.stderr, "a mistake is named before it is signed"


def test_of_many_processes_that_install_the_newest_policy_stays(device, owner):
    codes = {}

    def put(number):
        file = device.folder / f"{number}.jws"
        file.write_bytes(owner.sign(number, f"c{number}"))
        codes[number] = device.owner("policy", "--install", file).returncode

    threads = [threading.Thread(target=put, args=(number,)) for number in range(10, 18)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    newest = max(number for number, code in codes.items() if code == OK)
    assert newest == 17 and set(codes.values()) <= {OK, DENIED}, codes
    assert list(json.loads(device.owner("policy").stdout)["commands"]) == ["c17"]


def test_a_killed_installation_leaves_a_policy_in_force(device, owner, holdfast):
    for number in range(2, 12):
        file = device.folder / "next.jws"
        file.write_bytes(owner.sign(number, f"c{number}"))
        words = [str(holdfast), "device", "policy", "--dir", str(device.device_folder), "--install", str(file)]
        process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            process.wait(number * 0.004)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(60)
        done = device.owner("policy")
        assert done.returncode == OK, f"policy {number}: {done}"
