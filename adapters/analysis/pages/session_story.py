"""Gathers the content of a session page: its blocks, calls and boundaries."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from ....domain.compaction import MAIN_LINEAGE
from ....domain.ranges import Ranges
from ....domain.settlement import BlockStatus
from ....projections.audit_entries import AuditedBlock, AuditedCall
from ....projections.block_statuses import compute_status_ranges
from ....projections.history_view import HistoryView
from ....projections.lineage_tree import BoundaryNode, LineageTree
from ....projections.view_diff import ViewDiff
from ...runtime.sessions.stored_session import StoredSession
from ..auditing.audit import Audit, list_session_lineages, read_lineage_trees
from ..auditing.diffs import diff, read_fact_log

MAX_COMPARED_BOUNDARIES = 60
"""The number of boundaries of a lineage that are compared; of more, the newest."""

BoundaryKey = tuple[str, int]
"""A boundary: the lineage that it was decided in, and its number."""


@dataclass(frozen=True, slots=True)
class PageCall:
    """A call of the model, and the view that it was sent."""

    entry: AuditedCall
    summary_tokens: int
    boundary: BoundaryKey | None
    """The boundary that the view starts at; None if the view was all of the log."""


@dataclass(frozen=True, slots=True)
class PageBoundary:
    """A boundary, what it removed, and the block statuses that it caused."""

    lineage: str
    node: BoundaryNode
    diff: ViewDiff | None
    """None if there were too many boundaries to compare all."""
    statuses: Mapping[BlockStatus, Ranges]
    compaction_number: int
    """The number of the compaction on its lineage, from 1 on."""

    @property
    def name(self) -> str:
        return f"compaction {self.compaction_number} on {self.lineage}"

    @property
    def html_id(self) -> str:
        """The id for links; a lineage's name may hold any character."""
        return f"boundary-{self.lineage.encode('utf-8', 'surrogatepass').hex()}-{self.node.number}"


@dataclass(frozen=True)
class PageStory:
    """The content of a page."""

    session: StoredSession
    view: HistoryView
    """The newest view, on the page's lineage."""
    blocks: Sequence[AuditedBlock]
    calls: Sequence[PageCall]
    trees: Sequence[LineageTree]
    boundaries: Mapping[BoundaryKey, PageBoundary]


def read_page_story(session: StoredSession, lineage: str | None = None) -> PageStory:
    """Read the content of a page; statuses are those of `lineage`, by default `main`."""
    known = list_session_lineages(session)
    about = lineage or MAIN_LINEAGE
    # Where main has no compactions, use those that the source recorded.
    names = list(dict.fromkeys([*known, about])) if lineage or not known else known
    trees = read_lineage_trees(session, names)
    audit = Audit(session, about)
    entries = list(audit.read_between())
    retractions = [(one.originator_version, one.positions) for one in audit.retractions]
    nodes = {(tree.lineage, node.number): node for tree in trees for node in tree.nodes}
    return PageStory(
        session=session,
        view=session.view(lineage=about),
        blocks=[one for one in entries if isinstance(one, AuditedBlock)],
        calls=[_make_call(one, nodes) for one in entries if isinstance(one, AuditedCall)],
        trees=[tree for tree in trees if tree.nodes or tree.attempts],
        boundaries={
            (one.lineage, one.node.number): one
            for one in _read_boundaries(session, trees, retractions)
        },
    )


def _make_call(entry: AuditedCall, nodes: Mapping[BoundaryKey, BoundaryNode]) -> PageCall:
    number = entry.shown.boundary
    node = nodes.get((entry.lineage, number)) if number else None
    return PageCall(
        entry,
        summary_tokens=node.summary.tokens if node and node.summary else 0,
        boundary=(node.lineage if node else entry.lineage, number) if number else None,
    )


def _read_boundaries(
    session: StoredSession,
    trees: Sequence[LineageTree],
    retractions: Sequence[tuple[int, Ranges]],
) -> Iterator[PageBoundary]:
    log = read_fact_log(session)
    numbered = (
        (tree, count, node) for tree in trees for count, node in enumerate(tree.nodes, start=1)
    )
    for tree, count, node in numbered:
        if node.lineage != tree.lineage and node.lineage in session.log.lineages:
            continue  # it is shown in the lineage that decided it
        upto = node.served_from or node.boundary.after
        retracted = Ranges(run for at, gone in retractions if at <= upto for run in gone.runs)
        is_compared = count > len(tree.nodes) - MAX_COMPARED_BOUNDARIES
        yield PageBoundary(
            lineage=node.lineage,
            node=node,
            diff=diff(session, node.number, lineage=tree.lineage, log=log) if is_compared else None,
            statuses=compute_status_ranges(node.boundary, node.summary, retracted, upto),
            compaction_number=count,
        )
