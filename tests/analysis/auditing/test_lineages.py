"""Which summary stands for what, through repeated compaction."""

from typing import Any

import pytest
from clock import Clock
from hypothesis import given
from lived import LIMIT, POLICY, Act, acts, exchange, live

import cutbank
from cutbank import Block, CompactionOptions, NotFoundError, Ranges, StoredSession
from cutbank.adapters.analysis.audit import list_session_lineages, read_lineage_trees
from cutbank.adapters.analysis.run_replay import read_decisions, read_recording
from cutbank.domain.compaction_events import CompactionReverted
from cutbank.projections.lineage_tree import BoundaryStatus


def talk(session: StoredSession, turns: int) -> None:
    for n in range(turns):
        session.append(*exchange(session.position, n))


def compacted(session: StoredSession, turns: int = 0, **options: Any) -> int:
    """Talk and compact; return the boundary."""
    talk(session, turns)
    done = session.compact(POLICY, limit=LIMIT, options=CompactionOptions(**options))
    assert done.boundary
    return done.boundary


def test_a_second_summary_takes_over_what_the_first_stood_for(session: StoredSession) -> None:
    first, second = compacted(session, 6), compacted(session, 6)

    tree = cutbank.lineage_tree(session)

    assert [node.number for node in tree.nodes] == [first, second]
    older, newer = tree.nodes
    assert (older.status, newer.status) == (BoundaryStatus.BUILT_UPON, BoundaryStatus.SERVED)
    assert newer.inherited_blocks == older.covers == older.new_blocks
    assert newer.new_blocks == newer.covers - older.covers
    assert newer.previous == first
    assert [(one.removed_by, one.summary) for one in tree.list_summarized_blocks()] == [
        (first, second),
        (second, second),
    ]


def test_a_reverted_boundary_is_told_and_stands_for_nothing(session: StoredSession) -> None:
    first, second = compacted(session, 6), compacted(session, 6)
    session.revert()
    third = compacted(session)

    tree = cutbank.lineage_tree(session)

    assert [node.status for node in tree.nodes] == ["built upon", "reverted", "served"]
    assert [node.number for node in tree.nodes if node.previous == first] == [second, third]


def test_a_boundary_that_waits_is_prepared_and_one_that_was_drawn_over_is_overtaken(
    session: StoredSession,
) -> None:
    compacted(session, 6, activate=False)
    compacted(session, 2, activate=False)

    overtaken, prepared = cutbank.lineage_tree(session).nodes

    assert (overtaken.status, prepared.status) == ("overtaken", "prepared")
    assert prepared.served_from is prepared.first_call is None


def test_a_retraction_behind_a_boundary_undoes_it(session: StoredSession) -> None:
    talk(session, 6)
    boundary = session.compact(POLICY, limit=LIMIT)
    assert boundary.left
    session.retract(boundary.left.runs[0][0])
    compacted(session)

    undone, served = cutbank.lineage_tree(session).nodes

    assert (undone.status, served.status) == ("undone", "served")


def test_a_fork_tells_whose_boundaries_it_goes_on_from(session: StoredSession) -> None:
    talk(session, 8)
    untouched = session.fork("before anything")
    compacted(session)
    fork = session.fork("a fork")

    assert list_session_lineages(untouched) == []
    assert list_session_lineages(fork) == ["main"]
    assert cutbank.lineage_tree(fork).served == 3

    compacted(fork, 6)
    compacted(fork, lineage="what-if")

    tree = cutbank.lineage_tree(fork)
    assert [node.lineage for node in tree.nodes] == ["main of a session", "main"]
    assert tree.continued_lineage == "main of a session"
    assert list_session_lineages(fork) == ["main", "what-if"]
    with pytest.raises(NotFoundError, match="no lineage 'nobody'"):
        cutbank.lineage_tree(session, "nobody")


@given(acts)
def test_all_that_left_stands_in_one_place_and_every_boundary_is_told_once(what: list[Act]) -> None:
    with cutbank.open(":memory:", clock=Clock()) as store:
        session = live(store.session("s"), what)

        for tree in read_lineage_trees(session, session.log.lineages):
            view = session.view(lineage=tree.lineage)
            stands = [one.blocks for one in tree.list_summarized_blocks()]
            together = Ranges(run for blocks in stands for run in blocks.runs)
            assert sum(map(len, stands)) == len(together)
            assert together == (view.summary.covers if view.summary else Ranges())
            assert tree.served == (view.boundary.originator_version if view.boundary else 0)
            numbers = [node.number for node in tree.nodes]
            assert len(set(numbers)) == len(numbers)
            served = [node for node in tree.nodes if node.status is BoundaryStatus.SERVED]
            assert [node.number for node in served] == ([tree.served] if tree.served else [])
            reverted = {
                event.boundary
                for event in read_decisions(session, tree.lineage)
                if isinstance(event, CompactionReverted)
            }
            for node in tree.nodes:
                assert (node.status is BoundaryStatus.REVERTED) == (node.number in reverted)
                assert not node.new_blocks & node.inherited_blocks
                assert node.new_blocks | node.inherited_blocks == node.covers


def test_calls_that_were_sent_an_older_view_later_are_not_the_first_that_saw_a_boundary(
    session: StoredSession,
) -> None:
    compacted(session, 6)
    for number in range(5):
        session.append(Block.user("Go on."))
        session.record_call(session.view(lineage_version=0), call_id=f"old {number}")
    session.record_call(session.view(), call_id="new")

    (node,) = cutbank.lineage_tree(session).nodes

    newest = read_recording(session).calls[-1]
    assert newest.report is not None
    assert (newest.report.call_id, node.first_call) == ("new", newest.number)
