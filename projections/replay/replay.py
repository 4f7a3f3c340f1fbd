"""Replays a recorded session: what each call of its model would have been sent, and why."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Protocol

from ...domain.blocks import UNSENT_KINDS
from ...domain.compaction_events import (
    BoundaryActivated,
    CompactBoundary,
    CompactionReverted,
    Repair,
    Summary,
    Trigger,
)
from ...domain.event import Event
from ...domain.fidelity.rows import ViewSegment
from ...domain.ranges import Ranges
from ...domain.session_events import BlockAppended, BlocksRetracted, ModelCalled
from ..history_view import HistoryView
from .recording import RecordedCall, Recording
from .replay_fold import ReplayFold


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


ReplayDecision = ReplayCompaction | FutileCompaction


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


class Decider(Protocol):
    """Decides on the lineage of one replay; each replay needs a new decider."""

    def decide(self, fold: ReplayFold, call: RecordedCall, /) -> list[ReplayDecision]:
        """Decide what the call is sent, make `fold` serve it, and return the decisions in order.

        `fold` has applied everything that the call could see.
        """
        ...


def replay_recording(
    recording: Recording, decider: Decider, *, limit: int = 0, lineage: str = "replay"
) -> Iterator[ReplayedCall]:
    """Yield each call in the order of the log, decided by `decider`; a limit of 0 is no limit.

    A pure function of the log, without I/O or a clock. Raises PolicyFailedError if a policy raises
    or returns something other than a plan.
    """
    fold = ReplayFold(recording, lineage)
    for call in recording.calls:
        # A call that is recorded late saw less than the call before it, but gets the later view.
        fold.advance(call.last_seen_position)
        fold.measure_overhead(call)
        decided = decider.decide(fold, call)
        tokens = fold.tokens
        yield ReplayedCall(
            call=call,
            tokens=tokens,
            unchanged=min(fold.unchanged, tokens),
            compactions=tuple(one for one in decided if isinstance(one, ReplayCompaction)),
            futile_compactions=tuple(one for one in decided if isinstance(one, FutileCompaction)),
            boundary=fold.history.boundary,
            summary=fold.history.summary,
            is_refused=0 < limit < tokens,
            make_view=fold.make_view,
        )
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

    def __init__(self, decisions: Iterable[Event], lineage: str) -> None:
        self.lineage = lineage
        self._boundaries: dict[int, CompactBoundary] = {}
        self._summaries: dict[int, Summary] = {}
        self._switches = deque[_Switch]()
        for event in decisions:
            match event:
                case CompactBoundary():
                    self._boundaries[event.originator_version] = event
                case Summary(boundary=boundary):
                    self._summaries[boundary] = event
                case BoundaryActivated() | CompactionReverted():
                    self._switches.append(event)
                case _:
                    pass

    def decide(self, fold: ReplayFold, call: RecordedCall) -> list[ReplayDecision]:
        decided = self._serve(fold, call)
        if call.prompt is not None:
            fold.set_reported_prompt(call.prompt)
        return decided

    def _serve(self, fold: ReplayFold, call: RecordedCall) -> list[ReplayDecision]:
        switch: _Switch | None = None
        # Of several switches between two calls, only the last was sent.
        while self._switches and is_switch_seen(self._switches[0], call, self.lineage):
            switch = self._switches.popleft()
        if switch is None:
            return []
        active = switch.boundary if isinstance(switch, BoundaryActivated) else switch.to or 0
        self._remember(fold, active)
        unchanged = fold.serve(active, switch.originator_version)
        if not active:
            return []
        boundary, summary = self._boundaries[active], self._summaries.get(active)
        return [ReplayCompaction(boundary, summary, unchanged)]

    def _remember(self, fold: ReplayFold, number: int | None) -> None:
        """Add the boundary and all beneath it, because a rewind may return to any of them."""
        while number:
            boundary = self._boundaries[number]
            fold.add_boundary(boundary, self._summaries.get(number))
            number = boundary.previous


def is_switch_seen(switch: _Switch, call: RecordedCall, lineage: str) -> bool:
    """Check whether a call was sent the boundary of a switch, or a later one."""
    return switch.effective_from <= call.last_seen_position and is_switch_known(
        switch, call.report, lineage
    )


def is_switch_known(switch: _Switch, reported: ModelCalled | None, lineage: str) -> bool:
    """Check the same for a call that saw the log up to the switch, or further."""
    if reported is not None and reported.lineage == lineage and reported.fingerprint:
        # A call that cutbank served records its version of the lineage.
        return switch.originator_version <= reported.lineage_version
    return True


# What a replay shows


def collect_segments(served: Iterable[ReplayedCall]) -> tuple[ViewSegment, ...]:
    """Return the views of a whole replay, one for each boundary; empty if there were no calls.

    Reads calls one by one without keeping their views. If a rewind has undone a boundary, a new
    segment begins that equals an earlier one.
    """
    segments: list[ViewSegment] = []
    before: CompactBoundary | None = None
    for one in served:
        if not segments or one.boundary is not before:
            segments.append(_make_segment(one))
        before = one.boundary
    return tuple(segments)


def _make_segment(served: ReplayedCall) -> ViewSegment:
    boundary, summary = served.boundary, served.summary
    if boundary is None:
        return ViewSegment(call=served.call.number, after=0, kept=Ranges())
    decided = [entry for entry in served.make_view().entries if entry.position <= boundary.after]
    return ViewSegment(
        call=served.call.number,
        after=boundary.after,
        kept=Ranges.of(entry.position for entry in decided),
        shown={entry.position: entry.shown for entry in decided if entry.shown is not None},
        summary=summary.text if summary else "",
        tokens=summary.tokens if summary else 0,
        first_kept=boundary.first_kept,
    )


class DepartedBlocks:
    """Finds what a view contained before a boundary and not after it."""

    def __init__(self, recording: Recording) -> None:
        self._blocks = Ranges.of(
            one.position
            for one in recording.log
            if one.tokens
            and not (isinstance(one.event, BlockAppended) and one.event.block.kind in UNSENT_KINDS)
        )
        self._retracted = [
            (one.position, one.event.positions)
            for one in recording.log
            if isinstance(one.event, BlocksRetracted)
        ]

    def find_departed(self, before: CompactBoundary | None, boundary: CompactBoundary) -> Ranges:
        """Return the blocks that leave with `boundary` from a view that began at `before`."""
        stood = Ranges.span(before.after + 1 if before else 1, boundary.after)
        left = (stood | before.kept if before else stood) - boundary.kept
        for at, positions in self._retracted:
            if at <= boundary.after:
                left -= positions
        return left & self._blocks
