"""The instructions of hot paths, against those that were reached: three percent more fail, with the function that grew.

`--keep` writes instructions.json anew, after an improvement or with another compiler. The works are those of Benchmark
(Tests/Benchmark/Program), compiled with the tests.
"""

import dataclasses
import json
import pathlib
import subprocess
import tempfile

import callgrind
import pytest

FILE = pathlib.Path(__file__).resolve().parent / "instructions.json"
# A work → its repetitions.
WORKS = {"token": 20, "round": 100, "proof": 200, "measure": 2, "hotp": 500}
MOST_GROWTH = 0.03


@pytest.fixture(scope="module")
def counts(request):
    """What each work takes now."""
    program = request.config.getoption("benchmark").absolute()
    assert program.is_file(), f"there is no {program}: build the tests, or name another with --benchmark"
    with tempfile.TemporaryDirectory(prefix="hf") as folder:
        subprocess.run([program, "inputs", folder], check=True, timeout=callgrind.SECONDS)
        # valgrind reads names, and stops at debugging information that is newer than itself.
        named = pathlib.Path(folder) / "Benchmark"
        subprocess.run(["strip", "--strip-debug", "-o", named, program], check=True, timeout=callgrind.SECONDS)
        counts = {work: callgrind.count(named, work, folder, number) for work, number in WORKS.items()}
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


def growth(now, before):
    """The functions that grew, most first, as lines."""
    grown = {name: number - before.get(name, 0) for name, number in now.items() if number > before.get(name, 0)}
    lines = [
        f"  {name[:100]}: {now[name]:,}, {before.get(name, 0):,} before"
        for name in sorted(grown, key=grown.get, reverse=True)
    ]
    return "\n".join(lines[:5])


@pytest.mark.parametrize("work", WORKS)
def test_a_work_takes_no_more_instructions_than_were_reached(counts, reached, work):
    now, before = counts[work], reached["works"][work]
    most = before["others"] * (1 + MOST_GROWTH)
    if now.others > most:
        pytest.fail(
            f"{now.others:,} instructions, at most {most:,.0f}; grown:\n{growth(now.functions, before['functions'])}",
            pytrace=False,
        )


@pytest.mark.parametrize("work", WORKS)
def test_a_work_asks_no_more_of_libcrypto(counts, reached, work):
    if callgrind.libcrypto_version() != reached["libcrypto"]:
        pytest.skip(f"libcrypto is {callgrind.libcrypto_version()}, and {reached['libcrypto']} was counted")
    now, most = counts[work].libcrypto, reached["works"][work]["libcrypto"] * (1 + MOST_GROWTH)
    assert now <= most, f"{now:,} instructions in libcrypto, at most {most:,.0f}"
