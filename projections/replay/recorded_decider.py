"""Replays the compactions of a recorded lineage."""

from collections.abc import Iterable

from ...domain.compaction_events import (
    BoundaryActivated,
    CompactBoundary,
    CompactionReverted,
    Summary,
)
from ...domain.event import Event
from ...domain.session_events import ModelCalled
from .decider import ReplayDecision
from .recording import RecordedCall
from .replay_fold import ReplayFold
from .replayed_call import ReplayCompaction

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
        self._switches: list[_Switch] = []
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
        self._served = 0

    def decide(self, fold: ReplayFold, call: RecordedCall) -> list[ReplayDecision]:
        decided = self._serve(fold, call)
        if call.prompt is not None:
            fold.set_reported_prompt(call.prompt)
        return decided

    def _serve(self, fold: ReplayFold, call: RecordedCall) -> list[ReplayDecision]:
        newest = self._served
        while newest < len(self._switches) and is_switch_seen(
            self._switches[newest], call, self.lineage
        ):
            newest += 1
        if newest == self._served:
            return []
        # Of several switches between two calls, only the last was sent.
        self._served = newest
        switch = self._switches[newest - 1]
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
