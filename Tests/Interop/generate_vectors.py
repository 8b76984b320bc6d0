#!/usr/bin/env python3
"""Writes the test vectors. Every input is pinned: a second run writes the same bytes.

usage: generate_vectors.py [FOLDER]     (default: the vectors folder of this tree)
"""

import pathlib
import sys

from vector_writers import (
    activation_vectors,
    actuator_vectors,
    attestation_vectors,
    audit_page_vectors,
    audit_vectors,
    bulletin_vectors,
    cose_vectors,
    discovery_vectors,
    firmware_image_vectors,
    frame_vectors,
    jose_vectors,
    mac_vectors,
    measurement_vectors,
    oath_vectors,
    schemas,
    seal_vectors,
    session_vectors,
    state_vectors,
    token_cases,
)


def main():
    default = pathlib.Path(__file__).resolve().parents[2] / "vectors"
    folder = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else default
    (folder / "schemas").mkdir(parents=True, exist_ok=True)
    tokens = token_cases.file()
    cose_vectors.add(tokens)
    jose_vectors.add(tokens)
    mac_vectors.add(tokens)
    for file in (
        measurement_vectors.measurement_file(),
        measurement_vectors.proof_file(),
        tokens,
        session_vectors.session_file(),
        oath_vectors.hotp_file(),
        oath_vectors.totp_file(),
        oath_vectors.ocra_file(),
        activation_vectors.activation_file(),
        seal_vectors.seal_file(),
        audit_vectors.audit_file(),
        audit_page_vectors.page_file(),
        bulletin_vectors.bulletin_file(),
        firmware_image_vectors.image_file(),
        state_vectors.state_file(),
        frame_vectors.frames_file(),
        discovery_vectors.discovery_file(),
        attestation_vectors.attestation_file(),
        actuator_vectors.actuator_file(),
    ):
        count = file.write(folder)
        print(f"{file.algorithm}: {file.schema} {count} tests")
    schemas.write(folder / "schemas")


if __name__ == "__main__":
    main()
