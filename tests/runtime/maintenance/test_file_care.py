"""The write-ahead log is cut off, and the file of read models stays quick and small."""

from pathlib import Path

import pytest
from databases import asked
from faulty import closing, texts
from read_model_rows import rows_of
from sqlite_behind import sqlite_recorder

import cutbank
from cutbank import Block, SessionStore
from cutbank.adapters.analysis.verifier import verify
from cutbank.adapters.runtime.maintenance import read_model_maintenance
from cutbank.adapters.runtime.maintenance.maintenance import Maintenance
from cutbank.adapters.runtime.maintenance.maintenance_task import TaskOutcome
from cutbank.adapters.settings.idle_settings import MaintenanceSettings

from .conftest import Make, StillClock, of, storage_of, tell, text_of

DONE = TaskOutcome.DONE


def test_the_write_ahead_log_is_cut_off(
    store: SessionStore, database: str, clock: StillClock, make: Make
) -> None:
    tell(store, 0, 100)
    log = Path(f"{database}-wal")
    before = log.stat().st_size
    assert before > 1_000_000

    report = of("checkpoint", make(cold_after=None).run_due(clock.now))

    assert (report.outcome, report.reason) == (DONE, None)
    assert report.saved > 1_000_000
    # A copy with an empty log beside it would look as if it had lost its newest events.
    assert 0 < log.stat().st_size < 50_000
    assert texts(store.session("a session")) == [text_of(number) for number in range(100)]


