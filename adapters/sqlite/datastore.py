"""Connections to one SQLite file: one writer under a lock, one reader for each thread."""

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from eventsourcing.sqlite import SQLiteDatastore

from .plain_errors import speaking_plainly
from .schema import migrate

LOCK_TIMEOUT = 30.0
"""Seconds to wait for another process's transaction."""


class Datastore(SQLiteDatastore):
    """WAL, durable by default, and no transaction around a read.

    `synchronous` is FULL (a commit survives a power cut) or NORMAL (it survives a crash of the
    process, and a power cut may lose the last commits but never corrupts).
    """

    def __init__(self, db_name: str, *, synchronous: str = "FULL") -> None:
        super().__init__(db_name=db_name)
        self.db_name = db_name
        self.synchronous = synchronous
        self.writing = threading.RLock()
        self._readers: list[sqlite3.Connection] = []
        self._local = threading.local()
        self.writer = self._connect()
        try:
            with speaking_plainly(db_name):
                migrate(self.writer, db_name)
        except BaseException:
            self.close()
            raise

    def _connect(self) -> sqlite3.Connection:
        with speaking_plainly(self.db_name):
            connection = sqlite3.connect(
                self.db_name,
                isolation_level=None,
                check_same_thread=False,
                timeout=LOCK_TIMEOUT,
                cached_statements=256,
                uri=self.db_name.startswith("file:"),
            )
            try:
                for pragma in (
                    "journal_mode = WAL",
                    f"synchronous = {self.synchronous}",
                    "foreign_keys = ON",
                    "temp_store = MEMORY",
                    "mmap_size = 268435456",
                ):
                    connection.execute(f"PRAGMA {pragma}")
            except BaseException:
                connection.close()
                raise
            return connection

    @property
    def reader(self) -> sqlite3.Connection:
        """This thread's own connection for reading."""
        try:
            return self._local.connection  # type: ignore[no-any-return]
        except AttributeError:
            connection = self._local.connection = self._connect()
            self._readers.append(connection)
            return connection

    @contextmanager
    def writing_transaction(self) -> Iterator[sqlite3.Connection]:
        """One transaction of this process's writer; all of it is stored, or nothing."""
        with self.writing:
            self.writer.execute("BEGIN IMMEDIATE")
            try:
                yield self.writer
                self.writer.execute("COMMIT")
            except BaseException:
                # A full disk may have ended the transaction already.
                if self.writer.in_transaction:
                    self.writer.execute("ROLLBACK")
                raise

    def backup(self, target: Path) -> None:
        """Copy the database as it is now into a new file, while others go on writing."""
        copy = sqlite3.connect(target)
        try:
            self.reader.backup(copy)
            copy.execute("PRAGMA journal_mode = DELETE")
        finally:
            copy.close()

    def close(self) -> None:
        for connection in self._readers:
            connection.close()
        self._readers.clear()
        self._local = threading.local()
        if hasattr(self, "writer"):
            self.writer.close()
        super().close()
