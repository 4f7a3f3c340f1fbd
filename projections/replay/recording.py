"""A session as it was recorded: its log, and where its agent called a model."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import median
from typing import cast

from ...domain.backtest.billing import CacheReport
from ...domain.blocks import ASSISTANT_KINDS
from ...domain.session_events import BlockAppended, ModelCalled, ToolCalled, TurnStarted
from ..read_models.timestamps import get_event_block
from ..recorded_event import RecordedEvent
from .call_numbers import ModelAnswers, number_calls, sort_call_records


@dataclass(frozen=True, slots=True)
class RecordedCall:
    """One call of the recorded agent's model."""

    number: int
    """From 1 on, in the order of the log."""
    last_seen_position: int
    """The newest position that the model could be sent."""
    answer: tuple[int, ...] = ()
    """Positions of the blocks that it wrote; none where it wrote nothing, or nothing was kept."""
    report: ModelCalled | None = None
    """What was recorded of the call itself; None where a source tells no more than the answer."""

    @property
    def prompt(self) -> int | None:
        """Tokens of the prompt, as its provider reported them."""
        usage = self.report.usage if self.report else None
        return usage.context if usage else None


@dataclass(frozen=True, slots=True)
class RecordingCalibration:
    """How large prompts really were, as a session's provider reported it."""

    reports: int
    """Calls whose size was reported, and can be believed."""
    chars_per_token: float
    """Characters of a block for each token, over the whole session."""
    overhead_by_call: tuple[int, ...]
    """Of each call, tokens that are sent besides blocks and summary: system prompt, tools, and
    what no log holds."""
    cache_reports: tuple[CacheReport | None, ...]
    """Of each call, what was reported of the provider's cache."""

    @property
    def overhead(self) -> int:
        """Tokens besides, as half of the calls have at most."""
        return round(median(self.overhead_by_call))

    def is_empty_call(self, call: RecordedCall) -> bool:
        """Whether a call took nothing, whatever it was sent."""
        reported = self.cache_reports[call.number - 1]
        return reported is not None and reported.is_empty


@dataclass(frozen=True)
class Recording:
    """All events of one session, a fork's inherited ones included."""

    key: str
    namespace: str
    log: Sequence[RecordedEvent]
    """In order of position, from 1 on, without gaps."""
    source: str | None = None
    """The format that it was imported from; None where it was appended by an agent itself."""
    subject: str = ""
    forks: tuple[int, ...] = ()
    """Where the session, or one that it goes on from, begins as a fork: its first own position."""
    calibration: RecordingCalibration | None = None
    """What reports say of sizes; None where all tokens are estimates."""

    @cached_property
    def calls(self) -> tuple[RecordedCall, ...]:
        """Every call of a model that the log tells of, by an event of its own or by an answer."""
        return tuple(_iter_calls(self.log))

    @property
    def blocks(self) -> int:
        """How many blocks of an agent's conversation there are, notes left out."""
        return sum(recorded.tokens > 0 for recorded in self.log)

    @property
    def is_imported(self) -> bool:
        """Whether it came from a source, itself or what it is a fork of."""
        blocks = (block for recorded in self.log if (block := get_event_block(recorded.event)))
        first = next(blocks, None)
        return self.source is not None or (first is not None and first.origin is not None)

    def get_event(self, position: int) -> RecordedEvent:
        return self.log[position - 1]

    def find_turn(self, position: int) -> int:
        """The turn that was going on; 0 before the first."""
        for at in range(position, 0, -1):
            event = self.get_event(at).event
            if isinstance(event, TurnStarted):
                return event.turn
        return 0


def _iter_calls(log: Sequence[RecordedEvent]) -> Iterator[RecordedCall]:
    answers = ModelAnswers()
    told: list[ModelCalled] = []
    for recorded in log:
        event = recorded.event
        if isinstance(event, ToolCalled) or (
            isinstance(event, BlockAppended) and event.block.kind in ASSISTANT_KINDS
        ):
            message = event.block.message_id
            answers.add_block(recorded.position, None if message is None else (event.turn, message))
        elif recorded.tokens > 0:
            answers.interrupt()
        elif isinstance(event, ModelCalled):
            told.append(event)
    for number, call in enumerate(
        number_calls(answers.positions, sort_call_records(told)), start=1
    ):
        yield RecordedCall(
            number, call.last_seen_position, call.answer, cast("ModelCalled | None", call.record)
        )
