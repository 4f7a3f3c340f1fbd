"""What a server may do to a log: refuse, restart, lose an answer. Nothing is lost or twice."""

import subprocess
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from string import ascii_letters
from typing import Any

import psycopg
import pytest
from databases import asked, connected_to, settings_of
from eventsourcing.persistence import IntegrityError, OperationalError
from postgres_server import Server
from psycopg.errors import DeadlockDetected, SerializationFailure

import cutbank
from cutbank import Block, SessionStore, StoredSession
from cutbank.adapters.analysis.verifier import verify
from cutbank.adapters.storage.event_log import storage_errors
from cutbank.adapters.storage.event_log.addresses import shown
from cutbank.adapters.storage.event_log.event_store import EventStore
from cutbank.adapters.storage.postgres import postgres_schema
from cutbank.adapters.storage.postgres.insert_statement import FEW
from cutbank.adapters.storage.postgres.postgres_address import Address
from cutbank.adapters.storage.postgres.postgres_datastore import ConnectionLostError, Datastore
from cutbank.adapters.storage.postgres.postgres_recorder import PostgresRecorder
from cutbank.domain.errors import CutbankError, StorageError

NEWER = "ALTER TABLE imports ADD COLUMN note text"
TODAY = len(postgres_schema.MIGRATIONS) + 1
"""The version of the schema that is made now."""


@pytest.fixture
def engine() -> str:
    return "postgres"


def recorder_of(store: SessionStore) -> PostgresRecorder:
    recorder = store.events.recorder
    assert isinstance(recorder, PostgresRecorder)
    return recorder


def texts(session: StoredSession) -> list[str]:
    return [entry.text for entry in session.view().entries]


@contextmanager
def one_line(*words: str) -> Iterator[None]:
    """What is refused is refused as a StorageError of one line that says these words."""
    with pytest.raises(StorageError) as raised:
        yield
    message = str(raised.value)
    assert "\n" not in message
    assert all(word in message for word in words), message
    assert "secret" not in message


# What is never changed


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM stored_events",
        "DELETE FROM stored_events WHERE notification_id = 1",
        "UPDATE stored_events SET state = 'x'",
        "TRUNCATE stored_events",
        "DELETE FROM topics",
        "UPDATE topics SET topic = 'x'",
        "DELETE FROM subjects",
    ],
)
def test_an_event_is_never_changed_or_deleted(session: StoredSession, statement: str) -> None:
    session.append(Block.user("stays"))

    with pytest.raises(psycopg.Error, match="the log is immutable"):
        connected_to_same(session.store, statement)

    assert texts(session) == ["stays"]
    assert verify(session.store).ok


def connected_to_same(store: SessionStore, statement: str) -> None:
    recorder_of(store).datastore.connection.execute(statement.encode())


# Addresses


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
        assert "secret" not in shown(url)
        assert "db.example" in shown(url)
    assert session.store.name == shown(database)
    assert shown(database) in repr(session)


