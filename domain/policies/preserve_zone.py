"""Past 80% full, keep the newest 40% of the context word for word and summarize the rest."""

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

from ..blocks import Kind
from ..compaction_events import Trigger, Trim
from ..counting.estimators import (
    GOAT_ESTIMATOR,
    Estimator,
    SizeUnit,
    configure_estimator,
    measure_length,
)
from ..errors import NothingToCompactError
from ..item import Item
from ..messages import find_message_end, find_message_start, find_role, iter_message_spans_back
from ..settings import setting
from ..summaries.templates import ClaudeSdkTemplate
from ..trims import iter_shortened_results
from ..window import OnFailure, Plan, Window, find_budget_index
from .policy import (
    NEVER_FIRES,
    check_settings,
    make_setting_error,
    quirk,
    share_setting,
    token_setting,
)

_CRITICAL_SHARE = 0.95
"""The share of the limit whose use is called critical."""
PRUNED_CHARACTERS = 200
"""Characters that are shown of a shortened result."""


class ContextBudget(NamedTuple):
    """A model's context limit and the tokens that use it."""

    limit: int
    system_tokens: int
    message_tokens: int
    max_output_tokens: int
    """Tokens that are kept free for an answer, and so count as used."""

    @property
    def used_tokens(self) -> int:
        return self.system_tokens + self.message_tokens + self.max_output_tokens

    @property
    def utilization(self) -> float:
        """The share of the limit that is used; 1 for a limit of 0."""
        return self.used_tokens / self.limit if self.limit > 0 else 1.0


