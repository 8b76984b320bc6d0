"""Holdfast's readers and those of the Python peer, which were written from the documents, agree about inputs that nobody thought of.

The inputs are of the vectors and of the fuzzer's corpora, with random changes; what is signed or encrypted is changed inside, and so
are images of flash, behind their checksums. The peer judges each, and `holdfast vectors replay` gets its judgements as vectors. HOLDFAST_DIFFERENTIAL is the number of changed inputs of each kind, and HOLDFAST_SEED chooses them.
"""

import dataclasses
import json
import os
import pathlib
import random
import subprocess
import typing

import pytest
from holdfast_peer import bulletins, cbor, cose, flash, jose, pages, provision
from holdfast_peer.base64strict import url_decode
from holdfast_peer.refusal import Refused
from test_vectors import DOCUMENTS, FRAME, replay
from vector_writers import schemas
from vector_writers.audit_page_vectors import AGREEMENT, SHARED, Device
from vector_writers.bulletin_cases import GROUPS
from vector_writers.token_cases import DEVICE, DEVICE_ID, ISSUER, ephemeral, initialization_vector
from vector_writers.vector_file import plain

CORPORA = pathlib.Path(__file__).resolve().parents[1] / "Fuzz/Corpora"
COUNT = int(os.environ.get("HOLDFAST_DIFFERENTIAL", "300"))
SEED = os.environ.get("HOLDFAST_SEED", "1")
LONGEST = 4096


def kinds():
    """The kinds of vectors that have one member, an input which a reader accepts or refuses: file, kind and member."""
    found = {}
    for name, document in DOCUMENTS.items():
        for group in document["testGroups"]:
            members = set().union(*(test.keys() for test in group["tests"])) - FRAME
            if len(members) == 1 and set(group) == {"type", "source", "tests"}:
                found[group["type"]] = (name, group["type"], members.pop())
    return list(found.values())


KINDS = kinds()


def is_hexadecimal(kind, member):
    """Whether the input is bytes; otherwise it is a text."""
    _, names, _ = next(groups[kind] for groups in schemas.FILES.values() if kind in groups)
    return "pattern" in names[member]


def corpora():
    """All inputs of the fuzzer's corpora that are not too long, each once."""
    files = sorted(file for file in CORPORA.rglob("*") if file.is_file() and file.stat().st_size <= LONGEST)
    return sorted({file.read_bytes() for file in files})


def changed(data, others, chance):
    """The input with one to four random changes."""
    data = bytearray(data)
    for _ in range(chance.randint(1, 4)):
        place, length = chance.randint(0, len(data)), chance.choice((1, 1, 1, 2, 4, 8, 16))
        match chance.randrange(7):
            case 0 if place < len(data):
                data[place] ^= 1 << chance.randrange(8)
            case 1 if place < len(data):
                data[place] = chance.choice(
                    (0, 1, 0x17, 0x18, 0x1B, 0x40, 0x58, 0x60, 0x7F, 0x80, 0x9F, 0xA0, 0xF6, 0xFF)
                )
            case 2 if place < len(data):
                data[place] = (data[place] + chance.choice((1, -1))) % 256
            case 3:
                del data[place : place + length]
            case 4:
                data[place:place] = chance.randbytes(length)
            case 5:
                data[place:place] = data[max(0, place - length) : place]
            case 6:
                other = chance.choice(others)
                start = chance.randint(0, len(other))
                data[place : place + length] = other[start : start + length]
    return bytes(data[:LONGEST])


def inputs(name, kind, member, pool):
    """The inputs of a kind: those of the vectors, those of the corpora, and changed ones, most of which are near to valid ones."""
    known, valid = [], []
    for group in DOCUMENTS[name]["testGroups"]:
        for test in group["tests"] if group["type"] == kind else ():
            value = test[member]
            known.append(bytes.fromhex(value) if is_hexadecimal(kind, member) else value.encode())
            if test["result"] == "valid":
                valid.append(known[-1])
    chance = random.Random(f"{SEED} {kind}")
    taken = chance.sample(pool, min(COUNT, len(pool)))
    made = [
        changed(chance.choice(valid if chance.random() < 0.7 else known + taken), known, chance) for _ in range(COUNT)
    ]
    return list(dict.fromkeys(known + taken + made))


def judged(kind, member, value):
    """The vector of an input, with the peer's judgement."""
    test = {"comment": "differential", "flags": ["Normal"], member: value}
    try:
        replay({"type": kind}, test)
    except Refused:
        return test | {"result": "invalid"}
    return test | {"result": "valid"}


@pytest.fixture(scope="module")
def pool():
    return corpora()


def check(holdfast, folder, name, group, tests):
    """Has Holdfast judge the tests in place of those of a group."""
    assert {test["result"] for test in tests} == {"valid", "invalid"}
    numbered = [{"tcId": number, **test} for number, test in enumerate(tests, 1)]
    document = {**DOCUMENTS[name], "numberOfTests": len(tests), "testGroups": [{**group, "tests": numbered}]}
    path = folder / name
    path.write_text(json.dumps(document))
    done = subprocess.run([holdfast, "vectors", "replay", path], capture_output=True, text=True)
    assert done.returncode == 0 and f"{len(tests)} passed, 0 failed" in done.stdout, (
        done.stdout[-3000:] + done.stderr[-300:]
    )


