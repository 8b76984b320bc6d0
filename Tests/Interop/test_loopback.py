"""Both interoperability scripts against a stand-in made of the same package: they have to pass, and to fail where they should."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent


def run(script, *more, program=None):
    """The finished script, run against the stand-in, or against `program`, a Python text."""
    with tempfile.TemporaryDirectory(prefix="hf") as folder:
        program = program or f"import runpy\nrunpy.run_path({str(HERE / 'loopback_holdfast.py')!r}, run_name='__main__')\n"
        path = pathlib.Path(folder) / "holdfast"
        path.write_text(f"#!{sys.executable}\nimport sys\nsys.path.insert(0, {str(HERE)!r})\n{program}")
        path.chmod(0o755)
        return subprocess.run([sys.executable, HERE / script, "--holdfast", path, *more], capture_output=True, text=True, check=False)


class Loopback(unittest.TestCase):
    def check(self, script):
        done = run(script)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertRegex(done.stdout, r"\A\d+ passed, 0 failed\n\Z")
        self.assertEqual(done.stderr, "")

    def test_prover_against_device(self):
        self.check("prover_against_device.py")

    def test_device_against_prover(self):
        self.check("device_against_prover.py")

    def test_a_program_that_does_nothing_fails(self):
        for script in ("prover_against_device.py", "device_against_prover.py"):
            for program in ("sys.exit(0)\n", "sys.exit(1)\n"):
                with self.subTest(script=script, program=program):
                    done = run(script, program=program)
                    self.assertEqual(done.returncode, 1)
                    self.assertRegex(done.stdout, r"\AFAILED .*\n0 passed, 1 failed\n\Z")


if __name__ == "__main__":
    unittest.main()
