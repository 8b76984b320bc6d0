#!/usr/bin/python3
"""Real Bluetooth sockets, in Linux guests with an emulated radio: one host with up to eight adapters, and two hosts with an air between them.

usage: run.py --holdfast PATH [--only STORY]

Where no guest can be had, everything is counted as skipped, and the reason is said. Consoles stay in .guest/bluetooth-logs/.
"""

import pathlib
import sys

TESTS = pathlib.Path(__file__).resolve().parent.parent
sys.path[1:1] = [str(TESTS / "Guest"), str(TESTS / "Interop")]
sys.path.append(str(TESTS / "Firmware"))

import finding
import links
import low_energy
import one_host
import peers
import stories
import strangers
import transports
import two_hosts
import two_hosts_faults
import two_hosts_firmware
import two_hosts_proofs
import users
from bluetooth_lab import BluetoothLab

if __name__ == "__main__":
    # Two processors, and about as much for each.
    sys.exit(
        stories.main(
            [
                [peers, two_hosts, two_hosts_proofs, two_hosts_faults, low_energy],
                [one_host, finding, transports, links, strangers, users, two_hosts_firmware],
            ],
            BluetoothLab,
        )
    )
