#!/usr/bin/env python3
"""One-time passwords side by side with `oathtool`, over random secrets, counters, times, periods, digits and hashes.

usage: oath_compute.py --holdfast PATH [--codes N] [--seed N]

`oathtool` computes each of N codes (10,000) in a process of its own. All of them are replayed by `holdfast vectors replay` in
one process, and some again by `holdfast otp compute` in processes of their own. It has no other digits than 6 to 8 and no
OCRA: there the Python peer is the other side.
"""

import argparse
import concurrent.futures
import json
import pathlib
import random
import subprocess
import sys
import tempfile

from holdfast_peer import oath
from holdfast_peer.checks import Checks, expect, expect_equal

HASHES = list(oath.HASHES)
SECRET_LENGTHS = [1, 10, 16, 20, 32, 64, 65, 128, 129]


def random_case(source, index):
    """One computation; the times are those that a clock can show, counters have any number of bits."""
    secret = source.randbytes(source.choice(SECRET_LENGTHS) if source.random() < 0.5 else source.randint(1, 140))
    digits = source.choice([6, 7, 8])
    if index % 2 == 0:
        return {"kind": "HOTP", "secret": secret, "counter": source.getrandbits(source.randint(1, 64)), "algorithm": "SHA1", "digits": digits}
    period = source.choice([30, 60, source.randint(1, 86400)])
    return {"kind": "TOTP", "secret": secret, "time": source.getrandbits(32), "period": period, "algorithm": source.choice(HASHES),
            "digits": digits}


def by_oathtool(case):
    command = ["oathtool", "--digits", str(case["digits"])]
    if case["kind"] == "HOTP":
        command += ["--hotp", "--counter", str(case["counter"])]
    else:
        command += [f"--totp={case['algorithm'].lower()}", "--now", f"@{case['time']}", "--time-step-size", f"{case['period']}s"]
    done = subprocess.run([*command, case["secret"].hex()], capture_output=True, check=True, text=True)
    return done.stdout.strip()


def by_peer(case):
    if case["kind"] == "HOTP":
        return oath.hotp(case["secret"], case["counter"], case["digits"], case["algorithm"])
    return oath.totp(case["secret"], case["time"], case["digits"], case["algorithm"], case["period"])


def compute(holdfast, folder, case, number):
    """What `holdfast otp compute` prints; the secret goes in by standard input or a file, in each of the three formats."""
    secret, written = case["secret"], ["hex", "base32", "raw"][number % 3]
    text = {"hex": secret.hex().encode(), "base32": base32(secret), "raw": secret}[written]
    command = [holdfast, "otp", "compute", case["kind"].lower(), "--format", written, "--algorithm", case["algorithm"],
               "--digits", str(case["digits"])]
    for name in ("counter", "time", "period"):
        if name in case:
            command += [f"--{name}", str(case[name])]
    place = "-"
    if number % 2:
        place = folder / f"secret-{number}"
        place.write_bytes(text)
    done = subprocess.run([*command, "--secret-file", place], input=None if number % 2 else text,
                          stdin=subprocess.DEVNULL if number % 2 else None, capture_output=True, check=False)
    expect_equal(done.returncode, 0, f"exit status, {done.stderr.decode()[-200:]}")
    return done.stdout.decode()


def base32(data):
    """RFC 4648 §6, without padding."""
    bits = "".join(f"{byte:08b}" for byte in data)
    bits += "0" * (-len(bits) % 5)
    return "".join("ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"[int(bits[i:i + 5], 2)] for i in range(0, len(bits), 5)).encode()


def vector_file(kind, cases, codes):
    """A file that `holdfast vectors replay` takes; every test has to be accepted."""
    tests = []
    for number, (case, code) in enumerate(zip(cases, codes), 1):
        fields = {k: v.hex() if isinstance(v, bytes) else v for k, v in case.items() if k != "kind"}
        for name in ("counter", "timeStep"):
            if name in fields:
                fields[name] = f"{fields[name]:016x}"
        tests.append({"tcId": number, "comment": "", "flags": [], **fields, "code": code, "result": "valid"})
    return {"algorithm": kind, "schema": f"oath_{kind.lower()}_schema_v1.json", "numberOfTests": len(tests), "header": [], "notes": {},
            "testGroups": [{"type": kind, "source": {"name": "random", "version": "1"}, "tests": tests}]}


