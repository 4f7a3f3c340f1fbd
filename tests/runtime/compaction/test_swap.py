"""A boundary that was prepared is served at the threshold by one event, or extended, or dropped."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar

import pytest
from agent_talk import TOO_LONG, talk
from opened_stores import store_of
from read_model_rows import table

from cutbank import (
    AgentLoop,
    Block,
    CompactionEvent,
    CompactionEventKind,
    CompactionOptions,
    CompactionOutcome,
    ContextOverflowError,
    Draft,
    HistoryView,
    LoopOptions,
    Material,
    Plan,
    Policy,
    Ranges,
    ReserveHeadroom,
    SessionStore,
    StoredSession,
    ToolCall,
    ToolResult,
    Trigger,
    Window,
)
from cutbank.domain.compaction_events import BoundaryActivated, CompactBoundary, PreparationDropped
from cutbank.domain.event import Event

LIMIT = 8_000
THRESHOLD = LIMIT - 2_048
KEEPS_LITTLE = ReserveHeadroom(keep_tokens=500)


@dataclass
class Writer:
    """A summarizer that knows what it was asked."""

    asked: list[Material] = field(default_factory=list)
    name: str = "writer"

    def summarize(self, material: Material) -> Draft:
        self.asked.append(material)
        return Draft(f"Summary number {len(self.asked)}.")


@pytest.fixture
def writer() -> Writer:
    return Writer()


def prepare(session: StoredSession) -> CompactionOutcome:
    """A session below the threshold whose next boundary is prepared."""
    talk(session, 20)
    session.append(ToolCall(tool_call_id="c", name="read", arguments={}))
    session.append(ToolResult(tool_call_id="c", content="r" * 40))
    talk(session, 3)
    return session.compact(
        KEEPS_LITTLE, limit=LIMIT, options=CompactionOptions(trigger=Trigger.IDLE, activate=False)
    )


def fill(session: StoredSession, turns: int = 8) -> None:
    """What takes the session over the threshold; the user waits for an answer."""
    talk(session, turns)
    session.append(Block.user("and now?"))
    assert session.view().tokens > THRESHOLD


def loop_of(
    session: StoredSession,
    writer: Writer | None = None,
    *,
    policy: Policy | None = None,
    **how: Any,
) -> AgentLoop:
    options = LoopOptions(summarizers=[writer or Writer()], **how)
    return session.loop(policy or "reserve-headroom", limit=LIMIT, options=options)


def lineage(session: StoredSession) -> list[Event]:
    events = session.log.events
    chain = events.find_lineage_chain(session.namespace, session.key, "main")
    version = events.read_lineage_state(chain)[0]
    return [events.read(chain, Ranges.of([at]))[0].event for at in range(1, version + 1)]


def dropped(session: StoredSession) -> PreparationDropped:
    (event,) = [one for one in lineage(session) if isinstance(one, PreparationDropped)]
    return event


def boundary_of(view: HistoryView) -> CompactBoundary:
    assert view.boundary is not None
    return view.boundary


def served_anew(session: StoredSession) -> object:
    """The view as a process finds it that has just opened the session."""
    return store_of(session).session(session.key).view()


# It fits


def test_what_was_prepared_is_served_at_the_threshold_by_one_event(
    session: StoredSession, writer: Writer, told: list[CompactionEvent]
) -> None:
    prepared = prepare(session)
    assert session.view().boundary is None
    fill(session)
    told.clear()
    events = lineage(session)

    view = loop_of(session, writer).prepare()

    assert not writer.asked
    (swap,) = lineage(session)[len(events) :]
    assert isinstance(swap, BoundaryActivated)
    assert swap.boundary == prepared.boundary == boundary_of(view).originator_version
    assert view.tokens < THRESHOLD
    assert view == session.view() == served_anew(session)
    activated, started = told
    assert activated.moment is CompactionEventKind.ACTIVATED
    assert activated.before is not None
    assert activated.after is not None
    assert activated.after.blocks == len(view.entries)
    assert activated.after.tokens < activated.before.tokens
    assert (activated.trigger, activated.summarizer) == (Trigger.THRESHOLD, "extractive")
    assert (started.moment, started.source) == (CompactionEventKind.SESSION_START, "compact")


def test_a_swap_is_the_one_compaction_of_its_request(session: StoredSession) -> None:
    prepare(session)
    fill(session)
    view = loop_of(session).prepare()
    # Under a lower limit the same view is over the threshold again.
    lower = session.loop(ReserveHeadroom(keep_tokens=100), limit=4_000)

    assert lower.prepare() == view
    session.append(Block.assistant("done"), Block.user("next"))
    assert lower.prepare().boundary != view.boundary


# It fits no more


def hide_the_last(session: StoredSession) -> None:
    session.hide(session.view().entries[-1].position - 1)


@pytest.mark.parametrize(
    ("happens", "why"),
    [
        (lambda session: session.pin(3), "#3 was pinned since it was prepared"),
        (lambda session: session.retract(3), "#3 was taken back since it was prepared"),
        (hide_the_last, "was hidden since it was prepared"),
    ],
)
def test_what_has_changed_behind_it_drops_it_and_the_session_is_compacted_as_usual(
    session: StoredSession,
    writer: Writer,
    told: list[CompactionEvent],
    happens: Callable[[StoredSession], object],
    why: str,
) -> None:
    prepared = prepare(session)
    happens(session)
    fill(session)
    told.clear()

    view = loop_of(session, writer).prepare()

    assert dropped(session).boundary == prepared.boundary
    assert why in dropped(session).reason
    assert boundary_of(view).originator_version != prepared.boundary
    assert boundary_of(view).trigger is Trigger.THRESHOLD
    assert len(writer.asked) == 1
    assert told[0].moment is CompactionEventKind.DROPPED
    assert told[0].reason == dropped(session).reason
    assert session.log.find_prepared() is None
    assert view == served_anew(session)

    models = session.log.context.read_models
    models.catch_up()
    rows = {row["boundary"]: row for row in table(models, "compactions", "outcome = 'boundary'")}
    (waiting,) = table(models, "lineages")
    assert rows[prepared.boundary]["dropped_at"] is not None
    assert rows[prepared.boundary]["activated_at"] is None
    assert why in rows[prepared.boundary]["reason"]
    assert sum(row["activated_at"] is not None for row in rows.values()) == 1
    assert waiting["prepared"] is None


def test_what_builds_upon_an_undone_boundary_is_dropped(session: StoredSession) -> None:
    talk(session, 15)
    session.compact(KEEPS_LITTLE, limit=LIMIT)
    prepared = prepare(session)
    session.retract(3)  # which the first summary stands for
    fill(session, 12)

    view = loop_of(session).prepare()

    assert dropped(session).boundary == prepared.boundary
    assert "it builds upon boundary" in dropped(session).reason
    assert "the whole history is served" in dropped(session).reason
    assert boundary_of(view).previous is None


def test_what_gains_little_by_now_is_dropped(session: StoredSession, writer: Writer) -> None:
    talk(session, 4)
    prepared = session.compact(
        ReserveHeadroom(keep_tokens=400),
        limit=LIMIT,
        options=CompactionOptions(summarizers=[Writer()], activate=False),
    ).boundary
    for _ in range(4):
        session.append(Block.user("long " * 1_500))

    view = loop_of(session, writer).prepare()

    assert dropped(session).boundary == prepared
    assert "by now it would save" in dropped(session).reason
    assert len(writer.asked) == 1
    assert prepared is not None
    assert boundary_of(view).originator_version > prepared


# It fits, and is not enough


def test_what_is_not_enough_is_extended(session: StoredSession, writer: Writer) -> None:
    prepared = prepare(session)
    talk(session, 30)
    session.append(Block.user("and now?"))

    view = loop_of(session, writer).prepare()

    (material,) = writer.asked
    assert material.previous == prepared.summary
    assert {item.position for item in material.removed_items}.isdisjoint(prepared.left)
    assert boundary_of(view).previous == prepared.boundary
    assert view.tokens < THRESHOLD
    assert view.summary is not None
    assert set(view.summary.covers) > set(prepared.left)
    assert view == served_anew(session)
    assert session.log.compactor().decisions.read_state().futile == 0


def test_what_is_not_enough_and_cannot_be_extended_is_served(session: StoredSession) -> None:
    prepared = prepare(session)
    session.pin(session.append(Block.user("x" * 26_000)).last)

    view = loop_of(session, settings={"keep_tokens": 100}).prepare()

    assert boundary_of(view).originator_version == prepared.boundary
    assert session.log.compactor().decisions.read_state().futile


# After an overflow


def test_a_refusal_is_met_by_what_was_prepared(session: StoredSession, writer: Writer) -> None:
    prepared = prepare(session)
    session.append(Block.user("and now?"))
    loop = loop_of(session, writer)

    view = loop.handle_overflow(TOO_LONG)

    assert not writer.asked
    assert boundary_of(view).originator_version == prepared.boundary
    # Should even this be refused, it is compacted once more; and then nothing helps.
    assert boundary_of(loop.handle_overflow(TOO_LONG)).trigger is Trigger.OVERFLOW
    with pytest.raises(ContextOverflowError):
        loop.handle_overflow(TOO_LONG)


def test_what_is_still_refused_is_compacted_on_top(session: StoredSession, writer: Writer) -> None:
    prepared = prepare(session)
    talk(session, 60)
    session.append(Block.user("and now?"))

    view = loop_of(session, writer).handle_overflow(TOO_LONG)

    assert len(writer.asked) == 1
    assert boundary_of(view).trigger is Trigger.OVERFLOW
    assert boundary_of(view).previous == prepared.boundary


# Besides the loop


def test_a_fork_leaves_what_was_prepared_behind(session: StoredSession, writer: Writer) -> None:
    prepare(session)
    fill(session)

    fork = session.fork("another way")

    assert fork.log.find_prepared() is None
    assert loop_of(fork, writer).prepare().boundary is not None
    assert len(writer.asked) == 1
    assert session.log.find_prepared() is not None
    assert loop_of(session).prepare() == served_anew(session)


# At the same moment


@dataclass(frozen=True)
class Interrupts:
    """A policy during whose first question something happens."""

    name: ClassVar[str] = "interrupts"
    then: list[Callable[[], object]] = field(
        default_factory=list, metadata={"unit": "", "help": "what is still to happen"}
    )

    def fires(self, window: Window) -> bool:
        if self.then:
            self.then.pop()()
        return ReserveHeadroom().fires(window)

    def plan(self, window: Window) -> Plan | None:
        return ReserveHeadroom().plan(window)


def activations(session: StoredSession) -> int:
    return sum(isinstance(one, BoundaryActivated) for one in lineage(session))


def test_who_is_second_to_swap_serves_what_the_first_has_swapped_in(
    session: StoredSession, store: SessionStore, writer: Writer
) -> None:
    prepared = prepare(session)
    fill(session)
    policy = Interrupts(then=[store.session(session.key).activate])

    view = loop_of(session, writer, policy=policy).prepare()

    assert not writer.asked
    assert boundary_of(view).originator_version == prepared.boundary
    assert activations(session) == 1
    assert view == served_anew(session)
