"""The scene on a board: the firmware in QEMU, and `holdfast device bridge` between its serial line and provers."""

import contextlib
import json
import time

from hardware import Hardware
from holdfast_peer import session, transport
from holdfast_peer.checks import Failed, expect
from holdfast_peer.prover import Prover

from .scene import SECONDS, Scene
from .serial_line import Line

FLASH = 128 * 1024
INSTRUCTIONS_A_TICK, MILLION = 40, 1_000_000
NO_COMMAND = {"version": 1, "commands": {}}
# What the bridge says while another prover has the place, or it has no line.
NOT_YET = [session.message_3(session.STATUS[name], None) for name in ("busy", "internal")]


class Board(Hardware):
    """A board that ends with the demonstration. It counts instructions: that tells a remembered token from an opened one."""

    def __init__(self, folder, image, processes):
        super().__init__(folder, image, "--count")
        self.processes = processes

    def start(self, words):
        return self.processes.start(words)


class BoardScene(Scene):
    noun = "board"

    def __init__(self, holdfast, folder, processes):
        super().__init__(holdfast, folder, processes)
        self.image, self.front, self.bridge_log = self.path("lock.img"), self.path("front"), self.path("bridge.log")
        self.address = f"unix:{self.front}"
        self.owner_arguments = ("--firmware", self.image)
        self.board = Board(folder, self.image, processes)
        self.bridge = None

    def provision(self):
        """Makes a flash image whose device trusts the issuers."""
        trusted = [
            word for file in ("service.json", "issuer.jwk", "newer.jwk") for word in ("--trust", self.path(file))
        ]
        self.describe(self.own("init", *trusted))

    # The board and the bridge

    def power_on(self):
        """Returns what the board says first. The bridge, if there is one, has the line again."""
        said = self.board.power_on()
        if self.bridge is not None:
            self.connect().connection.close()
        return said

    def start_bridge(self):
        with self.bridge_log.open("wb") as log:
            self.bridge = self.processes.start(
                [
                    self.command_line.path,
                    "device",
                    "bridge",
                    "--listen",
                    self.address,
                    "--to",
                    f"unix-stream:{self.board.line}",
                ],
                env=self.command_line.environment,
                stderr=log,
            )
        deadline = time.monotonic() + SECONDS
        while "listening" not in self.bridge_log.read_text():
            expect(time.monotonic() < deadline, "the bridge does not listen")
            time.sleep(0.01)

    def stop_bridge(self):
        """Returns its exit status."""
        bridge, self.bridge = self.bridge, None
        return self.processes.end(bridge)

    def instructions(self):
        """Returns the number of instructions of the board's last answer."""
        return int(self.board.said()[-1].partition("ticks ")[2].split(",")[0]) * INSTRUCTIONS_A_TICK

    # Provers

    def ask(self, *arguments, **how):
        """Runs a verb that asks the device, again while the bridge says that another prover has the place."""
        deadline = time.monotonic() + SECONDS
        while (ending := self.run(*arguments, **how)).status == "busy" and time.monotonic() < deadline:
            time.sleep(0.02)
        return ending

    def connect(self):
        """Returns the independent prover, through the bridge, with a challenge at hand."""
        deadline = time.monotonic() + SECONDS
        while time.monotonic() < deadline:
            prover = Prover(transport.connect(str(self.front), timeout=SECONDS), self.descriptor)
            first = prover.connection.receive()
            if first not in NOT_YET:
                session.parse_message_1(first)
                prover.m1 = first
                return prover
            prover.connection.close()
            time.sleep(0.02)
        raise Failed("the bridge has no place or no line")

    # Other boards

    @contextlib.contextmanager
    def other_board(self, flash):
        """A board with that flash, without power."""
        folder = self.path("other")
        folder.mkdir(exist_ok=True)
        (folder / "flash").write_bytes(flash)
        (folder / "flash").chmod(0o600)
        board = Board(folder, folder / "flash", self.processes)
        yield board
        board.cut_power()

    @contextlib.contextmanager
    def device_without_policy(self):
        """The address of another board, which allows nothing, and the state folder of a prover that is enrolled with it."""
        with self.other_board(b"") as board:
            board.image.unlink()
            policy = self.write("policy.json", json.dumps(NO_COMMAND))
            shown = self.succeed(
                "device", "init", "--firmware", board.image, "--trust", self.path("service.json"), "--policy", policy
            )
            self.enroll("visitor", descriptor=self.write("other.json", shown.output))
            board.power_on()
            yield f"unix-stream:{board.line}", "visitor"

    def start_with_stuck_random(self):
        """Returns the challenges of two starts of a board, and of the first start of a copy, all with the same entropy."""
        flash = self.image.read_bytes()[:FLASH]
        self.path("noise").write_bytes(bytes(range(64)))
        with self.other_board(flash) as board:
            first, second = self._challenge(board), self._challenge(board)
        with self.other_board(flash) as board:
            return first, second, self._challenge(board)

    def _challenge(self, board):
        board.power_on("--entropy", self.path("noise"))
        with (line := Line(board)).connection:
            first = line.challenge()
        board.cut_power()
        return first
