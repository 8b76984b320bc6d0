"""The operators' console of `holdfast-service`: sessions, forms and pages by HTTP, and in a browser as people use it."""

import contextlib
import itertools
import json
import os
import pathlib
import re
import subprocess
import time
import urllib.parse

import browser
import pytest
from console_pages import ATTRIBUTES, COOKIE, ELEMENTS, ROOT, Page, Visitor
from holdfast_peer.command_line import CommandLine
from test_service import Instance, Service

SCOPES = "read,approve,revoke,admin"
POLICY = {
    "Content-Security-Policy": "default-src 'none'; style-src 'self'; img-src 'self'; form-action 'self'; "
    "frame-ancestors 'none'; base-uri 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",
    "Cache-Control": "no-store",
    "Content-Type": "text/html; charset=utf-8",
}
# Texts that would become markup: the second one has a combining mark behind each character that has to be escaped.
HOSTILE = "</td><img src=x onerror=alert(1)>\"'{{7}}"
COMBINED = '"\u0301 autofocus onfocus\u0301=alert(1) <\u0301b>'


@pytest.fixture(scope="module")
def service(request, tmp_path_factory):
    program = request.config.getoption("holdfast").resolve().parent / "holdfast-service"
    assert program.exists(), "make service builds it"
    folder = tmp_path_factory.mktemp("console")
    service = Service(program, CommandLine(request.config.getoption("holdfast").resolve(), folder), folder)
    service.admin = service.operator("anna", SCOPES)
    return service


@pytest.fixture(scope="module")
def instance(service):
    instance = Instance(service, public_url="https://locks.example")
    yield instance
    assert instance.stop() == 0, "exit status"


@pytest.fixture(scope="module")
def visitor(service, instance):
    return Visitor(instance, service.admin)


def cut(text, byte_count):
    """The beginning of a text that fits a record."""
    return text.encode()[:byte_count].decode(errors="ignore")


def wait_for_decision(service, instance, name, **more):
    """Makes a request that waits, and returns its id and the evidence."""
    evidence, _ = service.evidence(name)
    status, _, answer = service.ask_for_token(instance, service.attest(instance, evidence), **more)
    assert status == 202, answer
    return answer["request"], evidence


@pytest.fixture(scope="module")
def fleet(service, instance, visitor):
    """Records of every kind, with hostile texts wherever a person or a prover chooses a text."""
    device = service.descriptor["device_id"]
    ask = lambda path, body: instance.ask("POST", f"/v1/admin/{path}", body, token=service.admin)
    for text in (HOSTILE, COMBINED):
        waiting, _ = wait_for_decision(service, instance, f"w{len(text)}", user=cut(text, 28), commands=[cut(text, 30)])
        other, _ = wait_for_decision(service, instance, f"r{len(text)}")
        assert ask(f"requests/{other}/refuse", {"reason": text})[0] == 200
        assert ask(f"users/{urllib.parse.quote(cut(text, 31), safe='')}/revoke", {"reason": text})[0] == 200
        assert ask("operators", {"name": cut(text, 30), "scopes": ["read"]})[0] == 200
        invited = ask(
            "invitations", {"device": device, "valid_seconds": 3600, "user": cut(text, 29), "commands": [cut(text, 31)]}
        )
        assert invited[0] == 200
        assert ask(f"invitations/{invited[2]['id']}/revoke", {"reason": text})[0] == 200
        key = hex(len(text))[2:].rjust(64, "0")
        image = {"digest": key, "subject": text, "version": [1, 2, 3], "root": "1" * 32}
        assert ask("images", image)[0] == 200
    evidence, _ = service.evidence("issued")
    code = ask("invitations", {"device": device, "valid_seconds": 3600, "user": "issued"})[2]["code"]
    status, _, answer = service.ask_for_token(instance, service.attest(instance, evidence), invitation=code)
    assert status == 201, answer
    (token,) = service.json("list", "tokens", "--user", "issued")["items"]
    for reason in ("AAAAA-AAAAA-AAAAA-AAAAA", code):
        fresh, _ = service.evidence(f"refused-{reason[:5]}")
        assert service.ask_for_token(instance, service.attest(instance, fresh), invitation=reason)[0] == 403
    key = instance.ask("GET", "/.well-known/jwks.json")[2]["keys"][0]
    (service.folder / "issuer.jwk").write_text(json.dumps({name: key[name] for name in ("kty", "crv", "x", "y")}))
    owner = service.folder / "device"
    service.command_line.succeed("device", "trust", "--dir", owner, service.folder / "issuer.jwk")
    log = service.folder / "log.audit"
    service.command_line.succeed("device", "audit", "--dir", owner, "--to", log)
    service.verb("audit", "receive", log)
    (service.folder / "hostile.json").write_text(json.dumps({**service.descriptor, "device_id": "5" * 32}))
    service.verb("device", "add", service.folder / "hostile.json", "--label", HOSTILE)
    return {"waiting": waiting, "token": token["id"], "device": device}


