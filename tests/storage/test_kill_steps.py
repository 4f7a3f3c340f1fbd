"""A process that is killed at any named step leaves what was acknowledged, and the next goes on."""

import os
import shutil
from pathlib import Path

import pytest
import victims
from acknowledged import Acknowledged
from faulty import closing
from kill_steps import ANY, COMMITTED
from processes import Processes
from read_model_rows import rows_of
from transcripts import import_path

import cutbank
from cutbank import Block, CompactionOptions, verify
from cutbank.adapters.interfaces.commands.demo import write_sample
from cutbank.adapters.storage.databases import sqlite_schema
from cutbank.adapters.storage.read_models.read_models import ReadModels

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="kills processes as POSIX does")

GOLDEN = Path(__file__).parent / "golden"
APPENDS = ["append", "turn", "batch", "import", "boundary", "activate", "extend"]
OPERATIONS = ["open", *APPENDS, "projection", "migrate", "erase", "close"]
MOST = 12
"""Kills for an operation that has more steps."""
NAMED = {
    "append: committed, and not acknowledged": ("append", COMMITTED),
    "turn: before BEGIN": ("turn", r"^BEGIN"),
    "turn: after INSERT, before COMMIT": ("turn", r"^COMMIT"),
    "turn: committed, and not acknowledged": ("turn", COMMITTED),
    "batch: between two of its writes": ("batch", r"^INSERT INTO records"),
    "batch: before COMMIT": ("batch", r"^COMMIT"),
    "import: inside a batch": ("import", r"^INSERT INTO imports"),
    "import: a batch is committed": ("import", COMMITTED),
    "boundary: before COMMIT": ("boundary", r"^COMMIT"),
    "boundary: committed, and not acknowledged": ("boundary", COMMITTED),
    "activation: committed, and not acknowledged": ("activate", COMMITTED),
    "swap: committed, and not extended": ("extend", COMMITTED),
    "projection: before a batch": ("projection", r"^BEGIN"),
    "projection: before COMMIT": ("projection", r"^COMMIT"),
    "migration: before it begins": ("migrate", r"^BEGIN"),
    "migration: the new table is full": ("migrate", r"^DROP TABLE"),
    "migration: before COMMIT": ("migrate", r"^COMMIT"),
    "erasure: before it is recorded": ("erase", r"^DELETE FROM streams"),
    "erasure: recorded, and not begun": ("erase", r"^UPDATE stored_events"),
    "erasure: before COMMIT": ("erase", r"^UPDATE deleted_streams SET segments"),
    "erasure: the pages still hold it": ("erase", r"^VACUUM"),
    "erasure: the log still holds it": ("erase", r"wal_checkpoint"),
    "erasure: done, and not said to be": ("erase", r"^UPDATE deleted_streams SET erased"),
    "use: before the log is begun": ("turn", r"journal_mode = WAL"),
    "use: the log is begun": ("turn", r"^PRAGMA schema_version"),
}


