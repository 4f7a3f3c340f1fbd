"""Makes the window that a policy gets, from the same fold that is served."""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial
from itertools import chain, islice
from operator import attrgetter
from typing import Any

from ..domain.blocks import ASSISTANT_KINDS
from ..domain.compaction_terms import CompactionTerms
from ..domain.item import WindowItem, get_place, order_for_view
from ..domain.ranges import Ranges
from ..domain.window import LazySequence, Window
from .history_view import HistoryFold, HistoryView
from .view_content import RecordedEvent, ViewEntry


def make_window(
    history: HistoryFold,
    view: HistoryView,
    terms: CompactionTerms,
    recalled_entries: Iterable[ViewEntry] = (),
    *,
    now: datetime | None = None,
) -> Window:
    """Return the window: the view's items, pins, hidden and retracted blocks, tokens in use.

    `recalled` are blocks that earlier boundaries removed and that were pinned since.
    """
    use, call = history.measure_usage(), history.last_call
    asked = view.request_settings.get("model")
    return frame_window(
        history,
        terms,
        now,
        items=LazySequence(
            partial(
                make_items,
                view.entries,
                tuple(recalled_entries),
                sizes=partial(history.usage_tracker.list_sizes, use.calibration, view.entries),
                open_calls=frozenset(history.open_calls),
                pinned=history.pinned,
                broken_off=dict(history.broken_off),
            )
        ),
        after=view.coordinate.position,
        usage=use.reported_tokens,
        usage_at=use.last_seen_position,
        in_use=use.used_tokens,
        calibration=use.calibration,
        cached=_count_cached_tokens(history),
        called_model=(call and call.model) or (asked if isinstance(asked, str) else None),
        system_prompt=view.system_prompt or "",
        last_call=call,
    )


def frame_window(
    history: HistoryFold, terms: CompactionTerms, now: datetime | None, **measured: Any
) -> Window:
    """Return the window of a fold; `measured` are its items and what is known of their sizes.

    Without `now`, it does not say how long ago the boundary was made.
    """
    boundary = history.boundary
    since_s = None
    if boundary is not None and now is not None:
        since_s = max(0.0, (now - boundary.timestamp).total_seconds())
    return Window(
        limit=terms.limit,
        trigger=terms.trigger,
        boundary=boundary,
        summary=history.summary,
        pinned=history.pinned,
        hides=dict(history.hides),
        retracted=history.retracted,
        prices=terms.prices,
        expected_calls=terms.expected_calls,
        since_boundary_s=since_s,
        **measured,
    )


def make_items(
    entries: tuple[ViewEntry, ...],
    recalled_entries: tuple[ViewEntry, ...],
    *,
    sizes: Callable[[], Iterable[int]],
    open_calls: frozenset[int],
    pinned: Ranges,
    broken_off: Mapping[int, float],
) -> list[WindowItem]:
    """Return the blocks of a view as items, with those that were pinned after they left."""
    unfinished = frozenset(_iter_unfinished(entries, broken_off))
    tokens_of = chain(sizes(), (entry.tokens for entry in recalled_entries))
    items = [
        WindowItem(
            position=entry.position,
            block=entry.block,
            turn=entry.turn,
            tokens=tokens,
            call=entry.call,
            is_open=entry.position in open_calls,
            is_pinned=entry.position in pinned,
            is_unfinished=entry.position in unfinished,
            length=None if entry.shown is None else len(entry.shown),
        )
        for entry, tokens in zip((*entries, *recalled_entries), tokens_of, strict=True)
    ]
    return order_for_view(sorted(items, key=get_place) if recalled_entries else items)


def make_recalled_items(log: Iterable[RecordedEvent]) -> list[WindowItem]:
    """Return the blocks of these events as items, whatever their status."""
    return [
        WindowItem(entry.position, entry.block, entry.turn, entry.tokens, entry.call)
        for entry in HistoryFold().apply_all(log).entries.values()
    ]


def find_recalled(history: HistoryFold) -> Ranges:
    """Return the blocks that earlier boundaries removed and that were pinned since."""
    if history.boundary is None or not history.pinned:
        return Ranges()
    decided = Ranges.span(1, history.boundary.after)
    return (history.pinned & decided) - Ranges.of(history.entries)


def make_item(entry: ViewEntry) -> WindowItem:
    """Return an item for a block that is complete and not an open call."""
    length = None if entry.shown is None else len(entry.shown)
    return WindowItem(
        entry.position, entry.block, entry.turn, entry.tokens, entry.call, length=length
    )


def _iter_unfinished(
    entries: Sequence[ViewEntry], broken_off: Mapping[int, float]
) -> Iterator[int]:
    for position, upto in broken_off.items():
        behind = bisect_right(entries, position, key=attrgetter("position"))
        for entry in islice(entries, behind, None):
            if entry.position > upto or entry.block.kind not in ASSISTANT_KINDS:
                break
            yield entry.position


def _count_cached_tokens(history: HistoryFold) -> int | None:
    """Return how many of this view's tokens the newest call left cached; None if unknown."""
    call = history.last_call
    if call is None or call.usage is None or call.usage.context is None:
        return None
    if history.boundary is not None and call.position <= history.boundary.after:
        return 0  # nothing after the boundary was sent yet
    usage = call.usage
    if usage.cache_write is None:
        # Providers that cache automatically report no writes; the whole prompt is cached from then
        # on.
        return usage.context
    return usage.cache_write + (usage.cache_read or 0)
