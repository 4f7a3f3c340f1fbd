"""Makes the items of a view, and keeps them so that only new ones are made."""

from collections.abc import Callable, Iterable
from dataclasses import replace

from ...domain.item import Item, get_place, order_for_view
from ..compaction_window import make_item, make_items
from ..history_view import HistoryFold
from ..view_entry import ViewEntry

_RecalledReader = Callable[[], tuple[ViewEntry, ...]]
"""Returns the blocks that earlier boundaries removed and that were pinned since."""


class ViewItems:
    """The items of a history that grows, and of the histories that replace it.

    The result equals that of `make_items`. Callers must call `forget` after any other change to
    existing blocks, such as a pin, a retraction or a late result; open calls are handled.
    """

    def __init__(self) -> None:
        self._history: HistoryFold | None = None
        self._position = 0
        self._made: list[Item] = []
        """All items up to the position, as if no call were open."""
        self._shown: tuple[Item, ...] = ()

    def update(self, history: HistoryFold, recalled: _RecalledReader) -> tuple[Item, ...]:
        if history is self._history and history.position == self._position:
            return self._shown
        if history.broken_off:
            # Rare; later blocks may then complete earlier ones.
            self.forget()
            return tuple(_make_all(history, recalled()))
        if history is self._history:
            self._made += self._iter_new_items(history)
        else:
            self._made = self._rebuild(history, recalled())
        self._history, self._position = history, history.position
        self._shown = self._mark_open_calls(history)
        return self._shown

    def forget(self) -> None:
        """Make all items again at the next update."""
        self._history = None

    def _iter_new_items(self, history: HistoryFold) -> Iterable[Item]:
        for position in range(self._position + 1, history.position + 1):
            if entry := history.entries.get(position):
                item = make_item(entry)
                yield replace(item, is_pinned=True) if position in history.pinned else item

    def _rebuild(self, history: HistoryFold, recalled: tuple[ViewEntry, ...]) -> list[Item]:
        known = {item.position: item for item in self._made}
        pinned = frozenset(history.pinned)
        made: list[Item] = []
        for entry in (*recalled, *history.entries.values()):
            item = known.get(entry.position)
            if item is None or not _is_same(item, entry):
                item = make_item(entry)
            if item.is_pinned != (entry.position in pinned):
                item = replace(item, is_pinned=not item.is_pinned)
            made.append(item)
        return order_for_view(sorted(made, key=get_place) if recalled else made)

    def _mark_open_calls(self, history: HistoryFold) -> tuple[Item, ...]:
        waiting = history.open_calls
        if not waiting:
            return tuple(self._made)
        return tuple(
            replace(item, is_open=True) if item.position in waiting else item for item in self._made
        )


def _is_same(item: Item, entry: ViewEntry) -> bool:
    """Check whether a block shows whole, and did when the item was made."""
    return (
        item.block is entry.block
        and item.tokens == entry.tokens
        and item.behind is None
        and item.length is None
        and entry.shown is None
    )


def _make_all(history: HistoryFold, recalled: tuple[ViewEntry, ...]) -> list[Item]:
    entries = tuple(history.entries.values())
    return make_items(
        entries,
        recalled,
        sizes=lambda: (entry.tokens for entry in entries),
        open_calls=frozenset(history.open_calls),
        pinned=history.pinned,
        broken_off=history.broken_off,
    )
