"""What the writers of first inputs share."""

import base64
import hashlib
import json
import pathlib
import struct

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, rsa, utils
from holdfast_peer import keys, service_records

ROOT = pathlib.Path(__file__).resolve().parents[3]
TEST_TIME = 1_750_000_000
SIGNER = keys.PrivateKey((1).to_bytes(32, "big"))
ZEROS = bytes(32)
SERVICE_UUID = service_records.UUID
RSA_KEY = rsa.generate_private_key(65537, 2048)


def url(data):
    """base64url without padding."""
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def text(value):
    """JSON without spaces."""
    return json.dumps(value, separators=(",", ":"))


PUBLIC = {"kty": "EC", "crv": "P-256", "x": url(SIGNER.point[1:33]), "y": url(SIGNER.point[33:])}
DESCRIPTOR = {"device_id": "00" * 16, "kid": SIGNER.kid.hex(), "public_key": PUBLIC}


class Seeds:
    """The inputs by target, none twice."""

    def __init__(self):
        self.inputs, self.at_limits = {}, {}

    def add(self, target, *inputs):
        self.inputs.setdefault(target, set()).update(map(data, inputs))

    def add_at_limit(self, target, *inputs):
        """Adds inputs that stay in the corpus, although they may reach no code that others do not reach."""
        self.at_limits.setdefault(target, set()).update(map(data, inputs))

    def write(self, folder):
        for target, inputs in sorted(self.inputs.items()):
            place = folder / target
            place.mkdir(parents=True, exist_ok=True)
            for number, item in enumerate(sorted(inputs)):
                (place / f"seed-{number:04}").write_bytes(item[:16384])
            for item in self.at_limits.get(target, ()):
                (place / f"limit-{hashlib.sha1(item).hexdigest()}").write_bytes(item)
            print(f"{target}: {len(inputs)}")


def data(item):
    return item.encode() if isinstance(item, str) else bytes(item)


def framed(*messages):
    """Messages as a session target reads them."""
    return b"".join(struct.pack(">H", len(message)) + message for message in messages)


def sequence(*parts):
    """A sequence of data elements of at most 255 bytes."""
    return bytes([0x35, len(b"".join(parts))]) + b"".join(parts)


def field(number, value):
    """A field of Protocol Buffers."""
    if isinstance(value, int):
        return bytes([number << 3]) + varint(value)
    return bytes([number << 3 | 2]) + varint(len(value)) + value


def varint(value):
    data = b""
    while value > 127:
        data += bytes([value & 127 | 128])
        value >>= 7
    return data + bytes([value])


def groups(name):
    for group in json.loads((ROOT / f"vectors/{name}.json").read_bytes())["testGroups"]:
        yield group["type"], group, group["tests"]


def private_keys():
    """Keys of RSA and of the larger curves."""
    number = lambda value: url(value.to_bytes((value.bit_length() + 7) // 8, "big"))
    key = RSA_KEY.private_numbers()
    public = key.public_numbers
    names = {"d": key.d, "p": key.p, "q": key.q, "dp": key.dmp1, "dq": key.dmq1, "qi": key.iqmp}
    rsa_key = {"kty": "RSA", "n": number(public.n), "e": number(public.e)}
    yield {**rsa_key, **{name: number(value) for name, value in names.items()}, "alg": "RSA-OAEP", "enc": "A128GCM"}
    yield rsa_key
    for curve, name in ((ec.SECP384R1(), "P-384"), (ec.SECP521R1(), "P-521")):
        key = ec.derive_private_key(2, curve).public_key().public_numbers()
        count = (curve.key_size + 7) // 8
        x, y = (url(value.to_bytes(count, "big")) for value in (key.x, key.y))
        yield {"kty": "EC", "crv": name, "x": x, "y": y, "d": url((2).to_bytes(count, "big"))}


def jws(kind, claims_):
    """A compact JWS by the signer."""
    head = url(text({"alg": "ES256", "kid": url(SIGNER.kid), "typ": kind}).encode())
    signed = f"{head}.{url(text(claims_).encode())}"
    signature = ec.derive_private_key(1, ec.SECP256R1()).sign(signed.encode(), ec.ECDSA(hashes.SHA256()))
    r, s = utils.decode_dss_signature(signature)
    return f"{signed}.{url(r.to_bytes(32, 'big') + s.to_bytes(32, 'big'))}"
