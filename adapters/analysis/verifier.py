"""Checks invariants 1 to 3, and every fingerprint, on stored data."""

from collections import deque
from collections.abc import Callable, Iterator
from itertools import combinations
from typing import cast
from uuid import UUID

from eventsourcing.persistence import OperationalError

from ...domain.compaction import MAIN_LINEAGE
from ...domain.compaction_events import CompactBoundary
from ...domain.errors import StorageError
from ...domain.native_item import fill_item
from ...domain.ranges import Ranges
from ...domain.session_events import (
    BlockAppended,
    BlockEvent,
    BlocksRetracted,
    ModelCalled,
    RecordEvent,
)
from ...projections.block_statuses import collect_boundaries
from ...projections.recording import RecordedCall
from ...projections.view_content import RecordedEvent, find_parted_pairs
from ..runtime.sessions.recalled_blocks import get_item
from ..runtime.sessions.session_store import SessionStore
from ..runtime.sessions.stored_session import StoredSession
from ..storage.event_log.chain import StreamSegment
from ..storage.event_log.erasure import TOMBSTONES
from ..storage.event_log.event_store import EventStore
from ..storage.event_log.log_tables import DeletedStream, Stream
from ..storage.event_log.source_segments import list_digests, read_segments
from ..storage.event_log.storage_errors import translate_storage_errors
from ..storage.event_log.stream_check import check_stream, make_guard
from ..storage.view_reader import ViewReader
from ..transcripts.reports import VerificationReport, Violation
from .sent_views import SentViews


def verify(
    store: SessionStore,
    session: StoredSession | None = None,
    *,
    progress: Callable[[int, int], None] | None = None,
) -> VerificationReport:
    """Read one session, or all, and check what the store promises.

    Rules: `log` (positions without gaps, content that matches its hash), `source` (each segment of
    an imported file is there, unchanged), `coverage` (each block up
    to a boundary has one status), `pairs` (no call without its result), `fingerprint` (each served
    call's view gives the same bytes again). `progress` is called with the sessions done and the
    total.
    """
    sessions = [session] if session else store.sessions()
    report = VerificationReport()
    for done, one in enumerate(sessions):
        if progress:
            progress(done, len(sessions))
        with translate_storage_errors(store.name):
            _SessionVerifier(store.events, one, report).check()
        report.sessions += 1
    if session is None:
        with translate_storage_errors(store.name):
            report.violations += _check_catalog(store.events)
    if progress:
        progress(len(sessions), len(sessions))
    return report


def _check_catalog(store: EventStore) -> Iterator[Violation]:
    """Check that the database is intact, and that its catalog names every stream."""
    for complaint in store.recorder.find_problems():
        yield Violation("", "log", f"the database is damaged: {complaint}")
    for stream in store.recorder.select_deleted():
        yield from _check_deleted(store, stream)
    if unnamed := store.recorder.count_unnamed_streams():
        yield Violation("", "log", f"{unnamed} streams are in no catalog")


def _check_deleted(store: EventStore, stream: DeletedStream) -> Iterator[Violation]:
    """Check the stream of a deleted session: all of it, or the skeleton if it was erased."""
    id, is_kept = stream.originator_id, stream.erased is None
    opening = store.recorder.select_events(id, limit=1)
    first = opening[0].originator_version if opening else 1
    guard = make_guard(store, Stream(*stream[:5])) if is_kept else None
    last = None
    for last, _, problems in check_stream(store, id, first, None, guard, may_be_erased=not is_kept):
        if stream.erased and not last.is_erased and last.topic not in TOMBSTONES:
            problems.append("its content is there, although it was erased")
        for problem in problems:
            at = last.originator_version
            yield Violation(stream.session, "log", problem, stream.lineage, at)
    if not is_kept and (last is None or last.topic not in TOMBSTONES):
        yield Violation(stream.session, "log", "nothing says why it was erased", stream.lineage)