@pytest.mark.parametrize("name, kind, member", KINDS, ids=[kind for _, kind, _ in KINDS])
def test_both_readers_agree_about_each_input(holdfast, tmp_path, pool, name, kind, member):
    tests = []
    for data in inputs(name, kind, member, pool):
        try:
            value = data.hex() if is_hexadecimal(kind, member) else data.decode()
        except UnicodeDecodeError:
            continue
        tests.append(judged(kind, member, value))
    group = next(group for group in DOCUMENTS[name]["testGroups"] if group["type"] == kind)
    check(holdfast, tmp_path, name, group, tests)


# What is signed and encrypted


@dataclasses.dataclass
class Protected:
    """A kind of vectors with contents in two layers. `contents` takes them out of what is signed, and `found` gives a valid vector's members,
    or a refusal."""

    name: str
    kind: str
    member: str
    sign: typing.Callable
    encrypt: typing.Callable
    decrypt: typing.Callable
    contents: typing.Callable
    found: typing.Callable

    def made(self, whole, others, chance):
        """A vector's input, changed in one of its layers, with every layer around that made anew."""
        layer = chance.choice(("contents", "contents", "contents", "signed", "whole"))
        if layer == "whole":
            return changed(whole, others, chance)
        signed = self.decrypt(whole)
        if layer == "signed":
            return self.encrypt(changed(signed, others, chance))
        others = [self.contents(self.decrypt(other)) for other in others]
        return self.encrypt(self.sign(changed(self.contents(signed), others, chance)))


SEAL = {"ephemeral": ephemeral("differential"), "iv": initialization_vector("differential")}
AUDIENCES = [DEVICE_ID, *map(bulletins.group_id, GROUPS)]


def same(data):
    return data


def page_text(sealed):
    return pages.open_text(sealed, AGREEMENT, Device(DEVICE.point, DEVICE_ID), ISSUER.kid)


def page(sealed):
    found = pages.open_page(sealed, AGREEMENT, Device(DEVICE.point, DEVICE_ID), ISSUER.kid)
    pages.follow(found)
    return {"page": found}


PROTECTED = [
    Protected(
        name="measurement_token_test.json",
        kind="MeasurementTokenCOSE",
        member="token",
        sign=lambda claims: cose.sign(claims, ISSUER),
        encrypt=lambda signed: cose.encrypt(signed, DEVICE.point, **SEAL),
        decrypt=lambda token: cose.decrypt(token, DEVICE),
        contents=lambda signed: cose.read_signed(signed, "holdfast-mt")[0],
        found=lambda token: {"claims": cose.open_token(token, DEVICE, [ISSUER.point], DEVICE_ID)[0]},
    ),
    Protected(
        name="measurement_token_test.json",
        kind="MeasurementTokenJOSE",
        member="token",
        sign=lambda claims: jose.sign(claims, ISSUER),
        encrypt=lambda signed: jose.encrypt(signed, DEVICE.point, **SEAL),
        decrypt=lambda token: jose.decrypt(token, DEVICE),
        contents=lambda signed: url_decode(signed.split(b".")[1].decode()),
        found=lambda token: {"claims": jose.open_token(token, DEVICE, [ISSUER.point], DEVICE_ID)[0]},
    ),
    Protected(
        name="bulletin.json",
        kind="Bulletin",
        member="bulletin",
        sign=lambda claims: bulletins.sign(claims, ISSUER),
        encrypt=lambda signed: bulletins.seal(signed, DEVICE.point, **SEAL),
        decrypt=lambda bulletin: cose.decrypt(bulletin, DEVICE) if bulletins.is_sealed(bulletin) else bulletin,
        contents=lambda signed: cose.read_signed(signed, "holdfast-bulletin")[0],
        found=lambda bulletin: {"claims": bulletins.open_bulletin(bulletin, DEVICE, [ISSUER.point], AUDIENCES)[0]},
    ),
    Protected(
        name="audit_page_test.json",
        kind="AuditPage",
        member="sealed",
        # Zeros up to the next whole length.
        sign=lambda body: body + bytes(-len(body) % pages.UNIT),
        encrypt=lambda text: pages.seal_text(text, SHARED, DEVICE_ID, ISSUER.kid, bytes(16)),
        decrypt=page_text,
        contents=lambda text: text.rstrip(b"\0"),
        found=page,
    ),
    Protected(
        name="audit_page_test.json",
        kind="AuditReceipt",
        member="receipt",
        sign=lambda claims: cose.sign(claims, ISSUER, protected=pages.receipt_protected(ISSUER.kid)),
        encrypt=same,
        decrypt=same,
        contents=lambda signed: cose.read_signed(signed, "holdfast-receipt")[0],
        found=lambda receipt: dict(
            zip(("count", "head"), pages.open_receipt(receipt, DEVICE_ID, ISSUER.point), strict=True)
        ),
    ),
]


