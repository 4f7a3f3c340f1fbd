"""Opens the file of the read models, feeds the log into it, and rebuilds an unfit file."""

import sqlite3
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, replace
from hashlib import blake2b
from pathlib import Path
from threading import RLock
from typing import Any, Protocol

from sqlite_utils import Database

from ....domain.errors import StorageError
from ....projections.read_models.session_row import SessionRow, SessionRowSettings
from ..event_log.event_store import EventStore
from ..event_log.stored_row import LogNotification
from ..private_files import make_file
from ..process_forks import reopen_in_children
from ..sqlite.database_file import immediate_transaction
from ..sqlite.wal_mode import enable_wal
from . import schema

_LOCK_TIMEOUT_S = 30.0
"""How long to wait for another process's batch."""
DAMAGE_CODES = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})
DEFAULT_INDEX_SETTINGS = SessionRowSettings(
    idle_seconds=300.0, context_limit=0, least_share=0.5, attempts=3, backoff_seconds=60.0
)
"""The default settings for computing rows."""
_SETTINGS_QUERY = "SELECT name, value FROM settings"


@dataclass(frozen=True, slots=True)
class FeedPosition:
    """The newest notification that a feed has stored, with the event's fingerprint."""

    position: int = 0
    fingerprint: str = ""


class ReadModelDatabase:
    """One file with a writing and a reading connection, which threads may share.

    With WAL and `synchronous=NORMAL`, a power cut may lose the newest batches, rows and position
    together; they are then read from the log again. Writing never waits for the disk.
    """

    def __init__(self, name: str, asked: Mapping[str, float] | None = None) -> None:
        """`asked` are fields of SessionRowSettings; for others, those stored in the file apply."""
        self.name = name
        self.file = None if name.startswith("file:") else Path(name)
        self.writing = RLock()
        self.reading = RLock() if self.file else self.writing
        self.made_anew: str | None = None
        """Why the file was rebuilt, if it was."""
        self._connections: list[sqlite3.Connection] = []
        self._asked = dict(asked or {})
        self._is_left = False
        reopen_in_children(self)
        self._open()

    def read_settings(self, db: Database) -> SessionRowSettings:
        return _make_settings(db.execute(_SETTINGS_QUERY).fetchall())

    @property
    def current_settings(self) -> SessionRowSettings:
        """The settings by which rows are computed now."""
        return _make_settings(self.fetch_rows(_SETTINGS_QUERY))

    def change_settings(self, asked: Mapping[str, float]) -> None:
        """Apply these fields of SessionRowSettings from now on, also to existing rows."""
        self._asked |= asked
        with self.transaction() as db:
            self._save_settings(db)

    @contextmanager
    def transaction(self) -> Iterator[Database]:
        """Run one batch, which is stored whole or not at all, excluding other processes."""
        with self.writing:
            self._reopen_after_fork()
            with immediate_transaction(self.writer.conn):
                yield self.writer

    def execute(self, statement: str, parameters: Sequence[Any]) -> None:
        """Run one statement as a batch."""
        with self.transaction() as db:
            db.execute(statement, parameters)

    def empty(self) -> None:
        with self.transaction() as db:
            self.clear(db, None)

    def fetch_rows(self, query: str, parameters: Any = ()) -> list[tuple[Any, ...]]:
        with self.reading:
            self._reopen_after_fork()
            return self.reader.execute(query, parameters).fetchall()

    def read_position(self, feed: str, db: Database | None = None) -> FeedPosition:
        query = "SELECT position, fingerprint FROM feeds WHERE name = ?"
        found = db.execute(query, (feed,)).fetchall() if db else self.fetch_rows(query, (feed,))
        return FeedPosition(*found[0]) if found else FeedPosition()

    def save_position(self, db: Database, feed: str, newest: LogNotification) -> None:
        """Store a feed's newest event in the batch's own transaction."""
        db.execute(
            "INSERT OR REPLACE INTO feeds (name, position, fingerprint) VALUES (?, ?, ?)",
            (feed, newest.id, fingerprint_event(newest)),
        )

    def clear(self, db: Database, reason: str | None) -> None:
        """Start again with empty tables, in the open transaction."""
        schema.drop_tables(db)
        schema.create_tables(db)
        self._save_settings(db)
        self.made_anew = reason or self.made_anew

    def is_damaged(self, error: sqlite3.Error) -> bool:
        """Return whether an error about damage concerns this file."""
        if error.sqlite_errorcode == sqlite3.SQLITE_CORRUPT_VTAB:
            return True  # the log has no word index
        try:
            return self.fetch_rows("PRAGMA quick_check(1)") != [("ok",)]
        except sqlite3.DatabaseError:
            return True

    def replace(self, reason: str) -> None:
        with self.writing, self.reading:
            damaged = self.seen
            self.close()
            if self.file is None:
                raise StorageError(f"{self.name}: {reason}")
            # If several processes see the damage, SQLite's lock on an empty file lets only one
            # replace it.
            lock = self.file.with_name(f"{self.file.name}-replacing")
            make_file(lock)
            with closing(
                sqlite3.connect(lock, timeout=_LOCK_TIMEOUT_S, isolation_level=None)
            ) as held:
                held.execute("BEGIN EXCLUSIVE")
                if self._file_id() == damaged:
                    for end in ("", "-wal", "-shm"):
                        self.file.with_name(self.file.name + end).unlink(missing_ok=True)
                self.made_anew = reason
                self._open()

    def reopen_replaced(self) -> None:
        """Open the present file if another process has replaced it."""
        if self.file is not None and self._file_id() != self.seen:
            with self.writing, self.reading:
                self.close()
                self._open()

    def close(self) -> None:
        for connection in self._connections:
            connection.close()
        self._connections.clear()

    FORK_RANK = 1

    def locks(self) -> list[Any]:
        """Return the locks that exclude all reading and writing. Called by `process_forks`."""
        return [self.writing, self.reading]

    def leave_in_child(self, held: Container[Any]) -> None:
        """Close what was inherited, like the log's own connections."""
        is_still = self.writing in held and self.reading in held
        self.writing = RLock()
        self.reading = RLock() if self.file else self.writing
        if self.file is not None and not self._is_left:
            self._is_left = bool(self._connections)
            if is_still and not self.writer.conn.in_transaction:
                self.close()
            else:
                _left_open.extend(self._connections)
                self._connections.clear()

    def _reopen_after_fork(self) -> None:
        """Open the file again in a forked process."""
        if self._is_left:
            self._is_left = False
            self._open()

    def _open(self) -> None:
        self.seen = self._file_id()
        try:
            self.writer = self._connect()
            self._prepare()
            # In memory, one connection does both: a second one would wait for the first.
            self.reader = self._connect() if self.file else self.writer
        except sqlite3.DatabaseError as error:
            self.close()
            if not is_damage_error(error) or self.made_anew is not None:
                raise
            self.replace(f"{self.name} was damaged")
        except BaseException:
            self.close()
            raise
        self.seen = self._file_id()

    def _prepare(self) -> None:
        db = self.writer
        application, tables = db.execute(
            "SELECT application_id, (SELECT count(*) FROM sqlite_master) FROM pragma_application_id"
        ).fetchone()
        if application != schema.APPLICATION_ID and (application or tables):
            raise StorageError(
                f"{self.name} is where read models are kept, and is another program's database:"
                " move it away"
            )
        enable_wal(db.conn, _LOCK_TIMEOUT_S)
        if not schema.is_current(db):
            with self.transaction() as db:
                # Another process may have been faster.
                if not schema.is_current(db):
                    self.clear(db, f"{self.name} was of another version" if tables else None)
        elif self._asked:
            with self.transaction() as db:
                self._save_settings(db)

    def _save_settings(self, db: Database) -> None:
        """Store the requested settings, and compute the affected rows again."""
        before = self.read_settings(db)
        rows = [(name, float(value)) for name, value in self._asked.items()]
        db.conn.executemany("INSERT OR REPLACE INTO settings VALUES (?, ?)", rows)
        after = self.read_settings(db)
        if after == before:
            return
        changed = []
        # A session below both shares of the limit was not due and is not due now.
        is_same_limit = after.context_limit == before.context_limit
        least = min(before.least_share, after.least_share) if is_same_limit else 0.0
        for found in list(db.query("SELECT * FROM sessions WHERE utilisation >= ?", [least])):
            session = SessionRow(**found)
            session.measure(after)
            changed.append((session.utilisation, session.due_at, session.id))
        db.conn.executemany("UPDATE sessions SET utilisation = ?, due_at = ? WHERE id = ?", changed)

    def _file_id(self) -> tuple[int, int] | None:
        """Return the device and inode of the file at the path."""
        try:
            found = self.file.stat() if self.file else None
        except FileNotFoundError:
            return None
        return (found.st_dev, found.st_ino) if found else None

    def _connect(self) -> Database:
        if self.file is not None:
            with suppress(OSError):  # SQLite reports the cause
                make_file(self.file)
        connection = sqlite3.connect(
            self.name,
            isolation_level=None,
            check_same_thread=False,
            timeout=_LOCK_TIMEOUT_S,
            uri=self.name.startswith("file:"),
        )
        self._connections.append(connection)
        for pragma in (
            "synchronous = NORMAL",
            "foreign_keys = ON",
            "temp_store = MEMORY",
            "cache_size = -65536",
            # With mapped memory, a failing disk would kill the process.
            "mmap_size = 0",
        ):
            connection.execute(f"PRAGMA {pragma}")
        return Database(connection)


