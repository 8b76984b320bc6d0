"""A key that an issuer of ours shares with a device under test, and a service of the program's that shares another."""

import json
import secrets

from holdfast_peer import claims as claim_rules
from holdfast_peer import cose
from holdfast_peer.issuer import encrypted, fresh_claims
from holdfast_peer.keys import mac_jwk
from holdfast_peer.session import COSE

POLICY = {
    "version": 1,
    "issuer": {"mac": True},
    "commands": {
        "lock": {"factors": ["integrity", "device"]},
        "unlock": {"factors": ["integrity", "device"]},
        "status": {"factors": ["device"]},
    },
}


class SharedKey:
    """A key that the device trusts, and the tokens that are made with it."""

    def __init__(self, device):
        self.device, self.key = device, secrets.token_bytes(32)
        self.service = device.folder / "service"
        self.descriptor_file = device.folder / "device.json"

    def prepare(self, has_policy):
        """Makes the device trust the key; an image got a policy with MACs when it was made."""
        run = self.device.command_line
        self.descriptor_file.write_bytes(run.succeed("device", "show", *self.device.device_arguments, "--json"))
        run.succeed("service", "init", "--dir", self.service)
        run.succeed("service", "device", "add", "--dir", self.service, self.descriptor_file)
        assert self.trust(self.write("mac.jwk", mac_jwk(self.key))).returncode == 0, "exit status"
        if not has_policy:
            assert "issuer" not in json.loads(self.policy_file.read_text()), "device init says something of MACs"
            self.switch({"mac": True})

    @property
    def policy_file(self):
        return self.device.device_folder / "policy.json"

    def write(self, name, value, mode=0o600):
        path = self.device.folder / name
        path.write_text(json.dumps(value))
        path.chmod(mode)
        return path

    def trust(self, *arguments):
        return self.device.owner("trust", *arguments)

    def switch(self, issuer):
        """Gives the policy's member `issuer` this value; None takes it away."""
        policy = json.loads(self.policy_file.read_text())
        policy.pop("issuer", None)
        if issuer is not None:
            policy["issuer"] = issuer
        self.policy_file.write_text(json.dumps(policy))

    def grant(self, key=None, plaintext=None, **claims):
        """A grant under a key, with a fresh baseline; `plaintext` makes the inner layer of the payload otherwise."""
        claims = fresh_claims(self.device.descriptor.device_id, **claims)
        payload = claim_rules.to_cbor(claims)
        inner = plaintext(payload) if plaintext else cose.authenticate(payload, key or self.key)
        return encrypted(inner, self.device.descriptor.point, claims, COSE)

    def status(self, grant, **how):
        with (prover := self.device.connect()).connection:
            return prover.ask(grant, **how)

    def mac_key(self, descriptor, name):
        """What `service mac-key` writes for a device."""
        file = self.device.folder / name
        self.device.command_line.succeed("service", "mac-key", "--dir", self.service, "--device", descriptor, file)
        return file
