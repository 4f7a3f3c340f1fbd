"""How full a model's context is: the share in use, its level, and the colour of a status meter."""

from dataclasses import dataclass
from enum import StrEnum


class Level(StrEnum):
    """What a share in use calls for, as a policy has it."""

    NORMAL = "Normal"
    WARNING = "Warning"
    """Those who watch are told."""
    ALERT = "Alert"
    """Something has to leave."""
    CRITICAL = "Critical"
    """More has to leave."""


class Colour(StrEnum):
    """What a status meter shows."""

    GREEN = "green"
    YELLOW = "yellow"
    ORANGE = "orange"
    RED = "red"


COLOURS = ((0.85, Colour.RED), (0.75, Colour.ORANGE), (0.50, Colour.YELLOW))
"""From which share on a colour is shown; below all of them it is green."""


def colour_of(share: float) -> Colour:
    """The colour of a share in use."""
    return next((colour for begins, colour in COLOURS if share >= begins), Colour.GREEN)


@dataclass(frozen=True, slots=True)
class Utilisation:
    """What of a context is in use."""

    tokens: int
    limit: int
    level: Level

    @property
    def share(self) -> float:
        """The part of the context in use; 0 where no limit is known."""
        return self.tokens / self.limit if self.limit > 0 else 0.0

    @property
    def colour(self) -> Colour:
        return colour_of(self.share)

    @property
    def calls_for_less(self) -> bool:
        """Whether something has to leave."""
        return self.level in {Level.ALERT, Level.CRITICAL}


@dataclass(frozen=True, slots=True)
class Marks:
    """The shares at which levels begin."""

    warning: float
    alert: float
    critical: float
    is_past: bool = False
    """Whether warning and alert begin only past their share, and not at it."""

    def of(self, tokens: int, limit: int) -> Utilisation:
        """So many tokens of a limit, with their level; without a limit everything is normal."""
        share = tokens / limit if limit > 0 else 0.0
        level = Level.NORMAL
        if limit > 0 and share >= self.critical:
            level = Level.CRITICAL
        elif self._is_at(share, self.alert):
            level = Level.ALERT
        elif self._is_at(share, self.warning):
            level = Level.WARNING
        return Utilisation(tokens, limit, level)

    def _is_at(self, share: float, mark: float) -> bool:
        return share > mark if self.is_past else share >= mark


@dataclass(frozen=True, slots=True)
class Pruned:
    """What a pruning took out."""

    before: Utilisation
    after: Utilisation
    messages: int
    """How many left."""

    @property
    def tokens(self) -> int:
        """How many were freed."""
        return max(0, self.before.tokens - self.after.tokens)
