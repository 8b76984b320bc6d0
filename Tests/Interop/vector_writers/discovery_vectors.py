"""service_discovery_test.json: SDP records of devices, and the answers of SDP servers."""

from holdfast_peer import service_records as sdp
from holdfast_peer.refusal import require
from holdfast_peer.service_records import UUID, attributes, identifier, protocols, sequence, text, unsigned

from .notes import NOTES
from .vector_file import VectorFile, pin

L2CAP, RFCOMM = ("l2cap", 0x1001), ("rfcomm", 5)


def discovery_file():
    file = VectorFile(
        "HoldfastServiceDiscovery",
        "service_discovery_schema_v1.json",
        [
            "ServiceRecord: the record that a device registers. ServiceAnswer: the attribute lists that a prover gets.",
            "An answer is invalid if it is malformed, or names no port at which a prover may connect.",
        ],
        NOTES,
    )
    for (kind, check), write in zip(CHECKS.items(), (_records, _answers), strict=True):
        write(file.group(kind, check))
    return file


def check_record(*, transport, number, name, record):
    require(record == sdp.record((transport, number), name), "WrongRecord")


def check_answer(*, answer, ports=None):
    found = [list(port) for port in sdp.ports(answer)]
    require(found, "NoPort")
    assert ports in (None, found)


CHECKS = {"ServiceRecord": check_record, "ServiceAnswer": check_answer}


def _records(group):
    for port, name in ((L2CAP, "Lock"), (("l2cap", 0xFEFF), ""), (RFCOMM, "T\u00fcr"), (("rfcomm", 30), "n" * 64)):
        group.valid(
            f"{port[0]} {port[1]}, a name of {len(name.encode())} bytes",
            transport=port[0],
            number=port[1],
            name=name,
            record=sdp.record(port, name),
        )
    good = {"transport": "l2cap", "number": 0x1001, "name": "Lock"}
    for comment, record in (
        ("of another port", sdp.record(("l2cap", 0x1003), "Lock")),
        ("of the other transport", sdp.record(("rfcomm", 1), "Lock")),
        ("with another name", sdp.record(L2CAP, "Lick")),
        ("with the UUID backwards", sdp.record(L2CAP, "Lock").replace(UUID, UUID[::-1])),
        ("with a byte behind it", sdp.record(L2CAP, "Lock") + b"\0"),
    ):
        group.invalid(comment, "WrongRecord", **good, record=record)


def _answers(group):
    def valid(comment, answer, flags=("Normal",)):
        group.valid(comment, flags, answer=answer, ports=[list(port) for port in sdp.ports(answer)])

    valid("L2CAP", sequence(attributes(L2CAP)))
    valid("RFCOMM", sequence(attributes(RFCOMM)))
    valid("both", sequence(attributes(L2CAP), attributes(RFCOMM)))
    valid("a port twice", sequence(attributes(L2CAP), attributes(L2CAP)))
    valid("a service of others first", sequence(attributes(RFCOMM, pin("sdp/other", 16)), attributes(L2CAP)))
    valid("an impossible port first", sequence(attributes(("l2cap", 0x1000)), attributes(L2CAP)))
    for width in (2, 4):
        valid(f"lengths of {width} bytes", sequence(attributes(L2CAP), width=width), ("Representation",))
    for short in (b"\0\0\1\0", b"\0\0\1\0" + sdp.BASE):
        layers = sequence(sequence(identifier(short), unsigned(0x1001)))
        whole = sequence(unsigned(1), sequence(identifier(UUID)), unsigned(4), layers)
        valid(f"the protocol as a UUID of {len(short)} bytes", sequence(whole), ("Representation",))
    more = (unsigned(0x0100), text("Lock"), unsigned(9), b"\0", unsigned(3), identifier(b"\1\0"))
    valid(
        "other attributes too",
        sequence(sequence(unsigned(1), sequence(identifier(UUID)), unsigned(4), protocols(L2CAP), *more)),
    )
    classes = sequence(identifier(b"\x11\1"), identifier(UUID))
    valid("a second class", sequence(sequence(unsigned(1), classes, unsigned(4), protocols(L2CAP))))
    backwards = sequence(unsigned(4), protocols(L2CAP), unsigned(1), sequence(identifier(UUID)))
    valid("attributes in another order", sequence(backwards), ("Representation",))
    for port in (("l2cap", 0x1001), ("l2cap", 0xFEFF), ("rfcomm", 1), ("rfcomm", 30)):
        valid(f"{port[0]} {port[1]} as a limit", sequence(attributes(port)), ("Boundary",))
    _bad_answers(group)


