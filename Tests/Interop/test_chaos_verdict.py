"""The judgement of `chaos_service` finds each kind of loss."""

import hashlib

import chaos_verdict
import pytest
from chaos_clients import Given, Journal, Refused, Revoked

TOKEN, IDENTIFIER, PROVER, DEVICE = b"token", "01", "02", "03"


class Server:
    """A server whose rules count nothing and whose lists are given."""

    def __init__(self):
        self.lists = {
            "FROM provers": [PROVER],
            "FROM users": [],
            "FROM devices": [],
            "FROM changes": [f"prover.revoke {PROVER}"],
        }

    def sql(self, query):
        return next((rows for words, rows in self.lists.items() if words in query and "count" not in query), ["0"])


class Stored(chaos_verdict.Stored):
    """A database with one token, whose prover is revoked."""

    def __init__(self):
        self.server = Server()
        digest = hashlib.sha256(TOKEN).hexdigest()
        self.tokens = {digest: (IDENTIFIER, PROVER, DEVICE, "alice", True)}
        self.bytes = {digest: 1}


class Lost(dict):
    def __missing__(self, _):
        return 0


def given(began, **changes):
    values = {"baseline": "b", "device": DEVICE, "code": "c", "user": "alice", "token": TOKEN}
    return Given(began=began, ended=began + 1, **(values | changes))


@pytest.fixture
def journal():
    """A token that was given twice, and whose prover was revoked after that."""
    journal = Journal()
    journal.given += [given(1), given(3)]
    journal.revoked.append(Revoked("prover", PROVER, 5, 6))
    journal.refused.append(Refused(7, 8, "b", ["revokedProver"]))
    return journal


@pytest.fixture
def stored():
    return Stored()


def test_what_is_right_is_found_right(journal, stored):
    assert chaos_verdict.judge(journal, stored) == []


def lose_token(_, stored):
    stored.bytes = Lost()


def store_twice(_, stored):
    stored.bytes = dict.fromkeys(stored.bytes, 2)


def give_after_revocation(journal, _):
    journal.given.append(given(9))


def give_another(journal, stored):
    journal.given.append(given(3.5, token=b"other"))
    stored.bytes[journal.given[-1].digest] = 1
    stored.tokens[journal.given[-1].digest] = ("04", PROVER, DEVICE, "", True)


def give_for_another_device(journal, _):
    journal.given.append(given(3.5, device="05"))


def use_invitation_twice(journal, stored):
    give_another(journal, stored)
    journal.given[-1].baseline = "another"


def forget_revocation(_, stored):
    stored.server.lists["FROM provers"] = []


def forget_log(_, stored):
    stored.server.lists["FROM changes"] = []


def refuse_without_reason(journal, _):
    journal.refused.append(Refused(4.5, 5, "b", ["unknownInvitation"]))


def refuse_as_revoked(journal, stored):
    journal.revoked.clear()


def fault(journal, _):
    journal.faults.append("500")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lose_token, "in the database 0 times"),
        (store_twice, "in the database 2 times"),
        (give_after_revocation, "after the revocation of its prover"),
        (give_another, "has two tokens"),
        (give_for_another_device, "has two devices"),
        (use_invitation_twice, "an invitation gave the tokens"),
        (forget_revocation, "was lost"),
        (forget_log, "not in the log of changes"),
        (refuse_without_reason, "was refused later"),
        (refuse_as_revoked, "nobody had revoked it"),
        (fault, "500"),
    ],
)
def test_a_loss_is_found(journal, stored, change, words):
    change(journal, stored)
    found = chaos_verdict.judge(journal, stored)
    assert any(words in sentence for sentence in found), found


@pytest.mark.parametrize("rule", chaos_verdict.RULES)
def test_a_rule_that_counts_something_is_a_loss(journal, stored, rule):
    sql, query = stored.server.sql, chaos_verdict.RULES[rule]
    stored.server.sql = lambda asked: ["3"] if asked == query else sql(asked)
    assert chaos_verdict.judge(journal, stored) == [f"{rule}: 3"]
