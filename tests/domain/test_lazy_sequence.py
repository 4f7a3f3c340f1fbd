"""A lazy sequence is made on first use, and once; it reads like what was made."""

from cutbank.domain.window import LazySequence


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
