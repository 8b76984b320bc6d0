"""Named checks: quiet but for failures, and a line of totals at the end."""

import signal
import traceback

# A shell that starts tests in the background has them ignore Ctrl-C, and what they start would ignore it too.
signal.signal(signal.SIGINT, signal.default_int_handler)


class Failed(Exception):
    """What was seen is not what was expected."""


def expect(condition, message):
    if not condition:
        raise Failed(message)


def expect_equal(seen, expected, what):
    if seen != expected:
        raise Failed(f"{what}: expected {expected!r}, saw {seen!r}")


class Checks:
    def __init__(self):
        self.passed = self.failed = self.skipped = 0

    def run(self, name, body, *arguments):
        """Runs one check. Prints one line if it fails. Returns whether it passed."""
        try:
            body(*arguments)
        except Exception as error:  # a check fails for any reason, and the others still run
            self.failed += 1
            place = traceback.extract_tb(error.__traceback__)[-1]
            kind = "" if isinstance(error, Failed) else f"{type(error).__name__} at {place.name}:{place.lineno}: "
            print(f"FAILED {name}: {kind}{' '.join(str(error).split())}", flush=True)
            return False
        self.passed += 1
        return True

    def skip(self, count, reason):
        """Counts checks for which something is missing here."""
        self.skipped += count
        print(f"skipped: {reason}", flush=True)

    def finish(self):
        """Prints the totals and returns the exit status."""
        print(f"{self.passed} passed, {self.failed} failed" + (f", {self.skipped} skipped" if self.skipped else ""))
        return 1 if self.failed else 0
