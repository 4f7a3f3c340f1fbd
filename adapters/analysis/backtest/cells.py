"""Measures one session under any number of setups, which share one read of it."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from hashlib import blake2b
from time import process_time
from typing import Any, NamedTuple

from ....domain.backtest_cell import Cell, ControlResult, MissedFact, Setup
from ....domain.billing import PricedCall, compute_bill
from ....domain.cached_property import cached_property
from ....domain.event import Event
from ....domain.fidelity.controls import build_controls
from ....domain.fidelity.fidelity_measure import FidelityMeasure, compute_upper_bound
from ....domain.fidelity.later_references import find_canonical_boundaries
from ....domain.fidelity.session_reading import SessionReading
from ....domain.fidelity.visibility import SessionVisibility
from ....domain.models import ModelFacts
from ....domain.session_events import ModelCalled
from ....domain.summaries.extractive import ExtractiveSummarizer
from ....projections.recorded_rows import make_session_rows
from ....projections.recording import RecordedCall, Recording, SessionTime
from ....projections.replay import ReplayedCall, collect_segments, replay_recording
from ....projections.timestamps import find_event_time
from ...models.context_limits import find_facts
from ...runtime.sessions.stored_session import StoredSession
from ...settings.settings import Settings
from ...storage.event_log.event_mapper import dump_json
from ..deciders import SummaryOptions, make_decider
from ..run_replay import read_calibrated


class ControlItem(NamedTuple):
    """The controls of a session at one limit."""

    limit: int
    budgets: tuple[int, ...]


TaskItem = Setup | ControlItem
"""A unit of measurement: one setup, or the controls at one limit."""
ItemResult = Cell | tuple[ControlResult, ...]

BOUND_CONTROL = "bound"
TOO_LARGE = "it never compacted, and {} prompts were too large for the model"


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


@dataclass(frozen=True, eq=False)
class MeasuredSession:
    """One session, read once, on which setups are measured."""

    recording: Recording
    decisions: Sequence[Event]
    """The recorded compactions: those of the session's source, and those served since."""
    settings: Settings
    """Settings of the compactions, as in an agent's loop."""
    _measures: dict[int, FidelityMeasure] = field(default_factory=dict, init=False)
    _extractive: ExtractiveSummarizer = field(default_factory=ExtractiveSummarizer, init=False)
    """One for all setups, since it remembers what it read in the session's blocks."""

    @classmethod
    def read(cls, session: StoredSession, settings: Settings) -> "MeasuredSession":
        return cls(*read_calibrated(session), settings)

    @cached_property
    def digest(self) -> str:
        """A digest of all content, decisions and times; the same in any database."""
        digest = blake2b(digest_size=16)
        recording = self.recording
        digest.update(
            dump_json([recording.namespace, recording.key, recording.source, len(recording.log)])
        )
        for recorded in recording.log.values():
            event = recorded.event
            # `dump_json` leaves out an event's location in a database.
            digest.update(dump_json([event.TOPIC, event, find_event_time(event), recorded.tokens]))
        for event in self.decisions:
            digest.update(dump_json([event.TOPIC, event]))
        return digest.hexdigest()

    @cached_property
    def blank_cell(self) -> Cell:
        """What is known of the session before any measurement."""
        recording, calibration = self.recording, self.recording.calibration
        return Cell(
            session=recording.key,
            namespace=recording.namespace,
            source=recording.source,
            setup=Setup(policy="", limit=1),
            blocks=recording.blocks,
            calls=len(recording.calls),
            reports=calibration.reports if calibration else 0,
            overhead=calibration.overhead if calibration else None,
            chars_per_token=calibration.chars_per_token if calibration else None,
        )

    @cached_property
    def model(self) -> str | None:
        """The last recorded model."""
        events = (recorded.event for recorded in reversed(self.recording.log.values()))
        called = (event.model for event in events if isinstance(event, ModelCalled))
        return next(filter(None, called), None)

    @cached_property
    def facts(self) -> Mapping[str, ModelFacts | None]:
        """Prices and limits of each recorded model at the time of the last call."""
        reports = (call.report.model for call in self.recording.calls if call.report)
        models = {*filter(None, (*reports, self.model))}
        return {
            model: find_facts(self.settings, model, at=self._last_call_time)
            for model in sorted(models)
        }

    def find_setup_facts(self, setup: Setup) -> ModelFacts | None:
        """Return the facts of a setup's model: a named one has today's prices."""
        if setup.model is not None:
            return find_facts(self.settings, setup.model)
        return self.facts[self.model] if self.model else None

    @property
    def _last_call_time(self) -> datetime | None:
        """The time of the last model call, by the session's own clock."""
        time = SessionTime(self.recording)
        now = time.advance(
            max((call.last_seen_position for call in self.recording.calls), default=0)
        )
        return now if time.is_told else None

    # Measuring

    def measure(self, item: TaskItem) -> ItemResult:
        """Measure one setup, or the controls at one limit.

        Raises PolicyFailedError if the policy raises or returns something other than a plan.
        """
        if isinstance(item, Setup):
            return self.measure_cell(item, self.find_setup_facts(item))
        return self._measure_controls(*item)

    def measure_cell(self, setup: Setup, facts: ModelFacts | None) -> Cell:
        """Measure one setup; `facts` are the prices and limits of its model, if known."""
        measure = self._make_measure(setup.limit)
        began = process_time()
        decider = make_decider(
            setup.policy,
            self.recording,
            self.decisions,
            self.settings,
            # Only cached summaries of a model are used: `replay --allow-llm` writes missing ones.
            SummaryOptions(setup.summarizer, setup.budget),
            settings=setup.settings,
            limit=setup.limit,
            model=setup.model or self.model,
            prices=facts,
            extractive=self._extractive,
        )
        replayed = replay_recording(self.recording, decider, limit=setup.limit)
        served, segments = collect_segments(replayed)
        seen = SessionVisibility(self._reading, segments)
        calls = map(_price_call, self._recorded_calls, served)
        return self.blank_cell.model_copy(
            update={
                "setup": setup,
                **count_run(served),
                "canonical": measure.score(seen),
                "lost": tuple(
                    MissedFact(key=one.key, kind=one.kind, call=one.call, position=one.hidden_in)
                    for one in measure.find_lost(seen)
                ),
                "bill": compute_bill(calls, facts, others={} if setup.model else self.facts),
                "seconds": process_time() - began,
            }
        )

    def _measure_controls(self, limit: int, budgets: tuple[int, ...]) -> tuple[ControlResult, ...]:
        """Measure the scores of control texts on the boundaries that all setups share."""
        recording, measure = self.recording, self._make_measure(limit)
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

    # What all setups share

    @cached_property
    def _recorded_calls(self) -> tuple[PricedCall, ...]:
        return tuple(read_recorded_calls(self.recording))

    @cached_property
    def _reading(self) -> SessionReading:
        return SessionReading(make_session_rows(self.recording))

    def _make_measure(self, limit: int) -> FidelityMeasure:
        if limit not in self._measures:
            boundaries = find_canonical_boundaries(self._reading, limit)
            self._measures[limit] = FidelityMeasure(self._reading, boundaries)
        return self._measures[limit]


def read_recorded_calls(recording: Recording) -> Iterator[PricedCall]:
    """Yield the part of each call that is the same under any setup; prompts have no tokens yet.

    The time of a call is that of the newest event it sees that has a time. The last event is often
    the record of the call before, which has no time in an import.
    """
    time, calibration = SessionTime(recording), recording.calibration
    before = None
    for call in recording.calls:
        now = time.advance(call.last_seen_position)
        gap = None if before is None else (now - before).total_seconds()
        before = now if time.is_told else None
        yield PricedCall(
            prompt=0,
            output=_count_output(recording, call),
            gap_s=gap,
            cache=calibration.cache_reports[call.number - 1] if calibration else None,
            model=call.report.model if call.report else None,
        )


def _count_output(recording: Recording, call: RecordedCall) -> int:
    """Return the tokens that the model wrote: as reported, else as estimated."""
    usage = call.report.usage if call.report else None
    if usage is not None and usage.output is not None:
        return usage.output
    if call.report is None and recording.calibration is not None:
        return 0  # the report of another call includes it
    return sum(one.tokens for one in recording.iter_events(call.answer))
