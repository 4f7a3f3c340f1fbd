"""Connections to one SQLite file: one writer under a lock, one reader for each thread."""

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic, sleep
from uuid import uuid4
from weakref import WeakSet

from eventsourcing.sqlite import SQLiteDatastore

from ..plain_errors import speaking_plainly
from .schema import is_current, migrate

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
        self._address = _address(db_name)
        self._readers: WeakSet[_Reader] = WeakSet()
        self._listing = threading.Lock()
        self._local = threading.local()
        self._is_closed = False
        self.writer = self._connect()
        try:
            with speaking_plainly(db_name):
                # Another program's database is refused before anything is changed in it.
                is_current(self.writer, db_name)
                _begin_wal(self.writer)
                migrate(self.writer, db_name)
        except BaseException:
            self.close()
            raise

    def _connect(self) -> sqlite3.Connection:
        with speaking_plainly(self.db_name):
            connection = sqlite3.connect(
                self._address,
                isolation_level=None,
                check_same_thread=False,
                timeout=LOCK_TIMEOUT,
                cached_statements=256,
                uri=self._address.startswith("file:"),
            )
            try:
                for pragma in (
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
            return self._local.reader.connection  # type: ignore[no-any-return]
        except AttributeError:
            reader = _Reader(self._connect())
        with self._listing:
            if self._is_closed:
                raise sqlite3.ProgrammingError("Cannot operate on a closed database.")
            self._readers.add(reader)
        self._local.reader = reader
        return reader.connection

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
        if hasattr(self, "writer"):
            with self._listing:
                self._is_closed = True
                for reader in self._readers:
                    reader.connection.close()
            self.writer.close()
        super().close()


class _Reader:
    """One thread's connection; it goes when the thread goes."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.connection = connection

    def __del__(self) -> None:
        self.connection.close()


def _begin_wal(connection: sqlite3.Connection) -> None:
    """Let readers and a writer not wait for each other; SQLite does not wait to begin with it."""
    deadline = monotonic() + LOCK_TIMEOUT
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or monotonic() > deadline:
                raise
            sleep(0.01)
        else:
            return


def _address(name: str) -> str:
    """What SQLite is told to open.

    A database in memory is this store's own. Its connections lock each other out as those of a
    file do, where with SQLite's shared cache a reader fails while another thread writes.
    """
    if name == ":memory:" or (name.startswith("file:") and "mode=memory" in name):
        return f"file:/cutbank-{uuid4().hex}?vfs=memdb"
    return name
