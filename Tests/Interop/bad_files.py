"""Every file that a verb reads, every way to spoil it, and the exit statuses that are right for it."""

import os
import secrets
import shutil
from dataclasses import dataclass, field

from cases import split

OK, DENIED, MALFORMED, IMPOSTOR, USAGE, UNAVAILABLE, FAULT, NO_PERMISSION = 0, 1, 2, 3, 64, 69, 70, 77
DOCUMENTED = {OK, DENIED, MALFORMED, IMPOSTOR, USAGE, UNAVAILABLE, FAULT, NO_PERMISSION}
MARKER = "do-not-echo-this-4711"


@dataclass
class Damage:
    """One way to spoil the file at a path. `apply(path, other)`; `other` is the same file of another device or service."""

    name: str
    apply: object
    statuses: frozenset = frozenset({MALFORMED})
    as_other_user: bool = False


def replace(data):
    def apply(path, _):
        content = data() if callable(data) else data
        path.unlink(missing_ok=True)
        path.write_bytes(content)
        path.chmod(0o600)

    return apply


def rewrite(change):
    def apply(path, _):
        path.write_bytes(change(path.read_bytes()))

    return apply


def flip(data):
    middle = len(data) // 2
    return data and data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :]


def directory(path, _):
    path.unlink(missing_ok=True)
    path.mkdir(mode=0o700)


def link(path, _):
    good = path.with_name(path.name + ".good")
    if path.exists():
        path.rename(good)
    path.symlink_to(good)


def dangling(path, _):
    path.unlink(missing_ok=True)
    path.symlink_to(path.with_name("nothing-here"))


def fifo(path, _):
    path.unlink(missing_ok=True)
    os.mkfifo(path, 0o600)


def from_another(path, other):
    shutil.copyfile(other, path)


