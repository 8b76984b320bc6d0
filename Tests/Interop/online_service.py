"""An online service for tests: HTTPS in Python around the embedded folder, whose verbs issue the real tokens; and its certificates.

Each answer can be replaced by a hostile one.
"""

import base64
import contextlib
import datetime
import hashlib
import http.server
import ipaddress
import json
import pathlib
import secrets
import ssl
import threading
import time

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from holdfast_peer.command_line import CommandLine

INVITATION = "ABCDE-FGHJK-MNPQR-STVWX"
ARC = "ABCDEFGHIJ"


def name(text):
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


class Authority:
    """A certificate authority, and the certificates that it signs."""

    def __init__(self, folder, title):
        self.folder, self.title = pathlib.Path(folder), title
        self.key = ec.generate_private_key(ec.SECP256R1())
        certificate = self.sign(self.key.public_key(), title, None, days=(-1, 30))
        self.file = self.folder / f"{title}.pem"
        self.file.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))

    def sign(self, key, subject, names, days):
        now = datetime.datetime.now(tz=datetime.UTC)
        builder = (
            x509.CertificateBuilder()
            .subject_name(name(subject))
            .issuer_name(name(self.title))
            .public_key(key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now + datetime.timedelta(days=days[0]))
            .not_valid_after(now + datetime.timedelta(days=days[1]))
            .add_extension(x509.BasicConstraints(ca=names is None, path_length=None), critical=True)
        )
        if names is not None:
            builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
        return builder.sign(self.key, hashes.SHA256())

    def certify(self, subject, names, days=(-1, 30)):
        """A file with a new key and its certificate, and the pin of that key."""
        key = ec.generate_private_key(ec.SECP256R1())
        certificate = self.sign(key.public_key(), subject, names, days)
        file = self.folder / f"{self.title}-{subject}-{secrets.token_hex(4)}.pem"
        file.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
            )
            + certificate.public_bytes(serialization.Encoding.PEM)
        )
        return file, pin(key)

    @property
    def pin(self):
        return pin(self.key)


def pin(key):
    """The pin of the public half of a key."""
    public = key.public_key().public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
    return "sha256//" + base64.b64encode(hashlib.sha256(public).digest()).decode()


LOOPBACK = [x509.IPAddress(ipaddress.ip_address("127.0.0.1")), x509.DNSName("localhost")]


class Issuer:
    """The embedded service in a folder, asked by its verbs: the same answer to the same evidence."""

    def __init__(self, program, folder):
        self.folder = pathlib.Path(folder)
        self.line = CommandLine(program, folder)
        self.lock = threading.Lock()
        self.attested, self.issued = {}, {}

    def attest(self, device, evidence):
        """An attestation token for evidence; None if the service refuses it."""
        with self.lock:
            key = (json.dumps(device), evidence)
            if key not in self.attested:
                place = self.place(device)
                (place / "evidence").write_bytes(evidence)
                done = self.line.run(
                    *("attest", "--service", "service", "--device", place / "device.json"),
                    *("--evidence", place / "evidence", "--out", place / "attestation"),
                )
                if done.returncode != 0:
                    return None
                self.attested[key] = (place / "attestation").read_text()
            return self.attested[key]

    def issue(self, device, attestation, wishes):
        """A token with its report."""
        with self.lock:
            key = (json.dumps(device), attestation)
            if key not in self.issued:
                place = self.place(device)
                (place / "attestation").write_text(attestation)
                file, state = place / "device.json", place / "state"
                self.line.succeed("measure", "--state", state, "--device", file, "--out", place / "unused")
                more = [word for command in wishes.get("commands", []) for word in ("--allow", command)]
                for option in ("format", "user"):
                    if option in wishes:
                        more += [f"--{option}", wishes[option]]
                self.line.succeed(
                    *("issue", "--service", "service", "--device", file, "--state", state),
                    *("--attestation", place / "attestation", *more),
                )
                (found,) = (state / "devices").iterdir()
                token = next(found.glob("measurement_token.*")).read_bytes()
                report = json.loads((found / "enrolment.json").read_text())["issued"]
                self.issued[key] = (token, report)
            return self.issued[key]

    def place(self, device):
        place = self.folder / f"issue-{secrets.token_hex(4)}"
        place.mkdir()
        (place / "device.json").write_text(json.dumps(device))
        return place


