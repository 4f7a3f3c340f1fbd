"""Follows the log on PostgreSQL."""

from eventsourcing.persistence import PersistenceError

from ..event_log.watched_subscription import WatchedSubscription

SNAPSHOT = "SELECT pg_current_snapshot()::text"


class PostgresSubscription(WatchedSubscription):
    """Asks for the snapshot: as long as it does not change, no transaction has committed anything.

    `NOTIFY` would serialise all appends: its transactions take a lock of the whole database to
    commit. What a snapshot says, in contrast, costs no more than the round trip.
    """

    failures = (PersistenceError,)

    def look(self) -> object:
        snapshot = self._recorder.datastore.read(SNAPSHOT)
        # A transaction leaves the snapshot a moment before it lets go of its locks.
        return None if self._recorder.tail.is_waiting else snapshot
