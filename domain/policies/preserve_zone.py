"""Past 80% full, keep the newest 40% of the context word for word and summarise the rest."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

from ..compaction_events import Trigger, Trim
from ..errors import NothingToCompactError
from ..item import Item
from ..messages import message_end, message_start
from ..summaries.forms.claude_sdk import ClaudeSdkForm
from ..trims import shortened
from ..window import OnFailure, Plan, Window
from .cutting.budget_walk import reached
from .cutting.zones import Zones, stepped_back
from .measuring.context_budget import MAX_OUTPUT, ContextBudget
from .measuring.measure import Measure, Rounding, Unit
from .measuring.spoken import Sized, Spoken
from .policy import NEVER, check, refusal, setting
from .pruning.old_results import OldResults


@dataclass(frozen=True)
class PreserveZone:
    """Seed 004: fires above 80% of the limit, the answer's reserve included; keeps the newest 40%.

    The message that exceeds the zone leaves. Below the threshold old tool results are shortened,
    once that saves enough.
    """

    name: ClassVar[str] = "preserve-zone"
    alias: ClassVar[str] = "claude-sdk"
    source: ClassVar[str] = "seed 004: jack-phare/goat, Spec 09: Context & Compaction"
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "as_shipped": {
            "unit": Unit.BYTES.value,
            "keeps_newest": True,
            "steps_back": True,
            "prune_gain": 0.0,
            "shows_calls": False,
        }
    }

    threshold: float = setting(
        0.80, unit="of the limit", least=0, most=1, help="more than this part in use fires"
    )
    critical: float = setting(
        0.95, unit="of the limit", least=0, most=1, help="more than this part is called critical"
    )
    preserve_ratio: float = setting(
        0.40, unit="of the limit", least=0, most=1, help="this part of the newest is kept"
    )
    max_output_tokens: int = setting(
        MAX_OUTPUT, unit="tokens", least=0, help="kept free for the answer, and so in use"
    )
    max_summary_tokens: int = setting(
        4_096, unit="tokens", least=1, help="how large a summary may be"
    )
    prune_over: int | None = setting(
        1_000, unit="characters", least=1, help="longer results are shortened when old; none is off"
    )
    prune_to: int = setting(
        200, unit="characters", least=0, help="how much of a shortened result is shown"
    )
    preserve_recent: int = setting(
        10, unit="messages", help="the newest are never shortened; less than 0 is 0"
    )
    prune_gain: float = setting(
        0.1,
        unit="of what is in use",
        least=0,
        most=1,
        help="shortening alone waits to save this part",
    )
    unit: str = setting(
        Unit.RECKONED.value, among=Unit, help="what sizes go by: the store's reckoning, or a length"
    )
    rounding: str = setting(
        Rounding.DOWN.value, among=Rounding, help="of lengths divided by four; not of a reckoning"
    )
    message_tokens: int = setting(
        4, unit="tokens", least=0, help="each message takes besides; not in a reckoning"
    )
    keeps_newest: bool = setting(
        False, help="never plan for the newest message to leave, however large it is"
    )
    steps_back: bool = setting(
        False, help="move a cut back over tool results and one call, whatever that parts"
    )
    shows_calls: bool = setting(
        True, help="show whoever sums up the tool calls, and not what was said alone"
    )

    def __post_init__(self) -> None:
        check(self)
        if self.critical < self.threshold:
            raise refusal(self, "critical", f"is {self.critical}, below threshold")
        if self.preserve_ratio >= self.threshold > 0:
            wrong = f"is {self.preserve_ratio}, so that what is kept would fire again"
            raise refusal(self, "preserve_ratio", f"{wrong} at the threshold of {self.threshold}")
        if self.prune_over is not None and self.prune_to >= self.prune_over:
            wrong = f"is {self.prune_to}, and would shorten nothing over {self.prune_over}"
            raise refusal(self, "prune_to", wrong)

    # When

    def fires(self, window: Window) -> bool:
        """Whether there is something to do without being asked; never where no limit is known."""
        return window.limit > 0 and (
            self.should_compact(self.budget(window)) or self._pays_to_prune(window)
        )

    def lets_be(self, limit: int) -> int | None:
        """The most tokens in use that do not fire; None where texts are measured or shortened."""
        if self.unit != Unit.RECKONED or self.prune_over is not None:
            return None
        if limit <= 0:
            return NEVER
        # In one step of the float next to the threshold, whichever way that was rounded.
        most = int(self.threshold * limit) - self.max_output_tokens
        while self.should_compact(ContextBudget(limit, 0, most, self.max_output_tokens)):
            most -= 1
        while not self.should_compact(ContextBudget(limit, 0, most + 1, self.max_output_tokens)):
            most += 1
        return most

    def budget(self, window: Window) -> ContextBudget:
        """What is in use; a reckoning has the system prompt among the messages."""
        return self._budget(window, self._sizes(window))

    def should_compact(self, budget: ContextBudget) -> bool:
        return budget.utilisation > self.threshold

    def must_compact(self, budget: ContextBudget) -> bool:
        return budget.utilisation > self.critical

    def text_size(self, items: Sequence[Item]) -> int:
        """Tokens of what one message says, without what each takes besides."""
        if self._spoken is None:
            return sum(item.tokens for item in items)
        return self._spoken.text(item.block for item in items)

    # Where

    def plan(self, window: Window) -> Plan | None:
        sizes = self._sizes(window)
        budget = self._budget(window, sizes)
        if window.trigger is Trigger.THRESHOLD and not (
            window.limit > 0 and self.should_compact(budget)
        ):
            if window.limit <= 0 or not self._pays_to_prune(window):
                return None
            return self._pruning(window, self._effective(window))
        items, split = window.open_to_cut, self._split(window, sizes)
        if split:
            return Plan(
                cut=items[split].position if split < len(items) else items[-1].position + 1,
                reason=self._reason(window, budget),
                summary_tokens=self.max_summary_tokens,
                form=self._form,
                on_failure=OnFailure.NOTICE,
            )
        if trims := self._effective(window):
            return self._pruning(window, trims)
        raise NothingToCompactError(
            f"nothing to compact: {window.tokens:,} tokens in view, and what may leave fits into "
            f"the {self.preserve_budget(window.limit):,} that preserve_ratio keeps; "
            f"max_output_tokens holds {self.max_output_tokens:,} of {window.limit:,} besides"
        )

    def preserve_budget(self, limit: int) -> int:
        """Tokens of the zone that is kept."""
        return int(limit * self.preserve_ratio)

    def split(self, window: Window) -> int:
        """Index of the first item to keep, by the document's walk; 0 where all fits the zone."""
        return self._split(window, self._sizes(window))

    def zones(self, window: Window) -> Zones:
        """What leaves and what is kept by the raw plan, before anything is repaired."""
        items, split = window.open_to_cut, self.split(window)
        if self.keeps_newest and split >= len(items):
            split = 0
        return Zones(items[:split], items[split:])

    def trims(self, window: Window) -> tuple[Trim, ...]:
        """Old tool results, shortened by rule."""
        if self.prune_over is None:
            return ()
        return self._old_results.trims(window.items)

    def _split(self, window: Window, sizes: Sequence[Sized] | None) -> int:
        items = window.open_to_cut
        exceeding = self._exceeding(window, sizes)
        if exceeding is None:
            return 0
        split = message_end(items, exceeding)
        if self.keeps_newest and split >= len(items):
            # Of one message alone nothing may leave: the floor below the second stays its end.
            split = max(message_start(items, len(items) - 1), message_end(items, 0))
        return stepped_back(items, split) if self.steps_back else split

    def _exceeding(self, window: Window, sizes: Sequence[Sized] | None) -> int | None:
        """The newest item from which on the zone is exceeded; None where all fits."""
        zone = self.preserve_budget(window.limit)
        if sizes is None:
            return reached(window.running, zone, inclusive=False)
        carried = len(window.items) - len(window.open_to_cut)
        for message in reversed(sizes):
            if message.start < carried:
                break
            zone -= message.tokens
            if zone < 0:
                return message.start - carried
        return None

    def _sizes(self, window: Window) -> list[Sized] | None:
        """All messages by length; None where the store's reckoning is gone by."""
        return None if self._spoken is None else self._spoken.sizes(window.items)

    def _budget(self, window: Window, sizes: Sequence[Sized] | None) -> ContextBudget:
        if sizes is None or self._spoken is None:
            return ContextBudget(window.limit, 0, window.used, self.max_output_tokens)
        system, total = self._spoken.measure.tokens(window.system), 0
        if window.summary is not None:  # a message as any other
            total = self._spoken.measure.tokens(window.summary.text) + self.message_tokens
        total += sum(message.tokens for message in sizes)
        return ContextBudget(window.limit, system, total, self.max_output_tokens)

    def _pays_to_prune(self, window: Window) -> bool:
        """Whether trims of results that still show whole save enough together."""
        saved = self._saved(window)
        return saved > 0 and saved >= self.prune_gain * window.used

    def _saved(self, window: Window) -> int:
        """Tokens that trims would save; each old result is looked at once in a view that grows."""
        if self.prune_over is None:
            return 0
        items, old = window.items, self._old_results
        known: tuple[int, int] = window.worked_out.get(self, (0, 0))
        upto, (seen, saved) = old.recent_from(items), known
        if seen > upto:
            seen = saved = 0
        saved += sum(lengths.saved for lengths in shortened(window, old.cuts(items[seen:upto])))
        window.worked_out[self] = upto, saved
        return saved

    def _effective(self, window: Window) -> tuple[Trim, ...]:
        """Trims of the results that still show whole."""
        if self.prune_over is None:
            return ()
        old = self._old_results
        cuts = old.cuts(window.items[: old.recent_from(window.items)])
        return tuple(
            [Trim(position=one.item.position, head=one.head) for one in shortened(window, cuts)]
        )

    def _pruning(self, window: Window, trims: tuple[Trim, ...]) -> Plan:
        reason = (
            f"{window.trigger}: {len(trims):,} old tool results are longer than "
            f"{self.prune_over:,} characters"
        )
        return Plan(cut=None, reason=reason, summary_tokens=0, trims=trims)

    def _reason(self, window: Window, budget: ContextBudget) -> str:
        filled = f"{budget.utilisation:.0%} full" if window.limit > 0 else f"{budget.used:,} in use"
        critical = ", which is critical" if self.must_compact(budget) else ""
        zone = self.preserve_budget(window.limit)
        return f"{window.trigger}: {filled}{critical}; the newest {zone:,} tokens are kept"

    @cached_property
    def _spoken(self) -> Spoken | None:
        """The document's simple estimator; None where the store's reckoning is gone by."""
        unit = Unit(self.unit)
        if unit is Unit.RECKONED:
            return None
        return Spoken(Measure(unit, Rounding(self.rounding)), self.message_tokens)

    @cached_property
    def _old_results(self) -> OldResults:
        unit = Unit.CODE_POINTS if self.unit == Unit.RECKONED else Unit(self.unit)
        measure = Measure(unit, Rounding(self.rounding))
        return OldResults(self.prune_over or 0, self.prune_to, self.preserve_recent, measure)

    @cached_property
    def _form(self) -> ClaudeSdkForm:
        return ClaudeSdkForm(shows_calls=self.shows_calls)
