"""Tokens that were not issued for this lock now, or count no more."""

import secrets
import time

from holdfast_peer import claims, cose, session
from holdfast_peer.issuer import Grant, Issuer, encrypted, fresh_claims
from holdfast_peer.keys import PRIME, PrivateKey

from .verdicts import name

HOUR, DAY = 3600, 86_400


def attack(scene, story):
    now = int(time.time())
    # Encrypted to this lock by somebody who knows its public key.
    of_stranger, other = fresh_claims(scene.descriptor.device_id), secrets.token_bytes(16)
    for text, grant, verdict in [
        ("the token of another device", scene.grant(audience=other, point=PrivateKey().point), "tokenInvalid"),
        ("… encrypted anew, to this one", scene.grant(audience=other), "tokenInvalid"),
        ("an unsigned token", encrypted(claims.to_cbor(of_stranger), scene.descriptor.point, of_stranger, session.COSE), "tokenInvalid"),
        ("a token signed by a stranger", scene.grant(Issuer()), "tokenInvalid"),
        ("… who writes the issuer's key id in it", misnamed(scene), "tokenInvalid"),
        ("a token that has expired", scene.grant(issuedAt=now - 2 * HOUR, expires=now - HOUR), "tokenExpired"),
        ("a token from the future, to push the board's clock", scene.grant(issuedAt=now + 500 * DAY, expires=now + 501 * DAY),
         "tokenInvalid"),
        ("… and one of today", scene.grant(), "accepted"),
    ]:
        story.expect(text, verdict, ask(scene, grant))
    use_up(scene, story)
    revoke(scene, story)


def ask(scene, grant, **changes):
    """The verdict on it, with right proofs."""
    with (prover := scene.connect()).connection:
        return name(prover.ask(grant, **changes).status)


def misnamed(scene):
    stranger, what = Issuer(), fresh_claims(scene.descriptor.device_id)
    signed = cose.sign(claims.to_cbor(what), stranger.key, protected=cose.sign_protected(scene.issuer.key.kid))
    return encrypted(signed, scene.descriptor.point, what, session.COSE)


def use_up(scene, story):
    once = scene.grant(maximumUses=1)
    story.expect("a token for one use", "accepted", ask(scene, once))
    story.expect("… encoded anew, with the twin of its ephemeral key", "usesExhausted", ask(scene, twin(once)))


def twin(grant):
    """With p - y for the y of its ephemeral key: only x goes into the secret. A token ends in y, and an empty ciphertext."""
    y = int.from_bytes(grant.token[-33:-1], "big")
    return Grant(grant.token[:-33] + (PRIME - y).to_bytes(32, "big") + grant.token[-1:], grant.encoding, grant.claims)


def revoke(scene, story):
    old, new = (scene.grant(scene.newer_issuer, generation=generation) for generation in (1, 2))
    story.expect("a token of an issuer's first generation", "accepted", ask(scene, old))
    story.expect("… one of the second, which revokes the first", "accepted", ask(scene, new))
    story.expect("… the first one again", "tokenRevoked", ask(scene, old))
    story.expect("… and by its reference, which the board remembers", "tokenRevoked", ask(scene, old, by_reference=True))


def remove_the_issuer(scene, story, grant):
    """`grant` was accepted before its issuer was removed."""
    with (prover := scene.connect()).connection:
        story.expect("a token whose issuer was removed, by reference", "tokenUnknown", name(prover.ask(grant, by_reference=True).status))
        story.expect("… and whole", "tokenInvalid", name(prover.ask(grant).status))
