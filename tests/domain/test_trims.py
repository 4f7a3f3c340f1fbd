"""What trims save is told without making them, and is what they save once they are made."""

from hypothesis import given
from hypothesis import strategies as st
from made_events import make_boundary

from cutbank import Block, Item, Ranges, ToolResult, Window
from cutbank.domain.compaction_events import CompactBoundary, Replacement, Trim
from cutbank.domain.trims import (
    count_trimmed_chars,
    iter_shortened_results,
    list_effective_trims,
    trim_largest_results,
    trim_text,
    trim_to_ends,
)

MOST = 12
POSITIONS = st.integers(1, MOST)
CHARACTERS = st.integers(0, 400)
RESULTS = st.tuples(CHARACTERS, st.integers(0, 100), st.booleans(), st.none() | CHARACTERS)


@given(
    told=st.lists(RESULTS, min_size=1, max_size=MOST),
    heads=st.dictionaries(POSITIONS, CHARACTERS),
    earlier=st.dictionaries(POSITIONS, CHARACTERS) | st.none(),
    hides=st.sets(POSITIONS, max_size=2),
    hidden=st.sets(POSITIONS, max_size=2),
    replaced=st.sets(POSITIONS, max_size=2),
)
def test_what_shortened_results_save_is_what_effective_trims_of_them_do(
    *,
    told: list[tuple[int, int, bool, int | None]],
    heads: dict[int, int],
    earlier: dict[int, int] | None,
    hides: set[int],
    hidden: set[int],
    replaced: set[int],
) -> None:
    items = [
        Item(
            position,
            ToolResult(tool_call_id="c", content="x" * size),
            turn=1,
            tokens=tokens,
            is_pinned=is_pinned,
            length=length,
        )
        for position, (size, tokens, is_pinned, length) in enumerate(told, start=1)
    ]
    boundary = drawn(earlier, hidden, replaced) if earlier is not None else None
    window = Window(
        items, after=len(items), limit=1_000, boundary=boundary, hides=dict.fromkeys(hides, None)
    )

    found = list(
        iter_shortened_results(
            window, [(one, heads[one.position]) for one in items if one.position in heads]
        )
    )

    trims = tuple(Trim(position=at, head=head) for at, head in sorted(heads.items()))
    effects = list_effective_trims(window, items, trims)
    assert tuple(Trim(position=one.item.position, head=one.head) for one in found) == effects
    by_position = {item.position: item for item in items}
    for one, trim in zip(found, effects, strict=True):
        length = count_trimmed_chars(len(one.item.block.text), trim)
        assert one.saved == one.item.tokens - window.count_item_tokens(
            by_position[trim.position], length
        )


@given(st.integers(0, 3_000), st.integers(0, 900), st.integers(0, 900), st.integers(1, 2_000_000))
def test_a_shortened_text_is_as_long_as_was_reckoned(
    whole: int, head: int, tail: int, position: int
) -> None:
    trim = Trim(position=position, head=head, tail=tail)

    assert count_trimmed_chars(whole, trim) == len(trim_text("x" * whole, trim))


def test_nothing_but_a_result_is_shortened() -> None:
    items = [Item(1, Block.user("x" * 400), turn=1, tokens=100)]
    window = Window(items, after=1, limit=1_000)

    assert list_effective_trims(window, items, (Trim(position=1, head=10),)) == ()


def test_a_shortened_result_shows_twice_as_much_of_its_beginning_as_of_its_end() -> None:
    # 500 tokens of four characters each, 60 of which the mark takes.
    assert trim_to_ends(7, 500) == Trim(position=7, head=1_293, tail=646)


def test_a_large_result_is_shortened_and_one_that_was_shortened_already_is_not() -> None:
    items = [
        Item(at, ToolResult(tool_call_id="c", content="x" * 8_000), turn=1, tokens=2_000)
        for at in (1, 2)
    ]
    window = Window(items, after=2, limit=1_000, boundary=drawn({1: 4_000}, set(), set()))

    assert trim_largest_results(window, items) == (trim_to_ends(2, 500),)


def drawn(earlier: dict[int, int], hidden: set[int], replaced: set[int]) -> CompactBoundary:
    return make_boundary(
        first_kept=1,
        kept=Ranges.span(1, MOST),
        hidden=Ranges.of(hidden),
        trims=tuple(Trim(position=at, head=head) for at, head in sorted(earlier.items())),
        replacements=tuple(Replacement(position=at, text="gone") for at in sorted(replaced)),
    )
