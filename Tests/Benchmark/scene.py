"""What the works need: inputs in a folder, a device that is served, a prover that is enrolled for it, and a TPM with a key."""

import json
import os
import pathlib
import subprocess
import sys

import peers

sys.path[:0] = [str(peers.ROOT / "Tests/Interop")]

from devices import LinuxDevice  # noqa: E402
from holdfast_peer import base64strict, claims, jose  # noqa: E402
from holdfast_peer.keys import PrivateKey, jwk  # noqa: E402
from holdfast_peer.software_tpm import SoftwareTPM  # noqa: E402


class Scene:
    def __init__(self, holdfast, program, folder):
        self.holdfast, self.program, self.folder = holdfast, program, pathlib.Path(folder)
        self.device = LinuxDevice(holdfast, folder)
        self.device.socket = str(self.folder / "served.socket")
        self.tpm = None

    def prepare(self):
        subprocess.run([self.program, "inputs", self.folder], check=True, timeout=peers.SECONDS)
        self.make_token()
        self.device.prepare()
        issuer = self.folder / "issuer.jwk"
        run = self.device.command_line
        run.succeed("device", "trust", "--dir", self.device.device_folder, issuer)
        service, descriptor = self.device.service()
        run.succeed("enroll", "--service", service, "--device", descriptor, "--state", self.folder / "prover")
        self.device.start()
        served = self.device.descriptor
        (self.folder / "served").write_bytes(served.device_id + served.point)

    def make_token(self):
        """The same token in JOSE, by the independent peer, and the keys as other libraries take them."""
        device, issuer = (
            PrivateKey((self.folder / name).read_bytes()) for name in ("scalar", "issuer-scalar")
        )
        members = claims.from_cbor((self.folder / "claims").read_bytes())
        token = jose.seal(members, issuer, device.point, PrivateKey(), os.urandom(12))
        (self.folder / "token.jose").write_bytes(token)
        (self.folder / "integrity").write_text(base64strict.url_encode(members["integrity"]))
        (self.folder / "issuer.jwk").write_text(json.dumps(jwk(issuer.point)))
        private = {**jwk(device.point), "d": base64strict.url_encode(device.scalar)}
        (self.folder / "device.jwk").write_text(json.dumps(private))

    def work(self, name, by_processor=True, folder=None):
        return peers.Worker(
            [self.program, name, folder or self.folder], by_processor, XDG_DATA_HOME=str(self.folder / "data")
        )

    def reference(self, name, by_processor=True):
        return peers.Worker([peers.compiled("reference"), name, self.folder], by_processor)

    def proof(self):
        """A whole proof, from the start of the process to its end, less the measuring."""
        words = ["prove", "--connect", self.device.endpoint, "--state", self.folder / "prover", "--command", "status"]
        return peers.Command(
            [self.holdfast, *words, "--json"],
            check=lambda output: json.loads(output)["status"] == "accepted",
            minus=lambda output: json.loads(output)["microseconds"]["measure"] * 1000,
            env=self.device.command_line.environment,
            repetitions=3,
        )

    def quote(self):
        """A quote of a software TPM, and its check, by tpm2-tools."""
        for name in ("swtpm", "tpm2_createprimary", "tpm2_quote", "tpm2_checkquote"):
            peers.tool(name)
        self.tpm = SoftwareTPM(self.folder / "tpm")
        self.tpm.start()
        # swtpm takes one connection after the other, as the tools make them.
        environment = os.environ | {"TPM2TOOLS_TCTI": f"cmd:socat - UNIX-CONNECT:{self.tpm.path}"}
        key, public, message, signature, registers = (
            self.folder / name for name in ("ak.ctx", "ak.pem", "quote", "signature", "registers")
        )
        scheme = ["-G", "ecc:ecdsa", "-a", "fixedtpm|fixedparent|sensitivedataorigin|userwithauth|restricted|sign"]
        for words in (
            ["tpm2_createprimary", "-Q", "-C", "e", *scheme, "-c", key],
            ["tpm2_readpublic", "-Q", "-c", key, "-f", "pem", "-o", public],
        ):
            done = subprocess.run(list(map(str, words)), env=environment, capture_output=True, timeout=peers.SECONDS)
            if done.returncode != 0:
                raise peers.Unavailable(f"{words[0]}: {done.stderr.decode().splitlines()[-1]}")
        nonce = "00112233445566778899aabbccddeeff"
        return peers.Command(
            ["tpm2_quote", "-Q", "-c", key, "-l", "sha256:0,1,2,3", "-q", nonce, "-m", message, "-s", signature]
            + ["-o", registers, "-g", "sha256"],
            ["tpm2_checkquote", "-u", public, "-m", message, "-s", signature, "-f", registers, "-q", nonce, "-g", "sha256"],
            env=environment,
        )

    def close(self):
        self.device.close()
        if self.tpm:
            self.tpm.stop()


