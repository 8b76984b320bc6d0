"""Every file that a verb reads, spoiled in every way."""

import pathlib
import shutil

import pytest
from bad_files import DAMAGES, NO_PERMISSION, TARGETS
from cases import Case, each_case, side_by_side
from holdfast_peer.base64strict import encode, url_encode
from sandbox import fill, judge, names_in

NAMES = (
    "D",
    "S",
    "P",
    "oldP",
    "PJ",
    "begun",
    "d.json",
    "issuer2.jwk",
    "mac.jwk",
    "evidence",
    "attestation",
    "vectors.json",
    "data",
)
LEFT_BY_SQLITE = ("-wal", "-shm", "-journal")


def spoil(sandbox, target, damage, verb):
    """One check: the verb on a copy with one file spoiled."""
    used = {name for name in NAMES for part in verb if f"{{{name}}}" in part} | {target.folder}
    case = sandbox.case(*used)
    path = found(case / target.folder, target.file)
    damage.apply(path, found(sandbox.base / (target.other or target.folder), target.file))
    if not damage.name.startswith("mode"):
        sandbox.own(case)
    places = {name: case / name for name in used}
    arguments = fill(verb, {"case": case, "socket": sandbox.socket, **places})
    environment = {"XDG_DATA_HOME": str(case / "data")} if target.folder == "data" else {}
    before = names_in(case)
    serves = verb[:2] == ["device", "serve"]
    done = (sandbox.serve_briefly if serves else sandbox.run)(*arguments, environment=environment)
    original = found(sandbox.base / target.folder, target.file)
    secret = spellings(original.read_bytes()) if target.holds_secret else ()
    name = pathlib.PurePath(target.file or target.folder).name
    judge(
        done,
        target.allowed(damage),
        mentions=[target.mention or name] if done.returncode not in (0, 1, 3) else [],
        secrets=secret,
        hint=done.returncode in (2, NO_PERMISSION) and target.file != "",
        is_json="--json" in arguments,
    )
    if done.returncode not in (0, 1, 3):
        # What the verb makes anew of its own, whole or not at all.
        made = [n for n in names_in(case) if n not in before and not n.endswith(LEFT_BY_SQLITE)]
        assert set(made) <= {"D/lock"}, f"these files are left: {made}"
    leftovers = [n for n in names_in(case) if ".tmp" in n or n.endswith("served.sock")]
    assert not leftovers, f"half-written or forgotten files: {leftovers}"
    shutil.rmtree(case, ignore_errors=True)


def found(folder, file):
    """The path of a file of a folder; an asterisk in it stands for the one name that is there."""
    return next(folder.glob(file)) if "*" in file else folder / file if file else folder


def spellings(secret):
    """The ways in which the start of a secret could stand in a text."""
    start = secret[:12]
    return {start, start.hex().encode(), encode(start).encode(), url_encode(start).encode()}


def spoiled():
    for target in TARGETS:
        for damage in DAMAGES:
            for verb in target.verbs:
                words = " ".join(word for word in verb[:2] if not word.startswith("-"))
                user = "nobody" if damage.as_other_user else "sandbox"
                yield Case(f"{words}: {target.name} {damage.name}", spoil, user, target, damage, verb)


@pytest.fixture(scope="module")
def begun(request, sandbox, nobody):
    with side_by_side(request, lambda case: case.run({"sandbox": sandbox, "nobody": nobody})) as begun:
        yield begun


@each_case(spoiled())
def test_a_spoiled_file_is_refused_by_name_and_nothing_is_left(case, begun):
    begun[case].result()
