"""What seed 004 claims, checked on a store: its hooks, its messages, its zones, its failures."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from agent_talk import Scripted, talk
from worded_windows import make_plan, make_window

from cutbank import (
    Block,
    CompactionOptions,
    Ranges,
    StoredSession,
    ToolCall,
    ToolResult,
    WindowItem,
)
from cutbank.adapters.models.vocabularies import get_counter
from cutbank.adapters.runtime.compaction.event_sink import make_boundary_message, said_trigger
from cutbank.adapters.runtime.compaction.from_settings import make_compaction_request
from cutbank.adapters.runtime.compaction.hook_commands import to_hook_input
from cutbank.adapters.settings.compaction_settings import CompactionSettings
from cutbank.adapters.settings.settings import Settings
from cutbank.domain.blocks import AnyBlock, BlockKind
from cutbank.domain.compaction_events import Trigger
from cutbank.domain.context_limit import DEFAULT_LIMIT
from cutbank.domain.errors import SummarizerFailedError
from cutbank.domain.hooks import CompactionEvent, CompactionEventKind
from cutbank.domain.policies.preserve_zone import PreserveZone
from cutbank.domain.policies.reference.claude_sdk import GoatAsShipped
from cutbank.domain.summaries.summarizer import Draft, Material, SummaryPart
from cutbank.domain.summaries.templates import ClaudeSdkTemplate
from cutbank.domain.window import Window
from cutbank.projections.history_view import HistoryView

BETA = "context-1m-2025-08-07"
LISTED = ("claude-sonnet-4-5-20250929", "claude-opus-4-5-20250514", "claude-haiku-4-5-20251001")
LIMIT = 10_000
POLICY = PreserveZone(max_output_tokens=0, prune_over=None)
"""Without a reserve, so that what is in use is what was said."""


def compacted(
    session: StoredSession,
    says: Callable[[Material], Draft] = lambda _: Draft("A summary."),
    **how: Any,
) -> HistoryView:
    """The view after a compaction, of a session of turns that call a tool."""
    options = CompactionOptions(summarizers=[Scripted(says)], **how)
    session.compact(POLICY, limit=LIMIT, options=options)
    return session.view()


# The boundary's message


@pytest.mark.claim("S4.1", "S4.2", "S4.3", "S4.4", "S4.5", "S4.13", "S4.21", "S4.44")
def test_a_boundary_is_told_in_the_sdks_own_message_and_hooks_are_given_its_inputs(
    session: StoredSession, told: list[CompactionEvent]
) -> None:
    ids = set()
    for trigger in ("manual", "auto"):
        before = talk(session, 14, size=800, calls=1).view()
        told.clear()

        if trigger == "manual":
            compacted(session, instructions="Mind the migrations.")
        else:
            session.loop(policy=POLICY, limit=LIMIT).prepare()

        (message,) = [each.message for each in told if each.moment is CompactionEventKind.ACTIVATED]
        assert message is not None
        assert message == {
            "type": "system",
            "subtype": "compact_boundary",
            "compact_metadata": {"trigger": trigger, "pre_tokens": before.tokens},
            "uuid": str(UUID(message["uuid"])),
            "session_id": session.key,
        }
        boundary = session.view().boundary
        assert boundary is not None
        assert make_boundary_message(session.key, boundary) == message
        ids.add(message["uuid"])
        first, last = to_hook_input(told[0]), to_hook_input(told[-1])
        assert (first["hook_event_name"], first["trigger"]) == ("PreCompact", trigger)
        assert (last["hook_event_name"], last["source"]) == ("SessionStart", "compact")
        assert first["session_id"] == last["session_id"] == session.key
        if trigger == "manual":
            assert first["custom_instructions"] == "Mind the migrations."
    assert len(ids) == 2
    said = {trigger: said_trigger(trigger) for trigger in Trigger}
    assert said.pop(Trigger.MANUAL) == "manual"
    assert set(said.values()) == {"auto"}


# Limits


@pytest.mark.claim("S4.6", "S4.7", "S4.8", "S4.47")
def test_models_hold_two_hundred_thousand_tokens_and_a_sonnet_a_million_with_the_beta() -> None:
    plain, beta = Settings(), Settings(compaction=CompactionSettings(betas=(BETA,)))
    assert DEFAULT_LIMIT == 200_000
    for model in (*LISTED, "a-model-that-nobody-knows"):
        assert make_compaction_request(plain, model).limit == 200_000, model
    for model in (LISTED[0], "claude-sonnet-4-20250514", "claude-sonnet-unheard"):
        assert make_compaction_request(beta, model).limit == 1_000_000, model
    for model in (*LISTED[1:], "gpt-4o", "gemini-2.5-pro", "nobody-knows-it"):
        assert (
            make_compaction_request(beta, model).limit
            == make_compaction_request(plain, model).limit
        ), model


# What is in use


@pytest.mark.claim("S4.9", "S4.14", "S4.15", "S4.41", "S4.42")
def test_it_fires_strictly_above_80_percent_is_critical_above_95_and_preserves_40() -> None:
    assert PreserveZone().max_output_tokens == 16_384
    assert PreserveZone().compute_preserve_budget(1_000) == 400
    full = make_window("u=1000", in_use=1_000)
    assert PreserveZone().measure_utilization(full) == (1_000 + 16_384) / 100
    rows: list[tuple[int, bool, bool]] = [
        (800, False, False),
        (801, True, False),
        (810, True, False),
        (950, True, False),
        (951, True, True),
        (2_000, True, True),
    ]
    for used, should, must in rows:
        words = f"u=200 u={used - 200}"
        view = make_window(words, limit=1_000, trigger=Trigger.THRESHOLD, in_use=used)
        part = POLICY.measure_utilization(view)

        assert (POLICY.should_compact(part), POLICY.must_compact(part)) == (should, must), used
        assert POLICY.fires(view) is should, used
        assert bool(POLICY.plan(view)) is should, used


# The summary


@pytest.mark.claim("S4.31", "S4.43")
def test_five_things_are_to_be_preserved() -> None:
    sections = [section.lower() for section in ClaudeSdkTemplate().sections]

    assert len(set(sections)) == 5
    for word in ("decision", "files", "pending", "preferences", "outputs"):
        assert any(word in section for section in sections), word


@pytest.mark.claim("S4.33")
def test_each_message_is_shown_up_to_2000_characters() -> None:
    for length, is_shortened in [(1_999, 0), (2_000, 0), (2_001, 1)]:
        said = ClaudeSdkTemplate().render_conversation(
            [WindowItem(1, Block.user("é" * length), 1, 1)]
        )

        assert (
            said == f"[user]: {'é' * (2_000 if is_shortened else length)}{'...' * is_shortened}\n\n"
        ), length


@pytest.mark.claim("S4.34")
def test_each_message_is_labelled_with_its_role() -> None:
    blocks: list[AnyBlock] = [
        Block.developer("Be brief."),
        Block.user("Read it."),
        Block.thinking("Which one?", message_id="m"),
        Block.assistant("I do.", message_id="m"),
        ToolCall(tool_call_id="c", name="read", arguments='{"path": "a.py"}', message_id="m"),
        ToolResult(tool_call_id="c", content="It is empty."),
        Block.note("for people"),
    ]
    items = [WindowItem(at, block, 1, 1) for at, block in enumerate(blocks, 1)]

    assert ClaudeSdkTemplate().render_conversation(items) == (
        "[system]: Be brief.\n\n[user]: Read it.\n\n"
        '[assistant]: I do.\nread({"path": "a.py"})\n\n[tool]: It is empty.\n\n'
    )
    assert "read(" not in ClaudeSdkTemplate(shows_calls=False).render_conversation(items)


@pytest.mark.claim("S4.30")
def test_a_summary_may_have_4096_tokens() -> None:
    window = make_window("u=500 u=500", limit=1_000)
    plan = make_plan(PreserveZone(), window)

    assert plan.summary_tokens == 4_096
    material = Material(removed_items=(), covers=Ranges(), budget=plan.summary_tokens)
    assert plan.template is not None
    assert plan.template.plan_requests(material) == ()
    (asked,) = plan.template.plan_requests(
        replace(material, removed_items=tuple(window.items), previous="Before.")
    )
    assert (asked.part, asked.budget, asked.previous) == (SummaryPart.HISTORY, 4_096, "Before.")


@pytest.mark.claim("S4.51")
def test_where_no_summary_can_be_had_what_would_be_summed_up_leaves_all_the_same(
    session: StoredSession,
) -> None:
    def fails(material: Material) -> Draft:
        raise SummarizerFailedError("no such model")

    before = talk(session, 12, size=800, calls=1).view()
    wanted = session.compact(POLICY, limit=LIMIT, options=CompactionOptions(dry_run=True))

    view = compacted(session, fails)

    assert view.summary is not None
    assert list(view.entries) == [one for one in before.entries if one.position in wanted.kept]
    assert view.summary.summarizer == "notice"
    assert view.summary.text.startswith("[Context Pruned: Removed ")
    assert session.recall(before.entries[0].position)[0].block.text.startswith("question 0")


# Estimates


@pytest.mark.claim("S4.37")
def test_another_counter_gives_another_split() -> None:
    blocks = [Block.user("お誕生日おめでとう" * 40), *[Block.user("word " * 60)] * 20]

    def split(counter: str) -> int:
        count = get_counter(counter).count
        items = tuple(WindowItem(at, block, 1, count(block)) for at, block in enumerate(blocks, 1))
        return POLICY.find_split(Window(items=items, after=len(items), limit=2_000))

    assert split("cl100k_base") < split("chars/4")


@pytest.mark.claim("S4.46")
def test_an_estimate_is_within_20_percent_of_what_a_tokenizer_counts() -> None:
    """Of what a coding agent reads: this project's own pages and code, all in all."""
    for vocabulary in ["cl100k_base", "o200k_base"]:
        root = Path(__file__).parents[2]
        pages = [root / "README.md", *root.glob("docs/*.md"), *root.glob("domain/**/*.py")]
        texts = [page.read_text(encoding="utf-8") for page in pages]
        items = [WindowItem(at, Block.user(text), 1, 1) for at, text in enumerate(texts, 1)]
        assert len(items) > 50, vocabulary

        estimated = GoatAsShipped().count_message_tokens(Window(items=items, after=1, limit=1))

        counted = sum(map(get_counter(vocabulary).count_text, texts))
        assert 0.8 <= estimated / counted <= 1.2, vocabulary


# Pruning


@pytest.mark.claim("S4.38", "S4.39", "S4.40")
def test_old_results_are_shown_shortened_and_the_log_has_them_whole(session: StoredSession) -> None:
    talk(session, 16, size=3_000, calls=1)
    before = session.view()
    policy = PreserveZone(max_output_tokens=0)

    view = session.loop(policy=policy, limit=100_000).prepare()

    assert view.boundary is not None
    assert view.summary is None
    assert len(view.entries) == len(before.entries)
    recent = {entry.position for entry in view.entries[-10:]}
    for entry, whole in zip(view.entries, before.entries, strict=True):
        is_old = entry.position not in recent and entry.block.kind is BlockKind.TOOL_RESULT
        assert (entry.shown is not None) is is_old
        assert entry.text.startswith(whole.text[:200])
        assert whole.text[:201] not in entry.text or not is_old
    assert [one.block.text for one in session.recall(Ranges.span(1, session.position))] == [
        e.text for e in before.entries
    ]
    assert session.loop(policy=policy, limit=100_000).prepare() == view
