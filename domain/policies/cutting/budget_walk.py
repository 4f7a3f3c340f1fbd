"""Finds by bisection how far back a token budget reaches."""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence


def find_budget_index(running: Sequence[int], budget: int, *, inclusive: bool = True) -> int | None:
    """Return the index of the newest item from which on the budget is reached; None if it never is.

    `running[i]` is the sum before item i, as in `Window.running`, and the last entry is the total.
    If `inclusive`, exactly the budget is enough; otherwise it takes more.
    """
    last = len(running) - 2
    most = running[-1] - budget
    find = bisect_right if inclusive else bisect_left
    # The items before it may have at most what the budget leaves over.
    index = find(running, most) - 1
    return min(index, last) if index >= 0 and last >= 0 else None
