"""What seed 002 promises, claim by claim, kept by the store, the loop and the command line."""

import asyncio
import threading
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Any

import pytest
from clock import Clock
from dialects.tunacode import (
    CompactionRecord,
    injected,
    loaded,
    messages_json,
    saved,
)
from dialects.tunacode_requests import Controller, Reason, Status
from summariser_talk import always, items_of, material_of

import cutbank
from cutbank import Block, SessionStore, StoredSession, ToolCall, ToolResult
from cutbank.adapters.interfaces.command_line.cli import main
from cutbank.adapters.models.summarizers.llm_summarizer import Llm
from cutbank.adapters.runtime.compaction.from_settings import order_by
from cutbank.adapters.runtime.compaction.status_listener import status_of
from cutbank.adapters.settings.compaction_settings import PinSettings
from cutbank.adapters.settings.settings import Settings
from cutbank.adapters.settings.summary_settings import SummarySettings
from cutbank.domain.compaction_events import CompactionFailed, Trigger
from cutbank.domain.errors import (
    CompactionCancelledError,
    ContextOverflowError,
    NothingToCompactError,
)
from cutbank.domain.hooks import Happening, Moment
from cutbank.domain.item import Item
from cutbank.domain.overflow import SETS, recognised
from cutbank.domain.policies.catalog import policy_named
from cutbank.domain.policies.retention_window import RetentionWindow
from cutbank.domain.ranges import Ranges
from cutbank.domain.session_events import Usage
from cutbank.domain.summaries.forms.tunacode import CLIPPED, TunacodeForm
from cutbank.domain.summaries.summarizer import Draft, Material, Part
from cutbank.domain.window import Window
from cutbank.projections.rendering.catalog import render

LIMIT = 8_000
TUNACODE: dict[str, Any] = {
    "policy": "tunacode",
    "settings": {"keep_recent_tokens": 2_000, "reserve_tokens": 1_000},
}
TOO_LONG = {"error": {"message": "This model's Maximum Context Length is 8000 tokens"}}
SUMMARY = """## Goal
- find out why the river is brown (#3)

## Progress
### Done
- asked again and again (#5)"""


@pytest.fixture
def engine() -> str:
    """What a claim says of a store it says of each database; other tests hold them equal."""
    return "sqlite"


@dataclass(frozen=True)
class Writes:
    """A summariser that answers as it is told."""

    says: Callable[[Material], Draft | Awaitable[Draft]] = lambda _: Draft(SUMMARY)
    name: str = "scripted"

    def summarise(self, material: Material) -> Draft | Awaitable[Draft]:
        return self.says(material)


def away(_: Material) -> Draft:
    raise RuntimeError("the provider is away")


def talk(session: StoredSession, turns: int) -> StoredSession:
    """Turns of about 200 tokens, and one more prompt."""
    for turn in range(turns):
        session.append(Block.user(f"question {turn} " + "why is it brown? " * 23))
        session.append(Block.assistant(f"answer {turn} " + "silt, more silt. " * 23))
    session.append(Block.user("and now?"))
    return session


def seen(*blocks: Any, sizes: tuple[int, ...] = (), **more: Any) -> Window:
    """A window of these blocks, ten tokens each where no size is given."""
    items = tuple(
        replace(item, tokens=size, is_unfinished=item.block.text == "half")
        for item, size in zip(items_of(*blocks), sizes or (10,) * len(blocks), strict=True)
    )
    given = {"limit": 100, "trigger": Trigger.IDLE, **more}
    return Window(items=items, after=len(items), **given)


def cut(window: Window, keep: int = 20, **settings: Any) -> int | None:
    return RetentionWindow(keep_recent_tokens=keep, reserve_tokens=0, **settings).cut(window)


U, A = Block.user("words"), Block.assistant("words")
HALF = Block.assistant("half")
CALL, RESULT = ToolCall(tool_call_id="c", name="read"), ToolResult(tool_call_id="c", content="x")
RECORD = CompactionRecord("SUM", 3, 900, 120, 2, None, "2026-01-02T03:04:05+00:00")


