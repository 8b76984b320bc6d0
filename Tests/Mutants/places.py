"""Finds the places of a Swift source that can be broken, and writes a source in which each break has a switch.

It reads tokens and brackets, not the grammar. A mutant that does not compile is found by the compiler and dropped.
Sources are read as Latin-1, so that an offset is the number of bytes, as in the compiler's messages.
"""

import dataclasses
import random
import re

TOKEN = re.compile(
    r"""(?P<comment>//[^\n]*|/\*.*?\*/)
      |(?P<text>\#?\"\"\".*?\"\"\"\#?|\#"(?:[^"\n]|"(?!\#))*"\#
        |"(?:\\\((?:[^()"]|"[^"]*"|\([^()]*\))*\)|\\.|[^"\\\n])*")
      |(?P<number>0x[0-9A-Fa-f_]+|0b[01_]+|[0-9][0-9_]*(?:\.[0-9]+)?)
      |(?P<word>[@\#]?`?[A-Za-z_\x80-\xff$][\w$\x80-\xff]*`?)
      |(?P<line>\n)
      |(?P<bracket>[()\[\]{}])
      |(?P<mark>[,;:])
      |(?P<sign>[-+*/%=<>!&|^~?.]+)""",
    re.VERBOSE | re.DOTALL,
)
CLOSES = {"(": ")", "[": "]", "{": "}"}
ENDS = re.compile("return|if|guard|while|where|in|case|else|try|throw|unsafe|switch|let|var|repeat")
BOUNDS = {"<": "<=", "<=": "<", ">": ">=", ">=": ">"}
SIGNS = {"+": "-", "-": "+", "&+": "&-", "&-": "&+", "|": "&", "&": "|", "<<": ">>", ">>": "<<"}
# How tightly each operator binds, as in Swift's standard library.
STRENGTH = {"<<": 9, ">>": 9, "&<<": 9, "&>>": 9}
STRENGTH |= dict.fromkeys(("*", "/", "%", "&", "&*"), 8)
STRENGTH |= dict.fromkeys(("+", "-", "|", "^", "&+", "&-"), 7)
STRENGTH |= {"..<": 6, "...": 6, "??": 5, "&&": 3, "||": 2}
COMPARISONS = ("==", "!=", "<", "<=", ">", ">=", "===", "!==")
STRENGTH |= dict.fromkeys(COMPARISONS, 4)
# A call or an assignment.
STATEMENT = re.compile(
    r"(?:try[?!]? )?(?:unsafe )?(?:self\.)?[a-z_]\w*[?!]?(?:\.\w+[?!]?|\[[^\[\]]*\])*(?:\(.*\)| (?:[-+|&^*]|<<)?= .*)",
    re.DOTALL,
)
# Words that begin another statement, which cannot be left out.
DECLARES = re.compile(
    r"(?:return|throw|let|var|case|default|guard|if|for|while|switch|func|init|deinit|import|struct|enum|extension"
    r"|typealias|public|package|private|fileprivate|static|mutating|borrowing|consuming|internal|final|indirect"
    r"|subscript|else|do|repeat|defer|break|continue|where|precondition|preconditionFailure|fatalError|assert"
    r"|super|self\.init|try self\.init|consume|yield)\b"
)


@dataclasses.dataclass
class Mutant:
    """One break: `before` and `after` are put around the bytes from `start` to `end`, with a zero byte for its number."""

    file: str
    line: int
    start: int
    end: int
    before: str
    after: str
    change: str
    number: int = -1

    @property
    def key(self):
        """What names the mutant in records; a line that moves keeps it."""
        return f"{self.file}: {self.change}"


@dataclasses.dataclass
class Token:
    kind: str
    text: str
    start: int
    end: int
    line: int
    spaced: bool = False
    partner: int = -1


