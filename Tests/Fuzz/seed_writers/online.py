"""What an online service, a prover and its carrier tell each other."""

import base64

import yaml

from .shared import DESCRIPTOR, ROOT, SIGNER, ZEROS, text


def add_online(seeds):
    pin = "sha256//" + base64.b64encode(ZEROS).decode()
    service = "https://fuzz.example"
    seeds.add(
        "service-address", service, "https://[::1]:8443/", "http://127.0.0.1:80", f"{service},https://b.example:1", pin
    )
    seeds.add(
        "service-address",
        "ABCDE-FGHJK-MNPQR-STUVW",
        f"holdfast-invitation:1?code=ABCDE-FGHJK-MNPQR-STUVW&service={service}",
    )
    seeds.add(
        "known-services",
        text({"version": 2, "pins": {service: [pin]}, "default": {"services": [service], "ca": "/ca"}}),
    )
    seeds.add("known-services", text({"version": 1, "pins": {}}))
    request = {"service": service, "request": "00" * 16}
    failure = {
        "result": "failure", "kind": "refused", "service": service, "status": 403, "title": "t", "detail": "d",
        "reasons": ["a.b"], "arc": None, "request_id": "r", "help": None,
    }  # fmt: skip
    token = {"token": "AAEC", "format": "cose", "claims": {"a": 1}, "terms": "x"}
    for report in (
        {"progress": "attesting", "service": service}, {"progress": "asking", "service": service},
        {"progress": "waiting", **request, "seconds": 5}, {"progress": "failed", "failure": failure},
        {"result": "token", "service": service, **token}, {"result": "waiting", **request}, failure,
        {"result": "answer", "service": service, "answer": {"x": [1]}},
    ):  # fmt: skip
        seeds.add("carrier-report", text(report))
    task = {"version": 1, "services": [{"url": service, "pins": [pin]}], "timeout": 60, "ca": "/ca", "system": True}
    work = {
        "evidence": "AAEC", "device": DESCRIPTOR, "invitation": "x", "format": "cose", "user": "ann", "commands": ["a"],
        "request": {"id": "00" * 16, "service": service}, "retries": 3, "pause": 1,
    }  # fmt: skip
    seeds.add(
        "carrier-task", text({**task, **work}), text({**task, "operation": "fetch", "attempts": 2, "body": {"a": 1}})
    )
    seeds.add("carrier-task", text({**task, "operation": "configuration", "attempts": 1}))
    problem = {
        "type": "about:blank", "title": "t", "status": 403, "detail": "d", "reasons": ["a.b"], "arc": "x",
        "request_id": "r", "help": "h",
    }  # fmt: skip
    attested = {"attestation": "a.b.c.d.e", "arc": "x", "expires": 1}
    for status in range(5):
        for kind, body in ((0, token), (0, attested), (0, {"status": "waiting", "request": "00" * 16}), (1, problem)):
            seeds.add("service-answer", bytes([status << 2 | kind]) + text(body).encode())
    for state in ("waiting", "approved", "collected", "refused", "expired"):
        seeds.add("service-answer", b"\x00" + text({"request": "00" * 16, "status": state, "reason": "r"}).encode())
    seeds.add("service-answer", b"\x02abc")
    standing = {"token": "00" * 32, "status": "valid", "expires": 1}
    seeds.add("enrolment-answer", text({**standing, "terms": "a.b.c"}), text({**standing, "more": {"a": 1.5}}))
    for status in ("expired", "revoked", "left", "superseded", "blocked", "a", "a" * 32, "a" * 33, ""):
        seeds.add("enrolment-answer", text({**standing, "status": status}))
    for name, value in (("token", "01" * 32), ("expires", 2**53 - 1), ("expires", -1), ("terms", None), ("status", 1)):
        seeds.add("enrolment-answer", text({**standing, name: value}))
    configuration = {
        "iss": "i", "iat": 1, "revision": 2, "force_pins": 0, "services": [service],
        "domains": {"api.example": {"protected": True, "measurement": False}}, "pins": {"api.example": [pin], "*": []},
        "features": {"secure_strings": True, "custom_tokens": False, "message_signing": True},
    }  # fmt: skip
    for domain in ("https://api.example/x?y", "https://a@b.example", "HTTPS://API.Example:1", "-a.example", "a..b"):
        rules = {domain: {"protected": True, "measurement": False}}
        seeds.add("app-configuration", text({**configuration, "domains": rules, "pins": {domain: [pin]}}))
    seeds.add("app-configuration", text({**configuration, "services": [service, service]}))
    for name in problem:
        body = text({**problem, name: "é" * 5000})
        seeds.add("service-answer", bytes([3 << 2 | 1]) + body.encode())
    point = base64.urlsafe_b64encode(SIGNER.point).decode().rstrip("=")
    seeds.add(
        "app-configuration", text(configuration), f"holdfast-configuration:1?key={point}&service={service}&pin={pin}"
    )


