"""At every boundary each block has exactly one fate, and nothing bound together is parted."""

import pytest
from hypothesis import event, given, settings
from story import Chapters, Story, chapters, play, told, told_on
from story_rules import every_rule_holds, state_of

from cutbank import NothingToCompactError, Plan, Ranges
from cutbank.domain.settlement import Settlement, settle_plan


@settings(max_examples=80, deadline=None)
@given(chapters)
def test_whatever_happens_every_boundary_obeys_the_rules(told: Chapters) -> None:
    story = Story()
    for talk, acts, (how, plan) in told:
        play(story, *talk, *acts)
        before = state_of(story)
        settlement: Settlement | None = getattr(story, how)(plan)
        if settlement is not None:
            every_rule_holds(story, settlement, before)
    event(f"{story.generation} generations")


# Each of these was once wrong, or is easy to get wrong.


def compact(story: Story, at: int) -> Settlement:
    settlement = story.compact(at)
    assert settlement is not None
    return settlement


def test_a_pinned_piece_leaves_nothing_of_its_message_to_go() -> None:
    story = told("user", "assistant 7", "results", "pin 0", "pin 2")

    with pytest.raises(NothingToCompactError, match=r"no legal cut .* #2 user 1 tokens \(pinned\)"):
        settle_plan(story.window(), Plan(cut=7, reason="", summary_tokens=1))


STORIES = [
    # A late result leaves with its call, wherever the cut stands.
    ("user, assistant 21, user, user, user, result, user", 6, "#2-5 #8", "#6-7 #9"),
    # A call that was carried over a boundary leaves with a result that came later.
    ("user, assistant 21, user, user, compact 5, user, result, user", 6, "#3-5 #8", "#6-7 #9"),
    # What was hidden behind a text is not told when the text leaves.
    ("user, user, user, hide 3, user, compact 3, user", 6, "#4", "#6-7"),
    # Of a hidden pair a pin brings back both halves, the other behind a text.
    (
        "user, user, assistant 21, result, user, user, hide 6, hide 8, compact 8, user, pin 3",
        *(11, "#8", "#4-6 #11"),
    ),
    # A cut in front of nothing but hidden blocks keeps one that shows.
    ("user, user, user, hide 4", 4, "#2", "#3 #5"),
]
"""What happened, where it is cut, and what leaves and stays."""


@pytest.mark.parametrize(("acts", "cut", "leaves", "stays"), STORIES)
def test_what_is_bound_together_leaves_or_stays(
    acts: str, cut: int, leaves: str, stays: str
) -> None:
    story = told(*acts.split(", "))
    before = state_of(story)

    settlement = compact(story, cut)

    every_rule_holds(story, settlement, before)
    removed = Ranges.of(item.position for item in settlement.removed_items)
    assert (str(removed), str(settlement.kept)) == (leaves, stays)


def test_a_split_turn_begins_with_what_leaves_of_it() -> None:
    story = told("user", "assistant 1", "results", "assistant 1", "results", "pin 0")
    whole = told("user", "assistant 1", "results", "user", "assistant 1", "pin 3").compact(7)

    settlement = compact(story, 7)

    assert settlement.split_turn is not None
    assert list(settlement.split_turn.prefix) == [3, 4, 5, 6]
    assert whole is not None
    assert whole.split_turn is None  # only a pin is left behind of the turn


def test_of_a_drop_that_leaves_only_hidden_blocks_the_newest_that_shows_stays() -> None:
    story = told("user", "user", "user", "hide 4")

    settlement = settle_plan(story.window(), Plan(None, "", 0, drops=Ranges.span(2, 3)))

    assert [repair.rule for repair in settlement.repairs] == ["never-empty"]
    assert [item.position for item in settlement.removed_items] == [2]


def test_a_result_of_which_only_a_text_shows_is_not_shortened() -> None:
    story = Story(sizes=[9_000], limit=10)
    told_on(story, "user", "assistant 21", "results", "user", "hide 6", "compact 6", "pin 2")
    assert story.boundary is not None
    assert list(story.boundary.hidden) == [5]

    with pytest.raises(NothingToCompactError, match="no legal cut"):
        settle_plan(story.window(), Plan(cut=6, reason="", summary_tokens=1))


def test_a_message_leaves_where_more_than_half_of_it_was_dropped() -> None:
    story = told("user", "assistant 1", "results", "user")

    def dropping(*positions: int) -> Settlement:
        return settle_plan(story.window(), Plan(None, "", 0, drops=Ranges.of(positions)))

    half, more = dropping(2, 5, 6), dropping(2, 4, 5, 6)

    assert [item.position for item in half.removed_items] == [2]
    assert [(one.rule, str(one.stays)) for one in half.repairs] == [("whole-groups", "#5-6")]
    assert [item.position for item in more.removed_items] == [2, 3, 4, 5, 6]
    assert [(one.rule, str(one.leaves)) for one in more.repairs] == [("whole-groups", "#3")]
