"""Reads the view at a coordinate: the boundary in effect, its kept blocks, and later ones."""

import os
from contextlib import AbstractContextManager
from functools import partial
from threading import RLock
from typing import cast

from ...domain.compaction import MAIN_LINEAGE, RECORDED_LINEAGE, CompactionState
from ...domain.errors import NotFoundError
from ...domain.event import Event
from ...domain.ranges import Ranges
from ...domain.session import SessionState
from ...domain.session_events import BlocksRetracted, ModelCalled
from ...projections.context_usage import ContextUsageTracker, EarlierUsage
from ...projections.history_view import CallFilter, HistoryFold, HistoryView
from ...projections.view_content import Coordinate, RecordedEvent
from .earlier_calls import BoundaryRecord, load_boundary, read_earlier_calls
from .event_log.chain import Chain
from .event_log.event_store import EventStore

_Fold = tuple[HistoryFold, Coordinate, CompactionState]
"""A fold, the coordinate that it has reached, and the lineage state where it began."""


class ViewReader:
    """The views of one session on one lineage: O(kept), whatever the history's length.

    The newest fold is cached and advanced by new events; any other view is folded from its
    boundary. The newest fold's events are cached too, so that a newly served boundary needs to read
    only the missing ones.
    """

    def __init__(
        self,
        store: EventStore,
        namespace: str,
        key: str,
        lineage: str,
        generation: int | None = None,
    ) -> None:
        """`generation` is that of a deleted session, whose forks still have its beginning."""
        self.store = store
        self.namespace = namespace
        self.key = key
        self.lineage = lineage
        if generation is None:
            generation = store.find_generation(namespace, key)
        self.generation = generation
        self._chain: Chain | None = None
        self._process = os.getpid()
        self._advancing = RLock()
        self._newest: _Fold | None = None
        self._boundary: tuple[int, BoundaryRecord | None] = (0, None)
        self._log: dict[int, RecordedEvent] = {}
        """The events of the newest fold, by position; they never change."""
        self._coming: tuple[_Fold, dict[int, RecordedEvent]] | None = None
        """A fold as if a prepared boundary were served, with its events."""
        self._left: object = None
        """The fold replaced by a swap: freeing it takes as long as the swap, and can wait."""

    @property
    def advancing(self) -> AbstractContextManager[object]:
        """The lock that is held while the newest fold is used, as threads may share a session."""
        if self._process != os.getpid():
            # In a forked child, another thread of the parent may have left the folds half done.
            self._newest, self._log, self._coming = None, {}, None
            self._process, self._advancing = os.getpid(), RLock()
        return self._advancing

    @property
    def chain(self) -> Chain:
        """The streams of the session's positions."""
        # Before Python 3.12 a cached_property holds a lock while it reads, which would stay locked
        # in a child that is forked meanwhile.
        if self._chain is None:
            self._chain = self.store.find_session_chain(self.namespace, self.key, self.generation)
        return self._chain

    @property
    def lineage_chain(self) -> Chain:
        """The streams of the lineage's versions, which its first event of its own changes."""
        return self.store.find_lineage_chain(
            self.namespace, self.key, self.lineage, self.generation
        )

    def read_view(self, at: int | None = None, lineage_version: int | None = None) -> HistoryView:
        """Return the view at a position and lineage version; the newest if they are None."""
        with self.advancing:
            return self.make_view(*self.read_history(at, lineage_version))

    def make_view(self, history: HistoryFold, coordinate: Coordinate) -> HistoryView:
        inherited_from = self._find_inherited_source(history)
        return history.make_view(self.key, self.namespace, coordinate, inherited_from)

    def read_newest(self) -> tuple[HistoryFold, HistoryView]:
        """Return the newest fold and view; hold `advancing` while using them."""
        history, coordinate = self.read_history()
        return history, self.make_view(history, coordinate)

    def read_decision(self, version: int) -> Event:
        return self.store.read(self.lineage_chain, Ranges.of([version]))[0].event

    def read_history(
        self, at: int | None = None, lineage_version: int | None = None
    ) -> tuple[HistoryFold, Coordinate]:
        """Return the fold at a coordinate, not to be changed; hold `advancing` while using it."""
        coordinate, state, lineage_state = self.find_coordinate(at, lineage_version)
        position = coordinate.position
        if at is None and lineage_version is None:
            self._swap_in(lineage_state)
            if advanced := self._advance(coordinate, state, lineage_state):
                return advanced, coordinate
            history, self._log = self._fold(coordinate, state, lineage_state, self._log)
            self._newest = (history, coordinate, lineage_state)
            return history, coordinate
        in_effect = self.read_state_in_effect(position, lineage_version)[1]
        return self._fold(coordinate, state, in_effect, {})[0], coordinate

    def find_coordinate(
        self, at: int | None = None, lineage_version: int | None = None
    ) -> tuple[Coordinate, SessionState, CompactionState]:
        """Return the coordinate of a view, with the session's and the lineage's state there.

        Raises NotFoundError for a position or version that does not exist.
        """
        position, state = self.store.read_head(self.chain, at)
        if at is not None and position < at:
            raise NotFoundError(f"session {self.key!r} has no position {at}: it ends at {position}")
        version, lineage_state = self.store.read_lineage_state(self.lineage_chain, lineage_version)
        if lineage_version is not None and version < lineage_version:
            raise NotFoundError(
                f"lineage {self.lineage!r} has no version {lineage_version}: it ends at {version}"
            )
        return Coordinate(position, self.lineage, version), state, lineage_state

    def read_prepared(self, prepared: int, at: Coordinate) -> tuple[HistoryFold, HistoryView]:
        """Return the newest fold and view as if the prepared boundary were served now.

        Hold `advancing` while using them; `at` is the coordinate of the newest view.
        """
        position, state = self.store.read_head(self.chain, at.position)
        served = CompactionState(
            active=prepared, effective_from=position, switched=at.lineage_version + 1
        )
        history, log = self._begin_fold(at, state, served, known=self._log)
        self._coming = ((history, at, served), log)
        return history, self.make_view(history, at)

    def read_state_in_effect(
        self, position: int, lineage_version: int | None = None
    ) -> tuple[int, CompactionState]:
        """Return the newest lineage version in effect for views at `position`, and its state.

        Activations take effect at ever later positions, so bisection finds the version.
        """
        chain = self.lineage_chain
        version, state = self.store.read_lineage_state(chain, lineage_version)
        if state.effective_from <= position:
            return version, state
        low, high = 0, version
        while low < high - 1:
            middle = (low + high) // 2
            if self.store.read_lineage_state(chain, middle)[1].effective_from <= position:
                low = middle
            else:
                high = middle
        return self.store.read_lineage_state(chain, low) if low else (0, CompactionState())

    def read_boundary(self, number: int) -> BoundaryRecord:
        """Return a boundary by its number, its summary, and the summary's digest.

        The newest result is cached, so it can be read ahead.
        """
        known, said = self._boundary
        if number != known or said is None:
            said = load_boundary(self.store, self.lineage_chain, number)
            if said is None:
                raise NotFoundError(f"lineage {self.lineage!r} has no boundary {number}")
            self._boundary = number, said
        return said

    def read_retractions(self, position: int) -> list[BlocksRetracted]:
        """Return all retractions up to a position, oldest first; each names the one before it."""
        at = self.store.read_head(self.chain, position)[1].retraction
        found: list[BlocksRetracted] = []
        while at:
            found.append(self._read_retraction(at))
            at = found[-1].previous
        return found[::-1]

    def read_retracted(self, position: int) -> Ranges:
        """Return all positions that were retracted up to a position.

        A retraction that a later one takes back is not read: that one holds its positions too.
        """
        gone, at = Ranges(), self.store.read_head(self.chain, position)[1].retraction
        while at:
            retracted = self._read_retraction(at)
            gone, at = gone | retracted.positions, retracted.previous
            if run := gone.find_run(at):
                before = run[0] - 1
                at = self.store.read_head(self.chain, before)[1].retraction if before else 0
        return gone

    def _read_retraction(self, position: int) -> BlocksRetracted:
        (recorded,) = self.store.read(self.chain, Ranges.of([position]))
        return cast(BlocksRetracted, recorded.event)

    def _swap_in(self, state: CompactionState) -> None:
        """Switch to the fold that was prepared for this boundary, if it fits."""
        self._left = None
        if self._coming is None:
            return
        fold, log = self._coming
        served = fold[2]
        if _fold_key(served) == _fold_key(state):
            self._left = self._newest, self._log
            self._newest, self._log = fold, log
        if served.active != state.prepared:
            self._coming = None

    def _advance(
        self, coordinate: Coordinate, session: SessionState, state: CompactionState
    ) -> HistoryFold | None:
        """Return the newest fold brought up to date; None if a new fold is needed."""
        if self._newest is None:
            return None
        history, seen, seen_state = self._newest
        if coordinate.position < seen.position:
            self._log, self._boundary = {}, (0, None)  # the log was replaced
            return None
        if _fold_key(seen_state) != _fold_key(state) or session.cleared > seen.position:
            return None
        if coordinate.position > seen.position:
            news = self.store.read(self.chain, Ranges.span(seen.position + 1, coordinate.position))
            history.apply_all(news)
            self._log |= {recorded.position: recorded for recorded in news}
        self._newest = (history, coordinate, state)
        return None if history.is_summary_undone() else history

    def _fold(
        self,
        coordinate: Coordinate,
        state: SessionState,
        in_effect: CompactionState,
        known: dict[int, RecordedEvent],
    ) -> tuple[HistoryFold, dict[int, RecordedEvent]]:
        sees_from = 0
        while True:
            history, log = self._begin_fold(
                coordinate, state, in_effect, known=known, sees_from=sees_from
            )
            if not history.is_summary_undone():
                return history, log
            beneath = history.boundary.previous if history.boundary else None
            in_effect = in_effect._replace(active=beneath or 0)
            sees_from = history.undone_at

    def _begin_fold(
        self,
        coordinate: Coordinate,
        state: SessionState,
        in_effect: CompactionState,
        *,
        known: dict[int, RecordedEvent],
        sees_from: int = 0,
    ) -> tuple[HistoryFold, dict[int, RecordedEvent]]:
        """Return the fold that begins at the active boundary, undone or not, and its events."""
        active = in_effect.active
        boundary, summary, digest = self.read_boundary(active) if active else (None, None, b"")
        kept = boundary.kept if boundary else Ranges()
        after = boundary.after if boundary else 0
        history = HistoryFold(
            boundary,
            summary,
            digest,
            in_effect.effective_from if active else 0,
            usage_tracker=ContextUsageTracker(
                self.store.token_counts, partial(self._read_earlier, in_effect)
            ),
            sees=self._make_visibility(in_effect, sees_from),
        )
        if after:
            self._add_request(history, self._read_request_state(state, after))
        # A fork may inherit decisions about later positions than it shares.
        shared = Ranges.span(state.cleared + 1, coordinate.position)
        positions = (kept | Ranges.span(after + 1, coordinate.position)) & shared
        log = self._read(positions, known)
        history.apply_all(log.values())
        self._add_request(history, state)
        return history, log

    def _read(self, positions: Ranges, known: dict[int, RecordedEvent]) -> dict[int, RecordedEvent]:
        # Iterate over the positions, which may be far fewer than the known events.
        found = {position: known[position] for position in positions if position in known}
        missing = positions - Ranges.of(found) if found else positions
        for recorded in self.store.read(self.chain, missing) if missing else ():
            found[recorded.position] = recorded
        return dict(sorted(found.items())) if missing else found

    def _read_request_state(self, state: SessionState, after: int) -> SessionState:
        """Return the state whose system prompt and tools were in effect at a boundary."""
        if max(state.system, state.tools) <= after:
            return state
        return self.store.read_head(self.chain, after)[1]

    def _make_visibility(self, in_effect: CompactionState, sees_from: int) -> CallFilter:
        """Return a function that says which calls saw the view as it begins now."""
        imported = self._find_imported_version()

        def sees(call: ModelCalled) -> bool | None:
            is_ours = call.lineage == self.lineage or (
                (self.lineage, call.lineage) == (MAIN_LINEAGE, RECORDED_LINEAGE)
                and (imported is None or call.lineage_version <= imported)
            )
            if not is_ours:
                return None
            return call.lineage_version >= in_effect.switched and call.position >= sees_from

        return sees

    def _find_imported_version(self) -> int | None:
        """Return the newest version that the source recorded; None if all of them are."""
        for segment in self.lineage_chain.segments:
            if self.store.read_lineage_opening(segment.originator_id).lineage != RECORDED_LINEAGE:
                return segment.first - 1
        return None

    def _read_earlier(self, in_effect: CompactionState) -> EarlierUsage | None:
        """Return what calls before the newest switch say; None if there was no switch."""
        if not in_effect.switched:
            return None
        return read_earlier_calls(
            self.store,
            self.namespace,
            self.key,
            in_effect.effective_from,
            generation=self.generation,
            known=self._log,
            served=self.read_boundary(in_effect.active)[0] if in_effect.active else None,
        )

    def _add_request(self, history: HistoryFold, state: SessionState) -> None:
        history.system = self._read_single(state.system)
        history.tools = self._read_single(state.tools)
        history.settings = self._read_single(state.settings)

    def _read_single(self, position: int) -> RecordedEvent | None:
        return self.store.read(self.chain, Ranges.of([position]))[0] if position else None

    def _find_inherited_source(self, history: HistoryFold) -> str | None:
        if history.boundary is None:
            return None
        opened = self.store.read_lineage_opening(history.boundary.originator_id)
        where = (opened.namespace, opened.key, opened.lineage)
        if where == (self.namespace, self.key, self.lineage):
            return None
        return opened.lineage if opened.key == self.key else f"{opened.lineage} of {opened.key}"


def _fold_key(state: CompactionState) -> tuple[int, int, int]:
    return state.active, state.effective_from, state.switched
