"""Replays a recorded session: what each call of its model would have been sent, and why."""

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from ..domain.compaction_events import (
    BoundaryActivated,
    CompactBoundary,
    CompactionReverted,
    Repair,
    Summary,
    Trigger,
)
from ..domain.event import Event
from ..domain.fidelity.rows import ViewSegment
from ..domain.ranges import Ranges
from .block_statuses import collect_boundaries
from .history_view import HistoryView
from .recording import RecordedCall, Recording
from .replay_fold import ReplayFold


@dataclass(frozen=True, slots=True)
class ReplayCompaction:
    """A boundary that was recorded before a call."""

    boundary: CompactBoundary
    summary: Summary | None
    left: Ranges
    """The blocks that were in the view before, and are not in it any more."""
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


ReplayDecision = ReplayCompaction | FutileCompaction


@dataclass(frozen=True, slots=True)
class ReplayedCall:
    """One call of the recorded model, as it would have been served."""

    call: RecordedCall
    tokens: int
    """Tokens of the prompt; 0 if it was no model call, or failed before a model read it."""
    unchanged: int
    """Tokens at its beginning that the prompt before had too, so that a cache may hold them."""
    view_tokens: int
    """Tokens of the prompt if a model had read it."""
    compactions: tuple[ReplayCompaction, ...] = ()
    """The compactions right before it, in order."""
    futile: tuple[FutileCompaction, ...] = ()
    boundary: CompactBoundary | None = None
    """The boundary at which the view begins."""
    summary: Summary | None = None
    is_refused: bool = False
    """Whether the prompt is too large for the model after all compaction."""


class Decider(Protocol):
    """Decides on the lineage of one replay; each replay needs a new decider."""

    def decide(self, fold: ReplayFold, call: RecordedCall, /) -> list[ReplayDecision]:
        """Decide what the call is sent, make `fold` serve it, and return the decisions in order.

        `fold` has applied everything that the call could see.
        """
        ...


ReplayRun = Iterator[tuple[ReplayedCall, ReplayFold]]
"""The calls of a replay, one after another, each with the fold that has its view."""


def replay_recording(
    recording: Recording, decider: Decider, *, limit: int = 0, lineage: str = "replay"
) -> ReplayRun:
    """Yield each call in the order of the log, decided by `decider`; a limit of 0 is no limit.

    The fold, which is always the same, has the view that the call is sent until the next one is
    requested. A pure function of the log, without I/O or a clock. Raises PolicyFailedError if a
    policy raises or returns something other than a plan.
    """
    fold = ReplayFold(recording, lineage)
    calibration = recording.calibration
    for call in recording.calls:
        # A call that is recorded late saw less than the call before it, but gets the later view.
        fold.advance(call.last_seen_position)
        fold.measure_overhead(call)
        decided = decider.decide(fold, call)
        tokens = fold.tokens
        prompt = 0 if calibration and calibration.is_empty_call(call) else tokens
        served = ReplayedCall(
            call=call,
            tokens=prompt,
            unchanged=min(fold.unchanged, prompt),
            view_tokens=tokens,
            compactions=tuple(one for one in decided if isinstance(one, ReplayCompaction)),
            futile=tuple(one for one in decided if isinstance(one, FutileCompaction)),
            boundary=fold.history.boundary,
            summary=fold.history.summary,
            is_refused=0 < limit < tokens,
        )
        yield served, fold
        fold.record_sent()


# Replays without a policy


class NeverDecider:
    """Sends the whole history each time, however large it is."""

    def decide(self, _fold: ReplayFold, _call: RecordedCall) -> list[ReplayDecision]:
        return []


_Switch = BoundaryActivated | CompactionReverted


class RecordedDecider:
    """Serves each boundary of a lineage from the call on that first saw it.

    Prompts have the tokens that were reported of them. `decisions` are all events of the lineage in
    order, including inherited ones.
    """

    def __init__(self, decisions: Sequence[Event], lineage: str) -> None:
        self.lineage = lineage
        self._boundaries = collect_boundaries(decisions)
        self._switches = deque(one for one in decisions if isinstance(one, _Switch))

    def decide(self, fold: ReplayFold, call: RecordedCall) -> list[ReplayDecision]:
        decided = self._serve(fold, call)
        if call.prompt is not None:
            fold.set_reported_prompt(call.prompt)
        return decided

    def _serve(self, fold: ReplayFold, call: RecordedCall) -> list[ReplayDecision]:
        switch: _Switch | None = None
        # Of several switches between two calls, only the last was sent.
        while self._switches and call.has_seen_decision(
            self._switches[0].originator_version, self._switches[0].effective_from, self.lineage
        ):
            switch = self._switches.popleft()
        if switch is None:
            return []
        active = switch.boundary if isinstance(switch, BoundaryActivated) else switch.to or 0
        fold.boundaries = self._boundaries
        boundary, summary = self._boundaries[active] if active else (None, None)
        left = fold.find_leaving(boundary) if boundary else Ranges()
        unchanged = fold.serve(active, switch.originator_version)
        return [ReplayCompaction(boundary, summary, left, unchanged)] if boundary else []


# What a replay shows


def collect_segments(replayed: ReplayRun) -> tuple[list[ReplayedCall], tuple[ViewSegment, ...]]:
    """Return the calls of a whole replay and its views, one for each boundary.

    If a rewind has undone a boundary, a new segment begins that equals an earlier one.
    """
    calls: list[ReplayedCall] = []
    segments: list[ViewSegment] = []
    for one, fold in replayed:
        if not calls or one.boundary is not calls[-1].boundary:
            segments.append(_make_segment(one, fold.make_view()))
        calls.append(one)
    return calls, tuple(segments)


def _make_segment(served: ReplayedCall, view: HistoryView) -> ViewSegment:
    boundary, summary = served.boundary, served.summary
    if boundary is None:
        return ViewSegment(call=served.call.number, after=0, kept=Ranges())
    decided = [entry for entry in view.entries if entry.position <= boundary.after]
    return ViewSegment(
        call=served.call.number,
        after=boundary.after,
        kept=Ranges.of(entry.position for entry in decided),
        shown={entry.position: entry.shown for entry in decided if entry.shown is not None},
        summary=summary.text if summary else "",
    )
