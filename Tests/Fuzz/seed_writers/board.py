"""What reaches a small device: the bytes on its line, and changes of its flash."""

import itertools
import struct

from holdfast_peer import cbor

from .shared import ZEROS


def add_items(seeds):
    """Items of a board's flash."""
    for kind in range(1, 12):
        user = [kind, 1, "ann", 2, 12, 3, -4, 5, [bytes(8), 6], [[1, 1, 6], 7, None], [[2, 1, 6, 30], 8, 9]]
        uses = [kind, bytes(8), bytes(16), 1, 2]
        nonce = [kind, None, bytes(16), 1, bytes(16)]
        code = [kind, 1, 1, ZEROS, "ann", 2, [1, 1, 6], None]
        seeds.add("items", *map(cbor.encode, (user, uses, nonce, code)))


# Steps of a serial line: a kind, a count, and a byte that means a speed, a prover, flaws or a number.


def step(kind, count=0, speed=0, more=b""):
    return struct.pack(">BHB", kind, count, speed) + more


def noise(content, speed=0):
    return step(0, len(content), speed, content)


def frame(content, speed=0):
    return step(1, len(content), speed, content)


def quiet(milliseconds):
    return step(3, milliseconds // 250, 250)


def answer(prover=0, command=0):
    return step(4, command, prover)


def numbered(number, flaws=0):
    return step(5, 4 * (number - 1), 64 | flaws)


def mail(kind, number=0, content=b""):
    return step(0xF8, kind + 6 * len(content), number, content)


LIST, PAGE, RECEIPT, BULLETIN, CONTENT, OTHER = range(6)
EMPTY = step(2)


def add_line(seeds):
    add = lambda power, *steps: seeds.add("line", struct.pack(">H", power) + b"".join(steps))
    seeds.add("line", *(bytes([number, 1, 2, 3, 4, 5, 6, 7] * 4) for number in range(16)))
    letters = [
        [mail(LIST)], [mail(LIST), mail(PAGE), mail(PAGE)], [mail(PAGE, 1)], [mail(PAGE, 9), mail(PAGE, 200)],
        *([mail(RECEIPT, number), mail(RECEIPT, 1)] for number in (0, 1, 2, 0x7F, 0x80, 0xFD, 0xFE, 0xFF)),
        *([mail(BULLETIN, number), answer(), mail(BULLETIN, number)] for number in (0, 1, 3, 0x3F, 0x41, 0x81)),
        [mail(LIST)] * 9, [mail(OTHER, 0, b"x" * 16)], [mail(CONTENT, 0, b"x" * 4)], [mail(CONTENT, 1, b"x" * 4)],
    ]  # fmt: skip
    for kit, full in itertools.product(range(3), range(2)):
        power = kit << 13 | full << 12
        for letter in letters:
            add(power, answer(), *letter, answer(), *letter)
            add(power, *letter)
        # A receipt for what the device has, then more rounds, pages and a move of the journal.
        add(power, *[answer()] * 8, mail(RECEIPT, 5), *[answer(0, 1)] * 8, mail(PAGE), answer(), mail(PAGE))
        for last in (0x7F, 3):
            add(power, answer(), mail(RECEIPT, last), *[answer(0, 1), mail(PAGE)] * 40)
        add(power, *[answer(0, 1)] * 60, mail(LIST), mail(PAGE))
        many = [answer(), mail(BULLETIN, 0x0F)], [answer(), mail(BULLETIN, 0x1F)], [answer(), mail(BULLETIN, 0x3F)]
        add(power, *itertools.chain(*many), answer(), mail(LIST))
        add(power, *itertools.chain(*[[answer(), mail(BULLETIN, number)] for number in range(1, 12)]))
        # Denied rounds, whose totals are written after a minute.
        denied = [answer(2), answer(2), answer(3), answer(4), answer(0, 3), *(step(5, 0, flaw) for flaw in range(32))]
        add(power, *denied, quiet(65_000), answer(), EMPTY, quiet(65_000))
        add(power, *(numbered(number) for number in (3, 1, 2, 3, 7)), numbered(3, 4), step(7, 2), EMPTY)
        add(power, answer(1), answer(1), answer(1, 1), answer(0, 2), step(5, 0, 32), step(5, 0, 36))
    silence = quiet(1500)
    for power in (0, 0x8000):
        add(power, noise(b"\x20\x00" + b"x" * 40), silence, answer(), noise(b"\x00\x20abc"), quiet(20_000), answer())
        add(power, noise(b"\x00"), quiet(20_000), noise(b"\x00\x05a"), EMPTY, silence, frame(b"\x85" * 200, 100))
        add(power, frame(b""), frame(b"x"), frame(b"\x82\x02"), frame(b"\x82\x08\xf6"), quiet(100_000), answer())
        add(
            power,
            noise(b"\x00\x30" + b"y" * 10, 255),
            noise(b"z" * 60, 255),
            silence,
            step(6, 3, 0, b"\x01\xff\x02\x03\0\7"),
        )
        add(power, noise(b"\x40\x00" + b"y" * 60, 255), noise(b"\x00"))
        add(power, noise(b"\x00\x20ab"))
    # A power supply that ends, also while the journal moves; the device then denies everything.
    after = [
        EMPTY,
        frame(b"abc"),
        noise(b"\x50\x00abc"),
        quiet(20_000),
        answer(),
        mail(LIST),
        quiet(20_000),
        noise(b"\x00\x09a"),
    ]
    letter = [answer(), mail(BULLETIN, 3), answer(), mail(PAGE), mail(RECEIPT, 0x7F), answer(0, 1)]
    for kit in range(3):
        for words in range(0, 400, 9):
            add(0x8000 | kit << 13 | words, *letter, *after)
        for words in (*range(0, 2047, 60), *range(880, 960, 4)):
            add(0x9000 | kit << 13 | words, *letter, *[answer(0, 1)] * 30, *after)
            add(0x9000 | kit << 13 | words, quiet(1000), *after)


# The number of elements of an item of each kind, from 1 on.
ELEMENTS = (5, 3, 2, 3, 5, 5, 11, 4, 2, 8, 2, 8, 3, 4, 2, 3)


def add_flash(seeds):
    """Changes of the flash of a used device (kind 0) or of one with each kind of item (2), with its checksums made anew (1)."""
    add = lambda kind, *changes: seeds.add("flash", bytes([kind]) + b"".join(changes))
    seeds.add("flash", *(bytes([number, 1, 2, 3, 4, 5, 6, 7] * 4) for number in range(16)))
    put = lambda base, place, value: struct.pack(">BHB", base << 4 | 1, place, value)
    words = lambda base, place, value: struct.pack(">BHB", base << 4 | 3, place, 0) + value
    item = lambda transaction, offset, value: struct.pack(">BBBB", 4, transaction, offset, value)
    for kind in range(4):
        add(kind)
        # The heads of both slots.
        for base, place, value in itertools.product((1, 2), range(0, 36, 4), (b"\xff" * 4, bytes(4), b"abcd")):
            add(kind, words(base, place, value))
            add(kind, words(base, place, value), words(3 - base, 16, b"\xff" * 4))
        blank = [words(base, place, b"\xff" * 4) for base in (1, 2) for place in range(0, 32, 4)]
        add(kind, *blank)
        add(kind, *blank[:8])
        add(kind, *blank[8:])
        # The head of the provision, and its array.
        for place, value in itertools.product(range(0, 12, 4), (b"\xff" * 4, bytes(4), b"\x02\0\0\0", b"\0\x20\0\0")):
            add(kind, words(0, place, value))
    for place, value in itertools.product(range(12, 700), (0x00, 0x18, 0x60, 0xFF)):
        add(3, put(0, place, value))
    for transaction, offset in itertools.product(range(48), (*range(24), 30, 40, 60, 80, 120)):
        for value in (0x00, 0x1B, 0x60, 0xF6, 0xFF):
            add(3, item(transaction, offset, value))
    # The kind of an item and its number of elements, so that the device reads it as another.
    for transaction, (number, count) in itertools.product(range(48), enumerate(ELEMENTS, 1)):
        add(3, item(transaction, 0, 0x80 | count), item(transaction, 1, number))
