"""Reads the whole history of a session in order: blocks with their status, calls and decisions."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import cast

from ....domain.compaction import MAIN_LINEAGE
from ....domain.errors import InvalidPositionError
from ....domain.event import Event
from ....domain.ranges import Ranges
from ....domain.session_events import BlocksRetracted, ModelCalled, ToolReturned
from ....domain.token_estimate import PromptSizeChange
from ....projections.audit_entries import (
    AuditedBlock,
    AuditedDecision,
    AuditedEvent,
    AuditEntry,
    ModelCallEntry,
    find_source_time,
    place_decisions,
)
from ....projections.block_statuses import StatusIndex, ViewEpoch, list_view_epochs
from ....projections.replay.call_numbers import NumberedCall
from ....projections.view_content import Coordinate, RecordedEvent
from ...runtime.sessions.block_lookup import make_recalled
from ...runtime.sessions.stored_session import StoredSession
from ...storage.compaction_sizes import measure_compactions
from ...storage.event_log.storage_errors import translate_storage_errors
from ...storage.view_reader import ViewReader
from .call_index import find_calls
from .diffs import list_boundaries
from .sent_views import SentViews, find_witness

_PAGE_EVENTS = 500


class Audit:
    """A session at one coordinate, including what was compacted; read page by page."""

    def __init__(
        self,
        session: StoredSession,
        lineage: str,
        at: int | None = None,
        lineage_version: int | None = None,
    ) -> None:
        self.session = session
        self._store = session.log.events
        self._chain = self._store.find_session_chain(session.namespace, session.key)
        reader = ViewReader(self._store, session.namespace, session.key, lineage)
        self.coordinate: Coordinate
        self.coordinate, state, _ = reader.find_coordinate(at, lineage_version)
        self._open = frozenset(state.open_calls.values())
        self.turns, self.blocks, self.tokens = state.turn, state.blocks, state.tokens
        self.retractions = self._read_retractions(state.retraction)
        self._counts: dict[str, dict[int, int]] = {}

    @property
    def position(self) -> int:
        return self.coordinate.position

    @cached_property
    def decisions(self) -> tuple[Event, ...]:
        """All decisions on the lineage, including those that it inherits."""
        at = self.coordinate
        session = self.session
        chain = self._store.find_lineage_chain(session.namespace, session.key, at.lineage)
        log = self._store.read(chain, Ranges.span(1, at.lineage_version))
        return tuple(recorded.event for recorded in log)

    @property
    def compaction_numbers(self) -> dict[int, int]:
        """The number of each compaction, from 1 on, by the version of its boundary."""
        return self.number_compactions(self.coordinate.lineage)

    def number_compactions(self, lineage: str) -> dict[int, int]:
        """Number the compactions of another lineage of the session in the same way."""
        if lineage not in self._counts:
            boundaries = list_boundaries(self.session, lineage)
            self._counts[lineage] = {number: count for count, number in enumerate(boundaries, 1)}
        return self._counts[lineage]

    @cached_property
    def sizes(self) -> dict[int, PromptSizeChange]:
        """The prompt tokens before and after each boundary of the lineage."""
        return measure_compactions(self._store, self.decisions)

    @cached_property
    def view_epochs(self) -> tuple[ViewEpoch, ...]:
        """The changes of where views begin, oldest first."""
        return list_view_epochs(self.decisions, self.retractions, self.position)

    @cached_property
    def block_statuses(self) -> StatusIndex:
        return StatusIndex(self.view_epochs, self.retractions, self.position)

    @cached_property
    def calls(self) -> Sequence[NumberedCall]:
        """All calls in the log, in order; the first has number 1."""
        return find_calls(self.session).read_calls()

    def read_between(self, first: int = 1, last: int | None = None) -> Iterator[AuditEntry]:
        """Yield what happened between two positions, both included; up to the end without `last`.

        Calls and decisions follow the position that the session had reached. Raises
        InvalidPositionError if a position does not exist.
        """
        end = self.position if last is None else last
        if max(first, end) > self.position:
            raise InvalidPositionError(
                f"#{max(first, end)} does not exist: the audit ends at #{self.position}"
            )
        if first > end:
            raise InvalidPositionError(f"nothing lies between: #{first} comes after #{end}")
        return self._read_entries(first, end)

    def _read_entries(self, first: int, last: int) -> Iterator[AuditEntry]:
        placed = place_decisions(self.decisions, self.position)
        decisions = [one for one in placed if first <= one.position <= last]
        views = SentViews(self._store, self.session.namespace, self.session.key)
        for begin in range(first, last + 1, _PAGE_EVENTS):
            end = min(last, begin + _PAGE_EVENTS - 1)
            page = self._store.read(self._chain, Ranges.span(begin, end))
            calls = list(self._read_calls(begin, end, views))
            for recorded in page:
                if (entry := self._make_entry(recorded)) is not None:
                    yield entry
                while calls and _get_place(calls[0]) == recorded.position:
                    call = calls.pop(0)
                    while decisions and self._comes_before(decisions[0], call):
                        yield decisions.pop(0)
                    yield call
                while decisions and decisions[0].position == recorded.position:
                    yield decisions.pop(0)

    def _comes_before(self, decision: AuditedDecision, call: ModelCallEntry) -> bool:
        """Return whether a decision at the same position was made before the call was sent."""
        if decision.position != _get_place(call):
            return decision.position < _get_place(call)
        reported = call.reported
        if reported and reported.fingerprint and reported.lineage == self.coordinate.lineage:
            # A call that cutbank served names its lineage version.
            return decision.version <= reported.lineage_version
        return True

    def _make_entry(self, recorded: RecordedEvent) -> AuditEntry | None:
        position, event = recorded.position, recorded.event
        recalled = make_recalled(recorded)
        if recalled is None:
            if position in self._records:
                return None  # the call itself reports it
            return AuditedEvent(position, event, is_superseded=isinstance(event, ModelCalled))
        return AuditedBlock(
            position=position,
            turn=recalled.turn,
            block=recalled.block,
            tokens=recorded.tokens,
            time=find_source_time(event),
            status=self.block_statuses.find(position),
            is_open=position in self._open,
            ends=event.shown if isinstance(event, ToolReturned) else None,
        )

    @cached_property
    def _records(self) -> frozenset[int]:
        """The positions of the newest records of the calls that the audit includes."""
        records = (call.record for call in self.calls if self._is_included(call))
        return frozenset(record.originator_version for record in records if record)

    def _is_included(self, call: NumberedCall) -> bool:
        """Return whether the log held any part of the call at the coordinate."""
        at = [*call.answer[:1], *([call.record.originator_version] if call.record else [])]
        return call.last_seen_position <= self.position and min(at) <= self.position

    def _read_calls(self, first: int, last: int, views: SentViews) -> Iterator[ModelCallEntry]:
        """Yield the calls whose newest visible position is in this range."""
        calls = self.calls
        begin = bisect_left(calls, first, key=lambda call: call.last_seen_position)
        end = bisect_right(calls, last, key=lambda call: call.last_seen_position)
        included = {
            number: call
            for number, call in enumerate(calls[begin:end], start=begin + 1)
            if self._is_included(call)
        }
        wanted = Ranges.of(map(find_witness, included.values()))
        log = {recorded.position: recorded for recorded in self._store.read(self._chain, wanted)}
        for number, call in included.items():
            yield views.describe(number, call, log[find_witness(call)].event)

    def _read_retractions(self, newest: int) -> list[BlocksRetracted]:
        """Return all retractions, oldest first; each names the one before it."""
        found: list[BlocksRetracted] = []
        at = newest
        while at:
            event = cast(BlocksRetracted, self._store.read(self._chain, Ranges.of([at]))[0].event)
            found.append(event)
            at = event.previous
        return found[::-1]


def audit(
    session: StoredSession,
    *,
    lineage: str = MAIN_LINEAGE,
    at: int | None = None,
    lineage_version: int | None = None,
) -> Audit:
    """Return everything that happened up to a coordinate, including what was compacted.

    `read_between()` of the result yields it page by page: blocks with their status, calls with what
    they were sent and whether that is proved, decisions, and every other event. Sizes are estimated
    tokens. Raises NotFoundError if a position, lineage or version does not exist.
    """
    with translate_storage_errors(session.log.context.name):
        session.log.check_lineage(lineage)
        return Audit(session, lineage, at, lineage_version)


def _get_place(call: ModelCallEntry) -> int:
    return call.numbered_call.last_seen_position
