"""Addresses of a server: what they name, what is wrong with them, and no password in a message."""

import traceback
from pathlib import Path

import psycopg
import pytest
from faulty import one_line

import cutbank
from cutbank import StoredSession
from cutbank.adapters.storage.event_log.addresses import hide_passwords
from cutbank.adapters.storage.postgres.postgres_address import PostgresAddress
from cutbank.domain.errors import StorageError


@pytest.fixture
def engine() -> str:
    return "postgres"


def test_a_password_is_never_shown(session: StoredSession, database: str) -> None:
    for url in (
        "postgresql://ada:secret@db.example:5432/agents",
        "postgres://ada:secret@db.example/agents?password=secret&sslmode=require",
        "postgresql://ada:se@cr/secret@db.example/agents",
        "postgresql://:secret@db.example/agents",
        " POSTGRESQL://ada:secret@db.example/agents",
        "postgresql+psycopg://ada:secret@db.example/agents",
        "host=db.example user=ada password=secret dbname=agents",
        "password = 'a secret' host=db.example",
        "sslpassword=secret host=db.example",
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


def test_libpq_s_notation_opens_the_same_database(database: str, session: StoredSession) -> None:
    pairs = [
        f"{name}='{value}'"
        for name, value in PostgresAddress.parse(database).connection.items()
        if value
    ]
    schema = PostgresAddress.parse(database).schema

    with cutbank.open(f" schema='{schema}' {' '.join(pairs)}") as store:
        assert store.session(session.key, create=False).namespace == session.namespace
        assert "password" not in f"{store.name}{store.context.opening}"


def test_an_address_that_leads_nowhere_is_answered_in_one_line(
    database: str, postgres: str
) -> None:
    with psycopg.connect(postgres, autocommit=True) as connection:
        exists = "SELECT FROM pg_roles WHERE rolname = 'needs_password'"
        if connection.execute(exists).fetchone() is None:
            connection.execute("CREATE ROLE needs_password LOGIN PASSWORD 'right'")

    for right, wrong, *words in (
        ("/postgres?host=", "/nowhere?host=", "no such database", "createdb"),
        ("//postgres:@", "//nobody:secret@", "does not know the user"),
        ("//postgres:@", "//needs_password:secret@", "refused that user and password"),
        ("//postgres:@", "//needs_password@", "wants a password"),
        ("?host=/", "?host=/nowhere/", "the folder has no socket"),
        ("?host=/", "?host=localhost&port=1&was=/", "is not an address"),
    ):
        with one_line(*words):
            cutbank.open(database.replace(right, wrong))
    for url, *words in (
        ("postgresql://ada:secret@localhost:1/agents", "nothing listens"),
        ("postgresql://ada:secret@no.such.host.invalid/agents", "the host does not exist"),
        ("postgresql://ada:secret@localhost:port/agents", "a port is a number"),
        ("postgresql://ada:se@secret@localhost/agents", "%40"),
        ("postgresql://ada:se/secret@localhost/agents", "%2F"),
        ("postgresql://localhost/agents?schema=", "1 to 63 bytes"),
    ):
        with one_line(*words):
            cutbank.open(url)


def test_a_schema_is_named_by_a_parameter_or_by_the_search_path() -> None:
    base = "postgresql://ada@localhost/agents"

    assert PostgresAddress.parse(base).schema == "cutbank"
    assert PostgresAddress.parse(f"{base}?schema=team%20a&sslmode=disable").schema == "team a"
    assert PostgresAddress.parse(f"{base}?options=-csearch_path%3Dteam").schema == "team"
    assert PostgresAddress.parse(f"{base}?options=-c%20search_path%3Dteam,public").schema == "team"
    assert "schema" not in PostgresAddress.parse(f"{base}?schema=team").connection


def test_without_the_extra_one_line_says_what_to_install(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "cutbank.adapters.storage.event_log.database_addresses.find_spec", lambda _: None
    )

    with one_line("pip install 'cutbank[postgres]'"):
        cutbank.open(database)
