"""Where a budget is reached, found by bisection as a walk would find it."""

from itertools import accumulate

from hypothesis import given
from hypothesis import strategies as st

from cutbank.domain.window import find_budget_index

SIZES = st.lists(st.integers(0, 9), max_size=30)


def walked(sizes: list[int], budget: int, *, inclusive: bool) -> int | None:
    """Item by item from the newest on, as the documents tell it."""
    held = 0
    for index in reversed(range(len(sizes))):
        held += sizes[index]
        if held > budget or (inclusive and held == budget):
            return index
    return None


@given(SIZES, st.integers(0, 200), st.booleans())
def test_bisection_finds_what_a_walk_finds(sizes: list[int], budget: int, inclusive: bool) -> None:
    running = tuple(accumulate(sizes, initial=0))

    assert find_budget_index(running, budget, inclusive=inclusive) == walked(
        sizes, budget, inclusive=inclusive
    )
