"""What seed 004 claims, checked on a store: its hooks, its messages, its zones, its failures."""

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from uuid import UUID

import pytest
from summariser_talk import always

from cutbank import Block, SessionStore, StoredSession, ToolCall, ToolResult
from cutbank.adapters.models.counters import counter_named
from cutbank.adapters.models.summarizers.llm_summarizer import Llm
from cutbank.adapters.runtime.compaction.from_settings import order_by
from cutbank.adapters.runtime.compaction.hook_commands import as_told
from cutbank.adapters.settings.compaction_settings import CompactionSettings
from cutbank.adapters.settings.settings import Settings
from cutbank.adapters.settings.summary_settings import SummarySettings
from cutbank.domain.blocks import AnyBlock, Kind
from cutbank.domain.compaction_events import Trigger
from cutbank.domain.context_limit import DEFAULT_LIMIT
from cutbank.domain.counting.counter import CharsPerToken
from cutbank.domain.counting.estimators import ESTIMATORS
from cutbank.domain.errors import SummariserFailedError
from cutbank.domain.hooks import Happening, Moment, Verdict
from cutbank.domain.item import Item
from cutbank.domain.policies.measuring.context_budget import ContextBudget
from cutbank.domain.policies.preserve_zone import PreserveZone
from cutbank.domain.ranges import Ranges
from cutbank.domain.summaries.forms.claude_sdk import ClaudeSdkForm
from cutbank.domain.summaries.summarizer import Draft, Material, Part
from cutbank.domain.window import Window
from cutbank.projections.history_view import HistoryView
from cutbank.projections.hook_payloads import of_boundary, said_trigger
from cutbank.projections.rendering.catalog import render
from cutbank.projections.rendering.summary_message import recognised

BETA = "context-1m-2025-08-07"
LISTED = ("claude-sonnet-4-5-20250929", "claude-opus-4-5-20250514", "claude-haiku-4-5-20251001")
LIMIT = 10_000
POLICY = PreserveZone(max_output_tokens=0, prune_over=None)
"""Without a reserve, so that what is in use is what was said."""


@dataclass(frozen=True)
class Scripted:
    """A summariser that answers as it is told."""

    says: Callable[[Material], Draft]
    name: str = "scripted"

    def summarise(self, material: Material) -> Draft:
        return self.says(material)


def briefly(material: Material) -> Draft:
    return Draft(f"A summary of {len(material.gone)} blocks.")


def fails(material: Material) -> Draft:
    raise SummariserFailedError("no such model")


@pytest.fixture
def told(store: SessionStore) -> list[Happening]:
    heard: list[Happening] = []
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
    **how: object,
) -> HistoryView:
    session.compact(policy, limit=LIMIT, summariser=Scripted(says), **how)  # type: ignore[arg-type]
    return session.view()


def words_of(view: HistoryView) -> list[tuple[int, str]]:
    return [(entry.position, entry.text) for entry in view.entries]


def window(*tokens: int, limit: int = 1_000, **more: object) -> Window:
    """One message of each size."""
    items = tuple(Item(at, Block.user("words"), 1, size) for at, size in enumerate(tokens, 1))
    return Window(items=items, after=len(items), limit=limit, **more)  # type: ignore[arg-type]


# The boundary's message


@pytest.mark.claim("S4.1", "S4.2", "S4.3", "S4.44")
@pytest.mark.parametrize("asked", [True, False], ids=["manual", "auto"])
def test_a_boundary_is_told_in_the_sdks_own_message(
    session: StoredSession, told: list[Happening], asked: bool
) -> None:
    before = talk(session, 14).view()

    if asked:
        compacted(session)
    else:
        session.loop(policy=POLICY, limit=LIMIT, summarisers=[Scripted(briefly)]).prepare()

    (message,) = [each.message for each in told if each.moment is Moment.ACTIVATED]
    assert message == {
        "type": "system",
        "subtype": "compact_boundary",
        "compact_metadata": {"trigger": "manual" if asked else "auto", "pre_tokens": before.tokens},
        "uuid": str(UUID(message["uuid"])) if message else None,
        "session_id": session.key,
    }
    boundary = session.view().boundary
    assert boundary is not None
    assert of_boundary(session.key, boundary) == message
    assert json.loads(json.dumps(message)) == message


def test_a_boundary_that_was_prepared_is_told_once_it_is_served(
    session: StoredSession, told: list[Happening]
) -> None:
    compacted(talk(session, 12), activate=False)
    assert not [each for each in told if each.message]

    session.activate()

    boundary = session.view().boundary
    assert boundary is not None
    (message,) = [each.message for each in told if each.message]
    assert message == of_boundary(session.key, boundary)


