"""oath-hotp.json, oath-totp.json and oath-ocra.json."""

from holdfast_peer import oath
from holdfast_peer.refusal import require

from .notes import NOTES
from .vector_file import VectorFile, pin

DIGITS = (b"1234567890" * 7)[:64]
"""The RFCs' secrets are as many of these as their hash has bytes."""


def check(kind, *, code=None, **fields):
    """Refuses what a strict reader refuses, a code of something else included."""
    if kind == "OCRASuite":
        oath.parse_suite(fields["suite"])
        return
    require(fields["secret"], "WrongSize")
    if kind == "OCRA":
        made = oath.ocra(
            fields["suite"],
            fields["secret"],
            fields["question"],
            fields.get("counter"),
            fields.get("pin"),
            fields.get("session"),
            fields.get("timeStep"),
        )
    elif kind == "HOTP":
        made = oath.hotp(fields["secret"], fields["counter"], fields["digits"], fields["algorithm"])
    else:
        made = oath.totp(fields["secret"], fields["time"], fields["digits"], fields["algorithm"], fields["period"])
    require(made == code, "WrongCode")


def typed(name, value):
    """A member of a file as `check` takes it."""
    if name in ("counter", "timeStep"):
        return int(value, 16)
    return bytes.fromhex(value) if name in ("secret", "pin", "session") else value


def _written(fields):
    return {k: v.to_bytes(8, "big") if k in ("counter", "timeStep") else v for k, v in fields.items()}


class _Group:
    """A group whose 64-bit numbers are written as eight bytes."""

    def __init__(self, file, kind):
        self.group = file.group(
            kind,
            lambda **fields: check(
                kind, **{k: int.from_bytes(v, "big") if k in ("counter", "timeStep") else v for k, v in fields.items()}
            ),
        )

    def valid(self, comment, flags=("Normal",), **fields):
        self.group.valid(comment, flags, **_written(fields))

    def invalid(self, comment, flag, **fields):
        self.group.invalid(comment, flag, **_written(fields))

    def exchange_codes(self):
        """Adds each valid test again, with the code of the next one that has another."""
        valid = [test for test in self.group.tests if test["result"] == "valid"]
        for index, test in enumerate(valid):
            other = next(t for t in valid[index + 1 :] + valid if t["code"] != test["code"])
            fields = {name: typed(name, value) for name, value in test.items() if name not in ("flags", "result")}
            comment = fields.pop("comment")
            self.invalid(f"{comment}, with another code", "WrongCode", **{**fields, "code": other["code"]})


def hotp_file():
    file = VectorFile(
        "HOTP",
        "oath_hotp_schema_v1.json",
        ["HOTP: secret, counter, hash and number of digits give a code (RFC 4226)."],
        NOTES,
        "oath-hotp.json",
    )
    group = _Group(file, "HOTP")

    def valid(comment, secret, counter, digits=6, algorithm="SHA1", flags=("Normal",)):
        group.valid(
            comment,
            flags,
            secret=secret,
            counter=counter,
            algorithm=algorithm,
            digits=digits,
            code=oath.hotp(secret, counter, digits, algorithm),
        )

    for counter in range(10):
        valid(f"RFC 4226 appendix D, counter {counter}", DIGITS[:20], counter, flags=("Published",))
    for algorithm, size in oath.HASHES.items():
        for digits in (4, 5, 6, 7, 8, 9, 10):
            valid(f"{algorithm}, {digits} digits", pin(f"hotp/{algorithm}", size), digits, digits, algorithm)
        valid(f"{algorithm}, the whole HMAC", pin(f"hotp/{algorithm}", size), 0, 0, algorithm, ("WholeCode",))
        for length in (1, 16, 20, 32, 63, 64, 65, 127, 128, 129, 256):
            valid(
                f"{algorithm}, a secret of {length} bytes",
                pin(f"hotp/{length}", length),
                1,
                8,
                algorithm,
                ("Boundary",),
            )
        for counter in (2**31 - 1, 2**31, 2**32 - 1, 2**32, 2**53, 2**63, 2**64 - 1):
            valid(f"{algorithm}, counter {counter}", pin("hotp/counter", size), counter, 8, algorithm, ("Boundary",))
        for offset in range(16):
            key = pin(f"hotp/offset/{algorithm}", size)
            counter = next(
                c for c in range(1000) if oath.hmac_of(key, c.to_bytes(8, "big"), algorithm)[-1] & 15 == offset
            )
            valid(f"{algorithm}, offset {offset}", key, counter, 10, algorithm)
    key = pin("hotp/zeros", 20)
    zeros = next(c for c in range(100000) if oath.hotp(key, c, 10).startswith("000"))
    valid("a code that begins with zeros", key, zeros, 10, flags=("Boundary",))
    good = dict(secret=DIGITS[:20], counter=1, algorithm="SHA1", digits=6, code="287082")
    _invalid(group, good)
    group.exchange_codes()
    return file


