"""Finds a call of a model by its number: counted as replays count, from a glance at each event."""

from array import array
from collections.abc import Iterable, Sequence
from threading import Lock
from typing import Any, NamedTuple, overload

from ...domain.blocks import BY_ASSISTANT
from ...domain.session_events import BlockAppended, ModelCalled, ToolCalled
from ...projections.replay.numbering import Answers, Message, Numbered, in_order, numbered
from ..event_log.event_mapper import loads
from ..event_log.event_store import EventStore
from ..event_log.stored_row import StoredRow

PAGE = 2_000
WRITTEN = frozenset(map(str, BY_ASSISTANT))
NAMES = frozenset({"call_id", "message_id"})
"""Text by which calls are told apart; it may be so long that it is stored apart."""


class Record(NamedTuple):
    """The record of a call, without what it reports."""

    call_id: str
    position: int
    """What the call saw last."""
    originator_version: int
    """Where the record stands."""


class Counted(Sequence[Numbered]):
    """Calls in order, held as rows of numbers.

    As objects, of which a long session would have hundreds of thousands, they would be walked
    through each time that memory is tidied up, whatever is read in between.
    """

    def __init__(self, calls: Iterable[Numbered] = ()) -> None:
        self._sees, self._positions = array("q"), array("q")
        self._ends = array("q", [0])
        """Where the positions of each call's answer end, from the second on."""
        self._told = array("q")
        """Where a call's record stands; 0 where there is none."""
        self._saw, self._names = array("q"), list[str]()
        for call in calls:
            self._sees.append(call.sees)
            self._positions.extend(call.answer)
            self._ends.append(len(self._positions))
            self._told.append(call.told.originator_version if call.told else 0)
            self._saw.append(call.told.position if call.told else 0)
            self._names.append(call.told.call_id if call.told else "")

    def __len__(self) -> int:
        return len(self._sees)

    @overload
    def __getitem__(self, at: int) -> Numbered: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[Numbered]: ...
    def __getitem__(self, at: int | slice) -> Numbered | Sequence[Numbered]:
        if isinstance(at, slice):
            return [self[one] for one in range(*at.indices(len(self)))]
        at = range(len(self))[at]
        version = self._told[at]
        return Numbered(
            self._sees[at],
            tuple(self._positions[self._ends[at] : self._ends[at + 1]]),
            Record(self._names[at], self._saw[at], version) if version else None,
        )


class CallIndex:
    """The calls of one session, in order.

    The log is looked through once, and then only what is new in it: whether two blocks are one
    answer stands in their content, so no table of the log tells how many calls there were.
    """

    def __init__(self, store: EventStore, namespace: str, key: str) -> None:
        self.store = store
        self.namespace = namespace
        self.key = key
        self._answers = Answers()
        self._records: dict[str, tuple[int, int]] = {}
        """What each call saw last, and where its newest record stands."""
        self._position = 0
        self._calls = Counted()
        self._advancing = Lock()
        """Threads may share a session."""

    def calls(self) -> Sequence[Numbered]:
        """All calls that the log tells of now, the first at index 0."""
        with self._advancing:
            chain = self.store.session_chain(self.namespace, self.key)
            head = self.store.head(chain)[0]
            if head != self._position:
                if head < self._position:  # this is not the log that it was
                    self._answers, self._records, self._position = Answers(), {}, 0
                for segment in chain.segments:
                    last = head if segment.last is None else min(head, segment.last)
                    first = max(segment.first, self._position + 1)
                    for begin in range(first, last + 1, PAGE):
                        rows = self.store.recorder.select_events(
                            segment.originator_id, gt=begin - 1, lte=min(last, begin + PAGE - 1)
                        )
                        for row in rows:
                            self._take(row)
                self._position = head
                records = (Record(name, *record) for name, record in self._records.items())
                self._calls = Counted(numbered(self._answers.found, in_order(records)))
            return self._calls

    def _take(self, row: StoredRow) -> None:
        if row.topic == ModelCalled.TOPIC:
            state = self._content(row)
            self._records[state["call_id"]] = state["position"], row.originator_version
        elif row.topic in {BlockAppended.TOPIC, ToolCalled.TOPIC}:
            state = self._content(row)
            block = state["block"]
            if row.topic == ToolCalled.TOPIC or block["kind"] in WRITTEN:
                self._answers.written(row.originator_version, _message(state, block))
            elif row.tokens:
                self._answers.interrupted()
        elif row.tokens:
            self._answers.interrupted()

    def _content(self, row: StoredRow) -> dict[str, Any]:
        """What an event says, but for what is stored apart."""
        state: dict[str, Any] = loads(self.store.mapper.plaintext(row))
        names_apart = any(path[-1] in NAMES for path, *_ in state.get("bodies", ()))
        if "class_version" in state or names_apart:
            return self.store.mapper.to_domain_event(row).model_dump()
        return state


def _message(state: dict[str, Any], block: dict[str, Any]) -> Message | None:
    message = block.get("message_id")
    return None if message is None else (state["turn"], message)
