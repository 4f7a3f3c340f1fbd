"""What is asked for when a session is to be compacted."""

from dataclasses import dataclass

from ....domain.compaction_terms import CompactionTerms
from .summary_chain import SummaryChain


@dataclass(frozen=True)
class CompactionRequest(CompactionTerms):
    """One compaction: on which terms, who writes, and for whom."""

    idempotency_key: str | None = None
    """A repeated key answers with the first boundary."""
    chain: SummaryChain = SummaryChain()
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
