"""At rest a database is one file; in use it keeps a write-ahead log beside it.

The last process to leave makes it one file again. So a file that says it is in use and has no log
beside it was copied without its log, or was left by another program; and a log beside a file that
is at rest belongs to another one.
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
except ImportError:  # a system without it: of two that leave at once, neither may be the last
    fcntl = None  # type: ignore[assignment]

SQLITE_MAGIC = b"SQLite format 3\0"
WRITE_VERSION_OFFSET = 18
"""Where the header says whether it is at rest (1) or in use (2)."""
ROLLBACK_VERSION = 1
WAL_VERSION = 2
_GZIP_MAGIC = b"\x1f\x8b"
"""With which archives begin."""
_MAX_LOOKS = 5
RETRY_PAUSE_S = 0.01

INSPECTION_LOCK = Lock()
"""Held while a file is looked into, and while SQLite opens one."""
_inspected_files: dict[tuple[int, int], int] = {}


def enable_wal(connection: sqlite3.Connection, patience: float) -> None:
    """Keep a write-ahead log from now on, so that readers and a writer do not wait for each other.

    SQLite does not wait for others to begin with it. And until this connection has read, another
    process that leaves may put the database to rest again.
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
    """Whether the database keeps a write-ahead log, as this connection has last seen it."""
    return bool(connection.execute("PRAGMA journal_mode").fetchone()[0] == "wal")


@contextmanager
def leave_wal(connection: sqlite3.Connection, path: Path) -> Iterator[None]:
    """Make the database one file again if nobody else has it open; inside, close the connection.

    One process leaves at a time. Of two that tried at once each would find the other there, and
    both would go.
    """
    with _lock_wal(Path(f"{path}-wal")):
        # Whoever else is there is who leaves later. Where the disk is full or broken, or the file
        # read-only, all that is stored stays in the log, and the next process finds it there.
        with suppress(sqlite3.DatabaseError):
            if has_wal_mode(connection):
                connection.execute("PRAGMA busy_timeout = 0")
                connection.execute("PRAGMA journal_mode = DELETE")
        yield


@contextmanager
def _lock_wal(wal: Path) -> Iterator[None]:
    """Holds a lock that SQLite does not know of, on a file on which it has none."""
    try:
        descriptor = os.open(wal, os.O_RDONLY)
    except OSError:
        yield
        return
    try:
        if fcntl is not None:
            with suppress(OSError):  # a file system without locks of this kind
                fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def has_wal(path: Path) -> bool:
    """Whether there is a write-ahead log with something in it beside the database."""
    try:
        return Path(f"{path}-wal").stat().st_size > 0
    except OSError:
        return False


def refuse_foreign_wal(path: Path) -> None:
    """Raise StorageError where the log beside the database is not its own.

    SQLite would write it into the database: this has to be seen before SQLite opens the file.
    """
    for _ in range(_MAX_LOOKS):
        # While another process opens or closes it, a look may fall between two of its steps.
        if not has_wal(path) or Path(f"{path}-journal").exists() or not _has_rollback_version(path):
            return
        sleep(RETRY_PAUSE_S)
    raise StorageError(
        f"{path}-wal is not of {path}, which was closed in good order: move it away and open again"
    )


def refuse_no_database(path: Path) -> None:
    """Raise StorageError for a path that leads to something else than a file of SQLite's.

    Of devices and pipes nothing is read: that would wait for ever, or take what others wait for.
    """
    if path.is_dir():
        raise StorageError(f"{path} is a folder: give the path of a file in it")
    if path.exists() and not path.is_file():
        raise StorageError(f"{path} is a device or a pipe: give the path of a file")
    if _read_header(path).startswith(_GZIP_MAGIC):
        raise StorageError(f"{path} is an archive: `cutbank import` restores it into a database")


def refuse_second_name(path: Path) -> None:
    """Raise StorageError for a hard link of a database in use: its log lies beside the other name.

    What is written by one name would be lost by the other.
    """
    if has_wal(path) or not _has_wal_version(path):
        return
    if path.stat().st_nlink > 1:
        raise StorageError(
            f"{path} is one of several names (hard links) of a file, and in use by another one: "
            f"open it by that name, or copy it with `cutbank backup`"
        )


def _has_rollback_version(path: Path) -> bool:
    """Whether the file itself says so; SQLite shows a file only together with its log."""
    return _read_version(path) == ROLLBACK_VERSION


def _has_wal_version(path: Path) -> bool:
    return _read_version(path) == WAL_VERSION


def _read_version(path: Path) -> int | None:
    header = _read_header(path)
    is_whole = header.startswith(SQLITE_MAGIC) and len(header) > WRITE_VERSION_OFFSET
    return header[WRITE_VERSION_OFFSET] if is_whole else None


def _read_header(path: Path) -> bytes:
    """The file's beginning; empty where it cannot be read, as SQLite will say."""
    try:
        with INSPECTION_LOCK, _open_descriptor(path) as descriptor:
            return os.pread(descriptor, WRITE_VERSION_OFFSET + 1, 0)
    except OSError:
        return b""


@contextmanager
def _open_descriptor(path: Path) -> Iterator[int]:
    """The file, opened beside SQLite.

    It stays open as long as this process has it open elsewhere: a process that closes a file once
    loses all the locks that it has on it, and SQLite's are of that kind.
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
        with suppress(OSError):  # the descriptor of the listing itself is gone by now
            found = os.fstat(int(name))
            if int(name) != except_for and (found.st_dev, found.st_ino) == key:
                return True
    return False
