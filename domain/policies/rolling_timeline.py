"""Past 90% of the limit, keep 70% of what blocks may take and sum up what came before it."""

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, ClassVar, NamedTuple

from ..blocks import PROMPT_KINDS, AnyBlock, BlockKind
from ..compaction_events import Trigger
from ..errors import NothingToCompactError
from ..item import WindowItem, find_message_start
from ..settings import setting
from ..summaries.kdcube_template import (
    CALL_TYPE,
    COMPLETION_TYPE,
    HEADER_TYPE,
    PROMPT_TYPE,
    RESULT_TYPE,
    SUMMARY_TYPE,
    KdcubeTemplate,
    is_turn_start,
    read_timeline_entry,
)
from ..window import OnFailure, Plan, Window, find_budget_index
from .policy import ThresholdPolicy, make_setting_error, share_setting


class TimelineUsage(NamedTuple):
    """How full a window is, in the unit of the policy."""

    total: int
    room_tokens: int
    """What the limit leaves for blocks."""
    share_tokens: int
    """The share of the room that stays usage."""
    running: Sequence[int]
    """Prefix sums of the blocks that may leave."""
    running_for_keep: Sequence[int]
    """Prefix sums of what counts towards the share."""


@dataclass(frozen=True)
class RollingTimeline(ThresholdPolicy):
    """Follows kdcube/kdcube-ai-app: recent blocks stay, older ones roll out into a new summary.

    A cut is at a turn or a message, never at a tool result. If it splits a turn, the beginning of
    the turn is summarized separately.
    """

    name: ClassVar[str] = "rolling-timeline"
    alias: ClassVar[str] = "kdcube"
    source: ClassVar[str] = "kdcube/kdcube-ai-app, react/doc/compaction-README.md"
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "as_shipped": {"on_failure": OnFailure.UNCHANGED.value}
    }
    heading_end: ClassVar[str] = ""

    fires_at: float = share_setting(0.9, help="fires when more than this share is in use")
    keeps: float = setting(
        0.7,
        help="this share stays of what the limit leaves for blocks",
        unit="of the room for blocks",
        least=0,
        most=1,
    )
    keep_recent_turns: int = setting(
        6, help="the newest turns stay whole, where that leaves something; 0 is none", least=0
    )
    summary_tokens: int = setting(
        800, help="how large a summary may be", unit="tokens", least=1, most=1_000_000
    )
    turn_summary_tokens: int = setting(
        400, help="and that of a split turn's beginning", unit="tokens", least=1, most=1_000_000
    )
    on_failure: str = setting(
        OnFailure.EXTRACTIVE.value, among=OnFailure, help="what happens where no summary can be had"
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.keeps >= self.fires_at:
            wrong = f"is {self.keeps}, not below fires_at ({self.fires_at})"
            raise make_setting_error(self, "keeps", f"{wrong}: the kept blocks would fire it again")

    # When

    def fires(self, window: Window) -> bool:
        """Check whether more than the share is in use; never if no limit is known."""
        return window.limit > 0 and self.count_in_use(window) > int(window.limit * self.fires_at)

    def count_in_use(self, window: Window) -> int:
        return window.used_tokens

    def measure_usage(self, window: Window) -> TimelineUsage:
        total, overhead, running, running_for_keep = self.measure(window)
        # Without a known limit, the tokens in use serve as one.
        room = max(1, (window.limit if window.limit > 0 else total) - overhead)
        share = max(1, int(room * self.keeps))
        return TimelineUsage(total, room, share, running, running_for_keep)

    def measure(self, window: Window) -> tuple[int, int, Sequence[int], Sequence[int]]:
        """Return the tokens in use, those apart from blocks, and both prefix sums of the usage."""
        used, running = window.used_tokens, window.running
        return used, max(0, used - running[-1]), running, running

    # Where

    def find_plan(self, window: Window) -> Plan | None:
        usage = self.measure_usage(window)
        items = window.open_to_cut
        _, at, split = self.locate_cut(items, usage) if items else (0, 0, None)
        cut = items[at].position if at else self._find_intended_cut(window, usage)
        if cut is None:
            if window.trigger is Trigger.IDLE:
                return None
            raise NothingToCompactError(
                f"nothing to compact: of {usage.total:,} tokens in use, blocks that may leave "
                f"take no more than the {usage.share_tokens:,} that stay "
                f"({self.name}: keeps is {self.keeps})"
            )
        turn_start = items[at if split is None else split].position if at else 0
        return Plan(
            cut=cut,
            reason=f"{window.trigger}: {usage.total:,} of {window.limit:,} tokens in use; "
            f"of the blocks, the newest {usage.share_tokens:,} stay",
            summary_tokens=self.summary_tokens,
            turn_tokens=self.turn_summary_tokens,
            template=self.make_template(turn_start),
            on_failure=OnFailure(self.on_failure),
        )

    def make_template(self, turn_start: int = 0) -> KdcubeTemplate:
        """Return the summary's template; a split turn's beginning starts at `turn_start`."""
        return KdcubeTemplate(turn_start, self.heading_end)

    def locate_cut(
        self, items: Sequence[WindowItem], usage: TimelineUsage
    ) -> tuple[int, int, int | None]:
        """Return the tokens to keep, and the indices of the first kept block and its split turn.

        By the rules, before any repair: nothing leaves at index 0.
        """
        keep = self._count_tokens_to_keep(items, usage)
        at = self._find_first_cut(items, find_budget_index(usage.running_for_keep, keep))
        return (keep, 0, None) if at is None else (keep, at, self._find_turn_start(items, at))

    def _find_intended_cut(self, window: Window, usage: TimelineUsage) -> int | None:
        """Return where to cut if the rules' cut removes nothing.

        The newest block or the newest turns are then too large; the store finds the nearest legal
        cut or shortens them. After an overflow, the view exceeds the model's real limit, whatever
        limit is known.
        """
        items, running = window.open_to_cut, usage.running
        if not items:
            return None
        keeps = [self._count_tokens_to_keep(items, usage), usage.share_tokens]
        if window.trigger is Trigger.OVERFLOW:
            keeps.append(max(1, int(running[-1] * self.keeps)))
        for keep in keeps:
            index = find_budget_index(running, keep)
            if index is not None and (at := self._find_first_cut(items, index) or index) > 0:
                return items[at].position
        return items[0].position if running[-1] >= keeps[-1] else None

    def _count_tokens_to_keep(self, items: Sequence[WindowItem], usage: TimelineUsage) -> int:
        """Return the tokens to keep: the share, or the newest turns if these are more and fit."""
        if self.keep_recent_turns == 0:
            return usage.share_tokens
        recent = usage.running[-1] - usage.running[self._find_newest_turns(items)]
        return max(usage.share_tokens, recent if recent <= usage.room_tokens else 0)

    def _find_newest_turns(self, items: Sequence[WindowItem]) -> int:
        """Return the index where the newest turns begin; 0 if there are fewer."""
        end, turns = len(items), 0
        while end > 0:
            turn = items[end - 1].turn
            turns += turn > 0
            if turns == self.keep_recent_turns:
                start = self.find_beginning(items, turn, end)
                return end - 1 if start is None else start
            end = bisect_left(items, turn, 0, end, key=_TURN)
        return 0

    # Cut points

    def _find_first_cut(self, items: Sequence[WindowItem], start: int | None) -> int | None:
        """Return the index of the first block from `start` on where a cut may be.

        If none follows, or `start` is None, return the first in the whole timeline. A block outside
        messages goes with the message after it.
        """
        found = None if start is None else self.find_next_cut(items, start)
        found = self.find_next_cut(items, 0) if found is None else found
        while found and not self.is_message(items[found - 1].block):
            found -= 1
        return found

    def find_next_cut(self, items: Sequence[WindowItem], start: int) -> int | None:
        """Return where the next message begins, or the next block that is no tool result."""
        rest = range(start, len(items))
        found = next((at for at in rest if self.is_cut_point(items[at].block)), None)
        if found is None:
            found = next((at for at in rest if items[at].block.kind is not _RESULT), None)
        return None if found is None else find_message_start(items, found)

    def is_message(self, block: AnyBlock) -> bool:
        return block.kind is _RESULT or self.is_cut_point(block)

    def is_cut_point(self, block: AnyBlock) -> bool:
        """Check whether a cut may be at the block: it begins a turn or is a message."""
        if block.origin is None:
            return block.kind in _MESSAGES
        entry = read_timeline_entry(block)
        if entry.type in {RESULT_TYPE, SUMMARY_TYPE}:
            return False
        return entry.type in _MESSAGE_TYPES or self.is_speaker(entry.author)

    def is_speaker(self, author: str) -> bool:
        return author in {"user", "assistant"}

    def _find_turn_start(self, items: Sequence[WindowItem], at: int) -> int | None:
        """Return where the turn of the item began; None if the item begins it, or nothing does."""
        turn = items[at].turn
        if turn == 0 or is_turn_start(items[at].block):
            return None
        begins = self.find_beginning(items, turn, at)
        return None if begins == at else begins

    def find_beginning(self, items: Sequence[WindowItem], turn: int, end: int) -> int | None:
        """Return the index of the first item of a turn; None if the turn has no beginning here."""
        return bisect_left(items, turn, 0, end, key=_TURN)


_RESULT = BlockKind.TOOL_RESULT
_TURN = attrgetter("turn")
_MESSAGES = PROMPT_KINDS | {BlockKind.ASSISTANT, BlockKind.TOOL_CALL}
_MESSAGE_TYPES = {PROMPT_TYPE, COMPLETION_TYPE, CALL_TYPE, HEADER_TYPE}
