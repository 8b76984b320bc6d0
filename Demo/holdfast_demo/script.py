"""The script: what is shown at each target, in which order and under which headings.

Each situation is written once, in the module of its subject. An entry of an act is a situation (a line with a ✓), a step (a
line without), or a preparation (no line). Whatever only one target has is in only one of the two lists; `NOT_ON_A_BOARD` says
why the board has no part in an attack.
"""

from . import daily, impostors, provers, tokens, users, wire

LINUX_TITLE = "Holdfast: a lock without Internet, and an app that proves itself to it."
COURIERS_TITLE = "Holdfast: two locks without Internet, three phones that visit them, and one of these is stolen."
ONLINE_TITLE = "Holdfast: the online service of a fleet, which loses an instance and its database, and nothing else."
BOARD_TITLE = "Holdfast: a lock on a microcontroller, and an app that proves itself to it."

NOT_ON_A_BOARD = {
    "a baseline for a second device": "the backend refuses it: no token comes of it",
    "a stolen authenticator, tried with four PINs": "it is only about the authenticator's file",
}

SEALED_COMMAND = (
    "Exactly this command: a seal over open-safe 7",
    [users.open_other_safe, users.open_safe, users.open_safe_again],
)


def linux(scene):
    """The acts on Linux: pairs of a heading and its entries."""
    return [
        ("Once, while there is a network", [daily.approve, daily.service, daily.make_device, daily.enroll]),
        (
            f"From then on, offline: {scene.address}, two processes",
            [daily.status, daily.unlock, daily.unlock_again, daily.lock],
        ),
        (
            "The right person: alice, and one-time passwords",
            [
                users.let_alice_in,
                users.activate,
                users.activate_again,
                users.check_host,
                users.configure_without,
                users.configure,
                users.configure_again,
                users.configure_under_other_pin,
            ],
        ),
        SEALED_COMMAND,
        (
            "Attacks, each tried for real",
            [
                wire.replay,
                wire.move,
                wire.change,
                wire.make_compatible,
                wire.forge,
                daily.owner_comes,
                tokens.of_another_device,
                tokens.unsigned,
                tokens.of_a_stranger,
                tokens.expired,
                tokens.from_the_future,
                tokens.once,
                tokens.twin,
                tokens.attest,
                tokens.attest_again,
                tokens.remember.unmentioned,
                tokens.distrust,
                tokens.by_reference_without_trust,
                tokens.trust_again,
                users.let_bob_in,
                users.activate_bob,
                users.guess,
                users.configure_when_locked,
                users.configure_meanwhile,
                users.issue_unlock,
                users.unlock,
                users.configure_when_unlocked,
                users.steal,
                users.compare_loot,
                provers.flip,
                provers.preload,
                provers.trace,
                provers.patch,
                provers.copy,
                daily.command_outside_token,
                daily.unknown_command,
                daily.command_without_policy,
                daily.start_twice,
                impostors.relay.unmentioned,
                impostors.accept,
                impostors.accept_again,
                impostors.refuse,
                impostors.compare_state,
            ],
        ),
        ("Where the time of a proof goes, 50 proofs", [daily.show_latency, daily.keep_budget]),
        ("What the device wrote down", [daily.audit]),
    ]


