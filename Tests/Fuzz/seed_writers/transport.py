"""What comes from an adapter, a kernel or an SDP server."""

import re
import struct

from .shared import ROOT, framed


def add_transport(seeds):
    seeds.add("endpoint", "unix:/run/lock.sock", "stream:/run/lock,mode=660,group=users", "tty:/dev/ttyS0")
    seeds.add(
        "endpoint", "l2cap:00:11:22:33:44:55,psm=0x1001,hci=hci0,security=high", "rfcomm:00:11:22:33:44:55,channel=3"
    )
    seeds.add("endpoint", "le:00:11:22:33:44:55,psm=128,type=random,security=medium")
    uuid = b"\x1c" + bytes(range(16))
    sequence = lambda *parts: bytes([0x35, len(b"".join(parts))]) + b"".join(parts)
    for source in re.findall(
        r"0x[0-9a-f]{2}", (ROOT / "Sources/HoldfastTransport/Endpoint/BluetoothAddress.swift").read_text()
    ):
        seeds.add("sdp", bytes([int(source, 16)]))
    holdfast = uuid_bytes()
    if holdfast:
        uuid = b"\x1c" + holdfast
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
    service = holdfast[::-1] if holdfast else bytes(16)
    structure = lambda kind, body: bytes([len(body) + 1, kind]) + body
    seeds.add(
        "advertising",
        structure(1, b"\x06") + structure(7, service) + structure(9, b"lock") + structure(0x21, service + b"\x80"),
    )
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
    done = lambda code, status, result=b"", adapter=0: (
        struct.pack("<HHHHB", 1, adapter, 3 + len(result), code, status) + result
    )
    other = struct.pack("<HHHI", 6, 0, 4, 1)
    information = done(4, 0, bytes(280))
    for features in (
        bytes(4) + b"\x1f\x1f\x05\x01\x01", bytes(4) + b"\x1f\x1f\x00\x00", bytes(4) + b"\x1f\x1f\x01\x01\x01", b"x",
    ):  # fmt: skip
        seeds.add("management", b"\xff" + framed(other, information, done(0x3D, 0, features)))
    for status in (1, 3, 8, 10, 15, 17, 18, 20):
        seeds.add("management", b"\xff" + framed(done(4, 0, adapter=1), b"noise", done(4, status)))


def uuid_bytes():
    sources = "".join(path.read_text() for path in (ROOT / "Sources/HoldfastTransport").rglob("*.swift"))
    found = re.search(r"static let uuid: \[UInt8\] = \[([^\]]*)\]", sources)
    return (
        bytes(int(number, 0) for number in found[1].replace("\n", " ").split(",") if number.strip()) if found else None
    )
