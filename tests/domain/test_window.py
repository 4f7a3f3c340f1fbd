"""What a window gives policies: items made late, and prefix sums."""

from itertools import accumulate

from hypothesis import given
from hypothesis import strategies as st

from cutbank.domain.window import LazySequence, find_budget_index


def test_a_sequence_is_made_on_first_use_and_once() -> None:
    made: list[str] = []

    def make() -> str:
        made.append("abc")
        return made[-1]

    some = LazySequence(make)
    assert not made

    assert (some[0], some[-1], some[1:]) == ("a", "c", ("b", "c"))
    assert (len(some), list(reversed(some)), "b" in some) == (3, ["c", "b", "a"], True)
    assert some == ("a", "b", "c")
    assert some not in (("a", "b"), 3)
    assert made == ["abc"]


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
