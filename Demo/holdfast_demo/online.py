"""The online service of a fleet: three instances over a PostgreSQL database with a standby, and provers that enrol over HTTPS
while an instance and the primary are killed."""

import contextlib
import json
import shutil
import time

import chaos_verdict
import postgresql
from chaos_clients import Crowd, Given
from holdfast_peer.checks import Failed
from online_fleet import LOST, Fleet

from .linux import LinuxScene
from .scene import SECONDS, Ending
from .story import preparation, situation, step

INSTANCES, CROWD = 3, 8
# While the database is lost, provers go on trying.
TIMEOUT = ("--timeout", 40)


class OnlineScene(LinuxScene):
    """A lock, hosts with different secrets, and the servers. A crowd of provers made in Python enrols for locks of its own."""

    noun = "lock"

    def __init__(self, holdfast, folder, processes):
        super().__init__(holdfast, folder, processes)
        self.folder.chmod(0o711)
        self.program = holdfast.parent / "holdfast-service"
        self.pair = postgresql.Pair(folder, processes.start)
        self.fleet = Fleet(self.program, folder, self.pair.url, processes.start, log_level="warning")
        self.crowd, self.asked = None, 0

    def environment(self, host):
        """What makes a prover's host another one: the secret in its own data folder."""
        place = self.path(f"{host}-data")
        place.mkdir(mode=0o700, exist_ok=True)
        return {"XDG_DATA_HOME": str(place)}

    def enrol(self, host, code=None, *options, state=None, ca="authority.pem"):
        """Runs `holdfast enroll` on a host, with the code on its standard input."""
        state = state or host
        words = ["enroll", "--device", self.path("device.json"), "--service", self.fleet.urls(), "--ca", self.path(ca)]
        words += ["--state", self.path(state), *(("--invitation", "-") if code else ()), *(options or TIMEOUT)]
        environment = {**self.command_line.environment, **self.environment(host)}
        self.asked = time.monotonic()
        with self.write("code", code or "").open("rb") as file:
            done = self.processes.run(
                [self.command_line.path, *words, "--json"], cwd=self.folder, env=environment, stdin=file
            )
        self.path("code").unlink()
        ending = Ending(done)
        if ending.exit == "exit 0":
            self.note(state)
            return "enrolled"
        return " ".join(ending.value.get("reasons", [])) or ending.exit

    def note(self, state):
        """Adds the token in a prover's state folder to those that are compared at the end."""
        (place,) = self.path(state).glob("devices/*")
        (token,) = place.glob("measurement_token.*")
        report = json.loads((place / "enrolment.json").read_text())["issued"]
        given = Given(
            *(self.asked, time.monotonic(), state, self.descriptor.device_id.hex(), None),
            *(report["user"], token.read_bytes()),
        )
        self.kept.digests = {**getattr(self.kept, "digests", {}), state: given.digest}
        self.crowd.journal.given.append(given)

    def invite(self, user):
        return self.fleet.verb("invite", "--device", "lock-7", "--user", user, "--valid-for", "1d", "--json")["code"]

    def proof(self, host, command="unlock"):
        return self.prove(command, state=host, environment=self.environment(host)).answer

    def readiness(self, instance):
        """The status of `/readyz`, or that nobody answers."""
        try:
            return self.fleet.ask(instance.port, "GET", "/readyz")[0]
        except LOST:
            return "no answer"


# Beginning


@step("PostgreSQL: a primary and its standby")
def start_database(scene):
    scene.pair.create()
    return "synchronous"


@step("holdfast-service: three instances")
def start_service(scene):
    scene.fleet.create()
    scene.fleet.serve(INSTANCES)
    return ", ".join(str(instance.port) for instance in scene.fleet.instances) + ", TLS 1.3"


@step("the app, approved by its digest")
def approve(scene):
    words = ("image", "approve", scene.command_line.path, "--subject", "holdfast", "--version", "0.0.0", "--json")
    return f"{scene.fleet.verb(*words)['digest'][:16]}…"


@step("a lock, registered; it trusts the service's key")
def make_lock(scene):
    scene.describe(scene.make_device("device"))
    scene.fleet.verb("device", "add", scene.path("device.json"), "--label", "lock-7")
    (key,) = scene.fleet.ask(scene.fleet.instances[0].port, "GET", "/.well-known/jwks.json")[1]["keys"]
    scene.write("issuer.jwk", json.dumps({name: key[name] for name in ("kty", "crv", "x", "y")}))
    scene.own("trust", scene.path("issuer.jwk"))
    scene.serve("device")
    return f"lock-7, {scene.descriptor.device_id.hex()[:8]}…"


@preparation
def gather(scene):
    """Registers the locks of the crowd, which is not yet started."""
    scene.fleet.approve_app()
    devices = [scene.fleet.add_device(f"crowd-{number}") for number in range(6)]
    scene.crowd = Crowd(
        scene.fleet, devices, "demo", CROWD, lambda digest: chaos_verdict.token_id(scene.pair.primary, digest)
    )


# Enrolling and revoking


@situation("alice's phone enrols by an invitation, over HTTPS", "enrolled")
def enrol(scene):
    scene.kept.code = scene.invite("alice")
    return scene.enrol("phone", scene.kept.code)


@situation("another phone, by the same invitation", "usedInvitation")
def enrol_by_used(scene):
    return scene.enrol("thief", scene.kept.code)


@situation("a service whose certificate nobody vouches for", "exit 3")
def enrol_at_stranger(scene):
    stranger = type(scene.fleet.authority)(scene.folder, "stranger")
    return scene.enrol("phone-2", scene.invite("alice"), *TIMEOUT, ca=stranger.file.name)