@pytest.mark.claim("S4.21")
def test_each_boundary_has_an_id_of_its_own(session: StoredSession, told: list[Happening]) -> None:
    compacted(talk(session, 12))
    compacted(talk(session, 12))

    first, second = [each.message for each in told if each.message]
    assert first["uuid"] != second["uuid"]


@pytest.mark.claim("S4.13")
def test_whatever_sets_it_off_is_auto_or_manual() -> None:
    said = {trigger: said_trigger(trigger) for trigger in Trigger}

    assert said.pop(Trigger.MANUAL) == "manual"
    assert set(said.values()) == {"auto"}


# Hooks


@pytest.mark.claim("S4.4", "S4.5")
def test_hooks_are_given_the_sdks_inputs(session: StoredSession, told: list[Happening]) -> None:
    compacted(talk(session, 12), instructions="Mind the migrations.")

    before, after = as_told(told[0]), as_told(told[-1])
    assert before["hook_event_name"] == "PreCompact"
    assert (before["trigger"], before["custom_instructions"]) == ("manual", "Mind the migrations.")
    assert (after["hook_event_name"], after["source"]) == ("SessionStart", "compact")
    assert before["session_id"] == after["session_id"] == session.key


@pytest.mark.claim("S4.16", "S4.24", "S4.25", "S4.45")
def test_hooks_come_first_and_last_and_the_boundary_is_told_when_the_view_is_made_anew(
    store: SessionStore, session: StoredSession
) -> None:
    trace: list[tuple[Moment, bool]] = []
    store.listeners.append(
        lambda each: trace.append((each.moment, session.view().boundary is not None))
    )

    def writes(material: Material) -> Draft:
        assert trace[0] == (Moment.PRE_COMPACT, False)
        return briefly(material)

    compacted(talk(session, 12), says=writes)

    assert trace[0] == (Moment.PRE_COMPACT, False)
    assert trace[-2:] == [(Moment.ACTIVATED, True), (Moment.SESSION_START, True)]
    assert [moment for moment, _ in trace].count(Moment.PRE_COMPACT) == 1


@pytest.mark.claim("S4.17")
def test_a_hook_can_change_what_the_summary_is_asked_to_care_about(
    store: SessionStore, session: StoredSession
) -> None:
    asked: list[str | None] = []

    def writes(material: Material) -> Draft:
        asked.append(material.instructions)
        return briefly(material)

    def wishes(happening: Happening) -> Verdict | None:
        is_first = happening.moment is Moment.PRE_COMPACT
        return Verdict(instructions="Keep the ticket's number.") if is_first else None

    store.listeners.append(wishes)
    compacted(talk(session, 12), says=writes)

    assert asked == ["Keep the ticket's number."]

    model = always("They read files.")
    session.compact(PreserveZone(preserve_ratio=0.1), limit=LIMIT, summariser=Llm(model.model))

    assert "Keep the ticket's number." in model.prompts[0]


# Limits


@pytest.mark.claim("S4.6")
@pytest.mark.parametrize("model", [*LISTED, "a-model-that-nobody-knows"])
def test_models_hold_two_hundred_thousand_tokens(model: str) -> None:
    assert order_by(Settings(), model).limit == 200_000
    assert DEFAULT_LIMIT == 200_000


@pytest.mark.claim("S4.7", "S4.47")
@pytest.mark.parametrize("model", [LISTED[0], "claude-sonnet-4-20250514", "claude-sonnet-unheard"])
def test_with_the_beta_a_sonnet_holds_a_million(model: str) -> None:
    settings = Settings(compaction=CompactionSettings(betas=(BETA,)))

    assert order_by(settings, model).limit == 1_000_000


@pytest.mark.claim("S4.8")
@pytest.mark.parametrize("model", [*LISTED[1:], "gpt-4o", "gemini-2.5-pro", "nobody-knows-it"])
def test_the_beta_is_nothing_to_other_models(model: str) -> None:
    settings = Settings(compaction=CompactionSettings(betas=(BETA,)))

    assert order_by(settings, model).limit == order_by(Settings(), model).limit


# What is in use


@pytest.mark.claim("S4.9")
def test_an_answer_has_16384_tokens_kept_free() -> None:
    assert PreserveZone().max_output_tokens == ContextBudget(1).max_output_tokens == 16_384
    used = PreserveZone().budget(window(1_000, in_use=1_000)).used
    assert used == 1_000 + 16_384


