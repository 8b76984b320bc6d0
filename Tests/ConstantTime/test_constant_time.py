"""Running times over secrets: no branch and no address depends on one, in the optimised modules, as valgrind's memcheck sees it.

The program marks secrets as undefined, computes with them, and checks the results; `libcrypto.supp` says what may depend on them.
"""

import pathlib
import subprocess
import tempfile

import pytest

FOLDER = pathlib.Path(__file__).resolve().parent
FOUND = 99
WORKS = [
    "proof", "hotp", "totp", "ocra", "seals", "pin", "blinded-secret", "base64", "base32", "base16",
    "token-cose", "token-mac", "token-jose", "token-jose-wrapped", "key-wrap",
    "round-hotp", "round-totp", "round-counter-seal", "round-time-seal", "vault",
]  # fmt: skip
BRANCH, ADDRESS = "Conditional jump or move depends on uninitialised value", "Use of uninitialised value"


@pytest.fixture(scope="module")
def program(request):
    """The program with its names, and without debugging information, which is newer than valgrind."""
    built = request.config.getoption("constant_time")
    if not built.exists():
        pytest.fail(f"{built} is not built: make test and make constant-time build it")
    with tempfile.TemporaryDirectory(prefix="hf") as folder:
        named = pathlib.Path(folder) / "ConstantTime"
        subprocess.run(["strip", "--strip-debug", "-o", named, built], check=True)
        yield named


def run(program, work):
    """The exit status of a work, and what memcheck reported."""
    words = ["valgrind", "--quiet", f"--error-exitcode={FOUND}", "--leak-check=no", "--num-callers=40"]
    # Otherwise, a comparison of a number would count as one of all its bytes, also where it only depends on some.
    words += ["--expensive-definedness-checks=yes"]
    words += [f"--suppressions={FOLDER / 'libcrypto.supp'}", program, work]
    done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=1800, check=False)
    return done.returncode, done.stderr


@pytest.mark.parametrize("work", WORKS)
def test_no_branch_and_no_address_depends_on_a_secret(program, work):
    status, report = run(program, work)
    assert status == 0, report[-4000:]


@pytest.mark.parametrize(
    ("work", "function", "kind"),
    [
        ("planted-early-exit", "endsEarly", BRANCH),
        ("planted-table", "looksUp", ADDRESS),
        ("planted-code-check", "isSameText", BRANCH),
        ("planted-switch", "readsBySwitch", BRANCH),
    ],
)
def test_a_planted_dependence_is_found_and_named(program, work, function, kind):
    status, report = run(program, work)
    assert status == FOUND
    assert kind in report and function in report


def test_without_valgrind_nothing_counts_as_checked(program):
    assert subprocess.run([program, "proof"], check=False).returncode == 3