@pytest.mark.parametrize("protected", PROTECTED, ids=[protected.kind for protected in PROTECTED])
def test_both_readers_agree_about_what_is_changed_before_it_is_signed(holdfast, tmp_path, protected):
    group = next(group for group in DOCUMENTS[protected.name]["testGroups"] if group["type"] == protected.kind)
    valid = [bytes.fromhex(test[protected.member]) for test in group["tests"] if test["result"] == "valid"]
    chance, tests = random.Random(f"{SEED} {protected.kind}"), []
    for data in valid + [protected.made(chance.choice(valid), chance.sample(valid, 3), chance) for _ in range(COUNT)]:
        test = {"comment": "differential", "flags": ["Normal"], protected.member: data.hex()}
        try:
            tests.append(test | plain(protected.found(data)) | {"result": "valid"})
        except Refused:
            tests.append(test | {"result": "invalid"})
    check(holdfast, tmp_path, protected.name, group, tests)


# Images of flash

IMAGES = "firmware_image_test.json"
NUMBERS = (0, 1, 2, 15, 16, 23, 24, 45, 255, 256, 2**32, 2**53 - 1, 2**53)
# The kinds of items that Holdfast reads as a whole when it opens an image. It reads others when it needs them.
OPENED = {1, 2, 3, 4, 5, 6, 9, 11, 13, 15, 16}


@dataclasses.dataclass
class Image:
    """An image with one slot: the array of its provision, and the items of its journal, each in a transaction."""

    body: bytes
    items: list

    @classmethod
    def taken_from(cls, test):
        """The parts of a valid vector's image."""
        data = bytearray(b"\xff" * flash.SIZE)
        for offset, part in test["image"]:
            data[offset : offset + len(part) // 2] = bytes.fromhex(part)
        length = int.from_bytes(data[8:12], "little")
        log = b"".join(flash.transactions_in_force(bytes(data)))
        return cls(bytes(data[12 : 12 + length]), list(map(cbor.encode, cbor.decode_sequence(log))))

    def written(self):
        log = b"".join(flash.transaction(1, item) for item in self.items)
        return flash.image(provision.pages(self.body), flash.slot_head(1) + log)

    def changed(self, others, chance):
        """Another image with a change in its provision or its journal, whose checksums are right."""
        other = chance.choice(others)
        if chance.random() < 0.5:
            return dataclasses.replace(self, body=_changed_item(self.body, other.body, chance))
        items, place = list(self.items), chance.randrange(len(self.items))
        match chance.randrange(6):
            case 0:
                items[place], items[-1] = items[-1], items[place]
            case 1:
                del items[place]
            case 2 | 3:
                items.insert(place, chance.choice(_opened(other.items) + _opened(items)))
            case _:
                places = [place for place, item in enumerate(items) if _opened([item])]
                for place in chance.sample(places, min(len(places), chance.randint(1, 2))):
                    items[place] = _changed_item(items[place], chance.choice(_opened(other.items)), chance)
        return dataclasses.replace(self, items=items)


def _opened(items):
    """Those of these kinds, all of which are below 24."""
    return [item for item in items if len(item) > 1 and item[1] in OPENED]


def _changed_item(data, other, chance):
    """An encoded array, changed in its bytes or, which leaves more of it right, in one of its elements."""
    if chance.random() < 0.3:
        return changed(data, [other], chance)[: provision.LONGEST]
    return cbor.encode(_changed_value(cbor.decode(data), chance))


def _changed_value(value, chance):
    """A value in which one is another, or one of another type."""
    if isinstance(value, list) and value and chance.random() < 0.9:
        value = list(value)
        place = chance.randrange(len(value))
        match chance.randrange(8):
            case 0:
                del value[place]
            case 1:
                value.insert(place, chance.choice((None, 0, b"", [], value[place])))
            case 2:
                other = chance.randrange(len(value))
                value[place], value[other] = value[other], value[place]
            case _:
                value[place] = _changed_value(value[place], chance)
        return value
    if chance.random() < 0.2:
        return chance.choice((None, True, -1, 7, b"", b"12345678", bytes(65), "7", [], {1: 1}))
    if isinstance(value, int):
        return chance.choice((*NUMBERS, value + 1, max(value - 1, 0)))
    if isinstance(value, bytes):
        return chance.choice((value[:-1], value + b"\0", bytes(len(value)), changed(value, [value], chance)))
    return value


def test_both_readers_agree_about_each_image(holdfast, tmp_path):
    group = next(group for group in DOCUMENTS[IMAGES]["testGroups"] if group["type"] == "FirmwareImage")
    images = [Image.taken_from(test) for test in group["tests"] if test["result"] == "valid"]
    chance, tests = random.Random(f"{SEED} FirmwareImage"), []
    for image in images + [chance.choice(images).changed(images, chance) for _ in range(COUNT)]:
        data = image.written()
        test = {"comment": "differential", "flags": ["Normal"], "image": plain(flash.runs(data))}
        try:
            tests.append(test | plain(flash.read(data)) | {"result": "valid"})
        except Refused:
            tests.append(test | {"result": "invalid"})
    check(holdfast, tmp_path, IMAGES, group, tests)
