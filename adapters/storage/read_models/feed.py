"""Feeds the log into the read models exactly once, storing rows and position together."""

from collections.abc import Sequence
from hashlib import blake2b
from typing import Protocol

from sqlite_utils import Database

from ..event_log.event_store import EventStore
from ..event_log.stored_row import LogNotification
from .read_model_file import FeedPosition, ReadModelDatabase


class Feed(Protocol):
    """One part of the read models, with its own position."""

    name: str
    page: int
    """The number of events read at a time."""

    def apply(self, db: Database, events: Sequence[LogNotification]) -> int:
        """Write the rows of the events; return how many were taken, at least one."""
        ...


class WrongLogError(Exception):
    """The file was made from another log."""


def read_new_events(
    store: EventStore, place: FeedPosition, limit: int, stop: int | None = None
) -> Sequence[LogNotification]:
    """Return the events that follow in the log.

    Raises WrongLogError if the newest stored event is not in the log: it is another log, or was
    restored from a backup.
    """
    found = store.recorder.select_notifications(place.position, limit + 1, stop)
    if not place.position:
        return found[:limit]
    if not found or found[0].id != place.position:
        raise WrongLogError
    if fingerprint_event(found[0]) != place.fingerprint:
        raise WrongLogError
    return found[1:]


def advance_feed(
    store: EventStore, file: ReadModelDatabase, feed: Feed, stop: int | None = None
) -> int:
    """Take in one batch; return how many events it had, 0 if there were none."""
    # Check without a lock first.
    if not read_new_events(store, file.read_position(feed.name), 1, stop):
        return 0
    with file.transaction() as db:
        # Read again under the lock: another process may have taken the same events.
        events = read_new_events(store, file.read_position(feed.name, db), feed.page, stop)
        if not events:
            return 0
        taken = feed.apply(db, events)
        newest = events[taken - 1]
        file.save_position(db, feed.name, FeedPosition(newest.id, fingerprint_event(newest)))
    return taken


def fingerprint_event(event: LogNotification) -> str:
    """Return a hash that distinguishes the event from any other at its position."""
    digest = blake2b(str(event.originator_id).encode(), digest_size=16)
    digest.update(f":{event.originator_version}:".encode())
    digest.update(event.state)
    return digest.hexdigest()
