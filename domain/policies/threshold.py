"""Finds whether a policy would compact unprompted, and from how many tokens in use."""

from dataclasses import dataclass, replace

from ..compaction_events import Trigger
from ..errors import NothingToCompactError
from ..window import Window
from .policy import Policy, is_due


@dataclass(frozen=True, slots=True)
class ThresholdState:
    """The state of a session for a policy, without a request to compact."""

    fires: bool
    used_tokens: int
    """Tokens in use, by the window's own count."""
    limit: int
    threshold: int | None
    """The fewest tokens in use at which it fires; None if something else decides."""


def measure_threshold(policy: Policy, window: Window) -> ThresholdState:
    """Return the policy's state for the window, whatever trigger the window has."""
    unasked = replace(window, trigger=Trigger.THRESHOLD)
    return ThresholdState(
        fires=_fires(policy, unasked),
        used_tokens=window.used_tokens,
        limit=window.limit,
        threshold=find_threshold(policy, window),
    )


def find_threshold(policy: Policy, window: Window) -> int | None:
    """Return the fewest tokens in use at which the policy fires on an otherwise equal window.

    None if tokens in use make no difference, for example because the policy measures the blocks
    itself, or if it has no `fires`.
    """
    if not hasattr(policy, "fires"):
        return None

    def fires_at(tokens: int) -> bool:
        return _fires(
            policy, replace(window, in_use=tokens, usage=tokens, trigger=Trigger.THRESHOLD)
        )

    below, reached = -1, 2 * max(window.limit, window.used_tokens, 1)
    if fires_at(0) or not fires_at(reached):
        return None
    while reached - below > 1:
        middle = (below + reached) // 2
        below, reached = (below, middle) if fires_at(middle) else (middle, reached)
    return reached


def _fires(policy: Policy, window: Window) -> bool:
    try:
        return is_due(policy, window)
    except NothingToCompactError:
        return True  # it is due, although nothing can leave
