"""Measures one session under any number of setups, which share one read of it."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from time import process_time
from typing import Any, NamedTuple

from ....domain.backtest.billing import PricedCall, compute_bill
from ....domain.backtest.cell import Cell, ControlResult, MissedFact, Setup
from ....domain.fidelity.controls import build_controls
from ....domain.fidelity.fidelity_measure import FidelityMeasure, compute_upper_bound
from ....domain.fidelity.later_references import find_canonical_boundaries
from ....domain.fidelity.rows import ViewSegment
from ....domain.fidelity.session_reading import SessionReading
from ....domain.fidelity.visibility import SessionVisibility
from ....domain.models import ModelFacts
from ....domain.summaries.extractive import ExtractiveSummarizer
from ....projections.replay.recorded_rows import make_session_rows
from ....projections.replay.replay import ReplayedCall, collect_segments, replay_recording
from ..replaying.deciders import SIZED_SUMMARIZER, SummaryOptions, make_decider
from .session_log import MeasuredSession, read_recorded_calls


class ControlItem(NamedTuple):
    """The controls of a session at one limit."""

    limit: int
    budgets: tuple[int, ...]


TaskItem = Setup | ControlItem
"""A unit of measurement: one setup, or the controls at one limit."""
ItemResult = Cell | tuple[ControlResult, ...]

BOUND_CONTROL = "bound"
TOO_LARGE = "it never compacted, and {} prompts were too large for the model"
UNMEASURED_FIELDS: dict[str, Any] = {"broken": 0, "orphaned": 0, "repairs": {}}
"""Fields of a cell about plans that are not shown for summaries without text."""


def count_run(served: Sequence[ReplayedCall]) -> dict[str, Any]:
    """Return the fields of a cell that count its calls and compactions, apart from fidelity."""
    compactions = [compacted for one in served for compacted in one.compactions]
    refused = sum(one.is_refused for one in served)
    repairs = (str(repair.rule) for compacted in compactions for repair in compacted.repairs)
    context = tuple(one.tokens for one in served)
    return {
        "calls": len(served),
        "compactions": len(compactions),
        "by_trigger": _count_sorted(str(one.boundary.trigger) for one in compactions),
        "futile": sum(len(one.futile) for one in served),
        "refused": refused,
        "broken": sum(bool(one.orphaned_calls) for one in compactions),
        "orphaned": sum(len(one.orphaned_calls) for one in compactions),
        "repairs": _count_sorted(repairs),
        "stood_in": sum(bool(one.refused_drafts) for one in compactions),
        "peak_tokens": max(context, default=0),
        "context": context,
        "boundaries": tuple(one.call.number for one in served if one.compactions),
        "why": TOO_LARGE.format(refused) if refused and not compactions else "",
    }


def _count_sorted(names: Iterable[str]) -> dict[str, int]:
    return dict(sorted(Counter(names).items()))


def _price_call(recorded: PricedCall, served: ReplayedCall) -> PricedCall:
    by_model = [one for one in served.compactions if one.summary_input_tokens]
    return replace(
        recorded,
        prompt=served.tokens,
        unchanged=served.unchanged,
        summary_input=sum(one.summary_input_tokens for one in by_model),
        summary_output=sum(one.summary.tokens for one in by_model if one.summary),
    )


@dataclass
class CellBench:
    """One session, read once, on which setups are measured."""

    log: MeasuredSession
    _measures: dict[int, FidelityMeasure] = field(default_factory=dict, init=False)
    _extractive: ExtractiveSummarizer = field(default_factory=ExtractiveSummarizer, init=False)
    """One for all setups, since it remembers what it read in the session's blocks."""

    def measure(self, item: TaskItem) -> ItemResult:
        """Measure one setup, or the controls at one limit.

        Raises PolicyFailedError if the policy raises or returns something other than a plan.
        """
        if isinstance(item, Setup):
            return self.measure_cell(item, self.log.find_setup_facts(item))
        return self._measure_controls(*item)

    def measure_cell(self, setup: Setup, facts: ModelFacts | None) -> Cell:
        """Measure one setup; `facts` are the prices and limits of its model, if known."""
        is_sized = setup.summarizer == SIZED_SUMMARIZER
        measure = None if is_sized else self._make_measure(setup.limit)
        began = process_time()
        decider = make_decider(
            setup.policy,
            self.log.recording,
            self.log.decisions,
            self.log.settings,
            # Only cached summaries of a model are used: `replay --allow-llm` writes missing ones.
            SummaryOptions(setup.summarizer, setup.budget),
            settings=setup.settings,
            limit=setup.limit,
            model=setup.model or self.log.model,
            prices=facts,
            extractive=self._extractive,
        )
        replayed = replay_recording(self.log.recording, decider, limit=setup.limit)
        if measure is None:
            served, more = [one for one, _ in replayed], UNMEASURED_FIELDS
        else:
            served, segments = collect_segments(replayed)
            more = self._measure_fidelity(measure, segments)
        calls = map(_price_call, self._recorded_calls, served)
        return self.log.blank_cell.model_copy(
            update={
                "setup": setup,
                **count_run(served),
                **more,
                "bill": compute_bill(calls, facts, others={} if setup.model else self.log.facts),
                "seconds": process_time() - began,
            }
        )

    def _measure_controls(self, limit: int, budgets: tuple[int, ...]) -> tuple[ControlResult, ...]:
        """Measure the scores of control texts on the boundaries that all setups share."""
        recording, measure = self.log.recording, self._make_measure(limit)
        blank = ControlResult(
            session=recording.key,
            namespace=recording.namespace,
            source=recording.source,
            limit=limit,
            name=BOUND_CONTROL,
        )
        found: list[dict[str, Any]] = [
            {"name": name, "budget": budget, "scores": measure.score(segments)}
            for name, budget, segments in build_controls(self._reading, measure.boundaries, budgets)
        ]
        found += [
            {"budget": budget, "bound": compute_upper_bound(measure, budget)} for budget in budgets
        ]
        return tuple(blank.model_copy(update=fields) for fields in found)

    def _measure_fidelity(
        self, measure: FidelityMeasure, segments: tuple[ViewSegment, ...]
    ) -> dict[str, Any]:
        seen = SessionVisibility(self._reading, segments)
        return {
            "canonical": measure.score(seen),
            "lost": tuple(
                MissedFact(key=one.key, kind=one.kind, call=one.call, position=one.hidden_in)
                for one in measure.find_lost(seen)
            ),
        }

    # What all setups share

    @cached_property
    def _recorded_calls(self) -> tuple[PricedCall, ...]:
        return tuple(read_recorded_calls(self.log.recording))

    @cached_property
    def _reading(self) -> SessionReading:
        return SessionReading(make_session_rows(self.log.recording))

    def _make_measure(self, limit: int) -> FidelityMeasure:
        if limit not in self._measures:
            boundaries = find_canonical_boundaries(self._reading, limit)
            self._measures[limit] = FidelityMeasure(self._reading, boundaries)
        return self._measures[limit]
