"""A command is carried out once: a peer in the middle between the real `prove` and the real `device serve`, and provers that
share, copy or lose their state folder."""

import json
import shutil
import subprocess
import threading

import pytest
from devices import LinuxDevice
from holdfast_peer import session, transport
from holdfast_peer.prover import Attempt
from holdfast_peer.session import COSE, STATUS

ACCEPTED, DENIED, MALFORMED = 0, 1, 2
LARGEST = 2**53 - 1
TOKEN_UNKNOWN = session.message_3(STATUS["tokenUnknown"], None)


class MiddleMan(threading.Thread):
    """Relays one connection, message by message. `suppress` of the first verdicts are kept, and tokenUnknown is said instead.

    `between` is called after a verdict was kept, before the prover hears anything.
    """

    def __init__(self, device, suppress=1, between=lambda: None):
        super().__init__(daemon=True)
        self.path, self.device, self.suppress, self.between = (
            str(device.folder / "middle.socket"),
            device,
            suppress,
            between,
        )
        self.listener = transport.Listener(self.path, timeout=30)
        self.fault, self.kept, self.passed = None, [], []

    def run(self):
        try:
            with self.listener.accept() as prover:
                line = transport.connect(self.device.socket, 30)
                try:
                    prover.send(line.receive(30))
                    while True:
                        line.send(prover.receive(30))
                        verdict = line.receive(30)
                        if len(self.kept) < self.suppress:
                            self.kept.append(verdict)
                            self.between()
                            # The connection may have ended with the device.
                            line = self._again(line)
                            prover.send(TOKEN_UNKNOWN)
                        else:
                            self.passed.append(verdict)
                            prover.send(verdict)
                        prover.send(line.receive(30))
                finally:
                    line.close()
        except transport.Closed:
            pass
        except Exception as error:  # shown by the check
            self.fault = error
        finally:
            self.listener.close()

    def _again(self, line):
        if self.device.process is not self.device.first_process:
            line.close()
            self.device.first_process = self.device.process
            return transport.connect(self.device.socket, 30)
        return line


class EnrollingDevice(LinuxDevice):
    """A device that trusts the program's own service, too, and provers that it enrolled."""

    def __init__(self, holdfast, folder):
        super().__init__(holdfast, folder)
        self.trusted_service, self.count, self.first_process = None, 0, None

    def prepare(self):
        super().prepare()
        self.trusted_service, _ = self.service()
        self.start()
        self.first_process = self.process

    def enroll(self):
        """A fresh state folder, whose token the device remembers."""
        self.count += 1
        state = self.folder / f"state-{self.count}"
        self.command_line.succeed(
            "enroll", "--device", self.folder / "device.json", "--service", self.trusted_service, "--state", state
        )
        self.prove(state, "lock")
        return state

    def arguments(self, state, command, endpoint=None):
        return (
            "prove",
            "--json",
            "--connect",
            endpoint or self.endpoint,
            "--state",
            state,
            "--command",
            command,
            "--timeout",
            "60",
        )

    def prove(self, state, command, endpoint=None, exit_status=ACCEPTED):
        """What `prove --json` says."""
        done = self.command_line.run(*self.arguments(state, command, endpoint), timeout=120)
        assert done.returncode == exit_status, f"exit status, with {done.stderr[-300:]!r}"
        return json.loads(done.stdout) if done.stdout else None

    def audit(self):
        """Command and status of each round that the audit log has."""
        done = self.command_line.succeed("device", "audit", "--json", *self.device_arguments)
        entries = [json.loads(line) for line in done.splitlines() if line.strip()]
        if len(entries) == 1 and "entries" in entries[0]:
            entries = entries[0]["entries"]
        return [(entry["command"], entry["status"]) for entry in entries if "command" in entry and "status" in entry]

    def count_accepted(self, command):
        return self.audit().count((command, "accepted"))


@pytest.fixture(scope="module")
def device(holdfast, folder):
    device = EnrollingDevice(holdfast, folder)
    try:
        device.prepare()
        yield device
    finally:
        device.close()


