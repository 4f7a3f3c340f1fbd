"""Reads the lineages of a session as trees."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from ...domain.compaction import MAIN, RECORDED
from ...projections.lineage_tree import LineageTree, lineage_tree
from ..replaying.recordings import decisions_of, recording_of

if TYPE_CHECKING:
    from ...projections.replay.recording import Call
    from ..stored_session import StoredSession


def lineages_of(session: "StoredSession") -> list[str]:
    """The lineages that say all that was ever compacted in a session.

    Nobody may have written to a fork's `main`, which begins as its parent's. What was imported is
    told on `recorded`.
    """
    written = session.lineages
    if {MAIN, RECORDED}.isdisjoint(written) and decisions_of(session, MAIN):
        return [MAIN, *written]
    return written


def trees_of(
    session: "StoredSession", names: Iterable[str], calls: "tuple[Call, ...] | None" = None
) -> list[LineageTree]:
    """A tree for each of these lineages, as of now."""
    calls = recording_of(session).calls if calls is None else calls
    return [_tree(session, name, calls) for name in names]


def _tree(session: "StoredSession", name: str, calls: "tuple[Call, ...]") -> LineageTree:
    view = session.view(lineage=name)
    return lineage_tree(
        decisions_of(session, name),
        session=session.key,
        namespace=session.namespace,
        lineage=name,
        served=view.boundary.originator_version if view.boundary else 0,
        calls=calls,
    )