@pytest.mark.parametrize(
    "address",
    [
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
    ],
)
def test_what_may_hold_a_password_is_no_file_name_and_is_not_repeated(
    address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    with pytest.raises(StorageError) as refusal:
        cutbank.open(address)

    assert "cret" not in "".join(traceback.format_exception(refusal.value))
    assert "\n" not in str(refusal.value)
    assert list(tmp_path.iterdir()) == []


def test_libpq_s_notation_opens_the_same_database(database: str, session: StoredSession) -> None:
    pairs = [
        f"{name}='{value}'" for name, value in Address.of(database).connection.items() if value
    ]
    schema = Address.of(database).schema

    with cutbank.open(f" schema='{schema}' {' '.join(pairs)}") as store:
        assert store.session(session.key, create=False).namespace == session.namespace
        assert "password" not in f"{store.name}{store.opening}"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (("/postgres?host=", "/nowhere?host="), ["no such database", "createdb"]),
        (("//postgres:@", "//nobody:secret@"), ["no such user"]),
        (("//postgres:@", "//needs_password:secret@"), ["refused that user and password"]),
        (("//postgres:@", "//needs_password@"), ["wants a password"]),
        (("?host=/", "?host=/nowhere/"), ["no socket in that folder"]),
        (("?host=/", "?host=localhost&port=1&was=/"), ["is not an address"]),
    ],
    ids=["database", "user", "password", "no password", "socket", "parameter"],
)
def test_an_address_that_leads_nowhere_is_answered_in_one_line(
    database: str, postgres: str, change: tuple[str, str], words: list[str]
) -> None:
    with psycopg.connect(postgres, autocommit=True) as connection:
        exists = "SELECT FROM pg_roles WHERE rolname = 'needs_password'"
        if connection.execute(exists).fetchone() is None:
            connection.execute("CREATE ROLE needs_password LOGIN PASSWORD 'right'")

    with one_line(*words):
        cutbank.open(database.replace(*change))


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("postgresql://ada:secret@localhost:1/agents", ["nothing listens"]),
        ("postgresql://ada:secret@no.such.host.invalid/agents", ["no host of that name"]),
        ("postgresql://ada:secret@localhost:port/agents", ["a port is a number"]),
        ("postgresql://ada:se@secret@localhost/agents", ["%40"]),
        ("postgresql://ada:se/secret@localhost/agents", ["%2F"]),
        ("postgresql://localhost/agents?schema=", ["1 to 63 bytes"]),
    ],
)
def test_a_host_that_is_not_there_is_answered_in_one_line(url: str, words: list[str]) -> None:
    with one_line(*words):
        cutbank.open(url)


def test_a_schema_is_named_by_a_parameter_or_by_the_search_path() -> None:
    base = "postgresql://ada@localhost/agents"

    assert Address.of(base).schema == "cutbank"
    assert Address.of(f"{base}?schema=team%20a&sslmode=disable").schema == "team a"
    assert Address.of(f"{base}?options=-csearch_path%3Dteam").schema == "team"
    assert Address.of(f"{base}?options=-c%20search_path%3Dteam,public").schema == "team"
    assert "schema" not in Address.of(f"{base}?schema=team").connection


