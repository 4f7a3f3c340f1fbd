"""Locates and opens the file of the read models, and keeps their position in the log."""

import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from threading import RLock
from typing import Any

from eventsourcing.persistence import MapperDeserialisationError, PersistenceError
from platformdirs import user_state_path
from sqlite_utils import Database

from ....domain.errors import StorageError
from ..databases.database_file import (
    find_database_path,
    immediate_transaction,
    is_in_memory,
    make_sqlite_address,
    open_own_file,
    read_inode,
    rewrite_database,
)
from ..event_log.addresses import hide_passwords, is_postgres
from ..event_log.event_store import EventStore
from ..event_log.log_tables import StoredRow
from ..event_log.storage_errors import translate_storage_errors
from ..private_files import make_folder
from ..read_models import schema

_DAMAGE_CODES = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})


@dataclass(frozen=True, slots=True)
class FeedPosition:
    """The newest notification that a feed has stored, with the event's fingerprint."""

    position: int = 0
    fingerprint: str = ""


def find_read_models(address: str) -> str:
    """Return the SQLite address of the read models for the log at `address`.

    A log in memory has read models in memory. For a log on a server, or in a read-only folder, they
    are in the user's state folder.
    """
    if is_postgres(address):
        # The password does not change which log it is.
        return str(_state_folder_path(hide_passwords(address)))
    if is_in_memory(address):
        return make_sqlite_address(address)
    path = find_database_path(address)
    if path is None or "mode=ro" in address or not os.access(path.parent, os.W_OK):
        return str(_state_folder_path(str(path or address)))
    return str(path.with_name(f"{path.stem}.read{path.suffix or '.db'}"))


def _state_folder_path(name: str) -> Path:
    folder = user_state_path("cutbank", appauthor=False)
    try:
        make_folder(folder)
    except OSError as error:
        raise StorageError(
            f"{folder}, where read models are kept, cannot be made ({error.strerror}):"
            " set XDG_STATE_HOME to a folder that can be written"
        ) from None
    return folder / f"{blake2b(name.encode('utf-8', 'replace'), digest_size=16).hexdigest()}.db"


class ReadModelDatabase:
    """One file with one connection, which threads share.

    With WAL and `synchronous=NORMAL`, a power cut may lose the newest batches, rows and position
    together; they are then read from the log again. Writing never waits for the disk.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.file = None if name.startswith("file:") else Path(name)
        self.lock = RLock()
        self.rebuild_reason: str | None = None
        """Why the file was rebuilt, if it was."""
        self._open()

    @contextmanager
    def transaction(self) -> Iterator[Database]:
        """Run one batch, which is stored whole or not at all, excluding other processes."""
        with self.lock, immediate_transaction(self.db.conn):
            yield self.db

    def fetch_rows(self, query: str, parameters: Any = ()) -> list[tuple[Any, ...]]:
        with self.lock:
            return self.db.execute(query, parameters).fetchall()

    def read_position(self, feed: str) -> FeedPosition:
        query = "SELECT position, fingerprint FROM feeds WHERE name = ?"
        found = self.fetch_rows(query, (feed,))
        return FeedPosition(*found[0]) if found else FeedPosition()

    def save_position(self, feed: str, newest: StoredRow) -> None:
        """Store a feed's newest event in the batch's own transaction."""
        self.fetch_rows(
            "INSERT OR REPLACE INTO feeds (name, position, fingerprint) VALUES (?, ?, ?)",
            (feed, newest.id, fingerprint_event(newest)),
        )

    def clear(self, db: Database, reason: str | None) -> None:
        """Start again with empty tables, in the open transaction."""
        schema.drop_tables(db)
        schema.create_tables(db)
        self.rebuild_reason = reason or self.rebuild_reason

    def purge(self) -> None:
        """Write the file again, without the words and rows that were removed.

        Raises StorageError if another process goes on reading it.
        """
        with self.lock:
            self.db.execute("INSERT INTO blocks_fts (blocks_fts) VALUES ('optimize')")
            rewrite_database(self.db.conn, self.name)

    def reopen_replaced(self) -> None:
        """Open the present file if the one that was open has been deleted."""
        with self.lock:
            if self.file is not None and read_inode(self.file) != self._opened:
                self.close()
                self._open()

    def close(self) -> None:
        self.db.conn.close()

    def _open(self) -> None:
        connection = open_own_file(self.name, schema.APPLICATION_ID)
        try:
            for pragma in ("foreign_keys = ON", "temp_store = MEMORY", "cache_size = -65536"):
                connection.execute(f"PRAGMA {pragma}")
            self.db = Database(connection)
            if not schema.is_current(self.db):
                with self.transaction():
                    # Under the lock, as another process may have been faster.
                    if not schema.is_current(self.db):
                        is_older = bool(self.db.table_names())
                        self.clear(
                            self.db, f"{self.name} was of another version" if is_older else None
                        )
        except BaseException:
            connection.close()
            raise
        self._opened = read_inode(self.file) if self.file else None


@contextmanager
def translate_read_model_errors(name: str, log: str) -> Iterator[None]:
    """Turn any failure of the read models `name`, or of their log, into a StorageError."""
    with translate_storage_errors(name):
        try:
            yield
        except (PersistenceError, MapperDeserialisationError):
            with translate_storage_errors(log):
                raise
        except sqlite3.DatabaseError as error:
            # Errors that Python code raises have no code.
            if getattr(error, "sqlite_errorcode", 0) & 0xFF not in _DAMAGE_CODES:
                raise
            raise StorageError(
                f"{name} is damaged, or else {log} is: delete the first, which is built again from"
                " the second; if that does not help, restore a backup of the second"
            ) from error


def read_new_events(
    store: EventStore, place: FeedPosition, limit: int, stop: int | None = None
) -> Sequence[StoredRow] | None:
    """Return the events that follow in the log.

    Return None if the newest stored event is not in the log: it is another log, or was restored
    from a backup.
    """
    found = store.recorder.select_notifications(place.position, limit + 1, stop)
    if not place.position:
        return found[:limit]
    if not found or place != FeedPosition(found[0].id, fingerprint_event(found[0])):
        return None
    return found[1:]


def fingerprint_event(event: StoredRow) -> str:
    """Return a hash that distinguishes the event from any other at its position."""
    digest = blake2b(str(event.originator_id).encode(), digest_size=16)
    digest.update(f":{event.originator_version}:".encode())
    digest.update(event.digest)  # which an erasure leaves as it is
    return digest.hexdigest()
