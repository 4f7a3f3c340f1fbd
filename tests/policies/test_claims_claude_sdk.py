"""What seed 004 claims, checked on a store: its hooks, its messages, its zones, its failures."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from agent_talk import Scripted

from cutbank import (
    Block,
    CompactionOptions,
    LoopOptions,
    SessionStore,
    StoredSession,
    ToolCall,
    ToolResult,
)
from cutbank.adapters.models.summarizers.llm_summarizer import LlmSummarizer
from cutbank.adapters.models.vocabularies import get_counter
from cutbank.adapters.runtime.compaction.from_settings import make_compaction_request
from cutbank.adapters.runtime.compaction.hook_commands import to_hook_input
from cutbank.adapters.settings.compaction_settings import CompactionSettings
from cutbank.adapters.settings.settings import Settings
from cutbank.adapters.settings.summary_settings import SummarySettings
from cutbank.domain.blocks import AnyBlock, Kind
from cutbank.domain.compaction_events import Trigger
from cutbank.domain.context_limit import DEFAULT_LIMIT
from cutbank.domain.counting.estimators import ESTIMATORS
from cutbank.domain.errors import SummarizerFailedError
from cutbank.domain.hooks import CompactionEvent, CompactionEventKind
from cutbank.domain.item import Item
from cutbank.domain.policies.preserve_zone import PreserveZone
from cutbank.domain.ranges import Ranges
from cutbank.domain.summaries.summarizer import Draft, Material, SummaryPart
from cutbank.domain.summaries.templates import ClaudeSdkTemplate
from cutbank.domain.token_estimate import CharacterEstimate
from cutbank.domain.window import Window
from cutbank.projections.history_view import HistoryView
from cutbank.projections.hook_payloads import of_boundary, said_trigger
from cutbank.projections.rendering.catalog import render_view
from cutbank.projections.rendering.summary_message import parse_summary_message

BETA = "context-1m-2025-08-07"
LISTED = ("claude-sonnet-4-5-20250929", "claude-opus-4-5-20250514", "claude-haiku-4-5-20251001")
LIMIT = 10_000
POLICY = PreserveZone(max_output_tokens=0, prune_over=None)
"""Without a reserve, so that what is in use is what was said."""


def briefly(material: Material) -> Draft:
    return Draft(f"A summary of {len(material.removed_items)} blocks.")


def fails(material: Material) -> Draft:
    raise SummarizerFailedError("no such model")


@pytest.fixture
def told(store: SessionStore) -> list[CompactionEvent]:
    heard: list[CompactionEvent] = []
    store.listeners.append(heard.append)
    return heard


def talk(session: StoredSession, turns: int, tokens: int = 200) -> StoredSession:
    """Turns of a prompt, a call, its result and an answer: each of these so many tokens, about."""
    for turn in range(turns):
        call = f"c{session.position}"
        words = f"{turn} " * (2 * tokens)
        session.append(Block.user(f"{turn} please {words}"))
        session.append(
            ToolCall(tool_call_id=call, name="read", arguments={"path": f"{turn}.py"}),
            ToolResult(tool_call_id=call, content=words),
        )
        session.append(Block.assistant(f"{turn} done {words}"))
    return session


def compacted(
    session: StoredSession,
    policy: PreserveZone = POLICY,
    says: Callable[[Material], Draft] = briefly,
    **how: Any,
) -> HistoryView:
    options = CompactionOptions(summarizers=[Scripted(says)], **how)
    session.compact(policy, limit=LIMIT, options=options)
    return session.view()


def words_of(view: HistoryView) -> list[tuple[int, str]]:
    return [(entry.position, entry.text) for entry in view.entries]


def window(*tokens: int, limit: int = 1_000, **more: object) -> Window:
    """One message of each size."""
    items = tuple(Item(at, Block.user("words"), 1, size) for at, size in enumerate(tokens, 1))
    return Window(items=items, after=len(items), limit=limit, **more)  # type: ignore[arg-type]


# The boundary's message


@pytest.mark.claim("S4.1", "S4.2", "S4.3", "S4.13", "S4.21", "S4.44")
def test_a_boundary_is_told_in_the_sdks_own_message(
    session: StoredSession, told: list[CompactionEvent]
) -> None:
    loop = session.loop(
        policy=POLICY, limit=LIMIT, options=LoopOptions(summarizers=[Scripted(briefly)])
    )
    ids = set()
    for trigger in ("manual", "auto"):
        before = talk(session, 14).view()
        told.clear()

        if trigger == "manual":
            compacted(session)
        else:
            loop.prepare()

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
        assert of_boundary(session.key, boundary) == message
        assert json.loads(json.dumps(message)) == message
        ids.add(message["uuid"])
    assert len(ids) == 2
    said = {trigger: said_trigger(trigger) for trigger in Trigger}
    assert said.pop(Trigger.MANUAL) == "manual"
    assert set(said.values()) == {"auto"}


# Hooks


@pytest.mark.claim("S4.4", "S4.5")
def test_hooks_are_given_the_sdks_inputs(
    session: StoredSession, told: list[CompactionEvent]
) -> None:
    compacted(talk(session, 12), instructions="Mind the migrations.")

    before, after = to_hook_input(told[0]), to_hook_input(told[-1])
    assert before["hook_event_name"] == "PreCompact"
    assert (before["trigger"], before["custom_instructions"]) == ("manual", "Mind the migrations.")
    assert (after["hook_event_name"], after["source"]) == ("SessionStart", "compact")
    assert before["session_id"] == after["session_id"] == session.key


@pytest.mark.claim("S4.16", "S4.24", "S4.25", "S4.45")
def test_hooks_come_first_and_last_and_the_boundary_is_told_when_the_view_is_made_anew(
    store: SessionStore, session: StoredSession
) -> None:
    trace: list[tuple[CompactionEventKind, bool]] = []
    store.listeners.append(
        lambda each: trace.append((each.moment, session.view().boundary is not None))
    )

    def writes(material: Material) -> Draft:
        assert trace[0] == (CompactionEventKind.PRE_COMPACT, False)
        return briefly(material)

    compacted(talk(session, 12), says=writes)

    assert trace[0] == (CompactionEventKind.PRE_COMPACT, False)
    assert trace[-2:] == [
        (CompactionEventKind.ACTIVATED, True),
        (CompactionEventKind.SESSION_START, True),
    ]
    assert [moment for moment, _ in trace].count(CompactionEventKind.PRE_COMPACT) == 1


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


@pytest.mark.claim("S4.9", "S4.14", "S4.15", "S4.41")
def test_it_fires_strictly_above_80_percent_and_is_critical_above_95() -> None:
    assert PreserveZone().max_output_tokens == 16_384
    assert PreserveZone().measure_budget(window(1_000, in_use=1_000)).used_tokens == 1_000 + 16_384
    rows: list[tuple[int, bool, bool]] = [
        (800, False, False),
        (801, True, False),
        (810, True, False),
        (950, True, False),
        (951, True, True),
        (2_000, True, True),
    ]
    for used, should, must in rows:
        view = window(200, used - 200, trigger=Trigger.THRESHOLD, in_use=used)
        budget = POLICY.measure_budget(view)

        assert (POLICY.should_compact(budget), POLICY.must_compact(budget)) == (should, must), used
        assert POLICY.fires(view) is should, used
        assert bool(POLICY.plan(view)) is should, used


# The split


@pytest.mark.claim("S4.18", "S4.22", "S4.23", "S4.48")
def test_the_view_is_the_summary_and_the_preserved_zone_word_for_word(
    session: StoredSession,
) -> None:
    """Ruled: Anthropic has no system messages among the others, so that it is a marked user's."""
    before = talk(session, 12).view()

    view = compacted(session)

    assert view.boundary is not None
    assert view.summary is not None
    split = view.boundary.first_kept
    assert words_of(view) == [one for one in words_of(before) if one[0] >= split]
    assert view.summary.covers == Ranges.span(1, split - 1)
    first, *rest = render_view(view, "anthropic")["messages"]
    assert first["role"] == "user"
    chat = render_view(view, "openai-chat")["messages"][0]["content"]
    for text in (str(first["content"][0]["text"]), str(chat)):
        read = parse_summary_message(text)
        assert read is not None
        assert read.text == view.summary.text
    assert not any("<conversation-summary" in str(message) for message in rest)


