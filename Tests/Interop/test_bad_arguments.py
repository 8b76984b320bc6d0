"""Wrong arguments for every verb."""

import json
import subprocess

import pytest
from bad_files import DENIED, MALFORMED, OK, UNAVAILABLE, USAGE
from cases import Case, each_case, side_by_side, split
from sandbox import fill, judge

ESCAPE = "\x1b[31mred\x07"
LINES = "one\ntwo\rthree"
PROVE = ["prove", "--connect", "unix:{socket}", "--state", "{base}/P"]
STATUS = [*PROVE, "--command", "status"]
ENROLL = ["enroll", "--device", "{base}/d.json", "--service", "{S}", "--state", "{case}/new"]
ATTACK = ["attack", "unix:{socket}", "--state", "{base}/P"]
APPROVE = ["service", "approve", "--dir", "{S}", "--subject", "app", "--version", "1.2.3"]
MEASURE = ["measure", "--state", "{case}/new", "--out", "{case}/out"]
LATENCY = ["bench", "latency", "--connect", "unix:{socket}", "--state", "{base}/P"]
SERVE = ["device", "serve", "--dir", "{D}", "--listen"]
CUT = ["device", "audit", "--dir", "{D}", "--cut-before"]
FLOOR = ["device", "floor", "--dir", "{D}"]
CHECK_HOST = ["otp", "check-host", "--authenticator", "{case}/none"]

# Verbs that do something without any argument.
NEED_NOTHING = {"bench latency", "bench measure", "bench otp", "doctor", "scan", "endpoints", "help", "posture"}

