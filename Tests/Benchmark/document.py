"""The table of docs/performance.md, its pictures, and the same on a terminal."""

import datetime
import json
import os
import pathlib
import platform
import subprocess
import tempfile

import peers
from spread import spread

PAGE = peers.ROOT / "docs/performance.md"
PICTURES = peers.ROOT / "docs/pictures"
BEGIN, END = "<!-- Written by make bench. -->\n", "<!-- End of what make bench wrote. -->\n"
MEGAHERTZ = 64
UNITS = [(1e9, "s"), (1e6, "ms"), (1e3, "µs"), (1, "ns")]


def duration(nanoseconds):
    size, unit = next((size, unit) for size, unit in UNITS if nanoseconds >= size or size == 1)
    return f"{nanoseconds / size:.3g} {unit}"


def times(value):
    return f"{value:.4f}" if value < 0.01 else f"{value:.3f}" if value < 0.1 else f"{value:.2f}"


def judged(value, most, text):
    if most is None:
        return ""
    return f"{text(most)}, {'met' if value <= most else 'not met'}"


def compared_with(row, peer, found):
    """Whether the target that a peer sets is met."""
    verdict = judged(found.middle, peer.most, times)
    return f"{verdict}; one of both is enough" if verdict and row.one_is_enough else verdict


def show(timed):
    """Prints a row as soon as it is measured."""
    row = timed.row
    print(f"{row.name}: {duration(timed.ours.middle)}  {judged(timed.ours.middle, row.most, duration)}", flush=True)
    for peer, theirs, found in timed.compared():
        print(
            f"  {peer.name}: {duration(theirs.middle)}; {times(found.middle)} times ({times(found.low)} to "
            f"{times(found.high)})  {compared_with(row, peer, found)}",
            flush=True,
        )
    for name, reason in timed.absent:
        print(f"  {name}: skipped, {reason}", flush=True)


def table(all_timed):
    """The rows of the table: one for each work and peer."""
    for timed in all_timed:
        row, ours = timed.row, duration(timed.ours.middle)
        compared = list(timed.compared())
        if not compared or row.most is not None:
            yield f"| {row.name} | {ours} | | | | {judged(timed.ours.middle, row.most, duration)} |"
        for peer, theirs, found in compared:
            yield (
                f"| {row.name} | {ours} | {peer.name} | {duration(theirs.middle)} | {times(found.middle)} "
                f"({times(found.low)} to {times(found.high)}) | {compared_with(row, peer, found)} |"
            )
        for name, reason in timed.absent:
            yield f"| {row.name} | {ours} | {name} | skipped: {reason} | | |"


def instructions(count):
    """The instructions of a row of the board, as a time, too, or why there are none; and the verdict."""
    if count.taken is None:
        return f"skipped: {count.absent}", ""
    taken = f"{count.taken:,} instructions (counted), {count.taken / MEGAHERTZ / 1000:.3g} ms at {MEGAHERTZ} MHz"
    return taken, judged(count.taken, count.most, lambda most: f"{most:,}")


def show_board(counts):
    """Prints the rows of the board."""
    for count in counts:
        taken, verdict = instructions(count)
        print(f"on the board: {count.name}: {taken}  {verdict}", flush=True)


def board(counts):
    """The rows of the board in the table, which have no peer."""
    for count in counts:
        taken, verdict = instructions(count)
        yield f"| on the board: {count.name} | {taken} | | | | {verdict} |"


def machine():
    model = next(
        (
            line.split(":")[1].strip()
            for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines()
            if "model name" in line
        ),
        platform.machine(),
    )
    version = subprocess.run(["openssl", "version"], capture_output=True, text=True).stdout.split()
    return f"{os.cpu_count()} processors ({model}), Linux {platform.release().split('-')[0]}, OpenSSL {version[1]}"


def draw(charts, name, chart):
    """Draws a chart, by the tool of the pictures."""
    PICTURES.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(chart, file)
        file.flush()
        peers.run([charts, file.name, PICTURES / f"{name}.svg"])


def bars(all_timed, counts):
    """The whole table: times as ratios to a peer's, and times and instructions without a peer as ratios to their limits."""
    found = []

    def add(name, ratio, limit):
        low, middle, high = (round(value, 4) for value in (ratio.low, ratio.middle, ratio.high))
        bar = {"name": name.replace("`", ""), "value": middle, "low": low, "high": high, "limit": limit}
        found.append(bar)

    for timed in all_timed:
        row = timed.row
        if row.most is not None:
            add(f"{row.name}, to its limit", timed.ours.of(row.most), 1)
        for peer, _, ratio in timed.compared():
            add(f"{row.name}, to {peer.name}", ratio, None if peer.most is None else round(peer.most, 4))
    for count in counts:
        if count.taken is not None:
            add(f"on the board: {count.name}, to its limit", spread([count.taken / count.most]), 1)
    return {
        "kind": "bars",
        "title": "Times as ratios to those of peers, and to limits",
        "unit": "ratio; less is faster",
        "log": True,
        "bars": found,
    }


def curves(growth):
    series = [
        {"name": name, "points": [[size, round(time / 1000, 3)] for size, time in points]}
        for name, points in growth.series.items()
    ]
    x, y = {"label": growth.label, "log": True}, {"label": "microseconds", "log": growth.is_steep}
    return {"kind": "curves", "title": growth.title, "x": x, "y": y, "series": series}


def write(all_timed, counts, growths, charts, load):
    """Replaces what an earlier run wrote into the page, and draws the pictures."""
    text = PAGE.read_text()
    start, end = text.index(BEGIN) + len(BEGIN), text.index(END)
    today = datetime.datetime.now(datetime.UTC).date()
    lines = [
        "",
        f"`make bench`, {today}, on {machine()}. Other work when it began: a load average of {load:.1f}.",
        "",
        "| work | Holdfast | peer | takes | Holdfast / peer (quartiles) | target: at most |",
        "| --- | --- | --- | --- | --- | --- |",
        *table(all_timed),
        *board(counts),
        "",
        "![Ratios to peers and to limits](pictures/bench-targets.svg)",
        "",
        *(f"![{growth.title}](pictures/bench-{growth.name}.svg)" for growth in growths),
        "",
    ]
    draw(charts, "bench-targets", bars(all_timed, counts))
    for growth in growths:
        draw(charts, f"bench-{growth.name}", curves(growth))
    PAGE.write_text(text[:start] + "\n".join(lines) + "\n" + text[end:])