class _SessionVerifier:
    """Checks one session, and adds what it finds to a report."""

    def __init__(
        self, store: EventStore, session: StoredSession, report: VerificationReport
    ) -> None:
        self.store = store
        self.session = session
        self.name = session.namespace, session.key
        self.report = report
        self.chain = store.find_session_chain(*self.name)
        self.head = store.read_head(self.chain)[0]
        self.blocks = Ranges()
        self.retractions: list[BlocksRetracted] = []
        self.calls: list[ModelCalled] = []

    def check(self) -> None:
        self._check_log()
        self._check_sources()
        for lineage in self.session.log.lineages or [MAIN_LINEAGE]:
            self._check_lineage(lineage)
        self._check_fingerprints()

    def _complain(
        self, rule: str, what: str, position: int | None = None, lineage: str | None = None
    ) -> None:
        self.report.violations.append(Violation(self.session.key, rule, what, lineage, position))

    def _check_stream(
        self, stream: StreamSegment, own_id: UUID, lineage: str | None
    ) -> Iterator[RecordedEvent | None]:
        """Yield every event, which has to be there, in order, readable (else None) and unchanged.

        A stream that the session does not own is not compared with the catalog.
        """
        id, guard = stream.originator_id, None
        if id == own_id:
            guard = make_guard(self.store, Stream(id, *self.name, lineage))
        for row, event, problems in check_stream(self.store, id, stream.first, stream.last, guard):
            for problem in problems:
                self._complain("log", problem, row.originator_version, lineage)
            yield event

    def _check_sources(self) -> None:
        """Check that each segment of the session's sources is there, unchanged."""
        recorder = self.store.recorder
        for row in recorder.select_imports(*self.name):
            try:
                for _ in read_segments(list_digests(row.segments), recorder.select_segment):
                    pass
            except (OperationalError, StorageError) as error:
                self._complain("source", f"{row.source}: {error}")

    def _check_log(self) -> None:
        blocks: list[int] = []
        records: set[tuple[str, int]] = set()
        own_id = self.session.log.id
        for segment in self.chain.segments:
            for recorded in self._check_stream(segment, own_id, None):
                self.report.positions += segment.originator_id == own_id
                match recorded and recorded.event:
                    case BlocksRetracted() as retraction:
                        self.retractions.append(retraction)
                    case ModelCalled(fingerprint=str()) as call:
                        self.calls.append(call)
                    case event if isinstance(event, BlockEvent):
                        blocks.append(event.originator_version)
                        self._check_item(event)
                    case event if isinstance(event, RecordEvent) and event.originator_id == own_id:
                        records.add((event.name, event.originator_version))
                    case _:
                        pass
        self.blocks = Ranges.of(blocks)
        for name, position in records ^ self.store.recorder.select_records(own_id):
            self._complain("log", f"the register of records is wrong about {name!r}", position)

    def _check_item(self, event: BlockEvent) -> None:
        """Check that the item that ends with a block can be put together from its blocks."""
        item, position = get_item(event), event.originator_version
        if item is None:
            return
        log = self.store.read(self.chain, Ranges.of([*item.pieces, position]))
        try:
            fill_item(item, [cast(BlockAppended, recorded.event).block for recorded in log])
        except (AttributeError, IndexError):
            self._complain("log", "its item names what its blocks do not hold", position)

    def _check_lineage(self, lineage: str) -> None:
        chain = self.store.find_lineage_chain(*self.name, lineage)
        for segment in chain.segments[-1:]:
            own_id = self.store.find_lineage_id(*self.name, lineage)
            deque(self._check_stream(segment, own_id, lineage), maxlen=0)
        version = self.store.read_lineage_state(chain)[0]
        log = self.store.read(chain, Ranges.span(1, version)) if version else []
        for boundary, summary in collect_boundaries([one.event for one in log]).values():
            self.report.boundaries += 1
            self._check_coverage(boundary, summary.covers if summary else Ranges(), lineage)
        reader = ViewReader(self.store, *self.name, lineage)
        states = (self.store.read_lineage_state(chain, at)[1] for at in range(1, version + 1))
        switches = {one.effective_from for one in states if 0 < one.effective_from <= self.head}
        for at in sorted({*switches, self.head}):
            open_calls = self.store.read_head(self.chain, at)[1].open_calls.values()
            for position, problem in find_parted_pairs(reader.read_view(at), set(open_calls)):
                self._complain("pairs", problem, position, lineage)

    def _check_coverage(self, boundary: CompactBoundary, covers: Ranges, lineage: str) -> None:
        blocks = self.blocks & Ranges.span(1, boundary.after)
        retracted = Ranges()
        for retraction in self.retractions:
            if retraction.originator_version <= boundary.after:
                retracted |= retraction.positions
        statuses = {"kept": boundary.kept, "hidden": boundary.hidden, "summarised": covers}
        wrong = [
            (both, f": {both} is both {one} and {other}")
            for one, other in combinations(statuses, 2)
            if (both := statuses[one] & statuses[other] & blocks)
        ]
        if forgotten := blocks - boundary.kept - boundary.hidden - covers - retracted:
            wrong.append((forgotten, f" forgot {forgotten}"))
        if served := boundary.kept & retracted & blocks:
            wrong.append((served, f" keeps retracted {served}"))
        for where, what in wrong:
            name = f"boundary {boundary.originator_version}"
            self._complain("coverage", name + what, where.runs[0][0], lineage)

    def _check_fingerprints(self) -> None:
        views = SentViews(self.store, *self.name)
        for call in self.calls:
            self.report.calls += 1
            sent = views.describe(RecordedCall(0, call.position, (), call)).shown
            if sent.fingerprint != call.fingerprint:
                problem = f"call {call.call_id} saw another view"
                self._complain("fingerprint", problem, call.position, call.lineage)