def _invalid(group, good):
    for digits in (1, 2, 3, 11, 12, 16):
        group.invalid(f"{digits} digits", "Digits", **{**good, "digits": digits})
    for algorithm in ("", "MD5", "SHA-1", "sha1", "SHA224", "SHA384", "SHA512/256", "SHA3-256"):
        group.invalid(f"hash {algorithm!r}", "Algorithm", **{**good, "algorithm": algorithm})
    code = good["code"]
    for wrong in (
        "",
        code[1:],
        code[:-1],
        "0" + code,
        code + "0",
        " " + code,
        code[:-1] + ("1" if code[-1] == "0" else "0"),
    ):
        group.invalid(f"code {wrong!r}", "WrongCode", **{**good, "code": wrong})
    group.invalid("another secret", "WrongCode", **{**good, "secret": pin("oath/other", 20)})
    group.invalid("another hash", "WrongCode", **{**good, "algorithm": "SHA256"})
    group.invalid("no secret", "WrongSize", **{**good, "secret": b""})


def totp_file():
    file = VectorFile(
        "TOTP",
        "oath_totp_schema_v1.json",
        ["TOTP: secret, Unix time, period in seconds, hash and number of digits give a code (RFC 6238)."],
        NOTES,
        "oath-totp.json",
    )
    group = _Group(file, "TOTP")

    def valid(comment, secret, time, digits=6, algorithm="SHA1", period=30, flags=("Normal",)):
        group.valid(
            comment,
            flags,
            secret=secret,
            time=time,
            period=period,
            algorithm=algorithm,
            digits=digits,
            code=oath.totp(secret, time, digits, algorithm, period),
        )

    for time in (59, 1111111109, 1111111111, 1234567890, 2000000000, 20000000000):
        for algorithm, size in oath.HASHES.items():
            valid(
                f"RFC 6238 appendix B, {algorithm} at {time}", DIGITS[:size], time, 8, algorithm, flags=("Published",)
            )
    for algorithm, size in oath.HASHES.items():
        for time in (0, 29, 30, 2**31 - 1, 2**31, 2**32 - 1, 2**32, 2**53 - 1):
            valid(f"{algorithm} at {time}", pin(f"totp/{algorithm}", size), time, 6, algorithm, flags=("Boundary",))
        for period in (1, 15, 60, 3600, 86400):
            valid(
                f"{algorithm}, a period of {period} seconds",
                pin(f"totp/{algorithm}", size),
                1790000000,
                6,
                algorithm,
                period,
            )
        valid(
            f"{algorithm}, the whole HMAC",
            pin(f"totp/{algorithm}", size),
            1790000000,
            0,
            algorithm,
            flags=("WholeCode",),
        )
    good = dict(secret=DIGITS[:20], time=59, period=30, algorithm="SHA1", digits=8, code="94287082")
    _invalid(group, good)
    for period in (0, 86401, 2**53 - 1):
        group.invalid(f"a period of {period} seconds", "Period", **{**good, "period": period})
    for time in (29, 60, 20000000000):
        group.invalid(f"the code of another time than {time}", "WrongCode", **{**good, "time": time})
    group.exchange_codes()
    return file


def ocra_file():
    file = VectorFile(
        "OCRA",
        "oath_ocra_schema_v1.json",
        [
            "OCRA: suite, secret, question and what else the suite names give a code (RFC 6287). The PIN is as it is typed, in hex.",
            "OCRASuite: suites that a strict reader accepts or refuses.",
        ],
        NOTES,
        "oath-ocra.json",
    )
    group = _Group(file, "OCRA")
    _published(group)
    _questions(group)
    _inputs(group)
    group.exchange_codes()
    _suites(file.group("OCRASuite", lambda **fields: check("OCRASuite", **fields)))
    return file


def _answer(group, comment, suite, question, *, flags=("Normal",), secret=None, **inputs):
    secret = DIGITS[: oath.HASHES[oath.parse_suite(suite)["hash"]]] if secret is None else secret
    code = oath.ocra(
        suite, secret, question, inputs.get("counter"), inputs.get("pin"), inputs.get("session"), inputs.get("timeStep")
    )
    group.valid(comment, flags, suite=suite, secret=secret, question=question, **inputs, code=code)