@pytest.fixture
def told(store: SessionStore) -> list[Happening]:
    heard: list[Happening] = []
    store.listeners.append(heard.append)
    return heard


def moments(told: list[Happening], moment: Moment) -> int:
    return sum(happening.moment is moment for happening in told)


# The record


@pytest.mark.claim("S2.1")
def test_a_record_goes_into_json_and_comes_back() -> None:
    assert CompactionRecord.from_dict(RECORD.to_dict()) == RECORD
    earlier = replace(RECORD, previous_summary="before")
    assert CompactionRecord.from_dict(earlier.to_dict()) == earlier


@pytest.mark.parametrize(
    ("field", "value", "error"),
    [
        ("summary", None, "'summary' must be a string"),
        ("compacted_message_count", True, "'compacted_message_count' must be an int"),
        ("tokens_before", "9", "'tokens_before' must be an int"),
        ("tokens_after", -1, "'tokens_after' must be >= 0"),
        ("compaction_count", 0, "'compaction_count' must be > 0"),
        ("previous_summary", 1, "'previous_summary' must be a string or null"),
        ("last_compacted_at", 1.5, "'last_compacted_at' must be a string"),
    ],
)
def test_a_record_that_cannot_be_is_refused_by_its_field(
    field: str, value: Any, error: str
) -> None:
    with pytest.raises((TypeError, ValueError), match=error):
        CompactionRecord.from_dict({**RECORD.to_dict(), field: value})


@pytest.mark.claim("S2.22", "S2.23", "S2.24")
def test_a_saved_session_has_its_record_or_none(database: str, clock: Clock) -> None:
    with cutbank.open(database, clock=clock) as store:
        session = talk(store.session("s"), 30)
        session.compact(**TUNACODE, summariser=Writes())
        before = session.view()
        talk(store.session("never"), 1)

    with cutbank.open(database, clock=clock) as store:
        view = store.session("s").view()
        never = store.session("never").view()

    assert view.boundary is not None
    assert view.summary is not None
    assert (view.boundary, view.summary, view.entries) == (
        before.boundary,
        before.summary,
        before.entries,
    )
    record = CompactionRecord.of(view.boundary, view.summary, 40, None)
    assert loaded(saved(record)) == record
    assert record.summary == SUMMARY
    assert (never.boundary, never.summary) == (None, None)
    assert saved(None) == {"compaction": None}
    assert loaded({"messages": []}) is None
    assert loaded({"compaction": None}) is None
    with pytest.raises(TypeError, match="must be a dict, got list"):
        loaded({"compaction": []})


@pytest.mark.claim("S2.25")
def test_what_was_compacted_is_kept_beside_the_conversation(session: StoredSession) -> None:
    talk(session, 30)
    before = session.position

    session.compact(**TUNACODE)

    assert session.position == before
    assert session.lineages == ["main"]


@pytest.mark.claim("S2.42", "S2.45", "S2.46", "S2.48")
def test_a_compaction_says_what_it_did_in_numbers(session: StoredSession) -> None:
    before = talk(session, 30).view()

    outcome = session.compact(**TUNACODE, summariser=Writes())

    after = session.view()
    assert after.boundary is not None
    assert after.summary is not None
    record = CompactionRecord.of(after.boundary, after.summary, len(outcome.left), RECORD)
    assert record.tokens_before == outcome.pre_tokens
    assert record.tokens_after == outcome.post_tokens < outcome.pre_tokens
    assert record.compacted_message_count == len(before.entries) - len(after.entries) > 0
    assert (record.compaction_count, record.previous_summary) == (3, "SUM")
    assert record.last_compacted_at == after.boundary.timestamp.isoformat()
    # What is recent stays as it was.
    assert after.entries == before.entries[-len(after.entries) :]


# The boundary


