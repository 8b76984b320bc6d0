#!/usr/bin/python3
"""Checks the models of the ledger (spin) and of the session (Maude), and that breaking a rule of either gives a counterexample.

Prints a line for each search, the time that all of them took, and a last line that counts. The run fails if it takes more than five
minutes of processor time, with which it takes at most five minutes on a machine that does nothing else, even with one processor. How
long it takes on a busy machine makes no difference. docs/model.md says what is modelled.
"""

import argparse
import concurrent.futures
import pathlib
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
# The most processor time of all programs together, and therefore of each one.
PROCESSOR_SECONDS = 300
# The end of a program that waits for something.
SECONDS = 3600

# The searches of the ledger: what they vary, and the constants of ledger.pml.
LEDGER = {
    "two requests of each of two connections, one power cut": "NO_CODES ROUNDS_0=2 ROUNDS_1=2 CUTS=1 FAULTS=0",
    "three requests, one power cut, one failing write": "NO_CODES ROUNDS_0=2 ROUNDS_1=1 CUTS=1 FAULTS=1",
    "three requests, two power cuts": "NO_CODES ROUNDS_0=2 ROUNDS_1=1 CUTS=2 FAULTS=0",
    "three codes, one power cut": "ONLY_CODES FRESH_NUMBERS ROUNDS_0=2 ROUNDS_1=1 CUTS=1 FAULTS=0",
    "three codes, one failing write": "ONLY_CODES FRESH_NUMBERS ROUNDS_0=2 ROUNDS_1=1 CUTS=0 FAULTS=1",
    "two codes of each of two connections": "ONLY_CODES FRESH_NUMBERS NUMBERS=4 MAXIMUM_USES=4 ROUNDS_0=2 ROUNDS_1=2 CUTS=0 FAULTS=0",
    "two requests with or without codes, one power cut, one failing write": "ROUNDS_0=1 ROUNDS_1=1 CUTS=1 FAULTS=1",
    "three requests with or without codes, one power cut": "NUMBERS=2 MAXIMUM_USES=1 TICKS=0 ROUNDS_0=2 ROUNDS_1=1 CUTS=1 FAULTS=0",
}
LEDGER_PROPERTIES = {
    "runsTwice": "a request is carried out at most once",
    "exceedsUses": "no more requests are carried out than max allows",
    "runsUnrecorded": "the actuator acts only on a durable round",
    "answersUnrecorded": "an answer that says accepted or repeated rests on a durable record",
    "answersUntruly": "an answer says accepted only if the command was carried out",
    "withholdsOutcome": "a repetition learns the outcome, unless the power was cut or a write failed",
    "forgets": "no power cut makes the ledger forget what was carried out",
    "tears": "a round is durable as a whole or not at all",
    "takesCodeTwice": "no position of a code is accepted twice",
    "comparesTooMuch": "no more codes are compared than failures and lockouts allow",
    "invalid end state": "no connection waits for ever",
}
REQUESTS = "NO_CODES ROUNDS_0=2 ROUNDS_1=1 CUTS=1 FAULTS=1"
CODES = "ONLY_CODES FRESH_NUMBERS ROUNDS_0=2 ROUNDS_1=1 CUTS=1 FAULTS=0"
FOUR_CODES = "ONLY_CODES FRESH_NUMBERS NUMBERS=4 MAXIMUM_USES=4"
# The situations that the searches must come to, or they would prove nothing.
LEDGER_SITUATIONS = {
    "both connections share a commit": ("REACH_GROUP", REQUESTS),
    "a repetition learns that its request was carried out": ("REACH_REPETITION", REQUESTS),
    "a repetition learns it after a power cut": ("REACH_REPETITION_AFTER_CUT", REQUESTS),
    "a power cut leaves an outcome unknown": ("REACH_UNKNOWN_OUTCOME", REQUESTS),
    "codes of two positions are accepted": ("REACH_ACCEPTED_CODES", CODES),
    "a lockout passes, and a right code is accepted": ("REACH_LOCKOUT_THAT_PASSED", CODES),
}
# The rules that are broken on purpose: the constant, the bounds, and the property that must fail.
LEDGER_BREAKS = {
    "the answer leaves before the commit": ("ANSWERS_BEFORE_COMMIT", REQUESTS, "answersUnrecorded"),
    "the actuator acts before the commit": ("ACTS_BEFORE_COMMIT", REQUESTS, "runsUnrecorded"),
    "a write that joined a group does not wait for it": ("JOINED_DO_NOT_WAIT", REQUESTS, "answersUnrecorded"),
    "the commit is not synchronised": ("NOT_SYNCHRONISED", REQUESTS, "forgets"),
    "each row is written by itself": ("NO_TRANSACTION", REQUESTS, "tears"),
    "a failed write of a group is not undone": ("NO_SAVEPOINT", REQUESTS, "tears"),
    "undoing a write leaves the user's record in memory": (
        "UNDO_LEAVES_MEMORY",
        f"{FOUR_CODES} TICKS=0 ROUNDS_0=3 ROUNDS_1=1 CUTS=0 FAULTS=1",
        "comparesTooMuch",
    ),
    "request numbers are not looked at": ("NO_NUMBERS", REQUESTS, "runsTwice"),
    "a number below the window counts as new": ("BELOW_WINDOW", REQUESTS + " MAXIMUM_USES=3", "runsTwice"),
    "a repetition does not look at the record once more": ("NO_SECOND_READ", REQUESTS, "withholdsOutcome"),
    "the outcome is recorded before the command is carried out": ("OUTCOME_BEFORE_ACTING", REQUESTS, "answersUntruly"),
    "uses are judged outside the transaction": ("JUDGES_OUTSIDE", REQUESTS + " MAXIMUM_USES=1", "exceedsUses"),
    "failures are recorded after comparing": (
        "FAILURE_AFTER_COMPARING",
        f"{FOUR_CODES} TICKS=0 ROUNDS_0=2 ROUNDS_1=2 CUTS=1 FAULTS=0",
        "comparesTooMuch",
    ),
    "an accepted position is not used up": ("POSITION_NOT_KEPT", CODES, "takesCodeTwice"),
    "a compared code is not judged again in its transaction": ("NO_SECOND_LOOK", CODES, "takesCodeTwice"),
}

