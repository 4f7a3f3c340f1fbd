"""A session as it was recorded: its log, and where its agent called a model."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property

from ...domain.blocks import BY_ASSISTANT
from ...domain.event import Event
from ...domain.session_events import BlockAppended, ModelCalled, ToolCalled, TurnStarted
from ..read_models.moments import said_at
from ..recorded import Recorded


@dataclass(frozen=True, slots=True)
class Call:
    """One call of the recorded agent's model."""

    number: int
    """From 1 on, in the order of the log."""
    sees: int
    """The newest position that the model could be sent."""
    answer: tuple[int, ...] = ()
    """Positions of the blocks that it wrote; none where it wrote nothing, or nothing was kept."""
    reported: ModelCalled | None = None
    """What was recorded of the call itself; None where a source tells no more than the answer."""


@dataclass(frozen=True)
class Recording:
    """All events of one session, a fork's inherited ones included."""

    key: str
    namespace: str
    log: Sequence[Recorded]
    """In order of position, from 1 on, without gaps."""
    source: str | None = None
    """The format that it was imported from; None where it was appended by an agent itself."""
    subject: str = ""

    @cached_property
    def calls(self) -> tuple[Call, ...]:
        """Every call of a model that the log tells of, by an event of its own or by an answer."""
        return tuple(
            replace(call, number=number) for number, call in enumerate(_calls(self.log), start=1)
        )

    @property
    def blocks(self) -> int:
        """How many blocks of an agent's conversation there are, notes left out."""
        return sum(recorded.tokens > 0 for recorded in self.log)

    def at(self, position: int) -> Recorded:
        return self.log[position - 1]

    def turn_at(self, position: int) -> int:
        """The turn that was going on; 0 before the first."""
        for at in range(position, 0, -1):
            event = self.at(at).event
            if isinstance(event, TurnStarted):
                return event.turn
        return 0

    def time_of(self, call: Call) -> datetime:
        """When the call was made, as far as the log tells: when what it saw last was said."""
        return said_at(self.at(call.sees).event) if call.sees else self.log[0].event.timestamp


def _calls(log: Sequence[Recorded]) -> list[Call]:
    """Each answer is a call, and so is each event that tells of one that nothing answers to."""
    answers = list(_answers(log))
    told = _told(log)
    calls: list[Call] = []
    at = 0
    for index, (first, answer) in enumerate(answers):
        # What was recorded for a position behind the answer belongs to a later one.
        while at < len(told) and told[at].position < first:
            calls.append(Call(0, told[at].position, reported=told[at]))
            at += 1
        before = answers[index - 1][0] if index else 0
        if calls and calls[-1].reported and not calls[-1].answer and calls[-1].sees >= before:
            calls[-1] = replace(calls[-1], answer=answer)
        else:
            calls.append(Call(0, first - 1, answer))
    calls += [Call(0, call.position, reported=call) for call in told[at:]]
    return calls


def _told(log: Iterable[Recorded]) -> list[ModelCalled]:
    """Calls by events of their own, in the order of what they saw; of one call the last event."""
    by_id: dict[str, ModelCalled] = {}
    for recorded in log:
        if isinstance(recorded.event, ModelCalled):
            by_id[recorded.event.call_id] = recorded.event
    return sorted(by_id.values(), key=lambda call: (call.position, call.originator_version))


def _answers(log: Iterable[Recorded]) -> Iterator[tuple[int, tuple[int, ...]]]:
    """What models wrote, an answer each: where it begins, and its blocks.

    Pieces of one message are one answer, whatever stands between them; what has no message id is
    one with what stands right beside it.
    """
    answers: list[tuple[Message | None, list[int]]] = []
    by_message: dict[Message, list[int]] = {}
    goes_on = False
    for recorded in log:
        message, is_answer = _said(recorded.event)
        if not is_answer:
            goes_on = goes_on and not _is_block(recorded)
            continue
        if message is not None and message in by_message:
            by_message[message].append(recorded.position)
        elif message is None and goes_on and answers[-1][0] is None:
            answers[-1][1].append(recorded.position)
        else:
            answers.append((message, [recorded.position]))
            if message is not None:
                by_message[message] = answers[-1][1]
        goes_on = True
    yield from ((positions[0], tuple(positions)) for _, positions in answers)


Message = tuple[int, str]
"""A turn, and the name that a provider's message has in it."""


def _said(event: Event) -> tuple[Message | None, bool]:
    """The message that a block is a piece of, and whether a model wrote it."""
    if isinstance(event, ToolCalled) or (
        isinstance(event, BlockAppended) and event.block.kind in BY_ASSISTANT
    ):
        message = event.block.message_id
        return None if message is None else (event.turn, message), True
    return None, False


def _is_block(recorded: Recorded) -> bool:
    return recorded.tokens > 0
