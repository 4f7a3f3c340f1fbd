"""Translates database errors into one line with the thing, the fault and the remedy."""

import sqlite3

from eventsourcing.persistence import MapperDeserialisationError, PersistenceError

from ....domain.errors import StorageError

_DAMAGE_REMEDY = (
    "is damaged, or its disk is: restore a backup, or save the rest with sqlite3's `.recover`"
)
_REMEDIES = {
    "is read-only: check the permissions of the file and its folder": ("readonly database",),
    "cannot be opened: check that its folder exists and can be written": (
        "unable to open database",
    ),
    "is locked by another program: close it, or try again": ("is locked",),
    "cannot grow, the disk is full: free some space; nothing that was stored is lost": (
        "disk is full",
        "no space left on device",
    ),
    "is not a database: give another path, or move the file away": ("is not a database",),
    _DAMAGE_REMEDY: ("malformed",),
    "was closed: open it again": ("closed database",),
    "cannot be read or written, the disk reports an error: check the disk and try again; nothing "
    "that was stored is lost": ("disk i/o",),
    "was migrated by a newer cutbank while it was open: upgrade this one": ("not authorized",),
    # PostgreSQL and libpq
    "cannot be reached: check the host and the port, and that the server runs": (
        "servname not supported",
        "resolve host",
        "connection refused",
        "no such file or directory",
        "timeout expired",
        "timed out",
        "no route to host",
        "starting up",
        "shutting down",
    ),
    "refuses that user: check the user and the password in the address, or in ~/.pgpass": (
        "password authentication failed",
        "no password supplied",
        'fatal:  role "',
        "no pg_hba.conf entry",
    ),
    "is damaged: restore a backup, or examine it with pg_amcheck": ("invalid page in block",),
    "has no such database: check the address, or create it with createdb": ('fatal:  database "',),
    "does not let that user do this: grant it what it needs on the schema": ("permission denied",),
    "has no connection left: close some, or raise max_connections": (
        "too many clients",
        "connection slots are reserved",
    ),
    "is written to by another batch, in another order: run yours again; nothing of it is stored": (
        "deadlock detected",
    ),
    "is read-only: give the address of the primary server": ("read-only transaction",),
    "cannot look up a name as long as this: keep names below 2,000 bytes": ("index row",),
    "cannot store the character NUL in a name: leave it out": ("cannot contain nul",),
    "went away in mid-transaction: start the server again; what was acknowledged is stored": (
        "server closed the connection",
        "terminating connection",
        "connection is lost",
        "consuming input failed",
        "connection not open",
        "the connection is closed",
    ),
}
"""The remedies by the words of an error that they are for."""


class translate_storage_errors:  # noqa: N801 - reads as a statement; a generator would cost an append 2 us
    """Turns any failure of the database `name` into a StorageError of one line."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __enter__(self) -> None:
        pass

    def __exit__(self, _: object, error: BaseException | None, trace: object) -> None:
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
    for remedy, signs in _REMEDIES.items():
        if any(sign in said for sign in signs):
            return f"{name} {remedy}"
    return f"{name}: {_to_one_line(error)}"


def _to_one_line(error: object) -> str:
    return " ".join(str(error).split())
