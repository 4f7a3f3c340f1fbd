"""Reads the lineages of a session as trees."""

from collections.abc import Iterable
from functools import partial

from ....domain.compaction import MAIN_LINEAGE, RECORDED_LINEAGE
from ....domain.compaction_events import BoundaryActivated, Summary
from ....projections.lineage_tree import LineageTree, grow_tree
from ...runtime.sessions.stored_session import StoredSession
from ...storage.compaction_sizes import measure_compactions
from ...storage.event_log.storage_errors import translate_storage_errors
from ..replaying.recordings import read_calls, read_decisions


def list_session_lineages(session: StoredSession) -> list[str]:
    """Return the lineages that together hold all compactions of a session.

    A fork's `main` may have no events of its own: it begins as its parent's. Compactions of
    imported transcripts are on `recorded`.
    """
    written = session.log.lineages
    if {MAIN_LINEAGE, RECORDED_LINEAGE}.isdisjoint(written) and read_decisions(
        session, MAIN_LINEAGE, without=[Summary]
    ):
        return [MAIN_LINEAGE, *written]
    return written


def lineage_tree(session: StoredSession, lineage: str = MAIN_LINEAGE) -> LineageTree:
    """Return which summary replaced what, through all boundaries of a lineage.

    Call numbers are those of the recorded model, from 1 on; tokens are estimates. Raises
    NotFoundError if no compaction was ever recorded on it.
    """
    with translate_storage_errors(session.log.context.name):
        session.log.check_lineage(lineage)
        return read_lineage_trees(session, [lineage])[0]


def read_lineage_trees(session: StoredSession, names: Iterable[str]) -> list[LineageTree]:
    return [_read_tree(session, name) for name in names]


def _read_tree(session: StoredSession, name: str) -> LineageTree:
    view = session.view(lineage=name)
    decisions = read_decisions(session, name)
    return grow_tree(
        decisions,
        session=session.key,
        namespace=session.namespace,
        lineage=name,
        served=view.boundary.originator_version if view.boundary else 0,
        first_call=partial(_find_first_call, session, name),
        sizes=measure_compactions(session.log.events, decisions),
    )


def _find_first_call(session: StoredSession, lineage: str, switch: BoundaryActivated) -> int | None:
    at = switch.originator_version, switch.effective_from, lineage
    return next((one.number for one in read_calls(session) if one.has_seen_decision(*at)), None)
