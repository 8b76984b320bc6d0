"""Messages that are recorded, moved and changed on their way, by a peer that also has a genuine token."""

import secrets
import time

from holdfast_peer import cbor
from holdfast_peer.checks import expect_equal
from holdfast_peer.prover import Attempt

from .scene import NAMES, name_in
from .story import situation

COMPATIBILITY = 12
# The tenth failed proof on a connection is the first that is slowed down.
FORGERIES, SLOWED_SECONDS = 9, 0.9


@situation("an answer is replayed", "deviceMismatch")
def replay(scene):
    scene.kept.grant = scene.grant()
    with scene.connected() as prover:
        outcome = prover.ask(scene.kept.grant)
        expect_equal(NAMES[outcome.status], "accepted", "the answer, the first time")
        scene.kept.answer = outcome.m2
        return name_in(prover.exchange(scene.kept.answer))


@situation("… on another connection", "deviceMismatch")
def replay_elsewhere(scene):
    with scene.connected() as prover:
        return name_in(prover.exchange(scene.kept.answer))


@situation("an answer is moved to another session", "deviceMismatch")
def move(scene):
    with scene.connected() as here, scene.connected() as there:
        there.next_m1()
        return name_in(there.exchange(here.attempt(scene.kept.grant).message()))


@situation("an answer to a challenge that has gone stale", "deviceMismatch")
def delay(scene):
    """Tries the same where a line has one prover at a time: the answer is kept for the next challenge."""
    with scene.connected() as prover:
        kept = prover.attempt(scene.kept.grant).message()
    with scene.connected() as prover:
        return name_in(prover.exchange(kept))


@situation("the command is changed on its way", "malformed")
def change(scene):
    with scene.connected() as prover:
        attempt = prover.attempt(scene.kept.grant)
        # The last byte of the command, before the tag.
        attempt.sealed = attempt.sealed[:-17] + bytes([attempt.sealed[-17] ^ 1]) + attempt.sealed[-16:]
        return name_in(prover.exchange(attempt.message()))


@situation("a session's proof moved into a compatibility round", "malformed")
def make_compatible(scene):
    grant = scene.kept.grant
    with scene.connected() as prover:
        attempt = prover.attempt(grant)
        return name_in(
            prover.exchange(
                cbor.encode(
                    [
                        COMPATIBILITY,
                        attempt.round.nonce,
                        grant.encoding,
                        grant.token,
                        attempt.imp,
                        attempt.dmp,
                        "unlock",
                    ]
                )
            )
        )


@situation("a genuine device proof, without that of integrity", "integrityMismatch")
def prove_device_only(scene):
    return scene.status(scene.kept.grant, imp=secrets.token_bytes(32))


@situation("forged proofs under a sniffed reference to the token", "deviceMismatch")
def forge(scene):
    """A peer that has heard the reference to a token, and knows nothing else, makes proofs at random."""
    statuses = set()
    with scene.connected() as prover:
        for _ in range(FORGERIES):
            forged = Attempt(
                prover.next_m1(),
                scene.kept.grant,
                by_reference=True,
                imp=secrets.token_bytes(32),
                dmp=secrets.token_bytes(32),
            )
            forged.sealed = secrets.token_bytes(64)
            begin = time.monotonic()
            statuses.add(name_in(prover.exchange(forged.message())))
            scene.kept.forgery_seconds = time.monotonic() - begin
    return ", ".join(sorted(statuses))


@situation("… and at last each takes a second", "slowed")
def slow_down(scene):
    return "slowed" if scene.kept.forgery_seconds > SLOWED_SECONDS else "at once"
