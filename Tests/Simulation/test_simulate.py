"""holdfast-simulate from outside: figures of one run compared with each other and with those of other runs, and what is refused."""

import json
import pathlib
import subprocess
import xml.etree.ElementTree

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = ROOT / ".build-tests" / "release" / "holdfast-simulate"
# For a run: other work may keep the processors busy.
TIMEOUT_SECONDS = 1800
DEVICES, REVOCATIONS = 1000, 4
DAYS = 15
FLEET = ["--devices", DEVICES, "--provers", 100, "--days", DAYS, "--zipf", 0, "--revocations", REVOCATIONS]
KINDS = ("idle", "asked", "delivered", "malicious")
HEADER = "seconds,prover,device\n"


def run(*words):
    """The output of the program, and its end."""
    assert PROGRAM.exists(), "the unit tests' build makes holdfast-simulate"
    words = [PROGRAM, *map(str, words)]
    return subprocess.run(
        words, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=TIMEOUT_SECONDS, check=False
    )


def simulate(*words):
    """The results of a run whose rules held."""
    done = run(*words, "--json")
    assert (done.returncode, done.stderr) == (0, "")
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def usual():
    return simulate(*FLEET)


def test_the_figures_of_a_run_agree_with_each_other(usual):
    visits = usual["visits"]
    for quantity in ("bytes", "checks"):
        assert visits["any"][quantity]["total"] == sum(visits[kind][quantity]["total"] for kind in KINDS)
        assert visits["any"][quantity]["max"] == max(visits[kind][quantity]["max"] for kind in KINDS)
    assert visits["any"]["count"] == sum(visits[kind]["count"] for kind in KINDS)
    for figures in visits.values():
        for quantity in ("bytes", "checks"):
            mean = figures[quantity]["total"] / max(figures["count"], 1)
            assert float(figures[quantity]["mean"]) == pytest.approx(mean, abs=1e-4)
            assert figures[quantity]["p99"] <= figures[quantity]["max"]
    assert visits["any"]["count"] == pytest.approx(DEVICES * 2 * DAYS, rel=0.03), "two visits to a device a day"
    assert len(usual["revocations"]) == REVOCATIONS
    for figures in [usual["overall"], *usual["revocations"]]:
        assert figures["share"] == "1" and 0 < figures["p50"] <= figures["p99"] <= figures["p999"]
    for name in ("p50", "p99"):
        times = [figures[name] for figures in usual["revocations"]]
        assert min(times) <= usual["overall"][name] <= max(times)
    assert usual["sound"] and usual["forged_taken"] == 0


def test_each_device_checks_each_bulletin_once_and_a_visit_without_news_costs_nothing(usual):
    visits = usual["visits"]
    assert usual["fleet"]["bulletins"] == REVOCATIONS
    assert visits["delivered"]["checks"]["total"] == visits["any"]["checks"]["total"] == DEVICES * REVOCATIONS
    assert visits["delivered"]["checks"]["max"] == 1
    assert visits["idle"]["checks"]["max"] == visits["asked"]["checks"]["max"] == 0
    assert visits["idle"]["bytes"]["total"] == 10 * visits["idle"]["count"] and visits["idle"]["count"] > 1000
    assert visits["idle"]["bytes"]["max"] <= 12 < visits["asked"]["bytes"]["max"] < visits["delivered"]["bytes"]["max"]


def test_a_seed_repeats_a_run_and_another_one_does_not(usual):
    assert simulate(*FLEET) == usual
    other = simulate(*FLEET, "--seed", 2)
    assert other["overall"] != usual["overall"]
    assert other["visits"]["any"]["count"] != usual["visits"]["any"]["count"], "the visits are others"


def test_malicious_couriers_have_nothing_taken_and_lost_ones_slow_the_others_down(usual):
    harmed = simulate(*FLEET, "--malicious", 0.2, "--lost", 0.2)
    assert harmed["forged_taken"] == 0 and harmed["visits"]["malicious"]["checks"]["total"] > 0
    assert harmed["visits"]["malicious"]["checks"]["max"] == 1
    assert harmed["visits"]["any"]["count"] == usual["visits"]["any"]["count"], "the visits are the same"
    assert harmed["overall"]["p50"] > usual["overall"]["p50"] and harmed["overall"]["p99"] > usual["overall"]["p99"]
    assert simulate(*FLEET, "--lost", 0.5)["overall"]["p50"] > 1.3 * usual["overall"]["p50"]
    assert simulate(*FLEET, "--lost", 1)["overall"] == {"p50": None, "p99": None, "p999": None, "share": "0"}


def test_couriers_that_come_more_often_are_faster(usual):
    often = simulate(*FLEET, "--visits-per-day", 8, "--sync-hours", 2)
    assert all(often["overall"][name] < usual["overall"][name] / 2 for name in ("p50", "p99", "p999"))


