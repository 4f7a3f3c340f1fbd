"""The yardstick: what one would write by hand on sqlite3, with the pragmas that cutbank sets."""

import sqlite3
from collections.abc import Iterable
from pathlib import Path

import orjson

from .workload import SUMMARY, Piece

PRAGMAS = "foreign_keys = ON", "temp_store = MEMORY", "mmap_size = 0"
LOCK_TIMEOUT = 30


class Raw:
    """One table, one index, prepared statements; it writes one session at a time."""

    INSERT = "INSERT INTO events (session, seq, kind, body) VALUES (?, ?, ?, ?)"

    def __init__(self, path: Path, synchronous: str, key: str, *, shared: bool = False) -> None:
        self.db = sqlite3.connect(
            path,
            isolation_level=None,
            cached_statements=256,
            timeout=LOCK_TIMEOUT,
            check_same_thread=not shared,
        )
        for pragma in ("journal_mode = WAL", f"synchronous = {synchronous}", *PRAGMAS):
            self.db.execute(f"PRAGMA {pragma}")
        self.db.execute(
            "CREATE TABLE IF NOT EXISTS events (id INTEGER PRIMARY KEY, session BLOB, seq INTEGER,"
            " kind TEXT, body BLOB, UNIQUE (session, seq))"
        )
        self.db.execute("CREATE TABLE IF NOT EXISTS cuts (session BLOB PRIMARY KEY, seq, summary)")
        self.session, self.seq = key.encode(), 0

    def append(self, piece: Piece) -> None:
        self.db.execute(self.INSERT, self._row(piece))

    def append_all(self, pieces: Iterable[Piece]) -> None:
        self.db.execute("BEGIN IMMEDIATE")
        self.db.executemany(self.INSERT, [self._row(piece) for piece in pieces])
        self.db.execute("COMMIT")

    def put(self, key: str, seq: int, piece: Piece) -> None:
        """Append to the session that is named."""
        self.db.execute(self.INSERT, (key.encode(), seq, piece["kind"], orjson.dumps(piece)))

    def last(self, key: str) -> int:
        """Where the session that is named ends."""
        query = "SELECT max(seq) FROM events WHERE session = ?"
        return int(self.db.execute(query, (key.encode(),)).fetchone()[0] or 0)

    def all(self, key: str) -> list[tuple[int, Piece]]:
        """All that the session that is named holds."""
        query = "SELECT seq, body FROM events WHERE session = ? ORDER BY seq"
        found = self.db.execute(query, (key.encode(),))
        return [(seq, orjson.loads(body)) for seq, body in found]

    def _row(self, piece: Piece) -> tuple[bytes, int, str, bytes]:
        self.seq += 1
        return self.session, self.seq, piece["kind"], orjson.dumps(piece)

    def compact(self, kept: int) -> None:
        row = (self.session, self.seq - kept, SUMMARY)
        self.db.execute("INSERT OR REPLACE INTO cuts VALUES (?, ?, ?)", row)

    def view(self, _: object = None) -> list[Piece]:
        query = "SELECT seq, summary FROM cuts WHERE session = ?"
        seq, summary = self.db.execute(query, (self.session,)).fetchone()
        query = "SELECT body FROM events WHERE session = ? AND seq > ? ORDER BY seq"
        found = self.db.execute(query, (self.session, seq))
        return [{"kind": "user", "text": summary}, *(orjson.loads(body) for (body,) in found)]

    def close(self) -> None:
        self.db.close()
