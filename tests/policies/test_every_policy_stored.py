"""Every policy compacts real sessions in a store, which then verifies that nothing was broken."""

from collections.abc import Iterator
from pathlib import Path
from shutil import copyfile

import pytest
from every_policy import every_name, fitted
from provider_rules import check_anthropic, check_openai_chat
from transcripts import import_path

import cutbank
from cutbank import HistoryView, NothingToCompactError, verify
from cutbank.projections.rendering.catalog import render_view

LARGEST = 1_600_000
"""Bytes of a transcript that is taken: those of long sessions would take minutes."""
ROUNDS = 12


def refused(view: HistoryView) -> list[str]:
    """What providers would complain of."""
    return [
        *check_anthropic(render_view(view, "anthropic")),
        *check_openai_chat(render_view(view, "openai-chat")),
    ]


@pytest.fixture(scope="module")
def imported_file(tmp_path_factory: pytest.TempPathFactory, shared_sessions: Path) -> Path:
    file = tmp_path_factory.mktemp("real") / "real.db"
    with cutbank.open(file) as store:
        for path in sorted((shared_sessions / "claude-code").rglob("*.jsonl")):
            if path.stat().st_size <= LARGEST:
                assert all(report.complete for report in import_path(store, path))
        assert list(store.sessions())
    return file


@pytest.fixture
def imported(tmp_path: Path, imported_file: Path) -> Iterator[cutbank.SessionStore]:
    with cutbank.open(copyfile(imported_file, tmp_path / "real.db")) as store:
        yield store


@pytest.mark.slow
@pytest.mark.parametrize("name", every_name())
def test_real_sessions_are_compacted_until_nothing_is_left_to_do(
    name: str, imported: cutbank.SessionStore
) -> None:
    compacted = 0
    for session in list(imported.sessions()):
        blocks = len(session.view().entries)
        limit = max(100, session.view().tokens // 2)
        for _ in range(ROUNDS):
            try:
                outcome = session.compact(fitted(name, limit), limit=limit)
            except NothingToCompactError:
                break
            if not outcome.compacted:
                break
            compacted += 1
            assert outcome.post_tokens < outcome.pre_tokens, session
            assert refused(session.view()) == [], session
            assert session.view().entries or not blocks, session
        else:
            pytest.fail(f"{session} was compacted {ROUNDS} times over, and it went on")
    assert compacted
    assert verify(imported).violations == []
