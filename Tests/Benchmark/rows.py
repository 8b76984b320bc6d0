"""The works that are timed, and for each the peers that it is compared with and the targets."""

import dataclasses
import hashlib
import json
import os
import subprocess

import peers


@dataclasses.dataclass
class Peer:
    name: str
    make: object
    # The most that Holdfast may take, as a part of the peer's time.
    most: float | None = None
    # How many of what is counted a repetition contains.
    each: int = 1


@dataclasses.dataclass
class Row:
    name: str
    make: object
    peers: list[Peer]
    # The nanoseconds that Holdfast may take.
    most: float | None = None
    # How many of what is counted a repetition contains.
    each: int = 1
    # A sample takes that many times as long as those of other rows.
    longer: int = 1
    # Of the peers' targets, it is enough to meet one.
    one_is_enough: bool = False


def rows(scene):
    """All rows. What is made here is started later; a peer that cannot be had raises `Unavailable` when it is made."""

    def in_c(work, most=None, name="C with libcrypto"):
        return Peer(name, lambda: scene.reference(work), most)

    def in_python(library, work, most=None):
        return Peer(library, lambda: peers.python_peer(library, work, scene.folder), most)

    def other(program, work, name, most=None):
        return Peer(name, lambda: peers.Worker([peers.compiled(program), work, scene.folder]), most)

    def disk():
        return peers.Worker([peers.compiled("sync"), "sync", scene.folder], by_processor=False)

    def served(count, most=None, most_careless=None):
        return Row(
            f"a durable round, {count} at once" if count > 1 else "a durable round",
            lambda: scene.work(f"served-{count}", by_processor=False),
            [
                Peer("fdatasync of one page", disk, most),
                Peer("the same, without waiting for the disk", lambda: scene.careless(count), most_careless, count),
            ],
            each=count,
            # Provers that end before others leave the device with less to do at once.
            longer=10,
            one_is_enough=most is not None,
        )

    processors = len(os.sched_getaffinity(0))
    large = scene.folder / "large"
    digest = hashlib.sha256(large.read_bytes()).hexdigest().encode()

    def hashed_by(*words):
        return peers.Command([*words, large], check=lambda output: digest in output)

    def empty(**options):
        return peers.Command([peers.compiled("empty")], repetitions=10, **options)

    def nothing(output):
        return 0

    known = []
    if scene.roots_folder:
        known = [Row("measuring again in a living process, its code known", scene.known_code, [], most=1_000_000)]
    else:
        print("skipped: known code: only root can install a program that another user cannot change", flush=True)

    return [
        Row(
            "a COSE token, opened and verified",
            lambda: scene.work("token"),
            [in_c("token", 1.10), in_python("pycose", "token", 0.3)],
        ),
        Row(
            "a JOSE token, opened and verified",
            lambda: scene.work("jose"),
            [
                in_python("joserfc", "token", 0.5),
                in_python("jwcrypto", "token"),
                other("libjose", "jose", "libjose"),
            ],
        ),
        Row("a proof, verified", lambda: scene.work("proof"), [in_c("proof", 1.15)]),
        Row("a remembered round, without I/O", lambda: scene.work("round"), [], most=5000),
        Row(
            "a first round, both sides",
            lambda: scene.work("first-round"),
            [other("tls", "tls", "TLS 1.3 handshake, both with certificates", 0.5)],
        ),
        served(1),
        served(8),
        # One of both is enough: half of the disk's time, or 1.25 times that without the disk.
        served(64, 0.5, 1.25),
        Row(
            "measuring a file of 64 MiB, one thread",
            lambda: scene.work("measure-large"),
            [
                Peer("C with libcrypto", lambda: scene.reference("measure-large"), 1.10),
                Peer("sha256sum", lambda: hashed_by("sha256sum")),
                Peer("openssl dgst", lambda: hashed_by("openssl", "dgst", "-sha256")),
            ],
        ),
        Row(
            "measuring a whole process, everything hashed",
            lambda: scene.work("process"),
            [Peer("C with libcrypto, as many threads", lambda: process(scene), 1.10)],
        ),
        *known,
        # By the clock: the threads share the work.
        Row(
            f"measuring a whole process, everything hashed as trees, {processors} threads",
            lambda: scene.work("process-trees", by_processor=False),
            [
                Peer("C with libcrypto, as many threads", lambda: trees(scene, processors), 1.10),
                Peer("Holdfast, one thread", lambda: scene.on_one_processor("process-trees"), 1 / (0.75 * processors)),
            ],
        ),
        Row(
            "`holdfast --version`, start to exit",
            lambda: peers.Command([scene.holdfast, "--version"], repetitions=10),
            [Peer("an empty C program", empty)],
        ),
        Row(
            "a whole proof: `holdfast prove`, start to exit",
            lambda: scene.proof(minus=nothing),
            [Peer("tpm2_quote and tpm2_checkquote", lambda: scene.quote(minus=nothing))],
            most=100_000_000,
        ),
        Row(
            "`holdfast prove`, start to exit, less measuring",
            lambda: scene.proof(minus=lambda output: json.loads(output)["microseconds"]["measure"] * 1000),
            [
                # By the clock, as the proof is.
                Peer("an empty C program", lambda: empty(minus=nothing), 12),
            ],
        ),
        Row(
            "HOTP",
            lambda: scene.work("hotp"),
            [in_c("hotp", 1.15), other("liboath", "hotp", "liboath"), in_python("pyotp", "hotp", 0.04)],
        ),
        Row(
            "TOTP",
            lambda: scene.work("totp"),
            [in_c("totp", 1.15), other("liboath", "totp", "liboath"), in_python("pyotp", "totp", 0.04)],
        ),
        Row("OCRA", lambda: scene.work("ocra"), [in_c("ocra", 1.3)]),
        Row(
            "`holdfast otp compute hotp`, start to exit",
            lambda: codes(scene),
            [
                Peer(
                    "oathtool",
                    lambda: peers.Command(
                        [peers.tool("oathtool"), "--counter=0", "3132333435363738393031323334353637383930"],
                        check=lambda output: output == b"755224\n",
                        repetitions=5,
                    ),
                )
            ],
        ),
    ]


def codes(scene):
    key = scene.folder / "code.key"
    key.write_bytes(b"12345678901234567890")
    words = ["otp", "compute", "hotp", "--format", "raw", "--counter", "0", "--secret-file", key]
    return peers.Command(
        [scene.holdfast, *words], check=lambda output: output == b"755224\n", stdin=subprocess.DEVNULL, repetitions=5
    )


def process(scene):
    """C hashes the bytes of the process that measures itself, which has been started by then."""
    words = [peers.compiled("reference"), "process", scene.measured.process.pid]
    return peers.Worker(words)


def trees(scene, threads):
    """The same bytes in chunks, which threads of C hash."""
    words = [peers.compiled("reference"), f"trees:{threads}", scene.measured.process.pid]
    return peers.Worker(words, by_processor=False)
