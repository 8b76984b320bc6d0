"""The frame of the committed vectors: schema, counts, ids, flags, the share of invalid tests, and the layers that refuse."""

import json
import pathlib
import re

import pytest
from vector_writers import notes, schemas

VECTORS = pathlib.Path(__file__).resolve().parents[2] / "vectors"
FILES = sorted(VECTORS.glob("*.json"))
DOCUMENTS = {path.name: json.loads(path.read_text()) for path in FILES}
SCHEMAS = {path.name: json.loads(path.read_text()) for path in sorted((VECTORS / "schemas").glob("*.json"))}
each_file = pytest.mark.parametrize("name", DOCUMENTS)
TYPES = {"object": dict, "array": list, "string": str, "boolean": bool, "null": type(None)}


def all_tests(document):
    return [test for group in document["testGroups"] for test in group["tests"]]


def faults(value, schema, root, place="file"):
    """What is wrong with a value by JSON Schema draft 7, of which our schemas use these keywords only."""
    if "$ref" in schema:
        return faults(value, root["definitions"][schema["$ref"].removeprefix("#/definitions/")], root, place)
    if "oneOf" in schema:
        matching = [one for one in schema["oneOf"] if not faults(value, one, root, place)]
        return [] if len(matching) == 1 else [f"{place}: {len(matching)} of {len(schema['oneOf'])} forms match"]
    if "const" in schema or "enum" in schema:
        return [] if value in schema.get("enum", [schema.get("const")]) else [f"{place}: {value!r}"]
    is_right = (
        isinstance(value, int) and not isinstance(value, bool)
        if schema["type"] == "integer"
        else isinstance(value, TYPES[schema["type"]])
    )
    if not is_right:
        return [f"{place}: no {schema['type']}"]
    size = value if schema["type"] == "integer" else len(value) if isinstance(value, (list, str)) else 0
    least, most = (
        schema.get("minimum", schema.get("minItems", size)),
        schema.get("maximum", schema.get("maxItems", size)),
    )
    found = [] if least <= size <= most else [f"{place}: {size}"]
    if not re.search(schema.get("pattern", ""), value if isinstance(value, str) else ""):
        found.append(f"{place}: not as {schema['pattern']}")
    if isinstance(value, list) and "items" in schema:
        each = schema["items"] if isinstance(schema["items"], list) else [schema["items"]] * len(value)
        for index, (element, form) in enumerate(zip(value, each, strict=True)):
            found += faults(element, form, root, f"{place}[{index}]")
    if isinstance(value, dict):
        properties = schema.get("properties", {})
        found += [f"{place}.{name}: missing" for name in schema.get("required", []) if name not in value]
        for name, member in value.items():
            form = properties.get(name, schema.get("additionalProperties", {}))
            found += [f"{place}.{name}: unknown"] if form is False else faults(member, form, root, f"{place}.{name}")
    return found


def test_each_schema_has_its_file():
    assert {document["schema"] for document in DOCUMENTS.values()} == SCHEMAS.keys()
    assert set(SCHEMAS) == {f"{name}_schema_v1.json" for name in schemas.FILES}


@each_file
def test_a_file_is_as_its_schema_says(name):
    schema = SCHEMAS[DOCUMENTS[name]["schema"]]
    # The type of a group decides by which definition it is judged, so that a fault is named and not only "no form matches".
    document = {**DOCUMENTS[name], "testGroups": []}
    frame = {**schema, "properties": {**schema["properties"], "testGroups": {"type": "array"}}}
    assert not faults(document, frame, schema)
    for group in DOCUMENTS[name]["testGroups"]:
        assert not faults(group, schema["definitions"][group["type"]], schema, group["type"])


@each_file
def test_a_file_counts_its_tests_and_explains_its_flags(name):
    document = DOCUMENTS[name]
    tests = all_tests(document)
    assert document["numberOfTests"] == len(tests)
    assert [test["tcId"] for test in tests] == list(range(1, len(tests) + 1))
    assert {flag for test in tests for flag in test["flags"]} == set(document["notes"])


@each_file
def test_an_invalid_test_names_the_layer_that_should_refuse_and_a_valid_one_names_none(name):
    for test in all_tests(DOCUMENTS[name]):
        if test["result"] == "valid":
            assert "layer" not in test, test["tcId"]
        else:
            assert test["layer"] == notes.layer(test["flags"][0]), test["tcId"]


# The types of which no input can be refused, with the reason: none so far.
NOTHING_TO_REFUSE = {}


@each_file
def test_at_least_half_of_the_tests_of_a_file_and_of_each_type_in_it_are_invalid(name):
    results = {name: []}
    for group in DOCUMENTS[name]["testGroups"]:
        for place in (name, group["type"]):
            results.setdefault(place, []).extend(test["result"] for test in group["tests"])
    for place, found in results.items():
        enough = found.count("invalid") * 2 >= len(found)
        assert enough != (place in NOTHING_TO_REFUSE), f"{place}: {found.count('invalid')} of {len(found)}"


def test_the_readme_counts_the_tests_of_each_file():
    rows = re.findall(
        r"^\| `(\S+\.json)` \|.*\| ([\d,]+) \| ([\d,]+) \|$", (VECTORS / "README.md").read_text(), re.MULTILINE
    )
    told = {name: [int(number.replace(",", "")) for number in numbers] for name, *numbers in rows}
    assert told == {
        name: [len(tests), sum(test["result"] == "invalid" for test in tests)]
        for name, document in DOCUMENTS.items()
        for tests in [all_tests(document)]
    }