@pytest.mark.claim("S2.2", "S2.4")
def test_the_walk_goes_back_from_the_newest_until_enough_is_kept() -> None:
    blocks, sizes = (U, A, U, A, U, A), (1, 2, 3, 4, 5, 6)
    cuts = [cut(seen(*blocks, sizes=sizes), keep) for keep in (0, 6, 7, 11, 12, 15, 16, 20, 21)]
    assert cuts == [6, 6, 5, 5, 4, 4, 3, 2, None]
    # Whatever came before is not looked at.
    assert cut(seen(*blocks, sizes=(10**9, 2, 3, 4, 5, 6)), 7) == 5


@pytest.mark.claim("S2.3")
def test_what_is_before_the_boundary_is_summed_up_and_what_is_behind_it_kept(
    session: StoredSession,
) -> None:
    before = talk(session, 30).view()

    outcome = session.compact(**TUNACODE)

    after = session.view()
    first = outcome.first_kept or 0
    at = [entry.position for entry in before.entries].index(first)
    assert list(outcome.left) == [entry.position for entry in before.entries[:at]]
    assert after.entries == before.entries[at:]
    assert after.summary is not None
    assert not outcome.left - after.summary.covers


@pytest.mark.claim("S2.5", "S2.6", "S2.7")
def test_a_boundary_stands_behind_prompts_and_finished_answers_and_in_no_pair() -> None:
    assert cut(seen(U, A, U, A, A)) == 4  # behind the second prompt
    assert cut(seen(U, A, A, A)) == 3  # behind an answer
    assert cut(seen(U, HALF, A, A)) == 2  # not behind one that was broken off
    assert cut(seen(U, A, CALL, RESULT, A)) == 3  # not between a call and its result
    assert cut(seen(U, CALL, RESULT, RESULT, A)) == 2
    window = seen(U, CALL, RESULT, CALL, RESULT, A, U)
    assert RetentionWindow().valid_cuts(window) == (2, 7, 8)


@pytest.mark.claim("S2.50")
def test_tokens_are_a_quarter_of_the_characters_as_shipped() -> None:
    shipped = policy_named("tunacode@as_shipped", {})
    assert isinstance(shipped, RetentionWindow)
    sizes = {text: shipped.tokens_of(items_of(Block.user(text))) for text in ("", "abc", "abcd")}
    assert sizes == {"": 0, "abc": 0, "abcd": 1}
    assert shipped.tokens_of(items_of(Block.user("é" * 7))) == 1
    # By default they are what the store reckons, as providers count.
    assert RetentionWindow().tokens_of([Item(1, U, 1, 77)]) == 77


# The summary


@pytest.mark.claim("S2.8")
def test_a_result_of_more_than_500_characters_is_clipped() -> None:
    form = TunacodeForm()
    assert form.said(items_of(CALL, result("x" * 500))).endswith("x" * 500)
    assert form.said(items_of(CALL, result("x" * 501))).endswith(f" {'x' * 500}{CLIPPED}")


def result(text: str) -> ToolResult:
    return ToolResult(tool_call_id="c", content=text)


@pytest.mark.claim("S2.9")
def test_a_conversation_is_written_a_line_a_message() -> None:
    call = ToolCall(tool_call_id="c", name="read", arguments={"z": 1, "a": "ä"}, message_id="m")
    said = TunacodeForm().said(
        items_of(
            Block.user(" Read it. "),
            Block.assistant("I do.", message_id="m"),
            call,
            result("line"),
            Block.user("   "),
            Block.developer("Be quick."),
        )
    )

    assert said.split("\n") == [
        "[User]: Read it.",
        "[Assistant]: I do.",
        '[Tool Call]: read({"a": "\\u00e4", "z": 1})',
        "[Tool Result]: line",
        "[Developer]: Be quick.",
    ]


@pytest.mark.claim("S2.10")
def test_one_request_writes_the_summary(session: StoredSession) -> None:
    model = always(SUMMARY)
    talk(session, 30)

    outcome = session.compact(**TUNACODE, summariser=Llm(model.model, by_form=True))

    assert outcome.summariser == "llm"
    assert len(model.prompts) == 1
    (asked,) = TunacodeForm().asked(material_of(items_of(U, A)))
    assert asked.part is Part.HISTORY
    assert TunacodeForm().joined({Part.HISTORY: " text\n"}, material_of(())) == "text"


