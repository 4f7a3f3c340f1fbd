"""Reads all that happened in a session: blocks with their status, calls, decisions, lineages."""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cache, partial

from ...domain.cached_property import cached_property
from ...domain.compaction import MAIN_LINEAGE, RECORDED_LINEAGE
from ...domain.compaction_events import BoundaryActivated, Summary
from ...domain.errors import InvalidPositionError, NotFoundError
from ...domain.event import Event
from ...domain.ranges import Ranges
from ...domain.session_events import ModelCalled, ToolReturned
from ...domain.token_estimate import PromptSizeChange
from ...projections.audit_entries import (
    AuditedBlock,
    AuditedCall,
    AuditedEvent,
    AuditEntry,
    find_source_time,
    place_decisions,
)
from ...projections.block_statuses import StatusIndex, ViewEpoch, list_view_epochs
from ...projections.lineage_tree import LineageTree, grow_tree
from ...projections.recording import RecordedCall
from ...projections.view_content import Coordinate, RecordedEvent
from ..runtime.sessions.recalled_blocks import check_end, make_recalled
from ..runtime.sessions.stored_session import StoredSession
from ..storage.compaction_sizes import measure_compactions
from ..storage.event_log.storage_errors import translate_storage_errors
from .diffs import number_compactions
from .run_replay import read_calls, read_decisions
from .sent_views import SentViews

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
        self._store, self._chain = session.log.events, session.log.chain()
        reader = session.log.reader(lineage)
        self.coordinate: Coordinate
        self.coordinate, state, _ = reader.find_coordinate(at, lineage_version)
        self._open = frozenset(state.open_calls.values())
        self.turns, self.blocks, self.tokens = state.turn, state.blocks, state.tokens
        self.retractions = reader.read_retractions(self.position)
        self.number_compactions = cache(partial(number_compactions, session))
        """Numbers the compactions of a lineage of the session."""

    @property
    def position(self) -> int:
        return self.coordinate.position

    @cached_property
    def decisions(self) -> tuple[Event, ...]:
        """All decisions on the lineage, including those that it inherits."""
        lineage, version = self.coordinate.lineage, self.coordinate.lineage_version
        return tuple(read_decisions(self.session, lineage)[:version])

    @property
    def compaction_numbers(self) -> dict[int, int]:
        """The number of each compaction, from 1 on, by the version of its boundary."""
        return self.number_compactions(self.coordinate.lineage)

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
    def calls(self) -> Sequence[RecordedCall]:
        """All calls in the log, in order; the first has number 1."""
        return read_calls(self.session)

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
        decisions = deque(one for one in placed if first <= one.position <= last)
        calls = deque(
            call
            for call in self.calls
            if first <= call.last_seen_position <= last and self._is_included(call)
        )
        views = SentViews(self._store, self.session.namespace, self.session.key)
        for begin in range(first, last + 1, _PAGE_EVENTS):
            page = Ranges.span(begin, min(last, begin + _PAGE_EVENTS - 1))
            found = {one.position: one for one in self._store.read(self._chain, page)}
            for position in page:
                # There are no entries for records, but calls and decisions may follow them.
                recorded = found.get(position)
                if recorded is not None and (entry := self._make_entry(recorded)) is not None:
                    yield entry
                while calls and calls[0].last_seen_position == position:
                    call = views.describe(calls.popleft())
                    while decisions and call.call.has_seen_decision(
                        decisions[0].version, decisions[0].position, self.coordinate.lineage
                    ):
                        yield decisions.popleft()
                    yield call
                while decisions and decisions[0].position == position:
                    yield decisions.popleft()

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
        records = (call.report for call in self.calls if self._is_included(call))
        return frozenset(record.originator_version for record in records if record)

    def _is_included(self, call: RecordedCall) -> bool:
        """Return whether the log held any part of the call at the coordinate."""
        return max(call.last_seen_position, call.first_position) <= self.position


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


def audit_call(
    session: StoredSession, number: int | None = None, *, at: int | None = None
) -> AuditedCall:
    """Return what one call of a model was sent: rebuilt, and proved by its fingerprint.

    `number` counts calls from 1 on, as `audit` and replays do; `at` is the position of the call's
    record, or of a block of its answer. `shown.proof` tells whether the view is what was sent,
    `request()` returns the body. Raises NotFoundError if there is no such call, and
    InvalidPositionError if `at` names none.
    """
    with translate_storage_errors(session.log.context.name):
        if at is not None:
            return _find_call_at(session, at)
        if number is None:
            raise InvalidPositionError("no call was named: give its number, or a handle with `at`")
        calls = read_calls(session)
        if not calls:
            raise NotFoundError(f"session {session.key!r} tells of no call of a model")
        if not 1 <= number <= len(calls):
            raise NotFoundError(
                f"session {session.key!r} has no call {number}: they go from 1 to {len(calls)}"
            )
        return _audit_call(session, calls[number - 1])


def _find_call_at(session: StoredSession, position: int) -> AuditedCall:
    check_end(Ranges.of([position]), session.position)
    event = session.log.read_event(position)
    if isinstance(event, ModelCalled):
        return _audit_call(session, RecordedCall(0, event.position, (), event))
    for call in read_calls(session):
        if position in call.answer:
            return _audit_call(session, call)
    raise InvalidPositionError(
        f"#{position} is neither a model's answer nor the record of a call of one"
    )


def _audit_call(session: StoredSession, call: RecordedCall) -> AuditedCall:
    views = SentViews(session.log.events, session.namespace, session.key)
    entry = views.describe(call)
    return replace(entry, view=views.find_view(entry))


# Lineages


def list_session_lineages(session: StoredSession) -> list[str]:
    """Return the lineages that together hold all compactions of a session.

    A fork's `main` may have no events of its own: it begins as its parent's. Compactions of
    imported transcripts are on `recorded`.
    """
    written = session.log.lineages
    if {MAIN_LINEAGE, RECORDED_LINEAGE}.isdisjoint(written) and read_decisions(
        session, MAIN_LINEAGE, without=[Summary]
    ):
        return [MAIN_LINEAGE, *written]
    return written


def lineage_tree(session: StoredSession, lineage: str = MAIN_LINEAGE) -> LineageTree:
    """Return which summary replaced what, through all boundaries of a lineage.

    Call numbers are those of the recorded model, from 1 on; tokens are estimates. Raises
    NotFoundError if no compaction was ever recorded on it.
    """
    with translate_storage_errors(session.log.context.name):
        session.log.check_lineage(lineage)
        return read_lineage_trees(session, [lineage])[0]


def read_lineage_trees(session: StoredSession, names: Iterable[str]) -> list[LineageTree]:
    return [_read_tree(session, name) for name in names]


def _read_tree(session: StoredSession, name: str) -> LineageTree:
    view = session.view(lineage=name)
    decisions = read_decisions(session, name)
    return grow_tree(
        decisions,
        session=session.key,
        namespace=session.namespace,
        lineage=name,
        served=view.boundary.originator_version if view.boundary else 0,
        first_call=partial(_find_first_call, session, name),
        sizes=measure_compactions(session.log.events, decisions),
    )


def _find_first_call(session: StoredSession, lineage: str, switch: BoundaryActivated) -> int | None:
    at = switch.originator_version, switch.effective_from, lineage
    return next((one.number for one in read_calls(session) if one.has_seen_decision(*at)), None)
