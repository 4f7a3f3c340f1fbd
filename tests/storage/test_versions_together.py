"""Any number of processes, of one version or of several, open one database at once."""

import sqlite3
from pathlib import Path

import pytest
from faulty import closing, one_line, texts
from files_at_rest import write
from opened_stores import store_of
from processes import Processes
from sqlite_behind import sqlite_recorder

import cutbank
from cutbank import Block, StoredSession, verify
from cutbank.adapters.storage.databases import sqlite_schema

GOLDEN = Path(__file__).parent / "golden"
FILES: dict[str, tuple[str, str] | None] = {
    "new": None,
    "old": ("v1", "WAL"),
    "old, at rest": ("v2", "DELETE"),
    "of today, and it does not know its file": ("v7", "DELETE"),
}


@pytest.mark.slow
@pytest.mark.parametrize("made", FILES)
def test_twenty_processes_open_a_database_at_once(
    tmp_path: Path, run: Processes, made: str
) -> None:
    for number in range(3):
        path, before = tmp_path / f"{number}.db", 0
        if dump := FILES[made]:
            with closing(path) as connection:
                connection.executescript((GOLDEN / f"{dump[0]}.sql").read_text(encoding="utf-8"))
                connection.execute(f"PRAGMA journal_mode = {dump[1]}")
                found = connection.execute("SELECT max(notification_id) FROM stored_events")
                before = int(found.fetchone()[0])

        ended = run.run_together(20, "joins", path, "NUMBER")

        assert sorted(int(who) for who, _ in ended.told("ack")) == list(range(20))
        with closing(path) as connection:
            assert sqlite_schema.read_version(connection) == sqlite_schema.SCHEMA_VERSION
            assert connection.execute("SELECT count(*) FROM home").fetchone() == (1,)
        with cutbank.open(path) as store:
            assert sorted(texts(store.session("joined"))) == sorted(
                f"{who} was here" for who in range(20)
            )
            # Its opening, a turn, and what each said.
            assert store.events.recorder.max_notification_id() == before + 22
            assert verify(store).violations == []


@pytest.mark.parametrize("has_written", [True, False])
def test_an_older_cutbank_does_not_write_to_what_a_newer_one_has_migrated(
    tmp_path: Path, *, has_written: bool
) -> None:
    path = tmp_path / "log.db"
    write(path)
    with cutbank.open(path) as store:
        session = store.session("session")
        if has_written:
            session.append(Block.user("words"))
            session.append(Block.user("words"), Block.user("words"))
        newest = store.events.recorder.max_notification_id()

        with closing(path) as connection:
            connection.execute("BEGIN IMMEDIATE")
            connection.execute("ALTER TABLE imports ADD COLUMN of_the_future TEXT")
            connection.execute(f"PRAGMA user_version = {sqlite_schema.SCHEMA_VERSION + 1}")
            connection.execute("COMMIT")

        for blocks in (1, 2, 1):
            with one_line("log.db was migrated by a newer cutbank while it was open: upgrade"):
                session.append(*(Block.user(f"{number}") for number in range(blocks)))
        assert store.events.recorder.max_notification_id() == newest
    with one_line("log.db was written by a newer cutbank"):
        cutbank.open(path)


def test_other_changes_of_the_tables_do_not_stop_a_writer(session: StoredSession) -> None:
    session.append(Block.user("words"))
    with closing(Path(session.log.context.name)) as connection:
        connection.execute("CREATE INDEX of_somebody_else ON stored_events (tokens)")

    session.append(Block.user("more"))

    assert texts(session) == ["words", "more"]


def test_an_appender_s_statements_are_not_looked_at_twice(session: StoredSession) -> None:
    """What refuses an older writer costs an append nothing."""
    for _ in range(3):
        session.append(Block.user("words"))
    looks: list[str] = []
    datastore = sqlite_recorder(store_of(session)).datastore
    datastore.reader.set_trace_callback(looks.append)

    for number in range(5):
        session.append(Block.user(f"{number}"))

    assert looks == []


def test_an_sqlite_that_is_too_old_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite3, "sqlite_version_info", (3, 31, 1))
    monkeypatch.setattr(sqlite3, "sqlite_version", "3.31.1")

    with one_line("Python's SQLite is 3.31.1, and cutbank needs 3.38 or later"):
        cutbank.open(tmp_path / "log.db")

    assert list(tmp_path.iterdir()) == []
