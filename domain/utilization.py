"""How full a model's context is: the share in use, its level, and the colour of a status meter."""

from dataclasses import dataclass
from enum import StrEnum


class UsageLevel(StrEnum):
    """What a share in use calls for, as a policy has it."""

    NORMAL = "Normal"
    WARNING = "Warning"
    """Those who watch are told."""
    ALERT = "Alert"
    """Something has to leave."""
    CRITICAL = "Critical"
    """More has to leave."""


class Color(StrEnum):
    """What a status meter shows."""

    GREEN = "green"
    YELLOW = "yellow"
    ORANGE = "orange"
    RED = "red"


_COLORS = ((0.85, Color.RED), (0.75, Color.ORANGE), (0.50, Color.YELLOW))
"""From which share on a colour is shown; below all of them it is green."""


def find_color(share: float) -> Color:
    """The colour of a share in use."""
    return next((colour for begins, colour in _COLORS if share >= begins), Color.GREEN)


@dataclass(frozen=True, slots=True)
class Utilization:
    """What of a context is in use."""

    tokens: int
    limit: int
    level: UsageLevel

    @property
    def share(self) -> float:
        """The part of the context in use; 0 where no limit is known."""
        return self.tokens / self.limit if self.limit > 0 else 0.0

    @property
    def color(self) -> Color:
        return find_color(self.share)

    @property
    def needs_pruning(self) -> bool:
        """Whether something has to leave."""
        return self.level in {UsageLevel.ALERT, UsageLevel.CRITICAL}


@dataclass(frozen=True, slots=True)
class LevelMarks:
    """The shares at which levels begin."""

    warning: float
    alert: float
    critical: float
    is_past: bool = False
    """Whether warning and alert begin only past their share, and not at it."""

    def measure(self, tokens: int, limit: int) -> Utilization:
        """So many tokens of a limit, with their level; without a limit everything is normal."""
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
    """What a pruning took out."""

    before: Utilization
    after: Utilization
    messages: int
    """How many left."""

    @property
    def tokens(self) -> int:
        """How many were freed."""
        return max(0, self.before.tokens - self.after.tokens)
