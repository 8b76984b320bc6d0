"""Flash that holds no device, or a damaged one, in a board that runs the firmware.

Such a device says so on its console, answers internal to all that it is asked, and goes on doing so; or it starts with all
that it knew. The command line reads each image as the board does.
"""

import random
from concurrent.futures import ThreadPoolExecutor

import pytest
from holdfast_peer import cbor, measurement, oath, session
from line import DENIED
from provisioned import FIRST_SLOT, FLASH, NAMES, PAGE, SECOND_SLOT, Lock, running

SLOT = 14 * PAGE
BLANK_PAGE, ZERO_PAGE = b"\xff" * PAGE, bytes(PAGE)
SECRET = bytes(range(20))
NONCE = bytes(range(16))
BOARDS = 2

BLANK, FOREIGN, NEWER, DAMAGED, HALF, FORGETFUL = (
    "the flash is blank",
    "not a device's",
    "a later version",
    "provisioned data is damaged",
    "partly provisioned",
    "the device's memory is damaged",
)

POLICY = """{"version": 1, "commands": {
  "unlock": {"factors": ["integrity", "device"], "compatibility": true},
  "configure": {"factors": ["integrity", "device", "otp"]}}}"""


def compatibility(grant):
    """An answer with a nonce of the prover's own, which is good once."""

    def proof(name):
        return measurement.proof(grant.proof_key, NONCE, grant.claims[name])

    return cbor.encode([12, NONCE, grant.encoding, grant.token, proof("integrity"), proof("device"), "unlock"])


class Stand:
    """An image of a device that has used things up, in both slots of its journal."""

    def __init__(self, owner):
        self.owner = owner
        (owner.folder / "secret").write_text(SECRET.hex())
        (owner.folder / "policy.json").write_text(POLICY)
        self.fresh, self.descriptor = self.make("flash.img")
        self.other, _ = self.make("other.img")
        self.lasting = owner.grant(self.descriptor)
        self.counted = owner.grant(self.descriptor, maximumUses=2)
        self.early, self.data, self.recorded = self.live()

    def make(self, name):
        image, descriptor = self.owner.provision(name, "--policy", "policy.json")
        self.owner.command_line.succeed(
            "device",
            "user",
            "add",
            "--firmware",
            image,
            "--otp",
            "hotp",
            "--otp-secret",
            "secret",
            "--seal",
            "none",
            "ann",
        )
        return image.read_bytes(), descriptor

    def live(self):
        """What its flash holds once a password, two uses and a nonce are used up, and once the journal has moved then; and an
        answer that was accepted."""
        with running(self.fresh, self.descriptor, "--count") as lock:
            prover = lock.prover()
            recorded = prover.ask(self.lasting, "unlock").m2
            first = lock.flash()[FIRST_SLOT : FIRST_SLOT + 32], lock.flash()[SECOND_SLOT : SECOND_SLOT + 32]
            self.use_up(prover)
            for _ in range(10):
                assert prover.ask(self.lasting, by_reference=True).status == 0, "status"
            early = lock.flash()
            # Until the other slot is in force.
            for _ in range(2000):
                if (lock.flash()[FIRST_SLOT : FIRST_SLOT + 32], lock.flash()[SECOND_SLOT : SECOND_SLOT + 32]) != first:
                    break
                assert prover.ask(self.lasting, by_reference=True).status == 0, "status"
            else:
                raise AssertionError("the journal does not move")
            prover.ask(self.lasting, by_reference=True)
            return early, lock.flash(), recorded

    def use_up(self, prover):
        for _ in range(2):
            assert prover.ask(self.counted).status == 0, "status of a use"
        assert self.password(prover) == "accepted", "status of a password"
        assert self.nonce(prover) == "accepted", "status of a nonce"

    def password(self, prover):
        request = session.request("configure", otp=("ann", oath.hotp(SECRET, 0)))
        return NAMES[prover.ask(self.lasting, request=request, by_reference=True).status]

    def nonce(self, prover):
        return NAMES[session.parse_message_3(prover.exchange(compatibility(self.lasting)))["status"]]

    def is_refused_by_host(self, data):
        """Whether the command line takes it for no device's."""
        with self.owner.image(data) as image:
            done = self.owner.command_line.run("device", "audit", "--verify", "--firmware", image)
        assert done.returncode in (0, 2), f"the command line ends with {done.returncode}"
        return done.returncode == 2

    # What a device has to do with an image.

    def expect_denied(self, data, text=None):
        with running(data, self.descriptor) as lock:
            self.deny(lock, text)

    def deny(self, lock, text=None):
        """The device says so, and answers internal to an empty frame, a recorded answer, and what is no message."""
        for _ in range(2):
            assert lock.line.begin(self.descriptor) == DENIED, "the answer to an empty frame"
        lock.expect_well()
        assert "everything is denied\n" in lock.console(), f"the console says {lock.console()!r}"
        assert text is None or text in lock.console(), f"the console does not say {text!r}, but {lock.console()!r}"
        for message in self.recorded, b"\x85", b"\xff" * 4096:
            lock.line.last = None
            lock.line.send(message)
            assert lock.line.receive() == DENIED, "the answer to a message"
        assert lock.statuses() == [], "rounds"

    def expect_intact(self, lock):
        """It knows all that it knew."""
        prover = lock.prover()
        assert NAMES[prover.ask(self.lasting, "unlock").status] == "accepted", "an honest prover's status"
        assert self.password(prover) == "otpRejected", "status of a used password"
        assert self.nonce(prover) == "deviceMismatch", "status of a used nonce"
        assert NAMES[prover.ask(self.counted).status] == "usesExhausted", "status of a used-up token"
        lock.expect_well()
        assert lock.statuses().count("accepted") == 1, "rounds that were accepted"

    def judge(self, data):
        """Whether the device starts with this, with all that it knew; it denies otherwise."""
        is_refused = self.is_refused_by_host(data)
        with running(data, self.descriptor) as lock:
            is_denied = lock.line.begin(self.descriptor) == DENIED
            assert is_denied == is_refused, "denied by the board, and refused by the command line"
            self.deny(lock) if is_denied else self.expect_intact(lock)
        return not is_denied