@pytest.mark.claim("S2.11")
def test_the_agents_own_model_can_write_its_summaries() -> None:
    own = "anthropic:claude-opus-4-5"
    settings = Settings(summary=SummarySettings(chain=("llm",), model=own))

    (writer, *_) = order_by(settings, "claude-opus-4-5").chain.summarisers

    assert isinstance(writer, Llm)
    assert writer.model == own


@pytest.mark.claim("S2.47")
def test_the_summary_has_the_sections_that_the_plan_names(session: StoredSession) -> None:
    assert TunacodeForm().sections == (
        "Goal",
        "Constraints & Preferences",
        "Progress: Done",
        "Progress: In Progress",
        "Key Decisions",
        "Next Steps",
        "Files Touched: Read",
        "Files Touched: Modified",
        "Critical Context",
    )
    model = always(SUMMARY)
    outcome = talk(session, 30).compact(**TUNACODE, summariser=Llm(model.model, by_form=True))

    assert outcome.summary is not None
    assert "## Goal" in outcome.summary
    assert "## Progress" in outcome.summary
    for heading in TunacodeForm().sections:
        assert all(words in model.prompts[0] for words in heading.split(": ")), heading


@pytest.mark.claim("S2.49")
def test_a_summary_is_brought_up_to_date_from_the_one_before(session: StoredSession) -> None:
    model = always(SUMMARY)
    for _ in range(2):
        talk(session, 30).compact(**TUNACODE, summariser=Llm(model.model, by_form=True))

    assert len(model.prompts) == 2
    assert "find out why the river is brown" in model.prompts[1]
    form, items = TunacodeForm(), items_of(U, A)
    for previous, given in ((None, None), ("  \n", None), (" text ", "text")):
        (asked,) = form.asked(material_of(items, previous=previous))
        assert asked.previous == given


@pytest.mark.claim("S2.21")
def test_where_no_summary_can_be_had_the_history_stays_and_the_log_says_why(
    session: StoredSession, store: SessionStore, told: list[Happening]
) -> None:
    before = talk(session, 30).view()
    loop = session.loop(**TUNACODE, limit=LIMIT, summarisers=[Writes(away)])

    view = loop.prepare()

    assert (view.entries, view.boundary) == (before.entries, None)
    assert moments(told, Moment.FAILED) == 1
    chain = store.events.lineage_chain("default", "a session", "main")
    failed = [event.event for event in store.events.read(chain, Ranges.span(1, 99))]
    assert any(
        isinstance(event, CompactionFailed) and "the provider is away" in event.reason
        for event in failed
    )
    # It is not paid for again before each call, but once there is more to gain.
    assert loop.prepare() == view
    assert moments(told, Moment.REQUESTED) == 1
    talk(session, 4)
    loop.prepare()
    assert moments(told, Moment.REQUESTED) == 2
    # Whoever cares more for room has a summary by rules stand in.
    settings = {**TUNACODE["settings"], "on_failure": "extractive"}
    stood_in = session.compact("tunacode", settings=settings, summariser=Writes(away))
    assert stood_in.summariser == "extractive"
    assert "the provider is away" in stood_in.rejected[0]


# The trigger


@pytest.mark.claim("S2.14", "S2.15")
def test_it_compacts_above_the_limit_less_reserve_and_what_is_kept() -> None:
    policy = RetentionWindow(keep_recent_tokens=20, reserve_tokens=30)
    fired = {used: policy.fires(seen(U, limit=100, in_use=used)) for used in (49, 50, 51)}

    assert fired == {49: False, 50: False, 51: True}
    assert not policy.fires(seen(U, limit=0, in_use=51))
    assert policy.fires(seen(U, limit=40, in_use=1))  # less than nothing is left


