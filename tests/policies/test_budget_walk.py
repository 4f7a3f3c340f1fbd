"""Where a budget is reached, found by bisection as a walk would find it."""

from itertools import accumulate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cutbank.domain.policies.cutting.budget_walk import reached

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

    assert reached(running, budget, inclusive=inclusive) == walked(
        sizes, budget, inclusive=inclusive
    )


@pytest.mark.parametrize(("inclusive", "index"), [(True, 1), (False, 0)])
def test_the_very_budget_is_enough_or_not(inclusive: bool, index: int) -> None:
    assert reached((0, 5, 10, 15), 10, inclusive=inclusive) == index


def test_of_nothing_no_budget_is_reached() -> None:
    assert reached((0,), 0) is None
    assert reached((0,), 5) is None