USAGE_ERRORS = {
    "unknown verb": ["frobnicate"],
    "unknown verb with escapes": [ESCAPE],
    "unknown verb with lines": [LINES],
    "unknown verb of device": ["device", "frobnicate"],
    "empty verb": [""],
    "no command": PROVE,
    "attack without an endpoint": ["attack", "--state", "{base}/P"],
    "attack without a state folder": ["attack", "unix:{socket}"],
    "attack on a device as an impostor": [
        "attack",
        "unix:{socket}",
        "--listen",
        "unix:{case}/i",
        "--state",
        "{base}/P",
    ],
    "attack that there is not": [*ATTACK, "--only", ESCAPE],
    "attack with nothing left": [*ATTACK, "--only", "replay", "--skip", "replay"],
    "attack with a password as an argument": [*ATTACK, "--user", "alice", "--otp", "123456"],
    "attack with a later password but no earlier one": [*ATTACK, "--later-otp", "-"],
    "attack with a 33 byte command": [*ATTACK, "--command", "c" * 33],
    "an impostor for no connection": ["attack", "--listen", "unix:{case}/i", "--connections", "0"],
    "an impostor with a later password": ["attack", "--listen", "unix:{case}/i", "--later-otp", "-"],
    "an impostor with a user": ["attack", "--listen", "unix:{case}/i", "--user", "alice", "--otp", "-"],
    "empty command": [*PROVE, "--command", ""],
    "33 byte command": [*PROVE, "--command", "c" * 33],
    "proof-keys with two files": ["proof-keys", "--new", "a", "--c", "b"],
    "proof-keys onto standard output": ["proof-keys", "--new", "-"],
    "17 two-byte letters": [*PROVE, "--command", "é" * 17],
    "65 byte parameter": [*STATUS, "--parameter", "p" * 65],
    "9 parameters": [*STATUS, *["--parameter", "p"] * 9],
    "1000 parameters": [*STATUS, *["--parameter", "p"] * 1000],
    "--timeout 0": [*STATUS, "--timeout", "0"],
    "--timeout -1": [*STATUS, "--timeout=-1"],
    "--timeout 3601": [*STATUS, "--timeout", "3601"],
    "--timeout x": [*STATUS, "--timeout", "x"],
    "--timeout too long for an integer": [*STATUS, "--timeout", "9" * 30],
    "--timeout empty": [*STATUS, "--timeout", ""],
    "--timeout with escapes": [*STATUS, "--timeout", ESCAPE],
    "--timeout without a value": [*STATUS, "--timeout"],
    "--app-version 1.2": [*MEASURE, "--app-version", "1.2"],
    "--app-version 1.2.-3": [*MEASURE, "--app-version", "1.2.-3"],
    "--app-version 1.2.3.4": [*MEASURE, "--app-version", "1.2.3.4"],
    "--app-version past 2^53": [*MEASURE, "--app-version", "1.2.9007199254740992"],
    "--app-version past 2^64": [*MEASURE, "--app-version", "1.2.99999999999999999999"],
    "empty subject": [*MEASURE, "--subject", ""],
    "65 byte subject": [*MEASURE, "--subject", "s" * 65],
    "a format that there is not": [*ENROLL, "--format", "xml"],
    "a format with escapes": [*ENROLL, "--format", ESCAPE],
    "--mac with JOSE": [*ENROLL, "--mac", "--format", "jose"],
    "a MAC key for standard output": ["service", "mac-key", "--dir", "{S}", "--device", "{base}/d.json", "-"],
    "check-host with neither form": CHECK_HOST,
    "check-host with half of a form": [*CHECK_HOST, "--host-code", "12345678"],
    "check-host with half of the other": [*CHECK_HOST, "--connect", "unix:{socket}"],
    "check-host with both forms": [
        *CHECK_HOST,
        *split("--connect unix:{socket} --state {base}/P --host-code 12345678"),
    ],
    "check-host with a state and nobody to ask": [
        *CHECK_HOST,
        *split("--state {base}/P --device-challenge"),
        "0" * 16,
        *split("--host-code 12345678"),
    ],
    "check-host that pairs with nobody": [
        *CHECK_HOST,
        *split("--pair --device-challenge"),
        "0" * 16,
        *split("--host-code 12345678"),
    ],
    "--allow and --allow-nothing": [*ENROLL, "--allow", "a", "--allow-nothing"],
    "17 commands": [*ENROLL, *[word for index in range(17) for word in ("--allow", f"c{index}")]],
    "empty command to allow": [*ENROLL, "--allow", ""],
    "33 byte command to allow": [*ENROLL, "--allow", "c" * 33],
    "--maximum-uses -1": [*ENROLL, "--maximum-uses=-1"],
    "--maximum-uses x": [*ENROLL, "--maximum-uses", "x"],
    "--maximum-uses past 2^53": [*ENROLL, "--maximum-uses", "9007199254740992"],
    "--valid-for 0": [*ENROLL, "--valid-for", "0"],
    "--valid-for past 2^53": [*ENROLL, "--valid-for", "9007199254740992"],
    "--valid-for 2^64-1": [*ENROLL, "--valid-for", "18446744073709551615"],
    "empty user": [*ENROLL, "--user", ""],
    "33 byte user": [*ENROLL, "--user", "u" * 33],
    "--rounds 0": [*LATENCY, "--rounds", "0"],
    "--rounds 1000001": [*LATENCY, "--rounds", "1000001"],
    "--rounds x": [*LATENCY, "--rounds", "x"],
    "--budget-ms 0": [*LATENCY, "--budget-ms", "0"],
    "--budget-ms too long": [*LATENCY, "--budget-ms", "9223372036854775807"],
    "bench, 33 byte command": [*LATENCY, "--command", "c" * 33],
    "--connect without --state": LATENCY[:4],
    "--state without --connect": [*LATENCY[:2], *LATENCY[4:]],
    "--last -1": ["device", "audit", "--dir", "{D}", "--last=-1"],
    "--last x": ["device", "audit", "--dir", "{D}", "--last", "x"],
    "--after x": ["device", "audit", "--dir", "{D}", "--after", "x"],
    "--since yesterday": ["device", "audit", "--dir", "{D}", "--since", "yesterday"],
    "--since with escapes": ["device", "audit", "--dir", "{D}", "--since", ESCAPE],
    "--status of none": ["device", "audit", "--dir", "{D}", "--status", "fine"],
    "--verify of some": ["device", "audit", "--dir", "{D}", "--verify", "--last", "1"],
    "--cut-before x": [*CUT, "x", "--to", "{case}/cut"],
    "--cut-before 0": [*CUT, "0", "--to", "{case}/cut"],
    "--cut-before past 2^64": [*CUT, "9" * 30, "--to", "{case}/cut"],
    "--cut-before no time": [*CUT, "2026-11-31T00:00:00Z", "--to", "{case}/cut"],
    "a cut to nowhere": [*CUT, "2"],
    "a cut of some": [*CUT, "2", "--to", "{case}/cut", "--last", "1"],
    "entries of a device and of a file": ["device", "audit", "--dir", "{D}", "--file", "{case}/cut"],
    "an image approved without a subject": [*APPROVE[:4], "--version", "1.2.3", "{base}/d.json"],
    "an image approved without a version": [*APPROVE[:6], "{base}/d.json"],
    "an image approved as 1.2": [*APPROVE[:6], "--version", "1.2", "/bin/true"],
    "an image approved with an empty subject": [*APPROVE[:4], "--subject", "", "--version", "1.2.3", "/bin/true"],
    "a label of 65 bytes": ["service", "device", "add", "--dir", "{S}", "{base}/d.json", "--label", "l" * 65],
    "an empty label": ["service", "device", "add", "--dir", "{S}", "{base}/d.json", "--label", ""],
    "a device twice": [*ENROLL, "--device", "{base}/d.json"],
    "status of no state": ["status"],
    "a mode to connect to": ["prove", "--connect", "unix:/x,mode=660", "--state", "{base}/P", "--command", "status"],
    "a group to connect to": ["prove", "--connect", "unix:/x,group=lock", "--state", "{base}/P", "--command", "status"],
    "no vector files": ["vectors", "replay"],
    "vectors at no endpoint": ["vectors", "replay", "vectors.json", "--target", "lock.sock"],
    "vectors without time": ["vectors", "replay", "vectors.json", "--target", "unix:lock.sock", "--timeout", "0"],
    "device of vectors nowhere": ["vectors", "device", "vectors.json"],
    "device of vectors twice": ["vectors", "device", "vectors.json", "--dir", "a", "--firmware", "b"],
    "a policy to install and a key": [
        "device",
        "policy",
        "--dir",
        "{D}",
        "--install",
        "x",
        "--key",
        "{base}/issuer.jwk",
    ],
    "a policy with the number 0": ["service", "device-policy", "--dir", "{S}", "{case}/p", "--number", "0"],
    "a policy with a number beyond 2^53 - 1": [
        *("service", "device-policy", "--dir", "{S}", "{case}/p"),
        *("--number", "9007199254740992"),
    ],
    "a reset without --yes": ["device", "reset", "--dir", "{D}"],
    "a clock floor that is no number": [*FLOOR, "--clock", "yesterday"],
    "a negative clock floor": [*FLOOR, "--clock=-1"],
    "a clock floor past 2^53": [*FLOOR, "--clock", "9007199254740992"],
    "a clock floor past 2^64": [*FLOOR, "--clock", "9" * 30],
    "a clock floor with escapes": [*FLOOR, "--clock", ESCAPE],
    "a generation without an issuer": [*FLOOR, "--generation", "1"],
    "an issuer without a generation": [*FLOOR, "--issuer", "00" * 8],
    "two floors at once": [*FLOOR, "--clock", "now", "--issuer", "00" * 8, "--generation", "1"],
    "a generation past 2^53": [*FLOOR, "--issuer", "00" * 8, "--generation", "9007199254740992"],
    "a negative generation": [*FLOOR, "--issuer", "00" * 8, "--generation=-1"],
    "an issuer whose id is too short": [*FLOOR, "--issuer", "00ff", "--generation", "1"],
    "two issuers": ["device", "trust", "--dir", "{D}", "{base}/issuer.jwk", "{base}/issuer2.jwk"],
    "two commands": [*STATUS, "--command", "unlock"],
    "two commands, with an equals sign": [*STATUS, "--command=unlock"],
    "the same command twice": [*STATUS, "--command", "status"],
    "two ends to connect to": [*STATUS, "--connect", "unix:/nowhere"],
    "two states": ["status", "--state", "{base}/P", "--state", "{base}/P"],
    "two numbers": ["device", "audit", "--dir", "{D}", "--after", "1", "--after", "2"],
    "an option twice without a value": ["device", "show", "--dir", "--dir"],
}

