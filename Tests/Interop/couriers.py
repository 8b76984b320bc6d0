"""An issuer that writes bulletins, the device that they are for, and provers of this peer that deliver them and carry pages."""

import json
import secrets
import time

from devices import LinuxDevice, expect_status
from holdfast_peer import bulletins, cbor, pages, session, transport
from holdfast_peer.keys import jwk
from holdfast_peer.session import COSE

GROUPS = ("north", "doors")
MOST_MESSAGES = 8


class VisitedDevice(LinuxDevice):
    """A device in two groups, whose policy allows compatibility rounds of `unlock` and lets one issuer introduce keys."""

    def __init__(self, holdfast, folder):
        super().__init__(holdfast, folder, *(word for name in GROUPS for word in ("--group", name)))

    def prepare(self):
        super().prepare()
        policy = self.device_folder / "policy.json"
        rules = json.loads(policy.read_text())
        rules["commands"]["unlock"]["compatibility"] = True
        rules["introducers"] = [self.issuer.key.kid.hex()]
        policy.write_text(json.dumps(rules))

    @property
    def audiences(self):
        """The device id, and the ids of the groups."""
        return [self.descriptor.device_id, *map(bulletins.group_id, GROUPS)]

    def trust(self, issuer, *more):
        file = self.folder / f"{issuer.key.kid.hex()}.jwk"
        file.write_text(json.dumps(jwk(issuer.key.point)))
        return self.owner("trust", file, *more)

    def trusted(self):
        """What the owner is shown of each issuer, by key id."""
        return {each["kid"]: each for each in json.loads(self.owner("show", "--all", "--json").stdout)["issuers"]}

    def audit(self):
        return json.loads(self.owner("audit", "--json").stdout)["entries"]

    def floor(self):
        return json.loads(self.owner("floor", "--json").stdout)

    def hand_in(self, bulletin):
        """What `device bulletin` makes of one in a file: the exit status, and what it prints."""
        file = self.folder / "bulletin.cose"
        file.write_bytes(bulletin)
        done = self.owner("bulletin", file, "--json")
        return done.returncode, json.loads(done.stdout)


class Press:
    """An issuer that writes bulletins for a device, and knows the numbers that the device has."""

    def __init__(self, device, issuer=None):
        self.device, self.issuer = device, issuer or device.issuer
        self.numbers = {}

    def claims(self, audience=None, **changes):
        """The claims of the next bulletin for the device, or for one of its groups."""
        audience = audience or self.device.descriptor.device_id
        now, last = int(time.time()), self.numbers.get(audience, 0)
        number = max(1000 * now, last + 1)
        return {"number": number, "predecessor": last, "issuedAt": now, "audience": audience, **changes}

    def sign(self, claims):
        return bulletins.sign(claims, self.issuer.key)

    def seal(self, claims, point=None):
        return bulletins.seal(self.sign(claims), point or self.device.descriptor.point)

    def note(self, claims):
        """The device has taken a bulletin."""
        self.numbers[claims["audience"]] = claims["number"]

    @property
    def list(self):
        return bulletins.list_of(self.device.audiences, self.numbers)

    @property
    def state(self):
        return bulletins.state_of(self.list)


class Courier:
    """A prover with a token of an issuer, which delivers bulletins on its connection."""

    numbers = iter(range(1000 * int(time.time()), 2**53))

    def __init__(self, device, issuer=None, **claims):
        self.device = device
        self.prover = device.connect()
        self.grant = device.grant(COSE, issuer, **claims)

    def round(self, grant=None, command="status", **changes):
        """The outcome of a numbered round."""
        request = session.request(command, number=next(self.numbers))
        return self.prover.ask(grant or self.grant, command, request=request, **changes)

    def accepted(self):
        expect_status(self.round(), "accepted", "the courier's round")
        return self

    def send(self, message):
        """The answer to a message in place of M2, after which the challenge stays as it was."""
        self.prover.next_m1()
        self.prover.connection.send(message)
        return self.prover.connection.receive()

    def deliver(self, bulletin):
        """The result of a delivery."""
        result, rows = bulletins.parse_answer(self.send(bulletins.deliver(bulletin)))
        assert rows is None, "a list in answer to a bulletin"
        return result

    def page(self, start=0):
        """The sealed page of the log that begins with that entry; None if there is none."""
        return pages.parse_page(self.send(pages.ask(start)))

    def hand_over(self, receipt):
        """The result of a receipt."""
        result, rows = bulletins.parse_answer(self.send(pages.acknowledge(receipt)))
        assert rows is None, "a list in answer to a receipt"
        return result

    def ask(self):
        return bulletins.parse_answer(self.send(bulletins.ASK))[1]

    def take(self, press, bulletin, claims):
        """Delivers a bulletin that the device takes, after a round."""
        assert self.accepted().deliver(bulletin) == "taken", "the result"
        press.note(claims)

    def publish(self, press, audience=None, **contents):
        """Writes a bulletin, and delivers it. Its claims."""
        claims = press.claims(audience, **contents)
        self.take(press, press.sign(claims), claims)
        return claims

    def expect_malformed(self, message):
        """The message is answered with status 13, and the connection ends."""
        m3 = session.parse_message_3(self.send(message))
        assert (m3["status"], m3["sealed"]) == (session.STATUS["malformed"], None), "status and sealed part"
        self.expect_closed()

    def expect_closed(self):
        try:
            self.prover.connection.receive()
        except transport.Closed:
            return
        raise AssertionError("the connection stayed open")

    def close(self):
        self.prover.connection.close()


def ask_status(device, grant, **changes):
    """The name of the status of a round on a connection for it."""
    with (prover := device.connect()).connection:
        return session.NAMES[prover.ask(grant, **changes).status]


def compatibility_status(device, grant):
    """The name of the status of a compatibility round."""
    nonce = bytes([secrets.token_bytes(1)[0] & 0x7F]) + secrets.token_bytes(15)
    proofs = [session.proof(grant.proof_key, nonce, grant.claims[name]) for name in ("integrity", "device")]
    message = cbor.encode([12, nonce, grant.encoding, grant.token, *proofs, "unlock"])
    with (prover := device.connect()).connection:
        return session.NAMES[session.parse_message_3(prover.exchange(message))["status"]]


def revocation(grant, until=None):
    """The entry of a token that is revoked."""
    return [grant.claims["tokenId"], until or grant.claims["expires"]]


def introduction(issuer, start=None, end=None):
    """The entry of a key that is introduced, from some seconds ago for an hour unless told otherwise."""
    now, point = int(time.time()), issuer.key.point
    return [point[1:33], point[33:], start or now - 10, end or now + 3600]


MALFORMED_ABOUT_PAGES = (
    *([9], [9, -1], [9, None], [9, 0, 0], [9, 2**53]),
    *([11], [11, None], [11, b"", 0], [11, bytes(257)]),
    [10, None],
)


def expect_pages_once_each(connect, home):
    """Pages are for those who were accepted, once each, and leave the challenge as it was. `connect` makes a courier."""
    connect().expect_malformed(pages.ask())
    connect().expect_malformed(pages.acknowledge(bytes(10)))
    courier = connect().accepted()
    # In the middle of a round: the challenge is answered afterwards.
    assert home.take(courier.page())["after"] == 0
    assert courier.page() is None, "the page of this round is used up"
    assert session.NAMES[courier.round(command="open-nothing").status] == "commandRefused"
    assert courier.page() is None
    courier.accepted()
    assert courier.page(2**53 - 1) is None, "beyond the end"
