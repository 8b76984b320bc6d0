"""What comes from an adapter, a kernel or an SDP server."""

import re
import struct

from .shared import ROOT, SERVICE_UUID, framed, sequence


def add_transport(seeds):
    seeds.add("endpoint", "unix:/run/lock.sock", "stream:/run/lock,mode=660,group=users", "tty:/dev/ttyS0")
    seeds.add(
        "endpoint", "l2cap:00:11:22:33:44:55,psm=0x1001,hci=hci0,security=high", "rfcomm:00:11:22:33:44:55,channel=3"
    )
    seeds.add("endpoint", "le:00:11:22:33:44:55,psm=128,type=random,security=medium")
    uuid = b"\x1c" + SERVICE_UUID
    for source in re.findall(
        r"0x[0-9a-f]{2}", (ROOT / "Sources/HoldfastTransport/Endpoint/BluetoothAddress.swift").read_text()
    ):
        seeds.add("sdp", bytes([int(source, 16)]))
    l2cap = sequence(b"\x19\x01\x00", b"\x09\x10\x01")
    rfcomm = sequence(b"\x19\x01\x00"), sequence(b"\x19\x00\x03", b"\x08\x05")
    for protocols in (sequence(l2cap), sequence(*rfcomm)):
        record = sequence(b"\x09\x00\x01", sequence(uuid), b"\x09\x00\x04", protocols)
        seeds.add("sdp", sequence(record), sequence(record, record))
        whole = sequence(record)
        body = struct.pack(">H", len(whole)) + whole + b"\x00"
        seeds.add("sdp", b"\x07\x00\x00" + struct.pack(">H", len(body)) + body)
        packets = []
        for number, part in enumerate((whole[:10], whole[10:])):
            body = struct.pack(">H", len(part)) + part + (b"\x00" if number else b"\x01\x01")
            packets.append(struct.pack(">BHH", 7, number, len(body)) + body)
        seeds.add("sdp", b"\xff" + framed(*packets), b"\xff" + framed(*reversed(packets)), b"\xff" + framed(packets[0]))
        endless = [struct.pack(">BHH", 7, number, 5) + b"\x00\x01x\x01x" for number in range(16)]
        seeds.add("sdp", b"\xff" + framed(*endless), b"\xff" + framed(bytes(2000)))
    service = SERVICE_UUID[::-1]
    structure = lambda kind, body: bytes([len(body) + 1, kind]) + body
    seeds.add(
        "advertising",
        structure(1, b"\x06") + structure(7, service) + structure(9, b"lock") + structure(0x21, service + b"\x80"),
    )
    for body in (service, service + b"\x80", service + b"\x80\x00", service[:-1] + b"\x80"):
        seeds.add_at_limit("advertising", structure(0x21, body), structure(7, service) + structure(0x21, body))
    seeds.add("advertising", structure(6, service + bytes(16)) + structure(8, b"lo") + b"\x00\x00")
    device = bytes(6) + b"\x01"
    events = {
        1: b"\x03\x00\x00abc", 2: b"\x03\x00\x05", 6: bytes(4), 0x0B: device + bytes(4) + b"\x02\x00ab",
        0x0C: device + b"\x00", 0x0F: device + b"\x01" + bytes(4), 0x12: device + b"\xc0" + bytes(4) + b"\x03\x00\x02\x01\x06",
        0x13: b"\x07\x01", 0x18: b"\x01" + bytes(6) + device + bytes(16), 0x24: b"\x01", 0x99: b"x",
    }  # fmt: skip
    for code, body in events.items():
        seeds.add("management", struct.pack("<HHH", code, 0, len(body)) + body)
    seeds.add("management", bytes(280))
    other = struct.pack("<HHHI", 6, 0, 4, 1)
    information = done(4, 0, bytes(280))
    for features in (
        bytes(4) + b"\x1f\x1f\x05\x01\x01", bytes(4) + b"\x1f\x1f\x00\x00", bytes(4) + b"\x1f\x1f\x01\x01\x01", b"x",
    ):  # fmt: skip
        seeds.add("management", b"\xff" + framed(other, information, done(0x3D, 0, features)))
    for status in (1, 3, 8, 10, 15, 17, 18, 20):
        seeds.add("management", b"\xff" + framed(done(4, 0, adapter=1), b"noise", done(4, status)))


