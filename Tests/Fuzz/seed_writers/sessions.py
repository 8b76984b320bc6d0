"""Sessions with a device that believes everything: every id and every hash is zero."""

import json

from holdfast_peer import cbor, claims, cose, issuer, session

from .shared import SIGNER, TEST_TIME, ZEROS, framed
from .tokens import in_cose


def add_sessions(seeds):
    token_claims = {
        **issuer.fresh_claims(bytes(16), issuedAt=TEST_TIME, expires=TEST_TIME + 3600),
        "tokenId": bytes(16),
        "integrity": ZEROS,
        "device": ZEROS,
        "proofKey": bytes(16),
    }
    tokens = []
    trusted, foreign = (bytes(8), bytes([1]) * 8), (bytes([2]) * 8, bytes([3]) * 8)
    restrictions = {}, {"maximumUses": 1}, {"commands": ["unlock"]}, {"version": [1, 2, 3]}, {"user": "ann"}
    for changes, (signer, authenticator) in [*((changes, trusted) for changes in restrictions), ({}, foreign)]:
        payload = claims.to_cbor({**token_claims, **changes})
        signed = cbor.Tag(18, [cose.sign_protected(signer), {}, payload, bytes(64)])
        tagged = cbor.Tag(17, [cose.mac_protected(authenticator), {}, payload, ZEROS])
        for content in (cbor.encode(signed), cbor.encode(tagged), payload):
            tokens.append(in_cose(content))
    rounds = []
    requests = [session.request(name) for name in ("unlock", "lock", "status", "configure", "open-safe", "other")]
    requests += [
        session.request("unlock", number=7),
        session.request("unlock", ["a", "b"], number=8),
        session.request("configure", otp=("ann", "000000")),
        session.request("open-safe", otp=("ann", "000000"), seal=("ann", "00000000")),
        session.request("user-sync", ["ann"]),
        session.request("host-code", ["ann", "0123456789abcdef"]),
        session.request("user-sync", ["nobody"]),
    ]
    for number, token in enumerate(tokens):
        for index, plain in enumerate(requests):
            if number and index not in (0, 8, 9):
                continue
            head = session.message_2_head(bytes(16), session.COSE, token)
            rounds.append(session.message_2(head, ZEROS, ZEROS, plain + bytes(16)))
    reference = session.message_2_head(bytes(16), 0, bytes(16))
    rounds.append(session.message_2(reference, ZEROS, ZEROS, requests[0] + bytes(16)))
    rounds.append(session.message_2(reference, None, ZEROS, requests[2] + bytes(16)))
    rounds.append(session.message_2(reference, None, None, requests[2] + bytes(16)))
    compatible = cbor.encode([12, bytes(16), 1, tokens[0], ZEROS, ZEROS, "open-safe"])
    users = [
        cbor.encode([21, SIGNER.point, ZEROS]),
        cbor.encode([23, ZEROS]),
        cbor.encode([25, ZEROS]),
    ]
    user_commands = [
        session.request("user-state", ["ann"]), session.request("user-state"), session.request("user-state", ["nobody"]),
        session.request("seal-request", ["ann", "open-safe"]), session.request("seal-request", ["ann"]),
        session.request("open-safe", otp=("ann", "111111"), seal=("ann", "11111111")),
        session.request("configure", otp=("bob", "000000")),
    ]  # fmt: skip
    head = session.message_2_head(bytes(16), session.COSE, tokens[0])
    for kind in (0, 4, 8, 12, 64):
        commands = [session.message_2(head, ZEROS, ZEROS, plain + bytes(16)) for plain in user_commands]
        seeds.add("session-device", *(bytes([kind]) + framed(message) for message in commands))
        seeds.add("session-device", bytes([kind]) + framed(*commands[:5], *[commands[5]] * 8))
    # Tokens of an issuer that is not trusted, and codes before they end, and in the second in which they do.
    for kind in range(4):
        for token in tokens[-3:]:
            message = session.message_2(
                session.message_2_head(bytes(16), session.COSE, token), ZEROS, ZEROS, requests[0] + bytes(16)
            )
            seeds.add_at_limit("session-device", bytes([kind]) + framed(message))
    for kind in (0, 16, 48, 64, 80, 112, 128, 192, 208, 240):
        seeds.add_at_limit("session-device", bytes([kind]) + framed(*users[:2]), bytes([kind]) + framed(users[2]))
    many = [cbor.encode([12, bytes([n] * 16), 1, tokens[0], ZEROS, ZEROS, "user-sync"]) for n in range(10)]
    seeds.add("session-device", b"\x00" + framed(*many), b"\x00" + framed(many[0], many[0]))
    for kind in range(0, 256, 5):
        for number, message in enumerate(rounds + [compatible]):
            if (number + kind) % 7 == 0:
                seeds.add("session-device", bytes([kind]) + framed(message))
        seeds.add("session-device", bytes([kind]) + framed(users[0], users[1]), bytes([kind]) + framed(users[2]))
        seeds.add("session-device", bytes([kind]) + framed(rounds[0], rounds[-3], rounds[6], rounds[6], rounds[-1]))
        seeds.add("session-device", bytes([kind]) + framed(rounds[11], rounds[8], rounds[8], rounds[9], rounds[9]))

    challenge = session.message_1(bytes(16), b"\x80" * 16, bytes(8), 0, TEST_TIME)
    replies = [
        session.message_3(0, session.result(b"unlocked") + bytes(16)),
        session.message_3(5, session.result() + bytes(16)),
        session.message_3(7, session.result(missing=4) + bytes(16)),
        session.message_3(11, session.result(b"notInPolicy") + bytes(16)),
        session.message_3(0, session.result(b"x", 1, 2, 3, 4, 5, {9: [1, {2: b"x"}]}) + bytes(16)),
        session.message_3(4, None),
        session.message_3(14, None),
    ]
    for first in (b"\x00", b"\x01"):
        seeds.add("session-prover", *(first + framed(challenge, reply) for reply in replies))
        seeds.add("session-prover", first + framed(challenge, replies[5], challenge, replies[1], challenge, replies[2]))
        seeds.add("session-prover", first + framed(replies[6]), first + framed(replies[0]))
    grants = [
        cbor.encode({1: "ann", 2: TEST_TIME, 3: [[1, [1, 1, 6]], [2, [3, "OCRA-1:HOTP-SHA256-8:QH64-T1M"]]], 4: 16}),
        cbor.encode({1: "ann", 2: TEST_TIME, 3: [[1, [2, 1, 6, 30]]], 4: 64, 5: [6, 1]}),
    ]
    seeds.add(
        "messages", *users, *grants, *replies, challenge, session.result(b"x", 1, 2, 3, 4, 5, {9: [1, {2: b"x"}]})
    )
    for grant in grants:
        answer = cbor.encode([22, SIGNER.point, grant + bytes(16)])
        seeds.add("session-user", b"\x00" + framed(challenge, answer, cbor.encode([24, ZEROS])))
    seeds.add(
        "session-user", b"\x01" + framed(challenge, cbor.encode([26, ZEROS])), b"\x00" + framed(challenge, replies[6])
    )
    seeds.add("messages", "lock", "unlock", "status", "configure", "open-safe", "fly")


