"""Settings that are changed while a worker runs hold from its next look on, or are refused."""

import os
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from threading import Event

import pytest
from resting import RULES, SetClock, Told, pass_time, talk

import cutbank
from cutbank import Block, SessionStore
from cutbank.adapters.runtime.idle.idle_worker import IdleWorker
from cutbank.adapters.runtime.idle.notices import About
from cutbank.adapters.runtime.idle.settings_watch import SETTLING
from cutbank.domain.errors import InvalidSettingError, NotFoundError
from cutbank.domain.hooks import Happening
from cutbank.domain.idle_rules import IdleRules

GOOD = "[idle]\ntime = 300\nleast_utilisation = 0.05\n"
pytestmark = pytest.mark.parametrize("engine", ["sqlite"])


@dataclass
class Watched:
    """A store whose settings stand in a file, and a worker on it."""

    file: Path
    store: SessionStore
    clock: SetClock
    told: Told
    workers: list[IdleWorker] = field(default_factory=list)

    def works(self, rules: IdleRules | None = None) -> IdleWorker:
        self.workers.append(IdleWorker(self.store, rules, heard=[self.told]))
        return self.workers[-1]

    def say(self, text: str) -> None:
        self.file.write_text(text, encoding="utf-8")

    def look(self) -> None:
        """As the worker wants it: at a change twice."""
        for _ in range(2):
            self.workers[-1].look()
            pass_time(self.clock, SETTLING.total_seconds())

    @property
    def refused(self) -> list[str | None]:
        return [notice.reason for notice in self.told.about(About.SETTINGS_REFUSED)]

    @property
    def reloaded(self) -> list[str | None]:
        return [notice.reason for notice in self.told.about(About.SETTINGS_RELOADED)]


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
    assert watched.told.keys(About.DONE) == ["s"]


def test_a_file_that_is_being_written_is_read_when_it_stays_as_it_is(watched: Watched) -> None:
    worker = watched.works()
    worker.look()

    for half in ("", "[id", "[idle]\ntime = 1"):
        watched.say(half)
        again = worker.look()
        assert again <= watched.clock.now + SETTLING
    watched.say(GOOD.replace("300", "100"))
    watched.look()

    assert watched.refused == []
    assert watched.reloaded == ["idle.time: 300 -> 100"]


def test_settings_that_are_wrong_are_refused_as_a_whole_and_once(watched: Watched) -> None:
    worker = watched.works()
    before = watched.store.settings

    watched.say("[idle]\ntime = 10\nleast_utilisation = 2\nattemts = 1\n")
    for _ in range(3):
        watched.look()

    (reason,) = watched.refused
    assert reason is not None
    assert f"{watched.file}:3: idle.least_utilisation is 2; it takes" in reason
    assert f"{watched.file}:4: idle.attemts is no setting; did you mean attempts?" in reason
    assert "\n" not in reason
    assert watched.store.settings is before
    assert worker.rules.idle_time_s == 300

    watched.say(GOOD)
    watched.look()
    assert watched.reloaded == ["they are what they were"]


def test_a_file_that_was_changed_before_the_worker_looked_first_is_read(watched: Watched) -> None:
    assert watched.store.settings.idle.time == 300
    watched.say(GOOD.replace("300", "30"))

    worker = watched.works()
    worker.look()

    assert worker.rules.idle_time_s == 30


