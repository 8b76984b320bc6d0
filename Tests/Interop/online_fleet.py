"""An online service as a fleet has it: instances of `holdfast-service` over one PostgreSQL database, devices, and hosts whose
evidence is made in Python."""

import base64
import contextlib
import hashlib
import http.client
import json
import os
import pathlib
import secrets
import signal
import ssl
import subprocess
import time

import postgresql
from holdfast_peer import measurement
from holdfast_peer.checks import Failed
from holdfast_peer.command_line import descriptor_json
from holdfast_peer.keys import PrivateKey
from online_service import LOOPBACK, Authority

SECONDS = 60
APP_IDS = ("app.debug", "app.image", "app.injected", "app.text", "os.release")
HOST_IDS = ("device.cpu", "device.machine", "device.secret")
# The network's faults, and what a server does that is killed in the middle of an answer.
LOST = (OSError, http.client.HTTPException, ValueError)


class Instance:
    """One server of the service, at a port that it keeps."""

    def __init__(self, fleet, number):
        self.fleet, self.number = fleet, number
        self.process, self.port = None, 0
        self.log = fleet.folder / f"instance-{number}.log"

    def start(self):
        """Starts it without waiting; only the main thread may do so."""
        configuration = {
            "listen": f"127.0.0.1:{self.port}",
            "certificate": str(self.fleet.certificate),
            "key": str(self.fleet.certificate),
            "database": self.fleet.database,
            "requests_per_minute": 1_000_000,
            **self.fleet.settings,
        }
        path = self.fleet.folder / f"instance-{self.number}.json"
        path.write_text(json.dumps(configuration))
        with self.log.open("ab") as log:
            words = [self.fleet.program, "serve", "--dir", self.fleet.service, "--config", path]
            self.process = self.fleet.start_process(
                ["setpriv", "--pdeathsig=KILL", *map(str, words)], stdout=subprocess.PIPE, stderr=log
            )

    def wait(self):
        """Waits until it serves; False if it has ended instead."""
        line = self.process.stdout.readline().decode()
        if not line.startswith("serving https"):
            self.process.wait(SECONDS)
            return False
        self.port = int(line.rsplit(":", 1)[1])
        return True

    @property
    def is_running(self):
        return self.process is not None and self.process.poll() is None

    def end(self, number=signal.SIGKILL):
        if self.is_running:
            self.process.send_signal(number)
        return self.process.wait(SECONDS)

    def processor_seconds(self):
        """The processor time that it has used so far."""
        fields = pathlib.Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def resident_bytes(self):
        return int(pathlib.Path(f"/proc/{self.process.pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


class Fleet:
    """A service, its instances and its approved app. `database` is a URL, or None for SQLite."""

    def __init__(self, program, folder, database=None, start=postgresql.start_process, **settings):
        self.program, self.folder, self.database = pathlib.Path(program), pathlib.Path(folder), database
        self.start_process, self.settings = start, settings
        self.service, self.instances = self.folder / "service", []
        self.authority = Authority(self.folder, "authority")
        self.certificate, self.pin = self.authority.certify("service", LOOPBACK)
        self.certificate.chmod(0o600)
        self.context = ssl.create_default_context(cafile=self.authority.file)
        self.root, self.image = secrets.token_bytes(16), secrets.token_bytes(32)

    def create(self):
        """Makes the service, with an operator who may do everything."""
        self.verb("init")
        self.operator = self.verb("operator", "add", "olga", "--scopes", "read,approve,revoke,admin", "--json")["token"]

    def verb(self, *arguments):
        """Runs a verb that must succeed, and returns the object that it printed with --json."""
        place = ("--dir", self.service, *(("--database", self.database) if self.database else ()))
        words = [str(word) for word in (self.program, *arguments, *place)]
        options = {"stdin": subprocess.DEVNULL, "capture_output": True, "text": True}
        done = subprocess.run(words, timeout=SECONDS, check=False, **options)
        if done.returncode:
            raise Failed(f"holdfast-service {arguments[0]}: {done.stderr[-500:]}")
        return json.loads(done.stdout) if "--json" in arguments else done.stdout

    def serve(self, count):
        """Starts instances, all at once."""
        started = [Instance(self, number) for number in range(count)]
        for instance in started:
            instance.start()
        for instance in started:
            if not instance.wait():
                raise Failed(f"an instance did not start: {instance.log.read_text()[-500:]}")
        self.instances += started

    def urls(self):
        return ",".join(f"https://127.0.0.1:{instance.port}" for instance in self.instances)

    def ask(self, port, method, path, body=None, token=None, timeout=60):
        """One request on a new connection, as provers make them: the status and the JSON of the answer.

        Raises one of LOST if there is no whole answer.
        """
        headers = {"Content-Type": "application/json"} if body is not None else {}
        if token:
            headers["Authorization"] = f"Bearer {token}"
        data = body if isinstance(body, bytes) else json.dumps(body).encode() if body is not None else None
        connection = http.client.HTTPSConnection("127.0.0.1", port, timeout=timeout, context=self.context)
        with contextlib.closing(connection):
            connection.request(method, path, data, headers)
            answer = connection.getresponse()
            return answer.status, json.loads(answer.read())

    def administer(self, method, path, body=None):
        """An operator's request to the first instance, which must succeed."""
        status, answer = self.ask(self.instances[0].port, method, f"/v1/admin{path}", body, self.operator)
        if status != 200:
            raise Failed(f"{method} {path}: {status} {answer}")
        return answer

    def approve_app(self):
        """Approves the app whose evidence `Host` makes."""
        app = {"digest": self.image.hex(), "subject": "app", "version": [1, 2, 3], "root": self.root.hex()}
        self.administer("POST", "/images", app)

    def add_device(self, label):
        """Registers a new device, and returns its descriptor."""
        device = descriptor_json(PrivateKey(), secrets.token_bytes(16))
        self.administer("POST", "/devices", {"device": device, "label": label})
        return device

    def close(self):
        for instance in self.instances:
            if instance.process is not None:
                instance.end()
                instance.process.stdout.close()


class Host:
    """A prover's host: a secret by which the service tells it from others."""

    def __init__(self, fleet):
        self.fleet, self.secret = fleet, secrets.token_bytes(32)
        self.keys = measurement.release_keys(fleet.root)

    def evidence(self):
        """Evidence of a fresh baseline, in base64."""
        evidence_key, proof_key = self.keys
        salt, key_id = secrets.token_bytes(32), measurement.proof_key_id(proof_key)
        configuration = measurement.configuration(salt, key_id, APP_IDS, HOST_IDS, int(time.time()))
        app = [(name, self.fleet.image if name == "app.image" else digest(name)) for name in APP_IDS]
        host = [(name, self.secret if name == "device.secret" else digest(name)) for name in HOST_IDS]
        return base64.b64encode(measurement.evidence(evidence_key, configuration, app, host)).decode()


def digest(name):
    return hashlib.sha256(name.encode()).digest()
