"""What a policy is shown, and what it answers: a Window in, a Plan or None out."""

from bisect import bisect_left
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from itertools import accumulate
from typing import Any

from .block_groups import group_blocks
from .compaction_events import CompactBoundary, Summary, Trigger, Trim
from .counting.counter import has_media
from .counting.token_calibration import CONTENT_KINDS, ContentKind, TokenCalibration
from .item import Item, get_place
from .models import ModelFacts
from .pricing import Pricing
from .ranges import Ranges
from .session_events import ModelCalled
from .summaries.summarizer import SummaryTemplate
from .token_estimate import CHARS_PER_TOKEN, estimate_block


@dataclass(frozen=True)
class Window:
    """The view of one session as a compaction finds it."""

    items: Sequence[Item]
    """All visible blocks in the order of the view: by position, but for a result that came late,
    which stands beside its call. They may be made when they are first looked at: a policy that
    goes by what is in use does without."""
    after: int
    """The newest position that this compaction may decide about."""
    limit: int
    """Tokens that the model's context can hold."""
    trigger: Trigger = Trigger.MANUAL
    overhead: int = 0
    """Estimated tokens of what is sent besides the blocks, where `in_use` was not reckoned."""
    usage: int | None = None
    """Context size in tokens that the provider reported of the newest call on this view."""
    in_use: int | None = None
    """Tokens in use now: as reported, and what came since; None where that was not reckoned."""
    calibration: TokenCalibration = TokenCalibration()
    """What the provider's reports taught about the estimates, and how good they are."""
    boundary: CompactBoundary | None = None
    summary: Summary | None = None
    """What stands for the blocks that earlier boundaries took out."""
    pinned: Ranges = Ranges()
    hides: dict[int, str | None] = field(default_factory=dict)
    """Blocks to hide from this boundary on: position to replacement text."""
    retracted: Ranges = Ranges()
    """What was taken back since the last boundary."""
    cached: int | None = None
    """Tokens that the provider holds in its cache of this view, as its newest report says."""
    called_model: str | None = None
    """The model of the newest call, as it was recorded."""
    prices: ModelFacts | None = None
    """The agent's model and what its tokens cost, where that is known."""
    expected_calls: int = 0
    """How many calls there will be on what this compaction leaves."""
    system_prompt: str = ""
    """The system prompt; what it takes is part of `overhead` and `in_use`."""
    usage_at: int | None = None
    """The last position that the call saw whose report is `usage`."""
    since_boundary_s: float | None = None
    """Seconds since the view's boundary was drawn; None where there is none, or where a session
    that is run through again tells no times."""
    last_call: ModelCalled | None = None
    """The newest call whose size was reported, whether or not that can be believed."""
    memo: dict[Hashable, Any] = field(default_factory=dict, compare=False, repr=False)
    """What policies worked out of the first of the items, each under a key of its own; windows
    share it while the view does no more than grow at its end. Nothing may depend on its being
    there."""
    evicted: Sequence[Item] = ()
    """What left with earlier boundaries, for policies that go on counting it; a store has it at
    hand no more, and leaves this empty."""

    @cached_property
    def cut_start(self) -> int:
        """Where the blocks begin that a new cut may take out; those before it stay in any case.

        What a boundary carried over may leave again once its calls are answered, or it is pinned
        no more.
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
    def open_to_cut(self) -> tuple[Item, ...]:
        """The items that a new cut may take out."""
        return tuple(self.items[bisect_left(self.items, self.cut_start, key=get_place) :])

    @cached_property
    def tokens(self) -> int:
        """Tokens of the whole view as it is shown now, as reckoned or estimated."""
        blocks = self.block_tokens
        return blocks + self.overhead if self.in_use is None else max(blocks, self.in_use)

    @cached_property
    def block_tokens(self) -> int:
        """Tokens of the blocks alone; not of those that a pin brings back only now."""
        return sum([item.tokens for item in self.items if not self._is_brought_back(item)])

    def _is_brought_back(self, item: Item) -> bool:
        """Whether the block left with an earlier boundary, and was pinned since."""
        boundary = self.boundary
        if boundary is None or item.position > boundary.after:
            return False
        return item.position not in boundary.kept

    @property
    def overhead_tokens(self) -> int:
        """Tokens of what is sent besides the blocks: system prompt, tools, standing summary, and
        what no log holds."""
        return self.tokens - self.block_tokens

    @property
    def used_tokens(self) -> int:
        """Tokens in use: as reckoned, else as the provider last reported, else as estimated."""
        if self.in_use is not None:
            return self.in_use
        return self.usage if self.usage is not None else self.tokens

    @property
    def request_tokens(self) -> int:
        """Tokens of the system prompt and the tools: no compaction changes these."""
        standing = self.convert_estimate(self.summary.tokens) if self.summary else 0
        return max(0, self.overhead_tokens - standing)

    def convert_estimate(self, estimated: int) -> int:
        """What the model makes of a summary, or of a request, of so many estimated tokens."""
        return round(estimated * self.calibration.get_ratio(ContentKind.REQUEST))

    def count_item_tokens(self, item: Item, length: int | None) -> int:
        """What an item takes once so many characters of it show; None is the whole block."""
        now, then = _estimate_item(item, item.length), _estimate_item(item, length)
        if now == then:
            return item.tokens
        sort = CONTENT_KINDS.get(item.kind, ContentKind.TEXT)
        # What media take goes by rules of the provider's, and tells nothing of the text beside.
        ratio = self.calibration.get_ratio(sort) if has_media(item.block) else item.tokens / now
        return max(1, round(then * ratio))

    def price(
        self, kept_tokens: int, summary_tokens: int, *, unchanged: int | None = None
    ) -> Pricing:
        """What it would cost and save to keep so much behind a summary of that size.

        `unchanged` are the tokens at the beginning that stay as they are, where these are more
        than the request's: blocks in front of the first that changes. Where no call was reported,
        all is taken to be cached: so a compaction is never called cheaper than it may be.
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
        """Prefix sums of the tokens of `open_to_cut`; `running[i]` is what precedes item i."""
        return tuple(accumulate([item.tokens for item in self.open_to_cut], initial=0))

    @cached_property
    def held_tokens(self) -> int:
        """Tokens of what no cut takes out: pins and open calls, and what is bound to them."""
        return sum(
            item.tokens
            for group in self.groups
            if any(item.is_pinned or item.is_open for item in group)
            for item in group
        )

    @cached_property
    def groups(self) -> list[list[Item]]:
        """The items by what leaves or stays together: pairs, and pieces of one message."""
        return group_blocks(self.items)