@situation("alice's phone unlocks, without any network", "accepted, unlocked")
def unlock(scene):
    return scene.proof("phone")


@situation("bob's tablet, without an invitation, waits", "exit 69")
def ask(scene):
    # On a busy machine, the time may be over before the service has the request.
    for seconds in 2, 20, 40:
        outcome = scene.enrol("tablet", None, "--timeout", seconds)
        if scene.fleet.verb("list", "requests", "--status", "waiting", "--json")["items"]:
            break
    return outcome


@situation("… an operator approves; the same command continues", "enrolled")
def approve_request(scene):
    (request,) = scene.fleet.verb("list", "requests", "--status", "waiting", "--json")["items"]
    scene.fleet.verb("request", "approve", request["id"], "--user", "bob")
    return scene.enrol("tablet")


@step("bob's tablet is revoked with its tokens")
def revoke(scene):
    (token,) = scene.fleet.verb("list", "tokens", "--user", "bob", "--json")["items"]
    scene.fleet.verb("revoke", "prover", token["prover"], "--reason", "lost")
    scene.kept.revoked = token["prover"]
    return f"prover {token['prover'][:8]}…"


@situation("… it asks again, with a new invitation", "revokedProver")
def enrol_revoked(scene):
    return scene.enrol("tablet", scene.invite("bob"), state="tablet-again")


# Losing servers


@step("more provers enrol all the time, and operators revoke")
def start_crowd(scene):
    scene.crowd.start()
    wait_for(scene, "tokens were given", lambda: len(scene.crowd.journal.given) > 3 * CROWD)
    return f"{CROWD} provers"


@step("SIGKILL: the first instance")
def kill_instance(scene):
    scene.fleet.instances[0].end()
    return str(scene.fleet.instances[0].port)


@situation("carol's phone enrols at the next instance", "enrolled")
def enrol_elsewhere(scene):
    return scene.enrol("carol", scene.invite("carol"))


@step("SIGKILL: the primary, which is thereby fenced")
def kill_primary(scene):
    scene.pair.primary.kill()
    wait_for(scene, "refused", lambda: scene.readiness(scene.fleet.instances[1]) == 503)
    return "the instances answer 503"


@step("the standby is promoted")
def promote(scene):
    scene.pair.lose_primary()
    return f"timeline {scene.pair.timeline}"


@step("the former primary comes back as it was")
def revive(scene):
    scene.pair.revive_former_primary()
    return "timeline 1, and it takes connections"


@situation("… and no instance uses it, an old or a new one", "0 connections")
def count_connections(scene):
    scene.fleet.instances[0].process.stdout.close()
    scene.fleet.instances[0].start()
    wait_for(scene, "ready", lambda: all(scene.readiness(each) == 200 for each in scene.fleet.instances))
    query = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'holdfast-service'"
    return f"{scene.pair.standby.sql(query)[0]} connections"


@situation("… nor while its successor is away", "503 503 503")
def refuse_former(scene):
    scene.pair.primary.kill()
    statuses = " ".join(str(scene.readiness(each)) for each in scene.fleet.instances)
    scene.pair.primary.start()
    return statuses


@step("it becomes the standby of its successor")
def rebuild(scene):
    scene.pair.rebuild()
    return "synchronous"


@situation("dave's phone enrols", "enrolled")
def enrol_afterwards(scene):
    return scene.enrol("dave", scene.invite("dave"))


@situation("dave's phone unlocks", "accepted, unlocked")
def unlock_afterwards(scene):
    return scene.proof("dave")


@situation("alice's phone, enrolled before, unlocks", "accepted, unlocked")
def unlock_as_before(scene):
    return scene.proof("phone")


@situation("alice's invitation is still used", "usedInvitation")
def enrol_by_used_afterwards(scene):
    return scene.enrol("thief-again", scene.kept.code)


@situation("bob's tablet is still revoked", "revokedProver")
def enrol_revoked_afterwards(scene):
    return scene.enrol("tablet", scene.invite("bob"), state="tablet-afterwards")


# The end


@preparation
def finish_crowd(scene):
    scene.crowd.finish()


@situation("what was lost", "nothing")
def compare(scene):
    """Compares every token that a prover holds, and every revocation, with the database after one more failover."""
    journal = scene.crowd.journal
    scene.pair.lose_primary()
    stored = chaos_verdict.Stored(scene.pair.primary)
    found = chaos_verdict.judge(journal, stored)
    if not stored.tokens[scene.kept.digests["tablet"]][4]:
        found.append("bob's tablet is not revoked")
    held = {given.token for given in journal.given}
    revocations = sum(each.acknowledged is not None for each in journal.revoked) + 1
    return (
        "; ".join(found[:3]) or "nothing",
        f"{len(held)} tokens that provers hold, {revocations} revocations",
    )


def wait_for(scene, what, holds):
    deadline = time.monotonic() + SECONDS
    while not holds():
        if time.monotonic() > deadline:
            raise Failed(f"the service was never {what}: {log_of(scene)}")
        time.sleep(0.05)


def log_of(scene):
    with contextlib.suppress(OSError):
        return scene.fleet.instances[1].log.read_text()[-300:]


def missing(holdfast):
    """Returns what the demonstration needs and is not there, with a hint; None if all is there."""
    service = holdfast.resolve().parent / "holdfast-service"
    if not service.is_file():
        return f"there is no {service}", "make build service"
    try:
        postgresql.programs()
    except postgresql.Absent as reason:
        return str(reason), "apt-get install postgresql"
    if not shutil.which("setpriv"):
        return "there is no setpriv", "apt-get install util-linux"
    return None
