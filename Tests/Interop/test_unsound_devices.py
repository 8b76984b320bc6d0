"""`holdfast attack`: what it finds at devices that are unsound on purpose."""

import concurrent.futures

import pytest
from attack_scene import SOUND, UNSOUND, Scene, expect_sound, judged
from unsound_devices import FLAWS, Forgiving, Hangs, InOrder, LastCodeOnly, OnePlace, Served, SoundDevice
from unsound_jose_devices import FLAWS_IN_JOSE, WithoutJOSE
from unsound_slow_devices import (
    LOCKOUT_FLAWS,
    EndedLockout,
    EndingLockout,
    EndlessMessages,
    HeldByDrips,
    LineOfFrames,
    Locking,
    NeedingASeal,
    ServedAsStream,
)


@pytest.fixture(scope="module")
def scene(holdfast, folder):
    return Scene(holdfast, folder)


@pytest.mark.parametrize("kind", FLAWS, ids=lambda kind: kind.__name__)
def test_a_device_that_is_unsound_in_one_way_is_found_by_the_attack_for_it(scene, kind):
    others = {"failures", "held-places", "flood", "late-answer", "dripping-peers", "expired-by-reference"} - FLAWS[kind]
    others |= set(FLAWS_IN_JOSE.values()) - {"uses-in-both-encodings"}
    code = scene.folder / "code"
    code.write_text("271828")
    user = ("--user", "alice", "--otp", code) if issubclass(kind, Forgiving) else ()
    destructive = ("--destructive",) if kind.needs_destruction else ()
    # Those that do not answer are waited for.
    seconds = "2" if kind in (Hangs, OnePlace) else "10"
    with Served(scene.model(kind), str(scene.socket)):
        done, report = scene.attack(
            *("--service", scene.service, "--timeout", seconds, *user, *destructive),
            *(word for each in others for word in ("--skip", each)),
        )
    assert done.returncode == UNSOUND, done.stderr.decode()
    assert FLAWS[kind] <= judged(report, "unsound"), "the attack that finds it"
    assert not report["is_sound"] and "unsound" in done.stderr.decode()


@pytest.mark.parametrize("kind", FLAWS_IN_JOSE, ids=lambda kind: kind.__name__)
def test_a_device_that_is_unsound_only_in_jose_is_found_by_the_attack_for_it_and_not_by_the_same_in_cose(scene, kind):
    attack = FLAWS_IN_JOSE[kind]
    same_in_cose = {attack.removesuffix("-jose")} - {attack}
    with Served(scene.model(kind), str(scene.socket)):
        done, report = scene.attack(
            *("--service", scene.service, "--only", attack),
            *(word for each in same_in_cose for word in ("--only", each)),
        )
    assert done.returncode == UNSOUND, done.stderr.decode()
    assert (judged(report, "unsound"), judged(report, "sound")) == ({attack}, same_in_cose)


def test_attacks_in_jose_are_not_tried_at_a_device_that_takes_no_such_token(scene):
    ids = ("no-algorithm", "critical-header", "token-of-another-device-jose", "uses-in-both-encodings")
    with Served(scene.model(WithoutJOSE), str(scene.socket)):
        done, report = scene.attack("--service", scene.service, *(word for each in ids for word in ("--only", each)))
    assert done.returncode == SOUND and judged(report, "not tried") == set(ids)
    reason = "the device takes no tokens in JOSE: an honest one got tokenInvalid, without a seal"
    assert {each["reason"] for each in report["attacks"]} == {reason}


def test_a_peer_that_sends_one_byte_after_the_other_keeps_a_device_only_if_it_is_unsound(scene):
    for kind, code in ((SoundDevice, SOUND), (HeldByDrips, UNSOUND)):
        with Served(scene.model(kind), str(scene.socket)):
            done, report = scene.attack("--timeout", "10", "--only", "dripping-peers")
        assert done.returncode == code, (kind, report)


def test_a_message_that_takes_longer_than_ten_seconds_is_taken_only_by_an_unsound_device(scene):
    def result(kind):
        path = scene.folder / kind.__name__
        with ServedAsStream(scene.model(SoundDevice), str(path), kind):
            return scene.attack("--only", "dripped-message", endpoint=f"unix-stream:{path}")

    with concurrent.futures.ThreadPoolExecutor() as executor:
        (sound, _), (unsound, report) = executor.map(result, (LineOfFrames, EndlessMessages))
    assert (sound.returncode, unsound.returncode) == (SOUND, UNSOUND)
    assert report["attacks"][0]["observed"].startswith("accepted")


def attack_codes(scene, kind, *ids):
    code, later = scene.folder / "code", scene.folder / "later"
    code.write_text("271828")
    later.write_text("314159")
    more = ("--service", scene.service, "--user", "alice", "--otp", code, "--later-otp", later, "--destructive")
    with Served(scene.model(kind), str(scene.socket)):
        return scene.attack(*more, *(word for each in ids for word in ("--only", each)))


def test_a_device_that_locks_a_user_out_is_sound(scene):
    ids = ("parallel-guesses", "lockout", "lockout-by-token", "lockout-by-user-token", "lockout-by-case")
    done, report = attack_codes(scene, Locking, *ids)
    expect_sound(done, report)
    assert judged(report, "sound") == set(ids)
    assert report["attacks"][0]["observed"] == "5 passwords were tested, and 11 refused during the lockout"


@pytest.mark.parametrize("kind", [EndingLockout, EndedLockout], ids=lambda kind: kind.__name__)
def test_a_lockout_that_an_earlier_attack_began_and_that_ends_is_begun_anew(scene, kind):
    done, report = attack_codes(scene, kind, "lockout")
    expect_sound(done, report)
    assert judged(report, "sound") == {"lockout"}


def test_a_device_that_demands_more_than_a_password_is_not_judged_by_it(scene):
    ids = {"parallel-guesses", "lockout", "lockout-by-token"}
    done, report = attack_codes(scene, NeedingASeal, *ids)
    assert (done.returncode, judged(report, "not tried")) == (SOUND, ids), report


def test_a_password_before_the_last_is_taken_only_by_an_unsound_device(scene):
    attack = "password-before-the-last"
    done, report = attack_codes(scene, InOrder, attack)
    expect_sound(done, report)
    assert judged(report, "sound") == {attack}
    done, report = attack_codes(scene, LastCodeOnly, attack)
    assert (done.returncode, judged(report, "unsound")) == (UNSOUND, {attack})
    # One that takes no later password is not judged.
    done, report = attack_codes(scene, Forgiving, attack)
    assert (done.returncode, judged(report, "not tried")) == (SOUND, {attack})


@pytest.mark.parametrize("kind", LOCKOUT_FLAWS, ids=lambda kind: kind.__name__)
def test_a_device_whose_lockout_can_be_evaded_is_found_by_the_attack_for_it(scene, kind):
    done, report = attack_codes(scene, kind, LOCKOUT_FLAWS[kind])
    assert (done.returncode, judged(report, "unsound")) == (UNSOUND, {LOCKOUT_FLAWS[kind]})
