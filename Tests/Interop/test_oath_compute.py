"""One-time passwords side by side with `oathtool`, over random secrets, counters, times, periods, digits and hashes.

`oathtool` computes each of the codes in a process of its own. All of them are replayed by `holdfast vectors replay` in one
process, and some again by `holdfast otp compute` in processes of their own. It has no other digits than 6 to 8 and no OCRA:
there the Python peer is the other side.
"""

import concurrent.futures
import json
import random
import subprocess

import pytest
from holdfast_peer import oath

CODES = 10_000
SOME = CODES // 20
HASHES = list(oath.HASHES)
SECRET_LENGTHS = [1, 10, 16, 20, 32, 64, 65, 128, 129]


def random_case(source, index):
    """One computation; the times are those that a clock can show, counters have any number of bits."""
    secret = source.randbytes(source.choice(SECRET_LENGTHS) if source.random() < 0.5 else source.randint(1, 140))
    digits = source.choice([6, 7, 8])
    if index % 2 == 0:
        return {
            "kind": "HOTP",
            "secret": secret,
            "counter": source.getrandbits(source.randint(1, 64)),
            "algorithm": "SHA1",
            "digits": digits,
        }
    period = source.choice([30, 60, source.randint(1, 86400)])
    return {
        "kind": "TOTP",
        "secret": secret,
        "time": source.getrandbits(32),
        "period": period,
        "algorithm": source.choice(HASHES),
        "digits": digits,
    }


def by_oathtool(case):
    command = ["oathtool", "--digits", str(case["digits"])]
    if case["kind"] == "HOTP":
        command += ["--hotp", "--counter", str(case["counter"])]
    else:
        command += [
            f"--totp={case['algorithm'].lower()}",
            "--now",
            f"@{case['time']}",
            "--time-step-size",
            f"{case['period']}s",
        ]
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
    command = [
        holdfast,
        "otp",
        "compute",
        case["kind"].lower(),
        "--format",
        written,
        "--algorithm",
        case["algorithm"],
        "--digits",
        str(case["digits"]),
    ]
    for name in ("counter", "time", "period"):
        if name in case:
            command += [f"--{name}", str(case[name])]
    place = "-"
    if number % 2:
        place = folder / f"secret-{number}"
        place.write_bytes(text)
    done = subprocess.run(
        [*command, "--secret-file", place],
        input=None if number % 2 else text,
        stdin=subprocess.DEVNULL if number % 2 else None,
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, f"exit status, {done.stderr.decode()[-200:]}"
    return done.stdout.decode()


def base32(data):
    """RFC 4648 §6, without padding."""
    bits = "".join(f"{byte:08b}" for byte in data)
    bits += "0" * (-len(bits) % 5)
    return "".join("ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"[int(bits[i : i + 5], 2)] for i in range(0, len(bits), 5)).encode()


def vector_file(kind, cases, codes):
    """A file that `holdfast vectors replay` takes; every test has to be accepted."""
    tests = []
    for number, (case, code) in enumerate(zip(cases, codes), 1):
        fields = {k: v.hex() if isinstance(v, bytes) else v for k, v in case.items() if k != "kind"}
        for name in ("counter", "timeStep"):
            if name in fields:
                fields[name] = f"{fields[name]:016x}"
        tests.append({"tcId": number, "comment": "", "flags": [], **fields, "code": code, "result": "valid"})
    return {
        "algorithm": kind,
        "schema": f"oath_{kind.lower()}_schema_v1.json",
        "numberOfTests": len(tests),
        "header": [],
        "notes": {},
        "testGroups": [{"type": kind, "source": {"name": "random", "version": "1"}, "tests": tests}],
    }


class Comparison:
    def __init__(self, holdfast, folder):
        self.holdfast, self.folder = holdfast, folder
        self.pool = concurrent.futures.ThreadPoolExecutor(4)

    def replay(self, kind, cases, codes):
        """Every code of `cases` is the one given; one that is changed is found, and it alone."""
        assert len(cases) == len(codes) > 0, "nothing to compare"
        self.expect_replay(vector_file(kind, cases, codes), passed=len(cases), failed=0)
        changed = [*codes]
        changed[-1] = changed[-1][:-1] + ("1" if changed[-1][-1] == "0" else "0")
        self.expect_replay(vector_file(kind, cases, changed), passed=len(cases) - 1, failed=1)

    def expect_replay(self, document, passed, failed):
        path = self.folder / "codes.json"
        path.write_text(json.dumps(document))
        done = subprocess.run(
            [self.holdfast, "vectors", "replay", "--json", path],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
        )
        report = json.loads(done.stdout)
        seen = (report["passed"], report["failed"], report["skipped"])
        assert seen == (passed, failed, 0), f"codes equal, different, skipped; first: {report['failures'][:1]}"

    def compute(self, cases, codes):
        made = self.pool.map(lambda item: compute(self.holdfast, self.folder, item[1], item[0]), enumerate(cases))
        for case, code, printed in zip(cases, codes, made, strict=True):
            assert printed == code + "\n", f"otp compute of {case}"


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


@pytest.fixture(scope="module")
def source():
    """Of the cases; the seed is shown where a test fails."""
    seed = random.SystemRandom().getrandbits(32)
    print(f"seed {seed}")
    return random.Random(seed)


@pytest.fixture(scope="module")
def comparison(holdfast, folder):
    return Comparison(str(holdfast), folder)


@pytest.fixture(scope="module")
def cases(source):
    return [random_case(source, index) for index in range(CODES)]


@pytest.fixture(scope="module")
def codes(comparison, cases):
    """Of `oathtool`."""
    return list(comparison.pool.map(by_oathtool, cases))


@pytest.mark.parametrize("kind", ["HOTP", "TOTP"])
def test_codes_of_oathtool_are_replayed(comparison, cases, codes, kind):
    chosen = [(case, code) for case, code in zip(cases, codes) if case["kind"] == kind]
    comparison.replay(kind, *map(list, zip(*chosen)))


def test_codes_of_oathtool_are_those_of_otp_compute(comparison, cases, codes):
    comparison.compute(cases[:SOME], codes[:SOME])


def test_codes_of_other_lengths_are_the_peers(comparison, source):
    others = [{**random_case(source, index), "digits": [0, 4, 5, 9, 10][index // 2 % 5]} for index in range(SOME)]
    comparison.compute(others, [by_peer(case) for case in others])


def test_answers_to_random_suites_are_the_peers(comparison, source):
    suites = [random_suite(source) for _ in range(CODES // 5)]
    optional = ("counter", "pin", "session", "timeStep")
    answers = [oath.ocra(c["suite"], c["secret"], c["question"], *map(c.get, optional)) for c in suites]
    comparison.replay("OCRA", suites, answers)
