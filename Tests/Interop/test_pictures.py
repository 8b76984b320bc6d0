"""Pictures of measurements, in a browser: texts and lines stand out from what is behind them in light and in dark, and no text
overlaps another or leaves the picture."""

import json
import pathlib
import re
import subprocess

import browser
import pytest
from devices import LinuxDevice, served

ROOT = pathlib.Path(__file__).resolve().parents[2]
PERFORMANCE = ROOT / "docs/performance.md"

# The texts and lines of a picture, with their contrast and boxes. Texts have an edge in the colour of the ground, so the ground is
# behind them everywhere. Lines that only help to read a value across need no contrast (WCAG 2.2, 1.4.11).
PICTURE = """
const channel = c => { c /= 255; return c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4; };
const parse = text => (text.match(/[0-9.]+/g) || []).map(Number);
const luminance = ([r, g, b]) => 0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b);
const ratio = (a, b) => { const [x, y] = [luminance(a), luminance(b)].sort((p, q) => q - p); return (x + 0.05) / (y + 0.05); };
const ground = parse(getComputedStyle(document.querySelector('.background')).fill);
const contrasts = [], boxes = [];
for (const e of document.querySelectorAll('text')) {
  contrasts.push([e.textContent, ratio(parse(getComputedStyle(e).fill), ground), 4.5]);
  const box = e.getBBox();
  boxes.push([e.textContent, box.x, box.y, box.x + box.width, box.y + box.height]);
}
for (const e of document.querySelectorAll('line, polyline, circle, rect:not(.background)')) {
  if (['grid', 'edge'].includes(e.getAttribute('class'))) continue;
  const style = getComputedStyle(e), colour = e.matches('line, polyline') ? style.stroke : style.fill;
  contrasts.push([e.tagName + ' ' + e.getAttribute('class'), ratio(parse(colour), ground), 3]);
}
const view = document.documentElement.viewBox.baseVal;
return [contrasts, boxes, view.width, view.height, ground];
"""

LONG = "first round in place of a TLS 1.3 handshake with a client certificate over the same socket, WWWWMMMM@@@@%%%%"
CURVES = {
    "kind": "curves",
    "title": "Cost of a round against the number of remembered tokens, from a hundred to ten million, " * 2,
    "x": {"label": "remembered tokens", "log": True},
    "y": {"label": "time of a round in µs", "log": True},
    "series": [
        {
            "name": f"{index} {LONG[: 12 * index + 6]}",
            "points": [[10.0**power, 3.5 * index + power] for power in range(2, 8)],
        }
        for index in range(10)
    ],
}
LINEAR = {
    **CURVES,
    "x": {"label": "MB", "log": False},
    "y": {"label": "ms", "log": False},
    "series": [{"name": "one", "points": [[0, 12345.678], [12345678, 999999999]]}],
}
BARS = {
    "kind": "bars",
    "title": "Holdfast's time divided by the time of another program",
    "unit": "ratio",
    "log": False,
    "bars": [
        {"name": LONG, "value": 0.31, "low": 0.28, "high": 0.36, "limit": 0.5},
        {"name": "over", "value": 1.3, "low": 1.2, "high": 1.45, "limit": 1.15},
        {"name": "huge", "value": 987654.25, "low": 912345.5, "high": 998765.5, "limit": 999999},
        {"name": "<b>&amp;\"'", "value": 1, "low": 1, "high": 1, "limit": None},
    ],
}
RATIOS = {
    **BARS,
    "log": True,
    "bars": [
        {
            "name": f"{LONG[: 40 + number]}, to {number}",
            "value": value,
            "low": value * 0.9,
            "high": value * 1.2,
            "limit": limit,
        }
        for number, (value, limit) in enumerate([(0.026, 0.04), (1.06, 1.1), (20.5, 12), (0.999, 1), (0.0004, None)])
    ],
}
NOTHING = {**BARS, "bars": []}
KINDS = {"curves": CURVES, "linear": LINEAR, "bars": BARS, "ratios": RATIOS, "nothing": NOTHING}
COMMITTED = sorted((ROOT / "docs/pictures").glob("*.svg"))


