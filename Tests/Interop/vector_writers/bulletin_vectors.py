"""bulletin.json: bulletins with their claims, the messages that deliver them, lists with their states, and ids of groups."""

from holdfast_peer import bulletins, cbor
from holdfast_peer.cbor import Encoded, encode
from holdfast_peer.keys import PrivateKey
from holdfast_peer.refusal import require

from .bulletin_cases import CLAIMS, GROUPS, TIME, Writer, write_bulletins
from .notes import NOTES
from .token_cases import DEVICE, DEVICE_ID, ISSUER, LARGEST
from .vector_file import VectorFile, pin, plain


def bulletin_file():
    file = VectorFile(
        "HoldfastBulletin",
        "bulletin_schema_v1.json",
        [
            "Bulletin: a bulletin, signed or sealed, at a device that trusts one issuer. Its number is not compared, and its time is not either.",
            "BulletinMessage and BulletinAnswer: one message to a device, and one answer.",
            "BulletinState: the CBOR of a list of audiences and numbers, and its state. BulletinGroup: the name of a group, and its id.",
        ],
        NOTES,
        name="bulletin.json",
    )
    inputs = {
        "devicePrivateKey": DEVICE.scalar,
        "devicePublicKey": DEVICE.point,
        "deviceKid": DEVICE.kid,
        "deviceId": DEVICE_ID,
        "issuerPublicKey": ISSUER.point,
        "issuerKid": ISSUER.kid,
        "groups": GROUPS,
    }
    write_bulletins(Writer(file.group("Bulletin", lambda **test: check_bulletin(**inputs, **test), **inputs)))
    _messages(file.group("BulletinMessage", CHECKS["BulletinMessage"]))
    _answers(file.group("BulletinAnswer", CHECKS["BulletinAnswer"]))
    _states(file.group("BulletinState", CHECKS["BulletinState"]))
    _groups(file.group("BulletinGroup", CHECKS["BulletinGroup"]))
    return file


def check_bulletin(
    *, devicePrivateKey, devicePublicKey, deviceKid, deviceId, issuerPublicKey, issuerKid, groups, bulletin, claims=None
):
    device = PrivateKey(devicePrivateKey)
    assert (device.point, device.kid) == (devicePublicKey, deviceKid)
    audiences = [deviceId, *map(bulletins.group_id, groups)]
    found, kid = bulletins.open_bulletin(bulletin, device, [issuerPublicKey], audiences)
    assert kid == issuerKid and (claims is None or plain(found) == plain(claims))


def check_state(*, list, state):
    require(bulletins.state_of(bulletins.check_list(cbor.decode(list))) == state, "WrongState")


def check_group(*, name, audience):
    require(bulletins.group_id(name) == audience, "WrongGroup")


CHECKS = {
    "Bulletin": check_bulletin,
    "BulletinMessage": lambda message: bulletins.parse_mail(message),
    "BulletinAnswer": lambda message: bulletins.parse_answer(message),
    "BulletinState": check_state,
    "BulletinGroup": check_group,
}


