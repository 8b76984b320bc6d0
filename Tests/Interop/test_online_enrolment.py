"""Enrolling over the network: `holdfast enroll --service https://…` with its carrier, against services that are honest, decide
late, fail or lie; the tokens are real, and open a real lock afterwards."""

import base64
import contextlib
import hashlib
import json
import os
import pathlib
import shutil
import signal
import socket
import ssl
import stat
import subprocess
import time

import pytest
from cryptography import x509
from devices import wait_for
from holdfast_peer import cbor, measurement, transport
from holdfast_peer.command_line import CommandLine, stop
from holdfast_peer.state import enrolment
from online_service import ARC, INVITATION, LOOPBACK, Authority, Issuer, Service

OK, DENIED, MALFORMED, IMPOSTOR, USAGE, UNAVAILABLE, FAULT, NO_PERMISSION = 0, 1, 2, 3, 64, 69, 70, 77
OTHER_PIN = "sha256//" + base64.b64encode(bytes(32)).decode()
TLS12 = (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_2)


class World:
    """The embedded service, a lock that is served, and authorities."""

    def __init__(self, program, folder):
        self.program, self.folder = pathlib.Path(program), pathlib.Path(folder)
        self.line = CommandLine(program, folder)
        self.made = 0
        run = self.line
        run.succeed("service", "init", "--dir", "service")
        (self.folder / "service.json").write_bytes(run.succeed("service", "show", "--dir", "service", "--json"))
        for lock in ("lock", "other"):
            run.succeed("device", "init", "--dir", lock)
            run.succeed("device", "trust", "--dir", lock, "service.json")
            (self.folder / f"{lock}.json").write_bytes(run.succeed("device", "show", "--dir", lock, "--json"))
            run.succeed("service", "device", "add", "--dir", "service", f"{lock}.json")
        self.socket = self.folder / "lock.sock"
        self.server = run.start("device", "serve", "--dir", "lock", "--listen", f"unix:{self.socket}", "--quiet")
        transport.connect_when_ready(str(self.socket)).close()
        self.issuer = Issuer(program, folder)
        self.authority, self.stranger = Authority(folder, "authority"), Authority(folder, "stranger")
        self.certificate, self.pin = self.authority.certify("service", LOOPBACK)

    def name(self, stem):
        self.made += 1
        return self.folder / f"{stem}-{self.made}"

    def write(self, stem, text):
        path = self.name(stem)
        path.write_text(text)
        path.chmod(0o600)
        return path

    def arguments(self, state, service, *more, device="lock.json", ca=True):
        urls = service if isinstance(service, str) else ",".join(each.url() for each in service)
        authorities = ["--ca", self.authority.file] if ca and "https" in urls else []
        return ["enroll", "--device", device, "--service", urls, "--state", state, *authorities, *map(str, more)]

    def enroll(self, state, service, *more, timeout=60, **options):
        return self.line.run(*self.arguments(state, service, *more, **options), timeout=timeout)

    def enroll_until(self, is_reached, limit, state, service, *more):
        """A run that takes all of its time. Where that was too short on a busy machine, another run has more.

        `late` is the number of seconds that it took beyond its time.
        """
        for seconds in (limit, 20, 60):
            done = self.enroll(state, service, "--timeout", seconds, *more, timeout=120)
            done.late = done.seconds - seconds
            if is_reached(done.stderr.decode()):
                break
        return done

    def proves(self, state):
        done = self.line.run("prove", "--connect", f"unix:{self.socket}", "--state", state, "--command", "status")
        assert done.returncode == OK, f"the proof: {done.stderr.decode()[-300:]}"


@pytest.fixture(scope="module")
def world(holdfast, folder):
    world = World(holdfast, folder)
    yield world
    stop(world.server)


@pytest.fixture
def services(world):
    """Makes services that are closed after the test."""
    made = []

    def make(certificate=world.certificate, **options):
        made.append(Service(world.issuer, certificate, **options))
        return made[-1]

    yield make
    for each in made:
        each.close()


@pytest.fixture
def service(services):
    return services()


@pytest.fixture
def state(world):
    return world.name("state")


def ended(done, status, *words):
    said = done.stderr.decode()
    assert done.returncode == status, f"exit status {done.returncode} ({said.strip()[-400:]})"
    for word in words:
        assert word in said, f"'{word}' is not in: {said[-600:]}"
    assert INVITATION not in said and INVITATION not in done.stdout.decode(), "the invitation is in the output"


def pending(state):
    return [path.name for path in (state / "pending").iterdir()] if (state / "pending").exists() else []


