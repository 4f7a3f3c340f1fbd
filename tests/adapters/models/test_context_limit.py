"""Which limit a session's context has, and where that figure is from."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from codex_talk import THREAD, Rollout

import cutbank
from cutbank import StoredSession
from cutbank.adapters.settings.compaction_settings import CompactionSettings
from cutbank.adapters.settings.settings import Settings
from cutbank.domain.context_limit import LimitSource


@contextmanager
def imported(
    folder: Path,
    model: str,
    prompt: int,
    window: int | None = None,
    settings: Settings | None = None,
) -> Iterator[StoredSession]:
    """A session of Codex whose one call is reported so."""
    rollout = Rollout()
    rollout.model(model)
    if window:
        rollout.event("task_started", model_context_window=window)
    rollout.user("hello")
    rollout.says("hello")
    rollout.counts(prompt, output=1)
    path = folder / "rollout.jsonl"
    path.write_bytes(rollout.raw())
    with cutbank.open(":memory:", settings=settings or Settings()) as store:
        cutbank.import_transcripts(store, path)
        yield store.session(THREAD, create=False)


def test_what_the_log_reports_goes_before_the_model_and_the_default(tmp_path: Path) -> None:
    rows: list[tuple[str, int, int | None, tuple[int, LimitSource]]] = [
        ("gpt-5.5", 9_000, 258_400, (258_400, LimitSource.LOG)),
        ("claude-sonnet-4-5[1m]", 9_000, None, (1_000_000, LimitSource.LOG)),
        ("claude-opus-4-5", 9_000, None, (200_000, LimitSource.MODEL)),
        ("claude-opus-4-5", 240_000, None, (1_000_000, LimitSource.LOG)),
        ("gpt-5", 300_000, None, (300_000, LimitSource.LOG)),
        ("no-such-model", 9_000, None, (200_000, LimitSource.DEFAULT)),
        ("no-such-model", 210_000, None, (210_000, LimitSource.LOG)),
    ]
    for model, prompt, window, limit in rows:
        with imported(tmp_path, model, prompt, window) as session:
            assert cutbank.find_context_limit(session) == limit, model


def test_what_the_user_names_goes_before_the_log(tmp_path: Path) -> None:
    settings = Settings(compaction=CompactionSettings(limit=90_000))

    with imported(tmp_path, "gpt-5.5", 9_000, 258_400, settings) as session:
        assert cutbank.find_context_limit(session) == (90_000, LimitSource.SETTINGS)
        assert cutbank.find_context_limit(session, limit=7) == (7, LimitSource.ARGUMENT)


def test_what_the_log_reports_is_of_its_own_model(tmp_path: Path) -> None:
    with imported(tmp_path, "gpt-5.5", 9_000, 258_400) as session:
        assert cutbank.find_context_limit(session, model="openai/gpt-5.5") == (
            258_400,
            LimitSource.LOG,
        )
        assert cutbank.find_context_limit(session, model="claude-opus-4-5") == (
            200_000,
            LimitSource.MODEL,
        )
