"""An issuer: mints measurement tokens for a device, each with a fresh baseline unless told otherwise."""

import secrets
import time

from . import claims as claim_rules
from . import cose, jose, session
from .keys import PrivateKey


class Grant:
    """A token and what its holder has to prove."""

    def __init__(self, token, encoding, claims):
        self.token, self.encoding, self.claims = token, encoding, claims
        self.reference = session.token_reference(token)

    @property
    def proof_key(self):
        return self.claims["proofKey"]


def fresh_claims(device_id, **changes):
    """Claims valid from a minute ago for an hour, with random secrets."""
    now = int(time.time())
    claims = {
        "issuer": "peer.example",
        "subject": "interop",
        "audience": device_id,
        "issuedAt": now - 60,
        "expires": now + 3600,
        "tokenId": secrets.token_bytes(16),
        "integrity": secrets.token_bytes(32),
        "device": secrets.token_bytes(32),
        "proofKey": secrets.token_bytes(16),
        "generation": 1,
    }
    return {**claims, **changes}


class Issuer:
    def __init__(self, key=None):
        self.key = key or PrivateKey()

    def signed(self, claims, encoding):
        """Only the signed layer."""
        if encoding == session.COSE:
            return cose.sign(claim_rules.to_cbor(claims), self.key)
        return jose.sign(jose.dump(claim_rules.to_members(claims)), self.key)

    def grant(self, device_point, claims, encoding):
        return encrypted(self.signed(claims, encoding), device_point, claims, encoding)


def encrypted(signed, device_point, claims, encoding):
    """A grant of what `signed` holds, encrypted to the device with fresh ephemerals."""
    encrypt = cose.encrypt if encoding == session.COSE else jose.encrypt
    return Grant(encrypt(signed, device_point, PrivateKey(), secrets.token_bytes(12)), encoding, claims)
