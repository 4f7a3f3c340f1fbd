"""Reads what a compaction begins with: the newest view, its window, and the decisions beneath."""

from collections.abc import Iterable
from dataclasses import replace
from functools import cached_property
from math import ceil

from ....domain.compaction_events import Trigger
from ....domain.item import Item
from ....domain.ranges import Ranges
from ....domain.session import SessionState
from ....domain.window import Window
from ....projections.compaction_window import make_window
from ....projections.history_view import HistoryFold
from ....projections.view_content import ViewEntry
from ...storage.event_log.event_store import EventStore
from ...storage.view_reader import ViewReader
from .options import CompactionRequest


class SessionSnapshot:
    """The newest view of one lineage, with the decisions on which it is based."""

    def __init__(self, store: EventStore, reader: ViewReader, request: CompactionRequest) -> None:
        self._store = store
        self._reader = reader
        self._chain = store.find_session_chain(reader.namespace, reader.key)
        lineage = store.find_lineage_chain(reader.namespace, reader.key, reader.lineage)
        # Read before the view, so that a decision in between makes the plan stale.
        self.decided = store.read_lineage_state(lineage)[1]
        with reader.advancing:
            self.history, self.view = reader.read_newest()
            self.boundary = self.history.boundary
            window = make_window(
                self.history,
                self.view,
                request.limit,
                request.trigger,
                self._read_pinned(),
                prices=request.prices,
                expected_calls=request.expected_calls,
                now=store.clock() if self.boundary else None,
            )
        if request.cache_is_cold:
            window = replace(window, cached=0)
        self.share = 1.0 if request.usage is None else request.usage / max(window.tokens, 1)
        """The provider's count of the view divided by our estimate, if it reported one."""
        self.window = (
            window if request.usage is None else apply_reported_usage(window, request.usage)
        )

    @cached_property
    def state(self) -> SessionState:
        """The session's state at the view's newest position."""
        return self.read_state_at(self.view.coordinate.position)

    def read_state_at(self, position: int) -> SessionState:
        return self._store.read_head(self._chain, position)[1]

    def find_turn_at(self, position: int) -> int:
        return self.read_state_at(position).turn

    def was_drawn_by(self, trigger: Trigger) -> bool:
        """Return whether the view begins at a boundary with that trigger."""
        return self.boundary is not None and self.boundary.trigger is trigger

    def was_compacted_for(self, trigger: Trigger) -> bool:
        """Return whether this request was already compacted for that trigger."""
        return self.was_drawn_by(trigger) and self.history.is_same_request

    def read_originals(self, covers: Ranges) -> Iterable[Item]:
        """Read blocks from the log, whatever the view shows of them."""
        history = HistoryFold().apply_all(self._store.read(self._chain, covers))
        return [
            Item(entry.position, entry.block, entry.turn, entry.tokens, entry.call)
            for entry in history.entries.values()
        ]

    def _read_pinned(self) -> list[ViewEntry]:
        """Return the blocks that earlier boundaries took out and that were pinned since."""
        if self.boundary is None or not self.history.pinned:
            return []
        decided = Ranges.span(1, self.boundary.after)
        missing = (self.history.pinned & decided) - Ranges.of(self.history.entries)
        if not missing:
            return []
        missing -= self._reader.read_retracted(self._store.read_head(self._chain)[0])
        pinned = HistoryFold().apply_all(self._store.read(self._chain, missing))
        return list(pinned.entries.values())


def apply_reported_usage(window: Window, usage: int) -> Window:
    """Scale the window to the provider's count, which is more accurate than our estimate."""
    share = usage / max(window.tokens, 1)
    if share <= 1:
        return replace(window, usage=usage, in_use=usage)
    items = [replace(item, tokens=ceil(item.tokens * share)) for item in window.items]
    return replace(window, items=items, usage=usage, in_use=usage)
