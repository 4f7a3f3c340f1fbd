"""Follows the log on PostgreSQL."""

from eventsourcing.persistence import PersistenceError

from ..event_log.polling_subscription import PollingSubscription

SNAPSHOT_QUERY = "SELECT pg_current_snapshot()::text"


class PostgresSubscription(PollingSubscription):
    """Polls the snapshot, which stays the same as long as no transaction commits.

    `NOTIFY` would serialize all appends, since it locks the whole database to commit. Reading a
    snapshot only costs a round trip.
    """

    failures = (PersistenceError,)

    def read_marker(self) -> object:
        snapshot = self._recorder.datastore.read(SNAPSHOT_QUERY)
        # A transaction leaves the snapshot a moment before it releases its locks.
        return None if self._recorder.tail.is_waiting else snapshot
