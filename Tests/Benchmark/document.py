"""The table of docs/performance.md, its pictures, and the same on a terminal."""

UNITS = [(1e9, "s"), (1e6, "ms"), (1e3, "µs"), (1, "ns")]


def duration(nanoseconds):
    size, unit = next((size, unit) for size, unit in UNITS if nanoseconds >= size or size == 1)
    return f"{nanoseconds / size:.3g} {unit}"


def show(timed):
    """Prints a row as soon as it is measured."""
    row = timed.row
    print(f"{row.name}: {duration(timed.ours.middle)}" + judged(timed.ours.middle, row.most, duration), flush=True)
    for peer, theirs, found in timed.compared():
        print(
            f"  {peer.name}: {duration(theirs.middle)}; {found.middle:.3g} times ({found.low:.3g} to {found.high:.3g})"
            + judged(found.middle, peer.most, lambda most: f"{most:g}"),
            flush=True,
        )
    for name, reason in timed.absent:
        print(f"  {name}: skipped, {reason}", flush=True)


def judged(value, most, text):
    if most is None:
        return ""
    return f", at most {text(most)}: {'met' if value <= most else 'not met'}"
