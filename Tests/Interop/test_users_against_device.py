"""This peer as owner, user and prover: one-time passwords, seals, activation and lockouts, at every kind of device."""

import json
import secrets
import subprocess
import threading
import time

import pytest
from device_users import CHALLENGE_SUITE, COUNTER_SUITE, HOST_SUITE, TIME_SUITE, User, Users, accepted, expect_refused
from holdfast_peer import cbor, oath, session
from holdfast_peer.activation import Activation, password_question, seal_question
from holdfast_peer.refusal import Refused
from holdfast_peer.session import COSE

one_line = pytest.mark.only_on("linux", because="a line has one prover at a time")
own_policy = pytest.mark.only_on("linux", "bridge", because="an image gets its policy when it is made")
owners = pytest.mark.only_on("linux", because="it is about the owner's command line, which is the same for an image")
# For a program's wait for the device, and for all that it does, on a busy machine.
PATIENCE, PROCESS_SECONDS = ("--timeout", "60"), 300


@pytest.fixture
def users(device):
    return Users(device)


# One-time passwords


def test_a_password_from_a_counter_is_accepted_once_in_its_window_and_none_before_it(users):
    user = users.hotp_user()
    user.expect("otpRejected", "configure", otp=user.hotp(10))
    user.expect("accepted", "configure", otp=user.hotp(9))
    for counter in (9, 0, 8):
        user.expect("otpRejected", "configure", otp=user.hotp(counter))
    user.expect("accepted", "configure", otp=user.hotp(10))


def test_a_password_from_the_time_is_accepted_once(users):
    user = users.provision()
    code = user.totp()
    user.expect("accepted", "configure", otp=code)
    user.expect("otpRejected", "configure", otp=code)
    user.expect("otpRejected", "configure", otp=user.totp(0))
    user.expect("otpRejected", "configure", otp=user.totp(-4))


def test_two_passwords_in_a_row_resynchronise_a_counter_and_the_pair_is_good_once(users):
    user = users.hotp_user()
    user.expect("otpRejected", "configure", otp=user.hotp(60))
    user.expect("otpRejected", "configure", otp=user.hotp(60))
    user.expect("accepted", "configure", otp=user.hotp(61))
    user.expect("otpRejected", "configure", otp=user.hotp(60))
    user.expect("otpRejected", "configure", otp=user.hotp(61))
    user.expect("accepted", "configure", otp=user.hotp(62))


def test_a_code_that_is_missing_another_user_s_or_nobody_s(device, users):
    user, other = users.hotp_user(), users.hotp_user()
    assert user.expect("factorMissing", "configure").result.get("missing") == session.OTP, "missing factors"
    user.expect("factorMissing", "configure", seal=user.seal("configure"))
    user.expect("otpRejected", "configure", otp=other.hotp(0))
    user.expect("otpRejected", "configure", otp=user.hotp(0), name="nobody at all")
    user.expect("commandRefused", "configure", otp=user.hotp(0), grant=device.grant(COSE, user=other.name))
    user.expect("accepted", "configure", otp=user.hotp(0), grant=device.grant(COSE, user=user.name))
    user.expect("accepted", "unlock", otp="000000", seal="0", name="nobody at all")


def test_five_wrong_passwords_lock_a_user_out_for_all_commands_with_codes_until_the_owners_code(users):
    user = users.hotp_user()
    for count in range(1, 6):
        outcome = user.expect("otpRejected", "configure", otp="0000000000")
        assert users.state(user)["failures"] == count, "failures"
    assert outcome.result.get("retryAfter") == 30, "seconds to wait"
    waiting = user.expect("lockedOut", "configure", otp=user.hotp(0)).result["retryAfter"]
    assert 0 < waiting <= 30, f"{waiting} s to wait"
    user.expect("lockedOut", "open-safe", seal=user.seal("open-safe"))
    user.expect("accepted", "unlock")
    code = users.code("unlock", user.name)
    expect_refused("otpRejected", users.activate, code)
    users.unlock(code)
    user.expect("accepted", "configure", otp=user.hotp(0))
    expect_refused("otpRejected", users.unlock, code)
    assert users.state(user)["failures"] == 0, "failures"


def test_a_lockout_a_failure_and_a_used_password_survive_sigkill(device, users):
    user, other = users.hotp_user(), users.hotp_user()
    for _ in range(5):
        user.expect("otpRejected", "configure", otp="0")
    other.expect("accepted", "configure", otp=other.hotp(0))
    other.expect("otpRejected", "configure", otp="0")
    device.restart()
    user.expect("lockedOut", "configure", otp=user.hotp(0))
    other.expect("otpRejected", "configure", otp=other.hotp(0))
    assert users.state(other)["failures"] == 2, "failures"
    assert device.owner("audit", "--verify").returncode == 0, "exit status of audit --verify"


def answer(user, code, grant, prover, statuses):
    statuses.append(user.ask("configure", otp=code, prover=prover, grant=grant).status)


