"""Reads the lineages of a session as trees."""

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from functools import partial
from typing import cast

from ....domain.compaction import MAIN, RECORDED
from ....domain.compaction_events import BoundaryActivated, Summary
from ....domain.ranges import Ranges
from ....domain.session_events import ModelCalled
from ....projections.lineage_tree import LineageTree, grow_tree
from ....projections.replay.as_recorded import is_known
from ...runtime.sessions.stored_session import StoredSession
from ...storage.compaction_sizes import measure_compactions
from ...storage.event_log.plain_errors import speaking_plainly
from ..replaying.recordings import decisions_of
from .call_index import find_calls

FEW = 20
"""Records of calls that are read at once: the first is nearly always the one."""


def lineages_of(session: StoredSession) -> list[str]:
    """The lineages that say all that was ever compacted in a session.

    Nobody may have written to a fork's `main`, which begins as its parent's. What was imported is
    told on `recorded`.
    """
    written = session.log.lineages
    if {MAIN, RECORDED}.isdisjoint(written) and decisions_of(session, MAIN, without=[Summary]):
        return [MAIN, *written]
    return written


def lineage_tree(session: StoredSession, lineage: str = MAIN) -> LineageTree:
    """Return which summary stands for what, through all boundaries of a lineage.

    Numbers of calls are those of the recorded model, from 1 on; tokens are estimates. Raises
    NotFoundError if no compaction was ever recorded on it.
    """
    with speaking_plainly(session.log.context.name):
        session.log.check_lineage(lineage)
        return trees_of(session, [lineage])[0]


def trees_of(session: StoredSession, names: Iterable[str]) -> list[LineageTree]:
    """A tree for each of these lineages, as of now."""
    return [_tree(session, name) for name in names]


def _tree(session: StoredSession, name: str) -> LineageTree:
    view = session.view(lineage=name)
    decisions = decisions_of(session, name)
    return grow_tree(
        decisions,
        session=session.key,
        namespace=session.namespace,
        lineage=name,
        served=view.boundary.originator_version if view.boundary else 0,
        first_call=partial(_first_call, session, name),
        sizes=measure_compactions(session.log.events, decisions),
    )


def _first_call(session: StoredSession, lineage: str, switch: BoundaryActivated) -> int | None:
    calls = find_calls(session).calls()
    first = bisect_left(calls, switch.effective_from, key=lambda call: call.sees)
    reports = _reported(session, first)
    return next((number for number, told in reports if is_known(switch, told, lineage)), None)


def _reported(session: StoredSession, first: int) -> Iterator[tuple[int, ModelCalled | None]]:
    """The calls from an index on by their numbers, and what was recorded of each; few at a time."""
    calls = find_calls(session).calls()
    events = session.log.events
    chain = events.session_chain(session.namespace, session.key)
    for begin in range(first, len(calls), FEW):
        some = calls[begin : begin + FEW]
        told = Ranges.of(call.told.originator_version for call in some if call.told)
        log = {one.position: cast(ModelCalled, one.event) for one in events.read(chain, told)}
        for number, call in enumerate(some, start=begin + 1):
            yield number, log[call.told.originator_version] if call.told else None
