"""Numbers the calls of a model: each answer is a call, and so is each record without an answer."""

from collections.abc import Iterator
from dataclasses import dataclass
from operator import attrgetter

from ...domain.blocks import ASSISTANT_KINDS
from ...domain.session_events import BlockAppended, ModelCalled, ToolCalled
from ..view_content import RecordedEvent


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
