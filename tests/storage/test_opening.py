"""What can be opened is opened; what cannot is refused in one line and left as it is."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from faulty import check_log, closing, one_line, texts
from files_at_rest import files, said, write

import cutbank
from cutbank import Block
from cutbank.adapters.storage.databases import sqlite_datastore, sqlite_schema
from cutbank.adapters.storage.databases.database_file import find_database_path


@pytest.mark.parametrize(
    "name",
    ["with space.db", "what?.db", "50%41#.db", "ünïcode \U0001f600.db", "empty.db", "link.db"],
)
def test_a_path_is_taken_as_it_is_written(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    if name == "empty.db":
        path.touch()
    if name == "link.db":
        (tmp_path / "real").mkdir()
        path.symlink_to(tmp_path / "real" / "log.db")

    write(path)

    assert said(path) == said(path.resolve()) == ["words"]
    assert files(path.resolve().parent) == [path.resolve().name]
    assert find_database_path(str(path)) == path.resolve()
    with closing(path) as connection:
        assert sqlite_schema.read_version(connection) == sqlite_schema.SCHEMA_VERSION
        (application,) = connection.execute("PRAGMA application_id").fetchone()
        assert application == sqlite_schema.LOG_APPLICATION_ID


@pytest.mark.parametrize("name", ["sessions.db", "file:a%20b.db?mode=rwc"])
def test_a_relative_path_is_resolved_once(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    for folder in (first, second):
        folder.mkdir()
    monkeypatch.chdir(first)

    with cutbank.open(name) as store:
        session = store.session("session")
        session.append(Block.user("words"))
        monkeypatch.chdir(second)
        with ThreadPoolExecutor(1) as thread:  # which has connections of its own
            thread.submit(session.append, Block.user("more")).result()
        assert [found.session for found in store.search("more")] == ["session"]

    monkeypatch.chdir(first)
    with cutbank.open(name) as store:
        assert texts(store.session("session", create=False)) == ["words", "more"]
    assert list(second.iterdir()) == []


ADD_A_TABLE = """CREATE TABLE later (word TEXT);
INSERT INTO later SELECT topic FROM topics LIMIT 1;
"""


def test_an_older_database_is_migrated_or_left_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, migrations = tmp_path / "old.db", sqlite_schema.SQLITE_MIGRATIONS
    write(path)
    before = path.read_bytes()
    monkeypatch.setattr(sqlite_schema, "SCHEMA_VERSION", sqlite_schema.SCHEMA_VERSION + 1)
    failing = f"{ADD_A_TABLE}this is not SQL;\n"
    monkeypatch.setattr(sqlite_schema, "SQLITE_MIGRATIONS", (*migrations, failing))
    with one_line("old.db", "syntax error"):
        cutbank.open(path)
    assert path.read_bytes() == before

    monkeypatch.setattr(sqlite_schema, "SQLITE_MIGRATIONS", (*migrations, ADD_A_TABLE))
    for number in range(2):  # and only once
        with cutbank.open(path) as store:
            session = store.session("session", create=False)
            assert texts(session) == ["words", "more"][: number + 1]
            session.append(Block.user("more"), key="more")
            check_log(store)

    with closing(path) as connection:
        assert sqlite_schema.read_version(connection) == sqlite_schema.SCHEMA_VERSION
        assert connection.execute("SELECT count(*) FROM later").fetchone()[0] == 1


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


def test_a_hard_link_is_refused_while_the_database_is_in_use_by_another_name(
    tmp_path: Path,
) -> None:
    path, link = tmp_path / "test.db", tmp_path / "link.db"
    with cutbank.open(path) as store:
        store.session("session").append(Block.user("words"))
        link.hardlink_to(path)

        with one_line(str(link), "hard links"):
            cutbank.open(link)

    assert said(link) == ["words"]  # at rest it is all there, whatever it is called


def test_what_is_not_a_database_is_refused(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "null").symlink_to("/dev/null")
    notes = "These are notes, and not a database.\n" * 100
    (tmp_path / "notes").write_text(notes)
    for name, *words in (
        ("notes", "notes is not a database"),
        ("pipe", "pipe is a ", "give the path of a file"),
        ("null", "null is a ", "give the path of a file"),
        ("folder", "folder is a ", "give the path of a file"),
        ("no such folder/log.db", "cannot be opened: check that its folder exists"),
    ):
        with one_line(*words):
            cutbank.open(tmp_path / name)
    with one_line("a database needs a path"):
        cutbank.open("")

    assert (tmp_path / "notes").read_text() == notes
    assert files(tmp_path) == ["folder", "notes", "null", "pipe"]


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
    path, user = open_folder / "log.db", os.geteuid()
    write(path)
    path.chmod(0o444)
    open_folder.chmod(folder_mode)
    if user == 0:  # who may write to what is read-only
        os.seteuid(65534)

    try:
        with one_line("log.db", "check"):
            write(path, "more")
    finally:
        os.seteuid(user)

    path.chmod(0o644)
    open_folder.chmod(0o755)
    assert said(path) == ["words"]


def test_a_database_that_another_program_locks_is_said_to_be_locked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "log.db"
    write(path)
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
