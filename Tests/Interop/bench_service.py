#!/usr/bin/python3
"""Measures the online service over PostgreSQL, and writes the figures into docs/performance.md.

usage: bench_service.py [--service PROGRAM] [--enrolments N] [--devices N] [--tokens N] [--connections N] [--write]

64 provers enrol at once, each on a new connection; the service's processor time is compared with that of the signatures
and key agreements of as many enrolments. Then each request is timed in a small and in a large database, and connections are
kept idle. The client is in C, and shares the processors with the service and the database.
"""

import argparse
import hashlib
import json
import os
import pathlib
import platform
import resource
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import postgresql
from holdfast_peer.checks import Failed
from online_fleet import Fleet, Host

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
PAGE = ROOT / "docs/performance.md"
BEGIN, END = "<!-- Written by make bench-service. -->\n", "<!-- End of what make bench-service wrote. -->\n"
CLIENTS, PORTION, SMALL = 64, 10_000, 1000
# The repetitions of a request whose time is compared.
REPEATED = 200
# The tables that `fill` fills.
FILLED = {"devices", "provers", "users", "tokens"}
# The key that signed the tokens which `fill` makes.
SIGNER = r"\x0011223344556677"
# Ten million tokens take a quarter of an hour.
FILL_SECONDS = 3600
ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"


