"""Opens a session that shares another one's history up to a position, without copying."""

from eventsourcing.persistence import IntegrityError

from ....domain.errors import ConflictError, InvalidPositionError
from ....domain.session import Session, derive_session_id
from ....domain.session_events import Fork
from ...storage.event_log.event_store import EventStore
from ...storage.view_reader import ViewReader


def store_fork(
    events: EventStore,
    parent: ViewReader,
    key: str,
    *,
    at: int | None = None,
    source: str | None = None,
    title: str | None = None,
) -> None:
    """Store a fork, named `key`, of the session that `parent` reads.

    It shares the compactions of that reader's lineage. Without `at` it shares everything. Raises
    InvalidPositionError if that position does not exist, ConflictError if the key is taken.
    """
    namespace = parent.namespace
    taken = f"session {key!r} exists already: choose another key"
    with events.lock_streams(derive_session_id(namespace, key)):
        position, state = events.read_head(events.find_session_chain(namespace, parent.key), at)
        if at is not None and position != at:
            raise InvalidPositionError(f"#{at} does not exist: the session ends at #{position}")
        if events.load_session(namespace, key) is not None:
            raise ConflictError(taken)
        in_effect = parent.read_state_in_effect(position)[1]
        forked = Session.fork(
            namespace,
            key,
            clock=events.clock,
            subject=events.find_subject(namespace, parent.key),
            fork=Fork(
                namespace=namespace,
                key=parent.key,
                position=position,
                lineage=parent.lineage,
                lineage_version=in_effect.switched,
            ),
            at=state,
            source=source,
            title=title,
            project=events.read_opening(namespace, parent.key).project,
        )
        try:
            events.save(forked)
        except IntegrityError:
            # Another process took the key at the same moment.
            raise ConflictError(taken) from None