@pytest.mark.claim("S2.18", "S2.19")
def test_a_forced_compaction_asks_for_no_threshold_and_always_compacts(
    session: StoredSession,
) -> None:
    talk(session, 4)
    assert session.loop(policy="tunacode", limit=200_000).prepare().boundary is None

    # There is far less than the plan's 20,000 tokens: it cuts as late as it may.
    outcome = session.compact("tunacode")

    assert outcome.compacted
    assert [entry.text for entry in session.view().entries] == ["and now?"]
    with pytest.raises(NothingToCompactError):
        session.compact("tunacode@as_shipped")


@pytest.mark.claim("S2.16", "S2.17", "S2.27")
def test_one_request_is_compacted_once_and_the_next_again(
    session: StoredSession, told: list[Happening]
) -> None:
    talk(session, 30)
    loop = session.loop(**TUNACODE, limit=LIMIT)

    views = [loop.prepare() for _ in range(4)]

    assert all(view == views[0] for view in views)
    assert moments(told, Moment.RECORDED) == 1
    loop.record_call(views[0])
    talk(session, 40)
    loop.prepare()
    assert moments(told, Moment.RECORDED) == 2


@pytest.mark.claim("S2.16", "S2.17")
def test_skips_and_failures_use_a_request_up_as_shipped() -> None:
    shipped = policy_named("tunacode@as_shipped", {"keep_recent_tokens": 0, "reserve_tokens": 0})
    assert isinstance(shipped, RetentionWindow)

    def writes(said: str, previous: str | None) -> str:
        raise RuntimeError(said + str(previous))

    window = seen(Block.user("w" * 80), A, trigger=Trigger.THRESHOLD, limit=10)
    controller = Controller(shipped, writes)
    off = replace(controller, auto=False)

    failed = controller.checked(window, RECORD)
    again = controller.checked(window, RECORD, was_tried=failed.was_tried)

    assert (failed.status, failed.reason) == (Status.FAILED, Reason.FAILED)
    assert (failed.kept, failed.record) == (window.items, RECORD)
    assert again.reason is Reason.ALREADY
    assert controller.checked(window, None).reason is Reason.FAILED  # at the next request
    assert controller.checked(window, None, may_by_threshold=False).reason is Reason.NOT_ALLOWED
    assert off.checked(window, None).reason is Reason.AUTO_OFF
    assert not off.checked(window, None).was_tried
    assert off.checked(replace(window, trigger=Trigger.OVERFLOW), None).reason is Reason.FAILED


# In the loop


@pytest.mark.claim("S2.20", "S2.26", "S2.32", "S2.33")
def test_a_request_is_compacted_before_the_agent_is_given_its_messages(
    session: StoredSession,
) -> None:
    before = talk(session, 30).view()

    view = session.loop(**TUNACODE, limit=LIMIT).prepare()

    assert view.boundary is not None
    assert view.boundary.trigger is Trigger.THRESHOLD
    assert len(view.entries) < len(before.entries)
    assert len(render(view, "anthropic")["messages"]) < len(render(before, "anthropic")["messages"])
    # What comes next is counted from what was left.
    answer = session.append(Block.assistant("silt"))
    later = session.view().entries
    assert [entry.position for entry in later[len(view.entries) :]] == [answer.last]


@pytest.mark.claim("S2.28")
def test_what_is_sent_follows_what_is_decided_meanwhile(session: StoredSession) -> None:
    talk(session, 30)
    loop = session.loop(**TUNACODE, limit=200_000)
    assert loop.prepare().summary is None

    session.compact(**TUNACODE, summariser=Writes())
    compacted = loop.prepare()
    session.revert()

    assert compacted.summary is not None
    assert compacted.summary.text == SUMMARY
    assert loop.prepare().summary is None