@pytest.mark.claim("S4.42")
def test_about_40_percent_are_preserved(store: SessionStore) -> None:
    for tokens in [60, 200, 700]:
        session = store.session(f"{tokens}")
        compacted(talk(session, 9_000 // (4 * tokens), tokens), says=lambda _: Draft("Said."))

        view = session.view()
        kept = sum(entry.tokens for entry in view.entries)
        largest = max(entry.tokens for entry in view.entries)
        # One message more leaves, and a repair of a parted pair moves the cut by one.
        assert 0.4 * LIMIT - 3 * largest <= kept <= 0.4 * LIMIT + largest, tokens


# The summary


@pytest.mark.claim("S4.29", "S4.50")
def test_a_cheaper_model_than_the_agents_writes_summaries() -> None:
    for model in [*LISTED[:2], "anthropic:claude-opus-4-5"]:
        settings = Settings(summary=SummarySettings(chain=("llm",)))

        (writer,) = make_compaction_request(settings, model).chain.summarizers

        assert isinstance(writer, LlmSummarizer), model
        assert str(writer.model).startswith("anthropic:claude-haiku-"), model


@pytest.mark.claim("S4.31", "S4.43")
def test_five_things_are_to_be_preserved() -> None:
    sections = [section.lower() for section in ClaudeSdkTemplate().sections]

    assert len(set(sections)) == 5
    for word in ("decision", "files", "pending", "preferences", "outputs"):
        assert any(word in section for section in sections), word


@pytest.mark.claim("S4.33")
def test_each_message_is_shown_up_to_2000_characters() -> None:
    rows: list[tuple[int, int]] = [(1_999, 0), (2_000, 0), (2_001, 1)]
    for length, is_shortened in rows:
        said = ClaudeSdkTemplate().render_conversation([Item(1, Block.user("é" * length), 1, 1)])

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
    items = [Item(at, block, 1, 1) for at, block in enumerate(blocks, 1)]

    assert ClaudeSdkTemplate().render_conversation(items) == (
        "[system]: Be brief.\n\n[user]: Read it.\n\n"
        '[assistant]: I do.\nread({"path": "a.py"})\n\n[tool]: It is empty.\n\n'
    )
    assert "read(" not in ClaudeSdkTemplate(shows_calls=False).render_conversation(items)


@pytest.mark.claim("S4.30")
def test_a_summary_may_have_4096_tokens() -> None:
    plan = PreserveZone().plan(window(500, 500))

    assert plan is not None
    assert plan.summary_tokens == 4_096
    material = Material(removed_items=(), covers=Ranges(), budget=plan.summary_tokens)
    assert plan.template is not None
    assert plan.template.plan_requests(material) == ()
    items = window(500).items
    (asked,) = plan.template.plan_requests(
        replace(material, removed_items=tuple(items), previous="Before.")
    )
    assert (asked.part, asked.budget, asked.previous) == (SummaryPart.HISTORY, 4_096, "Before.")


@pytest.mark.claim("S4.51")
def test_where_no_summary_can_be_had_what_would_be_summed_up_leaves_all_the_same(
    session: StoredSession,
) -> None:
    before = talk(session, 12).view()
    wanted = session.compact(POLICY, limit=LIMIT, options=CompactionOptions(dry_run=True))

    view = compacted(session, says=fails)

    assert view.boundary is not None
    assert words_of(view) == [one for one in words_of(before) if one[0] in wanted.kept]
    assert view.summary is not None
    assert view.summary.summarizer == "notice"
    assert view.summary.text.startswith("[Context Pruned: Removed ")
    assert session.recall(before.entries[0].position)[0].block.text.startswith("0 please")


# Estimates


@pytest.mark.claim("S4.37")
def test_another_counter_gives_another_split() -> None:
    blocks = [Block.user("お誕生日おめでとう" * 40), *[Block.user("word " * 60)] * 20]

    def split(counter: str) -> int:
        count = get_counter(counter).count
        items = tuple(Item(at, block, 1, count(block)) for at, block in enumerate(blocks, 1))
        return POLICY.find_split(Window(items=items, after=len(items), limit=2_000))

    assert split("cl100k_base") < split("chars/4")
    assert split("goat") != split("cl100k_base")
    assert {CharacterEstimate.name, *ESTIMATORS} >= {"chars/4", "goat"}


@pytest.mark.claim("S4.46")
def test_an_estimate_is_within_20_percent_of_what_a_tokenizer_counts() -> None:
    """Of what a coding agent reads: this project's own pages and code, all in all."""
    for vocabulary in ["cl100k_base", "o200k_base"]:
        root = Path(__file__).parents[2]
        pages = [root / "README.md", *root.glob("docs/*.md"), *root.glob("domain/**/*.py")]
        texts = [page.read_text(encoding="utf-8") for page in pages]
        items = [Item(at, Block.user(text), 1, 1) for at, text in enumerate(texts, 1)]
        assert len(items) > 50, vocabulary

        estimated = (
            PreserveZone(unit="bytes")
            .measure_budget(Window(items=items, after=1, limit=1))
            .message_tokens
        )

        counted = sum(map(get_counter(vocabulary).count_text, texts))
        assert 0.8 <= estimated / counted <= 1.2, vocabulary


# Pruning


def long_results(session: StoredSession, count: int = 16, length: int = 3_000) -> StoredSession:
    for number in range(count):
        session.append(
            ToolCall(tool_call_id=f"c{number}", name="read"),
            ToolResult(tool_call_id=f"c{number}", content=f"{number:04}" * (length // 4)),
        )
    return session


@pytest.mark.claim("S4.38", "S4.39", "S4.40")
def test_old_results_are_shown_shortened_and_the_log_has_them_whole(
    session: StoredSession,
) -> None:
    before = long_results(session).view()
    policy = PreserveZone(max_output_tokens=0)

    view = session.loop(policy=policy, limit=100_000).prepare()

    assert view.boundary is not None
    assert view.summary is None
    assert len(view.entries) == len(before.entries)
    recent = {entry.position for entry in view.entries[-10:]}
    for entry, whole in zip(view.entries, before.entries, strict=True):
        is_old = entry.position not in recent and entry.block.kind is Kind.TOOL_RESULT
        assert (entry.shown is not None) is is_old
        assert entry.text.startswith(whole.text[:200])
        assert whole.text[:201] not in entry.text or not is_old
    assert [one.block.text for one in session.recall(Ranges.span(1, session.position))] == [
        e.text for e in before.entries
    ]
    assert session.loop(policy=policy, limit=100_000).prepare() == view
