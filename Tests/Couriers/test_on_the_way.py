"""Bulletins on the way from a service to a device, with provers, and with the owner.

Source: docs/couriers.md.
"""

import base64
import json
import secrets

import pytest
from couriers import (
    GROUPS,
    Courier,
    VisitedDevice,
    ask_status,
    revocation,
)
from device_users import Users
from holdfast_peer import bulletins, session
from holdfast_peer.issuer import Issuer
from holdfast_peer.keys import PrivateKey, jwk, key_id, point_of_jwk
from holdfast_peer.session import COSE

LARGEST = 2**53 - 1
DENIED, MALFORMED, USAGE = 1, 2, 64


# Delivery by the owner


def test_the_owner_hands_in_a_bulletin_while_the_device_is_served_and_while_it_is_not(lock, press, courier):
    victim = lock.grant(COSE)
    assert session.NAMES[courier.round(victim).status] == "accepted"
    first = press.claims(revoked=[revocation(victim)])
    assert lock.hand_in(press.sign(first)) == (0, {"result": "taken"})
    press.note(first)
    assert session.NAMES[courier.round(victim, by_reference=True).status] == "tokenRevoked", "a remembered token"
    assert lock.hand_in(press.sign(first)) == (0, {"result": "known"})
    assert courier.round().result["bulletins"] == press.state
    lock.stop()
    second = press.claims(users=[["nobody", None]])
    for bulletin, status in [
        (press.seal(second), 0),
        (press.sign(press.claims(secrets.token_bytes(16))), DENIED),
        (press.sign(press.claims(predecessor=LARGEST - 1, number=LARGEST)), DENIED),
        (press.sign(press.claims())[:-1], MALFORMED),
        (bulletins.sign(press.claims(), PrivateKey()), MALFORMED),
        (bulletins.sign(press.claims(number=LARGEST), press.issuer.key, signature=bytes([1]) * 64), MALFORMED),
        (b"", MALFORMED),
        (bytes(3073), MALFORMED),
    ]:
        done = lock.hand_in(bulletin)
        assert done[0] == status, done
    press.note(second)
    lock.start()
    courier = Courier(lock)
    assert courier.round().result["bulletins"] == press.state
    courier.close()


# From a service to the device


def test_a_stolen_phone_is_refused_once_another_one_has_been_at_the_device(lock):
    run = lock.command_line
    service, descriptor = lock.service()
    phones = [lock.folder / name for name in ("phone", "stolen")]
    for phone in phones:
        run.succeed("enroll", "--device", descriptor, "--service", service, "--state", phone)

    def prove(phone, courier="20000"):
        """The exit status of a proof, with time for a delivery also on a busy machine."""
        words = ("--connect", lock.endpoint, "--state", phone, "--command", "unlock")
        return run.run("prove", *words, "--courier", courier).returncode

    assert [prove(phone) for phone in phones] == [0, 0]
    tokens = run.read_json("service", "tokens", "--dir", service, "--device", descriptor)["tokens"]
    audited = [each["token"] for each in lock.audit() if each["event"] == "round"]
    assert [token["id"] for token in tokens] == audited, "the service and the device name tokens alike"
    files = b"".join(file.read_bytes() for phone in phones for file in phone.rglob("*") if file.is_file())
    for raw in map(bytes.fromhex, audited):
        forms = [raw, raw.hex().encode(), base64.b64encode(raw)[:-2], base64.urlsafe_b64encode(raw)[:-2]]
        assert not any(form in files for form in forms), "a phone knows the id of a token"
    token = audited[-1]
    run.succeed("service", "bulletin", "--dir", service, "--device", descriptor, "--revoke", token)
    assert prove(phones[0]) == 0 and prove(phones[1]) == 0, "nobody has fetched it"
    run.succeed("sync", "--state", phones[0], "--service", service)
    assert prove(phones[1]) == 0, "nobody has delivered it"
    assert prove(phones[0], "off") == 0 and prove(phones[1]) == 0, "a prover that delivers nothing"
    assert prove(phones[0]) == 0
    assert prove(phones[1]) == DENIED, "the stolen phone"
    lock.restart()
    assert [prove(phone) for phone in phones] == [0, DENIED]
    assert [each["event"] for each in lock.audit()].count("bulletin") == 1


