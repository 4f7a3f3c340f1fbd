"""A boundary that was prepared is served at the threshold by one event, or extended, or dropped."""

from collections.abc import Callable
from dataclasses import dataclass, field
from threading import Barrier, Thread
from typing import ClassVar

import pytest
from read_model_rows import table

import cutbank
from cutbank import Block, SessionStore, StoredSession, ToolCall, ToolResult
from cutbank.adapters.runtime.agent_loop import AgentLoop, Habits
from cutbank.adapters.runtime.compaction.outcome import Outcome
from cutbank.domain.compaction_events import BoundaryActivated, PreparationDropped, Trigger
from cutbank.domain.errors import ContextOverflowError, StalePlanError
from cutbank.domain.event import Event
from cutbank.domain.hooks import Happening, Moment
from cutbank.domain.policies.reserve_headroom import ReserveHeadroom
from cutbank.domain.ranges import Ranges
from cutbank.domain.session_events import Parent, Usage
from cutbank.domain.summaries.summarizer import Draft, Material
from cutbank.domain.window import Plan, Window

LIMIT = 8_000
THRESHOLD = LIMIT - 2_048
KEEPS_LITTLE = ReserveHeadroom(keep_tokens=500)
TOO_LONG = {
    "type": "error",
    "error": {
        "type": "invalid_request_error",
        "message": "prompt is too long: 9100 tokens > 8000 maximum",
    },
}


@dataclass
class Writer:
    """A summariser that knows what it was asked."""

    asked: list[Material] = field(default_factory=list)
    name: str = "writer"

    def summarise(self, material: Material) -> Draft:
        self.asked.append(material)
        return Draft(f"Summary number {len(self.asked)}.")


def talk(session: StoredSession, turns: int) -> None:
    """Turns of about 200 tokens."""
    for turn in range(turns):
        session.append(Block.user(f"question {turn} " + "q" * 400))
        session.append(Block.assistant(f"answer {turn} " + "a" * 400))


def prepare(session: StoredSession, turns: int = 20) -> Outcome:
    """A session below the threshold whose next boundary is prepared."""
    talk(session, turns)
    session.append(ToolCall(tool_call_id="c", name="read", arguments={}))
    session.append(ToolResult(tool_call_id="c", content="r" * 40))
    talk(session, 3)
    return session.compact(KEEPS_LITTLE, limit=LIMIT, trigger=Trigger.IDLE, activate=False)


def fill(session: StoredSession, turns: int = 8) -> None:
    """What takes the session over the threshold; the user waits for an answer."""
    talk(session, turns)
    session.append(Block.user("and now?"))
    assert session.view().tokens > THRESHOLD


def loop_of(session: StoredSession, writer: Writer | None = None, **how: object) -> AgentLoop:
    return session.loop(limit=LIMIT, summarisers=[writer or Writer()], **how)  # type: ignore[arg-type]


def lineage(session: StoredSession) -> list[Event]:
    events = session.store.events
    chain = events.lineage_chain(session.namespace, session.key, "main")
    version = events.lineage_state(chain)[0]
    return [events.read(chain, Ranges.of([at]))[0].event for at in range(1, version + 1)]


def served_anew(session: StoredSession) -> object:
    """The view as a process finds it that has just opened the session."""
    return session.store.session(session.key).view()


@pytest.fixture
def told(store: SessionStore) -> list[Happening]:
    heard: list[Happening] = []
    store.listeners.append(heard.append)
    return heard


# It fits


def test_what_was_prepared_is_served_at_the_threshold_by_one_event(
    session: StoredSession, told: list[Happening]
) -> None:
    writer = Writer()
    prepared = prepare(session)
    before = session.view()
    assert before.boundary is None
    fill(session)
    told.clear()
    events = lineage(session)

    view = loop_of(session, writer).prepare()

    assert not writer.asked
    (swap,) = lineage(session)[len(events) :]
    assert isinstance(swap, BoundaryActivated)
    assert swap.boundary == prepared.boundary
    assert view.boundary is not None
    assert view.boundary.originator_version == prepared.boundary
    assert view.tokens < THRESHOLD
    assert view == session.view() == served_anew(session)
    assert [happening.moment for happening in told] == [Moment.ACTIVATED, Moment.SESSION_START]
    assert told[0].before is not None
    assert told[0].after is not None
    assert told[0].after.blocks == len(view.entries)
    assert told[0].after.tokens < told[0].before.tokens
    assert (told[0].trigger, told[0].summariser) == (Trigger.THRESHOLD, "extractive")
    assert told[1].source == "compact"


