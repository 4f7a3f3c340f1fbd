"""The fates of all blocks at once are those of each block."""

from hypothesis import given
from story import Chapters, Story, chapters

from cutbank.domain.settlement import BlockStatus
from cutbank.projections.status_ranges import compute_status_ranges


@given(chapters)
def test_each_block_has_the_very_fate_that_coverage_gives_it(told: Chapters) -> None:
    story = Story()
    for talk, meddling, (decision, n) in told:
        for act, k in [*talk, *meddling]:
            getattr(story, act)(k)
        getattr(story, decision)(n)

        fates = compute_status_ranges(story.boundary, story.summary, story.retracted, story.head)

        for position in story.blocks:
            found = [fate for fate, where in fates.items() if position in where]
            assert found == [story.fate(position)]


def test_without_a_boundary_all_is_visible_that_was_not_taken_back() -> None:
    story = Story()
    story.user(0)
    story.user(0)
    story.retract(1)

    fates = compute_status_ranges(None, None, story.retracted, story.head)

    assert {fate: list(where) for fate, where in fates.items()} == {
        BlockStatus.RETRACTED: [3],
        BlockStatus.VISIBLE: [1, 2, 4],  # the retraction stands at 4
    }
