"""`holdfast attack`: that it finds nothing at sound devices, how it reports, and what it does to provers."""

import concurrent.futures
import contextlib
import json
import secrets
import subprocess
import time
from xml.etree import ElementTree

import pytest
from attack_scene import IMPOSTOR, PATIENT, SOUND, UNAVAILABLE, UNSOUND, USAGE, Scene, expect_sound, judged
from device_users import Users
from devices import BridgedDevice, Line, LinuxDevice, served
from holdfast_peer import session, transport
from holdfast_peer.command_line import stop
from holdfast_peer.issuer import Issuer, fresh_claims
from holdfast_peer.keys import PrivateKey
from holdfast_peer.prover import Attempt, Descriptor
from holdfast_peer.scripted_device import MOST_ROUNDS, ScriptedDevice
from reader_of_jose import ReaderOfJOSE
from unsound_devices import FLAWS, AllPlacesForOne, Mailbox, Patient, Served, SoundDevice


@pytest.fixture(scope="module")
def scene(holdfast, folder):
    return Scene(holdfast, folder)


# Sound devices


def test_the_second_that_a_device_takes_after_ten_failures_is_due_whatever_the_timeout(scene):
    # On a busy machine, another second may pass now and then.
    with Served(scene.model(SoundDevice), str(scene.socket)):
        codes = (scene.attack("--timeout", "1", "--only", "failures")[0].returncode for _ in range(3))
        assert SOUND in codes


@pytest.mark.parametrize("kind", [SoundDevice, Mailbox, ReaderOfJOSE], ids=lambda kind: kind.__name__)
def test_an_independent_device_without_a_flaw_is_sound(scene, kind):
    with Served(scene.model(kind), str(scene.socket)):
        done, report = scene.attack("--service", scene.service, "--destructive", *PATIENT)
    expect_sound(done, report)
    assert len(judged(report, "sound")) > 125


class RefusingItsProver(ReaderOfJOSE):
    """The prover's own token does not permit the command; the tokens that the adversary issues do."""

    own = None

    def decide(self, second, request):
        self.own = self.own or second.claims["tokenId"]
        if second.claims["tokenId"] == self.own:
            return "commandRefused", b"", {}
        return super().decide(second, request)


def test_tokens_in_jose_are_tried_although_the_prover_s_own_may_not_send_the_command(scene):
    with Served(scene.model(RefusingItsProver), str(scene.socket)):
        done, report = scene.attack(
            "--service", scene.service, "--only", "another-encryption", "--only", "critical-header"
        )
    expect_sound(done, report)
    assert judged(report, "sound") == {"another-encryption", "critical-header"}


@pytest.fixture(scope="module")
def lock(holdfast, tmp_path_factory):
    """A device on Linux with a user, and a prover that its service enrolled."""
    folder = tmp_path_factory.mktemp("lock")
    with served(LinuxDevice(holdfast, folder)) as device:
        service, descriptor = device.service()
        device.command_line.succeed("enroll", "--device", descriptor, "--service", service, "--state", folder / "phone")
        yield device


def attack_lock(lock, *more):
    done = lock.command_line.run(
        "attack", lock.endpoint, "--state", lock.folder / "phone", "--json", *more, timeout=300
    )
    return done, json.loads(done.stdout)


def test_a_device_on_linux_is_sound_also_to_an_answer_that_comes_too_late_and_one_that_takes_it_is_not(lock, scene):
    with Served(scene.model(Patient), str(scene.socket)), concurrent.futures.ThreadPoolExecutor() as executor:
        patient = executor.submit(scene.attack, "--only", "late-answer")
        done, report = attack_lock(lock)
        expect_sound(done, report)
        # The other attacks cost it its place, so that it is tried again by itself.
        observed = next(each["observed"] for each in report["attacks"] if each["id"] == "late-answer")
        assert observed != "the end of the connection"
        done, report = patient.result()
    assert (done.returncode, judged(report, "unsound")) == (UNSOUND, {"late-answer"})


