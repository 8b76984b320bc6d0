#!/usr/bin/python3
"""Runs `holdfast` in Linux guests: what needs another kernel, or a machine whose power can be cut.

usage: run.py --holdfast PATH [--only STORY]

Where no guest can be had, everything is counted as skipped, and the reason is said. Consoles stay in .guest/logs/.
"""

import pathlib
import sys

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent / "Interop"))

import full_disk
import known_code
import power_cut
import stories
import verity
from lab import Lab

if __name__ == "__main__":
    sys.exit(stories.main([verity, power_cut, full_disk, known_code], Lab, at_once=3))
