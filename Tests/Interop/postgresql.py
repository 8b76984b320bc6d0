"""PostgreSQL servers in temporary folders: a primary with a synchronous standby, and what becomes of them in a failover.

A server ends with the process that started it. Over its socket, everyone who may enter its folder may connect as any role.
"""

import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import time

from holdfast_peer.checks import Failed

SECONDS = 60
DATABASE = ROLE = "holdfast"
SETTINGS = """
listen_addresses = ''
max_connections = 100
shared_buffers = 64MB
wal_keep_size = 128MB
max_wal_size = 1GB
hot_standby_feedback = on
wal_retrieve_retry_interval = 100ms
wal_receiver_status_interval = 1s
log_checkpoints = off
"""
# Only processes are killed here, never the machine.
WITHOUT_DISK = "fsync = off"


class Absent(Exception):
    """PostgreSQL is not installed here."""


def programs():
    """The folder with the programs of the newest version that is installed."""
    versions = [path for path in pathlib.Path("/usr/lib/postgresql").glob("*/bin/postgres") if os.access(path, os.X_OK)]
    if not versions or not shutil.which("setpriv"):
        raise Absent("PostgreSQL is not installed")
    return max(versions, key=lambda path: int(re.sub(r"\D", "", path.parent.parent.name) or 0)).parent


def start_process(words, **options):
    """Starts a program without input."""
    return subprocess.Popen(words, stdin=subprocess.DEVNULL, **options)


def url(*servers, database=DATABASE):
    """The URL of a database for the service. A connection may take a minute, on a busy machine."""
    hosts = ",".join(str(server.folder) for server in servers)
    ports = ",".join(str(server.port) for server in servers)
    return f"postgresql:///{database}?user={ROLE}&host={hosts}&port={ports}&connect_timeout=60"


class Server:
    """A server in `folder`, which may be started, killed, promoted and made again. Only the main thread may start it."""

    def __init__(self, folder, name, start=start_process):
        self.folder, self.name, self._start = pathlib.Path(folder) / name, name, start
        self.programs, self.process = programs(), None
        self.data, self.log = self.folder / "data", self.folder / "log"
        self.folder.mkdir(mode=0o700)
        # PostgreSQL refuses to run as root, so root gives the folder to another user.
        if os.geteuid() == 0:
            shutil.chown(self.folder, "postgres", "postgres")
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]

    def owner(self, *words, death="keep"):
        identity = ("--reuid=postgres", "--regid=postgres", "--clear-groups") if os.geteuid() == 0 else ()
        return ["setpriv", f"--pdeathsig={death}", *identity, *map(str, words)]

    def run(self, name, *words, seconds=SECONDS):
        """Runs a program of PostgreSQL as the server's owner, and returns its output."""
        words = self.owner(self.programs / name, *words)
        options = {"stdin": subprocess.DEVNULL, "capture_output": True, "text": True, "cwd": "/"}
        done = subprocess.run(words, timeout=seconds, check=False, **options)
        if done.returncode:
            raise Failed(f"{name}: {done.stderr[-500:]}")
        return done.stdout

    def sql(self, *statements, database=DATABASE, role="postgres", seconds=SECONDS):
        """Runs statements, each in a separate transaction, and returns the lines of their results."""
        words = [word for statement in statements for word in ("-c", statement)]
        connection = ("-h", self.folder, "-p", self.port, "-U", role, "-d", database)
        return self.run("psql", "-XqAt", "-v", "ON_ERROR_STOP=1", *connection, *words, seconds=seconds).splitlines()

    # Making it

    def create(self, *settings):
        """Makes a primary with an empty database, and starts it."""
        how = (
            "--auth=trust",
            "--username=postgres",
            "--encoding=UTF8",
            "--locale=C.UTF-8",
            "--no-instructions",
            "--wal-segsize=1",
        )
        self.run("initdb", "--no-sync", *how, "-D", self.data)
        self.configure(SETTINGS, *settings)
        self.start()
        self.sql(f"CREATE ROLE {ROLE} LOGIN", f"CREATE DATABASE {DATABASE} OWNER {ROLE}", database="postgres")

    def follow(self, primary):
        """Becomes a standby of a running server, whatever it was, and starts."""
        self.kill()
        self._remove_data()
        source = f"host={primary.folder} port={primary.port} user=postgres application_name={self.name}"
        self.run(
            "pg_basebackup", "--checkpoint=fast", "--no-sync", "--write-recovery-conf", "-d", source, "-D", self.data
        )
        self.configure()
        self.start()

    def _remove_data(self):
        subprocess.run(self.owner("rm", "-rf", self.data), check=True, timeout=SECONDS)

    def configure(self, *settings):
        """Adds lines to `postgresql.conf`."""
        place = (f"port = {self.port}", f"unix_socket_directories = '{self.folder}'")
        # The last of several lines for a setting counts, and the file keeps its owner.
        with (self.data / "postgresql.conf").open("a") as file:
            file.write("\n".join((*settings, *place, "")))

    # Its life

    def start(self):
        """Starts the server, and waits until it accepts connections."""
        with self.log.open("ab") as log:
            words = self.owner(self.programs / "postgres", "-D", self.data, death="QUIT")
            self.process = self._start(words, stdout=log, stderr=log, cwd="/")
        self.wait(lambda: self.accepts(), "accepts connections")

    def accepts(self):
        """Whether it accepts connections; it may be a standby."""
        try:
            return self.sql("SELECT 1", database="postgres") == ["1"]
        except Failed:
            return False

    def wait(self, holds, what):
        deadline = time.monotonic() + SECONDS
        while not holds():
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise Failed(f"{self.name} never {what}: {self.log.read_text(errors='replace')[-800:]}")
            time.sleep(0.02)

    @property
    def is_running(self):
        return self.process is not None and self.process.poll() is None

    def kill(self):
        """Kills all processes of the server at once, as a power cut would. None is left afterwards."""
        if not self.is_running:
            return
        # The first process stands still, so that it starts no others.
        self.process.send_signal(signal.SIGSTOP)
        children = _children(self.process.pid)
        for number in (*children, self.process.pid):
            os.kill(number, signal.SIGKILL)
        self.process.wait()
        deadline = time.monotonic() + SECONDS
        while any(_is_running(number) for number in children):
            if time.monotonic() > deadline:
                raise Failed(f"a process of {self.name} survived SIGKILL")
            time.sleep(0.005)

    def stop(self):
        """Ends the server in order."""
        if self.is_running:
            self.process.send_signal(signal.SIGINT)
            self.process.wait(SECONDS)

    def promote(self):
        """Makes a standby the primary."""
        self.run("pg_ctl", "promote", "--wait", "-D", self.data)


