"""The header of the C interface: it compiles everywhere, and no change of it goes unnoticed."""

import re
import subprocess

import pytest
from c_library import BASELINE, HEADER, STRICT, abi, declarations, difference, run

COMPILERS = (
    ("gcc", "-std=c99", "-xc"),
    ("gcc", "-std=c17", "-xc"),
    ("g++", "-std=c++98", "-xc++"),
    ("g++", "-std=c++17", "-xc++"),
)


@pytest.mark.parametrize("compiler", COMPILERS, ids=" ".join)
def test_the_header_compiles_without_a_warning(compiler):
    run(*compiler, *STRICT, "-fsyntax-only", HEADER)


def test_the_library_exports_exactly_what_the_header_declares(c_library):
    listed = run("nm", "--dynamic", "--defined-only", "--with-symbol-versions", c_library.file)
    exported = {line.split()[-1] for line in listed.splitlines() if " A " not in line}
    assert exported == {f"{name}@@HOLDFAST_1" for name in declarations(HEADER.read_text())}


def test_the_library_has_its_name_and_needs_only_libraries_of_the_system(c_library):
    dynamic = run("readelf", "--dynamic", "--wide", c_library.file)
    assert re.search(r"SONAME.*\[libholdfast\.so\.1\]", dynamic)
    needed = set(re.findall(r"NEEDED.*\[(.*?)\.so", dynamic))
    assert not any(name.startswith("libswift") or "Foundation" in name for name in needed), needed
    assert "/opt" not in dynamic and "/src" not in dynamic, "a path of the machine that built it"


def test_programs_built_with_the_last_header_work_with_this_one(tmp_path, request):
    now = abi(HEADER.read_text(), tmp_path / "now")
    if request.config.getoption("keep"):
        BASELINE.write_bytes(now.read_bytes())
    assert difference(BASELINE, now) == ""


CHANGES = {
    "a parameter's type": ("size_t token_length,", "uint32_t token_length,"),
    "a parameter that goes": (", const char *question,\n", ",\n"),
    "a function that goes": ("int hf_prover_cancel(hf_prover_t *prover);", ""),
    "a result's type": ("int hf_version(", "unsigned hf_version("),
    "a number of an error": ("HF_ERROR_FULL = -11", "HF_ERROR_FULL = -31"),
    "a number of a status": ("HF_BUSY = 14", "HF_BUSY = 15"),
    "a size": ("#define HF_VERDICT_BYTES 1152", "#define HF_VERDICT_BYTES 2048"),
    "a member that comes": ("  const char *seal;\n", "  const char *seal;\n  const char *more;\n"),
    "members that change places": (
        "  const char *user;\n  /* The app that the token names; may be empty. */\n  const char *subject;\n",
        "  const char *subject;\n  /* . */\n  const char *user;\n",
    ),
    "a callback's parameter": ("const hf_command_t *command, uint8_t *result", "const char *command, uint8_t *result"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_of_the_header_is_noticed(tmp_path, change):
    before, after = CHANGES[change]
    header = HEADER.read_text()
    assert before in header, "the header has changed: change this test, too"
    assert difference(BASELINE, abi(header.replace(before, after), tmp_path / "changed")) != ""


def test_a_new_function_and_a_new_error_are_compatible(tmp_path):
    header = HEADER.read_text().replace("HF_ERROR_BUFFER = -2,", "HF_ERROR_NEW = -99,\n  HF_ERROR_BUFFER = -2,")
    header = header.replace("int hf_version(", "int hf_new(int number);\nint hf_version(")
    added = abi(header, tmp_path / "added")
    words = ["abidiff", "--no-added-syms", BASELINE, added]
    assert subprocess.run(words, capture_output=True).returncode == 0
