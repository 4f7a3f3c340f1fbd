"""Gathers what a page tells of a session: its blocks, its calls, its boundaries."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from .....domain.blocks import AnyBlock
from .....domain.compaction import MAIN, RECORDED
from .....domain.counting.sizes import Size
from .....domain.coverage import Fate
from .....domain.ranges import Ranges
from .....domain.session_events import BlocksRetracted
from .....projections.audit.shown import Shown
from .....projections.diffing.log_text import Log
from .....projections.diffing.view_diff import ViewDiff
from .....projections.fate_ranges import fates_of
from .....projections.history_view import HistoryView
from .....projections.lineage_tree import LineageTree, Node
from .....projections.replay.as_recorded import AsRecorded
from .....projections.replay.neutral import rows_of
from .....projections.replay.recording import Call, Recording
from .....projections.replay.replay import replayed
from .....projections.replay.served import Served
from ....runtime.sessions.recall import recalled
from ....runtime.sessions.stored_session import StoredSession
from ...replaying.recordings import decisions_of, recording_of
from ..audited_call import size_of_call
from ..diffs import compare
from ..lineages import lineages_of, trees_of
from ..owners import Owner, owners_of
from ..showings import Showings
from ..told_times import told_at

COMPARED = 60
"""Boundaries for which what left is told; of more of them the newest."""

Fates = Mapping[Fate, Ranges]
Key = tuple[str, int]
"""A boundary: the lineage that it was decided in, and its number."""


@dataclass(frozen=True, slots=True)
class ToldBlock:
    """A block of the log, and what has become of it."""

    position: int
    turn: int
    block: AnyBlock
    tokens: int
    when: datetime | None
    """None of what was imported from a source that does not tell."""
    fate: Fate | None


@dataclass(frozen=True, slots=True)
class ToldCall:
    """A call of the model, and the view that it was sent."""

    call: Call
    lineage: str
    size: Size
    """What the prompt took."""
    summary_tokens: int
    boundary: Key | None
    """What the view began at; None where it was all of the log."""
    shown: Shown | None
    """Of a call that cutbank served the verdict; what any other was sent is reconstructed."""

    @property
    def tokens(self) -> int:
        return self.size.tokens

    @property
    def is_served(self) -> bool:
        """Whether cutbank served it."""
        return self.shown is not None


@dataclass(frozen=True, slots=True)
class ToldBoundary:
    """A boundary, what it took out, and the fates that it gave."""

    lineage: str
    node: Node
    diff: ViewDiff | None
    """None where there were too many to compare all."""
    fates: Fates
    upto: int
    """The position as of which these are the fates."""
    compaction: int
    """Which compaction of its lineage it is, from 1 on."""

    @property
    def name(self) -> str:
        return f"compaction {self.compaction} on {self.lineage}"

    @property
    def key(self) -> Key:
        return self.lineage, self.node.number


@dataclass(frozen=True)
class Story:
    """All that a page tells."""

    session: StoredSession
    view: HistoryView
    """The newest, on the lineage that the page is about."""
    blocks: Sequence[ToldBlock]
    calls: Sequence[ToldCall]
    trees: Sequence[LineageTree]
    boundaries: Sequence[ToldBoundary]
    retractions: Sequence[tuple[int, Ranges]]
    """Where something was taken back, and what."""

    def boundary_of(self, call: ToldCall) -> ToldBoundary | None:
        """What the view began at that a call was sent."""
        return next((told for told in self.boundaries if told.key == call.boundary), None)


def story_of(session: StoredSession, lineage: str | None = None) -> Story:
    """What there is to tell; fates are those of `lineage`, `main` unless said."""
    recording = recording_of(session)
    log = Log(rows_of(recording))
    known = lineages_of(session)
    about = lineage or MAIN
    # What was never compacted on main goes on with what its source recorded.
    names = list(dict.fromkeys([*known, about])) if lineage or not known else known
    trees = trees_of(session, names)
    view = session.view(lineage=about)
    retractions = [
        (recorded.position, recorded.event.positions)
        for recorded in recording.log
        if isinstance(recorded.event, BlocksRetracted)
    ]
    retracted = _retracted(retractions, view.coordinate.position)
    fates = fates_of(view.boundary, view.summary, retracted, view.coordinate.position)
    boundaries = {
        told.key: told for tree in trees for told in _boundaries(session, tree, retractions, log)
    }
    return Story(
        session=session,
        view=view,
        blocks=list(_blocks(session, recording, fates)),
        calls=list(_calls(session, recording, trees)),
        trees=[tree for tree in trees if tree.nodes or tree.attempts],
        boundaries=list(boundaries.values()),
        retractions=retractions,
    )


def _retracted(retractions: Sequence[tuple[int, Ranges]], upto: int) -> Ranges:
    return Ranges(run for at, gone in retractions if at <= upto for run in gone.runs)


def _blocks(session: StoredSession, recording: Recording, fates: Fates) -> Iterator[ToldBlock]:
    store = session.log.events
    chain = store.session_chain(session.namespace, session.key)
    for found in recalled(store, chain, Ranges.span(1, len(recording.log))):
        recorded = recording.at(found.position)
        yield ToldBlock(
            position=found.position,
            turn=found.turn,
            block=found.block,
            tokens=recorded.tokens,
            when=told_at(recorded.event),
            fate=next((fate for fate, where in fates.items() if found.position in where), None),
        )


def _calls(
    session: StoredSession, recording: Recording, trees: Sequence[LineageTree]
) -> Iterator[ToldCall]:
    """Each call with the lineage that it was served from: the source's own where it was imported.

    Every lineage is replayed once; of each call the one counts that it was sent.
    """
    known = set(session.log.lineages)
    default = RECORDED if RECORDED in known else MAIN
    wanted = [_lineage_of(call, known, default) for call in recording.calls]
    replays: dict[str, Sequence[Served]] = {
        name: list(replayed(recording, AsRecorded(decisions_of(session, name), name), lineage=name))
        for name in dict.fromkeys(wanted)
    }
    decided_in = {
        (tree.lineage, node.number): node.lineage for tree in trees for node in tree.nodes
    }
    events = session.log.events
    showings, owners = Showings(events), owners_of(events, session.namespace, session.key)
    for index, (call, name) in enumerate(zip(recording.calls, wanted, strict=True)):
        served = replays[name][index]
        number = served.boundary.originator_version if served.boundary else 0
        yield ToldCall(
            call=call,
            lineage=name,
            size=size_of_call(call.reported, served.tokens),
            summary_tokens=served.summary.tokens if served.summary else 0,
            boundary=(decided_in.get((name, number), name), number) if number else None,
            shown=_shown(call, showings, owners),
        )


def _shown(call: Call, showings: Showings, owners: Mapping[UUID, Owner]) -> Shown | None:
    told = call.reported
    if told is None or told.fingerprint is None:
        return None
    owner = owners[told.originator_id]
    return showings.of(owner, told.lineage, told.lineage_version, call.sees, told.fingerprint)


def _lineage_of(call: Call, known: set[str], default: str) -> str:
    if call.reported is None or call.reported.fingerprint is None:
        return default
    return call.reported.lineage if call.reported.lineage in known else MAIN


def _boundaries(
    session: StoredSession,
    tree: LineageTree,
    retractions: Sequence[tuple[int, Ranges]],
    log: Log,
) -> Iterator[ToldBoundary]:
    compared = {node.number for node in tree.nodes[-COMPARED:]}
    for node in tree.nodes:
        # One that another lineage of the session decided is told of there.
        is_own = node.lineage == tree.lineage or node.lineage not in session.log.lineages
        if not is_own:
            continue
        upto = node.served_from or node.boundary.after
        found = None
        if node.number in compared:
            found = compare(session, node.number, tree.lineage, log=log)
        yield ToldBoundary(
            lineage=node.lineage,
            node=node,
            diff=found,
            fates=fates_of(node.boundary, node.summary, _retracted(retractions, upto), upto),
            upto=upto,
            compaction=tree.count(node.number),
        )
