"""Plans what a compaction would take out of the view."""

from collections.abc import Iterable

from ....domain.item import Item
from ....domain.ranges import Ranges
from ....domain.window import Window
from ....projections.history_view import HistoryFold
from ....projections.planned_compaction import PlannedCompaction, plan_compaction
from ....projections.view_entry import ViewEntry
from ...storage.event_log.event_store import EventStore
from ...storage.view_reader import ViewReader
from .compaction_request import CompactionRequest
from .session_snapshot import SessionSnapshot


class Planner:
    """Asks a policy about the current view, and makes its plan legal."""

    def __init__(self, store: EventStore, reader: ViewReader) -> None:
        self.store = store
        self.reader = reader

    def take_snapshot(self, order: CompactionRequest) -> SessionSnapshot:
        """Return the view and the window that a policy gets now."""
        return SessionSnapshot(self.store, self.reader, order, self._read_pinned)

    def plan(self, order: CompactionRequest) -> PlannedCompaction | Window:
        """Return the plan, or only the window if the policy asks for nothing.

        Raises NothingToCompactError if nothing can be gained.
        """
        seen = self.take_snapshot(order)
        found = plan_compaction(
            seen.window, seen.view, order, self._read_originals, seen.decided.decided
        )
        return seen.window if found is None else found

    def _read_originals(self, covers: Ranges) -> Iterable[Item]:
        chain = self.store.find_session_chain(self.reader.namespace, self.reader.key)
        history = HistoryFold().apply_all(self.store.read(chain, covers))
        return [
            Item(
                position=entry.position,
                block=entry.block,
                turn=entry.turn,
                tokens=entry.tokens,
                call=entry.call,
            )
            for entry in history.entries.values()
        ]

    def _read_pinned(self, history: HistoryFold) -> list[ViewEntry]:
        """Return the blocks that earlier boundaries took out and that were pinned since."""
        if history.boundary is None:
            return []
        if not history.pinned:
            return []
        decided = Ranges.span(1, history.boundary.after)
        missing = (history.pinned & decided) - Ranges.of(history.entries)
        if not missing:
            return []
        chain = self.store.find_session_chain(self.reader.namespace, self.reader.key)
        missing -= self.reader.read_retracted(self.store.read_head(chain)[0])
        pinned = HistoryFold().apply_all(self.store.read(chain, missing))
        return list(pinned.entries.values())
