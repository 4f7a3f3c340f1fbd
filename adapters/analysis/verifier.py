"""Checks invariants 1 to 3, and every fingerprint, on stored data."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import combinations

from ...domain.compaction import derive_lineage_id
from ...domain.compaction_events import CompactBoundary
from ...domain.errors import CutbankError
from ...domain.ranges import Ranges
from ...domain.session_events import BlockEvent, BlocksRetracted, ModelCalled
from ...projections.block_statuses import collect_boundaries
from ...projections.view_content import RecordedEvent, find_parted_pairs
from ..runtime.sessions.session_store import SessionStore
from ..runtime.sessions.stored_session import StoredSession
from ..storage.event_log.chain import StreamSegment
from ..storage.event_log.event_store import EventStore
from ..storage.event_log.storage_errors import translate_storage_errors
from ..storage.event_log.stored_row import Stream
from ..storage.event_log.stream_check import check_stream, make_guard
from ..storage.view_reader import ViewReader
from ..transcripts.reports import VerificationReport, Violation
from .auditing.sent_views import find_owners


def verify(
    store: SessionStore,
    session: StoredSession | None = None,
    *,
    progress: Callable[[int, int], None] | None = None,
) -> VerificationReport:
    """Read one session, or all, and check what the store promises.

    Rules: `log` (positions without gaps, content that matches its hash), `coverage` (each block up
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
            report.violations += _SessionVerifier(store.events, one, report).find_violations()
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
    if unnamed := store.recorder.count_unnamed_streams():
        yield Violation("", "log", f"{unnamed} streams are in no catalog")


class _SessionVerifier:
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

    def find_violations(self) -> Iterator[Violation]:
        yield from self._check_log()
        for lineage in self.session.log.lineages or ["main"]:
            yield from self._check_lineage(lineage)
        yield from self._check_fingerprints()

    def _check_stream(
        self, segment: StreamSegment, lineage: str | None = None
    ) -> Iterator[Violation | RecordedEvent]:
        """Yield the readable events of a stream, and what is wrong with it.

        Every event has to be present, in order, readable and unchanged.
        """
        if lineage is None:
            is_own = segment.originator_id == self.session.log.id
        else:
            is_own = segment.originator_id == derive_lineage_id(*self.name, lineage)
        stream = Stream(segment.originator_id, *self.name, lineage)
        guard = make_guard(self.store, stream) if is_own else None
        for row, recorded, problems in check_stream(
            self.store, segment.originator_id, segment.first, segment.last, guard
        ):
            self.report.positions += is_own and lineage is None
            for complaint in problems:
                yield self._make_violation("log", complaint, row.originator_version, lineage)
            if recorded:
                yield recorded

    def _check_log(self) -> Iterator[Violation]:
        blocks: list[int] = []
        for segment in self.chain.segments:
            for found in self._check_stream(segment):
                if isinstance(found, Violation):
                    yield found
                    continue
                match found.event:
                    case BlocksRetracted() as retraction:
                        self.retractions.append(retraction)
                    case ModelCalled(fingerprint=str()) as call:
                        self.calls.append(call)
                    case event if isinstance(event, BlockEvent):
                        blocks.append(found.position)
                    case _:
                        pass
        self.blocks = Ranges.of(blocks)

    def _check_lineage(self, lineage: str) -> Iterator[Violation]:
        chain = self.store.find_lineage_chain(*self.name, lineage)
        for own in chain.segments[-1:]:
            found = self._check_stream(own, lineage)
            yield from (one for one in found if isinstance(one, Violation))
        version = self.store.read_lineage_state(chain)[0]
        log = self.store.read(chain, Ranges.span(1, version)) if version else []
        for boundary, summary in collect_boundaries([one.event for one in log]).values():
            self.report.boundaries += 1
            covers = summary.covers if summary else Ranges()
            for violation in self._check_coverage(boundary, covers):
                yield replace(violation, lineage=lineage)
        reader = ViewReader(self.store, *self.name, lineage)
        states = (self.store.read_lineage_state(chain, at)[1] for at in range(1, version + 1))
        switches = {one.effective_from for one in states if 0 < one.effective_from <= self.head}
        for at in sorted({*switches, self.head}):
            open_calls = self.store.read_head(self.chain, at)[1].open_calls.values()
            for position, complaint in find_parted_pairs(reader.read_view(at), set(open_calls)):
                yield self._make_violation("pairs", complaint, position, lineage)

    def _check_coverage(self, boundary: CompactBoundary, covers: Ranges) -> Iterator[Violation]:
        name = f"boundary {boundary.originator_version}"
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
        forgotten = blocks - boundary.kept - boundary.hidden - covers - retracted
        served = boundary.kept & retracted & blocks
        wrong += [(forgotten, f" forgot {forgotten}"), (served, f" keeps retracted {served}")]
        for where, what in wrong:
            if where:
                yield self._make_violation("coverage", f"{name}{what}", where.runs[0][0])

    def _check_fingerprints(self) -> Iterator[Violation]:
        owners = find_owners(self.store, *self.name)
        for call in self.calls:
            self.report.calls += 1
            # An inherited call may have seen a lineage version that this session does not share.
            reader = ViewReader(self.store, *owners[call.originator_id], call.lineage)
            try:
                again = reader.read_view(call.position, call.lineage_version).fingerprint
            except CutbankError as error:
                again = str(error)
            if again != call.fingerprint:
                problem = f"call {call.call_id} saw another view"
                yield self._make_violation("fingerprint", problem, call.position, call.lineage)

    def _make_violation(
        self, rule: str, what: str, position: int | None = None, lineage: str | None = None
    ) -> Violation:
        return Violation(self.session.key, rule, what, lineage, position)
