"""Translates database errors into one line with the thing, the fault and the remedy."""

import sqlite3

from eventsourcing.persistence import MapperDeserialisationError, PersistenceError

from ....domain.errors import StorageError

_DAMAGE_REMEDY = (
    "is damaged, or its disk is: restore a backup, or save the rest with sqlite3's `.recover`"
)
CONNECTION_LOST_REMEDY = (
    "went away in mid-transaction: start the server again; what was acknowledged is stored"
)
_REMEDIES = {
    "readonly database": "is read-only: check the permissions of the file and its folder",
    "unable to open database": "cannot be opened: check that its folder exists and can be written",
    "is locked": "is locked by another program: close it, or try again",
    "disk is full": (
        "cannot grow, the disk is full: free some space; nothing that was stored is lost"
    ),
    "is not a database": "is not a database: give another path, or move the file away",
    "malformed": _DAMAGE_REMEDY,
    "closed database": "was closed: open it again",
    "disk i/o": (
        "cannot be read or written, the disk reports an error: check the disk and try "
        "again; nothing that was stored is lost"
    ),
    "not authorized": "was migrated by a newer cutbank while it was open: upgrade this one",
    # PostgreSQL and libpq
    "servname not supported": "cannot be reached: a port is a number; check the address",
    "resolve host": "cannot be reached: the host does not exist; check the address",
    "connection refused": (
        "cannot be reached: nothing listens there; check the address, or start the server"
    ),
    "no such file or directory": (
        "cannot be reached: the folder has no socket; check the folder, or start the server"
    ),
    "timeout expired": "cannot be reached: the host does not answer; check the address",
    "timed out": "cannot be reached: the host does not answer; check the address",
    "no route to host": (
        "cannot be reached: the network has no route to the host; check the address"
    ),
    "password authentication failed": "refused that user and password: check both",
    'fatal:  role "': "does not know the user: check the user in the address",
    'fatal:  database "': "has no such database: check the address, or create it with createdb",
    "no password supplied": "wants a password: put it into the address, or into ~/.pgpass",
    "no pg_hba.conf entry": "refuses that user from this machine: ask the server's administrator",
    "permission denied": "does not let that user do this: grant it what it needs on the schema",
    "too many clients": "has no connection left: close some, or raise max_connections",
    "connection slots are reserved": "has no connection left: close some, or raise it",
    "starting up": "is starting up: try again in a moment",
    "shutting down": "is shutting down: start the server again; what was stored is there",
    "read-only transaction": "is read-only: give the address of the primary server",
    "no space left on device": "cannot grow, the server's disk is full: free some space there",
    "index row": "cannot look up a name as long as this: keep names below 2,000 bytes",
    "cannot contain nul": "cannot store the character NUL in a name: leave it out",
    "invalid page in block": "is damaged: restore a backup, or examine it with pg_amcheck",
    "server closed the connection": CONNECTION_LOST_REMEDY,
    "terminating connection": CONNECTION_LOST_REMEDY,
    "connection is lost": CONNECTION_LOST_REMEDY,
    "consuming input failed": CONNECTION_LOST_REMEDY,
    "connection not open": CONNECTION_LOST_REMEDY,
    "the connection is closed": CONNECTION_LOST_REMEDY,
}


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
    for sign, remedy in _REMEDIES.items():
        if sign in said:
            return f"{name} {remedy}"
    return f"{name}: {_to_one_line(error)}"


def _to_one_line(error: object) -> str:
    return " ".join(str(error).split())
