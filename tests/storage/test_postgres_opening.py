"""Addresses and schemas of a server: what is opened, what is refused, and no password is shown."""

import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from databases import asked, connected_to
from faulty import one_line, texts
from processes import Processes

import cutbank
from cutbank import SessionStore, StorageError, StoredSession, verify
from cutbank.adapters.storage.databases import postgres_datastore, postgres_schema
from cutbank.adapters.storage.event_log.addresses import PostgresAddress, hide_passwords

TODAY = len(postgres_schema.POSTGRES_MIGRATIONS) + 1
"""The version of the schema that is made now."""


@pytest.fixture
def engine() -> str:
    return "postgres"


@pytest.fixture
def server(postgres: str) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(postgres, autocommit=True) as connection:
        yield connection


# Addresses


def test_a_password_is_never_shown(session: StoredSession, database: str) -> None:
    for url in (
        "postgresql://ada:secret@db.example:5432/agents",
        "postgres://ada:secret@db.example/agents?password=secret&sslmode=require",
        "postgresql://ada:se@cr/secret@db.example/agents",
        "postgresql://:secret@db.example/agents",
        " POSTGRESQL://ada:secret@db.example/agents",
        "postgresql+psycopg://ada:secret@db.example/agents",
    ):
        assert "secret" not in hide_passwords(url)
        assert "db.example" in hide_passwords(url)
    assert session.log.context.name == hide_passwords(database)
    assert hide_passwords(database) in repr(session)


def test_what_may_hold_a_password_is_no_file_name_and_is_not_repeated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    for address in (
        "POSTGRESQL://ada:se%zzcret@db.example/agents",
        " postgresql+psycopg://ada:se%zzcret@db.example/agents",
        "postgresql://db.example/agents?password=a@secret",
        "postgresql://ada:secret",
        "host=db.example password='the secret",
        "host=db.example password=the secret",
        "password = 'a secret' host=db.example",
        "dbname=agents user=ada",
        "Password=secret",
        "sessions.db?password=secret",
        "driver=pg password=secret",
        "mysql://ada:secret@db.example/agents",
    ):
        with pytest.raises(StorageError) as refusal:
            cutbank.open(address)
        assert "cret" not in "".join(traceback.format_exception(refusal.value)), address
        assert "\n" not in str(refusal.value), address
        assert list(tmp_path.iterdir()) == [], address


def test_an_address_that_leads_nowhere_is_answered_in_one_line(
    database: str, server: psycopg.Connection[Any]
) -> None:
    if not server.execute("SELECT FROM pg_roles WHERE rolname = 'needs_password'").fetchone():
        server.execute("CREATE ROLE needs_password LOGIN PASSWORD 'right'")

    for right, wrong, *words in (
        ("/postgres?host=", "/nowhere?host=", "no such database", "createdb"),
        ("//postgres:@", "//nobody:secret@", "refuses that user"),
        ("//postgres:@", "//needs_password:secret@", "refuses that user"),
        ("//postgres:@", "//needs_password@", "refuses that user"),
        ("?host=/", "?host=/nowhere/", "cannot be reached"),
        ("?host=/", "?host=localhost&port=1&was=/", "is not an address"),
    ):
        with one_line(*words):
            cutbank.open(database.replace(right, wrong))
    for url, *words in (
        ("postgresql://ada:secret@localhost:1/agents", "cannot be reached"),
        ("postgresql://ada:secret@no.such.host.invalid/agents", "cannot be reached"),
        ("postgresql://ada:secret@localhost:port/agents", "cannot be reached"),
        ("postgresql://ada:se@secret@localhost/agents", "%40"),
        ("postgresql://ada:se/secret@localhost/agents", "%2F"),
        ("postgresql://localhost/agents?schema=", "1 to 63 bytes"),
    ):
        with one_line(*words):
            cutbank.open(url)


def test_a_schema_is_named_by_a_parameter_or_by_the_search_path() -> None:
    for query, schema in (
        ("", "cutbank"),
        ("?schema=team%20a&sslmode=disable", "team a"),
        ("?options=-csearch_path%3Dteam", "team"),
        ("?options=-c%20search_path%3Dteam,public", "team"),
    ):
        address = PostgresAddress.parse(f"postgresql://ada@localhost/agents{query}")
        assert address.schema == schema
        assert "schema" not in address.connection