SESSION_PROPERTIES = {
    "runsUnasked": (
        "network alone",
        "a device carries out only what the honest prover asked of it, command and number",
    ),
    "runsForeignToken": (
        "network alone",
        "a device carries nothing out with a token that the issuer did not make for it",
    ),
    "runsTwice": ("network alone", "a request is carried out at most once"),
    "takesForeignTranscript": ("network alone host", "integrity is accepted only in a round of the measured app"),
    "takesReplay": ("network alone host", "no answer is accepted twice"),
    "believesImpostor": ("network alone", "the prover believes only what the device said in this round"),
    "learnsCommand": ("network alone", "the attacker learns no command of the honest prover"),
    "learnsBaseline": ("network alone", "the attacker learns neither IM nor DM nor jti"),
    "learnsKey": ("alone", "an attacker without device and token learns no MPK"),
}
SESSION_SITUATIONS = {
    "both requests are carried out, and both verdicts believed": "< Z:MsgSet | ran(A, jti(P, A), number(1), L1:Msg) ran(A, jti(P, A), number(2), L2:Msg) "
    "believes(H1:Msg, accepted, N1:Msg) believes(H2:Msg, accepted, N2:Msg) X:Things >",
    "a repetition is answered from the record": "< Z:MsgSet | ran(A, jti(P, A), number(1), L:Msg) judged(jti(P, A), H1:Msg, accepted, N:Msg) "
    "judged(jti(P, A), H2:Msg, accepted, N:Msg) X:Things >",
    "a sealed denial is believed": "< Z:MsgSet | believes(H:Msg, integrityMismatch, N:Msg) X:Things >",
    "the attacker's own prover is served": "< Z:MsgSet | ran(A, jti(Q, A), N:Msg, L:Msg) X:Things >",
}
SESSION_BREAKS = {
    "the nonce is the challenge, without the transcript hash": ("nonceIsChallenge", "host", "takesForeignTranscript"),
    "the nonce is the prover's random": ("nonceIsProverRandom", "host", "takesForeignTranscript"),
    "no integrity proof is demanded": ("noIntegrityProof", "host", "takesForeignTranscript"),
    "the command is not under the seal": ("plainRequest", "network", "runsUnasked"),
    "both directions have one key": ("oneKey", "network", "learnsCommand"),
    "the session keys do not depend on DM": ("keysWithoutDM", "network", "learnsCommand"),
    "the session keys do not depend on the transcript": ("keysWithoutTranscript", "network", "learnsCommand"),
    "the prover repeats its random": ("constantRandom", "network", "learnsCommand"),
    "the device repeats its challenge": ("constantChallenge", "network", "takesReplay"),
    "requests have no number": ("noNumber", "network", "runsTwice"),
    "the device does not check the audience": ("noAudience", "network", "runsForeignToken"),
    "one baseline is used for two devices": ("sharedBaseline", "network", "runsUnasked"),
    "the device does not check the signature": ("anySignature", "network", "runsForeignToken"),
    "the token is not encrypted": ("plainToken", "network", "learnsBaseline"),
    "the status is not authenticated": ("statusNotBound", "network", "believesImpostor"),
    "the prover believes a verdict without a seal": ("unsealedVerdict", "network", "believesImpostor"),
}


