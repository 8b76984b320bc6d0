"""Compares what the provers and operators of `chaos_service` were told with what the database has."""

import collections
import contextlib

from holdfast_peer.checks import Failed

REASONS_OF_A_REVOCATION = {"revokedToken", "revokedProver", "revokedUser", "blockedDevice", "revokedInvitation"}

# Each must count nothing. The database itself refuses two tokens for one baseline or with one id.
RULES = {
    "two tokens with the same bytes": "SELECT count(*) FROM (SELECT 1 FROM tokens GROUP BY bytes HAVING count(*) > 1) x",
    "two tokens for one baseline": "SELECT count(*) FROM (SELECT 1 FROM tokens GROUP BY baseline HAVING count(*) > 1) x",
    "an invitation whose token is not there, or for another baseline": """
        SELECT count(*) FROM invitations i LEFT JOIN tokens t ON t.id = i.token
        WHERE i.token IS NOT NULL AND (t.id IS NULL OR t.baseline <> i.baseline OR t.device <> i.device)""",
    "two invitations or requests with one token": """
        SELECT count(*) FROM (SELECT token FROM (SELECT token FROM invitations UNION ALL SELECT token FROM requests) y
        WHERE token IS NOT NULL GROUP BY token HAVING count(*) > 1) x""",
    "a token without invitation or request": """
        SELECT count(*) FROM tokens t WHERE NOT EXISTS (SELECT 1 FROM invitations i WHERE i.token = t.id)
        AND NOT EXISTS (SELECT 1 FROM requests r WHERE r.token = t.id)""",
    "a token of a revoked prover that counts": """
        SELECT count(*) FROM tokens t JOIN provers p ON p.id = t.prover WHERE p.revoked IS NOT NULL AND t.revoked IS NULL""",
    "a token of a revoked user that counts": """
        SELECT count(*) FROM tokens t JOIN users u ON u.name = t.username
        WHERE u.revoked IS NOT NULL AND t.revoked IS NULL""",
}


class Stored:
    """What the database has, read from a server."""

    def __init__(self, server):
        self.server = server
        # By digest, as provers know them: id, prover, device, user, whether it is revoked.
        self.tokens = {}
        self.bytes = collections.Counter()
        query = """SELECT encode(sha256(bytes), 'hex'), encode(id, 'hex'), encode(prover, 'hex'), encode(device, 'hex'),
            coalesce(username, ''), revoked IS NOT NULL FROM tokens"""
        for line in server.sql(query):
            digest, identifier, prover, device, user, revoked = line.split("|")
            self.tokens[digest] = (identifier, prover, device, user, revoked == "t")
            self.bytes[digest] += 1

    def keys(self, query):
        return set(self.server.sql(query))


def token_id(server, digest):
    """The id of a token, which no prover knows; None while the server does not answer."""
    query = f"SELECT encode(id, 'hex') FROM tokens WHERE sha256(bytes) = decode('{digest}', 'hex')"
    with contextlib.suppress(Failed):
        return next(iter(server.sql(query)), None)
    return None


def judge(journal, stored):
    """Returns a list of sentences: what should not have happened."""
    found = list(dict.fromkeys(journal.faults))
    found += _tokens_that_are_held(journal, stored)
    found += _given_after_revocation(journal, stored)
    found += _same_answer(journal, stored)
    found += _invitations(journal)
    found += _revocations(journal, stored)
    for rule, query in RULES.items():
        if (count := stored.server.sql(query)) != ["0"]:
            found.append(f"{rule}: {count[0]}")
    return found


def _tokens_that_are_held(journal, stored):
    """Every token that a prover holds is in the database, exactly once and for its device."""
    found = []
    for given in {each.token: each for each in journal.given}.values():
        if stored.bytes[given.digest] != 1:
            found.append(f"token {given.digest} is in the database {stored.bytes[given.digest]} times")
        elif stored.tokens[given.digest][2] != given.device:
            found.append(f"token {given.digest} is in the database for another device")
    return found


