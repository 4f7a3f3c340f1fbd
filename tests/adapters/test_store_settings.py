"""What the settings say counts wherever a call does not say otherwise."""

from pathlib import Path

import pytest

import cutbank
from cutbank import Block
from cutbank.domain.errors import CompactionVetoedError, InvalidSettingError


def filled(store: cutbank.SessionStore) -> cutbank.StoredSession:
    session = store.session("s")
    for turn in range(40):
        session.append(Block.user(f"question {turn} " + "q" * 400))
        session.append(Block.assistant(f"answer {turn} " + "a" * 400))
    return session


def test_a_file_says_when_and_how_sessions_are_compacted(database: str, tmp_path: Path) -> None:
    file = tmp_path / "ours.toml"
    file.write_text(
        "[compaction]\nlimit = 6_000\nsettings = {keep_tokens = 500}\n"
        "[pins]\nfirst_prompt = false\n"
    )

    with cutbank.open(database, settings=file) as store:
        view = filled(store).loop().prepare()

    assert view.boundary is not None
    assert sum(entry.tokens for entry in view.entries) < 1_000
    assert not any(entry.is_pinned for entry in view.entries)


def test_what_a_call_says_goes_before_the_file(database: str, tmp_path: Path) -> None:
    file = tmp_path / "ours.toml"
    file.write_text("[compaction]\nlimit = 6_000\n")

    with cutbank.open(database, settings=file) as store:
        assert filled(store).loop(limit=100_000).prepare().boundary is None


def test_settings_that_a_call_gives_are_those_of_the_policy_that_the_file_names(
    database: str, tmp_path: Path
) -> None:
    file = tmp_path / "ours.toml"
    file.write_text(
        '[compaction]\npolicy = "tunacode"\nsettings = {reserve_tokens = 1_000}\nlimit = 9_000\n'
    )

    with cutbank.open(database, settings=file) as store:
        session = filled(store)
        outcome = session.compact(settings={"keep_recent_tokens": 500}, dry_run=True)

        assert outcome.policy == "retention-window"
        assert outcome.explanation is not None
        assert outcome.explanation.due.threshold == 9_000 - 1_000 - 500 + 1
        with pytest.raises(InvalidSettingError, match="retention-window has no setting 'keep_to"):
            session.compact(settings={"keep_tokens": 500})


def test_a_meter_reads_what_is_in_use_of_the_limit_that_the_file_names(
    database: str, tmp_path: Path
) -> None:
    file = tmp_path / "ours.toml"
    file.write_text("[compaction]\nlimit = 10_000\n")

    with cutbank.open(database, settings=file) as store:
        session = filled(store)
        read = session.meter()

        assert read.in_use.tokens == session.view().tokens
        assert read.in_use.share == session.view().tokens / 10_000
        assert read.notice is None


def test_a_program_that_the_settings_name_may_veto(database: str, tmp_path: Path) -> None:
    file = tmp_path / "ours.toml"
    file.write_text(
        "[[hooks.commands]]\non = ['pre_compact']\n"
        "command = ['/bin/sh', '-c', 'echo not today >&2; exit 2']\n"
    )

    with cutbank.open(database, settings=file) as store:
        session = filled(store)
        with pytest.raises(CompactionVetoedError, match="not today"):
            session.compact(limit=8_000)
        assert session.view().boundary is None


def test_tokens_are_counted_as_the_settings_say(database: str, tmp_path: Path) -> None:
    file = tmp_path / "ours.toml"
    file.write_text('[tokens]\ncounter = "o200k_base"\n')

    with cutbank.open(database, settings=file) as store:
        session = store.session("s")
        session.append(Block.user("a" * 400))  # a run of one letter is far less than 100 tokens
        order = session.loop(limit=8_000).order

        assert session.compactor().planner.seen(order).window.tokens < 80


def test_a_mistake_is_said_when_the_first_compaction_asks(database: str, tmp_path: Path) -> None:
    file = tmp_path / "ours.toml"
    file.write_text("[compaction]\nlimit = 'much'\n")

    with cutbank.open(database, settings=file) as store:
        session = filled(store)
        with pytest.raises(InvalidSettingError, match=r"ours\.toml:2: compaction\.limit"):
            session.loop()
        assert session.view().boundary is None
