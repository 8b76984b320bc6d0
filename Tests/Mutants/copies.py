"""A copy of the sources in which mutants have switches, and its build."""

import json
import pathlib
import subprocess
import sys

import places
import suites

ROOT = pathlib.Path(__file__).resolve().parents[2]
HERE = pathlib.Path(__file__).resolve().parent
# How often a module may fail to compile before all mutants on the lines of its errors are dropped, and before giving up.
(PATIENT_BUILDS, BUILDS) = (3, 25)


class Copy:
    """The copy of the sources, with the switches of the mutants that compile.

    Their modules are compiled one after the other, with those of the other targets that are needed.
    """

    def __init__(self, folder, mutants, modules, needed, *options):
        self.folder, self.source, self.mutants = folder, folder / "source", mutants
        self.modules, self.needed, self.options = modules, needed, options
        self.spans, self.refused = {}, set()
        self.known = folder / "refused.json"
        if self.known.exists():
            self.refused = set(json.loads(self.known.read_text()))

    def compiled(self):
        return [each for each in self.mutants if each.key not in self.refused]

    def write(self):
        """Writes the files that differ, so that nothing else is compiled again, and removes those that are gone."""
        names = subprocess.run(
            ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
            cwd=ROOT,
            capture_output=True,
            check=True,
        ).stdout
        broken = {}
        for mutant in self.compiled():
            broken.setdefault(mutant.file, []).append(mutant)
        self.spans, written = {}, set()
        for name in names.decode().split("\0"):
            path = ROOT / name
            if not name or not path.is_file():
                continue
            contents = path.read_bytes()
            if name == "Package.swift":
                contents = self.package(contents.decode()).encode()
            elif name in broken:
                text, self.spans[name] = places.written(contents.decode("latin-1"), broken[name])
                contents = text.encode("latin-1")
            put(self.source / name, contents, path.stat().st_mode)
            written.add(self.source / name)
        for path in self.source.rglob("*"):
            if path.is_file() and path not in written:
                path.unlink()

    def package(self, text):
        """The package, reduced to the broken modules and what is needed. Warnings about switches are no errors."""
        listed = json.loads(
            subprocess.run(["swift", "package", "dump-package"], cwd=ROOT, capture_output=True, check=True).stdout
        )
        targets = {each["name"]: each for each in listed["targets"]}
        kept, waiting = set(), ["CMutant", *self.needed]
        while waiting:
            name = waiting.pop()
            if name in targets and name not in kept:
                waiting += [each["byName"][0] for each in targets[name]["dependencies"] if "byName" in each]
            kept.add(name)
        text = text.replace("  .treatAllWarnings(as: .error),\n", "")
        end = (HERE / "package.swift").read_text()
        return f"{text}\n" + end.replace("MUTATED", json.dumps(self.modules)).replace("KEPT", json.dumps(sorted(kept)))

    def build(self, *words):
        command = ["swift", "build", "--configuration", "release", "--scratch-path", self.folder / "build"]
        command += [*self.options, *words]
        done = subprocess.run(command, cwd=self.source, capture_output=True, text=True, errors="replace", check=False)
        return done.returncode == 0, done.stdout + done.stderr

    def compile(self, *words):
        """Builds the copy, with these words for the last step, and drops the mutants that do not compile."""
        self.folder.mkdir(parents=True, exist_ok=True)
        self.write()
        for module in self.modules:
            for attempt in range(BUILDS):
                built, output = self.build("--target", module)
                if built:
                    break
                dropped = self.drop(output, attempt >= PATIENT_BUILDS)
                say(f"{module}: {dropped} mutants do not compile")
                if not dropped:
                    sys.exit(f"{output[-3000:]}\nmutants: {module} does not compile, and no mutant is the reason")
                self.write()
            else:
                sys.exit(f"mutants: {module} does not compile")
        built, output = self.build(*words)
        if not built:
            sys.exit(f"{output[-3000:]}\nmutants: what runs them does not compile")

    def drop(self, output, whole_line):
        """Drops the innermost mutant at each error, or all mutants of its line, and returns how many these are."""
        numbers = {each.number: each for each in self.mutants}
        before = len(self.refused)
        for file, line, column in suites.errors(output, self.source):
            spans = self.spans.get(file, {})
            if not spans:
                continue
            text = (self.source / file).read_text("latin-1")
            begin = 0
            for _ in range(line - 1):
                begin = text.index("\n", begin) + 1
            end, at = text.find("\n", begin), begin + column - 1
            inside = [number for number, (start, stop) in spans.items() if start <= at < stop]
            if inside and not whole_line:
                inside = [min(inside, key=lambda number: spans[number][1] - spans[number][0])]
            else:
                inside = [number for number, (start, stop) in spans.items() if start < end and stop > begin]
            if not inside:
                # A value or a return is missing at the end of a function: the reason is above.
                inside = [number for number, (_, stop) in spans.items() if stop <= at]
                inside = [max(inside, key=lambda number: spans[number])] if inside else []
                # Or the cases of a switch, or the new value of what was consumed, are no longer all there: the reason is below.
                is_below = whole_line or not inside
                below = [number for number, (start, _) in spans.items() if start > at] if is_below else []
                inside += [min(below, key=lambda number: spans[number])] if below else []
            self.refused |= {numbers[number].key for number in inside}
        self.known.write_text(json.dumps(sorted(self.refused)))
        return len(self.refused) - before


def put(path, contents, mode):
    if path.exists() and path.read_bytes() == contents:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(contents)
    path.chmod(mode & 0o777)


def say(text):
    print(text, file=sys.stderr, flush=True)
