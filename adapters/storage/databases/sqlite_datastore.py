"""Keeps connections to one SQLite file: one writer under a lock, one reader per thread."""

import atexit
import os
import sqlite3
import threading
from collections import deque
from collections.abc import Callable, Container, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from time import monotonic
from typing import Any
from weakref import WeakSet, ref

from ....domain.errors import StorageError
from ..databases import sqlite_schema
from ..event_log.storage_errors import translate_storage_errors
from ..private_files import make_file
from ..process_forks import reopen_in_children
from .database_file import (
    accept_copy,
    creates_file,
    find_database_path,
    immediate_transaction,
    make_sqlite_address,
    read_inode,
    rewrite_database,
    save_identity,
    savepoint,
)
from .wal_mode import (
    INSPECTION_LOCK,
    enable_wal,
    get_wal_size,
    leave_wal,
    refuse_foreign_wal,
    refuse_no_database,
)

MAX_WAL_BYTES = 16_000_000
LOCK_TIMEOUT_SECONDS = 30.0
"""How long to wait for another process's transaction."""

MAX_IDLE = 8
"""How many connections of ended threads are kept for others."""

CHECK_INTERVAL_S = 1.0
"""How often to check whether the file was moved away."""

_WRITE_OPERATIONS = {sqlite3.SQLITE_INSERT, sqlite3.SQLITE_UPDATE, sqlite3.SQLITE_DELETE}


