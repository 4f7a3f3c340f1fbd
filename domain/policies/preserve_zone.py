"""Past 80% full, keep the newest 40% of the context word for word and summarize the rest."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from ..blocks import BlockKind
from ..compaction_events import Trigger, Trim
from ..errors import NothingToCompactError
from ..item import WindowItem, find_message_end, find_message_start, find_role
from ..settings import setting
from ..summaries.templates import ClaudeSdkTemplate
from ..trims import count_saved_tokens, iter_effective_trims
from ..window import OnFailure, Plan, Window, find_budget_index
from .policy import ThresholdPolicy, make_setting_error, share_setting, token_setting

_CRITICAL_SHARE = 0.95
"""The share of the limit whose use is called critical."""
PRUNED_CHARACTERS = 200
"""Characters that are shown of a shortened result."""


@dataclass(frozen=True)
class PreserveZone(ThresholdPolicy):
    """Follows jack-phare/goat: fires above 80% of the limit; keeps the newest 40%.

    Room for the answer counts as used. The message that exceeds the zone leaves. Below the
    threshold, old tool results are shortened once that saves enough.
    """

    name: ClassVar[str] = "preserve-zone"
    alias: ClassVar[str] = "claude-sdk"
    source: ClassVar[str] = "jack-phare/goat, Spec 09: Context & Compaction"
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {"as_shipped": {}}
    template: ClassVar[ClaudeSdkTemplate] = ClaudeSdkTemplate()
    prune_gain: ClassVar[float] = 0.1
    """The share of the tokens in use that shortening old results must save."""

    threshold: float = share_setting(0.80, help="more than this part in use fires")
    preserve_ratio: float = share_setting(0.40, help="this part of the newest is kept")
    max_output_tokens: int = token_setting(16_384, help="kept free for the answer, and so in use")
    max_summary_tokens: int = token_setting(4_096, least=1, help="how large a summary may be")
    prune_over: int | None = setting(
        1_000,
        unit="characters",
        least=PRUNED_CHARACTERS + 1,
        help="longer results are shortened to 200 when old; none is off",
    )
    preserve_recent: int = setting(
        10, unit="messages", help="the newest are never shortened; less than 0 is 0"
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.preserve_ratio >= self.threshold > 0:
            wrong = f"is {self.preserve_ratio}, so the kept blocks would fire it again"
            raise make_setting_error(
                self, "preserve_ratio", f"{wrong} at the threshold of {self.threshold}"
            )

    # When

    def fires(self, window: Window) -> bool:
        """Check whether there is something to do unprompted; never if no limit is known."""
        return window.limit > 0 and (
            self.should_compact(self.measure_utilization(window))
            or self._is_pruning_worthwhile(window)
        )

    @property
    def fires_by_tokens(self) -> bool:
        return self.prune_over is None

    def measure_utilization(self, window: Window) -> float:
        """Return the share of the limit that is used, also by the answer; 1 for a limit of 0."""
        used = self.count_in_use(window) + self.max_output_tokens
        return used / window.limit if window.limit > 0 else 1.0

    def count_in_use(self, window: Window) -> int:
        return window.used_tokens

    def should_compact(self, utilization: float) -> bool:
        return utilization > self.threshold

    def must_compact(self, utilization: float) -> bool:
        return utilization > max(_CRITICAL_SHARE, self.threshold)

    # Where

    def find_plan(self, window: Window) -> Plan | None:
        utilization = self.measure_utilization(window)
        is_due = window.limit > 0 and self.should_compact(utilization)
        if window.trigger is Trigger.THRESHOLD and not is_due:
            return self._plan_pruning(window)
        items, split = window.open_to_cut, self.find_split(window)
        if split:
            return Plan(
                cut=items[split].position if split < len(items) else items[-1].position + 1,
                reason=self._write_reason(window, utilization),
                summary_tokens=self.max_summary_tokens,
                template=self.template,
                on_failure=OnFailure.NOTICE,
            )
        if pruning := self._plan_pruning(window):
            return pruning
        raise NothingToCompactError(
            f"nothing to compact: {window.tokens:,} tokens in view, and what may leave fits into "
            f"the {self.compute_preserve_budget(window.limit):,} that preserve_ratio keeps; "
            f"max_output_tokens holds {self.max_output_tokens:,} of {window.limit:,} in addition"
        )

    def compute_preserve_budget(self, limit: int) -> int:
        return int(limit * self.preserve_ratio)

    def find_split(self, window: Window) -> int:
        """Return the index of the first item to keep, by the document's walk; 0 if all fits."""
        exceeding = self.find_exceeding_item(window)
        return 0 if exceeding is None else find_message_end(window.open_to_cut, exceeding)

    def find_exceeding_item(self, window: Window) -> int | None:
        """Return the newest item from which on the zone is exceeded; None if all fits."""
        zone = self.compute_preserve_budget(window.limit)
        return find_budget_index(window.running, zone, inclusive=False)

    # Old results

    def list_old_results(self, window: Window, *, after: int = 0) -> list[tuple[Trim, WindowItem]]:
        """Return old results that show too much, with their trims, from an index on."""
        most, items = self.prune_over, window.items[after : self._find_recent_start(window.items)]
        if most is None:
            return []
        heads = [
            (item.position, self.fit_head(item.block.text, most))
            for item in items
            if item.block.kind is _RESULT
        ]
        trims = [Trim(position=position, head=head) for position, head in heads if head is not None]
        return list(iter_effective_trims(window, items, trims)) if trims else []

    def fit_head(self, text: str, most: int) -> int | None:
        """Return how many characters of a result may stay; None if it has no more than `most`."""
        return PRUNED_CHARACTERS if len(text) > most else None

    def _find_recent_start(self, items: Sequence[WindowItem]) -> int:
        """Return the index where the newest messages begin; 0 if there are no older ones."""
        recent, start = self.preserve_recent, len(items)
        while recent > 0 and start > 0:
            start = find_message_start(items, start - 1)
            if find_role(items[start]):
                recent -= 1
        return start

    def _is_pruning_worthwhile(self, window: Window) -> bool:
        """Check whether trims of old results save enough together, reading each result once."""
        if self.prune_over is None:
            return False
        upto = self._find_recent_start(window.items)
        seen, saved = window.memo.get(self, (0, 0))
        if seen > upto:
            seen = saved = 0
        old = self.list_old_results(window, after=seen)
        saved += sum(count_saved_tokens(window, item, trim) for trim, item in old)
        window.memo[self] = upto, saved
        return saved > 0 and bool(saved >= self.prune_gain * window.used_tokens)

    def _plan_pruning(self, window: Window) -> Plan | None:
        """Return the plan that trims the old results that still show whole; None without any."""
        trims = tuple([trim for trim, _ in self.list_old_results(window)])
        if not trims:
            return None
        reason = (
            f"{window.trigger}: {len(trims):,} old tool results are longer than "
            f"{self.prune_over:,} characters"
        )
        return Plan(cut=None, reason=reason, summary_tokens=0, trims=trims)

    def _write_reason(self, window: Window, utilization: float) -> str:
        filled = f"{utilization:.0%} full" if window.limit > 0 else "no known limit"
        critical = ", which is critical" if self.must_compact(utilization) else ""
        zone = self.compute_preserve_budget(window.limit)
        return f"{window.trigger}: {filled}{critical}; the newest {zone:,} tokens are kept"


_RESULT = BlockKind.TOOL_RESULT
"""Bound here because member access on an enumeration is slow."""
