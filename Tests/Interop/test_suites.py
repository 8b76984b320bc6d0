"""Every file of tests belongs to a suite of `make test`."""

import pathlib
import re
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
# `make test-packages` has its own tests, and the peer of the tests is none.
FOLDERS = ("Benchmark", "ConstantTime", "Couriers", "Firmware", "Interop", "Mutants", "Simulation", "Tools")


def named(script):
    """The files of tests that a script names, with braces expanded as bash does; a folder stands for all files in it."""
    words = re.findall(r"Tests/[\w/]*(?:[\w{},.]*\.py|[\w/]*)", script)
    expanded = subprocess.run(
        ["bash", "-c", "printf '%s\\n' " + " ".join(words)], capture_output=True, text=True, check=True
    )
    for name in expanded.stdout.split():
        path = ROOT / name
        yield from path.rglob("test_*.py") if path.is_dir() else [path]


def test_each_file_of_tests_belongs_to_a_suite():
    suites = {str(path.relative_to(ROOT)) for path in named((ROOT / "Tests/run").read_text())}
    files = {str(path.relative_to(ROOT)) for folder in FOLDERS for path in (ROOT / "Tests" / folder).rglob("test_*.py")}
    assert not files - suites
    assert not {name for name in suites if not (ROOT / name).exists()}


def test_braces_and_folders_are_expanded():
    script = 'suite x "${tests[@]}" Tests/Firmware/test_{board{,_costs},curve}.py Tests/Mutants\n'
    names = [str(path.relative_to(ROOT)) for path in named(script)]
    assert names[:3] == [f"Tests/Firmware/test_{name}.py" for name in ("board", "board_costs", "curve")]
    assert names[3:] == ["Tests/Mutants/test_mutants.py"]
