"""What may be said, taken back, pinned and hidden: given events, when decided, then events."""

import json
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given as for_all
from hypothesis import strategies as st

from cutbank.domain import session_events as events
from cutbank.domain.aggregate import carried, restored
from cutbank.domain.blocks import AnyBlock, Block, Kind, ToolCall, ToolResult
from cutbank.domain.errors import (
    DuplicateToolCallError,
    InvalidPositionError,
    OrphanToolResultError,
    SessionClosedError,
)
from cutbank.domain.event import Event
from cutbank.domain.ranges import Ranges
from cutbank.domain.session import Session, SessionState, session_id

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
        for kind, fields in self.facts:
            session.evolve(
                kind(
                    originator_id=session.id,
                    originator_version=session.version + 1,
                    timestamp=NOW,
                    subject=session.subject,
                    **fields,
                )
            )
        return session


def given(*facts: Fact) -> Given:
    return Given((fact(events.SessionOpened, **OPENED), *facts))


def fact(kind: type[Event], **fields: Any) -> Fact:
    return kind, fields


def fact_of(event: Event) -> Fact:
    """The event without its envelope and without what was left at its default."""
    return type(event), {
        name: value
        for name in type(event).model_fields
        if name not in ENVELOPE
        and (value := getattr(event, name)) != type(event).model_fields[name].default
    }


def blank() -> Session:
    return Session(session_id("n", "k"), version=0, state=SessionState(), subject="s", clock=now)


def now() -> datetime:
    return NOW


def said(text: str, turn: int = 1) -> Fact:
    return fact(events.BlockAppended, block=Block.user(text), turn=turn)


def answered(text: str, turn: int = 1) -> Fact:
    return fact(events.BlockAppended, block=Block.assistant(text), turn=turn)


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


# Opening


def test_a_session_opens_at_position_1() -> None:
    session = Session.open("n", "k", clock=now, title="t")

    assert session.version == 1
    assert session.id == session_id("n", "k")
    assert session.subject == "n/k"
    assert [fact_of(event) for event in session.collect_events()] == [
        fact(events.SessionOpened, **OPENED, title="t")
    ]


def test_no_two_names_give_one_stream() -> None:
    names = [("a", "b"), ("a:b", ""), ("", "a:b"), ("a", ":b"), ("b", "a")]

    assert len({session_id(*name) for name in names}) == len(names)


def test_what_is_collected_is_collected_once() -> None:
    session = Session.open("n", "k", clock=now)

    assert len(session.collect_events()) == 1
    assert session.collect_events() == []


# Turns


def test_the_first_words_open_turn_1() -> None:
    assert given().when(lambda session: session.append(Block.user("hi"))) == [turn(1), said("hi")]


def test_words_before_an_answer_belong_to_the_same_turn() -> None:
    before = given(turn(1), said("hi"))

    assert before.when(lambda session: session.append(Block.user("there"))) == [said("there")]


def test_words_after_an_answer_open_a_turn() -> None:
    before = given(turn(1), said("hi"), answered("hello"))

    assert before.when(lambda session: session.append(Block.user("so"))) == [
        turn(2),
        said("so", 2),
    ]


@pytest.mark.parametrize("kind", [Kind.IMAGE, Kind.DOCUMENT, Kind.DEVELOPER, Kind.NOTE])
def test_a_prompt_may_come_in_pieces(kind: Kind) -> None:
    piece = fact(events.BlockAppended, block=Block(kind=kind, text="piece"), turn=1)
    before = given(turn(1), said("look at"), piece)

    assert before.when(lambda session: session.append(Block.user("this"))) == [said("this")]


@pytest.mark.parametrize("did", [called("c"), answered("hello")])
def test_whatever_the_model_does_answers_the_prompt(did: Fact) -> None:
    before = given(turn(1), said("hi"), did)

    assert before.when(lambda session: session.append(Block.user("stop")))[0] == turn(2)


def test_words_after_the_end_of_a_turn_open_the_next() -> None:
    before = given(turn(1), said("hi"), fact(events.TurnEnded, turn=1))

    assert before.when(lambda session: session.append(Block.user("hi")))[0] == turn(2)


