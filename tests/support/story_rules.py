"""What must hold at every boundary, whoever planned it."""

from typing import NamedTuple

from story import Story

from cutbank import Ranges, Window
from cutbank.domain.cut_points import find_unsent_positions
from cutbank.domain.item import group_blocks
from cutbank.domain.settlement import BlockStatus, Settlement


def every_block_has_one_fate(story: Story, settlement: Settlement) -> None:
    kept, hidden, covers = settlement.kept, settlement.hidden, settlement.covers

    assert not kept & hidden
    assert not kept & covers
    assert not hidden & covers
    assert not (kept | hidden | covers) & story.retracted
    assert kept | hidden | covers | story.retracted == Ranges.span(1, settlement.after)
    for at in story.blocks:
        found = story.fate(at)
        assert found is not None
        assert (found is BlockStatus.RETRACTED) == (at in story.retracted)
        assert (found is BlockStatus.SUMMARIZED) == (at in covers)
        assert (found in {BlockStatus.PINNED, BlockStatus.TRIMMED, BlockStatus.VISIBLE}) <= (
            at in kept
        )


def nothing_is_parted(story: Story, settlement: Settlement, before: Window) -> None:
    for group in group_blocks(before.open_to_cut):
        assert len({item.place < settlement.first_kept for item in group}) == 1
    kept, covers = settlement.kept, settlement.covers
    for at, (block, _, call) in story.blocks.items():
        if at in story.retracted:
            continue
        if call is not None:
            assert (at in kept) == (call in kept)
        for other, (piece, _, _) in story.blocks.items():
            if block.message_id and piece.message_id == block.message_id and other in covers:
                assert at not in kept


def pins_and_open_calls_stay(story: Story, settlement: Settlement) -> None:
    assert set(settlement.pinned) == story.pinned
    assert all(at in settlement.kept for at in (*story.pinned, *story.open_calls))
    for at in story.pinned:
        assert story.fate(at) is BlockStatus.PINNED


def what_was_done_to_a_block_lasts(story: Story, fates: dict[int, BlockStatus | None]) -> None:
    for at, earlier in fates.items():
        if at not in story.pinned:
            assert (earlier is BlockStatus.HIDDEN) <= (story.fate(at) is BlockStatus.HIDDEN)
            assert (earlier is BlockStatus.TRIMMED) <= (story.fate(at) is not BlockStatus.VISIBLE)


def something_goes(settlement: Settlement, before: Window, covered: Ranges) -> None:
    gone = Ranges.of(item.position for item in settlement.removed_items)

    earlier = before.boundary.trims if before.boundary else ()
    assert gone or set(settlement.trims) - set(earlier)
    assert gone - settlement.covers == Ranges()
    assert not gone & covered
    assert list(settlement.removed_items) == [
        item for item in before.items if item.position in gone
    ]
    leaves = sum(item.tokens for item in settlement.removed_items)
    before_tokens = sum(item.tokens for item in before.items)
    assert settlement.kept_tokens <= before_tokens - leaves + texts_of(settlement)


def texts_of(settlement: Settlement) -> int:
    """The most that texts take which stand for hidden blocks, some of which had few letters."""
    return sum(len(replacement.text) for replacement in settlement.replacements)


def what_stays_is_told_apart(story: Story, settlement: Settlement, before: Window) -> None:
    first, stays = settlement.first_kept, settlement.kept | settlement.hidden
    shortened = [trim.position for trim in settlement.trims]
    replaced = [replacement.position for replacement in settlement.replacements]

    stays |= Ranges.of(item.position for item in settlement.removed_items)
    assert all(item.position in stays for item in before.items if item.place >= first)
    for apart in ([*shortened, *replaced], [*replaced, *settlement.pinned]):
        assert len(set(apart)) == len(apart)
    assert all(at in settlement.kept for at in (*shortened, *replaced))
    if split := settlement.split_turn:
        assert split.prefix
        assert not split.prefix - settlement.covers
        assert split.turn == story.blocks[first][1]
        # Between its blocks there are positions of other events.
        turns = {item.turn for item in before.items if item.position in split.prefix}
        assert turns == {split.turn}


def the_view_is_not_empty(settlement: Settlement, before: Window) -> None:
    unseen = find_unsent_positions(before)

    if any(item.position not in unseen for item in before.items):
        assert any(
            item.position in settlement.kept for item in before.items if item.position not in unseen
        )


def a_conversation_is_left(before: Window, settlement: Settlement) -> None:
    kept, gone = settlement.kept, Ranges.of(item.position for item in settlement.removed_items)

    for group in group_blocks(before.items):
        assert len({item.position in kept for item in group}) == 1
    assert all((item.position in kept) != (item.position in gone) for item in before.items)
    assert gone - settlement.covers == Ranges()
    before_tokens = sum(item.tokens for item in before.items)
    assert settlement.kept_tokens < before_tokens + texts_of(settlement)
    assert any(item.position in kept for item in before.items)


class StoryState(NamedTuple):
    """What the rules compare a settlement with."""

    window: Window
    covered: Ranges
    fates: dict[int, BlockStatus | None]


def state_of(story: Story) -> StoryState:
    covered = story.summary.covers if story.summary else Ranges()
    return StoryState(story.window(), covered, {at: story.fate(at) for at in story.blocks})


def every_rule_holds(story: Story, settlement: Settlement, before: StoryState) -> None:
    every_block_has_one_fate(story, settlement)
    nothing_is_parted(story, settlement, before.window)
    pins_and_open_calls_stay(story, settlement)
    what_was_done_to_a_block_lasts(story, before.fates)
    something_goes(settlement, before.window, before.covered)
    the_view_is_not_empty(settlement, before.window)
    what_stays_is_told_apart(story, settlement, before.window)
