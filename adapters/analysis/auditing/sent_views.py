"""Rebuilds what calls were sent, in order; a view that only grew is not read again."""

from typing import Any, cast
from uuid import UUID

from eventsourcing.persistence import MapperDeserialisationError, PersistenceError

from ....domain.compaction import MAIN_LINEAGE, RECORDED_LINEAGE
from ....domain.errors import NotFoundError
from ....domain.ranges import Ranges
from ....domain.session import derive_session_id
from ....domain.session_events import (
    BlocksRetracted,
    ModelCalled,
    RequestSettingsSet,
    SystemPromptSet,
    ToolsSet,
)
from ....projections.audit_entries import ModelCallEntry, RequestProof, SentView
from ....projections.history_view import HistoryFold, HistoryView
from ....projections.replay.recorded_calls import RecordedCall
from ....projections.view_content import Fingerprint, RecordedEvent, estimate_system_and_tools
from ...storage.event_log.chain import Chain
from ...storage.event_log.event_store import EventStore
from ...storage.view_reader import ViewReader

_RESTARTS = (SystemPromptSet, ToolsSet, RequestSettingsSet, BlocksRetracted)
"""Events after which a fingerprint has to be computed again."""


Owner = tuple[str, str]
"""The namespace and key of a session."""


def find_owners(store: EventStore, namespace: str, key: str) -> dict[UUID, Owner]:
    """Return the owner of each stream of a session: itself, and its fork parents.

    What a fork inherits belongs to its parent.
    """
    found: dict[UUID, Owner] = {}
    at: Owner | None = namespace, key
    while at is not None:
        found[derive_session_id(*at)] = at
        fork = store.read_opening(*at).fork
        at = (fork.namespace, fork.key) if fork else None
    return found


class SentViews:
    """The views that calls of one session were sent; it is fastest to ask in call order."""

    def __init__(self, store: EventStore, namespace: str, key: str) -> None:
        self.store = store
        self._own = (namespace, key)
        self._owners: dict[UUID, Owner] = {}
        self._views: dict[tuple[Owner, str], _GrowingView] = {}

    def describe(self, call: RecordedCall) -> ModelCallEntry:
        """Return what a call was sent."""
        reported = call.report
        version = reported.lineage_version if reported else None
        recorded = reported.fingerprint if reported else None
        name = self._find_owner(reported), _find_lineage(call)
        view = self._views.pop(name, None) or _GrowingView(self.store, *name)
        try:
            view.advance(call.last_seen_position, version)
        except NotFoundError as error:
            sent = SentView(RequestProof.NOT_PROVABLE, str(error))
        except (MapperDeserialisationError, PersistenceError) as error:
            proof = RequestProof.NOT_EQUAL if recorded else RequestProof.NOT_PROVABLE
            sent = SentView(proof, " ".join(str(error).split()))
        else:
            self._views[name] = view
            sent = view.check_fingerprint(recorded)
        return ModelCallEntry(call, reported, name[1], sent)

    def find_view(self, entry: ModelCallEntry) -> HistoryView | None:
        """Return the view of the call described last; None if it cannot be rebuilt."""
        view = self._views.get((self._find_owner(entry.reported), entry.lineage))
        return view.make_view() if view else None

    def _find_owner(self, reported: ModelCalled | None) -> Owner:
        if reported is None:
            return self._own
        if not self._owners:
            self._owners = find_owners(self.store, *self._own)
        return self._owners[reported.originator_id]


def _find_lineage(call: RecordedCall) -> str:
    """Return the lineage whose view a call saw; of an imported call, what its source recorded."""
    if call.report:
        return call.report.lineage
    return RECORDED_LINEAGE if call.is_imported else MAIN_LINEAGE


