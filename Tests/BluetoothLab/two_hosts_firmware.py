"""A lock that is a microcontroller: the firmware on a board, its serial line at a port of the verifier's host, and a bridge over RFCOMM there."""

import base64

import guest
import images
from hardware import Hardware
from holdfast_peer.checks import expect, expect_equal
from holdfast_peer.command_line import CommandLine
from meeting import LOG, Meeting

ACCEPTED, COMMAND_REFUSED = 0, 11
# A remembered token spares the board two operations on the curve, of some millions of instructions each.
MOST_TICKS_REMEMBERED = 25_000
# Signal, and the exit status of the bridge that it ends.
ENDINGS = {"TERM": 0, "KILL": 137}
# The board asks for nothing: that it has no power is only seen when it does not answer, twice.
TIMEOUT_SECONDS = 30


def observe(lab):
    try:
        images.prepare()
    except images.Unavailable as reason:
        raise guest.Unavailable(f"no firmware: {reason}") from reason
    images.build()
    folder = lab.folder / "board"
    folder.mkdir()
    with Hardware(folder, folder / "lock.img", "--count") as board:
        # A port of the host that a person would call ttyS and a number.
        port = ("-chardev", f"socket,id=board,path={board.line},reconnect=1", "-device", "pci-serial,chardev=board")
        with lab.led_hosts("two_hosts_firmware", verifier_options=port) as hosts:
            meeting = BridgedMeeting(hosts, board, CommandLine(lab.holdfast, folder))
            meeting.enroll()
            board.power_on()
            meeting.serve()
            seen = {
                name: meeting.prove("rfcomm", command)
                for name, command in (("whole", "unlock"), ("remembered", "lock"), ("refused", "open-all"))
            }
            seen["restarted"] = {signal: restart(meeting, signal) for signal in ENDINGS}
            return seen | {"power": lose_power(meeting)}


class BridgedMeeting(Meeting):
    """Its device is on a board, which its owner has provisioned elsewhere; `prove` returns what the board says of it in ticks."""

    def __init__(self, hosts, board, owner):
        super().__init__(hosts)
        self.board, self.owner = board, owner

    def enroll(self):
        self.do("prover", "holdfast service init --dir service")
        issuer = self.do("prover", "holdfast service show --dir service --json").text
        self.board.image.with_name("service.json").write_text(issuer)
        lock = self.owner.succeed("device", "init", "--firmware", self.board.image, "--trust", "service.json", "--json")
        self.do("prover", f"echo {base64.b64encode(lock).decode()} | base64 -d >lock.json")
        self.do("prover", "holdfast service device add --dir service lock.json")
        self.do("prover", "holdfast enroll --device lock.json --service service --state phone")

    def serve(self):
        """Begins to bridge."""
        line = self.do("verifier", "basename $(find /sys/devices/pci* -name 'ttyS*')").text.strip()
        self.do(
            "verifier",
            f"holdfast device bridge --listen {self.endpoints['rfcomm']} --to tty:/dev/{line} >{LOG} 2>&1 & server=$!",
        )
        self.hosts["verifier"].do(f"patiently grep -q listening {LOG}")

    def prove(self, transport, command, *options, state="phone"):
        before = len(self.board.said())
        # The board would also count its answers to mail.
        said = self.run("prover", self.proof(transport, command, "--courier off", *options, state=state))
        return said, [parse(line) for line in self.board.said()[before:]]


def parse(line):
    """Status and ticks of an answer, as the board's console has them."""
    words = line.replace(",", "").split()
    return int(words[1]), int(words[3])


def restart(meeting, signal):
    """How the bridge ended, how a prover found nobody, and a proof through the next bridge."""
    ended = meeting.run("verifier", f"kill -{signal} $server; wait $server")
    alone = meeting.prove("rfcomm", "lock")
    meeting.serve()
    return ended.status, alone, meeting.prove("rfcomm", "lock")


def lose_power(meeting):
    """A proof while the board has no power, which start it says is its next, and a proof then, through the same bridge."""
    meeting.board.cut_power()
    dark = meeting.run(
        "prover",
        f"holdfast prove --connect {meeting.endpoints['rfcomm']} --state phone --command unlock --timeout {TIMEOUT_SECONDS}",
    )
    started = meeting.board.power_on()
    return dark, started, meeting.prove("rfcomm", "status")


def agree(proof, status, *verdicts):
    """Both ends say the same."""
    said, answers = proof
    expect_equal(said.status, status, f"exit status of {said.text}")
    expect_equal([verdict for verdict, _ in answers], list(verdicts), "what the board says")


def accepts(seen):
    """two hosts: firmware at a serial port accepts a proof over RFCOMM, by the whole token, and by reference"""
    for name, result in (("whole", "unlocked"), ("remembered", "locked")):
        agree(seen[name], 0, ACCEPTED)
        expect(f"accepted, {result}" in seen[name][0].text, seen[name][0].text)
    (_, whole), (_, remembered) = (seen[name][1][0] for name in ("whole", "remembered"))
    expect(
        remembered < MOST_TICKS_REMEMBERED < whole,
        f"{remembered} ticks with a remembered token, {whole} with a whole one",
    )


def denies(seen):
    """two hosts: firmware at a serial port denies a command that its policy does not name"""
    agree(seen["refused"], 1, COMMAND_REFUSED)


def outlives_bridges(seen):
    """two hosts: while the bridge is gone a prover ends with 69, and the next bridge finds the firmware as it was"""
    for signal, (status, alone, proof) in seen["restarted"].items():
        expect_equal(status, ENDINGS[signal], f"exit status of the bridge after SIG{signal}")
        agree(alone, 69)
        agree(proof, 0, ACCEPTED)
        expect(proof[1][0][1] < MOST_TICKS_REMEMBERED, "the token was not remembered")


def comes_back(seen):
    """two hosts: while the board has no power nothing is accepted, and with power the same bridge has it again"""
    dark, started, (said, answers) = seen["power"]
    expect(dark.status in (1, 69) and "accepted" not in dark.text, f"exit status {dark.status}: {dark.text}")
    expect_equal((started, said.status), ("start 2", 0), f"start, exit status of {said.text}")
    expect_equal(answers[-1][0], ACCEPTED, "what the board says")


CHECKS = [accepts, denies, outlives_bridges, comes_back]