def test_what_the_model_does_before_anybody_spoke_is_in_no_turn() -> None:
    assert given().when(lambda session: session.append(Block.assistant("hello"))) == [
        answered("hello", 0)
    ]


# Tool calls


def test_a_result_names_the_position_of_its_call() -> None:
    before = given(turn(1), said("hi"), called("a"), called("b"))

    recorded = before.when(
        lambda session: (session.append(result("a")), session.append(result("b")))
    )

    assert recorded == [returned("a", 4), returned("b", 5)]


@pytest.mark.parametrize(
    ("facts", "message"),
    [
        ([], r"no open tool call 'c' to answer \(open: none\)"),
        ([called("a"), called("b")], r"no open tool call 'c' to answer \(open: 'a', 'b'\)"),
        ([called("c"), returned("c", 2)], "no open tool call 'c'"),
    ],
)
def test_a_result_must_answer_an_open_call(facts: list[Fact], message: str) -> None:
    with pytest.raises(OrphanToolResultError, match=message):
        given(*facts).when(lambda session: session.append(result("c")))

    with pytest.raises(OrphanToolResultError, match=message):
        given(*facts).when(lambda session: session.abandon("c", "gone"))


def test_a_call_is_not_made_twice_while_it_is_open() -> None:
    with pytest.raises(DuplicateToolCallError, match="'c' is already open at #2"):
        given(called("c")).when(lambda session: session.append(call("c")))


def test_an_id_may_come_again_once_it_was_answered() -> None:
    before = given(called("c", 0), returned("c", 2, 0))

    assert before.when(lambda session: session.append(call("c"))) == [called("c", 0)]


def test_an_abandoned_call_is_closed() -> None:
    before = given(called("c", 0))

    recorded = before.when(lambda session: session.abandon("c", "the tool died"))

    abandoned = fact(
        events.ToolCallAbandoned, tool_call_id="c", reason="the tool died", turn=0, call=2
    )
    assert recorded == [abandoned]
    assert given(called("c", 0), abandoned).session().state.open_calls == {}


# Changes of what is visible


@pytest.mark.parametrize(
    ("decide", "kind"),
    [
        (lambda session: session.pin(Ranges.of([2])), events.BlockPinned),
        (lambda session: session.unpin(Ranges.of([2])), events.BlockUnpinned),
        (lambda session: session.hide(Ranges.of([2])), events.BlocksHidden),
        (lambda session: session.retract(Ranges.of([2]), {}), events.BlocksRetracted),
    ],
)
def test_what_was_said_can_be_pinned_hidden_and_taken_back(
    decide: Callable[[Session], object], kind: type[Event]
) -> None:
    assert given(said("hi")).when(decide) == [fact(kind, positions=Ranges.of([2]))]


@pytest.mark.parametrize("verb", ["pin", "unpin", "hide", "retract"])
def test_only_positions_that_exist_can_be_changed(verb: str) -> None:
    more: tuple[dict[str, int], ...] = ({},) if verb == "retract" else ()

    with pytest.raises(InvalidPositionError, match="#3 does not exist: the session ends at #2"):
        given(said("hi")).when(lambda session: getattr(session, verb)(Ranges.span(1, 3), *more))
    with pytest.raises(InvalidPositionError, match="no positions were given"):
        given(said("hi")).when(lambda session: getattr(session, verb)(Ranges(), *more))


def test_an_open_call_that_was_taken_back_can_be_answered_no_more() -> None:
    before = given(called("c"), fact(events.BlocksRetracted, positions=Ranges.of([2])))

    with pytest.raises(OrphanToolResultError):
        before.when(lambda session: session.append(result("c")))


def test_a_call_whose_result_was_taken_back_is_open_again() -> None:
    retracted = fact(events.BlocksRetracted, positions=Ranges.of([3]), reopened={"c": 2})
    before = given(called("c"), returned("c", 2), retracted)

    assert before.when(lambda session: session.append(result("c"))) == [returned("c", 2, 0)]


