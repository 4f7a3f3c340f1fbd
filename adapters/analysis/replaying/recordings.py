"""Reads whole sessions and their decisions for replays."""

from collections.abc import Collection

from ....domain.event import Event
from ....domain.ranges import Ranges
from ....projections.replay.recording import Recording
from ...runtime.sessions.stored_session import StoredSession


def read_recording(session: StoredSession, *, at: int | None = None) -> Recording:
    """Return all events of a session up to `at`, or to its end."""
    events = session.log.events
    chain = events.find_session_chain(session.namespace, session.key)
    head = events.read_head(chain, at)[0]
    opened = events.read_opening(session.namespace, session.key)
    return Recording(
        key=session.key,
        namespace=session.namespace,
        log=events.read(chain, Ranges.span(1, head)),
        source=opened.source,
        subject=opened.subject,
        forks=tuple(segment.first for segment in chain.segments[1:]),
    )


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
