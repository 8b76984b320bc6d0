"""A lock's ordinary days: proofs, a user's codes, and the power that fails."""

from .verdicts import name, name_in

SAFE, OTHER_SAFE = "7", "8"
MILLION = 1_000_000


def prove(scene, story):
    story.heading("From then on, offline: a prover, a bridge that knows no key, and the firmware at its serial line")
    ending = scene.prove("unlock")
    whole = scene.instructions()
    story.expect("unlock, by the whole token", "accepted, unlocked", f"{ending.status}, {ending.result}", counted(whole))
    ending = scene.prove("lock")
    remembered = scene.instructions()
    story.expect("lock, by a reference to it", "accepted, locked", f"{ending.status}, {ending.result}", counted(remembered))
    story.expect("… which the board has remembered", "yes", "yes" if remembered * 10 < whole else "no")
    story.expect("a command that the policy does not know", "commandRefused", scene.prove("self-destruct").status)
    story.expect("status, by the proof of the device alone", "accepted", scene.prove("status").status)


def counted(instructions):
    return f"{instructions / MILLION:.2f} M instructions"


def prove_the_person(story, alice):
    story.heading("The right person: alice, and one-time passwords")
    story.expect("alice activates her authenticator by the owner's code", "exit 0", alice.activate().exit)
    story.expect("… and somebody else by the same", "exit 1", alice.activate(alice.scene.path("late")).exit)
    story.expect("the board proves itself to alice", "exit 0", alice.check_host().exit)
    story.expect("configure, by the proof alone", "factorMissing", alice.scene.prove("configure").status)
    password = alice.password()
    ending = alice.configure(password)
    story.expect("configure, by proof and one-time password", "accepted, configured", f"{ending.status}, {ending.result}")
    story.expect("… by the same one again", "otpRejected", alice.configure(password).status)
    story.expect("… by one that was made under another PIN", "otpRejected", alice.configure(alice.password(pin="2840")).status)
    story.expect("… by the next one, under the right one", "accepted", alice.configure(alice.password()).status)
    story.expect("alice's authenticator takes over the board's counters", "exit 0", alice.synchronise().exit)
    return password


def prove_the_command(story, alice):
    story.heading(f"Exactly this command: a seal over open-safe {SAFE}")
    seal = alice.seal("open-safe", SAFE)
    story.expect(f"open-safe {OTHER_SAFE}, by that seal", "sealRejected", alice.open_safe(OTHER_SAFE, seal).status)
    ending = alice.open_safe(SAFE, seal)
    story.expect(f"open-safe {SAFE}, by that seal", "accepted, safe opened", f"{ending.status}, {ending.result}")
    story.expect("… by the same one again", "sealRejected", alice.open_safe(SAFE, seal).status)
    return seal


def guess(scene, story, bob):
    """Leaves bob locked out; returns a password of his that is right."""
    story.heading("Somebody guesses the password of another user, bob")
    story.expect("bob activates his authenticator", "exit 0", bob.activate().exit)
    right = bob.password()
    guesses = {bob.configure(f"{(int(right) + difference) % 10**8:08}").status for difference in range(1, 6)}
    story.expect("five guesses", "otpRejected", ", ".join(sorted(guesses)))
    story.expect("… and then the right one", "lockedOut", bob.configure(right).status)
    return right


def lose_power(scene, story, used, alice, bob):
    """`used` are a password and a seal of alice's, and a right password of bob's, who is locked out.

    Returns the audit log's last entry before the power failed.
    """
    story.heading("The power fails: the emulator is killed, and started again")
    once = scene.grant(maximumUses=1)
    with (prover := scene.connect()).connection:
        story.expect("a token for one use", "accepted", name(prover.ask(once).status))
    scene.board.cut_power()
    story.expect("a prover, while there is none", "internal", scene.prove("unlock").status)
    last = audit(scene, story)
    story.expect("the board has power again", "start 2", scene.power_on())
    ending = scene.prove("status")
    story.expect("status: without power, a lock locks", "accepted, locked", f"{ending.status}, {ending.result}")
    password, seal, right = used
    story.expect("alice's used password", "otpRejected", alice.configure(password).status)
    story.expect("alice's used seal", "sealRejected", alice.open_safe(SAFE, seal).status)
    story.expect("alice's next password", "accepted", alice.configure(alice.password()).status)
    with (prover := scene.connect()).connection:
        story.expect("a token for one use, which had it", "usesExhausted", name(prover.ask(once).status))
    story.expect("bob is still locked out", "lockedOut", bob.configure(right).status)
    return last


def lose_power_midway(scene, story):
    """While the board is busy with an answer, most likely; what became of it counts for nothing afterwards."""
    story.heading("The power fails in the middle of a round")
    with (prover := scene.connect()).connection as connection:
        answer = prover.attempt(scene.grant()).message()
        connection.send(answer)
        scene.board.cut_power()
    story.expect("the board has power again", "start 3", scene.power_on())
    with (prover := scene.connect()).connection:
        story.expect("the answer is sent again", "deviceMismatch", name_in(prover.exchange(answer)))


def audit(scene, story):
    """Reads the flash, which has no power; returns the last entry."""
    report = scene.own("audit", "--verify")
    story.expect("the audit chain, read from the flash", "whole", "whole" if report["whole"] else "broken", f"{report['entries']} entries")
    return scene.own("audit")["entries"][-1]


def follower(scene, entry):
    """The event of the audit log that comes after `entry`."""
    entries = scene.own("audit")["entries"]
    following = entries[entries.index(entry) + 1:] if entry in entries else []
    return following[0]["event"] if following else "nothing"
