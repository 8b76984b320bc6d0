"""The guard of the public surface (Tools/api) finds what is removed, changed or added, and nothing else."""

import pytest
from tiny_package import TinyPackage, restored


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    """A package whose list is up to date."""
    package = TinyPackage(tmp_path_factory.mktemp("tiny") / "package")
    package.compile()
    assert package.run("api", "--renew").returncode == 0
    return package


@pytest.fixture
def package(original):
    with restored(original):
        yield original


def found(package):
    """The lines of a comparison, which fails exactly if there are any."""
    done = package.run("api")
    lines = done.stdout.splitlines()
    assert done.returncode == (1 if lines else 0), done.stderr
    assert ("make api" in done.stderr) == bool(lines)
    return lines


ADD = "  public func add(_ number: Int) throws(Reason) -> Box { Box(count: count + number) }"
SIGNATURE = "func add(_ number: Int) throws(Reason) -> Box"
CHANGES = {
    "a function is removed": (ADD, "", [f"removed: Box.add(_:): {SIGNATURE}"]),
    "a function is no longer public": (ADD, ADD.replace("public", "package"), [f"removed: Box.add(_:): {SIGNATURE}"]),
    "a parameter has another type": (
        ADD,
        ADD.replace("number: Int", "number: Int32").replace("+ number", "+ Int(number)"),
        [f"changed: Box.add(_:): {SIGNATURE}  ->  {SIGNATURE.replace('Int)', 'Int32)')}"],
    ),
    "any error is thrown": (
        ADD,
        ADD.replace("throws(Reason)", "throws"),
        [f"changed: Box.add(_:): {SIGNATURE}  ->  {SIGNATURE.replace('(Reason)', '')}"],
    ),
    "a label is another": (
        ADD,
        ADD.replace("_ number", "more number"),
        [f"removed: Box.add(_:): {SIGNATURE}", f"added: Box.add(more:): {SIGNATURE.replace('_ ', 'more ')}"],
    ),
    "a default is gone": (
        "count: Int = 0)",
        "count: Int)",
        ["changed: Box.init(count:): init(count: Int = 0)  ->  init(count: Int)"],
    ),
    "a property can be set": (
        "public let count",
        "public var count",
        ["changed: Box.count: let count: Int  ->  var count: Int"],
    ),
    "a conformance is gone": (
        "Hashable, Sendable",
        "Equatable, Sendable",
        ["removed: Box: conforms to Swift.Hashable"],
    ),
    "a type cannot be copied": (
        "public protocol Counted {",
        "public protocol Counted: ~Copyable {",
        ["changed: Counted: protocol Counted  ->  is not Copyable", "added: Counted: protocol Counted : ~Copyable"],
    ),
    "raw values have another type": (
        "Reason: UInt8, Error",
        "Reason: UInt16, Error",
        [
            "changed: Reason: has raw values of UInt8  ->  has raw values of UInt16",
            "changed: Reason.init(rawValue:): init?(rawValue: UInt8)  ->  init?(rawValue: UInt16)",
        ],
    ),
    "a case is added": ("  case full = 1", "  case full = 1\n  case shut", ["added: Reason.shut: case shut"]),
    "a requirement is added": (
        "  var count: Int { get }",
        "  var count: Int { get }\n  var limit: Int { get }",
        ["added: Counted.limit: var limit: Int { get }"],
    ),
    "a type of another library is extended": (
        "/// Something",
        "extension Array where Element == Box { public var total: Int { 0 } }\n\n/// Something",
        ["added: Array.total: var total: Int { get } where Element == Box"],
    ),
}


@pytest.mark.parametrize("change", CHANGES)
def test_it_names_what_differs_if(package, change):
    old, new, lines = CHANGES[change]
    package.edit(package.source, old, new)
    package.compile()
    assert found(package) == [f"Tiny: {line}" for line in lines]


def test_a_list_that_was_written_anew_does_not_differ(package):
    package.edit(package.source, ADD, "")
    package.compile()
    assert len(found(package)) == 1
    assert package.run("api", "--renew").returncode == 0
    assert found(package) == []
    assert "Box.add" not in package.list.read_text()


def test_what_no_other_package_sees_does_not_count(package):
    package.edit(package.source, "package func clear() {}", "package func refill(_ number: Int) {}")
    package.edit(package.source, "/// Adds things.", "/// Puts more things into the box.")
    package.edit(package.source, "count + number", "number + count")
    package.compile()
    assert found(package) == []


def test_the_list_does_not_depend_on_the_place(package, tmp_path):
    other = TinyPackage(tmp_path / "another folder")
    other.compile()
    assert other.run("api", "--renew").returncode == 0
    assert other.list.read_bytes() == package.list.read_bytes()
    assert str(tmp_path) not in package.list.read_text()


def test_a_library_without_a_list_is_new_and_a_list_without_a_library_is_old(package):
    package.list.rename(package.list.with_name("Other.txt"))
    lines = found(package)
    assert "Tiny: added: Box: struct Box" in lines
    assert lines[-1] == "Other: removed: it is no library of this package"
    assert package.run("api", "--renew").returncode == 0
    assert [path.name for path in package.list.parent.iterdir()] == ["Tiny.txt"]


def test_a_library_that_was_not_built_is_an_error_and_no_difference(package):
    (package.build / "Modules/Tiny.swiftmodule").unlink()
    before = package.list.read_bytes()
    for arguments in ((), ("--renew",)):
        done = package.run("api", *arguments)
        assert done.returncode == 1
        assert "has no module Tiny: build the package first" in done.stderr
    assert package.list.read_bytes() == before


def test_a_module_that_cannot_be_read_is_an_error(package):
    (package.build / "Modules/Tiny.swiftmodule").write_bytes(b"damaged")
    before = package.list.read_bytes()
    done = package.run("api", "--renew")
    assert done.returncode == 1
    assert done.stderr.startswith("api: ")
    assert package.list.read_bytes() == before


def test_a_library_for_other_languages_is_left_out(package):
    package.edit(package.manifest, '.library(name: "Tiny", targets', '.library(name: "Tiny", type: .dynamic, targets')
    assert found(package) == ["Tiny: removed: it is no library of this package"]
