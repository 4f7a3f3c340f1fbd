"""What the settings say counts wherever a call does not say otherwise."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from threading import Event

import pytest
from agent_talk import full
from opened_stores import store_of

import cutbank
from cutbank import Block, CompactionOptions, InvalidSettingError
from cutbank.adapters.settings import load_settings
from cutbank.adapters.settings.settings import Settings

Settled = Callable[[str], cutbank.StoredSession]


@pytest.fixture
def settled(tmp_path: Path) -> Iterator[Settled]:
    """A session of forty turns, in a store that goes by these settings."""
    with ExitStack() as closing:

        def opens(text: str) -> cutbank.StoredSession:
            file = tmp_path / "ours.toml"
            file.write_text(text)
            store = closing.enter_context(cutbank.open(tmp_path / "log.db", settings=file))
            return full(store.session("s"))

        yield opens


def test_a_file_says_when_and_how_sessions_are_compacted(settled: Settled) -> None:
    session = settled(
        "[compaction]\nlimit = 6_000\nsettings = {keep_tokens = 500}\n"
        "[pins]\nfirst_prompt = false\n"
    )

    assert cutbank.measure_context(session).in_use.share == session.view().tokens / 6_000
    view = session.loop().prepare()

    assert view.boundary is not None
    assert sum(entry.tokens for entry in view.entries) < 1_000
    assert not any(entry.is_pinned for entry in view.entries)


def test_what_a_call_says_goes_before_the_file(settled: Settled) -> None:
    session = settled("[compaction]\nlimit = 6_000\n")

    assert session.loop(limit=100_000).prepare().boundary is None


def test_a_call_may_set_the_policy_that_the_file_names(settled: Settled) -> None:
    session = settled(
        '[compaction]\npolicy = "tunacode"\nsettings = {reserve_tokens = 1_000}\nlimit = 9_000\n'
    )

    outcome = session.compact(
        options=CompactionOptions(settings={"keep_recent_tokens": 500}, dry_run=True)
    )

    assert outcome.policy == "retention-window"
    assert outcome.explanation is not None
    assert outcome.explanation.due.threshold == 9_000 - 1_000 - 500 + 1
    with pytest.raises(InvalidSettingError, match="retention-window has no setting 'keep_to"):
        session.compact(options=CompactionOptions(settings={"keep_tokens": 500}))


def test_tokens_are_counted_as_the_settings_say(settled: Settled) -> None:
    session = store_of(settled('[tokens]\ncounter = "o200k_base"\n')).session("another")
    session.append(Block.user("a" * 400))  # a run of one letter is far less than 100 tokens
    order = session.loop(limit=8_000).request

    assert session.log.compactor().take_snapshot(order).window.tokens < 80


def test_a_mistake_is_said_when_the_first_compaction_asks(settled: Settled) -> None:
    session = settled("[compaction]\nlimit = 'much'\n")

    with pytest.raises(InvalidSettingError, match=r"ours\.toml: compaction\.limit"):
        session.loop()
    assert session.view().boundary is None


def test_a_fork_waits_until_the_settings_are_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, ended, load = Event(), Event(), load_settings.load_settings

    def load_held(given: str | Path | None) -> Settings:
        begun.set()
        ended.wait()
        return load(given)

    monkeypatch.setattr(load_settings, "load_settings", load_held)
    with cutbank.open(tmp_path / "log.db") as store, ThreadPoolExecutor(1) as thread:
        locks = list(store.context.locks())
        loaded = thread.submit(lambda: store.settings)
        begun.wait()
        is_waited_for = any(lock.locked() for lock in locks)
        ended.set()

        assert is_waited_for
        assert loaded.result() is store.settings
        assert not any(lock.locked() for lock in locks)
