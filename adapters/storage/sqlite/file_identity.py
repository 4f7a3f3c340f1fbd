"""Tells a database from a copy of it: the database knows the file that it lives in.

A file's number on its disk stays when it is renamed, and when the machine starts anew; a copy has
another one. (The number of the disk does not stay, so it is not looked at.)
"""

import sqlite3
from pathlib import Path

from ....domain.errors import StorageError
from .wal_mode import has_wal_mode

IDENTITY_TABLE = """
CREATE TABLE home (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    inode TEXT NOT NULL
) STRICT;
"""


def read_inode(path: Path) -> str | None:
    """The file's number; None where there is no file, or where files have no numbers."""
    try:
        return str(path.stat().st_ino or "") or None
    except OSError:
        return None


def read_identity(connection: sqlite3.Connection) -> str | None:
    """The file that the database says it lives in; None where it does not say."""
    try:
        found = connection.execute("SELECT inode FROM home").fetchone()
    except sqlite3.OperationalError as error:
        if "no such table" not in str(error):
            raise
        return None  # an older format
    return str(found[0]) if found else None


def accept_copy(connection: sqlite3.Connection, path: Path, *, had_log: bool) -> None:
    """Let a database that was copied live in its new file, if it is whole.

    Raises StorageError for one that was copied while it was in use.
    """
    known, inode = read_identity(connection), read_inode(path)
    if known is None or inode is None or known == inode:
        return
    if has_wal_mode(connection) and not had_log:
        raise StorageError(
            f"{path} is a copy made while the database was in use, without its newest events: "
            f"copy it with `cutbank backup`, or accept what is there with `cutbank verify --adopt`"
        )
    try:
        check_and_save_identity(connection, path)
    except sqlite3.OperationalError as error:
        # Who only reads does not have to move in.
        if error.sqlite_errorcode & 0xFF not in {sqlite3.SQLITE_READONLY, sqlite3.SQLITE_BUSY}:
            raise


def check_and_save_identity(connection: sqlite3.Connection, path: Path) -> None:
    """Check that no page is of another time than the rest, once, and remember the file."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        # Another process may have been first.
        if read_identity(connection) != read_inode(path):
            refuse_damaged(connection, path)
            save_identity(connection, path)
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def refuse_damaged(connection: sqlite3.Connection, path: Path) -> None:
    (found,) = connection.execute("PRAGMA integrity_check(1)").fetchone()
    if found != "ok":
        raise StorageError(
            f"{path} is damaged ({' '.join(found.split())}): it may have been copied while it was "
            f"written to; restore a backup, or save what is left with sqlite3's `.recover`"
        )


def save_identity(connection: sqlite3.Connection, path: Path) -> None:
    connection.execute("INSERT OR REPLACE INTO home VALUES (1, ?)", (read_inode(path) or "",))
