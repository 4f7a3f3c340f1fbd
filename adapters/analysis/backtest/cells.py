"""Measures one session under any number of setups, which share one read of it."""

from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from time import process_time
from typing import Any

from ....domain.backtest.billing import PricedCall, compute_bill
from ....domain.backtest.cell import Cell, ControlResult, MissedFact, Setup
from ....domain.fidelity.controls import build_controls
from ....domain.fidelity.fidelity_measure import (
    FidelityMeasure,
    compute_own_bound,
    compute_upper_bound,
)
from ....domain.fidelity.later_references import (
    find_canonical_boundaries,
    list_own_boundaries,
)
from ....domain.fidelity.rows import ViewSegment
from ....domain.fidelity.session_reading import SessionReading
from ....domain.fidelity.visibility import SessionVisibility
from ....domain.models import ModelFacts
from ....domain.policies.policy import quiet_below
from ....domain.summaries.extractive import ExtractiveSummarizer
from ....projections.replay.policy_decider import PolicyDecider
from ....projections.replay.recorded_rows import make_session_rows
from ....projections.replay.replay import (
    Decider,
    NeverDecider,
    ReplayCompaction,
    ReplayedCall,
    collect_segments,
    replay_recording,
)
from ...settings.settings import Settings
from ..replaying.deciders import SIZED_SUMMARIZER, SummaryOptions, make_decider
from .session_log import MeasuredSession, RecordedAnswer, describe_log, read_recorded_answers

BOUND_CONTROL = "bound"
UNMEASURED_FIELDS: dict[str, Any] = {"broken": 0, "orphaned": 0, "repairs": {}}
"""Fields of a cell about plans that are not shown for summaries without text."""


@dataclass
class RunCounts:
    """The counts of a cell's calls and compactions, without fidelity and prices."""

    recorded_answers: Sequence[RecordedAnswer]
    by_trigger: Counter[str] = field(default_factory=Counter)
    repairs: Counter[str] = field(default_factory=Counter)
    calls: list[PricedCall] = field(default_factory=list)
    boundaries: list[int] = field(default_factory=list)
    compactions: int = 0
    futile: int = 0
    refused: int = 0
    broken: int = 0
    orphaned: int = 0
    stood_in: int = 0
    largest_prompt: int = 0

    def count_calls(self, served: Iterable[ReplayedCall]) -> Iterator[ReplayedCall]:
        for one in served:
            self._count(one)
            yield one

    def to_fields(self) -> dict[str, Any]:
        """Return the counts as fields of a cell."""
        context = tuple(call.prompt for call in self.calls)
        counts = ("compactions", "futile", "refused", "broken", "orphaned", "stood_in")
        return {
            **{name: getattr(self, name) for name in counts},
            "calls": len(self.calls),
            "by_trigger": dict(sorted(self.by_trigger.items())),
            "repairs": dict(sorted(self.repairs.items())),
            "peak_tokens": max(context, default=0),
            "context": context,
            "boundaries": tuple(self.boundaries),
        }

    def _count(self, served: ReplayedCall) -> None:
        for compacted in served.compactions:
            self._count_compaction(compacted)
        if served.compactions:
            self.boundaries.append(served.call.number)
        self.futile += len(served.futile_compactions)
        self.refused += served.is_refused
        self.largest_prompt = max(self.largest_prompt, served.tokens)
        by_model = [one for one in served.compactions if one.summary_input_tokens]
        self.calls.append(
            self.recorded_answers[len(self.calls)].price(
                served.tokens,
                served.unchanged,
                sum(one.summary_input_tokens for one in by_model),
                sum(one.summary.tokens for one in by_model if one.summary),
            )
        )

    def _count_compaction(self, compacted: ReplayCompaction) -> None:
        self.compactions += 1
        self.by_trigger[str(compacted.boundary.trigger)] += 1
        self.repairs.update(str(repair.rule) for repair in compacted.repairs)
        self.broken += bool(compacted.orphaned_calls)
        self.orphaned += len(compacted.orphaned_calls)
        self.stood_in += bool(compacted.refused_drafts)


