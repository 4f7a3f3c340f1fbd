"""What is deferred is made when somebody looks, and once."""

from collections.abc import Callable

import pytest

from cutbank.domain.lazy_sequence import Deferred


@pytest.mark.parametrize(
    "look",
    [len, list, lambda some: some[0], lambda some: 2 in some, lambda some: list(reversed(some))],
)
def test_nothing_is_made_until_somebody_looks(look: Callable[[Deferred[int]], object]) -> None:
    asked: list[str] = []

    def make() -> list[int]:
        asked.append("made")
        return [1, 2, 3]

    some = Deferred(make)
    assert not some.is_made
    assert asked == []

    look(some)
    look(some)

    assert some.is_made
    assert asked == ["made"]


def test_it_reads_like_the_sequence_that_was_made() -> None:
    some = Deferred(lambda: iter("abc"))

    assert list(some) == ["a", "b", "c"]
    assert (some[0], some[-1], some[1:]) == ("a", "c", ("b", "c"))
    assert len(some) == 3
    assert "b" in some
    assert some == ("a", "b", "c")
    assert some == Deferred(lambda: "abc")
    assert some != ("a", "b")
    assert some != 3
