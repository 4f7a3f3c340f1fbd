"""A deferred sequence is made on first use, and once."""

from collections.abc import Callable

from cutbank.domain.window import LazySequence


def test_a_sequence_is_made_on_first_use_and_once() -> None:
    uses: list[Callable[[LazySequence[int]], object]] = [
        len,
        list,
        lambda some: some[0],
        lambda some: 2 in some,
        lambda some: list(reversed(some)),
    ]
    for use in uses:
        made: list[list[int]] = []

        def make(made: list[list[int]] = made) -> list[int]:
            made.append([1, 2, 3])
            return made[-1]

        some = LazySequence(make)
        assert (some.is_loaded, len(made)) == (False, 0)

        use(some)
        use(some)

        assert (some.is_loaded, len(made)) == (True, 1)


def test_it_reads_like_the_sequence_that_was_made() -> None:
    some = LazySequence(lambda: iter("abc"))

    assert (some[0], some[-1], some[1:]) == ("a", "c", ("b", "c"))
    assert some == ("a", "b", "c")
    assert some == LazySequence(lambda: "abc")
    assert some not in (("a", "b"), 3)
