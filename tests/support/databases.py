"""Both databases for tests: a server, schemas of their own, and what stands behind a store."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from psycopg.sql import SQL, Identifier

from cutbank import SessionStore
from cutbank.adapters.storage.databases.postgres_recorder import PostgresRecorder
from cutbank.adapters.storage.databases.sqlite_recorder import SQLiteRecorder
from cutbank.adapters.storage.event_log.addresses import PostgresAddress
from cutbank.adapters.storage.event_log.event_store import EventStore, make_environment

each_database = pytest.mark.parametrize("engine", ["sqlite", "postgres"])
"""Marks a test of the storage contract, which SQLite and PostgreSQL both keep."""


def postgres_address(folder: Path) -> str:
    try:
        from postgres_server import address  # noqa: PLC0415 - not everywhere
    except ImportError as missing:
        pytest.skip(f"no PostgreSQL server to test with: {missing}")
    return address(folder / "postgres")


def memory_folder() -> TemporaryDirectory[str]:
    """Return a folder for databases of many examples: in memory where the system has such a place.

    It is for rules that are not about the disk.
    """
    memory = "/dev/shm"  # noqa: S108 - a folder of our own is made in it
    return TemporaryDirectory(
        prefix="cutbank-test-", dir=memory if os.access(memory, os.W_OK) else None
    )


@contextmanager
def new_schema(server: str) -> Iterator[str]:
    """The address of a schema that is not made yet, and goes when the block is left."""
    schema = f"test {uuid4().hex}"
    try:
        yield f"{server}&schema={schema.replace(' ', '%20')}"
    finally:
        with psycopg.connect(server, autocommit=True) as connection:
            connection.execute(SQL("DROP SCHEMA IF EXISTS {} CASCADE").format(Identifier(schema)))


def settings_of(database: str, *, synchronous: str = "FULL") -> dict[str, str]:
    return make_environment(database, synchronous=synchronous, compress=False)


def connected_to(database: str) -> psycopg.Connection[Any]:
    address = PostgresAddress.parse(database)
    connection = psycopg.connect(**address.connection, autocommit=True)
    connection.execute(SQL("SET search_path TO {}").format(Identifier(address.schema)))
    return connection


def asked(store: SessionStore | EventStore, query: str) -> list[tuple[Any, ...]]:
    match store.recorder if isinstance(store, EventStore) else store.events.recorder:
        case SQLiteRecorder() as recorder:
            return recorder.datastore.reader.execute(query).fetchall()
        case PostgresRecorder() as recorder:
            return recorder.datastore.read(query)
        case recorder:
            raise AssertionError(recorder)
