"""What a policy is shown of a trace: a window whose blocks are made when they are looked at."""

from collections.abc import Sequence
from functools import cached_property
from typing import overload

from ...domain.compaction_events import Trigger
from ...domain.item import Item
from ...domain.lazy_sequence import LazySequence
from ...domain.window import Window
from .traced_view import TracedView


class TracedWindow(Window):
    """The window of a view that does not change meanwhile."""

    def __init__(
        self, view: TracedView, trigger: Trigger, in_use: int, request: int, held_tokens: int
    ) -> None:
        # Not field by field: one is made for each plan, and most fields are as nobody set them.
        # What is set here need not be worked out when it is asked for.
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
    """The kept window's items."""

    def __init__(self, view: TracedView) -> None:
        self._item, self._first, self._length = view.make_item, view.first, view.end - view.first

    @overload
    def __getitem__(self, index: int) -> Item: ...

    @overload
    def __getitem__(self, index: slice) -> tuple[Item, ...]: ...

    def __getitem__(self, index: int | slice) -> Item | tuple[Item, ...]:
        if isinstance(index, slice):
            return tuple([self[at] for at in range(self._length)[index]])
        if 0 <= index < self._length:  # nearly always, and that often
            return self._item(self._first + index)
        return self._item(self._first + range(self._length)[index])

    def __len__(self) -> int:
        return self._length


class TracedSums(Sequence[int]):
    """What precedes each item of the kept window, in tokens; and the sum of all."""

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
