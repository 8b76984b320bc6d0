"""The packages below Examples/, built as a stranger's would be: copied to an empty folder, and depending on Holdfast by its path."""

import pathlib
import shutil
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
# All examples share it, so that Holdfast's modules are compiled once. SwiftPM lets one of them build at a time.
SCRATCH = ROOT / ".build-examples"
# With other options, they would be compiled again.
OPTIONS = ["--scratch-path", str(SCRATCH), "--disable-index-store", "-Xswiftc", "-gnone"]
BUILD = ["swift", "build", *OPTIONS]


def built(name, folder):
    """The folder with the programs of the example `name`, which is copied to `folder` and built."""
    package = pathlib.Path(folder) / name
    shutil.copytree(ROOT / "Examples" / name, package, ignore=shutil.ignore_patterns(".build*", "Package.resolved"))
    manifest = package / "Package.swift"
    manifest.write_text(manifest.read_text().replace('path: "../.."', f'path: "{ROOT}"'))
    done = subprocess.run([*BUILD, "--quiet"], cwd=package, capture_output=True, text=True, timeout=1800, check=False)
    assert done.returncode == 0, (done.stdout + done.stderr)[-2000:]
    return SCRATCH / "debug"
