"""How the time of a work grows with what it works on."""

import dataclasses
import shutil
import statistics

import peers

SAMPLES = 5
NANOSECONDS = 20_000_000
# Filling a ledger takes a tenth of a millisecond for each record: larger ones do not fit into the time of a run. A device has at
# most 100,000 users and remembers 4,096 tokens.
LARGEST = {"bytes": 10**8, "libraries": 10**3, "entries": 10**5, "nonces": 10**5, "users": 10**4, "tokens": 10**5}
QUICK_LARGEST = 10**3


@dataclasses.dataclass
class Growth:
    name: str
    title: str
    label: str
    # A series → the points: a size, and nanoseconds.
    series: dict[str, list[tuple[int, float]]]
    # Whether the axis of time is logarithmic.
    is_steep: bool = False


def sizes(kind, quick):
    largest = min(LARGEST[kind], QUICK_LARGEST) if quick else LARGEST[kind]
    return [10**power for power in range(1, 9) if 10**power <= largest and (power > 1 or kind == "libraries")]


def median(worker):
    try:
        worker.start(NANOSECONDS)
        return statistics.median(worker.sample() for _ in range(SAMPLES))
    finally:
        worker.close()


def of_bytes(scene, quick):
    """The measuring of a file, next to C."""
    series = {"Holdfast": [], "C with libcrypto": []}
    header = (scene.folder / "executable").read_bytes()[:64]
    for size in sizes("bytes", quick):
        name = f"file-{size}"
        (scene.folder / name).write_bytes(header + bytes(max(0, size - len(header))))
        series["Holdfast"].append((size, median(scene.work(f"measure:{name}"))))
        series["C with libcrypto"].append((size, median(scene.reference(f"measure:{name}"))))
        (scene.folder / name).unlink()
    return Growth("bytes", "Measuring a file, one thread", "bytes", series, is_steep=True)


def of_libraries(scene, quick):
    """The measuring of a process with that many libraries, each of 64 KiB of code."""
    library, folder = peers.library("library"), scene.folder / "libraries"
    folder.mkdir()
    points = []
    for size in sizes("libraries", quick):
        for number in range(size):
            if not (folder / f"{number}.so").exists():
                shutil.copyfile(library, folder / f"{number}.so")
        points.append((size, median(scene.work(f"libraries:{size}"))))
    return Growth("libraries", "Measuring a process with more libraries", "libraries of 64 KiB", {"Holdfast": points})


def of_ledger(scene, quick):
    """A remembered round of both sides, with a ledger that is full of one kind of record."""
    series = {}
    for kind, name in (
        ("tokens", "remembered tokens"),
        ("users", "users"),
        ("nonces", "nonces"),
        ("entries", "audit entries"),
    ):
        series[name] = [(size, median(scene.work(f"{kind}:{size}"))) for size in sizes(kind, quick)]
    return Growth("records", "A remembered round, with more of what a device keeps", "records", series)


def measure(scene, quick):
    grown = []
    for work in (of_bytes, of_libraries, of_ledger):
        grown.append(work(scene, quick))
        for name, points in grown[-1].series.items():
            print(
                f"{grown[-1].title}, {name}: " + ", ".join(f"{size:,}: {time / 1000:.4g} µs" for size, time in points),
                flush=True,
            )
    return grown