# Sessions


def test_a_token_opens_a_session_whose_cookie_only_this_host_and_no_script_reads(service, instance):
    visitor = Visitor(instance)
    for path in (ROOT, f"{ROOT}/tokens", f"{ROOT}/nothing"):
        status, headers, _ = visitor.ask("GET", path)
        assert (status, headers["Location"]) == (303, f"{ROOT}/sign-in"), path
    for token in ("", "x", service.admin[:-1], service.admin[:-1] + "g"):
        status, headers, text = visitor.post(f"{ROOT}/sign-in", {"token": token})
        assert status == 401 and "Set-Cookie" not in headers and "This token does not count" in text, status
        assert len(token) < 9 or token not in text
    status, headers, _ = visitor.post(f"{ROOT}/sign-in", {"token": service.admin})
    assert status == 303
    name, *attributes = headers["Set-Cookie"].split("; ")
    assert re.fullmatch(f"{COOKIE}=[0-9a-f]{{64}}", name)
    assert set(attributes) == {"Path=/", "Secure", "HttpOnly", "SameSite=Strict", "Max-Age=28800"}
    assert service.admin not in instance.log.read_text()
    assert name.split("=")[1] not in (service.folder / "service" / "service.sqlite").read_bytes().decode("latin-1")


def test_a_session_counts_at_every_instance_until_it_is_ended_or_its_operator_removed(service, instance):
    token = service.operator("carl", "read")
    other = Instance(service)
    try:
        here = Visitor(instance, token)
        there = Visitor(other)
        there.cookie = here.cookie
        assert "carl" in there.get(ROOT).text
        status, headers, _ = here.post(f"{ROOT}/sign-out", {"form_token": here.get(ROOT).form_token})
        assert status == 303 and "Max-Age=0" in headers["Set-Cookie"]
        assert [one.ask("GET", ROOT)[0] for one in (here, there)] == [303, 303]
        again = Visitor(instance, token)
        there.cookie = again.cookie
        assert there.ask("GET", ROOT)[0] == 200
        service.verb("operator", "remove", "carl")
        assert [one.ask("GET", ROOT)[0] for one in (again, there)] == [303, 303]
        assert again.post(f"{ROOT}/sign-in", {"token": token})[0] == 401
        for bad in ("", "0" * 64, again.cookie[:-1], again.cookie.upper(), "\x7f" * 64, "é" * 64):
            there.cookie = bad.encode().decode("latin-1")
            assert there.ask("GET", ROOT)[0] in (303, 400), bad
    finally:
        assert other.stop() == 0, "exit status"


def test_a_session_expires(service):
    short = Instance(service, session_seconds=1)
    try:
        visitor = Visitor(short, service.admin)
        deadline = time.monotonic() + 30
        while visitor.ask("GET", ROOT)[0] != 303:
            assert time.monotonic() < deadline, "the session does not end"
            time.sleep(0.05)
    finally:
        assert short.stop() == 0, "exit status"


def test_a_browser_that_does_not_keep_the_cookie_is_told_why(instance):
    visitor = Visitor(instance)
    status, headers, _ = visitor.ask("GET", f"{ROOT}?signed-in=1")
    assert status == 303
    assert "did not keep the session" in visitor.get(headers["Location"]).text


def test_failed_attempts_to_sign_in_are_limited_and_others_are_not(service):
    limited = Instance(service)
    try:
        for _ in range(15):
            Visitor(limited, service.admin)
        visitor = Visitor(limited)
        begun, count = time.monotonic(), 0
        # On a busy machine, one more may be allowed again before the right token is tried.
        for _ in range(5):
            while (answer := visitor.post(f"{ROOT}/sign-in", {"token": "x"}))[0] == 401:
                count += 1
                assert count <= 10 + (time.monotonic() - begun) * 10 / 60, "more than ten a minute"
            status, headers, text = answer
            assert count >= 10 and status == 429 and int(headers["Retry-After"]) > 0 and "<h1>" in text
            right = visitor.post(f"{ROOT}/sign-in", {"token": service.admin})[0]
            if right == 429:
                break
        assert right == 429
    finally:
        assert limited.stop() == 0, "exit status"


def test_a_service_without_the_console_has_no_pages(service):
    without = Instance(service, console=False)
    try:
        assert [Visitor(without).ask("GET", path)[0] for path in (ROOT, f"{ROOT}/sign-in")] == [404, 404]
    finally:
        assert without.stop() == 0, "exit status"


# Forms


