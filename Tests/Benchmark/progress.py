"""Progress of a run: the number of rows that are done, and an estimate of the rest."""

import contextlib
import json
import sys
import threading
import time


class Progress:
    """Tells before each row which one it is, and how long the rest takes.

    On a terminal, a line below says each second how long the row has taken, and how long the rest takes now.

    The estimate takes the time of a row from an earlier run, which `file` keeps; the rows that are in no earlier run are taken to
    be as slow, compared with the others, as the average. Before the first of such rows, there is no estimate.
    """

    def __init__(self, names, file, clock=time.monotonic, out=sys.stderr):
        self.names, self.file, self.clock, self.out = names, file, clock, out
        self.current, self.began, self.done = None, 0, {}
        try:
            self.earlier = {name: float(seconds) for name, seconds in json.loads(file.read_text()).items()}
        except (OSError, ValueError, AttributeError, TypeError):
            self.earlier = {}

    @contextlib.contextmanager
    def row(self, name):
        """The time of one row, which is kept unless the row fails."""
        self.current, self.began = name, self.clock()
        print(f"row {len(self.done) + 1} of {len(self.names)}{self.rest()}: {name}", file=self.out, flush=True)
        with self.ticking() if self.out.isatty() else contextlib.nullcontext():
            yield
        self.done[name], self.current = self.clock() - self.began, None
        self.file.write_text(json.dumps(self.earlier | self.done))

    @contextlib.contextmanager
    def ticking(self):
        """Writes the line below anew each second, and clears it in the end."""
        ended = threading.Event()

        def tick():
            while not ended.wait(1):
                self.tick()

        ticker = threading.Thread(target=tick, daemon=True)
        ticker.start()
        try:
            yield
        finally:
            ended.set()
            ticker.join()
            print("\r\033[K", end="", file=self.out, flush=True)

    def tick(self):
        """Writes the line below."""
        print(f"\r  {self.clock() - self.began:.0f} s{self.rest()}\033[K", end="", file=self.out, flush=True)

    def rest(self):
        """The estimate as text, or nothing as long as there is none."""
        left = self.left()
        return "" if left is None else f", about {max(round(left), 1)} s left"

    def left(self):
        """The seconds until the end, at the speed of the rows that are done."""
        known = {name: seconds for name, seconds in self.earlier.items() if name in self.names and seconds > 0}
        if not self.done and len(known) < len(self.names):
            return None
        usual = sum(known.values()) / len(known) if known else 1
        expected = sum(known.get(name, usual) for name in self.done)
        speed = sum(self.done.values()) / expected if self.done else 1
        seconds = {name: speed * known.get(name, usual) for name in self.names if name not in self.done}
        present = seconds.pop(self.current)
        return max(present - (self.clock() - self.began), 0) + sum(seconds.values())
