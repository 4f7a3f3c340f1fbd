"""Defines what a policy gets and returns: a Window in, a Plan or None out."""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import accumulate
from typing import Any, TypeVar, cast

from .cached_property import cached_property
from .compaction_events import CompactBoundary, Summary, Trigger, Trim
from .item import WindowItem, get_place, group_blocks
from .models import ModelFacts
from .pricing import Pricing
from .ranges import Ranges
from .session_events import ModelCalled
from .summaries.summarizer import SummaryTemplate
from .token_estimate import (
    CHARS_PER_TOKEN,
    CONTENT_KINDS,
    ContentKind,
    TokenCalibration,
    estimate_block,
    has_media,
)

_T = TypeVar("_T")


class LazySequence(Sequence[_T]):
    """The result of `make`, which is called once.

    `make` may run late, so it must read only data that no longer changes.
    """

    def __init__(self, make: Callable[[], Iterable[_T]]) -> None:
        self._make = make

    @cached_property
    def _items(self) -> tuple[_T, ...]:
        return tuple(self._make())

    def __getitem__(self, index: Any) -> Any:
        return self._items[index]

    def __iter__(self) -> Iterator[_T]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and self._items == tuple(other)

    __hash__ = None  # type: ignore[assignment]


@dataclass(frozen=True)
class Window:
    """The view of one session at the time of a compaction."""

    items: Sequence[WindowItem]
    """All visible blocks in the order of the view: by position, but a late result follows its call.
    They may be made on first access, so that a policy that reads only token counts is faster."""
    after: int
    """The newest position that this compaction may decide about."""
    limit: int
    """Tokens of the model's context."""
    trigger: Trigger = Trigger.MANUAL
    overhead: int = 0
    """Estimated tokens of everything that is sent except the blocks, if `in_use` is None."""
    usage: int | None = None
    """The context size in tokens that the provider reported for the newest call on this view."""
    in_use: int | None = None
    """Tokens in use now: the reported ones and an estimate of later ones; None if not computed."""
    calibration: TokenCalibration = TokenCalibration()
    """Correction factors for the estimates, learned from the provider's reports."""
    boundary: CompactBoundary | None = None
    summary: Summary | None = None
    """The summary of the blocks that earlier boundaries removed."""
    pinned: Ranges = Ranges()
    hides: dict[int, str | None] = field(default_factory=dict)
    """Blocks to hide from this boundary on: position to replacement text."""
    retracted: Ranges = Ranges()
    """Blocks that were retracted since the last boundary."""
    cached: int | None = None
    """Tokens of this view in the provider's cache, according to its newest report."""
    called_model: str | None = None
    """The model of the newest call, as recorded."""
    prices: ModelFacts | None = None
    """The agent's model and its prices, if known."""
    expected_calls: int = 0
    """How many calls will use the view that this compaction leaves."""
    system_prompt: str = ""
    """The system prompt; its tokens are part of `overhead` and `in_use`."""
    usage_at: int | None = None
    """The last position that was in the prompt of the call that reported `usage`."""
    since_boundary_s: float | None = None
    """Seconds since the view's boundary; None without one, or if a replayed session has no times.
    """
    last_call: ModelCalled | None = None
    """The newest call with a reported size, whether or not that size is credible."""
    memo: dict[Hashable, Any] = field(default_factory=dict, compare=False, repr=False)
    """Policies' intermediate results for the first items, by key. Windows share them while the view
    only grows at its end. No plan may depend on them."""
    evicted: Sequence[WindowItem] = ()
    """Blocks that left earlier, for policies that still count them; a store leaves this empty."""

    def find_once(self, key: Hashable, find: Callable[[], _T]) -> _T:
        """Return what `find` finds in these items, found once for them."""
        items, found = self.memo.get(key, (None, None))
        if items is not self.items:
            found = find()
            self.memo[key] = self.items, found
        return cast(_T, found)

    @cached_property
    def cut_start(self) -> int:
        """The position from which a new cut may remove blocks; earlier ones stay in any case.

        A block that a boundary carried over may leave once its calls are answered or its pin is
        removed.
        """
        if self.boundary is None:
            return 1
        first_kept = self.boundary.first_kept
        over = self.items[: bisect_left(self.items, first_kept, key=get_place)]
        free = [
            group
            for group in group_blocks(over)
            if not any(i.is_pinned or i.is_open for i in group)
        ]
        return min((item.place for group in free for item in group), default=first_kept)

    @cached_property
    def open_to_cut(self) -> tuple[WindowItem, ...]:
        return tuple(self.items[bisect_left(self.items, self.cut_start, key=get_place) :])

    @cached_property
    def tokens(self) -> int:
        """Tokens of the whole view as it is now, reported or estimated."""
        blocks = self.block_tokens
        return blocks + self.overhead if self.in_use is None else max(blocks, self.in_use)

    @cached_property
    def block_tokens(self) -> int:
        """Tokens of the blocks alone, without those that a new pin brings back."""
        return sum([item.tokens for item in self.items if not self._is_brought_back(item)])

    def _is_brought_back(self, item: WindowItem) -> bool:
        """Check whether the block left with an earlier boundary and was pinned since."""
        boundary = self.boundary
        if boundary is None or item.position > boundary.after:
            return False
        return item.position not in boundary.kept

    @property
    def overhead_tokens(self) -> int:
        """Tokens sent apart from the blocks: system prompt, tools, summary, unlogged content."""
        return self.tokens - self.block_tokens

    @property
    def used_tokens(self) -> int:
        """Tokens in use: computed, else as the provider last reported, else estimated."""
        if self.in_use is not None:
            return self.in_use
        return self.usage if self.usage is not None else self.tokens

    @property
    def request_tokens(self) -> int:
        """Tokens of the system prompt and the tools, which no compaction changes."""
        standing = self.convert_estimate(self.summary.tokens) if self.summary else 0
        return max(0, self.overhead_tokens - standing)

    def convert_estimate(self, estimated: int) -> int:
        """Return the model's tokens for a summary or request of `estimated` tokens."""
        return round(estimated * self.calibration.get_ratio(ContentKind.REQUEST))

    def count_item_tokens(self, item: WindowItem, length: int | None) -> int:
        """Return an item's tokens once it shows `length` characters; None is the whole block."""
        now, then = _estimate_item(item, item.length), _estimate_item(item, length)
        if now == then:
            return item.tokens
        sort = CONTENT_KINDS.get(item.kind, ContentKind.TEXT)
        # Media follow the provider's own rules and say nothing about the text next to them.
        ratio = self.calibration.get_ratio(sort) if has_media(item.block) else item.tokens / now
        return max(1, round(then * ratio))

    def price(
        self, kept_tokens: int, summary_tokens: int, *, unchanged: int | None = None
    ) -> Pricing:
        """Return the cost and saving of keeping `kept_tokens` after a summary of `summary_tokens`.

        `unchanged` are the tokens at the beginning that stay the same, if these are more than the
        request's. If no call was reported, the whole view is taken as cached, so that the cost of a
        compaction is never underestimated.
        """
        return Pricing(
            before=self.tokens,
            after=self.request_tokens + summary_tokens + kept_tokens,
            unchanged=self.request_tokens if unchanged is None else unchanged,
            cached=self.tokens if self.cached is None else min(self.cached, self.tokens),
            model=self.prices,
            expected_calls=self.expected_calls,
        )

    @cached_property
    def running(self) -> tuple[int, ...]:
        """Prefix sums of the tokens of `open_to_cut`; `running[i]` is the sum before item i."""
        return tuple(accumulate([item.tokens for item in self.open_to_cut], initial=0))

    @cached_property
    def held_tokens(self) -> int:
        """Tokens that no cut removes: pins, open calls, and their groups."""
        return sum(
            item.tokens
            for group in self.groups
            if any(item.is_pinned or item.is_open for item in group)
            for item in group
        )

    @cached_property
    def earlier_trims(self) -> dict[int, Trim]:
        """The trims of earlier boundaries by position."""
        return {trim.position: trim for trim in self.boundary.trims} if self.boundary else {}

    @cached_property
    def earlier_replacements(self) -> dict[int, str]:
        """The texts by position that replace blocks since earlier boundaries."""
        return (
            {one.position: one.text for one in self.boundary.replacements} if self.boundary else {}
        )

    @property
    def earlier_hidden(self) -> Ranges:
        return self.boundary.hidden if self.boundary else Ranges()

    @cached_property
    def groups(self) -> list[list[WindowItem]]:
        """The items in groups that leave or stay together: pairs, and pieces of one message."""
        return group_blocks(self.items)