def _published(group):
    def table(part, suite, count, question, **inputs):
        for number in range(count):
            given = {k: v(number) if callable(v) else v for k, v in inputs.items()}
            _answer(
                group,
                f"RFC 6287 appendix {part}, {suite}, {question(number)}, row {number}",
                suite,
                question(number),
                flags=("Published",),
                **given,
            )

    time, pin_ = 0x132D0B6, b"1234"
    table("C.1", "OCRA-1:HOTP-SHA1-6:QN08", 10, lambda n: str(n) * 8)
    table("C.1", "OCRA-1:HOTP-SHA256-8:C-QN08-PSHA1", 10, lambda n: "12345678", counter=lambda n: n, pin=pin_)
    table("C.1", "OCRA-1:HOTP-SHA256-8:QN08-PSHA1", 5, lambda n: str(n) * 8, pin=pin_)
    table("C.1", "OCRA-1:HOTP-SHA512-8:C-QN08", 10, lambda n: str(n) * 8, counter=lambda n: n)
    table("C.1", "OCRA-1:HOTP-SHA512-8:QN08-T1M", 5, lambda n: str(n) * 8, timeStep=time)
    table("C.2", "OCRA-1:HOTP-SHA256-8:QA08", 5, lambda n: f"CLI2222{n}SRV1111{n}")
    table("C.2", "OCRA-1:HOTP-SHA256-8:QA08", 5, lambda n: f"SRV1111{n}CLI2222{n}")
    table("C.2", "OCRA-1:HOTP-SHA512-8:QA08", 5, lambda n: f"CLI2222{n}SRV1111{n}")
    table("C.2", "OCRA-1:HOTP-SHA512-8:QA08-PSHA1", 5, lambda n: f"SRV1111{n}CLI2222{n}", pin=pin_)
    table("C.3", "OCRA-1:HOTP-SHA256-8:QA08", 5, lambda n: f"SIG1{n}000")
    table("C.3", "OCRA-1:HOTP-SHA512-8:QA10-T1M", 5, lambda n: f"SIG1{n}00000", timeStep=time)


def _questions(group):
    base = "OCRA-1:HOTP-SHA1-8:"
    for form, questions in {
        "QN08": ("0", "00000000", "7", "15", "16", "4096", "65536", "00065536", "99999999", "1234567890123456"),
        "QN64": ("9" * 64, "1" + "0" * 63, "9" * 128, "0" * 128),
        "QH04": ("a", "A", "0a", "a0", "abc", "ABC", "ffff", "12345678"),
        "QH64": ("f" * 64, "0" * 64, "0f" * 64),
        "QA04": ("a", " ", "~", "aBc ", "12345678"),
        "QA64": ("~" * 64, "x" * 128),
    }.items():
        for question in questions:
            boundary = len(question) in (1, 64, 128)
            _answer(
                group,
                f"{form}, question {question!r}",
                base + form,
                question,
                flags=("Boundary",) if boundary else ("Normal",),
            )
    good = dict(secret=DIGITS[:20], code="00000000")
    for form, questions in {
        "QN08": ("", "1234567a", " 1", "1 ", "-1", "+1", "1.5", "0x1", "12345678901234567", "\u0661"),
        "QH08": ("", "g", "0x1f", "12 34", "1" * 17),
        "QA08": ("", "\n", "\t", "\x7f", "a\x00", "\u00e9", "1" * 17),
        "QN64": ("1" * 129,),
        "QA64": ("a" * 129,),
    }.items():
        for question in questions:
            group.invalid(
                f"{form}, no question: {question!r}", "Question", suite=base + form, question=question, **good
            )


def _inputs(group):
    full = "OCRA-1:HOTP-SHA512-10:C-QA64-PSHA512-S512-T48H"
    most = dict(counter=2**64 - 1, pin=b"1234", session=b"\xff" * 512, timeStep=2**64 - 1)
    _answer(group, "the longest of everything", full, "~" * 128, flags=("Boundary",), **most)
    for hash_name in oath.HASHES:
        for pin_hash in oath.HASHES:
            _answer(
                group,
                f"{hash_name} with a PIN by {pin_hash}",
                f"OCRA-1:HOTP-{hash_name}-6:QH64-P{pin_hash}",
                "0123456789abcdef",
                pin=b"271828",
            )
        for digits in (0, 4, 5, 6, 7, 8, 9, 10):
            _answer(
                group,
                f"{hash_name}, {digits} digits",
                f"OCRA-1:HOTP-{hash_name}-{digits}:C-QH64-T1M",
                "ab" * 32,
                flags=("WholeCode",) if digits == 0 else ("Normal",),
                counter=digits,
                timeStep=digits,
            )
    for size in (1, 8, 64, 128, 256, 512):
        for length in sorted({0, 1, size - 1, size}):
            _answer(
                group,
                f"{length} bytes of {size} of session information",
                f"OCRA-1:HOTP-SHA256-6:QN08-S{size:03}",
                "31415926",
                session=pin("ocra/session", length),
                flags=("Boundary",),
            )
    for step in ("1S", "59S", "1M", "59M", "1H", "48H"):
        _answer(group, f"a time step of {step}", f"OCRA-1:HOTP-SHA256-6:QN08-T{step}", "31415926", timeStep=12345)
    good = dict(secret=DIGITS[:20], question="1", code="000000")
    given = dict(counter=1, pin=b"1234", session=b"\x01", timeStep=1)
    for name, value in given.items():
        rest = {k: v for k, v in given.items() if k != name}
        group.invalid(f"{name} is missing", "Inputs", suite="OCRA-1:HOTP-SHA1-6:C-QN08-PSHA1-S008-T1M", **good, **rest)
        group.invalid(f"{name} is not named", "Inputs", suite="OCRA-1:HOTP-SHA1-6:QN08", **good, **{name: value})
    group.invalid(
        "nine bytes of eight of session information",
        "Session",
        suite="OCRA-1:HOTP-SHA1-6:QN08-S008",
        **good,
        session=bytes(9),
    )
    group.invalid(
        "the code of another question",
        "WrongCode",
        suite="OCRA-1:HOTP-SHA1-6:QN08",
        secret=DIGITS[:20],
        question="11111112",
        code="243178",
    )
    group.invalid(
        "the code under another suite",
        "WrongCode",
        suite="OCRA-1:HOTP-SHA1-6:QN09",
        secret=DIGITS[:20],
        question="11111111",
        code="243178",
    )
    group.invalid(
        "the code without its first digit",
        "WrongCode",
        suite="OCRA-1:HOTP-SHA1-6:QN08",
        secret=DIGITS[:20],
        question="11111111",
        code="43178",
    )
    group.invalid("no secret", "WrongSize", suite="OCRA-1:HOTP-SHA1-6:QN08", secret=b"", question="1", code="000000")


