"""What may be said, taken back, pinned and hidden: given events, when decided, then events."""

import json
import math
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

import pytest
from hypothesis import given as for_all
from hypothesis import strategies as st

from cutbank.domain import session_events as events
from cutbank.domain.blocks import AnyBlock, Block, BlockKind, ToolCall, ToolResult
from cutbank.domain.errors import (
    DuplicateToolCallError,
    InvalidPositionError,
    OrphanToolResultError,
    SessionClosedError,
)
from cutbank.domain.event import MAX_COUNT, Event, dump_state, load_state
from cutbank.domain.ranges import Ranges
from cutbank.domain.session import Session, SessionState, derive_session_id

NOW = datetime(2026, 1, 1, tzinfo=UTC)
ENVELOPE = {"originator_id", "originator_version", "timestamp", "subject"}
OPENED = {"key": "k", "namespace": "n"}

Fact = tuple[type[Event], dict[str, Any]]


@dataclass
class Given:
    """A session to which these facts happened."""

    facts: tuple[Fact, ...]

    def when(self, decide: Callable[[Session], object]) -> list[Fact]:
        """What the decision records."""
        session = self.session()
        decide(session)
        return [fact_of(event) for event in session.collect_events()]

    def session(self) -> Session:
        session = blank()
        for version, (kind, fields) in enumerate(self.facts, 1):
            envelope = {"originator_version": version, "timestamp": NOW, "subject": "s"}
            session.evolve(kind(originator_id=session.id, **envelope, **fields))
        return session


def given(*facts: Fact) -> Given:
    return Given((fact(events.SessionOpened, **OPENED), *facts))


def fact(kind: type[Event], **fields: Any) -> Fact:
    return kind, fields


def fact_of(event: Event) -> Fact:
    """The event without its envelope and without what was left at its default."""
    known = type(event).model_fields
    return type(event), {
        name: value
        for name in known
        if name not in ENVELOPE and (value := getattr(event, name)) != known[name].default
    }


def blank() -> Session:
    state = SessionState()
    return Session(derive_session_id("n", "k"), version=0, state=state, subject="s", clock=now)


def now() -> datetime:
    return NOW


def appended(block: AnyBlock, turn: int = 1) -> Fact:
    return fact(events.BlockAppended, block=block, turn=turn)


def said(text: str, turn: int = 1) -> Fact:
    return appended(Block.user(text), turn)


def called(name: str, turn: int = 1) -> Fact:
    return fact(events.ToolCalled, block=call(name), turn=turn)


def returned(name: str, at: int, turn: int = 1) -> Fact:
    return fact(events.ToolReturned, block=result(name), turn=turn, call=at)


def turn(number: int) -> Fact:
    return fact(events.TurnStarted, turn=number)


def call(name: str) -> ToolCall:
    return ToolCall(tool_call_id=name, name="tool")


def result(name: str) -> ToolResult:
    return ToolResult(tool_call_id=name, content="done")


def test_a_session_opens_at_position_1_in_a_stream_of_its_own() -> None:
    names = [("n", "k"), ("a", "b"), ("a:b", ""), ("", "a:b"), ("a", ":b"), ("b", "a")]
    session = Session.open("n", "k", clock=now, title="t")

    assert session.version == 1
    assert session.id == derive_session_id("n", "k")
    assert len({derive_session_id(*name) for name in names}) == len(names)
    assert session.subject == "n/k"
    assert [fact_of(event) for event in session.collect_events()] == [
        fact(events.SessionOpened, **OPENED, title="t")
    ]
    assert session.collect_events() == []


def test_words_open_a_turn_unless_they_go_on_with_a_prompt() -> None:
    prompt = [turn(1), said("hi")]
    pieces = [BlockKind.IMAGE, BlockKind.DOCUMENT, BlockKind.DEVELOPER, BlockKind.NOTE]
    opening: list[tuple[int | None, list[Fact]]] = [
        (1, []),
        (None, prompt),
        (2, [*prompt, appended(Block.assistant("hello"))]),
        (2, [*prompt, called("c")]),
        (2, [*prompt, fact(events.TurnEnded, turn=1)]),
        *((None, [*prompt, appended(Block(kind=kind, text="piece"))]) for kind in pieces),
    ]

    for number, facts in opening:
        recorded = given(*facts).when(lambda session: session.append(Block.user("so")))
        assert recorded == ([turn(number)] if number else []) + [said("so", number or 1)]


