"""The libraries of a package, and what a build of them says that is public."""

import json
import pathlib
import subprocess
import tempfile

PACKAGE = pathlib.Path(__file__).resolve().parent.parent
BUILD = ".build/debug"


class Problem(Exception):
    """Something that the user of a tool has to change; the text says what."""


def add_options(parser):
    parser.add_argument("--package", type=pathlib.Path, default=PACKAGE, help="the package; Holdfast when absent")
    parser.add_argument(
        "--build",
        type=pathlib.Path,
        help=f"the folder of a finished build, such as .build-tests/release; {BUILD} in the package when absent",
    )


def run(*arguments, **options):
    """Runs a program of the toolchain, and returns what it wrote to standard output."""
    done = subprocess.run(arguments, capture_output=True, text=True, check=False, **options)
    if done.returncode != 0:
        raise Problem(f"{pathlib.Path(arguments[0]).name}: {done.stderr.strip() or done.stdout.strip()}")
    return done.stdout


class Libraries:
    """The Swift libraries among a package's products, with their compiled modules."""

    def __init__(self, options):
        self.package = options.package.resolve()
        self.build = (options.build or self.package / BUILD).resolve()
        self.names = self._names()
        missing = [name for name in self.names if not (self.build / "Modules" / f"{name}.swiftmodule").exists()]
        if missing:
            raise Problem(f"{self.build} has no module {missing[0]}: build the package first")
        self.triple = json.loads(run("swiftc", "-print-target-info"))["target"]["unversionedTriple"]

    def _names(self):
        """The modules of all library products, each after those that it depends on.

        A library that is linked dynamically in each case is one for another language than Swift, and is left out.
        """
        manifest = json.loads(run("swift", "package", "--ignore-lock", "dump-package", cwd=self.package))
        imports = {
            target["name"]: {dependency["byName"][0] for dependency in target["dependencies"] if "byName" in dependency}
            for target in manifest["targets"]
        }

        def below(name):
            return {name}.union(*(below(other) for other in imports.get(name, ())))

        names = {
            target
            for product in manifest["products"]
            if product["type"].get("library", ["dynamic"]) != ["dynamic"]
            for target in product["targets"]
        }
        return sorted(names, key=lambda name: (len(below(name)), name))

    @property
    def search_paths(self):
        """Compiler options with which a program of another package finds the modules, and the C modules below them."""
        maps = [*self.package.glob("Sources/*/module.modulemap"), *self.build.glob("*.build/module.modulemap")]
        folders = [self.build / "Modules", *(path.parent for path in maps if not path.parent.stem.endswith("-tool"))]
        return ["-target", self.triple, *(option for folder in sorted(folders) for option in ("-I", str(folder)))]

    def write_symbol_graph(self, name, folder):
        """Writes the public declarations of a library, with their doc comments, to files in a folder."""
        options = ("-minimum-access-level", "public", "-skip-synthesized-members", "-output-dir", str(folder))
        run("swift-symbolgraph-extract", "-module-name", name, *self.search_paths, *options)

    def symbol_graphs(self, name):
        """The same: of the library, and of each module whose types it extends."""
        with tempfile.TemporaryDirectory(prefix="holdfast") as folder:
            self.write_symbol_graph(name, folder)
            return [json.loads(path.read_text()) for path in sorted(pathlib.Path(folder).iterdir())]

    def digest(self, name):
        """The declarations of a library as swift-api-digester sees them: also those with package access."""
        with tempfile.TemporaryDirectory(prefix="holdfast") as folder:
            path = pathlib.Path(folder) / "digest.json"
            options = ("-swift-only", "-avoid-location", "-avoid-tool-args", "-o", str(path))
            run("swift-api-digester", "-dump-sdk", "-module", name, *self.search_paths, *options)
            return json.loads(path.read_text())["ABIRoot"]
