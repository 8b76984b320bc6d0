"""The instructions of hot paths, against those that were reached: three percent more fail, with the function that grew.

`--keep` writes instructions.json anew, after an improvement or with another compiler. The works are those of Benchmark
(Tests/Benchmark/Program), compiled with the tests.
"""

import copy
import dataclasses
import json
import pathlib
import shutil
import subprocess
import tempfile

import callgrind
import pytest

FILE = pathlib.Path(__file__).resolve().parent / "instructions.json"
# A work → its repetitions.
WORKS = {"token": 20, "round": 100, "proof": 200, "measure": 2, "hotp": 500}
MOST_GROWTH = 0.03


def place():
    """A temporary folder with a path of one length, whatever TMPDIR is: the loader keeps the program's path in memory."""
    return tempfile.TemporaryDirectory(prefix="hf", dir="/tmp")


@pytest.fixture(scope="module")
def prepared(request):
    """A temporary folder with the program and its inputs."""
    program = request.config.getoption("benchmark").absolute()
    assert program.is_file(), f"there is no {program}: build the tests, or name another with --benchmark"
    with place() as folder:
        subprocess.run([program, "inputs", folder], check=True, timeout=callgrind.SECONDS)
        # valgrind reads names, and stops at debugging information that is newer than itself.
        named = pathlib.Path(folder) / "Benchmark"
        subprocess.run(["strip", "--strip-debug", "-o", named, program], check=True, timeout=callgrind.SECONDS)
        yield pathlib.Path(folder)


@pytest.fixture(scope="module")
def counts(request, prepared):
    """What each work takes now."""
    counts = {work: callgrind.count(work, prepared, number) for work, number in WORKS.items()}
    if request.config.getoption("keep"):
        FILE.write_text(json.dumps(kept(counts), indent=1) + "\n")
    return counts


@pytest.fixture(scope="module")
def reached(counts):
    return json.loads(FILE.read_text())


def kept(counts):
    return {
        "libcrypto": callgrind.libcrypto_version(),
        "works": {work: dataclasses.asdict(taken) for work, taken in counts.items()},
    }


def excess(now, before, by_function, by_function_before):
    """The reason why that many instructions are too many, with the functions that grew most; nothing if they are not."""
    most = before * (1 + MOST_GROWTH)
    if now <= most:
        return ""
    grown = {name: number - by_function_before.get(name, 0) for name, number in by_function.items()}
    lines = [
        f"  {name[:100]}: {by_function[name]:,}, {by_function_before.get(name, 0):,} before"
        for name in sorted(grown, key=grown.get, reverse=True)
        if grown[name] > 0
    ]
    return "\n".join([f"{now:,} instructions, at most {most:,.0f}; grown:", *lines[:5]])


def own_excess(now, before):
    return excess(now.others, before["others"], now.functions, before["functions"])


def libcrypto_excess(now, before):
    """The functions are those of libcrypto that are called, each with its caller."""
    return excess(now.libcrypto, before["libcrypto"], now.calls, before["calls"])


@pytest.mark.parametrize("work", WORKS)
def test_a_work_takes_no_more_instructions_than_were_reached(counts, reached, work):
    if text := own_excess(counts[work], reached["works"][work]):
        pytest.fail(text, pytrace=False)


@pytest.mark.parametrize("work", WORKS)
def test_a_work_asks_no_more_of_libcrypto(counts, reached, work):
    if callgrind.libcrypto_version() != reached["libcrypto"]:
        pytest.skip(f"libcrypto is {callgrind.libcrypto_version()}, and {reached['libcrypto']} was counted")
    if text := libcrypto_excess(counts[work], reached["works"][work]):
        pytest.fail(f"in libcrypto: {text}", pytrace=False)


# The gate itself.


