"""The frame of a vector file, in Wycheproof's shape, and the check of each vector as it is added."""

import json

from holdfast_peer.primitives import sha256
from holdfast_peer.refusal import Refused

from .notes import layer

SOURCE = {"name": "holdfast-peer", "version": "1"}


def pin(label, byte_count):
    """Bytes that look random and depend only on `label`."""
    blocks = (sha256(f"holdfast vectors/{label}/{i}".encode()) for i in range((byte_count + 31) // 32))
    return b"".join(blocks)[:byte_count]


def plain(value):
    """`value` with every bytes object in lower-case hex."""
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    return value


class Group:
    """Tests with common inputs. `check(**fields)` returns for a valid vector and raises Refused for an invalid one."""

    def __init__(self, kind, check, inputs):
        self.kind, self.check, self.inputs, self.tests = kind, check, inputs, []

    def valid(self, comment, flags=("Normal",), **fields):
        self.check(**fields)
        self._add(comment, list(flags), "valid", fields)

    def invalid(self, comment, flag, *, rule=None, **fields):
        """Adds a vector that has to be refused by `rule` (by default the one named as the flag)."""
        try:
            self.check(**fields)
        except Refused as refusal:
            if refusal.rule != (rule or flag):
                raise AssertionError(f"{comment}: refused by {refusal.rule}, not {rule or flag}") from None
        else:
            raise AssertionError(f"{comment}: not refused")
        self._add(comment, [flag], "invalid", fields, layer=layer(flag))

    def _add(self, comment, flags, result, fields, **advice):
        self.tests.append({"comment": comment, "flags": flags, **plain(fields), "result": result, **advice})


class VectorFile:
    """A file of groups. `notes` maps each flag to (bug type, description)."""

    def __init__(self, algorithm, schema, header, notes, name=None):
        self.algorithm, self.schema, self.header, self.notes, self.groups = algorithm, schema, header, notes, []
        self.name = name or f"{schema.replace('_schema_v1.json', '')}_test.json"

    def group(self, kind, check, **inputs):
        self.groups.append(Group(kind, check, inputs))
        return self.groups[-1]

    def document(self):
        groups, identifier, used = [], 0, set()
        for group in self.groups:
            tests = []
            for test in group.tests:
                identifier += 1
                used.update(test["flags"])
                tests.append({"tcId": identifier, **test})
            groups.append({"type": group.kind, "source": SOURCE, **plain(group.inputs), "tests": tests})
        self._check_unique()
        assert not used - self.notes.keys(), used - self.notes.keys()
        notes = {flag: {"bugType": self.notes[flag][0], "description": self.notes[flag][1]} for flag in sorted(used)}
        return {
            "algorithm": self.algorithm,
            "schema": self.schema,
            "numberOfTests": identifier,
            "header": self.header,
            "notes": notes,
            "testGroups": groups,
        }

    def _check_unique(self):
        for group in self.groups:
            comments = [t["comment"] for t in group.tests]
            double = {c for c in comments if comments.count(c) > 1}
            assert not double, double

    def write(self, folder):
        document = self.document()
        text = json.dumps(document, indent=1, ensure_ascii=True) + "\n"
        (folder / self.name).write_text(text)
        return document["numberOfTests"]
