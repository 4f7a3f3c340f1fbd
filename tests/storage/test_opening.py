"""What can be opened is opened; what cannot is refused in one line and left as it is."""

import os
import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest
from faulty import check_log, closing, one_line, texts

import cutbank
from cutbank import Block
from cutbank.adapters.storage.sqlite import sqlite_datastore, sqlite_schema

Connection = sqlite3.Connection


def test_an_empty_file_becomes_a_database(tmp_path: Path) -> None:
    path = tmp_path / "empty.db"
    path.touch()

    with cutbank.open(path) as store:
        store.session("session").append(Block.user("words"))

    with closing(path) as connection:
        assert version(connection) == sqlite_schema.SCHEMA_VERSION
        assert (
            connection.execute("PRAGMA application_id").fetchone()[0]
            == sqlite_schema.LOG_APPLICATION_ID
        )
        assert connection.execute("PRAGMA journal_mode").fetchone()[0] == "delete"


def test_a_path_is_taken_as_it_is_written(tmp_path: Path) -> None:
    for name in ("with space.db", "what?.db", "50%41#.db", "ünïcode \U0001f600.db"):
        with cutbank.open(tmp_path / name) as store:
            store.session("session").append(Block.user("words"))

        assert (tmp_path / name).stat().st_size > 0
        with cutbank.open(str(tmp_path / name)) as store:
            assert texts(store.session("session", create=False)) == ["words"]


