"""Makes a policy's window of a trace, with items that are made on access."""

from collections.abc import Sequence
from functools import cached_property
from typing import overload

from ...domain.compaction_events import Trigger
from ...domain.item import Item
from ...domain.window import LazySequence, Window
from .traced_view import TracedView


class TracedWindow(Window):
    """The window of a view, valid until the view changes."""

    def __init__(
        self, view: TracedView, trigger: Trigger, in_use: int, request: int, held_tokens: int
    ) -> None:
        # Set only the fields that differ from their defaults, because each plan needs a window.
        # Cached properties are set here too, so that they need not be computed.
        vars(self).update(
            items=LazySequence(view.list_items),
            after=view.trace.position[view.end - 1] if view.end else 0,
            limit=view.limit,
            trigger=trigger,
            in_use=in_use,
            hides={},
            tokens=in_use,
            open_to_cut=TracedItems(view),
            running=TracedSums(view),
            held_tokens=held_tokens,
            _request=request,
        )

    @property
    def request_tokens(self) -> int:
        tokens: int = vars(self)["_request"]
        return tokens

    @cached_property
    def cut_start(self) -> int:
        return self.open_to_cut[0].position if self.open_to_cut else 1


class TracedItems(Sequence[Item]):
    def __init__(self, view: TracedView) -> None:
        self._item, self._first, self._length = view.make_item, view.first, view.end - view.first

    @overload
    def __getitem__(self, index: int) -> Item: ...

    @overload
    def __getitem__(self, index: slice) -> tuple[Item, ...]: ...

    def __getitem__(self, index: int | slice) -> Item | tuple[Item, ...]:
        if isinstance(index, slice):
            return tuple([self[at] for at in range(self._length)[index]])
        if 0 <= index < self._length:  # the usual case, in a hot loop
            return self._item(self._first + index)
        return self._item(self._first + range(self._length)[index])

    def __len__(self) -> int:
        return self._length


class TracedSums(Sequence[int]):
    """Prefix sums of the kept window's items, with the total."""

    def __init__(self, view: TracedView) -> None:
        self._running, self._first, self._length = (
            view.trace.running,
            view.first,
            view.end - view.first + 1,
        )
        self._before = self._running[view.first]
        self._shorter = [
            (index - view.first, view.trace.count_tokens(index) - shown)
            for index, shown in view.shortened.items()
            if index >= view.first
        ]

    @overload
    def __getitem__(self, index: int) -> int: ...

    @overload
    def __getitem__(self, index: slice) -> tuple[int, ...]: ...

    def __getitem__(self, index: int | slice) -> int | tuple[int, ...]:
        if isinstance(index, slice):
            return tuple([self[at] for at in range(self._length)[index]])
        if not 0 <= index < self._length:
            index = range(self._length)[index]
        found = self._running[self._first + index] - self._before
        if self._shorter:
            found -= sum(less for at, less in self._shorter if at < index)
        return found

    def __len__(self) -> int:
        return self._length
