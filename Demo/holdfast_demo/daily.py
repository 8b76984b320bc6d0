"""A lock's ordinary days: it is made, an app is enrolled with it and commands it, and its owner reads what it wrote down."""

from holdfast_peer.state import enrolment

from .story import Situation, situation, step

ROUNDS, BUDGET_MILLISECONDS = 50, 100
PARTS = ("total", "measure", "connect", "round", "device")
PERCENTILES = ("p50", "p90", "p99", "max")


# Once, while there is a network


def approve(scene, story):
    """Makes the service, and passes on what it says of this build."""
    for warning in scene.make_service():
        story.warn(warning)


@step("a service approves this program's image")
def service(_):
    return "signs what it issues with ES256"


@step("a device makes its key and trusts that issuer")
def make_device(scene):
    scene.provision()
    return "lock and unlock need integrity and device"


@step("a flash is provisioned")
def make_flash(scene):
    scene.provision()
    return "a key, an id, the issuers it trusts, a policy"


@step("the app is measured, attested and enrolled")
def enroll(scene):
    scene.enroll("prover")
    token = next(enrolment(scene.path("prover")).glob("measurement_token.*"))
    return f"a token of {token.stat().st_size} bytes, encrypted to the {scene.noun}"


# From then on, offline


def proof(text, command, answer):
    """A situation: `holdfast prove` asks for a command. `answer` is a status, or a status and what the device did."""

    def prove(scene):
        ending = scene.prove(command)
        return ending.answer if ", " in answer else ending.status

    return Situation(text, answer, prove)


status = proof("status", "status", "accepted, locked")
unlock = proof("unlock", "unlock", "accepted, unlocked")
unlock_again = proof("unlock once more, by a reference to the token", "unlock", "accepted, unlocked")
lock = proof("lock", "lock", "accepted, locked")
owner_comes = proof("… and its owner comes after that", "unlock", "accepted")
unknown_command = proof("a command that policy does not know", "self-destruct", "commandRefused")


@situation("a command that the token does not allow", "commandRefused")
def command_outside_token(scene):
    scene.enroll("limited", "--allow", "status")
    return scene.prove(state="limited").status


@situation("a device without a policy", "commandRefused")
def command_without_policy(scene):
    with scene.device_without_policy() as (address, state):
        return scene.prove(state=state, at=address).status


# Starts


@situation("two starts with the same random numbers", "another challenge")
def start_twice(scene):
    scene.kept.challenges = scene.start_with_stuck_random()
    first, second, copied = scene.kept.challenges
    if first == second:
        return "the same challenge"
    return "another challenge" if first == copied else "other random numbers"


@situation("… the first of them, in a copy of the flash", "the first challenge")
def start_copy(scene):
    first, _, copied = scene.kept.challenges
    return "the first challenge" if first == copied else "another challenge"


# Where the time goes


def show_latency(scene, story):
    """Prints where the time of proofs goes. On a busy machine, one of three series must keep the budget."""
    for _ in range(3):
        scene.kept.latency = parts = scene.latency(ROUNDS)
        if parts["total"]["p50"] <= 1000 * BUDGET_MILLISECONDS:
            break
    story.tell("  ms         p50       p90       p99       max")
    for part in PARTS:
        story.tell(
            f"  {part:8}" + "".join(f"{parts[part][percentile] / 1000:8.2f}  " for percentile in PERCENTILES).rstrip()
        )


@situation(f"a whole proof within the budget of {BUDGET_MILLISECONDS} ms", "yes")
def keep_budget(scene):
    median = scene.kept.latency["total"]["p50"] / 1000
    return "yes" if median <= BUDGET_MILLISECONDS else "no", f"median {median:.2f} ms"


# What the device wrote down


@situation("the audit chain", "whole")
def audit(scene):
    """Reads the audit log, and keeps its last entry."""
    ending = scene.run("device", "audit", "--verify", *scene.owner_arguments)
    scene.kept.entries, scene.kept.entry_count = scene.own("audit")["entries"], ending.value.get("entries")
    return "whole" if ending.exit == "exit 0" and ending.value.get("whole") is True else "broken"


def name_others(reasons):
    """Steps that name what is not tried here, and why."""

    def name(_, story):
        for attack, reason in reasons.items():
            story.step(attack, reason)

    return name