def test_without_the_extra_one_line_says_what_to_install(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cutbank.adapters.storage.event_log.database_addresses.find_spec", lambda _: None)

    with one_line("pip install 'cutbank[postgres]'"):
        cutbank.open(database)


# Whose tables


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
            connection.execute(f'DROP SCHEMA "{Address.of(other).schema}" CASCADE'.encode())


def test_a_schema_of_another_application_is_refused(database: str, postgres: str) -> None:
    name = Address.of(database).schema
    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute(f'CREATE SCHEMA "{name}"'.encode())
        connection.execute(f'CREATE TABLE "{name}".songs (name text)'.encode())

        with one_line("another application", "songs", "?schema=NAME"):
            cutbank.open(database)

        connection.execute(f'DROP TABLE "{name}".songs'.encode())
    # An empty schema that somebody made for cutbank is as good as none.
    cutbank.open(database).close()


def test_a_newer_schema_is_refused(store: SessionStore, database: str) -> None:
    connected_to_same(store, "UPDATE cutbank_format SET version = 1000")

    with one_line("newer cutbank", "format 1000"):
        cutbank.open(database)


def test_an_older_server_is_refused(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(datastore, "OLDEST_SERVER", 99)

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

OPENS = """
import sys
import traceback
from cutbank.adapters.storage.postgres import schema
postgres_schema.MIGRATIONS += tuple(sys.argv[3:])
import cutbank
from cutbank import Block
print("ready", flush=True)
sys.stdin.readline()
with cutbank.open(sys.argv[1]) as store:
    for key in ("shared", sys.argv[2]):
        store.session(key).append(Block.user(sys.argv[2]))
"""


def run_children(code: str, number: int, database: str, *arguments: str) -> None:
    """Run processes that begin together, and expect each to end well and without a word."""
    children = [
        subprocess.Popen(
            [sys.executable, "-c", code, database, f"child {child}", *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for child in range(number)
    ]
    try:
        for child in children:
            assert child.stdout
            assert child.stdout.readline() == "ready\n"
        said = []
        for child in children:
            assert child.stdin
            child.stdin.write("go\n")
            child.stdin.flush()
        said = [child.communicate()[0] for child in children]
    finally:
        for child in children:
            child.kill()
            child.wait()
    assert said == [""] * number
    assert [child.returncode for child in children] == [0] * number


@pytest.mark.slow
@pytest.mark.parametrize("state", ["new", "old", "current"])
def test_processes_that_start_together_all_get_in(database: str, state: str) -> None:
    if state != "new":
        cutbank.open(database).close()

    run_children(OPENS, 20, database, *([NEWER] if state == "old" else []))

    with connected_to(database) as connection:
        counts = connection.execute(
            "SELECT (SELECT count(*) FROM streams), (SELECT count(*) FROM cutbank_format),"
            " (SELECT version FROM cutbank_format),"
            " (SELECT count(*) FROM stored_events) = (SELECT sum(newest) FROM (SELECT"
            " max(originator_version) AS newest FROM stored_events GROUP BY originator_id) AS x)"
        ).fetchone()
    assert counts == (21, 1, TODAY + (state == "old"), True)


def test_a_current_schema_is_opened_without_defining_anything(
    store: SessionStore, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What defines the same thing at the same time is failed by PostgreSQL."""
    monkeypatch.setattr(schema, "SCHEMA", "this is no SQL")
    name = Address.of(database).schema
    query = f"SELECT xmin FROM pg_namespace WHERE nspname = '{name}'"  # noqa: S608
    before = asked(store, query)

    cutbank.open(database).close()

    assert asked(store, query) == before


def test_a_migration_that_fails_leaves_what_there_was(
    store: SessionStore, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch, one_line("division by zero"):
        failing = "CREATE TABLE half (x integer); SELECT 1 / 0"
        patch.setattr(schema, "MIGRATIONS", (*postgres_schema.MIGRATIONS, NEWER, failing))
        cutbank.open(database)

    assert asked(store, "SELECT version FROM cutbank_format") == [(TODAY,)]
    assert asked(store, "SELECT to_regclass('half') IS NULL") == [(True,)]
    cutbank.open(database).close()


def test_eventsourcing_s_own_pool_is_never_opened(database: str) -> None:
    """It would connect in the background, to whatever server is the default."""
    with EventStore(settings_of(database)) as events:
        store = SessionStore(events, "log")
        store.session("s").append(Block.user("a"))
        recorder = recorder_of(store)

        assert recorder.datastore.pool.closed


@pytest.mark.parametrize("number", [1, FEW, FEW + 1, 3 * FEW])
def test_an_append_of_any_size_is_stored_in_order(session: StoredSession, number: int) -> None:
    """Few rows are sent as values, many as arrays."""
    said = [f"{at} " + "large " * 2_000 for at in range(number)]

    done = session.append(*map(Block.user, said), key="all")

    assert texts(session) == said
    assert session.append(Block.user("again"), key="all") == done._replace(repeated=True)
    log = session.store.events.recorder.select_notifications(1, 100)
    mine = [row for row in log if row.originator_id == session.id]
    assert [row.originator_version for row in mine] == list(range(1, done.last + 1))
    assert verify(session.store).ok


# Answers that never come


Asked = Callable[..., list[tuple[Any, ...]]]


def is_append(query: object) -> bool:
    return isinstance(query, bytes) and b"INSERT INTO stored_events" in query


def losing_answers(monkeypatch: pytest.MonkeyPatch, *, after: bool, times: int = 1) -> list[int]:
    """The server goes away at the next writes, before or after it has done them."""
    real: Asked = Datastore.asked
    lost: list[int] = []

    def asked_once(self: Datastore, query: Any, parameters: Any = ()) -> list[tuple[Any, ...]]:
        if not is_append(query) or len(lost) >= times:
            return real(self, query, parameters)
        lost.append(1)
        if after:
            real(self, query, parameters)
        connection = self.connection
        with pytest.raises(psycopg.OperationalError):
            connection.execute("SELECT pg_terminate_backend(pg_backend_pid())")
        assert connection.closed
        return _lost()

    monkeypatch.setattr(Datastore, "asked", asked_once)
    return lost


def _lost() -> list[tuple[Any, ...]]:
    raise ConnectionLostError("the answer was lost")


@pytest.mark.parametrize("after", [True, False], ids=["committed", "not committed"])
@pytest.mark.parametrize("keyed", [True, False], ids=["with a key", "without"])
def test_an_append_whose_answer_was_lost_is_stored_once(
    session: StoredSession, monkeypatch: pytest.MonkeyPatch, *, after: bool, keyed: bool
) -> None:
    before = session.append(Block.user("before")).last
    lost = losing_answers(monkeypatch, after=after, times=2)

    done = session.append(
        Block.user("a"), Block.assistant("b" * 20_000), key="key" if keyed else None
    )

    assert lost
    assert not done.repeated
    assert (done.first, done.last) == (before + 1, before + 2)
    assert [text[:6] for text in texts(session)] == ["before", "a", "bbbbbb"]
    assert verify(session.store).ok


def test_an_append_that_was_lost_and_overtaken_is_a_conflict(
    session: StoredSession, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    at = session.append(Block.user("before")).last
    real: Asked = Datastore.asked
    lost: list[int] = []

    def overtaken(self: Datastore, query: Any, parameters: Any = ()) -> list[tuple[Any, ...]]:
        if is_append(query) and not lost:
            lost.append(1)
            with cutbank.open(database) as other:
                other.session("a session").append(Block.user("somebody else"))
            _lost()
        return real(self, query, parameters)

    monkeypatch.setattr(Datastore, "asked", overtaken)

    with pytest.raises(CutbankError):
        # `expect` is met when it is looked at, and no more when it is stored.
        session.append(Block.user("mine"), expect=at)

    assert texts(session) == ["before", "somebody else"]


@pytest.mark.parametrize("kind", [DeadlockDetected, SerializationFailure])
def test_an_append_that_was_undone_for_others_is_made_anew(
    session: StoredSession, monkeypatch: pytest.MonkeyPatch, kind: type[psycopg.Error]
) -> None:
    real: Asked = Datastore.asked
    undone: list[int] = []

    def contended(self: Datastore, query: Any, parameters: Any = ()) -> list[tuple[Any, ...]]:
        if is_append(query):
            undone.append(1)
            if len(undone) < 4:
                raise OperationalError(kind("not you"))
        return real(self, query, parameters)

    monkeypatch.setattr(Datastore, "asked", contended)

    session.append(Block.user("a"))

    assert len(undone) == 4
    assert texts(session) == ["a"]


def test_a_sequence_that_was_set_back_is_no_conflict(session: StoredSession) -> None:
    """Whoever decides again on a conflict would do so for ever."""
    session.append(Block.user("a"))
    connected_to_same(session.store, "SELECT setval('stored_events_notification_id_seq', 1, false)")

    with one_line("stored_events_pkey"):
        session.append(Block.user("b"))


def test_positions_keys_and_names_that_are_taken_are_conflicts(session: StoredSession) -> None:
    session.append(Block.user("a"), key="key")
    recorder = recorder_of(session.store)
    key = recorder.select_key(session.id, "key")
    stream = recorder.select_streams()[0]
    assert key

    with pytest.raises(IntegrityError):
        recorder.insert_events(recorder.select_events(session.id, limit=1))
    with pytest.raises(IntegrityError):
        recorder.insert_events([], keys=[key])
    with pytest.raises(IntegrityError):
        recorder.insert_events([], streams=[stream])


# Servers that stop


@pytest.fixture
def own_server() -> Iterator[Server]:
    server = Server()
    try:
        yield server
    finally:
        server.close()


@pytest.mark.parametrize("how", ["fast", "immediate"])
def test_a_server_that_restarts_is_found_again(own_server: Server, how: str) -> None:
    with cutbank.open(own_server.address) as store:
        session = store.session("s")
        session.append(Block.user("before"))
        own_server.tell(how)
        own_server.tell("start")

        assert texts(session) == ["before"]
        own_server.tell(how)
        own_server.tell("start")
        session.append(Block.user("after"))

        assert texts(session) == ["before", "after"]
        assert verify(store).ok


def test_a_server_that_stays_away_is_an_error_of_one_line(
    own_server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(datastore, "RECONNECT_SECONDS", 0.2)
    with cutbank.open(own_server.address) as store:
        session = store.session("s")
        at = session.append(Block.user("before")).last
        own_server.tell("fast")

        with one_line("cannot be reached"):
            session.append(Block.user("lost"))
        with one_line("cannot be reached"):
            session.view()

        own_server.tell("start")
        assert session.append(Block.user("after")).last == at + 1
        assert texts(session) == ["before", "after"]


def test_a_subscription_outlives_a_restart(own_server: Server) -> None:
    with cutbank.open(own_server.address) as store:
        session = store.session("s")
        with store.events.recorder.subscribe() as subscription:
            assert next(subscription).id == 1
            own_server.tell("immediate")
            own_server.tell("start")
            session.append(Block.user("after"))

            assert [next(subscription).topic for _ in range(2)] == [
                "cutbank:TurnStarted",
                "cutbank:BlockAppended",
            ]


# What a server may not do


def test_what_cannot_be_written_can_still_be_read(session: StoredSession, database: str) -> None:
    session.append(Block.user("a"))
    read_only = f"{database}&options=-c%20default_transaction_read_only%3Don"

    with cutbank.open(read_only) as store:
        again = store.session("a session", create=False)
        assert texts(again) == ["a"]
        with one_line("is read-only", "primary"):
            again.append(Block.user("b"))


def test_a_name_that_cannot_be_looked_up_is_refused(session: StoredSession) -> None:
    """An index holds up to a third of a page; what can be compressed may be longer."""
    name = "".join(Random(1).choices(ascii_letters, k=5_000))  # noqa: S311

    with one_line("keep names below 2,000 bytes"):
        session.append(Block.user("a"), key=name)

    assert session.append(Block.user("b"), key="n" * 2_000).last == session.position


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ('could not extend file "base/5/1": No space left on device', "disk is full"),
        ("terminating connection due to administrator command", "went away"),
        ("FATAL:  sorry, too many clients already", "no connection left"),
        ("invalid page in block 7 of relation base/5/16384", "is damaged"),
    ],
)
def test_what_a_server_says_is_said_plainly(said: str, words: str) -> None:
    with one_line(words), storage_errors.speaking_plainly("postgresql://db/agents"):
        raise OperationalError(psycopg.OperationalError(f"{said}\nDETAIL:  more"))


# Copies


def test_a_copy_is_of_one_moment_and_goes_on_as_a_file(
    session: StoredSession, tmp_path: Path
) -> None:
    session.append(Block.user("a"), Block.assistant("large " * 5_000), key="k")
    fork = session.fork("fork")
    fork.append(Block.user("b"))
    target = tmp_path / "copy.db"

    session.store.backup(target)
    copied = session.store.events.recorder.max_notification_id()
    session.append(Block.user("later"))

    with cutbank.open(target) as copy:
        again = copy.session("a session", create=False)
        assert verify(copy).ok
        assert texts(again)[:1] == ["a"]
        assert len(texts(again)) == 2
        assert again.append(Block.user("x"), key="k").repeated
        assert copy.session("fork").view().fingerprint == fork.view().fingerprint
        assert [row.id for row in copy.events.recorder.select_notifications(1, 99)] == [
            row.id for row in session.store.events.recorder.select_notifications(1, copied)
        ]
        again.append(Block.user("goes on"))
    assert list(tmp_path.iterdir()) == [target]


def test_a_copy_that_fails_leaves_nothing(
    session: StoredSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    session.append(Block.user("a"))
    monkeypatch.setattr("cutbank.adapters.storage.postgres.copy_to_file.TABLES", {"topics": "id, nothing"})

    with pytest.raises(StorageError):
        session.store.backup(tmp_path / "copy.db")

    assert list(tmp_path.iterdir()) == []
