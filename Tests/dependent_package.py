#!/usr/bin/env python3
"""An app in another package builds its own keys in: mpk.key at its root, or the file that HOLDFAST_MPK_KEY names.

usage: Tests/dependent_package.py [--scratch FOLDER]

It builds Holdfast's measurement library once more, for some minutes, and is therefore not part of `make test`.
"""

import argparse
import os
import pathlib
import secrets
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "Interop"))

from holdfast_peer import measurement
from holdfast_peer.checks import Checks, expect, expect_equal
from holdfast_peer.primitives import sha256

MANIFEST = """// swift-tools-version: 6.2
import PackageDescription

let package = Package(
  name: "app", dependencies: [.package(name: "holdfast", path: "{holdfast}")],
  targets: [
    .executableTarget(name: "app", dependencies: [.product(name: "HoldfastMeasurement", package: "holdfast")])
  ])
"""
MAIN = """import HoldfastMeasurement

let proof = try? integrityMeasurementProof(nonce: [UInt8](repeating: 0, count: 16), configuration: [])
let id = try BuiltInKeys.keyID(of: BuiltInKeys.current)
var text = ""
for index in 0..<8 { text += id[index] < 16 ? "0" + String(id[index], radix: 16) : String(id[index], radix: 16) }
print(BuiltInKeys.isDevelopmentKey, BuiltInKeys.count, text)
BuiltInKeys.warnOfDevelopmentKey()
BuiltInKeys.warnOfDevelopmentKey()
"""
DEVELOPMENT_ROOT = sha256(b"holdfast development measurement proof key")[:16]


class App:
    def __init__(self, folder, scratch):
        self.folder, self.scratch = folder, scratch
        (folder / "Sources" / "app").mkdir(parents=True)
        (folder / "Sources" / "app" / "main.swift").write_text(MAIN)
        self.key_file = folder / "mpk.key"

    def build(self, **environment):
        """The finished build; the manifest is new each time, so that the plugin is asked."""
        (self.folder / "Package.swift").write_text(MANIFEST.format(holdfast=HERE.parent))
        environment = {k: v for k, v in os.environ.items() if k != "HOLDFAST_MPK_KEY"} | environment
        return subprocess.run(
            ["swift", "build", "--scratch-path", self.scratch],
            cwd=self.folder,
            env=environment,
            capture_output=True,
            text=True,
            timeout=3000,
            check=False,
        )

    def expect_keys(self, roots, mention, **environment):
        done = self.build(**environment)
        said = done.stdout + done.stderr
        expect_equal(done.returncode, 0, f"exit status of the build: {said[-800:]}")
        expect(mention in said, f"'{mention}' is not in: {said[-800:]}")
        run = subprocess.run([self.scratch / "debug" / "app"], capture_output=True, text=True, timeout=60, check=True)
        is_development = roots == [DEVELOPMENT_ROOT]
        _, proof_key = measurement.release_keys(roots[0])
        expect_equal(
            run.stdout.split(),
            [str(is_development).lower(), str(len(roots)), measurement.proof_key_id(proof_key).hex()],
            "keys",
        )
        expect_equal(run.stderr.count("development measurement proof key"), int(is_development), "number of warnings")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--scratch", type=pathlib.Path, help="where the build goes; in the package when absent")
    options = parser.parse_args()
    checks = Checks()
    with tempfile.TemporaryDirectory(prefix="hf") as folder:
        folder = pathlib.Path(folder)
        app = App(folder / "app", options.scratch or folder / "app" / ".build")
        own, named = [secrets.token_bytes(16) for _ in range(2)], secrets.token_bytes(16)
        elsewhere = folder / "elsewhere.key"
        elsewhere.write_text(named.hex())
        checks.run(
            "without a key file, the development key is built in, and build and program say so",
            app.expect_keys,
            [DEVELOPMENT_ROOT],
            "development key",
        )
        app.key_file.write_text("".join(root.hex() + "\n" for root in own))
        checks.run(
            "the app's own mpk.key is built in, and the build names it",
            app.expect_keys,
            own,
            "the keys of mpk.key in app",
        )
        checks.run(
            "HOLDFAST_MPK_KEY comes first",
            lambda: app.expect_keys(
                [named], f"the keys of elsewhere.key in {folder.name}", HOLDFAST_MPK_KEY=str(elsewhere)
            ),
        )

        def refused(mention, **environment):
            done = app.build(**environment)
            expect(
                done.returncode != 0 and mention in done.stdout + done.stderr,
                f"the build: {(done.stdout + done.stderr)[-500:]}",
            )

        for path in (folder / "none", pathlib.Path("mpk.key"), pathlib.Path("")):
            checks.run(
                f"HOLDFAST_MPK_KEY that names no file by an absolute path is refused: '{path.name}'",
                lambda path=path: refused("HOLDFAST_MPK_KEY", HOLDFAST_MPK_KEY=str(path)),
            )
        app.key_file.write_text("0123\n")
        checks.run("a key file that is none is refused by its line", lambda: refused("mpk.key:1"))
    sys.exit(checks.finish())


if __name__ == "__main__":
    main()