def words(data, position, *values):
    """`data` with these words, little-endian, from `position` on."""
    added = b"".join(value.to_bytes(4, "little") for value in values)
    return data[:position] + added + data[position + len(added) :]


def flipped(data, *bits):
    spoiled = bytearray(data)
    for bit in bits:
        spoiled[bit // 8] ^= 1 << bit % 8
    return bytes(spoiled)


def used_end(data, start, end):
    """Behind the last byte of a range that is not erased."""
    return start + len(data[start:end].rstrip(b"\xff"))


def on_boards(body, images):
    with ThreadPoolExecutor(BOARDS) as pool:
        return list(pool.map(body, images))


@pytest.fixture(scope="module")
def stand(owner):
    return Stand(owner)


def test_a_whole_image_knows_all_that_it_knew(stand):
    with running(stand.data, stand.descriptor) as lock:
        stand.expect_intact(lock)


def test_flash_that_is_no_devices_is_denied(stand):
    """Nothing, noise, and files of other kinds."""
    text = (b"All that glisters is not gold. " * FLASH)[:FLASH]
    images = [
        (b"", FOREIGN),
        (bytes(FLASH), FOREIGN),
        (b"\xff" * FLASH, BLANK),
        (random.Random(1).randbytes(FLASH), FOREIGN),
        (text, FOREIGN),
        (b'{"device_id": null}', FOREIGN),
        (Lock.firmware.read_bytes()[:FLASH], FOREIGN),
        (stand.data[PAGE:], BLANK),
        (stand.data[::-1], BLANK),
    ]
    on_boards(lambda image: stand.expect_denied(*image), images)


def test_a_half_provisioned_device_denies_everything(stand):
    owned, journal = stand.data[:FIRST_SLOT], stand.data[FIRST_SLOT:]
    body_end = used_end(stand.data, 0, FIRST_SLOT)
    images = [
        (owned + b"\xff" * len(journal), HALF),
        (owned, FORGETFUL),
        (b"\xff" * len(owned) + journal, BLANK),
        (bytes(len(owned)) + journal, FOREIGN),
        (stand.data[: body_end - 1] + b"\xff" + stand.data[body_end:], DAMAGED),
    ]
    for cut in 4, 8, 12, 40, body_end - 32, body_end - 4:
        images.append((stand.data[:cut] + b"\xff" * (len(owned) - cut) + journal, DAMAGED))
    # As they lie while the device is made: nothing is complete.
    complete = FIRST_SLOT + 12
    images += [
        (words(stand.fresh, complete, 0xFFFFFFFF), FORGETFUL),
        (stand.fresh[: FIRST_SLOT + 32] + b"\xff" * (FLASH - FIRST_SLOT - 32), FORGETFUL),
    ]
    on_boards(lambda image: stand.expect_denied(*image), images)


def test_an_image_that_is_cut_short_starts_only_where_nothing_is_missing(stand):
    """What there is of an image after each page; the rest is erased, or zero."""
    last = (used_end(stand.data, SECOND_SLOT, FLASH) + PAGE - 1) // PAGE
    pages = [*range(last + 2), 31]
    started = on_boards(stand.judge, [stand.data[: page * PAGE] + BLANK_PAGE * (32 - page) for page in pages])
    assert started == [page >= last for page in pages], "whether nothing is missing"
    started = on_boards(
        stand.judge, [stand.data[: page * PAGE] + ZERO_PAGE * (32 - page) for page in (1, 4, 10, 18, last, 31)]
    )
    assert started == [False] * 6, "whether it starts with zeros behind"


def test_a_later_version_is_denied(stand):
    stand.expect_denied(words(stand.data, 4, 2), NEWER)
    stand.expect_denied(words(stand.data, 4, 0x7FFFFFFF), NEWER)
    # "HfJ2", in the slot in force, and in both.
    stand.expect_denied(words(stand.data, SECOND_SLOT, 0x324A6648), FORGETFUL)
    stand.expect_denied(words(words(stand.data, FIRST_SLOT, 0x324A6648), SECOND_SLOT, 0x324A6648), FORGETFUL)


def test_the_journals_halves_in_each_others_place_say_the_same(stand):
    """The halves of the journal in each other's place say the same."""
    first, second = stand.data[FIRST_SLOT:SECOND_SLOT], stand.data[SECOND_SLOT:]
    assert stand.judge(stand.data[:FIRST_SLOT] + second + first), "denied"


def test_the_older_half_is_never_gone_back_to(stand):
    """The half that was left is never gone back to."""
    first = stand.data[FIRST_SLOT:SECOND_SLOT]
    assert not stand.judge(stand.data[:FIRST_SLOT] + first + b"\xff" * SLOT), "it started with the older half"
    assert not stand.judge(stand.data[:FIRST_SLOT] + first + first), "it started with the older half, twice"


def test_one_flipped_bit_is_denied_or_forgets_nothing(stand):
    """One bit flipped: every sample of what counts is denied, and of what does not, forgets nothing."""
    data, dice = stand.data, random.Random(2)
    provision_end, log_end = used_end(data, 0, FIRST_SLOT), used_end(data, SECOND_SLOT, FLASH)

    def sample(count, start, end):
        return [dice.randrange(8 * start, 8 * end) for _ in range(count)]

    counting = (
        sample(8, 0, 12)
        + sample(20, 12, provision_end)
        + sample(32, SECOND_SLOT + 32, log_end)
        + sample(10, log_end, FLASH)
        + sample(8, SECOND_SLOT, SECOND_SLOT + 16)
    )
    started = on_boards(lambda bit: stand.judge(flipped(data, bit)), counting)
    assert [bit for bit, is_started in zip(counting, started) if is_started] == [], "flips that are not denied"
    # Behind the provision, in the half that was left, and in what the heads of both have spare.
    others = (
        sample(4, provision_end, FIRST_SLOT)
        + sample(8, FIRST_SLOT + 32, SECOND_SLOT)
        + sample(12, FIRST_SLOT, FIRST_SLOT + 32)
        + sample(6, SECOND_SLOT + 16, SECOND_SLOT + 32)
    )
    started = on_boards(lambda bit: stand.judge(flipped(data, bit)), others)
    assert all(started[:12]), "what does not count is denied"


def test_a_transaction_whose_checksum_is_erased_is_missed(stand):
    """A transaction whose checksum reads as erased, as after a power cut, is missed by those behind it, or is no loss."""
    ends, position = [], FIRST_SLOT + 32
    while (head := int.from_bytes(stand.early[position : position + 4], "little")) != 0xFFFFFFFF:
        position += 8 + ((head & 0xFFFF) + 3) // 4 * 4
        ends.append(position)
    started = on_boards(lambda end: stand.judge(words(stand.early, end - 4, 0xFFFFFFFF)), ends[:-1])
    assert started.count(False) > 10, f"{started.count(False)} of {len(started)} are denied"


def test_many_flipped_bits_are_denied_or_forget_nothing(stand):
    """Many bits flipped, close together and far apart, and whole words of zeros and ones."""
    data, dice = stand.data, random.Random(3)
    ends = [
        (0, used_end(data, 0, FIRST_SLOT)),
        (FIRST_SLOT, SECOND_SLOT),
        (SECOND_SLOT, used_end(data, SECOND_SLOT, FLASH)),
        (0, FLASH),
    ]

    def spoiled():
        start, end = dice.choice(ends)
        kind = dice.randrange(3)
        if kind == 0:
            return flipped(data, *(dice.randrange(8 * start, 8 * end) for _ in range(dice.randrange(2, 65))))
        position = dice.randrange(start, end - 64)
        if kind == 1:
            return data[:position] + dice.randbytes(64) + data[position + 64 :]
        return words(data, position // 4 * 4, *[dice.choice([0, 0xFFFFFFFF])] * dice.randrange(1, 16))

    on_boards(stand.judge, [spoiled() for _ in range(32)])
