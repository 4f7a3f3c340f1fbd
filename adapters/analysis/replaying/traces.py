"""Traces of stored sessions, kept among the read models once they were made."""

from ....domain.ranges import Ranges
from ....projections.replay.trace import FORMAT, NotByTokens, Trace, trace_of
from ...runtime.sessions.stored_session import StoredSession
from ...storage.read_models.read_models import Kept
from .recordings import recording_of

LARGEST = 500_000_000
"""Bytes of a trace that is kept; SQLite holds no value of twice as many."""


def trace_of_session(session: StoredSession) -> Trace | NotByTokens:
    """A session's trace; why there is none, where its replays look at more than tokens.

    Made from all events the first time, and read back as it is until the session goes on.
    """
    events, models = session.log.events, session.log.context.read_models
    chain = events.session_chain(session.namespace, session.key)
    if len(chain.segments) > 1:
        return NotByTokens("the session is a fork")
    (stream,) = (segment.originator_id for segment in chain.segments)
    position = events.head(chain)[0]
    (newest,) = events.read(chain, Ranges.span(position, position))
    kept = Kept(position, newest.digest, FORMAT)
    found = models.kept_trace(stream, kept)
    if found is not None:
        return Trace.unpacked(found)
    trace = trace_of(recording_of(session, at=position))
    if isinstance(trace, Trace) and len(columns := trace.packed()) <= LARGEST:
        models.keep_trace(stream, kept, columns)
    return trace
