"""docs/coverage.md is whole, counts its rows, and names only files, verbs, declarations and tests that exist. A row that says yes names
something that can be used from outside, and verbs have their arguments."""

import functools
import json
import re
import subprocess
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs/coverage.md").read_text()
# The rows of each document, by the letter that their numbers begin with.
ROWS = {"A": 184, "T": 117, "O": 171, "W": 230}
VERDICTS = ("yes", "partly", "no", "out of scope")
DECLARATION = r"\b(?:actor|associatedtype|case|class|enum|func|let|macro|protocol|struct|typealias|var)\s+`?(\w+)"
TYPE = r"\b(?:actor|class|enum|extension|protocol|struct|typealias)\s+(?:\w+\.)*{}\b"


def cells_of(line):
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


LINES = [cells_of(line) for line in PAGE.splitlines() if re.match(r"\| [A-Z]\d", line)]


def test_each_row_is_there_once_in_order():
    assert all(len(cells) == 4 and all(cells) for cells in LINES)
    assert [cells[0] for cells in LINES] == [f"{letter}{i + 1}" for letter, count in ROWS.items() for i in range(count)]


def test_each_row_has_a_verdict_and_says_where():
    wrong = [cells for cells in LINES if cells[2] not in VERDICTS]
    wrong += [cells for cells in LINES if cells[2] == "yes" and "`" not in cells[3]]
    # A row that makes no sense here says why, in one sentence.
    wrong += [cells for cells in LINES if cells[2] == "out of scope" and not re.fullmatch(r"[A-Z].*\.", cells[3])]
    assert not wrong


def test_the_counts_are_those_of_the_rows():
    counted = Counter((cells[0][0], cells[2]) for cells in LINES)
    for letter, count in ROWS.items():
        numbers = [counted[letter, verdict] for verdict in VERDICTS]
        assert f"| {letter} | {count} | {' | '.join(map(str, numbers))} |" in PAGE
    totals = [sum(counted[letter, verdict] for letter in ROWS) for verdict in VERDICTS]
    assert f"| all | {sum(ROWS.values())} | {' | '.join(map(str, totals))} |" in PAGE


@functools.cache
def texts(*suffixes):
    files = [file for place in ("Sources", "firmware-sim/Sources") for file in (ROOT / place).rglob("*")]
    return [file.read_text() for file in files if file.suffix in suffixes]


def declarations(text):
    # Some lines declare several cases.
    cases = re.findall(r"\bcase ([\w, `]+)$", text, flags=re.MULTILINE)
    return {*re.findall(DECLARATION, text), *(name for line in cases for name in re.findall(r"\w+", line))}


@functools.cache
def declared():
    functions = {name for text in texts(".h") for name in re.findall(r"\b(\w+)\(", text)}
    return {*functions, *(name for text in texts(".swift") for name in declarations(text))}


def is_member(owner, name):
    """Whether a file that declares or extends the type declares the name."""
    holders = (text for text in texts(".swift") if re.search(TYPE.format(owner), text))
    return any(name in declarations(text) for text in holders)


@functools.cache
def public():
    """The public names with the type that each belongs to, as docs/api lists them, and the types that are only named there."""
    names, aliases = set(), set()
    for file in (ROOT / "docs/api").glob("*.txt"):
        for line in file.read_text().splitlines():
            path, _, declaration = line.partition("  ")
            owner, _, last = re.sub(r"\(.*", "", path).rpartition(".")
            names.add((owner.rpartition(".")[2], last))
            if declaration.startswith("typealias "):
                aliases.add(last)
    return names, aliases


def is_public(name):
    names, aliases = public()
    owner, _, last = name.rpartition(".")
    owner = owner.rpartition(".")[2]
    return (owner, last) in names or owner in aliases or not owner and any(last == name for _, name in names)


@functools.cache
def c_functions():
    return set(re.findall(r"\b(hf_\w+)\(", (ROOT / "Sources/CHoldfast/holdfast.h").read_text()))


def is_file(name):
    return "/" in name or "." in name and (ROOT / name).exists()


def is_test(name):
    return name.startswith(('"', "test_"))


