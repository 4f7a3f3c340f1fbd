"""From 80% full on, remove the messages of the least worth until 70% are left; sum up nothing."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property
from typing import Any, ClassVar

from ..blocks import Kind
from ..compaction_events import Trigger
from ..context_limit import LevelMarks, PruningResult, UsageLevel, Utilization
from ..counting.estimators import QBIT_ESTIMATOR, Estimator, SizeUnit, configure_estimator
from ..errors import NothingToCompactError
from ..item import Item
from ..messages import group_messages
from ..ranges import Ranges
from ..settings import setting
from ..token_estimate import estimate_text
from ..window import Plan, Window
from .policy import check_settings, quirk, token_setting
from .weighed_messages import ProtectionUnit, PruningChoice, WeighedMessages, choose_leaving

_MARGIN_SHARE = 0.10
"""How far below the threshold the warning begins, and pruning ends."""
_MIN_WARNING_SHARE = 0.50
_CRITICAL_TARGET_SHARE = 0.8
"""The share of the target at the critical level."""


class ResultText(StrEnum):
    """Which form of a tool result is counted."""

    PLAIN = "plain"
    """Its text."""
    DEBUG = "debug"
    """Its text in Rust's debug format: wrapped in its types, quoted and escaped."""


@dataclass(frozen=True)
class ScoredPruning:
    """Follows qbit-ai/qbit: messages with the lowest scores leave, without a summary.

    The newest turns stay. No count includes the system prompt.
    """

    name: ClassVar[str] = "scored-pruning"
    alias: ClassVar[str] = "qbit"
    source: ClassVar[str] = "qbit-ai/qbit, docs/context-compaction.md"
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "as_shipped": {
            "cooldown_seconds": 0.0,
            "critical_threshold": 1.0,
            "levels_at": ">",
            "protects": "messages",
            "choice": "keep-highest",
            "pairs_leave_together": False,
            "looks_leave_first": False,
            "unit": "bytes",
            "result_text": "debug",
        }
    }

    enabled: bool = setting(True, help="whether anything is pruned at all")
    compaction_threshold: float = setting(
        0.80, unit="of the limit", least=0.05, most=1, help="in use from which on it prunes"
    )
    protected_turns: int = setting(2, least=0, help="newest turns, or messages, that always stay")
    cooldown_seconds: float = setting(
        60.0, unit="seconds", least=0, help="between two prunings by threshold; 0 is none"
    )
    reserved_system_tokens: int = token_setting(
        4_000, help="kept free of what pruning aims for: the system prompt"
    )
    reserved_response_tokens: int = token_setting(
        8_192, help="kept free of what pruning aims for: the next answer"
    )

    # What the presets change.
    critical_threshold: float = quirk(0.9)
    levels_at: str = quirk(">=")
    protects: str = quirk(ProtectionUnit.TURNS)
    choice: str = quirk(PruningChoice.REMOVE_LOWEST)
    pairs_leave_together: bool = quirk(True)
    looks_leave_first: bool = quirk(True)
    unit: str = quirk(SizeUnit.RECKONED)
    result_text: str = quirk(ResultText.PLAIN)

    def __post_init__(self) -> None:
        check_settings(self)

    # When

    @property
    def level_marks(self) -> LevelMarks:
        """Where the levels begin; critical begins at its share, whatever `levels_at` says."""
        return LevelMarks(
            # Rounded, because 0.8 - 0.1 is more than 0.7 in floating point.
            warning=max(_MIN_WARNING_SHARE, round(self.compaction_threshold - _MARGIN_SHARE, 9)),
            alert=self.compaction_threshold,
            critical=max(self.critical_threshold, self.compaction_threshold),
            is_past=self.levels_at == ">",
        )

    def fires(self, window: Window) -> bool:
        """Check whether it would prune by threshold: enabled, past its cooldown, nearly full."""
        return self._fires(window, None)

    def _fires(self, window: Window, weighed: WeighedMessages | None) -> bool:
        since = window.since_boundary_s
        rests = since is not None and since < self.cooldown_seconds
        return self.enabled and not rests and self.measure_level(window, weighed).needs_pruning

    def measure_level(self, window: Window, weighed: WeighedMessages | None = None) -> Utilization:
        """Return the tokens in use without the system prompt, and their level."""
        if self.unit == SizeUnit.RECKONED:
            system = window.convert_estimate(estimate_text(window.system_prompt))
            tokens = max(0, window.used_tokens - system)
        else:
            tokens = (weighed or self.weigh(window.items)).total
        return self.level_marks.measure(tokens, window.limit)

    def find_warning(self, window: Window) -> Utilization | None:
        """Return the utilization if it is high enough for a warning, or None."""
        level = self.measure_level(window)
        return level if self.enabled and level.level is not UsageLevel.NORMAL else None

    # What

    def plan(self, window: Window) -> Plan | None:
        """Return what leaves; there is no cut and no summary."""
        if not self.enabled:
            _refuse_if_requested(window, "scored-pruning is off (enabled = false)")
            return None
        is_asked = window.trigger is not Trigger.THRESHOLD
        if self.unit == SizeUnit.RECKONED and not (is_asked or self.fires(window)):
            return None  # decided without reading the messages
        weighed = self.weigh(window.items)
        if not (is_asked or self._fires(window, weighed)):
            return None
        level = self.measure_level(window, weighed)
        target = self.compute_target(level)
        if window.trigger is Trigger.OVERFLOW:
            # The real limit is unknown, but the whole view exceeds it.
            target = min(target, level.tokens - 1)
        if level.tokens <= target or not weighed.messages:
            _refuse_if_requested(
                window, f"{level.tokens:,} tokens are in use, and {target:,} may stay"
            )
            return None
        stays = self.choose_staying(weighed, level.tokens, target)
        gone = [m for index, m in enumerate(weighed.messages) if index not in stays]
        drops = Ranges.of(item.position for message in gone for item in message.items)
        reason = self._write_reason(window.trigger, level, target)
        if not drops:
            newest = f"protected_turns is {self.protected_turns}"
            reason += f"; but all blocks are new, pinned or open, and stay ({newest})"
        return Plan(cut=None, reason=reason, summary_tokens=0, drops=drops)

    def weigh(self, items: Iterable[Item]) -> WeighedMessages:
        messages, estimator = group_messages(tuple(items)), self._estimator
        if estimator is None:
            return WeighedMessages(messages, [sum([i.tokens for i in m.items]) for m in messages])
        count = estimator.count_message
        return WeighedMessages(messages, [count([i.block for i in m.items]) for m in messages])

    @cached_property
    def _estimator(self) -> Estimator | None:
        """The estimate of messages; None if the store's counts apply."""
        estimator = QBIT_ESTIMATOR
        if self.result_text == ResultText.PLAIN:
            media = {Kind.TOOL_RESULT: len("[image]")}
            estimator = replace(estimator, shows_debug=False, media=media)
        return configure_estimator(estimator, self.unit)

    def count_available_tokens(self, limit: int) -> int:
        """Return the tokens that the reserves leave of a limit."""
        return max(0, limit - self.reserved_system_tokens - self.reserved_response_tokens)

    def compute_target(self, level: Utilization) -> int:
        """Return the tokens that may stay; fewer at the critical level."""
        aimed = self.compaction_threshold - _MARGIN_SHARE
        if level.level is UsageLevel.CRITICAL:
            aimed *= _CRITICAL_TARGET_SHARE
        return max(0, int(self.count_available_tokens(level.limit) * aimed))

    def choose_staying(self, weighed: WeighedMessages, in_use: int, target: int) -> frozenset[int]:
        """Return the indices of the messages that stay to reduce `in_use` tokens to the target."""
        everything = frozenset(range(len(weighed.messages)))
        if in_use <= target:
            return everything
        untouched = weighed.find_untouchable(self.protected_turns, ProtectionUnit(self.protects))
        ranked = weighed.rank(
            untouched, together=self.pairs_leave_together, looks_first=self.looks_leave_first
        )
        spent = in_use - sum(one.tokens for one in ranked)
        return everything - choose_leaving(ranked, PruningChoice(self.choice), target - spent)

    def describe_pruning(self, window: Window, gone: Iterable[Item]) -> PruningResult:
        left, before = self.weigh(gone), self.measure_level(window)
        after = self.level_marks.measure(max(0, before.tokens - left.total), window.limit)
        return PruningResult(before, after, messages=len(left.messages))

    def _write_reason(self, trigger: Trigger, level: Utilization, target: int) -> str:
        reason = f"{trigger}: {level.tokens:,} tokens in use"
        if level.limit > 0:
            reason += f", {level.share:.1%} of {level.limit:,} ({level.level})"
        reason += f"; the least valuable blocks leave until {target:,} are left"
        if not self.count_available_tokens(level.limit):
            reason += (
                ", because reserved_system_tokens and reserved_response_tokens take the whole limit"
            )
        return reason


def _refuse_if_requested(window: Window, why: str) -> None:
    """Raise NothingToCompactError if a user waits, who has to learn that nothing was done."""
    if not window.trigger.is_automatic:
        raise NothingToCompactError(f"nothing to prune: {why}")