def test_a_form_from_elsewhere_changes_nothing(service, instance, visitor, fleet):
    path = f"{ROOT}/devices/{fleet['device']}/block"
    stranger = Visitor(instance, service.operator("ole", SCOPES))
    good = {"form_token": visitor.get(path).form_token, "reason": "x"}
    foreign = {"form_token": stranger.get(path).form_token, "reason": "x"}
    for fields, headers in [
        ({"reason": "x"}, {}),
        ({"form_token": "", "reason": "x"}, {}),
        ({"form_token": good["form_token"][:-1], "reason": "x"}, {}),
        ({"form_token": [good["form_token"]] * 2, "reason": "x"}, {}),
        (foreign, {}),
        (good, {"Origin": "https://evil.example"}),
        (good, {"Origin": "null"}),
        (good, {"Origin": visitor.origin + "0"}),
        (good, {"Sec_Fetch_Site": "cross-site"}),
        (good, {"Sec_Fetch_Site": "same-site"}),
        (good, {"Sec_Fetch_Site": "none"}),
        (good, {"Origin": None, "Sec_Fetch_Site": None}),
        (good, {"Content_Type": "text/plain"}),
        (good, {"Content_Type": "multipart/form-data; boundary=x"}),
    ]:
        status, _, text = visitor.post(path, fields, **headers)
        assert status == 403 and "<h1>" in text, (fields, headers, status)
    assert Visitor(instance).post(path, good)[0] == 303, "without a session"
    assert Visitor(instance).post(f"{ROOT}/sign-in", {"token": service.admin}, Origin="https://evil.example")[0] == 403
    assert service.json("show", "devices", fleet["device"])["blocked"] is None


def test_an_operator_sees_and_does_only_what_its_scopes_permit(service, instance, fleet):
    reader = Visitor(instance, service.operator("rita", "read"))
    pages = reader.crawl()
    assert not any(path.startswith(f"{ROOT}/operators") for path in pages)
    assert not [path for path in pages if path.endswith(("/block", "/revoke", "/approve", "/new", "/edit"))]
    assert not [page for _, page in pages.values() if len(page.all("form", method="post")) != 1], "only sign-out"
    token = reader.get(ROOT).form_token
    for path in (f"devices/{fleet['device']}/block", "operators/new", "invitations/new", "policy/edit"):
        assert reader.ask("GET", f"{ROOT}/{path}")[0] == 403, path
        status, _, text = reader.post(f"{ROOT}/{path}", {"form_token": token, "reason": "x"})
        assert status == 403 and "does not permit this" in text, path
    decider = Visitor(instance, service.operator("dora", "approve"))
    assert "does not permit reading" in decider.get(ROOT).text
    assert decider.ask("GET", f"{ROOT}/requests")[0] == 403
    assert decider.get(f"{ROOT}/invitations/new").all("input", name="device")


def test_a_mistake_in_a_form_is_named_and_nothing_that_was_entered_is_lost(visitor, fleet):
    for fields, text in [
        ({"device": "nobody", "valid_seconds": "7d"}, "Device must be the id or the label of one device."),
        ({"device": "", "valid_seconds": "7d"}, "Device is missing."),
        ({"device": "lock-7", "valid_seconds": "soon"}, "Valid for must be a time of 60s to 366d"),
        ({"device": "lock-7", "valid_seconds": "1s"}, "Valid for must be a time of 60s to 366d"),
        ({"device": "lock-7", "valid_seconds": "7d", "user": "x" * 33}, "User must be a text of 1 to 32 characters"),
        ({"device": "lock-7", "valid_seconds": "7d", "user": "\x07"}, "User must be a text without control characters"),
        ({"device": "lock-7", "valid_seconds": "7d", "maximum_uses": "-1"}, "Maximum uses must be an integer"),
    ]:
        status, _, page = visitor.send(f"{ROOT}/invitations/new", **fields)
        assert status == 400 and any(text in alert for alert in page.texts("p", role="alert")), (fields, page.text)
        for name, value in fields.items():
            assert page.all("input", name=name)[0]["attributes"]["value"] == value, name
    status, _, page = visitor.send(f"{ROOT}/devices/{fleet['device']}/block", reason=" ")
    assert status == 400 and "Reason is missing." in page.text
    status, _, text = visitor.post(f"{ROOT}/invitations/new", {"form_token": "%"})
    assert status == 403
    for body, status in [(b"a=%zz", 400), (b"a=%ff", 400), (b"\xff", 400), (b"&".join([b"a=1"] * 300), 400)]:
        sent = {"Content-Type": "application/x-www-form-urlencoded", "Sec-Fetch-Site": "same-origin"}
        assert visitor.ask("POST", f"{ROOT}/invitations/new", body, sent)[0] == status, body
    sent["Content-Length"] = "300000"
    assert visitor.ask("POST", f"{ROOT}/invitations/new", b"a" * 300_000, sent)[0] == 413


