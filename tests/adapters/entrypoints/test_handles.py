"""Whatever people write for a handle is read, and what is no handle is refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cutbank.adapters.interfaces.command_line import handle_parsing
from cutbank.domain.errors import InvalidPositionError
from cutbank.domain.ranges import Ranges


def newest(back: int) -> int:
    """A session whose newest block is #100."""
    return 100 - back


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["12"], [(12, 12)]),
        (["#12"], [(12, 12)]),
        (["3-9"], [(3, 9)]),
        (["#3-9"], [(3, 9)]),
        (["#3-#9"], [(3, 9)]),
        (["3..9"], [(3, 9)]),
        (["3-9,12"], [(3, 9), (12, 12)]),
        (["3-9, 12 #15"], [(3, 9), (12, 12), (15, 15)]),
        (["12", "3-9"], [(3, 9), (12, 12)]),
        (["last"], [(100, 100)]),
        (["LAST"], [(100, 100)]),
        (["last-3"], [(97, 97)]),
        (["last-3..last"], [(97, 100)]),
        (["90..last"], [(90, 100)]),
        (["7,"], [(7, 7)]),
    ],
)
def test_a_handle_is_read_as_people_write_it(
    words: list[str], expected: list[tuple[int, int]]
) -> None:
    assert handle_parsing.parsed(words, newest).runs == tuple(expected)


@pytest.mark.parametrize(
    "word",
    [
        *("", ",", "x", "0", "#0", "-3", "3-", "9-3", "1..", "..", "#", "last-", "3-last"),
        *("1.5", "9" * 16, "9" * 5_000, "12;", "\u0663", "last..3"),
    ],
)
def test_what_is_no_handle_is_refused(word: str) -> None:
    with pytest.raises(InvalidPositionError):
        handle_parsing.parsed([word], newest)


@pytest.mark.parametrize(("word", "expected"), [("12", 12), (" #12 ", 12), ("last-1", 99)])
def test_one_position_is_one_handle(word: str, expected: int) -> None:
    assert handle_parsing.position(word, newest) == expected


def test_a_range_is_no_position() -> None:
    with pytest.raises(InvalidPositionError):
        handle_parsing.position("3-9", newest)


def test_only_last_asks_for_the_newest() -> None:
    def never(back: int) -> int:
        raise AssertionError(back)

    assert len(handle_parsing.parsed(["1-5", "#9"], never)) == 6


@given(st.lists(st.integers(min_value=1, max_value=10**6), min_size=1))
def test_whatever_is_printed_of_handles_is_read_again(positions: list[int]) -> None:
    printed = Ranges.of(positions)

    assert handle_parsing.parsed([str(printed)], newest) == printed
