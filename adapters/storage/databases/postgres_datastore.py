"""Keeps a connection to one PostgreSQL database for each thread, and reconnects."""

import os
import threading
from collections.abc import Container, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import lru_cache
from time import monotonic, sleep
from typing import Any
from weakref import WeakSet, finalize

import psycopg
from eventsourcing import persistence
from eventsourcing.persistence import InterfaceError, OperationalError
from psycopg import Connection
from psycopg.abc import Query
from psycopg.sql import SQL, Identifier

from ....domain.errors import StorageError
from ..event_log.addresses import PostgresAddress
from ..event_log.storage_errors import translate_storage_errors
from ..process_forks import reopen_in_children
from .postgres_schema import MIN_SERVER_VERSION, find_version, migrate_schema

RECONNECT_SECONDS = 10.0
"""How long to wait for a server that went away and may be restarting."""
RECONNECT_PAUSE = 0.05

_SESSION_SETTINGS = """
SET search_path TO {schema};
SET default_transaction_isolation TO 'read committed';
SET client_encoding TO 'UTF8';
SET plan_cache_mode TO force_generic_plan;
SET enable_seqscan TO off;
SET enable_bitmapscan TO off;
SET jit TO off;
"""
"""A plan is made once, maybe while the tables are empty, so force it to use the indexes."""
DURABLE = (
    "SELECT set_config('synchronous_commit', 'on', false)"
    " WHERE current_setting('synchronous_commit') = 'off'"
)
"""Makes commits durable, even if the server is set up to be faster."""

CONFLICT_CONSTRAINTS = frozenset(
    {
        "stored_events_position",
        "append_keys_pkey",
        "records_pkey",
        "streams_pkey",
        "streams_namespace_session_lineage_key",
        "streams_name",  # the same in older schemas
    }
)
"""The constraints that a concurrent append may violate."""
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


class ConnectionLostError(OperationalError):
    """The connection was lost during a statement, which may or may not have been carried out."""


