"""Walks back over prefix sums of tokens until a budget is reached, by bisection."""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence


def find_budget_index(running: Sequence[int], budget: int, *, inclusive: bool = True) -> int | None:
    """Index of the newest item from which on the budget is reached; None where it never is.

    `running[i]` is what precedes item i, as in `Window.running`, and the last entry is the sum of
    all. `inclusive` has the very budget suffice, else more than it is needed.
    """
    last = len(running) - 2
    most = running[-1] - budget
    find = bisect_right if inclusive else bisect_left
    # All that precedes an item may be at most what the budget leaves over.
    index = find(running, most) - 1
    return min(index, last) if index >= 0 and last >= 0 else None