def _messages(group):
    good = bulletins.sign(CLAIMS, ISSUER)

    def valid(comment, bulletin, flags=("Normal",)):
        group.valid(comment, flags, message=bulletins.deliver(bulletin))

    def invalid(comment, flag, message):
        group.invalid(comment, flag, message=message if isinstance(message, bytes) else encode(message))

    valid("a bulletin", good)
    valid("a question for the list", None)
    valid("no byte", b"", ("Boundary",))
    valid("3072 bytes", pin("bulletin/long", 3072), ("Boundary",))
    valid("bytes that are no bulletin", b"\xff" * 24, ("Boundary",))
    invalid("3073 bytes", "TooLarge", [7, pin("bulletin/long", 3073)])
    invalid("one element", "WrongCount", [7])
    invalid("three elements", "WrongCount", [7, good, None])
    for comment, value in (("text", "x"), ("a number", 0), ("a list", [good]), ("a map", {}), ("true", True)):
        invalid(f"{comment} as a bulletin", "WrongType", [7, value])
    invalid("undefined as a bulletin", "SimpleValue", [7, Encoded(b"\xf7")])
    invalid("a bulletin that is not wrapped", "UnknownTag", [7, Encoded(good)])
    invalid("cut short", "Truncated", encode([7, good])[:-1])
    invalid("cut before the bulletin", "Truncated", encode([7, good])[:2])
    invalid("a byte behind it", "TrailingBytes", encode([7, good]) + b"\x00")
    invalid("of indefinite length", "IndefiniteLength", b"\x9f\x07\xf6\xff")
    invalid("a bulletin in chunks", "IndefiniteLength", b"\x82\x07\x5f\x41\x01\xff")
    invalid("the length in two bytes", "NonMinimalInteger", b"\x98\x02\x07\xf6")
    invalid("the number in two bytes", "NonMinimalInteger", b"\x82\x18\x07\xf6")
    invalid("the length of the bulletin in two bytes", "NonMinimalInteger", b"\x82\x07\x58\x01\x00")


def _list(*names, number=1000 * TIME):
    return sorted([bulletins.group_id(name), number + index] for index, name in enumerate(names))


def _answers(group):
    def valid(comment, answer, flags=("Normal",)):
        group.valid(comment, flags, message=encode(answer))

    def invalid(comment, flag, message):
        group.invalid(comment, flag, message=message if isinstance(message, bytes) else encode(message))

    for number, name in enumerate(bulletins.RESULTS):
        valid(name, [8, number])
    valid("a list", [8, 0, _list("a", "b")])
    valid("a list of one", [8, 0, [[DEVICE_ID, 0]]], ("Boundary",))
    valid("a list of nine", [8, 0, _list(*"abcdefghi")], ("Boundary",))
    valid("the largest number", [8, 0, [[DEVICE_ID, LARGEST]]], ("Boundary",))
    for number in (7, 8, 255, 256, LARGEST):
        invalid(f"result {number}", "UnknownResult", [8, number])
    for comment, flag, value in (
        ("negative", "WrongType", -1),
        ("null", "WrongType", None),
        ("as text", "WrongType", "0"),
        ("2^53", "IntegerTooLarge", 2**53),
    ):
        invalid(f"result {comment}", flag, [8, value])
    for number in range(1, 7):
        invalid(f"a list with result {number}", "ListWithResult", [8, number, _list("a")])
    invalid("no result", "WrongCount", [8])
    invalid("four elements", "WrongCount", [8, 0, _list("a"), 0])
    invalid("an empty list", "WrongCount", [8, 0, []])
    invalid("a list of ten", "WrongCount", [8, 0, _list(*"abcdefghij")])
    invalid("a list in descending order", "UnsortedEntries", [8, 0, _list("a", "b")[::-1]])
    invalid("an audience twice", "DuplicateEntry", [8, 0, [[DEVICE_ID, 1], [DEVICE_ID, 2]]])
    for comment, flag, row in (
        ("an audience of 15 bytes", "WrongSize", [DEVICE_ID[:15], 1]),
        ("an audience as text", "WrongType", [DEVICE_ID.hex()[:16], 1]),
        ("a row without a number", "WrongCount", [DEVICE_ID]),
        ("a row of three", "WrongCount", [DEVICE_ID, 1, 2]),
        ("a negative number", "WrongType", [DEVICE_ID, -1]),
        ("a number 2^53", "IntegerTooLarge", [DEVICE_ID, 2**53]),
        ("a row as a map", "WrongType", {1: 2}),
    ):
        invalid(comment, flag, [8, 0, [row]])
    invalid("null as a list", "WrongType", [8, 0, None])
    invalid("a map as a list", "WrongType", [8, 0, {DEVICE_ID: 1}])
    invalid("a message to a device", "WrongMessage", [7, None])
    invalid("a verdict", "WrongMessage", [3, 0, None])
    invalid("cut short", "Truncated", encode([8, 0, _list("a")])[:-1])
    invalid("a byte behind it", "TrailingBytes", encode([8, 0]) + b"\x00")
    invalid("of indefinite length", "IndefiniteLength", b"\x9f\x08\x00\xff")
    invalid("the result in two bytes", "NonMinimalInteger", b"\x82\x08\x18\x00")


