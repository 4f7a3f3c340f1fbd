"""The schema of a log on a server: whose it is, who makes it, and who migrates an older one."""

import psycopg
import pytest
from databases import asked, connected_to
from faulty import one_line, texts
from processes import Processes

import cutbank
from cutbank import Block, SessionStore
from cutbank.adapters.analysis.verifier import verify
from cutbank.adapters.storage.postgres import postgres_datastore, postgres_schema
from cutbank.adapters.storage.postgres.postgres_address import PostgresAddress

NEWER = "ALTER TABLE imports ADD COLUMN note text"
TODAY = len(postgres_schema.POSTGRES_MIGRATIONS) + 1
"""The version of the schema that is made now."""


@pytest.fixture
def engine() -> str:
    return "postgres"


def test_logs_of_one_database_are_apart(database: str, postgres: str) -> None:
    with (
        cutbank.open(database) as one,
        psycopg.connect(postgres, autocommit=True) as connection,
    ):
        one.session("mine").append(Block.user("here"))
        other = f"{database}%20too"
        try:
            with cutbank.open(other) as two:
                assert two.sessions() == []
                assert two.session("theirs").position == 1
            assert [session.key for session in one.sessions()] == ["mine"]
        finally:
            connection.execute(
                f'DROP SCHEMA "{PostgresAddress.parse(other).schema}" CASCADE'.encode()
            )


def test_a_schema_of_another_application_is_refused(database: str, postgres: str) -> None:
    name = PostgresAddress.parse(database).schema
    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute(f'CREATE SCHEMA "{name}"'.encode())
        connection.execute(f'CREATE TABLE "{name}".songs (name text)'.encode())

        with one_line("another application", "songs", "?schema=NAME"):
            cutbank.open(database)

        connection.execute(f'DROP TABLE "{name}".songs'.encode())
    # An empty schema that somebody made for cutbank is as good as none.
    cutbank.open(database).close()


def test_a_newer_schema_is_refused(store: SessionStore, database: str) -> None:
    with connected_to(database) as connection:
        connection.execute("UPDATE cutbank_format SET version = 1000")

    with one_line("newer cutbank", "format 1000"):
        cutbank.open(database)


def test_an_older_server_is_refused(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postgres_datastore, "MIN_SERVER_VERSION", 99)

    with one_line("is PostgreSQL", "cutbank needs 99 or newer"):
        cutbank.open(database)


def test_a_database_in_another_encoding_is_refused(database: str, postgres: str) -> None:
    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute("CREATE DATABASE latin ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0")
        try:
            with one_line("is a database in LATIN1"):
                cutbank.open(database.replace("/postgres?", "/latin?"))
        finally:
            connection.execute("DROP DATABASE latin")


# Starting together


def test_processes_that_start_together_migrate_an_older_schema_once(
    database: str, run: Processes
) -> None:
    cutbank.open(database).close()
    with connected_to(database) as connection:
        connection.execute("ALTER TABLE imports DROP COLUMN stamp")
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
    with monkeypatch.context() as patch, one_line("division by zero"):
        failing = "CREATE TABLE half (x integer); SELECT 1 / 0"
        patch.setattr(
            postgres_schema,
            "POSTGRES_MIGRATIONS",
            (*postgres_schema.POSTGRES_MIGRATIONS, NEWER, failing),
        )
        cutbank.open(database)

    assert asked(store, "SELECT version FROM cutbank_format") == [(TODAY,)]
    assert asked(store, "SELECT to_regclass('half') IS NULL") == [(True,)]
    cutbank.open(database).close()