def test_what_a_service_signs_is_what_the_device_does(lock):
    run, (service, descriptor), phone = lock.command_line, lock.service(), lock.folder / "phone"
    run.succeed("enroll", "--device", descriptor, "--service", service, "--state", phone)
    issuer = run.read_json("service", "show", "--dir", service)["issuer"]
    kid = key_id(point_of_jwk(issuer)).hex()
    policy = lock.device_folder / "policy.json"
    policy.write_text(policy.read_text().replace('"introducers": [', f'"introducers": ["{kid}", '))
    user, files = Users(lock).hotp_user(), iter(range(100))

    def bulletin(*words, group=None):
        """Signs one, and hands it in."""
        file = lock.folder / f"bulletin-{next(files)}"
        audience = ("--group", group) if group else ("--device", descriptor)
        signed = run.read_json("service", "bulletin", "--dir", service, *audience, *words, "--out", file)
        assert signed["bytes"] == file.stat().st_size
        return lock.hand_in(file.read_bytes())[1].get("result", "refused")

    def prove():
        words = ("--connect", lock.endpoint, "--state", phone, "--command", "unlock", "--timeout", "60")
        return run.run("prove", *words).returncode

    assert prove() == 0
    successor = Issuer()
    file = lock.folder / "successor.jwk"
    file.write_text(json.dumps(jwk(successor.key.point)))
    assert bulletin("--introduce", file, "--introduce-until", "2099-01-01T00:00:00Z") == "taken"
    assert ask_status(lock, lock.grant(COSE, successor)) == "accepted"
    assert bulletin("--end", successor.key.kid.hex()) == "taken"
    assert ask_status(lock, lock.grant(COSE, successor)) == "tokenInvalid"
    user.expect("accepted", "configure", otp=user.hotp())
    assert bulletin("--lock-user", user.name) == "taken"
    user.expect("lockedOut", "configure", otp=user.hotp(9))
    assert bulletin("--remove-user", user.name) == "taken"
    user.expect("otpRejected", "configure", otp=user.hotp(9))
    assert bulletin("--minimum-version", "another-app=9.0.0", group=GROUPS[0]) == "taken"
    assert bulletin(group="south") == "refused"
    assert prove() == 0
    assert bulletin("--generation", "9", group=GROUPS[1]) == "taken"
    assert prove() == DENIED
    assert bulletin("--end", kid) == "taken"
    assert bulletin() == "refused", "of a key that has ended itself"


@pytest.mark.parametrize(
    "words",
    [
        (),
        ("--device", "00" * 16, "--group", "north"),
        ("--group", ""),
        ("--group", "g" * 33),
        ("--group", "north", "--revoke", "00" * 15),
        ("--group", "north", "--lock-user", "alice"),
        ("--group", "north", "--remove-user", "alice"),
        ("--group", "north", "--minimum-version", "app"),
        ("--group", "north", "--minimum-version", "=1.0.0"),
        ("--group", "north", "--minimum-version", "app=one"),
        ("--group", "north", "--end", "00" * 7),
        ("--group", "north", "--introduce-until", "2099-01-01T00:00:00Z"),
        ("--group", "north", "--until", "some day", "--revoke", "00" * 16),
    ],
    ids=" ".join,
)
def test_a_service_refuses_to_sign_what_is_no_bulletin(lock, words):
    service, _ = lock.service()
    done = lock.command_line.run("service", "bulletin", "--dir", service, *words)
    assert done.returncode == USAGE, done


def test_groups_that_are_none_make_no_device_and_open_none(holdfast, tmp_path):
    device = VisitedDevice(holdfast, tmp_path)
    bad = (("",), ("g" * 33,), ("north", "north"), tuple("abcdefghi"))
    for groups in bad:
        words = [word for name in groups for word in ("--group", name)]
        assert device.command_line.run("device", "init", *device.device_arguments, *words).returncode == USAGE, groups
    device.prepare()
    file = device.device_folder / "device.json"
    description = json.loads(file.read_text())
    assert description["groups"] == list(GROUPS)
    for groups in (*map(list, bad), "north", {"north": 1}, [1], [None]):
        file.write_text(json.dumps({**description, "groups": groups}))
        assert device.owner("show").returncode == MALFORMED, groups
    file.write_text(json.dumps({**description, "groups": list("abcdefgh")}))
    assert device.owner("show").returncode == 0, "eight groups"
