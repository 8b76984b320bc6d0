"""What the works need: inputs in a folder, a device that is served, a prover that is enrolled for it, and a TPM with a key."""

import contextlib
import json
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile
import time

import peers

sys.path[:0] = [str(peers.ROOT / "Tests/Interop")]

from devices import LinuxDevice
from holdfast_peer import base64strict, claims, jose
from holdfast_peer.keys import PrivateKey, jwk

# Of the quoting key in the software TPM.
KEY_HANDLE = "0x81010002"
# A user who owns nothing.
NOBODY = 65534


class Scene:
    def __init__(self, holdfast, program, folder):
        self.holdfast, self.program, self.folder = holdfast, program, pathlib.Path(folder)
        self.device = LinuxDevice(holdfast, folder)
        self.careless_device = self.tpm = self.roots_folder = None

    def prepare(self):
        if os.geteuid() == 0:
            self.install_for_others()
        subprocess.run([self.program, "inputs", self.folder], check=True, timeout=peers.SECONDS)
        self.make_token()
        self.serve(self.device, self.folder)
        service, descriptor = self.device.service()
        run = self.device.command_line
        run.succeed("enroll", "--service", service, "--device", descriptor, "--state", self.folder / "prover")

    def serve(self, device, folder):
        """Starts a device that trusts the issuer, and writes down what its provers must know."""
        device.socket = str(folder / "served.socket")
        device.prepare()
        device.command_line.succeed("device", "trust", "--dir", device.device_folder, self.folder / "issuer.jwk")
        device.start()
        served = device.descriptor
        (folder / "served").write_bytes(served.device_id + served.point)

    def careless(self, count):
        """So many provers of a device that does not wait for the disk."""
        folder = self.folder / "c"
        if self.careless_device is None:
            folder.mkdir()
            for name in ("token", "issuer.point"):
                shutil.copyfile(self.folder / name, folder / name)
            self.careless_device = LinuxDevice(self.holdfast, folder)
            self.careless_device.command_line.environment["LD_PRELOAD"] = str(peers.library("no_sync"))
            self.serve(self.careless_device, folder)
        return peers.Worker([self.program, f"served-{count}", folder], by_processor=False)

    def make_token(self):
        """The same token in JOSE, by the independent peer, and the keys as other libraries take them."""
        device, issuer = (PrivateKey((self.folder / name).read_bytes()) for name in ("scalar", "issuer-scalar"))
        members = claims.from_cbor((self.folder / "claims").read_bytes())
        token = jose.seal(members, issuer, device.point, PrivateKey(), os.urandom(12))
        (self.folder / "token.jose").write_bytes(token)
        (self.folder / "integrity").write_text(base64strict.encode(members["integrity"]))
        (self.folder / "issuer.jwk").write_text(json.dumps(jwk(issuer.point)))
        private = {**jwk(device.point), "d": base64strict.url_encode(device.scalar)}
        (self.folder / "device.jwk").write_text(json.dumps(private))

    def work(self, name, by_processor=True, **environment):
        environment["XDG_DATA_HOME"] = str(self.folder / "data")
        return peers.Worker([self.program, name, self.folder], by_processor, **environment)

    def on_one_processor(self, name):
        """The same on one processor, so that one thread does all."""
        words = ["taskset", "--cpu-list", min(os.sched_getaffinity(0)), self.program, name, self.folder]
        return peers.Worker(words, by_processor=False, XDG_DATA_HOME=str(self.folder / "data"))

    def reference(self, name):
        return peers.Worker([peers.compiled("reference"), name, self.folder])

    def install_for_others(self):
        """A program of root's in a folder of root's. Its code is known once it is some seconds old."""
        self.roots_folder = pathlib.Path(tempfile.mkdtemp(prefix="holdfast-bench", dir="/opt"))
        self.roots_folder.chmod(0o755)
        shutil.copyfile(self.holdfast, self.roots_folder / "holdfast")
        (self.roots_folder / "holdfast").chmod(0o755)

    def known_code(self):
        """The median time of later measurements in a process of another user's that hashed its code once."""
        rounds, data, program = 40, self.roots_folder / "data", self.roots_folder / "holdfast"
        while time.time() < program.stat().st_ctime + 3:
            time.sleep(0.1)
        data.mkdir()
        os.chown(data, NOBODY, NOBODY)
        user = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "--"]
        return peers.Command(
            [*user, program, "bench", "measure", "--rounds", rounds, "--json"],
            check=lambda output: json.loads(output)["known"] == rounds - 1,
            said=lambda output: json.loads(output)["microseconds"]["later"]["p50"] * 1000,
            env=os.environ | {"XDG_DATA_HOME": str(data)},
        )

    def proof(self, minus):
        """A whole proof, from the start of the process to its end, less a part of it."""
        words = ["prove", "--connect", self.device.endpoint, "--state", self.folder / "prover", "--command", "status"]
        return peers.Command(
            [self.holdfast, *words, "--json"],
            check=lambda output: json.loads(output)["status"] == "accepted",
            minus=minus,
            env=self.device.command_line.environment,
            repetitions=3,
        )

    def start_tpm(self):
        """Starts a software TPM, and returns its address for tpm2-tools, which use two neighbouring ports."""
        state = self.folder / "tpm"
        state.mkdir()
        for port in range(24000, 24100, 2):
            words = [peers.tool("swtpm"), "socket", "--tpm2", "--tpmstate", f"dir={state}"]
            words += ["--server", f"type=tcp,port={port}", "--ctrl", f"type=tcp,port={port + 1}"]
            self.tpm = subprocess.Popen([*words, "--flags", "not-need-init,startup-clear"], stderr=subprocess.DEVNULL)
            for _ in range(50):
                with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port + 1)):
                    return f"swtpm:port={port}"
                if self.tpm.poll() is not None:
                    break
                time.sleep(0.02)
        raise peers.Unavailable("swtpm does not start")

    def quote(self, **options):
        """A quote of a software TPM, and its check, by tpm2-tools."""
        for name in ("tpm2_createprimary", "tpm2_quote", "tpm2_checkquote"):
            peers.tool(name)
        environment = os.environ | {"TPM2TOOLS_TCTI": self.start_tpm()}
        key, public, message, signature, registers = (
            self.folder / name for name in ("ak.ctx", "ak.pem", "quote", "signature", "registers")
        )
        scheme = [
            "-G",
            "ecc256:ecdsa-sha256:null",
            "-a",
            "fixedtpm|fixedparent|sensitivedataorigin|userwithauth|restricted|sign",
        ]
        for words in (
            ["tpm2_createprimary", "-Q", "-C", "e", *scheme, "-c", key],
            ["tpm2_readpublic", "-Q", "-c", key, "-f", "pem", "-o", public],
            # Without a resource manager, keys that are loaded stay there.
            ["tpm2_evictcontrol", "-Q", "-C", "o", "-c", key, KEY_HANDLE],
            ["tpm2_flushcontext", "-t"],
        ):
            done = subprocess.run(list(map(str, words)), env=environment, capture_output=True, timeout=peers.SECONDS)
            if done.returncode != 0:
                raise peers.Unavailable(f"{words[0]}: {done.stderr.decode().splitlines()[-1]}")
        nonce = "00112233445566778899aabbccddeeff"
        return peers.Command(
            ["tpm2_quote", "-Q", "-c", KEY_HANDLE, "-l", "sha256:0,1,2,3", "-q", nonce, "-m", message, "-s", signature]
            + ["-o", registers, "-g", "sha256"],
            [
                "tpm2_checkquote",
                "-u",
                public,
                "-m",
                message,
                "-s",
                signature,
                "-f",
                registers,
                "-q",
                nonce,
                "-g",
                "sha256",
            ],
            env=environment,
            **options,
        )

    def close(self):
        for device in (self.device, self.careless_device):
            if device:
                device.close()
        if self.tpm and self.tpm.poll() is None:
            self.tpm.kill()
            self.tpm.wait()
        if self.roots_folder:
            shutil.rmtree(self.roots_folder)
