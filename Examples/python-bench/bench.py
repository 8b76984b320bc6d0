"""A test bench: it enrols this program with a device, proves to it again and again, and measures.

usage: bench.py DEVICE-FOLDER STATE-FOLDER SERVICE-FOLDER [ROUNDS]

The device runs in a second process, over a transport of its own: a socket whose messages are the session's.
"""

import contextlib
import json
import os
import pathlib
import socket
import statistics
import subprocess
import sys
import tempfile
import time

import holdfast


def serve(session, connection):
    """The device's end of one connection, until the prover has gone."""
    confirms = False
    while True:
        if not confirms:
            connection.send(session.challenge())
        sent = time.monotonic()
        message = connection.recv(4097)
        if not message:
            return
        verdict = session.receive(message, int((time.monotonic() - sent) * 1000))
        time.sleep(verdict.delay_milliseconds / 1000)
        connection.send(verdict.message)
        confirms = verdict.awaits_confirmation
        if verdict.closes:
            return


def device(folder, path):
    """The second process: it serves one prover after the other, and ends with its standard input."""
    moved = []
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    listener.bind(path)
    listener.listen()
    with holdfast.Device(folder, lambda command: moved.append(command.name) or b"moved", ["unlock"]) as lock:
        print(json.dumps(lock.descriptor()), flush=True)
        for _ in range(int(sys.stdin.readline())):
            connection, _ = listener.accept()
            with connection, lock.session() as session, contextlib.suppress(BrokenPipeError, ConnectionResetError):
                serve(session, connection)
    print(len(moved))


def enroll(prover, descriptor, service):
    """Takes a baseline, and has the service's command line exchange the evidence for a token in the state folder."""
    with tempfile.TemporaryDirectory() as folder:
        paths = {name: pathlib.Path(folder, name) for name in ("evidence", "descriptor", "attestation")}
        paths["descriptor"].write_text(json.dumps(descriptor))
        paths["evidence"].write_bytes(prover.begin(bytes.fromhex(descriptor["device_id"]), replace=True))
        common = ["--service", service, "--device", paths["descriptor"]]
        attest = ["--delete-evidence", "--evidence", paths["evidence"], "--out", paths["attestation"]]
        issue = ["--attestation", paths["attestation"], "--state", sys.argv[2], "--replace"]
        for words in (["attest", *common, *attest], ["issue", *common, *issue]):
            subprocess.run(["holdfast", *words], check=True, stdout=subprocess.DEVNULL)


def main():
    rounds = int(sys.argv[4]) if len(sys.argv) > 4 else 20
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "socket")
        words = [sys.executable, __file__, "--device", sys.argv[1], path]
        other = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        descriptor = json.loads(other.stdout.readline())
        times, statuses = [], set()
        with holdfast.Prover(sys.argv[2]) as prover:
            enroll(prover, descriptor, sys.argv[3])
            other.stdin.write(f"{rounds}\n")
            other.stdin.flush()
            for _ in range(rounds):
                start = time.monotonic()
                statuses.add(prover.prove(f"unix:{path}", "unlock").text)
                times.append((time.monotonic() - start) * 1000)
        moved = int(other.communicate()[0])
    print(f"{rounds} proofs: {', '.join(statuses)}; {moved} commands; median {statistics.median(times):.1f} ms")
    return 0 if statuses == {"accepted"} and moved == rounds else 1


if __name__ == "__main__":
    if sys.argv[1:2] == ["--device"]:
        device(*sys.argv[2:])
    else:
        sys.exit(main())
