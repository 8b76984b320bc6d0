"""The builder of the documentation (Tools/docs) accepts no page without a program, no wrong program and no warning."""

import json

import pytest
from tiny_package import TinyPackage, restored

PAGE = "Sources/Tiny/Tiny.docc/Tiny.md"
SOURCE = "Sources/Tiny/Tiny.swift"


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    package = TinyPackage(tmp_path_factory.mktemp("tiny") / "package")
    package.compile()
    return package


@pytest.fixture
def package(original):
    with restored(original):
        yield original


@pytest.fixture
def site(package):
    return package.folder / ".build/docs"


def test_it_builds_a_site(package, site):
    done = package.run("docs")
    assert done.returncode == 0, done.stdout + done.stderr
    assert str(site) in done.stdout
    page = json.loads((site / "data/documentation/tiny.json").read_text())
    assert page["metadata"]["title"] == "Tiny"
    assert "Box().add(1)" in json.dumps(page)
    assert (site / "documentation/tiny/index.html").is_file()
    assert package.run("docs").returncode == 0, "once more, over the first site"


WRONG = {
    "there is no page": ("page", None, None, f"{PAGE}: Tiny is a product, and has no such page"),
    "the page has no program": ("page", "```swift\nimport", "```text\nimport", f"{PAGE}:1: not a title"),
    "a heading comes before the program": ("page", "Boxes.\n", "Boxes.\n\n## Use\n", f"{PAGE}:1: not a title"),
    "the page is another library's": ("page", "# ``Tiny``", "# ``Other``", f"{PAGE}:1: not a title"),
    "the program is wrong": ("page", "add(1)", "remove(1)", f"{PAGE}:8:21: error: value of type 'Box' has no member"),
    "the program uses what is not public": (
        "page",
        "print(box.count)",
        "box.clear()",
        f"{PAGE}:9:5: error: 'clear' is inaccessible",
    ),
    "the program has a warning": (
        "page",
        "print(box.count)",
        "try box.add(2)",
        f"{PAGE}:9:9: error: result of call to 'add' is unused",
    ),
    "another program of the page is wrong": (
        "page",
        "## Topics",
        "```swift\nimport Tiny\nlet box: Crate\n```\n\n## Topics",
        f"{PAGE}:14:10: error: cannot find type 'Crate'",
    ),
    "a link leads nowhere": ("page", "- ``Box``", "- ``Crate``", f"{PAGE}:16:5: error: 'Crate' doesn't exist"),
    "a comment links what is not public": (
        "source",
        "/// Adds things.",
        "/// Adds things; see ``clear()``.",
        f"{SOURCE}:15:26: error: 'clear()' doesn't exist",
    ),
    "a comment documents another parameter": ("source", "Parameter number", "Parameter count", f"{SOURCE}:17:"),
}


@pytest.mark.parametrize("fault", WRONG)
def test_there_is_no_site_if(package, site, fault):
    place, old, new, message = WRONG[fault]
    path = getattr(package, place)
    if old is None:
        path.unlink()
    else:
        package.edit(path, old, new)
        package.compile()
    done = package.run("docs")
    assert done.returncode == 1
    assert any(line.startswith(message) for line in done.stdout.splitlines()), done.stdout
    assert not site.exists()


def test_a_site_stays_while_there_are_faults(package, site):
    assert package.run("docs").returncode == 0
    before = {path: path.read_bytes() for path in site.rglob("*") if path.is_file()}
    package.edit(package.page, "add(1)", "remove(1)")
    assert package.run("docs").returncode == 1
    assert {path: path.read_bytes() for path in site.rglob("*") if path.is_file()} == before
