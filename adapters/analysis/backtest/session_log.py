"""Reads one session for a backtest: its log, its recorded compactions, and its answers."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from hashlib import blake2b

from ....domain.backtest.billing import PricedCall
from ....domain.backtest.cell import Cell, Setup
from ....domain.event import Event
from ....domain.models import ModelFacts
from ....domain.session_events import ModelCalled
from ....projections.read_models.timestamps import find_event_time
from ....projections.replay.recording import RecordedCall, Recording, SessionTime
from ...models.context_limits import find_facts
from ...runtime.sessions.stored_session import StoredSession
from ...settings.settings import Settings
from ...storage.event_log.event_mapper import dump_json
from ..replaying.recordings import read_calibrated


@dataclass(frozen=True)
class MeasuredSession:
    """All inputs of the session's cells."""

    recording: Recording
    decisions: Sequence[Event]
    """The recorded compactions: those of the session's source, and those served since."""
    settings: Settings
    """Settings of the compactions, as in an agent's loop."""

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
        for recorded in recording.log:
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
        events = (recorded.event for recorded in reversed(self.recording.log))
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
    return sum(recording.get_event(position).tokens for position in call.answer)