ENDPOINTS = {
    "no transport": "/run/lock.sock",
    "empty": "",
    "unknown transport": "tcp:localhost:80",
    "empty path": "unix:",
    "a mode of no octal digits": "unix:/x,mode=rw",
    "a mode past 777": "unix:/x,mode=1777",
    "no group": "unix:/x,group=",
    "path of 200 bytes": "unix:/" + "p" * 200,
    "option of another transport": "unix:/x,psm=1",
    "an option twice": "l2cap:{address},psm=0x1001,psm=0x1001",
    "escapes": f"tcp:{ESCAPE}",
    "lines": f"tcp:{LINES}",
    "C1 controls": "tcp:\u009b31m",
    "10 kB": "x" * 10_000,
    "no address": "l2cap:,psm=0x1001",
    "five pairs": "l2cap:00:11:22:33:44,psm=0x1001",
    "seven pairs": "rfcomm:{address}:66,channel=5",
    "address with dashes": "le:00-11-22-33-44-55,psm=0x80",
    "address that is not hex": "rfcomm:00:11:22:33:44:5g,channel=5",
    "address without colons": "l2cap:001122334455,psm=0x1001",
    "even psm": "l2cap:{address},psm=0x1002",
    "psm of SDP": "l2cap:{address},psm=1",
    "last reserved psm": "l2cap:{address},psm=0xfff",
    "psm whose upper byte is odd": "l2cap:{address},psm=0x1101",
    "psm 0": "l2cap:{address},psm=0",
    "psm past 65535": "l2cap:{address},psm=65537",
    "psm that is no number": "l2cap:{address},psm=x",
    "reserved le psm": "le:{address},psm=0x7f",
    "le psm past 0xff": "le:{address},psm=0x100",
    "le without psm": "le:{address}",
    "le address of another type": "le:{address},psm=0x80,type=static",
    "rfcomm channel 0": "rfcomm:{address},channel=0",
    "rfcomm channel 31": "rfcomm:{address},channel=31",
    "rfcomm channel past 255": "rfcomm:{address},channel=261",
    "rfcomm channel -1": "rfcomm:{address},channel=-1",
    "security": "le:{address},psm=0x80,security=none",
    "adapter of another kind": "l2cap:{address},psm=0x1001,hci=eth0",
    "adapter without hci": "l2cap:{address},psm=0x1001,hci=0",
    "adapter past 65535": "l2cap:{address},psm=0x1001,hci=hci65536",
}
ENDPOINTS = {name: text.replace("{address}", "00:11:22:33:44:55") for name, text in ENDPOINTS.items()}