def test_an_error_is_a_page_that_names_the_request_in_the_log(instance, visitor):
    for path, status in [
        (f"{ROOT}/nothing", 404),
        (f"{ROOT}/devices/{'0' * 32}", 404),
        (f"{ROOT}/devices/%zz", 404),
        (f"{ROOT}/tokens?device=nobody", 400),
        (f"{ROOT}/tokens?device=lock-7&user=x", 400),
        (f"{ROOT}/changes?after=x", 400),
        (f"{ROOT}/statistics?days=0", 400),
    ]:
        found, headers, text = visitor.ask("GET", path)
        assert found == status and headers["Content-Type"] == POLICY["Content-Type"], (path, found)
        page = Page(path, text)
        assert page.texts("h1") and "anna" in page.text, path
    assert re.search(f"this request is {headers['X-Request-ID']}", page.text)
    assert headers["X-Request-ID"] in instance.log.read_text()
    status, headers, _ = visitor.ask("GET", f"{ROOT}/sign-out")
    assert (status, headers["Location"]) == (303, ROOT)


# Pages


def test_every_page_is_restrictive_well_formed_labelled_and_contains_no_text_as_markup(visitor, fleet):
    pages = visitor.crawl()
    operations = {re.sub(r"/[^/]{8,}", "/ID", path.split("?")[0]) for path in pages}
    assert len(operations) > 30, operations
    text = " ".join(page.text for _, page in pages.values())
    for part in (HOSTILE, COMBINED, cut(HOSTILE, 28), cut(COMBINED, 30)):
        assert " ".join(part.split()) in text, part
    for path, (headers, page) in pages.items():
        for name, value in POLICY.items():
            assert headers[name] == value, (path, name)
        for element in page.elements:
            assert element["tag"] in ELEMENTS, (path, element["tag"])
            strange = set(element["attributes"]) - ATTRIBUTES
            assert not strange, (path, element["tag"], strange)
        identifiers = [element["attributes"]["id"] for element in page.elements if "id" in element["attributes"]]
        assert len(identifiers) == len(set(identifiers)), (path, identifiers)
        references = [
            name
            for element in page.elements
            for attribute in ("for", "aria-labelledby", "aria-describedby")
            for name in element["attributes"].get(attribute, "").split()
        ]
        assert set(references) <= set(identifiers), (path, references)
        for element in page.elements:
            if element["tag"] in ("input", "select", "textarea") and element["attributes"].get("type") != "hidden":
                labels = page.texts("label", for_=element["attributes"].get("id"))
                labels = labels or [" ".join(one["text"].split()) for one in element["inside"] if one["tag"] == "label"]
                assert labels and labels[0], (path, element)
            if element["tag"] in ("a", "button", "summary"):
                assert element["text"].strip(), (path, element)
            if element["tag"] == "svg":
                assert "aria-hidden" in element["attributes"] or element["attributes"]["role"] == "img", path
        levels = [int(element["tag"][1]) for element in page.elements if element["tag"] in ("h1", "h2", "h3")]
        assert levels[0] == 1 and levels.count(1) == 1, (path, levels)
        assert all(after <= before + 1 for before, after in itertools.pairwise(levels)), (path, levels)
        assert page.texts("title")[0].startswith(page.texts("h1")[0]), path
        for tag in ("main", "header", "nav"):
            assert len(page.all(tag)) == 1, (path, tag)
        assert not page.all("table") or all(page.all("th", scope="col") for _ in page.all("table")), path


def test_the_style_sheet_is_a_file_that_browsers_keep(visitor):
    address = visitor.get(ROOT).all("link", rel="stylesheet")[0]["attributes"]["href"]
    status, headers, text = visitor.ask("GET", address)
    assert status == 200 and headers["Content-Type"].startswith("text/css") and ":root" in text
    assert "max-age" in headers["Cache-Control"]
    status, _, text = visitor.ask("GET", address, headers={"If-None-Match": headers["ETag"]})
    assert status == 304 and not text


def test_lists_have_pages(service, instance, visitor):
    ask = lambda: instance.ask(
        "POST", "/v1/admin/invitations", {"device": service.descriptor["device_id"], "valid_seconds": 60},
        token=service.admin,
    )  # fmt: skip
    for _ in range(55):
        assert ask()[0] == 200
    everything = {item["id"] for item in service.json("list", "invitations", "--limit", "1000")["items"]}
    found, path = set(), f"{ROOT}/invitations"
    while path:
        page = visitor.get(path)
        rows = {
            link.rsplit("/", 1)[1] for link in page.links if re.fullmatch(rf"{ROOT}/invitations/[0-9a-f]{{32}}", link)
        }
        assert rows and len(rows) <= 50 and not rows & found
        found |= rows
        following = page.all("a", rel="next")
        path = following[0]["attributes"]["href"] if following else None
    assert found == everything
    assert page.links.count(f"{ROOT}/invitations") == 2, "the menu, and the first page"