class Pair:
    """A primary with one synchronous standby. A failover exchanges their roles."""

    def __init__(self, folder, start=start_process):
        self.primary, self.standby = (Server(folder, name, start) for name in ("a", "b"))
        # Both in the order in which the service's URL names them.
        self.servers = (self.primary, self.standby)

    def create(self):
        self.primary.create(WITHOUT_DISK)
        # Only now: without a standby, the primary would acknowledge nothing.
        self.primary.configure("synchronous_commit = on", "synchronous_standby_names = 'FIRST 1 (a, b)'")
        self.standby.follow(self.primary)
        self.primary.sql("SELECT pg_reload_conf()")
        self.wait_for_replication()

    @property
    def url(self):
        return url(*self.servers)

    def wait_for_replication(self):
        query = "SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'"
        self.primary.wait(lambda: self.primary.sql(query) == ["1"], "has a synchronous standby")

    def lose_primary(self):
        """Kills the primary and promotes the standby, which then waits for a standby before it acknowledges anything."""
        self.primary.kill()
        # All its processes are dead: the former primary is fenced.
        self.standby.promote()
        self.primary, self.standby = self.standby, self.primary

    def revive_former_primary(self):
        """Starts the former primary as it was when it was killed: it regards itself as the primary."""
        self.standby.start()

    def rebuild(self):
        """Makes the former primary the standby of its successor."""
        self.standby.follow(self.primary)
        self.wait_for_replication()

    def kill(self):
        for server in self.servers:
            server.kill()

    @property
    def timeline(self):
        """The timeline of the primary: 1 at first, and one more after each failover."""
        return int(self.primary.sql("SELECT pg_walfile_name(pg_current_wal_lsn())")[0][:8], 16)


def _children(parent):
    found = []
    for path in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            # The name of the program is in parentheses; its state and its parent follow.
            if int(path.read_text().rsplit(")", 1)[1].split()[1]) == parent:
                found.append(int(path.parent.name))
        except (OSError, IndexError, ValueError):
            continue
    return found


def _is_running(number):
    try:
        return pathlib.Path(f"/proc/{number}/stat").read_text().rsplit(")", 1)[1].split()[0] not in "ZX"
    except OSError:
        return False
