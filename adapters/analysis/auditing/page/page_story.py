"""Gathers the content of a session page: its blocks, calls and boundaries."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from .....domain.blocks import AnyBlock
from .....domain.compaction import MAIN_LINEAGE, RECORDED_LINEAGE
from .....domain.ranges import Ranges
from .....domain.session_events import BlocksRetracted
from .....domain.settlement import BlockStatus
from .....domain.token_estimate import PromptSize
from .....projections.audit.sent_view import SentView
from .....projections.diffing.session_text import SessionText
from .....projections.diffing.view_diff import ViewDiff
from .....projections.history_view import HistoryView
from .....projections.lineage_tree import BoundaryNode, LineageTree
from .....projections.replay.recorded_decider import RecordedDecider
from .....projections.replay.recorded_rows import make_session_rows
from .....projections.replay.recording import RecordedCall, Recording
from .....projections.replay.replay import replay_recording
from .....projections.replay.replayed_call import ReplayedCall
from .....projections.status_ranges import compute_status_ranges
from ....runtime.sessions.recall import read_recalled
from ....runtime.sessions.stored_session import StoredSession
from ...replaying.recordings import read_decisions, read_recording
from ..audited_call import measure_call
from ..diffs import compare
from ..lineages import list_session_lineages, read_lineage_trees
from ..owners import Owner, find_owners
from ..sent_views import SentViews
from ..source_times import find_source_time

MAX_COMPARED_BOUNDARIES = 60
"""The number of boundaries that are compared; of more, the newest."""

StatusRanges = Mapping[BlockStatus, Ranges]
BoundaryKey = tuple[str, int]
"""A boundary: the lineage that it was decided in, and its number."""


@dataclass(frozen=True, slots=True)
class PageBlock:
    """A block of the log, and its status."""

    position: int
    turn: int
    block: AnyBlock
    tokens: int
    when: datetime | None
    """None for imported blocks whose source has no time."""
    status: BlockStatus | None


@dataclass(frozen=True, slots=True)
class PageCall:
    """A call of the model, and the view that it was sent."""

    call: RecordedCall
    lineage: str
    size: PromptSize
    summary_tokens: int
    boundary: BoundaryKey | None
    """The boundary that the view starts at; None if the view was all of the log."""
    sent_view: SentView | None
    """The fingerprint check of a call that cutbank served; other calls are reconstructed."""

    @property
    def tokens(self) -> int:
        return self.size.tokens

    @property
    def is_served(self) -> bool:
        return self.sent_view is not None


@dataclass(frozen=True, slots=True)
class PageBoundary:
    """A boundary, what it removed, and the block statuses that it caused."""

    lineage: str
    node: BoundaryNode
    diff: ViewDiff | None
    """None if there were too many boundaries to compare all."""
    statuses: StatusRanges
    last_position: int
    """The position at which these statuses apply."""
    compaction_number: int
    """The number of the compaction on its lineage, from 1 on."""

    @property
    def name(self) -> str:
        return f"compaction {self.compaction_number} on {self.lineage}"

    @property
    def key(self) -> BoundaryKey:
        return self.lineage, self.node.number


@dataclass(frozen=True)
class PageStory:
    """The content of a page."""

    session: StoredSession
    view: HistoryView
    """The newest view, on the page's lineage."""
    blocks: Sequence[PageBlock]
    calls: Sequence[PageCall]
    trees: Sequence[LineageTree]
    boundaries: Sequence[PageBoundary]
    retractions: Sequence[tuple[int, Ranges]]
    """The retractions: their positions, and the positions that they removed."""

    def find_boundary(self, call: PageCall) -> PageBoundary | None:
        """Return the boundary at which the view of a call begins."""
        return next((told for told in self.boundaries if told.key == call.boundary), None)


def read_page_story(session: StoredSession, lineage: str | None = None) -> PageStory:
    """Read the content of a page; statuses are those of `lineage`, by default `main`."""
    recording = read_recording(session)
    log = SessionText(make_session_rows(recording))
    known = list_session_lineages(session)
    about = lineage or MAIN_LINEAGE
    # Where main has no compactions, use those that the source recorded.
    names = list(dict.fromkeys([*known, about])) if lineage or not known else known
    trees = read_lineage_trees(session, names)
    view = session.view(lineage=about)
    retractions = [
        (recorded.position, recorded.event.positions)
        for recorded in recording.log
        if isinstance(recorded.event, BlocksRetracted)
    ]
    retracted = _find_retracted(retractions, view.coordinate.position)
    fates = compute_status_ranges(view.boundary, view.summary, retracted, view.coordinate.position)
    boundaries = {
        told.key: told
        for tree in trees
        for told in _read_boundaries(session, tree, retractions, log)
    }
    return PageStory(
        session=session,
        view=view,
        blocks=list(_read_blocks(session, recording, fates)),
        calls=list(_read_calls(session, recording, trees)),
        trees=[tree for tree in trees if tree.nodes or tree.attempts],
        boundaries=list(boundaries.values()),
        retractions=retractions,
    )


