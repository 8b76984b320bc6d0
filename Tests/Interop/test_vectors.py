"""The committed vectors: their frame is right, the reader of this package agrees with each, and they are what is generated."""

import filecmp
import json
import pathlib
import subprocess
import sys

import pytest
from holdfast_peer import cose, jose, measurement, session
from holdfast_peer.keys import PrivateKey
from holdfast_peer.refusal import Refused
from vector_writers import (
    activation_vectors,
    actuator_vectors,
    attestation_vectors,
    audit_page_vectors,
    audit_vectors,
    bulletin_vectors,
    discovery_vectors,
    firmware_image_vectors,
    frame_vectors,
    measurement_vectors,
    oath_vectors,
    round_vectors,
    schemas,
    seal_vectors,
    session_vectors,
    state_vectors,
)

HERE = pathlib.Path(__file__).resolve().parent
VECTORS = HERE.parents[1] / "vectors"


# The checks of the areas whose members have the types that their schema says.
CHECKS = {
    **activation_vectors.CHECKS,
    **actuator_vectors.CHECKS,
    **attestation_vectors.CHECKS,
    **audit_page_vectors.CHECKS,
    **audit_vectors.CHECKS,
    **bulletin_vectors.CHECKS,
    **discovery_vectors.CHECKS,
    **firmware_image_vectors.CHECKS,
    **frame_vectors.CHECKS,
    "SessionRound": round_vectors.check_round,
    **seal_vectors.CHECKS,
    **state_vectors.CHECKS,
}


def members(kind, fields):
    """The members of a group or test of a kind, those in hexadecimal digits as bytes."""
    inputs, names, _ = next(groups[kind] for groups in schemas.FILES.values() if kind in groups)
    declared = {**inputs, **names}
    return {
        name: bytes.fromhex(value) if isinstance(value, str) and is_hexadecimal(declared[name]) else value
        for name, value in fields.items()
        if name in declared
    }


def is_hexadecimal(schema):
    return any("pattern" in one for one in schema.get("oneOf", [schema]))


def replay(group, test):
    """Raises Refused where the test's input has to be refused; asserts what a valid one gives."""
    if group["type"] in CHECKS:
        CHECKS[group["type"]](**members(group["type"], group), **members(group["type"], test))
        return
    value = {k: bytes.fromhex(v) for k, v in {**group, **test}.items() if isinstance(v, str) and k in HEX_FIELDS}
    kind = group["type"]
    if kind == "MeasurementConfiguration":
        measurement.parse_configuration(value["configuration"])
    elif kind == "Measurement":
        names = ("appComponents", "deviceComponents")
        components = {name: [[i, bytes.fromhex(digest)] for i, digest in test[name]] for name in names}
        measurement_vectors.check_measurement(**{**members(kind, test), **components})
    elif kind == "ReleaseKeys":
        evidence_key, proof_key = measurement.release_keys(value["root"])
        if (evidence_key, proof_key, measurement.proof_key_id(proof_key)) != (
            value["evidenceKey"],
            value["mpk"],
            value["mpkId"],
        ):
            raise Refused("WrongKey")
    elif kind == "Evidence":
        read = measurement.parse_evidence(value["evidence"], value["evidenceKey"])
        assert read["configuration"] == value["configuration"] and read["subject"] == test["subject"]
    elif kind == "Proof":
        if measurement.proof(value["mpk"], value["nonce"], value["measurement"]) != value["proof"]:
            raise Refused("WrongProof")
    elif kind.startswith("MeasurementToken"):
        module = cose if kind.endswith("COSE") else jose
        more = {}
        if module is cose:
            more = {
                "accept_unsigned": group["acceptUnsigned"],
                "accept_mac": group.get("acceptMac", False),
                "mac_keys": [value["macKey"]] if "macKey" in value else [],
            }
        claims, _ = module.open_token(
            value["token"], PrivateKey(value["devicePrivateKey"]), [value["issuerPublicKey"]], value["deviceId"], **more
        )
        assert {k: v.hex() if isinstance(v, bytes) else v for k, v in claims.items()} == test["claims"]
    elif kind == "RequestNumber":
        session_vectors.check_request_number(**{k: v for k, v in test.items() if k not in FRAME})
    elif kind in ("HOTP", "TOTP", "OCRA", "OCRASuite"):
        oath_vectors.check(kind, **{k: oath_vectors.typed(k, v) for k, v in test.items() if k not in FRAME})
    else:
        parse = {
            "SessionM1": session.parse_message_1,
            "SessionM2": session.parse_message_2,
            "SessionM3": session.parse_message_3,
            "SessionRequest": session.parse_request,
            "SessionReply": session.parse_result,
            "SessionCompatibility": session.parse_compatibility,
        }[kind]
        parse(value["message"])


FRAME = {"tcId", "comment", "flags", "result", "layer"}
HEX_FIELDS = {
    "root",
    "evidenceKey",
    "evidence",
    "configuration",
    "mpk",
    "mpkId",
    "nonce",
    "measurement",
    "proof",
    "token",
    "devicePrivateKey",
    "issuerPublicKey",
    "macKey",
    "deviceId",
    "message",
}


FILES = sorted(VECTORS.glob("*.json"))
DOCUMENTS = {path.name: json.loads(path.read_text()) for path in FILES}
each_file = pytest.mark.parametrize("name", DOCUMENTS)


@each_file
def test_the_peer_agrees_with_each_vector(name):
    for group in DOCUMENTS[name]["testGroups"]:
        for test in group["tests"]:
            try:
                replay(group, test)
                is_refused = False
            except Refused:
                is_refused = True
            assert is_refused == (test["result"] != "valid"), f"test {test['tcId']}, {test['comment']}"


def test_generated_again_they_are_the_same(folder):
    subprocess.run([sys.executable, HERE / "generate_vectors.py", folder], check=True, capture_output=True)
    made = sorted(folder.rglob("*.json"))
    assert {path.relative_to(folder) for path in made} >= {path.relative_to(VECTORS) for path in FILES}
    for path in made:
        committed = VECTORS / path.relative_to(folder)
        assert filecmp.cmp(path, committed, shallow=False), committed.name
