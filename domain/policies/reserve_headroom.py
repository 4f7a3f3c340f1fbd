"""Past the limit less a reserve, keep the newest tokens and summarise all that came before."""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from ..blocks import Kind
from ..compaction_events import Trigger
from ..errors import NothingToCompactError
from ..window import Item, Plan, Window
from .policy import check

WANTED = frozenset({Trigger.MANUAL, Trigger.OVERFLOW})
"""Triggers behind which somebody waits, and has to hear that nothing was done."""


@dataclass(frozen=True, slots=True)
class Headroom:
    """The settings in tokens, once the model's limit is known."""

    reserve: int
    keep: int

    @property
    def summary(self) -> int:
        """How large the summary may be: it is written into the reserve."""
        return max(1024, int(0.8 * self.reserve))


@dataclass(frozen=True)
class ReserveHeadroom:
    """Seed 003: fires when more than limit - reserve is in use; cuts where the newest `keep` begin.

    A cut may split a turn, and stands at the start of a message that is not a tool result.
    """

    name: ClassVar[str] = "reserve-headroom"
    alias: ClassVar[str] = "klaude-code"
    source: ClassVar[str] = "seed 003: inspirepan/klaude-code, compaction/AGENTS.md"

    reserve_tokens: int | None = field(
        default=None,
        metadata={
            "unit": "tokens",
            "least": 0,
            "help": "stay free below the limit; none is a quarter of it, 2,048 to 16,384",
        },
    )
    keep_tokens: int | None = field(
        default=None,
        metadata={
            "unit": "tokens",
            "least": 0,
            "help": "of the newest stay word for word; none is 35% of the limit, 4,096 to 20,000",
        },
    )

    def __post_init__(self) -> None:
        check(self)

    def plan(self, window: Window) -> Plan | None:
        headroom = self.headroom(window.limit)
        if window.trigger is Trigger.THRESHOLD and not self.fires(window):
            return None
        items = window.open_to_cut
        cut = _first_kept(items, window.running, headroom.keep)
        if cut:
            return Plan(
                cut=items[cut].position,
                reason=_reason(window, headroom),
                summary_tokens=headroom.summary,
            )
        if window.trigger in WANTED:
            raise NothingToCompactError(
                f"nothing to compact (session too small): of {window.tokens:,} tokens in view "
                f"{window.running[-1]:,} may leave, and the newest {headroom.keep:,} are kept, "
                "in whole messages"
            )
        return None

    def fires(self, window: Window) -> bool:
        """Whether the reserve is being eaten into; never where no limit is known."""
        if window.limit <= 0:
            return False
        return window.used > window.limit - self.headroom(window.limit).reserve

    def headroom(self, limit: int) -> Headroom:
        """The settings for a model that holds `limit` tokens; 0 where that is not known."""
        reserve, keep = self.reserve_tokens, self.keep_tokens
        if reserve is None:
            reserve = min(16_384, max(2_048, int(0.25 * limit))) if limit > 0 else 16_384
        if keep is None:
            keep = min(20_000, max(4_096, int(0.35 * limit))) if limit > 0 else 20_000
            # What is kept must fit below the threshold, or the next call would compact again.
            if limit > reserve:
                keep = min(keep, limit - reserve)
        return Headroom(reserve=reserve, keep=keep)


def _first_kept(items: Sequence[Item], running: Sequence[int], keep: int) -> int:
    """Index of the first item to keep; 0 where there is nothing to cut off."""
    # The newest item from which on `keep` is reached, by the prefix sums of the tokens.
    reached = bisect_right(running, running[-1] - keep, hi=len(items)) - 1
    start = _message_start(items, reached) if reached > 0 else 0
    if start > 0:
        return start
    # Answers to calls that left long ago cannot open a view, so they are not kept for it.
    return next((i for i, item in enumerate(items) if item.kind is not Kind.TOOL_RESULT), 0)


def _message_start(items: Sequence[Item], index: int) -> int:
    """Where the message of the item begins, or the nearest before it that is no tool result."""
    starts: dict[str | None, int] = {}
    for at in range(index + 1):
        starts.setdefault(items[at].block.message_id, at)
    while index > 0:
        item = items[index]
        start = starts[item.block.message_id] if item.block.message_id else index
        if start < index:
            index = start
        elif item.kind is Kind.TOOL_RESULT:
            index -= 1
        else:
            break
    return index


def _reason(window: Window, headroom: Headroom) -> str:
    in_use = f"{window.used:,} tokens in use"
    if window.limit > 0:
        in_use += f" of {window.limit:,}, of which {headroom.reserve:,} stay free"
    return f"{window.trigger}: {in_use}; the newest {headroom.keep:,} are kept"
