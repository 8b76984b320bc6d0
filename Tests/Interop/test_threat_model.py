"""Every test that docs/threat-model.md names is there."""

import re
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs/threat-model.md").read_text()


def rows():
    """threat → what the column "shown by" says."""
    table = [line.strip("| \n").split(" | ") for line in PAGE.splitlines() if line.startswith("| ")]
    return {cells[0]: cells[2] if len(cells) > 2 else "" for cells in table[2:]}


def sentences():
    """The names of all tests in Swift Testing."""
    text = "".join(file.read_text() for file in (ROOT / "Tests").rglob("*.swift"))
    return re.findall(r"func `([^`]+)`", text)


class ThreatModel(unittest.TestCase):
    def test_each_threat_has_a_test(self):
        self.assertGreater(len(rows()), 30)
        for threat, shown in rows().items():
            with self.subTest(threat):
                self.assertTrue(shown.strip())

    def test_each_name_is_a_tests(self):
        names = sentences()
        suites = {file.stem for file in (ROOT / "Tests").rglob("*.swift")}
        for shown in rows().values():
            for name in re.findall(r"`([^`]+)`", shown):
                with self.subTest(name):
                    self.assertTrue(self.is_there(name, names, suites))

    def is_there(self, name, names, suites):
        if name.startswith("make "):
            return f"\n{name.removeprefix('make ')}:" in (ROOT / "Makefile").read_text()
        if "/" in name:
            return (ROOT / name).exists()
        if " " not in name:
            return name in suites
        return any(sentence.startswith(name.removesuffix("…")) if name.endswith("…") else sentence == name for sentence in names)


if __name__ == "__main__":
    unittest.main()