def _estimate_item(item: WindowItem, length: int | None) -> int:
    if length is None:
        return estimate_block(item.block)
    return max(1, -(-length // CHARS_PER_TOKEN))


class OnFailure(StrEnum):
    """What happens to a plan if all its summarizers fail."""

    EXTRACTIVE = "extractive"
    """Rules write the summary instead, or, if that fails too, a list of what left."""
    NOTICE = "notice"
    """The blocks leave all the same, and a line says so."""
    UNCHANGED = "unchanged"
    """The compaction fails, and the view is unchanged."""


@dataclass(frozen=True, slots=True)
class Plan:
    """A policy's answer: what leaves, and why. The store repairs it before it is recorded."""

    cut: int | None
    """Position of the first block to keep; None if nothing leaves by a cut."""
    reason: str
    summary_tokens: int
    """The largest size of the summary; 0 writes no summary, only a notice that blocks left."""
    trims: tuple[Trim, ...] = ()
    drops: Ranges = Ranges()
    """Blocks after the cut that leave as well."""
    most_tokens: int = 0
    """The most tokens of the new view, if fewer than the model's limit."""
    turn_tokens: int = 0
    """For a split turn: the largest size of a separate summary of its beginning."""
    template: SummaryTemplate | None = None
    """How the summary is requested and assembled; None is cutbank's own way."""
    on_failure: OnFailure = OnFailure.EXTRACTIVE
    """What happens if no summary can be written; summarizers from settings are tried first."""


def find_budget_index(running: Sequence[int], budget: int, *, inclusive: bool = True) -> int | None:
    """Return the index of the newest item from which on the budget is reached; None if it never is.

    `running[i]` is the sum before item i, as in `Window.running`, and the last entry is the total.
    If `inclusive`, exactly the budget is enough; otherwise it takes more.
    """
    last = len(running) - 2
    most = running[-1] - budget
    find = bisect_right if inclusive else bisect_left
    # The items before it may have at most what the budget leaves over.
    index = find(running, most) - 1
    return min(index, last) if index >= 0 and last >= 0 else None
