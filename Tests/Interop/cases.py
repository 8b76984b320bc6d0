"""Cases of a table, each a test, which run side by side: as fast as the machine is, and each in a folder of its own."""

import contextlib
import os
from concurrent.futures import ThreadPoolExecutor

import pytest

# The processes that a case starts wait more than they compute.
MOST_AT_ONCE = 4 * (os.cpu_count() or 2)


def split(line):
    """The arguments of a command line."""
    return line.split(" ")


class Case:
    """A row of a table: `body(*arguments)` is the test. An argument "sandbox" or "nobody" stands for the fixture."""

    def __init__(self, name, body, *arguments):
        self.name, self.body, self.arguments = name, body, arguments

    def run(self, fixtures):
        self.body(*(fixtures.get(each, each) if isinstance(each, str) else each for each in self.arguments))


def each_case(cases):
    """Parametrises a test with `case`."""
    cases = list(cases)
    return pytest.mark.parametrize("case", cases, ids=[case.name.encode("unicode_escape").decode() for case in cases])


@contextlib.contextmanager
def side_by_side(request, run, workers=MOST_AT_ONCE):
    """The future of each case of the module that was selected. They are begun at once, in their order."""
    items = [item for item in request.session.items if item.module is request.module and hasattr(item, "callspec")]
    chosen = [item.callspec.params["case"] for item in items if "case" in item.callspec.params]
    with ThreadPoolExecutor(workers) as pool:
        yield {case: pool.submit(run, case) for case in chosen}
        pool.shutdown(cancel_futures=True)
