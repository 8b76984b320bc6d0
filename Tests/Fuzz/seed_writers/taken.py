"""More inputs that are taken, for readers that took only one or two: only those have variants at limits."""

import base64
import hashlib
import hmac
import json
import struct

from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from holdfast_peer import cbor

from .shared import DESCRIPTOR, PUBLIC, SIGNER, TEST_TIME, ZEROS, jws, text, url


def add_taken(seeds):
    add_keys(seeds)
    add_addresses(seeds)
    add_backups(seeds)
    add_states(seeds)
    add_headers(seeds)
    add_bodies(seeds)
    for count in (0, 1, 2, 3, 64):
        names = [f"app.{number:02}" for number in range(count)]
        seeds.add_at_limit("fingerprints", cbor.encode([[name, bytes(8)] for name in names]))
    for name in ("a", "a-b.c_d", "x" * 32, "0", "app.file./usr/lib/x"):
        seeds.add_at_limit("fingerprints", cbor.encode([[name, b"\xff" * 8]]))
    manifest = {"maker": "m", "app": "a", "images": {"00" * 32: [1, 2, 3]}}
    for images in (
        {"00" * 32: {"version": [0, 0, 0]}}, {"ff" * 32: [0, 1, 65535]},
        {f"{number:02x}" * 32: [1, number, 0] for number in range(5)},
        {f"{number:02x}" * 32: {"version": [1, 0, number], "tree_digest": f"{number:02x}" * 32} for number in range(3)},
    ):  # fmt: skip
        seeds.add_at_limit("release-manifest", text({**manifest, "images": images}))
    for name in ("a" * 64, "é", "an app"):
        seeds.add_at_limit("release-manifest", text({**manifest, "app": name}), text({**manifest, "maker": name}))
    policy = {"version": 1, "commands": {"unlock": {"factors": ["integrity", "device"]}}}
    claims = {"num": 1, "iat": TEST_TIME, "policy": policy}
    seeds.add_at_limit("signed-policy", text(claims), text({**claims, "device": "d1" * 16}))
    for number in (2, 255, 2**32, 2**53 - 1):
        seeds.add_at_limit("signed-policy", text({**claims, "num": number}), text({**claims, "iat": number}))
    for count in (0, 1, 5):
        lines = [{"holdfast_audit": 1, "device_id": "ab" * 16, "after": 7 + count, "head": "cd" * 32}]
        lines += [{"entry": cbor.encode([1, TEST_TIME + number, 4]).hex()} for number in range(count)]
        lines += [{"through": 7 + 2 * count, "head": "ef" * 32}]
        archive = "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines)
        seeds.add_at_limit("audit-archive", archive, archive.replace('"after":' + str(7 + count), '"after":0'))


