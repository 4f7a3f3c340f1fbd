"""A file that does not fit the log is disposable: it is made anew, and says so."""

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from read_model_rows import rows_of, table

import cutbank
from cutbank import Block, SessionStore
from cutbank.adapters.storage.read_models.location import read_models_of
from cutbank.adapters.storage.read_models.read_models import ReadModels
from cutbank.domain.errors import StorageError

from .conftest import Opening, talk


def is_whole(models: ReadModels, opening: Opening) -> bool:
    whole = opening("whole.db")
    whole.catch_up()
    return rows_of(models) == rows_of(whole)


def test_a_missing_file_is_made(store: SessionStore, opening: Opening) -> None:
    talk(store, "s", 2)

    models = opening()

    assert models.catch_up() > 0
    assert models.made_anew is None
    assert models.position == store.events.recorder.max_notification_id()


@pytest.mark.parametrize("where", [0, 4_096, 20_000])
def test_a_damaged_file_is_made_anew_and_says_so(
    store: SessionStore, opening: Opening, tmp_path: Path, where: int
) -> None:
    talk(store, "s", 9)
    before = opening()
    before.catch_up()
    before.close()
    with (tmp_path / "models.db").open("r+b") as file:
        file.seek(where)
        file.write(b"\xff" * (file.seek(0, 2) - file.seek(where)))

    models = opening()
    models.rebuild() if where and models.made_anew is None else models.catch_up()

    assert models.made_anew is not None
    assert "damaged" in models.made_anew
    assert is_whole(models, opening)


def test_damage_that_is_met_while_it_is_used_is_no_error(
    store: SessionStore, opening: Opening, tmp_path: Path
) -> None:
    talk(store, "s", 9)
    models = opening()
    models.catch_up()
    models.close()
    models = opening()
    size = (tmp_path / "models.db").stat().st_size
    with (tmp_path / "models.db").open("r+b") as file:
        file.seek(8_192)
        file.write(b"\xff" * (size - 8_192))
    store.session("s").append(Block.user("a pebble"))

    (found,) = models.search("pebble")

    assert found.session == "s"
    assert models.made_anew is not None
    assert is_whole(models, opening)