def test_without_the_extra_one_line_says_what_to_install(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cutbank.adapters.storage.event_log.event_store.find_spec", lambda _: None)

    with one_line("pip install 'cutbank[postgres]'"):
        cutbank.open(database)


# Schemas


def test_a_schema_of_another_application_is_refused(
    database: str, server: psycopg.Connection[Any]
) -> None:
    name = PostgresAddress.parse(database).schema
    server.execute(f'CREATE SCHEMA "{name}"'.encode())
    server.execute(f'CREATE TABLE "{name}".songs (name text)'.encode())

    with one_line("another application", "songs", "?schema=NAME"):
        cutbank.open(database)

    server.execute(f'DROP TABLE "{name}".songs'.encode())
    # An empty schema that was made for cutbank is used as if there were none.
    cutbank.open(database).close()


def test_a_newer_schema_and_an_older_server_are_refused(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    cutbank.open(database).close()
    with connected_to(database) as connection:
        connection.execute("UPDATE cutbank_format SET version = 1000")

    with one_line("newer cutbank", "format 1000"):
        cutbank.open(database)
    monkeypatch.setattr(postgres_datastore, "MIN_SERVER_VERSION", 99)
    with one_line("is PostgreSQL", "cutbank needs 99 or newer"):
        cutbank.open(database)


def test_a_database_in_another_encoding_is_refused(
    database: str, server: psycopg.Connection[Any]
) -> None:
    server.execute("CREATE DATABASE latin ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0")
    try:
        with one_line("is a database in LATIN1"):
            cutbank.open(database.replace("/postgres?", "/latin?"))
    finally:
        server.execute("DROP DATABASE latin")


@pytest.mark.parametrize("is_new", [True, False], ids=["new", "older"])
def test_processes_that_start_together_make_or_migrate_a_schema_once(
    database: str, run: Processes, *, is_new: bool
) -> None:
    if not is_new:
        cutbank.open(database).close()
        with connected_to(database) as connection:
            connection.execute("ALTER TABLE imports DROP COLUMN stamp, DROP COLUMN segments")
            connection.execute("DROP TABLE source_segments, records, deleted_streams CASCADE")
            connection.execute("ALTER TABLE streams DROP COLUMN generation, DROP COLUMN parent")
            connection.execute("DROP FUNCTION refuse_unless_erased, refuse_deleted CASCADE")
            connection.execute("DROP TRIGGER stored_events_are_kept ON stored_events")
            connection.execute(
                "CREATE TRIGGER stored_events_are_immutable BEFORE UPDATE OR DELETE OR TRUNCATE"
                " ON stored_events FOR EACH STATEMENT EXECUTE FUNCTION refuse_change()"
            )
            connection.execute("UPDATE cutbank_format SET version = 1")

    ended = run.run_together(8, "joins", database, "NUMBER")

    assert len(ended.told("ack")) == 8
    with cutbank.open(database) as store:
        assert asked(store, "SELECT version FROM cutbank_format") == [(TODAY,)]
        assert len(texts(store.session("joined"))) == 8
        assert verify(store).is_ok


def test_a_current_schema_is_opened_without_defining_anything(
    store: SessionStore, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What defines the same thing at the same time is failed by PostgreSQL."""
    monkeypatch.setattr(postgres_schema, "POSTGRES_SCHEMA", "this is no SQL")
    name = PostgresAddress.parse(database).schema
    query = f"SELECT xmin FROM pg_namespace WHERE nspname = '{name}'"  # noqa: S608
    before = asked(store, query)

    cutbank.open(database).close()

    assert asked(store, query) == before


def test_a_migration_that_fails_leaves_what_there_was(
    store: SessionStore, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    migrations = (
        *postgres_schema.POSTGRES_MIGRATIONS,
        "ALTER TABLE imports ADD COLUMN note text",
        "CREATE TABLE half (x integer); SELECT 1 / 0",
    )
    with monkeypatch.context() as patch, one_line("division by zero"):
        patch.setattr(postgres_schema, "POSTGRES_MIGRATIONS", migrations)
        cutbank.open(database)

    assert asked(store, "SELECT version FROM cutbank_format") == [(TODAY,)]
    assert asked(store, "SELECT to_regclass('half') IS NULL") == [(True,)]
    cutbank.open(database).close()