@one_line
def test_of_twenty_connections_with_one_password_exactly_one_is_accepted(device, users):
    for make in (lambda user: user.hotp(0), lambda user: user.totp()):
        user = users.hotp_user() if make(User(device, "", b"0")) == oath.hotp(b"0", 0) else users.provision()
        code, grant, statuses = make(user), device.grant(COSE), []
        provers = [device.connect() for _ in range(20)]
        for prover in provers:
            prover.next_m1()
        threads = [threading.Thread(target=answer, args=(user, code, grant, prover, statuses)) for prover in provers]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
        for prover in provers:
            prover.connection.close()
        names = sorted(session.NAMES[status] for status in statuses)
        assert (len(names), names.count("accepted")) == (20, 1), f"answers {names}"
        assert set(names) <= {"accepted", "otpRejected", "lockedOut"}, f"answers {names}"


# Seals


def test_a_seal_is_good_once_over_exactly_the_command_and_its_parameters(users):
    user = users.hotp_user()
    seal = user.seal("open-safe", "7", "now", counter=0)
    for parameters in (("7",), ("now", "7"), ("7", "now", ""), ("7now",), ("8", "now"), ()):
        user.expect("sealRejected", "open-safe", *parameters, seal=seal)
        users.unlock(users.code("unlock", user.name))
    user.expect("sealRejected", "open-safe", "7", "now", seal=user.seal("unlock", "7", "now", counter=0))
    user.expect("accepted", "open-safe", "7", "now", seal=seal)
    user.expect("sealRejected", "open-safe", "7", "now", seal=seal)
    user.expect("accepted", "open-safe", seal=user.seal("open-safe", counter=1))


def test_a_seal_by_the_time_is_good_once_and_parameters_under_a_seal_have_sixteen_characters(users):
    user = users.provision(otp=False)

    def seal(*parameters):
        return oath.ocra(
            TIME_SUITE, user.seal_secret, seal_question("open-safe", parameters), time=int(time.time()) // 60
        )

    user.expect("commandRefused", "open-safe", "12345678901234567", seal=seal("12345678901234567"))
    first = seal("ä" * 16)
    user.expect("accepted", "open-safe", "ä" * 16, seal=first)
    user.expect("sealRejected", "open-safe", "ä" * 16, seal=first)
    user.expect("otpRejected", "configure", otp="000000")


def test_a_seal_over_the_devices_challenge_and_the_host_code_that_came_with_it(device, users):
    code = users.code("add", "ann", "--otp", "none", "--seal", CHALLENGE_SUITE)
    activation, grant = users.activate(code)
    assert grant["methods"] == {2: [3, CHALLENGE_SUITE]}, "methods"
    user = User(device, "ann", seal=activation.seal, host=activation.host)

    def challenge():
        ours = secrets.token_hex(8)
        theirs, host_code = user.expect("accepted", "host-code", "ann", ours).result["result"].decode().split(" ")
        assert host_code == oath.ocra(HOST_SUITE, user.host_secret, ours + theirs), "host code"
        return theirs

    def seal(theirs):
        return oath.ocra(CHALLENGE_SUITE, user.seal_secret, theirs + seal_question("open-safe", ("7",)))

    user.expect("sealRejected", "open-safe", "7", seal=seal("0" * 16))
    first = seal(challenge())
    user.expect("accepted", "open-safe", "7", seal=first)
    user.expect("sealRejected", "open-safe", "7", seal=first)
    pending = challenge()
    refused = user.expect("busy", "host-code", "ann", secrets.token_hex(8))
    assert refused.result["result"] == b"challengePending", "why"
    user.expect("accepted", "open-safe", "7", seal=seal(pending))
    pending = challenge()
    user.expect("sealRejected", "open-safe", "8", seal=seal(pending))
    user.expect("sealRejected", "open-safe", "7", seal=seal(pending))
    user.expect("accepted", "open-safe", "7", seal=seal(challenge()))
    for wrong in ("", "0" * 15, "g" * 16, "0" * 17):
        user.expect("internal", "host-code", "ann", wrong)
    assert user.expect("accepted", "host-code", "nobody", "0" * 16).result["result"] == b"", "answer for nobody"


@owners
@pytest.mark.parametrize(
    "suite", ["OCRA-1:HOTP-SHA256-8:QH64", "OCRA-1:HOTP-SHA1-6:QN08", "OCRA-1:HOTP-SHA512-10:C-QA16"]
)
def test_a_password_over_a_challenge_is_good_on_the_connection_that_got_it(device, users, suite):
    name = f"bound {suite[-4:]}"
    activation, grant = users.activate(users.code("add", name, "--otp", suite, "--seal", "none"))
    assert grant["methods"] == {1: [3, suite]}, "methods"
    user = User(device, name, otp=activation.otp, host=activation.host)
    here, elsewhere = device.connect(), device.connect()

    def challenge(prover):
        ours = secrets.token_hex(8)
        said = user.expect("accepted", "host-code", name, ours, prover=prover).result["result"].decode()
        theirs, host_code = said.split(" ")
        assert host_code == oath.ocra(HOST_SUITE, user.host_secret, ours + theirs), "host code"
        return theirs

    def password(theirs, counter):
        position = counter if "C-" in suite else None
        return oath.ocra(suite, user.otp_secret, password_question(suite, theirs), counter=position)

    first = password(challenge(here), 0)
    refused = user.expect("otpRejected", "configure", otp=first, prover=elsewhere)
    assert refused.result["result"] == b"noChallenge", "why"
    user.expect("accepted", "configure", otp=first, prover=here)
    user.expect("otpRejected", "configure", otp=first, prover=here)
    assert users.state(user)["failures"] == 0, "a password without its challenge is not compared"
    user.expect("accepted", "configure", otp=password(challenge(elsewhere), 1), prover=elsewhere)
    user.expect("otpRejected", "configure", otp=password("0" * 16, 2), prover=here)
    for prover in (here, elsewhere):
        prover.connection.close()