def number_file(state):
    """Where the last request number of the only enrolment in a state folder is."""
    files = list(state.rglob("request_number"))
    assert len(files) == 1, "files with a request number"
    return files[0]


def last_number(state):
    return int(number_file(state).read_text())


def set_number(state, number):
    file = number_file(state)
    file.write_text(f"{number}\n")
    file.chmod(0o600)


def test_a_verdict_that_is_held_back_with_tokenunknown_in_its_place_gets_a_command_carried_out_once_and_prove_says_so(
    device,
):
    state = device.enroll()
    before = device.count_accepted("unlock")
    middle = MiddleMan(device)
    middle.start()
    said = device.prove(state, "unlock", f"unix:{middle.path}")
    middle.join(30)
    assert middle.fault is None, f"in the middle: {middle.fault!r}"
    assert (len(middle.kept), len(middle.passed)) == (1, 1), "verdicts that were kept and passed on"
    assert device.count_accepted("unlock") == before + 1, "how often it was carried out"
    assert (said["status"], said["repeated"]) == ("accepted", True), "what prove says"
    assert said["highest_request_number"] == last_number(state), "the highest number"
    honest = device.prove(state, "lock")
    assert (honest["repeated"], "highest_request_number" in honest) == (False, False), "an honest round's"


def test_a_person_reads_that_the_command_was_not_repeated(device):
    state = device.enroll()
    middle = MiddleMan(device)
    middle.start()
    arguments = [a for a in device.arguments(state, "unlock", f"unix:{middle.path}") if a != "--json"]
    done = device.command_line.run(*arguments, timeout=120)
    middle.join(30)
    assert done.returncode == ACCEPTED, "exit status"
    assert b"already carried out by an earlier attempt (the command was not repeated)" in done.stdout, (
        f"it says {done.stdout!r}"
    )


def test_the_same_with_the_device_killed_after_it_has_acted_no_second_time_and_an_outcome_that_was_written_is_known(
    device,
):
    state = device.enroll()
    before = device.count_accepted("unlock")
    middle = MiddleMan(device, between=device.restart)
    middle.start()
    said = device.prove(state, "unlock", f"unix:{middle.path}")
    middle.join(30)
    assert middle.fault is None, f"in the middle: {middle.fault!r}"
    assert (said["status"], said["repeated"]) == ("accepted", True), "what prove says"
    assert device.count_accepted("unlock") == before + 1, "how often it was carried out"


def test_the_same_while_another_process_of_the_same_state_folder_is_served_its_number_is_the_highest_and_nothing_is_known(
    device,
):
    state = device.enroll()
    before = device.count_accepted("unlock"), device.count_accepted("lock")
    middle = MiddleMan(device, between=lambda: device.prove(state, "lock"))
    middle.start()
    said = device.prove(state, "unlock", f"unix:{middle.path}", DENIED)
    middle.join(30)
    assert (said["status"], said["repeated"]) == ("internal", True), "what prove says"
    assert (device.count_accepted("unlock"), device.count_accepted("lock")) == (before[0] + 1, before[1] + 1), "rounds"


