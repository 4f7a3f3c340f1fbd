"""Measures how full a context is: the share in use, its level, and a status meter's color."""

from dataclasses import dataclass
from enum import StrEnum


class UsageLevel(StrEnum):
    """What a policy does at a share in use."""

    NORMAL = "Normal"
    WARNING = "Warning"
    """Listeners are warned."""
    ALERT = "Alert"
    """Something has to leave."""
    CRITICAL = "Critical"
    """More has to leave."""


class Color(StrEnum):
    GREEN = "green"
    YELLOW = "yellow"
    ORANGE = "orange"
    RED = "red"


_COLORS = ((0.85, Color.RED), (0.75, Color.ORANGE), (0.50, Color.YELLOW))
"""The share from which each color is shown; below all of them it is green."""


def find_color(share: float) -> Color:
    return next((colour for begins, colour in _COLORS if share >= begins), Color.GREEN)


@dataclass(frozen=True, slots=True)
class Utilization:
    """How much of a context is in use."""

    tokens: int
    limit: int
    level: UsageLevel

    @property
    def share(self) -> float:
        """The share of the context in use; 0 if no limit is known."""
        return self.tokens / self.limit if self.limit > 0 else 0.0

    @property
    def color(self) -> Color:
        return find_color(self.share)

    @property
    def needs_pruning(self) -> bool:
        return self.level in {UsageLevel.ALERT, UsageLevel.CRITICAL}


@dataclass(frozen=True, slots=True)
class LevelMarks:
    """The shares at which levels begin."""

    warning: float
    alert: float
    critical: float
    is_past: bool = False
    """Whether warning and alert begin above their share rather than at it."""

    def measure(self, tokens: int, limit: int) -> Utilization:
        """Return the utilization with its level; without a limit the level is always normal."""
        share = tokens / limit if limit > 0 else 0.0
        level = UsageLevel.NORMAL
        if limit > 0 and share >= self.critical:
            level = UsageLevel.CRITICAL
        elif self._is_reached(share, self.alert):
            level = UsageLevel.ALERT
        elif self._is_reached(share, self.warning):
            level = UsageLevel.WARNING
        return Utilization(tokens, limit, level)

    def _is_reached(self, share: float, mark: float) -> bool:
        return share > mark if self.is_past else share >= mark


@dataclass(frozen=True, slots=True)
class PruningResult:
    """What a pruning removed."""

    before: Utilization
    after: Utilization
    messages: int

    @property
    def tokens(self) -> int:
        return max(0, self.before.tokens - self.after.tokens)