def add_codes(seeds):
    """Rounds with real codes: what is asked, which codes are given, their distance from the next ones, and a pause."""
    right = 1 | 1 << 2
    for kind in (0, 1, 2, 4, 5, 8, 0x80):
        for command in range(16):
            seeds.add("codes", bytes([kind, command, right, 0, 0]))
        for command in (0, 1, 2, 3):
            given = lambda codes, distance=0, pause=0, bits=0, command=command: bytes(
                [command | bits, codes, distance & 0xFF, pause]
            )
            challenge = bytes([8, 0, 0, 0])
            # Each code twice, a used one, an old one, refusals, repeated numbers, and a lockout with its end.
            rounds = [given(right), given(right, -1), given(right), given(right, -2), given(right, 2), given(right, -9)]
            seeds.add("codes", bytes([kind]) + challenge + b"".join(rounds))
            for distance in range(-4, 5):
                seeds.add("codes", bytes([kind]) + given(right) + given(right, distance, 60))
            refusals = [given(2 << 2 | 1), given(2 << 2 | 1, 0, 31), given(2 << 2 | 1, -1), given(right | 0x60)]
            seeds.add("codes", bytes([kind]) + challenge + b"".join(refusals))
            numbered = [
                given(codes | 0x20 | number << 6) for number in (2, 2, 1, 3, 0) for codes in (right, 2 << 2 | 1)
            ]
            seeds.add("codes", bytes([kind]) + challenge + b"".join(numbered))
            wrong = given(3 | 3 << 2)
            seeds.add(
                "codes", bytes([kind]) + challenge + wrong + given(2 << 2 | 1, 0, 200) + given(2 << 2 | 1, 0, 200)
            )
            seeds.add("codes", bytes([kind]) + challenge + given(right, 0, 60, 0x80), bytes([kind]) + 2 * challenge)
            seeds.add(
                "codes", bytes([kind]) + given(right, 40) + given(right, 41), bytes([kind]) + given(right, 5, 0, 0x60)
            )
            other = bytes([(command + 1) % 4, right | 0x20 | 2 << 6, 1, 0])
            seeds.add("codes", bytes([kind]) + given(right | 0x20 | 2 << 6) + other)
            later = given(right, 0, 0, 0x60) + given(right, 1) + given(right, 1, 255, 0xE0)
            seeds.add("codes", bytes([kind]) + later, bytes([kind]) + given(right, 0, 255, 0x80) * 8)
            seeds.add("codes", bytes([kind]) + wrong * 8 + given(right, 0, 200) + given(right, 0, 200, 0x80))
            seeds.add("codes", bytes([kind]) + given(right, 40) + given(right, 40) + given(right, 60, 0, 0x80))
            for bits in (0x10, 0x20, 0x30, 0x40, 0x50, 0x60, 0x70):
                seeds.add(
                    "codes", bytes([kind]) + given(right, 0, 0, bits) + given(right | 0x10, 0, 255, bits | 0x80) * 9
                )