@dataclass
class CellBench:
    """One session, read once, on which setups are measured."""

    log: MeasuredSession
    settings: Settings = field(default_factory=Settings)
    """Settings of the compactions, as in an agent's loop."""
    facts: Mapping[str, ModelFacts | None] = field(default_factory=dict)
    """Prices and limits of each recorded model, for setups that name no model."""
    _measures: dict[int, FidelityMeasure] = field(default_factory=dict, init=False)
    _extractive: ExtractiveSummarizer = field(default_factory=ExtractiveSummarizer, init=False)
    """One for all setups, since it remembers what it read in the session's blocks."""

    def measure_cell(self, setup: Setup, facts: ModelFacts | None) -> Cell:
        """Measure one setup; `facts` are the prices and limits of its model, if known.

        Raises PolicyFailedError if the policy raises or returns something other than a plan.
        """
        is_sized = setup.summarizer == SIZED_SUMMARIZER
        measure = None if is_sized else self._make_measure(setup.limit)
        began = process_time()
        decider = self._make_decider(setup, facts)
        counts = RunCounts(self._recorded_answers)
        served = counts.count_calls(
            replay_recording(self.log.recording, decider, limit=setup.limit)
        )
        if measure is not None:
            more = self._measure_fidelity(measure, collect_segments(served))
        else:
            more = UNMEASURED_FIELDS
            if self._never_compacts(decider):
                counts = self._whole_history
            else:
                deque(served, maxlen=0)
        bill = compute_bill(counts.calls, facts, others={} if setup.model else self.facts)
        return self._blank_cell.model_copy(
            update={
                "setup": setup,
                **counts.to_fields(),
                **more,
                "why": _make_remark(counts),
                "bill": bill,
                "seconds": process_time() - began,
            }
        )

    def measure_controls(self, limit: int, budgets: tuple[int, ...]) -> tuple[ControlResult, ...]:
        """Measure the scores of control texts on the boundaries that all setups share."""
        return tuple(self._score_controls(limit, budgets))

    def _score_controls(self, limit: int, budgets: tuple[int, ...]) -> Iterator[ControlResult]:
        recording, measure = self.log.recording, self._make_measure(limit)
        blank = ControlResult(
            session=recording.key,
            namespace=recording.namespace,
            source=recording.source,
            limit=limit,
            name=BOUND_CONTROL,
        )
        found = build_controls(self._reading, measure.boundaries, budgets)
        for name, budget, segments in found:
            scores = measure.score(segments)
            yield blank.model_copy(update={"name": name, "budget": budget, "scores": scores})
        for budget in budgets:
            yield blank.model_copy(
                update={"budget": budget, "bound": compute_upper_bound(measure, budget)}
            )

    def _measure_fidelity(
        self, measure: FidelityMeasure, segments: tuple[ViewSegment, ...]
    ) -> dict[str, Any]:
        own = FidelityMeasure(self._reading, list_own_boundaries(segments))
        seen = SessionVisibility(self._reading, segments)
        return {
            "canonical": measure.score(seen),
            "own": own.score(seen),
            "own_bound": compute_own_bound(own, seen),
            "lost": tuple(
                MissedFact(key=one.key, kind=one.kind, call=one.call, position=one.position)
                for one in measure.find_lost_keys(seen)
            ),
        }

    # What all setups share

    @cached_property
    def _blank_cell(self) -> Cell:
        return describe_log(self.log).blank_cell

    @cached_property
    def _recorded_answers(self) -> tuple[RecordedAnswer, ...]:
        return tuple(read_recorded_answers(self.log.recording))

    @cached_property
    def _reading(self) -> SessionReading:
        return SessionReading(make_session_rows(self.log.recording))

    def _make_measure(self, limit: int) -> FidelityMeasure:
        if limit not in self._measures:
            boundaries = find_canonical_boundaries(self._reading, limit)
            self._measures[limit] = FidelityMeasure(self._reading, boundaries)
        return self._measures[limit]

    @cached_property
    def _whole_history(self) -> RunCounts:
        """The counts of a replay that never compacts."""
        counts = RunCounts(self._recorded_answers)
        deque(counts.count_calls(replay_recording(self.log.recording, NeverDecider())), maxlen=0)
        return counts

    def _never_compacts(self, decider: Decider) -> bool:
        """Check whether every prompt is so small that the policy does nothing.

        Many setups of a sweep are such, and they need no replay of their own.
        """
        if not isinstance(decider, PolicyDecider):
            return False
        terms = decider.terms
        quiet = quiet_below(terms.policy, terms.limit)
        return quiet is not None and self._whole_history.largest_prompt <= min(quiet, terms.limit)

    def _make_decider(self, setup: Setup, facts: ModelFacts | None) -> Decider:
        return make_decider(
            setup.policy,
            self.log.recording,
            self.log.decisions,
            self.settings,
            # Only cached summaries of a model are used: `replay --allow-llm` writes missing ones.
            SummaryOptions(setup.summarizer, setup.budget),
            settings=setup.settings,
            limit=setup.limit,
            model=setup.model or self.log.model,
            prices=facts,
            extractive=self._extractive,
        )


def _make_remark(counts: RunCounts) -> str:
    """Return what a reader of the row has to know."""
    if counts.refused and not counts.compactions:
        return f"it never compacted, and {counts.refused} prompts were too large for the model"
    return ""
