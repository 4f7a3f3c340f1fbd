"""The file that read models are kept in: opened, written in whole batches, made anew when unfit."""

import sqlite3
from collections.abc import Container, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from threading import RLock
from typing import Any

from sqlite_utils import Database

from ....domain.errors import StorageError
from ....projections.read_models.session_row import SessionRow, SessionRowSettings
from ..private_files import make_file
from ..process_forks import reopen_in_children
from ..sqlite.wal_mode import enable_wal
from . import schema

_LOCK_TIMEOUT_S = 30.0
"""Seconds to wait for another process's batch."""
DAMAGE_CODES = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})
DEFAULT_INDEX_SETTINGS = SessionRowSettings(
    idle_seconds=300.0, context_limit=0, least_share=0.5, attempts=3, backoff_seconds=60.0
)
"""What rows are reckoned with where nobody says otherwise."""
_SETTINGS_QUERY = "SELECT name, value FROM settings"


@dataclass(frozen=True, slots=True)
class FeedPosition:
    """How far a feed has come: the newest notification that is in, and what that event was."""

    position: int = 0
    fingerprint: str = ""


class ReadModelDatabase:
    """One file, one connection that writes and one that reads; threads may share it.

    WAL with `synchronous=NORMAL`: a power cut may take the newest batches, rows and position
    together, and they are read from the log again. Nothing waits for the disk.
    """

    def __init__(self, name: str, asked: Mapping[str, float] | None = None) -> None:
        """`asked` are fields of Settings; for what it leaves out the file's own stay."""
        self.name = name
        self.file = None if name.startswith("file:") else Path(name)
        self.writing = RLock()
        self.reading = RLock() if self.file else self.writing
        self.made_anew: str | None = None
        """Why the file had to be made anew, if it had."""
        self._connections: list[sqlite3.Connection] = []
        self._asked = dict(asked or {})
        self._is_left = False
        reopen_in_children(self)
        self._open()

    def read_settings(self, db: Database) -> SessionRowSettings:
        """What rows are reckoned with, as the file has it."""
        return _make_settings(db.conn.execute(_SETTINGS_QUERY).fetchall())

    @property
    def current_settings(self) -> SessionRowSettings:
        """What rows are reckoned with by now, whoever said so last."""
        return _make_settings(self.fetch_rows(_SETTINGS_QUERY))

    def change_settings(self, asked: Mapping[str, float]) -> None:
        """Reckon with these fields of Settings from now on, also what is in the file already."""
        self._asked |= asked
        with self.transaction() as db:
            self._save_settings(db)

    @contextmanager
    def transaction(self) -> Iterator[Database]:
        """One batch: all of it is stored, or nothing; one process after the other."""
        with self.writing:
            self._reopen_after_fork()
            connection = self.writer.conn
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield self.writer
                connection.execute("COMMIT")
            except BaseException:
                # A full disk may have ended the transaction already.
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise

    def fetch_rows(self, query: str, parameters: Any = ()) -> list[tuple[Any, ...]]:
        """What a query finds in what is committed."""
        with self.reading:
            self._reopen_after_fork()
            return self.reader.conn.execute(query, parameters).fetchall()

    def read_position(self, feed: str, db: Database | None = None) -> FeedPosition:
        """How far a feed has come."""
        query = "SELECT position, fingerprint FROM feeds WHERE name = ?"
        if db is None:
            found = self.fetch_rows(query, (feed,))
        else:
            found = db.conn.execute(query, (feed,)).fetchall()
        return FeedPosition(*found[0]) if found else FeedPosition()

    def save_position(self, db: Database, feed: str, place: FeedPosition) -> None:
        """Note in a batch's own transaction how far it goes."""
        row = {"name": feed, "position": place.position, "fingerprint": place.fingerprint}
        db.table("feeds").upsert(row, pk="name")

    def clear(self, db: Database, reason: str | None) -> None:
        """Begin again from an empty log, in the transaction that is open."""
        schema.drop_tables(db)
        schema.create_tables(db)
        self._save_settings(db)
        self.made_anew = reason or self.made_anew

    def is_damaged(self, error: sqlite3.Error) -> bool:
        """Whether an error that speaks of damage is about this file."""
        if error.sqlite_errorcode == sqlite3.SQLITE_CORRUPT_VTAB:
            return True  # a log has no index of words
        try:
            return self.fetch_rows("PRAGMA quick_check(1)") != [("ok",)]
        except sqlite3.DatabaseError:
            return True

    def replace(self, reason: str) -> None:
        """Put an empty file in the place of one that is damaged."""
        with self.writing, self.reading:
            damaged = self.seen
            self.close()
            if self.file is None:
                raise StorageError(f"{self.name}: {reason}")
            # Of several processes that see the damage, one replaces the file; SQLite's own lock
            # on an empty file tells them apart, and goes when its holder goes.
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
        """Open what stands at the path now, where another process has replaced the file."""
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
        """As `process_forks` asks: nobody writes or reads."""
        return [self.writing, self.reading]

    def leave_in_child(self, held: Container[Any]) -> None:
        """Close what was inherited, as the log's own connections are closed."""
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
        """Open the file again where this process was forked from the one that had opened it."""
        if self._is_left:
            self._is_left = False
            self._open()

    def _open(self) -> None:
        self.seen = self._file_id()
        try:
            self.writer = self._connect()
            self._prepare()
            # In memory one connection does both: a second one would wait for the first.
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
        connection = self.writer.conn
        application, tables = connection.execute(
            "SELECT application_id, (SELECT count(*) FROM sqlite_master) FROM pragma_application_id"
        ).fetchone()
        if application != schema.APPLICATION_ID and (application or tables):
            raise StorageError(
                f"{self.name} is where read models are kept, and is another program's database:"
                " move it away"
            )
        enable_wal(connection, _LOCK_TIMEOUT_S)
        if not schema.is_current(self.writer):
            with self.transaction() as db:
                # Another process may have been first.
                if not schema.is_current(db):
                    old = bool(db.table_names())
                    self.clear(db, f"{self.name} was of another version" if old else None)
        elif self._asked:
            with self.transaction() as db:
                self._save_settings(db)

    def _save_settings(self, db: Database) -> None:
        """Write down what was asked for; what rows were reckoned with before is reckoned anew."""
        before = self.read_settings(db)
        rows = [{"name": name, "value": float(value)} for name, value in self._asked.items()]
        db.table("settings").upsert_all(rows, pk="name")
        after = self.read_settings(db)
        if after == before:
            return
        changed = []
        # What fills less of the limit than both ask for was not due, and is not due now.
        is_same_limit = after.context_limit == before.context_limit
        least = min(before.least_share, after.least_share) if is_same_limit else 0.0
        for found in db.table("sessions").rows_where("utilisation >= ?", [least]):
            session = SessionRow.from_row(found)
            session.measure(after)
            changed.append((session.utilisation, session.due_at, session.id))
        db.conn.executemany("UPDATE sessions SET utilisation = ?, due_at = ? WHERE id = ?", changed)

    def _file_id(self) -> tuple[int, int] | None:
        """Which file stands at the path."""
        try:
            found = self.file.stat() if self.file else None
        except FileNotFoundError:
            return None
        return (found.st_dev, found.st_ino) if found else None

    def _connect(self) -> Database:
        if self.file is not None:
            with suppress(OSError):  # SQLite says what is wrong
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
            # A disk that fails under mapped memory would kill the process.
            "mmap_size = 0",
        ):
            connection.execute(f"PRAGMA {pragma}")
        return Database(connection, recursive_triggers=False, execute_plugins=False)


_left_open: list[sqlite3.Connection] = []


def _make_settings(rows: Iterable[tuple[str, float]]) -> SessionRowSettings:
    whole = {"context_limit", "attempts"}
    known: dict[str, Any] = {name: int(value) if name in whole else value for name, value in rows}
    return replace(DEFAULT_INDEX_SETTINGS, **known)


def is_damage_error(error: sqlite3.Error) -> bool:
    """Whether it says that the file's pages are not what they were."""
    # Whoever raises such an error in Python gives it no code.
    return getattr(error, "sqlite_errorcode", 0) & 0xFF in DAMAGE_CODES
