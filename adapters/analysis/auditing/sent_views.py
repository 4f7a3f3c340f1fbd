"""Rebuilds what calls were sent, in order; a view that only grew is not read again."""

from typing import cast

from eventsourcing.persistence import MapperDeserialisationError, PersistenceError

from ....domain.errors import NotFoundError
from ....domain.ranges import Ranges
from ....domain.session_events import (
    BlocksRetracted,
    RequestSettingsSet,
    SystemPromptSet,
    ToolsSet,
)
from ....domain.token_estimate import estimate_text
from ....projections.audit.sent_view import RequestProof, SentView
from ....projections.history_view import HistoryFold, HistoryView
from ....projections.view_content import Fingerprint
from ...storage.event_log.chain import Chain
from ...storage.event_log.event_store import EventStore
from ...storage.view_reader import ViewReader
from .checked_reads import CheckedReads
from .owners import Owner

_REQUEST_EVENTS = (SystemPromptSet, ToolsSet, RequestSettingsSet)


class SentViews:
    """The views that calls of one session were sent; it is fastest to ask in call order."""

    def __init__(self, store: EventStore) -> None:
        self.store = store
        self._views: dict[tuple[Owner, str], _GrowingView] = {}

    def rebuild(
        self,
        owner: Owner,
        lineage: str,
        lineage_version: int | None,
        position: int,
        recorded: str | None,
    ) -> SentView:
        """Rebuild what a call saw at its owner's coordinate; `recorded` is its fingerprint."""
        view = self._views.get((owner, lineage))
        if view is None:
            view = self._views[owner, lineage] = _GrowingView(self.store, owner, lineage)
        try:
            view.advance(position, lineage_version)
        except NotFoundError as error:
            del self._views[owner, lineage]
            return SentView(RequestProof.NOT_PROVABLE, str(error))
        except (MapperDeserialisationError, PersistenceError) as error:
            del self._views[owner, lineage]
            return SentView(
                RequestProof.NOT_EQUAL if recorded else RequestProof.NOT_PROVABLE,
                " ".join(str(error).split()),
            )
        return view.check_fingerprint(recorded)

    def rebuild_view(self, owner: Owner, lineage: str) -> HistoryView | None:
        """Return the last rebuilt view of a lineage; None if it cannot be rebuilt."""
        view = self._views.get((owner, lineage))
        return view.make_view() if view else None


class _GrowingView:
    """The view of one lineage, advanced from call to call; all that it reads is checked."""

    def __init__(self, store: EventStore, owner: Owner, lineage: str) -> None:
        self.checked = CheckedReads(store)
        self.reader = ViewReader(cast(EventStore, self.checked), *owner, lineage)
        self.history = HistoryFold()
        self._begins: tuple[int, int, int] | None = None
        self._position = 0
        self._fingerprint: Fingerprint | None = None
        self._besides: tuple[tuple[int, int, int], int] = ((0, 0, 0), 0)

    def advance(self, position: int, lineage_version: int | None) -> None:
        """Move forward or back to a coordinate."""
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
        """Return the whole view as it was served."""
        reader = self.reader
        return reader.make_view(self.history, self._coordinate)

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
        """Estimate the tokens of the whole view, as HistoryView does."""
        history = self.history
        known = (id(history.system), id(history.tools), id(history.summary))
        if self._besides[0] != known:
            system = estimate_text(history.system.event.text) if history.system else 0  # type: ignore[attr-defined]
            tools = estimate_text(str(history.tools.event.tools)) if history.tools else 0  # type: ignore[attr-defined]
            summary = history.summary.tokens if history.summary else 0
            self._besides = (known, system + tools + summary)
        return history.tokens + self._besides[1]

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
            if isinstance(recorded.event, (*_REQUEST_EVENTS, BlocksRetracted)):
                self._fingerprint = None
            elif self._fingerprint and (entry := history.entries.get(recorded.position)):
                self._fingerprint.add(entry)
        if history.is_summary_undone():
            self._begin(position, lineage_version)

    @property
    def _chain(self) -> Chain:
        return self.reader.store.find_session_chain(self.reader.namespace, self.reader.key)
