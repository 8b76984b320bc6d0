#!/usr/bin/env python3
"""Writes first inputs for the fuzzer: of the vectors, of the Python peer, and of texts in tests and documents.

usage: seeds.py FOLDER     (one folder for each target is made in it)

It needs python3-yaml. The corpora in Tests/Fuzz/Corpora are what the fuzzer kept of these and found from them. Random parts differ from run to run.
"""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "Interop"))

from seed_writers import (
    authenticator,
    board,
    bulletins,
    formats,
    host,
    limits,
    literals,
    online,
    sessions,
    taken,
    tokens,
    tpm,
    transport,
    vectors,
)
from seed_writers.shared import Seeds

WRITERS = (
    vectors.add_tokens,
    vectors.add_messages,
    bulletins.add_bulletins,
    bulletins.add_pages,
    sessions.add_sessions,
    sessions.add_codes,
    sessions.add_audit_entries,
    board.add_items,
    board.add_line,
    board.add_flash,
    formats.add_formats,
    formats.add_jwe,
    online.add_online,
    online.add_operators,
    transport.add_transport,
    transport.add_adapters,
    transport.add_search,
    authenticator.add_authenticator,
    authenticator.add_containers,
    host.add_host,
    tpm.add_responses,
    host.add_policies,
    literals.add_literals,
    limits.add_limits,
    tokens.add_opened_tokens,
    taken.add_taken,
)


def main():
    seeds = Seeds()
    for add in WRITERS:
        add(seeds)
    seeds.write(pathlib.Path(sys.argv[1]))


if __name__ == "__main__":
    main()