@pytest.fixture(scope="module")
def chromium():
    with browser.chromium() as driver:
        yield driver


@pytest.fixture(scope="module")
def rounds(holdfast, folder):
    """Pictures of rounds with a device that is served, which stands for a board, too."""
    with served(LinuxDevice(holdfast, folder)) as device:
        service, descriptor = device.service()
        run, phone = device.command_line, folder / "phone"
        run.succeed("enroll", "--device", descriptor, "--service", service, "--state", phone)
        place = ["--connect", device.endpoint, "--state", phone, "--rounds", "30"]
        for verb in ("rounds", "board"):
            run.succeed("bench", verb, *place, "--svg", folder / f"{verb}.svg")
    return [folder / "board.svg", folder / "rounds.svg"]


@pytest.fixture(scope="module")
def pictures(holdfast, rounds, tmp_path_factory):
    """Pictures of each kind, and those that the documents show."""
    folder = tmp_path_factory.mktemp("pictures")
    tool = ROOT / ".build-tests/release/bench-charts"
    assert tool.exists(), "the unit tests' build makes bench-charts"
    for name, chart in KINDS.items():
        (folder / f"{name}.json").write_text(json.dumps(chart))
        subprocess.run([tool, folder / f"{name}.json", folder / f"{name}.svg"], check=True)
    # A budget far beyond the values, one in the middle of them, and a distribution without one.
    for budget in ("3600000", "1"):
        latency = [
            holdfast,
            "bench",
            "latency",
            "--rounds",
            "30",
            "--budget-ms",
            budget,
            "--svg",
            folder / f"b{budget}.svg",
        ]
        assert subprocess.run(latency, capture_output=True, check=False).returncode in (0, 1)
    subprocess.run([holdfast, "bench", "measure", "--rounds", "20", "--svg", folder / "measure.svg"], check=True)
    found = sorted(folder.glob("*.svg"))
    assert len(found) == 8
    shown = [path for document in (ROOT / "README.md", PERFORMANCE) for path in pictures_in(document)]
    assert set(shown) == set(COMMITTED), (
        "the pictures of docs/pictures are those that README.md and performance.md show"
    )
    return found + rounds + COMMITTED


def pictures_in(document):
    """The pictures that a document shows."""
    return [
        (document.parent / name).resolve() for name in re.findall(r"!\[[^]]*\]\(([^)]+\.svg)\)", document.read_text())
    ]


def overlap(one, other):
    """Whether two boxes share more than a pixel in both directions."""
    _, left, top, right, bottom = one
    _, left2, top2, right2, bottom2 = other
    return min(right, right2) - max(left, left2) > 1 and min(bottom, bottom2) - max(top, top2) > 1


def test_texts_and_lines_have_enough_contrast_in_light_and_dark(chromium, pictures):
    grounds = set()
    for scheme in ("light", "dark"):
        browser.set_scheme(chromium, scheme)
        for path in pictures:
            chromium.get(path.as_uri())
            contrasts, _, _, _, ground = chromium.execute_script(PICTURE)
            low = [(name, round(ratio, 2)) for name, ratio, least in contrasts if ratio < least]
            assert not low, (scheme, path.name, low)
            assert len(contrasts) > 4, path.name
            grounds.add(tuple(ground))
    assert len(grounds) == 2


def test_no_text_overlaps_another_or_leaves_the_picture(chromium, pictures):
    for path in pictures:
        chromium.get(path.as_uri())
        _, boxes, width, height, _ = chromium.execute_script(PICTURE)
        for index, box in enumerate(boxes):
            name, left, top, right, bottom = box
            assert 0 <= left and right <= width and 0 <= top and bottom <= height, (path.name, name, box)
            others = [other[0] for other in boxes[index + 1 :] if overlap(box, other)]
            assert not others, (path.name, name, others)
