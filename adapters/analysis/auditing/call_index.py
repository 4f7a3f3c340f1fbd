"""Finds a call of a model by its number, counted as replays count."""

from collections.abc import Container, Sequence
from dataclasses import dataclass, field
from threading import Lock
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

from ....domain.blocks import ASSISTANT_KINDS
from ....domain.session_events import BlockAppended, ModelCalled, ToolCalled
from ....projections.replay.call_numbers import (
    MessageKey,
    ModelAnswers,
    NumberedCall,
    number_calls,
    sort_call_records,
)
from ...runtime.sessions.stored_session import StoredSession
from ...storage.event_log.event_mapper import load_json
from ...storage.event_log.event_store import EventStore
from ...storage.event_log.stored_row import StoredRow
from ...storage.process_forks import reopen_in_children

_PAGE_ROWS = 2_000
_ASSISTANT_KINDS = frozenset(map(str, ASSISTANT_KINDS))
_ID_FIELDS = frozenset({"call_id", "message_id"})
"""The fields that tell calls apart; their text may be long enough to be stored separately."""


_indexes: WeakKeyDictionary[StoredSession, "CallIndex"] = WeakKeyDictionary()
"""The call index of each session object; later lookups only read new events."""


def find_calls(session: StoredSession) -> "CallIndex":
    return _indexes.setdefault(session, CallIndex(session))


class CallRecordRow(NamedTuple):
    """The record of a call, without what it reports."""

    call_id: str
    position: int
    """The newest position that the call saw."""
    originator_version: int
    """The position of the record."""


class CallIndex:
    """The calls of one session, in order.

    Only the content of two blocks tells whether they are one answer, so no table of the log can
    count calls. The log is read once, then only its new events.
    """

    def __init__(self, session: StoredSession) -> None:
        self.store = session.log.events
        self.namespace, self.key = session.namespace, session.key
        self._advancing = Lock()
        """Threads may share a session."""
        self._counter, self._position = _CallCounter(), 0
        self._calls: Sequence[NumberedCall] = ()
        reopen_in_children(self)

    FORK_RANK = 0

    def locks(self) -> tuple[()]:
        """Return no locks for a fork to wait for: the child reads the log again."""
        return ()

    def leave_in_child(self, held: Container[Any]) -> None:
        """Read the log again from its start: another thread may have been halfway at the fork."""
        del held
        self._advancing = Lock()
        self._restart()

    def read_calls(self) -> Sequence[NumberedCall]:
        """Return all calls in the log, the first at index 0."""
        with self._advancing:
            chain = self.store.find_session_chain(self.namespace, self.key)
            head = self.store.read_head(chain)[0]
            if head < self._position:  # the log was replaced
                self._restart()
            if head == self._position:
                return self._calls
            counter, seen = self._counter, self._position
            self._restart()  # after a failed read, the state is incomplete
            for segment in chain.segments:
                last = head if segment.last is None else min(head, segment.last)
                for begin in range(max(segment.first, seen + 1), last + 1, _PAGE_ROWS):
                    for row in self.store.recorder.select_events(
                        segment.originator_id, gt=begin - 1, lte=min(last, begin + _PAGE_ROWS - 1)
                    ):
                        counter.add_row(row, self.store)
            self._calls = counter.number_calls()
            self._counter, self._position = counter, head
            return self._calls

    def _restart(self) -> None:
        self._counter, self._position, self._calls = _CallCounter(), 0, ()


@dataclass
class _CallCounter:
    answers: ModelAnswers = field(default_factory=ModelAnswers)
    records: dict[str, CallRecordRow] = field(default_factory=dict)
    """The newest record of each call."""

    def number_calls(self) -> list[NumberedCall]:
        return number_calls(self.answers.positions, sort_call_records(self.records.values()))

    def add_row(self, row: StoredRow, store: EventStore) -> None:
        if row.topic == ModelCalled.TOPIC:
            state = _read_content(row, store)
            name = state["call_id"]
            self.records[name] = CallRecordRow(name, state["position"], row.originator_version)
        elif row.topic in {BlockAppended.TOPIC, ToolCalled.TOPIC}:
            state = _read_content(row, store)
            block = state["block"]
            if row.topic == ToolCalled.TOPIC or block["kind"] in _ASSISTANT_KINDS:
                self.answers.add_block(row.originator_version, _read_message(state, block))
            elif row.tokens:
                self.answers.interrupt()
        elif row.tokens:
            self.answers.interrupt()


def _read_content(row: StoredRow, store: EventStore) -> dict[str, Any]:
    """Return the content of an event, without the parts that are stored separately."""
    state: dict[str, Any] = load_json(store.mapper.read_plaintext(row))
    names_apart = any(path[-1] in _ID_FIELDS for path, *_ in state.get("bodies", ()))
    if "class_version" in state or names_apart:
        return store.mapper.to_domain_event(row).model_dump()
    return state


def _read_message(state: dict[str, Any], block: dict[str, Any]) -> MessageKey | None:
    message = block.get("message_id")
    return None if message is None else (state["turn"], message)
