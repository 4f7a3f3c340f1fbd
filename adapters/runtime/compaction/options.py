"""Defines the options of one compaction, and of an agent's loop."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ....domain.compaction import MAIN_LINEAGE
from ....domain.compaction_events import Trigger
from ....domain.compaction_terms import REGROWTH_SHARE
from ....domain.errors import InvalidSettingError
from ....domain.pins import PinRules
from ....domain.policies.policy import Policy
from ....domain.summaries.summarizer import Summarizer
from .cancellation import Cancellation
from .summary_chain import SummaryChain


@dataclass(frozen=True, kw_only=True)
class CompactionOptions:
    """What one compaction does differently from the settings; None leaves it to them."""

    settings: Mapping[str, Any] | None = None
    """Fields of the policy, by name."""
    lineage: str = MAIN_LINEAGE
    trigger: Trigger = Trigger.MANUAL
    instructions: str | None = None
    """What the summary should care about."""
    tracked_files: Callable[[], Iterable[str]] | None = None
    """Returns the files that the agent's program knows to have been read."""
    summarizers: Sequence[Summarizer] | None = None
    """Tried in order, before the extractive one."""
    chain: SummaryChain | None = None
    """Summarizers with their time limits and retries, in place of `summarizers`."""
    pins: PinRules | None = None
    idempotency_key: str | None = None
    """A second compaction with the same key returns the first one's boundary."""
    activate: bool = True
    """False prepares the boundary for a later `activate()`."""
    dry_run: bool = False
    """Record nothing, and ask no model."""
    cancellation: Cancellation | None = None


@dataclass(frozen=True, kw_only=True)
class LoopOptions:
    """What an agent's loop does differently from the settings; None leaves it to them."""

    settings: Mapping[str, Any] | None = None
    """Fields of the policy, by name."""
    lineage: str = MAIN_LINEAGE
    instructions: str | None = None
    """What summaries should care about."""
    tracked_files: Callable[[], Iterable[str]] | None = None
    """Returns the files that the agent's program knows to have been read."""
    summarizers: Sequence[Summarizer] | None = None
    """Tried in order, before the extractive one."""
    pins: PinRules | None = None
    auto: bool | None = None
    """Whether `prepare()` asks the policy before each call."""
    once_a_turn: bool | None = None
    """Whether one compaction by threshold serves all calls of a turn."""
    regrowth: float = REGROWTH_SHARE
    """The part of the limit by which a session has to grow before a compaction that gained nothing
    is tried again."""
    prepare_at: float | None = None
    """The part of the policy's threshold from which a thread writes the next summary ahead; 0 never
    does."""
    shadows: Sequence[str | Policy] | None = None
    """Policies that decide next to this one, each on its lineage `shadow:NAME`, and are never
    served."""

    def __post_init__(self) -> None:
        if self.prepare_at is not None and not 0 <= self.prepare_at <= 1:
            raise InvalidSettingError(
                f"prepare_at cannot be {self.prepare_at}; give a part of the policy's threshold, "
                "above 0 and up to 1, or 0 for never"
            )


@dataclass(frozen=True)
class LoopHabits:
    """When a loop compacts by itself: its options with the settings filled in."""

    auto: bool = True
    once_a_turn: bool = False
    regrowth: float = REGROWTH_SHARE
    prepare_at: float | None = None
    """None never writes a summary ahead."""