@pytest.mark.claim("S4.10", "S4.11", "S4.12")
@pytest.mark.parametrize(
    ("messages", "overflows", "part", "available"),
    [(699, False, 0.999, 1), (700, False, 1.0, 0), (701, True, 1.001, 0), (0, False, 0.3, 700)],
)
def test_a_context_is_as_full_as_all_that_is_in_it(
    messages: int, overflows: bool, part: float, available: int
) -> None:
    budget = ContextBudget(1_000, 100, messages, 200)

    assert budget.is_overflow is overflows
    assert budget.utilisation == part
    assert budget.available == available


@pytest.mark.claim("S4.14", "S4.15", "S4.41")
@pytest.mark.parametrize(
    ("used", "should", "must"),
    [
        (800, False, False),
        (801, True, False),
        (810, True, False),
        (950, True, False),
        (951, True, True),
        (2_000, True, True),
    ],
)
def test_it_fires_strictly_above_80_percent_and_is_critical_above_95(
    used: int, should: bool, must: bool
) -> None:
    view = window(200, used - 200, trigger=Trigger.THRESHOLD, in_use=used)
    budget = POLICY.budget(view)

    assert (POLICY.should_compact(budget), POLICY.must_compact(budget)) == (should, must)
    assert POLICY.fires(view) is should
    assert bool(POLICY.plan(view)) is should


@pytest.mark.claim("S4.41")
def test_a_loop_compacts_above_80_percent(session: StoredSession) -> None:
    loop = session.loop(policy=POLICY, limit=LIMIT, summarisers=[Scripted(briefly)])
    while session.view().tokens <= 0.80 * LIMIT:
        assert loop.prepare().boundary is None
        session.append(Block.user("words " * 60))

    assert loop.prepare().boundary is not None


# The split


@pytest.mark.claim("S4.18", "S4.23", "S4.48")
def test_the_view_is_the_summary_and_the_preserved_zone_word_for_word(
    session: StoredSession,
) -> None:
    before = talk(session, 12).view()

    view = compacted(session)

    assert view.boundary is not None
    assert view.summary is not None
    split = view.boundary.first_kept
    assert words_of(view) == [one for one in words_of(before) if one[0] >= split]
    assert view.summary.covers == Ranges.span(1, split - 1)
    first, *rest = render(view, "anthropic")["messages"]
    assert recognised(str(first["content"][0]["text"])) is not None
    assert not any("<conversation-summary" in str(message) for message in rest)


@pytest.mark.claim("S4.19")
def test_the_summary_is_asked_for_once_of_all_that_leaves(session: StoredSession) -> None:
    asked: list[Material] = []

    def writes(material: Material) -> Draft:
        asked.append(material)
        return briefly(material)

    before = talk(session, 12).view()
    view = compacted(session, says=writes)

    (material,) = asked
    stays = words_of(view)
    leaves = [(item.position, item.block.text) for item in material.gone]
    assert leaves == [one for one in words_of(before) if one not in stays]
    assert ClaudeSdkForm().asked(material)[0].items == material.gone


@pytest.mark.claim("S4.20")
def test_what_was_there_before_is_what_all_messages_take(session: StoredSession) -> None:
    before = talk(session, 12).view()

    outcome = session.compact(POLICY, limit=LIMIT)

    assert outcome.pre_tokens == before.tokens
    assert session.view().boundary.pre_tokens == before.tokens  # type: ignore[union-attr]


@pytest.mark.claim("S4.22")
def test_a_summary_has_the_role_that_a_provider_takes_and_passes_for_nobodys_words(
    session: StoredSession,
) -> None:
    """Ruled: Anthropic has no system messages among the others, so that it is a marked user's."""
    view = compacted(talk(session, 12))

    anthropic = render(view, "anthropic")["messages"][0]
    chat = render(view, "openai-chat")["messages"][0]
    assert anthropic["role"] == "user"
    for message in (anthropic, chat):
        content = message["content"]
        text = content if isinstance(content, str) else content[0]["text"]
        read = recognised(text)
        assert read is not None
        assert view.summary is not None
        assert read.text == view.summary.text


@pytest.mark.claim("S4.26")
@pytest.mark.parametrize("limit", [0, 1, 2, 3, 7, 999, 1_411, 200_000, 1_000_000])
def test_the_zone_is_40_percent_of_the_limit_in_whole_tokens(limit: int) -> None:
    assert PreserveZone().preserve_budget(limit) == limit * 40 // 100


