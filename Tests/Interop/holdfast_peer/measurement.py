"""Measurement configuration, the two measurements and their proofs, the keys of a release and evidence."""

from . import cbor
from .primitives import hkdf_sha256, hmac_sha256, sha256
from .refusal import require


def proof_key_id(proof_key):
    """The 8-byte id of a 16-byte measurement proof key."""
    return sha256(b"holdfast/1 mpk id\x00" + proof_key)[:8]


def release_keys(root):
    """The keys that follow from a release's root of 16 bytes: the evidence key (32) and the measurement proof key (16)."""
    require(len(root) == 16, "WrongSize")
    return (
        hkdf_sha256(root, b"", b"holdfast/1 evidence key", 32),
        hkdf_sha256(root, b"", b"holdfast/1 measurement proof key", 16),
    )


def evidence(
    evidence_key, configuration_bytes, app, device, *, subject=None, version=None, properties=(), statements=None
):
    """Evidence: components are lists of (id, digest) in the order of their ids' bytes. Statements make it version 2: app
    properties, the system's id and version, and the user property."""
    elements = [
        1 if statements is None else 2,
        configuration_bytes,
        [list(c) for c in app],
        [list(c) for c in device],
        subject,
        None if version is None else list(version),
        list(properties),
        *(() if statements is None else statements),
    ]
    mac = hmac_sha256(evidence_key, b"holdfast/1 evidence\x00" + cbor.encode(elements))
    return cbor.encode([*elements, mac])


def parse_evidence(data, evidence_key):
    """The elements of evidence, read strictly, after its MAC."""
    elements = cbor.decode(data)
    require(isinstance(elements, list), "WrongType")
    require(len(elements) in (8, 12), "WrongCount")
    number, configuration_bytes, app, device, subject, version, properties, *statements, mac = elements
    require(_is_uint(number), "WrongType")
    require(number == (2 if statements else 1), "WrongVersion")
    require(isinstance(configuration_bytes, bytes), "WrongType")
    fields = parse_configuration(configuration_bytes)
    for components, ids in ((app, fields["app"]), (device, fields["device"])):
        _check_components(components, ids)
    _check_text(subject, 1, 64)
    if version is not None:
        require(isinstance(version, list), "WrongType")
        require(len(version) == 3, "WrongCount")
        require(all(_is_uint(n) for n in version), "WrongType")
    _check_properties(properties, 32)
    if statements:
        app_properties, system_id, system_version, user_property = statements
        _check_properties(app_properties, 128)
        _check_text(system_id, 1, 64)
        _check_text(system_version, 1, 64)
        _check_text(user_property, 0, 128)
        require(all(" " <= character <= "~" for character in user_property or ""), "UserProperty")
    require(isinstance(mac, bytes), "WrongType")
    require(len(mac) == 32, "WrongSize")
    require(len(evidence_key) == 32, "WrongSize")
    require(mac == hmac_sha256(evidence_key, b"holdfast/1 evidence\x00" + cbor.encode(elements[:-1])), "WrongMac")
    return {
        "configuration": configuration_bytes,
        "app": app,
        "device": device,
        "subject": subject,
        "version": version,
        "properties": properties,
        "statements": statements or None,
    }


def _check_text(text, least, most):
    if text is not None:
        require(isinstance(text, str), "WrongType")
        require(least <= len(text.encode()) <= most, "WrongSize")


def _check_properties(properties, most):
    require(isinstance(properties, list) and all(isinstance(p, str) for p in properties), "WrongType")
    require(len(properties) <= 16, "WrongCount")
    encoded = [p.encode() for p in properties]
    require(all(len(p) <= most for p in encoded), "TextTooLong")
    require(all(encoded) and encoded == sorted(set(encoded)), "UnsortedProperties")


def _check_components(components, ids):
    require(isinstance(components, list) and all(isinstance(c, list) for c in components), "WrongType")
    for component in components:
        require(len(component) == 2, "WrongCount")
        require(isinstance(component[0], str) and isinstance(component[1], bytes), "WrongType")
        require(len(component[1]) == 32, "WrongSize")
    require([c[0] for c in components] == ids, "ComponentList")


