"""The posture of a host from outside: rules that never go back, and statements that another program checks."""

import base64
import hashlib
import hmac
import json
import os
import subprocess

import pytest
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric import ec, utils
from cryptography.hazmat.primitives.hashes import SHA256

OK, DENIED, MALFORMED, USAGE = 0, 1, 2, 64
NONCE = "000102030405060708090a0b0c0d0e0f"


@pytest.fixture
def run(holdfast, tmp_path):
    """Runs holdfast in a folder of its own, and returns its standard output."""
    environment = {**os.environ, "HOME": str(tmp_path), "XDG_DATA_HOME": str(tmp_path / "data")}

    def run(expected, *arguments, stdin=b""):
        done = subprocess.run(
            [str(holdfast), *map(str, arguments)],
            cwd=tmp_path,
            env=environment,
            input=stdin,
            capture_output=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == expected, done
        return done.stdout

    return run


def decoded(part):
    return base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))


def verified(text, jwk):
    """The claims of a compact JWS, after its signature was checked without any code of the project."""
    header, payload, signature = text.strip().split(".")
    point = ec.EllipticCurvePublicNumbers(
        int.from_bytes(decoded(jwk["x"])), int.from_bytes(decoded(jwk["y"])), ec.SECP256R1()
    ).public_key()
    raw = decoded(signature)
    der = utils.encode_dss_signature(int.from_bytes(raw[:32]), int.from_bytes(raw[32:]))
    point.verify(der, f"{header}.{payload}".encode(), ec.ECDSA(SHA256()))
    return json.loads(decoded(header)), json.loads(decoded(payload))


def test_a_statement_is_checked_by_another_program_and_names_the_release_that_vouches(run, tmp_path):
    jwk = json.loads(run(OK, "posture", "--key"))
    text = run(OK, "posture", "--sign", "--nonce", NONCE).decode()
    header, claims = verified(text, jwk)
    assert header["alg"] == "ES256" and header["typ"] == "holdfast-posture+jwt"
    assert decoded(claims["nonce"]).hex() == NONCE and claims["cnf"] == {"jwk": jwk}
    shown = json.loads(run(OK, "posture", "--json"))
    assert claims["findings"] == {finding["name"]: finding["state"] for finding in shown["findings"]}
    root = hashlib.sha256(b"holdfast development measurement proof key").digest()[:16]
    extracted = hmac.digest(bytes(32), root, "sha256")
    key = hmac.digest(extracted, b"holdfast/1 evidence key\x01", "sha256")
    point = b"\x04" + decoded(jwk["x"]) + decoded(jwk["y"])
    assert decoded(claims["mac"]) == hmac.digest(key, b"holdfast/1 posture\0" + point, "sha256")
    (tmp_path / "host.jwk").write_text(json.dumps(jwk))
    checked = json.loads(run(OK, "posture", "--check", "-", "--of", "host.jwk", "--nonce", NONCE, stdin=text.encode()))
    assert checked["findings"] == claims["findings"]
    other = NONCE[:-1] + "0"
    run(MALFORMED, "posture", "--check", "-", "--of", "host.jwk", "--nonce", other, stdin=text.encode())
    with pytest.raises(InvalidSignature):
        parts = text.split(".")
        parts[1] = parts[1][:-2] + ("AA" if parts[1][-2:] != "AA" else "BB")
        verified(".".join(parts), jwk)


def test_rules_refuse_until_newer_ones_allow_and_never_go_back(run, tmp_path):
    run(OK, "service", "init", "--dir", "service")
    (tmp_path / "service.json").write_bytes(run(OK, "service", "show", "--dir", "service", "--json"))
    run(OK, "device", "init", "--dir", "lock")
    (tmp_path / "lock.json").write_bytes(run(OK, "device", "show", "--dir", "lock", "--json"))
    run(OK, "service", "device", "add", "--dir", "service", "lock.json")

    def rules(number, default, unknown):
        text = json.dumps({"number": number, "default": default, "unknown": unknown, "rules": {}})
        signed = run(OK, "service", "posture-rules", "--dir", "service", "-", stdin=text.encode())
        assert (
            verified(signed.decode(), json.loads((tmp_path / "service.json").read_text())["issuer"])[1]["num"] == number
        )
        return signed

    strict, mild = rules(2, "refuse", "refuse"), rules(3, "ignore", "ignore")
    enroll = ["enroll", "--device", "lock.json", "--service", "service", "--state", "phone", "--json"]
    install = ["posture", "--state", "phone", "--rules", "-", "--json"]
    refused = json.loads(run(USAGE, *install, stdin=strict))
    assert (refused["code"], refused["number"]) == ("posture-rules-need-issuer", 406)
    verdict = json.loads(run(DENIED, *install, "--issuer", "service.json", stdin=strict))
    assert verdict["verdict"] == "refuse" and verdict["rules"]["number"] == 2
    refused = json.loads(run(DENIED, *enroll))
    assert (refused["code"], refused["exit"]) == ("posture-refused", DENIED)
    assert json.loads(run(OK, *install, stdin=mild))["verdict"] == "ignore"
    run(OK, *enroll)
    refused = json.loads(run(DENIED, *install, stdin=strict))
    assert refused["code"] == "posture-rules-not-newer"
    run(OK, *enroll, "--replace", "--posture-component", "--posture-properties")
    assert b"host.posture: unchanged" in run(OK, "explain", "--state", "phone")


def test_rules_that_would_wipe_are_announced(run, tmp_path):
    run(OK, "service", "init", "--dir", "service")
    (tmp_path / "service.json").write_bytes(run(OK, "service", "show", "--dir", "service", "--json"))
    found = [each for each in json.loads(run(OK, "posture", "--json"))["findings"] if each["state"] == "found"]
    if not found:
        pytest.skip("this host has no finding")
    for number, action, announced in ((1, "refuse", False), (2, "wipe", True)):
        text = json.dumps(
            {"number": number, "default": "ignore", "unknown": "ignore", "rules": {found[0]["name"]: action}}
        )
        signed = run(OK, "service", "posture-rules", "--dir", "service", "-", stdin=text.encode())
        shown = json.loads(
            run(DENIED, "posture", "--state", "p", "--rules", "-", "--issuer", "service.json", "--json", stdin=signed)
        )
        codes = [warning["code"] for warning in shown.get("warnings", [])]
        assert ("posture-wipes" in codes) == announced, shown


def test_the_table_of_codes_is_printed_for_people_and_programs(run):
    table = json.loads(run(OK, "help", "errors", "--json"))["errors"]
    text = run(OK, "help", "errors").decode()
    assert all(f"{row['number']:<5}{row['code']}" in text for row in table)
    missing = json.loads(run(MALFORMED, "status", "--state", "nowhere", "--json"))
    assert {"code": missing["code"], "number": missing["number"]}.items() <= next(
        row for row in table if row["number"] == missing["number"]
    ).items()