# Activation


def test_an_activation_gives_both_ends_the_same_secrets(device, users):
    code = users.code("add", "kim", "--otp", "hotp", "--algorithm", "SHA512", "--digits", "8", "--seal", COUNTER_SUITE)
    activation, grant = users.activate(code)
    assert (grant["user"], grant["length"]) == ("kim", 16), "user and length"
    assert grant["methods"] == {1: [1, 3, 8], 2: [3, COUNTER_SUITE]}, "methods"
    assert abs(grant["time"] - time.time()) < 100, "the device's time is wrong"
    user = User(device, "kim", activation.otp, activation.seal, activation.host)
    user.expect("accepted", "configure", otp=oath.hotp(activation.otp, 0, 8, "SHA512"))
    user.expect("accepted", "open-safe", "1", seal=user.seal("open-safe", "1"))
    expect_refused("otpRejected", users.activate, code)


def test_an_activation_by_lower_case_and_look_alike_letters_a_code_of_the_user_before_is_void(device, users):
    first = users.code("add", "lou")
    second = users.code("add", "lou")
    expect_refused("otpRejected", users.activate, first)
    users.activate(second.lower().replace("0", "o").replace("1", "l").replace("-", " "))
    assert device.owner("user", "add", "lou").returncode == 1, "exit status of adding one who is there"
    third = users.code("add", "lou", "--replace")
    users.activate(third)


def test_an_activation_that_is_changed_out_of_order_or_replayed_makes_nobody_a_user(device, users):
    code, stale = users.code("add", "max"), prover_round(device)
    prover = device.connect()
    activation = Activation(prover.next_m1(), code)
    opening = activation.opening()
    expect_refused("otpRejected", lambda: accepted(prover.exchange(opening[:-1] + bytes([opening[-1] ^ 1]))))
    prover.next_m1()
    expect_refused("otpRejected", lambda: accepted(prover.exchange(opening)))
    again = Activation(prover.next_m1(), code)
    again.take(accepted(prover.exchange(again.opening())))
    prover.connection.send(stale)
    expect_refused("challengeExpired", lambda: accepted(prover.connection.receive()))
    prover.next_m1()
    expect_refused("challengeExpired", lambda: accepted(prover.exchange(again.confirmation())))
    last = Activation(prover.next_m1(), code)
    last.take(accepted(prover.exchange(last.opening())))
    wrong = cbor.encode([23, secrets.token_bytes(32)])
    prover.connection.send(wrong)
    expect_refused("otpRejected", lambda: accepted(prover.connection.receive()))
    assert "max" not in [each["user"] for each in users.owned("list")["users"]], "max is a user"
    users.activate(code)


def prover_round(device):
    """An M2 to some other M1."""
    other = device.connect()
    with other.connection:
        return other.attempt(device.grant(COSE)).message()