@pytest.mark.claim("S2.29", "S2.30", "S2.31")
def test_the_summary_stands_in_front_as_a_user_message_and_in_no_log(
    session: StoredSession,
) -> None:
    talk(session, 30).compact(**TUNACODE, summariser=Writes())

    view = session.view()
    messages = render(view, "openai-chat")["messages"]

    assert messages[0]["role"] == "user"
    assert SUMMARY in str(messages[0]["content"])
    assert str(messages).count("find out why the river is brown") == 1
    assert render(session.view(), "openai-chat")["messages"] == messages
    # As it was shipped: in front, once, and only of what is sent.
    kept = messages_json(items_of(U, A))
    sent = injected(kept, RECORD)
    assert sent[0]["content"][0]["text"] == "[Compaction summary]\n\nSUM"
    assert sent[0]["role"] == "user"
    assert sent[0]["compaction_summary"] is True
    assert sent[1:] == kept == messages_json(items_of(U, A))
    assert injected(sent, RECORD) == sent
    assert injected(kept, None) == kept == injected(kept, replace(RECORD, summary=" "))
    # No block of the session holds it.
    reader = session.store.events
    chain = reader.session_chain("default", "a session")
    events = reader.read(chain, Ranges.span(1, session.position))
    assert all("river is brown (#3)" not in str(recorded.event) for recorded in events)


# After a refusal


@pytest.mark.claim("S2.34")
def test_an_overflow_is_known_by_its_words_in_any_case() -> None:
    for text in ("Context_Length_Exceeded", "the MAXIMUM CONTEXT LENGTH is 8192 tokens"):
        assert recognised({"error": {"message": text}}) is not None
        assert SETS["tunacode"](text)
    assert not SETS["tunacode"]("rate limit")


@pytest.mark.claim("S2.35")
def test_after_an_overflow_it_compacts_and_there_is_one_more_try(
    session: StoredSession, told: list[Happening]
) -> None:
    talk(session, 30)
    loop = session.loop(**TUNACODE, limit=200_000)
    before = loop.prepare()

    view = loop.overflowed(TOO_LONG)

    assert view.boundary is not None
    assert view.boundary.trigger is Trigger.OVERFLOW
    assert view.tokens < before.tokens
    assert moments(told, Moment.RECORDED) == 1


@pytest.mark.claim("S2.12", "S2.13", "S2.36")
def test_a_second_overflow_says_how_much_there_was_and_what_helps(session: StoredSession) -> None:
    talk(session, 30)
    loop = session.loop(**TUNACODE, limit=LIMIT, model="some-model")
    view = loop.overflowed(TOO_LONG)

    with pytest.raises(ContextOverflowError) as caught:
        loop.overflowed(TOO_LONG)

    error = caught.value
    assert error.estimated_tokens == error.tokens
    assert error.tokens is not None
    assert error.tokens >= view.tokens
    assert (error.max_tokens, error.model) == (LIMIT, "some-model")
    for command in ("cutbank compact", "/compact", "/clear", "/model"):
        assert command in str(error)
        assert any(command in hint for hint in error.hints)


@pytest.mark.claim("S2.37")
def test_an_error_about_something_else_is_raised_and_nothing_is_compacted(
    session: StoredSession, told: list[Happening]
) -> None:
    loop = talk(session, 30).loop(**TUNACODE, limit=LIMIT)

    with pytest.raises(RuntimeError, match="rate limit"):
        loop.overflowed(RuntimeError("rate limit reached"))

    assert told == []


# Synchronous, and never after an answer


@pytest.mark.claim("S2.51")
def test_a_compaction_is_over_when_it_returns(session: StoredSession) -> None:
    talk(session, 30)
    threads = set(threading.enumerate())
    loop = session.loop(**TUNACODE, limit=LIMIT)

    view = loop.prepare()

    assert loop.habits.prepare_at is None  # by default nothing is written ahead
    assert view.boundary is not None
    assert not session.store.preparations.is_at(loop._lineage_id)
    assert {one for one in set(threading.enumerate()) - threads if not one.daemon} == set()