def _estimate_item(item: Item, length: int | None) -> int:
    if length is None:
        return estimate_block(item.block)
    return max(1, -(-length // CHARS_PER_TOKEN))


class OnFailure(StrEnum):
    """What becomes of a plan where all who were asked for its summary failed."""

    EXTRACTIVE = "extractive"
    """A summary by rules stands in, and where even that will not do, a list of what left."""
    NOTICE = "notice"
    """The blocks leave all the same, and a line says so."""
    UNCHANGED = "unchanged"
    """The compaction fails, and the view stays as it was."""


@dataclass(frozen=True, slots=True)
class Plan:
    """A policy's answer: what leaves, and why. The store repairs it before it is recorded."""

    cut: int | None
    """Position of the first block to keep; None where nothing leaves by a cut."""
    reason: str
    summary_tokens: int
    """How large the summary may be; 0 has no summary written, only said that blocks left."""
    trims: tuple[Trim, ...] = ()
    """Tool results that stay, shown shortened."""
    drops: Ranges = Ranges()
    """Blocks behind the cut that leave as well."""
    most_tokens: int = 0
    """Tokens that the view may have afterwards, where these are fewer than the model's limit."""
    turn_tokens: int = 0
    """For a split turn: how large the summary of its beginning may be, where it has an allowance
    of its own."""
    template: SummaryTemplate | None = None
    """How the summary is asked for and put together; None is cutbank's own way."""
    on_failure: OnFailure = OnFailure.EXTRACTIVE
    """What happens where no summary can be had; a summariser that was named in settings is asked
    before, the extractive one as well."""
