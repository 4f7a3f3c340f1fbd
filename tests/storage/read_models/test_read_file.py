"""A file that does not fit the log is disposable: it is made anew, and says so."""

import shutil
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from faulty import closing, one_line

import cutbank
from cutbank import Block, SessionStore
from cutbank.adapters.storage.read_models.read_model_file import find_read_models
from cutbank.adapters.storage.read_models.read_models import ReadModels

from .conftest import Opening, check_whole, talk


def check_rebuilt(models: ReadModels, opening: Opening, reason: str) -> None:
    assert models.rebuild_reason is not None
    assert reason in models.rebuild_reason
    check_whole(models, opening)


def closed(opening: Opening) -> None:
    """Leave a file that has taken in the log."""
    models = opening()
    models.catch_up()
    models.close()


def damage(file: Path, start: int) -> None:
    content = file.read_bytes()
    file.write_bytes(content[:start] + b"\xff" * (len(content) - start))


def changed(file: Path, statement: str) -> None:
    with closing(file) as connection:
        connection.execute(statement)


@pytest.mark.parametrize(
    ("harm", "reason"),
    [
        (partial(changed, statement="DROP TABLE format"), "another version"),
        (partial(changed, statement="UPDATE format SET version = 99"), "another version"),
    ],
    ids=["no version", "a later version"],
)
def test_a_file_that_cannot_be_used_is_made_anew_and_says_so(
    store: SessionStore,
    opening: Opening,
    tmp_path: Path,
    harm: Callable[[Path], None],
    reason: str,
) -> None:
    talk(store, "s", 9)
    closed(opening)
    harm(tmp_path / "models.db")

    models = opening()
    models.rebuild() if models.rebuild_reason is None else models.catch_up()

    check_rebuilt(models, opening, reason)


@pytest.mark.parametrize("start", [0, 4_096, 8_192], ids=["header", "page", "later page"])
def test_a_damaged_file_is_named_and_is_built_again_once_it_is_deleted(
    store: SessionStore, opening: Opening, tmp_path: Path, start: int
) -> None:
    talk(store, "s", 9)
    closed(opening)
    damage(tmp_path / "models.db", start)
    store.session("s").append(Block.user("a pebble"))

    with one_line("models.db is damaged", "delete the first"):
        opening().search("pebble")
    for file in tmp_path.glob("models.db*"):
        file.unlink()

    models = opening()
    assert [found.session for found in models.search("pebble")] == ["s"]
    check_whole(models, opening)


def test_a_log_that_is_damaged_is_named_and_its_read_models_are_left_as_they_are(
    tmp_path: Path,
) -> None:
    log = tmp_path / "log.db"
    with cutbank.open(log) as store:
        talk(store, "s", 60)
        assert len(store.search("clay", limit=5)) == 5
        before = store.read_models.positions
    damage(log, log.stat().st_size * 3 // 4)  # behind the tables' definitions

    with cutbank.open(log) as store:
        with one_line("log.db"):
            store.search("clay", limit=1_000)

        assert store.read_models.rebuild_reason is None
        assert store.read_models.positions == before


def test_a_file_that_was_deleted_while_it_was_open_is_made_again(
    store: SessionStore, opening: Opening, tmp_path: Path
) -> None:
    talk(store, "s", 2)
    models = opening()
    models.catch_up()
    for file in tmp_path.glob("models.db*"):
        file.unlink()
    store.session("s").append(Block.user("a pebble"))

    assert [found.session for found in models.search("pebble")] == ["s"]
    check_whole(opening(), opening)


@pytest.mark.parametrize("goes_on", [False, True], ids=["shorter", "another way"])
def test_a_file_that_knows_more_than_a_restored_log_is_made_anew(
    tmp_path: Path, *, goes_on: bool
) -> None:
    with cutbank.open(tmp_path / "log.db") as store:
        talk(store, "s", 2)
        store.backup(tmp_path / "backup.db")
        store.session("s").append(Block.user("what the backup has not"))
        assert len(store.search("backup")) == 1
    for end in ("-wal", "-shm"):
        (tmp_path / f"log.db{end}").unlink(missing_ok=True)
    shutil.copy(tmp_path / "backup.db", tmp_path / "log.db")

    with cutbank.open(tmp_path / "log.db") as store:
        if goes_on:
            store.session("s").append(Block.user("a pebble"))  # at the very same position

        assert store.search("backup") == []
        assert len(store.search("pebble")) == goes_on
        assert store.read_models.rebuild_reason is not None


FORKS = """
import os, sys, cutbank
with cutbank.open(sys.argv[1]) as store:
    store.session("s").append(cutbank.Block.user("a pebble"))
    before = store.search("pebble")
    inherited = store.read_models.file.db
    child = os.fork()
    found = store.search("pebble")
    inherited.execute("SELECT 1")
    is_fit = found == before and (store.read_models.file.db is inherited) == bool(child)
    if not child:
        store.read_models.close()
        os._exit(not is_fit)
    assert is_fit and os.waitpid(child, 0)[1] == 0
"""


def test_a_forked_process_opens_the_file_again_and_leaves_its_parent_s_alone(
    tmp_path: Path,
) -> None:
    subprocess.run([sys.executable, "-c", FORKS, tmp_path / "log.db"], check=True)


def test_another_program_s_database_is_left_alone(opening: Opening, tmp_path: Path) -> None:
    changed(tmp_path / "models.db", "CREATE TABLE songs (name TEXT)")
    before = (tmp_path / "models.db").read_bytes()

    with one_line("another program's database: move it away"):
        opening()

    assert (tmp_path / "models.db").read_bytes() == before
    with one_line("cannot be opened"):
        opening("missing/models.db")


def test_read_models_of_a_log_in_memory_are_in_memory() -> None:
    with cutbank.open(":memory:") as store:
        store.session("s").append(Block.user("a pebble"))

        assert [found.handle for found in store.search("pebble")] == ["#3"]
        assert not Path(store.read_models.name).exists()


def test_read_models_stand_beside_a_log_or_in_the_state_folder(tmp_path: Path) -> None:
    log, server = f"{tmp_path}/x.db", "postgresql://ada:secret@db.example:5432/log"
    elsewhere = [
        find_read_models(address)
        for address in (
            f"file:{log}?mode=ro",
            server,
            server.replace("secret", "changed"),
            server.replace("/log", "/other"),
        )
    ]

    for address, file in ((log, "x"), (f"{tmp_path}/sessions", "sessions"), (f"file:{log}", "x")):
        assert find_read_models(address) == f"{tmp_path}/{file}.read.db"
    assert all(Path(one).is_relative_to(tmp_path / "state") for one in elsewhere)
    assert elsewhere[1] == elsewhere[2] != elsewhere[3]
    assert "secret" not in "".join(elsewhere)