def _bad_answers(group):
    good = sequence(attributes(L2CAP))

    def invalid(comment, flag, answer):
        group.invalid(comment, flag, answer=answer)

    invalid("empty", "Truncated", b"")
    for cut in (1, 2, len(good) // 2, len(good) - 1):
        invalid(f"cut to {cut} bytes", "Truncated", good[:cut])
    invalid("a byte behind it", "TrailingBytes", good + b"\0")
    invalid("twice", "TrailingBytes", good * 2)
    invalid("a text", "WrongType", text("answer"))
    invalid("an alternative in place of the sequence", "WrongType", bytes([7 << 3 | 5]) + good[1:])
    invalid("a record that is a number", "WrongType", sequence(unsigned(1)))
    invalid("an attribute without a value", "WrongCount", sequence(sequence(unsigned(1))))
    invalid("a record longer than the answer", "Truncated", bytes([0x35, 3, 0x35, 200, 0]))
    invalid("a length of two bytes cut short", "Truncated", b"\x36\0")
    invalid("a length of four bytes beyond the end", "Truncated", b"\x37\xff\xff\xff\xff")
    invalid("an attribute longer than its record", "Truncated", sequence(sequence(b"\x09\0")))
    invalid("no record", "NoPort", sequence())
    invalid("an empty record", "NoPort", sequence(sequence()))
    invalid("a service of others", "NoPort", sequence(attributes(L2CAP, pin("sdp/other", 16))))
    invalid("the UUID backwards", "NoPort", sequence(attributes(L2CAP, UUID[::-1])))
    for psm in (0, 1, 0x0FFF, 0x1000, 0x1002, 0x1101, 0xFFFF):
        invalid(f"PSM {psm:#06x}", "NoPort", sequence(attributes(("l2cap", psm))))
    for channel in (0, 31, 255):
        invalid(f"channel {channel}", "NoPort", sequence(attributes(("rfcomm", channel))))

    def layers(comment, *items):
        record = sequence(unsigned(1), sequence(identifier(UUID)), unsigned(4), sequence(*items))
        invalid(comment, "NoPort", sequence(record))

    l2cap, rfcomm = identifier(b"\1\0"), identifier(b"\0\3")
    layers("no protocol")
    layers("L2CAP without a PSM", sequence(l2cap))
    layers("a PSM of one byte", sequence(l2cap, unsigned(0x81, 1)))
    layers("a PSM of four bytes", sequence(l2cap, unsigned(0x1001, 4)))
    layers("a PSM as a UUID", sequence(l2cap, identifier(b"\x10\1")))
    layers("RFCOMM without a channel", sequence(l2cap), sequence(rfcomm))
    layers("a channel of two bytes", sequence(l2cap), sequence(rfcomm, unsigned(5)))
    layers("RFCOMM without L2CAP", sequence(rfcomm, unsigned(5, 1)))
    layers("RFCOMM below L2CAP", sequence(rfcomm, unsigned(5, 1)), sequence(l2cap))
    layers("a third protocol", sequence(l2cap), sequence(rfcomm, unsigned(5, 1)), sequence(identifier(b"\0\x0f")))
    layers("protocols that are no sequences", l2cap, rfcomm)
    layers("an SDP protocol over L2CAP", sequence(l2cap), sequence(identifier(b"\0\1"), unsigned(5, 1)))
    classes = sequence(unsigned(1), identifier(UUID), unsigned(4), protocols(L2CAP))
    invalid("the class without its sequence", "NoPort", sequence(classes))
    swapped = sequence(unsigned(1), protocols(L2CAP), unsigned(4), sequence(identifier(UUID)))
    invalid("classes and protocols exchanged", "NoPort", sequence(swapped))
    short = sequence(unsigned(1, 1), sequence(identifier(UUID)), unsigned(4, 1), protocols(L2CAP))
    invalid("attribute ids of one byte", "NoPort", sequence(short))
    broken = sequence(unsigned(1), sequence(identifier(UUID)), unsigned(4), bytes([0x35, 3, 0x35, 9, 0]))
    invalid("protocols longer than their sequence", "NoPort", sequence(broken))