def test_a_device_on_linux_withstands_an_issuer_s_key_and_lockouts(lock):
    user = Users(lock).provision(seal=False)
    code = lock.folder / "code"
    code.write_text(user.totp())
    more = ("--service", lock.folder / "service", "--destructive", "--user", user.name, "--otp", code, *PATIENT)
    done, report = attack_lock(lock, *more)
    expect_sound(done, report)
    tried = {"password-twice", "lockout", "lockout-by-case", "part-of-a-password", "places-of-one-token"}
    assert tried <= judged(report, "sound")
    other = Users(lock).provision(seal=False)
    code, later = lock.folder / "other's code", lock.folder / "other's later code"
    code.write_text(other.totp(0))
    later.write_text(other.totp(1))
    after = ("--destructive", "--user", other.name, "--otp", code, "--later-otp", later)
    done, report = attack_lock(lock, *after, "--only", "password-before-the-last")
    expect_sound(done, report)
    assert judged(report, "sound") == {"password-before-the-last"}
    # The first user is locked out now, which is no fault of the device.
    done, report = attack_lock(lock, *more, "--only", "part-of-a-password")
    expect_sound(done, report)
    assert judged(report, "not tried") == {"part-of-a-password"}


BY_REFERENCE = (
    *("flip-reference", "short-reference", "flip-device-proof-by-reference", "flip-integrity-proof-by-reference"),
    *("no-device-proof-by-reference", "no-integrity-proof-by-reference", "flip-sealed-tag-by-reference"),
    *("another-host-by-reference", "changed-app-by-reference", "replay-by-reference", "wrong-proof-after-acceptance"),
    *("uses-by-reference", "expired-by-reference"),
)


def only(*ids):
    return (word for each in ids for word in ("--only", each))


def test_a_device_on_linux_judges_remembered_tokens_as_whole_ones(lock):
    done, report = attack_lock(lock, "--service", lock.folder / "service", *only(*BY_REFERENCE))
    expect_sound(done, report)
    assert judged(report, "sound") == set(BY_REFERENCE)


class WithoutMemory(SoundDevice):
    """No token is remembered."""

    def remember(self, second):
        pass


class WithoutClock(SoundDevice):
    """The time stands still."""

    def message_1(self, **changes):
        return super().message_1(clock=int(self.started), **changes)

    def decide(self, second, request):
        if second.claims["expires"] > self.started:
            second.claims = {**second.claims, "expires": time.time() + 60}
        return super().decide(second, request)

    started = time.time()


class OnePlaceForProvers(AllPlacesForOne):
    """Whoever was accepted keeps the only place, as at a bridge to a line."""

    place_count = 1


@pytest.mark.parametrize(
    ("kind", "tried", "untried"),
    [
        (WithoutMemory, {"flip-reference", "wrong-proof-after-acceptance"}, {"changed-app-by-reference"}),
        (WithoutClock, {"uses-by-reference"}, {"expired-by-reference"}),
        (OnePlaceForProvers, set(), {"places-of-one-token"}),
    ],
)
def test_a_sound_device_that_can_do_less_is_not_judged_by_it(scene, kind, tried, untried):
    with Served(scene.model(kind), str(scene.socket)):
        done, report = scene.attack("--service", scene.service, *only(*tried, *untried))
    expect_sound(done, report)
    assert (judged(report, "sound"), judged(report, "not tried")) == (tried, untried)


class BridgedTerminal(BridgedDevice):
    """A device at one end of a serial line, and a bridge at the other."""

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.terminals = Line()

    def start_device(self):
        ready = str(self.folder / "ready")
        self.serve(f"tty:{self.terminals.names[0]}", f"unix:{ready}")
        transport.connect_when_ready(ready).close()

    def start_bridge(self):
        super().start_bridge("--listen", f"unix:{self.socket}", "--to", f"tty:{self.terminals.names[1]}")

    def close(self):
        super().close()
        self.terminals.close()


# What depends on where a message ends, whose turn it is, and what the peer before was permitted.
BRIDGED = (
    *("replay", "replay-elsewhere", "answer-twice", "exchanged-answers", "truncate-half", "extend", "garbage"),
    *(
        "after-malformed",
        "empty-message",
        "oversize",
        "compatibility-twice",
        "guessed-activation",
        "flood",
        "silent-peers",
        "dripping-peers",
    ),
    *("mail-of-a-stranger", "mail-after-a-failed-proof", "mail-after-a-forgery", "two-pages", "flood-of-mail"),
)


def test_a_device_behind_a_bridge_withstands_what_a_bridge_could_let_through(holdfast, tmp_path):
    with served(BridgedTerminal(holdfast, tmp_path)) as device:
        service, descriptor = device.service()
        device.command_line.succeed(
            "enroll", "--device", descriptor, "--service", service, "--state", tmp_path / "phone"
        )
        done = device.command_line.run(
            *("attack", device.endpoint, "--state", tmp_path / "phone", "--service", service, "--json"),
            *(word for each in BRIDGED for word in ("--only", each)),
            timeout=600,
        )
    report = json.loads(done.stdout)
    expect_sound(done, report)
    assert judged(report, "sound") == set(BRIDGED)


