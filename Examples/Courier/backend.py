#!/usr/bin/python3
"""The backend of the courier's API, as far as Holdfast is concerned.

check FILE AUDIENCE [DATA]     checks a token on standard input with the domain's key in FILE (holdfast-service domain secret)
issue URL DEVICE FILE OUT      has the service at URL issue the measurement token for the attestation token in FILE, with the
                               invitation on standard input, and writes it to OUT
"""

import base64
import hashlib
import hmac
import json
import pathlib
import sys
import time
import urllib.request


def decoded(part):
    return base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))


def claims(token, key, audience, data=None):
    """The claims of a token for this API; an error for any other token. Source: RFC 7515 §5.2, RFC 7519 §4.1."""
    header, payload, signature = token.split(".")
    # The algorithm is that of the configured key. The header only has to agree.
    if json.loads(decoded(header)) != {"alg": "HS256", "typ": "holdfast-app+jwt"}:
        raise ValueError("another kind of token")
    expected = hmac.digest(key, f"{header}.{payload}".encode(), "sha256")
    if not hmac.compare_digest(expected, decoded(signature)):
        raise ValueError("the signature is wrong")
    found = json.loads(decoded(payload))
    if found["aud"] != audience or found["exp"] <= time.time():
        raise ValueError("for another API, or expired")
    if data is not None and found.get("pay") != base64.b64encode(hashlib.sha256(data.encode()).digest()).decode():
        raise ValueError("bound to other data")
    return found


def issued(url, device, attestation, invitation):
    """The measurement token for an attestation token."""
    body = {"attestation": attestation, "device": json.loads(device), "invitation": invitation, "format": "cose"}
    request = urllib.request.Request(
        f"{url}/v1/tokens", json.dumps(body).encode(), {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=30) as answer:
        return base64.b64decode(json.load(answer)["token"])


def main(verb, *words):
    if verb == "check":
        key = pathlib.Path(words[0]).read_bytes()
        print(json.dumps(claims(sys.stdin.read().strip(), key, *words[1:])))
    elif verb == "issue":
        url, device, attestation, out = words
        invitation = sys.stdin.read().strip()
        token = issued(url, pathlib.Path(device).read_text(), pathlib.Path(attestation).read_text(), invitation)
        pathlib.Path(out).write_bytes(token)


if __name__ == "__main__":
    main(*sys.argv[1:])
