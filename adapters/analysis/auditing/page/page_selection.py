"""Selects what a page shows of a long session, to keep the file small."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from .page_story import PageBlock, PageCall, PageStory

MAX_PAGE_CHARACTERS = 2_000_000
"""The limit for all blocks together; the HTML around them adds to it."""
MAX_PAGE_BLOCKS = 4_000
MAX_PAGE_CALLS = 1_000


@dataclass(frozen=True)
class PageSelection:
    """The selected content; if there is too much, the newest."""

    blocks: Sequence[PageBlock]
    calls: Sequence[PageCall]
    max_text_characters: int | None
    """Characters that each block may show; None is all."""
    omissions: tuple[str, ...]
    """Descriptions of what is not on the page."""
    positions: Sequence[int]
    """The positions of all blocks in the log, on the page or not."""

    @cached_property
    def shown_positions(self) -> frozenset[int]:
        return frozenset(told.position for told in self.blocks)


def select_content(story: PageStory, *, is_full: bool) -> PageSelection:
    """Select everything, or as much as makes a page of some megabytes."""
    positions = [told.position for told in story.blocks]
    if is_full:
        return PageSelection(story.blocks, story.calls, None, (), positions)
    blocks, calls = story.blocks[-MAX_PAGE_BLOCKS:], story.calls[-MAX_PAGE_CALLS:]
    longest = _fit_length([len(told.block.text) for told in blocks])
    told: list[str] = []
    if len(blocks) < len(story.blocks):
        told.append(f"the first {len(story.blocks) - len(blocks):,} blocks")
    if len(calls) < len(story.calls):
        told.append(f"the first {len(story.calls) - len(calls):,} calls")
    if longest is not None:
        cut = sum(len(one.block.text) > longest for one in blocks)
        told.append(f"the middle of {cut:,} blocks longer than {longest:,} characters")
    return PageSelection(blocks, calls, longest, tuple(told), positions)


def shorten_text(text: str, longest: int | None) -> tuple[str, int, str]:
    """Return the start of a text, the number of characters left out, and its end."""
    if longest is None or len(text) <= longest:
        return text, 0, ""
    tail = longest // 4
    head = longest - tail
    return text[:head], len(text) - longest, text[len(text) - tail :]


def _fit_length(sizes: Sequence[int]) -> int | None:
    """Return the length that long blocks are cut to so that all fit; None if no cut is needed."""
    if sum(sizes) <= MAX_PAGE_CHARACTERS:
        return None
    low, high = 0, max(sizes)
    while low < high - 1:
        middle = (low + high) // 2
        if sum(min(size, middle) for size in sizes) <= MAX_PAGE_CHARACTERS:
            low = middle
        else:
            high = middle
    return max(low, 40)
