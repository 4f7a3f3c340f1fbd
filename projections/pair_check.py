"""Checks that a view separates no tool call from its result."""

from collections.abc import Collection, Iterator

from ..domain.blocks import Kind
from .history_view import HistoryView


def find_parted_pairs(view: HistoryView, open_calls: Collection[int]) -> Iterator[tuple[int, str]]:
    """Yield a position and a message for each result or closed call without its other half.

    `open_calls` are the positions of the open calls at the view's coordinate.
    """
    calls = {entry.position for entry in view.entries if entry.block.kind is Kind.TOOL_CALL}
    answered = {entry.call for entry in view.entries if entry.call is not None}
    for entry in view.entries:
        if entry.call is not None and entry.call not in calls:
            yield entry.position, f"the result #{entry.position} is served without its call"
    for call in sorted(calls - answered):
        if call not in open_calls:
            yield call, f"the closed call #{call} is served without its result"
    seen = set(open_calls)
    for call in sorted(seen - calls):
        yield call, f"the open call #{call} is hidden"