@pytest.mark.parametrize("work", WORKS)
def test_a_function_that_grows_by_so_much_is_named_first_in_libcrypto_too(counts, work):
    now = counts[work]
    before = copy.deepcopy(dataclasses.asdict(now))
    assert own_excess(now, before) == libcrypto_excess(now, before) == ""
    for total, functions, judged in (("others", "functions", own_excess), ("libcrypto", "calls", libcrypto_excess)):
        name, number = next(iter(before[functions].items()))
        # As if the largest function had grown, and all with it, by 3.1 percent.
        less = before[total] * 31 // 1031
        before[functions][name] = number - less
        before[total] -= less
        said = judged(now, before).splitlines()
        assert said[0].startswith(f"{getattr(now, total):,} instructions, at most ")
        assert said[1:] == [f"  {name[:100]}: {number:,}, {number - less:,} before"]


@pytest.mark.parametrize("work", WORKS)
def test_nearly_all_of_libcrypto_is_counted_with_a_name_and_its_caller(counts, work):
    calls = counts[work].calls
    assert sum(calls.values()) > 0.99 * counts[work].libcrypto
    assert not [name for name in calls if name.startswith("0x") or ", called by 0x" in name]


@pytest.mark.parametrize("work", WORKS)
def test_neither_tmpdir_nor_the_environment_changes_a_count(monkeypatch, tmp_path, prepared, counts, work):
    """The same program and inputs in another folder, with a longer TMPDIR and more in the environment."""
    longer = tmp_path / ("t" * 97)
    longer.mkdir()
    monkeypatch.setenv("TMPDIR", str(longer))
    monkeypatch.setattr(tempfile, "tempdir", None)
    for number in range(40):
        monkeypatch.setenv(f"HOLDFAST_NOTHING_{number}", "x" * 97)
    with place() as folder:
        copy_inputs(prepared, folder)
        assert callgrind.count(work, folder, WORKS[work]) == counts[work]


@pytest.mark.parametrize("work", WORKS)
def test_a_longer_path_changes_a_count_by_less_than_a_thousandth(tmp_path, prepared, counts, work):
    """Only the loader sees it."""
    folder = tmp_path / ("f" * 97) / ("g" * 97)
    folder.mkdir(parents=True)
    copy_inputs(prepared, folder)
    now, before = callgrind.count(work, folder, WORKS[work]), counts[work]
    assert abs(now.others - before.others) < before.others / 1000
    assert abs(now.libcrypto - before.libcrypto) < before.libcrypto / 1000


def copy_inputs(prepared, folder):
    ignored = shutil.ignore_patterns("large", "callgrind.*")
    shutil.copytree(prepared, folder, ignore=ignored, dirs_exist_ok=True)


PROFILE = """\
ob=(1) /x/Benchmark
fl=(1) ???
fn=(1) ours
10 5
cob=(2) /lib/libcrypto.so.3
cfi=(2) ???
cfn=(2) SHA256_Update
calls=2 0
11 700
cfn=(3) theirs
calls=1 0
12 40

fn=(3)
20 40

ob=(2)
fn=(2)
0 100
cfn=(4) 0x1000
calls=1 0
1 600
fn=(4)
2 600
"""


def test_a_profile_has_the_costs_of_functions_and_of_the_calls_between_them():
    profile = callgrind.Profile(PROFILE)
    program, library = "Benchmark", "libcrypto.so.3"
    assert profile.costs == {
        (program, "ours"): 5,
        (program, "theirs"): 40,
        (library, "SHA256_Update"): 100,
        (library, "0x1000"): 600,
    }
    assert profile.calls == {
        ((program, "ours"), (library, "SHA256_Update")): 700,
        ((program, "ours"), (program, "theirs")): 40,
        ((library, "SHA256_Update"), (library, "0x1000")): 600,
    }
    taken = callgrind.counts(profile, 5)
    assert (taken.libcrypto, taken.others) == (140, 9)
    assert taken.functions == {"theirs": 8, "ours": 1}
    assert taken.calls == {"SHA256_Update, called by ours": 140}