def request_bodies():
    """The smallest body of each operation of the service, the largest one, and wrong ones."""
    document = yaml.safe_load((ROOT / "docs/openapi.yaml").read_text())
    schemas = [
        operation["requestBody"]["content"]["application/json"]["schema"]
        for methods in document["paths"].values()
        for operation in methods.values()
        if "requestBody" in operation
    ]

    def example(schema, is_large):
        if "$ref" in schema:
            return example(document["components"]["schemas"][schema["$ref"].rsplit("/", 1)[1]], is_large)
        kind = schema.get("type", "object")
        kind = kind[0] if isinstance(kind, list) else kind
        if "enum" in schema:
            return schema["enum"][-1 if is_large else 0]
        if kind == "object":
            members = schema.get("properties", {})
            if "device_id" in members and "public_key" in members:
                return DESCRIPTOR
            names = members if is_large else schema.get("required", [])
            return {name: example(members[name], is_large) for name in names}
        if kind == "array":
            count = max(schema.get("minItems", 0), 1 if is_large else 0)
            return [example(schema["items"], is_large) for _ in range(count)]
        if kind == "integer":
            return min(schema.get("maximum", 5), 2**53 - 1) if is_large else schema.get("minimum", 0)
        if kind == "boolean":
            return is_large
        if schema.get("contentEncoding") or "=" in schema.get("pattern", ""):
            count = schema.get("minLength", 4)
            return (
                base64.b64encode(bytes(count // 4 * 3))[:-1].decode() + "=" if count == 44 else "A" * (count // 4 * 4)
            )
        return "0" * max(schema.get("minLength", 1), 1)

    for schema in schemas:
        small, large = (example(schema, is_large) for is_large in (False, True))
        bodies = [small, large]
        for member, value in large.items():
            bodies += [{**large, member: wrong} for wrong in ("", 0, [], {}, ["x"], "\u0001", "g" * 9, "A" * 300)]
            if isinstance(value, list):
                bodies.append({**large, member: value * 70})
        yield from map(text, bodies)


def add_operators(seeds):
    """Forms of the console, and the contents of backups."""
    seeds.add("form", "", "a=b", "name=lock+1&name=&x=%C3%A9%2B%26", "&&=&a", "a=%", "a=%ff", "&".join(["n=1"] * 257))
    begin = bytes(7) + b"\x09" + bytes(8)
    table = b"T\x06device"
    values = [
        b"\x00",
        b"\x01" + bytes(8),
        b"\x02" + bytes([0, 0, 0, 2]) + "é".encode(),
        b"\x03" + bytes([0, 0, 0, 1, 7]),
    ]
    rows = [b"R" + bytes([count]) + b"".join(values[:count]) for count in range(5)]
    end = lambda count: b"E" + count.to_bytes(8, "big")
    seeds.add("backup", begin + end(0), begin + table + end(0), begin + table + b"".join(rows) + end(len(rows)))
    # After a chunk with one row.
    for more in (end(1), end(2), table + rows[4] + end(2), rows[4][:-1], b"", b"x"):
        seeds.add("backup", b"\xff" + more)
    seeds.add("backup", begin + rows[1] + end(0), begin + end(0) + b"T", begin + table + rows[4][:-1], begin[:15])