class Ground:
    """A database with a history, made once and copied for each kill."""

    def __init__(self, folder: Path, run: Processes, server: str | None = None) -> None:
        self.folder, self.run, self.server = folder, run, server
        self.acknowledged = Acknowledged()
        self.made = folder / "made.db"
        self.tell(str(self.made))
        self.transcript = folder / "5e551011-0000-4000-8000-000000000000.jsonl"
        write_sample(self.transcript)
        self.old = folder / "old.db"
        with closing(self.old) as connection:
            connection.executescript((GOLDEN / "v1.sql").read_text(encoding="utf-8"))

    def tell(self, address: str) -> None:
        with cutbank.open(address) as store:
            session = store.session("session")
            for number in range(12):
                for part, blocks in enumerate(victims.turn(number)):
                    done = session.append(*blocks, key=f"{number}.{part}")
                    self.acknowledged.appends[number, part] = (done.first, done.last)

    def fresh(self, what: str) -> str:
        if self.server:
            self.tell(self.server)
            return self.server
        path = self.folder / "log.db"
        for file in self.folder.glob("log.*"):
            file.unlink()
        shutil.copy(self.old if what == "migrate" else self.made, path)
        if what != "migrate":
            cutbank.open(path).close()  # so that it knows its new file
        return str(path)

    def steps(self, what: str) -> int:
        """How many statements the operation runs."""
        ended = self.run.killed_at(ANY, 0, "counted", what, self.fresh(what), 12, self.transcript)
        assert ended.codes == [0], ended
        ((count,),) = ended.told("steps")
        return int(count)

    def kill(self, what: str, pattern: str, nth: int) -> bool:
        """Kill one operation at one step, check what is there, and do it again."""
        path = self.fresh(what)
        ended = self.run.killed_at(pattern, nth, "steps", what, path, 12, self.transcript)
        assert ended.was_killed or ended.codes == [0], ended
        if what == "migrate":
            self.check_migrated(path)
        else:
            acknowledged = Acknowledged()
            acknowledged.appends |= self.acknowledged.appends
            acknowledged.take(ended)
            with cutbank.open(path) as store:
                self.check(store, what, acknowledged, ended.told("note"))
        if what == "erase":
            for file in self.folder.glob("log*"):
                assert b"planted" not in file.read_bytes(), file
        assert not list(self.folder.glob("log.db-wal"))
        return ended.was_killed

    def check(
        self,
        store: cutbank.SessionStore,
        what: str,
        acknowledged: Acknowledged,
        notes: list[list[str]],
    ) -> None:
        session = store.session("session")
        said = session.recall(search="note 12")
        assert len(said) <= 1
        assert [f"{block.position}" for block in said][: len(notes)] == [at for _, at in notes]
        if not said:
            acknowledged.check(store)
        acknowledged.check_boundaries(session)
        assert verify(store).violations == []
        match what:
            case "append":
                assert session.append(Block.note("after")).last == session.position
            case "batch":
                other = store.sessions(prefix="other")
                assert len(said) == len(other) == len(list(session.records.newest()))
                assert all(len(one.recall(search="")) == 2 for one in other)
                assert session.append(Block.note("after")).last == session.position
            case "turn" | "close":
                for part, blocks in enumerate(victims.turn(12)):
                    session.append(*blocks, key=f"12.{part}")
                assert len(session.recall(search="12 is done")) == 1
            case "boundary" | "activate":
                options = CompactionOptions(idempotency_key="compaction 12")
                one, same = (
                    session.compact(victims.POLICY, limit=victims.LIMIT, options=options).boundary
                    for _ in range(2)
                )
                assert one == same
                if session.view().boundary is None:  # prepared, and not activated
                    assert session.activate() == one
                view = session.view()
                assert view.boundary
                assert view.boundary.originator_version == one
            case "extend":
                # Whatever was served then, the next request goes on from it.
                session.append(Block.assistant("done"), Block.user("next"))
                loop = session.loop(policy=victims.POLICY, limit=victims.LIMIT)
                view = loop.prepare()
                assert view.boundary
                assert view.tokens < victims.LIMIT
                assert session.log.find_prepared() is None
                assert view == loop.prepare()
            case "projection":
                whole = ReadModels(store.events, str(self.folder / "log.whole.db"))
                whole.catch_up()
                store.read_models.catch_up()
                assert store.read_models.rebuild_reason is None
                assert rows_of(store.read_models) == rows_of(whole)
                whole.close()
            case "erase":
                _check_erased(store)
            case "import":
                (completed,), (repeated,) = (import_path(store, self.transcript) for _ in range(2))
                assert (completed.complete, repeated.added) == (True, 0)
        assert verify(store).violations == []

    def check_migrated(self, path: str) -> None:
        """It is of the old format or of the new one, and then of the new one."""
        with closing(Path(path)) as connection:
            version = sqlite_schema.read_version(connection)
            names = {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}
            (events,) = connection.execute("SELECT count(*) FROM stored_events").fetchone()
        assert version in {1, sqlite_schema.SCHEMA_VERSION}
        assert ("home" in names) == (version == sqlite_schema.SCHEMA_VERSION)
        assert "log" not in names
        with cutbank.open(path) as store:
            assert store.events.recorder.max_notification_id() == events
            store.session("story two").append(Block.user("and on it goes"))
            assert verify(store).violations == []


def _check_erased(store: cutbank.SessionStore) -> None:
    """Either nothing was done, or all of it is by now."""
    if "gone" in [session.key for session in store.sessions()]:
        assert len(store.search("planted", limit=99)) == 31
        store.erase("gone")
    recorder = store.events.recorder
    assert not recorder.has_unfinished_erasure()
    assert store.search("planted") == []
    for stream in recorder.select_deleted():
        rows = recorder.select_events(stream.originator_id)
        assert not [row for row in rows if b"planted" in row.state]


@pytest.fixture(scope="module")
def ground(tmp_path_factory: pytest.TempPathFactory, run: Processes) -> Ground:
    return Ground(tmp_path_factory.mktemp("ground"), run)


@pytest.mark.slow
@pytest.mark.parametrize("step", NAMED)
def test_a_kill_at_a_named_step_loses_nothing(ground: Ground, step: str) -> None:
    assert ground.kill(*NAMED[step], 1)


@pytest.mark.slow
@pytest.mark.parametrize("pattern", [COMMITTED, r"INSERT INTO stored_events"])
@pytest.mark.parametrize("what", APPENDS)
def test_a_kill_at_the_one_statement_of_an_append_to_a_server_loses_nothing(
    tmp_path: Path, run: Processes, postgres_database: str, what: str, pattern: str
) -> None:
    assert Ground(tmp_path, run, postgres_database).kill(what, pattern, 1)


@pytest.mark.slow
@pytest.mark.parametrize(
    "pattern", ["^DELETE FROM streams", "^LOCK TABLE", "^DELETE FROM append_keys", "^VACUUM"]
)
def test_a_kill_during_an_erasure_on_a_server_is_made_up_for(
    tmp_path: Path, run: Processes, postgres_database: str, pattern: str
) -> None:
    assert Ground(tmp_path, run, postgres_database).kill("erase", pattern, 1)


@pytest.mark.slow
@pytest.mark.parametrize("what", OPERATIONS)
def test_a_kill_before_any_statement_of_an_operation_loses_nothing(
    ground: Ground, what: str
) -> None:
    steps = ground.steps(what)
    spread = sorted({1 + number * (steps - 1) // (MOST - 1) for number in range(MOST)})

    kills = [ground.kill(what, ANY, step) for step in spread]

    assert all(kills[:-1])  # at the very end, the last step of all may be another one
    assert len(kills) >= 3
