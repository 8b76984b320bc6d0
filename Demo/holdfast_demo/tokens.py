"""Tokens that were not issued for this device, or no longer count. Their holder has the right proofs for each."""

import secrets
import time

from holdfast_peer import claims, cose, session
from holdfast_peer.issuer import Grant, Issuer, encrypted, fresh_claims
from holdfast_peer.keys import PRIME, PrivateKey

from .story import preparation, situation

HOUR, DAY = 3600, 86_400


@situation("the token of another device", "tokenInvalid")
def of_another_device(scene):
    scene.kept.other_audience = secrets.token_bytes(16)
    return scene.status(scene.grant(audience=scene.kept.other_audience, point=PrivateKey().point))


@situation("… encrypted anew, to this one", "tokenInvalid")
def of_another_device_for_this_key(scene):
    return scene.status(scene.grant(audience=scene.kept.other_audience))


@situation("an unsigned token", "tokenInvalid")
def unsigned(scene):
    what = fresh_claims(scene.descriptor.device_id)
    return scene.status(encrypted(claims.to_cbor(what), scene.descriptor.point, what, session.COSE))


@situation("a token signed by a stranger", "tokenInvalid")
def of_a_stranger(scene):
    return scene.status(scene.grant(Issuer()))


@situation("… who writes the issuer's key id in it", "tokenInvalid")
def of_a_stranger_with_key_id(scene):
    what = fresh_claims(scene.descriptor.device_id)
    signed = cose.sign(claims.to_cbor(what), Issuer().key, protected=cose.sign_protected(scene.issuer.key.kid))
    return scene.status(encrypted(signed, scene.descriptor.point, what, session.COSE))


@situation("a token that has expired", "tokenExpired")
def expired(scene):
    now = int(time.time())
    return scene.status(scene.grant(issuedAt=now - 2 * HOUR, expires=now - HOUR))


@situation("a token from the future, to push the {device}'s clock", "tokenInvalid")
def from_the_future(scene):
    later = int(time.time()) + 500 * DAY
    return scene.status(scene.grant(issuedAt=later, expires=later + DAY))


@situation("… and one of today", "accepted")
def of_today(scene):
    return scene.status(scene.grant())


# Uses and generations


@situation("a token for one use", "accepted")
def once(scene):
    scene.kept.once = scene.grant(maximumUses=1)
    return scene.status(scene.kept.once)


@situation("a token for one use, which had it", "usesExhausted")
def once_again(scene):
    return scene.status(scene.kept.once)


@situation("… encoded anew, with the twin of its ephemeral key", "usesExhausted")
def twin(scene):
    """Replaces the y of the ephemeral key by p - y: the secret depends only on x. A token ends in y and an empty
    ciphertext."""
    grant = scene.kept.once
    y = int.from_bytes(grant.token[-33:-1], "big")
    return scene.status(
        Grant(grant.token[:-33] + (PRIME - y).to_bytes(32, "big") + grant.token[-1:], grant.encoding, grant.claims)
    )


@situation("a token of an issuer's first generation", "accepted")
def first_generation(scene):
    scene.kept.old = scene.grant(scene.newer_issuer, generation=1)
    return scene.status(scene.kept.old)


@situation("… one of the second, which revokes the first", "accepted")
def second_generation(scene):
    return scene.status(scene.grant(scene.newer_issuer, generation=2))


@situation("… the first one again", "tokenRevoked")
def first_generation_again(scene):
    return scene.status(scene.kept.old)


@situation("… and by its reference, which the board remembers", "tokenRevoked")
def first_generation_by_reference(scene):
    return scene.status(scene.kept.old, by_reference=True)


# One baseline for two devices


@situation("a baseline is approved for one device", "exit 0")
def attest(scene):
    scene.succeed("measure", "--state", scene.path("shared"), "--out", scene.path("evidence"))
    return _attest(scene, scene.path("device.json"))


@situation("… and for a second one", "exit 1")
def attest_again(scene):
    descriptor = scene.other_device()
    scene.register(descriptor)
    return _attest(scene, descriptor)


def _attest(scene, descriptor):
    return scene.run(
        "attest",
        "--service",
        scene.path("service"),
        "--device",
        descriptor,
        "--evidence",
        scene.path("evidence"),
        "--out",
        scene.path(f"attestation-{descriptor.stem}"),
    ).exit


# An issuer that the owner no longer trusts


@situation("a token that is remembered from here on", "accepted")
def remember(scene):
    scene.kept.known = scene.grant()
    return scene.status(scene.kept.known)


@preparation
def distrust(scene):
    scene.own("trust", "--remove", scene.path("issuer.jwk"))


@preparation
def trust_again(scene):
    scene.own("trust", scene.path("issuer.jwk"))


@situation("a remembered token whose issuer was removed", "tokenInvalid")
def by_reference_without_trust(scene):
    return scene.status(scene.kept.known, by_reference=True)


@situation("… and whole", "tokenInvalid")
def whole_without_trust(scene):
    return scene.status(scene.kept.known)
