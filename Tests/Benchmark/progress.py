"""Progress of a run: the number of rows that are done, and an estimate of the rest."""

import json
import sys
import time


class Progress:
    """Tells before each row which one it is, and from the second one on, how long the rest takes.

    The estimate takes the time of a row from an earlier run, which `file` keeps; the rows that are in no earlier run are taken to
    be as slow, compared with the others, as the average.
    """

    def __init__(self, names, file, clock=time.monotonic, out=sys.stderr):
        self.names, self.file, self.clock, self.out = names, file, clock, out
        self.current, self.began, self.done = None, 0, {}
        try:
            self.earlier = {name: float(seconds) for name, seconds in json.loads(file.read_text()).items()}
        except (OSError, ValueError, AttributeError, TypeError):
            self.earlier = {}

    def begin(self, name):
        """Ends the row before, if there is one, and begins this one."""
        self.end()
        self.current, self.began = name, self.clock()
        left = f", about {max(round(self.left()), 1)} s left" if self.done else ""
        print(f"row {len(self.done) + 1} of {len(self.names)}{left}: {name}", file=self.out, flush=True)

    def end(self):
        """Ends the last row, and keeps the times."""
        if self.current is not None:
            self.done[self.current], self.current = self.clock() - self.began, None
            self.file.write_text(json.dumps(self.earlier | self.done))

    def left(self):
        """The seconds that the rows take which are not done, at the speed of those that are."""
        known = {name: seconds for name, seconds in self.earlier.items() if name in self.names and seconds > 0}
        usual = sum(known.values()) / len(known) if known else 1
        taken = sum(self.done.values())
        expected = sum(known.get(name, usual) for name in self.done)
        return taken / expected * sum(known.get(name, usual) for name in self.names if name not in self.done)
