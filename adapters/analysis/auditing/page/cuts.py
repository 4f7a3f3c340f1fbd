"""How much of a long session a page shows, so that it can still be sent."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from .story import Story, ToldBlock, ToldCall

CHARACTERS = 2_000_000
"""Of all blocks together; what HTML makes of them comes on top."""
BLOCKS = 4_000
CALLS = 1_000


@dataclass(frozen=True)
class Cuts:
    """What is shown; of what has no room the newest."""

    blocks: Sequence[ToldBlock]
    calls: Sequence[ToldCall]
    longest: int | None
    """Characters that each block may show; None is all."""
    left_out: tuple[str, ...]
    """What is not on the page, in words."""
    positions: Sequence[int]
    """Of all blocks of the log, on the page or not."""

    @cached_property
    def shown(self) -> frozenset[int]:
        """The positions of the blocks that are on the page."""
        return frozenset(told.position for told in self.blocks)


def cuts_of(story: Story, *, is_full: bool) -> Cuts:
    """All of it, or what makes a page of some megabytes."""
    positions = [told.position for told in story.blocks]
    if is_full:
        return Cuts(story.blocks, story.calls, None, (), positions)
    blocks, calls = story.blocks[-BLOCKS:], story.calls[-CALLS:]
    longest = _longest([len(told.block.text) for told in blocks])
    told: list[str] = []
    if len(blocks) < len(story.blocks):
        told.append(f"the first {len(story.blocks) - len(blocks):,} blocks")
    if len(calls) < len(story.calls):
        told.append(f"the first {len(story.calls) - len(calls):,} calls")
    if longest is not None:
        cut = sum(len(one.block.text) > longest for one in blocks)
        told.append(f"the middle of {cut:,} blocks longer than {longest:,} characters")
    return Cuts(blocks, calls, longest, tuple(told), positions)


def shortened(text: str, longest: int | None) -> tuple[str, int, str]:
    """The beginning of a text, how many characters are left out, and its end."""
    if longest is None or len(text) <= longest:
        return text, 0, ""
    tail = longest // 4
    head = longest - tail
    return text[:head], len(text) - longest, text[len(text) - tail :]


def _longest(sizes: Sequence[int]) -> int | None:
    """The length at which all fit, long ones cut; None where nothing need be cut."""
    if sum(sizes) <= CHARACTERS:
        return None
    low, high = 0, max(sizes)
    while low < high - 1:
        middle = (low + high) // 2
        if sum(min(size, middle) for size in sizes) <= CHARACTERS:
            low = middle
        else:
            high = middle
    return max(low, 40)
