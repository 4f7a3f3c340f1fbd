"""The window that a policy is shown, made of the very fold that is served."""

from collections.abc import Iterable

from ..domain.compaction_events import Trigger
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
    sizes = dict(zip(history.entries, use.sizes, strict=True))
    entries = sorted((*view.entries, *recalled), key=lambda entry: entry.position)
    return Window(
        items=tuple(
            Item(
                position=entry.position,
                block=entry.block,
                turn=entry.turn,
                tokens=sizes.get(entry.position, entry.tokens),
                call=entry.call,
                is_open=entry.position in history.open_calls,
                is_pinned=entry.position in history.pinned,
            )
            for entry in entries
        ),
        after=view.coordinate.position,
        limit=limit,
        trigger=trigger,
        overhead=max(0, use.used - sum(use.sizes)),
        usage=use.reported,
        in_use=use.used,
        gauge=use.gauge,
        boundary=history.boundary,
        summary=history.summary,
        pinned=history.pinned,
        hides=history.hides,
        retracted=history.retracted,
    )
