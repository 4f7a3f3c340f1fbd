"""Stores what a session decides, again if another process was faster; and opens forks."""

from collections.abc import Callable
from typing import TypeVar, cast

from eventsourcing.persistence import IntegrityError

from ....domain.errors import ConflictError, CutbankError, InvalidPositionError, NotFoundError
from ....domain.session import Session, derive_session_id
from ....domain.session_events import Fork
from ...storage.event_log.event_store import EventStore
from ...storage.event_log.stored_row import AppendKey
from ...storage.view_reader import ViewReader

_T = TypeVar("_T")


def decide_with_retry(
    events: EventStore,
    namespace: str,
    key: str,
    decision: Callable[[Session], _T],
    *,
    append_key: str | None = None,
    expect: int | None = None,
) -> _T | AppendKey:
    """Return a decision's result once it is stored; of an append stored before, its key.

    A decision with an `append_key` returns the first and last position of what it appends. `expect`
    is the position that the caller believes newest. Raises NotFoundError if the session was never
    opened, ConflictError if its position differs from `expect`, and the decision's own errors.
    """
    stream = derive_session_id(namespace, key)
    with events.lock_streams(stream):
        while True:
            if append_key is not None and (done := events.select_key(stream, append_key)):
                return done
            session = _load_session(events, namespace, key)
            if expect is not None and session.version != expect:
                events.refresh(stream)
                session = _load_session(events, namespace, key)
                if session.version != expect:
                    raise ConflictError(
                        f"session {key!r} is at #{session.version}, not #{expect}:"
                        " read it again before you append"
                    )
            before = session.version
            try:
                result = decision(session)
            except CutbankError:
                # Drop the partial decision; if it was based on old state, repeat it.
                events.evict(stream)
                fresh = events.load_session(namespace, key)
                if fresh is None or fresh.version == before:
                    raise
                continue
            keys: tuple[AppendKey, ...] = ()
            if append_key is not None:
                first, last = cast("tuple[int, int]", result)
                keys = (AppendKey(stream, append_key, first, last),)
            try:
                events.save(session, keys=keys)
            except IntegrityError:
                continue  # another process appended first, so there is progress
            return result


def _load_session(events: EventStore, namespace: str, key: str) -> Session:
    session = events.load_session(namespace, key)
    if session is None:
        raise NotFoundError(f"session {key!r} was never opened")
    return session


def check_name(what: str, name: str) -> None:
    """Raise InvalidPositionError, naming `what`, if it cannot be a key or namespace."""
    try:
        name.encode()
    except UnicodeEncodeError:
        raise InvalidPositionError(f"{what} {name!r} is not valid Unicode") from None
    if not name or "\0" in name:
        raise InvalidPositionError(f"{what} {name!r} must have characters, and no NUL among them")


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
