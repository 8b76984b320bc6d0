"""A package with one small library, compiled in a second, for tests of the tools that read libraries."""

import contextlib
import shutil
import subprocess
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# For a program: other work may keep the processors busy.
TIMEOUT_SECONDS = 1800
MANIFEST = """// swift-tools-version: 6.2
import PackageDescription

let package = Package(
  name: "tiny", products: [.library(name: "Tiny", targets: ["Tiny"])], targets: [.target(name: "Tiny")])
"""
SOURCE = """/// A reason.
public enum Reason: UInt8, Error {
  /// It is full.
  case full = 1
}

/// A box.
public struct Box: Hashable, Sendable {
  /// The number of things in it.
  public let count: Int

  /// Creates a box.
  public init(count: Int = 0) { self.count = count }

  /// Adds things.
  ///
  /// - Parameter number: the number of things.
  public func add(_ number: Int) throws(Reason) -> Box { Box(count: count + number) }

  /// Empties it.
  package func clear() {}
}

/// Something that is counted.
public protocol Counted {
  /// The number.
  var count: Int { get }
}
"""
PAGE = """# ``Tiny``

Boxes.

```swift
import Tiny

let box = try Box().add(1)
print(box.count)
```

## Topics

### Boxes

- ``Box``
"""


class TinyPackage:
    def __init__(self, folder):
        self.folder = folder
        self.source = folder / "Sources/Tiny/Tiny.swift"
        self.page = folder / "Sources/Tiny/Tiny.docc/Tiny.md"
        self.list = folder / "docs/api/Tiny.txt"
        self.manifest = folder / "Package.swift"
        self.build = folder / ".build/debug"
        for path, text in ((self.manifest, MANIFEST), (self.source, SOURCE), (self.page, PAGE)):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)

    def compile(self):
        """What `swift build` would leave of the library."""
        modules = self.build / "Modules"
        modules.mkdir(parents=True, exist_ok=True)
        options = ["-swift-version", "6", "-parse-as-library", "-package-name", "tiny", "-module-name", "Tiny"]
        subprocess.run(
            ["swiftc", *options, "-emit-module", "-emit-module-path", modules / "Tiny.swiftmodule", self.source],
            check=True,
            timeout=TIMEOUT_SECONDS,
        )

    def edit(self, path, old, new):
        """Replaces a text that is there once."""
        text = path.read_text()
        assert text.count(old) == 1
        path.write_text(text.replace(old, new))

    def run(self, tool, *arguments):
        return subprocess.run(
            [ROOT / "Tools" / tool, "--package", self.folder, *arguments],
            capture_output=True,
            text=True,
            timeout=TIMEOUT_SECONDS,
        )


@contextlib.contextmanager
def restored(package):
    """Puts a package back as it was at the end. It stays at its place, for which SwiftPM keeps the manifest."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "package"
        shutil.copytree(package.folder, copy)
        try:
            yield
        finally:
            shutil.rmtree(package.folder)
            shutil.copytree(copy, package.folder)
