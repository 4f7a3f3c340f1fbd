"""Follows the log on PostgreSQL."""

from eventsourcing.persistence import PersistenceError

from ..event_log.polling_subscription import PollingSubscription

SNAPSHOT_QUERY = "SELECT pg_current_snapshot()::text"


class PostgresSubscription(PollingSubscription):
    """Asks for the snapshot: as long as it does not change, no transaction has committed anything.

    `NOTIFY` would serialise all appends: its transactions take a lock of the whole database to
    commit. What a snapshot says, in contrast, costs no more than the round trip.
    """

    failures = (PersistenceError,)

    def read_marker(self) -> object:
        snapshot = self._recorder.datastore.read(SNAPSHOT_QUERY)
        # A transaction leaves the snapshot a moment before it lets go of its locks.
        return None if self._recorder.tail.is_waiting else snapshot
