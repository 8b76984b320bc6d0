"""Tells stories: a module that observes (`observe(lab)`), and checks of what was seen (`CHECKS`)."""

import argparse
import pathlib
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


def main(lists, make_lab):
    """Those of one list of stories run one after the other, the lists at the same time. Returns the exit status."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--holdfast", required=True, type=pathlib.Path, help="the command line under test")
    parser.add_argument("--only", choices=[story.__name__ for stories in lists for story in stories], help="one story")
    options = parser.parse_args()
    lists = [[story for story in stories if options.only in (None, story.__name__)] for stories in lists]
    try:
        guest.prepare()
    except guest.Unavailable as reason:
        print(f"skipped: no Linux guest: {reason}")
        print(f"0 passed, 0 failed, {sum(len(story.CHECKS) for stories in lists for story in stories)} skipped")
        return 0
    checks = Checks()
    with tempfile.TemporaryDirectory(prefix="hf") as folder:
        lab = make_lab(options.holdfast.resolve(), pathlib.Path(folder))
        # Daemons, so that Ctrl-C ends everything: QEMU dies with the thread that began it.
        threads = [
            threading.Thread(
                target=lambda stories=stories: [tell(story, lab, checks) for story in stories], daemon=True
            )
            for stories in lists
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    return checks.finish()