class Result:
    """The outcome of one line: its text, whether it is as it should be, and what a person needs to see if it is not."""

    def __init__(self, text, is_good, note="", trace=""):
        self.text, self.is_good, self.note, self.trace = text, is_good, note, trace


def command(words, folder):
    """Runs a program, and returns its output; a program that takes too long fails."""
    words = ["prlimit", f"--cpu={PROCESSOR_SECONDS}", *words]
    try:
        done = subprocess.run(words, cwd=folder, capture_output=True, text=True, timeout=SECONDS)
    except subprocess.TimeoutExpired:
        return f"took more than {SECONDS} seconds"
    if done.returncode == -signal.SIGXCPU:
        return f"took more than {PROCESSOR_SECONDS} seconds of processor time"
    return done.stdout + done.stderr


def processor_seconds():
    """The time that processors have worked for this program and for those that it has run."""
    usages = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def spin(constants, folder):
    """Searches all states of the ledger. Returns the property that fails (None for none), the states, the depth, and the output."""
    folder.mkdir()
    options = [f"-D{name}" for name in constants.split()]
    output = command(["spin", *options, "-a", str(HERE / "ledger.pml")], folder)
    output += command(["gcc", "-O1", "-w", "-DSAFETY", "-DCOLLAPSE", "-DMEMLIM=3000", "-o", "pan", "pan.c"], folder)
    output += command(["./pan", "-m100000"], folder)
    counted = re.search(r"depth reached (\d+), errors: (\d+)\s+(\d+) states, stored", output)
    if not counted or "max search depth too small" in output or "Search not completed" in output and counted[2] == "0":
        return "no result", 0, 0, output
    failed = re.search(r"pan:1: (?:assertion violated\s+!\(+(\w+)|(invalid end state))", output)
    if failed:
        output = command(["spin", "-p", *options, "-k", "ledger.pml.trail", str(HERE / "ledger.pml")], folder)
    name = (failed[1] or failed[2]) if failed else None if counted[2] == "0" else "no result"
    return name, int(counted[3]), int(counted[1]), output


def maude(scenario, broken, pattern, folder):
    """Searches all states of the session. Returns whether the pattern was found, the states, and the path to it."""
    folder.mkdir()
    (folder / "run.maude").write_text(
        f"load {HERE / 'session.maude'}\nmod RUN is including SCENARIOS . eq broken = {broken} . endm\n"
        f"search [1] {scenario} =>* {pattern} .\nshow path labels 0 .\nquit\n"
    )
    output = command(["maude", "-no-banner", "-no-advise", str(folder / "run.maude")], folder)
    counted = re.search(r"states: (\d+)", output)
    if not counted or "Warning" in output:
        return None, 0, output
    found = re.search(r"^Solution 1 \(state (\d+)\)", output, re.MULTILINE)
    if found:
        again = (folder / "run.maude").read_text().replace("labels 0", f"labels {found[1]}")
        (folder / "run.maude").write_text(again)
        output = command(["maude", "-no-banner", "-no-advise", str(folder / "run.maude")], folder)
    elif "No solution." not in output:
        return None, 0, output
    return bool(found), int(counted[1]), output


