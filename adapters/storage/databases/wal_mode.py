"""Switches a database between a single file at rest and WAL mode in use.

The last process to close it restores the single file. So a file in WAL mode without a log was
copied without its log, or left by another program; and a log next to a file at rest belongs to
another database.
"""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Lock
from time import monotonic, sleep

from ....domain.errors import StorageError

try:
    import fcntl
except ImportError:  # without it, two processes that close together may both leave WAL mode on
    fcntl = None  # type: ignore[assignment]

SQLITE_MAGIC = b"SQLite format 3\0"
WRITE_VERSION_OFFSET = 18
"""The header byte that says whether a file is at rest (1) or in use (2)."""
ROLLBACK_VERSION = b"\x01"
_MAX_LOOKS = 5
RETRY_PAUSE_S = 0.01

INSPECTION_LOCK = Lock()
"""Held while a file's header is read, and while SQLite opens a file."""
_inspected_files: dict[tuple[int, int], int] = {}


def enable_wal(connection: sqlite3.Connection, patience: float) -> None:
    """Switch to WAL mode, so that readers and a writer do not wait for each other.

    SQLite does not wait for other processes here. Until this connection has read, another process
    that closes may switch back, so this retries until `patience` ends.
    """
    deadline = monotonic() + patience
    while True:
        try:
            (mode,) = connection.execute("PRAGMA journal_mode = WAL").fetchone()
            connection.execute("PRAGMA schema_version").fetchone()
            if mode != "wal" or has_wal_mode(connection):
                return
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or monotonic() > deadline:
                raise
        sleep(RETRY_PAUSE_S)


def has_wal_mode(connection: sqlite3.Connection) -> bool:
    return bool(connection.execute("PRAGMA journal_mode").fetchone()[0] == "wal")


@contextmanager
def leave_wal(connection: sqlite3.Connection, path: Path) -> Iterator[None]:
    """Restore the single file if no other process has it open; close the connection inside.

    Only one process closes at a time: of two, each would see the other, and neither would restore.
    """
    with _lock_wal(Path(f"{path}-wal")):
        # On an error, another process closes later, or the file cannot be written; then the data
        # stays in the log for the next process.
        with suppress(sqlite3.DatabaseError):
            if has_wal_mode(connection):
                connection.execute("PRAGMA busy_timeout = 0")
                connection.execute("PRAGMA journal_mode = DELETE")
        yield


@contextmanager
def _lock_wal(wal: Path) -> Iterator[None]:
    """Hold a lock on the log file that is independent of SQLite's."""
    try:
        descriptor = os.open(wal, os.O_RDONLY)
    except OSError:
        yield
        return
    try:
        if fcntl is not None:
            with suppress(OSError):  # a file system without such locks
                fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def get_wal_size(path: Path) -> int:
    """Return the bytes of the log next to the database, 0 without one."""
    try:
        return Path(f"{path}-wal").stat().st_size
    except OSError:
        return 0


def refuse_foreign_wal(path: Path) -> None:
    """Raise StorageError if the log next to the database is not its own.

    SQLite would apply that log, so this must run before SQLite opens the file.
    """
    for _ in range(_MAX_LOOKS):
        # Check again, as another process may be opening or closing the file.
        if not get_wal_size(path) or Path(f"{path}-journal").exists() or not _is_at_rest(path):
            return
        sleep(RETRY_PAUSE_S)
    raise StorageError(
        f"{path}-wal is not of {path}, which was closed cleanly: move it away and open again"
    )


def refuse_no_database(path: Path) -> None:
    """Raise StorageError if the path is not an SQLite file.

    Devices and pipes are not read: that could block forever, or steal data from other readers.
    """
    if path.is_dir():
        raise StorageError(f"{path} is a folder: give the path of a file in it")
    if path.exists() and not path.is_file():
        raise StorageError(f"{path} is a device or a pipe: give the path of a file")


def _is_at_rest(path: Path) -> bool:
    """Return what the file's own header says; SQLite would also read the log."""
    try:
        with INSPECTION_LOCK, _open_descriptor(path) as descriptor:
            header = os.pread(descriptor, WRITE_VERSION_OFFSET + 1, 0)
    except OSError:
        return False  # unreadable, which SQLite will report
    return header.startswith(SQLITE_MAGIC) and header[WRITE_VERSION_OFFSET:] == ROLLBACK_VERSION


@contextmanager
def _open_descriptor(path: Path) -> Iterator[int]:
    """Yield a descriptor of the file, next to SQLite's own.

    It stays open as long as this process has the file open elsewhere: closing any descriptor drops
    all of the process's POSIX locks on the file, including SQLite's.
    """
    found = path.stat()
    key = found.st_dev, found.st_ino
    if key not in _inspected_files:
        _inspected_files[key] = os.open(path, os.O_RDONLY)
    yield _inspected_files[key]
    if not _is_open_elsewhere(key, _inspected_files[key]):
        os.close(_inspected_files.pop(key))


def _is_open_elsewhere(key: tuple[int, int], except_for: int) -> bool:
    for name in os.listdir("/dev/fd"):  # noqa: PTH208 - numbers, not paths
        with suppress(OSError):  # the listing's own descriptor is closed by now
            found = os.fstat(int(name))
            if int(name) != except_for and (found.st_dev, found.st_ino) == key:
                return True
    return False