@pytest.mark.parametrize("name", ["sessions.db", "file:a%20b.db?mode=rwc"])
def test_a_relative_path_is_resolved_once(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    for folder in (first, second):
        folder.mkdir()
    monkeypatch.chdir(first)

    with cutbank.open(name) as store:
        store.session("session").append(Block.user("words"))
        monkeypatch.chdir(second)
        run_in_thread(lambda: store.session("session").append(Block.user("more")))
        assert [found.session for found in store.search("more")] == ["session"]

    monkeypatch.chdir(first)
    with cutbank.open(name) as store:
        assert texts(store.session("session", create=False)) == ["words", "more"]
    assert list(second.iterdir()) == []


ADD_A_TABLE = """CREATE TABLE later (word TEXT);
INSERT INTO later SELECT topic FROM topics LIMIT 1;
"""


def test_an_older_database_is_migrated_and_keeps_its_events(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "old.db"
    with cutbank.open(path) as store:
        store.session("session").append(Block.user("words"))
    with closing(path) as connection:
        before = connection.execute("SELECT * FROM stored_events").fetchall()

    monkeypatch.setattr(
        sqlite_schema, "SQLITE_MIGRATIONS", (*sqlite_schema.SQLITE_MIGRATIONS, ADD_A_TABLE)
    )
    monkeypatch.setattr(sqlite_schema, "SCHEMA_VERSION", sqlite_schema.SCHEMA_VERSION + 1)
    for number in range(2):  # and only once
        with cutbank.open(path) as store:
            session = store.session("session", create=False)
            assert texts(session) == ["words", "more"][: number + 1]
            session.append(Block.user("more"), key="more")
            check_log(store)

    with closing(path) as connection:
        assert version(connection) == sqlite_schema.SCHEMA_VERSION
        assert connection.execute("SELECT count(*) FROM later").fetchone()[0] == 1
        rows = connection.execute("SELECT * FROM stored_events").fetchall()
        assert rows[: len(before)] == before


def test_a_migration_that_fails_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "old.db"
    with cutbank.open(path) as store:
        store.session("session").append(Block.user("words"))

    with monkeypatch.context() as patched:
        patched.setattr(
            sqlite_schema,
            "SQLITE_MIGRATIONS",
            (*sqlite_schema.SQLITE_MIGRATIONS, f"{ADD_A_TABLE}this is not SQL;\n"),
        )
        patched.setattr(sqlite_schema, "SCHEMA_VERSION", sqlite_schema.SCHEMA_VERSION + 1)
        with one_line("old.db", "syntax error"):
            cutbank.open(path)

    with closing(path) as connection:
        assert version(connection) == sqlite_schema.SCHEMA_VERSION
        assert "later" not in tables(connection)
    with cutbank.open(path) as store:
        assert texts(store.session("session")) == ["words"]


def run_in_thread(work: Callable[[], object]) -> None:
    """A thread has connections of its own."""
    with ThreadPoolExecutor(1) as pool:
        pool.submit(work).result()


def test_a_foreign_or_newer_database_is_refused_and_left_as_it_was(tmp_path: Path) -> None:
    ours = f"PRAGMA application_id = {sqlite_schema.LOG_APPLICATION_ID}"
    later = sqlite_schema.SCHEMA_VERSION + 6
    newer = f"was written by a newer cutbank (format {later}, this one reads up to"
    foreign = "is a database of another application"
    path = tmp_path / "other.db"

    for statements, words in (
        (["CREATE TABLE bookmarks (url TEXT)"], foreign),
        (["PRAGMA application_id = 7"], foreign),
        (["PRAGMA user_version = 3"], foreign),
        ([ours, f"PRAGMA user_version = {later}"], newer),
    ):
        path.unlink(missing_ok=True)
        with closing(path) as connection:
            for statement in statements:
                connection.execute(statement)
        before = path.read_bytes()

        with one_line("other.db", words):
            cutbank.open(path)

        assert path.read_bytes() == before
        assert [file.name for file in tmp_path.iterdir()] == ["other.db"]


def test_a_path_that_leads_to_no_file_is_refused_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "null").symlink_to("/dev/null")

    for kind in ("pipe", "null", "folder"):
        with one_line(f"{kind} is a ", "give the path of a file"):
            cutbank.open(tmp_path / kind)


def test_an_archive_is_no_database_and_says_what_to_do(tmp_path: Path) -> None:
    with cutbank.open(tmp_path / "first.db") as store:
        store.session("session").append(Block.user("words"))
        cutbank.export(store.session("session"), "cutbank-archive", tmp_path / "archive")

    with one_line("is an archive", "cutbank import"):
        cutbank.open(tmp_path / "archive")

    with cutbank.open(tmp_path / "second.db") as store:
        cutbank.import_transcripts(store, tmp_path / "archive")
        assert texts(store.session("session", create=False)) == ["words"]


def test_a_hard_link_is_refused_while_the_database_is_in_use_by_another_name(
    tmp_path: Path,
) -> None:
    path, link = tmp_path / "test.db", tmp_path / "link.db"
    with cutbank.open(path) as store:
        store.session("session").append(Block.user("words"))
        link.hardlink_to(path)

        with one_line(str(link), "hard links"):
            cutbank.open(link)

    with cutbank.open(link) as store:  # at rest it is all there, whatever it is called
        assert texts(store.session("session", create=False)) == ["words"]


def test_what_is_not_a_database_is_refused(tmp_path: Path) -> None:
    text = tmp_path / "notes.txt"
    text.write_text("These are notes, and not a database.\n" * 100)

    with one_line("notes.txt is not a database"):
        cutbank.open(text)
    with one_line("cannot be opened: check that its folder exists"):
        cutbank.open(tmp_path / "no such folder" / "log.db")
    with one_line("a database needs a path"):
        cutbank.open("")

    assert text.read_text() == "These are notes, and not a database.\n" * 100
    assert [file.name for file in tmp_path.iterdir()] == ["notes.txt"]


@contextmanager
def without_rights() -> Iterator[None]:
    """As a user to whom permissions apply: root may write to what is read-only."""
    user = os.geteuid()
    if user == 0:
        os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(user)


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that others may look into."""
    folder = Path(tempfile.mkdtemp(prefix="cutbank-test-"))
    folder.chmod(0o755)
    yield folder
    folder.chmod(0o755)
    shutil.rmtree(folder)


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="permissions are POSIX's here")
@pytest.mark.parametrize("folder_mode", [0o555, 0o777])
def test_a_read_only_file_is_refused_and_keeps_what_it_has(
    open_folder: Path, folder_mode: int
) -> None:
    path = open_folder / "log.db"
    with cutbank.open(path) as store:
        store.session("session").append(Block.user("words"))
    path.chmod(0o444)
    open_folder.chmod(folder_mode)

    def append() -> None:
        with cutbank.open(path) as store:
            store.session("session").append(Block.user("more"))

    with without_rights(), one_line("log.db", "check"):
        append()

    path.chmod(0o644)
    open_folder.chmod(0o755)
    with cutbank.open(path) as store:
        assert texts(store.session("session")) == ["words"]


def test_a_database_that_another_program_locks_is_said_to_be_locked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "log.db"
    with cutbank.open(path) as store:
        store.session("session").append(Block.user("words"))
    monkeypatch.setattr(sqlite_datastore, "LOCK_TIMEOUT_SECONDS", 0.01)

    with closing(path) as connection, cutbank.open(path) as store:
        connection.execute("BEGIN IMMEDIATE")
        session = store.session("session")
        for blocks in ([Block.user("1")], [Block.user("1"), Block.user("2")]):
            with one_line("log.db is locked by another program"):
                session.append(*blocks)
        connection.execute("ROLLBACK")

        session.append(Block.user("after"))
        assert texts(session) == ["words", "after"]
        check_log(store)


def version(connection: Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def tables(connection: Connection) -> list[str]:
    return [name for (name,) in connection.execute("SELECT name FROM sqlite_master")]