def test_plots_show_the_numbers_of_the_statistics(service, instance, visitor, fleet):
    page = visitor.get(f"{ROOT}/statistics?days=7")
    days = instance.ask("GET", "/v1/admin/statistics?days=7", token=service.admin)[2]["days"]
    date = lambda day: time.strftime("%Y-%m-%d", time.gmtime(day["day"]))
    issued = [[date(day), "issued", str(day["issued"])] for day in reversed(days) if day["issued"]]
    refused = {(date(day), reason, str(count)) for day in days for reason, count in day["refused"].items() if count}
    assert issued and len(refused) >= 2
    assert page.rows("issued-numbers") == issued
    assert {tuple(row) for row in page.rows("refused-numbers")} == refused
    titles = page.texts("title")
    for day, name, count in issued:
        assert f"{day}: {count} {name}" in titles
    for day, name, count in refused:
        assert f"{day}: {count} {name}" in titles
    total = sum(int(count) for _, _, count in refused)
    assert f"{total} refusals from {date(days[0])} to {date(days[-1])}" in page.text
    bars = [bar for bar in page.all("rect") if bar["attributes"].get("y")]
    heights = {bar["text"].strip(): float(bar["attributes"]["height"]) for bar in bars}
    most = max(sum(day["refused"].values()) for day in days)
    for day, name, count in refused:
        assert abs(heights[f"{day}: {count} {name}"] - 100 * int(count) / most) < 0.01


def test_the_audit_timeline_is_filtered(service, visitor, fleet):
    entries = service.json("list", "audits", "--limit", "1000")["items"]
    kinds = {entry["event"] for entry in entries}
    assert len(kinds) > 1, kinds
    events = lambda query="": visitor.get(f"{ROOT}/audits{query}").texts("strong")
    assert sorted(events()) == sorted(entry["event"] for entry in entries)
    for kind in kinds:
        assert events(f"?device=lock-7&event={kind}&user=") == [one["event"] for one in entries if one["event"] == kind]
    assert events("?event=nothing") == [] and "Nothing here." in visitor.get(f"{ROOT}/audits?user=nobody").text
    assert events("?until=2020-01-01T00:00:00Z") == [] and events("?since=2020-01-01T00:00:00Z") == events()
    page = visitor.get(f"{ROOT}/audits?device={fleet['device']}")
    times = [element["attributes"]["datetime"] for element in page.all("time")]
    stamp = lambda entry: time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(entry["time"]))
    assert times == [stamp(entry) for entry in entries]


def test_a_devices_timeline_and_the_devices_that_were_not_heard_from_are_shown(service, visitor, fleet):
    address = f"{ROOT}/timeline?device={fleet['device']}"
    assert address in visitor.get(f"{ROOT}/devices/{fleet['device']}").links
    listed = service.json("list", "timeline", "--device", fleet["device"])["items"]
    events = visitor.get(f"{ROOT}/timeline?device=lock-7").texts("strong")
    assert events == [event["event"] for event in listed] and {"device.add", "audit.receive"} <= set(events)
    # The menu has no list without its device.
    assert f"{ROOT}/timeline" not in visitor.get(ROOT).links and f"{ROOT}/reach" in visitor.get(ROOT).links
    silent = visitor.get(f"{ROOT}/devices?silent_days=1").links
    assert f"{ROOT}/devices/{'5' * 32}" in silent and f"{ROOT}/devices/{fleet['device']}" not in silent
    status, _, text = visitor.ask("GET", f"{ROOT}/devices?silent_days=0")
    assert status == 400 and "<form" in text


def test_a_token_that_was_revoked_with_a_reason_is_not_given_out_again(service, instance, visitor):
    evidence, _ = service.evidence("revoked-later")
    code = service.json("invite", "--device", "lock-7", "--user", "later")["code"]
    status, _, answer = service.ask_for_token(instance, service.attest(instance, evidence), invitation=code)
    assert status == 201 and "token_id" not in answer["claims"]
    (token,) = service.json("list", "tokens", "--user", "later")["items"]
    identifier = token["id"]
    path = f"{ROOT}/tokens/{identifier}"
    assert f"{path}/revoke" in visitor.get(path).links
    status, headers, _ = visitor.send(f"{path}/revoke", reason="the phone was lost")
    assert (status, headers["Location"]) == (303, f"{path}?done=revokeToken")
    page = visitor.get(headers["Location"])
    assert f"{ROOT}/reach?token={identifier}" in page.links
    assert path in visitor.get(f"{ROOT}/reach?token={identifier}").links
    assert "Done: revoke token." in page.text and "the phone was lost" in page.text
    assert f"{path}/revoke" not in page.links
    status, _, problem = service.ask_for_token(instance, service.attest(instance, evidence), invitation=code)
    assert (status, problem["reasons"]) == (403, ["revokedToken"])
    changes = service.json("list", "changes", "--limit", "5")["items"]
    assert [("anna", "token.revoke", "the phone was lost")] == [
        (one["actor"], one["action"], one["detail"]) for one in changes if one["object"] == identifier
    ]


