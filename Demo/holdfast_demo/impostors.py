"""Peers that say that they are the device: they have its id and the id of its key, but not the key."""

import contextlib
import hashlib
import secrets
import threading
import time

from holdfast_peer import session, transport

from .scene import SECONDS
from .story import situation


@situation("a bridge that passes on what it hears", "accepted")
def relay(scene):
    """Also keeps the genuine acceptance for the impostors, and what the prover's state was before them."""
    scene.kept.states = [fingerprint(scene.path("prover"))]
    ending = meet(scene, lambda prover: setattr(scene.kept, "acceptance", _relay(scene, prover)))
    scene.kept.states.append(fingerprint(scene.path("prover")))
    return ending.status


@situation("an impostor device that says accepted", "exit 3")
def accept(scene):
    return meet(scene, impostor(scene, unsealed("accepted"))).exit


@situation("… and one that replays a genuine acceptance", "exit 3")
def accept_again(scene):
    return meet(scene, impostor(scene, scene.kept.acceptance)).exit


@situation("… and one that says the token has expired", "exit 3")
def refuse(scene):
    return meet(scene, impostor(scene, unsealed("tokenExpired"))).exit


@situation("what none of them changed is the prover's state", "the same")
def compare_state(scene):
    states = [*scene.kept.states, fingerprint(scene.path("prover"))]
    return "the same" if all(state == states[0] for state in states) else "changed"


def unsealed(status):
    """M3 with a status that the impostor cannot seal."""
    return session.message_3(session.STATUS[status], None)


def meet(scene, behave):
    """Connects `holdfast prove` to a peer that `behave` speaks for, and returns its end."""
    listener = transport.Listener(str(scene.path("impostor.sock")), timeout=SECONDS)

    def answer():
        with contextlib.suppress(OSError, transport.Closed), listener.accept() as prover:
            behave(prover)

    peer = threading.Thread(target=answer, daemon=True)
    peer.start()
    try:
        return scene.prove(at=f"unix:{listener.path}")
    finally:
        peer.join(SECONDS)
        listener.close()


def _relay(scene, prover):
    """Passes one round on, and returns the device's verdict."""
    with scene.connected() as genuine:
        prover.send(genuine.next_m1())
        verdict = genuine.exchange(prover.receive())
        prover.send(verdict)
        return verdict


def impostor(scene, verdict):
    """Makes a peer that answers every message with `verdict`."""

    def behave(prover):
        prover.send(
            session.message_1(
                scene.descriptor.device_id,
                secrets.token_bytes(16),
                scene.descriptor.kid,
                session.DEVICE,
                int(time.time()),
            )
        )
        prover.receive()
        prover.send(verdict)

    return behave


def fingerprint(folder):
    """Returns the names, modes and digests of a folder's files, without the number of the last request, which each takes."""
    files = (path for path in sorted(folder.rglob("*")) if path.is_file() and path.name != "request_number")
    return {
        path.relative_to(folder): (path.stat().st_mode, hashlib.sha256(path.read_bytes()).digest()) for path in files
    }