def tokens(source):
    """The tokens without comments, each bracket with its partner. Lines that only a microcontroller compiles are left out."""
    found, line, hidden, conditions = [], 1, 0, []
    for match in TOKEN.finditer(source):
        kind, text = match.lastgroup, match.group()
        if text == "#if":
            rest = source[match.end() : source.index("\n", match.end())]
            conditions.append("Embedded" in rest and "!" not in rest)
        elif text in ("#else", "#elseif") and conditions:
            conditions[-1] = not conditions[-1] if text == "#else" else False
        elif text == "#endif" and conditions:
            conditions.pop()
        hidden = any(conditions)
        if kind != "comment" and (not hidden or kind == "line"):
            spaced = source[match.start() - 1 : match.start()] in (" ", "\n") and source[
                match.end() : match.end() + 1
            ] in (" ", "\n")
            found.append(Token(kind, text, match.start(), match.end(), line, spaced))
        line += text.count("\n")
    stack = []
    for index, token in enumerate(found):
        if token.kind != "bracket":
            continue
        if token.text in CLOSES:
            stack.append(index)
        elif stack:
            token.partner = stack.pop()
            found[token.partner].partner = index
    return found


def is_operator(token):
    return token.kind == "sign" and (token.spaced or token.text == "..<")


class Finder:
    """The places of one file."""

    def __init__(self, file, source):
        self.file, self.source, self.tokens, self.found = file, source, tokens(source), []

    def add(self, first, last, before, after, change):
        """Breaks the tokens from index `first` to `last`."""
        start, end = self.tokens[first].start, self.tokens[last].end
        if "//" in before or ("{" in before and "\n" in self.source[start:end] and "if " != before[:3]):
            return  # Lines that are written once more do not fit on one.
        self.found.append(
            Mutant(self.file, self.tokens[first].line, start, end, before, after, " ".join(change.split()))
        )

    def text(self, first, last):
        return self.source[self.tokens[first].start : self.tokens[last].end]

    def goes_on(self, line):
        """Whether an expression continues over the line break at this index."""
        before, after = self.tokens[line - 1], self.tokens[line + 1] if line + 1 < len(self.tokens) else None
        if after is None or after.kind == "line" or before.kind == "line":
            return False
        return is_operator(before) or is_operator(after) or after.text.startswith(".") or before.text in ("(", "[")

    def extent(self, operator, step):
        """The index of the operand's last token in this direction, or None."""
        strength, index, last = STRENGTH[self.tokens[operator].text], operator + step, None
        while 0 <= index < len(self.tokens):
            token = self.tokens[index]
            if token.kind == "line":
                if last is not None and not self.goes_on(index):
                    break
            elif token.kind == "bracket":
                opens = token.text in CLOSES
                if opens != (step > 0) or token.partner < 0 or (token.text == "{" and step > 0):
                    break
                index = last = token.partner
            elif token.kind == "mark" or ENDS.fullmatch(token.text) or self.binds_less(token, strength + (step > 0)):
                break
            else:
                last = index
            index += step
        return last

    @staticmethod
    def binds_less(token, strength):
        return is_operator(token) and STRENGTH.get(token.text, 0) < strength

    def operands(self, operator):
        left, right = self.extent(operator, -1), self.extent(operator, 1)
        return None if left is None or right is None else (left, right)

    def find(self):
        for index, token in enumerate(self.tokens):
            if is_operator(token):
                self.operator(index, token)
            elif token.kind == "word" and token.text in ("guard", "if"):
                self.condition(index, token.text)
            elif token.kind in ("text", "number"):
                self.literal(index, token)
            elif (
                token.kind == "word" and token.text in ("true", "false") and not self.around(index).startswith("case ")
            ):
                before, after = ("(!mutant(\0) && ", ")") if token.text == "true" else ("(mutant(\0) || ", ")")
                self.add(index, index, before, after, f"{self.around(index)}: {token.text} flipped")
            elif token.kind == "word" and token.text in ("min", "max") and self.tokens[index + 1].text == "(":
                self.exchange(index, "max" if token.text == "min" else "min")
        self.statements()
        return self.found

    def around(self, index):
        """The source line of a token."""
        start = self.source.rfind("\n", 0, self.tokens[index].start) + 1
        end = self.source.find("\n", start)
        return self.source[start : end if end >= 0 else None].strip()

    def operator(self, index, token):
        kinds = {*BOUNDS, "==", "!=", "&&", "||", "..<", *SIGNS}
        pair = self.operands(index) if token.text in kinds else None
        if not pair or self.text(index + 1, pair[1]).startswith("~Copyable"):
            return
        whole, left, right = self.text(*pair), self.text(pair[0], index - 1), self.text(index + 1, pair[1])
        if token.text in COMPARISONS:
            if token.text in BOUNDS:
                other = f"{left} {BOUNDS[token.text]} {right}"
                self.add(*pair, "(mutant(\0) ? " + joined(f"({other})") + " : (", "))", f"{whole} → {other}")
            self.add(*pair, "(mutant(\0) != (", "))", f"{whole} → its opposite")
        elif token.text in ("&&", "||"):
            value = "true" if token.text == "&&" else "false"
            self.side(index + 1, pair[1], whole, value)
            # In a chain, the left side is a chain, whose sides have been added.
            if not any(each.text == token.text for each in self.tokens[pair[0] : index] if is_operator(each)):
                self.side(pair[0], index - 1, whole, value)
        elif token.text == "..<":
            before = "(mutant(\0) ? " + joined(f"({right}) - 1") + " : "
            self.add(index + 1, pair[1], before, ")", f"{whole}: one less")
        elif '"' not in left + right and "[" not in (left[0], right[0]) and "Self" not in right:
            other = f"{left} {SIGNS[token.text]} {right}"
            self.add(*pair, "(mutant(\0) ? (" + joined(other) + ") : (", "))", f"{whole} → {other}")

    def side(self, first, last, whole, value):
        """Replaces one side of a conjunction or disjunction by the value that leaves the decision to the other."""
        while self.tokens[first].kind == "line":
            first += 1
        while self.tokens[last].kind == "line":
            last -= 1
        change = f"{whole}: {self.text(first, last)} → {value}"
        self.add(first, last, "(mutant(\0) ? " + value + " : (", "))", change)

    def previous(self, index):
        index -= 1
        while index >= 0 and self.tokens[index].kind == "line":
            index -= 1
        return self.tokens[index] if index >= 0 else None

    def condition(self, index, keyword):
        """Skips each Boolean clause of a guard or an if; an if also always takes its branch."""
        first, at = index + 1, index + 1
        ends = "else" if keyword == "guard" else "{"
        while at < len(self.tokens):
            token = self.tokens[at]
            is_end = token.text == ends
            if is_end or token.text == ",":
                self.clause(first, at - 1, keyword)
                first = at + 1
            if is_end:
                return
            if token.kind == "bracket":
                if token.text not in CLOSES or token.partner < 0:
                    return
                at = token.partner
            at += 1

    def clause(self, first, last, keyword):
        while first <= last and self.tokens[first].kind == "line":
            first += 1
        while last >= first and self.tokens[last].kind == "line":
            last -= 1
        if first > last or self.tokens[first].text in ("let", "var", "case", "#available", "_"):
            return
        if any(token.spaced and token.text == "=" for token in self.tokens[first : last + 1]):
            return
        clause = self.text(first, last)
        self.add(first, last, "(mutant(\0) ? true : (", "))", f"{keyword} {clause} → {keyword} true")
        if keyword == "if":
            self.add(first, last, "(mutant(\0) ? false : (", "))", f"if {clause} → if false")

    def literal(self, index, token):
        before, after = self.tokens[index - 1], self.tokens[index + 1]
        line = self.around(index)
        if (
            line.startswith(("case ", "@", "#", "import "))
            or "\n" in token.text
            or "precondition" in line
            or "fatalError" in line
        ):
            return
        if token.kind == "text":
            interpolated = any(mark in token.text for mark in ("\\(", "\\#("))
            if interpolated or '"""' in token.text or token.text == '""' or after.text == ":":
                return
            end = -2 if token.text.startswith("#") else -1
            other = token.text[:end] + "!" + token.text[end:]
            self.add(index, index, "(mutant(\0) ? " + other + " : ", ")", f"{line}: {token.text} → {other}")
            return
        if before.text in (".", "<", "case", "[") and not before.spaced and before.text != "[":
            return
        if after.text in ("of", ">", ".") or "." in token.text or (before.text == "<" and not before.spaced):
            return
        other = str(int(token.text.replace("_", ""), 0) + 1)
        self.add(index, index, "(mutant(\0) ? " + other + " : ", ")", f"{line}: {token.text} → {other}")

    def exchange(self, index, other):
        last = self.tokens[index + 1].partner
        if self.tokens[index - 1].text.endswith(".") or self.tokens[index - 1].text == "func" or last < 0:
            return
        call = self.text(index, last)
        self.add(index, last, "(mutant(\0) ? " + joined(other + call[3:]) + " : ", ")", f"{call} → {other}{call[3:]}")

    def statements(self):
        """Leaves out each call and each assignment that is a statement, and exchanges two calls that follow each other."""
        first, earlier = 0, None
        while first < len(self.tokens):
            if self.tokens[first].kind == "line":
                first += 1
                continue
            last = self.statement_end(first)
            text = self.text(first, last)
            begins = self.previous_is_boundary(first)
            is_statement = begins and STATEMENT.fullmatch(text) and not DECLARES.match(text)
            if is_statement:
                self.add(first, last, "if !mutant(\0) { ", " }", f"{text} → left out")
                signs = {token.text for token in self.tokens[first : last + 1] if token.spaced}
                is_call = not any(sign.endswith("=") and sign not in COMPARISONS for sign in signs)
                if earlier and is_call:
                    swapped = f"{text}; {self.text(*earlier)}"
                    self.add(
                        earlier[0],
                        last,
                        "if mutant(\0) { " + joined(swapped) + " } else { ",
                        " }",
                        f"{self.text(*earlier)}; {text} → exchanged",
                    )
                earlier = (first, last) if is_call else None
                first = last + 1
            else:
                earlier = None
                # The next line, or the next brace, may begin a statement.
                while (
                    first < len(self.tokens)
                    and self.tokens[first].kind != "line"
                    and self.tokens[first].text not in "{};"
                ):
                    first += 1
                first += 1

    def previous_is_boundary(self, first):
        before = self.tokens[first - 1] if first else None
        if before is None or before.text in ("{", ";", "in"):
            return before is not None
        if before.kind != "line":
            return False
        above = self.previous(first)
        return (
            above is not None
            and not is_operator(above)
            and above.text not in (",", "(", "[", ":")
            and above.kind != "comment"
        )

    def statement_end(self, first):
        index = last = first
        while index < len(self.tokens):
            token = self.tokens[index]
            if token.text == ";" or token.text == "}" or (token.kind == "line" and not self.goes_on(index)):
                break
            if token.kind == "bracket":
                if token.text not in CLOSES or token.partner < 0:
                    break
                index = token.partner
            if token.kind != "line":
                last = index
            index += 1
        return last


