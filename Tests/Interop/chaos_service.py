#!/usr/bin/python3
"""Kills instances of the online service and its database at random while provers enrol, and says what was lost.

usage: chaos_service.py [--service PROGRAM] [--seconds N] [--seed N] [--clients N]

Three instances run over PostgreSQL with a synchronous standby. Provers enrol by invitations, some of which several provers use at
once, and by an operator's decision; other operators revoke. Meanwhile instances, the primary and the standby are killed, the
standby is promoted, and former primaries are started again. Exit status: 0 if nothing was lost, 1 if something was, 69 if
PostgreSQL is not installed.
"""

import argparse
import collections
import pathlib
import random
import shutil
import signal
import sys
import tempfile
import time

import chaos_verdict
import postgresql
from chaos_clients import Crowd
from online_fleet import Fleet

INSTANCES, DEVICES = 3, 12
# The seconds that a run may take beyond its time, on a busy machine, until it has seen enough.
MORE_SECONDS = 600


class Chaos:
    """One run: the servers, the provers and operators, and the kills."""

    def __init__(self, service, folder, seconds, seed, clients=64, say=print):
        self.seconds, self.seed, self.clients, self.say = seconds, seed, clients, say
        self.random, self.kills = random.Random(f"{seed} kills"), collections.Counter()
        self.pair = postgresql.Pair(folder)
        self.fleet = Fleet(service, folder, self.pair.url, log_level="error")
        self.crowd, self.failovers = None, 0

    def run(self):
        """Returns what should not have happened, as sentences."""
        try:
            self.prepare()
            self.crowd.start()
            self.disturb()
            self.settle()
            self.crowd.finish(self.tend)
            # The judgement is about what the standby has: one last failover.
            self.pair.lose_primary()
            self.failovers = self.pair.timeline - 1
            return chaos_verdict.judge(self.journal, chaos_verdict.Stored(self.pair.primary))
        finally:
            self.fleet.close()
            self.pair.kill()

    def prepare(self):
        self.pair.create()
        self.fleet.create()
        self.fleet.serve(INSTANCES)
        self.fleet.approve_app()
        devices = [self.fleet.add_device(f"lock-{number}") for number in range(DEVICES)]
        self.crowd = Crowd(self.fleet, devices, self.seed, self.clients, self.token_id)

    def token_id(self, digest):
        return chaos_verdict.token_id(self.pair.primary, digest)

    @property
    def journal(self):
        return self.crowd.journal

    # Kills, by the main thread: the kernel ends a process with the thread that started it.

    def disturb(self):
        kinds = {
            self.kill_instance: 8,
            self.suspend_instance: 2,
            self.kill_all_instances: 1,
            self.kill_standby: 2,
            self.restart_primary: 3,
            self.fail_over: 5,
        }
        # Each kind comes once, even if that takes longer, before the rest is left to chance.
        first = list(kinds)
        self.random.shuffle(first)
        end = time.monotonic() + self.seconds
        while first or time.monotonic() < end or (time.monotonic() < end + MORE_SECONDS and not self.has_seen_enough()):
            self.rest(self.random.uniform(0.2, 3))
            kind = first.pop() if first else self.random.choices(list(kinds), kinds.values())[0]
            kind()
            self.kills[kind.__name__.replace("_", " ")] += 1

    def has_seen_enough(self):
        """Whether provers were given tokens meanwhile, and operators revoked."""
        return len(self.journal.given) > 2 * self.clients and any(each.acknowledged for each in self.journal.revoked)

    def rest(self, seconds):
        """Waits, and starts instances again that have ended."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            self.tend()
            time.sleep(min(left, 0.1))

    def tend(self):
        for instance in self.fleet.instances:
            if not instance.is_running:
                instance.process.stdout.close()
                instance.start()

    def kill_instance(self):
        self.random.choice(self.fleet.instances).end()
        time.sleep(self.random.uniform(0, 1))

    def kill_all_instances(self):
        for instance in self.fleet.instances:
            instance.end()

    def suspend_instance(self):
        """An instance that stands still answers late, with what it knew before."""
        instance = self.random.choice(self.fleet.instances)
        if instance.is_running:
            instance.process.send_signal(signal.SIGSTOP)
            time.sleep(self.random.uniform(0.5, 3))
            instance.process.send_signal(signal.SIGCONT)

    def kill_standby(self):
        self.pair.standby.kill()
        self.rest(self.random.uniform(0, 2))
        self.pair.standby.start()

    def restart_primary(self):
        self.pair.primary.kill()
        self.rest(self.random.uniform(0, 1))
        self.pair.primary.start()

    def fail_over(self):
        """Loses the primary. Half of the time, it comes back as if nothing had happened, before it becomes the standby."""
        self.pair.wait_for_replication()
        suspended = self.random.choice(self.fleet.instances) if self.random.random() < 0.3 else None
        if suspended and suspended.is_running:
            # This instance sleeps through the failover.
            suspended.process.send_signal(signal.SIGSTOP)
        self.pair.primary.kill()
        self.rest(self.random.uniform(0, 1))
        self.pair.lose_primary()
        if self.random.random() < 0.5:
            self.revive_former_primary()
        if suspended and suspended.is_running:
            suspended.process.send_signal(signal.SIGCONT)
        self.pair.rebuild()

    def revive_former_primary(self):
        former = self.pair.standby
        self.pair.revive_former_primary()
        # One instance knows nothing of the failover.
        self.random.choice(self.fleet.instances).end()
        count = "SELECT count(*), max(number) FROM tokens, (SELECT max(number) AS number FROM changes) x"
        before = former.sql(count)
        self.rest(self.random.uniform(0.5, 3))
        waiting = former.sql("SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep'")
        if former.sql(count) != before or waiting != ["0"]:
            self.journal.faults.append(f"the former primary was written to ({waiting[0]} transactions)")
        former.kill()
        self.kills["revived former primary"] += 1

    def settle(self):
        """Sees to it that every server is up."""
        self.tend()
        if not self.pair.standby.is_running:
            self.pair.standby.start()
        self.pair.wait_for_replication()

    def report(self, found):
        """Prints what happened, and what was lost."""
        tokens = len({given.token for given in self.journal.given})
        revocations = collections.Counter(each.kind for each in self.journal.revoked if each.acknowledged is not None)
        counts = self.journal.counts
        self.say(f"seed {self.seed}, {self.seconds} s, {self.clients} provers, {self.failovers} failovers")
        self.say("kills: " + ", ".join(f"{name} {count}" for name, count in sorted(self.kills.items())))
        self.say(f"tokens that provers hold: {tokens}, given {len(self.journal.given)} times")
        self.say("revocations: " + ", ".join(f"{kind} {count}" for kind, count in sorted(revocations.items())))
        self.say("and: " + ", ".join(f"{name} {count}" for name, count in sorted(counts.items())))
        for sentence in found[:20]:
            self.say(f"✗ {sentence}")
        self.say(f"lost: {f'{len(found)} findings' if found else 'nothing'}")


def main():
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("--service", type=pathlib.Path, default=pathlib.Path(".build/release/holdfast-service"))
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--seed", default=str(random.randrange(10**9)))
    parser.add_argument("--clients", type=int, default=64)
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    folder = tempfile.mkdtemp(prefix="hf", dir="/tmp")
    # Another user runs the database.
    pathlib.Path(folder).chmod(0o711)
    try:
        chaos = Chaos(options.service.resolve(), folder, options.seconds, options.seed, options.clients)
        found = chaos.run()
        chaos.report(found)
        return 1 if found or not chaos.journal.given else 0
    except postgresql.Absent as reason:
        print(f"holdfast: {reason}\nhint: apt-get install postgresql", file=sys.stderr)
        return 69
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
