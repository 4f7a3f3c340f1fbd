"""What psycopg raises, as eventsourcing's errors."""

import psycopg
from eventsourcing import persistence

CONFLICT_CONSTRAINTS = frozenset(
    {"stored_events_position", "append_keys_pkey", "streams_pkey", "streams_name"}
)
"""The constraints that somebody else's append may have been first at."""
RETRYABLE_STATES = frozenset({"40001", "40P01"})
"""A serialization failure, a deadlock: the server undid the transaction so that others finish."""

_KINDS: tuple[tuple[type[psycopg.Error], type[persistence.PersistenceError]], ...] = (
    (psycopg.InterfaceError, persistence.InterfaceError),
    (psycopg.OperationalError, persistence.OperationalError),
    (psycopg.DataError, persistence.DataError),
    # No position was taken: whoever decides again on an IntegrityError would do so for ever.
    (psycopg.IntegrityError, persistence.OperationalError),
    (psycopg.InternalError, persistence.InternalError),
    (psycopg.ProgrammingError, persistence.ProgrammingError),
    (psycopg.NotSupportedError, persistence.NotSupportedError),
    (psycopg.DatabaseError, persistence.DatabaseError),
)


def translate_postgres_error(error: psycopg.Error) -> persistence.PersistenceError:
    """eventsourcing's error of that kind; it carries the server's own as its argument.

    An IntegrityError means that a position, a key or a stream's name is taken, and nothing else.
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
