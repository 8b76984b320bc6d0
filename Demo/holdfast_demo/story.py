"""The transcript of the demonstration, and the situations that it is made of."""

import json
import sys

from holdfast_peer.checks import Failed

WIDTH = 54
GREEN, RED, PLAIN = "\x1b[32m", "\x1b[31m", "\x1b[0m"


class Story:
    """Prints what happens line by line, and records whether each line came out as it must."""

    def __init__(self, is_json=False, has_colour=False):
        """With `is_json`, `finish` prints the whole transcript as one object, and nothing else is printed."""
        self.is_json, self.has_colour = is_json, has_colour
        self.lines, self.count, self.wrong = [], 0, []

    def heading(self, text):
        self.tell(f"\n{text}")

    def tell(self, text):
        """Prints text that is only for people."""
        if not self.is_json:
            print(text, flush=True)

    def warn(self, text):
        print(text, file=sys.stderr, flush=True)

    def step(self, text, detail):
        """Records a step that succeeded; otherwise an exception would have been raised."""
        self.lines.append({"line": text, "detail": detail})
        self.tell(f"  {text:{WIDTH}}{detail}")

    def expect(self, text, expected, seen, detail=""):
        """Records a line that must come out as `expected`."""
        holds = seen == expected
        self.count += 1
        if not holds:
            self.wrong.append(text)
        self.lines.append({"line": text, "expected": expected, "actual": seen, "holds": holds, "detail": detail})
        outcome = expected if holds else f"{seen}, but it must be: {expected}"
        self.tell(f"{self._mark(holds)} {text:{WIDTH}}{outcome}{detail and f', {detail}'}")

    def finish(self, seconds, has_totals):
        """Prints the end of the transcript, and returns the exit status: 0 if every line holds, otherwise 1."""
        holds = not self.wrong
        if self.is_json:
            print(json.dumps({"holds": holds, "lines": self.lines}, ensure_ascii=False), flush=True)
        elif has_totals:
            self.tell(f"\n{self._mark(holds)} {'all' if holds else 'not all'} as it must be ({seconds:.0f} s)")
            self.tell(f"{self.count - len(self.wrong)} passed, {len(self.wrong)} failed")
        for text in self.wrong:
            self.warn(f"holdfast-demo: this line did not come out as it must: {text}")
        return 0 if holds else 1

    def _mark(self, holds):
        mark = "✓" if holds else "✗"
        return f"{GREEN if holds else RED}{mark}{PLAIN}" if self.has_colour else mark


class Situation:
    """One line of the script: what is tried, what must come of it, and a body that tries it.

    The body gets the scene, and returns what was seen, or a pair of that and a detail to print. `{device}` in a text is the
    scene's word for the device.
    """

    def __init__(self, text, expected, body):
        self.text, self.expected, self.body = text, expected, body

    def __call__(self, scene, story):
        seen = self.body(scene)
        seen, detail = seen if isinstance(seen, tuple) else (seen, "")
        story.expect(self.text.format(device=scene.noun), self.expected, seen, detail)

    def named(self, text, expected=None):
        """The same situation under another text, and with another outcome where the target has one."""
        return Situation(text, expected or self.expected, self.body)

    def unmentioned(self, scene, _):
        """Brings the situation about as a preparation: it must come out as it must, and has no line."""
        seen = self.body(scene)
        if seen != self.expected:
            raise Failed(f"{self.text}: {seen}, but it must be: {self.expected}")


def situation(text, expected):
    """Makes a situation of a function."""
    return lambda body: Situation(text, expected, body)


def step(text):
    """Makes a step of a function, which returns the detail to print."""

    def register(body):
        return lambda scene, story: story.step(text.format(device=scene.noun), body(scene))

    return register


def preparation(body):
    """Makes a preparation of a function: it has no line."""
    return lambda scene, _: body(scene)
