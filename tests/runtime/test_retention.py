"""What is older than the settings keep is erased, and nothing else is."""

from pathlib import Path

import pytest
from clock import Clock
from databases import each_database

from cutbank import (
    Block,
    IdleRules,
    InvalidSettingError,
    RetentionSettings,
    SessionStore,
    Settings,
    load_settings,
    run_maintenance,
    verify,
)
from cutbank.adapters.runtime.idle.idle_worker import IdleWorker
from cutbank.adapters.runtime.idle.notices import NoticeKind, WorkerNotice
from cutbank.adapters.runtime.maintenance import Retention


def keep(store: SessionStore, age: str | None, **namespaces: str) -> None:
    retention = RetentionSettings(keep=age, namespaces=namespaces)
    store.apply_settings(Settings(retention=retention))


def talk(store: SessionStore, key: str, namespace: str = "default") -> None:
    store.session(key, namespace=namespace).append(Block.user(f"planted {key}"))


def names(store: SessionStore) -> list[str]:
    return [session.key for session in store.sessions()]


@each_database
def test_what_is_older_is_erased_and_nothing_else(store: SessionStore, clock: Clock) -> None:
    for key in ("old", "deleted", "revived"):
        talk(store, key)
    talk(store, "for ever", "contracts")
    talk(store, "short", "scratch")
    store.delete("deleted")
    clock.advance(days=20)
    talk(store, "revived")
    talk(store, "new")
    keep(store, "30 days", contracts="none", scratch="2 weeks")
    assert store.apply_retention(dry_run=True).sessions == [("scratch", "short")]
    clock.advance(days=10)

    would = store.apply_retention(dry_run=True)
    assert len(store.sessions()) == 5
    done = store.apply_retention(by="the test")

    gone = [("default", "deleted"), ("default", "old"), ("scratch", "short")]
    assert (would.sessions, done.sessions) == (gone, gone)
    assert (would.content.events, done.content.events) == (0, 9)
    assert names(store) == ["for ever", "new", "revived"]
    assert store.apply_retention().sessions == []
    assert verify(store).violations == []


@each_database
def test_a_younger_fork_keeps_what_it_shares(store: SessionStore, clock: Clock) -> None:
    talk(store, "old")
    clock.advance(days=20)
    store.session("old").fork("fork")
    keep(store, "10 days")

    report = store.apply_retention()

    assert (report.sessions, report.kept_for_forks) == ([], [("default", "old")])
    clock.advance(days=10)
    assert store.apply_retention().sessions == [("default", "fork"), ("default", "old")]


def test_a_worker_erases_in_idle_hours(store: SessionStore, clock: Clock) -> None:
    talk(store, "old")
    keep(store, "1 day")
    heard: list[WorkerNotice] = []
    worker = IdleWorker(store, IdleRules(), listeners=[heard.append], retention=Retention(store))
    worker.look()
    worker.wait()
    assert names(store) == ["old"]

    clock.advance(days=1)
    worker.look()
    worker.wait()

    worker.stop()
    (done,) = [notice for notice in heard if notice.about is NoticeKind.CHORE_DONE]
    assert (done.chore, names(store)) == ("retention", [])
    assert run_maintenance(store) == []


def test_without_a_setting_all_is_kept(store: SessionStore, clock: Clock) -> None:
    talk(store, "old")
    clock.advance(days=100_000)

    assert store.apply_retention().sessions == []
    assert Retention(store).find_next_time() is None


@pytest.mark.parametrize("age", ["180", "many days", "0 days", "-1 days", "3 fortnights", ""])
def test_an_age_is_a_number_and_a_unit(age: str) -> None:
    with pytest.raises(ValueError, match="write it as 180 days, 26 weeks or 12 hours"):
        RetentionSettings(namespaces={"default": age})


def test_a_wrong_age_is_named_in_one_line(tmp_path: Path) -> None:
    file = tmp_path / "settings.toml"
    file.write_text('[retention]\nkeep = "some days"\n')

    with pytest.raises(InvalidSettingError, match=r"retention\.keep is \"some days\"; write it as"):
        load_settings(file)