@pytest.mark.claim("S2.52")
def test_nothing_is_compacted_behind_an_answer(
    session: StoredSession, told: list[Happening]
) -> None:
    loop = session.loop(**TUNACODE, limit=LIMIT)
    view = loop.prepare()
    talk(session, 30)
    loop.record_call(view, usage=Usage(input=LIMIT, output=100), stop_reason="end_turn")

    assert told == []
    assert session.view().boundary is None
    assert loop.prepare().boundary is not None  # but before the next


@pytest.mark.claim("S2.53")
def test_cancelling_reaches_whoever_writes_the_summary(session: StoredSession) -> None:
    writing, stopped = threading.Event(), threading.Event()

    async def never(_: Material) -> Draft:
        writing.set()
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()
        raise AssertionError("unreachable")

    before = talk(session, 30).view()
    loop = session.loop(**TUNACODE, limit=LIMIT, summarisers=[Writes(never)])
    caught: list[CompactionCancelledError] = []

    def prepares() -> None:
        try:
            loop.prepare()
        except CompactionCancelledError as error:
            caught.append(error)

    agent = threading.Thread(target=prepares)
    agent.start()
    assert writing.wait(30)
    loop.cancel()
    agent.join(30)

    assert stopped.is_set()
    assert len(caught) == 1
    assert session.view().entries == before.entries


# For people


@pytest.mark.claim("S2.40")
@pytest.mark.parametrize("writer", [Writes(), Writes(away)])
def test_a_meter_is_told_when_a_compaction_begins_and_when_it_is_over(
    store: SessionStore, session: StoredSession, writer: Writes
) -> None:
    shown: list[bool] = []
    store.listeners.append(status_of(shown.append))
    loop = session.loop(**TUNACODE, limit=LIMIT, summarisers=[writer])
    loop.prepare()
    assert shown == []  # as long as there is nothing to do

    talk(session, 30)
    loop.prepare()

    assert shown == [True, False]


@pytest.fixture
def program(
    database: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., tuple[int, str, str]]:
    """The command line over a session `talk` that is large enough."""
    monkeypatch.setenv("CUTBANK_DB", database)
    with cutbank.open(database, settings=Settings(pins=PinSettings(kinds=()))) as store:
        talk(store.session("talk"), 30)

    def run(*words: str) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as exited:
            main(list(words))
        said = capsys.readouterr()
        assert isinstance(exited.value.code, int)
        return exited.value.code, said.out, said.err

    return run


@pytest.mark.claim("S2.39")
def test_shells_complete_the_verb(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("_CUTBANK_COMPLETE", "complete_fish")
    monkeypatch.setenv("_TYPER_COMPLETE_FISH_ACTION", "get-args")
    monkeypatch.setenv("_TYPER_COMPLETE_ARGS", "cutbank comp")

    with pytest.raises(SystemExit) as exited:
        main([])

    assert exited.value.code == 0
    assert capsys.readouterr().out.startswith("compact\t")


BY_HAND = ("compact", "talk", "--policy", "tunacode", "--set", "keep_recent_tokens=2000")


@pytest.mark.claim("S2.38", "S2.41", "S2.43", "S2.44")
def test_compacting_by_hand_says_that_it_runs_and_that_it_is_done(
    program: Callable[..., tuple[int, str, str]], database: str
) -> None:
    code, out, err = program(*BY_HAND)

    assert code == 0
    assert err == "Compacting context...\n"
    assert "talk: compaction 1 on main, by retention-window" in out
    assert " tokens, " in out
    with cutbank.open(database) as store:
        assert store.session("talk").view().boundary is not None


def test_a_program_is_told_nothing_but_json(
    program: Callable[..., tuple[int, str, str]],
) -> None:
    code, out, err = program(*BY_HAND, "--json")

    assert (code, err) == (0, "")
    assert out.startswith("{")


def test_on_a_terminal_the_notice_turns_and_goes(
    program: Callable[..., tuple[int, str, str]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    monkeypatch.setenv("FORCE_COLOR", "1")

    code, _, err = program(*BY_HAND)

    assert code == 0
    assert "Compacting context..." in err
    assert err != "Compacting context...\n"
