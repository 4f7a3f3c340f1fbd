"""What is asked for when a session is to be compacted."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from ...domain.compaction_events import Trigger
from ...domain.models import ModelFacts
from ...domain.pins import NO_PINS, PinRules
from ...domain.policies.policy import Policy
from .summary_chain import SummaryChain

DEFAULT_LIMIT = 200_000
"""Tokens of context where nobody says how much the model holds."""


@dataclass(frozen=True)
class Order:
    """One compaction: who decides, who writes, and for whom."""

    policy: Policy
    limit: int = DEFAULT_LIMIT
    """Tokens that the model's context holds."""
    trigger: Trigger = Trigger.MANUAL
    instructions: str | None = None
    """What the summary should care about."""
    tracked_files: Callable[[], Iterable[str]] | None = None
    """Says which files the agent's program knows to have been read, whoever read them."""
    idempotency_key: str | None = None
    """A repeated key answers with the first boundary."""
    chain: SummaryChain = SummaryChain()
    pins: PinRules = NO_PINS
    minimum_gain: float = 0.0
    """The part of the view that has to go, or nothing is recorded."""
    prices: ModelFacts | None = None
    """What the agent's model costs, where anybody asks."""
    summary_prices: ModelFacts | None = None
    """What the model costs that writes summaries; None where none does."""
    expected_calls: int = 20
    """Calls still to come, over which a compaction has to pay for itself."""
    must_pay: bool = False
    """Whether a compaction that nobody asked for has to pay for itself by price."""
    usage: int | None = None
    """Tokens in use, where a provider has just said so; else as it reported of the last call."""
    by: str | None = None
    """The worker that carries it out under a lease: it begins only where nobody else is at it, and
    records nothing once somebody else has taken over."""
    lease_s: float | None = None
    """For how long others need not begin; None is as long as the chain's patience lasts."""
    cache_is_cold: bool = False
    """Whether the provider has forgotten the view: then a compaction breaks no cache."""
    found_at: int | None = None
    """The lineage's version when a worker found the session due; it begins only where nothing was
    decided, begun or given up since."""
    activate: bool = True
    """False prepares a boundary, to be served by a later activation."""
