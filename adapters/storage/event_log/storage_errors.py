"""Translates database errors into one line with the thing, the fault and the remedy."""

import sqlite3
from types import TracebackType

from eventsourcing.persistence import MapperDeserialisationError, PersistenceError

from ....domain.errors import StorageError
from ..postgres.remedies import REMEDIES as _SERVER_REMEDIES

_DAMAGE_REMEDY = (
    "is damaged, or its disk is: restore a backup, or save what is left with sqlite3's `.recover`"
)
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
    ("malformed", _DAMAGE_REMEDY),
    ("closed database", "was closed: open it again"),
    (
        "disk i/o",
        (
            "cannot be read or written, the disk reports an error: check the disk and try again; "
            "nothing that was stored is lost"
        ),
    ),
    ("not authorized", "was migrated by a newer cutbank while it was open: upgrade this one"),
    *_SERVER_REMEDIES,
)


class translate_storage_errors:  # noqa: N801 - reads as a statement; a generator would cost an append 2 us
    """Turns any failure of the database `name` into a StorageError of one line."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __enter__(self) -> None:
        pass

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is None:
            return
        match error:
            case sqlite3.Error():
                raise StorageError(_make_message(error, self.name)) from error
            case UnicodeEncodeError():
                # Stored text may be anything, but SQLite looks up names only in valid Unicode.
                raise StorageError(f"{self.name}: {error.object!r} is not valid Unicode") from error
            case UnicodeDecodeError():
                # SQLite returned invalid text, which only a damaged page holds.
                raise StorageError(f"{self.name} {_DAMAGE_REMEDY}") from error
            case MapperDeserialisationError():
                raise StorageError(f"{self.name}: {_to_one_line(error)}") from error
            case PersistenceError():
                # eventsourcing wraps the database's error, for which there is a message.
                cause = error.args[0] if error.args else error
                raise StorageError(_make_message(cause, self.name)) from error
            case _:
                pass


def _make_message(error: object, name: str) -> str:
    said = str(error).lower()
    for sign, remedy in _REMEDIES:
        if sign in said:
            return f"{name} {remedy}"
    return f"{name}: {_to_one_line(error)}"


def _to_one_line(error: object) -> str:
    return " ".join(str(error).split())
