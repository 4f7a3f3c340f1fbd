"""Finds out what a compaction would take out of the view, before anything is written."""

from collections.abc import Iterable

from ....domain.item import Item
from ....domain.ranges import Ranges
from ....domain.window import Window
from ....projections.history_view import Entry, History
from ....projections.planned import Planned, planned
from ...storage.event_log.event_store import EventStore
from ...storage.view_reader import ViewReader
from .order import Order
from .seen import Seen


class Planner:
    """Asks a policy about the view as it is now, and settles what it answers."""

    def __init__(self, store: EventStore, reader: ViewReader) -> None:
        self.store = store
        self.reader = reader

    def seen(self, order: Order) -> Seen:
        """What a policy would be shown now."""
        return Seen(self.store, self.reader, order, self._recalled)

    def planned(self, order: Order) -> Planned | Window:
        """What would leave; the window alone where the policy sees no need.

        Raises NothingToCompactError where nothing can be gained.
        """
        seen = self.seen(order)
        found = planned(seen.window, seen.view, order, self._originals, seen.decided.decided)
        return seen.window if found is None else found

    def _originals(self, covers: Ranges) -> Iterable[Item]:
        chain = self.store.session_chain(self.reader.namespace, self.reader.key)
        history = History().apply_all(self.store.read(chain, covers))
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

    def _recalled(self, history: History) -> list[Entry]:
        """Blocks that earlier boundaries took out and that were pinned since."""
        if history.boundary is None:
            return []
        if not history.pinned:
            return []
        decided = Ranges.span(1, history.boundary.after)
        missing = (history.pinned & decided) - Ranges.of(history.entries)
        if not missing:
            return []
        chain = self.store.session_chain(self.reader.namespace, self.reader.key)
        missing -= self.reader.retracted(self.store.head(chain)[0])
        pinned = History().apply_all(self.store.read(chain, missing))
        return list(pinned.entries.values())
