"""Resolves how many tokens a prompt of a session may have, and where that number comes from."""

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
