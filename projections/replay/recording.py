"""Defines a recorded session: its log, its agent's calls of a model, and its own clock."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from statistics import median

from ...domain.backtest.billing import CacheReport
from ...domain.session_events import TurnStarted
from ..read_models.timestamps import get_event_block, read_source_time
from ..view_content import RecordedEvent
from .recorded_calls import CallCounter, RecordedCall


@dataclass(frozen=True, slots=True)
class RecordingCalibration:
    """The real sizes of prompts, as a session's provider reported them."""

    reports: int
    """Calls with a credible reported size."""
    chars_per_token: float
    """Characters of a block for each token, over the whole session."""
    overhead_by_call: tuple[int, ...]
    """Each call's overhead: system prompt, tools, and content outside the log."""
    cache_reports: tuple[CacheReport | None, ...]
    """Each call's report of the provider's cache."""

    @property
    def overhead(self) -> int:
        """The median of the tokens apart from blocks and summary."""
        return round(median(self.overhead_by_call))

    def is_empty_call(self, call: RecordedCall) -> bool:
        reported = self.cache_reports[call.number - 1]
        return reported is not None and reported.is_empty


@dataclass(frozen=True)
class Recording:
    """All events of one session, including a fork's inherited ones."""

    key: str
    namespace: str
    log: Sequence[RecordedEvent]
    """In order of position, from 1 on, without gaps."""
    source: str | None = None
    """The format that it was imported from; None if an agent appended it directly."""
    subject: str = ""
    forks: tuple[int, ...] = ()
    """The first own position of the session and of each ancestor, if it is a fork."""
    calibration: RecordingCalibration | None = None
    """What reports say of sizes; None if all tokens are estimates."""

    @cached_property
    def calls(self) -> tuple[RecordedCall, ...]:
        """Every call of a model in the log, known from its record or its answer."""
        counter = CallCounter()
        for recorded in self.log:
            counter.add(recorded)
        return counter.list_calls()

    @property
    def blocks(self) -> int:
        """The number of blocks, without notes."""
        return sum(recorded.tokens > 0 for recorded in self.log)

    @property
    def is_imported(self) -> bool:
        """Whether the session, or the parent that it is a fork of, was imported."""
        blocks = (block for recorded in self.log if (block := get_event_block(recorded.event)))
        first = next(blocks, None)
        return self.source is not None or (first is not None and first.origin is not None)

    def get_event(self, position: int) -> RecordedEvent:
        return self.log[position - 1]

    def find_turn(self, position: int) -> int:
        """Return the current turn at a position; 0 before the first."""
        for at in range(position, 0, -1):
            event = self.get_event(at).event
            if isinstance(event, TurnStarted):
                return event.turn
        return 0


class SessionTime:
    """The clock of a replayed session, which only goes forward; sources may be out of order.

    An imported block has the source's own time, or none. All other events of an import have the
    time of the import, which is ignored. The log may grow while the clock is in use.
    """

    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        self._position = 0
        self.is_told = False
        """Whether any event had a time."""
        self.now = self._find_first_time()

    def advance(self, position: int) -> datetime:
        """Return the time at which everything up to a position was in the log."""
        for told in self._iter_times(self._recording.log[self._position : position]):
            self.now = max(self.now, told)
            self.is_told = True
        self._position = max(self._position, position)
        return self.now

    def _find_first_time(self) -> datetime:
        """Return the first time in the log; if a source has none, the time of the import."""
        log = self._recording.log
        return next(self._iter_times(log), log[0].event.timestamp)

    def _iter_times(self, log: Sequence[RecordedEvent]) -> Iterator[datetime]:
        for recorded in log:
            event = recorded.event
            block = get_event_block(event)
            if block is not None and block.origin is not None:
                if (told := read_source_time(block)) is not None:
                    yield told
            elif block is not None or not self._recording.is_imported:
                yield event.timestamp