class _GrowingView:
    """The view of one lineage, advanced from call to call; all that it reads is checked."""

    def __init__(self, store: EventStore, owner: Owner, lineage: str) -> None:
        self.checked = _CheckedReads(store)
        self.reader = ViewReader(cast(EventStore, self.checked), *owner, lineage)
        self.history = HistoryFold()
        self._begins: tuple[int, int, int] | None = None
        self._position = 0
        self._fingerprint: Fingerprint | None = None
        self._request_tokens: tuple[tuple[int, int, int], int] = ((0, 0, 0), 0)

    def advance(self, position: int, lineage_version: int | None) -> None:
        self._coordinate = self.reader.find_coordinate(position, lineage_version)[0]
        state = self.reader.read_state_in_effect(position, lineage_version)[1]
        begins = (state.active, state.effective_from, state.switched)
        if begins != self._begins or position < self._position:
            self._begin(position, lineage_version)
        elif position > self._position:
            self._continue(position, lineage_version)
        self._begins, self._position = begins, position

    def check_fingerprint(self, recorded: str | None) -> SentView:
        """Compare this view with a call's recorded fingerprint."""
        again = self._compute_fingerprint()
        lineage = self.reader
        chain = self.checked.find_lineage_chain(lineage.namespace, lineage.key, lineage.lineage)
        why = "; ".join(self.checked.find_problems(self.history, self._chain, chain)) or None
        if recorded is None:
            proof = RequestProof.RECONSTRUCTED
        elif again != recorded:
            proof = RequestProof.NOT_EQUAL
            why = f"the view's fingerprint is {again}, and {recorded} was recorded"
        else:
            proof = RequestProof.NOT_EQUAL if why else RequestProof.PROVED
        boundary = self.history.boundary
        return SentView(
            proof,
            why,
            boundary=boundary.originator_version if boundary else None,
            blocks=len(self.history.entries),
            tokens=self._count_tokens(),
            fingerprint=again,
        )

    def make_view(self) -> HistoryView:
        return self.reader.make_view(self.history, self._coordinate)

    def _compute_fingerprint(self) -> str:
        if self._fingerprint is None:
            history = self.history
            self._fingerprint = Fingerprint(
                history.system, history.tools, history.settings, history.summary_digest
            )
            for entry in history.entries.values():
                self._fingerprint.add(entry)
        return self._fingerprint.hexdigest

    def _count_tokens(self) -> int:
        history = self.history
        known = (id(history.system), id(history.tools), id(history.summary))
        if self._request_tokens[0] != known:
            request = estimate_system_and_tools(history.system, history.tools)
            summary = history.summary.tokens if history.summary else 0
            self._request_tokens = (known, request + summary)
        return history.tokens + self._request_tokens[1]

    def _begin(self, position: int, lineage_version: int | None) -> None:
        self._begins = None
        self._fingerprint = None
        self.history = self.reader.read_history(position, lineage_version)[0]

    def _continue(self, position: int, lineage_version: int | None) -> None:
        store, history = self.reader.store, self.history
        news = Ranges.span(self._position + 1, position)
        self._begins = None  # after a failed read, the state is incomplete
        for recorded in store.read(self._chain, news):
            history.apply(recorded)
            if isinstance(recorded.event, _RESTARTS):
                self._fingerprint = None
            elif self._fingerprint and (entry := history.entries.get(recorded.position)):
                self._fingerprint.add(entry)
        if history.is_summary_undone():
            self._begin(position, lineage_version)

    @property
    def _chain(self) -> Chain:
        return self.reader.store.find_session_chain(self.reader.namespace, self.reader.key)


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

    def find_problems(self, history: HistoryFold, session: Chain, lineage: Chain) -> list[str]:
        """Return the problems with what a view shows: its blocks, its request and its summary."""
        if not self.found:
            return []
        request = (history.system, history.tools, history.settings)
        shown = {*history.entries, *(one.position for one in request if one)}
        problems = [
            f"#{at}: {self.found[session.find_stream(at), at]}"
            for at in sorted(shown)
            if (session.find_stream(at), at) in self.found
        ]
        if history.boundary is not None:
            number = history.boundary.originator_version
            stream = lineage.find_stream(number)
            problems += [
                f"version {at} of the lineage: {self.found[stream, at]}"
                for at in (number, number + 1)
                if (stream, at) in self.found
            ]
        return problems