class Comparison:
    def __init__(self, holdfast, folder):
        self.holdfast, self.folder = holdfast, folder
        self.pool = concurrent.futures.ThreadPoolExecutor(4)

    def replay(self, kind, cases, codes):
        """Every code of `cases` is the one given; one that is changed is found, and it alone."""
        expect(len(cases) == len(codes) > 0, "nothing to compare")
        self.expect_replay(vector_file(kind, cases, codes), passed=len(cases), failed=0)
        changed = [*codes]
        changed[-1] = changed[-1][:-1] + ("1" if changed[-1][-1] == "0" else "0")
        self.expect_replay(vector_file(kind, cases, changed), passed=len(cases) - 1, failed=1)

    def expect_replay(self, document, passed, failed):
        path = self.folder / "codes.json"
        path.write_text(json.dumps(document))
        done = subprocess.run([self.holdfast, "vectors", "replay", "--json", path], stdin=subprocess.DEVNULL, capture_output=True,
                              check=False)
        report = json.loads(done.stdout)
        seen = (report["passed"], report["failed"], report["skipped"])
        expect_equal(seen, (passed, failed, 0), f"codes equal, different, skipped; first: {report['failures'][:1]}")

    def compute(self, cases, codes):
        made = self.pool.map(lambda item: compute(self.holdfast, self.folder, item[1], item[0]), enumerate(cases))
        for case, code, printed in zip(cases, codes, made, strict=True):
            expect_equal(printed, code + "\n", f"otp compute of {case}")


def random_suite(source):
    """A suite and inputs for it."""
    form, length = source.choice("ANH"), source.randint(4, 64)
    alphabet = {"A": [chr(c) for c in range(0x20, 0x7F)], "N": "0123456789", "H": "0123456789abcdefABCDEF"}[form]
    suite = f"OCRA-1:HOTP-{source.choice(HASHES)}-{source.choice([0, 4, 5, 6, 7, 8, 9, 10])}:"
    case = {"question": "".join(source.choices(alphabet, k=source.randint(1, 2 * length)))}
    if source.random() < 0.5:
        suite += "C-"
        case["counter"] = source.getrandbits(64)
    suite += f"Q{form}{length:02}"
    if source.random() < 0.5:
        suite += f"-P{source.choice(HASHES)}"
        case["pin"] = source.randbytes(source.randint(0, 12))
    if source.random() < 0.5:
        size = source.randint(1, 512)
        suite += f"-S{size:03}"
        case["session"] = source.randbytes(source.randint(0, size))
    if source.random() < 0.5:
        unit, most = source.choice([("S", 59), ("M", 59), ("H", 48)])
        suite += f"-T{source.randint(1, most)}{unit}"
        case["timeStep"] = source.getrandbits(64)
    return {"suite": suite, "secret": source.randbytes(source.randint(1, 140)), **case}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--holdfast", required=True)
    parser.add_argument("--codes", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().getrandbits(32))
    options = parser.parse_args()
    print(f"seed {options.seed}")
    source = random.Random(options.seed)
    checks = Checks()
    with tempfile.TemporaryDirectory() as folder:
        comparison = Comparison(str(pathlib.Path(options.holdfast).resolve()), pathlib.Path(folder))
        cases = [random_case(source, index) for index in range(options.codes)]
        codes = list(comparison.pool.map(by_oathtool, cases))
        for kind in ("HOTP", "TOTP"):
            chosen = [(case, code) for case, code in zip(cases, codes) if case["kind"] == kind]
            checks.run(f"{len(chosen)} codes of oathtool, {kind}", comparison.replay, kind, *map(list, zip(*chosen)))
        some = options.codes // 20
        checks.run(f"{some} codes of oathtool, by otp compute", comparison.compute, cases[:some], codes[:some])
        others = [{**random_case(source, index), "digits": [0, 4, 5, 9, 10][index // 2 % 5]} for index in range(some)]
        checks.run(f"{some} codes of 0, 4, 5, 9 and 10 digits", comparison.compute, others, [by_peer(case) for case in others])
        suites = [random_suite(source) for _ in range(options.codes // 5)]
        answers = [oath.ocra(c["suite"], c["secret"], c["question"], c.get("counter"), c.get("pin"), c.get("session"),
                             c.get("timeStep")) for c in suites]
        checks.run(f"{len(suites)} answers to random suites", comparison.replay, "OCRA", suites, answers)
    return checks.finish()


if __name__ == "__main__":
    sys.exit(main())