@one_line
def test_of_twenty_connections_with_one_activation_code_exactly_one_is_activated(device, users):
    code, outcomes = users.code("add", "noa", "--otp", "hotp"), []

    def run():
        try:
            outcomes.append(users.activate(code)[0].otp)
        except Refused as refused:
            outcomes.append(str(refused))

    threads = [threading.Thread(target=run) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    winners = [each for each in outcomes if isinstance(each, bytes)]
    assert (len(outcomes), len(winners)) == (20, 1), f"outcomes {outcomes}"
    User(device, "noa", winners[0]).expect("accepted", "configure", otp=oath.hotp(winners[0], 0))


def test_a_user_who_is_removed_has_no_codes_any_more_nor_has_a_code_that_waits(device, users):
    user = users.hotp_user()
    user.expect("accepted", "configure", otp=user.hotp())
    waiting = users.code("add", user.name, "--replace")
    users.owned("remove", user.name)
    user.expect("otpRejected", "configure", otp=user.hotp())
    expect_refused("otpRejected", users.activate, waiting)
    assert device.owner("user", "unlock", user.name).returncode == 1, "exit status of unlocking nobody"


def test_a_prover_bound_to_another_user_cannot_lock_a_user_out_through_right_seals_or_watch_that_user(device, users):
    """The attack: before each of bob's seals, mallory asks for a new challenge in bob's name."""
    activation, _ = users.activate(users.code("add", "bob", "--otp", "none", "--seal", CHALLENGE_SUITE))
    bob, mallory = User(device, "bob", seal=activation.seal, host=activation.host), User(device, "mallory")
    bound = device.grant(COSE, user="mallory", commands=["host-code", "user-sync"])
    shared = device.grant(COSE, commands=["host-code"])
    for number in range(8):
        answer = bob.expect("accepted", "host-code", "bob", secrets.token_hex(8)).result["result"].decode()
        for command, *parameters in (("host-code", "bob", secrets.token_hex(8)), ("user-sync", "bob")):
            refused = mallory.expect("commandRefused", command, *parameters, grant=bound)
            assert refused.result["result"] == b"anotherUser", "why"
        # A shared terminal's token may name bob, and still does not replace what he is about to answer.
        late = mallory.expect("busy", "host-code", "bob", secrets.token_hex(8), grant=shared)
        assert late.result["result"] == b"challengePending", "why"
        seal = oath.ocra(
            CHALLENGE_SUITE, bob.seal_secret, answer.split(" ")[0] + seal_question("open-safe", (str(number),))
        )
        bob.expect("accepted", "open-safe", str(number), seal=seal)
    mallory.expect("accepted", "host-code", "mallory", secrets.token_hex(8), grant=bound)
    entries = json.loads(device.owner("audit", "--json", "--last", "40").stdout)["entries"]
    named = [entry.get("user") for entry in entries if entry.get("command") == "host-code"]
    assert named[-9:] == ["bob"] * 8 + ["mallory"], "the users whom the audit log names"


# Synchronising, and the prover


def test_user_sync_tells_where_a_counter_and_a_clock_are(device, users):
    user = users.hotp_user()
    user.expect("accepted", "configure", otp=user.hotp(4))
    user.expect("accepted", "open-safe", seal=user.seal("open-safe", counter=2))
    now, otp, seal = cbor.decode(user.expect("accepted", "user-sync", user.name).result["result"])
    assert (otp, seal) == (5, 3), "next positions"
    assert abs(now - time.time()) < 100, "the device's time is wrong"
    assert user.expect("accepted", "user-sync", "nobody").result["result"] == b"", "answer for nobody"
    user.expect("internal", "user-sync")


@own_policy
def test_holdfast_prove_gives_a_password_from_standard_input_and_a_seal_from_a_file(device, users):
    run = device.command_line
    user = users.hotp_user()
    service, descriptor = device.service()
    state = device.folder / "state"
    run.succeed("enroll", "--device", descriptor, "--service", service, "--state", state)

    def prove(command, *options, line=""):
        where = ("--connect", device.endpoint, *PATIENCE, "--state", str(state))
        return subprocess.run(
            [run.path, "prove", *where, "--command", command, *options],
            input=line.encode(),
            env=run.environment,
            cwd=device.folder,
            timeout=PROCESS_SECONDS,
            capture_output=True,
            check=False,
        )

    policy = json.loads((device.device_folder / "policy.json").read_text())
    policy["commands"]["configure"]["factors"] = ["integrity", "device", "otp", "seal"]
    (device.device_folder / "policy.json").write_text(json.dumps(policy))
    try:
        code, seal = user.hotp(), user.seal("configure", "a", "b")
        file = device.folder / "seal"
        file.write_text(f"{seal[:4]} {seal[4:]}\n")
        arguments = ["--user", user.name, "--otp", "-", "--seal", str(file), "--parameter", "a", "--parameter", "b"]
        done = prove("configure", *arguments, line=f"{code[:3]} {code[3:]}\n")
        assert done.returncode == 0, f"exit status ({done.stderr.decode()[-200:]})"
        done = prove("configure", *arguments, line=f"{code}\n")
        assert done.returncode == 1, "exit status of the same codes again"
        assert b"code" in done.stderr and code.encode() not in done.stdout + done.stderr, "what is said of it"
        for line, status in (("", 2), ("12a456\n", 2), ("12345678901234567\n", 2)):
            assert prove("configure", *arguments, line=line).returncode == status, f"exit status for {line!r}"
        assert prove("configure", "--otp", "-", line="1\n").returncode == 64, "exit status without a user"
        assert prove("configure", "--user", "x").returncode == 64, "exit status without a code"
        assert users.state(user)["failures"] == 1, "failures"
    finally:
        policy["commands"]["configure"]["factors"] = ["integrity", "device", "otp"]
        (device.device_folder / "policy.json").write_text(json.dumps(policy))


@owners
def test_an_owner_locks_a_user_who_sees_it_and_is_synchronised_after_an_accepted_password(device, users):
    run, keys, file = device.command_line, device.folder / "lockable", device.folder / "code"
    at = ("--connect", device.endpoint, *PATIENCE)
    code = users.code("add", "lia", "--otp", "hotp")
    activated = subprocess.run(
        [run.path, "otp", "activate", *at, "--code", "-", "--no-pin", "--authenticator", keys],
        input=code.encode(),
        env=run.environment,
        timeout=PROCESS_SECONDS,
        capture_output=True,
    )
    assert activated.returncode == 0, activated.stderr
    state = device.folder / "lockers-state"
    service, descriptor = device.service("lockers-service")
    run.succeed("enroll", "--device", descriptor, "--service", service, "--state", state)
    policy_file = device.device_folder / "policy.json"
    before = policy_file.read_text()
    policy = json.loads(before)
    policy["commands"]["user-state"] = {"factors": ["device"]}

    def holdfast(*arguments):
        return subprocess.run([run.path, *arguments], env=run.environment, timeout=PROCESS_SECONDS, capture_output=True)

    def prove(*options):
        file.write_bytes(holdfast("otp", "--authenticator", keys).stdout)
        common = (*at, "--state", state, "--command", "configure", "--user", "lia")
        return holdfast("prove", *common, "--otp", file, *options)

    def told(*options):
        asked = holdfast("otp", "user-state", *at, "--state", state, "--json", *options)
        assert asked.returncode == 0, asked.stderr
        return json.loads(asked.stdout)

    def advice():
        said = holdfast("otp", "should-sync", "--authenticator", keys, "--json")
        return json.loads(said.stdout)["records"][0]

    try:
        refused = holdfast("otp", "user-state", *at, "--state", state, "--json", "--user", "lia")
        assert refused.returncode == 1 and "user-state" in json.loads(refused.stdout)["hint"], (
            "the policy does not name it"
        )
        policy_file.write_text(json.dumps(policy))
        assert told("--user", "lia") == {"user": "lia", "locked": False, "failures": 0, "seconds": 0}
        assert holdfast("otp", "user-state", *at, "--state", state, "--user", "x").returncode == 1
        for _ in range(5):
            holdfast("otp", "--authenticator", keys)
        assert (advice()["advice"], advice()["unseen_codes"]) == ("advised", 5)
        accepted_round = prove("--authenticator", keys)
        assert accepted_round.returncode == 0, accepted_round.stderr
        assert (advice()["advice"], advice()["unseen_codes"]) == ("not needed", 0), "synchronised after the password"
        assert prove("--authenticator", device.folder / "nowhere").returncode == 0, "accepted, but not synchronised"
        end = int(time.time()) + 1000
        assert device.owner("user", "lock", "lia", "--until", str(end - 5000)).returncode == 64, (
            "a time that has passed"
        )
        assert device.owner("user", "lock", "nobody at all").returncode != 0, "an unknown user"
        assert device.owner("user", "lock", "lia", "--until", str(end)).returncode == 0
        state_of_lia = told("--user", "lia")
        assert state_of_lia["locked"] and 900 < state_of_lia["seconds"] <= 1000, "seconds of the lock"
        refused = prove("--authenticator", keys)
        assert refused.returncode == 1 and b"lockedOut" in refused.stdout, "a right code of a locked user"
        assert device.owner("user", "lock", "lia").returncode == 0
        users.unlock(users.code("unlock", "lia"))
        assert prove().returncode == 0, "after the owner's code"
        events = json.loads(device.owner("audit", "--json", "--last", "40").stdout)["entries"]
        assert [entry["user"] for entry in events if entry["event"] == "user-locked"] == ["lia", "lia"]
    finally:
        policy_file.write_text(before)
        device.owner("user", "remove", "lia")


@owners
def test_a_user_answers_a_request_for_a_seal_by_a_refusal_and_by_a_seal(device, users):
    run, keys = device.command_line, device.folder / "asked"
    state, asked, code = device.folder / "askers-state", device.folder / "request.txt", device.folder / "seal"
    at = ("--connect", device.endpoint, *PATIENCE)
    policy_file = device.device_folder / "policy.json"
    before = policy_file.read_text()
    policy = json.loads(before)
    policy["commands"]["seal-request"] = {"factors": ["device"]}
    policy["commands"]["open-safe"]["text"] = "Open safe {1}"

    def holdfast(*arguments, line=""):
        # Without a controlling terminal, nothing can be asked.
        return subprocess.run(
            [run.path, *arguments],
            env=run.environment,
            input=line.encode(),
            timeout=PROCESS_SECONDS,
            capture_output=True,
            start_new_session=True,
        )

    def prove(*options):
        common = (*at, "--state", state, "--command", "open-safe", "--parameter", "7")
        return holdfast("prove", *common, "--user", "mia", *options)

    def seal(*options, line=""):
        return holdfast("seal", "--authenticator", keys, "--request", *options, line=line)

    def rejected(answer, identifier, status):
        assert answer.returncode == status, answer.stderr
        assert json.loads(answer.stdout.splitlines()[-1])["code"] == identifier, answer.stdout

    service, descriptor = device.service("askers-service")
    run.succeed("enroll", "--device", descriptor, "--service", service, "--state", state)
    owners_code = users.code("add", "mia", "--seal", COUNTER_SUITE)
    connect = (*at, "--code", "-", "--no-pin", "--authenticator", keys)
    assert holdfast("otp", "activate", *connect, line=owners_code).returncode == 0
    try:
        refused = prove("--seal-request")
        assert refused.returncode == 1 and b"must name seal-request" in refused.stderr, (
            "the policy does not name it yet"
        )
        policy_file.write_text(json.dumps(policy))
        for options in (("--qr",), ("--seal-request", "--qr", "--json"), ("--seal-request", "--seal", "-")):
            assert prove(*options).returncode == 64, options
        written = prove("--seal-request", "--out", asked)
        assert written.returncode == 0, written.stderr
        text = asked.read_text()
        assert text.startswith("holdfast-seal:1?d=") and "&u=mia&c=open-safe&p=7&i=" in text
        assert b"less than a minute ago" in prove("--seal-request").stderr, "one request a minute"

        assert seal(asked).returncode == 64, "no terminal to ask"
        assert seal(asked, "--yes", "--reject").returncode == 64
        assert seal(asked, "--yes", "--user", "mia").returncode == 64
        rejected(seal("-", "--yes", "--json", line=text.replace("p=7", "p=8")), "seal-request-not-authentic", 2)
        rejected(seal("-", "--yes", "--json", line=text[:-9]), "seal-request-malformed", 2)
        rejected(seal("-", "--yes", "--json", line="\x89PNG\r\n"), "seal-request-malformed", 2)
        asked_of_another = text.replace("u=mia", "u=lea")
        rejected(seal("-", "--yes", "--json", line=asked_of_another), "seal-request-foreign", 1)
        asked_large = device.folder / "picture.png"
        asked_large.write_bytes(b"\x89PNG" + bytes(10_000))
        rejected(seal(asked_large, "--yes", "--json"), "seal-request-malformed", 2)

        refusal = json.loads(seal(asked, "--reject", "--json").stdout)
        assert (refusal["rejected"], refusal["text"], refusal["parameters"]) == (True, "Open safe 7", ["7"])
        code.write_text(refusal["seal"])
        refused = prove("--seal", code, "--json")
        told = json.loads(refused.stdout)
        assert refused.returncode == 1 and told["status"] == "sealRejected" and told["refusal_recorded"], told
        approval = seal("-", "--yes", line=text)
        assert b"Open safe 7" in approval.stderr and approval.returncode == 0, approval.stderr
        code.write_bytes(approval.stdout)
        accepted_round = prove("--seal", code)
        assert accepted_round.returncode == 0, accepted_round.stderr
        assert b"was accepted before" in prove("--seal", code).stderr, "why a used seal is rejected"
        events = json.loads(device.owner("audit", "--json", "--last", "40").stdout)["entries"]
        assert "refused-by-user" in [entry.get("reason") for entry in events]
    finally:
        policy_file.write_text(before)
        device.owner("user", "remove", "mia")


@owners
def test_a_rule_on_parameters_refuses_some_and_asks_for_a_password_above_a_value(device, users):
    user = users.hotp_user()
    policy_file = device.device_folder / "policy.json"
    before = policy_file.read_text()
    policy = json.loads(before)
    policy["commands"]["configure"] = {
        "factors": ["device"],
        "parameters": [{"one_of": ["left", "right"]}, {"range": [1, 500]}],
        "step_up": [{"above": {"parameter": 2, "value": 100}, "factors": ["otp"]}],
    }
    policy_file.write_text(json.dumps(policy))
    try:
        user.expect("accepted", "configure", "left", "100")
        for wrong in (("up", "1"), ("left", "501"), ("left", "0100"), ("left",), ("left", "1", "1"), ()):
            assert user.expect("commandRefused", "configure", *wrong).result["result"] == b"notInPolicy", wrong
        missing = user.expect("factorMissing", "configure", "right", "101").result["missing"]
        assert missing == session.OTP, "the factors that are missing"
        user.expect("accepted", "configure", "right", "101", otp=user.hotp(0))
        user.expect("otpRejected", "configure", "right", "101", otp=user.hotp(0))
        shown = json.loads(device.owner("policy").stdout)["commands"]["configure"]
        assert shown["step_up"] == policy["commands"]["configure"]["step_up"], "the policy that is shown"
        policy["commands"]["configure"]["step_up"][0]["factors"] = []
        policy_file.write_text(json.dumps(policy))
        user.expect("commandRefused", "unlock")
        assert b"step_up" in device.owner("policy").stderr, "the mistake that is shown"
    finally:
        policy_file.write_text(before)


def test_holdfast_otp_activate_leaves_records_that_are_there_alone_and_the_code_good(device, users):
    run = device.command_line
    folder = device.folder / "keys"

    def activate(code, *options):
        return subprocess.run(
            [
                run.path,
                "otp",
                "activate",
                "--connect",
                device.endpoint,
                *PATIENCE,
                "--code",
                "-",
                "--no-pin",
                "--authenticator",
                folder,
                *options,
            ],
            input=code.encode() + b"\n",
            env=run.environment,
            cwd=device.folder,
            timeout=PROCESS_SECONDS,
            capture_output=True,
            check=False,
        )

    assert activate(users.code("add", "yves")).returncode == 0, "exit status"
    code = users.code("add", "yves", "--replace")
    done = activate(code)
    assert done.returncode == 1, "exit status beside records of the same user"
    assert b"--replace" in done.stderr and code.encode() not in done.stderr, "what is said of it"
    assert activate(code, "--replace").returncode == 0, "exit status with --replace"
    device.owner("user", "remove", "yves")


@owners
def test_a_demand_a_spare_authenticator_and_a_forgotten_pin(device, users):
    run, folder = device.command_line, device.folder
    keys, spares, pin = folder / "demanded", folder / "spares", folder / "pin"

    def holdfast(*arguments, code, status=0):
        connected = ("--connect", device.endpoint, *PATIENCE, "--code", "-")
        done = subprocess.run(
            [run.path, *arguments, *connected],
            input=code.encode(),
            env=run.environment,
            timeout=PROCESS_SECONDS,
            capture_output=True,
            check=False,
        )
        assert done.returncode == status, done.stderr
        return done

    def listed(name):
        listing = json.loads(device.owner("user", "list", "--json").stdout)["users"]
        return next(entry for entry in listing if entry["user"] == name)

    try:
        code = users.code("add", "dora", "--otp", "hotp", "--demand-pin-length", "6")
        pin.write_text("4829")
        activate = ("otp", "activate", "--authenticator", keys)
        for weak in (("--no-pin",), ("--new-pin-file", pin)):
            refused = holdfast(*activate, *weak, code=code, status=1)
            assert b"a PIN of at least 6 digits" in refused.stderr, refused.stderr
        pin.write_text("482915")
        holdfast(*activate, "--new-pin-file", pin, code=code)
        assert (listed("dora")["demand_pin_length"], listed("dora")["demand_key"]) == (6, False), "the demand"
        records = json.loads(run.succeed("otp", "list", "--authenticator", keys, "--json"))["records"]
        assert [record["demand_pin_length"] for record in records if record["purpose"] == "otp"] == [6]

        spare = users.owned("add", "dora", "--spare")
        assert spare["user"] == "dora#2", "the name of the spare"
        holdfast("otp", "activate", "--authenticator", spares, "--no-pin", code=spare["code"])
        assert listed("dora#2")["spare_of"] == "dora"
        assert device.owner("user", "add", "eve#2").returncode == 64, "a new name with #"

        pin.write_text("736204")
        unlock = ("otp", "unlock", "--authenticator", keys, "--new-pin-file", pin)
        holdfast(*unlock, code=users.code("unlock", "dora", "--new-pin"))
        assert holdfast("otp", "unlock", "--no-pin", code=code, status=64).stderr, "a PIN without an authenticator"
        assert listed("dora")["demand_pin_length"] == 6, "the demand stays"
        assert listed("dora#2")["spare_of"] == "dora", "the spare stays"
    finally:
        device.owner("user", "remove", "dora")
    listing = json.loads(device.owner("user", "list", "--json").stdout)["users"]
    assert not [entry for entry in listing if entry["user"].startswith("dora")], "removed with the user"


@owners
def test_secrets_of_files_are_refused_where_they_are_none_and_nothing_is_changed(device, users):
    def listed():
        # A lockout runs on meanwhile.
        return [{**user, "locked_seconds": 0} for user in users.owned("list")["users"]]

    before = listed()
    file = device.folder / "secret"
    for text, options in (
        ("", ()),
        ("zz", ()),
        ("1", ()),
        ("00" * 65, ()),
        ("MZXW6", ("--format", "base32", "--digits", "3")),
        ("MZXW1", ("--format", "base32")),
    ):
        file.write_text(text + "\n")
        done = device.owner("user", "add", "zoe", "--otp-secret", file, *options)
        assert done.returncode in (2, 64), f"exit status {done.returncode} for {text[:8]!r} {options}"
        assert len(text) < 5 or text.encode() not in done.stdout + done.stderr, "the secret is shown"
    file.write_text("00" * 20)
    for options in (("--otp", "none"), ("--seal", "none", "--seal-secret", file)):
        done = device.owner("user", "add", "zoe", "--otp-secret", file, *options)
        assert done.returncode == 64, f"exit status {done.returncode} for a secret that {options} leaves without use"
    for options in (
        ("--counter", "1"),
        ("--otp", "totp", "--counter", "0"),
        ("--seal-secret", "-", "--otp-secret", "-"),
    ):
        done = device.owner("user", "add", "zoe", "--otp-secret", file, *options)
        assert done.returncode == 64, f"exit status for {options}"
    assert device.owner("user", "add", "zoe", "--counter", "1").returncode == 64, (
        "exit status for a counter without a secret"
    )
    for name in ("", "x" * 33, "a\nb", "a\u202eb", "a\u009bb"):
        assert device.owner("user", "add", name, "--otp-secret", file).returncode == 64, (
            f"exit status for the name {name!r}"
        )
    assert listed() == before, "users"


@owners
def test_a_pin_is_checked_by_the_device_before_it_is_shared_or_changed(device, users):
    run, keys, state = device.command_line, device.folder / "shared", device.folder / "sharers-state"
    service, descriptor = device.service("sharers-service")
    run.succeed("enroll", "--device", descriptor, "--service", service, "--state", state)
    right, wrong, new = (device.folder / f"pin-{name}" for name in ("right", "wrong", "new"))
    for file, pin in ((right, "482915"), (wrong, "482916"), (new, "736204")):
        file.write_text(pin + "\n")
    at, where = ("--connect", device.endpoint, *PATIENCE), ("--authenticator", keys)

    def holdfast(*arguments, line="", status=0):
        done = subprocess.run(
            [run.path, *arguments],
            env=run.environment,
            input=line.encode(),
            timeout=PROCESS_SECONDS,
            capture_output=True,
        )
        assert done.returncode == status, done.stdout + done.stderr
        return done

    def otp(user, pin):
        return holdfast("otp", "code", *where, "--user", user, "--pin-file", pin).stdout.decode().strip()

    def failures(name):
        return next(each for each in users.owned("list")["users"] if each["user"] == name)["failures"]

    def records():
        return [
            (each["user"], each["index"])
            for each in json.loads(holdfast("otp", "list", *where, "--json").stdout)["records"]
        ]

    code = users.code("add", "una", "--otp", "hotp")
    holdfast("otp", "activate", *at, *where, "--code", "-", "--new-pin-file", right, line=code)
    before = records()
    code = users.code("add", "uno", "--otp", "OCRA-1:HOTP-SHA256-8:QH64", "--seal", "none")
    activate = ("otp", "activate", *at, *where, "--code", "-", "--same-pin-as", "una", "--state", state)
    for options in (
        ("--same-pin-as", "una"),
        ("--state", state),
        ("--pin-file", right),
        ("--check-command", "configure"),
    ):
        holdfast("otp", "activate", *at, *where, "--code", "-", *options, line=code, status=64)
    holdfast(*activate, "--check-command", "configure", "--new-pin-file", new, line=code, status=64)
    said = holdfast(*activate, "--check-command", "unlock", "--pin-file", right, line=code, status=1)
    assert b"checked no PIN" in said.stderr, said.stderr
    holdfast(*activate, "--check-command", "open-safe", "--pin-file", right, line=code, status=1)
    assert failures("una") == 0, "no password was given"
    holdfast(*activate, "--check-command", "configure", "--pin-file", wrong, line=code, status=1)
    assert (failures("una"), records()) == (1, before), "a wrong PIN stores nothing"
    holdfast(*activate, "--check-command", "configure", "--pin-file", right, line=code)
    assert (failures("una"), records()) == (0, [*before, ("uno", 1), ("uno", 3)])

    # The second user's passwords are over a challenge, and made by the command that sends them.
    made = ("prove", *at, "--state", state, "--command", "configure", *where, "--make-otp")
    holdfast(*made, "--user", "uno", "--pin-file", wrong, status=1)
    assert failures("uno") == 1
    holdfast(*made, "--user", "uno", "--pin-file", right)
    holdfast(*made, "--user", "una", "--pin-file", right)
    holdfast(*made, "--pin-file", right, status=64)
    holdfast("prove", *at, "--state", state, "--command", "configure", *where, "--pin-file", right, status=64)
    holdfast("prove", *at, "--state", state, "--command", "configure", "--make-otp", status=64)

    # The same check before a change.
    change = ("otp", "protect", *where, "--user", "una", "--new-pin-file", new)
    checked = (*at, "--state", state, "--check-command", "configure")
    holdfast(*change, "--state", state, "--pin-file", right, status=64)
    holdfast("otp", "protect", *where, "--user", "una", "--confirm", *at, status=64)
    said = holdfast(*change, *checked, "--pin-file", wrong, status=1)
    assert (said.stdout, failures("una")) == (b"", 1), "no undo code is shown"
    assert b"undo code" in holdfast(*change, *checked, "--pin-file", right).stdout
    (device.folder / "code").write_text(otp("una", new))
    holdfast("prove", *at, "--state", state, "--command", "configure", "--user", "una", "--otp", device.folder / "code")

    # And before a key is needed in addition, and no longer.
    holdfast("otp", "protect", *where, "--user", "una", "--confirm")
    key = device.folder / "key"
    key.write_bytes(bytes(range(32)))
    protect = ("otp", "protect", *where, "--user", "una")
    for change, given in ((("--add-key-file", key), ()), (("--remove-keys",), ("--key-file", key))):
        said = holdfast(*protect, *change, *given, *checked, "--pin-file", wrong, status=1)
        assert (said.stdout, failures("una")) == (b"", 1), "no undo code is shown"
        assert b"undo code" in holdfast(*protect, *change, *given, *checked, "--pin-file", new).stdout
        assert failures("una") == 0, "the device has accepted a code of the PIN"
        holdfast(*protect, "--confirm")
    (device.folder / "code").write_text(otp("una", new))
    holdfast("prove", *at, "--state", state, "--command", "configure", "--user", "una", "--otp", device.folder / "code")
