"""Stores calls in order as columns of numbers, and saves them as they are among the read models."""

from array import array
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import accumulate
from sys import byteorder
from typing import NamedTuple, overload

from ....domain.errors import StorageError
from ....projections.replay.call_numbers import AnswerJoins, NumberedCall
from ....projections.view_content import encode_text
from ...runtime.sessions.session_log import SessionLog
from ...storage.event_log.event_mapper import decode_body, dump_json, load_json
from ...storage.read_models.location import find_read_models, read_saved_row

_FORMAT = f"1 {byteorder}"
"""The format of packed calls, whose columns have this machine's byte order."""
_NEWEST_QUERY = (
    "SELECT position, digest, calls, joins FROM counted_calls WHERE stream = ? AND format = ?"
)


class CallRecordRow(NamedTuple):
    """The record of a call, without what it reports."""

    call_id: str
    position: int
    """The newest position that the call saw."""
    originator_version: int
    """The position of the record."""


class CallTable(Sequence[NumberedCall]):
    """Calls in order, as columns of numbers.

    A long session has hundreds of thousands of calls; as objects, each garbage collection would
    walk them.
    """

    def __init__(self, calls: Sequence[NumberedCall] = ()) -> None:
        self._sees = array("q", (call.last_seen_position for call in calls))
        self._positions = array("q", (at for call in calls for at in call.answer))
        self._ends = _end_offsets(len(call.answer) for call in calls)
        """Where the positions of each call's answer end, from the second on."""
        self._told = array(
            "q", (call.record.originator_version if call.record else 0 for call in calls)
        )
        """The position of each call's record, or 0."""
        self._saw = array("q", (call.record.position if call.record else 0 for call in calls))
        names = [encode_text(call.record.call_id) if call.record else b"" for call in calls]
        self._names, self._name_ends = b"".join(names), _end_offsets(map(len, names))

    def __len__(self) -> int:
        return len(self._sees)

    @overload
    def __getitem__(self, at: int) -> NumberedCall: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[NumberedCall]: ...
    def __getitem__(self, at: int | slice) -> NumberedCall | Sequence[NumberedCall]:
        if isinstance(at, slice):
            return [self[one] for one in range(*at.indices(len(self)))]
        at = range(len(self))[at]
        answer = tuple(self._positions[self._ends[at] : self._ends[at + 1]])
        return NumberedCall(self._sees[at], answer, self._get_record(at))

    def iter_answers(self) -> Iterator[Sequence[int]]:
        for at in range(len(self)):
            if self._ends[at] < self._ends[at + 1]:
                yield self._positions[self._ends[at] : self._ends[at + 1]]

    def iter_records(self) -> Iterator[CallRecordRow]:
        for at in range(len(self)):
            if record := self._get_record(at):
                yield record

    def pack(self) -> bytes:
        columns = self._make_columns()
        lengths = array("q", map(len, columns))
        return lengths.tobytes() + b"".join(map(bytes, columns)) + self._names

    @classmethod
    def unpack(cls, kept: bytes) -> "CallTable":
        """Restore what `pack` returned, in the same format."""
        calls, rest = cls(), memoryview(kept)
        columns = calls._make_columns()
        size = array("q").itemsize
        lengths = rest[: size * len(columns)].cast("q").tolist()
        rest = rest[size * len(columns) :]
        for column, length in zip(columns, lengths, strict=True):
            del column[:]
            column.frombytes(rest[: size * length])
            rest = rest[size * length :]
        calls._names = bytes(rest)
        return calls

    def _make_columns(self) -> "list[array[int]]":
        return [self._sees, self._positions, self._ends, self._told, self._saw, self._name_ends]

    def _get_record(self, at: int) -> CallRecordRow | None:
        version = self._told[at]
        if not version:
            return None
        name = decode_body(self._names[self._name_ends[at] : self._name_ends[at + 1]])
        return CallRecordRow(name, self._saw[at], version)


def _end_offsets(lengths: Iterable[int]) -> "array[int]":
    return array("q", accumulate(lengths, initial=0))


class SavedCount(NamedTuple):
    """The calls up to a position, and the state needed to continue counting."""

    position: int
    digest: bytes
    """The digest of the event at that position; it detects a log that was restored since."""
    packed_calls: bytes
    packed_joins: bytes

    @property
    def calls(self) -> CallTable:
        return CallTable.unpack(self.packed_calls)

    @property
    def joins(self) -> AnswerJoins:
        """The state that joins later blocks to calls; it takes longer to load than the calls."""
        messages, *rest = load_json(self.packed_joins)
        return AnswerJoins({(turn, name): answer for turn, name, answer in messages}, *rest)


def load_count(log: SessionLog) -> SavedCount | None:
    try:
        name = find_read_models(log.context.name)
    except StorageError:
        return None  # this store has no read models
    row = read_saved_row(name, _NEWEST_QUERY, (str(log.id), _FORMAT))
    return SavedCount(*row) if row else None


def save_count(
    log: SessionLog, position: int, digest: bytes, calls: CallTable, joins: AnswerJoins
) -> None:
    messages = [(turn, name, answer) for (turn, name), answer in joins.messages.items()]
    packed = dump_json([messages, *joins[1:]])
    # A saved count only saves time, so a failure to save is ignored.
    with suppress(StorageError):
        row = (str(log.id), position, digest, _FORMAT, calls.pack(), packed)
        log.context.read_models.save_calls(row)
