"""Resolves how many tokens a prompt may have, and measures how full a context is."""

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

DEFAULT_LIMIT = 200_000
"""Tokens of context if neither the caller, the log nor the model's name gives a limit."""
LARGER_WINDOW_TOKENS = 1_000_000
"""The window of a model whose name ends in `[1m]`."""


class LimitSource(StrEnum):
    """Where a limit comes from; the first source that has one decides."""

    ARGUMENT = "argument"
    SETTINGS = "settings"
    """`compaction.limit`, or the `context` of the model's own section."""
    LOG = "log"
    """The session's calls report the window, or had prompts that need a larger one."""
    MODEL = "model"
    """The limit that is known for the model's name."""
    DEFAULT = "default"
    REFUSAL = "refusal"
    """A provider refused a prompt and named the limit."""

    @property
    def phrase(self) -> str:
        """Return the words that follow the number and name its source."""
        return _PHRASES[self]


_PHRASES = {
    LimitSource.ARGUMENT: "limit as given",
    LimitSource.SETTINGS: "limit from the settings",
    LimitSource.LOG: "limit from the log",
    LimitSource.MODEL: "limit of the model",
    LimitSource.DEFAULT: "default limit",
    LimitSource.REFUSAL: "limit from the provider's refusal",
}


class ContextLimit(NamedTuple):
    """How many tokens a prompt may have, and where that number comes from."""

    tokens: int
    source: LimitSource


class LoggedContext(NamedTuple):
    """What a session's calls reveal about the window of its newest model."""

    model: str | None = None
    window: int | None = None
    """The window that a call reported."""
    largest_prompt: int = 0
    filled_at: int = 0
    """The prompt at which the session's own program compacted a full context; 0 for none."""


NOTHING_LOGGED = LoggedContext()


def is_larger_variant(model: str | None) -> bool:
    """Check whether a model's name asks for the larger window, as `claude-sonnet-4-5[1m]` does."""
    return bool(model) and model.strip().lower().endswith("[1m]")  # type: ignore[union-attr]


def find_limit_in_log(logged: LoggedContext, known: int | None, larger: int = 0) -> int | None:
    """Return the window that the log proves; None if it adds nothing to the known limit.

    Args:
        logged: What the calls reveal.
        known: The limit of the model by its name; None if the name is unknown.
        larger: The larger window that models of this family can be given; 0 for none.
    """
    if logged.window:
        return max(logged.window, logged.largest_prompt)
    if is_larger_variant(logged.model):
        return max(LARGER_WINDOW_TOKENS, logged.largest_prompt)
    if logged.largest_prompt > (known or DEFAULT_LIMIT):
        return max(logged.largest_prompt, larger)
    if larger and 0 < logged.filled_at <= DEFAULT_LIMIT < (known or 0):
        return DEFAULT_LIMIT  # full, far below the larger window
    return None


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
