"""Saves the traces of stored sessions among the read models."""

from ....domain.ranges import Ranges
from ....projections.replay.trace import TRACE_FORMAT, NeedsFullReplay, SessionTrace, make_trace
from ...runtime.sessions.stored_session import StoredSession
from ...storage.read_models.read_models import SavedState
from .recordings import read_recording

_MAX_TRACE_BYTES = 500_000_000
"""Bytes of the largest saved trace; SQLite does not store values twice as large."""


def read_session_trace(session: StoredSession) -> SessionTrace | NeedsFullReplay:
    """Return a session's trace, or the reason why its replays need more than tokens.

    It is made from all events the first time, and loaded until the session continues.
    """
    events, models = session.log.events, session.log.context.read_models
    chain = events.find_session_chain(session.namespace, session.key)
    if len(chain.segments) > 1:
        return NeedsFullReplay("the session is a fork")
    (stream,) = (segment.originator_id for segment in chain.segments)
    position = events.read_head(chain)[0]
    (newest,) = events.read(chain, Ranges.span(position, position))
    kept = SavedState(position, newest.digest, TRACE_FORMAT)
    found = models.load_trace(stream, kept)
    if found is not None:
        return SessionTrace.unpack(found)
    trace = make_trace(read_recording(session, at=position))
    if isinstance(trace, SessionTrace) and len(columns := trace.pack()) <= _MAX_TRACE_BYTES:
        models.save_trace(stream, kept, columns)
    return trace