def _suites(group):
    for suite in (
        "OCRA-1:HOTP-SHA1-6:QN08",
        "OCRA-1:HOTP-SHA256-0:QA04",
        "OCRA-1:HOTP-SHA512-10:QH64",
        "OCRA-1:HOTP-SHA1-4:C-QN08",
        "OCRA-1:HOTP-SHA256-8:QH64-T1M",
        "OCRA-1:HOTP-SHA512-8:C-QN08-PSHA1",
        "OCRA-1:HOTP-SHA1-6:QN08-S001",
        "OCRA-1:HOTP-SHA1-6:QN08-S512",
        "OCRA-1:HOTP-SHA1-6:QN08-T59S",
        "OCRA-1:HOTP-SHA1-6:QN08-T59M",
        "OCRA-1:HOTP-SHA1-6:QN08-T48H",
        "OCRA-1:HOTP-SHA512-10:C-QA64-PSHA512-S512-T48H",
    ):
        group.valid(f"suite {suite}", suite=suite)
    head, tail = "OCRA-1:HOTP-SHA1-6:QN08", ":QN08"
    for suite in (
        "",
        "OCRA-1",
        "OCRA-1:",
        "OCRA-1:HOTP-SHA1-6",
        "OCRA-1:HOTP-SHA1-6:",
        head.lower(),
        "OCRA-2:HOTP-SHA1-6:QN08",
        "OCRA-01:HOTP-SHA1-6:QN08",
        "OCRA-1:TOTP-SHA1-6:QN08",
        "OCRA-1:HOTP-SHA1:QN08",
        " " + head,
        head + " ",
        head + "\n",
        head + "-",
        head + ":",
        head + "\x00",
        *(f"OCRA-1:HOTP-{h}-6{tail}" for h in ("SHA2", "SHA-1", "SHA224", "SHA384", "SHA", "MD5", "sha1", "")),
        *(f"OCRA-1:HOTP-SHA1-{d}{tail}" for d in ("", "1", "2", "3", "11", "06", "00", "-6", "+6", "6 ", "100")),
        *(
            f"OCRA-1:HOTP-SHA1-6:{q}"
            for q in (
                "C",
                "C-",
                "QN",
                "Q08",
                "QN8",
                "QN008",
                "QN00",
                "QN03",
                "QN65",
                "QN99",
                "QX08",
                "qn08",
                "N08",
                "QN08-C",
                "C-C-QN08",
                "QN08-QN08",
                "QN 8",
                "CQN08",
            )
        ),
        *(
            f"{head}-{more}"
            for more in (
                "P",
                "PSHA2",
                "Psha1",
                "SHA1",
                "PSHA1-PSHA1",
                "S",
                "S64",
                "S0064",
                "S000",
                "S513",
                "S999",
                "S06A",
                "T",
                "T1",
                "TM",
                "T0M",
                "T01M",
                "T60S",
                "T60M",
                "T49H",
                "T100S",
                "T1D",
                "T1m",
                "T-1M",
                "T1M-S064",
                "S064-PSHA1",
                "T1M-PSHA1",
                "T1M-T1M",
                "X",
            )
        ),
    ):
        group.invalid(f"no suite: {suite!r}", "Suite", suite=suite)