def test_a_log_that_is_damaged_is_named_and_its_read_models_are_left_as_they_are(
    tmp_path: Path,
) -> None:
    with cutbank.open(tmp_path / "log.db") as store:
        talk(store, "s", 60)
        assert len(store.search("clay", limit=5)) == 5
        before = store.read_models.positions
    size = (tmp_path / "log.db").stat().st_size
    with (tmp_path / "log.db").open("r+b") as file:
        file.seek(size // 2)
        file.write(b"\xff" * (size // 2))

    with cutbank.open(tmp_path / "log.db") as store:
        with pytest.raises(StorageError, match=r"log\.db") as refused:
            store.search("clay", limit=1_000)

        assert "\n" not in str(refused.value)
        assert "read.db" not in str(refused.value)
        assert store.read_models.made_anew is None
        assert store.read_models.positions == before


def test_a_file_that_another_process_replaced_is_opened_again(
    store: SessionStore, opening: Opening, tmp_path: Path
) -> None:
    talk(store, "s", 2)
    models = opening()
    models.catch_up()
    replaced = opening()
    replaced.file.replace("for a test")
    store.session("s").append(Block.user("a pebble"))

    assert [found.session for found in models.search("pebble")] == ["s"]
    assert models.position == replaced.position


def test_a_file_of_another_log_is_made_anew(
    store: SessionStore, other: SessionStore, opening: Opening, tmp_path: Path
) -> None:
    talk(other, "s", 2)
    theirs = ReadModels(other.events, str(tmp_path / "models.db"))
    theirs.catch_up()
    theirs.close()
    talk(store, "s", 2)

    models = opening()
    models.catch_up()

    assert models.made_anew is not None
    assert "another state of the log" in models.made_anew
    assert is_whole(models, opening)


def test_a_file_that_is_ahead_of_a_restored_log_is_made_anew(tmp_path: Path) -> None:
    with cutbank.open(tmp_path / "log.db") as store:
        talk(store, "s", 2)
        store.backup(tmp_path / "backup.db")
        store.session("s").append(Block.user("what the backup has not"))
        assert len(store.search("backup")) == 1
    for end in ("-wal", "-shm"):
        (tmp_path / f"log.db{end}").unlink(missing_ok=True)
    shutil.copy(tmp_path / "backup.db", tmp_path / "log.db")

    with cutbank.open(tmp_path / "log.db") as store:
        assert store.search("backup") == []
        assert store.read_models.made_anew is not None
        # The log grew again to where it was, and says something else there.
        store.session("s").append(Block.user("another pebble"))
        assert len(store.search("pebble")) == 1


def test_a_log_that_went_another_way_since_its_backup_is_noticed(tmp_path: Path) -> None:
    with cutbank.open(tmp_path / "log.db") as store:
        talk(store, "s", 2)
        store.backup(tmp_path / "backup.db")
        store.session("s").append(Block.user("one way"))
        store.search("way")
    for end in ("-wal", "-shm"):
        (tmp_path / f"log.db{end}").unlink(missing_ok=True)
    shutil.copy(tmp_path / "backup.db", tmp_path / "log.db")

    with cutbank.open(tmp_path / "log.db") as store:
        store.session("s").append(Block.user("the other way"))  # at the very same position

        assert len(store.search("other way")) == 1
        assert store.search('"one way"') == []
        assert store.read_models.made_anew is not None


@pytest.mark.parametrize("change", ["DELETE FROM _sqlite_migrations WHERE id = 6", "INSERT"])
def test_a_file_of_another_version_is_made_anew(
    store: SessionStore, opening: Opening, tmp_path: Path, change: str
) -> None:
    talk(store, "s", 2)
    before = opening()
    before.catch_up()
    before.close()
    if change == "INSERT":
        change = (
            "INSERT INTO _sqlite_migrations (migration_set, name, applied_at)"
            " VALUES ('cutbank_read_models', 'from_the_future', '')"
        )
    with closing(sqlite3.connect(tmp_path / "models.db")) as connection, connection:
        connection.execute(change)

    models = opening()
    models.catch_up()

    assert models.made_anew is not None
    assert "another version" in models.made_anew
    assert is_whole(models, opening)


def test_another_program_s_database_is_left_alone(opening: Opening, tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "models.db")) as connection, connection:
        connection.execute("CREATE TABLE songs (name TEXT)")

    with pytest.raises(StorageError, match="another program's database: move it away"):
        opening()

    with closing(sqlite3.connect(tmp_path / "models.db")) as connection:
        assert connection.execute("SELECT count(*) FROM songs").fetchone() == (0,)


def test_a_folder_that_is_missing_is_said_in_one_line(opening: Opening) -> None:
    with pytest.raises(StorageError, match="cannot be opened") as refused:
        opening("missing/models.db")

    assert "\n" not in str(refused.value)


def test_read_models_of_a_log_in_memory_are_in_memory() -> None:
    with cutbank.open(":memory:") as store:
        store.session("s").append(Block.user("a pebble"))

        assert [found.handle for found in store.search("pebble")] == ["#3"]
        assert not Path(store.read_models.name).exists()


def test_a_log_s_read_models_stand_beside_it(tmp_path: Path) -> None:
    assert read_models_of(str(tmp_path / "x.db")) == str(tmp_path / "x.read.db")
    assert read_models_of(str(tmp_path / "sessions")) == str(tmp_path / "sessions.read.db")
    assert read_models_of(f"file:{tmp_path}/x.db") == str(tmp_path / "x.read.db")


def test_a_log_that_is_only_read_has_them_in_the_state_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))

    named = read_models_of(f"file:{tmp_path}/x.db?mode=ro")

    assert Path(named).is_relative_to(tmp_path / "state")


def test_a_server_s_read_models_are_named_without_its_password(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))

    one = read_models_of("postgresql://ada:secret@db.example:5432/log")
    same = read_models_of("postgresql://ada:changed@db.example:5432/log")
    another = read_models_of("postgresql://ada:secret@db.example:5432/other")

    assert one == same != another
    assert Path(one).is_relative_to(tmp_path / "state")
    assert "secret" not in one


def test_other_settings_are_reckoned_with_at_once(store: SessionStore, opening: Opening) -> None:
    talk(store, "s", 2)
    opening(least_share=0).catch_up()
    (usual,) = table(opening(), "sessions")

    (row,) = table(opening(idle_seconds=60, context_limit=1_000), "sessions")
    (small,) = table(opening(least_share=row["utilisation"] + 0.01), "sessions")
    (again,) = table(opening(least_share=0), "sessions")

    assert again == row
    assert usual["due_at"] == "2026-01-01T00:05:11.000Z"
    assert row["due_at"] == "2026-01-01T00:01:11.000Z"
    assert small["due_at"] is None
    assert row["utilisation"] == round(row["view_tokens"] / 1_000, 4)
    # They are the file's own from now on, whoever opens it.
    store.session("t").append(Block.user("words"))
    later = opening()
    later.catch_up()
    last = table(later, "sessions")[1]
    assert last["due_at"] == last["last_activity"].replace("00:00:", "00:01:")