@pytest.mark.parametrize("what", ["deleted", "a folder", "no UTF-8", "unreadable"])
def test_whatever_becomes_of_the_file_the_settings_stay(
    watched: Watched, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker = watched.works()
    watched.look()
    match what:
        case "deleted":
            watched.file.unlink()
        case "a folder":
            watched.file.unlink()
            watched.file.mkdir()
        case "no UTF-8":
            watched.file.write_bytes(b"[idle]\n# \xff\n")
        case _:
            watched.file.chmod(0o200)
            # Whoever runs the tests may be allowed to read everything.
            forbidden = PermissionError(13, "Permission denied")
            monkeypatch.setattr(Path, "read_bytes", lambda _: (_ for _ in ()).throw(forbidden))

    for _ in range(3):
        watched.look()

    (reason,) = watched.refused
    assert str(watched.file) in str(reason)
    assert worker.rules.idle_time_s == 300
    monkeypatch.undo()
    if watched.file.is_dir():
        watched.file.rmdir()
    watched.say(GOOD.replace("300", "200"))
    watched.look()
    assert watched.reloaded == ["idle.time: 300 -> 200"]


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


def test_who_asks_for_it_is_answered_at_once_changed_or_not(watched: Watched) -> None:
    worker = watched.works()
    worker.look()
    asked: list[str] = []
    worker.on_free = lambda: asked.append("look")

    worker.reload()
    worker.look()
    watched.say("[idle]\ntime = 50\n")
    worker.reload()
    worker.look()

    assert asked == ["look", "look"]
    assert watched.reloaded == [
        "they are what they were",
        "idle.time: 300 -> 50; idle.least_utilisation: 0.05 -> 0.5",
    ]


def test_a_worker_with_rules_of_its_own_keeps_them(watched: Watched) -> None:
    worker = watched.works(replace(RULES, idle_time_s=77))
    watched.look()

    watched.say("[idle]\ntime = 5\n[compaction]\nlimit = 9000\n")
    watched.look()

    assert worker.rules.idle_time_s == 77
    assert watched.store.settings.compaction.limit == 9_000
    (limit,) = watched.store.read_models.file.rows(
        "SELECT value FROM settings WHERE name = 'context_limit'"
    )[0]
    assert limit == 9_000


def test_what_was_begun_is_finished_by_the_settings_it_was_begun_by(watched: Watched) -> None:
    for key in ("begun before", "begun after"):
        talk(watched.store.session(key))
    is_asked, may_go_on = Event(), Event()

    def hold(happening: Happening) -> None:
        if happening.session == "begun before":
            is_asked.set()
            assert may_go_on.wait(60)

    watched.store.listeners.append(hold)
    watched.say(GOOD + "concurrency = 1\n")
    worker = watched.works()
    worker.look()
    pass_time(watched.clock, 300)
    worker.look()
    assert is_asked.wait(60)

    watched.say(GOOD + "[compaction.settings]\nkeep_tokens = 4000\n")
    try:
        watched.look()
        assert len(watched.reloaded) == 1
    finally:
        may_go_on.set()
    assert worker.wait(60)
    watched.look()
    assert worker.wait(60)

    tokens = {notice.session: notice.post_tokens for notice in watched.told.about(About.DONE)}
    assert (tokens["begun before"] or 0) > 20_000
    assert (tokens["begun after"] or 0) < 12_000


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
    assert len(store.all_listeners) == 1
    assert before.order.limit > 5_000
    assert session.loop(model="claude-sonnet-4-6").order.limit == 5_000

    watched.say(GOOD)
    watched.look()
    assert store.events.tally.is_estimate
    assert store.all_listeners == []


def test_a_vocabulary_that_is_not_there_is_refused_with_all_the_rest(
    watched: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker = watched.works()
    watched.look()

    def missing(_: str) -> None:
        raise NotFoundError("the vocabulary o200k_base is not on this machine")

    monkeypatch.setattr("cutbank.adapters.models.counters.encoding", missing)
    watched.say(GOOD.replace("300", "30") + '[tokens]\ncounter = "o200k_base"\n')
    watched.look()

    assert watched.refused == ["the vocabulary o200k_base is not on this machine"]
    assert worker.rules.idle_time_s == 300
    assert watched.store.settings.idle.time == 300


def test_settings_that_were_given_as_a_value_have_no_file_to_look_at(
    store: SessionStore, told: Told
) -> None:
    worker = IdleWorker(store, heard=[told])

    worker.reload()
    worker.look()

    assert store.settings_file is None
    assert told.about(About.SETTINGS_RELOADED, About.SETTINGS_REFUSED) == []
    worker.stop()


def test_a_database_that_is_away_while_rules_change_gets_them_when_it_is_back(
    watched: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker = watched.works()
    watched.look()
    watched.say(GOOD.replace("300", "30"))

    def away(**_: float) -> None:
        raise cutbank.domain.errors.StorageError("the disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(watched.store.read_models, "reckon_by", away)
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
        assert worker.look() > clock.now + SETTLING
        worker.reload()
        worker.look()
        assert watched.reloaded == ["they are what they were"]

        watched.file.parent.mkdir(parents=True)
        watched.say("[idle]\ntime = 7\n")
        watched.look()

        assert watched.reloaded[1:] == ["idle.time: 300 -> 7"]
        worker.stop()


def test_a_look_that_finds_nothing_new_reads_nothing(
    watched: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker = watched.works()
    watched.look()

    def read(*_: object) -> None:
        raise InvalidSettingError("it was read")

    monkeypatch.setattr(watched.store, "read_settings", read)
    for _ in range(5):
        worker.look()

    assert watched.refused == []