KNOWN_CODE = 1
TREE_DIGESTS = 2
CHUNK = 128 << 10


def tree_digest(data):
    """The tree digest of bytes."""
    chunks = [data[start : start + CHUNK] for start in range(0, len(data), CHUNK)]
    leaves = [sha256(b"holdfast/1 leaf\x00" + i.to_bytes(8, "big") + chunk) for i, chunk in enumerate(chunks)]
    sizes = CHUNK.to_bytes(8, "big") + len(data).to_bytes(8, "big")
    return sha256(b"holdfast/1 tree\x00" + sizes + b"".join(leaves))


def configuration(salt, key_id, app_ids, device_ids, created, policy=0):
    """The bytes of a measurement configuration; ids are put in order."""
    return cbor.encode(
        {
            1: 2 if policy else 1,
            2: salt,
            3: key_id,
            4: sorted(app_ids, key=str.encode),
            5: sorted(device_ids, key=str.encode),
            6: created,
            **({7: policy} if policy else {}),
        }
    )


def parse_configuration(data):
    """The fields of a measurement configuration, read strictly."""
    require(len(data) <= 4096, "TooLarge")
    fields = cbor.decode(data)
    require(isinstance(fields, dict), "WrongType")
    require(not set(range(1, 7)) - fields.keys(), "MissingKey")
    has_policy = fields[1] == 2 and 7 in fields
    require(not fields.keys() - set(range(1, 8 if has_policy else 7)), "UnknownKey")
    require(_is_uint(fields[1]) and _is_uint(fields[6]), "WrongType")
    require(fields[1] == (2 if has_policy else 1), "WrongVersion")
    if has_policy:
        require(_is_uint(fields[7]), "WrongType")
        require(0 < fields[7] <= KNOWN_CODE | TREE_DIGESTS, "WrongPolicy")
    for key, size in ((2, 32), (3, 8)):
        require(isinstance(fields[key], bytes), "WrongType")
        require(len(fields[key]) == size, "WrongSize")
    for key in (4, 5):
        _check_ids(fields[key])
    return {
        "salt": fields[2],
        "mpkId": fields[3],
        "app": fields[4],
        "device": fields[5],
        "created": fields[6],
        "policy": fields.get(7, 0),
    }


def _is_uint(value):
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _check_ids(ids):
    require(isinstance(ids, list) and all(isinstance(i, str) for i in ids), "WrongType")
    require(all(0x21 <= ord(c) <= 0x7E for i in ids for c in i), "ComponentId")
    require(all(1 <= len(i) <= 32 for i in ids), "ComponentId")
    encoded = [i.encode() for i in ids]
    require(len(set(encoded)) == len(encoded), "DuplicateId")
    require(encoded == sorted(encoded), "UnsortedIds")


def component_array(components):
    """The deterministic CBOR array of [id, digest], in the order of the ids' bytes."""
    return cbor.encode([list(c) for c in sorted(components, key=lambda c: c[0].encode())])


def integrity_measurement(salt, configuration_bytes, app, device):
    """IM, 32 bytes; `app` and `device` are lists of (id, digest)."""
    return hmac_sha256(
        salt, b"holdfast/1 integrity\x00" + sha256(configuration_bytes) + component_array(list(app) + list(device))
    )


def device_measurement(salt, configuration_bytes, device):
    """DM, 32 bytes."""
    return hmac_sha256(salt, b"holdfast/1 device\x00" + sha256(configuration_bytes) + component_array(device))


def proof(proof_key, nonce, measurement):
    """IMP or DMP: 16-byte key, 16-byte nonce, 32-byte measurement, 32-byte result."""
    for value, size in ((proof_key, 16), (nonce, 16), (measurement, 32)):
        require(len(value) == size, "WrongSize")
    return hmac_sha256(proof_key, nonce + measurement)


def explain_tag(salt, component_id, digest):
    """The 8-byte tag that a prover keeps of each component in place of its digest."""
    return hmac_sha256(salt, b"holdfast/1 explain\x00" + component_id.encode() + b"\x00" + digest)[:8]