def test_each_change_that_an_operator_makes_keeps_its_reason(service, visitor, fleet):
    device = fleet["device"]
    for change, state in [("block", "blocked"), ("unblock", "active"), ("raise-generation", "active")]:
        status, headers, _ = visitor.send(f"{ROOT}/devices/{device}/{change}", reason=f"to {change}")
        assert status == 303 and state in visitor.get(headers["Location"]).text
    details = [one["detail"] for one in service.json("list", "changes", "--limit", "3")["items"]]
    assert details == ["to raise-generation", "to unblock", "to block"]
    user = {"user": "alice", "reason": "to lock"}
    status, headers, _ = visitor.send(f"{ROOT}/devices/{device}/lock-user", until="2090-01-02T03:04", **user)
    assert status == 303 and f"{ROOT}/user-orders?device={device}" in visitor.get(headers["Location"]).links
    assert "2090-01-02 03:04 UTC" in visitor.get(f"{ROOT}/user-orders?device={device}").text
    least = {"device": device, "app": "holdfast", "version": "0.0.0", "reason": "to raise"}
    status, headers, _ = visitor.send(f"{ROOT}/minimum-versions/new", **least)
    assert status == 303 and "0.0.0" in visitor.get(headers["Location"]).text
    status, _, page = visitor.send(f"{ROOT}/minimum-versions/new", **{**least, "version": "9.0.0"})
    assert status == 409 and "No approved executable" in page.text
    status, headers, _ = visitor.send(f"{ROOT}/keys/new", active="2030-01-02T03:04", reason="x")
    assert status == 303 and "2030-01-02 03:04 UTC" in visitor.get(headers["Location"]).text
    key = max(service.json("list", "keys")["items"], key=lambda each: each["active"])["id"]
    order = {"device": device, "reason": "to introduce"}
    status, headers, _ = visitor.send(f"{ROOT}/keys/{key}/introduce", until="2031-02-03T04:05", **order)
    assert status == 303 and key in headers["Location"]
    page = visitor.get(f"{ROOT}/key-orders?device={device}")
    assert "2031-02-03 04:05 UTC" in page.text and f"{ROOT}/keys/{key}" in page.links
    status, _, page = visitor.send(f"{ROOT}/keys/{key}/introduce", until="2029-02-03T04:05", **order)
    assert status == 409 and "would not sign before it" in page.text
    status, _, _ = visitor.send(f"{ROOT}/keys/{key}/end", device=device, reason="to end")
    assert status == 303 and service.json("list", "key-orders")["items"][0]["ended"]
    text = visitor.get(f"{ROOT}/policy/edit").all("textarea", name="policy")[0]["text"]
    policy = {**json.loads(text), "token_seconds": 86_401}
    status, headers, _ = visitor.send(f"{ROOT}/policy/edit", policy=json.dumps(policy).replace(",", ",\r\n"))
    assert status == 303 and service.json("policy", "show") == policy
    status, _, page = visitor.send(f"{ROOT}/policy/edit", policy="{")
    assert status == 400 and page.all("textarea")[0]["text"].strip() == "{"
    status, _, page = visitor.send(f"{ROOT}/operators/new", name="nora", scopes=["read", "revoke"], valid_seconds="1d")
    token = page.texts("output")[0]
    assert status == 200 and token not in visitor.get(f"{ROOT}/operators/nora").text
    assert "read, revoke" in visitor.get(f"{ROOT}/operators/nora").text
    assert "nora" in Visitor(visitor.instance, token).get(ROOT).text


# In a browser


@pytest.fixture(scope="module")
def chromium():
    with browser.chromium() as driver:
        yield driver


def sign_in(driver, instance, token):
    """Signs in with the keyboard."""
    driver.delete_all_cookies()
    driver.get(f"https://127.0.0.1:{instance.port}{ROOT}")
    driver.switch_to.active_element.send_keys(token + "\n")
    browser.wait_for_heading(driver, "Overview")


@pytest.fixture
def signed_in(chromium, service, instance, fleet):
    sign_in(chromium, instance, service.admin)
    browser.set_width(chromium, 1280)
    return chromium


