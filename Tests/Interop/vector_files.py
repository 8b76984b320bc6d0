"""The files of test vectors, and shorter ones with some of their tests."""

import json
import pathlib

VECTORS = pathlib.Path(__file__).resolve().parents[2] / "vectors"
SESSION = VECTORS / "session_test.json"


def excerpt(place, source, each=1, kinds=None, is_wanted=lambda test: True):
    """A file in the folder `place` with each n-th wanted test of another file, of some types of groups or of all."""
    document = json.loads(source.read_text())
    for group in document["testGroups"]:
        wanted = [test for test in group["tests"] if is_wanted(test)]
        group["tests"] = wanted[::each] if kinds is None or group["type"] in kinds else []
    document["testGroups"] = [group for group in document["testGroups"] if group["tests"]]
    document["numberOfTests"] = sum(len(group["tests"]) for group in document["testGroups"])
    file = place / source.name
    file.write_text(json.dumps(document))
    return file
