"""Texts that stand in tests and documents."""

import re

from .shared import ROOT

HARVEST = {
    "otpauth": (r"^otpauth://", ["Tests/HoldfastAuthenticatorTests"]),
    "migration": (r"^otpauth-migration", ["Tests/HoldfastAuthenticatorTests"]),
    "pskc": (r"<", ["Tests/HoldfastAuthenticatorTests/Formats/PSKC", "Tests/Interop"]),
    "policy": (r"^\s*\{", ["Tests/HoldfastDeviceTests/Policy", "docs"]),
    "service-policy": (r"^\s*\{", ["Tests/HoldfastIssuerTests", "docs"]),
    "http-body": (r"^\s*\{", ["Tests/HoldfastServiceTests", "docs", "Tests/Interop/test_service.py"]),
    "endpoint": (r"^[a-z0-9]+:", ["Tests/HoldfastTransportTests/EndpointTests.swift"]),
    "service-address": (r"://|^[A-Za-z0-9 -]{20,}", ["Tests/HoldfastOnlineTests"]),
    "known-services": (r"^\s*\{", ["Tests/HoldfastOnlineTests"]),
    "json": (r"[\[{\"]", ["Tests/HoldfastFormatsTests", "Tests/HoldfastCoreTests/Encoding"]),
    "actuator": (r"^\{", ["Tests/HoldfastDeviceTests/Actuator"]),
    "proc": (r"\d+-[0-9a-f]+ |Tracer", ["Tests/HoldfastMeasurementTests"]),
    "timestamp": (r"\d{4}-", ["Tests/HoldfastFormatsTests/TimestampTests.swift"]),
    "seal-request": (r"holdfast-seal", ["Tests", "docs"]),
    "carrier-report": (r"^\s*\{", ["Tests/HoldfastCarrierTests"]),
    "service-answer": (r"^\s*\{", ["Tests/HoldfastCarrierTests"]),
}
LITERAL = re.compile(r'#?"""\n(.*?)"""|#"(.*?)"#|"((?:[^"\\\n]|\\.)*)"', re.DOTALL)


def add_literals(seeds):
    for target, (pattern, places) in HARVEST.items():
        for place in places:
            path = ROOT / place
            for file in sorted(path.rglob("*") if path.is_dir() else [path]):
                if file.suffix not in (".swift", ".py", ".md"):
                    continue
                source = file.read_text(errors="ignore")
                texts = ["".join(parts) for parts in LITERAL.findall(source)]
                texts += re.findall(r"```json\n(.*?)```", source, re.DOTALL)
                for found in texts:
                    if re.search(pattern, found) and len(found) < 4096:
                        prefix = (
                            b"\x01"
                            if target == "actuator"
                            else b"\x00"
                            if target in ("http-body", "service-answer")
                            else b""
                        )
                        seeds.add(target, prefix + found.encode())
