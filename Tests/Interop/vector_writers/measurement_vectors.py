"""measurement_test.json and proof_test.json."""

from holdfast_peer import cbor, measurement
from holdfast_peer.cbor import Encoded
from holdfast_peer.primitives import hkdf_sha256, hmac_sha256, sha256
from holdfast_peer.refusal import require

from . import wrong_measurements
from .notes import NOTES
from .vector_file import VectorFile, pin

APP = ["app.debug", "app.image", "app.injected", "app.text", "os.release"]
DEVICE = ["device.cpu", "device.machine", "device.secret"]
ABSENT = sha256(b"")
STATEMENTS = ("appProperties", "systemId", "systemVersion", "userProperty")


def measured(ids, label):
    return [[i, pin(f"{label}/{i}", 32)] for i in ids]


def measurement_file():
    file = VectorFile(
        "HMAC-SHA-256",
        "measurement_schema_v1.json",
        [
            "Measurement: components, salt and proof key give the configuration, the integrity and the device measurement.",
            "MeasurementConfiguration: configurations that a strict reader accepts or refuses.",
            "ReleaseKeys: the root of a release gives its evidence key, its measurement proof key and that one's id.",
            "Evidence: evidence under an evidence key, which a service accepts or refuses.",
        ],
        NOTES,
    )
    _measurements(file.group("Measurement", check_measurement))
    _configurations(
        file.group("MeasurementConfiguration", lambda configuration: measurement.parse_configuration(configuration))
    )
    _release_keys(file.group("ReleaseKeys", _check_release_keys))
    _evidence(file.group("Evidence", _check_evidence))
    _policies(
        file.group("MeasurementConfiguration", lambda configuration: measurement.parse_configuration(configuration))
    )
    _policy_measurements(file.group("Measurement", check_measurement))
    _tree_policies(
        file.group("MeasurementConfiguration", lambda configuration: measurement.parse_configuration(configuration))
    )
    _tree_measurements(file.group("Measurement", check_measurement))
    wrong_measurements.add(file.group("Measurement", check_measurement), measured(APP, "w"), measured(DEVICE, "w"))
    return file


def check_measurement(*, mpk, appComponents, deviceComponents, salt, created, configuration, integrity, device, mpkId):
    """Refuses a measurement of which a value is not what follows from the others."""
    for value, size in ((mpk, 16), (salt, 32), *((digest, 32) for _, digest in (*appComponents, *deviceComponents))):
        require(len(value) == size, "WrongSize")
    require(mpkId == measurement.proof_key_id(mpk), "WrongKey")
    fields = measurement.parse_configuration(configuration)
    made = measurement.configuration(
        salt, mpkId, [i for i, _ in appComponents], [i for i, _ in deviceComponents], created, fields["policy"]
    )
    require(configuration == made, "WrongConfiguration")
    require(
        integrity == measurement.integrity_measurement(salt, configuration, appComponents, deviceComponents),
        "WrongMeasurement",
    )
    require(device == measurement.device_measurement(salt, configuration, deviceComponents), "WrongMeasurement")


def _measurement(
    group, comment, label, app, device, *, flags=("Normal",), salt=None, mpk=None, created=1790000000, policy=0
):
    salt = pin(f"{label}/salt", 32) if salt is None else salt
    mpk = pin(f"{label}/mpk", 16) if mpk is None else mpk
    key_id = measurement.proof_key_id(mpk)
    configuration = measurement.configuration(
        salt, key_id, [i for i, _ in app], [i for i, _ in device], created, policy
    )
    group.valid(
        comment,
        flags,
        mpk=mpk,
        appComponents=app,
        deviceComponents=device,
        salt=salt,
        created=created,
        configuration=configuration,
        integrity=measurement.integrity_measurement(salt, configuration, app, device),
        device=measurement.device_measurement(salt, configuration, device),
        mpkId=key_id,
    )


