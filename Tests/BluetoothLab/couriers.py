"""Two hosts: of three phones one is stolen and revoked. The lock learns it from another one, and its log goes home the same way."""

import secrets

from holdfast_peer.checks import expect, expect_equal
from meeting import Meeting, agree, verdict_of

# LE comes last: where two hosts have an LE link alone, BR/EDR does not come up.
TRANSPORTS = ("l2cap", "rfcomm", "le")
# An emulated processor takes its time for what a courier does beside its command.
COURIER = ("--courier 20000", "--json")


def observe(lab):
    with lab.led_hosts("couriers") as hosts:
        meeting = Meeting(hosts)
        meeting.meet()
        for phone in ("visitor", "stolen"):
            meeting.do("prover", f"holdfast enroll --device lock.json --service service --state {phone}")
        name_home(meeting)
        meeting.serve()
        return (
            steal(meeting) | {transport: carry(meeting, transport) for transport in TRANSPORTS} | read_at_home(meeting)
        )


def name_home(meeting):
    """The lock's policy names the service as the home of its log."""
    service = meeting.do("prover", "holdfast service show --dir service --json").json
    home = f'"audit": {{"home": "{service["kid"]}"}}'
    meeting.do("verifier", f'sed -i \'s/"codes"/{home}, "codes"/\' lock/policy.json')


def revoke(meeting, token):
    """The service signs it, and one phone fetches it."""
    meeting.do("prover", f"holdfast service bulletin --dir service --device lock.json --revoke {token}")
    meeting.do("prover", "holdfast sync --state phone --service service")


def steal(meeting):
    """What the stolen phone can do before it is revoked, before the lock knows, and after."""
    seen = {"before": meeting.prove("l2cap", "unlock", state="stolen")}
    issued = meeting.do("prover", "holdfast service tokens --dir service --json").json
    revoke(meeting, issued["tokens"][-1]["id"])
    seen["unheard"] = meeting.prove("rfcomm", "unlock", state="stolen")
    seen["courier"] = meeting.prove("rfcomm", "lock", *COURIER)
    # As if the lock had never seen its token; with the bulletin that revokes it; and keeping all mail to itself.
    meeting.do("prover", "rm $(find stolen -name remembered)")
    seen["revoked, whole"] = meeting.prove("l2cap", "status", state="stolen")
    meeting.do("prover", "holdfast sync --state stolen --service service")
    seen["revoked, in sync"] = meeting.prove("l2cap", "status", *COURIER, state="stolen")
    seen["revoked, silent"] = meeting.prove("rfcomm", "unlock", "--courier off", state="stolen")
    seen["visitor"] = meeting.prove("l2cap", "unlock", *COURIER, state="visitor")
    return seen


def carry(meeting, transport):
    """The stolen phone again; a bulletin to the lock, a page of its log home, and the receipt of an earlier one back."""
    stolen = meeting.prove(transport, "status", state="stolen")
    revoke(meeting, secrets.token_hex(16))
    bulletin = meeting.prove(transport, "status", *COURIER)
    handed_in = meeting.run("prover", "holdfast sync --state phone --service service --json")
    receipt = meeting.prove(transport, "status", *COURIER)
    return stolen, bulletin, handed_in, receipt


def read_at_home(meeting):
    meeting.do("prover", "holdfast sync --state phone --service service")
    meeting.do("prover", "holdfast sync --state visitor --service service")
    log = meeting.run("prover", "holdfast service audit --dir service --device lock.json --json")
    return {"log": log, "lock": meeting.run("verifier", "holdfast device show --dir lock --all --json")}


def learns(seen):
    """two hosts: the lock accepts a stolen phone until another one has visited it, which brings the news"""
    agree(seen["before"], 0, "accepted")
    agree(seen["unheard"], 0, "accepted")
    agree(seen["courier"], 0, "accepted", "bulletin")
    expect_equal(seen["courier"][0].json["bulletins_delivered"], 1, "bulletins that the other phone delivered")


def refuses(seen):
    """two hosts: from then on the stolen phone is refused over each transport, by reference and whole, whatever it carries; others are not"""
    for transport in TRANSPORTS:
        agree(seen[transport][0], 1, "tokenRevoked")
    for name in ("whole", "in sync", "silent"):
        said, logged = seen[f"revoked, {name}"]
        expect_equal((said.status, verdict_of(logged[-1])), (1, "tokenRevoked"), said.text)
    expect_equal(seen["visitor"][0].status, 0, seen["visitor"][0].text)


def carries(seen):
    """two hosts: over each transport, a visit brings a bulletin to the lock and a page of its log home, and the next one the receipt"""
    for transport in TRANSPORTS:
        _, bulletin, handed_in, receipt = seen[transport]
        expect_equal(bulletin[0].json["bulletins_delivered"], 1, f"{transport}: bulletins delivered")
        expect(bulletin[0].json["audit_page_taken"], f"{transport}: {bulletin[0].text}")
        expect(handed_in.json["devices"][0]["pages_handed_in"] >= 1, f"{transport}: {handed_in.text}")
        expect_equal(receipt[0].status, 0, receipt[0].text)


def reads_at_home(seen):
    """two hosts: the service reads the lock's log without a gap, each round with its transport, and the lock knows that it does"""
    log = seen["log"].json
    expect_equal((seen["log"].status, log["missing"], log["forked"]), (0, None, False), "the log at home")
    rounds = [entry for entry in log["entries"] if entry["event"] == "round"]
    expect_equal({entry["transport"] for entry in rounds}, set(TRANSPORTS), "transports in the log at home")
    expect_equal([entry["sequence"] for entry in log["entries"]], list(range(1, log["count"] + 1)), "the entries")
    expect(seen["lock"].json["audit_acknowledged"] > 0, "entries that are acknowledged at the lock")


CHECKS = [learns, refuses, carries, reads_at_home]