DAMAGES = [
    Damage("missing", lambda path, _: path.unlink(missing_ok=True)),
    Damage("empty", replace(b"")),
    Damage("10 MB of zeros", replace(bytes(10_000_000))),
    Damage("random bytes", replace(lambda: secrets.token_bytes(4096))),
    Damage("text", replace((f'{{"{MARKER}": "\x1b[31m{MARKER}"}}\n' * 3).encode())),
    Damage("truncated", rewrite(lambda data: data[: len(data) // 2])),
    Damage("flipped", rewrite(flip)),
    Damage("directory", directory),
    Damage("link", link),
    Damage("dangling link", dangling),
    Damage("fifo", fifo),
    Damage("mode 000", lambda path, _: path.chmod(0o000), frozenset({NO_PERMISSION}), as_other_user=True),
    Damage("mode 0644", lambda path, _: path.chmod(0o644), frozenset({NO_PERMISSION})),
    Damage("of another", from_another),
]


@dataclass
class Target:
    """A file in `folder` of a sandbox, and the verbs that read it.

    `verbs` are argument lists in which `{D}`, `{S}`, `{P}` … stand for the copies of that folder or file. `statuses`
    overrides what is right after a damage. `mention` is what an error has to name.
    """

    folder: str
    file: str
    verbs: list
    statuses: dict = field(default_factory=dict)
    other: str = ""
    mention: str = ""
    holds_secret: bool = False
    place: str = "state"

    @property
    def name(self):
        return f"{self.folder}/{self.file}" if self.file else self.folder

    def allowed(self, damage):
        return set(self.statuses.get(damage.name, damage.statuses))


ANY = {OK, DENIED, MALFORMED}
PUBLIC = {"link": {OK}, "mode 0644": {OK}, "of another": {OK}, "flipped": ANY}
ADVISORY = {damage.name: {OK} for damage in DAMAGES}
SECRET = {"of another": {OK}}

SHOW = ["device", "show", "--dir", "{D}", "--json"]
SHOW_ALL = ["device", "show", "--dir", "{D}"]
AUDIT = ["device", "audit", "--dir", "{D}"]
VERIFY = [*AUDIT, "--verify", "--json"]
TRUST = ["device", "trust", "--dir", "{D}", "{issuer2.jwk}", "--json"]
TRUST_MAC = [*TRUST[:4], "{mac.jwk}", "--json"]
FLOOR = ["device", "floor", "--dir", "{D}", "--clock", "now", "--json"]
RESET = ["device", "reset", "--dir", "{D}", "--yes", "--json"]
POLICY = ["device", "policy", "--dir", "{D}", "--json"]
SERVE = ["device", "serve", "--dir", "{D}", "--listen", "unix:{case}/served.sock", "--json"]
SERVICE = ["service", "show", "--dir", "{S}", "--json"]
ENROLL = ["enroll", "--device", "{d.json}", "--service", "{S}", "--state", "{case}/new", "--json"]
ENROLL_MAC = [*ENROLL, "--mac"]
MAC_KEY = ["service", "mac-key", "--dir", "{S}", "--device", "{d.json}", "{case}/mac.out", "--json"]
MEASURE = ["measure", "--state", "{case}/new", "--out", "{case}/evidence.out", "--json"]
PROVE = split("prove --connect unix:{socket} --state {P} --command status --json --timeout 60")
PROVE_JOSE = [*PROVE[:4], "{PJ}", *PROVE[5:]]
EXPLAIN = ["explain", "--state", "{P}", "--json"]
ATTEST = split("attest --service {S} --device {d.json} --evidence {evidence} --out {case}/attested --json")
ISSUE = split("issue --service {S} --device {d.json} --attestation {attestation} --state {begun} --json")
REPLAY = ["vectors", "replay", "{vectors.json}", "--json"]
BENCH = split("bench latency --connect unix:{socket} --state {P} --rounds 1 --budget-ms 60000 --json")

DATABASE = {"flipped": {OK, MALFORMED, FAULT}, "truncated": {OK, MALFORMED}, "of another": {OK}}
RECORD = {**DATABASE, "link": {OK, MALFORMED}, "mode 0644": {OK, NO_PERMISSION}}
LINKED = {"link": {OK, MALFORMED}}

# An enrolment in a state folder, which has one.
ENROLLED = "devices/*"


def enrolled(folder, place, prove, explain, bench):
    """The files of an enrolment, at `place` in `folder`, and the verbs that read them."""
    other = folder + "2"
    return [
        Target(
            folder,
            f"{place}measurement_config.bin",
            [prove, explain],
            {"flipped": {DENIED, MALFORMED}, "of another": {DENIED, MALFORMED}, "mode 0644": {OK, NO_PERMISSION}},
            other=other,
        ),
        Target(
            folder, f"{place}measurement_token.cose", [prove, explain], {"mode 0644": {OK, NO_PERMISSION}}, other=other
        ),
        Target(
            folder,
            f"{place}enrolment.json",
            [prove, explain],
            {"flipped": ANY, "mode 0644": {OK, NO_PERMISSION}},
            other=other,
            mention="enrolment" if place else folder,
        ),
        Target(folder, f"{place}fingerprints.cbor", [prove, explain], {"mode 0644": {OK, NO_PERMISSION}}, other=other),
        Target(folder, f"{place}remembered", [prove, bench], ADVISORY, other=other),
    ]


TARGETS = [
    Target("D", "device.json", [SHOW, AUDIT, TRUST, SERVE], {"flipped": {OK, MALFORMED}}, other="D2", mention="D"),
    Target("D", "device.key", [SHOW, SERVE], other="D2", holds_secret=True),
    Target("D", "policy.json", [POLICY], {"flipped": ANY, "mode 0644": {OK}, "of another": {OK}}, other="D2"),
    Target("D", "policy.json", [SHOW_ALL, SERVE], ADVISORY, other="D2"),
    Target(
        "D",
        "ledger.sqlite",
        [SHOW_ALL, AUDIT, VERIFY, TRUST, SERVE, FLOOR],
        {**DATABASE, "of another": {MALFORMED}},
        other="D2",
    ),
    Target("D", "ledger.sqlite", [RESET], {**DATABASE, "flipped": {OK, MALFORMED, FAULT}}, other="D2"),
    Target(
        "D",
        "device.json",
        [RESET],
        {
            damage: {OK}
            for damage in (
                "missing",
                "empty",
                "10 MB of zeros",
                "random bytes",
                "text",
                "truncated",
                "flipped",
                "link",
                "dangling link",
                "fifo",
                "mode 000",
                "mode 0644",
                "of another",
            )
        },
        other="D2",
    ),
    Target("D", "actuator.state", [SERVE], other="D2"),
    Target(
        "D",
        "lock",
        [SERVE],
        {
            name: {OK}
            for name in (
                "missing",
                "empty",
                "10 MB of zeros",
                "random bytes",
                "text",
                "truncated",
                "flipped",
                "mode 0644",
                "of another",
            )
        }
        | {"fifo": {OK, MALFORMED}},
        other="D2",
    ),
    Target(
        "S",
        "account.key",
        [ENROLL],
        {**SECRET, **LINKED, "flipped": {OK}, "random bytes": {OK, MALFORMED}, "text": {OK, MALFORMED}},
        other="S2",
        holds_secret=True,
    ),
    Target(
        "S",
        "attestation-encryption.jwk",
        [ENROLL],
        {**SECRET, **LINKED, "flipped": {OK, MALFORMED}},
        other="S2",
        holds_secret=True,
    ),
    Target("S", "issuer.key", [SERVICE, ENROLL], {**SECRET, **LINKED, "flipped": {OK}}, other="S2", holds_secret=True),
    Target("S", "mac.key", [ENROLL_MAC], {**SECRET, **LINKED, "flipped": {OK}}, other="S2", holds_secret=True),
    Target(
        "S",
        "mac.key",
        [MAC_KEY],
        {**SECRET, **LINKED, "missing": {OK}, "flipped": {OK}, "dangling link": {OK, MALFORMED}},
        other="S2",
        holds_secret=True,
    ),
    Target(
        "S",
        "release.keys",
        [ENROLL],
        {**SECRET, **LINKED, "flipped": {DENIED}, "random bytes": {DENIED, MALFORMED}, "text": {DENIED, MALFORMED}},
        other="S2",
        holds_secret=True,
    ),
    Target("S", "policy.json", [SERVICE, ENROLL], {**LINKED, "flipped": ANY, "of another": {OK}}, other="S2"),
    Target("S", "attestation.sqlite", [ENROLL], RECORD, other="S2"),
    Target("S", "issuer.sqlite", [ENROLL], {**RECORD, "of another": {DENIED}}, other="S2"),
    Target("issuer2.jwk", "", [TRUST], PUBLIC, other="issuer.jwk"),
    Target(
        "mac.jwk",
        "",
        [TRUST_MAC],
        {"link": {OK}, "flipped": {OK, MALFORMED}, "of another": {OK}},
        other="mac2.jwk",
        holds_secret=True,
    ),
    Target("d.json", "", [ENROLL], {**PUBLIC, "of another": {DENIED}}, other="d2.json"),
    *enrolled("P", f"{ENROLLED}/", PROVE, EXPLAIN, BENCH),
    *enrolled(
        "oldP", "", *[["{oldP}" if word == "{P}" else word for word in verb] for verb in (PROVE, EXPLAIN, BENCH)]
    ),
    Target("PJ", f"{ENROLLED}/measurement_token.jose", [PROVE_JOSE], {"mode 0644": {OK, NO_PERMISSION}}, other="PJ2"),
    Target(
        "begun",
        "pending/any/measurement_config.bin",
        [ISSUE],
        {
            "flipped": {OK, MALFORMED},
            "of another": {OK, MALFORMED},
            "mode 0644": {OK, NO_PERMISSION},
            "random bytes": {OK, MALFORMED},
            "text": {MALFORMED},
        },
        other="begun2",
        mention="begun",
    ),
    Target(
        "begun",
        "pending/any/fingerprints.cbor",
        [ISSUE],
        {"flipped": ANY, "of another": ANY, "mode 0644": {OK, NO_PERMISSION}},
        other="begun2",
    ),
    Target("evidence", "", [ATTEST], {**PUBLIC, "flipped": {DENIED, MALFORMED}}, other="evidence"),
    Target(
        "attestation",
        "",
        [ISSUE],
        {**PUBLIC, **{name: {DENIED, MALFORMED} for name in ("empty", "random bytes", "text", "truncated", "flipped")}},
        other="attestation",
    ),
    Target("vectors.json", "", [REPLAY], {**PUBLIC, "flipped": {OK, MALFORMED}}, other="vectors.json"),
    Target(
        "data",
        "holdfast/device.secret",
        [PROVE, EXPLAIN],
        {"flipped": {DENIED}, "of another": {DENIED}},
        other="data2",
        holds_secret=True,
    ),
    Target(
        "data",
        "holdfast/device.secret",
        [MEASURE, ENROLL],
        {"missing": {OK}, "flipped": {OK}, "of another": {OK}},
        other="data2",
        holds_secret=True,
    ),
]
