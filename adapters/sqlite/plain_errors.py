"""What SQLite says, in one line that says what, where and what to do."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

from eventsourcing.persistence import MapperDeserialisationError, PersistenceError

from ...domain.errors import StorageError

_REMEDIES = (
    ("readonly database", "is read-only: check the permissions of the file and its folder"),
    (
        "unable to open database",
        "cannot be opened: check that its folder exists and can be written",
    ),
    ("is locked", "is locked by another program: close it, or try again"),
    (
        "disk is full",
        "cannot grow, the disk is full: free some space; nothing that was stored is lost",
    ),
    ("is not a database", "is not a database: give another path, or move the file away"),
    ("malformed", "is damaged: restore a backup, or save what is left with sqlite3's `.recover`"),
    ("closed database", "was closed: open it again"),
    ("disk i/o", "cannot be read or written, the disk reports an error: nothing was changed"),
)


@contextmanager
def speaking_plainly(name: str) -> Iterator[None]:
    """Turn any failure of the database `name` into a StorageError of one line."""
    try:
        yield
    except sqlite3.Error as error:
        raise StorageError(_plain(error, name)) from error
    except UnicodeEncodeError as error:
        # Text is kept whatever is in it; names are found by SQLite, which wants whole characters.
        raise StorageError(f"{name}: {error.object!r} is not valid Unicode") from error
    except MapperDeserialisationError as error:
        raise StorageError(f"{name}: {_in_one_line(error)}") from error
    except PersistenceError as error:
        # eventsourcing wraps what SQLite said; that is what there are plain words for.
        cause = error.args[0] if error.args else error
        raise StorageError(_plain(cause, name)) from error


def _plain(error: object, name: str) -> str:
    said = str(error).lower()
    for sign, remedy in _REMEDIES:
        if sign in said:
            return f"{name} {remedy}"
    return f"{name}: {_in_one_line(error)}"


def _in_one_line(error: object) -> str:
    return " ".join(str(error).split())