def _given_after_revocation(journal, stored):
    """No token was given in answer to a request that began after its revocation had been acknowledged."""
    found = []
    revocations = collections.defaultdict(list)
    for revoked in journal.revoked:
        if revoked.acknowledged is not None:
            revocations[revoked.kind, revoked.key].append(revoked)
    first = {}
    for given in journal.given:
        first[given.digest] = min(given.ended, first.get(given.digest, given.ended))
    for given in journal.given:
        identifier, prover, device, user, _ = stored.tokens.get(given.digest, ("",) * 5)
        keys = [("token", identifier), ("prover", prover), ("user", user), ("device", device)]
        for kind, key in keys:
            for revoked in revocations[kind, key]:
                is_past = revoked.acknowledged < given.began
                # A device that was unblocked may get tokens again, but not those that were revoked with it.
                is_lifted = revoked.lifted is not None and revoked.lifted < given.ended
                if is_past and (not is_lifted or first[given.digest] < revoked.began):
                    found.append(f"token {given.digest} was given after the revocation of its {kind}")
    return found


def _same_answer(journal, stored):
    """The same request got the same token each time, or a refusal because of a revocation that somebody had asked for."""
    found = []
    tokens, devices = {}, {}
    for given in sorted(journal.given, key=lambda each: each.ended):
        if tokens.setdefault(given.baseline, given.token) != given.token:
            found.append(f"the baseline of token {given.digest} has two tokens")
        if devices.setdefault(given.baseline, given.device) != given.device:
            found.append(f"the baseline of token {given.digest} has two devices")
    asked = {(revoked.kind, revoked.key) for revoked in journal.revoked}
    first = {}
    for given in journal.given:
        first.setdefault(given.baseline, given)
    for refused in journal.refused:
        given = first.get(refused.baseline)
        if given is None or given.ended > refused.began:
            continue
        if not REASONS_OF_A_REVOCATION & set(refused.reasons):
            # Refused for another device, or as one of two at once.
            if set(refused.reasons) <= {"repeated", "usedInvitation", "invitationForAnotherDevice"}:
                continue
            found.append(f"token {given.digest} was refused later: {refused.reasons}")
            continue
        identifier, prover, device, user, _ = stored.tokens.get(given.digest, ("",) * 5)
        if not asked & {("token", identifier), ("prover", prover), ("user", user), ("device", device)}:
            found.append(f"token {given.digest} was refused as revoked, and nobody had revoked it")
    return found


def _invitations(journal):
    """No invitation gave two tokens."""
    tokens = collections.defaultdict(set)
    for given in journal.given:
        if given.code:
            tokens[given.code].add(given.digest)
    return [f"an invitation gave the tokens {sorted(several)}" for several in tokens.values() if len(several) > 1]


def _revocations(journal, stored):
    """Every revocation that was acknowledged is in the database, and in the log of changes."""
    found = []
    revoked = {
        "token": {token[0] for token in stored.tokens.values() if token[4]},
        "prover": stored.keys("SELECT encode(id, 'hex') FROM provers WHERE revoked IS NOT NULL"),
        "user": stored.keys("SELECT name FROM users WHERE revoked IS NOT NULL"),
        "device": stored.keys("SELECT encode(id, 'hex') FROM devices WHERE blocked IS NOT NULL"),
    }
    changes = stored.keys("SELECT action || ' ' || object FROM changes WHERE action LIKE '%.revoke'")
    for each in journal.revoked:
        if each.acknowledged is None:
            continue
        if f"{each.kind}.revoke {each.key}" not in changes:
            found.append(f"the revocation of {each.kind} {each.key} is not in the log of changes")
        if each.lifted is None and each.key not in revoked[each.kind]:
            found.append(f"the revocation of {each.kind} {each.key} was lost")
    return found