def test_without_destructive_no_use_no_code_and_no_lockout_is_used_up(lock, tmp_path):
    descriptor, phone = lock.folder / "device.json", tmp_path / "phone"
    lock.command_line.succeed(
        *("enroll", "--device", descriptor, "--service", lock.folder / "service", "--state", phone),
        *("--maximum-uses", "3"),
    )
    user = Users(lock).provision(seal=False)
    code = tmp_path / "code"
    code.write_text(user.totp())
    # The floor is at the time of the token from here on.
    status = ("prove", "--connect", lock.endpoint, "--state", phone, "--command", "status")
    lock.command_line.succeed(*status)
    floor = ("device", "floor", "--dir", lock.device_folder)
    before = lock.command_line.read_json(*floor)
    done = lock.command_line.run(
        *("attack", lock.endpoint, "--state", phone, "--json", "--user", user.name, "--otp", code, *PATIENT),
        timeout=300,
    )
    report = json.loads(done.stdout)
    expect_sound(done, report)
    assert {"password-twice", "lockout", "future-token", "suppressed-verdict"} <= judged(report, "not tried")
    assert lock.command_line.read_json(*floor) == before
    user.expect("accepted", "configure", otp=code.read_text())
    for _ in range(2):
        lock.command_line.succeed(*status)


# Reports


def test_the_report_says_of_each_attack_what_was_done_what_is_due_and_what_was_observed(lock, tmp_path):
    file = tmp_path / "report.xml"
    done, report = attack_lock(lock, "--only", "replay", "--only", "uses", "--junit", file)
    assert done.returncode == SOUND
    replay, uses = report["attacks"]
    assert replay["observed"] == "deviceMismatch, without a seal" and replay["did"] and replay["due"]
    assert uses["judgement"] == "not tried" and uses["observed"] is None and "--service" in uses["reason"]
    suite = ElementTree.parse(file).getroot()
    assert (suite.get("tests"), suite.get("failures"), suite.get("skipped")) == ("2", "0", "1")
    assert [case.get("name") for case in suite] == ["replay", "uses"]


def test_an_unsound_device_is_a_failure_in_the_report_for_test_servers(scene, tmp_path):
    file = tmp_path / "report.xml"
    with Served(scene.model(next(iter(FLAWS))), str(scene.socket)):
        done, _ = scene.attack("--only", "replay", "--junit", file)
    assert done.returncode == UNSOUND
    assert "accepted" in ElementTree.parse(file).getroot().find("testcase/failure").get("message")


def test_an_attack_that_does_not_exist_and_an_endpoint_that_is_missing_are_wrong_usage(lock):
    for more in (("--only", "no-such-attack"), ("--user", "alice"), ("--connections", "3")):
        assert attack_lock(lock, *more)[0].returncode == USAGE, more
    assert lock.command_line.run("attack", "--state", lock.folder / "phone").returncode == USAGE


# Devices that do not even serve


def hang(peer):
    peer.connection.receive(30)


def close(peer):
    del peer


def answer_garbage(peer):
    for _ in range(MOST_ROUNDS):
        peer.send(b"\xff" * 100)


def flood(peer):
    for _ in range(5000):
        peer.send(peer.model.message_1())


def honest_first(then):
    """A script that serves an honest round, to every prover up to the first attack, and from then on something else."""
    served_rounds = []

    def script(peer):
        served_rounds.append(peer)
        if len(served_rounds) > 1:
            return then(peer)
        for _ in range(MOST_ROUNDS):
            peer.honest()

    return script


@pytest.mark.parametrize("behaviour", [hang, close, answer_garbage, flood])
def test_a_device_that_never_serves_is_an_error_and_one_that_stops_serving_is_unsound_to_the_end(scene, behaviour):
    model = scene.model(SoundDevice)
    with ScriptedDevice(model, str(scene.socket), behaviour):
        done, value = scene.attack("--timeout", "1")
        assert done.returncode in (UNSOUND, IMPOSTOR, UNAVAILABLE) and "error" in value
    with ScriptedDevice(model, str(scene.socket), honest_first(behaviour), timeout=30):
        done, report = scene.attack(
            "--timeout", "5", *("--only", "replay", "--only", "garbage", "--only", "no-proofs", "--only", "flip-token")
        )
        assert done.returncode == UNSOUND
        # Who floods still gives challenges, so each attack is tried.
        assert len(judged(report, "unsound")) == (4 if behaviour is flood else 1)
        assert len(judged(report, "not tried")) == (0 if behaviour is flood else 3)


