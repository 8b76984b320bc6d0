"""Runs the command line under test, away from the user's files."""

import json
import os
import pathlib
import subprocess
import time

from . import base64strict
from .checks import Failed, expect
from .keys import jwk, key_id, point_of_jwk
from .prover import Descriptor


class CommandLine:
    """The program at `path`; its home and data folders are in `folder`."""

    def __init__(self, path, folder):
        self.path = str(pathlib.Path(path).resolve())
        self.folder = pathlib.Path(folder)
        self.environment = {
            k: v
            for k, v in os.environ.items()
            if not k.startswith(("XDG_", "HOLDFAST_")) and k not in ("LD_PRELOAD", "LD_AUDIT")
        }
        self.environment["NO_COLOR"] = "1"
        for name in ("HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME", "XDG_RUNTIME_DIR"):
            place = self.folder / name.lower()
            place.mkdir(mode=0o700, exist_ok=True)
            self.environment[name] = str(place)

    def run(self, *arguments, timeout=300):
        """The finished process, with `seconds` that it took."""
        started = time.monotonic()
        done = subprocess.run(
            [self.path, *map(str, arguments)],
            env=self.environment,
            cwd=self.folder,
            timeout=timeout,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
        )
        done.seconds = time.monotonic() - started
        return done

    def succeed(self, *arguments):
        """The standard output of a run that has to end with status 0."""
        done = self.run(*arguments)
        if done.returncode != 0:
            raise Failed(
                f"`{' '.join(map(str, arguments[:2]))}` ended with {done.returncode}: {done.stderr.decode()[-300:]}"
            )
        return done.stdout

    def read_json(self, *arguments):
        """The one JSON object that the run prints."""
        value = json.loads(self.succeed(*arguments, "--json"))
        expect(isinstance(value, dict), "standard output is not a JSON object")
        return value

    def start(self, *arguments, stderr=subprocess.DEVNULL):
        return subprocess.Popen(
            [self.path, *map(str, arguments)],
            env=self.environment,
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=stderr,
        )


def stop(process, timeout=20):
    """Ends a process that was started here, by SIGTERM; its exit status."""
    if process.poll() is None:
        process.terminate()
    try:
        return process.wait(timeout)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        return None


def read_descriptor(value):
    """A device descriptor; its key id has to be its key's."""
    point = point_of_jwk(value["public_key"])
    descriptor = Descriptor(bytes.fromhex(value["device_id"]), bytes.fromhex(value["kid"]), point)
    expect(len(descriptor.device_id) == 16, "device_id is not 16 bytes")
    expect(descriptor.kid == key_id(point), "kid is not the key's")
    expect(
        value["device_id"] == value["device_id"].lower() and value["kid"] == value["kid"].lower(), "upper-case digits"
    )
    return descriptor


def descriptor_json(key, device_id):
    return {"device_id": device_id.hex(), "kid": key.kid.hex(), "public_key": jwk(key.point)}


def spellings(data):
    """The ways in which `data` could stand in a file."""
    return {
        data,
        data.hex().encode(),
        data.hex().upper().encode(),
        base64strict.encode(data).rstrip("=").encode(),
        base64strict.url_encode(data).encode(),
    }
