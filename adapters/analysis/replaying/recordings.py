"""Reads whole sessions and their decisions for replays, and stores the decisions of a replay."""

from collections.abc import Collection, Sequence
from weakref import WeakKeyDictionary

from eventsourcing.persistence import IntegrityError

from ....domain.compaction import (
    MAIN_LINEAGE,
    RECORDED_LINEAGE,
    check_lineage_syntax,
)
from ....domain.errors import ConflictError, InvalidSettingError
from ....domain.event import Event
from ....domain.ranges import Ranges
from ....domain.session_events import BlockAppended, ModelCalled, ToolCalled
from ....projections.replay.recording import CallCounter, RecordedCall, Recording
from ....projections.replay.recording_calibration import calibrate_recording
from ...runtime.sessions.stored_session import StoredSession

_PAGE_EVENTS = 2_000
_COUNTED_TOPICS = frozenset({BlockAppended.TOPIC, ModelCalled.TOPIC, ToolCalled.TOPIC})
_RESERVED_LINEAGES = frozenset({MAIN_LINEAGE, RECORDED_LINEAGE})


def read_recording(session: StoredSession) -> Recording:
    """Return all events of a session."""
    log = session.log
    chain, opened = log.chain(), log.read_opening()
    events = log.events.read(chain, Ranges.span(1, log.position))
    return Recording(
        key=session.key,
        namespace=session.namespace,
        log={recorded.position: recorded for recorded in events},
        source=opened.source,
        subject=opened.subject,
        forks=tuple(segment.first for segment in chain.segments[1:]),
    )


_calls: WeakKeyDictionary[StoredSession, tuple[int, tuple[RecordedCall, ...]]] = WeakKeyDictionary()
"""The calls of each session object, with the session's position when they were counted."""


def read_calls(session: StoredSession) -> tuple[RecordedCall, ...]:
    """Return all calls in the log, counted as replays count them; number 1 is the first.

    Only the content of blocks tells which of them are one answer, so this reads the whole log, but
    no tool results.
    """
    events, chain, head = session.log.events, session.log.chain(), session.position
    known = _calls.get(session)
    if known is not None and known[0] == head:
        return known[1]
    counter = CallCounter()
    for begin in range(1, head + 1, _PAGE_EVENTS):
        page = Ranges.span(begin, min(head, begin + _PAGE_EVENTS - 1))
        for stream, runs in chain.split_by_stream(page):
            for row in events.recorder.select_runs(stream, runs):
                if row.topic in _COUNTED_TOPICS:
                    counter.add(events.make_recorded(row))
                elif row.tokens:
                    counter.interrupt()
    calls = counter.list_calls()
    _calls[session] = head, calls
    return calls


def read_calibrated(session: StoredSession) -> tuple[Recording, list[Event]]:
    """Return a session with tokens as its provider reported them, and its recorded decisions.

    The decisions are those of the session's source, and those served since.
    """
    decisions = read_decisions(session, MAIN_LINEAGE)
    return calibrate_recording(read_recording(session), decisions, MAIN_LINEAGE), decisions


def read_decisions(
    session: StoredSession, lineage: str, *, without: Collection[type[Event]] = ()
) -> list[Event]:
    """Return all events of a lineage, including those that it continues.

    Events of types in `without` are not read: a late summary names each block that it replaces.
    """
    events = session.log.events
    chain = events.find_lineage_chain(session.namespace, session.key, lineage)
    version = events.read_lineage_state(chain)[0]
    unread = {event_class.TOPIC for event_class in without}
    return [
        events.make_recorded(row).event
        for stream, runs in chain.split_by_stream(Ranges.span(1, version))
        for row in events.recorder.select_runs(stream, runs)
        if row.topic not in unread
    ]


def check_new_lineage(session: StoredSession, lineage: str) -> None:
    """Raise InvalidSettingError, or ConflictError if the session has that lineage already."""
    if lineage in _RESERVED_LINEAGES:
        raise InvalidSettingError(
            f"a replay cannot be stored as lineage {lineage!r}: main is what agents are served, "
            "and recorded what happened; choose another name"
        )
    if lineage in session.log.lineages:
        raise _make_conflict(session, lineage)
    check_lineage_syntax(lineage)


def store_decisions(session: StoredSession, lineage: str, decisions: Sequence[Event]) -> None:
    """Append decisions to a lineage, all of them or none.

    Raises ConflictError if another process has stored other ones meanwhile.
    """
    events = session.log.events
    try:
        with events.lock_streams(events.find_lineage_id(session.namespace, session.key, lineage)):
            events.save(*decisions)
    except IntegrityError:
        raise _make_conflict(session, lineage) from None


def _make_conflict(session: StoredSession, lineage: str) -> ConflictError:
    return ConflictError(f"session {session.key!r} has a lineage {lineage!r} already: name another")