@pytest.mark.claim("S4.27")
@pytest.mark.parametrize(
    ("sizes", "cut"),
    [
        ((100, 100, 200, 200), 3),
        ((100, 100, 201, 200), 4),
        ((500, 100, 100), 2),
        ((100, 500, 100, 300), 3),
        ((100, 100, 401), 4),
    ],
)
def test_the_message_that_exceeds_the_zone_leaves(sizes: tuple[int, ...], cut: int) -> None:
    plan = POLICY.plan(window(*sizes))

    assert plan is not None
    assert plan.cut == cut


@pytest.mark.claim("S4.28")
@pytest.mark.parametrize("sizes", [(), (0,), (400,), (100, 100, 200)])
def test_where_all_fits_the_zone_nothing_is_split_off(sizes: tuple[int, ...]) -> None:
    assert POLICY.split(window(*sizes)) == 0
    assert POLICY.zones(window(*sizes)).compact == ()


@pytest.mark.claim("S4.42")
@pytest.mark.parametrize("tokens", [5, 60, 200, 700])
def test_about_40_percent_are_preserved(session: StoredSession, tokens: int) -> None:
    compacted(talk(session, 9_000 // (4 * tokens), tokens), says=lambda _: Draft("Said."))

    view = session.view()
    kept = sum(entry.tokens for entry in view.entries)
    largest = max(entry.tokens for entry in view.entries)
    # One message more leaves, and a repair of a parted pair moves the cut by one.
    assert 0.4 * LIMIT - 3 * largest <= kept <= 0.4 * LIMIT + largest


@pytest.mark.claim("S4.49")
def test_after_several_compactions_there_is_one_summary_at_the_front(
    session: StoredSession,
) -> None:
    for _ in range(3):
        view = compacted(talk(session, 10))

        messages = render(view, "anthropic")["messages"]
        assert ["<conversation-summary" in str(message) for message in messages].count(True) == 1
        assert "<conversation-summary" in str(messages[0])
        assert view.summary is not None
        assert view.boundary is not None
        assert view.summary.covers == Ranges.span(1, view.boundary.first_kept - 1)


@pytest.mark.claim("S4.52")
@pytest.mark.parametrize("steps_back", [False, True])
@pytest.mark.parametrize("tokens", range(90, 230, 10))
def test_what_is_kept_never_begins_with_a_result(
    session: StoredSession, tokens: int, steps_back: bool
) -> None:
    policy = replace(POLICY, steps_back=steps_back)

    view = compacted(talk(session, 9_600 // (4 * tokens), tokens), policy)

    assert view.entries[0].block.kind is not Kind.TOOL_RESULT
    calls = {entry.position for entry in view.entries}
    assert all(entry.call in calls for entry in view.entries if entry.call is not None)


# The summary


@pytest.mark.claim("S4.29", "S4.50")
@pytest.mark.parametrize("model", [*LISTED[:2], "anthropic:claude-opus-4-5"])
def test_a_cheaper_model_than_the_agents_writes_summaries(model: str) -> None:
    settings = Settings(summary=SummarySettings(chain=("llm",)))

    (writer,) = order_by(settings, model).chain.summarisers

    assert isinstance(writer, Llm)
    assert str(writer.model).startswith("anthropic:claude-haiku-")


@pytest.mark.claim("S4.31", "S4.43")
def test_five_things_are_to_be_preserved() -> None:
    sections = [section.lower() for section in ClaudeSdkForm().sections]

    assert len(set(sections)) == 5
    for word in ("decision", "files", "pending", "preferences", "outputs"):
        assert any(word in section for section in sections), word


@pytest.mark.claim("S4.33")
@pytest.mark.parametrize(("length", "is_shortened"), [(1_999, 0), (2_000, 0), (2_001, 1)])
def test_each_message_is_shown_up_to_2000_characters(length: int, is_shortened: int) -> None:
    said = ClaudeSdkForm().said([Item(1, Block.user("é" * length), 1, 1)])

    assert said == f"[user]: {'é' * (2_000 if is_shortened else length)}{'...' * is_shortened}\n\n"


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

    assert ClaudeSdkForm().said(items) == (
        "[system]: Be brief.\n\n[user]: Read it.\n\n"
        '[assistant]: I do.\nread({"path": "a.py"})\n\n[tool]: It is empty.\n\n'
    )
    assert "read(" not in ClaudeSdkForm(shows_calls=False).said(items)


@pytest.mark.claim("S4.30")
def test_a_summary_may_have_4096_tokens() -> None:
    plan = PreserveZone().plan(window(500, 500))

    assert plan is not None
    assert plan.summary_tokens == 4_096
    material = Material(gone=(), covers=Ranges(), budget=plan.summary_tokens)
    assert plan.form is not None
    assert plan.form.asked(material) == ()
    items = window(500).items
    (asked,) = plan.form.asked(replace(material, gone=tuple(items), previous="Before."))
    assert (asked.part, asked.budget, asked.previous) == (Part.HISTORY, 4_096, "Before.")


@pytest.mark.claim("S4.51")
def test_where_no_summary_can_be_had_what_would_be_summed_up_leaves_all_the_same(
    session: StoredSession,
) -> None:
    before = talk(session, 12).view()
    wanted = session.compact(POLICY, limit=LIMIT, dry_run=True)

    view = compacted(session, says=fails)

    assert view.boundary is not None
    assert words_of(view) == [one for one in words_of(before) if one[0] in wanted.kept]
    assert view.summary is not None
    assert view.summary.summariser == "notice"
    assert view.summary.text.startswith("[Context Pruned: Removed ")
    assert session.recall(before.entries[0].position)[0].block.text.startswith("0 please")


# Estimates


@pytest.mark.claim("S4.35", "S4.36")
@pytest.mark.parametrize(
    ("text", "tokens"), [("", 0), ("abc", 0), ("abcd", 1), ("a" * 4_003, 1_000), ("é🙂", 1)]
)
def test_a_message_is_a_fourth_of_its_bytes_and_four_tokens_more(text: str, tokens: int) -> None:
    policy = PreserveZone(unit="bytes")
    message = (Item(1, Block.user(text), 1, 0),)

    assert policy.text_size(message) == tokens
    assert policy.budget(Window(items=message * 3, after=3, limit=1)).message_tokens == 3 * (
        tokens + 4
    )


@pytest.mark.claim("S4.37")
def test_another_counter_gives_another_split() -> None:
    blocks = [Block.user("お誕生日おめでとう" * 40), *[Block.user("word " * 60)] * 20]

    def split(counter: str) -> int:
        count = counter_named(counter).count
        items = tuple(Item(at, block, 1, count(block)) for at, block in enumerate(blocks, 1))
        return POLICY.split(Window(items=items, after=len(items), limit=2_000))

    assert split("cl100k_base") < split("chars/4")
    assert split("goat") != split("cl100k_base")
    assert {CharsPerToken.name, *ESTIMATORS} >= {"chars/4", "goat"}


@pytest.mark.claim("S4.46")
@pytest.mark.parametrize("vocabulary", ["cl100k_base", "o200k_base"])
def test_an_estimate_is_within_20_percent_of_what_a_tokenizer_counts(vocabulary: str) -> None:
    """Of what a coding agent reads: this project's own pages and code, all in all."""
    root = Path(__file__).parents[2]
    pages = [root / "README.md", *root.glob("docs/*.md"), *root.glob("domain/**/*.py")]
    texts = [page.read_text(encoding="utf-8") for page in pages]
    items = [Item(at, Block.user(text), 1, 1) for at, text in enumerate(texts, 1)]
    assert len(items) > 50

    estimated = (
        PreserveZone(unit="bytes").budget(Window(items=items, after=1, limit=1)).message_tokens
    )

    counted = sum(map(counter_named(vocabulary).count_text, texts))
    assert 0.8 <= estimated / counted <= 1.2


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


@pytest.mark.claim("S4.38", "S4.39", "S4.40")
@pytest.mark.parametrize(("recent", "pruned"), [(0, 3), (2, 2), (3, 1), (4, 1), (99, 0), (-3, 3)])
def test_results_over_1000_characters_are_pruned_but_for_the_newest_messages(
    recent: int, pruned: int
) -> None:
    lengths = (1_001, 1_000, 5_000, 0, 1_001)
    blocks: list[AnyBlock] = [ToolResult(tool_call_id="c", content="x" * n) for n in lengths]
    items = tuple(Item(at, block, 1, 300) for at, block in enumerate(blocks, 1))
    view, before = Window(items=items, after=5, limit=1_000), tuple(items)

    trims = PreserveZone(preserve_recent=recent).trims(view)

    assert len(trims) == pruned
    assert all((trim.head, trim.tail) == (200, 0) for trim in trims)
    assert view.items is items
    assert items == before
