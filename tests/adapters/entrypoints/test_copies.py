"""A copy of a database that was in use, from the command line."""

import shutil
from pathlib import Path

import pytest
from sqlite_behind import sqlite_recorder

import cutbank
from cutbank.adapters.runtime.sessions.session_store import open_store

from .conftest import Run


@pytest.fixture
def copy(talk: Path, tmp_path: Path) -> Path:
    """Made while somebody wrote, without the log."""
    path = tmp_path / "copy.db"
    with open_store(talk) as store:
        store.session("talk").append(cutbank.Block.user("In the file."))
        sqlite_recorder(store).datastore.writer.execute("PRAGMA wal_checkpoint")
        store.session("talk").append(cutbank.Block.user("In the log."))
        shutil.copy(talk, path)
    return path


def test_a_copy_that_was_made_in_use_is_refused_by_every_verb_in_one_line(
    run: Run, copy: Path
) -> None:
    for words in (["sessions"], ["view", "talk"], ["verify"], ["append", "talk", "x"]):
        answer = run(*words, "--db", copy)

        assert answer.code != 0
        assert answer.out == ""
        (line,) = answer.err.splitlines()
        assert "copy.db is a copy made while the database was in use" in line
        assert "`cutbank backup`" in line
        assert "`cutbank verify --adopt`" in line


def test_verify_adopts_what_the_copy_has(run: Run, copy: Path) -> None:
    assert "all is well" in run("verify", "--adopt", "--db", copy).out

    said = run("recall", "talk", "--search", "In the", "--db", copy).out
    assert "In the file." in said
    assert "In the log." not in said


def test_a_damaged_copy_is_not_adopted(run: Run, copy: Path) -> None:
    content = bytearray(copy.read_bytes())
    content[len(content) // 2 :] = bytes(len(content) - len(content) // 2)
    copy.write_bytes(content)

    answer = run("verify", "--adopt", "--db", copy)

    assert answer.code != 0
    assert "copy.db is damaged" in answer.err
    assert len(answer.err.splitlines()) == 1
