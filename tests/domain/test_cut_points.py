"""A history is cut neither inside a pair nor inside a message, and never for nothing."""

from collections.abc import Iterator

import pytest

from cutbank.domain.block_groups import as_shown, bound
from cutbank.domain.blocks import AnyBlock, Block, ToolCall, ToolResult
from cutbank.domain.cut_points import legal_cuts, nearest
from cutbank.domain.cut_points.carried_blocks import carried_over, leaves_something_to_go
from cutbank.domain.cut_points.message_cuts import keeps_messages_whole
from cutbank.domain.cut_points.pair_cuts import keeps_pairs_together
from cutbank.domain.item import Item
from cutbank.domain.window import Window

BLOCKS = {"u": Block.user, "a": Block.assistant, "t": Block.thinking}


def talk(text: str) -> Window:
    """A window of one item a word, the first at position 1.

    `u` user, `a` assistant, `t` thinking, `c1` call 1, `r1` its result; `/m` puts it into message
    m, `!` pins it; a call without a result is open, and `-` is a position that holds no block.
    """
    words = text.split()
    calls = {name(word)[1:]: at for at, word in enumerate(words, 1) if word[0] == "c"}
    answered = {name(word)[1:] for word in words if word[0] == "r"}
    items = tuple(
        Item(
            position=at,
            block=block(word),
            turn=1,
            tokens=1,
            call=calls[name(word)[1:]] if word[0] == "r" else None,
            is_open=word[0] == "c" and name(word)[1:] not in answered,
            is_pinned="!" in word,
        )
        for at, word in enumerate(words, 1)
        if word != "-"
    )
    return Window(items=tuple(as_shown(items)), after=len(words), limit=100)


def name(word: str) -> str:
    return word.replace("!", "").partition("/")[0]


def block(word: str) -> AnyBlock:
    message = word.replace("!", "").partition("/")[2] or None
    if word[0] == "c":
        return ToolCall(tool_call_id=name(word), name="tool", message_id=message)
    if word[0] == "r":
        return ToolResult(tool_call_id=name(word), message_id=message)
    return BLOCKS[word[0]]("word", message_id=message)


@pytest.mark.parametrize(
    ("history", "cuts"),
    [
        ("u a u a", {1, 2, 3, 4}),
        ("u c1 r1 a", {1, 2, 4}),
        ("u c1 c2 r1 r2 a", {1, 2, 6}),
        ("u c1 r1 c2 r2 a", {1, 2, 4, 6}),
        ("u c1 - r1 a", {1, 2, 5}),
        ("u c1 u a", {1, 2, 3, 4}),
        ("u c1 u a r1 a", {1, 2, 3, 4, 6}),
        ("u c1 c2 u r2 a r1", {1, 2, 4, 6}),
        ("u c1/m a/n r1 c2 r2", {1, 2, 3, 5}),
        ("", set()),
    ],
)
def test_a_result_stays_on_its_calls_side(history: str, cuts: set[int]) -> None:
    assert keeps_pairs_together(talk(history)) == cuts


@pytest.mark.parametrize(
    ("history", "cuts"),
    [
        ("u t/m a/m u", {1, 2, 4}),
        ("u t/m c1/m c2/m r1 r2 a", {1, 2, 5, 6, 7}),
        ("u t/m c1/m r1 c2/m r2 a", {1, 2, 6, 7}),
        ("a/m u a/n", {1, 2, 3}),
    ],
)
def test_the_pieces_of_a_message_stay_on_one_side(history: str, cuts: set[int]) -> None:
    assert keeps_messages_whole(talk(history)) == cuts


@pytest.mark.parametrize(
    ("history", "cuts"),
    [
        ("u a u", {2, 3}),
        ("u! a u", {3}),
        ("u! a! u!", set()),
        ("c1 u a", {3}),
        ("c1! r1 u a", {4}),
        ("t/m c1/m u", set()),
        ("t/m c1/m u a", {4}),
        ("u", set()),
        ("", set()),
    ],
)
def test_a_cut_leaves_something_to_go(history: str, cuts: set[int]) -> None:
    assert leaves_something_to_go(talk(history)) == cuts


def test_what_was_hidden_is_not_something_to_go() -> None:
    window = talk("u a u a")
    window.hides[1] = None

    assert leaves_something_to_go(window) == {3, 4}


@pytest.mark.parametrize(
    ("history", "cut", "carried"),
    [
        ("u a u a", 3, set()),
        ("u! a u a", 3, {1}),
        ("u c1 u a", 3, {2}),
        ("u c1! r1 u a", 4, {2, 3}),
        ("u c1 r1! u a", 4, {2, 3}),
        ("u t/m c1/m r1! u a", 5, {2, 3, 4}),
        ("u t!/m c1/m c2/m r1 r2 u a", 7, {2, 3, 4, 5, 6}),
        ("u c1/m c2/m r1 u a", 5, {2, 3, 4}),
        ("u c1 u a r1", 4, set()),
        ("u a u! a", 3, set()),
    ],
)
def test_pins_and_open_calls_are_carried_with_pair_and_message(
    history: str, cut: int, carried: set[int]
) -> None:
    assert carried_over(talk(history), cut) == carried


def test_groups_that_turn_out_to_be_bound_become_one() -> None:
    window = talk("c1 c2 r1/o r2/o u")

    assert sorted(sorted(item.position for item in group) for group in bound(window.items)) == [
        [1, 2, 3, 4],
        [5],
    ]


def test_a_legal_cut_obeys_every_rule() -> None:
    window = talk("u! t/m c1/m r1 a u")

    assert legal_cuts(window) == {5, 6}


def test_the_nearest_cut_keeps_more_where_two_are_as_close() -> None:
    assert nearest(frozenset({2, 6, 9}), 4) == 2
    assert nearest(frozenset({2, 6, 9}), 5) == 6
    assert nearest(frozenset({2, 6, 9}), 100) == 9
    assert nearest(frozenset(), 4) is None


def test_a_long_history_can_be_cut_before_every_message_but_the_first() -> None:
    history = " ".join(turns(2_000))

    assert len(legal_cuts(talk(history))) == 2 * 2_000 - 1


def turns(count: int) -> Iterator[str]:
    """Turns of a prompt and one message of two calls, all answered in one message."""
    for n in range(count):
        yield f"u c{n}x/m{n} c{n}y/m{n} r{n}x/n{n} r{n}y/n{n}"