class SQLiteLogDatastore:
    """An SQLite database that is a single file at rest, and uses WAL while it is written to.

    Reads use no transaction. `synchronous` is FULL (a commit survives a power cut) or NORMAL (a
    commit survives a crash of the process; a power cut may lose the last commits but never corrupts
    the file).
    """

    writer: sqlite3.Connection
    """Opened on demand, so that only reading changes nothing."""

    def __init__(self, db_name: str, *, synchronous: str = "FULL") -> None:
        sqlite_schema.refuse_old_sqlite()
        self.db_name = db_name
        self.synchronous = synchronous
        self.writing = threading.RLock()
        self._address = make_sqlite_address(db_name)
        self.path = find_database_path(db_name)
        self._inode: str | None = None
        self._process = os.getpid()
        self._looks_again = 0.0
        self._readers: WeakSet[_Reader] = WeakSet()
        self._idle: deque[sqlite3.Connection] = deque()
        """The connections of threads that have ended, for those that begin."""
        self._listing = threading.Lock()
        self._local = _ThreadState()
        self._is_closed = False
        reopen_in_children(self)
        try:
            with translate_storage_errors(db_name):
                self._open()
        except BaseException:
            self.close()
            raise
        _open_datastores.add(self)

    def _open(self) -> None:
        """Refuse another program's database before anything is changed in it."""
        path = self.path
        if path is None:
            sqlite_schema.migrate_database(self.reader, self.db_name)
            return
        refuse_no_database(path)
        if creates_file(self.db_name):
            with INSPECTION_LOCK, suppress(OSError):  # SQLite reports the cause
                make_file(path)
        refuse_foreign_wal(path)
        had_log = get_wal_size(path) > 0
        is_current = sqlite_schema.is_current_schema(self.reader, self.db_name)
        accept_copy(self.reader, path, had_log=had_log)
        if not is_current:
            sqlite_schema.migrate_database(
                self.reader, self.db_name, lambda it: save_identity(it, path)
            )
        self._inode = read_inode(path)

    def _connect(self) -> sqlite3.Connection:
        self._refuse_moved()
        with translate_storage_errors(self.db_name):
            with INSPECTION_LOCK:
                connection = sqlite3.connect(
                    self._address,
                    isolation_level=None,
                    check_same_thread=False,
                    timeout=LOCK_TIMEOUT_SECONDS,
                    cached_statements=256,
                    uri=self._address.startswith("file:"),
                )
            try:
                # No mmap: a failing disk or a truncated file would kill the process by SIGBUS.
                connection.execute("PRAGMA mmap_size = 0")
                connection.execute("PRAGMA temp_store = MEMORY")
            except BaseException:
                connection.close()
                raise
            return connection

    @property
    def reader(self) -> sqlite3.Connection:
        return self._own_reader.connection

    def read(self, query: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Return all rows of a query, while forks wait."""
        own = self._own_reader
        with own.lock:
            connection = self._local.batch or own.connection
            return connection.execute(query, parameters).fetchall()

    def add(self, statement: str, parameters: Sequence[Any]) -> None:
        """Run and commit a statement that adds a row unless it is there."""
        with self.writing:
            self.writer.execute(statement, parameters).fetchall()

    @property
    def _own_reader(self) -> "_Reader":
        try:
            return self._local.reader
        except AttributeError:
            self._refuse_closed()
            reader = _Reader(self._take_idle() or self._connect(), self._idle)
        with self._listing:
            if self._is_closed:
                reader.connection.close()  # or the error's traceback would keep it open
            self._refuse_closed()
            self._readers.add(reader)
        self._local.reader = reader
        return reader

    def _take_idle(self) -> sqlite3.Connection | None:
        try:
            return self._idle.pop()
        except IndexError:
            return None

    def __getattr__(self, name: str) -> Any:
        """Open the writer on first use; from then on it is an ordinary attribute."""
        if name != "writer":
            raise AttributeError(name)
        with self.writing:
            if "writer" not in vars(self):
                self._refuse_closed()
                writer = self._begin_writing()
                with self._listing:
                    if self._is_closed:
                        writer.close()
                    self._refuse_closed()
                    self.writer = writer
        return self.writer

    def _begin_writing(self) -> sqlite3.Connection:
        writer = self._connect()
        try:
            writer.execute(f"PRAGMA synchronous = {self.synchronous}")
            writer.execute("PRAGMA foreign_keys = ON")
            # A long reader makes the write-ahead log grow; it is cut down once it is copied.
            writer.execute(f"PRAGMA journal_size_limit = {MAX_WAL_BYTES}")
            if self.path is not None:
                enable_wal(writer, LOCK_TIMEOUT_SECONDS)
                writer.set_authorizer(_make_format_guard(ref(self), sqlite_schema.SCHEMA_VERSION))
        except BaseException:
            writer.close()
            raise
        return writer

    @contextmanager
    def writing_transaction(self) -> Iterator[sqlite3.Connection]:
        """Run one transaction of this process's writer, stored whole or not at all."""
        with self.writing:
            self._refuse_moved()
            with immediate_transaction(self.writer):
                yield self.writer

    @property
    def is_batching(self) -> bool:
        """Whether this thread is in a batch."""
        return self._local.batch is not None

    @contextmanager
    def batch(self) -> Iterator[None]:
        """Run all that this thread writes and reads in one transaction; others wait to write.

        A batch in another one is a part of it that is stored whole or not at all.
        """
        if self._local.batch is not None:
            with savepoint(self._local.batch):
                yield
            return
        with self.writing_transaction() as writer:
            self._local.batch = writer
            try:
                yield
            finally:
                self._local.batch = None

    def rewrite_file(self) -> None:
        """Write the file again without free space, and empty the write-ahead log.

        Raises StorageError if another process goes on reading an older state.
        """
        with self.writing:
            self._refuse_moved()
            rewrite_database(self.writer, self.db_name)

    def backup(self, target: Path) -> None:
        """Copy the present database into a new file, while others go on writing."""
        self.enter_wal_mode()
        with suppress(OSError):  # as above
            make_file(target)
        copy = sqlite3.connect(target, isolation_level=None)
        try:
            with self._own_reader.lock:
                self.reader.backup(copy)
            copy.execute("PRAGMA journal_mode = DELETE")
            save_identity(copy, target)
        except BaseException:
            copy.close()
            target.unlink(missing_ok=True)
            raise
        copy.close()

    def locks(self) -> Iterator[Any]:
        """Yield the locks that exclude all writing, reading and opening, for `process_forks`."""
        yield self.writing
        yield from [reader.lock for reader in list(self._readers)]
        yield INSPECTION_LOCK

    def leave_in_child(self, held: Container[Any]) -> None:
        """Close what was inherited, or SQLite would take the parent's locks for the child's."""
        writing, self.writing = self.writing, threading.RLock()
        self._listing = threading.Lock()
        if self.path is None:
            return  # in memory, or read without locks: all of it is this process's own
        is_open = not self._is_closed
        for reader in self._readers:
            if is_open and reader.lock in held:
                reader.connection.close()
            else:
                _left_open.append(reader)  # closing it would wait for that thread
        if "writer" in vars(self):
            if is_open and writing in held and not self.writer.in_transaction:
                self.writer.close()
            else:
                _left_open.append(self.writer)  # closing it would undo the parent's work
            del self.writer
        while connection := self._take_idle():
            connection.close()
        self._readers, self._local, self._idle = WeakSet(), _ThreadState(), deque()
        self._process = os.getpid()

    def enter_wal_mode(self) -> None:
        """Switch to WAL before a long read, so that writers need not wait for it."""
        with suppress(sqlite3.OperationalError):  # a read-only file
            _ = self.writer

    def close(self) -> None:
        """Close all connections, and leave a single file if no other process has it open."""
        if self.__dict__.get("_is_closed", True):
            return
        with self._listing:
            self._is_closed = True
            readers = list(self._readers)  # none of them disappears now
        has_written = "writer" in vars(self)
        is_moved = self._is_moved()
        with ExitStack() as waiting:
            # Closing a connection while another thread reads with it would crash the process. In
            # a forked child those threads do not exist, and would be waited for without end.
            for reader in readers if self._process == os.getpid() else ():
                waiting.enter_context(reader.lock)
            connections = [reader.connection for reader in readers if not reader.has_ended]
            while idle := self._take_idle():
                connections.append(idle)
            if has_written:
                connections.append(self.writer)
            self._close_connections(connections, is_moved=is_moved)
        if has_written:
            self._refuse_moved()

    def __del__(self) -> None:
        self.close()

    def _close_connections(self, connections: list[sqlite3.Connection], *, is_moved: bool) -> None:
        for connection in connections[:-1]:
            connection.close()
        for last in connections[-1:]:
            # A refused database stays as it was, and so does a forked parent's.
            if self.path and self._inode and not is_moved and self._process == os.getpid():
                with leave_wal(last, self.path):
                    last.close()
            last.close()

    def check_file(self) -> None:
        """Refuse to write to a file that is gone; called often, so it checks once a second."""
        if (now := monotonic()) > self._looks_again:
            self._looks_again = now + CHECK_INTERVAL_S
            self._refuse_moved()

    def _refuse_closed(self) -> None:
        if self._is_closed:
            raise sqlite3.ProgrammingError("Cannot operate on a closed database.")

    def _refuse_moved(self) -> None:
        """Raise StorageError, as SQLite would go on writing to a deleted file, and lose that."""
        if self._is_moved():
            raise StorageError(
                f"{self.db_name} was moved, deleted or replaced while it was open: what was stored "
                f"since then is not in it; put the file back, or open the one that is there now"
            )

    def _is_moved(self) -> bool:
        return bool(self._inode and self.path and read_inode(self.path) != self._inode)


def _make_format_guard(owner: "ref[SQLiteLogDatastore]", version: int) -> Callable[..., int]:
    """Refuse to write once a newer cutbank has migrated the database.

    SQLite calls the authorizer when it compiles a statement, and compiles all of them again after
    the tables have changed; until then, this costs nothing.
    """

    def authorize(action: int, *_: Any) -> int:
        datastore = owner() if action in _WRITE_OPERATIONS else None
        if datastore is not None and sqlite_schema.read_version(datastore.reader) > version:
            return sqlite3.SQLITE_DENY
        return sqlite3.SQLITE_OK

    return authorize


class _ThreadState(threading.local):
    """What each thread has of its own."""

    reader: "_Reader"
    batch: sqlite3.Connection | None = None
    """The writer, while the thread is in a batch."""


class _Reader:
    """One thread's connection, which goes to another thread when this one ends."""

    def __init__(self, connection: sqlite3.Connection, idle: deque[sqlite3.Connection]) -> None:
        self.connection = connection
        self.lock = threading.RLock()
        self.has_ended = False
        self._idle = idle

    def __del__(self) -> None:
        # While this runs, a thread that closes the datastore can still find the reader; it then
        # holds the lock and closes the connection itself.
        if self.lock.acquire(blocking=False):
            self.has_ended = True
            if len(self._idle) < MAX_IDLE:
                self._idle.append(self.connection)
            else:
                self.connection.close()
            self.lock.release()


_open_datastores: WeakSet[SQLiteLogDatastore] = WeakSet()
_left_open: list[object] = []
"""Connections that threads of a parent were using; they go with the process."""


@atexit.register
def _close_all() -> None:
    """Leave a single file even if the program ends without closing."""
    for datastore in list(_open_datastores):
        with suppress(StorageError):  # its file is gone, and the process ends
            datastore.close()
