"""Rebuilds what calls were sent, in order; a view that only grew is not read again."""

from typing import Any, cast
from uuid import UUID

from eventsourcing.persistence import MapperDeserialisationError, PersistenceError

from ...domain.cached_property import cached_property
from ...domain.compaction import MAIN_LINEAGE, RECORDED_LINEAGE
from ...domain.errors import NotFoundError
from ...domain.ranges import Ranges
from ...domain.session import derive_session_id
from ...domain.session_events import (
    BlocksRetracted,
    RequestSettingsSet,
    SystemPromptSet,
    ToolsSet,
)
from ...projections.audit_entries import AuditedCall, RequestProof, SentView
from ...projections.history_view import HistoryFold, HistoryView
from ...projections.recording import RecordedCall
from ...projections.view_content import Fingerprint, RecordedEvent, estimate_system_and_tools
from ..storage.event_log.chain import Chain
from ..storage.event_log.event_store import EventStore
from ..storage.view_reader import ViewReader

_RESTARTS = (SystemPromptSet, ToolsSet, RequestSettingsSet, BlocksRetracted)
"""Events after which a fingerprint has to be computed again."""


Owner = tuple[str, str, int]
"""The namespace and key of a session."""


class SentViews:
    """The views that calls of one session were sent; it is fastest to ask in call order."""

    def __init__(self, store: EventStore, namespace: str, key: str) -> None:
        self.store = store
        self._own = (namespace, key, store.find_generation(namespace, key))
        self._views: dict[tuple[Owner, str], _GrowingView] = {}

    @cached_property
    def _owners(self) -> dict[UUID, Owner]:
        """The owner of each stream of the session: itself, and its fork parents."""
        found: dict[UUID, Owner] = {}
        at: Owner | None = self._own
        while at is not None:
            found[derive_session_id(*at)] = at
            fork = self.store.read_opening(*at).fork
            at = (fork.namespace, fork.key, fork.generation) if fork else None
        return found

    def describe(self, call: RecordedCall) -> AuditedCall:
        """Return what a call was sent."""
        report = call.report
        # Of an imported call, it is what its source recorded.
        lineage = RECORDED_LINEAGE if call.is_imported else MAIN_LINEAGE
        owner, version, recorded = self._own, None, None
        if report is not None:
            lineage, version, recorded = report.lineage, report.lineage_version, report.fingerprint
            owner = self._owners[report.originator_id]
        view = self._views.pop((owner, lineage), None) or _GrowingView(self.store, owner, lineage)
        try:
            view.advance(call.last_seen_position, version)
        except NotFoundError as error:
            sent = SentView(RequestProof.NOT_PROVABLE, str(error))
        except (MapperDeserialisationError, PersistenceError) as error:
            proof = RequestProof.NOT_EQUAL if recorded else RequestProof.NOT_PROVABLE
            sent = SentView(proof, " ".join(str(error).split()))
        else:
            self._views[owner, lineage] = view
            sent = view.check_fingerprint(recorded)
        return AuditedCall(call, report, lineage, sent)

    def find_view(self, entry: AuditedCall) -> HistoryView | None:
        """Return the view of the call described last; None if it cannot be rebuilt."""
        owner = self._owners[entry.reported.originator_id] if entry.reported else self._own
        view = self._views.get((owner, entry.lineage))
        return view.reader.make_view(view.history, view.coordinate) if view else None


class _GrowingView:
    """The view of one lineage, advanced from call to call; all that it reads is checked."""

    def __init__(self, store: EventStore, owner: Owner, lineage: str) -> None:
        namespace, key, generation = owner
        self.checked = _CheckedReads(store)
        self.reader = ViewReader(
            cast(EventStore, self.checked), namespace, key, lineage, generation
        )
        self.chain = store.find_session_chain(*owner)
        self.history = HistoryFold()
        self._begins: tuple[int, int, int] | None = None
        self._position = 0
        self._fingerprint: Fingerprint | None = None

    def advance(self, position: int, lineage_version: int | None) -> None:
        self.coordinate = self.reader.find_coordinate(position, lineage_version)[0]
        state = self.reader.read_state_in_effect(position, lineage_version)[1]
        begins = (state.active, state.effective_from, state.switched)
        is_same = begins == self._begins and position >= self._position
        self._begins = None  # after a failed read, the state is incomplete
        if is_same:
            self._continue(position)
        if not is_same or self.history.is_summary_undone():
            self._fingerprint = None
            self.history = self.reader.read_history(position, lineage_version)[0]
        self._begins, self._position = begins, position

    def _continue(self, position: int) -> None:
        history = self.history
        for recorded in self.checked.read(self.chain, Ranges.span(self._position + 1, position)):
            history.apply(recorded)
            if isinstance(recorded.event, _RESTARTS):
                self._fingerprint = None
            elif self._fingerprint and (entry := history.entries.get(recorded.position)):
                self._fingerprint.add(entry)

    def check_fingerprint(self, recorded: str | None) -> SentView:
        """Compare this view with a call's recorded fingerprint."""
        history, again = self.history, self._compute_fingerprint()
        why = "; ".join(self._find_problems()) or None
        if recorded is None:
            proof = RequestProof.RECONSTRUCTED
        elif again != recorded:
            proof = RequestProof.NOT_EQUAL
            why = f"the view's fingerprint is {again}, and {recorded} was recorded"
        else:
            proof = RequestProof.NOT_EQUAL if why else RequestProof.PROVED
        request = estimate_system_and_tools(history.system, history.tools)
        return SentView(
            proof,
            why,
            boundary=history.boundary.originator_version if history.boundary else None,
            blocks=len(history.entries),
            tokens=history.tokens + request + (history.summary.tokens if history.summary else 0),
            fingerprint=again,
        )

    def _compute_fingerprint(self) -> str:
        if self._fingerprint is None:
            history = self.history
            self._fingerprint = Fingerprint(
                history.system, history.tools, history.settings, history.summary_digest
            )
            for entry in history.entries.values():
                self._fingerprint.add(entry)
        return self._fingerprint.hexdigest

    def _find_problems(self) -> list[str]:
        """Return the problems with what the view shows: its blocks, its request and its summary."""
        history, found = self.history, self.checked.found
        if not found:
            return []
        request = (history.system, history.tools, history.settings)
        shown = sorted({*history.entries, *(one.position for one in request if one)})
        places = [(f"#{at}", self.chain.find_stream(at), at) for at in shown]
        if history.boundary is not None:
            number, stream = history.boundary.originator_version, history.boundary.originator_id
            places += [(f"version {at} of the lineage", stream, at) for at in (number, number + 1)]
        return [f"{name}: {found[id, at]}" for name, id, at in places if (id, at) in found]


class _CheckedReads:
    """A read-only event store that records which events have changed content.

    Fingerprints are computed from the digests stored with events, so they do not detect content
    that no longer matches its digest.
    """

    def __init__(self, store: EventStore) -> None:
        self._store = store
        self.found: dict[tuple[UUID, int], str] = {}
        """The problems, by stream and version."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def read(self, chain: Chain, positions: Ranges) -> list[RecordedEvent]:
        read: list[RecordedEvent] = []
        for originator, runs in chain.split_by_stream(positions):
            for row in self._store.recorder.select_runs(originator, runs):
                for complaint in self._store.find_row_problems(row):
                    self.found[originator, row.originator_version] = complaint
                read.append(self._store.make_recorded(row))
        return read
