"""Runs suites of the unit tests against mutants, those first that are likely to notice soon."""

import collections
import concurrent.futures
import os
import pathlib
import re
import signal
import subprocess
import tempfile
import threading
import time

# A value that becomes unused was the value of its function: what follows is an error.
ERROR = re.compile(r"^(/[^:\n]+):(\d+):(\d+): (?:error:|warning: result of .* is unused)", re.MULTILINE)
# Suites that try every moment of a power cut or need servers; they take minutes.
LEFT_OUT = re.compile(r"PowerCut|FailingDisk|FullDisk|PostgreSQL|KnownCode|Soak")
# Suites that run one by one for a mutant. The others then run in one process.
SINGLE = 4
# The seconds that the further suites of one mutant may take, and those after which a suite hangs, in addition to twice its own.
(BUDGET, HANGS) = (20, 8)


def errors(output, source):
    """The places of a compiler's errors: file from the root of the sources, line and column."""
    found = set()
    for path, line, column in ERROR.findall(output):
        if pathlib.Path(path).is_relative_to(source):
            found.add((str(pathlib.Path(path).relative_to(source)), int(line), int(column)))
    return sorted(found)


class Suites:
    """The suites of one build, the mutants that each reaches, and the seconds that it takes."""

    def __init__(self, source, folder, say):
        self.source, self.folder, self.say = source, folder, say
        self.program = folder / "build" / "release" / "holdfastPackageTests.xctest"
        self.seconds, self.reached = {}, {}
        self.noticed = collections.defaultdict(collections.Counter)
        self.lock = threading.Lock()

    def run(self, suites, seconds, **environment):
        """Whether all tests of the suites pass in this time. The first failure ends the process."""
        pattern = "|".join(f"^{re.escape(suite)}(/|$)" for suite in suites)
        words = [self.program, "--testing-library", "swift-testing", "--no-parallel", "--filter", pattern]
        with tempfile.TemporaryDirectory(prefix="hfm") as home:
            variables = {**os.environ, **environment, "TMPDIR": home, "SWIFT_BACKTRACE": "enable=no"}
            process = subprocess.Popen(
                words, cwd=self.source, env=variables, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT, text=True, errors="replace", start_new_session=True,
            )  # fmt: skip
            timer = threading.Timer(seconds, end, [process])
            timer.start()
            try:
                for line in process.stdout:
                    if line.startswith("✘"):
                        end(process)
                        return False
                return process.wait() == 0
            finally:
                timer.cancel()
                end(process)
                process.stdout.close()
                process.wait()

    def explore(self, jobs):
        """Runs each suite once without a mutant, and notes the mutants that it reaches."""
        listed = subprocess.run(
            [self.program, "--testing-library", "swift-testing", "--list-tests"],
            cwd=self.source,
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        names = sorted({line.split("/")[0] for line in listed.splitlines() if "." in line})

        def one(suite):
            log = self.folder / "reached" / suite
            log.parent.mkdir(exist_ok=True)
            log.unlink(missing_ok=True)
            started = time.monotonic()
            passes = self.run([suite], 300, HOLDFAST_MUTANT_LOG=str(log))
            return suite, passes, time.monotonic() - started, log

        with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
            for suite, passes, seconds, log in pool.map(one, [name for name in names if not LEFT_OUT.search(name)]):
                if passes and log.exists():
                    self.seconds[suite], self.reached[suite] = seconds, {int(word) for word in log.read_text().split()}
                elif not passes:
                    self.say(f"{suite} fails without a mutant, and is left out")

    def judge(self, mutants, jobs):
        """The outcome of each mutant, by its number, with the suite that noticed it. After Ctrl-C, of those that were tried."""
        outcomes, started, pool = {}, time.monotonic(), concurrent.futures.ThreadPoolExecutor(jobs)
        try:
            self.explore(jobs)
            self.say(f"{len(self.seconds)} suites, {sum(self.seconds.values()):.0f} s; running {len(mutants)} mutants")
            for mutant, outcome in zip(mutants, pool.map(self.try_mutant, mutants), strict=True):
                outcomes[mutant.number] = outcome
                if outcome[0] != "killed":
                    self.say(f"{outcome[0]}: {mutant.file}:{mutant.line}: {mutant.change}")
                if len(outcomes) % 100 == 0:
                    self.say(f"{len(outcomes)} of {len(mutants)}, {time.monotonic() - started:.0f} s")
        except KeyboardInterrupt:
            self.say(f"interrupted: {len(outcomes)} of {len(mutants)} were tried")
        finally:
            pool.shutdown(cancel_futures=True)
        return outcomes

    def try_mutant(self, mutant):
        reaching = [suite for suite, numbers in self.reached.items() if mutant.number in numbers]
        if not reaching:
            return "not reached", ""
        with self.lock:
            noticed = self.noticed[mutant.file]
            reaching.sort(key=lambda suite: (-noticed[suite], self.seconds[suite]))
        # Of the others, those first that reach few mutants: this line is what they are about. The first of them runs in any case.
        rest, left = [], BUDGET
        for suite in sorted(reaching[SINGLE:], key=lambda suite: len(self.reached[suite])):
            if not rest or self.seconds[suite] < left:
                left -= self.seconds[suite]
                rest.append(suite)
        for group in [*([suite] for suite in reaching[:SINGLE]), rest]:
            expected = sum(self.seconds[suite] for suite in group)
            if group and not self.run(group, HANGS + 2 * expected, HOLDFAST_MUTANT=str(mutant.number)):
                if len(group) == 1:
                    with self.lock:
                        noticed[group[0]] += 1
                return "killed", group[0] if len(group) == 1 else "several"
        return "survived", ""


def end(process):
    """Ends a process and those that it started."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
