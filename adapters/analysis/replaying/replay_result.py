"""Defines the result of a replay, call by call, without the views."""

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
    """One call of the recorded model, and the decisions right before it."""

    call: int
    """The number, from 1 on."""
    last_seen_position: int
    """The newest position that it could see."""
    tokens: int
    """Tokens of the prompt; 0 if it was no model call, or failed before a model read it."""
    unchanged_tokens: int
    """Tokens at the start of the prompt that the prompt before also had."""
    compactions: tuple[ReplayCompaction, ...] = ()
    left_ranges: tuple[Ranges, ...] = ()
    """The blocks that each of these compactions removed."""
    futile: tuple[FutileCompaction, ...] = ()
    is_refused: bool = False
    """Whether the prompt exceeds the limit even after compaction."""


class CallList:
    """The calls of a replay, collected one by one."""

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
    """One session, replayed under one decider."""

    session: str
    namespace: str
    policy: str
    """The name as given; for a policy value, its name."""
    limit: int
    limit_source: LimitSource
    summarizer: str
    calls: tuple[ReplayCallResult, ...]
    lineage: str | None = None
    """The lineage where the decisions were stored, if they were."""
    damaged: int = 0
    """Cached summaries that were damaged, and not used."""
    calibration: RecordingCalibration | None = None
    """Corrections from reported sizes; None if all tokens are estimates."""

    @property
    def compactions(self) -> tuple[ReplayCompaction, ...]:
        return tuple(one for sent in self.calls for one in sent.compactions)

    @property
    def futile_count(self) -> int:
        """The number of attempted compactions that removed nothing."""
        return sum(len(sent.futile) for sent in self.calls)

    @property
    def refused_count(self) -> int:
        """The number of prompts that exceeded the limit."""
        return sum(sent.is_refused for sent in self.calls)

    @property
    def tokens(self) -> int:
        """The tokens of all prompts."""
        return sum(sent.tokens for sent in self.calls)

    @property
    def peak_tokens(self) -> int:
        """The tokens of the largest prompt."""
        return max((sent.tokens for sent in self.calls), default=0)

    @property
    def unchanged_tokens(self) -> int:
        """The tokens of all prompts that the prompt before had at its start as well."""
        return sum(sent.unchanged_tokens for sent in self.calls)

    @property
    def summarizer_counts(self) -> dict[str, int]:
        """The number of summaries by summarizer name."""
        return dict(Counter(one.summary.summariser for one in self.compactions if one.summary))

    @property
    def fallback_count(self) -> int:
        """The number of summaries that a fallback wrote."""
        return sum(bool(one.refused_drafts) for one in self.compactions)