def add_audit_entries(seeds):
    kid, digest = bytes(8), ZEROS
    details = [
        [0, 0, "unlock", kid, bytes(16), "app", 0], [16, 0, "unlock", kid, bytes(16), "app", 0, "ann"],
        [1, [[1, 5], [13, 2]]], [2, bytes(16)], [3, 1], [4], [5, kid], [6, kid], [7, digest], [7, None], [8, 1, 2],
        [9, kid, 1, 2], [10, bytes(16)], [11, 1, "ann"], [11, 2, "ann"], [12, "ann"], [13, "ann"], [14, "ann"],
        [15, "ann"], [17, 2, None, None, 3], [17, 2, kid, bytes(16), 3], [18, 3, digest], [19, 1, 0, digest],
        [19, 1, 0, "text"], [20, 1, 0, "text"], [21, "ann", 3], [22, kid], [22, None], [23, 1, "text"],
        [24, kid, bytes(16), 5], [25, kid, 7], [26, 3],
        *([kind, 0, "unlock", kid, bytes(16), "app", 0, *user, by, [1, 2, 3]] for by in (None, 1, 5) for kind, *user in ([0], [16, "ann"])),
    ]  # fmt: skip
    entries = [cbor.encode([1, TEST_TIME, *detail]) for detail in details]
    seeds.add("messages", *entries)
    lines = [{"holdfast_audit": 1, "device_id": "00" * 16, "after": 0, "head": "00" * 32}]
    lines += [{"entry": entry.hex()} for entry in entries]
    lines += [{"through": len(entries), "head": "00" * 32}]
    seeds.add("audit-archive", "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines))
    seeds.add("audit-archive", "".join(json.dumps(lines[i], separators=(",", ":")) + "\n" for i in (0, 1, -1)))
