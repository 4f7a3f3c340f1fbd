"""Ends the streams of sessions that are deleted, and records which are to be erased.

Their streams move to another catalog, so that the name is free. What an erasure removes is in
`erasure.py`.
"""

from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from typing import Any
from uuid import UUID

from eventsourcing.persistence import IntegrityError

from ....domain.errors import NotFoundError
from ....domain.event import Aggregate, load_state
from ....domain.session import Session, SessionState
from .chain import SessionName, StreamSegment, make_missing_error
from .event_store import EventStore
from .log_names import make_table_rows
from .log_tables import DELETED, STREAMS, Batch, DeletedStream, Stream

SELECT_OF_SUBJECT = (
    "SELECT {columns} FROM {table} AS of WHERE (SELECT subject FROM stored_events"
    " WHERE stored_events.originator_id = of.originator_id"
    " ORDER BY originator_version LIMIT 1) = ?"
)
"""A stream has the same subject from its first event on."""
_SELECT_FORKS = (
    "SELECT namespace, session FROM streams WHERE lineage IS NULL AND NOT EXISTS ("
    "SELECT 1 FROM stored_events WHERE stored_events.originator_id = streams.originator_id"
    " AND originator_version = 1) ORDER BY namespace, session"
)
"""A fork's positions begin after those that it shares."""


def delete_sessions(
    store: EventStore,
    names: Sequence[SessionName],
    *,
    by: str | None,
    reason: str | None,
    erase: bool = False,
    deleted: Sequence[DeletedStream] = (),
) -> None:
    """Delete the sessions of these names, all or none, in one transaction.

    With `erase`, also record that the content of these, and of the sessions that were `deleted`
    before, is to go. Raises NotFoundError if a name has no session.
    """
    while True:
        streams = [one for name in names for one in store.recorder.select_streams(*name)]
        known = {(one.namespace, one.session) for one in streams if one.lineage is None}
        if missing := [name for name in names if name not in known]:
            raise make_missing_error(missing[0][1])
        ids = [one.originator_id for one in streams] + [one.originator_id for one in deleted]
        with store.lock_streams(*ids):
            ended: list[Aggregate[Any]] = []
            try:
                ended += [_end_stream(store, one, by, reason, erase=erase) for one in streams]
                ended += [_erase_deleted(store, one, by, reason) for one in deleted]
                _store_ends(store, names, streams, deleted, ended, erase=erase)
            except IntegrityError:
                continue  # another process wrote to one of them first, so there is progress
            finally:
                store.forget_streams(*ids)
        store.recorder.wake_subscriptions()
        return


def _end_stream(
    store: EventStore, stream: Stream, by: str | None, reason: str | None, *, erase: bool
) -> Aggregate[Any]:
    """Return the aggregate with its last events, still to be stored."""
    store.refresh(stream.originator_id)
    if stream.lineage is not None:
        lineage = store.load_lineage(stream.originator_id)
        if lineage is None or lineage.state.deleted:
            raise IntegrityError("its session was just deleted")
        lineage.delete()
        return lineage
    session = store.load_session(stream.namespace, stream.session)
    if session is None or session.id != stream.originator_id:
        raise IntegrityError("it was just deleted")
    session.delete(by, reason)
    if erase:
        session.erase(by, reason)
    return session


def _erase_deleted(
    store: EventStore, stream: DeletedStream, by: str | None, reason: str | None
) -> Session:
    """Return a session that was deleted before with the record of its erasure, to be stored."""
    head = store.recorder.select_head(stream.originator_id)
    if head is None:
        raise NotFoundError(f"session {stream.session!r} is not whole in this database")
    version, carried, subject = head
    state = load_state(SessionState, carried)
    session = Session(
        stream.originator_id, version=version, state=state, subject=subject, clock=store.clock
    )
    session.erase(by, reason)
    return session


def _store_ends(
    store: EventStore,
    names: Sequence[SessionName],
    streams: Sequence[Stream],
    deleted: Sequence[DeletedStream],
    ended: Sequence[Aggregate[Any]],
    *,
    erase: bool,
) -> None:
    """Store the last events, and move the streams to the catalog of deleted ones."""
    recorder = store.recorder
    rows = [store.mapper.to_stored_event(event) for one in ended for event in one.collect_events()]
    # Before the transaction, which must not be the one that adds a name.
    events = make_table_rows(Batch(rows), recorder.names, recorder.encode_id)
    with recorder.transaction() as transaction:
        found: set[Any] = set()
        moved: list[DeletedStream] = []
        for namespace, key in names:
            name = (namespace, key)
            # First the session's own, which others lock who begin a stream of it.
            for condition in (" AND lineage IS NULL", ""):
                query = "DELETE FROM streams WHERE namespace = ? AND session = ?"
                query += f"{condition} RETURNING originator_id"
                found |= {recorder.decode_id(id) for (id,) in transaction.execute(query, *name)}
            kept = transaction.execute(
                "DELETE FROM imports WHERE namespace = ? AND session = ? RETURNING segments", *name
            )
            segments = b"".join(bytes(of) for (of,) in kept)
            for one in streams:
                if (one.namespace, one.session) == name:
                    own = segments if one.lineage is None else b""
                    moved.append(DeletedStream(*one[:5], own, False if erase else None))
        if found != {one.originator_id for one in streams}:
            raise IntegrityError("a stream of it was just begun")
        for gone in deleted:
            transaction.execute(
                "UPDATE deleted_streams SET erased = ? WHERE namespace = ? AND session = ?"
                " AND generation = ?",
                False,
                gone.namespace,
                gone.session,
                gone.generation,
            )
        moves = make_table_rows(Batch(deleted=moved), recorder.names, recorder.encode_id)
        transaction.insert(moves | events)


def find_forks(
    store: EventStore, ids: AbstractSet[UUID]
) -> Iterator[tuple[SessionName, StreamSegment]]:
    """Yield the sessions that share positions of one of these streams, each with what it shares."""
    for namespace, key in store.recorder.datastore.read(_SELECT_FORKS):
        for segment in store.find_session_chain(namespace, key).segments[:-1]:
            if segment.originator_id in ids:
                yield (namespace, key), segment


def find_subject(store: EventStore, subject: str) -> tuple[list[SessionName], list[DeletedStream]]:
    """Return the names of a subject's sessions, and those that were deleted with their content.

    Raises NotFoundError if no event is about the subject.
    """
    recorder = store.recorder
    if recorder.names.secret_of(subject) is None:
        raise NotFoundError(f"no session is about the subject {subject!r}")
    number = recorder.names.subject(subject)[0]
    query = SELECT_OF_SUBJECT.format(columns="namespace, session", table=STREAMS)
    living = recorder.datastore.read(f"{query} AND lineage IS NULL", (number,))
    query = SELECT_OF_SUBJECT.format(columns="originator_id", table=DELETED)
    gone = recorder.datastore.read(f"{query} AND lineage IS NULL AND erased IS NULL", (number,))
    ids = {recorder.decode_id(id) for (id,) in gone}
    deleted = [one for one in recorder.select_deleted() if one.originator_id in ids]
    return [(namespace, key) for namespace, key in living], deleted
