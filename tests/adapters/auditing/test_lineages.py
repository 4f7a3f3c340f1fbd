"""Which summary stands for what, through repeated compaction."""

import pytest
from clock import Clock
from hypothesis import given
from hypothesis import strategies as st
from lived import LIMIT, POLICY, Act, acts, exchange, live

import cutbank
from cutbank import Block, SessionStore, StoredSession
from cutbank.adapters.analysis.auditing import lineages
from cutbank.adapters.analysis.auditing.lineages import lineages_of, trees_of
from cutbank.adapters.analysis.replaying.recordings import decisions_of, recording_of
from cutbank.domain.compaction_events import BoundaryActivated, CompactionReverted
from cutbank.domain.errors import NotFoundError
from cutbank.domain.ranges import Ranges
from cutbank.projections.lineage_tree import Standing
from cutbank.projections.replay.recorded_decider import is_seen


def talk(session: StoredSession, turns: int) -> None:
    for n in range(turns):
        session.append(*exchange(session.position, n))


def test_a_second_summary_takes_over_what_the_first_stood_for(session: StoredSession) -> None:
    talk(session, 6)
    first = session.compact(POLICY, limit=LIMIT).boundary
    talk(session, 6)
    second = session.compact(POLICY, limit=LIMIT).boundary

    tree = session.lineage_tree()

    assert [node.number for node in tree.nodes] == [first, second]
    older, newer = tree.nodes
    assert (older.standing, newer.standing) == (Standing.BUILT_UPON, Standing.SERVED)
    assert newer.inherited == older.covers == older.new
    assert newer.new == newer.covers - older.covers
    assert newer.previous == first
    assert [(one.left_with, one.summary) for one in tree.stands()] == [
        (first, second),
        (second, second),
    ]
    assert first in newer.words, "the second summary has no word of the first"


def test_a_reverted_boundary_is_told_and_stands_for_nothing(session: StoredSession) -> None:
    talk(session, 6)
    first = session.compact(POLICY, limit=LIMIT).boundary
    talk(session, 6)
    second = session.compact(POLICY, limit=LIMIT).boundary
    session.revert()
    third = session.compact(POLICY, limit=LIMIT).boundary

    tree = session.lineage_tree()

    assert [node.standing for node in tree.nodes] == [
        Standing.BUILT_UPON,
        Standing.REVERTED,
        Standing.SERVED,
    ]
    assert [node.number for node in tree.children(first or 0)] == [second, third]
    assert {one.summary for one in tree.stands()} == {third}


def test_a_boundary_that_waits_is_prepared_and_one_that_was_drawn_over_is_overtaken(
    session: StoredSession,
) -> None:
    talk(session, 6)
    session.compact(POLICY, limit=LIMIT, activate=False)
    talk(session, 2)
    session.compact(POLICY, limit=LIMIT, activate=False)

    overtaken, prepared = session.lineage_tree().nodes

    assert (overtaken.standing, prepared.standing) == (Standing.OVERTAKEN, Standing.PREPARED)
    assert prepared.served_from is prepared.first_call is None


def test_a_retraction_behind_a_boundary_undoes_it(session: StoredSession) -> None:
    talk(session, 6)
    boundary = session.compact(POLICY, limit=LIMIT)
    assert boundary.left
    session.retract(boundary.left.runs[0][0])

    tree = session.lineage_tree()

    assert tree.served == 0
    assert tree.nodes[0].standing is Standing.UNDONE
    assert tree.stands() == []

    session.compact(POLICY, limit=LIMIT)

    assert [node.standing for node in session.lineage_tree().nodes] == [
        Standing.UNDONE,
        Standing.SERVED,
    ]


def test_the_first_call_is_the_first_that_was_sent_the_summary(session: StoredSession) -> None:
    talk(session, 6)
    session.record_call(session.view(), call_id="before")
    session.append(cutbank.Block.assistant("One."))
    session.compact(POLICY, limit=LIMIT)
    session.record_call(session.view(), call_id="after")
    session.append(cutbank.Block.assistant("Two."))

    (node,) = session.lineage_tree().nodes

    # A turn is two answers, and each answer is a call.
    assert node.first_call == 14


