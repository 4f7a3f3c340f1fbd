"""Maps database names to files, and tells a database from a copy.

The database stores the inode of its file, which stays the same across renames and restarts, but not
in a copy. The device number may change at a restart and is not used.
"""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import parse_qs, quote, unquote, urlsplit
from uuid import uuid4

from ....domain.errors import StorageError
from ..private_files import make_file
from .wal_mode import enable_wal, has_wal_mode

OWN_FILE_TIMEOUT_S = 30.0
"""How long to wait for other writers of a file that can be made again."""

IDENTITY_TABLE = """
CREATE TABLE home (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    inode TEXT NOT NULL
) STRICT;
"""


def is_in_memory(name: str) -> bool:
    return name == ":memory:" or (name.startswith("file:") and "mode=memory" in name)


def make_absolute_name(name: str) -> str:
    """Return the same file's name independent of the current folder."""
    if not name or is_in_memory(name):
        return name
    if not name.startswith("file:"):
        return os.path.abspath(name)  # noqa: PTH100 - keeps links, as in messages
    parts = urlsplit(name)
    if parts.netloc or parts.path.startswith("/") or "vfs" in parse_qs(parts.query):
        return name
    return f"file:{quote(os.getcwd())}/{name.removeprefix('file:')}"  # noqa: PTH109 - text


def find_database_path(name: str) -> Path | None:
    """Return the file that SQLite opens by that name, following links; None if there is none."""
    if is_in_memory(name):
        return None
    if name.startswith("file:"):
        parts = urlsplit(name)
        if {"vfs", "immutable"} & parse_qs(parts.query).keys():
            return None
        name = unquote(parts.path)
    return Path(os.path.realpath(name))


def creates_file(name: str) -> bool:
    """Return whether SQLite creates a missing file."""
    mode = parse_qs(urlsplit(name).query).get("mode") if name.startswith("file:") else None
    return mode in (None, ["rwc"])


def make_sqlite_address(name: str) -> str:
    """Return the address for SQLite.

    A database in memory belongs to one store. It uses memdb, whose connections lock like those of a
    file; with SQLite's shared cache, a reader would fail while another thread writes.
    """
    if is_in_memory(name):
        return f"file:/cutbank-{uuid4().hex}?vfs=memdb"
    return name


def read_inode(path: Path) -> str | None:
    """Return the file's inode; None without a file, or on systems without inodes."""
    try:
        return str(path.stat().st_ino or "") or None
    except OSError:
        return None


def read_identity(connection: sqlite3.Connection) -> str | None:
    try:
        found = connection.execute("SELECT inode FROM home").fetchone()
    except sqlite3.OperationalError as error:
        if "no such table" not in str(error):
            raise
        return None  # an older format
    return str(found[0]) if found else None


def accept_copy(connection: sqlite3.Connection, path: Path, *, had_log: bool) -> None:
    """Accept a copied database in its new file, if it is whole.

    Raises StorageError if it was copied while in use, or if it is in use by another name: data
    written under one name would be lost under the other.
    """
    known, inode = read_identity(connection), read_inode(path)
    if known is None or inode is None:
        return
    if known == inode:
        if path.stat().st_nlink > 1 and has_wal_mode(connection) and not had_log:
            raise StorageError(
                f"{path} is one of several names (hard links) of a file, and in use by another "
                "one: open it by that name, or copy it with `cutbank backup`"
            )
        return
    if has_wal_mode(connection) and not had_log:
        raise StorageError(
            f"{path} is a copy made while the database was in use, without its newest events: "
            f"copy it with `cutbank backup`, or accept what is there with `cutbank verify --adopt`"
        )
    try:
        check_and_save_identity(connection, path)
    except sqlite3.OperationalError as error:
        # Readers need not change the file.
        if error.sqlite_errorcode & 0xFF not in {sqlite3.SQLITE_READONLY, sqlite3.SQLITE_BUSY}:
            raise


def check_and_save_identity(connection: sqlite3.Connection, path: Path) -> None:
    """Check the pages once for consistency, and store the new inode."""
    with immediate_transaction(connection):
        # Another process may have been faster.
        if read_identity(connection) != read_inode(path):
            refuse_damaged(connection, path)
            save_identity(connection, path)


@contextmanager
def immediate_transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """Run one writing transaction, stored whole or not at all, excluding other processes."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        # A full disk may have ended the transaction already.
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


@contextmanager
def savepoint(connection: sqlite3.Connection) -> Iterator[None]:
    """Run a part of the open transaction, which is kept whole or undone."""
    if not connection.in_transaction:  # a full disk has ended it
        raise sqlite3.OperationalError("the batch was undone after an error: run it again")
    connection.execute("SAVEPOINT part")
    try:
        yield
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK TO part")
            connection.execute("RELEASE part")
        raise
    connection.execute("RELEASE part")


def rewrite_database(connection: sqlite3.Connection, name: str) -> None:
    """Write a database again without free space, and empty its write-ahead log.

    Raises StorageError if another connection goes on reading an older state.
    """
    connection.execute("PRAGMA temp_store = FILE")  # it may not fit into memory
    try:
        connection.execute("VACUUM")
    finally:
        connection.execute("PRAGMA temp_store = MEMORY")
    (is_busy, *_) = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    if is_busy:
        raise StorageError(
            f"{name} is being read, so what was erased is still in {name}-wal: end the other"
            " programs, and open it again"
        )


def refuse_damaged(connection: sqlite3.Connection, path: Path) -> None:
    (found,) = connection.execute("PRAGMA integrity_check(1)").fetchone()
    if found != "ok":
        raise StorageError(
            f"{path} is damaged ({' '.join(found.split())}): it may have been copied while it was "
            f"written to; restore a backup, or save what is left with sqlite3's `.recover`"
        )


def save_identity(connection: sqlite3.Connection, path: Path) -> None:
    connection.execute("INSERT OR REPLACE INTO home VALUES (1, ?)", (read_inode(path) or "",))


def open_own_file(name: str, application: int) -> sqlite3.Connection:
    """Open or create a file that can be made again, so that writing need not wait for the disk.

    Raises StorageError if it is another program's database.
    """
    is_uri = name.startswith("file:")
    if not is_uri:
        with suppress(OSError):  # SQLite reports the cause
            make_file(Path(name))
    connection = sqlite3.connect(
        name, isolation_level=None, check_same_thread=False, timeout=OWN_FILE_TIMEOUT_S, uri=is_uri
    )
    try:
        _refuse_foreign(connection, name, application)
        enable_wal(connection, OWN_FILE_TIMEOUT_S)
        connection.execute("PRAGMA synchronous = NORMAL")
        # With mapped memory, a failing disk would kill the process.
        connection.execute("PRAGMA mmap_size = 0")
    except BaseException:
        connection.close()
        raise
    return connection


def _refuse_foreign(connection: sqlite3.Connection, name: str, application: int) -> None:
    found, tables = connection.execute(
        "SELECT application_id, (SELECT count(*) FROM sqlite_master) FROM pragma_application_id"
    ).fetchone()
    if found != application and (found or tables):
        raise StorageError(f"{name} is another program's database: move it away")
