"""Defines the request for a compaction."""

from dataclasses import dataclass

from ....domain.compaction_terms import CompactionTerms
from .summary_chain import SummaryChain


@dataclass(frozen=True)
class CompactionRequest(CompactionTerms):
    """One compaction: its terms, its summarizers, and its worker."""

    idempotency_key: str | None = None
    chain: SummaryChain = SummaryChain()
    usage: int | None = None
    """The tokens in use if a provider has just reported them; else the last call's usage counts."""
    by: str | None = None
    """The worker that runs it under a lease: it begins only if no other worker holds the session,
    and records nothing once another has taken over.
    """
    lease_s: float | None = None
    """How long the lease lasts, in seconds; None lasts as long as the chain's time limits."""
    cache_is_cold: bool = False
    """Whether the provider's cache has expired, so that a compaction breaks no cache."""
    found_at: int | None = None
    """The lineage's version when found due; a decision since then cancels the compaction."""
    activate: bool = True
    """False prepares a boundary for a later activation."""
