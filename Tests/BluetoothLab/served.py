"""What the stories of a served device share."""

import re

from holdfast_peer.checks import expect_equal

KINDS = ("l2cap", "rfcomm", "le")


class Tried:
    """What a script has reported by `trying`."""

    def __init__(self, seen, name):
        self.name = name
        status, begin, end, self.text = [*seen[name][0].split(" ", 3), ""][:4]
        self.status, self.seconds = int(status), float(end) - float(begin)

    def expect(self, status, pattern):
        """The exit status, and what was said."""
        expect_equal(
            (self.status, bool(re.search(pattern, self.text))),
            (status, True),
            f"{self.name} said {self.text!r}: exit status, and {pattern!r}",
        )


def expect_accepted(seen, *names):
    for name in names:
        Tried(seen, name).expect(0, "status: accepted, locked")


def run(lab, script):
    """Boots a guest for the script, and returns what it reports."""
    with lab.one_host(script) as host:
        return host.end()
