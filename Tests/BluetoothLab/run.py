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

import attacked
import couriers
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
    # The longest first. Each waits for about half of its time, so three keep two processors busy.
    longest_first = [
        peers,
        links,
        finding,
        strangers,
        attacked,
        couriers,
        two_hosts_faults,
        two_hosts_firmware,
        two_hosts_proofs,
        low_energy,
        users,
        transports,
        one_host,
        two_hosts,
    ]
    sys.exit(stories.main(longest_first, BluetoothLab, at_once=3))
