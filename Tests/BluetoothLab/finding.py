"""Finding each other: what the doctor says, what a scan lists, and a prover that does not know the device's numbers."""

import json

from holdfast_peer.checks import expect, expect_equal


def observe(lab):
    return lab.run("finding.sh")


def answer(seen, name):
    """The exit status of a command, and the JSON that it printed, the last time."""
    status, _, text = seen[name][-1].partition(" ")
    return int(status), json.loads(text)


def doctor(seen, name, status, check, state, *words):
    """The doctor ended with `status`, and of `check` said `state` and all of `words`."""
    ended, said = answer(seen, name)
    finding = next((finding for finding in said["checks"] if finding["check"] == check), None)
    expect(finding is not None, f"{name}: nothing about {check}: {said}")
    expect_equal((ended, finding["state"]), (status, state), name)
    text = finding["text"] + " | " + finding.get("hint", "")
    for word in words:
        expect(word in text, f"{name}: no '{word}' in: {text}")


def without_adapter(seen):
    """doctor: a host without an adapter, one that is off and one that is blocked are named, with the command that mends it"""
    doctor(seen, "no-adapter", 69, "adapter", "missing", "no Bluetooth adapter", "modprobe btusb")
    doctor(seen, "down", 69, "power", "missing", "hci", "power on")
    doctor(seen, "blocked", 69, "radio", "missing", "blocked", "rfkill unblock bluetooth")


def host_is_ready(seen):
    """doctor: a host that has everything but an SDP server is told so, and how to have one"""
    doctor(seen, "ready", 0, "power", "ok")
    doctor(seen, "ready", 0, "administration", "ok")
    doctor(seen, "ready", 0, "sdp-server", "note", "--compat")


def without_permission(seen):
    """doctor and scan: a user without CAP_NET_ADMIN is told so; a scan ends with 77"""
    doctor(seen, "nobody", 0, "administration", "note", "CAP_NET_ADMIN")
    expect_equal(answer(seen, "nobody-scans")[0], 77, "scan")


def not_announced(seen):
    """without an SDP server the device serves all the same, and says so; who asks for its number gets a hint, and 69"""
    expect_equal(seen["warned"], ["2"], "warnings")
    status, said = answer(seen, "unannounced")
    expect(status == 69 and "announced" in said["error"], f"{status} {said}")


def announced(seen):
    """a prover that knows the address alone is accepted over L2CAP and RFCOMM, at the numbers that the kernel chose"""
    for name in ("announced-rfcomm", "announced-l2cap"):
        status, said = answer(seen, name)
        expect_equal((status, said.get("status")), (0, "accepted"), name)


def low_energy(seen):
    """over LE, an encrypted link is made by --pair at both ends, and the proof accepted"""
    status, said = answer(seen, "low-energy")
    expect_equal((status, said.get("status")), (0, "accepted"), "LE")


def reached(seen, name):
    """What a scan lists of Holdfast devices: each endpoint with the id that answered there."""
    status, said = answer(seen, name)
    expect_equal(status, 0, name)
    return {
        endpoint["endpoint"]: endpoint.get("device_id")
        for device in said["devices"]
        for endpoint in device["endpoints"]
    }


def scanned(seen):
    """scan: the device is listed with each way to reach it, and has answered with its id on each"""
    psm, channel, address = seen["numbers"][0].split()
    device_id = answer(seen, "announced-rfcomm")[1]["device_id"]
    expect_equal(
        reached(seen, "scanned"),
        {
            f"l2cap:{address},psm={psm},hci=hci1": device_id,
            f"rfcomm:{address},channel={channel},hci=hci1": device_id,
        },
        "classic Bluetooth",
    )
    expect_equal(reached(seen, "scanned-low-energy"), {f"le:{address},psm=0x80,hci=hci1": device_id}, "Low Energy")


def doctor_connects(seen):
    """doctor ENDPOINT: a device that answers, a channel that nobody listens at, and somebody else who does, are told apart"""
    doctor(seen, "answers", 0, "connection", "ok", "answers at")
    doctor(seen, "no-channel", 69, "connection", "missing", "nothing is listening")
    doctor(seen, "stranger", 69, "connection", "missing", "sends nothing")


def gone(seen):
    """once the device has ended, SDP and the air say nothing of it any more"""
    status, said = answer(seen, "gone")
    expect(status == 69 and "announced" in said["error"], f"{status} {said}")
    _, said = answer(seen, "scanned-gone")
    expect_equal([device for device in said["devices"] if device["is_holdfast"]], [], "Holdfast devices")


CHECKS = [
    without_adapter,
    host_is_ready,
    without_permission,
    not_announced,
    announced,
    doctor_connects,
    scanned,
    low_energy,
    gone,
]