def add_keys(seeds):
    roots = [f"{number:02x}" * 16 for number in range(64)]
    seeds.add_at_limit("release-keys", roots[1], "\n".join(roots) + "\n", "\n".join(roots[:63]), f"#\n{roots[2]}#x\n")
    seeds.add_at_limit("release-keys", f"\n\n{roots[3].upper()}\n", f" {roots[4]} \n", f"{roots[5]}\r\n{roots[6]}\r\n")
    for count in (48, 96, 48 * 64):
        seeds.add_at_limit("release-keys", b"".join(struct.pack(">H", number) for number in range(count // 2)))
    for device in ("ab" * 16, "ff" * 16):
        seeds.add_at_limit("public-key", text({**DESCRIPTOR, "device_id": device}))
        seeds.add_at_limit("public-key", text({"name": "door", **DESCRIPTOR, "device_id": device}))
    attestation = {"iss": "a", "aud": "u", "iat": TEST_TIME, "exp": TEST_TIME + 60, "arc": "0123456789"}
    measured = {
        "sub": "app", "ver": [1, 2, 3], "did": base64.b64encode(bytes(16)).decode(), "imh": base64.b64encode(ZEROS).decode(),
        "dmh": base64.b64encode(ZEROS).decode(), "mpk": base64.b64encode(bytes(16)).decode(),
        "pay": base64.b64encode(ZEROS).decode(),
    }  # fmt: skip
    head = url(text({"alg": "HS256", "typ": "holdfast-at+jwt"}).encode())
    for claims in (attestation, {**attestation, **measured}, {**attestation, **measured, "anno": ["a", "b"]}):
        signed = f"{head}.{url(text(claims).encode())}"
        seeds.add_at_limit("jws", f"{signed}.{url(hmac.new(ZEROS, signed.encode(), hashlib.sha256).digest())}")
        seeds.add_at_limit("jws", jws("holdfast-at+jwt", claims))


def add_addresses(seeds):
    pin = "sha256//" + base64.b64encode(bytes(range(32))).decode()
    for address in (
        "https://a.example:65535", "https://10.0.0.1", "https://[2001:db8::1]", "http://localhost:8080",
        "http://[::1]:1", "https://xn--bcher-kva.example/", "https://a-b.c1.example", f"https://{'a' * 63}.example",
    ):  # fmt: skip
        seeds.add_at_limit("service-address", address, f"{address},https://second.example")
        code = "ABCDE-FGHJK-MNPQR-STUVW"
        seeds.add_at_limit("service-address", f"holdfast-invitation:1?code={code}&service={address}&pin={pin}")
    seeds.add_at_limit("service-address", ",".join(f"https://h{number}.example" for number in range(8)))


def add_backups(seeds):
    number = lambda value, count=8: value.to_bytes(count, "big")
    begin, end = bytes(7) + b"\x09" + number(TEST_TIME), lambda count: b"E" + number(count)
    values = {
        "nothing": [b"\x00"], "integers": [b"\x01" + number(value) for value in (0, 1, 255, 2**63 - 1, 2**64 - 1)],
        "texts": [b"\x02" + number(len(value), 4) + value for value in (b"", b"a", "é€".encode(), b"x" * 300)],
        "bytes": [b"\x03" + number(len(value), 4) + value for value in (b"", bytes(1), bytes(range(256)))],
    }  # fmt: skip
    for name, group in values.items():
        rows = [b"R\x01" + value for value in group]
        seeds.add_at_limit(
            "backup", begin + b"T" + bytes([len(name)]) + name.encode() + b"".join(rows) + end(len(rows))
        )
        seeds.add_at_limit("backup", begin + b"T\x01a" + b"R" + bytes([len(group)]) + b"".join(group) + end(1))
    tables = [b"T" + bytes([count]) + b"t" * count for count in (1, 32, 64)]
    seeds.add_at_limit("backup", begin + b"".join(tables) + end(0), begin + (tables[0] + b"R\x00") * 2 + end(2))


def add_states(seeds):
    header = bytes([1, 1, 1]) + bytes(28)
    key = hashlib.scrypt(b"correct horse", salt=bytes(16), n=2, r=1, p=1, dklen=32)
    for count in (0, 1, 64, 1000):
        body = header + AESGCM(key).encrypt(bytes(12), bytes(count), b"hfstate1" + header)
        check = hashlib.sha256(b"holdfast/1 state string\x00" + body).digest()[:4]
        seeds.add_at_limit("state-string", "hfstate1" + url(body + check))
    der = bytes.fromhex("3059301306072a8648ce3d020106082a8648ce3d030107034200") + SIGNER.point
    seeds.add_at_limit("public-key", text(PUBLIC), base64.b64encode(der))
    for secret in (None, bytes(16)):
        for change in range(5):
            record = ["a", 1, 1, "", secret, [1, 1, 6], 0, 0, 0, *[None] * 4, 0, 0, [0], None, change, *[None] * 3]
            seeds.add_at_limit("state-records", cbor.encode(record))
    for count in (1365, 1366, 1367, 1368):
        seeds.add_at_limit("actuator", b'\x01{"sequence":7,"result_base64url":"' + b"A" * count + b'"}\n')
    for count in (4095, 4096, 4097):
        seeds.add_at_limit("line", bytes([0, 0, 1]) + struct.pack(">H", count) + bytes(2))


def add_headers(seeds):
    """Signed texts with headers of their own, before a zero and the shortest payload among the other inputs."""
    types = {
        "terms": "holdfast-terms+jwt", "signed-policy": "holdfast-policy+jwt", "signed-json": "fuzz",
        "posture-rules": "holdfast-posture-rules+jwt", "app-configuration": "holdfast-configuration+jwt",
    }  # fmt: skip
    for target, kind in types.items():
        payload = min((each for each in seeds.inputs[target] if each[:2] == b'{"'), key=lambda each: (len(each), each))
        header = {"alg": "ES256", "kid": url(SIGNER.kid), "typ": kind}
        changed = [header, dict(reversed(header.items())), {**header, "a": 0}, {**header, "crit": ["a"], "a": 0}]
        changed += [{**header, "jwk": PUBLIC}, {**header, "kid": url(bytes(8))}, {**header, "kid": ""}]
        changed += [{**header, "alg": name} for name in ("HS256", "none", "es256")]
        changed += [{**header, "typ": other} for other in (kind.upper(), kind + "x", "JWT", "")]
        changed += [{name: value for name, value in header.items() if name != missing} for missing in header]
        texts = [text(each) for each in changed]
        texts += [text(header)[:-1] + ',"alg":"ES256"}', text(header) + " ", text(header)[:-1], "[]"]
        for each in texts:
            seeds.add_at_limit(target, b"\xff" + each.encode() + b"\0" + payload)


def add_bodies(seeds):
    """The name of a user in letters of two bytes each, around 32 of them."""
    for count in (16, 17, 31, 32, 33):
        body = text({"attestation": "a", "device": DESCRIPTOR, "user": "é" * count})
        seeds.add_at_limit("http-body", b"\xff" + body.encode())