def joined(text):
    """The text on one line."""
    return " ".join(text.split("\n"))


def find(file, source):
    """All mutants of a file, outermost first where two begin at the same byte."""
    return sorted(Finder(file, source).find(), key=lambda mutant: (mutant.start, -mutant.end))


def written(source, mutants):
    """The source with its switches, and for each mutant the bytes that it takes in it."""
    opens, closes = {}, {}
    nested, stack = [], []
    for mutant in sorted(mutants, key=lambda each: (each.start, -each.end)):
        while stack and stack[-1].end <= mutant.start:
            stack.pop()
        if stack and stack[-1].end < mutant.end:
            continue  # It overlaps another, which happens where an extent was read wrongly.
        stack.append(mutant)
        nested.append(mutant)
        opens.setdefault(mutant.start, []).append(mutant)
        closes.setdefault(mutant.end, []).insert(0, mutant)
    parts, length, begins, spans = ["import CMutant; "], len("import CMutant; "), {}, {}

    def put(text):
        nonlocal length
        parts.append(text)
        length += len(text)

    at = 0
    for place in sorted(set(opens) | set(closes)):
        put(source[at:place])
        at = place
        for mutant in closes.get(place, []):
            put(mutant.after.replace("\0", str(mutant.number)))
            spans[mutant.number] = (begins[mutant.number], length)
        for mutant in opens.get(place, []):
            begins[mutant.number] = length
            put(mutant.before.replace("\0", str(mutant.number)))
    put(source[at:])
    return "".join(parts), spans


def sample(found, count, seed):
    """These mutants, or `count` of them at random, numbered."""
    if count and count < len(found):
        picked = set(random.Random(seed).sample(range(len(found)), count))
        found = [each for index, each in enumerate(found) if index in picked]
    for number, mutant in enumerate(found):
        mutant.number = number
    return found
