"""Settings that are changed while a worker runs hold from its next look on, or are refused."""

import os
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path

import pytest
from resting import RULES, SetClock, Told, pass_time, talk

import cutbank
from cutbank import Block, SessionStore
from cutbank.adapters.runtime.idle.idle_worker import IdleWorker
from cutbank.adapters.runtime.idle.notices import NoticeKind
from cutbank.adapters.runtime.idle.settings_watch import SETTLE_TIME
from cutbank.domain.idle_rules import IdleRules

GOOD = "[idle]\ntime = 300\nleast_utilization = 0.05\n"


@dataclass
class Watched:
    """A store whose settings stand in a file, and a worker on it."""

    file: Path
    store: SessionStore
    clock: SetClock
    told: Told
    workers: list[IdleWorker] = field(default_factory=list)

    def works(self, rules: IdleRules | None = None) -> IdleWorker:
        self.workers.append(IdleWorker(self.store, rules, listeners=[self.told]))
        return self.workers[-1]

    def say(self, text: str) -> None:
        self.file.write_text(text, encoding="utf-8")

    def look(self) -> None:
        """As the worker wants it: at a change twice."""
        for _ in range(2):
            self.workers[-1].look()
            pass_time(self.clock, SETTLE_TIME.total_seconds())

    @property
    def refused(self) -> list[str | None]:
        return [notice.reason for notice in self.told.about(NoticeKind.SETTINGS_REFUSED)]

    @property
    def reloaded(self) -> list[str | None]:
        return [notice.reason for notice in self.told.about(NoticeKind.SETTINGS_RELOADED)]


@pytest.fixture
def watched(tmp_path: Path, database: str, clock: SetClock, told: Told) -> Iterator[Watched]:
    file = tmp_path / "settings.toml"
    file.write_text(GOOD, encoding="utf-8")
    with cutbank.open(database, clock=clock, settings=file) as store:
        watched = Watched(file, store, clock, told)
        yield watched
        for worker in watched.workers:
            worker.stop()


def test_what_is_changed_holds_from_the_next_look_on(watched: Watched) -> None:
    session = watched.store.session("s")
    talk(session)
    worker = watched.works()
    watched.look()
    assert watched.reloaded == []

    watched.say(GOOD.replace("300", "60"))
    watched.look()

    assert watched.reloaded == ["idle.time: 300 -> 60"]
    assert worker.rules.idle_time_s == 60
    pass_time(watched.clock, 60)
    worker.look()
    assert worker.wait()
    assert watched.told.keys(NoticeKind.DONE) == ["s"]


def test_a_file_that_is_being_written_is_read_when_it_stays_as_it_is(watched: Watched) -> None:
    worker = watched.works()
    worker.look()

    for half in ("", "[id", "[idle]\ntime = 1"):
        watched.say(half)
        again = worker.look()
        assert again <= watched.clock.now + SETTLE_TIME
    watched.say(GOOD.replace("300", "100"))
    watched.look()

    assert watched.refused == []
    assert watched.reloaded == ["idle.time: 300 -> 100"]


def test_settings_that_are_wrong_are_refused_as_a_whole_and_once(watched: Watched) -> None:
    worker = watched.works()
    before = watched.store.settings

    watched.say("[idle]\ntime = 10\nleast_utilization = 2\nattemts = 1\n")
    for _ in range(3):
        watched.look()

    (reason,) = watched.refused
    assert reason is not None
    assert f"{watched.file}:3: idle.least_utilization is 2; it takes" in reason
    assert f"{watched.file}:4: idle.attemts is no setting; did you mean attempts?" in reason
    assert "\n" not in reason
    assert watched.store.settings is before
    assert worker.rules.idle_time_s == 300

    watched.say(GOOD)
    watched.look()
    assert watched.reloaded == ["they are what they were"]