def _measurements(group):
    app, device = measured(APP, "m"), measured(DEVICE, "m")
    same = {"salt": pin("same/salt", 32), "mpk": pin("same/mpk", 16)}
    _measurement(group, "usual components", "usual", app, device)
    _measurement(group, "pinned salt and proof key", "same", app, device, **same)
    _measurement(group, "the same with another salt", "same2", app, device, mpk=same["mpk"])
    _measurement(group, "the same, one second later", "same", app, device, created=1790000001, **same)
    _measurement(group, "the same with another proof key", "same3", app, device, salt=same["salt"])
    changed = [[i, pin("changed", 32) if i == "app.text" else d] for i, d in app]
    _measurement(group, "one app component changed: the device measurement stays", "same", changed, device, **same)
    changed = [[i, pin("changed", 32) if i == "device.cpu" else d] for i, d in device]
    _measurement(group, "one device component changed: both measurements change", "same", app, changed, **same)
    _measurement(group, "inputs in another order give the same result", "same", app[::-1], device[::-1], **same)
    _measurement(
        group,
        "absent components have the digest of nothing",
        "absent",
        [[i, ABSENT] for i in APP],
        [[i, ABSENT] for i in DEVICE],
    )
    _measurement(group, "one component of each scope", "one", app[:1], device[:1])
    mixed = measured(["a", "m", "zz", "z"], "mixed")
    _measurement(group, "device ids sort between app ids", "mixed", mixed, measured(["b", "n", "y"], "mixed"))
    prefix = measured(["a", "aa", "a.b", "a-b", "a_b", "A", "B"], "prefix")
    _measurement(
        group, "ids are sorted by bytes: prefixes and case", "prefix", prefix, measured(["device.x"], "prefix")
    )
    _measurement(
        group,
        "all bytes zero",
        "zero",
        [[i, bytes(32)] for i in APP],
        [[i, bytes(32)] for i in DEVICE],
        salt=bytes(32),
        mpk=bytes(16),
        created=0,
        flags=("Boundary",),
    )
    _measurement(
        group,
        "all bits set",
        "ones",
        [[i, b"\xff" * 32] for i in APP],
        [[i, b"\xff" * 32] for i in DEVICE],
        salt=b"\xff" * 32,
        mpk=b"\xff" * 16,
        created=2**53 - 1,
        flags=("Boundary",),
    )
    for created in (23, 24, 255, 256, 65535, 65536, 2**32 - 1, 2**32):
        _measurement(group, f"created {created}", "created", app, device, created=created, flags=("Boundary",))
    many = measured([f"app.{i:02}" for i in range(24)], "many")
    _measurement(
        group, "24 app components: the list's length takes a second byte", "many", many, device, flags=("Boundary",)
    )


