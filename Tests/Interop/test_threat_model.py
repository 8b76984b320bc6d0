"""Every test that docs/threat-model.md names is there, and so is every file and function that other documents name."""

import json
import re
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs/threat-model.md").read_text()
DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "firmware-sim/README.md", *sorted((ROOT / "docs").glob("*.md"))]


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


def prose(document):
    """A document without its blocks of code."""
    return re.sub(r"^```.*?^```$", "", document.read_text(), flags=re.DOTALL | re.MULTILINE)


def source(name):
    """The file or folder of that name in the repository or below Sources/; None where there is none."""
    return next((place / name for place in (ROOT, ROOT / "Sources") if (place / name).exists()), None)


def anchors(document):
    """The headings of a document, as links name them."""
    titles = re.findall(r"^#+ (.+)$", prose(document), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


class Documents(unittest.TestCase):
    def test_each_link_leads_somewhere(self):
        for document in DOCUMENTS:
            for link in re.findall(r"\]\(([^)\s]+)\)", prose(document)):
                with self.subTest(f"{document.name}: {link}"):
                    path, _, anchor = link.partition("#")
                    target = document.parent / path if path else document
                    self.assertTrue(target.exists())
                    self.assertTrue(not anchor or anchor in anchors(target))

    def test_each_file_is_there(self):
        for name in ("CONTRIBUTING.md", "docs/architecture.md", "docs/porting.md"):
            for path in re.findall(r"`([\w.+-]+/[\w./+-]+\.(?:swift|py|c|h|md|json|ld))`", prose(ROOT / name)):
                with self.subTest(f"{name}: {path}"):
                    self.assertIsNotNone(source(path))

    def test_each_function_of_a_path_is_in_its_file(self):
        found = 0
        for line in (ROOT / "docs/architecture.md").read_text().splitlines():
            cells = [cell.strip() for cell in line.strip("|").split("|")]
            if len(cells) != 3 or not re.fullmatch(r"`[^`]+\.(swift|c)`", cells[2]):
                continue
            text = source(cells[2].strip("`")).read_text()
            for function in re.findall(r"`(\w+)`", cells[1]):
                found += 1
                with self.subTest(f"{function} in {cells[2]}"):
                    self.assertRegex(text, rf"func {function}\b|\binit[(<?]" if function == "init" else rf"\b{function}[(<]")
        self.assertGreater(found, 60)

    def test_the_figures_of_the_firmware_are_those_reached(self):
        reached = json.loads((ROOT / "Tests/Firmware/reached.json").read_text())
        table = (ROOT / "docs/performance.md").read_text()
        for name, value in reached.items():
            with self.subTest(name):
                figure = f"{value:,}" if isinstance(value, int) else f"{value:.3f}"
                self.assertRegex(table, rf"(?m)^{re.escape(name)} .* {re.escape(figure)}( |$)")
        for name in ("text of the image", "static RAM, with the handlers' stack", "stack"):
            with self.subTest(f"README.md: {name}"):
                self.assertIn(f"{reached[name]:,}", (ROOT / "README.md").read_text())


if __name__ == "__main__":
    unittest.main()