def test_whatever_becomes_of_the_file_the_settings_stay(
    watched: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker = watched.works()
    watched.look()

    def stays() -> None:
        known = len(watched.refused)
        for _ in range(3):
            watched.look()
        (reason,) = watched.refused[known:]
        assert str(watched.file) in str(reason)
        assert worker.rules.idle_time_s == 300

    watched.file.unlink()
    stays()
    watched.file.mkdir()
    stays()
    watched.file.rmdir()
    watched.file.write_bytes(b"[idle]\n# \xff\n")
    stays()
    with monkeypatch.context() as patch:
        # Whoever runs the tests may be allowed to read everything.
        forbidden = PermissionError(13, "Permission denied")
        patch.setattr(Path, "read_bytes", lambda _: (_ for _ in ()).throw(forbidden))
        watched.say(GOOD.replace("300", "200"))
        stays()
    watched.say(GOOD.replace("300", "2000"))
    watched.look()
    assert watched.reloaded == ["idle.time: 300 -> 2000"]


def test_a_file_that_takes_the_place_of_another_with_the_same_times_is_seen(
    watched: Watched,
) -> None:
    watched.works()
    watched.look()
    old = watched.file.stat()

    other = watched.file.with_name("other.toml")
    other.write_text(GOOD.replace("300", "301"), encoding="utf-8")
    os.utime(other, ns=(old.st_atime_ns, old.st_mtime_ns))
    assert other.stat().st_size == old.st_size
    other.replace(watched.file)
    watched.look()

    assert watched.reloaded == ["idle.time: 300 -> 301"]


def test_a_worker_with_rules_of_its_own_keeps_them(watched: Watched) -> None:
    worker = watched.works(replace(RULES, idle_time_s=77))
    watched.look()

    watched.say("[idle]\ntime = 5\n[compaction]\nlimit = 9000\n")
    watched.look()

    assert worker.rules.idle_time_s == 77
    assert watched.store.settings.compaction.limit == 9_000
    (limit,) = watched.store.read_models.file.fetch_rows(
        "SELECT value FROM settings WHERE name = 'context_limit'"
    )[0]
    assert limit == 9_000


def test_hooks_counter_and_loops_that_are_made_next_are_by_the_new_settings(
    watched: Watched,
) -> None:
    store = watched.store
    session = store.session("s")
    session.append(Block.user("hello"))
    before = session.loop(model="claude-sonnet-4-6")
    watched.works()
    watched.look()
    estimated = store.events.tally

    watched.say(
        GOOD
        + '[tokens]\ncounter = "o200k_base"\n[compaction]\nlimit = 5000\n'
        + '[[hooks.commands]]\non = ["failed"]\ncommand = ["true"]\n'
    )
    watched.look()

    assert watched.refused == []
    assert store.events.tally is not estimated
    assert len(store.context.listeners) == 1
    assert before.request.limit > 5_000
    assert session.loop(model="claude-sonnet-4-6").request.limit == 5_000

    watched.say(GOOD)
    watched.look()
    assert store.events.tally.is_estimate
    assert store.context.listeners == []


def test_a_database_that_is_away_while_rules_change_gets_them_when_it_is_back(
    watched: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker = watched.works()
    watched.look()
    watched.say(GOOD.replace("300", "30"))

    def away(**_: float) -> None:
        raise cutbank.domain.errors.StorageError("the disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(watched.store.read_models, "change_settings", away)
        watched.look()
    assert watched.reloaded == []
    pass_time(watched.clock, timedelta(minutes=1).total_seconds())
    watched.look()

    assert watched.reloaded == ["idle.time: 300 -> 30"]
    assert worker.rules.idle_time_s == 30


def test_one_file_may_appear_where_settings_usually_are(
    database: str, clock: SetClock, told: Told, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    with cutbank.open(database, clock=clock) as store:
        watched = Watched(tmp_path / "config" / "cutbank" / "settings.toml", store, clock, told)
        worker = watched.works()
        watched.look()
        assert watched.refused == watched.reloaded == []
        assert worker.look() > clock.now + SETTLE_TIME
        worker.reload()
        worker.look()
        assert watched.reloaded == ["they are what they were"]

        watched.file.parent.mkdir(parents=True)
        watched.say("[idle]\ntime = 7\n")
        watched.look()

        assert watched.reloaded[1:] == ["idle.time: 300 -> 7"]
        worker.stop()
