"""How the time of a work grows with what it works on."""

import dataclasses
import pathlib
import re
import shutil
import statistics

import peers

SAMPLES = 5
NANOSECONDS = 20_000_000


def tokens_that_fit():
    """Remembered tokens are in memory, of which ten million take 10 GB."""
    available = re.search(r"MemAvailable: +(\d+) kB", pathlib.Path("/proc/meminfo").read_text())
    return 10**7 if available and int(available[1]) > 14 * 2**20 else 10**6


# Ten million, even where a device of the product keeps fewer: the works raise its limits. A process maps about 13,000 libraries, of five
# mappings each (vm.max_map_count).
LARGEST = {
    "bytes": 10**8,
    "libraries": 10**4,
    "entries": 10**7,
    "tokens": tokens_that_fit(),
    "requests": 10**7,
    "nonces": 10**7,
    "users": 10**7,
    "adding": 10**7,
}
QUICK_LARGEST = 10**3
BYTES, LIBRARIES = "Measuring a file, one thread", "Measuring a process with more libraries"
# The kinds of records of a ledger, and their names.
RECORDS = {
    "entries": "audit entries",
    "tokens": "remembered tokens",
    "requests": "tokens with numbered requests",
    "nonces": "nonces: a compatibility round",
    "users": "users: a round with a password",
    "adding": "users: adding one",
}
NAMES = [BYTES, LIBRARIES, *RECORDS.values()]


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
    """The powers of ten from a hundred on, or ten libraries, and the largest size."""
    largest = min(LARGEST[kind], QUICK_LARGEST) if quick else LARGEST[kind]
    return [10**power for power in range(1 if kind == "libraries" else 2, 8) if 10**power < largest] + [largest]


def median(worker):
    try:
        worker.start(NANOSECONDS)
        return statistics.median(worker.sample() for _ in range(SAMPLES))
    finally:
        worker.close()


def of_bytes(scene, quick, progress):
    """The measuring of a file, next to C."""
    series = {"Holdfast": [], "C with libcrypto": []}
    header = (scene.folder / "executable").read_bytes()[:64]
    with progress.row(BYTES):
        for size in sizes("bytes", quick):
            name = f"file-{size}"
            (scene.folder / name).write_bytes(header + bytes(max(0, size - len(header))))
            series["Holdfast"].append((size, median(scene.work(f"measure:{name}"))))
            series["C with libcrypto"].append((size, median(scene.reference(f"measure:{name}"))))
            (scene.folder / name).unlink()
    return Growth("bytes", BYTES, "bytes", series, is_steep=True)


def of_libraries(scene, quick, progress):
    """The measuring of a process with that many libraries, each of 64 KiB of code."""
    library, folder = peers.library("library"), scene.folder / "libraries"
    folder.mkdir()
    points = []
    with progress.row(LIBRARIES):
        for size in sizes("libraries", quick):
            for number in range(size):
                if not (folder / f"{number}.so").exists():
                    shutil.copyfile(library, folder / f"{number}.so")
            points.append((size, median(scene.work(f"libraries:{size}"))))
    return Growth("libraries", LIBRARIES, "libraries of 64 KiB", {"Holdfast": points})


def of_ledger(scene, quick, progress):
    """What a device does, with a ledger that is full of one kind of record. Nothing waits for the disk."""
    series = {}
    for kind, name in RECORDS.items():
        series[name] = []
        with progress.row(name):
            for size in sizes(kind, quick):
                work = scene.work(f"{kind}:{size}", LD_PRELOAD=str(peers.library("no_sync")))
                series[name].append((size, median(work)))
                for file in scene.folder.glob("ledger*"):
                    file.unlink()
    return Growth("records", "Rounds, both sides, with more of what a device keeps", "records", series)


def measure(scene, quick, progress):
    """All curves; `progress` is told before each, by its name in NAMES."""
    grown = []
    for work in (of_bytes, of_libraries, of_ledger):
        grown.append(work(scene, quick, progress))
        for name, points in grown[-1].series.items():
            print(
                f"{grown[-1].title}, {name}: " + ", ".join(f"{size:,}: {time / 1000:.4g} µs" for size, time in points),
                flush=True,
            )
    return grown