def _states(group):
    def valid(comment, rows, flags=("Normal",)):
        group.valid(comment, flags, list=encode(rows), state=bulletins.state_of(rows))

    def invalid(comment, flag, rows, state=None):
        data = rows if isinstance(rows, bytes) else encode(rows)
        group.invalid(comment, flag, list=data, state=state or bulletins.sha256(STATE_DOMAIN + data)[:8])

    two = _list("a", "b")
    valid("a device without groups", [[DEVICE_ID, 1000 * TIME]])
    valid("a device and its groups", bulletins.list_of([DEVICE_ID, *map(bulletins.group_id, GROUPS)], {DEVICE_ID: 5}))
    valid("nothing taken yet", [[DEVICE_ID, 0]], ("Boundary",))
    valid("a device with eight groups", _list(*"abcdefghi"), ("Boundary",))
    valid("largest numbers", [[audience, LARGEST] for audience, _ in two], ("Boundary",))
    right = bulletins.state_of(two)
    invalid("another number", "WrongState", [[two[0][0], two[0][1] + 1], two[1]], right)
    invalid("another audience", "WrongState", [two[0], [b"\xff" * 16, two[1][1]]], right)
    invalid("a row less", "WrongState", two[:1], right)
    invalid("a bit of the state changed", "WrongState", two, right[:7] + bytes([right[7] ^ 1]))
    invalid("without its label", "WrongState", two, bulletins.sha256(encode(two))[:8])
    invalid("the label without its end", "WrongState", two, bulletins.sha256(STATE_DOMAIN[:-1] + encode(two))[:8])
    invalid("the end of the hash", "WrongState", two, bulletins.sha256(STATE_DOMAIN + encode(two))[-8:])
    invalid("in descending order", "UnsortedEntries", two[::-1])
    invalid("an audience twice", "DuplicateEntry", [two[0], two[0]])
    invalid("an empty list", "WrongCount", [])
    invalid("ten rows", "WrongCount", _list(*"abcdefghij"))
    invalid("a byte behind it", "TrailingBytes", encode(two) + b"\x00")


STATE_DOMAIN = b"holdfast/1 bulletins\x00"


def _groups(group):
    def valid(name, flags=("Normal",)):
        group.valid(repr(name), flags, name=name, audience=bulletins.group_id(name))

    for name in (*GROUPS, "North", "block 7, second floor", "\u00dcbungsraum"):
        valid(name)
    for name in ("n", "g" * 32, "\U0001f6aa" * 8):
        valid(name, ("Boundary",))
    for comment, name in (("no byte", ""), ("33 bytes", "g" * 33), ("17 characters in 34 bytes", "\u00fc" * 17)):
        audience = bulletins.sha256(GROUP_DOMAIN + name.encode())[:16]
        group.invalid(f"a name of {comment}", "GroupName", name=name, audience=audience)
    north = bulletins.group_id("north")
    for comment, name, audience in (
        ("another name", "south", north),
        ("other letters", "NORTH", north),
        ("a space behind the name", "north ", north),
        ("without its label", "north", bulletins.sha256(b"north")[:16]),
        ("the label without its end", "north", bulletins.sha256(GROUP_DOMAIN[:-1] + b"north")[:16]),
        ("the end of the hash", "north", bulletins.sha256(GROUP_DOMAIN + b"north")[16:]),
        ("a bit changed", "north", bytes([north[0] ^ 1]) + north[1:]),
    ):
        group.invalid(comment, "WrongGroup", name=name, audience=audience)


GROUP_DOMAIN = b"holdfast/1 group\x00"