def test_what_the_model_does_before_anybody_spoke_is_in_no_turn() -> None:
    block = Block.assistant("hello")
    assert given().when(lambda session: session.append(block)) == [appended(block, 0)]


def test_a_result_names_the_position_of_its_call() -> None:
    before = given(turn(1), said("hi"), called("a"), called("b"))

    recorded = before.when(
        lambda session: (session.append(result("a")), session.append(result("b")))
    )

    assert recorded == [returned("a", 4), returned("b", 5)]


def test_a_result_must_answer_an_open_call() -> None:
    rows: list[tuple[list[Fact], str]] = [
        ([], r"no open tool call 'c' to answer \(open: none\)"),
        ([called("a"), called("b")], r"no open tool call 'c' to answer \(open: 'a', 'b'\)"),
        ([called("c"), returned("c", 2)], "no open tool call 'c'"),
        ([called("c"), fact(events.BlocksRetracted, positions=Ranges.of([2]))], "no open"),
    ]
    for facts, message in rows:
        with pytest.raises(OrphanToolResultError, match=message):
            given(*facts).when(lambda session: session.append(result("c")))
        with pytest.raises(OrphanToolResultError, match=message):
            given(*facts).when(lambda session: session.cancel_tool_call("c", "gone"))


def test_a_call_is_not_made_twice_while_it_is_open() -> None:
    answered_once = given(called("c", 0), returned("c", 2, 0))

    assert answered_once.when(lambda session: session.append(call("c"))) == [called("c", 0)]
    with pytest.raises(DuplicateToolCallError, match="'c' is already open at #2"):
        given(called("c")).when(lambda session: session.append(call("c")))


def test_an_abandoned_call_is_closed() -> None:
    before = given(called("c", 0))

    recorded = before.when(lambda session: session.cancel_tool_call("c", "it died"))

    abandoned = fact(events.ToolCallAbandoned, tool_call_id="c", reason="it died", turn=0, call=2)
    assert recorded == [abandoned]
    assert given(called("c", 0), abandoned).session().state.open_calls == {}


def change(verb: str, *positions: int) -> Callable[[Session], object]:
    more: tuple[dict[str, int], ...] = ({},) if verb == "retract" else ()
    return lambda session: getattr(session, verb)(Ranges.of(positions), *more)


def test_what_was_said_can_be_pinned_hidden_and_taken_back_where_it_exists() -> None:
    kinds: dict[str, type[Event]] = {
        "pin": events.BlockPinned,
        "unpin": events.BlockUnpinned,
        "hide": events.BlocksHidden,
        "retract": events.BlocksRetracted,
    }
    before = given(said("hi"))
    for verb, kind in kinds.items():
        assert before.when(change(verb, 2)) == [fact(kind, positions=Ranges.of([2]))]
        with pytest.raises(InvalidPositionError, match="#3 does not exist: the session ends at #2"):
            before.when(change(verb, 1, 2, 3))
        with pytest.raises(InvalidPositionError, match="no positions were given"):
            before.when(change(verb))


def test_a_call_whose_result_was_taken_back_is_open_again_unless_another_of_its_id_is() -> None:
    retracted = fact(events.BlocksRetracted, positions=Ranges.of([3]), reopened={"c": 2})
    before = given(called("c"), returned("c", 2), retracted)
    again = given(called("c"), returned("c", 2), called("c"))

    assert before.when(lambda session: session.append(result("c"))) == [returned("c", 2, 0)]
    with pytest.raises(DuplicateToolCallError, match="'c' was made again at #4"):
        again.when(lambda session: session.retract(Ranges.of([3]), {"c": 2}))
    recorded = again.when(lambda session: session.retract(Ranges.span(3, 4), {"c": 2}))
    assert recorded[0][1]["reopened"] == {"c": 2}


EVERY_VERB: list[Callable[[Session], object]] = [
    lambda session: session.append(Block.user("hi")),
    lambda session: session.append(call("c")),
    lambda session: session.cancel_tool_call("c", "r"),
    lambda session: session.set_system_prompt("p"),
    lambda session: session.set_tools([]),
    lambda session: session.set_request_settings({}),
    lambda session: session.end_turn(),
    *(change(verb, 1) for verb in ("pin", "unpin", "hide", "retract")),
    lambda session: session.record_call({"call_id": "m", "position": 1}),
    lambda session: session.record_overflow({"message": "too long"}),
    lambda session: session.close(),
]