def test_a_fork_tells_whose_boundaries_it_goes_on_from(session: StoredSession) -> None:
    talk(session, 6)
    session.compact(POLICY, limit=LIMIT)
    fork = session.fork("a fork")
    talk(fork, 6)
    fork.compact(POLICY, limit=LIMIT)

    tree = fork.lineage_tree()

    assert [node.lineage for node in tree.nodes] == ["main of a session", "main"]
    assert tree.continues == "main of a session"


def test_what_a_fork_inherits_is_told_though_nobody_compacted_in_it(
    session: StoredSession,
) -> None:
    talk(session, 8)
    untouched = session.fork("before anything")
    session.compact(POLICY, limit=LIMIT)
    fork = session.fork("a fork")

    assert lineages_of(untouched) == []
    assert lineages_of(fork) == ["main"]
    (tree,) = trees_of(fork, lineages_of(fork))
    assert tree.served == 3

    fork.compact(POLICY, limit=LIMIT, lineage="what-if")

    assert lineages_of(fork) == ["main", "what-if"]


def test_a_lineage_that_does_not_exist_is_named(session: StoredSession) -> None:
    with pytest.raises(NotFoundError, match="no lineage 'nobody'"):
        session.lineage_tree("nobody")


@given(acts)
def test_all_that_left_stands_in_one_place_and_every_boundary_is_told_once(
    what: list[Act],
) -> None:
    with cutbank.open(":memory:", clock=Clock()) as store:
        session = live(store.session("s"), what)

        for tree in trees_of(session, session.lineages):
            view = session.view(lineage=tree.lineage)
            stands = [one.blocks for one in tree.stands()]
            together = Ranges(run for blocks in stands for run in blocks.runs)
            assert sum(map(len, stands)) == len(together)
            assert together == (view.summary.covers if view.summary else Ranges())
            assert tree.served == (view.boundary.originator_version if view.boundary else 0)
            numbers = [node.number for node in tree.nodes]
            assert len(set(numbers)) == len(numbers)
            served = [node for node in tree.nodes if node.standing is Standing.SERVED]
            assert [node.number for node in served] == ([tree.served] if tree.served else [])
            reverted = {
                event.boundary
                for event in decisions_of(session, tree.lineage)
                if isinstance(event, CompactionReverted)
            }
            for node in tree.nodes:
                assert (node.standing is Standing.REVERTED) == (node.number in reverted)
                assert not node.new & node.inherited
                assert node.new | node.inherited == node.covers


@given(acts, st.integers(1, 3))
def test_the_first_call_is_the_first_of_all_calls_that_was_sent_it(
    what: list[Act], few: int
) -> None:
    with pytest.MonkeyPatch.context() as patch, cutbank.open(":memory:", clock=Clock()) as store:
        patch.setattr(lineages, "FEW", few)
        session = live(store.session("s"), what)
        calls = recording_of(session).calls

        for tree in trees_of(session, session.lineages):
            switches = [
                event
                for event in decisions_of(session, tree.lineage)
                if isinstance(event, BoundaryActivated)
            ]
            told = {node.number: node.first_call for node in tree.nodes}
            for switch in {switch.boundary: switch for switch in switches}.values():
                sent = (one.number for one in calls if is_seen(switch, one, tree.lineage))
                assert told[switch.boundary] == next(sent, None)


def test_calls_that_were_sent_an_older_view_later_are_not_the_first_that_saw_a_boundary(
    session: StoredSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lineages, "FEW", 2)
    talk(session, 6)
    session.compact(POLICY, limit=LIMIT)
    for number in range(5):
        session.append(Block.user("Go on."))
        session.record_call(session.view(lineage_version=0), call_id=f"old {number}")
    session.record_call(session.view(), call_id="new")

    (node,) = session.lineage_tree().nodes

    calls = recording_of(session).calls
    assert calls[-1].reported is not None
    assert calls[-1].reported.call_id == "new"
    assert node.first_call == calls[-1].number


def test_lineages_stand_side_by_side(store: SessionStore) -> None:
    session = store.session("s")
    talk(session, 8)
    session.compact(POLICY, limit=LIMIT)
    session.compact(POLICY, limit=LIMIT, lineage="what-if")

    main, other = trees_of(session, session.lineages)

    assert (main.lineage, other.lineage) == ("main", "what-if")
    assert main.served == other.served == 3