def test_below_the_threshold_the_view_stays_as_it_is(session: StoredSession) -> None:
    prepared = prepare(session)

    view = loop_of(session).prepare()

    assert view.boundary is None
    assert session.prepared() == prepared.boundary


def test_all_that_was_said_since_is_in_the_view(session: StoredSession) -> None:
    prepared = prepare(session)
    assert prepared.after is not None
    fill(session)
    tail = [entry for entry in session.view().entries if entry.position > prepared.after]

    view = loop_of(session).prepare()

    assert list(view.entries[-len(tail) :]) == tail
    kept = {entry.position for entry in view.entries[: -len(tail)]}
    assert kept == set(prepared.kept) & {
        block.position for block in session.recall(Ranges.span(1, prepared.after))
    }


def test_a_swap_is_the_one_compaction_of_its_request(session: StoredSession) -> None:
    prepare(session)
    fill(session)
    view = loop_of(session).prepare()
    # Under a lower limit the same view is over the threshold again.
    lower = session.loop(limit=4_000, settings={"keep_tokens": 100})

    assert lower.prepare() == view
    session.append(Block.assistant("done"), Block.user("next"))
    assert lower.prepare().boundary != view.boundary


def test_a_swap_is_the_one_compaction_that_a_turn_was_granted(session: StoredSession) -> None:
    prepare(session)
    fill(session)
    loop = loop_of(session, habits=Habits(once_a_turn=True))
    boundary = loop.prepare().boundary
    for number in range(60):
        session.append(ToolCall(tool_call_id=f"c{number}", name="read", arguments={}))
        session.append(ToolResult(tool_call_id=f"c{number}", content="r" * 400))
        assert loop.prepare().boundary == boundary

    session.append(Block.assistant("done"), Block.user("next"))
    assert loop.prepare().boundary != boundary


def test_it_is_reckoned_after_a_swap_as_if_it_were_read_anew(session: StoredSession) -> None:
    loop = loop_of(session, model="claude-sonnet-4-5")
    for _ in range(4):
        talk(session, 5)
        view = session.view()
        loop.record_call(view, usage=Usage(input=view.tokens * 2, output=100))
    prepared = session.compact(KEEPS_LITTLE, limit=LIMIT, activate=False)
    talk(session, 4)
    session.append(Block.user("and now?"))

    loop.prepare()

    other = session.store.session(session.key)
    mine, theirs = (one.compactor().planner.seen(loop.order).window for one in (session, other))
    assert mine.boundary is not None
    assert (mine.used, mine.gauge, mine.tokens) == (theirs.used, theirs.gauge, theirs.tokens)
    assert loop.last is not None
    assert loop.last.boundary == prepared.boundary
    assert loop.last.post_tokens == theirs.used  # as the policy was told before
    assert mine.gauge.prior == pytest.approx(2, abs=0.3)


def test_a_sub_agents_swap_waits_for_an_overflow(store: SessionStore) -> None:
    session = store.session("sub", parent=Parent(namespace="default", key="main"))
    prepared = prepare(session)
    fill(session)
    writer = Writer()
    loop = loop_of(session, writer)

    assert loop.prepare().boundary is None
    boundary = loop.overflowed(TOO_LONG).boundary

    assert boundary is not None
    assert boundary.originator_version == prepared.boundary
    assert not writer.asked


# It fits no more


def pinned(session: StoredSession) -> None:
    session.pin(3)


def retracted(session: StoredSession) -> None:
    session.retract(3)


def reopened(session: StoredSession) -> None:
    answer = next(
        block.position
        for block in session.recall(Ranges.span(1, session.position))
        if isinstance(block.block, ToolResult)
    )
    session.retract(answer)


def hidden(session: StoredSession) -> None:
    session.hide(session.view().entries[-1].position - 1)


@pytest.mark.parametrize(
    ("happens", "why"),
    [
        (pinned, "#3 was pinned since it was prepared"),
        (retracted, "#3 was taken back since it was prepared"),
        (reopened, "was taken back since it was prepared"),
        (hidden, "was hidden since it was prepared"),
    ],
)
def test_what_has_changed_behind_it_drops_it_and_the_session_is_compacted_as_usual(
    session: StoredSession,
    told: list[Happening],
    happens: Callable[[StoredSession], None],
    why: str,
) -> None:
    prepared = prepare(session)
    happens(session)
    fill(session)
    told.clear()
    writer = Writer()

    view = loop_of(session, writer).prepare()

    (dropped,) = [one for one in lineage(session) if isinstance(one, PreparationDropped)]
    assert dropped.boundary == prepared.boundary
    assert why in dropped.reason
    assert view.boundary is not None
    assert view.boundary.originator_version != prepared.boundary
    assert view.boundary.trigger is Trigger.THRESHOLD
    assert len(writer.asked) == 1
    assert told[0].moment is Moment.DROPPED
    assert told[0].reason == dropped.reason
    assert session.prepared() is None
    assert view == served_anew(session)
    match happens.__name__:
        case "pinned":
            assert 3 in {entry.position for entry in view.entries}
        case "hidden":
            assert {entry.position for entry in view.entries}.isdisjoint(view.boundary.hidden)
            assert view.boundary.hidden
        case _:
            assert view.summary is not None
            assert 3 not in view.summary.covers or happens is not retracted


