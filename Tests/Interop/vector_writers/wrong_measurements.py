"""Measurements in which a value is not what follows from the others."""

from holdfast_peer import measurement
from holdfast_peer.cbor import encode
from holdfast_peer.primitives import hmac_sha256, sha256

from .vector_file import pin

INTEGRITY, DEVICE = b"holdfast/1 integrity\x00", b"holdfast/1 device\x00"


def add(group, app, device):
    salt, mpk = pin("wrong/salt", 32), pin("wrong/mpk", 16)
    good = {
        "mpk": mpk,
        "appComponents": app,
        "deviceComponents": device,
        "salt": salt,
        "created": 1790000000,
        **_measured(salt, measurement.proof_key_id(mpk), app, device),
    }
    _integrity(group, good)
    _device(group, good)
    _components(group, good)
    _configurations(group, good)
    _sizes(group, good)


def _measured(salt, key_id, app, device, configuration=None):
    made = configuration or measurement.configuration(
        salt, key_id, [i for i, _ in app], [i for i, _ in device], 1790000000
    )
    return {
        "configuration": made,
        "integrity": measurement.integrity_measurement(salt, made, app, device),
        "device": measurement.device_measurement(salt, made, device),
        "mpkId": key_id,
    }


def _flipped(data, index):
    changed = bytearray(data)
    changed[index] ^= 1
    return bytes(changed)


def _integrity(group, good):
    app, device, salt = good["appComponents"], good["deviceComponents"], good["salt"]
    digest, array = sha256(good["configuration"]), measurement.component_array
    for comment, value in (
        ("with its first byte changed", _flipped(good["integrity"], 0)),
        ("with its last byte changed", _flipped(good["integrity"], 31)),
        ("that is the device measurement", good["device"]),
        ("without its label", hmac_sha256(salt, digest + array(app + device))),
        ("with the label of the device measurement", hmac_sha256(salt, DEVICE + digest + array(app + device))),
        ("without the configuration", hmac_sha256(salt, INTEGRITY + array(app + device))),
        ("of the configuration itself", hmac_sha256(salt, INTEGRITY + good["configuration"] + array(app + device))),
        ("of the app's components only", hmac_sha256(salt, INTEGRITY + digest + array(app))),
        ("of the device's components only", hmac_sha256(salt, INTEGRITY + digest + array(device))),
        ("of components in another order", hmac_sha256(salt, INTEGRITY + digest + encode((app + device)[::-1]))),
        ("of both lists, one after the other", hmac_sha256(salt, INTEGRITY + digest + array(app) + array(device))),
        ("of digests without ids", hmac_sha256(salt, INTEGRITY + digest + encode([d for _, d in app + device]))),
        ("under the proof key", hmac_sha256(good["mpk"], INTEGRITY + digest + array(app + device))),
        ("without a key", sha256(INTEGRITY + digest + array(app + device))),
    ):
        group.invalid(f"integrity measurement {comment}", "WrongMeasurement", **{**good, "integrity": value})


def _device(group, good):
    app, device, salt = good["appComponents"], good["deviceComponents"], good["salt"]
    digest, array = sha256(good["configuration"]), measurement.component_array
    for comment, value in (
        ("with its first byte changed", _flipped(good["device"], 0)),
        ("with its last byte changed", _flipped(good["device"], 31)),
        ("that is the integrity measurement", good["integrity"]),
        ("with the label of the integrity measurement", hmac_sha256(salt, INTEGRITY + digest + array(device))),
        ("of all components", hmac_sha256(salt, DEVICE + digest + array(app + device))),
        ("of no component", hmac_sha256(salt, DEVICE + digest + array([]))),
        ("of components in another order", hmac_sha256(salt, DEVICE + digest + encode(device[::-1]))),
        ("under another salt", hmac_sha256(bytes(32), DEVICE + digest + array(device))),
    ):
        group.invalid(f"device measurement {comment}", "WrongMeasurement", **{**good, "device": value})
    exchanged = {"integrity": good["device"], "device": good["integrity"]}
    group.invalid("measurements exchanged", "WrongMeasurement", **{**good, **exchanged})


