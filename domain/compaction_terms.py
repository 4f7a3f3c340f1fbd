"""Defines the terms on which a session is compacted."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from .compaction_events import Trigger
from .context_limit import DEFAULT_LIMIT, LimitSource
from .models import ModelFacts
from .pins import NO_PINS, PinRules
from .policies.policy import Policy

REGROWTH_SHARE = 0.05
"""How much a session must grow, as a share of the limit, before a failed compaction by threshold is
tried again."""
EXPECTED_CALLS = 20
"""Later calls over which a compaction has to pay for itself, unless something else is known."""


@dataclass(frozen=True)
class CompactionTerms:
    """The policy, the model, and what a compaction has to gain."""

    policy: Policy
    limit: int = DEFAULT_LIMIT
    """Tokens of the model's context."""
    trigger: Trigger = Trigger.MANUAL
    instructions: str | None = None
    """What the summary should pay attention to."""
    tracked_files: Callable[[], Iterable[str]] | None = None
    """Returns the files that the agent's program knows to have been read."""
    pins: PinRules = NO_PINS
    minimum_gain: float = 0.0
    """The share of the view that has to leave for anything to be recorded."""
    prices: ModelFacts | None = None
    """The prices of the agent's model, if the caller asks for prices."""
    summary_prices: ModelFacts | None = None
    """The prices of the model that writes summaries; None if no model does."""
    expected_calls: int = EXPECTED_CALLS
    """Later calls over which a compaction has to pay for itself."""
    require_saving: bool = False
    """Whether an automatic compaction has to pay for itself."""
    limit_source: LimitSource = LimitSource.ARGUMENT

    @property
    def is_automatic(self) -> bool:
        """Whether no user waits for it; a small gain is not worth a broken cache then."""
        return self.trigger.is_automatic