def board(_):
    """The acts on a board: pairs of a heading and its entries."""
    # Needs the programs that build and run the firmware, which a demonstration on Linux does without.
    from . import power, serial_line

    return [
        (
            "Once, while there is a network",
            [
                daily.approve,
                daily.make_flash,
                daily.enroll,
                users.let_both_in,
                power.power_on("the board has power", "start 1"),
                power.start_bridge,
            ],
        ),
        (
            "From then on, offline: a prover, a bridge that knows no key, and the firmware at its serial line",
            [
                power.unlock,
                power.lock,
                power.remember,
                daily.unknown_command.named("a command that the policy does not know"),
                daily.proof("status, by the proof of the device alone", "status", "accepted"),
            ],
        ),
        (
            "The right person: alice, and one-time passwords",
            [
                users.activate.named("alice activates her authenticator by the owner's code"),
                users.activate_again,
                users.check_host,
                users.configure_without,
                users.configure,
                power.keep_password,
                users.configure_again,
                users.configure_under_other_pin,
                users.configure.named("… by the next one, under the right one"),
                users.synchronise,
            ],
        ),
        SEALED_COMMAND,
        (
            "Somebody guesses the password of another user, bob",
            [
                users.activate_bob.named("bob activates his authenticator"),
                users.guess.named("five guesses"),
                users.configure_when_locked,
                users.configure_meanwhile,
            ],
        ),
        (
            "The power fails: the emulator is killed, and started again",
            [
                tokens.once,
                power.cut_power,
                power.nobody_there,
                power.audit,
                power.keep_last_entry,
                power.power_on("the board has power again", "start 2"),
                power.locked,
                power.used_password,
                power.used_seal,
                users.configure.named("alice's next password"),
                tokens.once_again,
                users.configure_when_locked.named("bob is still locked out"),
                tokens.remember.unmentioned,
            ],
        ),
        (
            "Attacks at the serial line, by somebody with a probe there",
            [
                power.stop_bridge,
                serial_line.send_garbage,
                serial_line.send_long_frame,
                serial_line.send_cut_frame,
                serial_line.send_half_length,
                serial_line.prove,
                power.start_bridge,
            ],
        ),
        (
            "Attacks on what is said, each tried for real",
            [
                impostors.relay,
                impostors.accept.named("… and says accepted by itself"),
                impostors.accept_again.named("… and repeats the genuine acceptance"),
                impostors.refuse.named("… and says that the token has expired"),
                impostors.compare_state,
                wire.replay,
                wire.replay_elsewhere,
                wire.delay,
                wire.change,
                wire.make_compatible,
                wire.prove_device_only,
                wire.forge,
                wire.slow_down,
                daily.owner_comes,
            ],
        ),
        (
            "The power fails in the middle of a round",
            [
                power.break_off,
                power.power_on("the board has power again", "start 3"),
                power.send_again,
            ],
        ),
        (
            "Attacks by tokens",
            [
                tokens.of_another_device,
                tokens.of_another_device_for_this_key,
                tokens.unsigned,
                tokens.of_a_stranger,
                tokens.of_a_stranger_with_key_id,
                tokens.expired,
                tokens.from_the_future,
                tokens.of_today,
                tokens.once,
                tokens.twin,
                tokens.first_generation,
                tokens.second_generation,
                tokens.first_generation_again,
                tokens.first_generation_by_reference,
            ],
        ),
        (
            "Attacks by provers",
            [
                provers.flip,
                provers.preload,
                provers.trace,
                provers.patch,
                provers.copy,
                daily.command_outside_token,
                daily.proof("the prover as it was enrolled", "unlock", "accepted"),
                power.cut_power,
            ],
        ),
        (
            "The owner has the flash on the bench: spoiled copies of it, and what owners do",
            [
                *power.blank_flash,
                *power.random_flash,
                *power.damaged_flash,
                daily.command_without_policy.named("unlock, at a board whose policy names no command"),
                daily.start_twice,
                daily.start_copy,
                users.issue_unlock,
                tokens.distrust,
                power.power_on("the board has power again", "start 4"),
                users.unlock,
                users.configure_when_unlocked,
                tokens.by_reference_without_trust.named(
                    "a token whose issuer was removed, by reference", "tokenUnknown"
                ),
                tokens.whole_without_trust,
                daily.proof("the prover of an issuer that was kept", "unlock", "accepted"),
            ],
        ),
        (
            "What the board wrote down",
            [power.console_faults, power.stop_bridge, power.cut_power, power.audit, power.follow_last_entry],
        ),
        ("Attacks of `make demo` that have no board in them", [daily.name_others(NOT_ON_A_BOARD)]),
    ]


def couriers(_):
    """The acts of couriers: pairs of a heading and its entries."""
    from . import couriers

    return [
        ("Once, while there is a network", [daily.approve, daily.service, couriers.make_locks, couriers.enrol]),
        (
            "Carl's phone is stolen",
            [
                couriers.visits(couriers.CARL, "front", "the thief opens the front door", "accepted"),
                couriers.revoke,
                couriers.knowing("who knows that? The service, and", "no lock"),
                couriers.visits(couriers.CARL, "front", "the thief opens the front door again", "accepted"),
            ],
        ),
        (
            "Another phone comes by",
            [
                couriers.fetch,
                couriers.deliver,
                couriers.knowing("who knows now? The service, and", "front"),
                couriers.visits(couriers.CARL, "front", "the thief at the front door", "tokenRevoked"),
                couriers.visits(couriers.CARL, "back", "the thief at the back door", "accepted"),
            ],
        ),
        (
            "A courier that lies, and one that does not",
            [
                couriers.lie,
                couriers.knowing("who knows now? Still only", "front"),
                couriers.deliver_honestly,
                couriers.knowing("who knows now? The service, and", "front, back"),
                couriers.visits(couriers.CARL, "back", "the thief at the back door", "tokenRevoked"),
                couriers.visits(couriers.ANNA, "back", "anna at the back door", "accepted"),
                couriers.bring_again,
            ],
        ),
        (
            "The logs, read at home",
            [
                couriers.read_too_early,
                couriers.hand_in,
                couriers.read_front,
                couriers.read_back,
                couriers.missing,
            ],
        ),
    ]


def online(_):
    """The acts of a fleet's online service: pairs of a heading and its entries."""
    # Needs PostgreSQL, which the other demonstrations do without.
    from . import online

    return [
        (
            "The service, on three hosts, and its database on two",
            [online.start_database, online.start_service, online.approve, online.make_lock, online.gather],
        ),
        (
            "Who may enrol",
            [
                online.enrol,
                online.enrol_by_used,
                online.enrol_at_stranger,
                online.unlock,
                online.ask,
                online.approve_request,
                online.revoke,
                online.enrol_revoked,
            ],
        ),
        (
            "An instance is lost, and then the primary",
            [
                online.start_crowd,
                online.kill_instance,
                online.enrol_elsewhere,
                online.kill_primary,
                online.promote,
                online.revive,
                online.count_connections,
                online.refuse_former,
                online.rebuild,
            ],
        ),
        (
            "As before",
            [
                online.enrol_afterwards,
                online.unlock_afterwards,
                online.unlock_as_before,
                online.enrol_by_used_afterwards,
                online.enrol_revoked_afterwards,
                online.finish_crowd,
                online.compare,
            ],
        ),
    ]
