"""What trims leave of a text, and which blocks are shortened."""

from hypothesis import given
from hypothesis import strategies as st
from made_events import make_boundary

from cutbank import Block, Ranges, ToolResult, Window, WindowItem
from cutbank.domain.compaction_events import Trim
from cutbank.domain.trims import (
    count_trimmed_chars,
    list_effective_trims,
    trim_largest_results,
    trim_text,
    trim_to_ends,
)


@given(st.integers(0, 3_000), st.integers(0, 900), st.integers(0, 900), st.integers(1, 2_000_000))
def test_a_shortened_text_is_as_long_as_was_reckoned(
    whole: int, head: int, tail: int, position: int
) -> None:
    trim = Trim(position=position, head=head, tail=tail)

    assert count_trimmed_chars(whole, trim) == len(trim_text("x" * whole, trim))


def test_nothing_but_a_result_is_shortened() -> None:
    items = [WindowItem(1, Block.user("x" * 400), turn=1, tokens=100)]
    window = Window(items, after=1, limit=1_000)

    assert list_effective_trims(window, items, (Trim(position=1, head=10),)) == ()


def test_a_shortened_result_shows_twice_as_much_of_its_beginning_as_of_its_end() -> None:
    # The mark takes 60 of the 2,000 characters.
    assert trim_to_ends(7, 2_000) == Trim(position=7, head=1_293, tail=646)


def test_a_large_result_is_shortened_and_one_that_was_shortened_already_is_not() -> None:
    items = [
        WindowItem(at, ToolResult(tool_call_id="c", content="x" * 8_000), turn=1, tokens=2_000)
        for at in (1, 2)
    ]
    shortened = (Trim(position=1, head=4_000),)
    boundary = make_boundary(first_kept=1, kept=Ranges.span(1, 2), trims=shortened)
    window = Window(items, after=2, limit=1_000, boundary=boundary)

    assert trim_largest_results(window, items) == (trim_to_ends(2, 2_000),)