def test_what_builds_upon_an_undone_boundary_is_dropped(session: StoredSession) -> None:
    talk(session, 15)
    session.compact(KEEPS_LITTLE, limit=LIMIT)
    prepared = prepare(session)
    session.retract(3)  # which the first summary stands for
    fill(session, 12)

    view = loop_of(session).prepare()

    (dropped,) = [one for one in lineage(session) if isinstance(one, PreparationDropped)]
    assert dropped.boundary == prepared.boundary
    assert "it builds upon boundary" in dropped.reason
    assert "the whole history is served" in dropped.reason
    assert view.boundary is not None
    assert view.boundary.previous is None


def test_what_gains_next_to_nothing_by_now_is_dropped(session: StoredSession) -> None:
    talk(session, 4)
    prepared = session.compact(
        ReserveHeadroom(keep_tokens=400), limit=LIMIT, summariser=Writer(), activate=False
    )
    for _ in range(4):
        session.append(Block.user("long " * 1_500))
    writer = Writer()

    view = loop_of(session, writer).prepare()

    (dropped,) = [one for one in lineage(session) if isinstance(one, PreparationDropped)]
    assert dropped.boundary == prepared.boundary
    assert "by now it would save" in dropped.reason
    assert len(writer.asked) == 1
    assert view.boundary is not None
    assert prepared.boundary is not None
    assert view.boundary.originator_version > prepared.boundary


# It fits, and is not enough


def test_what_is_not_enough_is_extended_over_what_was_said_since(session: StoredSession) -> None:
    prepared = prepare(session)
    first = session.view(at=session.position)
    assert prepared.after is not None
    talk(session, 30)
    session.append(Block.user("and now?"))
    writer = Writer()

    view = loop_of(session, writer).prepare()

    (material,) = writer.asked
    assert material.previous == prepared.summary
    assert {item.position for item in material.gone}.isdisjoint(prepared.left)
    assert view.boundary is not None
    assert view.boundary.previous == prepared.boundary
    assert view.tokens < THRESHOLD
    assert view.summary is not None
    assert set(view.summary.covers) > set(prepared.left)
    assert view == served_anew(session)
    assert session.compactor().decisions.state().futile == 0
    assert first.boundary is None


def test_what_is_not_enough_and_cannot_be_extended_is_served(session: StoredSession) -> None:
    prepared = prepare(session)
    session.pin(session.append(Block.user("x" * 26_000)).last)

    view = loop_of(session, settings={"keep_tokens": 100}).prepare()

    assert view.boundary is not None
    assert view.boundary.originator_version == prepared.boundary
    assert session.compactor().decisions.state().futile


# After an overflow


def test_a_refusal_is_answered_with_what_was_prepared(session: StoredSession) -> None:
    prepared = prepare(session)
    session.append(Block.user("and now?"))
    writer = Writer()
    loop = loop_of(session, writer)

    view = loop.overflowed(TOO_LONG)

    assert not writer.asked
    assert view.boundary is not None
    assert view.boundary.originator_version == prepared.boundary
    # Should even this be refused, it is compacted once more; and then nothing helps.
    second = loop.overflowed(TOO_LONG)
    assert second.boundary is not None
    assert second.boundary.trigger is Trigger.OVERFLOW
    with pytest.raises(ContextOverflowError):
        loop.overflowed(TOO_LONG)


def test_a_refusal_that_the_prepared_does_not_answer_is_compacted_on_top(
    session: StoredSession,
) -> None:
    prepared = prepare(session)
    talk(session, 60)
    session.append(Block.user("and now?"))
    writer = Writer()

    view = loop_of(session, writer).overflowed(TOO_LONG)

    assert len(writer.asked) == 1
    assert view.boundary is not None
    assert view.boundary.trigger is Trigger.OVERFLOW
    assert view.boundary.previous == prepared.boundary


# Besides the loop


def test_a_compaction_that_is_asked_for_takes_its_place(session: StoredSession) -> None:
    prepared = prepare(session)

    done = session.compact(KEEPS_LITTLE, limit=LIMIT)

    assert session.prepared() is None
    view = session.view()
    assert view.boundary is not None
    assert view.boundary.originator_version == done.boundary != prepared.boundary
    with pytest.raises(StalePlanError, match="not the prepared one"):
        session.activate()