@pytest.fixture(scope="module")
def kinds_of_pages(fleet):
    """A page of each kind."""
    return {
        "overview": ROOT,
        "requests": f"{ROOT}/requests",
        "request": f"{ROOT}/requests/{fleet['waiting']}",
        "approve": f"{ROOT}/requests/{fleet['waiting']}/approve",
        "device": f"{ROOT}/devices/{fleet['device']}",
        "revoke": f"{ROOT}/devices/{fleet['device']}/revoke",
        "tokens": f"{ROOT}/tokens",
        "users": f"{ROOT}/users",
        "invite": f"{ROOT}/invitations/new",
        "operator": f"{ROOT}/operators/new",
        "audits": f"{ROOT}/audits",
        "timeline": f"{ROOT}/timeline?device={fleet['device']}",
        "reach": f"{ROOT}/reach",
        "refusals": f"{ROOT}/refusals",
        "statistics": f"{ROOT}/statistics",
        "policy": f"{ROOT}/policy",
        "images": f"{ROOT}/images/new",
        "error": f"{ROOT}/nothing",
        "sign-in": f"{ROOT}/sign-in",
    }


def open_page(driver, instance, path):
    driver.get(f"https://127.0.0.1:{instance.port}{path}")


def test_texts_have_enough_contrast_in_light_and_dark(signed_in, instance, kinds_of_pages):
    schemes = {}
    for scheme in ("light", "dark"):
        browser.set_scheme(signed_in, scheme)
        for name, path in kinds_of_pages.items():
            open_page(signed_in, instance, path)
            found = signed_in.execute_script(browser.CONTRAST)
            assert len(found) > 3, name
            low = [(text, round(ratio, 2)) for text, ratio, least in found if ratio < least]
            assert not low, (scheme, name, low)
        colour = "return getComputedStyle(document.body).backgroundColor"
        schemes[scheme] = signed_in.execute_script(colour)
    assert schemes["light"] != schemes["dark"]


def test_pages_fit_phones_and_wider_screens_without_scrolling_to_the_side(signed_in, instance, kinds_of_pages):
    for width in (320, 390):
        browser.set_width(signed_in, width)
        for name, path in kinds_of_pages.items():
            open_page(signed_in, instance, path)
            widths = "return [document.documentElement.scrollWidth, document.documentElement.clientWidth]"
            scrolled, client = signed_in.execute_script(widths)
            assert scrolled <= client == width, (name, width, scrolled, client)
            small = signed_in.execute_script(
                "return [...document.querySelectorAll('button, .button, input:not([type=hidden]):not([type=checkbox]),"
                " select, summary, .menu a')].filter(e => e.checkVisibility({contentVisibilityAuto: true}))"
                ".map(e => [e.textContent, e.getBoundingClientRect().height]).filter(([, h]) => h < 24)"
            )
            assert not small, (name, small)
    for width in (768, 1024, 1280):
        browser.set_width(signed_in, width)
        for name in ("overview", "tokens", "refusals", "users"):
            open_page(signed_in, instance, kinds_of_pages[name])
            wide = signed_in.execute_script(
                "const end = document.querySelector('main').getBoundingClientRect().right + 0.5;"
                "return [...document.querySelectorAll('main *')].filter(e => e.checkVisibility({contentVisibilityAuto: true})"
                " && e.getBoundingClientRect().right > end).map(e => e.outerHTML.slice(0, 200))"
            )
            assert not wide, (name, width, wide)


def test_everything_is_reached_by_the_keyboard_in_the_order_of_the_page(signed_in, instance, kinds_of_pages):
    from selenium.webdriver.common.keys import Keys

    for width, names in [(1280, ("approve", "device", "operator")), (390, ("overview",))]:
        browser.set_width(signed_in, width)
        for name in names:
            open_page(signed_in, instance, kinds_of_pages[name])
            signed_in.execute_script("document.activeElement.blur()")
            wanted = [element.id for element in signed_in.execute_script(browser.REACHABLE)]
            reached = []
            for _ in range(len(wanted)):
                signed_in.switch_to.active_element.send_keys(Keys.TAB)
                reached.append(signed_in.switch_to.active_element.id)
                assert signed_in.execute_script(browser.OUTLINE) == [True, True], (name, width, len(reached))
            assert reached == wanted, (name, width)


def test_the_menu_opens_on_a_phone_by_the_keyboard(signed_in, instance):
    browser.set_width(signed_in, 390)
    open_page(signed_in, instance, ROOT)
    link = signed_in.find_element("link text", "Tokens") if signed_in.find_elements("link text", "Tokens") else None
    assert link is None or not link.is_displayed()
    signed_in.find_element("css selector", "summary").send_keys("\n")
    signed_in.find_element("link text", "Tokens").send_keys("\n")
    browser.wait_for_heading(signed_in, "Tokens")


def test_no_text_of_a_record_becomes_a_part_of_a_page_in_the_browser(signed_in, instance, kinds_of_pages):
    others = [f"{ROOT}/{kind}" for kind in ("operators", "changes", "invitations", "devices", "images")]
    for path in [*kinds_of_pages.values(), *others]:
        open_page(signed_in, instance, path)
        strange = signed_in.execute_script(
            "return [...document.querySelectorAll('img, b, [onerror], [onfocus], [style], script')].map(e => e.outerHTML)"
        )
        assert not strange, (path, strange)