# What is no mistake of form, and the statuses that are right for it.
NOT_UTF8 = "\udcff\udcfe"

OTHERS = {
    "l2cap without psm, where no such device is": (
        ["prove", "--connect", "l2cap:00:11:22:33:44:55", *STATUS[3:]],
        {UNAVAILABLE},
    ),
    "rfcomm without channel, where no such device is": (
        ["prove", "--connect", "rfcomm:00:11:22:33:44:55", *STATUS[3:]],
        {UNAVAILABLE},
    ),
    "an adapter that there is not": (
        ["prove", "--connect", "rfcomm:00:11:22:33:44:55,channel=5,hci=hci9", *STATUS[3:]],
        {UNAVAILABLE},
    ),
    "command that is not UTF-8": ([*PROVE, "--command", NOT_UTF8], {USAGE}),
    "folder that is not UTF-8": (["device", "show", "--dir", "{case}/" + NOT_UTF8], {USAGE}),
    "verb that is not UTF-8": ([NOT_UTF8], {USAGE}),
    "verb that turns the line round": (["\u202egnp.exe"], {USAGE}),
    "command with escapes": ([*PROVE, "--command", ESCAPE, "--timeout", "60"], {DENIED}),
    "command with lines": ([*PROVE, "--command", LINES, "--timeout", "60"], {DENIED}),
    "parameter with escapes": ([*STATUS, "--parameter", ESCAPE, "--timeout", "60"], {OK, DENIED}),
    "parameter of 64 bytes, 8 times": ([*STATUS, *["--parameter", "p" * 64] * 8, "--timeout", "60"], {OK, DENIED}),
    "subject with escapes": ([*ENROLL, "--subject", ESCAPE], {DENIED}),
    "user with escapes": ([*ENROLL, "--user", ESCAPE], {OK, USAGE}),
    "folder with escapes": (["device", "show", "--dir", "{case}/" + ESCAPE], {MALFORMED}),
    "folder with lines": (["service", "show", "--dir", "{case}/" + LINES], {MALFORMED}),
    "empty folder name": (["device", "show", "--dir", ""], {MALFORMED, USAGE}),
    "empty folder name to make": (["device", "init", "--dir", ""], {MALFORMED, USAGE}),
    "empty service name to make": (["service", "init", "--dir", ""], {MALFORMED, USAGE}),
    "empty state name": (["measure", "--state", "", "--out", "{case}/out"], {MALFORMED, USAGE}),
    "empty file name": (["device", "trust", "--dir", "{D}", ""], {MALFORMED, USAGE}),
    "folder name of 5000 bytes": (["device", "show", "--dir", "{case}/" + "p" * 5000], {MALFORMED, USAGE}),
    "file name of 300 bytes": (["device", "trust", "--dir", "{D}", "{case}/" + "p" * 300], {MALFORMED, USAGE}),
    "folder name of 300 bytes to make": (["device", "init", "--dir", "{case}/" + "p" * 300], {MALFORMED, USAGE}),
    "vector file with escapes in its name": (["vectors", "replay", "{case}/" + ESCAPE], {MALFORMED}),
    "a cut beyond the end": ([*CUT, "9007199254740991", "--to", "{case}/cut"], {MALFORMED}),
    "a cut into a folder that is not there": ([*CUT, "2", "--to", "{case}/a/b"], {MALFORMED}),
    "entries of a file that has none": (["device", "audit", "--file", "{base}/d.json"], {MALFORMED}),
    "entries of a file that is not there": (["device", "audit", "--file", "{case}/none"], {MALFORMED}),
    "a device to block that nobody knows yet": (["service", "device", "block", "--dir", "{S}", "00" * 16], {OK}),
    "a device to unblock that nobody knows": (["service", "device", "unblock", "--dir", "{S}", "11" * 16], {MALFORMED}),
    "a label that turns the line round": (
        ["service", "device", "add", "--dir", "{S}", "{base}/d.json", "--label", "\u202egnp.exe"],
        {OK, USAGE},
    ),
    "status of a service": (["status", "--state", "{S}"], {MALFORMED}),
    "status of a device": (["status", "--state", "{D}"], {MALFORMED}),
    "status of a folder that is not there": (["status", "--state", "{case}/none"], {MALFORMED}),
    "a generation floor of an unknown issuer": ([*FLOOR, "--issuer", "00" * 8, "--generation", "1"], {DENIED}),
    "a reset of a folder that is not there": (["device", "reset", "--yes", "--dir", "{case}/nowhere"], {MALFORMED}),
    "issuer that is not trusted, by its id": (["device", "trust", "--dir", "{D}", "--remove", "00" * 8], {DENIED}),
    "issuer that is not trusted, by its key": (
        ["device", "trust", "--dir", "{D}", "--remove", "{base}/issuer2.jwk"],
        {DENIED},
    ),
    "issuer id that is too short": (["device", "trust", "--dir", "{D}", "--remove", "00ff"], {MALFORMED}),
    "image that is a folder": ([*APPROVE, "{case}"], {MALFORMED}),
    "image that is not there": ([*APPROVE, "{case}/none"], {MALFORMED}),
    "image to make a service with that is not there": (
        ["service", "init", "--dir", "{case}/new", "--image", "{case}/none"],
        {MALFORMED},
    ),
    "device to revoke that is not there": (
        ["service", "revoke", "--dir", "{S}", "--device", "{case}/none"],
        {MALFORMED},
    ),
    "evidence into a folder": (["measure", "--state", "{case}/new", "--out", "{case}"], {MALFORMED}),
    "evidence into a folder that is not there": (
        ["measure", "--state", "{case}/new", "--out", "{case}/a/b"],
        {MALFORMED},
    ),
    "evidence into nothing": (["measure", "--state", "{case}/new", "--out", ""], {MALFORMED, USAGE}),
    "attestation into a folder that is not there": (
        split("attest --service {S} --device {base}/d.json --evidence {base}/evidence --out {case}/a/b"),
        {MALFORMED},
    ),
    "state that is a file": ([*ENROLL[:5], "--state", "{base}/d.json"], {MALFORMED}),
    "state below a file": ([*ENROLL[:5], "--state", "{base}/d.json/x"], {MALFORMED}),
    "state whose parent is missing": ([*ENROLL[:5], "--state", "{case}/a/b"], {MALFORMED}),
    "device that is a file": (["device", "show", "--dir", "{base}/d.json"], {MALFORMED}),
    "service that is a file": (["service", "show", "--dir", "{base}/d.json"], {MALFORMED}),
    "prove before enroll": (
        ["prove", "--connect", "unix:{socket}", "--state", "{case}/none", "--command", "status"],
        {MALFORMED},
    ),
    "explain before enroll": (["explain", "--state", "{case}/none"], {MALFORMED}),
    "prove with a begun state": (
        ["prove", "--connect", "unix:{socket}", "--state", "{base}/begun", "--command", "status"],
        {MALFORMED},
    ),
    "issue before measure": (
        split("issue --service {S} --device {base}/d.json --attestation {base}/attestation --state {case}/none"),
        {MALFORMED},
    ),
    "issue for another device": (
        split("issue --service {S} --device {base}/d2.json --attestation {base}/attestation --state {begun}"),
        {DENIED},
    ),
    "issue by another service": (
        split("issue --service {base}/S2 --device {base}/d.json --attestation {base}/attestation --state {begun}"),
        {DENIED},
    ),
    "the evidence as attestation": (
        split("issue --service {S} --device {base}/d.json --attestation {base}/evidence --state {begun}"),
        {DENIED},
    ),
    "the token as evidence": (
        split(
            "attest --service {S} --device {base}/d.json --evidence {base}/oldP/measurement_token.cose --out {case}/o"
        ),
        {MALFORMED},
    ),
    "the issuer key as descriptor": ([*ENROLL[:2], "{base}/issuer.jwk", *ENROLL[3:]], {MALFORMED}),
    "the descriptor as issuer key": (["device", "trust", "--dir", "{D}", "{base}/d.json"], {MALFORMED}),
    "a private key as issuer": (["device", "trust", "--dir", "{D}", "{S}/attestation-encryption.jwk"], {MALFORMED}),
    "a device's key as issuer": (["device", "trust", "--dir", "{D}", "{D}/device.key"], {MALFORMED}),
    "a state of another device": (
        ["prove", "--connect", "unix:{socket}", "--state", "{base}/P2", "--command", "status"],
        {MALFORMED},
    ),
}