class PostgresLogDatastore:
    """A datastore with autocommit, durable by default, and reads without transactions.

    There is no pool: checking a connection out and in costs as much as a read.
    `synchronous` is FULL or NORMAL; with NORMAL, a server crash may lose the last commits.
    """

    def __init__(self, address: PostgresAddress, synchronous: str = "FULL") -> None:
        self.address = address
        self.synchronous = synchronous
        self._connections: WeakSet[_ThreadConnection] = WeakSet()
        self._listing = threading.Lock()
        self._local = _ThreadState()
        self._is_closed = False
        reopen_in_children(self)
        try:
            with translate_storage_errors(address.name):
                try:
                    migrate_schema(self._remember(connect(address, synchronous)), address)
                except psycopg.Error as error:
                    raise translate_postgres_error(error) from error
        except BaseException:
            self.close()
            raise

    def locks(self) -> tuple[()]:
        """Return no locks: a connection may be left in any state. Called by `process_forks`."""
        return ()

    def leave_in_child(self, held: Container[Any]) -> None:
        """Abandon inherited connections; closing them would end the parent's sessions."""
        del held
        for own in self._connections:
            own.closing.detach()
            _left_open.append(own.connection)
        self._connections, self._local = WeakSet(), _ThreadState()
        self._listing = threading.Lock()

    @property
    def connection(self) -> Connection[Any]:
        """This thread's own connection, in autocommit."""
        own: _ThreadConnection | None = self._local.own
        if own is None or own.connection.closed:
            return self.reconnect()
        return own.connection

    def reconnect(self) -> Connection[Any]:
        """Return a new connection for this thread, waiting a while for an unavailable server.

        Raises OperationalError if the server stays unavailable.
        """
        deadline = monotonic() + RECONNECT_SECONDS
        while True:
            self._check_open()
            try:
                return self._remember(connect(self.address, self.synchronous))
            except OperationalError:
                if monotonic() > deadline:
                    raise
                sleep(RECONNECT_PAUSE)

    def _remember(self, connection: Connection[Any]) -> Connection[Any]:
        own = _ThreadConnection(connection)
        with self._listing:
            self._check_open()
            self._connections.add(own)
        self._local.own = own
        return connection

    def _check_open(self) -> None:
        if self._is_closed:
            raise InterfaceError("Cannot operate on a closed database.")
        if self._local.is_batching:
            raise OperationalError("the connection is lost, and the batch with it")

    def execute(self, query: Query, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Return the result of one statement.

        Raises ConnectionLostError if the server goes away.
        """
        connection = self.connection
        try:
            cursor = self._local.own.cursor
            return cursor.execute(query, parameters, prepare=True).fetchall()  # type: ignore[no-any-return]
        except psycopg.Error as error:
            if connection.closed:
                self._check_open()
                raise ConnectionLostError(error) from error
            raise translate_postgres_error(error) from error

    def read(self, query: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Return the result of a statement that may be repeated, retrying once.

        `?` marks a parameter.
        """
        statement = mark_parameters(query)
        try:
            return self.execute(statement, parameters)
        except ConnectionLostError:
            return self.execute(statement, parameters)

    def add(self, statement: str, parameters: Sequence[Any]) -> None:
        """Run and commit a statement that adds a row unless it is there."""
        self.read(statement, parameters)

    @property
    def is_batching(self) -> bool:
        """Whether this thread is in a batch."""
        return self._local.is_batching

    @contextmanager
    def batch(self) -> Iterator[None]:
        """Run all that this thread writes and reads in one transaction.

        A batch in another one is a part of it that is stored whole or not at all.
        """
        connection = self.connection
        if self._local.is_batching:
            with connection.transaction():
                yield
            return
        with self.get_connection():
            connection.execute("BEGIN")
        self._local.is_batching = True
        try:
            yield
            number = self.read("SELECT pg_current_xact_id_if_assigned()::text")[0][0]
        except BaseException:
            with suppress(psycopg.Error):  # the server undoes it where the connection is lost
                connection.rollback()
            raise
        finally:
            self._local.is_batching = False
        try:
            connection.commit()
        except psycopg.Error as error:
            if not (connection.closed and self._is_committed(number)):
                raise translate_postgres_error(error) from error

    def _is_committed(self, number: str | None) -> bool:
        """Return whether a transaction was committed whose answer was lost."""
        while number is not None:
            found = self.read("SELECT pg_xact_status(?::xid8)", (number,))[0][0]
            if found != "in progress":
                return bool(found == "committed")
            sleep(RECONNECT_PAUSE)
        return True

    @contextmanager
    def get_connection(self) -> Iterator[Connection[Any]]:
        """Yield this thread's connection for several statements."""
        try:
            yield self.connection
        except psycopg.Error as error:
            raise translate_postgres_error(error) from error

    def close(self) -> None:
        with self._listing:
            self._is_closed = True
            for own in self._connections:
                own.connection.close()


class _ThreadState(threading.local):
    """What each thread has of its own."""

    own: Any = None
    """Its `_ThreadConnection`, once it has one."""
    is_batching = False


class _ThreadConnection:
    """One thread's connection, which is closed when the thread ends."""

    def __init__(self, connection: Connection[Any]) -> None:
        self.connection = connection
        self.cursor = connection.cursor(binary=True)
        """One cursor for all statements, as making one takes as long as sending a query."""
        # Not `__del__`: in a cycle, the garbage collector might take the connection first.
        self.closing = finalize(self, _close_in_process, connection, os.getpid())


_left_open: list[Connection[Any]] = []


def _close_in_process(connection: Connection[Any], process: int) -> None:
    """Close a connection whose thread has ended, unless a forked child inherited it.

    Python drops the other threads' objects in a child before it calls `leave_in_child`, and closing
    their connections there would end the parent's sessions.
    """
    if os.getpid() == process:
        connection.close()
    else:
        _left_open.append(connection)


def connect(address: PostgresAddress, synchronous: str = "FULL") -> Connection[Any]:
    """Return a connection that is set up for the recorder's statements."""
    try:
        connection = psycopg.connect(**address.connection, autocommit=True)
    except psycopg.Error as error:
        raise OperationalError(error) from error
    try:
        _check_server(connection, address)
        connection.execute(SQL(_SESSION_SETTINGS).format(schema=Identifier(address.schema)))
        connection.execute("SET synchronous_commit TO off" if synchronous == "NORMAL" else DURABLE)
    except psycopg.Error as error:
        connection.close()
        raise OperationalError(error) from error
    except BaseException:
        connection.close()
        raise
    return connection


def has_schema_tables(url: str) -> bool:
    address = PostgresAddress.parse(url)
    with translate_storage_errors(address.name), connect(address) as connection:
        return find_version(connection, address) is not None


def _check_server(connection: Connection[Any], address: PostgresAddress) -> None:
    version = connection.info.server_version // 10_000
    if version < MIN_SERVER_VERSION:
        raise StorageError(
            f"{address.name} is PostgreSQL {version}: cutbank needs {MIN_SERVER_VERSION} or newer"
        )
    encoding = connection.info.parameter_status("server_encoding")
    if encoding != "UTF8":
        raise StorageError(
            f"{address.name} is a database in {encoding}: make one with ENCODING 'UTF8'"
        )


@lru_cache(maxsize=1_000)
def mark_parameters(query: str) -> bytes:
    return query.replace("?", "%s").encode()


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