def nothing_enrolled(state):
    devices = state / "devices"
    assert not devices.exists() or not list(devices.iterdir()), "something is enrolled"


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@contextlib.contextmanager
def silent_port():
    """A port whose connections are accepted by the kernel, and on which nobody speaks."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(64)
        yield f"https://127.0.0.1:{listener.getsockname()[1]}"


# Honest services


def test_an_enrolment_over_https_is_complete_and_opens_the_lock(world, service, state):
    done = world.enroll(state, [service], "--pin", world.pin, "--json")
    ended(done, OK)
    said = json.loads(done.stdout)
    assert said["enrolled"] is True and said["token"]["subject"] == "holdfast", "the result"
    assert service.paths() == ["/v1/attest", "/v1/tokens"], "the requests"
    assert pending(state) == [], "a baseline waits"
    world.proves(state)


def test_by_the_name_localhost_too(world, service, state):
    ended(world.enroll(state, service.url("localhost")), OK)


def test_without_tls_only_on_this_host(world, services, state):
    plain = services(certificate=None)
    ended(world.enroll(state, [plain]), OK)
    ended(world.enroll(world.name("state"), "http://192.0.2.1"), USAGE, "https://")


@pytest.mark.parametrize("form", ["cose", "jose", "jose-a256kw"])
def test_wishes_are_sent_and_obeyed(world, service, state, form):
    done = world.enroll(state, [service], "--format", form, "--user", "alice", "--allow", "status", "--allow", "lock")
    ended(done, OK)
    (body,) = service.sent("/v1/tokens")
    assert (body["format"], body["user"], body["commands"]) == (form, "alice", ["status", "lock"]), "the wishes"
    report = json.loads((enrolment(state) / "enrolment.json").read_text())["issued"]
    assert report["commands"] == ["status", "lock"] and report["user"] == "alice", "the report"
    world.proves(state)


def test_without_wishes_none_is_sent(world, service, state):
    ended(world.enroll(state, [service]), OK)
    assert set(service.sent("/v1/tokens")[0]) == {"attestation", "device"}, "members"


@pytest.mark.parametrize("option", [["--mac"], ["--allow-nothing"], ["--maximum-uses", "3"], ["--valid-for", "60"]])
def test_what_the_service_decides_cannot_be_wished(world, service, state, option):
    ended(world.enroll(state, [service], *option), USAGE, "decides")
    assert service.seen == [], "something was sent"


def test_several_devices_are_enrolled_at_once(world, service, state):
    done = world.enroll(state, [service], "--device", "other.json")
    ended(done, OK)
    assert len(list((state / "devices").iterdir())) == 2, "devices"
    world.proves(state)


def test_an_enrolled_device_is_replaced_only_on_request(world, service, state):
    ended(world.enroll(state, [service]), OK)
    sent = len(service.seen)
    ended(world.enroll(state, [service]), MALFORMED, "already enrolled")
    assert len(service.seen) == sent, "something was sent"
    ended(world.enroll(state, [service], "--replace"), OK)
    world.proves(state)


# Invitations


def test_an_invitation_comes_from_a_file_or_from_standard_input(world, service, state):
    file = world.write("invitation", INVITATION.lower() + "\n")
    ended(world.enroll(state, [service], "--invitation", file), OK)
    other = world.name("state")
    done = subprocess.run(
        [world.line.path, *map(str, world.arguments(other, [service], "--invitation", "-"))],
        input=INVITATION.replace("-", "").encode(),
        env=world.line.environment,
        cwd=world.folder,
        capture_output=True,
        check=False,
        timeout=60,
    )
    ended(done, OK)
    assert [body["invitation"] for body in service.sent("/v1/tokens")] == [INVITATION] * 2, "what was sent"


def test_the_text_of_a_qr_code_names_the_service_too(world, service, state):
    url = service.url().replace(":", "%3A").replace("/", "%2F")
    file = world.write("invitation", f"holdfast-invitation:1?code={INVITATION}&service={url}")
    arguments = ["enroll", "--device", "lock.json", "--state", state, "--ca", world.authority.file]
    ended(world.line.run(*arguments, "--invitation", file), OK)
    world.proves(state)
    done = world.enroll(world.name("state"), "https://192.0.2.1", "--invitation", file)
    ended(done, USAGE, "is not for")
    # Without the invitation, the service of the enrolment is known; in another folder, none is.
    ended(world.line.run(*arguments[:-2], "--replace"), OK)
    ended(world.line.run("enroll", "--device", "lock.json", "--state", world.name("state")), USAGE, "--service")


@pytest.mark.parametrize(
    "text",
    [
        "",
        INVITATION[:-1],
        INVITATION + "A",
        "holdfast-invitation:2?code=" + INVITATION,
        "holdfast-invitation:1?code=" + INVITATION,
        "holdfast-invitation:1?code=" + INVITATION + "&service=http%3A%2F%2Fexample.org",
        "holdfast-invitation:1?code=" + INVITATION + "&service=https%3A%2F%2Fa.example&service=https%3A%2F%2Fb.example",
        "x" * 5000,
    ],
)
def test_what_is_no_invitation_is_refused_without_being_repeated(world, service, state, text):
    file = world.write("invitation", text)
    ended(world.enroll(state, [service], "--invitation", file), MALFORMED)
    assert service.seen == [], "something was sent"


def test_the_code_itself_as_an_argument_is_not_repeated(world, service, state):
    ended(world.enroll(state, [service], "--invitation", INVITATION), MALFORMED, "never the secret itself")


# Services that are not what they say


def lying(world, services, **how):
    """Services that must not get any request, with what is said of each."""
    days = how.get("days", (-1, 30))
    certificate, _ = how.get("by", world.authority).certify("liar", how.get("names", LOOPBACK), days)
    return services(certificate=certificate)


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ("stranger", "no trusted authority"),
        ("expired", "expired"),
        ("early", "not valid yet"),
        ("name", "another name"),
    ],
)
def test_a_wrong_certificate_is_an_impostor_and_nothing_is_sent(world, services, service, state, how, words):
    liar = lying(
        world,
        services,
        **{
            "stranger": {"by": world.stranger},
            "expired": {"days": (-30, -1)},
            "early": {"days": (1, 30)},
            "name": {"names": [x509.DNSName("b.example")]},
        }[how],
    )
    ended(world.enroll(state, [liar, service]), IMPOSTOR, words)
    assert liar.seen == [] and service.seen == [], "something was sent"
    nothing_enrolled(state)


def test_without_ca_the_authorities_of_this_host_count(world, service, state):
    ended(world.enroll(state, [service], ca=False), IMPOSTOR, "no trusted authority")
    assert service.seen == [], "something was sent"


def test_a_wrong_pin_is_an_impostor_even_with_a_good_certificate(world, service, state):
    ended(world.enroll(state, [service], "--pin", OTHER_PIN), IMPOSTOR, "pinned")
    assert service.seen == [] and not (state / "services.json").exists(), "something was sent, or the pin is kept"
    ended(world.enroll(state, [service], "--pin", OTHER_PIN, "--pin", world.pin), OK)


def test_a_pin_of_an_authority_counts_only_if_it_is_in_the_chain_that_was_verified(world, services, state):
    ended(world.enroll(state, [services()], "--pin", OTHER_PIN, "--pin", world.authority.pin), OK)
    # The pinned authority has not signed this service's certificate, but the service sends its certificate along.
    certificate, _ = world.authority.certify("service", LOOPBACK)
    certificate.write_bytes(certificate.read_bytes() + world.stranger.file.read_bytes())
    liar = services(certificate=certificate)
    ended(world.enroll(world.name("state"), [liar], "--pin", world.stranger.pin), IMPOSTOR, "pinned")
    assert liar.seen == [], "something was sent"


def test_the_authorities_of_a_file_and_those_of_this_host(world, service, state):
    refused = world.enroll(state, [service], "--ca", world.stranger.file, "--with-system-ca", ca=False)
    ended(refused, IMPOSTOR, "no trusted authority")
    broken = world.write("ca", "nothing")
    ended(world.enroll(state, [service], "--ca", broken, "--with-system-ca", ca=False), MALFORMED, "--ca")
    assert service.seen == [], "something was sent"
    ended(world.enroll(state, [service], "--with-system-ca", "--pin", world.pin), OK)


def test_retries_end_before_the_time_does(world, state):
    url = f"https://127.0.0.1:{free_port()}"
    begun = time.monotonic()
    ended(world.enroll(state, url, "--retries", 2, "--pause", 0, "--timeout", 3600), UNAVAILABLE, "no connection")
    assert time.monotonic() - begun < 60, "it went on trying"


def test_a_pin_that_was_given_once_is_required_from_then_on_and_replaced_only_on_request(world, services, state):
    service = services()
    ended(world.enroll(state, [service], "--pin", world.pin), OK)
    kept = state / "services.json"
    assert json.loads(kept.read_text()) == {
        "version": 2,
        "pins": {service.url(): [world.pin]},
        "default": {"services": [service.url()], "ca": str(world.authority.file)},
    }, "the file"
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600, "its mode"
    ended(world.enroll(state, [service], "--replace"), OK)
    sent = len(service.seen)
    ended(world.enroll(state, [service], "--replace", "--pin", OTHER_PIN), MALFORMED, "--replace-pins")
    assert len(service.seen) == sent, "something was sent"
    # The service has a new key.
    port = service.port
    service.close()
    certificate, pin = world.authority.certify("service", LOOPBACK)
    changed = services(certificate=certificate)
    text = kept.read_text().replace(str(port), str(changed.port))
    kept.write_text(text)
    ended(world.enroll(state, [changed], "--replace"), IMPOSTOR, "pinned", "--replace-pins")
    assert changed.seen == [], "something was sent"
    ended(world.enroll(state, [changed], "--replace", "--pin", pin, "--replace-pins"), OK)
    assert json.loads(kept.read_text())["pins"] == {changed.url(): [pin]}, "the new pin"
    kept.write_text(text[:-10])
    ended(world.enroll(state, [changed], "--replace"), MALFORMED, "services.json", "is not JSON")


def enroll_again(world, state, *more):
    return world.line.run("enroll", "--device", "lock.json", "--state", state, "--replace", *map(str, more))


def shown(world, state, *more):
    return json.loads(world.line.succeed("status", "--state", state, "--json", *more))["devices"][0]


def test_an_enrolment_that_succeeded_is_repeated_without_its_service(world, services, service, state):
    ended(enroll_again(world, state), USAGE, "--service is missing")
    # The first service is gone; the file has both, and says which one issued the token.
    gone = services()
    gone.close()
    assert shown_nothing(world, state), "something is enrolled"
    relative = os.path.relpath(world.authority.file, world.folder)
    ended(
        world.enroll(state, [gone, service], "--ca", relative, "--pin", world.pin, "--pause", 0, ca=False),
        OK,
    )
    assert json.loads((state / "services.json").read_text())["default"] == {
        "services": [gone.url(), service.url()],
        "ca": str(world.authority.file),
        "pause": 0,
    }
    assert shown(world, state)["service_address"] == service.url()
    assert service.url().encode() in world.line.succeed("status", "--state", state), "the address is not shown"
    ended(enroll_again(world, state), OK)
    # An option of one run is not kept, and a service that is named counts in place of the kept ones.
    ended(enroll_again(world, state, "--retries", 3), OK)
    assert "retries" not in (state / "services.json").read_text(), "an option without a service is kept"
    sent = len(service.seen)
    ended(enroll_again(world, state, "--service", gone.url(), "--retries", 0, "--timeout", 2), UNAVAILABLE)
    assert len(service.seen) == sent, "another service was asked than the one that is named"
    assert json.loads((state / "services.json").read_text())["default"]["services"] == [gone.url(), service.url()]
    world.proves(state)


def shown_nothing(world, state):
    return world.line.run("status", "--state", state).returncode == MALFORMED


def test_a_file_of_services_that_others_may_write_or_that_is_damaged_sends_nothing(world, service, state):
    ended(world.enroll(state, [service]), OK)
    kept = state / "services.json"
    text = kept.read_text()
    sent = len(service.seen)
    kept.chmod(0o620)
    ended(enroll_again(world, state), NO_PERMISSION, "0620")
    kept.chmod(0o600)
    kept.write_text(text.replace('"services"', '"service"'))
    ended(enroll_again(world, state, "--json"), MALFORMED)
    for command in (("status", "--service"), ("posture", "--rules-from")):
        ended(world.line.run(command[0], "--state", state, command[1]), MALFORMED, "default.service ", "services.json")
    assert len(service.seen) == sent, "something was sent"
    # Without a service, nothing needs the file.
    world.line.succeed("status", "--state", state)
    # A person may write it.
    kept.write_text(
        json.dumps({"version": 2, "default": {"services": [service.url()], "ca": str(world.authority.file)}})
    )
    ended(enroll_again(world, state), OK)


def test_the_last_try_is_not_announced_as_one_of_several(world, state):
    url = f"https://127.0.0.1:{free_port()}"
    done = world.enroll(state, url, "--retries", 0, "--timeout", 60)
    ended(done, UNAVAILABLE, "no connection")
    assert b"trying again" not in done.stderr, done.stderr
    done = world.enroll(state, url, "--retries", 1, "--pause", 0, "--timeout", 60)
    ended(done, UNAVAILABLE, "trying again")


def test_the_hint_about_a_wrong_pin_names_the_folder_only_if_the_pin_is_from_there(world, service, state):
    done = world.enroll(state, [service], "--pin", OTHER_PIN)
    ended(done, IMPOSTOR, "give its pin: --pin PIN")
    assert b"--replace-pins" not in done.stderr, done.stderr


def test_a_refusal_has_no_doubled_punctuation(world, service, state):
    service.replace["/v1/attest"] = lambda handler: handler.refuse(
        403, "unknownImage", title="The request is refused.", detail="Ask the operator.", more=[("help", "Call 1.")]
    )
    done = world.enroll(state, [service])
    ended(done, DENIED, "refused: Ask the operator", "Call 1;")
    assert b".:" not in done.stderr and b".;" not in done.stderr and b".." not in done.stderr, done.stderr


def test_a_service_with_only_an_older_tls_gets_nothing(world, services, state):
    old = services(versions=TLS12)
    ended(world.enroll(state, [old], "--retries", 5, "--pause", 0, "--timeout", 40), UNAVAILABLE, "TLS 1.3")
    assert old.seen == [], "something was sent"


def test_a_file_without_certificates_is_named(world, service, state):
    ended(world.enroll(state, [service], "--ca", world.write("ca", "nothing"), ca=False), MALFORMED, "--ca")
    ended(world.enroll(state, [service], "--ca", "missing.pem", ca=False), MALFORMED, "missing.pem")


# Services that fail


def down(_, __):
    return f"https://127.0.0.1:{free_port()}"


def hanging(_, stack):
    return stack.enter_context(silent_port())


def failing(status):
    def make(services, _):
        broken = services()
        broken.replace["*"] = lambda handler: handler.refuse(status, "busy")
        return broken.url()

    return make


@pytest.mark.parametrize(
    "first", [down, hanging, failing(500), failing(503), failing(408), failing(425), failing(429)], ids=str
)
def test_if_the_first_service_fails_the_second_one_is_asked(world, services, service, first):
    with contextlib.ExitStack() as stack:
        urls = f"{first(services, stack)},{service.url()}"
        # A busy machine may be late once, but not each time.
        for _ in range(3):
            state = world.name("state")
            done = world.enroll(state, urls, "--timeout", 60, timeout=120)
            ended(done, OK, "trying again")
            if done.seconds < 10:
                break
    assert done.seconds < 10, "seconds"
    world.proves(state)


def test_a_service_that_fails_between_the_requests_is_replaced_by_one_that_gets_both(world, services, service, state):
    broken = services()
    broken.replace["/v1/tokens"] = lambda handler: handler.send(b"<html>", 502, kind="text/html")
    ended(world.enroll(state, [broken, service], "--timeout", 20), OK)
    assert service.paths() == ["/v1/attest", "/v1/tokens"], "the requests"


def test_if_none_answers_the_time_is_kept_and_the_next_run_succeeds_with_the_same_evidence(world, service, state):
    service.replace["/v1/tokens"] = lambda handler: handler.refuse(503, "busy")
    done = world.enroll_until(lambda said: "503" in said, 3, state, [service])
    ended(done, UNAVAILABLE, "503")
    assert -0.5 < done.late < 30, "seconds"
    nothing_enrolled(state)
    service.replace.clear()
    ended(world.enroll(state, [service]), OK)
    assert len({body["evidence"] for body in service.sent("/v1/attest")}) == 1, "the evidence differs"
    world.proves(state)


def test_retry_after_is_honoured(world, service, state):
    moments = []

    def busy_at_first(handler):
        moments.append(time.monotonic())
        if len(moments) > 1:
            return True
        handler.send({}, 503, {"Retry-After": "2"}, kind="application/problem+json")
        return False

    service.replace["/v1/attest"] = busy_at_first
    ended(world.enroll(state, [service]), OK)
    assert 1.9 < moments[1] - moments[0] < 30, "the pause"


def trickle(handler):
    handler.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 60000\r\n\r\n")
    for _ in range(3000):
        handler.wfile.write(b" ")
        time.sleep(0.1)


def trickling_header(handler):
    handler.wfile.write(b"HTTP/1.1 200 OK\r\n")
    for number in range(3000):
        handler.wfile.write(f"X-{number}: x\r\n".encode())
        time.sleep(0.1)


@pytest.mark.parametrize("slow", [trickle, trickling_header])
def test_a_trickle_is_cut(world, service, state, slow):
    service.replace["/v1/attest"] = slow
    done = world.enroll(state, [service], "--timeout", 3)
    ended(done, UNAVAILABLE, "too long")
    assert done.seconds < 50, "seconds"


def endless(handler):
    handler.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n")
    while True:
        handler.wfile.write(b" " * 65536)


def endless_header(handler):
    handler.wfile.write(b"HTTP/1.1 200 OK\r\nX: ")
    while True:
        handler.wfile.write(b"x" * 65536)


def redirect(handler):
    handler.send({}, 302, {"Location": "https://127.0.0.1:1/"})


LONG = base64.b64encode(b"\xd8\x60" + bytes(3100)).decode()
CLAIMS = {"issuer": "i"}


@pytest.mark.parametrize(
    ("path", "answer"),
    [
        ("/v1/attest", endless),
        ("/v1/attest", endless_header),
        ("/v1/attest", redirect),
        ("/v1/tokens", redirect),
        ("/v1/attest", lambda handler: handler.wfile.write(b"SSH-2.0-none\r\n\r\n")),
        ("/v1/attest", lambda handler: handler.send(b"<html>hello</html>", kind="text/html")),
        ("/v1/attest", lambda handler: handler.send(b"<html>no</html>", 403, kind="text/html")),
        ("/v1/attest", lambda handler: handler.send(b"{", 403, kind="application/problem+json")),
        ("/v1/attest", lambda handler: handler.send({"reasons": "x"}, 403, kind="application/problem+json")),
        ("/v1/attest", lambda handler: handler.refuse(403, *(["x"] * 17))),
        ("/v1/attest", lambda handler: handler.refuse(403, "\x1b[31m")),
        ("/v1/attest", lambda handler: handler.refuse(403, "x", detail="x" * 70_000)),
        ("/v1/attest", lambda handler: handler.send({})),
        ("/v1/attest", lambda handler: handler.send({"attestation": "a.b", "arc": ARC, "expires": 1})),
        ("/v1/attest", lambda handler: handler.send(b'{"attestation":"a.b.c.d.e","arc":"A","expires":1}{}')),
        ("/v1/tokens", lambda handler: handler.send({}, 200)),
        ("/v1/tokens", lambda handler: handler.send({}, 201)),
        ("/v1/tokens", lambda handler: handler.send({"token": LONG, "format": "cose", "claims": CLAIMS}, 201)),
        ("/v1/tokens", lambda handler: handler.send({"token": "!", "format": "cose", "claims": CLAIMS}, 201)),
        ("/v1/tokens", lambda handler: handler.send({"token": "AAAA", "format": "xml", "claims": CLAIMS}, 201)),
        ("/v1/tokens", lambda handler: handler.send({"token": "2GCA", "format": "cose", "claims": CLAIMS}, 201)),
        ("/v1/tokens", lambda handler: handler.send({"request": "x", "status": "waiting"}, 202)),
        ("/v1/tokens", lambda handler: handler.send({"request": "0" * 32, "status": "fine"}, 202)),
    ],
)
def test_what_is_no_answer_is_malformed_and_changes_nothing(world, service, state, path, answer):
    service.replace[path] = answer
    done = world.enroll(state, [service], "--timeout", 20)
    ended(done, MALFORMED)
    assert "\x1b" not in done.stderr.decode() and len(done.stderr) < 4000, "what is said"
    nothing_enrolled(state)


def test_a_token_for_another_device_or_in_another_form_is_not_stored(world, service, state):
    device = json.loads((world.folder / "other.json").read_text())
    ended(world.enroll(world.name("state"), [service], device="other.json"), OK)
    (attested,) = [body for body in service.sent("/v1/tokens") if body["device"] == device]
    token, report = world.issuer.issue(device, attested["attestation"], {})
    said = {"token": base64.b64encode(token).decode(), "format": "cose", "claims": report}
    service.replace["/v1/tokens"] = lambda handler: handler.send(said, 201)
    ended(world.enroll(state, [service]), MALFORMED, "not for this device")
    for change in ({"format": "jose"}, {"claims": {**report, "expires": 0}}, {"claims": {**report, "more": 1}}):
        service.replace["/v1/tokens"] = lambda handler, change=change: handler.send({**said, **change}, 201)
        ended(world.enroll(world.name("state"), [service], device="other.json"), MALFORMED)
    service.replace["/v1/tokens"] = lambda handler: handler.send(said, 201)
    ended(world.enroll(state, [service], "--format", "jose"), MALFORMED)
    nothing_enrolled(state)


# Refusals


def test_a_refusal_names_all_reasons_and_the_code_and_the_next_run_measures_again(world, service, state):
    service.replace["/v1/attest"] = lambda handler: handler.refuse(403, "unknownImage", "debugger")
    done = world.enroll(state, [service], "--json")
    ended(done, DENIED, "unknownImage", "debugger", ARC, "Ask the operator")
    said = json.loads(done.stdout)
    assert (said["reasons"], said["arc"], said["exit"]) == (["unknownImage", "debugger"], ARC, DENIED), "the object"
    assert pending(state) == [], "a baseline waits"
    service.replace.clear()
    ended(world.enroll(state, [service]), OK)
    assert len({body["evidence"] for body in service.sent("/v1/attest")}) == 2, "the same evidence"


def test_a_refusal_is_final_and_no_other_service_is_asked(world, services, service, state):
    first = services()
    first.replace["/v1/tokens"] = lambda handler: handler.refuse(409, "invitationUsed")
    ended(world.enroll(state, [first, service]), DENIED, "invitationUsed")
    assert service.seen == [], "the other service was asked"


# Decisions of an operator


def decides(service, decision):
    """The operator decides when a run asks for the second time."""
    service.decision = "waiting"

    def asked(handler):
        if len([path for path in service.paths() if path.startswith("/v1/requests/")]) > 1:
            service.decision = decision
        return True

    service.replace["*"] = asked


def test_the_token_is_collected_as_soon_as_an_operator_approves(world, service, state):
    decides(service, "approved")
    done = world.enroll(state, [service])
    ended(done, OK, "waits for a decision")
    assert done.stderr.count(b"waits for a decision") == 1, "it is said more than once"
    assert len({body["evidence"] for body in service.sent("/v1/attest")}) == 1, "the evidence differs"
    assert service.paths().count("/v1/attest") == 2, "it attests once more"
    world.proves(state)


def test_a_refusal_of_the_operator_is_shown_with_its_reason(world, service, state):
    decides(service, "refused")
    ended(world.enroll(state, [service]), DENIED, "the app is not ours")
    assert pending(state) == [], "a baseline waits"


def test_a_request_that_expires_is_made_anew_by_the_next_run(world, service, state):
    decides(service, "expired")
    ended(world.enroll(state, [service]), DENIED, "in time")
    service.replace.clear()
    service.decision = None
    ended(world.enroll(state, [service]), OK)


def waits(world, service, state, *more):
    """Has a run end before the operator decides; the request that it leaves."""
    service.decision = "waiting"
    done = world.enroll_until(lambda said: "has not decided" in said, 4, state, [service], "--json", *more)
    ended(done, UNAVAILABLE, "has not decided", "same command")
    said = json.loads(done.stdout)
    (place,) = (state / "pending").iterdir()
    kept = json.loads((place / "request.json").read_text())
    assert (kept["request"], kept["service"]) == (said["request"], service.url()), "what is kept"
    assert sorted(path.name for path in place.iterdir()) == [
        "fingerprints.cbor",
        "measurement_config.bin",
        "request.json",
    ], "the files"
    evidence = base64.b64decode(service.sent("/v1/attest")[0]["evidence"])
    for path in state.rglob("*"):
        if path.is_file():
            data = path.read_bytes()
            assert evidence not in data and INVITATION.encode() not in data, f"a secret is in {path.name}"
            assert path.stat().st_mode & 0o777 == 0o600, f"mode of {path}"
    return said["request"]


@pytest.mark.parametrize(
    "options, policy", [((), 0), (("--tree-digests",), 2), (("--known-code", "--tree-digests"), 3)]
)
def test_a_baseline_is_measured_as_the_options_say_and_the_same_command_continues_it(
    world, service, state, options, policy
):
    waits(world, service, state, *options)
    service.decision = "approved"
    ended(world.enroll(state, [service], *options), OK)
    (configuration,) = state.rglob("measurement_config.bin")
    assert measurement.parse_configuration(configuration.read_bytes())["policy"] == policy
    assert len({body["evidence"] for body in service.sent("/v1/attest")}) == 1, "another baseline"


@pytest.mark.parametrize("options, policy", [((), 0), (("--tree-digests", "--known-code"), 2)])
def test_a_service_is_asked_about_a_token_with_evidence_in_the_form_of_the_enrolment(
    world, service, state, options, policy
):
    ended(world.enroll(state, [service], *options), OK)
    service.replace["/v1/enrolment"] = lambda handler: handler.refuse(403, "unknownToken")
    world.line.run("status", "--state", state, "--service", "default")
    (asked,) = service.sent("/v1/enrolment")
    (token,) = state.glob("devices/*/measurement_token.*")
    assert asked["device"] == token.parent.name and asked["token"] == hashlib.sha256(token.read_bytes()).hexdigest()
    evidence = cbor.decode(base64.b64decode(asked["evidence"]))
    assert measurement.parse_configuration(evidence[1])["policy"] == policy


def test_the_same_command_continues_a_request_that_waits(world, service, state):
    request = waits(world, service, state)
    service.seen.clear()
    ended(world.enroll_until(lambda _: service.seen, 2, state, [service]), UNAVAILABLE, request)
    assert service.paths()[0] == f"/v1/requests/{request}", "the first question"
    assert "/v1/attest" not in service.paths(), "it attests before the decision"
    service.decision = "approved"
    ended(world.enroll(state, [service]), OK)
    assert pending(state) == [], "a baseline waits"
    world.proves(state)


def test_a_refusal_while_nobody_waited_is_told_by_the_next_run(world, service, state):
    waits(world, service, state)
    service.decision = "refused"
    ended(world.enroll(state, [service]), DENIED, "the app is not ours")
    assert pending(state) == [], "a baseline waits"


def test_a_command_with_other_wishes_makes_a_new_request(world, service, state):
    waits(world, service, state, "--allow", "status")
    service.decision = None
    service.seen.clear()
    ended(world.enroll(state, [service], "--allow", "lock"), OK, "new one")
    assert service.paths() == ["/v1/attest", "/v1/tokens"], "the requests"


def test_a_baseline_that_the_service_has_forgotten_is_taken_again(world, service, state):
    waits(world, service, state)
    service.decision = "approved"
    old = service.sent("/v1/attest")[0]["evidence"]

    def forgetful(handler):
        if service.sent("/v1/attest")[-1]["evidence"] != old:
            return True
        handler.refuse(403, "notFresh")
        return False

    service.replace["/v1/attest"] = forgetful
    ended(world.enroll(state, [service]), OK, "new one")
    world.proves(state)


def test_an_app_whose_host_has_changed_makes_a_new_request(world, service, state):
    waits(world, service, state)
    service.decision = None
    old = service.sent("/v1/attest")[0]["evidence"]
    secret = next(world.folder.rglob("device.secret"))
    kept = secret.read_bytes()
    secret.write_bytes(bytes(len(kept)))
    try:
        ended(world.enroll(state, [service]), OK, "has changed")
    finally:
        secret.write_bytes(kept)
    assert service.sent("/v1/attest")[-1]["evidence"] != old, "the same evidence"


def test_a_damaged_request_is_made_anew(world, service, state):
    waits(world, service, state)
    (place,) = (state / "pending").iterdir()
    (place / "request.json").write_text("{")
    service.decision = None
    ended(world.enroll(state, [service]), OK)


def test_a_baseline_that_waits_for_a_token_by_hand_is_not_lost(world, service, state):
    world.line.succeed("measure", "--state", state, "--device", "lock.json", "--out", world.name("evidence"))
    ended(world.enroll(state, [service]), MALFORMED, "baseline is waiting")
    assert service.seen == [], "something was sent"
    ended(world.enroll(state, [service], "--replace"), OK)


def test_another_service_is_asked_about_the_request_if_the_first_one_is_gone(world, services, state):
    first, second = services(), services()
    waits(world, first, state)
    first.close()
    second.decision = "approved"
    ended(world.enroll(state, [first, second]), OK)
    assert second.paths()[0].startswith("/v1/requests/"), "the first question"


# The carrier


def children(process):
    found = pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    return [int(number) for number in found]


def waiting_run(world, service, state, *more):
    """A run whose request waits, and its carrier's process id."""
    service.decision = "waiting"
    process = subprocess.Popen(
        [world.line.path, *map(str, world.arguments(state, [service], *more))],
        env=world.line.environment,
        cwd=world.folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    wait_for(lambda: any(path.startswith("/v1/requests/") for path in service.paths()), "no request waits")
    (carrier,) = children(process)
    return process, carrier


def is_running(number):
    try:
        return pathlib.Path(f"/proc/{number}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_an_interrupted_run_leaves_no_process_and_is_continued(world, service, state, number):
    process, carrier = waiting_run(world, service, state)
    process.send_signal(number)
    process.communicate(timeout=60)
    assert process.returncode == -number, "how it ended"
    wait_for(lambda: not is_running(carrier), "the carrier runs")
    service.decision = "approved"
    ended(world.enroll(state, [service]), OK)
    assert len({body["evidence"] for body in service.sent("/v1/attest")}) == 1, "the evidence differs"
    world.proves(state)


def test_no_process_shows_a_secret_in_its_arguments_or_environment(world, service, state):
    file = world.write("invitation", INVITATION)
    process, carrier = waiting_run(world, service, state, "--invitation", file)
    try:
        evidence = service.sent("/v1/attest")[0]["evidence"].encode()
        for number in (process.pid, carrier):
            for name in ("cmdline", "environ"):
                shown = pathlib.Path(f"/proc/{number}/{name}").read_bytes()
                assert INVITATION.encode() not in shown and evidence[:64] not in shown, f"{name} of {number}"
        shown = pathlib.Path(f"/proc/{carrier}/cmdline").read_bytes()
        assert shown.count(b"\0") == 1, "the carrier has arguments"
        assert pathlib.Path(f"/proc/{carrier}/environ").read_bytes() == b"", "the carrier has an environment"
        opened = [os.readlink(path) for path in pathlib.Path(f"/proc/{carrier}/fd").iterdir()]
        assert not any(str(state) in path for path in opened), "the carrier has a file of the state folder"
    finally:
        process.kill()
        process.communicate()


def test_a_killed_carrier_is_a_failure_after_which_the_next_run_succeeds(world, service, state):
    process, carrier = waiting_run(world, service, state)
    os.kill(carrier, signal.SIGKILL)
    _, said = process.communicate(timeout=60)
    assert process.returncode == FAULT and b"signal 9" in said, said[-300:]
    service.decision = None
    ended(world.enroll(state, [service]), OK)


@pytest.fixture
def installed(world):
    """Copies the program into a folder of its own, with something as its carrier."""

    def install(carrier, place="bin/holdfast-carrier"):
        root = world.name("installed")
        (root / "bin").mkdir(parents=True)
        shutil.copy(world.program, root / "bin/holdfast")
        path = root / place
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(carrier, pathlib.Path):
            shutil.copy(carrier, path)
        elif carrier is not None:
            path.write_text("#!/bin/sh\n" + carrier)
            path.chmod(0o755)
        return root / "bin/holdfast"

    return install


def run_installed(world, program, state, service, **more):
    """Enrols with a copy of the program."""
    return subprocess.run(
        [program, *map(str, world.arguments(state, [service], device=world.folder / "lock.json"))],
        env={**world.line.environment, "PATH": f"{world.program.parent}:/usr/bin:/bin"},
        cwd=more.get("cwd", world.folder),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
        timeout=60,
    )


def test_the_carrier_is_found_in_libexec_and_through_a_link_to_the_program(world, service, installed):
    carrier = world.program.with_name("holdfast-carrier")
    program = installed(carrier, place="libexec/holdfast/holdfast-carrier")
    link = world.name("link")
    link.symlink_to(program)
    for through in (program, link):
        ended(run_installed(world, through, world.name("state"), service, cwd="/"), OK)


def test_a_missing_carrier_is_named_and_not_looked_for_elsewhere(world, service, installed, state):
    done = run_installed(world, installed(None), state, service, cwd=world.program.parent)
    ended(done, UNAVAILABLE, "holdfast-carrier is missing", "libexec")
    assert service.seen == [] and not state.exists(), "something was done"


TOKEN = json.dumps({"result": "token", "service": "https://a.example", "token": "2GCA", "format": "cose", "claims": {}})


@pytest.mark.parametrize(
    ("carrier", "status"),
    [
        ("exit 0", FAULT),
        ("exit 3", FAULT),
        ("kill -9 $$", FAULT),
        ("echo hello", FAULT),
        ("echo '{}'", FAULT),
        ("head -c 200000 /dev/zero | tr '\\0' x", FAULT),
        ("cat /dev/urandom", FAULT),
        ("exec <&-; printf '{\"result\":'", FAULT),
        ("""echo '{"result":"failure"}'""", FAULT),
        ("""echo '{"progress":"waiting","service":"https://a.example","request":"x","seconds":1}'""", FAULT),
        ("""echo '{"progress":"attesting","service":"https://a.example","more":1}'""", FAULT),
        (f"echo '{TOKEN}'", MALFORMED),
    ],
)
def test_a_carrier_that_ends_early_or_speaks_garbage_is_a_failure(world, service, installed, state, carrier, status):
    ended(run_installed(world, installed(carrier), state, service), status)
    nothing_enrolled(state)
    ended(world.enroll(state, [service]), OK)


def test_a_carrier_that_cannot_be_started_is_a_failure(world, service, installed, state):
    program = installed("exit 0")
    program.with_name("holdfast-carrier").chmod(0o644)
    ended(run_installed(world, program, state, service), UNAVAILABLE, "could not be started")


# Arguments


@pytest.mark.parametrize(
    "urls",
    [
        "ftp://a.example",
        "http://a.example",
        "https://",
        "https://a.example/path",
        "https://user@a.example",
        "https://a.example?x",
        "https://a.example:0",
        "https://a.example:65536",
        "https://a b",
        "https://a.example,",
        "https://a.example,https://A.example:443",
        ",".join(f"https://{letter}.example" for letter in "abcdefghi"),
    ],
)
def test_what_names_no_service_is_refused(world, state, urls):
    ended(world.line.run("enroll", "--device", "lock.json", "--service", urls, "--state", state), USAGE)
    assert not state.exists(), "something was written"


@pytest.mark.parametrize(
    "option",
    [
        ["--timeout", "0"],
        ["--timeout", "86401"],
        ["--pin", "sha256//AAAA"],
        ["--retries", "1001"],
        ["--pause", "3601"],
        ["--pin", "sha1//" + "A" * 43 + "="],
        ["--replace-pins"],
        ["--pin", OTHER_PIN] * 9,
    ],
)
def test_wrong_options_are_refused(world, service, state, option):
    ended(world.enroll(state, [service], *option), USAGE)
    assert service.seen == [], "something was sent"


@pytest.mark.parametrize(
    "option",
    [
        ["--timeout", "5"],
        ["--pin", OTHER_PIN],
        ["--ca", "x"],
        ["--invitation", "x"],
        ["--replace-pins"],
        ["--retries", "1"],
        ["--pause", "1"],
        ["--with-system-ca"],
    ],
)
def test_options_of_the_network_do_not_fit_a_folder(world, state, option):
    done = world.line.run("enroll", "--device", "lock.json", "--service", "service", "--state", state, *option)
    ended(done, USAGE, "online service")
