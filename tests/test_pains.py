"""Show from outside that what users of other products suffer most does not happen here.

Each docstring names threads in which people tell of it. Other pains are shown by the tests of the
rule that prevents them: by the invariants, and of crashes, many writers, old databases, formats.
"""

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest
from databases import asked

import cutbank
from cutbank import (
    Block,
    CompactionOptions,
    HistoryView,
    SessionStore,
    StoredSession,
    ToolCall,
    ToolResult,
)
from cutbank.adapters.runtime.compaction.outcome import CompactionOutcome
from cutbank.domain.session_events import Usage

LIMIT = 3_000


def compacted(
    session: StoredSession, keep: int = 400, *, limit: int = LIMIT, **how: Any
) -> CompactionOutcome:
    settings = {"reserve_tokens": "300", "keep_tokens": str(keep)}
    options = CompactionOptions(settings=settings, **how)
    return session.compact("reserve-headroom", limit=limit, options=options)


def talk(session: StoredSession, turns: int, *, words: int = 40) -> None:
    """Append turns with parallel calls whose answers come in another order."""
    for _ in range(turns):
        n = session.position
        ids = [f"{n}-{i}" for i in range(4)]
        session.append(
            Block.user(f"Do step {n}. " + "please " * words),
            *(ToolCall(tool_call_id=id, name="bash", message_id=f"m{n}") for id in ids),
            *(ToolResult(tool_call_id=id, content=f"of {id}\n" * words) for id in ids[::-1]),
            Block.assistant(f"Step {n} is done."),
        )


def stored_bytes(store: SessionStore) -> int:
    """Bytes of all events and bodies."""
    ((events,),) = asked(
        store, "SELECT sum(length(state) + length(CAST(carried AS text))) FROM stored_events"
    )
    ((bodies,),) = asked(store, "SELECT coalesce(sum(length(content)), 0) FROM bodies")
    return int(events) + int(bodies)


def test_pains_15_and_16_compactions_or_turns_store_the_history_again(
    store: SessionStore, session: StoredSession
) -> None:
    """openai/codex#41806, openai/codex#31198, anthropics/claude-code#42810,
    anthropics/claude-code#27505; langchain-ai/langgraphjs#1138, langchain-ai/langgraph#6661,
    bytedance/deer-flow#4148, caipe-io/ai-platform-engineering#1238."""
    sizes = [stored_bytes(store)]
    for _ in range(4):
        for n in range(10):
            talk(session, 1, words=400)
            session.record_call(session.view(), call_id=f"{len(sizes)}-{n}", usage=Usage(input=9))
        sizes.append(stored_bytes(store))
    growth = [after - before for before, after in pairwise(sizes)]
    assert growth[-1] < 1.1 * growth[0]
    assert sizes[-1] > 500_000

    boundaries = []
    for _ in range(8):
        session.append(Block.user("And then? " * 300))
        before = stored_bytes(store)
        compacted(session, limit=8_000)
        boundaries.append(stored_bytes(store) - before)
    assert max(boundaries) < 0.1 * sizes[-1]
    assert boundaries[-1] < 2 * boundaries[1]


def read_cold(database: str, key: str, monkeypatch: pytest.MonkeyPatch) -> tuple[int, HistoryView]:
    """Return how many events a process reads to serve a session it has not seen, and the view."""
    counts: list[int] = []
    with cutbank.open(database) as cold, monkeypatch.context() as patch:
        for name in ("select_events", "select_runs"):
            select = getattr(cold.events.recorder, name)

            def count(*args: Any, select: Callable[..., Any] = select, **more: Any) -> Any:
                rows = select(*args, **more)
                counts.append(len(rows))
                return rows

            patch.setattr(cold.events.recorder, name, count)
        view = cold.session(key, create=False).view()
    return sum(counts), view


def test_pain_17_a_long_session_takes_long_to_load(
    database: str, session: StoredSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """openai/codex#38349, earendil-works/pi#8843, Kohaku-Lab/KohakuTerrarium#294,
    google/adk-js#831: what is read is the view, however long the history."""
    talk(session, 10)
    compacted(session)
    short, short_view = read_cold(database, session.key, monkeypatch)

    talk(session, 40)
    compacted(session)
    long, long_view = read_cold(database, session.key, monkeypatch)

    assert short > 0
    assert len(long_view.entries) <= len(short_view.entries) + 8
    assert long <= short + 20
    assert long < session.position / 5