def test_a_swap_can_be_reverted(session: StoredSession) -> None:
    prepare(session)
    fill(session)
    before = session.view()
    loop_of(session).prepare()

    session.revert()

    after = session.view()
    assert (after.entries, after.boundary) == (before.entries, None)


def test_a_fork_leaves_what_was_prepared_behind(session: StoredSession) -> None:
    prepare(session)
    fill(session)

    fork = session.fork("another way")

    assert fork.prepared() is None
    writer = Writer()
    assert loop_of(fork, writer).prepare().boundary is not None
    assert len(writer.asked) == 1
    assert session.prepared() is not None
    assert loop_of(session).prepare() == served_anew(session)


def test_a_fork_is_served_what_was_swapped_in_before_it(session: StoredSession) -> None:
    prepared = prepare(session)
    fill(session)
    view = loop_of(session).prepare()

    fork = session.fork("another way")

    assert fork.view().entries == view.entries
    assert fork.view().boundary == view.boundary
    assert view.boundary is not None
    assert view.boundary.originator_version == prepared.boundary


# At the same moment


@dataclass(frozen=True)
class Interrupts:
    """A policy during whose first question something happens."""

    name: ClassVar[str] = "interrupts"
    happens: Callable[[], object] = field(
        default=lambda: None, metadata={"unit": "", "help": "what happens"}
    )
    then: list[Callable[[], object]] = field(
        default_factory=list, metadata={"unit": "", "help": "what is still to happen"}
    )

    def fires(self, window: Window) -> bool:
        if self.then:
            self.then.pop()()
        return ReserveHeadroom().fires(window)

    def plan(self, window: Window) -> Plan | None:
        return ReserveHeadroom().plan(window)


def test_who_is_second_to_swap_serves_what_the_first_has_swapped_in(
    session: StoredSession, store: SessionStore
) -> None:
    prepared = prepare(session)
    fill(session)
    writer = Writer()
    policy = Interrupts(then=[store.session(session.key).activate])

    view = loop_of(session, writer, policy=policy).prepare()

    assert not writer.asked
    assert view.boundary is not None
    assert view.boundary.originator_version == prepared.boundary
    assert sum(isinstance(one, BoundaryActivated) for one in lineage(session)) == 1
    assert view == served_anew(session)


def test_who_swaps_while_others_note_something_swaps_all_the_same(
    session: StoredSession, store: SessionStore
) -> None:
    prepared = prepare(session)
    fill(session)
    others = store.session(session.key).compactor()
    policy = Interrupts(then=[lambda: others.decisions.note_failed("a summariser was away")])

    view = loop_of(session, policy=policy).prepare()

    assert view.boundary is not None
    assert view.boundary.originator_version == prepared.boundary


def test_of_many_that_swap_at_once_one_does(session: StoredSession, database: str) -> None:
    prepared = prepare(session)
    fill(session)
    begin, views = Barrier(4), list[object]()

    def swaps() -> None:
        with cutbank.open(database) as store:
            loop = loop_of(store.session(session.key))
            begin.wait(30)
            views.append(loop.prepare())

    threads = [Thread(target=swaps) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(views) == 4
    assert sum(isinstance(one, BoundaryActivated) for one in lineage(session)) == 1
    assert all(view == session.view() for view in views)
    boundary = session.view().boundary
    assert boundary is not None
    assert boundary.originator_version == prepared.boundary


def test_what_is_said_at_the_moment_of_a_swap_is_in_the_view(
    session: StoredSession, store: SessionStore
) -> None:
    prepare(session)
    fill(session)

    def says(happening: Happening) -> None:
        if happening.moment is Moment.ACTIVATED:
            store.session(session.key).append(Block.user("one more thing"))

    store.listeners.append(says)
    view = loop_of(session).prepare()

    assert view.entries[-1].text == "one more thing"
    assert view == served_anew(session)


def test_the_ledger_says_what_was_dropped_and_why(session: StoredSession) -> None:
    prepared = prepare(session)
    pinned(session)
    fill(session)
    loop_of(session).prepare()

    models = session.store.read_models
    models.catch_up()
    rows = {row["boundary"]: row for row in table(models, "compactions", "outcome = 'boundary'")}
    (waiting,) = table(models, "lineages")

    assert rows[prepared.boundary]["dropped_at"] is not None
    assert rows[prepared.boundary]["activated_at"] is None
    assert "was pinned" in rows[prepared.boundary]["reason"]
    assert sum(row["activated_at"] is not None for row in rows.values()) == 1
    assert waiting["prepared"] is None
