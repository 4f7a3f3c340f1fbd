"""Show from outside that what users of other products suffer most does not happen here.

Each docstring names threads in which people tell of it. Other pains are shown by the tests of the
rule that prevents them: by the invariants, and of crashes, many writers, old databases, formats.
"""

import json
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
from cutbank.domain.blocks import Text
from cutbank.domain.compaction_events import Trigger
from cutbank.domain.compaction_terms import PinRules
from cutbank.domain.session_events import Usage
from cutbank.domain.summaries.summarizer import Draft, Material
from cutbank.projections.rendering.catalog import render_view

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


class Short:
    """A summarizer that always writes the same."""

    name = "short"

    def summarize(self, _: Material) -> Draft:
        return Draft("Some steps were done.")


def stored_bytes(store: SessionStore) -> int:
    """Bytes of all events and bodies."""
    ((events,),) = asked(
        store, "SELECT sum(length(state) + length(CAST(carried AS text))) FROM stored_events"
    )
    ((bodies,),) = asked(store, "SELECT coalesce(sum(length(content)), 0) FROM bodies")
    return int(events) + int(bodies)


def test_pain_10_instructions_are_lost_by_compaction(session: StoredSession) -> None:
    """anthropics/claude-code#6354, anthropics/claude-code#19471, anthropics/claude-code#68636,
    anthropics/claude-code#44166: pinned, by rule, or in the system prompt."""
    system = "You never push to main."
    goal, standing, said = "Goal: port the parser to C.", "Use tabs.", "Never touch /migrations."
    session.configure(system_prompt=system)
    session.append(Block.user(goal))
    session.append(Block.developer(standing))
    talk(session, 2)
    session.pin(session.append(Block.user(said)).last)

    for _ in range(3):
        talk(session, 8)
        outcome = compacted(session, 50, summarizers=[Short()], pins=PinRules())
        assert outcome.compacted
        for name in ("anthropic", "openai-chat", "openai-responses"):
            body = json.dumps(render_view(session.view(), name), ensure_ascii=False)
            assert all(words in body for words in (system, goal, standing, said)), name


def test_pain_12_repeated_compaction_wears_exact_facts_away(session: StoredSession) -> None:
    """arcee-ai/nac#147, earendil-works/pi#1585."""
    port = "The staging port is 48213."
    asked_first = session.append(Block.user(port)).last
    arguments = {"file_path": "/src/lexer/states_7b.c"}
    session.append(
        ToolCall(tool_call_id="e1", name="Edit", arguments=arguments),
        ToolResult(tool_call_id="e1", content="edited"),
    )

    for _ in range(6):
        talk(session, 6)
        assert compacted(session).compacted

    summary = session.view().summary
    assert summary is not None
    assert asked_first in summary.covers
    assert "/src/lexer/states_7b.c" in summary.digest.modified_files
    assert session.recall(asked_first)[0].block.text == port
    assert [found.position for found in session.recall(search="48213")] == [asked_first]


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


def test_pain_20_tokens_are_counted_wrong(session: StoredSession) -> None:
    """adolfousier/opencrabs#1123, letta-ai/letta#3242, shotgun-sh/shotgun#458, cline/cline#14195,
    openclaw/openclaw#99386: what the provider reported wins, outputs are not in it, and nested
    pieces count."""
    talk(session, 4)
    estimate = session.view().tokens
    busy = session.fork("the provider counts more")
    chatty = session.fork("long answers")
    nested = session.fork("nested")
    full = Usage(input=1_000, cache_read=90_000, cache_write=5_000, output=10)
    wordy = Usage(input=estimate, output=900_000, reasoning=900_000)
    parts = (Text(text="word " * 4_000), Text(text="word " * 4_000))

    busy.record_call(busy.view(), call_id="1", usage=full)
    chatty.record_call(chatty.view(), call_id="1", usage=wordy)
    nested.append(
        ToolCall(tool_call_id="n", name="read", arguments="{}"),
        ToolResult(tool_call_id="n", content=parts),
    )

    def by_threshold(session: StoredSession) -> bool:
        return compacted(session, 100, limit=90_000, trigger=Trigger.THRESHOLD).compacted

    assert estimate < 50_000
    assert by_threshold(busy)
    assert not by_threshold(chatty)
    assert not by_threshold(session)
    assert nested.view().tokens - estimate > 8_000
