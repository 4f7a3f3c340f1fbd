"""Translates psycopg's errors into eventsourcing's."""

import psycopg
from eventsourcing import persistence

CONFLICT_CONSTRAINTS = frozenset(
    {"stored_events_position", "append_keys_pkey", "streams_pkey", "streams_name"}
)
"""The constraints that a concurrent append may violate."""
RETRYABLE_STATES = frozenset({"40001", "40P01"})
"""A serialization failure or deadlock, for which the server rolled the transaction back."""

_KINDS: tuple[tuple[type[psycopg.Error], type[persistence.PersistenceError]], ...] = (
    (psycopg.InterfaceError, persistence.InterfaceError),
    (psycopg.OperationalError, persistence.OperationalError),
    (psycopg.DataError, persistence.DataError),
    # No position was taken; as an IntegrityError, it would be retried forever.
    (psycopg.IntegrityError, persistence.OperationalError),
    (psycopg.InternalError, persistence.InternalError),
    (psycopg.ProgrammingError, persistence.ProgrammingError),
    (psycopg.NotSupportedError, persistence.NotSupportedError),
    (psycopg.DatabaseError, persistence.DatabaseError),
)


def translate_postgres_error(error: psycopg.Error) -> persistence.PersistenceError:
    """Return eventsourcing's error of that kind, with the server's error as its argument.

    An IntegrityError always means that a position, a key or a stream's name is taken.
    """
    if (
        isinstance(error, psycopg.errors.UniqueViolation)
        and error.diag.constraint_name in CONFLICT_CONSTRAINTS
    ):
        return persistence.IntegrityError(error)
    for theirs, ours in _KINDS:
        if isinstance(error, theirs):
            return ours(error)
    return persistence.PersistenceError(error)
