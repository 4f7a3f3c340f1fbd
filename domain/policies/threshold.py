"""Whether a policy would compact of its own accord, and from how many tokens in use on."""

from dataclasses import dataclass, replace

from ..compaction_events import Trigger
from ..errors import NothingToCompactError
from ..window import Window
from .policy import Policy, is_due


@dataclass(frozen=True, slots=True)
class ThresholdState:
    """How a policy finds a session, if nobody asks for a compaction."""

    fires: bool
    used_tokens: int
    """Tokens in use, by the window's own account."""
    limit: int
    threshold: int | None
    """The fewest tokens in use at which it fires; None where it goes by something else."""


def measure_threshold(policy: Policy, window: Window) -> ThresholdState:
    """How the policy finds the window, whatever set off the compaction that it was made for."""
    unasked = replace(window, trigger=Trigger.THRESHOLD)
    return ThresholdState(
        fires=_fires(policy, unasked),
        used_tokens=window.used_tokens,
        limit=window.limit,
        threshold=find_threshold(policy, window),
    )


def find_threshold(policy: Policy, window: Window) -> int | None:
    """The fewest tokens in use at which the policy fires, the window being what it is otherwise.

    None where that makes no difference to it, as where it measures the blocks itself, and where it
    has no `fires`.
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
        return True  # it would, if only it could