def test_a_call_is_not_opened_again_beside_another_of_its_id() -> None:
    before = given(called("c"), returned("c", 2), called("c"))

    with pytest.raises(DuplicateToolCallError, match="'c' was made again at #4"):
        before.when(lambda session: session.retract(Ranges.of([3]), {"c": 2}))

    recorded = before.when(lambda session: session.retract(Ranges.span(3, 4), {"c": 2}))
    assert recorded[0][1]["reopened"] == {"c": 2}


# Closing


EVERY_VERB: list[Callable[[Session], object]] = [
    lambda session: session.append(Block.user("hi")),
    lambda session: session.append(call("c")),
    lambda session: session.abandon("c", "r"),
    lambda session: session.set_system_prompt("p"),
    lambda session: session.set_tools([]),
    lambda session: session.set_request_settings({}),
    lambda session: session.end_turn(),
    lambda session: session.pin(Ranges.of([1])),
    lambda session: session.unpin(Ranges.of([1])),
    lambda session: session.hide(Ranges.of([1])),
    lambda session: session.retract(Ranges.of([1]), {}),
    lambda session: session.record_call({"call_id": "m", "position": 1}),
    lambda session: session.record_overflow({"message": "too long"}),
    lambda session: session.close(),
]


@pytest.mark.parametrize("decide", EVERY_VERB)
def test_nothing_follows_a_close(decide: Callable[[Session], object]) -> None:
    with pytest.raises(SessionClosedError, match="fork it to go on"):
        given(fact(events.SessionClosed)).when(decide)


# Forks


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
    assert [fact_of(event) for event in session.collect_events()] == [
        returned("c", 4),
        turn(2),
        said("go on", 2),
    ]
    assert parent.state.open_calls == {"c": 4}


def test_a_fork_may_pin_what_its_parent_said() -> None:
    parent = given(turn(1), said("hi")).session()
    fork = events.Fork(namespace="n", key="k", position=3)

    session = Session.fork("n", "f", clock=now, subject="s", fork=fork, at=parent.state)
    session.pin(Ranges.of([3]))

    assert fact_of(session.collect_events()[-1]) == fact(
        events.BlockPinned, positions=Ranges.of([3])
    )


# State


def test_the_state_knows_where_the_newest_request_parts_stand() -> None:
    state = (
        given(
            fact(events.SystemPromptSet, text="a"),
            fact(events.ToolsSet, tools=[]),
            fact(events.SystemPromptSet, text="b"),
            fact(events.RequestSettingsSet, settings={}),
        )
        .session()
        .state
    )

    assert (state.system, state.tools, state.settings) == (4, 3, 5)


def test_what_is_unknown_in_a_carried_state_is_from_the_future() -> None:
    assert restored(SessionState, {"turn": 3, "moons": 2}) == SessionState(turn=3)


names = st.sampled_from("abc")
blocks: st.SearchStrategy[AnyBlock] = st.one_of(
    st.sampled_from([Block.user("hi"), Block.assistant("words" * 9), Block.note("n")]),
    names.map(call),
    names.map(result),
)
decisions = st.one_of(
    blocks.map(lambda block: lambda session: session.append(block)),
    names.map(lambda name: lambda session: session.abandon(name, "r")),
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
        stored = json.loads(json.dumps(carried(state)))
        reloaded.evolve(type(event).model_validate_json(event.model_dump_json()))
        assert restored(SessionState, stored) == state == reloaded.state
        assert set(state.open_calls) <= {"a", "b", "c"}
    assert reloaded.version == session.version == len(live)


def test_the_state_does_not_grow_with_the_history() -> None:
    session = Session.open("n", "k", clock=now)

    def size_after(turns: int) -> int:
        for _ in range(turns):
            session.append(Block.user("hi"))
            session.append(call("c"))
            session.append(result("c"))
        return len(json.dumps(carried(session.state)))

    assert size_after(1_000) - size_after(10) <= len("digits")
    assert session.collect_events()[-1].originator_version == session.version
