"""Which boundary is served, and that none is decided on an old view: given, when, then."""

import json
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given as for_all
from hypothesis import strategies as st

from cutbank import NotFoundError, Ranges, StalePlanError
from cutbank.domain import compaction_events as events
from cutbank.domain.compaction import (
    MAIN_LINEAGE,
    RECORDED_LINEAGE,
    ChangesSince,
    Compaction,
    CompactionState,
    derive_lineage_id,
    explain_misfit,
)
from cutbank.domain.event import dump_state, load_state

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def now() -> datetime:
    return NOW


def opened(**more: Any) -> Compaction:
    compaction = Compaction.open("n", "k", MAIN_LINEAGE, clock=now, subject="s", **more)
    compaction.collect_events()
    return compaction


def boundary(previous: int | None = None) -> dict[str, Any]:
    return {
        "after": 9,
        "first_kept": 7,
        "kept": Ranges.span(7, 9),
        "trigger": events.Trigger.MANUAL,
        "policy": "p",
        "pre_tokens": 90,
        "post_tokens": 30,
        "previous": previous,
    }


SUMMARY = {"text": "before", "covers": Ranges.span(1, 6), "summarizer": "s", "tokens": 2}


def drawn(compaction: Compaction, *, at: int | None = 9) -> int:
    """A boundary on what is served now, as a planner who just looked would draw it."""
    state = compaction.state
    return compaction.record_boundary(
        boundary(state.active or None), SUMMARY, based_on=state.decided, activate_at=at
    )


def recorded(compaction: Compaction) -> list[str]:
    return [type(event).__name__ for event in compaction.collect_events()]


def test_a_lineage_opens_with_nothing_served_in_a_stream_of_its_own() -> None:
    names = [
        ("n", "k", MAIN_LINEAGE),
        ("n", "k", RECORDED_LINEAGE),
        ("nk", "", MAIN_LINEAGE),
        ("n", "k:main", ""),
    ]
    compaction = Compaction.open("n", "k", MAIN_LINEAGE, clock=now, subject="s")

    assert recorded(compaction) == ["CompactionOpened"]
    assert compaction.id == derive_lineage_id("n", "k", MAIN_LINEAGE)
    assert len({derive_lineage_id(*name) for name in names}) == len(names)
    assert compaction.state == CompactionState()


def test_boundary_summary_and_activation_are_one_decision() -> None:
    compaction = opened()

    name = drawn(compaction, at=12)

    assert name == 2
    assert compaction.state == CompactionState(active=2, effective_from=12, switched=4, decided=4)
    _, summary, _ = compaction.collect_events()
    assert isinstance(summary, events.Summary)
    assert summary.boundary == name
    # One that only hides needs no summary.
    compaction.record_boundary(boundary(name), None, based_on=4, activate_at=12)
    assert recorded(compaction) == ["CompactBoundary", "BoundaryActivated"]


def test_a_plan_overtaken_by_another_boundary_or_a_revert_is_refused() -> None:
    compaction = opened()
    planned_on = compaction.state.decided
    drawn(compaction)
    compaction.collect_events()

    with pytest.raises(StalePlanError, match=r"version 0, and boundary or revert 4 .* plan again"):
        compaction.record_boundary(boundary(), SUMMARY, based_on=planned_on, activate_at=9)
    assert recorded(compaction) == []

    planned_on = compaction.state.decided
    compaction.revert(10, beneath=0)
    with pytest.raises(StalePlanError):
        compaction.record_boundary(boundary(2), SUMMARY, based_on=planned_on, activate_at=10)


def test_what_decides_nothing_overtakes_no_plan() -> None:
    compaction = opened()
    planned_on = compaction.state.decided

    compaction.request(trigger=events.Trigger.MANUAL, policy="p", after=9)
    compaction.reject(reason="empty", rule="not-empty", summarizer="s")
    compaction.fail(reason="no network")

    assert compaction.record_boundary(boundary(), SUMMARY, based_on=planned_on, activate_at=9) == 5


