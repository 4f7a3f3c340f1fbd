"""Numbers the calls of a model: each answer is one, and so is each record that has no answer."""

from array import array
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, Protocol, TypeVar

MessageKey = tuple[int, str]
"""A turn, and the name that a provider's message has in it."""


class CallRecord(Protocol):
    """What is recorded of a call by an event of its own."""

    @property
    def call_id(self) -> str: ...
    @property
    def position(self) -> int: ...
    @property
    def originator_version(self) -> int: ...


_CallRecordT = TypeVar("_CallRecordT", bound=CallRecord)


class AnswerJoins(NamedTuple):
    """What of the answers so far the next blocks may be a part of."""

    messages: Mapping[MessageKey, int]
    """Which answer each message is."""
    is_newest_named: bool
    """Whether the newest answer is a message."""
    is_uninterrupted: bool
    """Whether nobody else said anything since."""


class ModelAnswers:
    """What models wrote, an answer each: its blocks by position, in the order of the log.

    Pieces of one message are one answer, whatever stands between them; what has no message id is
    one with what stands right beside it.
    """

    def __init__(self) -> None:
        # Numbers in rows: a session has so many answers that objects of them would be felt.
        self._positions = array("q")
        self._answers = array("q")
        """Which answer each of these positions is a part of."""
        self._by_message: dict[MessageKey, int] = {}
        self._count = 0
        self._is_newest_named = False
        self._goes_on = False

    @classmethod
    def resume(cls, found: Iterable[Sequence[int]], joins: AnswerJoins) -> "ModelAnswers":
        """As they were when these were `found`, and later blocks could join them so."""
        answers = cls()
        for answer, positions in enumerate(found):
            answers._positions.extend(positions)
            answers._answers.extend([answer] * len(positions))
            answers._count = answer + 1
        answers._by_message = dict(joins.messages)
        answers._is_newest_named, answers._goes_on = joins.is_newest_named, joins.is_uninterrupted
        return answers

    @property
    def open_joins(self) -> AnswerJoins:
        """What the next blocks may be a part of."""
        return AnswerJoins(self._by_message, self._is_newest_named, self._goes_on)

    @property
    def positions(self) -> list[list[int]]:
        """The positions of each answer."""
        found: list[list[int]] = [[] for _ in range(self._count)]
        for position, answer in zip(self._positions, self._answers, strict=True):
            found[answer].append(position)
        return found

    def add_block(self, position: int, message: MessageKey | None) -> None:
        """A model wrote the block at `position`."""
        if message is not None and message in self._by_message:
            answer = self._by_message[message]
        elif message is None and self._goes_on and not self._is_newest_named:
            answer = self._count - 1
        else:
            answer = self._count
            self._count += 1
            self._is_newest_named = message is not None
            if message is not None:
                self._by_message[message] = answer
        self._positions.append(position)
        self._answers.append(answer)
        self._goes_on = True

    def interrupt(self) -> None:
        """Somebody else said something."""
        self._goes_on = False


class NumberedCall(NamedTuple):
    """A call in its place: its number is that of its place, from 1 on."""

    last_seen_position: int
    """The newest position that the model could be sent."""
    answer: tuple[int, ...]
    record: CallRecord | None


def sort_call_records(records: Iterable[_CallRecordT]) -> list[_CallRecordT]:
    """Records in the order of what their calls saw; of one call the last that was recorded."""
    by_id: dict[str, _CallRecordT] = {}
    for record in records:
        by_id[record.call_id] = record
    return sorted(by_id.values(), key=lambda call: (call.position, call.originator_version))


def number_calls(
    answers: Sequence[Sequence[int]], records: Sequence[CallRecord]
) -> list[NumberedCall]:
    """Every call in order; `told` as `in_order` has it."""
    calls: list[NumberedCall] = []
    at = before = 0
    for answer in answers:
        first = answer[0]
        # What was recorded for a position behind the answer belongs to a later one.
        while at < len(records) and records[at].position < first:
            calls.append(NumberedCall(records[at].position, (), records[at]))
            at += 1
        if (
            calls
            and calls[-1].record
            and not calls[-1].answer
            and calls[-1].last_seen_position >= before
        ):
            calls[-1] = calls[-1]._replace(answer=tuple(answer))
        else:
            calls.append(NumberedCall(first - 1, tuple(answer), None))
        before = first
    calls += [NumberedCall(call.position, (), call) for call in records[at:]]
    return calls