def test_nothing_follows_a_close() -> None:
    for decide in EVERY_VERB:
        with pytest.raises(SessionClosedError, match="fork it to go on"):
            given(fact(events.SessionClosed)).when(decide)


def test_a_fork_goes_on_from_its_parents_state() -> None:
    parent = given(turn(1), said("hi"), called("c"), fact(events.SessionClosed)).session()
    fork = events.Fork(namespace="n", key="k", position=4)

    session = Session.fork("n", "f", clock=now, subject="s", fork=fork, at=parent.state)

    assert [fact_of(event) for event in session.collect_events()] == [
        fact(events.SessionOpened, key="f", namespace="n", fork=fork, reopened={"c": 4})
    ]
    assert session.version == 5
    assert not session.state.closed
    assert session.append(result("c")) == 6
    assert session.append(Block.user("go on")) == 8
    session.pin(Ranges.of([3]))
    assert [fact_of(event) for event in session.collect_events()] == [
        returned("c", 4),
        turn(2),
        said("go on", 2),
        fact(events.BlockPinned, positions=Ranges.of([3])),
    ]
    assert parent.state.open_calls == {"c": 4}


def test_the_state_knows_where_the_newest_request_parts_stand() -> None:
    session = given(
        fact(events.SystemPromptSet, text="a"),
        fact(events.ToolsSet, tools=[]),
        fact(events.SystemPromptSet, text="b"),
        fact(events.RequestSettingsSet, settings={}),
    ).session()

    state = session.state
    assert (state.system, state.tools, state.settings) == (4, 3, 5)


def test_what_is_unknown_in_a_carried_state_is_from_the_future() -> None:
    assert load_state(SessionState, {"turn": 3, "moons": 2}) == SessionState(turn=3)


names = st.sampled_from("abc")
blocks: st.SearchStrategy[AnyBlock] = st.one_of(
    st.sampled_from([Block.user("hi"), Block.assistant("words" * 9), Block.note("n")]),
    names.map(call),
    names.map(result),
)
decisions = st.one_of(
    blocks.map(lambda block: lambda session: session.append(block)),
    names.map(lambda name: lambda session: session.cancel_tool_call(name, "r")),
    st.integers(1, 9).map(lambda at: lambda session: session.retract(Ranges.of([at]), {})),
    st.sampled_from(EVERY_VERB[3:-1]),
)
REFUSED = (DuplicateToolCallError, OrphanToolResultError, InvalidPositionError)


@for_all(st.lists(decisions, max_size=30))
def test_live_reloaded_and_carried_states_are_equal(
    told: list[Callable[[Session], object]],
) -> None:
    session = Session.open("n", "k", clock=now, subject="s")
    for decide in told:
        with suppress(*REFUSED):
            decide(session)
    live = session.collect_events()

    reloaded = blank()
    for event in live:
        state = event.state_after
        stored = json.loads(json.dumps(dump_state(state)))
        reloaded.evolve(type(event).model_validate_json(event.model_dump_json()))
        assert load_state(SessionState, stored) == state == reloaded.state
        assert set(state.open_calls) <= {"a", "b", "c"}
    assert reloaded.version == session.version == len(live)


def test_the_state_does_not_grow_with_the_history() -> None:
    session = Session.open("n", "k", clock=now)

    def size_after(turns: int) -> int:
        for _ in range(turns):
            session.append(Block.user("hi"))
            session.append(call("c"))
            session.append(result("c"))
        return len(json.dumps(dump_state(session.state)))

    assert size_after(1_000) - size_after(10) <= len("digits")
    assert session.collect_events()[-1].originator_version == session.version


HUGE = pytest.param(10**400, id="400 digits")


@pytest.mark.parametrize("number", [-1, MAX_COUNT + 1, HUGE, -1e308, math.inf, math.nan, None])
def test_a_number_that_no_provider_can_mean_is_none_reported(number: float | None) -> None:
    said: dict[str, Any] = {"call_id": "c", "position": 1, "cost_usd": number}
    said["context_window"] = number if isinstance(number, int) else None
    about = {"originator_id": uuid4(), "originator_version": 1, "timestamp": NOW, "subject": "s"}

    call = events.ModelCalled(**about, **said)

    assert (call.cost_usd, call.context_window) == (None, None)


def test_the_largest_and_the_smallest_number_are_reported() -> None:
    for number in (0, MAX_COUNT):
        assert events.Usage(input=number, output=None).input == number
