"""A history is cut neither inside a pair nor inside a message, and never for nothing."""

from dataclasses import replace

from worded_windows import make_window

from cutbank.domain.cut_points import (
    find_carried_positions,
    find_cuts_between_groups,
    find_cuts_that_remove_blocks,
    find_legal_cuts,
    find_nearest_cut,
)
from cutbank.domain.item import group_blocks, order_for_view
from cutbank.domain.window import Window


def talk(words: str) -> Window:
    window = make_window(words)
    return replace(window, items=tuple(order_for_view(window.items)))


def test_results_stay_on_their_calls_side_and_pieces_of_a_message_on_one() -> None:
    rows: list[tuple[str, frozenset[int] | set[int]]] = [
        ("u a u a", {1, 2, 3, 4}),
        ("u c r a", {1, 2, 4}),
        ("u c c r r a", {1, 2, 6}),
        ("u c r c r a", {1, 2, 4, 6}),
        ("u c u a", {1, 2, 3, 4}),
        ("u c u a r a", {1, 2, 3, 4, 6}),
        ("u c c u r a r", {1, 2, 4, 6}),
        ("u c/m a/n r c r", {1, 2, 3, 5}),
        ("u t/m a/m u", {1, 2, 4}),
        ("u t/m c/m c/m r r a", {1, 2, 7}),
        ("u t/m c/m r c/m r a", {1, 2, 7}),
        ("a/m u a/n", {1, 2, 3}),
        ("", set()),
    ]

    assert [(history, find_cuts_between_groups(talk(history))) for history, _ in rows] == rows


def test_no_cut_stands_at_a_position_that_holds_no_block() -> None:
    window = talk("u c r a")
    items = [replace(one, position=one.position + (one.position > 2)) for one in window.items]

    assert find_cuts_between_groups(replace(window, items=items, after=5)) == {1, 2, 5}


def test_a_cut_leaves_something_to_go() -> None:
    rows: list[tuple[str, frozenset[int] | set[int]]] = [
        ("u a u", {2, 3}),
        ("u! a u", {3}),
        ("u! a! u!", set()),
        ("c u a", {3}),
        ("c! r u a", {4}),
        ("t/m c/m u", set()),
        ("t/m c/m u a", {4}),
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
        ("u c u a", 3, {2}),
        ("u c! r u a", 4, {2, 3}),
        ("u c r! u a", 4, {2, 3}),
        ("u t/m c/m r! u a", 5, {2, 3, 4}),
        ("u t!/m c/m c/m r r u a", 7, {2, 3, 4, 5, 6}),
        ("u c/m c/m r u a", 5, {2, 3, 4}),
        ("u c u a r", 4, set()),
        ("u a u! a", 3, set()),
    ]

    assert [
        (history, cut, find_carried_positions(talk(history), cut)) for history, cut, _ in rows
    ] == rows


def test_groups_that_turn_out_to_be_bound_become_one() -> None:
    window = talk("c c r/o r/o u")

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
    turns = (f"u c/m{n} c/m{n} r/n{n} r/n{n}" for n in range(50))

    assert find_legal_cuts(talk("u! t/m c/m r a u")) == {5, 6}
    assert len(find_legal_cuts(talk(" ".join(turns)))) == 2 * 50 - 1
