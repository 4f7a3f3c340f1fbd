"""Past 90% of the limit, keep 70% of what blocks may take and sum up what came before it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, pairwise
from typing import Any, ClassVar, NamedTuple

from ..compaction_events import Trigger
from ..counting.estimators import SizeUnit
from ..errors import NothingToCompactError
from ..item import Item
from ..settings import setting
from ..summaries.kdcube_template import KdcubeTemplate
from ..window import OnFailure, Plan, Window, find_budget_index
from .policy import check_settings, make_setting_error, quirk, share_setting
from .reference.timeline import TimelineCuts, TimelineSizes


class TimelineUsage(NamedTuple):
    """How full a window is, in the unit of the settings."""

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
class RollingTimeline:
    """Follows kdcube/kdcube-ai-app: recent blocks stay, older ones roll out into a new summary.

    A cut is at a turn or a message, never at a tool result. If it splits a turn, the beginning of
    the turn is summarized separately.
    """

    name: ClassVar[str] = "rolling-timeline"
    alias: ClassVar[str] = "kdcube"
    source: ClassVar[str] = "kdcube/kdcube-ai-app, react/doc/compaction-README.md"
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "as_shipped": {
            "unit": "code-points",
            "counts": "in-memory",
            "protects": "if-it-fits",
            "budget_counts": "messages",
            "boundaries": "any-author",
            "cuts_at": "blocks",
            "turn_begins": "prompt",
            "heading": "colon",
            "on_failure": "unchanged",
        }
    }

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

    # What the presets change.
    unit: str = quirk(SizeUnit.RECKONED)
    counts: str = quirk("visible")
    protects: str = quirk("always")
    budget_counts: str = quirk("blocks")
    boundaries: str = quirk("user-and-assistant")
    cuts_at: str = quirk("messages")
    turn_begins: str = quirk("turn")
    heading: str = quirk("plain")

    def __post_init__(self) -> None:
        check_settings(self)
        if self.keeps >= self.fires_at:
            wrong = f"is {self.keeps}, not below fires_at ({self.fires_at})"
            raise make_setting_error(self, "keeps", f"{wrong}: the kept blocks would fire it again")

    @cached_property
    def sizes(self) -> TimelineSizes:
        return TimelineSizes(self.unit, counts_evicted=self.counts == "in-memory")

    @cached_property
    def _cuts(self) -> TimelineCuts:
        return TimelineCuts(
            any_author=self.boundaries == "any-author",
            whole_messages=self.cuts_at == "messages",
            from_prompt=self.turn_begins == "prompt",
        )

    # When

    def fires(self, window: Window) -> bool:
        """Check whether more than the share is in use; never if no limit is known."""
        return window.limit > 0 and self._is_over(window, self.sizes.count_total(window))

    def _is_over(self, window: Window, total: int) -> bool:
        return total > int(window.limit * self.fires_at)

    # Where

    def plan(self, window: Window) -> Plan | None:
        usage = self.measure_usage(window)
        is_due = window.limit > 0 and self._is_over(window, usage.total)
        if window.trigger is Trigger.THRESHOLD and not is_due:
            return None
        items = window.open_to_cut
        keep, at, split = self.locate_cut(window, usage) if items else (0, 0, None)
        if at and keep <= usage.room_tokens:
            cut: int | None = items[at].position
            turn_start = items[at if split is None else split].position
        else:
            cut, turn_start = self._find_intended_cut(window, usage), 0
        if cut is None:
            if window.trigger is Trigger.IDLE:
                return None
            raise NothingToCompactError(
                f"nothing to compact: of {usage.total:,} tokens in use, blocks that may leave "
                f"take no more than the {usage.share_tokens:,} that stay "
                f"({self.name}: keeps is {self.keeps})"
            )
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
        return KdcubeTemplate(turn_start, ":" if self.heading == "colon" else "")

    def locate_cut(self, window: Window, usage: TimelineUsage) -> tuple[int, int, int | None]:
        """Return the tokens to keep, and the indices of the first kept block and its split turn.

        By the rules, before any repair: nothing leaves at index 0.
        """
        items = window.open_to_cut
        keep = self._count_tokens_to_keep(items, usage)
        at = self._cuts.find_first_cut(items, find_budget_index(usage.running_for_keep, keep))
        if at is None:
            return keep, 0, None
        return keep, at, self._cuts.find_turn_start(items, at)

    def _find_intended_cut(self, window: Window, usage: TimelineUsage) -> int | None:
        """Return where to cut if the rules' cut removes nothing or leaves too much.

        The newest block or the newest turns are then too large; the store finds the nearest legal
        cut or shortens them. After an overflow, the view exceeds the model's real limit, whatever
        limit is known.
        """
        items, running = window.open_to_cut, usage.running
        if not items:
            return None
        keep = self._count_tokens_to_keep(items, usage)
        keeps = [keep] if keep <= usage.room_tokens else []
        keeps.append(usage.share_tokens)
        if window.trigger is Trigger.OVERFLOW:
            keeps.append(max(1, int(running[-1] * self.keeps)))
        for keep in keeps:
            index = find_budget_index(running, keep)
            if index is None:
                continue
            at = self._cuts.find_first_cut(items, index) or index
            if at > 0:
                return items[at].position
        return items[0].position if running[-1] >= keeps[-1] else None

    def _count_tokens_to_keep(self, items: Sequence[Item], usage: TimelineUsage) -> int:
        """Return the tokens to keep: the share, or the newest turns if these are more."""
        if self.keep_recent_turns == 0:
            return usage.share_tokens
        begins = self._cuts.find_newest_turns(items, self.keep_recent_turns)
        recent = usage.running[-1] - usage.running[begins]
        if self.protects == "if-it-fits" and recent > usage.room_tokens:
            return usage.share_tokens
        return max(usage.share_tokens, recent)

    def measure_usage(self, window: Window) -> TimelineUsage:
        running = self.sizes.sum_running(window)
        total = self.sizes.count_total(window, running)
        # Without a known limit, the tokens in use serve as one.
        limit = window.limit if window.limit > 0 else total
        room = max(1, limit - self.sizes.count_overhead(window))
        share = max(1, int(room * self.keeps))
        items, counts_all = window.open_to_cut, self.budget_counts == "blocks"
        towards_keep = running if counts_all else self._sum_messages(items, running)
        return TimelineUsage(total, room, share, running, towards_keep)

    def _sum_messages(self, items: Sequence[Item], running: Sequence[int]) -> tuple[int, ...]:
        counted = (
            after - before if self._cuts.is_message(item) else 0
            for item, (before, after) in zip(items, pairwise(running), strict=True)
        )
        return tuple(accumulate(counted, initial=0))
