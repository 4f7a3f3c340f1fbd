"""On which terms a session is compacted, whoever writes the summary."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from .compaction_events import Trigger
from .context_limit import DEFAULT_LIMIT, LimitSource
from .models import ModelFacts
from .pins import NO_PINS, PinRules
from .policies.policy import Policy

REGROWTH_SHARE = 0.05
"""The part of the limit by which a session has to grow before a compaction by threshold is tried
again, once it came to nothing."""

_AUTOMATIC_TRIGGERS = frozenset({Trigger.THRESHOLD, Trigger.IDLE})
"""Triggers behind which nobody waits: what gains little is not worth a broken cache."""


@dataclass(frozen=True)
class CompactionTerms:
    """Who decides, for which model, and what a compaction has to bring."""

    policy: Policy
    limit: int = DEFAULT_LIMIT
    """Tokens that the model's context holds."""
    trigger: Trigger = Trigger.MANUAL
    instructions: str | None = None
    """What the summary should care about."""
    tracked_files: Callable[[], Iterable[str]] | None = None
    """Says which files the agent's program knows to have been read, whoever read them."""
    pins: PinRules = NO_PINS
    minimum_gain: float = 0.0
    """The part of the view that has to go, or nothing is recorded."""
    prices: ModelFacts | None = None
    """What the agent's model costs, where anybody asks."""
    summary_prices: ModelFacts | None = None
    """What the model costs that writes summaries; None where none does."""
    expected_calls: int = 20
    """Calls still to come, over which a compaction has to pay for itself."""
    require_saving: bool = False
    """Whether a compaction that nobody asked for has to pay for itself by price."""
    limit_source: LimitSource = LimitSource.ARGUMENT
    """Where `limit` is from."""

    @property
    def is_automatic(self) -> bool:
        """Whether nobody waits for the compaction."""
        return self.trigger in _AUTOMATIC_TRIGGERS
