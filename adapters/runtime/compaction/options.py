"""Defines the options of one compaction, and of an agent's loop."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ....domain.compaction import MAIN_LINEAGE
from ....domain.compaction_events import Trigger
from ....domain.compaction_terms import REGROWTH_SHARE, CompactionTerms, PinRules
from ....domain.errors import InvalidSettingError
from ....domain.summaries.summarizer import Summarizer
from .background import Cancellation
from .summary_chain import SummaryChain


@dataclass(frozen=True, kw_only=True)
class SharedOptions:
    """How compactions differ from the settings; None keeps a setting."""

    settings: Mapping[str, Any] | None = None
    """Fields of the policy, by name."""
    lineage: str = MAIN_LINEAGE
    instructions: str | None = None
    tracked_files: Callable[[], Iterable[str]] | None = None
    summarizers: Sequence[Summarizer] | None = None
    """The summarizers to try in order, before the extractive one."""
    pins: PinRules | None = None


@dataclass(frozen=True, kw_only=True)
class CompactionOptions(SharedOptions):
    """How one compaction differs from the settings; None keeps a setting."""

    trigger: Trigger = Trigger.MANUAL
    chain: SummaryChain | None = None
    """Summarizers with time limits and retries, in place of `summarizers`."""
    idempotency_key: str | None = None
    """A second compaction with the same key returns the first one's boundary."""
    activate: bool = True
    """False prepares the boundary for a later `activate()`."""
    dry_run: bool = False
    """Record nothing, and ask no model."""
    cancellation: Cancellation | None = None


@dataclass(frozen=True, kw_only=True)
class LoopOptions(SharedOptions):
    """How a loop's compactions differ from the settings, and when it compacts by itself."""

    auto: bool | None = None
    """Whether `prepare()` consults the policy before each call."""
    once_a_turn: bool = False
    """Whether a turn allows only one compaction by threshold."""
    regrowth: float = REGROWTH_SHARE
    """How far a session must grow before a futile compaction is retried, as part of the limit."""
    prepare_at: float | None = None
    """The part of the threshold from which a thread writes the next summary; 0 is never."""

    def __post_init__(self) -> None:
        if self.prepare_at is not None and not 0 <= self.prepare_at <= 1:
            raise InvalidSettingError(
                f"prepare_at cannot be {self.prepare_at}; give a part of the policy's threshold, "
                "above 0 and up to 1, or 0 for never"
            )


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
