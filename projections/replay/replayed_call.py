"""What a replay comes to: each call of the recorded model, and what was decided before it."""

from collections.abc import Callable
from dataclasses import dataclass, field

from ...domain.compaction_events import CompactBoundary, Repair, Summary, Trigger
from ..history_view import HistoryView
from .recording import RecordedCall


@dataclass(frozen=True, slots=True)
class ReplayCompaction:
    """A boundary that was drawn before a call."""

    boundary: CompactBoundary
    summary: Summary | None
    unchanged: int
    """Tokens at the beginning of the prompt that stay as they were."""
    summary_input_tokens: int = 0
    """Tokens that a model would have been given to write the summary; 0 where rules wrote it."""
    orphaned_calls: tuple[str, ...] = ()
    """Names of calls that the policy's raw plan would have parted from their results."""
    refused_drafts: tuple[str, ...] = ()
    """Drafts that were not taken, and why: one line each."""

    @property
    def repairs(self) -> tuple[Repair, ...]:
        return self.boundary.repairs


@dataclass(frozen=True, slots=True)
class FutileCompaction:
    """A compaction that was asked for and came to nothing; the view was sent as it was."""

    trigger: Trigger
    reason: str


@dataclass(frozen=True, slots=True)
class ReplayedCall:
    """One call, as it would have been served."""

    call: RecordedCall
    tokens: int
    """Of the whole prompt."""
    unchanged: int
    """Of these, tokens at the beginning that the prompt before had as well: a cache may hold
    them."""
    compactions: tuple[ReplayCompaction, ...]
    """What was drawn right before it, in order."""
    futile_compactions: tuple[FutileCompaction, ...]
    boundary: CompactBoundary | None
    """What the view begins at."""
    summary: Summary | None
    is_refused: bool
    """Whether the prompt is larger than the model holds, whatever was compacted."""
    make_view: Callable[[], HistoryView] = field(compare=False, repr=False)
    """What the model would have been sent; to be asked for before the replay goes on."""