def test_a_checkpoint_waits_for_no_reader(
    store: SessionStore, database: str, clock: StillClock, make: Make
) -> None:
    tell(store, 0, 10)
    chores = make(cold_after=None)
    with closing(Path(database)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM stored_events").fetchone()
        tell(store, 10, 100)

        report = of("checkpoint", chores.run_due(clock.now))

        assert (report.outcome, report.saved) == (DONE, 0)
        assert str(report.reason).startswith("a reader holds on to ")
        assert reader.execute("SELECT count(*) FROM bodies").fetchone() == (10,)
        reader.execute("COMMIT")
    assert of("checkpoint", chores.run_due(clock.advance(hours=1))).saved > 1_000_000


def test_a_checkpoint_waits_for_no_writer(
    store: SessionStore, database: str, clock: StillClock
) -> None:
    tell(store, 0, 100)
    with closing(Path(database)) as writer:
        writer.execute("BEGIN IMMEDIATE")

        said: list[str] = []
        sqlite_recorder(store).datastore.reader.set_trace_callback(said.append)
        assert storage_of(store).run_database_task() == (0, "somebody reads or writes")

    last = said.index("PRAGMA wal_checkpoint(TRUNCATE)")
    assert [line for line in said[:last] if "busy_timeout" in line][-1].endswith("= 0")
    # And this thread waits for others as before.
    assert asked(store, "PRAGMA busy_timeout") == [(30_000,)]


def test_a_store_that_did_chores_leaves_one_file_behind(
    database: str, clock: StillClock, tmp_path: Path
) -> None:
    with cutbank.open(database, clock=clock) as store:
        tell(store, 0, 3)
        Maintenance(store, MaintenanceSettings(rest=0.0), clock).run_due(clock.advance(days=8))

    left = sorted(file.name for file in tmp_path.iterdir())
    assert left == ["test.db", "test.db-chores"]
    assert (tmp_path / "test.db-chores").stat().st_size == 0
    with cutbank.open(database) as store:
        assert verify(store).violations == []


@pytest.mark.parametrize("engine", ["postgres"])
def test_the_planner_of_a_server_learns_what_the_tables_hold(
    store: SessionStore, clock: StillClock, make: Make
) -> None:
    tell(store, 0, 3)

    report = of("statistics", make().run_due(clock.now))

    assert report.outcome is DONE
    known = asked(
        store,
        "SELECT count(DISTINCT tablename) FROM pg_stats WHERE schemaname = current_schema()"
        " AND tablename IN ('stored_events', 'bodies', 'streams')",
    )
    assert known == [(3,)]


def pieces(store: SessionStore) -> int:
    """Of how many pieces the index of words is made."""
    return int(
        store.read_models.file.fetch_rows("SELECT count(DISTINCT segid) FROM blocks_fts_idx")[0][0]
    )


def test_the_index_of_words_is_merged_and_finds_the_same(
    store: SessionStore, clock: StillClock, make: Make
) -> None:
    for number in range(12):
        tell(store, number, number + 1)
        store.read_models.catch_up()
    before, rows = pieces(store), rows_of(store.read_models)
    found = store.search("said")
    assert before >= 8

    report = of("read-models", make().run_due(clock.now))

    assert report.outcome is DONE
    assert pieces(store) < before / 2
    assert store.search("said") == found
    after = rows_of(store.read_models)
    assert {name: after[name] for name in rows} == rows
    assert after.keys() - rows.keys() == {"chores", "sqlite_stat1", "sqlite_stat4"} & after.keys()
    (integrity,) = store.read_models.file.fetch_rows("PRAGMA integrity_check")
    assert integrity == ("ok",)


def test_merging_stops_between_two_steps(
    store: SessionStore, clock: StillClock, make: Make
) -> None:
    for number in range(12):
        tell(store, number, number + 1)
        store.read_models.catch_up()
    asked_so_far = 0

    def go_on() -> bool:
        nonlocal asked_so_far
        asked_so_far += 1
        return asked_so_far < 3  # before the chore, and before its first step

    report = of("read-models", make(cold_after=None).run_due(clock.now, go_on))

    assert report.outcome is TaskOutcome.STOPPED
    chores = make(cold_after=None)
    assert of("read-models", chores.run_due(clock.now)).outcome is DONE


def test_read_models_are_written_anew_when_much_of_them_is_free(
    store: SessionStore, clock: StillClock, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    tell(store, 0, 20)
    models = store.read_models
    models.catch_up()
    path = Path(models.name)

    def padded(bytes_: int) -> None:
        with models.file.transaction() as db:
            db.execute("CREATE TABLE padding (content)")
            db.execute("INSERT INTO padding VALUES (zeroblob(?))", (bytes_,))
        with models.file.transaction() as db:
            db.execute("DROP TABLE padding")

    padded(900_000)
    chores = make()
    assert of("read-models", chores.run_due(clock.now)).saved == 0

    padded(3_000_000)
    found = store.search("said")
    with monkeypatch.context() as patch:
        patch.setattr(read_model_maintenance, "MAX_REWRITTEN_FILE_BYTES", 10_000)
        report = of("read-models", chores.run_due(clock.advance(days=1)))
    assert (report.outcome, report.saved) == (DONE, 0)
    assert "are free: they are used as it grows" in str(report.reason)
    report = of("read-models", chores.run_due(clock.advance(days=1)))

    assert report.saved > 2_900_000
    assert path.stat().st_size < 2_000_000
    assert store.search("said") == found
    tell(store, 20, 21)
    assert len(store.search("said", limit=99)) == 21


def test_where_there_are_no_read_models_none_are_made(database: str, clock: StillClock) -> None:
    with cutbank.open(database, clock=clock) as store:
        store.session("a session").append(Block.user("words"))
        chores = Maintenance(store, MaintenanceSettings(rest=0.0), clock)

        reports = chores.run_due(clock.now)

        assert "read-models" not in {report.chore for report in reports}
        assert "read-models" not in {status.chore for status in chores.read_status()}
        next_at = chores.find_next_time()
        assert next_at
        assert next_at > clock.now


def test_a_file_that_holds_no_read_models_is_left_alone(
    database: str, tmp_path: Path, clock: StillClock
) -> None:
    path = tmp_path / "test.read.db"
    with closing(path) as connection:
        connection.execute("CREATE TABLE mine (a)")
    for content in (path.read_bytes(), b"", b"no database at all " * 99):
        path.write_bytes(content)
        with cutbank.open(database, clock=clock) as store:
            tell(store, 0, 1)
            Maintenance(store, MaintenanceSettings(rest=0.0), clock).run_due(clock.advance(days=1))

        assert path.read_bytes() == content
