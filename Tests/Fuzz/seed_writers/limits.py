"""Inputs at limits that no variant of another input reaches, because they lie behind an encoding, or are made of several parts."""

import base64
import struct
import urllib.parse

from .shared import SERVICE_UUID, field, sequence, text, varint

SERVICE = "https://fuzz.example"


def add_limits(seeds):
    add_exports(seeds)
    add_host_files(seeds)
    add_configurations(seeds)
    add_reports(seeds)


def add_exports(seeds):
    """Parts of an export of accounts, and as many accounts as a file may have."""
    account = field(1, bytes(20)) + field(2, b"ann") + field(4, 1) + field(5, 1) + field(6, 2)

    def part(count, index, export=b"\xd2\x09", accounts=(account,)):
        payload = b"".join(field(1, each) for each in accounts)
        payload += field(2, 1) + field(3, count) + field(4, index) + bytes([5 << 3]) + export
        return "otpauth-migration://offline?data=" + urllib.parse.quote(base64.b64encode(payload).decode(), safe="")

    for count, index in ((100, 0), (101, 0), (100, 99), (1, 1), (100, 100), (0, 0), (2, 1)):
        seeds.add_at_limit("migration", part(count, index))
    for export in (b"\xff" * 9 + b"\x01", b"\xff" * 9 + b"\x02", b"\xff" * 10 + b"\x01"):
        seeds.add_at_limit("migration", part(1, 0, export))
    whole = [part(3, index) for index in range(3)]
    for parts in (
        [whole[0], whole[0], whole[1]],
        whole[:2],
        whole,
        [*whole, whole[2]],
        [whole[0], part(3, 1, varint(7))],
    ):
        seeds.add_at_limit("migration", "\n".join(parts))
    for number in (1, 8, 64):
        secret = field(1, bytes(number)) + field(2, b"b") + field(4, 2) + field(5, 2) + field(6, 1)
        for counter in (0, 1, 2**53 - 1, 2**53, 2**63):
            seeds.add_at_limit("migration", part(1, 0, accounts=(secret + field(7, counter),)))
    for count in (99, 100, 101):
        seeds.add_at_limit("otpauth", "\n".join(["otpauth://totp/a?secret=AA"] * count))
    plain = "<Secret><PlainValue>MTIzNDU2Nzg5MDEyMzQ1Njc4OTA=</PlainValue></Secret>"
    for value in (plain, plain + "<Time><PlainValue>0</PlainValue></Time>"):
        seeds.add_at_limit(
            "pskc",
            '<?xml version="1.0"?><KeyContainer Version="1.0" xmlns="urn:ietf:params:xml:ns:keyprov:pskc"><KeyPackage>'
            '<Key Id="ann" Algorithm="urn:ietf:params:xml:ns:keyprov:pskc:totp"><Issuer>I</Issuer><AlgorithmParameters>'
            '<ResponseFormat Length="6" Encoding="DECIMAL"/></AlgorithmParameters>'
            f"<Data>{value}</Data></Key></KeyPackage></KeyContainer>",
        )


def add_host_files(seeds):
    """Words of the shell in os-release, and code of one file at several offsets and addresses."""
    for name in (r"a\b", r'"a\"b"', r"'a\b'", r'a"b c"\ d', "'a'b", '"a', "a\\", "a" * 64, "a" * 65):
        seeds.add_at_limit("prover-state", f"NAME=x\nID={name}\nVERSION_ID=12\n", f"ID=debian\nVERSION_ID={name}\n")
    line = "{:x}-{:x} r-xp {:08x} fd:01 {} {}\n"
    segments = ((0x1000, 0x3000, 0x2000, 7, "/usr/bin/app"), (0x4000, 0x5000, 0x1000, 7, "/usr/bin/app"),
                (0x6000, 0x7000, 0x1000, 8, "/lib/a"), (0x8000, 0xA000, 0x1000, 8, "/lib/a"),
                (0xA000, 0xB000, 0x3000, 8, "/lib/a"), (0xB000, 0xC000, 0x4000, 9, "/lib/a"))  # fmt: skip
    seeds.add_at_limit("proc", "".join(line.format(*segment) for segment in segments))


def add_configurations(seeds):
    """Domains and pins of an account, at what their names may be."""
    pin = "sha256//" + base64.b64encode(bytes(32)).decode()
    rule = {"protected": True, "measurement": False}
    configuration = {
        "iss": "i", "iat": 1, "revision": 2, "force_pins": 1, "services": [SERVICE], "domains": {"api.example": rule},
        "pins": {"api.example": [pin], "*": [pin]},
        "features": {"secure_strings": True, "custom_tokens": False, "message_signing": True},
    }  # fmt: skip
    label = "a" * 63
    for name in ("a", label, label + "a", f"{label}.{label}.{label}.{'a' * 61}", f"{label}.{label}.{label}.{'a' * 62}",
                 "-a", "a-", "a-b", "A.example", "a..b", "a_b", "9.9"):  # fmt: skip
        seeds.add_at_limit("app-configuration", text({**configuration, "domains": {name: rule}, "pins": {name: [pin]}}))
    for count in (0, 1, 16, 17):
        seeds.add_at_limit("app-configuration", text({**configuration, "pins": {"*": [pin] * count}}))
    for count in (0, 1, 8, 9):
        addresses = [f"https://{number}.example" for number in range(count)]
        seeds.add_at_limit("app-configuration", text({**configuration, "services": addresses}))
    for feature in configuration["features"]:
        flags = {**configuration["features"], feature: not configuration["features"][feature]}
        seeds.add_at_limit("app-configuration", text({**configuration, "features": flags}))


def add_reports(seeds):
    """Records of a device with numbers of other widths, and what the kernel tells of a search."""
    uuid = b"\x1c" + SERVICE_UUID
    for psm in (
        b"\x08\x19",
        b"\x09\x00\x19",
        b"\x0a\x00\x00\x10\x01",
        b"\x09\x10\x02",
        b"\x09\x0f\xff",
        b"\x09\xfe\xff",
    ):
        protocols = sequence(sequence(b"\x19\x01\x00", psm))
        record = sequence(b"\x09\x00\x01", sequence(uuid), b"\x09\x00\x04", protocols)
        seeds.add_at_limit("sdp", sequence(record))
    for channel in (b"\x08\x00", b"\x08\x01", b"\x08\x1e", b"\x08\x1f", b"\x09\x00\x05"):
        protocols = sequence(sequence(b"\x19\x01\x00"), sequence(b"\x19\x00\x03", channel))
        record = sequence(b"\x09\x00\x01", sequence(uuid), b"\x09\x00\x04", protocols)
        seeds.add_at_limit("sdp", sequence(record))
    for body in (b"\x07\x00", b"\x07\x01", b"\x07\x02", b"\x07", b"\x07\x01\x00"):
        seeds.add_at_limit("management", struct.pack("<HHH", 0x13, 0, len(body)) + body)
