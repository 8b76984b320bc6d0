"""A prover's state folder, from outside."""

import json
import shutil

from .checks import expect


def enrolment(state):
    """The folder with the files of the only enrolment."""
    found = [path for path in (state / "devices").iterdir() if not path.name.startswith(".")]
    expect(len(found) == 1, f"{len(found)} devices are enrolled in {state}")
    return found[0]


def make_old(state, old):
    """Copies a state folder with one enrolment into the layout of older versions: the files are in the folder itself, and the
    issuer's report is not kept."""
    shutil.copytree(enrolment(state), old)
    file = old / "enrolment.json"
    manifest = json.loads(file.read_text())
    del manifest["issued"]
    manifest["version"] = 2
    file.write_text(json.dumps(manifest, indent=2) + "\n")
    return old
