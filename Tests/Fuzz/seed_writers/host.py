"""The files of a prover's host, and a device's policy."""

import base64
import hashlib
import re

from holdfast_peer import cbor, vault

from .online import request_bodies
from .shared import DESCRIPTOR, PUBLIC, ROOT, SIGNER, ZEROS, framed, groups, jws, text, url


def add_host(seeds):
    seeds.add(
        "proc",
        "00400000-00452000 r-xp 00000000 08:02 173521      /usr/bin/dbus-daemon\n7f00-7f10 rw-p 00000000 00:00 0 \n",
    )
    seeds.add(
        "proc",
        "00400000-00452000 r-xp 00000000 08:02 1 /usr/bin/app\n00452000-00460000 r-xp 00052000 08:02 1 /usr/bin/app\n"
        "00500000-00501000 r-xp 00001000 08:02 2 /lib/a.so (deleted)\n00600000-00601000 r-xp 00000000 08:02 2 /lib/a.so\n"
        "7ffe-7fff r-xp 00000000 00:00 0 [vdso]\n",
        "   0: 0100007F:0016 00000000:0000 0A 00000000:00000000\n   1: 0100007F:0017 00000000:0000 01 0:0\n",
        "Name:\tapp\nTracerPid:\t0\nSeccomp:\t2\nSeccomp_filters:\t1\nVmLck:\t 12 kB\n",
        "Filename Type\n/dev/sda2 partition\n",
    )
    record = vault.record(bytes(16), ZEROS, ZEROS, 1, b"passcode", bytes([10, 4, 8, 1]) + ZEROS, ZEROS, ZEROS)
    seeds.add("vault-record", record, vault.record(bytes(16), ZEROS, ZEROS, 1, key_file=ZEROS, salt=ZEROS))
    message = lambda operation, name, secret=b"": bytes([operation, len(name)]) + name + secret
    messages = [
        message(1, b"a", b"secret"),
        message(2, b"a"),
        message(3, b""),
        message(4, b"a"),
        message(2, b"b"),
        message(5, b""),
    ]
    for length in (b"\x00\x00", b"\x00\x05", b"\x60\x00", b"\xff\xff"):
        seeds.add(
            "vault-contents",
            *(length + change for change in (b"", b"\x00\x00\x21", b"\x40\x00\x07", b"\x80", b"\xff\x00\x25")),
        )
    seeds.add(
        "vault-agent",
        b"".join(b"\x01" + framed(item) for item in messages),
        *(b"\x01" + framed(item) for item in messages),
    )
    seeds.add(
        "vault-agent",
        b"".join(b"\x00" + framed(message(1, b"n%d" % i, b"s" * 9)) for i in range(34)) + b"\x1f" + framed(messages[2]),
    )


