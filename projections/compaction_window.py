"""The window that a policy is shown, made of the very fold that is served."""

from collections.abc import Callable, Iterable
from functools import partial
from itertools import chain

from ..domain.compaction_events import Trigger
from ..domain.deferred import Deferred
from ..domain.ranges import Ranges
from ..domain.window import Item, Window
from .history_view import Entry, History, HistoryView


def window_of(
    history: History,
    view: HistoryView,
    limit: int,
    trigger: Trigger,
    recalled: Iterable[Entry] = (),
) -> Window:
    """What the view holds, what was pinned, hidden and taken back, and what is in use.

    `recalled` are blocks that earlier boundaries took out and that were pinned since.
    """
    use = history.use()
    return Window(
        items=Deferred(
            partial(
                _items,
                view.entries,
                tuple(recalled),
                sizes=partial(history.reckoning.sizes, use.gauge, view.entries),
                open_calls=frozenset(history.open_calls),
                pinned=history.pinned,
            )
        ),
        after=view.coordinate.position,
        limit=limit,
        trigger=trigger,
        usage=use.reported,
        in_use=use.used,
        gauge=use.gauge,
        boundary=history.boundary,
        summary=history.summary,
        pinned=history.pinned,
        hides=dict(history.hides),
        retracted=history.retracted,
    )


def _items(
    entries: tuple[Entry, ...],
    recalled: tuple[Entry, ...],
    *,
    sizes: Callable[[], Iterable[int]],
    open_calls: frozenset[int],
    pinned: Ranges,
) -> list[Item]:
    tokens_of = chain(sizes(), (entry.tokens for entry in recalled))
    items = [
        Item(
            position=entry.position,
            block=entry.block,
            turn=entry.turn,
            tokens=tokens,
            call=entry.call,
            is_open=entry.position in open_calls,
            is_pinned=entry.position in pinned,
        )
        for entry, tokens in zip((*entries, *recalled), tokens_of, strict=True)
    ]
    return sorted(items, key=lambda item: item.position)
