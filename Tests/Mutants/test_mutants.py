"""The tool behind `make mutants`, without a compiler: what it breaks, what it writes, and which breaks it lists."""

import os

import places
import pytest
import readers
import suites
from fuzz_targets import Target

SOURCE = """func check(_ age: Int) -> Bool {
  guard age >= 0, age < limit - 1 else { return false }
  record(age)
  commit()
  return isOpen && label == "door"
}
"""

# Stands in for the binary of the tests: its suite reaches three mutants, notices the first, and crashes with the third.
PROGRAM = """#!/bin/sh
case "$*" in *--list-tests*) echo 'Tests.Some/`a test`()'; exit;; esac
[ -z "$HOLDFAST_MUTANT_LOG" ] || printf '0\\n1\\n2\\n' >"$HOLDFAST_MUTANT_LOG"
[ "$HOLDFAST_MUTANT" != 0 ] || { echo '✘ Test "a test" recorded an issue'; exec sleep 1000; }
[ "$HOLDFAST_MUTANT" != 2 ] || kill -SEGV $$
"""


def numbered(source=SOURCE):
    found = places.find("Check.swift", source)
    for number, mutant in enumerate(found):
        mutant.number = number
    return found


def test_comparisons_bounds_checks_labels_and_calls_are_broken():
    changes = {mutant.change for mutant in numbered()}
    assert {
        "guard age >= 0 → guard true",
        "age >= 0 → age > 0",
        "age < limit - 1 → age <= limit - 1",
        "age < limit - 1 → its opposite",
        "limit - 1 → limit + 1",
        "record(age) → left out",
        "record(age); commit() → exchanged",
        'isOpen && label == "door": isOpen → true',
        'return isOpen && label == "door": "door" → "door!"',
    } <= changes


def test_without_its_number_every_switch_gives_what_was_there():
    def plain(source):
        text, _ = places.written(source, numbered(source))
        # What Swift's parser would do with a switch that is off.
        while "mutant(" in text:
            begin = text.rindex("mutant(")
            end = text.index(")", begin) + 1
            text = text[:begin] + "off" + text[end:]
        return text

    assert "a - (" not in plain("func f() {\n  x = a - b + c\n}\n")
    assert "off ? (a << 6 & b)" in plain("func f() {\n  x = a << 6 | b\n}\n")


def test_each_mutant_is_found_again_where_it_was_written():
    mutants = numbered()
    text, spans = places.written(SOURCE, mutants)
    assert text.count("\n") == SOURCE.count("\n")
    for mutant in mutants:
        start, end = spans[mutant.number]
        assert f"mutant({mutant.number})" in text[start:end]


def test_comments_texts_and_a_microcontrollers_lines_stay():
    source = '#if hasFeature(Embedded)\n  let a = b == c\n#endif\n// d == e\nlet f = "g == h \\(i)"\n'
    assert numbered(source) == []


def test_bits_that_are_cleared_are_broken_and_what_cannot_be_copied_stays():
    assert [mutant.change for mutant in numbered("let a = b & ~c\n")] == ["b & ~c → b | ~c"]
    assert numbered("func d<E: F & ~Copyable>(_ e: inout E) {}\n") == []


def test_a_raw_text_is_broken_as_a_whole():
    found = numbered('put(#","a":""#)\nlet b = #"{"c":\\#(d)}"#\n')
    assert [mutant.change for mutant in found if " → left out" not in mutant.change] == [
        'put(#","a":""#): #","a":""# → #","a":"!"#'
    ]


def test_errors_of_the_compiler_are_read_with_their_places(tmp_path):
    output = f"{tmp_path}/Sources/A.swift:3:14: error: no\n/usr/B.swift:1:1: error: no\n{tmp_path}/C.swift:4:1: warning: no\n"
    assert suites.errors(output, tmp_path) == [("Sources/A.swift", 3, 14)]


def test_a_line_that_no_test_notices_is_listed(tmp_path):
    program = tmp_path / "build" / "release" / "holdfastPackageTests.xctest"
    program.parent.mkdir(parents=True)
    program.write_text(PROGRAM)
    os.chmod(program, 0o755)
    (tmp_path / "source").mkdir()
    mutants = numbered()[:4]
    said = []
    outcomes = suites.Suites(tmp_path / "source", tmp_path, said.append).judge(mutants, 1)
    assert [outcomes[number][0] for number in range(4)] == ["killed", "survived", "killed", "not reached"]
    assert any(text.startswith("survived: Check.swift:2: ") for text in said)


def test_what_was_tried_before_an_interruption_is_kept(tmp_path):
    mutants = numbered()[:3]
    tested = suites.Suites(tmp_path, tmp_path, lambda _: None)

    def try_mutant(mutant):
        if mutant.number == 1:
            raise KeyboardInterrupt
        return "killed", "Some"

    tested.explore, tested.try_mutant = lambda _: None, try_mutant
    assert tested.judge(mutants, 1) == {0: ("killed", "Some")}


# Stands in for the fuzzer: one input, whose verdict a mutant changes, or at which it crashes. Only one target reaches the mutants.
FUZZER = """#!/bin/sh
[ -z "$HOLDFAST_MUTANT_LOG" ] || [ "$HOLDFAST_FUZZ_TARGET" = other ] || printf '0\\n1\\n2\\n' >"$HOLDFAST_MUTANT_LOG"
[ "$HOLDFAST_MUTANT" != 2 ] || kill -SEGV $$
[ "$HOLDFAST_MUTANT" = 0 ] && verdict=-2222 || verdict=+1111
echo "input $verdict"
echo "input $verdict 3333"
"""


@pytest.fixture
def corpora(tmp_path):
    program = tmp_path / "Fuzzer"
    program.write_text(FUZZER)
    program.chmod(0o755)
    chosen = [Target(name, 64, []) for name in ("reader", "other")]
    found = readers.Corpora(program, chosen)
    for target in chosen:
        found.explore(target)
    return found


@pytest.mark.parametrize(
    ("number", "outcome"),
    [(0, ("noticed", "reader")), (1, ("not noticed", "")), (2, ("noticed", "reader")), (3, ("not reached", ""))],
)
def test_a_break_of_a_reader_is_noticed_by_another_verdict_or_a_crash(corpora, number, outcome):
    mutant = numbered()[number]
    assert corpora.judge(mutant) == outcome


def test_what_reads_nothing_from_outside_is_not_broken():
    source = readers.ROOT / "Sources/HoldfastAuthenticator/State/StateString.swift"
    lines = source.read_text().splitlines()
    (written, read) = (
        next(n for n, line in enumerate(lines, 1) if f"static func {name}" in line) for name in ("seal<", "open(")
    )
    broken = {mutant.line for mutant in readers.breaks([Target("state-string", 64, [source])])}
    assert not broken & set(range(written, written + 10)) and broken & set(range(read, read + 20))
