"""Measures one session under any number of setups, which share one read of it."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from time import process_time

from ....domain.backtest.billing import PricedCall, compute_bill
from ....domain.backtest.cell import Bill, Cell, MissedFact, Setup
from ....domain.backtest.result import ControlResult
from ....domain.compaction import MAIN_LINEAGE
from ....domain.compaction_terms import CompactionTerms
from ....domain.fidelity.canonical_boundaries import (
    RowBoundary,
    find_canonical_boundaries,
    list_own_boundaries,
)
from ....domain.fidelity.controls import CONTROLS, LineListControl
from ....domain.fidelity.fidelity_measure import FidelityMeasure
from ....domain.fidelity.segments import ViewSegment
from ....domain.fidelity.session_reading import SessionReading
from ....domain.fidelity.upper_bound import compute_own_bound, compute_upper_bound
from ....domain.fidelity.visibility import SessionVisibility
from ....domain.models import ModelFacts
from ....domain.summaries.extractive import ExtractiveSummarizer
from ....domain.summaries.simple_summarizers import SizedSummarizer
from ....domain.summaries.summarizer import Summarizer
from ....projections.replay.decider import Decider, NeverDecider
from ....projections.replay.policy_decider import PolicyDecider
from ....projections.replay.recorded_decider import RecordedDecider
from ....projections.replay.recorded_rows import make_session_rows
from ....projections.replay.recorded_summarizer import RecordedSummarizer
from ....projections.replay.replay import replay_recording
from ....projections.replay.replay_segments import collect_segments
from ....projections.replay.replay_writers import ReplayWriters
from ....projections.replay.token_replay import TokenReplay, replay_by_tokens
from ....projections.replay.trace import NeedsFullReplay, SessionTrace, make_trace
from ...runtime.compaction.from_settings import make_compaction_request
from ...runtime.compaction.summary_chain import SummaryChain
from ...settings.policy_catalog import get_policy
from ...settings.settings import Settings
from ..replaying.deciders import (
    NO_POLICY,
    RECORDED_POLICY,
    SIZED_SUMMARIZER,
    SummaryOptions,
    open_cached_summaries,
)
from .run_counts import RunCounts, read_recorded_answers
from .session_log import MeasuredSession, describe_log
from .token_results import UNMEASURED_FIELDS, RecordedAnswer, make_cell_fields, price_calls

BOUND_CONTROL = "bound"


@dataclass
class CellBench:
    """One session, read once, on which setups are measured."""

    log: MeasuredSession
    settings: Settings = field(default_factory=Settings)
    """Settings of the compactions, as in an agent's loop."""
    facts: Mapping[str, ModelFacts | None] = field(default_factory=dict)
    """Prices and limits of each recorded model, for setups that name no model."""
    _measures: dict[int, FidelityMeasure] = field(default_factory=dict, init=False)
    _boundaries: dict[int, tuple[RowBoundary, ...]] = field(default_factory=dict, init=False)
    _extractive: ExtractiveSummarizer = field(default_factory=ExtractiveSummarizer, init=False)
    """One for all setups, since it remembers what it read in the session's blocks."""

    def measure_cell(self, setup: Setup, facts: ModelFacts | None) -> Cell:
        """Measure one setup; `facts` are the prices and limits of its model, if known.

        Raises PolicyFailedError if the policy raises or returns something other than a plan.
        """
        if setup.summariser == SIZED_SUMMARIZER:
            return self._measure_by_tokens(setup, facts)
        recording, measure = self.log.recording, self._make_measure(setup.limit)
        began = process_time()
        blank = self._blank_cell.model_copy(update={"setup": setup})
        tally = RunCounts(self._recorded_answers)
        served = replay_recording(recording, self._make_decider(setup, facts), limit=setup.limit)
        spells = collect_segments(tally.count_calls(served))
        own = FidelityMeasure(self._reading, list_own_boundaries(spells))
        sights = SessionVisibility(self._reading, spells)
        return blank.model_copy(
            update={
                **tally.to_fields(),
                "why": _make_remark(tally.refused, tally.compactions),
                "bill": self._make_bill(tally.calls, setup, facts),
                "canonical": measure.score(sights),
                "own": own.score(sights),
                "own_bound": compute_own_bound(own, sights),
                "lost": tuple(
                    MissedFact(key=one.key, kind=one.kind, call=one.call, position=one.position)
                    for one in measure.find_lost_keys(sights)
                ),
                "seconds": process_time() - began,
            }
        )

    def _measure_by_tokens(self, setup: Setup, facts: ModelFacts | None) -> Cell:
        """Measure a setup without texts: no fidelity and no plan repairs."""
        began = process_time()
        order = self._make_terms(setup, facts)
        assert setup.budget is not None, "a grid asks for it"
        found = self._replay_tokens(order, setup.budget)
        if isinstance(found, TokenReplay):
            calls = price_calls(found, self._recorded_answers)
            fields = make_cell_fields(found, calls, setup.limit)
            why = _make_remark(fields["refused"], fields["compactions"])
        else:
            tally = RunCounts(self._recorded_answers)
            decider = self._make_policy_decider(order, setup)
            for _ in tally.count_calls(
                replay_recording(self.log.recording, decider, limit=setup.limit)
            ):
                pass
            fields, calls = tally.to_fields() | UNMEASURED_FIELDS, tally.calls
            why = _make_remark(tally.refused, tally.compactions)
        return self._blank_cell.model_copy(
            update={
                **fields,
                "setup": setup,
                "why": why,
                "bill": self._make_bill(calls, setup, facts),
                "seconds": process_time() - began,
            }
        )

    def _make_bill(
        self, calls: Iterable[PricedCall], setup: Setup, facts: ModelFacts | None
    ) -> Bill:
        return compute_bill(calls, facts, others={} if setup.model else self.facts)

    def _replay_tokens(self, order: CompactionTerms, tokens: int) -> TokenReplay | NeedsFullReplay:
        trace = self._trace
        if isinstance(trace, NeedsFullReplay):
            return trace
        if order.require_saving:
            return NeedsFullReplay("a compaction has to pay for itself")
        return replay_by_tokens(
            trace,
            order.policy,
            order.limit,
            tokens,
            pins=order.pins,
            minimum_gain=order.minimum_gain,
            once_a_turn=self.settings.compaction.once_a_turn,
        )

    def measure_controls(self, limit: int, budgets: tuple[int, ...]) -> tuple[ControlResult, ...]:
        """Measure the scores of control texts on the boundaries that all setups share."""
        return tuple(self._score_controls(limit, budgets))

    def _score_controls(self, limit: int, budgets: tuple[int, ...]) -> Iterator[ControlResult]:
        recording, measure = self.log.recording, self._make_measure(limit)
        boundaries = self._canonical_boundaries(limit)
        blank = ControlResult(
            session=recording.key,
            namespace=recording.namespace,
            source=recording.source,
            limit=limit,
            name=BOUND_CONTROL,
        )
        for name, control in CONTROLS.items():
            found: Iterable[tuple[int | None, tuple[ViewSegment, ...]]]
            if isinstance(control, LineListControl):
                found = zip(
                    budgets,
                    control.build_for_budgets(self._reading, boundaries, budgets),
                    strict=True,
                )
            else:
                found = [(None, control(self._reading, boundaries, 0))]
            for budget, spells in found:
                scores = measure.score(spells)
                yield blank.model_copy(update={"name": name, "budget": budget, "scores": scores})
        for budget in budgets:
            yield blank.model_copy(
                update={"budget": budget, "bound": compute_upper_bound(measure, budget)}
            )

    @cached_property
    def _blank_cell(self) -> Cell:
        return describe_log(self.log).blank_cell

    @cached_property
    def _recorded_answers(self) -> tuple[RecordedAnswer, ...]:
        return tuple(read_recorded_answers(self.log.recording))

    @cached_property
    def _trace(self) -> SessionTrace | NeedsFullReplay:
        return make_trace(self.log.recording)

    @cached_property
    def _reading(self) -> SessionReading:
        return SessionReading(make_session_rows(self.log.recording))

    def _canonical_boundaries(self, limit: int) -> tuple[RowBoundary, ...]:
        if limit not in self._boundaries:
            self._boundaries[limit] = find_canonical_boundaries(self._reading, limit)
        return self._boundaries[limit]

    def _make_measure(self, limit: int) -> FidelityMeasure:
        if limit not in self._measures:
            self._measures[limit] = FidelityMeasure(
                self._reading, self._canonical_boundaries(limit)
            )
        return self._measures[limit]

    def _make_decider(self, setup: Setup, facts: ModelFacts | None) -> Decider:
        if setup.policy == NO_POLICY:
            return NeverDecider()
        if setup.policy == RECORDED_POLICY:
            return RecordedDecider(self.log.decisions, MAIN_LINEAGE)
        return self._make_policy_decider(self._make_terms(setup, facts), setup)

    def _make_terms(self, setup: Setup, facts: ModelFacts | None) -> CompactionTerms:
        return make_compaction_request(
            self.settings,
            setup.model or self.log.model,
            policy=get_policy(setup.policy, **setup.settings),
            limit=setup.limit,
            prices=facts,
            chain=SummaryChain(),  # a replay has its own summarizers
        )

    def _make_policy_decider(self, order: CompactionTerms, setup: Setup) -> PolicyDecider:
        writers = ReplayWriters(self._choose_summarizers(setup), setup.budget)
        if setup.summariser == SIZED_SUMMARIZER and setup.budget is not None:
            # The policy limits the size of a summary, as for any other summarizer.
            writers = ReplayWriters((SizedSummarizer(setup.budget),))
        return PolicyDecider(
            order,
            self.log.recording,
            writers,
            once_a_turn=self.settings.compaction.once_a_turn,
        )

    def _choose_summarizers(self, setup: Setup) -> tuple[Summarizer, ...]:
        match setup.summariser:
            case "recorded":
                return (RecordedSummarizer.from_decisions(self.log.decisions),)
            case "llm":
                # Only cached summaries are used: `replay --allow-llm` writes missing ones.
                kept = SummaryOptions("llm", setup.budget)
                return (open_cached_summaries(kept, self.settings, setup.model or self.log.model),)
            case _:
                return (self._extractive,)


def _make_remark(refused: int, compactions: int) -> str:
    """Return what a reader of the row has to know."""
    if refused and not compactions:
        return f"it never compacted, and {refused} prompts were too large for the model"
    return ""