_left_open: list[sqlite3.Connection] = []


def _make_settings(rows: Iterable[tuple[str, float]]) -> SessionRowSettings:
    whole = {"context_limit", "attempts"}
    known: dict[str, Any] = {name: int(value) if name in whole else value for name, value in rows}
    return replace(DEFAULT_INDEX_SETTINGS, **known)


def is_damage_error(error: sqlite3.Error) -> bool:
    """Return whether the error means damaged pages."""
    # Errors that Python code raises have no code.
    return getattr(error, "sqlite_errorcode", 0) & 0xFF in DAMAGE_CODES


class Feed(Protocol):
    """One part of the read models, with its own position."""

    name: str
    page: int
    """The number of events read at a time."""

    def apply(self, db: Database, events: Sequence[LogNotification]) -> int:
        """Write the rows of the events; return how many were taken, at least one."""
        ...


class WrongLogError(Exception):
    """The file was made from another log."""


def read_new_events(
    store: EventStore, place: FeedPosition, limit: int, stop: int | None = None
) -> Sequence[LogNotification]:
    """Return the events that follow in the log.

    Raises WrongLogError if the newest stored event is not in the log: it is another log, or was
    restored from a backup.
    """
    found = store.recorder.select_notifications(place.position, limit + 1, stop)
    if not place.position:
        return found[:limit]
    if not found or place != FeedPosition(found[0].id, fingerprint_event(found[0])):
        raise WrongLogError
    return found[1:]


def fingerprint_event(event: LogNotification) -> str:
    """Return a hash that distinguishes the event from any other at its position."""
    digest = blake2b(str(event.originator_id).encode(), digest_size=16)
    digest.update(f":{event.originator_version}:".encode())
    digest.update(event.state)
    return digest.hexdigest()
