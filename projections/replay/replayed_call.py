"""Defines the results of a replay: each call of the recorded model, and the decisions before it."""

from collections.abc import Callable
from dataclasses import dataclass, field

from ...domain.compaction_events import CompactBoundary, Repair, Summary, Trigger
from ..history_view import HistoryView
from .recording import RecordedCall


@dataclass(frozen=True, slots=True)
class ReplayCompaction:
    """A boundary that was recorded before a call."""

    boundary: CompactBoundary
    summary: Summary | None
    unchanged: int
    """Tokens at the beginning of the prompt that are unchanged."""
    summary_input_tokens: int = 0
    """Tokens of a model's input to write the summary; 0 if rules wrote it."""
    orphaned_calls: tuple[str, ...] = ()
    """Ids of calls that the policy's unrepaired plan would have separated from their results."""
    refused_drafts: tuple[str, ...] = ()
    """Drafts that were rejected, and why: one line each."""

    @property
    def repairs(self) -> tuple[Repair, ...]:
        return self.boundary.repairs


@dataclass(frozen=True, slots=True)
class FutileCompaction:
    """A compaction that removed nothing; the view was sent unchanged."""

    trigger: Trigger
    reason: str


@dataclass(frozen=True, slots=True)
class ReplayedCall:
    """One call, as it would have been served."""

    call: RecordedCall
    tokens: int
    """Tokens of the whole prompt."""
    unchanged: int
    """Tokens at its beginning that the prompt before had too, so that a cache may hold them."""
    compactions: tuple[ReplayCompaction, ...]
    """The compactions right before it, in order."""
    futile_compactions: tuple[FutileCompaction, ...]
    boundary: CompactBoundary | None
    """The boundary at which the view begins."""
    summary: Summary | None
    is_refused: bool
    """Whether the prompt is too large for the model after all compaction."""
    make_view: Callable[[], HistoryView] = field(compare=False, repr=False)
    """Returns what the model would have been sent; call it before the replay goes on."""