def test_a_device_that_proves_nothing_is_an_impostor(scene):
    def script(peer):
        peer.send(peer.model.message_1())
        peer.receive()
        peer.send(session.message_3(0, None))

    with ScriptedDevice(scene.model(SoundDevice), str(scene.socket), script):
        assert scene.attack()[0].returncode == IMPOSTOR


# Provers


@contextlib.contextmanager
def impostor(scene, *more):
    """An impostor of the scene's device: a function that ends it, and gives its exit status and results."""
    run = scene.command_line
    endpoint = f"unix:{scene.folder / 'impostor'}"
    process = subprocess.Popen(
        [
            run.path,
            "attack",
            "--listen",
            endpoint,
            "--state",
            scene.state,
            "--json",
            "--timeout",
            "20",
            *map(str, more),
        ],
        env=run.environment,
        cwd=run.folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )

    def finish(signalled=True):
        status = stop(process) if signalled else process.wait(120)
        return status, [json.loads(line) for line in process.stdout.read().splitlines()]

    try:
        # The file is there before anyone listens.
        while not (scene.folder / "impostor").exists():
            assert process.poll() is None, "the impostor ended"
        yield endpoint, finish
    finally:
        stop(process)


def prove(scene, endpoint, seconds=1):
    more = ("--state", scene.state, "--command", "unlock", "--timeout", str(seconds))
    return scene.command_line.run("prove", "--connect", endpoint, *more).returncode


def test_the_real_prover_withstands_every_deception_and_never_reports_acceptance(scene):
    with impostor(scene, "--connections", "29") as (endpoint, finish):
        # Those that have to be noticed come at once, and a busy machine gets its time for them; others are silent.
        statuses = [prove(scene, endpoint, 10 if number in range(10, 16) else 1) for number in range(29)]
        status, results = finish(signalled=False)
    assert status == SOUND and {each["judgement"] for each in results} <= {"sound", "not tried"}
    assert len({each["id"] for each in results}) == 29
    assert SOUND not in statuses
    # Acceptances without a seal or with a wrong one, and denials that need a seal.
    assert statuses[10:16] == [IMPOSTOR] * 6


class TrustingProver:
    """A prover of this peer, with flaws that the impostor has to find."""

    def __init__(self, endpoint):
        self.path = endpoint.removeprefix("unix:")
        descriptor = Descriptor(secrets.token_bytes(16), bytes(8), PrivateKey().point)
        self.grant = Issuer().grant(descriptor.point, fresh_claims(descriptor.device_id), session.COSE)

    def answer(self, m1):
        return Attempt(m1, self.grant).message()

    def run(self, rounds):
        """Answers whatever comes first as a challenge, so many times, and looks at nothing else."""
        with transport.connect_when_ready(self.path) as connection, contextlib.suppress(transport.Closed, TimeoutError):
            for _ in range(rounds):
                connection.send(self.answer(connection.receive()))
                connection.receive()


@pytest.mark.parametrize(
    ("deception", "rounds"),
    [
        ("another-device", 1),
        ("another-key", 1),
        ("extended-challenge", 1),
        ("forged-acceptance", 2),
        ("unknown-token", 3),
    ],
)
def test_a_prover_that_answers_where_it_must_not_is_unsound(scene, deception, rounds):
    with impostor(scene, "--only", deception) as (endpoint, finish):
        TrustingProver(endpoint).run(rounds)
        status, results = finish()
    assert (status, [each["judgement"] for each in results]) == (UNSOUND, ["unsound"])


def test_a_prover_that_repeats_its_random_bytes_is_unsound(scene, monkeypatch):
    with impostor(scene, "--only", "forged-acceptance") as (endpoint, finish):
        prover = TrustingProver(endpoint)
        monkeypatch.setattr("holdfast_peer.prover.secrets.token_bytes", bytes)
        for _ in range(2):
            prover.run(1)
        status, results = finish()
    assert status == UNSOUND
    assert [each["judgement"] for each in results] == ["sound", "unsound"]


def test_a_peer_that_says_nothing_is_not_judged(scene):
    with impostor(scene, "--only", "forged-seal") as (endpoint, finish):
        with transport.connect_when_ready(endpoint.removeprefix("unix:")) as connection:
            connection.receive()
        status, results = finish()
    assert (status, [each["judgement"] for each in results]) == (SOUND, ["not tried"])