def test_the_session_survives_at_loopback_without_tls_and_no_script_sees_it(chromium, service):
    plain = Instance(service, certificate=None, key=None)
    try:
        chromium.get(f"http://127.0.0.1:{plain.port}/healthz")
        chromium.delete_all_cookies()
        chromium.get(f"http://127.0.0.1:{plain.port}{ROOT}")
        chromium.find_element("id", "token").send_keys(service.admin + "\n")
        browser.wait_for_heading(chromium, "Overview")
        assert chromium.execute_script("return document.cookie") == ""
    finally:
        chromium.get("about:blank")
        assert plain.stop() == 0, "exit status"


def test_the_picture_of_an_invitation_is_read_as_its_code_with_the_service(signed_in, service, instance, tmp_path):
    open_page(signed_in, instance, f"{ROOT}/devices/{service.descriptor['device_id']}")
    signed_in.find_element("link text", "Invite to this device").click()
    browser.wait_for_heading(signed_in, "Invite")
    assert signed_in.find_element("id", "device").get_attribute("value") == service.descriptor["device_id"]
    signed_in.find_element("id", "valid_seconds").send_keys("1d")
    signed_in.find_element("id", "user").send_keys("alice")
    signed_in.find_element("id", "commands").send_keys("unlock, lock")
    signed_in.find_element("css selector", "main form button").click()
    browser.wait_for_heading(signed_in, "Invitation made")
    code = signed_in.find_element("tag name", "output").text
    for scheme in ("light", "dark"):
        browser.set_scheme(signed_in, scheme)
        picture = tmp_path / f"{scheme}.png"
        picture.write_bytes(signed_in.find_element("class name", "picture").screenshot_as_png)
        done = subprocess.run(["zbarimg", "-q", "--raw", picture], capture_output=True, timeout=60, check=False)
        text = urllib.parse.unquote(done.stdout.decode().strip())
        assert text == f"holdfast-invitation:1?code={code}&service=https://locks.example"
    evidence, _ = service.evidence("invited")
    status, _, answer = service.ask_for_token(instance, service.attest(instance, evidence), invitation=code)
    assert status == 201 and answer["claims"]["user"] == "alice" and answer["claims"]["commands"] == ["unlock", "lock"]


def test_an_operator_decides_without_scripts(service, instance, fleet):
    request, evidence = wait_for_decision(service, instance, "decided", user="bob")
    with browser.chromium(scripts=False) as driver:
        driver.get("data:text/html,<title>off</title><script>document.title = 'on'</script>")
        assert driver.title == "off", "the preference has no effect"
        sign_in(driver, instance, service.admin)
        driver.find_element("css selector", f"a[href='{ROOT}/requests/{request}']").click()
        browser.wait_for_heading(driver, "Request")
        text = driver.find_element("class name", "members").text
        assert "lock-7" in text and "holdfast" in text and "0.0.0" in text and "bob" in text
        driver.find_element("link text", "Approve request").click()
        browser.wait_for_heading(driver, "Approve request")
        assert driver.find_element("id", "user").get_attribute("value") == "bob"
        driver.find_element("id", "reason").send_keys("bob asked for it")
        driver.find_element("css selector", "main form button").click()
        browser.wait_for_heading(driver, "Request")
        assert "Done: approve request." in driver.find_element("css selector", "[role=status]").text
        assert "approved" in driver.find_element("class name", "members").text
        assert not driver.find_elements("link text", "Approve request")
    status, _, issued = service.ask_for_token(instance, service.attest(instance, evidence))
    assert status == 201 and issued["claims"]["user"] == "bob", issued


def test_screenshots_are_taken_for_people_to_look_at(signed_in, instance, kinds_of_pages):
    """With HOLDFAST_SCREENSHOTS=FOLDER, a picture of each page, wide and narrow, light and dark."""
    folder = os.environ.get("HOLDFAST_SCREENSHOTS")
    if not folder:
        return
    pathlib.Path(folder).mkdir(parents=True, exist_ok=True)
    for scheme in ("light", "dark"):
        browser.set_scheme(signed_in, scheme)
        for width in (1280, 390):
            for name, path in kinds_of_pages.items():
                browser.set_width(signed_in, width)
                open_page(signed_in, instance, path)
                with contextlib.suppress(Exception):
                    height = signed_in.execute_script("return document.documentElement.scrollHeight")
                    browser.set_width(signed_in, width, max(800, height))
                (pathlib.Path(folder) / f"{name}-{width}-{scheme}.png").write_bytes(signed_in.get_screenshot_as_png())