class Service:
    """A service at a port of this host. `replace` maps paths to what answers there instead."""

    def __init__(self, issuer, certificate=None, versions=(ssl.TLSVersion.TLSv1_3, ssl.TLSVersion.TLSv1_3)):
        self.issuer, self.replace, self.seen = issuer, {}, []
        self.decision = None  # None: no operator has to decide
        self.requests, self.bulletins = {}, []
        handler = type("Handler", (Handler,), {"service": self})
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self.server.daemon_threads = True
        self.scheme = "https" if certificate else "http"
        if certificate:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.minimum_version, context.maximum_version = versions
            context.load_cert_chain(certificate)
            self.server.socket = context.wrap_socket(
                self.server.socket, server_side=True, do_handshake_on_connect=False
            )
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()

    def url(self, host="127.0.0.1"):
        return f"{self.scheme}://{host}:{self.port}"

    def close(self):
        self.server.shutdown()
        self.server.server_close()

    def paths(self):
        return [path for _, path, _ in self.seen]

    def sent(self, path):
        return [body for _, seen, body in self.seen if seen == path]


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    service = None
    timeout = 30

    def log_message(self, *_):
        pass

    def do_GET(self):
        self.answer(None)

    def do_POST(self):
        self.answer(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))

    def answer(self, body):
        service = self.service
        if self.path.startswith("/v1/bulletins?"):  # After each enrolment, which does not depend on it.
            with contextlib.suppress(OSError):
                self.send({"bulletins": service.bulletins})
            return
        service.seen.append((self.command, self.path, body))
        instead = service.replace.get(self.path) or service.replace.get("*")
        with contextlib.suppress(OSError):
            if instead is not None and instead(self) is not True:
                return
            if self.path == "/v1/attest":
                self.attest(body)
            elif self.path == "/v1/tokens":
                self.issue(body)
            elif self.path.startswith("/v1/requests/"):
                self.decide(self.path.rsplit("/", 1)[1])
            else:
                self.refuse(404, "notFound")

    def attest(self, body):
        token = self.service.issuer.attest(body["device"], base64.b64decode(body["evidence"], validate=True))
        if token is None:
            self.refuse(403, "notFresh")
        else:
            self.send({"attestation": token_as_jwe(token), "arc": ARC, "expires": int(time.time()) + 300})

    def issue(self, body):
        service = self.service
        if "invitation" in body and body["invitation"] != INVITATION:
            self.refuse(403, "invitationUnknown")
            return
        token, report = service.issuer.issue(body["device"], attestation_of_jwe(body["attestation"]), body)
        request = hashlib.sha256(body["attestation"].encode()).hexdigest()[:32]
        if service.decision in (None, "approved", "collected"):
            self.send(
                {
                    "token": base64.b64encode(token).decode(),
                    "format": body.get("format", "cose"),
                    "claims": report,
                },
                201,
            )
        else:
            more = {"Location": f"/v1/requests/{request}", "Retry-After": "1"}
            self.send({"request": request, "status": "waiting"}, 202, more)

    def decide(self, request):
        decision = self.service.decision or "approved"
        said = {"request": request, "status": decision}
        if decision == "refused":
            said["reason"] = "the app is not ours"
        self.send(said, 200, {"Retry-After": "1"} if decision == "waiting" else {})

    def refuse(self, status, *reasons, title="The request is refused", detail="Ask the operator", more=()):
        problem = {"type": "about:blank", "title": title, "status": status, "detail": detail}
        problem |= {"reasons": list(reasons), "arc": ARC, "request_id": "r-1"} | dict(more)
        self.send(problem, status, kind="application/problem+json")

    def send(self, value, status=200, headers=(), kind="application/json"):
        data = value if isinstance(value, bytes) else json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        for header, text in dict(headers).items():
            self.send_header(header, text)
        self.end_headers()
        self.wfile.write(data)


def token_as_jwe(token):
    """The folder's attestation token, which is a JWE already, or in the form of one."""
    return token if token.count(".") == 4 else token + "..."


def attestation_of_jwe(text):
    return text.removesuffix("...")
