"""Every test that docs/threat-model.md names is there, and so is every file and function that other documents name."""

import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs/threat-model.md").read_text()
DOCUMENTS = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "firmware-sim/README.md",
    *sorted((ROOT / "docs").glob("*.md")),
]


def rows():
    """threat → what the column "shown by" says."""
    table = [line.strip("| \n").split(" | ") for line in PAGE.splitlines() if line.startswith("| ")]
    return {cells[0]: cells[2] if len(cells) > 2 else "" for cells in table[2:]}


def sentences():
    """The names of all tests in Swift Testing."""
    text = "".join(file.read_text() for file in (ROOT / "Tests").rglob("*.swift"))
    return re.findall(r"func `([^`]+)`", text)


def test_each_threat_has_a_test():
    assert len(rows()) > 30
    missing = [threat for threat, shown in rows().items() if not shown.strip()]
    assert not missing


def test_each_name_is_a_tests():
    names = sentences()
    suites = {file.stem for file in (ROOT / "Tests").rglob("*.swift")}
    unknown = [
        name
        for shown in rows().values()
        for name in re.findall(r"`([^`]+)`", shown)
        if not is_there(name, names, suites)
    ]
    assert not unknown


def is_there(name, names, suites):
    """A target of the Makefile, a file, a test in a file (`file::test`), a Swift suite, or a test's sentence, perhaps cut short."""
    if name.startswith("make "):
        return f"\n{name.removeprefix('make ')}:" in (ROOT / "Makefile").read_text()
    if "/" in name:
        path, _, test = name.partition("::")
        return (ROOT / path).exists() and (not test or f"def {test}(" in (ROOT / path).read_text())
    if " " not in name:
        return name in suites
    return any(
        sentence.startswith(name.removesuffix("…")) if name.endswith("…") else sentence == name for sentence in names
    )


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


def test_each_link_leads_somewhere():
    broken = []
    for document in DOCUMENTS:
        for link in re.findall(r"\]\(([^)\s]+)\)", prose(document)):
            path, _, anchor = link.partition("#")
            target = document.parent / path if path else document
            if not target.exists() or anchor and anchor not in anchors(target):
                broken.append(f"{document.name}: {link}")
    assert not broken


@pytest.mark.parametrize("name", ["CONTRIBUTING.md", "docs/architecture.md", "docs/porting.md", "docs/testing.md"])
def test_each_file_that_is_named_is_there(name):
    paths = re.findall(r"`([\w.+-]+/[\w./+-]+\.(?:swift|py|c|h|md|json|ld))`", prose(ROOT / name))
    assert [path for path in paths if source(path) is None] == []


def test_each_function_of_a_path_is_in_its_file():
    found = 0
    for line in (ROOT / "docs/architecture.md").read_text().splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) != 3 or not re.fullmatch(r"`[^`]+\.(swift|c)`", cells[2]):
            continue
        text = source(cells[2].strip("`")).read_text()
        for function in re.findall(r"`(\w+)`", cells[1]):
            found += 1
            pattern = rf"func {function}\b|\binit[(<?]" if function == "init" else rf"\b{function}[(<]"
            assert re.search(pattern, text), f"{function} in {cells[2]}"
    assert found > 60


def test_the_figures_of_the_firmware_are_those_reached():
    reached = json.loads((ROOT / "Tests/Firmware/reached.json").read_text())
    table = (ROOT / "docs/performance.md").read_text()
    for name, value in reached.items():
        figure = f"{value:,}" if isinstance(value, int) else f"{value:.3f}"
        assert re.search(rf"(?m)^{re.escape(name)} .* {re.escape(figure)}( |$)", table), name
    for name in ("text of the image", "static RAM, with the handlers' stack", "stack"):
        assert f"{reached[name]:,}" in (ROOT / "README.md").read_text(), f"README.md: {name}"
