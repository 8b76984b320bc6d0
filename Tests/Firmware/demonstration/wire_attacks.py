"""Messages caught, moved and changed on their way: by the independent prover, with a genuine token at hand."""

import secrets
import time

from holdfast_peer import cbor
from holdfast_peer.prover import Attempt

from .verdicts import name, name_in

COMPATIBILITY = 12
FORGERIES, SLOWED_SECONDS = 6, 0.9


def attack(scene, story):
    grant = scene.grant()
    replay(scene, story, grant)
    move(scene, story, grant)
    change(scene, story, grant)
    forge(scene, story, grant)


def replay(scene, story, grant):
    with (prover := scene.connect()).connection:
        genuine = prover.ask(grant).m2
        story.expect("an answer is replayed", "deviceMismatch", name_in(prover.exchange(genuine)))
    with (prover := scene.connect()).connection:
        story.expect("… on another connection", "deviceMismatch", name_in(prover.exchange(genuine)))


def move(scene, story, grant):
    """A line has one prover at a time: an answer to a challenge can be kept for the next one's."""
    with (prover := scene.connect()).connection:
        kept = prover.attempt(grant).message()
    with (prover := scene.connect()).connection:
        story.expect("an answer to a challenge that has gone stale", "deviceMismatch", name_in(prover.exchange(kept)))


def change(scene, story, grant):
    with (prover := scene.connect()).connection:
        attempt = prover.attempt(grant)
        # The last byte of the command, before the tag.
        attempt.sealed = attempt.sealed[:-17] + bytes([attempt.sealed[-17] ^ 1]) + attempt.sealed[-16:]
        story.expect("the command is changed on its way", "malformed", name_in(prover.exchange(attempt.message())))
    with (prover := scene.connect()).connection:
        attempt = prover.attempt(grant)
        moved = cbor.encode([COMPATIBILITY, attempt.round.nonce, grant.encoding, grant.token, attempt.imp, attempt.dmp, "unlock"])
        story.expect("a session's proof moved into a compatibility round", "malformed", name_in(prover.exchange(moved)))
    with (prover := scene.connect()).connection:
        ending = prover.ask(grant, imp=secrets.token_bytes(32))
        story.expect("a genuine device proof, without that of integrity", "integrityMismatch", name(ending.status))


def forge(scene, story, grant):
    """By somebody who has heard the reference to a token, and knows nothing else."""
    with (prover := scene.connect()).connection:
        seen = set()
        for _ in range(FORGERIES):
            forged = Attempt(prover.next_m1(), grant, by_reference=True, imp=secrets.token_bytes(32), dmp=secrets.token_bytes(32))
            forged.sealed = secrets.token_bytes(64)
            begin = time.monotonic()
            seen.add(name_in(prover.exchange(forged.message())))
            seconds = time.monotonic() - begin
    story.expect("forged proofs under a sniffed reference to the token", "deviceMismatch", ", ".join(sorted(seen)))
    # The tenth failed proof in a minute was among them.
    story.expect("… and at last each takes a second", "slowed", "slowed" if seconds > SLOWED_SECONDS else "at once")
    story.expect("… and its owner comes after that", "accepted", scene.prove().status)