def _find_retracted(retractions: Sequence[tuple[int, Ranges]], upto: int) -> Ranges:
    return Ranges(run for at, gone in retractions if at <= upto for run in gone.runs)


def _read_blocks(
    session: StoredSession, recording: Recording, fates: StatusRanges
) -> Iterator[PageBlock]:
    store = session.log.events
    chain = store.find_session_chain(session.namespace, session.key)
    for found in read_recalled(store, chain, Ranges.span(1, len(recording.log))):
        recorded = recording.get_event(found.position)
        yield PageBlock(
            position=found.position,
            turn=found.turn,
            block=found.block,
            tokens=recorded.tokens,
            when=find_source_time(recorded.event),
            status=next((fate for fate, where in fates.items() if found.position in where), None),
        )


def _read_calls(
    session: StoredSession, recording: Recording, trees: Sequence[LineageTree]
) -> Iterator[PageCall]:
    """Yield each call with the lineage that served it; for imported calls, the source's own.

    Every lineage is replayed once; for each call, the replay of the lineage that it was sent is
    used.
    """
    known = set(session.log.lineages)
    default = RECORDED_LINEAGE if RECORDED_LINEAGE in known else MAIN_LINEAGE
    wanted = [_find_lineage(call, known, default) for call in recording.calls]
    replays: dict[str, Sequence[ReplayedCall]] = {
        name: list(
            replay_recording(
                recording, RecordedDecider(read_decisions(session, name), name), lineage=name
            )
        )
        for name in dict.fromkeys(wanted)
    }
    decided_in = {
        (tree.lineage, node.number): node.lineage for tree in trees for node in tree.nodes
    }
    events = session.log.events
    showings, owners = SentViews(events), find_owners(events, session.namespace, session.key)
    for index, (call, name) in enumerate(zip(recording.calls, wanted, strict=True)):
        served = replays[name][index]
        number = served.boundary.originator_version if served.boundary else 0
        yield PageCall(
            call=call,
            lineage=name,
            size=measure_call(call.report, served.tokens),
            summary_tokens=served.summary.tokens if served.summary else 0,
            boundary=(decided_in.get((name, number), name), number) if number else None,
            sent_view=_rebuild_sent_view(call, showings, owners),
        )


def _rebuild_sent_view(
    call: RecordedCall, showings: SentViews, owners: Mapping[UUID, Owner]
) -> SentView | None:
    told = call.report
    if told is None or told.fingerprint is None:
        return None
    owner = owners[told.originator_id]
    return showings.rebuild(
        owner, told.lineage, told.lineage_version, call.last_seen_position, told.fingerprint
    )


def _find_lineage(call: RecordedCall, known: set[str], default: str) -> str:
    if call.report is None or call.report.fingerprint is None:
        return default
    return call.report.lineage if call.report.lineage in known else MAIN_LINEAGE


def _read_boundaries(
    session: StoredSession,
    tree: LineageTree,
    retractions: Sequence[tuple[int, Ranges]],
    log: SessionText,
) -> Iterator[PageBoundary]:
    compared = {node.number for node in tree.nodes[-MAX_COMPARED_BOUNDARIES:]}
    for node in tree.nodes:
        # A boundary that another lineage decided is shown there.
        is_own = node.lineage == tree.lineage or node.lineage not in session.log.lineages
        if not is_own:
            continue
        upto = node.served_from or node.boundary.after
        found = None
        if node.number in compared:
            found = compare(session, node.number, tree.lineage, log=log)
        yield PageBoundary(
            lineage=node.lineage,
            node=node,
            diff=found,
            statuses=compute_status_ranges(
                node.boundary, node.summary, _find_retracted(retractions, upto), upto
            ),
            last_position=upto,
            compaction_number=tree.find_compaction_number(node.number),
        )
