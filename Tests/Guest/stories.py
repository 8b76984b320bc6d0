"""Tells stories: a module that observes (`observe(lab)`), and checks of what was seen (`CHECKS`)."""

import argparse
import contextlib
import pathlib
import queue
import tempfile
import threading
import time

import guest
from holdfast_peer.checks import Checks


def tell(story, lab, checks):
    """Observes a story, and checks what was seen. Each check of a story that does not come to its end has failed.

    A story may say by `Unavailable` that what it needs cannot be had.
    """
    begin = time.monotonic()
    passed = []
    try:
        seen = story.observe(lab)
    except guest.Unavailable as reason:
        checks.skip(len(story.CHECKS), f"{story.__name__}: {reason}")
    except Exception as error:

        def no_end(error=error):
            raise error  # noqa: TRY201

        passed = [checks.run(check.__doc__, no_end) for check in story.CHECKS]
    else:
        passed = [checks.run(check.__doc__, check, seen) for check in story.CHECKS]
    if not all(passed):
        lab.show(story.__name__)
    print(f"{story.__name__}: {time.monotonic() - begin:.0f} s", flush=True)


def tell_waiting(waiting, lab, checks):
    """Tells the stories that nobody else has begun."""
    with contextlib.suppress(queue.Empty):
        while True:
            tell(waiting.get_nowait(), lab, checks)


def main(stories, make_lab, at_once):
    """Tells the stories, which begin in this order, so many at the same time. Returns the exit status."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--holdfast", required=True, type=pathlib.Path, help="the command line under test")
    parser.add_argument("--only", choices=[story.__name__ for story in stories], help="one story")
    options = parser.parse_args()
    stories = [story for story in stories if options.only in (None, story.__name__)]
    try:
        guest.prepare()
    except guest.Unavailable as reason:
        print(f"skipped: no Linux guest: {reason}")
        print(f"0 passed, 0 failed, {sum(len(story.CHECKS) for story in stories)} skipped")
        return 0
    checks, waiting = Checks(), queue.SimpleQueue()
    for story in stories:
        waiting.put(story)
    with tempfile.TemporaryDirectory(prefix="hf") as folder:
        lab = make_lab(options.holdfast.resolve(), pathlib.Path(folder))
        # Daemons, so that Ctrl-C ends everything: QEMU dies with the thread that began it.
        threads = [
            threading.Thread(target=tell_waiting, args=(waiting, lab, checks), daemon=True) for _ in range(at_once)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    return checks.finish()