def test_a_prepared_boundary_is_served_from_its_activation_on() -> None:
    compaction = opened()
    first = drawn(compaction)
    served = compaction.state

    second = drawn(compaction, at=None)

    assert compaction.state.active == first
    assert compaction.state.prepared == second
    assert compaction.state.effective_from == served.effective_from
    assert compaction.state.switched == served.switched

    compaction.activate(second, 20)

    assert compaction.state == CompactionState(
        active=second,
        beneath=first,
        effective_from=20,
        switched=compaction.version,
        decided=compaction.version,
    )


def test_only_the_newest_prepared_boundary_can_be_activated() -> None:
    compaction = opened()
    served = drawn(compaction)
    for name in (0, served):
        with pytest.raises(StalePlanError, match=r"is not the prepared one \(none\)"):
            compaction.activate(name, 9)

    old, new = drawn(compaction, at=None), drawn(compaction, at=None)
    with pytest.raises(StalePlanError, match=f"boundary {old} is not the prepared one \\({new}\\)"):
        compaction.activate(old, 9)

    compaction.revert(10, beneath=0)
    with pytest.raises(StalePlanError):
        compaction.activate(new, 11)


def test_reverts_walk_back_boundary_by_boundary() -> None:
    compaction = opened()
    first, second, third = (drawn(compaction) for _ in range(3))
    compaction.collect_events()

    assert compaction.revert(10, beneath=first) == third
    assert (compaction.state.active, compaction.state.beneath) == (second, first)
    (reverted,) = compaction.collect_events()
    assert isinstance(reverted, events.CompactionReverted)
    assert (reverted.boundary, reverted.to, reverted.previous) == (third, second, first)

    assert compaction.revert(11, beneath=0) == second
    assert compaction.revert(12, beneath=0) == first
    assert compaction.state.active == 0
    with pytest.raises(NotFoundError, match="no compaction to revert"):
        compaction.revert(13, beneath=0)


def test_a_lineage_with_a_base_goes_on_one_past_it() -> None:
    parent = opened()
    drawn(parent)
    base = events.LineageBase(originator_id=parent.id, lineage=MAIN_LINEAGE, version=parent.version)

    compaction = Compaction.open(
        "n", "fork", MAIN_LINEAGE, clock=now, subject="s", base=base, inherited=parent.state
    )

    assert compaction.version == parent.version + 1
    assert compaction.state == parent.state
    assert drawn(compaction) == parent.version + 2
    assert compaction.state.beneath == parent.state.active
    assert parent.state.beneath == 0


decisions = st.one_of(
    st.integers(1, 50).map(lambda at: lambda compaction: drawn(compaction, at=at)),
    st.just(lambda compaction: drawn(compaction, at=None)),
    st.integers(1, 50).map(
        lambda at: lambda compaction: compaction.activate(compaction.state.prepared, at)
    ),
    st.integers(1, 50).map(lambda at: lambda compaction: compaction.revert(at, beneath=0)),
    st.just(lambda compaction: compaction.fail(reason="r")),
)


@for_all(st.lists(decisions, max_size=20))
def test_live_reloaded_and_carried_states_are_equal(
    told: list[Callable[[Compaction], object]],
) -> None:
    compaction = Compaction.open("n", "k", MAIN_LINEAGE, clock=now, subject="s")
    for decide in told:
        with suppress(StalePlanError, NotFoundError):
            decide(compaction)
    live = compaction.collect_events()

    reloaded = Compaction(compaction.id, version=0, state=CompactionState(), subject="s", clock=now)
    effective_from = 0
    for event in live:
        state = event.state_after
        reloaded.evolve(type(event).model_validate_json(event.model_dump_json()))
        stored = json.loads(json.dumps(dump_state(state)))
        assert load_state(CompactionState, stored) == state == reloaded.state
        assert state.effective_from >= effective_from
        effective_from = state.effective_from
    assert reloaded.version == compaction.version == len(live)


def test_a_prepared_boundary_misfits_once_what_it_hides_is_pinned() -> None:
    compaction = opened()
    compaction.record_boundary(
        {**boundary(), "hidden": Ranges.of([4])}, None, based_on=0, activate_at=None
    )
    (drawn,) = compaction.collect_events()
    assert isinstance(drawn, events.CompactBoundary)

    why = explain_misfit(drawn, None, ChangesSince(pinned=Ranges.of([4])), beneath=0, served=0)

    assert why == "#4 was pinned since it was prepared"
