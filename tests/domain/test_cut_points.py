"""A history is cut neither inside a pair nor inside a message, and never for nothing."""

from cutbank.domain.blocks import AnyBlock, Block, ToolCall, ToolResult
from cutbank.domain.cut_points import (
    find_carried_positions,
    find_cuts_between_messages,
    find_cuts_between_pairs,
    find_cuts_that_remove_blocks,
    find_legal_cuts,
    find_nearest_cut,
)
from cutbank.domain.item import Item, group_blocks, order_for_view
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
    return Window(items=tuple(order_for_view(items)), after=len(words), limit=100)


def name(word: str) -> str:
    return word.replace("!", "").partition("/")[0]


def block(word: str) -> AnyBlock:
    message = word.replace("!", "").partition("/")[2] or None
    if word[0] == "c":
        return ToolCall(tool_call_id=name(word), name="tool", message_id=message)
    if word[0] == "r":
        return ToolResult(tool_call_id=name(word), message_id=message)
    return BLOCKS[word[0]]("word", message_id=message)


def test_a_result_stays_on_its_calls_side() -> None:
    rows: list[tuple[str, frozenset[int] | set[int]]] = [
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
    ]

    assert [(history, find_cuts_between_pairs(talk(history))) for history, _ in rows] == rows


def test_the_pieces_of_a_message_stay_on_one_side() -> None:
    rows: list[tuple[str, frozenset[int] | set[int]]] = [
        ("u t/m a/m u", {1, 2, 4}),
        ("u t/m c1/m c2/m r1 r2 a", {1, 2, 5, 6, 7}),
        ("u t/m c1/m r1 c2/m r2 a", {1, 2, 6, 7}),
        ("a/m u a/n", {1, 2, 3}),
    ]

    assert [(history, find_cuts_between_messages(talk(history))) for history, _ in rows] == rows


def test_a_cut_leaves_something_to_go() -> None:
    rows: list[tuple[str, frozenset[int] | set[int]]] = [
        ("u a u", {2, 3}),
        ("u! a u", {3}),
        ("u! a! u!", set()),
        ("c1 u a", {3}),
        ("c1! r1 u a", {4}),
        ("t/m c1/m u", set()),
        ("t/m c1/m u a", {4}),
        ("u", set()),
        ("", set()),
    ]

    assert [(history, find_cuts_that_remove_blocks(talk(history))) for history, _ in rows] == rows
    hiding = talk("u a u a")
    hiding.hides[1] = None
    assert find_cuts_that_remove_blocks(hiding) == {3, 4}


def test_pins_and_open_calls_are_carried_with_pair_and_message() -> None:
    rows: list[tuple[str, int, frozenset[int] | set[int]]] = [
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
    ]

    assert [
        (history, cut, find_carried_positions(talk(history), cut)) for history, cut, _ in rows
    ] == rows


def test_groups_that_turn_out_to_be_bound_become_one() -> None:
    window = talk("c1 c2 r1/o r2/o u")

    assert sorted(
        sorted(item.position for item in group) for group in group_blocks(window.items)
    ) == [
        [1, 2, 3, 4],
        [5],
    ]


def test_the_nearest_cut_keeps_more_where_two_are_as_close() -> None:
    assert find_nearest_cut(frozenset({2, 6, 9}), 4) == 2
    assert find_nearest_cut(frozenset({2, 6, 9}), 5) == 6
    assert find_nearest_cut(frozenset({2, 6, 9}), 100) == 9
    assert find_nearest_cut(frozenset(), 4) is None


def test_a_legal_cut_obeys_every_rule() -> None:
    """The second: turns of a prompt and one message of two calls, all answered in one message."""
    turns = (f"u c{n}x/m{n} c{n}y/m{n} r{n}x/n{n} r{n}y/n{n}" for n in range(500))

    assert find_legal_cuts(talk("u! t/m c1/m r1 a u")) == {5, 6}
    assert len(find_legal_cuts(talk(" ".join(turns)))) == 2 * 500 - 1
