"""Whatever people write for a handle is read, and what is no handle is refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cutbank.adapters.interfaces.command_line.handles import parse_handle, parse_handles
from cutbank.domain.errors import InvalidPositionError
from cutbank.domain.ranges import Ranges


def newest(back: int) -> int:
    """A session whose newest block is #100."""
    return 100 - back


def test_a_handle_is_read_as_people_write_it() -> None:
    rows = [
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
    ]

    assert not [row for row in rows if parse_handles(row[0], newest).runs != tuple(row[1])]
    positions = [parse_handle(word, newest) for word in ("12", " #12 ", "last-1")]
    assert positions == [12, 12, 99]


def test_what_is_no_handle_is_refused() -> None:
    words = ["", ",", "x", "0", "#0", "-3", "3-", "9-3", "1..", "..", "#", "last-", "3-last"]
    words += ["1.5", "9" * 16, "9" * 5_000, "12;", "\u0663", "last..3"]
    for word in words:
        with pytest.raises(InvalidPositionError):
            pytest.fail(f"{word!r} is read as {parse_handles([word], newest)}")


def test_a_range_is_no_position() -> None:
    with pytest.raises(InvalidPositionError):
        parse_handle("3-9", newest)


def test_only_last_asks_for_the_newest() -> None:
    def never(back: int) -> int:
        raise AssertionError(back)

    assert len(parse_handles(["1-5", "#9"], never)) == 6


@given(st.lists(st.integers(min_value=1, max_value=10**6), min_size=1))
def test_whatever_is_printed_of_handles_is_read_again(positions: list[int]) -> None:
    printed = Ranges.of(positions)

    assert parse_handles([str(printed)], newest) == printed