class Bench:
    def __init__(self, service, folder):
        self.folder = pathlib.Path(folder)
        self.server = postgresql.Server(folder, "a")
        self.load = self.folder / "service_load"
        source = pathlib.Path(__file__).parent / "service_load.c"
        words = ["gcc", "-O2", "-o", self.load, source, "-lssl", "-lcrypto", "-lpthread"]
        subprocess.run(words, check=True, timeout=60)
        self.fleet = Fleet(service, folder, postgresql.url(self.server), log_level="warning", idle_seconds=3600)
        self.lines, self.other_work = [], os.getloadavg()[0]

    def prepare(self):
        self.server.create()
        self.fleet.create()
        self.fleet.serve(1)
        self.fleet.approve_app()
        self.devices = [self.fleet.add_device(f"lock-{number}") for number in range(SMALL)]
        self.hosts = [Host(self.fleet) for _ in range(SMALL)]

    @property
    def instance(self):
        return self.fleet.instances[0]

    def restart(self):
        """Starts the instance anew, so that its memory is not that of earlier work."""
        self.instance.end()
        self.instance.process.stdout.close()
        self.instance.start()
        if not self.instance.wait():
            raise Failed(self.instance.log.read_text()[-300:])

    def run_load(self, *words, input=None):
        words = [self.load, words[0], *map(str, words[1:])]
        return subprocess.run(words, input=input, check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()

    def checked(self, lines, count):
        """The answers that the client printed, each of which must be a success."""
        answers = [line.split() for line in lines]
        wrong = [answer for answer in answers if answer[2] not in ("200", "201")]
        if wrong or len(answers) != count:
            raise Failed(f"{len(wrong)} of {len(answers)} answers are wrong, and {count} are due: {wrong[:3]}")
        return answers

    def note(self, figure, measured, target=""):
        self.lines.append((figure, measured, target))
        print(f"{figure}: {measured}{f' (target: {target})' if target else ''}", flush=True)

    def invite(self, devices):
        """Stores an invitation for each device, and returns their codes. The operators' interface is not measured here."""
        codes, rows, now = [], [], int(time.time())
        for device in devices:
            text = "".join(secrets.choice(ALPHABET) for _ in range(20))
            codes.append("-".join(text[at : at + 5] for at in range(0, 20, 5)))
            stored = hashlib.sha256(b"holdfast/1 invitation\0" + codes[-1].encode()).hexdigest()
            values = (
                rf"\\x{secrets.token_hex(16)}",
                rf"\\x{stored}",
                rf"\\x{device['device_id']}",
                now,
                "bench",
                now + 86400,
            )
            rows.append("\t".join(map(str, values)))
        path = self.folder / "invitations"
        path.write_text("\n".join(rows) + "\n")
        path.chmod(0o644)
        self.server.sql(rf"\copy invitations (id, digest, device, created, creator, expires) FROM '{path}'")
        return codes

    def work(self, count):
        """The bodies of enrolments with fresh baselines, each of another host for another device than the one before."""
        devices = [self.devices[number % SMALL] for number in range(count)]
        lines = []
        for number, (device, code) in enumerate(zip(devices, self.invite(devices))):
            lines.append(json.dumps({"device": device, "evidence": self.hosts[number % SMALL].evidence()}))
            lines.append(json.dumps({"device": device, "attestation": "@", "invitation": code}))
        return "\n".join(lines) + "\n"

    # The figures

    def enrol(self, count):
        port, authority = self.instance.port, self.fleet.authority.file
        self.run_load("enrol", port, authority, CLIENTS, input=self.work(CLIENTS * 4))
        before, times, resident, wall = self.instance.processor_seconds(), [], [], 0
        for first in range(0, count, PORTION):
            work = self.work(min(PORTION, count - first))
            began = time.monotonic()
            times += self.run_load("enrol", port, authority, CLIENTS, input=work)
            wall += time.monotonic() - began
            resident.append(self.instance.resident_bytes())
        used = (self.instance.processor_seconds() - before) / count * 1e6
        alone = float(self.run_load("cryptography", 5000)[0])
        answers = self.checked(times, 3 * count)
        self.note("enrolments, 64 provers at once", f"{count:,}, {count / wall:.0f} a second")
        self.note(
            "processor time of the service for each",
            f"{used:.0f} µs, {used / alone:.1f} times that of its signatures and key agreements ({alone:.0f} µs)",
            "4 times",
        )
        for path, name, target in (
            ("connect", "a connection with TLS 1.3", ""),
            ("/v1/attest", "/v1/attest", "100 ms"),
            ("/v1/tokens", "/v1/tokens", "100 ms"),
        ):
            found = sorted(int(answer[3]) for answer in answers if answer[1] == path)
            p50, p99 = (found[int(len(found) * part)] / 1000 for part in (0.5, 0.99))
            self.note(f"{name}, 50th and 99th percentile", f"{p50:.0f} ms, {p99:.0f} ms", target)
        tenth = resident[max(0, len(resident) // 10 - 1)]
        self.note(
            "resident memory after a tenth, and at the end",
            f"{tenth / 2**20:.0f} MiB, {resident[-1] / 2**20:.0f} MiB",
            "128 MiB, flat",
        )

    def idle(self, count):
        self.restart()
        before = self.instance.resident_bytes()
        words = [self.load, "idle", str(self.instance.port), self.fleet.authority.file, str(count)]
        with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as client:
            if client.stdout.readline() != b"idle\n":
                raise Failed("the connections were not made")
            each = (self.instance.resident_bytes() - before) / count
            client.stdin.close()
        self.note(f"{count:,} idle TLS connections, each", f"{each / 1024:.0f} KiB", "100 KiB")

    def requests(self):
        """The requests that are compared: for each name, lines for the client, about records that `fill` made."""
        bearer, count = f"Authorization: Bearer {self.fleet.operator}", REPEATED
        sample = self.server.sql(
            f"SELECT encode(id, 'hex'), encode(prover, 'hex'), encode(device, 'hex'), username FROM tokens "
            f"WHERE signer = '{SIGNER}' AND revoked IS NULL ORDER BY id LIMIT {count}"
        )
        tokens = [line.split("|") for line in sample]
        devices = self.server.sql(f"SELECT encode(id, 'hex') FROM devices ORDER BY id LIMIT {count}")

        def line(method, path, body=None, is_admin=True):
            text = "-" if body is None else json.dumps(body)
            return f"{method}\t{'/v1/admin' if is_admin else ''}{path}\t{bearer if is_admin else '-'}\t{text}"

        def each(method, path, values, body=None):
            return [line(method, path.format(value), body) for value in values]

        reason = {"reason": "bench"}
        return {
            "GET /readyz": [line("GET", "/readyz", is_admin=False)] * count,
            "GET /.well-known/jwks.json": [line("GET", "/.well-known/jwks.json", is_admin=False)] * count,
            "GET devices/{id}": each("GET", "/devices/{}", devices),
            "GET devices": each("GET", "/devices?after={}", devices),
            "GET tokens/{id}": each("GET", "/tokens/{}", [token[0] for token in tokens]),
            "GET tokens": each("GET", "/tokens?after={}", [token[0] for token in tokens]),
            "GET tokens?device": each("GET", "/tokens?limit=1&device={}", [token[2] for token in tokens]),
            "GET tokens?prover": each("GET", "/tokens?limit=1&prover={}", [token[1] for token in tokens]),
            "GET tokens?user": each("GET", "/tokens?limit=1&user={}", [token[3] for token in tokens]),
            "GET provers": each("GET", "/provers?limit=100", [""] * count),
            "GET invitations": each("GET", "/invitations?limit=100", [""] * count),
            "GET requests?status=waiting": each("GET", "/requests?status=waiting", [""] * count),
            "GET refusals": each("GET", "/refusals", [""] * count),
            "GET changes": each("GET", "/changes", [""] * count),
            "GET statistics": each("GET", "/statistics", [""] * count),
            "POST invitations": each(
                "POST", "/invitations{}", [""] * count, {"device": self.devices[0]["device_id"], "valid_seconds": 3600}
            ),
            "POST tokens/{id}/revoke": each("POST", "/tokens/{}/revoke", [token[0] for token in tokens], reason),
            "POST provers/{id}/revoke": each("POST", "/provers/{}/revoke", [token[1] for token in tokens], reason),
            "POST users/{id}/revoke": each("POST", "/users/{}/revoke", [token[3] for token in tokens], reason),
            "POST devices/{id}/revoke": each("POST", "/devices/{}/revoke", [token[2] for token in tokens], reason),
        }

    def time_requests(self):
        """The median of each request, in microseconds, made one after the other."""
        port, authority, found = self.instance.port, self.fleet.authority.file, {}
        answers = self.checked(self.run_load("enrol", port, authority, 1, input=self.work(REPEATED)), 3 * REPEATED)
        for path in ("/v1/attest", "/v1/tokens"):
            found[f"POST {path}"] = sorted(int(answer[3]) for answer in answers if answer[1] == path)
        for name, lines in self.requests().items():
            answers = self.checked(self.run_load("ask", port, authority, input="\n".join(lines) + "\n"), len(lines))
            found[name] = sorted(int(answer[3]) for answer in answers)
        return {name: times[len(times) // 2] for name, times in found.items()}

    def fill(self, devices, tokens):
        """Adds records of the sizes that the service writes: as many provers and users as devices."""
        now, mark = int(time.time()), secrets.token_hex(4)

        def hashed(kind, number):
            return f"sha256(('{kind} {mark} ' || {number})::bytea)"

        def identifier(kind, number):
            return f"substr({hashed(kind, number)}, 1, 16)"

        device, prover = (identifier(kind, f"(i % {devices})") for kind in ("device", "prover"))
        self.server.sql(
            f"""INSERT INTO devices (id, point, label, added, generation)
            SELECT {device}, '\\x04' || {hashed("x", "i")} || {hashed("y", "i")}, 'lock-' || i, {now}, 1
            FROM generate_series(0, {devices - 1}) i""",
            f"""INSERT INTO provers (id, first_seen, last_seen)
            SELECT {prover}, {now}, {now} FROM generate_series(0, {devices - 1}) i""",
            f"""INSERT INTO users (name, added)
            SELECT 'user-{mark}-' || i, {now} FROM generate_series(0, {devices - 1}) i""",
            f"""INSERT INTO tokens (id, baseline, device, prover, subject, version, username, issued, expires,
              generation, signer, format, bytes, claims)
            SELECT {identifier("token", "i")}, {hashed("baseline", "i")}, {device}, {prover}, 'app', '1.2.3',
              'user-{mark}-' || (i % {devices}), {now} - i % 1000000, {now} + 7776000, 1, '{SIGNER}', 'cose',
              (SELECT string_agg(sha256((i || ' ' || j)::bytea), '') FROM generate_series(1, 13) j),
              '{{"issuer":"holdfast","subject":"app","version":[1,2,3],"generation":1,"issued":1,"expires":2,
                "maximum_uses":null,"commands":null,"user":null}}'
            FROM generate_series(0, {tokens - 1}) i""",
            "VACUUM (ANALYZE)",
            seconds=FILL_SECONDS,
        )

    def compare(self, devices, tokens):
        self.fill(SMALL, SMALL)
        self.time_requests()
        small = self.time_requests()
        self.fill(devices, tokens)
        self.restart()
        self.time_requests()
        scans = self.server.sql("SELECT relname, seq_scan FROM pg_stat_user_tables")
        large = self.time_requests()
        # The server's counts come with a delay.
        time.sleep(1)
        grown = set(self.server.sql("SELECT relname, seq_scan FROM pg_stat_user_tables")) - set(scans)
        size = self.server.sql(f"SELECT pg_size_pretty(pg_database_size('{postgresql.DATABASE}'))")[0]
        ratios = sorted(((large[name] / small[name], name) for name in small), reverse=True)
        self.note(
            f"a request with {devices:,} devices and {tokens:,} tokens ({size}), to its time with {SMALL:,} of each",
            f"at most {ratios[0][0]:.2f} times ({ratios[0][1]}: {small[ratios[0][1]] / 1000:.1f} and "
            f"{large[ratios[0][1]] / 1000:.1f} ms)",
            "1.5 times",
        )
        for ratio, name in ratios:
            print(f"  {name:32} {small[name] / 1000:6.1f} ms {large[name] / 1000:6.1f} ms  {ratio:.2f}")
        whole = sorted({line.split("|")[0] for line in grown} & FILLED)
        self.note("tables of those sizes that a request reads as a whole", ", ".join(whole) or "none", "none")

    def close(self):
        self.fleet.close()
        self.server.kill()

    def write(self, command):
        """Replaces the table in the page."""
        text = PAGE.read_text()
        start, end = text.index(BEGIN) + len(BEGIN), text.index(END)
        rows = "".join(f"| {figure} | {measured} | {target} |\n" for figure, measured, target in self.lines)
        place = f"{os.cpu_count()} processors ({platform.machine()})"
        head = (
            f"`{command}`, on {place}, with PostgreSQL on the\nsame host. Other work when it began: a load average of "
        )
        head += f"{self.other_work:.1f}. Above 0.5, the percentiles and the comparison say little.\n\n"
        PAGE.write_text(
            text[:start] + f"\n{head}| figure | measured | target |\n| --- | --- | --- |\n{rows}\n" + text[end:]
        )


def main():
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("--service", type=pathlib.Path, default=ROOT / ".build/release/holdfast-service")
    parser.add_argument("--enrolments", type=int, default=100_000)
    parser.add_argument("--devices", type=int, default=1_000_000)
    parser.add_argument("--tokens", type=int, default=10_000_000)
    parser.add_argument("--connections", type=int, default=10_000)
    parser.add_argument("--write", action="store_true", help="write the figures into docs/performance.md")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    folder = tempfile.mkdtemp(prefix="hf")
    pathlib.Path(folder).chmod(0o711)
    try:
        bench = Bench(options.service.resolve(), folder)
        try:
            bench.prepare()
            if options.enrolments:
                bench.enrol(options.enrolments)
            if options.connections:
                bench.idle(options.connections)
            if options.tokens:
                bench.compare(options.devices, options.tokens)
        finally:
            bench.close()
        if options.write:
            bench.write(
                f"make bench-service ENROLMENTS={options.enrolments} DEVICES={options.devices} TOKENS={options.tokens}"
            )
    except postgresql.Absent as reason:
        print(f"holdfast: {reason}\nhint: apt-get install postgresql", file=sys.stderr)
        return 69
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