def test_eight_processes_with_one_state_folder_never_use_one_number_twice(device):
    state = device.enroll()
    set_number(state, last_number(state) + 10**12)
    first = last_number(state)
    run = device.command_line
    running = [
        subprocess.Popen(
            [run.path, *map(str, device.arguments(state, "status"))],
            env=run.environment,
            cwd=run.folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        for _ in range(8)
    ]
    for process in running:
        output, complaint = process.communicate(timeout=120)
        assert process.returncode == ACCEPTED, f"exit status, with {complaint[-200:]!r}"
        assert json.loads(output)["repeated"] is False, "repeated"
    assert last_number(state) == first + 8, "the last number"


def test_a_prover_whose_clock_went_back_goes_on_from_its_last_number_one_by_one(device):
    state = device.enroll()
    ahead = last_number(state) + 86_400_000_000
    set_number(state, ahead)
    for count in (1, 2, 3):
        assert device.prove(state, "lock")["repeated"] is False, "repeated"
        assert last_number(state) == ahead + count, "the number"


def test_a_prover_whose_folder_is_restored_from_an_older_copy_or_that_lost_its_number_goes_on_by_the_clock(device):
    state = device.enroll()
    copy = device.folder / "older"
    shutil.copytree(state, copy)
    for _ in range(3):
        device.prove(state, "lock")
    newest = last_number(state)
    shutil.rmtree(state)
    shutil.copytree(copy, state)
    shutil.rmtree(copy)
    assert device.prove(state, "unlock")["repeated"] is False, "repeated"
    assert last_number(state) > newest, "the number is not above those before"
    number_file(state).unlink()
    assert device.prove(state, "lock")["repeated"] is False, "repeated, without the file"


def test_a_prover_that_a_copy_of_its_folder_has_overtaken_is_carried_out_once_under_a_number_above_the_copys(device):
    state = device.enroll()
    copy = device.folder / f"{state.name}-copy"
    shutil.copytree(state, copy)
    set_number(copy, last_number(copy) + 10**13)
    device.prove(copy, "lock")
    before = device.count_accepted("unlock")
    said = device.prove(state, "unlock")
    assert (said["status"], said["repeated"]) == ("accepted", False), "what prove says"
    assert device.count_accepted("unlock") == before + 1, "how often it was carried out"
    assert last_number(state) == last_number(copy) + 1, "the number"


def test_eight_processes_with_a_copy_of_the_folder_each_are_all_served_whichever_number_comes_first(device):
    state = device.enroll()
    copies = [device.folder / f"{state.name}-copy-{count}" for count in range(8)]
    for copy in copies:
        shutil.copytree(state, copy)
    before = device.count_accepted("unlock")
    run = device.command_line
    running = [
        subprocess.Popen(
            [run.path, *map(str, device.arguments(copy, "unlock"))],
            env=run.environment,
            cwd=run.folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        for copy in copies
    ]
    for process in running:
        _output, complaint = process.communicate(timeout=120)
        assert process.returncode == ACCEPTED, f"exit status, with {complaint[-200:]!r}"
    assert device.count_accepted("unlock") == before + 8, "how often it was carried out"


def test_a_copy_that_uses_the_same_number_for_another_command_is_refused_and_nothing_is_carried_out(device):
    state = device.enroll()
    copy = device.folder / f"{state.name}-copy"
    shutil.copytree(state, copy)
    ahead = last_number(state) + 10**13
    set_number(state, ahead)
    set_number(copy, ahead)
    device.prove(state, "unlock")
    before = device.count_accepted("lock")
    said = device.prove(copy, "lock", exit_status=DENIED)
    assert (said["status"], said["repeated"]) == ("commandRefused", True), "what prove says"
    assert device.count_accepted("lock") == before, "how often it was carried out"


def test_a_damaged_number_is_replaced_with_a_warning_a_file_of_the_wrong_kind_is_refused_and_the_largest_number_is_the_last(
    device,
):
    state = device.enroll()
    for content in (
        b"",
        b"\n",
        b"x\n",
        b"12",
        b"007\n",
        b"-1\n",
        b" 1\n",
        b"9007199254740992\n",
        b"1" * 100_000,
        b"\x00" * 17,
    ):
        number_file(state).write_bytes(content)
        done = device.command_line.run(*device.arguments(state, "lock"))
        assert done.returncode == ACCEPTED, f"exit status with {content[:20]!r} and {done.stderr[-200:]!r}"
        assert not content or b"damaged" in done.stderr, f"no warning of {content[:20]!r}: {done.stderr!r}"
    file = number_file(state)
    set_number(state, LARGEST - 1)
    assert device.prove(state, "lock")["repeated"] is False, "repeated"
    assert last_number(state) == LARGEST, "the last number there is"
    device.prove(state, "lock", exit_status=MALFORMED)
    file.chmod(0o644)
    assert device.command_line.run(*device.arguments(state, "lock")).returncode != ACCEPTED, (
        "a file open to others is taken"
    )
    file.unlink()
    file.mkdir()
    assert device.command_line.run(*device.arguments(state, "lock")).returncode != ACCEPTED, (
        "a folder is taken for the file"
    )
    file.rmdir()
    file.symlink_to(device.folder / "elsewhere")
    assert device.command_line.run(*device.arguments(state, "lock")).returncode != ACCEPTED, "a link is followed"
    assert not (device.folder / "elsewhere").exists(), "a link is followed"


def test_each_round_of_a_benchmark_has_a_number_of_its_own(device):
    state = device.enroll()
    before = last_number(state)
    done = device.command_line.run(
        "bench", "rounds", "--connect", device.endpoint, "--state", state, "--rounds", "30", timeout=120
    )
    assert done.returncode == ACCEPTED, f"exit status, with {done.stderr[-200:]!r}"
    assert last_number(state) >= before + 31, "the number"


# Numbers as a peer of another make sends them.


def ask(device, grant, number, command="unlock", parameters=None, **changes):
    prover = device.connect()
    with prover.connection:
        outcome = prover.ask(grant, request=session.request(command, parameters, number=number), **changes)
    return outcome.status, (outcome.result or {}).get("highest")


def test_numbers_within_64_below_the_highest_are_accepted_once_each_and_none_below_that_jumps_0_and_2_to_the_53_1_count(
    device,
):
    grant = device.grant(COSE)
    accepted, internal = STATUS["accepted"], STATUS["internal"]
    for number, expected in (
        (0, (accepted, None)),
        (0, (accepted, 0)),
        (100, (accepted, None)),
        (36, (accepted, None)),
        (35, (internal, 100)),
        (36, (internal, 100)),
        (99, (accepted, None)),
        (99, (internal, 100)),
        (100, (accepted, 100)),
        (1000, (accepted, None)),
        (936, (accepted, None)),
        (935, (internal, 1000)),
        (100, (internal, 1000)),
        (LARGEST, (accepted, None)),
        (LARGEST, (accepted, LARGEST)),
        (LARGEST - 64, (accepted, None)),
        (LARGEST - 65, (internal, LARGEST)),
        (None, (accepted, None)),
    ):
        assert ask(device, grant, number) == expected, f"status and highest number after {number}"


def test_a_repetition_costs_no_use_and_survives_a_kill_it_is_looked_at_after_the_version_and_before_the_uses(device):
    grant = device.grant(COSE, maximumUses=1)
    accepted = STATUS["accepted"]
    assert ask(device, grant, 7) == (accepted, None), "the first"
    entries = len(device.audit())
    for _ in range(3):
        assert ask(device, grant, 7) == (accepted, 7), "a repetition"
    assert ask(device, grant, 7, imp=None) == (accepted, 7), "without an integrity proof"
    assert len(device.audit()) == entries, "entries of the audit log"
    assert ask(device, grant, 8) == (STATUS["usesExhausted"], None), "the next"
    device.restart()
    assert ask(device, grant, 7) == (accepted, 7), "after a kill"
    assert ask(device, grant, 7, "lock") == (STATUS["commandRefused"], 7), "another command"
    assert ask(device, grant, 7, parameters=["x"]) == (STATUS["commandRefused"], 7), "other parameters"


def test_connections_that_send_one_request_at_once_get_it_carried_out_once_and_hear_of_its_outcome_or_that_it_is_under_way(
    device,
):
    grant = device.grant(COSE)
    ask(device, grant, 1, "status")
    before = device.count_accepted("unlock")
    provers = [device.connect() for _ in range(16)]
    attempts = [
        Attempt(prover.next_m1(), grant, request=session.request("unlock", number=2), by_reference=True)
        for prover in provers
    ]
    for prover, attempt in zip(provers, attempts):
        prover.connection.send(attempt.message())
    outcomes = [attempt.verify(prover.connection.receive(30)) for prover, attempt in zip(provers, attempts)]
    for prover in provers:
        prover.connection.close()
    firsts = [o for o in outcomes if o.status == STATUS["accepted"] and "highest" not in o.result]
    assert len(firsts) == 1, "rounds that were carried out"
    others = {o.status for o in outcomes if o is not firsts[0]}
    assert others <= {STATUS["accepted"], STATUS["busy"]}, f"the others are told {others}"
    assert device.count_accepted("unlock") == before + 1, "how often it was carried out"
