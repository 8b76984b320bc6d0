#!/usr/bin/python3
"""Runs `holdfast` in Linux guests: what needs another kernel, or a machine whose power can be cut.

usage: run.py --holdfast PATH [--only STORY]

Where no guest can be had, everything is counted as skipped, and the reason is said. Consoles stay in .guest/logs/.
"""

import argparse
import pathlib
import sys
import tempfile
import threading
import time

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent / "Interop"))

import full_disk
import guest
import power_cut
import verity
from holdfast_peer.checks import Checks
from lab import Lab

# Those of one list run one after the other, the lists beside each other.
STORIES = [[verity, full_disk], [power_cut]]


def tell(story, lab, checks):
    """Observes a story, and checks what was seen. Each check of a story that does not come to its end has failed."""
    begin, failed = time.monotonic(), checks.failed
    try:
        seen = story.observe(lab)
    except Exception as error:
        def no_end(error=error):
            raise error
        for check in story.CHECKS:
            checks.run(check.__doc__, no_end)
    else:
        for check in story.CHECKS:
            checks.run(check.__doc__, check, seen)
    if checks.failed > failed:
        lab.show(f"{story.__name__}.sh")
    print(f"{story.__name__}: {time.monotonic() - begin:.0f} s", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--holdfast", required=True, type=pathlib.Path, help="the command line under test")
    parser.add_argument("--only", help="one story: verity, full_disk or power_cut")
    options = parser.parse_args()
    lists = [[story for story in stories if options.only in (None, story.__name__)] for stories in STORIES]
    try:
        guest.prepare()
    except guest.Unavailable as reason:
        print(f"skipped: no Linux guest: {reason}")
        print(f"0 passed, 0 failed, {sum(len(story.CHECKS) for stories in lists for story in stories)} skipped")
        return 0
    checks = Checks()
    with tempfile.TemporaryDirectory(prefix="hf") as folder:
        lab = Lab(options.holdfast.resolve(), pathlib.Path(folder))
        # Daemons, so that Ctrl-C ends everything: QEMU dies with the thread that began it.
        threads = [threading.Thread(target=lambda stories=stories: [tell(story, lab, checks) for story in stories], daemon=True) for stories in lists]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    return checks.finish()


if __name__ == "__main__":
    sys.exit(main())
