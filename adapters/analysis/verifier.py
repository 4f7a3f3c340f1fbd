"""Checks invariants 1 to 3, and every fingerprint, on stored data."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import zip_longest

from ...domain.compaction_events import CompactBoundary, Summary
from ...domain.errors import CutbankError
from ...domain.event import dump_state, load_state
from ...domain.ranges import Ranges
from ...domain.session import Session, SessionState
from ...domain.session_events import BlockEvent, BlocksRetracted, ModelCalled, SessionOpened
from ...projections.pair_check import find_parted_pairs
from ...projections.recorded_event import RecordedEvent
from ..runtime.sessions.session_store import SessionStore
from ..runtime.sessions.stored_session import StoredSession
from ..storage.event_log.chain import Chain
from ..storage.event_log.event_mapper import load_json
from ..storage.event_log.event_store import EventStore
from ..storage.event_log.storage_errors import translate_storage_errors
from ..storage.event_log.stored_row import StoredRow
from ..storage.view_reader import ViewReader
from ..transcripts.reports import VerificationReport, Violation
from .auditing.owners import find_owners

_PAGE_ROWS = 1_000


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
    verdict = VerificationReport()
    for done, one in enumerate(sessions):
        if progress:
            progress(done, len(sessions))
        with translate_storage_errors(store.name):
            verdict.violations += _SessionVerifier(store.events, one, verdict).find_violations()
        verdict.sessions += 1
    if session is None:
        with translate_storage_errors(store.name):
            verdict.violations += _check_catalog(store.events)
    if progress:
        progress(len(sessions), len(sessions))
    return verdict


def _check_catalog(store: EventStore) -> Iterator[Violation]:
    """Check that the database is intact, and that its catalog names every stream."""
    for complaint in store.recorder.find_problems():
        yield Violation("", "log", f"the database is damaged: {complaint}")
    if unnamed := store.recorder.count_unnamed_streams():
        yield Violation("", "log", f"{unnamed} streams are in no catalog")


class _SessionVerifier:
    """The checks of one session."""

    def __init__(
        self, store: EventStore, session: StoredSession, verdict: VerificationReport
    ) -> None:
        self.store = store
        self.session = session
        self.verdict = verdict
        self.chain = store.find_session_chain(session.namespace, session.key)
        self.blocks = Ranges()
        self.retractions: list[tuple[int, Ranges]] = []
        self.calls: list[ModelCalled] = []
        self.guard = Session(
            session.log.id, version=0, state=SessionState(), subject="", clock=store.clock
        )

    def find_violations(self) -> list[Violation]:
        found = list(self._check_log())
        for lineage in self.session.log.lineages or ["main"]:
            found += self._check_lineage(lineage)
        found += self._check_fingerprints()
        return found

    def _check_log(self) -> Iterator[Violation]:
        """Check that every event is present, in order, readable and unchanged."""
        blocks: list[int] = []
        for segment in self.chain.segments:
            expected = segment.first
            for row in self._read_rows(segment.originator_id, segment.first, segment.last):
                if row.originator_version != expected:
                    yield self._make_violation("log", f"#{expected} is missing", expected)
                    expected = row.originator_version
                expected += 1
                self.verdict.positions += segment is self.chain.segments[-1]
                yield from self._check_unchanged(row)
                recorded = self._read_event(row)
                if segment is self.chain.segments[-1] and recorded is not None:
                    yield from self._check_state(row, recorded)
                if recorded is None:
                    yield self._make_violation(
                        "log", f"#{expected - 1} cannot be read", expected - 1
                    )
                    continue
                match recorded.event:
                    case BlocksRetracted(positions=positions):
                        self.retractions.append((recorded.position, positions))
                    case ModelCalled(fingerprint=str()) as call:
                        self.calls.append(call)
                    case _ if isinstance(recorded.event, BlockEvent):
                        blocks.append(recorded.position)
                    case _:
                        pass
        self.blocks = Ranges.of(blocks)

    def _read_rows(self, originator: object, first: int, last: int | None) -> Iterator[StoredRow]:
        position = first - 1
        while True:
            page = self.store.recorder.select_events(
                originator,  # type: ignore[arg-type]
                gt=position,
                lte=last,
                limit=_PAGE_ROWS,
            )
            yield from page
            if len(page) < _PAGE_ROWS:
                return
            position = page[-1].originator_version

    def _check_unchanged(self, row: StoredRow) -> Iterator[Violation]:
        for complaint in self.store.find_row_problems(row):
            yield self._make_violation("log", complaint, row.originator_version)

    def _check_state(self, row: StoredRow, recorded: RecordedEvent) -> Iterator[Violation]:
        """Check that the state stored with the event follows from the events up to it."""
        try:
            stored = load_json(row.carried)
        except ValueError:
            stored = None
        if not isinstance(stored, dict):
            position = row.originator_version
            yield self._make_violation("log", "the state beside it cannot be read", position)
            return
        event = recorded.event
        if isinstance(event, SessionOpened) and event.fork is not None:
            # A fork begins with its parent's state, which the parent's own events prove.
            self.guard.state = load_state(SessionState, stored)
        self.guard.evolve(event)
        if dump_state(self.guard.state) != stored:
            yield self._make_violation(
                "log", "the state beside it was changed", row.originator_version
            )
            self.guard.state = load_state(SessionState, stored)

    def _read_event(self, row: StoredRow) -> RecordedEvent | None:
        try:
            return self.store.make_recorded(row)
        except ValueError:
            return None

    def _check_lineage(self, lineage: str) -> Iterator[Violation]:
        reader = ViewReader(self.store, self.session.namespace, self.session.key, lineage)
        chain = self.store.find_lineage_chain(self.session.namespace, self.session.key, lineage)
        version, _ = self.store.read_lineage_state(chain)
        for segment in chain.segments[-1:]:
            for row in self._read_rows(segment.originator_id, segment.first, segment.last):
                for found in self._check_unchanged(row):
                    yield replace(found, lineage=lineage)
        log = self.store.read(chain, Ranges.span(1, version)) if version else []
        for recorded, following in zip_longest(log, log[1:]):
            if isinstance(boundary := recorded.event, CompactBoundary):
                self.verdict.boundaries += 1
                summary = following.event if following else None
                summary = summary if isinstance(summary, Summary) else None
                yield from self._check_coverage(lineage, boundary, summary)
        for effective_from in sorted({*self._find_switches(chain, version), self._find_head()}):
            yield from self._check_pairs(reader, lineage, effective_from)

    def _find_switches(self, chain: Chain, version: int) -> set[int]:
        """Return the positions from which another boundary was served."""
        states = (self.store.read_lineage_state(chain, at)[1] for at in range(1, version + 1))
        head = self._find_head()
        return {state.effective_from for state in states if 0 < state.effective_from <= head}

    def _find_head(self) -> int:
        return self.store.read_head(self.chain)[0]

    def _check_coverage(
        self, lineage: str, boundary: CompactBoundary, summary: Summary | None
    ) -> Iterator[Violation]:
        covers = summary.covers if summary else Ranges()
        blocks = self.blocks & Ranges.span(1, boundary.after)
        retracted = Ranges()
        for position, positions in self.retractions:
            if position <= boundary.after:
                retracted |= positions
        number = boundary.originator_version
        sets = {"kept": boundary.kept, "hidden": boundary.hidden, "summarised": covers}
        names = list(sets)
        for index, one in enumerate(names):
            for other in names[index + 1 :]:
                if both := (sets[one] & sets[other]) & blocks:
                    yield self._make_violation(
                        "coverage",
                        f"boundary {number}: {both} is both {one} and {other}",
                        both.runs[0][0],
                        lineage,
                    )
        if forgotten := blocks - boundary.kept - boundary.hidden - covers - retracted:
            yield self._make_violation(
                "coverage", f"boundary {number} forgot {forgotten}", forgotten.runs[0][0], lineage
            )
        if served := boundary.kept & retracted & blocks:
            yield self._make_violation(
                "coverage",
                f"boundary {number} keeps retracted {served}",
                served.runs[0][0],
                lineage,
            )

    def _check_pairs(self, reader: ViewReader, lineage: str, at: int) -> Iterator[Violation]:
        open_calls = self.store.read_head(self.chain, at)[1].open_calls.values()
        for position, complaint in find_parted_pairs(reader.read_view(at), set(open_calls)):
            yield self._make_violation("pairs", complaint, position, lineage)

    def _check_fingerprints(self) -> Iterator[Violation]:
        owners = find_owners(self.store, self.session.namespace, self.session.key)
        for call in self.calls:
            self.verdict.calls += 1
            # An inherited call may have seen a lineage version that this session does not share.
            reader = ViewReader(self.store, *owners[call.originator_id], call.lineage)
            try:
                again = reader.read_view(call.position, call.lineage_version).fingerprint
            except CutbankError as error:
                again = str(error)
            if again != call.fingerprint:
                yield self._make_violation(
                    "fingerprint",
                    f"call {call.call_id} saw another view",
                    call.position,
                    call.lineage,
                )

    def _make_violation(
        self, rule: str, what: str, position: int | None = None, lineage: str | None = None
    ) -> Violation:
        return Violation(self.session.key, rule, what, lineage, position)
