"""Defines a recorded session: its log, its agent's calls of a model, and its own clock.

Each answer of a model is a call, and so is each record of a call without an answer.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from operator import attrgetter
from statistics import median

from ..domain.billing import CacheReport
from ..domain.blocks import ASSISTANT_KINDS
from ..domain.cached_property import cached_property
from ..domain.session_events import BlockAppended, ModelCalled, ToolCalled
from .timestamps import get_event_block, read_source_time
from .view_content import RecordedEvent


@dataclass(frozen=True, slots=True)
class RecordedCall:
    number: int
    """From 1 on, in the order of the log; 0 if it was not counted."""
    last_seen_position: int
    """The newest position that the model could be sent."""
    answer: tuple[int, ...] = ()
    """Positions of the blocks that it wrote; empty if it wrote nothing, or nothing was kept."""
    report: ModelCalled | None = None
    """The record of the call; None if the source has only the answer."""
    is_imported: bool = False
    """Whether its answer was imported."""

    @property
    def prompt(self) -> int | None:
        usage = self.report.usage if self.report else None
        return usage.context if usage else None

    @property
    def first_position(self) -> int:
        """The position of its record or of its first block, whichever is first."""
        recorded = [self.report.originator_version] if self.report else []
        return min([*self.answer[:1], *recorded])

    def has_seen_decision(self, version: int, position: int, lineage: str) -> bool:
        """Check whether it was sent a lineage's decision of that version, or a later one.

        `position` is the session's when the decision took effect.
        """
        report = self.report
        if report is not None and report.lineage == lineage and report.fingerprint:
            # A call that cutbank served records its version of the lineage.
            return position <= self.last_seen_position and version <= report.lineage_version
        return position <= self.last_seen_position


class CallCounter:
    """Counts calls event by event, in the order of the log.

    Pieces of one message are one answer, whatever is between them; blocks without a message id form
    one answer if they are adjacent.
    """

    def __init__(self) -> None:
        self._answers: list[list[int]] = []
        self._imported = set[int]()
        """The first positions of imported answers."""
        self._by_message: dict[tuple[int, str], list[int]] = {}
        """The answer of a turn and of the id that a provider gave a message in it."""
        self._unnamed: list[int] | None = None
        """The newest answer, if it has no message id."""
        self._goes_on = False
        self._reports: dict[str, ModelCalled] = {}
        """The newest record of each call."""

    def add(self, recorded: RecordedEvent) -> None:
        event, position = recorded.event, recorded.position
        if isinstance(event, ModelCalled):
            self._reports[event.call_id] = event
        elif isinstance(event, ToolCalled) or (
            isinstance(event, BlockAppended) and event.block.kind in ASSISTANT_KINDS
        ):
            answer = self._find_answer(event.turn, event.block.message_id)
            answer.append(position)
            if len(answer) == 1 and event.block.origin is not None:
                self._imported.add(position)
        elif recorded.tokens:
            self.interrupt()

    def interrupt(self) -> None:
        """Record a block that the model did not write."""
        self._goes_on = False

    def _find_answer(self, turn: int, message: str | None) -> list[int]:
        goes_on, self._goes_on = self._goes_on, True
        if message is not None and (turn, message) in self._by_message:
            return self._by_message[turn, message]
        if message is None and goes_on and self._unnamed is not None:
            return self._unnamed
        answer = list[int]()
        self._answers.append(answer)
        self._unnamed = answer if message is None else None
        if message is not None:
            self._by_message[turn, message] = answer
        return answer

    def list_calls(self) -> tuple[RecordedCall, ...]:
        numbered = enumerate(self._iter_calls(), start=1)
        return tuple(
            RecordedCall(
                number, seen, tuple(answer), report, not self._imported.isdisjoint(answer[:1])
            )
            for number, (seen, answer, report) in numbered
        )

    def _iter_calls(self) -> Iterator[tuple[int, list[int], ModelCalled | None]]:
        reports = sorted(
            self._reports.values(), key=attrgetter("position", "originator_version"), reverse=True
        )
        before = 0
        for answer in self._answers:
            first = answer[0]
            report = None
            # A record for a position after the answer belongs to a later call.
            while reports and reports[-1].position < first:
                if report is not None:
                    yield report.position, [], report
                report = reports.pop()
            if report is not None and report.position < before:
                # It saw less than the answer before, so that this answer is not its own.
                yield report.position, [], report
                report = None
            yield report.position if report else first - 1, answer, report
            before = first
        for report in reversed(reports):
            yield report.position, [], report


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
    log: dict[int, RecordedEvent]
    """By position, in order; without the events of records, which no replay reads."""
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
        for recorded in self.log.values():
            counter.add(recorded)
        return counter.list_calls()

    @property
    def blocks(self) -> int:
        """The number of blocks, without notes."""
        return sum(recorded.tokens > 0 for recorded in self.log.values())

    @property
    def is_imported(self) -> bool:
        """Whether the session, or the parent that it is a fork of, was imported."""
        blocks = map(get_event_block, (recorded.event for recorded in self.log.values()))
        first = next(filter(None, blocks), None)
        return self.source is not None or (first is not None and first.origin is not None)

    def iter_events(self, positions: Iterable[int]) -> Iterator[RecordedEvent]:
        """Yield the events at these positions, in their order."""
        return (self.log[position] for position in positions if position in self.log)


class SessionTime:
    """The clock of a replayed session, which only goes forward; sources may be out of order.

    An imported block has the source's own time, or none. All other events of an import have the
    time of the import, which is ignored.
    """

    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        self._position = 0
        self.is_told = False
        """Whether any event had a time."""
        self.now = self._find_first_time()

    def advance(self, position: int) -> datetime:
        """Return the time at which everything up to a position was in the log."""
        news = self._recording.iter_events(range(self._position + 1, position + 1))
        for told in self._iter_times(news):
            self.now = max(self.now, told)
            self.is_told = True
        self._position = max(self._position, position)
        return self.now

    def _find_first_time(self) -> datetime:
        """Return the first time in the log; if a source has none, the time of the import."""
        log = self._recording.log.values()
        return next(self._iter_times(log), next(iter(log)).event.timestamp)

    def _iter_times(self, log: Iterable[RecordedEvent]) -> Iterator[datetime]:
        for recorded in log:
            event = recorded.event
            block = get_event_block(event)
            if block is not None and block.origin is not None:
                if (told := read_source_time(block)) is not None:
                    yield told
            elif block is not None or not self._recording.is_imported:
                yield event.timestamp