def wrong(sandbox, words, statuses, hint=False):
    for more in ([], ["--json"]):
        case = sandbox.case("D", "S", "begun")
        secret = (case / "D" / "device.key").read_bytes()[60:80]
        places = {
            "base": sandbox.base,
            "socket": sandbox.socket,
            "case": case,
            **{name: case / name for name in ("D", "S", "begun")},
        }
        done = sandbox.run(*fill(words, places), *more)
        judge(done, statuses, is_json=bool(more), secrets=[secret], hint=hint)


def without_option(sandbox, words):
    done = sandbox.run(*words)
    judge(done, {USAGE})


def verbs(command, path=()):
    """The words of each verb that has none below it."""
    below = command.get("subcommands", [])
    if not below:
        yield list(path)
    for verb in below:
        yield from verbs(verb, (*path, verb["commandName"]))


def cases(program):
    """The tables above, and for each verb that the program itself lists what is wrong for all."""
    for name, words in USAGE_ERRORS.items():
        yield Case(f"arguments: {name}", wrong, "sandbox", words, {USAGE})
    for name, text in ENDPOINTS.items():
        prove = ["prove", "--connect", text, "--state", "{base}/P", "--command", "status"]
        yield Case(f"prove: endpoint, {name}", wrong, "sandbox", prove, {USAGE}, True)
        yield Case(f"device serve: endpoint, {name}", wrong, "sandbox", [*SERVE, text], {USAGE}, True)
    for name, (words, statuses) in OTHERS.items():
        yield Case(f"arguments: {name}", wrong, "sandbox", words, statuses)
    dump = subprocess.run([program, "--experimental-dump-help"], capture_output=True, check=True, timeout=60).stdout
    for words in verbs(json.loads(dump)["command"]):
        name = " ".join(words)
        if name not in NEED_NOTHING:
            yield Case(f"{name}: no arguments", without_option, "sandbox", words)
        yield Case(f"{name}: unknown option", without_option, "sandbox", [*words, "--frobnicate"])
        yield Case(f"{name}: option with escapes", without_option, "sandbox", [*words, f"--{ESCAPE}"])
        yield Case(
            f"{name}: one word too many", without_option, "sandbox", [*words, "--dir", "x", "one", "two", "three"]
        )


def pytest_generate_tests(metafunc):
    each = each_case(cases(metafunc.config.getoption("holdfast").absolute()))
    metafunc.parametrize(*each.args, **each.kwargs)


@pytest.fixture(scope="module")
def begun(request, sandbox):
    with side_by_side(request, lambda case: case.run({"sandbox": sandbox})) as begun:
        yield begun


def test_wrong_arguments_are_refused_with_the_right_status_and_no_echo(case, begun):
    begun[case].result()