def is_for_users(names):
    """Whether names of a row, apart from its tests, include something that can be used from outside."""
    ways = [name for name in names if not is_test(name)]
    programs = ("holdfast", "holdfast-service", "make")
    return not ways or any(
        name.split()[0] in programs or is_file(name) or name in c_functions() or is_public(name) for name in ways
    )


@functools.cache
def sentences():
    swift = "".join(file.read_text() for file in (ROOT / "Tests").rglob("*.swift"))
    python = "".join(file.read_text() for file in (ROOT / "Tests").rglob("test_*.py"))
    return {*re.findall(r"func `([^`]+)`", swift), *re.findall(r"\bdef (test_\w+)", python)}


@functools.cache
def command(program):
    assert program.is_file(), f"there is no {program}: run `make build service`"
    done = subprocess.run([program, "--experimental-dump-help"], capture_output=True, timeout=60)
    assert done.returncode == 0, f"{program}: {done.stderr.decode()}"
    return json.loads(done.stdout)["command"]


def has_command(program, words):
    """Whether the words are verbs of the program, then arguments of the last verb, and then its options. An argument is one of the
    few texts that the verb takes, or else a word in capitals."""
    here, words = command(program), list(words)
    while words and (verb := {verb["commandName"]: verb for verb in here.get("subcommands", [])}.get(words[0])):
        here = verb
        del words[0]
    names = {name["name"] for argument in here.get("arguments", []) for name in argument.get("names", [])}
    for argument in here.get("arguments", []):
        if argument["kind"] != "positional":
            continue
        is_given = bool(words) and (words[0] in (argument.get("allValues") or []) or words[0].isupper())
        if is_given and not words[0].startswith("-"):
            del words[0]
        elif not argument["isOptional"]:
            return False
    return all(word.startswith("-") and word.lstrip("-") in names for word in words)


@pytest.fixture
def is_there(holdfast):
    programs = {"holdfast": holdfast, "holdfast-service": holdfast.parent / "holdfast-service"}
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), flags=re.MULTILINE)

    def check(name):
        first, *words = name.split()
        if name.startswith('"'):
            return name.strip('"') in sentences()
        if first in programs:
            return has_command(programs[first], words)
        if first == "make":
            return words[0] in targets
        if is_file(name):
            return (ROOT / name).exists()
        if name.startswith("test_"):
            return name in sentences()
        *owners, last = name.split(".")
        return last in declared() and all(owner in declared() and is_member(owner, last) for owner in owners[-1:])

    return check


def names_of(cells):
    return re.findall(r"`([^`]+)`", cells[3])


def test_what_is_there_can_be_used_from_outside():
    assert [cells[0] for cells in LINES if cells[2] == "yes" and not is_for_users(names_of(cells))] == []


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["Prover.renewTerms"], False),
        (["Prover.renewTerms", "TokenStanding", '"a test"'], False),
        (["Prover.refresh"], True),
        (["EnrolmentStanding"], True),
        (["ComplianceRule.Action"], True),
        (["TokenStanding", "hf_prover_open"], True),
        (["TokenStanding", "hf_prover_open_not"], False),
        (["TokenStanding", "docs/sdk.md"], True),
        (["TokenStanding", "holdfast status --service"], True),
        (['"a test"', "test_one"], True),
    ],
)
def test_a_declaration_of_the_package_alone_is_nothing_for_users(names, expected):
    assert is_for_users(names) == expected


def test_each_name_is_that_of_something(is_there):
    names = [(cells[0], name) for cells in LINES for name in names_of(cells)]
    assert len(names) > 200
    assert [(row, name) for row, name in names if not is_there(name)] == []


@pytest.mark.parametrize(
    "name",
    [
        "holdfast prave",
        "holdfast prove --jsn",
        "holdfast device user add --spare",
        "holdfast device user add name",
        "holdfast device user add NAME MORE",
        "holdfast-service list",
        "holdfast-service list --device",
        "holdfast-service list nothing --device",
        "make nothing",
        "Sources/Nothing.swift",
        "Nothing",
        "Prover.nothing",
        '"no test"',
        "test_no",
    ],
)
def test_what_is_not_there_is_found(is_there, name):
    assert not is_there(name)