def _configurations(group):
    salt, key_id = pin("mc/salt", 32), pin("mc/id", 8)
    base = {1: 1, 2: salt, 3: key_id, 4: APP, 5: DEVICE, 6: 1790000000}
    encode = cbor.encode

    def invalid(comment, flag, data):
        group.invalid(comment, flag, configuration=data)

    def changed(comment, flag, **changes):
        invalid(comment, flag, encode({**base, **{int(k[1:]): v for k, v in changes.items()}}))

    good = encode(base)
    group.valid("well formed", configuration=good)
    group.valid("created at 0", ("Boundary",), configuration=encode({**base, 6: 0}))
    group.valid("created at 2^53 - 1", ("Boundary",), configuration=encode({**base, 6: 2**53 - 1}))

    for version in (0, 2, 256):
        changed(f"version {version}", "WrongVersion", k1=version)
    for size in (0, 31, 33, 64):
        changed(f"salt of {size} bytes", "WrongSize", k2=salt[:1] * size)
    for size in (0, 7, 9, 16):
        changed(f"proof key id of {size} bytes", "WrongSize", k3=key_id[:1] * size)
    for key in base:
        invalid(f"key {key} is missing", "MissingKey", encode({k: v for k, v in base.items() if k != key}))
    for key in (0, 7, -1, "1", 255):
        invalid(f"extra key {key!r}", "UnknownKey", encode({**base, key: 1}))
    for comment, key, value in (
        ("version as text", 1, "1"),
        ("version as null", 1, None),
        ("version as true", 1, True),
        ("version -2", 1, -2),
        ("salt as text", 2, "s" * 32),
        ("salt as null", 2, None),
        ("proof key id as text", 3, "12345678"),
        ("app ids as text", 4, "app.image"),
        ("app ids as null", 4, None),
        ("app ids as a map", 4, {}),
        ("an app id as bytes", 4, [b"app.image"]),
        ("an app id as an integer", 4, [1]),
        ("an app id with its digest", 4, [["app.image", ABSENT]]),
        ("device ids as text", 5, "device.cpu"),
        ("a device id as bytes", 5, [b"device.cpu"]),
        ("created as text", 6, "1790000000"),
        ("created as null", 6, None),
        ("created before 1970", 6, -1),
    ):
        invalid(comment, "WrongType", encode({**base, key: value}))
    invalid("an array", "WrongType", encode([1, salt, key_id, APP, DEVICE, 0]))
    invalid("null", "WrongType", encode(None))
    invalid("wrapped in a byte string", "WrongType", encode(good))

    changed("a non-ASCII id among the app ids", "ComponentId", k4=["app.\u00efmage"])
    changed("a non-ASCII id among the device ids", "ComponentId", k5=["device.\u00fc"])
    changed("an empty id", "ComponentId", k4=["", *APP])
    changed("an id of 33 characters", "ComponentId", k4=["a" * 33, *APP])
    for name, character in (("a control character", "\x7f"), ("NUL", "\0"), ("a space", " ")):
        changed(f"an id with {name}", "ComponentId", k4=[f"app.{character}", *APP])
    changed("an app id twice", "DuplicateId", k4=["app.debug", "app.debug", "app.image"])
    changed("a device id twice", "DuplicateId", k5=["device.cpu", "device.cpu"])
    changed("app ids in reverse", "UnsortedIds", k4=APP[::-1])
    changed("device ids unsorted", "UnsortedIds", k5=["device.machine", "device.cpu", "device.secret"])
    changed("ids sorted by length first", "UnsortedIds", k4=["b", "aa"])
    changed("more than 8 KiB", "TooLarge", k4=[f"app.{i:04}.{'x' * 21}" for i in range(300)])
    _encodings(invalid, good, base)


def _policies(group):
    base = {1: 2, 2: pin("policy/salt", 32), 3: pin("policy/id", 8), 4: APP, 5: DEVICE, 6: 1790000000, 7: 1}

    def changed(comment, flag, **changes):
        data = cbor.encode({**base, **{int(k[1:]): v for k, v in changes.items()}})
        group.invalid(comment, flag, configuration=data)

    group.valid("known code is permitted", configuration=cbor.encode(base))
    changed("version 1 with a policy", "UnknownKey", k1=1)
    changed("version 3 with a policy", "UnknownKey", k1=3)
    for policy in (0, 4, 5, 255, 256, 257):
        changed(f"policy {policy}", "WrongPolicy", k7=policy)
    for comment, policy in (("null", None), ("text", "1"), ("bytes", b"\x01"), ("true", True), ("an array", [1])):
        changed(f"a policy that is {comment}", "WrongType", k7=policy)
    changed("an extra key after the policy", "UnknownKey", k8=1)
    cut = cbor.encode(base)[:-1]
    group.invalid("without the policy's value", "Truncated", configuration=cut)
    group.invalid("the policy in two bytes", "NonMinimalInteger", configuration=cut + b"\x18\x01")


def _policy_measurements(group):
    app, device = measured(APP, "m"), measured(DEVICE, "m")
    same = {"salt": pin("same/salt", 32), "mpk": pin("same/mpk", 16)}
    _measurement(group, "the pinned salt and key, with known code permitted", "same", app, device, policy=1, **same)


def _tree_policies(group):
    base = {1: 2, 2: pin("trees/salt", 32), 3: pin("trees/id", 8), 4: APP, 5: DEVICE, 6: 1790000000, 7: 2}
    group.valid("tree digests", configuration=cbor.encode(base))
    group.valid("tree digests, and known code is permitted", configuration=cbor.encode({**base, 7: 3}))
    group.invalid("version 1 with tree digests", "UnknownKey", configuration=cbor.encode({**base, 1: 1}))
    for policy in (6, 7, 130):
        comment = f"tree digests with an unknown bit, policy {policy}"
        group.invalid(comment, "WrongPolicy", configuration=cbor.encode({**base, 7: policy}))