def add_policies(seeds):
    der = bytes.fromhex("3059301306072a8648ce3d020106082a8648ce3d030107034200") + SIGNER.point
    rule = {
        "factors": ["integrity", "device", "otp", "seal"], "generation_floor": 2, "minimum_version": [1, 2, 3],
        "maximum_age_seconds": 60, "compatibility": False, "audit": "text", "text": "Open {1} for {2}",
        "maximum_version": [9, 0, 0], "parameters": [{"one_of": ["a"]}, {"range": [1, 9]}, {"optional": True}],
        "step_up": [{"above": {"parameter": 2, "value": 5}, "factors": ["otp"]}],
    }  # fmt: skip
    policy = {
        "version": 1, "accept_unsigned": False, "accept_development": True, "issuer": {"mac": True}, "generation_floor": 1,
        "minimum_version": [1, 0, 0], "maximum_age_seconds": 100, "maximum_issue_advance_days": 3,
        "audit": {"entries": 1000}, "commands": {"open": rule, "status": {"factors": ["device"]}},
    }  # fmt: skip
    seeds.add("policy", text(policy), text({"version": 1, "commands": {}}))
    home, kids = "01" * 8, ["00" * 8, "02" * 8]
    for audit in (
        {"home": home}, {"entries": 1000, "home": home, "when_full": "refuse"}, {"entries": 1000, "home": home, "when_full": "drop"},
        {"entries": 1000, "home": home}, {"entries": 1000, "home": home, "when_full": "x"}, {"home": home, "when_full": "drop"},
        {"home": "x"}, {"home": 1}, {}, {"entries": 1000},
    ):  # fmt: skip
        seeds.add("policy", text({"version": 1, "audit": audit, "introducers": kids, "commands": {}}))
    for introducers in ([kids[0], kids[0]], ["x"], [1], [f"{number:016x}" for number in range(40)], {}):
        seeds.add("policy", text({"version": 1, "introducers": introducers, "commands": {}}))
    steps = [
        {"above": {"parameter": 1, "value": 5}}, {"outside_hours": ["08:00", "18:30"]}, {"first_use": True},
        {"outside_hours": ["22:00", "06:00"]}, {"token_older_than_seconds": 60},
    ]  # fmt: skip
    named = {"open": rule, "lock": {"factors": ["device", "seal"]}, "seal-request": {"factors": ["device"]}}
    for step in steps:
        named["pay"] = {"factors": ["device"], "step_up": [{**step, "factors": ["seal"]}]}
        seeds.add("policy", text({"version": 1, "commands": named}))
    # One condition, and two, each of which is read by itself.
    for one, other in zip(steps, [*steps[1:], {}], strict=True):
        for step in (one, {**one, **other}):
            commands = {"pay": {"factors": ["device"], "step_up": [{**step, "factors": ["seal"]}]}}
            seeds.add_at_limit("policy", text({"version": 1, "commands": commands}))
    for parameters in (
        [{"range": [0, 9]}, {"one_of": ["a"]}], [{}, {"optional": True}], [{"optional": True}, {}],
        [{"one_of": ["a", "a"]}], [{"one_of": ["x" * 65]}],
    ):  # fmt: skip
        seeds.add("policy", text({"version": 1, "commands": {"pay": {"factors": ["seal"], "parameters": parameters}}}))
    for hours in (["8:00", "18:00"], ["24:01", "18:00"], ["08:00", "08:00"], ["08:00"]):
        step = {"outside_hours": hours, "factors": ["seal"]}
        seeds.add("policy", text({"version": 1, "commands": {"pay": {"factors": ["device"], "step_up": [step]}}}))
    small = {"unlock": {"factors": ["device"]}, "lock": {"factors": ["integrity", "device", "otp", "seal"]}}
    seeds.add("policy", text({"version": 1, "commands": small}))
    claims_ = {"num": 1, "iat": 2, "policy": {"version": 1, "commands": {}}}
    seeds.add("signed-policy", text(claims_), text({**claims_, "policy": policy, "device": "d1" * 16}))
    service = {
        "issuer": "i", "attestation_issuer": "a", "audience": "u", "images": {"00" * 32: {"subject": "app", "version": [1, 2, 3]}},
        "devices": "listed", "device_makers": [base64.b64encode(der).decode()], "refused_properties": ["debugger"],
        "known_code": False, "subject": "s", "attestation_seconds": 60, "token_seconds": 60, "commands": ["a"],
        "maximum_uses": 3, "secure_strings": True, "custom_tokens": True, "message_signing": True, "decoy_tokens": True,
        "offline_seconds": 5, "settings": {"type": "text", "value": "YQ=="},
        "compliance": [{"subject": "os", "operator": ">=", "versions": ["12"], "action": "block"}],
    }  # fmt: skip
    seeds.add("service-policy", text(service))
    image = {"subject": "app", "version": [1, 2, 3], "proof_key": "00" * 8, "tree_digest": "11" * 32}
    settings = {"type": "json", "value": "e30="}
    scopes = [{"app": "app"}, {"app": "app", "version": [1, 2, 3]}, {"device": "d1" * 16}]
    scopes.append({**scopes[1], **scopes[2]})
    base = {"issuer": "i", "attestation_issuer": "a", "audience": "u", "images": {"00" * 32: image}}
    scoped = [{**scope, "settings": settings} for scope in scopes]
    seeds.add("service-policy", text({**base, "settings_for": scoped}))
    for wrong in (
        [{"settings": settings}], [scoped[0], scoped[0]], [{"app": "a"}], [{"version": [1, 2, 3], "settings": settings}],
        [{"device": "d1", "settings": settings}], [scoped[0]] * 33,
    ):  # fmt: skip
        seeds.add("service-policy", text({**base, "settings_for": wrong}))
    for changes in ({"proof_key": "0"}, {"tree_digest": "g" * 64}, {"subject": ""}):
        seeds.add("service-policy", text({**base, "images": {"00" * 32: {**image, **changes}}}))
    first_come = {"devices": "first-come", "device_makers": [base64.b64encode(der).decode()]}
    seeds.add("service-policy", text({**base, **first_come}), text({**base, "devices": "none"}))
    report = {
        "issuer": "i", "subject": "s", "version": [1, 2, 3], "generation": 1, "issued": 1, "expires": 2,
        "maximum_uses": None, "commands": ["a"], "user": None,
    }  # fmt: skip
    seeds.add(
        "token-answer", text({"token": "2IRD", "format": "cose", "claims": report, "terms": "a.b.c"}), b"\xd8\x60\x84"
    )
    rules = {
        "num": 1,
        "iat": 2,
        "until": 3,
        "default": "warn",
        "unknown": "refuse",
        "rules": {"disk-encryption": "ignore", "other-finding": "wipe"},
    }
    seeds.add("posture-rules", text(rules), text({**rules, "default": "ignore", "rules": {}}))
    finding = re.search(
        r'^  case \w+ = "([a-z-]+)"',
        (ROOT / "Sources/HoldfastMeasurement/Posture/Posture.swift").read_text(),
        re.MULTILINE,
    )
    for names in ([], ["other"], ["Other"], [finding[1]] if finding else []):
        written = {
            "number": 1,
            "until": 3,
            "default": "warn",
            "unknown": "refuse",
            "rules": dict.fromkeys(names, "wipe"),
        }
        seeds.add("posture-rules", text(written), text({**rules, "rules": dict.fromkeys(names, "wipe")}))
    boot = "01234567-89ab-cdef-0123-456789abcdef"
    latest = {"version": 1, "seconds": 5, "boot_id": boot, "boot_seconds": 6}
    seeds.add("prover-state", text(latest) + "\n", text({**latest, "boot_id": None, "boot_seconds": None}) + "\n")
    seeds.add(
        "prover-state",
        text({"version": 1, "wishes": {"format": "cose"}, "service": "https://a.example", "request": "00" * 16}),
    )
    sign = jws
    configuration = next(
        bytes.fromhex(test["configuration"])
        for _, _, tests in groups("measurement_test")
        for test in tests
        if "configuration" in test and test.get("result") == "valid"
    )
    fingerprints = cbor.encode([["app.debug", bytes(8)], ["app.image", bytes(8)]])
    token = b"token"
    terms = sign("holdfast-terms+jwt", {
        "iss": "i", "jti": url(bytes(16)), "tok": url(hashlib.sha256(token).digest()), "iat": 1, "sub": "app",
        "ver": [1, 2, 3], "key": PUBLIC, "offline_seconds": 86400,
    })  # fmt: skip
    whole = {
        "version": 4, "device": DESCRIPTOR, "token": "measurement_token.cose", "token_sha256": "right", "issued": report,
        "configuration_sha256": "right", "fingerprints_sha256": "right", "terms_sha256": "right", "issuer_key": PUBLIC,
    }  # fmt: skip
    times = (text({**latest, "boot_id": None, "boot_seconds": None}) + "\n").encode(), b"x", b"y" * 500
    remembered = (hashlib.sha256(token).hexdigest() + "\n").encode()
    manifests = [
        whole, {**whole, "version": 3}, {**whole, "token_sha256": "00" * 32}, {**whole, "fingerprints_sha256": "00" * 32},
        {**whole, "terms_sha256": "00" * 32}, {**whole, "configuration_sha256": "00" * 32}, {},
    ]  # fmt: skip
    for manifest in manifests:
        for time in times:
            files = (configuration, token, fingerprints, terms.encode(), time, remembered, text(manifest).encode())
            seeds.add("prover-state", b"\xff" + framed(*files))
    for wrong in range(4):
        files = [configuration, token, fingerprints, terms.encode(), times[0], b"", text(whole).encode()]
        files[wrong] = b""
        seeds.add("prover-state", b"\xff" + framed(*files), b"\xff" + framed(*files[:wrong]))
    seeds.add("prover-state", 'ID=debian\nVERSION_ID="12"\n', "ID='a b'\nVERSION_ID=12.4\\ \n")
    enrolment = {
        "version": 2, "device": DESCRIPTOR, "token": "token.cose", "token_sha256": "00" * 32,
        "configuration_sha256": "00" * 32, "fingerprints_sha256": "00" * 32,
    }  # fmt: skip
    for name in (
        "measurement_token.cbor",
        "measurement_token.jose",
        "token.cbor",
        "token.jwt",
        "measurement_token.jwt",
    ):
        seeds.add("prover-state", text({**enrolment, "token": name}))
        seeds.add(
            "prover-state",
            text({**enrolment, "token": name, "version": 3, "issued": report, "service": "https://a.example"}),
        )
        seeds.add(
            "prover-state",
            text(
                {
                    **enrolment,
                    "token": name,
                    "version": 4,
                    "issued": report,
                    "terms_sha256": "00" * 32,
                    "issuer_key": PUBLIC,
                }
            ),
        )
    seeds.add(
        "release-manifest",
        text(
            {
                "maker": "m",
                "app": "a",
                "images": {"00" * 32: [1, 2, 3], "11" * 32: {"version": [1, 2, 3], "tree_digest": "22" * 32}},
            }
        ),
    )
    seeds.add("invitation-code", "ABCDE-FGHIJ-KLMNO-PQRST", "abcdefghijklmnopqrst")
    seeds.add("http-body", *(b"\xff" + body.encode() for body in request_bodies()))
    for code in ("ABCDE-FGHIJ-KLMNO-PQRST", "ABCDE"):
        body = text({"attestation": "a", "device": DESCRIPTOR, "invitation": code})
        seeds.add("http-body", b"\xff" + body.encode())
    for payload in ({"a": 1}, {"iss": 1}):
        seeds.add("http-body", b"\xff" + text({"evidence": "AAEC", "payload": payload}).encode())
    seeds.add(
        "actuator",
        b"\x02" + cbor.encode([2, ["lock", "unlock"]]),
        b"\x00" + framed(cbor.encode([0, b"done", 7, "event"]), cbor.encode([1, "text"])),
    )
    seeds.add(
        "actuator",
        b'\x01{"commands":["a"]}\n{"sequence":7,"result":"x","event":"e"}\n{"sequence":7,"result_base64url":"AA"}\n{"sequence":1,"error":"x"}\n',
    )
    for count in (1024, 1025):
        seeds.add("actuator", b"\x02" + cbor.encode([0, bytes(count)]))
        seeds.add("actuator", b'\x01{"sequence":7,"result":"' + b"x" * count + b'"}\n')
    seeds.add("addresses", "exec:/bin/x", "lines:/bin/x", "unix:/run/x", "Open {1} {7} {2}")
