"""Rebuilds what calls were sent, one after another: a view that only grew is not read again."""

from collections.abc import Iterable
from typing import Any

from eventsourcing.persistence import MapperDeserialisationError, PersistenceError

from ...domain.compaction_events import CompactBoundary
from ...domain.errors import NotFoundError
from ...domain.ranges import Ranges
from ...domain.session_events import (
    BlocksRetracted,
    RequestSettingsSet,
    SystemPromptSet,
    ToolsSet,
)
from ...domain.token_budget import estimate_text
from ...projections.audit.shown import Proof, Shown
from ...projections.fingerprint import Fingerprint
from ...projections.history_view import History
from ..event_log.chain import Chain
from ..event_log.event_store import EventStore
from ..event_log.intact import changed
from ..view_reader import ViewReader
from .owners import Owner

REQUEST = (SystemPromptSet, ToolsSet, RequestSettingsSet)


class Showings:
    """The verdicts on calls of one session; the calls are best asked about in their order."""

    def __init__(self, store: EventStore) -> None:
        self.store = store
        self._views: dict[tuple[Owner, str], _GrowingView] = {}

    def of(
        self,
        owner: Owner,
        lineage: str,
        lineage_version: int | None,
        position: int,
        recorded: str | None,
    ) -> Shown:
        """What a call saw at a coordinate of its owner's; `recorded` is its fingerprint."""
        view = self._views.get((owner, lineage))
        if view is None:
            reader = ViewReader(self.store, *owner, lineage)
            view = self._views[owner, lineage] = _GrowingView(reader)
        try:
            view.advance(position, lineage_version)
        except NotFoundError as error:
            return Shown(Proof.NOT_PROVABLE, str(error))
        except (MapperDeserialisationError, PersistenceError) as error:
            del self._views[owner, lineage]
            return Shown(
                Proof.NOT_EQUAL if recorded else Proof.NOT_PROVABLE, " ".join(str(error).split())
            )
        return verdict(
            recorded,
            view.fingerprint,
            view.complaints(),
            boundary=view.boundary,
            blocks=len(view.history.entries),
            tokens=view.tokens,
        )


def verdict(recorded: str | None, again: str, complaints: Iterable[str], **size: Any) -> Shown:
    """What a rebuilt view says about a call; `size` are other fields of Shown."""
    size["fingerprint"] = again
    why = "; ".join(complaints) or None
    if recorded is None:
        return Shown(Proof.RECONSTRUCTED, why, **size)
    if again != recorded:
        why = f"the view's fingerprint is {again}, and {recorded} was recorded"
    return Shown(Proof.NOT_EQUAL if why else Proof.PROVED, why, **size)


class _GrowingView:
    """The view of one lineage, moved on from call to call."""

    def __init__(self, reader: ViewReader) -> None:
        self.reader = reader
        self.history = History()
        self._begins: tuple[int, int, int] | None = None
        self._position = 0
        self._fingerprint: Fingerprint | None = None
        self._complaints: dict[int, str] = {}
        self._of_summary: list[str] = []
        self._besides: tuple[tuple[int, int, int], int] = ((0, 0, 0), 0)

    def advance(self, position: int, lineage_version: int | None) -> None:
        """Go on, or back, to a coordinate."""
        self.reader.coordinate(position, lineage_version)
        state = self.reader.state_in_effect(position, lineage_version)[1]
        begins = (state.active, state.effective_from, state.switched)
        if begins != self._begins or position < self._position:
            self._begin(position, lineage_version)
        elif position > self._position:
            self._go_on(position, lineage_version)
        self._begins, self._position = begins, position

    @property
    def fingerprint(self) -> str:
        if self._fingerprint is None:
            history = self.history
            self._fingerprint = Fingerprint(
                history.system, history.tools, history.settings, history.summary_digest
            )
            for entry in history.entries.values():
                self._fingerprint.take(entry)
        return self._fingerprint.hexdigest

    @property
    def boundary(self) -> int | None:
        return self.history.boundary.originator_version if self.history.boundary else None

    @property
    def tokens(self) -> int:
        """Estimated tokens of the whole view, as HistoryView counts them."""
        history = self.history
        known = (id(history.system), id(history.tools), id(history.summary))
        if self._besides[0] != known:
            system = estimate_text(history.system.event.text) if history.system else 0  # type: ignore[attr-defined]
            tools = estimate_text(str(history.tools.event.tools)) if history.tools else 0  # type: ignore[attr-defined]
            summary = history.summary.tokens if history.summary else 0
            self._besides = (known, system + tools + summary)
        return history.tokens + self._besides[1]

    def complaints(self) -> list[str]:
        """What of the content that shows is not what was stored."""
        found = list(self._of_summary)
        if self._complaints:
            shown = _shown_by(self.history)
            found += [said for at, said in sorted(self._complaints.items()) if at in shown]
        return found

    def _begin(self, position: int, lineage_version: int | None) -> None:
        self._begins = None
        self.history = self.reader.history(position, lineage_version)[0]
        self._fingerprint = None
        shown = Ranges.of(_shown_by(self.history))
        self._complaints = changed(self.reader.store, self._chain, shown)
        self._of_summary = changed_summary(self.reader, self.history.boundary)

    def _go_on(self, position: int, lineage_version: int | None) -> None:
        store, history = self.reader.store, self.history
        news = Ranges.span(self._position + 1, position)
        self._begins = None  # where reading fails halfway, nothing can go on from here
        self._complaints |= changed(store, self._chain, news)
        for recorded in store.read(self._chain, news):
            history.apply(recorded)
            if isinstance(recorded.event, (*REQUEST, BlocksRetracted)):
                self._fingerprint = None
            elif self._fingerprint and (entry := history.entries.get(recorded.position)):
                self._fingerprint.take(entry)
        if history.is_undone():
            self._begin(position, lineage_version)

    @property
    def _chain(self) -> Chain:
        return self.reader.store.session_chain(self.reader.namespace, self.reader.key)


def _shown_by(history: History) -> set[int]:
    request = (history.system, history.tools, history.settings)
    return {*history.entries, *(one.position for one in request if one)}


def changed_summary(reader: ViewReader, boundary: CompactBoundary | None) -> list[str]:
    """What is wrong with a boundary, or with the summary that stands behind it."""
    if boundary is None:
        return []
    version = boundary.originator_version
    chain = reader.store.lineage_chain(reader.namespace, reader.key, reader.lineage)
    found = changed(reader.store, chain, Ranges.span(version, version + 1))
    return [f"boundary {version} of lineage {reader.lineage!r}: {said}" for said in found.values()]
