"""A bridge that lies: it is at both ends of what is said, and knows no key."""

import contextlib
import hashlib
import secrets
import threading
import time

from holdfast_peer import session, transport

from .scene import SECONDS


def attack(scene, story):
    before = fingerprint(scene.path("phone"))
    genuine = []
    ending = met(scene, lambda prover: genuine.append(relayed(scene, prover)))
    story.expect("a bridge that passes on what it hears", "accepted", ending.status)
    settled = fingerprint(scene.path("phone"))
    story.expect("… and says accepted by itself", "exit 3", met(scene, impostor(scene, unsealed("accepted"))).exit)
    story.expect("… and repeats the genuine acceptance", "exit 3", met(scene, impostor(scene, genuine[0])).exit)
    story.expect("… and says that the token has expired", "exit 3", met(scene, impostor(scene, unsealed("tokenExpired"))).exit)
    story.expect("what none of them changed is the prover's state", "the same",
                 "the same" if before == settled == fingerprint(scene.path("phone")) else "changed")


def unsealed(status):
    return session.message_3(session.STATUS[status], None)


def met(scene, behave):
    """How a prover ends whom `behave` answers."""
    listener = transport.Listener(str(scene.path("liar")), timeout=SECONDS)

    def answer():
        with contextlib.suppress(OSError, transport.Closed), listener.accept() as prover:
            behave(prover)

    liar = threading.Thread(target=answer, daemon=True)
    liar.start()
    try:
        return scene.prove(at=f"unix:{listener.path}")
    finally:
        liar.join(SECONDS)
        listener.close()


def relayed(scene, prover):
    """Passes one round on, and returns the verdict."""
    with (genuine := scene.connect()).connection as lock:
        prover.send(genuine.m1)
        lock.send(prover.receive())
        verdict = lock.receive()
        prover.send(verdict)
        return verdict


def impostor(scene, verdict):
    """Has the lock's name, and answers what it likes."""
    def behave(prover):
        prover.send(session.message_1(scene.descriptor.device_id, secrets.token_bytes(16), scene.descriptor.kid, session.DEVICE,
                                      int(time.time())))
        prover.receive()
        prover.send(verdict)
    return behave


def fingerprint(folder):
    # Each request takes a number, whatever becomes of it.
    files = (path for path in sorted(folder.rglob("*")) if path.is_file() and path.name != "request_number")
    return {path.relative_to(folder): (path.stat().st_mode, hashlib.sha256(path.read_bytes()).digest()) for path in files}
