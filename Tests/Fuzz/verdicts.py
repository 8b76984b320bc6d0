"""What becomes of the inputs that are kept, and of variants of them, in Tests/Fuzz/Verdicts."""

import functools
import re
import subprocess

from fuzz_targets import ROOT, SOURCES

VERDICTS = ROOT / "Tests/Fuzz/Verdicts"
# The slowest target takes a minute on a quiet machine.
SECONDS = 600


class Trap(Exception):
    """At an input that is kept, or at a variant of it, a reader traps or does not end, or a rule does not hold."""


class Kept:
    """The lines that were kept of a target: the limits in the variants, and for each input its name and two verdicts."""

    def __init__(self, target):
        self.path = VERDICTS / target.name
        lines = self.path.read_text().splitlines() if self.path.exists() else []
        self.limits = [int(word) for line in lines[:1] if line.startswith("limits") for word in line.split()[1:]]
        self.inputs = {line.split()[0]: line for line in lines if not line.startswith("limits")}

    @property
    def taken(self):
        return sum(" +" in line for line in self.inputs.values())


def judged(program, target, limits, taken=None, seconds=SECONDS, **environment):
    """A line for each input in the corpus, by its file's name. The environment is for the program.

    With few inputs that are taken, each has more variants. The number that was kept counts, so that one changed input does not change all.
    """
    command = target.command(program)
    command["env"] |= {
        "HOLDFAST_FUZZ_CORPUS": str(target.corpus),
        "HOLDFAST_FUZZ_LIMITS": " ".join(map(str, limits)),
        "HOLDFAST_FUZZ_VERDICTS": "1",
        **environment,
    }
    if taken is not None:
        command["env"]["HOLDFAST_FUZZ_TAKEN"] = str(taken)
    try:
        done = subprocess.run(**command, capture_output=True, timeout=seconds, check=False)
        output, reason, is_whole = done.stdout, done.stderr, done.returncode == 0
    except subprocess.TimeoutExpired as expired:
        output, reason, is_whole = expired.stdout or b"", b"Fatal error: it does not end", False
    lines = output.decode(errors="replace").splitlines()
    if is_whole:
        # The program judges all inputs, and then all once more with their variants. Only the second half has both verdicts.
        return {line.split()[0]: line for line in lines[len(lines) // 2 :]}
    rules = re.findall(r"Fatal error: .*", reason.decode(errors="replace")) or ["it traps"]
    place = (target.corpus / lines[-1].split()[0]).relative_to(ROOT) if lines else target.name
    raise Trap(f"{place} or a variant of it: {rules[0]}")


def plain(program, target, folder):
    """The verdicts on the files in a folder by themselves, by name."""
    command = target.command(program)
    command["env"] |= {"HOLDFAST_FUZZ_CORPUS": str(folder), "HOLDFAST_FUZZ_VERDICTS": "plain"}
    done = subprocess.run(**command, capture_output=True, timeout=SECONDS, check=True)
    return dict(line.split() for line in done.stdout.decode().splitlines())


def changed(program, target):
    """The inputs of which, or of whose variants, something else becomes than was kept."""
    kept = Kept(target)
    present = judged(program, target, kept.limits, kept.taken)
    return differing(kept.inputs, present, target)


def differing(before, after, target):
    """The inputs with other verdicts; first those whose own verdict is another one, which say most."""
    names = [name for name in before | after if before.get(name) != after.get(name)]
    own = lambda lines, name: lines.get(name, "").split()[1:2]
    names.sort(key=lambda name: (own(before, name) == own(after, name), name))
    return [str((target.corpus / name).relative_to(ROOT)) for name in names]


def keep(program, target, renewing_limits):
    """Keeps what becomes of the inputs now, and returns those of which something else becomes than before."""
    kept = Kept(target)
    limits = numbers(target) if renewing_limits or not kept.limits else kept.limits
    after = judged(program, target, limits)
    VERDICTS.mkdir(exist_ok=True)
    lines = [" ".join(["limits", *map(str, limits)]), *(after[name] for name in sorted(after))]
    kept.path.write_text("".join(f"{line}\n" for line in lines))
    return differing(kept.inputs, after, target)


# Limits


# Numbers in the sources, and products and shifts of them. Constants have names, which are written with their type elsewhere.
NUMBER = r"(?:0x[\da-fA-F_]+|0o[0-7_]+|\d[\d_]*(?: (?:\*|<<) \d[\d_]*)*)"
TYPE = re.compile(r"\b(?:enum|struct|class|actor|protocol|extension) ([\w.]+)", re.ASCII)
CONSTANT = re.compile(rf"\b(?:let|var) (\w+)(?:: \w+)? (?:= ({NUMBER})|{{ ({NUMBER}) }})$", re.ASCII)
COMMENT = re.compile(r"\s*//.*")


def code(path):
    """The lines of a source without comments. The bounds of a range stand by themselves."""
    return [re.sub(r"\.\.[.<]", " ", COMMENT.sub("", line)) for line in path.read_text().splitlines()]


@functools.cache
def constants():
    """The numbers of constants in the sources, by type and name, such as `Bound.title`."""
    found = {}
    for path in sorted(SOURCES.rglob("*.swift")):
        holder = ""
        for line in code(path):
            if declared := TYPE.search(line):
                holder = declared[1].rpartition(".")[2]
            elif constant := CONSTANT.search(line):
                found[f"{holder}.{constant[1]}"] = constant[2] or constant[3]
    return found


def numbers(target):
    """The numbers in the sources of a target, at each of which there may be a limit."""
    text = "\n".join(line for source in target.sources for line in code(source))
    words = re.findall(rf"(?<![\w.$]){NUMBER}(?![\w.])", text, re.ASCII)
    named = constants()
    words += [named[name] for name in set(re.findall(r"\b[A-Z]\w*\.\w+", text)) if name in named]
    # An octal number is also one in decimal digits, as it stands in a text.
    words += [word.removeprefix("0o") for word in words]
    return sorted({value for value in map(number, words) if value < 1 << 64})


def number(words):
    """The value of a literal, a product or a shift."""
    first, *rest = words.replace("_", "").split(" ")
    value = int(first, {"0x": 16, "0o": 8}.get(first[:2], 10))
    for operator, factor in zip(rest[::2], map(int, rest[1::2])):
        value = value * factor if operator == "*" else value << min(factor, 64)
    return value