def ledger_search(text, constants, folder):
    failed, states, depth, output = spin(constants, folder)
    return Result(
        f"ledger: {text}", failed is None, f"{states} states, depth {depth}" if failed is None else failed, output
    )


def ledger_situation(text, constants, folder):
    failed, _, _, output = spin(constants, folder)
    return Result(f"ledger reaches: {text}", failed is not None and failed not in LEDGER_PROPERTIES, trace=output)


def ledger_break(text, constants, expected, folder):
    failed, _, _, output = spin(constants, folder)
    return Result(f"ledger broken: {text}", failed == expected, f"{failed}" if failed else "no counterexample", output)


def session_search(text, scenario, name, folder):
    found, states, output = maude(scenario, "intact", f"S:State such that {name}(S:State)", folder)
    return Result(
        f"session: {text} ({scenario})", found is False, f"{states} states" if found is False else name, output
    )


def session_situation(text, pattern, folder):
    found, _, output = maude("network", "intact", pattern, folder)
    return Result(f"session reaches: {text}", found is True, trace=output)


def session_break(text, broken, scenario, name, folder):
    found, _, output = maude(scenario, broken, f"S:State such that {name}(S:State)", folder)
    return Result(f"session broken: {text}", found is True, name if found else "no counterexample", output)


def searches(folder):
    """Yields each line's function and arguments, the long searches first."""
    place = (folder / str(number) for number in range(1000))
    for text, constants in LEDGER.items():
        yield ledger_search, text, constants, next(place)
    for text, (constant, bounds) in LEDGER_SITUATIONS.items():
        yield ledger_situation, text, f"{constant} {bounds}", next(place)
    for text, (constant, bounds, expected) in LEDGER_BREAKS.items():
        yield ledger_break, text, f"BREAK_{constant} {bounds}", expected, next(place)
    for name, (scenarios, text) in SESSION_PROPERTIES.items():
        for scenario in scenarios.split():
            yield session_search, text, scenario, name, next(place)
    for text, pattern in SESSION_SITUATIONS.items():
        yield session_situation, text, pattern, next(place)
    for text, (broken, scenario, name) in SESSION_BREAKS.items():
        yield session_break, text, broken, scenario, name, next(place)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="run only the searches whose lines contain this text")
    parser.add_argument("--traces", type=pathlib.Path, help="an existing folder for the traces of all counterexamples")
    options = parser.parse_args()
    missing = [name for name in ("spin", "maude", "gcc") if not shutil.which(name)]
    if missing:
        print(f"holdfast: the models need {', '.join(missing)}", file=sys.stderr)
        print("hint: apt-get install spin maude gcc libc6-dev", file=sys.stderr)
        return 69
    begun, results = time.monotonic(), []
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(2) as pool:
        jobs = [
            (words[1], pool.submit(words[0], *words[1:]))
            for words in searches(pathlib.Path(folder))
            if options.only in f"{words[0].__name__} {words[1]}"
        ]
        for _, job in jobs:
            result = job.result()
            results.append(result)
            print(
                f"{'ok' if result.is_good else 'FAILED':6}  {result.text}{': ' if result.note else ''}{result.note}",
                flush=True,
            )
            if not result.is_good:
                print("\n".join(result.trace.splitlines()[-60:]))
            if options.traces and result.trace:
                (options.traces / f"{len(results)}.txt").write_text(f"{result.text}\n\n{result.trace}")
    # One search of the ledger looks for all of these.
    if all(result.is_good for result in results if result.text.startswith("ledger: ")) and not options.only:
        for text in LEDGER_PROPERTIES.values():
            print(f"ok      ledger, in all of its searches: {text}")
    failed = sum(not result.is_good for result in results)
    taken = processor_seconds()
    print(f"{time.monotonic() - begun:.0f} s, {taken:.0f} s of processor time")
    if is_too_slow := taken > PROCESSOR_SECONDS:
        print(f"FAILED  all of it takes at most {PROCESSOR_SECONDS} s of processor time")
    print(f"{len(results) - failed} passed, {failed} failed")
    return 1 if failed or is_too_slow else 0


if __name__ == "__main__":
    sys.exit(main())
