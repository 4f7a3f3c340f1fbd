"""Numbers the calls of a model: each answer is a call, and so is each record without an answer."""

from array import array
from collections.abc import Iterable, Sequence
from typing import NamedTuple, Protocol, TypeVar

MessageKey = tuple[int, str]
"""A turn, and the id of a provider's message in it."""


class CallRecord(Protocol):
    """The recorded event of a call."""

    @property
    def call_id(self) -> str: ...
    @property
    def position(self) -> int: ...
    @property
    def originator_version(self) -> int: ...


_CallRecordT = TypeVar("_CallRecordT", bound=CallRecord)


class ModelAnswers:
    """Groups the model's blocks into answers, by position, in the order of the log.

    Pieces of one message are one answer, whatever is between them; blocks without a message id form
    one answer if they are adjacent.
    """

    def __init__(self) -> None:
        # Arrays of numbers, because a session may have very many answers.
        self._positions = array("q")
        self._answers = array("q")
        """The answer that each of these positions belongs to."""
        self._by_message: dict[MessageKey, int] = {}
        self._count = 0
        self._is_newest_named = False
        self._goes_on = False

    @property
    def positions(self) -> list[list[int]]:
        found: list[list[int]] = [[] for _ in range(self._count)]
        for position, answer in zip(self._positions, self._answers, strict=True):
            found[answer].append(position)
        return found

    def add_block(self, position: int, message: MessageKey | None) -> None:
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
        self._goes_on = False


class NumberedCall(NamedTuple):
    """A call in order; its number is its index plus 1."""

    last_seen_position: int
    """The newest position that the model could be sent."""
    answer: tuple[int, ...]
    record: CallRecord | None


def sort_call_records(records: Iterable[_CallRecordT]) -> list[_CallRecordT]:
    """Return the records in the order of what their calls saw, and only the last of each call."""
    by_id: dict[str, _CallRecordT] = {}
    for record in records:
        by_id[record.call_id] = record
    return sorted(by_id.values(), key=lambda call: (call.position, call.originator_version))


def number_calls(
    answers: Sequence[Sequence[int]], records: Sequence[CallRecord]
) -> list[NumberedCall]:
    """Return every call in order; `record` is sorted as by `sort_call_records`."""
    calls: list[NumberedCall] = []
    at = before = 0
    for answer in answers:
        first = answer[0]
        # A record for a position after the answer belongs to a later call.
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