def _components(group, good):
    app, device = good["appComponents"], good["deviceComponents"]
    for comment, name, components in (
        ("an app component changed", "appComponents", [[app[0][0], bytes(32)], *app[1:]]),
        ("a device component changed", "deviceComponents", [[device[0][0], bytes(32)], *device[1:]]),
        (
            "digests of two components exchanged",
            "appComponents",
            [[app[0][0], app[1][1]], [app[1][0], app[0][1]], *app[2:]],
        ),
    ):
        group.invalid(f"{comment} since it was measured", "WrongMeasurement", **{**good, name: components})
    for comment, changes in (
        ("an app component missing", {"appComponents": app[1:]}),
        ("an app component more", {"appComponents": [*app, ["app.other", bytes(32)]]}),
        ("an app component renamed", {"appComponents": [["app.other", app[0][1]], *app[1:]]}),
        ("a device component missing", {"deviceComponents": device[1:]}),
        ("the lists exchanged", {"appComponents": device, "deviceComponents": app}),
        ("another salt", {"salt": pin("wrong/other", 32)}),
        ("another time", {"created": 1790000001}),
    ):
        group.invalid(f"{comment}, as the configuration says", "WrongConfiguration", **{**good, **changes})


def _configurations(group, good):
    ids = [[i for i, _ in good[name]] for name in ("appComponents", "deviceComponents")]
    parts = {1: 1, 2: good["salt"], 3: good["mpkId"], 4: ids[0], 5: ids[1], 6: 1790000000}
    for comment, flag, made in (
        ("with ids in another order", "UnsortedIds", encode({**parts, 4: ids[0][::-1]})),
        ("with an id twice", "DuplicateId", encode({**parts, 4: [ids[0][0], *ids[0]]})),
        ("of version 3", "WrongVersion", encode({**parts, 1: 3})),
        ("without its time", "MissingKey", encode({k: v for k, v in parts.items() if k != 6})),
        ("with a byte after it", "TrailingBytes", good["configuration"] + b"\0"),
        ("cut by a byte", "Truncated", good["configuration"][:-1]),
        ("that is empty", "Truncated", b""),
    ):
        measured = _measured(good["salt"], good["mpkId"], good["appComponents"], good["deviceComponents"], made)
        group.invalid(f"configuration {comment}", flag, **{**good, **measured, "configuration": made})
    for comment, key_id in (
        ("of another proof key", measurement.proof_key_id(bytes(16))),
        ("that begins the proof key", good["mpk"][:8]),
        ("that begins the proof key's hash", sha256(good["mpk"])[:8]),
        ("of zeros", bytes(8)),
    ):
        measured = _measured(good["salt"], key_id, good["appComponents"], good["deviceComponents"])
        group.invalid(f"key id {comment}", "WrongKey", **{**good, **measured})


def _sizes(group, good):
    app = good["appComponents"]
    for size in (0, 15, 17):
        mpk = pin("wrong/size", size)
        measured = _measured(good["salt"], measurement.proof_key_id(mpk), app, good["deviceComponents"])
        group.invalid(f"proof key of {size} bytes", "WrongSize", **{**good, **measured, "mpk": mpk})
    for size in (0, 31, 33):
        salt = pin("wrong/size", size)
        measured = _measured(salt, good["mpkId"], app, good["deviceComponents"])
        group.invalid(f"salt of {size} bytes", "WrongSize", **{**good, **measured, "salt": salt})
    for size in (0, 31, 33, 64):
        changed = [[app[0][0], pin("wrong/digest", size)], *app[1:]]
        measured = _measured(good["salt"], good["mpkId"], changed, good["deviceComponents"])
        group.invalid(f"digest of {size} bytes", "WrongSize", **{**good, **measured, "appComponents": changed})
    for name, comment in (("integrity", "integrity measurement"), ("device", "device measurement")):
        for size in (0, 16, 31, 33):
            value = (good[name] * 2)[:size]
            group.invalid(f"{comment} of {size} bytes", "WrongMeasurement", **{**good, name: value})
