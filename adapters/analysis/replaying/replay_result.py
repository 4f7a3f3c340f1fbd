"""What a replay came to, call by call, without the views."""

from collections import Counter
from dataclasses import dataclass

from ....domain.compaction_events import CompactBoundary
from ....domain.context_limit import LimitSource
from ....domain.ranges import Ranges
from ....projections.replay.departed_blocks import DepartedBlocks
from ....projections.replay.recording import Recording, RecordingCalibration
from ....projections.replay.replayed_call import FutileCompaction, ReplayCompaction, ReplayedCall


@dataclass(frozen=True, slots=True)
class ReplayCallResult:
    """One call of the recorded model, and what was decided right before it."""

    call: int
    """From 1 on."""
    last_seen_position: int
    """The newest position that it could be sent."""
    tokens: int
    """Of the prompt; 0 of what was no call of a model, or failed before one read it."""
    unchanged_tokens: int
    """Of these, tokens at the beginning that the prompt before had as well."""
    compactions: tuple[ReplayCompaction, ...] = ()
    left_ranges: tuple[Ranges, ...] = ()
    """The blocks that left with each of these."""
    futile: tuple[FutileCompaction, ...] = ()
    is_refused: bool = False
    """Whether the prompt is larger than the limit, whatever was compacted."""


class CallList:
    """Takes in the calls of a replay, one by one."""

    def __init__(self, recording: Recording) -> None:
        self.calls: list[ReplayCallResult] = []
        self._calibration = recording.calibration
        self._departures = DepartedBlocks(recording)
        self._boundary: CompactBoundary | None = None

    def add(self, served: ReplayedCall) -> None:
        left = []
        for compacted in served.compactions:
            left.append(self._departures.find_departed(self._boundary, compacted.boundary))
            self._boundary = compacted.boundary
        self._boundary = served.boundary
        is_nothing = self._calibration and self._calibration.is_empty_call(served.call)
        self.calls.append(
            ReplayCallResult(
                call=served.call.number,
                last_seen_position=served.call.last_seen_position,
                tokens=0 if is_nothing else served.tokens,
                unchanged_tokens=0 if is_nothing else served.unchanged,
                compactions=served.compactions,
                left_ranges=tuple(left),
                futile=served.futile_compactions,
                is_refused=served.is_refused,
            )
        )


@dataclass(frozen=True)
class Replay:
    """One session run through under one decider."""

    session: str
    namespace: str
    policy: str
    """As it was named; of a value its name."""
    limit: int
    """Tokens that a prompt may have."""
    limit_source: LimitSource
    summarizer: str
    calls: tuple[ReplayCallResult, ...]
    lineage: str | None = None
    """Where the decisions were stored, if they were."""
    damaged: int = 0
    """Summaries of the cache that were not what had been written there, and were not used."""
    calibration: RecordingCalibration | None = None
    """What reports say of sizes; None where all tokens are estimates."""

    @property
    def compactions(self) -> tuple[ReplayCompaction, ...]:
        return tuple(one for sent in self.calls for one in sent.compactions)

    @property
    def futile_count(self) -> int:
        """How often a compaction was asked for that came to nothing."""
        return sum(len(sent.futile) for sent in self.calls)

    @property
    def refused_count(self) -> int:
        """How many prompts were larger than the limit."""
        return sum(sent.is_refused for sent in self.calls)

    @property
    def tokens(self) -> int:
        """Of all prompts."""
        return sum(sent.tokens for sent in self.calls)

    @property
    def peak_tokens(self) -> int:
        """Of the largest prompt."""
        return max((sent.tokens for sent in self.calls), default=0)

    @property
    def unchanged_tokens(self) -> int:
        """Of all prompts, what stood at the beginning of the prompt before as well."""
        return sum(sent.unchanged_tokens for sent in self.calls)

    @property
    def summarizer_counts(self) -> dict[str, int]:
        """Who wrote how many of the summaries, by name."""
        return dict(Counter(one.summary.summariser for one in self.compactions if one.summary))

    @property
    def fallback_count(self) -> int:
        """Summaries that others wrote because those who were asked could not."""
        return sum(bool(one.refused_drafts) for one in self.compactions)
