"""Measures one session under any number of setups: what they share is made once."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from time import process_time

from ....domain.backtest.billing import PricedCall, bill_of
from ....domain.backtest.cell import Bill, Cell, Lost, Setup
from ....domain.backtest.result import Control
from ....domain.compaction import MAIN
from ....domain.fidelity.bound import bound, own_bound
from ....domain.fidelity.canonical import Boundary, canonical, own_boundaries
from ....domain.fidelity.controls import CONTROLS, Listed
from ....domain.fidelity.measure import Measure
from ....domain.fidelity.reading import Reading
from ....domain.fidelity.sight import Sights
from ....domain.fidelity.spells import Spell
from ....domain.models import ModelFacts
from ....domain.summaries.sized import Sized
from ....domain.summaries.summariser import Summariser
from ....domain.terms import Terms
from ....projections.replay.as_recorded import AsRecorded
from ....projections.replay.by_policy import ByPolicy
from ....projections.replay.decider import Decider, Never
from ....projections.replay.neutral import rows_of
from ....projections.replay.recorded_summaries import RecordedSummaries
from ....projections.replay.replay import replayed
from ....projections.replay.spells import spells_of
from ....projections.replay.token_replay import TokenReplay, token_replayed
from ....projections.replay.trace import NotByTokens, Trace, trace_of
from ....projections.replay.writing import Writers
from ...runtime.compaction.by_settings import order_by
from ...runtime.compaction.summary_chain import SummaryChain
from ...settings.policy_catalog import policy_named
from ...settings.settings import Settings
from ..replaying.deciders import AS_RECORDED, NOBODY, SIZED, Summaries, cached_by
from .by_tokens import BEYOND_TOKENS, Answered, fields_of, priced_calls
from .session_log import SessionLog, read_of
from .tally import Tally, answered_in

BOUND = "bound"


@dataclass
class Bench:
    """One session, read once, on which setups are tried."""

    log: SessionLog
    settings: Settings = field(default_factory=Settings)
    """On whose terms there is a compaction, as in an agent's loop."""
    facts: Mapping[str, ModelFacts | None] = field(default_factory=dict)
    """What each model that was called costs, where a setup names none."""
    _measures: dict[int, Measure] = field(default_factory=dict, init=False)
    _boundaries: dict[int, tuple[Boundary, ...]] = field(default_factory=dict, init=False)

    def cell(self, setup: Setup, facts: ModelFacts | None) -> Cell:
        """The session under one setup; `facts` are what its model costs, where that is known.

        Raises PolicyFailedError where the policy raises, or answers what is no plan.
        """
        if setup.summariser == SIZED:
            return self._by_tokens(setup, facts)
        recording, measure = self.log.recording, self._measure(setup.limit)
        began = process_time()
        blank = self._blank.model_copy(update={"setup": setup})
        tally = Tally(self._answered)
        served = replayed(recording, self._decider(setup, facts), limit=setup.limit)
        spells = spells_of(tally.counting(served))
        own = Measure(self._reading, own_boundaries(spells))
        sights = Sights(self._reading, spells)
        return blank.model_copy(
            update={
                **tally.as_fields(),
                "why": _remark(tally.refused, tally.compactions),
                "bill": self._bill(tally.calls, setup, facts),
                "canonical": measure.scores(sights),
                "own": own.scores(sights),
                "own_bound": own_bound(own, sights),
                "lost": tuple(
                    Lost(key=one.key, kind=one.kind, call=one.call, position=one.position)
                    for one in measure.lost(sights)
                ),
                "seconds": process_time() - began,
            }
        )

    def _by_tokens(self, setup: Setup, facts: ModelFacts | None) -> Cell:
        """The same where there is no text: no fidelity, and nothing of how plans were repaired."""
        began = process_time()
        order = self._order(setup, facts)
        assert setup.budget is not None, "a grid asks for it"
        found = self._token_replay(order, setup.budget)
        if isinstance(found, TokenReplay):
            calls = priced_calls(found, self._answered)
            fields = fields_of(found, calls, setup.limit)
            why = _remark(fields["refused"], fields["compactions"])
        else:
            tally = Tally(self._answered)
            decider = self._by_policy(order, setup)
            for _ in tally.counting(replayed(self.log.recording, decider, limit=setup.limit)):
                pass
            fields, calls = tally.as_fields() | BEYOND_TOKENS, tally.calls
            why = _remark(tally.refused, tally.compactions)
        return self._blank.model_copy(
            update={
                **fields,
                "setup": setup,
                "why": why,
                "bill": self._bill(calls, setup, facts),
                "seconds": process_time() - began,
            }
        )

    def _bill(self, calls: Iterable[PricedCall], setup: Setup, facts: ModelFacts | None) -> Bill:
        return bill_of(calls, facts, others={} if setup.model else self.facts)

    def _token_replay(self, order: Terms, tokens: int) -> TokenReplay | NotByTokens:
        trace = self._trace
        if isinstance(trace, NotByTokens):
            return trace
        if order.must_pay:
            return NotByTokens("a compaction has to pay for itself")
        return token_replayed(
            trace,
            order.policy,
            order.limit,
            tokens,
            pins=order.pins,
            minimum_gain=order.minimum_gain,
            once_a_turn=self.settings.compaction.once_a_turn,
        )

    def controls(self, limit: int, budgets: tuple[int, ...]) -> tuple[Control, ...]:
        """What texts score that no policy would write, on the boundaries that all share."""
        return tuple(self._controls(limit, budgets))

    def _controls(self, limit: int, budgets: tuple[int, ...]) -> Iterator[Control]:
        recording, measure = self.log.recording, self._measure(limit)
        boundaries = self._canonical(limit)
        blank = Control(
            session=recording.key,
            namespace=recording.namespace,
            source=recording.source,
            limit=limit,
            name=BOUND,
        )
        for name, control in CONTROLS.items():
            found: Iterable[tuple[int | None, tuple[Spell, ...]]]
            if isinstance(control, Listed):
                found = zip(budgets, control.at(self._reading, boundaries, budgets), strict=True)
            else:
                found = [(None, control(self._reading, boundaries, 0))]
            for budget, spells in found:
                scores = measure.scores(spells)
                yield blank.model_copy(update={"name": name, "budget": budget, "scores": scores})
        for budget in budgets:
            yield blank.model_copy(update={"budget": budget, "bound": bound(measure, budget)})

    @cached_property
    def _blank(self) -> Cell:
        return read_of(self.log).blank

    @cached_property
    def _answered(self) -> tuple[Answered, ...]:
        return tuple(answered_in(self.log.recording))

    @cached_property
    def _trace(self) -> Trace | NotByTokens:
        return trace_of(self.log.recording)

    @cached_property
    def _reading(self) -> Reading:
        return Reading(rows_of(self.log.recording))

    def _canonical(self, limit: int) -> tuple[Boundary, ...]:
        if limit not in self._boundaries:
            self._boundaries[limit] = canonical(self._reading, limit)
        return self._boundaries[limit]

    def _measure(self, limit: int) -> Measure:
        if limit not in self._measures:
            self._measures[limit] = Measure(self._reading, self._canonical(limit))
        return self._measures[limit]

    def _decider(self, setup: Setup, facts: ModelFacts | None) -> Decider:
        if setup.policy == NOBODY:
            return Never()
        if setup.policy == AS_RECORDED:
            return AsRecorded(self.log.decisions, MAIN)
        return self._by_policy(self._order(setup, facts), setup)

    def _order(self, setup: Setup, facts: ModelFacts | None) -> Terms:
        return order_by(
            self.settings,
            setup.model or self.log.model,
            policy=policy_named(setup.policy, setup.settings),
            limit=setup.limit,
            prices=facts,
            chain=SummaryChain(),  # a replay has writers of its own
        )

    def _by_policy(self, order: Terms, setup: Setup) -> ByPolicy:
        writers = Writers(self._writers(setup), setup.budget)
        if setup.summariser == SIZED and setup.budget is not None:
            # The policy says what a summary may take at most, as it does for any other.
            writers = Writers((Sized(setup.budget),))
        return ByPolicy(
            order,
            self.log.recording,
            writers,
            once_a_turn=self.settings.compaction.once_a_turn,
        )

    def _writers(self, setup: Setup) -> tuple[Summariser, ...]:
        match setup.summariser:
            case "recorded":
                return (RecordedSummaries.of(self.log.decisions),)
            case "llm":
                # Only what was written before: `replay --allow-llm` has it written.
                kept = Summaries("llm", setup.budget)
                return (cached_by(kept, self.settings, setup.model or self.log.model),)
            case _:
                return ()


def _remark(refused: int, compactions: int) -> str:
    """What a reader of the row has to know."""
    if refused and not compactions:
        return f"it never compacted, and {refused} prompts were too large for the model"
    return ""