def done(code, status=0, result=b"", adapter=0):
    """The kernel's answer to a command."""
    return struct.pack("<HHHHB", 1, adapter, 3 + len(result), code, status) + result


def add_adapters(seeds):
    """Lists of adapters with the blocks of their radios: up to two bytes in each of the files hard and soft of two adapters."""
    add = lambda blocks, *answers: seeds.add("management", b"\xfe" + blocks + framed(*answers))
    numbers = lambda *all_: struct.pack(f"<{1 + len(all_)}H", len(all_), *all_)
    listed = lambda result, status=0: done(3, status, result, 0xFFFF)
    information = lambda adapter, settings=0, status=0, count=280: done(
        4, status, (bytes(9) + struct.pack("<II", 0xFFFFFFFF, settings) + b"\0\0\0lock" + bytes(280))[:count], adapter
    )
    for blocks in (
        b"\0\0\0\0", b"\x021\0\0\0", b"\0\x021\x020\x021", b"\x020\x020\1\1", b"\x0311\0\0\0", b"\1\0\x021\0",
    ):  # fmt: skip
        add(blocks, listed(numbers(1, 0)), information(0), information(1, 1))
        add(blocks, listed(numbers(0, 7)), information(0), information(7, 1))
    none = b"\0\0\0\0"
    add(none, listed(numbers(0)), information(0, count=279))
    add(none, listed(numbers(0, 1)), information(0, status=0x11), information(1))
    add(none, listed(numbers(0, 1)), information(0, status=0x14))
    add(none, listed(numbers()), listed(b"x"))
    add(none, listed(b"x"))
    add(none, listed(b"\2\0\0\0"))
    add(none, listed(b"", 0x14))
    add(none)


def add_search(seeds):
    """Searches for peers, and what peers advertise."""
    service = SERVICE_UUID[::-1]
    structure = lambda kind, body: bytes([len(body) + 1, kind]) + body
    datas = (
        b"", structure(7, service), structure(6, service) + structure(0x21, service + b"\x80"), structure(7, bytes(16)),
        structure(9, b"lock") + structure(7, service) + structure(0x21, service + b"\x81"), structure(9, b"x" * 249), b"\5",
    )  # fmt: skip
    event = lambda code, body, adapter=0: struct.pack("<HHH", code, adapter, len(body)) + body
    found = lambda number, kind, flags, data=b"", adapter=0, strength=0xC4: event(
        0x12, bytes([number, 0, 0, 0, 0, 0, kind, strength]) + struct.pack("<IH", flags, len(data)) + data, adapter
    )
    begun = done(0x23)
    add = lambda *events: seeds.add("management", b"\xfd" + framed(*events))
    add(begun, found(1, 0, 1), found(2, 1, 0), found(1, 0, 4), found(3, 2, 0, adapter=9))
    add(begun, event(0x13, b"\7\0"), begun, event(0x13, b"\7\1"), found(1, 1, 0, datas[2]), found(1, 1, 4, datas[4]))
    add(begun, event(0x13, b"\7\0"), done(0x23, 15))
    add(done(0x23, 10))
    add(begun, found(1, 1, 0, datas[1], strength=127), found(1, 1, 0, datas[6]), found(1, 1, 0, datas[2]))
    for kind, data in ((kind, data) for kind in range(4) for data in datas):
        seeds.add("management", found(1, kind, 4, data), found(1, kind, 0, data, strength=127))
    # Instances of advertising: with the flags of an adapter that can hide them, and without.
    for flags, count, numbers in (
        (0, 1, b""),
        (0x80, 5, b"\1\5"),
        (0x80, 0, b""),
        (0xFFFFFFFF, 31, bytes(range(1, 32))),
    ):
        features = struct.pack("<I", flags) + b"\x1f\x1f" + bytes([count, len(numbers)]) + numbers
        seeds.add("management", b"\xff" + framed(done(4, 0, bytes(280)), done(0x3D, 0, features)))
