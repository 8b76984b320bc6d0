"""docs/getting-started.md: its commands, run in their order by one shell in an empty home, print what the page says.

`make` and the build folder are given. The example is built in the folder that all examples share.
"""

import os
import pathlib
import re
import shlex
import shutil
import subprocess

import examples
import pytest

PAGE = examples.ROOT / "docs" / "getting-started.md"
# A command, and the output that the comment after it promises.
PROMISE = re.compile(r"^(?P<command>\S.*?) {2,}# (?P<output>.+)$", re.MULTILINE)
PRINTS = ("$app press", "./patched", "tail")
CONNECT = "import socket, sys; socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET).connect(sys.argv[1])"


def blocks():
    return re.findall(r"^```sh\n(.*?)^```$", PAGE.read_text(), re.DOTALL | re.MULTILINE)


def promises(text):
    return [match["output"] for match in PROMISE.finditer(text) if match["command"].startswith(PRINTS)]


def script():
    """The blocks. Each device that is started is waited for until it listens."""
    wait = f"for i in $(seq 600); do python3 -c '{CONNECT}' \\1 2>/dev/null && break; sleep 0.1; done"
    return re.sub(r"^.*--listen unix:(\S+) .*&$", rf"\g<0>\n{wait}", "".join(blocks()), flags=re.MULTILINE)


def program(path, text):
    path.write_text("#!/bin/sh\n" + text)
    path.chmod(0o755)


@pytest.fixture(scope="module")
def run(holdfast, tmp_path_factory):
    """The finished shell, and its home."""
    home = tmp_path_factory.mktemp("home")
    tools = home / "tools"
    tools.mkdir()
    (tools / "holdfast").symlink_to(holdfast)
    program(tools / "make", f'echo "make $*" >>{home}/made\n')
    # Its own home, for what SwiftPM has downloaded.
    program(
        tools / "swift",
        f'export HOME="{os.environ.get("HOME", "/")}"\n'
        f'"{shutil.which("swift")}" "$@" --quiet {shlex.join(examples.OPTIONS)} && ln -sfn "{examples.SCRATCH}" .build\n',
    )
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("XDG_", "HOLDFAST_"))}
    environment |= {"HOME": str(home), "PATH": f"{tools}:{environment['PATH']}", "NO_COLOR": "1"}
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", f"trap 'kill $(jobs -p) 2>/dev/null || :' EXIT\n{script()}"],
        cwd=examples.ROOT,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=1800,
    )
    return done, home


def test_each_command_succeeds_and_prints_what_the_page_says(run):
    done, _ = run
    assert done.returncode == 0, done.stdout[-1000:] + done.stderr[-3000:]
    expected, printed = promises(PAGE.read_text()), iter([line.rstrip() for line in done.stdout.splitlines()])
    assert len(expected) == 8
    missing = [line for line in expected if line not in printed]
    assert not missing, done.stdout


def test_what_the_page_makes_is_a_target_and_the_key_of_the_app_is_its_owners(run):
    _, home = run
    made = (home / "made").read_text().splitlines()
    makefile = (examples.ROOT / "Makefile").read_text()
    assert made == ["make build", "make demo"]
    assert all(f"\n{line.removeprefix('make ')}:" in makefile for line in made)
    folder = pathlib.Path(home) / "first-hour"
    assert (folder / "FieldApp/mpk.key").stat().st_mode & 0o077 == 0
    assert not (folder / "evidence.cbor").exists(), "evidence is left"


def test_no_block_is_of_a_kind_that_is_not_run_and_the_page_is_short():
    text = PAGE.read_text()
    assert set(re.findall(r"^```(.+)$", text, re.MULTILINE)) == {"sh"}
    assert not re.search(r"^ {4}\S", text, re.MULTILINE), "an indented block"
    assert len(text.splitlines()) <= 150