def test_a_file_of_visits_gives_what_it_says(tmp_path):
    pattern = tmp_path / "visits.csv"
    pattern.write_text(f"{HEADER}100,0,0\n5000,0,0\n6000,1,1\n7000,0,1\n")
    words = ["--devices", 3, "--provers", 2, "--sync-hours", 0.1, "--pattern", pattern, "--revoke-at", 1000]
    result = simulate(*words)
    assert result["revocations"] == [{"revoked": 1000, "p50": 5000, "p99": None, "p999": None, "share": "0.666667"}]
    counts = {kind: result["visits"][kind]["count"] for kind in KINDS}
    assert counts == {"idle": 1, "asked": 1, "delivered": 2, "malicious": 0}


def test_the_text_and_the_picture_show_the_results(tmp_path, usual):
    picture = tmp_path / "reach.svg"
    done = run(*FLEET, "--svg", picture)
    assert done.returncode == 0
    assert f"{DEVICES} devices, 100 provers, {DAYS} days, {REVOCATIONS} revocations, seed 1" in done.stdout
    assert done.stdout.count("revoked at ") == REVOCATIONS and "forged bulletins taken: 0" in done.stdout
    root = xml.etree.ElementTree.parse(picture).getroot()
    texts = ["".join(element.itertext()) for element in root.iter()]
    hours = usual["overall"]["p50"] / 3600
    assert any(text.startswith("50 % ") and abs(float(text.split()[2]) - hours) < 0.1 for text in texts)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--devices", 0], "--devices must be from 1 to 1000000"),
        (["--provers", 1_000_001], "--provers must be from 1 to 1000000"),
        (["--provers-per-device", 0], "--provers-per-device must be from 1 to 1000"),
        (["--days", 0], "--days must be from 1 to 366"),
        (["--days", 367], "--days must be from 1 to 366"),
        (["--validity-days", 0], "--validity-days must be from 1 to 3660"),
        (["--visits-per-day", 0], "--visits-per-day must be from 0.0001 to 1000"),
        (["--zipf", 5], "--zipf must be from 0 to 4"),
        (["--zipf", "nan"], "--zipf must be from 0 to 4"),
        (["--sync-hours", 0], "--sync-hours must be from 0.02 to 8784"),
        (["--revocations", 0], "the number of revocations must be from 1 to 10000"),
        (["--revoke-at", 30 * 86_400], "--revoke-at must be before the end of --days"),
        (["--lost", 0.6, "--malicious", 0.6], "--lost and --malicious must be from 0 to 1, and at most 1 together"),
        (["--revoke-at", 0, "--revocations", 2], "--revoke-at and --revocations cannot be used together"),
        (["--pattern", "/nowhere"], "the file of --pattern cannot be read, or has more than 256 MiB"),
        (["--pattern", "x", "--zipf", 1], "--pattern names all visits, and cannot be used with --visits-per-day or --zipf"),
        (["--devices", 1_000_000, "--visits-per-day", 100], "there would be more than 10^9 visits"),
        (["--devices", "many"], "The value 'many' is invalid for '--devices <devices>'"),
        (["--colour"], "Unknown option '--colour'"),
        (["visits.csv"], "Unexpected argument 'visits.csv'"),
    ],
)  # fmt: skip
def test_wrong_options_are_refused_with_one_sentence(words, sentence):
    done = run(*words)
    assert (done.returncode, done.stdout) == (64, "")
    assert done.stderr.startswith(f"holdfast-simulate: {sentence}") and done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("0,0,0\n", "line 1 of the file of --pattern: the first line must be seconds,prover,device"),
        (HEADER, "line 2 of the file of --pattern: there is no visit"),
        (f"{HEADER}1,0\n", "line 2 of the file of --pattern: a line must have three fields"),
        (f"{HEADER}1,0,0\n2,x,0\n", "line 3 of the file of --pattern: a field must be a decimal number"),
        (f"{HEADER}2,0,0\n1,0,0\n", "line 3 of the file of --pattern: the time must not be before that of the line"),
        (f"{HEADER}1,100,0\n", "line 2 of the file of --pattern: there is no such prover"),
        (f"{HEADER}1,0,1000\n", "line 2 of the file of --pattern: there is no such device"),
        (f"{HEADER}2592000,0,0\n", "line 2 of the file of --pattern: the time must be before the end of --days"),
    ],
)
def test_a_wrong_file_of_visits_is_refused_with_its_line(tmp_path, text, sentence):
    pattern = tmp_path / "visits.csv"
    pattern.write_text(text)
    done = run("--pattern", pattern)
    assert (done.returncode, done.stdout) == (64, "")
    assert done.stderr.startswith(f"holdfast-simulate: {sentence}") and done.stderr.count("\n") == 1


def test_the_help_says_what_is_real_and_nothing_is_left_behind(tmp_path):
    done = run("--help")
    assert done.returncode == 0 and "Real are the online service" in done.stdout and "Not run" in done.stdout
    words = [PROGRAM, "--devices", "10", "--provers", "2"]
    subprocess.run(words, env={"TMPDIR": str(tmp_path)}, capture_output=True, timeout=TIMEOUT_SECONDS, check=True)
    assert not list(tmp_path.iterdir())
