"""Answers as kdcube did: measured by texts, all that it holds in memory, and cut at any block."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from types import MappingProxyType
from typing import ClassVar

from ...item import WindowItem
from ...summaries.kdcube_template import is_turn_start, render_shown_text
from ...token_estimate import CHARS_PER_TOKEN
from ...window import Window
from ..policy import quirk
from ..rolling_timeline import RollingTimeline


@dataclass(frozen=True)
class KdcubeAsShipped(RollingTimeline):
    heading_end: ClassVar[str] = ":"

    preset: str = quirk("as_shipped")

    def count_in_use(self, window: Window) -> int:
        return _count_total(window, sum_running(window)[-1])

    def measure(self, window: Window) -> tuple[int, int, Sequence[int], Sequence[int]]:
        running, items = sum_running(window), window.open_to_cut
        counted = (
            after - before if self.is_message(item.block) else 0
            for item, (before, after) in zip(items, pairwise(running), strict=True)
        )
        messages = tuple(accumulate(counted, initial=0))
        return _count_total(window, running[-1]), count_overhead(window), running, messages

    def find_next_cut(self, items: Sequence[WindowItem], start: int) -> int | None:
        rest = range(start, len(items))
        return next((at for at in rest if self.is_cut_point(items[at].block)), None)

    def is_speaker(self, author: str) -> bool:
        return author not in {"", "system", "tool"}

    def find_beginning(self, items: Sequence[WindowItem], turn: int, end: int) -> int | None:
        """Return the index of the turn's newest prompt or header before `end`."""
        for index in range(end - 1, -1, -1):
            if items[index].turn != turn:
                return None
            if is_turn_start(items[index].block):
                return index
        return None


def _count_text(text: str) -> int:
    return max(1, len(text) // CHARS_PER_TOKEN) if text.strip() else 0


def _count_total(window: Window, blocks: int) -> int:
    """Return the tokens of all that is sent, and of what was evicted and is in memory."""
    # Items before the kept window were carried along: pins and open calls.
    carried = window.items if window.boundary else ()
    carried = [item for item in carried if item.place < window.cut_start]
    standing = _count_text(window.summary.text) if window.summary else 0
    held = sum(iter_sizes([*carried, *window.evicted]))
    return count_overhead(window) + standing + blocks + held


def count_overhead(window: Window) -> int:
    return max(1, _count_text(window.system_prompt))


def sum_running(window: Window) -> Sequence[int]:
    """Return prefix sums of the items that may leave."""
    sizes = iter_sizes(window.open_to_cut, _map_replaced_texts(window))
    return tuple(accumulate(sizes, initial=0))


def _map_replaced_texts(window: Window) -> dict[int, str]:
    """Return the texts by position that replace blocks now or from the next boundary on."""
    texts = dict(window.earlier_replacements)
    texts |= {at: text for at, text in window.hides.items() if text and not text.isspace()}
    cut = window.earlier_trims
    for item in window.items if cut else ():
        if (trim := cut.get(item.position)) and trim.head + trim.tail < len(item.block.text):
            text = item.block.text
            texts[item.position] = text[: trim.head] + (text[-trim.tail :] if trim.tail else "")
    return texts


def iter_sizes(
    items: Iterable[WindowItem], replaced: Mapping[int, str] = MappingProxyType({})
) -> Iterator[int]:
    """Yield the tokens of each block, or of the text that replaces it."""
    for item in items:
        yield _count_text(replaced.get(item.position) or render_shown_text(item.block))