def _tree_measurements(group):
    app, device = measured(APP, "m"), measured(DEVICE, "m")
    same = {"salt": pin("same/salt", 32), "mpk": pin("same/mpk", 16)}
    for comment, policy in (("tree digests", 2), ("tree digests and known code", 3)):
        _measurement(group, f"the pinned salt and key, with {comment}", "same", app, device, policy=policy, **same)


def _encodings(invalid, good, base):
    encode, head = cbor.encode, cbor.head
    pairs = [encode(k) + encode(v) for k, v in base.items()]

    def map_of(*parts):
        return head(cbor.MAP, len(parts)) + b"".join(parts)

    invalid("empty", "Truncated", b"")
    for cut in (1, len(good) // 2, len(good) - 1):
        invalid(f"cut to {cut} bytes", "Truncated", good[:cut])
    invalid("one byte too many", "TrailingBytes", good + b"\x00")
    invalid("followed by a second configuration", "TrailingBytes", good + good)
    invalid("keys 1 and 2 exchanged", "UnsortedKeys", map_of(pairs[1], pairs[0], *pairs[2:]))
    invalid("keys 5 and 6 exchanged", "UnsortedKeys", map_of(*pairs[:4], pairs[5], pairs[4]))
    invalid("keys in reverse", "UnsortedKeys", map_of(*pairs[::-1]))
    invalid("key 2 twice, equal values", "DuplicateKey", map_of(*pairs[:2], *pairs[1:]))
    invalid(
        "key 2 twice, different values",
        "DuplicateKey",
        map_of(*pairs[:2], encode(2) + encode(pin("mc/other", 32)), *pairs[2:]),
    )
    invalid("key 6 twice", "DuplicateKey", map_of(*pairs, pairs[5]))
    invalid("map of indefinite length", "IndefiniteLength", b"\xbf" + b"".join(pairs) + b"\xff")
    invalid(
        "salt in chunks", "IndefiniteLength", encode({**base, 2: Encoded(b"\x5f" + encode(bytes(16)) * 2 + b"\xff")})
    )
    invalid(
        "app ids of indefinite length",
        "IndefiniteLength",
        encode({**base, 4: Encoded(b"\x9f" + b"".join(map(encode, APP)) + b"\xff")}),
    )
    invalid("an id in chunks", "IndefiniteLength", encode({**base, 4: [Encoded(b"\x7f\x63app\xff")]}))
    invalid("map length in two bytes", "NonMinimalInteger", head(cbor.MAP, 6, 1) + good[1:])
    invalid("version in two bytes", "NonMinimalInteger", encode({**base, 1: Encoded(b"\x18\x01")}))
    invalid("key 1 in two bytes", "NonMinimalInteger", map_of(b"\x18\x01\x01", *pairs[1:]))
    invalid(
        "salt with a length of two bytes",
        "NonMinimalInteger",
        encode({**base, 2: Encoded(head(cbor.BYTES, 32, 2) + base[2])}),
    )
    invalid("an id with a length of two bytes", "NonMinimalInteger", encode({**base, 4: [Encoded(b"\x78\x03app")]}))
    invalid(
        "a list with a length of two bytes",
        "NonMinimalInteger",
        encode({**base, 5: Encoded(head(cbor.ARRAY, 1, 1) + encode("device.cpu"))}),
    )
    invalid(
        "created in eight bytes", "NonMinimalInteger", encode({**base, 6: Encoded(head(cbor.UNSIGNED, base[6], 8))})
    )
    invalid("created 2^53", "IntegerTooLarge", encode({**base, 6: 2**53}))
    invalid("created 2^64 - 1", "IntegerTooLarge", encode({**base, 6: 2**64 - 1}))
    invalid("created as a double", "Float", encode({**base, 6: Encoded(bytes.fromhex("fb41daac4ee0000000"))}))
    invalid("created as a tagged time", "UnknownTag", encode({**base, 6: cbor.Tag(1, 1790000000)}))
    invalid("self-described CBOR", "UnknownTag", encode(cbor.Tag(55799, Encoded(good))))
    invalid("created undefined", "SimpleValue", encode({**base, 6: Encoded(b"\xf7")}))
    invalid("an id that is not UTF-8", "NotUtf8", encode({**base, 4: [Encoded(b"\x62\xc3\x28")]}))
    invalid("additional information 28", "ReservedInformation", encode({**base, 6: Encoded(b"\x1c\x00")}))


def _check_release_keys(*, root, evidenceKey, mpk, mpkId):
    evidence_key, proof_key = measurement.release_keys(root)
    require((evidenceKey, mpk, mpkId) == (evidence_key, proof_key, measurement.proof_key_id(proof_key)), "WrongKey")


def _release_keys(group):
    def keys(root, **changes):
        evidence_key, proof_key = measurement.release_keys(root)
        return {
            "root": root,
            "evidenceKey": evidence_key,
            "mpk": proof_key,
            "mpkId": measurement.proof_key_id(proof_key),
            **changes,
        }

    group.valid("bytes 0 to 15", **keys(bytes(range(16))))
    for number in range(4):
        group.valid(f"pseudo-random {number}", **keys(pin(f"root/{number}", 16)))
    group.valid("all bytes zero", ("Boundary",), **keys(bytes(16)))
    group.valid("all bits set", ("Boundary",), **keys(b"\xff" * 16))
    root = pin("root", 16)
    good = keys(root)
    for comment, changes in (
        ("the evidence key begins with MPK", {"evidenceKey": good["mpk"] + bytes(16)}),
        ("the label of MPK for both", {"evidenceKey": hkdf_sha256(root, b"", b"holdfast/1 measurement proof key", 32)}),
        ("the label of the evidence key for both", {"mpk": good["evidenceKey"][:16]}),
        ("a zero byte after the label", {"evidenceKey": hkdf_sha256(root, b"", b"holdfast/1 evidence key\x00", 32)}),
        (
            "the evidence key derived from MPK",
            {"evidenceKey": hkdf_sha256(good["mpk"], b"", b"holdfast/1 evidence key", 32)},
        ),
        ("the root itself as MPK", {"mpk": root, "mpkId": measurement.proof_key_id(root)}),
        ("the id of the root", {"mpkId": measurement.proof_key_id(root)}),
        ("the keys of another root", {"root": pin("root/other", 16)}),
    ):
        group.invalid(comment, "WrongKey", **{**good, **changes})
    for size in (0, 15, 17, 32):
        group.invalid(f"root of {size} bytes", "WrongSize", **{**good, "root": (root * 2)[:size]})


def _check_evidence(*, evidenceKey, evidence, **expected):
    fields = measurement.parse_evidence(evidence, evidenceKey)
    names = {
        "configuration": "configuration",
        "appComponents": "app",
        "deviceComponents": "device",
        "subject": "subject",
        "version": "version",
        "properties": "properties",
    }
    found = {name: fields[field] for name, field in names.items()}
    if fields["statements"] is not None:
        found |= dict(zip(STATEMENTS, fields["statements"], strict=True))
    assert not expected or found == expected, expected


def _evidence(group):
    app, device = measured(APP, "e"), measured(DEVICE, "e")
    evidence_key, proof_key = measurement.release_keys(pin("evidence/root", 16))
    made = measurement.configuration(
        pin("evidence/salt", 32), measurement.proof_key_id(proof_key), APP, DEVICE, 1790000000
    )

    def valid(comment, flags=("Normal",), subject=None, version=None, properties=(), statements=None):
        group.valid(
            comment,
            flags,
            evidenceKey=evidence_key,
            configuration=made,
            appComponents=app,
            deviceComponents=device,
            subject=subject,
            version=version,
            properties=list(properties),
            **({} if statements is None else dict(zip(STATEMENTS, statements, strict=True))),
            evidence=measurement.evidence(
                evidence_key,
                made,
                app,
                device,
                subject=subject,
                version=version,
                properties=properties,
                statements=statements,
            ),
        )

    valid("no claims and no properties")
    valid("claims about name and version", subject="com.example.lock", version=[1, 2, 300])
    valid("properties", properties=("agent", "debugger", "injection"))
    valid("a name of 64 bytes", ("Boundary",), subject="\u00e9" * 32)
    valid("numbers at 2^53 - 1", ("Boundary",), version=[2**53 - 1] * 3)
    valid("16 properties of 32 bytes", ("Boundary",), properties=[f"p{i:02}" + "x" * 29 for i in range(16)])
    _bad_evidence(group, evidence_key, proof_key, [1, made, app, device, None, None, []])
    valid("version 2 without statements", statements=[[], None, None, None])
    valid("version 2 with statements", statements=[["beta", "kiosk 7"], "debian", "12", "floor 3"])
    valid(
        "version 2 with claims and properties of both kinds",
        subject="com.example.lock",
        version=[1, 2, 300],
        properties=("debugger",),
        statements=[["debugger"], None, "12.1", ""],
    )
    valid(
        "16 app properties of 128 bytes, and texts as long as they may be",
        ("Boundary",),
        statements=[[f"p{i:02}" + "x" * 125 for i in range(16)], "\u00e9" * 32, "v" * 64, " ~" * 64],
    )
    _bad_statements(group, evidence_key, [2, made, app, device, None, None, [], ["beta"], "debian", "12", "user"])


def _bad_evidence(group, evidence_key, proof_key, base):
    _, made, app, device, *_ = base

    def mac(elements, key=evidence_key):
        return hmac_sha256(key, b"holdfast/1 evidence\x00" + cbor.encode(elements))

    def invalid(comment, flag, elements, *, key=evidence_key, code=None):
        group.invalid(
            comment,
            flag,
            evidenceKey=evidence_key,
            evidence=cbor.encode([*elements, mac(elements, key) if code is None else code]),
        )

    def changed(comment, flag, index, value):
        invalid(comment, flag, [*base[:index], value, *base[index + 1 :]])

    invalid("under the measurement proof key", "WrongMac", base, key=proof_key)
    invalid("under the measurement proof key twice", "WrongMac", base, key=proof_key * 2)
    invalid("under another evidence key", "WrongMac", base, key=pin("evidence/other", 32))
    good = mac(base)
    for position in (0, 31):
        flipped = bytearray(good)
        flipped[position] ^= 1
        invalid(f"byte {position} of the MAC changed", "WrongMac", base, code=bytes(flipped))
    invalid("the MAC over all eight elements", "WrongMac", base, code=mac([*base, bytes(32)]))
    invalid("the MAC without its label", "WrongMac", base, code=hmac_sha256(evidence_key, cbor.encode(base)))
    for size in (0, 31, 33):
        invalid(f"a MAC of {size} bytes", "WrongSize", base, code=(good + good)[:size])
    invalid("a MAC as text", "WrongType", base, code="m" * 32)
    for version in (0, 2):
        changed(f"version {version}", "WrongVersion", 0, version)
    changed("a configuration as text", "WrongType", 1, "c")
    changed("a configuration cut short", "Truncated", 1, made[:-1])
    changed("an app component is missing", "ComponentList", 2, app[1:])
    changed("app components in reverse", "ComponentList", 2, app[::-1])
    changed("an app component twice", "ComponentList", 2, [app[0], *app])
    changed("device components as app components", "ComponentList", 2, device)
    changed("an id with a digest of 31 bytes", "WrongSize", 3, [[device[0][0], device[0][1][:31]], *device[1:]])
    changed("a component of three elements", "WrongCount", 3, [[*device[0], 0], *device[1:]])
    changed("an empty name", "WrongSize", 4, "")
    changed("a name of 65 bytes", "WrongSize", 4, "x" * 65)
    changed("a name as bytes", "WrongType", 4, b"app")
    changed("a version of two numbers", "WrongCount", 5, [1, 2])
    changed("a version as text", "WrongType", 5, "1.2.3")
    changed("a negative version", "WrongType", 5, [1, 2, -3])
    changed("a version above 2^53 - 1", "IntegerTooLarge", 5, [2**53, 0, 0])
    changed("properties as null", "WrongType", 6, None)
    changed("17 properties", "WrongCount", 6, [f"p{i:02}" for i in range(17)])
    changed("a property of 33 bytes", "TextTooLong", 6, ["x" * 33])
    changed("an empty property", "UnsortedProperties", 6, [""])
    changed("properties out of order", "UnsortedProperties", 6, ["debugger", "agent"])
    changed("a property twice", "UnsortedProperties", 6, ["agent", "agent"])
    invalid("an element too few", "WrongCount", base[:6])
    invalid("an element too many", "WrongCount", [*base, None])
    whole = cbor.encode([*base, good])
    group.invalid("cut by one byte", "Truncated", evidenceKey=evidence_key, evidence=whole[:-1])
    group.invalid("empty", "Truncated", evidenceKey=evidence_key, evidence=b"")
    group.invalid("one byte too many", "TrailingBytes", evidenceKey=evidence_key, evidence=whole + b"\x00")


def _bad_statements(group, evidence_key, base):
    def invalid(comment, flag, elements, *, covered=None):
        code = hmac_sha256(
            evidence_key, b"holdfast/1 evidence\x00" + cbor.encode(elements if covered is None else covered)
        )
        group.invalid(comment, flag, evidenceKey=evidence_key, evidence=cbor.encode([*elements, code]))

    def changed(comment, flag, index, value):
        invalid(f"version 2 with {comment}", flag, [*base[:index], value, *base[index + 1 :]])

    invalid("version 1 with statements", "WrongVersion", [1, *base[1:]])
    invalid("version 2 with the elements of version 1", "WrongVersion", base[:7])
    invalid("version 3", "WrongVersion", [3, *base[1:]])
    invalid("version 2, an element too few", "WrongCount", base[:10])
    invalid("version 2, an element too many", "WrongCount", [*base, None])
    invalid("version 2 with the MAC over the elements of version 1", "WrongMac", base, covered=base[:7])
    invalid("version 2 with the MAC of version 1", "WrongMac", base, covered=[1, *base[1:7]])
    for index in range(7, 11):
        other = [*base[:index], ["alpha"] if index == 7 else "other", *base[index + 1 :]]
        invalid(f"version 2 with element {index} changed after the MAC", "WrongMac", base, covered=other)
    changed("app properties as null", "WrongType", 7, None)
    changed("17 app properties", "WrongCount", 7, [f"p{i:02}" for i in range(17)])
    changed("an app property of 129 bytes", "TextTooLong", 7, ["x" * 129])
    changed("an empty app property", "UnsortedProperties", 7, [""])
    changed("app properties out of order", "UnsortedProperties", 7, ["b", "a"])
    changed("an app property twice", "UnsortedProperties", 7, ["a", "a"])
    changed("an app property as bytes", "WrongType", 7, [b"a"])
    for index, name in ((8, "a system id"), (9, "a system version")):
        changed(f"{name} of 65 bytes", "WrongSize", index, "x" * 65)
        changed(f"{name} that is empty", "WrongSize", index, "")
        changed(f"{name} as a number", "WrongType", index, 12)
    changed("a user property of 129 characters", "WrongSize", 10, "x" * 129)
    changed("a user property with a line end", "UserProperty", 10, "a\nb")
    changed("a user property with DEL", "UserProperty", 10, "a\x7f")
    changed("a user property that is not ASCII", "UserProperty", 10, "\u00e9")
    changed("a user property as bytes", "WrongType", 10, b"user")


def proof_file():
    file = VectorFile(
        "HMAC-SHA-256",
        "proof_schema_v1.json",
        [
            "A proof is HMAC-SHA-256 over nonce and measurement, keyed by the measurement proof key.",
            "The same function proves the integrity and the device measurement.",
        ],
        NOTES,
    )
    _proofs(file.group("Proof", _check_proof))
    return file


def _check_proof(*, mpk, nonce, proof, **value):
    require(measurement.proof(mpk, nonce, value["measurement"]) == proof, "WrongProof")


def _proofs(group):
    def valid(comment, mpk, nonce, value, flags=("Normal",)):
        group.valid(comment, flags, mpk=mpk, nonce=nonce, measurement=value, proof=hmac_sha256(mpk, nonce + value))

    for number in range(8):
        valid(
            f"pseudo-random {number}",
            pin(f"proof/mpk/{number}", 16),
            pin(f"proof/nonce/{number}", 16),
            pin(f"proof/value/{number}", 32),
        )
    mpk, nonce, im, dm = pin("proof/mpk", 16), pin("proof/nonce", 16), pin("proof/im", 32), pin("proof/dm", 32)
    valid("integrity measurement", mpk, nonce, im)
    valid("device measurement under the same nonce", mpk, nonce, dm)
    for name, fill in (("zero", b"\x00"), ("set", b"\xff")):
        valid(f"all bits {name}", fill * 16, fill * 16, fill * 32, ("Boundary",))
    valid("nonce with its top bit set", mpk, b"\x80" + nonce[1:], im, ("Boundary",))
    valid("nonce with its top bit clear", mpk, b"\x7f" + nonce[1:], im, ("Boundary",))
    valid("proof key that ends in a zero byte", mpk[:15] + b"\x00", nonce, im, ("Boundary",))

    good = hmac_sha256(mpk, nonce + im)

    def invalid(comment, flag, **changes):
        group.invalid(comment, flag, **{**dict(mpk=mpk, nonce=nonce, measurement=im, proof=good), **changes})

    for bit in (0, 7, 128, 255):
        flipped = bytearray(good)
        flipped[bit // 8] ^= 0x80 >> bit % 8
        invalid(f"bit {bit} flipped", "WrongProof", proof=bytes(flipped))
    invalid("first 16 bytes only", "WrongProof", proof=good[:16])
    invalid("first 31 bytes only", "WrongProof", proof=good[:31])
    invalid("one byte more", "WrongProof", proof=good + b"\x00")
    invalid("empty proof", "WrongProof", proof=b"")
    invalid("zero proof", "WrongProof", proof=bytes(32))
    invalid("measurement before nonce", "WrongProof", proof=hmac_sha256(mpk, im + nonce))
    invalid("integrity in place of the device measurement", "WrongProof", measurement=dm)
    invalid("device in place of the integrity measurement", "WrongProof", proof=hmac_sha256(mpk, nonce + dm))
    invalid("another nonce", "WrongProof", nonce=pin("proof/nonce/other", 16))
    invalid("another proof key", "WrongProof", mpk=pin("proof/mpk/other", 16))
    invalid("plain hash of the concatenation", "WrongProof", proof=sha256(mpk + nonce + im))
    invalid("keyed by the nonce", "WrongProof", proof=hmac_sha256(nonce, mpk + im))
    invalid("keyed by the measurement", "WrongProof", proof=hmac_sha256(im, nonce + mpk))
    invalid("nonce left out", "WrongProof", proof=hmac_sha256(mpk, im))
    invalid("measurement itself", "WrongProof", proof=im)
    for size in (0, 15, 17, 32):
        other = pin("proof/size", size)
        invalid(f"nonce of {size} bytes", "WrongSize", nonce=other, proof=hmac_sha256(mpk, other + im))
        invalid(f"proof key of {size} bytes", "WrongSize", mpk=other, proof=hmac_sha256(other, nonce + im))
    invalid(
        "proof key without its last zero byte, which HMAC pads back",
        "WrongSize",
        mpk=mpk[:15],
        proof=hmac_sha256(mpk[:15] + b"\x00", nonce + im),
    )
    for size in (0, 16, 31, 33, 64):
        other = pin("proof/value/size", size)
        invalid(f"measurement of {size} bytes", "WrongSize", measurement=other, proof=hmac_sha256(mpk, nonce + other))
    moved = nonce + im
    invalid("one byte moved from measurement to nonce", "WrongSize", nonce=moved[:17], measurement=moved[17:])
