"""Finds a call of a model by its number: counted as replays count, from a glance at each event."""

from collections.abc import Container, Sequence
from dataclasses import dataclass, field
from threading import Lock
from typing import Any
from weakref import WeakKeyDictionary

from ....domain.blocks import BY_ASSISTANT
from ....domain.session_events import BlockAppended, ModelCalled, ToolCalled
from ....projections.replay.numbering import Answers, Message, Numbered, in_order, numbered
from ...runtime.sessions.stored_session import StoredSession
from ...storage.event_log.chain import Chain
from ...storage.event_log.event_mapper import loads
from ...storage.event_log.event_store import EventStore
from ...storage.event_log.stored_row import StoredRow
from ...storage.process_forks import reopen_in_children
from .counted import Counted, Record
from .kept_calls import Count, KeptCalls

PAGE = 2_000
WORTH_KEEPING = 10_000
"""Events that are counted sooner than what was kept is found and opened."""
WRITTEN = frozenset(map(str, BY_ASSISTANT))
NAMES = frozenset({"call_id", "message_id"})
"""Text by which calls are told apart; it may be so long that it is stored apart."""


_indexes: WeakKeyDictionary[StoredSession, "CallIndex"] = WeakKeyDictionary()
"""The index of each session object that was asked; counted once, and then only what is new."""


def find_calls(session: StoredSession) -> "CallIndex":
    """Return the index of the session's calls, by number."""
    return _indexes.setdefault(session, CallIndex(session))


class CallIndex:
    """The calls of one session, in order.

    Whether two blocks are one answer stands in their content, so no table of the log tells how many
    calls there were. The log is looked through once, and then only what is new in it; of a long
    session the count is kept among the read models, to go on from.
    """

    def __init__(self, session: StoredSession) -> None:
        self.store = session.log.events
        self.namespace, self.key = session.namespace, session.key
        self._kept = KeptCalls(session.log)
        self._kept_upto = 0
        self._position = 0
        self._calls = Counted()
        self._tally: _Tally | Count = _Tally()
        self._advancing = Lock()
        """Threads may share a session."""
        reopen_in_children(self)

    FORK_RANK = 0

    def locks(self) -> tuple[()]:
        """Name the locks that a fork waits for: none, since a child reads the log again."""
        return ()

    def leave_in_child(self, held: Container[Any]) -> None:
        """Read the log again from its start: another thread may have been halfway at the fork."""
        del held
        self._advancing = Lock()
        self._begin_anew()

    def calls(self) -> Sequence[Numbered]:
        """All calls that the log tells of now, the first at index 0."""
        with self._advancing:
            chain = self.store.session_chain(self.namespace, self.key)
            head = self.store.head(chain)[0]
            if head < self._position:  # this is not the log that it was
                self._begin_anew()
            if not self._position and head >= WORTH_KEEPING:
                self._resume(chain, head)
            if head != self._position:
                self._go_on(chain, head)
            return self._calls

    def _begin_anew(self) -> None:
        self._tally, self._calls = _Tally(), Counted()
        self._position = self._kept_upto = 0

    def _resume(self, chain: Chain, head: int) -> None:
        """Begin with what was kept, if it was counted in this very log."""
        kept = self._kept.newest()
        if kept and kept.position <= head and kept.digest == self._digest(chain, kept.position):
            self._tally, self._calls = kept, kept.calls
            self._position = self._kept_upto = kept.position

    def _go_on(self, chain: Chain, head: int) -> None:
        tally = self._tally if isinstance(self._tally, _Tally) else _Tally.of(self._tally)
        seen, kept_upto = self._position, self._kept_upto
        self._begin_anew()  # where reading fails halfway, nothing can go on from here
        for segment in chain.segments:
            last = head if segment.last is None else min(head, segment.last)
            for begin in range(max(segment.first, seen + 1), last + 1, PAGE):
                for row in self.store.recorder.select_events(
                    segment.originator_id, gt=begin - 1, lte=min(last, begin + PAGE - 1)
                ):
                    tally.take(row, self.store)
        self._tally, self._calls, self._position = tally, tally.calls(), head
        if head - kept_upto >= WORTH_KEEPING:
            self._kept.keep(head, self._digest(chain, head), self._calls, tally.answers.joins)
            kept_upto = head
        self._kept_upto = kept_upto

    def _digest(self, chain: Chain, position: int) -> bytes:
        stream = chain.holding(position)
        (row,) = self.store.recorder.select_events(stream, gt=position - 1, lte=position)
        return row.digest


@dataclass
class _Tally:
    """What was counted so far."""

    answers: Answers = field(default_factory=Answers)
    records: dict[str, Record] = field(default_factory=dict)
    """The newest of each call."""

    @classmethod
    def of(cls, kept: Count) -> "_Tally":
        calls = kept.calls
        records = {record.call_id: record for record in calls.records()}
        return cls(Answers.going_on(calls.answers(), kept.joins), records)

    def calls(self) -> Counted:
        return Counted(numbered(self.answers.found, in_order(self.records.values())))

    def take(self, row: StoredRow, store: EventStore) -> None:
        if row.topic == ModelCalled.TOPIC:
            state = _content(row, store)
            name = state["call_id"]
            self.records[name] = Record(name, state["position"], row.originator_version)
        elif row.topic in {BlockAppended.TOPIC, ToolCalled.TOPIC}:
            state = _content(row, store)
            block = state["block"]
            if row.topic == ToolCalled.TOPIC or block["kind"] in WRITTEN:
                self.answers.written(row.originator_version, _message(state, block))
            elif row.tokens:
                self.answers.interrupted()
        elif row.tokens:
            self.answers.interrupted()


def _content(row: StoredRow, store: EventStore) -> dict[str, Any]:
    """What an event says, but for what is stored apart."""
    state: dict[str, Any] = loads(store.mapper.plaintext(row))
    names_apart = any(path[-1] in NAMES for path, *_ in state.get("bodies", ()))
    if "class_version" in state or names_apart:
        return store.mapper.to_domain_event(row).model_dump()
    return state


def _message(state: dict[str, Any], block: dict[str, Any]) -> Message | None:
    message = block.get("message_id")
    return None if message is None else (state["turn"], message)