@dataclass(frozen=True)
class PreserveZone:
    """Follows jack-phare/goat: fires above 80% of the limit; keeps the newest 40%.

    Room for the answer counts as used. The message that exceeds the zone leaves. Below the
    threshold, old tool results are shortened once that saves enough.
    """

    name: ClassVar[str] = "preserve-zone"
    alias: ClassVar[str] = "claude-sdk"
    source: ClassVar[str] = "jack-phare/goat, Spec 09: Context & Compaction"
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "as_shipped": {
            "unit": "bytes",
            "keeps_newest": True,
            "steps_back": True,
            "prune_gain": 0.0,
            "shows_calls": False,
        }
    }

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

    # What the presets change.
    prune_gain: float = quirk(0.1)
    unit: str = quirk(SizeUnit.RECKONED)
    keeps_newest: bool = quirk(False)
    steps_back: bool = quirk(False)
    shows_calls: bool = quirk(True)

    def __post_init__(self) -> None:
        check_settings(self)
        if self.preserve_ratio >= self.threshold > 0:
            wrong = f"is {self.preserve_ratio}, so the kept blocks would fire it again"
            raise make_setting_error(
                self, "preserve_ratio", f"{wrong} at the threshold of {self.threshold}"
            )

    # When

    def fires(self, window: Window) -> bool:
        """Check whether there is something to do unprompted; never if no limit is known."""
        return window.limit > 0 and (
            self.should_compact(self.measure_budget(window)) or self._is_pruning_worthwhile(window)
        )

    def quiet_below(self, limit: int) -> int | None:
        """Return the most tokens in use that do not fire; None if texts are measured or cut."""
        if self.estimator is not None or self.prune_over is not None:
            return None
        if limit <= 0:
            return NEVER_FIRES
        # Within one step of the float next to the threshold, whichever way it was rounded.
        most, answer = int(self.threshold * limit), self.max_output_tokens
        near = (most + 1 - answer, most - answer, most - 1 - answer)
        return next(n for n in near if not self.should_compact(ContextBudget(limit, 0, n, answer)))

    def measure_budget(
        self, window: Window, sizes: Sequence[tuple[int, int]] | None = None
    ) -> ContextBudget:
        """Return the tokens in use; the store counts the system prompt as a message."""
        if self.estimator is None:
            return ContextBudget(window.limit, 0, window.used_tokens, self.max_output_tokens)
        sizes = self._measure_messages(window.items) if sizes is None else sizes
        system = self.estimator.count_text(window.system_prompt)
        total = sum(tokens for _, tokens in sizes)
        if window.summary is not None:  # it counts as a message
            total += self.estimator.count_text(window.summary.text) + self.estimator.extra_tokens
        return ContextBudget(window.limit, system, total, self.max_output_tokens)

    def should_compact(self, budget: ContextBudget) -> bool:
        return budget.utilization > self.threshold

    def must_compact(self, budget: ContextBudget) -> bool:
        return budget.utilization > max(_CRITICAL_SHARE, self.threshold)

    # Where

    def plan(self, window: Window) -> Plan | None:
        sizes = self._measure_messages(window.items)
        budget = self.measure_budget(window, sizes)
        is_due = window.limit > 0 and self.should_compact(budget)
        if window.trigger is Trigger.THRESHOLD and not is_due:
            is_pruned = window.limit > 0 and self._is_pruning_worthwhile(window)
            return self._plan_pruning(window) if is_pruned else None
        items, split = window.open_to_cut, self.find_split(window, sizes)
        if split:
            return Plan(
                cut=items[split].position if split < len(items) else items[-1].position + 1,
                reason=self._write_reason(window, budget),
                summary_tokens=self.max_summary_tokens,
                template=ClaudeSdkTemplate(shows_calls=self.shows_calls),
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

    def find_split(self, window: Window, sizes: Sequence[tuple[int, int]] | None = None) -> int:
        """Return the index of the first item to keep, by the document's walk; 0 if all fits."""
        items = window.open_to_cut
        sizes = self._measure_messages(window.items) if sizes is None else sizes
        exceeding = self._find_exceeding_item(window, sizes)
        if exceeding is None:
            return 0
        split = find_message_end(items, exceeding)
        if self.keeps_newest and split >= len(items):
            # Nothing of a single message may leave: the floor stays at its end.
            split = max(find_message_start(items, len(items) - 1), find_message_end(items, 0))
        return step_back(items, split) if self.steps_back else split

    def _find_exceeding_item(self, window: Window, sizes: Sequence[tuple[int, int]]) -> int | None:
        """Return the newest item from which on the zone is exceeded; None if all fits."""
        zone = self.compute_preserve_budget(window.limit)
        if self.estimator is None:
            return find_budget_index(window.running, zone, inclusive=False)
        carried = len(window.items) - len(window.open_to_cut)
        for start, tokens in sizes:
            if start < carried:
                break
            zone -= tokens
            if zone < 0:
                return start - carried
        return None

    @cached_property
    def estimator(self) -> Estimator | None:
        """The document's estimate of messages; None if the store's count applies."""
        return configure_estimator(GOAT_ESTIMATOR, self.unit)

    def _measure_messages(self, items: Sequence[Item]) -> list[tuple[int, int]]:
        """Return each message's start and estimated tokens, newest first; none if reckoned."""
        if self.estimator is None:
            return []
        count = self.estimator.count_message
        return [
            (start, count([item.block for item in items[start:end]]))
            for start, end in iter_message_spans_back(items)
        ]

    # Old results

    def list_old_results(self, items: Sequence[Item]) -> list[tuple[Item, int]]:
        """Return old results that are too long, and how many characters of each may stay."""
        return self._list_long_results(items[: self._find_recent_start(items)])

    def _list_long_results(self, items: Iterable[Item]) -> list[tuple[Item, int]]:
        if self.prune_over is None:
            return []
        return [
            (item, self._fit_head(item.block.text))
            for item in items
            if item.block.kind is _RESULT
            and measure_length(item.block.text, self._unit) > self.prune_over
        ]

    def _find_recent_start(self, items: Sequence[Item]) -> int:
        """Return the index where the newest messages begin; 0 if there are no older ones."""
        recent, start = self.preserve_recent, len(items)
        while recent > 0 and start > 0:
            start = find_message_start(items, start - 1)
            if find_role(items[start]):
                recent -= 1
        return start

    def _fit_head(self, text: str) -> int:
        """Return how many whole characters fit."""
        most, unit = PRUNED_CHARACTERS, self._unit
        if measure_length(text[:most], unit) <= most:
            return most  # the usual case, since no character is shorter than a unit
        return bisect_right(range(most), most, key=lambda n: measure_length(text[: n + 1], unit))

    @cached_property
    def _unit(self) -> SizeUnit:
        return SizeUnit(self.unit)

    def _is_pruning_worthwhile(self, window: Window) -> bool:
        """Check whether trims of old results save enough together, reading each result once."""
        if self.prune_over is None:
            return False
        upto = self._find_recent_start(window.items)
        seen, saved = window.memo.get(self, (0, 0))
        if seen > upto:
            seen = saved = 0
        heads = self._list_long_results(window.items[seen:upto])
        saved += sum(shortened.saved for shortened in iter_shortened_results(window, heads))
        window.memo[self] = upto, saved
        return saved > 0 and bool(saved >= self.prune_gain * window.used_tokens)

    def _plan_pruning(self, window: Window) -> Plan | None:
        """Return the plan that trims the old results that still show whole; None without any."""
        shortened = iter_shortened_results(window, self.list_old_results(window.items))
        trims = tuple([Trim(position=one.item.position, head=one.head) for one in shortened])
        reason = (
            f"{window.trigger}: {len(trims):,} old tool results are longer than "
            f"{self.prune_over:,} characters"
        )
        return Plan(cut=None, reason=reason, summary_tokens=0, trims=trims) if trims else None

    def _write_reason(self, window: Window, budget: ContextBudget) -> str:
        used, is_known = f"{budget.used_tokens:,} in use", window.limit > 0
        filled = f"{budget.utilization:.0%} full" if is_known else used
        critical = ", which is critical" if self.must_compact(budget) else ""
        zone = self.compute_preserve_budget(window.limit)
        return f"{window.trigger}: {filled}{critical}; the newest {zone:,} tokens are kept"


_RESULT = Kind.TOOL_RESULT
"""Bound here because member access on an enumeration is slow."""


def step_back(items: Sequence[Item], index: int) -> int:
    """Return where the original moves a cut: off results, and off a message with calls.

    It stops at the second message, and may end at the result of an earlier call.
    """
    if index <= 0 or index >= len(items):
        return index
    floor = find_message_end(items, 0)
    while index > floor and items[index].kind is _RESULT:
        index = find_message_start(items, index - 1)
    message = items[index : find_message_end(items, index)]
    if index > floor and any(item.kind is Kind.TOOL_CALL for item in message):
        index = find_message_start(items, index - 1)
    return max(index, floor)
